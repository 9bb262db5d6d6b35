"""Chapter `add_norm`: Add & Norm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.check.tensors import operation, tensor, traced
from minigrad import Tensor

# --- add_norm --------------------------------------------------------------------------------------------


def _add_norm_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(*shape: int, eps: float = 1e-12) -> list[Any]:
        return [*(tensor(rng.standard_normal(one)) for one in (shape, shape, shape[-1:], shape[-1:])), eps]

    yield "2 texts of 3 tokens, d_model = 5", *draw(2, 3, 5)
    yield "a large eps, 4 tokens, d_model = 4", *draw(4, 4, eps=float(rng.uniform(0.3, 2)))
    yield "one token, d_model = 7", *draw(7)
    x, y, gain, bias, eps = draw(3, 6)
    rows = tensor(np.repeat([[0.0], [1.0], [2.0]], 6, axis=1))
    yield "rows of equal numbers", tensor(np.full(x.shape, 3.0)), rows, gain, bias, 0.1
    x, y, gain, bias, eps = draw(5, 8)
    whole = 65536 + 8 * rng.integers(-4, 5, x.shape)  # whole numbers, so that all means are exact
    parts = whole - y.data.round(), y.data.round(), gain.data, bias.data
    yield "float32, around 65,536", *(tensor(part.astype(np.float32)) for part in parts), eps


@exercise(
    difficulty=1,
    minutes=10,
    cases=_add_norm_cases,
    observed=traced,
    same_dtype=True,
    hints="""
Add x and y first. Then every token, a row along the last axis, gets a mean and a variance of its own: axis=-1, keepdims=True.

Subtract the mean, divide by the root of variance plus eps, (…) ** 0.5, and only then apply gain and bias, which have one number for each feature.
""",
    mistakes="""
You normalise only what the sub-layer made. Add what came in first: x + y.
    total = x + y -> total = y
You normalise only what came in. Add what the sub-layer made first: x + y.
    total = x + y -> total = x
You normalise y and add x afterwards. In BERT the sum is normalised.
    total = x + y -> total = y ; * gain + bias -> * gain + bias + x
    total = x + y -> total = y ; return -> return x +
You normalise x and add y afterwards. In BERT the sum is normalised.
    total = x + y -> total = x ; * gain + bias -> * gain + bias + y
You normalise x and y separately and add the results. Normalise their sum, once.
    return right(x, 0 * y, gain, bias, eps) + right(0 * x, y, gain, bias, eps)
    return right(x, 0 * y, gain, bias, eps) + right(0 * x, y, gain, 0 * bias, eps)
You subtract, but the residual connection adds.
    x + y -> x - y || y - x
Your mean and variance go over the tokens, so a token's output depends on its neighbours. LayerNorm takes the last axis, the features of one token.
    axis=-1 -> axis=0
    axis=-1 -> axis=-2
You take one mean and one variance for all tokens. Each token has its own: axis=-1, keepdims=True.
    axis=-1, keepdims=True ->
