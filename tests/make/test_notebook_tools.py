"""The tools for notebooks: running them, exercises from solutions."""

from __future__ import annotations

import os
import re

import pytest

pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
pytest.importorskip("nbclient", reason="nbclient is not installed (as nbformat)")
pytest.importorskip("ipykernel", reason="ipykernel is not installed (as nbformat)")

import nbformat
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from book.make import notebooks
from book.make.site import stamp

pytestmark = pytest.mark.no_arrays


def code(source, tags=(), **more):
    return new_code_cell(source, metadata={"tags": list(tags)} if tags else {}, **more)


def notebook(*cells, **metadata):
    return new_notebook(cells=list(cells), metadata=metadata)


def lines(*texts):
    return "\n".join(texts)


SOLVED = lines(
    "def double(x):",
    '    """Twice x."""',
    "    ### BEGIN SOLUTION",
    "    y = x + x",
    "    return y",
    "    ### END SOLUTION",
)
STRIPPED = lines("def double(x):", '    """Twice x."""', "    ...")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty repository as the working directory."""
    for folder in ("book", "solutions"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_kernel(monkeypatch):
    """Notebooks are stored as they are: what is tested is not the run."""
    runs = []
    monkeypatch.setattr(notebooks, "run", lambda notebook, folder: runs.append(folder))
    return runs


# --- A run -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A notebook after its run, and the folder that it ran in."""
    cells = [
        code("import os, sys"),
        code("for i in range(50):\n    print(i, flush=True)"),
        code("print(os.path.realpath('.'), os.environ['MINIGRAD_PROGRESS'])"),
        code("print(1, flush=True)\nprint(2, file=sys.stderr, flush=True)\nprint(3)"),
        code("1 / 0", tags=["raises-exception"]),
        new_markdown_cell("text"),
        code(lines(
            "from bert_course.check.exercise import exercise",
            "@exercise(1, 1, 'modules', cases=lambda rng: [('a number', 1.0)], mistakes='', hints='')",
            "def task(x): return 2 * x",
        )),
        code("def double(x):\n    y = x + nothing\n    return y\ntask(double)"),
    ]  # fmt: skip
    folder = tmp_path_factory.mktemp("ran")
    made = notebook(*cells)
    made.metadata["kernelspec"] = {"name": "of my own", "display_name": "My own", "language": "python"}
    before = os.environ.get("MINIGRAD_PROGRESS")
    notebooks.run(made, folder)
    assert os.environ.get("MINIGRAD_PROGRESS") == before
    nbformat.validate(made)
    return made, folder


def test_a_run_in_its_folder_stores_what_cells_put_out_and_nothing_that_differs_between_machines(ran):
    made, folder = ran
    assert [cell.execution_count for cell in made.cells if cell.cell_type == "code"] == list(range(1, 8))
    assert [one.text for one in made.cells[1].outputs] == ["".join(f"{i}\n" for i in range(50))]
    assert [one.name for one in made.cells[3].outputs] == ["stdout", "stderr", "stdout"]
    assert made.cells[4].outputs[0].ename == "ZeroDivisionError"
    assert made.metadata == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert all("execution" not in cell.metadata for cell in made.cells)
    assert made.cells[2].outputs[0].text == f"{os.path.realpath(folder)} off\n"
    assert list(folder.iterdir()) == []


def test_a_run_notes_where_random_numbers_stood_before_a_cell_that_draws(tmp_path):
    draw = "random.generator().random()"
    made = notebook(
        code("from minigrad import random"),
        code(draw),
        code("1"),
        code(draw),
        code(f"random.manual_seed(3)\n{draw}"),
        code(draw),
    )
    made.cells[2].metadata["course"] = {"random": [7, 7], "needs": []}  # of a run before
    notebooks.run(made, tmp_path)
    noted = [cell.metadata.get("course") for cell in made.cells]
    assert noted == [
        None,
        {"random": [0, 0]},
        {"needs": []},
        {"random": [0, 1]},
        {"random": [0, 2]},
        {"random": [3, 1]},
    ]


