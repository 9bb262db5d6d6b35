"""What the book's site needs beyond jupyter-book's settings: a Sphinx extension that _config.yml names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any


def no_dead_buttons(app: Any, config: Any) -> None:
    """Without the repository's address there is nothing to launch: no Binder or Colab button."""
    if not config.html_theme_options.get("repository_url"):
        config.html_theme_options["launch_buttons"] = {}


# What the theme and sphinx-thebe put on each page that fails, loudly, on a page opened from disk: the preloading of
# icon fonts, which a browser refuses, and the settings of thebe, which is off (and would ask a CDN).
LOUD = re.compile(
    r'\s*<link rel="preload" as="font"[^>]*>'
    r"|\s*<link[^>]*/fontawesome/[^>]*>|\s*<script[^>]*/fontawesome/[^>]*></script>"  # icons.css draws its icons
    r"|\s*<script>(?:const|let|var) THEBE_JS_URL.*?</script>"
    r"|\s*<script[^>]*sphinx-thebe\.js[^>]*></script>"
    r'|\s*<script type="text/x-thebe-config">.*?</script>'
    r"|\s*<script>kernelName = .*?</script>",
    re.DOTALL,
)


def quiet(app: Any, error: Exception | None) -> None:
    """Take out of each page what can only fail."""
    if error is None and app.builder.name == "html":
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            page.write_text(LOUD.sub("", text), encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("config-inited", no_dead_buttons)
    app.connect("build-finished", quiet)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
