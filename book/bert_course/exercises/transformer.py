"""Chapter `transformer`: masks, shift and smoothing of the encoder-decoder Transformer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.common.softmax import softmax

Decoder = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


# --- shift_and_mask ---------------------------------------------------------------------------------------


def _shift_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(lengths: list[int], sources: list[int], start: int = 2, pad: int = 0) -> tuple[Any, ...]:
        T, S = max(lengths), max(sources)
        labels = np.full((len(lengths), T), -100)
        ids = np.full((len(sources), S), pad)
        for row, (t, s) in enumerate(zip(lengths, sources, strict=True)):
            labels[row, :t] = rng.integers(5, 90, t)
            labels[row, t - 1] = 3
            ids[row, :s] = rng.integers(5, 90, s)
        return labels, ids, start, pad

    yield "2 texts of one length", *draw([4, 4], [3, 3])
    yield "3 texts of different lengths", *draw([5, 2, 3], [4, 6, 2])
    yield "one word and its end token", *draw([2], [1])
    yield "the end token alone", *draw([1, 3], [2, 2])
    yield "source and target of one length, other padding", *draw([5, 3], [2, 5])
    yield "start token 7, padding 1", *draw([3, 5], [4, 2], start=7, pad=1)


@exercise(
    difficulty=1,
    minutes=15,
    cases=_shift_cases,
    hints="""
The decoder reads the start token, then all labels but the last. Where a label is -100 there is no word, so write padding there.

np.tri(T, dtype=bool) is True on and below the diagonal. Self-attention may look where this is True and where the target it reads is not padding.

Cross-attention has a row for each position of the target and a column for each of the source, so its mask comes from the source.
""",
    mistakes="""
The decoder reads the labels as they are. Shift them one position to the right, after the start token; otherwise the model learns to copy.
    ids[:, 1:] = labels[:, :-1] -> ids[:, :] = labels
Your labels move to the left. Each position must read the word before its label.
    ids[:, 1:] = labels[:, :-1] -> ids[:, :-1] = labels[:, 1:]
The start token is missing. The first position reads it.
    np.full_like(labels, start) -> np.full_like(labels, pad)
There is still -100 in what the decoder reads. It is no id; write the id of padding.
    np.where(ids == -100, pad, ids) -> ids
You write 0 for padding. The id of padding is the argument pad.
    np.where(ids == -100, pad, ids) -> np.where(ids == -100, 0, ids)
A position can look at later words. Only columns up to the row's own are allowed.
    np.tri(T, dtype=bool) -> np.ones((T, T), bool)
Your triangle is upside down. A position looks at itself and at earlier ones, so the lower triangle is True.
    np.tri(T, dtype=bool) -> np.tri(T, dtype=bool).T
A position cannot look at itself. It may, because it holds the word before, not the word to predict.
    np.tri(T, dtype=bool) -> np.tri(T, k=-1, dtype=bool)
Self-attention may still look at padding of the target. Both masks must allow a column.
    np.tri(T, dtype=bool) & (ids != pad)[:, None, :] -> np.tri(T, dtype=bool) & np.ones((len(ids), 1, T), bool)
You allow a column that one of the two masks allows. Both must allow it, so combine them with &.
    np.tri(T, dtype=bool) & (ids != pad)[:, None, :] -> np.tri(T, dtype=bool) | (ids != pad)[:, None, :]
You hide the rows of padding. A mask hides columns, because columns are what is looked at.
    np.tri(T, dtype=bool) & (ids != pad)[:, None, :] -> np.tri(T, dtype=bool) & (ids != pad)[:, :, None]
    np.broadcast_to((source != pad)[:, None, :], (len(source), T, source.shape[1])) -> (source != pad)[:, None, :] & (ids != pad)[:, :, None]
You hide padding where the labels have it. The decoder reads shifted words, whose padding begins one position later.
    (ids != pad)[:, None, :] -> (labels != -100)[:, None, :]
