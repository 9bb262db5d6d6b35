"""The course's own drawing: limits and ticks as matplotlib has them, and every mark where it belongs."""

from __future__ import annotations

import base64
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from bert_course.common.drawing import Axes, Figure, Rectangle, words
from bert_course.common.drawing.contour import level_lines

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
    np.testing.assert_allclose(ours.x.limits(), theirs.get_xlim())
    np.testing.assert_allclose(ours.y.limits(), theirs.get_ylim())


def saddle(axes):
    """A height with two hills, and a point outside."""
    x, y = np.meshgrid(np.linspace(-2, 3, 26), np.linspace(-1, 2, 31))
    axes.contour(x, y, x * y + 0.2 * x**2, [-0.5, 0, 0.31, 1.0], colors=BLUE, linewidths=0.5)
    axes.plot(3.5, 0, "o", color=BLUE)


def upside_down(axes):
    """The first number above, and the same measure on x and y."""
    axes.plot([1, 2], color=BLUE)
    axes.set(aspect="equal", xlim=(0, 24), ylim=(24, 0))


def points_alone(axes):
    """Numbers given one by one."""
    axes.plot(3, -2, "o", color=BLUE)
    axes.vlines(3.5, 0, 1, color=BLUE)


@pytest.mark.parametrize(
    "fill",
    [
        lambda axes: axes.plot([3, 1, 2], color=BLUE),
        lambda axes: axes.plot([3, 1, 2], "o--", color=BLUE),
        lambda axes: axes.plot(*np.array([[1, 4], [0, 3], [2, 2]]).T, "o-", color=BLUE),
        lambda axes: axes.plot(0, 0, "+", color=BLUE),
        lambda axes: axes.loglog([1, 100, 3000], [0, 5, 0.02], color=BLUE),
        lambda axes: axes.loglog([5], [1e-3], base=2, color=BLUE),
        lambda axes: axes.barh([0, 1, 4], [3, 2, 8], left=2, height=0.5, color=BLUE),
        lambda axes: axes.barh(0.5, 7, color=BLUE),
        lambda axes: axes.bar([0, 1], [3, 2], 0.5, color=BLUE),
        lambda axes: axes.vlines([1, 2, 5], -1, 2, color=BLUE),
        lambda axes: axes.axhline(3, color=BLUE),
        points_alone,
        saddle,
        upside_down,
    ],
)
def test_limits_of_each_kind_of_mark_are_matplotlibs(theirs, fill):
    ours, _ = drawn(fill)
    fill(theirs)
    np.testing.assert_allclose((ours.x.limits(), ours.y.limits()), (theirs.get_xlim(), theirs.get_ylim()))


def test_points_of_a_line_are_matplotlibs(theirs):
    def fill(axes):
        axes.plot([3, 1, 2], "o--", color=BLUE)
        axes.plot(range(2), {1: 5, 2: 6}.values(), color=BLUE)
        axes.loglog(7, 0.5, "s", color=BLUE)

    ours, _ = drawn(fill)
    fill(theirs)
    for mark, line in zip(ours.marks, theirs.lines, strict=True):
        np.testing.assert_array_equal(np.stack([mark.x, mark.y], axis=1), line.get_xydata())
        assert (mark.line or "None", mark.marker or "None") == (line.get_linestyle(), line.get_marker())


def test_bars_and_upright_lines_are_where_matplotlib_has_them(theirs):
    def fill(axes):
        axes.barh([0, 1, 4], [3, 2, 8], left=2, height=0.5, color=BLUE)
        axes.vlines([1, 2, 5], -1, 2, color=BLUE)

    ours, _ = drawn(fill)
    fill(theirs)
    *bars, lines = ours.marks
    for bar, patch in zip(bars, theirs.patches, strict=True):
        assert (*bar.xy, bar.width, bar.height) == (*patch.get_xy(), patch.get_width(), patch.get_height())
    pieces = np.stack([lines.x, lines.y], axis=1).reshape(3, 3, 2)  # a line, then a gap
    np.testing.assert_array_equal(pieces[:, :2], theirs.collections[0].get_segments())
    assert np.isnan(pieces[:, 2, 1]).all()
    assert lines.ends == "butt"  # as those of matplotlib's collections


