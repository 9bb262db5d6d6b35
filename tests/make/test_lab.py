"""`make lab`: copies that nobody loses an answer in, a page to start from, and how JupyterLab is opened."""

from __future__ import annotations

import json
import re
import shutil
import socket
import sqlite3
import subprocess
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote, unquote

import pytest

pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
pytest.importorskip("nbclient", reason="nbclient is not installed (as nbformat)")

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from bert_course.contents import CHAPTERS
from book.make import lab, notebooks

pytestmark = pytest.mark.no_arrays

ROOT = Path(__file__).resolve().parents[2]
COPY, NEW, NEW_2 = (f"07 One attention head{more}.ipynb" for more in ("", " (new)", " (new 2)"))
SOLVED = "def f(x):\n    ### BEGIN SOLUTION\n    return x\n    ### END SOLUTION"


def publish(root, text="What to do."):
    """A version of the exercise and its solution in the course's folder."""
    cells = [new_markdown_cell(text, id="text"), new_code_cell(SOLVED, id="code")]
    solution = new_notebook(cells=cells)
    for folder, one in (("solutions", solution), ("exercises", notebooks.make_exercise(solution))):
        (root / folder).mkdir(exist_ok=True)
        notebooks.write(root / folder / "one_head.ipynb", one)


def work(path, answer="return x"):
    """What a learner does: an answer, saved."""
    notebook = notebooks.read(path)
    assert "..." in notebook.cells[-1].source
    notebook.cells[-1].source = notebook.cells[-1].source.replace("...", answer)
    notebooks.write(path, notebook)
    return path.read_bytes()


@pytest.fixture
def root(tmp_path):
    """A course with one chapter and its exercise."""
    publish(tmp_path)
    (tmp_path / "book").mkdir()
    (tmp_path / "_config.yml").write_text('repository:\n  url: ""\n', encoding="utf-8")
    chapter = new_notebook(cells=[new_markdown_cell("# 7. One attention head\n\nText.")])
    notebooks.write(tmp_path / "book" / "one_head.ipynb", chapter)
    return tmp_path


@pytest.fixture
def copy(root):
    """Where the copy of the exercise is."""
    return root / lab.FOLDER / COPY


def names(root):
    return sorted(path.name for path in (root / lab.FOLDER).glob("*.ipynb"))


# --- Copies ------------------------------------------------------------------------------------------------


def test_the_exercises_are_copied_once(root, copy):
    assert lab.prepare(root) == [
        "my-exercises/: the exercises of 1 chapters are copied; your answers stay there"
    ]
    assert names(root) == [COPY, "START.ipynb"]
    text, install, code = notebooks.read(copy).cells
    assert [text, code] == notebooks.read(root / "exercises" / "one_head.ipynb").cells
    assert "upload the course's two wheels" in install.source
    assert install.metadata["jupyter"] == {"source_hidden": True}
    assert lab.prepare(root) == []
    text = "\n".join(cell.source for cell in notebooks.read(root / lab.FOLDER / "START.ipynb").cells)
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert set(links) == {"book/one_head.ipynb", quote(COPY)}
    assert all((root / lab.FOLDER / unquote(link)).exists() for link in links)


def test_a_new_version_is_put_beside_answers(root, copy):
    lab.prepare(root)
    answered = work(copy)
    publish(root, "What to do, in better words.")
    said = f"my-exercises/{NEW}: a new version; {COPY} has your answers and stays as it is"
    assert lab.prepare(root) == [said]
    assert lab.prepare(root) == []
    assert copy.read_bytes() == answered
    assert names(root) == [NEW, COPY, "START.ipynb"]
    assert (
        "[new version](07%20One%20attention%20head%20%28new%29.ipynb)"
        in notebooks.read(root / lab.FOLDER / "START.ipynb").cells[2].source
    )


def test_a_new_version_beside_a_new_version_with_answers(root, copy):
    lab.prepare(root)
    answered = [work(copy)]
    for text in ("second", "third"):
        publish(root, text)
        lab.prepare(root)
        if text == "second":
            answered.append(work(copy.with_name(NEW)))
    assert names(root)[:3] == [NEW_2, NEW, COPY]
    assert [copy.read_bytes(), copy.with_name(NEW).read_bytes()] == answered


