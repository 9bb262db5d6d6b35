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

# --- text_with_floor -------------------------------------------------------------------------------------


def until_narrow(floor, length):
    """It keeps the upper half where both sides are equal, as they are near 1/2 in all digits."""
    low, high = 0.5, 1.0
    while high - low > 1e-13:
        p = (low + high) / 2
        if -p * math.log(p) - (1 - p) * math.log(1 - p) >= floor * length:
            low = p
        else:
            high = p
    return low


def with_recursion(floor, length, low=0.5, high=1.0, depth=70):
    p = 0.5 * low + 0.5 * high
    if depth == 0:
        return p
    cost = sum(-q * math.log(q) for q in (p, 1 - p) if q > 0)
    if cost > floor * length:
        return with_recursion(floor, length, p, high, depth - 1)
    return with_recursion(floor, length, low, p, depth - 1)


RIGHT["text_with_floor"] = [with_recursion, until_narrow]

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
    (summed_and_scheduled_on_the_way, ("Divide each loss by `parts`", "calls `schedule.step()` 8 times")),
]

# --- words_needed ----------------------------------------------------------------------------------------


def with_cov(model, floor, error):
    together = np.cov(model, floor)
    variance = together[0, 0] + together[1, 1]
    return [int(np.ceil((variance - 2 * together[0, 1]) / error**2)), int(np.ceil(variance / error**2))]


def with_n(model, floor, error):
    return [math.ceil(v / error**2) for v in (np.var(model - floor), np.var(model) + np.var(floor))]


RIGHT["words_needed"] = [with_cov, with_n]
