"""Which cells of a notebook answer which exercise, and what they need to run.

An exercise's notebook says so itself: the cell that holds the gap has the tag `answer`, the cell with its check the tag
`check`, and both have `"course": {"exercise": "attend"}` in their metadata, which Jupyter keeps. From a learner's
notebook the answer cells are taken. What else an answer needs, imports and functions that are given, comes from the
course's own copy; and what that does not have, from the learner's cells above the answer.
"""

from __future__ import annotations

import builtins
import json
import re
import symtable
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bert_course.common.jupyter import plain_python

ANSWER, CHECK = "answer", "check"  # the tags
LONGEST = 100_000  # characters of an answer
_CALL = re.compile(r"^check\.(?!progress\b)(\w+)\(", re.MULTILINE)
_DEFINED = re.compile(r"^(?:def|class)[ \t]+(\w+)|^(\w+)[ \t]*[:=]", re.MULTILINE)
FOUND_BY_NAME = "Its cell does not say which exercise it answers: it was found by the name that it defines."


class NotReadable(ValueError):
    """A notebook of which nothing can be graded; the message says why."""


def label_cells(cells: Sequence[Any], is_answer: Callable[[Any], bool]) -> None:
    """Tag the cells with answers and the checks below them, in place; `is_answer` finds the former."""
    waiting: list[Any] = []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        call = _CALL.search(cell["source"])
        if is_answer(cell):
            waiting.append(cell)
        elif call and waiting:
            for one, tag in [*((answer, ANSWER) for answer in waiting), (cell, CHECK)]:
                one["metadata"]["tags"] = [*one["metadata"].get("tags", []), tag]
                one["metadata"]["course"] = {**one["metadata"].get("course", {}), "exercise": call[1]}
            waiting = []


# --- The course's own notebooks --------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """A code cell of the course's notebook: given, or the place of an answer to `exercise`; or a learner's own cell.

    left_out: the lines of a learner's cell that only Jupyter runs. own: which cell of the learner's notebook it is.
    """

    id: str
    source: str
    exercise: str = ""
    left_out: tuple[str, ...] = ()
    own: int = 0


@dataclass(frozen=True)
class Sheet:
    """The exercises of one notebook. stem: its name, as "one_head". pieces: its code cells but the checks."""

    stem: str
    pieces: tuple[Piece, ...]

    @property
    def exercises(self) -> list[str]:
        """Their names, in the order of the notebook."""
        return list(dict.fromkeys(piece.exercise for piece in self.pieces if piece.exercise))


def sheets(folder: Path) -> list[Sheet]:
    """The exercises in a folder, a sheet for each notebook.

    Raises NotReadable where a file is no notebook, and FileNotFoundError where there is none.
    """
    found = []
    for path in sorted(folder.glob("*.ipynb")):
        pieces = []
        for cell in read_cells(path.read_bytes()):
            if cell.kind == "code" and CHECK not in cell.tags and not cell.source.startswith("check."):
                pieces.append(Piece(cell.id, cell.source, cell.exercise if ANSWER in cell.tags else ""))
        found.append(Sheet(path.stem, tuple(pieces)))
    if not any(sheet.exercises for sheet in found):
        raise FileNotFoundError(
            f"{folder} has no exercises: give the course's folder, the one that holds exercises/"
        )
    return found


# --- A learner's notebook --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """What is read of a cell; what a damaged or hostile file has of another type is read as nothing."""

    number: int  # from 1, as one counts on the screen
    id: str
    kind: str
    source: str
    tags: tuple[str, ...]
    exercise: str


@dataclass(frozen=True)
class Answer:
    """A learner's answer to an exercise: its source, or None and what is the matter with it.

    untouched: the cell is as the course gave it. note: how it was found, if not by what its cell says. above: the
    learner's own cells above it, by their numbers, for a class or an import that it uses.
    """

    source: str | None
    problem: str = ""
    untouched: bool = False
    note: str = ""
    above: dict[int, str] = field(default_factory=dict, compare=False, hash=False)


def read_cells(content: bytes) -> list[Cell]:
    """The cells of a notebook's file. Raises NotReadable, which says what the file is instead."""
    try:
        notebook = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise NotReadable(f"this is no notebook: its text is not JSON ({error})") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise NotReadable("this is no notebook of version 4: it has no list of cells")
    return [_cell(number, cell) for number, cell in enumerate(cells, 1) if isinstance(cell, dict)]


