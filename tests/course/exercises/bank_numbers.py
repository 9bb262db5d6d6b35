"""Answers to the exercises of `numbers` as learners write them: wrong ones with what they are told, and right ones."""

from __future__ import annotations

import math

import numpy as np

# --- stops_growing ---------------------------------------------------------------------------------------


def from_epsilon(step):
    return float(2 * step / np.finfo(type(step)).eps)


def a_table_of_types(step):
    return float(step) * 2.0 ** {2: 11, 4: 24, 8: 53}[step.itemsize]


def how_many_steps(step):
    return 2.0 / float(np.finfo(type(step)).eps)


# --- safe_norm -------------------------------------------------------------------------------------------


def hypotenuse_after_hypotenuse(g):
    return math.hypot(*g.ravel().tolist())


def through_vdot(g):
    flat = np.array(g, dtype="d").ravel()
    return math.sqrt(flat @ flat)


# --- largest_scale ---------------------------------------------------------------------------------------


def by_the_exponent(g):
    part, exponent = math.frexp(float(np.max(np.abs(g))))
    return math.ldexp(1.0, 16 - exponent) if part < 65520 / 65536 else math.ldexp(1.0, 15 - exponent)


def tried_in_float16(g):
    def fits(scale):
        with np.errstate(over="ignore"):
            return bool(np.isfinite((g.astype(np.float64) * scale).astype(np.float16)).all())

    return max(2.0**k for k in range(-120, 170) if fits(2.0**k))


# --- merged_moments --------------------------------------------------------------------------------------


def from_deviations(n1, m1, v1, n2, m2, v2):
    share = n2 / (n1 + n2)
    m = m1 + share * (m2 - m1)
    return m, (1 - share) * (v1 + (m1 - m) ** 2) + share * (v2 + (m2 - m) ** 2)


def from_made_up_rows(n1, m1, v1, n2, m2, v2):
    """The moments of two blocks of rows with these moments, around m1."""
    d, n = m2 - m1, n1 + n2
    first, second = n1 * v1, n2 * (v2 + d * d)  # sums of squares around m1
    off = n2 * d / n
    return m1 + off, (first + second) / n - off * off


def in_float32(n1, m1, v1, n2, m2, v2):
    return from_deviations(n1, m1.astype(np.float32), v1, n2, m2.astype(np.float32), v2)


RIGHT = {
    "stops_growing": [from_epsilon, a_table_of_types],
    "safe_norm": [hypotenuse_after_hypotenuse, through_vdot],
    "largest_scale": [by_the_exponent, tried_in_float16],
    "merged_moments": [from_deviations, from_made_up_rows],
}
WRONG = {
    "stops_growing": [
        (lambda step: how_many_steps(step) - 1, ("[steps]", "[one-step-early]")),
        (lambda step: float(np.cumsum(np.full(100_000, step))[-1]), "Right only on: float16(1); float16(4)"),
    ],
    "safe_norm": [(lambda g: float(g.max()) * through_vdot(g / (float(g.max()) or 1.0)), "[not-in-size]")],
    "largest_scale": [
        (lambda g: 2.0 ** np.floor(np.log2(65504 / float(g.max()))), ("[not-in-size]", "[rounded-down]"))
    ],
    "merged_moments": [
        (
            lambda n1, m1, v1, n2, m2, v2: (
                (m1 + m2) / 2,
                from_deviations(n1, m1, (v1 + v2) / 2, n2, m2, (v1 + v2) / 2)[1],
            ),
            ("[plain-mean-of-variances]", "[plain-mean-of-means]"),
        ),
        (in_float32, "means near -1e9"),
    ],
}
