"""What several tests of translation share."""

from __future__ import annotations

import pytest
from commands import error_of

from minigrad.seq2seq.__main__ import main


@pytest.fixture
def failing(capsys):
    """Run a command that fails, and return its one line on stderr."""

    def fail(*command: object) -> str:
        return error_of(main, capsys, command)

    return fail
