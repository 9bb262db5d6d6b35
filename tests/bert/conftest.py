"""What several tests of BERT share: a run by the command line, a model that is saved."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkpoints import CONFIGS, make_model, tokenizer
from commands import error_of, pretrain, write_corpus

from minigrad.bert.__main__ import main
from minigrad.bert.checkpoint import save_pretrained
from minigrad.bert.config import BertConfig


@pytest.fixture
def corpus(tmp_path) -> Path:
    return write_corpus(tmp_path / "text.txt")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A folder with a run of another seed in `run` and its text in `text.txt`; tests only read it."""
    folder = tmp_path_factory.mktemp("cli")
    assert main(pretrain(write_corpus(folder / "text.txt"), folder / "run", seed=5)) == 0
    return folder


@pytest.fixture
def failing(capsys):
    """Run a command that fails, and return its one line on stderr."""

    def fail(*command: object) -> str:
        return error_of(main, capsys, command)

    return fail


@pytest.fixture(params=CONFIGS)
def config(request) -> BertConfig:
    return CONFIGS[request.param]


@pytest.fixture
def saved(tmp_path) -> Path:
    """A folder with a model and its tokenizer, as it comes from elsewhere: nothing says what was saved."""
    save_pretrained(make_model(), tmp_path, tokenizer())
    (tmp_path / "SHA256SUMS").unlink()
    return tmp_path
