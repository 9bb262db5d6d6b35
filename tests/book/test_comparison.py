"""What `pytest --nbval` takes for the same output, and what it does not: the comparison in the root's conftest.py."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from building import ROOT

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
notebooks = pytest.importorskip("book.make.notebooks", reason="nbclient is not installed (as nbformat)")
pytest.importorskip("nbval", reason="nbval is not installed")

from book.make.pages_check import root_conftest  # noqa: E402

pytestmark = pytest.mark.no_arrays

Output, tolerances = root_conftest.Output, root_conftest.tolerances

# conftest.py, copied elsewhere, still asks the authors' tools which exercises hold answers.
BESIDE_THE_COURSE = {**os.environ, "PYTHONPATH": str(ROOT)}


# --- The comparison itself ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1e-7", "1.000001e-07"),
        ("-0.5 and 2.", "-0.5000001 and 2.0000001"),
        ("[[ 1.  10.5]]", "[[1. 10.5]]"),
        ("0.0", "-0.0"),
        ("0.0", "1e-12"),
        ("nan", "nan"),
    ],
)
def test_rounding_is_no_difference(one: str, other: str):
    assert Output(one) == Output(other)
    assert not Output(one).__ne__(Output(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("loss 1.2345", "loss 1.2357"),
        ("loss 1.5", "loss -1.5"),
        ("0.001", "0.001001"),
        ("(3, 4)", "(4, 3)"),
        ("1.0 nats", "1.0 bits"),
        ("1.0", "1"),
        ("1.0 2.0", "1.0"),
        ("1.0 2.0", "2.0 1.0"),
        ("version 3.11.7", "version 3.11.8"),
        ("nan", "1.0"),
        ("1e5", "1e6"),
        ("", "1.0"),
    ],
)
def test_all_else_is(one: str, other: str):
    assert Output(one) != Output(other)
    assert not Output(one).__eq__(Output(other))


def test_a_cell_says_how_close():
    assert Output("1.000", **tolerances({"tags": ["rtol=1e-2"]})) == Output("1.001")
    assert Output("1.000", **tolerances({"tags": ["atol=0.01"]})) == Output("1.001")
    assert Output("1.000", **tolerances({"tags": ["hide-input"]})) != Output("1.001")
    with pytest.raises(ValueError, match="much"):
        tolerances({"tags": ["rtol=much"]})


# --- End to end --------------------------------------------------------------------------------------------


def by_nbval(folder: Path, *paths: str) -> list[str]:
    """What nbval says of each cell of notebooks in a folder: PASSED, FAILED or SKIPPED."""
    shutil.copy(ROOT / "conftest.py", folder)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "--color=no", "--tb=no"]
    done = subprocess.run(
        [*command, "--nbval", "--nbval-current-env", *paths],
        cwd=folder,
        env=BESIDE_THE_COURSE,
        capture_output=True,
        text=True,
    )
    found = re.findall(r"ipynb::Cell \d+ (\w+)", done.stdout)
    assert found, done.stdout
    return found


def test_nbval_compares_in_this_way(tmp_path: Path):
    """Each cell with another of its stored outputs changed."""
    source = "print(12345, 0.12345678)\n1.5"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for _ in range(7)])
    notebooks.run(notebook, tmp_path)
    same, rounded, tagged, integer, third_digit, result, missing = notebook.cells
    for cell, text in (
        (rounded, "12345 0.12345679\n"),
        (tagged, "12345 0.12358\n"),
        (integer, "12346 0.12345678\n"),
        (third_digit, "12345 0.12358\n"),
    ):
        cell.outputs[0].text = text
    tagged.metadata["tags"] = ["rtol=1e-2"]
    result.outputs[1].data["text/plain"] = "1.6"
    missing.outputs.pop()
    notebooks.write(tmp_path / "changed.ipynb", notebook)
    assert same.outputs[0].text == "12345 0.12345678\n"
    assert by_nbval(tmp_path, "changed.ipynb") == ["PASSED"] * 3 + ["FAILED"] * 4


def test_an_exercise_that_somebody_has_solved_is_left_out(tmp_path: Path):
    """And one that holds no answers is compared: its stored output is not what it puts out."""
    source = "def f(x):\n    ### BEGIN SOLUTION\n    return 3 * x\n    ### END SOLUTION\nprint(f(2))"
    solution = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    (tmp_path / "exercises").mkdir()
    for name, answer in (("open", "..."), ("solved", "return 2 * x")):
        exercise = notebooks.make_exercise(solution)
        exercise.cells[0].source = exercise.cells[0].source.replace("...", answer)
        exercise.cells[0].outputs = [nbformat.v4.new_output("stream", name="stdout", text="another\n")]
        notebooks.write(tmp_path / "exercises" / f"{name}.ipynb", exercise)
    assert by_nbval(tmp_path, "exercises") == ["FAILED", "SKIPPED"]


# --- Outputs that did not come from nbval ------------------------------------------------------------------


def printed(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def shown(**data: str) -> dict[str, Any]:
    return {
        "output_type": "execute_result",
        "data": {kind.replace("_", "/"): text for kind, text in data.items()},
    }


@pytest.mark.parametrize(
    ("stored", "fresh", "tags"),
    [
        ([], [], []),
        ([printed("a\nb\n")], [printed("a\n"), printed("b\n")], []),
        ([printed("0.5\n")], [printed("0.6\n")], ["atol=0.11"]),
        ([printed("0.5\n")], [printed("0.6\n")], ["nbval-ignore-output"]),
        ([shown(text_plain="1", image_png="a")], [shown(text_plain="1", image_png="b")], []),
        ([printed("a"), shown(text_plain="1")], [shown(text_plain="1"), printed("a")], []),
    ],
)
def test_outputs_that_are_the_same(stored, fresh, tags):
    assert root_conftest.differences(stored, fresh, {"tags": tags}) == []


@pytest.mark.parametrize(
    ("stored", "fresh", "where"),
    [
        ([printed("a")], [], "stdout"),
        ([], [printed("a", "stderr")], "stderr"),
        ([printed("0.5\n")], [printed("0.6\n")], "stdout"),
        ([shown(text_plain="1")], [shown(text_plain="1", text_html="<b>1</b>")], "text/html"),
        ([shown(text_plain="1")], [shown(text_plain="1"), shown(text_plain="1")], "text/plain"),
        ([], [{"output_type": "error", "ename": "E", "evalue": "x"}], "error"),
    ],
)
def test_outputs_that_differ(stored, fresh, where):
    (line,) = root_conftest.differences(stored, fresh, {})
    assert line.startswith(f"{where}: stored ")


def test_a_difference_is_told_by_the_lines_that_differ():
    one = [{"output_type": "stream", "name": "stdout", "text": "same\n1.0\nb\n"}]
    other = [{"output_type": "stream", "name": "stdout", "text": "same\n1.0000001\nc\n"}]
    assert root_conftest.differences(one, other, {}) == ["stdout: stored 'b', now 'c'"]
    text = "".join(f"{k}\n" for k in range(5))
    many = [{"output_type": "stream", "name": "stdout", "text": text}]
    (line,) = root_conftest.differences(many, [], {})
    assert line == "stdout: stored '0', now ''; stored '1', now ''; stored '2', now ''; and 2 lines more"


# --- The tolerances of the course's notebooks ----------------------------------------------------------------


def too_wide(cell: Any) -> list[str]:
    """Printed columns of a cell whose tolerance lets half of any number pass, or 0 for all of them. Rounding errors,
    which are written with an exponent, may be anything below it."""
    asked, rows = tolerances(cell.metadata), {}  # rows with as many floats are a table
    outputs = root_conftest.by_kind(cell.outputs)
    for text in [*outputs.get("stdout", []), *outputs.get("text/plain", [])]:
        for row in map(root_conftest._FLOAT.findall, text.split("\n")):
            rows.setdefault(len(row), []).append(row)
    return [
        ", ".join(column)
        for column in (column for table in rows.values() for column in zip(*table, strict=True))
        if asked.get("rtol", 0) >= 0.5
        or ("e" not in "".join(column) and 0 < max(abs(float(x)) for x in column) <= asked.get("atol", 0))
    ]


@pytest.mark.parametrize(
    "path",
    [*sorted(ROOT.glob("book/*.ipynb")), *sorted(ROOT.glob("solutions/*.ipynb"))],
    ids=lambda path: f"{path.parent.name}/{path.stem}",
)
def test_no_tolerance_is_as_wide_as_what_it_compares(path: Path):
    if "tol=" not in path.read_text("utf-8"):
        return
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert {cell.id: found for cell in cells if (found := too_wide(cell))} == {}


@pytest.mark.parametrize(
    ("printed", "tag", "columns"),
    [
        ("a 75.2 0.98\nb 71.6 0.90\n", "atol=1.0", ["0.98, 0.90"]),
        ("a 75.2 0.98\nb 71.6 0.90\n", "rtol=0.02", []),
        ("10.5\n", "rtol=0.95", ["10.5"]),
        ("apart by 2e-07\n", "atol=3e-6", []),
        ("0.00\n", "atol=0.1", []),
    ],
)
def test_a_tolerance_that_is_too_wide_is_found(printed: str, tag: str, columns: list[str]):
    output = nbformat.v4.new_output("stream", name="stdout", text=printed)
    assert too_wide(nbformat.v4.new_code_cell("", outputs=[output], metadata={"tags": [tag]})) == columns


# --- Kernels ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("deaths", [0, 1, 2])
def test_a_kernel_that_dies_at_once_is_started_again_once(monkeypatch, deaths):
    from nbval import kernel

    calls: list[Any] = []

    def start(name: str) -> str:
        calls.append(name)
        if len(calls) <= deaths:
            raise RuntimeError("Kernel died before replying to kernel_info")
        return "a kernel"

    monkeypatch.setattr(kernel, "start_new_kernel", start)
    root_conftest.start_kernels_twice()
    if deaths == 2:
        with pytest.raises(RuntimeError, match="Kernel died"):
            kernel.start_new_kernel("python")
    else:
        assert kernel.start_new_kernel("python") == "a kernel"
    assert calls == ["python"] * min(2, deaths + 1)


def drawn(*words: str) -> str:
    """A figure of the course with these words in it."""
    texts = "".join(f'<text x="1.25">{word}</text>' for word in words)
    return f'<div class="course-figure"><svg class="course-drawing" height="3">{texts}</svg></div>'


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (("loss", "2.5", "5.0"), True),
        (("2.5", "loss", "5.0"), True),  # another library draws the axis first
        (("loss", "2.5000001", "5.0"), True),
        (("loss", "2.6", "5.0"), False),
        (("losses", "2.5", "5.0"), False),
        (("loss", "2.5"), False),
    ],
)
def test_of_a_drawing_the_words_count(words: tuple[str, ...], same: bool):
    stored, now = ([shown(text_html=drawn(*one))] for one in (("loss", "2.5", "5.0"), words))
    assert (root_conftest.differences(stored, now, {}) == []) is same


def test_in_pages_where_another_library_draws_pictures_are_left_out():
    stored, now = ([shown(text_html=drawn(*one))] for one in (("loss", "2.5"), ("loss", "2")))
    assert root_conftest.differences(stored, now, {}, pictures=False) == []
    assert root_conftest.differences(stored, now, {}) != []
