"""The course's figures: drawn for both schemes, from the tables of a run."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from matplotlib import image

from bert_course.common import figures, palette

pytestmark = pytest.mark.no_arrays


def test_read_table_gives_columns(tmp_path):
    (tmp_path / "metrics.csv").write_text("step,mlm_loss\n20,8.1\n40,6.5\n60,5.5\n")
    table = figures.read_table(tmp_path / "metrics.csv")
    assert table["step"] == [20.0, 40.0, 60.0]
    assert table["mlm_loss"] == [8.1, 6.5, 5.5]


def plot(canvas, colours):
    """Two lines with a legend."""
    axes = canvas.subplots()
    axes.plot([1, 2, 3], [2, 1, 4], "o-", color=colours["first"], label="a & b")
    axes.plot([1, 2, 3], [1, 1, 1], color=colours["gradient"])
    axes.legend()


def test_a_picture_is_drawn_for_both_schemes(tmp_path):
    figures.draw(plot, tmp_path / "pictures" / "curve", (4.0, 2.0))
    drawn = {
        scheme: image.imread(tmp_path / "pictures" / f"curve-{scheme}.png") for scheme in figures.SCHEMES
    }
    light, dark = drawn["light"], drawn["dark"]
    assert light.shape == dark.shape
    assert not np.array_equal(light, dark)
    assert light[0, 0].tolist() == [1, 1, 1, 1]  # white: a page that shows one scheme alone shows this
    assert dark[0, 0, 3] == 0  # see-through
    assert (dark[..., 3] == 1).any()


def test_drawing_leaves_matplotlibs_settings_alone(tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    figures.draw(plot, tmp_path / "curve", (4.0, 2.0))
    assert dict(matplotlib.rcParams) == before


def test_a_figure_is_one_drawing_in_the_pages_colours():
    shown = figures.figure(plot, 'a "line"')._repr_html_()
    drawn = shown[shown.index("<svg ") : shown.rindex("</svg>")]
    assert 'role="img" aria-label="a &quot;line&quot;"' in drawn
    assert "var(--course-first)" in drawn
    assert "var(--course-gradient" in drawn
    assert not re.search(r"#[0-9a-f]{6}", drawn.replace("url(#", ""))  # no colour that stays in the dark
    assert "a &amp; b" in drawn  # text is text
    assert shown.count("<svg ") == 1


def test_a_number_in_a_text_keeps_its_digits_and_one_in_a_path_does_not():
    def three_digits(canvas, colours):
        canvas.subplots().set_title("sigma = 0.125")

    shown = figures.figure(three_digits, "x").svg
    assert "sigma = 0.125" in shown
    assert not re.search(r"\d\.\d{3}", shown.replace("0.125", ""))


def test_figures_on_one_page_do_not_repeat_names():
    shown = figures.figure(plot, "x").svg
    names = re.findall(r'\bid="([^"]+)"', shown)
    assert all(f"#{name}" in shown for name in names)  # only those that the drawing refers to


def test_in_a_page_the_courses_own_drawing_draws(monkeypatch):
    monkeypatch.setattr(figures, "IN_A_PAGE", True)
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # not even imported
    shown = figures.figure(plot, 'a "line"')._repr_html_()
    drawn = shown[shown.index("<svg ") : shown.rindex("</svg>")]
    assert 'role="img" aria-label="a &quot;line&quot;"' in drawn
    assert "var(--course-first)" in drawn
    assert "a &amp; b" in drawn


@pytest.mark.parametrize(
    "wrong",
    [
        lambda canvas, colours: canvas.subplots().pie([1]),
        lambda canvas, colours: canvas.subplots(height_ratios=[1]),
    ],
)
def test_in_a_page_an_error_says_what_draws(monkeypatch, wrong):
    monkeypatch.setattr(figures, "IN_A_PAGE", True)
    with pytest.raises((AttributeError, TypeError), match=r"pie|height_ratios") as caught:
        figures.figure(wrong, "x")
    assert caught.value.__notes__ == [figures.NOTE]


@pytest.mark.parametrize("scheme", figures.SCHEMES)
@pytest.mark.parametrize("name", sorted(set(palette.COLOURS) - {"grid"}))
def test_each_colour_can_be_read_on_its_page(name, scheme):
    """At least 4.5 : 1 (WCAG 2.2, 1.4.3) on white or on the dark theme's ground: figures have text in colour."""
    ground = {"light": "#ffffff", "dark": "#14181e"}[scheme]

    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted(map(luminance, (figures.SCHEMES[scheme][name], ground)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) > 4.5


def test_a_colour_that_the_palette_lacks_is_named():
    with pytest.raises(ValueError, match="no colour 'bleu': the course has ink, grid"):
        palette.colour("bleu")


def test_numbers_become_tints():
    image = figures.tinted(np.array([[1.0, -0.5, 0.0]]), "#0000ff", "#ff0000")
    np.testing.assert_allclose(image[0], [[0, 0, 1, 1], [1, 0, 0, 0.5], [0, 0, 1, 0]])
