"""Answers to the exercises of chapter 22 as learners write them: wrong ones with what they are told, and right ones."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["RIGHT", "WRONG"]

# --- stops_growing ---------------------------------------------------------------------------------------


def doubled_until_it_stays(step):
    total = step
    while total + step > total:
        total = type(step)(total * 2)
    return float(total)


def from_the_spacing(step):
    total = float(step)
    while np.spacing(type(step)(total)) <= step:
        total *= 2
    return total


def from_epsilon(step):
    return float(2 * step / np.finfo(type(step)).eps)


def a_table_of_types(step):
    return float(step) * 2.0 ** {2: 11, 4: 24, 8: 53}[step.itemsize]


def how_many_steps(step):
    return 2.0 / float(np.finfo(type(step)).eps)


def found_in_python_numbers(step):
    step = total = float(step)
    while total + step > total:
        total *= 2
    return total


# --- safe_norm -------------------------------------------------------------------------------------------


def by_the_largest(g):
    top = float(np.abs(g).max())
    if top == 0:
        return 0.0
    return top * float(np.linalg.norm(g.astype(np.float64).ravel() / top))


def hypotenuse_after_hypotenuse(g):
    return math.hypot(*g.ravel().tolist())


def through_vdot(g):
    flat = np.array(g, dtype="d").ravel()
    return math.sqrt(flat @ flat)


def by_the_largest_and_still_narrow(g):
    top = np.max(np.abs(g)) if g.any() else np.ones((), g.dtype)
    shares = g / top
    return float(np.sqrt(np.sum(shares * shares)) * top)


def as_it_was(g):
    return float(np.sqrt((g * g).sum()))


# --- largest_scale ---------------------------------------------------------------------------------------


def by_the_exponent(g):
    part, exponent = math.frexp(float(np.max(np.abs(g))))
    return math.ldexp(1.0, 16 - exponent) if part < 65520 / 65536 else math.ldexp(1.0, 15 - exponent)


def tried_in_float16(g):
    def fits(scale):
        with np.errstate(over="ignore"):
            return bool(np.isfinite((g.astype(np.float64) * scale).astype(np.float16)).all())

    return max(2.0**k for k in range(-120, 140) if fits(2.0**k))


def by_the_logarithm(g):
    return 2.0 ** math.floor(math.log2(65504 / float(np.abs(g).max())))


def by_the_logarithm_of_the_next_power(g):
    return 2.0 ** math.floor(math.log2(65536 / float(np.abs(g).max())))


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


def from_squares(n1, m1, v1, n2, m2, v2):
    n = n1 + n2
    mean = (n1 * m1 + n2 * m2) / n
    return mean, (n1 * (v1 + m1 * m1) + n2 * (v2 + m2 * m2)) / n - mean * mean


def pooled(n1, m1, v1, n2, m2, v2):
    n = n1 + n2
    sums = (n1 - 1) * v1 + (n2 - 1) * v2 + n1 * n2 / n * (m1 - m2) ** 2
    return (n1 * m1 + n2 * m2) / n, sums / (n - 1)


def subtracted(n1, m1, v1, n2, m2, v2):
    n = n1 + n2
    return (n1 * m1 + n2 * m2) / n, (n1 * v1 + n2 * v2) / n - n1 * n2 / n**2 * (m1 - m2) ** 2


def in_float32(n1, m1, v1, n2, m2, v2):
    return from_deviations(n1, m1.astype(np.float32), v1, n2, m2.astype(np.float32), v2)


RIGHT = {
    "stops_growing": [doubled_until_it_stays, from_the_spacing, from_epsilon, a_table_of_types],
    "safe_norm": [by_the_largest, hypotenuse_after_hypotenuse, through_vdot],
    "largest_scale": [by_the_exponent, tried_in_float16],
    "merged_moments": [
        from_deviations,
        from_made_up_rows,
        lambda *blocks: np.stack(from_deviations(*blocks)),
    ],
}
WRONG = {
    "stops_growing": [
        (lambda step: float(step / np.finfo(type(step)).eps), "you are one doubling short"),
        (
            lambda step: float(step) * {2: 2048, 4: 2**23, 8: 2**52}[step.itemsize],
            "you are one doubling short",
        ),
        (how_many_steps, "That is how many steps it takes"),
        (found_in_python_numbers, "You have float64's 53 digits for every dtype"),
        (lambda step: how_many_steps(step) - 1, ("That is how many steps", "You stop one step early")),
        (
            lambda step: 1 / float(np.finfo(type(step)).eps) / float(step),
            ("You divide by the step", "you are one doubling short"),
        ),
        (lambda step: float(np.cumsum(np.full(100_000, step))[-1]), "Right is only: float16(1); float16(4)"),
        (lambda step: np.array([from_epsilon(step)]), "only the type is not what is asked for"),
        (lambda step: float(step) ** (np.finfo(type(step)).nmant + 1), "You raise the step to a power"),
    ],
    "safe_norm": [
        (as_it_was, "The squares are computed in the dtype of g"),
        (lambda g: float(np.linalg.norm(g)), "The squares are computed in the dtype of g"),
        (lambda g: math.sqrt(np.sum(g**2, dtype=np.float64)), "The squares are computed in the dtype of g"),
        (lambda g: as_it_was(g.astype(np.float32)), "float32 is wide enough for the squares of a float16"),
        (
            lambda g: float(np.abs(g).max() * np.sqrt(((g / np.abs(g).max()).astype(float) ** 2).sum())),
            "You divide by the largest entry, and where all are 0",
        ),
        (by_the_largest_and_still_narrow, "Your last steps are in the dtype of g"),
        (lambda g: float(np.abs(g.astype(float)).sum()), "That is the sum of the absolute values"),
        (lambda g: through_vdot(g) ** 2, "The square root is missing"),
        (lambda g: through_vdot(g) / math.sqrt(g.size), "You divide by how many entries there are"),
        (lambda g: float(np.abs(g).max()), "That is the largest entry"),
        (
            lambda g: float(np.sqrt((g.astype(float) ** 2).sum()).astype(g.dtype)),
            "Your last steps are in the dtype of g",
        ),
        (lambda g: float(np.linalg.norm(g.astype(float), 2 if g.ndim > 1 else None)), "largest stretch"),
        (lambda g: float(np.sqrt(np.nan_to_num(g * g).sum(dtype=float))), "infinite among the squares"),
        (lambda g: float(g.max()) * through_vdot(g / (float(g.max()) or 1.0)), "not for the largest in size"),
    ],
    "largest_scale": [
        (by_the_logarithm, "Entries up to 65,520 are still finite"),
        (by_the_logarithm_of_the_next_power, "65,520 and more is rounded up"),
        (lambda g: by_the_exponent(g) / 2, "One doubling more would still be finite"),
        (lambda g: by_the_exponent(np.abs(g).mean()), "You scale the mean of the entries"),
        (lambda g: by_the_exponent(g.max()), "You look for the largest entry and not"),
        (lambda g: max(1.0, by_the_exponent(g)), "You double as long as it fits"),
        (lambda g: min(1.0, by_the_exponent(g)), "You halve until it fits"),
        (lambda g: 65504 / float(np.abs(g).max()), "That is no power of two"),
        (lambda g: float(np.log2(by_the_exponent(g))), "That is the exponent"),
        (lambda g: 65536.0, "That is one scale for all gradients"),
        (lambda g: 2.0 ** np.floor(np.log2(65536 / float(np.abs(g).max()))), "65,520 and more is rounded up"),
        (lambda g: 2.0 ** np.ceil(np.log2(65504 / float(np.abs(g).max()))), "You round the logarithm up"),
        (lambda g: min(2.0**15, by_the_exponent(g)), "above the scale that you start with"),
        (lambda g: by_the_exponent(np.array([np.linalg.norm(g.astype(float))])), "as a norm does"),
        (
            lambda g: 2.0 ** np.floor(np.log2(65504 / float(g.max()))),
            ("not for the largest in size", "Entries up to 65,520"),
        ),
    ],
    "merged_moments": [
        (from_squares, "Far from 0 your variance has no right digit"),
        (
            lambda n1, m1, v1, n2, m2, v2: (
                from_deviations(n1, m1, v1, n2, m2, v2)[0],
                (n1 * v1 + n2 * v2) / (n1 + n2),
            ),
            "You add only the variances within",
        ),
        (
            lambda n1, m1, v1, n2, m2, v2: ((m1 + m2) / 2, from_deviations(n1, m1, v1, n2, m2, v2)[1]),
            "You take the plain mean of the two means",
        ),
        (
            lambda n1, m1, v1, n2, m2, v2: (
                (m1 + m2) / 2,
                from_deviations(n1, m1, (v1 + v2) / 2, n2, m2, (v1 + v2) / 2)[1],
            ),
            ("You take the plain mean of the two variances", "You take the plain mean of the two means"),
        ),
        (lambda *block: from_deviations(*block)[::-1], "The variance comes first"),
        (
            lambda *block: (from_deviations(*block)[0], np.sqrt(from_deviations(*block)[1])),
            "That is the standard deviation",
        ),
        (pooled, "You divide by n - 1"),
        (subtracted, "spreads the rows: add it"),
        (
            lambda n1, m1, v1, n2, m2, v2: ((m1 + m2) / 2, (v1 + v2) / 2),
            "You take plain means of means and variances",
        ),
        (in_float32, "means near -1e9"),
    ],
}
