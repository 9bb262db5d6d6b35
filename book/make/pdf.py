"""The course as one PDF: the site's pages in their order, printed by Chromium.

    python -m book.make.pdf [SITE [FILE]]

`make pdf` does so. A page of the site becomes a part of one long page (`gather`), with the site's print style. Links
between pages lead to pages of the PDF, the answers to predictions are at the back. The glossary is the index: a term
leads to where its chapter defines it. Chromium prints twice, as only a printed page has a number that the contents and
the index can name. It takes some 3 GB of memory.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pikepdf
import yaml
from bs4 import BeautifulSoup, Tag

from book.make import chromium
from book.make.serve import no_site
from book.make.slides import PLAIN

LEFT_OUT = ("book/ask", "book/api/index")  # what is of no use on paper
LIVE = ".course-ask, .course-doors, .course-routes button, .headerlink, .course-zip, script"
ANSWERS = "answers"
NAMES = ("id", "for", "aria-labelledby", "aria-describedby")
STYLE = """
.paper { break-before: page; }
.paper-title { height: 240mm; display: flex; flex-direction: column; justify-content: center; text-align: center; }
.paper details { font-size: 0.8em; }
.paper-contents li { display: flex; list-style: none; break-inside: avoid; }
.paper-contents li > a { flex: 1; }
.paper-contents ul { margin: 0; padding: 0; }
.paper-contents h3 { margin: 0.7em 0 0.1em; font-size: 1.1em; }
"""
FOOTER = '<div style="font: 8pt sans-serif; width: 100%; text-align: center"><span class="pageNumber"></span></div>'


@dataclass(frozen=True)
class Part:
    """One page of the site: its name, its title and its HTML; caption: of the part of the course that it begins."""

    name: str
    title: str
    html: str
    answers: tuple[str, ...] = ()
    caption: str = ""


# --- One long page ---------------------------------------------------------------------------------------


def listed(toc: Mapping[str, Any]) -> dict[str, str]:
    """The pages of a table of contents in their order, each with the caption that comes before it, or ""."""
    found = {toc["root"]: ""}
    for part in toc["parts"]:
        pages = [chapter["file"] for chapter in part["chapters"] if chapter["file"] not in LEFT_OUT]
        found |= {page: "" if i else part["caption"] for i, page in enumerate(pages)}
    return found


def read_part(page: Path, names: Iterable[str], caption: str = "") -> Part:
    """A page of the site as a part: its ids begin with its name, its links lead to parts.

    names: of all parts. A link to anything else that is no address of the web is plain text.
    """
    name, names = page.stem, set(names)
    article = BeautifulSoup(page.read_text(encoding="utf-8"), "lxml").select_one("article")
    if article is None:
        raise ValueError(f"{page} has no <article>: is it a page of the site?")
    for one in article.select(LIVE):
        one.decompose()
    answers = tuple(_choices(box, i) for i, box in enumerate(article.select(".course-prediction"), 1))
    for attribute in NAMES:
        for one in article.select(f"[{attribute}]"):
            one[attribute] = " ".join(f"{name}--{word}" for word in str(one[attribute]).split())
    for link in article.select("a[href]"):
        target = _target(str(link["href"]), name, names)
        if target is None:
            del link["href"]
        else:
            link["href"] = target
    text = re.sub(r'(xlink:href="|url\()#', rf"\1#{name}--", str(article))
    heading = article.find("h1")
    return Part(name, heading.get_text().strip() if heading else name, text, answers, caption)


def _choices(box: Tag, number: int) -> str:
    """Let a prediction's answers to choose from stand as a list; returns the right one, with its letter."""
    words = [button.get_text().strip() for button in box.find_all("button")]
    lettered = [f"{letter}) {word}" for letter, word in zip("abcdefg", words, strict=False)]
    right = lettered[int(str(box["data-right"]))]
    box.replace_with(BeautifulSoup(f"<p><b>{number}</b> {' &nbsp; '.join(lettered)}</p>", "html.parser"))
    return f"{number}: {right}"


def _target(href: str, name: str, names: set[str]) -> str | None:
    if re.match(r"(https?|mailto):", href):
        return href
    found = re.fullmatch(r"(?:(?:\.\./)*(?:book/)?(\w+)\.html)?(?:#(.*))?", href)
    if not found or (found[1] or name) not in names:
        return None
    return f"#{found[1] or name}--{found[2] or 'top'}"


def indexed(parts: Sequence[Part]) -> list[Part]:
    """The parts, with the glossary's links leading to where a chapter makes the term bold and defines it."""
    pages = {part.name: BeautifulSoup(part.html, "lxml") for part in parts}
    for entry in pages["glossary"].select("dt") if "glossary" in pages else ():
        told = entry.find_next_sibling("dd")
        links = told.select('a[href$="--top"]') if told else []
        name = str(links[-1]["href"])[1:].removesuffix("--top") if links else ""
        words = _words(entry)
        places = pages[name].select("strong") if name in pages else []
        if place := next((one for one in places if _words(one) == words), None):
            place["id"] = place.get("id") or f"{name}--{entry['id']}"
            links[-1]["href"] = f"#{place['id']}"
    return [replace(part, html=str(pages[part.name].select_one("article"))) for part in parts]


def _words(term: Tag) -> str:
    return " ".join(term.get_text().split()).casefold()


