"""The repository's address in one step: every file that hangs on it, and the cell that installs the course."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
notebooks = pytest.importorskip("book.make.notebooks", reason="nbclient is not installed (as nbformat)")

from book.make import publish  # noqa: E402

pytestmark = pytest.mark.no_arrays

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "https://github.com/Someone/course"
TEXTS = ("_config.yml", *publish.FILES)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course with one chapter, in this process's folder."""
    for folder in ("book", "solutions", "exercises"):
        (tmp_path / folder).mkdir()
        shutil.copy(ROOT / folder / "one_head.ipynb", tmp_path / folder)
    for name in TEXTS:
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    text = (tmp_path / "_config.yml").read_text(encoding="utf-8")
    (tmp_path / "_config.yml").write_text(re.sub(r"  url: .*", '  url: ""', text), encoding="utf-8")
    publish.put(tmp_path, "")  # this copy of the course may have an address
    return tmp_path


def everything(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes().strip() for path in root.rglob("*") if path.is_file()
    }


def test_every_file_is_as_the_settings_say(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert publish.main(["--dry-run"]) == 0
    assert capsys.readouterr().out == "every file is as _config.yml says\n"


def test_one_step_and_back(root: Path, capsys):
    before = everything(root)
    assert publish.main(["Someone/course", "--dry-run"]) == 0
    told = re.findall("would change: (.*)", capsys.readouterr().out)
    assert everything(root) == before
    assert publish.main(["Someone/course"]) == 0
    out = capsys.readouterr().out
    assert re.findall("changed: (.*)", out) == told
    assert f"{ADDRESS}/settings" in out
    assert "https://someone.github.io/course/" in out
    after = everything(root)
    assert {name for name in before if before[name] != after[name]} == set(told) == set(before)
    assert publish.main(["--dry-run"]) == 0
    assert capsys.readouterr().out == "every file is as _config.yml says\n"
    assert notebooks.main(["exercises", "--check"]) == 0
    # Back: no address, nothing of it.
    text = (root / "_config.yml").read_text(encoding="utf-8")
    (root / "_config.yml").write_text(text.replace(f'url: "{ADDRESS}"', 'url: ""'), encoding="utf-8")
    assert publish.main([]) == 0
    assert everything(root) == before


def test_what_each_file_says(root: Path):
    publish.main([ADDRESS + ".git"])  # an address is as good as OWNER/NAME
    for name in ("pyproject.toml", "book/pyproject.toml"):
        assert tomllib.loads((root / name).read_text("utf-8"))["project"]["urls"] == {"Repository": ADDRESS}
    cited = yaml.safe_load((root / "CITATION.cff").read_text("utf-8"))
    assert (cited["repository-code"], cited["url"]) == (ADDRESS, "https://someone.github.io/course/")
    readme = (root / "README.md").read_text("utf-8")
    pictures = re.findall(r'(?:src|srcset)="(.*?)"', readme)
    assert len(pictures) == 2
    for one in pictures:
        assert one.startswith(f"{ADDRESS}/raw/main/book/")
        assert (ROOT / one.removeprefix(f"{ADDRESS}/raw/main/")).is_file()
    assert "(https://someone.github.io/course/)" in readme
    assert f"\ngit clone {ADDRESS} && cd course\n" in readme
    assert publish.repository_url(root / "_config.yml") == ADDRESS
    for folder in ("book", "solutions", "exercises"):
        cells = notebooks.read(root / folder / "one_head.ipynb").cells
        first = next(cell for cell in cells if cell.cell_type == "code")
        assert {"remove-cell", "nbval-skip", "install"} <= set(first.metadata.tags)


@pytest.mark.parametrize(
    "text", ["", "ada", "ada/", "/bert", "a/b/c", "https://gitlab.com/a/b", "a b/c", "ada/é"]
)
def test_what_is_no_repository_is_refused(text: str, root: Path, capsys):
    before = everything(root)
    with pytest.raises(SystemExit):
        publish.main([text])
    assert "OWNER/NAME, such as" in capsys.readouterr().err
    assert everything(root) == before


def test_settings_without_the_line_are_refused(root: Path, capsys):
    (root / "_config.yml").write_text('title: x\nother:\n  url: "no"\n', encoding="utf-8")
    assert publish.main(["a/b"]) == 1
    assert "has no repository.url" in capsys.readouterr().err


# --- The cell --------------------------------------------------------------------------------------------

LIBRARY, COURSE = "minigrad_bert-0.2.0-py3-none-any.whl", "bert_from_nothing-0.2.0-py3-none-any.whl"


def installs(
    address: str, monkeypatch: pytest.MonkeyPatch, there: bool = False, gpu: bool = False
) -> list[str]:
    """What the cell hands to %pip. there: the course is installed. gpu: the machine has NVIDIA's driver."""
    asked: list[str] = []

    class Shell:
        def run_line_magic(self, name: str, line: str) -> None:
            assert name == "pip"
            asked.append(line)

    exists = Path.exists
    monkeypatch.setattr(
        Path, "exists", lambda self: gpu if self == Path("/proc/driver/nvidia") else exists(self)
    )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if there else None)
    scope: dict[str, Any] = {"get_ipython": Shell}
    exec(compile(publish.install_cell(address).source, "cell", "exec"), scope)
    return asked


def test_the_cell_takes_wheels_that_lie_beside_it(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MINIGRAD_BACKEND", raising=False)
    for name in (LIBRARY, COURSE, "other-1.0-py3-none-any.whl"):
        (tmp_path / name).touch()
    for address in ("", ADDRESS):
        assert installs(address, monkeypatch) == [
            f"install -q '{LIBRARY}'",
            f"install -q --no-deps '{COURSE}'",
        ]
    assert "MINIGRAD_BACKEND" not in os.environ


def test_the_cell_takes_the_repository_where_no_wheel_is(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    library, course = installs(ADDRESS, monkeypatch)
    assert library == f"install -q 'minigrad-bert @ git+{ADDRESS}'"
    assert course == f"install -q --no-deps 'bert-from-nothing @ git+{ADDRESS}#subdirectory=book'"
    with pytest.raises(FileNotFoundError, match="two wheels"):
        installs("", monkeypatch)
    (tmp_path / LIBRARY).touch()
    with pytest.raises(FileNotFoundError, match="two wheels"):
        installs("", monkeypatch)


def test_the_cell_uses_a_gpu(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINIGRAD_BACKEND", "")
    monkeypatch.delenv("MINIGRAD_BACKEND")
    for name in (LIBRARY, COURSE):
        (tmp_path / name).touch()
    assert installs("", monkeypatch, gpu=True)[0] == f"install -q '{LIBRARY}[cuda12x]'"
    assert os.environ["MINIGRAD_BACKEND"] == "cupy"


def test_the_cell_does_nothing_where_the_course_is(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert installs("", monkeypatch, there=True) == []


def test_the_cell_is_not_run_by_the_tools(tmp_path: Path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print(1 + 1)")])
    assert publish.put_install_cell(notebook, ADDRESS)
    notebook.cells[0].source = "raise ValueError"
    notebooks.run(notebook, tmp_path)
    assert notebook.cells[0].execution_count is None
    assert (notebook.cells[1].execution_count, notebook.cells[1].outputs[0].text) == (1, "2\n")
