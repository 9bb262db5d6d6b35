"""What `decoding` shows: a tree of words with a beam in it, a flatter model, translations with one thing changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bert_course.common.beam_tree import Tree, kept
from bert_course.common.beam_tree import widths_that_find_it as widths_that_find_it
from bert_course.common.live_examples import sentences_of
from bert_course.common.palette import colour
from bert_course.common.translated_stories import Text, of_texts
from bert_course.common.widgets import Frame, svg
from minigrad import no_grad, ops
from minigrad.bert.config import IGNORED
from minigrad.seq2seq.config import TransformerConfig
from minigrad.seq2seq.decoding import State
from minigrad.stories.language import CLASSES, FEW, IT, MANY, NOUNS, ONE
from minigrad.tensor import Array, Tensor
from minigrad.text.tokenizer import WordPieceTokenizer

# "she likes them", three words without marks: he or she; the class and number of *them*; the verb
TREE: Tree = {
    "": {"tum": 0.5, "tem": 0.4, "rose": 0.1},
    "tum": {"lin": 0.4, "lis": 0.3, "las": 0.3},
    "tem": {"lis": 0.9, "lin": 0.1},
    "rose": {"lis": 1.0},
    "tum lin": {"milum": 0.9, "milem": 0.1},
    "tum lis": {"milum": 0.9, "milem": 0.1},
    "tum las": {"milum": 0.9, "milem": 0.1},
    "tem lis": {"milem": 0.9, "milum": 0.1},
    "tem lin": {"milem": 0.9, "milum": 0.1},
    "rose lis": {"milem": 0.9, "milum": 0.1},
}


# --- A tree -----------------------------------------------------------------------------------------------


_ROW, _COLUMN, _WIDE, _TALL = 27, 116, 84, 21


def _places(tree: Tree) -> dict[str, tuple[float, float]]:
    """Where each text's last word stands: a column a word, and each text at the middle of those that go on from it."""
    places: dict[str, tuple[float, float]] = {}
    rows = 0

    def put(text: str, depth: int) -> float:
        nonlocal rows
        longer = [f"{text} {word}".strip() for word in tree.get(text, ())]
        if longer:
            ys = [put(one, depth + 1) for one in longer]
            y = (ys[0] + ys[-1]) / 2
        else:
            y = 6.0 + _ROW * rows
            rows += 1
        places[text] = 4 + _COLUMN * (depth - 1), y
        return y

    put("", 0)
    return places


def _tree_picture(tree: Tree, depth: int, beam: Mapping[str, float], looked: Mapping[str, float]) -> str:
    """The tree down to `depth`: the beam with a thick line, what was not looked at faint."""
    places, parts = _places(tree), []
    for text, words in tree.items():
        for word, step in words.items():
            longer = f"{text} {word}".strip()
            level = len(longer.split())
            if level > depth:
                continue
            x, y = places[longer]
            seen = longer in looked
            faint = 1 if seen else 0.3
            role = "right" if longer in beam else "token"
            if text:
                x0, y0 = places[text]
                parts.append(
                    f'<path d="M{x0 + _WIDE:.0f} {y0 + _TALL / 2:.1f} L{x:.0f} {y + _TALL / 2:.1f}" fill="none" '
                    f'stroke="{colour("grid")}" stroke-width="1.2"/>'
                )
            parts.append(
                f'<rect x="{x:.0f}" y="{y:.1f}" width="{_WIDE}" height="{_TALL}" rx="3" fill="{colour(role)}" '
                f'fill-opacity="{0.3 if longer in beam else 0.06}" stroke="{colour(role)}" '
                f'stroke-opacity="{faint}" stroke-width="{2.4 if longer in beam else 0.8}"/>'
                f'<text x="{x + 5:.0f}" y="{y + 15:.1f}" font-size="13" fill="currentColor" '
                f'fill-opacity="{faint if faint == 1 else 0.55}">{word} {step:g}</text>'
            )
            if level == 3 and seen:
                weight = ' font-weight="bold"' if longer in beam else ""
                parts.append(
                    f'<text x="{x + _WIDE + 8:.0f}" y="{y + 15:.1f}" font-size="13" fill="currentColor"{weight}>'
                    f"{looked[longer]:.3f}</text>"
                )
    rows = max(y for _, y in places.values())
    return svg(4 + 2 * _COLUMN + _WIDE + 56, round(rows + _ROW), parts)


def tree_frames(tree: Tree, widths: Sequence[int]) -> list[Frame]:
    """A beam of each width in a tree, a frame a word; the last frame has every text.

    A box has a word and its probability after the words before it; behind the last word is the text's probability.
    """
    frames = []
    for width in widths:
        looked: dict[str, float] = {}
        live: list[tuple[str, float]] = [("", 1.0)]
        for depth, beam in enumerate(kept(tree, width), 1):
            longer = {
                f"{text} {word}".strip(): p * step for text, p in live for word, step in tree[text].items()
            }
            looked |= longer
            live = beam
            said = " and ".join(f"{text} ({p:.3g})" for text, p in beam)
            frames.append(
                Frame(
                    f"Width {width}, word {depth}",
                    _tree_picture(tree, depth, dict(beam), looked),
                    f"{len(longer)} continuations were looked at. The beam keeps {said}.",
                )
            )
    everything: dict[str, float] = {"": 1.0}
    for text, words in tree.items():
        for word, step in words.items():
            everything[f"{text} {word}".strip()] = everything[text] * step
    texts = {text: p for text, p in everything.items() if text not in tree}
    best = max(texts, key=lambda text: texts[text])
    frames.append(
        Frame(
            "All texts",
            _tree_picture(tree, 3, {best: texts[best]}, everything),
            f"Of all {len(texts)} texts, {best} is the most probable, with {texts[best]:.3g}.",
        )
    )
    return frames


