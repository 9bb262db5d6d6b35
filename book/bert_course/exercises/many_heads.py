"""Chapter `many_heads`: twelve heads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.check.tensors import tensor, traced
from bert_course.common.softmax import softmax
from minigrad import Tensor, ops

Weights = dict[str, np.ndarray]
Layer = Callable[[np.ndarray, Weights, int], np.ndarray]


def _weights(rng: np.random.Generator, d_model: int, dtype: type = np.float64) -> Weights:
    """W_Q, b_Q and so on to b_O, such that queries, keys and values have variance near 1."""
    weights: Weights = {}
    for name in "QKVO":
        weights[f"W_{name}"] = (rng.standard_normal((d_model, d_model)) / math.sqrt(d_model)).astype(dtype)
        weights[f"b_{name}"] = rng.standard_normal(d_model).astype(dtype)
    return weights


def _pieces(X: Tensor, W: Tensor, h: int) -> Tensor:
    """X W with the blocks of W on the diagonal alone, so that head i sees piece i of X."""
    blocks = np.kron(np.eye(h), np.ones([side // h for side in W.shape]))
    return X @ (W * Tensor(blocks.astype(W.dtype)))


# --- multi_head ------------------------------------------------------------------------------------------


def _multi_head_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def case(
        B: int, L: int, h: int, d_k: int, mask: Any = 0.0, dtype: type = np.float64, times: int = 1
    ) -> Any:
        X = times * rng.standard_normal((B, L, h * d_k))
        weights = {name: tensor(W) for name, W in _weights(rng, h * d_k, dtype).items()}
        added: np.ndarray = np.broadcast_to(mask, (B, 1, 1, L)).astype(dtype)
        return tensor(X.astype(dtype)), weights, h, tensor(added, requires_grad=False)

    yield "2 texts of 5 tokens, 3 heads of 4", *case(2, 5, 3, 4)
    yield "B = L = h = d_k = 4", *case(4, 4, 4, 4)
    yield "one head", *case(1, 6, 1, 5)
    padding = np.where(np.arange(4) < np.array([[4], [2], [1]]), 0, np.finfo(np.float32).min)[:, None, None]
    yield "float32, and padding in two texts", *case(3, 4, 5, 2, padding, np.float32)
    yield "large scores", *case(1, 5, 2, 4, times=60)
    other = rng.standard_normal((2, 1, 1, 7))
    yield "a mask of other numbers, to be added as well", *case(2, 7, 2, 3, other)


@exercise(
    difficulty=2,
    minutes=20,
    cases=_multi_head_cases,
    observed=traced,
    same_dtype=True,
    hints="""
Make three projections of the whole X and cut them into heads. Compute chapter `one_head`'s head in each, undo the cut, and project once more.

The cut has two steps: (B, L, d_model) -> (B, L, h, d_k) is a reshape, and -> (B, h, L, d_k) is a transpose. With the batch in front, the axes to exchange are 1 and 2, which is x.transpose(1, 2).

K.transpose(-1, -2) turns (B, h, L, d_k) into (B, h, d_k, L). The mask (B, 1, 1, L) broadcasts over heads and queries: add it to the scaled scores.
""",
    mistakes="""
[reshape-alone] You cut with a reshape alone, which cuts the text and not the vectors. Reshape to (B, L, h, d_k), then exchange the axes 1 and 2.
    x.reshape(B, L, h, d_k).transpose(1, 2) -> x.reshape(B, h, L, d_k)
Your heads are dealt out like cards. Column j belongs to head j // d_k, so neighbours stay together: reshape to (…, h, d_k) and not to (…, d_k, h).
    x.reshape(B, L, h, d_k).transpose(1, 2) -> x.reshape(B, L, d_k, h).transpose(2, 3).transpose(1, 2)
You put the heads together with a reshape alone. First exchange the axes of heads and tokens back.
    Z.transpose(1, 2).reshape(B, L, d_model) -> Z.reshape(B, L, d_model)
