"""What chapter `nsp` shows: how a document is cut into pairs, pairs with a mistake, and judges of pairs."""

from __future__ import annotations

import html
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bert_course.common.figures import Figure, Picture, figure
from bert_course.common.palette import STYLE
from bert_course.common.pencil import box, words
from bert_course.common.softmax import softmax
from bert_course.common.widgets import Frame, Player, player, svg
from minigrad import no_grad
from minigrad.bert.data import create_pairs, make_rows, truncate
from minigrad.text.sentences import NOT_NEXT, SentencePair
from minigrad.text.tokenizer import WordPieceTokenizer

_ASKED = """<style>
.course-questions {max-width: 40rem; margin: 0.5rem 0}
.course-questions .pair {display: grid; grid-template-columns: 1fr 8rem; gap: 0.1rem 1.2rem; padding: 0.4rem 0}
.course-questions .pair {border-top: 1px solid var(--course-grid)}
.course-questions .name {grid-column: 1 / -1; font-weight: bold}
.course-questions p {margin: 0.1rem 0; padding-left: 1.4rem; text-indent: -1.4rem}
.course-questions .a b {color: var(--course-first)}
.course-questions .b b {color: var(--course-second)}
.course-questions b {display: inline-block; width: 1.4rem; text-indent: 0}
.course-questions .answer {align-self: center; text-align: right; font-size: 1.2rem}
.course-questions .bar {display: block; height: 0.7rem; border: 1px solid var(--course-grid); text-align: left}
.course-questions .bar span {display: block; height: 100%; background: var(--course-weight); print-color-adjust: exact}
@media (max-width: 30rem) {.course-questions .pair {grid-template-columns: 1fr 5rem}}
</style>"""


class Questions:
    """Pairs of texts in a cell's output, each with how likely a model finds it that B is next.

    asked: from the name of a pair to A, B and the probability.
    """

    def __init__(self, asked: Mapping[str, tuple[str, str, float]]) -> None:
        self.asked = dict(asked)

    def _repr_html_(self) -> str:
        drawn = ""
        for name, (a, b, chance) in self.asked.items():
            texts = f'<p class="a"><b>A</b>{html.escape(a)}</p><p class="b"><b>B</b>{html.escape(b)}</p>'
            bar = f'<span class="bar"><span style="width: {100 * chance:.0f}%"></span></span>'
            drawn += f'<div class="pair"><div class="name">{html.escape(name)}</div><div>{texts}</div>'
            drawn += f'<div class="answer">{chance:.2f}{bar}</div></div>'
        return f'<div class="course-questions course-colours">{STYLE}{_ASKED}{drawn}</div>'

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {a} | {b} => {chance:.2f}" for name, (a, b, chance) in self.asked.items())


Text = list[list[int]]  # some sentences, each as its ids

Chunk = tuple[int, int, int, int]  # start, middle and end of a chunk, in sentences, and the label of its pair

_LEFT, _TOP, _HEIGHT, _GAP, _WIDTH = 8, 34, 36, 4, 560


def chunk_player(lengths: Sequence[int], chunks: Sequence[Chunk], target: int) -> Player:
    """A frame for each pair that was cut from one document.

    lengths: tokens of its sentences. chunks: as the page's `walk` gives them. target: the tokens that it gathers.
    """
    frames = []
    for number, (start, middle, end, label) in enumerate(chunks, 1):
        a, b = _sentences(start, middle), _sentences(middle, end) if middle < end else ""
        held = f"{sum(lengths[start:end])} tokens (target {target})"
        if sum(lengths[start:end]) < target:
            held = f"{sum(lengths[start:end])} tokens, because the document ends"
        if label == 0:
            words = f"A is {a}, and B is {b}. The next chunk starts after B."
        elif middle == end:
            words = f"The chunk is {a} only, so nothing is left for B, and no coin is tossed: B is random."
        else:
            words = f"A is {a}, and B is random. The next chunk starts at sentence {middle + 1}, which was not used."
        title = f"Pair {number}, {('IsNext', 'NotNext')[label]}"
        frames.append(Frame(title, _drawn(lengths, (start, middle, end, label)), f"{held}. {words}"))
    alt = "A document's sentences as boxes as long as their tokens; each chunk of them is cut into A and B"
    return player(frames, "pair", alt, first=0)


def _sentences(start: int, end: int) -> str:
    numbers = [str(n + 1) for n in range(start, end)]
    if len(numbers) == 1:
        return f"sentence {numbers[0]}"
    return f"sentences {', '.join(numbers[:-1])} and {numbers[-1]}"


