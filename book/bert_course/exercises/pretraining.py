"""Chapter `pretraining`: the floor of a language, what a doubt costs, and the loop that trains."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from bert_course.check.exercise import exercise
from bert_course.check.outcome import Probe
from minigrad.nn import Module, Parameter
from minigrad.optim import AdamW, LinearWarmupDecay, clip_grad_norm
from minigrad.tensor import Tensor

# --- floor_of --------------------------------------------------------------------------------------------


def _language_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def language(**weights: int) -> dict[tuple[str, ...], int]:
        return {tuple(text.split("_")): weight for text, weight in weights.items()}

    yield "the language of the page", language(ann_has_a_hat=2, ann_has_a_cat=1, bob_has_a_cat=1)
    yield "one text", language(ann_has_a_hat=3)
    yield "two words, as likely", language(yes=1, no=1)
    yield "two words, one likelier", language(yes=7, no=2)
    yield "the two sides together determine the middle", language(a_x_a=1, a_y_b=1, b_y_a=1, b_x_b=1)
    yield "texts of different lengths", language(ann_sings=3, bob_sings=1, ann_sings_and_bob_sings=2, we=2)
    words = ["a", "b", "c"]
    drawn = {tuple(rng.choice(words, 3).tolist()): int(rng.integers(1, 9)) for _ in range(12)}
    yield "a random language", drawn


@exercise(
    difficulty=2,
    minutes=20,
    cases=_language_cases,
    hints="""
For one text and one position, the rivals are the texts that are as long and agree with it at every other position. The text is its own rival.

The probability of the hidden word is the weight of the text over the sum of the rivals' weights. Its cost is −log of that.

Every position of every text counts, with the weight of its text: divide the weighted sum of the costs by the weighted number of positions.
""",
    mistakes="""
You count each text once. A text with twice the weight occurs twice as often, so it counts twice in the mean.
    cost += weight * -math.log(weight / sum(rivals)) -> cost += -math.log(weight / sum(rivals)) ; places += weight -> places += 1
Among the rivals you count each text once. A text with twice the weight is twice as likely.
    weight / sum(rivals) -> 1 / len(rivals)
That is the entropy of the words at each position, regardless of the others. A rival agrees with the text at every *other* position.
    (other[:place], other[place + 1 :]) == seen -> len(other) == len(text)
Your model looks to the left only. A hidden word has words on both sides.
    (other[:place], other[place + 1 :]) == seen -> len(other) == len(text) and other[:place] == seen[0]
    cost += weight * -math.log(weight / sum(rivals)) -> same = sum(w for other, w in language.items() if other[: place + 1] == text[: place + 1]); cost += weight * -math.log(same / sum(rivals)) ; (other[:place], other[place + 1 :]) == seen -> len(other) > place and other[:place] == seen[0]
    cost += weight * -math.log(weight / sum(rivals)) -> same = sum(w for other, w in language.items() if other[: place + 1] == text[: place + 1] and len(other) == len(text)); cost += weight * -math.log(same / sum(rivals)) ; (other[:place], other[place + 1 :]) == seen -> len(other) == len(text) and other[:place] == seen[0]
Your model looks to the right only. A hidden word has words on both sides.
    (other[:place], other[place + 1 :]) == seen -> len(other) == len(text) and other[place + 1 :] == seen[1]
You allow rivals of another length, but the number of words is visible.
    other[place + 1 :]) == seen -> other[place + 1 : len(text)]) == seen and place < len(other)
    (other[:place], other[place + 1 :]) == seen -> all(a == b for i, (a, b) in enumerate(zip(other, text)) if i != place)
You take the mean over texts. A floor is a mean over words, so a text of five words counts five times.
    cost += weight * -math.log(weight / sum(rivals)) -> cost += weight * -math.log(weight / sum(rivals)) / len(text) ; places += weight -> places += weight / len(text)
That is the cost of a whole text. Divide by the number of hidden words.
    places += weight -> places += weight / len(text)
That is in bits. A nat is log₂ e of them: use the natural logarithm.
    math.log -> math.log2
The sign is wrong: −log p is never negative.
    -math.log -> math.log
That is −log of the mean probability. The loss is the mean of −log p.
    cost += weight * -math.log(weight / sum(rivals)) -> cost += weight * weight / sum(rivals) ; return cost / places -> return -math.log(cost / places)