You do not subtract the mean. LayerNorm centres each row before it divides.
    centred / ( -> total / (
    centred = total - total.mean(axis=-1, keepdims=True) -> centred = total
You square the sums themselves. The variance is the mean of the squares after the mean has been subtracted.
    (centred**2) -> (total**2)
You divide the sum of squares by d - 1. LayerNorm divides it by d, because it describes this row and estimates nothing.
    (centred**2).mean(axis=-1, keepdims=True) -> (centred**2).sum(axis=-1, keepdims=True) / (x.shape[-1] - 1)
The sum of the squares is not the variance. Divide it by the number of features, with mean.
    (centred**2).mean -> (centred**2).sum
You divide by the variance. Divide by its root, the standard deviation.
    (variance + eps) ** 0.5 -> (variance + eps)
You multiply by the standard deviation. Divide by it.
    centred / ( -> centred * (
You compute the variance from only the entries above the mean. It is the mean of all squares.
    (centred**2).mean(axis=-1, keepdims=True) -> (centred**2 * Tensor((centred.data > 0).astype(x.dtype))).mean(axis=-1, keepdims=True)
You do not divide at all, but a row has to come out with variance 1.
    / (variance + eps) ** 0.5 ->
[eps-outside] eps is outside the root. Add it to the variance, under the root.
    (variance + eps) ** 0.5 -> (variance**0.5 + eps)
You add eps twice, or its square. Add eps itself to the variance.
    variance + eps -> variance + eps**2 || variance + 2 * eps
eps is missing, so a row of equal numbers becomes 0 / 0.
    variance + eps -> variance
Your answer ignores the parameter eps, but a large eps must change the output. Add it to the variance, under the root, instead of using an eps of your own.
    variance + eps -> variance + 1e-5 || variance + 1e-12
The gain is missing. Multiply each feature by its own gain.
    * gain ->
The bias is missing. Add its own bias to each feature.
    + bias ->
Gain and bias are missing: multiply each feature by its gain, then add its bias.
    * gain + bias ->
[gain-bias-swapped] Gain and bias are exchanged: the gain multiplies, the bias is added.
    * gain + bias -> * bias + gain
You add the bias before the gain, so the bias is multiplied too. Multiply by the gain first, then add the bias.
    return centred / (variance + eps) ** 0.5 * gain + bias -> return (centred / (variance + eps) ** 0.5 + bias) * gain
You multiply by 1 + gain. The gain is the factor itself; it starts at 1.
    * gain -> * (1 + gain)
You apply the gain before the normalisation, which partly undoes it. Apply it after the normalisation.
    total = x + y -> total = (x + y) * gain ; * gain + bias -> + bias
You compute the variance as the mean of the squares minus the square of the mean. This is a small difference of large numbers: in float32 no digit of it is right where the mean is large. Subtract the mean first.
    (centred**2).mean(axis=-1, keepdims=True) -> (total**2).mean(axis=-1, keepdims=True) - total.mean(axis=-1, keepdims=True) ** 2
The gradient ends at .data. Mean and variance move when x moves, so their gradients belong to that of x.
    (centred**2).mean(axis=-1, keepdims=True) -> Tensor((centred.data**2).mean(axis=-1, keepdims=True))
    total - total.mean(axis=-1, keepdims=True) -> total - Tensor(total.data.mean(axis=-1, keepdims=True))
    (centred**2).mean(axis=-1, keepdims=True) -> Tensor((centred.data**2).mean(axis=-1, keepdims=True)) ; total - total.mean(axis=-1, keepdims=True) -> total - Tensor(total.data.mean(axis=-1, keepdims=True))
""",
)
def add_norm(x, y, gain, bias, eps):
    total = x + y  #: the input plus the sub-layer's output
    centred = total - total.mean(axis=-1, keepdims=True)  #: each token's row minus its own mean
    variance = (centred**2).mean(axis=-1, keepdims=True)  #: each row's variance, without eps
    return centred / (variance + eps) ** 0.5 * gain + bias


# --- layer_norm ------------------------------------------------------------------------------------------


def _norm_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for name, shape, eps, dtype in (
        ("5 tokens, d = 7", (5, 7), 1e-12, np.float64),
        ("2 texts of 3 tokens, d = 4", (2, 3, 4), 1e-12, np.float64),
        ("a large eps, 4 tokens, d = 4", (4, 4), float(rng.uniform(0.3, 2)), np.float64),
        ("one token, d = 3", (1, 3), 1e-12, np.float64),
        ("float32, 6 tokens, d = 9", (6, 9), 1e-12, np.float32),
    ):
        x = 2 * rng.standard_normal(shape) + 1
        parts = x, rng.standard_normal(shape[-1]), rng.standard_normal(shape[-1])
        yield name, *(tensor(part.astype(dtype)) for part in parts), eps


@exercise(
    difficulty=3,
    minutes=30,
    cases=_norm_cases,
    observed=operation,
    same_dtype=True,
    hints="""
Go backwards: the bias is added to every token, so its gradient is a sum over all tokens. The gain multiplies x̂, so its gradient is a sum of dy x̂. What reaches x̂ is g = dy times gain.

x_j acts on x̂ in three ways: by itself, through the mean, and through the divisor. Each gives a term of dx; chapter `add_norm` has the rates.

dx = (g - mean of g - x̂ times mean of g x̂) / s, with the means along the last axis. A gradient has the shape of what it belongs to, so for gain and bias sum over every axis but the last.
""",
    mistakes="""
[constant-moments] You treat mean and divisor as constants. Both move when an entry of x moves, and each gives one more term.
    - mean - share ->
The term of the mean is missing: if x_j moves, the mean moves, and every x̂ with it. Subtract the mean of g.
    - mean ->
The term of the divisor is missing: if x_j moves, the standard deviation moves. Subtract x̂ times the mean of g x̂.
    - share ->
The divisor's term has the same number for all features. It goes along x̂: multiply the mean of g x̂ by x̂.
    share = x_hat * -> share =
You compute the divisor's term from x minus its mean, which is not yet divided by the standard deviation. Take x̂ in both places.
    x_hat * (g * x_hat) -> centred * (g * centred)
    x_hat * (g * x_hat) -> centred * (g * x_hat) || x_hat * (g * centred)
Your two terms are sums over the features. Both are means.
    g.mean( -> g.sum( ; (g * x_hat).mean( -> (g * x_hat).sum(
One of your two terms is a sum over the features. Both are means.
    g.mean( -> g.sum(
    (g * x_hat).mean( -> (g * x_hat).sum(
You add a term to g. Both terms are subtracted from it.
    - mean - share -> + mean + share
    - mean -> + mean
    - share -> + share
dx is not divided by the standard deviation. x̂ is divided by it, so the gradient is divided by it too.
    share) / size -> share)
dx is multiplied by the standard deviation. Divide by it.
    share) / size -> share) * size
dx is divided by the variance. Divide by its root.
    share) / size -> share) / size**2
The gain is missing in dx. What reaches x̂ is dy times gain.
    dy * gain.data -> dy
You apply the gain after the two terms. It belongs in g, before the means are taken.
    dy * gain.data -> dy ; share) / size -> share) / size * gain.data
The gain's gradient is computed from dy times gain. Compute it from dy times x̂: the gain itself does not enter.
    (dy * x_hat).sum -> (g * x_hat).sum
The bias's gradient is computed from dy times gain. The bias is added after the gain, so sum dy alone.
    dy.sum -> g.sum
[gain-from-x] The gain's gradient is computed from x, but the gain multiplies x̂.
    (dy * x_hat).sum -> (dy * x.data).sum || (dy * centred).sum
The gain's gradient is the sum of dy, but that is the bias's gradient. The gain multiplies x̂.
    (dy * x_hat).sum -> dy.sum
All tokens share gain and bias, so their gradients are sums over the tokens, not means.
    (dy * x_hat).sum -> (dy * x_hat).mean ; dy.sum -> dy.mean
    dy.sum -> dy.mean
    (dy * x_hat).sum -> (dy * x_hat).mean
Your means go over the tokens. All of LayerNorm's means go over the last axis, the features of one token.
    axis=-1 -> axis=0
    axis=-1 -> axis=-2
eps is missing. It is added to the variance, under the root.
    (centred**2).mean(axis=-1, keepdims=True) + eps -> (centred**2).mean(axis=-1, keepdims=True)
eps is outside the root. It is added to the variance.
    np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps) -> (np.sqrt((centred**2).mean(axis=-1, keepdims=True)) + eps)
[other-order] backward returns the gradients in the order of the parents: x, gain, bias.
    return dx, (dy * x_hat).sum(axis=tokens), dy.sum(axis=tokens) -> return dx, dy.sum(axis=tokens), (dy * x_hat).sum(axis=tokens)
Gain and bias have changed places in the forward pass: the gain multiplies, the bias is added.
    x_hat * gain.data + bias.data -> x_hat * bias.data + gain.data
The gain is missing in the forward pass.
    x_hat * gain.data + bias.data -> x_hat + bias.data
The bias is missing in the forward pass.
    x_hat * gain.data + bias.data -> x_hat * gain.data
The variance is the sum of squares over d, not over d - 1.
    (centred**2).mean(axis=-1, keepdims=True) -> (centred**2).sum(axis=-1, keepdims=True) / (x.shape[-1] - 1)
""",
)
def layer_norm(x, gain, bias, eps):
    centred = x.data - x.data.mean(axis=-1, keepdims=True)  #: each token's row minus its own mean
    size = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)  #: each row's divisor, √(σ² + ε)
    x_hat = centred / size  #: x̂, the normalised rows, before gain and bias

    def backward(dy):
        g = dy * gain.data  #: the gradient for x̂, through the gain
        mean = g.mean(axis=-1, keepdims=True)  #: the term of the mean: each row's mean of g
        share = x_hat * (g * x_hat).mean(axis=-1, keepdims=True)  #: the term of the divisor, along x̂
        dx = (g - mean - share) / size  #: the gradient for x, row by row
        tokens = tuple(range(x.ndim - 1))  #: every axis but the last
        return dx, (dy * x_hat).sum(axis=tokens), dy.sum(axis=tokens)  #: the gradients for x, gain and bias

    return Tensor.from_op(x_hat * gain.data + bias.data, (x, gain, bias), backward)


# --- overwrite -------------------------------------------------------------------------------------------


def _overwrite_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "3 tokens, d = 4, feature 0 into feature 2", rng.standard_normal((3, 4)), 0, 2
    yield "5 tokens, d = 5, feature 4 into feature 1", rng.standard_normal((5, 5)), 4, 1
    yield "one token, d = 7, feature 2 into feature 3", rng.standard_normal((1, 7)), 2, 3


@exercise(
    difficulty=2,
    minutes=15,
    cases=_overwrite_cases,
    given="add_and_norm",
    hints="""
x W has to be the change: the new token minus the old one. For all features but one the change is 0, so almost all of W is 0.

At the target the change is x_source - x_target. Column j of W determines what is written into feature j, and row i what is read from feature i.

W[target, target] = -1 removes what was there, and W[source, target] = 1 writes the other feature.
""",
    mistakes="""
The old feature is still there, because the skip path carries it. The sub-layer has to remove it, with -1 at its place.
    W[target, target] = -1 -> pass
The old feature is gone, and nothing is written in its place.
    W[source, target] = 1 -> pass
W is transposed: row i reads feature i, and column j writes feature j.
    W[source, target] -> W[target, source]
Source and target are exchanged.
    W[target, target] = -1 -> W[source, source] = -1 ; W[source, target] -> W[target, source]
Your W makes the whole new token, as if nothing were added to it. The skip path adds the old token, so W has to make only the change.
    W = np.zeros((d, d)) -> W = np.eye(d) ; W[target, target] = -1 -> W[target, target] = 0
The other features are written a second time: W is 1 on the diagonal, but the skip path already carries them. Their change is 0.
    W = np.zeros((d, d)) -> W = np.eye(d)
You add the old feature once more instead of removing it. Its entry in W is -1.
    W[target, target] = -1 -> W[target, target] = 1
You remove the source feature. It is copied, so it stays where it was.
    W[source, target] = 1 -> W[source, target] = 1; W[source, source] = -1
The skip path is missing in the result. Add & Norm normalises X + X W.
    total = X + X @ W -> total = X @ W
You return the sum as it is. Add & Norm normalises it.
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12) -> return total
You remove the whole old token: with -1 on the whole diagonal of W, nothing is left of the other features.
    W = np.zeros((d, d)) -> W = -np.eye(d)
The sub-layer writes the change with the wrong sign.
    W[target, target] = -1 -> W[target, target] = 1 ; W[source, target] = 1 -> W[source, target] = -1
You count the features from 1. The first feature is number 0.
    W[target, target] -> W[target - 1, target - 1] ; W[source, target] -> W[source - 1, target - 1]
You remove the old feature twice: its entry in W is -1.
    W[target, target] = -1 -> W[target, target] = -2
""",
)
def overwrite(X, source, target):
    d = X.shape[-1]  #: the number of features
    W = np.zeros((d, d))  #: W, from feature i (row) to j (column), still 0
    W[target, target] = -1  #: the entry that removes the old feature
    W[source, target] = 1  #: the entry that writes the copy
    total = X + X @ W  #: each token plus its change, not yet normalised
    centred = total - total.mean(axis=-1, keepdims=True)  #: each token's row minus its own mean
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)


# --- first_fault -----------------------------------------------------------------------------------------

Norm = Callable[[np.ndarray, float], np.ndarray]


def _over(
    *axes: int, root: Callable[[np.ndarray, float], np.ndarray], centre: bool = True, ddof: int = 0
) -> Norm:
    """A normalisation over these axes of (B, L, d)."""

    def norm(x: np.ndarray, eps: float) -> np.ndarray:
        centred = x - x.mean(axis=axes, keepdims=True) if centre else x
        count = np.prod([x.shape[axis] for axis in axes]) - ddof
        return centred / root((centred**2).sum(axis=axes, keepdims=True) / count, eps)

    return norm


def _norms() -> dict[str, Norm]:
    """Normalisations by what is special about them."""

    def right(variance: np.ndarray, eps: float) -> np.ndarray:
        return np.sqrt(variance + eps)

    def rows_and_all(x: np.ndarray, eps: float) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean() + eps)

    return {
        "a right LayerNorm": _over(2, root=right),
        "one that takes its mean over the texts": _over(0, root=right),
        "one that takes its mean over the tokens of a text": _over(1, root=right),
        "a BatchNorm": _over(0, 1, root=right),
        "one that takes its mean over everything": _over(0, 1, 2, root=right),
        "one that takes its mean over a whole text": _over(1, 2, root=right),
        "one that divides all rows by one number": rows_and_all,
        "one that leaves the mean in": _over(2, root=right, centre=False),
        "one that counts d - 1": _over(2, root=right, ddof=1),
        "one that divides by the variance": _over(2, root=lambda variance, eps: variance + eps),
        "one that only centres": _over(2, root=lambda variance, eps: np.ones_like(variance)),
        "one with eps outside of the root": _over(2, root=lambda variance, eps: np.sqrt(variance) + eps),
        "one without eps": _over(2, root=lambda variance, eps: np.sqrt(variance)),
        "one with an eps of its own": _over(2, root=lambda variance, eps: np.sqrt(variance + 1e-12)),
    }


def _fault_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    del rng
    yield from _norms().items()


@exercise(
    difficulty=2,
    minutes=25,
    cases=_fault_cases,
    hints="""
Draw x of shape (3, 4, 5) with a mean that is far from 0. "neighbours": a token that is alone, norm(x[:1, :1], eps), must come out as it does among the others.

"mean" and "size": with a tiny eps every row of the output has mean 0 and variance 1.

"eps": with a large eps, such as 0.5, a row of variance v comes out with variance v / (v + eps).
""",
    mistakes="""
The test of the neighbours is missing: other texts and other tokens must not count.
    if not same(norm(x[:1, :1], 1e-12), z[:1, :1]): -> if False:
You change only the other texts. Other tokens of the same text must not count either.
    norm(x[:1, :1], 1e-12), z[:1, :1] -> norm(x[:1], 1e-12), z[:1]
You change only the other tokens of the text. Other texts must not count either.
    norm(x[:1, :1], 1e-12), z[:1, :1] -> norm(x[:, :1], 1e-12), z[:, :1]
The test of the mean is missing: every row has to come out with mean 0.
    if not same(z.mean(axis=-1), 0): -> if False:
The test of the size is missing: with a tiny eps every row has to come out with variance 1.
    if not same(z.var(axis=-1), 1): -> if False:
You compute the variance with d - 1. LayerNorm divides by d, so a right LayerNorm looks wrong to your test.
    z.var(axis=-1) -> z.var(axis=-1, ddof=1)
Your tolerance is too wide: counting d - 1 instead of d changes a small row by only a few per cent.
    z.var(axis=-1), 1) -> z.var(axis=-1) / 2, 0.5, atol=0.3)
