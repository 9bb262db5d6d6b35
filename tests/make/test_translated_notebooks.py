"""Translations: each message once, code from the English notebook alone, and what changed is English with a mark."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
babel = pytest.importorskip("babel", reason="babel is not installed (it comes with jupyter-book)")
from babel.messages.catalog import Catalog  # noqa: E402
from babel.messages.pofile import write_po  # noqa: E402
from nbformat import v4  # noqa: E402

from book._make import translation  # noqa: E402
from book._make.translation import FOLDER, messages, paragraphs, translated  # noqa: E402

pytestmark = pytest.mark.no_arrays

ROOT = Path(translation.__file__).resolve().parents[2]
GERMAN = {
    "# One": "# Eins",
    "See [chapter 2](two.ipynb), [9](nine.ipynb).": "Siehe [Kapitel 2](two.ipynb), [9](nine.ipynb).",
    "One idea.": "Eine Idee.",
    "yes": "ja",
}


def page(*texts: str) -> Any:
    """A page with these texts and a cell that asks."""
    code = v4.new_code_cell("print('yes')", outputs=[v4.new_output("stream", text="yes\n")])
    code.metadata["predict"] = {"choices": ["yes", "no"], "right": 0}
    course = {"course": {"idea": "One idea."}}
    return v4.new_notebook(cells=[*map(v4.new_markdown_cell, texts), code], metadata=course)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("# A\n\nb\nc\n\n- d\n- e\n", ["# A", "b\nc", "- d\n- e"]),
        ("a\n\n```python\nx\n\ny\n```\n\nb", ["a", "```python\nx\n\ny\n```", "b"]),
        (":::{note}\na\n\nb\n:::\n\nc", [":::{note}\na\n\nb\n:::", "c"]),
        ("a\n\n\n\nb", ["a", "b"]),
    ],
)
def test_paragraphs(text: str, pieces: list[str]):
    assert paragraphs(text) == pieces


def test_messages_are_what_has_words():
    said = messages(page("# One\n\n$$\nA = b\n$$\n\n<details>\n\n$$\nx \\text{ if}\n$$\n\n</details>\n\n42"))
    assert list(said) == ["One idea.", "# One", "$$\nx \\text{ if}\n$$", "yes", "no"]


def test_code_and_outputs_are_the_english_ones():
    source = page("# One\n\nSee [chapter 2](two.ipynb), [9](nine.ipynb).")
    made = translated(source, GERMAN.get, {"two": "two_de"}, "English:")
    assert made.cells[0].source == "# Eins\n\nSiehe [Kapitel 2](two_de.ipynb), [9](nine.ipynb)."
    assert made.cells[1].source == source.cells[1].source
    assert made.cells[1].outputs == source.cells[1].outputs
    assert [cell.id for cell in made.cells] == [cell.id for cell in source.cells]
    assert made.cells[1].metadata["predict"]["choices"] == ["ja", "no"]
    assert made.metadata["course"]["idea"] == "Eine Idee."
    assert source.cells[0].source.startswith("# One"), "the English page has changed"


def test_what_is_not_translated_is_english_with_a_mark():
    (text, _) = translated(page("## Two\n\nNew.\n\n$$\nA\n$$"), GERMAN.get, {}, "English:").cells
    assert text.source == (
        '## Two\n\n<p class="course-english">English:</p>\n\n'
        '<div class="course-english" lang="en">\n\n<p>English:</p>\n\nNew.\n\n</div>\n\n$$\nA\n$$'
    )


def catalogues(root: Path, said: dict[str, str]) -> None:
    """A repository with a page and its German catalogue."""
    (root / "book").mkdir()
    nbformat.write(page("# One\n\nA sentence of a few words."), root / "book" / "one.ipynb")
    (root / FOLDER / "de").mkdir(parents=True)
    found = Catalog(locale="de", fuzzy=False)
    for english, german in said.items():
        found.add(english, german)
    with (root / FOLDER / "de" / "one.po").open("wb") as file:
        write_po(file, found)


def test_a_changed_sentence_is_stale_until_it_is_translated_again(tmp_path: Path):
    catalogues(
        tmp_path, {**GERMAN, "no": "nein", "A sentence of few words.": "Ein Satz aus wenigen Wörtern."}
    )
    said = ["book/locale/de/one.po: A sentence of a few words."]
    assert translation.stale(tmp_path) == said
    translation.renew(tmp_path, "de", "one")
    assert translation.stale(tmp_path) == said
    entry = translation.catalogue(tmp_path, "de", "one").get("A sentence of a few words.")
    assert entry is not None
    assert entry.fuzzy
    assert entry.string == "Ein Satz aus wenigen Wörtern.", "what the translator had is lost"
    before = (tmp_path / FOLDER / "de" / "one.po").read_bytes()
    translation.renew(tmp_path, "de", "one")
    assert (tmp_path / FOLDER / "de" / "one.po").read_bytes() == before


@pytest.mark.parametrize("language", translation.languages(ROOT))
def test_a_translation_has_the_formulas_the_code_and_the_links_of_its_message(language: str):
    for chapter in translation.chapters(ROOT, language):
        for entry in translation.catalogue(ROOT, language, chapter):
            if entry.id:
                for what in (r"`[^`]+`", r"\]\([^)]+\)", r"</?(?:details|summary)>"):
                    assert sorted(re.findall(what, entry.id)) == sorted(
                        re.findall(what, str(entry.string))
                    ), entry.id


def test_a_language_may_have_no_words_and_its_name_is_a_code(tmp_path: Path):
    catalogues(tmp_path, GERMAN)
    made = translation.spoken(tmp_path, "de", "one", page("# One\n\nNew."))
    assert made.cells[0].source.startswith("# Eins\n\n<div")
    assert translation.spoken(tmp_path, "de", "two", made) is made
    (tmp_path / FOLDER / "pt-BR").mkdir()
    with pytest.raises(ValueError, match="pt-BR: expected the code of a language"):
        translation.languages(tmp_path)


def test_the_page_of_exercises_has_messages_of_its_own(tmp_path: Path):
    catalogues(tmp_path, GERMAN)
    (tmp_path / "exercises").mkdir()
    how = "Write your answer where the dots are, run it; `check.a.solution()` shows one way. More."
    nbformat.write(page(how), tmp_path / "exercises" / "one.ipynb")
    said = translation.said_in(tmp_path, "one")
    assert how in said
    assert [one for one in said if "press **Check**" in one and one.endswith("this browser. More.")]


GOOD = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "Yes"\nmsgstr "Ja"\n'


@pytest.mark.parametrize(
    "content",
    [
        GOOD + "hello world\n",
        "hello world\n",
        GOOD.replace('"Ja"', '"Ja'),
        GOOD.replace('"Ja"', "Ja"),
        GOOD.replace("UTF-8", "klingon"),
        GOOD.replace("UTF-8", "ascii").replace("Ja", "Ja\xe4"),
        bytes(range(256)),
        b"\xff\xfe\x00",
        GOOD.replace("msgstr", "msgstx"),
        GOOD + 'msgid "No"\n',
    ],
)
def test_a_damaged_catalogue_is_named(content: str | bytes, tmp_path: Path, monkeypatch, capsys):
    path = tmp_path / "book" / "locale" / "de" / "masking.po"
    path.parent.mkdir(parents=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=r"masking\.po is no catalogue: ") as refused:
        translation.catalogue(tmp_path, "de", "masking")
    assert "\n" not in str(refused.value)
    before = path.read_bytes()
    monkeypatch.chdir(tmp_path)
    for arguments in ([], ["--check"]):
        assert translation.main(arguments) == 1
        assert capsys.readouterr().err.count("\n") == 1
    assert path.read_bytes() == before


def test_an_empty_catalogue_is_one_that_is_begun(tmp_path: Path):
    path = tmp_path / "book" / "locale" / "de" / "masking.po"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    assert len(translation.catalogue(tmp_path, "de", "masking")) == 0
