"""One call of every operation: what chapter 2 holds against differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from minigrad import Tensor, ops

__all__ = ["every_operation"]

Call = tuple[Callable[..., Tensor], tuple[Tensor, ...]]


def every_operation(rng: np.random.Generator) -> dict[str, Call]:
    """For each name in `minigrad.ops`, a function of tensors and float64 tensors to call it with.

    Entries are away from kinks and ties: where an operation has one, they are apart by more than a step.
    """

    def normal(*shape: int) -> Tensor:
        return Tensor(rng.standard_normal(shape), requires_grad=True, dtype=np.float64)

    def positive(*shape: int) -> Tensor:
        return Tensor(rng.uniform(0.5, 2, shape), requires_grad=True, dtype=np.float64)

    def apart(*shape: int) -> Tensor:
        size = int(np.prod(shape))
        return Tensor(
            (rng.permutation(size).reshape(shape) - size / 2 + 0.3) / 4, requires_grad=True, dtype=np.float64
        )

    mask, keep = rng.random((3, 5)) < 0.4, rng.random((3, 5)) < 0.8
    ids, labels = rng.integers(0, 7, (2, 3)), np.array([2, -100, 0])
    return {
        "abs": (ops.abs, (apart(3, 5),)),
        "add": (ops.add, (normal(3, 1, 5), normal(4, 1))),
        "astype": (lambda x: ops.astype(x, np.float64) * 2.0, (normal(3, 5),)),
        "concat": (lambda *x: ops.concat(x, axis=1), (normal(3, 2), normal(3, 5))),
        "cross_entropy": (lambda x: ops.cross_entropy(x, labels), (normal(3, 5),)),
        "div": (ops.div, (normal(3, 5), positive(5))),
        "dropout": (lambda x: ops.dropout(x, keep, 0.2), (normal(3, 5),)),
        "embedding": (lambda table: ops.embedding(ids, table), (normal(7, 4),)),
        "erf": (ops.erf, (normal(3, 5),)),
        "exp": (ops.exp, (normal(3, 5),)),
        "expand": (lambda x: ops.expand(x, 4, 3, 5), (normal(3, 1),)),
        "flip": (lambda x: ops.flip(x, 1), (normal(3, 5),)),
        "gelu": (ops.gelu, (normal(3, 5),)),
        "getitem": (lambda x: x[np.array([0, 2, 2]), 1:4], (normal(3, 5),)),
        "layer_norm": (ops.layer_norm, (normal(3, 5), normal(5), normal(5))),
        "linear": (ops.linear, (normal(2, 3, 5), normal(5, 4), normal(4))),
        "log": (ops.log, (positive(3, 5),)),
        "log_softmax": (ops.log_softmax, (normal(3, 5),)),
        "logsumexp": (lambda x: ops.logsumexp(x, axis=1), (normal(3, 5),)),
        "masked_fill": (lambda x: ops.masked_fill(x, mask, -9.0), (normal(3, 5),)),
        "matmul": (ops.matmul, (normal(2, 1, 3, 5), normal(4, 5, 2))),
        "max": (lambda x: ops.max(x, axis=1), (apart(3, 5),)),
        "maximum": (lambda x: ops.maximum(x, 0.1), (apart(3, 5),)),
        "mean": (lambda x: ops.mean(x, axis=(0, 2)), (normal(3, 4, 5),)),
        "mul": (ops.mul, (normal(3, 1, 5), normal(4, 1))),
        "neg": (ops.neg, (normal(3, 5),)),
        "pad": (lambda x: ops.pad(x, [(1, 0), (2, 3)]), (normal(3, 5),)),
        "permute": (lambda x: ops.permute(x, 2, 0, 1), (normal(3, 4, 5),)),
        "pow": (ops.pow, (positive(3, 5), normal(5))),
        "relu": (ops.relu, (apart(3, 5),)),
        "reshape": (lambda x: ops.reshape(x, 5, 3), (normal(3, 5),)),
        "scaled_dot_product_attention": (
            ops.scaled_dot_product_attention,
            (normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6)),
        ),
        "sigmoid": (ops.sigmoid, (normal(3, 5),)),
        "softmax": (ops.softmax, (normal(3, 5),)),
        "split": (lambda x: ops.concat([2.0 * part for part in ops.split(x, 2)]), (normal(5, 3),)),
        "sqrt": (ops.sqrt, (positive(3, 5),)),
        "squeeze": (lambda x: ops.squeeze(x, 1), (normal(3, 1, 5),)),
        "stack": (lambda *x: ops.stack(x, axis=1), (normal(3, 5), normal(3, 5))),
        "sub": (ops.sub, (normal(3, 1, 5), normal(4, 1))),
        "sum": (lambda x: ops.sum(x, axis=0), (normal(3, 5),)),
        "tanh": (ops.tanh, (normal(3, 5),)),
        "transpose": (lambda x: ops.transpose(x, 0, 1), (normal(3, 5),)),
        "unsqueeze": (lambda x: ops.unsqueeze(x, 1), (normal(3, 5),)),
        "var": (lambda x: ops.var(x, axis=1), (normal(3, 5),)),
        "where": (lambda a, b: ops.where(mask, a, b), (normal(3, 5), normal(5))),
    }
