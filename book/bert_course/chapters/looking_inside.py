"""What the chapter shows: stories with gold arcs, the maps of sixteen heads, and heads that are changed in a model."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bert_course.common.figures import Figure, Picture, figure
from bert_course.common.palette import colour
from bert_course.common.softmax import log_softmax
from bert_course.common.varied_stories import RELATIONS as RELATIONS
from bert_course.common.varied_stories import SETTING, Arc, Texts, story_model
from bert_course.common.varied_stories import arcs_of as arcs_of
from bert_course.common.varied_stories import as_drawn as as_drawn
from bert_course.common.varied_stories import read as read
from bert_course.common.widgets import Frame, svg
from minigrad import Tensor, backend, no_grad
from minigrad.bert.attention import additive_mask
from minigrad.text.tokenizer import WordPieceTokenizer

Change = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


# --- Stories with their gold arcs -------------------------------------------------------------------------


def shuffled(texts: Texts, seed: int) -> Texts:
    """The same stories with the words of each in another order, and every arc between the same two words."""
    rng = np.random.default_rng(seed)
    inputs = {key: array.copy() for key, array in texts.inputs.items()}
    hangs, slots = np.full_like(texts.heads, -1), texts.slots.copy()
    goes = np.tile(np.arange(texts.words.shape[1]), (len(texts), 1))  # (S, L), where a token goes
    for number, is_word in enumerate(texts.words):
        old = np.flatnonzero(is_word)
        new = rng.permutation(old)
        goes[number, old] = new
        inputs["input_ids"][number, new] = texts.inputs["input_ids"][number, old]
        slots[number, new] = texts.slots[number, old]
        head = texts.heads[number, old]
        hangs[number, new] = np.where(head >= 0, goes[number, head], -1)
    arcs = {
        name: np.stack([rows[:, 0], goes[rows[:, 0], rows[:, 1]], goes[rows[:, 0], rows[:, 2]]], axis=1)
        for name, rows in texts.arcs.items()
    }
    return Texts(inputs, texts.words, hangs, slots, arcs, texts.stories)


def some_words(texts: Texts, count: int, seed: int) -> np.ndarray:
    """So many words of each story, drawn at random: booleans (S, L)."""
    rng = np.random.default_rng(seed)
    found = np.zeros_like(texts.words)
    for row, words in zip(found, texts.words, strict=True):
        row[rng.choice(np.flatnonzero(words), count, replace=False)] = True
    return found


def maps(model: Any, texts: Texts, batch: int = 100) -> np.ndarray:
    """The weights of all heads in all stories, (S, heads, L, L), layer by layer."""
    found = []
    for start in range(0, len(texts), batch):
        part = {key: array[start : start + batch] for key, array in texts.inputs.items()}
        with no_grad():
            attentions = model.bert(**part, output_attentions=True).attentions
        found.append(np.concatenate([backend.to_numpy(one.data) for one in attentions], axis=1))
    return np.concatenate(found)


def hidden_maps(model: Any, texts: Texts) -> np.ndarray:
    """The weights of all heads, (S, heads, L, L): the row of each word is read while that word is hidden.

    The words are hidden as in `losses`, every sixth of a text at a time. Rows of what is no word are 0.
    """
    found = np.zeros(0)
    for hidden, ids in _hide(texts):
        A = maps(model, replace(texts, inputs={**texts.inputs, "input_ids": ids}))
        found = np.zeros_like(A) if not found.size else found
        story, place = np.nonzero(hidden)
        found[story, :, place] = A[story, :, place]
    return found


def _hide(texts: Texts) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Which words are hidden (S, L), and the ids with [MASK] in their place; every word once."""
    order = np.cumsum(texts.words, axis=1) - 1
    for first in range(APART):
        hidden = texts.words & (order % APART == first)
        yield hidden, np.where(hidden, story_model()[1].mask_token_id, texts.inputs["input_ids"])