@pytest.mark.parametrize("seed", range(5))
def test_level_lines_are_matplotlibs(theirs, seed):
    rng = np.random.default_rng(seed)
    x, y = np.linspace(-2, 3, 9), np.linspace(0, 1, 7)
    heights = rng.normal(size=(7, 9))  # many saddles, lines that end, lines that close
    levels = [-0.7, 0.1, 0.6]
    expected = theirs.contour(*np.meshgrid(x, y), heights, levels)
    for level, segments in zip(levels, expected.allsegs, strict=True):
        found = [np.stack(line, axis=1) for line in level_lines(x, y, heights, level)]
        assert len(found) == len(segments)

        def corners(lines):
            return sorted(sorted(np.round(line, 9).tolist()) for line in map(np.asarray, lines))

        np.testing.assert_allclose(
            np.concatenate(corners([np.unique(np.round(line, 9), axis=0) for line in found])),
            np.concatenate(corners([np.unique(np.round(line, 9), axis=0) for line in segments])),
            atol=1e-8,
        )
        # In the same order along each
        steps = sorted(np.hypot(*np.diff(line, axis=0).T).sum() for line in found)
        theirs_steps = sorted(np.hypot(*np.diff(line, axis=0).T).sum() for line in segments)
        np.testing.assert_allclose(steps, theirs_steps)


WAYS = [False, True, "row", "col"]


@pytest.mark.parametrize("sharex", WAYS)
@pytest.mark.parametrize("sharey", WAYS)
def test_shared_numbers_are_shared_and_written_as_matplotlib_does(sharex, sharey):
    ours = Figure((5.4, 4.0), INK, GRID)
    theirs = pytest.importorskip("matplotlib.figure").Figure()
    grids = [figure.subplots(2, 3, sharex=sharex, sharey=sharey) for figure in (ours, theirs)]
    rng = np.random.default_rng(0)
    for row, column in np.ndindex(2, 3):
        x, y = rng.uniform(0, 10, (2, 4))
        for grid in grids:
            grid[row, column].plot(x, y, color=BLUE)
    assert ours.axes == list(grids[0].ravel())
    for axes, other in zip(*(grid.ravel() for grid in grids), strict=True):
        np.testing.assert_allclose((axes.x.limits(), axes.y.limits()), (other.get_xlim(), other.get_ylim()))
        written = {
            name
            for name, axis, side in (("x", other.xaxis, "labelbottom"), ("y", other.yaxis, "labelleft"))
            if axis.get_tick_params().get(side, True)
        }
        assert axes.frame.named_ticks == written


@pytest.mark.parametrize("rotation", [0, 90])
@pytest.mark.parametrize("ha", ["left", "center", "right"])
@pytest.mark.parametrize("va", ["top", "center", "bottom", "baseline"])
def test_words_stand_beside_their_place_as_matplotlibs_do(theirs, rotation, ha, va):
    theirs.set(xlim=(0, 1), ylim=(0, 1))
    theirs.figure.set_dpi(72)
    box = theirs.text(0.5, 0.5, "words", ha=ha, va=va, rotation=rotation, fontsize=11).get_window_extent()
    at = theirs.transData.transform((0.5, 0.5))
    expected = [box.x0 - at[0], box.x1 - at[0], at[1] - box.y1, at[1] - box.y0]  # left, right, top, bottom

    def fill(axes):
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.text(0.5, 0.5, "words", ha=ha, va=va, rotation=rotation)

    ours, tree = drawn(fill)
    label = next(mark for mark in ours.marks)
    left, top, wide, high = ours.box
    x, y = left + wide / 2, top + high / 2
    found = np.array(label.box(ours.places())) - (x, x, y, y)
    np.testing.assert_allclose(found, expected, atol=7)  # the font is another
    element = next(t for t in tree.iter(f"{SVG}text") if t.text == "words")
    along, across = ((expected[3], expected[2]), expected[:2]) if rotation else (expected[:2], expected[2:])
    middle = (along[0] + along[1]) / 2 * (-1 if rotation else 1)  # how far the words go beyond the place
    assert element.get("text-anchor") == ("middle" if abs(middle) < 3 else "start" if middle > 0 else "end")
    baseline = float(element.get("y")) - y  # the turned words are moved before they are turned
    assert across[0] + 5 < baseline < across[1] + 1
    assert bool(element.get("transform")) == bool(rotation)


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


