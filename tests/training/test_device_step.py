"""A step on a GPU: launched as a whole it gives the bits that it gives one operation at a time, and keeps the rules."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import tiny
from tiny import changed, contents, quietly

from minigrad import Tensor, backend, ops, optim, profiler, random
from minigrad.bert.config import IGNORED
from minigrad.bert.data import pack_chosen
from minigrad.bert.metrics import Tally
from minigrad.bert.model import BertForPreTraining

host = backend.to_numpy
on_gpu = pytest.mark.skipif(
    backend.default().name == "numpy", reason="needs CuPy or its stand-in (--standin, --backend cupy)"
)
STEPS = 12


def trained(folder, arguments, before=lambda run, step: None, **settings):
    """A run after STEPS steps, the figures of each, and its weights and moments."""
    run = tiny.pretraining(folder, arguments, **settings)
    run.model.train()
    for step in range(STEPS):
        before(run, step)
        run.train_step(Tally())
    figures = [host(figures) for _, _, figures in run.unchecked]  # read at last: they are not written over
    arrays = [p.data for p in run.model.parameters()]
    arrays += [array for of_one in run.optimizer.state for array in of_one]
    return run, figures, [host(array) for array in arrays]


def same(one, other):
    """Both runs' figures and arrays bit for bit, and their counts."""
    for a, b in zip([*one[1], *one[2]], [*other[1], *other[2]], strict=True):
        np.testing.assert_array_equal(a, b)
    for name in ("steps", "parameter_steps"):
        assert getattr(one[0].optimizer, name) == getattr(other[0].optimizer, name)
    assert one[0].data.state_dict() == other[0].data.state_dict()
    assert [g["lr"] for g in one[0].optimizer.groups] == [g["lr"] for g in other[0].optimizer.groups]


@on_gpu
@pytest.mark.parametrize(
    "arguments",
    [
        changed(steps=STEPS),
        changed(steps=STEPS, gradient_accumulation_steps=3, batch_size=3),
        changed(steps=STEPS, precision="bfloat16", max_grad_norm=1e-2),
    ],
    ids=["as it is", "three micro-batches", "bfloat16, clipped"],
)
def test_a_step_launched_as_a_whole_is_the_same_bits(tmp_path, arguments):
    plain = trained(tmp_path / "plain", arguments)
    draws = random.get_state()
    whole = trained(tmp_path / "whole", arguments, cuda_graph=True)
    assert whole[0].notes == []
    assert whole[0].device_step.run._graph is not None
    same(whole, plain)
    assert random.get_state() == draws


@on_gpu
def test_a_step_of_two_layers_has_some_three_hundred_launches(tmp_path):
    """As chapter `fast` says of the reduced model, which has two: their number does not depend on their size."""
    run, *_ = trained(
        tmp_path, changed(steps=STEPS), config=tiny.CONFIG.replace(num_hidden_layers=2), cuda_graph=True
    )
    graph = run.device_step.run._graph
    if not hasattr(graph, "_recording"):
        pytest.skip("counted on the stand-in")
    assert 280 <= len(graph._recording.work) <= 330


