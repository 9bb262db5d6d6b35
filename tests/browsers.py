"""The browser of the tests that look at pages: found on this machine, or a reason to skip."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest


def skip(reason: str) -> NoReturn:
    """Skip the test; where MINIGRAD_REQUIRE_BROWSER=1 promises that nothing is missing, fail it."""
    if os.environ.get("MINIGRAD_REQUIRE_BROWSER") == "1":
        pytest.fail(f"MINIGRAD_REQUIRE_BROWSER=1, but {reason}", pytrace=False)
    pytest.skip(reason)


def open_browser() -> Iterator[Any]:
    """A headless Chromium, or a reason to skip."""
    from book.make import chromium  # the tests of the engine need neither

    if why := chromium.missing():
        skip(why)
    with chromium.opened() as browser:
        yield browser


def axe(page: Any, **asked: Any) -> list[dict[str, Any]]:
    """What axe-core finds wrong on a page. asked: `context`, `options`."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        skip("axe-playwright-python is not installed")
    return Axe().run(page, **asked).response["violations"]


def wait_for(page: Any, expression: str, arg: Any = None, seconds: float = 30.0) -> None:
    """Until an expression is true in a page, or fail. (Playwright's own way is an eval, which the pages forbid.)"""
    end = time.monotonic() + seconds
    while not page.evaluate(expression, arg):
        assert time.monotonic() < end, f"never true: {expression}"
        page.wait_for_timeout(50)


@contextlib.contextmanager
def opened(browser: Any, html: str) -> Iterator[Any]:
    """A page with this in its body; fails at the end if a script of it failed."""
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_content(f"<body>{html}</body>")
    yield page
    page.close()
    assert not errors
