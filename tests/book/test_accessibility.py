"""axe-core on each page of the book, in both colour schemes: nothing serious, nothing critical."""

from __future__ import annotations

from typing import Any

import pytest

from browsers import axe

pytestmark = pytest.mark.no_arrays

# All rules on the light page; on the dark one again those that a colour can break.
RULES = {"light": {}, "dark": {"runOnly": ["color-contrast", "link-in-text-block"]}}
SET_SCHEME = """scheme => {
  document.documentElement.dataset.mode = scheme;
  document.documentElement.dataset.theme = scheme;
}"""

# A colour of code is looked at once in each kind of box: thousands of words of it take axe most of its time.
ONE_OF_EACH_COLOUR = """() => {
  const seen = new Set();
  for (const word of document.querySelectorAll("div.highlight pre span")) {
    const box = word.closest(".cell_input, .cell_output, .cell_markdown");
    const kind = word.className + " in " + (box ? box.className : "text");
    if (seen.has(kind)) word.replaceWith(word.textContent); else seen.add(kind);
  }
}"""


def serious_faults(page: Any, scheme: str) -> str:
    """What axe-core finds on a page in a colour scheme, in words; empty if that is nothing serious."""
    page.add_style_tag(content="* {transition: none !important}")  # no colour half way between two
    page.evaluate(SET_SCHEME, scheme)
    page.evaluate(ONE_OF_EACH_COLOUR)
    found = axe(page, options={"resultTypes": ["violations"], **RULES[scheme]})
    return "\n".join(
        f"{one['id']} ({one['impact']}), {len(one['nodes'])} times: {one['help']}\n  {node['html'][:200]}\n"
        f"  {node['failureSummary']}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:1]
    )


@pytest.mark.parametrize("name", ["arrays", "index"])
def test_all_that_is_said_stands_in_a_landmark(reader: Any, name: str):
    only = {"runOnly": ["region", "landmark-unique", "landmark-no-duplicate-banner"]}
    found = axe(reader(name), options=only)
    assert [node["html"] for one in found for node in one["nodes"]] == []


@pytest.mark.parametrize("width", [1280, 820, 390])
def test_a_title_does_not_touch_the_bar(reader: Any, width: int):
    page = reader("arrays", viewport={"width": width, "height": 844})
    bar, title = (page.locator(one).bounding_box() for one in (".bd-header-article", "article h1"))
    assert title["y"] - (bar["y"] + bar["height"]) >= 12


@pytest.mark.parametrize("scheme", RULES)
def test_nothing_serious(visited: Any, scheme: str):
    if found := serious_faults(visited.page, scheme):
        pytest.fail(found, pytrace=False)


@pytest.mark.parametrize("scheme", RULES)
@pytest.mark.parametrize("name", ["book/arrays", "exercises/arrays"])
def test_nothing_serious_where_cells_run(runner: Any, name: str, scheme: str):
    page = runner(name)
    page.get_by_role("button", name="Run cell 1", exact=True).click()
    page.locator(".course-run-status", has_text="ran here in").first.wait_for()
    if name.startswith("book"):
        page.get_by_role("button", name="Edit cell 2", exact=True).click()
    page.locator(".course-python summary").dispatch_event("click")
    if found := serious_faults(page, scheme):
        pytest.fail(found, pytrace=False)
