"""Does dividing by √d_k help training? The reduced BERT with and without it: the record that chapter `one_head` shows.

Two starts (`STARTS`), each with and
without the scale and with three seeds, and one seed at two more learning rates: 16 runs of about 45 seconds on one
core.

All train on the same batches in the same order, from the same draws. They differ in what is named here alone:
`std` is the standard deviation that the matrices of queries and keys start from (the others keep the preset's), and
`scaled` says whether q·k is divided by √d_k. What is stored of a run is the masked-word loss on held-out text, the
variance of q·k in the first layer before and after, and its entropy of the weights before and after.
"""

from __future__ import annotations

import functools
import itertools
import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from minigrad import backend, no_grad, ops, optim, random
from minigrad.bert.attention import BertSelfAttention
from minigrad.bert.config import IGNORED, PRESETS
from minigrad.bert.data import PretrainingData, encode_documents, held_out_batches
from minigrad.bert.metrics import evaluate, unigram_entropy
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.training import parameter_groups
from minigrad.course.furniture.fit import descend
from minigrad.tensor import Array, Tensor
from minigrad.text.corpus import read_corpus
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import train_wordpiece
from minigrad.training.epochs import Batch

LENGTH, BATCH, STEPS, WARMUP, EVERY = 32, 16, 1500, 150, 100
SEEDS = (0, 1, 2)
# what queries and keys start from: the reduced model's deviation, and the one that brings q and k near variance 1
# (0.77, because the draws are cut at two deviations)
STARTS = {"small": 0.05, "unit": 1 / math.sqrt(128)}
# the rate, the start, the seed, whether scaled: three seeds at the middle rate, one at the others
CASE = ("rate", "start", "seed", "scaled")  # of a run: what it was made for
Case = tuple[float, str, int, bool]
CASES: list[Case] = [
    *itertools.product((1e-3,), STARTS, SEEDS, (True, False)),
    *itertools.product((3e-4, 3e-3), ("small",), SEEDS[:1], (True, False)),
]
CONFIG = replace(PRESETS["reduced"], vocab_size=1024, max_position_embeddings=LENGTH)


class Unscaled(BertSelfAttention):
    """The layer's heads with softmax(Q Kᵀ + mask) V: queries that are √d_k longer undo the scale."""

    def forward(self, x: Tensor, mask: Array | None) -> Tensor:
        """As in `BertSelfAttention`."""
        batch, length, size = x.shape
        q, k, v = (self.split_heads(part(x)) for part in (self.query, self.key, self.value))
        z = ops.scaled_dot_product_attention(q * math.sqrt(q.shape[-1]), k, v, mask)  # (B, A, T, d_k)
        return z.permute(0, 2, 1, 3).reshape(batch, length, size)  # (B, T, H)


def model_of(seed: int, std: float, scaled: bool) -> BertForPreTraining:
    """The model before its first step; the same draws in every case."""
    random.manual_seed(seed)
    model = BertForPreTraining(CONFIG)
    for layer in model.bert.encoder.layer:
        heads = layer.attention.self
        for part in (heads.query, heads.key):
            part.weight.data *= std / CONFIG.initializer_range
        if not scaled:
            heads.__class__ = Unscaled
    return model.train()


def look(model: BertForPreTraining, batch: Batch) -> dict[str, float]:
    """The variance of q·k within a row and the entropy of the weights, in the first layer, over whole rows."""
    whole = batch["attention_mask"].all(axis=1)
    heads = model.bert.encoder.layer[0].attention.self
    with no_grad():
        x = model.bert.embeddings(batch["input_ids"][whole], batch["token_type_ids"][whole])  # (B, T, H)
        q, k = (heads.split_heads(part(x)).numpy().astype(float) for part in (heads.query, heads.key))
    dots = q @ k.swapaxes(-1, -2)  # (B, A, T, T)
    scores = dots if isinstance(heads, Unscaled) else dots / math.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    entropy = -(weights * np.log(np.maximum(weights, 1e-300))).sum(axis=-1)
    return {"variance": float(dots.var(axis=-1).mean()), "entropy": float(entropy.mean())}


