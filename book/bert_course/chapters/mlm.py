"""What chapter `mlm` shows: words of known probability, ways to hide words, and what the small model guesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert_course.chapters.mlm_lottery import FATES
from bert_course.common.figures import Figure, Picture, figure
from bert_course.common.flow import Box, Flow, Step, View, flow
from bert_course.common.small_model import SENTENCES, hide_each
from bert_course.common.softmax import log_softmax, softmax
from minigrad import backend, no_grad, ops, random
from minigrad.bert.config import IGNORED, BertConfig
from minigrad.bert.data import mask_tokens
from minigrad.bert.model import BertForPreTraining
from minigrad.optim import AdamW
from minigrad.text.tokenizer import WordPieceTokenizer

# --- A language whose probabilities are known --------------------------------------------------------------

WORDS, LENGTH = 32, 12  # of the ring; its [MASK] has the id WORDS
STEP_ON = 0.8  # how often a word is followed by the next of the ring; otherwise by any word
SCHEMES = {  # the shares of chosen places that become [MASK], stay, and become a random word
    "80/10/10": (0.8, 0.1, 0.1),
    "100/0/0": (1.0, 0.0, 0.0),
    "80/20/0": (0.8, 0.2, 0.0),
    "80/0/20": (0.8, 0.0, 0.2),
    "0/20/80": (0.0, 0.2, 0.8),
    "0/0/100": (0.0, 0.0, 1.0),
}


def ring_texts(n: int, rng: np.random.Generator) -> np.ndarray:
    """n texts (n, LENGTH) of words 0 ... WORDS - 1: each word is followed by the next one in four cases of five."""
    jumps = np.where(rng.random((n, LENGTH)) < STEP_ON, 1, rng.integers(0, WORDS, (n, LENGTH)))
    return np.cumsum(jumps, axis=1) % WORDS


def ring_probabilities(texts: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The exact probabilities (n, WORDS) of the word at a place of each text, given all others.

    texts (n, LENGTH); places (n,), neither the first nor the last.
    """
    follows = np.full((WORDS, WORDS), (1 - STEP_ON) / WORDS) + STEP_ON * np.roll(np.eye(WORDS), 1, axis=1)
    rows = np.arange(len(texts))
    p = follows[texts[rows, places - 1]] * follows[:, texts[rows, places + 1]].T
    return p / p.sum(axis=1, keepdims=True)


