"""Chapter `scaling`: what a BERT consists of, the best size for a budget, and laws fitted to runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise

# --- bert_parameters -------------------------------------------------------------------------------------


def _model_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "BERT-Base", 30522, 512, 12, 768, 3072
    yield "BERT-Large", 30522, 512, 24, 1024, 4096
    yield "a feed-forward layer that is not four times as wide", 100, 32, 2, 48, 100
    yield "no layer", 50, 8, 0, 12, 20
    yield "a tiny model", 7, 5, 1, 2, 3
    drawn = [int(x) for x in rng.integers(2, 60, 5)]
    yield "random sizes", *drawn


@exercise(
    difficulty=2,
    minutes=20,
    cases=_model_cases,
    hints="""
There are three parts: the embeddings with their LayerNorm, the layers, and the pooler.

The tables have V, P and 2 rows of d numbers. A linear layer from a to b features has a · b weights and b biases. A LayerNorm has a gain and a bias, 2 d numbers.

A layer has four linear layers from d to d (queries, keys, values, output), one from d to d_ff, one from d_ff to d, and two LayerNorms. The pooler is one linear layer from d to d.
""",
    mistakes="""
In the embeddings, 2 d numbers are missing. Did you count the two rows of the segment table, and the LayerNorm's gain and bias?
    (V + P + 2) * d + 2 * d -> (V + P + 2) * d
In all, d numbers are missing. The segment table has two rows, one for A and one for B, and the pooler has a bias. Is one of them left out?
    (V + P + 2) * d -> (V + P + 1) * d
The table of positions is missing.
    (V + P + 2) * d -> (V + 2) * d
The pooler is missing: d² weights and d biases.
    + d * (d + 1) ->
Each layer has 4 d numbers more. Did you count the four biases of the attention, and both LayerNorms?
    4 * d * (d + 1) -> 4 * d * d
The attention has four matrices: the output projection too.
    4 * d * (d + 1) -> 3 * d * (d + 1)
You leave out the biases of the feed-forward network: d_ff of them in its first layer, d in its second.
    d_ff * (d + 1) + d * (d_ff + 1) -> 2 * d * d_ff || d_ff * (d + 1) + d * d_ff || d_ff * d + d * (d_ff + 1)
The feed-forward network is d_ff wide, which need not be 4 d.
    d_ff * (d + 1) + d * (d_ff + 1) -> 8 * d * d + 5 * d
2 d numbers are missing in each layer. A LayerNorm has that many, a gain and a bias, and a layer has two of them; so have two of the four biases of attention.
    d_ff * (d + 1) + d * (d_ff + 1) + 4 * d -> d_ff * (d + 1) + d * (d_ff + 1) + 2 * d
That counts one layer, not all.
    return embeddings + layers * layer -> return embeddings + layer
The second bias of the feed-forward network has one number for each output, d and not d_ff.
    d * (d_ff + 1) -> d_ff * (d + 1)
""",
)
def bert_parameters(V, P, layers, d, d_ff):
    embeddings = (V + P + 2) * d + 2 * d  #: the parameters of the three tables and their LayerNorm
    layer = 4 * d * (d + 1) + d_ff * (d + 1) + d * (d_ff + 1) + 4 * d  #: the parameters of a single layer
    return embeddings + layers * layer + d * (d + 1)


# --- best_size -------------------------------------------------------------------------------------------


def _budget_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "Hoffmann's constants", 5.76e23, 406.4, 0.34, 410.7, 0.28
    yield "the same runs, fitted again", 5.76e23, 482.01, 0.3478, 2085.43, 0.3658
    yield "equal exponents", 6e12, 3.0, 0.5, 3.0, 0.5
    yield "equal exponents, dearer size", 6e12, 12.0, 0.5, 3.0, 0.5
    yield "a small budget", 6e6, 5.0, 0.4, 20.0, 0.7
    yield (
        "a random law",
        float(10 ** rng.uniform(10, 20)),
        *rng.uniform([1, 0.2, 1, 0.2], [100, 0.9, 100, 0.9]).tolist(),
    )


@exercise(
    difficulty=3,
    minutes=30,
    cases=_budget_cases,
    hints="""
