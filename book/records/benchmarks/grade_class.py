"""Grade a class of two hundred, with answers from the banks and the checks' mistakes, and store what came of it.

    python book/records/benchmarks/grade_class.py --record book/records/grade_class.json

The record says how long it took, on which machine, and which verdicts are not as they should be.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path[:0] = [
    str(Path(__file__).resolve().parents[3]),
    str(Path(__file__).resolve().parents[3] / "tests" / "course" / "grade"),
]

from classes import Expected, class_of, grade  # noqa: E402
from machine import cores, processor  # noqa: E402


def differing(table: Path, expected: dict[tuple[str, str], Expected]) -> list[dict[str, Any]]:
    """The rows that are not as they should be, and those that are not there."""
    left, found = dict(expected), []
    with open(table, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            wanted = left.pop((row["student"], row["exercise"]), None)
            message = " ".join(row["message"].split())
            right = wanted is not None and row["right"] == ("yes" if wanted.right else "no")
            if wanted is None or not right or not all(piece in message for piece in wanted.pieces):
                found.append({**row, "expected": str(wanted)})
    return found + [{"student": student, "exercise": name, "right": "no row"} for student, name in left]


def main() -> int:
    """Make the class, grade it, and write the record; returns 0 if every verdict is as it should be."""
    csv.field_size_limit(10**9)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--chapter", default="one_head")
    parser.add_argument("--students", type=int, default=200)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    bank = "bank_" + options.chapter
    with tempfile.TemporaryDirectory() as scratch:
        folder, table = Path(scratch, "handed-in"), Path(scratch, "grades.csv")
        expected = class_of(options.chapter, bank, options.students, folder)
        started = time.monotonic()
        result = grade(folder, table, timeout=3600)
        seconds = time.monotonic() - started
        print(result.stdout, result.stderr, file=sys.stderr)
        faults = differing(table, expected) if table.exists() else [{"right": "no table"}]
    record = {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": processor(),
        "cores": cores(),
        "python": platform.python_version(),
        "system": platform.system(),
        "chapter": options.chapter,
        "students": options.students,
        "exercises": len(expected),
        "right": sum(one.right for one in expected.values()),
        "seconds": round(seconds, 1),
        # Of all programs, over five minutes: above the cores, others ran too
        "load": round(os.getloadavg()[1], 1),
        "differ_from_the_bank": faults,
    }
    text = json.dumps(record, indent=2) + "\n"
    print(text)
    if options.record:
        options.record.write_text(text)
    return 1 if faults or result.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
