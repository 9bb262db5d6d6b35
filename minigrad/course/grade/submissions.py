"""Who has handed in what: notebooks in a folder or in archives, named as people and learning platforms name them.

    FOLDER/anna/07 One attention head.ipynb                    anna (deeper folders too)
    FOLDER/anna.ipynb, FOLDER/anna.zip                         anna
    FOLDER/Anna Lee_12345_assignsubmission_file_/07.ipynb      Anna Lee (12345), from Moodle, as is
    FOLDER/Anna Lee_12345_assignsubmission_file_07.ipynb       the same, without folders
    FOLDER/leeanna_12345_67890_07.ipynb                        leeanna (12345), from Canvas, with _LATE too

Each of these may lie in a zip file, which is then FOLDER itself: the one that the platform made of all. Of an archive
that lies in FOLDER, its own name or its folder says whose it is, and no name inside does, because whoever made the
archive chose that. Where no platform has put a name, the first folder is the student. What a file in an archive is
called is text and no more: nothing is unpacked to the disk. Links are not followed.
"""

from __future__ import annotations

import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

LARGEST = 20_000_000  # bytes of a notebook
LARGEST_ARCHIVE = 2_000_000_000
MOST_MEMBERS = 20_000  # files in an archive
MOST_UNPACKED = 2_000_000_000  # bytes of all notebooks of an archive

_MOODLE = re.compile(
    r"(?P<name>.+?)_(?P<number>\d+)_assignsubmission_(?:file|onlinetext)_(?P<rest>.*)", re.DOTALL
)
_CANVAS = re.compile(r"(?P<name>[^_]+)(?:_LATE)?_(?P<number>\d+)_\d+_(?P<rest>.+)", re.DOTALL)


@dataclass(frozen=True)
class Submission:
    """A notebook. student: whose it is. name: where it lies. time: of the last change, in seconds since 1970.

    said_in: the folder in which a name says whose it is.
    """

    student: str
    name: str
    content: bytes
    time: float
    said_in: str = ""


@dataclass(frozen=True)
class Refused:
    """What was not read, and why. student: "" where it is not known."""

    student: str
    name: str
    reason: str


@dataclass(frozen=True)
class Other:
    """A file that is neither a notebook nor an archive."""

    student: str
    name: str


def find(folder: Path, without: Sequence[Path] = ()) -> Iterator[Submission | Refused | Other]:
    """What lies in a folder, in one archive, or in one notebook: each notebook, and a line for each thing that is none.

    without: files and folders to pass by. Raises FileNotFoundError where there is nothing of that name.
    """
    if not folder.exists():
        raise FileNotFoundError(f"there is no {folder}: give the folder of the notebooks that were handed in")
    if folder.is_file():
        if _kind(folder.name) == ".ipynb":
            yield _file(folder, *_student(folder.name), folder.name)
        else:
            yield from _archive(folder, "", folder.name)
        return
    passed_by = {path.resolve() for path in without}
    for path in sorted(_files(folder)):
        if not passed_by.isdisjoint([path.resolve(), *path.resolve().parents]):
            continue
        name = os.fsencode(path.relative_to(folder)).decode("utf-8", "replace")
        student, said_in = _student(name)
        if path.is_symlink() or not path.is_file():
            if _kind(name) in (".ipynb", ".zip"):
                yield Refused(student, name, "this is a link, or no file: it is not followed")
        elif _kind(name) == ".zip":
            yield from _archive(path, student, name, said_in)
        elif _kind(name) == ".ipynb":
            yield _file(path, student, said_in, name)
        else:
            yield _other(student, name)


def _kind(name: str) -> str:
    """How the name of a file ends, from the last dot on, in lower case."""
    return PurePosixPath(name).suffix.lower()


def _other(student: str, name: str) -> Refused | Other:
    if ".ipynb" in name.lower():  # as browsers and mail programs save it
        return Refused(student, name, "its name does not end in .ipynb: rename it")
    return Other(student, name)


def _files(folder: Path) -> Iterator[Path]:
    """All files below, without those of Jupyter's own folders and of hidden ones."""
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__MACOSX")))
        for name in names:
            if not name.startswith("."):
                yield Path(where, name)
        for name in folders:
            if Path(where, name).is_symlink():
                yield Path(where, name)


