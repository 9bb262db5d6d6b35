"""Predictions: the answer and what tells it wait until the reader has chosen one, and the page counts."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.no_arrays

REFUSE = """() => { throw new DOMException("refused", "SecurityError"); }"""


def answers(page: Any) -> list[bool]:
    """Which answers are to be seen."""
    return [one.is_visible() for one in page.query_selector_all(".tag_predict .cell_output")]


def told(page: Any) -> list[bool]:
    """Which sentences that tell the answer are to be seen."""
    return [page.get_by_text(f"It was {word}.").is_visible() for word in ("eleven", "twelve", "thirteen")]


def choose(page: Any, number: int, words: str) -> None:
    """Press one of the answers of a prediction, counted from 0."""
    page.locator(".course-prediction").nth(number).get_by_role("button", name=words, exact=True).click()


def test_an_answer_and_what_tells_it_wait_until_the_reader_has_chosen(reader: Any):
    page = reader("arrays")
    assert answers(page) == told(page) == [False, False, False]
    row = page.locator(".course-prediction").nth(1)
    row.scroll_into_view_if_needed()
    above = "document.querySelectorAll('.tag_predict .cell_input')[1].getBoundingClientRect().top"
    place = page.evaluate(above)
    row.get_by_role("button", name="ten", exact=True).focus()
    page.keyboard.press("Enter")
    assert answers(page) == told(page) == [False, True, False]
    assert page.evaluate(above) == place, "the text above moved"
    assert row.get_by_role("status").inner_text() == "It is: twelve."
    assert row.locator(".right").all_inner_texts() == ["twelve"]
    choose(page, 0, "eleven")
    assert page.locator(".course-prediction").nth(0).get_by_role("status").inner_text() == "You had it."


def test_the_answer_can_be_had_without_a_guess(reader: Any):
    page = reader("arrays")
    row = page.locator(".course-prediction").nth(0)
    row.get_by_role("button", name="Show the answer").click()
    assert answers(page) == told(page) == [True, False, False]
    assert row.get_by_role("status").inner_text() == ""
    assert score(page).startswith("This page asks for 3 predictions.")


def test_who_always_wants_the_answers_gets_them_on_every_page_until_they_shall_wait_again(reader: Any):
    page = reader("arrays")
    page.get_by_role("button", name="always show answers").first.click()
    assert answers(page) == told(page) == [True, True, True]
    page.reload()
    assert answers(page) == told(page) == [True, True, True]
    assert score(page).startswith("This page asks for 3 predictions. Answers are always shown.")
    assert page.get_by_role("button", name="show all").count() == 0
    page.locator(".course-score").get_by_role("button", name="let them wait").click()
    assert "always shown" not in score(page)
    page.reload()
    assert answers(page) == told(page) == [False, False, False]


def test_headings_the_next_question_and_what_does_not_tell_are_never_hidden(reader: Any):
    page = reader("arrays")
    for word in ("eleven", "twelve", "thirteen"):
        assert page.get_by_text(f"is it {word}?").is_visible()
        assert page.get_by_text(f"After {word} it goes on.").is_visible()
    assert page.get_by_role("heading", name="Look").is_visible()
    page.get_by_role("button", name="show all").first.click()
    assert answers(page) == [True, True, True]


def test_of_a_player_the_first_frame_shows(reader: Any):
    """It rests at what tells the answer."""
    page = reader("arrays", viewport={"width": 1280, "height": 900})
    page.add_init_script(
        """document.addEventListener("DOMContentLoaded", () => {
            document.querySelectorAll(".tag_predict").forEach((cell) => cell.classList.remove("tag_predict"));
            document.querySelectorAll(".course-prediction").forEach((row) => row.remove());
            document.querySelector(".course-player").closest(".cell").classList.add("tag_predict");
        });"""
    )
    page.reload()
    slider = page.locator(".course-player .controls input")
    assert slider.input_value() == "0"
    assert page.locator(".course-player .stage").is_visible()
    assert not slider.is_visible()
    page.get_by_role("button", name="Show the answer").click()
    assert slider.input_value() == "2"
    assert slider.is_visible()


def make_two_predictions(page: Any) -> None:
    """Right in the first, wrong in the third, which has no answers to choose from."""
    choose(page, 0, "eleven")
    page.locator(".course-prediction").nth(2).get_by_role("button", name="Show the answer").click()
    choose(page, 2, "I did not")


def score(page: Any) -> str:
    """What the page says of the reader's predictions."""
    return page.locator(".course-score").inner_text()


def test_the_page_counts_and_remembers(reader: Any):
    page = reader("arrays")
    assert score(page).startswith("This page asks for 3 predictions.")
    make_two_predictions(page)
    choose(page, 0, "ten")  # a second thought
    assert score(page).startswith("Your predictions: 0 of 2 right, 1 not made yet.")
    choose(page, 0, "eleven")
    assert score(page).startswith("Your predictions: 1 of 2 right, 1 not made yet.")
    # A page that is loaded at once may be in a process that has not heard yet of what was kept
    for _ in range(20):
        page.reload()
        if score(page).startswith("Your predictions: 1 of 2 right, 1 not made yet."):
            break
        page.wait_for_timeout(200)
    assert score(page).startswith("Your predictions: 1 of 2 right, 1 not made yet.")
    assert answers(page) == [True, False, True]
    pressed = page.locator(".course-prediction [aria-pressed=true]").all_inner_texts()
    assert pressed == ["eleven", "I did not"]
    assert not reader("reverse_mode").locator(".course-score").count()


def test_it_works_where_the_browser_keeps_nothing(reader: Any):
    page = reader("arrays", viewport={"width": 390, "height": 844})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.add_init_script(f"Storage.prototype.getItem = Storage.prototype.setItem = {REFUSE}")
    page.reload()
    make_two_predictions(page)
    assert score(page).startswith("Your predictions: 1 of 2 right")
    # The theme's own scripts do not expect it.
    assert [error for error in errors if "refused" not in error] == []


def test_answers_are_there_on_paper(reader: Any):
    page = reader("arrays")
    page.emulate_media(media="print")
    assert answers(page) == told(page) == [True, True, True]
    assert not page.locator(".course-prediction").first.is_visible()
    page.emulate_media(media="screen")
    assert answers(page) == [False, False, False]


def test_answers_are_there_without_scripts(reader: Any):
    page = reader("arrays", java_script_enabled=False)
    assert answers(page) == told(page) == [True, True, True]
    assert not page.locator(".course-prediction").first.is_visible()


def test_a_figure_that_waits_leaves_a_frame_until_it_is_seen(visited: Any):
    page = visited.page
    page.evaluate("course.forget()")
    page.reload(wait_until="load")
    frames = page.locator(".course-waits")
    waiting = page.locator(".tag_predict .cell_output.course-asked:has(svg)").count()
    assert frames.count() >= waiting
    assert all(frame.is_visible() for frame in frames.all())
    if waiting:
        page.get_by_role("button", name="show all answers of this page").first.click()
        assert not any(frame.is_visible() for frame in frames.all())
