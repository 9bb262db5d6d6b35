"""The command line: python -m minigrad.bert pretrain | evaluate | fill-mask | next-sentence | info."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Sequence

from minigrad import backend
from minigrad.bert.checkpoint import CheckpointError, Pretrained, from_pretrained, read_config
from minigrad.bert.config import PRESETS, BertConfig, ConfigError
from minigrad.bert.corpus import CorpusError, read_corpus
from minigrad.bert.data import Batch, PretrainingData, TokenDocument, encode_documents
from minigrad.bert.info import describe_model
from minigrad.bert.predict import fill_mask, next_sentence
from minigrad.bert.pretraining import (
    DivergenceError,
    Pretraining,
    PretrainingArguments,
    describe,
    evaluate,
    latest_checkpoint,
)
from minigrad.bert.tokenizer import WordPieceTokenizer, train_wordpiece

HELD_OUT_BATCHES = 50  # at most, an evaluation: 1,600 pairs of the default batch size

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
metrics.csv, evaluation.csv and checkpoints that Hugging Face's transformers opens. Ctrl-C saves and stops;
the same command with --resume goes on bit for bit, also after a kill.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0, or 1 after an error that was explained."""
    options = _parser().parse_args(arguments)
    try:
        if options.backend:
            backend.use(options.backend)
        options.command(options)
    except (
        CorpusError,
        CheckpointError,
        ConfigError,
        DivergenceError,
        backend.BackendError,
        MemoryError,
        OSError,
        ValueError,
    ) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0


# --- Commands --------------------------------------------------------------------------------------------


def pretrain_command(options: argparse.Namespace) -> None:
    """From raw text to a trained model that fills masks."""
    config = _config(options)
    settings = PretrainingArguments(
        **{field.name: getattr(options, field.name) for field in dataclasses.fields(PretrainingArguments)}
    )
    started = time.perf_counter()
    print(f"reading {options.corpus} …", flush=True)
    corpus = read_corpus(options.corpus)
    for note in corpus.notes:
        print(f"note: {note}")
    train, held_out = corpus.split(options.held_out, settings.seed)
    words = sum(len(sentence.split()) for sentence in corpus.sentences)
    print(
        f"{len(corpus.documents):,} documents, {sum(1 for _ in corpus.sentences):,} sentences, {words:,} words; "
        f"{len(held_out.documents)} documents held out"
    )
    vocabulary = train_wordpiece(
        train.sentences, config.vocab_size, lower_case=not options.cased, score=options.score
    )
    tokenizer = WordPieceTokenizer(vocabulary, lower_case=not options.cased)
    documents = encode_documents(train.documents, tokenizer)
    token_count = sum(len(sentence) for document in documents for sentence in document)
    print(
        f"WordPiece: {len(vocabulary):,} pieces, {token_count:,} training tokens "
        f"({time.perf_counter() - started:.0f} s so far)"
    )
    run = Pretraining(
        config,
        documents,
        tokenizer,
        _held_out_batches(encode_documents(held_out.documents, tokenizer), tokenizer, settings),
        options.output,
        settings,
        train.fingerprint(),
        options.resume,
    )
    parameters = sum(parameter.size for parameter in run.model.parameters())
    print(
        f"{parameters:,} parameters; {settings.steps - run.step:,} steps of {settings.batch_size} x "
        f"{settings.max_length} tokens to {options.output}\n"
        f"unigram entropy {run.unigram_entropy:.3f} nats: the MLM loss of knowing how frequent each piece is",
        flush=True,
    )
    started = time.perf_counter()
    figures = run.run()
    if run.step < settings.steps:
        return
    print(f"\n{settings.steps:,} steps; the last {time.perf_counter() - started:.0f} s of training are done")
    print(f"held out: {describe(figures)}")
    print(f"beside:   unigram entropy {run.unigram_entropy:.3f} nats; NSP by chance 50 %")
    print(f"saved in {latest_checkpoint(options.output)}\n")
    for text in EXAMPLES:
        if len(tokenizer.encode(text)) <= config.max_position_embeddings:
            _print_fillings(run.model, tokenizer, text, 5)


