"""Stories through one vector: the runs of `seq2seq` and `attention_decoder`, and how their models are scored."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np

from bert_course.common.fit import descend
from bert_course.common.translated_stories import words_right
from bert_course.stored import stored
from minigrad import backend, nn, ops, optim, random
from minigrad.seq2seq.checkpoint import from_pretrained
from minigrad.seq2seq.config import RecurrentConfig
from minigrad.seq2seq.data import IdPair, TranslationData, pad_pairs
from minigrad.seq2seq.predict import translate_ids
from minigrad.seq2seq.recurrent import RecurrentEncoder, RecurrentSeq2Seq
from minigrad.stories.grammar import Story
from minigrad.stories.language import SovianWord, translate
from minigrad.stories.lexicon import SETTINGS, Setting
from minigrad.stories.stories import tell_stories
from minigrad.stories.translation import translation_tokenizer
from minigrad.tensor import Tensor, no_grad
from minigrad.text.tokenizer import WordPieceTokenizer

LONG = SETTINGS["long"]  # of 1 to 7 sentences
SHORT = replace(LONG, sentences=(1,))
HELD_OUT, HELD_OUT_SEED = 560, 2**20
BATCH, WARMUP, DECAY, LONGEST = 32, 200, 0.01, 64
STORIES_AN_EPOCH = 3200


# --- Texts -----------------------------------------------------------------------------------------------


@cache
def tokenizer() -> WordPieceTokenizer:
    """A piece for each word of both languages."""
    return translation_tokenizer(LONG)


@dataclass(frozen=True)
class Text:
    """A story and its translation. source, target: as words; ids: as ids, without start and end token."""

    story: Story
    words: tuple[SovianWord, ...]
    sentences: int

    @property
    def source(self) -> str:
        """In English."""
        return " ".join(self.story.texts())

    @property
    def target(self) -> str:
        """In Sovian."""
        return " ".join(word.text for word in self.words)

    @property
    def ids(self) -> IdPair:
        """Of source and target."""
        return tokenizer().token_ids(self.source), tokenizer().token_ids(self.target)

    @property
    def length(self) -> int:
        """Words of the source."""
        return sum(map(len, self.story.sentences))

    def cut(self, sentences: int) -> Text:
        """The text's first sentences: a whole story as well."""
        part = replace(
            self.story, sentences=self.story.sentences[:sentences], trees=self.story.trees[:sentences]
        )
        return _text(part)


def _text(story: Story) -> Text:
    return Text(story, tuple(translate(story).words), len(story.sentences))


def texts(setting: Setting, count: int, seed: int) -> list[Text]:
    """Fresh ones for each seed."""
    return [_text(story) for story in tell_stories(setting, count, seed)]


@cache
def held_out() -> list[Text]:
    """The texts on which every run is scored."""
    return texts(LONG, HELD_OUT, HELD_OUT_SEED)


def repeated(sentences: int, count: int, seed: int) -> float:
    """The share of the held-out texts of so many sentences that are among `count` fresh ones: short texts are few."""
    drawn = tell_stories(replace(LONG, sentences=(sentences,)), count, seed)
    seen = {" ".join(story.texts()) for story in drawn}
    return float(np.mean([text.source in seen for text in held_out() if text.sentences == sentences]))


# what a word of a translation is made from
KINDS = {
    "mark": "ga, ko, du, fe, zi: the role of a phrase",
    "name": "one of sixteen names",
    "person": "he, she: tum, tem",
    "noun": "its class, and one, few or many",
    "it, them": "the class of a noun that is not said here",
    "count": "one, two, three, four, five",
    "adjective": "ripe, old; in English before or after the noun",
    "when": "again, now, today",
    "verb": "ends as its subject does",
    "full stop": "the end of a sentence",
}


def kind_of(text: Text, word: SovianWord) -> str:
    """Which of KINDS a word of the text's translation is."""
    source = [one for sentence in text.story.sentences for one in sentence]
    if not word.aligned:
        return "mark"
    english = source[word.aligned[0]]
    if english.tag == "PREP" or (word.text in ("zi", "du", "fe", "lu", "po")):
        return "mark"
    if english.text in ("it", "them"):
        return "it, them"
    return _KIND_OF_TAG[english.tag]


