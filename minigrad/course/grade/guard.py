"""What an answer may not do while it is graded, and whether it has tampered with what judges it.

This stops accidents and simple mischief, and tells of them in words. It does not stop an attacker: code that runs in
a process can undo whatever that process does. Who grades people that are not trusted does it in a container.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from minigrad.course.check.exercise import EXERCISES

__all__ = ["Fingerprint", "fingerprint", "install", "tampered"]

# Events of Python's audit hooks, by how they begin, and what they would do.
REFUSED = {
    "ctypes.": "reach into the process's memory",
    "gc.get_": "look through the process's objects",
    "os.exec": "start another program",
    "os.fork": "start another process",
    "os.kill": "send a signal to a process",
    "os.posix_spawn": "start another program",
    "os.spawn": "start another program",
    "os.startfile": "start another program",
    "os.system": "start another program",
    "pty.spawn": "start another program",
    "resource.setrlimit": "change its limits",
    "resource.prlimit": "change its limits",
    "signal.pthread_kill": "send a signal",
    "socket.bind": "wait for others on the network",
    "socket.connect": "use the network",
    "socket.getaddrinfo": "use the network",
    "socket.gethostby": "use the network",
    "socket.sendto": "use the network",
    "subprocess.Popen": "start another program",
    "sys.setprofile": "watch the check",
    "sys.settrace": "watch the check",
}
# These change files: allowed in the answer's own folder alone. Each of their arguments that is text is a path.
CHANGES = {
    "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate",
    "os.utime", "shutil.chown", "shutil.move", "shutil.rmtree",
}  # fmt: skip
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
MOST_WRITES = 200  # files opened for writing: with the limit of a file's size, a limit of the disk


def install(home: Path, private: list[Path]) -> None:
    """From here on, and for good, this process may not do what is listed above.

    home: the folder in which files may be written. private: folders in which nothing may be read either.
    """
    inside, hidden = os.path.realpath(home), [os.path.realpath(folder) for folder in private]
    written = 0

    def lies_in(path: Any, folder: str) -> bool:
        if isinstance(path, int):  # what is open already
            return True
        real = os.path.realpath(os.fsdecode(path))
        return real == folder or real.startswith(folder + os.sep)

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal written
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, int):
                return
            if isinstance(flags, int) and flags & WRITES and os.fsdecode(path) != os.devnull:
                written += 1
                if written > MOST_WRITES:
                    raise PermissionError(f"an answer may not open more than {MOST_WRITES} files for writing")
                if not lies_in(path, inside):
                    raise PermissionError(f"an answer may not write {os.fsdecode(path)} while it is graded")
            if any(lies_in(path, folder) for folder in hidden):
                raise PermissionError(f"an answer may not read {os.fsdecode(path)} while it is graded")
        elif event in ("os.listdir", "os.scandir"):
            if any(lies_in(arguments[0] or ".", folder) for folder in hidden):
                raise PermissionError("an answer may not look into this folder while it is graded")
        elif event in CHANGES:
            paths = [path for path in arguments if isinstance(path, str | bytes | os.PathLike)]
            if not all(lies_in(path, inside) for path in paths):
                raise PermissionError("an answer may not change files outside of its own folder")
        elif event == "object.__setattr__" and arguments[1] == "__code__":
            raise PermissionError("an answer may not change a function's code")
        else:
            words = next((words for start, words in REFUSED.items() if event.startswith(start)), "")
            if words:
                raise PermissionError(f"an answer may not {words} while it is graded ({event})")

    sys.addaudithook(refuse)


# --- What judges -----------------------------------------------------------------------------------------

Fingerprint = dict[str, Any]

WATCHED = (
    "ast",
    "builtins",
    "inspect",
    "json",
    "math",
    "numpy",
    "numpy.linalg",
    "os",
    "signal",
    "sys",
    "traceback",
)
STATE = ("_attempted", "_hints_given")  # of an exercise: what a check itself changes


def fingerprint() -> Fingerprint:
    """The functions and classes that judge an answer, by name: to be compared with the same after it has run."""
    return dict(_parts())


def _parts() -> Iterator[tuple[str, Any]]:
    modules = {
        name: module
        for name, module in sys.modules.items()
        if name in WATCHED or name.partition(".")[0] == "minigrad"
    }
    for module_name, module in modules.items():
        yield f"sys.modules[{module_name!r}]", module
        if not isinstance(module, types.ModuleType):  # what an answer has put there
            continue
        for name, value in list(vars(module).items()):
            yield from _of(f"{module_name}.{name}", value, module_name)
    for name, exercise in EXERCISES.items():
        for key, value in vars(exercise).items():
            if key not in STATE:
                yield f"check.{name}.{key}", value


def _of(name: str, value: Any, module: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, types.FunctionType):
        yield name, (value, value.__code__, value.__defaults__, value.__kwdefaults__)
    elif isinstance(value, type):
        yield name, value
        if value.__module__ == module and module.startswith("minigrad"):
            for key, member in list(vars(value).items()):
                if isinstance(member, types.FunctionType):
                    yield f"{name}.{key}", (member, member.__code__, member.__defaults__)
                elif isinstance(member, property | classmethod | staticmethod):
                    yield f"{name}.{key}", member
    elif callable(value) or isinstance(value, types.ModuleType):
        yield name, value


def tampered(before: Fingerprint) -> list[str]:
    """The names of what is another function or class now than it was, or is gone."""
    now = fingerprint()
    return [name for name, value in before.items() if not _same(value, now.get(name))]


def _same(one: Any, other: Any) -> bool:
    """Whether these are the same things; their own `==` is not asked."""
    if type(one) is tuple and type(other) is tuple:
        return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
    return one is other
