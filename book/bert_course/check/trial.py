"""Trying an answer, or a mistake, on the cases of an exercise, and what is wrong with what it does."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bert_course.check.differences import difference, differing, differing_dtypes, other_dtype
from bert_course.check.mistakes import Mistake, build, parse, source_of
from bert_course.check.outcome import Observed, Outcome, Probe
from bert_course.check.report import Values
from bert_course.check.watch import Watch
from bert_course.common.engine import course_bert
from minigrad import Tensor, backend

Answer = Callable[..., Any]
Cases = Callable[[np.random.Generator], Iterable[tuple[Any, ...]]]


def beyond_the_engine(answer: Answer) -> str | None:
    """That an answer uses what the library's Tensor has and the engine of the learner's own file has not."""
    bert = course_bert()
    known = set(dir(Tensor)) - set(dir(bert.Tensor(0.0))) - set(dir(np.ndarray))
    used: dict[str, None] = {}
    with suppress(OSError, TypeError, SyntaxError):  # without a source nothing is known
        for node in ast.walk(ast.parse(source_of(answer))):
            if isinstance(node, ast.Attribute):
                whose = node.value.id if isinstance(node.value, ast.Name) else ""
                beyond = not hasattr(bert, node.attr) if whose == "ops" else node.attr in known
                if beyond and whose not in ("np", "numpy", "math"):
                    used[f"ops.{node.attr}" if whose == "ops" else f".{node.attr}"] = None
    if not used:
        return None
    return (
        f"A remark. The engine of your own file has no {', '.join(used)}: it has + - * / @ **, [ids], reshape, "
        "transpose(i, j), sum, mean and tanh."
    )


@contextmanager
def on_numpy() -> Iterator[None]:
    """Make new Tensors NumPy's inside: an operation of a learner computes with NumPy, wherever the course runs."""
    before = backend.default().name
    backend.use("numpy")
    try:
        yield
    finally:
        backend.use(before)


@dataclass(kw_only=True)
class Task:
    """What answers are held against.

    answer: a right one, which gives the task its name and its parameters. cases: from a random generator to tuples,
    what is special about an input (shown to the learner) and the arguments; each call of an answer gets arguments
    that were made for it alone. mistakes: the typical wrong answers as text, the more special first (mistakes.py says
    how). into: the parameter that takes the result, if it is not returned. probes: what else is looked at in each
    call. given: the function of the page that an answer has to call, where what goes into it is asked for.
    observed: of what was returned and the arguments, what is compared, where that is not what was returned (tensors.py).
    same_dtype: whether the text asks for the arguments' dtype; if not, another one is a remark, not a mistake.
    rtol, atol: how close the numbers must be in float64; in float32 10⁵ times as far.
    """

    answer: Answer
    cases: Cases
    mistakes: str
    into: str = ""
    probes: Sequence[Probe] = ()
    given: str = ""
    observed: Observed | None = None
    same_dtype: bool = False
    rtol: float = 1e-9
    atol: float = 1e-11

    @property
    def name(self) -> str:
        """Of the function asked for."""
        return self.answer.__name__

    def drawn(self, seed: int) -> Iterator[tuple[Any, ...]]:
        """The cases of a seed, each drawn when it is asked for: most wrong answers are tried on the first alone."""
        cases = iter(self.cases(np.random.default_rng(seed)))
        while True:
            with on_numpy() if self.observed else nullcontext():
                case = next(cases, None)
            if case is None:
                return
            yield case

    @cached_property
    def known_mistakes(self) -> list[Mistake]:
        """The typical wrong answers."""
        return parse(self.mistakes)

    def mistake(self, id: str) -> Mistake:
        """The one with this id, the first if it is that of several. Raises LookupError where there is none."""
        for mistake in self.known_mistakes:
            if id and mistake.id == id:
                return mistake
        known = (
            ", ".join(dict.fromkeys(mistake.id for mistake in self.known_mistakes if mistake.id)) or "none"
        )
        raise LookupError(f"check.{self.name} knows no mistake [{id}]; its ids: {known}")


