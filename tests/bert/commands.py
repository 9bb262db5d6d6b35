"""Command lines of a tiny run, and of one that fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tiny

SIZES = {
    "vocab_size": 90,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 24,
}
SETTINGS = {
    "steps": 6,
    "batch-size": 4,
    "max-length": 24,
    "warmup-steps": 2,
    "log-every": 2,
    "eval-every": 3,
    "save-every": 4,
    "held-out": 0.2,
}


def pretrain(corpus: Path, output: Path, *more: str, **changes: object) -> list[str]:
    """The command line of a tiny run."""
    settings = {**SETTINGS, **{name.replace("_", "-"): value for name, value in changes.items()}}
    command = ["pretrain", "--corpus", str(corpus), "--output", str(output)]
    command += [text for name, value in SIZES.items() for text in ("--set", f"{name}={value}")]
    command += [text for name, value in settings.items() for text in (f"--{name}", str(value))]
    return [*command, *more]


def write_corpus(path: Path, count: int = 20, seed: int = 0) -> Path:
    """A text of documents with a blank line between them."""
    blocks = ("\n".join(f"{s.capitalize()}." for s in document) for document in tiny.texts(count, seed))
    path.write_text("\n\n".join(blocks))
    return path


def error_of(main: Callable[[Sequence[str]], int], capsys: Any, command: Sequence[object]) -> str:
    """Run a command that fails, and return its one line on stderr."""
    assert main([str(part) for part in command]) == 1
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    *before, last = err.splitlines()
    assert last.startswith("error: ")
    assert all(re.match(r"note: |step \d+", line) for line in before)
    return last.removeprefix("error: ")
