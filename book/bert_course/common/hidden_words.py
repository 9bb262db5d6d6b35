"""Every word of held-out pairs of stories, hidden once, with the exact answer: what a model knows without noise.

The loss is the expected one: not −log of the probability of the word that was there, but the mean of it over all words
that the grammar allows there. So there is no noise from which word was drawn, and no model is below the floor.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bert_course.common.light_stories import LENGTHS, stories
from bert_course.common.softmax import log_softmax
from minigrad import backend
from minigrad.bert.data import make_rows
from minigrad.stories.floors import Scorer
from minigrad.stories.stories import draw_pairs
from minigrad.tensor import no_grad

CERTAIN = 1e-9  # a rival of which less is possible cannot have stood there
HELD_OUT, HELD_OUT_SEED = 150, 2**20  # the pairs of chapter `pretraining`
ROWS_AT_ONCE = 256


@dataclass(frozen=True)
class Questions:
    """Every word of some held-out pairs, hidden once, and the exact answer.

    input_ids, token_type_ids: (n, T), a row for each hidden word. places: where it is, (n,). p: the exact
    probabilities of all words there, (n, V). choices: by slot, the rows in which the other words rule a rival out,
    with the ids of the word that was there and of its rival, (rows, 3).
    """

    input_ids: np.ndarray
    token_type_ids: np.ndarray
    places: np.ndarray
    p: np.ndarray
    choices: Mapping[str, np.ndarray]

    @property
    def floor(self) -> float:
        """The lowest possible mean loss in nats: the mean entropy of p."""
        return float(-(self.p * np.log(np.maximum(self.p, 1e-300))).sum(axis=-1).mean())


@functools.cache
def questions(count: int = HELD_OUT, seed: int = HELD_OUT_SEED, sentences: int = 4) -> Questions:
    """The questions about so many held-out pairs of stories of so many sentences."""
    source, length = stories(sentences), LENGTHS[sentences]
    scorer, tokenizer = Scorer(source.setting), source.tokenizer
    special = [tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id]
    ids, segments, places = [], [], []
    p: list[np.ndarray] = []
    choices: dict[str, list[tuple[int, int, int]]] = {}
    for pair in draw_pairs(source.setting, count, seed):
        row = make_rows([source.encode(pair, length)], tokenizer, length)
        free = np.flatnonzero(~np.isin(row["input_ids"][0], special))
        guesses = scorer.hidden_words(pair.text_a, pair.text_b)
        for place, word, guess in zip(free, pair.words, guesses, strict=True):
            if word.rival is not None and guess.get(word.rival, 0) < CERTAIN:
                known = (len(p), source.id(word.text), source.id(word.rival))
                choices.setdefault(word.slot, []).append(known)
            hidden = row["input_ids"][0].copy()
            hidden[place] = tokenizer.mask_token_id
            exact = np.zeros(tokenizer.vocab_size)
            exact[[source.id(other) for other in guess]] = list(guess.values())
            ids.append(hidden)
            segments.append(row["token_type_ids"][0])
            places.append(place)
            p.append(exact)
    return Questions(
        np.array(ids),
        np.array(segments),
        np.array(places),
        np.array(p),
        {slot: np.array(known) for slot, known in choices.items()},
    )


@dataclass(frozen=True)
class Score:
    """nats: the expected loss of a hidden word. forced: by slot, how often the right word beat a rival ruled out."""

    nats: float
    forced: dict[str, float]


def score(model: Any, asked: Questions) -> Score:
    """What a model knows of held-out pairs."""
    log_q = np.concatenate(
        [
            _log_probabilities(model, asked, slice(start, start + ROWS_AT_ONCE))
            for start in range(0, len(asked.places), ROWS_AT_ONCE)
        ]
    )  # (n, V)
    nats = float(-(asked.p * log_q).sum(axis=-1).mean())
    forced = {
        slot: float((log_q[known[:, 0], known[:, 1]] > log_q[known[:, 0], known[:, 2]]).mean())
        for slot, known in asked.choices.items()
    }
    return Score(nats, forced)


def _log_probabilities(model: Any, asked: Questions, rows: slice) -> np.ndarray:
    with no_grad():
        ids = asked.input_ids[rows]
        output = model(
            ids, attention_mask=ids != model.config.pad_token_id, token_type_ids=asked.token_type_ids[rows]
        )
    logits = backend.to_numpy(output.prediction_logits.data)[np.arange(len(ids)), asked.places[rows]]
    return log_softmax(logits.astype(np.float64))
