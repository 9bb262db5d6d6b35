"""Chapter `encoder`'s last exercise: the whole model, from parts such as the learner has written them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from bert_course.check.exercise import EXERCISES, exercise
from bert_course.check.tensors import linked
from bert_course.common.engine import library_bert, small_batch, spread
from minigrad import Tensor


def _takes(part: Callable[..., Any], **expected: tuple[int | str, ...]) -> Callable[..., Any]:
    """`part`, but with an error that names the shape when an argument has other axes than are expected.

    expected: by parameter, a length for each axis, or its letter where every length will do.
    """

    def takes(*arguments: Any, **named: Any) -> Any:
        try:
            bound = inspect.signature(part).bind(*arguments, **named)
        except TypeError as error:
            raise TypeError(f"{part.__name__}: {error}") from None
        for name, axes in expected.items():
            value = bound.arguments[name]
            shape = value.shape if isinstance(value, np.ndarray | Tensor) else ()
            fits = len(shape) == len(axes) and all(
                isinstance(n, str) or n == found for n, found in zip(axes, shape, strict=True)
            )
            if not fits:
                came = f"one of shape {shape}" if isinstance(value, np.ndarray | Tensor) else "no array"
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
    others = ("split_word", "pack", "feed_forward", "add_norm", "layer_norm")
    answers = {name: EXERCISES[name].answer for name in (*_AXES, *others)}
    return SimpleNamespace(
        **{n: _takes(answer, **_AXES[n]) if n in _AXES else answer for n, answer in answers.items()}
    )


def _bert_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    file = library_bert()

    def case(
        lengths: tuple[int, ...], L: int, d: int, h: int, N: int, eps: float = 1e-12, dtype: type = np.float64
    ) -> tuple[Any, ...]:
        model = spread(file.new_model(13, d=d, h=h, N=N, L_max=10), rng, 0.5, file) | {"eps": eps}
        for p in file.parameters(model):
            p.data = p.data.astype(dtype)
        # what of it is BERT's without the heads of pre-training
        own = ("W_T", "W_S", "W_P", "norm", "layers", "pooler", "h", "eps")
        batch = small_batch(rng, 13, lengths, L)
        read = ("input_ids", "token_type_ids", "attention_mask")
        return {name: batch[name] for name in read}, right_parts(), {name: model[name] for name in own}

    # The smallest first: most pairs of mistakes are ruled out there.
    yield "one layer, one head", *case((4,), 5, 4, 1, 1)
    yield "two layers, three heads, with padding", *case((9, 5), 9, 6, 3, 2)
    yield "no padding", *case((6, 6, 6), 6, 6, 2, 3)
    yield "another ε", *case((5, 3), 5, 6, 2, 1, eps=0.2)
    yield "float32", *case((4, 2), 4, 4, 2, 1, dtype=np.float32)


@exercise(
    difficulty=3,
    minutes=30,
    cases=_bert_cases,
    observed=linked,
    rtol=1e-7,
    atol=1e-9,
    hints="""
After embed comes a LayerNorm: layer_norm takes the model's gain and bias, model["norm"], and ε.

In each layer: attention, add & norm, feed-forward, add & norm. Each add & norm adds what went into its sub-layer.

The mask is made once, before the layers, from batch["attention_mask"], in the dtype of X.
""",
    mistakes="""
[no-embedding-norm] The LayerNorm on the embeddings is missing.
    X = parts.layer_norm(X, *model["norm"], eps) ->
[no-mask] Padding is not hidden: the mask does not reach the layers, so every token gives some of its attention to [PAD].
    parts.padding_mask(batch["attention_mask"], X.dtype) -> parts.padding_mask(np.ones_like(batch["attention_mask"]), X.dtype)
The mask is the wrong way round: you hide the tokens, and only the padding is seen.
    batch["attention_mask"] -> 1 - batch["attention_mask"]
