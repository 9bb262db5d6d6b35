"""Answers to the exercises of chapter `encoder`, as others would write them."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np

RIGHT = {}
WRONG = {}

# --- pool ------------------------------------------------------------------------------------------------


def by_sequence(X, W, b):
    return np.stack([np.tanh(b + x[0].dot(W)) for x in X])


def with_einsum(X, W, b):
    return np.tanh(np.einsum("bd,de->be", X[:, 0, :], W) + b[None, :])


RIGHT["pool"] = [by_sequence, with_einsum]
WRONG["pool"] = [
    (lambda X, W, b: np.tanh(X.mean(1) @ W), ("[mean-of-tokens]", "[no-bias]")),
    (lambda X, W, b: np.tanh(X[:, 0].astype(float) @ W + b), "float64"),
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


def assembled(first, second, length, parts, model):
    """Written otherwise: functions inside."""
    where = {piece: i for i, piece in enumerate(model["vocabulary"])}

    def cut(words):
        return list(itertools.chain.from_iterable(parts.split_word(word, where.keys()) for word in words))

    tokens, types, seen = parts.pack(cut(first), cut(second), length)
    ids, types, seen = (np.array(row)[None] for row in ([where[t] for t in tokens], types, seen))
    x = parts.embed(ids, types, model["W_T"], model["W_S"], model["W_P"])
    x = parts.add_norm(x, 0.0, *model["norm"], model["eps"])
    added = parts.padding_mask(seen, x.dtype)
    for part in model["layers"]:
        z = parts.multi_head(x, part["attention"], model["h"], added)
        x = parts.add_norm(z, x, *part["attention_norm"], model["eps"])
        z = parts.feed_forward(x, *part["feed_forward"])
        x = parts.add_norm(z, x, *part["output_norm"], model["eps"])
    return x, parts.pool(x, *model["pooler"])


def recursive(first, second, length, parts, model):
    if model["layers"]:
        shorter = {**model, "layers": model["layers"][:-1]}
        x, _ = recursive(first, second, length, parts, shorter)
        part, eps = model["layers"][-1], model["eps"]
        words = [[p for w in t for p in parts.split_word(w, model["vocabulary"])] for t in (first, second)]
        mask = parts.padding_mask(np.array(parts.pack(*words, length)[2:]), x.dtype)
        x = parts.add_norm(
            x, parts.multi_head(x, part["attention"], model["h"], mask), *part["attention_norm"], eps
        )
        x = parts.add_norm(x, parts.feed_forward(x, *part["feed_forward"]), *part["output_norm"], eps)
        return x, parts.pool(x[:, :1], *model["pooler"])
    return assembled(first, second, length, parts, model)


def first_row_too_early(first, second, length, parts, model):
    x, _ = assembled(first, second, length, parts, model)
    return x, parts.pool(x[:, 0], *model["pooler"])


def no_mask_at_all(first, second, length, parts, model):
    def attend(x, weights, h, mask):
        return parts.multi_head(x, weights, h, None)

    return assembled(first, second, length, SimpleNamespace(**{**vars(parts), "multi_head": attend}), model)


RIGHT["bert"] = [assembled, recursive]
WRONG["bert"] = [
    (first_row_too_early, "pool takes an array (B, L, d_model) as X, got one of shape (1, 6)"),
    (no_mask_at_all, "multi_head takes an array (B, 1, 1, L) as mask, got no array"),
]