def _file(path: Path, student: str, said_in: str, name: str) -> Submission | Refused:
    try:
        size = path.stat().st_size
        if size > LARGEST:
            return Refused(student, name, _too_large(size))
        return Submission(student, name, path.read_bytes(), path.stat().st_mtime, said_in)
    except OSError as error:
        return Refused(student, name, f"it cannot be read: {error.strerror or error}")


def _too_large(size: int) -> str:
    return f"it has {size / 1e6:,.0f} MB, and up to {LARGEST / 1e6:.0f} are read"


# --- Names -----------------------------------------------------------------------------------------------


def _student(name: str) -> tuple[str, str]:
    """Whose a file is, by its path with slashes, and the folder in which that is said."""
    parts = PurePosixPath(name).parts
    for depth, part in enumerate(parts):
        if found := _MOODLE.fullmatch(part):
            return f"{found['name']} ({found['number']})", "/".join(parts[:depth])
    if len(parts) == 1 and (found := _CANVAS.fullmatch(parts[0])):  # Canvas knows no folders
        return f"{found['name']} ({found['number']})", ""
    return parts[0] if len(parts) > 1 else re.sub(r"\.(ipynb|zip)$", "", parts[0], flags=re.IGNORECASE), ""


# --- Archives --------------------------------------------------------------------------------------------


def _archive(
    path: Path, student: str, name: str, said_in: str = ""
) -> Iterator[Submission | Refused | Other]:
    """The notebooks in an archive. student: whose it is, or "" for one of the whole class, in which names say it."""
    try:
        if path.stat().st_size > LARGEST_ARCHIVE:
            yield Refused(student, name, f"it has more than {LARGEST_ARCHIVE / 1e6:,.0f} MB")
            return
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MOST_MEMBERS:
                yield Refused(
                    student, name, f"it holds {len(members):,} files, and up to {MOST_MEMBERS:,} are read"
                )
                return
            unpacked = 0
            for member in members:
                found = _member(archive, member, student, name, said_in)
                if isinstance(found, Submission):
                    unpacked += len(found.content)
                    if unpacked > MOST_UNPACKED:
                        yield replace(
                            _refused(found), reason="the notebooks of this archive are too large together"
                        )
                        return
                if found:
                    yield found
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        yield Refused(student, name, f"it cannot be read as a zip file: {error}")


def _refused(found: Submission) -> Refused:
    return Refused(found.student, found.name, "")


def _member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, owner: str, outer: str, said_in: str
) -> Submission | Refused | Other | None:
    """One file of an archive; None for a folder, and for what is hidden."""
    inner = member.filename.replace("\\", "/").encode("utf-8", "replace").decode("utf-8")
    parts = PurePosixPath(inner).parts
    if member.is_dir() or not parts:
        return None
    if any((part.startswith(".") and part not in (".", "..")) or part == "__MACOSX" for part in parts):
        return None
    name = f"{outer}: {inner}"
    student = owner or "(unknown)"
    if inner.startswith("/") or ".." in parts or re.match(r"[A-Za-z]:", inner):
        return Refused(student, name, "its path leads out of the archive")
    claimed, said_inside = _student(inner)
    student, said_in = (owner, said_in) if owner else (claimed, said_inside)
    if _kind(inner) not in (".ipynb", ".zip"):
        return _other(student, name)
    if stat.S_ISLNK(member.external_attr >> 16):
        return Refused(student, name, "this is a link: it is not followed")
    if _kind(inner) == ".zip":
        return Refused(student, name, "an archive in an archive is not opened: unpack it")
    if owner and claimed != owner and _MOODLE.search(inner):
        words = (
            f"it lies in an archive of {owner}, and its name says {claimed}. If this is the archive of a whole class, "
            "grade it by itself"
        )
        return Refused(student, name, words)
    if member.flag_bits & 1:
        return Refused(student, name, "it is encrypted")
    if member.file_size > LARGEST:
        return Refused(student, name, _too_large(member.file_size))
    try:
        with archive.open(member) as file:  # the size above is what the archive says, and may be a lie
            content = file.read(LARGEST + 1)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        return Refused(student, name, f"it is damaged: {error}")
    if len(content) > LARGEST:
        return Refused(student, name, _too_large(len(content)))
    try:
        time = datetime(*member.date_time, tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        time = 0.0
    return Submission(student, name, content, time, said_in)
