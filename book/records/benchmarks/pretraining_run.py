"""Does a whole pre-training run learn what the same model learns in PyTorch?

    python book/records/benchmarks/pretraining_run.py [--steps 4000] [--seeds 0 1 2] [--record FILE.json]

The same text, vocabulary, batches, masks, initial weights, schedule and clipping; only dropout draws differ.
Prints the mean MLM loss, and both accuracies, over the last 500 steps (an eighth of a shorter run) of each,
and their differences. The aim is at most 0.05 nats and 1 point of next-sentence prediction.

Training amplifies rounding: two runs that add the same numbers in another order part sooner or later, within
PyTorch too. So PyTorch runs a second time from weights changed by one part in ten million, about one rounding.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from pytorch_bert import TorchBert, copy_weights
from tqdm import tqdm

from minigrad import backend
from minigrad.bert.config import PRESETS
from minigrad.bert.data import encode_documents
from minigrad.bert.metrics import Tally
from minigrad.bert.pretraining import Pretraining
from minigrad.bert.settings import PretrainingArguments
from minigrad.text.corpus import read_corpus
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import train_wordpiece

ONE_ROUNDING = 1e-7  # float32 keeps 24 bits
COMPARED = ("loss", "mlm_loss", "mlm_accuracy", "nsp_accuracy")
OTHERS = ("minigrad", "PyTorch again")

Rows = list[dict[str, float]]  # the figures of each step


def pytorch_twin(run: Pretraining) -> TorchBert:
    """The model of `run`, with its weights, in PyTorch."""
    twin = TorchBert(run.model.config)
    copy_weights(twin, {name: backend.to_numpy(array) for name, array in run.model.state_dict().items()})
    return twin.train()


def train_pytorch(run: Pretraining, noise: float = 0.0) -> Rows:
    """The losses and accuracies of each step of the twin, on the batches of `run`.

    noise: by how much of themselves, as a standard deviation, the initial weights are changed.
    """
    arguments, twin = run.arguments, pytorch_twin(run)
    torch.manual_seed(arguments.seed)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter *= 1 + noise * torch.randn_like(parameter)
    optimizer = torch.optim.AdamW(
        twin.parameter_groups(arguments.weight_decay), lr=arguments.learning_rate, eps=1e-6, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, run.schedule.factor)
    rows = []
    for _ in tqdm(range(arguments.steps), desc=f"PyTorch{' again' if noise else ''}"):
        batch = run.data.next_batch()
        tensors = {name: torch.tensor(values) for name, values in batch.items()}
        labels, relations = tensors.pop("labels"), tensors.pop("next_sentence_label")
        scores, relation = twin(**tensors, labels=labels)
        targets = labels.flatten()[labels.flatten() != -100]
        mlm_loss, nsp_loss = F.cross_entropy(scores, targets), F.cross_entropy(relation, relations)
        optimizer.zero_grad()
        (mlm_loss + nsp_loss).backward()
        torch.nn.utils.clip_grad_norm_(twin.parameters(), arguments.max_grad_norm)
        optimizer.step()
        schedule.step()
        rows.append(
            {
                "loss": mlm_loss.item() + nsp_loss.item(),
                "mlm_loss": mlm_loss.item(),
                "mlm_accuracy": (scores.argmax(1) == targets).float().mean().item(),
                "nsp_accuracy": (relation.argmax(1) == relations).float().mean().item(),
            }
        )
    return rows


def train_minigrad(run: Pretraining) -> Rows:
    """The same of `run` itself."""
    rows = []
    run.model.train()
    for _ in tqdm(range(run.arguments.steps), desc="minigrad"):
        tally = Tally()
        run.train_step(tally)
        rows.append(tally.means())
    return rows


def means(rows: Rows, last: int) -> dict[str, float]:
    """The means over the last steps."""
    return {key: float(np.mean([row[key] for row in rows[-last:]])) for key in COMPARED}


def compare(settings: PretrainingArguments) -> dict[str, Any]:
    """Train all three with these settings; returns the figures of one seed."""
    config = PRESETS["reduced"]
    train, _ = read_corpus("python-docs").split(0.05, settings.seed)
    tokenizer = WordPieceTokenizer(train_wordpiece(train.sentences, config.vocab_size))
    documents = encode_documents(train.documents, tokenizer)
    runs: dict[str, Rows] = {}
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, train_steps in (
            ("minigrad", train_minigrad),
            ("PyTorch", train_pytorch),
            ("PyTorch again", partial(train_pytorch, noise=ONE_ROUNDING)),
        ):
            run = Pretraining(config, documents, tokenizer, [], Path(folder) / name, settings)
            started = time.perf_counter()
            runs[name] = train_steps(run)
            seconds[name] = time.perf_counter() - started
    last = max(1, min(500, settings.steps // 8))
    return {
        "seed": settings.seed,
        "unigram_entropy": run.unigram_entropy,
        "means": {name: means(rows, last) for name, rows in runs.items()},
        "seconds": seconds,
    }


def differences(seeds: list[dict[str, Any]], name: str, key: str) -> np.ndarray:
    """A run's figure minus PyTorch's, for each seed."""
    return np.array([seed["means"][name][key] - seed["means"]["PyTorch"][key] for seed in seeds])


def print_seed(figures: dict[str, Any]) -> None:
    """The figures of one seed as a table."""
    print(f"\nseed {figures['seed']}; unigram entropy {figures['unigram_entropy']:.3f} nats")
    print(f"{'':16}" + "".join(f"{key:>14}" for key in (*COMPARED, "seconds")))
    for name, row in figures["means"].items():
        cells = "".join(f"{row[key]:14.4f}" for key in COMPARED)
        print(f"{name:16}{cells}{figures['seconds'][name]:14.0f}")


def main() -> None:
    """Compare for each seed, print the mean differences, write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[0], help="of weights, masks, dropout and the held-out split"
    )
    parser.add_argument("--record", type=Path, help="write the figures to this JSON file, after each seed")
    options = parser.parse_args()
    backend.default().keep_freed_memory()
    settings = PretrainingArguments()
    warmup_steps = min(settings.warmup_steps, options.steps // 4)
    seeds = []
    for seed in options.seeds:
        seeds.append(compare(replace(settings, steps=options.steps, seed=seed, warmup_steps=warmup_steps)))
        print_seed(seeds[-1])
        if options.record:
            record = {
                "date": date.today().isoformat(),
                "torch": torch.__version__,
                "threads": torch.get_num_threads(),
                "steps": options.steps,
                "seeds": seeds,
            }
            options.record.write_text(json.dumps(record, indent=2) + "\n")
    print(f"\nminus PyTorch, mean over {len(seeds)} seeds (and the largest, either way)")
    print(f"{'':16}" + "".join(f"{key:>20}" for key in COMPARED))
    for name in OTHERS:
        cells = [differences(seeds, name, key) for key in COMPARED]
        print(f"{name:16}" + "".join(f"{d.mean():+11.4f} ({np.abs(d).max():.4f})" for d in cells))


if __name__ == "__main__":
    main()
