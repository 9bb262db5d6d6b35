"""The command line from pairs of texts to translations, and what it says of mistakes."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
from pathlib import Path

import pytest
from tiny import before_step, checkpoints, table
from tiny_translation import model, write_pairs

import processes
from minigrad.distributed import World
from minigrad.seq2seq import decoding, training
from minigrad.seq2seq.__main__ import main, parse
from minigrad.seq2seq.checkpoint import from_pretrained, make_model, save_pretrained
from minigrad.seq2seq.corpus import read_pairs
from minigrad.seq2seq.predict import translate
from minigrad.seq2seq.settings import TranslationArguments
from minigrad.seq2seq.training import TranslationTraining
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import SPECIAL_TOKENS

BY = ("translate", "--model")

posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")

SETTINGS = {
    "steps": 6,
    "batch-size": 4,
    "warmup-steps": 2,
    "log-every": 2,
    "eval-every": 3,
    "save-every": 4,
    "eval-translations": 2,
    "held-out": 0.2,
    "vocab-size": 250,
}
TRANSFORMER = {
    "d_model": 12,
    "nhead": 2,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "dim_feedforward": 16,
}
SIZES = {"lstm": {"hidden_size": 12}, "lstm-attention": {"hidden_size": 12}, "transformer": TRANSFORMER}


def train(output: Path, *more: str, model: str = "lstm-attention", **changes: object) -> list[str]:
    """The command line of a tiny run."""
    settings = {**SETTINGS, **{name.replace("_", "-"): value for name, value in changes.items()}}
    command = ["train", "--architecture", model, "--output", str(output)]
    command += [text for name, value in SIZES[model].items() for text in ("--set", f"{name}={value}")]
    command += [text for name, value in settings.items() for text in (f"--{name}", str(value))]
    return [*command, *map(str, more)]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A folder with a run in `run` and its pairs in `pairs.tsv`; tests only read it."""
    folder = tmp_path_factory.mktemp("translation")
    file = write_pairs(folder / "pairs.tsv", 20)
    assert main(train(folder / "run", "--pairs", file)) == 0
    return folder


# --- Training --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIZES)
def test_stories_end_to_end(tmp_path, capsys, monkeypatch, name):
    monkeypatch.setattr(training, "PAIRS_AN_EPOCH", 12)
    folder = tmp_path / "a run"
    assert main(train(folder, model=name)) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].startswith("fresh 'light' stories in each epoch, 306 pieces: ")
    assert re.fullmatch(rf"[\d,]+ parameters; 6 steps of 4 pairs to {folder}", lines[1])
    assert re.fullmatch(r"words alone: a loss of \d\.\d{3} nats a piece, from knowing only .*", lines[2])
    assert "trained to step 6 in " in out
    assert f"saved in {folder / 'checkpoint-000006'}; " in out
    (suggested,) = re.findall(r"-m minigrad\.seq2seq (translate .*)", lines[-1])
    assert suggested.startswith(f"translate --model '{folder}' '")
    assert len(re.findall("step [36]: held out loss", err)) == 2
    assert len(re.findall("step [36]: .* → ", err)) == 2
    figures = table(folder / "evaluation.csv")[-1]
    assert f"held out: loss {float(figures['loss']):.3f}, pieces right " in out
    assert from_pretrained(folder).max_length == TranslationArguments.max_length
    assert main([*BY, str(folder), "mary has two books ."]) == 0
    assert capsys.readouterr().out.count("\n") == 1


def test_a_user_s_file_end_to_end(run, tmp_path, capsys):
    file = write_pairs(tmp_path / "mine.tsv", 20)
    dev = write_pairs(tmp_path / "dev.tsv", 4, seed=1)
    rows = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([*rows, "long " * 70 + "\tlong"]), encoding="utf-8")
    command = train(tmp_path / "run", "--pairs", file, "--eval-pairs", dev, "--lower-case", max_length=60)
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"reading {file} …\n21 pairs to learn from, 4 held out\nWordPiece: ")
    assert (
        f"note: {file}: 1 of 21 rows have more than max_length = 60 pieces with the end token, or none: row 21"
        in err
    )
    loaded = from_pretrained(tmp_path / "run")
    assert loaded.max_length == 60
    assert loaded.tokenizer.lower_case is True
    assert main([*BY, str(tmp_path / "run"), "--data", str(dev)]) == 0
    out, err = capsys.readouterr()
    assert out.count("\n") == 4
    assert re.search(r"note: right \d+\.\d% of 4, BLEU \d+\.\d\n$", err)


