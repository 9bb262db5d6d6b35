"""Chapter 24's optimisations, each as a pair: the plain way, and one idea later.

`PAIRS` has them by name with inputs of a step's sizes. tests/tools/before_after.py measures each; the chapter
shows its code and its figures. Where the library has the second one, the pair calls the library. One idea is not in the
library: to leave padding out. Here it is a whole forward, `forward_without_padding`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from minigrad import backend, ops
from minigrad.bert.attention import BertSelfAttention, additive_mask
from minigrad.bert.config import IGNORED
from minigrad.bert.model import BertForPreTraining, BertPreTrainingOutput
from minigrad.tensor import Tensor

__all__ = ["PAIRS", "Packing", "blas_kernel", "forward_without_padding", "in_blocks"]

Array = np.ndarray

numpy = backend.get("numpy")
THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
pool = ThreadPoolExecutor(THREADS)
blas = ThreadpoolController().select(user_api="blas")

# --- Blocks ----------------------------------------------------------------------------------------------


def in_blocks(kernel, size, block, threads):
    """Call `kernel` with slices that together cover range(size)."""
    starts = range(0, size, block)

    def run(first):
        for start in starts[first::threads]:
            kernel(slice(start, min(start + block, size)))

    others = [pool.submit(run, first) for first in range(1, threads)]
    run(0)
    for other in others:
        other.result()


def gelu_whole(x: Array) -> tuple[Array, Array]:
    """GELU and its slope, each operator over the whole array."""
    y, slope = np.empty_like(x), np.empty_like(x)
    one_exponential(x, y, slope)
    return y, slope


def gelu_in_blocks(x):
    """The same operators, over one block after the other."""
    y, slope = np.empty_like(x), np.empty_like(x)

    def kernel(b):
        one_exponential(x[b], y[b], slope[b])

    in_blocks(kernel, x.size, block=2**17, threads=1)
    return y, slope


def gelu_on_all_threads(x: Array) -> tuple[Array, Array]:
    """The same blocks, shared over the threads."""
    y, slope = np.empty_like(x), np.empty_like(x)
    in_blocks(lambda b: one_exponential(x[b], y[b], slope[b]), x.size, 2**17, THREADS)
    return y, slope


# --- One exponential -------------------------------------------------------------------------------------


def quotient(z):
    """erfc(z) over e^(-z²), for z ≥ 0 (Abramowitz & Stegun, 7.1.26)."""
    t = 1 / (1 + 0.3275911 * z)
    value = 1.061405429 * t
    for c in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        value += c
        value *= t
    return value


def two_exponentials(x, y, slope):
    """x Φ(x) from an error function, and the slope by itself."""
    z = np.abs(x) * math.sqrt(0.5)
    erf = np.copysign(1 - quotient(z) * np.exp(-z * z), x)
    cdf = 0.5 * (1 + erf)  # Φ(x)
    density = np.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))  # φ(x)
    np.multiply(x, cdf, out=y)
    np.multiply(x, density, out=slope)
    slope += cdf


def one_exponential(x, y, slope):
    """The same, with what both have in common computed once."""
    power = np.exp(-0.5 * x * x)
    tail = quotient(np.abs(x) * math.sqrt(0.5))
    tail *= power
    tail *= 0.5  # Φ(-|x|)
    cdf = np.copysign(0.5 - tail, x)
    cdf += 0.5  # Φ(x)
    np.multiply(x, cdf, out=y)
    power *= 1 / math.sqrt(2 * math.pi)  # φ(x)
    np.multiply(x, power, out=slope)
    slope += cdf


# --- Random words, sorted rows, one walk -----------------------------------------------------------------


def mask_from_floats(shape: tuple[int, ...], p: float, seed: int) -> Array:
    """Which entries dropout keeps: a random float for each, compared with p."""
    return np.random.default_rng(seed).random(shape, dtype=np.float32) >= p


def mask_from_words(shape: tuple[int, ...], p: float, seed: int) -> Array:
    """The same from 16 random bits for each, four to a word."""
    size = math.prod(shape)
    words = np.random.SFC64(seed).random_raw(-(-size // 4))
    bits = words.view(np.uint16)[:size]
    return (bits >= round(p * 65536)).reshape(shape)


def add_at(num_rows: int, ids: Array, values: Array) -> Array:
    """The gradient of a table: row i of `values` added to row ids[i]."""
    out = np.zeros((num_rows, values.shape[1]), values.dtype)
    np.add.at(out, ids, values)
    return out


def adamw_plain(p, g, m, v, lr, decay, beta1, beta2, t):
    """One step of AdamW as in chapter 3: each operator walks over the whole array."""
    m[:] = beta1 * m + (1 - beta1) * g
    v[:] = beta2 * v + (1 - beta2) * g**2
    m_hat = m / (1 - beta1**t)
    v_hat = v / (1 - beta2**t)
    p[:] = p - lr * decay * p - lr * m_hat / (np.sqrt(v_hat) + 1e-8)


def adamw_in_blocks(p, g, m, v, lr, decay, beta1, beta2, t):
    """The same in place, block by block, with one scratch array of a block."""

    def step(b):
        scratch = g[b] * (1 - beta1)
        m[b] *= beta1
        m[b] += scratch
        np.square(g[b], out=scratch)
        scratch *= 1 - beta2
        v[b] *= beta2
        v[b] += scratch
        np.divide(v[b], 1 - beta2**t, out=scratch)
        np.sqrt(scratch, out=scratch)
        scratch += 1e-8
        np.divide(m[b], scratch, out=scratch)
        scratch *= lr / (1 - beta1**t)
        p[b] *= 1 - lr * decay
        p[b] -= scratch

    in_blocks(step, p.size, 2**17, THREADS)


# --- Many small products ---------------------------------------------------------------------------------


def products_in_turn(a: Array, b: Array) -> Array:
    """A product for each sequence and head: (n, T, d) (n, d, T) -> (n, T, T)."""
    return a @ b


def products_shared(a, b):
    """The same, a part for each thread; the BLAS then has one itself."""
    out = np.empty((*a.shape[:2], b.shape[2]), a.dtype)
    share = -(-len(a) // THREADS)

    def some(s):
        np.matmul(a[s], b[s], out=out[s])

    with blas.limit(limits=1):
        in_blocks(some, len(a), share, THREADS)
    return out


# --- Work that need not be done --------------------------------------------------------------------------


def vocabulary_everywhere(x: Array, table: Array, labels: Array) -> Any:
    """The masked-word loss from scores at all positions, and its gradient for x (n, H)."""
    states = Tensor(x, requires_grad=True)
    scores = ops.linear(states, Tensor(table).T)  # (n, V)
    ops.cross_entropy(scores, labels).backward()
    return states.grad


def vocabulary_where_asked(x: Array, table: Array, labels: Array) -> Any:
    """The same from scores at the chosen positions only."""
    states = Tensor(x, requires_grad=True)
    chosen = np.flatnonzero(labels != -100)
    scores = ops.linear(states[chosen], Tensor(table).T)  # (chosen, V)
    ops.cross_entropy(scores, labels[chosen]).backward()
    return states.grad


# --- Padding left out ------------------------------------------------------------------------------------


class Packing:
    """Which of the B T places of a batch are computed, and the ways there and back.

    Layers that work on one token at a time take the n packed rows; attention, in which the tokens of a sequence
    meet, takes the padded form (`spread`) and gives it back (`gather`).

    kept (B, T): true where a place is computed. kernels: the backend of the model.
    """

    def __init__(self, kept: Array, kernels: ModuleType) -> None:
        self._shape = kept.shape
        self.places = np.flatnonzero(kept)  # (n,), among the B T
        self._row = np.zeros(kept.size, np.int64)  # of each place; row 0 for those that have none
        self._row[self.places] = np.arange(len(self.places))
        self._to_padded = kernels.asarray(self._row)  # moved once, not in each layer
        self._to_packed = kernels.asarray(self.places)

    def rows(self, places: Array) -> Array:
        """The packed rows of some of the B T places, all of them kept."""
        return self._row[places]

    def spread(self, x: Tensor) -> Tensor:
        """(n, H) -> (B, T, H). Padding gets the first token's vector: any will do, for nobody may look at it,
        and no gradient comes back from there."""
        return x[self._to_padded].reshape(*self._shape, x.shape[-1])

    def gather(self, x: Tensor) -> Tensor:
        """(B, T, H) -> (n, H)."""
        return x.reshape(-1, x.shape[-1])[self._to_packed]


def attend_without_padding(attention: BertSelfAttention, x: Tensor, mask: Any, packing: Packing) -> Tensor:
    """`attention` of the n tokens x (n, H), mask (B, 1, 1, T) -> (n, H): side by side for the product, and back."""
    parts = (attention.query, attention.key, attention.value)
    q, k, v = (attention.split_heads(packing.spread(part(x))) for part in parts)  # (B, A, T, d_k)
    batch, heads, length, _ = q.shape
    keep = attention.dropout.draw(x, (batch, heads, length, length))
    z = ops.scaled_dot_product_attention(q, k, v, mask, keep, attention.dropout.p)  # (B, A, T, d_k)
    return packing.gather(z.permute(0, 2, 1, 3).reshape(batch, length, -1))


def forward_without_padding(
    model: BertForPreTraining,
    input_ids: Array,
    attention_mask: Array,
    token_type_ids: Array,
    labels: Array,
    next_sentence_label: Array,
) -> BertPreTrainingOutput:
    """What `model` makes of a batch of pre-training, computed for its n tokens alone: the same losses, logits and
    gradients, but for dropout's draws."""
    bert, word_embeddings = model.bert, model.bert.embeddings.word_embeddings
    batch, length = input_ids.shape
    chosen = np.flatnonzero(labels != IGNORED)
    wanted = np.concatenate([np.arange(batch) * length, chosen])  # [CLS], and what is to be predicted
    kept = attention_mask != 0  # (B, T)
    kept |= ~kept.any(axis=1, keepdims=True)  # with nothing to see, tokens look at all the padding
    kept.reshape(-1)[wanted] = True  # what is wanted is computed, also if it is padding
    packing = Packing(kept, backend.of(word_embeddings.weight.data))
    places, rows = packing.places, packing.rows(wanted)
    mask = additive_mask(attention_mask, word_embeddings.weight)  # (B, 1, 1, T)

    tokens = word_embeddings(input_ids.reshape(-1)[places])  # (n, H)
    segments = bert.embeddings.token_type_embeddings(token_type_ids.reshape(-1)[places])
    positions = bert.embeddings.position_embeddings(places % length)
    x = bert.embeddings.dropout(bert.embeddings.LayerNorm(tokens + segments + positions))
    layers: list[Any] = list(bert.encoder.layer)
    for layer in layers:
        z = attend_without_padding(layer.attention.self, x, mask, packing)  # (n, H)
        if layer is layers[-1]:
            z, x = z[rows], x[rows]  # (B + n_chosen, H)
        x = layer.attention.output(z, x)
        x = layer.output(layer.intermediate(x), x)
    if not layers:
        x = x[rows]

    scores, next_scores = model.cls(x[batch:], bert.pooler(x[:batch]), word_embeddings.weight)
    mlm_loss = ops.cross_entropy(scores, labels.reshape(-1)[chosen])
    nsp_loss = ops.cross_entropy(next_scores, next_sentence_label)
    return BertPreTrainingOutput(scores, next_scores, mlm_loss + nsp_loss, mlm_loss, nsp_loss)


