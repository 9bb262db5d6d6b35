"""What an answer may not do while it is graded, and whether it has tampered with what judges it.

This stops accidents and simple mischief, and tells of them in words. It does not stop an attacker: code that runs in
a process can undo whatever that process does. Who grades people that are not trusted does it in a container.
"""

from __future__ import annotations

import builtins
import inspect
import itertools
import os
import re
import signal  # noqa: F401  (these two are there before something is taken from them)
import subprocess  # noqa: F401
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import bert_course
from bert_course.check.exercise import EXERCISES, Exercise
from bert_course.check.trial import Answer, Task

# What is refused, and the events of Python's audit hooks that say it is asked for, by how they begin. A process that an
# answer had started would be outside of the hook.
REFUSED = {
    "start another program": (
        *("os.exec", "os.posix_spawn", "os.spawn", "os.startfile", "os.system", "pty.spawn", "subprocess."),
    ),
    "start another process": ("os.fork",),
    "change when processes run, or their limits": ("os.sched_", "os.setpriority", "resource."),
    "send a signal to a process": ("os.kill", "os.pidfd", "signal.pidfd", "signal.pthread_kill"),
    "reach into the process's memory": ("ctypes.",),
    "use the network": (
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostby",
        "socket.sendto",
    ),
}
# These change files: allowed in the answer's own folder alone. Each of their arguments that is text is a path.
CHANGES = {
    "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate",
    "os.utime", "shutil.chown", "shutil.move", "shutil.rmtree",
}  # fmt: skip
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

# Python reports no event for these: in their places come functions that report one, and do no more. With them an answer
# could end the grader, slow it for the whole class, and start another program. By modules, with the event's beginning.
TAKEN = {
    "os": ("pidfd_open", "sched_setaffinity", "sched_setparam", "sched_setscheduler", "setpriority"),
    "signal": ("pidfd_send_signal",),
    "subprocess": ("_fork_exec", "fork_exec"),
}
# In C, with the same functions
BELOW = {"posix": "os", "_signal": "signal", "_posixsubprocess": "subprocess"}

# What these modules do, they do for their caller. (ctypes.util is not among them: it starts programs of its own.)
FOR_THE_CALLER = re.compile(
    r"bz2|codecs|contextlib|ctypes|functools|gzip|logging|lzma|numpy\.lib\.\w*npyio\w*|os|pathlib|posixpath|pty|sched|"
    r"shutil|signal|socket|socketserver|subprocess|tarfile|tempfile|threading|timeit|webbrowser|zipfile|"
    r"(?:asyncio|concurrent|http|multiprocessing|requests|urllib|urllib3)(?:\.\w+)*"
)


def _taken_away() -> Iterator[tuple[str, str, str]]:
    """The functions in `TAKEN`: each with the module that has it, and that of its event."""
    for module, source in [*((name, name) for name in TAKEN), *BELOW.items()]:
        for name in TAKEN.get(source, ()):
            yield module, source, name


def _reporting(event: str) -> Callable[..., None]:
    audit = sys.audit
    return lambda *_, **__: audit(event)


ANSWERS = "answers"  # the module in which they run


def asked_for(frame: FrameType | None, home: str, loaded: Mapping[str, Any]) -> bool:
    """Whether the answer's own code makes the call in this frame, itself or by a module that does it for its caller.

    If not, a library makes it by itself, as Matplotlib, which asks another program for fonts when it is imported. All
    code is the answer's that is in no other loaded module, or in one from its folder.
    """
    while frame:
        name: Any = frame.f_globals.get("__name__")
        module = loaded.get(name) if type(name) is str else None
        if name == ANSWERS or getattr(module, "__dict__", None) is not frame.f_globals:
            return True
        if frame.f_code.co_filename.startswith(home + os.sep):
            return True
        if name != __name__ and not FOR_THE_CALLER.fullmatch(name):
            return False
        frame = frame.f_back
    return True  # in a thread that the answer has started


def install(home: Path, private: list[Path]) -> Callable[[], int]:
    """From here on, and for good, this process may not do what is listed above.

    home: the folder in which files may be written. private: folders in which nothing may be read either. Returns what
    tells how often the answer has asked for something that is refused.
    """
    for module, source, name in _taken_away():
        if hasattr(sys.modules[module], name):
            setattr(sys.modules[module], name, _reporting(f"{source}.{name.lstrip('_')}"))
    inside, hidden = os.path.realpath(home), [os.path.realpath(folder) for folder in private]
    refused, changes = tuple(REFUSED.items()), frozenset(CHANGES)  # those above can be emptied
    loaded, here, whose = sys.modules, inspect.currentframe, asked_for
    attempts = 0

    def lies_in(path: Any, folder: str) -> bool:
        if isinstance(path, int):  # what is open already
            return True
        real = os.path.realpath(os.fsdecode(path))
        return real == folder or real.startswith(folder + os.sep)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal attempts
        try:
            refuse(event, arguments)
        except PermissionError:
            attempts += whose(here(), inside, loaded)
            raise

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, int):
                return
            writes = isinstance(flags, int) and flags & WRITES and os.fsdecode(path) != os.devnull
            if writes and not lies_in(path, inside):
                raise PermissionError(f"an answer may not write {os.fsdecode(path)} while it is graded")
            if any(lies_in(path, folder) for folder in hidden):
                raise PermissionError(f"an answer may not read {os.fsdecode(path)} while it is graded")
        elif event in ("os.listdir", "os.scandir"):
            path = arguments[0] or "."
            if not isinstance(path, int) and any(lies_in(path, folder) for folder in hidden):
                raise PermissionError("an answer may not look into this folder while it is graded")
        elif event in changes:
            paths = [path for path in arguments if isinstance(path, str | bytes | os.PathLike)]
            if not all(lies_in(path, inside) for path in paths):
                raise PermissionError("an answer may not change files outside of its own folder")
        else:
            words = next((words for words, starts in refused if event.startswith(starts)), "")
            if words:
                raise PermissionError(f"an answer may not {words} while it is graded ({event})")

    sys.addaudithook(watch)
    return lambda: attempts


