"""What every command line here is made of: options of a table of settings, errors as one line, streams and signals."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import difflib
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy.random  # noqa: F401  (NumPy puts it off; a Ctrl-C inside this import, of all, would be swallowed)

from minigrad import backend
from minigrad.distributed import DistributedError, from_environment
from minigrad.messages import LONGEST_LINE, shown
from minigrad.training.fields import LARGEST_INTEGER
from minigrad.training.folders import RunFolderError
from minigrad.training.progress import Unfailing
from minigrad.training.reading import CheckpointError, ConfigError
from minigrad.training.run import DivergenceError

# --- Options ---------------------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """A parser whose errors have limited length and nothing that a terminal would obey."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, and exit with status 2."""
        super().error(shown(message, LONGEST_LINE))


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Defaults shown where there is one, line breaks of the description kept."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default is None or action.default is False or action.default == []:
            return action.help
        return super()._get_help_string(action)


def add_commands(
    parser: argparse.ArgumentParser, usage: Mapping[str, str]
) -> Callable[..., argparse.ArgumentParser]:
    """A function (name, help, description=None) that adds a command, with its option --backend, to a parser.

    usage: of each command, what is to be typed after the program.
    """
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")

    def add(name: str, help: str, description: str | None = None) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=help,
            usage=f"{parser.prog} {usage[name]}",
            description=description or f"{help[0].upper()}{help[1:]}.",
            formatter_class=HelpFormatter,
        )
        command.add_argument(
            "--backend",
            choices=backend.NAMES,
            help="where to compute (default: MINIGRAD_BACKEND, else numpy)",
        )
        return command

    return add


def add_settings(command: argparse.ArgumentParser, table: type, or_else: Mapping[str, str]) -> None:
    """An option for each line of a table; or_else: the default of some where the table's is too large."""
    for line in dataclasses.fields(table):
        help, choices, default = line.metadata["help"], line.metadata["one_of"], line.default
        if choices:
            command.add_argument(option(line.name), choices=choices, default=default, help=help)
        elif default is False:
            command.add_argument(option(line.name), action="store_true", help=help)
        else:
            kind = integer if isinstance(default, int) else number
            if line.name in or_else:
                help, default = f"{help} (default: {default}), {or_else[line.name]}", None
            command.add_argument(option(line.name), type=kind, default=default, metavar="N", help=help)


def add_shares(command: argparse.ArgumentParser) -> None:
    """The option --shares."""
    command.add_argument(
        "--shares",
        type=integer,
        metavar="N",
        help="in how many parts a process computes a batch at once (default: one for each core, fewer where "
        "each would have little work, 1 on a GPU, of a resumed run as before)",
    )


def add_sizes(command: argparse.ArgumentParser) -> None:
    """The option --set."""
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="change a size, such as hidden_size=256; may be repeated",
    )


def changed_sizes(changes: Iterable[str], texts: Container[str] = ()) -> dict[str, Any]:
    """The fields that `--set name=value` names, with their values: numbers, but for those in `texts`.

    Raises ConfigError.
    """
    values: dict[str, Any] = {}
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals:
            raise ConfigError(f"--set takes field=value, such as hidden_size=256; got {change!r}")
        if name in texts:
            values[name] = value
            continue
        try:
            values[name] = json.loads(value)
        except (ValueError, RecursionError):
            raise ConfigError(f"--set {name}: expected a number, got {shown(value, 40)!r}") from None
        if isinstance(values[name], int) and abs(values[name]) > LARGEST_INTEGER:
            raise ConfigError(f"--set {name}: expected a number below 2^63, got {shown(value, 40)!r}")
    return values


def option(name: str) -> str:
    """--batch-size of batch_size."""
    return "--" + name.replace("_", "-")


def integer(text: str) -> int:
    """A number on the command line. Python's integers have no limit; floats and arrays do."""
    with contextlib.suppress(ValueError):
        value = int(text)
        if abs(value) <= LARGEST_INTEGER:
            return value
    raise argparse.ArgumentTypeError(f"expected an integer below 2^63, got {shown(text, 40)!r}")


def number(text: str) -> float:
    """A number on the command line."""
    with contextlib.suppress(ValueError):
        return float(text)
    raise argparse.ArgumentTypeError(f"expected a number, got {shown(text, 40)!r}")


