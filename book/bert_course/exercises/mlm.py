"""Chapter `mlm`: masked language modelling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise

# --- mlm_loss --------------------------------------------------------------------------------------------


def _loss_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def case(
        B: int, L: int, V: int, places: list[tuple[int, int]], dtype: type = np.float64
    ) -> tuple[Any, Any]:
        labels = np.full((B, L), -100)
        for b, i in places:
            labels[b, i] = rng.integers(1, V)
        return (2 * rng.standard_normal((B, L, V))).astype(dtype), labels

    yield "two texts, one and three chosen tokens", *case(2, 6, 120, [(0, 2), (1, 1), (1, 3), (1, 4)])
    logits, labels = case(2, 5, 130, [(0, 1), (1, 2), (1, 3)])
    labels[0, 1] = 0
    yield "a chosen token whose id is 0", logits, labels
    yield "a text without a chosen token, float32", *case(3, 4, 110, [(0, 1), (2, 1), (2, 2)], np.float32)
    logits, labels = case(2, 4, 125, [(0, 0), (1, 1), (1, 2)])
    yield "logits near 1,000", logits + 1000, labels
    yield "one chosen token", *case(1, 3, 150, [(0, 1)])


@exercise(
    difficulty=1,
    minutes=10,
    cases=_loss_cases,
    hints="""
First take the chosen rows out of the logits: labels != -100 is True where a token was chosen, and logits[that] has the shape (n, V).

The loss of a row y is log(Σ e^y) - y[true]. Subtract the largest entry of the row first, so that nothing overflows.

Take the mean over the n chosen tokens of all texts together.
""",
    mistakes="""
You divide by the number of all tokens. Tokens that were not chosen do not count, so they must not be in the denominator either.
    losses.mean() -> losses.sum() / labels.size
You return the sum. The loss is the mean over the chosen tokens.
    losses.mean() -> losses.sum()
You divide by the number of texts. The loss is the mean over the chosen tokens of the batch.
    losses.mean() -> losses.sum() / len(labels)
You take a mean for each text, and then the mean of these. Then a chosen token of a text with few of them weighs more. All chosen tokens of the batch have the same weight.
    chosen = labels != -100
    y = logits - logits.max(axis=-1, keepdims=True)
    log_sum = np.log(np.exp(y).sum(axis=-1))
    losses = log_sum - np.take_along_axis(y, np.where(chosen, labels, 0)[..., None], axis=-1)[..., 0]
    return np.mean([row[which].mean() for row, which in zip(losses, chosen) if which.any()])
You leave out chosen tokens whose id is 0. An id of 0 is a piece like any other; only the label -100 says that a token does not count.
    labels != -100 -> labels > 0
You count all tokens. The label -100 is no id: NumPy reads it as the hundredth entry from the end.
    labels != -100 -> labels == labels
The exponential overflows. Subtract the largest logit of each row first; the loss stays the same.
    logits[chosen] - logits[chosen].max(axis=-1, keepdims=True) -> logits[chosen]
    y = logits[labels != -100]
    p = np.exp(y) / np.exp(y).sum(axis=-1, keepdims=True)
    return -np.log(p[np.arange(len(y)), labels[labels != -100]]).mean()
The sign is wrong: the loss is -log p, which is never negative.
    log_sum - y[np.arange(len(true)), true] -> y[np.arange(len(true)), true] - log_sum
You take the loss of the model's best guess. Take the loss of the true piece, even if the model finds another piece likelier.
    y[np.arange(len(true)), true] -> y.max(axis=-1)
You average the probabilities and take the logarithm once. The loss is the mean of the logarithms.
    losses.mean() -> -np.log(np.exp(-losses).mean())
You return the probability, or its complement. The loss is -log p.
    losses.mean() -> np.exp(-losses).mean() || (1 - np.exp(-losses)).mean()
[bits] Your unit is the bit, with the logarithm to base 2. The course counts in nats.
    losses.mean() -> losses.mean() / np.log(2)
You average over the whole vocabulary. The loss of a token is -log p of one piece, the true one.
    log_sum - y[np.arange(len(true)), true] -> log_sum - y.mean(axis=-1)
You leave out the sum of the exponentials. A logit is not the logarithm of a probability: the softmax still has to divide by that sum.
    log_sum - y[np.arange(len(true)), true] -> -y[np.arange(len(true)), true]
