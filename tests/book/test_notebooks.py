"""What each stored notebook must be, read without running it: chapters, solutions and exercises.

Each rule yields what it finds wrong in a notebook. Chapters keep further ones: their budget, terms and letters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from building import ROOT, pages

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
notebooks = pytest.importorskip("book.make.notebooks", reason="nbclient is not installed (as nbformat)")
from book.make import reading_time, site  # noqa: E402

pytestmark = pytest.mark.no_arrays

FOLDERS = ("book", "solutions", "exercises")
PATHS = [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.ipynb"))]
CHAPTERS = [ROOT / f"{page}.ipynb" for page in pages() if (ROOT / f"{page}.ipynb").exists()]
HIDDEN = reading_time.HIDDEN
IDEA = 25  # words at most
MOST_ERRATA, ERRATA_PAGE = 4, "# A. "  # the page that runs all others


def read(path: Path) -> Any:
    """A notebook, unchanged, as nbformat 4."""
    return nbformat.read(path, as_version=4)


def tags(cell: Any) -> set[str]:
    """A cell's tags."""
    return set(cell.metadata.get("tags", []))


# --- The rules: each yields what it finds wrong in a notebook ---------------------------------------------


def is_valid(notebook: Any) -> Iterator[str]:
    """It follows nbformat's schema."""
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        yield str(error)


def was_run_in_order(notebook: Any) -> Iterator[str]:
    """Its code cells were run from the first to the last, in a fresh kernel."""
    run = (cell for cell in notebook.cells if "install" not in tags(cell))
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
    cells = [cell for cell in notebook.cells if "install" not in tags(cell)]
    first = [next((c.source for c in cells if c.cell_type == kind), "") for kind in ("markdown", "code")]
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
        for output in cell.outputs:
            where = f"code cell {number + 1}"
            if output.get("name") == "stderr":
                yield f"{where} writes to stderr: {output.text[:200]}"
            if output.output_type == "error" and "raises-exception" not in tags(cell):
                yield f"{where} fails: {output.ename}: {output.evalue}"
            for text in texts(output):
                for what, pattern in (("a path", PATH), ("an address", ADDRESS), ("a time", TIME)):
                    if (found := pattern.search(text)) and "nbval-ignore-output" not in tags(cell):
                        yield f"{where} shows {what}: {found.group()}"
                if str(ROOT) in text:
                    yield f"{where} shows the folder it was run in"


def pictures_have_words(notebook: Any) -> Iterator[str]:
    """Each picture in an output has alternative text, which a bare PNG cannot have."""
    for number, cell in enumerate(cell for cell in notebook.cells if cell.cell_type == "code"):
        for output in cell.outputs:
            data = output.get("data", {})
            if any(kind.startswith("image/") for kind in data):
                yield f"code cell {number + 1} puts out a bare picture: use bert_course.common.figures"
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
    trees = [ast.parse(cell.source) for cell in notebook.cells if "claims" in tags(cell)]
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
        if "check" not in tags(cell):
            continue
        if "not attempted yet" not in " ".join(text for output in cell.outputs for text in texts(output)):
            yield f"{cell.source} judges what the learner is given: let the solution make what its cell needs"


# --- Rules for chapters -------------------------------------------------------------------------------------


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


def charges_nobody(notebook: Any) -> Iterator[str]:
    """A reader has never seen the sources: above the line no mistake of theirs has a number, but in appendix A."""
    if notebook.cells[0].source.startswith(ERRATA_PAGE):
        return
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and re.search(
            r"\berrat(um|a) \d", BOX.sub("", cell.source), re.IGNORECASE
        ):
            yield f"{cell.id}: an erratum's number stands above the line; tell the mistake, or put it into a box"


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
    yield from reading_time.over_budget(notebook)


def names_its_facts(notebook: Any) -> Iterator[str]:
    """Its metadata say how hard it is, what it needs and what it introduces; at most four errata are run on a page."""
    course = notebook.metadata.course
    if not 0 < len(course.get("idea", "").split()) <= IDEA:
        yield f"its idea must be a sentence of at most {IDEA} words, and is {course.get('idea')!r}"
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
    greek = set(re.findall(rf"\\({GREEK})(?![A-Za-z])", formula))
    plain = re.sub(r"_\{[^}]*\}|_[A-Za-z0-9]|\\[A-Za-z]+", " ", formula)
    named = re.findall(r"(?<![A-Za-z])[A-Za-z](?![A-Za-z])", plain)
    return greek | set(named)


