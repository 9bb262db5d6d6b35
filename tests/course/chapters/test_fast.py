"""Chapter 24's pairs compute the same, and its record has what the page reads."""

from __future__ import annotations

import json

import numpy as np
import pytest

from minigrad import backend, optim
from minigrad.bert.config import BertConfig
from minigrad.bert.model import BertForPreTraining
from minigrad.course.chapters import fast
from minigrad.course.chapters.fast import PAIRS, forward_without_padding, in_blocks
from minigrad.course.stored import stored

on_the_cpu = pytest.mark.numpy_only("the CPU's memory")


@on_the_cpu
@pytest.mark.parametrize("name", [name for name in PAIRS if "random" not in name])
def test_both_sides_of_a_pair_compute_the_same(name):
    before, after, make = PAIRS[name]
    results = []
    for function in (before, after):
        arguments = make()
        result = function(*arguments)
        results.append(arguments[0] if result is None else result)  # AdamW changes its first argument
    assert np.abs(np.asarray(results[0])).max() > 0
    for one, other in zip(*map(np.atleast_2d, results), strict=True):
        # A sum's rounding goes with its terms, not with what is left of them: so with the largest entry.
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6 * max(1, np.abs(one).max()))


def test_both_masks_keep_the_right_share():
    name = "random words instead of floats"
    for draw in PAIRS[name][:2]:
        assert abs(draw((400, 500), 0.1, 3).mean() - 0.9) < 0.005


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("size", [0, 1, 7, 100])
def test_blocks_cover_everything_once(size, threads):
    seen = np.zeros(size, int)

    def kernel(b):
        seen[b] += 1

    in_blocks(kernel, size, 7, threads)
    assert (seen == 1).all()


def test_an_error_in_a_block_is_raised():
    def kernel(b):
        if b.start == 7:  # the second thread's
            raise ValueError("seven")

    with pytest.raises(ValueError, match="seven"):
        in_blocks(kernel, 20, 7, 2)


def test_the_blas_kernel_is_named():
    assert fast.blas_kernel()


def test_the_record_has_every_pair():
    record = json.loads(stored("machine.json").read_text())
    assert set(record["pairs"]) == set(PAIRS)
    for ms in record["pairs"].values():
        assert ms["before"] > 0
        assert ms["after"] > 0


# --- Padding left out ------------------------------------------------------------------------------------

SMALL = BertConfig(
    vocab_size=41,
    hidden_size=12,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=20,
    max_position_embeddings=16,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
BATCH, LENGTH = 5, 11


def make_model(config, dtype="float32"):
    """A model whose weights are large enough that every part matters, LayerNorms and biases too."""
    model = BertForPreTraining(config)
    rng = np.random.default_rng(7)
    state = {name: backend.to_numpy(array) for name, array in model.state_dict().items()}
    model.load_state_dict({n: array + 0.2 * rng.standard_normal(array.shape) for n, array in state.items()})
    return model.astype(dtype).eval()


def make_batch(lengths, labelled_padding=False):
    """Sequences of so many tokens, 30 % of which have labels; one that is padding, too, if asked for."""
    rng = np.random.default_rng(4)
    shape = (BATCH, LENGTH)
    mask = np.arange(LENGTH) < np.array(lengths)[:, None]
    labels = np.where((rng.random(shape) < 0.3) & mask, rng.integers(0, 41, shape), -100)
    labels[0, 1] = 3
    if labelled_padding:
        labels[1, -1] = 5
    return {
        "input_ids": rng.integers(0, 41, shape),
        "attention_mask": mask.astype(np.int64),
        "token_type_ids": rng.integers(0, 2, shape),
        "labels": labels,
        "next_sentence_label": np.arange(BATCH) % 2,
    }


LENGTHS = {
    "none": [LENGTH] * BATCH,
    "some": [LENGTH - i for i in range(BATCH)],
    "most": [2] * BATCH,
    "read": [LENGTH, *[3] * (BATCH - 1)],
    "a whole sequence": [LENGTH, 0, *[4] * (BATCH - 2)],
}


@pytest.mark.parametrize("layers", [0, 1, 3])
@pytest.mark.parametrize("padding", LENGTHS)
def test_leaving_out_padding_changes_nothing(padding, layers):
    """The same losses, logits and gradients, also for the rows of padding that are read."""
    model = make_model(SMALL.replace(num_hidden_layers=layers), "float64")
    batch = make_batch(LENGTHS[padding], labelled_padding=padding == "read")

    def figures(output):
        model.zero_grad()
        output.loss.backward()
        figures = {name: getattr(output, name).numpy() for name in vars(output)}
        return {**figures, **{name: backend.to_numpy(p.grad) for name, p in model.named_parameters()}}

    expected = figures(model(**batch))
    found = figures(forward_without_padding(model, **batch))
    assert set(found) == set(expected)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("padding", ["none", "some", "most"])
def test_padding_is_not_computed(padding, monkeypatch):
    """What each feed-forward network gets: the tokens; of the last layer, what is read."""
    model = make_model(SMALL)
    batch = make_batch(LENGTHS[padding])
    seen = []
    for layer in model.bert.encoder.layer:
        inner = layer.intermediate
        monkeypatch.setattr(
            inner, "forward", lambda x, old=inner.forward: (seen.append(x.shape), old(x))[1], raising=False
        )
    forward_without_padding(model, **batch)
    read = BATCH + int((batch["labels"] != -100).sum())
    assert seen == [(sum(LENGTHS[padding]), 12), (read, 12)]


def test_a_model_without_padding_learns():
    """With dropout, whose draws are others then."""
    model = make_model(SMALL.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)).train()
    batch = make_batch([LENGTH - 3] * BATCH)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        output = forward_without_padding(model, **batch)
        output.loss.backward()
        optimizer.step()
        losses.append(output.loss.item())
    assert losses[-1] < 0.8 * losses[0]
