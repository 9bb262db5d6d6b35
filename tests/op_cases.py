"""One table of calls of every operation: what the gradient, PyTorch, ownership and dtype tests all run over.

A new operation goes in here; `test_every_operation_has_a_case` fails until it does.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from minigrad import Tensor, ops


@dataclass(frozen=True)
class Case:
    """A call of an operation on inputs of some shapes, and the same in PyTorch.

    op: its name in `minigrad.ops`.
    call: takes the operation and the input tensors.
    torch: takes the module `torch` and the same inputs as torch tensors.
    domain: "real" for normal draws; "positive"; "apart" for entries that are distinct and away from 0, so
        that no kink and no tie is within a step; "wide" for large and small entries of both signs.
    """

    op: str
    call: Callable[..., Tensor]
    torch: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    domain: str = "real"

    def __str__(self) -> str:
        return f"{self.op}-{'-'.join('x'.join(map(str, shape)) or 'scalar' for shape in self.shapes)}"

    def arrays(self, dtype: str = "float64") -> list[np.ndarray]:
        """The inputs, the same at every call."""
        rng = np.random.default_rng(zlib.crc32(str(self).encode()))
        return [draw(rng, shape, self.domain).astype(dtype) for shape in self.shapes]

    def inputs(self, dtype: str = "float64") -> list[Tensor]:
        """The inputs as leaves on the default backend."""
        return [Tensor(array, requires_grad=True) for array in self.arrays(dtype)]

    def run(self, *inputs: Tensor, module: Any = ops) -> Tensor:
        """The operation, as `module` has it, on `inputs`."""
        return self.call(getattr(module, self.op), *inputs)


def draw(rng: np.random.Generator, shape: tuple[int, ...], domain: str) -> np.ndarray:
    """Float64 entries of a kind that the domain names."""
    normal = rng.standard_normal(shape)
    if domain == "positive":
        return np.exp(0.5 * normal) + 0.1
    if domain == "apart":
        count = normal.size
        return (rng.permutation(count).reshape(shape) - (count - 1) / 2 + 0.25) / max(1, count / 4)
    if domain == "wide":
        return 3 * normal
    return normal


def weighted(parts: list[Tensor]) -> Tensor:
    """Several outputs as one, so that each part's gradient counts differently."""
    return ops.concat([part * (i + 1.0) for i, part in enumerate(parts)])


IDS = np.array([[3, 0, 3], [6, 3, 1]])
MASK = np.array([[True, False, False, True, False], [False, False, True, False, False], [True] * 5])
KEEP = np.random.default_rng(1).random((2, 3, 5)) > 0.25
KEEP_WEIGHTS = np.random.default_rng(2).random((2, 3, 5, 7)) > 0.25
SCORE_MASK = np.where(np.random.default_rng(3).random((2, 1, 1, 7)) > 0.3, 0.0, -1e4)
LABELS = np.array([[1, -100, 4], [0, 4, -100]])
ALL_LABELS = np.array([1, 3, 4, 0])
LIVE = np.array([1, 4, 2, 3, 4]) > np.arange(4)[:, None]  # rows of these lengths: (4, 5)
CLASS_WEIGHT = np.array([0.5, 2.0, 1.0, 0.25, 3.0])


def attention_torch(t: Any, q: Any, k: Any, v: Any, mask: Any = None, keep: Any = None, p: float = 0) -> Any:
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores + t.tensor(mask, dtype=q.dtype)
    weights = t.softmax(scores, -1)
    if keep is not None:
        weights = weights * t.tensor(keep) / (1 - p)
    return weights @ v


def cross_entropy_torch(
    t: Any, logits: Any, labels: np.ndarray, weight: Any = None, ignore: int = -100, smoothing: float = 0.0
) -> Any:
    weight = None if weight is None else t.tensor(weight, dtype=logits.dtype)
    return t.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]),
        t.tensor(labels).reshape(-1),
        weight=weight,
        ignore_index=ignore,
        label_smoothing=smoothing,
    )


