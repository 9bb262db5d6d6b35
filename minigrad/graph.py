"""The graph that operations record, and the walk back through it.

A node stands for one operation: where its inputs came from, and the closure that turns the gradient of the output
into one gradient per input. `walk_back` visits the nodes from the newest to the oldest, adds up what each hears from
those that used it, and leaves the sums in `.grad` of the leaves. A leaf's hooks are called
as soon as its sum is complete. A node whose saved arrays an optimiser has changed since is an error. Not handled:
second derivatives.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from minigrad import backend
from minigrad.backend import threads

Array = Any  # a NumPy or CuPy ndarray
Backward = Callable[[Array], Sequence[Array | None]]
Hook = Callable[[Any], object]  # called with a leaf whose gradient is complete

_node_numbers = itertools.count()


class TensorLike(Protocol):
    """What the graph knows of a tensor; `Tensor` itself is above this file, in tensor.py."""

    data: Array
    grad: Array | None
    requires_grad: bool
    node: Node | None
    hooks: dict[int, Hook] | None


# --- Nodes -----------------------------------------------------------------------------------------------


class Node:
    """What the graph remembers of one operation: where its inputs came from, and how to send gradients there.

    A node does not hold its output or its inputs, so that an array in between lives only as long as somebody
    needs it: the caller, or a closure that saved it.
    """

    __slots__ = ("array_type", "backward", "dtype", "number", "op", "parents", "retained", "shape")

    def __init__(self, y: Array, parents: Sequence[TensorLike], backward: Backward) -> None:
        self.number = next(_node_numbers)  # a node is always newer than its inputs' nodes
        self.op = op_name(backward)
        self.shape, self.dtype, self.array_type = y.shape, y.dtype, type(y)
        # of each input: its node, the input itself if it is a leaf, None if it needs no gradient
        self.parents: tuple[Node | TensorLike | None, ...] | None = tuple(
            parent.node or (parent if parent.requires_grad else None) for parent in parents
        )
        self.backward: Backward | None = backward
        self.retained: TensorLike | None = None  # the output, if its gradient was asked for

    def free(self) -> None:
        """Drop the closure, and with it the arrays it saved."""
        self.parents = self.backward = self.retained = None


def op_name(backward: Backward) -> str:
    """The name of the function in which `backward` was defined: "add" for "add.<locals>.backward"."""
    names = [name for name in backward.__qualname__.split(".") if name != "<locals>"]
    return names[-2] if len(names) > 1 else names[0]


# --- Arrays that change ----------------------------------------------------------------------------------

_changes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # leaf: when, as a node's number
_last_change = -1


def changed_in_place(leaves: Iterable[TensorLike]) -> None:
    """Remember that the arrays of `leaves` change in place: nodes of before must not go by what they saved of them."""
    global _last_change
    with threads.lock:
        _last_change = next(_node_numbers)
        for leaf in leaves:
            _changes[leaf] = _last_change


def require_unchanged(node: Node) -> None:
    """Raise RuntimeError if an array that `node` saved has been changed in place since."""
    with threads.lock:
        changed = [leaf.data for leaf, number in _changes.items() if number > node.number]
    for saved in _arrays_in(node.backward):
        for array in changed:
            if type(saved) is type(array) and backend.of(array).xp.may_share_memory(saved, array):
                raise RuntimeError(
                    f"{node.op}: backward() after step(): since the forward pass, an optimiser has changed a parameter "
                    f"of shape {array.shape}, which this gradient is made of; call backward() first, or compute the "
                    "output again"
                )


def _arrays_in(function: object) -> Iterator[Array]:
    """The arrays that a function closes over, also in lists and in functions that it calls."""
    waiting, seen = [function], set()
    while waiting:
        value = waiting.pop()
        if backend.is_array(value):
            yield value
        elif id(value) not in seen:
            seen.add(id(value))
            waiting += value if isinstance(value, list | tuple) else ()
            for cell in getattr(value, "__closure__", None) or ():
                with contextlib.suppress(ValueError):  # a variable without a value
                    waiting.append(cell.cell_contents)


# --- Gradients, and who owns them ------------------------------------------------------------------------


class Gradient:
    """A gradient that is being added up, and whether the engine owns its array: then nobody else holds it."""

    __slots__ = ("array", "owned")

    def __init__(self, array: Array, owned: bool = False) -> None:
        self.array, self.owned = array, owned

    def add(self, contribution: Array, owned: bool = False) -> None:
        """Add in place into whichever of the two arrays is owned; make a new one if neither is."""
        if not self.owned and owned:
            self.array, contribution = contribution, self.array
        if self.owned or owned:
            backend.of(self.array).add_in_place(self.array, contribution)
        else:
            self.array = as_array(self.array + contribution)
        self.owned = True


def is_owned(contribution: Array, dy: Array, contributions: Sequence[Array | None]) -> bool:
    """Whether the engine alone holds what an operation's `backward` returned.

    It does if this is neither dy nor a view, and no other contribution is the same array or a view of it.
    """
    if contribution is dy or contribution.base is not None:
        return False
    holders = [
        other is contribution or (other is not None and other.base is contribution) for other in contributions
    ]
    return sum(holders) == 1


def accumulate(tensor: TensorLike, gradient: Gradient) -> None:
    """Add a gradient to `tensor.grad`."""
    with threads.lock:
        if tensor.grad is not None:  # of an earlier backward(): whoever looks at it must not see it change
            tensor.grad = as_array(tensor.grad + gradient.array)
        else:
            tensor.grad = gradient.array if gradient.owned else gradient.array.copy()


# --- Hooks -----------------------------------------------------------------------------------------------

_hook_numbers = itertools.count()
# Leaves: without any, a walk back need not look for them
_with_hooks: weakref.WeakSet[Any] = weakref.WeakSet()


class HookHandle:
    """What takes a hook away again."""

    def __init__(self, leaf: TensorLike, hook: Hook) -> None:
        self._leaf, self._number = weakref.ref(leaf), next(_hook_numbers)
        leaf.hooks = {**(leaf.hooks or {}), self._number: hook}
        _with_hooks.add(leaf)

    def remove(self) -> None:
        """Take the hook away; a second time changes nothing."""
        leaf = self._leaf()
        if leaf is None or leaf.hooks is None:
            return
        leaf.hooks = {number: hook for number, hook in leaf.hooks.items() if number != self._number} or None
        if leaf.hooks is None:
            _with_hooks.discard(leaf)


def deliver(leaf: TensorLike, gradient: Gradient) -> None:
    """Put a complete gradient into `leaf.grad`, and call the leaf's hooks in the order in which they came."""
    accumulate(leaf, gradient)
    for hook in (leaf.hooks or {}).values():
        hook(leaf)


