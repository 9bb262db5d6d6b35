"""Chapter `attention_decoder`: a decoder that looks back at the source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.common.softmax import softmax

LookBack = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
FAULTS = ("none", "axis", "padding", "previous", "order", "embedding")


# --- look_at_source ---------------------------------------------------------------------------------------


def _look_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(
        score: str, S: int, n: int, padded: int, dtype: type = np.float64, size: float = 1.0
    ) -> tuple[Any, ...]:
        h, H = rng.standard_normal(n), rng.standard_normal((S, n))
        W_a, U_a = rng.standard_normal((2, n, n))
        v = rng.standard_normal(n)
        words = np.arange(S) < S - padded
        numbers = (size * h, size * H, W_a, U_a, v)
        h, H, W_a, U_a, v = (x.astype(dtype) for x in numbers)
        return score, h, H, words, W_a, U_a, v

    for score in ("dot", "general", "additive"):
        yield f"{score}, 5 words, no padding", *draw(score, 5, 3, 0)
        yield f"{score}, 7 places, 3 of them padding", *draw(score, 7, 4, 3)
        yield f"{score}, 4 places of 4 numbers, one of them padding", *draw(score, 4, 4, 1)
    yield "dot, one word", *draw("dot", 1, 4, 0)
    yield "dot, one word and two of padding", *draw("dot", 3, 5, 2)
    yield "general in float32", *draw("general", 6, 8, 2, np.float32)
    score, h, H, *others = draw("dot", 6, 6, 2, np.float64, 30.0)
    yield "dot, scores in the thousands", score, np.abs(h), np.abs(H), *others
    yield "dot, scores in the thousands below 0", score, np.abs(h), -4 * np.abs(H), *others
    score, h, H, words, *others = draw("dot", 5, 4, 2, np.float64, 20.0)
    h = np.abs(h) + 20
    H[~words] = 2 * h
    yield "padding with by far the largest score", score, h, H, words, *others


@exercise(
    difficulty=1,
    minutes=15,
    cases=_look_cases,
    hints="""
Write one line for each of the three scores. Each line gives a vector (S,), with a number for each position of the source.

With states as rows, general is h W_a H^T. Additive applies tanh to one vector for each position, (S, n), and multiplies by v.

Padding gets no weight, so set its scores to minus infinity before softmax. Subtract the largest score of the words from all scores, so that no exponential overflows.
""",
    mistakes="""
Padding gets weight. Give it a score of minus infinity before softmax.
    np.where(words, scores, -np.inf) -> scores
You hide the words and look at the padding. words is True for a word.
    np.where(words, scores, -np.inf) -> np.where(words, -np.inf, scores)
Padding has a finite score, and real scores can be below it. Minus infinity is below all of them.
    np.where(words, scores, -np.inf) -> np.where(words, scores, -999.0) || np.where(words, scores, -100.0)
Padding has a score of 0. A score of 0 still gets weight, because e to the power of 0 is 1.
    np.where(words, scores, -np.inf) -> np.where(words, scores, 0.0)
You remove the padding after softmax, so the weights of the words no longer sum to 1.
    np.where(words, scores, -np.inf) -> scores ; return a, a @ H -> a = a * words; return a, a @ H
In the general score, you multiply by the transpose of W_a. The score is h^T W_a h_s.
    h @ W_a @ H.T -> H @ W_a @ h
Your general score has no W_a, so it is the dot product.
    h @ W_a @ H.T -> H @ h
Your additive score has no tanh. Without it, the decoder's state adds the same number to all scores, and softmax ignores it.
    np.tanh(h @ W_a.T + H @ U_a.T) -> (h @ W_a.T + H @ U_a.T)
In the additive score, W_a belongs to the decoder's state and U_a to the encoder's. In your score they are swapped.
    h @ W_a.T + H @ U_a.T -> h @ U_a.T + H @ W_a.T
In the additive score, your matrices are transposed. With states as rows, W_a h is h @ W_a.T.
    h @ W_a.T + H @ U_a.T -> h @ W_a + H @ U_a
Your additive score applies tanh after v. Apply tanh to the vector first. Then v makes one number of it.
    np.tanh(h @ W_a.T + H @ U_a.T) @ v -> np.tanh((h @ W_a.T + H @ U_a.T) @ v)
