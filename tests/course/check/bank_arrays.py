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


# --- split_heads -----------------------------------------------------------------------------------------


def stacked_columns(x, h):
    return np.stack(np.split(x, h, axis=1))


def head_after_head(x, h):
    d_k = x.shape[1] // h
    return np.array([x[:, i * d_k : (i + 1) * d_k] for i in range(h)])


def through_the_transpose(x, h):
    return x.T.reshape(h, -1, len(x)).swapaxes(1, 2)


def letters_for_axes(x, h):
    return np.einsum("lhd->hld", x.reshape(len(x), h, -1))


def reading_on_and_last_head_first(x, h):
    return np.array(np.split(x.ravel(), h)).reshape(h, len(x), -1)[::-1]


# --- merge_heads -----------------------------------------------------------------------------------------


def beside_each_other(z):
    return np.concatenate(list(z), axis=1)


def filled_in(z):
    out = np.empty((z.shape[1], z.shape[0] * z.shape[2]), z.dtype)
    for i, head in enumerate(z):
        out[:, i * z.shape[2] : (i + 1) * z.shape[2]] = head
    return out


def all_but_the_last(z):
    out = filled_in(z)
    out[:, -z.shape[2] :] = 0
    return out


def axes_of_another_order(z):
    L, h, d_k = z.shape
    return z.reshape(L, h * d_k)


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
    "split_heads": [stacked_columns, head_after_head, through_the_transpose, letters_for_axes],
    "merge_heads": [beside_each_other, np.hstack, filled_in],
    "stops_growing": [doubled_until_it_stays, from_the_spacing, from_epsilon, a_table_of_types],
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
    "split_heads": [
        (lambda x, h: np.stack([x[:, i::h] for i in range(h)]), "You deal the columns out like cards"),
        (lambda x, h: np.stack([part.T for part in np.split(x, h, axis=1)]), "Each head lies on its side"),
        (lambda x, h: x.reshape(h, len(x) // h, -1), "You cut the tokens into h groups"),
        (lambda x, h: stacked_columns(x, 2), "Your answer has two heads"),
        (lambda x, h: np.flip(stacked_columns(x, h), axis=0), "The heads come in the opposite order"),
        (lambda x, h: np.stack([x.T[i::h] for i in range(h)]), ("like cards", "on its side")),
        (
            reading_on_and_last_head_first,
            ("A plain reshape keeps the reading order", "in the opposite order"),
        ),
        (
            lambda x, h: np.stack(np.split(x, h, axis=1)[::-1], axis=1),
            ("The head is still the second axis", "in the opposite order"),
        ),
        (lambda x, h: np.split(x, h, axis=1), "only the type is not what is asked for"),
    ],
    "merge_heads": [
        (
            lambda z: np.dstack(list(z)).reshape(z.shape[1], -1),
            "You take the heads in turn, feature by feature",
        ),
        (lambda z: np.vstack(z), "You put the heads one below the other"),
        (all_but_the_last, "Not all heads are there"),
        (lambda z: np.vstack([head.T for head in z]), "The result lies on its side"),
        (
            lambda z: np.flip(z, 0).ravel().reshape(z.shape[1], -1),
            ("have not changed places", "in the opposite order"),
        ),
        (lambda z: z.transpose(2, 0, 1).reshape(-1, z.shape[1]), ("feature by feature", "lies on its side")),
        (axes_of_another_order, ("have not changed places", "a row for each head")),
        (lambda z: beside_each_other(z).tolist(), "only the type is not what is asked for"),
    ],
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
