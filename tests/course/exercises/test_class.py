"""What the checks say to a class of answers that their authors wrote without having seen the checks.

`class/EXERCISE.txt` has the answers to an exercise as cells, each below a line `# %% KIND | what it is`; the kind is
right, wrong (one mistake) or two (two mistakes, with a semicolon between them). Where a check accepts a wrong answer,
names the symptom and no mistake, or one of two, the kind is followed by a comma and `accepted`, `symptom` or `one`.
Lines that begin with `# fix:` say what is wrong and what belongs there. An answer sees what the sheet's cells define.
Which sentence is said, somebody has to read: `pytest -m slow -rP tests/course/exercises/test_class.py -k attend`.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import linecache
import re
from pathlib import Path

import pytest

from bert_course.check import path
from bert_course.check.exercise import EXERCISES

ROOT = Path(__file__).parents[3]
CLASS = Path(__file__).parent / "class"

pytestmark = [pytest.mark.slow, pytest.mark.numpy_only("answers are judged on NumPy")]


def answers(exercise: str) -> list[tuple[str, str, str]]:
    """The kind, the description and the code of each answer of the class."""
    cells = re.split(r"(?m)^# %% ", (CLASS / f"{exercise}.txt").read_text(encoding="utf-8"))[1:]
    return [
        (*map(str.strip, cell.partition("\n")[0].split("|", 1)), cell.partition("\n")[2])  # type: ignore[misc]
        for cell in cells
    ]


@functools.cache
def sheet(chapter: str) -> dict[str, object]:
    """What the cells of a chapter's sheet define, as far as they run without an answer."""
    notebook = json.loads((ROOT / "exercises" / f"{chapter}.ipynb").read_text(encoding="utf-8"))
    scope: dict[str, object] = {"__name__": "answers"}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and not source.startswith("check."):
            with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
                exec(source, scope)
    return scope


@pytest.mark.parametrize("exercise", sorted(path.stem for path in CLASS.glob("*.txt")))
def test_what_the_check_says_to_the_class(exercise, monkeypatch):
    monkeypatch.setattr(path, "SECONDS", 30)  # on a busy machine
    differing = []
    for number, (kind, description, code) in enumerate(answers(exercise)):
        file = f"<{exercise}, answer {number}>"
        linecache.cache[file] = len(code), None, code.splitlines(keepends=True), file
        scope = dict(sheet(EXERCISES[exercise].chapter))
        exec(compile(code, file, "exec"), scope)
        report = EXERCISES[exercise].report(scope[exercise], 0)
        print(f"{kind}: {description}\n  [{report.verdict}] {report.more} {report.symptom}")
        print("".join(f"  > {paragraph}\n" for paragraph in [*report.paragraphs, *report.besides]))
        base, right = kind.partition(",")[0], report.verdict == "right"
        if base == "right":
            said = base if right else "right, rejected"
        else:
            said = f"{base}, accepted" if right else base if report.paragraphs else f"{base}, symptom"
            if said == "two" and len(report.paragraphs + report.besides) < 2:
                said = "two, one"
        if said != kind:
            differing.append(f"{description}: {said}, it was: {kind}")
    assert differing == []
