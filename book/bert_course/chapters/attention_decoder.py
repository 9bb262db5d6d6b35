"""What the chapter shows: a decoder's look back by hand and in a trained model, changed weights, swapped states."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bert_course.common import pencil
from bert_course.common.figures import Figure, Picture, figure
from bert_course.common.fit import descend
from bert_course.common.flow import Box, Flow, Step, flow
from bert_course.common.palette import colour
from bert_course.common.translated_stories import LONG, Text, of_texts, read, tokens_of, words_right
from bert_course.common.widgets import Frame, svg
from bert_course.stored import stored
from minigrad import backend, no_grad, ops, optim, random
from minigrad.seq2seq import RecurrentConfig, RecurrentSeq2Seq, TranslationData, from_pretrained
from minigrad.seq2seq.data import shift_right
from minigrad.seq2seq.recurrent import Attention, RecurrentMemory
from minigrad.stories.language import IT, NOUNS, SovianWord
from minigrad.stories.translation import translation_tokenizer
from minigrad.tensor import Array, Tensor
from minigrad.text.tokenizer import WordPieceTokenizer

Change = Callable[[np.ndarray, np.ndarray], np.ndarray]


# --- Texts and models -------------------------------------------------------------------------------------


def model_of(name: str) -> tuple[RecurrentSeq2Seq, WordPieceTokenizer]:
    """A stored model that translates, in evaluation mode, and its tokenizer."""
    loaded = from_pretrained(stored(name))
    assert loaded.tokenizer is not None
    return loaded.model.eval(), loaded.tokenizer


# --- Weights that are changed -----------------------------------------------------------------------------


class Weights(Attention):
    """The library's attention, whose weights another function changes before they are used.

    keep: what of [c; h] reaches W_c, a factor for each of the two.
    """

    def __init__(
        self, model: RecurrentSeq2Seq, change: Change, keep: tuple[float, float] = (1.0, 1.0)
    ) -> None:
        super().__init__(model.config)
        assert model.decoder.attention is not None
        self.load_state_dict(model.decoder.attention.state_dict())
        self.change, self.keep = change, keep

    def forward(self, h: Tensor, keys: Tensor, states: Tensor, mask: Array | None) -> tuple[Tensor, Tensor]:
        """As in the library: h̃ (B, T, H) and the weights (B, T, S) that were used."""
        _, weights = super().forward(h, keys, states, mask)
        # (B, 1, S)
        seen = np.ones(keys.shape[:2], bool)[:, None] if mask is None else Tensor.wrap(mask).numpy() == 0
        changed = self.change(weights.numpy(), seen)
        used = Tensor.wrap(backend.of(h.data).asarray(changed, dtype=h.dtype))  # (B, T, S)
        context = used @ states  # (B, T, H)
        joined = ops.concat([context * self.keep[0], h * self.keep[1]], axis=-1)  # (B, T, 2 H)
        return self.W_c(joined).tanh(), used


def with_weights(
    model: RecurrentSeq2Seq, change: Change, keep: tuple[float, float] = (1.0, 1.0)
) -> RecurrentSeq2Seq:
    """A copy of the model with other weights.

    change: from the weights (B, T, S), and from where there is no padding (B, 1, S), to weights (B, T, S). keep: the
    factors of context and state in [c; h].
    """
    other = RecurrentSeq2Seq(model.config)
    other.load_state_dict(model.state_dict())
    other.decoder.attention = Weights(model, change, keep)
    other.eval()
    return other


def without(model: RecurrentSeq2Seq, part: str) -> RecurrentSeq2Seq:
    """A copy of the model with zeros for one part of [c; h]: "the context", or "its own state"."""
    factors = {"the context": (0.0, 1.0), "its own state": (1.0, 0.0)}
    return with_weights(model, lambda weights, seen: weights, factors[part])


def forced(model: RecurrentSeq2Seq, texts: Sequence[Text], tokenizer: WordPieceTokenizer) -> list[np.ndarray]:
    """Which words of each translation, and its end token, the model says after the right words before.

    A translation is written right by greedy search if and only if all of them are right.
    """
    starts = range(0, len(texts), 64)
    return words_right(model, (of_texts(texts[start : start + 64], tokenizer) for start in starts))


def weights_of(
    model: RecurrentSeq2Seq, texts: Sequence[Text], tokenizer: WordPieceTokenizer
) -> list[np.ndarray]:
    """The weights (T, S + 1) of each text: a row for each word of the target, the last column is the end token's."""
    found: list[np.ndarray] = []
    with no_grad():
        for start in range(0, len(texts), 64):
            chosen = texts[start : start + 64]
            weights = model(**of_texts(chosen, tokenizer), output_attentions=True).cross_attentions[0].numpy()
            found += [
                A[: len(text.words), : len(text.source) + 1].astype(np.float64)
                for A, text in zip(weights, chosen, strict=True)
            ]
    return found


