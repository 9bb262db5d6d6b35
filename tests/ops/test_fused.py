"""Fused against composed, at sizes around vectors' and blocks' edges; extreme values; what errors say."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from arrays import host
from minigrad import Tensor, backend, ops
from minigrad.ops import composed, fused

TOLERANCE = {"float32": 2e-6, "float64": 1e-13}

both = pytest.mark.parametrize("module", [fused, composed], ids=["fused", "composed"])


def zeros(*shape, dtype="float64"):
    return Tensor(np.zeros(shape, dtype), requires_grad=True)


def same_in_both(op, arrays, *args, dtype, **kwargs):
    """Values and gradients of the fused and of the composed operation agree."""
    results = []
    rng = np.random.default_rng(0)
    cotangent = None
    for module in (fused, composed):
        inputs = [Tensor(array.astype(dtype), requires_grad=True) for array in arrays]
        y = getattr(module, op)(*inputs, *args, **kwargs)
        y = ops.stack(y) if isinstance(y, tuple) else y
        if cotangent is None:
            cotangent = rng.standard_normal(y.shape).astype(dtype)
        y.backward(cotangent)
        results.append([y.numpy()] + [host(x.grad) for x in inputs])
    for ours, reference in zip(*results, strict=True):
        assert ours.dtype == reference.dtype == dtype
        scale = max(1.0, float(np.abs(reference).max()))
        np.testing.assert_allclose(ours, reference, rtol=0, atol=TOLERANCE[dtype] * scale)


dtypes = pytest.mark.parametrize("dtype", ["float32", "float64"])


@dtypes
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_softmax_over_another_axis(axis, dtype, rng):
    same_in_both("softmax", [rng.standard_normal((33, 31, 70))], axis, dtype=dtype)


@dtypes
@pytest.mark.parametrize("shape", [(31, 33), (2, 32, 31), (2, 3, 2, 33)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_linear(shape, bias, dtype, rng):
    arrays = [rng.standard_normal(shape), rng.standard_normal((shape[-1], 31)) / 6, rng.standard_normal(31)]
    same_in_both("linear", arrays if bias else arrays[:2], dtype=dtype)


@dtypes
@pytest.mark.parametrize("shape", [(31, 33), (3, 11, 32), (2211, 31), (9, 8000)], ids=str)
@pytest.mark.parametrize("ignored", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_cross_entropy(shape, ignored, weighted, dtype, rng):
    labels = rng.integers(0, shape[-1], shape[:-1])
    if ignored:
        labels[rng.random(labels.shape) < 0.85] = -100
        labels.flat[0] = 1
    weight = rng.random(shape[-1]) if weighted else None
    same_in_both("cross_entropy", [3 * rng.standard_normal(shape)], labels, weight=weight, dtype=dtype)


@dtypes
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("smoothing", [0.1, 1.0])
def test_label_smoothing(weighted, smoothing, dtype, rng):
    labels = rng.integers(0, 33, (3, 31))
    labels[0] = -100
    weight = rng.random(33) if weighted else None
    logits = [3 * rng.standard_normal((3, 31, 33))]
    same_in_both("cross_entropy", logits, labels, weight=weight, label_smoothing=smoothing, dtype=dtype)


@dtypes
@pytest.mark.parametrize(("op", "gates", "parts"), [("rnn", 1, 1), ("gru", 3, 1), ("lstm", 4, 2)])
@pytest.mark.parametrize(("steps", "n", "d"), [(7, 5, 31), (3, 33, 32), (1, 1, 1), (9, 2, 70)])
@pytest.mark.parametrize("ending", [True, False])
def test_recurrent(op, gates, parts, steps, n, d, ending, dtype, rng):
    arrays = [rng.standard_normal((steps, n, gates * d)), *rng.standard_normal((parts, n, d))]
    arrays += [rng.standard_normal((d, gates * d)) / math.sqrt(d), rng.standard_normal(gates * d)]
    live = np.arange(steps)[:, None] < rng.integers(1, steps + 1, n) if ending else None
    same_in_both(op, arrays, live, dtype=dtype)


@dtypes
@pytest.mark.parametrize("n", [31, 32, 33])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("dropped", [True, False])
def test_attention(n, masked, dropped, dtype, rng):
    shape = (2, 3, n, 33 if n == 32 else 16)
    arrays = [rng.standard_normal(shape) for _ in range(3)]
    mask = np.where(rng.random((2, 1, 1, n)) < 0.3, np.finfo(dtype).min, 0.0) if masked else None
    keep = rng.random((2, 3, n, n)) > 0.1 if dropped else None
    same_in_both("scaled_dot_product_attention", arrays, mask, keep, 0.1 * dropped, dtype=dtype)


def test_both_have_the_same_signatures():
    import inspect

    for name in fused.__all__:
        assert inspect.signature(getattr(fused, name)) == inspect.signature(getattr(composed, name))
        assert getattr(ops, name) is getattr(fused, name)


# --- Saved arrays stay ----------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
def test_changing_the_output_of_a_view_is_not_needed(op, leaf):
    """Two outputs of one input are independent."""
    x = leaf(3, 5)
    first, second = getattr(ops, op)(x), getattr(ops, op)(x)
    assert not backend.default().xp.may_share_memory(first.data, second.data)
    assert not backend.default().xp.may_share_memory(first.data, x.data)


def test_attention_does_not_write_to_its_inputs(leaf):
    q, k, v = leaf(4, 3), leaf(5, 3), leaf(5, 3)
    mask = backend.default().asarray(np.zeros((4, 5)))
    before = [x.numpy().copy() for x in (q, k, v)]
    ops.scaled_dot_product_attention(q, k, v, mask).sum().backward()
    for x, then in zip((q, k, v), before, strict=True):
        np.testing.assert_array_equal(x.numpy(), then)
    np.testing.assert_array_equal(host(mask), np.zeros((4, 5)))


# --- Extreme values --------------------------------------------------------------------------------------


@both
@dtypes
def test_softmax_of_large_numbers(module, dtype):
    x = Tensor(np.array([[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4], [1e4, 1e4, -1e4]], dtype), requires_grad=True)
    y = module.softmax(x)
    np.testing.assert_allclose(y.numpy(), [[1, 0, 0], [1 / 3] * 3, [0.5, 0.5, 0]], rtol=1e-6)
    y.backward(np.arange(9.0).reshape(3, 3))
    np.testing.assert_allclose(host(x.grad), [[0, 0, 0], [-1 / 3, 0, 1 / 3], [-0.25, 0.25, 0]], atol=1e-6)
    log_y = module.log_softmax(x)
    expected = [[0, -2e4, -1e4], [-math.log(3)] * 3, [-math.log(2), -math.log(2), -2e4 - math.log(2)]]
    # a probability of 1/3 beside scores of 1e4 has only the digits that float32 has at 1e4
    np.testing.assert_allclose(log_y.numpy(), expected, rtol=1e-6, atol=2e-3 if dtype == "float32" else 1e-11)


@both
@dtypes
def test_a_row_that_is_masked_all_over_stays_finite(module, dtype, rng):
    """finfo.min + score rounds to finfo.min where all is masked: equal weights, no NaN."""
    q, k, v = (Tensor(rng.standard_normal((3, 4)).astype(dtype), requires_grad=True) for _ in range(3))
    mask = np.zeros((3, 3))
    mask[1] = np.finfo(dtype).min
    y = module.scaled_dot_product_attention(q, k, v, mask)
    y.sum().backward()
    np.testing.assert_allclose(y.numpy()[1], v.numpy().mean(axis=0), rtol=1e-5)
    for x in (q, k, v):
        assert np.isfinite(host(x.grad)).all()


@both
@dtypes
def test_masked_positions_get_no_weight(module, dtype, rng):
    q, k, v = (Tensor(rng.standard_normal((5, 4)).astype(dtype), requires_grad=True) for _ in range(3))
    mask = np.zeros(5)
    mask[2] = np.finfo(dtype).min
    module.scaled_dot_product_attention(q, k, v, mask).sum().backward()
    np.testing.assert_array_equal(host(v.grad)[2], np.zeros(4))
    np.testing.assert_array_equal(host(k.grad)[2], np.zeros(4))


@both
@dtypes
def test_cross_entropy_of_large_logits(module, dtype):
    logits = Tensor(np.array([[1e4, -1e4, 0.0], [1e4, -1e4, 0.0]], dtype), requires_grad=True)
    loss = module.cross_entropy(logits, np.array([0, 1]))
    assert loss.item() == pytest.approx(1e4, rel=1e-6)
    loss.backward()
    np.testing.assert_allclose(host(logits.grad), [[0, 0, 0], [0.5, -0.5, 0]], atol=1e-7)


@both
def test_cross_entropy_leaves_ignored_rows_alone(module, leaf):
    logits = leaf(2, 3, 5)
    labels = np.array([[1, -1, 4], [-1, -1, 0]])
    loss = module.cross_entropy(logits, labels, ignore_index=-1)
    loss.backward()
    gradient = host(logits.grad)
    np.testing.assert_array_equal(gradient[labels == -1], np.zeros((3, 5)))
    assert (np.abs(gradient[labels != -1]).sum(axis=-1) > 0.1).all()
    rows = module.cross_entropy(Tensor(logits.numpy()[labels != -1]), labels[labels != -1])
    assert loss.item() == pytest.approx(rows.item(), rel=1e-12)


@both
def test_ignore_index_does_not_swallow_a_class(module, leaf):
    """Both classes of a pair count, class 0 too, unless it is asked for by name."""
    logits = leaf(2, 2)
    one = module.cross_entropy(logits[1:], np.array([1])).item()
    two = module.cross_entropy(logits, np.array([0, 1])).item()
    assert two != pytest.approx(one)
    assert module.cross_entropy(logits, np.array([0, 1]), ignore_index=0).item() == pytest.approx(one)


@both
def test_cross_entropy_by_hand(module, rng):
    """The weighted mean divides by the weights of the labels that count (PyTorch's rule), not by their number."""
    x, weight = rng.standard_normal((4, 3)), np.array([0.5, 2.0, 1.0])
    labels = np.array([1, -100, 0, 2])
    p = np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)
    losses = -np.log([p[0, 1], p[2, 0], p[3, 2]])
    assert module.cross_entropy(Tensor(x), labels).item() == pytest.approx(losses.mean(), rel=1e-12)
    expected = (losses * [2.0, 0.5, 1.0]).sum() / 3.5
    assert module.cross_entropy(Tensor(x), labels, weight=weight).item() == pytest.approx(expected, rel=1e-12)


