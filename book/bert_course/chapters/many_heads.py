"""What the chapter shows: two heads step by step, the ledger of a real forward pass, and heads taken out of a model."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np

from bert_course.common.figures import Picture
from bert_course.common.flow import Box, Flow, Step, View, flow
from bert_course.common.palette import colour
from bert_course.common.pencil import box, words
from bert_course.common.small_model import hide_each, small_model, word_losses
from bert_course.common.widgets import Frame, svg
from minigrad import Tensor, backend, no_grad, random
from minigrad.bert.attention import BertAttention
from minigrad.bert.config import BertConfig

# --- Four heads of a trained model ------------------------------------------------------------------------


def all_weights(text: str) -> tuple[list[str], list[np.ndarray]]:
    """The stored model's tokens of a text, and for each layer the attention weights of its heads, (h, L, L)."""
    model, tokenizer = small_model()
    ids = np.array([tokenizer.encode(text).input_ids])  # (1, L)
    with no_grad():
        layers = model.bert(ids, output_attentions=True).attentions
    return [tokenizer.id_to_token(i) for i in ids[0]], [backend.to_numpy(A.data)[0] for A in layers]


def head_maps(text: str) -> Picture:
    """The attention weights of all heads of the stored model on one text, side by side."""
    tokens, layers = all_weights(text)
    side, left, gap, names, parts = 13, 82, 14, [], []
    span = side * len(tokens)
    for layer, heads in enumerate(layers):
        top = 24 + layer * (span + 34)
        parts += [
            words(left - 6, top + side * i + 11, token, 12, anchor="end") for i, token in enumerate(tokens)
        ]
        for head, A in enumerate(heads):
            x = left + head * (span + gap)
            names.append(f"{layer + 1}-{head + 1}")
            parts.append(words(x + span / 2, top - 7, f"head {names[-1]}", 14))
            parts.append(box(x, top, span, span, "grid"))
            parts += [
                f'<rect x="{x + side * j}" y="{top + side * i}" width="{side}" height="{side}" '
                f'fill="{colour("weight")}" fill-opacity="{weight:.2f}"/>'
                for (i, j), weight in np.ndenumerate(A)
                if weight >= 0.01
            ]
    alt = (
        f"The attention weights of heads {', '.join(names)} on one sentence of {len(tokens)} tokens, a square each. "
        "The dark cells are in other places in each: beside the diagonal in 1-2, in single columns in 2-2."
    )
    width = left + len(layers[0]) * (span + gap)
    return Picture(svg(width, 24 + len(layers) * (span + 34) - 26, parts), alt, 540)


# --- Two heads by hand ------------------------------------------------------------------------------------


