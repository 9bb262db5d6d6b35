"""Chapter `optimisers`: the picture of the valley, and the stored trajectories, which are PyTorch's and ours."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from minigrad import optim
from minigrad.bert.stored import stored
from minigrad.course.chapters.optimisers import distance, loss_curves, pytorch_reference, replay, valley

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "optimiser_trajectories.py"


@pytest.mark.oracle
@pytest.mark.no_arrays
def test_the_stored_trajectories_are_pytorchs(torch):
    kept = json.loads(stored("pytorch_trajectories.json").read_text())
    made = runpy.run_path(str(SCRIPT))["reference"]()
    assert kept.keys() == made.keys()
    assert kept["torch"] == made["torch"]
    assert kept["cases"].keys() == made["cases"].keys()
    for name, value in made["start"].items():
        np.testing.assert_array_equal(kept["start"][name], value)
    for name, case in made["cases"].items():
        stored_case = kept["cases"][name]
        assert stored_case | {"end": None} == case | {"end": None}
        for parameter, value in case["end"].items():
            np.testing.assert_allclose(stored_case["end"][parameter], value, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", pytorch_reference()["cases"])
def test_our_optimisers_take_pytorchs_steps(name):
    case = pytorch_reference()["cases"][name]
    assert distance(replay(case), case["end"]) < 1e-12


def test_a_replay_with_another_optimiser_ends_elsewhere():
    case = pytorch_reference()["cases"]["AdamW"]
    assert distance(replay(case, optim.Adam), case["end"]) > 0.1


def test_the_valley_has_a_line_for_each_path_and_numbers_on_both_axes():
    path = np.array([[-5.0, 1.0], [0.0, 0.0]])
    picture = valley({"one": path, "two": path / 2}, (0.04, 1.0), 5.6, ("a", "b < c"))
    assert picture.count("<polyline") == 2
    assert re.findall(r">(−?\d)<", picture) == ["−4", "−2", "0", "2", "4", "−2", "0", "2"]
    assert "b &lt; c" in picture


def test_the_curves_leave_room_for_their_names():
    picture = loss_curves({"low": [1.0, 0.5], "high": [1.0, 30.0]}, 1.1, "two losses")
    assert picture.alt == "two losses"
    assert all(f">{name}<" in picture.svg for name in ("low", "high", "loss (nats)"))
