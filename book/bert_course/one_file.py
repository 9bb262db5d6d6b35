"""The whole course in one file, solutions/bert.py: found, run as a module, and given a model's weights."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

from bert_course.parts import by_part


def course_file() -> Path:
    """Where solutions/bert.py is: in the repository, or inside the installed package.

    Raises FileNotFoundError where it is in neither.
    """
    package = Path(str(files("bert_course")))
    places = (package.parents[1] / "solutions" / "bert.py", package / "solutions" / "bert.py")
    for place in places:
        if place.exists():
            return place
    raise FileNotFoundError(f"the course's bert.py is in neither {places[0]} nor {places[1]}")


def as_module(text: str, name: str = "bert") -> ModuleType:
    """The module that such a file's text makes; it is not put among Python's own."""
    module = ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return module


def model_of(weights: Mapping[str, Any], h: int, eps: float, module: ModuleType) -> dict[str, Any]:
    """The model that a file's functions take, with its own Tensors, from the weights of a BertForPreTraining.

    weights: arrays by Hugging Face's names, matrices (in, out). h: the number of heads. eps: of every LayerNorm.
    """

    def tensors(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: tensors(one) for name, one in part.items()}
        if isinstance(part, list | tuple):
            return type(part)(map(tensors, part))
        return module.Tensor(part.copy(), requires_grad=True)

    return {**tensors(by_part(weights)), "h": h, "eps": eps}
