"""A check in a notebook: its HTML, a cell that failed and left the old function in place, a long wait."""

from __future__ import annotations

import pytest

pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
pytest.importorskip("nbclient", reason="nbclient is not installed (as nbformat)")
pytest.importorskip("ipykernel", reason="ipykernel is not installed (as nbformat)")

from nbformat.v4 import new_code_cell, new_notebook

from minigrad.course.authoring import notebooks
from minigrad.course.check import cells

pytestmark = pytest.mark.no_arrays

WRONG = "def softmax(x):\n    return np.exp(x)"
RIGHT = """def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)"""
FAILS = "raises-exception"
SOURCES = [
    (
        "import time\nimport numpy as np\nfrom minigrad.course import check\nfrom minigrad.course.check import watch",
        "",
    ),
    (WRONG, ""),
    ("check.softmax(softmax)", ""),
    ("def softmax(x:\n    return x", FAILS),
    ("check.softmax(softmax)", ""),
    ("1 / 0\n\nsoftmax = lambda x: x", FAILS),
    ("check.softmax(softmax)\nprint('after')", ""),
    (RIGHT, ""),
    ("def another(x:", FAILS),
    ("check.softmax(softmax)", ""),
    (RIGHT + "\n1 / 0", FAILS),
    ("check.softmax(softmax)", ""),
    ("watch.PATIENCE = 0.05\ndef softmax(x):\n    time.sleep(0.3 * (x.shape == (4, 4)))", ""),
    ("check.softmax(softmax)", ""),
    ("check.progress(7)", ""),
    ("check.softmax.hint()\ncheck.softmax.solution()", ""),
    ("def split_heads(x, h):\n    ...\ncheck.split_heads(split_heads)", ""),
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The outputs of each cell of SOURCES, from 1."""
    made = new_notebook(
        cells=[new_code_cell(source, metadata={"tags": [tag]} if tag else {}) for source, tag in SOURCES]
    )
    notebooks.run(made, tmp_path_factory.mktemp("ran"))
    return [[], *(cell.outputs for cell in made.cells)]


def shown(outputs):
    """The text and the HTML of the one thing that is displayed."""
    (data,) = [output.data for output in outputs if output.output_type == "display_data"]
    return " ".join(data["text/plain"].split()), data["text/html"]


def test_a_check_shows_text_and_html(ran):
    text, markup = shown(ran[3])
    assert text.startswith("softmax: not yet. 0 of 8 cases are right. On a (3, 5) array")
    assert '<div class="course-check course-colours is-wrong">' in markup


def test_a_cell_with_a_syntax_error_is_named(ran):
    text, markup = shown(ran[5])
    words = (
        "You are checking the function of cell [2]. Cell [4], which defines it anew, failed (SyntaxError): mend it, "
        "run it, then check again."
    )
    assert text.startswith(f"{words} softmax: not yet.")
    assert words in markup


def test_any_cell_that_failed_before_its_definition_is_named(ran):
    assert shown(ran[7])[0].startswith("You are checking the function of cell [2]. Cell [6]")


def test_a_check_need_not_be_the_last_line(ran):
    assert [output.output_type for output in ran[7]] == ["display_data", "stream"]


@pytest.mark.parametrize("cell", [10, 12])
def test_a_function_that_is_newer_than_what_failed_is_not_doubted(cell, ran):
    """Of another name, failed before it, or in the same cell after its definition."""
    assert shown(ran[cell])[0].startswith("softmax: right.")


def test_a_long_wait_is_told_while_it_lasts(ran):
    (stream,) = [output for output in ran[14] if output.output_type == "stream"]
    assert stream.text == "softmax: still at case 3 of 8, a square (4, 4). Interrupt the kernel to stop.\n"


def test_progress_is_a_table_of_what_this_notebook_did(ran):
    text, markup = shown(ran[15])
    assert text.startswith("1 of 4 solved exercise chapter")
    assert "softmax 7 1 8 solved, 6 attempts" in text
    assert "<table>" in markup


def test_the_solution_is_shown_as_a_listing(ran):
    hint, solution = ran[16]
    assert hint.data["text/plain"].startswith("Hint 1 of")
    assert "```python\ndef softmax(x):" in solution.data["text/markdown"]


def test_an_empty_answer_is_one_friendly_line(ran):
    text, markup = shown(ran[17])
    assert text == "split_heads: not attempted yet: replace the `...` above, run that cell, then this one"
    assert "is-note" in markup


def test_without_ipython_there_is_nothing_to_say(monkeypatch):
    monkeypatch.setattr(cells, "_shell", lambda: None)
    cells.remember_failures()
    assert cells.failed_since(test_without_ipython_there_is_nothing_to_say) is None
