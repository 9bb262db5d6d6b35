"""The course's own drawing: limits and ticks as matplotlib has them, and every mark where it belongs."""

from __future__ import annotations

import base64
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from minigrad.course.drawing import Axes, Figure, Rectangle, words
from minigrad.course.drawing.scales import Linear, Logarithmic

pytestmark = pytest.mark.no_arrays

INK, GRID, BLUE = "#111111", "#dddddd", "#0072b2"
SVG = "{http://www.w3.org/2000/svg}"


def drawn(fill, size=(5.4, 3.4)):
    """A figure after `fill(axes)`: its axes, and its SVG as a tree."""
    figure = Figure(size, INK, GRID)
    axes = figure.subplots()
    fill(axes)
    return axes, ElementTree.fromstring(figure.svg())


def texts(tree):
    """The words of a drawing."""
    return ["".join(element.itertext()) for element in tree.iter(f"{SVG}text")]


# --- Beside matplotlib -----------------------------------------------------------------------------------


@pytest.fixture
def theirs():
    """Axes of matplotlib, of about the size that ours have."""
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(5.4, 3.4), layout="constrained")
    return figure.subplots()


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("seed", range(8))
def test_limits_are_matplotlibs(theirs, scale, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0.01, 10 ** rng.uniform(0, 5), (2, rng.integers(1, 9)))

    def fill(axes):
        axes.set(xscale=scale)
        axes.plot(x, y, "o-", color=BLUE)
        axes.axhline(2 * y.max(), color=BLUE)
        axes.fill_between(x, y, 3 * y.max(), color=BLUE, alpha=0.5)

    ours, _ = drawn(fill)
    fill(theirs)
    if len(x) > 1:  # of a single number, matplotlib makes other limits
        np.testing.assert_allclose(ours.x.limits(), theirs.get_xlim())
    np.testing.assert_allclose(ours.y.limits(), theirs.get_ylim())


