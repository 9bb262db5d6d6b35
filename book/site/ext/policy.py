"""What a page may load: its own site's files and nothing else, which the browser is told in each page's head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Scripts and styles stand in the pages themselves too: those of the theme, of players and of figures. `file:` is for a
# site that is opened from the disk, and `data:` for small pictures. Python in a page is WebAssembly.
POLICY = "; ".join(
    [
        "default-src 'self' file:",
        "script-src 'self' file: 'unsafe-inline' 'wasm-unsafe-eval'",
        "style-src 'self' file: 'unsafe-inline'",
        "img-src 'self' file: data:",
        "font-src 'self' file: data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self' file:",
    ]
)


def add_policy(app: Any, error: Exception | None) -> None:
    """Put it first into the head of each page, before anything is loaded."""
    if error is None and app.builder.name == "html":
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            meta = f'<head><meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            if meta not in text:
                page.write_text(text.replace("<head>", meta, 1), encoding="utf-8")


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("build-finished", add_policy, priority=950)  # after the last page is written
