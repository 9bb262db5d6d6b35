"""The command line: python -m minigrad.seq2seq COMMAND; --help lists the commands."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from minigrad.messages import shown
from minigrad.seq2seq.checkpoint import TRAIN_COMMAND, PretrainedSeq2Seq, from_pretrained
from minigrad.seq2seq.corpus import oddities, read_pairs
from minigrad.seq2seq.decoding import LENGTH_PENALTY
from minigrad.seq2seq.metrics import compare
from minigrad.seq2seq.predict import Aligned, TranslatedText, align, translate
from minigrad.seq2seq.settings import MOST_PIECES, PRESETS, TranslationArguments
from minigrad.seq2seq.training import CORPORA, HELD_OUT, VOCAB_SIZE, TranslationTraining, prepare_translation
from minigrad.text.corpus import read_text
from minigrad.training.command_line import (
    Parser,
    add_commands,
    add_settings,
    add_shares,
    add_sizes,
    as_process,
    changed_sizes,
    integer,
    number,
    option,
    parse_options,
    python,
    remark,
    run_command,
    say,
    typed,
)
from minigrad.training.folders import latest_checkpoint
from minigrad.training.progress import Unfailing
from minigrad.training.reading import CheckpointError

DEFAULT_CORPUS = "stories-light"

DESCRIPTION = """\
Train a model that translates: recurrent, recurrent with attention, or the Transformer of 2017.

    python -m minigrad.seq2seq train                       stories into a made-up language, 2,000 steps
    python -m minigrad.seq2seq train --architecture lstm-attention --output runs/attention
    python -m minigrad.seq2seq train --pairs mine.tsv --output runs/mine       your own file of two columns
    python -m minigrad.seq2seq translate --model runs/translation "mary has two books ."
    python -m minigrad.seq2seq translate --model runs/mine --beams 4 < texts.txt     a translation for each line
"""

PROGRAM = "python -m minigrad.seq2seq"
USAGE = {  # after the program; the options are listed below each
    "train": "train [--architecture NAME] [--corpus NAME | --pairs FILE [--eval-pairs FILE]] [--resume] [options]",
    "translate": "translate --model MODEL (TEXT … | --data FILE | < TEXTS) [--beams N] [--alignments] [options]",
}
MOST_BEAMS = 1000  # each is a row of a batch
TEXTS = ("cell", "attention")  # fields of a config that are texts

TRAIN = """\
Learn to translate, from stories that a grammar tells and writes in a made-up language too, or from your own file.

Your file has two columns, source TAB target, a pair a line, in UTF-8 and without a header. A WordPiece vocabulary is
learned from both columns. Rows that are too long are left out, and named. Without --eval-pairs, a share of the sources
is held out.

The loss is in nats a piece. An evaluation also translates held-out pairs, and counts those that are right to the last
piece. The run's folder gets metrics.csv, evaluation.csv and checkpoints. Ctrl-C (or SIGTERM, SIGHUP) saves and stops,
with exit status 130 (143, 129); a second one stops at once. The same command with --resume goes on bit for bit on the
same machine with the same NumPy, also after a kill.
"""

TRAIN_EXAMPLES = """\
examples:
  python -m minigrad.seq2seq train --architecture lstm --corpus stories-long --output runs/long
  python -m minigrad.seq2seq train --set d_model=256 --set nhead=8 --output runs/wider
  python -m minigrad.seq2seq train --architecture lstm --set cell=gru --set attention=additive --output runs/gru
  python -m minigrad.seq2seq train --pairs train.tsv --eval-pairs dev.tsv --vocab-size 8000 --output runs/mine
"""

TRANSLATE = """\
Translate texts that are typed, the lines of a file, or the lines of the standard input: a line for each, and an empty
one for an empty one.

