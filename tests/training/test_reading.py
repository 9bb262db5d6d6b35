"""Files that are damaged, that never end, or that are made to do harm: refused at once, in one line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from minigrad.messages import quoted, shown
from minigrad.training import reading
from minigrad.training.reading import (
    CheckpointError,
    checksums,
    is_there,
    read_array,
    read_file,
    read_header,
    read_json,
    read_safetensors,
    verify_file,
)

pytestmark = pytest.mark.no_arrays


def write_safetensors(path: Path, arrays: dict[str, tuple[str, list[int], bytes]]) -> None:
    """A file by hand, of dtypes that NumPy does not have too."""
    header, start = {}, 0
    for name, (dtype, shape, content) in arrays.items():
        end = start + len(content)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
        start = end
    text = json.dumps(header).encode()
    numbers = b"".join(content for _, _, content in arrays.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + numbers)


# --- Messages --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("the é 中 ##s", "the é 中 ##s"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\x00\x7f\x9b", "a\\nb\\tc\\x00\\x7f\\x9b"),
        ("\u202eab\u2028\ud800", "\\u202eab\\u2028\\ud800"),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 199 + "…"),
        ("\x1b" * 60, "\\x1b" * 49 + "\\x1…"),
        ("x" * 10**7, "x" * 199 + "…"),
    ],
)
def test_what_is_shown_of_a_text(text, expected):
    assert shown(text) == expected
    assert len(shown(text)) <= 200


def test_what_is_shown_of_a_value():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    assert quoted("a\n") == "'a\\n'"
    assert quoted(None) == "None"
    assert quoted("x" * 300) == "'" + "x" * 198 + "…"
    assert quoted(deep) == "a value too large to print"
    assert quoted(10**5000) == "a value too large to print"


# --- Files -----------------------------------------------------------------------------------------------


READERS = [read_file, read_json, read_header, read_safetensors]


@pytest.mark.parametrize("read", READERS)
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path, read):
    path = tmp_path / "file"
    with pytest.raises(CheckpointError, match=f"^{path} is missing$"):
        read(path)
    os.mkfifo(path)
    with pytest.raises(CheckpointError, match=f"^{path} is no file"):
        read(path)
    path.unlink()
    for target in ("/dev/zero", tmp_path):
        path.symlink_to(target)
        with pytest.raises(CheckpointError, match=f"^{path} is no file"):
            read(path)
        path.unlink()
    path.symlink_to(path)
    with pytest.raises(CheckpointError, match=f"^{path} cannot be read: Too many levels of symbolic links"):
        read(path)


@pytest.mark.parametrize("read", READERS)
def test_a_file_that_may_not_be_read(tmp_path, read, monkeypatch):
    def refuse(path, mode):
        raise PermissionError(13, "Permission denied", str(path))

    path = tmp_path / "file"
    path.write_text("{}")
    monkeypatch.setattr(reading, "open", refuse, raising=False)
    with pytest.raises(CheckpointError, match=f"^{path} cannot be read: Permission denied$"):
        read(path)


def test_a_link_to_a_file_is_followed(tmp_path):
    (tmp_path / "blob").write_text('{"a": 1}')
    (tmp_path / "config.json").symlink_to("blob")
    assert read_json(tmp_path / "config.json") == {"a": 1}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is damaged: "),
        (b"{", "is damaged: "),
        (b"[1]", "is damaged: expected an object, got list"),
        (b"null", "is damaged: expected an object, got NoneType"),
        (b"\xff\xfe\xfd", "is damaged: "),
        (b'{"a": "\xe9"}', "is damaged: "),
        (b"[" * 100_000, "is damaged: it is nested too deeply"),
        (b'{"a":' * 100_000, "is damaged: it is nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is damaged: Exceeds the limit"),
        (b" " * 20_000_001, "is too large: expected at most 20 MB"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_json_that_is_damaged(tmp_path, content, message):
    path = tmp_path / "training.json"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=f"^{path} {message}") as caught:
        read_json(path)
    assert len(str(caught.value)) < len(str(path)) + 300


# --- SHA256SUMS ------------------------------------------------------------------------------------------

FILES = {"config.json": b"{}\n", "vocab.txt": b"[PAD]\n", "training.json": b'{"step": 1}\n'}


@pytest.fixture
def summed(tmp_path) -> Path:
    """A folder of files and their sums."""
    for name, content in {**FILES, "SHA256SUMS": checksums(FILES)}.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_the_sums_of_an_empty_file_and_of_abc():
    """Of abc: FIPS 180-2, appendix B.1."""
    assert checksums({"none": b"", "x": b"abc"}) == (
        b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  none\n"
        b"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  x\n"
    )


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="needs sha256sum")
@pytest.mark.parametrize("options", [["-b"], []])
def test_sums_that_sha256sum_wrote(summed, options):
    names = [f"./{name}" for name in FILES]
    written = subprocess.run(["sha256sum", *options, *names], cwd=summed, capture_output=True, check=True)
    (summed / "SHA256SUMS").write_bytes(written.stdout)
    assert read_json(summed / "training.json") == {"step": 1}
    (summed / "training.json").write_text('{"step": 2}\n')
    with pytest.raises(CheckpointError, match=r"training\.json is damaged"):
        read_json(summed / "training.json")


def test_sums_in_capitals(summed):
    lines = [line.split("  ") for line in checksums(FILES).decode().splitlines()]
    (summed / "SHA256SUMS").write_text("".join(f"{digest.upper()}  {name}\n" for digest, name in lines))
    assert read_json(summed / "training.json") == {"step": 1}


def test_files_that_are_as_they_were_saved(summed):
    (summed / "more.json").write_text("{}")
    for name, content in FILES.items():
        verify_file(summed / name)
        assert read_file(summed / name) == content
        assert is_there(summed / name)
    assert read_json(summed / "more.json") == {}  # not listed, so it came later
    assert not is_there(summed / "none.json")


def test_a_file_that_is_not_what_was_saved(summed):
    path = summed / "training.json"
    path.write_text('{"step": 2}\n')
    for read in (read_file, read_json, verify_file):
        with pytest.raises(CheckpointError) as caught:
            read(path)
        assert str(caught.value) == (
            f"{path} is damaged: it is not what was saved (SHA256SUMS); if you changed it, remove SHA256SUMS"
        )
    (summed / "SHA256SUMS").unlink()
    assert read_json(path) == {"step": 2}


def test_a_file_that_is_listed_and_not_there(summed):
    (summed / "vocab.txt").unlink()
    with pytest.raises(CheckpointError, match=r"vocab\.txt is missing: SHA256SUMS lists it$"):
        is_there(summed / "vocab.txt")
    with pytest.raises(CheckpointError, match=r"vocab\.txt is missing"):
        read_file(summed / "vocab.txt")
    assert read_file(summed / "config.json") == b"{}\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is damaged: it is cut short"),
        (b"\n", "is damaged: line 1 is no SHA-256"),
        (checksums(FILES)[:-1], "is damaged: it is cut short"),
        (checksums(FILES)[:100], "is damaged: it is cut short"),
        (checksums(FILES)[:70] + bytes(30) + b"\n", "is damaged: line 1 is no SHA-256"),
        (checksums(FILES) * 2, "is damaged: line 4 is no SHA-256"),
        (b"\xff" * 100 + b"\n", "is damaged: line 1 is no SHA-256"),
        (b"0" * 63 + b"  config.json\n", "is damaged: line 1 is no SHA-256"),
    ],
    ids=range(8),
)
def test_sums_that_are_damaged(summed, content, message):
    (summed / "SHA256SUMS").write_bytes(content)
    with pytest.raises(CheckpointError, match=f"^{summed / 'SHA256SUMS'} {message}"):
        read_json(summed / "training.json")


def test_sums_that_are_no_file(summed):
    (summed / "SHA256SUMS").unlink()
    os.mkfifo(summed / "SHA256SUMS")
    with pytest.raises(CheckpointError, match="SHA256SUMS is no file"):
        read_json(summed / "training.json")


def test_a_large_file_is_not_read_into_memory_to_be_checked(tmp_path):
    content = os.urandom(2**20) * 32
    (tmp_path / "model.safetensors").write_bytes(content)
    (tmp_path / "SHA256SUMS").write_bytes(checksums({"model.safetensors": content}))
    tracemalloc.start()
    verify_file(tmp_path / "model.safetensors")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


# --- Weights ---------------------------------------------------------------------------------------------


def test_arrays_come_as_float32(tmp_path):
    path = tmp_path / "a.safetensors"
    rng = np.random.default_rng(0)
    arrays = {
        "half": rng.standard_normal((3, 4)).astype(np.float16),
        "single": rng.standard_normal(5).astype(np.float32),
        "double": rng.standard_normal((2, 1, 2)),
        "scalar": np.array(2.5, np.float32),
        "none": np.zeros((0, 3), np.float32),
    }
    save_file(arrays, path)
    header = read_header(path)
    assert {name: (stored.dtype, stored.shape) for name, stored in header.items()} == {
        "half": ("F16", (3, 4)),
        "single": ("F32", (5,)),
        "double": ("F64", (2, 1, 2)),
        "scalar": ("F32", ()),
        "none": ("F32", (0, 3)),
    }
    for name, array in read_safetensors(path).items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, arrays[name].astype(np.float32))


def test_bfloat16_is_the_upper_half_of_a_float32(tmp_path):
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"a": ("BF16", [2, 2], bytes.fromhex("803f 80bf 4940 0100".replace(" ", "")))})
    (array,) = read_safetensors(path).values()
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, np.array([[1, -1], [3.140625, 2.0**-133]], np.float32))


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("I64", 8), ("U8", 1), ("BOOL", 1), ("C64", 8), ("F8_E4M3", 1), ("F8_E5M2", 1), ("I32", 4), ("U16", 2)],
)
def test_what_is_no_weight(tmp_path, dtype, size):
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"a": (dtype, [4], bytes(4 * size)), "b": ("F32", [1], bytes(4))})
    with pytest.raises(CheckpointError) as caught:
        read_array(read_header(path)["a"])
    assert str(caught.value) == f"{path}: a is {dtype}, but weights are one of F16, BF16, F32, F64"
    assert read_array(read_header(path)["b"]) == 0


@pytest.mark.parametrize(
    "array",
    [
        np.array([1, np.nan], np.float32),
        np.array([[1, -np.inf]], np.float32),
        np.array([np.inf], np.float16),
        np.array([np.nan]),
        np.array([1.0, 1e39]),
        np.frombuffer(bytes.fromhex("010000000000f07f")),  # a NaN that signals
        np.frombuffer(bytes.fromhex("017c"), np.float16),  # a NaN that signals
    ],
)
def test_numbers_that_are_not_finite(tmp_path, array):
    path = tmp_path / "a.safetensors"
    save_file({"fine": np.ones(3), "x\x1b": array}, path)
    with pytest.raises(CheckpointError) as caught:
        read_safetensors(path)
    assert str(caught.value) == f"{path}: x\\x1b has numbers that are not finite in float32 (nan or inf)"


@pytest.mark.parametrize("bits", ["807f", "c0ff"])
def test_a_bfloat16_that_is_not_finite(tmp_path, bits):
    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"a": ("BF16", [1], bytes.fromhex(bits))})
    with pytest.raises(CheckpointError, match="a has numbers that are not finite"):
        read_safetensors(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"12345",
        bytes(8),
        b"\xff" * 100,
        (2**32).to_bytes(8, "little") + b"{}",
        (100_000).to_bytes(8, "little") + b"[" * 100_000,
        (2).to_bytes(8, "little") + b"[]",
        (12).to_bytes(8, "little") + b'{"a": "\xff\xff"}',
    ],
    ids=range(8),
)
def test_a_header_that_is_damaged(tmp_path, content):
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=f"^{path} is damaged, or no safetensors file: "):
        read_header(path)


def test_a_header_beyond_all_reason(tmp_path):
    """32 MB of it would be read, and more become of it."""
    path = tmp_path / "a.safetensors"
    with open(path, "wb") as file:
        file.write((90_000_000).to_bytes(8, "little"))
        file.truncate(100_000_000)
    with pytest.raises(CheckpointError, match="it begins with a header of 90000000 bytes"):
        read_header(path)


def test_a_file_larger_than_what_can_be_addressed(tmp_path, monkeypatch):
    def fail(path, framework):
        raise MemoryError("Cannot allocate memory (os error 12)")

    path = tmp_path / "a.safetensors"
    path.write_bytes(bytes(100))
    monkeypatch.setattr(reading, "safe_open", fail)
    with pytest.raises(CheckpointError, match=f"^{path} cannot be read: Cannot allocate memory"):
        read_header(path)


def test_a_file_cut_short_behind_our_back(tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"a": np.ones(100, np.float32)}, path)
    (stored,) = read_header(path).values()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"is damaged: it ends within a$"):
        read_array(stored)
