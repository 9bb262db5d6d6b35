"""Who has handed in what: notebooks in a folder or in archives, named as people and learning platforms name them.

    FOLDER/anna/07 One attention head.ipynb                    anna (deeper folders too)
    FOLDER/anna.ipynb, FOLDER/anna.zip                         anna
    FOLDER/Anna Lee_12345_assignsubmission_file_/07.ipynb      Anna Lee (12345), from Moodle, as is
    FOLDER/Anna Lee_12345_assignsubmission_file_07.ipynb       the same, without folders
    FOLDER/leeanna_12345_67890_07.ipynb                        leeanna (12345), from Canvas, with _LATE too
    FOLDER/Week 3_leeanna_attempt_2026-11-27-10-30-00_07.ipynb  leeanna, from Blackboard
    FOLDER/12-34 - Anna Lee - Nov 27, 2026 1030 AM - 07.ipynb  Anna Lee, from Brightspace, which makes folders too
    FOLDER/Week 3/Submissions/Lee_Anna_leeanna_12345/07.ipynb  Anna Lee (leeanna), from ILIAS

Each of these may lie in a zip file, which is then FOLDER itself: the one that the platform made of all. Of an archive
that lies in FOLDER, its own name or its folder says whose it is, and no name inside does, because whoever made the
archive chose that. Where no platform has put a name, the first folder is the student. What a file in an archive is
called is text and no more: nothing is unpacked to the disk. Links are not followed.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath

LARGEST = 20_000_000  # bytes of a notebook
LARGEST_ARCHIVE = 2_000_000_000
NOTHING = "there is nothing in it that is not hidden, as Jupyter's .ipynb_checkpoints is"
OF_NOBODY = {"index.html"}  # Brightspace's list of what was handed in
LONGEST = 255  # bytes of the name of a file or a folder; in an archive there may be more
MOST_MEMBERS = 20_000  # files in an archive
MOST_UNPACKED = 2_000_000_000  # bytes of all notebooks of an archive

# The names that platforms give: what a student may choose comes last in them.
_MOODLE = re.compile(r"(?P<name>.+?)_(?P<number>\d+)_assignsubmission_(?:file|onlinetext)(?:_.*)?", re.DOTALL)
_BLACKBOARD = re.compile(  # the word "attempt" is in the language of the course
    r"(?P<account>.+?)_(?P<name>[^_]+)_[^\W\d_]+_(?P<time>\d{4}(?:-\d\d){5})(?:[_.].*)?", re.DOTALL
)
_BRIGHTSPACE = re.compile(
    r"(?P<account>\d+-\d+) - (?P<name>.+?) - (?P<time>(?:(?! - ).)*\b\d{4}\b(?:(?! - ).)*)(?: - .*)?",
    re.DOTALL,
)
_ILIAS = re.compile(r"(?P<last>[^_\d]+)_(?P<first>[^_\d]+)_(?P<name>.+)_(?P<account>\d+)", re.DOTALL)
_ILIAS_ABOVE = re.compile(r"Submissions|Abgaben|Soumissions|Entregas|Consegne|Inleveringen|Team[ _]\d+")
_CANVAS = re.compile(r"(?P<name>[^_]+)(?:_LATE)?_(?P<number>\d+)_\d+_.+", re.DOTALL)
_TIMES = ("%Y-%m-%d-%H-%M-%S", "%b %d, %Y %I%M %p", "%B %d, %Y %I%M %p", "%d %B %Y %H%M", "%d %b %Y %H%M")


@dataclass(frozen=True)
class Whose:
    """What a name says. student: whose the file is. said_in: the folder in which that is said.

    below: where the file lies below what says it. account: what else there is of the student's, or of the assignment,
    in the name. time: when it was handed in, if the name says so. platform: whether nobody else gives such names.
    """

    student: str
    said_in: str = ""
    below: str = ""
    account: str = ""
    time: float | None = None
    platform: bool = False


@dataclass(frozen=True)
class Submission:
    """A notebook. student: whose it is. name: where it lies. time: of the last change, in seconds since 1970.

    said_in, account: of `Whose`. below: as there, where a platform's name says whose it is.
    """

    student: str
    name: str
    content: bytes
    time: float
    said_in: str = ""
    account: str = ""
    below: str = ""


@dataclass(frozen=True)
class Refused:
    """What was not read, and why. student: "" where it is not known."""

    student: str
    name: str
    reason: str


@dataclass(frozen=True)
class Other:
    """A file that is neither a notebook nor an archive, or a folder without any; `reason` says which."""

    student: str
    name: str
    reason: str = "this is no notebook (.ipynb)"


def find(folder: Path, without: Sequence[Path] = ()) -> Iterator[Submission | Refused | Other]:
    """What lies in a folder, in one archive, or in one notebook: each notebook, and a line for each thing that is none.

    without: files and folders to pass by. Raises FileNotFoundError where there is nothing of that name.
    """
    if not folder.exists():
        raise FileNotFoundError(f"there is no {folder}: give the folder of the notebooks that were handed in")
    if folder.is_file():
        if _kind(folder.name) == ".ipynb":
            yield _file(folder, _whose(folder.name), folder.name)
        else:
            yield from _archive(folder, None, folder.name)
        return
    passed_by = {path.resolve() for path in without}
    for path in sorted(_files(folder)):
        if not passed_by.isdisjoint([path.resolve(), *path.resolve().parents]):
            continue
        name = os.fsencode(path.relative_to(folder)).decode("utf-8", "replace")
        if name in OF_NOBODY:
            continue
        if path.is_dir() and not path.is_symlink():
            yield Other(_whose(f"{name}/x").student, name, NOTHING)
            continue
        whose = _whose(name)
        if path.is_symlink() or not path.is_file():
            if _kind(name) in (".ipynb", ".zip"):
                yield Refused(whose.student, name, "this is a link, or no file: it is not followed")
        elif _kind(name) == ".zip":
            yield from _archive(path, whose, name)
        elif _kind(name) == ".ipynb":
            yield _file(path, whose, name)
        else:
            yield _other(whose.student, name)


def _kind(name: str) -> str:
    """How the name of a file ends, from the last dot on, in lower case."""
    return PurePosixPath(name).suffix.lower()


def _other(student: str, name: str) -> Refused | Other:
    if ".ipynb" in name.lower():  # as browsers and mail programs save it
        return Refused(student, name, "its name does not end in .ipynb: rename it")
    return Other(student, name)


def _files(folder: Path) -> Iterator[Path]:
    """All files below, without hidden ones, as in Jupyter's own folders; and folders in which there is nothing else."""
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__MACOSX")))
        for name in names:
            if not name.startswith("."):
                yield Path(where, name)
        for name in folders:
            if Path(where, name).is_symlink():
                yield Path(where, name)
        if not folders and all(name.startswith(".") for name in names) and Path(where) != folder:
            yield Path(where)