def two_heads(X: np.ndarray, heads: Sequence[Sequence[np.ndarray]], W_O: np.ndarray) -> Flow:
    """The page's two heads step by step: the path of *bites* (row 1) first, then all rows; X can be edited.

    X (3, 4); heads: W_Q, W_K, W_V of each of two, (4, 2); W_O (4, 4).
    """
    boxes = [Box("X", X, "token", "tokens", "features")]
    for i, matrices in enumerate(heads, 1):
        roles = ("query", "key", "value")
        boxes += [Box(f"W_{name}{i}", W, role) for name, W, role in zip("QKV", matrices, roles, strict=True)]
    for i in (1, 2):
        boxes += [
            Box(f"Q{i}", f"X @ W_Q{i}", "query", "tokens"),
            Box(f"K{i}", f"X @ W_K{i}", "key", "tokens"),
            Box(f"V{i}", f"X @ W_V{i}", "value", "tokens"),
            Box(f"A{i}", f"softmax(Q{i} @ K{i}.T / sqrt(2))", "weight", "tokens", "tokens"),
            Box(f"Z{i}", f"A{i} @ V{i}", "value", "tokens"),
        ]
    # put two columns into the first two of four, or the last two
    left, right = np.eye(2, 4), np.eye(2, 4, k=2)
    boxes += [
        Box("left", left),
        Box("right", right),
        Box("Z", "Z1 @ left + Z2 @ right", "value", "tokens"),
        Box("W_O", W_O, "weight"),
        Box("Y", "Z @ W_O", "token", "tokens", "features"),
    ]

    def bites(name: str) -> View:
        return View(name, only=[1], lit=[1])

    steps = [
        Step("What comes in", [["X"]], "X has a row for each token. Both heads get all of X."),
        *(
            Step(
                f"Head {i} asks",
                [
                    [View("X", lit=[1]), "·", f"W_Q{i}", "=", bites(f"Q{i}")],
                    ["X", "·", f"W_K{i}", "=", f"K{i}"],
                ],
                f"The query of bites and every key come from whole rows of X. The keys of head {i} say which token "
                + ("comes first." if i == 1 else "comes last."),
            )
            for i in (1, 2)
        ),
        Step(
            "Two rows of weights",
            [[bites("A1")], [bites("A2")]],
            "Each head has a softmax of its own, so each may look at a different token.",
        ),
        *(
            Step(
                f"What head {i} brings",
                [["X", "·", f"W_V{i}", "=", f"V{i}"], [bites(f"A{i}"), "·", f"V{i}", "=", bites(f"Z{i}")]],
                f"Head {i} brings the noun that it looks at, in two columns: dog and man.",
            )
            for i in (1, 2)
        ),
        Step(
            "Side by side, then W_O",
            [[bites("Z"), "·", "W_O", "=", bites("Y")]],
            "Z has two columns of head 1 and two of head 2. W_O writes who bites with +1 and who is bitten with -1.",
        ),
        Step(
            "All tokens at once",
            [["Z", "·", "W_O", "=", "Y"]],
            "Dog and man ask for nothing, so both heads bring them the same even mixture, and W_O cancels it.",
        ),
    ]
    names = {"tokens": ["dog", "bites", "man"], "features": ["dog", "man", "verb", "place"]}
    alt = (
        "Three tokens of four features go through two attention heads and one more matrix, with their numbers"
    )
    return flow(boxes, steps, alt, names, edit="X")


