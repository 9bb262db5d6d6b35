"""Which cells above a cell needs, recorded while the page runs: those that made or changed what it reads.

The cells' namespace notes which names a cell looks up, in the functions that it calls too. Every object that a name
leads to is looked at before and after each cell, so a change is seen whoever made it, and under whatever name. A cell
needs the cells behind all that it read. The gradients of Tensors are kept apart, because many a cell reads a model and
not its gradients. Not looked at are caches of imported classes (attributes that begin with `_`, and cached properties),
the graph behind a Tensor, and modules, but for a few settings. Random numbers of `minigrad.random` are no need: a page
puts them where they stood. `book/make/cells_alone.py` runs each cell of a page after the cells that are found here
alone.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import marshal
import multiprocessing
import os
import re
import symtable
import types
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from book.site.python.packages.page_kernel import Kernel
from minigrad.graph import Node
from minigrad.tensor import Tensor

SETTINGS = "(settings)"  # the name of what a cell may set outside of its names; every cell reads it
SLOPE = "slope"  # with the id of a Tensor: its gradient
GRADIENT: Any = Tensor.__dict__["grad"]
CACHED = type(functools.cache(abs))  # what `cache` and `lru_cache` make


class Names(dict[str, Any]):
    """The namespace of the cells, and what a cell does with it.

    read: names that it looked up before it bound them. bound: names that it bound. slopes: whether it read a gradient
    that it had not made.
    """

    def __init__(self) -> None:
        super().__init__(__name__="__main__")
        self.begin("")

    def begin(self, source: str) -> None:
        """A cell begins."""
        self.read, self.bound, self.slopes = {SETTINGS, *_read_in_classes(source)}, set[str](), False

    def __getitem__(self, name: str) -> Any:
        if name not in self.bound:
            self.read.add(name)
        return super().__getitem__(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self.bound.add(name)
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        self[name]
        super().__delitem__(name)


class Recorder(Kernel):
    """The kernel of a page; `needs` has for each cell that ran inside of `noting` all cells that it needs."""

    def forget(self) -> None:
        """Start with an empty namespace, and know of no cell."""
        super().forget()
        self.needs: dict[str, set[str]] = {}
        self._names, self._before = Names(), _looked_at({})[0]
        # of each name the cells behind what it stands for, and those behind the gradients in that
        self._makers: dict[str, set[str]] = {}
        self._sloped: dict[str, set[str]] = {}

    @property
    def names(self) -> Names:
        """The namespace of the cells."""
        return self._names

    @contextlib.contextmanager
    def noting(self, cell: str, source: str) -> Iterator[None]:
        """Note what the cell needs that is run inside."""
        names = self._names
        names.begin(source)
        for thing in dict.values(names):
            if isinstance(thing, CACHED) and thing.__module__ == "__main__":
                thing.cache_clear()  # what it remembers would hide what it reads
        with _gradients_watched(names):
            yield
        needs, slopes = (
            set[str]().union(*(behind.get(name, ()) for name in names.read))
            for behind in (self._makers, self._sloped)
        )
        self.needs[cell] = needs | slopes if names.slopes else needs
        after, holders = _looked_at(names)
        changed, sloped = _changed(self._before, after, holders)
        for name in names.bound:
            self._makers[name], self._sloped[name] = set(), set()
        own = self.needs[cell] | {cell}
        for behind, touched, source_of in (
            (self._makers, changed | names.bound, own),
            (self._sloped, changed | names.bound, slopes),
            (self._sloped, sloped, own),
        ):
            for name in touched:
                behind[name] = behind.get(name, set()) | source_of
        self._before = after


# --- What a cell reads -----------------------------------------------------------------------------------


@contextlib.contextmanager
def _gradients_watched(names: Names) -> Iterator[None]:
    """Inside, note when a gradient is read that was there before."""
    kind: Any = Tensor
    given: set[int] = set()

    def get(tensor: Tensor) -> Any:
        names.slopes |= id(tensor) not in given
        return GRADIENT.__get__(tensor)

    def put(tensor: Tensor, gradient: Any) -> None:
        given.add(id(tensor))
        GRADIENT.__set__(tensor, gradient)

    kind.grad = property(get, put)
    try:
        yield
    finally:
        kind.grad = GRADIENT


def _read_in_classes(source: str) -> set[str]:
    """The names that bodies of classes look up, which Python does without asking the namespace."""
    try:
        tables = [symtable.symtable(source, "<cell>", "exec")]
    except SyntaxError:
        return set()
    for table in tables:  # grows on the way
        tables += table.get_children()
    symbols = [one for table in tables if table.get_type() == "class" for one in table.get_symbols()]
    return {one.get_name() for one in symbols if one.is_global()}


# --- What a cell changes ---------------------------------------------------------------------------------


def _looked_at(names: dict[str, Any]) -> tuple[dict[Any, Any], dict[Any, list[Any]]]:
    """What is in each name, and in each object that names lead to, by its id; and by the id who holds it."""
    contents: dict[Any, Any] = {SETTINGS: repr((np.get_printoptions(), np.geterr()))}
    holders: dict[Any, list[Any]] = {}
    left: list[Any] = []

    def put(key: Any, own: Any, parts: Iterable[Any]) -> None:
        contents[key] = [own]
        for part in parts:
            if (plain := _plain(part)) is None:
                holders.setdefault(id(part), []).append(key)
                left.append(part)
            contents[key].append(id(part) if plain is None else plain)

    for name, value in dict.items(names):
        if not name.startswith("__"):
            put(name, None, [value])
    alive = []  # so that no two objects have the same id
    while left:
        thing = left.pop()
        if id(thing) not in contents:
            alive.append(thing)
            put(id(thing), *_inside(thing))
            if isinstance(thing, Tensor):
                gradient = GRADIENT.__get__(thing)
                contents[SLOPE, id(thing)] = gradient if gradient is None else hash(gradient.tobytes())
                holders[SLOPE, id(thing)] = [id(thing)]
    return contents, holders


def _changed(before: Any, after: Any, holders: Any) -> tuple[set[str], set[str]]:
    """The names that are new, gone or lead to something that has changed; and those that lead to another gradient."""
    moved = [key for key in after if before.get(key, after[key]) != after[key]]
    slopes = [key for key in moved if isinstance(key, tuple)]
    new = [key for key in before.keys() ^ after.keys() if isinstance(key, str)]
    found = []
    for left in (new + [key for key in moved if key not in slopes], slopes):
        reached = set()
        while left:
            if (key := left.pop()) not in reached:
                reached.add(key)
                left += holders.get(key, ())
        found.append({key for key in reached if isinstance(key, str)})
    return found[0], found[1]


def _plain(part: Any) -> int | None:
    """A number that is another one for another value; None for an object that is to be looked into."""
    try:
        return None if isinstance(part, np.ndarray) else hash(marshal.dumps(part, 2))
    except ValueError:
        return None


def _inside(thing: Any) -> tuple[Any, Iterable[Any]]:
    """What an object is by itself, and what is in it."""
    match thing:
        case np.ndarray():
            own = (thing.shape, thing.dtype.str, hash(thing.tobytes()))
            return own, thing.ravel().tolist() if thing.dtype.hasobject else ()
        case Tensor():
            return None, [thing.data, thing.requires_grad, thing.node, thing.hooks]
        case Node():
            return thing.backward is None, ()
        case types.ModuleType():
            return None, ()
        case type():
            said = vars(thing).items() if thing.__module__ == "__main__" else ()
            # Which comes from looking
            return None, [value for name, value in said if name != "__slotnames__"]
        case types.FunctionType():
            closure = [cell.cell_contents for cell in thing.__closure__ or () if cell != types.CellType()]
            return id(thing.__code__), [*closure, thing.__defaults__, thing.__kwdefaults__, vars(thing)]
        case types.GeneratorType():
            frame = thing.gi_frame
            return frame and frame.f_lasti, [*frame.f_locals.values()] if frame else ()
        case tuple() | set() | frozenset():
            return None, [*thing, type(thing)]
    with contextlib.suppress(Exception):  # what `pickle` would keep of it
        _, given, state, items, pairs = (*thing.__reduce_ex__(4), None, None, None)[:5]
        parts = [*(items or ()), *itertools.chain(*(pairs or ()))]
        for one in given:
            parts += [*one, *one.values()] if type(one) is dict else [one]
        for one in state if isinstance(state, tuple) else [state]:
            named = one.items() if isinstance(one, dict) else [] if one is None else [("", one)]
            parts += [value for name, value in named if not _is_cache(type(thing), str(name))]
        return None, parts
    return None, ()


def _is_cache(kind: type, name: str) -> bool:
    """Whether an attribute is one by its name or its class; in a cell's own class it may hide what the cell reads."""
    lazy = name.startswith("_") or isinstance(getattr(kind, name, None), functools.cached_property)
    return lazy and kind.__module__ != "__main__"


