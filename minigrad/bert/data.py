"""From documents to batches: sentence pairs, masking, padding (Devlin et al. 2019, section 3.1 and A.1).

The recipe is that of the released `create_pretraining_data.py`, with two differences. There a chunk of one sentence
always gets a random partner, so fewer than half of the pairs are IsNext; here IsNext and NotNext are dealt from a deck
that has as many of each. There the target length is drawn for a document, here for each chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import numpy as np

from minigrad.bert.config import IGNORED
from minigrad.text.corpus import CorpusError
from minigrad.text.sentences import IS_NEXT, RULE, SentencePair
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.training.epochs import Batch, Epochs

TokenDocument = list[list[int]]  # a document as the ids of its sentences

HELD_OUT_BATCHES = 50  # at most, an evaluation: 1,600 pairs of the default batch size
SHARE_CHOSEN = 0.15  # of a row's tokens
LONGEST_SENTENCE = 10_000  # tokens: pairing copies a sentence whole, before it takes off what is too much


def encode_documents(
    documents: Iterable[Iterable[str]],
    tokenizer: WordPieceTokenizer,
    progress: Callable[[int, int], object] | None = None,
) -> list[TokenDocument]:
    """Documents of sentences as ids. Sentences and documents in which nothing is left are dropped.

    A sentence of more than LONGEST_SENTENCE tokens is cut there: it is text in which no end of a sentence was
    found. `progress` is called with (documents done, documents). Raises CorpusError if fewer than two
    documents are left.
    """
    documents = list(documents)
    encoded = []
    for number, document in enumerate(documents, start=1):
        sentences = []
        for sentence in document:
            ids = tokenizer.token_ids(sentence)
            sentences += [ids[i : i + LONGEST_SENTENCE] for i in range(0, len(ids), LONGEST_SENTENCE)]
        if sentences:
            encoded.append(sentences)
        if progress is not None:
            progress(number, len(documents))
    if len(encoded) < 2:
        raise CorpusError(f"at least two documents with text are needed, found {len(encoded)}")
    return encoded


# --- Pairs -----------------------------------------------------------------------------------------------


def create_pairs(
    documents: list[TokenDocument],
    max_length: int,
    rng: np.random.Generator,
    short_sequence_prob: float = 0.1,
) -> list[SentencePair]:
    """Pairs of at most `max_length` tokens, [CLS] and two [SEP] included; one walk over all documents.

    Sentences are gathered up to a target length: nearly always all the room there is, with probability
    `short_sequence_prob` a random shorter one. A is a random number of them; B is the rest, or, equally
    often, about as much from a random place in another document, and then the rest is used again. A chunk of
    one sentence at the end of a document has no next one and is skipped. Raises CorpusError if there is no
    pair.
    """
    room = max_length - 3
    deal = _deal(rng)
    pairs = []
    for number, document in enumerate(documents):
        start = 0
        while start < len(document) - 1:
            target = int(rng.integers(2, room + 1)) if rng.random() < short_sequence_prob else room
            end, size = start, 0
            while end < len(document) and (size < target or end - start < 2):
                size += len(document[end])
                end += 1
            if end - start < 2:
                break
            middle = int(rng.integers(start + 1, end))
            label = next(deal)
            a = [token for sentence in document[start:middle] for token in sentence]
            if label == IS_NEXT:
                b = [token for sentence in document[middle:end] for token in sentence]
                start = end
            else:
                b = _random_run(documents, number, target - len(a), rng)
                start = middle
            pairs.append(SentencePair(*truncate(a, b, room, rng), label))
    if not pairs:
        raise CorpusError(
            f"no document has two sentences, so there is no sentence pair to learn from. {RULE}; for other text, such "
            "as English without capitals, give one sentence a line and a blank line between documents"
        )
    return pairs


def _deal(rng: np.random.Generator) -> Iterator[int]:
    """IS_NEXT and NOT_NEXT, one of each in random order, again and again: both are always there."""
    while True:
        first = int(rng.integers(2))
        yield first
        yield 1 - first


def _random_run(
    documents: list[TokenDocument], number: int, wanted: int, rng: np.random.Generator
) -> list[int]:
    """About `wanted` tokens from a random sentence on, of any document but that of this number."""
    other = int(rng.integers(len(documents) - 1))
    document = documents[other + (other >= number)]
    run: list[int] = []
    for i in range(int(rng.integers(len(document))), len(document)):  # a slice would copy all the rest
        run.extend(document[i])
        if len(run) >= wanted:
            break
    return run


def truncate(a: list[int], b: list[int], room: int, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Take tokens off the longer of the two, at either end by the toss of a coin, until both fit in `room`."""
    tosses = rng.random(max(0, len(a) + len(b) - room)) < 0.5
    alone = min(len(tosses), abs(len(a) - len(b)))  # so many until both are equally long; then B, A, B, …
    of_b = np.zeros(len(tosses), bool)
    of_b[:alone] = len(b) > len(a)
    of_b[alone::2] = True
    front_a, front_b = int((tosses & ~of_b).sum()), int((tosses & of_b).sum())
    keep_b = len(b) - int(of_b.sum())
    keep_a = len(a) - int((~of_b).sum())
    return a[front_a : front_a + keep_a], b[front_b : front_b + keep_b]