You add the ones and zeros themselves to the scores. padding_mask turns them into what is added: 0 for a token, and a very negative number for padding.
    parts.padding_mask(batch["attention_mask"], X.dtype) -> Tensor(batch["attention_mask"][:, None, None].astype(X.dtype))
The segments are missing: both texts get the vector of the first one.
    batch["token_type_ids"] -> np.zeros_like(batch["token_type_ids"])
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
    mask = -> start = X; mask = ; parts.multi_head(X, -> parts.multi_head(start, ; parts.add_norm(X, Y, *layer["attention_norm"] -> parts.add_norm(start, Y, *layer["attention_norm"]
The second add & norm adds what went into the layer. It has to add what went into its own sub-layer: the output of the first add & norm.
    Y = parts.multi_head( -> start = X; Y = parts.multi_head( ; parts.add_norm(X, Y, *layer["output_norm"] -> parts.add_norm(start, Y, *layer["output_norm"]
You add the embeddings in every layer. An add & norm adds what went into its own sub-layer.
    mask = -> start = X; mask = ; parts.add_norm(X, Y, *layer["output_norm"] -> parts.add_norm(start, Y, *layer["output_norm"]
    mask = -> start = X; mask = ; parts.add_norm(X, Y, -> parts.add_norm(start, Y,
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
    parts.feed_forward(X, *layer["feed_forward"]) -> 0 * X
Attention is missing. Without it, no token learns anything about another.
    parts.multi_head(X, layer["attention"], model["h"], mask) -> 0 * X
The number of heads is model["h"]. With another number, the same matrices are cut in other places.
    model["h"] -> 1
You take the number of layers for the number of heads, model["h"].
    model["h"] -> len(model["layers"])
You give the pooler the embeddings. It reads the last hidden state, which the last layer returned.
    mask = -> start = X; mask = ; parts.pool(X -> parts.pool(start
You give the pooler the mean of all tokens. It takes all of X, and picks the row of [CLS] itself.
    parts.pool(X, -> parts.pool(X.mean(axis=1, keepdims=True),
The pooler reads the first row. You reverse the rows, so that it reads the last.
    parts.pool(X, -> parts.pool(X[:, ::-1],
You use an ε other than the given one, model["eps"].
    eps = model["eps"] -> eps = 1e-12 || eps = 1e-5
The hidden state comes first, then the pooled vector.
    return X, parts.pool(X, *model["pooler"]) -> return parts.pool(X, *model["pooler"]), X
Return both the hidden state and the pooled vector.
    return X, parts.pool(X, *model["pooler"]) -> return X || return parts.pool(X, *model["pooler"])
You return the first text alone. The batch's axis stays: (B, L, d_model) and (B, d_model).
    return X, parts.pool(X, *model["pooler"]) -> return X[0], parts.pool(X, *model["pooler"])[0]
""",
)
def bert(batch, parts, model):
    eps = model["eps"]  #: the ε of every LayerNorm
    tables = model["W_T"], model["W_S"], model["W_P"]  #: the tables of tokens, segments and positions
    X = parts.embed(batch["input_ids"], batch["token_type_ids"], *tables)  #: the embeddings, (B, L, d_model)
    X = parts.layer_norm(X, *model["norm"], eps)  #: the normalised embeddings, (B, L, d_model)
    mask = parts.padding_mask(batch["attention_mask"], X.dtype)  #: the padding mask, (B, 1, 1, L)
    for layer in model["layers"]:  #: the weights of every layer, first to last
        Y = parts.multi_head(X, layer["attention"], model["h"], mask)  #: what attention returns for X
        X = parts.add_norm(X, Y, *layer["attention_norm"], eps)  #: the output of the first add & norm
        Y = parts.feed_forward(X, *layer["feed_forward"])  #: what the feed-forward part returns for X
        X = parts.add_norm(X, Y, *layer["output_norm"], eps)  #: the output of the whole layer
    return X, parts.pool(X, *model["pooler"])