@pytest.mark.parametrize("seed", range(20))
def test_ticks_are_round_numbers_at_which_matplotlib_has_them_too(seed):
    ticker = pytest.importorskip("matplotlib.ticker")
    rng = np.random.default_rng(seed)
    low = rng.uniform(-3, 3) * 10.0 ** rng.integers(-2, 4)
    high = low + 10 ** rng.uniform(-2, 4)
    room = int(rng.integers(2, 12))
    expected = ticker.MaxNLocator(min(room, 9), steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    expected = [value for value in expected if low <= value <= high]
    found = Linear().ticks((low, high), room)
    np.testing.assert_allclose([value for value, _ in found], expected, atol=1e-9 * (high - low))
    written = [float(name.replace("−", "-")) for _, name in found]
    np.testing.assert_allclose(written, expected, atol=1e-9 * (high - low))  # no digit is lost
    assert len({name for _, name in found}) == len(found)


def test_ticks_of_a_logarithmic_scale_are_powers():
    scale = Logarithmic()
    assert scale.ticks((0.5, 2000), 9) == [(1, "10^{0}"), (10, "10^{1}"), (100, "10^{2}"), (1000, "10^{3}")]
    assert [value for value, _ in scale.ticks((1, 1e12), 4)] == [1, 1e4, 1e8, 1e12]
    np.testing.assert_allclose(scale.small_ticks((0.5, 3)), [0.5, 0.6, 0.7, 0.8, 0.9, 2, 3])
    assert scale.small_ticks((1, 1e12)) == []
    assert [name for _, name in Logarithmic(4).ticks((1, 70), 9)] == ["4^{0}", "4^{1}", "4^{2}", "4^{3}"]


def test_limits_that_are_set_win_and_ticks_that_are_set_are_in_view():
    def fill(axes):
        axes.plot([1, 2], [3, 4], color=BLUE)
        axes.set_xlim(right=10)
        axes.set_yticks([0, 4, 8], ["no", "four", "eight"])

    axes, tree = drawn(fill)
    assert axes.x.limits() == (0.95, 10)
    assert axes.get_ylim() == (0, 8)
    assert {"no", "four", "eight"} <= set(texts(tree))


# --- Where things are ------------------------------------------------------------------------------------


def test_markers_are_at_their_numbers():
    def fill(axes):
        axes.plot([0, 1, 4], [0, 10, 5], "o", color=BLUE)
        axes.set(xlim=(0, 4), ylim=(0, 10))

    axes, tree = drawn(fill)
    _, _, wide, high = axes.box
    found = [(float(c.get("cx")), float(c.get("cy"))) for c in tree.iter(f"{SVG}circle")]  # in the inner SVG
    np.testing.assert_allclose(found, [(0, high), (wide / 4, 0), (wide, high / 2)], atol=0.01)


def test_a_line_stops_where_a_number_is_not_finite():
    _, tree = drawn(lambda axes: axes.plot([0, 1, 2, 3, 4], [0, 1, np.nan, 1, 0], color=BLUE))
    line = next(p for p in tree.iter(f"{SVG}path") if p.get("stroke") == BLUE)
    assert re.sub("[^ML]", "", line.get("d")) == "MLML"


def test_rectangles_and_bars_are_at_their_numbers():
    def fill(axes):
        axes.bar([1, 2], [3, 6], 0.5, color=BLUE)
        axes.add_patch(Rectangle((1, 7), 1, -1, fc="none", ec=INK, lw=2))
        axes.set(xlim=(0, 4), ylim=(0, 10))

    axes, tree = drawn(fill)
    _, _, wide, high = axes.box
    found = [[float(r.get(k)) for k in ("x", "y", "width", "height")] for r in tree.iter(f"{SVG}rect")]
    shares = np.array(found) / [wide, high, wide, high]
    expected = [[0.75 / 4, 0.7, 0.125, 0.3], [1.75 / 4, 0.4, 0.125, 0.6], [0.25, 0.3, 0.25, 0.1]]
    np.testing.assert_allclose(shares, expected, atol=1e-3)


def test_bars_stand_on_the_edge():
    axes, _ = drawn(lambda axes: axes.bar([1, 2], [3, 6], color=BLUE))
    assert axes.get_ylim() == (0, pytest.approx(6.3))


def test_an_image_has_its_colours_and_its_first_row_above():
    image = pytest.importorskip("matplotlib.image")
    colours = np.random.default_rng(0).random((3, 5, 4))
    axes, tree = drawn(lambda axes: axes.imshow(colours, interpolation="nearest"))
    code = next(tree.iter(f"{SVG}image")).get("href").removeprefix("data:image/png;base64,")
    read = image.imread(io.BytesIO(base64.b64decode(code)))
    np.testing.assert_allclose(read, colours, atol=0.5 / 255 + 1e-6)
    assert axes.get_ylim() == (2.5, -0.5)
    _, _, wide, high = axes.box
    assert wide / high == pytest.approx(5 / 3)  # squares


def test_words_beside_a_point_are_moved_by_points():
    def fill(axes):
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.annotate("there", (0.5, 0.5), (7, 3), textcoords="offset points")

    axes, tree = drawn(fill)
    left, top, wide, high = axes.box
    label = next(t for t in tree.iter(f"{SVG}text") if t.text == "there")
    assert float(label.get("x")) == pytest.approx(left + wide / 2 + 7, abs=0.01)
    assert float(label.get("y")) == pytest.approx(top + high / 2 - 3, abs=0.01)


def test_words_beyond_the_box_get_room():
    def fill(axes):
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.text(1.02, 0.5, "a long remark on the right")

    bare, _ = drawn(lambda axes: axes.set(xlim=(0, 1), ylim=(0, 1)))
    axes, _ = drawn(fill)
    left, _, wide, _ = axes.box
    assert left + wide < bare.box[0] + bare.box[2] - 80
    assert left + 1.02 * wide + words.width("a long remark on the right", 11) < 72 * 5.4 + 1


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 3), (2, 2)])
def test_axes_and_their_names_stay_in_the_figure_and_apart(shape):
    figure = Figure((5.4, 4.0), INK, GRID)
    grid = figure.subplots(*shape, squeeze=False)
    for axes in grid.ravel():
        axes.plot([1, 1000], [-2000, 1], color=BLUE)
        axes.set(title="title", xlabel="steps", ylabel="loss")
    tree = ElementTree.fromstring(figure.svg())
    boxes = [axes.box for axes in grid.ravel()]
    for left, top, wide, high in boxes:
        assert left > 30
        assert top > 13
        assert wide > 40
        assert left + wide < 72 * 5.4
        assert top + high < 72 * 4 - 25
    for i, (left, top, wide, high) in enumerate(boxes):
        for other_left, other_top, *_ in boxes[i + 1 :]:
            assert other_left >= left + wide + 30 or other_top >= top + high + 30
    for text in tree.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x")) <= 72 * 5.4
        assert 0 <= float(text.get("y")) <= 72 * 4