def awaited(start: Node | TensorLike) -> list[tuple[int, TensorLike]]:
    """The leaves with hooks behind `start`, each with the number of the oldest node that uses it, the smallest first.

    A walk from the newest node to the oldest has heard all of a leaf when it has come to that number.
    """
    if not _with_hooks or not isinstance(start, Node):
        return []
    oldest: dict[TensorLike, int] = {}
    seen, waiting = {start}, [start]
    while waiting:
        node = waiting.pop()
        for parent in node.parents or ():
            if isinstance(parent, Node):
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
            elif parent is not None and parent.hooks:
                oldest[parent] = min(node.number, oldest.get(parent, node.number))
    return sorted(((number, leaf) for leaf, number in oldest.items()), key=lambda pair: pair[0])


def as_array(value: Array | np.generic) -> Array:
    """`value`; as an array if NumPy has turned an array without axes into a scalar."""
    return np.asarray(value) if isinstance(value, np.generic) else value


# --- The walk back ---------------------------------------------------------------------------------------


def walk_back(start: Node | TensorLike, dy: Array) -> None:
    """Visit the nodes from the newest to the oldest, so that each has heard from all who used it.

    start: the node of the output, or the output itself if it is a leaf. dy: the gradient of the output.
    Each node is freed on the way. A leaf with hooks gets its gradient as soon as it is complete, all others at the
    end. Raises RuntimeError for a node that has been freed, or whose backward is wrong, and what a hook raises.
    """
    leaves = awaited(start)
    gradients: dict[Node | TensorLike, Gradient] = {start: Gradient(dy)}
    newest_first = [(-start.number, start)] if isinstance(start, Node) else []
    while newest_first:
        _, node = heapq.heappop(newest_first)
        dy = gradients.pop(node).array
        if node.backward is None or node.parents is None:
            raise RuntimeError(
                f"backward() a second time through {node.op}: its saved arrays were freed by the first; "
                "compute the output again"
            )
        if node.number < _last_change:
            require_unchanged(node)
        if node.retained is not None:
            accumulate(node.retained, Gradient(dy))
        contributions = checked(node, node.backward(dy))
        parents = node.parents
        node.free()
        for parent, contribution in zip(parents, contributions, strict=True):
            if parent is None or contribution is None:
                continue
            owned = is_owned(contribution, dy, contributions)
            if parent in gradients:
                gradients[parent].add(contribution, owned)
                continue
            gradients[parent] = Gradient(contribution, owned)
            if isinstance(parent, Node):
                heapq.heappush(newest_first, (-parent.number, parent))
        while leaves and leaves[-1][0] >= node.number:
            _, complete = leaves.pop()
            if complete in gradients:  # not where no gradient has come
                deliver(complete, gradients.pop(complete))
    for leaf, gradient in gradients.items():
        assert not isinstance(leaf, Node)  # all nodes have been taken out
        deliver(leaf, gradient)


def checked(node: Node, gradients: Sequence[Any]) -> list[Array | None]:
    """The gradients that an operation's backward returned, if they fit its inputs.

    Raises RuntimeError naming the operation, the input, what came and what was expected.
    """
    assert node.parents is not None
    if len(gradients) != len(node.parents):
        raise RuntimeError(
            f"{node.op}: backward returned {len(gradients)} gradients for {len(node.parents)} inputs"
        )
    fitting: list[Array | None] = []
    for position, (parent, gradient) in enumerate(zip(node.parents, gradients, strict=True)):
        if parent is None or gradient is None:
            fitting.append(None)
            continue
        gradient = as_array(gradient)
        if isinstance(parent, Node):
            array_type, shape, dtype = parent.array_type, parent.shape, parent.dtype
        else:
            array_type, shape, dtype = type(parent.data), parent.data.shape, parent.data.dtype
        if type(gradient) is not array_type:
            raise RuntimeError(
                f"{node.op}: backward returned {_named(type(gradient))} for input {position}, "
                f"expected {_named(array_type)}"
            )
        if gradient.shape != shape or gradient.dtype != dtype:
            raise RuntimeError(
                f"{node.op}: the gradient of input {position} has shape {gradient.shape} and dtype "
                f"{gradient.dtype}, its input has {shape} and {dtype}"
            )
        fitting.append(gradient)
    return fitting


def _named(kind: type) -> str:
    """A type in an error message: "an array of numpy", or its name."""
    return f"an array of {kind.__module__}" if kind.__name__ == "ndarray" else kind.__name__
