"""Chapter `wordpiece`: WordPiece."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _letters(rng: np.random.Generator, n: int) -> list[str]:
    """Different letters."""
    return [LETTERS[i] for i in rng.permutation(len(LETTERS))[:n]]


# --- split_word -------------------------------------------------------------------------------------------


def _split_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    a, b, c, d, e, x = _letters(rng, 6)
    letters = {a, b, c, d, e, *("##" + letter for letter in (a, b, c, d, e))}
    yield "a word that is a piece", a + b + c, letters | {a + b + c, a + b}
    yield "characters alone", d + a + b, letters
    yield "longer and shorter pieces", a + b + c + d, letters | {a + b, "##" + c + d}
    yield "a piece for two places", a + b + a + b, letters | {a + b, "##" + a + b}
    yield ("a list as vocabulary", a + b + c, [*sorted(letters), a + b])
    yield "a long piece that does not begin the word", a + b + c + d, letters | {b + c + d, "##" + b + c}
    yield (
        "the longest match is not the shortest way",
        a + b + c + d + e,
        letters | {a + b, "##" + b + c + d + e},
    )
    yield (
        "the longest piece at the end does not fit",
        a + b + c + d + e,
        letters | {a + b + c, "##" + d + e, "##" + c + d + e},
    )
    yield "a character that the vocabulary lacks, at the front", x + a + b, letters
    yield "a character that the vocabulary lacks, at the end", a + b + c + x, letters | {a + b}
    yield "a piece that the vocabulary has only without ##", a + b + c, {a + b, c, a, b}
    yield "a longest match that gets stuck", a + b + c, {a + b, a, "##" + b + c}
    long = "".join(LETTERS[i] for i in rng.integers(0, 26, 100))
    every = {*LETTERS, *("##" + letter for letter in LETTERS)}
    yield "a word of 100 characters", long, every
    yield "a word of 101 characters", long + a, every
    yield "a word of 101 characters that is a piece", long + a, every | {long + a}


@exercise(
    difficulty=1,
    minutes=10,
    cases=_split_cases,
    hints="""
Keep the position where the rest begins. Try word[start:end] for end from len(word) downwards, and move on to end when you have found a piece.

After the first piece, every look-up has ## in front. If not even one character fits, the answer is ["[UNK]"], whatever you found before.
""",
    mistakes="""
[shortest-piece] You take the shortest piece that fits. Begin with the whole rest of the word and take letters off its end.
    range(len(word), start, -1) -> range(start + 1, len(word) + 1)
You look up every piece without ##. A piece that continues the word is another entry: put ## before the letters.
    "##" if start else "" -> ""
[no-marks] You look up the right pieces but return them without their ##. The marks belong to the pieces.
    pieces.append(prefix + word[start:end]) -> pieces.append(word[start:end])
The piece at the front of a word has no ##.
    "##" if start else "" -> "##"
You never try the whole rest of the word: range(len(word), …) begins with it.
    range(len(word), start, -1) -> range(len(word) - 1, start, -1)
You never try a single character: the range must go down to start + 1, so its end is start.
    range(len(word), start, -1) -> range(len(word), start + 1, -1)
After a piece you go on one letter later. Go on where the piece ends.
    start = end -> start += 1
[UNK] alone stands for the whole word. You keep the pieces that were found before the cut got stuck.
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = [end for end in range(start + 1, len(word) + 1) if prefix + word[start:end] in vocabulary]
        if not ends or len(word) > 100:
            return [*pieces, "[UNK]"]
        pieces.append(prefix + word[start : ends[-1]])
        start = ends[-1]
    return pieces
