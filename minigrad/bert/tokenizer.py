"""WordPiece: text to the pieces BERT reads, and back.

The way of a text: ``normalize`` (clean, space out Chinese characters, strip accents, lower-case), then
``pre_tokenize`` (words and single punctuation marks), then each word is cut, longest match first, into pieces
of a vocabulary. A piece that continues a word begins with ``##``. ``train_wordpiece`` learns the vocabulary.

Every step agrees, character for character, with ``BertWordPieceTokenizer`` of Hugging Face's ``tokenizers``,
under any version of Python: what is an accent, punctuation or a control character is frozen in the tables at
the end of this file. Not handled: offsets into the text, overflowing windows, tokens added later.
"""

import codecs
import heapq
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path

from minigrad.bert.reading import quoted
from minigrad.files import write_atomic

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)
CONTINUES = "##"
Pair = tuple[int, int]  # the ids of two neighbouring pieces

CHUNKS_REMEMBERED = 100_000  # entries after which a cache starts again from empty
LONGEST_REMEMBERED = 64  # characters: a longer chunk is unlikely to come again
LONGEST_WORD = 100  # characters: a longer word is [UNK]


# ---------------------------------------------------------------------------------------------------------
# Text to words
# ---------------------------------------------------------------------------------------------------------


def normalize(text: str, *, lower_case: bool = True, strip_accents: bool | None = None) -> str:
    """Bring a text into the one spelling that the vocabulary knows.

    Args:
        text: any text.
        lower_case: True for an uncased model, False for a cased one.
        strip_accents: whether é becomes e; None follows ``lower_case``.

    Source: ``BertNormalizer`` of ``tokenizers``; ``BasicTokenizer`` of Devlin et al.'s code.
    """
    text = space_out_chinese(clean(text))
    if lower_case if strip_accents is None else strip_accents:
        text = remove_accents(text)
    return lower(text) if lower_case else text


def clean(text: str) -> str:
    """Drop control characters, and write every kind of white space as a plain space."""
    return _WHITE_SPACE.sub(" ", _CONTROL.sub("", text))


def space_out_chinese(text: str) -> str:
    """Put a space on both sides of each Chinese character: every one of them is a word."""
    return text if text.isascii() else _CHINESE.sub(r" \g<0> ", text)


def remove_accents(text: str) -> str:
    """Take letters and their accents apart (Unicode's form NFD), then drop the accents.

    NFD also sorts neighbouring marks by their combining class. That shows only in the few marks that are not
    accents of Unicode 8 and so stay; an accent of class 0 keeps the marks on its two sides apart.
    """
    if text.isascii():
        return text
    text = "".join(map(_decompose, text))
    text = _ACCENT.sub(lambda accent: "" if unicodedata.combining(accent[0]) else accent[0], text)
    text = _MARKS_THAT_STAY.sub(lambda marks: "".join(sorted(marks[0], key=unicodedata.combining)), text)
    return _ACCENT.sub("", text)


def _decompose(character: str) -> str:
    """Return a character's letter and accents, as Unicode 9 did: newer characters stay whole."""
    if character <= "\uffff" or _DECOMPOSED_BEYOND_FFFF.match(character):
        return unicodedata.normalize("NFD", character)
    return character


def lower(text: str) -> str:
    """Lower-case each character by itself: Σ is σ also at the end of a word, where Python would write ς."""
    if text.isascii():
        return text.lower()
    return text.translate(_NEW_CAPITALS).replace("Σ", "σ").lower()


def pre_tokenize(text: str) -> list[str]:
    """Split a text at white space, and make each punctuation mark a word of its own.

    Source: ``BertPreTokenizer`` of ``tokenizers``.
    """
    return _WORD.findall(text)


def _chunks(text: str) -> list[str]:
    """Split a raw text at white space only.

    ``str.split`` also splits at a few control characters. They go first, because ``clean`` drops them and so
    makes one word of the two sides.
    """
    return _CONTROL_THAT_SPLITS.sub("", text).split()


# ---------------------------------------------------------------------------------------------------------
# Learning a vocabulary
# ---------------------------------------------------------------------------------------------------------