def train(text: Text, seed: int, std: float, scaled: bool, rate: float) -> dict[str, Any]:
    """One run: its settings, its held-out loss every EVERY steps, and what its first layer does before and after."""
    model = model_of(seed, std, scaled)
    optimizer = optim.AdamW(parameter_groups(model, 0.01), lr=rate, eps=1e-6)
    schedule = optim.LinearWarmupDecay(optimizer, WARMUP, STEPS)
    data = PretrainingData(text.documents, text.tokenizer, BATCH, LENGTH, seed)
    started, first = time.process_time(), look(model, text.held_out[0])
    steps, losses = [0], [evaluate(model, text.held_out)["mlm_loss"]]
    for step in range(1, STEPS + 1):
        descend(model, model(**data.next_batch()).loss, optimizer, schedule)
        if step % EVERY == 0:
            steps.append(step)
            losses.append(evaluate(model, text.held_out)["mlm_loss"])
    return {
        "seed": seed,
        "scaled": scaled,
        "rate": rate,
        "steps": steps,
        "mlm_loss": [round(loss, 4) for loss in losses],
        "before": {name: round(value, 4) for name, value in first.items()},
        "after": {name: round(value, 4) for name, value in look(model, text.held_out[0]).items()},
        "cpu_seconds": round(time.process_time() - started),
    }


class Text:
    """The Python documentation in pieces of a small vocabulary, which more of them share, and a held-out part of it."""

    def __init__(self) -> None:
        documents, held_out = read_corpus("python-docs").split(0.05, 0)
        self.tokenizer = WordPieceTokenizer(train_wordpiece(documents.sentences, CONFIG.vocab_size))
        self.documents = encode_documents(documents.documents, self.tokenizer)
        held = encode_documents(held_out.documents, self.tokenizer)
        self.held_out = held_out_batches(held, self.tokenizer, 64, LENGTH, 0)[:6]
        self.unigram_entropy = unigram_entropy(t for d in self.documents for s in d for t in s)

    def copying_loss(self) -> float:
        """The held-out loss of a model that reads one token alone, the one in whose place it guesses.

        It knows how frequent the pieces are (each counted once more than it occurs), and that a chosen token that is
        not hidden is kept as often as it is replaced by a random piece (Devlin et al. 2019, appendix A.1).
        """
        pieces = CONFIG.vocab_size
        seen = np.fromiter((t for d in self.documents for s in d for t in s), int)
        p = (np.bincount(seen, minlength=pieces) + 1) / (len(seen) + pieces)  # (V,)
        shown, labels = (
            np.concatenate([batch[name][batch["labels"] != IGNORED] for batch in self.held_out])
            for name in ("input_ids", "labels")
        )  # (n,), (n,)
        # p(label, shown) over p(shown): the label is kept, or any label is replaced by what is shown
        kept, replaced = p[shown], 1 / pieces
        guess = p[labels] * ((labels == shown) + replaced) / (kept + replaced)
        return float(-np.log(np.where(shown == self.tokenizer.mask_token_id, p[labels], guess)).mean())


@functools.cache
def text() -> Text:
    """The text, read once in a process."""
    backend.default().keep_freed_memory()
    return Text()


def fields() -> dict[str, Any]:
    """What stands beside the runs."""
    return {
        "model": CONFIG.to_dict(),
        "text": "python-docs",
        "unigram_entropy": round(text().unigram_entropy, 4),
        "copying_loss": round(text().copying_loss(), 4),
        "batch": BATCH,
        "length": LENGTH,
        "warmup": WARMUP,
    }


def stages(runs: list[dict[str, Any]]) -> list[list[Case]]:
    """All at once."""
    return [CASES]


def make(case: Case) -> dict[str, Any]:
    """Train once."""
    rate, start, seed, scaled = case
    run = train(text(), seed, STARTS[start], scaled, rate)
    return {"start": start, "std": round(STARTS[start], 4), **run}