def recurrent_torch(cell: str, live: np.ndarray | None = None) -> Callable[..., Any]:
    """PyTorch's own cell, step by step where there are several: it gets x_part by a product with the identity."""

    def call(t: Any, x_part: Any, *rest: Any) -> Any:
        *state, weight_hh, bias_hh = rest
        width = x_part.shape[-1]
        weights = (t.eye(width, dtype=x_part.dtype), weight_hh.T, t.zeros(width, dtype=x_part.dtype), bias_hh)

        def step(x: Any, state: list[Any]) -> list[Any]:
            new = getattr(t._VF, cell)(x, state if len(state) > 1 else state[0], *weights)
            return list(new) if len(state) > 1 else [new]

        if x_part.ndim == 2:
            return t.cat([part * (i + 1) for i, part in enumerate(step(x_part, state))])
        after = []
        for i, x in enumerate(x_part):
            new = step(x, state)
            if live is not None:
                new = [t.where(t.tensor(live[i])[:, None], *pair) for pair in zip(new, state, strict=True)]
            state = new
            after.append(state)
        return t.cat([t.stack(parts) * (i + 1) for i, parts in enumerate(zip(*after, strict=True))])

    return call


def recurrent(op: str, cell: str, parts: int, gates: int) -> list[Case]:
    """One step, and several: of all rows, of rows that end early, of one row, of a state of one number."""

    def call(f: Callable[..., Any], *x: Tensor, **settings: Any) -> Tensor:
        y = f(*x, **settings)
        return weighted(list(y)) if parts > 1 else y

    def shapes(*leading: int, d: int) -> tuple[tuple[int, ...], ...]:
        n = leading[-1]
        return ((*leading, gates * d), *[(n, d)] * parts, (d, gates * d), (gates * d,))

    return [
        Case(f"{op}_step", call, recurrent_torch(cell), shapes(5, d=3)),
        Case(f"{op}_step", call, recurrent_torch(cell), shapes(1, d=1)),
        Case(op, call, recurrent_torch(cell), shapes(3, 2, d=5)),
        Case(op, call, recurrent_torch(cell), shapes(1, 3, d=2)),
        Case(op, partial(call, live=LIVE), recurrent_torch(cell, LIVE), shapes(4, 5, d=2)),
    ]


def same(*shapes: tuple[int, ...], op: str, torch: str = "", domain: str = "real", **kwargs: Any) -> Case:
    """A case whose call and PyTorch function take the tensors and the same keywords."""
    return Case(
        op, lambda f, *x: f(*x, **kwargs), lambda t, *x: getattr(t, torch or op)(*x, **kwargs), shapes, domain
    )