def test_a_check_in_a_notebook_names_the_line_of_an_error(ran):
    made, _ = ran
    said = " ".join(made.cells[7].outputs[0].data["text/plain"].split())
    assert "it raised NameError: name 'nothing' is not defined. The line is: y = x + nothing" in said


# --- Exercises -------------------------------------------------------------------------------------------


def stripped(*texts):
    return notebooks.make_exercise(notebook(code(lines(*texts)))).cells[0].source


def test_each_solution_of_a_cell_becomes_three_dots_as_deep_as_it_stood():
    source = stripped(
        "class Layer:",
        "    def forward(self, x):",
        "        if x is None:",
        "            ### BEGIN SOLUTION",
        "            return 0",
        "            ### END SOLUTION",
        "        for _ in range(3):",
        "\t### BEGIN SOLUTION".expandtabs(12),
        "            x = x + 1",
        "",
        "            x = x * 2",
        "\t### END SOLUTION".expandtabs(12),
        "        return x",
        "",
        "### BEGIN SOLUTION",
        "Layer()",
        "### END SOLUTION",
    )
    assert source == lines(
        "class Layer:",
        "    def forward(self, x):",
        "        if x is None:",
        "            ...",
        "        for _ in range(3):",
        "            ...",
        "        return x",
        "",
        "...",
    )
    compile(source, "exercise", "exec")


@pytest.mark.parametrize(
    "source", ["", "x = 1", "x = 1\n", "a\n\n\nb", "'a\\fb'", "text = '''a\u2028b\x0c'''\r"]
)
def test_a_cell_without_marks_is_kept_to_the_letter(source):
    assert stripped(source) == source


B, E = "### BEGIN SOLUTION", "### END SOLUTION"


@pytest.mark.parametrize(
    ("marks", "words"),
    [
        ([B, B, E, E], f"{B} inside a solution"),
        ([B, E, E], f"{E} without a {B}"),
        ([B, E, B], f"{B} without an {E}"),
        (["x = 1  ### BEGIN SOLUTION", "y = 2  ### END SOLUTION"], "a mark stands alone on its line"),
        (["### begin solution", "### end solution"], "a mark stands alone on its line"),
        ([B, "x = 1", "### END SOLUTION (long)"], "a mark stands alone on its line"),
    ],
)
def test_marks_that_do_not_pair_are_named(marks, words):
    """Else the solution would stand in the exercise."""
    with pytest.raises(ValueError, match=re.escape(words)):
        stripped(*marks)


def test_cells_tagged_solution_are_left_out():
    solution = notebook(
        code("1"),
        code("2", tags=["solution"]),
        new_markdown_cell("3", metadata={"tags": ["solution", "more"]}),
        new_markdown_cell("4", metadata={"tags": ["solutions"]}),
        code("5", tags=["raises-exception"]),
        code("6", tags=["training"]),
    )
    exercise = notebooks.make_exercise(solution)
    assert [cell.source for cell in exercise.cells] == ["1", "4", "5", "6"]
    assert exercise.cells[2].metadata.tags == ["raises-exception"]
    assert exercise.cells[3].metadata.tags == ["training", "nbval-skip"]  # the solution trains it for nbval


def test_an_exercise_keeps_ids_and_text_and_has_no_outputs():
    output = new_output("stream", name="stdout", text="the solution")
    text = new_markdown_cell(f"{B}\nis not code\n{E}")
    solution = notebook(code(SOLVED, outputs=[output], execution_count=4), text, course={"needs": {}})
    before = nbformat.writes(solution)
    exercise = notebooks.make_exercise(solution)
    assert [cell.id for cell in exercise.cells] == [cell.id for cell in solution.cells]
    assert exercise.cells[0].outputs == []
    assert exercise.cells[0].execution_count is None
    assert exercise.cells[1].source == text.source
    made_with = exercise.metadata.pop("made_with")
    assert exercise.metadata == solution.metadata
    assert made_with == notebooks.fingerprint(exercise)
    nbformat.validate(exercise)
    exercise.cells[1].source = "changed"
    exercise.metadata["course"]["needs"]["A2"] = "changed"
    assert nbformat.writes(solution) == before  # the solution is left as it was