# --- Models -----------------------------------------------------------------------------------------------


class Flatter:
    """A model whose logits are divided by a temperature: the same order of words at each step, less sure of it."""

    def __init__(self, model: Any, temperature: float) -> None:
        self.model, self.temperature, self.config = model, temperature, model.config
        self.training = False

    def train(self, mode: bool = True) -> Flatter:
        """Nothing to switch: the model inside stays in evaluation mode."""
        return self

    def encode(self, input_ids: Array, attention_mask: Array | None = None) -> Any:
        """What the decoder needs of the sources, as the model inside has it."""
        return self.model.encode(input_ids, attention_mask)

    def start(self, memory: Any) -> State:
        """The state of the model inside before the first word."""
        return self.model.start(memory)

    def step(self, state: State, last_ids: Array) -> tuple[Tensor, State]:
        """One word further; logits (N, V) of the model inside, divided by the temperature."""
        logits, state = self.model.step(state, last_ids)
        return logits * (1 / self.temperature), state


def log_p_of_right(model: Any, texts: Sequence[Text], tokenizer: WordPieceTokenizer) -> np.ndarray:
    """log P of each text's right translation with its end token, (B,), by one pass over the right words."""
    batch = of_texts(texts, tokenizer)
    with no_grad():
        log_p = ops.log_softmax(model(**batch).logits).numpy().astype(np.float64)  # (B, T, V)
    labels = batch["labels"]
    there = labels != IGNORED
    chosen = np.take_along_axis(log_p, np.where(there, labels, 0)[..., None], axis=-1)[..., 0]  # (B, T)
    return (chosen * there).sum(axis=1)


def log_p_of_empty(model: Any, texts: Sequence[Text], tokenizer: WordPieceTokenizer) -> np.ndarray:
    """log P of the empty translation of each text, (B,): that of an end token in the first place."""
    batch = of_texts(texts, tokenizer)
    with no_grad():
        state = model.start(model.encode(batch["input_ids"], batch["attention_mask"]))
        logits, _ = model.step(state, np.full(len(texts), model.config.start_token_id))
        return ops.log_softmax(logits).numpy()[:, model.config.end_token_id].astype(np.float64)


def decoder_flops(config: TransformerConfig, S: int, T: int, cache: bool) -> int:
    """FLOPs of all matrix products of a Transformer's decoder that writes T words about a source of S words.

    With a cache each step computes its newest position only; without, all positions up to it once more. The keys and
    values of the source are computed once in both.
    """
    d, d_ff, layers = config.d_model, config.dim_feedforward, config.num_decoder_layers
    source = layers * 2 * S * 2 * d * d
    total = source
    for t in range(1, T + 1):
        for place in [t] if cache else range(1, t + 1):
            width = place if cache else t  # without a cache a masked score is computed too
            # self-attention's four, cross-attention's two, the network
            maps = 2 * d * d * (4 + 2) + 2 * 2 * d * d_ff
            total += layers * (maps + 2 * 2 * d * (width + S))
        total += 2 * d * config.vocab_size
    return total


# --- Translations with one thing changed ------------------------------------------------------------------


def pronoun_of(text: Text) -> int | None:
    """The place of the translation's first word for `it` or `them`, or None."""
    for t, word in enumerate(text.words):
        if word.aligned and text.source[word.aligned[0]] in ("it", "them"):
            return t
    return None


def _at_pronoun(change: Callable[[Text, str], str]) -> Callable[[Text], list[str]]:
    def edit(text: Text) -> list[str]:
        words, t = list(text.target), pronoun_of(text)
        assert t is not None
        words[t] = change(text, words[t])
        return words

    return edit


def _noun(text: Text, word: str) -> str:
    noun = text.story.facts.noun
    assert noun is not None
    return NOUNS[noun][:-1] + word[len(IT) :]


def _other_class(text: Text, word: str) -> str:
    vowel = CLASSES[(CLASSES.index(word[len(IT)]) + 1) % len(CLASSES)]
    return IT + vowel + word[len(IT) + 1 :]


def _other_number(text: Text, word: str) -> str:
    return word[: len(IT) + 1] + {ONE: MANY, FEW: ONE, MANY: FEW}[word[len(IT) + 1 :]]


def _a_person(text: Text, word: str) -> str:
    return "tum"


def _joined(sentences: Sequence[Sequence[str]]) -> list[str]:
    return [word for sentence in sentences for word in sentence]


def _last_first(text: Text) -> list[str]:
    sentences = sentences_of(" ".join(text.target))
    return _joined([sentences[-1], *sentences[:-1]])


def _last_missing(text: Text) -> list[str]:
    return _joined(sentences_of(" ".join(text.target))[:-1])


# what is changed in a right translation -> the changed words
EDITS: dict[str, Callable[[Text], list[str]]] = {
    "nothing": lambda text: list(text.target),
    "them → the noun itself": _at_pronoun(_noun),
    "them → a wrong class": _at_pronoun(_other_class),
    "them → a wrong number": _at_pronoun(_other_number),
    "them → him": _at_pronoun(_a_person),
    "last sentence first": _last_first,
    "last sentence missing": _last_missing,
}


def edited(texts: Sequence[Text], edit: str) -> list[list[str]]:
    """The translations of stories that say `it` or `them`, each with the change of that name."""
    return [EDITS[edit](text) for text in texts]