Cross-attention looks at the source, so its padding is the source's. Yours is the target's.
    np.broadcast_to((source != pad)[:, None, :], (len(source), T, source.shape[1])) -> np.broadcast_to((ids != pad)[:, None, :], (len(ids), T, T))
Cross-attention hides nothing. The padding of the source must get no weight.
    np.broadcast_to((source != pad)[:, None, :], (len(source), T, source.shape[1])) -> np.ones((len(source), T, source.shape[1]), bool)
Cross-attention has no sequence mask. The whole source is known, so each position may look at all of it.
    np.broadcast_to((source != pad)[:, None, :], (len(source), T, source.shape[1])) -> (source != pad)[:, None, :] & np.tri(T, source.shape[1], dtype=bool)
Your masks are True where a position must not look. Here True means that it may.
    return ids, own, cross -> return ids, ~own, ~cross
The order is ids, self-attention, cross-attention.
    return ids, own, cross -> return ids, cross, own || return own, cross, ids
Return all three: the ids and both masks.
    return ids, own, cross -> return ids, own || return own, cross
Each mask needs a row for each position of the target: (B, T, T) and (B, T, S).
    np.broadcast_to((source != pad)[:, None, :], (len(source), T, source.shape[1])) -> source != pad
You take 0 for the padding of the source. The id of padding is the argument pad.
    (source != pad) -> (source != 0)
You take 0 for the padding of the target. The id of padding is the argument pad.
    (ids != pad)[:, None, :] -> (ids != 0)[:, None, :]
Your mask of the source is True for padding. Here True means that a position may look.
    return ids, own, cross -> return ids, own, ~cross
""",
)
def shift_and_mask(labels, source, start, pad):
    T = labels.shape[1]  #: the number of positions of the target
    ids = np.full_like(labels, start)  #: the start token at every position
    ids[:, 1:] = labels[:, :-1]  #: each text's labels but the last position's
    ids = np.where(ids == -100, pad, ids)  #: what the decoder reads, pad for every -100
    own = np.tri(T, dtype=bool) & (ids != pad)[:, None, :]  #: words up to the row's own, no padding
    cross = np.broadcast_to((source != pad)[:, None, :], (len(source), T, source.shape[1]))  #: source words
    return ids, own, cross


# --- smoothed_loss ----------------------------------------------------------------------------------------


def _smooth_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for name, V, eps, size, dtype in (
        ("5 words, ε = 0.1", 5, 0.1, 1.0, np.float64),
        ("30 words, ε = 0.3", 30, 0.3, 2.0, np.float64),
        ("two words, ε = 0.5", 2, 0.5, 1.0, np.float64),
        ("no smoothing", 7, 0.0, 1.0, np.float64),
        ("float32, 40 words", 40, 0.1, 3.0, np.float32),
        ("logits in the thousands", 6, 0.2, 1500.0, np.float64),
    ):
        yield name, (size * rng.standard_normal(V)).astype(dtype), int(rng.integers(V)), eps


@exercise(
    difficulty=3,
    minutes=25,
    cases=_smooth_cases,
    rtol=1e-5,
    atol=1e-6,
    hints="""
Write the targets first: q has ε/V for each word, and 1 - ε more for the right one. Do they sum to 1?

With log p = logits - log of the sum of their exponentials, the loss is minus the sum of q log p. Differentiate it for a logit; the sum of q is 1.

The lowest loss is reached at p = q. Put q in place of p in the loss. Without smoothing this is 0, so 0 · log 0 must not become NaN.
""",
    mistakes="""
Your targets sum to more than 1: the right word has 1 in them, and ε is added on top.
    q[label] += 1 - eps -> q[label] += 1
Your right word has 1 - ε. It also gets its own share of ε, because ε is spread over all V words.
    q[label] += 1 - eps -> q[label] = 1 - eps
You spread ε over the V - 1 wrong words. The paper's smoothing spreads it over all V words.
    np.full(V, eps / V) -> np.full(V, eps / (V - 1)) ; q[label] += 1 - eps -> q[label] = 1 - eps
