"""What helpers of the chapters refuse, and in which words: no notebook shows it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bert_course.chapters import (
    add_norm,
    arrays,
    finetuning,
    many_heads,
    mlm,
    modern_figures,
    modules,
    nsp,
    path_length,
    positions,
    pretraining_figures,
    pretraining_knowledge,
    reverse_mode,
    scaling_figures,
    seq2seq,
)
from bert_course.chapters.mlm_lottery import mask_lottery
from bert_course.common.small_model import small_model
from minigrad import nn
from minigrad.tensor import Tensor

pytestmark = pytest.mark.numpy_only("the chapters' helpers are NumPy's")

ROW = np.arange(3)
NO_RUNS = modern_figures.Runs({"floors": {}, "steps": {"light": 1}, "runs": []})
RUN = {"width": 16, "steps": 2, "seed": 0, "curve": [[2, 1.2]]}
LEAF = Tensor(np.ones((1, 2)), requires_grad=True)
NAMELESS = SimpleNamespace(value=1.0, rule=lambda dy: [dy], inputs=[object()])


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: add_norm.sublayers(1, 0, "small"), "start must be 'bert' or 'unit', got 'small'"),
        (lambda: arrays.token_to_heads(np.eye(4), np.eye(4), 3, "ab", 0, 0), "3 heads do not divide 4 columns"),
        (lambda: arrays.heads_by_token("abcd", np.eye(4), np.eye(4)[None]), "colours for 3 words, got 4"),
        (lambda: arrays.broadcast_frames(ROW[:2], ROW, np.ones((2, 3))), r"needs \(2, 1\) and \(3,\), got \(2,\)"),
        (lambda: finetuning.weights_of("cold", {}, {}, 0), "one of pre-trained"),
        (lambda: many_heads.as_much_of(np.eye(4), slice(0, 2), 0.99, rng()), r"holds 0\.5\d* .* less than 0\.990"),
        (lambda: mlm.losses_on_random_words("previous", np.eye(4) > 0), "itself, next, hidden, got 'previous'"),
        (lambda: mask_lottery(["[CLS]", "[SEP]"], ["a"]), "a token that may be chosen, and a piece"),
        (lambda: mask_lottery(["[CLS]", "the"], []), "a token that may be chosen, and a piece"),
        (lambda: NO_RUNS.gaps("rotary"), "'rotary' on light stories"),
        (lambda: modules.way_to(nn.Linear(2, 3), "1.bias"), "no parameter '1.bias'"),
        (lambda: nsp.elsewhere([[[1]]], 0, 2, rng(), "B is red"), "no mistake 'B is red': expected none, B is longer"),
        (lambda: path_length.path_lengths(LEAF * 2, Tensor(np.ones(2))), "no way leads"),
        (lambda: path_length.path_lengths(LEAF, LEAF), "is a leaf"),
        (lambda: positions.OneLayer("T5"), "one of none, learned, .*, ALiBi, and is 'T5'"),
        (lambda: pretraining_figures.runs_of({"runs": []}, "c", 9), "no run of 'c' with 9 steps"),
        (lambda: pretraining_knowledge.losses_by_context(None, small_model()[1], ["One."]), "at least 2 texts, got 1"),
        (lambda: reverse_mode.play_backward({"e": NAMELESS}), "an input of e has no name: give all of x, w"),
        (lambda: scaling_figures.Runs([RUN]).where(width=48), r"no run with .*'width': 48"),
        (lambda: seq2seq.recorded("RNN", 1e-3, []), r"no run of 'RNN' at the rate 0\.001"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(make, message):
    with pytest.raises((LookupError, ValueError), match=message):
        make()