You put the heads together entry by entry, interleaved. All d_k columns of head 1 come first, then those of head 2.
    Z.transpose(1, 2) -> Z.transpose(1, 2).transpose(2, 3)
The heads are in reverse order. Each must meet its own rows of W_O.
    Z.transpose(1, 2) -> Z[:, ::-1].transpose(1, 2)
[no-output-projection] The output projection is missing. The heads' outputs, side by side, still have to go through W_O and b_O.
    joined @ weights["W_O"] + weights["b_O"] -> joined
The bias b_O is missing.
    joined @ weights["W_O"] + weights["b_O"] -> joined @ weights["W_O"]
W_O is transposed. Rows of X stand on the left in all four products, so no matrix needs a transpose.
    joined @ weights["W_O"] -> joined @ weights["W_O"].transpose(0, 1)
W_Q, W_K and W_V are transposed. Rows of X stand on the left, and the matrices are (in, out) already.
    weights["W_Q"] -> weights["W_Q"].transpose(0, 1) ; weights["W_K"] -> weights["W_K"].transpose(0, 1) ; weights["W_V"] -> weights["W_V"].transpose(0, 1)
The biases b_Q, b_K and b_V are missing.
    + weights["b_Q"] -> ; + weights["b_K"] -> ; + weights["b_V"] ->
The bias b_Q is missing.
    + weights["b_Q"] ->
The bias b_V is missing.
    + weights["b_V"] ->
[keys-from-values] The keys come from W_V, but they have a matrix of their own, W_K.
    X @ weights["W_K"] -> X @ weights["W_V"]
    X @ weights["W_K"] + weights["b_K"] -> X @ weights["W_V"] + weights["b_V"]
The values come from W_K, but they have a matrix of their own, W_V.
    X @ weights["W_V"] + weights["b_V"] -> X @ weights["W_K"] + weights["b_K"]
    X @ weights["W_V"] -> X @ weights["W_K"]
Queries and keys are exchanged. S has a row for each query, so it is Q Kᵀ.
    Q @ K.transpose(-1, -2) -> K @ Q.transpose(-1, -2)
[no-scale] The scores are not scaled: divide them by √d_k, the root of a head's own length.
    / math.sqrt(d_k) ->
You divide the scores by √d_model. Each head compares vectors of length d_k = d_model / h.
    math.sqrt(d_k) -> math.sqrt(d_model)
You divide the scores by d_k. Divide them by its root, √d_k.
    math.sqrt(d_k) -> d_k
You divide the scores by the root of the number of heads. Divide them by the root of a query's length, √d_k.
    math.sqrt(d_k) -> math.sqrt(h)
[no-mask] The mask is not added to the scores.
    + mask ->
You add the mask to the weights, after the softmax, so a row no longer sums to 1. Add the mask to the scores.
    + mask -> ; ops.softmax(S) -> ops.softmax(S) + mask
You add the mask before the scale, so the mask is divided too. Add it to the scaled scores.
    Q @ K.transpose(-1, -2) / math.sqrt(d_k) + mask -> (Q @ K.transpose(-1, -2) + mask) / math.sqrt(d_k)
You multiply scores by 0. But 0 is an ordinary score, and the hidden tokens keep weight. Add the mask.
    Q @ K.transpose(-1, -2) / math.sqrt(d_k) + mask -> Q @ K.transpose(-1, -2) / math.sqrt(d_k) * Tensor((mask.data == 0).astype(mask.dtype))
You subtract the mask. Add it, because it holds large negative numbers for the hidden tokens.
    + mask -> - mask
You set the weights of hidden tokens to 0 after the softmax, so a row no longer sums to 1. Add the mask to the scores.
    + mask -> ; ops.softmax(S) -> ops.softmax(S) * Tensor((mask.data == 0).astype(mask.dtype))