@both
def test_label_smoothing_by_hand(module, rng):
    """As the cross-entropy against the smoothed distribution: 1 - ε + ε/C at the label, ε/C elsewhere."""
    x, labels = rng.standard_normal((3, 4)), np.array([1, -100, 3])
    log_p = x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
    target = 0.2 / 4 + 0.8 * np.eye(4)[[1, 3]]
    expected = -(target * log_p[[0, 2]]).sum(axis=-1).mean()
    loss = module.cross_entropy(Tensor(x), labels, label_smoothing=0.2)
    assert loss.item() == pytest.approx(expected, rel=1e-12)


@both
@dtypes
def test_label_smoothing_of_large_logits(module, dtype):
    logits = Tensor(np.array([[1e4, -1e4, 0.0]], dtype), requires_grad=True)
    loss = module.cross_entropy(logits, np.array([0]), label_smoothing=0.3)
    assert loss.item() == pytest.approx(0.1 * 3e4, rel=1e-6)
    loss.backward()
    np.testing.assert_allclose(host(logits.grad), [[0.2, -0.1, -0.1]], atol=1e-6)


@both
def test_recurrent_steps_by_hand(module):
    """With W_hh = 0 the gates are functions of x_part and bias alone."""

    def sigmoid(x):
        return 1 / (1 + math.exp(-x))

    def step(op, x_part, *state):
        parts = [Tensor(np.array([[part]])) for part in state]
        bias = Tensor(np.full(len(x_part), 0.1))
        y = getattr(module, op)(Tensor(np.array([x_part])), *parts, zeros(1, len(x_part)), bias)
        return [float(one.item()) for one in (y if isinstance(y, tuple) else (y,))]

    assert step("rnn_step", [0.4], 7.0) == pytest.approx([math.tanh(0.5)], rel=1e-12)
    i, f, o, g = sigmoid(0.3), sigmoid(-0.4), sigmoid(1.1), math.tanh(0.7)
    c = f * 0.9 + i * g
    assert step("lstm_step", [0.2, -0.5, 0.6, 1.0], 7.0, 0.9) == pytest.approx(
        [o * math.tanh(c), c], rel=1e-12
    )
    r, z = sigmoid(0.3), sigmoid(-0.4)
    new = (1 - z) * math.tanh(0.6 + r * 0.1) + z * 0.9  # r scales the bias too
    assert step("gru_step", [0.2, -0.5, 0.6], 0.9) == pytest.approx([new], rel=1e-12)