The test of eps is missing, or its eps is too small to be seen. With a large eps, such as 0.5, the rows must come out smaller.
    if not same(norm(x, 0.5).var(axis=-1), v / (v + 0.5)): -> if False:
    if not same(norm(x, 0.5).var(axis=-1), v / (v + 0.5)): -> if not same(norm(x, 1e-12).var(axis=-1), v / (v + 1e-12)):
You ask only whether eps changes anything. An eps outside of the root does so too, so compare with v / (v + eps).
    if not same(norm(x, 0.5).var(axis=-1), v / (v + 0.5)): -> if same(norm(x, 0.5), z):
You expect the output of an eps outside of the root. It belongs under the root, which gives variance v / (v + eps).
    v / (v + 0.5)): -> v / (np.sqrt(v) + 0.5) ** 2):
You expect rows of variance 1 with a large eps too. It makes their variance smaller: v / (v + eps).
    v / (v + 0.5)): -> 1):
You compare floats with ==. Rounding turns a 1 into 0.9999999999999999, so a right LayerNorm fails. Allow for a small difference.
    same = np.allclose -> same = lambda one, other, **_: bool(np.all(one == other))
Your test of the neighbours is the wrong way round: it is a fault if the output changes.
    if not same(norm(x[:1, :1], 1e-12), z[:1, :1]): -> if same(norm(x[:1, :1], 1e-12), z[:1, :1]):