def alignment_error_rate(weights: Sequence[np.ndarray], texts: Sequence[Text]) -> float:
    """1 - 2 |A ∩ G| / (|A| + |G|) over all texts: A links each word to its highest-weighted one, G is gold.

    A word whose highest weight is on the end token has no link in A. Source: Och and Ney 2003, with all gold links
    sure.
    """
    both = linked = gold = 0
    for A, text in zip(weights, texts, strict=True):
        for row, word in zip(A, text.words, strict=True):
            place = int(row.argmax())
            both += place in word.aligned
            linked += place < len(text.source)
            gold += len(word.aligned)
    return 1 - 2 * both / (linked + gold)


def kind_of(text: Text, word: SovianWord) -> str:
    """Of a target word, what it translates: "name", "noun", "it, them", "full stop", "other", or "no word"."""
    if not word.aligned:
        return "no word"
    english, noun = text.source[word.aligned[0]], str(text.story.facts.noun)
    kinds = {word.text: "name", ".": "full stop", noun: "noun", noun + "s": "noun"}
    return (kinds | dict.fromkeys(["it", "them"], "it, them")).get(english, "other")


# --- States that are swapped ------------------------------------------------------------------------------


def _there(states: Tensor | None) -> Tensor:
    """What a model with attention has, and one without does not."""
    assert states is not None
    return states


def mixed(
    memory: RecurrentMemory, other: RecurrentMemory, places: Sequence[int], first: bool = False
) -> RecurrentMemory:
    """What a decoder needs of one source, with the encoder's states at `places` from another of the same length.

    first: whether the decoder's first state is the other's too.
    """
    chosen = np.zeros((1, _there(memory.states).shape[1], 1))
    chosen[:, list(places)] = 1

    def join(one: Tensor | None, another: Tensor | None) -> Tensor:
        mine, theirs = _there(one), _there(another)
        take = Tensor.wrap(backend.of(mine.data).asarray(chosen, dtype=mine.dtype))
        return mine * (1 - take) + theirs * take

    last = other.last if first else memory.last
    states, keys = join(memory.states, other.states), join(memory.keys, other.keys)
    return RecurrentMemory(last, states, keys, memory.mask)


def with_noun(text: Text, noun: str) -> Text:
    """The same story of another thing: each mention of its noun, and each ending that depends on its class."""
    old = text.story.facts.noun
    assert old is not None
    forms = {old: noun, old + "s": noun + "s"}
    stem, vowel = NOUNS[noun][:-1], NOUNS[noun][-1]
    words = []
    for word in text.words:
        english = text.source[word.aligned[0]] if word.aligned else ""
        if english in forms:
            word = replace(word, text=stem + vowel + word.text[len(NOUNS[old]) :])
        elif english in ("it", "them"):
            word = replace(word, text=IT + vowel + word.text[len(IT) + 1 :])
        words.append(word)
    return Text(text.story, tuple(forms.get(word, word) for word in text.source), tuple(words))


def other_nouns(texts: Sequence[Text]) -> Iterator[tuple[Text, Text]]:
    """Stories that say `it` or `them`, each with the same story of the next thing of its kind, of another class."""
    for text in texts:
        noun = text.story.facts.noun
        if noun is None or not {"it", "them"} & set(text.source):
            continue
        kind = LONG.lexicon.kinds[LONG.lexicon.kind_of(noun)].nouns
        yield text, with_noun(text, kind[(kind.index(noun) + 1) % len(kind)])


def pronouns(text: Text) -> list[int]:
    """The places of the target's words for `it` and `them`."""
    return [
        t
        for t, word in enumerate(text.words)
        if word.aligned and text.source[word.aligned[0]] in ("it", "them")
    ]


