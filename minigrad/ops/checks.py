"""What operations ask of their inputs, before any work is done.

Each function raises the error that the operation's docstring promises, and returns the plain arrays among the
inputs as arrays of the tensors' backend and dtype.
"""

from __future__ import annotations

import functools
import math
import numbers
import re
import string
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from minigrad import backend
from minigrad.ops.broadcasting import broadcast_shape
from minigrad.tensor import Array, Tensor

Axis = int | tuple[int, ...] | None
Operand = Tensor | float  # a tensor, or a Python number, which never changes the dtype
Op = TypeVar("Op", bound=Callable[..., Any])

# --- Of any operation ------------------------------------------------------------------------------------


def pair(op: str, a: Operand, b: Operand) -> tuple[Tensor, Tensor]:
    """The two operands as tensors that may be combined elementwise.

    A number becomes a tensor of the other's backend and dtype. Raises TypeError if neither is a tensor, one
    is an array, or backends or dtypes differ, ValueError if the shapes do not broadcast.
    """
    if not isinstance(a, Tensor):
        a, b = _constant(op, a, b), b
    elif not isinstance(b, Tensor):
        b = _constant(op, b, a)
    assert isinstance(a, Tensor)
    assert isinstance(b, Tensor)
    same_kind(op, a, b)
    try:
        broadcast_shape(a.shape, b.shape)
    except ValueError:
        raise ValueError(f"{op}: the shapes {a.shape} and {b.shape} do not broadcast") from None
    return a, b


def _constant(op: str, value: float, like: Operand) -> Tensor:
    """The Python number (or NumPy scalar) `value` as a tensor on the backend and of the dtype of `like`."""
    if not isinstance(like, Tensor):
        raise TypeError(f"{op}: expected a Tensor, got {type(like).__name__} and {type(value).__name__}")
    if backend.is_array(value) and value.ndim:
        raise TypeError(
            f"{op}: a Tensor and an array do not mix; wrap the array of shape {value.shape} in Tensor(…)"
        )
    of_numpy = hasattr(value, "dtype") and value.dtype.kind in "fiub"  # an array without axes, a NumPy scalar
    if not (isinstance(value, numbers.Real) or of_numpy):
        raise TypeError(f"{op}: expected a Tensor or a number, got {type(value).__name__}")
    return Tensor.wrap(backend.of(like.data).asarray(float(value), dtype=like.dtype))


def same_kind(op: str, *tensors: Tensor) -> None:
    """Raise TypeError unless all are tensors of one backend and one dtype."""
    for tensor in tensors:
        if backend.is_array(tensor):
            raise TypeError(
                f"{op}: expected a Tensor, got an array of shape {tensor.shape}: wrap it in Tensor(…)"
            )
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{op}: expected a Tensor, got {type(tensor).__name__}")
    first = tensors[0]
    for other in tensors[1:]:
        if type(other.data) is not type(first.data):
            raise TypeError(
                f"{op}: one tensor is on {first.backend}, another on {other.backend}; "
                f"move one with .to({first.backend!r})"
            )
        if other.dtype != first.dtype:
            raise TypeError(
                f"{op}: the dtypes {first.dtype} and {other.dtype} do not mix; "
                f"convert one with .astype({first.dtype.name!r})"
            )


def axes(op: str, x: Tensor, axis: Axis) -> tuple[int, ...]:
    """`axis` as a sorted tuple of non-negative axes of `x`; all of them for None."""
    if axis is None:
        return tuple(range(x.ndim))
    given = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    for one in given:
        if not -x.ndim <= one < x.ndim:
            raise ValueError(f"{op}: there is no axis {one} in shape {x.shape}")
    normal = tuple(sorted(one % x.ndim for one in given))
    if len(set(normal)) < len(normal):
        raise ValueError(f"{op}: an axis is named twice in {given} for shape {x.shape}")
    return normal


def count(op: str, x: Tensor, axes: tuple[int, ...]) -> int:
    """How many entries a reduction over `axes` combines; raises ValueError if there are none."""
    entries = math.prod(x.shape[i] for i in axes)
    if not entries:
        raise ValueError(f"{op}: there is nothing along axes {axes} of shape {x.shape}")
    return entries


