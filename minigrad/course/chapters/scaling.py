"""Models of several sizes, trained on several amounts of text whose best possible loss is known: chapter `scaling`.

The text is the light stories of `pretraining`, the task is the hidden words alone. The loss of a model is its expected
loss on one hidden word: not −log of the probability of the word that was there, but the mean of it over all words that
the grammar allows there. So there is no noise from which word was drawn, and no model is below the floor.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad import backend, optim, random
from minigrad.bert.config import BertConfig
from minigrad.bert.data import PretrainingData, make_rows
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.training import parameter_groups
from minigrad.course.furniture.fit import descend
from minigrad.course.furniture.light_stories import BATCH, DECAY, LENGTH, small_config, stories
from minigrad.stories.floors import Scorer
from minigrad.stories.stories import STORIES_AN_EPOCH, Stories, draw_pairs
from minigrad.tensor import no_grad
from minigrad.text.sentences import SentencePair

LAYERS, HEAD = 2, 16  # layers of every model, and the width of each head
WARMUP_SHARE = 0.1  # of the steps
CERTAIN = 1e-9  # a rival of which less is possible cannot have stood there
HELD_OUT, HELD_OUT_SEED = 150, 2**20  # the pairs of chapter `pretraining`
ROWS_AT_ONCE = 256

# Devlin et al. 2019, Table 6: layers, width, heads, perplexity of hidden words, accuracy in % on MultiNLI
TABLE_6 = (
    (3, 768, 12, 5.84, 77.9),
    (6, 768, 3, 5.24, 80.6),
    (6, 768, 12, 4.68, 81.9),
    (12, 768, 12, 3.99, 84.4),
    (12, 1024, 16, 3.54, 85.7),
    (24, 1024, 16, 3.23, 86.6),
)


def config_of(width: int) -> BertConfig:
    """A model of this width: two layers, heads of 16 features, a feed-forward layer four times as wide."""
    return small_config(
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=LAYERS,
        num_attention_heads=width // HEAD,
    )


def layer_parameters(config: BertConfig) -> int:
    """The parameters of the layers, without embeddings and heads: 12 d² + 13 d a layer, where d_ff is 4 d."""
    d, d_ff = config.hidden_size, config.intermediate_size
    return config.num_hidden_layers * (4 * d * (d + 1) + d_ff * (d + 1) + d * (d_ff + 1) + 4 * d)


# --- The text --------------------------------------------------------------------------------------------


class _Fixed(Stories):
    """The same pairs again and again, in another order and masked anew each time."""

    count: int

    def pairs(self, max_length: int, rng: np.random.Generator) -> list[SentencePair]:
        """At least as many as an epoch of fresh pairs has, so that no batch is cut short."""
        once = [self.encode(pair, max_length) for pair in draw_pairs(self.setting, self.count, seed=1)]
        times = -(-STORIES_AN_EPOCH // len(once))
        order = np.concatenate([rng.permutation(len(once)) for _ in range(times)])
        return [once[i] for i in order]


def batches_of(pairs: int | None, seed: int) -> PretrainingData:
    """Endless batches of BATCH pairs: fresh ones, or (pairs) so many fixed ones."""
    source: Stories = stories()
    if pairs is not None:
        source = _Fixed(source.setting)
        source.count = pairs
    return PretrainingData(source, source.tokenizer, BATCH, LENGTH, seed)


# --- Training --------------------------------------------------------------------------------------------


def train(
    width: int, pairs: int | None, rate: float, steps: int, seed: int, points: Sequence[int]
) -> Iterator[tuple[int, BertForPreTraining]]:
    """Train for so many steps; stops at each of `points` and gives the step and the model, which may be asked there.

    The loss of the hidden words, AdamW with weight decay on the matrices, gradients clipped at norm 1, a linear
    warm-up over a tenth of the steps to `rate`, then a linear fall to 0 at the last step.
    """
    random.manual_seed(seed)
    model = BertForPreTraining(config_of(width))
    optimizer = optim.AdamW(parameter_groups(model, DECAY), lr=rate, eps=1e-6)
    schedule = optim.LinearWarmupDecay(optimizer, max(1, round(WARMUP_SHARE * steps)), steps)
    data = batches_of(pairs, seed)
    backend.of(next(model.parameters()).data).keep_freed_memory()
    if 0 in points:
        yield 0, model
    for step in range(1, steps + 1):
        descend(model, model(**data.next_batch()).mlm_loss, optimizer, schedule)
        if step in points:
            yield step, model


# --- What a model knows ----------------------------------------------------------------------------------


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
def questions(count: int = HELD_OUT, seed: int = HELD_OUT_SEED) -> Questions:
    """The questions about so many held-out pairs."""
    source = stories()
    scorer, tokenizer = Scorer(source.setting), source.tokenizer
    special = [tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id]
    ids, segments, places = [], [], []
    p: list[np.ndarray] = []
    choices: dict[str, list[tuple[int, int, int]]] = {}
    for pair in draw_pairs(source.setting, count, seed):
        row = make_rows([source.encode(pair, LENGTH)], tokenizer, LENGTH)
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
    x = logits.astype(np.float64)
    x -= x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