@pytest.mark.parametrize(("ends", "cap"), [("butt", "butt"), ("round", "round"), (None, "square")])
def test_a_line_ends_as_matplotlibs(theirs, ends, cap):
    settings = {"solid_capstyle": ends} if ends else {}

    def fill(axes):
        axes.plot([0, 1], color=BLUE, **settings)

    _, tree = drawn(fill)
    fill(theirs)
    assert theirs.lines[0].get_solid_capstyle() == (ends or "projecting")
    line = next(p for p in tree.iter(f"{SVG}path") if p.get("stroke") == BLUE)
    assert line.get("stroke-linecap") == cap


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


def test_ticks_that_are_set_are_written_as_matplotlib_writes_them(theirs):
    def fill(axes):
        axes.set(xlim=(0, 3), ylim=(-1, 2), xticks=[0, 0.25, 2], yticks=[-1, 1], yticklabels=["low", 1])

    _, tree = drawn(fill)
    fill(theirs)
    names = [label.get_text() for label in (*theirs.get_xticklabels(), *theirs.get_yticklabels())]
    assert texts(tree) == names == ["0.00", "0.25", "2.00", "low", "1"]
    ticks = next(p for p in tree.iter(f"{SVG}path") if p.get("stroke") == INK)
    assert ticks.get("d").count("M") == 5


def test_the_size_of_what_is_written_at_ticks():
    _, tree = drawn(lambda axes: axes.set_yticks([0, 1], ["zero", "one"], fontsize=7.5))
    sizes = {t.text: float(t.get("font-size")) for t in tree.iter(f"{SVG}text")}
    assert (sizes.pop("zero"), sizes.pop("one")) == (7.5, 7.5)
    assert set(sizes.values()) == {11}  # of x


def test_spines_are_hidden_one_by_one():
    def lines(hidden):
        def fill(axes):
            for side in hidden:
                axes.spines[side].set_visible(False)
            axes.set(xticks=[], yticks=[])

        _, tree = drawn(fill)
        paths = [p.get("d") for p in tree.iter(f"{SVG}path") if p.get("stroke-width") == "0.8"]
        return re.sub("[^vh]", "", "".join(paths))

    assert [lines(hidden) for hidden in ([], ["left"], ["bottom"], [slice(None)])] == ["vh", "h", "v", ""]


def test_a_long_line_is_drawn_with_no_more_points_than_are_seen():
    x = np.linspace(0, 20, 100_001)
    y = np.sin(x)
    ours, tree = drawn(lambda axes: axes.plot(x, y, color=BLUE))
    path = next(p for p in tree.iter(f"{SVG}path") if p.get("stroke") == BLUE).get("d")
    found = np.array([list(map(float, pair.split())) for pair in re.split("[ML]", path)[1:]])
    assert len(found) < 4000
    left, top, *_ = ours.box
    to_x, to_y = ours.places()
    expected = np.stack([to_x(x) - left, to_y(y) - top], axis=1)
    np.testing.assert_allclose(found[[0, -1]], expected[[0, -1]], atol=0.01)
    heights = np.interp(expected[:, 0], found[:, 0], found[:, 1])
    np.testing.assert_allclose(heights, expected[:, 1], atol=0.2)


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


def rising(axes):
    axes.plot([-1, 2], [-1, 2], color=BLUE)


def points_above_on_the_right(axes):
    axes.plot([0.9, 0.95], [0.95, 0.9], "o", color=BLUE)


def words_above_on_the_right(axes):
    axes.text(0.95, 0.95, "some words", ha="right", va="top")


def bars_above(axes):
    axes.add_patch(Rectangle((0, 0.6), 1, 0.4))
    axes.scatter([0.1], [0.1], s=4, color=BLUE)


def level(axes):
    axes.axhline(0.93, color=BLUE)
    axes.axvline(0.15, color=BLUE)


