"""Chapter `embeddings`: embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.check.tensors import operation, tensor, traced
from minigrad import Tensor, ops  # noqa: F401

PAD = "[PAD]"


# --- embed -----------------------------------------------------------------------------------------------


def _tables(
    rng: np.random.Generator, V: int, d_model: int, dtype: type = np.float64, places: int = 512
) -> list[Tensor]:
    return [tensor(rng.standard_normal((rows, d_model)).astype(dtype)) for rows in (V, 2, places)]


def _types(rng: np.random.Generator, B: int, L: int) -> np.ndarray:
    """Segments (B, L): 0 up to a place of its own in each sequence, then 1."""
    return (np.arange(L) >= rng.integers(1, L + 1, (B, 1))).astype(np.int64)


def _embed_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for name, B, L, V, d_model, dtype in (
        ("2 sequences of 5 tokens", 2, 5, 11, 3, np.float64),
        ("B = L = d_model = 4", 4, 4, 9, 4, np.float64),
        ("one sequence of 6 tokens", 1, 6, 9, 4, np.float64),
        ("one sequence of one token", 1, 1, 7, 5, np.float64),
        ("float32, 3 sequences of 6 tokens", 3, 6, 13, 8, np.float32),
    ):
        yield name, rng.integers(0, V, (B, L)), _types(rng, B, L), *_tables(rng, V, d_model, dtype)
    ids, types = rng.integers(0, 6, (2, 9)), np.tile([0] * 4 + [1] * 5, (2, 1))
    yield "as many tokens as the table has places", ids, types, *_tables(rng, 6, 2, places=9)


@exercise(
    difficulty=1,
    minutes=8,
    cases=_embed_cases,
    observed=traced,
    same_dtype=True,
    hints="""
Add three look-ups. A Tensor gives rows for an array of ids, as in NumPy: a table (V, d_model) and ids (B, L) give (B, L, d_model).

The positions are 0, 1, 2, … in each sequence: the first L rows of W_P, which broadcasting (chapter `arrays`) adds to every sequence.
""",
    mistakes="""
You pick rows of W_P by the ids of the pieces. The third table is for the position: row t is for the token at position t.
    W_P[:L] -> W_P[input_ids]
You pick rows of W_P by the segments. The third table is for the position: row t is for the token at position t.
    W_P[:L] -> W_P[token_type_ids]
The positions are missing: without them the encoder cannot know the order of the tokens.
    + W_P[:L] ->
[no-segments] The segments are missing: without them a token's row does not show which text it is in.
    + W_S[token_type_ids] ->
The token table is missing: without it a row does not depend on its piece.
    W_T[input_ids] + ->
All sequences get the segments of the first sequence. Each sequence has a row of token_type_ids of its own.
    W_S[token_type_ids] -> W_S[token_type_ids[0]]
All tokens get the row of the first segment.
    W_S[token_type_ids] -> W_S[0]
All tokens get the row of the second segment.
    W_S[token_type_ids] -> W_S[1]
The segments are swapped: row 0 of W_S is for segment 0.
    W_S[token_type_ids] -> W_S[1 - token_type_ids]
You add the segment's number itself instead of picking a row of W_S.
    W_S[token_type_ids] -> Tensor(token_type_ids[:, :, None].astype(W_S.dtype))
You add the position's number itself instead of picking a row of W_P.
    W_P[:L] -> Tensor(np.arange(L)[:, None].astype(W_P.dtype))
Your positions begin at 1, but the first token gets the first row of W_P.
    W_P[:L] -> W_P[np.minimum(np.arange(L) + 1, len(W_P) - 1)]
You take the last rows of W_P. The token at position t gets row t.
    W_P[:L] -> W_P[-L:]
Your positions run backwards, but the first token gets the first row of W_P.
    W_P[:L] -> W_P[:L][::-1]
Every token gets the position of the first token.
    W_P[:L] -> W_P[0]
The number of positions is L, the length of a sequence: input_ids.shape[1]. You take the number of sequences.
    L = input_ids.shape[1] -> L = len(input_ids)
You add all rows of W_P. A sequence of L tokens uses the first L of them.
    W_P[:L] -> W_P
You divide the sum. The three rows are only added.
    return W_T[input_ids] + W_S[token_type_ids] + W_P[:L] -> return (W_T[input_ids] + W_S[token_type_ids] + W_P[:L]) / 3
    return W_T[input_ids] + W_S[token_type_ids] + W_P[:L] -> return (W_T[input_ids] + W_S[token_type_ids] + W_P[:L]) / 3**0.5
You multiply the tokens' rows by √d_model, as the Transformer of 2017 does. BERT adds the three rows as they are.
    W_T[input_ids] -> W_T.shape[1] ** 0.5 * W_T[input_ids]
You put the three rows side by side. In BERT they are added.
    return W_T[input_ids] + W_S[token_type_ids] + W_P[:L] -> return ops.concatenate([W_T[input_ids], W_S[token_type_ids], 0 * W_T[input_ids] + W_P[:L]], axis=-1)
The gradient ends at .data, so that table would never learn. Look up in the Tensor itself.
    W_T[input_ids] -> Tensor(W_T.data[input_ids])
    W_P[:L] -> Tensor(W_P.data[:L])
    W_S[token_type_ids] -> Tensor(W_S.data[token_type_ids])
You normalise the sum. LayerNorm comes after this function, not inside it.
    return W_T[input_ids] + W_S[token_type_ids] + W_P[:L] -> X = W_T[input_ids] + W_S[token_type_ids] + W_P[:L]; return (X - X.mean(axis=-1, keepdims=True)) / (X.var(axis=-1, keepdims=True) + 1e-12) ** 0.5
""",
)
def embed(input_ids, token_type_ids, W_T, W_S, W_P):
    L = input_ids.shape[1]  #: the number of tokens in each sequence
    return W_T[input_ids] + W_S[token_type_ids] + W_P[:L]


# --- pack ------------------------------------------------------------------------------------------------


def _texts(first: int, second: int) -> tuple[list[str], list[str]]:
    """Pieces by their text and place, so that a cut at the wrong end shows."""
    return [f"a{i}" for i in range(first)], [f"b{i}" for i in range(second)]


def _pack_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "2 and 3 pieces, padded to 12", *_texts(2, 3), 12
    yield "2 and 3 pieces, which fit into 8", *_texts(2, 3), 8
    yield "10 and 2 pieces into 12", *_texts(10, 2), 12
    yield "2 and 10 pieces into 12", *_texts(2, 10), 12
    yield "9 and 6 pieces into 10", *_texts(9, 6), 10
    yield "6 and 9 pieces into 10", *_texts(6, 9), 10
    yield "6 and 6 pieces into 10", *_texts(6, 6), 10
    yield "6 and 6 pieces into 9", *_texts(6, 6), 9
    yield "4 and no pieces into 9", *_texts(4, 0), 9
    yield "4 and 4 pieces into 3", *_texts(4, 4), 3
    first, second = rng.integers(12, 20, 2).tolist()
    yield f"{first} and {second} pieces into 17", *_texts(first, second), 17


@exercise(
    difficulty=2,
    minutes=20,
    cases=_pack_cases,
    hints="""
Decide first how many pieces of each text are kept, and then write the three lists. [CLS] and two [SEP] take three places, so room = length - 3 is left for the texts.

If the texts do not fit, the shorter text keeps the smaller of its length and room // 2, and the other text gets the rest. Which text counts as the shorter if both are equally long?

token_type_ids has keep_first + 2 zeros, keep_second + 1 ones, then zeros for the padding. attention_mask has a 1 for each token and a 0 for each [PAD].
""",
    mistakes="""
[odd-place] That is the rule of BERT's own scripts: where both texts are equally long, the second loses the next piece. Here the odd place goes to the text that was longer, and to the second if both were equally long.
    first, second = list(first), list(second)
    while len(first) + len(second) > length - 3:
        (first if len(first) > len(second) else second).pop()
    return right(first, second, length)
Where both texts are equally long, your first text loses the next piece, whichever was longer at the start. The odd place goes to the text that was longer.
    first, second = list(first), list(second)
    while len(first) + len(second) > length - 3:
        (second if len(second) > len(first) else first).pop()
    return right(first, second, length)
If both texts are equally long, the odd place goes to the second.
    if keep_first > keep_second: -> if keep_first >= keep_second:
You cut the whole sequence from the right, so the second text is lost first, and with it the last [SEP].
    tokens = ["[CLS]", *first, "[SEP]", *second, "[SEP]"][:length]
    types = ([0] * (len(first) + 2) + [1] * (len(second) + 1))[:length]
    padding = length - len(tokens)
    return tokens + [PAD] * padding, types + [0] * padding, [1] * len(tokens) + [0] * padding
You cut only the second text. The longer text is cut first.
    first = first[: length - 3]
    return right(first, second[: length - 3 - len(first)], length)
You cut only the first text. The longer text is cut first.
    second = second[: length - 3]
    return right(first[: length - 3 - len(second)], second, length)
You always give each text half of the room. A short text is kept whole, and the other text gets the rest.
    half = (length - 3) // 2
    return right(first[:half], second[: length - 3 - half], length)
You cut the texts at their front. Cut them at their end.
    first[:keep_first] -> first[len(first) - keep_first :] ; second[:keep_second] -> second[len(second) - keep_second :]
You always leave the odd place empty, because both texts get room // 2. The odd place goes to the longer text.
    keep_first = room - keep_second -> keep_first = min(keep_first, max(half, room - keep_second - room % 2)) ; keep_second = room - keep_first -> keep_second = min(keep_second, max(half, room - keep_first - room % 2))
[CLS] and two [SEP] take three places. You leave room for two, so the sequence gets too long.
    room = length - 3 -> room = length - 2
You forget [CLS] and [SEP]: the texts themselves have length - 3 places.
    room = length - 3 -> room = length
You leave more than three places for [CLS] and [SEP]. There are one [CLS] and two [SEP].
    room = length - 3 -> room = length - 4
You give the first [SEP] to the second text. Its segment is 0.
    (keep_first + 2) + [1] * (keep_second + 1) -> (keep_first + 1) + [1] * (keep_second + 2)
You give the last [SEP] to the first text. Its segment is 1.
    [1] * (keep_second + 1) -> [1] * keep_second + [0]
You give padding segment 1. Its segment is 0.
    [1] * (keep_second + 1) + [0] * padding -> [1] * (keep_second + 1) + [1] * padding
The segments are 0 and 1, not 1 and 2.
    [0] * (keep_first + 2) + [1] * (keep_second + 1) -> [1] * (keep_first + 2) + [2] * (keep_second + 1)
The segments are swapped: 0 is for [CLS] and the first text.
    [0] * (keep_first + 2) + [1] * (keep_second + 1) -> [1] * (keep_first + 2) + [0] * (keep_second + 1)
All segments are 0. The second text and its [SEP] have segment 1.
    [1] * (keep_second + 1) -> [0] * (keep_second + 1)
The mask is 1 for a token and 0 for padding. Yours is inverted.
    [1] * len(tokens) + [0] * padding -> [0] * len(tokens) + [1] * padding
The mask of padding is 0, but yours hides nothing.
    [1] * len(tokens) + [0] * padding -> [1] * length
Your mask hides [CLS] or [SEP], but both are tokens too. Only the mask of padding is 0.
    [1] * len(tokens) + [0] * padding -> [int(token not in ("[CLS]", "[SEP]")) for token in tokens] + [0] * padding
    [1] * len(tokens) + [0] * padding -> [0] + [1] * (len(tokens) - 1) + [0] * padding
The padding is missing: the three lists must have `length` entries.
    padding = length - len(tokens) -> padding = 0
The padding is in front. It must come after the last [SEP].
    tokens + [PAD] * padding, types, mask -> [PAD] * padding + tokens, [0] * padding + types[:len(tokens)], mask[::-1]
The first text lacks its [SEP].
    *first[:keep_first], "[SEP]", -> *first[:keep_first],
The last [SEP] is missing: both texts end with one.
    *second[:keep_second], "[SEP]"] -> *second[:keep_second]]
The second text gets a [CLS] of its own. There is one [CLS], in front of the first text.
    *second[:keep_second] -> "[CLS]", *second[:keep_second] ; [1] * (keep_second + 1) -> [1] * (keep_second + 2) ; room = length - 3 -> room = length - 4
[CLS] is missing: it comes before the first text.
    "[CLS]", *first -> *first
The second text comes first: the order is [CLS] first [SEP] second [SEP].
    return right(second, first, length)
Your lists come in the wrong order. Return the pieces, the segments, the mask.
    tokens + [PAD] * padding, types, mask -> tokens + [PAD] * padding, mask, types
""",
)
def pack(first, second, length):
    room = length - 3  #: the room for the texts, beside [CLS] and two [SEP]
    keep_first, keep_second = len(first), len(second)  #: both texts' lengths, before any cut
    if keep_first + keep_second > room:
        half = room // 2  #: half of the room, rounded down
        if keep_first > keep_second:
            keep_second = min(keep_second, half)  #: how many pieces the second text keeps, at most half
            keep_first = room - keep_second  #: the rest of the room, for the first text
        else:
            keep_first = min(keep_first, half)  #: how many pieces the first text keeps, at most half
            keep_second = room - keep_first  #: the rest of the room, for the second text
    tokens = ["[CLS]", *first[:keep_first], "[SEP]", *second[:keep_second], "[SEP]"]  #: the tokens, unpadded
    padding = length - len(tokens)  #: the number of [PAD] at the end
    types = [0] * (keep_first + 2) + [1] * (keep_second + 1) + [0] * padding  #: the segments, 0 for padding
    mask = [1] * len(tokens) + [0] * padding  #: the mask: 1 for tokens, 0 for padding
    return tokens + [PAD] * padding, types, mask


# --- look_up ---------------------------------------------------------------------------------------------


def _look_up_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for name, B, L, V, d_model, dtype in (
        ("2 sequences of 5 tokens, 7 pieces", 2, 5, 7, 3, np.float64),
        ("one sequence, 4 pieces", 1, 6, 4, 2, np.float64),
        ("B = L = V = d_model = 4", 4, 4, 4, 4, np.float64),
        ("float32, 3 sequences of 7 tokens, 40 pieces", 3, 7, 40, 5, np.float32),
    ):
        ids = rng.integers(0, V, (B, L))
        ids[:, 1] = ids[:, 0]  # a piece that occurs twice in a sequence
        yield name, tensor(rng.standard_normal((V, d_model)).astype(dtype)), ids
    yield "one piece alone", tensor(rng.standard_normal((6, 4))), np.full((2, 5), 3)
    yield "no axis of sequences", tensor(rng.standard_normal((5, 3))), np.array([4, 0, 4, 4])


@exercise(
    difficulty=3,
    minutes=25,
    cases=_look_up_cases,
    observed=operation,
    same_dtype=True,
    hints="""
X = O W with one-hot rows O, so dW = Oᵀ dX (chapter `reverse_mode`). Row v of dW is the sum of dX over all tokens, of all sequences, whose id is v.

np.add.at(dW, ids, dX) adds rows of dX to rows of dW, even where an id repeats. Start from a dW of zeros that has a row for each piece, whether the piece occurs or not.

W is a Tensor and ids is an array, which needs no gradient: the only parent is W, and backward returns (dW,).
""",
    mistakes="""
A piece that occurs more than once keeps only the gradient of its last occurrence, because += reads, adds and then writes back. np.add.at adds all the gradients.
    np.add.at(dW, ids, dX) -> dW[ids] += dX
    np.add.at(dW, ids, dX) -> dW[ids] = dX
You divide each piece's gradient by how often the piece occurs. The gradient is the sum.
    np.add.at(dW, ids, dX) -> np.add.at(dW, ids, dX); dW /= np.maximum(np.bincount(ids.ravel(), minlength=len(dW)), 1).astype(dX.dtype)[:, None]
You average over the batch. The gradient is the sum; if the loss is a mean, dX already contains the division.
    np.add.at(dW, ids, dX) -> np.add.at(dW, ids, dX / len(dX))
You use only the first sequence, but the whole batch reads the table.
    np.add.at(dW, ids, dX) -> np.add.at(dW, ids[:1], dX[:1])
You use only the last sequence, but the whole batch reads the table.
    np.add.at(dW, ids, dX) -> np.add.at(dW, ids[-1:], dX[-1:])
Every row of the table gets the same gradient. Row v gets only that of the tokens whose id is v.
    np.add.at(dW, ids, dX) -> dW += dX.reshape(-1, dX.shape[-1]).sum(axis=0)
The gradient of the table is missing: you return zeros.
    np.add.at(dW, ids, dX) -> pass
The gradients arrive at the wrong rows. Each belongs to the row of its id.
    np.add.at(dW, ids, dX) -> np.add.at(dW, len(dW) - 1 - ids, dX)
The sign is wrong: a gradient shows how the loss grows, and the optimiser subtracts it.
    return (dW,) -> return (-dW,)
You take dX as 1, but it comes from the layers above.
    np.add.at(dW, ids, dX) -> np.add.at(dW, ids, np.ones_like(dX))
You look up one row too far: the ids count from 0.
    W.data[ids] -> W.data[np.minimum(ids + 1, len(W.data) - 1)]
You look up the ids of the first sequence for all sequences.
    W.data[ids] -> np.broadcast_to(W.data[ids[:1]], (*ids.shape, W.shape[1]))
You divide by the number of ids. The gradient is the sum; if the loss is a mean, dX already contains the division.
    np.add.at(dW, ids, dX) -> np.add.at(dW, ids, dX / np.asarray(ids).size)
You take id 0 for padding, whose row does not learn. Here each row gets the gradient of its tokens.
    np.add.at(dW, ids, dX) -> np.add.at(dW, ids, dX); dW[0] = 0
""",
)
def look_up(W, ids):
    def backward(dX):
        dW = np.zeros_like(W.data)  #: a row of zeros for every piece, (V, d_model)
        np.add.at(dW, ids, dX)  #: the sum of dX over all places of each id
        return (dW,)  #: the gradient for the table, the only parent

    return Tensor.from_op(W.data[ids], (W,), backward)


# --- packing_fault ---------------------------------------------------------------------------------------


def _fault_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def packed(first: int = 3, second: int = 2, padding: int = 3) -> tuple[list[str], list[int], list[int]]:
        words = [f"w{i}" for i in rng.integers(0, 50, first + second)]
        tokens = ["[CLS]", *words[:first], "[SEP]", *words[first:], "[SEP]", *[PAD] * padding]
        types = [0] * (first + 2) + [1] * (second + 1) + [0] * padding
        return tokens, types, [1] * (first + second + 3) + [0] * padding

    yield "a right one", *packed()
    yield "a right one without padding", *packed(padding=0)
    yield "a right one with a text of no pieces", *packed(second=0)
    tokens, types, mask = packed()
    yield "padding that is not hidden", tokens, types, [1] * len(tokens)
    yield "a first [SEP] of the second segment", tokens, [*types[:4], 1, *types[5:]], mask
    yield "a last [SEP] of the first segment", tokens, [*types[:7], 0, *types[8:]], mask
    yield "padding of the second segment", tokens, [*types[:8], 1, 1, 1], mask
    yield "segments that are all 0", tokens, [0] * len(tokens), mask
    yield "segments that are swapped", tokens, [1 - i for i in types[:8]] + [0] * 3, mask
    yield "no [SEP] between the texts", [t for i, t in enumerate(tokens) if i != 4], types[:-1], mask[:-1]
    yield "no [SEP] at the end", [*tokens[:7], *[PAD] * 4], [*types[:7], *[0] * 4], [*mask[:7], *[0] * 4]
    yield "three [SEP]", [*tokens[:2], "[SEP]", *tokens[3:]], types, mask
    yield "a piece after the last [SEP]", [*tokens[:6], "[SEP]", "w9", *tokens[8:]], types, mask
    yield "no [CLS]", ["w1", *tokens[1:]], types, mask
    yield "a [CLS] in front of each text", [*tokens[:5], "[CLS]", *tokens[6:]], types, mask
    yield "a [CLS] in the wrong place", [tokens[1], "[CLS]", *tokens[2:]], types, mask
    yield "a mask that hides [CLS]", tokens, types, [0, *mask[1:]]
    yield "a mask that hides [CLS] and shows a [PAD]", tokens, types, [0, *mask[1:8], 1, 0, 0]
    yield "a mask that is inverted", tokens, types, [1 - i for i in mask]
    yield "a mask that is too short", tokens, types, mask[:-1]
    yield "segments that are too short", tokens, types[:-3], mask
    yield "a mask and segments that are wrong", tokens, [0] * len(tokens), [1] * len(tokens)
    yield "no [CLS] and no mask", ["w1", *tokens[1:]], types, [1] * len(tokens)
    yield "no [SEP] at the end, and padding not hidden", [*tokens[:7], *[PAD] * 4], types, [1] * 11


@exercise(
    difficulty=2,
    minutes=20,
    cases=_fault_cases,
    hints="""
Test in the order of the list and return at the first fault. The three lengths come first, so that later tests may walk through the lists together.

The tokens without padding: real = [token for token in tokens if token != "[PAD]"]. Then real[0], real.count(...) and real[-1] show nearly everything.

The right segments can be computed from the tokens: tokens.index("[SEP]") + 1 zeros, then ones up to the end of real, then zeros. Compare the whole list.
""",
    mistakes="""
The test of the lengths is missing. The three lists must be equally long, or the model cannot read them.
    if not len(tokens) == len(types) == len(mask): -> if False:
Your test of the lengths looks at two of the lists. All three must agree.
    len(tokens) == len(types) == len(mask) -> len(tokens) == len(types) || len(tokens) == len(mask)
The test of [CLS] is missing: [CLS] is the first token, and no other token is [CLS].
    if real[0] != "[CLS]" or real.count("[CLS]") != 1: -> if False:
You look for [CLS] in front but accept a second [CLS] in front of the other text. There is only one.
    real[0] != "[CLS]" or real.count("[CLS]") != 1 -> real[0] != "[CLS]"
You count [CLS] but accept it in any position. It must be the first token.
    real[0] != "[CLS]" or real.count("[CLS]") != 1 -> real.count("[CLS]") != 1
The test of [SEP] is missing: there are two [SEP], and the second is the last token before the padding.
    if real[-1] != "[SEP]" or real.count("[SEP]") != 2: -> if False:
You look at the last token but do not count [SEP]. There are two, one after each text.
    real[-1] != "[SEP]" or real.count("[SEP]") != 2 -> real[-1] != "[SEP]"
You count [SEP] but accept it in any position. The second [SEP] is the last token before the padding.
    real[-1] != "[SEP]" or real.count("[SEP]") != 2 -> real.count("[SEP]") != 2
Your last token may be [PAD]: remove the padding before you look at the end.
    real[-1] != "[SEP]" -> tokens[-1] != "[SEP]"
The test of the mask is missing: the mask is 1 for a token and 0 for padding.
    if mask != [int(token != PAD) for token in tokens]: -> if False:
You add up the mask. A mask with the right number of ones can have them in the wrong places, so compare it with the tokens, one by one.
    mask != [int(token != PAD) for token in tokens] -> sum(mask) != len(real)
You test that padding is hidden, but not that each token is seen.
    mask != [int(token != PAD) for token in tokens] -> any(m for m, token in zip(mask, tokens) if token == PAD)
You test that each token is seen, but not that padding is hidden.
    mask != [int(token != PAD) for token in tokens] -> not all(m for m, token in zip(mask, tokens) if token != PAD)
The test of the segments is missing: they are 0 up to the first [SEP], 1 up to the second, and 0 for padding.
    if types != right_types: -> if False:
The first [SEP] belongs to the first text. You count it as part of the second.
    end = tokens.index("[SEP]") + 1 -> end = tokens.index("[SEP]")
You do not look at the segments of the padding. They are 0.
    if types != right_types: -> if types[: len(real)] != right_types[: len(real)]:
You demand segment 1 for the padding. Padding has segment 0.
    [0] * (len(tokens) - len(real)) -> [1] * (len(tokens) - len(real))
You test that both segments occur, but not where.
    if types != right_types: -> if set(types) != {0, 1}:
Your test of the mask comes before those of the tokens. Where several tests fail, return the name of the first in the list.
    if not len(tokens) == len(types) == len(mask):
        return "lengths"
    if mask != [int(token != PAD) for token in tokens]:
        return "mask"
    return right(tokens, types, mask)
Your test of the segments comes before that of the mask. Where several tests fail, return the name of the first in the list.
    named = right(tokens, types, mask)
    return "segments" if named == "mask" and right(tokens, types, [int(token != PAD) for token in tokens]) == "segments" else named
Return the name of the rule, or "none" if no rule is broken.
    return "none" -> return None || return ""
""",
)
def packing_fault(tokens, types, mask):
    if not len(tokens) == len(types) == len(mask):
        return "lengths"
    real = [token for token in tokens if token != PAD]  #: the tokens without padding
    if real[0] != "[CLS]" or real.count("[CLS]") != 1:
        return "cls"
    if real[-1] != "[SEP]" or real.count("[SEP]") != 2:
        return "sep"
    if mask != [int(token != PAD) for token in tokens]:
        return "mask"
    end = tokens.index("[SEP]") + 1  #: the end of the first text, behind its [SEP]
    right_types = [0] * end + [1] * (len(real) - end) + [0] * (len(tokens) - len(real))  #: the right segments
    if types != right_types:
        return "segments"
    return "none"


# --- even_width ------------------------------------------------------------------------------------------


def _width_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "BERT-Base's V = 30,522 and N = 12", 30522, 12
    yield "the stored model's V = 4,096 and N = 2", 4096, 2
    for N in (1, 6, 24):
        width = int(rng.integers(20, 300))
        V = width * (12 * N + 1) + 13 * N - 515  # both halves are equal at this width
        yield f"V = {V:,} and N = {N}", V, N
        yield f"V = {V + 1:,} and N = {N}", V + 1, N
    yield "V = 30 and N = 48", 30, 48


@exercise(
    difficulty=2,
    minutes=15,
    cases=_width_cases,
    hints="""
The embeddings have (V + 512 + 2) d_model entries in the tables, and 2 d_model in their LayerNorm. Everything else is N layers and the pooler.

"At most half" means: no more than everything else together. Both sides have a factor d_model: divide by it, and what is left is linear.

V + 516 ≤ N (12 d_model + 13) + d_model + 1. Solve for d_model and round up, or try 1, 2, 3, … It is at least 1.
""",
    mistakes="""
Your count of the embeddings leaves something out: V + 512 + 2 rows of three tables, and a LayerNorm with a gain and a bias.
    V + 512 + 2 + 2 -> V + 2 + 2 || V + 512 + 2 || V + 512 || V || V + 512 + 2 + 1
The biases and LayerNorms of the layers are missing: 13 d_model in each layer.
    N * (12 * d**2 + 13 * d) -> N * 12 * d**2
The pooler is missing.
    + d**2 + d -> + 0
You count the pooler once for each layer. There is one.
    N * (12 * d**2 + 13 * d) + d**2 + d -> N * (13 * d**2 + 14 * d)
You count one layer. There are N of them.
    N * (12 -> (12
That is the last width at which the embeddings have more than half. The answer is the next width.
    return d -> return d - 1
At the width where both halves are equal, the embeddings have half, and that is "at most half". Either you ask for less than half, or the pooler's bias is missing.
    * d > N -> * d >= N
    + d**2 + d -> + d**2
You compare the embeddings with half of the layers. Half of all means as many as everything else.
    * d > N * (12 * d**2 + 13 * d) + d**2 + d: -> * d > (N * (12 * d**2 + 13 * d) + d**2 + d) / 2:
You ask for twice as many embeddings as other parameters. Half of all means as many as everything else.
    * d > N * (12 * d**2 + 13 * d) + d**2 + d: -> * d > 2 * (N * (12 * d**2 + 13 * d) + d**2 + d):
Your width is not a whole number. Round up.
    excess = (V + 512 + 2 + 2 - 1 - 13 * N) / (12 * N + 1)
    return excess if excess > 1 else 1
You round to the nearest whole number. The answer is the first width that is large enough: round up.
    return max(1, round((V + 512 + 2 + 2 - 1 - 13 * N) / (12 * N + 1)))
You round down. The answer is the first width that is large enough: round up.
    return max(1, (V + 512 + 2 + 2 - 1 - 13 * N) // (12 * N + 1))
Your width falls below 1, the smallest width.
    return -((13 * N - V - 515) // (12 * N + 1))
""",
)
def even_width(V, N):
    d = 1  #: the first width to try, the smallest
    while (V + 512 + 2 + 2) * d > N * (12 * d**2 + 13 * d) + d**2 + d:
        d += 1  #: one more, for the next width to try
    return d