def test_a_shared_x_is_written_once():
    figure = Figure((5.4, 4.0), INK, GRID)
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot([0, 100], [0, 1], color=BLUE)
    below.plot([50, 70], [0, 1], color=BLUE)
    found = texts(ElementTree.fromstring(figure.svg()))
    assert above.x.limits() == below.x.limits() == (-5, 105)
    assert found.count("100") == 1


def test_a_legend_names_the_marks_and_stays_off_the_line():
    def fill(axes):
        axes.plot(np.arange(50), np.arange(50), "o", color=BLUE, label="a & b")
        axes.plot([0], [0], color=BLUE)
        axes.legend()

    axes, tree = drawn(fill)
    label = next(t for t in tree.iter(f"{SVG}text") if t.text == "a & b")
    left, top, wide, high = axes.box
    x, y = float(label.get("x")), float(label.get("y"))
    assert (x < left + wide / 2) == (y < top + high / 2)  # above on the left, or below on the right


def test_a_legend_of_the_figure_is_above_the_axes():
    figure = Figure((5.4, 3.4), INK, GRID)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=BLUE, label="one")
    axes.plot([0, 1], [1, 0], color=BLUE, label="two")
    figure.legend(loc="outside upper center", ncols=2)
    tree = ElementTree.fromstring(figure.svg())
    heights = {t.text: float(t.get("y")) for t in tree.iter(f"{SVG}text")}
    assert heights["one"] == heights["two"] < axes.box[1]


def test_subscripts_powers_and_lines():
    shown = words.text(0, 0, "gradient of $W_1$ and $d_{model}$\n10^{−3} < 1", 11, INK)
    tree = ElementTree.fromstring(shown)
    assert "".join(tree.itertext()).replace("\u200b", "") == "gradient of W1 and dmodel10−3 < 1"
    assert shown.count('font-style="italic"') == 2
    assert words.width("$d_{model}$", 10) == words.width("dmodel", 10)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda axes: axes.plot([1, 2], [1, 2, 3], color=BLUE), "x has 2 numbers, y has 3"),
        (lambda axes: axes.plot([1], [1], "o=", color=BLUE), "got 'o='"),
        (lambda axes: axes.set_xscale("root"), "log or linear, got 'root'"),
        (lambda axes: axes.annotate("a", (0, 0), (1, 1)), "offset points"),
        (lambda axes: axes.set_aspect("auto"), "expected 'equal'"),
        (lambda axes: axes.axis("on"), "expected 'off'"),
        (lambda axes: axes.imshow(np.zeros((1, 1, 4)), interpolation="cubic"), "got 'cubic'"),
    ],
)
def test_what_is_not_there_is_named(wrong, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        drawn(wrong)


def test_a_place_of_a_legend_that_is_none_is_named():
    def fill(axes):
        axes.plot([0], [0], color=BLUE, label="one")
        axes.legend(loc="top")

    with pytest.raises(ValueError, match="got 'top'"):
        drawn(fill)


def test_a_figure_has_its_axes_once():
    figure = Figure((5.4, 3.4), INK, GRID)
    assert isinstance(figure.subplots(), Axes)
    with pytest.raises(ValueError, match="already"):
        figure.subplots()
