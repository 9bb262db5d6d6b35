"""Chapter `mlm`'s last exercise: four parts on Tensor, compared with the course's, put together and trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from bert_course.check.outcome import has_gap
from bert_course.common.figures import IN_A_PAGE, Figure, Picture, figure
from bert_course.common.fit import descend
from bert_course.common.light_stories import BATCH, DECAY, LENGTH, small_config, stories
from bert_course.parts import by_part
from minigrad import backend, ops, optim, random
from minigrad.bert.config import IGNORED
from minigrad.bert.data import PretrainingData
from minigrad.bert.metrics import unigram_entropy
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.training import parameter_groups
from minigrad.tensor import Tensor
from minigrad.training.epochs import Batch

STEPS = 60 if IN_A_PAGE else 300  # Python in a page has one core, and no fast products
PEAK, WARMUP_SHARE = 2e-3, 0.1
MEAN_OF = 10  # steps: a batch's loss jumps

# --- The parts, as the course writes them ----------------------------------------------------------------


def embed(input_ids, token_type_ids, W_T, W_S, W_P):
    """(B, L), (B, L), (V, d_model), (2, d_model), (L_max, d_model) -> (B, L, d_model)."""
    return W_T[input_ids] + W_S[token_type_ids] + W_P[: input_ids.shape[1]]


def multi_head(X, weights, h, mask):
    """(B, L, d_model), a dict of W_Q, b_Q, … W_O, b_O, a number, (B, 1, 1, L) -> (B, L, d_model)."""
    B, L, d_model = X.shape
    d_k = d_model // h

    def heads(letter):
        projected = X @ weights[f"W_{letter}"] + weights[f"b_{letter}"]  # (B, L, d_model)
        return projected.reshape(B, L, h, d_k).transpose(1, 2)  # (B, h, L, d_k)

    S = heads("Q") @ heads("K").transpose(-1, -2) / math.sqrt(d_k) + mask  # (B, h, L, L)
    Z = ops.softmax(S) @ heads("V")  # (B, h, L, d_k)
    return Z.transpose(1, 2).reshape(B, L, d_model) @ weights["W_O"] + weights["b_O"]


def feed_forward(X, W_1, b_1, W_2, b_2):
    """(…, d_model), (d_model, d_ff), (d_ff,), (d_ff, d_model), (d_model,) -> (…, d_model)."""
    return ops.gelu(X @ W_1 + b_1) @ W_2 + b_2


def add_norm(x, y, gain, bias, eps):
    """(…, d_model), (…, d_model), (d_model,), (d_model,), a number -> (…, d_model)."""
    centred = x + y
    centred = centred - centred.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / (variance + eps) ** 0.5 * gain + bias


ANSWERS: dict[str, Callable[..., Tensor]] = {
    f.__name__: f for f in (embed, multi_head, feed_forward, add_norm)
}

# --- A learner's beside them -----------------------------------------------------------------------------


def own_parts(*functions: Callable[..., Any]) -> SimpleNamespace:
    """The four parts to train with: the learner's, and the course's where one is missing or wrong, which is said.

    A part is right if it returns the course's numbers and sends the course's gradients back, on inputs in float64.
    """
    given = {function.__name__: function for function in functions}
    taken = dict(ANSWERS)
    for name in ANSWERS:
        fault = _fault(name, given[name]) if name in given else "it was not given"
        print(f"{name}: yours" if fault is None else f"{name}: the course's, because {fault}")
        if fault is None:
            taken[name] = given[name]
    return SimpleNamespace(**taken)


def _fault(name: str, function: Callable[..., Any]) -> str | None:
    """What is wrong with a learner's part; None if nothing is."""
    if has_gap(function):
        return "yours is not written yet"
    rng = np.random.default_rng(0)
    for arguments in _CASES[name](rng):
        try:
            y = function(*arguments.values())
        except Exception as error:
            return f"yours raises {type(error).__name__}: {error}"
        expected = ANSWERS[name](*arguments.values())
        if not isinstance(y, Tensor):
            return (
                f"yours returns {type(y).__name__}, not Tensor: somewhere NumPy takes the numbers out of it"
            )
        if y.shape != expected.shape:
            return f"yours returns the shape {y.shape} where {expected.shape} is expected"
        if not (far := float(np.abs(y.numpy() - expected.numpy()).max())) < 1e-9:
            return f"yours returns other numbers, by up to {far:.2g}"
        dy = rng.standard_normal(y.shape)
        ours, theirs = (_gradients(result, arguments, dy) for result in (y, expected))
        for leaf, gradient in theirs.items():
            if leaf not in ours:
                return (
                    f"in yours no gradient reaches {leaf}: somewhere NumPy takes the numbers out of a Tensor"
                )
            if not np.allclose(ours[leaf], gradient, rtol=1e-7, atol=1e-9):
                return f"in yours another gradient reaches {leaf}"
    return None


