"""Programs for chapter `reverse_mode`'s first exercise: drawn at random, and shown by their steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class Step:
    """What a program is given to see what it does: it writes each step down as a line."""

    def __init__(self, name: str, lines: list[str]) -> None:
        self.name, self.lines = name, lines

    def _next(self, text: str) -> Step:
        name = f"v{len(self.lines) + 1}"
        self.lines.append(f"{name} = {text}")
        return Step(name, self.lines)

    def __add__(self, other: Step) -> Step:
        return self._next(f"{self.name} + {other.name}")

    def __mul__(self, other: Step) -> Step:
        return self._next(f"{self.name} * {other.name}")

    def tanh(self) -> Step:
        """As a value's."""
        return self._next(f"{self.name}.tanh()")


class Program:
    """A program that a wrong result can show: its repr has the steps, such as "v1 = a * b; v2 = v1 + a"."""

    def __init__(self, run: Callable[..., Any], inputs: str) -> None:
        self.run, self.inputs = run, inputs

    def __call__(self, *given: Any) -> Any:
        return self.run(*given)

    def __repr__(self) -> str:
        lines: list[str] = []
        output = self.run(*(Step(name, lines) for name in self.inputs))
        return "; ".join([*lines, f"return {output.name}"])


def random_program(rng: np.random.Generator, inputs: int, steps: int) -> Callable[..., Any]:
    """A program of sums, products and tanh; each step takes one of the last values and any other."""
    plan = [
        (str(rng.choice(["+", "*", "tanh"])), int(rng.integers(1, 3)), int(rng.integers(0, inputs + step)))
        for step in range(steps)
    ]

    def program(*given):
        values = list(given)
        for operation, back, place in plan:
            one, other = values[-back], values[place]
            values.append(
                one + other if operation == "+" else one * other if operation == "*" else (one * other).tanh()
            )
        return values[-1].tanh() + values[-2]

    return program