@both
def test_gelu_by_hand(module):
    x = np.linspace(-5, 5, 41)
    exact = [v * 0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x]
    tanh = 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(module.gelu(Tensor(x)).numpy(), exact, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(module.gelu(Tensor(x), "tanh").numpy(), tanh, rtol=1e-12, atol=1e-15)


@both
def test_layer_norm_by_hand(module, rng):
    x, w, b = rng.standard_normal((3, 5)), rng.standard_normal(5), rng.standard_normal(5)
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.1) * w + b
    y = module.layer_norm(Tensor(x), Tensor(w), Tensor(b), 0.1)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-12)


@both
def test_attention_by_hand(module, rng):
    q, k, v = rng.standard_normal((5, 3)), rng.standard_normal((7, 3)), rng.standard_normal((7, 2))
    mask, keep = np.where(rng.random((5, 7)) < 0.3, -1e4, 0), rng.random((5, 7)) > 0.25
    e = np.exp(q @ k.T / math.sqrt(3) + mask)
    expected = (e / e.sum(axis=-1, keepdims=True) * keep / 0.75) @ v
    y = module.scaled_dot_product_attention(Tensor(q), Tensor(k), Tensor(v), mask, keep, 0.25)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-12, atol=1e-14)


@both
def test_layer_norm_of_a_constant_row_is_its_bias(module):
    x = Tensor(np.full((2, 5), 3.0), requires_grad=True)
    weight, bias = Tensor(np.full(5, 2.0)), Tensor(np.arange(5.0))
    y = module.layer_norm(x, weight, bias)
    np.testing.assert_array_equal(y.numpy(), [np.arange(5.0)] * 2)
    y.sum().backward()
    assert np.isfinite(host(x.grad)).all()


