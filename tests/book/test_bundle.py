"""One script and one style sheet a page: what is bundled, and that nothing in a bundle leads nowhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from building import ROOT

sys.path.append(str(ROOT / "book" / "site" / "ext"))
bundle = pytest.importorskip("bundle")

pytestmark = pytest.mark.no_arrays

PAGE = """<html><head>
<link href="../_static/styles/theme.css?digest=1" rel="stylesheet" />
<link rel="stylesheet" type="text/css" href="../_static/a.css?v=2" />
<script>window.MathJax = {"options": {}}</script>
<script src="../_static/documentation_options.js"></script>
<script src="../_static/a.js?v=1"></script>
<script defer="defer" src="../_static/mathjax/tex-chtml.js"></script>
<script defer="defer" src="../_static/python/b.js"></script>
</head><body>BODY
<script src="../_static/scripts/c.js?digest=1"></script>
</body></html>"""


def test_styles_scripts_and_deferred_ones_become_one_file_each():
    lists: dict[str, list[str]] = {}
    text = bundle.bundled(PAGE.replace("BODY", '<span class="math">x</span>'), lists)
    assert sorted(lists.values()) == [
        ["_static/a.js", "_static/scripts/c.js"],
        ["_static/python/b.js"],
        ["_static/styles/theme.css", "_static/a.css"],
    ]
    assert re.findall(r'<(?:link|script)[^>]*(?:src|href)="\.\./_static/([\w/]+)', text) == [
        "bundle",  # the styles
        "documentation_options",
        "mathjax/tex",
        "bundle",  # what is deferred
        "bundle",  # at the end of the body
    ]
    assert text.index("BODY") if "BODY" in text else text.index('class="math"') < text.rindex("bundle-")


def test_a_page_without_a_formula_does_not_load_their_script():
    assert "mathjax" not in bundle.bundled(PAGE.replace("BODY", "none"), {}).lower()


def test_twice_is_as_once():
    lists: dict[str, list[str]] = {}
    once = bundle.bundled(PAGE, lists)
    kept = dict(lists)
    assert bundle.bundled(once, lists) == once
    assert lists == kept


def test_addresses_in_a_style_are_those_beside_it(tmp_path: Path):
    (tmp_path / "_static" / "styles").mkdir(parents=True)
    (tmp_path / "_static" / "base.css").write_text("b { background: url('b.png') }")
    (tmp_path / "_static" / "styles" / "theme.css").write_text(
        '@import "../base.css";\na { src: url("../fonts/x.woff2"); mask: url(data:x); border: url(y.svg) }'
    )
    text = bundle.joined(tmp_path, ["_static/styles/theme.css"])
    assert "@import" not in text
    assert re.findall(r"url\([^)]*\)", text) == [
        "url('b.png')",
        'url("fonts/x.woff2")',
        "url(data:x)",
        "url(styles/y.svg)",
    ]


def test_a_page_of_the_site_loads_few_files(site: Path):
    for name, most in (("book/index", 4), ("book/one_head", 4)):
        text = (site / f"{name}.html").read_text(encoding="utf-8")
        assert len(re.findall(r"<link[^>]*stylesheet", text)) == 1
        assert len(re.findall(r"<script[^>]*\bsrc=", text)) <= most
    assert "mathjax/" not in (site / "book" / "index.html").read_text(encoding="utf-8")
    assert "mathjax/" in (site / "book" / "one_head.html").read_text(encoding="utf-8")


def test_what_a_bundle_asks_for_is_there(site: Path):
    found = 0
    for style in site.glob("_static/bundle-*.css"):
        for address in re.findall(r"""url\(["']?([^"')]+)["']?\)""", style.read_text(encoding="utf-8")):
            if not address.startswith(("data:", "#")):
                path = style.parent / address.partition("?")[0].partition("#")[0]
                missing = not path.exists() and "font-awesome" not in address and "fontawesome" not in address
                assert not missing, f"{style.name} asks for {address}"
                found += 1
    assert found >= 6


def test_the_courses_faces_are_used(visited: Any):
    if visited.name != "book/one_head":
        pytest.skip("of one page")
    page = visited.page
    faces = page.evaluate(
        "document.fonts.ready.then(() => [...document.fonts].filter((f) => f.status === 'loaded').map((f) => f.family))"
    )
    assert {name.strip('"') for name in faces} >= {"Course Sans", "Course Mono"}
