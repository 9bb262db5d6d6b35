"""What `many_heads` shows: the ledger counts what a function does, and the model is put back after each drop."""

from __future__ import annotations

import math

import numpy as np
import pytest

from minigrad.bert import from_pretrained
from minigrad.bert.stored import stored

pytest.importorskip("matplotlib")
from minigrad.course.chapters.many_heads import (
    HiddenWords,
    as_much_of,
    bert_base_attention,
    by_columns,
    head_maps,
    ledger,
    ledger_frames,
    pieces,
    plain,
    two_heads,
)

# --- The ledger -------------------------------------------------------------------------------------------


def steps(X, W, h):
    Q = X @ W + 1
    Q = Q.reshape(len(X), h, -1).transpose(1, 0, 2)
    S = np.exp(Q @ Q.swapaxes(1, 2))
    return S.sum(axis=-1)


@pytest.fixture
def entries():
    return ledger(steps, np.ones((5, 8), np.float32), np.full((8, 6), 0.1, np.float32), 2)


def test_the_ledger_has_every_array_in_order(entries):
    assert [(entry.symbol, entry.shape) for entry in entries] == [
        ("X", (5, 8)),
        ("Q", (5, 6)),
        ("Q", (2, 5, 3)),
        ("S", (2, 5, 5)),
        ("output", (2, 5)),
    ]


def test_the_ledger_counts_flops(entries):
    assert [entry.products for entry in entries] == [0, 2 * 5 * 8 * 6, 0, 2 * 2 * 5 * 3 * 5, 0]
    assert [entry.others for entry in entries] == [0, 5 * 6, 0, 2 * 5 * 5, 2 * 5 * 5]


def test_a_view_is_no_new_memory(entries):
    assert [entry.bytes for entry in entries] == [4 * 40, 4 * 30, 0, 4 * 50, 4 * 10]


def test_the_ledger_names_the_line(entries):
    assert entries[1].line == "Q = X @ W + 1"
    assert entries[-1].line == "return S.sum(axis=-1)"


def test_the_ledger_changes_nothing():
    X, W = np.random.default_rng(0).standard_normal((2, 6, 6))
    before = steps(X, W, 2)
    ledger(steps, X, W, 2)
    np.testing.assert_array_equal(steps(X, W, 2), before)


def test_each_entry_has_a_frame(entries):
    frames = list(ledger_frames(entries))
    assert [frame.title for frame in frames] == ["X", "Q", "Q", "S", "output"]
    assert frames[3].svg.count("<rect") == 2 + 2 * 4  # two sheets, and two bars in each line of the ledger
    assert "350 FLOPs, 300 of them in matrix products; 200 bytes" in frames[3].text


# --- Hand-sized -------------------------------------------------------------------------------------------


def test_the_flow_ends_in_the_output_of_both_heads():
    rng = np.random.default_rng(1)
    X, W_O = rng.standard_normal((3, 4)), rng.standard_normal((4, 4))
    heads = [tuple(rng.standard_normal((3, 4, 2))) for _ in range(2)]
    outputs = []
    for W_Q, W_K, W_V in heads:
        S = X @ W_Q @ (X @ W_K).T / math.sqrt(2)
        A = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
        outputs.append(A @ X @ W_V)
    values = two_heads(X, heads, W_O).values
    np.testing.assert_allclose(values["Y"], np.hstack(outputs) @ W_O, rtol=1e-12)


# --- The library's attention, and slips in it -------------------------------------------------------------


def test_the_attention_of_bert_base_is_the_sum_over_its_heads():
    X = np.random.default_rng(0).standard_normal((3, 768))
    weights, y = bert_base_attention(X, seed=0)
    total = weights["b_O"].astype(float)
    for i in range(12):
        part = slice(64 * i, 64 * i + 64)
        q, k, v = (X @ weights[f"W_{n}"][:, part] + weights[f"b_{n}"][part] for n in "QKV")
        A = np.exp(q @ k.T / 8)
        total = total + A / A.sum(axis=1, keepdims=True) @ v @ weights["W_O"][part]
    np.testing.assert_allclose(y, total, atol=1e-5)


