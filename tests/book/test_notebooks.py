"""What each stored notebook must be, read without running it: chapters, solutions and exercises."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from building import ROOT, pages
from samples import displayed, printed, sound, source, with_output, written

from minigrad.course import check

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
notebooks = pytest.importorskip("book._make.notebooks", reason="nbclient is not installed (as nbformat)")
site = pytest.importorskip("book._make.site", reason="as nbclient")

pytestmark = pytest.mark.no_arrays

FOLDERS = ("book", "solutions", "exercises")
PATHS = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.ipynb"))]


def read(path: Path) -> Any:
    """A notebook, unchanged, as nbformat 4."""
    return nbformat.read(path, as_version=4)


# --- The rules: each yields what it finds wrong in a notebook ---------------------------------------------


def is_valid(notebook: Any) -> Iterator[str]:
    """It follows nbformat's schema."""
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        yield str(error)


def was_run_in_order(notebook: Any) -> Iterator[str]:
    """Its code cells were run from the first to the last, in a fresh kernel."""
    run = (cell for cell in notebook.cells if "install" not in cell.metadata.get("tags", []))
    counts = [cell.execution_count for cell in run if cell.cell_type == "code"]
    if counts != list(range(1, len(counts) + 1)):
        yield f"the cells' numbers are {counts}: run it again, whole"


def has_a_plain_kernel(notebook: Any) -> Iterator[str]:
    """It opens with the kernel that each Jupyter has."""
    name = notebook.metadata.get("kernelspec", {}).get("name")
    if name != "python3":
        yield f"its kernel is {name!r}, not 'python3'"


def says_how_to_install(notebook: Any) -> Iterator[str]:
    """A reader who has the file alone can run it."""
    first = [
        next((c.source for c in notebook.cells if c.cell_type == kind), "") for kind in ("markdown", "code")
    ]
    if not any("pip install" in source for source in first):
        yield "neither its first text nor its first code says what to pip install"


def texts(output: Any) -> Iterator[str]:
    """What an output says: text, HTML, Markdown, a traceback without its colours; no pictures."""
    if output.output_type == "error":
        yield re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(output.traceback))
    for text in [output.get("text", ""), *output.get("data", {}).values()]:
        if isinstance(text, str):
            yield re.sub(r"data:image/[\w+]+;base64,[A-Za-z0-9+/=\s]+", "", text)


PATH = re.compile(r"(?<![\w./])/(?:home|root|tmp|usr|opt|var|mnt|srv|private|Users)/\S*|\b[A-Z]:\\\w\S*")
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}")
TIME = re.compile(
    r"\b\d[\d.,]*\s?(?:ms|µs|us|ns|it/s|s/it|steps/s)\b|\b\d+\.\d+\s?(?:s|sec|seconds)\b|\b\d+:\d\d:\d\d\b|Wall time"
)


def has_quiet_outputs(notebook: Any) -> Iterator[str]:
    """Its outputs are the same for everybody: no warnings, failures, paths, addresses or times."""
    for number, cell in enumerate(cell for cell in notebook.cells if cell.cell_type == "code"):
        tags = cell.metadata.get("tags", [])
        for output in cell.outputs:
            where = f"code cell {number + 1}"
            if output.get("name") == "stderr":
                yield f"{where} writes to stderr: {output.text[:200]}"
            if output.output_type == "error" and "raises-exception" not in tags:
                yield f"{where} fails: {output.ename}: {output.evalue}"
            for text in texts(output):
                for what, pattern in (("a path", PATH), ("an address", ADDRESS), ("a time", TIME)):
                    if (found := pattern.search(text)) and "nbval-ignore-output" not in tags:
                        yield f"{where} shows {what}: {found.group()}"
                if str(ROOT) in text:
                    yield f"{where} shows the folder it was run in"


def pictures_have_words(notebook: Any) -> Iterator[str]:
    """Each picture in an output has alternative text, which a bare PNG cannot have."""
    for number, cell in enumerate(cell for cell in notebook.cells if cell.cell_type == "code"):
        for output in cell.outputs:
            data = output.get("data", {})
            if any(kind.startswith("image/") for kind in data):
                yield f"code cell {number + 1} puts out a bare picture: use minigrad.course.furniture.figures"
            for image in re.findall(r"<img\b[^>]*>", data.get("text/html", "")):
                if not re.search(r'\balt="[^"]+"', image):
                    yield f"code cell {number + 1} has a picture without alternative text"