def _drawn(lengths: Sequence[int], chunk: Chunk) -> str:
    start, middle, end, label = chunk
    unit = (_WIDTH - 2 * _LEFT - _GAP * (len(lengths) - 1)) / sum(lengths)
    parts, x, places = [], float(_LEFT), []
    for n, tokens in enumerate(lengths):
        width = tokens * unit
        role = "first" if start <= n < middle else "second" if middle <= n < end and label == 0 else "token"
        unused = middle <= n < end and label == 1
        parts += _box(x, _TOP, width, role, f"{n + 1}", dashed=unused)
        places.append((x, x + width))
        x += width + _GAP
    parts.append(words(_LEFT, 22, "the document", 18, "ink", "start"))
    at = (places[start][0] + places[middle - 1][1]) / 2
    parts.append(words(at, _TOP + _HEIGHT + 20, "A", 18, "first"))
    below = _TOP + _HEIGHT + 34
    if label == 0:
        at = (places[middle][0] + places[end - 1][1]) / 2
        parts.append(words(at, _TOP + _HEIGHT + 20, "B", 18, "second"))
    parts.append(words(_LEFT, below + 16, "another document", 18, "ink", "start"))
    for n in range(5):
        role = "second" if label == 1 and n in (2, 3) else "token"
        parts += _box(_LEFT + n * 66, below + 28, 62, role, "?")
    if label == 1:
        parts.append(words(_LEFT + 2 * 66 + 64, below + 28 + _HEIGHT + 20, "B", 18, "second"))
    return svg(_WIDTH, below + 28 + _HEIGHT + 30, parts)


def _box(x: float, y: float, width: float, role: str, text: str, dashed: bool = False) -> list[str]:
    """A sentence; it is filled if it is in the pair."""
    fill, line = (0.22, 2) if role != "token" else (0, 1)
    dashes = {"stroke_dasharray": "5 4"} if dashed else {}
    drawn = box(x, y, width, _HEIGHT, role, fill, line, **dashes)
    return [drawn, words(x + width / 2, y + 24, text, 18, "ink")]


