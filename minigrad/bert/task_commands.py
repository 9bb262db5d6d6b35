"""The commands of tasks: to learn one from examples, to predict, and to score."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minigrad.bert.checkpoint import from_pretrained, read_architecture, read_config, read_task
from minigrad.bert.examples import (
    IDENTIFIER,
    INPUTS,
    NUMBERS,
    OR_NONE,
    TARGETS,
    from_texts,
    have_none,
    read_examples,
)
from minigrad.bert.features import EncodedExamples, encode_examples
from minigrad.bert.finetuning import Finetuning, prepare_finetuning
from minigrad.bert.formats import read_rows
from minigrad.bert.loading import chosen, described, load
from minigrad.bert.model import BertModel
from minigrad.bert.options import COLUMNS, columns_in, finetuning_settings_in
from minigrad.bert.sentence_vectors import agreement, embed, read_pooling, unit
from minigrad.bert.settings import FinetuningArguments
from minigrad.bert.task_metrics import best_threshold, confusion_table, describe_scores, scores, yardstick
from minigrad.bert.task_predict import MODELS, evaluate_examples, predict_examples
from minigrad.bert.tasks import BertForSequenceClassification, TaskModel
from minigrad.bert.training import finetuning_kind, require_positions
from minigrad.files import write_atomic
from minigrad.messages import shown
from minigrad.training.command_line import python, remark, say, typed
from minigrad.training.folders import latest_checkpoint, read_latest
from minigrad.training.progress import Unfailing
from minigrad.training.reading import CheckpointError


def finetune_command(options: argparse.Namespace) -> int:
    """From a pre-trained model and examples to a model that does a task; returns the exit status."""
    model = chosen(options.model)
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
    words = ["--model", str(run.output), "--data", str(options.eval or options.data)]
    words += [
        word for name in COLUMNS if (theirs := getattr(options, name)) for word in (f"--{name}", theirs)
    ]
    say(f"  {python()} -m minigrad.bert predict {' '.join(map(typed, words))}")
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
    checkpoint, config, state = read_latest(options.model, lambda folder: described(folder, kind))
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
        examples = read_examples(options.data, task, scored, columns_in(options), among=tasks)
        if examples.task not in tasks:
            raise ValueError(
                f"{options.data} has the columns of {examples.task!r}, but {checkpoint} has learned {tasks[0]!r}"
            )
        if len(INPUTS[examples.task]) == 1 and "text_pair" in examples.ignored:
            remark(f"the model has learned single texts: the column text_pair of {options.data} is not read")
        if not examples.has_targets and TARGETS[examples.task][0] in examples.ignored:
            remark(f"some rows of {options.data} have no {TARGETS[examples.task][0]}, so there are no scores")
    needs = ("bert.pooler.", "classifier.", "qa_outputs.")
    model, tokenizer = load(options.model, *needs, kind=MODELS[examples.task])
    labels = model.config.id2label
    encoded = encode_examples(examples, tokenizer, settings.max_length, labels, to_learn=scored)
    for note in encoded.notes:
        remark(note)
    return model, encoded, settings.batch_size


def _learned(checkpoint: Path, asked: str | None) -> list[str]:
    """The task that a model has learned; where its files do not say it, those that its class allows.

    Raises CheckpointError for a model that is not fine-tuned, ValueError where another task is asked for.
    """
    architecture, one_score = read_architecture(checkpoint), read_config(checkpoint).num_labels == 1
    tasks = [task for task, kind in MODELS.items() if kind.__name__ == architecture]
    if architecture == BertForSequenceClassification.__name__:
        tasks = [task for task in tasks if (task in NUMBERS) == one_score]
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


def evaluate_task(options: argparse.Namespace) -> None:
    """The scores of a fine-tuned model on a file's rows, and where it errs."""
    model, encoded, batch_size = _fine_tuned(options, [], scored=True)
    _say_how_good(model, encoded, evaluate_examples(model, encoded, batch_size), batch_size, options.data)


