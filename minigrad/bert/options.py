"""The options of the command line, what `--help` shows for them, and the errors for what is not an option."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence

from minigrad.bert.config import PRESETS, BertConfig
from minigrad.bert.examples import TASKS
from minigrad.bert.pretraining import HELD_OUT
from minigrad.bert.settings import FinetuningArguments, PretrainingArguments
from minigrad.text.wordpiece import SCORES
from minigrad.training.command_line import (
    Parser,
    add_commands,
    add_settings,
    add_shares,
    add_sizes,
    changed_sizes,
    integer,
    number,
    option,
    parse_options,
)

DEFAULT_CORPUS = "python-docs"
EXAMPLE = "Raise an [MASK] if the file does not exist."

DESCRIPTION = """\
Pre-train a BERT from raw text, look at what it has learned, fine-tune it, and see what it costs.

    python -m minigrad.bert fill-mask "The [MASK] is returned."     the model that came with minigrad
    python -m minigrad.bert pretrain                         the Python documentation on this disk, 4,000 steps
    python -m minigrad.bert pretrain --corpus my-texts/ --output runs/mine      your own text
    python -m minigrad.bert finetune --model runs/reduced --data train.csv --output runs/task    a task of your own
    python -m minigrad.bert predict --model runs/task "What a text."     what it says of a new text
    python -m minigrad.bert compare --model FOLDER "What a text." "Another one."    how alike they are
    python -m minigrad.bert info base                        where BERT-Base's 110 million parameters are
"""

COLUMNS = {"text": "text", "pair": "text_pair", "label": "label"}  # by option, of the files of examples
PROGRAM = "python -m minigrad.bert"
USAGE = {  # after the program; the options are listed below each
    "pretrain": "pretrain [--corpus TEXT] [--output FOLDER] [--resume] [options]",
    "evaluate": "evaluate [--model MODEL] [--corpus TEXT | --data FILE] [options]",
    "fill-mask": "fill-mask [--model MODEL] TEXT [--top N] [options]",
    "next-sentence": "next-sentence [--model MODEL] A B [options]",
    "finetune": "finetune [--model MODEL] --data FILE [--eval FILE] [options]",
    "predict": "predict --model MODEL (--data FILE | TEXT …) [options]",
    "compare": "compare --model MODEL (TEXT TEXT … | [TEXT …] --data FILE) [options]",
    "info": "info MODEL [options]",
}
NEED_MODEL = ("predict", "compare")
MODEL = "a run's folder or a checkpoint"
STORED = f"{MODEL} (default: the model that came with minigrad)"

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

Each core computes a share of the pairs of a batch; --shares says how many. But for rounding, shares do what is done
with a whole batch. Several processes that are started by `mpirun -n 4 python -m minigrad.bert pretrain` share it out
too, and --resume goes on with any number of them. They need mpi4py and an MPI: pip install mpi4py mpich
"""

PRETRAIN_EXAMPLES = """\
examples:
  python -m minigrad.bert pretrain --steps 12000 --output runs/longer
  python -m minigrad.bert pretrain --corpus plays/ --output runs/plays --example "To be or not to [MASK]."
  python -m minigrad.bert pretrain --corpus stories --max-length 32 --learning-rate 1e-3 --output runs/stories
  python -m minigrad.bert pretrain --set hidden_size=256 --set num_attention_heads=4 --output runs/wider
"""

FINETUNE = """\
Learn a task from examples: the encoder of a pre-trained model goes on learning, with one new layer on it.

Files: .csv and .tsv with a header (commas, semicolons, tabs or bars), .jsonl with an object a line, .json with a
list of objects or SQuAD's questions, .conll with a word and its tag a line. The columns determine the task:
  text, label                              classify: a class for a text; regression: a number, if labels are as 3.5
  text, text_pair, label                   pairs: a class for two texts; similarity: a number
  question, context, answer, answer_start  qa: the answer in a text; answer_start counts characters from 0
  tokens, tags                             tag: a tag of each word (lists, or .conll)
Columns of other names: --text, --pair, --label; those of GLUE are known. All rows are checked before anything is
trained.

With --eval, the model is scored after each epoch: accuracy, beside what the commonest label alone would get, and F1
(of classes the mean, macro F1; of answers exact match and overlap of words; of tags B-, I- and O the F1 of entities);
of numbers the error, beside that of their mean, and the correlations of Pearson and Spearman.
--keep best keeps the model of the best of these evaluations beside that of the last step. The run's folder gets
metrics.csv, evaluation.csv and checkpoints that Hugging Face's transformers opens. Ctrl-C saves and stops; the same
command with --resume goes on bit for bit, also after a kill.
"""

