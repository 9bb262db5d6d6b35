"""What tests ask of the banks, and of the mistakes that a check knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bert_course import check
from bert_course.check.exercise import Exercise
from bert_course.check.mistakes import build


def expected(exercise: Exercise, pieces: str | Iterable[str]) -> tuple[str, ...]:
    """The pieces that a bank expects, with the sentence in place of each id, as "[no-scale]".

    Raises LookupError for an id that the exercise does not have.
    """
    pieces = (pieces,) if isinstance(pieces, str) else tuple(pieces)
    return tuple(exercise.mistake(one[1:-1]).sentence if _is_id(one) else one for one in pieces)


def _is_id(piece: str) -> bool:
    return piece.startswith("[") and piece.endswith("]")


def mistaken(name: str, place: int) -> Callable[..., Any]:
    """The wrong answer to an exercise that its mistake at this place makes."""
    exercise = getattr(check, name)
    return build(exercise.answer, exercise.known_mistakes[place])
