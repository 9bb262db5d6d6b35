"""Chapter `machines`: shares, the ring's picture, and the calculation of a step on several GPUs."""

from __future__ import annotations

import pytest

from bert_course.chapters import machines
from bert_course.chapters.machines import Network, timeline
from minigrad.bert.config import PRESETS
from minigrad.bert.info import step_cost
from minigrad.bert.pretraining import PairShare

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
