"""A stand-in for CuPy, so that `minigrad/backend/cupy.py` runs where there is no GPU.

`install()` puts modules called `cupy` and `cupyx` into `sys.modules`. Their `ndarray` wraps a NumPy array and
is as strict as CuPy's about what it meets: it does not mix with NumPy arrays, does not turn into one by
itself, and its reductions give arrays without axes, never scalars. It is stricter in two points: a NumPy
function applied to it raises (CuPy would hand over to its own), and so does a NumPy array as an index. Only
names are here that CuPy has; `tests/backend/test_cuda.py` checks that where CuPy is installed.

Kernels written in CUDA run: g++ compiles them against `fake_cuda.hpp`, where each thread of a block is a
fiber. A launch is stricter than CuPy's, which passes pointers and numbers on as they are: arrays have to be
contiguous and of the parameter's type. Without g++, tests that need a kernel are skipped.

What the stand-in cannot show is what only a device does: wrapped indices, other rounding, waiting, speed.
"""

from __future__ import annotations

import ctypes
import functools
import getpass
import hashlib
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

# Functions that do on the device what NumPy's do on the host.
FUNCTIONS = """
    abs add all any arange argmax argmin argsort broadcast_to clip concatenate copysign cos cumsum dot
    equal exp expand_dims flatnonzero flip full full_like isfinite isnan log matmul max
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
OWN = """
    RawModule array asarray ascontiguousarray asnumpy cuda empty empty_like is_available ndarray
""".split()  # noqa: SIM905

METHODS = """
    all any argmax argmin argsort astype clip copy cumprod cumsum dot fill flatten max mean min nonzero prod
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

    @property
    def data(self) -> SimpleNamespace:
        return SimpleNamespace(ptr=self._host.ctypes.data)

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
        # As exact as a device's tree
        if name == "sum" and self.dtype == np.float32 and "dtype" not in kwargs:
            wide = self._host.sum(*_unwrap(args), **kwargs, dtype=np.float64)
            return _wrap(np.asarray(wide, np.float32))
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
    """As `asarray`, and in C order; an array without axes gets one, as CuPy does it."""
    values = asarray(values, dtype)
    if not values.ndim:
        return ndarray(values._host.reshape(1))
    return values if values.flags.c_contiguous else ndarray(np.ascontiguousarray(values._host))


def empty(shape: Any, dtype: Any = np.float64) -> ndarray:
    """Memory with rubbish in it."""
    host = np.empty(shape, dtype)
    host.view().reshape(-1).view(np.uint8).fill(0x7F)  # 3e38 in float32
    return ndarray(host)


def empty_like(a: ndarray) -> ndarray:
    """As `empty`, in the shape and dtype of `a`."""
    return ndarray(np.empty_like(a._host))


def asnumpy(values: Any) -> np.ndarray:
    """A copy on the host."""
    return values.get() if isinstance(values, ndarray) else np.asarray(values)


def add_at(a: ndarray, slices: Any, value: Any) -> None:
    """`a[slices] += value`, entries named twice counted twice: for the types that CUDA can add atomically."""
    if a.dtype.name not in ("int32", "int64", "float16", "float32", "float64", "uint32", "uint64"):
        raise TypeError(f"add.at does not support {a.dtype}")
    np.add.at(a._host, _unwrap(slices), _unwrap(value))


ERF_TYPES = {"float16": "float64", "float32": "float32", "float64": "float64"}
_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: ndarray) -> ndarray:
    """The error function, in the types in which CuPy gives it."""
    return ndarray(np.asarray(_erf(_unwrap(x)), dtype=ERF_TYPES[x.dtype.name]))


# --- Kernels ---------------------------------------------------------------------------------------------

FAKE_CUDA = Path(__file__).with_name("fake_cuda.hpp")
# NumPy's, and those of fake_cuda.hpp
LETTERS = {"f": "f", "d": "d", "i": "i", "l": "q", "q": "q", "H": "H", "?": "?"}

PYTHON_LETTERS = {int: "q", float: "d", bool: "?"}
REFUSED: dict[str, str] = {}  # sources that do not compile, so that not every test tries again