# --- What judges -----------------------------------------------------------------------------------------

taken = itertools.count()  # how often a right answer was taken out of its check: nobody can set that back


def note_who_takes_answers() -> None:
    """From here on, `taken` counts when code outside of the course takes a right answer, or its text."""
    course = os.path.dirname(os.path.abspath(bert_course.__file__)) + os.sep
    answers = {id(one): vars(one).pop("answer") for one in EXERCISES.values()}

    def answer(exercise: Task) -> Answer:
        asking = inspect.currentframe()
        code = asking.f_back.f_code if asking and asking.f_back else None
        if not code or not code.co_filename.startswith(course) or code is Exercise.solution.__code__:
            next(taken)
        right: Answer = answers[id(exercise)]
        return right

    Task.answer = property(answer)  # type: ignore[assignment]


# Modules of Python's own that a check uses; all of NumPy's and of the library are looked at too.
WATCHED = {
    "ast", "builtins", "inspect", "json", "json.encoder", "math", "os", "posixpath", "signal", "sys", "traceback",
    "types",
}  # fmt: skip
# Of these, all names are looked at, not functions alone
OURS = ("minigrad", "bert_course")
JUDGES = ("bert_course.check", "bert_course.exercises", "bert_course.grade")
STATE = ("_attempted", "_hints_given")  # of an exercise: what a check itself changes
BY_PYTHON = ("__annotations__", "__warningregistry__")  # names that Python itself adds where it needs them


def watch() -> Callable[[], list[str]]:
    """To be called before the answer runs; what it returns tells afterwards what of the judges is not what it was.

    That function returns their names, as "module:name".

    What is compared is which function, class or constant has a name, not what is in lists, dicts and arrays.
    """
    modules, before = sys.modules, dict(_parts(sys.modules))
    # What that function needs, which an answer may have changed too: looked at first, and with nothing but itself.
    tools = [(vars(module), dict(vars(module))) for module in (builtins, types)] + [
        (globals(), dict(globals()))
    ]
    parts, same, counts = _parts, _same, _counts

    def changed() -> list[str]:
        for now, was in tools:
            if now.keys() - {"_"} != was.keys() - {"_"}:  # where Python puts what was shown last
                return ["the names in " + was["__name__"]]
            for name, value in was.items():
                if name != "_" and now[name] is not value:
                    return [was["__name__"] + "." + name]
        after = dict(parts(modules))
        found = [
            name
            for name, value in before.items()
            if name not in after or (value is not None and not same(value, after[name]))
        ]
        return found + [name for name in after if name not in before and counts(name, after[name], before)]

    return changed


def _counts(name: str, value: Any, before: Mapping[str, Any]) -> bool:
    """Whether what was not there before can change a verdict: in an exercise, in the library, or for a built-in."""
    module, _, of_module = name.partition(":")
    if f"sys.modules[{module!r}]" not in before or type(value) is types.ModuleType:  # loaded on the way
        return name.startswith("check.")
    return module.startswith(OURS) or of_module in vars(builtins)


def _parts(loaded: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What is looked at, by "module:name"."""
    away = {(module, name) for module, _, name in _taken_away()}
    for module_name, module in list(loaded.items()):
        package = module_name.partition(".")[0]
        if module_name not in WATCHED and package not in (*OURS, "numpy"):
            continue
        yield f"sys.modules[{module_name!r}]", module
        if not isinstance(module, types.ModuleType):  # what an answer has put there
            continue
        for name, value in list(vars(module).items()):
            if name not in BY_PYTHON and (module_name, name) not in away:
                yield from _of(f"{module_name}:{name}", value, module_name)
    for name, exercise in EXERCISES.items():
        yield f"check.{name}", (exercise, type(exercise), exercise.known_mistakes)
        for key, value in vars(exercise).items():
            if key not in STATE:
                yield f"check.{name}.{key}", value


def _of(name: str, value: Any, module: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, types.FunctionType):
        yield name, (value, value.__code__, value.__defaults__, value.__kwdefaults__)
    elif isinstance(value, type):
        yield name, value
        if value.__module__ == module and module.startswith(OURS):
            for key, member in list(vars(value).items()):
                if key in BY_PYTHON:
                    continue
                if isinstance(member, types.FunctionType):
                    yield f"{name}.{key}", (member, member.__code__, member.__defaults__)
                else:
                    fixed = isinstance(member, property | classmethod | staticmethod) or module.startswith(
                        JUDGES
                    )
                    yield f"{name}.{key}", member if fixed else None
    elif callable(value) or isinstance(value, types.ModuleType) or module.startswith(JUDGES):
        yield name, value
    elif module.startswith(OURS):
        yield name, None  # may become another, but was there


def _same(one: Any, other: Any) -> bool:
    """Whether these are the same things; their own `==` is not asked."""
    if type(one) is tuple and type(other) is tuple:
        return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
    return one is other
