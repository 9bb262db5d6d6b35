"""Answers to the exercises of chapter 22 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import Tensor

__all__ = ["RIGHT", "WRONG"]

# --- softmax_gradient_into -------------------------------------------------------------------------------


def sum_from_einsum(dy, y, out):
    along = np.einsum("...i,...i->...", dy, y)[..., None]
    np.subtract(dy, along, out=out)
    out *= y


def row_by_row(dy, y, out):
    for g, p, row in zip(dy, y, out, strict=True):
        row[:] = (g - g @ p) * p


def blocks_of_rows(dy, y, out):
    for start in range(0, len(y), 3):
        b = slice(start, start + 3)
        out[b] = y[b] * (dy[b] - (dy[b] * y[b]).sum(-1, keepdims=True))


def expanded(dy, y, out):
    np.multiply(dy, y, out=out)
    along = out.sum(axis=1)
    np.copyto(out, dy)
    out -= along[:, np.newaxis]
    np.multiply(out, y, out)
    return out


def inner_products_with_vecdot(dy, y, out):
    along = np.vecdot(dy, y)
    along.shape = (-1, 1)
    np.subtract(dy, along, out=out)
    np.multiply(out, y, out=out)


def formula_into_out(dy, y, out):
    np.copyto(out, y * (dy - np.einsum("ij,ij->i", dy, y)[:, None]))


def product_first_then_out(dy, y, out):
    product = dy * y
    np.subtract(product, y * product.sum(-1, keepdims=True), out=out)


def a_copy_to_be_safe(dy, y, out):
    g = dy.copy()
    g -= np.einsum("ij,ij->i", dy, y)[:, None]
    np.multiply(g, y, out=out)


def dy_used_up(dy, y, out):
    dy -= np.einsum("ij,ij->i", dy, y)[:, None]
    np.multiply(dy, y, out=out)


def y_used_up(dy, y, out):
    np.subtract(dy, np.vecdot(dy, y)[:, None], out=out)
    np.multiply(y, out, out=y)
    np.copyto(out, y)


def sum_taken_from_the_product(dy, y, out):
    np.multiply(y, dy, out)
    np.subtract(out, np.sum(out, -1, keepdims=True), out=out)


def sum_taken_from_the_product_times_y(dy, y, out):
    np.multiply(y, dy, out)
    np.subtract(out, np.sum(out, -1, keepdims=True), out=out)
    np.multiply(out, y, out=out)


def sum_of_dy_alone(dy, y, out):
    np.copyto(out, dy)
    out -= np.einsum("ij->i", dy)[:, None]
    out *= y


def no_factor(dy, y, out):
    np.subtract(dy, np.vecdot(dy, y)[:, None], out=out)


def no_sum(dy, y, out):
    np.copyto(out, dy)
    out *= y


def over_the_columns(dy, y, out):
    np.subtract(dy, np.einsum("ij,ij->j", dy, y), out=out)
    out *= y


def over_everything(dy, y, out):
    np.subtract(dy, np.vdot(dy, y), out=out)
    out *= y


def mean_of_the_product(dy, y, out):
    np.subtract(dy, np.vecdot(dy, y)[:, None] / y.shape[1], out=out)
    out *= y


def turned_round(dy, y, out):
    np.subtract(np.vecdot(dy, y)[:, None], dy, out=out)
    out *= y


def returned(dy, y, out):
    along = np.einsum("ij,ij->i", dy, y)[:, None]
    return y * (dy - along)


def name_given_to_another_array(dy, y, out):
    out = y * (dy - np.einsum("ij,ij->i", dy, y)[:, None])  # noqa: F841


def axis_lost(dy, y, out):
    np.multiply(dy, y, out=out)
    np.subtract(dy, out.sum(axis=-1), out=out)
    out *= y


def half_of_the_rows(dy, y, out):
    for i in range(len(y) // 2 * 2):
        np.multiply(dy[i] - dy[i] @ y[i], y[i], out=out[i])


def torch_names(dy, y, out):
    out.copy_(y * (dy - (dy * y).sum(dim=-1)))


INTO_RIGHT = [sum_from_einsum, row_by_row, blocks_of_rows, expanded, inner_products_with_vecdot]
INTO_WRONG = [
    (formula_into_out, "an array as large as dy was made on the way"),
    (product_first_then_out, "an array as large as dy was made on the way"),
    (a_copy_to_be_safe, "an array as large as dy was made on the way"),
    (dy_used_up, "You wrote over dy"),
    (y_used_up, "You wrote over y"),
    (sum_taken_from_the_product, "You subtract the sum from dy times y"),
    (sum_taken_from_the_product_times_y, "`out` held dy times y when you went on with it"),
    (sum_of_dy_alone, "You sum dy over the row"),
    (no_factor, "The factor y at the end is missing"),
    (no_sum, "That is dy times y alone"),
    (over_the_columns, "You sum over the columns"),
    (over_everything, "You sum over the whole array"),
    (mean_of_the_product, "That is the mean of dy times y"),
    (turned_round, "The sign is turned round"),
    (returned, "Nothing was written to `out`"),
    (name_given_to_another_array, "Nothing was written to `out`"),
    (axis_lost, "it raised ValueError"),
    (half_of_the_rows, "entries are NaN or infinite"),
    (torch_names, "has no attribute 'copy_'"),
]

# --- scores_without_copies -------------------------------------------------------------------------------


def heads_of(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def into_an_empty_array(q, k, heads):
    B, T, H = q.shape
    scores = np.empty((B, heads, T, T), q.dtype)
    np.matmul(heads_of(q, heads), heads_of(k, heads).transpose(0, 1, 3, 2), out=scores)
    scores /= math.sqrt(H // heads)
    return scores


def head_by_head(q, k, heads):
    B, T, H = q.shape
    d = H // heads
    scores = np.empty((B, heads, T, T), q.dtype)
    for b in range(B):
        for a in range(heads):
            part = slice(a * d, (a + 1) * d)
            np.matmul(q[b, :, part], k[b, :, part].T, out=scores[b, a])
    np.multiply(scores, d**-0.5, out=scores)
    return scores


def with_einsum(q, k, heads):
    B, T, H = q.shape
    q, k = q.reshape(B, T, heads, -1), k.reshape(B, T, heads, -1)
    scores = np.einsum("bqhd,bkhd->bhqk", q, k)
    scores /= math.sqrt(H // heads)
    return scores


def contiguous_q(q, k, heads):
    q = np.ascontiguousarray(heads_of(q, heads))
    scores = q @ heads_of(k, heads).swapaxes(2, 3)
    scores /= math.sqrt(q.shape[-1])
    return scores


def contiguous_k(q, k, heads):
    k = np.ascontiguousarray(heads_of(k, heads).swapaxes(2, 3))
    scores = heads_of(q, heads) @ k
    scores /= math.sqrt(k.shape[-2])
    return scores


def scaled_q(q, k, heads):
    q = q * (1 / math.sqrt(q.shape[-1] // heads))
    return heads_of(q, heads) @ heads_of(k, heads).swapaxes(2, 3)


def both_contiguous(q, k, heads):
    q, k = np.ascontiguousarray(heads_of(q, heads)), np.ascontiguousarray(heads_of(k, heads))
    scores = q @ k.swapaxes(2, 3)
    scores /= math.sqrt(q.shape[-1])
    return scores


def scores_divided(q, k, heads):
    scores = heads_of(q, heads) @ heads_of(k, heads).swapaxes(2, 3)
    return scores / math.sqrt(q.shape[-1] // heads)


def as_it_was(q, k, heads):
    q, k = heads_of(q, heads).copy(), heads_of(k, heads).copy()
    return q @ k.transpose(0, 1, 3, 2).copy() / math.sqrt(q.shape[-1])


def q_scaled_where_it_is(q, k, heads):
    q /= math.sqrt(q.shape[-1] // heads)
    return heads_of(q, heads) @ heads_of(k, heads).swapaxes(2, 3)


def reshaped_alone(q, k, heads):
    B, T, H = q.shape
    q, k = q.reshape(B, heads, T, H // heads), k.reshape(B, heads, T, H // heads)
    scores = q @ k.swapaxes(2, 3)
    scores /= math.sqrt(H // heads)
    return scores


def not_scaled(q, k, heads):
    return heads_of(q, heads) @ heads_of(k, heads).swapaxes(2, 3)


def scaled_by_the_whole_length(q, k, heads):
    scores = heads_of(q, heads) @ heads_of(k, heads).swapaxes(2, 3)
    scores /= math.sqrt(q.shape[2])
    return scores


def divided_by_d_k(q, k, heads):
    scores = heads_of(q, heads) @ heads_of(k, heads).swapaxes(2, 3)
    scores /= q.shape[2] // heads
    return scores


def transposed(q, k, heads):
    scores = heads_of(k, heads) @ heads_of(q, heads).swapaxes(2, 3)
    scores /= math.sqrt(q.shape[2] // heads)
    return scores


def no_transpose(q, k, heads):
    return heads_of(q, heads) @ heads_of(k, heads)


def in_double_precision(q, k, heads):
    B, T, H = q.shape
    q, k = q.reshape(B, T, heads, -1), k.reshape(B, T, heads, -1)
    scores = np.einsum("bqhd,bkhd->bhqk", q, k, dtype=np.float64)
    scores /= math.sqrt(H // heads)
    return scores


def as_a_list(q, k, heads):
    return list(not_scaled(q, k, heads))


def forgotten_return(q, k, heads):
    scores = heads_of(q, heads) @ heads_of(k, heads).swapaxes(2, 3)
    scores /= math.sqrt(q.shape[2] // heads)


SCORES_RIGHT = [into_an_empty_array, head_by_head, with_einsum]
SCORES_WRONG = [
    (contiguous_q, "There is still a copy of q or of k"),
    (contiguous_k, "There is still a copy of q or of k"),
    (scaled_q, "There is still a copy of q or of k"),
    (both_contiguous, "Both copies are still there"),
    (scores_divided, "The scores exist twice"),
    (as_it_was, "for memory beside the result, it should return 'none'"),
    (q_scaled_where_it_is, "You scale q in place"),
    (reshaped_alone, "mixes tokens and heads"),
    (not_scaled, "The scale is missing"),
    (scaled_by_the_whole_length, "The scale is the root of a head's length"),
    (divided_by_d_k, "That is d_k; the scale is its root"),
    (transposed, "You compare keys with queries"),
    (no_transpose, "it raised ValueError"),
    (in_double_precision, "it should return float32, and returned float64"),
    (as_a_list, "and returned a list of 3"),
    (forgotten_return, "returned None"),
]

# --- add_up ----------------------------------------------------------------------------------------------


def own_flag(contributions):
    total, own = None, False
    for one in contributions:
        if total is None:
            total = one
        elif own:
            np.add(total, one, out=total)
        else:
            total, own = np.add(total, one), True
    return total


def zeros_when_several(contributions):
    if len(contributions) == 1:
        return contributions[0]
    total = np.zeros(contributions[0].shape, contributions[0].dtype)
    for one in contributions:
        total += one
    return total


def copy_when_several(contributions):
    first, *others = contributions
    if not others:
        return first
    total = np.array(first)
    for one in others:
        total += one
    return total


def straight_into_the_first(contributions):
    for one in contributions[1:]:
        np.add(contributions[0], one, out=contributions[0])
    return contributions[0]


def into_the_first_that_can_be_written(contributions):
    first, *others = contributions
    total = first if first.flags.writeable else np.array(first)
    for one in others:
        np.add(total, one, out=total)
    return total


def into_the_last(contributions):
    *others, last = contributions
    for one in others:
        last += one
    return last


def pythons_sum(contributions):
    return sum(contributions)


def new_each_time(contributions):
    total, *others = contributions
    for one in others:
        total = np.add(total, one)
    return total


def stacked(contributions):
    if len(contributions) < 2:
        return contributions[0]
    return np.sum(np.array(contributions), axis=0)


def copied_always(contributions):
    total = np.array(contributions[0])
    for one in contributions[1:]:
        total += one
    return total


def zeros_always(contributions):
    total = np.zeros_like(contributions[0])
    for one in contributions:
        total += one
    return total


def without_doubles(contributions):
    seen, total = [], None
    for one in contributions:
        if any(one is other for other in seen):
            continue
        seen.append(one)
        if total is None:
            total = one
        elif len(seen) == 2:
            total = total + one
        else:
            total += one
    return total


def last_one(contributions):
    for one in contributions:
        total = one
    return total


def first_one(contributions):
    return contributions[0]


def mean(contributions):
    if len(contributions) == 1:
        return contributions[0]
    total = contributions[0] + contributions[1]
    for one in contributions[2:]:
        total += one
    total *= 1 / len(contributions)
    return total


def two_at_most(contributions):
    return contributions[0] if len(contributions) == 1 else contributions[0] + contributions[1]


def forgot_the_case_of_one(contributions):
    total = contributions[0] + contributions[1]
    for one in contributions[2:]:
        total += one
    return total


def a_tensor(contributions):
    return Tensor(contributions[0])


def printed_sum(contributions):
    print(sum(contributions).shape)


ADD_UP_RIGHT = [own_flag, zeros_when_several, copy_when_several]
ADD_UP_WRONG = [
    (straight_into_the_first, "You add into the first array, which is borrowed"),
    (into_the_first_that_can_be_written, "You add into the first array whenever it can be written to"),
    (into_the_last, "You add into the last array"),
    (new_each_time, "makes a new array each time"),
    (stacked, "np.stack copies all of them"),
    (copied_always, "One gradient alone needs no copy"),
    (zeros_always, "One gradient alone needs no copy"),
    (without_doubles, "The same array twice counts twice"),
    (last_one, "The last one wins"),
    (mean, "That is their mean"),
    (pythons_sum, "for new arrays at one time, it should return 1, and returned 2"),
    (first_one, "entries are off"),
    (two_at_most, "entries are off"),
    (forgot_the_case_of_one, "On one gradient alone: it raised IndexError"),
    (a_tensor, "and returned a Tensor"),
    (printed_sum, "returned None"),
]

# --- product_bound ---------------------------------------------------------------------------------------


def by_intensity(n, k, m, peak, bandwidth):
    flops = 2.0 * n * k * m
    nbytes = 4 * (n * k + k * m + n * m)
    if flops / nbytes < peak / bandwidth:
        return "memory", nbytes / bandwidth
    return "compute", flops / peak


def by_the_roof(n, k, m, peak, bandwidth):
    flops = 2 * n * k * m
    slope = bandwidth * flops / (4 * (n * k + k * m + n * m))
    return ["compute" if slope >= peak else "memory", flops / min(slope, peak)]


def multiplications_only(n, k, m, peak, bandwidth):
    times = {"compute": n * k * m / peak, "memory": 4 * (n * k + k * m + n * m) / bandwidth}
    bound = max(times, key=times.get)
    return bound, times[bound]


def pick(compute, memory):
    return ("memory", memory) if memory > compute else ("compute", compute)


def numbers_for_bytes(n, k, m, peak, bandwidth):
    return pick(2 * n * k * m / peak, (n * k + k * m + n * m) / bandwidth)


def doubles(n, k, m, peak, bandwidth):
    return pick(2 * n * k * m / peak, 8 * (n * k + k * m + n * m) / bandwidth)


def nothing_written(n, k, m, peak, bandwidth):
    return pick(2 * n * k * m / peak, 4 * (n * k + k * m) / bandwidth)


def fetched_each_time(n, k, m, peak, bandwidth):
    return pick(2 * n * k * m / peak, 2 * 4 * n * k * m / bandwidth)


def added(n, k, m, peak, bandwidth):
    compute, memory = 2 * n * k * m / peak, 4 * (n * k + k * m + n * m) / bandwidth
    return pick(compute, memory)[0], compute + memory


def shorter(n, k, m, peak, bandwidth):
    compute, memory = 2 * n * k * m / peak, 4 * (n * k + k * m + n * m) / bandwidth
    return pick(compute, memory)[0], min(compute, memory)


def words_swapped(n, k, m, peak, bandwidth):
    compute, memory = 2 * n * k * m / peak, 4 * (n * k + k * m + n * m) / bandwidth
    return ("compute", memory) if memory > compute else ("memory", compute)


def intensity_against_one(n, k, m, peak, bandwidth):
    flops, nbytes = 2 * n * k * m, 4 * (n * k + k * m + n * m)
    word = "compute" if flops / nbytes >= 1 else "memory"
    return word, max(flops / peak, nbytes / bandwidth)


def rates_swapped(n, k, m, peak, bandwidth):
    return pick(2 * n * k * m / bandwidth, 4 * (n * k + k * m + n * m) / peak)


def milliseconds(n, k, m, peak, bandwidth):
    word, seconds = by_intensity(n, k, m, peak, bandwidth)
    return word, 1e3 * seconds


def the_rate(n, k, m, peak, bandwidth):
    flops, nbytes = 2 * n * k * m, 4 * (n * k + k * m + n * m)
    rate = min(peak, flops / nbytes * bandwidth)
    return "compute" if rate == peak else "memory", rate


def seconds_first(n, k, m, peak, bandwidth):
    return by_intensity(n, k, m, peak, bandwidth)[::-1]


def the_word_alone(n, k, m, peak, bandwidth):
    return by_intensity(n, k, m, peak, bandwidth)[0]


def always_compute(n, k, m, peak, bandwidth):
    return "compute", 2 * n * k * m / peak


BOUND_RIGHT = [by_intensity, by_the_roof]
BOUND_WRONG = [
    (multiplications_only, "The factor 2 is missing"),
    (numbers_for_bytes, "You count numbers, not bytes"),
    (doubles, "You count eight bytes"),
    (nothing_written, "The result must be written too"),
    (fetched_each_time, "You let each multiplication fetch"),
    (added, "You add the two times"),
    (shorter, "You take the shorter"),
    (words_swapped, "The two words have changed places"),
    (intensity_against_one, "You compare FLOPs with bytes"),
    (rates_swapped, "The two rates have changed places"),
    (milliseconds, "That is in milliseconds"),
    (the_rate, "That is the rate below the roof"),
    (seconds_first, "value 1 of 2"),
    (the_word_alone, "it should return 2 values"),
    (always_compute, "it should return 'memory', and returned 'compute'"),
]

RIGHT = {
    "softmax_gradient_into": INTO_RIGHT,
    "scores_without_copies": SCORES_RIGHT,
    "add_up": ADD_UP_RIGHT,
    "product_bound": BOUND_RIGHT,
}
WRONG = {
    "softmax_gradient_into": INTO_WRONG,
    "scores_without_copies": SCORES_WRONG,
    "add_up": ADD_UP_WRONG,
    "product_bound": BOUND_WRONG,
}
