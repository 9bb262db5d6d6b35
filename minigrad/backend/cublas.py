"""Products of matrices by cuBLAS, on a handle of our own.

CuPy refuses every call of cuBLAS while a stream records a graph (`cupy_graph.py`), although CUDA allows it. So each
thread has a handle of its own for each device, made by the library that CuPy has loaded. Where that library is not
found, as on Windows, the products are CuPy's, and nothing is recorded.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from typing import Any

import cupy as xp
import numpy as np
from numpy.typing import DTypeLike

Array = Any  # cupy.ndarray; CuPy ships no types

# CuPy reads the variable at its first product. On older devices it would only warn.
TF32 = (
    xp.is_available()
    and int(xp.cuda.Device().compute_capability) >= 80
    and os.environ.setdefault("CUPY_TF32", "1") != "0"
)

# Operands rounded to 16 bits are kept as bits, in integers that nobody takes for numbers by mistake.
FLOAT16, BFLOAT16 = np.dtype("int16"), np.dtype("uint16")


def is_turned(x: Array) -> bool:
    """Whether the matrices of a stack are transposed in memory."""
    return x.strides[-2] < x.strides[-1]


def product(a: Array, b: Array) -> Array:
    """The products of two stacks of matrices, both of one dtype: (…, n, k) @ (…, k, m) -> (…, n, m).

    CuPy's own `matmul` first copies an operand that is transposed, multiplies stacks without TF32, has no 16-bit
    operands with sums in float32, and cannot be recorded.
    """
    (n, k), m = a.shape[-2:], b.shape[-1]
    dtype = xp.float64 if a.dtype == xp.float64 else xp.float32  # of the product
    if not a.size or not b.size:
        return xp.zeros((*a.shape[:-1], m), dtype)
    y = xp.empty((*a.shape[:-1], m), dtype)
    a_turned, b_turned = is_turned(a), is_turned(b)
    a, b = (xp.ascontiguousarray(x.swapaxes(-1, -2) if is_turned(x) else x) for x in (a, b))
    one, zero, _ = _one_and_zero(dtype)
    # cuBLAS goes through memory column by column, and sees each matrix transposed: so it is asked for
    # yᵀ = bᵀ aᵀ. For each operand: where it is, from which column to the next, from which matrix to the next.
    kind, kind_of_y, arithmetic = _types(a.dtype)
    _gemm_strided_batched(
        int(b_turned), int(a_turned), m, n, k,
        one, b.data.ptr, kind, k if b_turned else m, k * m,
        a.data.ptr, kind, n if a_turned else k, n * k,
        zero, y.data.ptr, kind_of_y, m, n * m,
        y.size // (n * m), arithmetic, xp.cuda.cublas.CUBLAS_GEMM_DEFAULT,
    )  # fmt: skip
    return y


@functools.cache
def _one_and_zero(dtype: DTypeLike) -> tuple[int, int, np.ndarray]:
    """Where cuBLAS finds a 1 and a 0 of this dtype, and the array in which they are."""
    numbers = np.array([1, 0], dtype)
    return numbers.ctypes.data, numbers.ctypes.data + numbers.itemsize, numbers


def _types(dtype: np.dtype) -> tuple[int, int, int]:
    """cuBLAS' numbers for operands of this dtype, for their product, and for the sums."""
    cublas, runtime = xp.cuda.cublas, xp.cuda.runtime
    if dtype == xp.float64:
        return runtime.CUDA_R_64F, runtime.CUDA_R_64F, cublas.CUBLAS_COMPUTE_64F
    if dtype == FLOAT16:
        return runtime.CUDA_R_16F, runtime.CUDA_R_32F, cublas.CUBLAS_COMPUTE_32F
    if dtype == BFLOAT16:
        bfloat16 = 14  # CUDA_R_16BF, for which CuPy has no name
        return bfloat16, runtime.CUDA_R_32F, cublas.CUBLAS_COMPUTE_32F
    sums = cublas.CUBLAS_COMPUTE_32F_FAST_TF32 if TF32 else cublas.CUBLAS_COMPUTE_32F
    return runtime.CUDA_R_32F, runtime.CUDA_R_32F, sums


# --- The handle -----------------------------------------------------------------------------------------

WORKSPACE = 32 << 20  # bytes: what cuBLAS recommends for Hopper; for older devices more than it asks for

# By thread and device; kept, because graphs use their workspaces
_handles: dict[tuple[int, int], _Handle] = {}


@functools.cache
def library() -> Any:
    """The cuBLAS that CuPy's own module is linked with, through ctypes; None where that does not show it."""
    p, i, q = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
    try:
        blas = ctypes.CDLL(xp.cuda.cublas.__file__)
        blas.cublasSetStream_v2.argtypes = [p, p]
    except (AttributeError, OSError):
        return None
    blas.cublasSetWorkspace_v2.argtypes = [p, p, ctypes.c_size_t]
    blas.cublasGemmStridedBatchedEx.argtypes = [
        p, i, i, i, i, i, p, p, i, i, q, p, i, i, q, p, p, i, i, q, i, i, i
    ]  # fmt: skip
    return blas


class _Handle:
    """cuBLAS' handle, and where it works."""

    def __init__(self, blas: Any) -> None:
        self.blas, self.address, self.stream = blas, ctypes.c_void_p(), -1
        self.call("cublasCreate_v2", ctypes.byref(self.address))
        self.workspace = xp.cuda.alloc(WORKSPACE)

    def use(self, stream: int) -> None:
        """Work on the stream at this address. Setting a stream resets the workspace, so that is set again."""
        if stream != self.stream:
            self.call("cublasSetStream_v2", self.address, stream)
            self.call("cublasSetWorkspace_v2", self.address, self.workspace.ptr, WORKSPACE)
            self.stream = stream

    def call(self, name: str, *arguments: Any) -> None:
        """Raises RuntimeError if cuBLAS does not do it."""
        if status := getattr(self.blas, name)(*arguments):
            raise RuntimeError(f"{name} ended with cuBLAS' status {status}")


def _gemm_strided_batched(*arguments: int) -> None:
    """`cublasGemmStridedBatchedEx` on the current stream, with what it takes after the handle."""
    blas = library()
    if blas is None:
        xp.cuda.cublas.gemmStridedBatchedEx(xp.cuda.get_cublas_handle(), *arguments)
        return
    place = threading.get_ident(), xp.cuda.Device().id
    if place not in _handles:
        _handles[place] = _Handle(blas)
    handle = _handles[place]
    handle.use(xp.cuda.get_current_stream().ptr)
    handle.call("cublasGemmStridedBatchedEx", handle.address, *arguments)
