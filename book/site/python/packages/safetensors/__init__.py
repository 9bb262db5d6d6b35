"""The safetensors format in plain Python, for the site's pages, where the package's compiled part does not run.

Only what the course uses of the package, under the package's names. A file is 8 bytes with the length of the header,
the header in JSON (for each array its dtype, its shape, and where its bytes begin and end), and the bytes:
https://huggingface.co/docs/safetensors/index#format
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import numpy as np

__all__ = ["SafetensorError", "safe_open"]

LARGEST_HEADER = 100_000_000
DTYPES = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype(np.uint8),
    "I8": np.dtype(np.int8),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),  # NumPy has none: as bits
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
    "C64": np.dtype("<c8"),
}  # fmt: skip


class SafetensorError(Exception):
    """The file is no safetensors file, or damaged."""


class safe_open:  # the package's name for it
    """An open file, in a `with`: `keys()`, `metadata()`, `get_tensor(name)`.

    framework: "np" or "numpy". Raises SafetensorError for a file that is not in the format.
    """

    def __init__(self, filename: str | os.PathLike[str], framework: str) -> None:
        if framework not in ("np", "numpy"):
            raise SafetensorError(f"framework should be 'np' in a page, got {framework!r}")
        with open(filename, "rb") as file:
            self._bytes = file.read()
        self._header, self._start = read_header(self._bytes)
        self._metadata = self._header.pop("__metadata__", None)

    def __enter__(self) -> safe_open:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bytes = b""

    def keys(self) -> list[str]:
        """The names of the arrays."""
        return list(self._header)

    def metadata(self) -> dict[str, str] | None:
        """The texts that the file has beside its arrays, or None."""
        return self._metadata

    def get_tensor(self, name: str) -> np.ndarray:
        """A copy of an array. Raises SafetensorError for a name that the file does not have."""
        if name not in self._header:
            raise SafetensorError(f"File does not contain tensor {name}")
        return array_of(self._header[name], self._bytes, self._start)


def read_header(content: bytes) -> tuple[dict[str, Any], int]:
    """The header of a file's bytes, and where the arrays begin. Raises SafetensorError if anything does not fit."""
    size = int.from_bytes(content[:8], "little")
    if size > LARGEST_HEADER or 8 + size < 0:
        raise SafetensorError(f"Error while deserializing header: {len(content)} bytes, header of {size}")
    try:
        header = json.loads(content[8 : 8 + size])
    except (ValueError, RecursionError) as error:
        raise SafetensorError(f"Error while deserializing header: {error}") from None
    if not isinstance(header, dict):
        raise SafetensorError("Error while deserializing header: no object")
    faults = _faults(header, len(content) - 8 - size)
    if fault := next(faults, None):
        raise SafetensorError(f"Error while deserializing header: {fault}")
    return header, 8 + size


def _faults(header: dict[str, Any], size: int) -> Iterator[str]:
    """What is wrong with a header: its arrays have to fill the bytes behind it, without gap or overlap."""
    ends = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape, (begin, end) = DTYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
            right = all(type(length) is int and length >= 0 for length in (*shape, begin, end))
            count = math.prod(shape)
        except (KeyError, TypeError, ValueError):
            yield f"invalid entry of {name!r}"
            return
        if not right or end - begin != count * dtype.itemsize:
            yield f"invalid shape, dtype or offset of {name!r}"
        ends.append((begin, end))
    position = 0
    for begin, end in sorted(ends):
        if begin != position:
            yield f"invalid offset {begin}: the array before it ends at {position}"
        position = end
    if position != size:
        yield f"the arrays have {position} bytes, the file {size}"


def array_of(entry: dict[str, Any], content: bytes, start: int) -> np.ndarray:
    """The array of a header's entry."""
    dtype = DTYPES[entry["dtype"]]
    count = math.prod(entry["shape"])
    return (
        np.frombuffer(content, dtype, count, start + entry["data_offsets"][0]).reshape(entry["shape"]).copy()
    )
