"""What a chapter must be, beyond a sound notebook: its budget, its terms and letters, its measurements."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from building import ROOT
from samples import nbformat, printed, sound, source, written

from book._make import budget, reading_time
from minigrad.course import contents

pytestmark = pytest.mark.no_arrays

CHAPTERS = [path for chapter in contents.CHAPTERS if (path := ROOT / f"{chapter.page}.ipynb").exists()]
HIDDEN = reading_time.HIDDEN
MOST_ERRATA, ERRATA_PAGE = 4, "# A. "  # the page that runs all others


def read(path: Path) -> Any:
    """A notebook, unchanged, as nbformat 4."""
    return nbformat.read(path, as_version=4)


def tags(cell: Any) -> set[str]:
    """A cell's tags."""
    return set(cell.metadata.get("tags", []))


def code_cells(notebook: Any) -> Iterator[tuple[str, Any, ast.Module]]:
    """The code cells in order: what to call each, the cell, its tree."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and not cell.source.startswith("%")]
    for number, cell in enumerate(cells, 1):
        yield f"code cell {number}", cell, ast.parse(cell.source)


def prose(notebook: Any) -> str:
    """The text without code blocks, inline code, formulas and where links go."""
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return re.sub(r"(?<=\])\([^)]*\)|```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$", " ", text, flags=re.DOTALL)


# --- Code and what it prints --------------------------------------------------------------------------------


WIDEST, LONGEST = 78, 15


def code_fits_the_page(notebook: Any) -> Iterator[str]:
    """No line of a visible cell is wider than a page at 1280 pixels has room for, and no such cell is long."""
    for where, cell, _ in code_cells(notebook):
        if tags(cell) & HIDDEN - {"setup"}:
            continue
        lines = [line for line in cell.source.split("\n") if line.strip()]
        if (widest := max(map(len, lines), default=0)) > WIDEST:
            yield f"{where} has a line of {widest} columns; a page has {WIDEST}"
        if "setup" in tags(cell):
            continue
        if len(lines) > LONGEST and not notebook.metadata.course.get("over_budget"):
            yield f"{where} has {len(lines)} lines; {LONGEST} can be read at one go"


def imports_once(notebook: Any) -> Iterator[str]:
    """Its imports stand together in one cell tagged `setup`, which the page folds, and which is not the first thing.

    A name that a later cell gives another meaning may be imported there.
    """
    cells = [cell for cell in notebook.cells if "install" not in tags(cell)]
    if cells and "setup" in tags(cells[0]):
        yield "it begins with a cell tagged setup"
    for where, cell, tree in code_cells(notebook):
        imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        noted = [
            node
            for node in imports
            if "#" in (ast.get_source_segment(cell.source, node) or "")
            or "#" in cell.source.split("\n")[node.end_lineno - 1]
        ]
        if "setup" in tags(cell):
            if any(output.output_type != "error" for output in cell.outputs):
                yield f"{where} is tagged setup, and puts something out"
        elif len(imports) > len(noted) and "install" not in tags(cell):
            yield f"{where} imports: that belongs into the cell tagged setup"


BOXES = ("How this was measured", "Going further", "What changed since")
BOX = re.compile(
    r"^<details>\n<summary>([^\n<]+)</summary>\n\n(.+?)\n\n</details>$", re.MULTILINE | re.DOTALL
)


def boxes_are_whole(notebook: Any) -> Iterator[str]:
    """What is folded is in one cell, in the form that site, Jupyter and paper show alike, under one of its names."""
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        found = BOX.findall(cell.source)
        if not len(found) == cell.source.count("<details") == cell.source.count("</details"):
            yield f"{cell.id}: a box is <details>, its <summary>, an empty line, text, an empty line, </details>"
        if "{dropdown}" in cell.source:
            yield f"{cell.id}: Jupyter does not know {{dropdown}}; a box is <details>"
        for title, _ in found:
            if not title.startswith(BOXES):
                yield f"{cell.id}: a box is called {title!r}; its name begins with one of {', '.join(BOXES)}"


SHOWN = {"show", "figure", "player", "table", "attention_map"}


def calls(node: ast.AST, names: set[str]) -> int:
    """How many calls of these names there are, not counting those inside another one, or inside a function."""
    if isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
        return 0
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in names:
        return 1
    return sum(calls(child, names) for child in ast.iter_child_nodes(node))


def shows_what_it_makes(notebook: Any) -> Iterator[str]:
    """A cell has a display for each `show(`, `figure(`, `player(`, `table(`: only a cell's last line is displayed."""
    for where, cell, tree in code_cells(notebook):
        shown = sum(output.output_type in ("display_data", "execute_result") for output in cell.outputs)
        if (made := calls(tree, SHOWN)) > shown:
            yield f"{where} makes {made} tables, figures or listings and shows {shown}"