That is the mean probability of the hidden word. The floor is the mean of −log p.
    cost += weight * -math.log(weight / sum(rivals)) -> cost += weight * weight / sum(rivals)
You do not divide by the weights of all positions.
    return cost / places -> return cost
You compare the visible words, but not where the gap is. A rival has its gap at the same position.
    [w for other, w in language.items() if (other[:place], other[place + 1 :]) == seen] -> [w for other, w in language.items() for i in range(len(other)) if other[:i] + other[i + 1 :] == seen[0] + seen[1]]
""",
)
def floor_of(language):
    cost = places = 0.0
    for text, weight in language.items():  #: every text, with its weight
        for place in range(len(text)):  #: every position in the text
            seen = text[:place], text[place + 1 :]  #: the words before the gap, and those after it
            rivals = [w for other, w in language.items() if (other[:place], other[place + 1 :]) == seen]
            cost += weight * -math.log(weight / sum(rivals))  #: the word's -log p, times its text's weight
            places += weight  #: the weight of this hidden word's text
    return cost / places


# --- cost_of_doubt ---------------------------------------------------------------------------------------


def _doubt_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    yield "the model is right", 0.5, 0.5, 48
    yield "the model trusts B too much", 0.02, 0.12, 48
    yield "the model trusts B too little", 0.97, 0.9, 48
    yield "B cannot be next", 0.0, 0.1, 24
    yield "B is next for certain", 1.0, 0.9, 24
    yield "two nouns", 0.3, 0.6, 2
    yield "random beliefs", *rng.uniform(0.1, 0.9, 2).tolist(), int(rng.integers(3, 40))


@exercise(
    difficulty=3,
    minutes=25,
    cases=_doubt_cases,
    hints="""
Write down the probability of the copied noun: r, because B is next and the noun is copied, plus (1 − r) / n, because it is not next and any noun may occur there.

Each of the n − 1 other nouns has (1 − r) / n. The model's probabilities are the same with s in place of r.

The divergence is p log(p / q) for the copy, plus n − 1 times p log(p / q) for another noun. Leave a term out if its p is 0.
""",
    mistakes="""
The copied noun has a second chance: if B is not next, it may occur there by chance. Add (1 − r) / n.
    r + (1 - r) / n, (1 - r) / n -> r, (1 - r) / n ; s + (1 - s) / n, (1 - s) / n -> s, (1 - s) / n
That is the divergence between the two beliefs about the pair, as if the copied noun could not occur there by chance. If B is not next, the noun is one of all n, not of the n − 1 others.
    r + (1 - r) / n, (1 - r) / n -> r, (1 - r) / (n - 1) ; s + (1 - s) / n, (1 - s) / n -> s, (1 - s) / (n - 1)
You count one other noun. There are n − 1 of them.
    (n - 1) * ->
You count the copied noun among the others too.
    (n - 1) * -> n *
The divergence is the wrong way round. The texts come with the probabilities of r, so those are the weights.
    p * math.log(p / q) if p else 0.0 -> q * math.log(q / p) if p and q else 0.0
That is the whole loss. Subtract the floor, the part that remains if the model is right.
    p * math.log(p / q) if p else 0.0 -> -p * math.log(q) if p else 0.0
That is the floor. The cost of the doubt is what is left of the loss above it.
    p * math.log(p / q) if p else 0.0 -> -p * math.log(p) if p else 0.0
That compares the two probabilities of the copied noun alone. Take the mean of log(p / q) over all n nouns, with the true probabilities p as weights.
    return part(copy, copy_model) + (n - 1) * part(others, others_model) -> return math.log(copy / copy_model)
You leave the other nouns out.
    + (n - 1) * part(others, others_model) ->
That is in bits. Use the natural logarithm.
    math.log -> math.log2
