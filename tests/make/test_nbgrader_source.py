"""The solutions as sources for nbgrader; where nbgrader is installed, also what its own commands make of them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
pytest.importorskip("nbclient", reason="nbclient is not installed (as nbformat)")

import nbformat

import minigrad
from book._make import notebooks
from book._make.nbgrader_source import nbgrader_source, write_config
from minigrad.course.check.exercise import EXERCISES

pytestmark = pytest.mark.no_arrays

ROOT = Path(minigrad.__file__).resolve().parent.parent
SOLUTIONS = sorted((ROOT / "solutions").glob("*.ipynb"))


def graded(source):
    return {
        cell.metadata["nbgrader"]["grade_id"]: cell for cell in source.cells if "nbgrader" in cell.metadata
    }


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_each_answer_is_a_solution_and_each_check_a_test(path):
    solution = notebooks.read(path)
    before = nbformat.writes(solution)
    found = graded(nbgrader_source(solution))
    assert nbformat.writes(solution) == before
    names = [name.partition("-")[2] for name in found if name.startswith("check-")]
    assert names
    assert len(found) == 2 * len(names)
    for name in names:
        answer, check = found[f"answer-{name}"], found[f"check-{name}"]
        assert "### BEGIN SOLUTION" in answer.source
        assert (answer.metadata["nbgrader"]["solution"], answer.metadata["nbgrader"]["grade"]) == (
            True,
            False,
        )
        assert (check.metadata["nbgrader"]["solution"], check.metadata["nbgrader"]["grade"]) == (False, True)
        assert check.metadata["nbgrader"]["points"] == EXERCISES[name].difficulty
        assert f"assert check.{name}.accepts({name}, seed=1)" in check.source


def test_what_a_hidden_test_asks_for_is_another_seed(capsys):
    exercise, seeds = EXERCISES["attend"], []

    def answer(q, k, v):
        seeds.append(q.sum())
        return exercise.answer(q, k, v)

    assert exercise.accepts(answer)
    assert exercise.accepts(answer, seed=1)
    first, second = seeds[: len(seeds) // 2], seeds[len(seeds) // 2 :]
    assert not set(first) & set(second)
    assert not exercise.accepts(lambda q, k, v: v, seed=1)
    assert not exercise.accepts(lambda q, k, v: ..., seed=1)
    assert capsys.readouterr().out == ""


def test_the_command_writes_a_source_for_each_solution(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert notebooks.main(["nbgrader", str(tmp_path / "course")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(SOLUTIONS) + 1
    written = sorted((tmp_path / "course" / "source").rglob("*.ipynb"))
    assert [path.name for path in written] == [path.name for path in SOLUTIONS]


def test_settings_that_are_there_are_kept(tmp_path):
    assert write_config(tmp_path)
    compile((tmp_path / "nbgrader_config.py").read_text(), "config", "exec")
    (tmp_path / "nbgrader_config.py").write_text("# mine")
    assert not write_config(tmp_path)
    assert (tmp_path / "nbgrader_config.py").read_text() == "# mine"


@pytest.mark.skipif(
    importlib.util.find_spec("nbgrader") is None,
    reason="nbgrader is not installed (pip install 'nbgrader<0.10', 51 packages more)",
)
@pytest.mark.slow
def test_nbgrader_gives_the_points(tmp_path):
    """A submission in which all is right, and one with a wrong answer and one left out."""
    notebooks._nbgrader(ROOT, tmp_path)
    stem = "one_head"

    def nbgrader(*arguments):
        command = [sys.executable, "-m", "nbgrader", *arguments]
        programs = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])  # it calls alembic
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": programs}
        result = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        assert result.returncode == 0, result.stderr

    nbgrader("generate_assignment", stem)
    release = json.loads((tmp_path / "release" / stem / f"{stem}.ipynb").read_text())
    text = json.dumps(release)
    assert "HIDDEN TESTS" not in text
    assert "BEGIN SOLUTION" not in text
    right = {cell.id: cell.source for cell in notebooks.read(ROOT / "solutions" / f"{stem}.ipynb").cells}
    for student in ("anna", "ben"):
        for cell in release["cells"]:
            kind = cell["metadata"].get("nbgrader", {})
            if kind.get("solution") and not (student == "ben" and kind["grade_id"] == "answer-look_left"):
                wrong = student == "ben" and kind["grade_id"] == "answer-attend"
                cell["source"] = right[cell["id"]].replace("/ math.sqrt(q.shape[-1])" if wrong else "\0", "")
            elif kind.get("solution"):
                cell["source"] = "def look_left(n):\n    ..."
        target = tmp_path / "submitted" / student / stem / f"{stem}.ipynb"
        target.parent.mkdir(parents=True)
        target.write_text(json.dumps(release))
    nbgrader("autograde", stem)
    nbgrader("export")
    lines = [line.split(",") for line in (tmp_path / "grades.csv").read_text().splitlines()]
    scores = {line[3]: float(line[lines[0].index("raw_score")]) for line in lines[1:]}
    points = {name: EXERCISES[name].difficulty for name in ("attend", "look_left")}
    all_points = sum(one.difficulty for one in EXERCISES.values() if one.chapter == "one_head")
    assert scores == {"anna": all_points, "ben": all_points - points["attend"] - points["look_left"]}
