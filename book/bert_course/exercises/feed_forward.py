"""Chapter `feed_forward`: the feed-forward network."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.check.tensors import operation, tensor, traced
from minigrad import Tensor, ops


def erf(x: np.ndarray) -> np.ndarray:
    """The error function of each number, in the dtype of x."""
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def gelu_of(x: np.ndarray) -> np.ndarray:
    """By the error function, in the dtype of x."""
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


# --- feed_forward ----------------------------------------------------------------------------------------


def _forward_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for name, shape, d_ff, dtype in (
        ("5 tokens, d_model = 3, d_ff = 8", (5, 3), 8, np.float64),
        ("L = d_model = d_ff = 4", (4, 4), 4, np.float64),
        ("a batch of 2 texts", (2, 3, 6), 5, np.float64),
        ("float32, d_ff = 1", (3, 7), 1, np.float32),
        ("one token without an axis of tokens", (4,), 9, np.float64),
    ):
        d_model = shape[-1]
        shapes = (shape, (d_model, d_ff), (d_ff,), (d_ff, d_model), (d_model,))
        yield name, *(tensor(rng.standard_normal(s).astype(dtype)) for s in shapes)


@exercise(
    difficulty=1,
    minutes=10,
    cases=_forward_cases,
    observed=traced,
    same_dtype=True,
    hints="""
Write two linear layers, each a matrix product and a bias, with GELU between them: (…, d_model) -> (…, d_ff) -> (…, d_model).

ops.gelu(H) applies GELU to each entry of a Tensor.
""",
    mistakes="""
The activation is missing: then the two layers are one matrix.
    ops.gelu(H) -> H
[relu] That is ReLU. BERT has GELU, which lets a little through below 0.
    ops.gelu(H) -> ops.relu(H)
That is another activation function: BERT's is GELU, ops.gelu.
    ops.gelu(H) -> H.tanh() || ops.sigmoid(H) || H * ops.sigmoid(H)
You apply GELU to the output as well: it belongs only between the layers.
    return A @ W_2 + b_2 -> return ops.gelu(A @ W_2 + b_2)
You apply GELU to the output. Apply it between the layers, after the first bias.
    A = ops.gelu(H) -> A = H ; return A @ W_2 + b_2 -> return ops.gelu(A @ W_2 + b_2)
You apply GELU to X. Apply it between the two layers.
    H = X @ W_1 + b_1 -> H = ops.gelu(X) @ W_1 + b_1 ; A = ops.gelu(H) -> A = H
[no-first-bias] The first bias is missing.
    X @ W_1 + b_1 -> X @ W_1
The first bias comes after GELU in your network. Add it before GELU.
    X @ W_1 + b_1 -> X @ W_1 ; A = ops.gelu(H) -> A = ops.gelu(H) + b_1
The second bias is missing.
    A @ W_2 + b_2 -> A @ W_2
You subtract a bias. Both are added.
    + b_1 -> - b_1
    + b_2 -> - b_2
You add X. The residual connection is the next step (chapter `add_norm`); return the network's output alone.
    A @ W_2 + b_2 -> X + A @ W_2 + b_2
You return what is inside, (…, d_ff). The second layer brings it back to d_model.
    return A @ W_2 + b_2 -> return A
A matrix is transposed: here W is stored (in, out), and a layer is X W + b.
    X @ W_1 -> X @ W_1.T
    A @ W_2 -> A @ W_2.T
    X @ W_1 -> X @ W_1.T ; A @ W_2 -> A @ W_2.T
    X @ W_1 -> X @ W_2 ; A @ W_2 -> A @ W_1
The gradient ends at .data, so the first layer would never learn. Everything here stays a Tensor.
    A = ops.gelu(H) -> A = Tensor(ops.gelu(H).data)