def prints_what_it_computed(notebook: Any) -> Iterator[str]:
    """No cell prints a sentence that was typed into it."""
    for where, _, tree in code_cells(notebook):
        for node in ast.walk(tree):
            typed = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print" and node.args
            if typed and all(isinstance(argument, ast.Constant) for argument in node.args):
                yield f"{where} prints what is typed: {ast.unparse(node)}"


def says_numbers(notebook: Any) -> Iterator[str]:
    """A verdict stands beside its number."""
    for where, cell, _ in code_cells(notebook):
        for output in cell.outputs:
            for line in output.get("text", "").split("\n"):
                verdict = re.search(r"\b(True|False)\b", line) and not line.lstrip().startswith("[")
                if verdict and not re.search(r"\d", re.sub(r"[A-Za-z_]\w*", "", line)):
                    yield f"{where} says {line.strip()!r} without a number"


def predictions_have_an_answer(notebook: Any) -> Iterator[str]:
    """After each "Predict" comes a code cell tagged `predict`, which the site hides until asked for."""
    asked = ""
    for cell in [*notebook.cells, None]:
        asks = cell is None or (cell.cell_type == "markdown" and "**Predict" in cell.source)
        if asks and asked:
            yield f"no code cell after {asked!r} has the tag predict"
        if asks and cell is not None:
            asked = cell.source[cell.source.index("**Predict") :][:50]
        elif cell is not None and cell.cell_type == "code" and "predict" in tags(cell):
            asked = ""


def predictions_have_answers_to_choose_from(notebook: Any) -> Iterator[str]:
    """The first cell tagged `predict` after a question has two or three answers in its metadata, and which is right."""
    asked = False
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and "**Predict" in cell.source:
            asked = True
        elif "predict" in tags(cell) and asked:
            asked = False
            choices, right = (cell.metadata.get("predict", {}).get(name) for name in ("choices", "right"))
            if not choices or len(set(choices)) not in (2, 3) or right not in range(len(choices)):
                yield f"{cell.id}: metadata `predict` need two or three choices, and which is right, from 0 on"


def waits_end_where_a_prediction_waits(notebook: Any) -> Iterator[str]:
    """A text tagged `open` stands between a prediction and the next heading or question."""
    waits = False
    for cell in notebook.cells:
        if "predict" in tags(cell):
            waits = True
        elif cell.cell_type == "markdown" and (cell.source.startswith("#") or "**Predict" in cell.source):
            waits = False
        if "open" in tags(cell) and not (waits and cell.cell_type == "markdown"):
            yield f"{cell.id}: nothing waits here that the tag `open` could end"


RECORD = re.compile(r"""stored\(["'][^"']*\.json""")


def sentences_about_records_are_held(notebook: Any) -> Iterator[str]:
    """What the text says of a stored record is asserted in a hidden cell: another record fails loudly."""
    reads = any(RECORD.search(cell.source) for _, cell, _ in code_cells(notebook))
    asserts = [
        node
        for _, cell, tree in code_cells(notebook)
        if {"claims", "remove-cell"} <= tags(cell)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert)
    ]
    if reads and not asserts:
        yield "it reads a record, and no cell tagged claims and remove-cell asserts what the text says of it"


# --- Budget and facts ---------------------------------------------------------------------------------------


def keeps_its_budget(notebook: Any) -> Iterator[str]:
    """Above the line a page is one lesson, and below it is how that was measured."""
    yield from budget.over(notebook)


