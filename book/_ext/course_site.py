"""What the book's site needs beyond jupyter-book's settings; a Sphinx extension that _config.yml names."""

from __future__ import annotations

from typing import Any


def no_dead_buttons(app: Any, config: Any) -> None:
    """Without the repository's address there is nothing to launch: no Binder or Colab button."""
    if not config.html_theme_options.get("repository_url"):
        config.html_theme_options["launch_buttons"] = {}


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("config-inited", no_dead_buttons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