[mask-multiplied] You multiply the scores by the mask. Add it instead, so that 0 leaves a score as it is.
    Q @ K.transpose(-1, -2) / math.sqrt(d_k) + mask -> Q @ K.transpose(-1, -2) / math.sqrt(d_k) * mask
The mask lies along the queries. Its shape is (B, 1, 1, L), with the keys last, so add it as it is.
    + mask -> + mask.transpose(-1, -2)
Softmax runs over the queries. Each query (a row) shares out 1 over the keys, so use axis=-1.
    ops.softmax(S) -> ops.softmax(S.transpose(-1, -2)).transpose(-1, -2)
Softmax runs over the heads. Each head has rows of its own, so use axis=-1.
    ops.softmax(S) -> ops.softmax(S.transpose(1, -1)).transpose(1, -1)
Large scores overflow in an exponential of your own: `ops.softmax` subtracts each row's largest score first.
    ops.softmax(S) -> S.exp() / S.exp().sum(axis=-1, keepdims=True)
There is no softmax, but the scores must become weights.
    ops.softmax(S) -> S
[weights-transposed] The weights are transposed where they meet V. Row i of the weights holds what query i takes from each value.
    A @ V -> A.transpose(-1, -2) @ V
Each head gets its piece of X. It must get every token's whole vector. Only the projections are narrow: a head has all rows of W_Q, W_K and W_V, and d_k of their columns.
    X @ weights["W_Q"] -> _pieces(X, weights["W_Q"], h) ; X @ weights["W_K"] -> _pieces(X, weights["W_K"], h) ; X @ weights["W_V"] -> _pieces(X, weights["W_V"], h)
The bias b_O is added once for each head. It belongs to the layer, so add it once.
    + weights["b_O"] -> + h * weights["b_O"]
The gradient ends at .data, so some of the eight weights would never learn. Everything here stays a Tensor.
    split(X @ weights["W_K"] + weights["b_K"]) -> Tensor(split(X @ weights["W_K"] + weights["b_K"]).data)
    ops.softmax(S) -> Tensor(ops.softmax(S).data)
    joined @ -> Tensor(joined.data) @
You add X, which is chapter `add_norm`'s step. Here, return the change alone.
    return joined @ weights["W_O"] + weights["b_O"] -> return X + joined @ weights["W_O"] + weights["b_O"]
""",
)
def multi_head(X, weights, h, mask):
    B, L, d_model = X.shape  #: the numbers of texts, tokens and features
    d_k = d_model // h  #: the length of one head's queries and keys

    def split(x):
        return x.reshape(B, L, h, d_k).transpose(1, 2)  #: each head's columns, (B, h, L, d_k)

    Q = split(X @ weights["W_Q"] + weights["b_Q"])  #: each head's queries, bias included
    K = split(X @ weights["W_K"] + weights["b_K"])  #: each head's keys, bias included
    V = split(X @ weights["W_V"] + weights["b_V"])  #: each head's values, bias included
    S = Q @ K.transpose(-1, -2) / math.sqrt(d_k) + mask  #: the scaled scores plus the mask, (B, h, L, L)
    A = ops.softmax(S)  #: the weights, whose rows sum to 1
    Z = A @ V  #: each head's mixture of its values, (B, h, L, d_k)
    joined = Z.transpose(1, 2).reshape(B, L, d_model)  #: the heads' outputs side by side, (B, L, d_model)
    return joined @ weights["W_O"] + weights["b_O"]


# --- heads_backward --------------------------------------------------------------------------------------


def _backward_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for name, B, h, L, d_k, dtype in (
        ("2 texts of 5 tokens, 3 heads of 4", 2, 3, 5, 4, np.float64),
        ("B = h = L = d_k = 3", 3, 3, 3, 3, np.float64),
        ("float32, one head", 2, 1, 4, 6, np.float32),
        ("one text of one token", 1, 4, 1, 2, np.float64),
    ):
        d_model = h * d_k
        shapes = ((B, h, L, d_k), (d_model, d_model), (B, L, d_model))
        yield name, *(rng.standard_normal(shape).astype(dtype) for shape in shapes)


@exercise(
    difficulty=2,
    minutes=20,
    cases=_backward_cases,
    hints="""
