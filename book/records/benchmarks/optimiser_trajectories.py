"""Where PyTorch's optimisers take a small net in 100 steps: the reference of chapter `optimisers`.

    python book/records/benchmarks/optimiser_trajectories.py

writes book/records/pytorch_trajectories.json. A net 2 -> 12 -> 3 with tanh, cross-entropy, float64. The chapter starts
from the stored weights and draws the same batches from the stored seed. Needs PyTorch; takes seconds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

STEPS, BATCH = 100, 16
WEIGHTS_SEED, DATA_SEED = 30, 31
SHAPES = {"W1": (2, 12), "b1": (12,), "W2": (12, 3), "b2": (3,)}

# What minigrad.optim is called with; `recipe` adds BERT's clipping, schedule, and no decay on biases.
CASES: dict[str, dict[str, Any]] = {
    "SGD": {"optimiser": "SGD", "settings": {"lr": 0.1}},
    "SGD with momentum": {"optimiser": "SGD", "settings": {"lr": 0.1, "momentum": 0.9}},
    "Adam": {"optimiser": "Adam", "settings": {"lr": 0.02}},
    "AdamW": {"optimiser": "AdamW", "settings": {"lr": 0.02, "weight_decay": 0.1}},
    "BERT's recipe": {
        "optimiser": "AdamW",
        "settings": {"lr": 0.02, "eps": 1e-6, "weight_decay": 0.01},
        "recipe": {"max_norm": 0.3, "warmup_steps": 10, "total_steps": STEPS},
    },
}


def initial() -> dict[str, np.ndarray]:
    """The weights that every case starts from."""
    rng = np.random.default_rng(WEIGHTS_SEED)
    return {name: 0.5 * rng.standard_normal(shape) for name, shape in SHAPES.items()}


def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    """Points of the plane, and as labels their third of the circle."""
    rng = np.random.default_rng(DATA_SEED)
    points = [rng.standard_normal((BATCH, 2)) for _ in range(STEPS)]
    return [(x, (np.arctan2(x[:, 1], x[:, 0]) * 3 / (2 * np.pi) + 1.5).astype(int) % 3) for x in points]


def trajectory(case: dict[str, Any]) -> tuple[dict[str, np.ndarray], list[float]]:
    """The parameters after the last step in PyTorch, and the norms of the gradients on the way."""
    p = {name: torch.tensor(value, requires_grad=True) for name, value in initial().items()}
    settings, recipe = case["settings"], case.get("recipe")
    groups: Any = list(p.values())
    if recipe:
        groups = [{"params": [p["W1"], p["W2"]]}, {"params": [p["b1"], p["b2"]], "weight_decay": 0.0}]
    optimiser = getattr(torch.optim, case["optimiser"])(groups, **settings)
    schedule = None
    if recipe:
        warmup, total = recipe["warmup_steps"], recipe["total_steps"]
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser,
            lambda step: step / warmup if step < warmup else max(0.0, (total - step) / (total - warmup)),
        )
    norms = []
    for x, labels in batches():
        optimiser.zero_grad()
        logits = torch.tanh(torch.tensor(x) @ p["W1"] + p["b1"]) @ p["W2"] + p["b2"]
        torch.nn.functional.cross_entropy(logits, torch.tensor(labels)).backward()
        limit = recipe["max_norm"] if recipe else float("inf")
        norms.append(float(torch.nn.utils.clip_grad_norm_(p.values(), limit)))
        optimiser.step()
        if schedule:
            schedule.step()
    return {name: value.detach().numpy() for name, value in p.items()}, norms


def reference() -> dict[str, Any]:
    """What is stored: settings, start and end of every case."""

    def lists(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
        return {name: array.tolist() for name, array in arrays.items()}

    cases = {}
    for name, case in CASES.items():
        end, norms = trajectory(case)
        clipped = sum(norm > case["recipe"]["max_norm"] for norm in norms) if "recipe" in case else 0
        cases[name] = {**case, "clipped_steps": clipped, "end": lists(end)}
    return {
        "made_by": "book/records/benchmarks/optimiser_trajectories.py",
        "torch": torch.__version__.split("+")[0],
        "steps": STEPS,
        "batch": BATCH,
        "data_seed": DATA_SEED,
        "start": lists(initial()),
        "cases": cases,
    }


if __name__ == "__main__":
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in reference().items())
    (Path(__file__).resolve().parents[1] / "pytorch_trajectories.json").write_text(f"{{\n{rows}\n}}\n")
