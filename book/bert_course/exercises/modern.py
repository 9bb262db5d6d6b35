"""Chapter `modern`: a head with rotary positions, GeGLU's width, ALiBi's slopes, a verdict on a change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.check.outcome import Probe

# --- geglu_width -----------------------------------------------------------------------------------------


def _widths(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "BERT-Base without biases", 768, 3072, False, 1
    yield "BERT-Base with biases", 768, 3072, True, 1
    yield "BERT-Base with biases, a multiple of 48", 768, 3072, True, 48
    yield "as many parameters in both parts", 2, 8, True, 1
    yield "d_model = 5, d_ff = 6", 5, 6, True, 1
    yield "less than one multiple", 128, 64, False, 64
    yield "a narrow feed-forward part with biases", 128, 128, True, 1
    yield "d_model = 2, d_ff = 100", 2, 100, True, 1
    yield "d_model = 2, d_ff = 6", 2, 6, True, 1
    yield "d_model = 3, d_ff = 8", 3, 8, True, 1
    d_model, d_ff = (int(n) for n in rng.integers(60, 400, 2))
    yield f"d_model = {d_model}, d_ff = {d_ff}, a multiple of 8", d_model, d_ff, False, 8


@exercise(
    difficulty=1,
    minutes=10,
    cases=_widths,
    hints="""
How many numbers does BERT's feed-forward part have? Two matrices of d_model times d_ff, and the biases d_ff and d_model if there are biases.

A GeGLU of width w has three matrices of d_model times w. With biases it has w for the gate, w for the other inner matrix, and d_model at the end.

So one more unit of width costs 3 d_model numbers, and 2 more with biases. Divide what BERT's part has, without the d_model biases that both have at the end, by this cost. Then round down to a multiple.
""",
    mistakes="""
You count two matrices in a GeGLU, so the width stays d_ff. There are three: the gate, the other matrix from d_model to w, and the one back.
    per_unit = 3 * d_model + 2 * bias -> per_unit = 2 * d_model + 2 * bias || per_unit = 2 * d_model + bias
You leave the biases out. With bias they count on both sides.
    budget = 2 * d_model * d_ff + d_ff * bias -> budget = 2 * d_model * d_ff ; per_unit = 3 * d_model + 2 * bias -> per_unit = 3 * d_model
You count the biases even where there are none.
    d_ff * bias -> d_ff ; 2 * bias -> 2
A GeGLU has one more bias of width w: the gate's and the other inner matrix's.
    per_unit = 3 * d_model + 2 * bias -> per_unit = 3 * d_model + bias
You count three biases of width w. The third matrix of a GeGLU leads back, and its bias has d_model numbers.
    per_unit = 3 * d_model + 2 * bias -> per_unit = 3 * d_model + 3 * bias
BERT's inner biases are missing. It has d_ff of them.
    budget = 2 * d_model * d_ff + d_ff * bias -> budget = 2 * d_model * d_ff
The biases of GeGLU's two inner matrices are missing, w each.
    per_unit = 3 * d_model + 2 * bias -> per_unit = 3 * d_model
Both parts have d_model biases at the end, so these cancel. You count them for one of the two alone.
    d_ff * bias -> (d_ff + d_model) * bias || (d_ff - d_model) * bias
Both parts may have equally many parameters: "at most" includes that.
    return budget // per_unit // multiple * multiple -> return (budget - 1) // per_unit // multiple * multiple
A bias has one number for each output of its matrix. You count one for each input.
    budget = 2 * d_model * d_ff + d_ff * bias -> budget = 2 * d_model * d_ff + (d_model + d_ff) * bias - 2 * d_model * bias ; per_unit = 3 * d_model + 2 * bias -> per_unit = 3 * d_model + bias
You round up or to the nearest, so the GeGLU can have more parameters than BERT's part. Round down.
    return budget // per_unit // multiple * multiple -> return -(-budget // (per_unit * multiple)) * multiple || return round(budget / per_unit / multiple) * multiple
You do not round to a multiple of `multiple`.
    // multiple * multiple ->
You return how many multiples there are. Multiply by `multiple`.
    // multiple * multiple -> // multiple
The smallest width that you return is one multiple. Where that is too much, the answer is 0.
    return budget // per_unit // multiple * multiple -> return max(multiple, budget // per_unit // multiple * multiple)
