"""Answers to its exercises as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np

from minigrad.optim import clip_grad_norm

RIGHT = {}
WRONG = {}

# --- floor_of --------------------------------------------------------------------------------------------


def by_patterns(language):
    """Group the texts by what is left when a place is hidden."""
    groups = defaultdict(Counter)
    for text, weight in language.items():
        for place, word in enumerate(text):
            groups[text[:place], text[place + 1 :]][word] += weight
    total = sum(sum(words.values()) for words in groups.values())
    cost = 0.0
    for words in groups.values():
        together = sum(words.values())
        cost -= sum(weight * math.log(weight / together) for weight in words.values())
    return cost / total


RIGHT["floor_of"] = [by_patterns]

# --- cost_of_doubt ---------------------------------------------------------------------------------------


def copy_or_not(r, s, n):
    """The n - 1 other nouns as one: both give them even shares."""
    copy, mine = r + (1 - r) / n, s + (1 - s) / n
    return copy * math.log(copy / mine) + ((1 - copy) * math.log((1 - copy) / (1 - mine)) if copy < 1 else 0)


RIGHT["cost_of_doubt"] = [copy_or_not]

# --- train_in_parts --------------------------------------------------------------------------------------


def with_a_counter(model, batches, optimizer, schedule, parts):
    losses, seen = [], []
    optimizer.zero_grad()
    for number, batch in enumerate(batches, start=1):
        output = model(**batch)
        (output.loss / parts).backward()
        seen.append(output.loss.item())
        if number % parts == 0:
            clip_grad_norm(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            losses.append(np.mean(seen))
            seen = []
    return losses


def scheduled_first(model, batches, optimizer, schedule, parts):
    """The rate of this library's schedule is that of the optimiser's next step, however often it is asked for."""
    schedule.step()
    return with_a_counter(model, batches, optimizer, schedule, parts)


def summed_and_scheduled_on_the_way(model, batches, optimizer, schedule, parts):
    losses = []
    for start in range(0, len(batches), parts):
        seen = []
        for batch in batches[start : start + parts]:
            loss = model(**batch).loss
            loss.backward()
            seen.append(loss.item())
            if len(seen) == parts:
                clip_grad_norm(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            schedule.step()
        losses.append(sum(seen) / parts)
    return losses


def sums_first(model, batches, optimizer, schedule, parts):
    """One backward pass for the sum of a step's losses."""
    losses = []
    for start in range(0, len(batches), parts):
        mean = model(**batches[start]).loss * (1 / parts)
        for batch in batches[start + 1 : start + parts]:
            mean = mean + model(**batch).loss * (1 / parts)
        mean.backward()
        clip_grad_norm(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        losses.append(mean.item())
    return losses


RIGHT["train_in_parts"] = [with_a_counter, sums_first, scheduled_first]
WRONG["train_in_parts"] = [
    (summed_and_scheduled_on_the_way, ("Divide each loss by `parts`", "calls `schedule.step()` 8 times"))
]

# --- words_needed ----------------------------------------------------------------------------------------


def with_cov(model, floor, error):
    together = np.cov(model, floor)
    variance = together[0, 0] + together[1, 1]
    return [int(np.ceil((variance - 2 * together[0, 1]) / error**2)), int(np.ceil(variance / error**2))]


def with_n(model, floor, error):
    return [math.ceil(v / error**2) for v in (np.var(model - floor), np.var(model) + np.var(floor))]


RIGHT["words_needed"] = [with_cov, with_n]

# --- train_step ------------------------------------------------------------------------------------------


def parameter_by_parameter(batch, parts, model, lr):
    X, C = parts.bert(batch, model)
    B, L = batch["labels"].shape
    rows = np.flatnonzero(batch["labels"].ravel() >= 0)
    Y = parts.mlm_logits(X.reshape(B * L, -1)[rows], model)
    words = parts.cross_entropy(Y, batch["labels"].ravel()[rows])
    pairs = parts.cross_entropy(
        C @ model["seq_relationship"][0] + model["seq_relationship"][1], batch["next_sentence_label"]
    )
    words.backward()
    model["t"] = model["t"] + 1
    own = {id(p): p.grad for p in parts.parameters(model)}
    X, C = parts.bert(batch, model)
    pairs = parts.cross_entropy(
        C @ model["seq_relationship"][0] + model["seq_relationship"][1], batch["next_sentence_label"]
    )
    pairs.backward()  # adds to what is there
    assert all(own[id(p)] is not None or p.grad is not None for p in parts.parameters(model))
    clipped, _ = parts.clip_gradients([p.grad for p in parts.parameters(model)], 1.0)
    for k, p in enumerate(parts.parameters(model)):
        m, v = model["means"][k]
        new, m, v = parts.adam_step(p.data, clipped[k], m, v, model["t"], lr, 0.9, 0.999, 1e-6)
        p.data = new - (lr * 0.01 * p.data if len(p.shape) == 2 else 0)
        p.grad = None
        model["means"][k] = [m, v]
    return words.item(), pairs.item()


def nothing_kept(batch, parts, model, lr):
    """Neither the gradients are emptied nor the means kept."""
    X, C = parts.bert(batch, model)
    chosen = batch["labels"] != -100
    words = parts.cross_entropy(parts.mlm_logits(X[chosen], model), batch["labels"][chosen])
    W, b = model["seq_relationship"]
    pairs = parts.cross_entropy(C @ W + b, batch["next_sentence_label"])
    (words + pairs).backward()
    model["t"] += 1
    gradients, _ = parts.clip_gradients([p.grad for p in parts.parameters(model)], 1.0)
    for p, g, (m, v) in zip(parts.parameters(model), gradients, model["means"], strict=True):
        theta = p.data * (1 - 0.01 * lr) if p.data.ndim > 1 else p.data
        p.data, _, _ = parts.adam_step(theta, g, m, v, model["t"], lr, 0.9, 0.999, 1e-6)
    return words.item(), pairs.item()


RIGHT["train_step"] = [parameter_by_parameter]
WRONG["train_step"] = [
    (nothing_kept, ("[gradients-left]", "[means-lost]")),
    (lambda batch, parts, model, lr: parts.bert(batch, model), "should return two numbers"),
]
