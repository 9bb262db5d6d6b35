"""Does a whole pre-training run learn what the same model learns in PyTorch?

    python tests/benchmarks/pretraining_run.py [--steps 4000] [--record FILE.json]

The same text, vocabulary, batches, masks, initial weights, schedule and clipping; only dropout draws differ.
Prints the mean MLM loss, and both accuracies, over the last 500 steps (an eighth of a shorter run) of each,
and their differences. The aim is at most 0.05 nats and 1 point of next-sentence prediction.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from pytorch_bert import TorchBert
from tqdm import tqdm

from minigrad import backend
from minigrad.bert.config import PRESETS
from minigrad.bert.corpus import python_docs, unigram_entropy
from minigrad.bert.data import encode_documents
from minigrad.bert.pretraining import Pretraining, PretrainingArguments, Tally
from minigrad.bert.tokenizer import WordPieceTokenizer, train_wordpiece


def pytorch_twin(run: Pretraining) -> TorchBert:
    """The model of `run`, with its weights, in PyTorch."""
    twin = TorchBert(run.model.config)
    names = {
        "words.weight": "bert.embeddings.word_embeddings.weight",
        "positions.weight": "bert.embeddings.position_embeddings.weight",
        "segments.weight": "bert.embeddings.token_type_embeddings.weight",
        "norm": "bert.embeddings.LayerNorm",
        "pooler": "bert.pooler.dense",
        "transform": "cls.predictions.transform.dense",
        "transform_norm": "cls.predictions.transform.LayerNorm",
        "vocabulary_bias": "cls.predictions.bias",
        "next_sentence": "cls.seq_relationship",
    }
    for i in range(run.model.config.num_hidden_layers):
        layer = f"bert.encoder.layer.{i}"
        for part in ("query", "key", "value"):
            names[f"layers.{i}.{part}"] = f"{layer}.attention.self.{part}"
        names[f"layers.{i}.attention_output"] = f"{layer}.attention.output.dense"
        names[f"layers.{i}.attention_norm"] = f"{layer}.attention.output.LayerNorm"
        names[f"layers.{i}.inner"] = f"{layer}.intermediate.dense"
        names[f"layers.{i}.outer"] = f"{layer}.output.dense"
        names[f"layers.{i}.output_norm"] = f"{layer}.output.LayerNorm"
    weights = {name: backend.to_numpy(array) for name, array in run.model.state_dict().items()}
    state = {}
    for name in twin.state_dict():
        stem, _, kind = name.rpartition(".")
        array = weights[names[name] if name in names else f"{names[stem]}.{kind}"]
        is_table = stem in ("words", "positions", "segments")
        state[name] = torch.tensor(array.T.copy() if array.ndim == 2 and not is_table else array.copy())
    twin.load_state_dict(state)
    return twin.train()


def train_pytorch(run: Pretraining) -> list[dict[str, float]]:
    """The losses and accuracies of each step of the twin, on the batches of `run`."""
    arguments, twin = run.arguments, pytorch_twin(run)
    torch.manual_seed(arguments.seed)
    optimizer = torch.optim.AdamW(
        twin.parameter_groups(arguments.weight_decay), lr=arguments.learning_rate, eps=1e-6, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, run.schedule.factor)
    rows = []
    for _ in tqdm(range(arguments.steps), desc="PyTorch"):
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
                "mlm_loss": mlm_loss.item(),
                "mlm_accuracy": (scores.argmax(1) == targets).float().mean().item(),
                "nsp_accuracy": (relation.argmax(1) == relations).float().mean().item(),
            }
        )
    return rows


def train_minigrad(run: Pretraining) -> list[dict[str, float]]:
    """The same of `run` itself."""
    rows = []
    run.model.train()
    for _ in tqdm(range(run.arguments.steps), desc="minigrad"):
        tally = Tally()
        run.train_step(tally)
        rows.append(tally.means())
    return rows


def main() -> None:
    """Train both, print the comparison, write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--record", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    settings = PretrainingArguments()
    settings = replace(
        settings, steps=options.steps, warmup_steps=min(settings.warmup_steps, options.steps // 4)
    )
    config = PRESETS["reduced"]
    train, _ = python_docs().split(0.05, settings.seed)
    tokenizer = WordPieceTokenizer(train_wordpiece(train.sentences, config.vocab_size))
    documents = encode_documents(train.documents, tokenizer)
    entropy = unigram_entropy(token for document in documents for sentence in document for token in sentence)
    backend.default().keep_freed_memory()

    last = max(1, min(500, options.steps // 8))
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, train_steps in (("minigrad", train_minigrad), ("PyTorch", train_pytorch)):
            run = Pretraining(config, documents, tokenizer, [], folder, settings)
            started = time.perf_counter()
            rows = train_steps(run)[-last:]
            figures[name] = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
            figures[name]["seconds"] = time.perf_counter() - started
    keys = ("mlm_loss", "mlm_accuracy", "nsp_accuracy", "seconds")
    print(f"means over the last {last} of {options.steps} steps; unigram entropy {entropy:.3f} nats")
    print(f"{'':12}" + "".join(f"{key:>14}" for key in keys))
    for name, row in figures.items():
        print(f"{name:12}" + "".join(f"{row[key]:14.4f}" for key in keys))
    print(
        f"{'difference':12}"
        + "".join(f"{figures['minigrad'][k] - figures['PyTorch'][k]:14.4f}" for k in keys)
    )
    if options.record:
        record = {
            "date": date.today().isoformat(),
            "steps": options.steps,
            "last": last,
            "unigram_entropy": entropy,
            **figures,
        }
        options.record.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