def endings(
    model: RecurrentSeq2Seq,
    tokenizer: WordPieceTokenizer,
    text: Text,
    other: Text,
    places: Sequence[int] = (),
    first: bool = False,
    words: bool = False,
) -> list[str]:
    """What the model says at each word for `it` or `them` of a story, when parts of it come from the other story.

    places: of the encoder's states that attention reads from the other one. first: also the decoder's first state.
    words: the decoder reads the other story's words.
    """
    mine, theirs = of_texts([text], tokenizer), of_texts([other], tokenizer)
    with no_grad():
        memory, their_memory = (
            model.encode(one["input_ids"], one["attention_mask"]) for one in (mine, theirs)
        )
        labels = (theirs if words else mine)["labels"]
        ids = shift_right(labels, model.config.start_token_id, model.config.pad_token_id)
        state = model.start(mixed(memory, their_memory, places, first))
        best = model.decoder(ids, state)[0].numpy()[0].argmax(axis=-1)  # (T,)
    return [tokenizer.id_to_token(int(best[t])) for t in pronouns(text)]


# --- Short training ---------------------------------------------------------------------------------------


def _even(weights: np.ndarray, seen: np.ndarray) -> np.ndarray:
    return np.broadcast_to(seen / seen.sum(axis=-1, keepdims=True), weights.shape)


