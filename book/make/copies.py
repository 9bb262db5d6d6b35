"""What is different in a learner's copy of a chapter: the same that the site does, with what Jupyter has for it.

- Under the title stand the page's idea, its minutes, what to know first and its exercises.
- Cells with assertions on what the text says (tagged `claims`) are not there. What a cell below needs of one stands in
  that cell, without the assertions.
- The code of cells tagged `setup` or `hide-input` is folded.
- A question ("Predict: …") has its answers to choose from, of which each unfolds to a verdict: `<details>` work in all
  that shows notebooks, with no package and no trust. The output is folded in the same way, and so is what follows, up
  to the next heading, question or text tagged `open`: one click shows it.
- A figure has a second form for a notebook that is not trusted. There Jupyter takes SVG, styles and scripts out of an
  output, and would leave the words of a drawing in a row: this form has a picture of each drawing.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

from nbformat.v4 import new_output

from bert_course.contents import NUMBERS, PLACES
from book.make import reading_time
from book.make.site import NAMES, NEEDS

ANSWER = "The answer, once you have made your guess"
PREDICT = "**Predict"  # a question begins so
NO_FIGURES = ("course-table", "course-beside")  # rows of words stay rows of words
_NOT_SHOWN = re.compile(r"<(script|style|button)\b.*?</\1>|<(div|label)\b[^>]* hidden>.*?</\2>", re.DOTALL)
_STYLES = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_SVG = re.compile(r"<svg\b[^>]*>|</svg>")
_OF_THE_PAGE = ("xmlns", "xmlns:xlink", "class", "style", "width", "height", "role", "aria-label")


def for_learner(notebook: Any, exercises: str = "") -> None:
    """Turn a chapter into the copy that a learner gets. exercises: a link to them, for the line under the title."""
    above = under_title(notebook, exercises)
    claims = {cell.id: cell for cell in notebook.cells if "claims" in _tags(cell)}
    notebook.cells = [cell for cell in notebook.cells if cell.id not in claims]
    waits = False
    text: Any = None  # the last one
    for cell in notebook.cells:
        tags = _tags(cell)
        if cell.cell_type == "markdown":
            text = cell
            if waits and "open" not in tags:
                cell.source, waits = _folded(cell.source)
            else:
                waits = False
            continue
        if cell.cell_type != "code":
            continue
        cell.source = "\n\n".join([*_needed(cell, claims), cell.source])
        if {"setup", "hide-input"} & tags:
            cell.metadata.setdefault("jupyter", {})["source_hidden"] = True
        waits |= "predict" in tags
        if text is not None and (asked := cell.metadata.get("predict")):
            text.source += "\n\n" + to_choose(**asked)
        for output in cell.outputs:
            if "text/html" in (data := output.get("data", {})):
                data["text/html"] = with_still(data["text/html"], data.get("text/plain", ""))
        if waits and cell.outputs:
            shown = "".join(map(_as_html, cell.outputs))
            answer = f"<details><summary>{ANSWER}</summary>\n{shown}</details>"
            cell.outputs = [new_output("display_data", {"text/html": answer, "text/plain": ANSWER})]
    first = next(
        (cell for cell in notebook.cells if cell.cell_type == "markdown" and cell.source.startswith("# ")),
        None,
    )
    if first is not None:
        title, _, rest = first.source.partition("\n")
        first.source = f"{title}\n\n{above}\n{rest}"


def under_title(notebook: Any, exercises: str) -> str:
    """The page's idea and a quiet line: minutes, chapters to know first, exercises."""
    course = notebook.metadata.get("course", {})
    needs = sorted(course.get("needs", []), key=PLACES.__getitem__)
    links = ", ".join(f"[{NUMBERS[name]}]({name}.ipynb)" for name in needs)
    items = [
        f"{reading_time.minutes(notebook)} min",
        links and f"needs chapter{'s' * (len(needs) > 1)} {links}",
        exercises,
    ]
    idea = f"**{course['idea']}**\n\n" if "idea" in course else ""
    return f"{idea}{' · '.join(filter(None, items))}"


def to_choose(choices: list[str], right: int) -> str:
    """A question's answers to choose from; each unfolds to whether it is the right one, which counts from 0."""
    verdicts = ["That is not it."] * len(choices)
    verdicts[right] = "Yes, that is it."
    return "\n\n".join(
        f"<details>\n<summary>{letter}) {html.escape(choice, quote=False)}</summary>\n\n{verdict}\n\n</details>"
        for letter, choice, verdict in zip("abcdefg", choices, verdicts, strict=False)
    )


def _as_html(output: Any) -> str:
    """An output as HTML: its own, or its text."""
    data = output.get("data", {})
    text = (
        data.get("text/html") or data.get("text/markdown") or data.get("text/plain") or output.get("text", "")
    )
    return text if "text/html" in data else f"<pre>{html.escape(text, quote=False)}</pre>"


def _tags(cell: Any) -> set[str]:
    return set(cell.metadata.get("tags", []))