@functools.cache
def compiled(code: str, names: tuple[str, ...]) -> ctypes.PyDLL:
    """The kernels called `names` of a CUDA source, compiled for the CPU; kept in the temporary folder."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("running CUDA kernels on the CPU needs g++")
    code = re.sub(r"__shared__ (\w+ (\w+)[^;]*;)", r"static \1 fake::shared(&\2, sizeof \2);", code)
    kernels = "".join(f'fake::make("{name}", {name}),\n' for name in names)
    source = f'#include "{FAKE_CUDA}"\n{code}\nstd::vector<fake::Kernel> fake::kernels = {{\n{kernels}}};\n'
    command = [compiler, "-std=c++20", "-O2", "-U_FORTIFY_SOURCE", "-shared", "-fPIC", "-x", "c++", "-"]
    key = hashlib.sha256("\0".join([*command, source, FAKE_CUDA.read_text("utf-8")]).encode()).hexdigest()
    folder = Path(tempfile.gettempdir()) / f"minigrad-fake-cuda-{getpass.getuser()}"
    library = folder / f"{key[:16]}.so"
    if code not in REFUSED and not library.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        new = folder / f"{key[:16]}-{os.getpid()}.so"  # nobody loads half a file
        done = subprocess.run([*command, "-o", new], input=source, capture_output=True, text=True)
        if done.returncode:
            REFUSED[code] = f"g++ does not take the kernels:\n{done.stderr}"
        else:
            new.replace(library)
    if code in REFUSED:
        raise RuntimeError(REFUSED[code])
    loaded = ctypes.PyDLL(str(library))  # which keeps the interpreter's lock: there is one set of fibers
    loaded.fake_parameters.restype = loaded.fake_launch.restype = ctypes.c_char_p
    return loaded


class RawModule:
    """CUDA source whose kernels run on the CPU."""

    def __init__(self, *, code: str, options: tuple[str, ...] = (), name_expressions: Any = ()) -> None:
        self._code, self._names = code, tuple(name_expressions)

    def get_function(self, name: str) -> RawKernel:
        """A kernel, by one of the `name_expressions`."""
        library = compiled(self._code, self._names)
        parameters = library.fake_parameters(name.encode())
        if parameters is None:
            raise RuntimeError(f"there is no kernel {name}")
        return RawKernel(library, name, parameters.decode())


class RawKernel:
    """A kernel: called with the sizes of grid and block, and its arguments."""

    def __init__(self, library: ctypes.PyDLL, name: str, parameters: str) -> None:
        self._library, self._name = library, name
        self._parameters = re.findall(r"\*?.", parameters)  # "*fqd" -> "*f", "q", "d"
        slots = [p if p in ("d", "?") else "q" for p in self._parameters]  # an address is an integer too
        self._pack = struct.Struct("@" + "0q".join([*slots, ""]))  # each from a multiple of 8 bytes on

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...]) -> None:
        (gx, gy, gz), (bx, by, bz) = (tuple(max(1, n) for n in (*sizes, 1, 1)[:3]) for sizes in (grid, block))
        if bx * by * bz > 1024 or gx >= 2**31 or max(gy, gz) > 65535:
            raise RuntimeError(f"{self._name}: CUDA has no grid {grid} of blocks {block}")
        hosts = [a._host if isinstance(a, ndarray) else None for a in args]
        given = [
            _letter(a) if host is None else f"*{LETTERS[host.dtype.char]}"
            for a, host in zip(args, hosts, strict=True)
        ]
        if given != self._parameters:
            raise TypeError(f"{self._name}: expected arguments {self._parameters}, got {given}")
        if not all(host is None or host.flags.c_contiguous for host in hosts):
            raise ValueError(f"{self._name}: an array is not contiguous")
        values = [
            a if host is None else host.__array_interface__["data"][0]
            for a, host in zip(args, hosts, strict=True)
        ]
        packed = self._pack.pack(*values)
        error = self._library.fake_launch(self._name.encode(), gx, gy, gz, bx, by, bz, packed)
        if error:
            raise RuntimeError(f"{self._name}: {error.decode()}")


def _letter(number: Any) -> str:
    """The type in which CuPy hands a number on: Python's int as int64, float as float64, bool as a byte."""
    return PYTHON_LETTERS.get(type(number)) or LETTERS[np.array(number).dtype.char]


COMPUTED_WITH: list[int] = []  # the arithmetic that each product asked for


