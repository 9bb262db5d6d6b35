"""Tensor: an array that remembers which operations it came from, and `no_grad`, under which it does not.

An operation computes its output from raw arrays, defines `backward(dy)` beside it, and returns
`Tensor.from_op(y, parents, backward)`. That call records a node of the graph, through which `Tensor.backward`
walks back (graph.py). Not handled: operations that change a tensor in place.
"""

from __future__ import annotations

import copy
import inspect
import numbers
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ContextDecorator
from contextvars import ContextVar
from types import ModuleType
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from minigrad import backend
from minigrad.graph import Array, Backward, Hook, HookHandle, Node, as_array, walk_back

Op = Callable[..., "Tensor"]
Function = TypeVar("Function", bound=Callable[..., Any])

FLOATS = ("float16", "float32", "float64")

# how many contexts of no_grad are around us; each thread has its own
_no_grad_depth = ContextVar("no_grad_depth", default=0)


class no_grad(ContextDecorator):
    """Record no graph inside this context, or in a function decorated with it: where nothing is differentiated.

    Other threads keep recording. One object may be entered again, even before it is left.
    """

    # Python raises KeyboardInterrupt where a function begins or a call returns, also here. Whatever the moment, the
    # depth must then be what it was outside. (Nothing helps where __exit__ begins, which is a very short moment.)

    def __enter__(self) -> None:
        depth = _no_grad_depth.get()
        try:
            _no_grad_depth.set(depth + 1)
        except BaseException:  # nobody calls __exit__ then
            _no_grad_depth.set(depth)
            raise

    def __exit__(self, *_: object) -> None:
        try:
            depth = _no_grad_depth.get()
        except BaseException:
            self.__exit__()
            raise
        # Not below 0: a generator may have been begun in one thread or task, and be closed in another.
        _no_grad_depth.set(depth - 1 if depth else 0)

    def __call__(self, function: Function) -> Function:
        """`function`, recording no graph. Raises TypeError for a generator or a coroutine, whose body runs later."""
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            raise TypeError(
                f"no_grad() around {function.__name__}, which runs later: use `with no_grad():` inside it"
            )
        return super().__call__(function)


def is_grad_enabled() -> bool:
    """Whether operations record a graph at this moment, in this thread."""
    return not _no_grad_depth.get()