# --- Batches ---------------------------------------------------------------------------------------------


def make_rows(pairs: list[SentencePair], tokenizer: WordPieceTokenizer, max_length: int) -> Batch:
    """Pairs as [CLS] A [SEP] B [SEP], padded to `max_length`: input_ids, token_type_ids, attention_mask, all (B, T)."""
    input_ids = np.full((len(pairs), max_length), tokenizer.pad_token_id, np.int64)
    token_type_ids = np.zeros_like(input_ids)
    attention_mask = np.zeros_like(input_ids)
    for row, pair in enumerate(pairs):
        ids = [tokenizer.cls_token_id, *pair.a, tokenizer.sep_token_id, *pair.b, tokenizer.sep_token_id]
        input_ids[row, : len(ids)] = ids
        token_type_ids[row, len(pair.a) + 2 : len(ids)] = 1
        attention_mask[row, : len(ids)] = 1
    return {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}


def make_batch(
    pairs: list[SentencePair], tokenizer: WordPieceTokenizer, max_length: int, rng: np.random.Generator
) -> Batch:
    """Pairs as `make_rows` gives them, masked.

    Returns input_ids, token_type_ids, attention_mask, labels, all (B, T), and next_sentence_label (B,).
    """
    rows = make_rows(pairs, tokenizer, max_length)
    input_ids, labels = mask_tokens(rows["input_ids"], tokenizer, rng)
    labels_of_pairs = np.array([pair.next_sentence_label for pair in pairs])
    return rows | {"input_ids": input_ids, "labels": labels, "next_sentence_label": labels_of_pairs}


def mask_tokens(
    input_ids: np.ndarray,
    tokenizer: WordPieceTokenizer,
    rng: np.random.Generator,
    share: float = SHARE_CHOSEN,
) -> tuple[np.ndarray, np.ndarray]:
    """Choose 15 % of each row's tokens, at least one; replace 80 % of them by [MASK], 10 % by a random token.

    input_ids (B, T) -> masked ids (B, T), and labels (B, T): the true id where a token was chosen, -100
    elsewhere. [CLS], [SEP] and [PAD] are never chosen, but [CLS] and [SEP] count in the 15 %, and the random
    token is any of the vocabulary: both as in the released code.
    """
    free = ~np.isin(input_ids, _never_chosen(tokenizer))
    lengths = (input_ids != tokenizer.pad_token_id).sum(axis=1)
    counts = np.minimum(np.maximum(1, np.rint(share * lengths)), free.sum(axis=1))
    order = np.where(free, rng.random(input_ids.shape), 2).argsort(axis=1).argsort(axis=1)
    chosen = order < counts[:, None]
    labels = np.where(chosen, input_ids, IGNORED)

    fate = rng.random(input_ids.shape)
    random_ids = rng.integers(0, tokenizer.vocab_size, input_ids.shape)
    masked = np.where(chosen & (fate < 0.8), tokenizer.mask_token_id, input_ids)
    masked = np.where(chosen & (fate >= 0.8) & (fate < 0.9), random_ids, masked)
    return masked, labels


