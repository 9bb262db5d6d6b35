"""What tests of checks share: an empty folder, what a check prints, and the kill rate at the end of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from minigrad.course.check import exercise as module
from minigrad.course.check.exercise import Exercise

KILLS = {"killed": 0, "tried": 0}


@pytest.fixture
def kills() -> dict[str, int]:
    """Counts over all exercises: wrong answers turned down with their message, and wrong answers tried."""
    return KILLS


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty working directory, no exercises but the test's own, and no settings from outside."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "EXERCISES", {})
    monkeypatch.delenv("MINIGRAD_PROGRESS", raising=False)
    monkeypatch.delenv("MINIGRAD_CHECK_SEED", raising=False)
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if KILLS["tried"]:
        terminalreporter.line(
            f"checks of exercises: {KILLS['killed']} of {KILLS['tried']} wrong answers turned down with their "
            f"message, a kill rate of {KILLS['killed'] / KILLS['tried']:.1%}"
        )
