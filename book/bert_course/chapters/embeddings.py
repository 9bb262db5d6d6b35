"""What `embeddings` shows: its hand-sized tables step by step, the stored model's tables, and the ranks of plurals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bert_course.common.figures import Figure, Picture, figure, tinted
from bert_course.common.flow import Box, Flow, Step, View, flow
from bert_course.common.small_model import as_drawn
from minigrad.stories.stories import STORIES
from minigrad.text.tokenizer import WordPieceTokenizer

FEATURES = ("water", "money", "mark", "text", "place")


def embedding_flow(
    tokens: Sequence[str],
    vocabulary: Sequence[str],
    one_hot: Sequence[np.ndarray],
    tables: Sequence[np.ndarray],
) -> Flow:
    """The page's input step by step: the path of its fifth token first, then all rows; the ids' rows can be edited.

    one_hot: (L, V), (L, 2) and (L, L), of tokens, segments, positions. tables: (V, 5), (2, 5) and (L, 5).
    """
    O_T, O_S, O_P = one_hot
    W_T, W_S, W_P = tables
    boxes = [
        Box("O_T", O_T, "token", "tokens", "ids"),
        Box("W_T", W_T, "weight", "pieces", "features"),
        Box("O_S", O_S, "token", "tokens"),
        Box("W_S", W_S, "weight", columns="features"),
        Box("O_P", O_P, "token", "tokens"),
        Box("W_P", W_P, "weight", columns="features"),
        Box("T", "O_T @ W_T", "value", "tokens", "features", label="tokens"),
        Box("S", "O_S @ W_S", "value", "tokens", "features", label="segments"),
        Box("P", "O_P @ W_P", "value", "tokens", "features", label="positions"),
        Box("TS", "T + S", "value", "tokens", "features"),
        Box("X", "TS + P", "query", "tokens", "features"),
    ]

    def fifth(name: str) -> View:
        return View(name, only=[4], lit=[4])

    steps = [
        Step(
            "What comes in",
            [["O_T"], ["W_T"]],
            "O_T has a one-hot row for each token, and W_T has a row for each piece. A row's number is its piece's id.",
        ),
        Step(
            "The row of one token",
            [[View("O_T", lit=[4]), "·", View("W_T", lit=[3])], [fifth("T")]],
            "The 1 in the second bank's row of O_T picks the row of bank.",
        ),
        Step(
            "The rows of all tokens",
            [["O_T", "·", "W_T"], ["T"]],
            "Both banks get the same row, whatever stands around them.",
        ),
        Step("Which text", [["O_S", "·", "W_S"], ["S"]], "W_S has two rows, one for each text."),
        Step(
            "Which position",
            [["O_P", "·", "W_P"], ["P"]],
            "W_P has a row for each position: 0, 1, 2, and so on.",
        ),
        Step(
            "The sum",
            [["T", "+", "S", "+"], ["P", "=", "X"]],
            "The three matrices are added. X is what the encoder gets, before LayerNorm.",
        ),
    ]
    names = {
        "tokens": list(tokens),
        "pieces": list(vocabulary),
        "ids": [str(i) for i in range(len(vocabulary))],
        "features": list(FEATURES),
    }
    choices = {
        piece: (4, np.eye(len(vocabulary))[list(vocabulary).index(piece)].tolist())
        for piece in ("bank", "money", "river")
    }
    alt = "Six tokens pick their rows from three tables, and the rows are added; matrices with their numbers"
    return flow(boxes, steps, alt, names, edit="O_T", choices=choices)


# --- The table of a trained model -------------------------------------------------------------------------


def drawn_tables() -> list[np.ndarray]:
    """W_T, W_S and W_P, in float64, of the stored model as it was before its first step."""
    parts = as_drawn().bert.embeddings
    modules = (parts.word_embeddings, parts.token_type_embeddings, parts.position_embeddings)
    return [module.weight.numpy().astype(float) for module in modules]


def plurals(tokenizer: WordPieceTokenizer) -> tuple[np.ndarray, np.ndarray]:
    """The ids of all pieces of three letters or more that are there with an s as well, and the ids of those with it."""
    pairs = [
        (i, more)
        for i, piece in enumerate(tokenizer.vocab)
        if piece.isalpha() and len(piece) > 2 and (more := tokenizer.token_to_id(piece + "s")) is not None
    ]
    one, several = np.array(pairs).T
    return one, several


def alike_in_letters(
    tokenizer: WordPieceTokenizer, one: np.ndarray, several: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """For each id of `one` another piece with the same first three letters, drawn, not in `several`; 0 if none."""
    starts = np.array([piece[:3] for piece in tokenizer.vocab])
    found = []
    for i, plural in zip(one, several, strict=True):
        others = np.setdiff1d(np.flatnonzero(starts == starts[i]), [i, plural])
        found.append(rng.choice(others) if len(others) else 0)
    return np.array(found)


def rank_curves(ranks: Mapping[str, np.ndarray], pieces: int) -> Picture:
    """For each case the share (%) of words whose partner has at most this rank, of as many pieces."""
    at = np.unique(np.geomspace(1, pieces, 60).round())

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        axes.set_xscale("log")
        for (name, values), colour in zip(ranks.items(), ("first", "second", "third"), strict=True):
            share = [100 * (values <= limit).mean() for limit in at]
            axes.plot(at, share, color=colours[colour], label=name)
        axes.legend(loc="upper left")
        axes.set(xlabel="rank of the partner", ylabel="words (%)", xlim=(1, pieces), ylim=(0, 100))
        axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])

    return figure(
        plot,
        "Share of words whose partner has at most a given rank. For a word's own plural the curve rises from the "
        "first ranks on; for another word's plural, and for a word with the same first letters, it stays near zero "
        "until ranks in the hundreds.",
    )


# --- Words on a map -------------------------------------------------------------------------------------


def kinds_of_words(words: Sequence[str]) -> dict[str, list[int]]:
    """Which of the stories' words are names, places, verbs, adjectives and things; what is left is *other*."""
    lexicon = STORIES["stories"].lexicon
    things = lexicon.kinds.values()
    verbs = {verb for kind in things for verb in kind.verbs}
    groups = {
        "names": {*lexicon.men, *lexicon.women},
        "places": {*lexicon.places},
        "verbs": verbs.union(lexicon.keeps, lexicon.gives, lexicon.shows, lexicon.takes, lexicon.hides),
        "adjectives": {adjective for kind in things for adjective in kind.adjectives},
        "one thing": {noun for kind in things for noun in kind.nouns},
        "several": {f"{noun}s" for kind in things for noun in kind.nouns},
    }
    found = {name: [i for i, word in enumerate(words) if word in group] for name, group in groups.items()}
    known = {i for those in found.values() for i in those}
    return found | {"other words": [i for i in range(len(words)) if i not in known]}


