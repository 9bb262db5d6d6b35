"""The trained models that pages show: train one again, and store it small enough for the repository.

    python -m book.make.store stories

trains with the options below into runs/stories, from where it was stopped, and stores the last checkpoint in
book/records/stories: half precision, and of a BERT as many positions as training used, so that a file stays under 2 MB.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from minigrad.training.folders import latest_checkpoint
from minigrad.training.pretrained import CONFIG, TOKENIZER, VOCABULARY, WEIGHTS

POSITIONS = "bert.embeddings.position_embeddings.weight"


def store(run: Path, target: Path, max_length: int = 64) -> None:
    """Write the newest checkpoint of a run to `target` as float16, a BERT with `max_length` positions; its evaluations.

    Models that translate have no table of positions.
    """
    checkpoint = latest_checkpoint(run)
    target.mkdir(parents=True, exist_ok=True)
    config = json.loads((checkpoint / CONFIG).read_text())
    weights = load_file(checkpoint / WEIGHTS)
    if POSITIONS in weights:
        config["max_position_embeddings"] = max_length
        weights[POSITIONS] = np.ascontiguousarray(weights[POSITIONS][:max_length])
    (target / CONFIG).write_text(json.dumps(config, indent=2) + "\n")
    save_file({name: array.astype(np.float16) for name, array in weights.items()}, target / WEIGHTS)
    for file in (checkpoint / VOCABULARY, checkpoint / TOKENIZER, run / "evaluation.csv"):
        shutil.copy(file, target)


STORIES = (
    "pretrain --corpus stories --set num_attention_heads=4 --max-length 32 --learning-rate 1e-3 --steps 10000"
)
VARIED = (
    "pretrain --corpus varied-stories --set num_hidden_layers=4 --set num_attention_heads=4 --max-length 56 "
    "--learning-rate 1e-3 --steps 6000"
)
TRANSLATE = "train --corpus stories-long --set dropout=0 --architecture"
OFTEN = "--eval-every 1000 --save-every 1000"
# Of each: who trains it, with which options, and the positions of a BERT. Two cores take three to fifteen minutes.
MODELS: dict[str, tuple[str, str, int]] = {
    "start": ("minigrad.bert", f"pretrain --steps 12000 {OFTEN}", 64),
    "stories": ("minigrad.bert", f"{STORIES} {OFTEN}", 32),
    "varied": ("minigrad.bert", f"{VARIED} --eval-every 1000", 56),
    "seq2seq": (
        "minigrad.seq2seq",
        f"{TRANSLATE} lstm --learning-rate 2e-3 --warmup-steps 200 --steps 3000 {OFTEN}",
        0,
    ),
    "attention": (
        "minigrad.seq2seq",
        f"{TRANSLATE} lstm-attention --learning-rate 4e-3 --warmup-steps 200 --steps 4000 {OFTEN}",
        0,
    ),
    "transformer": (
        "minigrad.seq2seq",  # the rate: 1 / √(128 · 400)
        f"{TRANSLATE} transformer --steps 4000 --learning-rate 0.004419417382415922 --eval-every 500 --save-every 500",
        0,
    ),
}


def main(arguments: Any = None) -> None:
    """Train a model, and store it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=MODELS)
    name = parser.parse_args(arguments).name
    module, options, positions = MODELS[name]
    run = Path("runs") / name
    command = [sys.executable, "-m", module, *options.split(), "--output", str(run), "--resume"]
    subprocess.run(command, check=True)
    target = Path("minigrad/bert/trained") if name == "start" else Path("book/records") / name
    store(run, target, positions)


if __name__ == "__main__":
    main()
