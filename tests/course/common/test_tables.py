"""Tables: the same cells as HTML and as text."""

from __future__ import annotations

import numpy as np
import pytest

from bert_course.common.tables import spread, table

pytestmark = pytest.mark.no_arrays


def test_nothing_left_of_a_number_has_no_sign():
    made = table(["", "lost"], [["a", -0.0004], ["b", np.float32(-0.0)], ["c", -0.0006]])
    assert repr(made) == "     lost\na   0.000\nb   0.000\nc  -0.001"
    assert spread([-0.0004, 0.0, -0.1]) == "-0.033 (-0.100 to 0.000)"
    assert spread([-0.0004]) == "0.000"


def test_text_in_cells_is_no_html():
    assert "<td>a &lt; b</td>" in table(["", "x"], [["r", "a < b"]])._repr_html_()


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
