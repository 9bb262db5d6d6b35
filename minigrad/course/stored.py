"""The models and curves that the pages show, made once by long runs.

    python -m minigrad.course.stored runs/start book/runs/start

makes one from a run's folder: half precision, and as many positions as training used, so that a file stays under 2 MB.
"""

from __future__ import annotations

import argparse
import json
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from minigrad.bert.checkpoint import CONFIG, TOKENIZER, VOCABULARY, WEIGHTS
from minigrad.bert.pretraining import latest_checkpoint

__all__ = ["stored"]

POSITIONS = "bert.embeddings.position_embeddings.weight"


def stored(name: str) -> Path:
    """The file or folder `name` that came with the course: in book/runs/, or inside the installed package.

    Raises FileNotFoundError naming what there is.
    """
    here = Path(str(files("minigrad.course")))
    folders = (here / "runs", here.parent.parent / "book" / "runs")  # of a wheel, of the repository
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    present = sorted(path.name for folder in folders for path in folder.glob("*"))
    raise FileNotFoundError(f"the course has no stored {name!r}; it has {', '.join(present) or 'nothing'}")


def store(run: Path, target: Path, max_length: int = 64) -> None:
    """Write the newest checkpoint of a run to `target` as float16 with `max_length` positions, and its evaluations."""
    checkpoint = latest_checkpoint(run)
    target.mkdir(parents=True, exist_ok=True)
    config = json.loads((checkpoint / CONFIG).read_text())
    config["max_position_embeddings"] = max_length
    (target / CONFIG).write_text(json.dumps(config, indent=2) + "\n")
    weights = load_file(checkpoint / WEIGHTS)
    weights[POSITIONS] = np.ascontiguousarray(weights[POSITIONS][:max_length])
    save_file({name: array.astype(np.float16) for name, array in weights.items()}, target / WEIGHTS)
    for file in (checkpoint / VOCABULARY, checkpoint / TOKENIZER, run / "evaluation.csv"):
        shutil.copy(file, target)


def main(arguments: Any = None) -> None:
    """Store the model of a run."""
    parser = argparse.ArgumentParser(description=store.__doc__)
    parser.add_argument("run", type=Path, help="a run's folder")
    parser.add_argument("target", type=Path, help="a folder in book/runs/")
    options = parser.parse_args(arguments)
    store(options.run, options.target)


if __name__ == "__main__":
    main()
