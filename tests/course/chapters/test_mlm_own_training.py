"""What a learner's own parts learn: here, as these tests take seconds on the stand-in for CuPy."""

from __future__ import annotations

import numpy as np
import pytest

from bert_course.chapters import mlm_own_model as own
from minigrad import ops


def test_the_loss_falls_below_word_frequencies_and_a_seed_repeats_it(monkeypatch):
    monkeypatch.setattr("minigrad.stories.stories.STORIES_AN_EPOCH", 30 * 32)
    learned = own.learn(own.own_parts(), steps=30)
    assert len(learned.losses) == 30
    assert learned.last() < learned.unigram_entropy - 0.5
    again = own.learn(own.own_parts(), steps=10)
    assert again.losses[0] == pytest.approx(learned.losses[0], rel=1e-6)
    assert f"from {np.mean(learned.losses[:10]):.1f} to {np.mean(learned.losses[-10:]):.1f}" in repr(
        learned.curve()
    )


def test_ctrl_c_keeps_what_has_been_learned(monkeypatch, capsys):
    count = 0

    def cross_entropy(*arguments):
        nonlocal count
        count += 1
        if count == 13:
            raise KeyboardInterrupt
        return real(*arguments)

    real = ops.cross_entropy
    monkeypatch.setattr("minigrad.stories.stories.STORIES_AN_EPOCH", 13 * 32)
    monkeypatch.setattr(ops, "cross_entropy", cross_entropy)
    learned = own.learn(own.own_parts(), steps=300)
    assert len(learned.losses) == 12
    assert "stopped after 12 of 300 steps" in capsys.readouterr().out
