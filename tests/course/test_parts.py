"""What a learner wrote is taken over, and of the rest it is said why not."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

from bert_course import parts
from bert_course.check.exercise import EXERCISES
from bert_course.parts import MADE_WITH, PARTS, TAG, Part

ROOT = Path(__file__).parents[2]

IMPORTS = "import math\nimport numpy as np\n"
RIGHT = """
def attend(q, k, v):
    scores = q @ k.T / math.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ v
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A learner's folder, where the only part is chapter `one_head`'s head; the course's exercises are beside it."""
    monkeypatch.setattr(parts, "PARTS", (Part("one_head", "attend", ("q", "k", "v"), ""),))
    folder = tmp_path / "my-exercises"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def taken():
    """What the notebook in this folder has; said, as a learner is told."""
    found = parts.taken(Path(), {})
    found.tell()
    return found


def put(folder, *cells, made_with="1"):
    """A notebook of chapter `one_head` with these cells, tagged."""
    content = [
        {
            "cell_type": "code",
            "id": f"c{i}",
            "metadata": {"tags": [TAG]},
            "source": source.splitlines(keepends=True),
            "outputs": [],
            "execution_count": None,
        }
        for i, source in enumerate(cells)
    ]
    notebook = {"cells": content, "metadata": {MADE_WITH: made_with}, "nbformat": 4, "nbformat_minor": 5}
    folder.mkdir(exist_ok=True)
    (folder / "one_head.ipynb").write_text(json.dumps(notebook))


def test_a_function_in_a_cell_that_was_added_comes_along(folder, capsys):
    put(
        folder,
        IMPORTS,
        "def scaled(q, k):\n    return q @ k.T / math.sqrt(q.shape[-1])",
        "print(1)\n1 / 0",
        RIGHT.replace("q @ k.T / math.sqrt(q.shape[-1])", "scaled(q, k)"),
    )
    path = folder / "one_head.ipynb"
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"][1:3]:
        cell["metadata"] = {}  # as a learner adds it
    path.write_text(json.dumps(notebook))
    taken()
    assert capsys.readouterr().out == "yours: attend\n"


def test_a_right_part_is_taken_over(folder, capsys):
    put(folder, IMPORTS, RIGHT)
    work = taken()
    assert capsys.readouterr().out == "yours: attend\n"
    v = np.array([[1.0, 2.0]])
    np.testing.assert_allclose(
        work.functions["attend"](np.ones((3, 2)), np.ones((1, 2)), v), np.repeat(v, 3, axis=0)
    )


def test_a_source_in_one_string_is_read_too(folder):
    put(folder, IMPORTS, RIGHT)
    path = folder / "one_head.ipynb"
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    path.write_text(json.dumps(notebook))
    assert list(taken().functions) == ["attend"]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ((IMPORTS, "def attend(q, k, v):\n    ...\n"), "the course's; yours are not there yet: attend"),
        ((IMPORTS,), "the course's; yours are not there yet: attend"),
        ((IMPORTS, "attend = 3"), "the course's; yours are not there yet: attend"),
        ((IMPORTS, RIGHT.replace("(q, k, v)", "(q, k)")), "yours takes (q, k), and should take (q, k, v)"),
        (
            (IMPORTS, "def attend(q, k, v):\n    return soft(q @ k.T) @ v"),
            "yours uses soft, from another cell",
        ),
        ((RIGHT,), "yours uses math, np, from another cell"),
        ((IMPORTS, RIGHT.replace("q @ k.T", "k @ q.T")), "check.attend finds a mistake in yours"),
        ((IMPORTS, RIGHT.replace("@ v", "@ v)")), "begins with 'def attend(q, k, v):' fails: SyntaxError"),
        (
            (IMPORTS, RIGHT, "attend = 1 / 0"),
            "the cell that begins with 'attend = 1 / 0' fails: ZeroDivisionError",
        ),
    ],
)
def test_what_stands_in_the_way_is_said(folder, capsys, cells, words):
    put(folder, *cells)
    taken()
    assert words in capsys.readouterr().out


def test_cells_without_the_tag_are_not_run(folder):
    put(folder, IMPORTS, RIGHT, "raise RuntimeError")
    path = folder / "one_head.ipynb"
    notebook = json.loads(path.read_text())
    notebook["cells"][2]["metadata"] = {}
    path.write_text(json.dumps(notebook))
    assert taken().remarks == []


def test_an_attempt_is_not_counted(folder):
    from bert_course.check import record

    put(folder, IMPORTS, RIGHT)
    before = record.known()
    taken()
    assert record.known() == before


def test_an_older_copy_is_told(folder, capsys):
    put(folder.parent / "exercises", IMPORTS, made_with="2")
    put(folder, IMPORTS, RIGHT)
    taken()
    assert "one_head.ipynb is older than its exercise" in capsys.readouterr().out
    put(folder, IMPORTS, RIGHT, made_with="2")
    taken()
    assert "older" not in capsys.readouterr().out


@pytest.mark.parametrize("content", ["", "[]", "{", '{"cells": 3}', '{"cells": [3]}'])
def test_a_damaged_notebook_is_told(folder, capsys, content):
    (folder / "one_head.ipynb").write_text(content)
    taken()
    assert "one_head.ipynb cannot be read as a notebook" in capsys.readouterr().out


def test_the_solutions_have_every_part():
    found = parts.taken(ROOT / "solutions", {})
    assert list(found.functions) == [part.name for part in PARTS]
    for part in PARTS:
        assert tuple(inspect.signature(EXERCISES[part.name].answer).parameters) == part.parameters


def test_the_exercises_have_every_part_to_write():
    found = parts.taken(ROOT / "exercises", {})
    assert found.faults == {part.name: parts.NOT_YET for part in PARTS}
    assert found.remarks == []
    for chapter in {part.chapter for part in PARTS}:
        names = [part.name for part in PARTS if part.chapter == chapter]
        text = (ROOT / "exercises" / f"{chapter}.ipynb").read_text("utf-8")
        tagged = "".join(
            "".join(cell["source"])
            for cell in json.loads(text)["cells"]
            if TAG in cell["metadata"].get("tags", [])
        )
        assert all(f"def {name}(" in tagged for name in names)


# --- All of them ----------------------------------------------------------------------------------------


def test_what_a_learner_lacks_is_the_courses(folder, capsys):
    assert parts.all_parts(folder).attend is EXERCISES["attend"].answer
    assert capsys.readouterr().out == "the course's; yours are not there yet: attend\n"
    put(folder, IMPORTS, "def attend(q, k, v):\n    ...\n")
    assert parts.all_parts(folder).attend is EXERCISES["attend"].answer
    assert capsys.readouterr().out == "the course's; yours are not there yet: attend\n"


def test_what_a_learner_has_is_taken_from_the_folder_above(folder, capsys, monkeypatch):
    put(folder, IMPORTS, RIGHT)
    (folder / "book").mkdir()
    monkeypatch.chdir(folder / "book")
    found = parts.all_parts()
    assert found.attend is not EXERCISES["attend"].answer
    np.testing.assert_allclose(found.attend(np.ones((3, 2)), np.ones((1, 2)), np.ones((1, 2))), 1)
    assert capsys.readouterr().out == "yours: attend\n"


def test_all_parts_of_the_courses_solutions_are_there(capsys):
    found = parts.all_parts(ROOT / "solutions")
    assert capsys.readouterr().out.startswith("yours: unbroadcast, backward, adam_step")
    assert all(callable(getattr(found, part.name)) for part in PARTS)
