"""Answers to the exercises of chapter 7 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import Tensor, ops

__all__ = ["RIGHT", "WRONG"]


def right_softmax(x):
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


# --- softmax ---------------------------------------------------------------------------------------------


def a_row_at_a_time(x):
    out = np.empty_like(x)
    for place in np.ndindex(x.shape[:-1]):
        row = np.exp(x[place] - max(x[place]))
        out[place] = row / row.sum()
    return out


def powers_of_two(x):
    e = np.exp2((x - x.max(-1)[..., None]) * math.log2(math.e))
    return e / np.einsum("...i->...", e)[..., np.newaxis]


def through_the_logarithm(x):
    shifted = x - np.amax(x, axis=x.ndim - 1, keepdims=True)
    return np.exp(shifted - np.log(np.exp(shifted).sum(axis=x.ndim - 1, keepdims=True)))


def in_place_on_a_copy(x):
    y = x.copy()
    y -= y.max(axis=-1, keepdims=True)
    np.exp(y, out=y)
    y /= y.sum(axis=-1, keepdims=True)
    return y


def by_columns_of_the_transpose(x):
    t = np.moveaxis(x, -1, 0)
    e = np.exp(t - t.max(axis=0))
    return np.moveaxis(e / e.sum(axis=0), 0, -1)


def exponentials_over_their_sum(x):
    return np.exp(x) / np.einsum("...i->...", np.exp(x))[..., None]


def exponentials_through_the_logarithm(x):
    return np.exp(x - np.log(np.sum(np.exp(x), -1, keepdims=True)))


def sums_by_matrix_product(x):
    e = np.exp(x)
    return e / (e @ np.ones((x.shape[-1], 1), x.dtype))


def down_the_columns(x):
    e = np.exp(x - np.max(x, axis=0))
    return e / np.sum(e, axis=0)


def down_the_second_last_axis(x):
    e = np.exp(x - np.max(x, axis=-2, keepdims=True))
    return e / np.sum(e, axis=-2, keepdims=True)


def axis_one(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def axis_one_for_the_sum(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def sum_without_an_axis(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum()


def maximum_and_sum_without_an_axis(x):
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


def maximum_without_an_axis(x):
    m = x.max()
    return np.stack([np.exp(row - m) / np.exp(row - m).sum(-1, keepdims=True) for row in x])


def smallest_subtracted(x):
    e = np.exp(x - np.min(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


def mean_subtracted(x):
    e = np.exp(x - np.mean(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


def exponentials_alone(x):
    m = np.max(x, -1)[..., None]
    return np.exp(x - m)


def shares_of_the_scores(x):
    return x / np.einsum("...i->...", x)[..., None]


def shares_of_the_shifted_scores(x):
    x = x - x.max(-1, keepdims=True)
    return x / x.sum(-1, keepdims=True)


def sum_has_lost_its_axis(x):
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1)


def both_have_lost_their_axis(x):
    e = np.exp(x - np.max(x, -1))
    return e / np.sum(e, -1)


def logarithm_of_it(x):
    m = x.max(-1, keepdims=True)
    return x - m - np.log(np.sum(np.exp(x - m), -1, keepdims=True))


def guarded(epsilon):
    def softmax(x):
        e = np.exp(x - np.max(x, -1, keepdims=True))
        return e / (np.sum(e, -1, keepdims=True) + epsilon)

    return softmax


def largest_score_and_logarithm_in_one_sum(x):
    m = x.max(axis=-1, keepdims=True)
    return np.exp(x - (m + np.log(np.exp(x - m).sum(axis=-1, keepdims=True))))


def squeezed(x):
    return np.squeeze(right_softmax(x))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def shifted_in_place(x):
    x -= x.max(axis=-1, keepdims=True)
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)


def in_double_precision(x):
    return right_softmax(x.astype(np.float64))


def collected_in_a_list(x):
    return [right_softmax(row) for row in x]


def as_nested_lists(x):
    return right_softmax(x).tolist()


def as_a_tensor(x):
    return ops.softmax(Tensor(x))


def with_torchs_names(x):
    return x.softmax(dim=-1)


def printed(x):
    print(right_softmax(x).shape)


def kept_to_itself(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    e = e / e.sum(axis=-1, keepdims=True)


def largest_only(x):
    return np.eye(x.shape[-1], dtype=x.dtype)[x.argmax(-1)]


SOFTMAX_RIGHT = [
    a_row_at_a_time,
    powers_of_two,
    through_the_logarithm,
    in_place_on_a_copy,
    by_columns_of_the_transpose,
]
SOFTMAX_WRONG = [
    (exponentials_over_their_sum, "Large scores overflow"),
    (exponentials_through_the_logarithm, "Large scores overflow"),
    (sums_by_matrix_product, "Large scores overflow"),
    (down_the_columns, "Each column sums to 1, not each row"),
    (down_the_second_last_axis, "Each column sums to 1, not each row"),
    (axis_one, "axis=1 is the last axis of a matrix only"),
    (axis_one_for_the_sum, "axis=1 is the last axis of a matrix only"),
    (sum_without_an_axis, "All entries together sum to 1"),
    (maximum_and_sum_without_an_axis, "All entries together sum to 1"),
    (maximum_without_an_axis, "the largest entry of the whole array"),
    (smallest_subtracted, "You subtract each row's smallest entry"),
    (mean_subtracted, "You subtract each row's mean"),
    (exponentials_alone, "The rows do not sum to 1"),
    (shares_of_the_scores, "Take e to the power of the scores first"),
    (shares_of_the_shifted_scores, "Take e to the power of the scores first"),
    (sum_has_lost_its_axis, "The row sums have lost their axis"),
    (both_have_lost_their_axis, "Row maximum and row sum have lost their axis"),
    (logarithm_of_it, "That is the logarithm of softmax"),
    (guarded(1e-6), "A small number added to the denominator"),
    (guarded(1e-8), "A small number added to the denominator"),
    (guarded(1e-5), "A small number added to the denominator"),
    (sigmoid, "That is the sigmoid of each score"),
    (largest_only, "entries are off. The entry [0, 0] should be"),
    (shifted_in_place, "it changes its argument number 1"),
    (in_double_precision, "On a (3, 5) array of float32: it should return float32, and returned float64"),
    (
        largest_score_and_logarithm_in_one_sum,
        "On a row with everything masked (2, 5): 5 of 10 entries are off",
    ),
    (
        squeezed,
        "On a single entry in each row (6, 1): it should return shape (6, 1), and returned shape (6,)",
    ),
    (
        collected_in_a_list,
        "it should return an array of shape (3, 5) and dtype float64, and returned a list of 3",
    ),
    (as_nested_lists, "and returned a list of 3"),
    (as_a_tensor, "and returned a Tensor of shape (3, 5)"),
    (with_torchs_names, "AttributeError: 'numpy.ndarray' object has no attribute 'softmax'"),
    (printed, "it returned None. Is there a `return` before the result?"),
    (kept_to_itself, "it returned None. Is there a `return` before the result?"),
]

# --- softmax_backward ------------------------------------------------------------------------------------


def with_the_whole_jacobian(dy, y):
    jacobian = y[..., :, None] * (np.eye(y.shape[-1], dtype=y.dtype) - y[..., None, :])
    return np.einsum("...i,...ij->...j", dy, jacobian)


def term_by_term(dy, y):
    dx = np.zeros_like(y)
    for place in np.ndindex(y.shape[:-1]):
        g, p = dy[place], y[place]
        for j in range(len(p)):
            dx[(*place, j)] = sum(g[i] * p[i] * ((i == j) - p[j]) for i in range(len(p)))
    return dx


def product_then_share(dy, y):
    dx = dy * y
    dx -= y * dx.sum(axis=-1, keepdims=True)
    return dx


def inner_product_by_einsum(dy, y):
    return y * dy - y * np.einsum("...i,...i->...", y, dy)[..., None]


def as_in_a_sigmoid(dy, y):
    return y * (1 - y) * dy


def as_in_a_sigmoid_written_out(dy, y):
    return dy * y - dy * np.square(y)


def the_product_alone(dy, y):
    return np.multiply(y, dy)


def sum_of_dy(dy, y):
    return y * dy - y * np.sum(dy, -1, keepdims=True)


def mean_of_dy(dy, y):
    return y * (dy - np.mean(dy, -1)[..., None])


def mean_of_the_product(dy, y):
    return y * (dy - np.mean(dy * y, -1, keepdims=True))


def of_the_log_softmax(dy, y):
    return dy - np.sum(dy, -1, keepdims=True) * y


def of_the_cross_entropy(dy, y):
    return y - dy


def sum_down_the_columns(dy, y):
    return y * (dy - np.sum(y * dy, axis=0))


def sum_down_the_second_last_axis(dy, y):
    return y * (dy - np.sum(y * dy, axis=-2, keepdims=True))


def sum_over_axis_one(dy, y):
    return y * (dy - np.sum(y * dy, axis=1, keepdims=True))


def sum_over_everything(dy, y):
    return y * (dy - np.vdot(dy, y))


def without_the_factor(dy, y):
    return dy - np.einsum("...i,...i->...", dy, y)[..., None]


def without_the_axis(dy, y):
    return y * (dy - np.sum(dy * y, -1))


def turned_round(dy, y):
    return y * (np.sum(dy * y, -1, keepdims=True) - dy)


def plus_for_minus(dy, y):
    return y * (dy + np.sum(dy * y, -1, keepdims=True))


def softmax_once_more(dy, x):
    y = right_softmax(x)
    return y * (dy - np.sum(dy * y, -1, keepdims=True))


def the_share_twice(dy, y):
    return y * (dy - y * np.sum(dy * y, -1, keepdims=True))


def arguments_swapped(dy, y):
    return dy * (y - np.sum(dy * y, -1, keepdims=True))


def written_into_dy(dy, y):
    dy -= (dy * y).sum(axis=-1, keepdims=True)
    dy *= y
    return dy


def jacobian_in_double_precision(dy, y):
    jacobian = y[..., :, None] * (np.eye(y.shape[-1]) - y[..., None, :])
    return np.einsum("...i,...ij->...j", dy, jacobian)


def the_jacobian_itself(dy, y):
    return y[..., :, None] * (np.eye(y.shape[-1], dtype=y.dtype) - y[..., None, :])


def both_gradients(dy, y):
    dx = y * (dy - (dy * y).sum(axis=-1, keepdims=True))
    return dx, dy


def gradient_not_returned(dy, y):
    dx = y * (dy - (dy * y).sum(axis=-1, keepdims=True))  # noqa: F841


def one_matrix_only(dy, y):
    jacobian = [np.diag(p) - np.outer(p, p) for p in y]
    return np.stack([g @ j for g, j in zip(dy, jacobian, strict=True)])


BACKWARD_RIGHT = [with_the_whole_jacobian, term_by_term, product_then_share, inner_product_by_einsum]
BACKWARD_WRONG = [
    (as_in_a_sigmoid, "That is the diagonal of the Jacobian alone"),
    (as_in_a_sigmoid_written_out, "That is the diagonal of the Jacobian alone"),
    (the_product_alone, "The sum over the row is missing"),
    (sum_of_dy, "You sum dy over the row"),
    (mean_of_dy, "You subtract the plain mean of dy"),
    (mean_of_the_product, "You take the mean of dy times y"),
    (of_the_log_softmax, "That is the backward of log-softmax"),
    (sum_down_the_columns, "You sum over the columns"),
    (sum_down_the_second_last_axis, "You sum over the columns"),
    (sum_over_axis_one, "axis=1 is the last axis of a matrix only"),
    (sum_over_everything, "You sum over the whole array"),
    (without_the_factor, "The factor y outside of the bracket is missing"),
    (without_the_axis, "The row sums have lost their axis"),
    (turned_round, "The sign is turned round"),
    (plus_for_minus, "You add the weighted mean"),
    (softmax_once_more, "You took the softmax of y"),
    (the_share_twice, "The factor y stands inside of the bracket too"),
    (arguments_swapped, "dy and y have changed places"),
    (of_the_cross_entropy, "15 of 15 entries are off"),
    (written_into_dy, "it changes its argument number 1"),
    (jacobian_in_double_precision, "it should return float32, and returned float64"),
    (the_jacobian_itself, "it should return shape (3, 5), and returned shape (3, 5, 5)"),
    (both_gradients, "and returned a tuple of 2"),
    (gradient_not_returned, "it returned None. Is there a `return` before the result?"),
    (one_matrix_only, "On shape (2, 3, 7) of float32: it raised ValueError"),
]

# --- attend ----------------------------------------------------------------------------------------------


def query_by_query(q, k, v):
    out = np.zeros((len(q), v.shape[1]), v.dtype)
    for i, query in enumerate(q):
        scores = np.array([query @ key for key in k]) * q.shape[1] ** -0.5
        weights = right_softmax(scores)
        for weight, value in zip(weights, v, strict=True):
            out[i] += weight * value
    return out


def with_einsum(q, k, v):
    scores = np.einsum("id,jd->ij", q, k) / math.sqrt(k.shape[1])
    return np.einsum("ij,jd->id", right_softmax(scores), v)


def scaled_queries(q, k, v):
    return right_softmax(np.inner(q / q.shape[-1] ** 0.5, k)).dot(v)


def transposed_all_through(q, k, v):
    weights = right_softmax((k @ q.T).T / float(np.sqrt(k.shape[-1])))
    return (v.T @ weights.T).T


def not_scaled(q, k, v):
    return right_softmax(np.dot(q, k.T)).dot(v)


def divided_by_d_k(q, k, v):
    return right_softmax(np.einsum("id,jd->ij", q, k) / k.shape[1]) @ v


def both_divided_by_the_root(q, k, v):
    return right_softmax((q / math.sqrt(q.shape[1])) @ (k / math.sqrt(k.shape[1])).T) @ v


def multiplied(q, k, v):
    return right_softmax(q @ k.T * q.shape[1] ** 0.5) @ v


def root_of_the_keys(q, k, v):
    return right_softmax(q @ k.T / math.sqrt(len(k))) @ v


def root_of_the_queries(q, k, v):
    return right_softmax(q @ k.T / math.sqrt(q.shape[0])) @ v


def root_of_the_values_length(q, k, v):
    return right_softmax(q @ k.T / math.sqrt(v.shape[1])) @ v


def output_scaled(q, k, v):
    return right_softmax(q @ k.T) @ v / math.sqrt(q.shape[1])


def no_softmax(q, k, v):
    return (q @ k.T / math.sqrt(q.shape[1])) @ v


def exponentials_for_weights(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[1])
    return np.exp(scores - scores.max(-1, keepdims=True)) @ v


def softmax_over_queries(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[1])
    e = np.exp(scores - scores.max(axis=0))
    return e / e.sum(axis=0) @ v


def weights_transposed(q, k, v):
    return right_softmax(q @ k.T / math.sqrt(q.shape[1])).T @ v


def keys_ask(q, k, v):
    return right_softmax(k @ q.T / math.sqrt(q.shape[1])) @ v


def no_transpose(q, k, v):
    return right_softmax(np.matmul(q, k) / math.sqrt(q.shape[1])) @ v


def query_transposed(q, k, v):
    return right_softmax(q.T @ k / math.sqrt(q.shape[1])) @ v


def weights_only(q, k, v):
    return right_softmax(np.inner(q, k) / math.sqrt(q.shape[1]))


def weights_too(q, k, v):
    weights = right_softmax(q @ k.T / math.sqrt(q.shape[1]))
    return weights @ v, weights


def softmax_twice(q, k, v):
    return right_softmax(right_softmax(q @ k.T / math.sqrt(q.shape[1]))) @ v


def softmax_without_shift(q, k, v):
    e = np.exp(q @ k.T / math.sqrt(q.shape[1]))
    return e / e.sum(1)[:, None] @ v


def softmax_with_one_shift(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[1])
    e = np.exp(scores - scores.max())
    return e / e.sum(1)[:, None] @ v


def softmax_over_everything(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[1])
    e = np.exp(scores - scores.max())
    return e / e.sum() @ v


def numpys_root(q, k, v):
    return right_softmax(q @ k.T / np.sqrt(q.shape[1])) @ v


def numpys_root_and_no_softmax(q, k, v):
    return q @ k.T / np.sqrt(q.shape[1]) @ v


def values_times_weights(q, k, v):
    return v @ right_softmax(q @ k.T / math.sqrt(q.shape[1]))


def entries_multiplied(q, k, v):
    return right_softmax(q * k / math.sqrt(q.shape[1])) * v


def values_forgotten(q, k, v):
    return right_softmax(q @ k.T / math.sqrt(q.shape[1])) @ k


def queries_scaled_in_place(q, k, v):
    q /= math.sqrt(q.shape[1])
    return right_softmax(q @ k.T) @ v


def with_tensors(q, k, v):
    return ops.scaled_dot_product_attention(Tensor(q), Tensor(k), Tensor(v))


def output_squeezed(q, k, v):
    return (right_softmax(q @ k.T / math.sqrt(q.shape[1])) @ v).squeeze()


def nothing_returned(q, k, v):
    np.matmul(right_softmax(q @ k.T / math.sqrt(q.shape[1])), v)


ATTEND_RIGHT = [query_by_query, with_einsum, scaled_queries, transposed_all_through]
ATTEND_WRONG = [
    (not_scaled, "The scores are not scaled"),
    (divided_by_d_k, "You divide by d_k; it is the square root"),
    (both_divided_by_the_root, "You divide by d_k; it is the square root"),
    (multiplied, "You multiply by the square root of d_k"),
    (root_of_the_keys, "You take the square root of the number of keys"),
    (root_of_the_queries, "You take the square root of the number of queries"),
    (root_of_the_values_length, "You take the length of the values for the scale"),
    (output_scaled, "The scale comes after the softmax"),
    (no_softmax, "the softmax between them is missing"),
    (exponentials_for_weights, "The weights of a query do not sum to 1"),
    (softmax_over_queries, "Softmax went down the columns"),
    (softmax_over_everything, "All weights together sum to 1"),
    (softmax_twice, "You take the softmax twice"),
    (weights_transposed, "You transpose the weights"),
    (keys_ask, "You compare keys with queries"),
    (no_transpose, "Q and K are multiplied without a transpose"),
    (query_transposed, "You transpose Q"),
    (weights_only, "You return the weights"),
    (weights_too, "and returned a tuple of 2"),
    (softmax_without_shift, "your softmax lacks the shift"),
    (softmax_with_one_shift, "the largest score of all"),
    (numpys_root, "np.sqrt of a whole number"),
    (numpys_root_and_no_softmax, "the softmax between them is missing"),
    (values_times_weights, "it raised ValueError: matmul"),
    (entries_multiplied, "it raised ValueError: operands could not be broadcast"),
    (values_forgotten, "You mix the keys"),
    (queries_scaled_in_place, "it changes its argument number 1"),
    (with_tensors, "and returned a Tensor of shape (3, 6)"),
    (output_squeezed, "On one token: it should return shape (1, 2), and returned shape (2,)"),
    (nothing_returned, "it returned None. Is there a `return` before the result?"),
]

# --- score_scale -----------------------------------------------------------------------------------------


def power_of_minus_a_half(d_k, std_q, std_k):
    return d_k**-0.5 / std_q / std_k


def root_of_the_variance(d_k, std_q, std_k):
    return 1 / np.sqrt(d_k * std_q**2 * std_k**2)


def terms_added_one_by_one(d_k, std_q, std_k):
    variance = 0.0
    for _ in range(d_k):
        variance += (std_q * std_k) ** 2
    return np.array(variance**-0.5)


def root_of_d_k(d_k, std_q, std_k):
    return d_k**-0.5


def over_the_variance(d_k, std_q, std_k):
    return 1 / (d_k * (std_q * std_k) ** 2)


def over_d_k(d_k, std_q, std_k):
    return 1 / d_k / std_q / std_k


def over_d_k_alone(d_k, std_q, std_k):
    return 1 / d_k


def the_deviation(d_k, std_q, std_k):
    return np.sqrt(d_k * std_q**2 * std_k**2)


def the_variance(d_k, std_q, std_k):
    return d_k * std_q**2 * std_k**2


def deviations_added(d_k, std_q, std_k):
    return d_k**-0.5 / (std_q + std_k)


def variances_added(d_k, std_q, std_k):
    return 1 / math.sqrt(d_k * (std_q**2 + std_k**2))


def squares_outside_of_the_root(d_k, std_q, std_k):
    return d_k**-0.5 * std_q**-2 * std_k**-2


def deviations_inside_of_the_root(d_k, std_q, std_k):
    return 1 / math.sqrt(d_k * std_q * std_k)


def deviations_above_the_line(d_k, std_q, std_k):
    return std_q * std_k * d_k**-0.5


def multiplied_by_the_root(d_k, std_q, std_k):
    return math.sqrt(d_k) / (std_q * std_k)


def queries_only(d_k, std_q, std_k):
    return 1 / (math.sqrt(d_k) * std_q)


def keys_only(d_k, std_q, std_k):
    return 1 / (math.sqrt(d_k) * std_k)


def without_d_k(d_k, std_q, std_k):
    return 1 / (std_q * std_k)


def whole_root(d_k, std_q, std_k):
    return 1 / (math.isqrt(d_k) * std_q * std_k)


def precedence(d_k, std_q, std_k):
    return 1 / math.sqrt(d_k) * std_q * std_k


def eight(d_k, std_q, std_k):
    return 1 / 8


def in_a_list(d_k, std_q, std_k):
    return [1 / (math.sqrt(d_k) * std_q * std_k)]


def as_text(d_k, std_q, std_k):
    return f"{1 / (math.sqrt(d_k) * std_q * std_k):.3f}"


def rounded(d_k, std_q, std_k):
    return round(1 / (math.sqrt(d_k) * std_q * std_k), 3)


def scale_printed(d_k, std_q, std_k):
    print(1 / (math.sqrt(d_k) * std_q * std_k))


def measured(d_k, std_q, std_k):
    rng = np.random.default_rng(7)
    q, k = std_q * rng.standard_normal((1000, d_k)), std_k * rng.standard_normal((1000, d_k))
    return 1 / (q * k).sum(axis=1).std()


SCALE_RIGHT = [power_of_minus_a_half, root_of_the_variance, terms_added_one_by_one]
SCALE_WRONG = [
    (root_of_d_k, "right for entries of standard deviation 1 only"),
    (over_the_variance, "You divide by the variance of the score"),
    (over_d_k, "The variance grows with d_k"),
    (over_d_k_alone, "The variance grows with d_k"),
    (the_deviation, "That is the standard deviation of the score itself"),
    (the_variance, "That is the variance of the score"),
    (deviations_added, "You add the deviations"),
    (variances_added, "You add the variances of q and k"),
    (squares_outside_of_the_root, "beside a square root of d_k"),
    (deviations_inside_of_the_root, "The deviations stand under the root without their squares"),
    (deviations_above_the_line, "The deviations go below the line too"),
    (precedence, "The deviations go below the line too"),
    (multiplied_by_the_root, "The root of d_k goes below the line"),
    (queries_only, "The deviation of the keys is missing"),
    (keys_only, "The deviation of the queries is missing"),
    (without_d_k, "d_k is missing"),
    (whole_root, "On d_k = 50"),
    (eight, "it should return 1, and returned 0.125"),
    (in_a_list, "it should return 0.125, and returned a list of 1"),
    (as_text, "it should return 0.125, and returned '0.125'"),
    (rounded, "it should return"),
    (scale_printed, "it returned None. Is there a `return` before the result?"),
    (measured, "it should return 0.125, and returned 0.13"),
]

RIGHT = {
    "softmax": SOFTMAX_RIGHT,
    "softmax_backward": BACKWARD_RIGHT,
    "attend": ATTEND_RIGHT,
    "score_scale": SCALE_RIGHT,
}
WRONG = {
    "softmax": SOFTMAX_WRONG,
    "softmax_backward": BACKWARD_WRONG,
    "attend": ATTEND_WRONG,
    "score_scale": SCALE_WRONG,
}