# --- All of them -----------------------------------------------------------------------------------------


def _draws(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def _activations() -> tuple[Any, ...]:
    return (_draws(2048 * 512),)


def _adamw() -> tuple[Any, ...]:
    g = _draws(4096 * 128)
    return (np.zeros_like(g), g, np.zeros_like(g), np.zeros_like(g), 1e-4, 0.01, 0.9, 0.999, 1)


def _exponentials(kernel: Callable[[Array, Array, Array], None]) -> Callable[[Array], tuple[Array, Array]]:
    def in_the_cache(x: Array) -> tuple[Array, Array]:
        y, slope = np.empty_like(x), np.empty_like(x)
        in_blocks(lambda b: kernel(x[b], y[b], slope[b]), x.size, 2**17, 1)
        return y, slope

    return in_the_cache


def _vocabulary() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(2048) < 0.15, rng.integers(0, 4096, 2048), -100)
    return _draws(2048, 128), 0.02 * _draws(4096, 128), labels


Pair = tuple[Callable[..., Any], Callable[..., Any], Callable[[], tuple[Any, ...]]]

# the plain way, the other way, and what makes the inputs: those of the reduced model at 32 x 64 tokens
PAIRS: dict[str, Pair] = {
    "blocks that stay in the cache": (gelu_whole, gelu_in_blocks, _activations),
    "blocks shared over threads": (gelu_in_blocks, gelu_on_all_threads, _activations),
    "one exponential instead of two": (
        _exponentials(two_exponentials),
        _exponentials(one_exponential),
        _activations,
    ),
    "random words instead of floats": (
        mask_from_floats,
        mask_from_words,
        lambda: ((2048, 128), 0.1, 0),
    ),
    "rows sorted, then summed": (
        add_at,
        numpy.scatter_add_rows,
        lambda: (4096, np.random.default_rng(0).zipf(1.2, 2048) % 4096, _draws(2048, 128)),
    ),
    "AdamW in blocks": (adamw_plain, adamw_in_blocks, _adamw),
    "small products shared": (
        products_in_turn,
        products_shared,
        lambda: (_draws(384, 128, 64), _draws(384, 128, 64).swapaxes(1, 2)),  # BERT-Base's, 32 x 128 tokens
    ),
    "vocabulary where it is asked": (vocabulary_everywhere, vocabulary_where_asked, _vocabulary),
}


def blas_kernel() -> str:
    """The name of the kernels that NumPy's BLAS has chosen for this processor, as far as it tells."""
    return str(
        next((library["architecture"] for library in blas.info() if "architecture" in library), "unknown")
    )
