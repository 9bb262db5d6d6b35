"""Pages with their Python, in a browser: a reader runs, edits, stops and checks, and no request leaves the site.

The page's own rules are tested in test_running_cells.py with a stand-in for Python. Needs a site that `make site` has
built; `make site-check` runs this, elsewhere it is skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import nbformat
import pytest
from building import ROOT, SITE

from bert_course import check
from bert_course.parts import PARTS
from browsers import wait_for

pytestmark = pytest.mark.no_arrays

CHAPTER, EXERCISES = "book/one_head", "exercises/one_head"
SLOW = 120_000  # milliseconds, for what waits for Python

RIGHT = """def attend(q, k, v):
    s = q @ k.T / math.sqrt(q.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v"""
UNSCALED = RIGHT.replace(" / math.sqrt(q.shape[-1])", "")


@pytest.fixture
def context(browser: Any, site_address: str) -> Iterator[Any]:
    """A reader's browser; at the end nothing may have been asked for outside of the site."""
    opened = browser.new_context(viewport={"width": 1280, "height": 900})
    asked: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    yield opened
    opened.close()
    assert [url for url in asked if not url.startswith((site_address, "data:", "blob:"))] == []


def opened(context: Any, site_address: str, name: str) -> Any:
    """A page of the site, with the buttons of its cells."""
    page = context.new_page()
    page.set_default_timeout(SLOW)
    return visited(page, site_address, name)


def visited(page: Any, site_address: str, name: str) -> Any:
    """The same in this tab."""
    page.goto(f"{site_address}{name}.html")
    page.locator(".course-run-button:visible").first.wait_for()
    answers = page.get_by_role("button", name="show all answers of this page").first
    if answers.count():  # what waits behind a prediction has no buttons to press
        answers.click()
    return page


def cell_with(page: Any, words: str) -> Any:
    """The first code box that has these words."""
    return page.locator(".cell[data-cell]", has=page.locator(".cell_input", has_text=words)).first


def press(cell: Any, name: str) -> None:
    """Press one of a cell's buttons."""
    cell.locator("button", has_text=name).first.click()


def said(cell: Any, words: str) -> None:
    """Wait until the row under a cell says so."""
    cell.locator(".course-run-status", has_text=words).wait_for()


def replace(cell: Any, source: str) -> None:
    """Type this instead of a cell's code."""
    if not cell.locator("textarea").count():
        press(cell, "Edit")
    cell.locator("textarea").press("Control+A")
    cell.page.keyboard.insert_text(source)


def test_a_reader_runs_edits_stops_and_comes_back(context: Any, site_address: str):
    page = opened(context, site_address, CHAPTER)
    identity = cell_with(page, "mixture of the values:").get_attribute("data-cell")
    cell = page.locator(f".cell[data-cell='{identity}']")
    output = cell.locator(".cell_output")
    stored = output.inner_text().strip()
    press(cell, "Run")
    said(cell, "fetching Python, ")
    said(cell, "ran here in ")
    assert output.inner_text().strip() == stored
    assert page.locator(".course-run-status", has_text="ran here in").count() >= 3  # with those that it needs

    replace(cell, "print(z.shape)\n1 / 0")
    page.keyboard.press("Shift+Enter")
    said(cell, "failed here")
    assert output.inner_text().split("\n")[0] == "(3,)"
    assert "line 2" in output.inner_text()
    assert output.inner_text().strip().endswith("ZeroDivisionError: division by zero")

    replace(cell, "while True:\n    pass")
    page.keyboard.press("Shift+Enter")
    said(cell, "running for 1")
    press(cell, "Stop")
    said(cell, "Python starts afresh with the next run")

    page.reload()
    said(cell, "edited, kept in this browser")
    assert cell.locator(".cell_input pre").inner_text().strip() == "while True:\n    pass"
    press(cell, "Reset")
    press(cell, "Run")
    said(cell, "ran here in ")
    assert output.inner_text().strip() == stored


def test_a_player_that_ran_here_plays(context: Any, site_address: str):
    page = opened(context, site_address, CHAPTER)
    box = page.locator(".cell[data-cell]", has=page.locator(".course-player, .course-map")).first
    identity = box.get_attribute("data-cell")
    page.evaluate("(id) => course.cells.ask(course.cells.list.find((cell) => cell.id === id))", identity)
    fresh = page.locator(f".cell[data-cell='{identity}'] .cell_output.course-fresh")
    fresh.locator(".course-player .controls:not([hidden]), .course-map").first.wait_for()
    if fresh.locator(".course-player").count():
        text = fresh.locator(".course-player .text")
        before = text.inner_text()
        fresh.locator("[aria-label=back]").click()  # it rests on its last step
        assert text.inner_text() != before
    else:
        cell = fresh.locator("td[tabindex='0']")
        cell.focus()
        assert "of its attention to" in fresh.locator(".text").inner_text()


def test_a_check_names_the_mistake_then_says_right(context: Any, site_address: str):
    page = opened(context, site_address, EXERCISES)
    answer = page.locator(".course-answer").first
    replace(answer, UNSCALED)
    page.get_by_role("button", name="Check attend").click()
    wrong = page.locator(".course-check.is-wrong")
    wrong.wait_for()
    assert check.attend.mistake("no-scale").sentence.replace("`", "") in wrong.inner_text()
    wrong.locator("summary", has_text="Hint 1 of").click()
    assert wrong.locator("summary", has_text="Hint 2 of").is_visible()
    replace(answer, RIGHT)
    page.get_by_role("button", name="Check attend").click()
    page.locator(".course-check.is-right").wait_for()
    page.locator(".course-solved", has_text="1 of 5 right").wait_for()
    chapter = opened(context, site_address, CHAPTER)
    assert chapter.locator("li.course-check-attend .course-read").count() == 1


def test_one_s_own_parts_of_all_pages_are_bert(context: Any, site_address: str):
    """The answers up to chapter 12, typed on their pages, compute what transformers computes."""
    page = None
    chapters = list(dict.fromkeys(part.chapter for part in PARTS))
    for chapter in chapters[: chapters.index("encoder") + 1]:
        solved = nbformat.read(ROOT / "solutions" / f"{chapter}.ipynb", as_version=4)
        typed = {one.id: one.source for one in solved.cells if "### BEGIN SOLUTION" in one.source}
        page = page or opened(context, site_address, f"exercises/{chapter}")
        visited(page, site_address, f"exercises/{chapter}")
        for name, source in typed.items():
            replace(page.locator(f".cell[data-cell='{name}']"), source)
    assert page
    cell = cell_with(page, "against_reference(bert, parts)")
    press(cell, "Run")
    said(cell, "ran here in ")
    output = cell.locator(".cell_output").inner_text()
    assert output.count("differs from transformers' by less than 1e-5") == 4, output
    taken = cell_with(page, "from bert_course.parts import all_parts").locator(".cell_output").inner_text()
    typed_ones = [part.name for part in PARTS if part.chapter in chapters[: chapters.index("encoder") + 1]]
    assert " ".join(taken.split()).startswith(f"yours: {', '.join(typed_ones)} the course's"), taken
    cell = cell_with(page, "read_texts(\n")
    press(cell, "Run")
    said(cell, "ran here in ")
    assert "the second text follows the first: this BERT" in cell.locator(".cell_output").inner_text()
    visited(page, site_address, "book/finetuning")
    cell = cell_with(page, "parts = all_parts()")
    press(cell, "Run")
    said(cell, "ran here in ")
    assert "".join(cell.locator(".cell_output").inner_text().split()).startswith("".join(taken.split()))


IMAGES = "(async () => (await (await caches.open('course-python')).keys()).length)()"
STARTED = "course.recall('python')?.seconds"


def run_one(page: Any, words: str) -> Any:
    """Run the first cell with these words; gives it when it has run."""
    cell = cell_with(page, words)
    page.evaluate("(id) => course.cells.ask(course.cells.find(id))", cell.get_attribute("data-cell"))
    cell.locator(".course-run-status", has_text="ran here in ").wait_for(state="attached")
    return cell


def test_the_second_start_needs_no_network(context: Any, site_address: str):
    """An image of Python's memory, and the files of what was read: on that page, on another one, with stored models."""
    page = opened(context, site_address, CHAPTER)
    run_one(page, "mixture of the values:")
    wait_for(page, STARTED)
    wait_for(page, f"{IMAGES}.then((count) => count === 1)")
    visited(page, site_address, "book/start")
    run_one(page, "fill_mask(")  # its model comes with the cell

    page.context.set_offline(True)
    visited(page, site_address, "book/start")
    assert run_one(page, "fill_mask(").locator(".cell_output").count() == 1
    visited(page, site_address, CHAPTER)
    run_one(page, "mixture of the values:")
    page.context.set_offline(False)


def test_a_damaged_image_is_replaced(context: Any, site_address: str):
    page = opened(context, site_address, CHAPTER)
    version = json.loads((SITE / "_static" / "python" / "site.json").read_text())["version"]
    spoil = """async (image) => {
      await (await caches.open("course-python")).put(image, new Response(new Uint8Array(1000)));
    }"""
    page.evaluate(spoil, f"{site_address}_static/python/image/{version}")
    run_one(page, "mixture of the values:")
    size = f"""caches.match("{site_address}_static/python/image/{version}").then((one) => one.arrayBuffer())
      .then((bytes) => bytes.byteLength > 1e6)"""
    wait_for(page, size)


def test_one_s_own_loss_falls_stops_and_goes_on(context: Any, site_address: str):
    page = opened(context, site_address, "book/pretraining")
    cell = page.locator(".cell[data-cell='own-watch']")
    output = cell.locator(".cell_output")
    steps = (
        "document.querySelector(\".cell[data-cell='own-watch'] .course-drawing\")?.getAttribute('aria-label')"
    )
    printed = re.search(r"best possible ([\d.]+)$", page.evaluate(steps))  # the stored run, same pairs
    press(cell, "Run")
    wait_for(page, f"/^step ([5-9]|\\d\\d): /.test({steps} ?? '')", seconds=120)
    press(cell, "Stop")
    said(cell, "run it again, and it goes on")
    first = re.fullmatch(r"step (\d+): ([\d.]+), best possible ([\d.]+)", page.evaluate(steps))
    assert first, page.evaluate(steps)
    assert first[3] == printed[1]
    assert float(first[2]) < 5.5
    press(cell, "Run")
    wait_for(page, f"Number(/^step (\\d+)/.exec({steps} ?? '')?.[1]) > {int(first[1]) + 5}", seconds=120)
    press(cell, "Stop")
    said(cell, "run it again, and it goes on")
    second = re.match(r"step (\d+): ([\d.]+)", page.evaluate(steps))
    assert int(second[1]) > int(first[1])
    assert float(second[2]) < float(first[2])
    assert output.locator(".course-drawing").count() == 1


def test_each_page_has_the_cells_that_the_runtime_describes(site_address: str):
    """The ids in the HTML are those of the JSON: without that, no box would get its buttons."""
    described = sorted((SITE / "_static" / "python" / "cells").rglob("*.json"))
    assert len(described) > 50
    for path in described:
        name = path.relative_to(SITE / "_static" / "python" / "cells").with_suffix("").as_posix()
        page = SITE / (f"{name}.html" if "/" in name else f"book/{name}.html")
        text = page.read_text(encoding="utf-8")
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        shown = [one["id"] for one in cells if f'data-cell="{one["id"]}"' in text]
        assert shown, name
        assert len(re.findall(r'<div [^>]*class="cell[ "]', text)) == len(shown), name
