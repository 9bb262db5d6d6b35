"""The command line: python -m minigrad.bert pretrain | evaluate | fill-mask | next-sentence | info."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy.random  # noqa: F401  (NumPy puts it off; a Ctrl-C inside this import, of all, would be swallowed)

from minigrad import backend
from minigrad.bert.checkpoint import CheckpointError, Pretrained, from_pretrained, read_config
from minigrad.bert.config import PRESETS, BertConfig, ConfigError
from minigrad.bert.corpus import Corpus, CorpusError, read_corpus
from minigrad.bert.data import Batch, PretrainingData, TokenDocument, encode_documents
from minigrad.bert.info import describe_model, require_memory
from minigrad.bert.predict import fill_mask, next_sentence
from minigrad.bert.pretraining import DivergenceError, Pretraining, describe, evaluate, require_positions
from minigrad.bert.progress import Unfailing, counting
from minigrad.bert.reading import is_there, shown
from minigrad.bert.runs import RunFolder, RunFolderError, latest_checkpoint
from minigrad.bert.state import LARGEST_INTEGER, STATE, PretrainingArguments, TrainingState, read_state
from minigrad.bert.tokenizer import WordPieceTokenizer, train_wordpiece

HELD_OUT = 0.05  # share of the documents
HELD_OUT_BATCHES = 50  # at most, an evaluation: 1,600 pairs of the default batch size
LONGEST_LINE = 1000  # characters of an error or a note

EXAMPLES = [
    "This function returns a new [MASK] of the given shape.",
    "Raise an [MASK] if the file does not exist.",
    "The [MASK] of the array must be an integer.",
]

DESCRIPTION = """\
Pre-train a BERT from raw text, look at what it has learned, and see what it costs.

    python -m minigrad.bert pretrain                        the Python documentation on this disk, 4,000 steps
    python -m minigrad.bert pretrain --corpus my-texts/     your own text
    python -m minigrad.bert fill-mask runs/reduced "The [MASK] is returned."
    python -m minigrad.bert info base                       where BERT-Base's 110 million parameters are
"""

PRETRAIN = """\
From raw text to a model: cut the text into sentences, hold some documents out, learn a WordPiece vocabulary,
then train on two tasks at once. Masked language modelling: 15 % of the tokens are chosen, of which 80 % become
[MASK], 10 % a random token, 10 % stay; the model must name what was there. Next-sentence prediction: does B
follow A, or is it from another document?

The loss is in nats. Knowing nothing is log(vocabulary size); knowing how frequent each piece is, the unigram
entropy, which is printed first; what lies below that has been learned from context. The run's folder gets
metrics.csv, evaluation.csv and checkpoints that Hugging Face's transformers opens. Ctrl-C (or SIGTERM, SIGHUP)
saves and stops, with exit status 130 (143, 129); a second one stops at once. The same command with --resume
goes on bit for bit on the same machine with the same NumPy, also after a kill.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0, 1 after an error that was explained, 128 + a signal's number."""
    parser = _parser()
    options = parser.parse_args(arguments)
    for name, value in vars(
        options
    ).items():  # of `--steps=--` argparse makes an empty list, until Python 3.12
        if isinstance(value, list) and (name != "set" or not all(isinstance(one, str) for one in value)):
            parser.error(f"argument --{name.replace('_', '-')}: expected one argument")
    try:
        if options.backend:
            backend.use(options.backend)
        return options.command(options) or 0
    except BrokenPipeError:
        return 0  # `| head` has seen enough
    except MemoryError as error:
        return _fail(
            str(error) or "not enough memory: less text, a smaller model or a smaller batch needs less"
        )
    except (
        CorpusError,
        CheckpointError,
        ConfigError,
        DivergenceError,
        RunFolderError,
        backend.BackendError,
        OSError,
        ValueError,
    ) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=Unfailing(sys.stderr))
        return 128 + signal.SIGINT


