"""What was graded as pages: one for the instructor, one for each student; plain HTML that asks nothing of a network.

All that comes from a student, also a name, is text here: whatever it holds, no browser runs it.
"""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from bert_course.check.exercise import EXERCISES
from bert_course.common.palette import COLOURS
from bert_course.contents import NUMBERS, PLACES
from bert_course.grade.submissions import Refused
from bert_course.grade.table import Row
from bert_course.grade.verdict import (
    CRASHED,
    LOOK,
    NO_CELL,
    NOT_ATTEMPTED,
    RIGHT,
    TIMED_OUT,
    UNGRADED,
    WRONG,
    Verdict,
)
from minigrad.files import remove, write_atomic

MARKS = {RIGHT: "✓", WRONG: "✗", NOT_ATTEMPTED: "·", UNGRADED: "·"}  # and ? for the others
BY_HAND = (NO_CELL, TIMED_OUT, CRASHED, LOOK)
NOBODY = {"", "(unknown)"}  # whose a file is where that is not known
UNKNOWN = "Wrong, and none of the mistakes that the check knows"
NO_FUNCTION = "The answer cell fails, or defines no function of this name"


def _style() -> str:
    light, dark = (";".join(f"--{name}:{pair[i]}" for name, pair in COLOURS.items()) for i in (0, 1))
    return f"""<style>
:root {{color-scheme: light; --ground: #ffffff; --raised: #f6f7f9; {light}}}
@media (prefers-color-scheme: dark) {{:root {{color-scheme: dark; --ground: #14181e; --raised: #1c222a; {dark}}}}}
* {{box-sizing: border-box}}
body {{margin: 0 auto; max-width: 60rem; padding: 1.5rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere}}
h1, h2, h3 {{line-height: 1.25}}
h1 {{font-size: 1.6rem; margin: 0 0 0.5rem}}
h2 {{font-size: 1.25rem; margin: 2.2rem 0 0.6rem; border-bottom: 2px solid var(--grid); padding-bottom: 0.3rem}}
h3 {{font-size: 1.05rem; margin: 1.5rem 0 0.4rem}}
p {{margin: 0.4rem 0; max-width: 70ch}}
a {{color: var(--query)}}
:focus-visible {{outline: 3px solid var(--key); outline-offset: 2px}}
.quiet {{color: var(--token); font-size: 0.9rem}}
.wide {{overflow-x: auto}}
table {{border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums}}
th, td {{text-align: left; padding: 0.25rem 0.4rem; border-bottom: 1px solid var(--grid); vertical-align: top;
  font-weight: normal}}
th, td {{overflow-wrap: normal}}
td a {{overflow-wrap: anywhere}}
thead th {{color: var(--token); font-size: 0.9rem}}
th.number, td.number {{text-align: right}}
td.number {{white-space: nowrap}}
.share {{width: 40%}}
.share div {{display: flex; align-items: center; gap: 0.6rem}}
.share .track {{flex: 1; display: block}}
.track span, .count span {{display: block; height: 0.8rem; min-width: 1px}}
.track span {{background: var(--right)}}
.count span {{background: var(--wrong); margin: 0.15rem 0 0.3rem}}
@media (max-width: 36rem) {{body {{padding: 1rem}} .share {{width: auto}} .share .track {{display: none}}}}
.mistakes {{list-style: none; padding: 0; margin: 0}}
.mistakes > li {{margin: 0.7rem 0}}
ul:not(.mistakes) {{padding-left: 1.2rem; margin: 0.4rem 0}}
summary {{cursor: pointer; color: var(--token); font-size: 0.9rem}}
.report {{border-left: 4px solid var(--third); padding: 0.1rem 0 0.1rem 0.9rem; margin: 0.6rem 0 1.4rem}}
.report .behind {{font-size: 1.12em}}
.report.right {{border-color: var(--right)}} .report.right .verdict {{color: var(--right)}}
.report.wrong {{border-color: var(--wrong)}} .report.wrong .verdict {{color: var(--wrong)}}
pre {{overflow-x: auto; background: var(--raised); border: 1px solid var(--grid); padding: 0.5rem 0.7rem;
  margin: 0.5rem 0; font-size: 0.9rem}}
code {{background: var(--raised); padding: 0 0.2em}}
</style>"""


def _page(title: str, parts: Iterable[str]) -> str:
    body = "\n".join(part for part in parts if part)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{_text(title)}</title>
{_style()}
</head>
<body>
{body}
</body>
</html>
"""


def _text(words: str) -> str:
    """Words as HTML; what no page may hold, such as half of a pair of surrogates, is a question mark."""
    return html.escape(words.replace("\0", "").encode("utf-8", "replace").decode("utf-8"))


def _marked_up(words: str) -> str:
    """The same, with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", _text(words))