def _needed(cell: Any, claims: dict[str, Any]) -> Iterator[str]:
    """The code, without assertions, of the cells of claims that a cell needs; takes these out of `claims`."""
    for name in cell.metadata.get("course", {}).get(NEEDS, "").split():
        if one := claims.pop(name.removesuffix(NAMES), None):
            yield from _needed(one, claims)
            lines = one.source.split("\n")
            for statement in reversed(ast.parse(one.source).body):
                if isinstance(statement, ast.Assert):
                    del lines[statement.lineno - 1 : statement.end_lineno]
            yield "\n".join(lines).strip()


# --- Answers ---------------------------------------------------------------------------------------------


def _folded(text: str) -> tuple[str, bool]:
    """Markdown below a question's output with the answer folded, and whether what follows belongs to it too."""
    found = _blocks(text)
    end = next((i for i, one in enumerate(found) if one.startswith("#") or PREDICT in one), len(found))
    answer = [f"<details>\n<summary>{ANSWER}</summary>", *found[:end], "</details>"] if end else []
    return "\n\n".join([*answer, *found[end:]]), end == len(found)


def _blocks(text: str) -> list[str]:
    """Paragraphs, where a `<details>` with all that is in it is one."""
    blocks: list[str] = []
    depth = 0
    for piece in _paragraphs(text):
        if depth:
            blocks[-1] += f"\n\n{piece}"
        else:
            blocks.append(piece)
        depth += len(re.findall("<details", piece)) - len(re.findall("</details>", piece))
    return blocks


def _paragraphs(text: str) -> list[str]:
    """Markdown in pieces between empty lines; a fenced block is one piece."""
    pieces: list[str] = []
    fenced = False
    for piece in re.split(r"\n{2,}", text.strip("\n")):
        if fenced:
            pieces[-1] += f"\n\n{piece}"
        else:
            pieces.append(piece)
        fenced ^= len(re.findall(r"^(?:```|:::)", piece, re.MULTILINE)) % 2 == 1
    return pieces


# --- Figures ---------------------------------------------------------------------------------------------


def with_still(shown: str, plain: str) -> str:
    """A figure's HTML with a second form of it, for where styles and scripts are taken out; a table as it is.

    plain: the figure in words, which stand there where it has no drawing. Where styles hold, the output is as it was.
    """
    around = re.match(r'\s*<div class="(course-[^"]*)"', shown)
    if not around or around[1] in NO_FIGURES:
        return shown
    still = _NOT_SHOWN.sub("", shown)
    style = "".join(_STYLES.findall(shown))
    labels = re.findall(r'<div class="stage[^>]*aria-label="([^"]*)"', still) or [""]
    places = _drawings(still)
    for start, end in reversed(places):
        classes = _Open.around(still[:start])
        still = still[:start] + _image(still[start:end], labels[0], classes, style) + still[end:]
    if not places:
        still = f"<pre>{html.escape(plain, quote=False)}</pre>"
    name = f"course-{hashlib.sha256(shown.encode()).hexdigest()[:12]}"
    rule = f".{name}-still{{display:none}}.{name}-live{{display:block!important}}"
    return (
        f'<div class="{name}-still">{still}</div><div class="{name}-live" style="display: none">{shown}</div>'
        f"<style>{rule}</style>"
    )


def _drawings(shown: str) -> list[tuple[int, int]]:
    """Where drawings begin and end; one inside of another belongs to it."""
    found, depth, start = [], 0, 0
    for tag in _SVG.finditer(shown):
        if not depth:
            start = tag.start()
        depth += -1 if tag.group() == "</svg>" else 1
        if not depth:
            found.append((start, tag.end()))
    return found


class _Open(HTMLParser):
    """The classes of the elements that are open at the end of a piece of HTML, from the outermost on."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("input", "img", "br", "hr"):
            self.stack.append((tag, dict(attrs).get("class") or ""))

    def handle_endtag(self, tag: str) -> None:
        self.stack.pop()

    @classmethod
    def around(cls, shown: str) -> list[str]:
        """The classes around what follows this HTML."""
        found = cls()
        found.feed(re.sub("<svg.*?</svg>", "", shown, flags=re.DOTALL))
        return [classes for _, classes in found.stack]


def _image(svg: str, label: str, around: list[str], style: str) -> str:
    """A drawing as a picture on white, in the styles that it has in its output. around: the classes around it."""
    head, _, inner = svg.partition(">")
    own = dict(re.findall(r'([\w:-]+)="([^"]*)"', head))
    label = own.get("aria-label", label)
    _, _, wide, high = (float(one) for one in own["viewBox"].split())
    kept = "".join(f' {name}="{own[name]}"' for name in own if name not in _OF_THE_PAGE)
    groups = "".join(f'<g class="{classes}">' for classes in around)
    whole = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{wide:g}" height="{high:g}" style="background: white">'
        f"<style>{html.escape(style, quote=False)}</style>{groups}<svg{kept}>{inner}{'</g>' * len(around)}</svg>"
    )
    packed = base64.b64encode(whole.encode()).decode()
    return f'<img alt="{label}" width="{min(1.2 * wide, 700):.0f}" src="data:image/svg+xml;base64,{packed}">'
