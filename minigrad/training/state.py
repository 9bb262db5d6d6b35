"""What a checkpoint stores of its training, beside the model: `training.json`, and AdamW's moments."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from minigrad import backend
from minigrad.nn import Parameter
from minigrad.tensor import Array
from minigrad.training.fields import fault
from minigrad.training.folders import OtherKindError, RunKind, step_of
from minigrad.training.reading import CheckpointError, read_json, read_safetensors

STATE, MOMENTS = "training.json", "optimizer.safetensors"


@dataclass(frozen=True)
class TrainingState:
    """`training.json`: what the next step needs beside weights and moments, and what a resumed run is compared with.

    optimizer_steps: fewer than steps, where loss scaling left some out. scaler, random, data, tally: the state of
    each. shares: in how many each process computed its part of a batch. corpus, held_out_text: fingerprints of both
    parts of the text. held_out: the share that was held out, if known. evaluation: the last held-out figures, if any.
    environment: `folders.environment()`.
    """

    step: int
    optimizer_steps: int
    scaler: dict[str, Any]
    random: dict[str, int]
    data: dict[str, int]
    tally: dict[str, Any]
    arguments: dict[str, Any]
    shares: int
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
    return {MOMENTS: save(arrays), STATE: (json.dumps(dataclasses.asdict(state), indent=2) + "\n").encode()}


def read_state(checkpoint: Path, kind: RunKind) -> TrainingState:
    """The state of the run in a checkpoint, each value checked.

    Raises CheckpointError naming the one that is wrong, OtherKindError for a run of another kind.
    """
    path = checkpoint / STATE
    values = read_json(path)
    found = values.get("arguments")
    if isinstance(found, dict):
        for other in RunKind.known:
            if other.name != kind.name and found.keys() == _defaults(other).keys():
                raise OtherKindError(f"{path} is of a run of {other.name}, not of {kind.name}")
    _check(path, values, _table(kind))
    _check(path, values["environment"], dict.fromkeys(values["environment"], str), "environment.")
    if values["evaluation"]:
        _check(path, values["evaluation"], dict.fromkeys(kind.scores, float), "evaluation.")
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

# What an object in `training.json` has to have: by name a kind of value, one with its bounds, or an object's table.
Table = Mapping[str, Any]


def _defaults(kind: RunKind) -> dict[str, Any]:
    """The settings of a kind of run, and their defaults."""
    return {field.name: field.default for field in dataclasses.fields(kind.arguments)}


def _table(kind: RunKind) -> Table:
    """What `training.json` has to be, in the checkpoints of a kind of run."""

    def alike(values: Mapping[str, Any]) -> Table:
        return {name: type(value) for name, value in values.items()}

    return {
        "step": int,
        "optimizer_steps": int,
        "scaler": {"scale": (float, {"positive": True}), "steps_since": int},
        "random": {"seed": int, "draws": int},
        "data": {"epoch": int, "index": int},
        "tally": alike(kind.tally().state_dict()),
        "arguments": alike(_defaults(kind)),
        "shares": (int, {"at_least": 1}),
        "corpus": str,
        "held_out": (float, {"at_least": 0, "at_most": 1, "or_null": True}),
        "held_out_text": str,
        "evaluation": dict,
        "environment": dict,
    }


def _check(path: Path, values: Mapping[str, Any], table: Table, within: str = "") -> None:
    """Raise CheckpointError naming the first value that is not what its table says."""
    for name, entry in table.items():
        inner = entry if isinstance(entry, Mapping) else None
        kind, bounds = entry if isinstance(entry, tuple) else (dict if inner else entry, {})
        if kind is int:
            bounds = {"at_least": 0, **bounds}
        if name not in values:
            raise CheckpointError(f"{path}: {within}{name}: is missing; was it saved by another version?")
        value = values[name]
        expected = None if value is None and "or_null" in bounds else fault(value, kind, bounds)
        if expected:
            got = json.dumps(value)
            got = got if len(got) <= 40 else got[:40] + " …"
            raise CheckpointError(f"{path}: {within}{name}: expected {expected}, got {got}")
        if inner:
            _check(path, value, inner, f"{within}{name}.")