class Trial:
    """The cases of one seed, and what the right answer, a mistake or a learner's answer does with them."""

    def __init__(self, task: Task, seed: int) -> None:
        self.task, self.seed = task, seed
        self.names = [name for name, *_ in task.drawn(seed)]
        self._parameters = list(inspect.signature(task.answer).parameters)
        self.unchanged = list(self._arguments())  # to see what a call has changed
        self.expected = list(self.outcomes(task.answer))
        self._with_mistakes: dict[Mistake, tuple[list[Outcome], Iterator[Outcome]]] = {}

    def _arguments(self) -> Iterator[dict[str, Any]]:
        """Each case's arguments by name: the same numbers each time, in objects that are new each time."""
        for _, *values in self.task.drawn(self.seed):
            yield dict(zip(self._parameters, values, strict=False))

    def outcomes(
        self,
        answer: Answer,
        watch: Watch | None = None,
        only: Sequence[int] | None = None,
        first: Callable[[dict[str, Any]], object] = lambda arguments: None,
    ) -> Iterator[Outcome]:
        """What an answer does with each case. watch: it is a learner's, which may print, or not come to an end.

        only: the numbers of the cases to try, all by default. first: is called with a case's arguments before the answer.
        """
        task = self.task
        for number, (arguments, unchanged) in enumerate(zip(self._arguments(), self.unchanged, strict=True)):
            if only is not None and number not in only:
                continue
            case = f"case {number + 1} of {len(self.names)}, {self.names[number]}"
            where = on_numpy() if task.observed else nullcontext()
            with where, watch.at(task.name, case) if watch else nullcontext():
                first(arguments)
                outcome = Outcome(
                    answer, arguments, unchanged, task.into, task.probes, task.given, task.observed
                )
            yield outcome

    def with_mistake(self, mistake: Mistake) -> Iterator[Outcome]:
        """What the right answer with this mistake in it does with each case, which is tried once."""
        if mistake not in self._with_mistakes:
            wrong = build(self.task.answer, mistake)
            assert wrong  # a single one goes in, or raises
            self._with_mistakes[mistake] = [], self.outcomes(wrong)
        done, others = self._with_mistakes[mistake]
        for place in range(len(self.names)):
            if place == len(done):
                done.append(next(others))
            yield done[place]

    def same(self, one: Outcome, other: Outcome) -> bool:
        """Whether both gave the same value, or failed alike."""
        return one.same_value(other, self.task.rtol, self.task.atol)

    def like(self, one: Outcome, other: Outcome) -> bool:
        """Whether an answer gives what a mistake gives: other operations in another order may round otherwise.

        Where the task itself is not exact, ten times as far would be another mistake's number.
        """
        slack = 10 if max(self.task.rtol, self.task.atol) < 1e-6 else 1
        return one.same_value(other, slack * self.task.rtol, slack * self.task.atol)

    def complaints(self, outcomes: Sequence[Outcome]) -> list[str | None]:
        """What is wrong on each case, or None."""
        return [self.complaint(outcome, number) for number, outcome in enumerate(outcomes)]

    def accepts(self, answer: Answer, watch: Watch | None = None) -> bool:
        """Whether an answer is right; it is tried no further than to the first case that it is wrong on."""
        return not any(self.complaint(one, number) for number, one in enumerate(self.outcomes(answer, watch)))

    def complaint(self, outcome: Outcome, case: int) -> str | None:
        """What is wrong with what came of a case, or None."""
        right = self.expected[case]
        wrong = outcome.complaint(right.value, self.task.rtol, self.task.atol)
        return wrong or (other_dtype(outcome.value, right.value) if self.task.same_dtype else None)

    def values(self, outcomes: Sequence[Outcome], place: int) -> Values:
        """Of a wrong case: its input, what came, what was expected."""
        outcome, right = outcomes[place], self.expected[place]
        inputs = {name: value for name, value in self.unchanged[place].items() if name != self.task.into}
        close = self.task.rtol, self.task.atol
        none = outcome.error is not None or outcome.value is None or outcome.decided
        if none or difference(outcome.value, right.value, *close) is None:
            return Values(inputs)
        return Values(inputs, differing(outcome.value, right.value, *close))

    def remark(self, outcomes: Sequence[Outcome]) -> str | None:
        """On an answer that is right, what could still be better."""
        found = (
            other_dtype(one.value, right.value) for one, right in zip(outcomes, self.expected, strict=True)
        )
        remark = next((f"A remark. {sentence}" for sentence in found if sentence), None)
        return remark or (beyond_the_engine(outcomes[0].function) if self.task.observed else None)

    def besides(self, outcomes: Sequence[Outcome], told: str, paragraphs: Sequence[str]) -> str | None:
        """What a probe saw, or that the dtype is another one, if neither the complaint nor the paragraphs tell it."""
        found = [
            (name, words)
            for name, outcome in zip(self.names, outcomes, strict=True)
            for words in outcome.seen
            if not any(told in one.seen for one in outcomes)
        ]
        if self.task.same_dtype and "float64" not in " ".join([told, *paragraphs]):
            for name, outcome, right in zip(self.names, outcomes, self.expected, strict=True):
                if dtypes := differing_dtypes(outcome.value, right.value):
                    found.append((name, "it returns {} for {}.".format(*dtypes)))
        return next((f"Besides, on {name}: {words}" for name, words in found), None)
