"""What the tool that runs cells as pages do writes into a notebook."""

from __future__ import annotations

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from book.make import pages_check
from book.make.notebooks import read, write


def of_one_cell(path, **metadata):
    """A notebook of one cell, at `path`."""
    write(path, new_notebook(cells=[new_code_cell("f()", id="a", metadata=metadata)]))
    return path


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
    path = of_one_cell(tmp_path / "page.ipynb", course=course, tags=tags)
    pages_check.write_down(path, {"a": seconds})
    (cell,) = read(path).cells
    assert dict(cell.metadata.get("course", {})) == said
    assert cell.metadata.get("tags", []) == tagged


def test_cells_that_did_not_run_keep_what_is_said(tmp_path):
    path = of_one_cell(tmp_path / "page.ipynb", course={"page_seconds": 12}, tags=["native=slow"])
    before = path.read_bytes()
    pages_check.write_down(path, {"b": 1.0})
    assert path.read_bytes() == before


def test_exercises_share_processes_and_chapters_do_not():
    exercises = [f"exercises/{i:02}" for i in range(pages_check.TOGETHER + 1)]
    pages = ["arrays", *exercises, "start"]
    found = pages_check.groups(pages)
    assert found == [["arrays"], ["start"], exercises[:-1], exercises[-1:]]
