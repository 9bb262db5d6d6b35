"""The packages that stand in for compiled ones in the site's pages, held against those."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy as real
from safetensors import SafetensorError, safe_open

pytestmark = pytest.mark.no_arrays

PACKAGES = Path(__file__).resolve().parents[2] / "book" / "site" / "python" / "packages"


@pytest.fixture(scope="module")
def plain() -> Any:
    """The stand-in for safetensors.numpy, beside the real one."""
    before = {
        name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "safetensors"
    }
    sys.path.insert(0, str(PACKAGES))
    try:
        module = importlib.import_module("safetensors.numpy")
        package = sys.modules["safetensors"]
    finally:
        sys.path.remove(str(PACKAGES))
        for name in list(sys.modules):
            if name.split(".")[0] == "safetensors":
                del sys.modules[name]
        sys.modules.update(before)
    assert str(package.__file__).startswith(str(PACKAGES))
    module.package = package
    return module


def arrays() -> dict[str, np.ndarray]:
    """Of each dtype two, of odd shapes, one empty, one without axes."""
    rng = np.random.default_rng(0)
    names = ("bool", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "c8")
    made = {f"{name}.{i}": (rng.normal(size=(i, 3)) * 9).astype(name) for name in names for i in (2, 1)}
    return {**made, "ö": np.zeros((0, 4)), "f": rng.normal(size=(3, 5)), "0": np.array(2.5)}


@pytest.mark.parametrize("metadata", [None, {"ä": "ö"}], ids=["none", "one"])
def test_a_file_is_the_same_to_the_byte(plain, metadata):
    assert plain.save(arrays(), metadata=metadata) == real.save(arrays(), metadata=metadata)


def test_each_reads_what_the_other_wrote(plain, tmp_path):
    plain.save_file(arrays(), tmp_path / "plain")
    real.save_file(arrays(), tmp_path / "real")
    for found in (real.load_file(tmp_path / "plain"), plain.load_file(tmp_path / "real")):
        assert found.keys() == arrays().keys()
        for name, array in arrays().items():
            assert found[name].dtype == array.dtype
            np.testing.assert_array_equal(found[name], array)
            assert found[name].shape == array.shape


def test_an_array_in_fortrans_order_keeps_its_numbers(plain):
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(plain.load(plain.save({"a": array}))["a"], array)


def test_an_open_file_says_what_it_has(plain, tmp_path):
    real.save_file(arrays(), tmp_path / "real", metadata={"a": "b"})
    with (
        plain.package.safe_open(tmp_path / "real", "np") as ours,
        safe_open(tmp_path / "real", "np") as theirs,
    ):
        assert sorted(ours.keys()) == sorted(theirs.keys())
        assert ours.metadata() == theirs.metadata() == {"a": "b"}
        np.testing.assert_array_equal(ours.get_tensor("f"), theirs.get_tensor("f"))
        with pytest.raises(plain.package.SafetensorError, match="does not contain"):
            ours.get_tensor("none")


def file_of(header: Any, data: bytes) -> bytes:
    """A file with this header, as it comes."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(begin: int, end: int, shape: Any = (2,), dtype: str = "F32") -> dict[str, Any]:
    """An array in a header."""
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x01\x02",
        (1 << 40).to_bytes(8, "little") + b"{}",
        file_of(b"{", b""),
        file_of(b"[]", b""),
        file_of({"a": entry(0, 8)}, b"1234"),
        file_of({"a": entry(0, 8)}, b"123456789"),
        file_of({"a": entry(0, 4)}, b"1234"),
        file_of({"a": entry(4, 12)}, b"0" * 12),
        file_of({"a": entry(0, 8), "b": entry(4, 12)}, b"0" * 12),
        file_of({"a": entry(0, 8, dtype="F33")}, b"0" * 8),
        file_of({"a": entry(0, 8, shape=(-2, -1))}, b"0" * 8),
        file_of({"a": {"dtype": "F32"}}, b""),
    ],
    ids=range(13),
)
def test_both_refuse_what_is_damaged(plain, content, tmp_path):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(SafetensorError), safe_open(tmp_path / "file", "np"):
        pass
    with pytest.raises(plain.package.SafetensorError), plain.package.safe_open(tmp_path / "file", "np"):
        pass


def refusing(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it is where NumPy counts with 32 bits: it refuses 64."""

    def refuses(*arguments: Any, **settings: Any) -> Any:
        if any(getattr(one, "dtype", None) == np.int64 for one in (*arguments, *settings.values())):
            raise TypeError("Cannot cast array data from dtype('int64') to dtype('int32')")
        return function(*arguments, **settings)

    return refuses


@pytest.fixture
def narrow(monkeypatch) -> Iterator[Any]:
    """NumPy that counts with 32 bits, and the module that helps it."""
    monkeypatch.syspath_prepend(str(PACKAGES))
    for name in ("bincount", "repeat"):
        monkeypatch.setattr(np, name, refusing(getattr(np, name)))  # put back in the end
    monkeypatch.setattr(np, "intp", np.int32)
    sys.modules.pop("page_numpy", None)
    yield importlib.import_module("page_numpy")
    sys.modules.pop("page_numpy", None)


def test_numpy_counts_64_bit_integers(narrow):
    ids = np.array([3, 1, 3], dtype=np.int64)
    assert narrow.counted(ids).dtype == np.int32
    assert np.bincount(ids, minlength=5).tolist() == [0, 1, 0, 2, 0]
    assert np.repeat([7, 8, 9], ids).tolist() == [7, 7, 7, 8, 9, 9, 9]
    assert np.repeat([7], repeats=np.int64(2)).tolist() == [7, 7]


def test_numbers_too_large_are_refused_and_others_left_alone(narrow):
    with pytest.raises(OverflowError, match="counts up to 2,147,483,647 here, got 4,294,967,296"):
        narrow.counted(np.array([2**32]))
    floats = np.array([1.5])
    assert narrow.counted(floats) is floats
    few = np.array([1], dtype=np.int16)
    assert narrow.counted(few) is few
