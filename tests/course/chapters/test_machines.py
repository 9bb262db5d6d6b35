"""Chapter `machines`: shares, the ring's picture, and the calculation of a step on several GPUs."""

from __future__ import annotations

import re

import numpy as np
import pytest

from minigrad.bert.config import PRESETS
from minigrad.bert.info import step_cost
from minigrad.bert.pretraining import PairShare
from minigrad.course.chapters import machines
from minigrad.course.chapters.machines import Network, timeline

pytestmark = pytest.mark.numpy_only("the page's model is played on the host")

BASE = PRESETS["base"]


@pytest.fixture(scope="module")
def model():
    return machines.model_with_dropout()


def test_shares_add_up_to_the_whole_batch(model):
    batch = machines.batch_of(3)
    whole = machines.gradient(model, batch, draws=7)
    shares = [PairShare(batch, rank, 5) for rank in range(5)]
    total = sum(machines.gradient(model, s.batch, s.of_tokens, s.of_pairs, 7, s.places) for s in shares)
    assert machines.distance(total, whole) < 2e-6


def test_a_distance_is_relative_to_what_is_right():
    assert machines.distance(np.array([3.0, 0.0]), np.array([0.0, 4.0])) == pytest.approx(5 / 4)


def test_gradients_come_from_the_last_layer_to_the_first(model):
    order = [name for name, _ in machines.ready(model, machines.batch_of(0))]
    assert sorted(order) == sorted(name for name, _ in model.named_parameters())
    places = [order.index(f"bert.encoder.layer.{i}.output.dense.weight") for i in (1, 0)]
    table = order.index("bert.embeddings.word_embeddings.weight")
    assert order.index("cls.predictions.bias") < places[0] < places[1] < table
    assert table >= len(order) - 2


def test_copies_that_get_the_same_sum_stay_together():
    def alike(arrays):
        return [sum(arrays)] * len(arrays)

    def apart(arrays):
        return [sum(arrays), 2 * sum(arrays)]

    assert machines.drift(alike, 2, 2) == [0, 0]
    assert machines.drift(apart, 2, 1)[0] > 0


def test_the_ring_of_the_player_ends_with_all_sums():
    arrays = [[10**rank * (k + 1) for k in range(3)] for rank in range(3)]
    frames = machines.ring_frames(arrays)
    numbers = [re.findall(r">(\d+)</text>", frame.svg) for frame in frames]
    assert len(frames) == 1 + 2 * 2
    assert numbers[0] == ["1", "10", "100", "2", "20", "200", "3", "30", "300"]
    assert numbers[-1] == ["111"] * 3 + ["222"] * 3 + ["333"] * 3
    halfway = np.array(numbers[2]).reshape(3, 3) == np.array([["111"], ["222"], ["333"]])
    assert halfway.sum() == 3  # one complete sum in each process
    assert halfway.sum(axis=0).tolist() == halfway.sum(axis=1).tolist() == [1, 1, 1]


# --- The plan --------------------------------------------------------------------------------------------


def test_one_gpu_has_nothing_to_add_up():
    step = timeline(BASE, 256, 128, Network(1, 1.0, 1.0, 1e14), 25e6)
    assert step.sums == []
    assert step.end == pytest.approx(step_cost(BASE, 256, 128).step_flops / 1e14)


def test_a_bucket_for_all_waits_for_the_backward_pass():
    network = Network(8, 100e9, 1e-5, 1e14)
    step = timeline(BASE, 256, 128, network, 1e12)
    size = step_cost(BASE, 256, 128).weight_bytes
    assert step.backward == pytest.approx(step_cost(BASE, 256, 128).step_flops / 8e14)
    assert step.sums == [pytest.approx((step.backward, step.backward + 14e-5 + 1.75 * size / 100e9))]


@pytest.mark.parametrize("bucket", [1, 3e6, 100e6])
def test_sums_follow_each_other_and_have_all_bytes(bucket):
    network = Network(4, 200e9, 0.0, 2e14)
    step = timeline(BASE, 64, 128, network, bucket)
    assert all(a[1] <= b[0] + 1e-12 for a, b in zip(step.sums, step.sums[1:], strict=False))
    assert step.sums[0][0] >= step.forward
    moved = sum(end - begin for begin, end in step.sums) * 200e9 / 1.5
    assert moved == pytest.approx(step_cost(BASE, 64, 128).weight_bytes)


def test_half_the_bytes_take_half_the_time():
    network = Network(64, 1e9, 0.0, 1e15)  # so slow that the sums are the step
    long, short = (timeline(BASE, 256, 128, network, 1, n) for n in (4, 2))
    assert sum(e - b for b, e in long.sums) == pytest.approx(2 * sum(e - b for b, e in short.sums))


def test_the_figure_says_when_each_step_ends():
    step = timeline(BASE, 256, 128, Network(8, 450e9, 5e-6, 989e12 / 4), 25e6)
    pytest.importorskip("matplotlib")
    assert f"{1e3 * step.end:.1f} with eight" in machines.timeline_figure({"eight": step}).alt
