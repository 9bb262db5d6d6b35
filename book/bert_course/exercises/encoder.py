"""Chapter `encoder`: the pooler, the encoder's parameters and its silent mistakes; encoder_assembly.py has the whole model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.check.tensors import tensor, traced
from bert_course.common.softmax import softmax
from bert_course.exercises.feed_forward import gelu_of as gelu
from minigrad import Tensor, ops  # noqa: F401

# --- pool ------------------------------------------------------------------------------------------------


def _pool_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(B: int, L: int, d_model: int, dtype: type = np.float64) -> tuple[Tensor, ...]:
        shapes = (B, L, d_model), (d_model, d_model), (d_model,)
        return tuple(tensor(rng.standard_normal(shape).astype(dtype)) for shape in shapes)

    yield "2 sequences of 5 tokens, d_model = 4", *draw(2, 5, 4)
    yield "B = L = d_model = 3", *draw(3, 3, 3)
    yield "one sequence", *draw(1, 6, 5)
    yield "one token", *draw(4, 1, 3)
    yield "float32, d_model = 7", *draw(3, 2, 7, np.float32)


@exercise(
    difficulty=1,
    minutes=8,
    cases=_pool_cases,
    observed=traced,
    same_dtype=True,
    hints="""
Which token stands for the whole input, and along which of the three axes are the tokens?

X[:, 0] is the first row of each sequence, (B, d_model). The row is on the left: row @ W + b. The tanh comes last: x.tanh().
""",
    mistakes="""
[mean-of-tokens] You take the mean over the tokens. The pooler reads only one row, that of [CLS]: all that this row holds about other tokens came through attention.
    X[:, 0] -> X.mean(axis=1)
You add up the tokens. The pooler reads only one row, that of [CLS].
    X[:, 0] -> X.sum(axis=1)
You take each feature's largest value over the tokens. The pooler reads only one row, that of [CLS].
    X[:, 0] -> X.max(axis=1)
You take the last token, as a model that reads from left to right does. BERT's [CLS] comes first.
    X[:, 0] -> X[:, -1]
X[0] is the first sequence with all its tokens. The first token of every sequence is X[:, 0].
    X[:, 0] -> X[0]
You take the first feature of each token, but the axes are (sequence, token, feature).
    X[:, 0] -> X[:, :, 0]
You pool every token. Return one vector for each sequence, from its first token.
    X[:, 0] -> X
You pool every token and take the mean of the results. The pooler reads only the first token.
    return (X @ W + b).tanh().mean(axis=1)
The axis of the tokens is still there, with length 1: X[:, 0] takes it away, X[:, :1] keeps it.
    X[:, 0] -> X[:, :1]
You multiply by W transposed. The row is on the left: x W. W is square, so W x and x W have the same shape, but nothing else in common.
    first @ W -> first @ W.T
`*` multiplies entry by entry: the product of rows and a matrix is `@`.
    first @ W -> first * W
[no-bias] The bias is missing.
    + b) -> )
You add the bias after the tanh. It belongs inside the tanh.
    (first @ W + b).tanh() -> (first @ W).tanh() + b
The tanh is missing.
    (first @ W + b).tanh() -> first @ W + b
You apply the tanh to the token's vector, before the matrix. The tanh comes last.
    (first @ W + b).tanh() -> first.tanh() @ W + b
That is a sigmoid. The pooler has a tanh, between -1 and 1.
    (first @ W + b).tanh() -> ops.sigmoid(first @ W + b)
That is a softmax over the features. The classifier after the pooler has one; the pooler has a tanh, entry by entry.
    (first @ W + b).tanh() -> ops.softmax(first @ W + b)
That is a ReLU. The pooler has a tanh.
    (first @ W + b).tanh() -> ops.relu(first @ W + b)
You add the token's vector to the result. The layers have a residual connection; the pooler has none.
    (first @ W + b).tanh() -> first + (first @ W + b).tanh()