@both
@dtypes
def test_layer_norm_far_from_zero(module, dtype, rng):
    x = rng.standard_normal((3, 64))
    ones, none = np.ones(64, dtype), np.zeros(64, dtype)
    near = module.layer_norm(Tensor(x.astype(dtype)), Tensor(ones), Tensor(none)).numpy()
    far = module.layer_norm(Tensor((x + 1000).astype(dtype)), Tensor(ones), Tensor(none)).numpy()
    np.testing.assert_allclose(far, near, atol=2e-3 if dtype == "float32" else 1e-10)


@both
def test_dropout_keeps_the_mean_and_passes_the_same_entries_back(module, rng):
    x = Tensor(np.ones((3, 4)), requires_grad=True)
    keep = rng.random((3, 4)) > 0.4
    y = module.dropout(x, keep, 0.5)
    np.testing.assert_array_equal(y.numpy(), 2.0 * keep)
    y.sum().backward()
    np.testing.assert_array_equal(host(x.grad), 2.0 * keep)
    np.testing.assert_array_equal(module.dropout(x, np.ones((3, 4), bool), 0.0).numpy(), np.ones((3, 4)))


# --- Errors ----------------------------------------------------------------------------------------------

KEEP = np.ones((2, 3), bool)


def attend(module, q, k, v, *rest):
    """Attention with queries, keys and values of these shapes."""
    return module.scaled_dot_product_attention(zeros(*q), zeros(*k), zeros(*v), *rest)