def _fail(message: str) -> int:
    print(f"error: {shown(message, LONGEST_LINE)}", file=Unfailing(sys.stderr))
    return 1


# --- Commands --------------------------------------------------------------------------------------------


def pretrain_command(options: argparse.Namespace) -> int:
    """From raw text to a trained model that fills masks; returns the exit status."""
    config = _config(options)
    settings = PretrainingArguments(
        **{field.name: getattr(options, field.name) for field in dataclasses.fields(PretrainingArguments)}
    )
    require_positions(settings.max_length, config)
    require_memory(config, settings.batch_size, settings.max_length)
    messages: Any = Unfailing(sys.stdout)
    with RunFolder(options.output) as folder, contextlib.redirect_stdout(messages):
        folder.to_resume(options.resume)  # an error now, not when the text has been read
        return _pretrain(options, config, settings, folder)


def _pretrain(
    options: argparse.Namespace, config: BertConfig, settings: PretrainingArguments, folder: RunFolder
) -> int:
    started = time.perf_counter()
    _say(f"reading {options.corpus} …")
    with counting("part") as progress:
        corpus = read_corpus(options.corpus, progress)
    for note in corpus.notes:
        _say(f"note: {shown(note, LONGEST_LINE)}")
    train, held_out = corpus.split(options.held_out, settings.seed)
    words = sum(len(sentence.split()) for sentence in corpus.sentences)
    _say(
        f"{len(corpus.documents):,} documents, {sum(1 for _ in corpus.sentences):,} sentences, {words:,} words; "
        f"{len(held_out.documents)} documents held out"
    )
    tokenizer = _learned_tokenizer(train, config.vocab_size, options)
    _say("encoding the text …")
    with counting("document") as progress:
        documents = encode_documents(train.documents, tokenizer, progress)
    token_count = sum(len(sentence) for document in documents for sentence in document)
    _say(
        f"WordPiece: {tokenizer.vocab_size:,} pieces, {token_count:,} training tokens "
        f"({time.perf_counter() - started:.0f} s so far)"
    )
    run = Pretraining(
        config,
        documents,
        tokenizer,
        _held_out_batches(encode_documents(held_out.documents, tokenizer), tokenizer, settings),
        folder,
        settings,
        train.fingerprint(),
        options.resume,
        options.held_out,
    )
    parameters = sum(parameter.size for parameter in run.model.parameters())
    _say(
        f"{parameters:,} parameters; {settings.steps - run.step:,} steps of {settings.batch_size} x "
        f"{settings.max_length} tokens to {options.output}\n"
        f"unigram entropy {run.unigram_entropy:.3f} nats: the MLM loss of knowing how frequent each piece is"
    )
    started = time.perf_counter()
    figures = run.run()
    if run.stopped_by is not None:
        return 128 + run.stopped_by  # so that `pretrain && evaluate` does not go on
    _say(f"\n{settings.steps:,} steps; the last {time.perf_counter() - started:.0f} s of training are done")
    if figures:
        _say(f"held out: {describe(figures)}")
    _say(f"beside:   unigram entropy {run.unigram_entropy:.3f} nats; NSP by chance 50 %")
    _say(f"saved in {latest_checkpoint(options.output)}\n")
    for text in EXAMPLES:
        if len(tokenizer.encode(text)) <= config.max_position_embeddings:
            _print_fillings(run.model, tokenizer, text, 5)
    return 0


def _learned_tokenizer(train: Corpus, size: int, options: argparse.Namespace) -> WordPieceTokenizer:
    _say(f"learning a vocabulary of {size:,} pieces …")
    with counting("piece") as progress:
        vocabulary = train_wordpiece(
            train.sentences,
            size,
            lower_case=not options.cased,
            score=options.score,
            progress=progress,
        )
    return WordPieceTokenizer(vocabulary, lower_case=not options.cased)