@posix
def test_a_stopped_run_goes_on(tmp_path, capsys, monkeypatch):
    file = write_pairs(tmp_path / "pairs.tsv", 20)
    true = TranslationTraining.run

    def stopping(self, report=None):
        before_step(self, 3, lambda: os.kill(os.getpid(), signal.SIGINT))
        return true(self, report)

    with monkeypatch.context() as patch:
        patch.setattr(TranslationTraining, "run", stopping)
        assert main(train(tmp_path / "run", "--pairs", file)) == 130
    out, err = capsys.readouterr()
    assert "stopped at step 3 of 6 and saved; go on with --resume" in err
    assert "trained" not in out
    assert main(train(tmp_path / "run", "--pairs", file, "--resume")) == 0
    assert "trained from step 3 to step 6 in " in capsys.readouterr().out
    assert checkpoints(tmp_path / "run")[-1] == "checkpoint-000006"


def test_sizes_and_kinds_are_changed(run, tmp_path):
    changes = [
        part for one in ("cell=gru", "attention=additive", "bidirectional=true") for part in ("--set", one)
    ]
    assert main(train(tmp_path / "run", "--pairs", run / "pairs.tsv", *changes, model="lstm", steps=2)) == 0
    config = from_pretrained(tmp_path / "run").model.config
    assert (config.cell, config.attention, config.bidirectional) == ("gru", "additive", True)


def test_few_steps_need_no_other_option():
    options = parse(["train", "--steps", "10"])
    assert options.warmup_steps is None
    assert (options.architecture, options.corpus, options.output) == (
        "transformer",
        "stories-light",
        "runs/translation",
    )


def test_mistakes_in_training(run, tmp_path, failing):
    file, there = run / "pairs.tsv", run / "run"
    bad = tmp_path / "bad.tsv"
    bad.write_text("a\tb\na\tb\tc\n")
    new = tmp_path / "new"
    for command, message in (
        (train(there, "--pairs", file), "holds a run already (checkpoint-000006): resume it"),
        (train(there, "--pairs", file, "--resume", seed=1), "these differ: seed is 0 there, 1 here"),
        (train(there, "--pairs", file, "--resume", model="lstm"), "attention is general there, none here"),
        (train(new, "--pairs", bad), f"{bad}, row 2 (line 2): expected two columns"),
        (train(new, "--pairs", tmp_path / "no.tsv"), "no.tsv is not there"),
        (train(new, "--pairs", file, vocab_size=20), "vocab_size is 20, but the special tokens and the single"),
        (train(new, "--eval-pairs", file), "--eval-pairs goes with --pairs"),
        (train(new, "--set", "hidden=3"), "there is no field 'hidden': did you mean 'hidden_size'?"),
        (train(new, "--set", "cell=lstn"), "cell must be one of lstm, gru, rnn, got 'lstn'"),
        (train(new, warmup_steps=9), "warmup_steps must be within 1 … steps = 6, got 9"),
        (train(new, "--set", "hidden_size=1000000"), "the parameters of this model, their gradients and moments need"),
    ):  # fmt: skip
        assert message in failing(*command)
    assert not new.exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["train", "--corpus", "stories-light", "--pairs", "x"], "--pairs: not allowed with argument"),
        (["train", "--corpus", "novels"], "argument --corpus: invalid choice: 'novels'"),
        (["train", "--step-size", "3"], "unrecognized arguments: --step-size"),
        (["trian"], "there is no command 'trian': did you mean train?"),
        (["translate"], "translate needs --model, a run's folder or a checkpoint"),
        (["translate", "x", "--beam", "--x"], "--beam"),
        (["train", "--model=lstm"], "unrecognized arguments: --model=lstm"),
        (["translate", "runs/x", "a b", "c"], "translate needs --model, a run's folder or a checkpoint"),
    ],
)
def test_what_is_no_option(capsys, command, message):
    with pytest.raises(SystemExit) as caught:
        parse(command)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", [["--help"], ["train", "--help"], ["translate", "--help"]])