def _gradients(y: Tensor, arguments: dict[str, Any], dy: np.ndarray) -> dict[str, np.ndarray]:
    """What a cotangent sends back to each Tensor among the arguments that it reaches."""
    leaves = {name: value for name, value in _leaves(arguments) if value.requires_grad}
    for leaf in leaves.values():
        leaf.zero_grad()
    if y.requires_grad:
        y.backward(dy)
    return {
        name: np.array(backend.to_numpy(leaf.grad)) for name, leaf in leaves.items() if leaf.grad is not None
    }


def _leaves(arguments: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    for name, value in arguments.items():
        if isinstance(value, dict):
            yield from _leaves(value)
        elif isinstance(value, Tensor):
            yield name, value


def _tensor(rng: np.random.Generator, *shape: int) -> Tensor:
    return Tensor(rng.standard_normal(shape), requires_grad=True)


def _embed_cases(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for B, L, V, d in ((2, 4, 9, 3), (1, 6, 5, 4)):
        ids = {"input_ids": rng.integers(0, V, (B, L)), "token_type_ids": rng.integers(0, 2, (B, L))}
        yield {**ids, "W_T": _tensor(rng, V, d), "W_S": _tensor(rng, 2, d), "W_P": _tensor(rng, 7, d)}


def _multi_head_cases(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for B, L, h, d_k in ((2, 5, 3, 2), (3, 4, 1, 3)):
        d = h * d_k
        weights = {f"W_{n}": _tensor(rng, d, d) for n in "QKVO"} | {f"b_{n}": _tensor(rng, d) for n in "QKVO"}
        hidden = np.zeros((B, 1, 1, L))
        hidden[0, ..., -2:] = np.finfo(np.float64).min
        yield {"X": _tensor(rng, B, L, d), "weights": weights, "h": h, "mask": Tensor(hidden)}


def _feed_forward_cases(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for B, L, d, wide in ((2, 3, 4, 7), (3, 1, 2, 5)):
        inner = {"W_1": _tensor(rng, d, wide), "b_1": _tensor(rng, wide)}
        yield {"X": _tensor(rng, B, L, d), **inner, "W_2": _tensor(rng, wide, d), "b_2": _tensor(rng, d)}


def _add_norm_cases(rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    for B, L, d, eps in ((2, 3, 4, 1e-12), (1, 2, 5, 0.3)):
        sides = {"x": _tensor(rng, B, L, d), "y": _tensor(rng, B, L, d)}
        yield {**sides, "gain": _tensor(rng, d), "bias": _tensor(rng, d), "eps": eps}


_CASES: dict[str, Callable[[np.random.Generator], Iterator[dict[str, Any]]]] = {
    "embed": _embed_cases,
    "multi_head": _multi_head_cases,
    "feed_forward": _feed_forward_cases,
    "add_norm": _add_norm_cases,
}

# --- Put together, and trained ---------------------------------------------------------------------------


def masked_loss(parts: Any, model: BertForPreTraining, batch: Batch) -> Tensor:
    """The loss of the chosen tokens, computed with the parts from the model's parameters."""
    weights = by_part(dict(model.named_parameters()))
    h, eps = model.config.num_attention_heads, model.config.layer_norm_eps
    tables = weights["W_T"], weights["W_S"], weights["W_P"]
    padding = (1 - batch["attention_mask"][:, None, None]) * np.float32(-1e9)
    mask = Tensor(padding.astype(np.float32))  # (B, 1, 1, L)
    X = parts.embed(batch["input_ids"], batch["token_type_ids"], *tables)  # (B, L, d_model)
    X = parts.add_norm(X, 0 * X, *weights["norm"], eps)
    for layer in weights["layers"]:
        Y = parts.multi_head(X, layer["attention"], h, mask)
        X = parts.add_norm(X, Y, *layer["attention_norm"], eps)
        Y = parts.feed_forward(X, *layer["feed_forward"])
        X = parts.add_norm(X, Y, *layer["output_norm"], eps)
    chosen = batch["labels"] != IGNORED  # (B, L)
    logits = model.cls.predictions(X[chosen], weights["W_T"])  # (n, V)
    return ops.cross_entropy(logits, batch["labels"][chosen])


@dataclass(frozen=True)
class Learned:
    """A model that was trained with some parts: it, its tokenizer, a loss a step, and what word frequencies reach."""

    model: BertForPreTraining
    tokenizer: Any
    losses: Sequence[float]
    unigram_entropy: float

    def last(self, steps: int = 2 * MEAN_OF) -> float:
        """The mean loss of the last steps."""
        return float(np.mean(self.losses[-steps:]))

    def curve(self) -> Picture:
        """The loss over the steps, beside that of a model that knows the words' frequencies and no more."""
        whole = len(self.losses) // MEAN_OF * MEAN_OF
        means = np.reshape(self.losses[:whole], (-1, MEAN_OF)).mean(axis=1)  # (whole / MEAN_OF,)
        places = MEAN_OF * (np.arange(len(means)) + 0.5)

        def plot(canvas: Figure, colours: dict[str, str]) -> None:
            axes = canvas.add_subplot()
            axes.plot(places, means, color=colours["first"])
            axes.axhline(self.unigram_entropy, color=colours["ink"], linewidth=1, linestyle="--")
            words = "word frequencies"
            axes.text(
                whole, self.unigram_entropy + 0.08, words, color=colours["ink"], ha="right", va="bottom"
            )
            axes.set_xlabel("steps")
            axes.set_ylabel("loss (nats)")
            axes.set_ylim(0, max(means.max(initial=0.0), self.unigram_entropy) + 0.5)

        alt = (
            f"The loss of the hidden words falls from {means[0]:.1f} to {means[-1]:.1f} nats in {whole} steps; "
            f"word frequencies alone give {self.unigram_entropy:.1f}"
        )
        return figure(plot, alt)


def learn(parts: Any, steps: int = STEPS, seed: int = 0) -> Learned:
    """Train a reduced BERT with some parts on chapter `pretraining`'s stories, to guess hidden words.

    Ctrl-C ends it with what has been learned by then. Raises ValueError for less than one mean's steps.
    """
    if steps < MEAN_OF:
        raise ValueError(f"steps must be at least {MEAN_OF}, got {steps}")
    random.manual_seed(seed)
    model, text = BertForPreTraining(small_config()), stories()
    data = PretrainingData(text, text.tokenizer, BATCH, LENGTH, seed)
    optimizer = optim.AdamW(parameter_groups(model, DECAY), lr=PEAK, eps=1e-6)
    schedule = optim.LinearWarmupDecay(optimizer, round(WARMUP_SHARE * steps), steps)
    backend.of(next(model.parameters()).data).keep_freed_memory()
    losses: list[float] = []
    try:
        for _ in range(steps):
            loss = masked_loss(parts, model, data.next_batch())
            descend(model, loss, optimizer, schedule)
            losses.append(loss.item())
    except KeyboardInterrupt:
        if len(losses) < MEAN_OF:
            raise
        print(f"stopped after {len(losses)} of {steps} steps")
    model.eval()
    return Learned(model, text.tokenizer, losses, unigram_entropy(text.tokens()))
