"""Predictions: the answer waits until the reader asks, the reader says who was right, and the page counts."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.no_arrays

REFUSE = """() => { throw new DOMException("refused", "SecurityError"); }"""


def answers(page: Any) -> list[bool]:
    """Which answers are to be seen."""
    return [one.is_visible() for one in page.query_selector_all(".tag_predict .cell_output")]


def test_an_answer_waits_until_it_is_asked_for(reader: Any):
    page = reader("arrays")
    assert answers(page) == [False, False, False]
    assert not page.get_by_role("button", name="I had it").first.is_visible()
    second = page.get_by_role("button", name="Show the answer").nth(1)
    second.scroll_into_view_if_needed()
    above = "document.querySelectorAll('.tag_predict .cell_input')[1].getBoundingClientRect().top"
    place = page.evaluate(above)
    second.focus()
    page.keyboard.press("Enter")
    assert answers(page) == [False, True, False]
    assert page.evaluate(above) == place, "the text above moved"
    hide = page.get_by_role("button", name="Hide the answer")
    assert hide.get_attribute("aria-expanded") == "true"
    hide.click()
    assert answers(page) == [False, False, False]
    assert page.get_by_role("button", name="Show the answer").nth(1).get_attribute("aria-expanded") == "false"


def test_all_answers_at_once(reader: Any):
    page = reader("arrays")
    page.get_by_role("button", name="show all").first.click()
    assert answers(page) == [True, True, True]


def make_two_predictions(page: Any) -> None:
    """Right in the first, wrong in the third."""
    page.get_by_role("button", name="show all").first.click()
    page.get_by_role("button", name="I had it").nth(0).click()
    page.get_by_role("button", name="I did not").nth(2).click()


def score(page: Any) -> str:
    """What the page says of the reader's predictions."""
    return page.locator(".course-score").inner_text()


def test_the_page_counts_and_remembers(reader: Any):
    page = reader("arrays")
    assert score(page).startswith("This page asks for 3 predictions.")
    make_two_predictions(page)
    page.get_by_role("button", name="I did not").nth(0).click()  # a second thought
    page.get_by_role("button", name="I had it").nth(0).click()
    assert score(page).startswith("Your predictions: 1 of 2 right, 1 not made yet.")
    for _ in range(
        20
    ):  # a page that is loaded at once may be in a process that has not heard yet of what was kept
        page.reload()
        if score(page).startswith("Your predictions: 1 of 2 right, 1 not made yet."):
            break
        page.wait_for_timeout(200)
    assert score(page).startswith("Your predictions: 1 of 2 right, 1 not made yet.")
    assert answers(page) == [True, False, True]
    pressed = [one.get_attribute("aria-pressed") for one in page.get_by_role("button", name="I had it").all()]
    assert pressed == ["true", "false"]
    assert not reader("reverse_mode").locator(".course-score").count()


def test_it_works_where_the_browser_keeps_nothing(reader: Any):
    page = reader("arrays", viewport={"width": 390, "height": 844})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.add_init_script(f"Storage.prototype.getItem = Storage.prototype.setItem = {REFUSE}")
    page.reload()
    make_two_predictions(page)
    assert score(page).startswith("Your predictions: 1 of 2 right")
    assert [
        error for error in errors if "refused" not in error
    ] == []  # the theme's own scripts do not expect it


def test_answers_are_there_on_paper(reader: Any):
    page = reader("arrays")
    page.emulate_media(media="print")
    assert answers(page) == [True, True, True]
    assert not page.locator(".course-prediction").first.is_visible()
    page.emulate_media(media="screen")
    assert answers(page) == [False, False, False]


def test_answers_are_there_without_scripts(reader: Any):
    assert answers(reader("arrays", java_script_enabled=False)) == [True, True, True]
