"""A stand-in for CuPy, so that `minigrad/backend/cupy.py` runs where there is no GPU.

`install()` puts modules called `cupy` and `cupyx` into `sys.modules`. Their `ndarray` wraps a NumPy array and
is as strict as CuPy's about what it meets: it does not mix with NumPy arrays, does not turn into one by
itself, and its reductions give arrays without axes, never scalars. It is stricter in two points: a NumPy
function applied to it raises (CuPy would hand over to its own), and so does a NumPy array as an index. Only
names are here that CuPy has; `tests/backend/test_cuda.py` checks that where CuPy is installed.

Kernels written in CUDA run: g++ compiles them against `fake_cuda.hpp`, where each thread of a block is a
fiber. A launch is stricter than CuPy's, which passes pointers and numbers on as they are: arrays have to be
contiguous and of the parameter's type. Without g++, tests that need a kernel are skipped.

A graph is recorded as on a device: nothing is computed, no array comes in, and nothing is read (`Recording`). A launch
does the work again with the numbers and addresses of the recording, after all that it computes has been spoiled: so a
number that should have been another one by now gives wrong results here too.

What the stand-in cannot show is what only a device does: wrapped indices, other rounding, waiting, speed.
"""

from __future__ import annotations

import contextlib
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
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

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
        index = _unwrap(index)
        if any(
            getattr(part, "dtype", None) == np.dtype(bool)
            for part in (index if isinstance(index, tuple) else (index,))
        ):
            _not_while_recording("a boolean index")
        return _computed(lambda: self._host[index], self._host)

    def __setitem__(self, index: Any, value: Any) -> None:
        index, value = _unwrap(index), _unwrap(value)
        _in_place(lambda: self._host.__setitem__(index, value))

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self.get())

    def __int__(self) -> int:
        return int(self.get())

    def __float__(self) -> float:
        return float(self.get())

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
        def copy_from_host_async(address: int, size: int, stream: Any) -> None:
            assert size == self._host.nbytes
            _not_while_recording("H2D transfers")
            ctypes.memmove(self._host.ctypes.data, address, size)

        return SimpleNamespace(ptr=self._host.ctypes.data, copy_from_host_async=copy_from_host_async)

    def get(self) -> np.ndarray:
        _not_while_recording("D2H transfers")
        return self._host.copy()

    def set(self, values: np.ndarray) -> None:
        _not_while_recording("H2D transfers")
        assert (values.shape, values.dtype) == (self.shape, self.dtype)
        self._host[...] = values


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


class Recording:
    """The work that a stream has been given since `begin_capture`, and the arrays that it makes."""

    def __init__(self) -> None:
        self.work: list[Callable[[], object]] = []
        # in the memory of a pool, which takes it back and gives it out again
        self.made: list[np.ndarray] = []
        self.outside: list[tuple[weakref.ref[ndarray], np.ndarray]] = []  # of any pool, and who still has it

    def spoil(self) -> None:
        """Leave rubbish in all that has been made, but in what is outside of the pools and has been kept."""
        for array in self.made + [host for ref, host in self.outside if ref() is None]:
            _spoil(array)


RECORDING: list[Recording] = []  # the one that is going on
POOLED = [True]  # whether memory comes from a pool; the last one counts


@contextlib.contextmanager
def using_allocator(malloc: Any = None) -> Any:
    """None: CUDA's own, without a pool."""
    POOLED.append(malloc is not None)
    try:
        yield
    finally:
        POOLED.pop()


NOBODYS = 0x7F7F7F7F7F7F7F7F  # an integer in memory that has been spoiled


def _spoil(host: np.ndarray) -> None:
    host.view().reshape(-1).view(np.uint8).fill(0x7F)  # 3e38 in float32


def _not_while_recording(what: str) -> None:
    if RECORDING and what in PRODUCTS:
        raise NotImplementedError("calling cuBLAS API during stream capture is currently unsupported")
    if RECORDING:
        raise RuntimeError(f"the current stream is capturing, so {what} are disallowed")


def _computed(compute: Callable[[], Any], *sources: Any) -> Any:
    """What `compute` gives from `sources`, as arrays of the device; noted, while a graph is recorded, unless a view."""
    with np.errstate(all="ignore"):  # a device does not warn
        result = compute()
    wrapped = _wrap(result)
    if RECORDING and isinstance(wrapped, ndarray):
        host = wrapped._host
        if not any(isinstance(one, np.ndarray) and np.may_share_memory(one, host) for one in _flat(sources)):
            RECORDING[-1].work.append(lambda: np.copyto(host, compute()))
            RECORDING[-1].made.append(host)
    return wrapped


def _in_place(work: Callable[[], object]) -> None:
    """Work that changes an array: done now, or noted."""
    if RECORDING:
        RECORDING[-1].work.append(work)
    else:
        with np.errstate(all="ignore"):
            work()


def _flat(values: Any) -> list[Any]:
    return [one for value in values for one in (_flat(value) if isinstance(value, tuple | list) else [value])]


