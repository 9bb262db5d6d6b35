"""The runs of chapter `modern` are read as they are stored, and its two encoders differ as the picture says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from minigrad.course.chapters.modern_figures import LOOKS, Runs, two_encoders

pytestmark = pytest.mark.numpy_only("figures are drawn on the CPU")


def run(change, seed, losses, text="light", **more):
    curve = [[250 * i, loss] for i, loss in enumerate(losses)]
    return {"change": change, "text": text, "seed": seed, "curve": curve, **more}


RECORD = {
    "floors": {"light": 0.5, "long": 0.25},
    "runs": [
        run("BERT", 1, [2.5, 1.5, 0.75], probe=0.625),
        run("BERT", 0, [2.5, 1.0, 0.6], probe=0.875),
        run("BERT", 100, [2.5, 0.5]),
        run("BERT", 0, [2.25, 0.5], text="long"),
        run("ALiBi", 0, [2.5, 2.0, 1.5]),
    ],
}


def test_gaps_are_those_of_the_compared_runs_in_the_order_of_their_seeds():
    runs = Runs(RECORD)
    np.testing.assert_allclose(runs.gaps("BERT"), [0.1, 0.25])
    np.testing.assert_allclose(runs.gaps("BERT", judge="probe"), [0.375, 0.125])
    np.testing.assert_allclose(runs.gaps("BERT", "long"), [0.25])
    with pytest.raises(LookupError, match="'rotary' on light stories"):
        runs.gaps("rotary")


def test_the_step_by_which_so_much_is_gone_is_one_that_was_measured():
    runs = Runs(RECORD)
    first, second = runs.steps_to("BERT")  # from 2.5, 90 % of the way to 0.5 is 0.7, between 1.0 and 0.6
    assert first == 500
    assert math.isnan(second)
    assert runs.steps_to("ALiBi", 0.25)[0] == 250


def test_only_the_first_norm_is_the_same():
    before, after = LOOKS.values()
    assert len(before) == len(after)
    same = [one[0] for one, other in zip(before, after, strict=True) if one == other]
    assert same == ["normalise"]
    assert all(name in two_encoders().svg for name, _ in (*before, *after))
