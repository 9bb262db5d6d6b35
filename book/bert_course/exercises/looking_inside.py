"""Chapter `looking_inside`: what heads look at, and what that says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.common.softmax import softmax

Scorer = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], tuple[str, float]]


# --- arcs_found ------------------------------------------------------------------------------------------


def _arcs_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(S: int, h: int, L: int, n: int, dtype: type = np.float64) -> tuple[np.ndarray, ...]:
        A: np.ndarray = softmax(2 * rng.standard_normal((S, h, L, L))).astype(dtype)
        words = np.ones((S, L), bool)
        words[:, [0, -1]] = False
        for row in words:
            row[rng.integers(2, L - 2)] = False
        arcs = []
        for _ in range(n):
            story = int(rng.integers(S))
            start, end = rng.choice(np.flatnonzero(words[story]), 2, replace=False)
            arcs.append((story, int(start), int(end)))
            A[story, : (h + 1) // 2, start, end] += rng.random() * 0.6  # half of the heads find some
        A[:, :, :, -1] += 0.35  # and [SEP] gets much
        A /= A.sum(axis=-1, keepdims=True)
        return A, words, np.array(arcs)

    yield "4 stories, 3 heads, 30 arcs", *draw(4, 3, 9, 30)
    yield "one head", *draw(3, 1, 7, 12)
    yield "S = h = 6", *draw(6, 6, 6, 25)
    yield "float32", *draw(5, 4, 8, 40, np.float32)
    yield "one arc", *draw(2, 5, 6, 1)
    A, words, arcs = draw(5, 4, 9, 30)
    A[:, :, np.arange(9), np.arange(9)] += 0.8  # words that look at themselves
    yield "heads that look at their own word", A / A.sum(axis=-1, keepdims=True), words, arcs


@exercise(
    difficulty=1,
    minutes=15,
    cases=_arcs_cases,
    hints="""
Take the rows of weights that the arcs ask about, one for each arc and each head. With story, start, end = arcs.T, A[story, :, start] has them all, (n, h, L).

Before you take the largest weight of a row, exclude the positions that do not count: tokens that are not words, and the word that asks. A weight is at least 0, so -1 is below every weight.

Compare the position of the largest weight with the arc's end, and take the mean over the arcs, head by head.
""",
    mistakes="""
You read columns. A column shows which tokens look at the word; row i shows what word i looks at.
    A[story, :, start] -> A[story, :, :, start]
You go along the arcs backwards. Each arc goes from the word that asks to the word that should get the most weight.
    story, start, end = arcs.T -> story, end, start = arcs.T
In your answer a word may look at itself. Leave the word that asks out of its own row.
    may[np.arange(len(arcs)), start] = False ->
In your answer, tokens that are not words may win. Only words count, so a head that rests on [SEP] is judged by where the rest of its weight goes.
    may = words[story] -> may = np.ones_like(words[story])
You exclude neither the word that asks nor the tokens that are not words. Take both away before you look for the largest weight.
    np.where(may[:, None], rows, -1) -> rows
That is the mean weight on the arcs. An arc is found if its end gets the most weight, so it counts as 0 or 1.
    (most == end[:, None]).mean(axis=0) -> rows[np.arange(len(arcs)), :, end].mean(axis=0)
You count an arc as found if its weight is above one half. It is found if no other word gets more.
    (most == end[:, None]).mean(axis=0) -> (rows[np.arange(len(arcs)), :, end] > 0.5).mean(axis=0)
You return one number for all heads together. Take the mean over the arcs only.
    (most == end[:, None]).mean(axis=0) -> (most == end[:, None]).mean()
You take the mean over the heads, so you return one number for each arc. Take the mean over the arcs instead.
    (most == end[:, None]).mean(axis=0) -> (most == end[:, None]).mean(axis=1)
You return how many arcs are found. Divide by the number of arcs.
    (most == end[:, None]).mean(axis=0) -> (most == end[:, None]).sum(axis=0)
You look for the smallest weight.
    np.where(may[:, None], rows, -1).argmax(axis=-1) -> np.where(may[:, None], rows, 9).argmin(axis=-1)
