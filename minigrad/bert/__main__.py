"""The command line: python -m minigrad.bert COMMAND; --help lists the commands."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from minigrad.bert.checkpoint import (
    describe_checkpoint,
    from_pretrained,
    read_architecture,
    read_config,
    read_task,
)
from minigrad.bert.config import PRESETS, BertConfig
from minigrad.bert.data import encode_documents, held_out_batches
from minigrad.bert.examples import IDENTIFIER, INPUTS, NUMBERS, OR_NONE, from_texts, have_none, read_examples
from minigrad.bert.features import EncodedExamples, encode_examples
from minigrad.bert.finetuning import Finetuning, prepare_finetuning
from minigrad.bert.info import describe_model
from minigrad.bert.metrics import describe, evaluate
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.options import (
    DEFAULT_CORPUS,
    EXAMPLE,
    columns_in,
    finetuning_settings_in,
    parse,
    settings_in,
    with_sizes,
)
from minigrad.bert.predict import describe_fillings, fill_mask, fits, next_sentence
from minigrad.bert.pretraining import HELD_OUT, Pretraining, prepare
from minigrad.bert.settings import FinetuningArguments, PretrainingArguments
from minigrad.bert.story_scores import score_stories
from minigrad.bert.task_metrics import best_threshold, confusion_table, describe_scores, scores, yardstick
from minigrad.bert.task_predict import MODELS, evaluate_examples, predict_examples
from minigrad.bert.tasks import BertForSequenceClassification, TaskModel
from minigrad.bert.trained import trained_model
from minigrad.bert.training import PRETRAINING, finetuning_kind, require_positions
from minigrad.distributed import from_environment
from minigrad.messages import shown
from minigrad.stories.floors import Scorer
from minigrad.stories.stories import STORIES, Stories, draw_pairs
from minigrad.text.corpus import Corpus, CorpusError, read_corpus
from minigrad.text.tokenizer import WordPieceTokenizer
from minigrad.text.wordpiece import MASK
from minigrad.training.command_line import as_process, python, remark, run_command, say, speaking, typed
from minigrad.training.folders import RunKind, latest_checkpoint, read_latest
from minigrad.training.pretrained import Pretrained
from minigrad.training.progress import Unfailing, counting
from minigrad.training.reading import CheckpointError, is_there
from minigrad.training.state import STATE, TrainingState, read_state

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
    options.model = _chosen(options.model)
    if options.data:
        if options.corpus != DEFAULT_CORPUS or options.held_out is not None or options.seed is not None:
            raise ValueError("--corpus, --held-out and --seed are of running text, and --data of examples")
        model, encoded, batch_size = _fine_tuned(options, [], scored=True)
        _say_how_good(model, encoded, evaluate_examples(model, encoded, batch_size), batch_size, options.data)
        return
    if options.task or columns_in(options):
        raise ValueError("--task, --text, --pair and --label are of examples, and there is no --data")
    checkpoint, config, state = read_latest(options.model, lambda folder: _described(folder, PRETRAINING))
    settings = _evaluation_settings(options, state, config)
    require_positions(settings.max_length, config)
    of_run = HELD_OUT if state is None or state.held_out is None else state.held_out
    share = of_run if options.held_out is None else options.held_out
    if not 0 <= share <= 1:
        raise ValueError(f"held_out must be within 0 … 1 (1 is everything), got {share}")
    loaded = _load(options.model, "bert.pooler.", "cls.")
    tokenizer = _tokenizer(loaded, options.model)
    if options.corpus in STORIES:
        _evaluate_on_stories(loaded.model, tokenizer, Stories(STORIES[options.corpus]), settings)
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
    say(f"{len(documents)} documents, {pairs} pairs: {describe(evaluate(loaded.model, batches))}")


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
    model = _chosen(options.model)
    loaded = _load(model, "cls.predictions.")
    _print_fillings(loaded.model, _tokenizer(loaded, model), options.text, options.top)


def next_sentence_command(options: argparse.Namespace) -> None:
    """The probability that B follows A."""
    model = _chosen(options.model)
    loaded = _load(model, "bert.pooler.", "cls.seq_relationship.")
    probability = next_sentence(loaded.model, _tokenizer(loaded, model), options.a, options.b)
    say(f"IsNext {probability:.1%}, NotNext {1 - probability:.1%}")


def finetune_command(options: argparse.Namespace) -> int:
    """From a pre-trained model and examples to a model that does a task; returns the exit status."""
    model = _chosen(options.model)
    settings = finetuning_settings_in(options, read_config(latest_checkpoint(model)).max_position_embeddings)
    messages: Any = Unfailing(sys.stdout)
    with (
        contextlib.redirect_stdout(messages),
        prepare_finetuning(
            model,
            options.data,
            settings,
            options.output,
            evaluation=options.eval,
            task=options.task,
            named=columns_in(options),
            dropout=options.dropout,
            resume=options.resume,
            shares=options.shares,
            say=say,
        ) as run,
    ):
        return _finetune(run, options)


def _finetune(run: Finetuning, options: argparse.Namespace) -> int:
    parameters = list(run.model.parameters())
    trained = sum(parameter.size for parameter in parameters if parameter.requires_grad)
    say(
        f"{sum(parameter.size for parameter in parameters):,} parameters, {trained:,} of them trained; "
        f"{run.total_steps - run.step:,} steps of {run.arguments.batch_size} examples, at a learning rate of up to "
        f"{run.learning_rate:.1e}, to {run.output}"
    )
    started = time.perf_counter()
    run.run()
    if run.stopped_by is not None:
        return 128 + run.stopped_by
    say(f"\ntrained to step {run.total_steps:,} in {time.perf_counter() - started:.0f} s")
    checkpoint = latest_checkpoint(run.output)
    if run.best:
        assert run.examples is not None
        kept = from_pretrained(checkpoint, type(run.model), needs=[""]).model
        _say_how_good(kept, run.examples, run.best, run.arguments.batch_size, options.eval)
    say(f"saved in {checkpoint}; all losses are in {run.folder.metrics.path}\n\nYour turn:")
    data = typed(str(options.eval or options.data))
    say(f"  {python()} -m minigrad.bert predict --model {typed(str(run.output))} --data {data}")
    return 0


def _say_how_good(
    model: TaskModel, examples: EncodedExamples, figures: dict[str, float], batch_size: int, data: str
) -> None:
    """The figures of a model, and where it errs."""
    beside = yardstick(examples.task, examples.rows)
    say(f"{data}: {describe_scores(examples.task, figures, beside)}")
    to_be_none = math.inf if have_none(examples.rows) else None  # never
    predictions = list(predict_examples(model, examples, batch_size, to_be_none))
    if to_be_none is not None:
        best = best_threshold(examples.rows, predictions)
        say(f"the best F1 there is with predict's --null-threshold {best:.4g}")
    elif examples.task not in ("qa", *NUMBERS):
        say("\n" + "\n".join(confusion_table(examples.rows, predictions)) + "\n")
    if words := beside.not_beaten(figures):
        say(words)


def predict_command(options: argparse.Namespace) -> None:
    """What a fine-tuned model predicts for a file's rows, or for texts."""
    if bool(options.texts) == bool(options.data):
        raise ValueError("predict takes either texts or --data FILE")
    model, encoded, batch_size = _fine_tuned(options, options.texts)
    threshold = options.null_threshold
    if threshold is not None and encoded.task != "qa":
        raise ValueError(f"--null-threshold is for questions, and the model has learned {encoded.task!r}")
    if threshold is not None and math.isnan(threshold):
        raise ValueError("--null-threshold must be a number, got nan")
    if threshold is None and read_latest(options.model, read_task) == OR_NONE:
        threshold = 0.0
    _print_predictions(model, encoded, batch_size, threshold, bool(options.texts))


def _fine_tuned(
    options: argparse.Namespace, texts: list[str], scored: bool = False
) -> tuple[TaskModel, EncodedExamples, int]:
    """A fine-tuned model, the examples that it is to read, and how many at once.

    texts: that were typed; without them the examples are in a file. scored: whether they need the answers.
    """
    tasks = read_latest(options.model, lambda folder: _learned(folder, options.task))
    kind = finetuning_kind(tasks[0])
    checkpoint, config, state = read_latest(options.model, lambda folder: _described(folder, kind))
    of_run = state.arguments if state else {"max_length": config.max_position_embeddings}
    names = ("batch_size", "max_length")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    settings = FinetuningArguments(**{**of_run, **given})
    require_positions(settings.max_length, config)
    if len(texts) > 1 and len(tasks) > 1:
        raise ValueError(
            f"{checkpoint} does not say what it has learned: with --task {tasks[0]} these are {len(texts)} "
            f"texts, with --task {tasks[1]} a pair"
        )
    if texts and columns_in(options):
        raise ValueError("--text, --pair and --label name columns of a file, and there is none")
    if texts:
        examples = from_texts(tasks[0], texts)
    else:
        task = tasks[0] if len(tasks) == 1 else None
        examples = read_examples(options.data, task, need_targets=scored, named=columns_in(options))
        if examples.task not in tasks:
            raise ValueError(
                f"{options.data} has the columns of {examples.task!r}, but {checkpoint} has learned {tasks[0]!r}"
            )
        if len(INPUTS[examples.task]) == 1 and "text_pair" in examples.ignored:
            remark(f"the model has learned single texts: the column text_pair of {options.data} is not read")
    needs = ("bert.pooler.", "classifier.", "qa_outputs.")
    loaded = read_latest(
        options.model, lambda folder: from_pretrained(folder, MODELS[examples.task], needs=needs)
    )
    for note in loaded.notes:
        remark(note)
    tokenizer = _tokenizer(loaded, options.model)
    labels = loaded.model.config.id2label
    encoded = encode_examples(examples, tokenizer, settings.max_length, labels, to_learn=scored)
    for note in encoded.notes:
        remark(note)
    return loaded.model, encoded, settings.batch_size


def _described(checkpoint: Path, kind: RunKind) -> tuple[Path, BertConfig, TrainingState | None]:
    """A checkpoint, its configuration, and the state of its run, if that is there."""
    state = read_state(checkpoint, kind) if is_there(checkpoint / STATE) else None
    return checkpoint, read_config(checkpoint), state


def _learned(checkpoint: Path, asked: str | None) -> list[str]:
    """The task that a model has learned; where its files do not say it, those that its class allows.

    Raises CheckpointError for a model that is not fine-tuned, ValueError where another task is asked for.
    """
    architecture = read_architecture(checkpoint)
    one_score = read_config(checkpoint).num_labels == 1
    tasks = [
        task
        for task, kind in MODELS.items()
        if kind.__name__ == architecture
        and (kind is not BertForSequenceClassification or (task in NUMBERS) == one_score)
    ]
    if not tasks:
        raise CheckpointError(
            f"{checkpoint} is a {shown(architecture, 40) or 'model of no name'}, no fine-tuned model; "
            "make one with: python -m minigrad.bert finetune"
        )
    learned = read_task(checkpoint)
    if learned == OR_NONE:
        tasks = ["qa"]
    elif learned in tasks:
        tasks = [learned]
    if asked is None:
        return tasks
    if asked not in tasks:
        raise ValueError(f"--task is {asked!r}, but {checkpoint} has learned {' or '.join(map(repr, tasks))}")
    return [asked]


def _print_predictions(
    model: TaskModel, examples: EncodedExamples, batch_size: int, threshold: float | None, typed: bool
) -> None:
    predictions = []
    for number, one in enumerate(predict_examples(model, examples, batch_size, threshold), start=1):
        predictions.append(one)
        row = examples.rows[number - 1]
        if not typed:
            told = {name: row[name] for name in (IDENTIFIER, *INPUTS[examples.task]) if name in row}
            told.pop("context", None)  # long, and the answer says where in it
            unicode = (sys.stdout.encoding or "").lower() in ("utf-8", "utf8")
            say(json.dumps({"row": number, **told, **one}, ensure_ascii=not unicode))
        elif "tags" in one:
            words = zip(row["tokens"], one["tags"], strict=True)
            say("  ".join(f"{shown(word)} {shown(str(tag))}" for word, tag in words))
        elif examples.task in NUMBERS:
            say(f"{one['label']:.4g}")
        elif "answer" in one:
            say(f"{shown(one['answer']) or '(no answer)'}  {one['probability']:.0%}")
        else:
            likeliest = sorted(one["probabilities"].items(), key=lambda pair: -pair[1])
            say("  ".join(f"{shown(name)} {share:.0%}" for name, share in likeliest[:5]))
    if all(one.targets for one in examples.features):
        beside = yardstick(examples.task, examples.rows)
        figures = scores(examples.task, examples.rows, predictions)
        lines = [f"scores: {describe_scores(examples.task, figures, beside)}"]
        if examples.task not in ("qa", *NUMBERS):
            lines += confusion_table(examples.rows, predictions)
        print("\n".join(lines), file=Unfailing(sys.stderr))


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
    "info": info_command,
}


# --- Parts -----------------------------------------------------------------------------------------------


def _chosen(model: str | None) -> str:
    """The model that was named; where none was, the one that came with the library."""
    if model is not None:
        return model
    folder = trained_model()
    remark(f"no model is named: this is the one that came with minigrad, {folder}")
    return str(folder)


def _load(model: str, *needs: str) -> Pretrained:
    """The model, of which the weights whose names begin so must have been trained."""
    loaded = read_latest(model, lambda folder: from_pretrained(folder, needs=needs))
    for note in loaded.notes:
        remark(note)
    return loaded


def _tokenizer(loaded: Pretrained, model: str) -> WordPieceTokenizer:
    if loaded.tokenizer is None:
        raise CheckpointError(f"{model} has no vocab.txt, which this command needs")
    return loaded.tokenizer


def _print_fillings(model: BertForPreTraining, tokenizer: WordPieceTokenizer, text: str, top: int) -> None:
    say(text)
    for fillings in fill_mask(model, tokenizer, text, top):
        say(f"   {describe_fillings(fillings)}")


if __name__ == "__main__":
    sys.exit(as_process(main))
