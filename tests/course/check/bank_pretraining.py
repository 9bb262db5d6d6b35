"""Answers to the exercises of chapter 15 as learners write them: wrong ones, with what to tell each, and right ones."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np

from minigrad.optim import clip_grad_norm

__all__ = ["RIGHT", "WRONG"]


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


def with_none(language):
    costs, weights = [], []
    for text, weight in language.items():
        for i in range(len(text)):
            seen = [None if j == i else word for j, word in enumerate(text)]
            rivals = 0
            for other, w in language.items():
                if [None if j == i else word for j, word in enumerate(other)] == seen:
                    rivals += w
            costs.append(np.log(rivals) - np.log(weight))
            weights.append(weight)
    return float(np.average(costs, weights=weights))


def texts_alike(language):
    costs = []
    for text in language:
        for i in range(len(text)):
            rivals = sum(w for o, w in language.items() if o[:i] == text[:i] and o[i + 1 :] == text[i + 1 :])
            costs.append(-math.log(language[text] / rivals))
    return sum(costs) / len(costs)


def by_place_only(language):
    cost = total = 0
    for text, weight in language.items():
        for _ in text:
            rivals = sum(w for o, w in language.items() if len(o) == len(text))
            cost -= weight * math.log(weight / rivals)
            total += weight
    return cost / total


def from_the_left(language):
    cost = total = 0
    for text, weight in language.items():
        for i in range(len(text)):
            rivals = sum(w for o, w in language.items() if len(o) == len(text) and o[:i] == text[:i])
            cost -= weight * math.log(weight / rivals)
            total += weight
    return cost / total


def a_text_at_a_time(language):
    cost = total = 0
    for text, weight in language.items():
        costs = []
        for i in range(len(text)):
            rivals = sum(w for o, w in language.items() if o[:i] == text[:i] and o[i + 1 :] == text[i + 1 :])
            costs.append(-math.log(weight / rivals))
        cost += weight * sum(costs) / len(costs)
        total += weight
    return cost / total


def in_bits(language):
    return by_patterns(language) / math.log(2)


def along_the_shorter(language):
    cost = places = 0
    for text, weight in language.items():
        for i in range(len(text)):
            rivals = sum(
                w
                for other, w in language.items()
                if all(a == b for j, (a, b) in enumerate(zip(other, text, strict=False)) if j != i)
            )
            cost -= weight * math.log(weight / rivals)
            places += weight
    return cost / places


FLOOR_RIGHT = [by_patterns, with_none]
FLOOR_WRONG = [
    (texts_alike, "You count each text once"),
    (by_place_only, "without a look at the others"),
    (from_the_left, "looks to the left only"),
    (a_text_at_a_time, "You take the mean over texts"),
    (in_bits, "in bits"),
    (along_the_shorter, "Rivals are as long as the text"),
]

# --- cost_of_doubt ---------------------------------------------------------------------------------------


def with_arrays(r, s, n):
    p, q = np.full(n, (1 - r) / n), np.full(n, (1 - s) / n)
    p[0] += r
    q[0] += s
    seen = p > 0
    return float((p[seen] * np.log(p[seen] / q[seen])).sum())


def loss_less_floor(r, s, n):
    copy, other = r + (1 - r) / n, (1 - r) / n
    loss = -copy * math.log(s + (1 - s) / n) - (n - 1) * other * math.log((1 - s) / n)
    floor = -copy * math.log(copy) - ((n - 1) * other * math.log(other) if other else 0)
    return loss - floor


def never_by_accident(r, s, n):
    found = r * math.log(r / s) if r else 0
    return found + ((1 - r) * math.log((1 - r) / (1 - s)) if r < 1 else 0)


def the_loss(r, s, n):
    copy, other = r + (1 - r) / n, (1 - r) / n
    return -copy * math.log(s + (1 - s) / n) - (n - 1) * other * math.log((1 - s) / n)


def the_floor(r, s, n):
    p = np.full(n, (1 - r) / n)
    p[0] += r
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


def reversed_divergence(r, s, n):
    return with_arrays(s, r, n) if 0 < r < 1 else 0.0


def one_other(r, s, n):
    copy, other = r + (1 - r) / n, (1 - r) / n
    found = copy * math.log(copy / (s + (1 - s) / n))
    return found + (other * math.log((1 - r) / (1 - s)) if other else 0)


def copy_or_not(r, s, n):
    """The n - 1 other nouns as one: both give them even shares."""
    copy, mine = r + (1 - r) / n, s + (1 - s) / n
    return copy * math.log(copy / mine) + ((1 - copy) * math.log((1 - copy) / (1 - mine)) if copy < 1 else 0)


def at_the_copy(r, s, n):
    return math.log(r + (1 - r) / n) - math.log(s + (1 - s) / n)


DOUBT_RIGHT = [with_arrays, loss_less_floor, copy_or_not]
DOUBT_WRONG = [
    (never_by_accident, "between the two beliefs about the pair"),
    (the_loss, "That is the whole loss"),
    (the_floor, "That is the floor"),
    (one_other, "You count one other noun"),
    (at_the_copy, "the two probabilities of the copied noun alone"),
]

# --- text_with_floor -------------------------------------------------------------------------------------


def by_newton(floor, length):
    """Steps from a p at which the cost is too large."""
    if floor == 0:
        return 1.0
    p, wanted = 0.75, floor * length
    low, high = 0.5, 1.0
    for _ in range(200):
        cost = -p * math.log(p) - (1 - p) * math.log1p(-p)
        if cost > wanted:
            low = p
        else:
            high = p
        p = low + (high - low) / 2
        if p == 1.0:
            break
    return p


def with_recursion(floor, length, low=0.5, high=1.0, depth=70):
    p = 0.5 * low + 0.5 * high
    if depth == 0:
        return p
    cost = sum(-q * math.log(q) for q in (p, 1 - p) if q > 0)
    if cost > floor * length:
        return with_recursion(floor, length, p, high, depth - 1)
    return with_recursion(floor, length, low, p, depth - 1)


def of_one_word(floor, length):
    return by_newton(floor, 1)


def the_rarer(floor, length):
    return 1 - by_newton(floor, length)


def searched(cost, wanted):
    low, high = 0.5, 1.0
    while high - low > 1e-15:
        p = (low + high) / 2
        if p in (low, high):
            break
        low, high = (p, high) if cost(p) > wanted else (low, p)
    return (low + high) / 2


def in_bits_of_a_coin(floor, length):
    return searched(lambda p: -p * math.log2(p) - (1 - p) * math.log2(1 - p) if p < 1 else 0, floor * length)


def of_the_likelier_alone(floor, length):
    return searched(lambda p: -p * math.log(p), floor * length)


DESIGN_RIGHT = [by_newton, with_recursion]
DESIGN_WRONG = [
    (of_one_word, "its cost is floor · length"),
    (in_bits_of_a_coin, "That is in bits"),
    (of_the_likelier_alone, "Your entropy has one term"),
    (the_rarer, "the chance of the rarer word"),
]

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


def all_in_the_inner_loop(model, batches, optimizer, schedule, parts):
    losses = []
    for start in range(0, len(batches), parts):
        found = []
        for batch in batches[start : start + parts]:
            optimizer.zero_grad()
            loss = model(**batch).loss
            (loss * (1 / parts)).backward()
            found.append(loss.item())
        clip_grad_norm(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(sum(found) / parts)
    return losses


def not_divided(model, batches, optimizer, schedule, parts):
    losses = []
    for start in range(0, len(batches), parts):
        optimizer.zero_grad()
        found = []
        for batch in batches[start : start + parts]:
            loss = model(**batch).loss
            loss.backward()
            found.append(loss.item())
        clip_grad_norm(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(sum(found) / parts)
    return losses


def as_given(model, batches, optimizer, schedule, parts):
    losses = []
    for start in range(0, len(batches), parts):
        total = 0.0
        for batch in batches[start : start + parts]:
            optimizer.zero_grad()
            loss = model(**batch).loss
            loss.backward()
            total += loss.item() / parts
        optimizer.step()
        clip_grad_norm(model.parameters(), 1.0)
        schedule.step()
        losses.append(total)
    return losses


def rate_of_the_first_step(model, batches, optimizer, schedule, parts):
    losses = []
    for start in range(0, len(batches), parts):
        optimizer.zero_grad()
        found = [model(**batch).loss * (1 / parts) for batch in batches[start : start + parts]]
        for loss in found:
            loss.backward()
        clip_grad_norm(model.parameters(), 1.0)
        optimizer.step()
        losses.append(sum(loss.item() for loss in found))
    return losses


def clipped_on_the_way(model, batches, optimizer, schedule, parts):
    losses = []
    for start in range(0, len(batches), parts):
        optimizer.zero_grad()
        total = 0.0
        for batch in batches[start : start + parts]:
            loss = model(**batch).loss / parts
            loss.backward()
            clip_grad_norm(model.parameters(), 1.0)
            total += loss.item()
        optimizer.step()
        schedule.step()
        losses.append(total)
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


LOOP_RIGHT = [with_a_counter, sums_first]
LOOP_WRONG = [
    (all_in_the_inner_loop, "only the last batch of a step counts"),
    (not_divided, "the sum is `parts` times the mean"),
    (as_given, "The loop as it was given has three faults"),
    (rate_of_the_first_step, "The schedule does not move"),
    (clipped_on_the_way, "You clip after each batch"),
]

# --- words_needed ----------------------------------------------------------------------------------------


def with_cov(model, floor, error):
    together = np.cov(model, floor)
    variance = together[0, 0] + together[1, 1]
    return [int(np.ceil((variance - 2 * together[0, 1]) / error**2)), int(np.ceil(variance / error**2))]


def by_hand(model, floor, error):
    n = len(model)
    gap = model - floor
    same = ((gap - gap.mean()) ** 2).sum() / (n - 1)
    other = sum(((x - x.mean()) ** 2).sum() / (n - 1) for x in (model, floor))
    return [math.ceil(same / error**2), math.ceil(other / error**2)]


def with_n(model, floor, error):
    return [math.ceil(np.var(model - floor) / error**2), math.ceil((model.var() + floor.var()) / error**2)]


def never_the_same_words(model, floor, error):
    needed = math.ceil((model.var(ddof=1) + floor.var(ddof=1)) / error**2)
    return [needed, needed]


def not_squared(model, floor, error):
    return [
        math.ceil((model - floor).var(ddof=1) / error),
        math.ceil((model.var(ddof=1) + floor.var(ddof=1)) / error),
    ]


def floor_without_error(model, floor, error):
    return [math.ceil((model - floor).var(ddof=1) / error**2), math.ceil(model.var(ddof=1) / error**2)]


def deviations_added(model, floor, error):
    same, other = np.std(model - floor, ddof=1), np.std(model, ddof=1) + np.std(floor, ddof=1)
    return [math.ceil((same / error) ** 2), math.ceil((other / error) ** 2)]


NEEDED_RIGHT = [with_cov, by_hand]
NEEDED_WRONG = [
    (with_n, "ddof=1"),
    (never_the_same_words, "take the standard deviation of the differences"),
    (floor_without_error, "On other words the floor varies too"),
    (deviations_added, "Standard deviations do not add up"),
    (not_squared, "over the *square* of the error"),
]

RIGHT = {
    "floor_of": FLOOR_RIGHT,
    "cost_of_doubt": DOUBT_RIGHT,
    "text_with_floor": DESIGN_RIGHT,
    "train_in_parts": LOOP_RIGHT,
    "words_needed": NEEDED_RIGHT,
}
WRONG = {
    "floor_of": FLOOR_WRONG,
    "cost_of_doubt": DOUBT_WRONG,
    "text_with_floor": DESIGN_WRONG,
    "train_in_parts": LOOP_WRONG,
    "words_needed": NEEDED_WRONG,
}
