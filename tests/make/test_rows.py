"""The rows of the source documents: what a page says of them is right, and where their cells stand."""

from __future__ import annotations

import pytest

pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from book._make.rows import ROWS, faults, headings, listing, place

pytestmark = pytest.mark.no_arrays

CELLS = [
    ("title", "A bank has two meanings."),
    ("opening", "print(0)"),
    ("scores", "Why?\n\n## Scores\n\n```text\n## no heading\n```\nA score is a dot product."),
    ("product", "# not a heading\nQ @ K.T"),
    ("two", "## Softmax\n\nIt divides.\n\n### By rows\n\nEach row sums to 1."),
    ("rows", "A.sum(axis=-1)"),
    ("empty", " \n"),
    ("hidden", "assert True"),
]


CODE = {"opening", "product", "rows", "hidden"}


def page(title="7. One head", **course):
    """A chapter with this title and the cells above."""
    cells = [
        (new_code_cell if name in CODE else new_markdown_cell)(source, id=name) for name, source in CELLS
    ]
    cells[0].source = f"# {title}\n\n{cells[0].source}"
    cells[-1].metadata.tags = ["claims", "remove-cell"]
    return new_notebook(cells=cells, metadata={"course": course})


def test_the_rows_are_all_there():
    expected = [
        f"{letter}{i}"
        for letter, n in zip("ABCDE", (19, 30, 13, 10, 8), strict=True)
        for i in range(1, n + 1)
    ]
    assert list(ROWS) == expected
    assert all(text.strip() == text != "" for text in ROWS.values())


@pytest.mark.parametrize("rows", [{}, {"A13": "product"}, {"A13": "scores", "C5": "scores"}])
def test_a_page_with_cells_for_its_rows_is_right(rows):
    assert list(faults(page(rows=rows))) == []


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ({"A13": "gone"}, "row A13: there is no cell 'gone'"),
        ({"A13": 4}, "row A13: there is no cell 4"),
        ({"A13": ["product"]}, "row A13: there is no cell ['product']"),
        ({"A20": "product"}, "there is no row A20"),
        ({"A13": "empty"}, "row A13: the cell empty is empty"),
        (
            {"A13": "hidden"},
            "row A13: the page does not show the cell hidden, which has the tag remove-cell",
        ),
    ],
)
def test_a_fault_is_named(rows, fault):
    assert list(faults(page(rows={"C5": "product", **rows}))) == [fault]


def test_a_list_of_rows_is_refused():
    (fault,) = faults(page(rows=["A13"]))
    assert fault.startswith("course.rows is list ['A13'], not a mapping from each row to the id of the cell")


def test_the_old_name_is_refused():
    old, missing = faults(page(claims=["A13"]))
    assert old.startswith("course.claims is called course.rows now: a mapping")
    assert missing.startswith("course.rows is missing")
    assert len(list(faults(page(claims=[], rows={})))) == 1


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("title", []),
        ("opening", []),
        ("scores", ["Scores"]),  # the text before the heading stands under the page's title
        ("product", ["Scores"]),
        ("two", ["Softmax", "By rows"]),
        ("rows", ["By rows"]),
    ],
)
def test_the_headings_of_a_cell(cell, expected):
    assert headings(page(), cell) == expected


def test_text_before_a_heading_stands_under_the_one_above():
    notebook = page()
    notebook.cells.append(new_markdown_cell("It does.\n\n## The end", id="last"))
    assert headings(notebook, "last") == ["By rows", "The end"]


def test_a_cell_that_is_not_there_has_no_headings():
    with pytest.raises(ValueError, match="there is no cell 'gone'"):
        headings(page(), "gone")


@pytest.mark.parametrize(
    ("name", "title", "cell", "expected"),
    [
        ("one_head", "7. One head", "product", "7 One head · Scores"),
        ("one_head", "7. One head", "two", "7 One head · Softmax / By rows"),
        ("one_head", "7. One head", "opening", "7 One head"),
        ("decoding", "23. Its masks", "product", "23 Its masks · Scores"),
        ("errata", "A. What is wrong", "product", "A What is wrong · Scores"),
    ],
)
def test_the_place_of_a_cell(name, title, cell, expected):
    assert place(name, page(title), cell) == expected


def test_a_page_without_a_title_has_the_name_of_its_file():
    notebook = new_notebook(cells=[new_code_cell("1", id="only")])
    assert place("one_head", notebook, "only") == "7 one_head"


def test_every_row_has_a_line():
    one = page(rows={"A13": "product", "C5": "rows"})
    other = page("8. Twelve heads", rows={"A13": "two"})
    lines = listing({"one_head": one, "many_heads": other})
    assert len(lines) == len(ROWS) + 1
    assert lines[0] == "A1   the token table, V x 768: not yet"
    assert lines[12].endswith(": 7 One head · Scores; 8 Twelve heads · Softmax / By rows")
    assert lines[list(ROWS).index("C5")].endswith(": 7 One head · By rows")
    assert lines[-1] == "2 of 80 rows have a cell"
