"""Records of runs: JSON with each of its fields, and each run, on a line; what is there is gone on with."""

from __future__ import annotations

import argparse
import json
from datetime import date
from pathlib import Path
from typing import Any

from minigrad.files import write_atomic

RUNS = Path(__file__).resolve().parents[2] / "book" / "runs"


def parser(description: str | None, name: str) -> argparse.ArgumentParser:
    """A command line with --record, by default the file of this name in book/runs."""
    found = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--record", type=Path, default=RUNS / name, help="where the runs are stored")
    return found


def read(path: Path, made_by: str, **fields: Any) -> dict[str, Any]:
    """The record that is there, or a new one with these fields and no runs."""
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    return {
        "made_by": f"tests/tools/{Path(made_by).name}",
        "date": date.today().isoformat(),
        **fields,
        "runs": [],
    }


def write(path: Path, record: dict[str, Any]) -> None:
    """Store the record, whole or not at all."""
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in record.items() if name != "runs"]
    runs = ",\n".join(json.dumps(run) for run in record["runs"])
    write_atomic(path, ("{\n" + ",\n".join(lines) + f',\n"runs": [\n{runs}\n]\n}}\n').encode())