The gradient ends at .data, so the layers below would never learn from the pooler.
    X[:, 0] -> Tensor(X.data[:, 0])
The matrix is missing: you take the tanh of the token's vector itself.
    first @ W + b -> first
    first @ W + b -> first + b
You multiply by the matrix twice. The pooler multiplies by it once.
    first @ W + b -> (first @ W + b) @ W + b
""",
)
def pool(X, W, b):
    first = X[:, 0]  #: the row of [CLS] in each sequence, (B, d_model)
    return (first @ W + b).tanh()


# --- parameter_count -------------------------------------------------------------------------------------


def _count_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "BERT-Base", 30522, 768, 12, 3072, 512
    yield "BERT-Large", 30522, 1024, 24, 4096, 512
    yield "the course's small model", 4096, 128, 2, 512, 64
    yield "no layer", 50, 6, 0, 24, 10
    for _ in range(3):
        V, d_model, N, d_ff, L_max = (int(rng.integers(*ends)) for ends in _SIZES)
        yield (
            f"V = {V}, d_model = {d_model}, N = {N}, d_ff = {d_ff}, L_max = {L_max}",
            *(V, d_model, N, d_ff, L_max),
        )


_SIZES = (100, 5000), (5, 90), (1, 9), (10, 70), (17, 200)


@exercise(
    difficulty=2,
    minutes=15,
    cases=_count_cases,
    hints="""
Go through the model in the order of the data: three tables and a LayerNorm; in each layer attention, LayerNorm, feed-forward, LayerNorm; the pooler.

A matrix (n, m) with its bias has n m + m numbers, and a LayerNorm has a gain and a bias for each of its d_model features.

Attention has four matrices (d_model, d_model), each with a bias, however many heads share them.
""",
    mistakes="""
2 d_model numbers are missing. The table of segments, with its two rows, has that many, and so has the LayerNorm on the embeddings.
    V + 2 + L_max -> V + L_max
    * d_model + norm -> * d_model
d_model numbers are missing. The pooler's bias has that many, and so has each of the two rows of segments.
    V + 2 + L_max -> V + 1 + L_max
    pooler = square + d_model -> pooler = square
There are two segments, the first text and the second; you count three.
    V + 2 + L_max -> V + 3 + L_max
The table of positions is missing. BERT learns a vector for each of its L_max positions.
    V + 2 + L_max -> V + 2
The tables of positions and segments are missing.
    V + 2 + L_max -> V
The table of positions has a row for each of the L_max positions, not always 512.
    V + 2 + L_max -> V + 2 + 512
A LayerNorm has a gain and a bias: two numbers for each feature.
    norm = 2 * d_model -> norm = d_model
LayerNorm has parameters, too: a gain and a bias for each feature.
    norm = 2 * d_model -> norm = 0
A layer has two LayerNorms, one after attention and one after the feed-forward part.
    4 * (square + d_model) + norm -> 4 * (square + d_model)
    + d_ff + d_model + norm -> + d_ff + d_model
4 d_model numbers are missing in each layer. The four biases of attention have that many together, and so have the two LayerNorms.
    4 * (square + d_model) + norm -> 4 * (square + d_model) ; + d_ff + d_model + norm -> + d_ff + d_model
    4 * (square + d_model) -> 4 * square
The biases of queries, keys and values are missing. The formulas of the chapter have none, but BERT has them.
    4 * (square + d_model) -> 4 * square + d_model
A bias of d_model numbers is missing in each layer: W_O has one, and so has the second matrix of the feed-forward part.
    4 * (square + d_model) -> 4 * square + 3 * d_model
    + d_ff + d_model + norm -> + d_ff + norm
