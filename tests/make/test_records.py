"""What makes the records of book/records: each record is whole, and what is missing is made, and nothing else."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import types

import pytest

from book.records.make import __main__ as records

ROOT = records.HERE.parents[2]

pytestmark = pytest.mark.numpy_only("the records are made on the CPU")

each_record = pytest.mark.parametrize("name", records.RECORDS)


def maker_and_path(name):
    return importlib.import_module(f"book.records.make.{name}"), records.HERE.parent / f"{name}.json"


@each_record
def test_a_record_is_of_its_maker_and_begins_with_its_first_runs(name):
    maker, path = maker_and_path(name)
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["made_by"] == f"book/records/make/{name}.py"
    there = records.cases_of(record["runs"], maker.CASE)
    assert set(next(iter(maker.stages(record["runs"])))) <= set(there)
    assert len(there) == len(set(there))


@pytest.mark.slow
@each_record
def test_a_record_is_gone_on_with(name):
    maker, path = maker_and_path(name)
    assert records.read(path, name, maker.fields())["runs"]


@pytest.fixture
def maker(monkeypatch):
    """A maker of squares."""
    module = types.ModuleType("book.records.make.squares")
    module.CASE, module.DROPS = ("number",), True
    module.fields = lambda: {"power": 2}
    module.stages, module.make = _stages, _square
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(records, "RECORDS", ["squares"])
    return module


def _stages(runs):
    """1 and 2, then the largest square of these."""
    yield [(1,), (2,)]
    yield [(max(run["square"] for run in runs if run["number"] < 3),)]


def _square(case):
    return {"number": case[0], "square": case[0] ** 2}


def made(monkeypatch, path, *options):
    monkeypatch.setattr(sys, "argv", ["make", "squares", "--record", str(path), *options])
    records.main()
    return json.loads(path.read_text())


@pytest.mark.usefixtures("maker")
def test_what_is_missing_is_made_and_what_nobody_asks_for_goes(monkeypatch, tmp_path):
    path = tmp_path / "squares.json"
    assert [run["number"] for run in made(monkeypatch, path, "--only", "2")["runs"]] == [2]
    record = made(monkeypatch, path)
    assert [run["number"] for run in record["runs"]] == [2, 1, 4]
    assert (record["power"], record["made_by"]) == (2, "book/records/make/squares.py")
    record["runs"][0]["square"] = 3  # it is not made again
    record["runs"].append({"number": 7, "square": 0})
    records.write(path, record)
    runs = made(monkeypatch, path)["runs"]
    assert [(run["number"], run["square"]) for run in runs] == [(2, 3), (1, 1), (3, 9)]


def test_a_record_of_other_settings_is_left_alone(maker, monkeypatch, tmp_path, capsys):
    path = tmp_path / "squares.json"
    before = made(monkeypatch, path)
    maker.fields = lambda: {"power": 3}
    with pytest.raises(SystemExit):
        made(monkeypatch, path)
    assert "squares.json has other power: name another --record" in capsys.readouterr().err
    assert json.loads(path.read_text()) == before


SQUARES = """
CASE = ("number",)

def fields():
    return {}

def stages(runs):
    yield [(2,), (3,)]

def make(case):
    return {"number": case[0], "square": case[0] ** 2}
"""


def test_the_command_makes_runs_in_several_processes(tmp_path):
    """As it is written in its docstring, on a copy with one maker."""
    folder = tmp_path / "book" / "records" / "make"
    folder.mkdir(parents=True)
    for path in records.HERE.glob("_*.py"):
        shutil.copy(path, folder)
    (folder / "squares.py").write_text(SQUARES)
    command = [sys.executable, "-m", "book.records.make", "squares", "--jobs", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, env=environment)
    record = json.loads((folder.parent / "squares.json").read_text())
    assert sorted(run["square"] for run in record["runs"]) == [4, 9]


WORKS = """
import os, time
from book.records.make._workers import workers

if __name__ == "__main__":
    pool = workers(1)
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 60).result()
"""


@pytest.mark.skipif(not os.path.exists("/proc"), reason="it looks for the worker in /proc")
def test_a_killed_run_leaves_no_worker_behind(tmp_path):
    script = tmp_path / "works.py"
    script.write_text(WORKS)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    ) as main:
        worker = int(main.stdout.readline())
        os.kill(worker, 0)  # it is there
        main.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 90
    while _is_there(worker) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _is_there(worker)


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{process}/stat", encoding="utf-8") as found:
        # One that nobody has waited for has ended too
        return found.read().rsplit(")", 1)[1].split()[0] != "Z"
