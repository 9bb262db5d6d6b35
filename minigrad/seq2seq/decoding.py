"""Which target to write: greedy search and beam search, over any model that goes one word further at a time."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from minigrad import nn, ops
from minigrad.seq2seq.config import Seq2SeqConfig
from minigrad.tensor import Array, Tensor
from minigrad.training.tally import quiet_overflow

LENGTH_PENALTY = 0.6  # α of a beam search, as in Vaswani et al. 2017, section 6.1
LARGEST_PENALTY = 10  # far beyond use; the divisor of a long target stays a number


class State(Protocol):
    """How far a decoder is with N targets."""

    def select(self, rows: np.ndarray) -> Any:
        """The state of the rows that go on, in this order; a row may come more than once."""


class Translator(Protocol):
    """What a search asks of a model."""

    config: Any
    training: bool

    def train(self, mode: bool = True) -> Any:
        """Switch to training, or to evaluation with mode=False."""

    def encode(self, input_ids: Array, attention_mask: Array | None = None) -> Any:
        """What the decoder needs of the sources."""

    def start(self, memory: Any) -> Any:
        """The state before the first word."""

    def step(self, state: Any, last_ids: Array) -> tuple[Tensor, Any]:
        """One word further: last_ids (N,) -> logits of the next word (N, V), and the state."""


@dataclass
class Hypothesis:
    """A target that a search has written.

    ids: its words, without start and end token. log_probability: log P(ids, end token | source), or without the end
    token where `finished` is false. score: what hypotheses are ranked by, log_probability divided by
    `length_divisor`. finished: whether the model wrote the end token before the maximum length was reached.
    """

    ids: list[int]
    log_probability: float
    score: float
    finished: bool


def length_divisor(length: int, length_penalty: float) -> float:
    """((5 + |Y|) / 6)^α: with α > 0 a long target is not punished for its many factors (Wu et al. 2016, eq. 14).

    length: |Y|, the words of a target with its end token. length_penalty: α. Their coverage penalty is left out.
    """
    return ((5 + length) / 6) ** length_penalty


def greedy_search(
    model: Translator, input_ids: Array, attention_mask: Array | None = None, max_length: int = 100
) -> list[Hypothesis]:
    """The most probable word at each step, until the end token: one hypothesis for each row of input_ids (B, S).

    max_length: the most words of a hypothesis, with its end token. Padding and the start token are never written.
    Of words that are equally probable, the first in the vocabulary is taken. The hypotheses' score is their
    log-probability.

    Runs in evaluation mode without a graph, and leaves the model in its previous mode. Raises ValueError or
    TypeError for a max_length that is not an integer of at least 1, and what the model raises for its inputs.
    """
    _positive_integer("max_length", max_length)
    config = model.config
    with nn.evaluating(model), quiet_overflow():  # logits that are not finite are an error of their own
        state = model.start(model.encode(input_ids, attention_mask))
        hypotheses = [Hypothesis([], 0.0, 0.0, False) for _ in range(len(input_ids))]
        writing = hypotheses  # those without an end token, in the order of the state's rows
        last_ids = np.full(len(writing), config.start_token_id)
        for _ in range(max_length):
            logits, state = model.step(state, last_ids)
            log_p = _log_probabilities(logits, config)  # (N, V)
            last_ids = log_p.argmax(axis=1)  # (N,), the first of equals
            for row, hypothesis in enumerate(writing):
                hypothesis.log_probability += float(log_p[row, last_ids[row]])
                hypothesis.finished = bool(last_ids[row] == config.end_token_id)
                if not hypothesis.finished:
                    hypothesis.ids.append(int(last_ids[row]))
            rows = np.flatnonzero(last_ids != config.end_token_id)
            if not rows.size:
                break
            state, last_ids, writing = state.select(rows), last_ids[rows], [writing[row] for row in rows]
    for hypothesis in hypotheses:
        hypothesis.score = hypothesis.log_probability
    return hypotheses


def beam_search(
    model: Translator,
    input_ids: Array,
    attention_mask: Array | None = None,
    num_beams: int = 4,
    length_penalty: float = LENGTH_PENALTY,
    max_length: int = 100,
) -> list[list[Hypothesis]]:
    """The best hypotheses that a beam finds for each row of input_ids (B, S): at most num_beams, best first.

    A beam holds at most k = num_beams targets without an end token. At each step all words that may follow all of
    them are ranked by log-probability. From the top, the k first continuations without an end token are the new
    beam, and each end token that ranks above the last of these k makes a finished hypothesis. The k finished
    ones of highest score, log P / ((5 + |Y|) / 6)^α with α = length_penalty, are kept.

    A row is done when no target in its beam can get among the kept ones any more: log P only falls, and the divisor
    is largest at max_length, so a target's score cannot rise above log P now / divisor(max_length). So the early end
    changes no result: the search finds what it would find at max_length. It does not follow that this is the
    best of all targets, because a beam discards some.

    Finished hypotheses come first. If there are fewer than num_beams, unfinished ones of length max_length
    follow. Equal ones come in the order in which they were in the beam, at first in the vocabulary's order.
    With num_beams=1 and length_penalty=0 this is greedy search.

    Runs in evaluation mode without a graph, and leaves the model in its previous mode. Raises ValueError or
    TypeError for num_beams or max_length that are not integers of at least 1, for a length_penalty that is
    not a number from 0 to 10, and what the model raises for its inputs.
    """
    _positive_integer("num_beams", num_beams)
    _positive_integer("max_length", max_length)
    if not isinstance(length_penalty, numbers.Real) or not 0 <= length_penalty <= LARGEST_PENALTY:
        raise ValueError(
            f"length_penalty: expected a number of 0 to {LARGEST_PENALTY}, got {length_penalty!r}"
        )
    config = model.config
    with nn.evaluating(model), quiet_overflow():  # logits that are not finite are an error of their own
        state = model.start(model.encode(input_ids, attention_mask))
        beams = [
            Beam(num_beams, length_penalty, max_length, [_Target([config.start_token_id], 0.0)])
            for _ in range(len(input_ids))
        ]
        while searching := [beam for beam in beams if not beam.done]:
            last_ids = np.array([target.ids[-1] for beam in searching for target in beam.live])
            logits, state = model.step(state, last_ids)
            log_p = _log_probabilities(logits, config)  # (N, V)
            rows: list[int] = []  # of the state, from which the new beams go on
            first = 0
            for beam in searching:
                count = len(beam.live)
                parents = beam.advance(log_p[first : first + count], config.end_token_id)
                rows += [first + parent for parent in parents]
                first += count
            state = state.select(np.array(rows, np.int64))
    return [beam.results() for beam in beams]


@dataclass
class _Target:
    """A target without an end token: the start token and its words, and their log-probability."""

    ids: list[int]
    log_probability: float


@dataclass
class Beam:
    """The search for one sentence: targets that may go on, and the best hypotheses that are finished."""

    size: int
    length_penalty: float
    max_length: int
    live: list[_Target]
    finished: list[Hypothesis] = field(default_factory=list)
    done: bool = False

    def advance(self, log_p: np.ndarray, end_token_id: int) -> list[int]:
        """One word further, by log_p (k, V) of what may follow each of the k live targets.

        Returns which of them each target of the new beam goes on from; none where the beam is done.
        """
        before = self.live
        length = len(before[0].ids)  # |Y| with the next word, because the start token does not count
        totals = np.array([[target.log_probability] for target in before]) + log_p  # (k, V)
        parents: list[int] = []
        self.live = []
        for parent, word in _best_first(totals, 2 * self.size):  # at most k of them are end tokens
            ids, total = before[parent].ids, float(totals[parent, word])
            if word == end_token_id:
                self.finished.append(self._hypothesis(ids, total, length, finished=True))
            else:
                self.live.append(_Target([*ids, word], total))
                parents.append(parent)
                if len(self.live) == self.size:
                    break
        self.finished.sort(key=lambda one: -one.score)  # equal ones keep the order in which they came
        del self.finished[self.size :]
        self.done = length == self.max_length or not self._may_improve()
        return [] if self.done else parents

    def _may_improve(self) -> bool:
        """Whether a live target may still get among the finished hypotheses that are kept."""
        if not self.live or len(self.finished) < self.size:
            return bool(self.live)
        longest = length_divisor(self.max_length, self.length_penalty)
        return self.live[0].log_probability / longest > self.finished[-1].score

    def _hypothesis(self, ids: list[int], total: float, length: int, finished: bool) -> Hypothesis:
        return Hypothesis(ids[1:], total, total / length_divisor(length, self.length_penalty), finished)

    def results(self) -> list[Hypothesis]:
        """The best hypotheses, the finished ones first."""
        unfinished = [
            self._hypothesis(target.ids, target.log_probability, self.max_length, finished=False)
            for target in self.live
        ]
        return (self.finished + unfinished)[: self.size]


def _best_first(totals: np.ndarray, count: int) -> Iterator[tuple[int, int]]:
    """The places (row, column) of the `count` largest entries, the first of equals first, without those of -∞."""
    flat = totals.reshape(-1)
    count = min(count, flat.size)
    least = np.partition(flat, flat.size - count)[flat.size - count]
    places = np.flatnonzero((flat >= least) & (flat > -math.inf))
    places = places[np.argsort(-flat[places], kind="stable")][:count]
    return (divmod(int(place), totals.shape[1]) for place in places)


def _log_probabilities(logits: Tensor, config: Seq2SeqConfig) -> np.ndarray:
    """log softmax of logits (N, V) on the host in float64, with -∞ for padding and the start token.

    Raises ValueError for logits that are not finite: a model that has diverged.
    """
    log_p = ops.log_softmax(logits).numpy().astype(np.float64)
    if not np.isfinite(log_p).all():
        raise ValueError("the model's logits are not all finite numbers: has its training diverged?")
    log_p = np.minimum(log_p, 0)  # not above it by a rounding error
    log_p[:, [config.pad_token_id, config.start_token_id]] = -math.inf
    return log_p


def _positive_integer(name: str, value: object) -> None:
    """Raises TypeError unless `value` is an integer, ValueError unless it is at least 1."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise TypeError(f"{name}: expected an integer, got {value!r}")
    if value < 1:
        raise ValueError(f"{name}: expected at least 1, got {value}")