NOT_PROSE = re.compile(
    r"```.*?```|~~~.*?~~~|`[^`]*`"  # code
    r"|\$\$.*?\$\$|\$[^$]*\$|\\begin\{(\w+\*?)\}.*?\\end\{\1\}"  # formulas
    r"|\]\([^)]*\)|<[^>]*>|https?://\S+|arXiv:\S+",  # links, HTML, addresses
    re.DOTALL,
)
NUMBER = re.compile(r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)*")


def typed_numbers(text: str) -> list[str]:
    """The numbers of three or more digits in a text: not years, sections, versions, nor what is code or formula.

    Zeros in front do not count: 0.02 has one digit.
    """
    found = NUMBER.findall(NOT_PROSE.sub(" ", text))
    long = [number for number in found if len(re.sub(r"\D", "", number).lstrip("0")) >= 3]
    return [number for number in long if number.count(".") < 2 and not re.fullmatch(r"(?:19|20)\d\d", number)]


def claimed(notebook: Any) -> set[float]:
    """The numbers in its hidden cells of claims, which are wrong where the text is."""
    trees = [ast.parse(cell.source) for cell in notebook.cells if "claims" in cell.metadata.get("tags", [])]
    return {
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float)
    }


def numbers_come_from_cells(notebook: Any) -> Iterator[str]:
    """No number of three or more digits is typed into the text, unless a cell of claims holds it or the metadata says
    why it is there."""
    held = claimed(notebook)
    allowed = notebook.metadata.get("course", {}).get("typed_numbers", {})
    found = [n for cell in notebook.cells if cell.cell_type == "markdown" for n in typed_numbers(cell.source)]
    for number in dict.fromkeys(found):
        if not allowed.get(number) and float(number.replace(",", "")) not in held:
            yield (
                f"{number} is typed: let a cell print it, assert it in a cell of claims, or give the reason in "
                "course.typed_numbers"
            )
    for number in allowed:
        if number not in found:
            yield f"course.typed_numbers lists {number}, which the text does not have"


def calls_checks_that_exist(notebook: Any) -> Iterator[str]:
    """Each `check.NAME` in its code is there."""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        for node in ast.walk(ast.parse(cell.source)):
            called = isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "check"
            if called and not hasattr(check, node.attr):
                yield f"there is no check.{node.attr}"


def quotes_the_library_as_it_is(notebook: Any) -> Iterator[str]:
    """Each listing of `show` is still the library's source."""
    yield from notebooks.stale(notebook)


LINKS = re.compile(r"\[[^\]]*\]\([^)]*\.ipynb\)")
NUMBERED = re.compile(r"(?<!\d{4}, )(?<!\d{4}\), )\b[Cc]hapters? \d")  # but of a book that is cited


def names_chapters_by_links(notebook: Any) -> Iterator[str]:
    """A chapter's number stands in a link's words alone, where `make map` writes it anew; code has the name."""
    for cell in notebook.cells:
        for found in NUMBERED.finditer(LINKS.sub("", cell.source)):
            yield f"{found[0]!r} in cell {cell.id}: write a link, [chapter 8](many_heads.ipynb), in code `many_heads`"


def waits_for_answers(notebook: Any) -> Iterator[str]:
    """Each check says that nobody has attempted its exercise: given code that runs to its end would be judged."""
    for cell in notebook.cells:
        if "check" not in cell.metadata.get("tags", []):
            continue
        if "not attempted yet" not in " ".join(text for output in cell.outputs for text in texts(output)):
            yield f"{cell.source} judges what the learner is given: let the solution make what its cell needs"


Rule = Callable[[Any], Iterator[str]]
EVERYWHERE: list[Rule] = [
    is_valid,
    was_run_in_order,
    has_a_plain_kernel,
    says_how_to_install,
    has_quiet_outputs,
    pictures_have_words,
    calls_checks_that_exist,
    quotes_the_library_as_it_is,
    names_chapters_by_links,
]
IN_CHAPTERS: list[Rule] = [numbers_come_from_cells]
IN_EXERCISES: list[Rule] = [waits_for_answers]
NAMED = {rule.__name__: rule for rule in EVERYWHERE + IN_CHAPTERS + IN_EXERCISES}


# --- The notebooks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        pytest.param(path, rule, id=f"{path.parent.name}/{path.stem}-{rule.__name__}")
        for path in PATHS
        for rule in EVERYWHERE + {"book": IN_CHAPTERS, "exercises": IN_EXERCISES}.get(path.parent.name, [])
    ],
)
def test_notebook(path: Path, rule: Rule):
    notebook, solution = read(path), ROOT / "solutions" / path.name
    if path.parent.name == "exercises" and notebooks.holds_answers(notebook, read(solution)):
        pytest.skip(f"{path.name} holds answers: a learner's, not the course's")
    complaints = list(rule(notebook))
    assert not complaints, "\n".join(complaints)


