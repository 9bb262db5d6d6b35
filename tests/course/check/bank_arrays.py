"""Answers to the exercises of chapter 1 as learners write them: wrong ones with their message, and right ones."""

from __future__ import annotations

import itertools
import math

import numpy as np

from minigrad.ops import broadcasting

__all__ = ["RIGHT", "WRONG"]

# --- unbroadcast -----------------------------------------------------------------------------------------


def one_axis_after_the_other(dy, shape):
    while dy.ndim > len(shape):
        dy = dy.sum(0)
    for i, n in enumerate(shape):
        if n == 1 and dy.shape[i] > 1:
            dy = dy.sum(i, keepdims=True)
    return dy


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


def mean_of_each_axis(dy, shape):
    while dy.ndim > len(shape):
        dy = dy.mean(0)
    for i, n in enumerate(shape):
        if n == 1:
            dy = dy.mean(i, keepdims=True)
    return dy


def the_first_of_each_axis(dy, shape):
    while dy.ndim > len(shape):
        dy = dy[0]
    for i, n in enumerate(shape):
        if n == 1:
            dy = np.take(dy, [0], axis=i)
    return dy


def until_the_number_of_axes_fits(dy, shape):
    while dy.ndim > len(shape):
        dy = dy.sum(axis=0)
    return dy


def the_ones_alone(dy, shape):
    offset = dy.ndim - len(shape)
    for i, n in enumerate(shape):
        if n == 1:
            dy = dy.sum(axis=offset + i, keepdims=True)
    return dy


def without_the_ones(dy, shape):
    while dy.ndim > len(shape):
        dy = dy.sum(axis=0)
    ones = [i for i, n in enumerate(shape) if n == 1 and dy.shape[i] != 1]
    return np.sum(dy, axis=tuple(ones))


def with_ones_in_front(dy, shape):
    for i in range(1, dy.ndim + 1):
        if i > len(shape) or shape[-i] != dy.shape[-i]:
            dy = dy.sum(axis=-i, keepdims=True)
    return dy


def the_whole_sum(dy, shape):
    return np.broadcast_to(dy.sum(), shape).copy()


def from_the_left(dy, shape):
    for _ in range(dy.ndim - len(shape)):
        dy = dy.sum(axis=-1)
    for i, n in enumerate(shape):
        if n == 1:
            dy = dy.sum(axis=i, keepdims=True)
    return dy.reshape(shape)


def only_reshaped(dy, shape):
    return dy.reshape(shape)


def without_the_sign(dy, shape):
    return -as_in_the_library(dy, shape)


def in_double(dy, shape):
    return as_in_the_library(dy.astype(np.float64), shape)


def nested_lists(dy, shape):
    return as_in_the_library(dy, shape).tolist()


def printed_only(dy, shape):
    print(as_in_the_library(dy, shape).shape)


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


def only_a_reshape(x, h):
    return np.reshape(x, (h, x.shape[0], -1))


def no_transpose(x, h):
    return np.reshape(x, (len(x), h, -1))


def every_h_th_column(x, h):
    return np.stack([x[:, i::h] for i in range(h)])


def on_its_side(x, h):
    return np.stack([part.T for part in np.split(x, h, axis=1)])


def columns_in_memory(x, h):
    return np.ascontiguousarray(x.T).reshape(h, len(x), -1)


def tokens_in_groups(x, h):
    return np.array(np.split(x, h))


def heads_of_length_h(x, h):
    return x.reshape(len(x), -1, h).swapaxes(0, 1)


def true_division(x, h):
    return x.reshape(x.shape[0], h, x.shape[1] / h).transpose(1, 0, 2)


def reversed_heads(x, h):
    return stacked_columns(x, h)[::-1]


def list_of_heads(x, h):
    return np.split(x, h, axis=1)


def always_two(x, h):
    return stacked_columns(x, 2)


# --- merge_heads -----------------------------------------------------------------------------------------


