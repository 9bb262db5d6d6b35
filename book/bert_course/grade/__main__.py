"""Grade a class: run each answer in a process of its own, and write a table and pages.

    python -m bert_course.grade handed-in/ --out grades.csv

FOLDER holds notebooks of exercises as students or a learning platform name them, in folders or zip files; it may be
one zip file itself. Only the answer cells are run, and what they need of the cells above them. Written are grades.csv
(student, notebook, exercise, right, message, seconds), grades-pages/index.html for you, and grades-pages/students/ with
a page for each student.

The answers are programs that other people wrote, and they run on this machine: with limits, but as you. If you do not
know the people, run this command in a container. The course's page for instructors has the line.

Exit status: 0 when each notebook has been looked at, whatever the verdicts; 2 when nothing could be graded; 130 after
Ctrl-C, which keeps what was graded: the same command goes on.
"""

from __future__ import annotations

import os
import sys
from typing import Any

# What the processes of answers inherit: nothing secret, and one BLAS thread, as a process that forks may have no more.
KEPT = ("HOME", "LANG", "LC_ALL", "PATH", "PYTHONPATH", "TERM", "TMPDIR", "TZ", "VIRTUAL_ENV")
ADDED = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "MINIGRAD_BACKEND": "numpy",
}
CLEAN = "MINIGRAD_GRADING"  # set in an environment that is as it should be


def clean_environment() -> dict[str, str]:
    """The environment in which answers are graded."""
    kept = {name: value for name, value in os.environ.items() if name in KEPT}
    return {**kept, **ADDED, CLEAN: "1"}


def main(arguments: Any = None) -> int:
    """Grade, and return the exit status."""
    if not hasattr(os, "fork"):
        print("grading needs Linux or macOS: on Windows use WSL", file=sys.stderr)
        return 2
    try:
        from bert_course.grade.command import run  # takes a second, in which Ctrl-C is one line too

        return run(arguments, __doc__ or "")
    except KeyboardInterrupt:
        print("interrupted before anything was graded", file=sys.stderr)
        return 130


if __name__ == "__main__":
    if hasattr(os, "fork") and CLEAN not in os.environ:
        # Once more from the start, in a clean environment: NumPy has read the one of before.
        command = [sys.executable, "-m", "bert_course.grade", *sys.argv[1:]]
        os.execve(sys.executable, command, clean_environment())
    sys.exit(main())
