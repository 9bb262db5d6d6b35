"""What chapter `masking` shows: the mask painter, in Python and in the browser, and the stored model beside padding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from browsers import opened

pytest.importorskip("matplotlib")
from bert_course.chapters.masking import WAYS, mask_painter, painted

TOKENS, FEATURES = ["a<b", "river", "[PAD]"], ["water", "money"]
S = np.array([[0.3, -1.0, 2.0], [0.0, 4.0, 1.5], [1.0, 1.0, 1.0]])
V = np.array([[3.0, -0.0], [0.0, 5.0], [-1.25, 0.1]])
EVERYTHING = np.ones((3, 3), bool)
PADDING = EVERYTHING & np.array([True, True, False])
NOTHING = PADDING & np.array([[True], [False], [True]])
PRESETS = {"everything": EVERYTHING, "padding": PADDING, "river sees nothing": NOTHING}


def paint(**presets: np.ndarray) -> Any:
    return mask_painter(TOKENS, S, V, FEATURES, presets or PRESETS)


def number(value: float) -> str:
    return "NaN" if np.isnan(value) else f"{value + 0:.2f}".replace("-0.00", "0.00")


def softmax(S):
    E = np.exp(S - S.max(axis=-1, keepdims=True))
    return E / E.sum(axis=-1, keepdims=True)


def test_the_ways_are_what_their_names_say():
    def weights(way: str, allowed: np.ndarray) -> np.ndarray:
        return painted(S, V, allowed, way)[0]

    visible = np.hstack([softmax(S[:, :2]), np.zeros((3, 1))])
    np.testing.assert_allclose(weights("score + −∞", PADDING), visible)
    np.testing.assert_allclose(weights("score + lowest", PADDING), visible)
    np.testing.assert_allclose(weights("score × 0", PADDING), softmax(S * [1, 1, 0]))
    np.testing.assert_allclose(weights("weight × 0", PADDING), softmax(S) * [1, 1, 0])
    assert np.isnan(weights("score + −∞", NOTHING)[1]).all()
    np.testing.assert_array_equal(weights("score + lowest", NOTHING)[1], 1 / 3)


@pytest.mark.no_arrays
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mask_painter(TOKENS, S[:2], V, FEATURES, PRESETS), r"scores: expected shape \(3, 3\)"),
        (lambda: mask_painter(TOKENS, S, V.T, FEATURES, PRESETS), r"values: expected shape \(3, 2\)"),
        (lambda: paint(half=PADDING[:2]), r"the mask 'half': expected shape \(3, 3\), got \(2, 3\)"),
        (lambda: paint(ones=np.ones((3, 3))), "the mask 'ones': expected booleans, got float64"),
        (lambda: mask_painter(TOKENS, S, V, FEATURES, {}), "at least one mask"),
    ],
)
def test_what_does_not_fit_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# --- In the browser ----------------------------------------------------------------------------------------


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """The painter on a page, and what went wrong there."""
    with opened(browser, paint()._repr_html_()) as shown:
        yield shown


def shows(page: Any, allowed: np.ndarray, way: str) -> None:
    """The page has the weights, sums and outputs that Python computes; what is wrong is red."""
    A, Z = painted(S, V, allowed, way)
    for i in range(3):
        for j in range(3):
            cell = page.locator(f'[data-cell="{i},{j}"]')
            assert cell.inner_text() == number(A[i, j]), (way, i, j)
            classes = cell.get_attribute("class").split()
            assert ("hidden" in classes) is (not allowed[i, j])
            assert ("wrong" in classes) is (not allowed[i, j] and not A[i, j] < 1e-9)
        total = page.locator(f'[data-sum="{i}"]')
        assert total.inner_text() == number(A[i].sum())
        assert ("wrong" in (total.get_attribute("class") or "")) is (not abs(A[i].sum() - 1) < 1e-9)
        assert [page.inner_text(f'[data-output="{i},{f}"]') for f in range(2)] == list(map(number, Z[i]))


@pytest.mark.no_arrays
def test_both_languages_agree_on_every_mask_and_way(page):
    for way in WAYS:
        page.select_option("select", way)
        for name, allowed in PRESETS.items():
            page.click(f'[data-preset="{name}"]')
            shows(page, allowed, way)
            pressed = page.eval_on_selector_all(
                '[aria-pressed="true"]', "all => all.map(button => button.dataset.preset)"
            )
            assert pressed == [name]


@pytest.mark.no_arrays
def test_a_press_hides_a_key_and_another_shows_it(page):
    page.click('[data-cell="1,2"]')
    allowed = EVERYTHING.copy()
    allowed[1, 2] = False
    shows(page, allowed, "score + −∞")
    assert page.inner_text("p") == "river may not see [PAD], weight 0.00."
    assert page.locator('[aria-pressed="true"]').count() == 0
    page.click('[data-cell="1,2"]')
    shows(page, EVERYTHING, "score + −∞")


@pytest.mark.no_arrays
def test_no_press_moves_the_table(page):
    """Or the pointer would be over another cell, which it would paint too."""
    cell = page.locator('[data-cell="1,2"]')
    before = cell.bounding_box()
    cell.click()
    assert cell.bounding_box() == before


@pytest.mark.no_arrays
def test_a_drag_paints(page):
    boxes = [page.locator(f'[data-cell="{i},2"]').bounding_box() for i in range(3)]
    places = [(box["x"] + 5, box["y"] + 5) for box in boxes]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()
    page.mouse.move(*places[0])  # no button is down any more
    shows(page, PADDING, "score + −∞")


@pytest.mark.no_arrays
def test_the_keyboard_does_what_the_pointer_does(page):
    page.focus('[data-cell="0,0"]')
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", " "):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.dataset.cell") == "1,2"
    assert page.evaluate("document.querySelectorAll('.cell[tabindex=\"0\"]').length") == 1
    allowed = EVERYTHING.copy()
    allowed[1, 2] = False
    shows(page, allowed, "score + −∞")
    page.keyboard.press("Enter")
    shows(page, EVERYTHING, "score + −∞")


@pytest.mark.no_arrays
def test_without_its_script_it_is_a_table(browser):
    opened = browser.new_context(java_script_enabled=False).new_page()
    opened.set_content(f"<body>{paint(padding=PADDING)._repr_html_()}</body>")
    assert not opened.is_visible("button")
    assert opened.inner_text('[data-cell="0,2"]') == "0.00"
    assert "hidden" in opened.get_attribute('[data-cell="0,2"]', "class")
    opened.context.close()