GREEK = "alpha|beta|gamma|delta|epsilon|varepsilon|eta|theta|lambda|mu|sigma|tau|kappa|rho|phi|Phi"
# Indices, any input and output, e, any function, differentials, ℝ, O(…).
ALWAYS = {*"ijkntxyefgdRO", "delta"}


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
EVERYWHERE: list[Rule] = [
    is_valid,
    was_run_in_order,
    has_a_plain_kernel,
    says_how_to_install,
    has_quiet_outputs,
    pictures_have_words,
    names_chapters_by_links,
]
IN_CHAPTERS: list[Rule] = [
    numbers_come_from_cells,
    code_fits_the_page,
    imports_once,
    boxes_are_whole,
    charges_nobody,
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
IN_EXERCISES: list[Rule] = [waits_for_answers]
RULES = EVERYWHERE + IN_CHAPTERS + IN_EXERCISES


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
    notebook = read(path)
    if path.parent.name == "exercises" and notebooks.holds_answers(notebook):
        pytest.skip(f"{path.name} holds answers: a learner's, not the course's")
    complaints = list(rule(notebook))
    assert not complaints, "\n".join(complaints)


def test_exercises_are_in_step_with_solutions(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert notebooks.main(["exercises", "--check"]) == 0, capsys.readouterr().out + "run `make map`"


@pytest.mark.parametrize("path", [path for path in PATHS if path.parent.name != "exercises"], ids=str)
def test_needs_are_those_of_todays_sources(path: Path):
    notebook, name = read(path), path.relative_to(ROOT).as_posix()
    site.page_cells(notebook, name)
    words = f"needs were recorded of other sources than those of today: {site.to_note(name)}"
    assert notebook.metadata.get("needs_of") == site.stamp(notebook), words


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


# --- The rules find what they forbid -----------------------------------------------------------------------


def sound() -> Any:
    """A notebook with which every rule is content."""
    v4 = nbformat.v4
    output = v4.new_output("stream", name="stdout", text="3 rows, 0.5 nats, (1024, 768)\n")
    notebook = v4.new_notebook(
        cells=[
            v4.new_markdown_cell(
                "# Title\n\n*`pip install` this.* In 2017, section 3.2.1, about 0.02, $512$ and `512`."
            ),
            v4.new_code_cell("print()", execution_count=1, outputs=[output]),
        ]
    )
    facts = {"idea": "One thing.", "difficulty": 1, "needs": [], "introduces": []}
    notebook.metadata.update(kernelspec=notebooks.KERNEL, course=facts)
    return notebook


def with_output(**output: Any) -> Callable[[Any], None]:
    """Give the code cell this output."""

    def change(notebook: Any) -> None:
        notebook.cells[1].outputs = [nbformat.v4.new_output(**output)]

    return change


def printed(text: str) -> Callable[[Any], None]:
    """Let the code cell print this text."""
    return with_output(output_type="stream", name="stdout", text=text)


def displayed(kind: str, value: str) -> Callable[[Any], None]:
    """Let the code cell display this."""
    return with_output(output_type="display_data", data={kind: value, "text/plain": "x"})


def written(text: str) -> Callable[[Any], None]:
    """Add this sentence to the text."""

    def change(notebook: Any) -> None:
        notebook.cells[0].source += f" {text}"

    return change


def source(text: str) -> Callable[[Any], None]:
    """Let this be the code."""

    def change(notebook: Any) -> None:
        notebook.cells[1].source = text

    return change


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
    (is_valid, lambda n: n.cells[0].update(colour="red")),
    (was_run_in_order, lambda n: n.cells[1].update(execution_count=2)),
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
    (numbers_come_from_cells, written("It has 768 entries.")),
    (numbers_come_from_cells, written("The loss is 4.81.")),
    (numbers_come_from_cells, written("BERT has 110M parameters.")),
    (numbers_come_from_cells, lambda n: n.metadata.course.update(typed_numbers={"999": "not there"})),
    (waits_for_answers, lambda n: n.cells[1].metadata.update(tags=["check"])),
    (boxes_are_whole, written("\n\n<details>\n<summary>Going further</summary>\ntext\n</details>")),
    (boxes_are_whole, written("\n\n<details>\n<summary>Going further</summary>\n\ntext\n")),
    (boxes_are_whole, written("\n\n<details>\n<summary>More</summary>\n\ntext\n\n</details>")),
    (boxes_are_whole, written("\n\n:::{dropdown} Going further\ntext\n:::")),
    (charges_nobody, written("Some write it the other way (errata 3 and 5).")),
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


def test_the_rules_are_content_with_a_sound_notebook():
    assert [complaint for rule in RULES for complaint in rule(sound())] == []


@pytest.mark.parametrize(
    ("rule", "spoil"), BROKEN, ids=[f"{rule.__name__}-{i}" for i, (rule, _) in enumerate(BROKEN)]
)
def test_a_rule_finds(rule: Rule, spoil: Callable[[Any], None]):
    notebook = sound()
    spoil(notebook)
    assert list(rule(notebook))


def test_each_rule_is_shown_to_find():
    assert {rule for rule, _ in BROKEN} == set(RULES)


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


def test_the_errata_chapter_may_run_more_than_others():
    notebook = sound()
    course(errata=[1, 2, 3, 4, 5])(notebook)
    assert len(list(names_its_facts(notebook))) == 1
    notebook.cells[0].source = "# A. The sources' errata"
    assert list(names_its_facts(notebook)) == []


def test_the_ledger_finds_a_second_definition_and_an_early_use():
    first, second = sound(), sound()
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
    ) == {*"QKdASWL"}
    assert letters_of(r"\theta - \eta \lambda") == {"theta", "eta", "lambda"}
