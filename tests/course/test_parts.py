"""`mine` takes over what a learner wrote, and says of the rest why not."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pytest

from bert_course import parts
from bert_course.check.exercise import EXERCISES
from bert_course.parts import MADE_WITH, PARTS, TAG, Part, mine

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
    mine("one_head")
    assert capsys.readouterr().out == "one_head: attend: yours\n"


def test_a_right_part_is_taken_over(folder, capsys):
    put(folder, IMPORTS, RIGHT)
    work = mine("one_head")
    assert capsys.readouterr().out == "one_head: attend: yours\n"
    v = np.array([[1.0, 2.0]])
    np.testing.assert_allclose(work.attend(np.ones((3, 2)), np.ones((1, 2)), v), np.repeat(v, 3, axis=0))


def test_a_source_in_one_string_is_read_too(folder):
    put(folder, IMPORTS, RIGHT)
    path = folder / "one_head.ipynb"
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    path.write_text(json.dumps(notebook))
    assert mine("one_head").states == {"attend": "yours"}


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ((IMPORTS, "def attend(q, k, v):\n    ...\n"), "not written yet, in one_head.ipynb"),
        ((IMPORTS,), "there is no function of this name"),
        ((IMPORTS, "attend = 3"), "there is no function of this name"),
        ((IMPORTS, RIGHT.replace("(q, k, v)", "(q, k)")), "it takes (q, k), and should take (q, k, v)"),
        ((IMPORTS, "def attend(q, k, v):\n    return soft(q @ k.T) @ v"), "it uses soft, from another cell"),
        ((RIGHT,), "it uses math, np, from another cell"),
        ((IMPORTS, RIGHT.replace("q @ k.T", "k @ q.T")), "yours, but check.attend finds a mistake in it"),
        (
            (IMPORTS, RIGHT.replace("@ v", "@ v)")),
            "begins with 'def attend(q, k, v):' fails: SyntaxError",
        ),
        (
            (IMPORTS, RIGHT, "attend = 1 / 0"),
            "the cell that begins with 'attend = 1 / 0' fails: ZeroDivisionError",
        ),
    ],
)
def test_what_stands_in_the_way_is_said(folder, capsys, cells, words):
    put(folder, *cells)
    mine("one_head")
    assert words in capsys.readouterr().out


def test_a_missing_part_can_be_named_and_says_on_its_call_that_it_is_missing(folder):
    put(folder, IMPORTS)
    attend = mine("one_head").attend
    with pytest.raises(NotImplementedError, match="attend is missing: there is no function"):
        attend(1, 2, 3)


def test_cells_without_the_tag_are_not_run(folder):
    put(folder, IMPORTS, RIGHT, "raise RuntimeError")
    path = folder / "one_head.ipynb"
    notebook = json.loads(path.read_text())
    notebook["cells"][2]["metadata"] = {}
    path.write_text(json.dumps(notebook))
    work = mine("one_head")
    assert work.said == ["attend: yours"]


def test_an_attempt_is_not_counted(folder):
    from bert_course.check import record

    put(folder, IMPORTS, RIGHT)
    before = record.known()
    mine("one_head")
    assert record.known() == before


def test_an_older_copy_is_told(folder, capsys):
    put(folder.parent / "exercises", IMPORTS, made_with="2")
    put(folder, IMPORTS, RIGHT)
    mine("one_head")
    assert "one_head.ipynb is older than its exercise" in capsys.readouterr().out
    put(folder, IMPORTS, RIGHT, made_with="2")
    mine("one_head")
    assert "older" not in capsys.readouterr().out


@pytest.mark.parametrize("content", ["", "[]", "{", '{"cells": 3}', '{"cells": [3]}'])
def test_a_damaged_notebook_is_told(folder, capsys, content):
    (folder / "one_head.ipynb").write_text(content)
    mine("one_head")
    assert "one_head.ipynb cannot be read as a notebook" in capsys.readouterr().out


def test_a_missing_notebook_is_told(folder, capsys):
    work = mine("one_head")
    assert "one_head.ipynb is not in this folder" in capsys.readouterr().out
    with pytest.raises(NotImplementedError):
        work.attend()


def test_unknown_names(folder):
    with pytest.raises(ValueError, match="there are no parts in 'mask'; there are some in one_head"):
        mine("mask")
    with pytest.raises(AttributeError, match="one_head has attend to take over, and no 'atend'"):
        mine("one_head").atend  # noqa: B018


written = sorted({part.chapter for part in PARTS if (ROOT / "solutions" / f"{part.chapter}.ipynb").exists()})


@pytest.mark.parametrize("stem", written)
def test_the_solutions_have_every_part(stem, monkeypatch):
    monkeypatch.chdir(ROOT / "solutions")
    work = mine(stem)
    assert set(work.states.values()) == {"yours"}, work.said
    for part in PARTS:
        if part.chapter == stem:
            assert tuple(inspect.signature(EXERCISES[part.name].answer).parameters) == part.parameters


@pytest.mark.parametrize("stem", written)
def test_the_exercises_have_every_part_to_write(stem, monkeypatch):
    monkeypatch.chdir(ROOT / "exercises")
    states = mine(stem).states
    assert set(states.values()) == {f"not written yet, in {stem}.ipynb"}


# --- All of them ----------------------------------------------------------------------------------------


def test_what_a_learner_lacks_is_the_courses(folder, capsys):
    assert parts.all_parts(folder).attend is EXERCISES["attend"].answer
    assert capsys.readouterr().out == "the course's: attend\n"
    put(folder, IMPORTS, "def attend(q, k, v):\n    ...\n")
    assert parts.all_parts(folder).attend is EXERCISES["attend"].answer
    assert capsys.readouterr().out == "the course's: attend\n"


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
