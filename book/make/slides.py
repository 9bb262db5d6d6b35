"""A deck of slides for each chapter, from its built page: its idea, pictures, players and predictions.

    python -m book.make.slides [SITE [NAME …]]

Decks are in SITE/slides, beside the pages whose styles they have; nothing in them is written
twice. A prediction is two slides, the question with what there is to choose from, then the answer.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

from bs4 import BeautifulSoup, Tag

from bert_course.contents import CHAPTERS
from book.make.serve import no_site

PLAIN = "_build/plain/_build/html"  # where `make book` builds the pages without Python in them
PICTURE = ".course-player, svg, img, script"  # a script: something that answers to the reader
NOT_SHOWN = ".headerlink, .course-embed, .copybtn, details > summary"
LAST = "What you can now say"
STYLE = """
html { scroll-snap-type: y mandatory; scroll-padding: 0; font-size: 145%; }
.slide { box-sizing: border-box; min-height: 100vh; padding: 4vh 6vw; scroll-snap-align: start; scroll-margin: 0; }
.slide { display: flex; flex-direction: column; }
.slide > :last-child { margin-bottom: auto; }
.slide > h2 { margin: 0 0 3vh; }
.slide .course-idea { font-size: 1.4em; max-width: 34em; }
.slide h1 { margin-top: auto; }
.slide pre { font-size: 0.85em; }
.slide li { margin: 0.4em 0; }
.slide .question, .slide .question p { font-size: 1.1em; max-width: 34em; }
"""
KEYS = """
const slides = [...document.querySelectorAll(".slide")];
addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, button, [tabindex]")) return; // a player has the keys
  const by = { ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const here = slides.findIndex((one) => one.getBoundingClientRect().bottom > innerHeight / 2);
  slides[Math.min(Math.max(here + by, 0), slides.length - 1)].scrollIntoView({ behavior: "instant" });
});
"""


def slides(article: Tag) -> Iterator[str]:
    """The slides of a page as HTML. article: its <article>."""
    for one in article.select(NOT_SHOWN):
        one.decompose()
    title, idea = article.find("h1"), article.select_one(".course-idea")
    yield f"{title or ''}{idea or ''}"
    for section in [article, *article.select("section > section")]:
        yield from _of_section(section)


def _of_section(section: Tag) -> Iterator[str]:
    heading = section.find(["h2", "h3"], recursive=False)
    words = heading.get_text().strip() if heading else ""
    above = f"<h2>{escape(words)}</h2>" if words else ""
    question: Tag | None = None
    top = section.find("section", recursive=False) or section if section.name == "article" else section
    for one in top.find_all(["p", "div", "ul"], recursive=False):
        if one.name == "p" and _asks(one):
            question = one
        elif one.name == "ul" and words == LAST:
            yield f"{above}{one}"
        elif output := one.select_one(".cell_output"):
            box = one.select_one(".course-prediction")
            if box and question:
                choices = [button.get_text().strip() for button in box.select("button")]
                listed = "".join(f"<li>{escape(choice)}</li>" for choice in choices)
                yield f'{above}<div class="question">{question}<ol type="a">{listed}</ol></div>'
                right = int(str(box["data-right"]))
                yield f"{above}<p><b>{'abcdefg'[right]}) {escape(choices[right])}</b></p>{output}"
                question = None
            elif output.select_one(PICTURE):
                yield f"{above}{output}"


def _asks(paragraph: Tag) -> bool:
    return any(one.get_text().startswith("Predict") for one in paragraph.find_all("strong"))


def deck(page: str, name: str) -> str:
    """The deck of a built page. page: its HTML; name: of its file, to which links lead."""
    soup = BeautifulSoup(page, "lxml")
    article, head = soup.select_one("article"), soup.head
    if article is None or head is None:
        raise ValueError("a page of the site has a <head> and an <article>, and this has not")
    for link in article.select("a[href]"):
        href = str(link["href"])
        if not re.match(r"[a-z]+:|\.\./", href):
            link["href"] = f"../book/{name}{href}" if href.startswith("#") else f"../book/{href}"
    for one in head.select("script"):
        if "mathjax" not in str(one).lower():
            one.decompose()
    shown = "\n".join(f'<section class="slide">{one}</section>' for one in slides(article))
    return (
        f'<!DOCTYPE html><html lang="en" data-content_root="../" data-theme="light" data-mode="light">{head}'
        f'<body><style>{STYLE}</style><main class="bd-article">{shown}</main><script>{KEYS}</script></body></html>'
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


def main(arguments: list[str]) -> int:
    """Make the decks; returns the exit status."""
    site = Path(arguments[0] if arguments else PLAIN)
    known = [chapter.name for chapter in CHAPTERS]
    if unknown := [name for name in arguments[1:] if name not in known]:
        print(f"there is no chapter {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    if why := no_site(site, "make book"):
        print(why, file=sys.stderr)
        return 1
    try:
        made = make(site, arguments[1:] or known)
    except (OSError, ValueError) as error:  # of a folder that holds another site
        print(error, file=sys.stderr)
        return 1
    print(f"{len(made)} decks: {(site / 'slides' / 'index.html').resolve().as_uri()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