Your test of the mean comes before that of the neighbours. Where both fail, return the first in the list.
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 4, 5)) + 2
    z = norm(x, 1e-12)
    if not np.allclose(z.mean(axis=-1), 0):
        return "mean"
    return right(norm)
You compare with a right LayerNorm. That shows whether this norm is wrong, but not which test it fails first.
    x = np.random.default_rng(0).standard_normal((3, 4, 5)) + 2
    z = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.5)
    return "none" if np.allclose(norm(x, 0.5), z) else "size"
Return a name, or "none" if no test fails.
    return "none" -> return "" || return None
""",
)
def first_fault(norm):
    rng = np.random.default_rng(0)
    same = np.allclose
    x = rng.standard_normal((3, 4, 5)) + 2  #: rows with a mean that shows if it stays
    z, v = norm(x, 1e-12), x.var(axis=-1)  #: the output with a tiny eps, and the rows' variances
    if not same(norm(x[:1, :1], 1e-12), z[:1, :1]):
        return "neighbours"
    if not same(z.mean(axis=-1), 0):
        return "mean"
    if not same(z.var(axis=-1), 1):
        return "size"
    if not same(norm(x, 0.5).var(axis=-1), v / (v + 0.5)):
        return "eps"
    return "none"


# --- what_is_left ----------------------------------------------------------------------------------------


def _left_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "24 sub-layers, v = 0.04", 24, 0.04
    yield "one sub-layer, v = 1", 1, 1.0
    yield "2 sub-layers, v = 0.5", 2, 0.5
    for n in (7, 48):
        v = round(float(rng.uniform(0.05, 0.9)), 2)
        yield f"{n} sub-layers, v = {v}", n, v
    yield "no sub-layer", 0, 0.3


@exercise(
    difficulty=2,
    minutes=20,
    cases=_left_cases,
    hints="""
