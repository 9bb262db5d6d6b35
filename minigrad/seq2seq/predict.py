"""Using a model that translates: texts in, texts out, and which word of the source each word was made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from minigrad import nn
from minigrad.messages import quoted
from minigrad.seq2seq.checkpoint import TranslationModel
from minigrad.seq2seq.data import pad_pairs
from minigrad.seq2seq.decoding import LENGTH_PENALTY, Hypothesis, Translator, beam_search, greedy_search
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import CONTINUES

LONGEST = 100  # pieces of a translation, where nobody says what the model was trained on


@dataclass(frozen=True)
class TranslatedText:
    """A translation.

    text: as it is read. ids: its pieces, without start and end token. words: the same as words, punctuation marks
    apart. source: the words of the text as the model has read them. log_probability: of the whole translation in
    nats. finished: whether the model wrote an end token before the maximum length was reached. unknown: words
    of the text that the vocabulary has no pieces for, which the model has read as [UNK].
    """

    text: str
    ids: list[int]
    words: list[str]
    source: list[str]
    log_probability: float
    finished: bool
    unknown: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Aligned:
    """The attention of a translation, word by word.

    target, source: their words, each with the end token as its last. weights (T, S): how much of its attention the
    model has on each source word, when it writes each target word; each row sums to 1. The weights of the
    pieces of a source word are added up, those of a target word averaged.
    """

    target: list[str]
    source: list[str]
    weights: np.ndarray

    def highest(self) -> list[int]:
        """For each word of the target, the index of the source word with the highest weight."""
        return [int(place) for place in self.weights.argmax(axis=1)]


def translate(
    model: Translator,
    tokenizer: WordPieceTokenizer,
    texts: Sequence[str],
    num_beams: int = 1,
    max_length: int | None = None,
    batch_size: int = 32,
    length_penalty: float = LENGTH_PENALTY,
) -> list[TranslatedText]:
    """The translations of some texts: the best of a beam search, or with num_beams=1 of greedy search.

    A text without words has an empty translation. max_length: the most pieces that a text, and its translation, may
    have with the end token; None: no limit for the text, and 100 for the translation. length_penalty: of the
    beam search. Raises TypeError if `texts` is one string; ValueError naming the text that has too many
    pieces, and what the search raises.
    """
    if isinstance(texts, str):
        raise TypeError("texts is one string: give a list of strings, [text]")
    sources = [_source_ids(tokenizer, text, number, max_length) for number, text in enumerate(texts, start=1)]
    with_words = [i for i, ids in enumerate(sources) if ids]
    searched = translate_ids(
        model, [sources[i] for i in with_words], num_beams, max_length or LONGEST, batch_size, length_penalty
    )
    found = [Hypothesis([], 0.0, 0.0, finished=True)] * len(sources)
    for i, one in zip(with_words, searched, strict=True):
        found[i] = one
    return [
        TranslatedText(
            text=tokenizer.decode(one.ids),
            ids=one.ids,
            words=words_of(tokenizer, one.ids),
            source=words_of(tokenizer, ids),
            log_probability=one.log_probability,
            finished=one.finished,
            unknown=_unknown(tokenizer, text) if tokenizer.unk_token_id in ids else [],
        )
        for text, ids, one in zip(texts, sources, found, strict=True)
    ]


def translate_ids(
    model: Translator,
    sources: Sequence[Sequence[int]],
    num_beams: int,
    max_length: int,
    batch_size: int,
    length_penalty: float = LENGTH_PENALTY,
) -> list[Hypothesis]:
    """The best hypothesis for each source, given as ids without start and end token; long sources go together."""
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    found: dict[int, Hypothesis] = {}
    config = model.config
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        batch = pad_pairs([(sources[i], []) for i in chosen], config.end_token_id, config.pad_token_id)
        ids, mask = batch["input_ids"], batch["attention_mask"]
        if num_beams == 1:
            hypotheses = greedy_search(model, ids, mask, max_length=max_length)
        else:
            beams = beam_search(model, ids, mask, num_beams, length_penalty, max_length)
            hypotheses = [beam[0] for beam in beams]
        found.update(zip(chosen, hypotheses, strict=True))
    return [found[i] for i in range(len(sources))]


def _source_ids(tokenizer: WordPieceTokenizer, text: str, number: int, max_length: int | None) -> list[int]:
    ids = tokenizer.token_ids(text)
    if max_length is not None and len(ids) + 1 > max_length:
        raise ValueError(
            f"text {number} has {len(ids) + 1} pieces with the end token, max_length is {max_length} (by default, what "
            f"the model was trained on): split it; it begins {quoted(text, 60)}"
        )
    return ids


def _unknown(tokenizer: WordPieceTokenizer, text: str) -> list[str]:
    """The words between white space of which a part is [UNK], each once."""
    return list(dict.fromkeys(w for w in text.split() if tokenizer.unk_token_id in tokenizer.token_ids(w)))


def words_of(tokenizer: WordPieceTokenizer, ids: Sequence[int]) -> list[str]:
    """The words of which these are the pieces; a punctuation mark is a word of its own."""
    words: list[str] = []
    for token in map(tokenizer.id_to_token, ids):
        if token.startswith(CONTINUES) and words:
            words[-1] += token.removeprefix(CONTINUES)
        else:
            words.append(token)
    return words


# --- Alignments ------------------------------------------------------------------------------------------


def align(
    model: TranslationModel, tokenizer: WordPieceTokenizer, source: str, target: str | Sequence[int]
) -> Aligned:
    """The attention of a model over the words of `source` while it writes `target`, given word by word.

    target: a text, or the ids of its pieces (`TranslatedText.ids`).

    For a Transformer, it is the mean over all heads of all layers of the decoder. Raises ValueError for a
    model without attention, and for a text that has no words.
    """
    source_ids = _source_ids(tokenizer, source, 1, None)
    target_ids = _source_ids(tokenizer, target, 2, None) if isinstance(target, str) else list(target)
    for number, (ids, text) in enumerate([(source_ids, source), (target_ids, target)], start=1):
        if not ids and isinstance(text, str):
            raise ValueError(f"text {number} has no words: {quoted(text, 60)}")
    config = model.config
    batch = pad_pairs([(source_ids, target_ids)], config.end_token_id, config.pad_token_id)
    with nn.evaluating(model):
        given = model(**batch, output_attentions=True).cross_attentions
    if not given:
        raise ValueError(
            "this model has no attention over the source, so nothing says which word is from which"
        )
    layers = [weights.numpy()[0].astype(np.float64) for weights in given]  # each (T, S) or (h, T, S)
    layers = [layer.reshape(-1, *layer.shape[-2:]).mean(axis=0) for layer in layers]  # (T, S) each
    weights = np.mean(layers, axis=0)  # (T, S)
    source_ids, target_ids = [*source_ids, tokenizer.sep_token_id], [*target_ids, tokenizer.sep_token_id]
    by_source = [weights[:, group].sum(axis=1) for group in _groups(tokenizer, source_ids)]
    weights = np.stack(by_source, axis=1)
    weights = np.stack([weights[group].mean(axis=0) for group in _groups(tokenizer, target_ids)])
    return Aligned(words_of(tokenizer, target_ids), words_of(tokenizer, source_ids), weights)


def _groups(tokenizer: WordPieceTokenizer, ids: Sequence[int]) -> list[list[int]]:
    """The places of each word's pieces, as `words_of` joins them."""
    groups: list[list[int]] = []
    for place, token in enumerate(map(tokenizer.id_to_token, ids)):
        if token.startswith(CONTINUES) and groups:
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups
