"""Chapter `published`: vectors of sentences and a search by them, a checkpoint under other names, a damaged one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise

# --- mean_pool -------------------------------------------------------------------------------------------


def _mean_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(
        lengths: tuple[int, ...], L: int, d_model: int, dtype: type = np.float64
    ) -> tuple[np.ndarray, ...]:
        mask = (np.arange(L) < np.array(lengths)[:, None]).astype(np.int64)
        return (rng.standard_normal((len(lengths), L, d_model)) + 1).astype(dtype), mask

    yield "texts of 5 and 3 tokens, d_model = 4", *draw((5, 3), 5, 4)
    yield "no padding", *draw((4, 4), 4, 3)
    yield "B = L = d_model = 3", *draw((2, 3, 1), 3, 3)
    yield "one text with much padding", *draw((2,), 9, 5)
    yield "float32", *draw((6, 2, 4), 7, 6, np.float32)
    H, mask = draw((3, 5), 6, 4)
    yield "padding on the left", H, mask[:, ::-1].copy()


@exercise(
    difficulty=1,
    minutes=8,
    cases=_mean_cases,
    hints="""
Padding has vectors, too, and they are not zero. Which of the inputs shows where it is?

Multiply by the mask, add up over the tokens, and divide by the number of tokens of *this* text. The mask needs a third axis for that: attention_mask[:, :, None].
""",
    mistakes="""
[padding-too] You take the mean over all positions, padding included. Its vectors are not zero: the mask shows which ones to leave out.
    (H * mask).sum(axis=1) / mask.sum(axis=1) -> H.mean(axis=1)
You divide by the number of tokens, but padding's vectors are in the sum.
    (H * mask) -> H
You divide by the root of the number of tokens. A mean divides by the number itself.
    / mask.sum(axis=1) -> / np.sqrt(mask.sum(axis=1))
You leave padding out of the sum, but divide by L. Divide by the number of tokens.
    / mask.sum(axis=1) -> / H.shape[1]
You divide by the number of tokens in the whole batch. Each text has its own.
    / mask.sum(axis=1) -> / mask.sum()
That is the sum over the tokens. Divide it by their number.
    / mask.sum(axis=1) -> / 1
You take [CLS]'s vector. The mean is over all tokens of the text.
    (H * mask).sum(axis=1) / mask.sum(axis=1) -> H[:, 0]
You take the largest entry over the tokens. The exercise asks for a mean.
    mask = attention_mask[:, :, None]
    return np.where(mask == 1, H, -np.inf).max(axis=1)
You take the mean over the texts of the batch. The tokens are on the second axis.
    mask = attention_mask[:, :, None]
    return (H * mask).sum(axis=0) / mask.sum(axis=0).clip(1)
You leave out [CLS]. The mean is over all tokens, special ones included.
    return (H * mask).sum(axis=1) / mask.sum(axis=1) -> return (H * mask)[:, 1:].sum(axis=1) / mask[:, 1:].sum(axis=1)
You leave out [CLS] and [SEP]. The mean is over all tokens, special ones included.
    mask = attention_mask[:, :, None].astype(H.dtype)
    mask[np.arange(len(H)), attention_mask.sum(axis=1) - 1] = 0
    return (H * mask)[:, 1:].sum(axis=1) / mask[:, 1:].sum(axis=1)
You divide by one token too few. All of them are in the sum.
    / mask.sum(axis=1) -> / (mask.sum(axis=1) - 1)
You leave [CLS] out of the sum. The mean is over all tokens.
    (H * mask).sum(axis=1) -> (H * mask)[:, 1:].sum(axis=1)
You use the mask the wrong way round: it has 1 for tokens and 0 for padding.
    attention_mask[:, :, None].astype(H.dtype) -> 1 - attention_mask[:, :, None]
You divide each vector by its length as well. Only the mean is asked for.
    mask = attention_mask[:, :, None]
    pooled = (H * mask).sum(axis=1) / mask.sum(axis=1)
    return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
""",
)
def mean_pool(H, attention_mask):
    mask = attention_mask[:, :, None].astype(H.dtype)  #: mask with a third axis, (B, L, 1)
    return (H * mask).sum(axis=1) / mask.sum(axis=1)  # (B, d_model)


# --- nearest ---------------------------------------------------------------------------------------------


def _nearest_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(n: int, m: int, d_model: int, k: int) -> tuple[Any, ...]:
        index = rng.standard_normal((n, d_model)) * rng.uniform(0.2, 5, (n, 1))
        return index, rng.standard_normal((m, d_model)) * rng.uniform(0.2, 5, (m, 1)), k

    yield "9 texts, 4 questions, k = 3", *draw(9, 4, 6, 3)
    yield "k = 1", *draw(7, 5, 4, 1)
    yield "one question, all texts", *draw(6, 1, 5, 6)
    yield "as many texts as features", *draw(5, 5, 5, 2)
    yield "1,000 texts, k = 400", *draw(1000, 2, 8, 400)  # as np.argpartition may leave fewer in their order
    index, questions, k = draw(8, 3, 5, 2)
    index[2] *= 100
    yield "one row of index is very long", index, questions, k
    yield (
        "12 texts with a common part",
        index.repeat(2, axis=0)[:12] + np.arange(5) + rng.standard_normal((12, 5)),
        questions,
        4,
    )


@exercise(
    difficulty=2,
    minutes=15,
    cases=_nearest_cases,
    hints="""
The cosine divides a dot product by both lengths. Which of the two lengths can change the order of the texts for one question?

Divide each row of `index` by its own length: np.linalg.norm(index, axis=1, keepdims=True). Then one product gives the scores of all questions with all texts.

np.argsort sorts upwards, so sort the negative scores, row by row, and keep the first k columns.
""",
    mistakes="""
[long-rows] You rank by dot products, and a long row of index then wins for every question that it half fits. Divide each row of index by its own length. The question's length does not matter.
    V = index / np.linalg.norm(index, axis=1, keepdims=True) -> V = index || V = index / np.linalg.norm(index)
You divide each column by its length. A text is a row.
    np.linalg.norm(index, axis=1, keepdims=True) -> np.linalg.norm(index, axis=0, keepdims=True)
You divide each row by the square of its length, and short rows win.
    np.linalg.norm(index, axis=1, keepdims=True) -> (index**2).sum(axis=1, keepdims=True)
You divide each row by the sum of its entries. Its length is the root of the sum of their squares.
    np.linalg.norm(index, axis=1, keepdims=True) -> index.sum(axis=1, keepdims=True)
You divide each row by its largest entry. Its length is the root of the sum of the squares.
    np.linalg.norm(index, axis=1, keepdims=True) -> np.abs(index).max(axis=1, keepdims=True)
You subtract the mean from each row of index and from the question. That is a correlation; the cosine leaves rows as they are.
    V = index / np.linalg.norm(index, axis=1, keepdims=True) -> index = index - index.mean(axis=1, keepdims=True); questions = questions - questions.mean(axis=1, keepdims=True); V = index / np.linalg.norm(index, axis=1, keepdims=True)
You subtract the mean of all rows first. That can help a search, but the exercise asks for the cosine of the rows as they are.
    V = index / np.linalg.norm(index, axis=1, keepdims=True) -> index = index - index.mean(axis=0); V = index / np.linalg.norm(index, axis=1, keepdims=True)
You rank by the distance of the rows as they are. Rows of length 1 have the same order by distance as by cosine; these have other lengths.
    return np.argsort(np.linalg.norm(questions[:, None] - index, axis=-1), axis=1)[:, :k]
The furthest come first. np.argsort sorts upwards.
    np.argsort(-(questions @ V.T), axis=1) -> np.argsort(questions @ V.T, axis=1)
They are the nearest k, but the nearest of all should come first, then the second.
    [:, :k] -> [:, :k][:, ::-1]
    return np.argsort(-(questions @ V.T), axis=1)[:, :k] -> return np.argpartition(-(questions @ V.T), k - 1, axis=1)[:, :k]
You keep the k furthest. After sorting, the nearest are in the first columns.
    [:, :k] -> [:, -k:]
You leave out the nearest. The questions are not among the texts, so the first is an answer.
    [:, :k] -> [:, 1 : k + 1]
You sort over the questions. Each question has a row of scores, one for each text.
    np.argsort(-(questions @ V.T), axis=1)[:, :k] -> np.argsort(-(questions @ V.T), axis=0)[:, :k]
You return the scores. Return the texts' row indices in index.
    np.argsort(-(questions @ V.T), axis=1)[:, :k] -> -np.sort(-(questions @ V.T), axis=1)[:, :k]
A row for each question, please: you return a column.
    [:, :k] -> [:, :k].T
""",
)
def nearest(index, questions, k):
    V = index / np.linalg.norm(index, axis=1, keepdims=True)  #: each row at length 1, (n, d_model)
    return np.argsort(-(questions @ V.T), axis=1)[:, :k]  # (m, n) -> (m, k)


# --- renamed ---------------------------------------------------------------------------------------------


def _renamed_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def state(N: int, d_model: int, d_ff: int) -> dict[str, np.ndarray]:
        shapes: dict[str, tuple[int, ...]] = {
            "self_attn.in_proj_weight": (3 * d_model, d_model),
            "self_attn.in_proj_bias": (3 * d_model,),
            "self_attn.out_proj.weight": (d_model, d_model),
            "self_attn.out_proj.bias": (d_model,),
            "linear1.weight": (d_ff, d_model),
            "linear1.bias": (d_ff,),
            "linear2.weight": (d_model, d_ff),
            "linear2.bias": (d_model,),
        }
        shapes |= {f"norm{i}.{kind}": (d_model,) for i in (1, 2) for kind in ("weight", "bias")}
        return {
            f"layers.{n}.{name}": rng.standard_normal(shape)
            for n in range(N)
            for name, shape in shapes.items()
        }

    yield "one layer, d_model = 2, d_ff = 3", state(1, 2, 3)
    yield "two layers", state(2, 3, 4)
    yield "d_ff = d_model", state(1, 3, 3)
    many = state(11, 2, 2)
    names = list(many)
    yield "eleven layers, in any order", {names[i]: many[names[i]] for i in rng.permutation(len(names))}


@exercise(
    difficulty=2,
    minutes=20,
    cases=_renamed_cases,
    hints="""
Take a name apart: "layers.3.linear1.weight".split(".", 2) gives the layer's number and the rest. The rest decides what the array becomes.

Five names have one array each in both lists: write them as a dictionary. Which LayerNorm comes after attention, and which one last?

The first d_model rows of in_proj are the queries', the next the keys', the last the values'. np.split(array, 3) cuts both the weight and the bias.
""",
    mistakes="""
[order-of-parts] The three parts of in_proj are queries, keys and values, in this order.
    ("query", "key", "value") -> ("key", "query", "value") || ("query", "value", "key") || ("value", "key", "query")
You take every third row. The queries have the first d_model rows, one after the other.
    np.split(array, 3) -> [array[i::3] for i in range(3)]
The two LayerNorms are swapped. norm1 comes after attention, norm2 after the feed-forward part.
    "norm1": "attention.output.LayerNorm" -> "norm1": "output.LayerNorm" ; "norm2": "output.LayerNorm" -> "norm2": "attention.output.LayerNorm"
The two matrices of the feed-forward part are swapped. linear1 widens, and is called intermediate.
    "linear1": "intermediate.dense" -> "linear1": "output.dense" ; "linear2": "output.dense" -> "linear2": "intermediate.dense"
You transpose the weights. Both lists store them as (out, in).
    = piece -> = piece.T ; = array -> = array.T
    = array -> = array.T
    = piece -> = piece.T
The biases of queries, keys and values are missing: in_proj_bias has all three.
    found[f"{layer}attention.self.{part}.{kind}"] = piece -> kind == "bias" or found.update({f"{layer}attention.self.{part}.{kind}": piece})
You keep "layers" in the names. They begin with encoder.layer.
    f"encoder.layer.{number}." -> f"encoder.layers.{number}." || f"layers.{number}."
Begin every name with encoder.layer.
    f"encoder.layer.{number}." -> f"layer.{number}."
The names of a whole model begin with bert.; the names that are asked for do not.
    f"encoder.layer.{number}." -> f"bert.encoder.layer.{number}."
You take only one digit of the layer's number. A model can have more than ten layers.
    f"encoder.layer.{number}." -> f"encoder.layer.{number[-1]}."
You number the layers from 1. Both lists count from 0.
    f"encoder.layer.{number}." -> f"encoder.layer.{int(number) + 1}."
The last layer is missing. Layers are counted from 0, so the highest number is a layer too.
    return found -> return {name: array for name, array in found.items() if not name.startswith(layer)}