Put the heads side by side, as the forward pass does. Then Y = joined W_O + b_O is a linear layer, and chapter `reverse_mode` has its backward pass.

The matrix and the bias serve every token of every text, so their gradients are sums over tokens and texts. With joined as (B L, d_model), one product contains that sum.

The heads' gradient is cut like the queries. A reshape and a transpose undo what put the outputs together.
""",
    mistakes="""
[cut-by-reshape] dZ is cut with a reshape alone. The forward pass exchanges tokens and heads before its reshape, so on the way back, reshape to (B, L, h, d_k) and exchange them again.
    d_joined.reshape(B, L, h, d_k).transpose(0, 2, 1, 3) -> d_joined.reshape(B, h, L, d_k)
dZ still has its tokens before its heads. Exchange the axes 1 and 2.
    d_joined.reshape(B, L, h, d_k).transpose(0, 2, 1, 3) -> d_joined.reshape(B, L, h, d_k)
dZ is dealt out like cards, but head i has d_k neighbouring columns.
    d_joined.reshape(B, L, h, d_k).transpose(0, 2, 1, 3) -> d_joined.reshape(B, L, d_k, h).transpose(0, 3, 1, 2)
You return the gradient of the joined outputs. It still has to be cut into heads.
    d_joined.reshape(B, L, h, d_k).transpose(0, 2, 1, 3) -> d_joined
[joined-by-reshape] For dW_O the heads are put together with a reshape alone. Exchange tokens and heads first.
    Z.transpose(0, 2, 1, 3).reshape(B * L, h * d_k) -> Z.reshape(B * L, h * d_k)
W_O is not transposed on the way back. Because Y = joined W_O, the gradient is d joined = dY W_Oᵀ.
    dY @ W_O.T -> dY @ W_O
dW_O is transposed. It has a row for each column of joined, so it is joinedᵀ dY.
    joined.T @ rows -> rows.T @ joined
dW_O and db_O are means over the tokens, but they must be sums. If the loss is a mean, dY already contains the division.
    joined.T @ rows -> joined.T @ rows / len(rows) ; rows.sum(axis=0) -> rows.mean(axis=0)
db_O is a mean over the tokens, but it must be the sum.
    rows.sum(axis=0) -> rows.mean(axis=0)
db_O has a row for each text. One bias serves all texts, so sum over them too.
    rows.sum(axis=0) -> dY.sum(axis=1)
db_O has a row for each position in the text. One bias serves all tokens, so sum over them too.
    rows.sum(axis=0) -> dY.sum(axis=0)
db_O is the sum over the wrong axis. A bias has an entry for each column.
    rows.sum(axis=0) -> rows.sum(axis=1)
dW_O has a matrix for each text. One matrix serves all texts, so sum over them.
    joined.T @ rows -> joined.reshape(B, L, h * d_k).swapaxes(1, 2) @ dY
You take dY as 1, but it comes from the layers above.
    rows = dY.reshape -> dY = np.ones_like(dY); rows = dY.reshape
The order is dZ, dW_O, db_O.
    return dZ, joined.T @ rows, rows.sum(axis=0) -> return joined.T @ rows, rows.sum(axis=0), dZ || return joined.T @ rows, dZ, rows.sum(axis=0) || return dZ, rows.sum(axis=0), joined.T @ rows
dW_O is a mean, but it must be a sum. If the loss is a mean, dY already contains the division.
    joined.T @ rows -> joined.T @ rows / B || joined.T @ rows / len(rows)
The heads of dZ come in the reverse order.
    return dZ, -> return dZ[:, ::-1],