You read every arc in the first story. The first column of arcs gives the story of each arc.
    rows = A[story -> rows = A[0 * story
""",
)
def arcs_found(A, words, arcs):
    story, start, end = arcs.T  #: each arc's story, the word that asks, its end
    rows = A[story, :, start]  #: the weights from the word that asks, (n, h, L)
    may = words[story]  #: the words of each arc's story, a copy, (n, L)
    may[np.arange(len(arcs)), start] = False
    most = np.where(may[:, None], rows, -1).argmax(axis=-1)  #: the place of the heaviest other word, (n, h)
    return (most == end[:, None]).mean(axis=0)  # (h,)


# --- other_weights ---------------------------------------------------------------------------------------


def _weights_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for name, L in (
        ("5 tokens, values of 3", 5),
        ("3 tokens, values of 1", 3),
        ("12 tokens, values of 10", 12),
    ):
        yield name, softmax(rng.standard_normal(L)), rng.standard_normal((L, L - 2))
    yield "an even row", np.full(8, 1 / 8), rng.standard_normal((8, 6))
    a = softmax(np.array([4.0, 0, 0, 0, 0, 0]))
    yield "a row that looks at the first token", a, rng.standard_normal((6, 4))


@exercise(
    difficulty=3,
    minutes=30,
    cases=_weights_cases,
    rtol=1e-6,
    atol=1e-8,
    hints="""
Write b = a + t z with a number t. Which two conditions on z follow from bV = aV and from the sum of b?

The conditions are L - 1 linear equations for the L entries of z: zV = 0 and the sum of z is 0. So they fix z, except for its length and its sign. The last row of np.linalg.svd(C)[2] solves C z = 0, if C has one row fewer than columns.

Choose the sign so that z[0] is below 0. Only entries that fall can reach 0, and entry i reaches it at t = a[i] / -z[i]. The first to get there stops you.
""",
    mistakes="""
Your weights do not sum to 1. The sum is one more equation: the entries of z sum to 0.
    np.vstack([V.T, np.ones(len(a))]) -> np.vstack([V.T, np.zeros(len(a))])
    np.vstack([V.T, np.ones(len(a))]) -> V.T
You go the other way along the line, where the first token's weight grows. Choose the sign so that z[0] is below 0.
    * -np.sign(z[0]) -> * np.sign(z[0])
You leave the sign of z to chance. Choose it so that z[0] is below 0.
    * -np.sign(z[0]) ->
You go too far, so some weights are below 0. Stop at the first entry that reaches 0.
    .min() -> .max()
You go the whole length of z. The length of z means nothing, so compute how far you can go.
    a + step * z -> a + z
You stop too early. Only entries that fall can reach 0, so leave out those that grow.
    (a[falls] / -z[falls]).min() -> (a / np.abs(z)).min()
You stop where the first token's weight is 0, but another weight may be below 0 there. The first entry that reaches 0 stops you.
    (a[falls] / -z[falls]).min() -> a[0] / -z[0]
You stop halfway. Go on until a weight is 0.
    a + step * z -> a + 0.5 * step * z
You return the direction z. Return the weights, a + t z.
    a + step * z -> z
You return the weights that came in. Find others with the same output.
    a + step * z -> a
Your weights have the same output, but you stop where their squares have the smallest sum. Go on until a weight is 0.
    a + step * z -> a - (a @ z) * z
""",
)
def other_weights(a, V):
    C = np.vstack([V.T, np.ones(len(a))])  #: the equations for z, one a row, (L - 1, L)
    z = np.linalg.svd(C)[2][-1]  #: the line's direction, with C z = 0, (L,)
    z = z * -np.sign(z[0])  #: the direction in which the first weight falls, (L,)
    falls = z < 0  #: the tokens whose weights fall along the line, (L,)
    step = (a[falls] / -z[falls]).min()  #: the way along z to the first weight of 0
    return a + step * z


# --- last_same_word --------------------------------------------------------------------------------------


def _run(X: np.ndarray, W_Q: np.ndarray, W_K: np.ndarray) -> np.ndarray:
    return softmax(X @ W_Q @ (X @ W_K).T / math.sqrt(W_Q.shape[1]))


def _same_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "[CLS] and 5 words, one of them twice", np.array([0, 3, 1, 2, 1, 4]), 5
    yield "a word that comes four times", np.array([0, 1, 1, 2, 1, 3, 1]), 4
    yield "no word twice", np.array([0, 2, 1, 3]), 4
    yield "12 tokens of 4 words", np.array([0, *rng.integers(1, 4, 11)]), 4
    yield "20 tokens of 9 words", np.array([0, *rng.integers(1, 9, 19)]), 9


@exercise(
    difficulty=2,
    minutes=25,
    cases=_same_cases,
    given="run",
    hints="""
Let the keys be X itself, so W_K is the identity. Then W_Q says what a token asks for, first about words and then about positions. A large multiple of the identity for the words asks for the same word.

For the positions, take a matrix with a row for each asking token: very low where j is not before i, and a little higher for each later j before i. That chooses the last of several.

Give [CLS], at position 0, a score between those of other words and those of the same word. Then it wins only where no same word is before.
""",
    mistakes="""
Your head finds the first occurrence of the word. Among several, the last one before the token should win, so later positions need higher scores.
    100.0 * place -> -100.0 * place
Your head shares its weight among all earlier occurrences. Later positions need higher scores, so that the last one wins.
    100.0 * place -> 0.0 * place
Your head looks at its own word. A token is always the same word as itself, so its own position must be forbidden.
    place < place[:, None] -> place <= place[:, None]
Your head looks at later occurrences. Only positions before the token count.
    place < place[:, None] -> place > place[:, None]
Where the word is new, your head has no place to rest, so the weight goes to another word. Give [CLS] a score between other words and the same word.
    order[:, 0] = 1e4 ->
Your head always looks at [CLS]. Its score must lie below that of the same word, for which W_Q needs a part of its own.
    order[:, 0] = 1e4 -> order[:, 0] = 1e6
    1e5 * np.eye(n_words) -> np.zeros((n_words, n_words))
Your head looks at the right tokens, but too softly, so a part of the weight still goes to others. Make the scores larger.
    run(X, W_Q, W_K) -> run(X, W_Q / 3e4, W_K) || run(X, W_Q / 1e4, W_K)
The queries and the keys are exchanged.
    _run(X, W_Q, W_K) -> _run(X, W_K, W_Q)
""",
)
def last_same_word(words, n_words):
    L = len(words)  #: the number of tokens
    X = np.hstack([np.eye(n_words)[words], np.eye(L)])  #: one-hot words, then positions, (L, n_words + L)
    place = np.arange(L)  #: every position, from 0 on
    order = np.where(place < place[:, None], 100.0 * place, -1e6)  #: earlier places, later is better, (L, L)
    order[:, 0] = 1e4  #: the score of [CLS], between other words and the same
    W_Q = np.zeros((n_words + L, n_words + L))  #: a matrix that asks for nothing yet
    W_Q[:n_words, :n_words] = 1e5 * np.eye(n_words)  #: the block that asks for the same word
    W_Q[n_words:, n_words:] = order  #: the block that asks for positions
    W_K = np.eye(n_words + L)  #: the identity, so that the keys are X
    return _run(X, W_Q, W_K).round(1)


# --- fault_of_a_report ------------------------------------------------------------------------------------


def _scorer(fault: str) -> Scorer:
    """A report on the best head, right or with a fault. A (S, N, h, L, L)."""

    def hits(A: np.ndarray, words: np.ndarray, arcs: np.ndarray) -> np.ndarray:
        story, start, end = arcs.T
        rows = A[story, :, :, :, start] if fault == "columns" else A[story, :, :, start]  # (n, N, h, L)
        may = np.ones_like(words[story]) if fault == "special" else words[story]
        if fault != "itself":
            may[np.arange(len(arcs)), start] = False
        return np.where(may[:, None, None], rows, -1).argmax(axis=-1) == end[:, None, None]

    def scorer(A: np.ndarray, words: np.ndarray, choose: np.ndarray, score: np.ndarray) -> tuple[str, float]:
        first = hits(A, words, score if fault == "same set" else choose).mean(axis=0)  # (N, h)
        layer, head = np.unravel_index(first.argmax(), first.shape)
        found = float(hits(A, words, score)[:, layer, head].mean())
        from_one = fault != "names"
        return f"{layer + from_one}-{head + from_one}", found

    return scorer


def _fault_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    del rng
    yield "a sound report", _scorer("none")
    for fault in ("names", "columns", "itself", "special", "same set"):
        yield f"a report with the fault {fault!r}", _scorer(fault)


def _weights_of(L: int, *heads: dict[tuple[int, int], float]) -> np.ndarray:
    """One story, one layer: the even weights of so many heads, but for these."""
    A = np.full((1, 1, len(heads), L, L), 0.01)
    for number, large in enumerate(heads):
        for (i, j), weight in large.items():
            A[0, 0, number, i, j] = weight
    return A / A.sum(axis=-1, keepdims=True)


@exercise(
    difficulty=3,
    minutes=30,
    cases=_fault_cases,
    hints="""
Invent weights of one story with five tokens, [CLS], three words and [SEP], for which you know the right report. For each fault, choose them so that the faulty report differs.

For "columns", "itself" and "special" one head is enough: give the arc's end the second largest weight in the row, and the largest to what must not count. For the columns, let the arc be right in the column and wrong in the row.

For "same set" you need two heads: one that finds the arcs to choose by, and another that finds the arcs to score by. A sound report names the first one.
""",
    mistakes="""
[names-unseen] A report with the fault "names" gets past you. The first head of the first layer is 1-1.
    if name == "0-0": -> if False:
A report that reads columns gets past you. Try weights that are right in the column and wrong in the row.
    if found(_weights_of(5, {(1, 3): 0.9, (2, 1): 0.9})): -> if False:
A report in which a word may look at itself gets past you. Give the word that asks the largest weight in its own row.
    if not found(_weights_of(5, {(1, 1): 0.9, (1, 2): 0.5})): -> if False:
A report in which [CLS] or [SEP] may win gets past you. Give [SEP] the largest weight in the row.
    if not found(_weights_of(5, {(1, 4): 0.9, (1, 2): 0.5})): -> if False:
A report that chooses its head on the arcs that it scores gets past you. Try two heads, each right on one of the two sets.
    if scorer(both, words, arc, other)[1] == 1: -> if False:
You test the choice with the two sets exchanged, so a sound report fails your test.
    if scorer(both, words, arc, other)[1] == 1: -> if scorer(both, words, arc, arc)[1] == 1:
If no test finds a fault, return "none".
    return "none" -> return None
""",
)
def fault_of_a_report(scorer):
    words = np.array([[False, True, True, True, False]])  #: three words between [CLS] and [SEP]
    arc, other = np.array([[0, 1, 2]]), np.array([[0, 3, 1]])  #: two sets of one arc each

    def found(A):
        return scorer(A, words, arc, arc)[1] == 1  #: whether the report says that the arc is found

    name, _ = scorer(_weights_of(5, {(1, 2): 0.9}), words, arc, arc)  #: a report on one head alone
    if name == "0-0":
        return "names"
    if found(_weights_of(5, {(1, 3): 0.9, (2, 1): 0.9})):
        return "columns"
    if not found(_weights_of(5, {(1, 1): 0.9, (1, 2): 0.5})):
        return "itself"
    if not found(_weights_of(5, {(1, 4): 0.9, (1, 2): 0.5})):
        return "special"
    both = _weights_of(5, {(1, 2): 0.9, (3, 2): 0.9}, {(1, 3): 0.9, (3, 1): 0.9})  #: one head for each set
    if scorer(both, words, arc, other)[1] == 1:
        return "same set"
    return "none"


# --- flattery --------------------------------------------------------------------------------------------


def _flattery_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    del rng
    yield "16 heads, 100 arcs", 100, 0.1, 16
    yield "144 heads, 100 arcs", 100, 0.1, 144
    yield "one head", 40, 0.3, 1
    yield "one arc", 1, 0.25, 5
    yield "16 heads, 1,000 arcs", 1000, 0.1, 16
    yield "heads that find half", 30, 0.5, 7
    yield "16 heads that find most of 400 arcs", 400, 0.9, 16


@exercise(
    difficulty=2,
    minutes=20,
    cases=_flattery_cases,
    rtol=1e-7,
    atol=1e-9,
    hints="""
How many of n arcs one head finds has a binomial distribution: k arcs with the probability C(n, k) p^k (1 - p)^(n - k). Which k is the *best* of h heads likely to have?

The best head finds at most k arcs if all heads do. The heads are independent, so this has the probability F(k)^h, where F(k) is the probability that one head finds at most k.

The probability that the best finds exactly k is F(k)^h - F(k - 1)^h. From these probabilities, compute the expected number of arcs and divide it by n. The answer is how far that share is above p.
""",
    mistakes="""
You return the expected share of the best head. By how much is it above p?
    expected / n - p -> expected / n
You compare a number of arcs with a share. Divide by n first.
    expected / n - p -> expected - p || expected - n * p
That is the worst of h heads. All h heads find at most k arcs with probability F(k)^h.
    at_most = below**h -> at_most = 1 - (1 - below) ** h
You multiply by h where you need a power. The heads are independent, so their probabilities multiply.
    below**h -> np.minimum(1, h * below)
You take the power of the probability of exactly k. Add up first: F(k) is the probability of at most k.
    below**h -> np.cumsum(chance**h)
Your k counts from 1. Start at 0, because a head may find no arc at all.
    (k * np.diff -> ((k + 1) * np.diff
You leave out the binomial coefficient, the number of ways in which k of n arcs can be found.
    math.comb(n, int(i)) * ->
You treat the shares as normally distributed, with the largest near √(2 log h) standard deviations above the mean. That holds for very many heads; the binomial distribution is exact.
    return math.sqrt(2 * math.log(h)) * math.sqrt(p * (1 - p) / n)
Your distribution has n - 1 arcs.
    chance = -> n = n - 1; k = np.arange(n + 1); chance =
Your sum of 1 - F(k)^h begins at k = 1. The mean of a count is the sum over all k from 0 on.
    (k * np.diff(at_most, prepend=0)).sum() -> (1 - at_most[1:]).sum()
That is the formula for a continuous distribution, h f F^(h - 1). Here two heads may well find equally many arcs: take differences of F^h.
    (k * np.diff(at_most, prepend=0)).sum() -> (k * h * chance * below ** (h - 1)).sum()
That is the median of the best. By how much is its mean above p?
    (k * np.diff(at_most, prepend=0)).sum() -> float(k[np.searchsorted(at_most, 0.5)])
You start from (1 - p)^n and get each further probability from the last one. For many arcs and a large p, (1 - p)^n is too small for a float: it becomes 0, and so do all the others. Compute each probability by itself.
    chance = np.array([math.comb(n, int(i)) * p**i * (1 - p) ** (n - i) for i in k]) -> chance = np.cumprod([(1 - p) ** n, *((n - k[:-1]) / k[1:] * p / (1 - p))])
    chance = np.array([math.comb(n, int(i)) * p**i * (1 - p) ** (n - i) for i in k]) -> chance = np.cumprod([(1 - p) ** n, *((n - k[:-1]) / k[1:] * p / (1 - p))]) ; (k * np.diff(at_most, prepend=0)).sum() -> (1 - at_most[:-1]).sum()
You take the best of h - 1 heads.
    below**h -> below ** (h - 1)
You divide by n + 1. A share is of the n arcs.
    expected / n - p -> expected / (n + 1) - p
""",
)
def flattery(n, p, h):
    k = np.arange(n + 1)  #: the numbers of arcs, from 0 to n
    chance = np.array([math.comb(n, int(i)) * p**i * (1 - p) ** (n - i) for i in k])  #: the chance of each k
    below = np.cumsum(chance)  #: the probability F(k) that one head finds at most k
    at_most = below**h  #: the probability that all h heads find at most k
    expected = (k * np.diff(at_most, prepend=0)).sum()  #: the expected number of arcs the best head finds
    return expected / n - p