Each wrong word has ε. Together they share ε, so each has ε/V.
    np.full(V, eps / V) -> np.full(V, eps)
You do not smooth. The targets are 1 - ε + ε/V for the right word, and ε/V for the others.
    np.full(V, eps / V) -> np.zeros(V) ; q[label] += 1 - eps -> q[label] = 1
The gradient is p - q: yours has the opposite sign, and points to where the loss falls.
    return loss, p - q, lowest -> return loss, q - p, lowest
The gradient uses the right word alone. Its targets are the smoothed ones.
    return loss, p - q, lowest -> return loss, p - (np.arange(V) == label), lowest
You return p instead of the gradient, which is p - q for the logits.
    return loss, p - q, lowest -> return loss, p, lowest
The lowest loss is not 0. At p = q the loss is the entropy of q.
    return loss, p - q, lowest -> return loss, p - q, 0.0
You return the mean over the words. The loss is their sum.
    loss = -(q * log_p).sum() -> loss = -(q * log_p).mean()
The loss has the wrong sign. A loss is positive.
    loss = -(q * log_p).sum() -> loss = (q * log_p).sum()
The lowest loss has the wrong sign. An entropy is positive.
    return loss, p - q, lowest -> return loss, p - q, -lowest
Large logits overflow. Subtract the largest before the exponential.
    logits = logits - logits.max() -> pass
    logits = logits - logits.max() -> pass ; logits - np.log(np.exp(logits).sum()) -> np.log(np.exp(logits) / np.exp(logits).sum())
The order is the loss, its gradient, the lowest loss.
    return loss, p - q, lowest -> return loss, lowest, p - q
Return three things: the loss, its gradient, and the lowest loss.
    return loss, p - q, lowest -> return loss, p - q || return loss
You add a small number inside the logarithm, so a word that the model considers impossible costs too little. Take the logarithm of the softmax as in log_p: no number is then 0.
    loss = -(q * log_p).sum() -> loss = -(q * np.log(p + 1e-9)).sum() || loss = -(q * np.log(p + 1e-12)).sum() || loss = -(q * np.log(p + 1e-8)).sum()
Without smoothing, some targets are 0, and 0 times log 0 is NaN. They add nothing to an entropy: leave them out.
    q[there] * np.log(q[there]) -> q * np.log(q)
That is the entropy of the model's p. The lowest loss is reached at p = q, so it is the entropy of q.
    lowest = -(q[there] * np.log(q[there])).sum() -> lowest = -(p * log_p).sum()
The lowest loss is the entropy of all of q. You take the right word's part alone.
    lowest = -(q[there] * np.log(q[there])).sum() -> lowest = -np.log(q[label])
""",
)
def smoothed_loss(logits, label, eps):
    V = len(logits)  #: the number of words
    q = np.full(V, eps / V)  #: the share of ε that each word gets, ε/V
    q[label] += 1 - eps  #: what the right word gets besides, 1 - ε
    logits = logits - logits.max()  #: the logits less the largest of them
    log_p = logits - np.log(np.exp(logits).sum())  #: logarithms of the probabilities
    p = np.exp(log_p)  #: each word's probability, the softmax of the logits
    loss = -(q * log_p).sum()  #: the loss, a sum over all V words
    there = q > 0  #: which words have a target above 0
    lowest = -(q[there] * np.log(q[there])).sum()  #: the entropy of the targets q
    return loss, p - q, lowest


# --- masks_at ---------------------------------------------------------------------------------------------


def _place_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    for place in (
        "encoder",
        "decoder, self-attention",
        "decoder, cross-attention",
        "decoder, one step of writing",
        "BERT",
        "GPT",
    ):
        yield place, place


@exercise(
    difficulty=2,
    minutes=10,
    cases=_place_cases,
    hints="""
Two questions decide: whose words are the columns (their padding is hidden), and is there a word in the row of columns that must not be known yet?

