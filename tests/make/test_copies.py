"""The copies of chapters that learners get: no assertions, no answers before a guess, and pictures without trust."""

from __future__ import annotations

import base64
import copy
import re
import xml.etree.ElementTree as ET
from html import escape
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from book.make import copies, notebooks

pytestmark = pytest.mark.no_arrays

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "book").glob("*.ipynb"))
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def copied(path: Path) -> tuple[Any, Any]:
    """A chapter and its copy."""
    chapter = notebooks.read(path)
    mine = copy.deepcopy(chapter)
    copies.for_learner(mine)
    return chapter, mine


FOLDED = f"<details><summary>{copies.ANSWER}</summary>\n"


def folded(output: Any) -> bool:
    """Whether an output is an answer that waits."""
    data = output.get("data", {})
    inside = data.get("text/html", "").startswith(FOLDED) and data["text/html"].endswith("</details>")
    assert inside == (data.get("text/plain") == copies.ANSWER)
    return inside


CHOICES = re.compile(r"<details>\n<summary>[a-g]\) .*?</details>", re.DOTALL)


def shown(source: str) -> str:
    """What is seen of a text before anything is unfolded."""
    while source != (less := re.sub(r"<details>(?:(?!<details>).)*?</details>", "", source, flags=re.DOTALL)):
        source = less
    return source


@each_chapter
def test_no_copy_has_a_cell_of_claims_and_what_the_site_folds_is_folded(path):
    chapter, mine = copied(path)
    gone = {cell.id: cell for cell in chapter.cells if "claims" in cell.metadata.get("tags", [])}
    assert {cell.id for cell in mine.cells} == {cell.id for cell in chapter.cells} - set(gone)
    for cell in mine.cells:
        tags = set(cell.metadata.get("tags", []))
        assert "remove-cell" not in tags or "install" in tags
        assert not tags & {"setup", "hide-input"} or cell.metadata["jupyter"]["source_hidden"]
    # What a cell needs of one comes along, once.
    needed = {
        name.removesuffix("-names")
        for cell in mine.cells
        for name in cell.metadata.get("course", {}).get("needs", "").split()
    }
    code = "\n".join(cell.source for cell in mine.cells if cell.cell_type == "code")
    for name, cell in gone.items():
        lines = [line for line in cell.source.split("\n") if re.match(r"\w+ = |def ", line)]
        for line in lines if name in needed else []:
            assert line in code


def test_what_a_cell_needs_of_claims_comes_along_without_their_assertions():
    def cell(name, source, needs="", *tags):
        return new_code_cell(source, id=name, metadata={"course": {"needs": needs}, "tags": list(tags)})

    mine = new_notebook(
        cells=[
            cell("a", "x = 1"),
            cell("b", "y = x + 1\nassert (\n    y == 2\n)", "a", "claims"),
            cell("c", "z = y + 1\nassert z == 3\nw = z", "b", "claims"),
            cell("d", "assert x == 1", "a", "claims"),
            cell("e", "w + y", "c-names b"),
            cell("f", "w", "c"),
        ]
    )
    copies.for_learner(mine)
    assert [one.source for one in mine.cells] == ["x = 1", "y = x + 1\n\nz = y + 1\nw = z\n\nw + y", "w"]


@each_chapter
def test_no_answer_is_open(path):
    """Between a question's output and the next heading, question or open text, all that is seen is code."""
    chapter, mine = copied(path)
    waits = False
    for cell in mine.cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "markdown":
            pieces = [one for one in shown(cell.source).split("\n\n") if one.strip()]
            stop = "open" in tags or any(one.startswith("#") or "**Predict" in one for one in pieces)
            if waits and pieces and "open" not in tags:
                assert pieces[0].startswith("#") or "**Predict" in pieces[0]
            waits = waits and not stop
            continue
        waits |= "predict" in tags
        assert "outputs_hidden" not in cell.metadata.get("jupyter", {})  # which only Jupyter heeds
        assert [folded(one) for one in cell.outputs] == (
            [True] if waits and cell.outputs else [False] * len(cell.outputs)
        )
    seen = "\n".join(cell.source for cell in mine.cells if cell.cell_type == "markdown")
    above = copies.under_title(chapter, "")
    assert seen.count(f"\n\n{above}\n") == 1
    seen = CHOICES.sub("", seen.replace(f"\n\n{above}\n", "\n"))
    seen = seen.replace(f"<details>\n<summary>{copies.ANSWER}</summary>", "").replace("</details>", "")
    told = "\n".join(cell.source for cell in chapter.cells if cell.cell_type == "markdown")
    assert seen.split() == told.replace("</details>", "").split()  # nothing is lost


@each_chapter
def test_a_question_has_its_answers_to_choose_from_and_one_is_right(path):
    chapter, mine = copied(path)
    asked = [cell.metadata["predict"] for cell in chapter.cells if "predict" in cell.metadata]
    texts = [
        cell.source for cell in mine.cells if cell.cell_type == "markdown" and CHOICES.search(cell.source)
    ]
    assert len(texts) == len(asked)
    for text, one in zip(texts, asked, strict=True):
        assert "**Predict" in text
        found = CHOICES.findall(text)
        assert text.endswith(found[-1])  # below the question, and below no answer of the one before
        assert ["Yes" in each for each in found] == [i == one["right"] for i in range(len(one["choices"]))]
        assert all(
            escape(choice, quote=False) in each for choice, each in zip(one["choices"], found, strict=True)
        )


