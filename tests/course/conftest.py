"""What tests share: of checks an empty folder and what a check prints, of figures the axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bert_course.check import exercise as module
from bert_course.check import record
from bert_course.check.exercise import Exercise


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working directory, no exercises but the test's own, and no settings from outside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "EXERCISES", {})
    monkeypatch.setattr(record, "_this_run", {})
    monkeypatch.delenv("MINIGRAD_PROGRESS", raising=False)
    monkeypatch.delenv("MINIGRAD_CHECK_SEED", raising=False)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    return tmp_path


@pytest.fixture
def told(capsys) -> Callable[..., list[str]]:
    """`told(exercise, answer)`: the lines that the check prints; it must return whether the answer is right."""

    def tell(exercise: Exercise, answer: Any) -> list[str]:
        capsys.readouterr()
        right = exercise.judge(answer)
        captured = capsys.readouterr()
        assert captured.err == ""
        assert right is captured.out.startswith(f"{exercise.name}: right.")
        return captured.out.splitlines()

    return tell


@pytest.fixture
def axes_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Call a function of the course that draws, and get matplotlib's axes, whose bars and lines can be asked."""
    canvas = pytest.importorskip("matplotlib.figure").Figure()
    from bert_course.common.figures import SCHEMES  # here: not every process draws

    def draw(function: Any, *arguments: Any, **settings: Any) -> Any:
        monkeypatch.setitem(function.__globals__, "figure", lambda plot, *_: plot(canvas, SCHEMES["light"]))
        function(*arguments, **settings)
        (axes,) = canvas.axes
        return axes

    return draw
