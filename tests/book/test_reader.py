"""What the pages remember of their reader and do for the hand: chapters read, the arrow keys, the contents, players."""

from __future__ import annotations

from typing import Any

import pytest

from browsers import wait_for

pytestmark = pytest.mark.no_arrays

WIDE, DESK = {"width": 1500, "height": 900}, {"width": 1280, "height": 900}


TICKED = "[...document.querySelectorAll('.course-read')].map((link) => link.innerText)"


def read(page: Any) -> list[str]:
    """The links with a tick."""
    return page.evaluate(TICKED)


def to_the_end(page: Any) -> None:
    """Scroll down as a reader does."""
    page.evaluate("scrollTo({top: document.body.scrollHeight, behavior: 'instant'})")
    page.wait_for_timeout(200)


def test_a_chapter_scrolled_to_its_end_is_read(reader: Any):
    page = reader("reverse_mode")
    page.evaluate("scrollTo({top: 500, behavior: 'instant'})")
    page.wait_for_timeout(200)
    assert read(page) == []
    to_the_end(page)
    assert read(page) == ["2. Reverse mode"]
    index = reader("index")
    assert read(index) == ["2. Reverse mode", "Reverse mode"]  # in the sidebar and in the list
    assert index.locator(".course-memory").inner_text().startswith("1 of 2 chapters read.")
    index.get_by_role("button", name="Forget it all").click()
    assert read(index) == []
    assert read(reader("reverse_mode")) == []


def test_forgetting_forgets_predictions(reader: Any):
    page = reader("arrays")
    page.get_by_role("button", name="eleven", exact=True).first.click()
    page.get_by_role("button", name="Forget it all").click()
    assert page.locator(".course-score").inner_text().startswith("This page asks for 3 predictions.")


def test_a_page_that_is_not_a_chapter_is_not_read(reader: Any):
    page = reader("index", viewport={"width": 390, "height": 300})
    to_the_end(page)
    assert page.evaluate("course.names()") == []


def test_arrow_keys_turn_the_page(reader: Any):
    page = reader("arrays")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**/reverse_mode.html")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**/arrays.html")


@pytest.mark.parametrize(
    "box", [".course-player input", ".course-player .play", ".course-map td", "pre[data-cut]"]
)
def test_arrow_keys_belong_to_what_has_the_focus(reader: Any, box: str):
    page = reader("arrays")
    page.locator(box).last.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(300)
    assert page.url.endswith("arrays.html")


def test_the_contents_mark_the_section_that_is_read(reader: Any):
    page = reader("arrays", viewport=WIDE)
    column = page.locator(".bd-toc-nav")
    assert column.is_visible()
    assert not page.locator(".course-contents").is_visible()
    marked = column.locator("[aria-current]")
    assert marked.count() == 0
    # The middle of a section longer than the window.
    page.evaluate("scrollTo({top: document.querySelector('#guess').offsetTop + 1200, behavior: 'instant'})")
    page.wait_for_timeout(200)
    assert marked.all_inner_texts() == ["Guess"]
    to_the_end(page)
    assert marked.all_inner_texts() == ["Look"]


@pytest.mark.parametrize("width", [1439, 820, 390])
def test_the_contents_are_in_the_bar_where_the_column_has_no_room(reader: Any, width: int):
    page = reader("arrays", viewport={"width": width, "height": 900})
    assert not page.locator(".bd-sidebar-secondary").is_visible()
    summary = page.locator(".course-contents > summary")
    assert summary.inner_text().startswith("Contents")
    summary.focus()
    page.keyboard.press("Enter")
    page.get_by_role("navigation", name="Contents of this page").get_by_role("link", name="Look").click()
    wait_for(page, "document.querySelector('.course-contents > summary').textContent === 'Look'")
    assert not page.locator(".course-contents").evaluate("box => box.open")
    summary.press("Enter")
    page.keyboard.press("Escape")
    assert not page.locator(".course-contents").evaluate("box => box.open")


def test_a_player_stands_still_plays_and_stops_at_its_end(reader: Any):
    page = reader("arrays", reduced_motion="no-preference")
    page.clock.install()
    page.reload()
    player = page.locator(".course-player")
    slider = player.locator("input")
    below = "document.querySelector('.course-map').offsetTop"
    places = set()
    for frame in range(3):
        slider.fill(str(frame))
        places.add(page.evaluate(below))
    assert len(places) == 1, f"the page below hops: {places}"
    player.get_by_role("button", name="play").click()
    assert slider.input_value() == "0"  # from its end it starts again
    page.clock.run_for(1300)
    assert slider.input_value() == "1"
    assert player.get_by_role("button", name="pause").is_visible()
    page.clock.run_for(5000)
    assert slider.input_value() == "2"
    assert player.get_by_role("button", name="play").is_visible()


def test_nothing_plays_where_the_reader_wants_no_motion(reader: Any):
    page = reader("arrays", reduced_motion="reduce")
    assert page.locator(".course-player .controls").is_visible()
    assert not page.locator(".course-player .play").is_visible()


# --- The sidebar, the way through, and where to go on ----------------------------------------------------


def in_sidebar(page: Any) -> list[str]:
    """The chapters that the sidebar shows."""
    return [
        link.inner_text() for link in page.locator(".bd-links .course-chapter > a").all() if link.is_visible()
    ]


def test_the_sidebar_opens_the_part_of_the_page_and_another_at_a_press(reader: Any):
    page = reader("reverse_mode")
    assert in_sidebar(page) == ["2. Reverse mode"]
    first = page.get_by_role("button", name="One")
    assert first.get_attribute("aria-expanded") == "false"
    first.focus()
    page.keyboard.press("Enter")
    assert first.get_attribute("aria-expanded") == "true"
    assert in_sidebar(page) == ["1. Arrays", "2. Reverse mode"]
    first.click()
    assert in_sidebar(page) == ["2. Reverse mode"]


