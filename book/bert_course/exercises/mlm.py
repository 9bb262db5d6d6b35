"""Chapter `mlm`: masked language modelling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.check.tensors import operation, tensor
from minigrad import Tensor

# --- cross_entropy ---------------------------------------------------------------------------------------


def _entropy_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def case(n: int, V: int, dtype: type = np.float64, shift: float = 0.0) -> tuple[Tensor, np.ndarray]:
        logits = 2 * rng.standard_normal((n, V)) + shift
        return tensor(logits.astype(dtype)), rng.integers(1, V, n)

    yield "4 tokens, 7 pieces", *case(4, 7)
    yield "as many tokens as pieces", *case(5, 5)
    logits, true = case(3, 30)
    true[1] = 0
    yield "a token whose id is 0", logits, true
    yield "one token", *case(1, 12)
    yield "float32, 6 tokens", *case(6, 9, np.float32)
    yield "logits near 1,000", *case(3, 8, shift=1000.0)
    logits, true = case(5, 4)
    true[2:] = true[0]
    yield "tokens of one id", logits, true
    numbers = 2 * rng.standard_normal((3, 8))
    numbers[0] += 1000
    yield "logits near 1,000 in the first row, near 0 in the others", tensor(numbers), rng.integers(1, 8, 3)


@exercise(
    difficulty=3,
    minutes=30,
    cases=_entropy_cases,
    observed=operation,
    same_dtype=True,
    hints="""
The loss of a row y is log(Σ e^y) - y[true]. Subtract the largest entry of the row first, so that nothing overflows. y[np.arange(n), true] picks the true entry of each row.

For one row, the gradient of its loss with respect to its logits is the softmax of the row, minus 1 at the true piece.

The loss is the mean over n rows, so each row's gradient is divided by n. It is multiplied by the number that comes from above, the gradient for the loss. backward returns a tuple with one gradient.
""",
    mistakes="""
You return the sum. The loss is the mean over the tokens.
    -log_p[rows, true].mean() -> -log_p[rows, true].sum() ; d_loss * dY / len(true) -> d_loss * dY
    -log_p[rows, true].mean() -> -log_p[rows, true].sum()
You divide by the number of pieces. The loss is the mean over the tokens.
    -log_p[rows, true].mean() -> -log_p[rows, true].sum() / Y.shape[-1] ; d_loss * dY / len(true) -> d_loss * dY / Y.shape[-1]
You leave out tokens whose id is 0. An id of 0 is a piece like any other.
    rows = np.arange(len(true)) -> rows = np.flatnonzero(true > 0); true = true[rows]
The exponential overflows. Subtract the largest logit of each row first; the loss stays the same.
    Y.data - Y.data.max(axis=-1, keepdims=True) -> Y.data
You subtract the largest logit of all rows. In a row whose logits are far below it, all exponentials become 0. Subtract each row's own largest.
    Y.data.max(axis=-1, keepdims=True) -> Y.data.max()
    Y.data.max(axis=-1, keepdims=True) -> Y.data.max() ; dY = np.exp(log_p) -> dY = np.exp(y) / np.exp(y).sum(axis=-1, keepdims=True)
The sign is wrong: the loss is -log p, which is never negative.
    -log_p[rows, true].mean() -> log_p[rows, true].mean() ; d_loss * dY / len(true) -> -d_loss * dY / len(true)
    -log_p[rows, true].mean() -> log_p[rows, true].mean()
You take the loss of the model's best guess. Take the loss of the true piece, even if the model finds another piece likelier.
    -log_p[rows, true].mean() -> -log_p.max(axis=-1).mean()
You average the probabilities and take the logarithm once. The loss is the mean of the logarithms.
    -log_p[rows, true].mean() -> -np.log(np.exp(log_p[rows, true]).mean())
You return the probability, or its complement. The loss is -log p.
    -log_p[rows, true].mean() -> np.exp(log_p[rows, true]).mean() || (1 - np.exp(log_p[rows, true])).mean()
