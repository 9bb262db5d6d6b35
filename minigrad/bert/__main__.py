"""The command line: python -m minigrad.bert COMMAND; --help lists the commands."""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Sequence

from minigrad.bert.checkpoint import describe_checkpoint, read_config
from minigrad.bert.config import PRESETS, BertConfig
from minigrad.bert.data import encode_documents, held_out_batches
from minigrad.bert.info import describe_model
from minigrad.bert.loading import chosen, described, load
from minigrad.bert.metrics import describe, evaluate
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.options import DEFAULT_CORPUS, EXAMPLE, columns_in, parse, settings_in, with_sizes
from minigrad.bert.predict import describe_fillings, fill_mask, fits, next_sentence
from minigrad.bert.pretraining import HELD_OUT, Pretraining, prepare
from minigrad.bert.settings import PretrainingArguments
from minigrad.bert.story_scores import score_stories
from minigrad.bert.task_commands import compare_command, evaluate_task, finetune_command, predict_command
from minigrad.bert.training import PRETRAINING, require_positions
from minigrad.distributed import from_environment
from minigrad.messages import shown
from minigrad.stories.floors import Scorer
from minigrad.stories.stories import STORIES, Stories, draw_pairs
from minigrad.text.corpus import Corpus, CorpusError, read_corpus
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import MASK
from minigrad.training.command_line import as_process, python, remark, run_command, say, speaking, typed
from minigrad.training.folders import OtherKindError, latest_checkpoint, read_latest
from minigrad.training.progress import counting
from minigrad.training.reading import CheckpointError
from minigrad.training.state import STATE, TrainingState