def train_wordpiece(
    texts: Iterable[str],
    vocab_size: int,
    *,
    min_frequency: int = 2,
    lower_case: bool = True,
    strip_accents: bool | None = None,
    special_tokens: Sequence[str] = SPECIAL_TOKENS,
    limit_alphabet: int = 1000,
    score: str = "frequency",
    max_input_chars_per_word: int = LONGEST_WORD,
    progress: Callable[[int, int], object] | None = None,
) -> list[str]:
    """Learn a WordPiece vocabulary: begin with single characters, merge the best pair of neighbours, repeat.

    A word of more than ``max_input_chars_per_word`` characters, such as a line of base64, is left out, because
    the tokenizer makes [UNK] of it unseen. ``tokenizers`` counts such words, and learns pieces of them.

    Ties go to the pair whose first piece is earlier in the vocabulary, then to the one whose second piece is.
    So the result hangs on the texts alone, whatever their order and whatever the hash seed.

    Args:
        texts: the corpus, one string after another.
        vocab_size: how many pieces to stop at; fewer come back when no pair is frequent enough.
        min_frequency: a pair seen less often is never merged.
        lower_case, strip_accents: see ``normalize``.
        special_tokens: the first pieces of the vocabulary.
        limit_alphabet: keep this many characters, the most frequent ones (if equally frequent, the lower code
            points); the others are dropped from their words.
        score: ``"frequency"`` is the count of the pair, as in ``tokenizers``; ``"likelihood"`` is that count
            divided by the counts of the two pieces.
        max_input_chars_per_word: as of the tokenizer that will use the vocabulary.
        progress: called with (pieces so far, ``vocab_size``) after each merge.

    Returns:
        The vocabulary: special tokens, characters and ``##`` characters in code point order, merged pieces.

    Raises:
        TypeError: ``texts`` is one string.
        ValueError: an unknown score, a repeated special token, a ``vocab_size`` too small for the characters.

    Source: ``WordPieceTrainer`` of ``tokenizers``; Schuster and Nakajima (2012) for the likelihood.
    """
    if isinstance(texts, str):
        raise TypeError("texts is one string: give a list of strings, [text]")
    if score not in ("frequency", "likelihood"):
        raise ValueError(f'score is {score!r}: give "frequency" or "likelihood"')
    if limit_alphabet < 1:
        raise ValueError(f"limit_alphabet is {limit_alphabet}: give at least 1")
    if len(set(special_tokens)) < len(special_tokens):
        raise ValueError(f"special_tokens repeats a token: {list(special_tokens)}")
    word_counts = count_words(
        texts,
        lower_case=lower_case,
        strip_accents=strip_accents,
        max_input_chars_per_word=max_input_chars_per_word,
    )
    characters = first_pieces(word_counts, limit_alphabet)
    vocab = list(dict.fromkeys([*special_tokens, *characters]))
    if vocab_size < len(vocab):
        raise ValueError(
            f"vocab_size is {vocab_size}, but the special tokens and the single characters alone make "
            f"{len(vocab)}: make it at least that"
        )
    return learn_pieces(word_counts, vocab, vocab_size, min_frequency, score, progress)


def count_words(
    texts: Iterable[str],
    *,
    lower_case: bool = True,
    strip_accents: bool | None = None,
    max_input_chars_per_word: int = LONGEST_WORD,
) -> dict[str, int]:
    """Count the words of a corpus, without those that are too long for the tokenizer.

    Each distinct chunk between white space is normalised only once. The time to learn pieces of one word grows
    with the square of its length.
    """
    chunk_counts = Counter(chain.from_iterable(map(_chunks, texts)))
    word_counts: Counter[str] = Counter()
    for chunk, count in chunk_counts.items():
        for word in pre_tokenize(normalize(chunk, lower_case=lower_case, strip_accents=strip_accents)):
            if len(word) <= max_input_chars_per_word:
                word_counts[word] += count
    return dict(word_counts)


def first_pieces(word_counts: Mapping[str, int], limit_alphabet: int) -> list[str]:
    """Return the pieces to begin with: each kept character, then, as ##x, each that continues a word."""
    counts: Counter[str] = Counter()
    for word, count in word_counts.items():
        for character in word:
            counts[character] += count
    by_frequency = sorted(counts, key=lambda character: (-counts[character], character))
    alphabet = set(by_frequency[:limit_alphabet])
    continuing = alphabet & {character for word in word_counts for character in word[1:]}
    return sorted(alphabet) + [CONTINUES + character for character in sorted(continuing)]