def _place(student: str) -> tuple[str, str]:
    """Where a name stands in a list: accents do not count, so that Á stands with A."""
    plain = unicodedata.normalize("NFKD", student.casefold())
    return "".join(letter for letter in plain if not unicodedata.combining(letter)), student


def page_name(student: str) -> str:
    """The file of a student's page: the letters of the name, and what makes it the only one."""
    letters = re.sub(r"[^a-z0-9]+", "-", student.casefold()).strip("-")[:40] or "student"
    return f"{letters}-{hashlib.sha256(student.encode('utf-8', 'replace')).hexdigest()[:10]}.html"


def write_pages(folder: Path, rows: Sequence[Row], refused: Sequence[Refused]) -> Path:
    """Write all pages into a folder, and return the instructor's. Pages of an earlier run go. Raises SaveError."""
    students = folder / "students"
    students.mkdir(parents=True, exist_ok=True)
    of_student = defaultdict(list)
    for row in rows:
        of_student[row.student].append(row)
    left = defaultdict(list)
    for one in refused:
        left[one.student].append(one)
    everybody = sorted({*of_student, *left} - NOBODY, key=_place)
    wanted = {page_name(student) for student in everybody}
    for path in students.glob("*.html"):
        if path.name not in wanted:
            remove(path)
    for student in everybody:
        page = student_page(student, of_student[student], left[student])
        write_atomic(students / page_name(student), page.encode())
    index = folder / "index.html"
    write_atomic(index, instructor_page(rows, refused).encode())
    return index


# --- For a student ---------------------------------------------------------------------------------------


def student_page(student: str, rows: Sequence[Row], refused: Sequence[Refused] = ()) -> str:
    """What came of each exercise of one student, in the words of the check, and which files were not graded."""
    right = sum(row.verdict.right == RIGHT for row in rows)
    parts = [
        f"<h1>{_text(student)}</h1>",
        f"<p>{right} of {len(rows)} exercises are right.</p>" if rows else "",
        '<p class="quiet">Each answer was tried on other cases than those of the notebook.</p>'
        if rows
        else "",
        _not_read(refused),
    ]
    for stem in dict.fromkeys(row.stem for row in rows):
        own = [row for row in rows if row.stem == stem]
        parts.append(f"<h2>{_text(_title(own[0].exercise, stem))}</h2>")
        parts.append(f'<p class="quiet">{_text(own[0].notebook)}</p>')
        parts += [f"<h3>{_text(row.exercise)}</h3>\n{_report(row.verdict)}" for row in own]
    return _page(f"Exercises of {student}", parts)


def _title(exercise: str, stem: str) -> str:
    words = stem.replace("_", " ")
    return f"Chapter {NUMBERS[EXERCISES[exercise].chapter]}: {words}"


def _report(found: Verdict) -> str:
    kind = {RIGHT: "right", WRONG: "wrong"}.get(found.right, "note")
    title = found.title or found.right
    parts = [
        f"<p><b>{_marked_up(found.caution)}</b></p>" if found.caution else "",
        f'<p><b class="verdict"><span aria-hidden="true">{MARKS.get(found.right, "?")}</span> {_marked_up(title)}</b> '
        f"{_marked_up(found.more)}</p>",
        *(f'<p class="behind">{_marked_up(text)}</p>' for text in found.paragraphs),
        f"<p>{_marked_up(found.symptom)}</p>" if found.symptom else "",
        f"<pre>{_text(chr(10).join(found.values))}</pre>" if found.values else "",
        *(f"<p>{_marked_up(text)}</p>" for text in found.besides),
    ]
    if found.printed.strip():
        parts.append(
            f"<details><summary>What it printed</summary><pre>{_text(found.printed)}</pre></details>"
        )
    return f'<div class="report {kind}">\n' + "\n".join(part for part in parts if part) + "\n</div>"


# --- For the instructor ----------------------------------------------------------------------------------


def misconceptions(exercise: str, verdict: Verdict) -> list[str]:
    """The sentences of the check that were said of a wrong answer; or that there was none, or nothing to try."""
    told = " ".join(verdict.paragraphs)
    found = [mistake.sentence for mistake in EXERCISES[exercise].known_mistakes if mistake.sentence in told]
    if not found and not verdict.symptom:  # no case was tried
        return [NO_FUNCTION]
    return list(dict.fromkeys(found)) or [UNKNOWN]


