"""axe-core on each page of the book, in both colour schemes: nothing serious, nothing critical."""

from __future__ import annotations

from typing import Any

import pytest
from browsers import skip

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


@pytest.mark.parametrize("scheme", RULES)
def test_nothing_serious(visited: Any, scheme: str):
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        skip("axe-playwright-python is not installed")
    visited.page.add_style_tag(content="* {transition: none !important}")  # no colour half way between two
    visited.page.evaluate(SET_SCHEME, scheme)
    visited.page.evaluate(ONE_OF_EACH_COLOUR)
    results = Axe().run(visited.page, options={"resultTypes": ["violations"], **RULES[scheme]}).response
    found = [
        f"{one['id']} ({one['impact']}), {len(one['nodes'])} times: {one['help']}\n  {node['html'][:200]}\n"
        f"  {node['failureSummary']}"
        for one in results["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:1]
    ]
    if found:
        pytest.fail("\n".join(found), pytrace=False)
