"""Chapter `encoder`'s last exercise: the whole model, from parts such as the learner has written them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from bert_course.check.exercise import EXERCISES, exercise


def _takes(part: Callable[..., Any], **expected: tuple[int | str, ...]) -> Callable[..., Any]:
    """`part`, but with an error that names the shape when an argument has other axes than are expected.

    expected: by parameter, a length for each axis, or its letter where every length will do.
    """

    def takes(*arguments: Any, **named: Any) -> Any:
        bound = inspect.signature(part).bind(*arguments, **named)
        for name, axes in expected.items():
            value = bound.arguments[name]
            shape = value.shape if isinstance(value, np.ndarray) else ()
            fits = len(shape) == len(axes) and all(
                isinstance(n, str) or n == found for n, found in zip(axes, shape, strict=True)
            )
            if not fits:
                came = f"one of shape {shape}" if isinstance(value, np.ndarray) else "no array"
                wanted = ", ".join(map(str, axes))
                raise ValueError(f"{part.__name__} takes an array ({wanted}) as {name}, got {came}")
        return part(*arguments, **named)

    return takes


_AXES: dict[str, dict[str, tuple[int | str, ...]]] = {  # of what some of the parts take
    "embed": {"input_ids": ("B", "L"), "token_type_ids": ("B", "L")},
    "multi_head": {"X": ("B", "L", "d_model"), "mask": ("B", 1, 1, "L")},
    "padding_mask": {"attention_mask": ("B", "L")},
    "pool": {"X": ("B", "L", "d_model")},
}


def right_parts() -> SimpleNamespace:
    """The parts of a learner's BERT (`parts.PARTS`) as their exercises have them, so that the assembly alone is judged."""
    answers = {
        name: EXERCISES[name].answer for name in (*_AXES, "split_word", "pack", "feed_forward", "add_norm")
    }
    return SimpleNamespace(
        **{n: _takes(answer, **_AXES[n]) if n in _AXES else answer for n, answer in answers.items()}
    )


_VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "the", "river", "bank", "money", "is", "un"]
_VOCABULARY += ["##s", "##ing", "##d", "##open", "open", "close"]


def _bert_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def model(d_model: int, h: int, N: int, d_ff: int, eps: float = 1e-12) -> dict[str, Any]:
        def matrix(n: int, m: int) -> np.ndarray:
            return rng.standard_normal((n, m)) / math.sqrt(n)

        def vector(n: int) -> np.ndarray:
            return 0.3 * rng.standard_normal(n)

        def norm() -> tuple[np.ndarray, np.ndarray]:
            return rng.uniform(0.5, 1.5, d_model), vector(d_model)

        def layer() -> dict[str, Any]:
            attention = {f"W_{n}": matrix(d_model, d_model) for n in "QKVO"}
            attention |= {f"b_{n}": vector(d_model) for n in "QKVO"}
            wide = matrix(d_model, d_ff), vector(d_ff), matrix(d_ff, d_model), vector(d_model)
            norms = {"attention_norm": norm(), "output_norm": norm()}
            return {"attention": attention, "feed_forward": wide, **norms}

        tables = {name: rng.standard_normal((n, d_model)) for name, n in _TABLES.items()}
        layers = [layer() for _ in range(N)]
        pooler = matrix(d_model, d_model), vector(d_model)
        sizes = {"h": h, "eps": eps, "vocabulary": list(_VOCABULARY)}
        return {**tables, "norm": norm(), "layers": layers, "pooler": pooler, **sizes}

    def text(words: str) -> list[str]:
        return words.split()

    pair = text("the river bank is open"), text("unopened banks")
    yield "two layers, three heads, with padding", *pair, 14, right_parts(), model(6, 3, 2, 7)
    yield "no padding", *pair, 12, right_parts(), model(6, 2, 3, 5)
    yield "one layer, one head", *map(text, ("money", "closing")), 9, right_parts(), model(4, 1, 1, 8)
    unknown = text("the xylophones is closed"), text("opening a bank")
    yield "words that are not in the vocabulary", *unknown, 13, right_parts(), model(8, 4, 2, 6)
    yield "another ε", *map(text, ("a bank", "the banks")), 10, right_parts(), model(6, 2, 2, 9, 0.2)