def _file(path: Path, whose: Whose, name: str) -> Submission | Refused:
    try:
        size = path.stat().st_size
        if size > LARGEST:
            return Refused(whose.student, name, _too_large(size))
        return _submission(whose, name, path.read_bytes(), path.stat().st_mtime)
    except OSError as error:
        return Refused(whose.student, name, f"it cannot be read: {error.strerror or error}")


def _submission(whose: Whose, name: str, content: bytes, changed: float) -> Submission:
    time = changed if whose.time is None else whose.time
    return Submission(whose.student, name, content, time, whose.said_in, whose.account, whose.below)


def _too_large(size: int) -> str:
    return f"it has {size / 1e6:,.0f} MB, and up to {LARGEST / 1e6:.0f} are read"


# --- Names -----------------------------------------------------------------------------------------------


def _whose(name: str) -> Whose:
    """Whose a file is, by its path with slashes."""
    parts = PurePosixPath(name).parts
    for depth, part in enumerate(parts):
        if len(part) > LONGEST:
            continue
        said_in, below = "/".join(parts[:depth]), "/".join(parts[depth + 1 :])
        if found := _MOODLE.fullmatch(part):
            student = f"{found['name']} ({found['number']})"
            return Whose(student, said_in, below, platform=True)
        if found := _BRIGHTSPACE.fullmatch(part) or _BLACKBOARD.fullmatch(part):
            return Whose(found["name"], said_in, below, found["account"], _time(found["time"]), True)
        its_place = below and (depth == 0 or _ILIAS_ABOVE.fullmatch(parts[depth - 1]))
        if its_place and (found := _ILIAS.fullmatch(part)):
            student = f"{found['first']} {found['last']} ({found['name']})"
            return Whose(student, said_in, below, found["account"], platform=True)
    if len(parts) == 1 and (found := _CANVAS.fullmatch(parts[0])):  # Canvas knows no folders
        return Whose(f"{found['name']} ({found['number']})")
    return Whose(parts[0] if len(parts) > 1 else re.sub(r"\.(ipynb|zip)$", "", parts[0], flags=re.IGNORECASE))


