"""Tables: the same cells as HTML and as text."""

from __future__ import annotations

import re

import numpy as np
import pytest

from minigrad.course.furniture.tables import folded, spread, table

pytestmark = pytest.mark.no_arrays


def cells(shown: str) -> list[list[str]]:
    """The rows of an HTML table."""
    rows = re.findall(r"<tr>(.*?)</tr>", shown, re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_cells_are_the_same_in_both_forms():
    made = table(
        ["", "d_k", "entropy", "found"], [["plain", 1024, 0.9185, True], ["scaled", np.int64(8), None, False]]
    )
    assert cells(made._repr_html_()) == [
        ["", "d_k", "entropy", "found"],
        ["plain", "1,024", "0.918", "yes"],
        ["scaled", "8", "", "no"],
    ]
    assert repr(made).split("\n") == [
        "          d_k  entropy  found",
        "plain   1,024    0.918  yes",
        "scaled      8           no",
    ]


def test_digits_column_by_column_and_a_caption():
    made = table(["a", "b", "c"], [["x", 1.0, np.float32(2.5)]], digits=[0, 1, 2], caption="in nats")
    assert repr(made) == "in nats\na    b     c\nx  1.0  2.50"
    assert "<caption>in nats</caption>" in made._repr_html_()


def test_nothing_left_of_a_number_has_no_sign():
    made = table(["", "lost"], [["a", -0.0004], ["b", np.float32(-0.0)], ["c", -0.0006]])
    assert repr(made) == "     lost\na   0.000\nb   0.000\nc  -0.001"
    assert spread([-0.0004, 0.0, -0.1]) == "-0.033 (-0.100 to 0.000)"
    assert spread([-0.0004]) == "0.000"


def test_text_in_cells_is_no_html():
    assert "<td>a &lt; b</td>" in table(["", "x"], [["r", "a < b"]])._repr_html_()


def test_rows_are_named_for_those_who_listen():
    shown = table(["", "x"], [["r", 1]])._repr_html_()
    assert '<th scope="row">r</th>' in shown
    assert '<th scope="col" class="number">x</th>' in shown
    assert "<td></td><th" in shown  # the corner is no header


def test_a_row_of_another_length_is_named():
    with pytest.raises(ValueError, match=r"row 1 has 1 cells, the header has 2: \['b'\]"):
        table(["", "x"], [["a", 1], ["b"]])
    with pytest.raises(ValueError, match="digits for 1 columns, the header has 2"):
        table(["", "x"], [], digits=[1])


def test_spread_is_mean_lowest_and_highest():
    assert spread([1, 2, 6]) == "3.000 (1.000 to 6.000)"
    assert spread(np.array([1234.5]), digits=1) == "1,234.5"
    with pytest.raises(ValueError, match="at least one value"):
        spread([])


def test_folded_tables_have_names():
    made = folded({"one & two": (["a", "b"], [["x", 1]]), "three": (["c"], [["y"]])})
    boxes = re.findall(r"<details><summary>(.*?)</summary>.*?</details>", made._repr_html_(), re.DOTALL)
    assert boxes == ["one &amp; two", "three"]
    assert cells(made._repr_html_()) == [["a", "b"], ["x", "1"], ["c"], ["y"]]
    assert repr(made) == "one & two\na  b\nx  1\n\nthree\nc\ny"