def test_help(capsys, command):
    with pytest.raises(SystemExit) as caught:
        parse(command)
    assert caught.value.code == 0
    out = capsys.readouterr().out
    assert "python -m minigrad.seq2seq" in out
    if command[0] == "train":
        for name in TranslationArguments.__dataclass_fields__:
            assert f"--{name.replace('_', '-')} " in out


@pytest.mark.parametrize("name", ["pairs", "eval-pairs"])
def test_the_empty_name_of_a_file_is_no_corpus(tmp_path, failing, name):
    """As of a variable of the shell that has no value."""
    message = failing(*train(tmp_path / "x", f"--{name}", ""))
    assert message == f"--{name} is empty: expected the name of a file"
    assert not (tmp_path / "x").exists()


def test_what_was_perhaps_not_meant_to_be_text_is_told(tmp_path, capsys):
    lines = [
        "English\tGerman",
        *(f'"the {n}"\t"das {n}"' for n in ("dog", "cat", "cow", "horse", "goat", "hen")),
    ]
    file = tmp_path / "pairs.tsv"
    for number, expected in ((0, "'English' and 'German', looks like a header"), (1, "6 rows of ")):
        file.write_text("\n".join(lines[number:]) + "\n", encoding="utf-8")
        assert main(train(tmp_path / str(number), "--pairs", str(file))) == 0
        err = capsys.readouterr().err
        assert expected in err
        assert 'have their texts in "quotes", which are read as a part of them' in err
        assert ("header" in err) == (number == 0)


def test_a_header_in_quotes_or_in_a_file_that_is_scored_is_told_too(run, tmp_path, capsys):
    file = tmp_path / "pairs.tsv"
    told = "looks like a header: it is read as a pair\n"
    for header in ("source\tTarget", '"source"\t"target"'):
        file.write_text(f"{header}\nmary has two books .\tx\n", encoding="utf-8")
        capsys.readouterr()
        assert main([*BY, str(run / "run"), "--data", str(file)]) == 0
        assert told in capsys.readouterr().err
    file.write_text("mary has two books .\tx\n", encoding="utf-8")
    assert main([*BY, str(run / "run"), "--data", str(file)]) == 0
    assert "header" not in capsys.readouterr().err


def test_what_to_type_next_can_be_typed(tmp_path, capsys):
    """The held-out sources have characters that no pair to learn from has."""
    train_file, dev = tmp_path / "train.tsv", tmp_path / "dev.tsv"
    train_file.write_text("".join(f"{a} {b}\t{b} {a}\n" for a in "abc" for b in "abc"), encoding="utf-8")
    for sources, expected in (("☃", "< texts.txt"), ("☃ a", " a")):
        dev.write_text("".join(f"{source}\ta\n" for source in sources.split()), encoding="utf-8")
        assert main(train(tmp_path / expected[-1], "--pairs", str(train_file), "--eval-pairs", str(dev))) == 0
        assert capsys.readouterr().out.rstrip().endswith(expected)


# --- Translating -----------------------------------------------------------------------------------------


def test_texts_lines_and_files_are_translated_alike(run, tmp_path, capsys, monkeypatch):
    texts = [pair.source for pair in read_pairs(run / "pairs.tsv")][:3]
    assert main([*BY, str(run / "run"), *texts]) == 0
    expected = capsys.readouterr().out
    assert expected.count("\n") == 3
    lines = tmp_path / "texts.txt"
    lines.write_text("\n".join(texts) + "\n", encoding="utf-8")
    assert main([*BY, str(run / "run"), "--data", str(lines)]) == 0
    assert capsys.readouterr().out == expected
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(texts)))
    assert main([*BY, str(run / "run")]) == 0
    assert capsys.readouterr().out == expected
    assert main([*BY, str(run / "run"), "--max-length", "64", *texts]) == 0
    assert capsys.readouterr().out == expected
    assert main([*BY, str(run / "run" / "checkpoint-000006"), "--batch-size", "1", *texts]) == 0
    assert capsys.readouterr().out == expected


