"""A run keeps the garbage collector from looking at the model again and again, and leaves it as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import tiny


@pytest.fixture
def thawed() -> Iterator[None]:
    """The collector as a program has it; the tests' own have frozen all tests."""
    gc.unfreeze()
    yield
    gc.collect()
    gc.freeze()


def frozen_in_a_step(tmp_path) -> int:
    """How many objects are frozen while a run makes a step."""
    run, found = tiny.pretraining(tmp_path), []
    tiny.before_step(run, 2, lambda: found.append(gc.get_freeze_count()))
    tiny.quietly(run)
    return found[0]


def test_a_run_freezes_what_there_is_and_thaws_it(tmp_path, thawed):
    assert frozen_in_a_step(tmp_path) > 10_000
    assert gc.get_freeze_count() == 0


def test_what_the_caller_has_frozen_stays_so(tmp_path):
    before = gc.get_freeze_count()
    assert before > 0
    frozen_in_a_step(tmp_path)
    assert gc.get_freeze_count() >= before - 1000  # some of it may have died
