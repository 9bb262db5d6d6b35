"""Modules: parameters with a name, and the layers that BERT is made of."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from minigrad import backend, ops, random
from minigrad.tensor import Array, Tensor

__all__ = [
    "Dropout",
    "Embedding",
    "LayerNorm",
    "Linear",
    "Module",
    "ModuleList",
    "Parameter",
    "Sequential",
    "truncated_normal",
]


class Parameter(Tensor):
    """A tensor that a module owns and an optimiser changes: requires_grad is True."""

    __slots__ = ()

    def __init__(self, data: Any, dtype: Any = None) -> None:
        super().__init__(data, requires_grad=True, dtype=dtype)


def truncated_normal(shape: tuple[int, ...], std: float) -> np.ndarray:
    """Float32 draws of a normal distribution (mean 0), drawn again where beyond two standard deviations.

    BERT's initial weights (released code, `create_initializer`), with std 0.02. `std` is that of the normal
    distribution before the cut; what is left has 0.88 of it.
    """
    generator = random.generator()
    values = generator.standard_normal(shape, dtype=np.float32)
    while (outside := np.abs(values) > 2).any():
        values[outside] = generator.standard_normal(int(outside.sum()), dtype=np.float32)
    return values * np.float32(std)


class Module:
    """Something with parameters, and maybe modules inside: found among its attributes, named after them."""

    training: bool = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What calling the module does."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly inside, with their names."""
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module (under the name "") and all modules inside, each once and before its children.

        One that is there twice, or that points back to a module around it, counts under its first name.
        """
        yield from self._walk(prefix, set())

    def _walk(self, path: str, seen: set[int]) -> Iterator[tuple[str, Module]]:
        if id(self) in seen:
            return
        seen.add(id(self))
        yield path, self
        for name, child in self.children():
            yield from child._walk(f"{path}.{name}" if path else name, seen)

    def modules(self) -> Iterator[Module]:
        """This module and all modules inside, each before its children."""
        for _, module in self.named_modules():
            yield module

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """Each parameter once, with its dotted name; a shared one under its first name."""
        seen: set[int] = set()
        for path, module in self.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, Parameter) and id(value) not in seen:
                    seen.add(id(value))
                    yield prefix + (f"{path}.{name}" if path else name), value

    def parameters(self) -> Iterator[Parameter]:
        """Each parameter once."""
        for _, parameter in self.named_parameters():
            yield parameter

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for parameter in self.parameters():
            parameter.grad = None

    def train(self, mode: bool = True) -> Module:
        """Switch to training (dropout on), or to evaluation with mode=False; returns the module."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Module:
        """Switch to evaluation (dropout off); returns the module."""
        return self.train(False)

    def to(self, name: str) -> Module:
        """Move all parameters to the backend called `name` (their gradients are forgotten)."""
        for parameter in self.parameters():
            parameter.data = parameter.detach().to(name).data
            parameter.grad = None
        return self

    def astype(self, dtype: Any) -> Module:
        """Change the dtype of all parameters (their gradients are forgotten): float64 for gradient checks."""
        for parameter in self.parameters():
            parameter.data = parameter.detach().astype(dtype).data
            parameter.grad = None
        return self

    def state_dict(self) -> dict[str, Array]:
        """The parameters' arrays by name: the arrays themselves, not copies."""
        return {name: parameter.data for name, parameter in self.named_parameters()}

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> tuple[list[str], list[str]]:
        """Copy arrays into the parameters of the same name.

        Returns the names that are missing from `state` and those in it that are unexpected. Raises KeyError
        if there are any and `strict` is true, ValueError listing every array of another shape; nothing is
        loaded then.
        """
        own = dict(self.named_parameters())
        missing = [name for name in own if name not in state]
        unexpected = [name for name in state if name not in own]
        misshaped = [
            f"{name} is {tuple(state[name].shape)}, expected {parameter.shape}"
            for name, parameter in own.items()
            if name in state and tuple(state[name].shape) != parameter.shape
        ]
        if misshaped:
            raise ValueError("load_state_dict: " + "; ".join(misshaped))
        if strict and (missing or unexpected):
            raise KeyError(
                f"load_state_dict: missing {', '.join(missing) or 'none'}; "
                f"unexpected {', '.join(unexpected) or 'none'}"
            )
        for name, parameter in own.items():
            if name in state:
                kernels = backend.of(parameter.data)
                host = backend.to_numpy(state[name])
                parameter.data = kernels.xp.array(kernels.asarray(host), parameter.dtype, order="C")
        return missing, unexpected

    @reprlib.recursive_repr("…")  # for a module that points back to one around it
    def __repr__(self) -> str:
        inside = [f"  ({name}): " + repr(child).replace("\n", "\n  ") for name, child in self.children()]
        own = ", ".join(
            f"{name}={value.shape}" for name, value in vars(self).items() if isinstance(value, Parameter)
        )
        return f"{type(self).__name__}({own}" + ("\n" + "\n".join(inside) + "\n" if inside else "") + ")"


