"""Links from plain text: errata, citations and the glossary's terms, so that notebooks stay clean in Jupyter.

In a page's prose "erratum 39" links to the chapter of errata, "Devlin et al. (2019)" to the bibliography, and a term of
the glossary, where it first occurs, to its entry. A chapter has its link in the page itself, as Jupyter needs it,
"[chapter 8](many_heads.ipynb)"; where the link is missing, that is a warning. In the tables that cells make, which hold
no links, "chapter 8" gets one.
Headings, code, formulas and what is a link already are left alone. A number, or a citation, that leads nowhere is a
warning, and a warning fails the build.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from chapters import chapters_of
from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from bert_course.chapters import errata
from bert_course.contents import CHAPTERS

logger = logging.getLogger(__name__)

CLOSED = (
    nodes.title,
    nodes.rubric,
    nodes.reference,
    nodes.FixedTextElement,
    nodes.literal,
    nodes.math,
    nodes.math_block,
    nodes.raw,
    nodes.comment,
    nodes.term,
    nodes.field_name,
    addnodes.pending_xref,
    addnodes.download_reference,
)

# --- What is looked for ----------------------------------------------------------------------------------

ONE = r"\d+[a-h]?"
MORE = rf"(?:(?:\s*,\s*(?:and\s+)?|\s+(?:and|or|to)\s+|\s*[–-]\s*){ONE}(?![\w.]*\d))*"
REFERENCE = re.compile(
    rf"\b(?:(?:[Cc]hapter|[Ee]rratum)\s+(?P<number>{ONE})"
    rf"|(?:[Cc]hapters|[Ee]rrata)\s+(?P<numbers>{ONE}{MORE}))\b"
)

CELL = re.compile(r"(?P<tag><t[dh]\b[^>]*>)(?P<text>[^<]+)")  # of a table in HTML

NAME = r"[A-ZÀ-ÖØ-ÞŁŚŠŽ][\w’'-]+"
CITATION = re.compile(
    rf"(?P<authors>\b{NAME}(?:(?:,\s+{NAME})*,?\s+(?:&|and)\s+{NAME}|\s+et\s+al\.)?)"
    r",?\s+(?:\((?P<in_brackets>\d{4}[a-z]?)(?=[),;])\)?|(?P<plain>\d{4}[a-z]?)\b(?!\s*(?:[%×]|steps|tokens)))"
    r"(?P<part>,\s+(?:chapters?|sections?|appendix)\s+[\w.]+)?"  # a chapter of that book, not of this one
)
NOT_TERMS = re.compile(r"\bin view\b")  # the words of a term, meant otherwise
# fmt: off
NOT_AUTHORS = {
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December", "In", "Since", "Until", "By", "From", "After", "Before", "Around", "About", "Of", "To", "And",
    "Python", "NumPy", "CUDA",
}
# fmt: on


def surnames(authors: str) -> tuple[list[str], bool]:
    """The names of a citation in the text, and whether it has more ("et al.")."""
    return re.findall(NAME, re.sub(r"\bet\s+al\.", "", authors)), bool(re.search(r"\bet\s+al\.", authors))


@dataclass
class Bibliography:
    """The entries of the page References, found by how a text cites them."""

    # Of each: page, names, year, key, id, title with where it was published.
    entries: list[tuple[str, list[str], str, str, str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, env: Any) -> Bibliography:
        """All entries that a bibliography of this book lists."""
        found = cls()
        for citation in env.get_domain("cite").citations:
            names = [
                " ".join([*person.prelast_names, *person.last_names]).strip("{}")
                for person in citation.entry.persons.get("author", [])
            ]
            year = citation.entry.fields.get("year", "")
            page = citation.bibliography_key.docname
            fields = citation.entry.fields
            where = next(
                (fields[name] for name in ("booktitle", "journal", "publisher") if name in fields), ""
            )
            says = ". ".join(filter(None, [fields.get("title", ""), where])).replace("{", "").replace("}", "")
            found.entries.append((page, names, year, citation.key, citation.citation_id, says))
        return found

    def find(self, authors: str, year: str) -> tuple[str, str, str] | str:
        """Page, id and title of the one entry that is meant, or what is wrong."""
        names, more = surnames(authors)
        number, letter = year[:4], year[4:]
        fitting = [
            (page, anchor, says)
            for page, cited, in_year, key, anchor, says in self.entries
            if in_year == number
            and (not letter or key.endswith(year))
            and (cited[:1] == names if more else cited == names)
            and (not more or len(cited) > 2)
        ]
        if len(fitting) == 1:
            return fitting[0]
        return "the bibliography has no such entry" if not fitting else "it stands for several entries"


def term_forms(entry: str) -> list[str]:
    """How a glossary's entry is written in a sentence.

    "next-sentence prediction (NSP)" has two forms. "value (attention)", which as one word means
    other things too, is found as "attention value" alone.
    """
    found = re.fullmatch(r"(.+?) \((.+)\)", entry)
    if not found:
        return [entry]
    if found[2].isupper():
        return [found[1], found[2]]
    return [f"{found[2]} {found[1]}"]


@dataclass(frozen=True)
class Term:
    """An entry of the glossary: where it is, what it says, how it is found."""

    name: str
    page: str
    anchor: str
    says: str
    pattern: re.Pattern[str]


def glossary(app: Any) -> list[Term]:
    """The glossary's terms, the longest first; empty where the book has no glossary."""
    places = {
        name: place for (kind, name), place in app.env.get_domain("std").objects.items() if kind == "term"
    }
    definitions: dict[str, str] = {}
    for page in {page for page, _ in places.values()}:
        for item in app.env.get_doctree(page).findall(nodes.definition_list_item):
            definition = item.next_node(nodes.definition)
            for term in item.findall(nodes.term):
                definitions[term.astext()] = first_sentence(plain_text(definition))
    terms = [
        Term(name, page, anchor, definitions.get(name, ""), pattern_of(name))
        for name, (page, anchor) in places.items()
    ]
    return sorted(terms, key=lambda term: -len(term.name))


