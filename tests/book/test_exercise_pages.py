"""The exercises as pages of a site whose cells run: answers are open editors, checks are buttons, progress is kept.

Python is a stand-in here (fake_worker.js), which takes an answer for right if it says so.
"""

from __future__ import annotations

import ast
import json
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from building import ROOT
from test_running_cells import cell

from bert_course.check.differences import Differing
from bert_course.check.report import Report, Values
from browsers import wait_for

pytestmark = pytest.mark.no_arrays

PAGE = "exercises/arrays"


def answer(page: Any, name: str, text: str) -> None:
    """Type an answer and press the button below it."""
    field = cell(page, f"answer{name}").locator("textarea")
    field.press("Control+A")
    page.keyboard.insert_text(text)
    cell(page, f"check{name}").get_by_role("button", name="Check").click()
    cell(page, f"check{name}").locator(".course-check").wait_for(timeout=5000)


def verdict(page: Any, name: str) -> str:
    """What the check says."""
    return cell(page, f"check{name}").locator(".course-check p").first.inner_text()


def test_an_answer_is_an_open_editor_and_its_check_a_button(runner: Any):
    page = runner(PAGE)
    assert page.locator("textarea").count() == 2
    names = [one.get_attribute("aria-label") for one in page.locator("textarea").all()]
    assert names == ["Your answer to 1. The first one", "Your answer to 2. The second"]
    assert page.get_by_role("button", name="Check one").is_visible()
    assert not cell(page, "check1").locator(".cell_input").is_visible()
    assert page.evaluate("document.activeElement === document.body"), "the page took the focus"
    text = page.locator("article").inner_text()
    for words in ("not attempted", "stored progress", "run the cell", "pip install"):
        assert words not in text
    assert "press Check below it" in text
    assert "All arrays are NumPy’s." in text


def test_a_wrong_answer_gets_hints_and_a_right_one_is_remembered(runner: Any):
    page = runner(PAGE)
    answer(page, "1", "def one(x):\n    return 2")
    assert verdict(page, "1") == "wrong"
    cell(page, "check1").locator("summary").click()
    assert cell(page, "check1").get_by_text("A hint.").is_visible()
    assert page.evaluate("course.recall('exercises', null)") is None
    answer(page, "1", "def one(x):\n    return 'right'")
    cell(page, "check1").get_by_text("right", exact=True).wait_for()
    assert page.locator(".course-solved").inner_text() == "1 of 2 right, as this browser remembers."
    answer(page, "1", "def one(x):\n    return 'right again'")
    wait_for(page, "!course.cells.working")
    assert page.locator(".course-solved").inner_text() == "1 of 2 right, as this browser remembers."
    assert cell(page, "check1").locator(".course-check.is-right").count() == 1

    again = runner(PAGE)
    assert "'right again'" in cell(again, "answer1").locator("textarea").input_value()
    assert again.locator(".course-solved").inner_text().startswith("1 of 2 right")
    chapter = runner("book/arrays")
    ticked = [one.inner_text() for one in chapter.locator("li .course-read").all()]
    assert [words for words in ticked if words.startswith("The")] == ["The first one (difficulty 1, 5 min)"]
    index = runner("book/index")
    assert "1 exercise right." in index.locator(".course-memory").inner_text()


def test_the_way_on_is_a_link_and_names_what_is_open(runner: Any):
    page = runner(PAGE)
    onward = cell(page, "check2").locator(".course-check > p").last
    answer(page, "2", "def two(x):\n    return 'right'")
    assert onward.inner_text() == "Still open on this page: 1. The first one"
    assert onward.locator("a").get_attribute("href").startswith("#")
    onward.locator("a").click()
    wait_for(page, "document.querySelector('#exercise-1').getBoundingClientRect().top >= 0")
    page.reload()
    cell(page, "check1").get_by_role("button", name="Check").wait_for()
    answer(page, "1", "def one(x):\n    return 'right'")
    onward = cell(page, "check1").locator(".course-check > p").last
    assert onward.inner_text() == "All exercises of this page are right."
    page.evaluate("course.keep('exercises', {})")
    answer(page, "1", "def one(x):\n    return 'right' # again")
    wait_for(page, "!course.cells.working")
    assert onward.inner_text() == "Next: 2. The second"


