"""What the chapter shows: a small Transformer trained with parts changed, its masks changed, its two halves by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bert_course.common.figures import Figure, Picture, figure
from bert_course.common.fit import descend
from bert_course.common.flow import Box, Flow, Step, flow
from bert_course.contents import numbered
from bert_course.stored import stored
from minigrad import nn, no_grad, ops, optim, random
from minigrad.bert.config import IGNORED
from minigrad.seq2seq import (
    Transformer,
    TransformerConfig,
    TranslationData,
    draw_translations,
    from_pretrained,
    greedy_search,
    pad_pairs,
    shift_right,
    translation_tokenizer,
)
from minigrad.seq2seq.data import IdPair
from minigrad.seq2seq.masks import decoder_mask, padding_mask
from minigrad.seq2seq.output import Seq2SeqOutput
from minigrad.seq2seq.transformer import Embeddings
from minigrad.stories.lexicon import SETTINGS
from minigrad.tensor import Array, Tensor
from minigrad.training.epochs import Batch

SHORT = replace(SETTINGS["long"], sentences=(1, 2))  # the stories of chapter `attention_decoder`'s short runs
tokenizer = translation_tokenizer(SHORT)
SMALL = TransformerConfig(
    vocab_size=tokenizer.vocab_size,
    d_model=64,
    nhead=4,
    num_encoder_layers=1,
    num_decoder_layers=1,
    dim_feedforward=256,
    dropout=0.0,
    label_smoothing=0.0,
    pad_token_id=tokenizer.pad_token_id,
    start_token_id=tokenizer.cls_token_id,
    end_token_id=tokenizer.sep_token_id,
)
REDUCED = SMALL.replace(  # the preset's sizes, with the paper's dropout and label smoothing
    d_model=128,
    num_encoder_layers=2,
    num_decoder_layers=2,
    dim_feedforward=512,
    dropout=0.1,
    label_smoothing=0.1,
)
HELD_OUT_SEED = 999_983


# --- Texts ------------------------------------------------------------------------------------------------


def pairs_of(count: int, seed: int = HELD_OUT_SEED) -> list[IdPair]:
    """Fresh stories of one or two sentences and their translations as ids, without start and end tokens."""
    return [
        (tokenizer.token_ids(pair.source), tokenizer.token_ids(pair.target))
        for pair in draw_translations(SHORT, count, seed)
    ]


def batch_of(pairs: Sequence[IdPair]) -> Batch:
    """input_ids (B, S), attention_mask (B, S), labels (B, T), each text with an end token."""
    return pad_pairs(pairs, tokenizer.sep_token_id, tokenizer.pad_token_id)


def stored_model() -> tuple[Transformer, Any]:
    """The stored Transformer in evaluation mode, and its tokenizer."""
    loaded = from_pretrained(stored("transformer"))
    return loaded.model.eval(), loaded.tokenizer


# --- A Transformer with a part changed --------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """What is changed of the paper's recipe; the defaults change nothing.

    shift: whether the decoder reads the words before each label, and not the labels themselves. future: whether it
    may look at later words too. scaled: word vectors times √d_model. tied: one table for words and logits.
    positions: whether sinusoids are added. warm_up: whether the rate rises first; else it starts at its peak.
    dropout, label_smoothing: None for what the config says.
    """

    shift: bool = True
    future: bool = False
    scaled: bool = True
    tied: bool = True
    positions: bool = True
    warm_up: bool = True
    dropout: float | None = None
    label_smoothing: float | None = None


VARIANTS = {
    "all parts": Variant(),
    "words not times √d_model": Variant(scaled=False),
    "a table of its own for the logits": Variant(tied=False),
    "no label smoothing": Variant(label_smoothing=0.0),
    "no warm-up": Variant(warm_up=False),
    "no dropout": Variant(dropout=0.0),
    "no positions": Variant(positions=False),
}


class ChangedEmbeddings(Embeddings):
    """The library's embeddings, with what a variant changes."""

    def __init__(self, config: TransformerConfig, variant: Variant) -> None:
        super().__init__(config)
        self.positions = variant.positions
        if not variant.scaled:
            self.scale = 1.0
        if not variant.tied:
            self.out = nn.Linear(config.d_model, config.vocab_size, bias=False, std=config.d_model**-0.5)

    def forward(self, ids: np.ndarray, start: int = 0) -> Tensor:
        """ids (B, T) -> (B, T, d_model)."""
        if self.positions:
            return super().forward(ids, start)
        return self.dropout(self.words(ids) * self.scale)

    def logits(self, x: Tensor) -> Tensor:
        """x (B, T, d_model) -> (B, T, V)."""
        return self.out(x) if hasattr(self, "out") else super().logits(x)


