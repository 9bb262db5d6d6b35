"""Records of runs: JSON with each of its fields, and each run, on a line; what is there is gone on with."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from minigrad.files import write_atomic

RUNS = Path(__file__).resolve().parents[2] / "book" / "runs"


def parser(description: str | None, name: str, jobs: bool = False) -> argparse.ArgumentParser:
    """A command line with --record, by default the file of this name in book/runs; jobs: with --jobs as well."""
    found = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--record", type=Path, default=RUNS / name, help="where the runs are stored")
    if jobs:
        found.add_argument(
            "--jobs", type=int, default=1, help="runs at the same time, each in a process of its own"
        )
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


def make_missing(
    path: Path,
    record: dict[str, Any],
    stages: Iterable[Iterable[Hashable]],
    case_of: Callable[[dict[str, Any]], Hashable],
    make: Callable[[Any], dict[str, Any]],
    jobs: int,
) -> None:
    """Make the runs that the record does not have yet, stage by stage, and store each as it ends.

    stages: the cases of each stage; a generator may read the runs of the stages before it. case_of: which case a
    stored run is. make: the run of a case, in a process of its own; a function of a module. jobs: so many at a time.
    """
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for stage in stages:
            done = {case_of(run) for run in record["runs"]}
            running = [pool.submit(make, case) for case in dict.fromkeys(stage) if case not in done]
            for run in as_completed(running):
                record["runs"].append(run.result())
                write(path, record)