def parse_options(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    commands: Iterable[str],
    need_model: Container[str] = (),
) -> argparse.Namespace:
    """The options given, by default to this process; `command` is the name of the command.

    need_model: the commands that can do nothing without --model. Exits with status 2 for what is not an
    option, and with 0 after --help.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    _require_a_command(parser, arguments, list(commands))
    options, rest = parser.parse_known_args(arguments)
    if options.command in need_model and options.model is None:
        parser.error(f"{options.command} needs --model, a run's folder or a checkpoint")
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}{_perhaps(options, rest)}")
    # Until Python 3.12, argparse makes an empty list of `--steps=--`.
    for name, value in vars(options).items():
        if isinstance(value, list) and (
            name not in ("set", "texts") or not all(isinstance(one, str) for one in value)
        ):
            parser.error(f"argument {option(name)}: expected one argument")
    return options


def _require_a_command(
    parser: argparse.ArgumentParser, arguments: Sequence[str], commands: Sequence[str]
) -> None:
    """Exit with the command that was perhaps meant, if the first argument is none."""
    if not arguments or arguments[0].startswith("-") or arguments[0] in commands:
        return
    near = difflib.get_close_matches(arguments[0], commands, n=1)
    help = f"did you mean {near[0]}?" if near else f"there are {', '.join(commands)}"
    parser.error(f"there is no command {shown(arguments[0], 40)!r}: {help}")


WORDS = ("text", "second", "a", "b", "texts")  # what stands without an option's name


def _perhaps(options: argparse.Namespace, rest: Sequence[str]) -> str:
    """The option that was perhaps meant by what is left over, as the end of a sentence."""
    written = next((one.split("=")[0] for one in rest if one.startswith("--")), "")
    named = [option(name) for name in sorted(vars(options)) if name not in (*WORDS, "command")]
    near = difflib.get_close_matches(written, named, n=1)
    if near or written or getattr(options, "model", "") is not None:
        return f"; did you mean {near[0]}?" if near else ""
    return "; a model is named by --model"


# --- Running a command -----------------------------------------------------------------------------------


def run_command(
    commands: Mapping[str, Callable[[argparse.Namespace], int | None]],
    options: argparse.Namespace,
    shared: Container[str] = (),
) -> int:
    """Run one command; returns the exit status: 0, 1 after an error that was explained, 128 + a signal's number.

    shared: the commands whose work several processes of mpirun can share; in any other, each would do the
    same.
    """
    try:
        if options.command not in shared:
            _require_alone(options.command)
        if options.backend:
            backend.use(options.backend)
        return commands[options.command](options) or 0
    except BrokenPipeError:
        return 0  # `| head` has seen enough
    except MemoryError as error:
        return _fail(
            str(error) or "not enough memory: less text, a smaller model or a smaller batch needs less"
        )
    except (
        CheckpointError,
        DistributedError,
        DivergenceError,
        RunFolderError,
        backend.BackendError,
        OSError,
        ValueError,  # of which CorpusError, ExampleError and ConfigError are
    ) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=Unfailing(sys.stderr))
        return 128 + signal.SIGINT


def _fail(message: str) -> int:
    print(f"error: {shown(message, LONGEST_LINE)}", file=Unfailing(sys.stderr))
    return 1


@contextmanager
def speaking(aloud: bool) -> Iterator[None]:
    """Inside this context, messages that cannot be printed stop no work; if not aloud, nothing is printed."""
    if aloud:
        messages: Any = Unfailing(sys.stdout)
        with contextlib.redirect_stdout(messages):
            yield
        return
    with (
        open(os.devnull, "w") as nobody,
        contextlib.redirect_stdout(nobody),
        contextlib.redirect_stderr(nobody),
    ):
        yield


def _require_alone(command: str) -> None:
    """Raise DistributedError if mpirun has started several processes, of which each would do the same."""
    world = from_environment()
    with world.ending_together():
        if world.size > 1:
            raise DistributedError(
                f"{command} runs in one process, not in {world.size}: only pretrain shares its work"
            )


def say(text: str) -> None:
    """Print at once, so that what cannot be written is an error here, not when the process ends."""
    print(text, flush=True)


def remark(text: str) -> None:
    """Print a remark where errors go."""
    print(f"note: {shown(text, LONGEST_LINE)}", file=Unfailing(sys.stderr))


def typed(argument: str) -> str:
    """How to type one argument in this system's shell."""
    return subprocess.list2cmdline([argument]) if os.name == "nt" else shlex.quote(argument)


def python() -> str:
    """What to type to get the Python that runs this."""
    for name in ("python", "python3"):
        if os.path.normcase(shutil.which(name) or "") == os.path.normcase(sys.executable):
            return name
    try:
        inside = os.path.relpath(sys.executable)
    except ValueError:  # on another drive
        inside = os.pardir
    return typed(sys.executable if inside.startswith(os.pardir) else inside)


# --- The process -----------------------------------------------------------------------------------------


def as_process(main: Callable[[], int]) -> int:
    """`main`, and what only a process of its own may do to its streams and signals."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by who started this: what is opened next must not get its number
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", closefd=False))
        else:
            stream.reconfigure(errors="backslashreplace")
    # A file, which Windows would read as cp1252
    if isinstance(sys.stdin, io.TextIOWrapper) and not sys.stdin.isatty():
        sys.stdin.reconfigure(encoding="utf-8")
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_DFL):
        signal.signal(signal.SIGINT, _interrupt)
    try:
        return main()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:  # Python flushes again when it ends, and would say much
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _interrupt(*_: object) -> None:
    """Ctrl-C raises KeyboardInterrupt; while that is on its way, a second one ends the process at once."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise KeyboardInterrupt
