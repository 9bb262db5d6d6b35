"""A class to grade: notebooks with answers of the banks and checks' mistakes, and the verdict that each must get."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import minigrad
from bert_course.check.exercise import EXERCISES

ROOT = Path(minigrad.__file__).resolve().parent.parent
BANKS = ROOT / "tests" / "course" / "exercises"


@dataclass(frozen=True)
class Expected:
    """What must come of an answer. pieces: of the message of a wrong one."""

    right: bool
    pieces: tuple[str, ...] = ()


def read_exercise(stem: str) -> dict[str, Any]:
    """The course's notebook of exercises."""
    return json.loads((ROOT / "exercises" / f"{stem}.ipynb").read_text(encoding="utf-8"))


def filled(stem: str, answers: Mapping[str, str]) -> dict[str, Any]:
    """A notebook as a learner saves it, with these sources in the answer cells of these exercises."""
    notebook = read_exercise(stem)
    for cell in notebook["cells"]:
        metadata = cell["metadata"]
        if "answer" in metadata.get("tags", []) and metadata["course"]["exercise"] in answers:
            cell["source"] = answers[metadata["course"]["exercise"]].splitlines(keepends=True)
    return notebook


def class_of(stem: str, bank_name: str, count: int, folder: Path) -> dict[tuple[str, str], Expected]:
    """Write `count` notebooks, in each another choice of answers, and return what must come of each answer."""
    if str(BANKS) not in sys.path:
        sys.path.append(str(BANKS))
    known = {
        cell["metadata"]["course"]["exercise"]: answers_to(cell["metadata"]["course"]["exercise"], bank_name)
        for cell in read_exercise(stem)["cells"]
        if "answer" in cell["metadata"].get("tags", [])
    }
    expected: dict[tuple[str, str], Expected] = {}
    for number in range(count):
        student, sources = f"student-{number:03}", {}
        for place, (name, answers) in enumerate(known.items()):
            # Another step for each exercise, so that two students seldom answer all alike.
            which = (number + place * (number // len(answers))) % len(answers)
            sources[name], expected[student, name] = answers[which]
        path = folder / student / f"{stem}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(filled(stem, sources)))
    return expected


def answers_to(name: str, bank_name: str) -> list[tuple[str, Expected]]:
    """Cells with an answer to an exercise: all of a bank, and each mistake of the check; and what must come of each."""
    banks, bank = importlib.import_module("banks"), importlib.import_module(bank_name)
    exercise, wrong = EXERCISES[name], getattr(bank, "WRONG", {}).get(name, [])
    found = [(f"{bank_name}.RIGHT[{name!r}][{i}]", Expected(True)) for i in range(len(bank.RIGHT[name]))]
    found += [
        (f"{bank_name}.WRONG[{name!r}][{i}][0]", Expected(False, banks.expected(exercise, pieces)))
        for i, (_, pieces) in enumerate(wrong)
    ]
    found += [
        (f"banks.mistaken({name!r}, {i})", Expected(False, (mistake.sentence,)))
        for i, mistake in enumerate(exercise.known_mistakes)
    ]
    return [(f"import banks, {bank_name}\n\n{name} = {answer}\n", what) for answer, what in found]


def environment() -> dict[str, str]:
    """That of a grading process of its own, which finds the banks."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR", "LANG")}
    return {**kept, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, BANKS)))}


def grade(
    folder: Path | str, out: Path | str, *options: str, cwd: Path | None = None, timeout: float = 600
) -> subprocess.CompletedProcess[str]:
    """The command, in a process of its own, called in the folder `cwd`."""
    command = [sys.executable, "-m", "bert_course.grade", str(folder), "--out", str(out), *options]
    return subprocess.run(
        command, env=environment(), cwd=cwd, capture_output=True, text=True, timeout=timeout
    )