def float16_in_float32(op: Op) -> Op:
    """An operation that goes through float32 for float16, whose range its squares and sums exceed."""

    @functools.wraps(op)
    def wide(x: Tensor, *arguments: object, **settings: object) -> Any:
        if x.dtype != "float16":
            return op(x, *arguments, **settings)
        rest = [a.astype("float32") if isinstance(a, Tensor) else a for a in arguments]
        named = {name: a.astype("float32") if isinstance(a, Tensor) else a for name, a in settings.items()}
        y = op(x.astype("float32"), *rest, **named)
        return tuple(part.astype("float16") for part in y) if isinstance(y, tuple) else y.astype("float16")

    return cast(Op, wide)


# --- Of one operation, composed and fused ----------------------------------------------------------------


def one_axis(op: str, x: Tensor, axis: int) -> None:
    """`axis` must be one axis of x, and not an empty one."""
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"{op}: there is no axis {axis} in shape {x.shape}")
    if not x.shape[axis]:
        raise ValueError(f"{op}: there is nothing along axis {axis} of shape {x.shape}")


def einsum(equation: str, *shapes: tuple[int, ...]) -> tuple[str, str, str]:
    """The letters of each operand's axes and of the output's; the axes of "..." are digits."""
    found = re.fullmatch(r"([^,]*),([^,]*?)(?:->([^,]*))?", str(equation).replace(" ", ""))
    if not found or not all(
        re.fullmatch(r"[a-zA-Z]*(\.\.\.)?[a-zA-Z]*", part or "") for part in found.groups()
    ):
        raise ValueError(f'einsum: expected two operands, as in "ij,jk->ik", got {equation!r}')
    *inputs, output = found.groups()
    digits = [len(shape) - len(part.replace("...", "")) for part, shape in zip(inputs, shapes, strict=True)]
    most = max(digits)
    letters = [
        part.replace("...", string.digits[most - n : most])
        for part, n in zip(inputs, digits, strict=True)
        if n >= 0
    ]
    if output is None:
        both = "".join(inputs).replace("...", "")
        output = "..." + "".join(sorted(letter for letter in set(both) if both.count(letter) == 1))
    letters.append(output.replace("...", string.digits[:most]))
    fits = len(letters) == 3 and [len(part) for part in letters[:2]] == [len(shape) for shape in shapes]
    if not fits:
        raise ValueError(
            f"einsum: {equation!r} does not name each axis of the shapes {shapes[0]} and {shapes[1]}"
        )
    for part in letters:
        if len(set(part)) < len(part):
            raise ValueError(f"einsum: {equation!r} names an axis twice in one place, which is not handled")
    if not set(letters[2]) <= set(letters[0] + letters[1]):
        raise ValueError(f"einsum: the output of {equation!r} has an axis that no operand has")
    sizes = [dict(zip(part, shape, strict=True)) for part, shape in zip(letters[:2], shapes, strict=True)]
    for letter in set(sizes[0]) & set(sizes[1]):
        if sizes[0][letter] != sizes[1][letter] and 1 not in (sizes[0][letter], sizes[1][letter]):
            raise ValueError(f"einsum: {equation!r} does not fit the shapes {shapes[0]} and {shapes[1]}")
    return letters[0], letters[1], letters[2]