def pattern_of(entry: str) -> re.Pattern[str]:
    """Any form of a glossary's entry, also in the plural; capitals count in abbreviations alone."""
    forms = []
    for form in term_forms(entry):
        words = re.escape(form).replace(r"\ ", r"\s+")
        forms.append(words if form.isupper() else f"(?i:{words})")
    return re.compile(rf"(?<![\w\[-])(?:{'|'.join(forms)})(?:e?s)?(?![\w\]-])")


def plain_text(node: nodes.Node) -> str:
    """A node's text on one line."""
    return " ".join(node.astext().split())


def first_sentence(text: str) -> str:
    """The text up to its first full stop, if nothing in it needs to be typeset."""
    sentence = re.split(r"(?<=[.;]) (?=[A-Z])", text)[0]
    return "" if "\\" in sentence or "_" in sentence else sentence


@cache
def erratum_says(number: int) -> str:
    """A mistake in print in one line: as it is written, and what is right."""
    one = next(one for one in errata.ERRATA if one.number == number)
    return f"Erratum {number}. As written: {one.says}. Right: {one.right}."


# --- The pages -------------------------------------------------------------------------------------------


def put(old: nodes.Node, *new: nodes.Node) -> None:
    """Put nodes in the place of another. (docutils' `replace` would take the first *equal* text.)"""
    parent = old.parent
    here = next(i for i, child in enumerate(parent.children) if child is old)
    parent[here : here + 1] = list(new)


def join_texts(document: nodes.document) -> None:
    """Make one text of neighbours: MyST gives each line of a paragraph a text of its own."""
    for element in {id(text.parent): text.parent for text in document.findall(nodes.Text)}.values():
        joined: list[nodes.Node] = []
        for child in element.children:
            if joined and isinstance(child, nodes.Text) and isinstance(joined[-1], nodes.Text):
                joined[-1] = nodes.Text(joined[-1].astext() + child.astext())
            else:
                joined.append(child)
        if len(joined) < len(element.children):
            element[:] = joined