""",
)
def mlm_loss(logits, labels):
    chosen = labels != -100
    true = labels[chosen]
    y = logits[chosen] - logits[chosen].max(axis=-1, keepdims=True)
    log_sum = np.log(np.exp(y).sum(axis=-1))
    losses = log_sum - y[np.arange(len(true)), true]
    return losses.mean()


# --- tied_table_grad -------------------------------------------------------------------------------------


def _tied_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def case(V: int, d: int, ids: list[int], labels: list[int], dtype: type = np.float64) -> tuple[Any, ...]:
        W_T, W = rng.standard_normal((V, d)), rng.standard_normal((d, d))
        return W_T.astype(dtype), W.astype(dtype), np.array(ids), np.array(labels)

    yield "one [MASK] (id 0)", *case(7, 4, [3, 0, 5], [-100, 2, -100])
    yield "two [MASK]: one row is looked up twice", *case(6, 3, [0, 4, 0, 2, 1], [3, -100, 5, -100, -100])
    yield "a kept word", *case(5, 3, [1, 3, 4, 2], [-100, 3, -100, -100])
    yield "float32, a hidden and a kept word", *case(9, 5, [0, 7, 7, 2], [4, 7, -100, -100], np.float32)
    yield "a chosen token whose id is 0", *case(6, 4, [3, 2, 5], [-100, 0, 4])
    yield "every token is chosen", *case(4, 3, [0, 0, 2], [1, 3, 2])


@exercise(
    difficulty=3,
    minutes=30,
    cases=_tied_cases,
    hints="""
Give the two uses different names: A for the table of the look-up, and B for the table of the product. Find dA and dB, and set A = B = W_T at the end: the gradient is dA + dB.

For one row, the gradient of the loss with respect to its logits is the softmax of the row, minus 1 at the true piece. The mean over n chosen tokens divides it by n.

With Y = G Bᵀ, dB = dYᵀ G and dG = dY B. With G = X W, dX = dG Wᵀ. The look-up's backward adds the rows of dX at the rows of their ids, and np.add.at adds repeated ones up.
""",
    mistakes="""
The look-up is missing. The table also made the vectors that the model read, so a gradient arrives there too.
    np.add.at(dW_T, ids[chosen], dX) -> pass
The product is missing. The table also scored the pieces, so every row gets a gradient there.
    dW_T = dY.T @ G -> dW_T = np.zeros_like(W_T)
A row that is looked up twice gets only one of its gradients. The backward of a look-up is a scatter-add; use np.add.at.
    np.add.at(dW_T, ids[chosen], dX) -> dW_T[ids[chosen]] += dX
The look-up overwrites what the product gave. The two gradients add up.
    np.add.at(dW_T, ids[chosen], dX) -> dW_T[ids[chosen]] = dX
Your look-up sends its gradient to the true piece. It belongs to the piece that the model read there, which is mostly [MASK].
    np.add.at(dW_T, ids[chosen], dX) -> np.add.at(dW_T, labels[chosen], dX)
The minus 1 at the true piece is missing: dY is softmax minus one-hot.
    dY[np.arange(len(chosen)), labels[chosen]] -= 1 -> pass
The sign of dY is wrong: it is softmax minus one-hot, so that a descent raises the true piece.
    dY / len(chosen) -> -dY / len(chosen)
You do not divide by the number of chosen tokens. The loss is their mean.
    dY / len(chosen) -> dY
You divide by the number of all tokens. The mean is over the chosen ones.
    dY / len(chosen) -> dY / len(ids)
W is not transposed on the way back: from G = X W comes dX = dG Wᵀ.
    dY @ W_T @ W.T -> dY @ W_T @ W
You send dG into the look-up. W lies between: dX = dG Wᵀ.
    dY @ W_T @ W.T -> dY @ W_T
The product's part needs the rows that went into it, G. You took the rows before W.
    dY.T @ G -> dY.T @ W_T[ids[chosen]]
You take the mean of the two gradients. By the chain rule, two uses of one parameter add up.
    return dW_T -> return dW_T / 2
You take the labels above 0 as the chosen ones. 0 is a piece like the others: what is not chosen has the label -100.
    np.flatnonzero(labels != -100) -> np.flatnonzero(labels > 0)
