"""A stand-in for CuPy, so that `minigrad/backend/cupy.py` runs where there is no GPU.

`install()` puts modules called `cupy` and `cupyx` into `sys.modules`. Their `ndarray` wraps a NumPy array and
is as strict as CuPy's about what it meets: it does not mix with NumPy arrays, does not turn into one by
itself, and its reductions give arrays without axes, never scalars. It is stricter in two points: a NumPy
function applied to it raises (CuPy would hand over to its own), and so does a NumPy array as an index. Only
names are here that CuPy has; `tests/test_backend.py` checks that where CuPy is installed. What the stand-in
cannot show is what only a device does: wrapped indices, other rounding, waiting.
"""

from __future__ import annotations

import math
import sys
from types import ModuleType
from typing import Any

import numpy as np

# Functions that do on the device what NumPy's do on the host.
FUNCTIONS = """
    abs add all any arange argmax argmin argsort broadcast_to clip concatenate copysign cos cumsum dot
    empty empty_like equal exp expand_dims flatnonzero full full_like isfinite isnan log matmul max
    maximum mean min minimum multiply negative nonzero ones ones_like pad power repeat reshape sign sin
    sqrt square stack subtract sum swapaxes take tanh tile transpose unique var vdot where zeros
    zeros_like
""".split()  # noqa: SIM905
# Functions that answer on the host.
HOST_FUNCTIONS = ["may_share_memory"]
# Types and constants, NumPy's own in CuPy too.
CONSTANTS = """
    bool_ float16 float32 float64 inf int8 int16 int32 int64 nan newaxis pi uint8 uint16 uint32 uint64
""".split()  # noqa: SIM905
# What is written below.
OWN = ["array", "asarray", "ascontiguousarray", "asnumpy", "cuda", "is_available", "ndarray"]

METHODS = """
    all any argmax argmin argsort astype clip copy cumsum dot fill flatten max mean min nonzero prod
    ravel repeat reshape round sort squeeze std sum swapaxes take transpose var view
""".split()  # noqa: SIM905
HOST_METHODS = ["item", "tolist"]
PROPERTIES = ["dtype", "flags", "itemsize", "nbytes", "ndim", "shape", "size", "strides"]
OPERATORS = """
    add sub mul truediv floordiv mod pow matmul and or xor lshift rshift
""".split()  # noqa: SIM905
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]
UNARY = ["neg", "pos", "abs", "invert"]

SCALARS = (bool, int, float, np.generic)


