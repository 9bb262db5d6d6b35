"""Wrong answers, written as edits of the right one: a sentence for the learner, and below it what is changed.

    [no-sum] The rows do not sum to 1: divide by each row's sum.
        return e / e.sum(axis=-1, keepdims=True) -> return e
    Each column sums to 1, not each row: over which axis did you normalise?
        e.sum(axis=-1 -> e.sum(axis=-2 || e.sum(axis=0
        x.max(axis=-1 -> x.max(axis=0 ; e.sum(axis=-1 -> e.sum(axis=0
    That is the sigmoid of each score by itself: the entries of a row have to share out 1.
        return 1 / (1 + np.exp(-x))

Each indented line with an arrow is one wrong answer; `;` joins edits that belong together, `||` stands between two
ways to be wrong in one place, and an edit changes every place where its left side stands. Indented lines without an
arrow are a whole body; a blank line ends it, and another body may follow. In all of them `right` is the right answer,
or one with a second mistake in it.

What stands in brackets before a sentence, small letters and hyphens, is an id, which the learner never sees: by it
other files name the mistake (`Task.mistake`), and stay as they are when the sentence gets better. Only what they name needs
one. Brackets without small letters, as of [CLS], are part of the sentence. A chapter goes by its name, "chapter
`one_head`"; the learner reads its number.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bert_course.contents import numbered

Edit = tuple[str, str]
CHANGED = "<a changed"  # how the file names begin of code that was made here

BRACKETS = re.compile(r"\[([^]]*[a-z][^]]*)\]\s*")  # with a small letter in them, which [CLS] has not


@dataclass(frozen=True)
class Mistake:
    """One wrong answer: what to tell whoever gave it, and the edits that make it, or a body in place of the right one.

    id: what other files call the sentence, if any does.
    """

    sentence: str
    edits: tuple[Edit, ...] = ()
    body: str = ""
    id: str = ""


def parse(mistakes: str) -> list[Mistake]:
    """The mistakes in a text as above, in its order.

    Raises ValueError for code that has no sentence above it, a sentence with nothing below it, and an id that is not
    of letters and hyphens or that stands a second time.
    """
    found: list[Mistake] = []
    ids: dict[str, str] = {}  # to their sentences
    name, sentence, used = "", "", True
    # A block is lines of one kind: a sentence's, indented code, or blank ones.
    for kind, block in itertools.groupby(textwrap.dedent(mistakes).splitlines(), _kind):
        lines = list(block)
        if kind == "sentence":
            if not used:
                raise ValueError(f"no wrong answer stands below {sentence!r}")
            name, sentence = _id_and_sentence(" ".join(line.strip() for line in lines))
            if name in ids:
                raise ValueError(f"[{name}] stands twice, before {ids[name]!r} and {sentence!r}")
            if name:
                ids[name] = sentence
            used = False
        elif kind == "code":
            if not sentence:
                raise ValueError(f"no sentence stands above {lines[0].strip()!r}")
            found += [replace(one, id=name) for one in _mistakes(sentence, lines)]
            used = True
    if not used:
        raise ValueError(f"no wrong answer stands below {sentence!r}")
    return found


def _id_and_sentence(text: str) -> tuple[str, str]:
    found = BRACKETS.match(text)
    if not found:
        return "", numbered(text)
    if not re.fullmatch("[a-z]+(-[a-z]+)*", found[1]):
        raise ValueError(
            f"an id is of small letters with hyphens between them, not {found[0].strip()} of {text!r}"
        )
    return found[1], numbered(text[found.end() :])


def _kind(line: str) -> str:
    return "blank" if not line.strip() else "code" if line.startswith(" ") else "sentence"


def _mistakes(sentence: str, lines: list[str]) -> Iterator[Mistake]:
    """One for each way to be wrong in lines with an arrow; the lines without are one body."""
    for line in lines:
        if " ->" in line:
            first, *more = line.split(" || ")
            edits = tuple(map(_edit, first.split(" ; ")))
            yield Mistake(sentence, edits)
            for new in more:
                yield Mistake(sentence, (*edits[:-1], (edits[-1][0], new.strip())))
    if body := [line for line in lines if " ->" not in line]:
        yield Mistake(sentence, body=textwrap.dedent("\n".join(body)))


def _edit(text: str) -> Edit:
    old, _, new = text.partition(" ->")
    return old.strip(), new.strip()


def edited(answer: Callable[..., Any], *mistakes: Mistake) -> str | None:
    """The source of the answer with these mistakes in it; None if they do not go together: one leaves nothing for the
    other to change. For a single mistake that does not apply, ValueError says why."""
    _, head, body = parts_of(answer)
    bodies = [mistake.body for mistake in mistakes if mistake.body]
    if len(bodies) > 1:
        return None
    body = textwrap.indent(bodies[0], "    ") if bodies else body
    edits = [mistake.edits for mistake in mistakes]
    # Those that change the same place, one after the other.
    for turns in ([tuple(itertools.chain(*edits))], edits, edits[::-1]):
        text: str | None = body
        for turn in turns:
            text = text and _replaced(text, turn)
        if text:
            return f"{head}\n{text}"
    if len(mistakes) == 1:
        raise ValueError(f"{answer.__name__}: an edit finds nothing, or two edits overlap: {edits[0]}")
    return None


def build(answer: Callable[..., Any], *mistakes: Mistake) -> Callable[..., Any] | None:
    """The answer with these mistakes in it; None if they do not go together."""
    source, right = edited(answer, *mistakes), answer
    if source is None:
        # A body that calls the right answer goes together with all that can be wrong in that.
        for one, other in (mistakes, mistakes[::-1]):
            if "right(" in one.body and (inner := build(answer, other)):
                source, right = edited(answer, one), inner
                break
        else:
            return None
    assert source
    scope = {**answer.__globals__, "right": right}
    try:
        exec(compiled(source, f"{CHANGED} {answer.__name__}>"), scope)
    except SyntaxError:
        if len(mistakes) == 1:
            raise
        return None
    return scope[parts_of(answer)[0]]


@functools.lru_cache(4096)  # each wrong answer is held against the same ones
def compiled(source: str, file: str) -> Any:
    """The code of a source; `file` begins with CHANGED."""
    return compile(source, file, "exec")


def pairs(
    answer: Callable[..., Any], mistakes: Sequence[Mistake]
) -> Iterator[tuple[Mistake, Mistake, Callable[..., Any]]]:
    """Each two mistakes with different sentences that can be made at once, and the answer with both in it."""
    for one, other in itertools.combinations(mistakes, 2):
        if one.sentence != other.sentence and (both := build(answer, one, other)):
            yield one, other, both


def source_of(function: Callable[..., Any]) -> str:
    """The source of a function from its `def` on."""
    lines = textwrap.dedent(inspect.getsource(inspect.unwrap(function))).split("\n")
    definition = ast.parse("\n".join(lines)).body[0]
    return "\n".join(lines[definition.lineno - 1 :]).rstrip()


@functools.cache  # a diagnosis builds hundreds of pairs, and to find a source takes longer than all else
def parts_of(function: Callable[..., Any]) -> tuple[str, str, str]:
    """The name of a function, its line with `def` (or lines), and its body."""
    source = source_of(function)
    lines = source.split("\n")
    definition = ast.parse(source).body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise TypeError(f"not the source of a function: {source}")
    first = definition.body[0].lineno - 1
    return definition.name, "\n".join(lines[:first]), "\n".join(lines[first:])


def _replaced(text: str, edits: Sequence[Edit]) -> str | None:
    """With each edit wherever its left side stands; None if one stands nowhere, or two overlap."""
    spans = []
    for old, new in edits:
        start = text.find(old)
        if start < 0:
            return None
        while start >= 0:
            spans.append((start, start + len(old), new))
            start = text.find(old, start + len(old))
    spans.sort()
    if any(end > start for (_, end, _), (start, _, _) in itertools.pairwise(spans)):
        return None
    for start, end, new in reversed(spans):
        text = text[:start] + new + text[end:]
    return text