def learn_pieces(
    word_counts: Mapping[str, int],
    vocab: list[str],
    vocab_size: int,
    min_frequency: int = 2,
    score: str = "frequency",
    progress: Callable[[int, int], object] | None = None,
) -> list[str]:
    """Merge the best pair again and again, and return ``vocab`` with the merged pieces behind it.

    The best pair comes from a heap. A score that has changed is pushed once more; the old entry stays, is
    recognised when it comes up, and is dropped ("lazy deletion").
    """
    vocab = list(vocab)
    ids = {piece: i for i, piece in enumerate(vocab)}
    pairs = PairCounts(word_counts, ids)
    score_of = pairs.frequency if score == "frequency" else pairs.likelihood
    heap = [(-score_of(pair), pair) for pair, count in pairs.counts.items() if count >= min_frequency]
    heapq.heapify(heap)
    while heap and len(vocab) < vocab_size:
        negative_score, (first, second) = heapq.heappop(heap)
        if pairs.counts[first, second] < min_frequency or score_of((first, second)) != -negative_score:
            continue
        piece = vocab[first] + vocab[second].removeprefix(CONTINUES)
        if piece not in ids:
            ids[piece] = len(vocab)
            vocab.append(piece)
        changed = pairs.merge(first, second, ids[piece])
        if score == "likelihood":
            for one in (first, second, ids[piece]):
                # A pair that has become too rare is forgotten here: `_add` brings it back should it come again.
                often = {pair for pair in pairs.of_piece[one] if pairs.counts[pair] >= min_frequency}
                pairs.of_piece[one] = often
                changed |= often
        for pair in changed:
            if pairs.counts[pair] >= min_frequency:
                heapq.heappush(heap, (-score_of(pair), pair))
        if progress is not None:
            progress(len(vocab), vocab_size)
    return vocab


class PairCounts:
    """How often each pair of neighbouring pieces occurs, kept up to date while pairs are merged.

    Args:
        word_counts: word to its count.
        ids: piece to its id; has every character to be kept, alone and with ``##`` where it continues a word.
    """

    def __init__(self, word_counts: Mapping[str, int], ids: Mapping[str, int]):
        self.words = [_spell(word, ids) for word in word_counts]
        self.word_counts = list(word_counts.values())
        self.counts: Counter[Pair] = Counter()  # pair -> how often
        self.piece_counts: Counter[int] = Counter()  # piece -> how often
        self.words_with: dict[Pair, list[int]] = defaultdict(list)  # pair -> words that have it, or had it
        self.of_piece: dict[int, set[Pair]] = defaultdict(set)  # piece -> pairs it is in, maybe others
        for number, (word, count) in enumerate(zip(self.words, self.word_counts, strict=True)):
            for piece in word:
                self.piece_counts[piece] += count
            for pair in pairwise(word):
                self._add(pair, number, count)

    def frequency(self, pair: Pair) -> int:
        """Return the count of a pair."""
        return self.counts[pair]

    def likelihood(self, pair: Pair) -> float:
        """Return count(ab) / (count(a) · count(b)): high where a and b are rarely apart."""
        return self.counts[pair] / (self.piece_counts[pair[0]] * self.piece_counts[pair[1]])

    def merge(self, first: int, second: int, merged: int) -> set[Pair]:
        """Write ``merged`` for ``first second`` in every word, from left to right; return the pairs counted anew.

        Only the neighbours of a merged pair are counted anew, not the whole word: words may be long.
        """
        changed: set[Pair] = {(first, second)}
        for number in self.words_with.pop((first, second), ()):
            word, count = self.words[number], self.word_counts[number]
            place = _find(word, first, second, 0)
            while place is not None:
                word[place : place + 2] = [merged]
                self.counts[first, second] -= count
                self.piece_counts[first] -= count
                self.piece_counts[second] -= count
                self.piece_counts[merged] += count
                if place > 0:
                    left = word[place - 1]
                    self.counts[left, first] -= count
                    self._add((left, merged), number, count)
                    changed.update([(left, first), (left, merged)])
                if place + 1 < len(word):
                    right = word[place + 1]
                    self.counts[second, right] -= count
                    self._add((merged, right), number, count)
                    changed.update([(second, right), (merged, right)])
                place = _find(word, first, second, place + 1)
        return changed

    def _add(self, pair: Pair, number: int, count: int) -> None:
        """Count one pair of the word of this number: all of a word's in a row, so that it is noted once."""
        self.counts[pair] += count
        numbers = self.words_with[pair]
        if not numbers or numbers[-1] != number:
            numbers.append(number)
        self.of_piece[pair[0]].add(pair)
        self.of_piece[pair[1]].add(pair)