@on_gpu
def test_a_run_launched_as_a_whole_goes_on_with_or_without_it(tmp_path):
    """Checkpoints, evaluations and what is logged are the same, and either resumes the other."""
    arguments = changed(steps=11, save_every=5, eval_every=3)
    quietly(tiny.pretraining(tmp_path / "plain", arguments))
    quietly(tiny.pretraining(tmp_path / "whole", arguments, cuda_graph=True))
    for before, after in ((True, False), (False, True)):
        folder = tmp_path / f"{before} {after}"
        run = tiny.pretraining(folder, arguments, cuda_graph=before)
        tiny.before_step(run, 7, lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            quietly(run)
        run = tiny.pretraining(folder, arguments, resume=True, cuda_graph=after)
        assert run.step == 5
        quietly(run)
    expected = contents(tmp_path / "plain" / "checkpoint-000011")
    for name in ("whole", "True False", "False True"):
        assert contents(tmp_path / name / "checkpoint-000011") == expected


@on_gpu
def test_a_batch_of_another_shape_is_computed_one_operation_at_a_time(tmp_path):
    def smaller_at_the_eighth(run, step):
        if step == 7:
            batch = run.data.next_batch()
            run.data.next_batch = lambda: {name: array[:3] for name, array in batch.items()}
        elif step == 8:
            del run.data.next_batch

    arguments = changed(steps=STEPS)
    plain = trained(tmp_path / "plain", arguments, smaller_at_the_eighth)
    whole = trained(tmp_path / "whole", arguments, smaller_at_the_eighth, cuda_graph=True)
    assert whole[0].notes == ["a batch has another shape than the first: its step is not launched as a whole"]
    same(whole, plain)


@on_gpu
def test_a_step_is_recorded_anew_where_weights_have_been_replaced(tmp_path):
    def replaced_at_the_eighth(run, step):
        if step == 7:
            for parameter in run.model.parameters():
                parameter.data = parameter.data * 0.5

    arguments = changed(steps=STEPS)
    plain = trained(tmp_path / "plain", arguments, replaced_at_the_eighth)
    same(trained(tmp_path / "whole", arguments, replaced_at_the_eighth, cuda_graph=True), plain)


@on_gpu
@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda x: x * float(x.sum()), "D2H transfers are disallowed"),
        (lambda x: x + backend.default().asarray(np.ones(4)), "H2D transfers are disallowed"),
        (lambda x: backend.default().xp.matmul(x[:, None], x[None])[0], "cuBLAS"),
        (
            lambda x: backend.default().xp.stack([x] * 9)[0],
            "H2D transfers are disallowed",
        ),  # by a table of them
    ],
    ids=["a look", "an array of the host", "CuPy's own product", "nine arrays in one"],
)
def test_what_cannot_be_recorded_is_said_once_and_computed_all_the_same(rule, message):
    said: list[str] = []
    step = backend.default().recorded(lambda inputs: rule(inputs["x"]), list, said.append)
    for value in range(5):
        x = np.full(4, float(value))
        expected = host(rule(backend.default().asarray(x)))
        np.testing.assert_array_equal(host(step({"x": x})), expected)
    (sentence,) = said
    assert sentence.startswith("the step is not launched as a whole: ")
    assert message in sentence


@on_gpu
def test_a_graph_whose_pool_gave_memory_back_while_it_was_made_is_not_launched():
    """Out of memory, CuPy frees what the pool has and tries again; the graph would write there all the same."""
    said: list[str] = []
    step = backend.default().recorded(lambda inputs: inputs["x"] * 2, list, said.append)
    pool, sizes = step.pool, iter((100, 60))
    step.pool = SimpleNamespace(
        malloc=pool.malloc, free_all_blocks=pool.free_all_blocks, total_bytes=lambda: next(sizes)
    )
    for value in range(5):
        np.testing.assert_array_equal(host(step({"x": np.full(3, float(value))})), np.full(3, 2.0 * value))
    assert said == ["the step is not launched as a whole: the device has too little memory for it"]


@on_gpu
def test_a_number_of_the_host_stays_what_it_was_when_it_was_recorded():
    """That is why keys and rates are arrays; and why a test of a step has to change them."""
    factor = 0.0
    step = backend.default().recorded(lambda inputs: inputs["x"] * factor, list, print)
    found = []
    for factor in (1.0, 2.0, 3.0, 4.0, 5.0):  # noqa: B007  # the step reads it
        found.append(step({"x": np.full(2, 10.0)}))
    np.testing.assert_array_equal([host(array)[0] for array in found], [10, 20, 30, 30, 30])


def test_on_a_cpu_a_step_is_called():
    step = dict
    assert backend.get("numpy").recorded(step, list, print) is step


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_where_there_can_be_no_graph(tmp_path, device):
    on_cpu = backend.default().name == "numpy"
    if on_cpu != (device == "cpu"):
        pytest.skip("of the other backend")
    arguments = changed(steps=4) if on_cpu else changed(steps=4, precision="float16")
    here = "1 on the CPU, in float32" if on_cpu else "1 on the GPU, in float16"
    with pytest.raises(
        ValueError, match=f"a CUDA graph is for one process on a GPU, .* bfloat16; here are {here}"
    ):
        tiny.pretraining(tmp_path, arguments, cuda_graph=True)
    assert not list(tmp_path.iterdir())


# --- What the host prepares ------------------------------------------------------------------------------