def test_plain_cuts_the_text():
    assert plain(np.arange(12).reshape(3, 4), 2)[0].tolist() == [[0, 1], [2, 3], [4, 5]]


def test_pieces_leave_the_blocks_on_the_diagonal():
    weights = pieces({"W": np.ones((4, 4)), "b": np.ones(4)}, 2)
    assert weights["W"].tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    assert weights["b"].tolist() == [1, 1, 1, 1]


def test_by_columns_sums_to_one_down_the_columns():
    A = by_columns(np.random.default_rng(0).standard_normal((2, 5, 5)))
    np.testing.assert_allclose(A.sum(axis=1), 1)
    assert np.abs(A.sum(axis=2) - 1).max() > 0.1


# --- Heads taken out of a trained model -------------------------------------------------------------------


@pytest.fixture(scope="module")
def model() -> HiddenWords:
    return HiddenWords()


def test_the_losses_are_those_of_the_model(model):
    loaded = from_pretrained(stored("start"))
    loaded.model.eval()
    ids = np.array(loaded.tokenizer.encode("If the file does not exist, an error is raised.").input_ids)
    hidden = ids.copy()
    hidden[3] = loaded.tokenizer.mask_token_id
    logits = loaded.model(hidden[None]).prediction_logits.numpy()[0, 3].astype(float)
    loss = np.log(np.exp(logits).sum()) - logits[ids[3]]
    assert model.losses()[2] == pytest.approx(loss, rel=1e-4)
    assert model.words == len(model.losses())


def test_the_model_is_put_back(model):
    before, (W_O, b_O) = model.losses(), model.output(0)
    changed = model.losses({0: (0 * W_O, b_O)})
    assert np.abs(changed - before).mean() > 0.5
    np.testing.assert_array_equal(model.losses(), before)
    with pytest.raises(ValueError, match="broadcast"):
        model.losses({0: (W_O[:, :5], b_O)})
    np.testing.assert_array_equal(model.losses(), before)


def test_the_mean_of_the_heads_in_their_place_leaves_the_mean_output(model):
    z, (W_O, b_O) = model.heads_of(1), model.output(1)
    assert z.shape[1] == 2 * model.d_k
    instead = b_O + z.mean(axis=0) @ W_O
    np.testing.assert_allclose((z @ W_O + b_O).mean(axis=0), instead, atol=1e-9)
    assert z.std(axis=0).min() > 0.01  # and the tokens differ


def a_variance(d):
    """A variance (d, d) whose axes are not those of the columns, with sizes from 1 to 100."""
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return axes * np.geomspace(1, 100, d) @ axes.T


@pytest.mark.parametrize("share", [0.01, 0.2, 0.3])
def test_directions_of_a_head_hold_the_share_that_is_asked_for(share):
    variance, rng, head = a_variance(13), np.random.default_rng(0), slice(6, 13)
    U, other = (as_much_of(variance, head, share, rng) for _ in range(2))
    np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-12)
    assert not U[:6].any()

    def held(columns):
        return np.trace(columns.T @ variance @ columns) / np.trace(variance)

    assert held(U) >= share > held(U[:, :-1])
    assert np.abs(U[:, 0] - other[:, 0]).max() > 0.01  # each draw has directions of its own


def test_a_head_cannot_give_more_than_it_holds():
    with pytest.raises(
        ValueError, match=r"this head holds 0\.\d+ of the variance, which is less than 0\.990"
    ):
        as_much_of(a_variance(13), slice(0, 5), 0.99, np.random.default_rng(0))


def test_the_maps_have_a_square_for_each_head_and_the_tokens():
    picture = head_maps("Close the file.")
    words = ("head 1-1", "head 1-2", "head 2-1", "head 2-2", "[CLS]", "close", "the", "file", ".", "[SEP]")
    assert all(f">{word}<" in picture.svg for word in words)
