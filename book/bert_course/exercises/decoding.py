"""Chapter `decoding`: greedy search, a beam that loses by getting wider, BLEU of a translation with one mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.common.beam_tree import widths_that_find_it

# --- write_greedily ---------------------------------------------------------------------------------------


class _Toy:
    """A small recurrent model with random weights, whose end token gets likelier with every step."""

    def __init__(self, rng: np.random.Generator, words: int, end_at: int, dtype: type, size: float) -> None:
        n = 6
        self.start_token, self.end_token = words - 2, words - 1
        self.embeddings: np.ndarray = rng.standard_normal((words, n)).astype(dtype)
        self.W: np.ndarray = rng.standard_normal((n, n)).astype(dtype)
        self.U: np.ndarray = (size * rng.standard_normal((n, words))).astype(dtype)
        self.end_at, self.size, self.dtype = end_at, size, dtype

    def __repr__(self) -> str:
        return f"a model of {len(self.embeddings)} words"

    def encode(self, source: np.ndarray) -> np.ndarray:
        """The sum of the words' vectors, (1, n)."""
        return self.embeddings[source].sum(axis=1)

    def start(self, memory: np.ndarray) -> tuple[np.ndarray, int]:
        """The first state, and no step done."""
        return memory, 0

    def step(
        self, state: tuple[np.ndarray, int], last_ids: np.ndarray
    ) -> tuple[np.ndarray, tuple[np.ndarray, int]]:
        """last_ids (N,) -> logits (N, V), and the next state."""
        h, count = state
        h = np.tanh(h @ self.W + self.embeddings[np.asarray(last_ids)])
        logits = h @ self.U
        logits[:, self.start_token] = -1e4
        logits[:, self.end_token] += self.dtype(0.7 * self.size * (count - self.end_at))
        return logits, (h, count + 1)


def _words_written(model: _Toy, source: np.ndarray) -> int:
    """How many words greedy search writes before the end token."""
    state, last, count = model.start(model.encode(source)), model.start_token, 0
    while True:
        logits, state = model.step(state, np.array([last]))
        last = int(logits[0].argmax())
        if last == model.end_token:
            return count
        count += 1


def _greedy_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(
        words: int, S: int, longest: int, end_at: int = 3, dtype: type = np.float64, size: float = 1.0
    ) -> tuple[Any, ...]:
        return _Toy(rng, words, end_at, dtype, size), rng.integers(0, words - 2, (1, S)), longest

    yield "9 words, until the end token", *draw(9, 4, 60)
    yield "7 words, a source of one word", *draw(7, 1, 60)
    yield "12 words, 6 steps at most, without an end", *draw(12, 5, 6, end_at=1000)
    yield "9 words, the end token at once", *draw(9, 3, 20, end_at=-100)
    yield "one step, which is not the end", *draw(9, 3, 1, end_at=1000)
    yield "15 words, float32", *draw(15, 4, 60, dtype=np.float32)
    yield "8 words, logits in the thousands", *draw(8, 4, 40, size=1000.0)
    written = 0
    while not written:  # a text that ends at once has no step before its end
        model, source, _ = draw(10, 4, 60)
        written = _words_written(model, source)
    yield "10 words, the end token one step too late", model, source, written
    yield "a long text, less probable than any float", *draw(3000, 4, 95, end_at=1000, size=0.001)


