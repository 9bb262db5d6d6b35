"""Chapters in other languages: pages beside the English ones, `book/masking_de`, made when the site is built.

Their notebooks come from book/_make/translation.py and are written below the build's own folder. What scripts and
players say is English in their sources; `words.js` replaces it on these pages, by the catalogue book/locale/*/words.po.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
from babel import Locale
from docutils import nodes
from exercise_pages import asks_in_page, chapter_of, page_link, page_of
from planned import Translated, chapters_of, translated_file, write_if_new

from book._make import translation
from book._make.exercise_page import for_readers
from minigrad.course.contents import Chapter

TRANSLATION = "A translation; what counts is the page in {}."


def find_translations(app: Any, config: Any) -> None:
    """Note which chapters there are in which language: a setting, so that a change of it reads every page again."""
    root = Path(app.srcdir)
    config.course_translations = [
        f"{language}/{name}"
        for language in translation.languages(root)
        for name in translation.chapters(root, language)
    ]


def add_to_project(app: Any) -> None:
    """Write the translated notebooks and let Sphinx find them."""
    root = Path(app.srcdir)
    if app.builder.name != "html":
        return
    for language in translation.languages(root):
        for chapter in of_language(app, language):
            for page in (chapter.page, page_of(chapter)):
                if not (root / f"{page}.ipynb").exists():
                    continue
                name, path = f"{page}_{language}", translated_file(app, f"{page}_{language}")
                made = in_language(
                    app, language, chapter, nbformat.read(root / f"{page}.ipynb", as_version=4)
                )
                write_if_new(path, nbformat.writes(made) + "\n")
                if page == chapter.page or asks_in_page(app, chapter):
                    app.course_translated[name] = Translated(language, page)
                    app.project.beside[name] = os.path.relpath(path, root)


def of_language(app: Any, language: str) -> list[Chapter]:
    """This book's chapters that there are in a language."""
    return [
        chapter
        for chapter in chapters_of(app)
        if f"{language}/{chapter.name}" in app.config.course_translations
    ]


def in_language(app: Any, language: str, chapter: Chapter, notebook: Any) -> Any:
    """A chapter's notebook in a language, with links to the other pages in it."""
    names = {one.name: f"{one.name}_{language}" for one in of_language(app, language)}
    return translation.spoken(Path(app.srcdir), language, chapter.name, notebook, names)


def show_exercises(app: Any, page: str, source: list[str]) -> None:
    """Let a page of exercises have the words of the page, where its notebook has those for Jupyter."""
    found, chapter = app.course_translated.get(page), chapter_of(app, page)
    if found and chapter:
        english = nbformat.read(Path(app.srcdir) / f"{found.page}.ipynb", as_version=4)
        for_readers(english)
        source[0] = nbformat.writes(in_language(app, found.language, chapter, english))


def furnish(app: Any, document: nodes.document) -> None:
    """Say on a translated page which page it is of, and on that which translations there are."""
    page = app.env.docname
    section = next(document.findall(nodes.section), None)
    if section is None:
        return
    if found := app.course_translated.get(page):
        app.env.metadata[page]["orphan"] = True  # no table of contents has it, and that is meant
        app.env.note_dependency(str(words_of(app, found.language)))
        say = translation.sayer(translation.catalogue(Path(app.srcdir), found.language, translation.WORDS))
        # Not by words.js: the link parts the sentence.
        before, _, after = (say(TRANSLATION) or TRANSLATION).partition("{}")
        english = page_link(found.page, "English")
        section.insert(1, language_line(nodes.Text(before), english, nodes.Text(after)))
    for name, one in app.course_translated.items():
        if one.page == page:
            here = Locale.parse(one.language).get_display_name() or one.language
            section.insert(1, language_line(page_link(name, here)))


def words_of(app: Any, language: str) -> Path:
    """The catalogue of what the site says in a language."""
    return Path(app.srcdir) / translation.FOLDER / language / f"{translation.WORDS}.po"


def language_line(*words: nodes.Node) -> nodes.container:
    """A quiet line about languages."""
    return nodes.container("", nodes.paragraph("", "", *words), classes=["course-language"])


def speak(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give a translated page its language, and its scripts their words and the page whose memory they share."""
    if found := app.course_translated.get(page):
        words = translation.catalogue(Path(app.srcdir), found.language, translation.WORDS)
        say = translation.sayer(words)
        context["language"] = found.language
        context["course_words"] = {one.id: say(one.id) for one in words if one.id and say(one.id)}
        context["course_page"] = found.page
        context["sourcename"], context["page_source_suffix"] = f"{page}.ipynb", ".ipynb"
        app.add_js_file("words.js", loading_method="defer")


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.add_config_value("course_translations", [], "env")
    app.connect("config-inited", find_translations)
    app.connect("source-read", show_exercises, priority=400)  # before what is for Jupyter is left out
    app.connect("builder-inited", add_to_project, priority=700)  # after the exercises' pages
    app.connect("doctree-read", furnish, priority=450)
    app.connect("html-page-context", speak, priority=400)  # before the theme links the source
