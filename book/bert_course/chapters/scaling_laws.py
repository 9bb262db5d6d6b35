"""Laws of loss against size and data, and fits of them: chapter `scaling`.

The form is Hoffmann et al. 2022, equation 2: loss = E + A / N^α + B / D^β. N: parameters. D: tokens that a model has
trained on. E: the floor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

STARTS = ((0.3, 0.3), (0.3, 1.0), (1.0, 0.3), (1.0, 1.0))  # exponents that the search begins with
ROUNDS, LEAST_DAMPING = 200, 1e-12


@dataclass(frozen=True)
class Law:
    """loss = E + A / N^alpha + B / D^beta. A and B are nats at one parameter, at one token."""

    E: float
    A: float
    alpha: float
    B: float
    beta: float

    def __call__(self, N: Any, D: Any) -> Any:
        """The loss in nats of models with N parameters that have trained on D tokens."""
        return self.E + self.A * np.power(N, -self.alpha) + self.B * np.power(D, -self.beta)


def power_law(x: Any, y: Any) -> tuple[float, float, float]:
    """The line through log y against log x: y = c · x^-exponent. Returns the exponent, c, and R²."""
    log_x, log_y = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(y, dtype=float))
    slope, height = np.polyfit(log_x, log_y, 1)
    off = log_y - height - slope * log_x
    spread = log_y - log_y.mean()
    return -float(slope), float(np.exp(height)), float(1 - (off @ off) / (spread @ spread))


def fit(
    N: Any, D: Any, loss: Any, floor: float | None = None, above: bool = True, huber: float = math.inf
) -> Law:
    """The law that is nearest to these runs, by least squares, or by a Huber loss.

    N, D, loss: arrays (n,). floor: E, if it is known; otherwise E is fitted too. The distance is between the
    logarithms of the losses, as in Hoffmann et al. 2022, section 3.3. With a known floor and `above`, it is between the
    logarithms of what is above the floor. huber: a distance beyond it counts by its size and not by its square;
    Hoffmann et al. have 1e-3. Raises ValueError for a loss that is not above the floor.
    """
    N, D, loss = (np.asarray(x, dtype=float) for x in (N, D, loss))
    if (loss - (floor or 0.0)).min() <= 0:
        raise ValueError(f"expected losses above {floor or 0.0}, got {loss.min()}")
    target = loss - floor if floor and above else loss
    fixed = np.log(floor) if floor and not above else None
    means = np.log(N).mean(), np.log(D).mean()
    log_n, log_d = np.log(N) - means[0], np.log(D) - means[1]
    searches = _searches(log_n, log_d, np.log(target), floor is None, fixed, huber)
    found = min(searches, key=lambda one: one[0])
    log_a, alpha, log_b, beta, *log_e = found[1]
    return Law(
        float(np.exp(log_e[0])) if log_e else float(floor or 0.0),
        float(np.exp(log_a + alpha * means[0])),
        float(alpha),
        float(np.exp(log_b + beta * means[1])),
        float(beta),
    )


def _distance(off: np.ndarray, huber: float) -> float:
    """Twice the sum of the Huber losses of the residuals: of their squares, if huber is infinite."""
    near = np.minimum(np.abs(off), huber)
    return float((2 * near * np.abs(off) - near**2).sum())


def _searches(
    log_n: np.ndarray,
    log_d: np.ndarray,
    wanted: np.ndarray,
    with_floor: bool,
    fixed: float | None,
    huber: float,
) -> Iterator[tuple[float, np.ndarray]]:
    """From each start the distance that Levenberg and Marquardt's steps end at, and log A, α, log B, β, log E."""
    lowest = wanted.min()
    for alpha, beta in STARTS:
        half = lowest - np.log(3.0)
        theta = np.array([half, alpha, half, beta, *([half] if with_floor else [])])
        damping = 1.0
        off, slopes = _residuals(theta, log_n, log_d, wanted, fixed)
        for _ in range(ROUNDS):
            weighted = slopes.T * np.minimum(1, huber / np.maximum(np.abs(off), 1e-300))
            hessian = weighted @ slopes
            step = np.linalg.solve(hessian + damping * np.diag(hessian.diagonal() + 1e-9), weighted @ off)
            tried = theta - np.clip(step, -1.0, 1.0)
            off_there, slopes_there = _residuals(tried, log_n, log_d, wanted, fixed)
            here, there = _distance(off, huber), _distance(off_there, huber)
            if there < here:
                theta, off, slopes, damping = tried, off_there, slopes_there, max(damping / 4, LEAST_DAMPING)
                if here - there < 1e-14 * here:
                    break
            else:
                damping *= 4
                if damping > 1e9:
                    break
        yield _distance(off, huber), theta


def _residuals(
    theta: np.ndarray, log_n: np.ndarray, log_d: np.ndarray, wanted: np.ndarray, fixed: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """log(E + A / N^α + B / D^β) less the wanted values (n,), and its slopes (n, 4 or 5).

    fixed: log E, where E is known and part of the wanted values.
    """
    log_a, alpha, log_b, beta, *log_e = theta
    logs = [log_a - alpha * log_n, log_b - beta * log_d]
    logs += [np.full(len(wanted), log_e[0])] if log_e else []
    total = np.logaddexp.reduce(logs if fixed is None else [*logs, np.full(len(wanted), fixed)])
    shares = [np.exp(one - total) for one in logs]
    slopes = [shares[0], -shares[0] * log_n, shares[1], -shares[1] * log_d, *shares[2:]]
    return total - wanted, np.stack(slopes, axis=1)


def bootstrap(N: Any, D: Any, loss: Any, times: int = 200, seed: int = 0, **how: Any) -> list[Law]:
    """The fits of so many draws of the cells, as many as there are, with repetition.

    A cell is all runs with one N and one D: its seeds are no independent evidence for the form of the law. how: of
    `fit`.
    """
    N, D, loss = (np.asarray(x, dtype=float) for x in (N, D, loss))
    cells = [np.flatnonzero((n == N) & (d == D)) for n, d in sorted(set(zip(N, D, strict=True)))]
    rng = np.random.default_rng(seed)
    draws = (
        np.concatenate([cells[i] for i in rng.integers(0, len(cells), len(cells))]) for _ in range(times)
    )
    return [fit(N[drawn], D[drawn], loss[drawn], **how) for drawn in draws]