# --- A page ----------------------------------------------------------------------------------------------


def recorded(sources: Mapping[str, str], folder: Path, may_fail: Iterable[str] = ()) -> dict[str, set[str]]:
    """For each cell by its id all cells that it needs, recorded in a process of its own that works in `folder`.

    sources: in the order of the page. may_fail: cells that may raise an error; RuntimeError names another one.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_recorded, dict(sources), folder, set(may_fail)).result()


def _recorded(sources: dict[str, str], folder: Path, may_fail: set[str]) -> dict[str, set[str]]:
    os.chdir(folder)
    os.environ["MINIGRAD_PROGRESS"] = "off"
    last = deque[dict[str, Any]](maxlen=1)
    recorder = Recorder(last.append)
    for cell, source in sources.items():
        with recorder.noting(cell, source):
            well = recorder.run(source)
        if not well and cell not in may_fail:
            raise RuntimeError(f"cell {cell} fails: " + "\n".join(last[0]["traceback"]))
    return recorder.needs


def direct(needs: Mapping[str, set[str]]) -> dict[str, list[str]]:
    """The same without those that another needed cell needs; what notebooks store. The inverse of `closed`."""
    return {
        cell: [one for one in needs if one in needed and not any(one in needs[other] for other in needed)]
        for cell, needed in needs.items()
    }


def closed(stored: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """For each cell, in the order of the page, all that it needs. Raises ValueError for an id not above."""
    found: dict[str, set[str]] = {}
    for cell, named in stored.items():
        if unknown := [one for one in named if one not in found]:
            raise ValueError(f"cell {cell} needs {unknown[0]}, which is no cell above it")
        found[cell] = set(named).union(*(found[one] for one in named))
    return {cell: [one for one in found if one in needed] for cell, needed in found.items()}


def split(source: str) -> tuple[str, str]:
    """A cell as what it only names, and the rest: imports, definitions, constants and small arrays of NumPy.

    What it names can run where the cell cannot. It is empty where there is no such statement, and has none with a name
    that the rest mentions above it. Each half has blank lines where the other's statements stand.
    """
    tree, lines = ast.parse(source), source.split("\n")
    names, rest = [""] * len(lines), list(lines)
    above: set[str] = set()
    for node in tree.body:
        if _only_names(node) and not _mentioned(node, at_once=True) & above:
            decorators = getattr(node, "decorator_list", [])
            first = min([node.lineno, *(one.lineno for one in decorators)]) - 1
            last = node.end_lineno or node.lineno
            names[first:last] = lines[first:last]
            rest[first:last] = [""] * (last - first)
            if node is tree.body[-1]:  # so that the statement above it does not show its value
                rest[first] = "pass"
        else:
            above |= _mentioned(node) - {"np", "math"}
    return "\n".join(names).rstrip(), "\n".join(rest).rstrip()


def _only_names(node: ast.stmt) -> bool:
    """Whether a statement computes nothing that takes time."""
    if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef):
        return True
    if not isinstance(node, ast.Assign) or not all(isinstance(one, ast.Name) for one in node.targets):
        return False
    calls = [ast.unparse(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)]
    return all(re.fullmatch(r"(np|math)(\.\w+)+", one) for one in calls)


def _mentioned(node: ast.AST, at_once: bool = False) -> set[str]:
    """The names in a statement; at_once: without those in the body of a function that it defines."""
    if at_once and isinstance(node, ast.FunctionDef):
        outside = [*node.decorator_list, node.args, node.returns or ast.Pass()]
        return {node.name}.union(*map(_mentioned, outside))
    found = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            found.add(one.id)
        elif isinstance(one, ast.FunctionDef | ast.ClassDef):
            found.add(one.name)
        elif isinstance(one, ast.alias):
            found.add((one.asname or one.name).partition(".")[0])
    return found