def _print_predictions(
    model: TaskModel, examples: EncodedExamples, batch_size: int, threshold: float | None, typed: bool
) -> None:
    predictions = []
    for number, one in enumerate(predict_examples(model, examples, batch_size, threshold), start=1):
        predictions.append(one)
        row = examples.rows[number - 1]
        if not typed:
            _print_row(number, row, INPUTS[examples.task], one)
        elif "tags" in one:
            words = zip(row["tokens"], one["tags"], strict=True)
            say("  ".join(f"{shown(word)} {shown(str(tag))}" for word, tag in words))
        elif examples.task in NUMBERS:
            say(f"{one['label']:.6g}")
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


def _print_row(number: int, row: Mapping[str, Any], inputs: Sequence[str], found: Mapping[str, Any]) -> None:
    """A line of JSON: which row it is, what the model read, but for a context, which is long, and what it found."""
    told = {name: row[name] for name in (IDENTIFIER, *inputs) if name in row and name != "context"}
    unicode = (sys.stdout.encoding or "").lower() in ("utf-8", "utf8")
    say(json.dumps({"row": number, **told, **found}, ensure_ascii=not unicode))


def compare_command(options: argparse.Namespace) -> None:
    """How alike texts are, by the cosines of their vectors."""
    texts = [row["text"] for row in from_texts("classify", options.texts).rows]
    if options.data:
        examples = read_examples(options.data, need_targets=None, named=columns_in(options))
    elif len(texts) < 2 or options.vectors or columns_in(options):
        raise ValueError(
            "compare takes two texts or more, or --data FILE, perhaps with --vectors and columns"
        )
    else:
        examples, texts = from_texts("classify", texts[1:]), texts[:1]
    inputs, rows, top = INPUTS[examples.task], examples.rows, options.top if options.data else None
    are_pairs, path = len(inputs) == 2, Path(options.vectors or "x.npy")
    if inputs[0] != "text":
        raise ValueError(f"compare reads texts, and {options.data} has the columns of {examples.task!r}")
    if are_pairs == bool(texts or options.vectors):
        hint = (
            "compares them with each other alone"
            if are_pairs
            else "takes a TEXT to look for, or --vectors OUT"
        )
        raise ValueError(f"{options.data} has {'pairs' if are_pairs else 'single texts'}: compare {hint}")
    if path.suffix != ".npy" or not path.parent.is_dir() or options.top < 1:
        raise ValueError(
            "expected a --top of at least 1, and --vectors with a name.npy in a folder that is there"
        )
    pooling, longest = read_latest(options.model, read_pooling)
    bert, tokenizer = load(options.model, kind=BertModel)
    positions = bert.config.max_position_embeddings
    length = min(longest or positions, positions) if options.max_length is None else options.max_length
    settings = FinetuningArguments(batch_size=options.batch_size, max_length=length)
    require_positions(length, bert.config)
    every = [*texts, *(row[column] for row in rows for column in inputs)]
    vectors, cut = embed(bert, tokenizer, every, length, settings.batch_size, pooling)
    if cut:
        remark(f"{cut} of {len(every)} texts are longer than {length} tokens: their ends are cut off")
    asked, found = unit(vectors[: len(texts)]), unit(vectors[len(texts) :])
    if are_pairs:
        cosines = (found[::2] * found[1::2]).sum(axis=1)
        for index, cosine in enumerate(cosines.tolist()):
            _print_row(index + 1, rows[index], inputs, {"similarity": cosine})
        column = examples.theirs.get("label", "label")
        if figures := agreement([row.get(column) for _, row in read_rows(examples.path)], cosines):
            remark(f"with the labels: Pearson {figures['pearson']:.3f}, Spearman {figures['spearman']:.3f}")
    for text, cosines in zip(texts, asked @ found.T, strict=True):
        say(shown(text))
        for index in np.argsort(-cosines, kind="stable")[:top]:
            at = f"row {index + 1}: " if options.data else ""
            say(f"{cosines[index]:6.2f}  {at}{shown(rows[index]['text'])}")
    if options.vectors:
        content = io.BytesIO()
        np.save(content, vectors[len(texts) :])
        write_atomic(path, content.getvalue())
        say(f"the vectors of {len(rows):,} texts, {vectors.shape[1]} numbers each, are in {path}")
