"""The whole course in one file, solutions/bert.py, as a module: its Tensor is chapter `reverse_mode`'s engine."""

from __future__ import annotations

import functools
import importlib.util
import math
import sys
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from minigrad import Tensor


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


@functools.cache
def course_bert() -> ModuleType:
    """The course's file as a module, imported once."""
    spec = importlib.util.spec_from_file_location("bert_course.solutions.bert", course_file())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where `inspect` looks for the source of a class
    spec.loader.exec_module(module)
    return module


@functools.cache
def library_bert() -> ModuleType:
    """The same with the library's Tensor in the place of its own, in float64 as well, and the error function exact."""
    module = as_module(course_file().read_text(encoding="utf-8"))
    module.__dict__.update(Tensor=Tensor, erf=lambda x: np.vectorize(math.erf, otypes=[x.dtype])(x))
    return module


def small_batch(rng: np.random.Generator, V: int, lengths: tuple[int, ...], L: int) -> dict[str, np.ndarray]:
    """What `train_step` reads, drawn: texts of these lengths in (B, L), every third token chosen, pairs in turn."""
    places = np.tile(np.arange(L), (len(lengths), 1))  # (B, L)
    mask = (places < np.array(lengths)[:, None]).astype(np.int64)
    return {
        "input_ids": rng.integers(0, V, places.shape),
        "token_type_ids": (places > L // 2) * mask,
        "attention_mask": mask,
        "labels": np.where((places % 3 == 1) & (mask == 1), rng.integers(0, V, places.shape), -100),
        "next_sentence_label": np.arange(len(lengths)) % 2,
    }


def spread(model: dict[str, Any], rng: np.random.Generator, std: float, module: ModuleType) -> dict[str, Any]:
    """A model of `new_model` with normal numbers added to all of its parameters, so that every part matters."""
    for p in module.parameters(model):
        p.data = (p.data + std * rng.standard_normal(p.shape)).astype(p.data.dtype)
    return model
