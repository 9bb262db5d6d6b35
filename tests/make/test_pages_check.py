"""What the tools that run cells as pages do, and each alone, write into a notebook."""

from __future__ import annotations

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from book.make import cells_alone, pages_check
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


# --- Each cell alone ---------------------------------------------------------------------------------------


@pytest.fixture
def noted(monkeypatch):
    """The folders of the notebooks whose needs were recorded; none is run."""
    folders = []
    monkeypatch.setattr(cells_alone, "note_needs", lambda notebook, folder: folders.append(folder))
    return folders


@pytest.mark.parametrize(
    ("tags", "seconds", "expected"),
    [
        ([], 2.1, ["native=heavy"]),
        (["native=heavy", "predict"], 1.9, ["predict"]),
        (["native=heavy"], 1.9, None),
        (["native=heavy"], 2.1, ["native=heavy"]),
        (["training"], 60.0, ["training"]),
        (["training", "page"], 60.0, ["training", "page"]),
        (["native=time"], 60.0, ["native=time"]),
        (["native=slow"], 1.9, ["native=slow"]),
    ],
)
def test_cells_that_take_long_have_the_tag_and_no_others(tmp_path, noted, tags, seconds, expected):
    path = of_one_cell(tmp_path / "page.ipynb", tags=tags)
    cells_alone.write_down(path, {"a": {"before": [0, 3], "after": [0, 3], "seconds": seconds}})
    (cell,) = read(path).cells
    assert cell.metadata.get("tags") == expected


@pytest.mark.parametrize(("after", "expected"), [([0, 5], {"random": [0, 3]}), ([0, 3], None)])
def test_a_cell_that_draws_says_where_random_numbers_stood(tmp_path, noted, after, expected):
    path = of_one_cell(tmp_path / "page.ipynb", course={"random": [0, 1]})
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
