"""A deck of slides for each chapter, from its built page: its idea, pictures, formulas, functions and predictions.

    python -m book.make.slides [SITE [NAME …]]

Decks are in SITE/slides, beside the pages whose styles they have; nothing in them is written
twice. A prediction is two slides, the question with what there is to choose from, then the answer. The arrow keys go
through a player frame by frame before they go on. The page's text between two slides is what the speaker says: key S
opens it in a window of its own, which follows.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from bs4 import BeautifulSoup, Tag

from bert_course.contents import CHAPTERS
from book.make.serve import no_site

PLAIN = "_build/plain/_build/html"  # where `make book` builds the pages without Python in them
PICTURE = ".course-player, .course-table, svg, img, script"  # a script: something that answers to the reader
NOT_SHOWN = ".headerlink, .copybtn, .cell details > summary, .course-facts, .course-exercises, .course-open"
LAST = "What you can now say"
HERE = Path(__file__).parent


@dataclass
class Slide:
    """What stands on a slide, below the title of its section, and what the speaker says to it."""

    title: str
    shown: str
    kind: str = "picture"
    notes: list[str] = field(default_factory=list)

    def html(self) -> str:
        """The slide as HTML."""
        above = f"<h2>{escape(self.title)}</h2>" if self.title else ""
        notes = f'<aside class="notes" hidden>{"".join(self.notes)}</aside>' if self.notes else ""
        return f'<section class="slide {self.kind}">{above}<div class="shown">{self.shown}</div>{notes}</section>'


def slides(article: Tag) -> list[Slide]:
    """The slides of a page. article: its <article>."""
    for one in article.select(NOT_SHOWN):
        one.decompose()
    title, idea = article.find("h1"), article.select_one(".course-idea")
    found = [Slide("", f"{title or ''}{idea or ''}", "title")]
    if idea:
        idea.extract()
    name = title.get_text().strip() if title else ""
    for section in [article, *article.select("section > section")]:
        found += _of_section(section, found[-1], name)
    return found


def _of_section(section: Tag, before: Slide, name: str) -> Iterator[Slide]:
    """The slides of a section. before: the slide before it, on which one speaks until the section's first."""
    heading = section.find(["h2", "h3"], recursive=False)
    title = heading.get_text().strip() if heading else name
    question: Tag | None = None
    top = section.find("section", recursive=False) or section if section.name == "article" else section
    said: list[str] = []  # what leads to the section's first slide, then to the next ones
    last: Slide | None = None
    for one in top.find_all(True, recursive=False):
        new: list[Slide] = []
        if one.name == "p" and _asks(one):
            question = one
        elif one.name == "ul" and title == LAST:
            new = [Slide(title, str(one), "words")]
        elif "math" in one.get_attribute_list("class"):
            new = [Slide(title, str(one), "formula")]
        elif "cell" in one.get_attribute_list("class"):
            box = one.select_one(".course-prediction")
            output = one.select_one(".cell_output")
            if box and question and output:
                new = [*_asked(title, question, box, output)]
                question = None
            elif output and output.select_one(PICTURE):
                new = [Slide(title, str(output))]
            elif (code := _function(one)) is not None:
                new = [Slide(title, str(code), "code")]
        elif one.name in ("p", "ol", "ul", "blockquote", "dl"):
            (last.notes if last else said).append(str(one))
        if new and last is None:
            new[0].notes = [*said, *new[0].notes]
            said = []
        yield from new
        last = new[-1] if new else last
    if last is None:
        before.notes += said


def _asked(title: str, question: Tag, box: Tag, output: Tag) -> Iterator[Slide]:
    """A prediction: the question with its choices, then the answer."""
    choices = [button.get_text().strip() for button in box.select("button")]
    listed = "".join(f"<li>{escape(choice)}</li>" for choice in choices)
    yield Slide(title, f'{question}<ol type="a">{listed}</ol>', "question")
    right = int(str(box["data-right"]))
    yield Slide(title, f"<p><b>{'abcdefg'[right]}) {escape(choices[right])}</b></p>{output}", "answer")