[scaled] You divide the scores by the root of the states' length. Luong's scores have no such factor, although chapter `one_head`'s have it.
    e = np.exp( -> scores = scores / np.sqrt(len(h)); e = np.exp(
You return only the context. Return the weights and the context.
    return a, a @ H -> return a @ H
You return the scores instead of the weights.
    return a, a @ H -> return scores, a @ H
The order is the weights, then the context.
    return a, a @ H -> return a @ H, a
You take the plain mean of the words' states. The weights decide how much of each state is taken.
    return a, a @ H -> return a, H[words].mean(axis=0)
You take the state with the largest weight. The context is the sum of all states, each times its weight.
    return a, a @ H -> return a, H[a.argmax()]
Large scores overflow. Subtract the largest score before the exponential.
    scores - scores.max() -> scores
    np.where(words, scores, -np.inf) -> scores ; np.exp(scores - scores.max()) -> np.exp(scores) * words
You subtract the largest score of all positions. Where padding has by far the largest, the exponentials of all words become 0. Subtract the largest score of the words.
    np.where(words, scores, -np.inf) -> scores ; np.exp(scores - scores.max()) -> np.exp(scores - scores.max()) * words
You divide the dot products by the root of the states' length. Luong's scores have no such factor, although chapter `one_head`'s have it.
    scores = H @ h -> scores = H @ h / np.sqrt(len(h))
""",
)
def look_at_source(score, h, H, words, W_a, U_a, v):
    if score == "dot":
        scores = H @ h  #: the dot products with each state of the encoder, (S,)
    elif score == "general":
        scores = h @ W_a @ H.T  #: the general scores, one for each source position
    else:
        scores = np.tanh(h @ W_a.T + H @ U_a.T) @ v  #: the additive scores, (S,)
    scores = np.where(words, scores, -np.inf)  #: the scores, minus infinity at padding
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.exp(scores - scores.max())  #: the exponentials of the shifted scores
        a = e / e.sum()  #: the weights, which sum to 1 over the words
    return a, a @ H


# --- general_gradients -----------------------------------------------------------------------------------


def _gradient_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for name, S, n, dtype in (
        ("5 words, states of 3", 5, 3, np.float64),
        ("4 words, states of 4", 4, 4, np.float64),
        ("one word", 1, 3, np.float64),
        ("float32, 6 words, states of 5", 6, 5, np.float32),
    ):
        shapes = ((n,), (S, n), (n, n), (n,))
        yield name, *((0.7 * rng.standard_normal(shape)).astype(dtype) for shape in shapes)


@exercise(
    difficulty=3,
    minutes=25,
    cases=_gradient_cases,
    hints="""
Go backwards from the context to the weights and states, from the weights to the scores, and from the scores to h, H and W_a.

c = a H gives da = H dc, and one part of dH, the outer product of a and dc. Chapter `one_head` has softmax's backward.

The scores are s_j = sum over p and q of h_p W_pq H_jq. The gradient of W_pq is the sum over j of ds_j h_p H_jq.
""",
    mistakes="""
A part of dH is missing. A state is mixed into the context, and it is also compared: the scores' part is ds times W_a^T h.
    np.outer(a, dc) + np.outer(ds, h @ W_a) -> np.outer(a, dc)
A part of dH is missing. A state is compared, and it is also mixed: the context's part is a times dc.
    np.outer(a, dc) + np.outer(ds, h @ W_a) -> np.outer(ds, h @ W_a)
In dH, the matrix is transposed. The score is h W_a H^T, so the factor of a state of the encoder is h @ W_a.
    np.outer(ds, h @ W_a) -> np.outer(ds, W_a @ h)
In dh, the matrix is transposed. The score is h W_a H^T, so the factor of h is W_a times the encoder's state.
    W_a @ (ds @ H) -> (ds @ H) @ W_a
W_a is missing in dh. The decoder's state meets the encoder's states through W_a.
    W_a @ (ds @ H) -> ds @ H
W_a is missing in dH. The encoder's states meet the decoder's state through W_a.
    np.outer(ds, h @ W_a) -> np.outer(ds, h)
dW_a is transposed. Its rows belong to h, its columns to the encoder's state.
    np.outer(h, ds @ H) -> np.outer(ds @ H, h)
The mean is missing in softmax's backward: ds = a (da - sum of a da).
    a * (da - a @ da) -> a * da
The factor a is missing in softmax's backward: ds = a (da - sum of a da).
    a * (da - a @ da) -> da - a @ da
You take the plain mean of da in softmax's backward. The mean is weighted by a.
    a @ da -> da.mean()
You use only the diagonal of softmax's Jacobian. Each weight also depends on the other scores, because their exponentials are in its denominator.
    a * (da - a @ da) -> a * (1 - a) * da
You use da as if it were ds, so softmax's backward is missing.
    a * (da - a @ da) -> da
Your gradients have the wrong sign. A gradient points to where the loss grows.
    return dh, dH, dW_a -> return -dh, -dH, -dW_a
The order is dh, dH, dW_a.
    return dh, dH, dW_a -> return dW_a, dh, dH || return dH, dh, dW_a
""",
)
def general_gradients(h, H, W_a, dc):
    scores = h @ W_a @ H.T  #: the general scores, one for each encoder state, (S,)
    a = softmax(scores)  #: the weights, which sum to 1
    da = H @ dc  #: the gradient of the weights
    ds = a * (da - a @ da)  #: the gradient of the scores, back through softmax
    dh = W_a @ (ds @ H)  #: the gradient of the decoder's state
    dH = np.outer(a, dc) + np.outer(ds, h @ W_a)  #: the encoder states' gradient, both parts
    dW_a = np.outer(h, ds @ H)  #: the gradient of W_a, one row per entry of h
    return dh, dH, dW_a


# --- attend_to -------------------------------------------------------------------------------------------


def _attend_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(T: int, S: int, n: int, wanted: Any) -> tuple[Any, ...]:
        asks, H = rng.standard_normal((T, n)), rng.standard_normal((S, n))
        return asks, H, np.asarray(wanted)

    yield "one decoder's state, 3 words", *draw(1, 3, 4, [2])
    yield "3 states, 3 words, in the opposite order", *draw(3, 3, 5, [2, 1, 0])
    yield "4 states that all want the first word", *draw(4, 5, 6, [0, 0, 0, 0])
    yield "6 states, 4 words, n = 8", *draw(6, 4, 8, rng.integers(0, 4, 6))
    yield "n words and n states", *draw(4, 4, 4, rng.permutation(4))


@exercise(
    difficulty=2,
    minutes=20,
    cases=_attend_cases,
    given="softmax",
    hints="""
Write the scores that you want first: a matrix with a row for each decoder's state and a column for each word. What must the difference in a row be, so that softmax gives 0.99 to one word?

You need W_a with asks W_a H^T = wanted scores. Rows that are linearly independent have a right inverse: asks @ np.linalg.pinv(asks) is the identity.

Put a pseudo-inverse on each side of the wanted scores.
""",
    mistakes="""
Your wanted scores have their rows in the columns' order. A reshape does not transpose.
    100 * np.eye(len(H))[wanted] -> 100 * np.eye(len(H))[wanted].T.reshape(len(wanted), len(H))
The weight is spread over several words. Larger scores make softmax sharper.
    100 * np.eye -> np.eye || 2 * np.eye || 3 * np.eye
Each decoder's state gives the least weight to its wanted word. The wanted score must be the largest, and yours is the smallest.
    100 * np.eye -> -100 * np.eye
Your matrix is transposed. The scores are asks W_a H^T, so the rows of W_a belong to the decoder's states.
    np.linalg.pinv(asks) @ scores @ np.linalg.pinv(H).T -> (np.linalg.pinv(asks) @ scores @ np.linalg.pinv(H).T).T
You use the transpose where an inverse is needed. The states are not orthogonal, so the scores of one state also depend on the others.
    np.linalg.pinv(asks) @ scores @ np.linalg.pinv(H).T -> asks.T @ scores @ H / 10
W_a is the identity, which is the dot product. It compares the states as they are.
    np.linalg.pinv(asks) @ scores @ np.linalg.pinv(H).T -> np.eye(H.shape[1])
W_a is all zeros, so every word gets the same weight.
    np.linalg.pinv(asks) @ scores @ np.linalg.pinv(H).T -> np.zeros((H.shape[1], H.shape[1]))
Each decoder's state attends to the word at its own position. The wanted word is wanted[t].
    np.eye(len(H))[wanted] -> np.eye(len(H))[np.arange(len(wanted)) % len(H)]
""",
)
def attend_to(asks, H, wanted):
    scores = 100 * np.eye(len(H))[wanted]  #: wanted scores, large at wanted[t], (T, S)
    W_a = np.linalg.pinv(asks) @ scores @ np.linalg.pinv(H).T  #: a matrix that gives them, (n, n)
    return softmax(asks @ W_a @ H.T).round(2)


# --- fault_in_look --------------------------------------------------------------------------------------


def _decoder(fault: str) -> LookBack:
    """A decoder's look back with one fault, for all T steps at once."""

    def step(e: np.ndarray, h: np.ndarray, H: np.ndarray, words: np.ndarray, W_c: np.ndarray) -> np.ndarray:
        scores = (e if fault == "embedding" else h) @ H.T  # (T, S)
        if fault != "padding":
            scores = np.where(words, scores, -1e9)
        a = softmax(scores.T).T * words if fault == "axis" else softmax(scores)
        c = a @ H  # (T, n)
        if fault == "previous":
            c = np.concatenate([c[:1], c[:-1]])
        joined = [h, c] if fault == "order" else [c, h]
        return np.tanh(np.concatenate(joined, axis=1) @ W_c)

    return step


def _fault_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for letter, fault in zip(
        "ABCDEF", ("axis", "none", "embedding", "padding", "previous", "order"), strict=True
    ):
        yield f"function {letter}", _decoder(fault)


@exercise(
    difficulty=2,
    minutes=20,
    cases=_fault_cases,
    hints="""
Draw an input for which no two functions agree: several steps, more words than steps, and some padding. Then compute what the right function gives.

Write the right function and the five wrong ones, and compare the output of each with that of the function that you were given.

The context of the previous step differs only from the second step on, so T must be at least 2. To see whether padding is hidden, words must be False somewhere. To see which vectors are scored, e and h must differ.
""",
    mistakes="""
You do not notice that padding gets weight. Your input needs positions where words is False.
    words[-2:] = False -> pass
You do not notice the context of the previous step. Your input needs at least two steps.
    T, S, n = 3, 5, 4 -> T, S, n = 1, 5, 4
You do not notice that the embedding is scored in place of the state. The fault shows only for an input in which e and h differ.
    e, h, H = (rng.standard_normal((rows, n)) for rows in (T, T, S)) -> e, h, H = (rng.standard_normal((rows, n)) for rows in (T, T, S)); e = h
    FAULTS -> FAULTS[:-1]
You never say "order". The right function puts the context in front of the state.
    FAULTS -> [name for name in FAULTS if name != "order"]
You never say "axis". The weights of each step must sum to 1 over the words.
    FAULTS -> [name for name in FAULTS if name != "axis"]
Write the name in lower case, as in the list of the exercise.
    return name -> return name.upper()
Return the name of the fault, and not its number in the list.
    return name -> return FAULTS.index(name)
Return one name, and not a list of names.
    return name -> return [name]
You return "none" for every function.
    return name -> return "none"
""",
)
def fault_in_look(step):
    rng = np.random.default_rng(0)
    T, S, n = 3, 5, 4  #: the numbers of steps and positions, the length of states
    e, h, H = (rng.standard_normal((rows, n)) for rows in (T, T, S))  #: a random input
    W_c, words = rng.standard_normal((2 * n, n)), np.ones(S, bool)  #: random weights, all words
    words[-2:] = False  #: padding at the last two positions
    given = step(e, h, H, words, W_c)  #: what the given function returns for this input
    for name in FAULTS:  #: every name of the exercise's list
        if np.allclose(given, _decoder(name)(e, h, H, words, W_c)):
            return name
    return "none"


# --- least_aligned ---------------------------------------------------------------------------------------


def _aligned_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(T: int, S: int, kinds: str, least: int) -> tuple[Any, ...]:
        words = [str(rng.choice(list(kinds))) for _ in range(T)]
        places = [int(rng.integers(S)) for _ in range(T)]
        gold = [() if word == "m" else (place,) for word, place in zip(words, places, strict=True)]
        A = softmax(rng.standard_normal((T, S)))
        for t, (word, place) in enumerate(zip(words, places, strict=True)):
            if rng.random() < {"a": 0.9, "b": 0.6, "c": 0.3}.get(word, 0.5):
                A[t, place] += 1
        return A / A.sum(axis=-1, keepdims=True), words, gold, least

    yield "60 words of three kinds", *draw(60, 9, "abc", 5)
    yield "80 words, marks among them", *draw(80, 7, "abcm", 5)
    A, words, gold, least = draw(60, 8, "aab", 8)
    words[7], gold[7], A[7] = "rare", (0,), np.eye(8)[3]
    yield "a word that comes once", A, words, gold, least
    A, words, gold, least = draw(60, 8, "aab", 3)
    for t in (4, 20, 33):
        words[t], gold[t], A[t] = "seldom", (0,), np.eye(8)[3]
    yield "a word that comes exactly `least` times", A, words, gold, least
    A, words, gold, least = draw(60, 8, "aab", 5)
    for t in range(0, 60, 10):
        words[t], gold[t], A[t] = "two", (0, 3), np.eye(8)[3 if t % 20 else 0]
    yield "a word with two source words", A, words, gold, least
    A, words, gold, least = draw(50, 6, "abm", 3)
    A, words, gold, least = draw(60, 8, "aab", 5)
    for t in range(0, 60, 10):
        words[t], gold[t], A[t] = "equal", (2,), (np.eye(8)[2] + np.eye(8)[5 if t < 20 else 0]) / 2
    yield "a word with two equal weights", A, words, gold, least
    A, words, gold, least = draw(70, 8, "ab", 5)
    for t in range(0, 70, 5):
        words[t], gold[t], A[t] = "half", (3,) if t % 10 else (), np.eye(8)[0]
    yield "a word that is often, and seldom aligned", A, words, gold, least
    yield "weights in float32", A.astype(np.float32), words, gold, least


@exercise(
    difficulty=2,
    minutes=20,
    cases=_aligned_cases,
    hints="""
Leave out the words without a gold word. A mark such as ga is not misaligned, because there is nothing to align it with.

For each other word, note whether the position of its largest weight is a gold position. Collect these notes for each word.

Only words that occur at least `least` times count. Of these, take the one with the smallest share.
""",
    mistakes="""
You count words without a gold word as misaligned. Leave them out, because they have no right answer.
    if places: -> if True:
You count rare words too. A share of one or two words means little, so the word must occur at least `least` times.
    if len(hits) >= least -> if len(hits) >= 1
A word that occurs exactly `least` times counts. Leave out only the words that occur fewer times.
    if len(hits) >= least -> if len(hits) > least
You return the word that is aligned most often. Take the smallest share.
    min(shares, key=lambda word: shares[word]) -> max(shares, key=lambda word: shares[word])
You return the share of words that are not aligned. Return the share that is.
    return word, shares[word] -> return word, 1 - shares[word]
    int(row.argmax()) in places -> int(row.argmax()) not in places
You take the weight on the gold word. A word counts as 1 if its gold word has the largest weight, and as 0 otherwise.
    int(row.argmax()) in places -> float(row[list(places)].sum())
You look at only one of a word's source words. Any of them will do.
    int(row.argmax()) in places -> int(row.argmax()) in places[:1] || int(row.argmax()) in places[-1:]
Of two equal weights the first is the strongest. You take the last.
    int(row.argmax()) -> len(row) - 1 - int(row[::-1].argmax())
You look at the smallest weight.
    row.argmax() -> row.argmin()
You read columns. Row t has the weights of target word t.
    zip(A, words, gold) -> zip(A.T, words, gold)
You return only the word. Return the word and its share.
    return word, shares[word] -> return word
""",
)
def least_aligned(A, words, gold, least):
    found: dict[str, list[bool]] = {}
    for row, word, places in zip(A, words, gold):  # noqa: B905  #: each target word's weights
        if places:
            found.setdefault(word, []).append(int(row.argmax()) in places)  #: whether this one is aligned
    shares = {word: float(np.mean(hits)) for word, hits in found.items() if len(hits) >= least}  #: the shares
    word = min(shares, key=lambda word: shares[word])  #: the word of the smallest share
    return word, shares[word]