def test_exercises_are_in_step_with_solutions(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert notebooks.main(["exercises", "--check"]) == 0, capsys.readouterr().out + "run `make exercises`"


@pytest.mark.parametrize("path", [path for path in PATHS if path.parent.name != "exercises"], ids=str)
def test_needs_are_those_of_todays_sources(path: Path):
    notebook, name = read(path), path.relative_to(ROOT).as_posix()
    site.page_cells(notebook, name)
    words = f"needs were recorded of other sources than those of today: {site.to_note(name)}"
    assert notebook.metadata.get("needs_of") == site.stamp(notebook), words


def test_each_chapter_is_in_the_table_of_contents():
    assert {f"book/{path.stem}" for path in (ROOT / "book").glob("*.ipynb")} <= set(pages())


# --- The rules find what they forbid -----------------------------------------------------------------------


BROKEN: list[tuple[Rule, Callable[[Any], None]]] = [
    (is_valid, lambda n: n.cells[0].update(colour="red")),
    (was_run_in_order, lambda n: n.cells[1].update(execution_count=2)),
    (was_run_in_order, lambda n: n.cells[1].update(execution_count=None)),
    (has_a_plain_kernel, lambda n: n.metadata.update(kernelspec={"name": "my-env", "display_name": "mine"})),
    (says_how_to_install, lambda n: n.cells[0].update(source="# Title")),
    (names_chapters_by_links, written("See chapter 8.")),
    (names_chapters_by_links, lambda n: n.cells[1].update(source="x = 1  # chapters 3 and 4")),
    (has_quiet_outputs, with_output(output_type="stream", name="stderr", text="warning")),
    (has_quiet_outputs, with_output(output_type="error", ename="ValueError", evalue="no", traceback=[])),
    (has_quiet_outputs, printed("saved to /home/someone/run")),
    (has_quiet_outputs, printed(f"in {ROOT}/book")),
    (has_quiet_outputs, printed("<Thing object at 0x7f3a1c2b9d10>")),
    (has_quiet_outputs, printed("step 10, 12.5 ms")),
    (has_quiet_outputs, printed("took 3.1 s")),
    (pictures_have_words, displayed("image/png", "aGk=")),
    (pictures_have_words, displayed("text/html", '<img src="data:image/png;base64,aGk=">')),
    (pictures_have_words, displayed("text/html", '<img alt="" src="data:image/png;base64,aGk=">')),
    (calls_checks_that_exist, source("check.sofmtax(softmax)")),
    (
        quotes_the_library_as_it_is,
        displayed(
            "text/markdown", "x", **{"text/markdown": {"source": {"module": "minigrad.ops", "name": "gone"}}}
        ),
    ),
    (numbers_come_from_cells, written("It has 768 entries.")),
    (numbers_come_from_cells, written("It has 109,482,240 parameters.")),
    (numbers_come_from_cells, written("The loss is 4.81.")),
    (numbers_come_from_cells, written("BERT has 110M parameters.")),
    (numbers_come_from_cells, lambda n: n.metadata.course.update(typed_numbers={"999": "not there"})),
    (waits_for_answers, lambda n: n.cells[1].metadata.update(tags=["check"])),
]


def test_the_rules_are_content_with_a_sound_notebook():
    assert [complaint for rule in NAMED.values() for complaint in rule(sound())] == []


@pytest.mark.parametrize(
    ("rule", "spoil"), BROKEN, ids=[f"{rule.__name__}-{i}" for i, (rule, _) in enumerate(BROKEN)]
)
def test_a_rule_finds(rule: Rule, spoil: Callable[[Any], None]):
    notebook = sound()
    spoil(notebook)
    assert list(rule(notebook))


def test_each_rule_is_shown_to_find():
    assert {rule.__name__ for rule, _ in BROKEN} == set(NAMED)


def test_typed_numbers_may_have_a_reason():
    notebook = sound()
    written("BERT-Base is 768 wide.")(notebook)
    notebook.metadata.course.typed_numbers = {"768": "the size that the reader knows BERT-Base by"}
    assert list(numbers_come_from_cells(notebook)) == []


def test_a_number_may_be_asserted_in_a_hidden_cell_of_claims():
    notebook = sound()
    written("It rises to 4.81 nats, in 1,024 steps.")(notebook)
    notebook.cells[1].source = "assert abs(loss - 4.81) < 0.01 and steps == 1024"
    assert len(list(numbers_come_from_cells(notebook))) == 2
    notebook.cells[1].metadata.tags = ["claims", "remove-cell"]
    assert list(numbers_come_from_cells(notebook)) == []