def test_a_new_version_replaces_what_nobody_has_begun(root, copy):
    lab.prepare(root)
    publish(root, "other words")
    assert lab.prepare(root) == [f"my-exercises/{COPY}: brought up to date; nobody had begun it"]
    assert notebooks.read(copy).cells[0].source == "other words"
    assert names(root) == [COPY, "START.ipynb"]


@pytest.mark.parametrize("content", [b"", b"no notebook", b"[]", b"\xff\xfe"])
def test_a_file_that_is_no_notebook_stays(content, root, copy):
    copy.parent.mkdir()
    copy.write_bytes(content)
    lab.prepare(root)
    assert copy.read_bytes() == content
    assert NEW in names(root)


def test_a_copy_made_by_hand_stays(root, copy):
    copy.parent.mkdir()
    notebook = notebooks.read(root / "exercises" / "one_head.ipynb")
    del notebook.metadata["made_with"]
    notebooks.write(copy, notebook)
    assert lab.prepare(root) == ["my-exercises/book/: the chapters are copied"]
    answered = work(copy)
    lab.prepare(root)
    assert copy.read_bytes() == answered


def test_answers_in_exercises_come_along(root, copy):
    work(root / "exercises" / "one_head.ipynb")
    lab.prepare(root)
    assert "return x" in notebooks.read(copy).cells[-1].source
    assert lab.prepare(root) == []
    answered = copy.read_bytes()
    publish(root, "other words")
    lab.prepare(root)
    assert copy.read_bytes() == answered


def test_notes_on_the_start_page_stay(root):
    lab.prepare(root)
    path = root / lab.FOLDER / "START.ipynb"
    page = notebooks.read(path)
    page.cells.append(new_markdown_cell("my note"))
    notebooks.write(path, page)
    noted = path.read_bytes()
    (root / "book" / "one_head.ipynb").rename(root / "book" / "many_heads.ipynb")
    lab.prepare(root)
    assert path.read_bytes() == noted
    assert "START (new).ipynb" in names(root)


def test_another_folder_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert lab.main(["--copy-only"]) == 1
    assert "has no exercises/: run this in the course's folder" in capsys.readouterr().err


# --- The page to start from --------------------------------------------------------------------------------


def test_the_start_page_lists_the_courses_chapters():
    table = lab.start_page(ROOT).cells[2].source
    for path in (ROOT / "book").glob("*.ipynb"):
        assert f"(book/{path.name})" in table
    for path in (ROOT / "exercises").glob("*.ipynb"):
        copy = re.escape(quote(f"{lab.copy_stem(path.stem)}.ipynb"))
        assert re.search(rf"\[\d+ exercises\]\({copy}\) \| \d( to \d)? \| \d+ \|", table), path.name


def test_the_names_of_copies_are_in_order_and_fit_every_disk():
    stems = [lab.copy_stem(chapter.name) for chapter in CHAPTERS]
    assert stems == sorted(stems)
    assert "17 Features or fine-tuning" in stems  # the page's title ends with a question mark
    assert not [stem for stem in stems if set(stem) & set('<>:"/\\|?*')]


# --- Copies whose chapter had another place -----------------------------------------------------------------


@pytest.fixture
def earlier(tmp_path):
    """The course with two chapters, copied when *masking* was chapter 10."""
    for folder in ("book", "exercises", "solutions"):
        (tmp_path / folder).mkdir()
        for name in ("one_head", "masking"):
            shutil.copy(ROOT / folder / f"{name}.ipynb", tmp_path / folder)
    shutil.copy(ROOT / "_config.yml", tmp_path)
    lab.prepare(tmp_path)
    folder = tmp_path / lab.FOLDER
    (folder / "09 Masking.ipynb").rename(folder / "10 Masking.ipynb")
    return tmp_path


