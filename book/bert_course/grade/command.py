"""The command line of grading: its options, what it says, and the files that it writes."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

import minigrad
from bert_course.check.report import printable
from bert_course.grade.answers import sheets
from bert_course.grade.grading import HandedIn, collect, count, grade, right_task, rows_of
from bert_course.grade.inside import Limits, as_nobody
from bert_course.grade.pages import many, write_pages
from bert_course.grade.process import CannotRun, prepare, self_test
from bert_course.grade.submissions import Refused
from bert_course.grade.table import Done, Row, as_csv
from bert_course.grade.verdict import STATES
from minigrad.files import SaveError, write_atomic
from minigrad.messages import shown
from minigrad.training.progress import Unfailing, bar

COURSE = Path(minigrad.__file__).resolve().parent.parent
SEED = 1  # learners see the cases of seed 0
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
MOST_SHOWN = 20  # lines on what was not graded; the table has all


def _parser(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bert_course.grade",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="what was handed in: a folder, or one zip file"
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="the table to write, such as grades.csv"
    )
    parser.add_argument(
        "--course", type=Path, default=COURSE, help="the course's folder, with exercises/ in it"
    )
    parser.add_argument(
        "--jobs", type=_whole(1, 1024), default=cores, help="answers at a time (default: the cores)"
    )
    parser.add_argument(
        "--timeout", type=_seconds, default=10.0, help="seconds for one exercise (default: 10)"
    )
    parser.add_argument(
        "--memory", type=_memory, default="2G", help="for one exercise, such as 500M (default: 2G)"
    )
    parser.add_argument(
        "--seed",
        type=_whole(1, 2**31),
        default=SEED,
        help="of the cases, from 1: learners have 0 (default: 1)",
    )
    parser.add_argument("--again", action="store_true", help="grade all anew, also what has not changed")
    return parser


def _whole(least: int, most: int) -> Any:
    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} to {most}")
        return int(text)

    return read


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0.1 to 3600")
    return seconds


def _memory(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KMG]?)i?B?", text, re.IGNORECASE)
    size = int(found[1]) * UNITS[found[2].upper()] if found else 0
    if not 2**28 <= size < 2**50:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount of memory from 256M on, such as 500M or 2G")
    return size


def run(arguments: Any, description: str) -> int:
    """Read the options, grade, write; returns the exit status. description: what --help says before the options."""
    options = _parser(description).parse_args(arguments)
    limits = Limits(options.timeout, options.memory)
    try:
        _require_place(options.out)
        course = sheets(options.course / "exercises")
        written = _written(options.out)
        handed_in, refused = collect(options.folder, course, written)
        if not handed_in:
            reasons = "".join(f"\n{one.name}: {one.reason}" for one in refused[:MOST_SHOWN])
            raise FileNotFoundError(f"there is no notebook to grade in {options.folder}{reasons}")
        prepare()
        self_test(
            lambda name: right_task(course, name, f"{name} = check.{name}.answer"), limits, options.seed
        )
    except (OSError, ValueError, CannotRun) as error:
        print(shown(str(error), 5000), file=sys.stderr)
        return 2
    if hasattr(os, "geteuid") and os.geteuid() == 0 and not as_nobody():
        print("answers run as root, because the user nobody cannot read Python here", file=sys.stderr)
    _, state, pages = written
    done = Done(state)
    if options.again:
        done.verdicts.clear()
    # Whole paths, as answers run in a folder of their own; not the table's folder, which may hold the course as well.
    private = [path.resolve() for path in (options.folder, *written, options.course / "solutions")]
    interrupted = False
    try:
        _grade(handed_in, done, options, limits, private)
    except KeyboardInterrupt:
        interrupted = True
    except OSError as error:
        print(error, file=sys.stderr)
        return 2
    rows = rows_of(handed_in, done, limits, options.seed)
    try:
        write_atomic(options.out, as_csv(rows, refused))
        index = write_pages(pages, rows, refused)
    except SaveError as error:
        print(error, file=sys.stderr)
        return 2
    print(printable(_summary(handed_in, rows, refused)))
    print(f"{options.out}, {index}")
    if interrupted:
        again = ", without --again," if options.again else ""
        print(f"interrupted: the same command{again} goes on from here", file=sys.stderr)
    return 130 if interrupted else 0


def _written(out: Path) -> tuple[Path, Path, Path]:
    """What grading writes: the table, the file by which it goes on, the folder of pages."""
    return out, out.with_name(out.name + ".state.json"), out.with_name(out.stem + "-pages")


def _require_place(out: Path) -> None:
    """Before any work: raise ValueError if the table cannot be written there."""
    if out.is_dir() or out.suffix != ".csv":
        raise ValueError(f"--out names the table to write, a file such as grades.csv; it is {out}")
    if not out.parent.is_dir():
        raise ValueError(f"there is no folder {out.parent} to write {out.name} into")


def _grade(
    handed_in: Sequence[HandedIn],
    done: Done,
    options: argparse.Namespace,
    limits: Limits,
    private: list[Path],
) -> None:
    tqdm.monitor_interval = 0  # its watch is a thread, and a process that forks may have none
    with bar(count(handed_in, limits, options.seed), "exercise", Unfailing(sys.stderr)) as shown_bar:
        grade(handed_in, done, options.jobs, limits, options.seed, private, shown_bar.update)


def _summary(handed_in: Sequence[HandedIn], rows: Sequence[Row], refused: Sequence[Refused]) -> str:
    students = len({one.student for one in handed_in})
    states = Counter(row.verdict.right for row in rows)
    counts = ", ".join(f"{states[state]} {state}" for state in STATES if states[state])
    lines = [
        f"{many(students, 'student')}, {many(len(handed_in), 'notebook')}, {many(len(rows), 'exercise')}: {counts}"
    ]
    lines += [shown(f"{one.name}: {one.reason}", 400) for one in refused[:MOST_SHOWN]]
    if len(refused) > MOST_SHOWN:
        lines.append(f"… and {len(refused) - MOST_SHOWN} more that were not graded: the table has them")
    return "\n".join(lines)