ERRORS = [
    (lambda m: m.softmax(zeros(2, 3), 2), ValueError, "softmax: there is no axis 2 in shape (2, 3)"),
    (lambda m: m.softmax(zeros()), ValueError, "softmax: there is no axis -1 in shape ()"),
    (lambda m: m.softmax(zeros(2, 0)), ValueError, "softmax: there is nothing along axis -1 of shape (2, 0)"),
    (lambda m: m.log_softmax(zeros(0, 2), 0), ValueError, "there is nothing along axis 0 of shape (0, 2)"),
    (
        lambda m: m.gelu(zeros(2), "relu"),
        ValueError,
        'gelu: approximate must be "none" or "tanh", got \'relu\'',
    ),
    (lambda m: m.layer_norm(zeros(2, 3), zeros(2), zeros(3)), ValueError, "of shape (3,), got (2,) and (3,)"),
    (lambda m: m.layer_norm(zeros(), zeros(), zeros()), ValueError, "there is no axis -1 in shape ()"),
    (lambda m: m.layer_norm(zeros(2, 0), zeros(0), zeros(0)), ValueError, "along axis -1 of shape (2, 0)"),
    (
        lambda m: m.layer_norm(zeros(2, 3), zeros(3, dtype="float32"), zeros(3)),
        TypeError,
        "layer_norm: the dtypes float64 and float32 do not mix; convert one with .astype('float64')",
    ),
    (lambda m: m.layer_norm(zeros(3), np.ones(3), zeros(3)), TypeError, "shape (3,): wrap it in Tensor(…)"),
    (lambda m: m.layer_norm(zeros(2, 3), zeros(3), zeros(3), -1.0), ValueError, "of at least 0, got -1.0"),
    (
        lambda m: m.layer_norm(zeros(2, 3), zeros(3), zeros(3), float("nan")),
        ValueError,
        "layer_norm: eps is added to a variance, so it must be a number of at least 0, got nan",
    ),
    (lambda m: m.linear(zeros(2, 3), zeros(2, 3)), ValueError, "and weight of shape (2, 3) do not fit"),
    (lambda m: m.linear(zeros(3), zeros(3)), ValueError, "of shape (3,) and weight of shape (3,) do not fit"),
    (lambda m: m.linear(zeros(3), zeros(3, 2), zeros(3)), ValueError, "linear: weight of shape (3, 2) needs"),
    (lambda m: m.dropout(zeros(2, 3), KEEP[:1], 0.1), ValueError, "shape (2, 3), got bool of shape (1, 3)"),
    (lambda m: m.dropout(zeros(2, 3), np.ones((2, 3)), 0.1), ValueError, "got float64 of shape (2, 3)"),
    (lambda m: m.dropout(zeros(2, 3), KEEP, 1.0), ValueError, "p must be at least 0 and below 1, got 1.0"),
    (lambda m: m.dropout(zeros(2, 3), KEEP, -0.1), ValueError, "p must be at least 0 and below 1, got -0.1"),
    (lambda m: m.cross_entropy(zeros(2, 3), [0.0, 1.0]), TypeError, "must be integers, got dtype float64"),
    (lambda m: m.cross_entropy(zeros(2, 3), [0, 1, 2]), ValueError, "need labels of shape (2,), got (3,)"),
    (lambda m: m.cross_entropy(zeros(2, 3), [0, 3]), IndexError, "id 3 is outside 0 … 2"),
    (lambda m: m.cross_entropy(zeros(2, 3), [0, -1]), IndexError, "id -1 is outside 0 … 2"),
    (lambda m: m.cross_entropy(zeros(2, 3), [-100, -100]), ValueError, "counts, all 2 are ignore_index=-100"),
    (lambda m: m.cross_entropy(zeros(), 0), ValueError, "logits need an axis of classes, got shape ()"),
    (lambda m: m.cross_entropy(zeros(2, 0), [0, 0]), ValueError, "logits need an axis of classes"),
    (lambda m: m.cross_entropy(zeros(2, 3), [0, 1], weight=[1.0, 2.0]), ValueError, "shape (3,), got (2,)"),
    (
        lambda m: m.cross_entropy(zeros(2, 3), [0, 1], label_smoothing=1.5),
        ValueError,
        "cross_entropy: label_smoothing must be within 0 … 1, got 1.5",
    ),
    (
        lambda m: m.cross_entropy(zeros(2, 3), [0, 1], label_smoothing=float("nan")),
        ValueError,
        "cross_entropy: label_smoothing must be within 0 … 1, got nan",
    ),
    (
        lambda m: m.rnn_step(zeros(2, 3), zeros(2, 4), zeros(3, 3), zeros(3)),
        ValueError,
        "rnn_step: expected x_part (n, d), h (n, d), weight_hh (d, d), bias_hh (d,), got (2, 3), (2, 4), (3, 3), (3,)",
    ),
    (
        lambda m: m.lstm_step(zeros(2, 12), zeros(2, 3), zeros(1, 3), zeros(3, 12), zeros(12)),
        ValueError,
        "lstm_step: expected x_part (n, 4 d), h (n, d), c (n, d), weight_hh (d, 4 d), bias_hh (4 d,), got (2, 12)",
    ),
    (
        lambda m: m.gru(zeros(2, 9), zeros(2, 3), zeros(3, 9), zeros(9)),
        ValueError,
        "gru: expected x_part (L, n, 3 d), h (n, d), weight_hh (d, 3 d), bias_hh (3 d,), got (2, 9), (2, 3)",
    ),
    (
        lambda m: m.gru_step(zeros(5, 2, 9), zeros(2, 3), zeros(3, 9), zeros(9)),
        ValueError,
        "gru_step: expected x_part (n, 3 d), h (n, d)",
    ),
    (lambda m: m.rnn(zeros(0, 2, 3), zeros(2, 3), zeros(3, 3), zeros(3)), ValueError, "no steps in x_part"),
    (
        lambda m: m.rnn(zeros(5, 2, 3), zeros(2, 3), zeros(3, 3), zeros(3), np.ones((2, 5), bool)),
        ValueError,
        "rnn: live must be a boolean array of shape (5, 2), got bool of shape (2, 5)",
    ),
    (
        lambda m: m.rnn(zeros(5, 2, 3), zeros(2, 3), zeros(3, 3), zeros(3), np.ones((5, 2))),
        ValueError,
        "rnn: live must be a boolean array of shape (5, 2), got float64 of shape (5, 2)",
    ),
    (
        lambda m: m.gru(zeros(5, 2, 9), zeros(2, 3, dtype="float32"), zeros(3, 9), zeros(9)),
        TypeError,
        "gru: the dtypes float64 and float32 do not mix",
    ),
    (lambda m: attend(m, (2, 3), (4, 2), (4, 3)), ValueError, "v (…, m, d_v), got (2, 3), (4, 2), (4, 3)"),
    (lambda m: attend(m, (3,), (4, 3), (4, 3)), ValueError, "attention: expected q"),
    (lambda m: attend(m, (2, 3), (4, 3), (5, 3)), ValueError, "got (2, 3), (4, 3), (5, 3)"),
    (lambda m: attend(m, (2, 3), (0, 3), (0, 3)), ValueError, "is nothing to attend to in k of shape (0, 3)"),
    (lambda m: attend(m, (2, 4, 3), (3, 4, 3), (4, 3)), ValueError, "(3, 4, 3) and (4, 3) do not broadcast"),
    (lambda m: attend(m, (2, 3), (4, 3), (4, 3), np.zeros((3, 4))), ValueError, "not broadcast to (2, 4)"),
    (lambda m: attend(m, (2, 3), (4, 3), (4, 3), np.zeros((1, 2, 4))), ValueError, "not broadcast to (2, 4)"),
    (lambda m: attend(m, (2, 3), (4, 3), (4, 3), None, KEEP, 0.1), ValueError, "got bool of shape (2, 3)"),
    (
        lambda m: m.scaled_dot_product_attention(zeros(2, 3), zeros(4, 3), zeros(4, 3, dtype="float32")),
        TypeError,
        "attention: the dtypes float64 and float32 do not mix",
    ),
]


@both
@pytest.mark.parametrize(("call", "error", "message"), ERRORS, ids=[message[:60] for *_, message in ERRORS])
def test_what_errors_say(call, error, message, module):
    with pytest.raises(error, match=re.escape(message)):
        call(module)


# --- Masks -----------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    "mask", [np.tril(np.ones((3, 3), bool)), np.ones((3, 3), np.int64), [[1, 0, 1]]], ids=repr
)
def test_a_mask_of_booleans_or_integers_is_refused(module, mask, leaf):
    """Added to the scores as 0 and 1 it would hide nothing."""
    q = leaf(3, 4)
    with pytest.raises(
        TypeError, match=r"the mask is added to the scores, so it must be of floats, .*; got (bool|int)"
    ):
        module.scaled_dot_product_attention(q, q, q, mask)