In one step of writing, one row asks. All words so far come before it, and no text has padding on the right yet.

BERT guesses hidden words, so it may look at both sides. GPT writes the next word of the text that it reads.
""",
    mistakes="""
In cross-attention the columns are words of the source, so the source's padding is hidden.
    "decoder, cross-attention": ("target", "source", ["source padding"]) -> "decoder, cross-attention": ("target", "source", ["target padding"])
Cross-attention needs no sequence mask, because the whole source is known before the first word is written.
    "decoder, cross-attention": ("target", "source", ["source padding"]) -> "decoder, cross-attention": ("target", "source", ["later words", "source padding"])
In cross-attention the queries come from the target, and keys and values from the source.
    "decoder, cross-attention": ("target", "source", ["source padding"]) -> "decoder, cross-attention": ("source", "target", ["source padding"]) || "decoder, cross-attention": ("source", "target", ["target padding"])
The decoder's self-attention must hide later words too, or it learns from words that are not there when it writes.
    "decoder, self-attention": ("target", "target", ["later words", "target padding"]) -> "decoder, self-attention": ("target", "target", ["target padding"])
The decoder's self-attention hides padding as well. With padding on the right the sequence mask alone would do, but in the exercise padding may be anywhere.
    "decoder, self-attention": ("target", "target", ["later words", "target padding"]) -> "decoder, self-attention": ("target", "target", ["later words"])
The decoder's self-attention looks at the target. The source comes in with cross-attention.
    "decoder, self-attention": ("target", "target", ["later words", "target padding"]) -> "decoder, self-attention": ("target", "source", ["later words", "source padding"])
You let the mask of later words stand for the target's padding. In training, both are hidden.
    ["later words", "target padding"] -> ["later words"]
In one step of writing, nothing has to be hidden: there are no later words, and no padding.
    "decoder, one step of writing": ("target", "target", []) -> "decoder, one step of writing": ("target", "target", ["later words"]) || "decoder, one step of writing": ("target", "target", ["later words", "target padding"])
The encoder may look at both sides. It hides padding only.
    "encoder": ("source", "source", ["source padding"]) -> "encoder": ("source", "source", ["later words", "source padding"])
The encoder hides nothing in your table. The source of a batch has padding too.
    "encoder": ("source", "source", ["source padding"]) -> "encoder": ("source", "source", [])
BERT is an encoder. It sees both sides, and hides padding only.
    "BERT": ("source", "source", ["source padding"]) -> "BERT": ("source", "source", ["later words", "source padding"])
BERT's text is what it reads; it has no target. Call it "source".
    "BERT": ("source", "source", ["source padding"]) -> "BERT": ("target", "target", ["target padding"])
GPT has one stack. It reads and writes the same text, and hides what comes later, and padding. Call its text "target".
    "GPT": ("target", "target", ["later words", "target padding"]) -> "GPT": ("target", "target", ["later words"]) || "GPT": ("target", "target", ["target padding"]) || "GPT": ("source", "source", ["later words", "source padding"]) || "GPT": ("source", "source", ["source padding"])
The order is: whose queries, whose keys and values, what is hidden.
    return asks, answers, hidden -> return hidden, asks, answers
What is hidden is a list in the order of the alphabet.
    return asks, answers, hidden -> return asks, answers, hidden[::-1] || return asks, answers, " ".join(hidden)
