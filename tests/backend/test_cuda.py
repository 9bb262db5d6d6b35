"""The CUDA source, and the stand-in for CuPy on which it runs without a GPU (--standin), compiled for the CPU.

The source compiles for real devices, which needs no device; the stand-in has what CuPy has, refuses what CuPy refuses,
and shows what would go wrong on a device.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import sys
from pathlib import Path

import fake_cupy
import numpy as np
import pytest

from minigrad import backend
from minigrad.backend import cupy_kernels

IS_STANDIN = hasattr(sys.modules.get("cupy"), "_is_standin")
on_standin = pytest.mark.skipif(not IS_STANDIN, reason="about the stand-in (--standin)")

host = backend.to_numpy


# --- The source ------------------------------------------------------------------------------------------


def nvrtc() -> ctypes.CDLL:
    """NVIDIA's run-time compiler, which needs no GPU."""
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(folder) for folder in spec.submodule_search_locations] if spec else []
    found = [path for folder in folders for path in sorted(folder.glob("*/lib/libnvrtc.so.*[0-9]"))]
    found = [path for path in found if ".alt." not in path.name]
    if not found:
        pytest.skip("needs NVRTC: pip install nvidia-cuda-nvrtc-cu12")
    return ctypes.CDLL(str(found[0]))


def compile_for(architecture: str) -> tuple[str, dict[str, str]]:
    """The kernels' PTX (empty for an sm_ architecture, whose code is binary), and their names in it."""
    compiler, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    architectures = ctypes.c_int()
    assert compiler.nvrtcGetNumSupportedArchs(ctypes.byref(architectures)) == 0
    supported = (ctypes.c_int * architectures.value)()
    assert compiler.nvrtcGetSupportedArchs(supported) == 0
    if int(architecture.partition("_")[2]) not in supported:
        pytest.skip(f"this NVRTC does not compile for {architecture}")
    source = cupy_kernels.SOURCE.encode()
    assert compiler.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None) == 0
    try:
        for name in cupy_kernels.NAMES:
            assert compiler.nvrtcAddNameExpression(program, name.encode()) == 0
        options = [f"-arch={architecture}", "--device-as-default-execution-space", *cupy_kernels.OPTIONS]
        count = len(options)
        status = compiler.nvrtcCompileProgram(
            program, count, (ctypes.c_char_p * count)(*[option.encode() for option in options])
        )
        texts = []
        for what in ("ProgramLog", "PTX", "CUBIN"):
            assert getattr(compiler, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) == 0
            texts.append(ctypes.create_string_buffer(size.value + 1))
            if size.value:
                assert getattr(compiler, f"nvrtcGet{what}")(program, texts[-1]) == 0
        log, ptx, cubin = texts
        assert status == 0, log.value.decode()
        assert architecture.startswith("compute") or cubin.raw[:4] == b"\x7fELF"
        names = {}
        for name in cupy_kernels.NAMES:
            lowered = ctypes.c_char_p()
            assert compiler.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(lowered)) == 0
            names[lowered.value.decode()] = name
        return ptx.value.decode(), names
    finally:
        compiler.nvrtcDestroyProgram(ctypes.byref(program))


@pytest.mark.no_arrays
@pytest.mark.oracle
@pytest.mark.parametrize("capability", [70, 80, 90])
def test_compiles_for_a_device(capability):
    _, names = compile_for(f"sm_{capability}")
    assert len(names) == len(cupy_kernels.NAMES)


@pytest.mark.no_arrays
@pytest.mark.oracle
def test_float32_is_not_computed_in_float64():
    """A number written without T() makes a kernel compute in double, at a 64th of the speed on many GPUs.

    The norm's sum of squares is meant so: it waits for memory all the same.
    """
    ptx, names = compile_for("compute_80")
    bodies = dict(re.findall(r"\.entry (\w+)\((.*?)\n\}", ptx, re.DOTALL))
    assert set(bodies) == set(names)
    for lowered, body in bodies.items():
        if "float" in names[lowered] and "sum_squares" not in names[lowered]:
            used = set(re.findall(r"\b(?:add|mul|fma|div|sqrt|ex2)\.[a-z.]*f64", body))
            assert not used, f"{names[lowered]}: {used}"
    assert "fma.rn.f64" in ptx


@pytest.mark.no_arrays
def test_every_kernel_is_named():
    found = re.findall(r"(template <typename T>\n)?__global__ void (\w+)\(", cupy_kernels.SOURCE)
    names = [name for template, name in found if not template]
    names += [
        f"{name}<{kind}>" for template, name in found if template for kind in cupy_kernels.TYPES.values()
    ]
    assert sorted(names) == sorted(cupy_kernels.NAMES)


