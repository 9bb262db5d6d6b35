"""The library's source on the page."""

from __future__ import annotations

import inspect

import pytest

from minigrad import ops
from minigrad.bert import attention
from minigrad.course import show as module
from minigrad.course.show import show

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
    assert shown._repr_markdown_()[1] == {"source": {"module": "minigrad.course.show", "name": ""}}


@pytest.mark.parametrize("thing", [3, "softmax", None, len])
def test_what_has_no_source_is_named(thing):
    with pytest.raises(TypeError, match=r"show\(\) takes a function, a class or a module"):
        show(thing)
