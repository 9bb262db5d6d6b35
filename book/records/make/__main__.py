"""Makes the records that chapters show: for each a module here under its name.

    nice -n 19 env OPENBLAS_NUM_THREADS=1 python -m book.records.make stories --jobs 2

writes book/records/stories.json, run by run, and goes on where it was stopped. A module has

    fields()       what stands in the record beside its runs
    stages(runs)   the cases to make, stage by stage, the most important first; it may read the runs that are there
    CASE           the names, in a run, of what makes up its case
    make(case)     trains once: a run, as a dict

and, where runs can get out of date, as those at a rate that is no longer the best, DROPS = True: what no stage asks for
is dropped at the end.
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Sequence
from concurrent.futures import as_completed
from datetime import date
from pathlib import Path
from typing import Any

from book.records.make._workers import workers
from minigrad.files import write_atomic

HERE = Path(__file__).resolve().parent
RECORDS = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))


def read(path: Path, name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The record that is there, or a new one. Raises ValueError if its fields are others than those of now."""
    fields = json.loads(json.dumps(fields))
    if not path.exists():
        head = {"made_by": f"book/records/make/{name}.py", "date": date.today().isoformat()}
        return {**head, **fields, "runs": []}
    record = json.loads(path.read_text(encoding="utf-8"))
    if others := [field for field, value in fields.items() if record.get(field) != value]:
        raise ValueError(
            f"{path} has other {', '.join(others)}: name another --record, or begin anew without it"
        )
    return record


def write(path: Path, record: dict[str, Any]) -> None:
    """Store the record, whole or not at all, each of its fields and each run on a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in record.items() if name != "runs"]
    runs = ",\n".join(json.dumps(run) for run in record["runs"])
    write_atomic(path, ("{\n" + ",\n".join(lines) + f',\n"runs": [\n{runs}\n]\n}}\n').encode())


def cases_of(runs: list[dict[str, Any]], names: Sequence[str]) -> list[tuple[Any, ...]]:
    """What each run was made for."""
    return [tuple(run[name] for name in names) for run in runs]


def main() -> None:
    """Make the runs that the record does not have yet, and store each as it ends."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=RECORDS)
    parser.add_argument(
        "--record", type=Path, help="where the runs are stored, by default book/records/NAME.json"
    )
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time, each in a process")
    parser.add_argument("--only", metavar="WORD", help="make the cases that have this word in them")
    options = parser.parse_args()
    maker: Any = importlib.import_module(f"book.records.make.{options.name}")
    path = options.record or HERE.parent / f"{options.name}.json"
    try:
        record = read(path, options.name, maker.fields())
    except ValueError as error:
        parser.error(str(error))
    runs = record["runs"]
    asked = set()
    with workers(options.jobs) as pool:
        for stage in maker.stages(runs):
            asked |= set(stage)
            done = set(cases_of(runs, maker.CASE))
            cases = [case for case in dict.fromkeys(stage) if case not in done]
            if options.only:
                cases = [case for case in cases if options.only in map(str, case)]
            for run in as_completed([pool.submit(maker.make, case) for case in cases]):
                runs.append(run.result())
                write(path, record)
                print({name: value for name, value in runs[-1].items() if name != "curve"}, flush=True)
    if getattr(maker, "DROPS", False) and not options.only:
        runs[:] = [run for run, case in zip(runs, cases_of(runs, maker.CASE), strict=True) if case in asked]
        write(path, record)


if __name__ == "__main__":
    main()