""",
)
def feed_forward(X, W_1, b_1, W_2, b_2):
    H = X @ W_1 + b_1  #: the first linear layer's output, bias included, (..., d_ff)
    A = ops.gelu(H)  #: GELU of each entry of H, (..., d_ff)
    return A @ W_2 + b_2


# --- gelu ------------------------------------------------------------------------------------------------


def _gelu_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "3 tokens of 5", tensor(rng.standard_normal((3, 5)))
    yield "4 tokens of 4", tensor(2 * rng.standard_normal((4, 4)))
    yield "2 texts, 3 tokens of 7", tensor(rng.standard_normal((2, 3, 7)))
    yield "float32, 6 tokens of 2", tensor(rng.standard_normal((6, 2)).astype(np.float32))
    yield "numbers from -6 to 6", tensor(np.linspace(-6, 6, 13)[None])


@exercise(
    difficulty=3,
    minutes=25,
    cases=_gelu_cases,
    observed=operation,
    same_dtype=True,
    hints="""
GELU(x) = x Φ(x), and Φ(x) = (1 + erf(x / √2)) / 2. Compute both with NumPy from H.data.

Both factors of x Φ(x) change with x. The slope of Φ is the bell curve, φ(x) = exp(-x² / 2) / √(2π).

GELU works entry by entry, so dH is dA times its slope, Φ(x) + x φ(x), taken at the input. backward returns a tuple with one gradient, (dH,).
""",
    mistakes="""
The slope of GELU is missing: multiply every entry of dA by it to get dH.
    dA * slope -> dA
[slope-without-density] The slope lacks x φ(x): in x Φ(x) the factor Φ(x) changes too.
    slope = share + x * bell -> slope = share
The slope lacks Φ(x): in x Φ(x) the factor x changes too.
    slope = share + x * bell -> slope = x * bell
The slope's first term is Φ(x). You take 1, but Φ(x) is near 1 only far above 0.
    slope = share + x * bell -> slope = 1 + x * bell
The slope's second term is x φ(x): the factor x is missing.
    share + x * bell -> share + bell
You subtract the slope's second term. Add it: Φ(x) + x φ(x).
    share + x * bell -> share - x * bell
The bell curve φ lacks its factor 1 / √(2π).
    / math.sqrt(2 * math.pi) ->
The bell curve is e to the power of -x²/2: the 2 is missing.
    np.exp(-(x**2) / 2) -> np.exp(-(x**2))
The bell curve's factor is 1 / √(2π).
    math.sqrt(2 * math.pi) -> math.sqrt(math.pi) || (2 * math.pi)
You take GELU's slope at its output. Take it at the input, H.
    share + x * bell -> 0.5 * (1 + erf(x * share / math.sqrt(2))) + x * share * np.exp(-((x * share) ** 2) / 2) / math.sqrt(2 * math.pi)
That is the slope of ReLU.
    share + x * bell -> (x > 0)
You multiply by GELU itself: the backward pass needs its slope.
    dA * slope -> dA * x * share
The sign of dH is wrong: a gradient shows how the loss grows, and the optimiser subtracts it.
    dA * slope -> -dA * slope
You take dA as 1, but it comes from the layers above.
    dA * slope -> slope