[bits] Your unit is the bit, with the logarithm to base 2. The course counts in nats.
    -log_p[rows, true].mean() -> -log_p[rows, true].mean() / np.log(2) ; d_loss * dY / len(true) -> d_loss * dY / len(true) / np.log(2)
    -log_p[rows, true].mean() -> -log_p[rows, true].mean() / np.log(2)
You average over the whole vocabulary. The loss of a token is -log p of one piece, the true one.
    -log_p[rows, true].mean() -> -log_p.mean()
You leave out the sum of the exponentials. A logit is not the logarithm of a probability: the softmax still has to divide by that sum.
    -log_p[rows, true].mean() -> -y[rows, true].mean() || -Y.data[rows, true].mean()
[no-minus-one] The minus 1 at the true piece is missing on the way back: dY is softmax minus one-hot.
    dY[rows, true] -= 1 -> pass
The sign of dY is wrong: it is softmax minus one-hot, so that a descent step raises the true logit.
    d_loss * dY / len(true) -> -d_loss * dY / len(true)
You do not divide dY by the number of tokens. The loss is their mean.
    d_loss * dY / len(true) -> d_loss * dY
You divide dY by the number of pieces, or of all entries. The mean is over the tokens.
    d_loss * dY / len(true) -> d_loss * dY / Y.shape[-1] || d_loss * dY / Y.size
You take the gradient of the loss as 1. What comes from above is a factor, even if it is 1 most of the time.
    d_loss * dY / len(true) -> dY / len(true)
You add 1 at the true piece: subtract it.
    dY[rows, true] -= 1 -> dY[rows, true] += 1
The 1 goes to the true piece of every token in every row. Row i has one true piece, true[i].
    dY[rows, true] -= 1 -> dY[:, true] -= 1
You take the logarithms for the softmax on the way back: dY needs the probabilities.
    dY = np.exp(log_p) -> dY = log_p.copy()
You take the exponentials for the softmax on the way back: the sum of a row has to divide them.
    dY = np.exp(log_p) -> dY = np.exp(y)
Only the true piece gets a gradient in your answer. Every logit of a row is in the sum of the exponentials.
    dY = np.exp(log_p) -> dY = np.zeros_like(log_p)
