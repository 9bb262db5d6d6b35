"""Chapter `finetuning`: heads of tasks, labels for pieces, and runs of fine-tuning with a fault."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise

# --- best_span -------------------------------------------------------------------------------------------


def _span_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "the best end comes before the best start", np.array([0.0, 2, 0, 5]), np.array([0.0, 1, 6, 2]), 4
    yield "an answer of one token", np.array([0.0, 3, 1]), np.array([0.0, 2, 1]), 3
    # With one token more another span would be the best, and without a limit a third one.
    far = np.array([5.0, 3, 0, 0, 0, 0]), np.array([1, 0.5, 0.2, 4, 0, 4.5])
    yield "the best two are too far apart", *far, 3
    yield "exactly as long as allowed", np.array([4.0, 1, 0]), np.array([0.0, 0, 4]), 3
    yield "one token at most", rng.standard_normal(7), rng.standard_normal(7), 1
    low = np.array([5.0, 0, 0, 0, 0, 0])  # so that the first token alone is not the best span
    yield "all scores below 0", -5 - low - rng.random(6), -5 - low - rng.random(6), 4
    yield "a text of one token", np.array([-1.5]), np.array([-2.0]), 5
    for size, longest in ((9, 3), (25, 30), (40, 8)):
        yield f"{size} random scores", rng.standard_normal(size), rng.standard_normal(size), longest


@exercise(
    difficulty=1,
    minutes=15,
    cases=_span_cases,
    hints="""
A span is a first token i and a last token j, with i <= j. It has j - i + 1 tokens.

Two loops are enough: for each i, try each j from i to the last one that is allowed, and keep the best pair so far. Begin with a sum of -infinity.
""",
    mistakes="""
Your span can run backwards, because the best start need not come before the best end. Compare only pairs with i <= j.
    return int(np.argmax(start)), int(np.argmax(end))
    range(i, min(i + longest, len(end))) -> range(len(end))
Your span can be one token too long. From i to j there are j - i + 1 tokens.
    min(i + longest, len(end)) -> min(i + longest + 1, len(end))
Your span is one token shorter than it may be. From i to j there are j - i + 1 tokens.
    min(i + longest, len(end)) -> min(i + longest - 1, len(end)) if longest > 1 else i + 1
