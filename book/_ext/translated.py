"""Chapters in other languages: pages beside the English ones, `book/masking_de`, made when the site is built.

Their notebooks come from book/_make/translation.py and are written below the build's own folder. What scripts and
players say is English in their sources; `words.js` replaces it on these pages, by the catalogue book/locale/*/words.po.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from exercise_pages import asks_in_page, for_readers, page_link, page_of
from planned import Translated, chapters_of, translated_file, write_if_new

from book._make import translation

IN_ENGLISH = "In English:"  # a catalogue has the name of its own language for it


def add_to_project(app: Any) -> None:
    """Write the translated notebooks and let Sphinx find them."""
    root = Path(app.srcdir)
    app.course_says = {}
    if app.builder.name != "html":
        return
    for language in translation.languages(root):
        of_the_site = translation.sayer(translation.catalogue(root, language, translation.WORDS))
        app.course_says[language] = of_the_site
        translated = set(translation.chapters(root, language))
        chapters = [chapter for chapter in chapters_of(app) if chapter.name in translated]
        names = {chapter.name: f"{chapter.name}_{language}" for chapter in chapters}
        for chapter in chapters:
            say = translation.either(
                translation.sayer(translation.catalogue(root, language, chapter.name)), of_the_site
            )
            for page in (chapter.page, page_of(chapter)):
                if not (root / f"{page}.ipynb").exists():
                    continue
                english = nbformat.read(root / f"{page}.ipynb", as_version=4)
                mark = word(app, language, translation.NOT_YET)
                path = translated_file(app, f"{page}_{language}")
                if page == page_of(chapter):
                    for_readers(english)
                made = translation.translated(english, say, names, mark)
                write_if_new(path, nbformat.writes(made) + "\n")
                if page == chapter.page or asks_in_page(app, chapter):
                    app.course_translated[f"{page}_{language}"] = Translated(language, page)
                    app.project.beside[f"{page}_{language}"] = os.path.relpath(path, root)


def word(app: Any, language: str, text: str) -> str:
    """What the site says, in a language, or in English where its catalogue lacks it."""
    return (app.course_says[language](text) if language in app.course_says else None) or text


def furnish(app: Any, document: nodes.document) -> None:
    """Say on a translated page which page it is of, and on that which translations there are."""
    page = app.env.docname
    section = next(document.findall(nodes.section), None)
    if section is None:
        return
    if found := app.course_translated.get(page):
        app.env.metadata[page]["orphan"] = True  # no table of contents has it, and that is meant
        words = word(app, found.language, "A translation; what counts is the page in {}.").split("{}")
        english = page_link(found.page, "English")
        section.insert(1, language_line(nodes.Text(words[0]), english, nodes.Text(words[1])))
    for name, (language, _) in (
        (name, one) for name, one in app.course_translated.items() if one.page == page
    ):
        section.insert(1, language_line(page_link(name, word(app, language, IN_ENGLISH))))


def language_line(*words: nodes.Node) -> nodes.container:
    """A quiet line about languages."""
    return nodes.container("", nodes.paragraph("", "", *words), classes=["course-language"])


def speak(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give a translated page its language, and its scripts their words and the page whose memory they share."""
    if found := app.course_translated.get(page):
        catalogue = translation.catalogue(Path(app.srcdir), found.language, translation.WORDS)
        say = app.course_says[found.language]
        context["language"] = found.language
        context["course_words"] = {
            one.id: say(one.id) for one in catalogue if one.id and say(one.id) is not None
        }
        context["course_page"] = found.page
        context["sourcename"], context["page_source_suffix"] = f"{page}.ipynb", ".ipynb"
        app.add_js_file("words.js", loading_method="defer")


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("builder-inited", add_to_project, priority=700)  # after the exercises' pages
    app.connect("doctree-read", furnish, priority=450)
    app.connect("html-page-context", speak, priority=400)  # before the theme links the source
