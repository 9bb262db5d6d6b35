"""Answers to the exercises of chapter 24 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import Tensor

__all__ = ["RIGHT", "WRONG"]

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

# --- from_which_length -----------------------------------------------------------------------------------


def solved_for_the_length(d_k, peak, bandwidth):
    # 2 d L² / peak >= 4 (2 d L + L²) / bandwidth, divided by 2 L
    gain = d_k / peak - 2 / bandwidth
    return int(np.ceil(4 * d_k / bandwidth / gain)) if gain > 0 else float("inf")


def counted_up(d_k, peak, bandwidth):
    if d_k * bandwidth <= 2 * peak:
        return math.inf
    L = 1
    while by_intensity(L, d_k, L, peak, bandwidth)[0] == "memory":
        L += 1
    return L


def bisected(d_k, peak, bandwidth):
    waits = lambda L: by_intensity(L, d_k, L, peak, bandwidth)[0] == "memory"  # noqa: E731
    low, high = 0, 2**40
    if waits(high):
        return np.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if waits(middle) else (low, middle)
    return high


def bracket(flops, nbytes, last=10**6):
    """The least L at which so many FLOPs take as long as so many bytes."""

    def length(d_k, peak, bandwidth):
        low, high = 0, last
        if flops(d_k, high) / peak < nbytes(d_k, high) / bandwidth:
            return math.inf
        while high - low > 1:
            L = (low + high) // 2
            if flops(d_k, L) / peak < nbytes(d_k, L) / bandwidth:
                low = L
            else:
                high = L
        return high

    return length


def flops_of_scores(d_k, L):
    return 2 * d_k * L * L


def bytes_of_scores(d_k, L):
    return 4 * (2 * d_k * L + L * L)


no_scores_written = bracket(flops_of_scores, lambda d_k, L: 4 * 2 * d_k * L, last=10**9)
one_matrix_read = bracket(flops_of_scores, lambda d_k, L: 4 * (d_k * L + L * L))
products_alone = bracket(lambda d_k, L: d_k * L * L, bytes_of_scores)
entries_for_bytes = bracket(flops_of_scores, lambda d_k, L: 2 * d_k * L + L * L)
eight_bytes = bracket(flops_of_scores, lambda d_k, L: 8 * (2 * d_k * L + L * L))


def formula_without_a_look(d_k, peak, bandwidth):
    ridge = peak / bandwidth
    return math.ceil(2 * d_k * ridge / (d_k / 2 - ridge))


def first_four_thousand(d_k, peak, bandwidth):
    bounds = [by_intensity(L, d_k, L, peak, bandwidth)[0] for L in range(1, 4001)]
    return 1 + bounds.index("compute") if "compute" in bounds else math.inf


def first_ten_thousand(d_k, peak, bandwidth):
    for L in range(1, 10001):
        if by_intensity(L, d_k, L, peak, bandwidth)[0] == "compute":
            return L
    return math.inf


def rounded_down(d_k, peak, bandwidth):
    ridge = peak / bandwidth
    return int(2 * d_k * ridge / (d_k / 2 - ridge)) if d_k > 2 * ridge else math.inf


def counted_from_zero(d_k, peak, bandwidth):
    return bisected(d_k, peak, bandwidth) - 1


def not_rounded(d_k, peak, bandwidth):
    ridge = peak / bandwidth
    return 2 * d_k * ridge / (d_k / 2 - ridge) if d_k > 2 * ridge else math.inf


def zero_for_none(d_k, peak, bandwidth):
    length = bisected(d_k, peak, bandwidth)
    return 0 if length == math.inf else length


def minus_one_for_none(d_k, peak, bandwidth):
    length = bisected(d_k, peak, bandwidth)
    return -1 if length == math.inf else length


def nan_for_none(d_k, peak, bandwidth):
    length = bisected(d_k, peak, bandwidth)
    return np.nan if length == math.inf else length


def nothing_for_none(d_k, peak, bandwidth):
    return counted_up(d_k, peak, bandwidth) if d_k > 2 * peak / bandwidth else None


def word_for_none(d_k, peak, bandwidth):
    return counted_up(d_k, peak, bandwidth) if d_k > 2 * peak / bandwidth else "never"


def first_that_waits_for_memory(d_k, peak, bandwidth):
    L = 1
    while by_intensity(L, d_k, L, peak, bandwidth)[0] != "memory":
        L += 1
    return L


def ridge_turned_round(d_k, peak, bandwidth):
    return solved_for_the_length(d_k, bandwidth, peak)


def sixty_four(d_k, peak, bandwidth):
    return bisected(64, peak, bandwidth)


def ridge_itself(d_k, peak, bandwidth):
    return math.ceil(peak / bandwidth)


def misses_the_limit_itself(d_k, peak, bandwidth):
    ridge = peak / bandwidth
    return math.inf if ridge > d_k / 2 else math.ceil(2 * d_k * ridge / (d_k / 2 - ridge))


LENGTH_RIGHT = [solved_for_the_length, counted_up, bisected]
LENGTH_WRONG = [
    (formula_without_a_look, "FLOPs per byte grow with L, but not without limit"),
    (first_four_thousand, "You stop looking too early"),
    (first_ten_thousand, "You stop looking too early"),
    (rounded_down, "That is the last L that still waits for memory"),
    (counted_from_zero, "That is the last L that still waits for memory"),
    (not_rounded, "A length is a whole number"),
    (zero_for_none, "Where there is no such L, return math.inf"),
    (minus_one_for_none, "Where there is no such L, return math.inf"),
    (nan_for_none, "Where there is no such L, return math.inf"),
    (nothing_for_none, "On d_k = 64, the H100 in TF32: it returned None"),
    (word_for_none, "it should return inf, and returned 'never'"),
    (first_that_waits_for_memory, "with L = 1 there is a quarter of a FLOP for each byte"),
    (ridge_turned_round, "with L = 1 there is a quarter of a FLOP for each byte"),
    (no_scores_written, "The scores must be written too"),
    (one_matrix_read, "Two matrices are read"),
    (products_alone, "FLOPs per byte are twice what you take"),
    (entries_for_bytes, "You count numbers, not bytes"),
    (eight_bytes, "FLOPs per byte are twice what you take"),
    (sixty_four, "You took 64 for d_k"),
    (ridge_itself, "it should return 43, and returned 8"),
    (misses_the_limit_itself, "it raised ZeroDivisionError"),
]

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


def halves(dy, y, out):
    middle = len(y) // 2
    for b in (slice(middle), slice(middle, None)):
        part = dy[b] - np.vecdot(dy[b], y[b])[:, None]
        part *= y[b]
        out[b] = part
        del part


def quarters(dy, y, out):
    for b in np.array_split(np.arange(len(y)), 4):
        b = slice(b[0], b[-1] + 1)
        along = (dy[b] * y[b]).sum(axis=1, keepdims=True)
        out[b] = (dy[b] - along) * y[b]


def sums_in_double_precision(dy, y, out):
    np.multiply(dy, y, out=out)
    along = out.sum(axis=1, keepdims=True, dtype=np.float64)
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


def three_quarters_of_it(dy, y, out):
    edge = len(y) * 3 // 4
    for b in (slice(edge), slice(edge, None)):
        part = dy[b] - np.einsum("ij,ij->i", dy[b], y[b])[:, None]
        part *= y[b]
        out[b] = part
        del part


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


def axis_lost_in_the_formula(dy, y, out):
    np.copyto(out, y * (dy - np.sum(dy * y, -1)))


def axis_lost_by_einsum(dy, y, out):
    np.subtract(dy, np.einsum("ij,ij->i", dy, y), out=out)
    out *= y


def flat(dy, y, out):
    out[:] = (dy - np.vecdot(dy, y)[:, None]).ravel() * y


def half_of_the_rows(dy, y, out):
    for i in range(len(y) // 2 * 2):
        np.multiply(dy[i] - dy[i] @ y[i], y[i], out=out[i])


def torch_names(dy, y, out):
    out.copy_(y * (dy - (dy * y).sum(dim=-1)))


INTO_RIGHT = [
    sum_from_einsum,
    row_by_row,
    blocks_of_rows,
    expanded,
    inner_products_with_vecdot,
    halves,
    quarters,
    sums_in_double_precision,
]
INTO_WRONG = [
    (formula_into_out, "on the way you hold more than half of dy's memory at one moment"),
    (product_first_then_out, "on the way you hold more than half of dy's memory at one moment"),
    (a_copy_to_be_safe, "on the way you hold more than half of dy's memory at one moment"),
    (three_quarters_of_it, "on the way you hold more than half of dy's memory at one moment"),
    (three_quarters_of_it, "it should return 'at most half of dy', and returned 'more than half of dy'"),
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
    (axis_lost, "On shape (700, 700) of float32: for out, "),
    (axis_lost, "A row of n sums is stretched along the wrong axis"),
    (axis_lost_in_the_formula, "A row of n sums is stretched along the wrong axis"),
    (axis_lost_by_einsum, "A row of n sums is stretched along the wrong axis"),
    (flat, "it raised ValueError"),
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


def both_scaled(q, k, heads):
    root = (q.shape[-1] // heads) ** 0.25
    q, k = q / root, k / root
    return heads_of(q, heads) @ heads_of(k, heads).swapaxes(2, 3)


def reshaped_to_one_batch(q, k, heads):
    B, T, H = q.shape
    q, k = heads_of(q, heads).reshape(-1, T, H // heads), heads_of(k, heads).reshape(-1, T, H // heads)
    scores = np.matmul(q, k.transpose(0, 2, 1))
    scores /= math.sqrt(H // heads)
    return scores.reshape(B, heads, T, T)


def optimised_einsum(q, k, heads):
    B, T, H = q.shape
    q, k = q.reshape(B, T, heads, -1), k.reshape(B, T, heads, -1)
    scores = np.einsum("bqhd,bkhd->bhqk", q, k, optimize=True)
    scores /= math.sqrt(H // heads)
    return scores


def stacked_heads(q, k, heads):
    d, found = q.shape[2] // heads, []
    for start in range(0, q.shape[2], d):
        part = slice(start, start + d)
        found.append(q[..., part] @ k[..., part].swapaxes(1, 2))
        found[-1] /= math.sqrt(d)
    return np.stack(found, axis=1)


def nested_list_of_heads(q, k, heads):
    d = q.shape[2] // heads
    parts = [slice(a * d, a * d + d) for a in range(heads)]
    return np.array(
        [[one[:, p] @ two[:, p].T * d**-0.5 for p in parts] for one, two in zip(q, k, strict=True)]
    )


def quotients_of_heads(q, k, heads):
    B, T, H = q.shape
    scores, q, k = np.empty((B, heads, T, T), q.dtype), heads_of(q, heads), heads_of(k, heads)
    for a in range(heads):
        scores[:, a] = q[:, a] @ k[:, a].swapaxes(1, 2) / math.sqrt(H // heads)
    return scores


def with_copies(q, k, heads):
    q, k = heads_of(q, heads).copy(), heads_of(k, heads).copy()
    scores = q @ k.swapaxes(2, 3)
    return scores / math.sqrt(q.shape[-1])


def dealt_out(q, k, heads):
    B, T, H = q.shape
    q, k = (np.moveaxis(x.reshape(B, T, H // heads, heads), 3, 1) for x in (q, k))
    scores = q @ k.swapaxes(2, 3)
    scores /= math.sqrt(H // heads)
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
    (both_contiguous, "Both q and k are there a second time"),
    (both_scaled, "Both q and k are there a second time"),
    (reshaped_to_one_batch, "inside a call such as a reshape of a transposed view"),
    (scores_divided, "The scores are there twice at one moment"),
    (stacked_heads, "and so does np.stack or np.array of the heads' scores"),
    (nested_list_of_heads, "and so does np.stack or np.array of the heads' scores"),
    (quotients_of_heads, "for memory beside the result, it should return 'none', and returned '0.7 times"),
    (with_copies, "Nothing is saved yet"),
    (as_it_was, "for memory beside the result, it should return 'none', and returned '9.0 times"),
    (q_scaled_where_it_is, "You scale q in place"),
    (reshaped_alone, "mixes tokens and heads"),
    (dealt_out, "You deal the features out to the heads in turn"),
    (not_scaled, "The scale is missing"),
    (scaled_by_the_whole_length, "The scale is the root of a head's length"),
    (divided_by_d_k, "That is d_k; the scale is its root"),
    (transposed, "You compare keys with queries"),
    (no_transpose, "it raised ValueError"),
    (in_double_precision, "it should return float32, and returned float64"),
    (as_a_list, "and returned a list of 3"),
    (forgotten_return, "returned None"),
]
if np.lib.NumpyVersion(np.__version__) >= "2.4.0":  # before that, no copies: it looped
    SCORES_WRONG.append((optimised_einsum, "inside a call such as"))

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


def a_list_of_ones_own(contributions):
    waiting = list(contributions)
    total = waiting.pop()
    if waiting:
        total = total + waiting.pop()
    while waiting:
        total += waiting.pop()
    return total


def popped(contributions):
    if len(contributions) == 1:
        return contributions.pop()
    total = contributions.pop(0) + contributions.pop(0)
    while contributions:
        total += contributions.pop()
    return total


def popped_when_several(contributions):
    if len(contributions) < 2:
        return contributions[0]
    total = np.add(contributions.pop(), contributions.pop())
    while contributions:
        np.add(total, contributions.pop(), out=total)
    return total


def popped_without_a_look(contributions):
    total = contributions.pop(0) + contributions.pop(0)
    while contributions:
        total += contributions.pop()
    return total


def deleted(contributions):
    total = contributions[0]
    if len(contributions) > 1:
        total = total + contributions[1]
        del contributions[:2]
        for one in contributions:
            total += one
    return total


def turned_about(contributions):
    contributions.reverse()
    return own_flag(contributions)


def kept_in_the_list(contributions):
    total = own_flag(contributions)
    contributions[0] = total
    return total


def appended(contributions):
    contributions.append(own_flag(contributions))
    return contributions[-1]


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


def pythons_sum_when_several(contributions):
    return sum(contributions) if len(contributions) > 1 else contributions[0]


def from_zero(contributions):
    total = 0
    for i in range(len(contributions)):
        total = contributions[i] + total
    return total


def from_an_array_of_zeros(contributions):
    total = np.zeros(contributions[0].shape, contributions[0].dtype)
    for one in contributions:
        total = np.add(total, one)
    return total


def summed_by_numpy(contributions):
    return np.sum(contributions, axis=0)


def reduced_by_numpy(contributions):
    return np.add.reduce(np.array(contributions))


def sum_from_the_first(contributions):
    return sum(contributions[1:], start=contributions[0])


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


ADD_UP_RIGHT = [own_flag, zeros_when_several, copy_when_several, a_list_of_ones_own]
ADD_UP_WRONG = [
    (straight_into_the_first, "You add into the first array, which is borrowed"),
    (into_the_first_that_can_be_written, "You add into the first array whenever it can be written to"),
    (into_the_last, "You add into the last array"),
    (new_each_time, "makes a new array each time"),
    (sum_from_the_first, "makes a new array each time"),
    (stacked, "np.sum of a list copy all of them into one large array first"),
    (summed_by_numpy, "np.sum of a list copy all of them into one large array first"),
    (reduced_by_numpy, "np.sum of a list copy all of them into one large array first"),
    (copied_always, "One gradient alone needs no copy"),
    (zeros_always, "One gradient alone needs no copy"),
    (without_doubles, "The same array twice counts twice"),
    (last_one, "The last one wins"),
    (mean, "That is their mean"),
    (
        pythons_sum,
        "On two different gradients: for new arrays at one time, it should return 1, and returned 2",
    ),
    (pythons_sum, "Your sum starts from 0"),
    (pythons_sum_when_several, "Your sum starts from 0"),
    (from_zero, "Your sum starts from 0"),
    (from_an_array_of_zeros, "Your sum starts from 0"),
    (popped, "for the list, it should return 'as it was', and returned 'shorter'"),
    (popped, "You take the arrays out of the caller's list"),
    (popped_when_several, "You take the arrays out of the caller's list"),
    (popped_without_a_look, "You take the arrays out of the caller's list"),
    (deleted, "for the list, it should return 'as it was', and returned 'shorter'"),
    (turned_about, "for the list, it should return 'as it was', and returned 'other arrays in its places'"),
    (
        kept_in_the_list,
        "for the list, it should return 'as it was', and returned 'other arrays in its places'",
    ),
    (appended, "for the list, it should return 'as it was', and returned 'longer'"),
    (first_one, "entries are off"),
    (two_at_most, "entries are off"),
    (forgot_the_case_of_one, "On one gradient alone: it raised IndexError"),
    (a_tensor, "and returned a Tensor"),
    (printed_sum, "returned None"),
]

RIGHT = {
    "product_bound": BOUND_RIGHT,
    "from_which_length": LENGTH_RIGHT,
    "softmax_gradient_into": INTO_RIGHT,
    "scores_without_copies": SCORES_RIGHT,
    "add_up": ADD_UP_RIGHT,
}
WRONG = {
    "product_bound": BOUND_WRONG,
    "from_which_length": LENGTH_WRONG,
    "softmax_gradient_into": INTO_WRONG,
    "scores_without_copies": SCORES_WRONG,
    "add_up": ADD_UP_WRONG,
}
