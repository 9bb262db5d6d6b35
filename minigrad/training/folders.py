"""A run's folder: who may write in it, its checkpoints, its two tables, and the machine it runs on.

A lock ensures that one run at a time writes there. A checkpoint gets its name when it is whole, and loses it
before it is removed; a row of a table is whole or absent. So the next run finds a state from which it can go
on, whatever ended the one before: a kill, or a full disk.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import os
import platform
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from threadpoolctl import threadpool_info

from minigrad import backend
from minigrad.files import SaveError, remove, write_atomic, write_folder_atomic
from minigrad.training.reading import SUMS, CheckpointError, ConfigError, checksums, is_there, read_file

Read = TypeVar("Read")

KEPT_CHECKPOINTS = 2
BEST = "checkpoint-best"
LOCK, HOLDER = ".lock", ".lock-holder"  # two files: some versions of filelock empty the one that they lock
OF_A_STEP = ("learning_rate", "grad_norm", "tokens_per_second")  # in each row of metrics.csv
TRIES = 5  # to read a checkpoint before a run removes it
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class RunFolderError(RuntimeError):
    """A folder that no run can use now: another run is in it, or nothing can be written there."""


class OtherKindError(CheckpointError):
    """A checkpoint, perhaps an intact one, of another kind of run."""


@dataclass(frozen=True)
class RunKind:
    """What differs between runs of pre-training, fine-tuning and others, in their folders and checkpoints.

    name: what the run does, in words. arguments: the class of its settings. tally: what counts its losses and hits.
    figures: what it measures of training, in metrics.csv. scores: what it measures in an evaluation. beside:
    what is in evaluation.csv beside them.
    """

    name: str
    arguments: type
    tally: Callable[[], Any]
    figures: tuple[str, ...]
    scores: tuple[str, ...]
    beside: tuple[str, ...] = ()
    known: ClassVar[list[RunKind]] = []  # all that there are: a checkpoint of one is not taken for another's

    def __post_init__(self) -> None:
        self.known.append(self)


class RunFolder:
    """The folder of a run. `with` takes its lock and gives it back; to read, no lock is needed.

    kind: determines the columns of its two tables; needed only to write them. locks: False for a process that
    trains together with the one that has the lock, and writes nothing. Raises ValueError for an empty path.
    """

    def __init__(self, path: str | Path, kind: RunKind | None = None, locks: bool = True) -> None:
        if not str(path):
            raise ValueError("the name of the run's folder is empty; the working directory is '.'")
        self.path, self.locks = Path(path), locks
        figures, scores = ((), ()) if kind is None else (kind.figures, (*kind.scores, *kind.beside))
        self.metrics = Table(self.path / "metrics.csv", ("step", *figures, *OF_A_STEP))
        self.evaluations = Table(self.path / "evaluation.csv", ("step", *scores))
        self._lock: Any = None
        self._made = False

    # --- One run at a time -------------------------------------------------------------------------------

    def __enter__(self) -> RunFolder:
        self.lock()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def lock(self) -> None:
        """Keep all other runs out, even those of this process, until `release` or the end of the process.

        Makes the folder. Raises RunFolderError if another run is in it, if it cannot be written, or without the
        package filelock; CheckpointError if the folder is a checkpoint.
        """
        if self._lock is not None or not self.locks:
            return
        try:
            from filelock import FileLock, Timeout
        except ImportError:
            raise RunFolderError("training needs the package filelock: pip install filelock") from None
        try:
            if (self.path / "config.json").exists():
                raise CheckpointError(f"{self.path} is a checkpoint: name the folder of a run, or a new one")
            made = not self.path.exists()
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / LOCK, thread_local=False)
            lock.acquire(timeout=0)
        except Timeout:
            raise RunFolderError(f"{self.path} is in use by {self._holder()}") from None
        except OSError as error:
            where = "" if error.filename in (None, str(self.path)) else f" ({error.filename})"
            raise RunFolderError(f"{self.path} cannot hold a run: {error.strerror}{where}") from None
        self._lock, self._made = lock, made
        with contextlib.suppress(OSError):  # on a full disk it stays empty
            holder = f"{os.getpid()} {time.strftime('%Y-%m-%d %H:%M:%S')}\n"
            write_atomic(self.path / HOLDER, holder.encode())

    def release(self) -> None:
        """Let others in. A folder that was made for this run and is still empty is removed again."""
        if self._lock is None:
            return
        with contextlib.suppress(OSError):
            (self.path / HOLDER).unlink()
            if self._made and [p.name for p in self.path.iterdir()] == [LOCK]:
                (self.path / LOCK).unlink()
                self.path.rmdir()
        self._lock.release(force=True)
        if self._made and os.name == "nt":  # where what is locked cannot be removed
            with contextlib.suppress(OSError):
                self.path.rmdir()
        self._lock = None

    @contextmanager
    def locked_unless_it_fails(self) -> Iterator[None]:
        """Lock the folder, and leave it locked for the run that is made inside, unless that raises an error."""
        self.lock()
        try:
            yield
        except BaseException:
            self.release()
            raise

    def _holder(self) -> str:
        """The process that has the lock, in words."""
        time.sleep(0.3)  # it may have come a moment ago, and names itself next
        try:
            pid, since = read_file(self.path / HOLDER).decode().split(maxsplit=1)
        except (CheckpointError, ValueError):
            return "another run: wait for its end, or name another folder"
        since = since.strip()
        if pid == str(os.getpid()):
            return f"a run of this process (since {since}): let it end, or delete it, or name another folder"
        return f"the run of process {pid} (since {since}): wait for its end, or name another folder"

    # --- Checkpoints -------------------------------------------------------------------------------------

    def checkpoints(self) -> list[Path]:
        """The complete checkpoints, oldest first."""
        found = [p for p in self.path.glob("checkpoint-*") if re.fullmatch(r"checkpoint-[0-9]+", p.name)]
        return sorted((p for p in found if p.is_dir()), key=step_of)

    def newest_step(self) -> int:
        """The step of the newest checkpoint; 0 if there is none."""
        return max(map(step_of, self.checkpoints()), default=0)

    def to_resume(self, resume: bool) -> Path | None:
        """The checkpoint from which a run starts; None: from the beginning.

        Raises CheckpointError if the folder holds a run and `resume` is false.
        """
        checkpoints = self.checkpoints()
        if not checkpoints:
            return None  # nothing saved yet: resuming starts from the beginning
        if not resume:
            raise CheckpointError(
                f"{self.path} holds a run already ({checkpoints[-1].name}): resume it, or name another folder"
            )
        return checkpoints[-1]

    @contextmanager
    def naming_the_one_before(self, checkpoint: Path) -> Iterator[None]:
        """Let an error about a damaged checkpoint say from where the run can go on.

        Where the model or the run is of another kind, so is the checkpoint before it.
        """
        try:
            yield
        except (OtherKindError, ConfigError) as error:
            raise CheckpointError(str(error)) from None
        except CheckpointError as error:
            before = [path for path in self.checkpoints() if step_of(path) < step_of(checkpoint)]
            help = f"; {before[-1]} is there: to go on from it, remove {checkpoint}" if before else ""
            raise CheckpointError(f"{error}{help}") from None

    def save(self, step: int, files: Mapping[str, bytes]) -> Path:
        """Write a checkpoint with the sums of its files, whole or not at all; keep the newest two.

        Where there is no room for it, older checkpoints go first, but never the newest. Raises SaveError if it
        cannot be written.
        """
        folder = self.path / f"checkpoint-{step:06d}"
        files = {**files, SUMS: checksums(files)}
        self.clear()
        for oldest in [*self.checkpoints()[:-1], None]:
            try:
                write_folder_atomic(folder, files)
                break
            except SaveError as error:
                if oldest is None or error.errno not in NO_ROOM:
                    raise
                _remove(oldest)
        for old in self.checkpoints()[:-KEPT_CHECKPOINTS]:
            _remove(old)
        return folder

    def save_best(self, files: Mapping[str, bytes]) -> Path:
        """Write the checkpoint that `latest_checkpoint` gives from now on, in place of the one before.

        Raises SaveError, after which the one before is still there.
        """
        self.clear()
        write_folder_atomic(self.path / BEST, {**files, SUMS: checksums(files)})
        return self.path / BEST

    def clear(self) -> None:
        """Remove what killed saves and removals left: `checkpoint-000500.partial`, `.old`, half of a file."""
        best = self.path / BEST
        if not best.exists() and (old := best.with_name(f"{BEST}.old")).exists():
            os.rename(old, best)  # a kill came between two renames
        for path in self.path.iterdir():
            if re.fullmatch(
                r"checkpoint-([0-9]+|best)\.(partial|old)|[\w.]+\.[0-9]+-[0-9]+\.partial", path.name
            ):
                remove(path)


def _remove(checkpoint: Path) -> None:
    """Remove a checkpoint, which first loses the name under which it would be taken for a whole one."""
    old = checkpoint.with_name(checkpoint.name + ".old")
    with contextlib.suppress(OSError):
        os.rename(checkpoint, old)
        shutil.rmtree(old, ignore_errors=True)


def step_of(checkpoint: Path) -> int:
    """The step in the name of a checkpoint: 500 of `checkpoint-000500`."""
    return int(checkpoint.name.removeprefix("checkpoint-"))


def latest_checkpoint(folder: str | Path, command: str = "python -m minigrad.bert pretrain") -> Path:
    """The best checkpoint in a run's folder if it kept that, else the newest; or the folder itself if it is one.

    Raises CheckpointError, which names the command that makes one, if there is none.
    """
    folder = Path(folder)
    if is_there(folder / "config.json"):
        return folder
    if is_there(folder / BEST / "config.json"):
        return folder / BEST
    found = RunFolder(folder).checkpoints()
    if not found:
        none = (
            f"{folder} has no checkpoint in it" if os.path.exists(folder) else f"there is no folder {folder}"
        )
        raise CheckpointError(f"{none}; train one with: {command}")
    return found[-1]


def read_latest(
    folder: str | Path, read: Callable[[Path], Read], command: str = "python -m minigrad.bert pretrain"
) -> Read:
    """What `read` makes of `latest_checkpoint`; where a run removes that meanwhile, of the one that is newest then.

    Raises CheckpointError if there is none, or if the run removes one after the other, and what `read` raises.
    """
    for _ in range(TRIES):
        checkpoint = latest_checkpoint(folder, command)
        try:
            found = read(checkpoint)
        except (CheckpointError, ConfigError):
            if checkpoint.exists():
                raise
        else:
            # Otherwise a file that has gone may have passed for one that is not needed
            if checkpoint.exists():
                return found
    raise CheckpointError(f"a run removes the checkpoints in {folder} before they are read: wait for its end")


# --- Tables ----------------------------------------------------------------------------------------------


class Table:
    """A CSV file with a row of figures for some of the steps; a row is there whole or not at all."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path, self.columns = path, columns
        self._missing_since: int | None = None  # the step of the first row that could not be written

    def drop_after(self, step: int) -> None:
        """Drop the rows of later steps and all that is not a whole row, or the file if no row is left.

        Raises CheckpointError if the file is not a table of steps, SaveError if it cannot be replaced.
        """
        if not os.path.lexists(self.path):
            return
        try:
            content = self.path.read_bytes() if self.path.is_file() else None
        except OSError as error:
            raise CheckpointError(f"{self.path} cannot be read: {error.strerror}") from None
        header, *rows = content.splitlines(keepends=True) if content else [b""]
        if content is None or (content and header.decode(errors="replace").strip() != ",".join(self.columns)):
            raise CheckpointError(
                f"{self.path} is no table of a run's steps, which begins with {','.join(self.columns)}: "
                "move it out of the way"
            )
        kept = [row for row in rows if (own := _step_of_row(row, header)) is not None and own <= step]
        if not kept:
            self.path.unlink()
        elif kept != rows:
            write_atomic(self.path, b"".join([header, *kept]))

    def append(self, row: Mapping[str, float], say: Callable[[str], object]) -> None:
        """Add a row, whole or not at all. If that fails, the reader is told, and told when it works again."""
        step = int(row["step"])
        try:
            self._write(row)
        except OSError as error:
            if self._missing_since is None:
                self._missing_since = step
                say(f"step {step}: could not write to {self.path}: {error.strerror}; training goes on")
        else:
            if self._missing_since is not None:
                say(
                    f"step {step}: {self.path} is written again, without the rows from {self._missing_since} on"
                )
            self._missing_since = None

    def _write(self, row: Mapping[str, float]) -> None:
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        with open(self.path, "ab", buffering=0) as file:
            size = file.tell()
            if not size:
                writer.writeheader()
            writer.writerow(
                {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
            )
            content = text.getvalue().encode()
            try:
                if file.write(content) != len(content):  # the disk took a part of it
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError:
                file.truncate(size)
                raise


def _step_of_row(row: bytes, header: bytes) -> int | None:
    """The step of a row; None if it is not whole: as many numbers as the header has names, and a line's end."""
    cells = row.split(b",")
    if not row.endswith(b"\n") or len(cells) != header.count(b",") + 1:
        return None
    try:
        for cell in cells:
            float(cell)
        return int(cells[0])
    except ValueError:
        return None


# --- The machine -----------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    """What the last bits of a run depend on beside its settings and its text. The number of threads does not count."""
    blas = {
        f"{library['internal_api']} {library['version']} {library.get('architecture', '')}".strip()
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    extensions = np.show_config(mode="dicts").get("SIMD Extensions", {})
    return {
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "the processor": " ".join([platform.machine(), *extensions.get("found", [])]),
        "the BLAS": ", ".join(sorted(blas)),
        "the backend": backend.default().name,
    }
