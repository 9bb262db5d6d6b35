"""Runs that earlier versions have begun open, and go on as they would have there.

`earlier_runs/` has a folder for each kind of run, written at commit d558050: a checkpoint half way, and the weights of
the last step. Another processor, BLAS or NumPy rounds otherwise; where all of them are the same, so is every bit.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
import tiny_task
import tiny_translation
from safetensors.numpy import load_file

from minigrad.training.folders import environment
from minigrad.training.loop import Training

pytestmark = pytest.mark.numpy_only("the weights were computed by NumPy")

EARLIER = Path(__file__).parent / "earlier_runs"


def translation(folder: Path, name: str) -> Training:
    arguments = tiny_translation.changed(save_every=5)
    return tiny_translation.translating(folder / "run", name, arguments=arguments, resume=True)


RUNS: dict[str, Any] = {
    "pretraining": lambda folder: tiny.pretraining(folder / "run", tiny.changed(save_every=5), resume=True),
    "finetuning": lambda folder: tiny_task.run_in(folder, save_every=6, resume=True),
    "lstm": lambda folder: translation(folder, "lstm"),
    "transformer": lambda folder: translation(folder, "transformer"),
}


@pytest.mark.parametrize("name", RUNS)
def test_an_earlier_run_goes_on(name, tmp_path):
    shutil.copytree(EARLIER / name, tmp_path / "run")
    (checkpoint,) = (tmp_path / "run").glob("checkpoint-*")
    there = json.loads((checkpoint / "training.json").read_text())["environment"]
    with RUNS[name](tmp_path) as run:
        assert 0 < run.step < run.total_steps
        tiny.quietly(run)
    last = run.output / f"checkpoint-{run.total_steps:06d}" / "model.safetensors"
    found, expected = load_file(last), load_file(EARLIER / name / "last.safetensors")
    assert found.keys() == expected.keys()
    for weight, array in expected.items():
        # A key's bias moves no attention weight: its gradient is rounding, which Adam makes as large as any other's.
        if not weight.endswith("key.bias"):
            np.testing.assert_allclose(found[weight], array, rtol=1e-3, atol=1e-4, err_msg=weight)
        if there == environment():
            np.testing.assert_array_equal(found[weight], array, err_msg=weight)
