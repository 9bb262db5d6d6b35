"""Learning a WordPiece vocabulary: begin with single characters, merge the best pair of neighbours, repeat.

`train_wordpiece` counts the words of a text (`count_words`), takes their characters as the first pieces
(`first_pieces`), and merges (`learn_pieces`). A piece that continues a word begins with `##`.

The vocabulary agrees with the one of `WordPieceTrainer` in Hugging Face's `tokenizers`, up to ties: there,
ties depend on an order that changes from run to run.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from numbers import Integral

from minigrad.text.normalization import chunks, normalize, pre_tokenize

PAD, UNK, CLS, SEP, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
SPECIAL_TOKENS = (PAD, UNK, CLS, SEP, MASK)
CONTINUES = "##"
SCORES = ("frequency", "pmi", "gain")  # by which the next merge is chosen: methods of PairCounts
LONGEST_WORD = 100  # characters: a longer word is [UNK]

Pair = tuple[int, int]  # the ids of two neighbouring pieces


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
    """Learn a WordPiece vocabulary of `vocab_size` pieces, or fewer if no pair is frequent enough.

    Returns the special tokens, then characters and `##` characters in the order of their code points, then merged
    pieces. A pair seen less often than `min_frequency` is never merged. `lower_case` and `strip_accents` are those of
    `normalize`. `limit_alphabet` characters are kept, the most frequent ones (if equally frequent, the lower code
    points); the others are dropped from their words. `score` is "frequency", the count of the pair; "pmi", that count
    divided by the counts of the two pieces, which ranks pairs by their pointwise mutual information; or "gain", how
    much the merge raises the log-likelihood of the text. `progress` is called with (pieces so far, `vocab_size`) after
    each merge.

    A word of more than `max_input_chars_per_word` characters, such as a line of base64, is left out, because
    the tokenizer turns it into [UNK] unseen. `tokenizers` counts such words, and learns pieces from them.

    Ties go to the pair whose first piece is earlier in the vocabulary, then to the one whose second piece is. So the
    result depends on the texts alone, whatever their order and whatever the hash seed.

    Raises TypeError if `texts` is one string, ValueError for an unknown score, a repeated special token, an
    argument that is not a number or is too small, or a `vocab_size` too small for the characters.

    Source: `WordPieceTrainer` of `tokenizers` for the count; Schuster and Nakajima (2012) for the gain. The
    "pmi" score is the rule of tutorials, such as Hugging Face's.
    """
    if isinstance(texts, str):
        raise TypeError("texts is one string: give a list of strings, [text]")
    if score not in SCORES:
        raise ValueError(f"score is {score!r}: expected one of {', '.join(SCORES)}")
    for name, number, least in (
        ("vocab_size", vocab_size, 1),
        ("min_frequency", min_frequency, 0),
        ("limit_alphabet", limit_alphabet, 1),
        ("max_input_chars_per_word", max_input_chars_per_word, 1),
    ):
        if not isinstance(number, Integral) or number < least:
            raise ValueError(f"{name} is {number!r}: give a whole number of at least {least}")
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
    """How often each word occurs in the texts, without words that are too long for the tokenizer.

    Each distinct chunk between white space is normalised only once. Long words also cost most: the time to learn
    the pieces of one word grows with the square of its length.
    """
    chunk_counts = Counter(chain.from_iterable(map(chunks, texts)))
    word_counts: Counter[str] = Counter()
    for chunk, count in chunk_counts.items():
        for word in pre_tokenize(normalize(chunk, lower_case=lower_case, strip_accents=strip_accents)):
            if len(word) <= max_input_chars_per_word:
                word_counts[word] += count
    return dict(word_counts)


def first_pieces(word_counts: Mapping[str, int], limit_alphabet: int) -> list[str]:
    """The pieces to begin with: each kept character, then, as ##x, each that continues a word."""
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
    """Merge the best pair again and again; returns `vocab` with the merged pieces appended.

    The best pair comes from a heap. A score that has changed is pushed once more; the old entry stays, is
    recognised when it comes up, and is dropped ("lazy deletion"). Each merge lowers all gains a little, so an
    old gain is a bound, and is put back with its present value. Arguments as in `train_wordpiece`.
    """
    vocab = list(vocab)
    min_frequency = max(1, min_frequency)  # a pair that is merged stays in the counts, with 0
    ids = {piece: i for i, piece in enumerate(vocab)}
    pairs = PairCounts(word_counts, ids)
    score_of = getattr(pairs, score)
    heap = [(-score_of(pair), pair) for pair, count in pairs.counts.items() if count >= min_frequency]
    heapq.heapify(heap)
    while heap and heap[0][0] < math.inf and len(vocab) < vocab_size:
        negative_score, (first, second) = heapq.heappop(heap)
        if pairs.counts[first, second] < min_frequency:
            continue
        now = score_of((first, second))
        if now != -negative_score:  # an old entry
            if score == "gain":
                heapq.heappush(heap, (-now, (first, second)))
            continue
        piece = vocab[first] + vocab[second].removeprefix(CONTINUES)
        if piece not in ids:
            ids[piece] = len(vocab)
            vocab.append(piece)
        changed = pairs.merge(first, second, ids[piece])
        if score != "frequency":
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

    `ids` has every character to be kept, alone and with `##` where it continues a word.
    """

    def __init__(self, word_counts: Mapping[str, int], ids: Mapping[str, int]) -> None:
        self.words = [_spell(word, ids) for word in word_counts]
        self.word_counts = list(word_counts.values())
        self.counts: Counter[Pair] = Counter()  # pair -> how often
        self.piece_counts: Counter[int] = Counter()  # piece -> how often
        self.total = 0  # pieces
        self.words_with: dict[Pair, list[int]] = defaultdict(list)  # pair -> words that have it, or had it
        self.of_piece: dict[int, set[Pair]] = defaultdict(set)  # piece -> pairs it is in, maybe others
        for number, (word, count) in enumerate(zip(self.words, self.word_counts, strict=True)):
            self.total += count * len(word)
            for piece in word:
                self.piece_counts[piece] += count
            for pair in pairwise(word):
                self._add(pair, number, count)

    def frequency(self, pair: Pair) -> int:
        """The count of a pair."""
        return self.counts[pair]

    def pmi(self, pair: Pair) -> float:
        """count(ab) / (count(a) · count(b)), high where a and b are rarely apart.

        The logarithm of this times the number of pieces is the pointwise mutual information of a and b.
        """
        return self.counts[pair] / (self.piece_counts[pair[0]] * self.piece_counts[pair[1]])

    def gain(self, pair: Pair) -> float:
        """How much merging the pair raises the log-likelihood of the text, in nats; -∞ for a piece with itself."""
        first, second = pair
        if first == second:  # of three in a row, the count has two pairs, of which one can be merged
            return -math.inf
        return gain(self.total, self.piece_counts[first], self.piece_counts[second], self.counts[pair])

    def merge(self, first: int, second: int, merged: int) -> set[Pair]:
        """Write `merged` for `first second` in every word, from left to right; returns the pairs counted anew.

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
                self.total -= count
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


def gain(total: int, first: int, second: int, both: int) -> float:
    """How much the log-likelihood of a text rises, in nats, if two different pieces that are neighbours become one.

    The likelihood is that of pieces drawn one by one, each with its share of all pieces. total: the pieces in the text.
    first, second: how often each of the two occurs. both: how often side by side.
    """

    def power(count: int) -> float:
        return count * math.log(count) if count else 0.0

    before = power(first) + power(second) - power(total)
    return power(first - both) + power(second - both) + power(both) - power(total - both) - before


def _spell(word: str, ids: Mapping[str, int]) -> list[int]:
    """A word as the ids of its characters, without those outside the alphabet."""
    pieces = [word[0], *(CONTINUES + character for character in word[1:])]
    return [ids[piece] for piece in pieces if piece in ids]


def _find(word: list[int], first: int, second: int, start: int) -> int | None:
    """The first place, from `start` on, where `first second` stands in a word; None if there is none."""
    while True:
        try:
            start = word.index(first, start) + 1
        except ValueError:
            return None
        if start < len(word) and word[start] == second:
            return start - 1
