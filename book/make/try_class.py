"""What the checks say to a class of answers that their authors wrote without having seen the checks.

    python -m book.make.try_class [--half 0|1] [--seed N] [--only EXERCISE …]

`class/EXERCISE.txt` has the answers to an exercise as cells, each below a line `# %% kind | what it is`; the kind is
wrong (one mistake), two (two mistakes, with a semicolon between them) or right. For each answer it prints the verdict
and what is said; at the end, how many right ones are accepted, how many wrong ones are rejected, and of these how many
hear no more than that. Whether a sentence is the mistake's, somebody has to read. Whoever mends checks looks at half 0
and leaves half 1 for the end.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import linecache
import os
import re
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from bert_course import check
from bert_course.check.exercise import EXERCISES

assert check  # imported for the exercises

CLASS = Path(__file__).parent / "class"
SECONDS = 25  # for an answer


def cells_of(exercise: str, half: int | None) -> list[tuple[str, str, str]]:
    """Kind, description and code of the answers to an exercise, or of those in one half."""
    text = (CLASS / f"{exercise}.txt").read_text(encoding="utf-8")
    found, seen = [], Counter[str]()
    for cell in re.split(r"(?m)^# %% ", text)[1:]:
        head, _, code = cell.partition("\n")
        kind, _, description = (part.strip() for part in head.partition("|"))
        # There is one answer with two mistakes for each exercise: half of the exercises are in each half.
        place = seen[kind] + (len(exercise) if kind != "two" else len(exercise) + ord(exercise[0]))
        seen[kind] += 1
        if half is None or place % 2 == half:
            found.append((kind, description, code))
    return found


def report_on(exercise: str, code: str, name: str, seed: int) -> Any:
    """What the check says of an answer; a verdict that is a note if it takes too long."""
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    scope: dict[str, Any] = {"__name__": "answers"}
    signal.alarm(SECONDS)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(code, name, "exec"), scope)
            return EXERCISES[exercise].report(scope[exercise], seed)
    finally:
        signal.alarm(0)


def interrupt(*_: Any) -> None:
    """Ctrl-C, when the seconds are over."""
    raise KeyboardInterrupt


def main() -> None:
    """Try the answers and print what is said."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", metavar="EXERCISE")
    options = parser.parse_args()
    os.environ["MINIGRAD_PROGRESS"] = "off"
    signal.signal(signal.SIGALRM, interrupt)
    counts = Counter[Any]()
    for exercise in options.only or sorted(path.stem for path in CLASS.glob("*.txt")):
        for number, (kind, description, code) in enumerate(cells_of(exercise, options.half)):
            report = report_on(exercise, code, f"<{exercise} {number}>", options.seed)
            print(f"{exercise}, {kind}: {description}\n  [{report.verdict}] {report.more} {report.symptom}")
            for paragraph in [*report.paragraphs, *report.besides]:
                print(f"  > {paragraph}")
            counts[kind, report.verdict] += 1
            counts["silent"] += kind != "right" and report.verdict == "wrong" and not report.paragraphs
    print(f"right answers: {counts['right', 'right']} accepted, {counts['right', 'wrong']} not")
    rejected = counts["wrong", "wrong"] + counts["two", "wrong"]
    accepted = counts["wrong", "right"] + counts["two", "right"]
    print(f"wrong answers: {rejected} rejected, {accepted} not; {counts['silent']} hear only the symptom")


if __name__ == "__main__":
    main()