def word_map(places: np.ndarray, words: Sequence[str], alt: str) -> Picture:
    """Words as dots, places (n, 2), in a colour for each kind, which is named; words of no kind are written out."""
    groups = kinds_of_words(words)
    looks = ("first", "value", "second", "gradient", "weight", "key", "third")

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        taken = []  # where groups have their names, so that no word stands there
        for look, (name, those) in zip(looks, groups.items(), strict=True):
            x, y = places[those].T
            axes.scatter(x, y, s=16, color=colours[look])
            if name != "other words":  # beside the group, or above it where there is more room
                label = f"{name}: {words[those[0]]}, {words[those[1]]}"
                spot = (x.min() - 0.02, y.mean()) if x.mean() > 0.6 else (x.mean(), y.max() + 0.025)
                side = "right" if x.mean() > 0.6 else "center"
                axes.text(*spot, label, color=colours[look], ha=side, fontsize=10)
                taken.append((spot[0] - (0.2 if side == "right" else 0), spot[1]))
                continue
            for i in those:
                across, up = (places - places[i]).T
                dots = (np.abs(across) < 0.05) & (up > 0) & (up < 0.06)  # where the word would stand
                if (
                    not dots.any()
                    and not (np.abs(taken - places[i] - [0, 0.02]) < [0.22, 0.045]).all(axis=1).any()
                ):
                    axes.text(
                        *(places[i] + [0, 0.02]), words[i], color=colours[look], ha="center", fontsize=10
                    )
        axes.set(xlim=(-0.12, 1.12), ylim=(-0.04, 1.08), xticks=[], yticks=[])
        axes.spines[:].set_visible(False)

    low, high = places.min(axis=0), places.max(axis=0)
    places = (places - low) / (high - low)  # (n, 2), each from 0 to 1
    return figure(plot, alt, size=(5.6, 4.4))


# --- Tables of positions --------------------------------------------------------------------------------


def table_picture(table: np.ndarray) -> Picture:
    """A table of positions as an image: a row for each position, a column for each entry of its vector."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        axes.imshow(
            tinted(table, colours["first"], colours["second"]), interpolation="nearest", aspect="auto"
        )
        axes.set(xlabel="column", ylabel="position")
        axes.grid(visible=False)

    return figure(
        plot,
        "The table of sinusoids, blue above zero and orange below: narrow stripes on the left, which change colour "
        "every few positions, become wider from pair to pair; the columns of the right half hardly change.",
        size=(5.4, 3.2),
    )


def similarity_maps(maps: Mapping[str, np.ndarray], alt: str) -> Picture:
    """Each matrix of similarities, from -1 to 1, as an image under its name."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        for axes, (name, values) in zip(canvas.subplots(1, len(maps)), maps.items(), strict=True):
            axes.imshow(tinted(values, colours["first"], colours["second"]), interpolation="nearest")
            axes.set_title(name, fontsize=11)
            axes.set_xlabel("position")
            axes.grid(visible=False)
            axes.set_xticks([0, 30, 60])
            axes.set_yticks([0, 30, 60])

    return figure(plot, alt, size=(5.4, 2.4))