def _function(cell: Tag) -> Tag | None:
    """The code of a cell that is not folded and defines a function or a class."""
    code = cell.select_one(".cell_input .highlight")
    return (
        code
        if code and not cell.find("details") and re.search(r"^(def|class) ", code.get_text(), re.M)
        else None
    )


def _asks(paragraph: Tag) -> bool:
    return any(one.get_text().startswith("Predict") for one in paragraph.find_all("strong"))


def read(page: str) -> tuple[Tag, Tag]:
    """The <article> of a built page, and its <head> with MathJax's scripts alone. ValueError where one is missing."""
    soup = BeautifulSoup(page, "lxml")
    article, head = soup.select_one("article"), soup.head
    if article is None or head is None:
        raise ValueError("a page of the site has a <head> and an <article>, and this has not")
    for one in head.select("script"):
        if "mathjax" not in str(one).lower():
            one.decompose()
    return article, head


def deck(page: str, name: str) -> str:
    """The deck of a built page. page: its HTML; name: of its file, to which links lead."""
    article, head = read(page)
    for link in article.select("a[href]"):
        href = str(link["href"])
        if not re.match(r"[a-z]+:|\.\./", href):
            link["href"] = f"../book/{name}{href}" if href.startswith("#") else f"../book/{href}"
    shown = "\n".join(one.html() for one in slides(article))
    style, script = ((HERE / f"slides.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    return (
        f'<!DOCTYPE html><html lang="en" data-content_root="../" data-theme="light" data-mode="light">{head}'
        f'<body class="deck"><style>{style}</style><main class="bd-article">{shown}</main>'
        f"<script>{script}</script></body></html>"
    )


def make(site: Path, names: list[str]) -> list[Path]:
    """Write the decks of these chapters and a page that lists them; returns the files.

    Raises ValueError where none of the chapters has a page, or where a page is another site's.
    """
    pages = {chapter: site / f"{chapter.page}.html" for chapter in CHAPTERS if chapter.name in names}
    if not any(source.exists() for source in pages.values()):
        raise ValueError(f"{site} has no page of {', '.join(names)}")
    folder = site / "slides"
    folder.mkdir(exist_ok=True)
    made = []
    for source in pages.values():
        if source.exists():
            made.append(folder / source.name)
            made[-1].write_text(deck(source.read_text(encoding="utf-8"), source.name), encoding="utf-8")
    there = [chapter for chapter in CHAPTERS if (folder / f"{chapter.name}.html").exists()]
    listed = (f'<li><a href="{one.name}.html">{escape(one.heading)}</a></li>' for one in there)
    index = (
        f'<!DOCTYPE html><meta charset="utf-8"><title>Slides</title><h1>Slides</h1><ul>{"".join(listed)}</ul>'
    )
    (folder / "index.html").write_text(index, encoding="utf-8")
    return made


def run(arguments: list[str], work: Callable[[Path, list[str]], str]) -> int:
    """A command with the arguments [SITE [NAME …]]; returns the exit status.

    work: from the site's folder and the names of chapters, all without any, to what to say at the end.
    """
    site = Path(arguments[0] if arguments else PLAIN).resolve()
    known = [chapter.name for chapter in CHAPTERS]
    if unknown := [name for name in arguments[1:] if name not in known]:
        print(f"there is no chapter {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    if why := no_site(site, "make book"):
        print(why, file=sys.stderr)
        return 1
    try:
        print(work(site, arguments[1:] or known))
    except (OSError, ValueError, RuntimeError) as error:  # of a folder that holds another site, or no browser
        print(error, file=sys.stderr)
        return 1
    return 0


def main(arguments: list[str]) -> int:
    """Make the decks; returns the exit status."""
    index = "slides/index.html"
    return run(arguments, lambda site, names: f"{len(make(site, names))} decks: {(site / index).as_uri()}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
