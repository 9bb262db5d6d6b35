"""Right answers to the exercises of chapter `published`, as learners write them."""

from __future__ import annotations

import numpy as np

RIGHT = {}

# --- mean_pool -------------------------------------------------------------------------------------------


def text_by_text(H, attention_mask):
    return np.stack([h[m == 1].mean(axis=0) for h, m in zip(H, attention_mask, strict=True)])


def by_einsum(H, attention_mask):
    return np.einsum("bld,bl->bd", H, attention_mask) / attention_mask.sum(axis=1)[:, None]


RIGHT["mean_pool"] = [text_by_text, by_einsum]

# --- nearest ---------------------------------------------------------------------------------------------


def by_unit_vectors(index, questions, k):
    units, asked = (x / np.sqrt((x * x).sum(-1))[:, None] for x in (index, questions))
    return (asked @ units.T).argsort(axis=1)[:, ::-1][:, :k]


def by_distance_of_unit_vectors(index, questions, k):
    units, asked = (x / np.linalg.norm(x, axis=1)[:, None] for x in (index, questions))
    return np.argsort(((asked[:, None] - units) ** 2).sum(axis=-1), axis=1)[:, :k]


RIGHT["nearest"] = [by_unit_vectors, by_distance_of_unit_vectors]

# --- renamed ---------------------------------------------------------------------------------------------

NAMES = {
    "self_attn.out_proj": "attention.output.dense",
    "linear1": "intermediate.dense",
    "linear2": "output.dense",
    "norm1": "attention.output.LayerNorm",
    "norm2": "output.LayerNorm",
}


def by_layers(state):
    found = {}
    for n in sorted({name.split(".")[1] for name in state}):
        old, new = f"layers.{n}.", f"encoder.layer.{n}."
        for kind in ("weight", "bias"):
            array = state[f"{old}self_attn.in_proj_{kind}"]
            size = len(array) // 3
            for i, part in enumerate(("query", "key", "value")):
                found[f"{new}attention.self.{part}.{kind}"] = array[i * size : (i + 1) * size]
            found |= {f"{new}{there}.{kind}": state[f"{old}{here}.{kind}"] for here, there in NAMES.items()}
    return found


RIGHT["renamed"] = [by_layers]

# --- broken_download -------------------------------------------------------------------------------------


def by_counts(states):
    for name in states[0]:
        zeros = [int((state[name] == 0).sum()) for state in states]
        if max(zeros) > min(zeros):
            return int(np.argmax(zeros)), name
    raise ValueError("none is damaged")


def by_the_last_entry(states):
    which = next(i for i, s in enumerate(states) if not s["pooler.weight"].flat[-1])
    whole = states[which - 1]
    return which, next(name for name, a in states[which].items() if not a.flat[-1] and whole[name].flat[-1])


RIGHT["broken_download"] = [by_counts, by_the_last_entry]
