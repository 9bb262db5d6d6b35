"""Reading the files of a checkpoint, which may be damaged, or made by somebody who means harm.

Only regular files are opened, files that should be small are small, what `SHA256SUMS` lists is checked
against it, weights are finite numbers, and what a file says reaches a message with its control characters
spelled out. Whatever is wrong is a CheckpointError that names the file.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from minigrad.messages import shown

SUMS = "SHA256SUMS"  # in the format of coreutils: `sha256sum -c SHA256SUMS` checks a folder too

# Of a file that is read whole: a vocabulary of a million pieces is shorter, and whatever JSON is in 20 MB takes less
# than 1 GB of memory.
LARGEST_FILE = 20_000_000
LARGEST_HEADER = 32_000_000  # of a safetensors file: more than 200,000 arrays

# The numbers that weights may be, as NumPy reads them. It has no bfloat16, the upper half of a float32.
NUMBERS = {"F16": "<f2", "BF16": "<u2", "F32": "<f4", "F64": "<f8"}

_LINE_OF_SUMS = re.compile(r"([0-9a-fA-F]{64}) [ *](?:\./)?(.+)")


class CheckpointError(RuntimeError):
    """A checkpoint that is missing, damaged, or of another model."""


class ConfigError(ValueError):
    """A configuration that does not describe the expected model."""


# --- Files -----------------------------------------------------------------------------------------------


def checksums(files: Mapping[str, bytes]) -> bytes:
    """The content of `SHA256SUMS` for files by name."""
    return "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items()
    ).encode()


def is_there(path: Path) -> bool:
    """Whether a folder has this file. Raises CheckpointError if it does not, but its SHA256SUMS lists it."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        if path.name in _sums(path.parent):
            raise CheckpointError(f"{path} is missing: {SUMS} lists it") from None
        return False
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from None
    return True


def read_file(path: Path) -> bytes:
    """A file's content, held against SHA256SUMS. Raises CheckpointError, also for one of more than 20 MB."""
    content = _content(path)
    _compare(path, hashlib.sha256(content).hexdigest())
    return content


def read_json(path: Path, kind: type = dict) -> Any:
    """The object, or list, in a JSON file, checked against SHA256SUMS. Raises CheckpointError naming the file."""
    try:
        values = json.loads(read_file(path))
    except RecursionError:
        raise CheckpointError(f"{path} is damaged: it is nested too deeply") from None
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged: {shown(str(error))}") from None
    if not isinstance(values, kind):
        expected = "an object" if kind is dict else "a list"
        raise CheckpointError(f"{path} is damaged: expected {expected}, got {type(values).__name__}")
    return values


def verify_file(path: Path) -> None:
    """Raise CheckpointError if a file, of any size, is not what the SHA256SUMS beside it lists."""
    if path.name in _sums(path.parent):
        with _opened(path) as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()  # a piece at a time
        _compare(path, found)


def _compare(path: Path, found: str) -> None:
    if _sums(path.parent).get(path.name, found) != found:
        raise CheckpointError(
            f"{path} is damaged: it is not what was saved ({SUMS}); if you changed it, remove {SUMS}"
        )


def _sums(folder: Path) -> dict[str, str]:
    """The digests in a folder's SHA256SUMS by name; none if there is no such file."""
    path = folder / SUMS
    if not os.path.lexists(path):
        return {}
    sums: dict[str, str] = {}
    lines = _content(path).decode(errors="replace").split("\n")
    for number, line in enumerate(lines[:-1], start=1):
        match = _LINE_OF_SUMS.fullmatch(line)
        if match is None or match[2] in sums or not match[2].isprintable():
            raise CheckpointError(
                f"{path} is damaged: line {number} is no SHA-256 and the name of a file; without it nothing is checked"
            )
        sums[match[2]] = match[1].lower()
    if not sums or lines[-1]:
        raise CheckpointError(f"{path} is damaged: it is cut short; without it nothing is checked")
    return sums


def _content(path: Path) -> bytes:
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > LARGEST_FILE:
            raise CheckpointError(f"{path} is too large: expected at most {LARGEST_FILE / 1e6:.0f} MB")
        return file.read(size)


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader]:
    """A file to read. Raises CheckpointError, also for a folder, a pipe or a device, which might never end."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise CheckpointError(f"{path} is no file (but a folder, a pipe or a device)")
        with open(path, "rb") as file:
            yield file
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}") from None


# --- Weights ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StoredArray:
    """Where an array lies: the safetensors file, its name there, dtype as named there, shape, first byte."""

    path: Path
    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int


def read_header(path: Path) -> dict[str, StoredArray]:
    """Which arrays a safetensors file has, without reading them; the file is checked against SHA256SUMS.

    Raises CheckpointError naming the file.
    """
    verify_file(path)
    with _opened(path) as file:
        size = int.from_bytes(file.read(8), "little")
        if size > LARGEST_HEADER:
            raise CheckpointError(
                f"{path} is damaged, or no safetensors file: it begins with a header of {size} bytes"
            )
        try:
            with safe_open(path, "np"):  # checks names, sizes and offsets
                header = json.loads(file.read(size))
        except MemoryError as error:  # of a file that is larger than what can be addressed
            raise CheckpointError(f"{path} cannot be read: {error}") from None
        except (SafetensorError, OSError, ValueError, RecursionError) as error:
            raise CheckpointError(f"{path} is damaged, or no safetensors file: {shown(str(error))}") from None
    header.pop("__metadata__", None)
    return {
        name: StoredArray(
            path, name, entry["dtype"], tuple(entry["shape"]), 8 + size + entry["data_offsets"][0]
        )
        for name, entry in header.items()
    }


def read_array(stored: StoredArray) -> np.ndarray:
    """The numbers of an array in a safetensors file, as float32.

    Raises CheckpointError naming file and array for another dtype than F16, BF16, F32 and F64, and for a number
    that is not finite, or too large for float32.
    """
    label = f"{stored.path}: {shown(stored.name)}"
    if stored.dtype not in NUMBERS:
        raise CheckpointError(f"{label} is {stored.dtype}, but weights are one of {', '.join(NUMBERS)}")
    count = math.prod(stored.shape)
    try:
        values = np.fromfile(stored.path, NUMBERS[stored.dtype], count, offset=stored.start)
    except OSError as error:
        raise CheckpointError(f"{stored.path} cannot be read: {error.strerror or error}") from None
    if values.size != count:
        raise CheckpointError(f"{stored.path} is damaged: it ends within {shown(stored.name)}")
    if stored.dtype == "BF16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is looked at
        values = values.astype(np.float32, copy=False).reshape(stored.shape)
    if not np.isfinite(values).all():
        raise CheckpointError(f"{label} has numbers that are not finite in float32 (nan or inf)")
    return values


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """All arrays of a safetensors file, as float32. Raises CheckpointError naming the file."""
    return {name: read_array(stored) for name, stored in read_header(path).items()}
