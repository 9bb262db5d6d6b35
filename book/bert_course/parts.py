"""What a learner has written of BERT: `all_parts` takes it out of their notebooks.

The exercises of chapters `arrays` to `pretraining` are an engine, its optimiser, the parts of BERT and its losses.
`PARTS` is the one list of their names and of what goes in and out; the last exercise of chapter `encoder` puts the
learner's own BERT together, chapter `pretraining` trains it.

A notebook's cells with the tag `mine` are its parts and the imports that they need. They are run in a namespace of
their own, and so are cells that the learner has added and that define something; the other cells are not.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import dis
import inspect
import io
import json
import linecache
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any, NamedTuple

from bert_course.check.exercise import EXERCISES
from bert_course.check.outcome import has_gap

TAG = "mine"
NOT_YET = "yours are not there yet"
DEFINES = (ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Assign)
MADE_WITH = "made_with"  # in an exercise's metadata: its fingerprint when it was made


class Part(NamedTuple):
    """A function that an exercise asks for.

    chapter: whose exercise it is. name, parameters: of the function. shapes: what goes in, and what comes out.
    """

    chapter: str
    name: str
    parameters: tuple[str, ...]
    shapes: str


# L tokens, h heads, d_k = d_model / h; "…" is any number of axes. Weights are (in, out), masks 1 for a token and 0 for
# padding. Floats are Tensors, and the result has their dtype; ids, segments, masks and labels are arrays.
PARTS: tuple[Part, ...] = (
    Part(
        "arrays",
        "unbroadcast",
        ("dy", "shape"),
        "an array, a shape that broadcasts to its own -> an array of that shape: the sum over the copies",
    ),
    Part(
        "reverse_mode",
        "backward",
        ("output",),
        "a Tensor of the course's file -> nothing: adds to .grad of each leaf behind it",
    ),
    Part(
        "optimisers",
        "adam_step",
        ("theta", "g", "m", "v", "t", "lr", "beta1", "beta2", "eps"),
        "four arrays of one shape, numbers -> theta, m, v",
    ),
    Part(
        "optimisers",
        "clip_gradients",
        ("gradients", "max_norm"),
        "a list of arrays, a number -> such a list, the joint norm before",
    ),
    Part(
        "wordpiece",
        "split_word",
        ("word", "vocabulary"),
        "a string, a set or list of pieces -> the list of the word's pieces, or ['[UNK]']",
    ),
    Part(
        "embeddings",
        "pack",
        ("first", "second", "length"),
        "two lists of pieces, a number -> three lists of that length: the pieces with [CLS], [SEP] and [PAD], "
        "token_type_ids, attention_mask",
    ),
    Part(
        "embeddings",
        "embed",
        ("input_ids", "token_type_ids", "W_T", "W_S", "W_P"),
        "(B, L), (B, L), (V, d_model), (2, d_model), (512, d_model) -> (B, L, d_model)",
    ),
    Part(
        "embeddings",
        "look_up",
        ("W", "ids"),
        "(V, d_model), (…) of whole numbers -> (…, d_model): an operation, which is W[ids]",
    ),
    Part("one_head", "softmax", ("S",), "(…, n) -> (…, n): an operation, over the last axis"),
    Part(
        "many_heads",
        "multi_head",
        ("X", "weights", "h", "mask"),
        "(B, L, d_model), a dict of W_Q, b_Q, W_K, b_K, W_V, b_V, W_O, b_O, a number, what is added to the scores "
        "(B, 1, 1, L) -> (B, L, d_model)",
    ),
    Part(
        "masking",
        "padding_mask",
        ("attention_mask", "dtype"),
        "(B, L) of 1 and 0, float32 or float64 -> (B, 1, 1, L) in that dtype, to be added to the scores",
    ),
    Part(
        "feed_forward",
        "feed_forward",
        ("X", "W_1", "b_1", "W_2", "b_2"),
        "(…, d_model), (d_model, d_ff), (d_ff,), (d_ff, d_model), (d_model,) -> (…, d_model)",
    ),
    Part("feed_forward", "gelu", ("H",), "(…) -> (…): an operation, in its erf form"),
    Part(
        "add_norm",
        "add_norm",
        ("x", "y", "gain", "bias", "eps"),
        "(…, d_model), (…, d_model), (d_model,), (d_model,), a number -> (…, d_model): LayerNorm of x + y",
    ),
    Part(
        "add_norm",
        "layer_norm",
        ("x", "gain", "bias", "eps"),
        "(…, d_model), (d_model,), (d_model,), a number -> (…, d_model): an operation",
    ),
    Part(
        "encoder", "pool", ("X", "W", "b"), "(B, L, d_model), (d_model, d_model), (d_model,) -> (B, d_model)"
    ),
    Part(
        "encoder",
        "bert",
        ("batch", "parts", "model"),
        "a dict of arrays (B, L), the functions above, a dict of weights -> (B, L, d_model), (B, d_model)",
    ),
    Part("mlm", "cross_entropy", ("Y", "true"), "logits (n, V), ids (n,) -> a number of nats: an operation"),
    Part(
        "nsp",
        "make_pair",
        ("documents", "number", "start", "middle", "end", "is_next", "other", "place"),
        "documents of sentences of ids, numbers -> ids of A, ids of B, the label",
    ),
    Part(
        "pretraining",
        "train_step",
        ("batch", "parts", "model", "lr"),
        "a dict of arrays, functions, a dict of weights, a number -> two losses; changes the model",
    ),
)


def by_part(weights: Mapping[str, Any]) -> dict[str, Any]:
    """A BertForPreTraining's weights, by Hugging Face's names, sorted into the parts that the formulas have.

    weights: arrays or Tensors. Returns W_T, W_S, W_P; norm, the (gain, bias) on the embeddings; layers, of each a
    dict with attention (a dict of W_Q, b_Q, … W_O, b_O), attention_norm and output_norm (gain, bias) and feed_forward
    (W_1, b_1, W_2, b_2); pooler (W, b); and of the heads, where there are any, transform (W, b, gain, bias and the
    decoder's bias) and seq_relationship (W, b).
    """

    def pair(name: str) -> tuple[Any, Any]:
        return weights[f"bert.{name}.weight"], weights[f"bert.{name}.bias"]

    def layer(number: int) -> dict[str, Any]:
        here = f"encoder.layer.{number}"
        names = {"Q": "self.query", "K": "self.key", "V": "self.value", "O": "output.dense"}
        attention = {}
        for letter, name in names.items():
            attention[f"W_{letter}"], attention[f"b_{letter}"] = pair(f"{here}.attention.{name}")
        return {
            "attention": attention,
            "attention_norm": pair(f"{here}.attention.output.LayerNorm"),
            "feed_forward": (*pair(f"{here}.intermediate.dense"), *pair(f"{here}.output.dense")),
            "output_norm": pair(f"{here}.output.LayerNorm"),
        }

    number = 0
    layers = []
    while f"bert.encoder.layer.{number}.attention.self.query.weight" in weights:
        layers.append(layer(number))
        number += 1
    heads: dict[str, Any] = {}
    if "cls.predictions.bias" in weights:
        dense, norm = (f"cls.predictions.transform.{name}" for name in ("dense", "LayerNorm"))
        transform = (
            f"{dense}.weight",
            f"{dense}.bias",
            f"{norm}.weight",
            f"{norm}.bias",
            "cls.predictions.bias",
        )
        heads["transform"] = tuple(weights[name] for name in transform)
        heads["seq_relationship"] = (
            weights["cls.seq_relationship.weight"],
            weights["cls.seq_relationship.bias"],
        )
    tables = {"W_T": "word", "W_S": "token_type", "W_P": "position"}
    return {
        **{letter: weights[f"bert.embeddings.{name}_embeddings.weight"] for letter, name in tables.items()},
        "norm": pair("embeddings.LayerNorm"),
        "layers": layers,
        "pooler": pair("pooler.dense"),
        **heads,
    }


@dataclass
class Taken:
    """What the notebooks in a folder have of PARTS: functions that are right, and of the others why there is none.

    remarks: what else there is to say.
    """

    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def tell(self) -> None:
        """Say whose each part is, and why."""
        waiting = [name for name, fault in self.faults.items() if fault == NOT_YET]
        if len(waiting) == len(PARTS) > 1:
            print(f"all {len(waiting)} functions are the course's; {NOT_YET}")
            waiting = []
        for whose, names in (("yours", list(self.functions)), (f"the course's; {NOT_YET}", waiting)):
            if names:
                print(textwrap.fill(f"{whose}: {', '.join(names)}", 78, subsequent_indent="    "))
        for name, fault in self.faults.items():
            if fault != NOT_YET:
                print(f"{name}: the course's; {fault}")
        print(*self.remarks, sep="\n", end="\n" * bool(self.remarks))


def all_parts(folder: str | Path = "..", **here: Callable[..., Any]) -> SimpleNamespace:
    """All PARTS: those of the exercises in a folder, the course's where one is missing or wrong; says whose each is.

    folder: of the exercises; beside the chapters that `make lab` copies it is the one above. here: functions of this
    notebook, which may not have been saved.
    """
    found = taken(Path(folder), here)
    found.tell()
    return SimpleNamespace(**{name: EXERCISES[name].answer for name in found.faults}, **found.functions)


def taken(folder: Path, here: Mapping[str, Callable[..., Any]]) -> Taken:
    """The parts in a folder's notebooks, of which a function at hand takes the place."""
    found = Taken()
    for chapter in dict.fromkeys(part.chapter for part in PARTS):
        path = _notebook_of(chapter, folder.resolve())
        scope = {**_defined(chapter, path, found), **here}
        for part in (one for one in PARTS if one.chapter == chapter):
            function: Any = scope.get(part.name)
            if fault := _fault(part, function):
                found.faults[part.name] = fault
            else:
                found.functions[part.name] = function
    return found


def _defined(chapter: str, path: Path, found: Taken) -> dict[str, Any]:
    """What the cells with answers in a notebook define; nothing where there is none. What is wrong with it is said."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cells = [(cell["id"], _source(cell)) for cell in notebook["cells"] if _is_mine(cell)]
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        found.remarks.append(f"{path.name} cannot be read as a notebook: {type(error).__name__}: {error}")
        return {}
    if _is_older(notebook, chapter, path):
        found.remarks.append(f"{path.name} is older than its exercise: make lab puts today's beside it")
    return _run(cells, chapter, found)


def _notebook_of(chapter: str, folder: Path) -> Path:
    """A chapter's exercises in a folder: under the chapter's name, or, as `make lab` copies them, under any.

    Of several the one with the shortest name: those of newer versions are longer.
    """
    path = folder / f"{chapter}.ipynb"
    copies = [] if path.exists() else [one for one in folder.glob("*.ipynb") if chapter_of(one) == chapter]
    return min(copies, key=lambda one: (len(one.name), one.name), default=path)


def chapter_of(path: Path) -> str | None:
    """The chapter whose exercises a notebook has, as its cells' metadata say; None where they say nothing."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        names = [cell.get("metadata", {}).get("course", {}).get("exercise") for cell in cells]
        found = [EXERCISES[name].chapter for name in names if name in EXERCISES]
    except (ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError):
        return None
    return max(found, key=found.count, default=None)


def _source(cell: dict[str, Any]) -> str:
    """The text of a cell, which a file holds as one string or as a list of lines."""
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


def _is_mine(cell: dict[str, Any]) -> bool:
    """Whether it has the tag, or is a cell that the learner has added and that does no more than define."""
    metadata = cell.get("metadata", {})
    if cell["cell_type"] != "code" or TAG in metadata.get("tags", []):
        return cell["cell_type"] == "code"
    if "course" in metadata:
        return False
    try:
        statements = ast.parse(_source(cell)).body
    except (SyntaxError, ValueError):
        return False
    return bool(statements) and all(isinstance(one, DEFINES) for one in statements)


def _is_older(notebook: dict[str, Any], chapter: str, path: Path) -> bool:
    """Whether the exercise that this is a copy of has changed since."""
    metadata = notebook.get("metadata", {})
    made_with = metadata.get(MADE_WITH)
    try:
        today = json.loads(
            (path.parent.parent / "exercises" / f"{chapter}.ipynb").read_text(encoding="utf-8")
        )
        return bool(made_with) and today["metadata"][MADE_WITH] != made_with
    except (OSError, ValueError, KeyError, TypeError):  # no exercises there to compare with
        return False


def _run(cells: list[tuple[str, str]], chapter: str, found: Taken) -> dict[str, Any]:
    """Run the cells one after the other, and return what they define; a cell that fails is said."""
    scope: dict[str, Any] = {"__name__": chapter}
    for name, source in cells:
        file = f"<{chapter}, cell {name}>"
        # For tracebacks, and checks
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # what a cell tries out below its answer
                exec(compile(source, file, "exec"), scope)
        except Exception as error:
            first = next((line for line in source.split("\n") if line.strip()), "")
            words = f"the cell that begins with {first!r} fails: {type(error).__name__}: {error}"
            found.remarks.append(f"{chapter}: {words}")
    return scope


def _fault(part: Part, function: Any) -> str | None:
    """Why what has a part's name is no answer; None if it is one."""
    if not isinstance(function, FunctionType) or has_gap(function):
        return NOT_YET
    parameters = tuple(inspect.signature(function).parameters)
    if parameters[: len(part.parameters)] != part.parameters:
        return f"yours takes ({', '.join(parameters)}), and should take ({', '.join(part.parameters)})"
    if unknown := sorted(set(globals_of(function.__code__)) - set(function.__globals__) - set(dir(builtins))):
        return f"yours uses {', '.join(unknown)}, from another cell: define that in the same cell"
    if not EXERCISES[part.name].accepts(function):
        return f"check.{part.name} finds a mistake in yours"
    return None


def globals_of(code: CodeType) -> Iterator[str]:
    """The global names that a function's code reads, with those of the functions inside it."""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "LOAD_GLOBAL":
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from globals_of(constant)
