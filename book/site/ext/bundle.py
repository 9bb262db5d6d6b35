"""One script and one style sheet a page, in place of thirty: what a page loads in a row becomes a file of its own.

Pages with the same list share the file. Its name comes from the list, so that a page that is not written again still
finds today's scripts; which lists there are stands in _static/bundles.json. Formulas' script is left out where there is
no formula.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from pathlib import Path
from typing import Any

STYLE = re.compile(r'\s*<link\b[^>]*\bhref="((?:\.\./)*)(_static/[^"?]+\.css)(?:\?[^"]*)?"[^>]*>')
SCRIPT = re.compile(
    r'\s*<script\b([^>]*)\bsrc="((?:\.\./)*)(_static/[^"?]+\.js)(?:\?[^"]*)?"([^>]*)>\s*</script>'
)
APART = ("documentation_options.js", "mathjax/", "language_data.js", "searchtools.js", "bundle-")
PRELOAD = re.compile(r'\s*<link rel="preload" as="script"[^>]*>')
FORMULAS = re.compile(r"\s*<script>window\.MathJax = .*?</script>|\s*<script[^>]*mathjax/[^>]*></script>")
IMPORT = re.compile(r"""@import\s+(?:url\()?["']?([^"');]+)["']?\)?\s*;""")
URL = re.compile(r"""url\((["']?)(?!data:|https?:|/|#)([^"')]+)\1\)""")


def bundled(text: str, lists: dict[str, list[str]]) -> str:
    """A page's HTML with its styles in one link, its scripts in one at the end of the body, and those that are
    deferred in another. New lists are added to `lists`, by the bundle's name."""
    if not re.search(r'class="[^"]*\bmath\b', text):
        text = FORMULAS.sub("", text)
    text = PRELOAD.sub("", text)
    styles = list(STYLE.finditer(text))
    if styles and not any("bundle-" in one[2] for one in styles):
        link = f'\n<link rel="stylesheet" href="{styles[0][1]}{_name(lists, [one[2] for one in styles], "css")}">'
        text = _replaced(text, styles, link, styles[0])
    found = [one for one in SCRIPT.finditer(text) if not any(apart in one[3] for apart in APART)]
    for late in (False, True):
        some = [one for one in found if ("defer" in one[1] + one[4]) == late]
        if some:
            name = _name(lists, [one[3] for one in some], "js")
            tag = f'\n<script{" defer" * late} src="{some[0][2]}{name}"></script>'
            text = _replaced(text, some, tag, some[-1])
            found = [one for one in SCRIPT.finditer(text) if not any(apart in one[3] for apart in APART)]
    return text


def _replaced(text: str, tags: list[re.Match[str]], new: str, place: re.Match[str]) -> str:
    """The text without these tags, and with a new one at the place of one of them."""
    for tag in reversed(tags):
        text = text[: tag.start()] + (new if tag is place else "") + text[tag.end() :]
    return text


def _name(lists: dict[str, list[str]], files: list[str], kind: str) -> str:
    name = f"_static/bundle-{hashlib.sha256(' '.join(files).encode()).hexdigest()[:8]}.{kind}"
    lists[name] = files
    return name


def joined(out: Path, files: list[str]) -> str:
    """The files, one after the other; what a style sheet names beside itself is found from _static."""

    def moved(file: str, text: str) -> str:
        folder = posixpath.relpath(posixpath.dirname(file), "_static")
        return URL.sub(
            lambda url: f"url({url[1]}{posixpath.normpath(posixpath.join(folder, url[2]))}{url[1]})", text
        )

    def style(file: str) -> str:
        # Text, address, text, address, …, text
        pieces = IMPORT.split((out / file).read_text(encoding="utf-8"))
        for i in range(0, len(pieces), 2):
            pieces[i] = moved(file, pieces[i])
        for i in range(1, len(pieces), 2):
            pieces[i] = style(posixpath.normpath(posixpath.join(posixpath.dirname(file), pieces[i])))
        return "".join(pieces)

    texts = []
    for file in files:
        if file.endswith(".css"):
            texts.append(style(file))
        else:
            texts.append((out / file).read_text(encoding="utf-8").rstrip() + "\n;")
    return "\n".join(texts) + "\n"


def bundle(app: Any, error: Exception | None) -> None:
    """Bundle the pages that were written, and write every bundle again."""
    if error is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    kept = out / "_static" / "bundles.json"
    lists = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for page in out.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        new = bundled(text, lists)
        if new != text:
            page.write_text(new, encoding="utf-8")
    lists = {name: files for name, files in lists.items() if all((out / file).exists() for file in files)}
    for name, files in lists.items():
        (out / name).write_text(joined(out, files), encoding="utf-8")
    kept.write_text(json.dumps(lists, indent=1), encoding="utf-8")


def setup(app: Any) -> None:
    """Sphinx calls this."""
    # After the pages were cleaned, before they get their policy
    app.connect("build-finished", bundle, priority=940)
