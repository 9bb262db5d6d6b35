"""Chapter `fast`'s ideas: each as a pair of the plain way and the other one, and the engine without any of them.

`PAIRS` has the pairs by name, with inputs of a step's sizes. book/records/benchmarks/before_after.py measures each, and
the chapter shows its figures. `IDEAS` lists what the finished engine has, in the chapter's order, and
`engine_without` and `work_everywhere` take them out again. One idea is not in the library: to leave padding out. Here
it is a whole forward, `forward_without_padding`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import ThreadpoolController

from minigrad import backend, ops
from minigrad.backend import threads
from minigrad.bert.attention import BertSelfAttention, additive_mask
from minigrad.bert.config import IGNORED
from minigrad.bert.model import BertForPreTraining, BertModel, BertModelOutput, BertPreTrainingOutput
from minigrad.tensor import Tensor

Array = np.ndarray

cpu = backend.get("numpy")
THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
pool = ThreadPoolExecutor(THREADS)
blas = ThreadpoolController().select(user_api="blas")

# --- One number at a time --------------------------------------------------------------------------------

_erf_of_a_number = np.frompyfunc(math.erf, 1, 1)


def erf_number_by_number(x: Array) -> Array:
    """erf(x / √2) from Python's `math.erf`, which takes one number. The scale is an operator on the whole array."""
    return _erf_of_a_number(x * x.dtype.type(math.sqrt(0.5))).astype(x.dtype)


# --- Blocks ----------------------------------------------------------------------------------------------


def in_blocks(work, size, block, threads):
    """Call `work` with slices that cover range(size), in threads of `pool`."""
    starts = range(0, size, block)

    def run(first):
        for start in starts[first::threads]:
            work(slice(start, min(start + block, size)))

    others = [pool.submit(run, first) for first in range(1, threads)]
    run(0)
    for other in others:
        other.result()


def gelu_in_blocks(x: Array, block: int, threads: int) -> tuple[Array, Array]:
    """GELU and its slope by the library's operators, x (n,), over one block after the other."""
    y, slope = np.empty_like(x), np.empty_like(x)
    in_blocks(lambda b: cpu.gelu_block(x[b], y[b], slope[b]), x.size, block, threads)
    return y, slope


# --- Random bits, sorted rows, AdamW, many small products ------------------------------------------------


def mask_from_floats(shape: tuple[int, ...], p: float, keys: tuple[int, int], first: int = 0) -> Array:
    """Which entries dropout keeps: a random float for each, compared with p. first: where in a larger array they are;
    the draws there are others than the whole array's."""
    return np.random.default_rng((*keys, first)).random(shape, dtype=np.float32) >= p


def add_at(num_rows: int, ids: Array, values: Array) -> Array:
    """The gradient of a table: row i of `values` added to row ids[i]."""
    out = np.zeros((num_rows, values.shape[1]), values.dtype)
    np.add.at(out, ids, values)
    return out


def adamw_plain(p, g, m, v, step_size, decay, beta1, beta2, eps, second_correction):
    """One step of AdamW as in chapter `optimisers`: each operator goes over the whole array."""
    m[:] = beta1 * m + (1 - beta1) * g
    v[:] = beta2 * v + (1 - beta2) * g**2
    root = np.sqrt(v) / second_correction + eps
    p[:] = p - decay * p - step_size * m / root


def adamw_step_plain(parameters: Any, gradients: Any, firsts: Any, seconds: Any, **settings: float) -> None:
    """`adamw_plain` for each parameter."""
    for arrays in zip(parameters, gradients, firsts, seconds, strict=True):
        adamw_plain(*arrays, **settings)


def products_in_turn(a: Array, b: Array) -> Array:
    """A product for each sequence and head: (n, L, d) (n, d, L) -> (n, L, L)."""
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
    """The masked-word loss from scores at all positions, and its gradient for x (n, d_model)."""
    states = Tensor(x, requires_grad=True)
    scores = ops.linear(states, Tensor(table).T)  # (n, V)
    ops.cross_entropy(scores, labels).backward()
    return states.grad


def vocabulary_where_asked(x: Array, table: Array, labels: Array) -> Any:
    """The same from scores at the chosen positions only."""
    states = Tensor(x, requires_grad=True)
    chosen = np.flatnonzero(labels != IGNORED)
    scores = ops.linear(states[chosen], Tensor(table).T)  # (chosen, V)
    ops.cross_entropy(scores, labels[chosen]).backward()
    return states.grad


def work_everywhere(model: BertForPreTraining, vocabulary: bool) -> None:
    """Let `model` compute its last layer for all tokens, and, if `vocabulary`, scores at all positions too."""
    bert = model.bert
    if not vocabulary:

        def states_of_all(
            input_ids: Array, mask: Array, token_type_ids: Array, rows: Array
        ) -> BertModelOutput:
            output = BertModel.forward(bert, input_ids, mask, token_type_ids)
            states = output.last_hidden_state  # (B, L, d_model)
            output.last_hidden_state = states.reshape(-1, states.shape[-1])[rows]
            return output

        bert.forward = states_of_all  # type: ignore[assignment, method-assign]
        return

    def losses(
        input_ids: Array,
        attention_mask: Array,
        token_type_ids: Array,
        labels: Array,
        next_sentence_label: Array,
    ) -> BertPreTrainingOutput:
        output = bert(input_ids, attention_mask, token_type_ids)
        table = bert.embeddings.word_embeddings.weight
        scores, next_scores = model.cls(output.last_hidden_state, output.pooler_output, table)
        mlm_loss = ops.cross_entropy(scores.reshape(-1, table.shape[0]), labels.reshape(-1))
        nsp_loss = ops.cross_entropy(next_scores, next_sentence_label)
        return BertPreTrainingOutput(scores, next_scores, mlm_loss + nsp_loss, mlm_loss, nsp_loss)

    model.forward = losses  # type: ignore[assignment, method-assign]