""",
)
def tied_table_grad(W_T, W, ids, labels):
    chosen = np.flatnonzero(labels != -100)
    G = W_T[ids[chosen]] @ W
    Y = G @ W_T.T
    powers = np.exp(Y - Y.max(axis=-1, keepdims=True))
    dY = powers / powers.sum(axis=-1, keepdims=True)
    dY[np.arange(len(chosen)), labels[chosen]] -= 1
    dY = dY / len(chosen)
    dX = dY @ W_T @ W.T
    dW_T = dY.T @ G
    np.add.at(dW_T, ids[chosen], dX)
    return dW_T


# --- whole_words -----------------------------------------------------------------------------------------


def _pieces_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def case(text: str, order: list[float] | None = None) -> tuple[list[str], np.ndarray]:
        pieces = text.split()
        return pieces, rng.random(len(pieces)) if order is None else np.array(order)

    three = "[CLS] we em ##bed ##ding ##s the token ##izer reads in a text file now [SEP] it is a small file [SEP]"
    yield (
        "no word in pieces, 12 tokens",
        *case("[CLS] the file is opened for reading and then closed . [SEP]"),
    )
    pieces, order = case(three)
    # the word of four pieces does not fit; then two pieces, then one
    order[2], order[7], order[10] = -3, -2, -1
    yield "the first word does not fit", pieces, order
    pieces, order = case(three)
    order[7], order[8], order[3] = -2, 5, -5  # a later piece with a small number decides nothing
    yield "a later piece has the smallest number", pieces, order
    pieces, order = case("[CLS] a token ##izer reads [SEP] it reads [SEP]")
    order[2] = -1
    yield "room for one token, and a word of two", pieces, order
    yield (
        "a pair of 17 tokens",
        *case("[CLS] the file is open ##ed and read [SEP] close it when all is done now [SEP]"),
    )
    yield "very short", *case("[CLS] stop [SEP]")
    words = ["un", "##aff", "##able", "file", "open", "##ed", "line", "##s", "read", "key"]
    pieces = ["[CLS]", *(words * 4)[:33], "[SEP]", *(words * 4)[:17], "[SEP]"]
    yield "a long pair", pieces, rng.random(len(pieces))
    order = rng.random(len(pieces))
    order[[0, 34, -1]] = -1
    yield "a long pair, [CLS] and [SEP] first in the order", pieces, order


@exercise(
    difficulty=2,
    minutes=25,
    cases=_pieces_cases,
    hints="""
First gather the places of each word in a list of lists: a piece that starts with ## joins the word before it, any other piece begins a new word, and [CLS] and [SEP] are in no word.

Then go through the words, sorted by the number of their first piece: sorted(words, key=lambda word: order[word[0]]).

Choose a word if it still fits into the room, max(1, round(0.15 * len(pieces))). If it does not fit, pass it over and try the next.
""",
    mistakes="""
You choose pieces. A piece that starts with ## belongs to the word before it, and a word is chosen whole or not at all.
    piece.startswith("##") -> False
You stop at the first word that does not fit. Pass it over: a shorter word may still fit.
    continue -> break
You choose more tokens than there is room for. Pass a word over if it does not fit.
    if chosen.sum() + len(word) > room: -> if chosen.sum() >= room:
Your room is 15 % of the words. It is 15 % of the tokens, [CLS] and [SEP] counted.
    round(0.15 * len(pieces)) -> round(0.15 * len(words))
[CLS] and [SEP] are missing from your 15 %. They are never chosen, but they count.
    round(0.15 * len(pieces)) -> round(0.15 * sum(len(word) for word in words))
You may choose [CLS] or [SEP]. They are never chosen.
    piece not in ("[CLS]", "[SEP]") -> piece != "[PAD]"
A short text gets no room at all. There is room for at least one token.
    max(1, round(0.15 * len(pieces))) -> round(0.15 * len(pieces))
You begin with the largest number. The words with the smallest numbers come first.
    order[word[0]] -> -order[word[0]]
You sort by the smallest number of a word's pieces. Then long words come first more often. The number of the first piece decides.
    order[word[0]] -> min(order[i] for i in word)
You sort by the number of a word's last piece. The number of its first piece decides.
    order[word[0]] -> order[word[-1]]
You go through the text from the left. The numbers in `order` say which word comes first.
    order[word[0]] -> 0
You round up. The room is rounded to the nearest whole number.
    round(0.15 * len(pieces)) -> int(np.ceil(0.15 * len(pieces)))