def gelu(approximate: str) -> None:
    """`approximate` must be one of the two forms."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f'gelu: approximate must be "none" or "tanh", got {approximate!r}')


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> None:
    """weight and bias must have the length of the last axis of x, and eps must not be negative."""
    same_kind("layer_norm", x, weight, bias)
    one_axis("layer_norm", x, -1)
    if weight.shape != x.shape[-1:] or bias.shape != x.shape[-1:]:
        raise ValueError(
            f"layer_norm: x of shape {x.shape} needs weight and bias of shape {x.shape[-1:]}, "
            f"got {weight.shape} and {bias.shape}"
        )
    if not (isinstance(eps, numbers.Real) and eps >= 0):
        raise ValueError(
            f"layer_norm: eps is added to a variance, so it must be a number of at least 0, got {eps!r}"
        )


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """x (…, d_in), weight (d_in, d_out), bias (d_out,)."""
    same_kind("linear", x, weight, *([] if bias is None else [bias]))
    if weight.ndim != 2 or not x.ndim or x.shape[-1] != weight.shape[0]:
        raise ValueError(f"linear: x of shape {x.shape} and weight of shape {weight.shape} do not fit")
    if bias is not None and bias.shape != weight.shape[1:]:
        raise ValueError(
            f"linear: weight of shape {weight.shape} needs bias {weight.shape[1:]}, got {bias.shape}"
        )


def dropout(op: str, shape: tuple[int, ...], x: Tensor, keep: Array, p: float) -> Array:
    """`keep` must have `shape`, and p must be in [0, 1)."""
    if not 0 <= p < 1:
        raise ValueError(f"{op}: p must be at least 0 and below 1, got {p}")
    keep = backend.of(x.data).asarray(keep)
    if keep.shape != shape or keep.dtype != bool:
        raise ValueError(
            f"{op}: keep must be a boolean array of shape {shape}, got {keep.dtype} of shape {keep.shape}"
        )
    return keep


def cross_entropy(
    logits: Tensor, labels: Array, weight: Array | None, ignore_index: int, label_smoothing: float
) -> tuple[Array, Array, Array, Array | None]:
    """Which rows of the logits count (n,), their classes (n,), the weight of each one's -log p in the mean
    (n,), and the weights of all classes' -log p in each row (C,), or None without label smoothing."""
    if not (isinstance(label_smoothing, numbers.Real) and 0 <= label_smoothing <= 1):
        raise ValueError(f"cross_entropy: label_smoothing must be within 0 … 1, got {label_smoothing!r}")
    kernels = backend.of(logits.data)
    xp = kernels.xp
    if not logits.ndim or not logits.shape[-1]:
        raise ValueError(f"cross_entropy: logits need an axis of classes, got shape {logits.shape}")
    labels = labels if backend.is_array(labels) else backend.get("numpy").asarray(labels)
    if labels.dtype.kind not in "iu":
        raise TypeError(f"cross_entropy: labels must be integers, got dtype {labels.dtype}")
    if labels.shape != logits.shape[:-1]:
        raise ValueError(
            f"cross_entropy: logits of shape {logits.shape} need labels of shape {logits.shape[:-1]}, "
            f"got {labels.shape}"
        )
    labels = labels.reshape(-1)  # where they are: labels on the host are sorted out without asking the GPU
    if not backend.on_host(labels) and weight is None and not label_smoothing:
        return _unread_labels(logits, labels, ignore_index)
    rows = backend.of(labels).xp.flatnonzero(labels != ignore_index)
    classes = kernels.row_ids(labels[rows], logits.shape[-1])
    rows = kernels.asarray(rows)
    if not rows.size:
        raise ValueError(f"cross_entropy: no label counts, all {labels.size} are ignore_index={ignore_index}")
    kept, even = 1 - label_smoothing, label_smoothing / logits.shape[-1]
    if weight is None:
        share = xp.full(rows.shape, kept / rows.size, logits.dtype)
        return (
            rows,
            classes,
            share,
            xp.full(logits.shape[-1:], even / rows.size, logits.dtype) if even else None,
        )
    weight = kernels.asarray(weight, dtype=logits.dtype)
    if weight.shape != logits.shape[-1:]:
        raise ValueError(
            f"cross_entropy: {logits.shape[-1]} classes need a weight of shape {logits.shape[-1:]}, "
            f"got {weight.shape}"
        )
    share = weight[classes]
    total = share.sum()
    return rows, classes, kept * share / total, even * weight / total if even else None


def _unread_labels(logits: Tensor, labels: Array, ignore_index: int) -> tuple[Array, Array, Array, None]:
    """The same for labels on a GPU, at which nobody looks: every row has a part, and one that does not count, none."""
    xp = backend.of(labels).xp
    counts = labels != ignore_index
    share = (counts / counts.sum()).astype(logits.dtype)  # NaN if none counts
    return xp.arange(len(labels)), xp.where(counts, labels, 0), share, None