def evaluate_command(options: argparse.Namespace) -> None:
    """The held-out figures of a checkpoint."""
    loaded = _load(options.model)
    tokenizer = _tokenizer(loaded, options.model)
    corpus = read_corpus(options.corpus)
    if options.held_out < 1:
        _, corpus = corpus.split(options.held_out, options.seed)
    settings = PretrainingArguments(
        batch_size=options.batch_size, max_length=options.max_length, seed=options.seed
    )
    documents = encode_documents(corpus.documents, tokenizer)
    batches = _held_out_batches(documents, tokenizer, settings)
    pairs = sum(len(batch["input_ids"]) for batch in batches)
    print(f"{len(documents)} documents, {pairs} pairs: {describe(evaluate(loaded.model, batches))}")


def fill_mask_command(options: argparse.Namespace) -> None:
    """The likeliest pieces for each [MASK]."""
    loaded = _load(options.model)
    _print_fillings(loaded.model, _tokenizer(loaded, options.model), options.text, options.top)


def next_sentence_command(options: argparse.Namespace) -> None:
    """The probability that B follows A."""
    loaded = _load(options.model)
    probability = next_sentence(loaded.model, _tokenizer(loaded, options.model), options.a, options.b)
    print(f"IsNext {probability:.1%}, NotNext {1 - probability:.1%}")


def info_command(options: argparse.Namespace) -> None:
    """What a model consists of and costs."""
    if options.model in PRESETS:
        config = PRESETS[options.model]
    else:
        config = read_config(latest_checkpoint(options.model))
    print(describe_model(_changed(config, options), options.batch_size, options.max_length))


# --- Parts -----------------------------------------------------------------------------------------------


def _changed(config: BertConfig, options: argparse.Namespace) -> BertConfig:
    """The configuration with the fields that `--set name=value` names changed."""
    changes = {}
    for change in options.set:
        name, equals, value = change.partition("=")
        if not equals:
            raise ConfigError(f"--set takes field=value, such as hidden_size=256; got {change!r}")
        try:
            changes[name] = json.loads(value)
        except ValueError:
            raise ConfigError(f"--set {name}: expected a number, got {value!r}") from None
    return config.replace(**changes)


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
        print(f"note: {note}", file=sys.stderr)
    return loaded


def _tokenizer(loaded: Pretrained, model: str) -> WordPieceTokenizer:
    if loaded.tokenizer is None:
        raise CheckpointError(f"{model} has no vocab.txt, which this command needs")
    return loaded.tokenizer


def _print_fillings(model: object, tokenizer: WordPieceTokenizer, text: str, top: int) -> None:
    print(text)
    for fillings in fill_mask(model, tokenizer, text, top):  # type: ignore[arg-type]
        print("   " + "  ".join(f"{filling.token} {filling.probability:.0%}" for filling in fillings))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
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

    def add_text(command: argparse.ArgumentParser) -> None:
        command.add_argument(
            "--corpus",
            default="python-docs",
            help="python-docs (what is on this disk), a folder of text files, or a file",
        )
        command.add_argument(
            "--held-out",
            type=float,
            default=0.05,
            metavar="SHARE",
            help="share of the documents that is held out",
        )

    settings = PretrainingArguments()
    pretrain = add("pretrain", pretrain_command, "train a model from raw text", PRETRAIN)
    add_text(pretrain)
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
        pretrain.add_argument(
            "--" + name.replace("_", "-"), type=type(value), default=value, metavar="N", help=help
        )
    pretrain.add_argument(
        "--precision",
        choices=backend.PRECISIONS,
        default=settings.precision,
        help="what matrix products multiply: 16 bits are faster on a GPU (float16 with loss scaling)",
    )

    command = add("evaluate", evaluate_command, "held-out losses and accuracies of a checkpoint")
    command.add_argument("model", help="a run's folder or a checkpoint")
    add_text(command)
    for name in ("batch_size", "max_length", "seed"):
        value = getattr(settings, name)
        command.add_argument(
            "--" + name.replace("_", "-"), type=int, default=value, metavar="N", help=helps[name]
        )

    command = add("fill-mask", fill_mask_command, "the likeliest pieces for each [MASK] in a text")
    command.add_argument("model", help="a run's folder or a checkpoint")
    command.add_argument("text", help='for example "The [MASK] is returned."')
    command.add_argument("--top", type=int, default=5, metavar="N", help="how many pieces to show")

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
        "--batch-size", type=int, default=settings.batch_size, metavar="N", help="sequences a step"
    )
    command.add_argument(
        "--max-length", type=int, default=settings.max_length, metavar="N", help="tokens a sequence"
    )
    return parser


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Defaults shown where there is one, line breaks of the description kept."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default in (None, False) or action.default == []:
            return action.help
        return super()._get_help_string(action)


if __name__ == "__main__":
    sys.exit(main())