[no-output-projection] W_O and its bias are missing. After the heads are put side by side, one more matrix mixes them.
    4 * (square -> 3 * (square
W_O is missing, but its bias is there.
    4 * (square + d_model) -> 3 * square + 4 * d_model
You count a whole matrix for every head. Each head has only its own part, d_model / h columns wide, and together these parts are one matrix (d_model, d_model), whatever h is.
    4 * (square -> 12 * 4 * (square || 12 * 3 * (square
The biases of the feed-forward part are missing: d_ff and d_model numbers.
    + d_ff + d_model + norm -> + norm
The feed-forward part has two biases: d_ff numbers after the first matrix, d_model after the second.
    + d_ff + d_model + norm -> + d_model + norm || + d_ff + d_ff + norm || + d_model + d_model + norm
The feed-forward part has two matrices. You count one.
    2 * d_model * d_ff -> d_model * d_ff
[matrices-alone] You count tables and matrices alone. Biases and the gains and biases of LayerNorm are parameters, too.
    norm = 2 * d_model -> norm = 0 ; 4 * (square + d_model) -> 4 * square ; 2 * d_model * d_ff + d_ff + d_model -> 2 * d_model * d_ff ; pooler = square + d_model -> pooler = square
All biases of matrices are missing. Each matrix of attention, of the feed-forward part and of the pooler has one.
    4 * (square + d_model) -> 4 * square ; 2 * d_model * d_ff + d_ff + d_model -> 2 * d_model * d_ff ; pooler = square + d_model -> pooler = square
The width of the feed-forward part is given as d_ff. In BERT it is 4 d_model, but it need not be.
    2 * d_model * d_ff + d_ff -> 8 * square + 4 * d_model
The pooler is missing: a matrix and a bias.
    pooler = square + d_model -> pooler = 0
There is one pooler, after the last layer; you count one in every layer.
    N * layer + pooler -> N * (layer + pooler)
Every layer has weights of its own: N times as many as one layer.
    N * layer -> layer
The embeddings come once, before the first layer; you count them for every layer.
    embeddings + N * layer -> N * (embeddings + layer)
You count the pre-training heads, too. Count only embeddings, layers and pooler.
    N * layer + pooler -> N * layer + pooler + square + d_model + norm + V || N * layer + pooler + square + d_model + norm + V + 2 * d_model + 2
You count the token table twice. The output layer uses the same table, and is not part of BertModel.
    N * layer + pooler -> N * layer + pooler + V * d_model || N * layer + pooler + V * d_model + V
Return the number of parameters, not their bytes.
    return embeddings + N * layer + pooler -> return 4 * (embeddings + N * layer + pooler)
Add up the numbers of all parts.
    return embeddings + N * layer + pooler -> return embeddings, N * layer, pooler || return embeddings || return N * layer
""",
)
def parameter_count(V, d_model, N, d_ff, L_max):
    square = d_model * d_model  #: the numbers in a matrix (d_model, d_model)
    norm = 2 * d_model  #: the numbers in one LayerNorm, gain and bias
    embeddings = (V + 2 + L_max) * d_model + norm  #: the parameters of three tables and one LayerNorm
    attention = 4 * (square + d_model) + norm  #: the parameters of attention and the LayerNorm after it
    feed_forward = 2 * d_model * d_ff + d_ff + d_model + norm  #: parameters of feed-forward and a LayerNorm
    layer = attention + feed_forward  #: the parameters of one layer
    pooler = square + d_model  #: the parameters of the pooler, matrix and bias
    return embeddings + N * layer + pooler


# --- transposed ------------------------------------------------------------------------------------------


def _runner(
    X: np.ndarray, shapes: dict[str, tuple[int, ...]]
) -> Callable[[dict[str, np.ndarray]], np.ndarray]:
    """A model of one layer with one head, and a pooler's matrix, on fixed token vectors X (L, d_model).

    shapes: of its weights, by name; others are an error.
    """

    def run(w: dict[str, np.ndarray]) -> np.ndarray:
        for name, shape in shapes.items():
            if w[name].shape != shape:
                raise ValueError(f"{name} has shape {w[name].shape}, and the model needs {shape}")
        x = X + w["W_S"][np.arange(len(X)) % 2]
        Q, K, V = (x @ w[f"W_{n}"] + w[f"b_{n}"] for n in "QKV")
        x = x + softmax(Q @ K.T / math.sqrt(X.shape[1])) @ V @ w["W_O"]
        x = x + gelu(x @ w["W_1"] + w["b_1"]) @ w["W_2"]
        return x[0] @ w["W"]  # no tanh: at its ends, different outputs look alike

    return run


def _downhill(
    run: Any, loaded: dict[str, np.ndarray], expected: np.ndarray, best: bool = True, order: float = np.inf
) -> list[str]:
    """The names of a descent that transposes one matrix after the other, as long as the output comes nearer.

    best: the one that brings it nearest, or the first that brings it nearer. order: of the norm.
    """
    turned: set[str] = set()
    square = [name for name, W in loaded.items() if W.ndim == 2 and W.shape[0] == W.shape[1]]

    def off(names: set[str]) -> float:
        weights = {name: W.T if name in names else W for name, W in loaded.items()}
        return float(np.linalg.norm(run(weights) - expected, order))

    while True:
        nearer = [turned ^ {name} for name in square if off(turned ^ {name}) < off(turned) - 1e-8]
        if not nearer:
            return sorted(turned)
        turned = min(nearer, key=off) if best else nearer[0]


def _transposed_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def case(*wrong: str, d_model: int = 4, d_ff: int = 7, change: str = "") -> tuple[Any, ...]:
        square = ("W_Q", "W_K", "W_V", "W_O", "W")
        shapes: dict[str, tuple[int, ...]] = {
            "W_S": (2, d_model),
            **dict.fromkeys(square, (d_model, d_model)),
        }
        shapes |= {f"b_{n}": (d_model,) for n in "QKV"}
        shapes |= {"W_1": (d_model, d_ff), "b_1": (d_ff,), "W_2": (d_ff, d_model)}
        right = {name: 0.7 * rng.standard_normal(shape) for name, shape in shapes.items()}
        if change:
            right[change] = right[change] + right[change].T
        run = _runner(rng.standard_normal((3, d_model)), shapes)
        loaded = {name: array.T.copy() if name in wrong else array for name, array in right.items()}
        return run, loaded, run(right).round(9) if wrong else run(right)

    yield "nothing is the wrong way round", *case()
    yield "W_O", *case("W_O")
    yield "all five square matrices", *case("W_Q", "W_K", "W_V", "W_O", "W")
    yield "W_V and the pooler's W", *case("W_V", "W")
    yield "d_model = d_ff, W_2 and W_K", *case("W_2", "W_K", d_ff=4)
    yield "a segment table that is square, W_Q and W_V", *case("W_Q", "W_V", d_model=2, d_ff=5)
    yield "a W_V that is its own transpose, and W_O", *case("W_O", change="W_V")
    # With these draws a descent goes astray in the norms 1, 2 and inf, whichever step it takes first.
    rng = np.random.default_rng(4)
    yield "four, and the output comes nearer by wrong turns", *case("W_Q", "W_K", "W_V", "W_O")


@exercise(
    difficulty=3,
    minutes=25,
    cases=_transposed_cases,
    hints="""
Which matrices can be the wrong way round without an error? Those whose shape does not show it. List their names first.

One at a time is not enough: with two matrices wrong, fixing one still gives a wrong output. itertools.combinations(names, size) gives all choices of that size.

Try the smallest choices first, beginning with none, so that a matrix that is its own transpose is not named. Make a new dictionary for each try, and compare with np.allclose.
""",
    mistakes="""
You try one or two matrices at a time. When more are the wrong way round, fixing some still gives a wrong output: try every choice of names.
    range(len(square) + 1) -> range(2) || range(3)
    square = [name for name, W in loaded.items() if W.ndim == 2 and W.shape[0] == W.shape[1]]
    return sorted(n for n in square if np.allclose(run({**loaded, n: loaded[n].T}), expected))

    for name, W in loaded.items():
        if W.ndim == 2 and W.shape[0] == W.shape[1] and np.allclose(run({**loaded, name: W.T}), expected):
            return [name]
    return []
[one-at-a-time] You transpose one matrix at a time and keep the change if the output comes nearer. While another matrix is wrong, the right way round can look worse, and the wrong way better. Try whole combinations, and keep the one that gives the expected output.
    before = np.abs(run(loaded) - expected).max()
    square = [name for name, W in loaded.items() if W.ndim == 2 and W.shape[0] == W.shape[1]]
    return sorted(n for n in square if np.abs(run({**loaded, n: loaded[n].T}) - expected).max() < before)

    return _downhill(run, loaded, expected)
You never try the weights as they are. Perhaps nothing is the wrong way round.
    range(len(square) + 1) -> range(1, len(square) + 1)
You name more than is needed. A matrix that is its own transpose is never wrong, so begin with the smallest choices.
    range(len(square) + 1) -> range(len(square), -1, -1)
You name every square matrix. All of them may be the wrong way round, but that does not mean that they are. Try them, and compare the output.
    return sorted(name for name, W in loaded.items() if W.ndim == 2 and W.shape[0] == W.shape[1])
You try only all or nothing. Some of the matrices may be the wrong way round.
    range(len(square) + 1) -> (0, len(square))
You compare floats with ==. The output is stored with nine digits, so the right weights give only nearly the same. Allow for a small difference, as np.allclose does.
    np.allclose(run(weights), expected) -> (run(weights) == expected).all()
You look for an output that differs. The right weights give the expected output.
    np.allclose(run(weights), expected) -> not np.allclose(run(weights), expected)
Your test lets the first choice through, or none. Compare the numbers: shapes are the same for every choice, and with == none is equal, because the output is stored with nine digits.
    np.allclose(run(weights), expected) -> run(weights).shape == expected.shape
    np.allclose(run(weights), expected) -> (run(weights) == expected).all() ; return None -> return []
Return the names in alphabetical order, as a list.
    return sorted(names) -> return sorted(names)[::-1] || return list(names)[::-1]
You name the matrices that are right. Name those that have to be transposed.
    return sorted(names) -> return sorted(set(square) - set(names))
Return the names, not the weights.
    return sorted(names) -> return weights
Return the names of the matrices, not their number.
    return sorted(names) -> return len(names)
You leave out the pooler's W, which is square, too.
    W.ndim == 2 -> name != "W" and W.ndim == 2
You look only at attention. The feed-forward matrices can be square, too, and the pooler's W always is.
    W.ndim == 2 -> name in ("W_Q", "W_K", "W_V", "W_O") and W.ndim == 2
You change the loaded weights while you try. A later try then begins with what an earlier try left, so make a new dictionary each time.
    weights = {name: W.T if name in names else W for name, W in loaded.items()} -> loaded.update({name: loaded[name].T for name in names}); weights = loaded
""",
)
def transposed(run, loaded, expected):
    square = [name for name, W in loaded.items() if W.ndim == 2 and W.shape[0] == W.shape[1]]  #: all square W
    for size in range(len(square) + 1):  #: how many names to try, the smallest number first
        for names in itertools.combinations(square, size):  #: all choices of that many square matrices
            weights = {name: W.T if name in names else W for name, W in loaded.items()}  #: the weights to try
            if np.allclose(run(weights), expected):
                return sorted(names)
    return None  # the weights are other ones


# --- vocabulary_for_half ---------------------------------------------------------------------------------


def _half_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "BERT-Base", 768, 12, 3072, 512
    yield "BERT-Large", 1024, 24, 4096, 512
    yield "the course's small model", 128, 2, 512, 64
    yield "no layer", 6, 0, 24, 10
    yield "a quotient without remainder", 10, 5, 24, 33
    for _ in range(3):
        d_model, N, d_ff, L_max = (int(rng.integers(*ends)) for ends in _SIZES[1:])
        d_ff += N * d_ff % d_model == 0
        yield (f"d_model = {d_model}, N = {N}, d_ff = {d_ff}, L_max = {L_max}", *(d_model, N, d_ff, L_max))


@exercise(
    difficulty=2,
    minutes=12,
    cases=_half_cases,
    hints="""
At half, the token table has as many parameters as all other parts together. What do the others have? V is not in it.

The table has V d_model numbers. The smallest whole V with V d_model ≥ others is others / d_model, rounded up.

Rounded up without floats: -(-a // b).
""",
    mistakes="""
You round down, so your V is a little too small. Round up to the smallest V with at least half.
    -(-others // d_model) -> others // d_model
You always add one. At least half is enough, so where the quotient is whole, it is the answer.
    -(-others // d_model) -> others // d_model + 1
You round to the nearest whole number. Where that rounds down, the table has a little less than half, so round up.
    -(-others // d_model) -> (2 * others + d_model) // (2 * d_model)
V is a whole number of pieces, so round up.
    -(-others // d_model) -> others / d_model
You look for a table that is half as large as the other parts together, so it has a third of all parameters. With half of all, it is as large as the other parts together.
    -(-others // d_model) -> -(-others // (2 * d_model))
You look for a table that is twice as large as the other parts together, so it has two thirds of all parameters.
    -(-others // d_model) -> -(-2 * others // d_model)
You return the number of the table's parameters. Return the number of its rows.
    -(-others // d_model) -> others || -(-others // d_model) * d_model
The layers are missing. The table has to be as large as all other parts together.
    + N * layer ->
Every layer has weights of its own: N times as many as one layer.
    N * layer -> layer
The pooler is missing. The table has to be as large as all other parts together.
    + square + d_model -> ; (2 + L_max + 2) * d_model -> (2 + L_max + 2) * d_model
The positions are missing. They have a table of their own, with L_max rows.
    (2 + L_max + 2) -> (2 + 2)
2 d_model numbers are missing. The table of segments has that many, and so has the LayerNorm on the embeddings.
    (2 + L_max + 2) -> (2 + L_max)
The tables of positions and segments and the LayerNorm on the embeddings are missing. They are not part of the token table, so they count among the other parts.
    (2 + L_max + 2) * d_model + -> 0 +
The biases and LayerNorms of the layers are missing.
    4 * square + 4 * d_model + 2 * d_model * d_ff + d_ff + d_model + 4 * d_model -> 4 * square + 2 * d_model * d_ff
4 d_model numbers are missing in each layer. The four biases of attention have that many together, and so have the two LayerNorms.
    + d_ff + d_model + 4 * d_model -> + d_ff + d_model
W_O and its bias are missing.
    4 * square + 4 * d_model -> 3 * square + 3 * d_model
The biases of the feed-forward part are missing.
    + d_ff + d_model + 4 * d_model -> + 4 * d_model
That is the law for large models, 12 N d_model with d_ff = 4 d_model. It is a good estimate, but return the exact number.
    -(-others // d_model) -> 12 * N * d_model
The width of the feed-forward part is given as d_ff. It need not be 4 d_model.
    2 * d_model * d_ff + d_ff -> 8 * square + 4 * d_model
4 d_model numbers are missing outside of the layers: the table of segments and the LayerNorm on the embeddings have 2 d_model each.
    (2 + L_max + 2) -> L_max
2 d_model numbers are missing in each layer: it has two LayerNorms, and each has a gain and a bias.
    + d_ff + d_model + 4 * d_model -> + d_ff + d_model + 2 * d_model
""",
)
def vocabulary_for_half(d_model, N, d_ff, L_max):
    square = d_model * d_model  #: the numbers in a matrix (d_model, d_model)
    layer = 4 * square + 4 * d_model + 2 * d_model * d_ff + d_ff + d_model + 4 * d_model  #: one whole layer
    others = (2 + L_max + 2) * d_model + N * layer + square + d_model  #: all parameters but the table
    return -(-others // d_model)
