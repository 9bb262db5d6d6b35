"""What the page for instructors says in figures: plans for a number of evenings, and how long a class takes to grade.

    python -m book.make.instructors                                    the page, made again
    python -m book.make.instructors --start 2027-01-11 --evenings 5    a plan with your dates

`make map` does the first. Minutes are those that chapters and exercises say of themselves.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from bert_course import check  # noqa: F401  (brings every exercise)
from bert_course.check.exercise import EXERCISES
from bert_course.contents import NUMBERS, PLACES
from book.make import reading_time
from book.make.routes import put

LONGEST = 180  # minutes of an evening
PAGE = Path("book") / "instructors.md"
RECORD = Path("book") / "records" / "grade_class.json"


class Evening(NamedTuple):
    """What one evening is for. chapters: their names. exercises: names of their checks."""

    chapters: tuple[str, ...]
    exercises: tuple[str, ...]


PLANS: dict[int, tuple[Evening, ...]] = {
    2: (
        Evening(("start", "arrays"), ("heads_of_batch", "unbroadcast", "window_rule")),
        Evening(("reverse_mode", "one_head"), ("differentiate", "attend", "look_left")),
    ),
    5: (
        Evening(("start", "wordpiece"), ("split_word", "two_rules")),
        Evening(("embeddings", "one_head"), ()),
        Evening(("many_heads", "masking"), ("attend", "multi_head")),
        Evening(("add_norm", "encoder"), ("add_norm", "pool", "parameter_count")),
        Evening(("mlm", "pretraining"), ("never_chosen", "floor_of")),
    ),
    10: (
        Evening(("start", "arrays"), ("heads_of_batch", "unbroadcast", "window_rule")),
        Evening(("reverse_mode",), ("differentiate", "backward", "variance_backward")),
        Evening(("modules", "optimisers"), ("error_rate",)),
        Evening(("wordpiece",), ("split_word", "two_rules", "likelihood_gain")),
        Evening(("embeddings",), ("embed", "pack", "look_up")),
        Evening(("one_head",), ("attend", "softmax", "look_left")),
        Evening(("many_heads", "masking"), ("multi_head", "padding_mask")),
        Evening(("feed_forward", "add_norm"), ("feed_forward", "add_norm", "overwrite")),
        Evening(("encoder", "mlm"), ("bert",)),
        Evening(("nsp", "pretraining"), ("make_pair", "floor_of", "train_step")),
    ),
}


def plan(evenings: int, root: Path, start: date | None = None, every: int = 7) -> str:
    """A table of a plan's evenings; with `start`, the date of each, `every` so many days."""
    lines = [f"| {'date' if start else 'evening'} | chapters | exercises | minutes |", "|---|---|---|---|"]
    for number, evening in enumerate(PLANS[evenings]):
        when = (start + timedelta(days=every * number)).isoformat() if start else number + 1
        chapters = ", ".join(f"{_link(name)} ({_reading(root, name)})" for name in evening.chapters)
        lines.append(f"| {when} | {chapters} | {_exercises(evening)} | {minutes(evening, root)} |")
    known = taken_as_known(evenings, root)
    named = " and ".join(filter(None, [", ".join(known[:-1]), known[-1]])) if known else ""
    return "\n".join(lines) + "\n" + (f"\nTaken as known: {named}.\n" if known else "")


def _exercises(evening: Evening) -> str:
    """An evening's exercises by their chapters: `[chapter 7](one_head.ipynb): attend (10)`."""
    of_chapters: dict[str, list[str]] = {}
    for name in evening.exercises:
        of_chapters.setdefault(EXERCISES[name].chapter, []).append(f"`{name}` ({EXERCISES[name].minutes})")
    return "; ".join(f"{_link(chapter)}: {', '.join(names)}" for chapter, names in of_chapters.items())


def minutes(evening: Evening, root: Path) -> int:
    """Of reading and of exercises, together."""
    reading = sum(_reading(root, name) for name in evening.chapters)
    return reading + sum(EXERCISES[name].minutes for name in evening.exercises)


def taken_as_known(evenings: int, root: Path) -> list[str]:
    """The chapters that those of a plan say to know first, and that no evening before has read."""
    read: set[str] = set()
    missing: set[str] = set()
    for evening in PLANS[evenings]:
        for name in evening.chapters:
            missing |= {*_notebook(root, name)["metadata"]["course"].get("needs", [])} - read
            read.add(name)
    return [_link(name) for name in sorted(missing, key=PLACES.__getitem__)]


def record(root: Path) -> str:
    """The sentence on how long a class took to grade."""
    found = json.loads((root / RECORD).read_text(encoding="utf-8"))
    differ = len(found["differ_from_the_bank"])
    verdicts = "every verdict was as it should be" if not differ else f"{differ} verdicts were wrong"
    return (
        f"On {found['date']}, {found['students']} notebooks with {found['exercises']:,} right and wrong answers took "
        f"{found['seconds']:.0f} seconds on {found['cores']} cores ({found['processor']}), and {verdicts}.\n"
    )


def renewed(text: str, root: Path) -> str:
    """The page's text with all figures made again. Raises ValueError where it has no place for them."""
    for evenings in PLANS:
        text = put(text, f"{evenings} evenings", plan(evenings, root), str(PAGE))
    return put(text, "record", record(root), str(PAGE))


def _link(name: str) -> str:
    return f"[chapter {NUMBERS[name]}]({name}.ipynb)"


def _reading(root: Path, name: str) -> int:
    return reading_time.minutes(_notebook(root, name))


def _notebook(root: Path, name: str) -> Any:
    return reading_time.read(root / "book" / f"{name}.ipynb")


def main(arguments: Any = None) -> int:
    """Write the page again, or print a plan with dates; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path(), help="the course's folder")
    parser.add_argument("--start", type=date.fromisoformat, help="the first evening, as 2027-01-11")
    parser.add_argument("--every", type=int, default=7, help="days between two evenings (default: 7)")
    parser.add_argument("--evenings", type=int, choices=PLANS, help="how many evenings there are")
    options = parser.parse_args(arguments)
    if (options.start is None) != (options.evenings is None):
        print("a plan needs both: --start 2027-01-11 --evenings 5", file=sys.stderr)
        return 2
    if options.start:
        print(plan(options.evenings, options.root, options.start, options.every), end="")
        return 0
    page = options.root / PAGE
    page.write_text(renewed(page.read_text(encoding="utf-8"), options.root), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
