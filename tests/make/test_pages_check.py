"""What the tool that runs cells as pages do writes into a notebook."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from book._make.notebooks import read, write

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
import pages_check


@pytest.mark.parametrize(
    ("course", "tags", "seconds", "said", "tagged"),
    [
        ({}, [], 12.4, {"page_seconds": 12}, []),
        ({"random": [0, 3]}, ["predict"], 12.6, {"random": [0, 3], "page_seconds": 13}, ["predict"]),
        ({"page_seconds": 12}, [], 4.0, {}, []),
        ({"page_seconds": 12, "random": [0, 3]}, [], 4.0, {"random": [0, 3]}, []),
        ({}, ["predict"], 31.0, {"page_seconds": 31}, ["predict", "native=slow"]),
        ({}, ["training", "long"], 90.4, {"page_seconds": 90}, ["training", "long"]),
    ],
)
def test_cells_that_compute_for_long_say_so(tmp_path, course, tags, seconds, said, tagged):
    path = tmp_path / "page.ipynb"
    metadata = ({"course": course} if course else {}) | ({"tags": tags} if tags else {})
    write(path, new_notebook(cells=[new_code_cell("f()", id="a", metadata=metadata)]))
    pages_check.write_down(path, {"a": seconds})
    (cell,) = read(path).cells
    assert dict(cell.metadata.get("course", {})) == said
    assert cell.metadata.get("tags", []) == tagged


def test_cells_that_did_not_run_keep_what_is_said(tmp_path):
    path = tmp_path / "page.ipynb"
    metadata = {"course": {"page_seconds": 12}, "tags": ["native=slow"]}
    write(path, new_notebook(cells=[new_code_cell("f()", id="a", metadata=metadata)]))
    before = path.read_bytes()
    pages_check.write_down(path, {"b": 1.0})
    assert path.read_bytes() == before


@pytest.mark.parametrize("tool", ["pages_check.py", "cells_alone.py"])
def test_a_tool_is_run_from_anywhere(tool, tmp_path):
    path = Path(pages_check.__file__).with_name(tool)
    done = subprocess.run([sys.executable, path, "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_exercises_share_processes_and_chapters_do_not():
    exercises = [f"exercises/{i:02}" for i in range(pages_check.TOGETHER + 1)]
    pages = ["arrays", *exercises, "start"]
    found = pages_check.groups(pages)
    assert found == [["arrays"], ["start"], exercises[:-1], exercises[-1:]]
