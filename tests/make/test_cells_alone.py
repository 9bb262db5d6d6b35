"""What the tool that runs cells alone writes into a notebook."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from book._make.notebooks import read, write

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
import cells_alone


@pytest.fixture(autouse=True)
def noted(monkeypatch):
    """The folders of the notebooks whose needs were recorded; none is run."""
    folders = []
    monkeypatch.setattr(cells_alone, "note_needs", lambda notebook, folder: folders.append(folder))
    return folders


@pytest.mark.parametrize(
    ("tags", "seconds", "expected"),
    [
        ([], 2.1, ["native=heavy"]),
        (["predict"], 2.1, ["predict", "native=heavy"]),
        (["native=heavy", "predict"], 1.9, ["predict"]),
        (["native=heavy"], 1.9, None),
        (["native=heavy"], 2.1, ["native=heavy"]),
        (["training"], 60.0, ["training"]),
        (["training", "page"], 60.0, ["training", "page"]),
        (["native=time"], 60.0, ["native=time"]),
        (["native=slow"], 1.9, ["native=slow"]),
    ],
)
def test_cells_that_take_long_have_the_tag_and_no_others(tmp_path, tags, seconds, expected):
    metadata = {"tags": tags} if tags else {}
    path = tmp_path / "page.ipynb"
    write(path, new_notebook(cells=[new_code_cell("f()", id="a", metadata=metadata)]))
    cells_alone.write_down(path, {"a": {"before": [0, 3], "after": [0, 3], "seconds": seconds}})
    (cell,) = read(path).cells
    assert cell.metadata.get("tags") == expected


@pytest.mark.parametrize(("after", "expected"), [([0, 5], {"random": [0, 3]}), ([0, 3], None)])
def test_a_cell_that_draws_says_where_random_numbers_stood(tmp_path, after, expected):
    path = tmp_path / "page.ipynb"
    metadata = {"course": {"random": [0, 1]}}
    write(path, new_notebook(cells=[new_code_cell("f()", id="a", metadata=metadata)]))
    cells_alone.write_down(path, {"a": {"before": [0, 3], "after": after, "seconds": 0.1}})
    assert read(path).cells[0].metadata.get("course") == expected


@pytest.mark.parametrize(
    ("change", "recorded"),
    [({}, False), ({"source": "g()"}, True), ({"metadata": {"tags": ["native=heavy"]}}, True)],
)
def test_needs_of_other_sources_are_recorded(tmp_path, noted, change, recorded):
    path = tmp_path / "page.ipynb"
    page = new_notebook(cells=[new_code_cell("import a\nf()", id="a")])
    page.metadata["needs_of"] = cells_alone.stamp(page)
    page.cells[0].update(change)
    write(path, page)
    cells_alone.write_down(path, {})
    assert noted == [tmp_path] * recorded
