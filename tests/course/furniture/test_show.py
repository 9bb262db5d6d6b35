"""The library's source on the page."""

from __future__ import annotations

import inspect

import pytest

from minigrad import backend, ops
from minigrad.bert import attention
from minigrad.course.furniture import show as module
from minigrad.course.furniture.show import beside, show

pytestmark = pytest.mark.no_arrays


def test_a_function_is_shown_with_the_file_that_it_is_from():
    markdown, metadata = show(ops.softmax)._repr_markdown_()
    source = inspect.getsource(ops.softmax).rstrip()
    assert markdown == f"*From `minigrad/ops/fused.py`:*\n\n```python\n{source}\n```"
    assert metadata == {"source": {"module": "minigrad.ops.fused", "name": "softmax"}}


def test_a_method_is_dedented():
    assert repr(show(attention.BertSelfAttention.forward)).startswith("def forward(self, x: Tensor")


def test_a_module_is_shown_whole():
    shown = show(module)
    assert repr(shown) == inspect.getsource(module).rstrip()
    assert shown._repr_markdown_()[1] == {"source": {"module": "minigrad.course.furniture.show", "name": ""}}


def test_a_package_is_shown_with_its_own_file():
    assert "*From `minigrad/backend/__init__.py`:*" in show(backend)._repr_markdown_()[0]


def test_some_lines_of_a_function_are_shown_with_dots_for_the_rest():
    markdown, metadata = show(module.show, lines=(8, 9))._repr_markdown_()
    source = inspect.getsource(module.show).split("\n")
    assert "\n".join(["    ...", *source[7:9], "    ..."]) in markdown
    assert metadata["source"]["lines"] == [8, 9]
    assert repr(show(module.show, lines=(1, 1))) == source[0] + "\n..."


@pytest.mark.parametrize("lines", [(0, 1), (3, 2), (1, 1000)])
def test_lines_that_are_not_there_are_named(lines):
    with pytest.raises(ValueError, match=r"lines must lie within 1 … \d+, got"):
        show(module.show, lines=lines)


@pytest.mark.parametrize("thing", [3, "softmax", None, len])
def test_what_has_no_source_is_named(thing):
    with pytest.raises(TypeError, match=r"show\(\) takes a function, a class or a module"):
        show(thing)


def test_two_listings_stand_beside_each_other_and_what_differs_is_shaded():
    both = beside({"one": "a\nb < 1\n", "other": "a\n\n"})
    assert repr(both) == "one    other\na      a\nb < 1"
    page = both._repr_html_()
    assert page.count("<pre>") == 2
    assert '<span>a</span><span class="other">b &lt; 1</span></pre>' in page
    assert '<span>a</span><span class="other"></span></pre>' in page


@pytest.mark.parametrize("listings", [{"one": "a"}, {"one": "a", "other": "a\nb"}])
def test_listings_of_other_lengths_are_refused(listings):
    with pytest.raises(ValueError, match="two listings of one length"):
        beside(listings)
