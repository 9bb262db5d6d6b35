"""The contestants: each makes a function that does one step of pre-training.

All start from the weights that minigrad draws for seed 0. PyTorch, JAX and CuPy are imported by the contestant
that needs them, so that none is in the memory of another's process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from settings import SETTINGS

import minigrad
from bert_course.chapters.fast import work_everywhere
from minigrad import backend, optim
from minigrad.bert.config import IGNORED, BertConfig
from minigrad.bert.data import pack_chosen
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.pretraining import PairShare
from minigrad.bert.training import parameter_groups
from minigrad.distributed import World
from minigrad.training.device_step import DeviceStep
from minigrad.training.epochs import Batch
from minigrad.training.shares import Replicas, shares_of

Array = Any  # a NumPy or CuPy ndarray


@dataclass(frozen=True)
class Contestant:
    """One step, ready to run.

    step: does it and returns its loss, as something that `float` takes (and only then is waited for); None
        for matrix products alone. wait: until the device has finished all steps. device_mb: MB of a GPU's
        memory that are held; None on the CPU. weights: minigrad's, on the host.
    """

    step: Callable[[], Any]
    wait: Callable[[], None] = lambda: None
    device_mb: Callable[[], float] | None = None
    weights: Callable[[], list[np.ndarray]] = list


# --- minigrad --------------------------------------------------------------------------------------------


def minigrad_step(
    config: BertConfig,
    batch: Batch,
    device: str,
    plain: bool = False,
    precision: str = "float32",
    whole: bool = False,
) -> Contestant:
    """The step of `Pretraining`, on the default backend.

    plain: the last layer computed for all tokens, as the others do, not only for those that the loss reads.
    precision: what products round to; float16 with loss scaling, as `Pretraining` does. whole: as a CUDA graph.
    """
    minigrad.manual_seed(0)
    model = BertForPreTraining(config)
    replicas = Replicas(model, shares_of(*batch["input_ids"].shape, World()))
    if plain:
        for one in replicas.models:
            work_everywhere(one, vocabulary=False)
    kernels = backend.of(next(model.parameters()).data)
    kernels.keep_freed_memory()
    optimizer = optim.AdamW(
        parameter_groups(model, SETTINGS.weight_decay),
        lr=SETTINGS.learning_rate,
        betas=SETTINGS.betas,
        eps=SETTINGS.eps,
    )
    scaler = optim.GradScaler(enabled=precision == "float16")

    def forward(model: Any, share: PairShare) -> tuple[None, minigrad.Tensor]:
        return None, share.loss(model(**share.batch))

    def compute(batches: Sequence[Batch], rates: Array | None = None) -> Array:
        optimizer.zero_grad()
        with backend.default_matmul_precision(precision):
            computed = replicas.compute(
                batches[0], PairShare, forward, lambda loss: scaler.scale(loss).backward()
            )
        scaler.unscale_(optimizer)
        optim.clip_grad_norm(model.parameters(), SETTINGS.max_grad_norm)
        scaler.step(optimizer, rates)
        scaler.update()
        return sum(loss.data for _, _, loss in computed)

    def weights() -> list[np.ndarray]:
        return [backend.to_numpy(parameter.data) for parameter in model.parameters()]

    if device == "cpu":
        return Contestant(lambda: compute([batch]), kernels.synchronize, weights=weights)
    pools = [kernels.xp.get_default_memory_pool()]

    def held_mb() -> float:
        return sum(pool.total_bytes() for pool in pools) / 1e6

    step: Callable[[Sequence[Batch]], Array] = compute
    if precision != "float16":
        step = on_device = DeviceStep(model, optimizer, compute, pack_chosen, whole, _not_whole)
        pools += [on_device.run.pool] if whole else []
    return Contestant(lambda: step([batch]), kernels.synchronize, held_mb, weights)


def _not_whole(why: str) -> None:
    raise RuntimeError(why)


def initial_weights(config: BertConfig) -> dict[str, np.ndarray]:
    """What minigrad starts from, on the host."""
    minigrad.manual_seed(0)
    model = BertForPreTraining(config)
    return {name: backend.to_numpy(array) for name, array in model.state_dict().items()}


# --- PyTorch ---------------------------------------------------------------------------------------------


def pytorch_step(
    config: BertConfig, batch: Batch, device: str, compiled: str = "", bfloat16: bool = False
) -> Contestant:
    """The same model from PyTorch's own layers, with `scaled_dot_product_attention` and the fused AdamW.

    compiled: the mode of `torch.compile` for the model and the loss, as one graph of fixed shapes; "reduce-overhead"
    launches forward and backward as CUDA graphs. bfloat16: under `torch.autocast`, which also keeps what goes from
    product to product in 16 bits.
    """
    import torch
    from pytorch_bert import TorchBert, copy_weights

    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(0)
    model = TorchBert(config)
    copy_weights(model, initial_weights(config))
    model.to(device).train()
    if compiled:
        model.loss_at = torch.compile(  # type: ignore[method-assign]
            model.loss_at, fullgraph=True, dynamic=False, mode=compiled
        )
    tensors = {name: torch.tensor(values) for name, values in batch.items()}
    optimizer = torch.optim.AdamW(
        model.parameter_groups(SETTINGS.weight_decay),
        lr=SETTINGS.learning_rate,
        betas=SETTINGS.betas,
        eps=SETTINGS.eps,
        fused=True,
    )

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=bfloat16):
            loss = model.loss(**tensors)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), SETTINGS.max_grad_norm)
        optimizer.step()
        return loss.detach().clone()  # a graph writes over its own

    if device == "cuda":
        return Contestant(step, torch.cuda.synchronize, lambda: torch.cuda.max_memory_reserved() / 1e6)
    return Contestant(step)


def jax_step(config: BertConfig, batch: Batch, device: str) -> Contestant:
    """The same in JAX, the whole step compiled."""
    import jax
    from jax_bert import make_step

    if device == "cuda" and jax.default_backend() != "gpu":
        raise RuntimeError("JAX finds no GPU")
    losses: list[Any] = []
    one = make_step(config, batch, initial_weights(config), SETTINGS)

    def step() -> Any:
        losses[:] = [one()]
        return losses[0]

    def wait() -> None:
        jax.block_until_ready(losses)

    if device == "cpu":
        return Contestant(step, wait)

    def peak_mb() -> float:
        return (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0) / 1e6

    return Contestant(step, wait, peak_mb)


# --- The floor -------------------------------------------------------------------------------------------


def products_step(config: BertConfig, batch: Batch, device: str) -> Contestant:
    """Only the matrix products of the step, forward and both backward ones, into kept arrays.

    Those of minigrad's plain path and of the competitors: all tokens in every layer.
    """
    kernels = backend.default()
    xp = kernels.xp
    rng = np.random.default_rng(0)
    size, inner, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    rows, length = batch["input_ids"].shape
    tokens, chosen = rows * length, int((batch["labels"] != IGNORED).sum())
    heads, d_k = config.num_attention_heads, config.head_size

    def pair(*shape: int, columns: int) -> tuple[Array, ...]:
        """A (…, n, k) and B (…, k, m), then arrays for A B and for both gradients."""
        a = xp.asarray(rng.standard_normal(shape, dtype=np.float32))
        b = xp.asarray(rng.standard_normal((*shape[:-2], shape[-1], columns), dtype=np.float32))
        return a, b, xp.matmul(a, b), xp.empty_like(a), xp.empty_like(b)

    layer = [pair(tokens, size, columns=size) for _ in range(4)]
    layer += [pair(tokens, size, columns=inner), pair(tokens, inner, columns=size)]
    layer += [pair(rows, heads, length, d_k, columns=length), pair(rows, heads, length, length, columns=d_k)]
    head = [pair(rows, size, columns=size), pair(chosen, size, columns=size)]
    head += [pair(chosen, size, columns=config.vocab_size)]

    def multiply(a: Array, b: Array, out: Array) -> None:
        if device == "cuda" and a.ndim > 2:
            # CuPy's matmul copies what is transposed, and multiplies stacks without TF32
            kernels._product(a, b)
        else:
            xp.matmul(a, b, out=out)

    def products(some: list[tuple[Array, ...]]) -> None:
        for a, b, y, da, db in some:
            multiply(a, b, out=y)
            multiply(y, b.swapaxes(-1, -2), out=da)
            multiply(a.swapaxes(-1, -2), y, out=db)

    def step() -> None:
        for _ in range(layers):
            products(layer)
        products(head)

    return Contestant(step, kernels.synchronize)


# --- All of them -----------------------------------------------------------------------------------------

Maker = Callable[[BertConfig, Batch, str], Contestant]

OURS, OURS_PLAIN, OURS_WHOLE = "minigrad", "minigrad, plain path", "minigrad, as a whole"
COMPETITORS: dict[str, Maker] = {
    "PyTorch": pytorch_step,
    "PyTorch, compiled": partial(pytorch_step, compiled="default"),
    "PyTorch, as CUDA graphs": partial(pytorch_step, compiled="reduce-overhead"),
    "JAX": jax_step,
}
FLOORS: dict[str, Maker] = {"products": products_step}
ROUNDED: dict[str, Maker] = {  # the products in 16 bits: compared with each other
    "minigrad, bfloat16": partial(minigrad_step, precision="bfloat16"),
    "minigrad, bfloat16, as a whole": partial(minigrad_step, precision="bfloat16", whole=True),
    "minigrad, float16": partial(minigrad_step, precision="float16"),
    "PyTorch, bfloat16": partial(pytorch_step, bfloat16=True),
}
SAME_BITS = {OURS_WHOLE: OURS, "minigrad, bfloat16, as a whole": "minigrad, bfloat16"}
MAKERS: dict[str, Maker] = {
    OURS: minigrad_step,
    OURS_PLAIN: partial(minigrad_step, plain=True),
    OURS_WHOLE: partial(minigrad_step, whole=True),
    **COMPETITORS,
    **FLOORS,
    **ROUNDED,
}
PACKAGES = {name: "torch" for name in MAKERS if name.startswith("PyTorch")} | {"JAX": "jax"}  # beside ours
ON = {  # who takes part on which device
    "cpu": (OURS, OURS_PLAIN, "PyTorch", "PyTorch, compiled", *FLOORS),
    "cuda": (OURS, OURS_WHOLE, *COMPETITORS, *FLOORS, *ROUNDED),
}
