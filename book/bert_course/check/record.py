"""Which exercises were tried and solved, and how long it took: a small file, `.progress.json`, beside the notebook.

Jupyter tells its kernels the notebook's path, so the file stays in one place wherever Jupyter was started and
whatever folder a cell works in. Where no notebook is known (a terminal, some editors), the file is in the working
directory.

An exercise's seconds run from the attempt before, or from where the kernel began, up to its first right answer; what is
longer than a BREAK is not counted. `python -m bert_course.grade.times` makes a table for a class.

With MINIGRAD_PROGRESS=off no file is read or written, and what counts is this run alone: a stored notebook shows what
its own cells did.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from minigrad.files import write_atomic

PROGRESS_FILE = ".progress.json"
BREAK = 45 * 60  # seconds
Entries = dict[str, dict[str, Any]]
_this_run: Entries = {}
_attempt = {"at": time.monotonic()}  # the one before


def count_attempt(name: str, solved: bool) -> list[str]:
    """Count an attempt; what was solved stays solved. A damaged file is kept beside the new one.

    Returns what there is to say of the file, mostly nothing.
    """
    if os.environ.get("MINIGRAD_PROGRESS") == "off":
        _count(_this_run, name, solved)
        return []
    path = _folder() / PROGRESS_FILE
    said = []
    try:
        entries = read(path)
        if entries is None:
            damaged = path.with_name(PROGRESS_FILE + ".damaged")
            path.replace(damaged)
            said.append(
                f"({PROGRESS_FILE} could not be read: it is now {damaged.name}, and counting starts anew.)"
            )
            entries = {}
        _count(entries, name, solved)
        write_atomic(path, (json.dumps(entries, indent=2) + "\n").encode())
    except OSError as error:
        reason = error.__cause__ or error
        said.append(
            f"(Your progress could not be kept in {PROGRESS_FILE}: {getattr(reason, 'strerror', reason)}.)"
        )
    return said


def known() -> Entries:
    """The record so far; none if the file is missing or damaged."""
    if os.environ.get("MINIGRAD_PROGRESS") == "off":
        return _this_run
    try:
        return read(_folder() / PROGRESS_FILE) or {}
    except OSError:
        return {}


def _folder() -> Path:
    """The folder of the notebook, if Jupyter has told its path; else the working directory."""
    notebook = Path(os.environ.get("JPY_SESSION_NAME", ""))
    return notebook.parent if notebook.is_absolute() and notebook.is_file() else Path()


def _count(entries: Entries, name: str, solved: bool) -> None:
    now = time.monotonic()
    seconds, _attempt["at"] = now - _attempt["at"], now
    entry = entries.setdefault(name, {"attempts": 0, "solved": False, "seconds": 0})
    entry["attempts"] += 1
    if not entry["solved"] and seconds < BREAK:
        entry["seconds"] += round(seconds)
    entry["solved"] = entry["solved"] or solved


def read(path: Path) -> Entries | None:
    """What a file of progress says: nothing if it is missing, None if it is damaged."""
    try:
        return {
            name: {
                "attempts": int(entry["attempts"]),
                "solved": bool(entry["solved"]),
                "seconds": int(entry.get("seconds", 0)),
            }
            for name, entry in json.loads(path.read_bytes()).items()
        }
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