@pytest.mark.parametrize("new", ["", " (new)", " (new 2)"])
def test_a_copy_whose_chapter_has_another_place_gets_another_name(new, earlier):
    (earlier / lab.FOLDER / "10 Masking.ipynb").rename(earlier / lab.FOLDER / f"10 Masking{new}.ipynb")
    said = f"my-exercises/10 Masking{new}.ipynb is now called 09 Masking{new}.ipynb"
    assert said in lab.prepare(earlier)
    lab.prepare(earlier)
    assert lab.prepare(earlier) == []


def test_a_file_with_a_name_of_its_own_keeps_it(earlier):
    folder = earlier / lab.FOLDER
    (folder / COPY).rename(folder / "my head.ipynb")
    shutil.copy(folder / "10 Masking.ipynb", folder / "09 Masking.ipynb")  # none takes the place of another
    lab.prepare(earlier)
    assert {"my head.ipynb", "10 Masking.ipynb", "09 Masking.ipynb"} <= set(names(earlier))


# --- JupyterLab --------------------------------------------------------------------------------------------


@pytest.fixture
def opened(root, monkeypatch):
    """What `main` starts: the arguments and the environment, and what it found there."""
    seen = {}

    class Started:
        def __init__(self, arguments, env):
            (folder,) = (Path(p) for p in env["JUPYTER_CONFIG_PATH"].split(":") if "minigrad-lab" in p)
            (settings,) = folder.rglob("*.json")
            seen.update(arguments=arguments, settings=json.loads(settings.read_text()), folder=folder)
            seen.update(startup=env.get("PYTHONSTARTUP"), token=env["JUPYTER_TOKEN"])
            self.interrupts = 2

        def wait(self):
            if self.interrupts:
                self.interrupts -= 1
                raise KeyboardInterrupt
            return 3

        def poll(self):
            return 3

    monkeypatch.chdir(root)
    monkeypatch.setattr(subprocess, "Popen", Started)
    monkeypatch.setattr(lab, "trust", lambda root: seen.update(trusted=root))
    monkeypatch.setattr(lab.importlib.util, "find_spec", lambda name: name)
    return seen


