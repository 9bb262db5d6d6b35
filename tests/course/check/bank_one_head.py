"""Answers to the exercises of chapter 7 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math

import numpy as np

from minigrad import Tensor, ops

__all__ = ["RIGHT", "WRONG"]


def by_the_largest_absolute_value(x):
    e = np.exp(x - np.abs(x).max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


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


def sums_by_matrix_product(x):
    e = np.exp(x)
    return e / (e @ np.ones((x.shape[-1], 1), x.dtype)) if x.ndim > 1 else e / e.sum()


def axis_one_for_the_sum(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def maximum_and_sum_without_an_axis(x):
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


def largest_score_and_logarithm_in_one_sum(x):
    m = x.max(axis=-1, keepdims=True)
    return np.exp(x - (m + np.log(np.exp(x - m).sum(axis=-1, keepdims=True))))


def guarded(x):
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / (np.sum(e, -1, keepdims=True) + 1e-8)


def smallest_subtracted_down_the_columns(x):
    e = np.exp(x - np.min(x, axis=0))
    return e / np.sum(e, axis=0)


def logarithm_down_the_columns(x):
    shifted = x - np.max(x, axis=0)
    return shifted - np.log(np.sum(np.exp(shifted), axis=0))


def shifted_in_place(x):
    x -= x.max(axis=-1, keepdims=True)
    e = np.exp(x)
    return e / e.sum()


def kept_to_itself(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    e = e / e.sum(axis=-1, keepdims=True)


SOFTMAX_RIGHT = [
    a_row_at_a_time,
    powers_of_two,
    through_the_logarithm,
    in_place_on_a_copy,
    by_columns_of_the_transpose,
]
SOFTMAX_WRONG = [
    (by_the_largest_absolute_value, "You take the largest absolute value"),
    (sums_by_matrix_product, "Large scores overflow"),
    (axis_one_for_the_sum, "axis=1 is the last axis of a matrix only"),
    (maximum_and_sum_without_an_axis, "All entries together sum to 1"),
    (
        lambda x: (
            np.stack([right_softmax(row) for row in x]) if x.ndim > 1 else np.exp(x) / np.exp(x).sum(axis=1)
        ),
        "On one row alone (6,): it raised AxisError",
    ),
    (largest_score_and_logarithm_in_one_sum, "beside the lowest float it is lost to rounding"),
    (guarded, "A small number added to the denominator"),
    (lambda x: np.exp(x) / np.exp(x).sum(), ("Large scores overflow", "All entries together sum to 1")),
    (smallest_subtracted_down_the_columns, ("each row's smallest entry", "Each column sums to 1")),
    (logarithm_down_the_columns, ("That is the logarithm of softmax", "Each column sums to 1")),
    (shifted_in_place, ("it changes `x`", "All entries together sum to 1")),
    (
        lambda x: right_softmax(x.astype(np.float64)),
        "On a (3, 5) array of float32: The numbers are right, and are float64",
    ),
    (lambda x: right_softmax(x.astype(np.float32)), "are float32 for float64. Right is only"),
    (lambda x: np.squeeze(right_softmax(x)), "it should return shape (6, 1), and returned shape (6,)"),
    (lambda x: right_softmax(x).tolist(), "and returned a list of 3"),
    (lambda x: ops.softmax(Tensor(x)), "and returned a Tensor of shape (3, 5)"),
    (lambda x: x.softmax(dim=-1), "AttributeError: 'numpy.ndarray' object has no attribute 'softmax'"),
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


def jacobian_with_a_plus(dy, y):
    jacobian = y[..., :, None] * (np.eye(y.shape[-1], dtype=y.dtype) + y[..., None, :])
    return np.einsum("...i,...ij->...j", dy, jacobian)


def softmax_once_more(dy, x):
    y = right_softmax(x)
    return y * (dy - np.sum(dy * y, -1, keepdims=True))


def written_into_dy(dy, y):
    dy += (dy * y).sum(axis=-1, keepdims=True)
    dy *= y
    return dy


def jacobian_in_double_precision(dy, y):
    jacobian = y[..., :, None] * (np.eye(y.shape[-1]) - y[..., None, :])
    return np.einsum("...i,...ij->...j", dy, jacobian)


def both_gradients(dy, y):
    dx = y * (dy - (dy * y).sum(axis=-1, keepdims=True))
    return dx, dy


def one_matrix_only(dy, y):
    jacobian = [np.diag(p) - np.outer(p, p) for p in y]
    return np.stack([g @ j for g, j in zip(dy, jacobian, strict=True)])


BACKWARD_RIGHT = [with_the_whole_jacobian, term_by_term, product_then_share, inner_product_by_einsum]
BACKWARD_WRONG = [
    (lambda dy, y: y * (dy - y), "You subtract y itself"),
    (lambda dy, y: dy * y - dy * np.square(y), "That is the diagonal of the Jacobian alone"),
    (lambda dy, y: dy - np.sum(dy, -1, keepdims=True) * y, "That is the backward of log-softmax"),
    (lambda dy, y: y - dy, "That is the gradient of softmax and cross-entropy in one"),
    (lambda dy, y: y * (dy - np.vdot(dy, y)), "You sum over the whole array"),
    (jacobian_with_a_plus, "You add the weighted mean"),
    (softmax_once_more, "You took the softmax of y"),
    (
        lambda dy, y: dy - np.einsum("...i->...", dy)[..., None],
        ("You sum dy over the row", "The factor y outside of the bracket is missing"),
    ),
    (
        lambda dy, y: y * (np.sum(dy * y, axis=0) - dy),
        ("The sign is turned round", "You sum over the columns"),
    ),
    (written_into_dy, ("it changes `dy`", "You add the weighted mean")),
    (jacobian_in_double_precision, "and are float64 for float32"),
    (both_gradients, "and returned a tuple of 2"),
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


def numpys_root(q, k, v):
    return right_softmax(q @ k.T / np.sqrt(q.shape[-1])) @ v  # float64


def in_float64_inside(q, k, v):
    return right_softmax((q @ k.T / math.sqrt(q.shape[-1])).astype(float)) @ v


def keys_ask_down_the_columns(q, k, v):
    scores = k @ q.T / math.sqrt(q.shape[1])
    e = np.exp(scores - scores.max(axis=0))
    return e / e.sum(axis=0) @ v


def softmax_with_one_shift(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[1])
    e = np.exp(scores - scores.max())
    return e / e.sum(1)[:, None] @ v


def queries_scaled_in_place(q, k, v):
    q /= math.sqrt(q.shape[1])
    return right_softmax(q @ k.T) @ k


ATTEND_RIGHT = [
    query_by_query,
    with_einsum,
    scaled_queries,
    transposed_all_through,
    numpys_root,
    in_float64_inside,
]
ATTEND_WRONG = [
    (
        lambda q, k, v: right_softmax((q / math.sqrt(q.shape[1])) @ (k / math.sqrt(k.shape[1])).T) @ v,
        "You divide by d_k",
    ),
    (lambda q, k, v: right_softmax(q @ k.T) @ v / math.sqrt(q.shape[1]), "The scale comes after the softmax"),
    (lambda q, k, v: right_softmax(k @ q.T / math.sqrt(q.shape[1])) @ v, "You compare keys with queries"),
    (keys_ask_down_the_columns, "the rows of your weights belong to the keys"),
    (softmax_with_one_shift, "Your softmax subtracts the largest score of all"),
    (
        lambda q, k, v: np.stack([v[np.argmax(k @ query)] for query in q]),
        "Each query takes the value of its best key alone",
    ),
    (lambda q, k, v: right_softmax(np.inner(q, k)) @ k, ("The scores are not scaled", "You mix the keys")),
    (
        lambda q, k, v: right_softmax(k @ q.T / math.sqrt(len(k))).T @ v,
        ("root of the number of keys", "The weights of each key sum to 1"),
    ),
    (
        lambda q, k, v: np.linalg.multi_dot([q, k.T, v]),
        ("The scores are not scaled", "the softmax between them is missing"),
    ),
    (queries_scaled_in_place, ("it changes `q`", "You mix the keys")),
    (
        lambda q, k, v: right_softmax(q[0] @ k.T / math.sqrt(len(q[0]))) @ v,
        "it should return shape (3, 6), and returned shape (6,)",
    ),
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


SCALE_RIGHT = [power_of_minus_a_half, root_of_the_variance, terms_added_one_by_one]
SCALE_WRONG = [
    (lambda d_k, std_q, std_k: d_k**-0.5, "That is right for entries of standard deviation 1 only"),
    (
        lambda d_k, std_q, std_k: 1 / sum((std_q * std_k) ** 2 for _ in range(d_k)),
        "You divide by the variance of the score",
    ),
    (lambda d_k, std_q, std_k: (d_k * (std_q**2 + std_k**2)) ** -0.5, "You add the variances of q and k"),
    (lambda d_k, std_q, std_k: 2 / (std_q + std_k) / math.sqrt(d_k), "You add the deviations"),
    (
        lambda d_k, std_q, std_k: 1 / d_k,
        ("for entries of standard deviation 1 only", "The variance grows with d_k"),
    ),
    (
        lambda d_k, std_q, std_k: d_k * std_q * std_k,
        ("standard deviation of the score itself", "grows with d_k"),
    ),
    (
        lambda d_k, std_q, std_k: 1 / (std_q * d_k),
        ("The variance grows with d_k", "The deviation of the keys is missing"),
    ),
    (lambda d_k, std_q, std_k: [1 / (math.sqrt(d_k) * std_q * std_k)], "and returned a list of 1"),
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