def pack_chosen(batch: Batch) -> Batch:
    """A batch of `make_batch` with its chosen tokens in a list of one length, whatever was chosen, for a GPU.

    labels (n,) and masked_lm_positions (n,), which of the B T tokens each is, in row-major order; n is as many as 15 %
    of full rows. The rest is padded with labels of -100 at position 0. (The released code pads each row of its
    masked_lm_positions, with weights of 0.)
    Raises ValueError if more were chosen.
    """
    labels = batch["labels"]
    chosen = np.flatnonzero(labels != IGNORED)
    room = len(labels) * max(1, int(np.rint(SHARE_CHOSEN * labels.shape[1])))
    if len(chosen) > room:
        raise ValueError(f"pack_chosen: {len(chosen)} chosen tokens, of a batch that has room for {room}")
    positions, targets = np.zeros(room, np.int64), np.full(room, IGNORED)
    positions[: len(chosen)], targets[: len(chosen)] = chosen, labels.reshape(-1)[chosen]
    return batch | {"labels": targets, "masked_lm_positions": positions}


def _never_chosen(tokenizer: WordPieceTokenizer) -> list[int]:
    return [tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id]


class PairSource(Protocol):
    """Text that makes its own pairs, in place of documents."""

    def pairs(self, max_length: int, rng: np.random.Generator) -> list[SentencePair]:
        """The pairs of an epoch, of at most `max_length` tokens, [CLS] and two [SEP] included."""

    def tokens(self) -> Iterator[int]:
        """Ids of many words of the text, to count how often each occurs."""


class PretrainingData(Epochs):
    """An endless sequence of batches: each epoch pairs, masks and shuffles the documents anew.

    documents: as `encode_documents` makes them, or a PairSource.

    What is left over at the end of an epoch is not used in it. A pair in which no token can be chosen is
    skipped: a text may have nothing but `[SEP]` in places, and a batch without labels has no loss. Raises
    CorpusError if there is no other pair.
    """

    def __init__(
        self,
        documents: list[TokenDocument] | PairSource,
        tokenizer: WordPieceTokenizer,
        batch_size: int,
        max_length: int,
        seed: int,
    ) -> None:
        if max_length < 5:
            raise ValueError(f"max_length must be at least 5, [CLS] A [SEP] B [SEP]; got {max_length}")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        self.documents, self.tokenizer = documents, tokenizer
        self.batch_size, self.max_length, self.seed = batch_size, max_length, seed
        super().__init__()

    def begin_epoch(self) -> None:
        """Draw the pairs; the batches are whole ones, or a single smaller one."""
        rng = np.random.default_rng([self.seed, 2, self.epoch])
        fixed = set(_never_chosen(self.tokenizer))
        if isinstance(self.documents, list):
            of_epoch = create_pairs(self.documents, self.max_length, rng)
        else:
            of_epoch = self.documents.pairs(self.max_length, rng)
        pairs = [pair for pair in of_epoch if not (fixed.issuperset(pair.a) and fixed.issuperset(pair.b))]
        if not pairs:
            raise CorpusError("every sentence pair is of [CLS], [SEP] and [PAD] alone: nothing to mask")
        self._pairs = [pairs[i] for i in rng.permutation(len(pairs))]
        self.batches_per_epoch = max(1, len(pairs) // self.batch_size)

    def batch_at(self, index: int) -> Batch:
        """The pairs of a batch, masked anew."""
        rng = np.random.default_rng([self.seed, 3, self.epoch, index])
        start = index * self.batch_size
        return make_batch(self._pairs[start : start + self.batch_size], self.tokenizer, self.max_length, rng)


def held_out_batches(
    documents: list[TokenDocument] | PairSource,
    tokenizer: WordPieceTokenizer,
    batch_size: int,
    max_length: int,
    seed: int,
) -> list[Batch]:
    """One epoch of batches, at most HELD_OUT_BATCHES, for evaluations; training with the same seed draws otherwise."""
    data = PretrainingData(documents, tokenizer, batch_size, max_length, seed=seed + 2**32)
    return [data.next_batch() for _ in range(min(HELD_OUT_BATCHES, data.batches_per_epoch))]