class Links(SphinxPostTransform):
    """Puts the links into a page."""

    default_priority = 300  # after Sphinx's own references and the bibliography
    formats = ("html",)

    def run(self, **options: Any) -> None:
        """Sphinx calls this for each page."""
        self.page = self.env.docname
        self.pages = {chapter.number: chapter.page for chapter in chapters_of(self.app)}
        self.bibliography = Bibliography.of(self.env)
        join_texts(self.document)
        for text in list(self.prose()):
            self.replace(text, self.references(text.astext(), text))
        for table in list(self.document.findall(nodes.raw)):
            if '<div class="course-table">' in table.astext():
                self.link_cells(table)
        terms = self.app.course_glossary
        about_it = {page for page, *_ in self.bibliography.entries} | {term.page for term in terms}
        if self.page in {self.config.root_doc, *about_it}:
            return
        introduced = self.introduced()
        known = self.known_here(terms)
        terms = [term for term in terms if term.name in known]
        met: set[str] = set()
        for text in list(self.prose()):
            if not inside(text, nodes.strong, "course-facts", "course-exercises"):
                self.replace(text, self.first_terms(text.astext(), terms, introduced, met))

    def prose(self) -> Iterator[nodes.Text]:
        """The pieces of text that may get a link."""
        for text in self.document.findall(nodes.Text):
            if not inside(text, *CLOSED, "course-facts", "course-idea"):
                yield text

    def replace(self, text: nodes.Text, found: Iterable[tuple[int, int, nodes.reference]]) -> None:
        """Put links over parts of a text: (start, end, link without its words)."""
        whole, pieces, last = text.astext(), [], 0
        for start, end, link in sorted(found, key=lambda one: one[0]):
            pieces += [nodes.Text(whole[last:start]), link]
            link += nodes.Text(whole[start:end])
            last = end
        if pieces:
            pieces.append(nodes.Text(whole[last:]))
            put(text, *(piece for piece in pieces if piece.astext()))

    def link_cells(self, table: nodes.raw) -> None:
        """Put links over the chapters and errata that the cells of a code cell's table name; its HTML has none."""

        def linked(cell: re.Match[str]) -> str:
            text, pieces, last = cell["text"], [], 0
            for found in REFERENCE.finditer(text):
                for start, end, link in self.numbers(found, table):
                    address = html.escape(link["refuri"])
                    title = f' title="{html.escape(link["reftitle"])}"' if "reftitle" in link else ""
                    attributes = f'class="reference internal course-reference" href="{address}"{title}'
                    pieces += [text[last:start], f"<a {attributes}>{text[start:end]}</a>"]
                    last = end
            return "".join([cell["tag"], *pieces, text[last:]])

        table[:] = [nodes.Text(CELL.sub(linked, table.astext()))]

    def link(self, page: str, anchor: str = "", says: str = "", kind: str = "") -> nodes.reference:
        """A link to a place in the book, without its words."""
        address = self.app.builder.get_relative_uri(self.page, page) + (f"#{anchor}" if anchor else "")
        link = nodes.reference("", "", internal=True, refuri=address, classes=[kind] if kind else [])
        if says:
            link["reftitle"] = says
        return link

    # --- Chapters, errata, citations

    def references(self, text: str, node: nodes.Text) -> Iterator[tuple[int, int, nodes.reference]]:
        """The links of one text."""
        theirs: list[range] = []  # parts of other people's books
        for found in CITATION.finditer(text):
            if found["part"]:
                theirs.append(range(found.start("part"), found.end("part")))
            yield from self.citation(found, text, node)
        for found in REFERENCE.finditer(text):
            if not any(found.start() in part for part in theirs):
                yield from self.numbers(found, node)

    def citation(
        self, found: re.Match[str], text: str, node: nodes.Text
    ) -> Iterator[tuple[int, int, nodes.reference]]:
        names, more = surnames(found["authors"])
        if NOT_AUTHORS & set(names):
            return
        place = self.bibliography.find(found["authors"], found["in_brackets"] or found["plain"])
        if not isinstance(place, str):
            end = found.start("part") if found["part"] else found.end()
            yield found.start(), end, self.link(*place, kind="course-citation")
        elif (
            more
            or len(names) > 1
            or found["in_brackets"]
            or text[: found.start()].rstrip()[-1:] in ("(", ";")
        ):
            cited = " ".join(found[0].split())
            logger.warning("%r: %s", cited, place, location=node.parent)

    def numbers(self, found: re.Match[str], node: nodes.Text) -> Iterator[tuple[int, int, nodes.reference]]:
        group = "number" if found["number"] else "numbers"
        chapter = found[0].lower().startswith("chapter")
        for i, number in enumerate(re.finditer(ONE, found[group])):
            start = found.start() if i == 0 else found.start(group) + number.start()
            end = found.start(group) + number.end()
            place = self.chapter(number[0]) if chapter else self.erratum(number[0])
            if isinstance(place, str):
                logger.warning("%r: %s", found[0], place, location=node.parent)
            elif chapter and isinstance(node, nodes.Text):
                name = place[0].removeprefix("book/")
                logger.warning(
                    "%r: write [chapter %s](%s.ipynb)", found[0], number[0], name, location=node.parent
                )
            elif place[0] != self.page or place[1:]:
                says = "" if chapter else erratum_says(int(number[0]))
                yield start, end, self.link(*place, says=says, kind="course-reference")

    def chapter(self, number: str) -> tuple[str, ...] | str:
        if number in self.pages:
            return (self.pages[number],)
        there = any(chapter.number == number for chapter in CHAPTERS)
        return f"chapter {number} has no line in _toc.yml" if there else f"there is no chapter {number}"

    def erratum(self, number: str) -> tuple[str, ...] | str:
        """The chapter of errata; the erratum itself, once that chapter has a target "erratum-39"."""
        if number not in {str(one.number) for one in errata.ERRATA}:
            return f"there is no erratum {number}"
        place = self.env.get_domain("std").anonlabels.get(f"erratum-{number}")
        if place:
            return place
        page = next((one.page for one in chapters_of(self.app) if one.name == "errata"), None)
        return (page,) if page else "this book has no chapter of errata"

    # --- The glossary

    def introduced(self) -> set[str]:
        """What this page itself makes bold, or names in its metadata as introduced: lower case."""
        names = {plain_text(strong).rstrip(".:,").lower() for strong in self.document.findall(nodes.strong)}
        return names | facts(self.env, self.page, "introduces")

    def known_here(self, terms: list[Term]) -> set[str]:
        """The terms that a reader may have met: not those of later chapters, unless this page mentions them.

        A chapter's metadata list them, `{"course": {"mentions": ["gradient"]}}`, where a word means the term.
        """
        order = [chapter.page for chapter in chapters_of(self.app)]
        here = order.index(self.page) if self.page in order else len(order)
        later = set().union(*(facts(self.env, page, "introduces") for page in order[here + 1 :]))
        later -= facts(self.env, self.page, "mentions")
        return {term.name for term in terms if not {form.lower() for form in term_forms(term.name)} & later}

    def first_terms(
        self, text: str, terms: list[Term], introduced: set[str], met: set[str]
    ) -> Iterator[tuple[int, int, nodes.reference]]:
        """Links for terms that the page has not had so far; `met` notes them."""
        taken = [found.span() for found in NOT_TERMS.finditer(text)]
        for term in terms:
            found = None if term.name in met else term.pattern.search(text)
            if not found:
                continue
            if any(found.start() < end and start < found.end() for start, end in taken):
                continue  # within a longer term, or not a term at all
            taken.append(found.span())
            met.add(term.name)
            if (
                not any(term.pattern.fullmatch(name) for name in introduced)
                and term.name.lower() not in introduced
            ):
                yield *found.span(), self.link(term.page, term.anchor, term.says, kind="course-term")