STORY_PAIRS = 300  # of an evaluation
STORY_EXAMPLE = "mary is in the attic with john . [MASK] has four books ."
EXAMPLES = [
    "This function returns a new [MASK] of the given shape.",
    EXAMPLE,
    "The [MASK] of the array must be an integer.",
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status: 0, 1 after an error that was explained, 128 + a signal's number."""
    return run_command(COMMANDS, parse(arguments), shared=("pretrain",))


# --- Commands --------------------------------------------------------------------------------------------


def pretrain_command(options: argparse.Namespace) -> int:
    """From raw text to a trained model that fills masks; returns the exit status."""
    if options.example and MASK not in options.example:
        raise ValueError(f"--example: there is no {MASK} in {shown(options.example, 40)!r}")
    example = options.example
    if options.corpus in STORIES and example == EXAMPLE:
        example = STORY_EXAMPLE
    world = from_environment()
    with (
        world.ending_together(),
        speaking(world.is_first),
        prepare(
            options.corpus,
            with_sizes(PRESETS[options.preset], options),
            settings_in(options),
            options.output,
            lower_case=not options.cased,
            score=options.score,
            held_out=options.held_out,
            resume=options.resume,
            shares=options.shares,
            cuda_graph=options.cuda_graph,
            example=example,
            say=say,
            world=world,
        ) as run,
    ):
        return _train(run, options)


def _train(run: Pretraining, options: argparse.Namespace) -> int:
    settings, before = run.arguments, run.step
    parameters = sum(parameter.size for parameter in run.model.parameters())
    say(
        f"{parameters:,} parameters; {settings.steps - run.step:,} steps of {settings.batch_size} x "
        f"{settings.max_length} tokens to {run.output}\n"
        f"words alone: an MLM loss of {run.unigram_entropy:.3f} nats, from knowing only how frequent each piece is "
        "(the unigram entropy)\n"
        f"a coin:      an NSP loss of {math.log(2):.3f} nats, and 50 % of the pairs right"
    )
    if run.example and fits(run.example, run.tokenizer, run.model.config):
        say(f"guesses:     {run.example}")
    started = time.perf_counter()
    figures = run.run()
    if not run.world.is_first:
        return 0 if run.stopped_by is None else 128 + run.stopped_by
    if run.stopped_by is not None:
        return 128 + run.stopped_by  # so that `pretrain && evaluate` does not go on
    since = f" from step {before:,}" if before else ""
    say(f"\ntrained{since} to step {settings.steps:,} in {time.perf_counter() - started:.0f} s")
    if figures:
        say(f"held out: {describe(figures, run.unigram_entropy)}")
    say(
        f"saved in {latest_checkpoint(run.output)}; the losses of all steps are in {run.folder.metrics.path}\n"
    )
    examples = [run.example, *EXAMPLES] if options.corpus == DEFAULT_CORPUS else [run.example]
    for text in filter(None, dict.fromkeys(examples)):
        if fits(text, run.tokenizer, run.model.config):
            _print_fillings(run.model, run.tokenizer, text, 5)
    say("\nYour turn:")
    for command in _what_next(run, options):
        say(f"  {command}")
    return 0


def _what_next(run: Pretraining, options: argparse.Namespace) -> list[str]:
    """Commands to type after a run."""
    here = f"{python()} -m minigrad.bert"
    model, text = f"--model {typed(str(run.output))}", run.example or EXAMPLE
    corpus = "" if options.corpus == DEFAULT_CORPUS else f" --corpus {typed(options.corpus)}"
    fill = f"{here} fill-mask {model} {typed(text)}"
    return [
        *([fill] if fits(text, run.tokenizer, run.model.config) else []),
        f"{here} evaluate {model}{corpus}",
    ]


def evaluate_command(options: argparse.Namespace) -> None:
    """The held-out figures of a checkpoint, by default on what its run held out; or of a fine-tuned one, on a file."""
    options.model = chosen(options.model)
    if options.data:
        if options.corpus != DEFAULT_CORPUS or options.held_out is not None or options.seed is not None:
            raise ValueError("--corpus, --held-out and --seed are of running text, and --data of examples")
        evaluate_task(options)
        return
    if options.task or columns_in(options):
        raise ValueError("--task, --text, --pair and --label are of examples, and there is no --data")
    try:
        checkpoint, config, state = read_latest(options.model, lambda folder: described(folder, PRETRAINING))
    except OtherKindError as error:
        raise CheckpointError(f"{error}; a fine-tuned model is scored on a file: --data FILE") from None
    settings = _evaluation_settings(options, state, config)
    require_positions(settings.max_length, config)
    of_run = HELD_OUT if state is None or state.held_out is None else state.held_out
    share = of_run if options.held_out is None else options.held_out
    if not 0 <= share <= 1:
        raise ValueError(f"held_out must be within 0 … 1 (1 is everything), got {share}")
    model, tokenizer = load(options.model, "bert.pooler.", "cls.")
    if options.corpus in STORIES:
        _evaluate_on_stories(model, tokenizer, Stories(STORIES[options.corpus]), settings)
        return
    corpus = read_corpus(options.corpus)
    scored = corpus.split(share, settings.seed)[1] if share < 1 else corpus
    if state is None:
        remark(f"{checkpoint} has no {STATE}: whether the model has seen this text is not known")
    else:
        _warn_of_training_text(corpus, of_run, scored, state)
    documents = encode_documents(scored.documents, tokenizer)
    batches = held_out_batches(documents, tokenizer, settings.batch_size, settings.max_length, settings.seed)
    pairs = sum(len(batch["input_ids"]) for batch in batches)
    say(f"{len(documents)} documents, {pairs} pairs: {describe(evaluate(model, batches))}")


def _evaluate_on_stories(
    model: BertForPreTraining, tokenizer: WordPieceTokenizer, stories: Stories, settings: PretrainingArguments
) -> None:
    """The model beside the best possible one: by slot, each word hidden once."""
    if tokenizer.vocab != stories.tokenizer.vocab:
        raise ValueError(
            f"this model has {tokenizer.vocab_size} pieces that are not the {stories.tokenizer.vocab_size} words of "
            f"{stories.setting.name!r} stories: it was trained on another text"
        )
    pairs = draw_pairs(stories.setting, STORY_PAIRS, settings.seed + 2**20)
    with counting("pair") as progress:
        scores = score_stories(model, stories, pairs, Scorer(stories.setting), progress)
    say(f"{len(pairs)} pairs of {stories.setting.name!r} stories, one word hidden at a time:")
    say(f"{'':22}{'nats':>8}{'floor':>8}{'right':>8}{'best':>8}{'forced':>8}{'guesses':>9}")
    for slot, score in scores.items():
        forced = "" if score.forced is None else f"{score.forced:.1%}"
        say(
            f"{slot:22}{score.nats:8.3f}{score.floor:8.3f}{score.accuracy:8.1%}{score.best:8.1%}{forced:>8}"
            f"{score.count:9,}"
        )
    say(
        "floor, best: of one who knows the grammar. forced: the right word held for likelier than its rival (he, she)"
    )


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
        remark(
            "this is not the text that the run was trained on, or not split as it was there; "
            "whether the model has seen it is not known"
        )
        return
    seen = {tuple(document) for document in trained.documents}
    count = sum(tuple(document) in seen for document in scored.documents)
    if count:
        remark(f"the model was trained on {count} of these {len(scored.documents)} documents")


def fill_mask_command(options: argparse.Namespace) -> None:
    """The likeliest pieces for each [MASK]."""
    model = chosen(options.model)
    _print_fillings(*load(model, "cls.predictions."), options.text, options.top)


def next_sentence_command(options: argparse.Namespace) -> None:
    """The probability that B follows A."""
    model = chosen(options.model)
    loaded = load(model, "bert.pooler.", "cls.seq_relationship.")
    probability = next_sentence(*loaded, options.a, options.b)
    say(f"IsNext {probability:.1%}, NotNext {1 - probability:.1%}")


def info_command(options: argparse.Namespace) -> None:
    """What a model consists of and costs."""
    if options.model in PRESETS:
        config = PRESETS[options.model]
    elif not os.path.exists(options.model):
        raise CheckpointError(f"{options.model} is neither a folder nor one of {', '.join(PRESETS)}")
    else:
        folder = latest_checkpoint(options.model)
        config = read_config(folder)
        say("\n".join([*describe_checkpoint(folder), ""]))
    config = with_sizes(config, options)
    length = options.max_length
    if length is None:
        length = min(PretrainingArguments.max_length, config.max_position_embeddings)
    require_positions(length, config)
    say(describe_model(config, options.batch_size, length))


COMMANDS = {
    "pretrain": pretrain_command,
    "evaluate": evaluate_command,
    "fill-mask": fill_mask_command,
    "next-sentence": next_sentence_command,
    "finetune": finetune_command,
    "predict": predict_command,
    "compare": compare_command,
    "info": info_command,
}


# --- Parts -----------------------------------------------------------------------------------------------


def _print_fillings(model: BertForPreTraining, tokenizer: WordPieceTokenizer, text: str, top: int) -> None:
    say(text)
    for fillings in fill_mask(model, tokenizer, text, top):
        say(f"   {describe_fillings(fillings)}")


if __name__ == "__main__":
    sys.exit(as_process(main))
