"""Answers to the exercises of `arrays` as learners write them: wrong ones with what they are told, and right ones."""

from __future__ import annotations

import numpy as np

from minigrad.ops import broadcasting

# --- unbroadcast -----------------------------------------------------------------------------------------


def all_axes_at_once(dy, shape):
    added = dy.ndim - len(shape)
    axes = [*range(added), *(added + i for i, n in enumerate(shape) if n == 1)]
    return dy.sum(axis=tuple(axes)).reshape(shape)


def as_in_the_library(dy, shape):
    return broadcasting.unbroadcast(dy, shape)


def mean_without_the_ones(dy, shape):
    extra = dy.ndim - len(shape)
    return np.mean(dy, axis=tuple(i for i in range(dy.ndim) if i < extra or shape[i - extra] == 1))


# --- heads_of_batch --------------------------------------------------------------------------------------


def sequence_by_sequence(x, h):
    return np.array([np.stack(np.split(tokens, h, axis=1)) for tokens in x])


def letters_for_axes(x, h):
    return np.einsum("blhd->bhld", x.reshape(*x.shape[:2], h, -1))


# --- window_rule and window_adjoint ----------------------------------------------------------------------


def asked_of_numpy(L, d_model, n):
    x = np.zeros((L, d_model), dtype=np.int8)
    view = np.lib.stride_tricks.sliding_window_view(x, n, axis=0).transpose(0, 2, 1)
    return view.shape, view.strides


def read_off_the_cells(L, d_model, n):
    def cell(w, i, j):
        return (w + i) * d_model + j

    return (L - n + 1, n, d_model), (cell(1, 0, 0), cell(0, 1, 0), cell(0, 0, 1))


def entry_by_entry_of_windows(dy):
    windows, n, d_model = dy.shape
    dx = np.zeros((windows + n - 1, d_model), dy.dtype)
    for w, i in np.ndindex(windows, n):
        dx[w + i] += dy[w, i]
    return dx


def sums_of_diagonals(dy):
    windows, n, _ = dy.shape
    rows = [np.trace(dy[:, ::-1], n - 1 - t, 0, 1) for t in range(windows + n - 1)]
    return np.stack(rows).astype(dy.dtype)


# --- right_by_luck ---------------------------------------------------------------------------------------


def euclid(L, h, d_k):
    a, b = L - 1, h - 1
    while b:
        a, b = b, a % b
    return a * d_k + d_k


def along_the_line(L, h, d_k):
    return np.int64(d_k * (1 + np.gcd(h - 1, L - 1)))


def counted_in_an_array(L, h, d_k):
    x = np.arange(L * h * d_k)
    return int((x.reshape(h, L, d_k) == x.reshape(L, h, d_k).transpose(1, 0, 2)).sum())


RIGHT = {
    "unbroadcast": [all_axes_at_once, as_in_the_library],
    "heads_of_batch": [sequence_by_sequence, letters_for_axes],
    "window_rule": [asked_of_numpy, read_off_the_cells],
    "window_adjoint": [entry_by_entry_of_windows, sums_of_diagonals],
    "right_by_luck": [euclid, along_the_line],
}
WRONG = {
    "unbroadcast": [
        (mean_without_the_ones, ("[mean-of-copies]", "[axis-gone]")),
        (lambda dy, shape: as_in_the_library(dy, shape) if shape else dy, "Wrong only on: (2, 3) to ()"),
        (
            lambda dy, shape: as_in_the_library(dy.astype(np.float64), shape),
            "The numbers are right, and are float64 for float32",
        ),
    ],
    "heads_of_batch": [
        (lambda x, h: sequence_by_sequence(x.swapaxes(1, 2), h), "On 2 sequences of 3 tokens")
    ],
    "window_rule": [
        (lambda L, d_model, n: ((L - n, n, d_model), (1, d_model, 1)), ("[one-too-few]", "[one-cell-on]"))
    ],
    "window_adjoint": [
        (
            lambda dy: entry_by_entry_of_windows(dy.astype(np.float64)),
            "The numbers are right, and are float64",
        )
    ],
    "right_by_luck": [
        (lambda L, h, d_k: euclid(L + 1, h + 1, 1), ("[no-minus-one]", "[rows]")),
        (counted_in_an_array, "On L = 2**50 + 1"),
    ],
}