# --- One-line rules ---------------------------------------------------------------------------------------

OF = SETTING.lexicon
NOUNS = {noun for kind in OF.kinds.values() for noun in kind.nouns}
MANY = {noun + "s" for noun in NOUNS}
VERBS = {"is", "are", "has", "likes", *OF.keeps, *OF.gives, *OF.shows, *OF.takes, *OF.hides}
VERBS |= {verb for kind in OF.kinds.values() for verb in kind.verbs}
MEANT: dict[str, Container[str]] = {  # what a pronoun can stand for, by gender and number
    **dict.fromkeys(("he", "him", "his"), OF.men),
    **dict.fromkeys(("she", "her"), OF.women),
    "it": NOUNS,
    "them": MANY,
}
RULES: dict[str, tuple[str, Callable[[str], Container[str]]]] = {
    "object → verb": ("the nearest verb", lambda word: VERBS),
    "ancient → books": ("the nearest noun", lambda word: NOUNS | MANY),
    "pronoun → antecedent": ("the last that agrees", lambda word: MEANT[word]),
    "word → same before": ("the last equal word", lambda word: {word}),
}


def found_by_rule(texts: Texts, name: str, arcs: np.ndarray, vocab: Sequence[str]) -> np.ndarray:
    """Which arcs (n, 3) of a relation in RULES its rule finds: the last word before that fits."""
    _, fitting = RULES[name]
    found = []
    for story, start, end in arcs:
        words = [vocab[i] for i in texts.inputs["input_ids"][story]]
        fits = fitting(words[start])
        found.append(next((i for i in range(start - 1, 0, -1) if words[i] in fits), 0) == end)
    return np.array(found)


# --- Heads that are changed -------------------------------------------------------------------------------

APART = 6  # words from one hidden word to the next