def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Array | None, keep: Array | None, p: float
) -> tuple[Array | None, Array | None]:
    """q (…, n, d_k), k (…, m, d_k), v (…, m, d_v), mask to (…, n, m), keep (…, n, m)."""
    same_kind("attention", q, k, v)
    kernels = backend.of(q.data)
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"attention: expected q (…, n, d_k), k (…, m, d_k), v (…, m, d_v), "
            f"got {q.shape}, {k.shape}, {v.shape}"
        )
    if not k.shape[-2] or not q.shape[-1]:
        raise ValueError(f"attention: there is nothing to attend to in k of shape {k.shape}")
    try:
        leading = broadcast_shape(q.shape[:-2], k.shape[:-2])
        broadcast_shape(leading, v.shape[:-2])
    except ValueError:
        raise ValueError(
            f"attention: the leading axes of {q.shape}, {k.shape} and {v.shape} do not broadcast"
        ) from None
    shape = (*leading, q.shape[-2], k.shape[-2])
    if mask is not None:
        given = kernels.asarray(mask)
        if given.dtype.kind != "f":
            raise TypeError(
                f"attention: the mask is added to the scores, so it must be of floats, 0 where a token may look and "
                f"a large negative number where not; got {given.dtype}. Of booleans, say "
                f"np.where(may_look, 0, np.finfo(np.float32).min)"
            )
        mask = given.astype(q.dtype, copy=False)
        try:
            fits = broadcast_shape(mask.shape, shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(
                f"attention: the mask has shape {mask.shape}, which does not broadcast to {shape}"
            )
    if keep is not None:
        keep = dropout("attention", shape, q, keep, p)
    return mask, keep


def recurrent_step(
    op: str, gates: int, x_part: Tensor, state: tuple[Tensor, ...], weight_hh: Tensor, bias_hh: Tensor
) -> None:
    """x_part (n, gates · d), each part of the state (n, d), weight_hh (d, gates · d), bias_hh (gates · d,)."""
    _recurrent_shapes(op, gates, x_part, state, weight_hh, bias_hh, leading="", axes=2)


def recurrent(
    op: str,
    gates: int,
    x_part: Tensor,
    state: tuple[Tensor, ...],
    weight_hh: Tensor,
    bias_hh: Tensor,
    live: Array | None,
) -> Sequence[Array | None]:
    """As `recurrent_step`, with x_part (L, n, gates · d) of at least one step, and live (L, n) or None.

    It returns an entry for each step: which rows are live (n,), or None where all of them are.
    """
    _recurrent_shapes(op, gates, x_part, state, weight_hh, bias_hh, leading="L, ", axes=3)
    if not len(x_part):
        raise ValueError(f"{op}: there are no steps in x_part of shape {x_part.shape}")
    if live is None:
        return [None] * len(x_part)
    live = backend.of(x_part.data).asarray(live)
    if live.shape != x_part.shape[:2] or live.dtype != bool:
        raise ValueError(
            f"{op}: live must be a boolean array of shape {x_part.shape[:2]}, got {live.dtype} of shape {live.shape}"
        )
    return live


def _recurrent_shapes(
    op: str,
    gates: int,
    x_part: Tensor,
    state: tuple[Tensor, ...],
    weight_hh: Tensor,
    bias_hh: Tensor,
    leading: str,
    axes: int,
) -> None:
    same_kind(op, x_part, *state, weight_hh, bias_hh)
    n, d = state[0].shape if state[0].ndim == 2 else (0, 0)
    fits = (
        x_part.ndim == axes
        and x_part.shape[-2:] == (n, gates * d)
        and all(part.shape == (n, d) for part in state)
        and weight_hh.shape == (d, gates * d)
        and bias_hh.shape == (gates * d,)
    )
    if not fits or not d:
        width = "d" if gates == 1 else f"{gates} d"
        states = "h (n, d)" if len(state) == 1 else "h (n, d), c (n, d)"
        came = ", ".join(str(tensor.shape) for tensor in (x_part, *state, weight_hh, bias_hh))
        raise ValueError(
            f"{op}: expected x_part ({leading}n, {width}), {states}, weight_hh (d, {width}), bias_hh ({width},), "
            f"got {came}"
        )


def is_integer(part: object) -> bool:
    """Whether it is an integer and not a boolean."""
    return isinstance(part, numbers.Integral) and not isinstance(part, bool)