def _time(text: str) -> float | None:
    """A time that a platform writes, in seconds since 1970, as if in this machine's zone; None in another language."""
    for form in _TIMES:
        with contextlib.suppress(ValueError):
            return datetime.strptime(text.replace(":", ""), form).timestamp()
    return None


# --- Archives --------------------------------------------------------------------------------------------


def _archive(path: Path, owner: Whose | None, name: str) -> Iterator[Submission | Refused | Other]:
    """The notebooks in an archive. owner: whose it is, or None for one of the whole class, in which names say it."""
    student = owner.student if owner else ""
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
            unpacked, nothing = 0, True
            for member in members:
                found = _member(archive, member, owner, name)
                if isinstance(found, Submission):
                    unpacked += len(found.content)
                    if unpacked > MOST_UNPACKED:
                        yield replace(
                            _refused(found), reason="the notebooks of this archive are too large together"
                        )
                        return
                if found:
                    yield found
                    nothing = False
            if owner and nothing:
                yield Other(owner.student, name, NOTHING)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        yield Refused(student, name, f"it cannot be read as a zip file: {error}")


def _refused(found: Submission) -> Refused:
    return Refused(found.student, found.name, "")


def _is_hidden(part: str) -> bool:
    return (part.startswith(".") and part not in (".", "..")) or part == "__MACOSX"


def _member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, owner: Whose | None, outer: str
) -> Submission | Refused | Other | None:
    """One file of an archive; None for a folder, and for what is hidden."""
    inner = member.filename.replace("\\", "/").encode("utf-8", "replace").decode("utf-8")
    parts = PurePosixPath(inner).parts
    hidden = next((depth for depth, part in enumerate(parts) if _is_hidden(part)), len(parts))
    if hidden < len(parts) or member.is_dir():
        if owner or not parts[:hidden] or "__MACOSX" in parts:
            return None
        folder = "/".join(parts[:hidden])  # it may hold nothing else
        return Other(_whose(f"{folder}/x").student, f"{outer}: {folder}", NOTHING)
    if not parts or (not owner and inner in OF_NOBODY):
        return None
    name = f"{outer}: {inner}"
    student = owner.student if owner else "(unknown)"
    if inner.startswith("/") or ".." in parts or re.match(r"[A-Za-z]:", inner):
        return Refused(student, name, "its path leads out of the archive")
    claimed = _whose(inner)
    whose = owner or claimed
    student = whose.student
    if _kind(inner) not in (".ipynb", ".zip"):
        return _other(student, name)
    if stat.S_ISLNK(member.external_attr >> 16):
        return Refused(student, name, "this is a link: it is not followed")
    if _kind(inner) == ".zip":
        return Refused(student, name, "an archive in an archive is not opened: unpack it")
    if claimed.platform and claimed.student != student:
        words = (
            f"it lies in an archive of {student}, and its name says {claimed.student}. If this is the archive of a "
            "whole class, grade it by itself"
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
        time = datetime(*member.date_time).timestamp()  # an archive has the local time
    except (ValueError, OverflowError):
        time = 0.0
    return _submission(whose, name, content, time)
