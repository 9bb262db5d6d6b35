"""WordPiece: texts to the ids that BERT reads, and back.

The path of a text: it is brought into one spelling and split into words (`normalization.py`), then each word
is cut, longest match first, into pieces of a vocabulary (learned by `wordpiece.py`). A piece that continues a
word begins with `##`.

Both directions agree exactly with `BertWordPieceTokenizer` of Hugging Face's `tokenizers`. Not handled:
overflowing windows, tokens added later; `bert/features.py` has offsets into the text.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from minigrad.messages import quoted
from minigrad.text.normalization import WHITE_SPACE, chunks, normalize, pre_tokenize
from minigrad.text.wordpiece import CLS, CONTINUES, LONGEST_WORD, MASK, PAD, SEP, SPECIAL_TOKENS, UNK

CHUNKS_REMEMBERED = 100_000  # entries after which a cache starts again from empty
LONGEST_REMEMBERED = 64  # characters: a longer chunk is unlikely to come again

SPECIAL_TOKEN = re.compile("(" + "|".join(map(re.escape, SPECIAL_TOKENS)) + ")")


@dataclass
class Encoding:
    """One text, or one pair of texts, as the model reads it: three lists of one length."""

    input_ids: list[int]  # [CLS] text [SEP], for a pair [CLS] text [SEP] pair [SEP]; then padding
    token_type_ids: list[int]  # 0 for [CLS] text [SEP], 1 for pair [SEP], 0 for padding
    attention_mask: list[int]  # 1 for a token, 0 for padding
    _vocab: list[str] = field(repr=False, compare=False, default_factory=list)

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def tokens(self) -> list[str]:
        """The pieces behind `input_ids`."""
        return [self._vocab[i] for i in self.input_ids]


class WordPieceTokenizer:
    """Cuts texts into the pieces of a vocabulary, and joins pieces back into text.

    `vocab` has the pieces in the order of their ids, or maps a piece to its id (ids 0, 1, 2, …). If a piece
    occurs twice, the last id counts, and an empty piece occurs in no text: published vocabularies have both.
    `lower_case` is True for an uncased vocabulary, False for a cased one. `strip_accents` says whether é
    becomes e; None follows `lower_case`. A word of more than `max_input_chars_per_word` characters becomes
    [UNK] unseen. `tokenize_chinese_chars` says whether each Chinese character is a word.

    Raises ValueError if a piece has a line break in it, if the ids have gaps, or if one of the five special tokens is
    missing. Source: `BertWordPieceTokenizer` of `tokenizers`.
    """

    def __init__(
        self,
        vocab: Sequence[str] | Mapping[str, int],
        lower_case: bool = True,
        strip_accents: bool | None = None,
        max_input_chars_per_word: int = LONGEST_WORD,
        tokenize_chinese_chars: bool = True,
    ) -> None:
        self.vocab = _in_order_of_ids(vocab) if isinstance(vocab, Mapping) else list(vocab)
        _check_vocab(self.vocab)
        self.lower_case = lower_case
        self.strip_accents = strip_accents
        self.max_input_chars_per_word = max_input_chars_per_word
        self.tokenize_chinese_chars = tokenize_chinese_chars
        self._ids = {piece: i for i, piece in enumerate(self.vocab)}
        self.pad_token_id = self._ids[PAD]
        self.unk_token_id = self._ids[UNK]
        self.cls_token_id = self._ids[CLS]
        self.sep_token_id = self._ids[SEP]
        self.mask_token_id = self._ids[MASK]
        self._special_ids = {self._ids[token] for token in SPECIAL_TOKENS}
        self._longest_piece = max(map(len, self.vocab))
        self._word_ids = _Remember(self._cut_word)
        self._chunk_ids = _Remember(self._cut_chunk)

    # --- The vocabulary ----------------------------------------------------------------------------------

    @property
    def vocab_size(self) -> int:
        """How many pieces there are."""
        return len(self.vocab)

    def fingerprint(self) -> str:
        """A hash of the pieces and of how a text is brought into one spelling: another tokenizer has another one."""
        content = [self.vocab, *self.spelling.values(), self.max_input_chars_per_word]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]

    def token_to_id(self, token: str) -> int | None:
        """The id of a piece; None if the vocabulary does not have it."""
        return self._ids.get(token)

    def id_to_token(self, token_id: int) -> str:
        """The piece of an id. Raises ValueError if there is none."""
        if not 0 <= token_id < len(self.vocab):
            raise ValueError(
                f"id {token_id} is not in the vocabulary: ids go from 0 to {len(self.vocab) - 1}"
            )
        return self.vocab[token_id]

    # --- Text to ids -------------------------------------------------------------------------------------

    @property
    def spelling(self) -> dict[str, Any]:
        """How a text is brought into the spelling of this vocabulary: the options of `normalize`."""
        return {
            "lower_case": self.lower_case,
            "strip_accents": self.strip_accents,
            "tokenize_chinese_chars": self.tokenize_chinese_chars,
        }

    def token_ids(self, text: str) -> list[int]:
        """The ids of a text, without [CLS] and [SEP]: the fast way through a corpus.

        A special token in the text, such as [MASK], becomes its id wherever it occurs. Raises TypeError if
        `text` is not a string.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")
        ids = []
        for part in SPECIAL_TOKEN.split(text):
            if part in SPECIAL_TOKENS:
                ids.append(self._ids[part])
            else:
                ids.extend(chain.from_iterable(map(self._chunk_ids.__getitem__, chunks(part))))
        return ids

    def tokenize(self, text: str) -> list[str]:
        """The pieces of a text, without [CLS] and [SEP]."""
        return [self.vocab[i] for i in self.token_ids(text)]

    def _cut_chunk(self, chunk: str) -> tuple[int, ...]:
        """The ids of a raw chunk of text without white space."""
        return tuple(chain.from_iterable(map(self.word_ids, pre_tokenize(normalize(chunk, **self.spelling)))))

    def word_ids(self, word: str) -> tuple[int, ...]:
        """The ids of one of the words that `pre_tokenize` makes of a normalised text."""
        return self._word_ids[word]

    def _cut_word(self, word: str) -> tuple[int, ...]:
        """Cut off the longest piece that the word begins with, again and again; [UNK] if there is none."""
        if len(word) > self.max_input_chars_per_word:
            return (self.unk_token_id,)
        ids = []
        start = 0
        while start < len(word):
            prefix = CONTINUES if start else ""
            for end in range(min(len(word), start + self._longest_piece), start, -1):
                piece_id = self._ids.get(prefix + word[start:end])
                if piece_id is not None:
                    break
            else:
                return (self.unk_token_id,)
            ids.append(piece_id)
            start = end
        return tuple(ids)

    def encode(self, text: str, pair: str | None = None, max_length: int | None = None) -> Encoding:
        """A text, or two texts as a pair, with [CLS] and [SEP].

        At most `max_length` tokens, special tokens included, are kept; see `longest_first`. Raises ValueError if that
        leaves no room for the special tokens.
        """
        first = self.token_ids(text)
        second = None if pair is None else self.token_ids(pair)
        if max_length is not None:
            room = max_length - (2 if pair is None else 3)
            if room < 0:
                raise ValueError(
                    f"max_length is {max_length}: [CLS] and [SEP] alone need {max_length - room}"
                )
            keep_first, keep_second = longest_first(len(first), len(second or ()), room)
            first = first[:keep_first]
            second = None if second is None else second[:keep_second]
        ids = [self.cls_token_id, *first, self.sep_token_id]
        types = [0] * len(ids)
        if second is not None:
            ids += [*second, self.sep_token_id]
            types += [1] * (len(second) + 1)
        return Encoding(ids, types, [1] * len(ids), self.vocab)

    def encode_batch(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        max_length: int | None = None,
        pad_to: int | None = None,
    ) -> list[Encoding]:
        """Encode many texts, or pairs of texts, and pad them to one length: `pad_to`, or that of the longest.

        `max_length` cuts each as in `encode`. Raises TypeError if `texts` or `pairs` is one string,
        ValueError if there are more or fewer `pairs` than `texts`, or if an encoding is longer than `pad_to`.
        """
        if isinstance(texts, str) or isinstance(pairs, str):
            raise TypeError("a batch is a list of strings: for one text use encode(text)")
        second: Sequence[str | None] = [None] * len(texts) if pairs is None else pairs
        if len(second) != len(texts):
            raise ValueError(f"{len(texts)} texts, but {len(second)} pairs")
        encodings = [self.encode(text, pair, max_length) for text, pair in zip(texts, second, strict=True)]
        longest = max(map(len, encodings), default=0)
        if pad_to is not None and longest > pad_to:
            raise ValueError(
                f"a text has {longest} tokens, more than pad_to={pad_to}: give max_length={pad_to} too"
            )
        for encoding in encodings:
            padding = (longest if pad_to is None else pad_to) - len(encoding)
            encoding.input_ids += [self.pad_token_id] * padding
            encoding.token_type_ids += [0] * padding
            encoding.attention_mask += [0] * padding
        return encodings

    def __call__(
        self,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
        max_length: int | None = None,
        pad_to: int | None = None,
    ) -> dict[str, list[list[int]]]:
        """The three inputs of the model for a batch (see `encode_batch`): B lists of T numbers each."""
        encodings = self.encode_batch(texts, pairs, max_length, pad_to)
        return {
            "input_ids": [encoding.input_ids for encoding in encodings],  # (B, T)
            "token_type_ids": [encoding.token_type_ids for encoding in encodings],  # (B, T)
            "attention_mask": [encoding.attention_mask for encoding in encodings],  # (B, T)
        }

    # --- Ids to text -------------------------------------------------------------------------------------

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """Join the pieces of ids into text: `##` joins, all else gets a space, and some punctuation loses it.

        Raises ValueError for an id that the vocabulary does not have (`tokenizers` skips it in silence). Source: the
        `WordPiece` decoder of `tokenizers`, with cleanup.
        """
        ids = [i for i in map(int, ids) if not (skip_special_tokens and i in self._special_ids)]
        pieces = map(self.id_to_token, ids)
        return "".join(_tidy(piece if n == 0 else _joined(piece)) for n, piece in enumerate(pieces))

    def vocab_txt(self) -> bytes:
        """The content of `vocab.txt`: one piece a line, in UTF-8."""
        return "".join(piece + "\n" for piece in self.vocab).encode()


