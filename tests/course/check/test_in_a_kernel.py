"""A check in a notebook: its HTML, a cell that failed and left the old function in place, a long wait."""

from __future__ import annotations

import pytest

pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
pytest.importorskip("nbclient", reason="nbclient is not installed (as nbformat)")
pytest.importorskip("ipykernel", reason="ipykernel is not installed (as nbformat)")
pytest.importorskip("babel", reason="babel is not installed (it comes with Sphinx)")

from nbformat.v4 import new_code_cell, new_notebook

from bert_course.check import cells
from book.make import lab, notebooks
from book.site.python.packages import page_kernel

pytestmark = pytest.mark.no_arrays

WRONG = "def attend(q, k, v):\n    return np.exp(q @ k.T) @ v"
RIGHT = """def attend(q, k, v):
    s = q @ k.T / q.shape[-1] ** 0.5
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v"""
FAILS = "raises-exception"
SOURCES = [
    (
        "import time\nimport numpy as np\nfrom bert_course import check\nfrom bert_course.check import watch",
        "",
    ),
    (WRONG, ""),
    ("check.attend(attend)", ""),
    ("def attend(q:\n    return q", FAILS),
    ("check.attend(attend)", ""),
    ("1 / 0\n\nattend = lambda q, k, v: v", FAILS),
    ("check.attend(attend)\nprint('after')", ""),
    (RIGHT, ""),
    ("def another(x:", FAILS),
    ("check.attend(attend)", ""),
    (RIGHT + "\n1 / 0", FAILS),
    ("check.attend(attend)", ""),
    ("watch.PATIENCE = 0.05\ndef attend(q, k, v):\n    time.sleep(0.3 * (k.shape == (4, 4)))", ""),
    ("check.attend(attend)", ""),
    ("check.progress(7)", ""),
    ("check.attend.hint()\ncheck.attend.solution()", ""),
    ("def heads_of_batch(x, h):\n    ...\ncheck.heads_of_batch(heads_of_batch)", ""),
    ("check.pool(pool)", FAILS),
    ("print(pool)", FAILS),
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
    assert text.startswith("attend: not yet. 0 of 5 cases are right. ")
    assert "On 3 queries, 5 keys" in text
    assert "Looking for the mistake" not in text + markup  # as it was shown first
    assert '<div class="course-check course-colours is-wrong">' in markup


@pytest.mark.numpy_only("answers are written in NumPy")
@pytest.mark.parametrize("watched", [True, False])
def test_a_page_shows_the_values_before_the_search(watched, monkeypatch):
    monkeypatch.setenv("MINIGRAD_PROGRESS", "off")
    outputs = []
    kernel = page_kernel.Kernel(outputs.append, slices=watched)
    kernel.run("import numpy as np\nfrom bert_course import check\n" + WRONG + "\ncheck.attend(attend)")
    texts = [(one["output_type"], one["data"]["text/html"]) for one in outputs]
    kinds = ["display_data", "update_display_data"] if watched else ["display_data"]
    assert [kind for kind, _ in texts] == kinds
    assert ["Looking for the mistake" in text for _, text in texts] == [True, False][-len(kinds) :]
    assert all("On 3 queries, 5 keys" in text for _, text in texts)


def test_a_cell_with_a_syntax_error_is_named(ran):
    text, markup = shown(ran[5])
    words = (
        "You are checking the function of cell [2]. Cell [4], which defines it anew, failed (SyntaxError): mend it, "
        "run it, then check again."
    )
    assert text.startswith(f"{words} attend: not yet.")
    assert words in markup


def test_any_cell_that_failed_before_its_definition_is_named(ran):
    assert shown(ran[7])[0].startswith("You are checking the function of cell [2]. Cell [6]")


def test_a_check_need_not_be_the_last_line(ran):
    assert [output.output_type for output in ran[7]] == ["display_data", "stream"]


@pytest.mark.parametrize("cell", [10, 12])
def test_a_function_that_is_newer_than_what_failed_is_not_doubted(cell, ran):
    """Of another name, failed before it, or in the same cell after its definition."""
    assert shown(ran[cell])[0].startswith("attend: right.")


def test_a_long_wait_is_told_while_it_lasts(ran):
    (stream,) = [output for output in ran[14] if output.output_type == "stream"]
    assert (
        stream.text == "attend: still at case 2 of 5, n = m = d_k = d_v = 4. Interrupt the kernel to stop.\n"
    )


def test_progress_is_a_table_of_what_this_notebook_did(ran):
    text, markup = shown(ran[15])
    assert text.startswith("1 of 5 solved exercise chapter")
    assert "attend 7 1 10 solved, 6 attempts" in text
    assert "<table>" in markup


def test_the_solution_is_shown_as_a_listing(ran):
    hint, solution = ran[16]
    assert hint.data["text/plain"].startswith("Hint 1 of")
    assert "```python\ndef attend(q, k, v):" in solution.data["text/markdown"]


def test_an_empty_answer_is_one_friendly_line(ran):
    text, markup = shown(ran[17])
    assert (
        text == "heads_of_batch: not attempted yet: replace the `...` above, run that cell, then check again"
    )
    assert "is-note" in markup


def test_a_check_without_its_answer_says_what_to_run(ran):
    """As after a restart."""
    assert [output.output_type for output in ran[18]] == ["error", "display_data"]
    assert shown(ran[18])[0].startswith(
        "Nothing to check: pool has no value in this kernel: run the cell above,"
    )
    assert [output.output_type for output in ran[19]] == ["error"]


def test_a_kernel_of_make_lab_knows_the_checks_from_its_start(tmp_path, monkeypatch):
    """There not even the page's first cell has been run."""
    monkeypatch.setenv("PYTHONSTARTUP", lab.KERNEL_START)
    made = new_notebook(cells=[new_code_cell("check.pool(pool)", metadata={"tags": [FAILS]})])
    notebooks.run(made, tmp_path)
    assert shown(made.cells[0].outputs)[0].startswith("Nothing to check: pool has no value in this kernel")


def test_without_ipython_there_is_nothing_to_say(monkeypatch):
    monkeypatch.setattr(cells, "_shell", lambda: None)
    cells.remember_failures(print)
    assert cells.failed_since(test_without_ipython_there_is_nothing_to_say) is None