You take the largest power of two. A multiple of `multiple` is asked for.
    return budget // per_unit // multiple * multiple -> return 2 ** int(math.log2(budget // per_unit))
The width is a whole number.
    budget // per_unit // multiple * multiple -> budget / per_unit
You set the width to ¾ of d_ff. There are three matrices instead of two, so each has two thirds.
    return budget // per_unit // multiple * multiple -> return 3 * d_ff // 4 // multiple * multiple
You set the width to half of d_ff. Then three matrices have fewer numbers than BERT's two.
    return budget // per_unit // multiple * multiple -> return d_ff // 2 // multiple * multiple
""",
)
def geglu_width(d_model, d_ff, bias, multiple):
    budget = 2 * d_model * d_ff + d_ff * bias  #: the parameters of BERT's part, without its last biases
    per_unit = 3 * d_model + 2 * bias  #: the parameters that one more unit of width costs
    return budget // per_unit // multiple * multiple


# --- alibi -----------------------------------------------------------------------------------------------


def _alibis(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "8 heads, 5 tokens", 8, 5
    yield "4 heads, 4 tokens", 4, 4
    yield "one head", 1, 6
    yield "3 heads", 3, 4
    yield "12 heads, as in BERT-Base", 12, 3
    yield "one token", 2, 1
    heads = int(rng.choice([5, 6, 7, 9, 10, 11, 13]))
    yield f"{heads} heads", heads, int(rng.integers(5, 9))


@exercise(
    difficulty=2,
    minutes=20,
    cases=_alibis,
    hints="""
Write a function for powers of two first: slopes(p) has the p numbers 2^(-8/p), its square, … down to 2^(-8).

For other numbers of heads, p is the largest power of two below that number: 2 ** int(math.log2(n_heads)). All of slopes(p) come first, and then the 1st, 3rd, 5th, … of slopes(2 p), as many as are missing.

The distance of tokens i and j is abs(i - j), a matrix (L, L). Give the slopes two more axes: m[:, None, None].
""",
    mistakes="""
[sign] The sign is wrong: far tokens must get less, so the distance times the slope is subtracted.
    return -m[:, None, None] -> return m[:, None, None]
Your bias is 0 to the right. That is the causal form, as in a GPT. An encoder takes distances to both sides.
    np.abs(i[:, None] - i) -> np.maximum(i[:, None] - i, 0)
Your bias is 0 to the left. An encoder takes distances to both sides.
    np.abs(i[:, None] - i) -> np.maximum(i - i[:, None], 0)
You use i - j with its sign, so tokens to one side get more with the distance. The distance is its absolute value.
    np.abs(i[:, None] - i) -> (i[:, None] - i) || (i - i[:, None])
You take the square of the distance. ALiBi is linear in it.
    np.abs(i[:, None] - i) -> (i[:, None] - i) ** 2
The next token has the distance 1, and the token itself 0.
    np.abs(i[:, None] - i) -> np.abs(i[:, None] - i) + 1
You use the formula of the powers of two for every number of heads. If it is not a power of two, take all of the largest power below it and every second one of twice that power.
    p = 2 ** int(math.log2(n_heads)) -> p = n_heads
You take the slopes of the next larger power of two and drop some.
    p = 2 ** int(math.log2(n_heads)) -> p = 2 ** math.ceil(math.log2(n_heads))
From the slopes of twice the power you take the first ones. Take every second one: 1st, 3rd, 5th, …
    slopes(2 * p)[::2] -> slopes(2 * p)
Of the 1st, 3rd, 5th, … slope you take the last ones. Take the first ones, as many as are missing.
    slopes(2 * p)[::2][: n_heads - p] -> slopes(2 * p)[::2][2 * p - n_heads :]
From the slopes of twice the power you take the 2nd, 4th, … You have those already: take the 1st, 3rd, 5th, …
    slopes(2 * p)[::2] -> slopes(2 * p)[1::2]
You sort the slopes. They come in the order of the text: the power's own first, then those that were filled in.
    np.r_[slopes(p), slopes(2 * p)[::2][: n_heads - p]] -> np.sort(np.r_[slopes(p), slopes(2 * p)[::2][: n_heads - p]])[::-1]