""",
)
def masks_at(place):
    table = {
        "encoder": ("source", "source", ["source padding"]),
        "decoder, self-attention": ("target", "target", ["later words", "target padding"]),
        "decoder, cross-attention": ("target", "source", ["source padding"]),
        "decoder, one step of writing": ("target", "target", []),
        "BERT": ("source", "source", ["source padding"]),
        "GPT": ("target", "target", ["later words", "target padding"]),
    }  #: whose queries, whose keys, what is hidden, for each place
    asks, answers, hidden = table[place]  #: who asks, who is looked at, what is hidden
    return asks, answers, hidden


# --- fault_in_decoder -------------------------------------------------------------------------------------


def _decoder(fault: str, seed: int) -> Decoder:
    """A decoder layer with random weights and one fault: target (T, 4), source (S, 4), words (S,) -> (T, 4)."""
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((6, 4, 4)) / 2

    def run(target: np.ndarray, source: np.ndarray, words: np.ndarray) -> np.ndarray:
        T, S = len(target), len(source)
        now = np.tri(T, dtype=bool)
        if fault == "future":
            now = np.ones((T, T), bool)
        scores = (target @ W[0]) @ (target @ W[1]).T
        y = target + softmax(np.where(now, scores, -1e9)) @ target @ W[2]
        seen = np.ones((T, S), bool) & words
        if fault == "padding":
            seen = np.ones((T, S), bool)
        if fault == "late":
            seen = seen & np.tri(T, S, dtype=bool)
        asks = y @ W[3]
        memory = source
        if fault == "blind":
            return np.tanh(y + softmax(np.where(np.tri(T, dtype=bool), asks @ (y @ W[4]).T, -1e9)) @ y @ W[5])
        return np.tanh(y + softmax(np.where(seen, asks @ (memory @ W[4]).T, -1e9)) @ memory @ W[5])

    return run


def _fault_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    faults = ("padding", "none", "late", "future", "blind", "none", "late")
    for letter, fault in zip("ABCDEFG", faults, strict=True):
        yield f"decoder {letter}", _decoder(fault, int(rng.integers(10_000)))


@exercise(
    difficulty=3,
    minutes=25,
    cases=_fault_cases,
    hints="""
You do not know the weights, so you cannot compute what is right. You can change one input at a time, and see which rows of the output change.

Change the last row of the target. Which output rows may change, and which change with "future"?

Change a row of the source where words is False, then the last row where it is True. Look at the first row of the output in each case. Use a source that is longer than the target's first rows: at least two words.
""",
    mistakes="""
You never say "future". Change the last row of the target and look at the first row of the output.
    moved(later, source)[0] -> False
You never say "padding". Change a row of the source where words is False.
    moved(target, padded).any() -> False
You never say "late". Change the last word of the source and look at the first row of the output: it may see the whole source.
    not moved(target, last)[0] -> False
You say "late" of a decoder that never looks at the source. Before you test "late", change the whole source and see whether anything changes.
    not moved(target, source + 1).any() -> False
You call the late mask blind. With "late", later rows of the output do change with the source.
    not moved(target, source + 1).any() -> not moved(target, last)[0]
You look at the last row, which may see all words of the target. Look at the first.
    moved(later, source)[0] -> moved(later, source)[-1]
You say "none" of every decoder.
    return name -> return "none"
Write the name in lower case, as in the exercise.
    return name -> return name.upper()
Return one name, and not a list of names.
    return name -> return [name]