def _spell(word: str, ids: Mapping[str, int]) -> list[int]:
    """Return a word as ids of single characters, without those outside the alphabet."""
    pieces = [word[0], *(CONTINUES + character for character in word[1:])]
    return [ids[piece] for piece in pieces if piece in ids]


def _find(word: list[int], first: int, second: int, start: int) -> int | None:
    """Return the first place, from ``start`` on, where ``first second`` stands in a word."""
    while True:
        try:
            start = word.index(first, start) + 1
        except ValueError:
            return None
        if start < len(word) and word[start] == second:
            return start - 1


# ---------------------------------------------------------------------------------------------------------
# Text to ids and back
# ---------------------------------------------------------------------------------------------------------


@dataclass
class Encoding:
    """One text, or one pair of texts, as the model reads it: three lists of one length.

    Attributes:
        input_ids: [CLS] text [SEP], for a pair [CLS] text [SEP] pair [SEP]; then padding.
        token_type_ids: 0 for [CLS], the first text, its [SEP]; 1 for the second and its [SEP]; 0 for padding.
        attention_mask: 1 for a token, 0 for padding.
    """

    input_ids: list[int]
    token_type_ids: list[int]
    attention_mask: list[int]
    _vocab: list[str] = field(repr=False, compare=False, default_factory=list)

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def tokens(self) -> list[str]:
        """The pieces behind ``input_ids``."""
        return [self._vocab[i] for i in self.input_ids]