@exercise(
    difficulty=1,
    minutes=15,
    cases=_greedy_cases,
    rtol=1e-6,
    atol=1e-6,
    hints="""
Call encode and start once, before the loop. The loop needs step, the choice of a word, and a test for the end token.

Each step gives logits of shape (1, V) and the next state. Keep that state, and feed the word that you have chosen, as an array of one id.

log P of a word is its logit minus the logarithm of the sum of the exponentials of all logits. Subtract the largest logit first. The end token's log P counts too, and the end token is not one of the words.
""",
    mistakes="""
You always step from the first state. step returns the next state: keep it.
    logits, state = model.step -> logits, _ = model.step
You feed the start token at every step. Feed the word that was chosen last.
    np.array([last]) -> np.array([model.start_token])
You begin with the end token. These models were trained with a start token.
    last, ids, total = model.start_token -> last, ids, total = model.end_token
You add up logits. A logit is not a log-probability: subtract the logarithm of the sum of all exponentials.
    total += float(log_p[last]) -> total += float(z[last]) || total += float(logits[0, last])
You add up probabilities. The probability of a text is a product, so its logarithm is a sum of logarithms.
    total += float(log_p[last]) -> total += float(np.exp(log_p[last]))
You multiply the probabilities and take the logarithm at the end. The product of a long text is too small for a float and becomes 0. Add up the logarithms.
    model.start_token, [], 0.0 -> model.start_token, [], 1.0 ; total += float(log_p[last]) -> total *= float(np.exp(log_p[last])) ; return ids, total -> return ids, float(np.log(total))
You return the probability. Return its logarithm.
    return ids, total -> return ids, float(np.exp(total))
You leave out the end token's log P. Without it, a beginning would count like a finished text.
    total += float(log_p[last]) -> total += float(log_p[last]) if last != model.end_token else 0.0
The end token is among your words. It ends the text and is not a part of it.
    return ids, total -> return ids + [model.end_token] * (last == model.end_token), total
You take one step too few. max_length counts the end token's step too.
    range(max_length) -> range(max_length - 1)
You take one step too many. max_length counts the end token's step too.
    range(max_length) -> range(max_length + 1)
    range(max_length) -> range(max_length + 1) ; total += float(log_p[last]) -> total += float(log_p[last]) * (len(ids) < max_length or last == model.end_token) ; return ids, total -> return ids[:max_length], total
You do not stop at the end token.
    if last == model.end_token -> if last is None
You take the least probable word.
    log_p.argmax() -> log_p.argmin()
Large logits overflow. Subtract the largest logit before the exponential.
    z = logits[0] - logits[0].max() -> z = logits[0]
    z = logits[0] - logits[0].max() -> z = logits[0] ; last = int(log_p.argmax()) -> last = int(z.argmax())
You return the words only. Return the words and log P.
    return ids, total -> return ids
The order is the words, then log P.
    return ids, total -> return total, ids
You give the mean of the words' log P. The logarithm of a product is the sum.
    return ids, total -> return ids, total / (len(ids) + (last == model.end_token))
Your logarithm is to base 10. Take the natural one.
    total += float(log_p[last]) -> total += float(log_p[last]) / np.log(10)
The start token is among your words. It is given to the decoder, and is no part of the text.
    return ids, total -> return [model.start_token, *ids], total
""",
)
def write_greedily(model, source, max_length):
    state = model.start(model.encode(source))  #: the state before the first step
    last, ids, total = model.start_token, [], 0.0  #: the start token, no words, and 0
    for _ in range(max_length):  #: every step, max_length at most
        logits, state = model.step(state, np.array([last]))  #: next logits and state
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            z = logits[0] - logits[0].max()  #: the logits less the largest of them
            log_p = z - np.log(np.exp(z).sum())  #: log P of every token
        last = int(log_p.argmax())  #: the id of the most probable token
        total += float(log_p[last])  #: the choice's log P, the end token's too
        if last == model.end_token:
            break
        ids.append(last)  #: the chosen word, which is no end token
    return ids, total


# --- crowd_out --------------------------------------------------------------------------------------------