class Tensor:
    """An array of floats that remembers where it came from.

    data: anything that `numpy.asarray` takes; it goes to the default backend (`minigrad.use`), unless it is
        on a GPU already. Arrays of float16, float32 and float64 keep their dtype; all else becomes float32.
        An array is copied only if it must be, such as one in the other byte order, which files may have.
    requires_grad: whether gradients flow to this tensor.
    dtype: a dtype other than that of `data`.

    Attributes: `data`, the array; `grad`, the gradient that `backward` has left here, a plain array of the
    shape and dtype of `data`, or None. Integer ids and boolean masks are not Tensors: operations take them as
    plain arrays. Raises TypeError for data that are not numbers, or a dtype other than these three.
    """

    __slots__ = ("__weakref__", "data", "grad", "hooks", "node", "requires_grad")

    def __init__(self, data: ArrayLike, requires_grad: bool = False, dtype: DTypeLike | None = None) -> None:
        if isinstance(data, Tensor):
            raise TypeError("Tensor(tensor): use tensor.detach() to leave the graph")
        if backend.is_array(data) and backend.of(data).name != "numpy":
            kernels, array = backend.of(data), data
        else:
            kernels, array = backend.default(), np.asarray(data)
            if dtype is None and not isinstance(data, np.ndarray | np.generic):
                dtype = np.float32
        self._set(kernels.asarray(array, dtype=float_dtype(dtype, array.dtype)), bool(requires_grad))

    def _set(self, array: Array, requires_grad: bool) -> None:
        self.data: Array = array
        self.grad: Array | None = None
        self.requires_grad = requires_grad
        self.node: Node | None = None
        self.hooks: dict[int, Hook] | None = None

    # --- Making and describing ---------------------------------------------------------------------------

    @staticmethod
    def wrap(array: Array, requires_grad: bool = False) -> Tensor:
        """A leaf around this very array, a float array of any backend: nothing is checked, moved or converted."""
        tensor = Tensor.__new__(Tensor)
        tensor._set(array, requires_grad)
        return tensor

    @staticmethod
    def from_op(y: Array, parents: Iterable[Tensor], backward: Backward) -> Tensor:
        """The output `y` of an operation, with the node that leads back to its inputs.

        y: the output array.
        parents: the input tensors, in the order in which `backward` returns their gradients.
        backward: takes dy, an array of the shape of `y`; returns one array per parent, of that parent's
            shape and dtype, or None where no gradient flows. It must hold on to arrays, never to the output
            Tensor, and return `dy`, a view, or an array that it has made; it may return a saved one only if
            nothing reads that again, for `backward` runs once.
        """
        parents = tuple(parents)
        output = Tensor.wrap(as_array(y))
        if is_grad_enabled() and any(parent.requires_grad for parent in parents):
            output.requires_grad = True
            output.node = Node(output.data, parents, backward)
        return output

    def __repr__(self) -> str:
        values = np.array2string(self.numpy(), precision=4, separator=", ", prefix="Tensor(", threshold=100)
        facts = [values]
        if self.ndim:
            facts.append(f"shape={self.shape}")
        if self.dtype != np.float32:
            facts.append(f"dtype={self.dtype.name}")
        if self.backend != "numpy":
            facts.append(f"backend={self.backend}")
        if self.node is not None:
            facts.append(f"op={self.node.op}")
        elif self.requires_grad:
            facts.append("requires_grad=True")
        return f"Tensor({', '.join(facts)})"

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self.data.shape

    @property
    def dtype(self) -> np.dtype:
        """float16, float32 or float64."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.data.ndim

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.data.size

    @property
    def T(self) -> Tensor:
        """The tensor with its two axes swapped. Raises ValueError for more axes; transpose() takes two."""
        if self.ndim > 2:
            raise ValueError(f"T is for up to two axes, this tensor has shape {self.shape}: use transpose()")
        return self.permute(tuple(reversed(range(self.ndim))))

    @property
    def backend(self) -> str:
        """The name of the backend that holds the data: "numpy" or "cupy"."""
        return backend.of(self.data).name

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a tensor without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        """Along the first axis. Raises TypeError for a tensor without axes."""
        if not self.ndim:
            raise TypeError("iteration over a tensor without axes")
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(f"a tensor of shape {self.shape} is neither true nor false")
        return bool(self.item())

    def __eq__(self, other: object) -> bool:
        """Whether this is the same tensor: `==` between tensors is `is`, so that they can be keys and in lists.

        Raises TypeError for numbers and arrays: there the entries would be meant, and False would be no answer.
        """
        if isinstance(other, Tensor):
            return self is other
        if isinstance(other, numbers.Number | np.generic | list | tuple) or backend.is_array(other):
            raise TypeError(
                f"== between a Tensor and {_with_article(other)} is not defined: compare the entries of x.data"
            )
        return NotImplemented

    __hash__ = object.__hash__

    # Comparisons have no gradient: they give Boolean arrays, as masks and conditions are.
    def __lt__(self, other: Tensor | float | Array) -> Array:
        return self.data < self._comparable(other)

    def __le__(self, other: Tensor | float | Array) -> Array:
        return self.data <= self._comparable(other)

    def __gt__(self, other: Tensor | float | Array) -> Array:
        return self.data > self._comparable(other)

    def __ge__(self, other: Tensor | float | Array) -> Array:
        return self.data >= self._comparable(other)

    def _comparable(self, other: object) -> Any:
        """What the entries are compared with. Raises TypeError unless it is a number, or an array here or a Tensor."""
        if isinstance(other, Tensor):
            other = other.data
        if isinstance(other, numbers.Real | np.generic) or type(other) is type(self.data):
            return other
        raise TypeError(f"a Tensor on {self.backend} does not compare with {_with_article(other)}")

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        """What `numpy.asarray(tensor)` gives. Raises TypeError if that would lose a gradient."""
        if self.requires_grad:
            raise TypeError(
                "a Tensor that requires a gradient does not become an array by itself, because the gradient "
                "would end there: say tensor.numpy()"
            )
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """A leaf with a copy of the data and of the gradient. Raises RuntimeError for the output of an operation,
        as its graph, and the arrays that the graph saved, cannot be there twice."""
        if self.node is not None:
            raise RuntimeError(
                f"deepcopy of the output of {self.node.op}: only leaves can be copied; use tensor.detach() first"
            )
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin._set(copy.deepcopy(self.data, memo), self.requires_grad)
        twin.grad = copy.deepcopy(self.grad, memo)
        if hasattr(self, "__dict__"):  # of a subclass
            twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    # --- Leaving the graph -------------------------------------------------------------------------------

    def numpy(self) -> np.ndarray:
        """The data as a NumPy array; on the CPU it is the tensor's own memory, not a copy."""
        return backend.to_numpy(self.data)

    def item(self) -> float:
        """The one entry of a tensor of size 1, as a Python float.

        Raises ValueError if there are more or fewer entries.
        """
        if self.size != 1:
            raise ValueError(f"item() needs a tensor with one entry, this one has shape {self.shape}")
        return float(self.numpy().reshape(()))

    def __float__(self) -> float:
        return self.item()

    def detach(self) -> Tensor:
        """The same data as a tensor without a past: gradients stop here."""
        return Tensor.wrap(self.data)

    # --- Gradients ---------------------------------------------------------------------------------------

    def retain_grad(self) -> Tensor:
        """Keep this tensor's gradient in `.grad` even if it is the output of an operation."""
        if self.node is not None:
            self.node.retained = self
        return self

    def zero_grad(self) -> None:
        """Forget the gradient."""
        self.grad = None

    def register_post_accumulate_grad_hook(self, hook: Hook) -> HookHandle:
        """Call `hook(tensor)` in each `backward()`, as soon as this leaf's gradient is complete and in `.grad`.

        Name and meaning are PyTorch's. `backward()` goes on when the hook returns; what the hook raises ends
        it, and then some leaves have their gradients and others do not. For a leaf without a gradient no hook
        is called. `remove()` of the returned handle takes the hook away. A copy of the tensor has no hooks.
        Raises RuntimeError for the output of an operation, or a tensor that does not require a gradient.
        """
        if self.node is not None or not self.requires_grad:
            what = "requires no gradient" if self.node is None else f"is the output of {self.node.op}"
            raise RuntimeError(
                f"register_post_accumulate_grad_hook: expected a leaf that requires a gradient; this tensor {what}"
            )
        return HookHandle(self, hook)

    def backward(self, gradient: Tensor | ArrayLike | None = None) -> None:
        """Add the gradient of this tensor to `.grad` of every leaf that it was computed from.

        gradient: the cotangent dy, of the shape of this tensor; for a tensor with one entry it may be left
            out, and is then 1.

        The graph is freed on the way. Raises RuntimeError if there is no graph, or it has been freed;
        ValueError if `gradient` has another shape or is missing.
        """
        if not self.requires_grad:
            why = "none of its inputs has requires_grad=True, or it was computed under no_grad()"
            if not is_grad_enabled():
                why = (
                    "recording is off here (is_grad_enabled() is False): compute it again outside of no_grad(); "
                    "where there is none, a Ctrl-C has cut one short, and Python has to start anew"
                )
            raise RuntimeError(f"backward() on a tensor that does not require a gradient: {why}")
        walk_back(self.node or self, self._cotangent(gradient))

    def _cotangent(self, gradient: Tensor | ArrayLike | None) -> Array:
        if gradient is None:
            if self.size != 1:
                raise ValueError(
                    f"backward() of a tensor of shape {self.shape} needs a gradient of that shape; "
                    "without one, only a tensor with one entry can be differentiated"
                )
            return backend.of(self.data).asarray(np.ones(self.shape, self.dtype))
        if isinstance(gradient, Tensor):
            gradient = gradient.data
        given = backend.of(self.data).asarray(gradient)
        if given.dtype.kind not in "fiub":
            raise TypeError(f"backward(): the gradient must be of numbers, got dtype {given.dtype}")
        array = given.astype(self.dtype, copy=False)
        if array.shape != self.shape:
            raise ValueError(f"backward(): the gradient has shape {array.shape}, the tensor {self.shape}")
        return array

    # --- Moving ------------------------------------------------------------------------------------------

    def to(self, name: str) -> Tensor:
        """This tensor on the backend called `name`; itself if it is there already. Gradients flow back.

        Raises BackendError if there is no such backend here.
        """
        source, target = backend.of(self.data), backend.get(name)
        if source is target:
            return self

        def backward(dy: Array) -> tuple[Array]:
            return (_move(dy, source),)

        return Tensor.from_op(_move(self.data, target), (self,), backward)

    # --- Operators and methods: declared here, bound to the operations in minigrad/ops/__init__.py -------

    __add__: ClassVar[Op]
    __radd__: ClassVar[Op]
    __sub__: ClassVar[Op]
    __rsub__: ClassVar[Op]
    __mul__: ClassVar[Op]
    __rmul__: ClassVar[Op]
    __truediv__: ClassVar[Op]
    __rtruediv__: ClassVar[Op]
    __pow__: ClassVar[Op]
    __rpow__: ClassVar[Op]
    __neg__: ClassVar[Op]
    __abs__: ClassVar[Op]
    __matmul__: ClassVar[Op]
    __rmatmul__: ClassVar[Op]
    __getitem__: ClassVar[Op]
    __array_ufunc__: ClassVar[Callable[..., Any]]
    __array_function__: ClassVar[Callable[..., Any]]
    abs: ClassVar[Op]
    argmax: ClassVar[Callable[..., Array]]
    argmin: ClassVar[Callable[..., Array]]
    astype: ClassVar[Op]
    clip: ClassVar[Op]
    cos: ClassVar[Op]
    cumsum: ClassVar[Op]
    exp: ClassVar[Op]
    expand: ClassVar[Op]
    flip: ClassVar[Op]
    log: ClassVar[Op]
    log_softmax: ClassVar[Op]
    logsumexp: ClassVar[Op]
    masked_fill: ClassVar[Op]
    max: ClassVar[Op]
    mean: ClassVar[Op]
    min: ClassVar[Op]
    permute: ClassVar[Op]
    prod: ClassVar[Op]
    relu: ClassVar[Op]
    reshape: ClassVar[Op]
    sigmoid: ClassVar[Op]
    sin: ClassVar[Op]
    softmax: ClassVar[Op]
    sqrt: ClassVar[Op]
    squeeze: ClassVar[Op]
    std: ClassVar[Op]
    sum: ClassVar[Op]
    swapaxes: ClassVar[Op]
    tanh: ClassVar[Op]
    transpose: ClassVar[Op]
    tril: ClassVar[Op]
    triu: ClassVar[Op]
    unsqueeze: ClassVar[Op]
    var: ClassVar[Op]


def float_dtype(wanted: DTypeLike | None, given: np.dtype) -> np.dtype:
    """The dtype that a tensor gets from data of dtype `given`, if `wanted` is asked for."""
    if given.kind not in "fiub":
        raise TypeError(f"a Tensor holds numbers; got data of dtype {given}")
    if wanted is None:
        # by name: in this machine's byte order
        return np.dtype(given.name if given.name in FLOATS else "float32")
    if np.dtype(wanted).name not in FLOATS:
        raise TypeError(f"a Tensor holds {', '.join(FLOATS)}; got dtype {np.dtype(wanted).name}")
    return np.dtype(np.dtype(wanted).name)


def _with_article(value: object) -> str:
    """What a value is, in an error message: "an array of shape (2, 3)", "a float"."""
    if backend.is_array(value):
        return f"an array of shape {value.shape}"
    name = type(value).__name__
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


def _move(array: Array, target: ModuleType) -> Array:
    return target.asarray(backend.to_numpy(array))


class _Module(ModuleType):
    """This module, for who calls it as PyTorch's `torch.tensor`."""

    def __call__(self, *_: object, **__: object) -> None:
        raise TypeError("minigrad.tensor is a module: write minigrad.Tensor(…)")


sys.modules[__name__].__class__ = _Module
