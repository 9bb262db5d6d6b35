"""Pages that were read, without a network: a service worker, which has to stand above all that it answers for."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

WORKER = Path(__file__).parent / "static" / "service_worker.js"


def add_worker(app: Any, error: Exception | None) -> None:
    """Put it into the site's root; book/site/static/offline.js registers it."""
    if error is None and app.builder.name == "html":
        shutil.copyfile(WORKER, Path(app.outdir) / WORKER.name)


def setup(app: Any) -> None:
    """Sphinx calls this."""
    app.connect("build-finished", add_worker)
