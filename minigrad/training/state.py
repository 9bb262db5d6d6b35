"""What a checkpoint knows of its training, beside the model: `training.json`, and AdamW's moments."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from minigrad import backend
from minigrad.nn import Parameter
from minigrad.tensor import Array
from minigrad.training.fields import LARGEST_INTEGER, LARGEST_NUMBER
from minigrad.training.folders import OtherKindError, RunKind, step_of
from minigrad.training.reading import CheckpointError, read_json, read_safetensors

STATE, MOMENTS = "training.json", "optimizer.safetensors"


@dataclass(frozen=True)
class TrainingState:
    """`training.json`: what the next step needs beside weights and moments, and what a resumed run is compared with.

    optimizer_steps: fewer than steps, where loss scaling left some out. scaler, random, data, tally: the state of
    each. corpus, held_out_text: fingerprints of both parts of the text. held_out: the share that was held out,
    if known. evaluation: the last held-out figures, if any. environment: `folders.environment()`.
    """

    step: int
    optimizer_steps: int
    scaler: dict[str, Any]
    random: dict[str, int]
    data: dict[str, int]
    tally: dict[str, Any]
    arguments: dict[str, Any]
    corpus: str
    held_out: float | None
    held_out_text: str
    evaluation: dict[str, float]
    environment: dict[str, str]


def state_files(state: TrainingState, moments: Mapping[str, list[Array]]) -> dict[str, bytes]:
    """The files of a checkpoint beside the model's; moments: AdamW's two of each parameter, by its name."""
    arrays = {
        f"{name}.{i}": backend.to_numpy(array)
        for name, pair in moments.items()
        for i, array in enumerate(pair)
    }
    return {
        MOMENTS: save(arrays),
        STATE: (json.dumps(dataclasses.asdict(state), indent=2) + "\n").encode(),
    }


def read_state(checkpoint: Path, kind: RunKind) -> TrainingState:
    """The state of the run in a checkpoint, each value checked.

    Raises CheckpointError naming the one that is wrong, OtherKindError for a run of another kind.
    """
    path = checkpoint / STATE
    values = read_json(path)
    found = values.get("arguments")
    if isinstance(found, dict):
        for other in RunKind.known:
            if other is not kind and {**_added(other), **found}.keys() == _defaults(other).keys():
                raise OtherKindError(f"{path} is of a run of {other.name}, not of {kind.name}")
        values["arguments"] = {**_added(kind), **found}
    _check(path, values, _checks(kind))
    if values["evaluation"]:
        _check(path, values["evaluation"], dict.fromkeys(kind.scores, NUMBER), "evaluation.")
    state = TrainingState(**{field.name: values[field.name] for field in dataclasses.fields(TrainingState)})
    try:
        arguments = kind.arguments(**{name: state.arguments[name] for name in _defaults(kind)})
    except ValueError as error:
        raise CheckpointError(f"{path}: arguments: {error}") from None
    if re.fullmatch(r"checkpoint-[0-9]+", checkpoint.name) and state.step != step_of(checkpoint):
        raise CheckpointError(
            f"{path}: step: expected {step_of(checkpoint)}, as its folder says, got {state.step}"
        )
    most = getattr(arguments, "steps", state.step)  # fine-tuning counts epochs, which are as long as its text
    if state.step > most:
        raise CheckpointError(f"{path}: step: expected at most {most}, got {state.step}")
    fewest = 0 if arguments.precision == "float16" else state.step  # only loss scaling leaves steps out
    if not fewest <= state.optimizer_steps <= state.step:
        raise CheckpointError(
            f"{path}: optimizer_steps: expected {fewest} … {state.step}, got {state.optimizer_steps}"
        )
    return state


def read_moments(checkpoint: Path, parameters: Mapping[str, Parameter]) -> list[list[np.ndarray]]:
    """AdamW's two moments of each parameter, in their order. Raises CheckpointError naming what is wrong."""
    path = checkpoint / MOMENTS
    found = read_safetensors(path)
    moments = []
    for name, parameter in parameters.items():
        pair = [_moment(path, found.pop(f"{name}.{i}", None), f"{name}.{i}", parameter) for i in range(2)]
        if (pair[1] < 0).any():  # the mean of squares
            raise CheckpointError(f"{path} has numbers for '{name}.1' that are no moments")
        moments.append(pair)
    if found:
        raise CheckpointError(f"{path} has moments for what the model has not: {sorted(found)[0]!r}")
    return moments


