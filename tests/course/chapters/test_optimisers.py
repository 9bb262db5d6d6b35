"""Chapter `optimisers`: the picture of the valley, and the stored trajectories, which are PyTorch's and ours."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from bert_course.chapters.optimisers import distance, pytorch_reference, replay
from bert_course.stored import stored

SCRIPT = Path(__file__).resolve().parents[3] / "book" / "records" / "benchmarks" / "optimiser_trajectories.py"


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