""",
)
def cross_entropy(Y, true):
    rows = np.arange(len(true))  #: the index of each row, one for each chosen token
    y = Y.data - Y.data.max(axis=-1, keepdims=True)  #: the logits less the largest of their row, (n, V)
    log_p = y - np.log(np.exp(y).sum(axis=-1, keepdims=True))  #: log p of every piece, (n, V)

    def backward(d_loss):
        dY = np.exp(log_p)  #: the probabilities, the softmax of each row, (n, V)
        dY[rows, true] -= 1  # softmax minus one-hot
        return (d_loss * dY / len(true),)  #: softmax minus one-hot, times d_loss, divided by n, (n, V)

    return Tensor.from_op(-log_p[rows, true].mean(), (Y,), backward)


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
First gather the positions of each word in a list of lists: a piece that starts with ## joins the word before it, any other piece begins a new word, and [CLS] and [SEP] are in no word.

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
Your room is 15 % of the words. It should be 15 % of the tokens, [CLS] and [SEP] included.
    round(0.15 * len(pieces)) -> round(0.15 * len(words))
[CLS] and [SEP] are missing from your 15 %. They are never chosen, but they count.
    round(0.15 * len(pieces)) -> round(0.15 * sum(len(word) for word in words))
You may choose [CLS] or [SEP]. They are never chosen.
    piece not in ("[CLS]", "[SEP]") -> piece != "[PAD]" || piece != "[CLS]" || piece != "[SEP]"
A short text gets no room at all. There is room for at least one token.
    max(1, round(0.15 * len(pieces))) -> round(0.15 * len(pieces))
You begin with the largest number. The words with the smallest numbers come first.
    order[word[0]] -> -order[word[0]]
You sort by the smallest number of a word's pieces, so long words come first more often. The number of the first piece decides.
    order[word[0]] -> min(order[i] for i in word)
You sort by the number of a word's last piece. The number of its first piece decides.
    order[word[0]] -> order[word[-1]]
You go through the text from the left. The numbers in `order` determine which word comes first.
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
    for i, piece in enumerate(pieces):  #: every piece, with its position
        if piece.startswith("##") and words:
            words[-1].append(i)  #: the position of a piece that joins the word
        elif piece not in ("[CLS]", "[SEP]"):
            words.append([i])  #: a new word, with the position of its first piece
    room = max(1, round(0.15 * len(pieces)))  #: the room: 15 % of all tokens, at least one
    chosen = np.zeros(len(pieces), bool)  #: the chosen tokens, none of them yet, (L,)
    for word in sorted(words, key=lambda word: order[word[0]]):  #: words by first piece's number, ascending
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
        special = np.zeros(len(ids), bool) if fault == "special tokens" else ids < MASK
        may = np.flatnonzero(~special)
        length = len(ids) if fault == "padding counts" else int((ids != PAD).sum())
        chosen = draws.permutation(may)[: max(1, round(0.15 * length))]
        fate = rng.random(len(chosen))
        if fault == "only [MASK]":
            fate = np.zeros(len(chosen))
        shown, labels = ids.copy(), np.full(len(ids), -100)
        labels[chosen] = ids[chosen]
        if fault == "too many labels":
            labels = np.where(special, -100, ids)
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
Call hide many times, a few hundred, and stack what comes back: shown and labels (draws, L). labels != -100 shows which tokens were chosen in each draw.

Four of the faults show in the chosen positions: are special tokens among them, how many are there in a draw, and are they the same in every draw? The other two faults show in what became of the chosen tokens.

If every ordinary token has a label, there are too many labels. If only some have, but more than 15 % of the text without its padding, the padding counts. Check the labels first.
""",
    mistakes="""
You call hide too few times. One call cannot show whether the positions change, and 10 % of three tokens are often none. Draw a few hundred times.
    range(400) -> range(1)
[specials-unseen] You do not look for special tokens among the chosen ones. [CLS], [SEP] and [PAD] must never be chosen.
    if (chosen & special).any(): -> if False:
You do not notice labels of tokens that were not chosen. With these labels the model would learn to copy.
    if chosen[:, ~special].all(): -> if False:
You do not notice that the positions never change. With this mistake the model guesses the same words in every epoch.
    if (chosen == chosen[0]).all(): -> if False:
You do not notice that the padding counts towards the 15 %. Compare with 15 % of the tokens that are not [PAD].
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
    draws = [hide(ids) for _ in range(400)]  #: what hide returns in many calls
    shown, labels = (np.array(part) for part in zip(*draws, strict=True))  #: shown and labels, (draws, L)
    chosen = labels != -100  #: the tokens with a label in each draw, (draws, L)
    special = np.isin(ids, [PAD, CLS, SEP])  #: the places of [PAD], [CLS] and [SEP], (L,)
    room = max(1, round(0.15 * (ids != PAD).sum()))  #: the right number of chosen tokens, padding not counted
    kept = chosen & (shown == ids)  #: the chosen tokens that stay as they were, (draws, L)
    changed = chosen & (shown != ids) & (shown != MASK)  #: the chosen tokens that changed, not to [MASK]
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
You take 15 % of the own tokens. The 15 % are of the whole length, [CLS] and [SEP] included.
    round(0.15 * length) -> round(0.15 * own)
The number of chosen tokens is rounded to a whole number, and is at least 1.
    n / own -> 0.15 * length / own
You take 15 % as the chance of a token. [CLS] and [SEP] count towards the 15 %, but are never chosen, so the chance of the others is larger.
    n / own -> 0.15
You count only the tokens that become [MASK]. Those are 80 % of the chosen tokens, and the others are chosen too.
    n / own -> 0.8 * n / own
Chances of independent draws multiply. You added n / own for each draw, as if no token could be chosen twice.
    return (1 - n / own) ** draws -> return max(0.0, 1 - draws * n / own)
""",
)
def never_chosen(length, epochs, copies):
    own = length - 3  #: the number of tokens without [CLS] and two [SEP]
    n = max(1, round(0.15 * length))  #: the number of tokens chosen in one draw
    draws = min(epochs, copies) if copies else epochs  #: the number of different draws that the model sees
    return (1 - n / own) ** draws