Your slopes that fill in come first. All of slopes(p) should come first.
    np.r_[slopes(p), slopes(2 * p)[::2][: n_heads - p]] -> np.r_[slopes(2 * p)[::2][: n_heads - p], slopes(p)]
The slopes begin with 2^(-8/p), not with 1.
    np.arange(1, n + 1) -> np.arange(n)
Your slopes are 2^(-1), 2^(-2), … for every number of heads. The exponent is a multiple of 8/p, and ends at 8.
    2.0 ** (-8 * np.arange(1, n + 1) / n) -> 2.0 ** -np.arange(1.0, n + 1)
Your slopes fall linearly. They are a geometric sequence: each is the first one's factor times the one before.
    2.0 ** (-8 * np.arange(1, n + 1) / n) -> np.linspace(2.0 ** (-8 / n), 2.0**-8, n)
Brackets are missing: 2.0 ** -8 is computed first, and then multiplied. The whole fraction is the exponent.
    2.0 ** (-8 * np.arange(1, n + 1) / n) -> 2.0 ** -8 * np.arange(1, n + 1) / n
The slopes are cut down to whole numbers. They are fractions.
    return -m[:, None, None] * np.abs(i[:, None] - i) -> return -m.astype(int)[:, None, None] * np.abs(i[:, None] - i)
The exponent is upside down: it is 8 h / A.
    -8 * np.arange(1, n + 1) / n -> -8 / np.arange(1, n + 1)