class ModuleList(Module):
    """Modules in a list, named "0", "1", …"""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self.list = list(modules)

    def children(self) -> Iterator[tuple[str, Module]]:
        """The modules, with their numbers as names."""
        for number, module in enumerate(self.list):
            yield str(number), module

    def append(self, module: Module) -> None:
        """Put one more module at the end."""
        self.list.append(module)

    def __getitem__(self, number: int) -> Module:
        return self.list[number]

    def __len__(self) -> int:
        return len(self.list)

    def __iter__(self) -> Iterator[Module]:
        return iter(self.list)


class Sequential(ModuleList):
    """Modules (or functions of a tensor) applied one after the other."""

    def __init__(self, *modules: Module | Callable[[Tensor], Tensor]) -> None:
        self.list = list(modules)  # type: ignore[arg-type]

    def children(self) -> Iterator[tuple[str, Module]]:
        """The modules among the steps, with their numbers as names."""
        return ((name, step) for name, step in super().children() if isinstance(step, Module))

    def forward(self, x: Tensor) -> Tensor:
        """x through each step in turn."""
        for step in self.list:
            x = step(x)
        return x


class Linear(Module):
    """x W + b, with weight (in_features, out_features): stored so that the code reads `x @ W`.

    PyTorch and Hugging Face store the transpose. Weights start as truncated normal draws, the bias as zeros.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, std: float = 0.02) -> None:
        self.weight = Parameter(truncated_normal((in_features, out_features), std))
        self.bias = Parameter(np.zeros(out_features, np.float32)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """x (…, in_features) -> (…, out_features)."""
        return ops.linear(x, self.weight, self.bias)


class Embedding(Module):
    """A table with one row per id: weight (num_embeddings, embedding_dim), truncated normal draws."""

    def __init__(self, num_embeddings: int, embedding_dim: int, std: float = 0.02) -> None:
        self.weight = Parameter(truncated_normal((num_embeddings, embedding_dim), std))

    def forward(self, ids: Array) -> Tensor:
        """ids (…) of integers -> (…, embedding_dim). Raises IndexError for an id outside the table."""
        return ops.embedding(ids, self.weight)


class LayerNorm(Module):
    """Layer normalisation over the last axis, with gain (ones) and bias (zeros); eps as in BERT's code."""

    def __init__(self, size: int, eps: float = 1e-12) -> None:
        self.weight = Parameter(np.ones(size, np.float32))
        self.bias = Parameter(np.zeros(size, np.float32))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """x (…, size) -> (…, size)."""
        return ops.layer_norm(x, self.weight, self.bias, self.eps)


class Dropout(Module):
    """In training, sets entries to 0 with probability p and divides the others by 1 - p; else nothing."""

    def __init__(self, p: float = 0.1) -> None:
        if not 0 <= p < 1:
            raise ValueError(f"Dropout: p must be at least 0 and below 1, got {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """x (…) -> (…)."""
        keep = self.draw(x, x.shape)
        return x if keep is None else ops.dropout(x, keep, self.p)

    def draw(self, like: Tensor, shape: tuple[int, ...]) -> Array | None:
        """What to keep: booleans of `shape` on the backend of `like`, or None where nothing is dropped."""
        return random.keep_mask(like.data, shape, self.p) if self.training and self.p else None
