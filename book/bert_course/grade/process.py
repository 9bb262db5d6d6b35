"""A process for each exercise: started, watched, ended when it is over a limit, and nothing left of it.

The parent has imported NumPy, the library and the checks, and forks: a child is there in milliseconds, and what one
does no other sees. No threads may run in the parent, as a forked child has only the one that forked.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from bert_course.check.exercise import EXERCISES
from bert_course.check.mistakes import build
from bert_course.grade import guard
from bert_course.grade.inside import FONTS, NOBODY, Limits, Task, as_nobody, live
from bert_course.grade.verdict import CRASHED, LOOK, TIMED_OUT, Verdict

GRACE = 3.0  # seconds that a process has beyond its limit to say where it was
KEPT = 2000  # characters of what an answer printed
LONGEST_VERDICT = 2_000_000

Label = TypeVar("Label")


class CannotRun(RuntimeError):
    """Even a right answer is not found right here; the message says what happened instead."""


@dataclass
class _Child:
    """A process that runs, and what has come of it so far."""

    task: Task
    limits: Limits
    nonce: str
    home: Path
    pid: int = 0
    started: float = field(default_factory=time.monotonic)
    verdict: bytes = b""
    printed: bytes = b""
    amount: int = 0  # of what it printed, in bytes
    ended_for: str = ""  # the limit that it was over
    pipes: dict[int, str] = field(default_factory=dict)

    def over(self) -> str:
        """The limit that it is over, or nothing."""
        if time.monotonic() - self.started > self.limits.seconds + GRACE:
            return "time"
        if self.amount > self.limits.output:
            return "output"
        return "disk" if _size(self.home, self.limits.disk) > self.limits.disk else ""

    def take(self, pipe: int) -> bool:
        """Read what has come through a pipe; False when it is closed."""
        try:
            data = os.read(pipe, 65536)
        except BlockingIOError:
            return True
        if self.pipes[pipe] == "verdict":
            self.verdict += data[: LONGEST_VERDICT - len(self.verdict)]
        else:
            self.amount += len(data)
            self.printed += data[: 4 * KEPT - len(self.printed)]
        return bool(data)

    def result(self, status: int) -> Verdict:
        """From what came through the pipe, and how it ended."""
        name, seconds = self.task.exercise, time.monotonic() - self.started
        text = self.verdict.decode("utf-8", "replace")
        if self.ended_for == "time":
            words = f"It went on after {self.limits.seconds:g} seconds, and was ended."
            found = Verdict(TIMED_OUT, f"{name}: no end in time.", words)
        elif self.ended_for == "output":
            words = f"It printed more than {self.limits.output:,} bytes, and was ended."
            found = Verdict(CRASHED, f"{name}: not judged.", words)
        elif self.ended_for == "disk":
            words = f"Its files had more than {self.limits.disk:,} bytes together, and it was ended."
            found = Verdict(CRASHED, f"{name}: not judged.", words)
        elif not text:
            found = Verdict(CRASHED, f"{name}: not judged.", _how_it_ended(status))
        else:
            try:
                if not text.startswith(self.nonce):
                    raise ValueError("it was not written by the check")
                found = Verdict.read(json.loads(text[len(self.nonce) :]))
            except (ValueError, RecursionError):
                words = "What came back is not what a check says: the answer may have written it."
                found = Verdict(LOOK, f"{name}: not judged.", words)
        found.seconds = round(seconds, 2)
        found.printed = self.printed.decode("utf-8", "replace")[:KEPT]
        return found


def _size(folder: Path, enough: int) -> int:
    """The bytes of all files below a folder, counted no further than `enough`; each counts as a block at least."""
    size = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += max(4096, os.lstat(os.path.join(where, name)).st_size)
            if size > enough:
                return size
    return size


def _how_it_ended(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = str(number)
        return f"The process ended by the signal {name}: it crashed, or was over a limit."
    return f"The process ended by itself, with status {os.WEXITSTATUS(status)}, before there was a verdict."


def run_all(
    tasks: Sequence[tuple[Label, Task]],
    jobs: int,
    limits: Limits,
    seed: int,
    private: Sequence[Path] = (),
    begin: Callable[[Label, str], None] = lambda label, exercise: None,
) -> Iterator[tuple[Label, Verdict]]:
    """Run each task in a process of its own, `jobs` at a time; yields each with its verdict, as they end.

    begin: called before a task runs, with the name of its exercise.

    A caller that stops early, also by Ctrl-C, leaves no process behind.
    """
    waiting = list(reversed(tasks))
    running: dict[int, tuple[Label, _Child]] = {}
    with tempfile.TemporaryDirectory() as fonts, selectors.DefaultSelector() as selector:
        if any(_draws(task) for _, task in tasks):
            _find_fonts(fonts)
        _adopt_orphans()
        strangers, changed = _children(), guard.watch()
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    label, task = waiting.pop()
                    begin(label, task.exercise)
                    child = _start(task, limits, seed, list(private), changed, fonts)
                    running[child.pid] = label, child
                    for pipe in child.pipes:
                        selector.register(pipe, selectors.EVENT_READ, child)
                for key, _ in selector.select(0.05):
                    if not key.data.take(key.fd):
                        selector.unregister(key.fd)
                        del key.data.pipes[key.fd]
                        os.close(key.fd)
                for pid, (label, child) in list(running.items()):
                    over = child.over()
                    if over and not child.ended_for:
                        child.ended_for = over
                        _kill_group(pid)
                    ended, status = os.waitpid(pid, os.WNOHANG)
                    if ended:
                        _end(child, selector)
                        del running[pid]
                        _kill_orphans(strangers | set(running))
                        yield label, child.result(status)
        finally:
            for pid, (_, child) in running.items():
                _kill_group(pid)
                os.waitpid(pid, 0)
                _end(child, selector)


def _draws(task: Task) -> bool:
    """Whether an answer of this notebook may import Matplotlib."""
    return any(re.search("matplotlib|pylab", answer.source or "") for answer in task.answers.values())


def _find_fonts(folder: str) -> None:
    """Have Matplotlib, where it is installed, write its list of fonts into a folder: it takes seconds."""
    command = [sys.executable, "-c", "import matplotlib.font_manager"]
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(command, env={**os.environ, FONTS: folder}, capture_output=True, timeout=100)


def _start(
    task: Task, limits: Limits, seed: int, private: list[Path], changed: Callable[[], list[str]], fonts: str
) -> _Child:
    home = Path(tempfile.mkdtemp(prefix="minigrad-answer-"))
    if _draws(task):
        shutil.copytree(fonts, home / FONTS)
    if as_nobody():
        for path in (home, *home.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    child = _Child(task, limits, secrets.token_hex(16), home)
    (read_verdict, write_verdict), (read_text, write_text) = os.pipe(), os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child.pid = os.fork()
    if child.pid == 0:
        try:
            os.setsid()  # a group of its own, which is killed whole
            nothing = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((nothing, 0), (write_text, 1), (write_text, 2)):
                os.dup2(source, target)
            verdict = os.dup2(write_verdict, 100 + secrets.randbelow(100), inheritable=False)
            os.closerange(3, verdict)
            os.closerange(verdict + 1, 4096)
            live(task, limits, seed, home, private, changed, verdict, child.nonce)
        except BaseException as error:
            os.write(2, f"the process could not be set up: {error!r}\n".encode())
        finally:
            os._exit(70)
    os.close(write_verdict)
    os.close(write_text)
    for pipe, kind in ((read_verdict, "verdict"), (read_text, "text")):
        os.set_blocking(pipe, False)
        child.pipes[pipe] = kind
    return child


def _end(child: _Child, selector: selectors.BaseSelector) -> None:
    """Take what is left in the pipes, and leave nothing: no process of its group, no folder."""
    _kill_group(child.pid)
    for pipe in list(child.pipes):
        selector.unregister(pipe)
        for _ in range(32):  # what a pipe can hold; a process that got away may write on and on
            before = child.amount + len(child.verdict)
            if not child.take(pipe) or child.amount + len(child.verdict) == before:
                break
        os.close(pipe)
    child.pipes.clear()
    shutil.rmtree(child.home, ignore_errors=True)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


# --- Processes that left their group ---------------------------------------------------------------------


def _adopt_orphans() -> None:
    """On Linux, become the parent of processes whose own has ended, so that they can be found."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def _kill_orphans(known: set[int]) -> None:
    """End the children of this process that are not known: they come from answers."""
    for pid in _children() - known:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _children() -> set[int]:
    """The processes whose parent this one is; none where the system does not tell."""
    try:
        return {int(one) for one in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}
    except OSError:
        return set()


# --- Before the first ------------------------------------------------------------------------------------


def prepare() -> None:
    """Do once what every child would do again: find the sources of the right answers, and cut up the mistakes.

    From then on, it is noted who takes an answer out of its check.
    """
    for exercise in EXERCISES.values():
        build(exercise.answer, exercise.known_mistakes[0])
    guard.note_who_takes_answers()


def self_test(task_of: Callable[[str], Task], limits: Limits, seed: int) -> None:
    """Run one right answer as all answers are run. Raises CannotRun if it is not found right."""
    name = next(iter(EXERCISES))
    ((_, found),) = run_all([("", task_of(name))], 1, limits, seed)
    if found.title != f"{name}: right.":  # the verdict may be "look by hand", as its text speaks of the check
        raise CannotRun(
            f"even a right answer to {name} is not found right on this machine: {found.message} {found.printed} "
            "Is --memory or --timeout too small?"
        )