def test_what_is_yours_and_what_is_expected_have_columns_of_one_width(runner: Any):
    page = runner(PAGE)
    answer(page, "1", "def one(x):\n    return 2")
    put = "(html) => { document.querySelector('[data-cell=check1] .cell_output').innerHTML = html; }"
    measured = """() => [...document.querySelectorAll(".course-check .value table")].map(
        (table) => [...table.querySelectorAll("tr:first-child td")].map((one) => one.getBoundingClientRect().width))"""
    for columns in (2, 6, 8):
        got = np.linspace(-1, 1, 2 * columns).reshape(2, columns) / 3
        differing = Differing("", got, np.ones_like(got), np.ones_like(got, dtype=bool))
        page.evaluate(put, Report("wrong", "one: wrong.", values=Values({}, differing))._repr_html_())
        widths = page.evaluate(measured)
        assert len(widths) == 2
        assert widths[0] == pytest.approx(widths[1], abs=1)
        assert page.evaluate("document.documentElement.scrollWidth") == 1280


def test_another_tab_is_told_of_an_answer_and_keeps_its_own(runner: Any):
    one, two = runner(PAGE), runner(PAGE, tab=True)
    field = cell(two, "answer1").locator("textarea")
    cell(one, "answer1").locator("textarea").fill("def one(x):\n    return 1")
    says = cell(two, "answer1").locator(".course-run-status", has_text="into another tab")
    says.wait_for()
    assert field.input_value() == "def one(x):\n    ..."
    assert not cell(one, "answer1").locator(".course-run-status", has_text="into another tab").count()
    field.fill("def one(x):\n    return 2")
    says.wait_for(state="detached")
    cell(one, "answer1").locator(".course-run-status", has_text="into another tab").wait_for()
    assert cell(one, "answer1").locator("textarea").input_value() == "def one(x):\n    return 1"
    two.reload()
    field.wait_for()
    assert field.input_value() == "def one(x):\n    return 2"


def test_the_chapter_leads_there_and_the_page_leads_back(runner: Any, running_address: str):
    page = runner("book/arrays")
    page.locator(".course-exercises li a", has_text="The second").click()
    page.wait_for_url(f"{running_address}{PAGE}.html#exercise-2")
    assert (
        page.locator("#exercise-2")
        .evaluate("(one) => one.closest('section').innerText")
        .startswith("2. The second")
    )
    page.locator(".course-back a").click()
    page.wait_for_url(f"{running_address}book/arrays.html")


def test_the_end_of_the_exercises_is_not_the_end_of_the_chapter(runner: Any):
    page = runner(PAGE)
    page.evaluate("scrollTo({top: document.body.scrollHeight, behavior: 'instant'})")
    page.wait_for_timeout(200)
    assert page.evaluate("course.recall('read', [])") == []


def test_escape_leads_on_and_reset_brings_the_dots_back(runner: Any):
    page = runner(PAGE)
    field = cell(page, "answer1").locator("textarea")
    field.click()
    page.keyboard.press("Control+End")
    page.keyboard.type(" # mine")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "Run"
    cell(page, "answer1").get_by_role("button", name="Reset").click()
    assert field.input_value() == "def one(x):\n    ..."


def test_a_phone_is_wide_enough(runner: Any):
    page = runner(PAGE, viewport={"width": 390, "height": 844})
    answer(page, "1", "def one(x):\n    return 'right' " + "+ 'x' " * 50)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize("path", sorted((ROOT / "exercises").glob("*.ipynb")), ids=lambda path: path.stem)
