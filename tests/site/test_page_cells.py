"""Pages with their Python, in a browser: a reader runs, edits, stops and checks, and no request leaves the site.

The page's own rules are tested in tests/book with a stand-in for Python. Needs a site that `make site` has built;
`make site-check` runs this, elsewhere it is skipped.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import served

from minigrad.course import check

pytestmark = pytest.mark.no_arrays

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("MINIGRAD_SITE", ROOT / "_build" / "html"))
CHAPTER, EXERCISES = "book/one_head", "exercises/one_head"
SLOW = 120_000  # milliseconds, for what waits for Python

RIGHT = """def attend(q, k, v):
    s = q @ k.T / math.sqrt(q.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v"""
UNSCALED = RIGHT.replace(" / math.sqrt(q.shape[-1])", "")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The site over http."""
    if not (SITE / "_static" / "run" / "site.json").exists():
        if os.environ.get("MINIGRAD_REQUIRE_SITE") == "1":
            pytest.fail(f"MINIGRAD_REQUIRE_SITE=1, but {SITE} has no Python: make site", pytrace=False)
        pytest.skip("there is no site with Python in its pages (make site)")
    with served(SITE) as found:
        yield found


@pytest.fixture
def context(browser: Any, address: str) -> Iterator[Any]:
    """A reader's browser; at the end nothing may have been asked for outside of the site."""
    opened = browser.new_context(viewport={"width": 1280, "height": 900})
    asked: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    yield opened
    opened.close()
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []


def opened(context: Any, address: str, name: str) -> Any:
    """A page of the site, with the buttons of its cells."""
    page = context.new_page()
    page.set_default_timeout(SLOW)
    page.goto(f"{address}{name}.html")
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


def test_a_reader_runs_edits_stops_and_comes_back(context: Any, address: str):
    page = opened(context, address, CHAPTER)
    identity = cell_with(page, "mixture of the values:").get_attribute("data-cell")
    cell = page.locator(f".cell[data-cell='{identity}']")
    output = cell.locator(".cell_output")
    stored = output.inner_text().strip()
    press(cell, "Run")
    said(cell, "loading Python, ")
    said(cell, "run here, in ")
    assert output.inner_text().strip() == stored
    assert page.locator(".course-run-status", has_text="run here").count() >= 3  # with those that it needs

    replace(cell, "print(z.shape)\n1 / 0")
    page.keyboard.press("Shift+Enter")
    said(cell, "failed here, after ")
    assert output.inner_text().split("\n")[0] == "(3,)"
    assert "line 2" in output.inner_text()
    assert output.inner_text().strip().endswith("ZeroDivisionError: division by zero")

    replace(cell, "while True:\n    pass")
    page.keyboard.press("Shift+Enter")
    said(cell, "runs, for 1 s")
    press(cell, "Stop")
    said(cell, "the next run starts Python afresh")

    page.reload()
    said(cell, "edited, kept in this browser")
    assert cell.locator(".cell_input pre").inner_text().strip() == "while True:\n    pass"
    press(cell, "Reset")
    press(cell, "Run")
    said(cell, "run here, in ")
    assert output.inner_text().strip() == stored


def test_a_player_that_ran_here_plays(context: Any, address: str):
    page = opened(context, address, CHAPTER)
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


def test_a_check_names_the_mistake_then_says_right(context: Any, address: str):
    page = opened(context, address, EXERCISES)
    answer = page.locator(".course-answer").first
    replace(answer, UNSCALED)
    page.get_by_role("button", name="Check attend").click()
    wrong = page.locator(".course-check.is-wrong")
    wrong.wait_for()
    assert check.attend.slip("no-scale").sentence.replace("`", "") in wrong.inner_text()
    wrong.locator("summary", has_text="Hint 1 of").click()
    assert wrong.locator("summary", has_text="Hint 2 of").is_visible()
    replace(answer, RIGHT)
    page.get_by_role("button", name="Check attend").click()
    page.locator(".course-check.is-right").wait_for()
    page.locator(".course-solved", has_text="1 of 5 right").wait_for()
    chapter = opened(context, address, CHAPTER)
    assert chapter.locator("li.course-check-attend .course-read").count() == 1


def test_each_page_has_the_cells_that_the_runtime_describes(address: str):
    """The ids in the HTML are those of the JSON: without that, no box would get its buttons."""
    described = sorted((SITE / "_static" / "run" / "cells").rglob("*.json"))
    assert len(described) > 50
    for path in described:
        name = path.relative_to(SITE / "_static" / "run" / "cells").with_suffix("").as_posix()
        page = SITE / (f"{name}.html" if "/" in name else f"book/{name}.html")
        text = page.read_text(encoding="utf-8")
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        shown = [one["id"] for one in cells if f'data-cell="{one["id"]}"' in text]
        assert shown, name
        assert len(re.findall(r'<div [^>]*class="cell[ "]', text)) == len(shown), name
