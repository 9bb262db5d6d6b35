"""Arrays as safetensors files and back: the functions of the package that have NumPy arrays."""

from __future__ import annotations

import json
import os

import numpy as np

from safetensors import DTYPES, SafetensorError, array_of, read_header

NAMES = {dtype: name for name, dtype in DTYPES.items() if name != "BF16"}
# In a file the largest numbers come first: from the back.
ORDER = ["BOOL", "U8", "I8", "I16", "U16", "F16", "I32", "U32", "F32", "C64", "F64", "I64", "U64"]


def save(arrays: dict[str, np.ndarray], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a file with these arrays. Raises SafetensorError for a dtype that the format does not have."""
    names = {}
    for name, array in arrays.items():
        dtype = array.dtype.newbyteorder("<")
        if dtype not in NAMES:
            raise SafetensorError(f"dtype {array.dtype} of {name!r} is not covered")
        names[name] = NAMES[dtype]
    header: dict[str, object] = {"__metadata__": metadata} if metadata else {}
    parts, position = [], 0
    for name in sorted(arrays, key=lambda one: (-ORDER.index(names[one]), one)):
        array = np.ascontiguousarray(arrays[name], arrays[name].dtype.newbyteorder("<"))
        end = position + array.nbytes
        header[name] = {
            "dtype": names[name],
            "shape": list(arrays[name].shape),
            "data_offsets": [position, end],
        }
        parts.append(array.tobytes())
        position = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def save_file(
    arrays: dict[str, np.ndarray], filename: str | os.PathLike[str], metadata: dict[str, str] | None = None
) -> None:
    """Write a file with these arrays."""
    with open(filename, "wb") as file:
        file.write(save(arrays, metadata))


def load(content: bytes) -> dict[str, np.ndarray]:
    """The arrays in a file's bytes. Raises SafetensorError for other bytes."""
    header, start = read_header(content)
    header.pop("__metadata__", None)
    return {name: array_of(entry, content, start) for name, entry in header.items()}


def load_file(filename: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays in a file. Raises SafetensorError for another file."""
    with open(filename, "rb") as file:
        return load(file.read())
