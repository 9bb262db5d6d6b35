"""Answers on Tensors: what they return is held against the right answer's together with the gradients it sends back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert_course.check.differences import Traced, described
from bert_course.check.outcome import Unfit
from minigrad import Tensor, backend
from minigrad.graph import Node

RESULT = "the result"
WRITE_IT = (
    "Compute the numbers with NumPy, from the .data of what comes in, and return Tensor.from_op(y, parents, backward), "
    "with what came in as parents"
)


def tensor(array: np.ndarray, requires_grad: bool = True) -> Tensor:
    """A Tensor of a case, which wants its gradient."""
    return Tensor(array, requires_grad)


def traced(returned: Any, arguments: Mapping[str, Any]) -> Traced:
    """What a returned Tensor holds, and the gradient that a random cotangent sends to each Tensor among the arguments.

    Raises Unfit where it is no Tensor.
    """
    (result,) = _tensors(returned if isinstance(returned, Tensor) else (returned,))
    leaves = [(name, leaf) for name, leaf in _leaves(arguments) if leaf.requires_grad]
    if result.requires_grad:
        cotangent = np.random.default_rng(0).standard_normal(result.shape)
        result.backward(cotangent.astype(result.dtype))
    gradients = {
        f"the gradient for {name}": None if leaf.grad is None else backend.to_numpy(leaf.grad)
        for name, leaf in leaves
    }
    return Traced.of({RESULT: result.numpy()}, gradients)


def linked(returned: Any, arguments: Mapping[str, Any]) -> Traced:
    """What the returned Tensors hold, and whether a gradient would go from each to each Tensor among the arguments.

    Quicker than `traced`, and enough where an answer only puts parts together. Raises Unfit where they are no Tensors.
    """
    numbers, links = {}, {}
    for number, result in enumerate(_tensors(returned), 1):
        numbers[f"value {number}"] = result.numpy()
        reached = _reached(result)
        for name, leaf in _leaves(arguments):
            link = np.ones(()) if id(leaf) in reached else None
            links[f"the gradient of value {number} for {name}"] = link
    return Traced.of(numbers, links)


def _tensors(returned: Any) -> Sequence[Tensor]:
    """The Tensor or Tensors that were returned. Raises Unfit where they are none."""
    found = returned if isinstance(returned, tuple | list) else (returned,)
    if found and all(isinstance(one, Tensor) for one in found):
        return found
    one = next((one for one in found if not isinstance(one, Tensor)), returned)
    raise Unfit(
        f"returned {described(one)}, and should return a Tensor: NumPy's functions, .data and .numpy() take the numbers "
        "out of a Tensor, so no gradient flows back. Use + - * / @ **, reshape, transpose, sum, mean, or Tensor.from_op"
    )


def _reached(result: Tensor) -> set[int]:
    """The ids of the Tensors without an operation behind them that a result was made of."""
    found, waiting = {id(result)}, [result.node]
    while waiting:
        for parent in (node.parents or ()) if (node := waiting.pop()) else ():
            if parent is not None and id(parent) not in found:
                found.add(id(parent))
                waiting.append(parent if isinstance(parent, Node) else None)
    return found


def _leaves(arguments: Mapping[str, Any], where: str = "") -> Iterator[tuple[str, Tensor]]:
    """The Tensors among arguments, those in lists and dicts too, with what to call them: "W_Q of layers[0]"."""
    for name, value in arguments.items():
        if isinstance(value, dict):
            yield from _leaves(value, f" of {name}" if name.endswith("]") else where)
        elif isinstance(value, list | tuple):
            yield from _leaves({f"{name}[{i}]": one for i, one in enumerate(value)}, where)
        elif isinstance(value, Tensor):
            yield f"{name}{where}", value


def constant(returned: Any, arguments: Mapping[str, Any]) -> np.ndarray:
    """What a returned Tensor without a gradient holds. Raises Unfit where it is none."""
    if not isinstance(returned, Tensor):
        raise Unfit(f"returned {described(returned)}, and should return a Tensor: Tensor(array)")
    if returned.requires_grad:
        raise Unfit("returned a Tensor that wants a gradient. A mask is a constant: Tensor(array)")
    return returned.numpy()


def operation(returned: Any, arguments: Mapping[str, Any]) -> Traced:
    """The same of an answer that has to be one operation of its own, made of all the Tensors that were given.

    Raises Unfit where it is several, or one of the library's.
    """
    if isinstance(returned, Tensor) and returned.node is not None:
        parents = {id(parent) for parent in returned.node.parents or ()}
        missing = [name for name, leaf in _leaves(arguments) if id(leaf) not in parents]
        if missing:
            raise Unfit(
                f"returned a Tensor that was not made of {' and '.join(missing)} in one operation. {WRITE_IT}"
            )
        if (returned.node.backward.__module__ or "").startswith("minigrad."):
            raise Unfit(f"returned what the library's {returned.node.op} makes. {WRITE_IT}")
    return traced(returned, arguments)