def evaluate_command(options: argparse.Namespace) -> None:
    """The held-out figures of a checkpoint, by default on what its run held out."""
    checkpoint = latest_checkpoint(options.model)
    state = read_state(checkpoint) if is_there(checkpoint / STATE) else None
    config = read_config(checkpoint)
    settings = _evaluation_settings(options, state, config)
    require_positions(settings.max_length, config)
    of_run = HELD_OUT if state is None or state.held_out is None else state.held_out
    share = of_run if options.held_out is None else options.held_out
    if not 0 <= share <= 1:
        raise ValueError(f"held_out must be within 0 … 1 (1 is everything), got {share}")
    loaded = _load(options.model)
    tokenizer = _tokenizer(loaded, options.model)
    corpus = read_corpus(options.corpus)
    scored = corpus.split(share, settings.seed)[1] if share < 1 else corpus
    if state is None:
        _note(f"{checkpoint} has no {STATE}: whether the model has seen this text is not known")
    else:
        _warn_of_training_text(corpus, of_run, scored, state)
    documents = encode_documents(scored.documents, tokenizer)
    batches = _held_out_batches(documents, tokenizer, settings)
    pairs = sum(len(batch["input_ids"]) for batch in batches)
    _say(f"{len(documents)} documents, {pairs} pairs: {describe(evaluate(loaded.model, batches))}")


def _evaluation_settings(
    options: argparse.Namespace, state: TrainingState | None, config: BertConfig
) -> PretrainingArguments:
    """What the command line says, else what the run had, else the defaults, as far as the model has positions."""
    names = ("batch_size", "max_length", "seed")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    default = min(PretrainingArguments.max_length, config.max_position_embeddings)
    of_run = {"max_length": default} if state is None else {name: state.arguments[name] for name in names}
    return PretrainingArguments(**{**of_run, **given})


def _warn_of_training_text(corpus: Corpus, held_out: float, scored: Corpus, state: TrainingState) -> None:
    """Say so if the model has been trained on what it is scored on, or if nobody knows."""
    try:
        trained, _ = corpus.split(held_out, state.arguments["seed"])
        known = trained.fingerprint() == state.corpus
    except CorpusError:
        known = False
    if not known:
        _note(
            "this is not the text that the run was trained on, or not split as it was there; "
            "whether the model has seen it is not known"
        )
        return
    seen = {tuple(document) for document in trained.documents}
    count = sum(tuple(document) in seen for document in scored.documents)
    if count:
        _note(f"the model was trained on {count} of these {len(scored.documents)} documents")


def fill_mask_command(options: argparse.Namespace) -> None:
    """The likeliest pieces for each [MASK]."""
    loaded = _load(options.model)
    _print_fillings(loaded.model, _tokenizer(loaded, options.model), options.text, options.top)


def next_sentence_command(options: argparse.Namespace) -> None:
    """The probability that B follows A."""
    loaded = _load(options.model)
    probability = next_sentence(loaded.model, _tokenizer(loaded, options.model), options.a, options.b)
    _say(f"IsNext {probability:.1%}, NotNext {1 - probability:.1%}")


def info_command(options: argparse.Namespace) -> None:
    """What a model consists of and costs."""
    if options.model in PRESETS:
        config = PRESETS[options.model]
    else:
        config = read_config(latest_checkpoint(options.model))
    config = _changed(config, options)
    length = options.max_length
    if length is None:
        length = min(PretrainingArguments.max_length, config.max_position_embeddings)
    require_positions(length, config)
    _say(describe_model(config, options.batch_size, length))


# --- Parts -----------------------------------------------------------------------------------------------


def _say(text: str) -> None:
    """Print at once: what cannot be written is then an error here, and none when the process ends."""
    print(text, flush=True)


def _note(text: str) -> None:
    print(f"note: {shown(text, LONGEST_LINE)}", file=Unfailing(sys.stderr))