def test_without_scripts_all_parts_are_open(reader: Any):
    assert in_sidebar(reader("index", java_script_enabled=False)) == ["1. Arrays", "2. Reverse mode"]


def test_a_chosen_way_greys_the_rest_of_the_sidebar(reader: Any):
    page = reader("index")
    aside = "[...document.querySelectorAll('.course-aside > a')].map((link) => link.textContent.trim())"
    assert page.evaluate(aside) == []
    page.get_by_role("button", name="The short way").click()
    assert page.evaluate(aside) == ["1. Arrays"]
    assert page.locator("[data-route][aria-pressed=true]").inner_text() == "The short way"
    page = reader("reverse_mode")
    assert page.evaluate(aside) == ["1. Arrays"]
    assert page.locator(".course-way").inner_text() == "1 of 1 on your way. It ends here."
    page = reader("arrays")
    assert page.locator(".course-way").inner_text() == (
        "This page is not on your way. It begins with 2. Reverse mode."
    )
    assert page.locator(".course-way a").get_attribute("href").endswith("reverse_mode.html")
    assert page.locator(".course-memory").inner_text().startswith("0 of 1 chapters on your way read.")
    page = reader("index")
    assert len(page.evaluate(aside)) == 1
    page.get_by_role("button", name="All", exact=True).click()
    assert page.evaluate(aside) == []
    assert reader("arrays").locator(".course-way").is_hidden()


def test_a_tab_that_has_not_heard_of_a_change_keeps_over_nothing(reader: Any):
    page = reader("index")
    page.get_by_role("button", name="The short way").click()
    deaf = (
        "() => { Storage.prototype.get = Storage.prototype.getItem; Storage.prototype.getItem = () => null; }"
    )
    page.evaluate(deaf)
    page.evaluate("course.keep('read', ['arrays'])")
    page.evaluate("() => { Storage.prototype.getItem = Storage.prototype.get; }")
    page.reload()
    assert page.locator("[data-route][aria-pressed=true]").inner_text() == "The short way"
    assert page.evaluate("course.recall('read')") == ["arrays"]


def test_the_first_page_leads_to_where_the_reader_stopped(reader: Any):
    page = reader("index")
    assert page.locator(".course-door.start").inner_text().split() == ["Start", "with", "chapter", "1"]
    page = reader("arrays")
    page.evaluate("document.querySelector('#look').scrollIntoView({behavior: 'instant'})")
    page.wait_for_timeout(200)
    page = reader("index")
    door = page.locator(".course-door.start")
    wait_for(
        page, "document.querySelector('.course-door.start').textContent.startsWith('Continue')", seconds=5
    )
    assert door.inner_text().replace("\n", " ").split() == ["Continue", "1.", "Arrays:", "Look"]
    door.click()
    page.wait_for_url("**/arrays.html#look")


# --- What a link says ------------------------------------------------------------------------------------


def test_a_link_says_what_it_leads_to(reader: Any):
    """With the pointer, the keyboard, a touch: a second touch follows it."""
    page = reader("index", has_touch=True, viewport={"width": 1280, "height": 900})
    page.add_init_script(
        """document.addEventListener("DOMContentLoaded", () => {
            document.querySelector("article p").innerHTML =
                '<a id="term" class="course-term" title="What it is." href="arrays.html">A term</a>';
        });"""
    )
    page.reload()
    link, says = page.locator("#term"), page.get_by_role("tooltip")
    assert link.get_attribute("title") is None
    assert not says.is_visible()
    link.hover()
    says.wait_for()
    assert says.inner_text() == "What it is."
    page.mouse.move(0, 0)
    assert not says.is_visible()
    link.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert says.is_visible()
    page.keyboard.press("Escape")
    assert not says.is_visible()
    page.keyboard.press("Shift+Tab")
    link.tap()
    assert says.is_visible()
    assert page.url.endswith("index.html")
    link.tap()
    page.wait_for_url("**/arrays.html")


def test_the_search_field_shows_titles_while_one_types(reader: Any):
    page = reader("reverse_mode")
    page.keyboard.press("Control+k")
    field = page.locator(
        "dialog input[type=search], .search-button__search-container input[type=search]"
    ).first
    field.fill("loo")
    link = page.locator(".course-suggestions a").first
    link.wait_for()
    assert link.inner_text() == "Look 1. Arrays"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/arrays.html#look")


@pytest.mark.parametrize("width", [1280, 820, 390])
def test_the_titles_stand_below_the_search_field(reader: Any, width: int):
    """In the window, as wide as the field, whose height stays; on a phone no key stands in it."""
    page = reader("reverse_mode", viewport={"width": width, "height": 844})
    page.evaluate("document.querySelector('.search-button').click()")
    form = page.locator(".search-button__search-container form.bd-search")
    field = form.locator("input[type=search]")
    before = form.bounding_box()
    field.press_sequentially("a")
    titles = page.locator(".search-button__search-container .course-suggestions")
    titles.wait_for()
    box, below = form.bounding_box(), titles.bounding_box()
    assert box == before
    assert below["y"] >= box["y"] + box["height"]
    assert abs(below["x"] - box["x"]) <= 1
    assert abs(below["width"] - box["width"]) <= 1
    assert 0 <= box["x"] < box["x"] + box["width"] <= width
    assert field.bounding_box()["width"] > 0.6 * min(width, 500)
    assert form.locator(".search-button__kbd-shortcut").is_visible() == (width > 600)
    assert page.evaluate("document.documentElement.scrollWidth") == width
