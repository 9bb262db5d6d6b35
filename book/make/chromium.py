"""The browser that prints pages and looks at them: a Chromium or Chrome of this machine, driven by Playwright."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
from collections.abc import Iterator
from typing import Any

# The first has no windows, and takes two thirds of the processor's time of the others.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome", "msedge",
         "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")  # fmt: skip


def missing() -> str:
    """What keeps `opened` from opening one, as a sentence for a person; "" if nothing does."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed"
    if not _program():
        return "there is no Chromium on this machine; on Debian: apt-get install chromium-headless-shell"
    return ""


def _program() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextlib.contextmanager
def opened() -> Iterator[Any]:
    """A browser without a window, one a process, closed in the end. RuntimeError where there is none."""
    if why := missing():
        raise RuntimeError(why)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_program(), args=["--no-sandbox"])
        yield browser
        browser.close()