class Changed(Transformer):
    """The library's Transformer, with what a variant changes."""

    def __init__(self, config: TransformerConfig, variant: Variant) -> None:
        changes = {
            name: getattr(variant, name)
            for name in ("dropout", "label_smoothing")
            if getattr(variant, name) is not None
        }
        super().__init__(config.replace(**changes))
        self.variant = variant
        self.embeddings = ChangedEmbeddings(self.config, variant)

    def forward(
        self,
        input_ids: Array,
        attention_mask: Array | None = None,
        decoder_input_ids: Array | None = None,
        labels: Array | None = None,
        output_attentions: bool = False,
    ) -> Seq2SeqOutput:
        """As the library's, with labels; the decoder reads and sees what the variant says."""
        assert labels is not None
        pad = self.config.pad_token_id
        ids = shift_right(labels, self.config.start_token_id, pad)
        if not self.variant.shift:
            ids = np.where(labels == IGNORED, pad, labels)
        memory = self.encode(input_ids, attention_mask)
        mask = (padding_mask if self.variant.future else decoder_mask)(ids != pad, memory.states)
        state = self.start(memory)
        y = self.embeddings(ids)  # (B, T, d_model)
        layers: Any = self.decoder
        for layer, source in zip(layers, state.source, strict=True):
            y = layer(y, None, mask, source, state.source_mask).x
        logits = self.embeddings.logits(y)  # (B, T, V)
        smoothing = self.config.label_smoothing if self.training else 0.0
        return Seq2SeqOutput(logits, ops.cross_entropy(logits, labels, label_smoothing=smoothing))


# --- Training ---------------------------------------------------------------------------------------------


def paper_peak(d_model: int, warmup_steps: int) -> float:
    """The highest rate of the schedule of Vaswani et al. (2017), section 5.3: a shorter warm-up makes it higher."""
    return (d_model * warmup_steps) ** -0.5


def training(
    config: TransformerConfig,
    steps: int,
    warmup_steps: int,
    seed: int = 0,
    variant: Variant | None = None,
    peak: float | None = None,
) -> Iterator[tuple[Transformer, float]]:
    """A Transformer after each of `steps` steps, and the step's loss: on batches of 32 fresh stories, by the paper's
    Adam and schedule.

    peak: the schedule's highest rate, at the end of the warm-up; None for the paper's, `paper_peak`. Gradients are
    clipped at a norm of 1, which the paper does not mention.
    """
    variant = variant or Variant()
    random.manual_seed(seed)
    model = Changed(config, variant)
    of_the_paper = paper_peak(config.d_model, warmup_steps)
    peak = peak or of_the_paper
    adam = optim.Adam(model.parameters(), lr=peak / of_the_paper, betas=(0.9, 0.98), eps=1e-9)
    schedule = optim.InverseSquareRootWarmup(adam, config.d_model, warmup_steps)
    pairs = pairs_of(32 * steps, seed + 1000)
    data = TranslationData(pairs, 32, seed, config.end_token_id, config.pad_token_id)
    for step in range(1, steps + 1):
        if not variant.warm_up and step <= warmup_steps:
            adam.groups[0]["lr"] = peak
        loss = model(**data.next_batch()).loss
        descend(model, loss, adam, schedule)
        yield model, loss.item()


def train(
    config: TransformerConfig,
    steps: int,
    warmup_steps: int,
    *,
    every: int = 0,
    tell: Callable[[int, Transformer, float], object] = lambda step, model, loss: None,
    **settings: Any,
) -> Transformer:
    """A Transformer after `steps` steps of `training`, which has the settings.

    tell is called with the step, the model and the mean training loss since the last time, after each `every` steps.
    """
    losses: list[float] = []
    for step, (model, loss) in enumerate(training(config, steps, warmup_steps, **settings), 1):
        losses.append(loss)
        if every and step % every == 0:
            model.eval()
            tell(step, model, float(np.mean(losses[-every:])))
            model.train()
    model.eval()
    return model


def right(model: Transformer, pairs: Sequence[IdPair], max_length: int = 40) -> list[bool]:
    """Which of the pairs greedy search translates without a mistake."""
    found: list[bool] = []
    for chosen in _in_batches(pairs, 64):
        batch = batch_of(chosen)
        written = greedy_search(model, batch["input_ids"], batch["attention_mask"], max_length)
        found += [one.ids == list(target) for one, (_, target) in zip(written, chosen, strict=True)]
    return found


def held_out(model: Transformer, pairs: Sequence[IdPair]) -> tuple[float, float]:
    """The loss in nats a word, and the share of words that are likeliest after the right words before them."""
    losses, hits, count = 0.0, 0, 0
    with no_grad():
        for chosen in _in_batches(pairs, 64):
            batch = batch_of(chosen)
            output = model(**batch)
            there = batch["labels"] != IGNORED
            hits += int((output.logits.numpy().argmax(axis=-1) == batch["labels"])[there].sum())
            losses += output.loss.item() * int(there.sum())
            count += int(there.sum())
    return losses / count, hits / count


def _in_batches(pairs: Sequence[IdPair], size: int) -> Iterator[Sequence[IdPair]]:
    for start in range(0, len(pairs), size):
        yield pairs[start : start + size]