@pytest.mark.parametrize(
    ("fill", "place"),
    [
        (lambda axes: None, (1, 1)),
        (rising, (0, 1)),
        (points_above_on_the_right, (0, 1)),
        (words_above_on_the_right, (0, 1)),
        (bars_above, (1, 0)),
        (level, (1, 0)),
    ],
)
def test_a_legend_is_put_where_matplotlib_puts_it(theirs, monkeypatch, fill, place):
    def whole(axes):
        axes.set(xlim=(0, 1), ylim=(0, 1))
        fill(axes)
        axes.plot([], [], color=BLUE, label="one")
        axes.legend()

    ours, tree = drawn(whole)
    monkeypatch.setitem(whole.__globals__, "Rectangle", pytest.importorskip("matplotlib.patches").Rectangle)
    whole(theirs)
    theirs.figure.draw_without_rendering()
    box = theirs.get_legend().get_window_extent()
    middle = theirs.transAxes.inverted().transform(((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2))
    assert tuple(np.rint(middle)) == place
    left, top, wide, high = ours.box
    label = next(t for t in tree.iter(f"{SVG}text") if t.text == "one")
    found = (float(label.get("x")) - left) / wide, 1 - (float(label.get("y")) - top) / high
    assert tuple(np.rint(found)) == place


def test_a_legend_names_lines_from_edge_to_edge_and_has_its_colour():
    def fill(axes):
        axes.axhline(1, color=BLUE, linestyle="-.", label="ceiling")
        axes.legend(labelcolor="#123456", loc="lower right")

    _, tree = drawn(fill)
    assert next(t for t in tree.iter(f"{SVG}text") if t.text == "ceiling").get("fill") == "#123456"
    dashed = [p for p in tree.iter(f"{SVG}path") if p.get("stroke") == BLUE]
    assert len(dashed) == 2  # the line, and its sample
    assert dashed[0].get("stroke-dasharray") == dashed[1].get("stroke-dasharray") == "11.52 2.88 1.8 2.88"


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
    tree = ElementTree.fromstring(words.text(0, 0, "new $(2, d_1)$", 11, INK))
    upright = [t.text for t in tree.iter("tspan") if t.get("font-style") == "normal"]
    assert upright == ["(2,", ")"]
    assert words.width("$d_{model}$", 10) == words.width("dmodel", 10)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda axes: axes.plot([1, 2], [1, 2, 3], color=BLUE), "x has 2 numbers, y has 3"),
        (lambda axes: axes.plot([1], [1], "o=", color=BLUE), "got 'o='"),
        (lambda axes: axes.set_xscale("root"), "log or linear, got 'root'"),
        (lambda axes: axes.annotate("a", (0, 0), (1, 1)), "offset points"),
        (lambda axes: axes.plot([1], [2], [3], color=BLUE), "got 3 rows"),
        (lambda axes: axes.plot([1], color=BLUE, solid_capstyle="flat"), "projecting; got 'flat'"),
        (lambda axes: axes.axvline(0, color=BLUE, linestyle="dashed"), "got 'dashed'"),
        (lambda axes: axes.text(0, 0, "a", rotation=45), "0 or 90, got 45"),
        (lambda axes: axes.spines["top"], "left, bottom, got 'top'"),
        (lambda axes: axes.set_xticklabels(["a"]), "set the ticks first"),
        (lambda axes: axes.contour([0, 1], [0, 1], np.eye(2), [0.5], colors=BLUE), "got (2,), (2,), (2, 2)"),
        (
            lambda axes: axes.contour(*np.meshgrid([0, 1], [0, 1]), np.ones((3, 2)), [1], colors=BLUE),
            "(3, 2)",
        ),
        (lambda axes: axes.set_aspect("auto"), "expected 'equal'"),
        (lambda axes: axes.axis("on"), "expected 'off'"),
        (lambda axes: axes.imshow(np.zeros((1, 1, 4)), interpolation="cubic"), "got 'cubic'"),
        (lambda axes: (axes.axhline(0, color=BLUE, label="one"), axes.legend(loc="top")), "got 'top'"),
        (
            lambda _: Figure((5.4, 3.4), INK, GRID).subplots(2, 2, sharex="column"),
            "False, none; got 'column'",
        ),
    ],
)
def test_what_is_not_there_is_named(wrong, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        drawn(wrong)


def test_a_figure_has_its_axes_once():
    figure = Figure((5.4, 3.4), INK, GRID)
    assert isinstance(figure.subplots(), Axes)
    with pytest.raises(ValueError, match="already"):
        figure.subplots()
