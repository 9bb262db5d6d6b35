"""Fit the polynomial with which `minigrad.backend.numpy` computes erf, and print its coefficients.

    python book/records/benchmarks/erf_fit.py

With u(x) = artanh(erf(x / √2)), erf(x / √2) = tanh(u(x)), and u(x) / x is an even, smooth function: a polynomial
in x². An error δ in u is one of about (1 - tanh² u) δ in erf, so the fit is weighted with that, and again
with its own errors until the largest are equal (C. L. Lawson's algorithm).
"""

from __future__ import annotations

import math

import numpy as np

LARGEST = 6.0  # erf(6 / √2) is 1 in float32
ROUNDS = 200

erf = np.vectorize(math.erf)
erfc = np.vectorize(math.erfc)


def fit(degree: int) -> np.ndarray:
    """The coefficients, lowest power of x² first."""
    x = LARGEST * np.cos(np.pi * (np.arange(4000) + 0.5) / 8000)  # denser at the ends
    tail = erfc(x / math.sqrt(2))
    u = 0.5 * np.log((2 - tail) / tail)
    scaled_powers = np.vander((x / LARGEST) ** 2, degree + 1, increasing=True)
    weight = (1 - np.tanh(u) ** 2) * x + 1e-9
    for _ in range(ROUNDS):
        scaled, *_ = np.linalg.lstsq(scaled_powers * weight[:, None], u / x * weight, rcond=None)
        error = np.abs(np.tanh(x * (scaled_powers @ scaled)) - np.tanh(u))
        weight *= np.sqrt(error / error.mean() + 1e-3)
        weight /= weight.max()
    return scaled / LARGEST ** (2.0 * np.arange(degree + 1))


def largest_error(coefficients: np.ndarray) -> float:
    """Of erf in float32, for |x| ≤ 30."""
    x = np.linspace(-30, 30, 400_001).astype(np.float32)
    value = np.full_like(x, coefficients[-1])
    for c in coefficients[-2::-1].astype(np.float32):
        value = value * x * x + c
    return float(np.abs(np.tanh(x * value) - erf(x.astype(float) / math.sqrt(2))).max())


if __name__ == "__main__":
    for degree in range(4, 8):
        coefficients = fit(degree)
        print(f"degree {degree}: error {largest_error(coefficients):.1e}")
        print("   ", ", ".join(f"{c:.8g}" for c in coefficients))