""",
)
def fault_in_decoder(decoder):
    rng = np.random.default_rng(0)
    target, source = rng.standard_normal((4, 4)), rng.standard_normal((6, 4))  #: a random target and source
    words = np.arange(6) < 5  #: words at all places of the source but the last
    given = decoder(target, source, words)  #: the output for the inputs as they are

    def moved(target, source):
        return np.abs(decoder(target, source, words) - given).max(axis=1) > 1e-9  #: which rows have changed

    later, padded, last = target.copy(), source.copy(), source.copy()  #: three copies to be changed
    later[-1] += 1  #: a change of the target's last word
    padded[-1] += 1  #: a change of the source's padding
    last[-2] += 1  #: a change of the source's last word
    name = "none"
    if moved(later, source)[0]:
        name = "future"
    elif moved(target, padded).any():
        name = "padding"
    elif not moved(target, source + 1).any():
        name = "blind"
    elif not moved(target, last)[0]:
        name = "late"
    return name


# --- most_aligned_head ------------------------------------------------------------------------------------


def _head_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def draw(layers: int, h: int, texts: int, marks: bool) -> tuple[Any, ...]:
        weights, gold = [], []
        best = (int(rng.integers(layers)), int(rng.integers(h)))
        for _ in range(texts):
            T, S = (int(n) for n in rng.integers(4, 9, 2))
            scores = rng.standard_normal((layers, h, T, S))
            places: list[tuple[int, ...]] = [(int(rng.integers(S)),) for _ in range(T)]
            if marks:
                places[1] = ()
            for t, place in enumerate(places):
                if place and rng.random() < 0.7:
                    scores[(*best, t, place[0])] += 4
            weights.append(softmax(scores))
            gold.append(places)
        return weights, gold

    yield "2 layers of 4 heads, 6 texts", *draw(2, 4, 6, False)
    yield "3 layers of 2 heads, words without a gold one", *draw(3, 2, 8, True)
    yield "one layer, one text", *draw(1, 4, 1, False)
    weights, gold = draw(2, 3, 5, True)
    yield "weights in float32", [one.astype(np.float32) for one in weights], gold


@exercise(
    difficulty=2,
    minutes=20,
    cases=_head_cases,
    hints="""
For one text, weights has the axes layer, head, target word, source word. Its argmax along the last axis gives a position for each head and word.

Count, for each layer and head, how many words have their largest weight on a gold position. Leave out words without a gold one.

Count over all words of all texts, not text by text. np.unravel_index turns the index of the largest share into a layer and a head.
""",
    mistakes="""
You count words without a gold one as misaligned. Leave them out.
    if place: -> if True:
You take the head that is aligned least.
    shares.argmax() -> shares.argmin()
You return the head's number over all layers. Return its layer and its number within it.
    np.unravel_index(shares.argmax(), shares.shape) -> (shares.argmax(), 0); return int(layer), 0, float(shares.max())
Layer comes first, then the head.
    return int(layer), int(head), float(shares[layer, head]) -> return int(head), int(layer), float(shares[layer, head])
You take the weight on the gold word. A word counts as 1 if its largest weight is on a gold position, and as 0 otherwise.
    best[..., t] == at -> one[:, :, t, at]
You look at the smallest weights.
    one.argmax(axis=-1) -> one.argmin(axis=-1)
You take the largest weight along the target. Each target word looks at the source, so use the last axis.
    one.argmax(axis=-1) -> np.resize(one.argmax(axis=-2), (*one.shape[:2], len(places)))
You average the heads. The question is which single head is aligned.
    one.argmax(axis=-1) -> np.broadcast_to(one.mean(axis=1, keepdims=True), one.shape).argmax(axis=-1)
You give the number of words. Give the share.
    shares = hits / count -> shares = hits
Heads and layers are counted from 0 here.
    return int(layer), int(head), float(shares[layer, head]) -> return int(layer) + 1, int(head) + 1, float(shares[layer, head])
Return the layer, the head and the share.
    return int(layer), int(head), float(shares[layer, head]) -> return int(layer), int(head)
You take the flat number apart with the number of layers. A layer has as many numbers as it has heads.
    np.unravel_index(shares.argmax(), shares.shape) -> divmod(shares.argmax(), len(shares))
""",
)
def most_aligned_head(weights, gold):
    hits, count = np.zeros(weights[0].shape[:2]), 0  #: no hits in any head, no words
    for one, places in zip(weights, gold):  # noqa: B905  #: a text's weights and gold
        best = one.argmax(axis=-1)  #: the strongest source place, (layers, h, T)
        for t, place in enumerate(places):  #: every target word's gold places
            if place:
                at = place[0] if place else -1  #: the word's gold position
                hits += best[..., t] == at  #: which heads are right here, (layers, h)
                count += 1  #: one more word that has a gold position
    shares = hits / count  #: each head's share of right words, (layers, h)
    layer, head = np.unravel_index(shares.argmax(), shares.shape)  #: the most aligned head
    return int(layer), int(head), float(shares[layer, head])