""",
)
def cost_of_doubt(r, s, n):
    def part(p, q):
        return p * math.log(p / q) if p else 0.0  #: one noun's part of the divergence

    copy, others = r + (1 - r) / n, (1 - r) / n  #: the true probabilities of the copy, and of another noun
    copy_model, others_model = s + (1 - s) / n, (1 - s) / n  #: the model's probabilities of copy and another
    return part(copy, copy_model) + (n - 1) * part(others, others_model)


# --- train_in_parts --------------------------------------------------------------------------------------


class _Small(Module):
    """A model of four numbers whose call gives a loss, as BertForPreTraining's does."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self.weight = Parameter(rng.standard_normal((4, 1)))

    def forward(self, x: np.ndarray, y: np.ndarray) -> Any:
        """x (B, 4), y (B, 1) -> an object with `loss`."""
        off = Tensor(x) @ self.weight - Tensor(y)  # (B, 1)
        return SimpleNamespace(loss=(off * off).mean())


class _Schedule(LinearWarmupDecay):
    """It counts its calls, as PyTorch's schedules do; that of the library counts the optimiser's steps."""

    calls = 0

    def step(self) -> None:
        """Set the rate, and count."""
        self.calls += 1
        super().step()


def _too_often(before: tuple[int, int], returned: Any, arguments: Mapping[str, Any]) -> str | None:
    calls, steps = (now - then for now, then in zip(_steps(arguments), before, strict=True))
    if calls <= steps + 1:  # one before the first step does no harm
        return None
    return f"it calls `schedule.step()` {calls} times for {steps} of the optimiser's steps"


def _steps(arguments: Mapping[str, Any]) -> tuple[int, int]:
    return arguments["schedule"].calls, arguments["optimizer"].steps