IN_PLACE = ("fill", "sort")
PRODUCTS = ("__matmul__", "__rmatmul__", "dot", "matmul", "vdot")
WAITING = ("flatnonzero", "nonzero", "unique")  # for the size of the result
REFUSED_IN_A_GRAPH = (*PRODUCTS, *WAITING)


def _method(name: str) -> Any:
    def method(self: ndarray, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = _unwrap(args), {key: _unwrap(value) for key, value in kwargs.items()}
        if name in REFUSED_IN_A_GRAPH:
            _not_while_recording(name)
        if name in IN_PLACE:
            return _in_place(lambda: getattr(self._host, name)(*args, **kwargs))
        # As exact as a device's tree
        if name == "sum" and self.dtype == np.float32 and "dtype" not in kwargs:
            return _computed(
                lambda: np.asarray(self._host.sum(*args, **kwargs, dtype=np.float64), np.float32), self._host
            )
        return _computed(lambda: getattr(self._host, name)(*args, **kwargs), self._host)

    return method


def _operator(name: str, in_place: bool = False) -> Any:
    def operator(self: ndarray, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            raise TypeError(f"Unsupported type {type(other)}")
        if not isinstance(other, (ndarray, *SCALARS)):
            return NotImplemented
        value = _unwrap(other)
        if name in REFUSED_IN_A_GRAPH:
            _not_while_recording(name)
        if in_place:
            _in_place(lambda: getattr(self._host, name)(value))
            return self
        return _computed(lambda: getattr(self._host, name)(value), self._host, value)

    return operator


def _host_method(name: str) -> Any:
    return lambda self, *args: getattr(self.get(), name)(*args)


def _function(name: str) -> Any:
    function = getattr(np, name)

    def on_device(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out")
        args, kwargs = _unwrap(args), {key: _unwrap(value) for key, value in kwargs.items()}
        if name in REFUSED_IN_A_GRAPH:
            _not_while_recording(name)
        if name in ("concatenate", "stack") and len(args[0]) > 8:  # then CuPy makes a table of them
            _not_while_recording("H2D transfers")
        if out is not None:
            _in_place(lambda: function(*args, **kwargs))
            return out
        return _computed(lambda: function(*args, **kwargs), *args)

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
    if host is values and np.ndim(host):
        _not_while_recording("H2D transfers")
    fixed = host if host is not values else np.array(host)  # a number is noted as it is now
    return _computed(lambda: np.array(fixed, dtype=dtype, order=order))


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
    return values if values.flags.c_contiguous else _computed(lambda: np.ascontiguousarray(values._host))


def empty(shape: Any, dtype: Any = np.float64) -> ndarray:
    """Memory with rubbish in it."""
    host = np.empty(shape, dtype)
    _spoil(host)
    array = ndarray(host)
    if RECORDING and POOLED[-1]:
        RECORDING[-1].made.append(host)
    elif RECORDING:
        RECORDING[-1].outside.append((weakref.ref(array), host))
    return array


def empty_like(a: ndarray) -> ndarray:
    """As `empty`, in the shape and dtype of `a`."""
    return empty(a.shape, a.dtype)


def asnumpy(values: Any) -> np.ndarray:
    """A copy on the host."""
    return values.get() if isinstance(values, ndarray) else np.asarray(values)


def add_at(a: ndarray, slices: Any, value: Any) -> None:
    """`a[slices] += value`, entries named twice counted twice: for the types that CUDA can add atomically."""
    if a.dtype.name not in ("int32", "int64", "float16", "float32", "float64", "uint32", "uint64"):
        raise TypeError(f"add.at does not support {a.dtype}")
    index, values = _unwrap(slices), _unwrap(value)
    _in_place(lambda: np.add.at(a._host, index, values))


ERF_TYPES = {"float16": "float64", "float32": "float32", "float64": "float64"}
_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: ndarray) -> ndarray:
    """The error function, in the types in which CuPy gives it."""
    return _computed(lambda: np.asarray(_erf(x._host), dtype=ERF_TYPES[x.dtype.name]))


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

        def launch() -> None:
            if any(host is not None and host.dtype == np.int64 and (host == NOBODYS).any() for host in hosts):
                raise RuntimeError(f"{self._name}: an array has integers that nobody has written")
            error = self._library.fake_launch(self._name.encode(), gx, gy, gz, bx, by, bz, packed)
            if error:
                raise RuntimeError(f"{self._name}: {error.decode()}")

        _in_place(launch)


def _letter(number: Any) -> str:
    """The type in which CuPy hands a number on: Python's int as int64, float as float64, bool as a byte."""
    return PYTHON_LETTERS.get(type(number)) or LETTERS[np.array(number).dtype.char]


COMPUTED_WITH: list[int] = []  # the arithmetic that each product asked for


def _gemm_of_cupy(*arguments: Any) -> None:
    """CuPy's own call of cuBLAS."""
    _not_while_recording("matmul")
    _gemm_strided_batched_ex(*arguments)


def _gemm_strided_batched_ex(
    handle: Any, transa: int, transb: int, m: int, n: int, k: int,
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

    def multiply() -> None:
        left = values(matrices(a, a_type, m, k, lda, stride_a, bool(transa)))
        right = values(matrices(b, b_type, k, n, ldb, stride_b, bool(transb)))
        matrices(c, c_type, m, n, ldc, stride_c)[...] = left @ right

    _in_place(multiply)


class Cublas:
    """The library itself, as `minigrad.backend.cublas` calls it: on a handle's stream, with a workspace."""

    def __init__(self) -> None:
        self.places: dict[int, tuple[int, int]] = {}  # of each handle: its stream and its workspace

    def cublasCreate_v2(self, handle: Any) -> int:
        handle._obj.value = len(self.places) + 1
        self.places[handle._obj.value] = 0, 0
        return 0

    def cublasSetStream_v2(self, handle: Any, stream: int) -> int:
        self.places[handle.value] = stream, 0
        return 0

    def cublasSetWorkspace_v2(self, handle: Any, address: int, size: int) -> int:
        self.places[handle.value] = self.places[handle.value][0], address
        return 0

    def cublasGemmStridedBatchedEx(self, handle: Any, *arguments: Any) -> int:
        stream, workspace = self.places[handle.value]
        assert stream == _Stream.current[-1].ptr
        assert workspace
        _gemm_strided_batched_ex(handle, *arguments)
        return 0


CUBLAS = SimpleNamespace(
    gemmStridedBatchedEx=_gemm_of_cupy,
    CUBLAS_COMPUTE_32F=68,
    CUBLAS_COMPUTE_32F_FAST_TF32=77,
    CUBLAS_COMPUTE_64F=70,
    CUBLAS_GEMM_DEFAULT=-1,
)
RUNTIME = SimpleNamespace(CUDA_R_32F=0, CUDA_R_64F=1, CUDA_R_16F=2)


class _Device:
    compute_capability = "70"  # no TF32
    id = 0
    mem_info = 2**40, 2**40  # free, and in all

    def synchronize(self) -> None:
        _not_while_recording("waits")


class _Stream:
    """A stream, and its recording."""

    current: ClassVar[list[_Stream]] = []

    def __init__(self, non_blocking: bool = False) -> None:
        self.ptr = id(self) if non_blocking else 0

    def __enter__(self) -> None:
        self.current.append(self)

    def __exit__(self, *_: object) -> None:
        self.current.pop()

    def synchronize(self) -> None:
        """There is nothing to wait for."""
        _not_while_recording("waits")

    def begin_capture(self) -> None:
        assert self.ptr, "cannot capture on the default (legacy) stream"
        RECORDING.append(Recording())

    def end_capture(self) -> Graph:
        return Graph(RECORDING.pop())


_Stream.current.append(_Stream())


class MemoryPool:
    """What gives out the device's memory."""

    def malloc(self, size: int) -> None:
        """Some of it."""

    def total_bytes(self) -> int:
        """All that it has."""
        return 0

    def free_all_blocks(self) -> None:
        """Give back what nobody has."""


class Graph:
    """What was recorded, to be launched."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        recording.spoil()  # nothing was computed

    def launch(self) -> None:
        """Do the work again: with the arguments of then, on the memory of then."""
        self._recording.spoil()
        with np.errstate(all="ignore"):
            for work in self._recording.work:
                work()


class _Event:
    """What a copy has come to."""

    def record(self, stream: Any) -> None:
        """It has happened."""

    def synchronize(self) -> None:
        """It has happened."""


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
    cuda.get_current_stream = lambda: _Stream.current[-1]  # type: ignore[attr-defined]
    cuda.Stream, cuda.Event, cuda.Device = _Stream, _Event, _Device  # type: ignore[attr-defined]
    cuda.MemoryPool = MemoryPool  # type: ignore[attr-defined]
    cuda.using_allocator = using_allocator  # type: ignore[attr-defined]
    cuda.alloc = lambda size: SimpleNamespace(ptr=size)  # type: ignore[attr-defined]
    cuda.alloc_pinned_memory = bytearray  # type: ignore[attr-defined]
    cuda.get_cublas_handle = lambda: 0  # type: ignore[attr-defined]
    cuda.cublas, cuda.runtime = CUBLAS, RUNTIME  # type: ignore[attr-defined]
    modules["cupyx"].scipy = modules["cupyx.scipy"]  # type: ignore[attr-defined]
    modules["cupyx.scipy"].special = modules["cupyx.scipy.special"]  # type: ignore[attr-defined]
    modules["cupyx.scipy.special"].erf = erf  # type: ignore[attr-defined]
    cupy._is_standin = True  # type: ignore[attr-defined]
    sys.modules.update(modules)
    from minigrad.backend import cublas

    library = Cublas()
    cublas.library = lambda: library  # type: ignore[assignment]