Only one text counts in dW_O. One matrix serves all texts, so add up what they give.
    joined.T @ rows -> joined.reshape(B, L, h * d_k)[-1].T @ dY[-1] || joined.reshape(B, L, h * d_k)[0].T @ dY[0]
""",
)
def heads_backward(Z, W_O, dY):
    B, h, L, d_k = Z.shape  #: the numbers of texts, heads, tokens, and columns per head
    joined = Z.transpose(0, 2, 1, 3).reshape(B * L, h * d_k)  #: the heads side by side, a row per token
    rows = dY.reshape(B * L, h * d_k)  #: dY with one row for every token of every text
    d_joined = dY @ W_O.T  #: the gradient of the joined outputs, (B, L, d_model)
    dZ = d_joined.reshape(B, L, h, d_k).transpose(0, 2, 1, 3)  #: the gradient of Z, (B, h, L, d_k)
    return dZ, joined.T @ rows, rows.sum(axis=0)


# --- both_neighbours -------------------------------------------------------------------------------------


def _neighbour_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "3 tokens, 3 words", np.array([2, 0, 1]), 3
    yield "8 tokens, 4 words", rng.integers(0, 4, 8), 4
    yield "5 tokens that are the same word", np.full(5, 1), 3
    yield "7 tokens, 12 words", rng.integers(0, 12, 7), 12
    yield "40 tokens, 5 words", rng.integers(0, 5, 40), 5


@exercise(
    difficulty=2,
    minutes=25,
    cases=_neighbour_cases,
    given="run",
    hints="""
Chapter `one_head`'s exercise 3 has one of the heads: its keys say "I am at j", its queries "I want i - 1", and its values are the words. What must change for "I want i + 1"?

np.eye(L, k=1) has its ones one column to the right. The matrices of keys and values can be the same in both heads.

Each head brings n_words columns. Side by side, these columns are already in the right places. Which W_O leaves them there? If your heads are in the other order, which W_O exchanges them?
""",
    mistakes="""
The two halves are exchanged. The word before comes first, then the word after. Exchange the heads, or the halves of W_O.
    k=-1 -> k=1 ; k=1 -> k=-1
    W_O = np.eye(2 * n_words) -> W_O = np.roll(np.eye(2 * n_words), n_words, axis=1)
Both heads look to the left. The second has to look to the right: np.eye(L, k=1).
    k=1 -> k=-1
Both heads look to the right. The first has to look to the left: np.eye(L, k=-1).
    k=-1 -> k=1
Your heads look at their own token. Row i of the queries must point at i - 1 in one head and at i + 1 in the other.
    k=-1 -> k=0 ; k=1 -> k=0
One of your heads looks at its own token. Row i of the queries must point at i - 1 in one head and at i + 1 in the other.
    k=-1 -> k=0
    k=1 -> k=0
Your heads look at the right positions, but too softly, so a part of the weight still goes to the others. Longer queries make larger scores.
    100 * -> || 2 * || 3 * || 4 * || 5 * || 6 * || 8 * || 10 * || 20 * || 5 * math.sqrt(L) *
The signs of the scores are wrong, so the neighbour gets the least.
    100 * -> -100 *
W_O adds both words into the same columns, so the two words cannot be distinguished. Give each word its own columns.
    W_O = np.eye(2 * n_words) -> W_O = np.vstack([np.eye(n_words), np.eye(n_words)])
    W_O = np.eye(2 * n_words) -> W_O = np.tile(np.eye(n_words), (2, 2))
W_O takes the mean of both words. Each has to keep its own columns.
    W_O = np.eye(2 * n_words) -> W_O = np.tile(np.eye(n_words), (2, 2)) / 2
W_O lets only the first head through, because the rows of the second head are 0.
    W_O = np.eye(2 * n_words) -> W_O = np.diag([1.0] * n_words + [0.0] * n_words)
