"""The fits of chapter `scaling`: they find the law that made the losses."""

from __future__ import annotations

import numpy as np
import pytest

from bert_course.chapters.scaling_laws import Law, bootstrap, fit

LAW = Law(0.47, 60.0, 0.5, 30000.0, 0.75)


def runs(noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    N = np.repeat(6000.0 * 4.0 ** np.arange(5), 9)
    D = np.tile(np.repeat([3e5, 1.2e6, 4.8e6], 3), 5)
    return N, D, LAW.E + (LAW(N, D) - LAW.E) * np.exp(noise * rng.standard_normal(len(N)))


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


def test_a_loss_below_the_floor_is_refused():
    N, D, loss = runs()
    with pytest.raises(ValueError, match=r"expected losses above 0\.9"):
        fit(N, D, loss, 0.9)


def test_the_bootstrap_draws_cells_with_all_their_seeds():
    """The same runs three times over are no more evidence than once."""
    N, D, loss = runs(0.1)
    once, thrice = (
        [law.alpha for law in bootstrap(*(np.tile(x, n) for x in (N, D, loss)), floor=0.47, times=20)]
        for n in (1, 3)
    )
    assert once == pytest.approx(thrice, rel=1e-6)