class ndarray:
    """An array on the pretended device: a NumPy array that nobody else can reach."""

    __slots__ = ("__weakref__", "_host")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: np.ndarray) -> None:
        self._host = host

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`.")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise TypeError(f"numpy.{function.__name__} was given an array of the device")

    def __getitem__(self, index: Any) -> ndarray:
        return _wrap(self._host[_unwrap(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self._host[_unwrap(index)] = _unwrap(value)

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self._host)

    def __int__(self) -> int:
        return int(self._host)

    def __float__(self) -> float:
        return float(self._host)

    def __repr__(self) -> str:
        return repr(self._host)

    @property
    def T(self) -> ndarray:
        return ndarray(self._host.T)

    @property
    def base(self) -> ndarray | None:
        return None if self._host.base is None else ndarray(self._host.base)

    def get(self) -> np.ndarray:
        return self._host.copy()


ndarray.__module__ = "cupy"


def _unwrap(value: Any) -> Any:
    """The host's side of an argument; a NumPy array among the arguments is what CuPy refuses."""
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    if isinstance(value, tuple | list):
        return type(value)(_unwrap(one) for one in value)
    return value


def _wrap(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ndarray(value)
    if isinstance(value, np.generic):
        return ndarray(np.asarray(value))
    if isinstance(value, tuple | list):
        return type(value)(_wrap(one) for one in value)
    return value


def _method(name: str) -> Any:
    def method(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        kwargs = {key: _unwrap(value) for key, value in kwargs.items()}
        with np.errstate(all="ignore"):  # a device does not warn
            return _wrap(getattr(self._host, name)(*_unwrap(args), **kwargs))

    return method


def _operator(name: str, in_place: bool = False) -> Any:
    def operator(self: ndarray, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            raise TypeError(f"Unsupported type {type(other)}")
        if not isinstance(other, (ndarray, *SCALARS)):
            return NotImplemented
        with np.errstate(all="ignore"):
            result = getattr(self._host, name)(_unwrap(other))
        return self if in_place else _wrap(result)

    return operator


def _host_method(name: str) -> Any:
    return lambda self, *args: getattr(self._host, name)(*args)


def _function(name: str) -> Any:
    function = getattr(np, name)

    def on_device(*args: Any, **kwargs: Any) -> Any:
        kwargs = {key: _unwrap(value) for key, value in kwargs.items()}
        with np.errstate(all="ignore"):
            return _wrap(function(*_unwrap(args), **kwargs))

    on_device.__name__ = name
    return on_device


for _name in METHODS:
    setattr(ndarray, _name, _method(_name))
for _name in HOST_METHODS:
    setattr(ndarray, _name, _host_method(_name))
for _name in PROPERTIES:
    setattr(ndarray, _name, property(lambda self, name=_name: getattr(self._host, name)))
for _name in UNARY:
    setattr(ndarray, f"__{_name}__", _method(f"__{_name}__"))
for _name in COMPARISONS:
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))
for _name in OPERATORS:
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(ndarray, f"__r{_name}__", _operator(f"__r{_name}__"))
    if _name != "matmul":
        setattr(ndarray, f"__i{_name}__", _operator(f"__i{_name}__", in_place=True))


def array(values: Any, dtype: Any = None, order: str = "K") -> ndarray:
    """A copy on the device, of values from anywhere."""
    host = values._host if isinstance(values, ndarray) else values
    return ndarray(np.array(host, dtype=dtype, order=order))


def asarray(values: Any, dtype: Any = None) -> ndarray:
    """`values` itself if they are on the device in this dtype already."""
    if isinstance(values, ndarray) and (dtype is None or values.dtype == dtype):
        return values
    return array(values, dtype)


def ascontiguousarray(values: Any, dtype: Any = None) -> ndarray:
    """As `asarray`, and in C order."""
    values = asarray(values, dtype)
    return values if values.flags.c_contiguous else ndarray(np.ascontiguousarray(values._host))


def asnumpy(values: Any) -> np.ndarray:
    """A copy on the host."""
    return values.get() if isinstance(values, ndarray) else np.asarray(values)


def scatter_add(a: ndarray, slices: Any, value: Any) -> None:
    """`a[slices] += value`, entries named twice counted twice: for the types that CUDA can add atomically."""
    if a.dtype.name not in ("int32", "float16", "float32", "float64", "uint32", "uint64"):
        raise TypeError(f"scatter_add does not support {a.dtype}")
    np.add.at(a._host, _unwrap(slices), _unwrap(value))


ERF_TYPES = {"float16": "float64", "float32": "float32", "float64": "float64"}
_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: ndarray) -> ndarray:
    """The error function, in the types in which CuPy gives it."""
    return ndarray(np.asarray(_erf(_unwrap(x)), dtype=ERF_TYPES[x.dtype.name]))


class _Stream:
    def synchronize(self) -> None:
        """There is nothing to wait for."""


def install() -> None:
    """From now on, `import cupy` and `import cupyx` find the stand-in."""
    modules = {
        name: ModuleType(name)
        for name in ("cupy", "cupy.cuda", "cupyx", "cupyx.scipy", "cupyx.scipy.special")
    }
    cupy, cuda = modules["cupy"], modules["cupy.cuda"]
    for name in FUNCTIONS:
        setattr(cupy, name, _function(name))
    for name in HOST_FUNCTIONS:
        setattr(cupy, name, lambda *args, name=name: getattr(np, name)(*_unwrap(args)))
    for name in CONSTANTS:
        setattr(cupy, name, getattr(np, name))
    for function in (array, asarray, ascontiguousarray, asnumpy, ndarray):
        setattr(cupy, function.__name__, function)
    cupy.is_available = lambda: True  # type: ignore[attr-defined]
    cupy.cuda = cuda  # type: ignore[attr-defined]
    cuda.get_current_stream = _Stream  # type: ignore[attr-defined]
    modules["cupyx"].scatter_add = scatter_add  # type: ignore[attr-defined]
    modules["cupyx"].scipy = modules["cupyx.scipy"]  # type: ignore[attr-defined]
    modules["cupyx.scipy"].special = modules["cupyx.scipy.special"]  # type: ignore[attr-defined]
    modules["cupyx.scipy.special"].erf = erf  # type: ignore[attr-defined]
    cupy._is_standin = True  # type: ignore[attr-defined]
    sys.modules.update(modules)
