"""What each attention head of a model looks at in one text: its weights, their entropy, and surface patterns.

A head has its name from its layer and its place in it, both counted from 1: `3-5` is the fifth head of layer 3. A
surface pattern is a rule that needs no grammar, such as "the token before". An even row, which gives every token the
same weight, is the yardstick: it too has some weight on the token before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from minigrad import nn
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.predict import Filling, fill_mask
from minigrad.messages import quoted
from minigrad.text.normalization import is_punctuation
from minigrad.text.tokenizer import Encoding, WordPieceTokenizer
from minigrad.text.wordpiece import CLS, CONTINUES, MASK, SEP, SPECIAL_TOKENS

MOST_TOKENS = 128  # of a text: beyond it a map can no longer be read
PRONOUNCED = 0.25  # of the way from even rows to all weight, from where on a pattern names a head
MIXED = "mixed"  # what the others look at

# name: what it is, as the end of "the weight on …"
PATTERNS = {
    "previous": "the token before",
    "next": "the token after",
    "itself": "the token itself",
    "[CLS]": "[CLS]",
    "[SEP]": "[SEP] and punctuation",
    "same word": "the same word elsewhere",
}


@dataclass(frozen=True)
class Share:
    """How much of its weight a head gives to a pattern, on average over the tokens that have such a place.

    even: what even rows would give. rows: how many tokens have such a place.
    """

    share: float
    even: float
    rows: int

    @property
    def beyond(self) -> float:
        """How far it is from even rows (0) to all of the weight (1); below 0 for less than even rows give."""
        return (self.share - self.even) / (1 - self.even) if self.even < 1 else 0.0


@dataclass(frozen=True)
class Head:
    """One head on one text.

    layer, number: counted from 1. weights: (T, T) in float64, a row for each asking token. entropy: in nats, the mean
    over the rows. shares: of each pattern that has a place in the text.
    """

    layer: int
    number: int
    weights: np.ndarray
    entropy: float
    shares: dict[str, Share]

    @property
    def name(self) -> str:
        """Such as `3-5`."""
        return f"{self.layer}-{self.number}"

    @property
    def strongest(self) -> str:
        """The pattern farthest beyond even rows, of those that at least half of the tokens have a place for."""
        often = [name for name, share in self.shares.items() if 2 * share.rows >= len(self.weights)]
        return max(often, key=lambda name: self.shares[name].beyond)

    @property
    def pattern(self) -> str:
        """The strongest pattern, or MIXED where even that is not pronounced."""
        return self.strongest if self.shares[self.strongest].beyond >= PRONOUNCED else MIXED


@dataclass(frozen=True)
class Look:
    """What the heads of a model look at in a text, or in a pair of them.

    texts: one or two. tokens: T pieces. segments: 0 or 1 for each token. heads: layer by layer. fillings: for the
    place of each [MASK], the likeliest pieces.
    """

    texts: list[str]
    tokens: list[str]
    segments: list[int]
    layers: int
    heads: list[Head]
    fillings: dict[int, list[Filling]]

    @property
    def most_entropy(self) -> float:
        """That of even rows, in nats."""
        return float(np.log(len(self.tokens)))

    def pronounced(self) -> list[Head]:
        """The heads that a pattern names, the most pronounced first."""
        named = [head for head in self.heads if head.pattern != MIXED]
        return sorted(named, key=lambda head: -head.shares[head.pattern].beyond)


def look(
    model: BertForPreTraining, tokenizer: WordPieceTokenizer, text: str, pair: str | None = None, top: int = 5
) -> Look:
    """Let the model read a text, or two as a pair, without dropout, and look at all of its heads.

    top: how many fillings each [MASK] gets. Raises ValueError for a text without tokens, one of more tokens than
    MOST_TOKENS or than the model has positions, a pair where the model knows one kind of segment only, a model without
    layers, and if the weights are so large that its numbers are not finite.
    """
    config = model.config
    if not config.num_hidden_layers:
        raise ValueError("this model has no layers, and so no heads to look at")
    if pair is not None and config.type_vocab_size < 2:
        raise ValueError(
            "this model knows one kind of segment only (its type_vocab_size is 1): it reads one text, not two"
        )
    for name, part in (("text", text), ("second text", pair)):
        if part is not None and not tokenizer.token_ids(part):
            raise ValueError(f"the {name} has no tokens: {quoted(part)}")
    encoding = tokenizer.encode(text, pair)
    _require_room(len(encoding), config.max_position_embeddings)
    weights = _weights(model, encoding)  # (N, A, T, T)
    places = surface_patterns(encoding.tokens)
    heads = [
        Head(layer, number, matrix, _entropy(matrix), _shares(matrix, places))
        for layer, of_layer in enumerate(weights, start=1)
        for number, matrix in enumerate(of_layer, start=1)
    ]
    masks = [place for place, token in enumerate(encoding.tokens) if token == MASK]
    fillings = fill_mask(model, tokenizer, text, top, pair) if masks else []
    return Look(
        [text] if pair is None else [text, pair],
        encoding.tokens,
        encoding.token_type_ids,
        len(weights),
        heads,
        dict(zip(masks, fillings, strict=True)),
    )


def _require_room(length: int, positions: int) -> None:
    if length > positions:
        raise ValueError(
            f"the text has {length} tokens with [CLS] and [SEP], more than the {positions} positions of this model: "
            "look at a shorter part"
        )
    if length > MOST_TOKENS:
        raise ValueError(
            f"the text has {length} tokens with [CLS] and [SEP], and a page has room for {MOST_TOKENS}: look at a "
            "shorter part"
        )


def _weights(model: BertForPreTraining, encoding: Encoding) -> np.ndarray:
    """The attention weights of one text, (N, A, T, T) in float64."""
    with nn.evaluating(model), np.errstate(over="ignore", invalid="ignore"):  # the weights are looked at
        attentions = model.bert(
            np.array([encoding.input_ids]),
            token_type_ids=np.array([encoding.token_type_ids]),
            output_attentions=True,
        ).attentions
    weights = np.concatenate([of_layer.numpy() for of_layer in attentions]).astype(np.float64)
    if not np.isfinite(weights).all():
        raise ValueError(
            "the attention weights are not finite (nan or inf): the model's weights are too large"
        )
    return weights


def surface_patterns(tokens: list[str]) -> dict[str, np.ndarray]:
    """Where each pattern finds its tokens: booleans (T, T), True where the row's token finds it in the column's.

    But for "itself", no token finds itself. The same word is one of the same pieces, and no special token or
    punctuation mark.
    """
    n = len(tokens)
    itself = np.eye(n, dtype=bool)
    ends = np.array([token == SEP or is_punctuation(token.removeprefix(CONTINUES)) for token in tokens])
    words, of_word = _words(tokens)
    named = np.array([words[i] not in SPECIAL_TOKENS and not is_punctuation(words[i]) for i in of_word])
    equal = np.array([[words[i] == words[j] and i != j for j in of_word] for i in of_word])
    return {
        "previous": np.eye(n, k=-1, dtype=bool),
        "next": np.eye(n, k=1, dtype=bool),
        "itself": itself,
        "[CLS]": np.array([token == CLS for token in tokens]) & ~itself,
        "[SEP]": ends & ~itself,
        "same word": equal & named[:, None],
    }


def _words(tokens: list[str]) -> tuple[list[str], list[int]]:
    """The words that the pieces make up, and for each piece which of them it belongs to."""
    words: list[str] = []
    of_word = []
    for token in tokens:
        if token.startswith(CONTINUES) and words:
            words[-1] += token
        else:
            words.append(token)
        of_word.append(len(words) - 1)
    return words, of_word


def _shares(weights: np.ndarray, places: dict[str, np.ndarray]) -> dict[str, Share]:
    """The share of each pattern that has a place, on average over the rows that have one."""
    found = {}
    for name, where in places.items():
        rows = where.any(axis=1)
        if rows.any():
            share = (weights * where).sum(axis=1)[rows].mean()
            found[name] = Share(float(share), float(where[rows].mean()), int(rows.sum()))
    return found


def _entropy(weights: np.ndarray) -> float:
    """The mean over the rows of -Σ w log w, in nats."""
    logarithms = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return float(-(weights * logarithms).sum(axis=1).mean())
