"""Which cells answer which exercise: found after everything that Jupyter and people do to cells."""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import json

import pytest
from classes import BANKS, ROOT, filled

from bert_course.check.exercise import EXERCISES
from bert_course.grade.answers import (
    Answer,
    NotReadable,
    answers_in,
    label_cells,
    missing_names,
    needed,
    read_cells,
    sheets,
    speaks_of,
)

pytestmark = pytest.mark.numpy_only("cells are read; what they compute is the checks' business")

COURSE = sheets(ROOT / "exercises")
MINE = "def attend(q, k, v):\n    return v\n"


def notebook():
    """A learner's notebook of chapter `one_head`, and its answer cell of `attend`."""
    made = filled("one_head", {"attend": MINE})
    (cell,) = [
        one for one in made["cells"] if exercise_of(one) == "attend" and "answer" in one["metadata"]["tags"]
    ]
    return made, cell


def exercise_of(cell):
    return cell["metadata"].get("course", {}).get("exercise")


def answer(made, name="attend"):
    return answers_in(json.dumps(made).encode(), COURSE)[1][name]


# --- The course's own ------------------------------------------------------------------------------------


def test_each_check_has_its_answer_cell():
    assert sorted(name for sheet in COURSE for name in sheet.exercises) == sorted(EXERCISES)


@pytest.mark.parametrize("sheet", COURSE, ids=lambda sheet: sheet.stem)
def test_a_right_answer_finds_all_it_needs(sheet):
    """In the solutions, which stand where the answers stand."""
    solution = {
        cell.id: cell for cell in read_cells((ROOT / "solutions" / f"{sheet.stem}.ipynb").read_bytes())
    }
    answers = {piece.exercise: Answer(solution[piece.id].source) for piece in sheet.pieces if piece.exercise}
    for name in sheet.exercises:
        scope = dict.fromkeys(["__name__"])
        for piece in needed(sheet, name, answers):
            exec(compile(piece.source, piece.id, "exec"), scope)
            last = piece
        assert last.exercise == name
        assert missing_names(last.source, scope) == []
        assert callable(scope[name])


def test_an_answer_and_its_check_are_labelled():
    cells = [
        {"cell_type": "code", "source": source, "metadata": dict(metadata)}
        for source, metadata in [
            ("import numpy", {}),
            ("GAP 1", {"tags": ["mine"]}),
            ("x = 1", {}),
            ("GAP 2", {}),
            ("check.one(one)", {}),
            ("check.two(x)", {}),
            ("GAP 3", {}),
            ("check.progress(1)", {}),
        ]
    ]
    label_cells(cells, lambda cell: "GAP" in cell["source"])
    one = {"exercise": "one"}
    assert [cell["metadata"] for cell in cells] == [
        {},
        {"tags": ["mine", "answer"], "course": one},
        {},
        {"tags": ["answer"], "course": one},
        {"tags": ["check"], "course": one},
        {},
        {},
        {},
    ]


def test_a_folder_without_exercises_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no exercises: give the course's folder"):
        sheets(tmp_path)


# --- A learner's -----------------------------------------------------------------------------------------


def test_the_answer_is_the_text_of_its_cell():
    made, _ = notebook()
    sheet, answers, elsewhere = answers_in(json.dumps(made).encode(), COURSE)
    assert elsewhere == []
    assert sheet.stem == "one_head"
    assert answers["attend"] == Answer(MINE)
    assert answers["score_scale"].untouched


def test_a_source_may_be_one_text():
    made, cell = notebook()
    cell["source"] = MINE
    assert answer(made) == Answer(MINE)


def test_a_cell_is_found_by_its_metadata():
    """Older versions of the format have no ids."""
    made, _ = notebook()
    for cell in made["cells"]:
        del cell["id"]
    assert answer(made) == Answer(MINE)


def test_a_cell_is_found_by_its_id():
    made, cell = notebook()
    cell["metadata"] = {}
    assert answer(made) == Answer(MINE)


def test_an_id_of_another_chapter_is_none_of_this():
    """Ids such as one-answer are in several notebooks."""
    made = filled("attention_decoder", {})
    sheet, answers, _ = answers_in(json.dumps(made).encode(), COURSE)
    assert sheet.stem == "attention_decoder"
    assert all(one.untouched for one in answers.values())


def test_answers_to_another_chapter_are_told():
    made, _ = notebook()
    others = filled("arrays", {})["cells"]
    made["cells"] += [one for one in others if exercise_of(one) == "unbroadcast"]
    sheet, _, elsewhere = answers_in(json.dumps(made).encode(), COURSE)
    assert sheet.stem == "one_head"
    assert elsewhere == ["unbroadcast"]