_TABLES = {"W_T": len(_VOCABULARY), "W_S": 2, "W_P": 16}


@exercise(
    difficulty=3,
    minutes=40,
    cases=_bert_cases,
    rtol=1e-7,
    atol=1e-9,
    hints="""
Words become pieces (split_word), two lists of pieces become one input (pack), and a piece's id is its place in the vocabulary. Every array has a batch of one: (1, L), then (1, L, d_model).

After embed comes a LayerNorm. add_norm normalises a sum, so it normalises X alone when nothing is added: np.zeros_like(X).

In each layer: attention, add & norm, feed-forward, add & norm. Each add & norm adds what went into its sub-layer. The mask is made once, before the layers.
""",
    mistakes="""
[no-embedding-norm] The LayerNorm on the embeddings is missing.
    X = parts.add_norm(X, np.zeros_like(X), *model["norm"], eps) ->
[no-mask] Padding is not hidden: the mask does not reach the layers, so every token gives some of its attention to [PAD].
    hidden = parts.padding_mask(np.array([mask]), X.dtype) -> hidden = np.zeros((1, 1, 1, length))
The mask is the wrong way round: you hide the tokens, and only the padding is seen.
    np.array([mask]) -> 1 - np.array([mask])
You add the ones and zeros themselves to the scores. padding_mask turns them into what is added: 0 for a token, and a very negative number for padding.
    parts.padding_mask(np.array([mask]), X.dtype) -> np.array([[[mask]]], X.dtype)
The segments are missing: both texts get the vector of the first one.
    np.array([segments]) -> np.zeros_like(ids)
pack returns the pieces, then the segments, then the mask. You have the last two the other way round.
    pieces, segments, mask = -> pieces, mask, segments =
All layers have the first one's weights. Each layer has its own.
    in model["layers"]: -> in [model["layers"][0]] * len(model["layers"]):
All layers have the last one's weights. Each layer has its own.
    in model["layers"]: -> in [model["layers"][-1]] * len(model["layers"]):
The layers run in the wrong order: the first in the list comes first.
    in model["layers"]: -> in model["layers"][::-1]:
The last layer is missing.
    in model["layers"]: -> in model["layers"][:-1]:
The first layer is missing.
    in model["layers"]: -> in model["layers"][1:]:
Only one layer runs. Run every layer in the list, each on what the layer before returned.
    in model["layers"]: -> in model["layers"][:1]:
Each layer begins with the embeddings again. It has to begin with the output of the previous layer.
    hidden = -> start = X; hidden = ; parts.multi_head(X, -> parts.multi_head(start, ; parts.add_norm(X, Y, *layer["attention_norm"] -> parts.add_norm(start, Y, *layer["attention_norm"]
The second add & norm adds what went into the layer. It has to add what went into its own sub-layer: the output of the first add & norm.
    Y = parts.multi_head( -> start = X; Y = parts.multi_head( ; parts.add_norm(X, Y, *layer["output_norm"] -> parts.add_norm(start, Y, *layer["output_norm"]
You add the embeddings in every layer. An add & norm adds what went into its own sub-layer.
    hidden = -> start = X; hidden = ; parts.add_norm(X, Y, *layer["output_norm"] -> parts.add_norm(start, Y, *layer["output_norm"]
    hidden = -> start = X; hidden = ; parts.add_norm(X, Y, -> parts.add_norm(start, Y,
[no-residual] A residual connection is missing: add what went into the sub-layer, and then normalise.
    parts.add_norm(X, Y, *layer["attention_norm"] -> parts.add_norm(0 * X, Y, *layer["attention_norm"]
    parts.add_norm(X, Y, *layer["output_norm"] -> parts.add_norm(0 * X, Y, *layer["output_norm"]
Both residual connections are missing: add what went into the sub-layer, and then normalise.
    parts.add_norm(X, Y, -> parts.add_norm(0 * X, Y,
The two LayerNorms of a layer have changed places: attention_norm comes after attention, output_norm after the feed-forward part.
    layer["attention_norm"] -> layer["output_norm"] ; layer["output_norm"] -> layer["attention_norm"]
Each LayerNorm has a gain and a bias of its own. You take the same ones twice in a layer.
    layer["attention_norm"] -> layer["output_norm"]
    layer["output_norm"] -> layer["attention_norm"]
You take the embeddings' gain and bias for the layers, which have their own.
    layer["attention_norm"] -> model["norm"] ; layer["output_norm"] -> model["norm"]
The feed-forward part reads the output of attention before add & norm. It has to read what add & norm returns.
    parts.feed_forward(X, -> parts.feed_forward(Y,
Both sub-layers read the same X. The feed-forward part comes after attention, on what the first add & norm returns.
    Y = parts.multi_head( -> start = X; Y = parts.multi_head( ; parts.feed_forward(X, -> parts.feed_forward(start,
The feed-forward part is missing.
    parts.feed_forward(X, *layer["feed_forward"]) -> np.zeros_like(X)
Attention is missing. Without it, no token learns anything of another.
    parts.multi_head(X, layer["attention"], model["h"], hidden) -> np.zeros_like(X)
The number of heads is model["h"]. With another number, the same matrices are cut in other places.
    model["h"] -> 1
You take the number of layers for the number of heads, model["h"].
    model["h"] -> len(model["layers"])
You give the pooler the embeddings. It reads the last hidden state, which the last layer returned.
    hidden = -> start = X; hidden = ; parts.pool(X -> parts.pool(start
You give the pooler the mean of all tokens. It takes all of X, and picks the row of [CLS] itself.
    parts.pool(X, -> parts.pool(X.mean(axis=1, keepdims=True),
The pooler reads the first row. You reverse the rows, so that it reads the last.
    parts.pool(X, -> parts.pool(X[:, ::-1],
The second text comes first in your input.
    in (first, second): -> in (second, first):
The second text is missing.
    pack(*texts, -> pack(texts[0], [],
You look up whole words. A word that is not in the vocabulary has to be split into pieces first, with split_word.
    parts.split_word(word, vocabulary) -> [word if word in vocabulary else "[UNK]"]
You put in only the first piece of each word. Put in all its pieces, one after the other.
    parts.split_word(word, vocabulary) -> parts.split_word(word, vocabulary)[:1]
You pad to a length other than `length`.
    *texts, length -> *texts, length + 1 || *texts, len(model["W_P"])
You take another ε than the given one, model["eps"].
    eps = model["vocabulary"], model["eps"] -> eps = model["vocabulary"], 1e-12 || eps = model["vocabulary"], 1e-5
The hidden state comes first, then the pooled vector.
    return X, parts.pool(X, *model["pooler"]) -> return parts.pool(X, *model["pooler"]), X
Return both the hidden state and the pooled vector.
    return X, parts.pool(X, *model["pooler"]) -> return X || return parts.pool(X, *model["pooler"])
You drop the batch's axis. It stays, with length 1: (1, L, d_model) and (1, d_model).
    return X, parts.pool(X, *model["pooler"]) -> return X[0], parts.pool(X, *model["pooler"])[0]
""",
)
def bert(first, second, length, parts, model):
    vocabulary, eps = model["vocabulary"], model["eps"]
    texts = []
    for words in (first, second):
        texts.append([piece for word in words for piece in parts.split_word(word, vocabulary)])
    pieces, segments, mask = parts.pack(*texts, length)
    ids = np.array([[vocabulary.index(piece) for piece in pieces]])  # (1, L)
    tables = model["W_T"], model["W_S"], model["W_P"]
    X = parts.embed(ids, np.array([segments]), *tables)  # (1, L, d_model)
    X = parts.add_norm(X, np.zeros_like(X), *model["norm"], eps)
    hidden = parts.padding_mask(np.array([mask]), X.dtype)  # (1, 1, 1, L)
    for layer in model["layers"]:
        Y = parts.multi_head(X, layer["attention"], model["h"], hidden)
        X = parts.add_norm(X, Y, *layer["attention_norm"], eps)
        Y = parts.feed_forward(X, *layer["feed_forward"])
        X = parts.add_norm(X, Y, *layer["output_norm"], eps)
    return X, parts.pool(X, *model["pooler"])