W_O is all 0, and so is the output.
    W_O = np.eye(2 * n_words) -> W_O = np.zeros((2 * n_words, 2 * n_words))
W_O is all ones, so each column of the output gets everything.
    W_O = np.eye(2 * n_words) -> W_O = np.ones((2 * n_words, 2 * n_words))
The heads look at the right tokens, but they hand over positions. Hand over the words, which are the first half of each row of X.
    word = np.vstack([np.eye(n_words), np.zeros((L, n_words))]) -> word = np.eye(n_words + L, n_words, k=-n_words)
The first and the last token do not count. Leave them out, as the sheet's last line does.
    [1:-1] ->
The keys of the first and the last token are missing. These two do not count in the output, and their neighbours have to find them.
    place = np.vstack([no_words, np.eye(L)]) -> place = np.vstack([no_words, np.diag([0.0, *np.ones(L - 2), 0.0])])
""",
)
def both_neighbours(words, n_words):
    L = len(words)  #: the number of tokens
    X = np.hstack([np.eye(n_words)[words], np.eye(L)])  #: words and positions, one-hot, (L, n_words + L)
    no_words = np.zeros((n_words, L))  #: zeros for the upper half, which reads the words
    before = np.vstack([no_words, 100 * np.eye(L, k=-1)])  #: the query matrix for i - 1, (n_words + L, L)
    after = np.vstack([no_words, 100 * np.eye(L, k=1)])  #: the query matrix for i + 1, (n_words + L, L)
    place = np.vstack([no_words, np.eye(L)])  #: the key matrix, in which each position names itself
    word = np.vstack([np.eye(n_words), np.zeros((L, n_words))])  #: the value matrix, for the word alone
    heads = [(before, place, word), (after, place, word)]  #: both heads' matrices, first for the word before
    W_O = np.eye(2 * n_words)  #: the identity, which leaves each word its own columns
    Z = [softmax(X @ W_Q @ (X @ W_K).T / math.sqrt(W_Q.shape[1])) @ (X @ W_V) for W_Q, W_K, W_V in heads]
    return (np.hstack(Z) @ W_O)[1:-1].round(1)


# --- refit -----------------------------------------------------------------------------------------------


def _layer(order: np.ndarray) -> Layer:
    """A layer of heads that joins their outputs in another order of columns: column c has what belongs to order[c]."""

    def layer(X: np.ndarray, weights: Weights, h: int) -> np.ndarray:
        d_k = X.shape[1] // h
        Q, K, V = (
            (X @ weights[f"W_{name}"] + weights[f"b_{name}"]).reshape(len(X), h, d_k).swapaxes(0, 1)
            for name in "QKV"
        )
        Z = softmax(Q @ K.swapaxes(1, 2) / math.sqrt(d_k)) @ V  # (h, L, d_k)
        joined = Z.swapaxes(0, 1).reshape(len(X), -1)
        return joined[:, order] @ weights["W_O"] + weights["b_O"]

    return layer


def _refit_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def columns(h: int, d_k: int) -> np.ndarray:
        return np.arange(h * d_k).reshape(h, d_k)

    yield "a layer with its heads in order", _layer(columns(2, 3).ravel()), _weights(rng, 6), 2
    yield "heads in reverse", _layer(columns(3, 4)[::-1].ravel()), _weights(rng, 12), 3
    yield "heads interleaved", _layer(columns(4, 2).T.ravel()), _weights(rng, 8), 4
    yield "heads moved on by one", _layer(np.roll(columns(5, 2), 1, axis=0).ravel()), _weights(rng, 10), 5
    yield "columns in any order", _layer(rng.permutation(12)), _weights(rng, 12), 2


@exercise(
    difficulty=3,
    minutes=30,
    cases=_refit_cases,
    hints="""
You choose the weights that the layer gets, so make everything vanish that you do not want to see. Use zeros for W_Q, W_K and W_V. What does a head hand over then?

