"""A small notebook with which every rule is content, and ways to spoil it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (it comes with JupyterLab)")
notebooks = pytest.importorskip("book._make.notebooks", reason="nbclient is not installed (as nbformat)")


def sound() -> Any:
    """A notebook with which every rule is content."""
    v4 = nbformat.v4
    output = v4.new_output("stream", name="stdout", text="3 rows, 0.5 nats, (1024, 768)\n")
    notebook = v4.new_notebook(
        cells=[
            v4.new_markdown_cell(
                "# Title\n\n*`pip install` this.* In 2017, section 3.2.1, about 0.02, $512$ and `512`."
            ),
            v4.new_code_cell("print()", execution_count=1, outputs=[output]),
        ]
    )
    notebook.metadata.update(kernelspec=notebooks.KERNEL, course={})
    return notebook


def with_output(**output: Any) -> Callable[[Any], None]:
    """Give the code cell this output."""

    def change(notebook: Any) -> None:
        notebook.cells[1].outputs = [nbformat.v4.new_output(**output)]

    return change


def printed(text: str) -> Callable[[Any], None]:
    """Let the code cell print this text."""
    return with_output(output_type="stream", name="stdout", text=text)


def displayed(kind: str, value: str, **metadata: Any) -> Callable[[Any], None]:
    """Let the code cell display this."""
    return with_output(output_type="display_data", data={kind: value, "text/plain": "x"}, metadata=metadata)


def written(text: str) -> Callable[[Any], None]:
    """Add this sentence to the text."""

    def change(notebook: Any) -> None:
        notebook.cells[0].source += f" {text}"

    return change


def source(text: str) -> Callable[[Any], None]:
    """Let this be the code."""

    def change(notebook: Any) -> None:
        notebook.cells[1].source = text

    return change
