"""Fine-tuning held against PyTorch: the same first weights and batches give the same losses, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tiny_task

from minigrad.bert.checkpoint import save_pretrained
from minigrad.bert.examples import NUMBERS, TASKS

pytestmark = pytest.mark.oracle

STEPS = 12  # of 42 examples in batches of 8, twice


@pytest.mark.parametrize("task", TASKS)
def test_each_step_is_that_of_transformers_and_adamw(tmp_path, task):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with tiny_task.run_in(tmp_path, task, learning_rate=1e-2, dropout=0.0) as run:
        save_pretrained(run.model, tmp_path / "start", run.tokenizer)
        batches, mine = followed(run)
        run.run([].append)
    assert len(batches) == len(mine) == STEPS

    kind = getattr(transformers, type(run.model).__name__)
    theirs = kind.from_pretrained(tmp_path / "start", dtype=torch.float32).train()
    theirs.get_input_embeddings().padding_idx = None  # there [PAD]'s row is never learned
    labels = [row["label"] for row in tiny_task.rows(task, 42)] if task in NUMBERS else [0.0, 2.0]
    unit = float(np.std(labels))  # 1 where there are classes
    groups: dict[tuple[bool, bool], list[Any]] = {}
    for name, parameter in theirs.named_parameters():
        plain = name.endswith("bias") or "LayerNorm" in name
        groups.setdefault((plain, name.startswith("classifier.")), []).append(parameter)
    steps = [unit if own else 1.0 for _, own in groups]
    decays = [0.0 if plain else 0.01 for plain, _ in groups]
    adamw = torch.optim.AdamW(
        [
            {"params": p, "weight_decay": d / u}
            for p, d, u in zip(groups.values(), decays, steps, strict=True)
        ],
        eps=1e-6,
    )
    expected = []
    for step, batch in enumerate(batches):
        loss = theirs(**{name: torch.tensor(values) for name, values in batch.items()}).loss / unit**2
        adamw.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        rate = 1e-2 * (
            step if step < 1 else (STEPS - step) / (STEPS - 1)
        )  # a step of warm-up, from 0; then down
        for group, own in zip(adamw.param_groups, steps, strict=True):
            group["lr"] = rate * own
        adamw.step()
        expected.append((loss.item(), float(norm)))
    np.testing.assert_allclose(mine, expected, rtol=3e-4)


def followed(run: Any) -> tuple[list[dict[str, np.ndarray]], list[tuple[float, float]]]:
    """What a run will have read, and the loss and the gradients' norm of each of its steps."""
    batches: list[dict[str, np.ndarray]] = []
    figures: list[tuple[float, float]] = []
    next_batch, compute = run.data.next_batch, run.compute

    def read():
        batches.append(next_batch())
        return batches[-1]

    def computed(*arguments):
        found = compute(*arguments)
        figures.append((float(found[0]), float(found[1])))
        return found

    run.data.next_batch, run.compute = read, computed
    return batches, figures
