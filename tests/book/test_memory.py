"""What a browser keeps may be of another shape: of another version, of another site at the same address, or edited."""

from __future__ import annotations

import json
from typing import Any

import pytest

from browsers import wait_for

pytestmark = pytest.mark.no_arrays

KEYS = (
    "read",
    "exercises",
    "route",
    "last",
    "python",
    "predictions of arrays",
    "choices of arrays",
    "code of arrays",
    "code of exercises/arrays",
    "of a later version",
)
NAMES = ("arrays", "plain", "answer1", "0", "page", "name", "chapters", "version", "seconds", "right")
SHAPES: dict[str, Any] = {
    "number": 5,
    "null": None,
    "list of null": [None, [1]],
    "object of null": dict.fromkeys(NAMES),
    "object of objects": {name: dict.fromkeys((*NAMES, "source", "author"), 1) for name in NAMES},
    "object of lists": {name: {other: [None] for other in (*NAMES, "source", "author")} for name in NAMES},
    "names of Python's and JavaScript's": {"__proto__": {"right": 1}, "constructor": 1, "toString": 1},
}
WHOLE = {name: json.dumps(value) for name, value in SHAPES.items()} | {"damaged": '{"arrays": '}
KEEP = """([keys, text]) => {
  localStorage.clear();
  for (const key of keys) localStorage.setItem(`minigrad-course/${key}`, text);
}"""


def works(page: Any) -> None:
    """The parts of a page that are made from what is kept are there."""
    forget = page.get_by_role("button", name="Forget it all")
    forget.wait_for()
    assert page.locator(".course-memory").inner_text().startswith("0 of 2 chapters read.")
    if page.evaluate("course.page") == "index":
        door = page.locator(".course-door.start")
        assert door.get_attribute("href") == "arrays.html"
        assert door.inner_text().split()[0] == "Start"
        assert page.locator("[data-route]:visible").count() == 2
        assert page.locator("[data-route][aria-pressed=true]").inner_text() == "All"
    if page.evaluate("course.page") == "arrays":
        assert page.get_by_role("button", name="Show the answer").first.is_visible()
        assert "undefined" not in page.locator(".course-score").inner_text()
    if page.evaluate("course.page") == "exercises/arrays":
        assert page.locator("textarea").first.input_value() == "def one(x):\n    ..."
        assert page.locator(".course-solved").inner_text() == ""
    if page.evaluate("course.page") != "index":
        assert page.locator(".course-run-button", has_text="Run").first.is_visible()


@pytest.mark.parametrize("shape", WHOLE)
def test_what_is_kept_in_another_shape_breaks_no_page(runner: Any, shape: str):
    """At the end `runner` says so if a script has failed."""
    page = runner("book/index")
    page.evaluate(KEEP, [KEYS, WHOLE[shape]])
    page.add_init_script(f"({KEEP})({json.dumps([KEYS, WHOLE[shape]])})")  # pages keep what is right
    for name in ("book/index", "book/arrays", "exercises/arrays"):
        works(runner(name))


def test_all_can_be_forgotten_whatever_is_kept(runner: Any):
    page = runner("book/index")
    for key in ("read", "code of arrays", "of a later version"):
        page.evaluate(KEEP, [[key], WHOLE["number"]])
        page.reload()
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Forget it all").click()
        assert page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('minigrad'))") == []
        assert not page.get_by_role("button", name="Forget it all").is_visible()


def test_what_is_right_stays_beside_what_is_not(runner: Any):
    page = runner("book/index")
    kept = {
        "read": ["reverse_mode", 3, None],
        "exercises": {"arrays": {"right": ["one", 5], "of": 2}, "one_head": None, "masking": 1},
        "predictions of arrays": {"0": True, "7": False, "x": 3},
        "code of exercises/arrays": {"answer1": {"source": "mine", "author": "0"}, "answer2": {"source": 3}},
    }
    for key, value in kept.items():
        page.evaluate(KEEP.replace("localStorage.clear();", ""), [[key], json.dumps(value)])
    page.reload()
    said = page.locator(".course-memory").inner_text()
    assert said.startswith("1 of 2 chapters read. 1 exercise right.")
    page = runner("exercises/arrays")
    assert page.locator(".course-solved").inner_text().startswith("1 of 2 right")
    assert [one.input_value() for one in page.locator("textarea").all()] == ["mine", "def two(x):\n    ..."]
    score = runner("book/arrays").locator(".course-score")
    assert score.inner_text().startswith("Your predictions: 1 of 1 right, 1 not made yet.")


def test_the_first_version_of_what_was_kept_may_be_damaged_too(runner: Any):
    page = runner("book/index")
    for text in WHOLE.values():
        page.evaluate("(text) => { localStorage.clear(); localStorage['minigrad-course'] = text; }", text)
        page.reload()
        assert page.locator(".course-door.start").get_attribute("href") == "arrays.html"
        assert page.evaluate("course.names().filter((name) => /^\\d/.test(name))") == []


HOSTILE = ("javascript:alert(1)//", "//evil.example/x", "../x")


@pytest.mark.parametrize("address", HOSTILE)
def test_no_address_is_made_of_what_is_kept(runner: Any, running_address: str, address: str):
    page = runner("book/index")
    right = {
        "page": "arrays",
        "address": "arrays",
        "title": "<b>1. Arrays",
        "hash": "#more",
        "heading": "More",
    }
    wrong = [right | {key: address} for key in ("page", "address", "hash")]
    wrong += [right | {"page": f"exercises/{address}"}, right | {"page": address, "address": address}]
    for last in wrong:
        page.evaluate(KEEP, [["last"], json.dumps(last)])
        page.reload()
        href = page.locator(".course-door.start").evaluate("(link) => link.href")
        here = [f"{running_address}{path}.html" for path in ("book/arrays", "exercises/arrays")]
        assert href.partition("#")[0] in here, last


def test_the_way_on_leads_to_exercises_too(runner: Any, running_address: str):
    runner("exercises/arrays")
    page = runner("book/index")
    wait_for(page, "document.querySelector('.course-door.start').textContent.startsWith('Continue')")
    assert "Exercises: arrays" in page.locator(".course-door.start").inner_text()
    page.locator(".course-door.start").click()
    page.wait_for_url(f"{running_address}exercises/arrays.html")
