"""Modules: parameters with a name, and modules inside modules."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from minigrad import backend
from minigrad.nn.initial import shapes_alone
from minigrad.tensor import Array, ArrayLike, DTypeLike, Tensor, no_grad

CONTAINERS = (list, tuple, dict)


class Parameter(Tensor):
    """A tensor that a module owns and an optimiser changes: requires_grad is True."""

    __slots__ = ()

    def __init__(self, data: ArrayLike, dtype: DTypeLike | None = None) -> None:
        super().__init__(0.0 if shapes_alone.get() else data, requires_grad=True, dtype=dtype)
        if shapes_alone.get():
            self.data = data  # which has a shape, and no more


class Module:
    """An object with parameters, and perhaps modules inside: found among its attributes, named after them.

    What training would silently lose raises TypeError: a parameter or module that is replaced by anything but
    another one or None, one in a list, tuple or dict, and a leaf that requires a gradient and is not a
    Parameter. The error comes at the assignment or, for later additions, when parameters or modules are asked
    for.
    """

    training: bool = True
    walked: ClassVar[frozenset[str]] = frozenset()  # attributes in whose lists a class's own `children` looks

    def __setattr__(self, name: str, value: object) -> None:
        before, label = vars(self).get(name), f"{type(self).__name__}.{name}"
        if isinstance(before, Parameter) and not isinstance(value, Parameter | None):
            raise TypeError(
                f"{label}: expected a Parameter or None, got {type(value).__name__}; for other numbers write "
                f"module.{name}.data[...] = …, for another parameter assign nn.Parameter(…)"
            )
        if isinstance(before, Module) and not isinstance(value, Module | Parameter | None):
            raise TypeError(f"{label}: expected a Module, a Parameter or None, got {type(value).__name__}")
        self._require_found({name: value})
        super().__setattr__(name, value)

    def _require_found(self, attributes: Mapping[str, object]) -> None:
        for name, value in attributes.items():
            if _is_lost_leaf(value):
                raise TypeError(
                    f"{type(self).__name__}.{name}: parameters() does not find a Tensor that requires a gradient, so "
                    "training would leave it out; make it an nn.Parameter(…), or keep its detach()"
                )
            if isinstance(value, CONTAINERS) and name not in self.walked:
                for lost in _inside(value):
                    raise TypeError(
                        f"{type(self).__name__}.{name}: parameters() does not find the {type(lost).__name__} in a "
                        f"{type(value).__name__}, so training would leave it out; put modules into nn.ModuleList(…), "
                        "and give each parameter an attribute of its own"
                    )

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

        A module that occurs twice, or that points back to a module around it, counts under its first name.
        """
        yield from self._walk(prefix, set())

    def _walk(self, path: str, seen: set[int]) -> Iterator[tuple[str, Module]]:
        if id(self) in seen:
            return
        seen.add(id(self))
        self._require_found(vars(self))  # a list may have been filled since it was assigned
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

    def astype(self, dtype: DTypeLike) -> Module:
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


def _is_lost_leaf(value: object) -> bool:
    """Whether it is a leaf that requires a gradient, as a parameter does, and is none."""
    return (
        isinstance(value, Tensor)
        and not isinstance(value, Parameter)
        and value.requires_grad
        and not value.node
    )


def _inside(value: Any) -> Iterator[Tensor | Module]:
    """The parameters, leaves that should be some, and modules in lists, tuples and dicts, at any depth."""
    if isinstance(value, Parameter | Module) or _is_lost_leaf(value):
        yield value
    elif isinstance(value, CONTAINERS):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _inside(item)


class ModuleList(Module):
    """Modules in a list, named "0", "1", …"""

    walked = frozenset({"list"})

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


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Inside, a model has no dropout and records no graph; afterwards it is back in its previous mode."""
    training = model.training
    model.train(False)
    try:
        with no_grad():
            yield
    finally:
        model.train(training)