Take one sub-layer. Post-LN: a row of variance 1 and a change of variance v that is uncorrelated with it. What is the variance of the sum, and by what does LayerNorm divide the old row's part to bring the sum back to variance 1?

The second sub-layer of post-LN meets a row of variance 1 again, so the same happens once more. In pre-LN nothing is divided: the row's variance grows by v each time, because f reads a normalised row.

Variances of uncorrelated changes add up. Post-LN multiplies the share by 1 / (1 + v) each time; in pre-LN, 1 of 1 + n v is left at the end.
""",
    mistakes="""
That is the ratio of the sizes. A share of the variance is its square.
    (1 + v) ** -n -> (1 + v) ** (-n / 2) ; 1 / (1 + n * v) -> (1 + n * v) ** -0.5
In post-LN you give the ratio of the sizes. A share of the variance is its square.
    (1 + v) ** -n -> (1 + v) ** (-n / 2)
[ratio-of-sizes] In pre-LN you give the ratio of the sizes. A share of the variance is its square.
    1 / (1 + n * v) -> (1 + n * v) ** -0.5
You give both the same share, that of post-LN. In pre-LN no LayerNorm lies on the skip path.
    1 / (1 + n * v) -> (1 + v) ** -n
You give both the same share, that of pre-LN. In post-LN each sum is normalised before the next one, so the factors multiply.
    (1 + v) ** -n -> 1 / (1 + n * v)
