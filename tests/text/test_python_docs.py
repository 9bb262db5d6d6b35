"""The documentation on this disk as a corpus: what is prose in a docstring, which modules are read."""

from __future__ import annotations

import pydoc_data.topics
from collections import Counter

import pytest

from minigrad.text import python_docs
from minigrad.text.corpus import Corpus, CorpusError, read_corpus

pytestmark = pytest.mark.no_arrays

MODULE = '''
"""What this module is for stands here. It is the first of the documents.

    indented = code_that(is_few, words)

A second paragraph of prose ends with this line.
"""

def function(x):
    """Return something that hangs on the argument alone. It is a function.

    This sentence stands right above an example and goes with it.
    >>> function(3)
    This answer must not be in the text of a corpus, even though it reads like prose.

    Parameters
    ----------
    x : int
        A parameter is described in this line.

    Too short.

    * - / + # | ~ ^ & 1 2 3 4 5 6 7 8 9
    """

class Thing:
    """What a thing is good for stands here.

    +-----+-----------------------------------+
    | a   | a table with some words in it.    |
    +-----+-----------------------------------+
    """

    async def method(self):
        """A method that waits has a docstring of its own."""
'''
PROSE = [
    "What this module is for stands here.",
    "It is the first of the documents.",
    "A second paragraph of prose ends with this line.",
    "indented = code_that(is_few, words)",
    "x : int A parameter is described in this line.",
    "Return something that hangs on the argument alone.",
    "It is a function.",
    "What a thing is good for stands here.",
    "A method that waits has a docstring of its own.",
]


@pytest.fixture
def few_modules(tmp_path, monkeypatch):
    """The corpus of these modules, and of no topics."""

    def read(*modules: str) -> Corpus:
        paths = [tmp_path / f"m{i}.py" for i in range(len(modules))]
        for path, text in zip(paths, modules, strict=True):
            path.write_text(text, encoding="utf-8")
        monkeypatch.setattr(python_docs, "_python_files", lambda: iter(paths))
        monkeypatch.setattr(pydoc_data.topics, "topics", {})
        return read_corpus("python-docs")

    return read


OTHER = '"""Another module says other things. It says two of them."""\n'


def test_prose_is_taken_out_of_docstrings(few_modules):
    corpus = few_modules(MODULE, OTHER)
    assert sorted(corpus.documents[0]) == sorted(PROSE)
    assert corpus.documents[1:] == [["Another module says other things.", "It says two of them."]]
    assert corpus.source == "python-docs"


def test_a_paragraph_that_stood_before_is_left_out(few_modules):
    again = OTHER + MODULE.replace('"""What this', '"""New things in this module stand here. What this', 1)
    corpus = few_modules(MODULE, again, OTHER.replace("two", "three"))
    counts = Counter(corpus.sentences)
    assert [s for s, count in counts.items() if count > 1] == ["Another module says other things."]


def test_modules_that_cannot_be_parsed_or_say_little_are_passed_over(few_modules):
    corpus = few_modules(
        MODULE, "def broken(:\n", "x = 1\n", '"""Only one sentence is in this one."""\n', OTHER
    )
    assert len(corpus.documents) == 2


def test_too_little_documentation(few_modules):
    with pytest.raises(CorpusError, match=r"python-docs: .* found 1"):
        few_modules(MODULE)


def test_no_tests_and_no_installed_packages_among_the_modules():
    paths = list(python_docs._python_files())
    assert len(paths) == len(set(paths)) > 400
    assert not [p for p in paths if {"tests", "test", "__pycache__", "idle_test"} & set(p.parts[-3:-1])]
    assert any("numpy" in p.parts for p in paths)


def test_a_package_that_is_not_installed_is_named(few_modules, monkeypatch):
    assert not [note for note in few_modules(MODULE, OTHER).notes if "numpy" in note]
    monkeypatch.setattr(python_docs, "PACKAGES", ("numpy", "no_package_of_this_name"))
    assert few_modules(MODULE, OTHER).notes == [
        "python-docs has fewer documents here than elsewhere, because no_package_of_this_name is not installed: "
        "pip install no_package_of_this_name"
    ]


@pytest.mark.slow
def test_the_documentation_on_this_disk():
    """All of it, as the command line reads it: its structure, for its text differs between versions."""
    corpus = read_corpus("python-docs")
    sentences = list(corpus.sentences)
    assert len(corpus.documents) > 300
    assert len(sentences) > 8_000
    assert min(map(len, corpus.documents)) >= 2
    assert not [s for s in sentences if ">>>" in s]
    assert not [s for s in sentences if "\n" in s or s != s.strip() or not s]
    assert len({tuple(document) for document in corpus.documents}) == len(corpus.documents)
    repeated = len(sentences) - len(set(sentences))
    assert repeated < 0.1 * len(sentences)  # paragraphs come once; short sentences may recur in others
    letters = sum(c.isalpha() or c == " " for s in sentences for c in s)
    assert letters > 0.9 * sum(map(len, sentences))
