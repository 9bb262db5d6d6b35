"""Recurrent networks: RNN, GRU and LSTM, with several layers, both directions, and rows of different lengths.

Names, layouts and numbers are PyTorch's, with three differences: rows come first (its `batch_first=True`), weights are
stored (in, out), and lengths are given to `forward` instead of packing the rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from minigrad import backend, ops
from minigrad.nn.initial import uniform
from minigrad.nn.layers import Dropout
from minigrad.nn.module import Module, Parameter
from minigrad.tensor import Array, Tensor

State = tuple[Tensor, ...]  # h; or h and c


class _Recurrent(Module):
    """What the three have in common: all but their steps.

    In comments B is the number of rows, T of time steps, G of gates, H is hidden_size, and D is 2 with both
    directions, else 1. Inside, time comes first, so that the rows of one step lie together in memory.
    """

    gates: ClassVar[int]  # how many vectors of hidden_size a step computes
    parts: ClassVar[tuple[str, ...]]  # of the state
    run: ClassVar[Callable[..., Any]]  # the operation for all steps of a layer in one direction

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
    ) -> None:
        for name, value in (
            ("input_size", input_size),
            ("hidden_size", hidden_size),
            ("num_layers", num_layers),
        ):
            if value < 1:
                raise ValueError(f"{type(self).__name__}: {name} must be at least 1, got {value}")
        if dropout and num_layers == 1:
            warnings.warn(
                f"{type(self).__name__}: dropout={dropout} drops nothing with num_layers=1: it is between layers",
                stacklevel=2,
            )
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.suffixes = ("", "_reverse") if bidirectional else ("",)
        self.dropout = Dropout(dropout)
        width = self.gates * hidden_size
        for layer in range(num_layers):
            below = input_size if layer == 0 else len(self.suffixes) * hidden_size
            for suffix in self.suffixes:
                for name, shape in (
                    ("weight_ih", (below, width)),
                    ("weight_hh", (hidden_size, width)),
                    ("bias_ih", (width,)),
                    ("bias_hh", (width,)),
                ):
                    setattr(
                        self,
                        f"{name}_l{layer}{suffix}",
                        Parameter(uniform(shape, 1 / math.sqrt(hidden_size))),
                    )

    def forward(
        self, x: Tensor, state: Tensor | State | None = None, lengths: ArrayLike | None = None
    ) -> tuple[Tensor, Tensor | State]:
        """All layers over all time steps.

        x (B, T, input_size). state: before the first step, h (D · num_layers, B, H), for an LSTM the pair (h, c);
        None: zeros. lengths (B,) of integers within 1 … T: how many steps of each row count.

        Returns the last layer's h at every step, (B, T, D · H), 0 beyond a row's length; and the state after each
        row's last step, in the form of `state`: layer after layer, of each forwards and then backwards. Raises
        ValueError or TypeError for another shape or dtype (lengths that are on a GPU already are not compared with
        T: that would wait for it).
        """
        self._check_input(x)
        states = self._states(x, state)
        live = None if lengths is None else self._live(x, lengths)
        y = x.transpose(0, 1)  # (T, B, input_size)
        if live is not None:  # padding may be anything, and a gradient of 0 times nan would be nan
            y = ops.where(live[:, :, None], y, 0.0)
        last: list[State] = []
        for layer in range(self.num_layers):
            if layer:
                y = self.dropout(y.reshape(-1, y.shape[-1])).reshape(*y.shape)  # (T B, …): T times B rows
            outputs = []
            for suffix in self.suffixes:
                h, after = self._one_direction(y, states[len(last)], live, f"_l{layer}{suffix}")
                outputs.append(h)
                last.append(after)
            y = outputs[0] if len(outputs) == 1 else ops.concat(outputs, axis=-1)  # (T, B, D · H)
        if live is not None:
            y = ops.where(live[:, :, None], y, 0.0)
        after = tuple(ops.stack(parts) for parts in zip(*last, strict=True))  # each (D · num_layers, B, H)
        return y.transpose(0, 1), after if len(after) > 1 else after[0]

    def _one_direction(self, x: Tensor, state: State, live: Array | None, name: str) -> tuple[Tensor, State]:
        """One layer in one direction: x (T, B, …) -> h at every step (T, B, H), and the state after the last."""
        weight_ih, weight_hh, bias_ih, bias_hh = (
            getattr(self, kind + name) for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        x_part = ops.linear(x, weight_ih, bias_ih)  # (T, B, G · H): one product for all steps
        backwards = name.endswith("_reverse")
        if backwards:  # a row's state stays as it is until its own last step comes
            x_part, live = x_part.flip(0), None if live is None else live[::-1]
        found = type(self).run(x_part, *state, weight_hh, bias_hh, live)
        found = found if isinstance(found, tuple) else (found,)
        h = found[0].flip(0) if backwards else found[0]
        return h, tuple(part[-1] for part in found)

    # --- What is given -----------------------------------------------------------------------------------

    def _check_input(self, x: Tensor) -> None:
        if not isinstance(x, Tensor):
            raise TypeError(f"{type(self).__name__}: expected a Tensor, got {type(x).__name__}")
        if x.ndim != 3 or x.shape[-1] != self.input_size or not x.shape[1]:
            raise ValueError(
                f"{type(self).__name__}: expected x (B, T, {self.input_size}) with at least one time step, "
                f"got shape {x.shape}"
            )

    def _states(self, x: Tensor, state: Tensor | State | None) -> list[State]:
        """The state before the first step, of each layer and direction."""
        name, parts = type(self).__name__, self.parts
        count = len(self.suffixes) * self.num_layers
        shape = (count, x.shape[0], self.hidden_size)
        if state is None:
            zeros = Tensor.wrap(backend.of(x.data).xp.zeros(shape[1:], x.dtype))
            return [(zeros,) * len(parts)] * count
        given = state if isinstance(state, tuple | list) else (state,)
        if (len(parts) == 1) != isinstance(state, Tensor) or len(given) != len(parts):
            expected = "a Tensor h" if len(parts) == 1 else f"a pair ({', '.join(parts)})"
            came = f"a tuple of {len(state)}" if isinstance(state, tuple) else type(state).__name__
            raise TypeError(f"{name}: the state must be {expected}, got {came}")
        for part, tensor in zip(parts, given, strict=True):
            if not isinstance(tensor, Tensor):
                raise TypeError(f"{name}: {part} must be a Tensor, got {type(tensor).__name__}")
            if tensor.shape != shape:
                raise ValueError(f"{name}: {part} must have shape {shape}, got {tensor.shape}")
        return [tuple(tensor[i] for tensor in given) for i in range(count)]

    def _live(self, x: Tensor, lengths: ArrayLike) -> Array:
        """Which rows are within their length at each time step: booleans (T, B)."""
        name, (rows, steps, _) = type(self).__name__, x.shape
        lengths = lengths if backend.is_array(lengths) else np.asarray(lengths)
        if lengths.dtype.kind not in "iu":
            raise TypeError(f"{name}: lengths must be integers, got dtype {lengths.dtype}")
        if lengths.shape != (rows,):
            raise ValueError(f"{name}: {rows} rows need lengths of shape ({rows},), got {lengths.shape}")
        if isinstance(lengths, np.ndarray) and not ((lengths >= 1) & (lengths <= steps)).all():
            bad = lengths[(lengths < 1) | (lengths > steps)][0]
            raise ValueError(f"{name}: each length must be within 1 … {steps}, got {bad}")
        kernels = backend.of(x.data)
        return kernels.xp.arange(steps)[:, None] < kernels.asarray(lengths)[None, :]


class RNN(_Recurrent):
    """Elman's network: h' = tanh(x W_ih + b_ih + h W_hh + b_hh) at every time step (`ops.rnn_step`).

    Parameters, of each layer and direction: `weight_ih_l0` (input_size or D · H, H), `weight_hh_l0` (H, H),
    `bias_ih_l0` and `bias_hh_l0` (H,), and with `_reverse` after their names those of the backward direction;
    all are initialised uniformly within ±1/√H. dropout: on each layer's output but the last one's, so that
    with a single layer there is a UserWarning. PyTorch has the weights transposed.
    """

    gates = 1
    parts = ("h",)
    run = staticmethod(ops.rnn)


class GRU(_Recurrent):
    """Gated recurrent units (`ops.gru_step`). Parameters as `RNN`, with 3 H columns: the gates r, z and g."""

    gates = 3
    parts = ("h",)
    run = staticmethod(ops.gru)


class LSTM(_Recurrent):
    """Long short-term memory (`ops.lstm_step`). Parameters as `RNN`, with 4 H columns: the gates i, f, g and o."""

    gates = 4
    parts = ("h", "c")
    run = staticmethod(ops.lstm)
