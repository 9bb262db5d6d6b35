"""Chapter `modules`'s helpers: the network and the way to a parameter."""

from __future__ import annotations

import numpy as np
import pytest

from minigrad import Tensor, nn
from minigrad.course.chapters.modules import accuracy, loss_of, network, way_to


def test_the_network_differs_in_its_start_alone():
    small, large = network(0.02, seed=3), network(0.04, seed=3)
    for (name, p), q in zip(small.named_parameters(), large.parameters(), strict=True):
        np.testing.assert_allclose(2 * p.numpy(), q.numpy(), rtol=1e-6, err_msg=name)
    kinds = [type(module) for module in network(0.02, norm=True).modules()]
    assert kinds.count(nn.LayerNorm) == 3
    assert nn.LayerNorm not in [type(module) for module in small.modules()]


def test_loss_and_accuracy_are_those_of_the_scores():
    class Scores(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x

    scores = np.log([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]])
    arms = np.array([0, 1])
    assert loss_of(Scores(), scores, arms).item() == pytest.approx(-np.log([0.5, 0.1]).mean())
    assert accuracy(Scores(), scores, arms) == 0.5


def test_the_way_names_what_stands_beside_each_step():
    model = nn.Sequential(nn.Linear(2, 3), nn.ModuleList([nn.Linear(3, 4), nn.LayerNorm(4)]))
    assert way_to(model, "1.0.bias") == [
        (["0", "1"], 1),
        (["0", "1"], 0),
        (["weight (3, 4)", "bias (4,)"], 1),
    ]
    with pytest.raises(KeyError, match=r"no parameter '1.2.bias'"):
        way_to(model, "1.2.bias")
