"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path


class SaveError(OSError):
    """Something could not be written; what was there before still is. `errno` says why, as in the error before it."""


def write_atomic(path: str | os.PathLike, content: bytes) -> None:
    """Write a file under another name in its folder, force it to the disk, then rename it.

    A reader finds the old file or the new one, never a part, also after a kill or a power cut; where several write at
    once, the last one's. Raises SaveError naming the file if the disk is full or the folder cannot be written.
    """
    path = Path(path)
    partial = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        _write(partial, content)
        _move(os.replace, partial, path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise _cannot_save(path, len(content), error) from error


def write_folder_atomic(folder: str | Path, files: Mapping[str, bytes]) -> None:
    """Write a folder of files so that it is there with all of them or not at all.

    A folder of that name is moved aside (`.old`), replaced, and removed; a kill between two of these leaves
    it there. Raises SaveError naming the folder, after which nothing of the new one is left.
    """
    folder = Path(folder)
    partial, old = (folder.with_name(folder.name + suffix) for suffix in (".partial", ".old"))
    try:
        remove(partial)
        partial.mkdir(parents=True)
        for name, content in files.items():
            _write(partial / name, content)
        sync_folder(partial)
        if folder.exists():
            remove(old)
            _move(os.rename, folder, old)
        _move(os.rename, partial, folder)
        sync_folder(folder.parent)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        if old.exists() and not folder.exists():
            _move(os.rename, old, folder)
        shutil.rmtree(partial, ignore_errors=True)
        raise _cannot_save(folder, sum(map(len, files.values())), error) from error


def remove(path: Path) -> None:
    """Remove whatever has this name, a folder with all that is in it; nothing happens if it cannot be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk, where the system can do so."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):  # some file systems cannot
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _move(move: Callable[..., None], source: Path, target: Path) -> None:
    """Rename; on Windows again, where a scanner or an indexer has the file open for a moment."""
    for wait in (0.05, 0.2, 1.0):
        try:
            move(source, target)
            return
        except PermissionError:
            if sys.platform != "win32":
                raise
            time.sleep(wait)
    move(source, target)


def _write(path: Path, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _cannot_save(path: Path, size: int, error: OSError) -> SaveError:
    free = shutil.disk_usage(next((p for p in (path, *path.parents) if p.exists()), Path())).free
    failure = SaveError(
        f"could not save {path}: {error.strerror or error} ({size / 1e6:.1f} MB needed, "
        f"{free / 1e6:.1f} MB free); what was saved before is untouched"
    )
    failure.errno = error.errno
    return failure