def test_an_answer_needs_what_its_learner_may_read():
    check = "check.double(double)"
    solution = notebook(
        *(
            code(source, tags, id=name)
            for name, source, tags in [
                ("imports", "import math", ()),
                ("demo", "print(1)", ()),
                ("first", SOLVED, ()),
                ("check", check, ()),
                ("four", "four = double(2)", ()),
                ("eight", "eight = 2 * four", ()),
                ("file", "text = read()", ["native=files"]),
                ("given", "def given(): pass", ()),
                ("second", SOLVED, ()),
                ("check2", check, ()),
                ("last", "last = 1", ()),
            ]
        ),
        needs_of="of the solution",
    )
    needs = {"check": "first", "four": "first", "eight": "four", "second": "file first"}
    for cell in solution.cells:
        cell.metadata["course"] = {"needs": needs.get(cell.id, "")}
    exercise = notebooks.make_exercise(solution)
    assert {cell.id: said for cell in exercise.cells if (said := cell.metadata.course.needs)} == {
        **needs,
        "first": "imports",
        "second": "file first imports given",
    }
    assert exercise.cells[2].metadata.course.exercise == "double"
    assert exercise.metadata["needs_of"] == stamp(exercise)


# --- The command line ------------------------------------------------------------------------------------


def test_run_stores_outputs_and_needs_and_leaves_a_notebook_that_fails_as_it_was(root, capsys):
    good, bad = root / "book" / "01.ipynb", root / "book" / "02.ipynb"
    notebooks.write(good, notebook(code("x = 1", id="a"), code("open('01.ipynb') and x + 1", id="b")))
    notebooks.write(bad, notebook(code("1 + 1"), code("1 / 0")))
    before = bad.read_bytes()
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        notebooks.main(["run", "book/01.ipynb", str(bad)])
    assert bad.read_bytes() == before
    stored = notebooks.read(good).cells
    assert stored[1].outputs[0].data["text/plain"] == "2"
    assert [cell.metadata.course.needs for cell in stored] == ["", "a"]
    assert capsys.readouterr().out == f"book/01.ipynb\n{bad}\n"


def test_exercises_are_made_run_and_checked(root, no_kernel, capsys):
    notebooks.write(root / "solutions" / "01.ipynb", notebook(code(SOLVED)))
    assert notebooks.main(["exercises", "--check"]) == 1
    assert capsys.readouterr().out == "exercises/01.ipynb: out of step\n"
    assert not (root / "exercises").exists()
    assert no_kernel == []

    assert notebooks.main(["exercises"]) == 0
    assert capsys.readouterr().out == "exercises/01.ipynb: made\n"
    assert notebooks.read(root / "exercises" / "01.ipynb").cells[0].source == STRIPPED
    assert no_kernel == [root / "exercises"]

    for arguments in (["exercises", "--check"], ["exercises"]):
        assert notebooks.main(arguments) == 0
        assert capsys.readouterr().out == "every exercise is in step with its solution\n"
    assert len(no_kernel) == 1  # what is in step is not run again