BASIC = [
    # Elementwise, two operands; broadcasting at large is in test_broadcasting.py
    *[
        Case(op, lambda f, a, b: f(a, b), function, shapes, domain)
        for op, function, domain in (
            ("add", lambda t, a, b: a + b, "real"),
            ("sub", lambda t, a, b: a - b, "real"),
            ("mul", lambda t, a, b: a * b, "real"),
            ("div", lambda t, a, b: a / b, "positive"),
            ("pow", lambda t, a, b: a**b, "positive"),
            ("maximum", lambda t, a, b: t.maximum(a, b), "real"),
        )
        for shapes in (((3, 5), (3, 5)), ((3, 1, 5), (7, 1)), ((), (3,)), ((), ()), ((1,), (2, 3)))
    ],
    Case("add", lambda f, x: f(2.5, x), lambda t, x: 2.5 + x, ((7,),)),
    Case("sub", lambda f, x: f(2.5, x), lambda t, x: 2.5 - x, ((7,),)),
    Case("mul", lambda f, x: f(x, -3), lambda t, x: x * -3, ((7,),)),
    Case("div", lambda f, x: f(2.5, x), lambda t, x: 2.5 / x, ((7,),), "positive"),
    Case("pow", lambda f, x: f(x, 3), lambda t, x: x**3, ((3, 5),)),
    Case("pow", lambda f, x: f(2.0, x), lambda t, x: 2.0**x, ((5,),)),
    Case("maximum", lambda f, x: f(x, 0.1), lambda t, x: x.clamp(min=0.1), ((3, 7),)),
    Case(
        "where",
        lambda f, a, b: f(MASK, a, b),
        lambda t, a, b: t.where(t.tensor(MASK), a, b),
        ((3, 5), (3, 5)),
    ),
    Case(
        "where",
        lambda f, a, b: f(MASK, a, b),
        lambda t, a, b: t.where(t.tensor(MASK), a, b),
        ((3, 1), (2, 1, 5)),
    ),
    Case("where", lambda f, a: f(MASK, 2.0, a), lambda t, a: t.where(t.tensor(MASK), 2.0, a), ((5,),)),
    Case(
        "masked_fill",
        lambda f, x: f(x, MASK, -9.0),
        lambda t, x: x.masked_fill(t.tensor(MASK), -9.0),
        ((2, 3, 5),),
    ),
    # Elementwise, one operand
    *[same(shape, op="neg") for shape in ((3, 5), ())],
    *[same(shape, op="abs", domain="apart") for shape in ((3, 5), ())],
    *[same(shape, op="exp") for shape in ((3, 5), ())],
    *[same(shape, op="log", domain="positive") for shape in ((3, 5), ())],
    *[same(shape, op="sqrt", domain="positive") for shape in ((3, 5), ())],
    *[same(shape, op="tanh") for shape in ((3, 5), ())],
    *[same(shape, op="erf") for shape in ((3, 5), ())],
    *[same(shape, op="sin", domain="wide") for shape in ((3, 5), ())],
    *[same(shape, op="cos", domain="wide") for shape in ((3, 5), ())],
    *[
        Case(
            "clip",
            lambda f, x, low=low, high=high: f(x, low, high),
            lambda t, x, low=low, high=high: x.clip(low, high),
            (shape,),
            "apart",
        )
        for shape, low, high in (
            ((3, 5), -0.9, 0.65),
            ((7,), None, 0.3),
            ((5, 2), -0.2, None),
            ((), 1.0, 2.0),
        )
    ],
    *[same(shape, op="sigmoid", domain="wide") for shape in ((3, 5), ())],
    *[same(shape, op="relu", domain="apart") for shape in ((3, 5), ())],
    Case("astype", lambda f, x: f(x, x.dtype) * 2.0, lambda t, x: x * 2, ((3, 5),)),
    # Reductions
    *[
        Case(
            op,
            lambda f, x, axis=axis, keep=keep: f(x, axis=axis, keepdims=keep),
            lambda t, x, op=op, axis=axis, keep=keep: reduced(t, op, x, axis, keep),
            (shape,),
            "apart" if op in ("max", "min") else "real",
        )
        for op in ("sum", "mean", "max", "min", "prod", "var", "std", "logsumexp")
        for shape, axis, keep in (
            ((3, 5), None, False),
            ((5, 3), None, True),
            ((3, 5, 2), 1, False),
            ((2, 5, 3), -1, True),
            ((3, 2, 5), (0, -1), False),
            ((5, 2, 3), (2, 0), True),
            ((7,), 0, False),
        )
    ],
    *[same((), op=op) for op in ("sum", "mean")],
    Case("max", lambda f, x: f(x), lambda t, x: x.amax(), ((),)),
    Case("logsumexp", lambda f, x: f(x), lambda t, x: t.logsumexp(x, ()), ((),)),
    Case("var", lambda f, x: f(x, axis=-1, correction=0), lambda t, x: x.var(-1, correction=0), ((3, 7),)),
    Case("std", lambda f, x: f(x, axis=0, correction=0), lambda t, x: x.std(0, correction=0), ((7, 3),)),
    Case(  # with zeros: one in a column, several, none
        "prod",
        lambda f, x: f(ops.masked_fill(x, MASK, 0.0), 1),
        lambda t, x: x.masked_fill(t.tensor(MASK), 0.0).prod(1),
        ((3, 5),),
    ),
    *[
        Case("cumsum", lambda f, x, axis=axis: f(x, axis), lambda t, x, axis=axis: x.cumsum(axis), (shape,))
        for shape, axis in (((7,), 0), ((3, 5, 2), 1), ((2, 5), -1), ((3, 1), 0))
    ],
    *[
        Case(op, lambda f, x: x[f(x)], lambda t, x, op=op: x[getattr(x, op)()], ((7,),), "apart")
        for op in ("argmax", "argmin")
    ],
    *[
        Case(
            op,
            lambda f, x: x[f(x, 0), np.arange(5)] * 2.0,
            lambda t, x, op=op: x[getattr(x, op)(0), t.arange(5)] * 2,
            ((3, 5),),
            "apart",
        )
        for op in ("argmax", "argmin")
    ],
    # Products
    *[
        Case(
            "einsum",
            lambda f, a, b, equation=equation: f(equation, a, b),
            lambda t, a, b, equation=equation: t.einsum(equation, a, b),
            shapes,
        )
        for equation, *shapes in (
            ("ij,jk->ik", (3, 5), (5, 7)),
            ("ij,jk", (3, 5), (5, 7)),
            ("bhid,bhjd->bhij", (2, 3, 5, 2), (2, 3, 4, 2)),
            ("bij,bjhd->bhid", (2, 3, 5), (2, 5, 4, 3)),
            ("i,j->ji", (3,), (5,)),
            ("ij,ij->", (3, 5), (3, 5)),
            ("ij,ij->ij", (3, 5), (3, 5)),
            ("ijk,k->j", (3, 5, 2), (2,)),  # i is summed in one operand alone
            ("ij,kl->il", (3, 5), (2, 7)),
            ("...ij,...jk->...ik", (4, 3, 5), (2, 1, 5, 7)),
            ("...d, d", (3, 5, 2), (2,)),
            ("ij,jk->ik", (3, 1), (5, 7)),  # an axis of length 1 broadcasts
            (",i->i", (), (5,)),
        )
    ],
    *[
        Case("matmul", lambda f, a, b: f(a, b), lambda t, a, b: a @ b, shapes)
        for shapes in (
            ((3, 5), (5, 7)),
            ((2, 3, 5), (2, 5, 7)),
            ((2, 1, 3, 5), (4, 5, 7)),
            ((2, 3, 5), (5, 7)),
            ((3, 5), (2, 5, 7)),
            ((5,), (5,)),
            ((5,), (5, 7)),
            ((3, 5), (5,)),
            ((5,), (2, 5, 7)),
            ((2, 3, 5), (5,)),
            ((1, 1), (1, 1)),
        )
    ],
    # Shapes
    Case("reshape", lambda f, x: f(x, 5, -1), lambda t, x: x.reshape(5, -1), ((3, 5),)),
    Case("reshape", lambda f, x: f(x, ()), lambda t, x: x.reshape(()), ((1, 1),)),
    Case("permute", lambda f, x: f(x, 2, 0, -2), lambda t, x: x.permute(2, 0, 1), ((3, 5, 2),)),
    Case("transpose", lambda f, x: f(x), lambda t, x: x.transpose(-1, -2), ((3, 5, 2),)),
    Case("transpose", lambda f, x: f(x, 0, -1), lambda t, x: x.transpose(0, -1), ((5, 3, 2),)),
    Case("swapaxes", lambda f, x: f(x, 0, -1), lambda t, x: x.swapaxes(0, -1), ((5, 3, 2),)),
    *[
        Case(op, lambda f, x, k=k: f(x, k), lambda t, x, op=op, k=k: getattr(x, op)(k), (shape,))
        for op in ("tril", "triu")
        for shape, k in (((3, 5), 0), ((2, 5, 3), 1), ((4, 4), -2), ((1, 2), 7))
    ],
    Case("expand", lambda f, x: f(x, 2, -1, 5), lambda t, x: x.expand(2, -1, 5), ((3, 1),)),
    Case("squeeze", lambda f, x: f(x), lambda t, x: x.squeeze(), ((1, 3, 1),)),
    Case("squeeze", lambda f, x: f(x, -1), lambda t, x: x.squeeze(-1), ((1, 5, 1),)),
    Case("unsqueeze", lambda f, x: f(x, -2), lambda t, x: x.unsqueeze(-2), ((3, 5),)),
    Case("unsqueeze", lambda f, x: f(x, 0), lambda t, x: x.unsqueeze(0), ((),)),
    Case("concat", lambda f, *x: f(x, axis=-2), lambda t, *x: t.cat(x, -2), ((3, 5), (1, 5), (2, 5))),
    Case("concat", lambda f, x: f([x, x]), lambda t, x: t.cat([x, x]), ((3,),)),
    Case("concatenate", lambda f, *x: f(x, 1), lambda t, *x: t.cat(x, 1), ((3, 2), (3, 5))),
    Case("stack", lambda f, *x: f(x, axis=1), lambda t, *x: t.stack(x, 1), ((3, 5), (3, 5))),
    Case("stack", lambda f, *x: f(x), lambda t, *x: t.stack(x), ((), ())),
    Case(
        "split",
        lambda f, x: weighted(f(x, 3)),
        lambda t, x: t.cat([part * (i + 1) for i, part in enumerate(x.split(3))]),
        ((7, 2),),
    ),
    Case(
        "split",
        lambda f, x: weighted([part.T for part in f(x, [4, 0, 1], axis=-1)]),
        lambda t, x: t.cat([part.T * (i + 1) for i, part in enumerate(x.split([4, 0, 1], -1))]),
        ((3, 5),),
    ),
    Case(
        "pad",
        lambda f, x: f(x, [(1, 0), (2, 3)], 7.0),
        lambda t, x: t.nn.functional.pad(x, (2, 3, 1, 0), value=7.0),
        ((3, 5),),
    ),
    Case("flip", lambda f, x: f(x), lambda t, x: x.flip((0, 1)), ((3, 5),)),
    Case("flip", lambda f, x: f(x, -1), lambda t, x: x.flip(-1), ((2, 5),)),
    # Indexing
    *[
        Case(
            "getitem",
            lambda f, x, index=index: f(x, index),
            lambda t, x, index=index: x[index if isinstance(index, tuple) else (index,)],
            (shape,),
        )
        for shape, index in (
            ((5,), 2),
            ((3, 5), -1),
            ((3, 5), (slice(None), slice(1, 5, 2))),
            ((5, 3), (..., None, 1)),
            ((2, 3, 5), (1, slice(None), 4)),
            ((7, 2), np.array([0, 3, 3, 6, -1, -4])),  # 3 three times
            ((7, 3), np.array([[1, 2], [2, 1]])),
            ((5, 7), (np.array([0, 0, 4]), np.array([1, 1, 6]))),
            ((4, 2, 3), (slice(None), np.array([1, 1]), np.array([0, 0]))),
            ((4, 5, 3), (np.array([1, 1]), slice(None), np.array([0, 0]))),
            ((3, 4), np.array([True, False, True])),
            ((3, 2), np.array([[True, False], [False, False], [True, True]])),
            ((3, 3), (np.array([True, False, True]), np.array([1, 1]))),
            ((6,), np.array([], dtype=np.int64)),
        )
    ],
    Case("getitem", lambda f, x: f(x, [2, 2, 0]), lambda t, x: x[[2, 2, 0]], ((3, 6),)),
    Case(
        "embedding",
        lambda f, w: f(IDS, w),
        lambda t, w: t.nn.functional.embedding(t.tensor(IDS), w),
        ((7, 5),),
    ),
    Case("embedding", lambda f, w: f(3, w), lambda t, w: w[3], ((5, 2),)),
]

