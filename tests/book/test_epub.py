"""The course as an EPUB: what a reader without scripts needs is in it, and what it would trip over is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from building import JUPYTER_BOOK, ROOT

from browsers import skip

pytest.importorskip("sphinx", reason="sphinx is not installed (it comes with jupyter-book)")
sys.path.append(str(ROOT / "book" / "site" / "ext"))

from bert_course.common.widgets import Frame, player
from book.make import chromium

pytestmark = pytest.mark.no_arrays

HTML, SVG, MATH = (f"{{http://www.w3.org/{name}}}" for name in ("1999/xhtml", "2000/svg", "1998/Math/MathML"))
DRAWING = '<svg viewBox="0 0 1 1"><rect id="r" class="c" width="1"/><use href="#r"/></svg>'
PLAYER = player(
    [Frame("First", DRAWING, "one"), Frame("Last", "<svg viewBox='0 0 9 9'/>", "two")], "step", "A", 0
)
BODY = f"""<section id="s"><h1>Title<a class="headerlink" href="#s">#</a></h1>
<p>It is <span class="math">\\(x^2 &lt; \\sqrt{{y}}\\)</span>, see <a href="two.html#a">two</a>, <a href="https://e.org/x.html">e</a>.</p>
<div class="cell"><details><summary><span>Show code cell source</span></summary><pre>x &lt; 1</pre></details>
<div class="course-prediction" data-right="1" hidden><button>yes</button><button>no &amp; yes</button></div>
<div class="cell_output"><style>.c {{fill: rgb(1, 2, 3)}}</style>{DRAWING}{DRAWING}<script>var a = 1 &lt; 2;</script>
{PLAYER._repr_html_()}
</div></div></section>"""


@pytest.fixture(scope="module")
def page() -> ElementTree.Element:
    """The body as a tree of XML, as a page of the EPUB has it."""
    if why := chromium.missing():
        skip(why)
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from epub import Reader\n"
        "reader = Reader(); print(reader.read(sys.stdin.read())); reader.close()"
    )
    # In a process of its own, as Playwright has one browser in each
    command = [sys.executable, "-c", code, str(ROOT), str(ROOT / "book" / "site" / "ext")]
    written = subprocess.run(command, input=BODY, capture_output=True, text=True, check=True, cwd=ROOT)
    return ElementTree.fromstring(f'<body xmlns="{HTML[1:-1]}">{written.stdout}</body>')


def test_a_page_is_xml_that_needs_no_hand(page: ElementTree.Element):
    text = "".join(page.itertext())
    assert not [
        one.tag for one in page.iter() if one.tag.removeprefix(HTML) in ("script", "style", "button", "input")
    ]
    assert [one.text for one in page.iter(f"{MATH}mi")] == ["x", "y"]
    assert [one.get("href") for one in page.iter(f"{HTML}a")] == ["two.xhtml#a", "https://e.org/x.html"]
    assert "x < 1" not in text  # code that the page folds
    assert "1 a) yes \xa0 b) no & yes" in text
    assert text.rstrip().endswith("Answers to the predictions. 1: b) no & yes.")
    assert "Last two" in text
    assert "First" not in text


def test_drawings_keep_their_colours_and_share_no_names(page: ElementTree.Element):
    rectangles = list(page.iter(f"{SVG}rect"))
    assert [one.get("fill") for one in rectangles] == ["rgb(1, 2, 3)"] * 2
    names = [one.get("id") for one in rectangles]
    assert len(set(names)) == 2
    assert [one.get("href") for one in page.iter(f"{SVG}use")] == [f"#{name}" for name in names]
    assert next(page.iter(f"{SVG}svg")).get("viewBox") == "0 0 1 1"


@pytest.mark.slow
def test_the_course_as_an_epub(tmp_path: Path):
    """Each page is XML, each link leads somewhere, and epubcheck finds nothing."""
    if why := chromium.missing():
        skip(why)
    kind = ["--builder", "custom", "--custom-builder", "epub", "--path-output", str(tmp_path)]
    done = subprocess.run(
        [*JUPYTER_BOOK, "build", "-W", "-n", "--keep-going", "-q", *kind, str(ROOT)],
        capture_output=True,
        text=True,
        env={**os.environ, "COURSE_EPUB": "1", "PYTHONWARNINGS": "ignore", "NO_COLOR": "1"},
    )
    assert done.returncode == 0, done.stderr
    (made,) = tmp_path.rglob("*.epub")
    with zipfile.ZipFile(made) as packed:
        names = set(packed.namelist())
        pages = {name: ElementTree.fromstring(packed.read(name)) for name in names if name.endswith(".xhtml")}
        assert "mathml" in packed.read("content.opf").decode()
    assert len(pages) > 45
    known = {name: {one.get("id") for one in page.iter()} for name, page in pages.items()}
    dead = []
    for name, page in pages.items():
        for link in page.iter(f"{HTML}a"):
            file, _, part = unquote(link.get("href", "")).partition("#")
            if ":" in file:
                continue
            to = os.path.normpath(PurePosixPath(name).parent / file) if file else name
            if to not in names or (part and part not in known[to]):
                dead.append((name, link.get("href")))
    assert dead == []
    checker = Path("/usr/share/java/epubcheck.jar")
    if not checker.exists() or not shutil.which("java"):
        pytest.skip("all but epubcheck, which is not installed (on Debian: apt-get install epubcheck)")
    checked = subprocess.run(["java", "-jar", str(checker), str(made)], capture_output=True, text=True)
    assert "No errors or warnings detected" in checked.stdout + checked.stderr, checked.stderr