def test_a_check_of_another_chapter_is_no_answer_to_it():
    made, _ = notebook()
    others = filled("arrays", {})["cells"]
    made["cells"] += [one for one in others if "check" in one["metadata"].get("tags", [])]
    assert answers_in(json.dumps(made).encode(), COURSE)[2] == []


def test_a_deleted_cell_is_told():
    made, cell = notebook()
    made["cells"].remove(cell)
    assert answer(made).source is None
    assert answer(made).problem.startswith(
        "no answer cell for attend: it was deleted, or the notebook is older than the exercise."
    )


def test_a_cell_that_was_typed_anew_is_told():
    made, cell = notebook()
    place = made["cells"].index(cell)
    made["cells"][place] = {"cell_type": "code", "id": "new", "metadata": {}, "source": [MINE]}
    words = f"no answer cell for attend: it was deleted, and cell {place + 1}, which defines attend, is another one."
    assert answer(made).problem.startswith(words)


def test_a_cell_that_is_text_now_is_told():
    made, cell = notebook()
    cell["cell_type"] = "markdown"
    assert answer(made).problem.startswith("no answer cell for attend: cell 4 is no code cell any more")


def test_a_copied_cell_is_told():
    made, cell = notebook()
    made["cells"].insert(made["cells"].index(cell), {**copy.deepcopy(cell), "id": "copied"})
    assert answer(made).problem == "2 answer cells for attend (cells 4, 5): keep the one that counts."


def test_thousands_of_cells_are_one_line():
    made, cell = notebook()
    made["cells"] += [{**cell, "id": str(number)} for number in range(5_000)]
    numbers = "4, " + ", ".join(str(len(made["cells"]) - 5_000 + place) for place in range(1, 9))
    assert answer(made).problem.startswith(f"5001 answer cells for attend (cells {numbers}, …): keep the one")


@pytest.mark.parametrize("at", [1, 0])
def test_a_split_cell_is_whole_again(at):
    """Before its last line, or before its first."""
    made, cell = notebook()
    source = f"import os\n{MINE}" if at == 0 else MINE
    lines = source.splitlines(keepends=True)
    first = {**copy.deepcopy(cell), "id": "split", "source": [lines[0].rstrip("\n")]}
    cell["source"] = lines[1:]
    made["cells"].insert(made["cells"].index(cell), first)
    assert answer(made) == Answer(source)


def test_a_cell_that_says_it_answers_another_exercise_is_told():
    """By its id it answers one, by its metadata another: the first is not graded with it."""
    made, cell = notebook()
    cell["metadata"]["course"] = {"exercise": "score_scale"}
    words = "no answer cell for attend: it was deleted, and cell 4, which defines"
    assert answer(made).problem.startswith(words)


def test_two_cells_with_the_same_id_are_told():
    made, cell = notebook()
    made["cells"].append({**copy.deepcopy(cell), "metadata": {}})
    assert answer(made).problem.startswith("2 answer cells for attend (cells 4, ")


def test_a_check_with_the_same_exercise_is_no_answer():
    made, _ = notebook()
    for cell in made["cells"]:
        if exercise_of(cell) == "attend" and "check" in cell["metadata"]["tags"]:
            cell["metadata"]["tags"].append("answer")
    assert answer(made) == Answer(MINE)


def unlabelled():
    """As Colab may save it: without ids and tags, and with metadata of its own; and the answer cell of `attend`."""
    made, cell = notebook()
    for number, one in enumerate(made["cells"]):
        one.pop("id", None)
        one["metadata"] = {"id": f"x{number}", "colab": {}}
    return made, cell


def test_cells_without_labels_are_found_by_what_they_define():
    made, _ = unlabelled()
    sheet, answers, elsewhere = answers_in(json.dumps(made).encode(), COURSE)
    assert (sheet.stem, elsewhere) == ("one_head", [])
    assert answers["attend"].source == MINE
    assert "it was found by the name that it defines" in answers["attend"].note
    assert all(one.untouched for name, one in answers.items() if name != "attend")


@pytest.mark.parametrize("sheet", COURSE, ids=lambda sheet: sheet.stem)
def test_each_answer_of_each_notebook_without_labels_is_found(sheet):
    made = filled(sheet.stem, {})
    for cell in made["cells"]:
        cell.pop("id", None)
        cell["metadata"] = {}
    found, answers, elsewhere = answers_in(json.dumps(made).encode(), COURSE)
    assert (found.stem, elsewhere) == (sheet.stem, [])
    assert all(one.untouched for one in answers.values())


def test_without_labels_two_cells_that_define_a_name_are_told():
    made, cell = unlabelled()
    made["cells"].insert(0, copy.deepcopy(cell))
    assert answer(made).problem == "2 answer cells for attend (cells 1, 5): keep the one that counts."