@pytest.mark.parametrize(("uid", "as_root"), [(0, True), (1000, False)])
def test_jupyterlab_opens_on_the_start_page(uid, as_root, opened, root, monkeypatch, capsys):
    monkeypatch.setattr(lab.os, "geteuid", lambda: uid, raising=False)
    assert lab.main(["--no-browser", "--port", "9000"]) == 3  # its own status, after two Ctrl-C
    arguments = opened["arguments"]
    assert f"--ServerApp.root_dir={root}" in arguments
    assert any(one.endswith("/tree/my-exercises/START.ipynb") for one in arguments)
    assert "--port=9000" in arguments
    assert arguments[-1] == "--no-browser"
    assert ("--allow-root" in arguments) is as_root
    said = capsys.readouterr().out
    assert ("--allow-root" in said) is as_root
    assert "http" not in said  # it has not answered
    assert not any(opened["token"] in one for one in arguments)
    assert opened["settings"]["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"
    assert opened["trusted"] == root
    assert opened["startup"] == lab.KERNEL_START
    assert not opened["folder"].exists()


def test_without_jupyterlab_the_copies_are_there_and_it_says_what_to_install(
    opened, root, monkeypatch, capsys
):
    monkeypatch.setattr(lab.importlib.util, "find_spec", lambda name: None)
    assert lab.main([]) == 1
    assert "pip install" in capsys.readouterr().err
    assert opened == {}
    assert names(root) == [COPY, "START.ipynb"]


@pytest.mark.parametrize(
    ("token", "end"), [("secret", "http://localhost:1/?token=secret"), ("", "http://localhost:1/")]
)
def test_its_address_is_said_once_it_answers(token, end, tmp_path, monkeypatch, capsys):
    """By what JupyterLab writes of itself: it may have taken another port, or a password of the learner's own."""
    told = tmp_path / "jpserver-7.json"
    told.write_text('{"url": ')
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        found = {"url": "http://localhost:1/", "token": token, "hostname": "127.0.0.1", "port": port}
        steps = iter([lambda: told.write_text(json.dumps(found)), server.listen])

        def wait(seconds):
            assert capsys.readouterr().out == ""
            next(steps)()

        monkeypatch.setattr(lab.time, "sleep", wait)
        lab.announce(SimpleNamespace(poll=lambda: None), tmp_path)
    assert f"JupyterLab is at {end}\n" in capsys.readouterr().out


def test_without_a_port_it_is_the_first_free_one(opened, monkeypatch, capsys):
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        used = busy.getsockname()[1]
        assert lab.free_port(used) > used
    monkeypatch.setattr(lab, "free_port", lambda: 8891)
    lab.main([])
    assert "--port=8891" in opened["arguments"]


def test_what_cannot_be_trusted_is_one_line_and_it_starts(opened, monkeypatch, capsys):
    error = sqlite3.OperationalError("attempt to write a readonly database")

    def fail(root):
        raise error

    monkeypatch.setattr(lab, "trust", fail)
    assert lab.main([]) == 3
    said = capsys.readouterr()
    assert said.err == ""
    assert len([line for line in said.out.splitlines() if str(error) in line]) == 1
    assert opened["arguments"]


@pytest.mark.parametrize("what", ["TemporaryDirectory", "Popen"])
def test_no_place_to_start_it_in_is_one_line(what, opened, monkeypatch, capsys):
    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(lab.tempfile if what == "TemporaryDirectory" else subprocess, what, fail)
    assert lab.main([]) == 1
    assert capsys.readouterr().err == "JupyterLab cannot start: [Errno 28] No space left on device\n"


def test_what_another_has_renamed_meanwhile_is_no_error(earlier, monkeypatch):
    true = Path.rename

    def second(path, to):
        true(path, to)
        return true(path, to)

    monkeypatch.setattr(Path, "rename", second)
    lab.prepare(earlier)
    assert COPY in names(earlier)


def test_what_nobody_has_touched_is_trusted(root, copy, monkeypatch):
    signed = []

    class Notary:
        def sign(self, notebook):
            signed.append(notebook.cells[0].source)

    monkeypatch.setattr(lab, "NotebookNotary", Notary)
    lab.prepare(root)
    work(copy)
    (root / lab.FOLDER / "broken.ipynb").write_text("no notebook")
    lab.trust(root)
    assert sorted(text.split("\n")[0] for text in signed) == ["# 7. One attention head", "# Start here"]


# --- Chapters ----------------------------------------------------------------------------------------------


def test_a_copy_of_a_chapter_has_no_assertions_and_no_open_answer_and_is_renewed(root):
    """test_copies.py has all that is different in it."""
    path = root / "book" / "one_head.ipynb"
    chapter = notebooks.read(path)
    answer = new_output("stream", text="4")
    chapter.cells.append(new_code_cell("2 + 2", metadata={"tags": ["predict"]}, outputs=[answer]))
    chapter.cells.append(new_code_cell("assert True", metadata={"tags": ["claims", "remove-cell"]}))
    notebooks.write(path, chapter)
    lab.prepare(root)
    mine = notebooks.read(root / lab.FOLDER / "book" / "one_head.ipynb")
    assert [cell.source for cell in mine.cells[2:]] == ["2 + 2"]
    assert "<details>" in mine.cells[2].outputs[0].data["text/html"]
    assert lab.prepare(root) == []
    chapter.cells[0].source += " More."
    notebooks.write(path, chapter)
    assert lab.prepare(root) == ["my-exercises/book/one_head.ipynb: brought up to date; nobody had begun it"]
    assert notebooks.read(root / lab.FOLDER / "book" / "one_head.ipynb").cells[0].source.endswith("More.")


def test_an_exercises_links_lead_to_the_copies_of_chapters(root, copy):
    publish(root, "See [chapter 7](../book/one_head.ipynb).")
    lab.prepare(root)
    assert "[chapter 7](book/one_head.ipynb)" in notebooks.read(copy).cells[0].source
    publish(root, "See [chapter 7](../book/one_head.ipynb) again.")
    assert lab.prepare(root) == [f"my-exercises/{COPY}: brought up to date; nobody had begun it"]