# --- The engine without one idea, or without all ---------------------------------------------------------

WORDS, LAST_LAYER = "words scored where asked", "last layer where it is read"
AS_WHOLE_ARRAYS, ONE_NODE, KEPT = "erf of whole arrays", "one node for each operation", "freed memory kept"
BLOCKS, PRODUCTS = "blocks, shared by the cores", "products shared by our threads"
BITS, SORTED, ADAMW = "16 random bits, not a float", "rows sorted, then summed", "AdamW in place, in blocks"
SHARES = "batch shared by the cores"

IDEAS = (WORDS, LAST_LAYER, AS_WHOLE_ARRAYS, ONE_NODE, KEPT, BLOCKS, PRODUCTS, BITS, SORTED, ADAMW, SHARES)
# a row of the record: a baseline without calls of `math.erf`
NAIVE_WITH_ERF = "naive, with erf of whole arrays"

_IN_THE_BACKEND: dict[str, dict[str, Any]] = {  # what stands in the place of a function without the idea
    AS_WHOLE_ARRAYS: {"erf_over_root_2": erf_number_by_number},
    PRODUCTS: {"matmul": np.matmul},
    BITS: {"keep_mask": mask_from_floats},
    SORTED: {"scatter_add_rows": add_at},
    ADAMW: {"adamw_step": adamw_step_plain},
}


@contextmanager
def engine_without(ideas: Sequence[str]) -> Iterator[None]:
    """The engine without these of `IDEAS`, as far as they are the engine's: not the model's work, nor kept memory, nor
    the shares of a batch, which are the run's.

    Raises ValueError for what is none of them.
    """
    if unknown := [idea for idea in ideas if idea not in IDEAS]:
        raise ValueError(f"engine_without: {unknown} is not among {list(IDEAS)}")
    with ExitStack() as stack:
        for idea in ideas:
            for name, function in _IN_THE_BACKEND.get(idea, {}).items():
                stack.enter_context(patch.object(cpu, name, function))
        if BLOCKS in ideas:
            stack.enter_context(patch.object(threads, "BLOCK", 2**60))
        if ONE_NODE in ideas:
            for name in ops.composed.__all__:
                stack.enter_context(patch.object(ops, name, getattr(ops.composed, name)))
        yield


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


# --- The pairs -------------------------------------------------------------------------------------------


def _draws(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def _activations() -> tuple[Any, ...]:
    return (_draws(2048 * 512),)


def _adamw() -> tuple[Any, ...]:
    g = _draws(4096 * 128)
    return np.zeros_like(g), g, np.zeros_like(g), np.zeros_like(g)


_ADAMW = {
    "step_size": 1e-3,
    "decay": 1e-6,
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "second_correction": 0.03,
}


def _vocabulary() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(2048) < 0.15, rng.integers(0, 4096, 2048), IGNORED)
    return _draws(2048, 128), 0.02 * _draws(4096, 128), labels


Pair = tuple[Callable[..., Any], Callable[..., Any], Callable[[], tuple[Any, ...]]]

# the plain way, the other way, and what makes the inputs: those of the reduced model at 32 x 64 tokens
PAIRS: dict[str, Pair] = {
    WORDS: (vocabulary_everywhere, vocabulary_where_asked, _vocabulary),
    AS_WHOLE_ARRAYS: (erf_number_by_number, cpu.erf_over_root_2, _activations),
    "blocks, on one core": (
        lambda x: gelu_in_blocks(x, x.size, 1),
        lambda x: gelu_in_blocks(x, 2**17, 1),
        _activations,
    ),
    "the same blocks, on all cores": (
        lambda x: gelu_in_blocks(x, 2**17, 1),
        lambda x: gelu_in_blocks(x, 2**17, THREADS),
        _activations,
    ),
    PRODUCTS: (
        products_in_turn,
        products_shared,
        lambda: (_draws(384, 128, 64), _draws(384, 128, 64).swapaxes(1, 2)),  # BERT-Base's, 32 x 128 tokens
    ),
    BITS: (mask_from_floats, cpu.keep_mask, lambda: ((2048, 128), 0.1, (1, 2))),
    SORTED: (
        add_at,
        cpu.scatter_add_rows,
        lambda: (4096, np.random.default_rng(0).zipf(1.2, 2048) % 4096, _draws(2048, 128)),
    ),
    ADAMW: (
        lambda *arrays: adamw_plain(*arrays, **_ADAMW),
        lambda *arrays: cpu.adamw_step(*([array] for array in arrays), **_ADAMW),
        _adamw,
    ),
}
