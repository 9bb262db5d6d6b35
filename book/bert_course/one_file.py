"""The whole course in one file, solutions/bert.py; and the same file out of a learner's own answers.

    python -m bert_course.one_file FOLDER [FILE] [TEXT]

FOLDER has the learner's exercises, as `make lab` copies them. Writes FILE, by default my_bert.py, and trains it on a
TEXT. What no exercise asks for, and what is missing or wrong, comes from the course's file, and a comment says so.
"""

from __future__ import annotations

import ast
import base64
import functools
import inspect
import re
import runpy
import sys
import textwrap
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from bert_course.common.engine import as_module, course_file, small_batch, spread
from bert_course.parts import by_part, globals_of, taken
from minigrad import backend
from minigrad.files import write_atomic

FROM_THE_COURSE = "# from the course"
ONES_OWN = "# yours"
LIKE = 1e-4  # how near two steps on the learner's engine come to the course's, in float32


def model_of(weights: Mapping[str, Any], h: int, eps: float, module: ModuleType) -> dict[str, Any]:
    """The model that a file's functions take, with its own Tensors, from the weights of a BertForPreTraining.

    weights: arrays by Hugging Face's names, matrices (in, out). h: the number of heads. eps: of every LayerNorm.
    """

    def tensors(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: tensors(one) for name, one in part.items()}
        if isinstance(part, list | tuple):
            return type(part)(map(tensors, part))
        return module.Tensor(np.array(backend.to_numpy(part)), requires_grad=True)

    model = {**tensors(by_part(weights)), "h": h, "eps": eps, "t": 0}
    means = [[np.zeros_like(p.data), np.zeros_like(p.data)] for p in module.parameters(model)]
    return model | {"means": means}


# --- A learner's -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Download:
    """A link that saves a text as a file."""

    name: str
    text: str

    def _repr_html_(self) -> str:
        content = base64.b64encode(self.text.encode()).decode()
        return f'<a download="{self.name}" href="data:text/x-python;base64,{content}">{self!r}</a>'

    def __repr__(self) -> str:
        return f"{self.name}, {self.text.count(chr(10))} lines"


@dataclass(frozen=True)
class OwnFile:
    """A file with a learner's answers in it: its text, and the names of the functions that are the learner's."""

    text: str
    own: tuple[str, ...]

    @functools.cached_property
    def module(self) -> ModuleType:
        """What the file defines."""
        return as_module(self.text, "my_bert")

    def download(self) -> Download:
        """A link in the notebook, or the page, that saves the file."""
        return Download("my_bert.py", self.text)


def own_file(folder: str | Path = ".", **here: Callable[..., Any]) -> OwnFile:
    """The course's file with the answers in a folder of exercises put in, and a line on each that is not; says them.

    here: functions of this notebook, which may not have been saved. An answer is put in where its check accepts it and
    two steps of training, on the engine of the file, do what they should.
    """
    text = _with_names(course_file().read_text(encoding="utf-8"))
    right = two_steps(text)
    found = taken(Path(folder), here)
    for name, function in list(found.functions.items()):
        try:
            new = _with(text, name, function)
            apart = float(np.abs(two_steps(new) - right).max())
            fault = None if apart < LIKE else f"trains otherwise, by {apart:.2g}"
        except Exception as error:
            fault = f"raises {type(error).__name__}: {error}"
        if fault is None:
            text = new
        else:
            found.faults[name] = f"on the engine of the file yours {fault}"
            del found.functions[name]
    found.tell()
    return OwnFile(_marked(text, found.functions), tuple(found.functions))


def _with(text: str, name: str, function: Callable[..., Any]) -> str:
    """The file with a learner's function in the place of its own. Raises what keeps it from going there."""
    source = "\n\n".join(_sources(function, set(as_module(text).__dict__)))
    (node,) = (one for one in ast.parse(text).body if getattr(one, "name", "") == name)
    lines = text.split("\n")
    assert isinstance(node, ast.FunctionDef)
    return "\n".join([*lines[: node.lineno - 1], _on_the_file(source, name), *lines[node.end_lineno :]])


def _sources(function: Callable[..., Any], names: set[str], known: tuple[str, ...] = ()) -> Iterator[str]:
    """The source of a function, after that of the other functions of its notebook which it calls."""
    assert isinstance(function, FunctionType)
    for name in dict.fromkeys(globals_of(function.__code__)):
        other = function.__globals__.get(name)
        # what begins with two lines, whoever runs the cells may have put there
        if name in names or name in known or other is None or name.startswith("__"):
            continue
        if isinstance(other, ModuleType):
            yield f"import {other.__name__} as {name}"
        elif isinstance(other, FunctionType):
            yield from _sources(other, names, (*known, function.__name__, name))
        elif isinstance(other, bool | int | float | str | tuple):
            yield f"{name} = {other!r}"
        else:
            raise TypeError(
                f"{name}, a {type(other).__name__}, cannot go along: define it inside of the function"
            )
    yield textwrap.dedent(inspect.getsource(function)).rstrip()


def _on_the_file(source: str, name: str) -> str:
    """A learner's source as it stands in the file, where `parts` is for all functions, and no argument of this one."""
    return re.sub(rf"^(def {name}\([^)]*?)\bparts,\s*", r"\1", source, flags=re.MULTILINE)


def _with_names(text: str) -> str:
    """The course's file with the names under which a notebook has its functions: parts.embed, ops.softmax."""
    before, start, after = text.partition('if __name__ == "__main__":')
    text = f"{before}parts = ops = SimpleNamespace(**globals())  # parts.embed is embed\n\n{start}{after}"
    return text.replace("\nimport numpy", "\nfrom types import SimpleNamespace\n\nimport numpy", 1)


def _marked(text: str, own: Container[str]) -> str:
    """The file with a comment above each function and class that says whose it is."""
    lines = text.replace("python solutions/bert.py", "python my_bert.py", 1).split("\n")
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for node in reversed(nodes):
        lines.insert(node.lineno - 1, ONES_OWN if node.name in own else FROM_THE_COURSE)
    return "\n".join(lines)


def two_steps(text: str) -> np.ndarray:
    """Both losses of two steps with a file, and the parameters that they leave, on a model of hand's size."""
    module, rng = as_module(text), np.random.default_rng(0)
    model = spread(module.new_model(13, d=4, h=2, N=1, L_max=6), rng, 0.3, module)
    found = [module.train_step(small_batch(rng, 13, (6, 4, 5), 6), model, 1e-2) for _ in range(2)]
    return np.concatenate([np.ravel(found), *(p.data.ravel() for p in module.parameters(model))])


def main(arguments: list[str]) -> None:
    """The command: see the top of this file."""
    if not 1 <= len(arguments) <= 3:
        sys.exit(__doc__)
    if not Path(arguments[0]).is_dir():
        sys.exit(f"{arguments[0]} is no folder: expected one with exercises, as make lab copies them")
    file = Path(arguments[1] if len(arguments) > 1 else "my_bert.py")
    write_atomic(file, own_file(arguments[0]).text.encode())
    print(f"written: {file}")
    if len(arguments) == 3:
        sys.argv = [str(file), arguments[2]]
        runpy.run_path(str(file), run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