def _moment(path: Path, array: np.ndarray | None, name: str, parameter: Parameter) -> np.ndarray:
    if array is None:
        raise CheckpointError(f"{path} has no moments for '{name}'")
    if array.shape != tuple(parameter.shape):
        raise CheckpointError(f"{path} has moments of other shapes: {array.shape} for '{name}'")
    return array


def differences(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """What differs between the checkpoint and this run, a text for each name."""
    return [
        f"{name} is {there.get(name)} there, {here.get(name)} here"
        for name in sorted({*there, *here})
        if there.get(name) != here.get(name)
    ]


# --- Checks ----------------------------------------------------------------------------------------------

Check = tuple[str, Callable[[Any], bool]]  # what is expected, in words, and whether a value is that
Checks = dict[str, "Check | Checks"]


def _is_number(value: Any) -> bool:
    """Whether it is a finite number. (True and False are integers to Python; NaN is no larger than anything.)"""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_NUMBER


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_INTEGER


WHOLE: Check = ("an integer of at least 0", _is_whole)
NUMBER: Check = ("a finite number", _is_number)
POSITIVE: Check = ("a positive number", lambda value: _is_number(value) and value > 0)
TEXT: Check = ("a text", lambda value: isinstance(value, str))
OBJECT: Check = ("an object", lambda value: isinstance(value, dict))
SHARE: Check = (
    "a share of 0 … 1, or null",
    lambda value: value is None or (_is_number(value) and 0 <= value <= 1),
)

YES_OR_NO: Check = ("true or false", lambda value: isinstance(value, bool))

BY_TYPE: dict[type, Check] = {bool: YES_OR_NO, int: WHOLE, float: NUMBER, str: TEXT}


def _defaults(kind: RunKind) -> dict[str, Any]:
    """The settings of a kind of run, and their defaults."""
    return {field.name: field.default for field in dataclasses.fields(kind.arguments)}


def _added(kind: RunKind) -> dict[str, Any]:
    """Those that earlier versions did not have."""
    lines = dataclasses.fields(kind.arguments)
    return {line.name: line.default for line in lines if line.metadata["added"]}


def _checks(kind: RunKind) -> Checks:
    """What `training.json` has to be, in the checkpoints of a kind of run."""

    def alike(values: dict[str, Any]) -> Checks:
        return {name: BY_TYPE[type(value)] for name, value in values.items()}

    return {
        "step": WHOLE,
        "optimizer_steps": WHOLE,
        "scaler": {"scale": POSITIVE, "steps_since": WHOLE},
        "random": {"seed": WHOLE, "draws": WHOLE},
        "data": {"epoch": WHOLE, "index": WHOLE},
        "tally": alike(kind.tally().state_dict()),
        "arguments": alike(_defaults(kind)),
        "corpus": TEXT,
        "held_out": SHARE,
        "held_out_text": TEXT,
        "evaluation": OBJECT,
        "environment": (
            "an object of texts",
            lambda value: isinstance(value, dict) and all(isinstance(text, str) for text in value.values()),
        ),
    }


def _check(path: Path, values: dict[str, Any], checks: Checks, within: str = "") -> None:
    for name, check in checks.items():
        expected, fits = check if isinstance(check, tuple) else OBJECT
        if name not in values:
            raise CheckpointError(f"{path}: {within}{name}: is missing; was it saved by another version?")
        if not fits(values[name]):
            got = json.dumps(values[name])
            got = got if len(got) <= 40 else got[:40] + " …"
            raise CheckpointError(f"{path}: {within}{name}: expected {expected}, got {got}")
        if isinstance(check, dict):
            _check(path, values[name], check, f"{within}{name}.")