# --- A forward pass, recorded -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """One array that a function made.

    symbol: the name that the function gave it, "output" for what it returned. bytes: of memory that no array before
    it has. products, others: FLOPs since the array before, in matrix products and elsewhere. line: of the function.
    """

    symbol: str
    shape: tuple[int, ...]
    bytes: int
    products: int
    others: int
    line: str


class _Counted(np.ndarray):
    """An array whose ufuncs are counted, and give counted arrays."""

    products = 0
    others = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [x.view(np.ndarray) if isinstance(x, _Counted) else x for x in inputs]
        if "out" in options:
            options["out"] = tuple(
                x.view(np.ndarray) if isinstance(x, _Counted) else x for x in options["out"]
            )
        y = getattr(ufunc, method)(*plain, **options)
        if ufunc is np.matmul:
            _Counted.products += 2 * np.size(y) * plain[0].shape[-1]
        else:
            _Counted.others += max(np.size(y), *(np.size(x) for x in plain))
        return np.asarray(y).view(_Counted)


def ledger(function: Callable[..., np.ndarray], X: np.ndarray, *arguments: Any) -> list[Entry]:
    """What `function(X, *arguments)` makes of X, array by array, seen while it runs.

    An entry for each array that a name of the function comes to stand for, X first. A matrix product of (n, k) and
    (k, m) has 2 n k m FLOPs; every other operation one for each entry that it reads. An array that is another view
    of memory seen before has 0 bytes.
    """
    lines, _ = inspect.getsourcelines(function)
    code, entries, known = function.__code__, list[Entry](), dict[str, int]()
    memory: list[np.ndarray] = []
    _Counted.products = _Counted.others = 0
    at = [code.co_firstlineno]

    def note(symbol: str, array: np.ndarray, line: str) -> None:
        new = not any(np.may_share_memory(array, other) for other in memory)
        memory.append(array)
        entries.append(
            Entry(symbol, array.shape, array.nbytes if new else 0, _Counted.products, _Counted.others, line)
        )
        _Counted.products = _Counted.others = 0

    def look(frame: FrameType) -> None:
        line = lines[at[0] - code.co_firstlineno].split("#")[0].strip()
        for symbol, value in frame.f_locals.items():
            if isinstance(value, _Counted) and known.get(symbol) != id(value):
                known[symbol] = id(value)
                note(symbol, value, line)

    def inside(frame: FrameType, event: str, argument: Any) -> Any:
        look(frame)
        if event == "line":
            at[0] = frame.f_lineno
        elif event == "return" and isinstance(argument, _Counted):
            note("output", argument, lines[at[0] - code.co_firstlineno].split("#")[0].strip())
        return inside

    before = sys.gettrace()
    sys.settrace(lambda frame, event, argument: inside if frame.f_code is code else None)
    try:
        function(X.view(_Counted), *arguments)
    finally:
        sys.settrace(before)
    return entries


ROLES = {"X": "token", "Q": "query", "K": "key", "V": "value", "S": "weight", "A": "weight", "Z": "value"}
# of a frame: an entry's side, the step from sheet to sheet, the height of a line
UNIT, SHEET, ROW = 0.105, 5, 21


def ledger_frames(entries: Sequence[Entry]) -> Iterator[Frame]:
    """A frame for each entry: the array to scale, and the ledger so far with bars for its FLOPs and its bytes."""
    most_flops = max(entry.products + entry.others for entry in entries)
    most_bytes = max(entry.bytes for entry in entries)
    for number, entry in enumerate(entries):
        parts = _sheets(entry)
        top = 190
        for x, name in ((8, "array"), (66, "shape"), (190, "FLOPs"), (310, "new memory")):
            parts.append(words(x, top - 8, name, 12, anchor="start", font_weight="bold"))
        for i, past in enumerate(entries[: number + 1]):
            y = top + ROW * i + 9
            flops, here = past.products + past.others, i == number
            weight = "bold" if here else "normal"
            for x, said in ((8, past.symbol), (66, _shape(past.shape))):
                parts.append(words(x, y + 4, said, 12, anchor="start", font_weight=weight))
            for x, share, role in (
                (190, flops / most_flops, "first"),
                (310, past.bytes / most_bytes, "second"),
            ):
                parts.append(
                    f'<rect x="{x}" y="{y - 6}" width="{max(1, 100 * share):.1f}" height="12" '
                    f'fill="{colour(role)}" fill-opacity="{1 if here else 0.45}"/>'
                )
        flops = entry.products + entry.others
        text = f"{_shape(entry.shape)}: {flops:,} FLOPs, {entry.products:,} of them in matrix products"
        text += f"; {entry.bytes:,} bytes of new memory. {entry.line}"
        yield Frame(entry.symbol, svg(430, top + ROW * len(entries) + 8, parts), text)


def _sheets(entry: Entry) -> list[str]:
    """The array as sheets of paper behind each other, one for each head, to scale."""
    heads = entry.shape[0] if len(entry.shape) == 3 else 1
    tall, wide = (UNIT * side for side in entry.shape[-2:])
    ink, parts = colour(ROLES.get(entry.symbol, "token")), []
    for sheet in reversed(range(heads)):
        parts.append(
            f'<rect x="{20 + SHEET * 3 * sheet:.1f}" y="{50 - SHEET * sheet:.1f}" width="{wide:.1f}" '
            f'height="{tall:.1f}" fill="{ink}" fill-opacity="0.25" stroke="{ink}"/>'
        )
    name = f"{entry.symbol} {_shape(entry.shape)}"
    parts.append(words(250, 90, name, anchor="start", font_weight="bold"))
    sheets = f"{heads} sheets, one for each head" if heads > 1 else "one sheet"
    parts.append(words(250, 110, sheets, 12, anchor="start"))
    return parts


def _shape(shape: tuple[int, ...]) -> str:
    return f"({', '.join(f'{side:,}' if side > 9999 else str(side) for side in shape)})"


# --- The library's attention, and mistakes in it -------------------------------------------------------------


def bert_base_attention(X: np.ndarray, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The attention of one freshly drawn layer of BERT-Base, without the Add & Norm around it.

    X (L, 768). Returns its weights, W_Q (768, 768), b_Q (768,) and so on to b_O, and its output for X, (L, 768), all in
    float32.
    """
    random.manual_seed(seed)
    layer = BertAttention(BertConfig())
    layer.eval()
    parts: Sequence[Any] = (layer.self.query, layer.self.key, layer.self.value, layer.output.dense)
    weights = {}
    for name, part in zip("QKVO", parts, strict=True):
        weights[f"W_{name}"], weights[f"b_{name}"] = part.weight.numpy(), part.bias.numpy()
    with no_grad():
        z = layer.self(Tensor(X[None], dtype="float32"), None)  # (1, L, d_model)
        return weights, layer.output.dense(z).numpy()[0]