_KIND_OF_TAG = {
    "NAME": "name",
    "PRON": "person",
    "NOUN": "noun",
    "NUM": "count",
    "ADJ": "adjective",
    "ADV": "when",
    "VERB": "verb",
    "STOP": "full stop",
}


# --- Variants and their training -------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """What is changed against an LSTM with 128 numbers in a state: sizes, the source's order."""

    config: Mapping[str, Any] = field(default_factory=dict)
    reverse: bool = False


VARIANTS = {
    "LSTM": Variant(),
    "GRU": Variant({"cell": "gru"}),
    "RNN": Variant({"cell": "rnn"}),
    "twice the state": Variant({"hidden_size": 256}),
    "source reversed": Variant(reverse=True),
}


def model_of(variant: Variant, seed: int, hidden_size: int = 128) -> RecurrentSeq2Seq:
    """The model as drawn, without dropout."""
    random.manual_seed(seed)
    sizes = {"hidden_size": hidden_size, "dropout": 0.0, **variant.config}
    return RecurrentSeq2Seq(RecurrentConfig(vocab_size=tokenizer().vocab_size, **sizes))


def _read(pair: IdPair, variant: Variant) -> IdPair:
    """What the variant's model reads of a pair, and writes."""
    source, target = pair
    return (source[::-1] if variant.reverse else source), target