def beside_each_other(z):
    return np.concatenate(list(z), axis=1)


def horizontally(z):
    return np.hstack(z)


def filled_in(z):
    out = np.empty((z.shape[1], z.shape[0] * z.shape[2]), z.dtype)
    for i, head in enumerate(z):
        out[:, i * z.shape[2] : (i + 1) * z.shape[2]] = head
    return out


def reading_on(z):
    return np.reshape(z, (z.shape[1], z.shape[0] * z.shape[2]))


def shuffled_features(z):
    return np.moveaxis(z, 0, -1).reshape(z.shape[1], -1)


def still_three_axes(z):
    return np.swapaxes(z, 0, 1)


def one_below_the_other(z):
    return np.vstack(z)


def added_up(z):
    return np.einsum("hld->ld", z)


def averaged(z):
    return np.mean(z, axis=0)


def features_before_tokens(z):
    return z.swapaxes(1, 2).reshape(z.shape[1], -1)


def columns_for_tokens(z):
    return beside_each_other(z).T


def backwards(z):
    return beside_each_other(z[::-1])


def rows_as_lists(z):
    return beside_each_other(z).tolist()


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


def one_over_epsilon(step):
    return float(step / np.finfo(type(step)).eps)


def half_an_epsilon_of_a_half(step):
    return float(step) * 4 / float(np.finfo(type(step)).eps)


def how_many_steps(step):
    return 2.0 / float(np.finfo(type(step)).eps)


def the_first_that_is_missing(step):
    return from_epsilon(step) + float(step)


def all_ones(step):
    return from_epsilon(step) - float(step)


def the_largest_there_is(step):
    return float(np.finfo(type(step)).max)


def twenty_four(step):
    return float(step) * 16_777_216


def all_bits(step):
    return float(step) * 2.0 ** (8 * step.nbytes)


def epsilon_alone(step):
    return float(np.finfo(type(step)).eps)


def a_hundred_thousand_steps(step):
    return float(np.cumsum(np.full(100_000, step))[-1])


def never(step):
    return math.inf


# --- right_by_luck ---------------------------------------------------------------------------------------


def head_after_head_by_division(L, h, d_k):
    if h == 1:
        return L * d_k
    return sum(d_k for i in range(h) if i * (L - 1) % (h - 1) == 0) if L > 1 else h * d_k


def euclid(L, h, d_k):
    a, b = L - 1, h - 1
    while b:
        a, b = b, a % b
    return a * d_k + d_k


def along_the_line(L, h, d_k):
    g = np.gcd(h - 1, L - 1)
    return np.int64(d_k * (1 + g))


def always_two_rows(L, h, d_k):
    return d_k + d_k


def the_first_row(L, h, d_k):
    return d_k


def rows_alone(L, h, d_k):
    return 1 + math.gcd(L - 1, h - 1)


def gaps_alone(L, h, d_k):
    return d_k * math.gcd(L - 1, h - 1)


def divisor_of_the_sizes(L, h, d_k):
    return d_k * (1 + math.gcd(L, h))


def divisor_of_the_sizes_without_the_end(L, h, d_k):
    return d_k * math.gcd(L, h)


def by_chance(L, h, d_k):
    return L * h * d_k // h


def a_share(L, h, d_k):
    return (1 + math.gcd(L - 1, h - 1)) / L / h


def counted_in_an_array(L, h, d_k):
    x = np.arange(L * h * d_k)
    return int((x.reshape(h, L, d_k) == x.reshape(L, h, d_k).transpose(1, 0, 2)).sum())


def pairs_of_a_small_text(L, h, d_k):
    return sum(d_k for i, t in itertools.product(range(h), range(min(L, 2000))) if t * (h - 1) == i * (L - 1))


def no_entry_at_all(L, h, d_k):
    return 0


READING_ORDER = "A plain reshape keeps the reading order"