You round down. The room is rounded to the nearest whole number.
    round(0.15 * len(pieces)) -> int(0.15 * len(pieces))
You choose only the pieces after the first. All pieces of a word are chosen together.
    chosen[word] = True -> chosen[word[1:] or word] = True
You choose only the first piece of a word. All its pieces are chosen together.
    chosen[word] = True -> chosen[word[0]] = True
np.argsort gives the index of the number at each rank, not the rank of each number. Sort the words by their numbers themselves.
    order[word[0]] -> np.argsort(order)[word[0]]
Only the first and the last token are left out. A pair of texts has a [SEP] in the middle as well.
    elif piece not in ("[CLS]", "[SEP]"): -> elif 0 < i < len(pieces) - 1:
""",
)
def whole_words(pieces, order):
    words: list[list[int]] = []
    for i, piece in enumerate(pieces):
        if piece.startswith("##") and words:
            words[-1].append(i)
        elif piece not in ("[CLS]", "[SEP]"):
            words.append([i])
    room = max(1, round(0.15 * len(pieces)))
    chosen = np.zeros(len(pieces), bool)
    for word in sorted(words, key=lambda word: order[word[0]]):
        if chosen.sum() + len(word) > room:
            continue
        chosen[word] = True
    return chosen


# --- fault_of --------------------------------------------------------------------------------------------

PAD, UNK, CLS, SEP, MASK, SIZE = 0, 1, 2, 3, 4, 1000
Hide = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def _hider(fault: str, seed: int) -> Hide:
    """A function that hides words of ids (L,), with a fault of this name."""
    rng = np.random.default_rng(seed)

    def hide(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        draws = np.random.default_rng(seed) if fault == "same places" else rng
        never = [] if fault == "special tokens" else [PAD, CLS, SEP]
        may = np.flatnonzero(~np.isin(ids, never))
        length = len(ids) if fault == "padding counts" else int((ids != PAD).sum())
        chosen = draws.permutation(may)[: max(1, round(0.15 * length))]
        fate = rng.random(len(chosen))
        if fault == "only [MASK]":
            fate = np.zeros(len(chosen))
        shown, labels = ids.copy(), np.full(len(ids), -100)
        labels[chosen] = ids[chosen]
        if fault == "too many labels":
            labels = np.where(np.isin(ids, [PAD, CLS, SEP]), -100, ids)
        shown[chosen[fate < 0.8]] = MASK
        swapped = chosen[(fate >= 0.8) & (fate < 0.9)]
        shown[swapped] = rng.integers(0, 5 if fault == "random piece" else SIZE, len(swapped))
        return shown, labels

    return hide


def _fault_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    faults = ("none", "special tokens", "too many labels", "random piece", "padding counts", "same places")
    for fault in (*faults, "only [MASK]", "none"):
        own, padding = int(rng.integers(21, 26)), int(rng.integers(22, 30))
        ids = np.array([CLS, *rng.integers(5, SIZE, own), SEP, *[PAD] * padding])
        yield f"a text of {own + 2} tokens", _hider(fault, int(rng.integers(2**31))), ids


@exercise(
    difficulty=2,
    minutes=25,
    cases=_fault_cases,
    hints="""
Call hide many times, a few hundred, and stack what comes back: shown and labels (draws, L). labels != -100 says which tokens were chosen in each draw.

Four of the faults show in the chosen places: are special tokens among them, how many are there in a draw, and are they the same in every draw? The other two faults show in what became of the chosen tokens.

If every own token has a label, there are too many labels. If only some have, but more than 15 % of the text without its padding, the padding counts. Ask for the labels first.
""",
    mistakes="""
You call hide too few times. One call cannot show whether the positions change, and 10 % of three tokens are often none. Draw some hundred times.
    range(400) -> range(1)
[specials-unseen] You do not look for special tokens among the chosen ones. [CLS], [SEP] and [PAD] must never be chosen.
    if (chosen & special).any(): -> if False:
You do not notice labels of tokens that were not chosen. With these labels the model would learn to copy.
    if chosen[:, ~special].all(): -> if False:
You do not notice that the places never change. With this mistake the model guesses the same words in every epoch.
    if (chosen == chosen[0]).all(): -> if False:
You do not notice that the padding counts in the 15 %. Compare with 15 % of the tokens that are not [PAD].
    if (chosen.sum(axis=1) > room).any(): -> if False:
    (ids != PAD).sum() -> len(ids)