def test_empty_lines_stay_where_they_are(run, tmp_path, capsys, monkeypatch):
    pairs = read_pairs(run / "pairs.tsv")[:2]
    capsys.readouterr()
    assert main([*BY, str(run / "run"), *(pair.source for pair in pairs)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    lines = f"\n{pairs[0].source}\n  \n\n{pairs[1].source}\n\n"
    file, two = tmp_path / "texts.txt", tmp_path / "pairs.tsv"
    file.write_text(lines, encoding="utf-8")
    two.write_text(
        "\n" + "\n\n\n".join(f"{pair.source}\t{pair.target}" for pair in pairs) + "\n\n", encoding="utf-8"
    )
    for command in (["--data", str(file)], ["--data", str(two)], ["--alignments", "--data", str(file)], []):
        monkeypatch.setattr("sys.stdin", io.StringIO(lines))
        assert main([*BY, str(run / "run"), *command]) == 0
        out = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("  ")]
        assert out == ["", first, "", "", second, ""]


def test_a_length_penalty(run, capsys, monkeypatch):
    text = read_pairs(run / "pairs.tsv")[0].source
    asked = []
    true = decoding.Beam.__init__
    monkeypatch.setattr(
        decoding.Beam,
        "__init__",
        lambda self, k, alpha, *rest: (asked.append(alpha), true(self, k, alpha, *rest))[1],
    )
    for more in ([], ["--length-penalty", "0"], ["--length-penalty", "2.5"]):
        assert main([*BY, str(run / "run"), text, "--beams", "3", *more]) == 0
    assert asked == [0.6, 0.0, 2.5]


def test_beams_and_alignments(run, capsys):
    text = read_pairs(run / "pairs.tsv")[0].source
    assert main([*BY, str(run / "run"), text, "--alignments", "--max-length", "63"]) == 0
    first, *rows = capsys.readouterr().out.splitlines()
    assert rows[-1].split()[0] == "(end)"
    assert all(re.fullmatch(r"  \S+ +\S+ \d+%", row) for row in rows)
    loaded = from_pretrained(run / "run")
    (expected,) = translate(loaded.model, loaded.tokenizer, [text], max_length=63)
    assert first == expected.text
    assert [row.split()[0] for row in rows[:-1]] == expected.words
    assert {row.split()[1] for row in rows} <= {*text.split(), "(end)"}
    assert main([*BY, str(run / "run"), text, "--beams", "3"]) == 0
    assert capsys.readouterr().out.count("\n") == 1


PIECES = WordPieceTokenizer([*SPECIAL_TOKENS, "a", "b", "c"])


def saved(folder: Path, name: str, max_length: int | None = 8) -> Path:
    """An untrained model that reads a, b and c."""
    config = model(name).config.replace(vocab_size=PIECES.vocab_size)
    save_pretrained(make_model(config), folder, PIECES, max_length)
    return folder


def test_remarks(tmp_path, capsys):
    folder = saved(tmp_path, "lstm")
    assert main([*BY, str(folder), "a ☃ b", "--max-length", "4"]) == 0
    err = capsys.readouterr().err
    assert "note: the vocabulary has no pieces for ☃: read as [UNK]\n" in err
    # an untrained model ends when it ends: where it did not, that is said
    assert ("no end after 4 pieces" in err) or err.count("note") == 1


def test_a_translation_that_does_not_end_is_said_to_be_cut_off(tmp_path, capsys):
    of = make_model(model("lstm").config.replace(vocab_size=PIECES.vocab_size))
    of.decoder.out.bias.data[6] = 100  # always b
    save_pretrained(of, tmp_path, PIECES, 8)
    assert main([*BY, str(tmp_path), "a"]) == 0
    assert capsys.readouterr() == (
        "b b b b b b b b\n",
        "note: no end after 8 pieces: this translation is cut off\n",
    )


def test_mistakes_in_translating(run, tmp_path, failing, monkeypatch):
    no_attention = saved(tmp_path / "lstm", "lstm")
    nothing = tmp_path / "nothing.txt"
    nothing.write_text("a\n\nb\n")
    without = saved(tmp_path / "without", "transformer")
    for name in ("vocab.txt", "SHA256SUMS"):
        (without / name).unlink()
    for command, message in (
        ([*BY, tmp_path / "nowhere", "a"], "there is no folder .*; train one with: python -m minigrad.seq2seq"),
        ([*BY, tmp_path, "a"], "has no checkpoint in it; train one with: python -m minigrad.seq2seq train"),
        ([*BY, no_attention, "a a a a a a a a"], "text 1 has 9 pieces with the end token, max_length is 8 "),
        ([*BY, no_attention, "a", "--alignments"], "--alignments: this model has no attention over the source"),
        ([*BY, no_attention, "a", "--data", nothing], "translate takes either texts or --data FILE"),
        ([*BY, no_attention, "--data", tmp_path / "no"], "no is not there"),
        ([*BY, no_attention, "--data", ""], "--data is empty: expected the name of a file"),
        ([*BY, no_attention, "a", "--beams", "0"], "--beams must be at least 1, got 0"),
        ([*BY, no_attention, "a", "--beams", "100000"], "--beams must be at most 1,000, got 100,000"),
        ([*BY, no_attention, "a", "--max-length", "1" + 12 * "0"], "--max-length must be at most 10,000"),
        ([*BY, no_attention, "a", "--length-penalty", "1"], "--length-penalty ranks what a beam search finds"),
        ([*BY, no_attention, "a", "--beams", "2", "--length-penalty", "-1"], "length_penalty: expected"),
        ([*BY, no_attention, "a", "--beams", "2", "--length-penalty", "1e300"], "number of 0 to 10, got 1e"),
        ([*BY, no_attention, "a", "--max-length", "-1"], "--max-length must be at least 1, got -1"),
        ([*BY, without, "a"], "has no vocab.txt, which this command needs"),
    ):  # fmt: skip
        assert re.search(message, failing(*command))
    assert "max_length must be at most 10,000, got 1000000000000" in failing(
        *train(tmp_path / "x", max_length=10**12)
    )
    monkeypatch.setattr("sys.stdin", io.StringIO("a b\n\na a a a a a a a a\n"))
    assert "line 3: text 1 has 10 pieces" in failing("translate", "--model", no_attention)
    assert "max_length must" in failing(*train(tmp_path / "x", max_length=1))
    damaged = shutil.copytree(run / "run" / "checkpoint-000006", tmp_path / "damaged")
    (damaged / "vocab.txt").write_bytes((damaged / "vocab.txt").read_bytes() + b"more\n")
    assert "is damaged" in failing("translate", "--model", damaged, "a")


# --- As a process ----------------------------------------------------------------------------------------

MODULE = (
    "import runpy, sys; sys.argv[0] = 'minigrad'; runpy.run_module('minigrad.seq2seq', run_name='__main__')"
)


@pytest.mark.no_arrays  # in this process
def test_as_a_process(run):
    done = processes.run_python(MODULE, "translate", "--model", run / "run", "mary has two books .")
    assert done.returncode == 0, done.stderr
    # It has learned little
    assert done.stderr in ("", "note: no end after 64 pieces: this translation is cut off\n")
    assert done.stdout.count("\n") == 1
    done = processes.run_python(MODULE, "translate", "--model", run / "nowhere", "a")
    assert done.returncode == 1
    assert re.fullmatch(r"error: there is no folder .*nowhere; train one with: .*\n", done.stderr)


@pytest.mark.parametrize("command", ["train", "translate"])
def test_one_process_alone_does_what_none_can_share(monkeypatch, failing, command):
    monkeypatch.setattr("minigrad.training.command_line.from_environment", lambda: TwoProcesses())
    message = f"{command} runs in one process, not in 2: only pretrain shares its work"
    assert failing(command, *([] if command == "train" else ["--model", "run"])) == message


class TwoProcesses(World):
    size = 2