FINETUNE_EXAMPLES = """\
examples:
  python -m minigrad.bert finetune --data train.csv --eval dev.csv --output runs/mine
  python -m minigrad.bert finetune --data train.csv --eval dev.csv --epochs 10 --keep best --output runs/mine
"""

PREDICT = """\
What a fine-tuned model says of new texts. Of a file, a line of JSON for each row, with its number in the file, its
text, and its id if there is a column of that name. Where the file has the answers too, the scores follow on stderr.
Of typed texts a line each: any number of them for classes and tags, two for pairs, question and context for answers.
"""


COMPARE = """\
How alike texts are: the cosine of their vectors, each the mean of the last layer's vectors of its tokens. Use a model
that was trained for this, such as all-MiniLM-L6-v2; with others the cosine may say little. A folder of
sentence-transformers is read as it is: if its configuration asks for it, the vector of [CLS] takes the mean's place.
  TEXT TEXT …                the first beside each of the others, the most alike first
  TEXT … --data FILE         the rows of a file that are most like each text (--top)
  --data FILE                each pair of a file as a line of JSON; if the labels are numbers, also how well the
                             cosines agree with them
  --data FILE --vectors OUT  the vectors of a file's texts as an array of NumPy
"""


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options given, by default to this process; `command` is the name of the command.

    Exits with status 2 for what is not an option, and with 0 after --help.
    """
    return parse_options(_make_parser(), arguments, USAGE, NEED_MODEL)


def settings_in(options: argparse.Namespace) -> PretrainingArguments:
    """The settings of a run. Raises ValueError."""
    lines = dataclasses.fields(PretrainingArguments)
    given = {line.name: getattr(options, line.name) for line in lines}
    if given["warmup_steps"] is None:  # so that --steps 100 is enough for a short run
        given["warmup_steps"] = max(0, min(PretrainingArguments.warmup_steps, given["steps"]))
    return PretrainingArguments(**given)


def finetuning_settings_in(options: argparse.Namespace, positions: int) -> FinetuningArguments:
    """The settings of a run of fine-tuning, for a model of that many positions. Raises ValueError."""
    given = {line.name: getattr(options, line.name) for line in dataclasses.fields(FinetuningArguments)}
    if given["max_length"] is None:
        given["max_length"] = min(FinetuningArguments.max_length, positions)
    return FinetuningArguments(**given)


def columns_in(options: argparse.Namespace) -> dict[str, str]:
    """What the files call the columns, by what the tasks call them."""
    named = {column: getattr(options, name) for name, column in COLUMNS.items()}
    return {column: theirs for column, theirs in named.items() if theirs is not None}


def with_sizes(config: BertConfig, options: argparse.Namespace) -> BertConfig:
    """The configuration with the fields that `--set name=value` names changed. Raises ConfigError."""
    return config.replace(**changed_sizes(options.set))


# --- What there is ---------------------------------------------------------------------------------------


def _make_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=PROGRAM, description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = add_commands(parser, USAGE)
    _add_pretrain(add("pretrain", "train a model from raw text", PRETRAIN))
    _add_evaluate(
        add("evaluate", "held-out losses and accuracies of a checkpoint, or scores of a fine-tuned model")
    )

    command = add("fill-mask", "the likeliest pieces for each [MASK] in a text")
    command.add_argument("--model", metavar="MODEL", help=STORED)
    command.add_argument("text", help='for example "The [MASK] is returned."')
    command.add_argument("--top", type=integer, default=5, metavar="N", help="how many pieces to show")

    command = add("next-sentence", "the probability that sentence B follows sentence A")
    command.add_argument("--model", metavar="MODEL", help=STORED)
    command.add_argument("a", help="the first sentence")
    command.add_argument("b", help="the second")

    _add_finetune(add("finetune", "learn a task from examples in a file", FINETUNE))

    command = add("predict", "what a fine-tuned model says of texts", PREDICT)
    command.add_argument("--model", metavar="MODEL", help=MODEL)
    command.add_argument("texts", nargs="*", metavar="TEXT", help="texts, or the two of a pair")
    _add_examples(command, "a file with the columns of the task")
    command.add_argument(
        "--null-threshold",
        type=number,
        metavar="SCORE",
        help="by how much no answer has to score above the best one (default: 0 if some had none in training)",
    )
    _add_counts(command, batch_size="examples a batch", max_length="tokens an example")

    command = add("compare", "how alike texts are, by the cosines of their vectors", COMPARE)
    command.add_argument("--model", metavar="MODEL", help=MODEL)
    command.add_argument("texts", nargs="*", metavar="TEXT", help="texts to compare, or to look for")
    command.add_argument("--data", metavar="FILE", help="a file with a column text, and perhaps text_pair")
    _add_columns(command)
    command.add_argument("--top", type=integer, default=5, metavar="N", help="how many rows to show")
    command.add_argument(
        "--vectors", metavar="OUT", help="where to write the vectors, a file that ends in .npy"
    )
    command.add_argument("--batch-size", type=integer, default=32, metavar="N", help="texts a batch")
    command.add_argument(
        "--max-length", type=integer, metavar="N", help="tokens a text (default: as many as the model reads)"
    )

    _add_info(add("info", "parameters by component, shapes, FLOPs and bytes of a step"))
    return parser


def _add_pretrain(command: argparse.ArgumentParser) -> None:
    command.epilog = PRETRAIN_EXAMPLES
    _add_text(command, HELD_OUT, "is held out")
    command.add_argument("--preset", choices=list(PRESETS), default="reduced", help="the model's sizes")
    add_sizes(command)
    command.add_argument("--output", default="runs/reduced", metavar="FOLDER", help="the run's folder")
    command.add_argument("--resume", action="store_true", help="go on with the run in that folder")
    command.add_argument(
        "--example", default=EXAMPLE, metavar="TEXT", help="what to fill with every evaluation; has a [MASK]"
    )
    command.add_argument("--cased", action="store_true", help="keep capitals and accents")
    command.add_argument(
        "--score", choices=SCORES, default="frequency", help="how WordPiece chooses the next merge"
    )
    add_shares(command)
    command.add_argument(
        "--cuda-graph", action="store_true", help="on a GPU, record a step once, and launch it as a whole"
    )
    add_settings(command, PretrainingArguments, {"warmup_steps": "or all steps where they are fewer"})


def _add_finetune(command: argparse.ArgumentParser) -> None:
    command.epilog = FINETUNE_EXAMPLES
    command.add_argument("--model", metavar="MODEL", help=STORED)
    command.add_argument(
        "--data",
        required=True,
        metavar="FILE",
        help="the examples to learn from, .csv, .tsv, .jsonl, .json, .conll",
    )
    command.add_argument(
        "--eval", metavar="FILE", help="examples to score the model on, with the same columns"
    )
    command.add_argument("--task", choices=TASKS, help="what to learn (default: the columns say it)")
    _add_columns(command)
    command.add_argument("--output", default="runs/finetuned", metavar="FOLDER", help="the run's folder")
    command.add_argument("--resume", action="store_true", help="go on with the run in that folder")
    command.add_argument(
        "--dropout",
        type=number,
        metavar="SHARE",
        help="of hidden states and attention weights (default: the model's)",
    )
    add_shares(command)
    add_settings(
        command, FinetuningArguments, {"max_length": "or the model's positions where they are fewer"}
    )


def _add_columns(command: argparse.ArgumentParser) -> None:
    for name, column in COLUMNS.items():
        command.add_argument(f"--{name}", metavar="COLUMN", help=f"what the file calls the column {column}")


def _add_examples(command: argparse.ArgumentParser, help: str) -> None:
    """A file for a fine-tuned model."""
    command.add_argument("--data", metavar="FILE", help=help)
    command.add_argument(
        "--task", choices=TASKS, help="what the model has learned (default: what its config.json says)"
    )
    _add_columns(command)


def _add_evaluate(command: argparse.ArgumentParser) -> None:
    command.add_argument("--model", metavar="MODEL", help=STORED)
    _add_examples(command, "score a fine-tuned model on this file, with the answers in it")
    _add_text(command, None, "was held out; 1 for all (default: the run's)")
    _add_counts(command, batch_size="pairs a batch", max_length="tokens a pair", seed="of the split")


def _add_counts(command: argparse.ArgumentParser, **helps: str) -> None:
    for name, help in helps.items():
        command.add_argument(option(name), type=integer, metavar="N", help=f"{help} (default: the run's)")


def _add_info(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", help=f"{', '.join(PRESETS)}, {MODEL}")
    add_sizes(command)
    settings = PretrainingArguments()
    command.add_argument(
        "--batch-size", type=integer, default=settings.batch_size, metavar="N", help="sequences a step"
    )
    command.add_argument(
        "--max-length",
        type=integer,
        metavar="N",
        help=f"tokens a sequence (default: {settings.max_length}, or the model's positions)",
    )


def _add_text(command: argparse.ArgumentParser, held_out: float | None, help: str) -> None:
    command.add_argument(
        "--corpus",
        default=DEFAULT_CORPUS,
        metavar="TEXT",
        help="python-docs (what is on this disk), stories or varied-stories (from a grammar), a folder of text "
        "files, or a file",
    )
    command.add_argument(
        "--held-out",
        type=number,
        default=held_out,
        metavar="SHARE",
        help=f"share of the documents that {help}",
    )
