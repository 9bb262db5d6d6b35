"""The kill rate of the exercises' checks, printed at the end of a run."""

from __future__ import annotations

import pytest

KILLS = {"killed": 0, "tried": 0}


@pytest.fixture
def kills() -> dict[str, int]:
    """Counts over all exercises: wrong answers turned down with their message, and wrong answers tried."""
    return KILLS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if KILLS["tried"]:
        terminalreporter.line(
            f"checks of exercises: {KILLS['killed']} of {KILLS['tried']} wrong answers turned down with their "
            f"message, a kill rate of {KILLS['killed'] / KILLS['tried']:.1%}"
        )