Only N is free: write D as C / (6 N), and the loss above the floor as a function of N alone.

The derivative with respect to N is −α A N^(−α−1) + β B (6/C)^β N^(β−1). Set it to 0.

N^(α+β) = (α A / (β B)) · (C/6)^β. Take the root, then D = C / (6 N).
""",
    mistakes="""
The budget is 6 N D FLOPs, so D is C / (6 N).
    C / 6 -> C
Training costs 6 N D FLOPs. With 2 N D you count the forward pass alone.
    C / 6 -> C / 2
At the minimum the two *slopes* cancel, not the two terms: the exponents come down as factors α and β.
    alpha * A / (beta * B) -> A / B
The ratio is upside down: a dearer size (a larger A) asks for a larger model.
    alpha * A / (beta * B) -> beta * B / (alpha * A)
The factors α and β belong to A and B, the other way round.
    alpha * A / (beta * B) -> beta * A / (alpha * B)
The exponent of C/6 is β over the sum: where data help fast (a large β), a budget asks for a larger model. D before N, with the ratio upside down, gives the same.
    (C / 6) ** (beta / (alpha + beta)) -> (C / 6) ** (alpha / (alpha + beta))
You spend the budget on as many tokens as parameters. The law's A, B, α and β determine how many of each.
    N = (C / 6) ** 0.5
    return N, N
Twenty tokens for each parameter is the answer of one law for its own A, B, α and β. Here they are given: find the minimum.
    N = (C / 120) ** 0.5
    return N, 20 * N
That sets N to the square root of the budget, which holds for equal exponents only.
    (C / 6) ** (beta / (alpha + beta)) -> (C / 6) ** 0.5
The root of the ratio is missing: it is N^(α+β), not N.
    (alpha * A / (beta * B)) ** (1 / (alpha + beta)) -> (alpha * A / (beta * B))
Return N first, then D.
    return N, C / 6 / N -> return C / 6 / N, N
D is what the budget leaves: C / (6 N).
    return N, C / 6 / N -> return N, C / N
D depends on N: D = C / (6 N). So the slope of the second term has a factor from the inner derivative, D / N.
    N = (alpha * A / (beta * B)) ** (1 / (alpha + beta)) * (C / 6) ** (beta / (alpha + beta)) -> N = (alpha * A / (beta * B) * (C / 6) ** (beta + 1)) ** (1 / (alpha + beta + 2))
""",
)
def best_size(C, A, alpha, B, beta):
    N = (alpha * A / (beta * B)) ** (1 / (alpha + beta)) * (C / 6) ** (beta / (alpha + beta))  #: the best N
    return N, C / 6 / N


# --- spend_budget ----------------------------------------------------------------------------------------


def _spend_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def law(A: float, alpha: float, B: float, beta: float) -> Any:
        return lambda N, D: 0.47 + A / N**alpha + B / D**beta

    sizes = [6560, 25408, 99968, 396544, 1579520]
    page = law(60.0, 0.5, 30000.0, 0.75)
    yield "a small budget", 1e10, 1e12, sizes, page
    yield "a large budget", 1e14, 1e12, sizes, page
    yield "little text", 1e14, 3e5, sizes, page
    yield "size hardly helps", 1e12, 1e9, sizes, law(2.0, 1.0, 30000.0, 0.7)
    yield "the sizes in no order", 1e12, 1e12, [99968, 6560, 1579520, 25408], page
    yield "little text, and size does not help", 1e14, 1e6, sizes, law(0.0, 0.5, 30000.0, 0.75)
    hardly = lambda N, D: N**-0.01 + 1 / D  # noqa: E731
    yield "size hardly helps, and a small one reads all the text", 6e6, 1000, [10, 100_000], hardly
    drawn = sorted(int(x) for x in 10 ** rng.uniform(3, 7, 6))
    yield "random sizes", float(10 ** rng.uniform(10, 13)), float(10 ** rng.uniform(6, 8)), drawn, page


@exercise(
    difficulty=2,
    minutes=20,
    cases=_spend_cases,
    hints="""
For one size, how many tokens can the model read? As many as the budget pays for, and no more than there are.

Ask the law for the loss of each size with its own number of tokens. Take the lowest.