Where nothing fits, you put [UNK] for one letter or leave the letter out, and go on. The whole word becomes one [UNK].
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = [end for end in range(start + 1, len(word) + 1) if prefix + word[start:end] in vocabulary]
        end = ends[-1] if ends else start + 1
        pieces.append(prefix + word[start:end] if ends else "[UNK]")
        start = end
    return pieces if len(word) <= 100 else ["[UNK]"]

    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = [end for end in range(start + 1, len(word) + 1) if prefix + word[start:end] in vocabulary]
        end = ends[-1] if ends else start + 1
        pieces += [prefix + word[start:end]] if ends else []
        start = end
    return pieces if len(word) <= 100 else ["[UNK]"]
A word of exactly 100 characters is still cut.
    > 100 -> >= 100
A word of more than 100 characters is ["[UNK]"], whatever its letters. You cut it.
    > 100 -> > 10**6 || > 200
Where the cut gets stuck, you return an empty list or nothing. The word becomes one token, ["[UNK]"].
    return ["[UNK]"] -> return [] || return None
The answer is a list, even if it holds [UNK] alone.
    return ["[UNK]"] -> return "[UNK]"
A word of more than 100 characters is ["[UNK]"] even if the vocabulary has it as one piece. Look at its length first.
    len(word) > 100 -> len(word) > 100 and word not in vocabulary
Where the longest match gets stuck, you go back and try a shorter piece. BERT does not go back: the word is [UNK].
    def cut(start):
        if start == len(word):
            return []
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                rest = cut(end)
                if rest is not None:
                    return [piece, *rest]
        return None
    return (cut(0) or ["[UNK]"]) if len(word) <= 100 else ["[UNK]"]
You look for the cut with the fewest pieces. BERT takes the longest piece at the front, even if the rest then needs more.
    ways = {0: []}
    for end in range(1, len(word) + 1):
        for start in range(end):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary and start in ways:
                if end not in ways or len(ways[start]) + 1 < len(ways[end]):
                    ways[end] = [*ways[start], piece]
    return ways.get(len(word), ["[UNK]"]) if len(word) <= 100 else ["[UNK]"]
You take the longest piece at the end of the word first. BERT begins at the front.
    pieces = []
    while word and len(word) <= 100:
        starts = [i for i in range(len(word)) if ("##" if i else "") + word[i:] in vocabulary]
        if not starts:
            return ["[UNK]"]
        pieces.insert(0, ("##" if starts[0] else "") + word[starts[0] :])
        word = word[: starts[0]]
    return pieces or ["[UNK]"]
""",
)
def split_word(word, vocabulary):
    if len(word) > 100:
        return ["[UNK]"]
    pieces, start = [], 0  #: no pieces yet, and where the rest begins
    while start < len(word):
        prefix = "##" if start else ""  #: the marks ##, except at the front of the word
        for end in range(len(word), start, -1):  #: the ends to try, the longest piece first
            if prefix + word[start:end] in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])  #: the longest piece that fits, with any marks
        start = end  #: where the rest of the word begins
    return pieces


# --- two_rules --------------------------------------------------------------------------------------------


def _first_merge(corpus: dict[str, int], rule: str) -> str:
    """The pair that a rule merges first, or "a tie"."""
    pieces: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for word, count in corpus.items():
        spelled = [word[0], *("##" + letter for letter in word[1:])]
        for piece in spelled:
            pieces[piece] += count
        for pair in pairwise(spelled):
            pairs[pair] += count
    worth = {
        (a, b): times if rule == "count" else Fraction(times, pieces[a] * pieces[b])
        for (a, b), times in pairs.items()
    }
    best = [pair for pair in worth if worth[pair] == max(worth.values())]
    return " ".join(best[0]) if len(best) == 1 else "a tie"


def _rules_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "##u ##g by the count, ##n ##s by the score", "ug", "ns"
    for _ in range(3):
        a, b, c, d = _letters(rng, 4)
        yield f"##{a} ##{b} by the count, ##{c} ##{d} by the score", a + b, c + d


@exercise(
    difficulty=2,
    minutes=20,
    cases=_rules_cases,
    given="first_merge",
    hints="""
