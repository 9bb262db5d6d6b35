"""How long a class took for each exercise, to send back to those who write the course: no names, no answers.

    python -m bert_course.grade.times FOLDER [--out times.csv]

FOLDER holds the files `.progress.json` of students' my-exercises/, each in a folder of its own. A row for each exercise
that somebody solved: the minutes that the course says, how many solved it, the quartiles of their minutes up to the
first right answer, and their median number of attempts.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from pathlib import Path
from typing import Any

from bert_course import check  # noqa: F401  (brings every exercise)
from bert_course.check.exercise import EXERCISES
from bert_course.check.record import PROGRESS_FILE, Entries, read

COLUMNS = ("exercise", "chapter", "said", "students", "quarter", "half", "three quarters", "attempts")


def rows(students: list[Entries]) -> list[list[Any]]:
    """A row of COLUMNS for each exercise that a student solved and whose time is known, in the course's order."""
    found = []
    for one in EXERCISES.values():
        entries = [known[one.name] for known in students if one.name in known]
        solved = [entry for entry in entries if entry["solved"] and entry["seconds"]]
        minutes = [entry["seconds"] / 60 for entry in solved]
        if minutes:
            parts = statistics.quantiles(minutes, n=4, method="inclusive") if minutes[1:] else minutes * 3
            attempts = statistics.median(entry["attempts"] for entry in solved)
            times = [round(part, 1) for part in parts]
            found.append([one.name, one.chapter, one.minutes, len(minutes), *times, attempts])
    return found


def main(arguments: Any = None) -> int:
    """Write the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a folder with a folder for each student")
    parser.add_argument("--out", type=Path, default=Path("times.csv"))
    options = parser.parse_args(arguments)
    files = sorted(options.folder.rglob(PROGRESS_FILE))
    known = {path: read(path) for path in files}
    for path in [path for path, entries in known.items() if entries is None]:
        print(f"{path} is damaged and left out", file=sys.stderr)
    students = [entries for entries in known.values() if entries]
    table = rows(students)
    if not table:
        print(f"no {PROGRESS_FILE} in {options.folder} has the time of a solved exercise", file=sys.stderr)
        return 1
    with options.out.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *table])
    print(f"{options.out}: {len(table)} exercises, {len(students)} students")
    return 0


if __name__ == "__main__":
    sys.exit(main())