def instructor_page(rows: Sequence[Row], refused: Sequence[Refused]) -> str:
    """How much is right, which mistakes were made by how many, and what a person has to look at."""
    students = ({row.student for row in rows} | {one.student for one in refused}) - NOBODY
    counts = Counter(row.verdict.right for row in rows)
    answered = len(rows) - counts[NOT_ATTEMPTED] - counts[NO_CELL]
    ungraded = (
        f"Grading was interrupted: {counts[UNGRADED]} of {many(len(rows), 'exercise')} have no verdict yet."
    )
    parts = [
        "<h1>Exercises of the class</h1>",
        f"<p>{many(len(students), 'student')}, {many(len(rows), 'exercise')}: {answered} answered, "
        f"{counts[RIGHT]} right.</p>",
        f"<p><b>{ungraded}</b></p>" if counts[UNGRADED] else "",
        _by_hand(rows),
        _not_read(refused),
    ]
    for stem in sorted({row.stem for row in rows}, key=PLACES.__getitem__):
        own = [row for row in rows if row.stem == stem]
        parts.append(f"<h2>{_text(_title(own[0].exercise, stem))}</h2>")
        parts.append(_shares(own))
        parts += [
            _mistakes(name, [row for row in own if row.exercise == name])
            for name in EXERCISES
            if any(row.exercise == name for row in own)
        ]
    parts.append(_students(rows, students))
    return _page("Exercises of the class", parts)


def many(count: int, noun: str) -> str:
    """A count with its noun, as "1 student"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _link(student: str) -> str:
    return f'<a href="students/{page_name(student)}">{_text(student)}</a>'


def _shares(rows: Sequence[Row]) -> str:
    """A table: of each exercise, how many were handed in, and the share that is right, with a bar if there is room."""
    lines = []
    for name in [name for name in EXERCISES if any(row.exercise == name for row in rows)]:
        own = [row.verdict.right for row in rows if row.exercise == name]
        counts = Counter(own)
        share = counts[RIGHT] / len(own)
        lines.append(
            f'<tr><th scope="row">{_text(name)}</th><td class="number">{counts[RIGHT]} of {len(own)}</td>'
            f'<td class="share"><div><span class="track"><span style="width: {share:.1%}"></span></span>{share:.0%}'
            "</div></td>"
            f'<td class="number">{counts[NOT_ATTEMPTED] + counts[NO_CELL] or ""}</td></tr>'
        )
    head = (
        '<th scope="col">exercise</th><th scope="col" class="number">right</th><th scope="col">share</th>'
        '<th scope="col" class="number">no answer</th>'
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _mistakes(name: str, rows: Sequence[Row]) -> str:
    """The check's sentences on one exercise, the commonest first, with a bar each and the students to unfold."""
    made: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.verdict.right == WRONG:
            for sentence in misconceptions(name, row.verdict):
                made[sentence].append(row)
    if not made:
        return ""
    items = []
    for sentence, own in sorted(
        made.items(), key=lambda item: (item[0] in (UNKNOWN, NO_FUNCTION), -len(item[1]), item[0])
    ):
        bar = f'<div class="count"><span style="width: {len(own) / len(rows):.1%}"></span></div>'
        items.append(
            f"<li>{_marked_up(sentence)}{bar}<details><summary>{many(len(own), 'student')} of {len(rows)}</summary>"
            f"{_who(own, sentence in (UNKNOWN, NO_FUNCTION))}</details></li>"
        )
    return f'<h3>{_text(name)}</h3>\n<ul class="mistakes">{"".join(items)}</ul>'


def _who(rows: Sequence[Row], symptoms: bool) -> str:
    """The students of these rows; with what was seen of each, where no sentence says it of all."""
    rows = sorted(rows, key=lambda row: _place(row.student))
    if not symptoms:
        return f"<p>{', '.join(_link(row.student) for row in rows)}</p>"
    lines = (
        f"<li>{_link(row.student)}: {_marked_up(row.verdict.symptom or row.verdict.more)}</li>"
        for row in rows
    )
    return f"<ul>{''.join(lines)}</ul>"


def _by_hand(rows: Sequence[Row]) -> str:
    found = [row for row in rows if row.verdict.right in BY_HAND]
    lines = (
        f"<li>{_link(row.student)}, {_text(row.exercise)}, {_text(row.verdict.right)}: "
        f"{_marked_up(row.verdict.message)}</li>"
        for row in found
    )
    return f"<h2>To be looked at by hand</h2>\n<ul>{''.join(lines)}</ul>" if found else ""


def _not_read(refused: Sequence[Refused]) -> str:
    lines = (f"<li>{_text(one.name)}: {_text(one.reason)}</li>" for one in refused)
    return f"<h2>Not graded</h2>\n<ul>{''.join(lines)}</ul>" if refused else ""


def _students(rows: Sequence[Row], students: Iterable[str]) -> str:
    """A table of all students, also of those of whom nothing could be read."""
    lines = []
    for student in sorted(students, key=_place):
        own = [row.verdict.right for row in rows if row.student == student]
        right = f"{own.count(RIGHT)} of {len(own)}" if own else "nothing graded"
        lines.append(f'<tr><td>{_link(student)}</td><td class="number">{right}</td></tr>')
    return (
        f'<h2>Students</h2>\n<div class="wide"><table><tbody>{"".join(lines)}</tbody></table></div>'
        if lines
        else ""
    )