Both pairs are inside words, so each word needs a letter in front. This letter makes a pair too: (x, ##u) in xug.

For the count, put different letters in front of the same two. The pairs with the letter in front are then different, but the pair after it is always the same.

For the score, note that a pair whose two pieces occur nowhere else scores 1 / count. So does the pair with the letter in front, unless this letter also occurs elsewhere. A word that is only this letter raises the letter's count.
""",
    mistakes="""
By the count there is a tie, because the letter in front precedes the pair's first letter as often as the pair occurs. Put different letters in front.
    10 for x in fronts[:3] -> 30 for x in fronts[:1]
By the score there is a tie, because the pair with the letter in front scores as much. Let this letter occur elsewhere too, for example as a word of its own.
    , fronts[3]: 9 ->
By both rules there is a tie, because each pair with a letter in front occurs as often as the pair after it, and scores as much.
    10 for x in fronts[:3] -> 30 for x in fronts[:1] ; , fronts[3]: 9 ->
You have the two pairs the wrong way round: the count must choose the first, and the score the second.
    x + frequent: -> x + likely: ; fronts[3] + likely -> fronts[3] + frequent
Your pairs are at the front of their words, where the first piece has no ##. Put a letter before them.
    x + frequent: 10 for x in fronts[:3] -> frequent: 30
    fronts[3] + likely: 1, fronts[3]: 9 -> likely: 1
    x + frequent: 10 for x in fronts[:3] -> frequent: 30 ; fronts[3] + likely: 1, fronts[3]: 9 -> likely: 1
The letters of a pair are in the other order in your words: ##u ##g means u before g.
    x + frequent: -> x + frequent[::-1]:
    fronts[3] + likely: -> fronts[3] + likely[::-1]:
    x + frequent: -> x + frequent[::-1]: ; fronts[3] + likely: -> fronts[3] + likely[::-1]:
The score takes the first pair too, because your second pair is too frequent or its pieces occur elsewhere. A pair that occurs once, and whose pieces occur nowhere else, has the highest score, 1.
    fronts[3] + likely: 1, fronts[3]: 9 -> x: 90 for x in fronts[:3]
The count takes the second pair too. Let the first pair occur more often.
    x + frequent: -> x + likely: ; fronts[3] + likely: 1, fronts[3]: 9 -> x: 90 for x in fronts[:3]
""",
)
def two_rules(frequent, likely):
    fronts = [letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in frequent + likely]
    corpus = {x + frequent: 10 for x in fronts[:3]}  #: the first pair behind three letters, ten times each
    corpus |= {fronts[3] + likely: 1, fronts[3]: 9}  #: the second pair once, and its front letter nine times
    return _first_merge(corpus, "count"), _first_merge(corpus, "score")


# --- mended_merges ----------------------------------------------------------------------------------------


def _merges_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "the five words of the chapter", {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}, 5
    yield "a rare word with a frequent pair", {"banana": 1, "nab": 4}, 2
    yield "overlapping pairs", {"baaaa": 3, "baa": 1, "caaa": 2}, 3
    yield "three in a row, and one after them", {"baaac": 5}, 3
    yield "a pair that one word has twice", {"xabab": 3, "cd": 4}, 2
    yield "ties alone", {"ba": 1, "dc": 1, "fe": 1}, 3
    yield "fewer merges than asked for", {"abc": 2}, 9
    words: dict[str, int] = {}
    while len(words) < 8:
        word = "".join("abcd"[i] for i in rng.integers(0, 4, rng.integers(2, 6)))
        words[word] = int(rng.integers(1, 20))
    yield "random words", words, 6


@exercise(
    difficulty=2,
    minutes=15,
    cases=_merges_cases,
    hints="""
Run the broken learner on {"hug": 1} and look at the words after the first merge, and at the names of the pieces.

Then give it {"hug": 10, "pun": 1, "bun": 1}. Which pair occurs most often?
""",
    mistakes="""
[words-once] A word that occurs ten times has each of its pairs ten times. Yours counts each different word once.
    += word_counts[word] -> += 1
[marks-in-middle] The name of the new piece keeps a ## in its middle. Only the first piece keeps its marks.
    best[1].removeprefix("##") -> best[1]
The second piece of a merged pair is still there, after the new piece. Both old pieces must go.
    pieces[i : i + 2] = [new] -> pieces[i] = new
The new piece has lost its ## in front. It still continues a word if its first piece did.
    new = best[0] + -> new = best[0].removeprefix("##") +
You count the pairs once, at the start. Each merge changes its neighbours' counts, so count again each time.
    learned = []
    pairs = Counter()
    for word in word_counts:
        for pair in pairwise([word[0], *("##" + letter for letter in word[1:])]):
            pairs[pair] += word_counts[word]
    for best in sorted(pairs, key=lambda pair: (-pairs[pair], pair))[:n]:
        learned.append(best[0] + best[1].removeprefix("##"))
    return learned
Of pairs that occur equally often, the first in alphabetical order comes first. You take the pair that you met first.
    (-pairs[pair], pair) -> -pairs[pair]
Of pairs that occur equally often, the first in alphabetical order comes first. You take the last.
    min(pairs, key=lambda pair: (-pairs[pair], pair)) -> max(pairs, key=lambda pair: (pairs[pair], pair))
You go through each word from right to left. Of two matches that overlap, merge the left one: ##a ##a ##a becomes ##aa ##a.
    i = 0 -> i = len(pieces) ; while i < len(pieces): -> while i >= 0: ; i += 1 -> i -= 1
You merge only the first match in each word. A pair can occur in a word more than once.
    i += 1 -> i += 1 + len(pieces) * (pieces[i] == new)
When no pair is left, stop and return what was learned, even if it is fewer than n pieces.
    break -> return []
You merge once more than asked for, or once less: n is the number of merges.
    range(n) -> range(n + 1) || range(n - 1)
A pair that stands in a word twice counts twice. You count it once for each word.
    for pair in pairwise(pieces) -> for pair in dict.fromkeys(pairwise(pieces))
""",
)
def mended_merges(word_counts, n):
    words = {word: [word[0], *("##" + letter for letter in word[1:])] for word in word_counts}
    learned = []  #: the names of the merged pieces, in order
    for _ in range(n):  #: one number for each merge
        pairs: Counter[tuple[str, str]] = Counter()  #: the counts of pairs, anew for each merge
        for word, pieces in words.items():  #: each word, with its pieces so far
            for pair in pairwise(pieces):  #: the word's pairs of neighbouring pieces
                pairs[pair] += word_counts[word]  #: how often the word itself occurs
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))  #: the most frequent pair, ties by alphabet
        new = best[0] + best[1].removeprefix("##")  #: the merged piece, no marks in between
        learned.append(new)  #: the name of the merged piece
        for pieces in words.values():  #: the pieces of every word
            i = 0  #: the position in the word, from the left
            while i < len(pieces):
                if tuple(pieces[i : i + 2]) == best:
                    pieces[i : i + 2] = [new]  #: the new piece, for both old ones
                i += 1  #: the step to the next piece on the right
    return learned


# --- fewest_pieces ----------------------------------------------------------------------------------------


def _fewest_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    a, b, c, d, e, x = _letters(rng, 6)
    letters = {a, b, c, d, e, *("##" + letter for letter in (a, b, c, d, e))}
    yield "a word that is a piece", a + b + c, letters | {a + b + c}
    yield "characters alone", a + b + c + d, letters
    yield "the longest match needs more", a + b + c + d + e, letters | {a + b, "##" + b + c + d + e}
    yield "the longest match gets stuck", a + b + c, {a + b, a, "##" + b + c}
    yield (
        "the first cut that fits is not the best",
        a + b + c + d + e,
        letters | {a + b + c + d, "##" + c + d + e},
    )
    yield "the shortest first piece is wrong too", a + b + c + d, letters | {a + b, "##" + b, "##" + c + d}
    yield "a piece that the vocabulary has only without ##", a + b + c, letters | {b + c}
    yield "a character that the vocabulary lacks", a + b + x, letters
    yield "the vocabulary has the end alone", a + b + c, {"##" + c, "##" + b + c}
    word = "".join("ab"[i] for i in rng.integers(0, 2, 18))
    cuts = [word[i : i + n] for i in range(1, 16) for n in (2, 3, 5) if rng.random() < 0.5]
    yield "18 letters", word, {"a", "b", "##a", "##b", *("##" + piece for piece in cuts)}
    yield "60 letters, which can be cut in 2^59 ways", 60 * a, {a, "##" + a, "##" + 7 * a}
    yield "105 letters", 105 * a, {a, "##" + a, "##" + 7 * a}


@exercise(
    difficulty=2,
    minutes=20,
    cases=_fewest_cases,
    hints="""
Let best[end] be the fewest pieces that the first `end` letters need. best[0] is 0.

The last piece of these letters begins somewhere: best[end] is the smallest best[start] + 1 over all starts whose word[start:end] is a piece.
""",
    mistakes="""
You count the pieces of the longest match. Try every position where the last piece can begin, not only the first that fits.
    pieces, start = 0, 0
    while start < len(word):
        ends = [end for end in range(start + 1, len(word) + 1) if ("##" if start else "") + word[start:end] in vocabulary]
        if not ends:
            return 0
        pieces, start = pieces + 1, ends[-1]
    return pieces
You count the pieces of the longest match. Where it gets stuck, its answer ["[UNK]"] has length 1, and elsewhere it is not always the shortest way. Try every position where the last piece can begin.
    pieces, start = 0, 0
    while start < len(word):
        ends = [end for end in range(start + 1, len(word) + 1) if ("##" if start else "") + word[start:end] in vocabulary]
        if not ends:
            return 1
        pieces, start = pieces + 1, ends[-1]
    return pieces
You count the cuts, but a word with one cut has two pieces.
    else best[-1] -> else best[-1] - 1
You look up every piece without ##.
    ("##" if start else "") -> ""
You ignore the marks. At the front of a word only pieces without ## fit, and inside it only those with ##.
    ("##" if start else "") + word[start:end] in vocabulary -> word[start:end] in {one.removeprefix("##") for one in vocabulary}
The piece at the front of a word has no ##.
    ("##" if start else "") -> "##"
You keep the last cut that you find. Return the fewest pieces over all cuts.
    min(best[end], best[start] + 1) -> best[start] + 1
You keep the first cut that you find. Compare it with the others.
    min(best[end], best[start] + 1) -> best[start] + 1 if best[end] == math.inf else best[end]
You begin with 0 pieces for each beginning, and so no cut can need fewer. What no pieces spell is not free: begin with infinity.
    [math.inf] * len(word) -> [0] * len(word) ; min(best[end], best[start] + 1) -> min(best[end] or math.inf, best[start] + 1)
Where no cut exists, the answer is 0.
    0 if -> len(word) if || 1 if || -1 if || math.inf if
You return 0 for every word of more than 100 letters. That rule is exercise 1's. Here a word of any length can be cut.
    return 0 if best[-1] == math.inf -> return 0 if best[-1] == math.inf or len(word) > 100
You return the numbers for all beginnings of the word. Return only the number for the whole word.
    return 0 if best[-1] == math.inf else best[-1] -> return best
""",
)
def fewest_pieces(word, vocabulary):
    best = [0, *[math.inf] * len(word)]  #: the fewest pieces for 0, 1, … letters so far
    for end in range(1, len(word) + 1):  #: the lengths of the word's beginnings, from 1
        for start in range(end):  #: the positions where the last piece can begin
            if ("##" if start else "") + word[start:end] in vocabulary:
                best[end] = min(best[end], best[start] + 1)  #: the fewest pieces for `end` letters so far
    return 0 if best[-1] == math.inf else best[-1]


# --- likelihood_gain --------------------------------------------------------------------------------------


def _gain_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "##u ##g of the five words", 113, 36, 20, 20
    yield "##g ##s of the five words", 113, 20, 5, 5
    yield "two pieces that are never apart", 1000, 7, 7, 7
    for name, n in (("a small text", 200), ("a larger text", 20_000), ("another one", 5_000)):
        first, second = (int(rng.integers(n // 20, n // 4)) for _ in range(2))
        yield name, n, first, second, int(rng.integers(1, min(first, second) // 2))


@exercise(
    difficulty=3,
    minutes=25,
    cases=_gain_cases,
    rtol=1e-8,
    atol=1e-8,
    hints="""
Write the log-likelihood as a sum of c log c over all pieces, minus n log n. Only the terms of a, b, the new piece and n change.

After the merge a occurs c_a - c_ab times, b occurs c_b - c_ab times, and the new piece c_ab times. How many pieces are there then?

c log c is 0 for c = 0, and log(0) fails.
""",
    mistakes="""
[same-length] The text has fewer pieces after the merge. Each merged pair leaves one piece fewer, so n becomes n - c_ab.
    - power(n - c_ab) + power(n) ->
You forget that a and b occur less often after the merge: c_a - c_ab and c_b - c_ab times.
    power(c_a - c_ab) -> power(c_a) ; power(c_b - c_ab) -> power(c_b)
    power(c_b - c_ab) -> power(c_b)
    power(c_a - c_ab) -> power(c_a)
[no-new-piece] The new piece is missing: it occurs c_ab times.
    + power(c_ab) ->
That is the count times the logarithm of n times the score. It leaves out that a, b and n change with the merge. Take the difference of the two log-likelihoods.
    return c_ab * math.log(n * c_ab / (c_a * c_b))
That is the score, or its logarithm. The gain is a difference of two log-likelihoods.
    return c_ab / (c_a * c_b)

    return math.log(c_ab / (c_a * c_b))

    return math.log(n * c_ab / (c_a * c_b))
That is before minus after: the gain is after minus before.
    return -right(n, c_a, c_b, c_ab)
You change n under the logarithms of a, b and the new piece only. All other pieces have probability c / n too, so their terms change with n. Write the whole sum as the sum of c log c, minus n log n.
    def power(c, n):
        return c * math.log(c / n) if c else 0.0
    m = n - c_ab
    return power(c_a - c_ab, m) + power(c_b - c_ab, m) + power(c_ab, m) - power(c_a, n) - power(c_b, n)
You divide by the same n before and after the merge. Each merged pair leaves one piece fewer, so all the other pieces become more probable.
    def power(c):
        return c * math.log(c / n) if c else 0.0
    return power(c_a - c_ab) + power(c_b - c_ab) + power(c_ab) - power(c_a) - power(c_b)
The unit is nats: take the natural logarithm, math.log.
    math.log -> math.log2 || math.log10
A piece that is gone has c = 0, where log fails or gives -inf. Its term c log c is 0.
    c * math.log(c) if c else 0.0 -> float(c * np.log(np.float64(c)))
That is the gain for each piece of the text. Return the gain of the whole text.
    total = right(n, c_a, c_b, c_ab)
    return total / n
That is the gain of one occurrence of the pair. Return the gain of the whole text.
    return right(n, c_a, c_b, c_ab) / c_ab
""",
)
def likelihood_gain(n, c_a, c_b, c_ab):
    def power(c):
        return c * math.log(c) if c else 0.0  #: the term c log c, 0 where c is 0

    # Compared with c_ab log(n · score), the terms of a and b take away up to c_ab each,
    # and that of n adds up to c_ab, because the text gets shorter.
    after = power(c_a - c_ab) + power(c_b - c_ab) + power(c_ab)  #: the terms of a, b and ab after the merge
    return after - power(n - c_ab) + power(n) - power(c_a) - power(c_b)