def names_its_facts(notebook: Any) -> Iterator[str]:
    """Its metadata say how hard it is, what it needs and what it introduces; at most four errata are run on a page."""
    course = notebook.metadata.course
    if not 0 < len(course.get("idea", "").split()) <= budget.IDEA:
        yield f"its idea must be a sentence of at most {budget.IDEA} words, and is {course.get('idea')!r}"
    if course.get("difficulty") not in (1, 2, 3):
        yield f"difficulty must be 1, 2 or 3, and is {course.get('difficulty')}"
    names = {path.stem for path in CHAPTERS}
    if (unknown := set(course.get("needs", ["nothing said"])) - names) != set():
        yield f"it needs {sorted(unknown)}; the chapters are {sorted(names)}"
    if not isinstance(course.get("introduces"), list):
        yield "introduces must list the terms that the page defines"
    runs_all = notebook.cells[0].source.startswith(ERRATA_PAGE)
    if len(course.get("errata", [])) > MOST_ERRATA and not runs_all:
        yield f"it runs {len(course['errata'])} errata; keep the {MOST_ERRATA} most telling, the errata chapter has all"


# --- Terms and letters --------------------------------------------------------------------------------------


def defines_what_it_introduces(notebook: Any) -> Iterator[str]:
    """Each term that it introduces is bold where it is defined, and stands in the glossary."""
    bold = " | ".join(re.findall(r"\*\*(.+?)\*\*", "\n".join(c.source for c in notebook.cells))).lower()
    for term in notebook.metadata.course.get("introduces", []):
        if term.lower() not in bold:
            yield f"{term!r} is nowhere bold"
        if term.lower() not in GLOSSARY:
            yield f"{term!r} is not in the glossary"


def letters_of(formula: str) -> set[str]:
    r"""The letters of a formula: W of W_Q, d of d_k, L, sigma; not their indices, nor words in \mathrm and the like."""
    formula = re.sub(
        r"\\(?:mathrm|text|operatorname|mathbb|mathit|begin|end|mathcal)\s*\*?\s*\{[^}]*\}", " ", formula
    )
    greek = set(re.findall(r"\\(" + "|".join(GREEK) + r")(?![A-Za-z])", formula))
    plain = re.sub(r"_\{[^}]*\}|_[A-Za-z0-9]|\\[A-Za-z]+", " ", formula)
    named = re.findall(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])", plain)
    return greek | set(named)


GREEK = (
    "alpha",
    "beta",
    "gamma",
    "delta",
    "epsilon",
    "varepsilon",
    "eta",
    "theta",
    "lambda",
    "mu",
    "sigma",
    "tau",
    "kappa",
    "rho",
    "phi",
    "Phi",
)
ALWAYS = set("ijkntxyefgdRO") | {
    "delta"
}  # indices, any input and output, e, any function, differentials, ℝ, O(…)


def letters_have_one_meaning(notebook: Any) -> Iterator[str]:
    """A letter of a formula is one of symbols.md, or the metadata say what it means on this page."""
    own = notebook.metadata.course.get("letters", {})
    used: set[str] = set()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            text = re.sub(r"```.*?```|`[^`]*`", " ", cell.source, flags=re.DOTALL)
            for formula in re.findall(r"\$\$(.*?)\$\$|\$([^$]+)\$", text, re.DOTALL):
                used |= letters_of("".join(formula))
    for letter in sorted(used - SYMBOLS - ALWAYS - set(own)):
        yield f"{letter} is neither in symbols.md nor in the metadata's letters"
    for letter in sorted(set(own) - used):
        yield f"the metadata give {letter} a meaning, and no formula has it"


def glossary() -> dict[str, str]:
    """The glossary's terms, in lower case, with what it says of each."""
    text = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
    inside = text[text.index(":::{glossary}") + len(":::{glossary}\n") :]
    return {
        term.strip().lower(): said.strip()
        for terms, said in re.findall(r"((?:^\S[^\n]*\n)+)((?:    [^\n]*\n?)+)", inside, re.MULTILINE)
        for entry in terms.strip().split("\n")
        for term in names_of(entry)
    }


def names_of(entry: str) -> list[str]:
    """How a page writes an entry of the glossary: MLM and the long form; "value" for "value (attention)"."""
    found = re.fullmatch(r"(.+?) \((.+)\)", entry)
    if not found:
        return [entry]
    return [found[1], found[2]] if found[2].isupper() else [found[1]]


def everyday() -> set[str]:
    """The terms that also mean other things, which the glossary tells by a word in brackets: "value (attention)"."""
    text = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
    return {
        word.lower()
        for word, of in re.findall(r"^(\S[^(\n]*) \((.+)\)$", text, re.MULTILINE)
        if not of.isupper()
    }


