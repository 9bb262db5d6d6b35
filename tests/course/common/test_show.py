"""The library's source on the page."""

from __future__ import annotations

import pytest

from bert_course.common import show as module
from bert_course.common.show import beside, show
from minigrad import backend

pytestmark = pytest.mark.no_arrays


def test_a_package_is_shown_with_its_own_file():
    assert "*From `minigrad/backend/__init__.py`:*" in show(backend)._repr_markdown_()[0]
    assert "*From `book/bert_course/common/show.py`:*" in show(show)._repr_markdown_()[0]


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
