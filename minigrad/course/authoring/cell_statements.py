"""What a statement of a cell reads, binds, changes and keeps, found by reading it.

Where the text does not say whether an object is changed, the names of what is called do, which are listed here.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

__all__ = [
    "Kinds",
    "Name",
    "Piece",
    "changed_by",
    "changes_of",
    "containers_bound",
    "free_names",
    "is_new",
    "keeps_state",
    "names_bound",
    "pieces_of",
    "read_by",
    "roots",
    "shares_memory",
]

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
    function reads when it is called. changes: of a function, what a call of it changes.
    """

    cells: set[str] = field(default_factory=set)
    holds: set[str] = field(default_factory=set)
    parts: set[str] = field(default_factory=set)
    module: bool = False
    code: bool = False
    stateful: bool = False
    container: bool = False
    later: set[str] = field(default_factory=set)
    changes: Changes | None = None


@dataclass
class Changes:
    """What a call of a function may change: its arguments, and names of the cells' namespace."""

    arguments: bool
    names: set[str]


@dataclass
class Kinds:
    """What is known of names while the statements of a cell are read, one after the other.

    functions: what a call of each changes. stateful, modules: as in `Name`. containers: each is a list, a set or
    a dictionary that the notebook has written out, so that an item of it is no part of another array.
    """

    functions: dict[str, Changes] = field(default_factory=dict)
    stateful: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    containers: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, known: Mapping[str, Name]) -> Kinds:
        """Those of names."""
        return cls(
            {name: one.changes for name, one in known.items() if one.changes},
            {name for name, one in known.items() if one.stateful},
            {name for name, one in known.items() if one.module},
            {name for name, one in known.items() if one.container},
        )

    def bind(self, names: set[str], node: ast.AST, known: Mapping[str, Name]) -> None:
        """Note what a statement binds these names to."""
        self.containers.difference_update(names)
        self.containers.update(containers_bound(node))
        changes = changes_of(node, known, self.functions)
        self.functions = {name: one for name, one in self.functions.items() if name not in names}
        self.functions.update(dict.fromkeys(names, changes) if changes else {})
        found = {
            "stateful": keeps_state(node, self.stateful),
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


def pieces_of(
    body: list[ast.stmt], known: dict[str, Name], sure: bool = True, kinds: Kinds | None = None
) -> Iterator[Piece]:
    """The statements in the order in which they stand, those inside of others too."""
    kinds = kinds or Kinds.of(known)
    for node in body:
        for header, inner, certain in _parts(node):
            reads, later = read_by(header)
            binds = _bound(header)
            changed = changed_by(header, kinds, grown=False)
            yield Piece(reads, later, binds, changed, _kept(header, kinds), header, sure and certain)
            kinds.bind(binds, header, known)
            if inner:
                yield from pieces_of(inner, known, sure and certain, kinds)


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


def read_by(node: ast.AST) -> tuple[set[str], set[str]]:
    """The names of the cells' namespace that a statement reads: now, and when a function that it makes is called."""
    if isinstance(node, ast.FunctionDef):
        now = [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
        return {name for part in now for name in free_names(part)}, free_names(node) - {node.name}
    if isinstance(node, ast.ClassDef):
        heads = {name for part in (*node.bases, *node.decorator_list) for name in free_names(part)}
        body = {name for part in node.body for name in read_by(part)[0]}
        own = {name for part in node.body for name in _bound(part)}
        return heads | (body - own), free_names(node) - {node.name}
    later = {name for one in ast.walk(node) if isinstance(one, ast.Lambda) for name in free_names(one)}
    return free_names(node), later if isinstance(node, ast.Assign) else set()


def free_names(node: ast.AST) -> set[str]:
    """The names that a piece of code reads and does not bind itself, as a function does its arguments."""
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        arguments = node.args
        own = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        own |= {one.arg for one in (arguments.vararg, arguments.kwarg) if one}
        body = node.body if isinstance(node, ast.FunctionDef) else [node.body]
        if isinstance(node, ast.FunctionDef):
            own |= {name for part in body for one in ast.walk(part) for name in names_bound(one)}
            own -= {name for one in ast.walk(node) if isinstance(one, ast.Global) for name in one.names}
        outside = [*arguments.defaults, *filter(None, arguments.kw_defaults)]
        inside = {name for part in body for name in free_names(part)} - own
        return inside | {name for part in outside for name in free_names(part)}
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        targets = {
            name for part in node.generators for one in ast.walk(part.target) for name in names_bound(one)
        }
        return {name for child in ast.iter_child_nodes(node) for name in free_names(child)} - targets
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load | ast.Del) else set()
    found = {name for child in ast.iter_child_nodes(node) for name in free_names(child)}
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        found.add(node.target.id)
    return found


def names_bound(node: ast.AST) -> set[str]:
    """The names that a node binds."""
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


def changed_by(node: ast.AST, kinds: Kinds, grown: bool = True) -> set[str]:
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
            found |= roots(one) if grown or not is_new_item else set()
        elif isinstance(one, ast.AugAssign):
            found |= roots(one.target) if grown or not _grown(one.target, kinds) else set()
        elif isinstance(one, ast.Call):
            called = _called(one)
            owner = roots(one.func.value) if isinstance(one.func, ast.Attribute) else set()
            parts = [*one.args, *(word.value for word in one.keywords)]
            given = {name for part in parts for name in roots(part)}
            if not called.startswith(HARMLESS):
                found |= (owner | given) & kinds.stateful
            if called in KEEPING and isinstance(one.func, ast.Attribute):
                if grown or not _grown(one.func.value, kinds):
                    found |= owner - kinds.modules
                continue
            function = kinds.functions.get(called)
            if _sounds_changing(one) or (function and function.arguments):
                found |= (owner | given) - kinds.modules
            for name in {
                called,
                *(part.id for part in parts if isinstance(part, ast.Name)),
            }:  # `every=look` calls it
                found |= kinds.functions[name].names if name in kinds.functions else set()
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


def containers_bound(node: ast.AST) -> set[str]:
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


def keeps_state(node: ast.AST, stateful: set[str]) -> bool:
    """Whether each use of what a statement binds, or of a value, may change it: a generator, or what has one in it."""
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
        return node.value is not None and keeps_state(node.value, stateful)
    if isinstance(node, ast.Name):
        return node.id in stateful
    if isinstance(node, ast.Call):
        called = _called(node)
        given = [*node.args, *(word.value for word in node.keywords)]
        used_up = (ast.GeneratorExp,) if called[:1].isupper() else (ast.GeneratorExp, ast.Call)
        handed = [one for one in given if not isinstance(one, used_up)]
        return called in STATEFUL or any(keeps_state(one, stateful) for one in handed)
    if isinstance(node, ast.GeneratorExp):
        return True
    if isinstance(node, ast.expr | ast.comprehension):
        return any(keeps_state(one, stateful) for one in ast.iter_child_nodes(node))
    return False


def roots(node: ast.AST) -> set[str]:
    """The names whose objects, or parts of them, an expression hands on."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        return roots(node.value)
    if isinstance(node, ast.Call):
        inner = roots(node.func.value) if isinstance(node.func, ast.Attribute) else set()
        given = node.args[:1] if _called(node) == "cross_entropy" else node.args  # labels have no gradient
        return inner | {name for part in given for name in roots(part)}
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return {name for part in node.elts for name in roots(part)}
    if isinstance(node, ast.Dict):
        return {name for part in node.values for name in roots(part)}
    return set()


def shares_memory(node: ast.expr) -> bool:
    """Whether a value may be a part of what it is made of, and not the result of a computation."""
    called = [_called(one) for one in ast.walk(node) if isinstance(one, ast.Call)]
    return all(name in SAME_MEMORY or name[:1].isupper() for name in called)


def is_new(node: ast.AST) -> bool:
    """Whether a statement binds an array that no other object is a part of."""
    value = node.value if isinstance(node, ast.Assign) else None
    return isinstance(value, ast.Call) and _called(value) in NEW_MEMORY


def changes_of(
    node: ast.AST, known: Mapping[str, Name], functions: Mapping[str, Changes] | None = None
) -> Changes | None:
    """What a call of the function that a statement defines changes; None for no function, or one that changes nothing.

    functions: those that it may call, in place of those among the known.
    """
    if not isinstance(node, ast.FunctionDef):
        return None
    called = dict(Kinds.of(known).functions if functions is None else functions)
    arguments = {one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    own = arguments | {name for part in node.body for one in ast.walk(part) for name in names_bound(one)}
    own -= {name for one in ast.walk(node) if isinstance(one, ast.Global) for name in one.names}
    modules = {name for name, one in known.items() if one.module}
    found = Changes(
        arguments=any(_deep(part, called) & arguments for part in node.body),
        names={name for part in node.body for name in _deep(_nearest(part), called)} - own - modules,
    )
    return found if found.arguments or found.names else None


def _nearest(node: ast.stmt) -> ast.stmt:
    """A statement whose methods are given nothing, and its functions only their first argument.

    That is the one that `train(model, stories)` or `loss_of(model, x).backward()` changes.
    """
    trimmed = copy.deepcopy(node)
    for one in ast.walk(trimmed):
        if isinstance(one, ast.Call):
            one.args, one.keywords = ([] if isinstance(one.func, ast.Attribute) else one.args[:1]), []
    return trimmed


def _deep(node: ast.stmt, functions: dict[str, Changes]) -> set[str]:
    """What a statement may change, with the statements inside it."""
    found = changed_by(node, Kinds(functions))
    for one in ast.walk(node):
        if isinstance(one, ast.Expr):
            found |= changed_by(one, Kinds(functions))
    return found
