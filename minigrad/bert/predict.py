"""Using a pre-trained model: fill a mask, judge whether one sentence follows another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minigrad import nn
from minigrad.bert.config import BertConfig
from minigrad.bert.model import BertForPreTraining
from minigrad.messages import quoted, shown
from minigrad.text.tokenizer import Encoding, WordPieceTokenizer


@dataclass(frozen=True)
class Filling:
    """A piece for a [MASK], and its probability.

    token: as the vocabulary has it; what prints it uses `messages.shown`, since a vocabulary may have control
    characters in it.
    """

    token: str
    probability: float


def fill_mask(
    model: BertForPreTraining, tokenizer: WordPieceTokenizer, text: str, top: int = 5, pair: str | None = None
) -> list[list[Filling]]:
    """The `top` most likely pieces for each [MASK] in `text`, or in `text` and `pair`, most likely first.

    Raises ValueError if there is no [MASK], more tokens than the model has positions, or `top` is below 1, and if
    the weights are so large that the scores are not finite.
    """
    if top < 1:
        raise ValueError(f"top must be at least 1, got {top}")
    encoding = tokenizer.encode(text, pair)
    places = [i for i, token in enumerate(encoding.input_ids) if token == tokenizer.mask_token_id]
    if not places:
        capitals = ": write it in capitals" if "[mask]" in text.lower() else ""
        raise ValueError(f"there is no [MASK] in {quoted(text)}{capitals}")
    scores, _ = _logits(model, encoding)  # (T, V)
    fillings = []
    for place in places:
        of_pieces = scores[place, : tokenizer.vocab_size]  # a padded table has rows for none
        probabilities = np.exp(of_pieces - of_pieces.max())
        probabilities /= probabilities.sum()
        best = np.argsort(-probabilities, kind="stable")[:top]
        fillings.append([Filling(tokenizer.id_to_token(int(i)), float(probabilities[i])) for i in best])
    return fillings


def describe_fillings(fillings: list[Filling]) -> str:
    """Pieces with their probabilities, as a line for the reader."""
    return "  ".join(f"{shown(filling.token)} {filling.probability:.0%}" for filling in fillings)


def fits(text: str, tokenizer: WordPieceTokenizer, config: BertConfig) -> bool:
    """Whether a model of these sizes has a position for each token of a text."""
    return len(tokenizer.encode(text)) <= config.max_position_embeddings


def next_sentence(model: BertForPreTraining, tokenizer: WordPieceTokenizer, a: str, b: str) -> float:
    """The probability that `b` follows `a`.

    Raises ValueError if one of them has no tokens, they are too long for the model's positions, or the model
    has one kind of segment only, and if the weights are so large that the scores are not finite.
    """
    if model.config.type_vocab_size < 2:
        raise ValueError(
            "this model knows one kind of segment only (its type_vocab_size is 1): it cannot tell two sentences apart"
        )
    for name, text in (("first", a), ("second", b)):
        if not tokenizer.token_ids(text):
            raise ValueError(f"the {name} sentence has no tokens: {quoted(text)}")
    _, relation = _logits(model, tokenizer.encode(a, b))  # (2,), class 0 is IsNext
    with np.errstate(over="ignore"):  # an infinite odds ratio is a probability of 0
        return float(1 / (1 + np.exp(relation[1] - relation[0])))


def _logits(model: BertForPreTraining, encoding: Encoding) -> tuple[np.ndarray, np.ndarray]:
    """Both heads' scores for one input in float64: (T, V) and (2,); without dropout."""
    with nn.evaluating(model), np.errstate(over="ignore", invalid="ignore"):  # the scores are looked at
        output = model(np.array([encoding.input_ids]), token_type_ids=np.array([encoding.token_type_ids]))
    scores, relation = output.prediction_logits.numpy()[0], output.seq_relationship_logits.numpy()[0]
    if not (np.isfinite(scores).all() and np.isfinite(relation).all()):
        raise ValueError("the model's scores are not finite (nan or inf): its weights are too large")
    return scores.astype(np.float64), relation.astype(np.float64)
