"""The learner's training of chapter `pretraining`: kept in a file, it goes on from there."""

from __future__ import annotations

import numpy as np
import pytest

from bert_course.chapters import pretraining_own
from bert_course.chapters.pretraining_own import Training
from bert_course.common.engine import course_file, small_batch
from bert_course.one_file import OwnFile

pytestmark = pytest.mark.numpy_only("the file computes with NumPy")


class Batches:
    """Drawn ones."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def next_batch(self):
        return small_batch(self.rng, 100, (9, 7), 9)


@pytest.fixture
def own(monkeypatch):
    monkeypatch.setattr(pretraining_own, "KEEP_EVERY", 2)
    monkeypatch.setattr(pretraining_own, "WIDTH", 16)
    # Stories, and their floor, take seconds.
    monkeypatch.setattr(pretraining_own, "batches", Batches)
    monkeypatch.setattr(pretraining_own, "floor_of_words", lambda: 0.0)
    return OwnFile(course_file().read_text(encoding="utf-8"), ())


def test_a_training_goes_on_to_the_last_digit(own, tmp_path):
    whole = Training(own, 6)
    whole.run(6)
    for count in (3, 4):  # the third step, of which nothing was kept, is taken again
        part = Training(own, 6, keep=tmp_path / "run.npz")
        part.run(count)
    assert (part.losses, part.pairs) == (whole.losses, whole.pairs)
    for one, other in zip(part._arrays().values(), whole._arrays().values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_no_training_of_this_model_is_refused(own, tmp_path):
    path = tmp_path / "run.npz"
    path.write_bytes(b"no zip")
    with pytest.raises(ValueError, match=r"run\.npz is no training that was kept"):
        Training(own, 6, keep=path)
    np.savez(path, settings=[6, 0], words=[1.0], pairs=[1.0], other=np.zeros(3))
    with pytest.raises(ValueError, match=r"run\.npz keeps another model"):
        Training(own, 6, keep=path)


def test_a_training_of_other_steps_is_refused(own, tmp_path):
    Training(own, 2, keep=tmp_path / "run.npz").run(2)
    with pytest.raises(ValueError, match=r"keeps \[steps, seed\] \[2, 0\], and not \[6, 0\]"):
        Training(own, 6, keep=tmp_path / "run.npz")


@pytest.mark.slow
def test_two_thousand_steps_find_out_which_sentences_follow():
    training = Training(OwnFile(course_file().read_text(encoding="utf-8"), ()), 2000)
    training.run(2000)
    words, right = training.held_out()
    assert pretraining_own.floor_of_words() < words < 1
    assert 0.7 < right < 0.9  # of 128 pairs; a coin is above 0.64 once in a thousand times
