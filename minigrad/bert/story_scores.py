"""What a model knows of stories, beside the best that can be known: one hidden word at a time, and what follows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from minigrad import backend, nn
from minigrad.bert.data import make_rows
from minigrad.bert.model import BertForPreTraining
from minigrad.stories.floors import Scorer
from minigrad.stories.stories import Pair, Stories
from minigrad.tensor import no_grad
from minigrad.text.sentences import IS_NEXT

CERTAIN = 1e-9  # a rival of which less is possible cannot have stood there


@dataclass(frozen=True)
class Score:
    """Means over `count` guesses.

    nats, accuracy: of the model. floor, best: of a model that knows the grammar. forced: how often the model
    found the word that was there likelier than its rival, where the other words rule the rival out; None
    where they never do. choices: how often they did.
    """

    nats: float
    floor: float
    accuracy: float
    best: float
    forced: float | None
    choices: int
    count: int


def score_stories(
    model: BertForPreTraining,
    stories: Stories,
    pairs: Sequence[Pair],
    scorer: Scorer,
    progress: Callable[[int, int], object] | None = None,
) -> dict[str, Score]:
    """The scores of each slot, of `all` words, and of `next`: whether B goes on from A.

    Each word of each pair is hidden once, all others seen. progress: called with (pairs done, pairs). Raises
    ValueError for a pair that is longer than the model has positions.
    """
    found: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    with nn.evaluating(model):
        for number, pair in enumerate(pairs, start=1):
            guesses = scorer.hidden_words(pair.text_a, pair.text_b)
            log_p, log_next = log_probabilities(model, stories, pair)
            for word, guess, row in zip(pair.words, guesses, log_p, strict=True):
                forced = float("nan")
                if word.rival is not None and guess.get(word.rival, 0) < CERTAIN:
                    forced = float(row[stories.id(word.text)] > row[stories.id(word.rival)])
                hit = float(row.argmax() == stories.id(word.text))
                of_word = (
                    -float(row[stories.id(word.text)]),
                    -log(guess[word.text]),
                    hit,
                    max(guess.values()),
                    forced,
                )
                found[word.slot].append(of_word)
                found["all"].append(of_word)
            p = scorer.is_next(pair.text_a, pair.text_b)
            label = pair.next_sentence_label
            best = -log(p if label == IS_NEXT else 1 - p)
            hit = float(log_next[-1].argmax() == label)
            found["next"].append((-float(log_next[-1, label]), best, hit, max(p, 1 - p), float("nan")))
            if progress is not None:
                progress(number, len(pairs))
    return {slot: _mean(rows) for slot, rows in sorted(found.items())}


def _mean(rows: list[tuple[float, ...]]) -> Score:
    table = np.array(rows)
    forced = table[:, 4][~np.isnan(table[:, 4])]
    nats, floor, accuracy, best = table[:, :4].mean(axis=0).tolist()
    share = float(forced.mean()) if len(forced) else None
    return Score(nats, floor, accuracy, best, share, len(forced), len(rows))


def log_probabilities(
    model: BertForPreTraining, stories: Stories, pair: Pair
) -> tuple[np.ndarray, np.ndarray]:
    """Log probabilities of the vocabulary at each word's place, with that word hidden, (words, V); of the pair's labels
    with that word hidden and, last, with all seen, (words + 1, 2)."""
    encoded = stories.encode(pair, model.config.max_position_embeddings)
    length = len(encoded.a) + len(encoded.b) + 3
    whole = make_rows([encoded], stories.tokenizer, length)
    ids = whole["input_ids"][0]
    special = [stories.tokenizer.cls_token_id, stories.tokenizer.sep_token_id]
    places = np.flatnonzero(~np.isin(ids, special))
    rows = np.tile(ids, (len(places) + 1, 1))  # the last row is the whole pair
    rows[np.arange(len(places)), places] = stories.tokenizer.mask_token_id
    with no_grad():
        output = model(rows, token_type_ids=np.tile(whole["token_type_ids"], (len(rows), 1)))
    logits = backend.to_numpy(output.prediction_logits.data)[np.arange(len(places)), places]  # (words, V)
    return _log_softmax(logits), _log_softmax(backend.to_numpy(output.seq_relationship_logits.data))


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    x = np.asarray(logits, dtype=np.float64)
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