class WordPieceTokenizer:
    """Cuts texts into the pieces of a vocabulary, and joins pieces back into text.

    Args:
        vocab: the pieces in the order of their ids, or a mapping of piece to id (ids 0, 1, 2, …).
        lower_case: True for an uncased vocabulary, False for a cased one.
        strip_accents: whether é becomes e; None follows ``lower_case``.
        max_input_chars_per_word: a longer word is [UNK] unseen.

    Raises:
        ValueError: a piece is empty, repeated or has a line break in it; the ids have gaps; one of the five
            special tokens is missing.

    Source: ``BertWordPieceTokenizer`` of ``tokenizers``.
    """

    def __init__(
        self,
        vocab: Sequence[str] | Mapping[str, int],
        lower_case: bool = True,
        strip_accents: bool | None = None,
        max_input_chars_per_word: int = LONGEST_WORD,
    ):
        self.vocab = _in_order_of_ids(vocab) if isinstance(vocab, Mapping) else list(vocab)
        _check_vocab(self.vocab)
        self.lower_case = lower_case
        self.strip_accents = strip_accents
        self.max_input_chars_per_word = max_input_chars_per_word
        self._ids = {piece: i for i, piece in enumerate(self.vocab)}
        self._special_ids = {self._ids[token] for token in SPECIAL_TOKENS}
        self._longest_piece = max(map(len, self.vocab))
        self._word_ids = _Remember(self._cut_word)
        self._chunk_ids = _Remember(self._cut_chunk)

    # the vocabulary

    @property
    def vocab_size(self) -> int:
        """How many pieces there are."""
        return len(self.vocab)

    @property
    def pad_token_id(self) -> int:
        return self._ids[PAD]

    @property
    def unk_token_id(self) -> int:
        return self._ids[UNK]

    @property
    def cls_token_id(self) -> int:
        return self._ids[CLS]

    @property
    def sep_token_id(self) -> int:
        return self._ids[SEP]

    @property
    def mask_token_id(self) -> int:
        return self._ids[MASK]

    def token_to_id(self, token: str) -> int | None:
        """Return a piece's id, None if the vocabulary does not have it."""
        return self._ids.get(token)

    def id_to_token(self, token_id: int) -> str:
        """Return the piece of an id; ValueError if there is none."""
        if not 0 <= token_id < len(self.vocab):
            raise ValueError(
                f"id {token_id} is not in the vocabulary: ids go from 0 to {len(self.vocab) - 1}"
            )
        return self.vocab[token_id]

    # text to ids

    def token_ids(self, text: str) -> list[int]:
        """Return the ids of a text, without [CLS] and [SEP]: the fast way through a corpus.

        A special token that stands in the text, such as [MASK], becomes its id wherever it stands.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")
        ids = []
        for part in _SPECIAL_TOKEN.split(text):
            if part in SPECIAL_TOKENS:
                ids.append(self._ids[part])
            else:
                ids.extend(chain.from_iterable(map(self._chunk_ids.__getitem__, _chunks(part))))
        return ids

    def tokenize(self, text: str) -> list[str]:
        """Return the pieces of a text, without [CLS] and [SEP]."""
        return [self.vocab[i] for i in self.token_ids(text)]

    def _cut_chunk(self, chunk: str) -> tuple[int, ...]:
        """Return the ids of a raw chunk of text without white space."""
        text = normalize(chunk, lower_case=self.lower_case, strip_accents=self.strip_accents)
        return tuple(chain.from_iterable(map(self._word_ids.__getitem__, pre_tokenize(text))))

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
        """Encode a text, or two texts as a pair, with [CLS] and [SEP].

        Args:
            text: the first text.
            pair: the second text, if any.
            max_length: the most tokens to return, special tokens included; see ``longest_first``.

        Raises:
            ValueError: ``max_length`` leaves no room for the special tokens.
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
        """Encode many texts, or pairs of texts, and pad them to one length.

        Args:
            texts: the first texts.
            pairs: the second texts, one for each first, if any.
            max_length: see ``encode``.
            pad_to: the length of every encoding; None takes the longest.

        Raises:
            TypeError: ``texts`` or ``pairs`` is one string.
            ValueError: as many ``pairs`` as ``texts`` were expected; an encoding is longer than ``pad_to``.
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
        """Encode a batch (see ``encode_batch``) into the model's three inputs: B lists of T numbers each."""
        encodings = self.encode_batch(texts, pairs, max_length, pad_to)
        return {
            "input_ids": [encoding.input_ids for encoding in encodings],  # (B, T)
            "token_type_ids": [encoding.token_type_ids for encoding in encodings],  # (B, T)
            "attention_mask": [encoding.attention_mask for encoding in encodings],  # (B, T)
        }

    # ids to text

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str:
        """Join the pieces of ids into text: ``##`` glues, all else gets a space, some punctuation loses it.

        Raises:
            ValueError: an id that the vocabulary does not have (``tokenizers`` skips it in silence).

        Source: the ``WordPiece`` decoder of ``tokenizers``, with cleanup.
        """
        ids = [i for i in map(int, ids) if not (skip_special_tokens and i in self._special_ids)]
        pieces = map(self.id_to_token, ids)
        return "".join(_tidy(piece if n == 0 else _joined(piece)) for n, piece in enumerate(pieces))

    # files

    def save(self, path: str | os.PathLike) -> None:
        """Write the vocabulary, one piece a line; the file is replaced whole, or left as it was."""
        write_atomic(path, self.vocab_txt())

    def vocab_txt(self) -> bytes:
        """The content of ``vocab.txt``: one piece a line, in UTF-8."""
        return "".join(piece + "\n" for piece in self.vocab).encode()

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike,
        lower_case: bool = True,
        strip_accents: bool | None = None,
        max_input_chars_per_word: int = 100,
    ) -> "WordPieceTokenizer":
        """Read a vocabulary such as BERT's ``vocab.txt``: one piece a line, the line's number is the id.

        Raises:
            ValueError: the file is a folder, a pipe or a device, not UTF-8, or not a vocabulary; the message
                names the file.
        """
        if os.path.exists(path) and not os.path.isfile(path):  # a pipe might never end
            raise ValueError(f"{path} is no file (but a folder, a pipe or a device)")
        content = Path(path).read_bytes()
        try:
            return cls(pieces_of(content), lower_case, strip_accents, max_input_chars_per_word)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def pieces_of(content: bytes) -> list[str]:
    """The pieces in the content of a ``vocab.txt``: one a line, without a byte order mark. ValueError if not UTF-8.

    Only a line feed ends a line: U+0085 or U+2028, where ``str.splitlines`` would split, stay in a piece.
    """
    try:
        text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8: {error.reason} at byte {error.start}") from None
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