@pytest.mark.parametrize(
    "change",
    [
        lambda cell: cell.update(source=cell.source.replace("Twice", "Two times")),
        lambda cell: cell.update(id="another"),
        lambda cell: cell.metadata.update(tags=["raises-exception"]),
        lambda cell: cell.metadata.update(course={"needs": "other"}),
    ],
    ids=["source", "id", "tags", "needs"],
)
def test_an_exercise_is_out_of_step_when_its_solution_changes(change, root, no_kernel):
    path = root / "solutions" / "01.ipynb"
    notebooks.write(path, notebook(code(SOLVED)))
    notebooks.main(["exercises"])
    solution = notebooks.read(path)
    change(solution.cells[0])
    notebooks.write(path, solution)
    assert notebooks.main(["exercises", "--check"]) == 1
    assert notebooks.main(["exercises"]) == 0
    assert notebooks.main(["exercises", "--check"]) == 0


def test_an_exercise_without_a_solution_is_named_and_left(root, no_kernel, capsys):
    (root / "exercises").mkdir()
    notebooks.write(root / "exercises" / "09.ipynb", notebook())
    assert notebooks.main(["exercises", "--check"]) == 1
    assert notebooks.main(["exercises"]) == 1
    assert capsys.readouterr().out == "exercises/09.ipynb: has no solution\n" * 2
    assert (root / "exercises" / "09.ipynb").exists()


# --- Exercises that somebody has solved -------------------------------------------------------------------


@pytest.fixture
def solved(root, no_kernel, monkeypatch):
    """An exercise in exercises/ that a learner has solved there, and saved."""
    monkeypatch.delenv("CI", raising=False)
    notebooks.write(root / "solutions" / "01.ipynb", notebook(code(SOLVED), code("check.double(double)")))
    assert notebooks.main(["exercises"]) == 0
    path = root / "exercises" / "01.ipynb"
    exercise = notebooks.read(path)
    exercise.cells[0].source = STRIPPED.replace("...", "return 2 * x")
    exercise.cells[0].execution_count = 17
    exercise.cells.append(code("double(3)"))
    notebooks.write(path, exercise)
    return path


LEFT = "exercises/01.ipynb: holds answers, or was changed by hand{}: left as it is (make lab copies it)\n"


@pytest.mark.parametrize(("changed", "age"), [(False, ""), (True, ", and is of an older version")])
def test_a_solved_exercise_is_left_and_in_step_as_long_as_its_solution_is_the_same(
    changed, age, solved, root, monkeypatch, capsys
):
    if changed:
        path = root / "solutions" / "01.ipynb"
        solution = notebooks.read(path)
        solution.cells[0].source = SOLVED.replace("Twice", "Two times")
        notebooks.write(path, solution)
    before = solved.read_bytes()
    capsys.readouterr()
    for arguments in (["exercises", "--check"], ["exercises"]):
        assert notebooks.main(arguments) == changed
        assert capsys.readouterr().out == LEFT.format(age)
    assert solved.read_bytes() == before
    monkeypatch.setenv("CI", "true")  # answers are not committed
    assert notebooks.main(["exercises", "--check"]) == 1


def test_an_exercise_that_was_only_run_holds_no_answers(root, no_kernel):
    notebooks.write(root / "solutions" / "01.ipynb", notebook(code(SOLVED)))
    notebooks.main(["exercises"])
    path = root / "exercises" / "01.ipynb"
    exercise = notebooks.read(path)
    exercise.cells[0].update(execution_count=9, outputs=[new_output("stream", text="1")])
    exercise.cells[0].metadata.update(tags=[])  # as JupyterLab leaves it when somebody looked at them
    exercise.cells[0].metadata["course"] = {"needs": "", "random": [0, 1]}  # as the tools leave it
    notebooks.write(path, exercise)
    assert not notebooks.holds_answers(exercise)


def test_without_a_command_it_says_which_there_are(capsys):
    with pytest.raises(SystemExit):
        notebooks.main([])
    assert "usage:" in capsys.readouterr().err


def test_what_is_written_follows_the_schema(tmp_path):
    broken = notebook(code("1"))
    broken.cells[0].outputs = [{"output_type": "nothing"}]
    with pytest.raises(nbformat.ValidationError):
        notebooks.write(tmp_path / "broken.ipynb", broken)
    assert list(tmp_path.iterdir()) == []