def _cell(number: int, cell: dict[str, Any]) -> Cell:
    metadata, source = _as(dict, cell.get("metadata")), cell.get("source")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    # Half an emoji, of which there may be one where a text was cut, is none that a file could hold.
    source = _as(str, source).encode("utf-8", "replace").decode("utf-8")
    tags = tuple(tag for tag in _as(list, metadata.get("tags")) if isinstance(tag, str))
    exercise = _as(str, _as(dict, metadata.get("course")).get("exercise"))
    return Cell(number, _as(str, cell.get("id")), _as(str, cell.get("cell_type")), source, tags, exercise)


def _as(kind: type, value: Any) -> Any:
    return value if isinstance(value, kind) else kind()


def answers_in(content: bytes, course: Sequence[Sheet]) -> tuple[Sheet, dict[str, Answer], list[str]]:
    """Of which sheet a learner's notebook is, what it answers to each exercise there, and which of others it answers.

    Where no cell says which exercise it answers, as after Colab, the names say it that cells define and checks are
    called with. Raises NotReadable for a file that is no notebook, and for one that is of no sheet.
    """
    cells, note = read_cells(content), ""
    if not any(cell.exercise for cell in cells):
        if any("### BEGIN SOLUTION" in cell.source for cell in cells):
            raise NotReadable(
                "it is a notebook of solutions/, the course's own answers. Learners answer in those of exercises/"
            )
        cells, note = _by_names(cells, course), FOUND_BY_NAME
    named = Counter(cell.exercise for cell in cells)
    answered = Counter(cell.exercise for cell in cells if cell.kind == "code" and CHECK not in cell.tags)

    def cells_of(one: Sheet) -> list[int]:
        return [sum(counts[name] > 0 for name in one.exercises) for counts in (answered, named)]

    sheet = max(course, key=cells_of)
    if not any(named[name] for name in sheet.exercises):
        calls = {name for cell in cells for name in _CALL.findall(cell.source)}
        if any(calls & set(one.exercises) for one in course):
            raise NotReadable(
                "its cells do not say which exercise they answer, and none defines a function that its checks ask for. "
                "Copy the answers into today's notebook of the exercises"
            )
        raise NotReadable("it has no cell of an exercise of this course")
    elsewhere = [name for one in course if one is not sheet for name in one.exercises if answered[name]]
    answers = {name: replace(_answer(name, sheet, cells), note=note) for name in sheet.exercises}
    return sheet, answers, elsewhere


def _by_names(cells: list[Cell], course: Sequence[Sheet]) -> list[Cell]:
    """The cells, each with the exercise whose name it defines; of the sheets of which the notebook has a check.

    Where a function of that name is defined, a value of that name is none of it.
    """
    code = [cell for cell in cells if cell.kind == "code"]
    calls = {name for cell in code for name in _CALL.findall(cell.source)}
    asked = {name for one in course if calls & set(one.exercises) for name in one.exercises}
    functions = {function for cell in code for function, _ in _DEFINED.findall(cell.source)}
    found = []
    for cell in cells:
        pairs = _DEFINED.findall(cell.source) if cell.kind == "code" else []
        names = [function or value for function, value in pairs if function or value not in functions]
        found.append(replace(cell, exercise=next((name for name in names if name in asked), "")))
    return found


def _answer(name: str, sheet: Sheet, cells: list[Cell]) -> Answer:
    """By the cell's id, and by what its metadata say: a copied or a split cell keeps the latter."""
    ids = {piece.id for piece in sheet.pieces if piece.exercise == name}
    mine = [
        cell
        for cell in cells
        if (cell.id in ids and cell.exercise in (name, ""))
        or (cell.exercise == name and CHECK not in cell.tags)
    ]
    code = [cell for cell in mine if cell.kind == "code"]
    # Found by a pattern, not by Python's parser: a hostile text can bring that down, and this process has to live on.
    defines = re.compile(rf"^(?:def|class)\s+{name}\b|^{name}\s*[:=]", re.MULTILINE)
    if not code:
        other = next((cell for cell in cells if cell.kind == "code" and defines.search(cell.source)), None)
        why = "it was deleted, or the notebook is older than the exercise"
        if mine:
            why = f"cell {mine[0].number} is no code cell any more"
        elif other:
            why = f"it was deleted, and cell {other.number}, which defines {name}, is another one"
        return Answer(
            None, f"no answer cell for {name}: {why}. Answer in the cell that the exercise gives you."
        )
    text = "\n".join(cell.source for cell in code)  # a cell that was split is whole again
    if len(code) > 1 and len(defines.findall(text)) != 1:
        numbers = ", ".join(str(cell.number) for cell in code[:9]) + (", …" if len(code) > 9 else "")
        return Answer(
            None, f"{len(code)} answer cells for {name} (cells {numbers}): keep the one that counts."
        )
    if len(text) > LONGEST:
        return Answer(None, f"the answer has {len(text):,} characters; up to {LONGEST:,} are read.")
    given = "\n".join(piece.source for piece in sheet.pieces if piece.exercise == name)
    above = _own(cells[: cells.index(code[0])], sheet)
    return Answer(text, untouched=text.strip() == given.strip(), above=above)


