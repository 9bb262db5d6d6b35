"""What happens in the process of one exercise: its limits, the answer's cells, the check, and the verdict."""

from __future__ import annotations

import ast
import inspect
import json
import linecache
import os
import queue
import re
import resource
import signal
import sys
import tempfile
import time
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy

import bert_course
import minigrad
from bert_course.check.errors import text_of
from bert_course.check.exercise import EXERCISES
from bert_course.check.exercise import NOT_ATTEMPTED as NOT_ATTEMPTED_YET
from bert_course.check.outcome import has_gap
from bert_course.grade import guard
from bert_course.grade.answers import Answer, Piece, Sheet, missing_names, needed, speaks_of
from bert_course.grade.verdict import CRASHED, LOOK, NOT_ATTEMPTED, RIGHT, TIMED_OUT, WRONG, Verdict

NOBODY = 65534  # the user without rights, on Linux and on macOS's unsigned counting alike
FILE_SIZE = 16_000_000  # bytes of a file that an answer writes
FONTS = "MPLCONFIGDIR"  # where Matplotlib looks for its list of fonts: that folder's name as well
PROCESSES = 64  # beside those that the user has: a check's timer is a thread, which counts


@dataclass(frozen=True)
class Limits:
    """Of one exercise. seconds: of a clock on the wall. memory: bytes of addresses. output: bytes that are printed.

    disk: bytes of all files that it writes; looked at while it runs, so that a quick one may write some more.
    """

    seconds: float = 10.0
    memory: int = 2 * 2**30
    output: int = 2_000_000
    disk: int = 50_000_000


@cache
def as_nobody() -> bool:
    """Whether answers run as the user without rights: if this is root, and that user can read Python and the course."""
    if os.geteuid() != 0:
        return False
    pid = os.fork()
    if pid == 0:
        try:
            _become_nobody()
            for file in (queue.__file__, numpy.__file__, minigrad.__file__, bert_course.__file__):
                Path(file).read_bytes()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def _become_nobody() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


@dataclass(frozen=True)
class Task:
    """One exercise of one notebook: the answers to all of its sheet, as one may use another."""

    sheet: Sheet
    exercise: str
    answers: Mapping[str, Answer]


def live(
    task: Task,
    limits: Limits,
    seed: int,
    home: Path,
    private: list[Path],
    changed: Callable[[], list[str]],
    verdict: int,
    nonce: str,
) -> None:
    """Run the task in this process, which is its own, write its verdict to the file `verdict`, and end.

    home: the folder in which it may write. private: folders in which it may not read. changed: what `guard.watch` gave.
    """
    os.environ.clear()
    os.environ.update(HOME=str(home), TMPDIR=str(home), MINIGRAD_PROGRESS="off", LANG="C.UTF-8")
    if (home / FONTS).exists():
        os.environ[FONTS] = str(home / FONTS)
    os.chdir(home)
    tempfile.tempdir = str(home)  # the grader's own is known already
    sys.dont_write_bytecode = True  # an import that cannot write into the course would count as an attempt
    # Before the answer can put others in their place.
    send, leave, dumps = os.write, os._exit, json.dumps
    make, look, as_dict, taken = Verdict, LOOK, Verdict.as_dict, guard.taken
    _limit(limits)
    refused = guard.install(home, private)
    try:
        found = _judged_in_time(task, limits, seed)
    except BaseException as error:
        found = Verdict(
            CRASHED, f"{task.exercise}: not judged.", f"The check itself failed: {_in_short(error)}."
        )
    if found.right == RIGHT and next(taken):
        found.right = look
        found.caution = "The answer takes what a check holds for right: read it before it counts."
    elif found.right == RIGHT and (count := refused()):
        words = f"It tried {count} times to do what is refused, and went on: read it."
        found.caution = f"{found.caution} {words}".strip()
    if names := changed():
        words = f"After the answer ran, these were not what they were: {', '.join(names[:3])}. "
        found = make(look, f"{task.exercise}: not judged.", f"{words}The check cannot be trusted.")
    send(verdict, (nonce + dumps(as_dict(found))).encode("utf-8", "replace"))
    leave(0)


def _limit(limits: Limits) -> None:
    """Set what the system enforces, for this process and all that it starts."""
    seconds = int(limits.seconds) + 2
    wanted = {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_AS: limits.memory,
        resource.RLIMIT_FSIZE: FILE_SIZE,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_NPROC: _processes() + PROCESSES,
    }
    for kind, most in wanted.items():
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(kind, (most, most))
        except ValueError:  # macOS knows no limit of memory
            if sys.platform != "darwin" or kind != resource.RLIMIT_AS:
                raise
    if as_nobody():  # root is above the limit of processes, and may write everywhere
        _become_nobody()


def _processes() -> int:
    """How many threads all processes of this system have, where it tells."""
    try:
        return int(Path("/proc/loadavg").read_text().split()[3].split("/")[1])
    except (OSError, ValueError, IndexError):
        return 1000


@dataclass
class _Clock:
    """The time of an answer, until `end` on the monotonic clock; and whether its cells have run."""

    end: float
    in_function: bool = False
    heard: bool = False  # then it need not ring any more
    now: Callable[[], float] = time.monotonic  # also where the answer puts another one there

    def over(self) -> bool:
        """Whether it is over; if not, an interruption is the answer's own."""
        return self.now() > self.end - 0.05  # the timer's clock is another one