RIGHT = {
    "unbroadcast": [one_axis_after_the_other, entry_by_entry, through_einsum, by_a_matrix, as_in_the_library],
    "split_heads": [stacked_columns, head_after_head, through_the_transpose, letters_for_axes],
    "merge_heads": [beside_each_other, horizontally, filled_in],
    "stops_growing": [doubled_until_it_stays, from_the_spacing, from_epsilon, a_table_of_types],
    "right_by_luck": [head_after_head_by_division, euclid, along_the_line],
}
WRONG = {
    "unbroadcast": [
        (mean_of_each_axis, "You take the mean over the copies"),
        (the_first_of_each_axis, "You take what one copy gets"),
        (until_the_number_of_axes_fits, "and not over those that were stretched"),
        (the_ones_alone, "and not over those that were added in front"),
        (without_the_ones, "The sum has dropped it"),
        (with_ones_in_front, "The axes that were added in front are still there"),
        (the_whole_sum, "You add up everything"),
        (from_the_left, "You line the shapes up from the left"),
        (only_reshaped, "it raised ValueError: cannot reshape array"),
        (without_the_sign, "entries are off"),
        (in_double, "it should return float32, and returned float64"),
        (nested_lists, "and returned a list of 4"),
        (printed_only, "it returned None. Is there a `return` before the result?"),
    ],
    "split_heads": [
        (only_a_reshape, READING_ORDER),
        (no_transpose, "The head is still the second axis"),
        (every_h_th_column, "You deal the columns out like cards"),
        (on_its_side, "Each head lies on its side"),
        (columns_in_memory, "You turn x round and then reshape"),
        (tokens_in_groups, "You cut the tokens into h groups"),
        (heads_of_length_h, "You take h for the length of a head"),
        (true_division, "it raised TypeError: 'float' object cannot be interpreted as an integer"),
        (reversed_heads, "entries are off"),
        (list_of_heads, "and returned a list of 2"),
        (always_two, "On 5 tokens of 12 in 3 heads: it should return shape (3, 5, 4)"),
    ],
    "merge_heads": [
        (reading_on, READING_ORDER),
        (shuffled_features, "You take the heads in turn, feature by feature"),
        (still_three_axes, "the last two have to become one"),
        (one_below_the_other, "You put the heads one below the other"),
        (added_up, "You add the heads up"),
        (averaged, "You average the heads"),
        (features_before_tokens, "You swap the wrong two axes"),
        (columns_for_tokens, "The result lies on its side"),
        (backwards, "entries are off"),
        (rows_as_lists, "and returned a list of 3"),
    ],
    "stops_growing": [
        (one_over_epsilon, "the leading 1 is one more"),
        (half_an_epsilon_of_a_half, "You go one doubling too far"),
        (how_many_steps, "That is how many steps it takes"),
        (the_first_that_is_missing, "That is the first total that the dtype cannot hold"),
        (all_ones, "You stop one step early"),
        (the_largest_there_is, "That is the largest number of the dtype"),
        (twenty_four, "You have float32's 24 digits for every dtype"),
        (all_bits, "You count all bits"),
        (epsilon_alone, "it should return"),
        (a_hundred_thousand_steps, "it should return"),
        (never, "and returned inf"),
    ],
    "right_by_luck": [
        (always_two_rows, "can have more solutions"),
        (the_first_row, "Only the first row?"),
        (rows_alone, "That is how many rows are right"),
        (gaps_alone, "One row is missing"),
        (divisor_of_the_sizes, "stand h - 1 and L - 1"),
        (divisor_of_the_sizes_without_the_end, "counts the gaps between solutions"),
        (by_chance, "as if a right place were a matter of chance"),
        (a_share, "That is the share of the right entries"),
        (counted_in_an_array, "On L = 2**50 + 1"),
        (pairs_of_a_small_text, "On L = 2**50 + 1"),
        (no_entry_at_all, "it should return 128, and returned 0"),
    ],
}
