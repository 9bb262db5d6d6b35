"""One batch on several machines, played by one process; a ring that adds up; what a network costs (`machines`)."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bert_course.common.figures import Figure, Picture, figure
from bert_course.common.pencil import arrow, box, words
from bert_course.common.small_model import small_model
from bert_course.common.widgets import Frame, svg
from bert_course.stored import stored
from minigrad import random
from minigrad.bert.config import BertConfig
from minigrad.bert.data import PretrainingData, encode_documents
from minigrad.bert.info import step_cost
from minigrad.bert.model import BertForPreTraining, parameter_shapes
from minigrad.distributed import ring_bytes
from minigrad.tensor import Tensor
from minigrad.text.corpus import read_corpus
from minigrad.training.epochs import Batch

ROWS, LENGTH, DROPOUT, RATE = 32, 64, 0.1, 1e-3


# --- One batch, several shares ---------------------------------------------------------------------------


def model_with_dropout() -> BertForPreTraining:
    """The model of chapter `start`, with its trained parameters and BERT's dropout."""
    trained, _ = small_model()
    rates = {"hidden_dropout_prob": DROPOUT, "attention_probs_dropout_prob": DROPOUT}
    model = BertForPreTraining(trained.config.replace(**rates))
    model.load_state_dict(trained.state_dict())
    model.train()
    return model


@functools.cache
def _docutils() -> tuple[Any, Any]:
    _, tokenizer = small_model()
    return encode_documents(read_corpus(stored("docutils.txt")).documents, tokenizer), tokenizer


def batch_of(seed: int) -> Batch:
    """A batch of pre-training from the documentation of docutils: 32 pairs of up to 64 tokens."""
    return PretrainingData(*_docutils(), ROWS, LENGTH, seed).next_batch()


def gradient(
    model: BertForPreTraining,
    batch: Batch,
    of_tokens: float = 1.0,
    of_pairs: float = 1.0,
    draws: int = 0,
    places: Mapping[int, Sequence[range]] | None = None,
) -> np.ndarray:
    """The gradient of the loss on a batch, of all parameters one after the other, (all,).

    of_tokens, of_pairs: the factors of the two losses. draws: how many random numbers were drawn before, so that
    another number gives another dropout. places: of a share, where its rows stand in the whole batch.
    """
    random.set_state({"seed": 0, "draws": draws})
    model.zero_grad()
    with random.rows_of_the_whole(places) if places else contextlib.nullcontext():
        output = model(**batch)
    assert output.mlm_loss is not None
    assert output.nsp_loss is not None
    (output.mlm_loss * of_tokens + output.nsp_loss * of_pairs).backward()
    return np.concatenate([_grad_of(parameter).ravel() for parameter in model.parameters()])


def _grad_of(parameter: Tensor) -> np.ndarray:
    assert parameter.grad is not None  # all parameters take part in both losses together
    return parameter.grad


def distance(found: np.ndarray, right: np.ndarray) -> float:
    """The length of the difference, as a share of the length of what is right."""
    return float(np.linalg.norm(found - right) / np.linalg.norm(right))


def ready(model: BertForPreTraining, batch: Batch) -> list[tuple[str, int]]:
    """The parameters in the order in which their gradients are complete, each with the bytes of its gradient."""
    order: list[tuple[str, int]] = []

    def note(name: str) -> Any:
        return lambda parameter: order.append((name, parameter.grad.nbytes))

    handles = [
        parameter.register_post_accumulate_grad_hook(note(name))
        for name, parameter in model.named_parameters()
    ]
    gradient(model, batch)
    for handle in handles:
        handle.remove()
    return order


# --- The ring --------------------------------------------------------------------------------------------

_LEFT, _TOP, _COLUMN, _ROW, _WIDE, _TALL = 58, 34, 104, 44, 74, 28


def ring_frames(arrays: Sequence[Sequence[int]]) -> list[Frame]:
    """A ring of as many processes as there are arrays, each with a number for each part: a frame a step."""
    n = len(arrays)
    parts = [list(array) for array in arrays]
    sums = [sum(array[k] for array in arrays) for k in range(n)]
    frames = [Frame("Start", _ring_picture(parts, sums, {}), "Each process has its own number in each part.")]
    for step in range(2 * (n - 1)):
        adds = step < n - 1
        sent = {rank: (rank - step) % n for rank in range(n)}
        values = {rank: parts[rank][k] for rank, k in sent.items()}
        for rank, k in sent.items():
            after = (rank + 1) % n
            parts[after][k] = values[rank] + (parts[after][k] if adds else 0)
        what = "which adds it to its own" if adds else "which puts it in the place of its own"
        text = f"Process 0 sends its part {sent[0]} to process 1, {what}. All others do the same with theirs."
        frames.append(Frame(f"Step {step + 1}", _ring_picture(parts, sums, sent), text))
    return frames