A file of two columns, source TAB target, is translated too, and the scores follow on stderr.
"""


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options given, by default to this process; `command` is the name of the command.

    Exits with status 2 for what is not an option, and with 0 after --help.
    """
    parser = Parser(
        prog=PROGRAM, description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = add_commands(parser, USAGE)
    _add_train(add("train", "learn to translate", TRAIN))
    _add_translate(add("translate", "translate texts with a trained model", TRANSLATE))
    return parse_options(parser, arguments, USAGE, need_model=("translate",))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0, 1 after an error that was explained, 128 + a signal's number."""
    return run_command(COMMANDS, parse(arguments))


def _add_train(command: argparse.ArgumentParser) -> None:
    command.epilog = TRAIN_EXAMPLES
    command.add_argument("--architecture", choices=list(PRESETS), default="transformer", help="what to train")
    add_sizes(command)
    text = command.add_mutually_exclusive_group()
    text.add_argument(
        "--corpus", choices=list(CORPORA), default=DEFAULT_CORPUS, help="stories, told afresh in each epoch"
    )
    text.add_argument("--pairs", metavar="FILE", help="your own pairs, source TAB target in each line")
    command.add_argument("--eval-pairs", metavar="FILE", help="pairs to score the model on")
    command.add_argument(
        "--held-out",
        type=number,
        default=HELD_OUT,
        metavar="SHARE",
        help="share of the sources in --pairs that is held out, where there is no --eval-pairs",
    )
    command.add_argument(
        "--vocab-size", type=integer, default=VOCAB_SIZE, metavar="N", help="pieces to learn from --pairs"
    )
    command.add_argument("--lower-case", action="store_true", help="make --pairs lower case, without accents")
    command.add_argument("--output", default="runs/translation", metavar="FOLDER", help="the run's folder")
    command.add_argument("--resume", action="store_true", help="go on with the run in that folder")
    add_shares(command)
    add_settings(command, TranslationArguments, {"warmup_steps": "or all steps where they are fewer"})


def _add_translate(command: argparse.ArgumentParser) -> None:
    command.add_argument("--model", metavar="MODEL", help="a run's folder or a checkpoint")
    command.add_argument("texts", nargs="*", metavar="TEXT", help="a text to translate")
    command.add_argument("--data", metavar="FILE", help="a file with a text in each line, or of two columns")
    command.add_argument(
        "--beams",
        type=integer,
        default=1,
        metavar="N",
        help="targets that a beam search holds; 1 is greedy search",
    )
    command.add_argument(
        "--length-penalty",
        type=number,
        metavar="N",
        help=f"how much a beam search favours long targets; 0: not at all (default: {LENGTH_PENALTY})",
    )
    command.add_argument(
        "--alignments", action="store_true", help="for each word, the source's word with the most attention"
    )
    command.add_argument("--batch-size", type=integer, default=32, metavar="N", help="texts at a time")
    command.add_argument(
        "--max-length",
        type=integer,
        metavar="N",
        help="pieces of a text and of its translation (default: the run's)",
    )


# --- Training --------------------------------------------------------------------------------------------


def train_command(options: argparse.Namespace) -> int:
    """From pairs of texts to a model that translates; returns the exit status."""
    for name in ("pairs", "eval_pairs"):
        _require_named(name, getattr(options, name))
    if options.eval_pairs and not options.pairs:
        raise ValueError("--eval-pairs goes with --pairs: the stories have pairs of their own")
    messages: Any = Unfailing(sys.stdout)
    with (
        contextlib.redirect_stdout(messages),
        prepare_translation(
            options.pairs or options.corpus,
            PRESETS[options.architecture].replace(**changed_sizes(options.set, TEXTS)),
            _settings_in(options),
            options.output,
            evaluation=options.eval_pairs,
            held_out=options.held_out,
            vocab_size=options.vocab_size,
            lower_case=options.lower_case,
            resume=options.resume,
            shares=options.shares,
            say=say,
        ) as run,
    ):
        return _train(run)


def _require_named(name: str, file: str | None) -> None:
    """Raise ValueError for the empty name of a file, such as a variable of the shell that has no value."""
    if file is not None and not file:
        raise ValueError(f"{option(name)} is empty: expected the name of a file")


def _settings_in(options: argparse.Namespace) -> TranslationArguments:
    """The settings of a run. Raises ValueError."""
    given = {line.name: getattr(options, line.name) for line in dataclasses.fields(TranslationArguments)}
    if given["warmup_steps"] is None:  # so that --steps 100 is enough for a short run
        given["warmup_steps"] = max(1, min(TranslationArguments.warmup_steps, given["steps"]))
    return TranslationArguments(**given)


def _train(run: TranslationTraining) -> int:
    settings, before = run.arguments, run.step
    parameters = sum(parameter.size for parameter in run.model.parameters())
    say(
        f"{parameters:,} parameters; {settings.steps - run.step:,} steps of {settings.batch_size} pairs to "
        f"{run.output}\n"
        f"words alone: a loss of {run.unigram_entropy:.3f} nats a piece, from knowing only how frequent each is"
    )
    started = time.perf_counter()
    figures = run.run()
    if run.stopped_by is not None:
        return 128 + run.stopped_by  # so that `train && translate` does not go on
    since = f" from step {before:,}" if before else ""
    say(f"\ntrained{since} to step {settings.steps:,} in {time.perf_counter() - started:.0f} s")
    if figures:
        say(f"held out: {run.describe(figures)}")
    checkpoint = latest_checkpoint(run.output, TRAIN_COMMAND)
    say(f"saved in {checkpoint}; the losses of all steps are in {run.folder.metrics.path}\n\nYour turn:")
    texts = (run.tokenizer.decode(source) for source, _ in run.translated)
    text = next(map(typed, filter(None, texts)), "< texts.txt")  # of unknown characters nothing can be typed
    say(f"  {python()} -m minigrad.seq2seq translate --model {typed(str(run.output))} {text}")
    return 0


# --- Translating -----------------------------------------------------------------------------------------


def translate_command(options: argparse.Namespace) -> None:
    """The translations of texts, of a file's lines, or of the lines of standard input."""
    if options.texts and options.data:
        raise ValueError("translate takes either texts or --data FILE")
    _require_named("data", options.data)
    for name, most in (("beams", MOST_BEAMS), ("batch_size", None), ("max_length", MOST_PIECES)):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise ValueError(f"{option(name)} must be at least 1, got {value}")
        if value is not None and most is not None and value > most:
            raise ValueError(f"{option(name)} must be at most {most:,}, got {value:,}")
    if options.length_penalty is not None and options.beams == 1:
        raise ValueError(
            "--length-penalty ranks what a beam search finds: give --beams too, such as --beams 4"
        )
    loaded = from_pretrained(options.model)
    if loaded.tokenizer is None:
        raise CheckpointError(f"{options.model} has no vocab.txt, which this command needs")
    if options.alignments and getattr(loaded.model.config, "attention", None) == "none":
        raise ValueError("--alignments: this model has no attention over the source")
    if options.texts:
        _print(loaded, options, options.texts)
    elif options.data:
        _translate_file(loaded, options)
    else:
        for line, text in _typed_lines():
            try:
                _print(loaded, options, [text])
            except ValueError as error:
                raise ValueError(f"line {line}: {error}") from None


def _translate_file(loaded: PretrainedSeq2Seq, options: argparse.Namespace) -> None:
    path = Path(options.data)
    if path.is_file() and "\t" not in (content := read_text(path)):
        _print(loaded, options, content.removesuffix("\n").split("\n"))
        return
    pairs = read_pairs(path)
    for note in oddities(path, pairs):
        remark(note)
    sources = iter(pair.source for pair in pairs)
    lines = read_text(path).removesuffix("\n").split("\n")
    # Line n is the translation of line n
    texts = [next(sources) if line.strip(" \r") else "" for line in lines]
    found = _print(loaded, options, texts)
    assert loaded.tokenizer is not None
    ids = [one.ids for one, text in zip(found, texts, strict=True) if text]
    references = [loaded.tokenizer.token_ids(pair.target) for pair in pairs]
    scores = compare(loaded.tokenizer, ids, references)
    remark(f"right {scores['exact_match']:.1%} of {len(pairs):,}, BLEU {scores['bleu']:.1f}")


def _typed_lines() -> Iterator[tuple[int, str]]:
    """The lines of the standard input with their numbers, as they come."""
    if sys.stdin is None:
        return
    if sys.stdin.isatty():
        print("a text in each line; Ctrl-D ends", file=Unfailing(sys.stderr))
    for place, line in enumerate(sys.stdin, start=1):
        yield place, line.removesuffix("\n")


def _print(
    loaded: PretrainedSeq2Seq, options: argparse.Namespace, texts: Sequence[str]
) -> list[TranslatedText]:
    """Translate texts and print them, a line for each, with the alignments behind it if they are asked for."""
    assert loaded.tokenizer is not None
    max_length = options.max_length or loaded.max_length
    penalty = LENGTH_PENALTY if options.length_penalty is None else options.length_penalty
    found = translate(
        loaded.model, loaded.tokenizer, texts, options.beams, max_length, options.batch_size, penalty
    )
    for text, one in zip(texts, found, strict=True):
        if one.unknown:
            words = ", ".join(shown(word, 40) for word in one.unknown[:5])
            remark(f"the vocabulary has no pieces for {words}: read as [UNK]")
        if not one.finished:
            remark(f"no end after {max_length} pieces: this translation is cut off")
        say(shown(one.text, 10_000))
        if options.alignments and one.source:
            _print_alignment(align(loaded.model, loaded.tokenizer, text, one.ids))
    return found


def _print_alignment(found: Aligned) -> None:
    """For each word of the translation, the word of the text with the most attention, and its share."""
    target, source = ([*map(shown, words[:-1]), "(end)"] for words in (found.target, found.source))
    width = max(map(len, target))
    for word, place, weights in zip(target, found.highest(), found.weights, strict=True):
        say(f"  {word:{width}}  {source[place]} {weights[place]:.0%}")


COMMANDS = {"train": train_command, "translate": translate_command}


if __name__ == "__main__":
    sys.exit(as_process(main))
