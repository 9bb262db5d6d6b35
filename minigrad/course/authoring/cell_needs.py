"""Which cells above a cell needs: those that made or changed what it reads.

Cells are read, not run. For each name the cells are kept that its value comes from: the one that bound it, those whose
names that one read, and all that may have changed the object since. A cell needs the cells of every name that it
reads. Where the text does not say whether an object is changed, these do: an assignment to a part of it, a method
called for its effect, a function called for its effect or with a name such as `train`, any draw of a generator, and a
function of the notebook that does one of these to its arguments. What happens to an object happens to what it was made
of, and to what was made of it without a computation: `loss.backward()` changes the tensors behind the loss.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["needs_of", "split"]

# A call of a function or a method with such a word in its name changes what it is called on or with, also where its
# value is kept. So does one that ends with _, as in PyTorch.
CHANGING = {
    "accumulate", "adapt", "backward", "clear", "clip", "descend", "finetune", "fit", "learn", "load", "next",
    "optimize", "pop", "pretrain", "remove", "reset", "set", "shuffle", "sort", "step", "train", "tune", "update",
    "zero",
}  # fmt: skip
NOUNS = (
    "above_zero", "is_next", "next_sentence", "share_next", "share_of_next", "step_cost",
)  # fmt: skip  # have such a word, and change nothing
STATEFUL = (
    "default_rng",
    "generator",
    "Random",
    "RandomState",
    "iter",
    "cycle",
)  # make what each use changes
SAME_MEMORY = (
    "asarray", "items", "named_parameters", "numpy", "parameters", "ravel", "reshape", "state_dict", "swapaxes",
    "transpose", "values", "view",
)  # fmt: skip  # what they give may be a part of what they are called on or with, as may be a new object of a class
NEW_MEMORY = (
    "arange", "copy", "deepcopy", "empty", "empty_like", "eye", "full", "full_like", "linspace", "ones", "ones_like",
    "zeros", "zeros_like",
)  # fmt: skip  # what they give is no part of anything
SETTING = ("set", "seed", "manual_seed", "use", "simplefilter", "filterwarnings", "register")  # of modules
HARMLESS = (
    "print", "isinstance", "len", "display", "assert_", "table", "player", "show",
)  # fmt: skip  # called for their effect, which is elsewhere
DRAWING = (
    "_curves",
    "_figure",
    "_map",
    "_maps",
    "_picture",
    "_player",
)  # ends of the names of the course's drawings
KEEPING = (
    "append",
    "extend",
    "insert",
    "setdefault",
)  # what they are called on keeps what is given, unchanged


@dataclass
class Name:
    """What is known of a name at a point of the notebook.

    cells: that its value comes from. holds: names whose objects may be in its own. parts: those that certainly may,
    as it was made of them without a computation. module: it was imported. code: it is a function or a class.
    stateful: each use changes it. container: a list, a set or a dictionary that was written out. later: what a
    function reads when it is called. changes: it changes its arguments.
    """

    cells: set[str] = field(default_factory=set)
    holds: set[str] = field(default_factory=set)
    parts: set[str] = field(default_factory=set)
    module: bool = False
    code: bool = False
    stateful: bool = False
    container: bool = False
    later: set[str] = field(default_factory=set)
    changes: bool = False


@dataclass
class Kinds:
    """What is known of names while the statements of a cell are read, one after the other.

    functions: those that change their arguments. stateful, modules: as in `Name`. containers: each is a list, a set or
    a dictionary that the notebook has written out, so that an item of it is no part of another array.
    """

    functions: set[str] = field(default_factory=set)
    stateful: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    containers: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, known: Mapping[str, Name]) -> Kinds:
        """Those of names."""
        return cls(
            {name for name, one in known.items() if one.changes},
            {name for name, one in known.items() if one.stateful},
            {name for name, one in known.items() if one.module},
            {name for name, one in known.items() if one.container},
        )

    def bind(self, names: set[str], node: ast.AST, known: Mapping[str, Name]) -> None:
        """Note what a statement binds these names to."""
        self.containers.difference_update(names)
        self.containers.update(_containers(node))
        found = {
            "functions": isinstance(node, ast.FunctionDef) and _changes_arguments(node, known),
            "stateful": _keeps_state(node, self.stateful),
            "modules": isinstance(node, ast.Import | ast.ImportFrom),
        }
        for kind, is_one in found.items():
            getattr(self, kind).difference_update(names)
            if is_one:
                getattr(self, kind).update(names)


@dataclass
class Piece:
    """A statement without the statements inside it: what it reads, binds and changes, and who keeps what."""

    reads: set[str]
    later: set[str]
    binds: set[str]
    changed: set[str]
    kept: list[tuple[str, bool, ast.expr]]
    node: ast.AST
    sure: bool  # it runs whenever the cell does


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
        pieces = list(_pieces(tree.body, known))
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
    parts = _roots(given) & objects if given and _shares(given) else set()
    parts = {inner for name in parts for inner in (name, *known[name].parts)}
    for name in piece.binds:
        before = known.get(name, Name())
        known[name] = Name(
            cells=set(source) | (set() if piece.sure else before.cells),
            holds=set() if defined or _is_new(piece.node) else made_of - {name},
            parts=parts - {name},
            module=imported,
            code=defined,
            container=name in _containers(piece.node),
            stateful=_keeps_state(
                piece.node, {one for one in piece.reads if one in known and known[one].stateful}
            ),
            later=set(piece.later),
            changes=defined and _changes_arguments(piece.node, known),
        )


def _keep(owner: str, in_item: bool, given: ast.expr, source: set[str], known: dict[str, Name]) -> None:
    """Note that a container, or an item of it, keeps one more object; a later change of that one is one of both."""
    for name, one in known.items():
        if name == owner or owner in one.parts or (in_item and name in known[owner].parts):
            one.cells |= source
    objects = {
        name for name in _free(given) if name in known and not known[name].module and not known[name].code
    }
    known[owner].holds |= {inner for name in objects for inner in (name, *known[name].holds)} - {owner}
    parts = _roots(given) & objects if _shares(given) else set()
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
        reads, later = _read(node)
        if _only_names(node) and not (reads | later) & bound:
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(one.lineno for one in decorators)]) - 1
            last = node.end_lineno or node.lineno
            names[first:last] = lines[first:last]
            rest[first:last] = [""] * (last - first)
        else:
            bound |= {name for one in ast.walk(node) for name in _names_bound(one)}
            bound |= _changed(node, Kinds())
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


# --- Statements ------------------------------------------------------------------------------------------


def _pieces(
    body: list[ast.stmt], known: dict[str, Name], sure: bool = True, kinds: Kinds | None = None
) -> Iterator[Piece]:
    """The statements in the order in which they stand, those inside of others too."""
    kinds = kinds or Kinds.of(known)
    for node in body:
        for header, inner, certain in _parts(node):
            reads, later = _read(header)
            binds = _bound(header)
            changed = _changed(header, kinds, grown=False)
            yield Piece(reads, later, binds, changed, _kept(header, kinds), header, sure and certain)
            kinds.bind(binds, header, known)
            if inner:
                yield from _pieces(inner, known, sure and certain, kinds)


def _parts(node: ast.stmt) -> Iterator[tuple[ast.AST, list[ast.stmt], bool]]:
    """A compound statement as its header and its blocks; another one as it is."""
    if isinstance(node, ast.If | ast.While):
        yield ast.Expression(node.test), [], True
        yield ast.Pass(), node.body, isinstance(node, ast.While)
        yield ast.Pass(), node.orelse, False
    elif isinstance(node, ast.For):
        yield ast.Assign([node.target], node.iter), node.body, True
        yield ast.Pass(), node.orelse, True
    elif isinstance(node, ast.With):
        for item in node.items:
            target = item.optional_vars
            yield (
                (ast.Assign([target], item.context_expr) if target else ast.Expression(item.context_expr)),
                [],
                True,
            )
        yield ast.Pass(), node.body, True
    elif isinstance(node, ast.Try):
        yield ast.Pass(), node.body, True
        for handler in node.handlers:
            yield ast.Expression(handler.type or ast.Constant(None)), handler.body, False
        yield ast.Pass(), node.orelse + node.finalbody, True
    else:
        yield node, [], True


def _bound(node: ast.AST) -> set[str]:
    """The names that a statement binds in the namespace of the cells."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return {one.id for one in _outside(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}


