"""The solutions as the sources of a course that nbgrader runs.

    python -m book._make.notebooks nbgrader FOLDER

writes FOLDER/source/one_head/one_head.ipynb and so on, which `nbgrader generate_assignment` takes. Each answer
cell becomes one of nbgrader's solution cells, the marks being nbgrader's own; each check becomes a graded test. The
check says what it always says, and a hidden test below it fails where the answer is not right, on other cases than the
learner's: that is what nbgrader counts. An exercise has as many points as its difficulty.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import nbformat

from minigrad.course.check.exercise import EXERCISES
from minigrad.course.grade.answers import ANSWER, CHECK, label_cells

SEED = 1  # of the hidden tests' cases; learners have 0
BEGIN = "### BEGIN SOLUTION"
CONFIG = '''"""nbgrader's settings for this course: nbgrader generate_assignment, nbgrader autograde."""

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "bert-from-nothing"
c.ClearSolutions.code_stub = {"python": "..."}
c.ExecutePreprocessor.timeout = 120
'''


def nbgrader_source(solution: Any) -> Any:
    """A solution with nbgrader's metadata on its answers and checks; the solution itself is left as it is."""
    source = nbformat.from_dict(solution)  # a deep copy
    source.cells = [cell for cell in source.cells if "solution" not in cell.metadata.get("tags", [])]
    label_cells(source.cells, lambda cell: BEGIN in cell.source)
    seen: Counter[str] = Counter()
    for cell in source.cells:
        tags = cell.metadata.get("tags", [])
        kind = next((tag for tag in (ANSWER, CHECK) if tag in tags), None)
        if kind is None:
            continue
        name = cell.metadata["course"]["exercise"]
        label = f"{kind}-{name}"
        seen[label] += 1
        cell.metadata["nbgrader"] = {
            "schema_version": 3,
            "cell_type": "code",
            "grade_id": label if seen[label] == 1 else f"{label}-{seen[label]}",
            "grade": kind == CHECK,
            "solution": kind == ANSWER,
            "locked": kind == CHECK,
            "task": False,
        }
        if kind == CHECK:
            cell.metadata["nbgrader"]["points"] = EXERCISES[name].difficulty
            cell.source += (
                "\n### BEGIN HIDDEN TESTS\n"
                f'assert check.{name}.accepts({name}, seed={SEED}), "{name} is not right yet"\n'
                "### END HIDDEN TESTS"
            )
    return source


def write_config(folder: Path) -> bool:
    """Write nbgrader's settings into a folder that has none; returns whether it did."""
    path = folder / "nbgrader_config.py"
    if path.exists():
        return False
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(CONFIG, encoding="utf-8")
    return True
