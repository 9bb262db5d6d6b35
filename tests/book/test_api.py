"""The API reference: each public name has its entry, and a docstring becomes what it means."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import pytest
from building import ROOT

sys.path.append(str(ROOT / "book" / "site" / "ext"))
from api import as_rst

pytestmark = pytest.mark.no_arrays

PAGES = ROOT / "book" / "api"
ALL_OF = ("minigrad.text", "minigrad.training")  # packages that list no names: all of their modules


def public_names(module: str) -> set[str]:
    """What a module lists, or what it defines without an underscore; its packages have entries of their own."""
    found = importlib.import_module(module)
    names = getattr(found, "__all__", None) or [
        name
        for name, thing in vars(found).items()
        if name[0] != "_" and getattr(thing, "__module__", None) == module
    ]
    return {
        f"{module}.{name}" for name in names if not isinstance(getattr(found, name), ModuleType | TypeVar)
    }


def modules() -> list[str]:
    return re.findall(r"automodule:: (\S+)", "".join(page.read_text("utf-8") for page in PAGES.glob("*.md")))


def test_each_public_name_has_its_entry(site: Path):
    entries = set()
    for page in PAGES.glob("*.md"):
        built = (site / "book" / "api" / f"{page.stem}.html").read_text(encoding="utf-8")
        entries |= set(re.findall(r'<dt class="sig[^>]*id="([\w.]+)"', built))
    names = set().union(*map(public_names, modules()))
    assert len(names) > 200
    assert names - entries == set()


def test_each_module_of_a_package_without_a_list_is_there():
    for package in ALL_OF:
        folder = ROOT / package.replace(".", "/")
        expected = {f"{package}.{file.stem}" for file in folder.glob("[a-z]*.py")}
        assert expected <= set(modules())


def test_a_name_and_a_colon_begin_a_field():
    docstring = (
        "Do it with `x`.\n\nx: (B, L), or\n    none. y (L,): a `dict`; n, m: sizes. Raises ValueError: if not.\n\n"
        "z: no parameter."
    )
    assert as_rst(docstring, {"x", "y", "n", "m"}).split("\n") == [
        "Do it with ``x``.",
        "",
        ":param x: (B, L), or none.",
        ":param y: (L,) a ``dict``;",
        ":param n,m: sizes. Raises ValueError: if not.",
        "",
        "z: no parameter.",
    ]


def test_marks_of_rst_are_plain_and_a_session_stays():
    docstring = "Takes *args, a_ and |x|.\n\nn: N.\n\n>>> 2 * 3\n6"
    assert as_rst(docstring, {"n"}) == "Takes \\*args, a\\_ and \\|x\\|.\n\n:param n: \\N.\n\n>>> 2 * 3\n6"
