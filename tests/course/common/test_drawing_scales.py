"""Ticks of the course's own drawing: the numbers at which matplotlib has them, written as it writes them."""

from __future__ import annotations

import numpy as np
import pytest

from bert_course.common.drawing.scales import Linear, Logarithmic

pytestmark = pytest.mark.no_arrays


@pytest.mark.parametrize("seed", range(20))
def test_ticks_are_round_numbers_at_which_matplotlib_has_them_too(seed):
    ticker = pytest.importorskip("matplotlib.ticker")
    rng = np.random.default_rng(seed)
    low = rng.uniform(-3, 3) * 10.0 ** rng.integers(-2, 4)
    high = low + 10 ** rng.uniform(-2, 4)
    room = int(rng.integers(2, 12))
    expected = ticker.MaxNLocator(min(room, 9), steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    expected = [value for value in expected if low <= value <= high]
    found = Linear().ticks((low, high), room)
    np.testing.assert_allclose([value for value, _ in found], expected, atol=1e-9 * (high - low))
    written = [float(name.replace("−", "-")) for _, name in found]
    np.testing.assert_allclose(written, expected, atol=1e-9 * (high - low))  # no digit is lost
    assert len({name for _, name in found}) == len(found)


@pytest.mark.parametrize(
    ("high", "names"),
    [(10, "0.0 2.5 5.0 7.5 10.0"), (1, "0.00 0.25 0.50 0.75 1.00"), (100, "0 25 50 75 100")],
)
def test_a_step_of_two_and_a_half_is_written_with_all_its_digits(high, names):
    assert [name for _, name in Linear().ticks((0, high), 4)] == names.split()


def test_many_powers_are_thinned_out_as_matplotlib_does():
    ticker = pytest.importorskip("matplotlib.ticker")
    rng = np.random.default_rng(0)
    for _ in range(500):
        low, room = rng.uniform(-9, 9), int(rng.integers(2, 10))
        limits = 10**low, 10 ** (low + rng.uniform(0.1, 25))
        expected = ticker.LogLocator(numticks=room).tick_values(*limits)
        expected = [value for value in expected if limits[0] <= value <= limits[1]]
        found = [value for value, _ in Logarithmic().ticks(limits, room)]
        np.testing.assert_allclose(found, expected, err_msg=f"limits {limits}, room {room}")


def plain(name):
    """What matplotlib writes at a tick, as we write it."""
    return name.removeprefix("$\\mathdefault{").removesuffix("}$").replace("\\times", "×").replace("-", "−")


@pytest.mark.parametrize("base", [10, 2, 4])
@pytest.mark.parametrize("seed", range(12))
def test_ticks_of_a_logarithmic_scale_are_matplotlibs(base, seed):
    theirs = pytest.importorskip("matplotlib.figure").Figure().subplots()
    rng = np.random.default_rng(seed)
    low = rng.uniform(-9, 9)
    limits = base**low, base ** (low + rng.choice([0.3, 1, 3, 12, 20]) * rng.uniform(0.5, 1))
    theirs.set_xscale("log", base=base)
    theirs.set_xlim(*limits)
    axis = theirs.xaxis
    room = int(rng.integers(1, 12))
    axis.get_tick_space = lambda: room

    def expected(values, formatter):
        values = [float(value) for value in values if limits[0] <= value <= limits[1]]
        return values, list(map(plain, formatter.format_ticks(values)))

    values, names = expected(axis.get_majorticklocs(), axis.get_major_formatter())
    found = Logarithmic(base).ticks(limits, room)
    np.testing.assert_allclose([value for value, _ in found], values)
    assert [name for _, name in found] == names
    few = len(found)
    values, names = expected(axis.get_minorticklocs(), axis.get_minor_formatter())
    found = Logarithmic(base).small_ticks(limits, room)
    # A linear scale's numbers, on which ours have other names
    if few == 0 and found and found[0][1][-1] != "}":
        values = [value for value, _ in Linear().ticks(limits, room)]
        names = [name for _, name in Linear().ticks(limits, room)]
    np.testing.assert_allclose([value for value, _ in found], values)
    assert [name for _, name in found] == names
