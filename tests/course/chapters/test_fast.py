"""Chapter 24's pairs compute the same, and its record has what the page reads."""

from __future__ import annotations

import json

import numpy as np
import pytest

from minigrad.course.chapters import fast
from minigrad.course.chapters.fast import PAIRS, in_blocks
from minigrad.course.stored import stored

pytestmark = pytest.mark.numpy_only("the CPU's memory")


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setattr("minigrad.backend._default", fast.numpy)


@pytest.mark.parametrize("name", [name for name in PAIRS if "random" not in name])
def test_both_sides_of_a_pair_compute_the_same(name):
    before, after, make = PAIRS[name]
    results = []
    for function in (before, after):
        arguments = make()
        result = function(*arguments)
        results.append(arguments[0] if result is None else result)  # AdamW changes its first argument
    assert np.abs(np.asarray(results[0])).max() > 0
    for one, other in zip(*map(np.atleast_2d, results), strict=True):
        # A sum's rounding goes with its terms, not with what is left of them: so with the largest entry.
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6 * max(1, np.abs(one).max()))


def test_both_masks_keep_the_right_share():
    name = "random words instead of floats"
    for draw in PAIRS[name][:2]:
        assert abs(draw((400, 500), 0.1, 3).mean() - 0.9) < 0.005


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("size", [0, 1, 7, 100])
def test_blocks_cover_everything_once(size, threads):
    seen = np.zeros(size, int)

    def kernel(b):
        seen[b] += 1

    in_blocks(kernel, size, 7, threads)
    assert (seen == 1).all()


def test_an_error_in_a_block_is_raised():
    def kernel(b):
        if b.start == 7:  # the second thread's
            raise ValueError("seven")

    with pytest.raises(ValueError, match="seven"):
        in_blocks(kernel, 20, 7, 2)


def test_the_blas_kernel_is_named():
    assert fast.blas_kernel()


def test_the_record_has_every_pair():
    record = json.loads(stored("machine.json").read_text())
    assert set(record["pairs"]) == set(PAIRS)
    for ms in record["pairs"].values():
        assert ms["before"] > 0
        assert ms["after"] > 0