The powers are of 2, and not of e.
    2.0 ** ( -> np.exp(
Your slopes rise from head to head. The first head has the largest slope.
    return 2.0 ** (-8 * np.arange(1, n + 1) / n) -> return 2.0 ** (-8 * np.arange(1, n + 1) / n)[::-1]
All heads have the same slope. Each has its own.
    m = np.r_ -> m = np.zeros(n_heads) + 0.5 + 0 * np.r_
The slopes are missing.
    -m[:, None, None] * -> -np.ones((n_heads, 1, 1)) *
You return the slopes alone. Multiply each by the distances, (n_heads, L, L).
    return -m[:, None, None] * np.abs(i[:, None] - i) -> return m
The heads come first: (n_heads, L, L).
    -m[:, None, None] * np.abs(i[:, None] - i) -> -m * np.abs(i[:, None] - i)[:, :, None]
You return the exponentials of the biases. What is added to the scores comes before the softmax.
    return -m[:, None, None] * np.abs(i[:, None] - i) -> return np.exp(-m[:, None, None] * np.abs(i[:, None] - i))
""",
)
def alibi(n_heads, L):
    def slopes(n):
        return 2.0 ** (-8 * np.arange(1, n + 1) / n)  #: the slopes of n heads, n a power of two, (n,)

    p = 2 ** int(math.log2(n_heads))  #: the largest power of two that is at most n_heads
    m = np.r_[slopes(p), slopes(2 * p)[::2][: n_heads - p]]  #: the slope of each head, (n_heads,)
    i = np.arange(L)  #: the positions of the tokens
    return -m[:, None, None] * np.abs(i[:, None] - i)  # (n_heads, L, L)


# --- rotary_head -----------------------------------------------------------------------------------------


def _heads(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(L: int, d_model: int, d_k: int, d_v: int) -> Iterator[np.ndarray]:
        for shape in ((L, d_model), (d_model, d_k), (d_model, d_k), (d_model, d_v)):
            yield rng.standard_normal(shape)

    yield "5 tokens, d_model = 6, d_k = 4, d_v = 3", *draw(5, 6, 4, 3)
    yield "L = d_model = d_k = d_v = 4", *draw(4, 4, 4, 4)
    yield "d_k = 2", *draw(6, 3, 2, 5)
    yield "one token", *draw(1, 5, 6, 2)
    yield "7 tokens, d_k = 8", *draw(7, 5, 8, 8)
    X, W_Q, W_K, W_V = draw(4, 6, 4, 3)
    yield "large scores", 40 * X, W_Q, W_K, W_V


@exercise(
    difficulty=2,
    minutes=20,
    cases=_heads,
    hints="""
Write a function that rotates all rows of a matrix (L, d_k), and use it for the queries and for the keys. The values stay as they are.

The angles are a matrix: positions down, hands across. np.arange(L)[:, None] * omega has shape (L, d_k / 2).

a = x[:, 0::2] and b = x[:, 1::2] are the two columns of all hands. Write the new ones to the same columns of an array of x's shape.
""",
    mistakes="""
[not-rotated] Nothing is rotated, or every row by the same angle: a text and the same text in another order give the same rows.
    rotated(X @ W_Q) @ rotated(X @ W_K).T -> (X @ W_Q) @ (X @ W_K).T
Only the queries are rotated. Then the score depends on where the query is, and not on the distance.
    rotated(X @ W_K) -> (X @ W_K)
Only the keys are rotated. Then the score depends on where the key is, and not on the distance.
    rotated(X @ W_Q) -> (X @ W_Q)
[values-too] You rotate the values as well. Positions belong in the scores; what is handed over stays as it is.
    weights @ (X @ W_V) -> weights @ rotated(X @ W_V)
You rotate the input. Queries and keys are rotated after W_Q and W_K have made them, or the scores depend on more than distances.
    rotated(X @ W_Q) @ rotated(X @ W_K).T -> (rotated(X) @ W_Q) @ (rotated(X) @ W_K).T
You add the waves to queries and keys. They are to be rotated.
    y[:, 0::2] = a * np.cos(angle) + b * np.sin(angle) -> y[:, 0::2] = a + np.sin(angle) ; y[:, 1::2] = b * np.cos(angle) - a * np.sin(angle) -> y[:, 1::2] = b + np.cos(angle)
[other-way] You rotate the other way round, as the paper does, whose vectors are columns; sine and cosine swapped have the same effect. Here (a, b) becomes (a cos + b sin, b cos - a sin), as a row times the R_i of chapter `positions`.
    + b * np.sin(angle) -> - b * np.sin(angle) ; - a * np.sin(angle) -> + a * np.sin(angle)
A sign is wrong, so lengths change: a rotation has one minus.
    - a * np.sin(angle) -> + a * np.sin(angle)
A sign is wrong, so lengths change: one of the two sines has a plus.
    + b * np.sin(angle) -> - b * np.sin(angle)
You overwrite a before you compute the new b: x[:, 0::2] is a view of x. Compute both first, or write to another array.
    - a * np.sin(angle) -> - y[:, 0::2] * np.sin(angle)
The exponent is twice what it should be. It is -2n / d_k, where n counts hands up to d_k/2.
    -2 * np.arange(d_k // 2) / d_k -> -4 * np.arange(d_k // 2) / d_k
Both columns of a hand have the same angle. You lay the angles side by side twice, so column 2n has another hand's.
    y[:, 0::2] = a * np.cos(angle) + b * np.sin(angle) -> tiled = np.tile(angle, 2); y[:, 0::2] = a * np.cos(tiled[:, 0::2]) + b * np.sin(tiled[:, 0::2]) ; y[:, 1::2] = b * np.cos(angle) - a * np.sin(angle) -> y[:, 1::2] = b * np.cos(tiled[:, 1::2]) - a * np.sin(tiled[:, 1::2])
W_Q and W_K have changed places: the rows of the scores belong to the queries.
    rotated(X @ W_Q) @ rotated(X @ W_K).T -> rotated(X @ W_K) @ rotated(X @ W_Q).T
You hide the later tokens, a causal mask. This head has no mask.
    weights = np.exp( -> scores = np.where(np.tri(len(X)), scores, -np.inf); weights = np.exp(
You pair column n with column n + d_k/2, as many libraries do. Here hand n has the columns 2n and 2n + 1.
    x[:, 0::2] -> x[:, : d_k // 2] ; x[:, 1::2] -> x[:, d_k // 2 :] ; y[:, 0::2] -> y[:, : d_k // 2] ; y[:, 1::2] -> y[:, d_k // 2 :]
The exponent has the wrong sign. Later hands must be slower.
    -2 * np.arange -> 2 * np.arange
The exponent is half of what it should be. It is -2n / d_k, where n counts hands.
    -2 * np.arange -> -1 * np.arange
All hands turn by the same angle. Hand n has the frequency 10000 ** (-2n / d_k).
    10000.0 ** (-2 * np.arange(d_k // 2) / d_k) -> np.ones(d_k // 2)
You divide the exponent by d_model. What is rotated has d_k columns.
    / d_k) -> / X.shape[-1])
The base of the frequencies is 10000.
    10000.0 -> 1000.0 || 2.0
You divide the position by the length of the text. A distance must mean the same in every text.
    np.arange(L)[:, None] * omega -> np.arange(L)[:, None] / L * omega
You take the angle in degrees, but it is in radians.
    np.arange(L)[:, None] * omega -> np.radians(np.arange(L)[:, None] * omega)
[no-scale] The scores are not scaled by √d_k.
    / math.sqrt(W_Q.shape[1]) ->
You divide by d_k. The scale is its square root.
    math.sqrt(W_Q.shape[1]) -> W_Q.shape[1]
You scale by √d_model. The scores are products of vectors of length d_k.
    math.sqrt(W_Q.shape[1]) -> math.sqrt(X.shape[1])
Large scores overflow: subtract each row's largest entry before the exponential.
    scores - scores.max(axis=-1, keepdims=True) -> scores
The softmax goes over the queries. Each query (a row) shares out 1 over the keys.
    axis=-1 -> axis=0
You return the weights times the values of unprojected tokens. The values are X W_V.
    weights @ (X @ W_V) -> weights @ X
You return the weights.
    return weights @ (X @ W_V) -> return weights
You return the scores times the values: the softmax is missing.
    return weights @ (X @ W_V) -> return scores @ (X @ W_V)
""",
)
def rotary_head(X, W_Q, W_K, W_V):
    def rotated(x):
        L, d_k = x.shape  #: the numbers of tokens and of columns
        omega = 10000.0 ** (-2 * np.arange(d_k // 2) / d_k)  #: each hand's frequency, (d_k / 2,)
        angle = np.arange(L)[:, None] * omega  #: each hand's angle at each token, (L, d_k / 2)
        a, b, y = x[:, 0::2], x[:, 1::2], np.empty_like(x)  #: the hands' entries a and b, an array to fill
        y[:, 0::2] = a * np.cos(angle) + b * np.sin(angle)  #: the rotated first entries of the hands
        y[:, 1::2] = b * np.cos(angle) - a * np.sin(angle)  #: the rotated second entries of the hands
        return y  #: the rotated rows, of the shape of x

    scores = rotated(X @ W_Q) @ rotated(X @ W_K).T / math.sqrt(W_Q.shape[1])  #: the scaled scores, (L, L)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))  #: the exponentials of the shifted scores
    weights = weights / weights.sum(axis=-1, keepdims=True)  #: the weights, whose rows sum to 1
    return weights @ (X @ W_V)  # (L, d_v)


# --- verdict ---------------------------------------------------------------------------------------------

BUDGET = 12  # runs


class _Runs:
    """A stand-in for training runs: the loss of a model at a rate, and what its seed adds; BUDGET calls at most.

    seeds_add: what a model's second seed adds, its third and its fourth, and so on from the beginning again. first: what
    the first adds, which is that of the search.
    """

    def __init__(
        self,
        losses: Mapping[str, Mapping[float, float]],
        seeds_add: Mapping[str, tuple[float, ...]],
        first: Mapping[str, float],
    ) -> None:
        self.losses, self.seeds_add, self.first = losses, seeds_add, first
        self.calls: list[tuple[str, float, int]] = []

    def __repr__(self) -> str:
        return "run(model, rate, seed)"

    def __call__(self, model: str, rate: float, seed: int) -> float:
        for name, came, known in (("model", model, self.losses), ("rate", rate, self.losses["BERT"])):
            if came not in known:
                raise ValueError(f"a {name} is one of {', '.join(map(repr, known))}, and {came!r} came")
        self.calls.append((model, rate, seed))
        if len(self.calls) > BUDGET:
            raise RuntimeError(
                f"this is run {len(self.calls)}, and only {BUDGET} are paid for; a search needs one seed"
            )
        seeds = list(dict.fromkeys(seed for one, _, seed in self.calls if one == model))
        add = self.seeds_add[model]
        later = seeds.index(seed) - 1
        return self.losses[model][rate] + (add[later % len(add)] if later >= 0 else self.first[model])


def _too_few(before: None, returned: Any, arguments: Mapping[str, Any]) -> str | None:
    """Of an answer that decides: that it has not three runs of a model at one rate beside those of the search."""
    for model in ("BERT", "change") if returned in ("better", "worse") else ():
        seeds: dict[float, set[int]] = {}
        for one, rate, seed in arguments["run"].calls:
            if one == model:
                seeds.setdefault(rate, set()).add(seed)
        own = {rate: of.difference(*(seeds[r] for r in seeds if r != rate)) for rate, of in seeds.items()}
        most = max(seeds, key=lambda rate: len(own[rate]), default=None)
        if most is None or len(own[most]) < 3:
            runs, new = (0, 0) if most is None else (len(seeds[most]), len(own[most]))
            return (
                f"it runs {model} with {runs} seeds at one rate, and {new} of them are not those of another rate's runs; "
                "three such runs of each model are asked for"
            )
    return None


def _verdicts(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    del rng
    inf = math.inf

    def case(
        bert: tuple[float, ...],
        change: tuple[float, ...],
        spread: float,
        rates: tuple[float, ...] = (1e-3, 2e-3, 4e-3),
        worst: dict[str, float] | None = None,
        lucky: str = "",
    ) -> tuple[Any, ...]:
        """The losses at each rate; what seeds add at most; what a model's fourth seed adds, where that is more.

        lucky: the model whose first seed ends lower than all others.
        """
        losses = {
            name: dict(zip(rates, values, strict=True))
            for name, values in (("BERT", bert), ("change", change))
        }
        add = {"BERT": (-spread, 0.0, spread), "change": (0.0, -spread, spread)}
        for name, most in (worst or {}).items():
            add[name] = (*add[name][:2], most)
        first = {name: -0.05 if name == lucky else seeds[0] for name, seeds in add.items()}
        return _Runs(losses, add, first), rates

    yield "better at every rate", *case((0.70, 0.64, 0.90), (0.60, 0.55, 0.80), 0.01)
    yield "worse at every rate", *case((0.60, 0.55, 0.80), (0.70, 0.64, 0.90), 0.01)
    yield "worse at BERT's best rate, better at its own", *case((0.64, 0.80, 1.30), (0.90, 0.70, 0.58), 0.01)
    yield "better at BERT's worst rate alone", *case((0.55, 0.70, 2.00), (0.80, 0.66, 0.60), 0.01)
    yield (
        "other rates, in another order",
        *case((0.90, 0.60, 0.80), (0.56, 0.80, 0.70), 0.01, (3e-3, 1e-2, 5e-4)),
    )
    yield "the same but for the seeds", *case((0.75, 0.64, 0.90), (0.75, 0.65, 0.90), 0.03)
    yield "far lower on average, but the ranges overlap", *case((0.80, 0.64, 0.90), (0.586, 0.75, 0.90), 0.03)
    yield (
        "far higher on average, but the ranges overlap",
        *case((0.90, 0.80, 0.586), (0.64, 0.75, 0.90), 0.03),
    )
    yield "the ranges touch", *case((0.75, 0.625, 0.875), (0.75, 0.5625, 0.875), 0.03125)
    yield "BERT diverges at two rates", *case((0.60, inf, inf), (0.75, 0.70, 0.68), 0.01)
    yield (
        "one run of the change diverges",
        *case((0.70, 0.64, 0.90), (0.60, 0.55, 0.8), 0.01, worst={"change": inf}),
    )
    yield (
        "better, and BERT's search was lucky",
        *case((0.9, 0.64, 0.95), (0.8, 0.6, 0.85), 0.01, lucky="BERT"),
    )
    yield (
        "worse, and the change's search was",
        *case((0.8, 0.6, 0.85), (0.9, 0.64, 0.95), 0.01, lucky="change"),
    )
    yield "one run of BERT diverges", *case((0.70, 0.64, 0.90), (0.60, 0.55, 0.80), 0.01, worst={"BERT": inf})


@exercise(
    difficulty=3,
    minutes=30,
    cases=_verdicts,
    probes=[Probe(lambda arguments: None, _too_few)],
    hints="""
Twelve runs: what would you compare if you had only three for each model? And how do you find out at which rate?

Six runs are one at each rate for each model, all with the same seed. Each model's own lowest loss gives its rate: min(rates, key=lambda rate: run(model, rate, 100)).

Then three runs for each model at its own best rate, with seeds that the search did not use. "better" needs the largest of the change's three losses to be below the smallest of BERT's.
""",
    mistakes="""
[bert-rate] You run the change at BERT's best rate. Each model needs a rate of its own, or the change is punished for BERT's.
    rate = min(rates, key=lambda rate: run(model, rate, 100)) -> rate = min(rates, key=lambda rate: run("BERT", rate, 100))
You run BERT at the change's best rate. Each model needs a rate of its own.
    rate = min(rates, key=lambda rate: run(model, rate, 100)) -> rate = min(rates, key=lambda rate: run("change", rate, 100))
You do not search: one rate for both favours the model whose best rate it is.
    rate = min(rates, key=lambda rate: run(model, rate, 100)) -> rate = rates[0] || rate = rates[1] || rate = rates[2]
You choose the rate with the highest loss. Lower is better.
    rate = min( -> rate = max(
You search for the change's rate and give BERT a fixed one, so BERT is punished for it. BERT needs a search, too.
    rate = min(rates, key=lambda rate: run(model, rate, 100)) -> rate = min(rates, key=lambda rate: run(model, rate, 100)) if model == "change" else rates[0] || rate = min(rates, key=lambda rate: run(model, rate, 100)) if model == "change" else rates[1]
You search for BERT's rate and give the change a fixed one, so the change is punished for it.
    rate = min(rates, key=lambda rate: run(model, rate, 100)) -> rate = min(rates, key=lambda rate: run(model, rate, 100)) if model == "BERT" else rates[0]
You choose one rate for both, the one with the lowest sum. Each model needs a rate of its own.
    joint = min(rates, key=lambda rate: run("BERT", rate, 100) + run("change", rate, 100))
    found = {model: [run(model, joint, seed) for seed in (0, 1, 2)] for model in ("BERT", "change")}
    if max(found["change"]) < min(found["BERT"]):
        return "better"
    return "worse" if min(found["change"]) > max(found["BERT"]) else "cannot tell"

[one-seed] You compare one run with one run, or one seed three times. Some of the difference is the seeds': run three, and compare their ranges.
    seeds = (0, 1, 2) -> seeds = (0,)
[search-seed] One of your three runs is that of the search, which was chosen because it came out low. Take seeds that the search has not used.
    run(model, rate, 100) -> run(model, rate, 0)
    run(model, rate, 100) -> run(model, rate, 0) ; seeds = (0, 1, 2) -> seeds = (1, 0, 2)
You compare two runs with two. Twelve runs pay for three of each model.
    seeds = (0, 1, 2) -> seeds = (0, 1)
You try each rate with two seeds, and compare ranges of two runs. One run at each rate is enough for a search; then there are three for each model at its best rate.
    rate = min(rates, key=lambda rate: run(model, rate, 100)) -> tried = {rate: [run(model, rate, seed) for seed in (0, 1)] for rate in rates} ; found[model] = [run(model, rate, seed) for seed in seeds] -> found[model] = min(tried.values(), key=min)
    rate = min(rates, key=lambda rate: run(model, rate, 100)) -> tried = {rate: [run(model, rate, seed) for seed in (0, 1)] for rate in rates} ; found[model] = [run(model, rate, seed) for seed in seeds] -> found[model] = min(tried.values(), key=sum) || found[model] = min(tried.values(), key=max)
    rate = min(rates, key=lambda rate: run(model, rate, 100)) -> tried = {rate: [run(model, rate, f"{rate} {seed}") for seed in (0, 1)] for rate in rates} ; found[model] = [run(model, rate, seed) for seed in seeds] -> found[model] = min(tried.values(), key=min) || found[model] = min(tried.values(), key=sum)
You compare the runs in pairs, and ask that one model wins all three. Runs of the same seed are not a pair here: "better" needs the largest loss of the change to be below the smallest of BERT.
    if max(found["change"]) < min(found["BERT"]): -> if all(c < b for c, b in zip(found["change"], found["BERT"])): ; if min(found["change"]) > max(found["BERT"]): -> if all(c > b for c, b in zip(found["change"], found["BERT"])):
Ranges that touch have a point in common: then say "cannot tell".
    if max(found["change"]) < min(found["BERT"]): -> if max(found["change"]) <= min(found["BERT"]): ; if min(found["change"]) > max(found["BERT"]): -> if min(found["change"]) >= max(found["BERT"]):
You compare means, with standard deviations for a margin. Those of three runs are uncertain themselves, and a run that diverges has none: compare the ranges.
    if max(found["change"]) < min(found["BERT"]): -> if np.mean(found["change"]) < np.mean(found["BERT"]) - 2 * np.std(found["BERT"], ddof=1): ; if min(found["change"]) > max(found["BERT"]): -> if np.mean(found["change"]) > np.mean(found["BERT"]) + 2 * np.std(found["BERT"], ddof=1):
    if max(found["change"]) < min(found["BERT"]): -> if np.mean(found["change"]) + 2 * np.std(found["change"], ddof=1) < np.mean(found["BERT"]) - 2 * np.std(found["BERT"], ddof=1): ; if min(found["change"]) > max(found["BERT"]): -> if np.mean(found["change"]) - 2 * np.std(found["change"], ddof=1) > np.mean(found["BERT"]) + 2 * np.std(found["BERT"], ddof=1):
You leave out runs that diverge. Such a run counts, with a loss of infinity: it is part of the range.
    found[model] = [run(model, rate, seed) for seed in seeds] -> found[model] = [loss for seed in seeds if math.isfinite(loss := run(model, rate, seed))] or [math.inf]
You say "cannot tell" as soon as one run diverges. Such a run counts, with a loss of infinity.
    found[model] = [run(model, rate, seed) for seed in seeds] -> found[model] = [run(model, rate, seed) for seed in seeds] ; if max(found["change"]) < min(found["BERT"]): -> if math.inf not in found["change"] + found["BERT"] and max(found["change"]) < min(found["BERT"]): ; if min(found["change"]) > max(found["BERT"]): -> if math.inf not in found["change"] + found["BERT"] and min(found["change"]) > max(found["BERT"]):
[one-number] You compare one number of each model, the mean or the best of its runs. Where the ranges of three runs overlap, the difference can be the seeds': then say "cannot tell".
    if max(found["change"]) < min(found["BERT"]): -> if np.mean(found["change"]) < np.mean(found["BERT"]): ; if min(found["change"]) > max(found["BERT"]): -> if np.mean(found["change"]) > np.mean(found["BERT"]):
    if max(found["change"]) < min(found["BERT"]): -> if min(found["change"]) < min(found["BERT"]): ; if min(found["change"]) > max(found["BERT"]): -> if min(found["change"]) > min(found["BERT"]):
"better" and "worse" have changed places: run returns a loss, and lower is better.
    found = {}
    for model in ("BERT", "change"):
        rate = min(rates, key=lambda rate: run(model, rate, 100))
        found[model] = [run(model, rate, seed) for seed in (0, 1, 2)]
    if max(found["change"]) < min(found["BERT"]):
        return "worse"
    if min(found["change"]) > max(found["BERT"]):
        return "better"
    return "cannot tell"

You say "better" where the ranges overlap. It needs the *largest* loss of the change to be below the *smallest* of BERT.
    if max(found["change"]) < min(found["BERT"]): -> if min(found["change"]) < max(found["BERT"]): ; if min(found["change"]) > max(found["BERT"]): -> if max(found["change"]) > min(found["BERT"]):
You never say "cannot tell". Where the ranges overlap, three runs cannot decide.
    return "cannot tell" -> return "worse"
You say "cannot tell" every time. Where the ranges do not overlap, give a verdict.
    if max(found["change"]) < min(found["BERT"]): -> if False: ; if min(found["change"]) > max(found["BERT"]): -> if False:
A change can be worse, too.
    if min(found["change"]) > max(found["BERT"]): -> if False:
Each value that you return must be one of "better", "worse" and "cannot tell".
    return "cannot tell" -> return None
""",
)
def verdict(run, rates):
    seeds = (0, 1, 2)  #: seeds that the search does not use
    found = {}
    for model in ("BERT", "change"):  #: both models, one after the other
        rate = min(rates, key=lambda rate: run(model, rate, 100))  #: the model's own best rate
        found[model] = [run(model, rate, seed) for seed in seeds]  #: three losses at the model's own rate
    if max(found["change"]) < min(found["BERT"]):
        return "better"
    if min(found["change"]) > max(found["BERT"]):
        return "worse"
    return "cannot tell"