def _gemm_strided_batched_ex(
    handle: int, transa: int, transb: int, m: int, n: int, k: int,
    alpha: int, a: int, a_type: int, lda: int, stride_a: int,
    b: int, b_type: int, ldb: int, stride_b: int,
    beta: int, c: int, c_type: int, ldc: int, stride_c: int,
    batch: int, compute: int, algo: int,
) -> None:  # fmt: skip
    """cuBLAS's C = op(A) op(B) for a stack of matrices, each stored column by column."""
    dtype = {0: np.float32, 1: np.float64}[c_type]
    scalars = [
        np.frombuffer((ctypes.c_byte * dtype().itemsize).from_address(p), dtype) for p in (alpha, beta)
    ]
    assert scalars == [1, 0]
    assert a_type == b_type
    assert c_type == (1 if a_type == 1 else 0)  # 16-bit operands have float32 products
    allowed = {
        0: (CUBLAS.CUBLAS_COMPUTE_32F, CUBLAS.CUBLAS_COMPUTE_32F_FAST_TF32),
        1: (CUBLAS.CUBLAS_COMPUTE_64F,),
    }
    assert compute in allowed.get(a_type, (CUBLAS.CUBLAS_COMPUTE_32F,))
    COMPUTED_WITH.append(compute)
    stored = {0: np.float32, 1: np.float64, 2: np.float16, 14: np.uint16}

    def matrices(
        address: int, kind: int, rows: int, columns: int, leading: int, stride: int, turned: bool = False
    ) -> np.ndarray:
        rows, columns = (columns, rows) if turned else (rows, columns)
        assert leading >= rows
        size = (batch - 1) * stride + (columns - 1) * leading + rows
        itemsize = np.dtype(stored[kind]).itemsize
        memory = (ctypes.c_byte * (size * itemsize)).from_address(address)
        strides = np.array([stride, 1, leading]) * itemsize
        flat = np.frombuffer(memory, stored[kind])
        found = np.lib.stride_tricks.as_strided(flat, (batch, rows, columns), strides.tolist())
        return found.swapaxes(1, 2) if turned else found

    def values(found: np.ndarray) -> np.ndarray:
        """Numbers whose products are exact: bfloat16s are the upper halves of float32s."""
        if found.dtype == np.uint16:
            return (found.astype(np.uint32) << 16).view(np.float32)
        return found.astype(dtype)

    left = values(matrices(a, a_type, m, k, lda, stride_a, bool(transa)))
    right = values(matrices(b, b_type, k, n, ldb, stride_b, bool(transb)))
    with np.errstate(all="ignore"):
        matrices(c, c_type, m, n, ldc, stride_c)[...] = left @ right


CUBLAS = SimpleNamespace(
    gemmStridedBatchedEx=_gemm_strided_batched_ex,
    CUBLAS_COMPUTE_32F=68,
    CUBLAS_COMPUTE_32F_FAST_TF32=77,
    CUBLAS_COMPUTE_64F=70,
    CUBLAS_GEMM_DEFAULT=-1,
)
RUNTIME = SimpleNamespace(CUDA_R_32F=0, CUDA_R_64F=1, CUDA_R_16F=2)


class _Device:
    compute_capability = "70"  # no TF32


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
    for function in (array, asarray, ascontiguousarray, asnumpy, empty, empty_like, ndarray, RawModule):
        setattr(cupy, function.__name__, function)
    cupy.add.at = add_at  # type: ignore[attr-defined]
    cupy.is_available = lambda: True  # type: ignore[attr-defined]
    cupy.cuda = cuda  # type: ignore[attr-defined]
    cuda.get_current_stream = _Stream  # type: ignore[attr-defined]
    cuda.Device = _Device  # type: ignore[attr-defined]
    cuda.get_cublas_handle = lambda: 0  # type: ignore[attr-defined]
    cuda.cublas, cuda.runtime = CUBLAS, RUNTIME  # type: ignore[attr-defined]
    modules["cupyx"].scipy = modules["cupyx.scipy"]  # type: ignore[attr-defined]
    modules["cupyx.scipy"].special = modules["cupyx.scipy.special"]  # type: ignore[attr-defined]
    modules["cupyx.scipy.special"].erf = erf  # type: ignore[attr-defined]
    cupy._is_standin = True  # type: ignore[attr-defined]
    sys.modules.update(modules)