You do not notice that every chosen token becomes [MASK].
    if not changed.any() and not kept.any(): -> if False:
You do not look at the random pieces. They may be any piece of the vocabulary, not only the five special ones.
    if (shown[changed] < 5).all(): -> if False:
You take a special token in the place of a word for a fault. The random piece may be any piece of the vocabulary. It is a fault only if it is always a special token.
    (shown[changed] < 5).all() -> (shown[changed] < 5).any()
""",
)
def fault_of(hide, ids):
    draws = [hide(ids) for _ in range(400)]
    shown, labels = (np.array(part) for part in zip(*draws, strict=True))
    chosen = labels != -100
    special = np.isin(ids, [PAD, CLS, SEP])
    room = max(1, round(0.15 * (ids != PAD).sum()))
    kept = chosen & (shown == ids)
    changed = chosen & (shown != ids) & (shown != MASK)
    if (chosen & special).any():
        return "special tokens"
    if chosen[:, ~special].all():
        return "too many labels"
    if (chosen == chosen[0]).all():
        return "same places"
    if (chosen.sum(axis=1) > room).any():
        return "padding counts"
    if not changed.any() and not kept.any():
        return "only [MASK]"
    if (shown[changed] < 5).all():
        return "random piece"
    return "none"


# --- never_chosen ----------------------------------------------------------------------------------------


def _never_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "128 tokens, 40 epochs, masked anew", 128, 40, 0
    yield "128 tokens, 40 epochs, 10 copies", 128, 40, 10
    yield "128 tokens, 4 epochs, 10 copies", 128, 4, 10
    yield "512 tokens, 3 epochs, masked once", 512, 3, 1
    yield "a short text, 12 tokens", 12, 5, 0
    yield "a very short text, 4 tokens", 4, 2, 0
    length = int(rng.integers(40, 300))
    yield f"{length} tokens, 12 epochs, 7 copies", length, 12, 7


@exercise(
    difficulty=1,
    minutes=12,
    cases=_never_cases,
    hints="""
In one draw, n = max(1, round(0.15 · length)) of the text's own tokens are chosen, and a pair has length - 3 of its own.

All own tokens are equally likely. So a given token is passed over in one draw with probability 1 - n / (length - 3), and in k independent draws with the k-th power of that.

How many different draws does the model see? If the masks are drawn anew, it sees one in each epoch. If they are stored, it sees no more than there are copies.
""",
    mistakes="""
That is the share of tokens that were chosen at least once. The exercise wants the share of those that never were.
    return (1 - n / own) ** draws -> return 1 - (1 - n / own) ** draws
You draw anew in every epoch. With stored copies the model sees a copy's mask again, and no new one.
    min(epochs, copies) -> epochs
You count every copy, even the copies that the model has not come to yet.
    min(epochs, copies) -> copies
You multiply epochs and copies. In each epoch the model reads one copy of the text.
    min(epochs, copies) -> epochs * copies
0 copies means that the masks are drawn anew in each epoch, so there are as many draws as epochs.
    if copies else epochs -> if True else epochs
You count [CLS] and [SEP] among the tokens that may be chosen. A pair has three of them: length - 3 are its own.
    own = length - 3 -> own = length
A pair has three special tokens: [CLS] and two [SEP].
    own = length - 3 -> own = length - 2 || own = length - 1
You take 15 % of the own tokens. The 15 % are of the whole length, [CLS] and [SEP] counted.
    round(0.15 * length) -> round(0.15 * own)
The number of chosen tokens is rounded to a whole number, and is at least 1.
    n / own -> 0.15 * length / own
You take 15 % as the chance of a token. [CLS] and [SEP] count in the 15 %, but are never chosen, so the chance of the others is larger.
    n / own -> 0.15
You count only the tokens that become [MASK]. Those are 80 % of the chosen tokens, and the others are chosen too.
    n / own -> 0.8 * n / own
Chances of independent draws multiply. You took n / own for each draw together, as if no token could be chosen twice.
    return (1 - n / own) ** draws -> return max(0.0, 1 - draws * n / own)
""",
)
def never_chosen(length, epochs, copies):
    own = length - 3
    n = max(1, round(0.15 * length))
    draws = min(epochs, copies) if copies else epochs
    return (1 - n / own) ** draws