def test_what_is_for_jupyter_is_left_out_of_each_page(path: Any, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("sphinx", reason="sphinx is not installed (it comes with jupyter-book)")
    monkeypatch.setattr(sys, "path", [str(ROOT / "book" / "site" / "ext"), *sys.path])
    import exercise_pages

    monkeypatch.setattr(exercise_pages, "chapters_of", lambda app: [])
    monkeypatch.setattr(exercise_pages, "chapter_of", lambda app, page: page)
    app = SimpleNamespace(config=SimpleNamespace(course_run=True))
    source = [path.read_text(encoding="utf-8")]
    before = json.loads(source[0])
    exercise_pages.for_the_page(app, "page", source)
    after = json.loads(source[0])
    assert [one["id"] for one in after["cells"]] == [one["id"] for one in before["cells"]]
    text = "".join(after["cells"][0]["source"])
    assert "press **Check** below it" in text
    assert "To run this page" not in text
    assert "shows one way" not in text
    codes = [one for one in after["cells"] if one["cell_type"] == "code"]
    checks = [one for one in codes if "".join(one["source"]).startswith("check.")]
    assert checks
    assert not any(one["outputs"] for one in checks if "progress" not in "".join(one["source"]))
    hidden = [one for one in codes if "remove-cell" in one["metadata"].get("tags", [])]
    assert any("check.progress" in "".join(one["source"]) for one in hidden)
    names = exercise_pages.check_of(after)
    assert len(names) >= 3
    assert all(names)


def test_answers_of_other_pages_are_brought_to_the_exercise_that_puts_them_together(runner: Any):
    page = runner(PAGE)
    answer(page, "1", "def one(x):\n    return 'right \\u00e9 \"quoted\"'")
    page.evaluate("course.typed.write()")
    page.evaluate("""() => {
      window.ran = [];
      const run = course.python.run;
      course.python.run = (cell, output) => { ran.push(cell.source); return run(cell, output); };
    }""")
    cell(page, "borrows").get_by_role("button", name="Run").click()
    cell(page, "borrows").locator(".course-run-status", has_text="ran here in").wait_for()
    *written, own = page.evaluate("ran")
    assert own == 'own = all_parts(".")'
    (text,) = (one.partition(".write_text(")[2] for one in written if 'Path("./arrays.ipynb")' in one)
    notebook = json.loads(ast.literal_eval(text.removesuffix(")")))
    sources = {one["id"]: one["source"] for one in notebook["cells"]}
    assert sources["answer1"] == "def one(x):\n    return 'right \\u00e9 \"quoted\"'"


def test_the_page_has_a_place_in_the_sidebar_and_a_way_on(runner: Any):
    page = runner(PAGE)
    assert page.locator(".bd-links .course-chapter.current").all_inner_texts() == ["1. Arrays"]
    assert page.locator(".course-effort").all_inner_texts() == [
        "difficulty 1, 5 minutes",
        "difficulty 2, 10 minutes",
    ]
    end = page.locator(".course-on")
    assert end.inner_text() == "That was the last exercise of chapter 1. Go on with chapter 2, Reverse mode."
    end.get_by_role("link").click()
    page.wait_for_url("**/book/reverse_mode.html")


def test_the_site_links_what_was_made_to_take_away(running_site: Path):
    page = (running_site / "book" / "index.html").read_text("utf-8")
    assert (
        'take it as <a class="reference internal" href="../_static/bert-from-nothing.pdf">PDF</a> (2 MB).'
        in page
    )
    assert (running_site / "_static" / "bert-from-nothing.pdf").stat().st_size > 2_000_000
    assert "EPUB" not in page


def test_the_site_has_a_zip_of_the_course(running_site: Path):
    with zipfile.ZipFile(running_site / "_static" / "bert-from-nothing.zip") as packed:
        names = packed.namelist()
    assert "bert-from-nothing/book/index.md" in names
    assert "bert-from-nothing/exercises/arrays.ipynb" in names
    assert not [name for name in names if "/_build/" in name or "__pycache__" in name]