def _widths(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for k in (2, 3, 5):
        yield f"k = {k}", k


def _filled(good: Mapping[str, float], count: int = 20) -> dict[str, float]:
    """These words and their probabilities, and what is left in equal parts for `count` other words."""
    left = 1 - sum(good.values())
    return {**good, **{f"x{i}": left / count for i in range(count)}}


@exercise(
    difficulty=3,
    minutes=25,
    cases=_widths,
    given="widths_that_find_it",
    hints="""
Begin with k = 2. Let the first words be a, b and c, in this order of probability. Width 2 keeps a and b, and width 3 also c.

The best text must begin with b, and it must survive the second word in width 2, as the second best beginning. In width 3, two beginnings with c must be better than it, and must come to nothing at the third word.

A beginning comes to nothing if its next words share its probability in many small parts. For larger k, take k - 1 words like a.
""",
    mistakes="""
Width k finds the most probable text, and so does width k + 1. The extra beginning must bring two continuations that are better than the one that leads to the best text.
    {"y": 0.5, "z": 0.5} -> {"y": 0.5}
No width finds the most probable text. Width k must still hold its beginning after the second word.
    {"z": 0.4} -> {"z": 0.04}
Greedy search finds the most probable text already. Let the best first word lead to texts that share its probability in small parts.
    text == "b z" -> text == "a0 y"
Width k misses the most probable text, and width k + 1 finds it. That is the usual case; the exercise asks for the opposite.
    text == "b z" -> text == "c z"
Greedy search finds the most probable text, so it begins with the best first word. Another first word should lead to it.
    return [True, True, False]

    return [True, False, False]

    return [True, False, True]

Return what widths_that_find_it returns, and not the tree.
    return widths_that_find_it(tree, (1, k, k + 1)) -> return tree
You give the answer for the widths k and k + 1 only. The exercise also asks for width 1.
    (1, k, k + 1) -> (k, k + 1)
""",
)
def crowd_out(k):
    first = {f"a{i}": 1.3 for i in range(k - 1)} | {"b": 1.05, "c": 1.0}  #: first words' weights
    goods = {"b": {"z": 0.4}, "c": {"y": 0.5, "z": 0.5}}  #: probable words after b and c
    tree = {"": {word: weight / sum(first.values()) for word, weight in first.items()}}  #: the probabilities
    for word in first:  #: every first word
        tree[word] = _filled(goods.get(word, {"y": 0.5}))  #: second words, most of them rare
        for second in tree[word]:  #: every word that may come second
            text = f"{word} {second}"  #: the beginning of two words
            tree[text] = {"end": 1.0} if text == "b z" else _filled({})  #: one third word, or many
    return widths_that_find_it(tree, (1, k, k + 1))


# --- bleu_with_one_mistake --------------------------------------------------------------------------------


def _mistake_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for T, t in (
        (20, 10),
        (20, 0),
        (20, 19),
        (20, 2),
        (9, 4),
        (8, 3),
        (7, 3),
        (5, 4),
        (4, 1),
        (3, 0),
        (1, 0),
        (200, 100),
    ):
        yield f"{T} words, place {t} is wrong", T, t


@exercise(
    difficulty=2,
    minutes=20,
    cases=_mistake_cases,
    hints="""
For each n, count the n-grams of T words, and how many of them contain position t. Only those are lost.

There are T - n + 1 of them. The first that contains position t begins at t - n + 1, but not before 0. The last begins at t, but not after T - n.

The translation is as long as the reference, so the brevity penalty is 1. If one share is 0, or has no n-grams, BLEU is 0.
""",
    mistakes="""
You take n lost n-grams everywhere. Near an end of the text, fewer n-grams hold the wrong word.
    last - first + 1 -> n
You count T n-grams for every n. A text of T words has T - n + 1.
    total = T - n + 1 -> total = T
You divide by T for every n. A text of T words has T - n + 1 n-grams.
    / total -> / T
You take the arithmetic mean of the four shares. BLEU has the geometric mean.
    float(np.prod(shares) ** 0.25) -> float(np.mean(shares))
You leave out the root. The geometric mean of four numbers is the fourth root of their product.
    float(np.prod(shares) ** 0.25) -> float(np.prod(shares))
BLEU goes from 0 to 100. Yours goes from 0 to 1.
    100 * float -> float
You count single words only. BLEU also counts two, three and four words in a row.
    for n in (1, 2, 3, 4) -> for n in (1,)
    for n in (1, 2, 3, 4) -> for n in (1,) ; ** 0.25 -> ** 1.0
You take the four-word n-grams only.
    for n in (1, 2, 3, 4) -> for n in (4,)
You treat one wrong word as one lost n-gram for each n. A word in the middle is in n of them.
    last - first + 1 -> 1
You leave out the n-grams at the end of the text: the last one begins at T - n.
    min(t, T - n) -> min(t, T - n - 1)
At the beginning of the text you count n-grams that begin before the first word.
    max(0, t - n + 1) -> t - n + 1
At the end of the text you count n-grams that end after the last word.
    min(t, T - n) -> t
You leave n-grams that do not exist, or have no match, out of the mean. If one share is 0, BLEU is 0.
    return 0.0 -> continue
You multiply by a brevity penalty, but the translation is as long as the reference.
    100 * float -> 100 * np.exp(1 - T / (T - 1 + 1e-12)) * float
You count an n-gram that begins with the wrong word as right.
    min(t, T - n) -> min(t - 1, T - n)
""",
)
def bleu_with_one_mistake(T, t):
    shares = []
    for n in (1, 2, 3, 4):  #: the lengths of the n-grams
        total = T - n + 1  #: the number of n-grams of this length
        first, last = max(0, t - n + 1), min(t, T - n)  #: the first and last start of a lost n-gram
        lost = last - first + 1  #: the number of n-grams that contain position t
        if total <= lost:
            return 0.0  #: the BLEU if no n-gram of this length is right
        shares.append((total - lost) / total)  #: the share of n-grams that are right
    return 100 * float(np.prod(shares) ** 0.25)