Where two sizes have the same loss, take the one that spends fewer FLOPs: min with the key (loss, 6 N D).
""",
    mistakes="""
There are only `tokens` tokens of text. A size that the budget would let read more still reads no more.
    min(C / (6 * N), tokens) -> C / (6 * N)
You look only at sizes that can spend the whole budget. A smaller one that reads all the text may still be the best.
    return min(options)[2:] -> return min([one for one in options if 6 * one[2] * tokens >= C] or options)[2:]
You give every size all the text, but the budget pays for 6 N D FLOPs.
    min(C / (6 * N), tokens) -> tokens
A token costs 6 N FLOPs: forward 2 N, backward 4 N.
    C / (6 * N) -> C / N || C / (2 * N)
That is the largest size. More parameters leave fewer tokens.
    return min(options)[2:] -> return max(options, key=lambda one: one[2])[2:]
That is the size with the highest loss.
    return min(options)[2:] -> return max(options)[2:]
Where two sizes have the same loss, take the one that costs less.
    options = [(law(N, D), 6 * N * D, N, D) -> options = [(law(N, D), -6 * N * D, N, D)
That is the cheapest choice, not the one with the lowest loss.
    options = [(law(N, D), 6 * N * D, N, D) -> options = [(6 * N * D, law(N, D), N, D)
The tokens that you return are those that the budget would pay for. There are only `tokens` of them.
    return min(options)[2:] -> return min(options)[2], C / (6 * min(options)[2])
""",
)
def spend_budget(C, tokens, sizes, law):
    reads = [(N, min(C / (6 * N), tokens)) for N in sizes]  #: each size with the tokens it can read
    options = [(law(N, D), 6 * N * D, N, D) for N, D in reads]  #: each size's loss and FLOPs, then N and D
    return min(options)[2:]


# --- forecast_loss ---------------------------------------------------------------------------------------


def _forecast_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def runs(count: int, floor: float, noise: float, larger: float) -> tuple[Any, ...]:
        N = 6000.0 * 4.0 ** np.arange(count)
        excess = 60 * N**-0.5 * np.exp(noise * rng.standard_normal(count))
        return N, floor + excess, floor, larger

    yield "an exact law", *runs(5, 0.47, 0.0, 8.5e7)
    yield "runs with noise", *runs(5, 0.47, 0.1, 8.5e7)
    yield "a high floor", *runs(4, 3.0, 0.05, 1e7)
    yield "no floor", *runs(4, 0.0, 0.05, 1e7)
    yield "a smaller model than any", *runs(5, 0.47, 0.1, 500.0)
    yield "two runs", *runs(2, 0.47, 0.1, 1e6)


@exercise(
    difficulty=2,
    minutes=20,
    cases=_forecast_cases,
    hints="""
Try an exact law: losses that are 0.47 + 60 / √N. What does the function forecast at 10⁸ parameters, and what is right?

A power law is a straight line of logarithms. Of which quantity: of the loss, or of what is above the floor?

Use one base of logarithms, fit log(loss − floor) against log N, and add the floor at the end.
""",
    mistakes="""
The function as it was given has two faults, and yours still does what it does. Try it on an exact law.
    slope, height = np.polyfit(np.log10(N), np.log(loss), 1)
    return np.exp(height + slope * np.log(larger))

You fit the loss itself. The power law is in what is above the floor: subtract the floor before the logarithm.
    np.log(loss - floor) -> np.log(loss) ; floor + np.exp -> np.exp
    np.log(loss - floor) -> np.log(loss)
The floor is not added to the forecast.
    floor + np.exp -> np.exp
The bases are mixed: one logarithm is to base 10, and the other is natural.
    np.polyfit(np.log(N) -> np.polyfit(np.log10(N) || np.polyfit(np.log2(N)
    np.log(larger) -> np.log10(larger)
You fit a straight line in N, not in log N.
    np.polyfit(np.log(N) -> np.polyfit(N ; np.log(larger) -> larger
You fit a straight line of the losses, not of their logarithms.
    np.log(loss - floor) -> loss - floor ; np.exp(height + slope * np.log(larger)) -> height + slope * np.log(larger)
The fit is the other way round: log N against the loss. The errors are in the losses.
    np.polyfit(np.log(N), np.log(loss - floor), 1) -> (lambda a, b: (1 / a, -b / a))(*np.polyfit(np.log(loss - floor), np.log(N), 1))
Your logarithms are to base 10, and exp goes back from natural ones. Take one base for all.
    np.log(N) -> np.log10(N) ; np.log(loss - floor) -> np.log10(loss - floor) ; np.log(larger) -> np.log10(larger)
You subtract the floor a second time. The forecast is the floor and what is above it.
    floor + np.exp -> -floor + np.exp
""",
)
def forecast_loss(N, loss, floor, larger):
    slope, height = np.polyfit(np.log(N), np.log(loss - floor), 1)  #: the fitted line's slope and height
    return floor + np.exp(height + slope * np.log(larger))


# --- exponent_interval -----------------------------------------------------------------------------------


def _interval_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def runs(sizes: int, seeds: int, noise: float, draws: int) -> tuple[Any, ...]:
        N = np.repeat(6000.0 * 4.0 ** np.arange(sizes), seeds)
        above = 60 * N**-0.5 * np.exp(noise * rng.standard_normal(len(N)))
        drawn = rng.integers(0, len(N), (draws, len(N)))
        drawn[:, 0], drawn[:, -1] = 0, len(N) - 1  # two sizes at least: a line needs them
        return N, above, drawn

    yield "five sizes, three seeds", *runs(5, 3, 0.05, 200)
    yield "much noise", *runs(5, 3, 0.5, 200)
    yield "no noise", *runs(4, 2, 0.0, 50)
    yield "few draws", *runs(5, 1, 0.2, 7)
    yield "a random record", *runs(int(rng.integers(3, 7)), int(rng.integers(1, 4)), 0.2, 100)


@exercise(
    difficulty=2,
    minutes=25,
    cases=_interval_cases,
    hints="""
A row of `drawn` is one draw of the runs: N[row] and above[row] are its runs, some of them twice.

Fit a straight line of log(above) against log N to each draw. The exponent is minus the slope.

np.percentile(exponents, [5, 95]) gives both ends of the middle 90 %.
""",
    mistakes="""
The exponent is minus the slope: a law that falls has a positive exponent.
    -np.polyfit( -> np.polyfit(
The middle 90 % lies between the percentiles 5 and 95.
    [5, 95] -> [10, 90] || [2.5, 97.5] || [0, 100] || [25, 75]
np.percentile counts to 100, not to 1.
    [5, 95] -> [0.05, 0.95]
The two must be drawn together: a run keeps its size and its loss.
    np.log(above[row]) -> np.log(above)
    np.log(N[row]) -> np.log(N)
Draw runs, not their order: each row of `drawn` holds the indices of the runs.
    drawn] -> np.sort(drawn, axis=1)] ; N[row] -> N[np.arange(len(row))] ; above[row] -> above[np.arange(len(row))]
You return the mean and the spread of the exponents. Return the two ends of the interval.
    low, high = np.percentile(exponents, [5, 95]) -> low, high = np.mean(exponents), np.std(exponents)
A mean plus and minus 1.645 standard deviations is the interval of a normal distribution. Take the percentiles of the draws.
    low, high = np.percentile(exponents, [5, 95]) -> low, high = np.mean(exponents) + np.std(exponents) * np.array([-1.645, 1.645])
You fit the values themselves. A power law is a straight line of logarithms.
    np.polyfit(np.log(N[row]), np.log(above[row]), 1) -> np.polyfit(N[row], above[row], 1)
That is the line's other number, its height. The exponent is the slope.
    np.log(above[row]), 1)[0] -> np.log(above[row]), 1)[1]
You count a run once, however often it was drawn. In a bootstrap it counts as often as it comes.
    for row in drawn] -> for row in map(np.unique, drawn)]
""",
)
def exponent_interval(N, above, drawn):
    exponents = [-np.polyfit(np.log(N[row]), np.log(above[row]), 1)[0] for row in drawn]  #: minus the slopes
    low, high = np.percentile(exponents, [5, 95])  #: the percentiles 5 and 95 of the exponents
    return low, high
