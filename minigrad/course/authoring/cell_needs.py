"""Which cells above a cell needs: those that made or changed what it reads.

Cells are read, not run. For each name the cells are kept that its value comes from: the one that bound it, those whose
names that one read, and all that may have changed the object since. A cell needs the cells of every name that it
reads. Where the text does not say whether an object is changed, these do: an assignment to a part of it, a method
called for its effect, a function called for its effect or with a name such as `train`, any draw of a generator, and a
function of the notebook that does one of these to its arguments. What happens to an object happens to what it was made
of, and to what was made of it without a computation: `loss.backward()` changes the tensors behind the loss. But what a
list or a dictionary of the notebook gets to keep, as in `rows.append(x)`, stays as it is; so does what is only shown.
`tests/tools/cells_alone.py` runs each cell of a page after those that are found here alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from minigrad.course.authoring.cell_statements import (
    Kinds,
    Name,
    Piece,
    changed_by,
    changes_of,
    containers_bound,
    free_names,
    is_new,
    keeps_state,
    names_bound,
    pieces_of,
    read_by,
    roots,
    shares_memory,
)

__all__ = ["needs_of", "split"]


def needs_of(
    sources: Mapping[str, str], further: Mapping[str, Sequence[str]] | None = None
) -> dict[str, list[str]]:
    """For each cell by its id, in the order of the page, the ids of the cells above that it needs, in order.

    sources: the text of each cell. further: ids that a cell needs beside those that are found. Raises ValueError for
    an id that is not above its cell, and SyntaxError for a cell that is no Python.
    """
    known: dict[str, Name] = {}
    order = list(sources)
    needs: dict[str, set[str]] = {}
    for position, cell in enumerate(order):
        tree = ast.parse(sources[cell])
        pieces = list(pieces_of(tree.body, known))
        bound_here = {name for piece in pieces if piece.sure for name in piece.binds}
        needs[cell] = set()
        for other in (further or {}).get(cell, ()):
            if other not in order[:position]:
                raise ValueError(f"cell {cell} says that it needs {other}, which is no cell above it")
            needs[cell] |= {other} | needs[other]
        bound: set[str] = set()
        for piece in pieces:
            used = any(piece.binds & (other.reads | other.later) for other in pieces if other is not piece)
            read = (piece.reads - bound) | (piece.later - bound_here if used else set())
            for name in _with_later(read, known):
                if name not in bound_here or name in read:
                    needs[cell] |= known[name].cells if name in known else set()
            bound |= piece.binds
        for piece in pieces:
            _take(piece, cell, needs[cell], known)
    return {cell: [one for one in order if one in needs[cell]] for cell in order}


def _take(piece: Piece, cell: str, needed: set[str], known: dict[str, Name]) -> None:
    """Note what a statement of `cell` does to names."""
    source = {cell} | needed
    for name in _touched(piece.changed, known):
        known[name].cells |= source
    for owner, in_item, put in piece.kept:
        if owner in known:
            _keep(owner, in_item, put, source, known)
    imported = isinstance(piece.node, ast.Import | ast.ImportFrom)
    defined = isinstance(piece.node, ast.FunctionDef | ast.ClassDef)
    objects = {name for name, one in known.items() if not one.module and not one.code}
    made_of = {inner for name in piece.reads & objects for inner in (name, *known[name].holds)}
    given = piece.node.value if isinstance(piece.node, ast.Assign) else None
    parts = roots(given) & objects if given and shares_memory(given) else set()
    parts = {inner for name in parts for inner in (name, *known[name].parts)}
    for name in piece.binds:
        before = known.get(name, Name())
        known[name] = Name(
            cells=set(source) | (set() if piece.sure else before.cells),
            holds=set() if defined or is_new(piece.node) else made_of - {name},
            parts=parts - {name},
            module=imported,
            code=defined,
            container=name in containers_bound(piece.node),
            stateful=keeps_state(
                piece.node, {one for one in piece.reads if one in known and known[one].stateful}
            ),
            later=set(piece.later),
            changes=changes_of(piece.node, known),
        )


def _keep(owner: str, in_item: bool, given: ast.expr, source: set[str], known: dict[str, Name]) -> None:
    """Note that a container, or an item of it, keeps one more object; a later change of that one is one of both."""
    for name, one in known.items():
        if name == owner or owner in one.parts or (in_item and name in known[owner].parts):
            one.cells |= source
    objects = {
        name
        for name in free_names(given)
        if name in known and not known[name].module and not known[name].code
    }
    known[owner].holds |= {inner for name in objects for inner in (name, *known[name].holds)} - {owner}
    parts = roots(given) & objects if shares_memory(given) else set()
    known[owner].parts |= {inner for name in parts for inner in (name, *known[name].parts)} - {owner}


def _touched(changed: set[str], known: dict[str, Name]) -> set[str]:
    """The names whose objects a change of these may reach."""
    reached = {name for name in changed if name in known}
    reached |= {inner for name in reached for inner in known[name].holds if inner in known}
    return reached | {name for name, one in known.items() if one.parts & changed}


def _with_later(names: Iterable[str], known: dict[str, Name]) -> set[str]:
    """These names, and those that functions among them read when they are called."""
    found, left = set(), list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += known[name].later if name in known else ()
    return found


def split(source: str) -> tuple[str, str]:
    """A cell as what it only names, and the rest: imports, definitions, constants and small arrays of NumPy.

    What it names can run where the cell cannot. It is empty where there is no such statement. Each half has blank lines
    where the other's statements stand.
    """
    tree, lines = ast.parse(source), source.split("\n")
    names, bound = [""] * len(lines), set[str]()
    rest = list(lines)
    for node in tree.body:
        reads, later = read_by(node)
        if _only_names(node) and not (reads | later) & bound:
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(one.lineno for one in decorators)]) - 1
            last = node.end_lineno or node.lineno
            names[first:last] = lines[first:last]
            rest[first:last] = [""] * (last - first)
        else:
            bound |= {name for one in ast.walk(node) for name in names_bound(one)}
            bound |= changed_by(node, Kinds())
    return "\n".join(names).rstrip(), "\n".join(rest).rstrip()


def _only_names(node: ast.stmt) -> bool:
    """Whether a statement computes nothing that takes time."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef):
        return True
    if not isinstance(node, ast.Assign) or not all(isinstance(one, ast.Name) for one in node.targets):
        return False
    calls = [one.func for one in ast.walk(node) if isinstance(one, ast.Call)]
    return all(isinstance(one, ast.Attribute) and _dotted(one).startswith(("np.", "math.")) for one in calls)


def _dotted(node: ast.expr) -> str:
    """`np.random.default_rng` as text; empty for what is no name with names behind it."""
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""
