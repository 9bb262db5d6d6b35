"""What `make site` puts beside the pages."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from pathlib import Path

import pytest

pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
pytest.importorskip("nbclient", reason="nbclient is not installed (as nbformat)")

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book.make import site

pytestmark = pytest.mark.no_arrays


def code(name, source, tags=(), needs="", **course):
    metadata = {"tags": list(tags)} if tags else {}
    if needs is not None:
        course["needs"] = needs
    return new_code_cell(source, id=name, metadata={**metadata, "course": course})


def cells(*made):
    return {cell["id"]: cell for cell in site.page_cells(new_notebook(cells=list(made)))}


def test_a_page_has_its_code_cells_in_order():
    found = cells(
        code("a", "x = 1"),
        new_markdown_cell("text"),
        code("b", "x", needs="a", random=[0, 12], page_seconds=12),
        code("c", "  "),
    )
    assert list(found) == ["a", "b"]
    said = {"id": "b", "source": "x", "needs": ["a"], "random": [0, 12], "runs": True, "seconds": 12}
    assert found["b"] == {**said, "long": False}
    assert found["a"]["seconds"] == 0


def test_hidden_cells_are_there_and_the_one_that_installs_is_not():
    assert list(cells(code("i", "install()", ["install"]), code("h", "x = 1", ["remove-cell"]))) == ["h"]


@pytest.mark.parametrize("tag", ["native=threads", "native=time", "native=numbers", "native=files"])
def test_what_cannot_run_says_why(tag):
    found = cells(code("a", "x = run()", [tag]), code("b", "x", needs="a"), code("c", "1"))
    assert found["a"]["runs"].startswith("This cell ")
    assert found["b"]["runs"] == site.NEEDS_OTHER + site.ELSEWHERE
    assert found["c"]["runs"] is True


@pytest.mark.parametrize("tag", ["training", "long-training", "native=heavy", "native=slow"])
def test_what_merely_takes_long_runs_and_says_so(tag):
    found = cells(
        code("a", "x = run()", [tag], page_seconds=90),
        code("b", "x", needs="a"),
        code("c", "1"),
        code("d", "x", ["native=time"]),
    )
    assert [one["runs"] for one in found.values()][:3] == [True, True, True]
    assert [one["long"] for one in found.values()] == [True, True, False, False]
    assert found["a"]["seconds"] == 90
    assert found["d"]["runs"] is not True


def names_only(**course):
    return code("a", "import math\nx = run()", ["training"], **course)


def test_what_a_cell_names_is_there_without_it():
    found = cells(
        names_only(**{"needs-names": ""}), code("b", "math.pi", needs="a-names"), code("c", "x", needs="a b")
    )
    assert list(found) == ["a-names", "a", "b", "c"]
    assert found["a-names"]["source"] == "import math"
    assert found["a"]["source"] == "import math\nx = run()"
    assert found["b"]["needs"] == ["a-names"]
    assert not found["b"]["long"]
    assert found["c"]["needs"] == ["a-names", "a", "b"]
    assert found["c"]["long"]


def test_quick_training_takes_no_patience():
    assert not cells(code("a", "x = 1", ["training", "page"]))["a"]["long"]


def test_cells_with_a_tag_are_found_with_those_that_need_them():
    made = [
        code("a", "x = 1"),
        code("b", "y = load()", [site.PUBLISHED], needs="a"),
        code("c", "y", needs="b"),
        code("d", "x", needs="a"),
        code("e", "y", needs="c"),
    ]
    notebook = new_notebook(cells=made)
    assert site.tagged(notebook, [site.PUBLISHED, "long"]) == ["b", "c", "e"]
    assert site.tagged(notebook, [], seconds=True) == []
    made[0].metadata["course"]["page_seconds"] = 7
    assert made[0].id in site.tagged(notebook, [], seconds=True)
    assert "83 MB" in cells(*made)["b"]["runs"]


PATHS = [
    ("book/01.ipynb", "make notebook NB=book/01.ipynb"),
    ("exercises/01.ipynb", "make notebook NB=solutions/01.ipynb && make map"),
]


@pytest.mark.parametrize(("path", "command"), PATHS)
@pytest.mark.parametrize(
    ("made", "words"),
    [
        ([code("a", "1"), code("b", "1", needs=None)], "nothing says what cell b needs"),
        ([names_only()], "nothing says what cell a-names needs"),
        ([code("a", "1", needs="b"), code("b", "1")], "cell a needs b, which is no cell above it"),
        ([code("a", "1", needs="gone")], "cell a needs gone, which is no cell above it"),
    ],
)
def test_needs_that_are_not_said_are_an_error_with_the_command(made, words, path, command):
    with pytest.raises(ValueError, match=re.escape(f"{path}: {words}: {command}")):
        site.page_cells(new_notebook(cells=made), path)


def test_what_cells_need_is_noted_and_of_which_sources(tmp_path):
    made = new_notebook(cells=[
        code("i", "install()", ["install"], needs=None),
        code("t", "import math\nx = math.pi.real + len('a')", ["training"], needs="gone", random=[0, 1]),
        code("b", "y = math.e", needs=None),
        new_markdown_cell("text", id="m"),
        code("c", "1 / (x - y)", ["raises-exception"], needs="b"),
        code("d", "x, 1 / 0", ["raises-exception"], needs="b"),
    ])  # fmt: skip
    sources = [cell.source for cell in made.cells]
    site.note_needs(made, tmp_path)
    assert [cell.metadata.get("course") for cell in made.cells] == [
        {},
        {"needs": "t-names", "needs-names": "", "random": [0, 1]},
        {"needs": "t-names"},
        None,
        {"needs": "t b"},
        {"needs": "t"},
    ]
    assert [cell.source for cell in made.cells] == sources
    assert site.page_cells(made)[-1]["needs"] == ["t-names", "t"]
    assert made.metadata["needs_of"] == site.stamp(made)
    nbformat.validate(made)


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (lambda n: n.cells[0].update(source="x = 2"), True),
        (lambda n: n.cells[0].update(id="b"), True),
        (lambda n: n.cells[0].metadata.update(tags=["training"]), True),  # a page takes it apart
        (lambda n: n.cells.append(code("c", "1")), True),
        (lambda n: n.cells.append(new_markdown_cell("1")), False),
        (lambda n: n.cells[0].update(execution_count=3), False),
        (lambda n: n.cells[0].metadata.update(tags=["predict"]), False),
    ],
)
def test_a_change_of_what_is_run_changes_the_stamp(change, changed):
    made = new_notebook(cells=[code("a", "x = 1")])
    before = site.stamp(made)
    change(made)
    assert (site.stamp(made) != before) == changed


def test_an_archive_is_the_same_for_the_same_files():
    files = [("b", b"two"), ("a/c", b"one")]
    packed = site.archive(files)
    assert packed == site.archive(reversed(files))
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as tar:
        assert {entry.name: tar.extractfile(entry).read() for entry in tar} == dict(files)


@pytest.fixture
def packages(tmp_path):
    """A stand-in for npm's node_modules."""
    pyodide = tmp_path / "node_modules" / "pyodide"
    pyodide.mkdir(parents=True)
    for name in (*site.CORE, "pyodide.mjs"):
        (pyodide / name).write_bytes(name.encode())
    (pyodide / "pyodide-lock.json").write_text('{"info": {"python": "3.12"}, "packages": {"numpy": {}}}')
    numpy = tmp_path / "node_modules" / site.NUMPY
    numpy.mkdir(parents=True)
    inside = "lib/python3.12/site-packages/numpy/"
    compiled = (f"_core/{name}.cpython-312.so" for name in ("_simd", "_multiarray_tests"))
    names = ("__init__.py", "tests/test_a.py", "_core/a.so", *compiled)
    packed = site.archive([*((inside + name, b"x") for name in names), ("info/index.json", b"x")])
    (numpy / "numpy.tar.gz").write_bytes(packed)
    return tmp_path / "node_modules"


