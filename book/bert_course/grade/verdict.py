"""What came of one exercise: yes, no, or why there is no verdict, and the words of the check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from bert_course.check.report import Report

RIGHT, WRONG, NOT_ATTEMPTED, NO_CELL = "yes", "no", "not attempted", "no answer cell"
TIMED_OUT, CRASHED, LOOK = "timed out", "crashed", "look by hand"
UNGRADED = "not graded yet"
STATES = (RIGHT, WRONG, NOT_ATTEMPTED, NO_CELL, TIMED_OUT, CRASHED, LOOK, UNGRADED)

LONGEST = 4000  # characters of one piece of a message, and pieces of one list
MOST = 60


@dataclass
class Verdict:
    """right: one of STATES. The rest are the parts of a check's `Report`, as text. seconds: how long it took."""

    right: str
    title: str = ""
    more: str = ""
    caution: str = ""
    paragraphs: list[str] = field(default_factory=list)
    symptom: str = ""
    values: list[str] = field(default_factory=list)
    besides: list[str] = field(default_factory=list)
    printed: str = ""  # by the answer, cut
    seconds: float = 0.0

    @classmethod
    def of(cls, report: Report, right: str) -> Verdict:
        """What a check says, without hints and the solution."""
        values = report.values.text() if report.values else []
        return cls(
            right,
            report.title,
            report.more,
            report.caution,
            report.paragraphs,
            report.symptom,
            values,
            report.besides,
        )

    @classmethod
    def read(cls, data: Any) -> Verdict:
        """From what `as_dict` gave, after a way on which anything may have happened to it. Raises ValueError."""
        if not isinstance(data, Mapping) or data.get("right") not in STATES:
            raise ValueError("this is no verdict")
        texts = {name: data.get(name, "") for name in ("title", "more", "caution", "symptom", "printed")}
        lists = {name: data.get(name, []) for name in ("values", "paragraphs", "besides")}
        seconds = data.get("seconds", 0.0)
        well = all(isinstance(text, str) for text in texts.values()) and isinstance(seconds, int | float)
        for one in lists.values():
            well = well and isinstance(one, list) and all(isinstance(text, str) for text in one)
        if not well:
            raise ValueError("this is no verdict")
        texts = {name: text[:LONGEST] for name, text in texts.items()}
        lists = {name: [text[:LONGEST] for text in one[:MOST]] for name, one in lists.items()}
        return cls(data["right"], **texts, **lists, seconds=float(seconds))

    def as_dict(self) -> dict[str, Any]:
        """For a file, or another process: no longer than what is read there."""
        return asdict(Verdict.read(asdict(self)))

    @property
    def message(self) -> str:
        """All of it but the values, on one line."""
        parts = [self.caution, self.title, self.more, *self.paragraphs, self.symptom, *self.besides]
        sentences = [
            part if part.endswith((".", "!", "?", ":", ",")) else f"{part}." for part in parts if part
        ]
        return " ".join(" ".join(sentences).split())
