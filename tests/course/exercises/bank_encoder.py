"""Answers to the exercises of chapter `encoder`, as others would write them."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np

from minigrad import Tensor, ops

RIGHT = {}
WRONG = {}

# --- pool ------------------------------------------------------------------------------------------------


def by_sequence(X, W, b):
    return ops.stack([(x[0] @ W + b).tanh() for x in X])


def by_the_first_alone(X, W, b):
    return (b + X[:, :1].reshape(len(X), -1) @ W).tanh()


RIGHT["pool"] = [by_sequence, by_the_first_alone]
WRONG["pool"] = [
    (lambda X, W, b: (X.mean(1) @ W).tanh(), ("[mean-of-tokens]", "[no-bias]")),
    (lambda X, W, b: (X[:, 0] @ W + b).tanh().astype("float64"), "float64"),
    (lambda X, W, b: np.tanh(X[:, 0] @ W + b), "Write x.tanh()"),
]

# --- parameter_count -------------------------------------------------------------------------------------


def multiplied_out(V, d_model, N, d_ff, L_max):
    d = d_model
    return d * (V + L_max + 4) + N * (4 * d**2 + 2 * d * d_ff + 9 * d + d_ff) + d**2 + d


RIGHT["parameter_count"] = [multiplied_out]

# --- transposed ------------------------------------------------------------------------------------------


def by_bits(run, loaded, expected):
    candidates = sorted(n for n, W in loaded.items() if W.shape == W.T.shape and W.ndim == 2)
    choices = sorted(range(2 ** len(candidates)), key=lambda bits: bits.bit_count())
    for bits in choices:
        chosen = [name for i, name in enumerate(candidates) if bits >> i & 1]
        tried = dict(loaded)
        for name in chosen:
            tried[name] = np.transpose(loaded[name])
        if np.max(np.abs(run(tried) - expected)) < 1e-7:
            return chosen
    raise ValueError("no choice fits")


def by_products(run, loaded, expected):
    found = []
    names = [n for n in loaded if loaded[n].ndim == 2 and len(loaded[n]) == loaded[n].shape[1]]
    for flips in itertools.product([False, True], repeat=len(names)):
        turned = {n: loaded[n].T for n, flip in zip(names, flips, strict=True) if flip}
        if np.allclose(run({**loaded, **turned}), expected):
            found.append(sorted(turned))
    return min(found, key=len)


def without_feed_forward(run, loaded, expected):
    names = ["W", "W_K", "W_O", "W_Q", "W_V"]
    for size in range(6):
        for chosen in itertools.combinations(names, size):
            if np.allclose(run({**loaded, **{n: loaded[n].T for n in chosen}}), expected):
                return list(chosen)
    return None


def all_in_place(run, loaded, expected):
    for name in loaded:
        loaded[name] = loaded[name].T
    return by_bits(run, loaded, expected)


def what_comes_nearer(run, loaded, expected):
    wrong, best = [], np.linalg.norm(run(loaded) - expected)
    for name in sorted(n for n, W in loaded.items() if W.ndim == 2 and W.shape == W.T.shape):
        if np.linalg.norm(run({**loaded, name: loaded[name].T}) - expected) < best:
            wrong += [name]
    return wrong


RIGHT["transposed"] = [by_bits, by_products]
WRONG["transposed"] = [
    (what_comes_nearer, "[one-at-a-time]"),
    (without_feed_forward, "On d_model = d_ff, W_2 and W_K"),
    (all_in_place, "W_S has shape"),
]

# --- vocabulary_for_half ---------------------------------------------------------------------------------


def with_divmod(d_model, N, d_ff, L_max):
    whole, rest = divmod(multiplied_out(0, d_model, N, d_ff, L_max), d_model)
    return whole + (rest > 0)


def simplified(d_model, N, d_ff, L_max):
    return L_max + 5 + d_model + N * (4 * d_model + 2 * d_ff + 9) - (-N * d_ff // d_model)


RIGHT["vocabulary_for_half"] = [with_divmod, simplified]

# --- bert ------------------------------------------------------------------------------------------------


def assembled(batch, parts, model, layers=None):
    """Written otherwise: with what comes in first."""
    ids, types, seen = (batch[name] for name in ("input_ids", "token_type_ids", "attention_mask"))
    x = parts.embed(ids, types, model["W_T"], model["W_S"], model["W_P"])
    x = parts.add_norm(x, 0 * x, *model["norm"], model["eps"])
    for part in model["layers"] if layers is None else layers:
        added = parts.padding_mask(seen, x.dtype)
        z = parts.multi_head(x, part["attention"], model["h"], added)
        x = parts.add_norm(z, x, *part["attention_norm"], model["eps"])
        z = parts.feed_forward(x, *part["feed_forward"])
        x = parts.add_norm(z, x, *part["output_norm"], model["eps"])
    return x, parts.pool(x, *model["pooler"])


def recursive(batch, parts, model):
    if not model["layers"]:
        return assembled(batch, parts, model)
    x, _ = recursive(batch, parts, {**model, "layers": model["layers"][:-1]})
    part, eps = model["layers"][-1], model["eps"]
    mask = parts.padding_mask(batch["attention_mask"], x.dtype)
    x = parts.add_norm(
        x, parts.multi_head(x, part["attention"], model["h"], mask), *part["attention_norm"], eps
    )
    x = parts.add_norm(x, parts.feed_forward(x, *part["feed_forward"]), *part["output_norm"], eps)
    return x, parts.pool(x[:, :1], *model["pooler"])


def first_row_too_early(batch, parts, model):
    x, _ = assembled(batch, parts, model)
    return x, parts.pool(x[:, 0], *model["pooler"])


def no_mask_at_all(batch, parts, model):
    def attend(x, weights, h, mask):
        return parts.multi_head(x, weights, h, None)

    return assembled(batch, SimpleNamespace(**{**vars(parts), "multi_head": attend}), model)


def layers_without_a_gradient(batch, parts, model):
    x, pooled = assembled(batch, parts, model)
    return Tensor(x.data), pooled


RIGHT["bert"] = [assembled, recursive]
WRONG["bert"] = [
    (first_row_too_early, "pool takes an array (B, L, d_model) as X, got one of shape (1, 4)"),
    (no_mask_at_all, "multi_head takes an array (B, 1, 1, L) as mask, got no array"),
    (
        lambda batch, parts, model: assembled(batch, parts, model)[0],
        "it should return 2 values, and returned 1",
    ),
    (layers_without_a_gradient, "the gradient of value 1 for W_T does not arrive"),
]
