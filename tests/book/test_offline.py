"""Pages that were read, without a network: the service worker of the site."""

from __future__ import annotations

from typing import Any

import pytest
from test_running_cells import button, output, run, said

from browsers import wait_for

pytestmark = pytest.mark.no_arrays

PAGE = "book/arrays"
CONTROLLED = "Boolean(navigator.serviceWorker.controller)"
KEPT = "async () => (await (await caches.open('course-site')).keys()).map(({ url }) => url)"


def kept(page: Any, name: str) -> None:
    """Wait until the browser keeps this file of the site."""
    wait_for(page, f"(name) => ({KEPT})().then((urls) => urls.some((url) => url.endsWith(name)))", name)


def test_a_page_that_was_read_once_is_there_without_a_network(runner: Any, running_address: str):
    page = runner(PAGE, service_workers="allow")
    run(page, "plain")
    kept(page, f"{PAGE}.html")
    kept(page, "worker.js")
    kept(page, "cells/arrays.json")
    page.context.set_offline(True)
    page.reload()
    page.locator(".course-python").wait_for(state="attached")
    assert page.evaluate("getComputedStyle(document.querySelector('.course-run')).display") == "flex"
    run(page, "uses")
    assert output(page, "uses") == "a is 1"


def test_a_page_that_was_not_read_says_so(runner: Any, running_address: str):
    page = runner(PAGE, service_workers="allow")
    wait_for(page, CONTROLLED)
    page.context.set_offline(True)
    page.goto(f"{running_address}exercises/arrays.html")
    assert page.locator("h1").inner_text() == "You are offline"


def test_with_a_network_every_page_is_that_of_today(runner: Any, running_address: str, running_site: Any):
    page = runner(PAGE, service_workers="allow")
    kept(page, f"{PAGE}.html")
    file = running_site / f"{PAGE}.html"
    text = file.read_text(encoding="utf-8")
    try:
        file.write_text(text.replace("<title>", "<title>Today ", 1), encoding="utf-8")
        page.reload()
        assert page.title().startswith("Today ")
    finally:
        file.write_text(text, encoding="utf-8")


def test_what_an_older_python_was_made_of_is_forgotten(runner: Any, running_address: str):
    page = runner(PAGE, service_workers="allow")
    wait_for(page, CONTROLLED)
    old = f"{running_address}_static/python/core/python.0123456789ab.gz"
    page.evaluate("async (url) => (await caches.open('course-site')).put(url, new Response('old'))", old)
    assert page.evaluate("async (url) => (await fetch(url)).text()", old) == "old"  # never asked for again
    run(page, "plain")  # which reads site.json
    wait_for(page, f"(url) => ({KEPT})().then((urls) => !urls.includes(url))", old)


def test_what_a_reader_saves_elsewhere_is_not_kept(runner: Any, running_site: Any):
    page = runner(PAGE, service_workers="allow")
    wait_for(page, CONTROLLED)
    (packed,) = (running_site / "_static").glob("*.zip")
    get = "async (url) => (await (await fetch(url)).blob()).size"
    assert page.evaluate(get, f"../_static/{packed.name}") == packed.stat().st_size
    assert page.evaluate(get, "../_static/logo.svg") > 0
    kept(page, "logo.svg")
    assert not [url for url in page.evaluate(f"({KEPT})()") if url.endswith(".zip")]


def test_a_browser_that_refuses_the_worker_reads_on(runner: Any):
    page = runner("book/index", service_workers="allow")
    page.evaluate("navigator.serviceWorker.ready.then((one) => one.unregister())")
    refuse = "navigator.serviceWorker.register = () => Promise.reject(new DOMException('refused', 'SecurityError'))"
    page.add_init_script(refuse)
    page = runner(PAGE)
    assert not page.evaluate(CONTROLLED)
    run(page, "plain")
    assert output(page, "plain") == "fresh"


def test_a_page_that_was_loaded_without_a_network_runs_when_it_is_back(runner: Any):
    """After a reload a browser may take itself to be online."""
    page = runner(PAGE, service_workers="allow")
    wait_for(page, CONTROLLED)
    page.reload()
    for name in (f"{PAGE}.html", "cells/arrays.json"):
        kept(page, name)
    page.add_init_script("Object.defineProperty(navigator, 'onLine', { get: () => true })")
    page.context.set_offline(True)
    page.reload()
    button(page, "plain", "Run").click()
    said(page, "plain", "you are offline, and Python is not here yet: it will start when you are back")
    page.context.set_offline(False)
    said(page, "plain", "ran here in")
    assert output(page, "plain") == "fresh"


def test_searches_are_one_page(runner: Any, running_address: str):
    page = runner(PAGE, service_workers="allow")
    wait_for(page, CONTROLLED)
    for words in ("one", "two"):
        page.goto(f"{running_address}search.html?q={words}")
        kept(page, "search.html")
        page.wait_for_timeout(300)
    assert [url for url in page.evaluate(f"({KEPT})()") if "search.html" in url] == [
        f"{running_address}search.html"
    ]
    page.context.set_offline(True)
    page.goto(f"{running_address}search.html?q=three")
    assert page.locator("h1").first.inner_text() != "You are offline"


def test_a_site_that_was_entered_by_a_search_keeps_it_as_one_page(runner: Any, running_address: str):
    page = runner("book/index", service_workers="allow")
    page = page.context.browser.new_context(service_workers="allow").new_page()
    page.goto(f"{running_address}search.html?q=one")
    kept(page, "search.html")
    page.context.close()