def share_curves(means: Sequence[int], shares: Mapping[int, Sequence[float]]) -> Picture:
    """The share of IsNext (%) against the mean sentence in tokens, a curve for each number of sentences."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        axes.axhline(50, color=colours["ink"], linewidth=1, linestyle="--")
        for (sentences, values), name in zip(shares.items(), ("first", "second", "third"), strict=True):
            per_cent = [100 * value for value in values]
            axes.plot(means, per_cent, "o-", color=colours[name], label=f"{sentences} sentences")
        axes.legend(title="in a document", loc="lower left")
        axes.set(xlabel="mean length of a sentence (tokens)", ylabel="IsNext (% of the pairs)", ylim=(0, 55))

    return figure(
        plot,
        "Share of IsNext against the length of sentences: below one half everywhere, lower for short documents, and "
        "falling to almost nothing where a sentence fills the sequence.",
    )


def judged(kinds: Sequence[str], says: Mapping[str, Sequence[np.ndarray]]) -> Picture:
    """For each kind of pair the share (%) that each judge calls IsNext, with its range.

    says: by judge, and for each kind, whether it calls each pair IsNext.
    """

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        axes.axvline(50, color=colours["grid"], linewidth=1)
        rows = np.arange(len(kinds))[::-1].astype(float)
        for (judge, found), name, up in zip(says.items(), ("first", "second"), (0.13, -0.13), strict=True):
            middle, half = (100 * np.array([_with_range(hits) for hits in found])).T
            axes.errorbar(middle, rows + up, xerr=half, fmt="o", color=colours[name], label=judge, capsize=3)
        axes.set_yticks(rows, kinds)
        axes.legend(loc="lower right")
        axes.set(xlabel="called IsNext (% of the pairs)", xlim=(0, 100), ylim=(-0.9, len(kinds) - 0.5))

    return figure(
        plot,
        "Share of pairs that two judges call IsNext, by kind of pair. For both of them neighbours and "
        "swapped neighbours lie close together and high, two places of one document lie lower, and two documents "
        "lowest.",
    )


# --- Pairs, sound ones and others ----------------------------------------------------------------------------


def elsewhere(
    documents: Sequence[Text], number: int, size: int, rng: np.random.Generator, mistake: str = "none"
) -> Text:
    """`size` sentences of a document other than `number`, from any place but its first sentence, each as likely.

    mistake: "B is longer" (4 sentences), "B opens a document", "drawn as released" (each document as likely, and
    then each place in it from which `size` sentences are left), "B is of A's document", or "none". Raises ValueError
    for another one.
    """
    if mistake not in MISTAKES:
        raise ValueError(f"no mistake {mistake!r}: expected {', '.join(MISTAKES)}")
    if mistake == "B is longer":
        size = 4
    own = mistake == "B is of A's document"
    places = np.array([max(0, len(d) - size) * ((n == number) == own) for n, d in enumerate(documents)])
    weights = places > 0 if mistake == "drawn as released" else places
    document = documents[int(rng.choice(len(documents), p=weights / weights.sum()))]
    at = int(rng.integers(0 if mistake == "drawn as released" else 1, len(document) - size + 1))
    if mistake == "B opens a document":
        at = 0
    return document[at : at + size]


MISTAKES = ("none", "B is longer", "B opens a document", "drawn as released", "B is of A's document")


def given_away(
    documents: Sequence[Text], mark: Callable[[Text, int], bool], length: int, seed: int
) -> tuple[float, float, float]:
    """What marked sentences give away in the pairs of `create_pairs`, of `length` tokens at most.

    mark: whether the sentence in this place of this document is marked. Returns the share of IsNext whose B holds
    tokens of marked sentences, that of NotNext, and the accuracy of a judge that calls those pairs NotNext.
    """
    marks = [[[int(mark(d, n))] * len(sentence) for n, sentence in enumerate(d)] for d in documents]
    pairs = create_pairs(marks, length, np.random.default_rng(seed))
    random = np.array([pair.next_sentence_label == NOT_NEXT for pair in pairs])
    marked = np.array([any(pair.b) for pair in pairs])
    return float(marked[~random].mean()), float(marked[random].mean()), float((marked == random).mean())


def four_kinds(documents: Sequence[Text], rng: np.random.Generator) -> list[list[tuple[Text, Text]]]:
    """Pairs (A, B) of two sentences each, in four lists with the same A in the same place.

    B is A's neighbour; the two are swapped; B is of the same document, with four sentences or more between them; B is
    of another document.
    """
    found = []
    for number, document in enumerate(documents):
        for start in range(0, len(document) - 3, 4):
            a, b = document[start : start + 2], document[start + 2 : start + 4]
            far = [at for at in range(len(document) - 1) if not start - 6 < at < start + 8]
            if far:
                at = int(rng.choice(far))
                other = elsewhere(documents, number, 2, rng)
                found.append([(a, b), (b, a), (a, document[at : at + 2]), (a, other)])
    return [list(kind) for kind in zip(*found, strict=True)]


# --- Judges of pairs -----------------------------------------------------------------------------------------


def shared_pieces(sentences: Sequence[Sequence[int]]) -> Callable[[Text, Text], float]:
    """A function of A and B: how much they share, from 0 to 1.

    It is the cosine of their TF-IDF vectors: rare pieces count more.
    """
    known = Counter(piece for sentence in sentences for piece in set(sentence))
    weight = {piece: math.log(len(sentences) / n) for piece, n in known.items()}

    def score(a: Text, b: Text) -> float:
        A, B = (Counter(piece for sentence in text for piece in sentence) for text in (a, b))
        dot = sum(A[piece] * B[piece] * weight[piece] ** 2 for piece in A)
        sizes = [sum((n * weight[piece]) ** 2 for piece, n in text.items()) for text in (A, B)]
        return dot / math.sqrt(math.prod(sizes)) if dot else 0.0

    return score


def by_model(model: Any, tokenizer: WordPieceTokenizer, pairs: Sequence[tuple[Text, Text]]) -> np.ndarray:
    """P(IsNext) of each pair (n,), cut to the model's length."""
    rng, length = np.random.default_rng(0), model.config.max_position_embeddings
    flat = [[list(itertools.chain(*text)) for text in pair] for pair in pairs]
    cut = [truncate(a, b, length - 3, rng) for a, b in flat]
    rows = make_rows([SentencePair(a, b, 0) for a, b in cut], tokenizer, length)
    with no_grad():
        return softmax(model(**rows).seq_relationship_logits.numpy())[:, 0]


def _with_range(hits: Any) -> tuple[float, float]:
    """The mean of booleans, and half of the 95 % range of the share behind it if they were independent."""
    mean = float(np.mean(hits))
    return mean, 1.96 * math.sqrt(mean * (1 - mean) / len(hits))


def accuracy(
    see: Callable[[Text, Text], Iterable[Any]],
    learn: Sequence[tuple[Text, Text, int, int]],
    test: Sequence[tuple[Text, Text, int, int]],
) -> float:
    """The accuracy on `test` of a judge that knows a pair only by what it sees: features, from A and B.

    Each feature votes for a label by how much more often it comes with that label in `learn`: naive Bayes.
    """
    counts: tuple[Counter[Any], Counter[Any]] = Counter(), Counter()
    for a, b, label, _ in learn:
        counts[label].update(set(see(a, b)))
    sizes = [sum(label == one for *_, one, _ in learn) + 2 for label in (0, 1)]
    votes = {
        feature: math.log((counts[1][feature] + 1) / sizes[1]) - math.log((counts[0][feature] + 1) / sizes[0])
        for feature in counts[0] | counts[1]
    }
    says = [int(sum(votes.get(feature, 0) for feature in set(see(a, b))) > 0) for a, b, *_ in test]
    return float(np.mean([guess == label for guess, (*_, label, _) in zip(says, test, strict=True)]))