# --- How much of two texts is kept -----------------------------------------------------------------------


def longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """How many tokens of two texts to keep, so that the longer one is cut first.

    The shorter text is kept whole if half the room holds it; otherwise each gets half. An odd place goes to the
    longer text, or to the second if they are equally long. Source: `truncate_encodings` of `tokenizers`, strategy
    `longest_first`.
    """
    if first + second <= room:
        return first, second
    if first > second:
        keep_second, keep_first = longest_first(second, first, room)
        return keep_first, keep_second
    keep_first = min(first, room // 2)
    return keep_first, room - keep_first


# --- Vocabularies ----------------------------------------------------------------------------------------


def pieces_of(content: bytes) -> list[str]:
    """The pieces in the content of a `vocab.txt`: one a line, without a byte order mark or white space at their ends.

    Only a line feed ends a line: U+0085 or U+2028, where `str.splitlines` would split, stay within a piece. Raises
    ValueError if the content is not UTF-8.
    """
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8: {error.reason} at byte {error.start}") from None
    return [line.rstrip(WHITE_SPACE) for line in text.removesuffix("\n").split("\n")]


def _in_order_of_ids(vocab: Mapping[str, int]) -> list[str]:
    """The pieces of a mapping in the order of their ids. Raises ValueError unless these are 0, 1, 2, …"""
    try:
        pieces = sorted(vocab, key=vocab.__getitem__)
    except TypeError as error:
        raise ValueError(f"ids must be integers: {error}") from None
    for expected, piece in enumerate(pieces):
        if vocab[piece] != expected:
            raise ValueError(
                f"ids must be 0, 1, 2, … without gaps: {quoted(piece)} has {quoted(vocab[piece])}, not {expected}"
            )
    return pieces


def _check_vocab(vocab: list[str]) -> None:
    """Raise ValueError if a list of pieces cannot be a vocabulary."""
    for i, piece in enumerate(vocab):
        if "\n" in piece or "\r" in piece:
            raise ValueError(f"piece {i}, {quoted(piece)}, has a line break in it")
    missing = [token for token in SPECIAL_TOKENS if token not in vocab]
    if missing:
        raise ValueError(f"the vocabulary lacks {', '.join(missing)}")


# --- Remembering words, joining pieces -------------------------------------------------------------------


class _Remember(dict):
    """A dictionary that works out what it does not have, and begins again when it is full."""

    def __init__(self, function: Callable[[str], tuple[int, ...]]) -> None:
        super().__init__()
        self.function = function

    def __missing__(self, key: str) -> tuple[int, ...]:
        value = self.function(key)
        if len(key) <= LONGEST_REMEMBERED:
            if len(self) >= CHUNKS_REMEMBERED:
                self.clear()
            self[key] = value
        return value


_TIDY = {
    " .": ".",
    " ?": "?",
    " !": "!",
    " ,": ",",
    " ' ": "'",
    " n't": "n't",
    " 'm": "'m",
    " do not": " don't",
    " 's": "'s",
    " 've": "'ve",
    " 're": "'re",
}


def _joined(piece: str) -> str:
    """What a piece adds to the text before it."""
    return piece.removeprefix(CONTINUES) if piece.startswith(CONTINUES) else " " + piece


def _tidy(text: str) -> str:
    """Undo the spaces that splitting put before punctuation, in one piece and the space before it."""
    for untidy, tidy in _TIDY.items():
        text = text.replace(untidy, tidy)
    return text