[relu-for-gelu] That is ReLU. BERT has GELU, which lets a little through below 0.
    from_op(x * share, -> from_op(np.maximum(x, 0), ; share + x * bell -> (x > 0)
    from_op(x * share, -> from_op(np.maximum(x, 0),
That is GELU's tanh form. Use the erf form; the two differ by up to 4.7e-4.
    from_op(x * share, -> from_op(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
That is GELU's form with a sigmoid, x σ(1.702 x), which is rougher than the erf form. Use the erf form.
    from_op(x * share, -> from_op(x / (1 + np.exp(-1.702 * x)),
That is x times a sigmoid (SiLU or Swish), not x times Φ(x).
    from_op(x * share, -> from_op(x / (1 + np.exp(-x)),
The argument of erf lacks its 1 / √2: Φ(x) = (1 + erf(x / √2)) / 2.
    erf(x / math.sqrt(2)) -> erf(x)
You multiply by √2 where GELU divides: Φ(x) = (1 + erf(x / √2)) / 2.
    erf(x / math.sqrt(2)) -> erf(x * math.sqrt(2))
You divide by 2 inside erf. Divide by √2.
    erf(x / math.sqrt(2)) -> erf(x / 2)
The factor 1/2 is missing: Φ(x) = (1 + erf(x / √2)) / 2 goes from 0 to 1.
    share = 0.5 * -> share =
You return Φ alone. GELU is x times Φ(x).
    from_op(x * share, -> from_op(share,
The 1 is missing: erf goes from -1 to 1, and Φ from 0 to 1.
    (1 + erf(x / math.sqrt(2))) -> erf(x / math.sqrt(2))
The 1 is subtracted. Φ(x) = (1 + erf(x / √2)) / 2.
    (1 + erf -> (1 - erf
""",
)
def gelu(H):
    x = H.data  #: the numbers in H, an array
    share = 0.5 * (1 + erf(x / math.sqrt(2)))  #: Φ(x), the share of x that passes
    bell = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)  #: φ(x), the slope of Φ at x

    def backward(dA):
        slope = share + x * bell  #: the slope of GELU at its input
        return (dA * slope,)  #: dH, the gradient for H, in a tuple

    return Tensor.from_op(x * share, (H,), backward)


# --- larger_of_two ---------------------------------------------------------------------------------------


def _larger_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "numbers between -10 and 10", rng.uniform(-10, 10, (40, 2))
    yield "numbers below 0", rng.uniform(-10, 0, (40, 2))
    base, step = rng.uniform(-9, 9, 41), np.linspace(-0.4, 0.4, 41)
    yield "two numbers that are nearly equal", np.stack([base, base + step], axis=1)
    yield (
        "(10, -10), (-10, 10), (10, 10), (-10, -10), (0, 0)",
        np.array([[10.0, -10.0], [-10.0, 10.0], [10.0, 10.0], [-10.0, -10.0], [0.0, 0.0]]),
    )


@exercise(
    difficulty=2,
    minutes=20,
    cases=_larger_cases,
    given="network",
    rtol=0.0,
    atol=0.0101,
    hints="""
With ReLU: the larger of a and b is b + max(0, a - b). So one unit computes a - b, and b itself has to pass through the network.

Far from 0, GELU and ReLU are alike. If a unit gets 1,000 (a - b) and writes with 1 / 1,000, only differences of a thousandth are still near 0.

GELU(x) - GELU(-x) = x exactly: two units, for b and for -b, let b through whatever its sign.
""",
    mistakes="""
Your units get numbers near 0, where GELU bends softly, so the output is off where a and b are nearly equal. Larger weights in W_1, and smaller ones in W_2, make the bend sharper.
    s = 1000.0 -> s = 1.0 || s = 2.0 || s = 4.0 || s = 5.0 || s = 8.0 || s = 10.0 || s = 12.0
W_2 has to take back the factor of W_1: your output is that many times too large.
    / s -> / 1 || / math.sqrt(s)
W_2 takes back more than the factor of W_1.
    / s -> / s**2
That is the smaller of the two.
    [[1.0, 0.0, 0.0], [-1.0, 1.0, -1.0]] -> [[-1.0, 0.0, 0.0], [1.0, 1.0, -1.0]] ; [[1.0], [1.0], [-1.0]] -> [[-1.0], [1.0], [-1.0]]
That is max(0, a - b), by how much a is larger. Add b.
    [[1.0], [1.0], [-1.0]] -> [[1.0], [0.0], [0.0]]
That is the distance of a and b. The larger of the two is half of their sum plus half of their distance.
    [[1.0, 0.0, 0.0], [-1.0, 1.0, -1.0]] -> [[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]] ; [[1.0], [1.0], [-1.0]] -> [[1.0], [1.0], [0.0]]
b gets through only where it is above 0, because the unit drops what is below. Add a second unit for -b, which writes with a minus sign.
    [[1.0], [1.0], [-1.0]] -> [[1.0], [1.0], [0.0]]
You add a where b belongs: a + max(0, a - b).
    [[1.0, 0.0, 0.0], [-1.0, 1.0, -1.0]] -> [[1.0, 1.0, -1.0], [-1.0, 0.0, 0.0]]
The two units that let b through have the same sign: their sum is |b|.
    [[1.0], [1.0], [-1.0]] -> [[1.0], [1.0], [1.0]]
That is the larger of a, b and 0: where both are below 0, nothing gets through.
    [[1.0, 0.0, 0.0], [-1.0, 1.0, -1.0]] -> [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]] ; return _feed_forward(X, W_1, b_1, W_2, b_2)[:, 0] -> G = gelu_of(X @ W_1 + b_1); return G.max(axis=1) / s
You return max(0, a) + max(0, b), which drops what is below 0.
    [[1.0, 0.0, 0.0], [-1.0, 1.0, -1.0]] -> [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]] ; [[1.0], [1.0], [-1.0]] -> [[1.0], [1.0], [0.0]]
That is the sum of a and b.
    [[1.0, 0.0, 0.0], [-1.0, 1.0, -1.0]] -> [[1.0, -1.0, 0.0], [1.0, -1.0, 0.0]] ; [[1.0], [1.0], [-1.0]] -> [[1.0], [-1.0], [0.0]]
That is the larger of |a| and |b|: of the two units for the sum a + b, one must write with a minus sign.
    [[1.0, 0.0, 0.0], [-1.0, 1.0, -1.0]] -> [[1.0, -1.0, 1.0, -1.0], [-1.0, 1.0, 1.0, -1.0]] ; np.zeros(3) -> np.zeros(4) ; [[1.0], [1.0], [-1.0]] -> [[0.5], [0.5], [0.5], [0.5]]
That is their mean. The distance is missing.
    [[1.0, 0.0, 0.0], [-1.0, 1.0, -1.0]] -> [[1.0, -1.0, 0.0], [1.0, -1.0, 0.0]] ; [[1.0], [1.0], [-1.0]] -> [[0.5], [-0.5], [0.0]]
Return one number for each row of X, shape (n,), not a matrix with one column.
    W_2, b_2)[:, 0] -> W_2, b_2)
The difference is written with the wrong sign: b + max(0, a - b) is the larger one, b - max(0, a - b) is neither.
    [[1.0], [1.0], [-1.0]] -> [[-1.0], [1.0], [-1.0]]
The difference adds nothing. Is 1 / s cut to 0 in an array of whole numbers?
    [[1.0], [1.0], [-1.0]] -> [[0.0], [1.0], [-1.0]]
Only the units that let b through are scaled back: a - b comes out as many times too large as W_1 makes it.
    np.array([[1.0], [1.0], [-1.0]]) / s -> np.array([[s], [1.0], [-1.0]]) / s
""",
)
def larger_of_two(X):
    s = 1000.0  #: a factor that makes the bend sharp
    W_1 = s * np.array([[1.0, 0.0, 0.0], [-1.0, 1.0, -1.0]])  #: the weights for a - b, b and -b
    b_1 = np.zeros(3)  #: biases of 0 for the three inner units
    W_2 = np.array([[1.0], [1.0], [-1.0]]) / s  #: the units' signs, with the factor of W_1 taken back
    b_2 = np.zeros(1)  #: a bias of 0 for the one output
    return _feed_forward(X, W_1, b_1, W_2, b_2)[:, 0]


def _feed_forward(X, W_1, b_1, W_2, b_2):
    return gelu_of(X @ W_1 + b_1) @ W_2 + b_2


# --- first_alarm -----------------------------------------------------------------------------------------

Network = Callable[[np.ndarray], np.ndarray]


def _networks(rng: np.random.Generator) -> dict[str, Network]:
    """Networks from (L, 16) to (L, 16), by what is special about them."""
    W_1, W_2 = rng.standard_normal((16, 24)) / 4, rng.standard_normal((24, 16)) / 5
    b_1, b_2 = rng.standard_normal(24), rng.standard_normal(16)

    def right(X: np.ndarray) -> np.ndarray:
        return gelu_of(X @ W_1 + b_1) @ W_2 + b_2

    def from_before(X: np.ndarray) -> np.ndarray:
        before = np.vstack([0 * X[:1], X[:-1]])
        return right(X + before)

    def from_behind(X: np.ndarray) -> np.ndarray:
        behind = np.vstack([X[1:], 0 * X[:1]])
        return right(X + behind)

    def numbered(X: np.ndarray) -> np.ndarray:
        return right(X + np.arange(len(X))[:, None] / 3)

    return {
        "a right network": right,
        "a network with ReLU": lambda X: np.maximum(X @ W_1 + b_1, 0) @ W_2 + b_2,
        "a network without an activation": lambda X: (X @ W_1 + b_1) @ W_2 + b_2,
        "one without an activation and without biases": lambda X: X @ W_1 @ W_2,
        "one that subtracts the mean of all tokens": lambda X: right(X - X.mean(axis=0)),
        "one in which each token sees the token before it": from_before,
        "one in which each token sees the token behind it": from_behind,
        "one that adds the place to each token": numbered,
        "one that treats the second token differently": lambda X: np.where(
            np.arange(len(X))[:, None] == 1, right(-X), right(X)
        ),
        "one that mixes tokens and has no activation": lambda X: ((X - X.mean(axis=0)) @ W_1 + b_1) @ W_2,
        "one that adds the place and has no activation": lambda X: (
            (X + np.arange(len(X))[:, None]) @ W_1 @ W_2
        ),
        "one that mixes tokens by their places": lambda X: from_before(X) + numbered(X),
    }


def _alarm_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield from _networks(rng).items()


@exercise(
    difficulty=2,
    minutes=20,
    cases=_alarm_cases,
    hints="""
Draw X of shape (7, 16), and a second one for the changes. Compare with np.allclose.

"neighbours": keep row i and replace all others; row i of the output must stay. Do it for every i: a token may see only those before it, or only those after it.

"places": with X[order], the output must be Y[order]. "linear": for a network without an activation, the output of the mean of two inputs is the mean of the two outputs, biases or not.
""",
    mistakes="""
The test of the neighbours is missing: when other tokens change, a token's output must stay.
    if not same(network(changed)[i], Y[i]): -> if False:
You change the neighbours of one token alone. A token may see only those before it, or only those after it: try every token.
    for i in range(7): -> for i in [0]: || for i in [6]:
The test of the places is missing: shuffled tokens must give shuffled outputs.
    if not same(network(X[order]), Y[order]): -> if False:
Your test of linearity finds nothing, or is missing. Without an activation the output of a mean is the mean of the outputs, up to rounding: compare with np.allclose.
    if same(network((X + other) / 2), (Y + network(other)) / 2): -> if False:
Your test of linearity mistakes a bias for a bend: f(2x) = 2 f(x) holds without biases only. Take the mean of two inputs.
    network((X + other) / 2), (Y + network(other)) / 2 -> network(2 * X), 2 * Y
    network((X + other) / 2), (Y + network(other)) / 2 -> network(X + other), Y + network(other)
    network((X + other) / 2), (Y + network(other)) / 2 -> network(-X), -Y
[linearity-reversed] The test of linearity is reversed: it is a fault if both sides are equal.
    if same(network((X + other) / 2) -> if not same(network((X + other) / 2)
The test of the neighbours is reversed: it is a fault if the output changes.
    if not same(network(changed)[i], Y[i]): -> if same(network(changed)[i], Y[i]):
The test of the places is reversed: it is a fault if the outputs are not the shuffled ones.
    if not same(network(X[order]), Y[order]): -> if same(network(X[order]), Y[order]):
You compare the outputs of the shuffled tokens with the old ones in their old order. They must be shuffled with the tokens: Y[order].
    network(X[order]), Y[order] -> network(X[order]), Y
Only the token whose row you kept must stay the same: keep row i, change all others, and compare row i of the outputs.
    changed[i] = X[i] ->
    network(changed)[i], Y[i] -> network(changed), Y
Your test of the places comes before that of the neighbours. If a network fails both, return the first name in the list.
    rng = np.random.default_rng(0)
    X, other = rng.standard_normal((2, 7, 16))
    Y, order = network(X), rng.permutation(7)
    if not np.allclose(network(X[order]), Y[order]):
        return "places"
    for i in range(7):
        changed = other.copy()
        changed[i] = X[i]
        if not np.allclose(network(changed)[i], Y[i]):
            return "neighbours"
    return "linear" if np.allclose(network((X + other) / 2), (Y + network(other)) / 2) else "none"

Your test of linearity comes first. If a network fails several tests, return the first name in the list.
    rng = np.random.default_rng(0)
    X, other = rng.standard_normal((2, 7, 16))
    Y = network(X)
    return "linear" if np.allclose(network((X + other) / 2), (Y + network(other)) / 2) else right(network)

Return the name of the test, or "none" if no test fails.
    return "none" -> return "" || return None
""",
)
def first_alarm(network):
    rng = np.random.default_rng(0)
    X, other = rng.standard_normal((2, 7, 16))  #: two inputs of 7 tokens
    order = np.array([3, 6, 0, 5, 1, 4, 2])  #: a new order for the tokens
    same = np.allclose
    Y = network(X)  #: the network's output for X as it is
    for i in range(7):  #: the number of each token, one at a time
        changed = other.copy()  #: a copy of the other input
        changed[i] = X[i]  #: the one token that stays, row i of X
        if not same(network(changed)[i], Y[i]):
            return "neighbours"
    if not same(network(X[order]), Y[order]):
        return "places"
    if same(network((X + other) / 2), (Y + network(other)) / 2):
        return "linear"
    return "none"


# --- best_coefficient ------------------------------------------------------------------------------------


def _coefficient_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "|x| up to 10", 10.0
    yield "|x| up to 2", 2.0
    limit = round(float(rng.uniform(1.2, 1.6)), 2)
    yield f"|x| up to {limit}", limit


@exercise(
    difficulty=2,
    minutes=15,
    cases=_coefficient_cases,
    rtol=0.0,
    atol=1.5e-5,
    hints="""
Fix a grid of x, compute GELU there once, and write a function that returns the largest gap of the tanh form for one c.

The gap first falls with c and then rises: there is one lowest point, between 0.04 and 0.05. Try many c, and then many more near the best one; or cut the interval into thirds and drop one of them.
""",
    mistakes="""
That is the number in the released code. It makes the gap of Φ smallest. Here, make the gap of GELU, x Φ(x), smallest.
    return (low + high) / 2 -> return 0.044715
    x * (share - exact) -> share - exact
That is the coefficient of the series, which is best only near 0.
    return (low + high) / 2 -> return 2 / (3 * math.pi) - 1 / 6
You make the mean of the squares small. Make the largest gap small.
    np.abs(x * (share - exact)).max() -> ((x * (share - exact)) ** 2).mean()
You make the mean gap small. Make the largest gap small.
    np.abs(x * (share - exact)).max() -> np.abs(x * (share - exact)).mean()
The gap has two signs: take its absolute value.
    np.abs(x * (share - exact)).max() -> (x * (share - exact)).max()
You look at GELU up to another limit.
    np.linspace(0, limit, 4001) -> np.linspace(0, 10, 4001) || np.linspace(0, 5, 4001) || np.linspace(0, 3, 4001)
You return the gap. Return the coefficient.
    return (low + high) / 2 -> return gap((low + high) / 2)
Three digits are not enough. Give five decimal places.
    return (low + high) / 2 -> return round((low + high) / 2, 3)
""",
)
def best_coefficient(limit):
    x = np.linspace(0, limit, 4001)  #: a grid from 0 to the limit
    exact = 0.5 * (1 + erf(x / math.sqrt(2)))  #: Φ(x) on the grid, by the error function

    def gap(c):
        share = 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + c * x**3)))  #: the tanh form of Φ(x)
        return np.abs(x * (share - exact)).max()  #: the largest gap to GELU, above or below

    low, high = 0.04, 0.05  #: the ends of the interval that is searched
    while high - low > 1e-8:
        third = (high - low) / 3  #: a third of the interval
        if gap(low + third) < gap(high - third):
            high -= third  #: the third that is cut off above
        else:
            low += third  #: the third that is cut off below
    return (low + high) / 2