@on_standin
@pytest.mark.parametrize("tf32", [False, True])
def test_the_arithmetic_of_products_in_stacks(tf32, kernels, monkeypatch, rng):
    """TF32 for float32 where the device has it, never for float64, nor for operands of 16 bits."""
    monkeypatch.setattr(kernels.cublas, "TF32", tf32)
    names = ("CUBLAS_COMPUTE_32F_FAST_TF32" if tf32 else "CUBLAS_COMPUTE_32F", "CUBLAS_COMPUTE_64F")
    a = rng.standard_normal((2, 3, 4))
    for dtype, precision, name in (
        ("float32", "float32", names[0]),
        ("float64", "float32", names[1]),
        ("float32", "float16", "CUBLAS_COMPUTE_32F"),
        ("float32", "bfloat16", "CUBLAS_COMPUTE_32F"),
    ):
        x = kernels.asarray(a.astype(dtype))
        y = kernels._product(x, x.swapaxes(-1, -2), precision)
        assert fake_cupy.COMPUTED_WITH[-1] == getattr(fake_cupy.CUBLAS, name)
        np.testing.assert_allclose(host(y), a @ a.swapaxes(-1, -2), atol=0.05)


# --- The stand-in for CuPy -------------------------------------------------------------------------------


def test_stand_in_has_only_what_cupy_has():
    if IS_STANDIN:
        pytest.skip("the stand-in is in CuPy's place")
    cupy = pytest.importorskip("cupy")
    from cupyx.scipy import special

    names = fake_cupy.FUNCTIONS + fake_cupy.HOST_FUNCTIONS + fake_cupy.CONSTANTS + fake_cupy.OWN
    assert [name for name in names if not hasattr(cupy, name)] == []
    methods = fake_cupy.METHODS + fake_cupy.HOST_METHODS + fake_cupy.PROPERTIES + ["T", "base", "get"]
    methods += [f"__{name}__" for name in fake_cupy.UNARY + fake_cupy.COMPARISONS + fake_cupy.OPERATORS]
    methods += [f"__i{name}__" for name in fake_cupy.OPERATORS if name != "matmul"]
    assert [name for name in methods if not hasattr(cupy.ndarray, name)] == []
    assert all(getattr(cupy, name) is getattr(np, name) for name in fake_cupy.CONSTANTS if name != "newaxis")
    assert (cupy.ndarray.__module__, cupy.ndarray.__name__) == ("cupy", "ndarray")
    assert callable(cupy.add.at)
    assert hasattr(cupy.cuda, "get_current_stream")
    letters = {"float16": "e", "float32": "f", "float64": "d"}
    assert special.erf.types == [f"{letters[a]}->{letters[b]}" for a, b in fake_cupy.ERF_TYPES.items()]


def test_cupy_has_what_launches_need():
    if IS_STANDIN:
        pytest.skip("the stand-in is in CuPy's place")
    cupy = pytest.importorskip("cupy")
    assert callable(cupy.RawModule(code="", name_expressions=()).get_function)
    for name in ("Device", "get_cublas_handle", "runtime"):
        assert hasattr(cupy.cuda, name)
    assert isinstance(cupy.cuda.Device.compute_capability, type(cupy.ndarray.data))
    for name, value in vars(fake_cupy.RUNTIME).items():
        assert getattr(cupy.cuda.runtime, name) == value
    try:
        from cupy_backends.cuda.libs import cublas
    except ImportError as error:
        pytest.skip(f"CuPy without cuBLAS: {error}")
    for name, value in vars(fake_cupy.CUBLAS).items():
        assert callable(value) or getattr(cublas, name) == value
    parameters = re.findall(r"\w+ (\w+)[,)]", cublas.gemmStridedBatchedEx.__doc__)
    code = fake_cupy.CUBLAS.gemmStridedBatchedEx.__code__
    assert [name.lower().replace("_", "") for name in parameters] == [
        {"compute": "computetype"}.get(name, name).replace("_", "").replace("batch", "batchcount")
        for name in code.co_varnames[: code.co_argcount]
    ]


@pytest.mark.parametrize(
    "mix",
    [
        lambda x: x + np.ones(2),
        lambda x: np.ones(2) * x,
        lambda x: x.__iadd__(np.ones(2)),
        lambda x: np.exp(x),
        lambda x: np.sum(x),
        lambda x: np.asarray(x),
        lambda x: np.concatenate([x, x]),
        lambda x: x[np.array([0])],
        lambda x: x.__setitem__(0, np.ones(1)),
        lambda x: backend.default().xp.exp(np.ones(2)),
        lambda x: backend.default().xp.where(x > 0, x, np.ones(2)),
        lambda x: x.sum(out=np.ones(())),
        lambda x: range(3)[x[0]],
    ],
)
@on_standin
def test_stand_in_refuses_numpy_arrays(mix):
    x = backend.default().asarray([1.0, 2.0])
    with pytest.raises(TypeError):
        mix(x)