def train(
    variant: Variant,
    seed: int,
    rate: float,
    steps: int,
    points: Sequence[int],
    setting: Setting = LONG,
    hidden_size: int = 128,
) -> Iterator[tuple[int, RecurrentSeq2Seq, float]]:
    """Train on fresh texts; stops at each of `points` and gives the step, the model, and the mean loss since then.

    AdamW with weight decay on the matrices, gradients clipped at norm 1, a linear rise over WARMUP steps to `rate`,
    then a linear fall to 0.
    """
    model = model_of(variant, seed, hidden_size)
    matrices = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in model.parameters() if parameter.ndim == 1]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}]
    optimizer = optim.AdamW(groups, lr=rate)
    schedule = optim.LinearWarmupDecay(optimizer, min(WARMUP, max(1, steps // 2)), steps)

    def epoch(rng: np.random.Generator) -> list[IdPair]:
        drawn = texts(setting, STORIES_AN_EPOCH, int(rng.integers(1, 2**19)))
        return [_read(text.ids, variant) for text in drawn]

    config = model.config
    data = TranslationData(epoch, BATCH, seed, config.end_token_id, config.pad_token_id)
    backend.of(next(model.parameters()).data).keep_freed_memory()
    losses: list[float] = []
    for step in range(1, steps + 1):
        model.train()
        loss = model(**data.next_batch()).loss
        descend(model, loss, optimizer, schedule)
        losses.append(loss.item())
        if step in points:
            model.eval()
            yield step, model, float(np.mean(losses))
            losses = []


def stored_model() -> RecurrentSeq2Seq:
    """The LSTM that was trained on long texts for chapter `seq2seq`, for 3,000 steps (book/make/store.py)."""
    return from_pretrained(stored("seq2seq")).model


def recorded(
    name: str, rate: float = 2e-3, runs: Sequence[Mapping[str, Any]] | None = None
) -> list[Mapping[str, Any]]:
    """What `score` gave for a variant's runs in the record at this learning rate, seed after seed.

    runs: those of translation.json by default. Raises ValueError if there is none.
    """
    if runs is None:
        runs = json.loads(stored("translation.json").read_text())["runs"]
    seeds = {run["seed"]: run["scores"] for run in runs if (run["variant"], run["rate"]) == (name, rate)}
    if not seeds:
        raise ValueError(f"the record has no run of {name!r} at the rate {rate:g}")
    return [seeds[seed] for seed in sorted(seeds)]


# --- Scores ----------------------------------------------------------------------------------------------


def forced(
    model: RecurrentSeq2Seq, chosen: Sequence[Text], variant: Variant = VARIANTS["LSTM"]
) -> list[np.ndarray]:
    """Which words of each translation the model has right when it is fed the right ones before; the end token last."""
    config, pairs = model.config, [_read(text.ids, variant) for text in chosen]
    batches = (
        pad_pairs(pairs[start : start + 56], config.end_token_id, config.pad_token_id)
        for start in range(0, len(pairs), 56)
    )
    return words_right(model.eval(), batches)


def written(
    model: RecurrentSeq2Seq, chosen: Sequence[Text], variant: Variant = VARIANTS["LSTM"]
) -> list[list[int]]:
    """The ids that the model writes for each text, by greedy search."""
    sources = [_read(text.ids, variant)[0] for text in chosen]
    return [one.ids for one in translate_ids(model, sources, 1, LONGEST, 64)]


def score(
    model: RecurrentSeq2Seq, variant: Variant, chosen: Sequence[Text] | None = None
) -> dict[str, dict[str, Any]]:
    """How well a model translates texts, by their number of sentences ("1" to "7").

    texts, words (with end tokens), exact (texts written without a mistake), right (words, by teacher forcing), first
    (words of a text's first sentence) and first_right, and kinds: by kind of word [words, right].
    """
    chosen = held_out() if chosen is None else chosen
    hits, outputs = forced(model, chosen, variant), written(model, chosen, variant)
    found: dict[str, dict[str, Any]] = {}
    for text, hit, output in zip(chosen, hits, outputs, strict=True):
        here = found.setdefault(
            str(text.sentences), {"texts": 0, "words": 0, "exact": 0, "right": 0, "first": 0}
        )
        first = [word.text for word in text.words].index(".") + 1
        here["texts"] += 1
        here["words"] += len(hit)
        here["exact"] += output == list(text.ids[1])
        here["right"] += int(hit.sum())
        here["first"] += first
        here["first_right"] = here.get("first_right", 0) + int(hit[:first].sum())
        kinds = here.setdefault("kinds", {})
        for word, right in zip(text.words, hit, strict=False):
            of_kind = kinds.setdefault(kind_of(text, word), [0, 0])
            of_kind[0] += 1
            of_kind[1] += int(right)
    return dict(sorted(found.items()))


def after_first_mistake(
    model: RecurrentSeq2Seq, chosen: Sequence[Text]
) -> list[tuple[list[int], list[int], np.ndarray]]:
    """What comes after the first mistake of each text in which the model makes one, with the end token.

    -> for each text the right ids, those that the model writes by itself, and which of the right ones it has right
    when it is fed the right words before them. Up to the first mistake both ways read the same.
    """
    found = []
    for text, hit, output in zip(chosen, forced(model, chosen), written(model, chosen), strict=True):
        if not hit.all():
            rest = slice(int(np.flatnonzero(~hit)[0]) + 1, None)
            end = model.config.end_token_id
            found.append(([*text.ids[1], end][rest], [*output, end][rest], hit[rest]))
    return found


def after_first_error(
    model: RecurrentSeq2Seq, chosen: Sequence[Text], most: int = 8
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """How many words are right 1, 2, … `most` places after the model's first mistake: (right, words), each (most,).

    "own words": the model reads what it has written, mistakes and all. "right words": it reads the right words, on
    the same places of the same texts.
    """
    own, fed = (np.zeros((2, most), int) for _ in range(2))
    for wanted, got, hit in after_first_mistake(model, chosen):
        for place in range(min(most, len(wanted))):
            own[:, place] += place < len(got) and got[place] == wanted[place], 1
            fed[:, place] += hit[place], 1
    return {"own words": (own[0], own[1]), "right words": (fed[0], fed[1])}


def sentences_right(model: RecurrentSeq2Seq, chosen: Sequence[Text], most: int) -> dict[int, list[float]]:
    """How well each sentence is translated when 1, 2, … `most` sentences of the texts are read.

    chosen: texts of at least so many sentences. A sentence is the same in each row; only what follows it differs.
    -> by number of sentences read, for each of them the share of texts in which all of its words are right, with the
    right words before them.
    """
    found = {}
    for read in range(1, most + 1):
        cut = [text.cut(read) for text in chosen]
        whole = []
        for text, hit in zip(cut, forced(model, cut), strict=True):
            ends = [place + 1 for place, word in enumerate(text.words) if word.text == "."]
            whole.append([bool(part.all()) for part in np.split(hit, ends)[:-1]])
        found[read] = [float(share) for share in np.mean(whole, axis=0)]
    return found


# --- Looking at a model ----------------------------------------------------------------------------------


def as_words(ids: Sequence[int]) -> str:
    """Ids as words, and - for what is no id."""
    return " ".join("-" if i < 0 else tokenizer().id_to_token(int(i)) for i in ids)


def side_by_side(model: RecurrentSeq2Seq, text: Text) -> list[list[str]]:
    """For each sentence of a text: in English, in right Sovian, and as the model has it."""
    (ids,) = written(model, [text])
    columns = [
        [part.strip() + " ." for part in whole.split(" .") if part.strip()]
        for whole in (text.source, text.target, as_words(ids))
    ]
    return [list(row) for row in zip_longest(*columns, fillvalue="")]


LSTMStep = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def cell_norms(
    step: LSTMStep, bias: float, seed: int, size: int = 64, steps: int = 60, most: int = 50
) -> tuple[list[float], list[float], float]:
    """How the gradient of an LSTM's last cell reaches the cells before, in a network as drawn.

    step(x_part, h, c, W_h, b) -> h, c. bias: added to that of the forget gates. Returns the norm of the gradient 0, 1,
    … `most` steps back, of a cotangent of norm 1 that is even over all units; what the product of the forget gates
    alone would leave of it; and the mean forget gate.
    """
    random.manual_seed(seed)
    net: Any = nn.LSTM(16, size)
    forget = slice(size, 2 * size)
    net.bias_hh_l0.data[forget] += bias
    inputs = np.random.default_rng(seed).standard_normal((steps, 1, 16)).astype(np.float32)
    h = c = Tensor(np.zeros((1, size), np.float32))
    cells: list[Any] = []
    opened = []
    for x in inputs:
        x_part = Tensor(x) @ net.weight_ih_l0 + net.bias_ih_l0
        opened.append((x_part + h @ net.weight_hh_l0 + net.bias_hh_l0).sigmoid().numpy()[0, forget])
        h, c = step(x_part, h, c, net.weight_hh_l0, net.bias_hh_l0)
        cells.append(c.retain_grad())
    c.backward(np.full((1, size), size**-0.5, np.float32))
    whole = [float(np.linalg.norm(cell.grad)) for cell in cells[::-1][: most + 1]]
    along = np.cumprod([np.ones(size), *opened[::-1]], axis=0)[: most + 1]
    return whole, [float(left) for left in np.sqrt((along**2).mean(axis=1))], float(np.mean(opened))


def forget_gates(encoder: RecurrentEncoder, chosen: Sequence[Text]) -> np.ndarray:
    """Each unit's mean forget gate over the words of some texts: (H,)."""
    net: Any = encoder.network
    size = net.hidden_size
    opened = []
    with no_grad():
        for text in chosen:
            x = encoder.words(np.array(text.ids[0]))[None]  # (1, S, H)
            h, _ = net(x)
            before = ops.concat([h[:, :1] * 0, h[:, :-1]], axis=1)
            z = x @ net.weight_ih_l0 + net.bias_ih_l0 + before @ net.weight_hh_l0 + net.bias_hh_l0
            opened.append(z.sigmoid().numpy()[0, :, size : 2 * size])
    return np.concatenate(opened).mean(axis=0)


def right_by_kind(runs: Sequence[Mapping[str, Any]], lengths: Sequence[int]) -> dict[str, list[float]]:
    """For each kind of word, each run's share of right ones in texts of these numbers of sentences.

    runs: what `score` gives.
    """
    found: dict[str, list[float]] = {}
    for kind in KINDS:
        for run in runs:
            counts = np.sum([run[str(n)]["kinds"].get(kind, [0, 0]) for n in lengths], axis=0)
            found.setdefault(kind, []).append(float(counts[1] / counts[0]))
    return found