You leave out answers of one token. Start and end may be the same token.
    range(i, min -> range(i + 1, min
You do not limit the length of the span.
    min(i + longest, len(end)) -> len(end)
Your best sum begins at 0, so a span whose scores are below 0 is never taken. Begin with -infinity.
    best, span = -math.inf, (0, 0) -> best, span = 0.0, (0, 0)
You take the best start first, and then the best end for it. A worse start can have a better end.
    i = int(np.argmax(start))
    return i, i + int(np.argmax(end[i : i + longest]))

    j = int(np.argmax(end))
    first = max(0, j - longest + 1)
    return first + int(np.argmax(start[first : j + 1])), j
You remember the best start so far, and when it is too far away you begin again at the current token. A token between the two can be a better start.
    best, span, i = -math.inf, (0, 0), 0
    for j in range(len(end)):
        if j - i >= longest or start[j] > start[i]:
            i = j
        if start[i] + end[j] > best:
            best, span = start[i] + end[j], (i, j)
    return span
You multiply the scores. The probability of a span is a product, but the scores are the logarithms of its factors, up to a constant, so they add up.
    start[i] + end[j] > best -> start[i] * end[j] > best ; best, span = start[i] + end[j] -> best, span = start[i] * end[j]
Return the last token of the span, not the place after it.
    (i, j) -> (i, j + 1)
""",
)
def best_span(start, end, longest):
    best, span = -math.inf, (0, 0)  #: the highest score so far, and its span
    for i in range(len(start)):  #: every token as a start
        for j in range(i, min(i + longest, len(end))):  #: every last token that start i may have
            if start[i] + end[j] > best:
                best, span = start[i] + end[j], (i, j)  #: the highest score so far, and its span
    return span


# --- span_gradients --------------------------------------------------------------------------------------


def _gradient_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for name, length, width, first, last in (
        ("an answer of three tokens", 6, 4, 2, 4),
        ("an answer of one token", 5, 3, 3, 3),
        ("an answer at the start", 4, 7, 0, 2),
        ("an answer that is the whole text", 3, 5, 0, 2),
        ("a longer text", 17, 6, 9, 12),
    ):
        X = rng.standard_normal((length, width))
        yield name, X, rng.standard_normal(width), rng.standard_normal(width), first, last
    yield "scores up to a thousand", 1000 * np.eye(4), np.ones(4), -np.ones(4), 1, 2


@exercise(
    difficulty=3,
    minutes=30,
    cases=_gradient_cases,
    rtol=1e-6,
    atol=1e-9,
    hints="""
The scores are s = X u and e = X v. The loss is half of each cross-entropy: L = (-log p_first - log q_last) / 2, with p = softmax(s) and q = softmax(e).

The gradient of a cross-entropy with respect to its scores is p minus 1 at the right position. Here it is halved, so ds = (p - one at first) / 2, and de is made in the same way.

s = X u gives du = X^T ds, and to row i of X it sends ds_i u. Both heads read X, so their gradients add up to dX = ds u^T + de v^T.
""",
    mistakes="""
The half is missing, because the loss is the mean of the two cross-entropies, not their sum.
    / 2 -> / 1
In your answer a head sends a gradient to one token's row only. The softmax is over all tokens, so every row of X gets some.
    dX = np.outer(ds, u) + np.outer(de, v) -> dX = np.zeros_like(X); dX[first] += ds[first] * u; dX[last] += de[last] * v
In your answer only the rows of the span get a gradient. The softmax is over all tokens, so every row of X gets some.
    dX = np.outer(ds, u) + np.outer(de, v) -> dX = np.zeros_like(X); dX[first : last + 1] = (np.outer(ds, u) + np.outer(de, v))[first : last + 1]
Your dX comes from one head only. Start and end both read X, so their gradients add up.
    np.outer(ds, u) + np.outer(de, v) -> np.outer(ds, u) || np.outer(de, v)
The 1 at the right position is missing. There, the gradient of the cross-entropy is p minus 1.
    ds[first] -= 1 -> pass ; de[last] -= 1 -> pass
Your signs are reversed. The gradient is p minus 1 at the right position, so a step against it raises the right score.
    return dX, X.T @ ds, X.T @ de -> return -dX, -X.T @ ds, -X.T @ de
You have exchanged u and v in dX. The start's gradient goes back along the start's vector.
    np.outer(ds, u) + np.outer(de, v) -> np.outer(ds, v) + np.outer(de, u)
You have exchanged first and last. The start's softmax should be 1 at `first`.
    ds[first] -= 1 -> ds[last] -= 1 ; de[last] -= 1 -> de[first] -= 1
You halve the probabilities, but not the 1 at the right position. The half belongs to the whole gradient, (p minus 1) / 2.
    softmax(X @ u), softmax(X @ v) -> softmax(X @ u) / 2, softmax(X @ v) / 2 ; ds, de = ds / 2, de / 2 -> pass
exp of a large score overflows. Subtract the largest score first, which changes no probability.
    np.exp(scores - scores.max()) -> np.exp(scores)
Return dX first, then the gradients of u and v.
    return dX, X.T @ ds, X.T @ de -> return X.T @ ds, X.T @ de, dX
Your last two gradients have changed places. The gradient of the start vector u comes before that of v.
    return dX, X.T @ ds, X.T @ de -> return dX, X.T @ de, X.T @ ds
One 1 is lost where the span is a single token: an array that gets `-= 1` at the same position twice is changed once.
    X.T @ ds, X.T @ de -> X.T @ ds, X.T @ (de if first != last else de + 0.5 * (np.arange(len(X)) == last))
You take one softmax over starts and ends together. Each needs its own softmax over the tokens.
    ds, de = softmax(X @ u), softmax(X @ v) -> ds, de = softmax(np.stack([X @ u, X @ v]))
You hide the tokens before the right start from the end. In training, the end is chosen among all tokens.
    softmax(X @ v) -> softmax(np.where(np.arange(len(X)) >= first, X @ v, -np.inf))
You use `first` for the end too. The end's softmax should be 1 at `last`.
    de[last] -= 1 -> de[first] -= 1
""",
)
def span_gradients(X, u, v, first, last):
    def softmax(scores):
        powers = np.exp(scores - scores.max())  #: the exponentials of the scores less the largest
        return powers / powers.sum()  #: the probabilities, one for each token

    ds, de = softmax(X @ u), softmax(X @ v)  #: each token's probability as the start, as the end
    ds[first] -= 1
    de[last] -= 1
    ds, de = ds / 2, de / 2  #: the gradients of the start scores and the end scores
    dX = np.outer(ds, u) + np.outer(de, v)  #: the gradient of X, from both heads, (L, d_model)
    return dX, X.T @ ds, X.T @ de


# --- align_tags ------------------------------------------------------------------------------------------


def _align_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def words(*sizes: int) -> list[list[int]]:
        return [rng.integers(5, 99, size).tolist() for size in sizes]

    yield "whole words", words(1, 1, 1), [0, 2, 1], 9
    yield "words of several pieces", words(3, 1, 4), [1, 0, 2], 20
    yield "a text that fits exactly", words(2, 2), [1, 1], 6
    yield "a word that does not fit any more", words(2, 3, 1), [1, 2, 1], 6
    yield "a short word after a word that does not fit", words(1, 5, 1), [2, 1, 1], 5
    yield "a word without a piece", [*words(1), [], *words(2)], [1, 2, 0], 12
    yield "no room for a word", words(4), [1], 4
    yield "a random text", words(*rng.integers(1, 4, 9)), rng.integers(0, 3, 9).tolist(), 14
    yield "a word without a piece that does not fit any more", [*words(2), []], [1, 2], 4


@exercise(
    difficulty=2,
    minutes=20,
    cases=_align_cases,
    hints="""
Begin with [CLS] and its label -100. For each word add its pieces, and for them the tag and then -100 for each piece after the first.

Before you add a word, ask whether its pieces and [SEP] still fit into `room`. If not, stop, because later words would have the wrong context.

A word without a piece becomes one [UNK], the id 100, and keeps its tag. Otherwise a word would be missing when the tags are read back.
""",
    mistakes="""
You give the tag to every piece of a word. Only the first piece carries it, so that a long word does not count more than a short one.
    [-100] * (len(word) - 1) -> [tag] * (len(word) - 1)
You give the tag to the last piece of a word. The rule is the first piece, because the model's answer is read there.
    [tag] + [-100] * (len(word) - 1) -> [-100] * (len(word) - 1) + [tag]
Your labels are one position early, because [CLS] has a label too, -100.
    ids, labels = [101], [-100] -> ids, labels = [101], []
[SEP] has no label in your answer. Give it -100, so that labels and ids have the same length.
    return [*ids, 102], [*labels, -100] -> return [*ids, 102], labels
You give 0 where nothing should count. 0 is a tag like the others, so use -100.
    -100 -> 0
You cut within a word. A word whose pieces do not all fit is left out.
    ids, labels = [101], [-100]
    for word, tag in zip(pieces, tags, strict=True):
        word = (word or [100])[: room - 1 - len(ids)]
        if not word:
            break
        ids += word
        labels += [tag] + [-100] * (len(word) - 1)
    return [*ids, 102], [*labels, -100]
You forget the place for [SEP], so there can be one id too many.
    len(ids) + len(word) + 1 > room -> len(ids) + len(word) > room
A word without a piece needs a place too, for its [UNK]. Ask whether there is room after the [UNK] is put in.
    word = word or [100] -> size = len(word); word = word or [100] ; len(ids) + len(word) + 1 > room -> len(ids) + size + 1 > room
You keep one place too many free. [SEP] needs one place, and the rest is for words.
    len(ids) + len(word) + 1 > room -> len(ids) + len(word) + 2 > room
You go on after a word that does not fit. Then the words after it have the wrong neighbours, so stop there.
    break -> continue
You do not look at `room`.
    if len(ids) + len(word) + 1 > room: -> if False:
A word without a piece vanishes, and its tag with it. It becomes one [UNK], the id 100.
    word = word or [100] -> if not word: continue
Return the ids first, then the labels.
    return [*ids, 102], [*labels, -100] -> return [*labels, -100], [*ids, 102]
A word without a piece gets no label in your answer. It is one [UNK], and keeps its tag.
    word = word or [100] -> given = word; word = word or [100] ; [tag] + -> [tag if given else -100] +
""",
)
def align_tags(pieces, tags, room):
    ids, labels = [101], [-100]  #: the ids and the labels of [CLS] alone
    for word, tag in zip(pieces, tags, strict=True):  #: every word's pieces, with the word's tag
        word = word or [100]  #: the word's pieces, or one [UNK] if it has none
        if len(ids) + len(word) + 1 > room:
            break
        ids += word  #: all pieces of this word
        labels += [tag] + [-100] * (len(word) - 1)  #: the tag, then no label for each further piece
    return [*ids, 102], [*labels, -100]


# --- name_the_fault --------------------------------------------------------------------------------------


class Finished:
    """A run of fine-tuning: the weights that it began and ended with, and its logits.

    checkpoint, before, after: arrays by name; checkpoint has no classifier. logits(): of one batch, computed anew.
    """

    def __init__(self, fault: str, rng: np.random.Generator, layers: int, rate: float = 0.01) -> None:
        names = ["bert.embeddings", *(f"bert.layer.{n}" for n in range(layers)), "bert.pooler"]

        def drawn() -> np.ndarray:
            return rng.standard_normal((3, 2))

        trained = {name: drawn() for name in names}
        self.checkpoint = {
            (name.removeprefix("bert.") if fault == "prefix" else name): array.copy()
            for name, array in trained.items()
        }
        self.before = {name: drawn() if fault == "prefix" else array for name, array in trained.items()}
        self.before["classifier"] = drawn()
        still = {"head": ["classifier"], "frozen": names}.get(fault, [])
        self.after = {
            name: array.copy() if name in still else array + rate * drawn()
            for name, array in self.before.items()
        }
        self._rng, self._logits, self._dropout = rng, rng.standard_normal((4, 2)), fault == "dropout"

    def __repr__(self) -> str:
        return f"a run with the arrays {', '.join(self.before)}"

    def logits(self) -> np.ndarray:
        """The logits (4, 2) of one batch."""
        return self._logits + (0.1 * self._rng.standard_normal((4, 2)) if self._dropout else 0.0)


def _fault_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for fault in ("none", "prefix", "head", "frozen", "dropout"):
        for layers in (1, 3):
            name = "a sound run" if fault == "none" else f"a run with the fault {fault!r}"
            yield f"{name}, {layers} layer{'s' * (layers > 1)}", Finished(fault, rng, layers)
    yield "a sound run in which no weight moves by a thousandth", Finished("none", rng, 2, rate=1e-4)


@exercise(
    difficulty=2,
    minutes=20,
    cases=_fault_cases,
    hints="""
Four questions, one for each fault: does `before` hold the checkpoint's weights under the same names? Has the classifier moved from `before` to `after`? Has anything in the encoder moved? Do two calls of logits() give the same numbers?

A weight that was trained with any gradient has moved a little, so compare arrays with np.array_equal, without a tolerance.
""",
    mistakes="""
You do not compare `before` with the checkpoint. A weight that was not found there was initialised at random, and no error is raised.
    if name not in run.before or not np.array_equal(run.before[name], array): -> if False:
You do not ask whether the classifier has moved.
    if "classifier" not in moved: -> if False:
You do not ask whether the encoder has moved.
    if moved == {"classifier"}: -> if False:
A classifier that changes is right. The fault is one that does not change.
    if "classifier" not in moved: -> if "classifier" in moved:
You call a weight unchanged that has moved a little. A small learning rate moves all weights by very little, so compare without a tolerance, as np.array_equal does.
    not np.array_equal(run.before[name], run.after[name]) -> not np.allclose(run.before[name], run.after[name], rtol=0, atol=1e-3) || not np.allclose(run.before[name], run.after[name], rtol=0, atol=0.01)
You do not call logits() twice. Dropout that is still on gives different logits each time.
    if not np.array_equal(run.logits(), run.logits()): -> if False:
If there is no fault, return "none".
    return "none" -> return None || return ""
""",
)
def name_the_fault(run):
    moved = {name for name in run.before if not np.array_equal(run.before[name], run.after[name])}
    for name, array in run.checkpoint.items():  #: every array of the checkpoint, with its name
        if name not in run.before or not np.array_equal(run.before[name], array):
            return "prefix"
    if "classifier" not in moved:
        return "head"
    if moved == {"classifier"}:
        return "frozen"
    if not np.array_equal(run.logits(), run.logits()):
        return "dropout"
    return "none"


# --- least_hits ------------------------------------------------------------------------------------------


def _hits_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "20 examples, two classes", 20, 0.5, 0.05
    yield "400 examples, two classes", 400, 0.5, 0.05
    yield "400 examples, six classes", 400, 1 / 6, 0.05
    yield "a strict level", 50, 0.5, 0.001
    yield "too few examples", 3, 0.5, 0.05
    yield "just enough examples", 5, 0.5, 0.05
    yield "a baseline above one half", 100, 0.735, 0.01
    yield "any number", int(rng.integers(30, 90)), 0.3, 0.02


@exercise(
    difficulty=2,
    minutes=20,
    cases=_hits_cases,
    hints="""
A model that guesses is right on k of n examples with probability C(n, k) p^k (1 - p)^(n - k), where p is the baseline.

You look for the smallest k such that a guessing model has k *or more* right with a probability of at most `level`. Add the probabilities from k = n downwards, and stop before the sum is above `level`.

If even n right answers are too likely by chance, no k from 0 to n will do: return n + 1.
""",
    mistakes="""
You ask for exactly k right answers. A model with more right answers would be called better too, so add up k or more.
    tail += math.comb(n, k) * p**k * (1 - p) ** (n - k) -> tail = math.comb(n, k) * p**k * (1 - p) ** (n - k)
Your k is one too small. A guessing model reaches it with a probability above the level.
    return least -> return least - 1
Your k is one too large. Ask for k or more right answers, not for more than k.
    return least -> return least + 1
Your test is two-sided. Only a model that is better than chance is of interest here, so put the whole level on that side.
    if tail > level: -> if tail > level / 2:
If even n right answers are not enough, return n + 1.
    tail, least = 0.0, n + 1 -> tail, least = 0.0, n
You take one half for chance. The baseline is p.
    p**k * (1 - p) ** (n - k) -> 0.5**n
That is the normal approximation. With few examples, or a p far from one half, it is off, so add up the exact probabilities.
    for k in range(n + 1):
        z = (k - n * p) / math.sqrt(n * p * (1 - p))
        if 0.5 * math.erfc(z / math.sqrt(2)) <= level:
            return k
    return n + 1
That is the normal approximation with a correction of one half. With few examples it is still off, so add up the exact probabilities.
    for k in range(n + 1):
        z = (k - 0.5 - n * p) / math.sqrt(n * p * (1 - p))
        if 0.5 * math.erfc(z / math.sqrt(2)) <= level:
            return k
    return n + 1
Return the number of right answers, not the share.
    return least -> return least / n
""",
)
def least_hits(n, p, level):
    tail, least = 0.0, n + 1  #: the sum so far, and the answer if none does
    for k in range(n, -1, -1):  #: the numbers of right answers, from n downwards
        tail += math.comb(n, k) * p**k * (1 - p) ** (n - k)  #: the probability of exactly k right answers
        if tail > level:
            break
        least = k  #: the smallest number so far that is rare enough
    return least