With W_V = 0 every value is b_V, and a mixture of equal values is the value. With W_O the identity and b_O = 0, the output shows the joined columns as they are.

Let b_V be 0, 1, 2 and so on, so that each column shows where it came from. Call the numbers that you see `found`. Column c of the joined outputs holds what belongs to column found[c], so it needs row found[c] of W_O.
""",
    mistakes="""
The new W_O has its rows the wrong way round. Row c must be row found[c] of the old W_O. Yours moves row c to found[c], which is the inverse.
    new = weights["W_O"][found] -> new = weights["W_O"][np.argsort(found)]
You exchange the columns of W_O. A column of W_O is a feature of the output, and the heads meet the rows.
    new = weights["W_O"][found] -> new = weights["W_O"][:, found]
You exchange the columns of W_O, and in the inverse order too. The heads meet the rows of W_O.
    new = weights["W_O"][found] -> new = weights["W_O"][:, np.argsort(found)]
You return W_O as it was.
    new = weights["W_O"][found] -> new = weights["W_O"]
You reverse the heads in W_O for every layer. Only the probe shows the order of the heads.
    new = weights["W_O"][found] -> new = weights["W_O"].reshape(h, -1, d_model)[::-1].reshape(d_model, d_model)
You undo an interleaving in W_O for every layer. Only the probe shows the order of the columns.
    new = weights["W_O"][found] -> new = weights["W_O"].reshape(h, -1, d_model).swapaxes(0, 1).reshape(d_model, d_model)