def _loop_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def case(name: str, batches: int, parts: int, size: float, rate: float = 0.3) -> tuple[Any, ...]:
        model = _Small(rng)
        optimizer = AdamW(model.parameters(), lr=rate)
        schedule = _Schedule(optimizer, 2, 2 + batches // parts)
        data = [
            {"x": size * rng.standard_normal((3, 4)), "y": rng.standard_normal((3, 1))}
            for _ in range(batches)
        ]
        return name, model, data, optimizer, schedule, parts

    yield case("one batch a step", 4, 1, 0.2)
    yield case("two batches a step", 8, 2, 0.2)
    yield case("three batches a step", 9, 3, 0.2)
    yield case("large gradients", 8, 2, 3.0)
    yield case("one step", 2, 2, 1.0)


@exercise(
    difficulty=2,
    minutes=25,
    cases=_loop_cases,
    probes=[Probe(_steps, _too_often)],
    hints="""
Ask of each line how often it must run: for each batch, or for each step?

zero_grad, clip_grad_norm, optimizer.step and schedule.step run once a step. The forward and the backward pass run for each batch, and the gradients add up.

The gradient of the mean is the mean of the gradients: each loss is divided by `parts` before it goes back. The order at the end is: clip, step, then the schedule.
""",
    mistakes="""
The given loop has three faults, and yours still has all of them. Ask of each line how often it must run, and in which order.
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

You clear the gradients for each batch, so only the last batch of a step counts. Clear them once a step.
    loss = model(**batch).loss -> loss = [optimizer.zero_grad(), model(**batch).loss][1]
The gradients are never cleared, so each step adds to the last one's.
    optimizer.zero_grad() -> pass
The gradients of the batches add up, so the sum is `parts` times the mean. Divide each loss by `parts` before it goes back.
    (loss * (1 / parts)).backward() -> loss.backward()
The gradients are not clipped before the step.
    clip_grad_norm(model.parameters(), 1.0) -> pass
    clip_grad_norm(model.parameters(), 1.0) -> optimizer.step() ; optimizer.step() -> clip_grad_norm(model.parameters(), 1.0)
[clipped-each-batch] You clip after each batch, so what has added up so far is cut before the rest is there. Clip once a step, when the gradients of all its batches are added.
    (loss * (1 / parts)).backward() -> [(loss * (1 / parts)).backward(), clip_grad_norm(model.parameters(), 1.0)]
    clip_grad_norm(model.parameters(), 1.0) -> pass ; (loss * (1 / parts)).backward() -> [(loss * (1 / parts)).backward(), clip_grad_norm(model.parameters(), 1.0)]
The schedule does not move: the rate stays as it was in the first step.
    schedule.step() -> pass
The schedule moves for each batch. It counts steps of the optimiser: in PyTorch the rate would fall `parts` times too fast. Call `schedule.step()` once a step.
    schedule.step() -> [schedule.step() for _ in range(parts)]
The optimiser steps for each batch. It should step once, on the mean of their gradients.
    total += loss.item() / parts -> total += [loss.item() / parts, optimizer.step()][0] ; optimizer.step() -> pass
Your losses are those of the last batch of each step. Return the mean over the step's batches.
    total += loss.item() / parts -> total = loss.item()
Your losses are sums over the batches of a step. Return their mean.
    total += loss.item() / parts -> total += loss.item()
You return a loss for each batch. Return one for each step, the mean over its batches.
    total += loss.item() / parts -> losses.append(loss.item()) ; losses.append(total) -> pass
You leave out the last step.
    range(0, len(batches), parts) -> range(0, len(batches) - parts, parts)
""",
)
def train_in_parts(model, batches, optimizer, schedule, parts):
    losses = []
    for start in range(0, len(batches), parts):  #: the index of each step's first batch
        optimizer.zero_grad()
        total = 0.0
        for batch in batches[start : start + parts]:  #: the small batches of this step
            loss = model(**batch).loss  #: the loss of this batch alone
            (loss * (1 / parts)).backward()  #: this batch's part of the step's mean loss
            total += loss.item() / parts  #: this batch's part of the step's mean loss, a number
        clip_grad_norm(model.parameters(), 1.0)  #: the joint norm of all gradients before clipping
        optimizer.step()
        schedule.step()
        losses.append(total)  #: the mean loss of this step's batches
    return losses


# --- words_needed ----------------------------------------------------------------------------------------


def _needed_cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    def words(n: int, noise: float, error: float) -> tuple[np.ndarray, np.ndarray, float]:
        floor = -np.log(rng.uniform(0.05, 1.0, n))
        return np.maximum(floor + noise * rng.standard_normal(n), 0.0), floor, error

    yield "a good model", *words(200, 0.1, 0.005)
    yield "a model that is far off", *words(150, 1.5, 0.02)
    yield "few words", *words(110, 0.3, 0.01)
    floor = np.tile([0.5, 1.5], 100)
    yield "a coarse question", floor + np.repeat([0.3, -0.3], 100), floor, 0.2
    yield "a random model", *words(int(rng.integers(120, 180)), float(rng.uniform(0.1, 0.5)), 0.01)


@exercise(
    difficulty=2,
    minutes=20,
    cases=_needed_cases,
    rtol=0.01,  # a variance over n is as good an estimate as one over n - 1
    hints="""
The standard error of a mean of n numbers is their standard deviation over the root of n. Solve for n.

On the same words, the gap is the mean of the *differences* word by word: take their standard deviation.

On other words, the two means are independent, so their variances add up. Estimate each of them, and round up.
""",
    mistakes="""
On the same words, take the standard deviation of the differences, not of the two losses by themselves.
    (model - floor).var(ddof=1) -> model.var(ddof=1) + floor.var(ddof=1)
On other words the differences do not help: the model's mean and the floor's vary independently, and their variances add up.
    model.var(ddof=1) + floor.var(ddof=1) -> (model - floor).var(ddof=1)
On other words the floor varies too: add its variance.
    model.var(ddof=1) + floor.var(ddof=1) -> model.var(ddof=1)
Standard deviations do not add up, but variances of independent numbers do.
    model.var(ddof=1) + floor.var(ddof=1) -> (model.std(ddof=1) + floor.std(ddof=1)) ** 2
The standard error falls with the root of n, so n is the variance over the *square* of the error.
    / error**2 -> / error
That is the standard deviation over the square of the error. Take the variance.
    (model - floor).var(ddof=1) -> (model - floor).std(ddof=1) ; model.var(ddof=1) + floor.var(ddof=1) -> math.hypot(model.std(ddof=1), floor.std(ddof=1))
Round up: with one word fewer the error is too large.
    math.ceil -> round || math.floor
    [math.ceil(variance / error**2) for variance in variances] -> [variance / error**2 for variance in variances]
The number for the same words comes first.
    return [math.ceil(variance / error**2) for variance in variances] -> return [math.ceil(variance / error**2) for variance in variances][::-1]
""",
)
def words_needed(model, floor, error):
    variances = (model - floor).var(ddof=1), model.var(ddof=1) + floor.var(ddof=1)  #: variances of both gaps
    return [math.ceil(variance / error**2) for variance in variances]