def losses(
    model: Any, texts: Texts, changes: Sequence[tuple[Sequence[int], Change]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The loss, in nats, of every word when it is hidden: of the model, and of the model with each of the changes.

    Of a text's words, every sixth is hidden at a time, so six rows are read of each story. changes: the layers, from
    1, that are changed; and what makes other weights and values of a layer's A (B, h, L, L) and V (B, h, L, d_k),
    copies that it may write to. Returns the losses (n,), the slot of each word (n,), and (changes, n).
    """
    columns, slots = [], []
    for hidden, ids in _hide(texts):
        true = texts.inputs["input_ids"][hidden]
        with no_grad():
            states = model.bert(
                ids, texts.inputs["attention_mask"], texts.inputs["token_type_ids"]
            ).hidden_states
            mask = additive_mask(texts.inputs["attention_mask"], states[0])
            ends = [states[-1]]
            for layers, change in changes:
                x = states[min(layers) - 1]
                for number, layer in enumerate(model.bert.encoder.layer, start=1):
                    if number in layers:
                        x = _changed(layer, x, mask, change)
                    elif number > min(layers):
                        x = layer(x, mask)
                ends.append(x)
            columns.append([_surprise(model, x, hidden, true) for x in ends])
        slots.append(texts.slots[hidden])
    found = np.concatenate(columns, axis=1)
    return found[0], np.concatenate(slots), found[1:]


def _changed(layer: Any, x: Tensor, mask: Any, change: Change) -> Tensor:
    """A layer's output with other weights and values."""
    heads = layer.attention.self
    A, V = heads.weights(x, mask), heads.split_heads(heads.value(x))
    A, V = (np.array(backend.to_numpy(part.data)) for part in (A, V))
    A, V = change(A, V)
    Z = (A @ V).transpose(0, 2, 1, 3).reshape(x.shape)  # (B, L, d_model)
    x = layer.attention.output(Tensor(backend.of(x.data).asarray(Z, dtype=x.dtype)), x)
    return layer.output(layer.intermediate(x), x)


def _surprise(model: Any, x: Tensor, hidden: np.ndarray, true: np.ndarray) -> np.ndarray:
    rows = Tensor(backend.of(x.data).asarray(backend.to_numpy(x.data)[hidden]))
    logits = model.cls.predictions(rows, model.bert.embeddings.word_embeddings.weight)
    log_p = log_softmax(backend.to_numpy(logits.data).astype(float))
    return -log_p[np.arange(len(true)), true]


def brought(model: Any, texts: Texts) -> tuple[np.ndarray, np.ndarray]:
    """The weights of all heads (S, heads, L, L), and how long the vector is that each token brings through V and W_O.

    The lengths are (S, heads, L): of a token's value times its head's block of W_O, by a head that gives it weight 1.
    """
    with no_grad():
        states = model.bert(**texts.inputs).hidden_states
        lengths = []
        for x, layer in zip(states, model.bert.encoder.layer, strict=False):
            heads = layer.attention.self
            V = backend.to_numpy(heads.split_heads(heads.value(x)).data)  # (S, h, L, d_k)
            W_O = backend.to_numpy(layer.attention.output.dense.weight.data)
            blocks = W_O.reshape(V.shape[1], V.shape[-1], -1)  # (h, d_k, d_model)
            lengths.append(np.linalg.norm(V @ blocks, axis=-1))
    return maps(model, texts), np.concatenate(lengths, axis=1)


# --- Pictures ---------------------------------------------------------------------------------------------

# the relations that the map of one story shows
GOLD = ("the → its noun", "verb → object", "pronoun → antecedent")
FAINT = 0.03  # a weight below it is not drawn
CELL, LEFT, TOP, BESIDE = 12, 66, 64, 60  # of a map, in its own units


def head_frames(texts: Texts, number: int, tokenizer: WordPieceTokenizer, weights: np.ndarray) -> list[Frame]:
    """The maps of all heads on story `number`, one a frame, with the gold arcs of three relations in and beside them.

    weights (heads, L, L): of this story.
    """
    tokens = _tokens_of(texts, number, tokenizer)
    gold = [(i, j) for name in GOLD for story, i, j in texts.arcs[name].tolist() if story == number]
    frames = []
    for k, matrix in enumerate(weights[:, : len(tokens), : len(tokens)]):
        found = [(tokens[i], tokens[j]) for i, j in gold if _most(matrix, texts.words[number], i) == j]
        said = ", ".join(f"{a} → {b}" for a, b in found) or "none"
        frames.append(
            Frame(
                title=f"Head {head_name(k)}",
                svg=_map_with_arcs(tokens, matrix, gold),
                text=f"Gold arcs whose word gets the most weight: {len(found)} of {len(gold)} ({said}).",
            )
        )
    return frames


def one_row_frames(
    texts: Texts, number: int, tokenizer: WordPieceTokenizer, weights: np.ndarray, asker: str, meant: str
) -> list[Frame]:
    """Story `number` as a text, a frame for each head: the more colour a word has, the more weight `asker` gives it.

    weights (heads, L, L): of this story. asker, meant: a word and the one that it stands for, each at its first place.
    Raises ValueError for a word that the story does not have.
    """
    tokens = _tokens_of(texts, number, tokenizer)
    i, j = tokens.index(asker), tokens.index(meant)
    frames = []
    for k, matrix in enumerate(weights[:, : len(tokens), : len(tokens)]):
        most = _most(matrix, texts.words[number], i)
        said = (
            f"“{tokens[most]}” gets the most weight, {matrix[i, most]:.2f}, and the word in the dashed frame"
        )
        frames.append(
            Frame(
                title=f"Head {head_name(k)}",
                svg=_shaded_text(tokens, matrix[i], i, j),
                text=f"Of all other words, {said} {matrix[i, j]:.2f}.",
            )
        )
    return frames


def _tokens_of(texts: Texts, number: int, tokenizer: WordPieceTokenizer) -> list[str]:
    ids = texts.inputs["input_ids"][number, : int(texts.inputs["attention_mask"][number].sum())]
    return [tokenizer.vocab[i] for i in ids]


LETTER, LINE = 8.4, 34  # the width of a letter of 14 pixels, the same for all; the height of a line


def _shaded_text(tokens: Sequence[str], row: np.ndarray, asker: int, meant: int) -> str:
    parts, x, y, width = [], 2.0, 2, 0.0
    for j, token in enumerate(tokens):
        wide = LETTER * len(token) + 10
        box = f'x="{x:.1f}" y="{y:g}" width="{wide:.1f}" height="{LINE - 8}" rx="3"'
        parts.append(f'<rect {box} fill="{colour("weight")}" fill-opacity="{0.9 * row[j] ** 0.6:.2f}"/>')
        if j in (asker, meant):
            role, dashes = ("ink", "") if j == asker else ("second", ' stroke-dasharray="4 3"')
            parts.append(f'<rect {box} fill="none" stroke="{colour(role)}" stroke-width="2"{dashes}/>')
        parts.append(f'<text x="{x + wide / 2:.1f}" y="{y + 18:g}">{token}</text>')
        x += wide + 4
        width = max(width, x)
        last = j + 1 == len(tokens)
        if not last and tokens[j + 1] != "[SEP]" and token in (".", "[SEP]"):
            x, y = 2.0, y + LINE
    style = 'font-family="monospace" font-size="14" text-anchor="middle" fill="currentColor"'
    return svg(round(width), y + LINE - 4, [f"<g {style}>", *parts, "</g>"])


def head_name(k: int) -> str:
    """The name of head k, counted from 0 over all layers of four: layer and head, both from 1."""
    return f"{k // 4 + 1}-{k % 4 + 1}"


def _most(matrix: np.ndarray, words: np.ndarray, i: int) -> int:
    may = words[: len(matrix)].copy()
    may[i] = False
    return int(np.where(may, matrix[i], -1).argmax())


def _map_with_arcs(tokens: Sequence[str], matrix: np.ndarray, gold: Sequence[Arc]) -> str:
    n = len(tokens)
    side = n * CELL
    parts = [
        f'<rect x="{LEFT}" y="{TOP}" width="{side}" height="{side}" fill="none" stroke="{colour("grid")}"/>'
    ]
    rows, columns, cells = [], [], []
    for i, token in enumerate(tokens):
        middle = CELL * i + CELL / 2 + 4
        rows.append(f'<text x="{LEFT - 4}" y="{TOP + middle:g}">{token}</text>')
        columns.append(f'<text transform="translate({LEFT + middle:g} {TOP - 4}) rotate(-90)">{token}</text>')
    for i, j in zip(*np.nonzero(matrix >= FAINT), strict=True):
        corner = f"{LEFT + CELL * j} {TOP + CELL * i}"
        cells.append(f'<path d="M{corner}h{CELL}v{CELL}h-{CELL}z" opacity="{matrix[i, j]:.2f}"/>')
    for style, group in (
        ('fill="currentColor" font-size="11" text-anchor="end"', rows),
        ('fill="currentColor" font-size="11"', columns),
        (f'fill="{colour("weight")}"', cells),
    ):
        parts.append(f"<g {style}>{''.join(group)}</g>")
    edge = LEFT + side
    longest = max((abs(i - j) for i, j in gold), default=1)
    for i, j in gold:
        parts.append(
            f'<rect x="{LEFT + CELL * j + 0.5}" y="{TOP + CELL * i + 0.5}" width="{CELL - 1}" height="{CELL - 1}" '
            f'fill="none" stroke="{colour("second")}" stroke-width="1.5"/>'
        )
        start, end = TOP + CELL * i + CELL / 2, TOP + CELL * j + CELL / 2
        out = edge + 8 + 2 * (BESIDE - 14) * abs(i - j) / longest * 0.66
        parts.append(
            f'<path class="arc" d="M {edge + 3} {start:g} C {out:.0f} {start:g} {out:.0f} {end:g} {edge + 3} {end:g}" '
            f'fill="none" stroke="{colour("second")}" stroke-width="1.2"/><circle cx="{edge + 3}" cy="{end:g}" r="2.5" '
            f'fill="{colour("second")}"/>'
        )
    return svg(edge + BESIDE, TOP + side + 4, parts)


def offsets_figure(rows: Sequence[Sequence[Any]]) -> Picture:
    """For each relation the score of the best head, of the best offset, and of both controls.

    rows: name, offset, head, head of a model as drawn, head on shuffled words.
    """

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        places = np.arange(len(rows))[::-1]
        columns = list(zip(*rows, strict=True))
        axes.plot(columns[3], places, "x", color=colours["third"], label="head as drawn")
        axes.plot(columns[4], places, "+", color=colours["third"], markersize=9, label="words shuffled")
        axes.plot(
            columns[1],
            places,
            "s",
            color=colours["second"],
            label="best offset",
            fillstyle="none",
            markersize=8,
        )
        axes.plot(columns[2], places, "o", color=colours["first"], label="best head")
        axes.set_yticks(places, columns[0])
        axes.set(xlabel="arcs found (share)", xlim=(0, 1.03))
        canvas.legend(loc="outside upper center", ncols=2)

    return figure(
        plot,
        "For each relation, the shares of arcs that the best head and the best offset find. Both controls lie far to "
        "the left.",
        (5.4, 4.4),
    )


def needed_figure(names: Sequence[str], needed: np.ndarray) -> Picture:
    """How much the loss rises without each head, a bar for each, layer by layer."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        places = np.arange(len(names)) + np.arange(len(names)) // 4 * 0.6
        for place, more in zip(places, needed, strict=True):
            axes.bar(
                [place], [max(float(more), 0.001)], 0.8, color=colours["first" if more < 0.02 else "second"]
            )
        axes.set_xticks(places, names, fontsize=9)
        axes.set(ylabel="more loss (nats)", xlabel="the head that is taken away")
        axes.grid(False, axis="x")

    most = names[int(needed.argmax())]
    alt = (
        f"A bar for each of {len(names)} heads, how much the loss rises without it: {int((needed < 0.02).sum())} have "
        f"hardly any; {most} has the highest."
    )
    return figure(plot, alt, (5.4, 3.2))


def pairs_figure(
    pairs: Sequence[tuple[str, str]], habits: Sequence[str], alone: np.ndarray, both: np.ndarray
) -> Picture:
    """How much the loss rises without two heads at once, beside the sum of what each costs. Both (pairs,).

    habits: of the two heads, a few words for each pair.
    """

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        rows = np.arange(len(pairs))[::-1]
        for up, name, numbers, shade in (
            (0.2, "each alone, summed", alone, colours["first"]),
            (-0.2, "removed together", both, colours["second"]),
        ):
            axes.barh(rows + up, numbers, 0.38, color=shade)
            for row, number in zip(rows, numbers, strict=True):
                what = f"   {name}" if row == rows[1] else ""
                axes.text(number + 0.006, row + up, f"{number:.2f}{what}", va="center", fontsize=11)
        labels = [f"{one} and {other}\n{habit}" for (one, other), habit in zip(pairs, habits, strict=True)]
        axes.set_yticks(rows, labels, fontsize=11)
        axes.set(xlabel="more loss (nats)", xlim=(0, 1.12 * both.max()))
        axes.grid(False, axis="y")

    told = ", ".join(
        f"{' and '.join(pair)} {two:.2f} and {sum_of:.2f}"
        for pair, two, sum_of in zip(pairs, both, alone, strict=True)
    )
    alt = (
        f"Two bars for each pair of heads, more loss when both are removed and the sum of each alone: {told}."
    )
    return figure(plot, alt, (5.4, 4.2))