def test_under_the_title_stand_idea_minutes_needs_and_exercises():
    about = {"idea": "One idea.", "needs": ["one_head", "arrays"]}
    mine = new_notebook(cells=[new_markdown_cell("# 8. Twelve heads\n\nHook.")], metadata={"course": about})
    copies.for_learner(mine, "[5 exercises](../x.ipynb)")
    line = "5 min · needs chapters [1](arrays.ipynb), [7](one_head.ipynb) · [5 exercises](../x.ipynb)"
    assert mine.cells[0].source == f"# 8. Twelve heads\n\n**One idea.**\n\n{line}\n\nHook."


QUESTION = new_code_cell("3", metadata={"tags": ["predict"]}, outputs=[new_output("stream", text="3")])


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("It is 3.\n\nBecause.", ""),
        ("It is 3.\n\n## Next\n\nMore.", "## Next\n\nMore."),
        ("It is 3.\n\nNow another. **Predict:** what?", "Now another. **Predict:** what?"),
        ("**Predict:** what?\n\nMore.", "**Predict:** what?\n\nMore."),
        ("```\n# no heading\n\n# here\n```", ""),
        ("It is 3.\n\n<details>\n<summary>More</summary>\n\nText.\n\n</details>\n\n### Next", "### Next"),
    ],
)
def test_where_an_answer_ends(text, seen):
    mine = new_notebook(cells=[copy.deepcopy(QUESTION), new_markdown_cell(text)])
    copies.for_learner(mine)
    source = mine.cells[1].source
    assert source.count("<details>") == source.count("</details>")
    assert re.sub(r"<details>.*</details>", "", source, flags=re.DOTALL).strip() == seen


@pytest.mark.parametrize(("tags", "waits"), [([], True), (["open"], False)])
def test_what_follows_waits_up_to_open_text(tags, waits):
    follows = new_code_cell("4", outputs=[new_output("stream", text="4")])
    between = new_markdown_cell("Text.", metadata={"tags": tags})
    mine = new_notebook(cells=[copy.deepcopy(QUESTION), between, follows])
    copies.for_learner(mine)
    assert ("<details>" in mine.cells[1].source) == waits
    assert [folded(one) for one in mine.cells[2].outputs] == [waits]
    assert ("<pre>4</pre>" in str(mine.cells[2].outputs[0])) == waits


# --- Drawings ----------------------------------------------------------------------------------------------


def untrusted(shown_html: str) -> str:
    """What JupyterLab shows of it: no styles and scripts, and nothing that is not to be displayed."""
    html = re.sub(r"<(script|style)\b.*?</\1>", "", shown_html, flags=re.DOTALL)
    return re.sub(r'<div [^>]*style="display: none">.*', "", html, flags=re.DOTALL)


@each_chapter
def test_every_figure_has_a_form_for_where_nothing_is_trusted(path):
    chapter, mine = copied(path)
    before = {cell.id: cell for cell in chapter.cells}
    for cell in mine.cells:
        whole = "".join(one.get("data", {}).get("text/html", "") for one in cell.get("outputs", []))
        for old in before[cell.id].get("outputs", []):
            if not (old_html := old.get("data", {}).get("text/html", "")):
                continue
            html = copies.with_still(old_html, old.data["text/plain"])
            assert html in whole
            assert old_html in html  # where it is trusted, it is what it was
            seen = untrusted(html)
            if "<svg" not in old_html:
                assert html == old_html or f"<pre>{escape(old.data['text/plain'], quote=False)}</pre>" in seen
                continue
            assert not re.search("<(svg|text|input|button)", seen)
            pictures = re.findall(
                r'<img alt="([^"]+)" width="\d+" src="data:image/svg\+xml;base64,([^"]+)">', seen
            )
            assert pictures
            for _, packed in pictures:
                ET.fromstring(base64.b64decode(packed))


def test_a_picture_has_the_styles_of_its_figure():
    """Also those that speak of what is around the drawing."""
    style = "<style>.outer .inner > .drawn rect {fill: var(--x)} .outer {--x: red}</style>"
    figure = f'<div class="course-x outer">{style}<p>Words</p><div class="inner"><svg class="no"></svg></div></div>'
    drawn = '<g class="drawn"><svg class="y" viewBox="0 0 8 4"><text>a &amp; b</text></svg></g>'
    still = copies.with_still(figure.replace('<svg class="no"></svg>', drawn), "")
    packed = re.search(r'base64,([^"]+)"', untrusted(still))
    assert packed
    root = ET.fromstring(base64.b64decode(packed[1]))
    assert [root.get("width"), root.get("height")] == ["8", "4"]
    space = "{http://www.w3.org/2000/svg}"
    assert root.find(f"{space}style").text == re.sub("</?style>", "", style)
    classes = [one.get("class") for one in root.iter(f"{space}g")]
    assert classes == ["course-x outer", "inner", "drawn"]
