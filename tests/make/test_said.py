"""What chapters say at their end, as plain text: the file that `make map` writes is that of today's pages."""

from __future__ import annotations

import json

import pytest

from book._make import said

pytestmark = pytest.mark.no_arrays


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (r"so $1/\sqrt{d_k}$ is $QK^\top$", "so 1/√d_k is QKᵀ"),
        (r"with $\sqrt{n_{in}}\,\sigma$ and *both*", "with √n_in σ and both"),
        ("`p` of [chapter 8](many_heads.ipynb)", "p of chapter 8"),
        (r"$Z = \mathrm{softmax}(S)\,V$", "Z = softmax(S) V"),
    ],
)
def test_formulas_and_marks_become_letters(text, wanted):
    assert said.plain(text) == wanted


def test_the_file_is_that_of_todays_pages(monkeypatch, tmp_path):
    stored = said.TARGET.read_text("utf-8")
    monkeypatch.setattr(said, "TARGET", tmp_path / "said.json")
    said.main()
    assert json.loads(stored) == json.loads(said.TARGET.read_text("utf-8")), "make map"
