"""Chapter `pretraining`'s last exercise: one step of the learner's BERT, from the losses to the new parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from bert_course.check.differences import Traced
from bert_course.check.exercise import EXERCISES, exercise
from bert_course.check.outcome import Unfit
from bert_course.common.engine import library_bert, small_batch, spread
from bert_course.exercises.encoder_assembly import right_parts


def step_parts() -> SimpleNamespace:
    """What `train_step` is put together from: chapter `encoder`'s BERT, the loss, and the optimiser's two functions."""
    parts, file = right_parts(), library_bert()
    answers = {name: EXERCISES[name].answer for name in ("cross_entropy", "clip_gradients", "adam_step")}

    def bert(batch: Any, model: Any) -> Any:
        return EXERCISES["bert"].answer(batch, parts, model)

    return SimpleNamespace(bert=bert, mlm_logits=file.mlm_logits, parameters=file.parameters, **answers)


def _cases(rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    file = library_bert()

    def case(B: int, L: int, d: int, lr: float, t: int = 0, std: float = 0.4) -> tuple[Any, ...]:
        model = spread(file.new_model(11, d=d, h=2, N=1, L_max=L), rng, std, file)
        earlier = [0.1 * rng.standard_normal(p.shape) * (t > 0) for p in file.parameters(model)]
        model |= {"t": t, "means": [[m, m**2] for m in earlier]}
        return small_batch(rng, 11, (*[L] * (B - 1), L - 1), L), step_parts(), model, lr

    yield "the first step of two pairs", *case(2, 5, 4, 1e-2)
    yield "step 4 of three pairs, with means of before", *case(3, 6, 4, 3e-2, t=3)
    yield "a gradient that is not clipped", *case(4, 5, 2, 1e-2, t=1, std=0.05)


def stepped(returned: Any, arguments: Mapping[str, Any]) -> Traced:
    """Both losses, and of the model what the step has left: parameters, means, the number of the step, gradients.

    Raises Unfit where no two numbers were returned.
    """
    losses = list(returned) if isinstance(returned, tuple | list) else []
    if len(losses) != 2 or not all(isinstance(loss, float | np.floating) for loss in losses):
        raise Unfit("should return two numbers: float(mlm.data), float(nsp.data)")
    model = arguments["model"]
    left: dict[str, Any] = {}
    for number, (p, (m, v)) in enumerate(zip(library_bert().parameters(model), model["means"], strict=True)):
        left |= {
            f"parameter {number} after the step": p.data.copy(),
            f"m of {number}": m,
            f"v of {number}": v,
        }
    waiting = sum(p.grad is not None for p in library_bert().parameters(model))
    results = {"the loss of the words": losses[0], "the loss of the pairs": losses[1]}
    return Traced.of(
        results, {"the number of the step": model["t"], "gradients that are left": waiting, **left}
    )


@exercise(
    difficulty=3,
    minutes=30,
    cases=_cases,
    into="model",
    observed=stepped,
    rtol=1e-6,
    atol=1e-8,
    hints="""
X, pooled = parts.bert(batch, model). The chosen tokens are those with a label other than -100: take their rows out of X, their logits with parts.mlm_logits, and give them to parts.cross_entropy with their labels.

The pairs' logits are pooled @ W + b, with model["seq_relationship"]. Walk back from the sum of the two losses: one walk gives all gradients.

Then count the step in model["t"], clip all gradients together, and for each parameter let parts.adam_step return the new array and the new means. Matrices lose lr times 0.01 of themselves first; biases and gains, which have one axis, do not. Set p.grad to None for the next step.
""",
    mistakes="""
[gradients-left] You leave the gradients where they are: the next step's walk adds to them. Set p.grad to None.
    p.grad = None -> pass
[means-lost] You drop the new means. The next step begins with the old ones.
    p.data, *means[:] = -> p.data, *_ =
The number of the step does not grow. The bias correction needs it.
    model["t"] += 1 -> pass
You count the step after it was taken. The first step has the number 1.
    model["t"] += 1 -> pass ; return float(mlm.data) -> model["t"] += 1; return float(mlm.data)
The gradients are not clipped to a joint norm of 1.
    gradients, _ = parts.clip_gradients([p.grad for p in weights], 1.0) -> gradients = [p.grad for p in weights]
You clip each gradient by itself. The norm is that of all of them together.
    gradients, _ = parts.clip_gradients([p.grad for p in weights], 1.0) -> gradients = [parts.clip_gradients([p.grad], 1.0)[0][0] for p in weights]
There is no weight decay. Matrices lose lr times 0.01 of themselves at each step.
    theta = (1 - 0.01 * lr) * p.data if p.data.ndim > 1 else p.data -> theta = p.data
Biases and gains do not decay: what has one axis is left alone.
    theta = (1 - 0.01 * lr) * p.data if p.data.ndim > 1 else p.data -> theta = (1 - 0.01 * lr) * p.data
The weight decay lacks the learning rate.
    (1 - 0.01 * lr) -> (1 - 0.01)
You add the decay to the gradient. AdamW shrinks the parameter itself, outside of the means.
    theta = (1 - 0.01 * lr) * p.data if p.data.ndim > 1 else p.data -> theta = p.data; g = g + 0.01 * p.data * (p.data.ndim > 1)
You walk back from the loss of the words alone: nothing is learned about pairs.
    (mlm + nsp).backward() -> (mlm + 0 * nsp).backward()
You walk back from the loss of the pairs alone: nothing is learned about words.
    (mlm + nsp).backward() -> (0 * mlm + nsp).backward()
The loss of a step is the sum of the two, not their mean.
    (mlm + nsp).backward() -> ((mlm + nsp) / 2).backward()
You leave out chosen tokens whose id is 0. An id of 0 is a piece like any other.
    batch["labels"] != -100 -> batch["labels"] > 0
Your losses are in the wrong order: the words' comes first, then the pairs'.
    return float(mlm.data), float(nsp.data) -> return float(nsp.data), float(mlm.data)
""",
)
def train_step(batch, parts, model, lr):
    X, pooled = parts.bert(batch, model)  #: the last hidden state and the pooled vectors
    chosen = batch["labels"] != -100  #: the tokens with a label, (B, L)
    mlm = parts.cross_entropy(parts.mlm_logits(X[chosen], model), batch["labels"][chosen])  #: the words' loss
    W, b = model["seq_relationship"]  #: W and b of the pairs' head
    nsp = parts.cross_entropy(pooled @ W + b, batch["next_sentence_label"])  #: the loss of the pairs
    (mlm + nsp).backward()  #: the loss of the step, the sum of both
    model["t"] += 1
    weights = parts.parameters(model)  #: all parameters of the model
    gradients, _ = parts.clip_gradients([p.grad for p in weights], 1.0)  #: all gradients, clipped together
    for p, g, means in zip(weights, gradients, model["means"], strict=True):  #: p with its gradient and means
        theta = (1 - 0.01 * lr) * p.data if p.data.ndim > 1 else p.data  #: the parameter, decayed if a matrix
        p.data, *means[:] = parts.adam_step(theta, g, *means, model["t"], lr, 0.9, 0.999, 1e-6)  #: p, m and v
        p.grad = None
    return float(mlm.data), float(nsp.data)