def test_without_labels_a_value_with_the_name_of_a_function_is_no_answer():
    made, cell = unlabelled()
    cell["source"] = f"score_scale = 3\n{MINE}"
    made["cells"].append({"cell_type": "code", "metadata": {}, "source": "attend = attend(1, 2, 3)"})
    found = answers_in(json.dumps(made).encode(), COURSE)[1]
    assert found["attend"].source == cell["source"]
    assert found["score_scale"].untouched


def test_without_labels_a_deleted_cell_is_told():
    made, cell = unlabelled()
    made["cells"].remove(cell)
    assert answer(made).problem.startswith("no answer cell for attend: it was deleted")


def test_without_labels_answers_to_another_chapter_are_told():
    made, _ = unlabelled()
    for cell in filled("arrays", {})["cells"]:
        if exercise_of(cell) == "unbroadcast":
            made["cells"].append({**cell, "metadata": {}, "id": ""})
    sheet, _, elsewhere = answers_in(json.dumps(made).encode(), COURSE)
    assert (sheet.stem, elsewhere) == ("one_head", ["unbroadcast"])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (MINE, "it has no cell of an exercise of this course"),  # a name alone makes none of it
        ("check.attend(attend)", "its cells do not say which exercise they answer, and none defines"),
    ],
)
def test_another_notebook_is_told(source, words):
    with pytest.raises(NotReadable, match=words):
        answer({"cells": [{"cell_type": "code", "source": source, "metadata": {}}]})


def test_a_notebook_of_solutions_is_told():
    content = (ROOT / "solutions" / "one_head.ipynb").read_bytes()
    with pytest.raises(NotReadable, match=r"it is a notebook of solutions/"):
        answers_in(content, COURSE)


@pytest.mark.parametrize(
    "content",
    [b"", b"null", b"[]", b"{}", b'{"cells": 1}', b"\xff\xfe", b"[" * 100_000, b'{"worksheets": []}'],
)
def test_a_file_that_is_no_notebook_is_told(content):
    with pytest.raises(NotReadable, match="this is no notebook"):
        answers_in(content, COURSE)


@pytest.mark.parametrize("odd", [1, None, [], "x", {"a": 1}, [1, 2]])
def test_cells_with_odd_contents_are_read_as_nothing(odd):
    made, _ = notebook()
    made["cells"] += [
        odd,
        {"cell_type": odd, "id": odd, "metadata": odd, "source": odd},
        {"cell_type": "code", "metadata": {"tags": odd, "course": odd}, "source": odd},
        {"cell_type": "code", "metadata": {"tags": [odd], "course": {"exercise": odd}}, "source": [odd]},
    ]
    assert answer(made) == Answer(MINE)


# --- What an answer needs --------------------------------------------------------------------------------


def sources(name, **answers):
    sheet = next(one for one in COURSE if name in one.exercises)
    return [
        piece.source
        for piece in needed(sheet, name, {one: Answer(answers.get(one, "")) for one in sheet.exercises})
    ]


def test_an_answer_gets_the_given_cells_whose_names_it_uses():
    imports, own = sources("attend", attend="def attend(q, k, v):\n    return np.exp(q)")
    assert "import math\n\nimport numpy as np" in imports
    assert own.startswith("def attend")
    assert sources("attend", attend="def attend(q, k, v): pass") == ["def attend(q, k, v): pass"]


def test_an_answer_may_use_an_earlier_one():
    attend = "def attend(q, k, v):\n    return np.exp(q)"
    *_, first, second = sources(
        "look_left", attend=attend, look_left="def look_left(n):\n    return attend(n, n, n)"
    )
    assert first == attend
    assert second.startswith("def look_left")


def test_what_a_needed_cell_needs_is_run_too():
    """look_left uses attend, and attend alone uses numpy."""
    first, *_ = sources(
        "look_left",
        attend="def attend(q, k, v):\n    return np.exp(q)",
        look_left="def look_left(n):\n    return attend(n, n, n)",
    )
    assert "import numpy as np" in first


def test_an_earlier_answer_that_is_not_used_is_not_run():
    assert sources("look_left", attend="1 / 0", look_left="def look_left(n): pass") == [
        "def look_left(n): pass"
    ]


def with_own_cells(*cells, mine, below=()):
    """What is run for `attend`, whose notebook has these cells above and below the answer's."""
    made, cell = notebook()
    cell["source"] = mine
    place = made["cells"].index(cell)

    def code(source):
        return {"cell_type": "code", "metadata": {}, "source": source}

    made["cells"][place + 1 : place + 1] = [code(source) for source in below]
    made["cells"][place:place] = [code(source) for source in cells]
    sheet, answers, _ = answers_in(json.dumps(made).encode(), COURSE)
    return [piece.source for piece in needed(sheet, "attend", answers)]