def _changed(config: BertConfig, options: argparse.Namespace) -> BertConfig:
    """The configuration with the fields that `--set name=value` names changed."""
    changes = {}
    for change in options.set:
        name, equals, value = change.partition("=")
        if not equals:
            raise ConfigError(f"--set takes field=value, such as hidden_size=256; got {change!r}")
        try:
            changes[name] = json.loads(value)
        except (ValueError, RecursionError):
            raise ConfigError(f"--set {name}: expected a number, got {shown(value, 40)!r}") from None
        if isinstance(changes[name], int) and abs(changes[name]) > LARGEST_INTEGER:
            raise ConfigError(f"--set {name}: expected a number below 2^63, got {shown(value, 40)!r}")
    return config.replace(**changes)


def _integer(text: str) -> int:
    """A number on the command line. (Python's integers have no end; floats and arrays do.)"""
    with contextlib.suppress(ValueError):
        value = int(text)
        if abs(value) <= LARGEST_INTEGER:
            return value
    raise argparse.ArgumentTypeError(f"expected an integer below 2^63, got {shown(text, 40)!r}")


def _number(text: str) -> float:
    """A number on the command line."""
    with contextlib.suppress(ValueError):
        return float(text)
    raise argparse.ArgumentTypeError(f"expected a number, got {shown(text, 40)!r}")


def _config(options: argparse.Namespace) -> BertConfig:
    return _changed(PRESETS[options.preset], options)


def _held_out_batches(
    documents: list[TokenDocument], tokenizer: WordPieceTokenizer, settings: PretrainingArguments
) -> list[Batch]:
    """One epoch of batches at most, paired and masked once and for all, by a seed that training does not use."""
    data = PretrainingData(
        documents, tokenizer, settings.batch_size, settings.max_length, seed=settings.seed + 2**32
    )
    return [data.next_batch() for _ in range(min(HELD_OUT_BATCHES, data.batches_per_epoch))]


def _load(model: str) -> Pretrained:
    loaded = from_pretrained(latest_checkpoint(model))
    for note in loaded.notes:
        _note(note)
    return loaded


def _tokenizer(loaded: Pretrained, model: str) -> WordPieceTokenizer:
    if loaded.tokenizer is None:
        raise CheckpointError(f"{model} has no vocab.txt, which this command needs")
    return loaded.tokenizer