def names_in(path: Path) -> set[str]:
    """The files in an archive."""
    with tarfile.open(path) as tar:
        return set(tar.getnames())


def test_everything_is_put_where_the_worker_looks_and_nothing_old_is_left(packages, tmp_path, monkeypatch):
    said = site.assemble(tmp_path / "html", packages)
    run = tmp_path / "html" / "_static" / "python"
    assert json.loads((run / "site.json").read_text()) == said
    every = [*said["core"].values(), *said["archives"].values(), *said["data"].values()]
    assert all((run / one["path"]).stat().st_size == one["bytes"] for one in every)
    assert said["bytes"] == sum(one["bytes"] for one in (*said["core"].values(), *said["archives"].values()))
    for name in ("worker.js", "page_python.js", "core/pyodide.mjs", "core/pyodide-lock.json"):
        assert (run / name).exists(), name
    cells = json.loads((run / "cells" / "exercises" / "one_head.json").read_text())
    assert cells["page"] == "exercises/one_head"
    found = names_in(run / said["archives"]["packages"]["path"])
    assert {"numpy/__init__.py", "numpy/_core/_multiarray_tests.cpython-312.so"} <= found
    plain = "safetensors/numpy.py threadpoolctl.py tqdm/__init__.py page_numpy.py page_kernel.py"
    assert set(plain.split()) <= found
    assert not any("test_a" in name or "_simd" in name for name in found)
    found = names_in(run / said["archives"]["course"]["path"])
    course = "minigrad/__init__.py book/bert_course/stored.py book/bert_course/chapters/errata.toml"
    assert set(course.split()) <= found
    assert not any("/make/" in name or "__pycache__" in name for name in found)
    assert "minigrad/bert/trained/vocab.txt" in names_in(run / said["data"]["start"]["path"])

    (run / "ours.js").write_text("of the pages")
    (packages / "pyodide" / "python_stdlib.zip").write_text("a newer one")
    monkeypatch.setattr(site, "stored_archives", list)
    assert site.assemble(tmp_path / "html", packages)["version"] != said["version"]
    assert len(list((run / "core").glob("python_stdlib.zip.*"))) == 1, "something old is left"
    assert len(list((run / "archives").iterdir())) == 2
    assert (run / "ours.js").exists()


def test_too_many_bytes_are_an_error(packages, tmp_path, monkeypatch):
    monkeypatch.setattr(site, "MOST_BYTES", 1000)
    monkeypatch.setattr(site, "stored_archives", list)
    with pytest.raises(ValueError, match="bytes before the first cell; at most 1,000"):
        site.assemble(tmp_path / "html", packages)


def test_missing_packages_are_named(packages, tmp_path):
    (packages / site.NUMPY / "numpy.tar.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"expected one .tar.gz in .*, found 0: run make site"):
        site.assemble(tmp_path / "html", packages)


def test_each_cell_of_the_own_bert_runs_in_its_page():
    notebook = nbformat.read(site.ROOT / "exercises" / "encoder.ipynb", as_version=4)
    assert [cell["id"] for cell in site.page_cells(notebook) if cell["runs"] is not True] == []
