"""One line for each mistake on the command line, never a traceback."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from checkpoints import rewrite
from commands import pretrain

from minigrad import backend
from minigrad.bert import pretraining
from minigrad.bert.__main__ import main
from minigrad.bert.checkpoint import from_pretrained, save_pretrained
from minigrad.bert.model import BertModel
from minigrad.bert.pretraining import Pretraining
from minigrad.messages import LONGEST_LINE

# --- Text, settings, folders -----------------------------------------------------------------------------


def bad_corpus(tmp_path, content: bytes) -> Path:
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Caf\xe9. More.\n", "bad.txt is not UTF-8: byte 0xe9 at offset 3; convert it, for example with"),
        (b"A.\n\nB.\n\nC.\n", "with 2 of 3 documents held out, fewer than two are left to train on"),
        (b"A.\n\n\x00\n\n\x01\n\nD.\n", "at least two documents with text are needed, found "),
        (
            "\n\n".join("".join(map(chr, range(i, i + 50))) for i in range(0x400, 0x500, 50)).encode(),
            "vocab_size is 90",
        ),
    ],
)
def test_texts_that_do_not_do(tmp_path, failing, content, message):
    assert message in failing(*pretrain(bad_corpus(tmp_path, content), tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_text_that_is_not_there(tmp_path, failing):
    assert failing(*pretrain(tmp_path / "nowhere", tmp_path / "run")).startswith("there is no corpus '")
    (tmp_path / "empty").mkdir()
    assert "found no text in files ending in" in failing(*pretrain(tmp_path / "empty", tmp_path / "run"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "hiden_size=4"], "there is no field 'hiden_size': did you mean 'hidden_size'?"),
        (["--set", "hidden_size"], "--set takes field=value, such as hidden_size=256; got 'hidden_size'"),
        (["--set", "hidden_size=big"], "--set hidden_size: expected a number, got 'big'"),
        (["--set", "vocab_size=" + "[" * 100_000], "--set vocab_size: expected a number, got '[[["),
        (["--set", "vocab_size=" + "9" * 400], "--set vocab_size: expected a number below 2^63, got '999"),
        (["--set", "vocab_size=" + "9" * 5000], "--set vocab_size: expected a number, got '999"),
        (["--set", "vocab_size=20"], "vocab_size is 20, but the special tokens and the single characters"),
        (["--steps", "0"], "steps must be at least 1, got 0"),
        (["--steps", "1"], "warmup_steps must be within 0 … steps = 1, got 2"),
        (["--shares", "0"], "shares must be at least 1, got 0"),
        (["--held-out", "0.95"], "with 19 of 20 documents held out"),
        (["--example", "No mask."], "--example: there is no [MASK] in 'No mask.'"),
    ],
)
def test_settings_that_do_not_do(corpus, tmp_path, failing, options, message):
    assert message in failing(*pretrain(corpus, tmp_path / "run"), *options)
    assert not (tmp_path / "run").exists()


@pytest.mark.numpy_only("where CuPy is there, it is no mistake")
def test_a_backend_that_is_not_there(failing):
    if backend_is_there("cupy"):
        pytest.skip("CuPy is installed and finds a device")
    before = backend.default().name
    assert "the backend 'cupy' " in failing("info", "base", "--backend", "cupy")
    assert backend.default().name == before


def backend_is_there(name: str) -> bool:
    try:
        backend.get(name)
    except backend.BackendError:
        return False
    return True


def test_a_finished_run_without_figures(corpus, tmp_path, capsys):
    """To resume it is to fill its masks; there is nothing to say of held-out text."""
    assert main(pretrain(corpus, tmp_path / "run")) == 0
    checkpoint = tmp_path / "run" / "checkpoint-000006"
    state = json.loads((checkpoint / "training.json").read_text())
    (checkpoint / "training.json").write_text(json.dumps({**state, "evaluation": {}}))
    (checkpoint / "SHA256SUMS").unlink()
    capsys.readouterr()
    assert main(pretrain(corpus, tmp_path / "run", "--resume")) == 0
    out = capsys.readouterr().out
    assert "held out:" not in out
    assert "saved in " in out


def test_a_disk_that_is_full(corpus, tmp_path, failing, monkeypatch):
    def fail(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    message = failing(*pretrain(corpus, tmp_path / "run"))
    assert message.startswith(
        f"could not save {tmp_path / 'run' / 'checkpoint-000006'}: No space left on device ("
    )
    assert not list((tmp_path / "run").glob("checkpoint-*"))


@pytest.mark.parametrize(
    ("of", "name", "words", "message"),
    [
        (Pretraining, "__init__", ("Unable to allocate 37.3 GiB",), "Unable to allocate 37.3 GiB"),
        (pretraining, "read_corpus", (), "not enough memory: less text"),  # Python itself has no words for it
    ],
)
def test_what_does_not_fit_into_memory(corpus, tmp_path, failing, monkeypatch, of, name, words, message):
    def refuse(*_):
        raise MemoryError(*words)

    monkeypatch.setattr(of, name, refuse)
    assert failing(*pretrain(corpus, tmp_path / "run")).startswith(message)


# --- Models ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["evaluate", "--model", "{}"], " has no checkpoint in it; train one with: python -m minigrad.bert"),
        (["fill-mask", "--model", "{}/nowhere", "[MASK]"], "there is no folder "),
        (["next-sentence", "--model", "{}/nowhere", "a", "b"], "/nowhere; train one with: python -m"),
        (["info", "{}"], " has no checkpoint in it"),
        (["info", "huge"], "huge is neither a folder nor one of reduced, base, large"),
        (["fill-mask", "--model", "{}/run", "No mask."], "there is no [MASK] in 'No mask.'"),
        (["fill-mask", "--model", "{}/run", "A [mask]."], "in 'A [mask].': write it in capitals"),
        (["fill-mask", "--model", "{}/run", "[MASK]", "--top", "0"], "top must be at least 1, got 0"),
        (["next-sentence", "--model", "{}/run", "", "b"], "the first sentence has no tokens: ''"),
        (["evaluate", "--model", "{}/run", "--corpus", "{}/nowhere"], "there is no corpus '"),
        (
            ["evaluate", "--model", "{}/run", "--corpus", "{}/text.txt", "--max-length", "64"],
            "max_length is 64, but the model has 24 positions",
        ),
        (["info", "base", "--set", "vocab_size=" + "9" * 400], "--set vocab_size: expected a number below"),
        (["info", "base", "--set", "hidden_size=100"], "hidden_size must be a multiple"),
        (["info", "base", "--batch-size", "0"], "expected at least 1 sequence of 1 … 512 tokens"),
        (["info", "base", "--max-length", "513"], "max_length is 513, but the model has 512 positions"),
    ],
)
def test_mistakes_with_a_model(run, failing, command, message):
    assert message in failing(*(part.format(run) for part in command))


def test_notes_on_a_checkpoint_are_shown_and_what_was_never_trained_says_nothing(
    run, tmp_path, capsys, failing
):
    loaded = from_pretrained(run / "run" / "checkpoint-000006", BertModel)
    save_pretrained(loaded.model, tmp_path, loaded.tokenizer)
    for command in (
        ["fill-mask", "--model", tmp_path, "[MASK]"],
        ["next-sentence", "--model", tmp_path, "a", "b"],
        ["evaluate", "--model", tmp_path, "--corpus", run / "corpus"],
    ):
        assert "weights are missing: cls." in failing(*command)
    folder = shutil.copytree(run / "run" / "checkpoint-000006", tmp_path / "more")
    (folder / "SHA256SUMS").unlink()
    rewrite(folder, lambda state: state | {"bert.more": np.zeros(3, np.float32)})
    assert main(["fill-mask", "--model", str(folder), "[MASK]"]) == 0
    assert "note: in the checkpoint, not used: more" in capsys.readouterr().err


def test_what_a_terminal_would_obey_is_spelled_out(run, tmp_path, capsys, failing):
    """Vocabulary pieces, and file names in errors."""
    source = run / "run" / "checkpoint-000006"
    for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((source / name).read_bytes())
    pieces = (tmp_path / "vocab.txt").read_text().splitlines()
    pieces[20] = "\x1b]0;title\x07"
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")
    assert main(["fill-mask", "--model", str(tmp_path), "[MASK]", "--top", "90"]) == 0
    out, err = capsys.readouterr()
    assert r"\x1b]0;title\x07" in out
    assert "\x1b" not in out + err
    assert r"there is no corpus '\x1b[31m" in failing(*pretrain(Path("\x1b[31m"), tmp_path / "run")).replace(
        "\\\\", "\\"
    )


def test_an_error_is_one_line_that_ends(tmp_path, failing):
    assert len(failing("fill-mask", "--model", tmp_path / ("a\n" * 10_000), "[MASK]")) <= LONGEST_LINE