def _own(cells: list[Cell], sheet: Sheet) -> dict[int, str]:
    """Of these cells the learner's own, by their numbers; none where they are too long together."""
    ids, given = {piece.id for piece in sheet.pieces}, {piece.source.strip() for piece in sheet.pieces}
    own = {
        cell.number: cell.source
        for cell in cells
        if cell.kind == "code"
        and not cell.exercise
        and cell.id not in ids
        and cell.source.strip() not in given
    }
    return own if sum(map(len, own.values())) <= LONGEST else {}


# --- What an answer needs --------------------------------------------------------------------------------


def needed(sheet: Sheet, name: str, answers: dict[str, Answer]) -> list[Piece]:
    """The cells to run for an exercise, its answer last: of those above it, the ones that define a name it uses.

    Given cells are the course's, answers the learner's; so a learner's answer that another one uses is run too, and
    what is broken elsewhere is not. A cell of the learner's own is run for a name that nothing else defines. It reads
    the answers with Python's parser, which a hostile text can bring down.
    """
    pieces: list[Piece] = []
    for piece in sheet.pieces:
        if piece.exercise:
            answer, known = answers[piece.exercise], {one.own for one in pieces}
            pieces += [_of_learner(str(n), text, "", n) for n, text in answer.above.items() if n not in known]
            piece = _of_learner(piece.id, answer.source or "", piece.exercise)
        pieces.append(piece)
        if piece.exercise == name:
            break
    *above, last = pieces
    defined = set(dir(builtins)).union(*(bound_in(piece.source) for piece in above if not piece.own))
    taken, wanted = [last], _used(last.source)
    for piece in reversed(above):
        if bound_in(piece.source) & (wanted - defined - bound_in(last.source) if piece.own else wanted):
            taken.append(piece)
            wanted |= _used(piece.source)
    return taken[::-1]


def _of_learner(id: str, text: str, exercise: str, own: int = 0) -> Piece:
    source, left_out = plain_python(text)
    return Piece(id, source, exercise, tuple(left_out), own)


def missing_names(source: str, scope: Iterable[str]) -> list[str]:
    """The names that a text uses and neither it, nor `scope`, nor Python defines."""
    return sorted(_used(source) - bound_in(source) - set(scope) - set(dir(builtins)))


# How a text gets at what judges it: the check's own parts, and the frames that call a function. Not so by importing the
# check as the exercises do, by asking it for a hint, or by a comment that says "inspect".
_JUDGE = re.compile(
    r"bert_course(?!\s+import\s+check[ \t]*(?:#.*)?$)|\bcheck\.\w+\.(?!hint\(\))\w+|\bEXERCISES\b|"
    r"getattr\(\s*check\b|vars\(\s*check\b|import\b[^\n#]*\b(inspect)\b|\b(inspect)\.\w|\b_getframe\b|"
    r"\bcurrentframe\b|\b(?:tb|gi|cr|ag)_frame\b|\bf_(?:back|globals|locals|builtins)\b",
    re.MULTILINE,
)


def speaks_of(sources: Iterable[str]) -> str:
    """What in these texts speaks of the check, or of the frames of functions; nothing where none does."""
    found = next(filter(None, map(_JUDGE.search, sources)), None)
    return found[found.lastindex or 0] if found else ""


def bound_in(source: str) -> set[str]:
    """The global names that a cell gives values, in whatever way Python has for that."""
    return {one.get_name() for one in _global_names(source) if one.is_assigned() or one.is_imported()}


def _used(source: str) -> set[str]:
    """The global names that a cell reads, in its functions too."""
    return {one.get_name() for one in _global_names(source) if one.is_referenced()}


def _global_names(source: str) -> Iterator[symtable.Symbol]:
    """Each global name of a cell, for each scope that has it; none if it is no Python."""
    try:
        tables = [symtable.symtable(source, "<cell>", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if symbol.is_global() or table.get_type() == "module":
                yield symbol