def plain(x: np.ndarray, h: int) -> np.ndarray:
    """(L, d_model) -> (h, L, d_k) by a reshape alone, which cuts the text and not the vectors."""
    return x.reshape(h, len(x), -1)


def pieces(weights: Mapping[str, np.ndarray], h: int) -> dict[str, np.ndarray]:
    """The weights (d_model, d_model) with all entries 0 but the h blocks on the diagonal: head i sees piece i of X."""
    return {
        name: W * np.kron(np.eye(h), np.ones([side // h for side in W.shape])) if W.ndim == 2 else W
        for name, W in weights.items()
    }


def by_columns(S: np.ndarray) -> np.ndarray:
    """Softmax of the scores (h, L, L) along the wrong axis: each column sums to 1."""
    E = np.exp(S - S.max(axis=-2, keepdims=True))
    return E / E.sum(axis=-2, keepdims=True)


# --- Heads taken out of a trained model -------------------------------------------------------------------


@dataclass
class HiddenWords:
    """The stored model, and words to guess: each word of chapter `start`'s sentences, hidden once.

    d_k: of its heads. words: how many there are to guess.
    """

    d_k: int = field(init=False)
    words: int = field(init=False)

    def __post_init__(self) -> None:
        self._model, self._tokenizer = small_model()
        self._batches = hide_each(self._tokenizer)
        self.d_k = self._model.config.head_size
        self.words = sum(len(hidden.places) for hidden in self._batches)

    def output(self, layer: int) -> tuple[np.ndarray, np.ndarray]:
        """W_O (d_model, d_model) and b_O (d_model,) of a layer, counted from 0, in float64."""
        dense: Any = self._dense(layer)
        return dense.weight.numpy().astype(float), dense.bias.numpy().astype(float)

    def losses(self, changed: Mapping[int, tuple[np.ndarray, np.ndarray]] | None = None) -> np.ndarray:
        """The loss (words,) in nats of each hidden word; changed: other W_O and b_O for some layers."""
        with self._with(changed or {}):
            return word_losses(self._model, self._tokenizer)

    def heads_of(self, layer: int) -> np.ndarray:
        """What goes into W_O for every token of every text with a hidden word: (n, d_model) in float64."""
        bert, found = self._model.bert, []
        with no_grad():
            for hidden in self._batches:
                x = bert(hidden.inputs).hidden_states[layer]  # (L - 2, L, d_model)
                z = bert.encoder.layer[layer].attention.self(x, None).numpy()
                found.append(z.reshape(-1, z.shape[-1]).astype(float))
        return np.concatenate(found)

    def _dense(self, layer: int) -> Any:
        return self._model.bert.encoder.layer[layer].attention.output.dense

    @contextmanager
    def _with(self, changed: Mapping[int, tuple[np.ndarray, np.ndarray]]) -> Iterator[None]:
        """The model with other output projections, for as long as this lasts."""
        before = {layer: self.output(layer) for layer in changed}
        try:
            self._put(changed)
            yield
        finally:
            self._put(before)

    def _put(self, outputs: Mapping[int, tuple[np.ndarray, np.ndarray]]) -> None:
        for layer, (W_O, b_O) in outputs.items():
            dense = self._dense(layer)
            for parameter, values in ((dense.weight, W_O), (dense.bias, b_O)):
                data = parameter.data
                data[...] = backend.of(data).asarray(values, dtype=data.dtype)


def as_much_of(variance: np.ndarray, head: slice, share: float, rng: np.random.Generator) -> np.ndarray:
    """Random orthonormal directions (d, n) inside one head's columns, as many as hold this share of a variance (d, d).

    The last of them makes the share reach the one that is asked for. ValueError: the head holds less.
    """
    d, width = len(variance), head.stop - head.start
    columns = np.zeros((d, width))
    columns[head] = np.linalg.qr(rng.standard_normal((width, width)))[0]
    held = np.cumsum(np.diag(columns.T @ variance @ columns)) / np.trace(variance)  # (width,)
    if held[-1] < share:
        raise ValueError(f"this head holds {held[-1]:.3f} of the variance, which is less than {share:.3f}")
    return columns[:, : int(np.searchsorted(held, share)) + 1]