FUSED = [
    *[
        Case(
            op,
            lambda f, x, a=axis: f(x, axis=a),
            lambda t, x, op=op, a=axis: getattr(t, op)(x, a),
            (shape,),
            "wide",
        )
        for op in ("softmax", "log_softmax")
        for shape, axis in (
            ((3, 5), -1),
            ((5, 3), 0),
            ((2, 5, 3), 1),
            ((7,), 0),
            ((3, 1), -1),
            ((2, 7, 1), -2),
        )
    ],
    *[
        Case(
            "gelu",
            lambda f, x, form=form: f(x, form),
            lambda t, x, form=form: t.nn.functional.gelu(x, approximate=form),
            (shape,),
            "wide",
        )
        for form, shape in (("none", (3, 5)), ("tanh", (5, 3)), ("none", ()), ("tanh", (1,)))
    ],
    *[
        Case(
            "layer_norm",
            lambda f, x, w, b: f(x, w, b),
            lambda t, x, w, b: t.nn.functional.layer_norm(x, (x.shape[-1],), w, b, 1e-12),
            shapes,
        )
        for shapes in (((3, 5), (5,), (5,)), ((2, 3, 7), (7,), (7,)), ((11,), (11,), (11,)))
    ],
    Case(
        "layer_norm",
        lambda f, x, w, b: f(x, w, b, 0.5),
        lambda t, x, w, b: t.nn.functional.layer_norm(x, (3,), w, b, 0.5),
        ((5, 3), (3,), (3,)),
    ),
    Case("dropout", lambda f, x: f(x, KEEP, 0.25), lambda t, x: x * t.tensor(KEEP) / 0.75, ((2, 3, 5),)),
    Case("linear", lambda f, x, w, b: f(x, w, b), lambda t, x, w, b: x @ w + b, ((3, 5), (5, 7), (7,))),
    Case("linear", lambda f, x, w, b: f(x, w, b), lambda t, x, w, b: x @ w + b, ((2, 3, 5), (5, 1), (1,))),
    Case("linear", lambda f, x, w: f(x, w), lambda t, x, w: x @ w, ((2, 3, 5), (5, 7))),
    Case("linear", lambda f, x, w, b: f(x, w, b), lambda t, x, w, b: x @ w + b, ((5,), (5, 3), (3,))),
    Case(
        "cross_entropy",
        lambda f, x: f(x, LABELS),
        lambda t, x: cross_entropy_torch(t, x, LABELS),
        ((2, 3, 5),),
    ),
    Case(
        "cross_entropy",
        lambda f, x: f(x, ALL_LABELS),
        lambda t, x: cross_entropy_torch(t, x, ALL_LABELS),
        ((4, 5),),
    ),
    Case(
        "cross_entropy",
        lambda f, x: f(x, ALL_LABELS, weight=CLASS_WEIGHT, ignore_index=3),
        lambda t, x: cross_entropy_torch(t, x, ALL_LABELS, CLASS_WEIGHT, 3),
        ((4, 5),),
        "wide",
    ),
    Case("cross_entropy", lambda f, x: f(x, 2), lambda t, x: cross_entropy_torch(t, x, np.array(2)), ((5,),)),
    *[
        Case(
            "cross_entropy",
            lambda f, x, weight=weight, smoothing=smoothing: f(
                x, LABELS, weight=weight, label_smoothing=smoothing
            ),
            lambda t, x, weight=weight, smoothing=smoothing: cross_entropy_torch(
                t, x, LABELS, weight, smoothing=smoothing
            ),
            ((2, 3, 5),),
            "wide",
        )
        for weight in (None, CLASS_WEIGHT)
        for smoothing in (0.1, 1.0)
    ],
    Case(
        "cross_entropy",
        lambda f, x: f(x, ALL_LABELS, label_smoothing=0.3),
        lambda t, x: cross_entropy_torch(t, x, ALL_LABELS, smoothing=0.3),
        ((4, 5),),
    ),
    *recurrent("rnn", "rnn_tanh_cell", parts=1, gates=1),
    *recurrent("gru", "gru_cell", parts=1, gates=3),
    *recurrent("lstm", "lstm_cell", parts=2, gates=4),
    Case(
        "scaled_dot_product_attention",
        lambda f, q, k, v: f(q, k, v),
        attention_torch,
        ((3, 5), (7, 5), (7, 2)),
    ),
    Case(
        "scaled_dot_product_attention",
        lambda f, q, k, v: f(q, k, v, SCORE_MASK, KEEP_WEIGHTS, 0.25),
        lambda t, q, k, v: attention_torch(t, q, k, v, SCORE_MASK, KEEP_WEIGHTS, 0.25),
        ((2, 3, 5, 3), (2, 3, 7, 3), (2, 3, 7, 5)),
    ),
    Case(
        "scaled_dot_product_attention",
        lambda f, q, k, v: f(q, k, v),
        attention_torch,
        ((2, 1, 5, 3), (3, 7, 3), (7, 2)),
    ),
    Case(  # v alone has a batch
        "scaled_dot_product_attention",
        lambda f, q, k, v: f(q, k, v),
        attention_torch,
        ((5, 3), (7, 3), (2, 7, 2)),
    ),
]

CASES = BASIC + FUSED


def reduced(t: Any, op: str, x: Any, axis: Any, keepdims: bool) -> Any:
    """PyTorch's reduction of this name."""
    axes = tuple(range(x.ndim)) if axis is None else axis
    if op == "prod":  # over one axis at a time
        for one in sorted([i % x.ndim for i in np.atleast_1d(axes).tolist()], reverse=True):
            x = x.prod(one, keepdim=keepdims)
        return x
    return {"max": t.amax, "min": t.amin}.get(op, getattr(t, op))(x, axes, keepdim=keepdims)
