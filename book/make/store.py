"""The model of a long run, made small enough for the repository.

    python -m book.make.store runs/start minigrad/bert/trained

makes it from a run's folder, of a BERT or of a model that translates: half precision, and of a BERT as many positions
as training used, so that a file stays under 2 MB.
"""

from __future__ import annotations

import argparse
import json
import shutil
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


def main(arguments: Any = None) -> None:
    """Store the model of a run."""
    parser = argparse.ArgumentParser(description=store.__doc__)
    parser.add_argument("run", type=Path, help="a run's folder")
    parser.add_argument("target", type=Path, help="a folder in book/records/")
    parser.add_argument(
        "--max-length", type=int, default=64, help="positions that training used (default: 64)"
    )
    options = parser.parse_args(arguments)
    store(options.run, options.target, options.max_length)


if __name__ == "__main__":
    main()