def test_packed_and_unpacked_batches_have_the_same_loss_gradients_and_tally():
    """With dropout: the rows of the padding come last, and so do their masks."""
    batch = {name: array.copy() for name, array in tiny.held_out_batch().items()}
    batch["labels"][1] = IGNORED
    packed = pack_chosen(batch)
    chosen = batch["labels"] != IGNORED
    count = int(chosen.sum())
    assert packed["labels"].shape == packed["masked_lm_positions"].shape == (4 * 2,)
    assert count < 8
    np.testing.assert_array_equal(packed["labels"][:count], batch["labels"][chosen])
    assert (packed["labels"][count:] == IGNORED).all()
    random.manual_seed(3)
    model = BertForPreTraining(tiny.CONFIG)
    results = []
    for given in (batch, {name: backend.default().asarray(array) for name, array in packed.items()}):
        random.manual_seed(5)
        for parameter in model.parameters():
            parameter.grad = None
        output = model(**given)
        output.loss.backward()
        sums = [host(number) for number in Tally().sums_of(output, given)]
        results.append([host(output.loss.data), *sums, *(host(p.grad) for p in model.parameters())])
    for expected, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_keys_given_are_those_that_would_be_drawn():
    like = Tensor(np.zeros(1)).data
    random.manual_seed(7)
    drawn = [host(random.keep_mask(like, (5, 3), 0.5)) for _ in range(3)]
    state = random.get_state()
    random.manual_seed(7)
    keys = random.next_keys(3)
    assert random.get_state() == state
    with random.given_keys(backend.default().asarray(keys)):
        for expected in drawn:
            np.testing.assert_array_equal(host(random.keep_mask(like, (5, 3), 0.5)), expected)
    assert random.get_state() == state
    with pytest.raises(ValueError, match="given_keys: of 3 keys, 2 were left over"), random.given_keys(keys):
        random.keep_mask(like, (5, 3), 0.5)
    with random.given_keys(keys[:1]):
        random.keep_mask(like, (5, 3), 0.5)
        with pytest.raises(ValueError, match="keep_mask: given_keys has no key left for this mask"):
            random.keep_mask(like, (5, 3), 0.5)
    assert random.next_keys(0).shape == (0, 2)


def test_rates_given_are_those_that_would_be_computed():
    runs = []
    for given in (False, True):
        leaves = [Tensor(np.full(3, 2.0), requires_grad=True), Tensor(np.full(2, 3.0), requires_grad=True)]
        adamw = optim.AdamW(
            [{"params": [leaf], "weight_decay": d} for leaf, d in zip(leaves, (0.1, 0.0), strict=True)],
            lr=0.1,
        )
        schedule = optim.LinearWarmupDecay(adamw, 2, 9)
        for _ in range(5):
            rates = backend.default().asarray(adamw.next_rates()) if given else None
            (leaves[0] * leaves[0]).sum().backward()
            (leaves[1] * leaves[1]).sum().backward()
            adamw.step(rates)
            adamw.zero_grad()
            schedule.step()
        runs.append([adamw.steps, adamw.parameter_steps, *(host(leaf.data) for leaf in leaves)])
    for one, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, other)
    adamw = optim.AdamW(leaves)
    leaves[0].grad = leaves[0].data
    adamw.step()
    with pytest.raises(
        ValueError, match=r"AdamW: the parameters of a group are at steps \[1, 2\], not at one"
    ):
        adamw.next_rates()
    assert adamw.steps == 1


def test_a_loss_of_labels_at_which_nobody_looks(rng):
    """Labels of a GPU: a row that does not count has no part, as if it were not there."""
    logits = rng.standard_normal((6, 5))
    labels = np.array([1, IGNORED, 4, 0, IGNORED, 2])
    results = []
    for given in (labels, backend.default().asarray(labels)):
        leaf = Tensor(logits, requires_grad=True)
        loss = ops.cross_entropy(leaf, given)
        (loss * 3).backward()
        results.append((float(loss), host(leaf.grad)))
    for expected, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


@on_gpu
def test_a_loss_of_labels_of_which_none_counts_is_nan():
    labels = backend.default().asarray(np.full(2, IGNORED))
    assert np.isnan(float(ops.cross_entropy(Tensor(np.ones((2, 3))), labels)))


def test_a_profile_of_a_training_step(tmp_path):
    run = tiny.pretraining(tmp_path, changed(steps=3))
    with profiler.profile() as report:
        run.train_step(Tally())
    assert "AdamW.step" in str(report)
