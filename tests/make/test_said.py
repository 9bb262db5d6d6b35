"""What chapters say at their end, as plain text: the file that `make map` writes is that of today's pages."""

from __future__ import annotations

import json

import pytest

from book.make import said

pytestmark = pytest.mark.no_arrays


def test_the_file_is_that_of_todays_pages(monkeypatch, tmp_path):
    stored = said.TARGET.read_text("utf-8")
    monkeypatch.setattr(said, "TARGET", tmp_path / "said.json")
    said.main()
    assert json.loads(stored) == json.loads(said.TARGET.read_text("utf-8")), "make map"
