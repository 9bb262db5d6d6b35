"""Each benchmark runs, at its smallest, and what it writes has the form of the record that is stored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from book.records.benchmarks import erf_fit
from minigrad.backend import numpy as cpu

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "book" / "records"

pytestmark = pytest.mark.numpy_only("the benchmarks choose their device themselves")


def form(record):
    """The names in a record, at all its depths; of a list, those of its first entry."""
    if isinstance(record, list):
        return form(record[0]) if record else None
    return {name: form(value) for name, value in record.items()} if isinstance(record, dict) else None


def lacking(wanted, found, where=""):
    """The names of one form that another lacks; of cases, kernels and libraries, those that took part."""
    if not isinstance(wanted, dict) or not isinstance(found, dict):
        return []
    partial = where.endswith((".cases", ".blas", ".libraries"))
    here = [f"{where}.{name}" for name in wanted if name not in found and not partial]
    return here + [
        one
        for name in wanted
        if name in found
        for one in lacking(wanted[name], found[name], f"{where}.{name}")
    ]


NEED_TORCH = ("before_after", "inference", "pretraining_run", "pretraining_step")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "record", "options"),
    [
        ("base_forward", "base_forward", "--rounds 1"),
        ("before_after", "machine", "--minutes 0 --steps 1 --rounds 1"),
        ("grade_class", "grade_class", "--students 4"),
        ("inference", "inference", "--rounds 1"),
        ("pretraining_run", "pretraining_run", "--steps 4"),
        ("pretraining_step", "pretraining_step", "--cases reduced --rounds 1 --steps 1"),
        ("several_processes", "several_processes", "--cases reduced --rounds 1 --steps 1"),
    ],
)
def test_a_benchmark_writes_a_record_of_the_stored_ones_form(tmp_path, name, record, options):
    if name in NEED_TORCH:
        pytest.importorskip("torch")
    if name == "several_processes":
        pytest.importorskip("mpi4py")
    script, made = RECORDS / "benchmarks" / f"{name}.py", tmp_path / "made.json"
    done = subprocess.run(
        [sys.executable, script, *options.split(), "--record", made],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "book")))},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    stored = json.loads((RECORDS / f"{record}.json").read_text(encoding="utf-8"))
    if name == "pretraining_step":
        stored = {"cpu": stored["cpu"]}
    assert lacking(form(stored), form(json.loads(made.read_text(encoding="utf-8")))) == []


def test_the_error_function_has_the_coefficients_that_are_fitted():
    fitted = erf_fit.fit(len(cpu.ARTANH_ERF) - 1)
    np.testing.assert_allclose(fitted, cpu.ARTANH_ERF, rtol=1e-6)
    assert erf_fit.largest_error(fitted) < 3e-7