def test_a_class_in_a_cell_of_its_own_above_is_run():
    """As the exercise `differentiate` allows it."""
    mine = "def attend(q, k, v):\n    return Value(q)"
    own = "from math import exp\nclass Value(Base):\n    pass", "class Base:\n    x = exp(1)", "x = 1"
    assert with_own_cells(own[1], own[0], own[2], mine=mine) == [own[1], own[0], mine]


@pytest.mark.parametrize(
    ("above", "below", "mine"),
    [
        ("np = None", "", "def attend(q, k, v):\n    return np.exp(q)"),
        ("Value = 1", "", "Value = 2\ndef attend(q, k, v):\n    return Value"),
        ("", "class Value: pass", "def attend(q, k, v):\n    return Value"),
        ("len = max = None", "", "def attend(q, k, v):\n    return len(q)"),
        ("attend = None", "", "def attend(q, k, v):\n    return attend"),
    ],
)
def test_other_cells_of_its_own_are_not_run(above, below, mine):
    assert not {above, below} & set(with_own_cells(above, mine=mine, below=[below]))


def test_own_cells_that_are_too_long_are_not_kept():
    own = "class Value: pass\n" + "#" * 100_000
    assert with_own_cells(own, mine="def attend(q, k, v):\n    return Value") == [
        "def attend(q, k, v):\n    return Value"
    ]


@pytest.mark.parametrize("text", ["def f(:", "x = " + "-" * 90_000 + "1", "x = '\0'"])
def test_what_is_no_python_needs_nothing(text):
    assert sources("look_left", look_left=text) == [text]


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("def f(x): return x + y", ["y"]),
        ("def f(x):\n    y = 1\n    return x + y", []),
        ("import os.path as p\ndef f(x): return p.join(os, x)", ["os"]),
        ("for i in range(3):\n    z = i\ndef f(x): return z + math.pi", []),
        ("class A:\n    n = 1\n    def g(self): return A.n + B", ["B"]),
        ("try: import os\nexcept ImportError as e: print(e)\ndef f(x): return x + y", ["y"]),
        (
            "match 3:\n    case [a, *b]: print(a, b)\n    case {'c': c, **d}: print(c, d)\n    case e: print(e)",
            [],
        ),
        (
            "with open('a') as (a, b): print(a, b)\nif c := len('a'): print(c)\n[*d, g] = 'ab'\nprint(d, g)",
            [],
        ),
        ("def f(x):\n    global n\n    n = x\ndef g(): return n", []),
        ("def f(x):\n    n = x\ndef g(): return n", ["n"]),
        ("import a.b as c, d.e\nfrom g import h\nprint(c, d, h, a)", ["a"]),
    ],
)
def test_names_that_nothing_defines(source, missing):
    assert missing_names(source, {"math"}) == missing


# --- What judges -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "spoken"),
    [
        ("pool = check.pool.answer", "check.pool.answer"),
        ("pool = getattr(check, 'pool')", "getattr(check"),
        ("from bert_course.check import exercise", "bert_course"),
        ("import sys\nf = sys._getframe(1)", "_getframe"),
        ("import inspect\ninspect.stack()", "inspect"),
        ("x = error.__traceback__.tb_frame", "tb_frame"),
        ("x = frame.f_back.f_locals", "f_back"),
        ("def pool(x):\n    return x", ""),
        ("check.pool(pool)  # the check. It says yes\nframe = f_locations = 3", ""),
    ],
)
def test_what_speaks_of_the_check_or_of_frames(source, spoken):
    assert speaks_of(["x = 1", source]) == spoken


def test_no_honest_answer_speaks_of_them(monkeypatch):
    """Those of the solutions, and the right ones of all banks."""
    sources = {}
    for path in (ROOT / "solutions").glob("*.ipynb"):
        for cell in read_cells(path.read_bytes()):
            if "answer" in cell.tags:
                sources[f"{path.stem}, cell {cell.number}"] = cell.source
    monkeypatch.syspath_prepend(str(BANKS))
    for path in BANKS.glob("bank_*.py"):
        for name, answers in importlib.import_module(path.stem).RIGHT.items():
            for number, function in enumerate(answers):
                with contextlib.suppress(TypeError, OSError):  # of a partial, or of what was made from a text
                    sources[f"{name}, {number}"] = inspect.getsource(function)
    assert len(sources) > 200
    assert {name: speaks_of([source]) for name, source in sources.items() if speaks_of([source])} == {}
