"""What the chapter shows: merges as they were made, the longest match as a staircase, tokens by the vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from bert_course.common.pencil import box, words
from bert_course.common.widgets import Frame, svg
from minigrad.text.wordpiece import CONTINUES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bert_course.common.figures import Picture

Pair = tuple[str, str]
# words in pieces, counts of pairs, the pair to merge
State = tuple[Mapping[str, list[str]], Mapping[Pair, int], Pair]

# --- Merges, one after the other --------------------------------------------------------------------------

WIDE, ROW, BOX = 480, 30, 34  # of the picture, from a row to the next, of a box for a piece with two letters
PAIRS_SHOWN = 6


def play_merges(history: Sequence[State], counts: Mapping[str, int]) -> list[Frame]:
    """Frames for `widgets.player`, one for each merge: the words in pieces, the pair to merge, the counts of all pairs.

    history: what the page's loop had before each merge. counts: how often each word occurs.
    """
    frames = []
    for number, (in_pieces, pairs, best) in enumerate(history, 1):
        merged = best[0] + best[1].removeprefix(CONTINUES)
        frames.append(
            Frame(
                f"Merge {number}: {best[0]} and {best[1]}",
                _merge_drawing(in_pieces, pairs, best, counts),
                f"The pair occurs {pairs[best]} times, and no other pair occurs more often. "
                f"{merged} joins the vocabulary.",
            )
        )
    return frames


def _merge_drawing(
    in_pieces: Mapping[str, list[str]], pairs: Mapping[Pair, int], best: Pair, counts: Mapping[str, int]
) -> str:
    drawn = [
        words(6, 16, "times", 12, anchor="start"),
        words(48, 16, "the words in pieces", 12, anchor="start"),
    ]
    for row, (word, pieces) in enumerate(in_pieces.items()):
        y, x, i = 26 + row * ROW, 48.0, 0
        drawn.append(words(36, y + 18, str(counts[word]), 14, anchor="end"))
        while i < len(pieces):
            lit = tuple(pieces[i : i + 2]) == best
            for piece in pieces[i : i + 1 + lit]:
                width = 12 + 8.5 * len(piece)
                drawn.append(box(x, y, width, 24, *(("second", 0.35) if lit else ("token", 0.08))))
                drawn.append(words(x + width / 2, y + 17, piece, 14))
                x += width + 3
            i += 1 + lit
    drawn.append(words(258, 16, "pairs, and how often they occur", 12, anchor="start"))
    often = sorted((pair for pair, times in pairs.items() if times), key=lambda pair: -pairs[pair])
    for row, pair in enumerate(often[:PAIRS_SHOWN]):
        y = 26 + row * ROW
        drawn.append(words(326, y + 17, " ".join(pair), 14, anchor="end"))
        length = max(3.0, 110 * pairs[pair] / 20)
        drawn.append(box(334, y + 3, length, 18, "second" if pair == best else "token", 0.35))
        drawn.append(words(340 + length, y + 17, str(pairs[pair]), 14, anchor="start"))
    return svg(WIDE, 36 + ROW * max(len(in_pieces), PAIRS_SHOWN), drawn)


# --- The longest match ------------------------------------------------------------------------------------


def tried(word: str, vocabulary: Collection[str]) -> list[tuple[int, int, bool]]:
    """What a longest match looks up in one word, in order: from where, to where, and whether the piece was there."""
    looked: list[tuple[int, int, bool]] = []
    start = 0
    while start < len(word):
        for end in range(len(word), start, -1):
            there = (CONTINUES if start else "") + word[start:end] in vocabulary
            looked.append((start, end, there))
            if there:
                break
        else:
            return looked
        start = end
    return looked


def cut_picture(word: str, vocabulary: Collection[str]) -> Picture:
    """Every piece that a longest match looks up in a word, from top to bottom, to be the last line of a cell."""
    # here: without matplotlib, `figures` says what is missing
    from bert_course.common.figures import Picture

    cell, row = 34, 24
    looked = tried(word, vocabulary)
    drawn = [words((i + 0.5) * cell + 4, 18, letter, tone="ink") for i, letter in enumerate(word)]
    for number, (start, end, there) in enumerate(looked):
        y, width = 28 + number * row, (end - start) * cell - 4
        drawn.append(
            box(start * cell + 6, y, width, row - 5, *(("right", 0.35) if there else ("token", 0.08)))
        )
        piece = (CONTINUES if start else "") + word[start:end]
        drawn.append(words(start * cell + 6 + width / 2, y + 14, piece, 12, "ink"))
    width, height = len(word) * cell + 8, 32 + row * len(looked)
    found = [(CONTINUES if start else "") + word[start:end] for start, end, there in looked if there]
    alt = (
        f"The look-ups for {word}, from top to bottom: the first bar is as long as the word, and the bars get shorter "
        "from the right until a piece is found; the next bar begins where the piece ends. "
        f"Found: {', '.join(found) or 'nothing'}."
    )
    return Picture(svg(width, height, drawn), alt, round(1.5 * width))


# --- Tokens by the size of the vocabulary -----------------------------------------------------------------


def size_curves(
    sizes: Sequence[int],
    pieces: Sequence[float],
    lost: Sequence[int],
    unknown: Sequence[int],
    words: int,
    characters: float,
) -> Picture:
    """Above, WordPiece's tokens for a word by the vocabulary's size; below, the words that each kind of list lacks.

    pieces: tokens for a word. lost, unknown: how many words of a text WordPiece, and a list of words, does not know.
    words: how many the text has. characters: tokens for a word, if each is a character.
    """
    from bert_course.common.figures import figure

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        above, below = canvas.subplots(2, 1, sharex=True)
        above.plot(sizes, pieces, "o-", color=colours["first"])
        above.axhline(characters, linestyle="--", color=colours["third"])
        above.axhline(1, linestyle="--", color=colours["third"])
        for height, name in ((characters, "characters"), (1, "words")):
            above.annotate(
                name, (sizes[0], height), (0, 4), textcoords="offset points", color=colours["third"]
            )
        above.annotate(
            "WordPiece", (sizes[1], pieces[1]), (6, 6), textcoords="offset points", color=colours["first"]
        )
        above.set(ylabel="tokens per word", ylim=(0.6, 4.2))
        lacking, stuck = ([100 * count / words for count in counts] for counts in (unknown, lost))
        below.plot(sizes, lacking, "s-", color=colours["second"])
        below.plot(sizes, stuck, "o-", color=colours["first"])
        below.annotate(
            "words", (sizes[1], lacking[1]), (6, 4), textcoords="offset points", color=colours["second"]
        )
        below.annotate(
            "WordPiece", (sizes[1], stuck[1]), (6, 6), textcoords="offset points", color=colours["first"]
        )
        below.set(ylabel="unknown (%)", xlabel="size of the vocabulary", xscale="log", ylim=(-3, 30))
        below.set_xticks(sizes, [f"{size:,}" for size in sizes])
        below.minorticks_off()

    return figure(
        plot,
        "Two plots over the size of the vocabulary. Above: WordPiece's tokens per word fall from near two towards "
        f"one; characters need {characters:.1f} at any size. Below: the share of unknown words falls with the list "
        "of words but stays above zero; with WordPiece it is zero at every size.",
        size=(5.4, 4.2),
    )


def endings_figure(groups: Mapping[str, Mapping[str, float]], named: Sequence[str]) -> Picture:
    """How much more often than by chance words are cut before each string: a dot a string, a row a group, its median.

    named: the strings whose dots have their names beside them.
    """
    from bert_course.common.figures import figure

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        for row, strings in enumerate(groups.values()):
            colour = colours["first" if row == 0 else "second"]
            stacked: Counter[float] = Counter()
            for string, times in sorted(strings.items(), key=lambda one: one[1]):
                x = round(times * 10) / 10  # dots of one tenth stand above each other
                y = 0.055 * stacked[x] - row
                stacked[x] += 1
                axes.plot(x, y, "o", color=colour, markersize=5)
                if string in named:
                    axes.plot([x, x], [y + 0.04, 0.36 - row], color=colour, linewidth=0.8)
                    axes.text(x, 0.38 - row, f"-{string}", ha="center", fontsize=11, color=colour)
            middle = median(strings.values())
            axes.plot([middle, middle], [-row - 0.1, -row + 0.62], color=colours["ink"], linewidth=1.2)
            axes.text(middle, -row + 0.65, "median", ha="center", fontsize=11)
        axes.axvline(1, color=colours["ink"], linestyle="--", linewidth=1)
        axes.text(0.97, -1.26, "chance", ha="right", fontsize=11)
        axes.set_yticks([0.1, -0.9], list(groups), fontsize=11)
        axes.set(
            xlabel="cut right before it, times as often as by chance", xlim=(-0.1, 3.8), ylim=(-1.3, 0.85)
        )
        axes.grid(False)

    told = "; ".join(
        f"{len(strings)} {group}, median {median(strings.values()):.1f}" for group, strings in groups.items()
    )
    alt = f"A dot for each string, placed by how much more often than by chance words are cut before it: {told}."
    return figure(plot, alt.replace("\n", " "), (5.6, 4.0))