class _Remember(dict):
    """A dictionary that works out what it does not have, and begins again when it is full."""

    def __init__(self, function: Callable[[str], tuple[int, ...]]):
        super().__init__()
        self.function = function

    def __missing__(self, key: str) -> tuple[int, ...]:
        value = self.function(key)
        if len(key) <= LONGEST_REMEMBERED:
            if len(self) >= CHUNKS_REMEMBERED:
                self.clear()
            self[key] = value
        return value


def longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """Return how many tokens of two texts to keep, so that the longer one is cut first.

    The shorter text is kept whole if half the room holds it; otherwise each gets half. An odd place goes to
    the longer text, or to the second if they are equally long.

    Source: ``truncate_encodings`` of ``tokenizers``, strategy ``longest_first``.
    """
    if first + second <= room:
        return first, second
    if first > second:
        keep_second, keep_first = longest_first(second, first, room)
        return keep_first, keep_second
    keep_first = min(first, room // 2)
    return keep_first, room - keep_first


def _in_order_of_ids(vocab: Mapping[str, int]) -> list[str]:
    """Return the pieces of a mapping in the order of their ids, which must be 0, 1, 2, …"""
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
    seen: dict[str, int] = {}
    for i, piece in enumerate(vocab):
        if not piece:
            raise ValueError(f"piece {i} (line {i + 1}) is empty")
        if "\n" in piece or "\r" in piece:
            raise ValueError(f"piece {i}, {quoted(piece)}, has a line break in it")
        if piece in seen:
            raise ValueError(f"piece {quoted(piece)} is there twice, with ids {seen[piece]} and {i}")
        seen[piece] = i
    missing = [token for token in SPECIAL_TOKENS if token not in seen]
    if missing:
        raise ValueError(f"the vocabulary lacks {', '.join(missing)}")


def _joined(piece: str) -> str:
    """Return what a piece adds to the text before it."""
    return piece.removeprefix(CONTINUES) if piece.startswith(CONTINUES) else " " + piece


def _tidy(text: str) -> str:
    """Undo the spaces that splitting put before punctuation, in one piece and the space before it."""
    for untidy, tidy in _TIDY.items():
        text = text.replace(untidy, tidy)
    return text


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


# ---------------------------------------------------------------------------------------------------------
# Unicode tables
#
# Python's own tables grow with every version, while those of `tokenizers` stand still: at Unicode 8 for what
# is an accent, punctuation or a control character, at Unicode 9 for taking letters apart. A character that is
# newer is none of these to BERT. Its lower case alone is up to date: Unicode 17; Python 3.11 has Unicode 14.
# ---------------------------------------------------------------------------------------------------------


def _ranges(table: str) -> str:
    """Turn a table such as "21-2f 3a" (hexadecimal code points) into what a regular expression has in [ ]."""
    return re.sub(r"[0-9a-f]+", lambda code: f"\\U{code[0]:0>8}", table).replace(" ", "")


# Cc, Cf and Co of Unicode 8 without tab, line feed and carriage return; and U+FFFD.
_CONTROL_RANGES = (
    "0-8 b-c e-1f 7f-9f ad 600-605 61c 6dd 70f 180e 200b-200f 202a-202e 2060-2064 2066-206f e000-f8ff feff "
    "fff9-fffb fffd 110bd 1bca0-1bca3 1d173-1d17a e0001 e0020-e007f f0000-ffffd 100000-10fffd"
)

# White space.
_WHITE_SPACE_RANGES = "9-d 20 85 a0 1680 2000-200a 2028-2029 202f 205f 3000"

# Chinese characters: the blocks of ideographs that Devlin et al. list.
_CHINESE_RANGES = "3400-4dbf 4e00-9fff f900-faff 20000-2a6df 2a700-2b81f 2b920-2ceaf 2f800-2fa1f"

# Punctuation (P) of Unicode 8, and the symbols of ASCII such as $ + < ^.
_PUNCTUATION_RANGES = (
    "21-2f 3a-40 5b-60 7b-7e a1 a7 ab b6-b7 bb bf 37e 387 55a-55f 589-58a 5be 5c0 5c3 5c6 5f3-5f4 609-60a "
    "60c-60d 61b 61e-61f 66a-66d 6d4 700-70d 7f7-7f9 830-83e 85e 964-965 970 af0 df4 e4f e5a-e5b f04-f12 "
    "f14 f3a-f3d f85 fd0-fd4 fd9-fda 104a-104f 10fb 1360-1368 1400 166d-166e 169b-169c 16eb-16ed 1735-1736 "
    "17d4-17d6 17d8-17da 1800-180a 1944-1945 1a1e-1a1f 1aa0-1aa6 1aa8-1aad 1b5a-1b60 1bfc-1bff 1c3b-1c3f "
    "1c7e-1c7f 1cc0-1cc7 1cd3 2010-2027 2030-2043 2045-2051 2053-205e 207d-207e 208d-208e 2308-230b "
    "2329-232a 2768-2775 27c5-27c6 27e6-27ef 2983-2998 29d8-29db 29fc-29fd 2cf9-2cfc 2cfe-2cff 2d70 "
    "2e00-2e2e 2e30-2e42 3001-3003 3008-3011 3014-301f 3030 303d 30a0 30fb a4fe-a4ff a60d-a60f a673 a67e "
    "a6f2-a6f7 a874-a877 a8ce-a8cf a8f8-a8fa a8fc a92e-a92f a95f a9c1-a9cd a9de-a9df aa5c-aa5f aade-aadf "
    "aaf0-aaf1 abeb fd3e-fd3f fe10-fe19 fe30-fe52 fe54-fe61 fe63 fe68 fe6a-fe6b ff01-ff03 ff05-ff0a "
    "ff0c-ff0f ff1a-ff1b ff1f-ff20 ff3b-ff3d ff3f ff5b ff5d ff5f-ff65 10100-10102 1039f 103d0 1056f 10857 "
    "1091f 1093f 10a50-10a58 10a7f 10af0-10af6 10b39-10b3f 10b99-10b9c 11047-1104d 110bb-110bc 110be-110c1 "
    "11140-11143 11174-11175 111c5-111c9 111cd 111db 111dd-111df 11238-1123d 112a9 114c6 115c1-115d7 "
    "11641-11643 1173c-1173e 12470-12474 16a6e-16a6f 16af5 16b37-16b3b 16b44 1bc9f 1da87-1da8b"
)

# Accents: nonspacing marks (Mn) of Unicode 8.
_ACCENT_RANGES = (
    "300-36f 483-487 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 64b-65f 670 6d6-6dc 6df-6e4 6e7-6e8 6ea-6ed "
    "711 730-74a 7a6-7b0 7eb-7f3 816-819 81b-823 825-827 829-82d 859-85b 8e3-902 93a 93c 941-948 94d "
    "951-957 962-963 981 9bc 9c1-9c4 9cd 9e2-9e3 a01-a02 a3c a41-a42 a47-a48 a4b-a4d a51 a70-a71 a75 "
    "a81-a82 abc ac1-ac5 ac7-ac8 acd ae2-ae3 b01 b3c b3f b41-b44 b4d b56 b62-b63 b82 bc0 bcd c00 c3e-c40 "
    "c46-c48 c4a-c4d c55-c56 c62-c63 c81 cbc cbf cc6 ccc-ccd ce2-ce3 d01 d41-d44 d4d d62-d63 dca dd2-dd4 "
    "dd6 e31 e34-e3a e47-e4e eb1 eb4-eb9 ebb-ebc ec8-ecd f18-f19 f35 f37 f39 f71-f7e f80-f84 f86-f87 "
    "f8d-f97 f99-fbc fc6 102d-1030 1032-1037 1039-103a 103d-103e 1058-1059 105e-1060 1071-1074 1082 "
    "1085-1086 108d 109d 135d-135f 1712-1714 1732-1734 1752-1753 1772-1773 17b4-17b5 17b7-17bd 17c6 "
    "17c9-17d3 17dd 180b-180d 18a9 1920-1922 1927-1928 1932 1939-193b 1a17-1a18 1a1b 1a56 1a58-1a5e 1a60 "
    "1a62 1a65-1a6c 1a73-1a7c 1a7f 1ab0-1abd 1b00-1b03 1b34 1b36-1b3a 1b3c 1b42 1b6b-1b73 1b80-1b81 "
    "1ba2-1ba5 1ba8-1ba9 1bab-1bad 1be6 1be8-1be9 1bed 1bef-1bf1 1c2c-1c33 1c36-1c37 1cd0-1cd2 1cd4-1ce0 "
    "1ce2-1ce8 1ced 1cf4 1cf8-1cf9 1dc0-1df5 1dfc-1dff 20d0-20dc 20e1 20e5-20f0 2cef-2cf1 2d7f 2de0-2dff "
    "302a-302d 3099-309a a66f a674-a67d a69e-a69f a6f0-a6f1 a802 a806 a80b a825-a826 a8c4 a8e0-a8f1 "
    "a926-a92d a947-a951 a980-a982 a9b3 a9b6-a9b9 a9bc a9e5 aa29-aa2e aa31-aa32 aa35-aa36 aa43 aa4c aa7c "
    "aab0 aab2-aab4 aab7-aab8 aabe-aabf aac1 aaec-aaed aaf6 abe5 abe8 abed fb1e fe00-fe0f fe20-fe2f 101fd "
    "102e0 10376-1037a 10a01-10a03 10a05-10a06 10a0c-10a0f 10a38-10a3a 10a3f 10ae5-10ae6 11001 11038-11046 "
    "1107f-11081 110b3-110b6 110b9-110ba 11100-11102 11127-1112b 1112d-11134 11173 11180-11181 111b6-111be "
    "111ca-111cc 1122f-11231 11234 11236-11237 112df 112e3-112ea 11300-11301 1133c 11340 11366-1136c "
    "11370-11374 114b3-114b8 114ba 114bf-114c0 114c2-114c3 115b2-115b5 115bc-115bd 115bf-115c0 115dc-115dd "
    "11633-1163a 1163d 1163f-11640 116ab 116ad 116b0-116b5 116b7 1171d-1171f 11722-11725 11727-1172b "
    "16af0-16af4 16b30-16b36 16f8f-16f92 1bc9d-1bc9e 1d167-1d169 1d17b-1d182 1d185-1d18b 1d1aa-1d1ad "
    "1d242-1d244 1da00-1da36 1da3b-1da6c 1da75 1da84 1da9b-1da9f 1daa1-1daaf 1e8d0-1e8d6 e0100-e01ef"
)

# Marks of Unicode 9 with a combining class that are not among the accents.
_MARKS_THAT_STAY_RANGES = (
    "8d4-8e1 1b44 1baa 1bf2-1bf3 1dfb 302e-302f a953 a9c0 111c0 11235 1134d 11442 11446 116b6 11c3f "
    "1d165-1d166 1d16d-1d172 1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024 1e026-1e02a 1e944-1e94a"
)

# Characters beyond U+FFFF that NFD takes apart.
_DECOMPOSED_RANGES = (
    "1109a 1109c 110ab 1112e-1112f 1134b-1134c 114bb-114bc 114be 115ba-115bb 1d15e-1d164 1d1bb-1d1c0 "
    "2f800-2fa1d"
)

_CONTROL = re.compile(f"[{_ranges(_CONTROL_RANGES)}]")
_CONTROL_THAT_SPLITS = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
_WHITE_SPACE = re.compile(f"[{_ranges(_WHITE_SPACE_RANGES)}]")
_CHINESE = re.compile(f"[{_ranges(_CHINESE_RANGES)}]")
_WORD = re.compile(
    f"[{_ranges(_PUNCTUATION_RANGES)}]|[^{_ranges(_PUNCTUATION_RANGES + ' ' + _WHITE_SPACE_RANGES)}]+"
)
_ACCENT = re.compile(f"[{_ranges(_ACCENT_RANGES)}]")
_MARKS_THAT_STAY = re.compile(f"[{_ranges(_MARKS_THAT_STAY_RANGES)}]+")
_DECOMPOSED_BEYOND_FFFF = re.compile(f"[{_ranges(_DECOMPOSED_RANGES)}]")
_SPECIAL_TOKEN = re.compile("(" + "|".join(map(re.escape, SPECIAL_TOKENS)) + ")")

# Capital letters newer than Unicode 14, the Unicode of Python 3.11, and their small letters.
_NEW_CAPITALS = {
    0x1C89: 0x1C8A,
    0xA7CB: 0x0264,
    0xA7CC: 0xA7CD,
    0xA7CE: 0xA7CF,
    0xA7D2: 0xA7D3,
    0xA7D4: 0xA7D5,
    0xA7DA: 0xA7DB,
    0xA7DC: 0x019B,
    **{capital: capital + 0x20 for capital in range(0x10D50, 0x10D66)},
    **{capital: capital + 0x1B for capital in range(0x16EA0, 0x16EB9)},
}