def _print_fillings(model: object, tokenizer: WordPieceTokenizer, text: str, top: int) -> None:
    _say(text)
    for fillings in fill_mask(model, tokenizer, text, top):  # type: ignore[arg-type]
        _say("   " + "  ".join(f"{shown(filling.token)} {filling.probability:.0%}" for filling in fillings))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m minigrad.bert",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, function, help: str, description: str | None = None) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=help,
            description=description or f"{help[0].upper()}{help[1:]}.",
            formatter_class=_HelpFormatter,
        )
        command.add_argument(
            "--backend",
            choices=backend.NAMES,
            help="where to compute (default: MINIGRAD_BACKEND, else numpy)",
        )
        command.set_defaults(command=function)
        return command

    def add_sizes(command: argparse.ArgumentParser) -> None:
        command.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="FIELD=VALUE",
            help="change a size, such as hidden_size=256; may be repeated",
        )

    def add_text(command: argparse.ArgumentParser, held_out: float | None, help: str) -> None:
        command.add_argument(
            "--corpus",
            default="python-docs",
            help="python-docs (what is on this disk), a folder of text files, or a file",
        )
        command.add_argument(
            "--held-out",
            type=_number,
            default=held_out,
            metavar="SHARE",
            help=f"share of the documents that {help}",
        )

    settings = PretrainingArguments()
    pretrain = add("pretrain", pretrain_command, "train a model from raw text", PRETRAIN)
    add_text(pretrain, HELD_OUT, "is held out")
    pretrain.add_argument("--preset", choices=list(PRESETS), default="reduced", help="the model's sizes")
    add_sizes(pretrain)
    pretrain.add_argument("--output", default="runs/reduced", metavar="FOLDER", help="the run's folder")
    pretrain.add_argument("--resume", action="store_true", help="go on with the run in that folder")
    pretrain.add_argument("--cased", action="store_true", help="keep capitals and accents")
    pretrain.add_argument(
        "--score",
        choices=["frequency", "likelihood"],
        default="frequency",
        help="how WordPiece chooses the next merge",
    )
    helps = {
        "steps": "optimiser steps",
        "batch_size": "sentence pairs a micro-batch",
        "max_length": "tokens a pair",
        "learning_rate": "the peak",
        "warmup_steps": "steps of linear rise before the linear fall",
        "weight_decay": "of AdamW, not on biases and LayerNorms",
        "max_grad_norm": "where the gradients' joint norm is clipped",
        "gradient_accumulation_steps": "micro-batches a step",
        "seed": "of weights, data, masks and dropout",
        "log_every": "steps between rows of metrics.csv",
        "eval_every": "steps between held-out evaluations",
        "save_every": "steps between checkpoints",
    }
    for name, help in helps.items():
        value = getattr(settings, name)
        kind = _integer if isinstance(value, int) else _number
        pretrain.add_argument("--" + name.replace("_", "-"), type=kind, default=value, metavar="N", help=help)
    pretrain.add_argument(
        "--precision",
        choices=backend.PRECISIONS,
        default=settings.precision,
        help="what matrix products multiply: 16 bits are faster on a GPU (float16 with loss scaling)",
    )

    command = add("evaluate", evaluate_command, "held-out losses and accuracies of a checkpoint")
    command.add_argument("model", help="a run's folder or a checkpoint")
    add_text(command, None, "was held out; 1 for all (default: the run's)")
    for name, help in (
        ("batch_size", "pairs a batch"),
        ("max_length", "tokens a pair"),
        ("seed", "of the split"),
    ):
        command.add_argument(
            "--" + name.replace("_", "-"), type=_integer, metavar="N", help=f"{help} (default: the run's)"
        )

    command = add("fill-mask", fill_mask_command, "the likeliest pieces for each [MASK] in a text")
    command.add_argument("model", help="a run's folder or a checkpoint")
    command.add_argument("text", help='for example "The [MASK] is returned."')
    command.add_argument("--top", type=_integer, default=5, metavar="N", help="how many pieces to show")

    command = add(
        "next-sentence", next_sentence_command, "the probability that sentence B follows sentence A"
    )
    command.add_argument("model", help="a run's folder or a checkpoint")
    command.add_argument("a")
    command.add_argument("b")

    command = add("info", info_command, "parameters by component, shapes, FLOPs and bytes of a step")
    command.add_argument("model", help=f"{', '.join(PRESETS)}, a run's folder or a checkpoint")
    add_sizes(command)
    command.add_argument(
        "--batch-size", type=_integer, default=settings.batch_size, metavar="N", help="sequences a step"
    )
    command.add_argument(
        "--max-length",
        type=_integer,
        metavar="N",
        help=f"tokens a sequence (default: {settings.max_length}, or the model's positions)",
    )
    return parser


class _Parser(argparse.ArgumentParser):
    """One whose errors have an end, and nothing that a terminal would obey."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, and exit with status 2."""
        super().error(shown(message, LONGEST_LINE))


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Defaults shown where there is one, line breaks of the description kept."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default in (None, False) or action.default == []:
            return action.help
        return super()._get_help_string(action)


def _process() -> int:
    """`main`, and what only a process of its own may do to its streams and signals."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by who started this: what is opened next must not get its number
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", closefd=False))
        else:
            stream.reconfigure(errors="backslashreplace")
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        return main()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        if signal.getsignal(signal.SIGINT) is _interrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:  # Python flushes again when it ends, and would say much
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _interrupt(*_: Any) -> None:
    """Ctrl-C raises KeyboardInterrupt; while that is on its way, a second one ends the process at once."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(_process())
