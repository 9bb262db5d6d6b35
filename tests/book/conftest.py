"""The built book and a browser without a network, for the tests in this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from building import QUICK_PAGES, ROOT, SITE, build, pages

from serving import served

LOCAL = ("file:", "data:", "blob:")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # A page is opened once for all tests (`visited`); those of this file change its colours and its code.
    items.sort(key=lambda item: item.path.name == "test_accessibility.py")
    for item in items:
        # All of one site in one process, so that it is built once.
        for name in ("built", "small_site", "running_site"):
            if name in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(name))
                break


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The folder of the built book, and how its build ended (test_build.py judges that)."""
    output = tmp_path_factory.mktemp("site")
    done = build(ROOT, output)
    return output / "_build" / "html", done


@pytest.fixture(scope="session")
def site(built: tuple[Path, Any]) -> Path:
    """The folder with the built book, perhaps built with warnings."""
    folder, _ = built
    if not (folder / "index.html").exists():
        pytest.fail("there is no book to look at: see test_build.py", pytrace=False)
    return folder


@pytest.fixture(scope="session")
def small_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a built book with one of each thing that answers to the reader (small_book.py)."""
    pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
    import small_book

    folder = tmp_path_factory.mktemp("small")
    small_book.write(folder)
    done = build(folder, folder)
    if not (folder / "_build" / "html" / "book" / "arrays.html").exists():
        pytest.fail(done.stderr, pytrace=False)
    return folder / "_build" / "html"


@pytest.fixture(scope="session")
def running_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small site whose cells run, with a stand-in for Python (running_site.py)."""
    pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
    import running_site

    return running_site.write(tmp_path_factory.mktemp("running"))


@pytest.fixture(scope="session")
def running_address(running_site: Path) -> Iterator[str]:
    """Where that site is served."""
    with served(running_site) as address:
        yield address


@pytest.fixture
def runner(running_address: str, browser: Any) -> Iterator[Any]:
    """`runner("book/arrays")` opens a page of it over http, as `reader` does the small book's.

    `tab=True` opens it in a further tab, which sees what the others keep only after a while.
    At the end no page may have asked for anything outside of the site, and no script may have failed.
    """
    contexts: list[Any] = []
    wrong: list[str] = []

    def open_page(name: str, tab: bool = False, **settings: Any) -> Any:
        new = settings or not contexts
        if new:
            plain = {"viewport": {"width": 1280, "height": 900}, "service_workers": "block"}
            contexts.append(browser.new_context(**{**plain, **settings}))
            contexts[-1].set_default_timeout(10_000)
            contexts[-1].on("request", look)
        if new or tab:
            contexts[-1].new_page().on("pageerror", lambda error: wrong.append(f"script error: {error}"))
        page = contexts[-1].pages[-1]
        page.goto(f"{running_address}{name}.html", wait_until="load")
        page.evaluate(TYPESET)
        if name != "book/index":
            page.locator(".course-python").wait_for(state="attached")
        return page

    def look(request: Any) -> None:
        if not request.url.startswith((running_address, "data:", "blob:")):
            wrong.append(f"asked for {request.url}")

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture(scope="session")
def site_address() -> Iterator[str]:
    """Where the course is served that `make site` has built, with Python in its pages, for `make site-check`."""
    if os.environ.get("MINIGRAD_REQUIRE_SITE") != "1":
        pytest.skip("of the site with Python in its pages: make site-check")
    if not (SITE / "_static" / "python" / "site.json").exists():
        pytest.fail(f"{SITE} has no Python in its pages: make site", pytrace=False)
    with served(SITE) as address:
        yield address


@dataclass
class Visit:
    """A page open in the browser: what it asked of the network, and what it complained about."""

    name: str
    page: Any
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


TYPESET = """async () => {
  if (!document.querySelector(".math")) return;
  const end = Date.now() + 20000;
  const loaded = () => window.MathJax && MathJax.startup && MathJax.startup.promise;
  while (!loaded() && Date.now() < end) await new Promise(r => setTimeout(r, 20));
  await loaded();
}"""


@pytest.fixture(scope="session")
def visit(site: Path, browser: Any) -> Iterator[Any]:
    """`visit("book/index")` opens a page of the book, cut off from the network, with its formulas typeset."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    context.set_default_timeout(60_000)

    def open_page(name: str, query: str = "") -> Visit:
        page = context.new_page()
        seen = Visit(name, page)

        def answer(route: Any) -> None:
            if route.request.url.startswith(LOCAL):
                route.continue_()
            else:
                seen.requests.append(route.request.url)
                route.abort()

        page.route("**/*", answer)
        page.on("pageerror", lambda error: seen.errors.append(f"script error: {error}"))
        page.on("console", lambda m: seen.errors.append(f"console: {m.text}") if m.type == "error" else None)
        page.goto((site / f"{name}.html").as_uri() + query, wait_until="load")
        page.evaluate(TYPESET)
        return seen

    yield open_page
    context.close()


@pytest.fixture(scope="session")
def small_address(small_site: Path) -> Iterator[str]:
    """Where the small book is served."""
    with served(small_site) as address:
        yield address


@pytest.fixture
def reader(small_address: str, browser: Any) -> Iterator[Any]:
    """`reader("arrays")` opens a page of the small book in the test's one tab, which remembers the last.

    Settings (`viewport`) are another reader's, who remembers nothing. Over http, because what a page opened from a file
    has kept comes to the next one late or, on a busy machine, never (10 of 240 loads).
    """
    contexts = []

    def open_page(name: str, **settings: Any) -> Any:
        if settings or not contexts:
            contexts.append(browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **settings}))
            contexts[-1].new_page()
        page = contexts[-1].pages[0]
        page.goto(f"{small_address}book/{name}.html", wait_until="load")
        if settings.get("java_script_enabled", True):
            page.evaluate(TYPESET)
        return page

    yield open_page
    for context in contexts:
        context.close()


VISITED = [pytest.param(page, marks=() if page in QUICK_PAGES else pytest.mark.slow) for page in pages()]


@pytest.fixture(scope="session", params=VISITED)
def visited(request: pytest.FixtureRequest, visit: Any) -> Iterator[Visit]:
    """Each page of the book in turn, opened once: pytest sorts the tests by page."""
    opened = visit(request.param)
    yield opened
    opened.page.close()