Pre-LN's share comes first in your answer. The order is post-LN, pre-LN.
    return post, pre -> return pre, post
You give the share that the sub-layers have written. Return the share of what came in.
    return post, pre -> return 1 - post, 1 - pre
That is the limit for small v. Each LayerNorm divides by exactly 1 + v.
    (1 + v) ** -n -> np.exp(-n * v)
[share-negative] A share cannot be negative or grow: after each sub-layer the old share is multiplied by 1 / (1 + v).
    (1 + v) ** -n -> 1 - n * v || (1 - v) ** n || 1 - v
You divide once too often: with n sub-layers there are n LayerNorms.
    (1 + v) ** -n -> (1 + v) ** -(n + 1)
You count two LayerNorms for each sub-layer. There are two in a layer, one after each of its two sub-layers.
    (1 + v) ** -n -> (1 + v) ** (-2 * n)
n counts the sub-layers already, so do not double it. A layer has two sub-layers, so n of them are n / 2 layers.
    (1 + v) ** -n -> (1 + v) ** (-2 * n) ; n * v -> 2 * n * v
    n * v -> 2 * n * v
Pre-LN's skip path takes nothing away, but each sub-layer writes variance v on top. So the share of what came in falls.
    1 / (1 + n * v) -> 1.0
In post-LN the row has variance 1 and the sum 1 + v. You take v, the variance of the change alone.
    (1 + v) ** -n -> v**n || v**-n
You let pre-LN's changes grow with the row. f reads a normalised row, so each change has variance v.
    1 / (1 + n * v) -> 1 / (1 + v + 2 * (n - 1) * v) || 1 / (1 + v * n * (n + 1) / 2)
The sizes of uncorrelated changes do not add up, but their squares, the variances, do.
    1 / (1 + n * v) -> 1 / (1 + n * v**0.5) ** 2 || 1 / (1 + n**2 * v)
v is a variance already, so do not square it.
    v) ** -n -> v**2) ** -n ; n * v) -> n * v**2)
The variances are there, but the shares are missing. What came in has variance 1, so divide 1 by the variance that comes out.
    (1 + v) ** -n -> (1 + v) ** n ; 1 / (1 + n * v) -> 1 + n * v
In pre-LN you return the variance instead of the share. Divide 1 by it.
    1 / (1 + n * v) -> 1 + n * v
In your answer post-LN's share grows. Divide by 1 + v each time.
    (1 + v) ** -n -> (1 + v) ** n
""",
)
def what_is_left(n, v):
    post = (1 + v) ** -n  # each LayerNorm divides the variance by 1 + v
    pre = 1 / (1 + n * v)  # nothing divides; the variances add up
    return post, pre
