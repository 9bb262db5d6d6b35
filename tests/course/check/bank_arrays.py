"""Answers to the exercises of chapter 1 as learners write them: wrong ones with what they are told, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad.ops import broadcasting

__all__ = ["RIGHT", "WRONG"]

# --- unbroadcast -----------------------------------------------------------------------------------------


def all_axes_at_once(dy, shape):
    added = dy.ndim - len(shape)
    axes = [*range(added), *(added + i for i, n in enumerate(shape) if n == 1)]
    return dy.sum(axis=tuple(axes)).reshape(shape)


def entry_by_entry(dy, shape):
    out = np.zeros(shape, dy.dtype)
    for place in np.ndindex(dy.shape):
        kept = place[dy.ndim - len(shape) :]
        out[tuple(0 if n == 1 else i for i, n in zip(kept, shape, strict=True))] += dy[place]
    return out


def through_einsum(dy, shape):
    letters = "abcdefgh"[: dy.ndim]
    tail = letters[dy.ndim - len(shape) :]
    kept = "".join(letter for letter, n in zip(tail, shape, strict=True) if n > 1)
    return np.einsum(f"{letters}->{kept}", dy).reshape(shape)


def by_a_matrix(dy, shape):
    """The matrix of the broadcast, transposed."""
    cells = np.broadcast_to(np.arange(math.prod(shape)).reshape(shape), dy.shape).ravel()
    stretch = np.eye(math.prod(shape), dtype=dy.dtype)[cells]  # (dy.size, entries)
    return (stretch.T @ dy.ravel()).reshape(shape)


def as_in_the_library(dy, shape):
    return broadcasting.unbroadcast(dy, shape)


def divided_by_the_copies(dy, shape):
    total = as_in_the_library(dy, shape)
    return total * dy.dtype.type(total.size / dy.size)


def the_ones_alone(dy, shape):
    for i in range(1, len(shape) + 1):
        if shape[-i] == 1:
            dy = dy.sum(axis=-i, keepdims=True)
    return dy


def with_ones_in_front(dy, shape):
    for i in range(1, dy.ndim + 1):
        if i > len(shape) or shape[-i] != dy.shape[-i]:
            dy = dy.sum(axis=-i, keepdims=True)
    return dy


def from_the_left(dy, shape):
    for _ in range(dy.ndim - len(shape)):
        dy = dy.sum(axis=-1)
    for i, n in enumerate(shape):
        if n == 1:
            dy = dy.sum(axis=i, keepdims=True)
    return dy.reshape(shape)


def mean_without_the_ones(dy, shape):
    extra = dy.ndim - len(shape)
    return np.mean(dy, axis=tuple(i for i in range(dy.ndim) if i < extra or shape[i - extra] == 1))


def first_copy_in_front_mean_of_the_stretched(dy, shape):
    dy = dy.reshape(-1, *dy.shape[dy.ndim - len(shape) :])[0]
    for i, n in enumerate(shape):
        if n == 1:
            dy = np.mean(dy, axis=i)[(slice(None),) * i + (None,)]
    return dy


# --- heads_of_batch --------------------------------------------------------------------------------------


def sequence_by_sequence(x, h):
    return np.array([np.stack(np.split(tokens, h, axis=1)) for tokens in x])


def the_last_line_mended(x, h):
    B, L, d_model = x.shape
    x = x.reshape(B * L, h, d_model // h).transpose(1, 0, 2)
    return x.reshape(h, B, L, d_model // h).transpose(1, 0, 2, 3)


def letters_for_axes(x, h):
    return np.einsum("blhd->bhld", x.reshape(*x.shape[:2], h, -1))


def the_broken_one(x, h):
    B, L, d_model = x.shape
    x = x.reshape(B * L, d_model)
    x = x.reshape(B * L, h, d_model // h)
    x = x.transpose(1, 0, 2)
    return x.reshape(B, h, L, d_model // h)


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


def by_add_at(dy):
    windows, n, d_model = dy.shape
    dx = np.zeros((windows + n - 1, d_model), dy.dtype)
    np.add.at(dx, np.arange(windows)[:, None] + np.arange(n), dy)
    return dx


def sums_of_diagonals(dy):
    windows, n, _ = dy.shape
    rows = [np.trace(dy[:, ::-1], n - 1 - t, 0, 1) for t in range(windows + n - 1)]
    return np.stack(rows).astype(dy.dtype)


def the_last_window_wins(dy):
    windows, n, d_model = dy.shape
    dx = np.zeros((windows + n - 1, d_model), dy.dtype)
    for w in range(windows):
        dx[w : w + n] = dy[w]
    return dx


# --- right_by_luck ---------------------------------------------------------------------------------------


def head_after_head_by_division(L, h, d_k):
    if h == 1:
        return L * d_k
    return sum(d_k for i in range(h) if i * (L - 1) % (h - 1) == 0)


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
    "unbroadcast": [all_axes_at_once, entry_by_entry, through_einsum, by_a_matrix, as_in_the_library],
    "heads_of_batch": [sequence_by_sequence, the_last_line_mended, letters_for_axes],
    "window_rule": [asked_of_numpy, read_off_the_cells],
    "window_adjoint": [entry_by_entry_of_windows, by_add_at, sums_of_diagonals],
    "right_by_luck": [head_after_head_by_division, euclid, along_the_line],
}
WRONG = {
    "unbroadcast": [
        (divided_by_the_copies, "You take a mean over copies"),
        (
            lambda dy, shape: dy.sum(axis=tuple(range(dy.ndim))[: dy.ndim - len(shape)]),
            "and not over those that were stretched",
        ),
        (the_ones_alone, "in front are still there, with all their copies"),
        (with_ones_in_front, "in front are still there, with length 1"),
        (from_the_left, "You line the shapes up from the left"),
        (mean_without_the_ones, ("You take a mean over copies", "Yours is gone")),
        (
            first_copy_in_front_mean_of_the_stretched,
            ("You take what one copy gets", "You take a mean over copies"),
        ),
        (lambda dy, shape: as_in_the_library(dy, shape) if shape else dy, "Wrong is only: (2, 3) to ()"),
        (
            lambda dy, shape: as_in_the_library(dy.astype(np.float64), shape),
            "The numbers are right, and are float64 for float32",
        ),
    ],
    "heads_of_batch": [
        (the_broken_one, "This has the fault of the broken function"),
        (lambda x, h: x.reshape(len(x), h, x.shape[1], -1), "A plain reshape of each sequence"),
        (
            lambda x, h: np.stack([x[:, :, i::h] for i in range(h)], axis=1),
            "You deal the columns out like cards",
        ),
        (lambda x, h: np.stack(np.split(x, h, axis=2)), "The heads are in front of the batch"),
        (lambda x, h: np.stack(np.split(x, h, axis=2), axis=2), "The head is still the third axis"),
        (lambda x, h: sequence_by_sequence(x, h)[:, ::-1], "The heads come in the opposite order"),
        (lambda x, h: sequence_by_sequence(x, 2), "Your answer has two heads"),
        (lambda x, h: sequence_by_sequence(x.swapaxes(1, 2), h), "On 2 sequences of 3 tokens"),
        (lambda x, h: sequence_by_sequence(x, h).tolist(), "only the type is not what is asked for"),
    ],
    "window_rule": [
        (
            lambda L, d_model, n: ((L - n + 1, n, d_model), (n * d_model, d_model, 1)),
            "Your windows do not overlap",
        ),
        (
            lambda L, d_model, n: ((L // n, n, d_model), (n * d_model, d_model, 1)),
            "Your windows do not overlap",
        ),
        (lambda L, d_model, n: ((L - n, n, d_model), (d_model, d_model, 1)), "One window is missing"),
        (
            lambda L, d_model, n: ((L - n + 1, n, d_model), (8 * d_model, 8 * d_model, 8)),
            "These strides are in bytes",
        ),
        (
            lambda L, d_model, n: ((d_model, d_model, 1), (L - n + 1, n, d_model)),
            "Shape and strides are exchanged",
        ),
        (
            lambda L, d_model, n: ((L + 1 - n, n, d_model), (d_model, n, 1)),
            "One step along the window is n cells",
        ),
        (
            lambda L, d_model, n: ((n, L - n + 1, d_model), (d_model, d_model, 1)),
            "The first axis counts the windows",
        ),
        (
            lambda L, d_model, n: ((L - n, n, d_model), (1, d_model, 1)),
            ("One window is missing", "The next window begins one cell later"),
        ),
    ],
    "window_adjoint": [
        (the_last_window_wins, "Each token keeps only what one window gives it"),
        (lambda dy: np.concatenate(list(dy)), "You put the windows one after the other"),
        (
            lambda dy: entry_by_entry_of_windows(dy) / dy.dtype.type(dy.shape[1]),
            "You take the mean over a token's",
        ),
        (lambda dy: entry_by_entry_of_windows(dy[:, ::-1]), "The places are counted from the end"),
        (lambda dy: entry_by_entry_of_windows(np.ones_like(dy)), "That counts the copies"),
        (lambda dy: np.einsum("wij->ij", dy), "You sum over the windows and keep the places"),
        (
            lambda dy: entry_by_entry_of_windows(dy.astype(np.float64)),
            "The numbers are right, and are float64",
        ),
    ],
    "right_by_luck": [
        (lambda L, h, d_k: d_k + d_k, "can have more solutions"),
        (
            lambda L, h, d_k: (
                sum(d_k for i in range(1, h) if i * (L - 1) % (h - 1) == 0) if h > 1 else (L - 1) * d_k
            ),
            "One row is missing",
        ),
        (
            lambda L, h, d_k: sum(
                d_k for i in range(h) for t in range(min(L, 3000)) if t * (h - 1) == i * (L - 1)
            ),
            "You look at the first tokens only",
        ),
        (
            lambda L, h, d_k: euclid(L + 1, h + 1, 1),
            ("You take a common divisor of h and L", "That is how many rows are right"),
        ),
        (
            lambda L, h, d_k: (euclid(L, h, 1) - 1) / L / h,
            ("That is the share of the right entries", "One row is missing"),
        ),
        (counted_in_an_array, "On L = 2**50 + 1"),
    ],
}
