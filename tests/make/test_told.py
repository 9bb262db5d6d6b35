"""What a rewritten page lost: numbers that nothing on it holds any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
from nbformat import v4  # noqa: E402

from book._make import told  # noqa: E402

pytestmark = pytest.mark.no_arrays


def page(prose: str, printed: str = "", claims: str = "") -> Any:
    """A page with a sentence, a cell that prints, and a hidden cell."""
    shown = v4.new_code_cell("x", outputs=[v4.new_output("stream", text=printed)])
    hidden = v4.new_code_cell(claims, metadata={"tags": ["claims", "remove-cell"]})
    return v4.new_notebook(cells=[v4.new_markdown_cell(prose), shown, hidden])


BEFORE = page("It rises to 1,024 steps in 2019, twice.", "loss 0.767 (0.751 to 0.802)\nlayers 3")


@pytest.mark.parametrize(
    ("now", "lost"),
    [
        (BEFORE, []),
        (page("In 1,024 steps.", "0.767 0.751 0.802"), []),
        (page("", "0.77, 0.75 to 0.80, after 1024"), []),  # rounded
        (page("", "", "assert abs(loss - 0.767) < 0.01 and low > 0.751 and high < 0.802 and n == 1024"), []),
        (page("In 1,024 steps to 0.77."), ["0.751", "0.802"]),
        (page(""), ["1024", "0.767", "0.751", "0.802"]),
    ],
)
def test_what_is_gone(now: Any, lost: list[str]):
    assert [number for numbers in told.gone(BEFORE, now).values() for number in numbers] == lost


def test_assertions_and_seeds_are_counted():
    notebook = page("", "", "assert a\nassert b")
    notebook.cells[1].source = "rng = np.random.default_rng(7)\nrandom.manual_seed(3)"
    assert told.asserts(notebook) == 2
    assert told.seeds(notebook) == ["7", "3"]


def test_it_reports_on_a_chapter(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    now = nbformat.read(told.CHAPTER.format(name="one_head"), as_version=4)
    monkeypatch.setattr(told, "at", lambda commit, name: page("It was 12,345."))
    assert told.main(["HEAD", "one_head"]) == 0
    first, line = capsys.readouterr().out.splitlines()
    assert (
        first
        == f"one_head: 0 assertions, now {told.asserts(now)}; seeds 0, now {len(told.seeds(now))}; 1 numbers gone"
    )
    assert line.strip() == "It was 12,345."


def test_it_reports_on_all_that_are_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        told, "at", lambda commit, name: nbformat.read(told.CHAPTER.format(name=name), as_version=4)
    )
    assert told.main(["HEAD"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(list(Path("book").glob("*.ipynb")))
    assert all(line.endswith("; 0 numbers gone") for line in lines)