def symbols() -> set[str]:
    """The letters of the first column of symbols.md."""
    text = (ROOT / "book" / "symbols.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.split("\n") if line.startswith("| $")]
    return set().union(*(letters_of(formula) for row in rows for formula in re.findall(r"\$([^$]+)\$", row)))


GLOSSARY, SYMBOLS = glossary(), symbols()

Rule = Callable[[Any], Iterator[str]]
RULES: list[Rule] = [
    code_fits_the_page,
    imports_once,
    boxes_are_whole,
    shows_what_it_makes,
    prints_what_it_computed,
    says_numbers,
    predictions_have_an_answer,
    predictions_have_answers_to_choose_from,
    waits_end_where_a_prediction_waits,
    sentences_about_records_are_held,
    keeps_its_budget,
    names_its_facts,
    defines_what_it_introduces,
    letters_have_one_meaning,
]


@pytest.mark.parametrize(
    ("path", "rule"),
    [pytest.param(path, rule, id=f"{path.stem}-{rule.__name__}") for path in CHAPTERS for rule in RULES],
)
def test_chapter(path: Path, rule: Rule):
    complaints = list(rule(read(path)))
    assert not complaints, "\n".join(complaints)


# --- The ledger of terms, over all pages --------------------------------------------------------------------


def ledger_of(notebooks: dict[str, Any]) -> Iterator[str]:
    """A term is introduced on one page; an earlier page that speaks of it lists it in `mentions`."""
    introduced: dict[str, str] = {}
    for stem, notebook in notebooks.items():
        for term in notebook.metadata.course.get("introduces", []):
            if term in introduced:
                yield f"{term!r} is introduced by {introduced[term]} and by {stem}"
            introduced[term] = stem
    order = list(notebooks)
    for stem, notebook in notebooks.items():
        text, mentions = prose(notebook), set(notebook.metadata.course.get("mentions", []))
        for term, home in introduced.items():
            early = order.index(stem) < order.index(home)
            used = re.search(rf"(?<![\w-]){re.escape(term)}s?(?![\w-])", text, re.IGNORECASE)
            if early and used and term not in mentions and term.lower() not in everyday():
                yield f"{stem} speaks of {term!r}, which {home} introduces: if its gloss is enough, add it to mentions"
        for term in sorted(mentions - set(introduced)):
            yield f"{stem} mentions {term!r}, which no page introduces"


def test_the_ledger_of_terms():
    complaints = list(ledger_of({path.stem: read(path) for path in CHAPTERS}))
    assert not complaints, "\n".join(complaints)


def test_a_glossary_term_is_introduced_by_the_chapter_that_it_names():
    """Where that chapter is written: "[Chapter 7](one_head.ipynb)." ends each entry; of two, the first one does."""
    pages = {path.stem: read(path) for path in CHAPTERS}
    missing = []
    for term, said in GLOSSARY.items():
        named = re.search(r"(?:\[Chapter|Chapters \[)[ \d]+[a-h]?\]\((\w+)\.ipynb\)", said)
        assert named, f"{term} names no chapter"
        page = pages.get(named[1])
        if page is not None and term not in [t.lower() for t in page.metadata.course.get("introduces", [])]:
            missing.append(f"{named[1]} does not introduce {term!r}")
    assert not missing, "\n".join(missing)


# --- The rules find what they forbid ------------------------------------------------------------------------


def chapter() -> Any:
    """A small chapter with which every rule is content."""
    notebook = sound()
    notebook.metadata.course.update(idea="One thing.", difficulty=1, needs=[], introduces=[])
    return notebook


def course(**values: Any) -> Callable[[Any], None]:
    """Set these in the metadata."""
    return lambda notebook: notebook.metadata.course.update(values)


def predicted(notebook: Any) -> None:
    """Ask before the code cell."""
    notebook.cells[0].source += "\n\n**Predict:** what comes?"


def asked(**answers: Any) -> Callable[[Any], None]:
    """Ask before the code cell, with these answers to choose from."""

    def change(notebook: Any) -> None:
        predicted(notebook)
        notebook.cells[1].metadata.update(tags=["predict"], predict=answers)

    return change


BROKEN: list[tuple[Rule, Callable[[Any], None]]] = [
    (boxes_are_whole, written("\n\n<details>\n<summary>Going further</summary>\ntext\n</details>")),
    (boxes_are_whole, written("\n\n<details>\n<summary>Going further</summary>\n\ntext\n")),
    (boxes_are_whole, written("\n\n<details>\n<summary>More</summary>\n\ntext\n\n</details>")),
    (boxes_are_whole, written("\n\n:::{dropdown} Going further\ntext\n:::")),
    (code_fits_the_page, source("x = 1" + " + 1" * 19)),
    (code_fits_the_page, source("x = 1\n" * 16)),
    (shows_what_it_makes, source("show(f)\nprint(1)")),
    (shows_what_it_makes, source("if x:\n    table(a, b)")),
    (prints_what_it_computed, source("print('the gradient is wrong')")),
    (says_numbers, printed("mean gradient above ten: True\n")),
    (says_numbers, printed("accuracy of W2 over the limit: False")),
    (imports_once, source("import json\nprint(1)")),
    (imports_once, lambda n: n.cells[1].metadata.update(tags=["setup"])),
    (
        imports_once,
        lambda n: (n.cells.pop(0), n.cells[0].update(outputs=[]), n.cells[0].metadata.update(tags=["setup"])),
    ),
    (predictions_have_an_answer, predicted),
    (predictions_have_answers_to_choose_from, asked()),
    (predictions_have_answers_to_choose_from, asked(choices=["one"], right=0)),
    (predictions_have_answers_to_choose_from, asked(choices=["one", "one"], right=0)),
    (predictions_have_answers_to_choose_from, asked(choices=["one", "two"], right=2)),
    (waits_end_where_a_prediction_waits, lambda n: n.cells[0].metadata.update(tags=["open"])),
    (waits_end_where_a_prediction_waits, lambda n: n.cells[1].metadata.update(tags=["predict", "open"])),
    (sentences_about_records_are_held, source("r = json.loads(stored('machine.json').read_text())")),
    (keeps_its_budget, written("word " * 1801)),
    (names_its_facts, course(idea="")),
    (names_its_facts, course(idea="word " * 26)),
    (names_its_facts, course(difficulty=None)),
    (names_its_facts, course(needs=["alchemy"])),
    (names_its_facts, course(errata=[1, 2, 3, 4, 5])),
    (names_its_facts, course(introduces="stride")),
    (defines_what_it_introduces, course(introduces=["backend"])),
    (defines_what_it_introduces, lambda n: (written("A **zorp**.")(n), course(introduces=["zorp"])(n))),
    (letters_have_one_meaning, written("Let $c$ be.")),
    (letters_have_one_meaning, written(r"Let $\kappa$ be.")),
    (letters_have_one_meaning, course(letters={"c": "a constant"})),
]


def test_the_rules_are_content_with_a_sound_chapter():
    assert [complaint for rule in RULES for complaint in rule(chapter())] == []


@pytest.mark.parametrize(
    ("rule", "spoil"), BROKEN, ids=[f"{rule.__name__}-{i}" for i, (rule, _) in enumerate(BROKEN)]
)
def test_a_rule_finds(rule: Rule, spoil: Callable[[Any], None]):
    notebook = chapter()
    spoil(notebook)
    assert list(rule(notebook))


def test_the_errata_chapter_may_run_more_than_others():
    notebook = chapter()
    course(errata=[1, 2, 3, 4, 5])(notebook)
    assert len(list(names_its_facts(notebook))) == 1
    notebook.cells[0].source = "# A. The sources' errata"
    assert list(names_its_facts(notebook)) == []


def test_each_rule_is_shown_to_find():
    assert {rule for rule, _ in BROKEN} == set(RULES)


def test_the_ledger_finds_a_second_definition_and_an_early_use():
    first, second = chapter(), chapter()
    course(introduces=["stride"])(first)
    course(introduces=["stride"])(second)
    assert list(ledger_of({"01_a": first, "02_b": second}))
    course(introduces=[])(first)
    written("A stride.")(first)
    assert list(ledger_of({"01_a": first, "02_b": second}))
    course(mentions=["stride"])(first)
    assert list(ledger_of({"01_a": first, "02_b": second})) == []


def test_letters_of_a_formula():
    assert letters_of(
        r"Q K^\top / \sqrt{d_k}, A = \mathrm{softmax}(S), W_Q \in \mathbb{R}^{L \times d_{model}}"
    ) == {*"QKdASWL"} | ({"R"} & set())
    assert letters_of(r"\theta - \eta \lambda") == {"theta", "eta", "lambda"}