def with_numbers(text: str, numbers: Mapping[str, int]) -> str:
    """The glossary with the page behind each link to a chapter. numbers: by the id that a link leads to."""
    pattern = re.compile(r'(<a [^>]*href="#([^"]+)"[^>]*>(?:<span[^>]*>)?Chapter[^<]*(?:</span>)?</a>)')
    return pattern.sub(
        lambda link: f"{link[1]}, page {numbers[link[2]]}" if link[2] in numbers else link[1], text
    )


def gather(parts: Sequence[Part], head: str, title: str, numbers: Mapping[str, int]) -> str:
    """One long page. head: the <head> of a page of the site. numbers: by an id that a link leads to, its page."""
    chapters = "".join(
        (f"<h3>{part.caption}</h3>" if part.caption else "")
        + f'<li><a href="#{part.name}--top">{part.title}</a><span>{numbers.get(f"{part.name}--top", "")}</span></li>'
        for part in [*parts[1:], Part(ANSWERS, "Answers to the predictions", "")]
    )
    bodies = [
        f'<div class="paper" id="{part.name}--top">'
        f"{with_numbers(part.html, numbers) if part.name == 'glossary' else part.html}</div>"
        for part in parts
    ]
    answers = "".join(
        f'<h3><a href="#{part.name}--top">{part.title}</a></h3><p>{"<br>".join(part.answers)}</p>'
        for part in parts
        if part.answers
    )
    return (
        f'<!DOCTYPE html><html lang="en" data-content_root="../" data-theme="light" data-mode="light">{head}<body>'
        '<main class="bd-main"><div class="bd-content"><div class="bd-article-container"><div class="bd-article">'
        f'<div class="paper-title">{title}</div>'
        f'<nav class="paper paper-contents"><h1>Contents</h1><ul>{chapters}</ul></nav>'
        + "\n".join(bodies)
        + f'<div class="paper" id="{ANSWERS}--top"><h1>Answers to the predictions</h1>{answers}</div>'
        "</div></div></div></main></body></html>"
    )


# --- On paper --------------------------------------------------------------------------------------------


def printed(browser: Any, page: Path, file: Path) -> None:
    """Print a page of the site to a PDF, with a bookmark for each heading."""
    sheet = browser.new_page()
    sheet.set_default_timeout(0)
    sheet.goto(page.as_uri())
    sheet.add_style_tag(content=STYLE)
    sheet.evaluate("""async () => {
        await window.MathJax?.startup.promise;
        document.querySelectorAll("details").forEach((one) => { one.open = true; });
        await document.fonts.ready;
    }""")
    margin = dict.fromkeys(("top", "bottom", "left", "right"), "18mm")
    sheet.pdf(
        path=file, format="A4", margin=margin, outline=True, tagged=True, print_background=True,
        display_header_footer=True, header_template="<span></span>", footer_template=FOOTER,
    )  # fmt: skip
    sheet.close()


def page_numbers(file: Path) -> dict[str, int]:
    """Of each id that a link of a PDF leads to, the number of its page, from 1."""
    with pikepdf.open(file) as pdf:
        at = {page.objgen: number for number, page in enumerate(pdf.pages, 1)}
        places: Any = pdf.Root.get("/Dests", {})
        return {unquote(name[1:]): at[place[0].objgen] for name, place in places.items()}


def make(site: Path, toc: Mapping[str, Any], file: Path, title: str, browser: Any) -> None:
    """Print all pages of a built site as one PDF."""
    pages = listed(toc)
    names = [Path(page).stem for page in pages]
    parts = indexed([read_part(site / f"{page}.html", names, caption) for page, caption in pages.items()])
    texts = [(site / f"{page}.html").read_text(encoding="utf-8") for page in pages]
    # Not all have formulas
    head = str(BeautifulSoup(max(texts, key=lambda text: "mathjax/" in text), "lxml").head)
    paper = site / Path(toc["root"]).parent / "paper.html"
    try:
        numbers: dict[str, int] = {}
        for _ in range(2):
            paper.write_text(gather(parts, head, title, numbers), encoding="utf-8")
            printed(browser, paper, file)
            numbers = page_numbers(file)
    finally:
        paper.unlink(missing_ok=True)
    with pikepdf.open(file, allow_overwriting_input=True) as pdf:
        with pdf.open_metadata() as metadata:
            metadata["dc:title"] = "BERT from nothing"
        pdf.save(file, object_stream_mode=pikepdf.ObjectStreamMode.generate)


def _title() -> str:
    cited = yaml.safe_load(Path("CITATION.cff").read_text(encoding="utf-8"))
    return (
        f"<p style='font-size: 3em; font-weight: 700'>BERT from nothing</p><p>{cited['authors'][0]['name']}</p>"
        f"<p>version {cited['version']}</p><p>text and figures CC BY 4.0, code MIT</p>"
    )


def main(arguments: list[str]) -> int:
    """Make the PDF; returns the exit status."""
    site = Path(arguments[0] if arguments else PLAIN).resolve()
    file = Path(arguments[1] if len(arguments) > 1 else "_build/bert-from-nothing.pdf").resolve()
    if why := no_site(site, "make book") or chromium.missing():
        print(why, file=sys.stderr)
        return 1
    try:
        toc = yaml.safe_load(Path("_toc.yml").read_text(encoding="utf-8"))
        with chromium.opened() as browser:
            make(site, toc, file, _title(), browser)
    except (OSError, ValueError) as error:  # of a folder that holds another site
        print(error, file=sys.stderr)
        return 1
    print(f"the course on paper: {file.as_uri()} ({file.stat().st_size / 1e6:.1f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
