"""The fits of chapter `scaling`: they find the law that made the losses."""

from __future__ import annotations

import numpy as np
import pytest

from minigrad.course.chapters.scaling_laws import Law, bootstrap, fit, power_law

LAW = Law(0.47, 60.0, 0.5, 30000.0, 0.75)


def runs(noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    N = np.repeat(6000.0 * 4.0 ** np.arange(5), 9)
    D = np.tile(np.repeat([3e5, 1.2e6, 4.8e6], 3), 5)
    return N, D, LAW.E + (LAW(N, D) - LAW.E) * np.exp(noise * rng.standard_normal(len(N)))


def test_a_power_law_is_a_line_of_logarithms():
    exponent, c, r2 = power_law([1, 10, 100], [8, 4, 2])
    assert (exponent, c, r2) == pytest.approx((np.log10(2), 8, 1))
    assert power_law([1, 10, 100], [8, 2, 4])[2] == pytest.approx(0.25)


@pytest.mark.parametrize("floor", [0.47, None])
def test_an_exact_law_is_found(floor):
    found = fit(*runs(), floor)
    wanted = [LAW.E, LAW.A, LAW.alpha, LAW.B, LAW.beta]
    assert [found.E, found.A, found.alpha, found.B, found.beta] == pytest.approx(wanted, rel=1e-3)


@pytest.mark.parametrize("floor", [0.47, None])
def test_no_other_law_near_it_fits_better(floor):
    """The squares of the logarithms' distance grow when any constant is moved a little."""
    N, D, loss = runs(0.1)
    found = fit(N, D, loss, floor)

    def squares(law):
        below = floor or 0.0
        return float(
            (np.log(law(N, D) - below) - np.log(loss - below))
            @ (np.log(law(N, D) - below) - np.log(loss - below))
        )

    names = ["A", "alpha", "B", "beta", *(["E"] if floor is None else [])]
    for name in names:
        for factor in (0.999, 1.001):
            moved = Law(**{**found.__dict__, name: getattr(found, name) * factor})
            assert squares(moved) > squares(found), name


def test_with_a_known_floor_the_distance_can_be_that_of_the_losses():
    """The distance of a fitted floor, so its sum of squares is never below that of the fit that chooses E too."""
    exact = fit(*runs(), 0.47, above=False)
    assert [exact.A, exact.alpha, exact.B, exact.beta] == pytest.approx([60, 0.5, 30000, 0.75], rel=1e-3)
    N, D, loss = runs(0.3)
    losses, above, free = (fit(N, D, loss, *how) for how in ((0.47, False), (0.47,), ()))
    squares = [float(((np.log(law(N, D)) - np.log(loss)) ** 2).sum()) for law in (free, losses, above)]
    assert squares == sorted(squares)


def test_a_loss_below_the_floor_is_refused():
    N, D, loss = runs()
    with pytest.raises(ValueError, match=r"expected losses above 0\.9"):
        fit(N, D, loss, 0.9)


def test_the_bootstrap_is_as_wide_as_the_noise_makes_it():
    def width(noise):
        found = [law.alpha for law in bootstrap(*runs(noise), floor=0.47, times=40)]
        return np.ptp(found)

    assert width(0.0) < 1e-4 < width(0.02) < width(0.2)


def test_the_bootstrap_draws_cells_with_all_their_seeds():
    """The same runs three times over are no more evidence than once."""
    N, D, loss = runs(0.1)
    once, thrice = (
        [law.alpha for law in bootstrap(*(np.tile(x, n) for x in (N, D, loss)), floor=0.47, times=20)]
        for n in (1, 3)
    )
    assert once == pytest.approx(thrice, rel=1e-6)


def test_a_huber_loss_hardly_sees_a_run_that_went_wrong():
    N, D, loss = runs(1e-4)
    loss[3] *= 2
    squares, huber = (fit(N, D, loss, 0.47, huber=beyond) for beyond in (np.inf, 1e-3))
    assert abs(huber.beta - LAW.beta) < 0.002 < 0.02 < abs(squares.beta - LAW.beta)