@on_standin
def test_stand_in_behaves_as_cupy_does_elsewhere():
    xp = backend.default().xp
    x = xp.asarray(np.ones((2, 3), np.float32))
    for reduction in (x.sum(), xp.max(x), x[0, 0], x.mean() + 1, -x.sum()):
        assert type(reduction) is xp.ndarray
        assert reduction.shape == ()
        assert reduction.dtype == np.float32
    assert type(2.0 * x) is type(np.float32(2) * x) is xp.ndarray
    assert x.base is None
    assert x.reshape(3, 2).base is not None
    assert not hasattr(x, "tofile")
    assert not hasattr(xp, "random_raw")
    xp.log(xp.asarray(0.0))  # a device does not warn


# --- The stand-in for a device ---------------------------------------------------------------------------


def fake_kernel(body, parameters="float* x"):
    code = f"__global__ void f({parameters}) {{ {body} }}"
    return fake_cupy.RawModule(code=code, name_expressions=("f",)).get_function("f")


@on_standin
def test_stand_in_shows_a_missing_barrier():
    """Each thread reads what the next one wrote: without a barrier, before it has."""
    body = (
        "__shared__ float s[64]; s[threadIdx.x] = threadIdx.x; {} x[threadIdx.x] = s[(threadIdx.x + 1) % 64];"
    )
    for barrier in ("__syncthreads();", ""):
        x = backend.default().asarray(np.zeros(64, np.float32))
        fake_kernel(body.format(barrier))((1,), (64,), (x,))
        assert (host(x) == (np.arange(64) + 1) % 64).all() == bool(barrier)


@on_standin
@pytest.mark.parametrize(
    "body", ["if (threadIdx.x < 5) __syncthreads();", "if (threadIdx.x) x[0] = __shfl_xor_sync(-1, 1.f, 1);"]
)
def test_stand_in_shows_a_barrier_that_some_never_reach(body):
    x = backend.default().asarray(np.zeros(64, np.float32))
    with pytest.raises(RuntimeError, match="f: some threads wait at a barrier to which others never come"):
        fake_kernel(body)((1,), (64,), (x,))
    fake_kernel("x[threadIdx.x] = 1;")((1,), (64,), (x,))  # and goes on after that
    assert (host(x) == 1).all()


@on_standin
def test_stand_in_shows_shared_memory_that_nobody_wrote():
    x = backend.default().asarray(np.zeros(3, np.float32))
    fake_kernel("__shared__ float s[2]; x[blockIdx.x] = s[0]; s[0] = 0;")((3,), (1,), (x,))
    assert (host(x) > 1e38).all()


@on_standin
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.float32(1),), r"expected arguments \['\*f', 'd'\], got \['f'\]"),
        (("x", 1), r"got \['\*f', 'q'\]"),
        (("x", np.float32(1)), r"got \['\*f', 'f'\]"),
        (("double", 1.0), r"got \['\*d', 'd'\]"),
        (("gaps", 1.0), "an array is not contiguous"),
    ],
)
def test_stand_in_checks_arguments(arguments, message):
    x = backend.default().asarray(np.zeros(8, np.float32))
    given = {"x": x, "double": x.astype("float64"), "gaps": x[::2]}
    kernel = fake_kernel("x[0] = a;", "float* x, double a")
    arguments = tuple(given.get(a, a) if isinstance(a, str) else a for a in arguments)
    with pytest.raises((TypeError, ValueError), match=message):
        kernel((1,), (1,), arguments)


@on_standin
@pytest.mark.parametrize(("grid", "block"), [((1,), (32, 33)), ((1, 65_536), (1,)), ((2**31,), (1,))])
def test_stand_in_refuses_sizes_that_cuda_has_not(grid, block):
    with pytest.raises(RuntimeError, match="CUDA has no grid"):
        fake_kernel("", "long long n")(grid, block, (1,))


@on_standin
def test_no_compiler_skips(monkeypatch):
    monkeypatch.setattr(fake_cupy.shutil, "which", lambda name: None)
    with pytest.raises(pytest.skip.Exception, match=r"running CUDA kernels on the CPU needs g\+\+"):
        fake_kernel("x[0] = 12345;")
