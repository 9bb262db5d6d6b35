"""The whole of BERT on one screen: its numbers are the model's, its circles the reader's parts."""

from __future__ import annotations

import math
import re

import pytest

from minigrad.bert import PRESETS, parameter_shapes

pytest.importorskip("matplotlib")
from minigrad.course.furniture.architecture import PART_OF, architecture, transformer
from minigrad.course.parts import PARTS


@pytest.mark.parametrize("preset", ["base", "reduced"])
def test_its_parameters_are_the_models(preset: str):
    shapes = parameter_shapes(PRESETS[preset])
    found = architecture(preset).svg
    layers = PRESETS[preset].num_hidden_layers
    each = [float(number) for number in re.findall(r"([\d.]+) M<", found)]
    total = each[0] + layers * (each[1] + each[2]) + each[3]
    exact = sum(math.prod(shape) for name, shape in shapes.items() if name.startswith("bert."))
    assert total == pytest.approx(exact / 1e6, abs=0.05 * (2 + 2 * layers))


def test_each_part_has_a_circle_and_the_shapes_are_there():
    drawn = architecture().svg
    assert sorted({n for numbers in PART_OF.values() for n in numbers}) == list(range(1, len(PARTS) + 1))
    assert all(f">{number}</text>" in drawn for number in range(1, len(PARTS) + 1))
    assert all(
        f">{words}<" in drawn for words in ("X₀ (5, 768)", "X₁₂ (5, 768)", "12 ×", "C (768): one vector")
    )


def test_the_transformer_has_two_stacks_and_the_second_three_parts():
    drawn = transformer().svg
    for name, times in (
        ("self-attention", 1),
        ("self-attention, masked", 1),
        ("cross-attention", 1),
        ("feed-forward", 2),
        ("add, normalise", 5),
        ("6 ×", 2),
        ("words + positions", 2),
    ):
        assert drawn.count(f">{name}<") == times, name
