"""Draws are a function of the seed and of how many were made before."""

from __future__ import annotations

import math

import numpy as np
import pytest

from minigrad import backend, manual_seed, random
from minigrad.random import mask_keys


def draws():
    like = backend.default().asarray([0.0])
    return (
        random.generator().standard_normal(5).tolist(),
        backend.to_numpy(random.keep_mask(like, (64,), 0.5)).tolist(),
        random.generator().random(),
    )


def test_one_seed_one_sequence():
    manual_seed(7)
    first = draws()
    manual_seed(7)
    assert draws() == first
    manual_seed(8)
    assert draws() != first


def test_draws_differ_from_one_another():
    manual_seed(7)
    assert draws() != draws()
    assert random.generator().random() != random.generator().random()


def test_state_resumes():
    manual_seed(3)
    draws()
    state = random.get_state()
    assert state == {"seed": 3, "draws": 3}
    expected = draws()
    manual_seed(99)
    random.set_state(state)
    assert random.get_state() == state
    assert draws() == expected
    assert state == {"seed": 3, "draws": 3}


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None])
def test_seeds_that_are_none(seed):
    with pytest.raises(ValueError, match="manual_seed: expected an integer of at least 0, got "):
        manual_seed(seed)


def test_numpy_integers_and_large_seeds():
    manual_seed(np.int64(5))
    assert random.get_state() == {"seed": 5, "draws": 0}
    manual_seed(2**80)
    draws()


def test_does_not_touch_numpys_random_numbers():
    np.random.seed(1)
    before = np.random.random()
    np.random.seed(1)
    manual_seed(4)
    draws()
    assert np.random.random() == before


def test_keep_mask_is_on_the_backend_of_the_array():
    for like in (np.ones(2), backend.default().asarray([1.0])):
        mask = random.keep_mask(like, (3, 5), 0.5)
        assert type(mask) is type(like)
        assert mask.shape == (3, 5)


# --- Dropout's bits --------------------------------------------------------------------------------------


def test_mask_keys_are_those_of_splitmix64():
    """The generator's first number from the state 0, as published; and keys of 32 bits from any state."""
    assert mask_keys(0, 1) == (0xE220A839, 0x7B1DCDAF)
    keys = [mask_keys(seed, draw) for seed in (0, 1, 2**80) for draw in (1, 2, 2**70)]
    assert len(set(keys)) == len(keys)
    assert all(0 <= key < 2**32 for pair in keys for key in pair)


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9])
def test_keep_mask_keeps_its_share(p):
    n = 400_000
    keep = backend.to_numpy(backend.default().keep_mask((n,), p, mask_keys(3, 5)))
    assert keep.dtype == bool
    margin = 5 * math.sqrt(p * (1 - p) / n) + 1 / 65536
    assert abs(keep.mean() - (1 - p)) <= margin


def test_keep_mask_is_a_function_of_seed_and_draw():
    def bits(seed, draw):
        return backend.to_numpy(backend.default().keep_mask((64, 64), 0.5, mask_keys(seed, draw)))

    np.testing.assert_array_equal(bits(1, 2), bits(1, 2))
    masks = [bits(seed, draw).ravel() * 2.0 - 1 for seed, draw in ((1, 2), (2, 1), (1, 3), (0, 2), (2, 2))]
    correlation = np.corrcoef(masks) - np.eye(len(masks))
    assert np.abs(correlation).max() < 5 / 64  # five standard deviations of 4,096 independent bits


def test_keep_mask_entries_are_independent():
    keep = backend.to_numpy(backend.default().keep_mask((512, 512), 0.5, mask_keys(9, 9))) * 2.0 - 1
    for a, b in (
        (keep[:, 1:], keep[:, :-1]),
        (keep[1:], keep[:-1]),
        (keep[:, 4:], keep[:, :-4]),
        (keep[256:], keep[:256]),
    ):
        assert abs((a * b).mean()) < 5 / math.sqrt(a.size)


# --- A share of a batch ----------------------------------------------------------------------------------


def test_shares_of_a_batch_have_the_masks_of_the_whole():
    """Odd widths, so that a share may begin in the middle of a word of bits."""
    like = backend.default().asarray([0.0])
    shapes = [(5, 3, 7), (5 + 9, 3)]
    whole = [backend.to_numpy(random.keep_mask(like, shape, 0.4)) for shape in shapes]
    random.manual_seed(0)
    state = random.get_state()
    chosen = [2, 1, 3, 1, 2]  # of each row of the batch
    for rows in (range(2), range(2, 3), range(3, 5)):
        before, n = sum(chosen[: rows.start]), sum(chosen[rows.start : rows.stop])
        tokens = range(5 + before, 5 + before + n)
        random.set_state(state)
        b = len(rows)
        with random.rows_of_the_whole({b: [rows], b + n: [rows, tokens]}):
            mine = [backend.to_numpy(random.keep_mask(like, s, 0.4)) for s in ((b, 3, 7), (b + n, 3))]
        np.testing.assert_array_equal(mine[0], whole[0][rows.start : rows.stop])
        np.testing.assert_array_equal(mine[1], whole[1][[*rows, *tokens]])


def test_a_mask_without_a_place_in_the_whole():
    like = backend.default().asarray([0.0])
    for shape in ((3, 2), ()):
        with (
            random.rows_of_the_whole({2: [range(2)]}),
            pytest.raises(ValueError, match=r"has no place in the whole: .* names arrays of 2 rows"),
        ):
            random.keep_mask(like, shape, 0.4)
    random.keep_mask(like, (3, 2), 0.4)  # outside, nothing is asked


@pytest.mark.parametrize("ranges", [[range(3)], [range(0, 4, 2)], [range(-1, 1)], []])
def test_places_that_do_not_fit(ranges):
    with (
        pytest.raises(ValueError, match="expected ranges of 2 rows together, got"),
        random.rows_of_the_whole({2: ranges}),
    ):
        pass