def _judged_in_time(task: Task, limits: Limits, seed: int) -> Verdict:
    """The verdict; as Ctrl-C would, the clock ends an answer that takes too long, and the check says where it was."""
    clock = _Clock(time.monotonic() + limits.seconds)

    def ring(*_: Any) -> None:
        if not clock.heard:
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, ring)
    # Again and again: an answer that catches every exception gets the next one.
    signal.setitimer(signal.ITIMER_REAL, limits.seconds, 0.3)
    try:
        return _judged(task, seed, clock)
    except KeyboardInterrupt:  # for the second time, where the check has heard the first
        clock.heard = True
        where = "It was not in the function yet, but in its cell."
        if clock.in_function:
            where = "It was in the function, or in the check of what it returned."
        return Verdict(TIMED_OUT, f"{task.exercise}: no end after {limits.seconds:g} seconds.", where)
    finally:
        clock.heard = True
        signal.setitimer(signal.ITIMER_REAL, 0)


def _judged(task: Task, seed: int, clock: _Clock) -> Verdict:
    name = task.exercise
    pieces = needed(task.sheet, name, dict(task.answers))
    module = sys.modules[guard.ANSWERS] = types.ModuleType(guard.ANSWERS)  # where dataclasses look for it
    scope = vars(module)
    scope["display"] = print  # as a notebook has it
    said = [words for piece in pieces if (words := _run(piece, task.sheet.stem, scope, clock))]
    own = [_cell_of(piece) for piece in pieces if piece.own]
    notes = [f"{cell} was run for it, as it defines what the answer uses." for cell in own]
    notes += [_left_out(piece) for piece in pieces if piece.left_out]
    failed = said[-1] if said and said[-1].startswith(f"{_cell_of(pieces[-1])} ") else ""
    function = scope.get(name)
    if not callable(function):
        if not pieces[-1].source.strip():
            return Verdict(NOT_ATTEMPTED, f"{name}: not attempted yet.", "The answer cell is empty.")
        if failed:
            return Verdict(WRONG, f"{name}: not yet.", failed, " ".join(notes))
        words = f"The answer cell does not define the function {name}."
        return Verdict(WRONG, f"{name}: not yet.", words, " ".join(notes))
    clock.in_function = True
    report = EXERCISES[name].report(function, seed)
    report.caution = " ".join(filter(None, [report.caution, *notes]))
    if report.verdict == "right":
        if spoken := speaks_of(piece.source for piece in pieces if piece.exercise or piece.own):
            words = f"The answer speaks of {spoken}, which no answer needs: read it before it counts."
            report.caution = f"{words} {report.caution}".strip()
            return Verdict.of(report, LOOK)
        return Verdict.of(report, RIGHT)
    if report.more == NOT_ATTEMPTED_YET:
        return Verdict.of(report, NOT_ATTEMPTED)
    report.caution = " ".join(filter(None, [report.caution, *said]))
    elsewhere = missing_names(pieces[-1].source, scope)
    if report.verdict == "wrong" and elsewhere and not has_gap(function):
        words = (
            f"The answer uses {', '.join(elsewhere)}, which no answer cell and no given cell defines, nor another "
            "one above it. What an answer needs, also an import, belongs in its cell."
        )
        report.caution = " ".join([words, *notes])
        return Verdict.of(report, LOOK)
    if report.verdict == "note" and clock.over():
        report.title = f"{name}: no end in time."
        return Verdict.of(report, TIMED_OUT)
    if report.verdict == "note":
        report.paragraphs = ["It raised KeyboardInterrupt, which stands for Ctrl-C."]
    return Verdict.of(report, WRONG)


def _cell_of(piece: Piece, the: str = "The") -> str:
    if piece.own:
        return f"{the} notebook's cell {piece.own}"
    return f"{the} answer cell of {piece.exercise}" if piece.exercise else f"{the} given cell"


def _run(piece: Piece, stem: str, scope: dict[str, Any], clock: _Clock) -> str:
    """Run a cell; returns what to say of it, mostly nothing. What it defined before it failed stays, as in Jupyter."""
    file = f"<{stem}, cell {piece.id}>"
    lines = piece.source.splitlines(keepends=True)
    linecache.cache[file] = (len(piece.source), None, lines, file)  # for tracebacks, and checks
    try:
        code = compile(piece.source, file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        if magic := re.match(r"\s*%%\w*", piece.source):
            return f"{_cell_of(piece)} is no Python: it begins with {magic[0].strip()[:40]}."
        return f"{_cell_of(piece)} is no Python: {_in_short(error)}."
    try:
        waits = eval(code, scope)
        if code.co_flags & inspect.CO_COROUTINE:  # it awaits outside of functions, as a notebook may
            import asyncio  # few answers need it

            asyncio.run(waits)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and clock.over():
            raise
        return f"{_cell_of(piece)} fails: {_in_short(error)}."
    return ""


def _left_out(piece: Piece) -> str:
    """What is said of the lines that only Jupyter runs."""
    lines = [line if len(line) <= 60 else f"{line[:60]} …" for line in piece.left_out[:3]]
    more = ["…"] * (len(piece.left_out) > 3)
    return f"Left out of {_cell_of(piece, 'the')}, as only Jupyter runs it: {', '.join([*lines, *more])}."


def _in_short(error: BaseException) -> str:
    words = error.msg if isinstance(error, SyntaxError) else text_of(error)  # without the file's name
    return f"{type(error).__name__[:100]}: {words}".rstrip(": \n")[:300]
