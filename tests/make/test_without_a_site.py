"""The tools that read the built site, where there is none: one line that says so, before anything is begun."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
pytest.importorskip("pikepdf", reason="pikepdf is not installed")
pytest.importorskip("bs4", reason="bs4 is not installed (it comes with Jupyter Book)")

from book.make import chromium, handouts, pdf, serve, site, slides

pytestmark = pytest.mark.no_arrays

ROOT = Path(__file__).resolve().parents[2]
TOOLS = {
    "serve": (serve, lambda folder: [folder]),
    "pdf": (pdf, lambda folder: [folder, "course.pdf"]),
    "slides": (slides, lambda folder: [folder, "one_head"]),
    "handouts": (handouts, lambda folder: [folder, "one_head"]),
    "site": (site, lambda folder: [folder, "node_modules"]),
}
each_tool = pytest.mark.parametrize(("module", "arguments"), TOOLS.values(), ids=TOOLS)


def said_by(module: ModuleType, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a tool says when it refuses: its last line, and nothing on standard output."""
    try:
        status = module.main(arguments)
    except SystemExit as ended:  # argparse's way, with how to call it above
        status = ended.code
    assert status in (1, 2)
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert len(lines) == 1 or lines[0].startswith("usage:")
    return lines[-1]


@each_tool
@pytest.mark.parametrize("what", ["an empty folder", "a file", "a folder named index.html"])
def test_a_folder_without_a_site_is_named(module, arguments, what, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    folder = tmp_path / "html"
    if what == "a file":
        folder.write_text("no folder")
    else:
        folder.mkdir()
    if "index" in what:
        (folder / "index.html").mkdir()
    before = sorted(tmp_path.rglob("*"))
    said = said_by(module, arguments(str(folder)), capsys)
    assert f"there is no site in {folder}" in said
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("tool", ["pdf", "slides", "site"])
@pytest.mark.parametrize("page", ["", "<html><body><p>Another page.</p></body></html>"])
def test_another_site_is_refused(tool, page, tmp_path, monkeypatch, capsys):
    module, arguments = TOOLS[tool]
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(chromium, "missing", lambda: "")
    monkeypatch.setattr(chromium, "opened", nullcontext)  # it is refused before a page is opened
    (tmp_path / "book").mkdir()
    (tmp_path / "index.html").write_text(page)
    if page:
        for name in ("index", "one_head"):
            (tmp_path / "book" / f"{name}.html").write_text(page)
    assert said_by(module, arguments(str(tmp_path)), capsys)
