"""The lowest possible loss of the task that BERT trains on, for stories: the record that chapter `pretraining` shows.

In training several tokens of a pair are chosen; most are hidden, some are random words, and whether a word that is seen
is the true one is not known. All first halves and all second halves of light stories are enumerated with their
probabilities (`Halves`). What is seen of a pair gives each of them a likelihood, so the probability of a chosen word
is a sum over all stories. What is stored of a run is the mean loss of that best guesser on the chosen tokens of some
pairs, and of the stored model on the same tokens. One run of about ten minutes, and 2 GB.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from bert_course.chapters import pretraining
from bert_course.common.softmax import softmax
from bert_course.stored import stored
from minigrad import no_grad
from minigrad.bert.checkpoint import from_pretrained
from minigrad.bert.config import IGNORED
from minigrad.bert.data import make_batch
from minigrad.stories.floors import OneWay, each_way
from minigrad.stories.grammar import Clause, Facts, Sentence, plan
from minigrad.stories.stories import draw_pairs

PAIRS, PAIRS_SEED, MASKING_SEED, LENGTH = 2000, 2**20, 0, 32
SHARE, HIDDEN, RANDOM = 0.15, 0.8, 0.1  # of the tokens; of the chosen
CASE = ("pairs",)  # of a run: what it was made for
Case = tuple[int]


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    return {"text": pretraining.stories().fingerprint()}


def stages(runs: list[dict[str, Any]]) -> list[list[Case]]:
    """One run."""
    return [[(PAIRS,)]]


# --- All stories -------------------------------------------------------------------------------------------


class _Every(OneWay):
    """A teller that says every word that it may."""

    def __init__(self, path: list[int]) -> None:
        super().__init__(path)
        self.words: list[str] = []
        self.facts = Facts()  # after the sentence

    def say(self, weights: Mapping[str, int], *labels: Any) -> str:
        """One of the words."""
        self.words.append(self.choose(weights))
        return self.words[-1]


def sentences(tell: Callable[[Sentence], Clause], facts: Facts, setting: Any) -> Iterator[Any]:
    """All ways to tell a sentence from some facts on: its words, the facts then, the probability."""

    def one(path: list[int]) -> _Every:
        teller = _Every(path)
        sentence = Sentence(teller, facts, setting)
        tell(sentence)
        teller.facts = sentence.facts
        return teller

    for teller in each_way(one):
        assert isinstance(teller, _Every)
        yield teller.words, teller.facts, teller.probability


class Halves:
    """All halves of stories, by their length: ids (n, length), p (n,), and facts (n,), the number of what links them.

    first: p is the probability of a first half, facts is what is known after it. second: p is the probability of a
    second half after these facts, so a half is there once for each. known: the probability of each of the facts.
    """

    def __init__(self, source: Any) -> None:
        setting = source.setting
        tells = plan(setting, max(setting.sentences))
        ids = {word: source.id(word) for word in setting.words()}
        numbers: dict[Facts, int] = {}
        after: dict[Facts, list[Any]] = {}

        def two(facts: Facts, tell: Any, then: Any) -> Iterator[Any]:
            for words, middle, p in sentences(tell, facts, setting):
                if middle not in after:
                    after[middle] = list(sentences(then, middle, setting))
                for more, end, q in after[middle]:
                    yield [ids[word] for word in (*words, *more)], end, p * q

        found: dict[int, list[Any]] = defaultdict(list)
        for words, end, p in two(Facts(), *tells[:2]):
            found[len(words)].append((words, numbers.setdefault(end, len(numbers)), p))
        self.first = {length: _arrays(rows) for length, rows in found.items()}
        after.clear()
        found = defaultdict(list)
        for facts, number in numbers.items():
            after.clear()
            for words, _, p in two(facts, *tells[2:]):
                found[len(words)].append((words, number, p))
        self.second = {length: _arrays(rows) for length, rows in found.items()}
        self.known = np.zeros(len(numbers))
        for _, p, facts_of in self.first.values():
            np.add.at(self.known, facts_of, p)


def _arrays(rows: list[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    words, numbers, p = zip(*rows, strict=True)
    return np.array(words, np.int16), np.array(p), np.array(numbers)


# --- The best guesser --------------------------------------------------------------------------------------


def likelihood(seen: np.ndarray, chosen: int, mask: int, vocabulary: int) -> np.ndarray:
    """Of each place and each true word how likely it is to see what is seen, (places, V), up to a factor.

    chosen: how many tokens of the pair were. Those that are not hidden are as likely at each place that is not.
    """
    shown = seen != mask
    rate = (chosen - (~shown).sum()) / max(1, shown.sum())  # of a token that is seen: it was chosen
    kept, other = (1 - HIDDEN - RANDOM) / (1 - HIDDEN), RANDOM / (1 - HIDDEN)
    table = np.ones((len(seen), vocabulary))
    table[shown] = rate * other / vocabulary
    table[np.flatnonzero(shown), seen[shown]] += 1 - rate + rate * kept
    return table


def best_losses(
    halves: Halves, inputs: np.ndarray, labels: np.ndarray, cut: int, mask: int, V: int
) -> list[float]:
    """The losses, in nats, of the best guesser on the chosen words of a pair, whose first half has `cut` words."""
    table = likelihood(inputs, int((labels != IGNORED).sum()), mask, V)
    (a, p_a, f_a), (b, p_b, f_b) = halves.first[cut], halves.second[len(inputs) - cut]
    seen_a, seen_b = (
        np.prod([table[at + i][words[:, i]] for i in range(words.shape[1])], axis=0)
        for words, at in ((a, 0), (b, cut))
    )  # (n,), (m,)
    count = len(halves.known)
    of_a = np.bincount(f_a, p_a * seen_a, count)  # by facts
    of_b = np.bincount(f_b, p_b * seen_b, count)
    weights_a = p_a * seen_a * (of_b[f_a] + (halves.known * of_b).sum())
    weights_b = p_b * seen_b * (of_a[f_b] + halves.known[f_b] * of_a.sum())
    losses = []
    for place in np.flatnonzero(labels != IGNORED):
        words, weights, i = (a, weights_a, place) if place < cut else (b, weights_b, place - cut)
        guess = np.bincount(words[:, i], weights / table[place][words[:, i]], V)  # without the place itself
        if inputs[place] != mask:  # it is chosen, so it was kept or replaced
            own = np.full(V, RANDOM / V)
            own[inputs[place]] += 1 - HIDDEN - RANDOM
            guess *= own
        losses.append(-math.log(guess[labels[place]] / guess.sum()))
    return losses


def make(case: Case) -> dict[str, Any]:
    """Score the best guesser and the stored model on the same masked pairs."""
    (pairs,) = case
    source = pretraining.stories()
    tokenizer, halves = source.tokenizer, Halves(source)
    drawn = [source.encode(pair, LENGTH) for pair in draw_pairs(source.setting, pairs, PAIRS_SEED)]
    batch = make_batch(drawn, tokenizer, LENGTH, np.random.default_rng(MASKING_SEED))
    model = from_pretrained(stored("stories")).model.eval()
    with no_grad():
        output = model(**{name: batch[name] for name in ("input_ids", "attention_mask", "token_type_ids")})
    p = softmax(output.prediction_logits.numpy().astype(float))
    best, own = [], []
    for row, pair in enumerate(drawn):
        free = [*range(1, 1 + len(pair.a)), *range(2 + len(pair.a), 2 + len(pair.a) + len(pair.b))]
        inputs, labels = batch["input_ids"][row, free], batch["labels"][row, free]
        best += best_losses(
            halves, inputs, labels, len(pair.a), tokenizer.mask_token_id, tokenizer.vocab_size
        )
        own += [
            -math.log(p[row, place, batch["labels"][row, place]])
            for place in free
            if batch["labels"][row, place] != IGNORED
        ]
    gap = np.subtract(own, best)
    return {
        "pairs": pairs,
        "tokens": len(best),
        "first_halves": sum(len(p) for _, p, _ in halves.first.values()),
        "sum_of_first": round(sum(float(p.sum()) for _, p, _ in halves.first.values()), 9),
        "floor": round(float(np.mean(best)), 4),
        "floor_error": round(float(np.std(best) / math.sqrt(len(best))), 4),
        "model": round(float(np.mean(own)), 4),
        "gap": round(float(gap.mean()), 4),
        "gap_error": round(float(gap.std() / math.sqrt(len(gap))), 4),
    }