def hide(
    ids: np.ndarray, shares: Sequence[float], mask: int, size: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Choose 15 % of the places, one by one, and at least the first of a row; hide as a scheme's shares say.

    ids (B, L) -> what the model reads (B, L), and labels (B, L). mask: the id of [MASK]. size: a random word is one
    of 0 ... size - 1.
    """
    chosen = rng.random(ids.shape) < 0.15
    chosen[:, 0] |= ~chosen.any(axis=1)
    fate = rng.choice(3, ids.shape, p=shares)
    read = np.where(chosen & (fate == 0), mask, ids)
    read = np.where(chosen & (fate == 2), rng.integers(0, size, ids.shape), read)
    return read, np.where(chosen, ids, IGNORED)


def _tiny(vocabulary: int, length: int) -> BertForPreTraining:
    """Two layers of two heads and width 32, without dropout, as drawn."""
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=length,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.1,
    )
    return BertForPreTraining(config)


def train_on_the_ring(
    shares: Sequence[float], seed: int, steps: int, rate: float = 4e-3
) -> BertForPreTraining:
    """A small BERT that has guessed words of fresh texts of the ring, hidden as `shares` says."""
    random.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = _tiny(WORDS + 1, LENGTH)
    optimiser = AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    for _ in range(steps):
        read, labels = hide(ring_texts(64, rng), shares, WORDS, WORDS, rng)
        loss = model(read, labels=labels).loss
        assert loss is not None
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.eval()
    return model


def ideal(p: np.ndarray, seen: np.ndarray, shares: Sequence[float], size: int = WORDS) -> np.ndarray:
    """The best guess (n, V) at a chosen place that shows a word, if p (n, V) is what its context says.

    seen (n,): the words shown. The word stayed, or it is a random one: P(t) ~ p_t (stay [t = seen] + random / size).
    """
    _, stay, random_word = shares
    weights = p * random_word / size
    rows = np.arange(len(seen))
    weights[rows, seen] += p[rows, seen] * stay
    return weights / weights.sum(axis=1, keepdims=True)


def _asked(texts: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """So many texts of the ring, 0, 1, … to index them, a place in each, the word there, and a random other one."""
    rng = np.random.default_rng(99)
    ids, rows = ring_texts(texts, rng), np.arange(texts)
    places, drawn = rng.integers(1, LENGTH - 1, texts), rng.integers(1, WORDS, texts)
    true = ids[rows, places]
    return ids, rows, places, true, (true + drawn) % WORDS


def score_on_the_ring(model: BertForPreTraining, texts: int = 2000) -> dict[str, float]:
    """The mean probability of the true word: hidden, shown, and behind a random word; and of that random word."""
    ids, rows, places, true, other = _asked(texts)

    def guess(shown: Any) -> np.ndarray:
        read = ids.copy()
        read[rows, places] = shown
        with no_grad():
            logits = model(read).prediction_logits
        return ops.softmax(logits).numpy()[rows, places]

    behind = guess(other)
    return {
        "hidden": float(guess(WORDS)[rows, true].mean()),
        "shown": float(guess(true)[rows, true].mean()),
        "behind": float(behind[rows, true].mean()),
        "random": float(behind[rows, other].mean()),
    }


def ideal_on_the_ring(shares: Sequence[float], texts: int = 2000) -> dict[str, float]:
    """The same of the best possible model; None where a scheme never shows a word at a chosen place."""
    ids, rows, places, true, other = _asked(texts)
    p = ring_probabilities(ids, places)
    known = {"hidden": float(p[rows, true].mean())}
    if shares[1] + shares[2] == 0:
        return known
    if shares[2] == 0:  # a shown word is always the true one
        return known | {"shown": 1.0, "behind": 0.0, "random": 1.0}
    behind = ideal(p, other, shares)
    return known | {
        "shown": float(ideal(p, true, shares)[rows, true].mean()),
        "behind": float(behind[rows, true].mean()),
        "random": float(behind[rows, other].mean()),
    }


# --- Guessing random words ---------------------------------------------------------------------------------

TASKS = ("itself", "next", "hidden")


def losses_on_random_words(task: str, allowed: np.ndarray, seed: int = 0, steps: int = 200) -> np.ndarray:
    """Train a BERT of two layers on random words; the loss of each step, in nats.

    Every word is one of 32, drawn anew in each step and independent of all others, so without a look at the answer no
    model gets below log 32. task: what each place has to guess: its own word ("itself"), the word after it ("next"),
    or its own where [MASK] stands instead ("hidden", one place of each text). allowed (L, L): True where a query may
    look. Raises ValueError for another task.
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}, got {task!r}")
    length, batch, words = len(allowed), 32, 32
    random.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = _tiny(words + 1, length)
    bert, head = model.bert, model.cls.predictions
    optimiser = AdamW(
        [*bert.embeddings.parameters(), *bert.encoder.parameters(), *head.parameters()], lr=3e-3
    )
    low = np.where(allowed, 0, np.finfo(np.float32).min)
    mask = backend.of(bert.pooler.dense.weight.data).asarray(low, dtype=np.float32)
    losses = []
    for _ in range(steps):
        ids = rng.integers(0, words, (batch, length))
        read, labels = ids, ids
        if task == "next":
            labels = np.concatenate([ids[:, 1:], np.full((batch, 1), IGNORED)], axis=1)
        elif task == "hidden":
            at_random = np.arange(length) == rng.integers(0, length, batch)[:, None]
            read, labels = np.where(at_random, words, ids), np.where(at_random, ids, IGNORED)
        rows = np.flatnonzero(labels != IGNORED)
        x = bert.encoder(bert.embeddings(read, np.zeros_like(read)), mask)[-1].reshape(-1, 32)[rows]
        loss = ops.cross_entropy(head(x, bert.embeddings.word_embeddings.weight), labels.reshape(-1)[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return np.array(losses)


def under_the_floor(curves: Mapping[str, np.ndarray], floor: float) -> Picture:
    """The losses while models learn, and the line below which no guess without the answer gets.

    curves: up to two, by what a token guesses, losses (steps,).
    """

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        steps = max(map(len, curves.values()))
        axes.fill_between([0, steps], 0, floor, color=colours["grid"], alpha=0.5, linewidth=0)
        axes.axhline(floor, color=colours["ink"], linewidth=1.4)
        axes.text(
            steps,
            floor - 0.12,
            "no honest guess can go below this",
            color=colours["ink"],
            ha="right",
            va="top",
        )
        for (name, losses), role in zip(curves.items(), ("second", "first"), strict=False):
            axes.plot(losses, color=colours[role], linewidth=2)
            axes.text(steps, losses[-1] + 0.17, name, color=colours[role], ha="right", va="bottom")
        axes.set(xlabel="step", ylabel="loss (nats)", xlim=(0, steps), ylim=(0, floor * 1.3))

    ends = ", ".join(f"{losses[-20:].mean():.1f} ({name})" for name, losses in curves.items())
    alt = (
        f"Losses during training, and the line of the best honest guess, {floor:.2f} nats; at the end {ends}"
    )
    return figure(plot, alt, (5.4, 3.2))


# --- One guess, with its numbers ---------------------------------------------------------------------------


def guess_flow(
    X: np.ndarray, W_T: np.ndarray, tokens: Sequence[str], words: Sequence[str], labels: np.ndarray
) -> Flow:
    """From the encoder's rows to the loss, step by step, without the head's own layer.

    X (L, d): a row for each token. W_T (V, d). tokens: what the model reads, L names. words: V names.
    labels (L,): the true id where a token was chosen, -100 elsewhere.
    """
    chosen = np.flatnonzero(labels != IGNORED)
    losses = -log_softmax(X[chosen] @ W_T.T)[np.arange(len(chosen)), labels[chosen]]
    boxes = [
        Box("X", X, "token", "tokens"),
        Box("G", X[chosen], "token", "chosen"),
        Box("W_T", W_T, "value", "words"),
        Box("WT", "W_T.T", "value", columns="words", label="W_Tᵀ"),
        Box("Y", "G @ WT", "weight", "chosen", "words"),
        Box("P", "softmax(Y)", "weight", "chosen", "words"),
        Box("loss", losses[:, None], "gradient", "true", label="−log p"),
    ]
    steps = [
        Step("The rows of all tokens", [["X"]], "What the encoder made of each token."),
        Step(
            "The chosen rows",
            [[View("X", lit=list(chosen)), "→", "G"]],
            "Only the rows of the chosen tokens go on, hidden or kept. No other row is compared.",
        ),
        Step(
            "Logits",
            [["G", "·", "WT", "=", "Y"]],
            "One dot product with each word's row of the token table: how well does the word fit here?",
        ),
        Step(
            "Probabilities",
            [["Y", "softmax →", "P"]],
            "Each row shares out 1 among all words of the vocabulary.",
        ),
        Step(
            "The loss",
            [["P", "→", "loss"]],
            "From each row, take the probability of the true word. The loss is the mean of the last box.",
        ),
    ]
    names = {
        "tokens": list(tokens),
        "chosen": [tokens[int(i)] for i in chosen],
        "words": list(words),
        "true": [f"{words[int(labels[i])]}?" for i in chosen],
    }
    return flow(boxes, steps, "Two chosen tokens of three become logits, probabilities and a loss", names)


# --- Figures -----------------------------------------------------------------------------------------------


def shown_and_hidden(hidden: np.ndarray, shown: np.ndarray, size: int) -> Picture:
    """Each token's probability when it is shown, over that when it is hidden, and what the best model would say."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        p = np.logspace(-6, 0, 200)
        axes.plot(p, p * (1 + 1 / size) / (p + 1 / size), color=colours["second"], linewidth=2)
        axes.plot(p, p, color=colours["third"], linestyle="--")
        axes.scatter(np.maximum(hidden, p[0]), shown, s=14, color=colours["first"], alpha=0.7, linewidths=0)
        axes.set_xscale("log")
        axes.set_xlim(p[0], 1.3)
        axes.set_xlabel("probability of the word where it is hidden")
        axes.set_ylabel("where it is shown")
        axes.text(2e-6, 0.3, "the best model", color=colours["second"])
        axes.text(0.012, 0.2, "no look at the word", color=colours["third"], ha="center")

    alt = (
        "A point for each token: hidden words have probabilities from nearly 0 to 1, and most shown words nearly 1; "
        "unlikely words stay lower, and nearly all points lie below the curve of the best model"
    )
    return figure(plot, alt)


def hidden_share_curves(shares: Sequence[float], curves: Mapping[str, np.ndarray]) -> Picture:
    """The mean loss of a hidden token over the share of the others that is hidden too, with lowest and highest.

    curves: by what was done to the others, losses (len(shares), draws).
    """

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        percent = [100 * share for share in shares]
        for (name, losses), role in zip(curves.items(), ("first", "second"), strict=True):
            middle = losses.mean(axis=1)
            axes.plot(percent, middle, "o-", color=colours[role], markersize=4)
            axes.fill_between(
                percent, losses.min(axis=1), losses.max(axis=1), color=colours[role], alpha=0.25
            )
            axes.text(
                52,
                np.interp(52, percent, middle) + (0.3 if role == "second" else -0.45),
                name,
                color=colours[role],
                ha="right" if role == "second" else "left",
            )
        axes.axvline(15, color=colours["ink"], linewidth=0.8, linestyle=":", zorder=0)
        axes.text(16, axes.get_ylim()[1], "15 %", color=colours["ink"], va="top")
        axes.set_xlabel("share of the other tokens that is hidden (%)")
        axes.set_ylabel("loss of a hidden token (nats)")

    alt = (
        "The loss of a hidden token rises with the share of the others that is hidden, and rises faster where an "
        "attention mask takes the others away than where [MASK] replaces them"
    )
    return figure(plot, alt)


# --- The stored model's losses -----------------------------------------------------------------------------


def losses_by_fate(model: Any, tokenizer: WordPieceTokenizer, draws: int) -> dict[str, np.ndarray]:
    """The losses of the tokens of chapter `start`'s sentences by what was done to them, in so many drawings.

    The fates are those of a chosen token, and "not chosen", which has no [CLS], [SEP] and [PAD].
    """
    batch = {name: np.array(values) for name, values in tokenizer(list(SENTENCES)).items()}
    ids, mask = batch["input_ids"], batch["attention_mask"]
    own = ~np.isin(ids, [tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id])
    rng = np.random.default_rng(0)
    found: dict[str, list[np.ndarray]] = {fate: [] for fate in (*FATES, "not chosen")}
    for _ in range(draws):
        shown, labels = mask_tokens(ids, tokenizer, rng)
        with no_grad():
            logits = model(shown, mask).prediction_logits.numpy().astype(float)
        losses = -np.take_along_axis(log_softmax(logits), ids[..., None], axis=-1)[..., 0]
        chosen = labels != IGNORED
        hidden, kept = chosen & (shown == tokenizer.mask_token_id), chosen & (shown == ids)
        for fate, which in zip(found, (hidden, chosen & ~hidden & ~kept, kept, own & ~chosen), strict=True):
            found[fate].append(losses[which])
    return {fate: np.concatenate(parts) for fate, parts in found.items()}


def hidden_share_losses(
    model: Any,
    tokenizer: WordPieceTokenizer,
    shares: Sequence[float],
    invisible: bool = False,
    draws: int = 3,
) -> np.ndarray:
    """The mean loss (len(shares), draws) of a hidden token, if a share of the sentence's other tokens is hidden too.

    invisible: the others get no [MASK]; an attention mask hides them from every token.
    """
    found = np.empty((len(shares), draws))
    for column in range(draws):
        rng = np.random.default_rng(column)
        for row, share in enumerate(shares):
            losses = []
            for hidden in hide_each(tokenizer):
                inputs, mask = hidden.inputs.copy(), np.ones_like(hidden.inputs)
                for text, place in enumerate(hidden.places):
                    others = rng.permutation(hidden.places[hidden.places != place])
                    taken = others[: round(share * len(others))]
                    if invisible:
                        mask[text, taken] = 0
                    else:
                        inputs[text, taken] = tokenizer.mask_token_id
                with no_grad():
                    losses.append(hidden.losses(model(inputs, mask).prediction_logits.numpy()))
            found[row, column] = np.concatenate(losses).mean()
    return found


def guess_places(
    model: Any, tokenizer: WordPieceTokenizer, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What the model guesses at each of the n own tokens of `start`'s sentences, one token of a sentence at a time.

    Returns the true ids (n,), random ids (n,), and probabilities (n, V) where the place has [MASK], the true piece,
    and the random piece.
    """
    rng = np.random.default_rng(seed)
    found = []
    for hidden in hide_each(tokenizer):
        rows, true = np.arange(len(hidden.places)), hidden.ids[hidden.places]
        drawn = rng.integers(0, tokenizer.vocab_size, len(rows))
        inputs = np.stack([hidden.inputs] * 3)  # (3, n, L)
        inputs[1, rows, hidden.places], inputs[2, rows, hidden.places] = true, drawn
        with no_grad():
            logits = model(inputs.reshape(-1, inputs.shape[-1])).prediction_logits.numpy().astype(float)
        at = logits.reshape(*inputs.shape, -1)[:, rows, hidden.places]  # (3, n, V)
        found.append((true, drawn, *softmax(at)))
    true, drawn, hidden_p, shown_p, covered_p = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return true, drawn, hidden_p, shown_p, covered_p
