"""What answers to the reader, alone on a page, and the line that embeds it elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_running_cells import cell, run

from browsers import wait_for
from serving import served

pytestmark = pytest.mark.no_arrays

PAGE = "book/arrays"


def test_it_stands_alone_and_answers(runner: Any, running_address: str):
    page = runner(PAGE)
    page.goto(f"{running_address}{PAGE}.html?alone=moves&theme=dark")
    box = page.locator("main.bd-article .moves")
    box.click()  # it waits behind no prediction here
    assert box.inner_text() == "moved"
    shown = [one.evaluate("(one) => one.tagName") for one in page.locator("body > :visible").all()]
    assert shown == ["MAIN"]
    wait_for(page, "document.documentElement.dataset.theme === 'dark'")
    page.locator(".course-from a", has_text="1. Arrays").click()
    page.locator(".course-python").wait_for()
    assert page.url == f"{running_address}{PAGE}.html"


def test_a_name_that_nothing_has_shows_the_page(runner: Any, running_address: str):
    page = runner(PAGE)
    page.goto(f"{running_address}{PAGE}.html?alone=nothing")
    page.locator(".course-python").wait_for()
    assert page.locator(".course-alone").count() == 0


def test_its_line_embeds_it_in_another_page(runner: Any, running_address: str, tmp_path: Path):
    page = runner(PAGE)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="show all answers of this page").first.click()
    panel = cell(page, "moves").locator(".course-embed")
    panel.locator("summary").click()
    panel.get_by_role("button", name="Copy").click()
    panel.get_by_text("Copied").wait_for()
    line = page.evaluate("navigator.clipboard.readText()")
    assert line == panel.locator("input").input_value()
    assert panel.locator("a").get_attribute("href") == f"{running_address}{PAGE}.html?alone=moves"

    (tmp_path / "slides.html").write_text(f"<h1>Slides</h1>{line}", encoding="utf-8")
    with served(tmp_path) as address:
        other = page.context.browser.new_page()
        other.goto(f"{address}slides.html")
        inside = other.frame_locator("iframe").locator(".moves")
        inside.click()
        assert inside.inner_text() == "moved"
        other.close()


def test_what_ran_here_can_be_embedded_too_and_what_stands_still_cannot(runner: Any):
    page = runner(PAGE)
    assert page.locator(".course-embed").count() == 1
    run(page, "moves")
    assert cell(page, "moves").locator(".course-embed").count() == 1
    run(page, "plain")
    assert cell(page, "plain").locator(".course-embed").count() == 0
