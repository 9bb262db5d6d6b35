"""The whole of BERT on one screen: its numbers are the model's, its circles the reader's parts."""

from __future__ import annotations

import math
import re

import pytest

from minigrad.bert import PRESETS, parameter_shapes

pytest.importorskip("matplotlib")
from minigrad.course.furniture.architecture import architecture


@pytest.mark.parametrize("preset", ["base", "reduced"])
def test_its_parameters_are_the_models(preset: str):
    shapes = parameter_shapes(PRESETS[preset])
    found = architecture(preset).svg
    layers = PRESETS[preset].num_hidden_layers
    each = [float(number) for number in re.findall(r"([\d.]+) M<", found)]
    total = each[0] + layers * (each[1] + each[2]) + each[3]
    exact = sum(math.prod(shape) for name, shape in shapes.items() if name.startswith("bert."))
    assert total == pytest.approx(exact / 1e6, abs=0.05 * (2 + 2 * layers))
