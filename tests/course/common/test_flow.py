"""The picture of the data flow: its numbers are those of the formulas, in Python and, once edited, in the browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bert_course.common.flow import FUNCTIONS, Box, Flow, Step, View, flow

pytest.importorskip("matplotlib")
from bert_course.chapters.one_head import head_flow

pytestmark = pytest.mark.no_arrays

X = np.array([[0.0, 0, 0, 1], [2, 0, 0, 0], [0, 0, 2, 0]])
W_Q = np.array([[0.0, 0], [0, 0], [1, 1], [0, 0]])
W_K = np.array([[1.0, 0], [0, 1], [0, 0], [0, 0]])
W_V = np.array([[3.0, 0, 0], [0, 5, 0], [0, 0, 1], [0, 0, 0]])


def attend(X: np.ndarray) -> np.ndarray:
    """The chapter's head."""
    S = (X @ W_Q) @ (X @ W_K).T / np.sqrt(2)
    A = np.exp(S) / np.exp(S).sum(axis=-1, keepdims=True)
    return A @ (X @ W_V)


def shown(value: float) -> str:
    """A number as the picture writes it."""
    return f"{float(f'{value:.2f}') + 0:g}"


def small(**settings: Any) -> Flow:
    """A flow of two boxes."""
    boxes = [Box("X", [[1, 2], [3, -4]], rows="tokens"), Box("Y", "X @ X.T / 2 - 1")]
    steps = [Step("Twice", [["X", "→", View("Y", only=[1], lit=[1])]], "Once more.")]
    return flow(boxes, steps, "Two boxes", {"tokens": ["a<b", "c"]}, **settings)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: flow([Box("Y", "X @ X")], [], ""), "the formula 'X @ X' has 'X'"),
        (lambda: flow([Box("X", [[1]]), Box("Y", "open(X)")], [], ""), r"has 'open\(X\)'"),
        (lambda: flow([Box("X", [[1]]), Box("Y", "X[0]")], [], ""), r"has 'X\[0\]'"),
        (lambda: small(edit="Y"), "edit must name a box that is an array, got 'Y'"),
        (lambda: flow([Box("X", [[1]], rows="words")], [], ""), "box 'X' has 1 entries along 'words'"),
        (lambda: flow([], [Step("One", [["→"]], "")], "")._repr_html_(), "a line of 'One' has no box"),
    ],
)
def test_what_does_not_fit_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# --- In the browser ---------------------------------------------------------------------------------------


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """An empty page in a headless Chromium."""
    opened = browser.new_page()
    yield opened
    opened.close()


def on_page(page: Any, box: str) -> dict[str, str]:
    """The numbers of a box that the page shows now."""
    return page.eval_on_selector_all(
        f'text[data-box="{box}"]',
        """all => Object.fromEntries(all.filter(text => getComputedStyle(text).visibility === "visible")
            .map(text => [text.dataset.entry, text.textContent]))""",
    )


def steps_to(page: Any, number: int) -> None:
    """Move the slider."""
    page.fill(".controls input", str(number))


def entries(values: np.ndarray) -> dict[str, str]:
    return {f"{i},{j}": shown(value) for (i, j), value in np.ndenumerate(values)}


@pytest.fixture
def edited(page: Any) -> Any:
    """The chapter's flow on a page, which rests at its last step."""
    page.set_content(f"<body>{head_flow(X, W_Q, W_K, W_V)._repr_html_()}</body>")
    assert on_page(page, "Z") == entries(attend(X))
    return page


def test_a_step_fills_its_rows_and_those_to_come_are_pale(edited):
    pale = "document.querySelectorAll('.line.pale').length"
    assert edited.evaluate(pale) == 0
    steps_to(edited, 1)
    assert set(on_page(edited, "Q")) == {"2,0", "2,1"}
    assert on_page(edited, "Z") == {}
    assert edited.evaluate(pale) == edited.locator(".line").count() - 1
    assert edited.locator(".lit.on").count() == 2  # bank's row, and the query that it becomes
    assert edited.locator(".line.now").count() == 1


@pytest.mark.parametrize("width", [390, 768, 820, 1280])
def test_the_page_below_stands_still(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.set_content(f"<body>{head_flow(X, W_Q, W_K, W_V)._repr_html_()}<p id=below>Below</p></body>")
    places = set()
    for number in range(7):
        steps_to(page, number)
        places.add(page.locator("#below").bounding_box()["y"])
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert len(places) == 1
    assert max(places) < 620


def test_a_phone_shows_the_lines_of_the_step(page):
    page.set_viewport_size({"width": 390, "height": 800})
    page.set_content(f"<body>{head_flow(X, W_Q, W_K, W_V)._repr_html_()}</body>")
    steps_to(page, 2)
    assert [line.is_visible() for line in page.locator(".line").all()].count(True) == 1


def test_a_button_puts_money_in_the_place_of_river(edited):
    with_money = X.copy()
    with_money[1] = [0, 2, 0, 0]
    edited.click('button[data-choice="money"]')
    assert on_page(edited, "Z") == entries(attend(with_money))
    assert "money" in edited.inner_text(".stage")
    assert "river" not in edited.inner_text(".stage")
    assert edited.get_attribute('button[data-choice="money"]', "aria-pressed") == "true"
    edited.click('button[aria-label="back"]')  # another step has the new numbers too
    assert on_page(edited, "Z") == {k: v for k, v in entries(attend(with_money)).items() if k[0] == "2"}
    edited.click('button[data-choice="river"]')
    assert on_page(edited, "V") == entries(X @ W_V)


def test_an_edited_number_goes_through_to_the_end(edited):
    other = X.copy()
    other[0, 1] = -1.5
    edited.fill('input[data-entry="0,1"]', "-1.5")
    assert on_page(edited, "Z") == entries(attend(other))
    edited.fill('input[data-entry="0,1"]', "")  # on the way to another number: what was there stays
    assert on_page(edited, "Z") == entries(attend(other))


def test_both_languages_know_the_same_functions(page):
    values = np.random.default_rng(0).uniform(0.1, 9, (3, 4))
    for name, (function, script) in FUNCTIONS.items():
        result = page.evaluate(f"values => ({script})(values)", values.tolist())
        np.testing.assert_allclose(result, function(values), rtol=1e-12, err_msg=name)


def test_all_signs_are_the_same_in_the_browser(page):
    boxes = [Box("X", [[1, 2], [3, -4]]), Box("b", [[0.5, 3]])]
    boxes.append(Box("Y", "(X @ X.T + b) * b / 3 - X", digits=4))
    two = flow(boxes, [Step("All", [["X", "Y"]], "")], "All signs", edit="X")
    page.set_content(f"<body>{two._repr_html_()}</body>")
    changed = np.array([[7.0, 2], [3, -4]])
    page.fill('input[data-entry="0,0"]', "7")
    b = np.array([[0.5, 3]])
    expected = (changed @ changed.T + b) * b / 3 - changed
    found = [float(text) for text in on_page(page, "Y").values()]
    np.testing.assert_allclose(found, expected.ravel(), atol=1e-4)