Your W_O moves whole heads, so it is right only where the columns of a head stay together. Look at every column.
    new = weights["W_O"][found] -> new = weights["W_O"].reshape(h, -1, d_model)[found[:: d_model // h] * h // d_model].reshape(d_model, d_model)
You count the columns from 1. Count them from 0.
    return found, -> return found + 1,
The order that you return first is the inverse: where each column went. Return where each joined column came from.
    return found, -> return np.argsort(found),
You return the number of the head first. Return the number of the column.
    return found, -> return found // (d_model // h),
You return the order 0, 1, 2 and so on, which fits only a layer that is right.
    return found, -> return np.arange(d_model),
The order is found, new: the columns first, then W_O.
    return found, new -> return new, found
""",
)
def refit(layer, weights, h):
    d_model = len(weights["W_O"])  #: the number of joined columns
    probe = {name: np.zeros_like(W) for name, W in weights.items()}  #: zeros for all eight weights
    probe["b_V"] = np.arange(d_model, dtype=float)  #: a b_V that numbers the values' columns from 0
    probe["W_O"] = np.eye(d_model)  #: the identity, which shows the columns as they are joined
    X = np.zeros((2, d_model))  #: two tokens of zeros, (2, d_model)
    found = layer(X, probe, h)[0].round().astype(int)  #: the number of the column in each place, (d_model,)
    new = weights["W_O"][found]  #: W_O with its row found[c] as row c
    return found, new


# --- without_biases --------------------------------------------------------------------------------------


def _bias_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "d_model = 6", _weights(rng, 6)
    yield "d_model = 1", _weights(rng, 1)
    yield "float32, d_model = 8", _weights(rng, 8, np.float32)


@exercise(
    difficulty=3,
    minutes=20,
    cases=_bias_cases,
    hints="""
One of the two biases changes nothing at all, so it can be dropped without a trace. Which bias adds the same number to all scores of a row?

(q + b_Q) · (k + b_K): write out the four terms. For one query, which of them are the same for every key?

A row of weights sums to 1, so b_V adds the same vector to the output of every token. Which vector is it? Another bias can take it over.
""",
    mistakes="""
b_O has to take over b_V as the output projection passes it on: b_V W_O.
    + weights["b_V"] @ weights["W_O"] -> + weights["b_V"]
W_O is transposed. b_V is a row, so it stands on the left, as in b_V W_O.
    weights["b_V"] @ weights["W_O"] -> weights["W_O"] @ weights["b_V"]
b_V vanishes without a trace in your layer, but it does reach the output. The weights sum to 1, so every token gets b_V W_O.
    weights["b_O"] + weights["b_V"] @ weights["W_O"] -> weights["b_O"]
You replace b_O. It must keep its own value, and b_V W_O is added.
    weights["b_O"] + weights["b_V"] @ weights["W_O"] -> weights["b_V"] @ weights["W_O"]
The sign is wrong. Add b_V W_O.
    weights["b_O"] + weights["b_V"] -> weights["b_O"] - weights["b_V"]
You drop b_Q. b_Q · k differs from key to key, so it changes the weights; q · b_K is the same for every key of a row.
    less["b_K"] = np.zeros_like(weights["b_K"]) -> less["b_Q"] = np.zeros_like(weights["b_Q"])
You drop b_Q as well. b_Q · k differs from key to key, so it changes the weights.
    less["b_K"] = np.zeros_like(weights["b_K"]) -> less["b_K"] = less["b_Q"] = np.zeros_like(weights["b_K"])
You drop b_Q and leave b_V. b_Q · k differs from key to key, so it changes the weights. The second bias reaches every output in the same way.
    less["b_V"] = np.zeros_like(weights["b_V"]) -> less["b_Q"] = np.zeros_like(weights["b_Q"]) ; weights["b_O"] + weights["b_V"] @ weights["W_O"] -> weights["b_O"]
You drop b_O and b_V, and nothing takes them over. b_O reaches every output, so it must stay.
    less["b_V"] = np.zeros_like(weights["b_V"]) -> less["b_V"] = np.zeros_like(weights["b_V"]); less["b_O"] = np.zeros_like(weights["b_O"]); return less
    less["b_K"] = np.zeros_like(weights["b_K"]) -> less["b_V"] = np.zeros_like(weights["b_V"]); less["b_O"] = np.zeros_like(weights["b_O"]); return less
You let b_V take over b_O. That needs the inverse of W_O, and not every W_O has an inverse. The other way round always works.
    less["b_V"] = np.zeros_like(weights["b_V"]) -> less["b_V"] = weights["b_V"] + weights["b_O"] @ np.linalg.inv(weights["W_O"]) ; weights["b_O"] + weights["b_V"] @ weights["W_O"] -> np.zeros_like(weights["b_O"])
b_K needs no substitute. It adds the same number to all scores of a row, and softmax does not see that.
    less["b_K"] = -> less["b_Q"] = weights["b_Q"] + weights["b_K"]; less["b_K"] =
    weights["b_O"] + weights["b_V"] @ weights["W_O"] -> weights["b_O"] + (weights["b_V"] + weights["b_K"]) @ weights["W_O"]
b_K is still there. It can be 0, because it adds the same number to all scores of a row.
    less["b_K"] = np.zeros_like(weights["b_K"]) -> less["b_K"] = weights["b_K"]
b_V is still there, and b_O has taken it over as well, so the output has it twice.
    less["b_V"] = np.zeros_like(weights["b_V"]) -> less["b_V"] = weights["b_V"]
You leave out the two biases. Keep them in the result, under their own names, as 0.
    return less -> return {name: W for name, W in less.items() if name not in ("b_K", "b_V")}
You return the new b_O alone. Return all eight weights.
    return less -> return less["b_O"]
""",
)
def without_biases(weights):
    less = dict(weights)  #: the eight weights in a new dictionary
    less["b_K"] = np.zeros_like(weights["b_K"])  # the same number for all scores of a row
    less["b_V"] = np.zeros_like(weights["b_V"])  # rows of weights sum to 1
    less["b_O"] = weights["b_O"] + weights["b_V"] @ weights["W_O"]  #: b_O plus what b_V adds to every output
    return less
