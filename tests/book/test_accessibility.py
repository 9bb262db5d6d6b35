"""axe-core on each page of the book, in both colour schemes: nothing serious, nothing critical."""

from __future__ import annotations

from typing import Any

import pytest

axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
)

pytestmark = pytest.mark.numpy_only("the book's pages are the same on each backend")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious(visited: Any, scheme: str):
    try:
        from axe_playwright_python import sync_playwright as axe
    except ImportError:
        skip("axe-playwright-python is not installed")
    visited.page.evaluate(
        "scheme => { document.documentElement.dataset.mode = document.documentElement.dataset.theme = scheme; }",
        scheme,
    )
    results = axe.Axe().run(visited.page).response
    found = [
        f"{one['id']} ({one['impact']}): {one['help']}\n    "
        + "\n    ".join(
            f"{node['html'][:150]}\n      {node['failureSummary'][-160:]}" for node in one["nodes"][:4]
        )
        for one in results["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert not found, "\n".join(found)