# --- Pictures ---------------------------------------------------------------------------------------------


class Looks:
    """Which places look at which, as grids of characters, one beside the other."""

    def __init__(self, grids: Mapping[str, Sequence[str]]) -> None:
        self.grids = dict(grids)

    def __repr__(self) -> str:
        width = max(len(name) for name in self.grids) + 3
        tall = max(len(grid) for grid in self.grids.values())
        lines = [[*self.grids]]
        lines += [[grid[i] if i < len(grid) else "" for grid in self.grids.values()] for i in range(tall)]
        return "\n".join("".join(cell.ljust(width) for cell in line).rstrip() for line in lines)


def looks(uses: Mapping[str, Sequence[Tensor]], text: int) -> Looks:
    """For each use of attention a grid: # where no head of any layer gives a weight above 0, else a point.

    uses: names with the weights of each layer, (B, h, T, S). text: which of the batch.
    """
    grids = {}
    for name, layers in uses.items():
        top = np.max([layer.numpy()[text].max(axis=0) for layer in layers], axis=0)  # (T, S)
        rows = ["".join("#" if weight == 0 else "." for weight in row) for row in top]
        grids[name] = [str(tuple(layers[0].shape)), *rows]
    return Looks(grids)


def length_figure(series: Mapping[str, Sequence[float]]) -> Picture:
    """The share of translations without a mistake, by the number of sentences, from 1 on; a line for each model."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        inks = [colours[name] for name in ("first", "second", "third")]
        for (name, values), ink, mark in zip(series.items(), inks, "osD", strict=True):
            places = range(1, len(values) + 1)
            axes.plot(places, values, mark + "-", color=ink)
            at = min(len(values) - 1, 2) if values[-1] < 0.1 else len(values) - 1
            axes.annotate(
                name,
                (places[at], values[at]),
                (-6, -4),
                textcoords="offset points",
                color=ink,
                ha="right",
                va="top",
            )
        axes.set(xlabel="sentences of the story", ylabel="translations right", ylim=(-0.03, 1.05))

    alt = "Translations right by the number of sentences: the Transformer stays near 1 up to seven sentences"
    return figure(plot, alt)


def layer_flow(X: np.ndarray, Y: np.ndarray, hidden: np.ndarray) -> Flow:
    """The two looks of a decoder layer by hand, step by step; the mask can be edited.

    X (3, n): the encoder's output for mary, keeps, books. Y (3, n): what the decoder reads, start, mary, ga. hidden
    (3, 3): what is added to the scores of self-attention.
    """
    features = "features"
    boxes = [
        Box("Y", Y, "token", "target", features, label="target"),
        Box("M", hidden, "wrong", "target", "target", label="mask"),
        Box("YT", "Y.T", "key", columns="target", label="target ᵀ"),
        Box("S", "Y @ YT + M", "weight", "target", "target", label="scores"),
        Box("A", "softmax(S)", "weight", "target", "target", label="weights"),
        Box("Y1", "Y + A @ Y", "query", "target", features, label="after one look"),
        Box("X", X, "key", "source", features, label="source"),
        Box("XT", "X.T", "key", columns="source", label="source ᵀ"),
        Box("S2", "Y1 @ XT", "weight", "target", "source", label="scores"),
        Box("A2", "softmax(S2)", "weight", "target", "source", label="weights"),
        Box("Y2", "Y1 + A2 @ X", "value", "target", features, label="after both looks"),
    ]
    steps = [
        Step("What the decoder reads", [["Y"]], "One row for the start token, and one for each word so far."),
        Step(
            "Scores among the target's words",
            [["Y", "·", "YT"], ["+", "M"], ["=", "S"]],
            "Each row asks all rows. The mask lowers the scores of later words.",
        ),
        Step("Weights", [["S"], ["A"]], "Softmax along rows: above the diagonal nothing is left."),
        Step(
            "Add",
            [["A", "·", "Y"], ["Y1"]],
            numbered("The mixture is added to the row: the residual connection of chapter `add_norm`."),
        ),
        Step(
            "What the encoder gives",
            [["X"]],
            "One row for each word of the source. No mask hides any of them.",
        ),
        Step(
            "Scores with the source",
            [["Y1", "·", "XT"], ["S2"]],
            "The sums ask another text: a row for each word of the target, a column for each word of the source.",
        ),
        Step("Weights on the source", [["S2"], ["A2"]], "Softmax again. The row of ga looks at books."),
        Step(
            "Add once more",
            [["A2", "·", "X"], ["Y2"]],
            "Again the mixture is added. The feed-forward network gets the sum.",
        ),
    ]
    names = {
        "target": ["start", "mary", "ga"],
        "source": ["mary", "keeps", "books"],
        features: ["person", "thing", "act", "many"],
    }
    alt = "A decoder layer by hand: its words look at one another but not ahead, then at the source, with numbers"
    return flow(boxes, steps, alt, names, edit="M")