def _ring_picture(parts: Sequence[Sequence[int]], sums: Sequence[int], sent: Mapping[int, int]) -> str:
    """A column for each process, a row for each part; an arrow for each message, from the left edge for the last."""
    n = len(parts)
    right_edge = _LEFT + (n - 1) * _COLUMN + _WIDE
    drawn = [words(_LEFT + rank * _COLUMN + _WIDE / 2, 18, f"process {rank}") for rank in range(n)]
    for k in range(n):
        y = _TOP + k * _ROW
        drawn.append(words(4, y + 19, f"part {k}", anchor="start"))
        for rank in range(n):
            x = _LEFT + rank * _COLUMN
            came = sent.get((rank - 1) % n) == k
            role = "right" if parts[rank][k] == sums[k] else "token"
            fill = 0.3 if came or role == "right" else 0.06
            drawn.append(box(x, y, _WIDE, _TALL, role, fill, line=2.4 if came else 0.8))
            drawn.append(words(x + _WIDE / 2, y + 19, str(parts[rank][k])))
    for rank, k in sent.items():
        middle = _TOP + k * _ROW + _TALL / 2
        if rank < n - 1:
            drawn.append(arrow(_LEFT + rank * _COLUMN + _WIDE + 3, _LEFT + (rank + 1) * _COLUMN - 3, middle))
        else:  # out at the right, in at the left
            drawn.append(arrow(right_edge + 3, right_edge + 24, middle))
            drawn.append(arrow(_LEFT - 12, _LEFT - 3, middle))
    return svg(right_edge + 28, _TOP + n * _ROW - 8, drawn)


# --- A plan ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Network:
    """GPUs and what joins them: a calculation's assumptions.

    size: how many GPUs. bandwidth: bytes a second that a GPU can send to the next one in a ring. message: seconds
    that each message takes beside its bytes. rate: FLOP/s that a GPU reaches.
    """

    size: int
    bandwidth: float
    message: float
    rate: float

    def seconds(self, size: float) -> float:
        """How long a ring needs to add up so many bytes."""
        return 2 * (self.size - 1) * self.message + ring_bytes(self.size, 1) * size / self.bandwidth


@dataclass(frozen=True)
class Timeline:
    """A step, in seconds: when the forward and the backward pass end, when each bucket's sum begins and ends."""

    forward: float
    backward: float
    sums: list[tuple[float, float]]

    @property
    def end(self) -> float:
        """When the gradients are there and added up."""
        return max([self.backward, *(end for _, end in self.sums)])


def timeline(
    config: BertConfig, batch_size: int, length: int, network: Network, bucket: float, grad_bytes: int = 4
) -> Timeline:
    """When each sum of a step can begin and when it ends, if a bucket is added up as soon as it is full.

    batch_size: of all GPUs together. bucket: bytes. grad_bytes: of each entry of a gradient. The parameters are
    complete in the reverse of the model's order; the backward pass takes two thirds of the step's products, and each
    parameter its share of them. The optimizer's step is left out.
    """
    seconds = step_cost(config, batch_size, length).step_flops / network.rate / network.size
    if network.size == 1:
        return Timeline(seconds / 3, seconds, [])
    work = list(_backward_work(config, length))
    all_work = sum(flops for _, flops in work)
    now, free, waiting, sums = seconds / 3, 0.0, 0, []
    for number, (entries, flops) in enumerate(work):
        now += seconds * 2 / 3 * flops / all_work
        waiting += entries * grad_bytes
        if waiting >= bucket or number == len(work) - 1:
            begin = max(now, free)
            free = begin + network.seconds(waiting)
            sums.append((begin, free))
            waiting = 0
    return Timeline(seconds / 3, seconds, sums)


def _backward_work(config: BertConfig, length: int) -> Iterator[tuple[int, float]]:
    """The entries of each gradient and its share of the walk back, per token, in the order of the walk."""
    chosen = 0.15  # of the tokens: those that the head of hidden words computes
    shapes = parameter_shapes(config)
    shapes["cls.predictions.bias"] = shapes.pop("cls.predictions.bias")  # the last on the way forward
    for name, shape in reversed(shapes.items()):
        entries, flops = math.prod(shape), 0.0
        # the product with the token table, which is complete only at the end
        if name == "cls.predictions.bias":
            flops = chosen * config.vocab_size * config.hidden_size
        elif name == "cls.predictions.transform.dense.weight":
            flops = chosen * entries
        elif name.startswith("bert.encoder.") and len(shape) == 2:
            flops = float(entries)
            if name.endswith("value.weight"):
                flops += 2 * length * config.hidden_size  # the scores, and the mixtures of values
        yield entries, flops


def timeline_figure(timelines: Mapping[str, Timeline]) -> Picture:
    """The steps below one another: both passes above, the sums below."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        for row, (name, one) in enumerate(timelines.items()):
            y = -float(row)
            for begin, end, tone in ((0, one.forward, "token"), (one.forward, one.backward, "first")):
                axes.plot(
                    [1e3 * begin, 1e3 * end], [y, y], color=colours[tone], linewidth=7, solid_capstyle="butt"
                )
            for number, (begin, end) in enumerate(one.sums):
                axes.plot(
                    [1e3 * begin, 1e3 * end],
                    [y - 0.25, y - 0.25],
                    color=colours["second"],
                    alpha=(1, 0.55)[number % 2],
                    linewidth=7,
                    solid_capstyle="butt",
                )
            axes.text(1e3 * one.end + 0.2, y - 0.13, name, va="center", color=colours["ink"])
            if row == 0:
                axes.text(500 * one.forward, y + 0.12, "forward", ha="center", color=colours["ink"])
                axes.text(
                    500 * (one.forward + one.backward),
                    y + 0.12,
                    "backward",
                    ha="center",
                    color=colours["first"],
                )
                begin, end = one.sums[0][0], one.sums[-1][1]
                axes.text(500 * (begin + end), y - 0.46, "sums", ha="center", color=colours["second"])
        axes.set_yticks([])
        axes.set_xlabel("ms of a step")

    ends = " and ".join(f"{1e3 * one.end:.1f} with {name}" for name, one in timelines.items())
    return figure(
        plot,
        "The forward and the backward pass of a step, and below them the sums of the gradients, along an axis of "
        f"milliseconds. The steps end at {ends}",
    )
