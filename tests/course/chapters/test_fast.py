"""Chapter `fast`'s pairs compute the same, and its record has what the page reads."""

from __future__ import annotations

import numpy as np
import pytest

import minigrad
from bert_course.chapters import fast
from bert_course.chapters.fast import (
    IDEAS,
    PAIRS,
    engine_without,
    forward_without_padding,
    in_blocks,
    work_everywhere,
)
from bert_course.chapters.fast_figures import block_curves
from minigrad import backend, ops
from minigrad.backend import threads
from minigrad.bert.config import BertConfig
from minigrad.bert.model import BertForPreTraining

on_the_cpu = pytest.mark.numpy_only("the CPU's memory")


@on_the_cpu
@pytest.mark.parametrize("name", [name for name in PAIRS if "random" not in name and "erf" not in name])
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
    for draw in PAIRS[fast.BITS][:2]:
        assert abs(draw((400, 500), 0.1, (3, 4)).mean() - 0.9) < 0.005


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


def test_erf_number_by_number_is_the_librarys():
    x = np.linspace(-6, 6, 101, dtype=np.float32)
    np.testing.assert_allclose(fast.erf_number_by_number(x), fast.cpu.erf_over_root_2(x), atol=1e-6)


# --- The engine without an idea --------------------------------------------------------------------------


@on_the_cpu
@pytest.mark.parametrize("ideas", [*((idea,) for idea in IDEAS), IDEAS], ids=lambda ideas: ideas[0])
def test_the_engine_without_ideas_learns_the_same(ideas):
    def gradients(without):
        minigrad.manual_seed(0)
        model = make_model(SMALL)
        if {fast.WORDS, fast.LAST_LAYER} & set(without):
            work_everywhere(model, vocabulary=fast.WORDS in without)
        with engine_without(without):
            model(**make_batch(LENGTHS["some"])).loss.backward()
        return [backend.to_numpy(p.grad) for p in model.parameters()]

    for one, other in zip(gradients(ideas), gradients(()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


@on_the_cpu
def test_an_idea_is_really_taken_out_and_comes_back():
    before = {name: getattr(ops, name) for name in ops.composed.__all__}
    block, mask = threads.BLOCK, fast.cpu.keep_mask
    with engine_without(IDEAS):
        assert ops.softmax is ops.composed.softmax
        assert block < threads.BLOCK
        assert fast.cpu.keep_mask is fast.mask_from_floats
        assert fast.cpu.erf_over_root_2 is fast.erf_number_by_number
        assert fast.cpu.scatter_add_rows is fast.add_at
        assert fast.cpu.adamw_step is fast.adamw_step_plain
        assert fast.cpu.matmul is np.matmul
    assert {name: getattr(ops, name) for name in before} == before
    assert (threads.BLOCK, fast.cpu.keep_mask) == (block, mask)


@on_the_cpu
@pytest.mark.parametrize("everywhere", [False, True])
def test_scores_and_the_last_layer_are_computed_everywhere(everywhere, monkeypatch):
    model, seen = make_model(SMALL), []
    inner, head = model.bert.encoder.layer[-1].intermediate, model.cls.predictions
    for module in (inner, head):
        old = module.forward
        monkeypatch.setattr(
            module,
            "forward",
            lambda x, *more, old=old: (seen.append(x.shape[:-1]), old(x, *more))[1],
            raising=False,
        )
    work_everywhere(model, vocabulary=everywhere)
    batch = make_batch(LENGTHS["none"])
    model(**batch)
    chosen = int((batch["labels"] != -100).sum())
    assert seen == [(BATCH, LENGTH), (BATCH, LENGTH) if everywhere else (chosen,)]


def test_an_idea_that_there_is_not_is_named():
    with pytest.raises(ValueError, match="magic"), engine_without(["magic"]):
        pass


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


def test_the_curve_without_the_starts_leaves_out_what_a_logarithm_cannot_show(axes_of):
    points = {
        cores: [{"block": block, "median": ms} for block, ms in ((64, 9.0), (512, 3.0), (4096, 2.0))]
        for cores in (1, 2)
    }
    one, less, two, ours = axes_of(block_curves, points, starts=[10.0, 1.0, 0.1], ours=512).lines
    np.testing.assert_allclose(less.get_ydata(), [np.nan, 2.0, 1.9])
    for line in (one, two):
        np.testing.assert_array_equal(line.get_xydata(), [(64, 9), (512, 3), (4096, 2)])
    assert list(ours.get_xdata()) == [512, 512]