""",
)
def renamed(state):
    others = {
        "self_attn.out_proj": "attention.output.dense",
        "linear1": "intermediate.dense",
        "linear2": "output.dense",
        "norm1": "attention.output.LayerNorm",
        "norm2": "output.LayerNorm",
    }  #: Hugging Face's names of the arrays that are not cut
    found = {}
    for name, array in state.items():  #: every name of PyTorch's, with its array
        _, number, rest = name.split(".", 2)  #: layers, the number, and the rest
        layer = f"encoder.layer.{number}."  #: how all new names of the layer begin
        if "in_proj" in rest:
            kind = rest.split("_")[-1]  #: the end of the name, weight or bias
            for part, piece in zip(("query", "key", "value"), np.split(array, 3), strict=True):
                found[f"{layer}attention.self.{part}.{kind}"] = piece  #: the part's block of rows
        else:
            part, kind = rest.rsplit(".", 1)  #: the array's name, and weight or bias
            found[f"{layer}{others[part]}.{kind}"] = array  #: the array, not transposed
    return found


# --- broken_download -------------------------------------------------------------------------------------


def _broken_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word": (6, 3),
        "layer.0.key.weight": (3, 3),
        "layer.0.key.bias": (3,),
        "layer.0.output.weight": (3, 4),
        "layer.0.LayerNorm.weight": (3,),
        "layer.0.LayerNorm.bias": (3,),
        "pooler.weight": (3, 3),
    }

    def case(which: int, name: str, kept: int) -> list[dict[str, np.ndarray]]:
        states = [{one: rng.standard_normal(shape) for one, shape in shapes.items()} for _ in range(3)]
        for state in states:
            state["embeddings.word"][0] = 0  # [PAD]
            state["layer.0.key.bias"][:] = 0
            state["layer.0.LayerNorm.bias"][:] = 0
        names = list(shapes)
        for later in names[names.index(name) :]:
            begins = kept if later == name else 0
            states[which][later].reshape(-1)[begins:] = 0
        return states

    yield "broken in the middle of a matrix", case(1, "layer.0.output.weight", 5)
    yield "from a matrix's first entry on", case(0, "layer.0.key.weight", 0)
    yield "the last entry alone is lost", case(2, "pooler.weight", 8)
    yield "broken in the table of words", case(2, "embeddings.word", 7)
    yield "lost after a bias that is 0 in all three", case(0, "pooler.weight", 0)
    yield "gains are lost", case(1, "layer.0.LayerNorm.weight", 2)


@exercise(
    difficulty=3,
    minutes=20,
    cases=_broken_cases,
    hints="""
A zero alone is no sign of damage: the row of [PAD] is zero, and some biases are. Where do the three files differ?

An entry is lost if it is 0 in one file and in neither of the others. Compare the arrays of the same name, entry by entry.

Arrays lie in the file in the order of the dictionary, so the first array with a lost entry is the answer. It need not be lost as a whole.
""",
    mistakes="""
[any-zero] You name the first array with a zero in it, but the row of [PAD] and some biases are zero in every file. Compare with the other two.
    lost = (array == 0) & np.all([other[name] != 0 for other in others], axis=0) -> lost = array == 0
You look for arrays that are lost from their first entry on. The break can be in the middle of an array.
    lost.any() -> lost.any() and not array.any()
    lost.any() -> lost.all() || lost.ravel()[0]
You count the files from 1. Python counts from 0.
    return number, name -> return number + 1, name
Return the file's number first, then the array's name.
    return number, name -> return name, number
Return the file's number, too.
    return number, name -> return name
Return the array's name, too.
    return number, name -> return number
You name the last damaged array. The break is in the first.
    damaged = [(k, n) for k, s in enumerate(states) for n, a in s.items() if ((a == 0) & np.all([o[n] != 0 for o in states if o is not s], axis=0)).any()]
    return damaged[-1]
You compare with only one of the other files. If that is the broken one, the sound file looks damaged.
    np.all([other[name] != 0 for other in others], axis=0) -> (states[number - 1][name] == 0) & False | (array != others[0][name]) & (others[0][name] == 0)
You name the file that is sound: you look for entries that are not 0 where others are.
    (array == 0) & np.all([other[name] != 0 for other in others], axis=0) -> (array != 0) & np.any([other[name] == 0 for other in others], axis=0)
You go through the names in alphabetical order. The break is in the first array in the file's order.
    in state.items() -> in sorted(state.items())
""",
)
def broken_download(states):
    for number, state in enumerate(states):  #: the three checkpoints, counted from 0
        others = [other for other in states if other is not state]  #: the other two
        for name, array in state.items():  #: the arrays, in the file's order
            lost = (array == 0) & np.all([other[name] != 0 for other in others], axis=0)  #: the lost entries
            if lost.any():
                return number, name
    return None