def train(attention: str, seed: int, rate: float, steps: int, hidden_size: int = 64) -> RecurrentSeq2Seq:
    """A small model after `steps` steps on fresh stories of one or two sentences.

    attention: "none", "dot", "general", "additive", "even" for general's parameters with even weights, or "general,
    both directions" for an encoder that also reads the source from its end.
    """
    tokenizer = translation_tokenizer(LONG)
    random.manual_seed(seed)
    both = attention == "general, both directions"
    score = "general" if attention == "even" or both else attention
    sizes: Mapping[str, Any] = {
        "hidden_size": hidden_size,
        "dropout": 0.0,
        "attention": score,
        "bidirectional": both,
    }
    model = RecurrentSeq2Seq(RecurrentConfig(vocab_size=tokenizer.vocab_size, **sizes))
    if attention == "even":
        model.decoder.attention = Weights(model, _even)
    optimizer = optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = optim.LinearWarmupDecay(optimizer, max(1, steps // 5), steps)
    pairs = [tokens_of(text, tokenizer) for text in read(32 * steps, seed + 1000, short=True)]
    data = TranslationData(pairs, 32, seed, tokenizer.sep_token_id, tokenizer.pad_token_id)
    for _ in range(steps):
        descend(model, model(**data.next_batch()).loss, optimizer, schedule)
    model.eval()
    return model


# --- Pictures ---------------------------------------------------------------------------------------------


def look_flow(H: np.ndarray, h: np.ndarray, words: Sequence[str], features: Sequence[str]) -> Flow:
    """One look back by hand, step by step; the decoder's state can be edited.

    H (S, n): the encoder's states; h (1, n): the decoder's.
    """
    boxes = [
        Box("H", H, "key", "words", "features", label="encoder's states"),
        Box("h", h, "query", "decoder", "features", label="decoder's state"),
        Box("HT", "H.T", "key", columns="words", label="states ᵀ"),
        Box("s", "h @ HT", "weight", columns="words", label="scores"),
        Box("a", "softmax(s)", "weight", columns="words", label="weights"),
        Box("c", "a @ H", "value", columns="features", label="context"),
    ]
    steps = [
        Step(
            "What there is",
            [["H"], ["h"]],
            "The encoder keeps a state for each word of the source. The decoder has its own state, which says what it "
            "is about to write.",
        ),
        Step(
            "Score",
            [["h", "·", "HT"], ["s"]],
            "The decoder compares its state with each state of the encoder, by a dot product.",
        ),
        Step(
            "Share",
            [["s"], ["a"]],
            "Softmax makes weights of the scores. They are positive, and their sum is 1.",
        ),
        Step(
            "Mix",
            [["a", "·", "H"], ["c"]],
            "The context of this step is the weighted sum of the encoder's states.",
        ),
    ]
    alt = "A decoder's state looks back at three states of the encoder, as matrices with their numbers"
    names = {"words": list(words), "features": list(features), "decoder": ["h"]}
    return flow(boxes, steps, alt, names, edit="h")


_LEFT, _CELL, _TALL, _SHOWN = 64, 46, 24, 6  # 64 for the names before the cells
_WIDE = _LEFT + _SHOWN * _CELL + 4
_BAR = 236  # of a share of 1


def _strip(y: float, name: str, values: np.ndarray, role: str, lit: bool, known: bool) -> list[str]:
    """The first entries of a vector as cells, with its name before them; what is not known yet is pale and empty."""
    ink, parts = colour(role), []
    weight = ' font-weight="bold"' if lit else ""
    parts.append(f'<text x="2" y="{y + 17:.0f}" font-size="14" fill="currentColor"{weight}>{name}</text>')
    largest = float(np.abs(values).max()) or 1.0
    for i, value in enumerate(values[:_SHOWN]):
        x = _LEFT + i * _CELL
        shade = 0.35 * abs(value) / largest if known else 0.0
        parts.append(
            f'<rect x="{x}" y="{y:.0f}" width="{_CELL}" height="{_TALL}" fill="{ink}" '
            f'fill-opacity="{shade:.2f}" stroke="{ink}" stroke-width="{2.5 if lit else 0.7}"/>'
        )
        if known:
            parts.append(
                f'<text x="{x + _CELL / 2:.0f}" y="{y + 17:.0f}" font-size="13" text-anchor="middle" '
                f'fill="currentColor">{round(float(value), 1) + 0.0:.1f}</text>'
            )
    return parts if known else _pale(parts)


def _bars(y: float, words: Sequence[str], shares: np.ndarray, role: str, lit: bool, known: bool) -> list[str]:
    """A bar for each word, as long as its share; what is not known yet is pale and has no bars."""
    ink, parts = colour(role), []
    weight = ' font-weight="bold"' if lit else ""
    for i, (word, share) in enumerate(zip(words, shares, strict=True)):
        here = y + i * 18
        place = f'y="{here + 13:.0f}" font-size="13" fill="currentColor"'
        parts.append(f'<text x="{_LEFT - 6}" {place} text-anchor="end"{weight}>{word}</text>')
        if known:
            parts.append(
                f'<rect x="{_LEFT}" y="{here + 2:.0f}" width="{_BAR * share:.1f}" height="13" fill="{ink}" '
                f'fill-opacity="0.75"/><text x="{_LEFT + 4 + _BAR * share:.0f}" {place}>{share:.2f}</text>'
            )
    return parts if known else _pale(parts)


def _pale(parts: list[str]) -> list[str]:
    return ['<g opacity="0.4">', *parts, "</g>"]


def seven_steps(trace: Sequence[Mapping[str, Any]], source: Sequence[str]) -> list[Frame]:
    """The seven steps of a decoder with attention as frames, over the numbers of a trained model.

    trace: for each step of the decoder "fed" and "wrote" (words), "e", "h", "C", "h̃" (vectors), "a" (S,), and "best",
    pairs of a word and its probability. Six frames show the first step, and one each further step.
    """
    first, size = trace[0], len(trace[0]["h"])
    some = f"The picture shows the first {_SHOWN} of its {size} entries."
    told = [
        ("1. Embedding", f"The decoder is fed “{first['fed']}” and looks up its embedding e. {some}"),
        (
            "2. State",
            "The decoder's network makes the next state h of the embedding and of its state before.",
        ),
        (
            "3. Attention",
            "h is scored with each state of the encoder, and softmax makes weights of the scores. The context C is the "
            "weighted sum of the states.",
        ),
        (
            "4. Concatenate",
            f"C and h become one vector, with C in front. The picture shows {_SHOWN // 2} entries of each.",
        ),
        ("5. Feed-forward", "A matrix and tanh make h̃ of this vector."),
        ("6. Word", f"The logits of h̃ make “{first['wrote']}” the likeliest word."),
    ]
    return [
        *(Frame(title, _step_picture(first, source, at), text) for at, (title, text) in enumerate(told, 1)),
        *(
            Frame(
                f"7. Repeat: {one['fed']} → {one['wrote']}",
                _step_picture(one, source, 7),
                f"The decoder is fed “{one['fed']}”, and the same steps give “{one['wrote']}”. "
                f"The strongest source word is “{source[int(one['a'].argmax())]}”, with {one['a'].max():.2f}.",
            )
            for one in trace[1:]
        ),
    ]


def _step_picture(one: Mapping[str, Any], source: Sequence[str], at: int) -> str:
    """All seven steps: those up to `at` with their numbers, the newest in bold; 7 shows them all."""
    half = _SHOWN // 2
    joined = np.concatenate([one["C"][:half], one["h"][:half]])
    words, shares = zip(*one["best"], strict=True)
    parts, y = [], 4.0

    def strip(step: int, name: str, values: np.ndarray, role: str) -> None:
        nonlocal y
        parts.extend(_strip(y, name, values, role, at == step, at >= step))
        y += _TALL + 8

    def bars(step: int, names: Sequence[str], shares: np.ndarray, role: str, lit: bool) -> None:
        nonlocal y
        parts.extend(_bars(y, names, shares, role, lit, at >= step))
        y += 18 * len(names) + 6

    strip(1, "e", one["e"], "token")
    strip(2, "h", one["h"], "query")
    bars(3, source, one["a"], "weight", at == 3)
    strip(3, "C", one["C"], "value")
    strip(4, "[C; h]", joined, "first")
    strip(5, "h̃", one["h̃"], "second")
    bars(6, words if at >= 6 else ["?"] * len(words), np.array(shares), "right", at >= 6)
    return svg(_WIDE, round(y), parts)


# of the map: a weight's square, the room for the words to its left and above, and for their meanings to its right
SQUARE, BESIDE, OVER, MEANING = 24, 76, 66, 78


def weights_map(
    A: np.ndarray,
    source: Sequence[str],
    target: Sequence[str],
    meaning: Mapping[str, str],
    gold: Sequence[Sequence[int]] = (),
) -> Picture:
    """The weights of each step as shades of a square: a row for each word written, a column for each source word.

    A (T, S), with a word for each row and column. meaning: of the words written. gold: for each of them the columns
    that it translates, which get an outline.
    """
    parts, right = [], BESIDE + SQUARE * len(source)
    for s, word in enumerate(source):
        x = BESIDE + SQUARE * (s + 0.6)
        parts.append(
            pencil.words(x, OVER - 6, word, 14, anchor="start", transform=f"rotate(-60 {x:.1f} {OVER - 6})")
        )
    for t, word in enumerate(target):
        y = OVER + SQUARE * t
        parts.append(pencil.words(BESIDE - 6, y + 15, word, 14, anchor="end"))
        parts.append(
            pencil.words(right + 6, y + 15, meaning[word], 13, "token", "start", font_style="italic")
        )
        for s, weight in enumerate(A[t]):
            x = BESIDE + SQUARE * s
            parts.append(pencil.box(x, y, SQUARE - 2, SQUARE - 2, "weight", max(0.04, float(weight)), 0.5))
            if gold and s in gold[t]:
                parts.append(pencil.box(x - 0.5, y - 0.5, SQUARE - 1, SQUARE - 1, "second", 0, 2.5))
    strongest = "; ".join(f"{word}: {source[int(row.argmax())]}" for word, row in zip(target, A, strict=True))
    alt = f"A square for each word written and each source word, stronger with its weight. The strongest: {strongest}."
    if gold:
        alt += " The word that each translates has an outline."
    width, height = right + MEANING, OVER + SQUARE * len(target) + 2
    return Picture(svg(width, height, parts), alt, round(1.2 * width))


def length_figure(series: Mapping[str, Sequence[float]], sentences: Sequence[int]) -> Picture:
    """The share of translations without a mistake, by the number of sentences, a line for each of `series`."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        inks = [colours[name] for name in ("first", "second", "third", "ink")]
        for (name, values), ink, mark in zip(series.items(), inks, "osD^", strict=False):
            axes.plot(sentences, values, mark + "-", color=ink, label=name)
        axes.set(xlabel="sentences of the story", ylabel="translations right", ylim=(-0.03, 1.03))
        axes.legend(loc="center right", bbox_to_anchor=(1, 0.27))

    return figure(
        plot,
        "The share of right translations falls with the number of sentences. With attention it stays at 1 up to four "
        "sentences; without attention, or with uniform weights, it is near 0 there.",
    )