def facts(env: Any, page: str, name: str) -> set[str]:
    """A list of terms in the metadata of a page, in lower case; empty for a page that is no notebook."""
    path = Path(env.doc2path(page))
    if path.suffix != ".ipynb" or not path.exists():
        return set()
    return {term.lower() for term in course_metadata(path, path.stat().st_mtime).get(name, [])}


@cache
def course_metadata(path: Path, changed: float) -> dict[str, Any]:
    """What a notebook says of itself; `changed`, the time of its last change, makes it read again."""
    return nbformat.read(path, as_version=4).metadata.get("course", {})


def inside(node: nodes.Node, *what: type | str) -> bool:
    """Whether a node lies in an element of one of these types, or of one of these classes."""
    types = tuple(one for one in what if isinstance(one, type))
    classes = {one for one in what if isinstance(one, str)}
    while node.parent is not None:
        node = node.parent
        if isinstance(node, types) or classes & set(node.get("classes", [])):
            return True
    return False


class FormulaEnds(SphinxPostTransform):
    """Keeps a formula and the punctuation beside it on one line."""

    default_priority = 330  # after the links, which look at whole texts
    formats = ("html",)
    BEFORE, AFTER = re.compile(r"[(\[“]+$"), re.compile(r"^[.,;:!?)\]”’]+(?:s\b)?")

    def run(self, **options: Any) -> None:
        """Sphinx calls this for each page."""
        for formula in list(self.document.findall(nodes.math)):
            beside = formula.parent.children
            here = next(i for i, child in enumerate(beside) if child is formula)
            before = self.cut(beside[here - 1] if here else None, self.BEFORE)
            after = self.cut(beside[here + 1] if here + 1 < len(beside) else None, self.AFTER)
            if before or after:
                held = nodes.inline("", "", classes=["course-nowrap"])
                put(formula, held)
                held += [nodes.Text(before), formula, nodes.Text(after)]

    @staticmethod
    def cut(text: nodes.Node | None, pattern: re.Pattern[str]) -> str:
        """Take what the pattern finds out of a text, and return it."""
        found = pattern.search(text.astext()) if isinstance(text, nodes.Text) else None
        if not found:
            return ""
        whole = text.astext()
        put(text, nodes.Text(whole[: found.start()] + whole[found.end() :]))
        return found[0]


def read_glossary(app: Any, env: Any) -> None:
    """Before pages are written, collect the glossary once."""
    app.course_glossary = glossary(app)


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("env-updated", read_glossary)  # also where no page has changed, but a setting
    app.add_post_transform(Links)
    app.add_post_transform(FormulaEnds)
