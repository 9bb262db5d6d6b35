"""Reading the files of a checkpoint: held against SHA256SUMS, and shown without what a terminal would obey."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minigrad.bert.checkpoint import CheckpointError

SUMS = "SHA256SUMS"


def checksums(files: Mapping[str, bytes]) -> bytes:
    """The SHA-256 of each file, one a line, as `sha256sum` writes and checks them."""
    lines = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items()))
    return "".join(lines).encode()


def shown(text: str, limit: int = 200) -> str:
    """`text` as a message or a terminal may have it: what is not printable spelled out, `limit` characters at most."""
    start = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:limit])
    return start if len(start) <= limit and len(text) <= limit else start[: limit - 1] + "…"


def verify_file(path: Path) -> None:
    """Raises CheckpointError if a file is not what the sums beside it say; without sums it is not looked at."""
    try:
        lines = (path.parent / SUMS).read_text().splitlines()
        content = path.read_bytes()
    except (OSError, ValueError):
        return
    if path.name != SUMS and f"{hashlib.sha256(content).hexdigest()}  {path.name}" not in lines:
        raise CheckpointError(f"{path} is damaged: it is not what {SUMS} says")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises CheckpointError naming the file."""
    verify_file(path)
    try:
        values = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from None
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} is damaged: expected an object, got {type(values).__name__}")
    return values