def _outside(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement that are in no function, lambda or comprehension inside it."""
    scopes = (
        ast.FunctionDef,
        ast.Lambda,
        ast.ListComp,
        ast.SetComp,
        ast.DictComp,
        ast.GeneratorExp,
        ast.ClassDef,
    )
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, scopes):
            yield from _outside(child)


def _read(node: ast.AST) -> tuple[set[str], set[str]]:
    """The names of the cells' namespace that a statement reads: now, and when a function that it makes is called."""
    if isinstance(node, ast.FunctionDef):
        now = [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
        return {name for part in now for name in _free(part)}, _free(node) - {node.name}
    if isinstance(node, ast.ClassDef):
        now = {name for part in (*node.bases, *node.decorator_list) for name in _free(part)}
        inside = {name for part in node.body for name in _read(part)[0]}
        own = {name for part in node.body for name in _bound(part)}
        return now | (inside - own), _free(node) - {node.name}
    later = {name for one in ast.walk(node) if isinstance(one, ast.Lambda) for name in _free(one)}
    return _free(node), later if isinstance(node, ast.Assign) else set()


def _free(node: ast.AST) -> set[str]:
    """The names that a piece of code reads and does not bind itself, as a function does its arguments."""
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        arguments = node.args
        own = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        own |= {one.arg for one in (arguments.vararg, arguments.kwarg) if one}
        body = node.body if isinstance(node, ast.FunctionDef) else [node.body]
        if isinstance(node, ast.FunctionDef):
            own |= {name for part in body for one in ast.walk(part) for name in _names_bound(one)}
            own -= {name for one in ast.walk(node) if isinstance(one, ast.Global) for name in one.names}
        outside = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
        inside = {name for part in body for name in _free(part)} - own
        return inside | {name for part in outside for name in _free(part)}
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        targets = {
            name for part in node.generators for one in ast.walk(part.target) for name in _names_bound(one)
        }
        return {name for child in ast.iter_child_nodes(node) for name in _free(child)} - targets
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load | ast.Del) else set()
    found = {name for child in ast.iter_child_nodes(node) for name in _free(child)}
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        found.add(node.target.id)
    return found


def _names_bound(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return {node.id}
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.ExceptHandler) and node.name:
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return set()


# --- Changes ---------------------------------------------------------------------------------------------


def _changed(node: ast.AST, kinds: Kinds, grown: bool = True) -> set[str]:
    """The names whose objects a statement may change; grown: also those that only get one more object to keep."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return set()
    found: set[str] = set()
    dropped = node.value if isinstance(node, ast.Expr) else None
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute | ast.Subscript) and isinstance(one.ctx, ast.Store | ast.Del):
            is_new_item = (
                isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Store) and _grown(one.value, kinds)
            )
            found |= _roots(one) if grown or not is_new_item else set()
        elif isinstance(one, ast.AugAssign):
            found |= _roots(one.target) if grown or not _grown(one.target, kinds) else set()
        elif isinstance(one, ast.Call):
            called = _called(one)
            owner = _roots(one.func.value) if isinstance(one.func, ast.Attribute) else set()
            given = {
                name for part in (*one.args, *(word.value for word in one.keywords)) for name in _roots(part)
            }
            if not called.startswith(HARMLESS):
                found |= (owner | given) & kinds.stateful
            if called in KEEPING and isinstance(one.func, ast.Attribute):
                if grown or not _grown(one.func.value, kinds):
                    found |= owner - kinds.modules
                continue
            if _sounds_changing(one) or called in kinds.functions:
                found |= (owner | given) - kinds.modules
            if one is dropped and not called.startswith(HARMLESS) and not called.endswith(DRAWING):
                found |= (owner | given) - kinds.modules
            if called.startswith(SETTING):
                found |= owner
    return found


def _sounds_changing(call: ast.Call) -> bool:
    """Whether what is called has a name that says that it changes something; `set(x)` is only a new set."""
    called = _called(call)
    if called in NOUNS or (called == "set" and isinstance(call.func, ast.Name)):
        return False
    return called.endswith("_") or not CHANGING.isdisjoint(called.split("_"))


def _kept(node: ast.AST, kinds: Kinds) -> list[tuple[str, bool, ast.expr]]:
    """Names and what they are given to keep: of `rows.append(x)` rows and x, of `found[name] = y` found and y."""
    kept: list[tuple[str, bool, ast.expr]] = []
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return kept
    for one in ast.walk(node):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in KEEPING:
            owners, given = [one.func.value], one.args
        elif isinstance(one, ast.Assign):
            targets = [part for target in one.targets for part in ast.walk(target)]
            owners, given = [part.value for part in targets if isinstance(part, ast.Subscript)], [one.value]
        elif isinstance(one, ast.AugAssign):
            owners, given = [one.target], [one.value]
        else:
            continue
        kept += [(*grown, put) for owner in owners if (grown := _grown(owner, kinds)) for put in given]
    return kept


def _grown(node: ast.AST, kinds: Kinds) -> tuple[str, bool] | None:
    """The container that gets one more object here, its others being as they are; and whether an item of it gets it."""
    if isinstance(node, ast.Name):
        return (node.id, False) if node.id in kinds.containers else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault":
        node = node.func
    if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.value, ast.Name):
        return (node.value.id, True) if node.value.id in kinds.containers else None
    return None


def _containers(node: ast.AST) -> set[str]:
    """The names that a statement binds to containers which it writes out."""
    written = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return set()
    target, pairs = node.targets[0], [(node.targets[0], node.value)]
    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        pairs = list(zip(target.elts, node.value.elts, strict=False))
    return {one.id for one, value in pairs if isinstance(one, ast.Name) and isinstance(value, written)}


def _called(call: ast.Call) -> str:
    """The last word of what is called."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _keeps_state(node: ast.AST, stateful: set[str]) -> bool:
    """Whether each use of what a statement binds, or of a value, may change it: a generator, or what has one in it."""
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
        return node.value is not None and _keeps_state(node.value, stateful)
    if isinstance(node, ast.Name):
        return node.id in stateful
    if isinstance(node, ast.Call):
        called = _called(node)
        given = [*node.args, *(word.value for word in node.keywords)]
        used_up = (ast.GeneratorExp,) if called[:1].isupper() else (ast.GeneratorExp, ast.Call)
        handed = [one for one in given if not isinstance(one, used_up)]
        return called in STATEFUL or any(_keeps_state(one, stateful) for one in handed)
    if isinstance(node, ast.GeneratorExp):
        return True
    if isinstance(node, ast.expr | ast.comprehension):
        return any(_keeps_state(one, stateful) for one in ast.iter_child_nodes(node))
    return False


def _roots(node: ast.AST) -> set[str]:
    """The names whose objects, or parts of them, an expression hands on."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        return _roots(node.value)
    if isinstance(node, ast.Call):
        inner = _roots(node.func.value) if isinstance(node.func, ast.Attribute) else set()
        given = node.args[:1] if _called(node) == "cross_entropy" else node.args  # labels have no gradient
        return inner | {name for part in given for name in _roots(part)}
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return {name for part in node.elts for name in _roots(part)}
    if isinstance(node, ast.Dict):
        return {name for part in node.values for name in _roots(part)}
    return set()


def _shares(node: ast.expr) -> bool:
    """Whether a value may be a part of what it is made of, and not the result of a computation."""
    called = [_called(one) for one in ast.walk(node) if isinstance(one, ast.Call)]
    return all(name in SAME_MEMORY or name[:1].isupper() for name in called)


def _is_new(node: ast.AST) -> bool:
    """Whether a statement binds an array that no other object is a part of."""
    value = node.value if isinstance(node, ast.Assign) else None
    return isinstance(value, ast.Call) and _called(value) in NEW_MEMORY


def _changes_arguments(node: ast.AST, known: Mapping[str, Name]) -> bool:
    """Whether a function changes one of its arguments, or a name of the cells' namespace."""
    if not isinstance(node, ast.FunctionDef):
        return False
    arguments = {one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    functions = {name for name, one in known.items() if one.changes}
    outer = arguments | {name for name, one in known.items() if not one.module}
    own = {name for part in node.body for one in ast.walk(part) for name in _names_bound(one)} - arguments
    changed = {name for part in node.body for name in _deep(part, functions)}
    return bool(changed & (outer - own))


def _deep(node: ast.stmt, functions: set[str]) -> set[str]:
    """What a statement may change, with the statements inside it."""
    found = _changed(node, Kinds(functions))
    for one in ast.walk(node):
        if isinstance(one, ast.Expr):
            found |= _changed(one, Kinds(functions))
    return found
