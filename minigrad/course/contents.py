"""The course's table of contents: every chapter, written or planned, in the order in which it is read.

It is the one list of their names, titles and parts. A chapter's name is that of its file, book/NAME.ipynb, and of its
exercises; its number is its place. What shows a number takes it from here: pages and the README when `make map` writes
them, checks when they speak. A chapter without a file has a page on the site that says that it is planned.
"""

from __future__ import annotations

import re
from typing import NamedTuple

ERRATA = 71  # the sources' mistakes are numbered 1 to 71; the chapter "errata" runs them


class Chapter(NamedTuple):
    """One chapter.

    name: of its file; title: its heading; short: the same in a box of the map; build: what the reader will have built,
    to follow "You will build"; library: where the library has it now, as paths in the repository; second: it shares
    its number with the chapter above, and has a "b" beside it; once: the number that its file and its address began
    with when they had one.
    """

    name: str
    title: str
    short: str
    part: str
    build: str
    library: tuple[str, ...] = ()
    second: bool = False
    once: str = ""

    @property
    def number(self) -> str:
        """Its place in the course, from "0"; "6b" for a second page of chapter 6."""
        return NUMBERS[self.name]

    @property
    def page(self) -> str:
        """The page's name in the site, such as `book/one_head`."""
        return f"book/{self.name}"

    @property
    def heading(self) -> str:
        """The title as the page's heading has it; the opening chapter has no number there."""
        return self.title if self.number == "0" else f"{self.number}. {self.title}"


START = "Start"
ENGINE = "I. The engine"
TEXT = "II. Text in"
ENCODER = "III. The encoder"
PRETRAINING = "IV. Pre-training"
USING = "V. Using it"
BESIDE = "VI. Before and beside BERT"
MACHINES = "VII. Machines"
SOURCES = "VIII. The sources"

CHAPTERS: tuple[Chapter, ...] = (
    Chapter(
        "start",
        "What BERT is, and what you will build",
        "What BERT is",
        START,
        "a first picture of BERT: what the finished model does with a hidden word, and why both sides of it count",
        ("minigrad/bert/predict.py",),
        once="00",
    ),
    Chapter(
        "arrays",
        "Arrays",
        "Arrays",
        ENGINE,
        "heads out of one array without copying it, and the adjoint of broadcasting",
        ("minigrad/backend/numpy.py",),
        once="01",
    ),
    Chapter(
        "reverse_mode",
        "Reverse mode",
        "Reverse mode",
        ENGINE,
        "an engine that records every operation and walks back through the record for all gradients at once",
        ("minigrad/graph.py", "minigrad/tensor.py"),
        once="02",
    ),
    Chapter(
        "modules",
        "Modules and a start",
        "Modules",
        ENGINE,
        "layers that own their parameters, their initial values, and a training loop that learns with them",
        ("minigrad/nn/module.py", "minigrad/nn/layers.py"),
        once="03",
    ),
    Chapter(
        "optimisers",
        "Optimisers",
        "Optimisers",
        ENGINE,
        "SGD, momentum, Adam and AdamW, the warm-up and decay of their rate, and clipping",
        ("minigrad/optim.py",),
        once="04",
    ),
    Chapter(
        "wordpiece",
        "WordPiece",
        "WordPiece: text in pieces",
        TEXT,
        "a tokenizer that learns its vocabulary from text and splits every word into pieces of it",
        ("minigrad/text/wordpiece.py", "minigrad/text/tokenizer.py"),
        once="05",
    ),
    Chapter(
        "embeddings",
        "Embeddings",
        "Embeddings: pieces as vectors",
        TEXT,
        "the sum of three tables, for token, segment and position, that turns ids into vectors",
        ("minigrad/bert/embeddings.py",),
        once="06",
    ),
    Chapter(
        "positions",
        "Positions",
        "Positions",
        TEXT,
        "the table that tells the encoder the order of the tokens, by waves or by learning, and what takes its place",
        ("minigrad/bert/embeddings.py",),
        second=True,
        once="06b",
    ),
    Chapter(
        "one_head",
        "One attention head",
        "One head",
        ENCODER,
        "scaled dot-product attention: queries, keys and values, forward and backward",
        ("minigrad/ops/composed.py",),
        once="07",
    ),
    Chapter(
        "many_heads",
        "Twelve heads",
        "Twelve heads",
        ENCODER,
        "heads side by side in one batch of products, and the projection that joins them",
        ("minigrad/bert/attention.py",),
        once="08",
    ),
    Chapter(
        "masking",
        "Masking",
        "Masking",
        ENCODER,
        "masks that keep padding and the future out of the softmax, and tests that see a leak",
        ("minigrad/bert/attention.py",),
        once="09",
    ),
    Chapter(
        "feed_forward",
        "Feed-forward",
        "Feed-forward",
        ENCODER,
        "the two layers with GELU between them that work on each token alone, and hold most of the parameters",
        ("minigrad/bert/encoder.py",),
        once="10",
    ),
    Chapter(
        "add_norm",
        "Add & Norm",
        "Add & Norm",
        ENCODER,
        "residual connections and LayerNorm, and a measurement of what each keeps from going wrong",
        ("minigrad/bert/encoder.py", "minigrad/ops/composed.py"),
        once="11",
    ),
    Chapter(
        "encoder",
        "Encoder and pooler",
        "Encoder: a stack of such layers",
        ENCODER,
        "the whole encoder, whose outputs and gradients equal those of the published BERT",
        ("minigrad/bert/encoder.py", "minigrad/bert/model.py"),
        once="12",
    ),
    Chapter(
        "mlm",
        "Masked language modelling",
        "Hidden words",
        PRETRAINING,
        "the choice of the hidden tokens, the head that guesses them, and the loss on them alone",
        ("minigrad/bert/heads.py", "minigrad/bert/data.py"),
        once="13",
    ),
    Chapter(
        "nsp",
        "Next-sentence prediction",
        "Sentence pairs",
        PRETRAINING,
        "pairs of texts, half of them real neighbours, and the classifier that tells them apart",
        ("minigrad/bert/heads.py", "minigrad/bert/data.py"),
        once="14",
    ),
    Chapter(
        "pretraining",
        "Pre-training a reduced BERT",
        "Pre-training",
        PRETRAINING,
        "a model trained on a text whose best possible loss is known, and what each part of BERT is worth",
        ("minigrad/training/loop.py", "minigrad/stories/grammar.py", "minigrad/stories/floors.py"),
        once="15",
    ),
    Chapter(
        "finetuning",
        "Fine-tuning",
        "Fine-tuning",
        USING,
        "one small head for each task on top of the pre-trained model: sentences, tokens, answers in a text",
        ("minigrad/bert/heads.py", "minigrad/bert/checkpoint.py"),
        once="16",
    ),
    Chapter(
        "looking_inside",
        "What does it look at?",
        "Looking inside",
        USING,
        "maps of what the heads attend to, each with a control that could have refuted it",
        ("minigrad/bert/predict.py",),
        once="17",
    ),
    Chapter(
        "seq2seq",
        "Recurrent sequence-to-sequence",
        "Recurrent networks",
        BESIDE,
        "a recurrent encoder and decoder, and the bottleneck between them",
        once="18",
    ),
    Chapter(
        "attention_decoder",
        "Attention in the decoder",
        "Attention in a decoder",
        BESIDE,
        "a decoder that looks back at every word of the source, as attention was first used",
        once="19",
    ),
    Chapter(
        "transformer",
        "The full Transformer",
        "The full Transformer",
        BESIDE,
        "the encoder and decoder of 2017, with masks in three places and shifted targets",
        ("minigrad/seq2seq/transformer.py", "minigrad/seq2seq/masks.py"),
        once="20",
    ),
    Chapter(
        "decoding",
        "Decoding and BLEU",
        "Decoding and BLEU",
        BESIDE,
        "a beam search and an exact one, which say whose mistake a wrong text is, and BLEU with what it misses",
        ("minigrad/seq2seq/decoding.py", "minigrad/seq2seq/bleu.py"),
        second=True,
        once="20b",
    ),
    Chapter(
        "features",
        "Features or fine-tuning?",
        "BERT's features",
        BESIDE,
        "vectors from a frozen BERT as features of another model, beside fine-tuning it",
        ("minigrad/bert/predict.py",),
        once="21",
    ),
    Chapter(
        "numbers",
        "Numbers and machines",
        "Numbers",
        MACHINES,
        "experiments that show where floating-point numbers run out, and sums and softmaxes that survive it",
        ("minigrad/ops/composed.py",),
        once="22",
    ),
    Chapter(
        "step_cost",
        "What a step costs",
        "What a step costs",
        MACHINES,
        "a count of the FLOPs, bytes and memory of one training step, held against a measurement",
        ("minigrad/bert/info.py", "minigrad/profiler.py"),
        once="23",
    ),
    Chapter(
        "fast",
        "Making it fast",
        "Making it fast",
        MACHINES,
        "fused operations and work in place, until most of a step is its matrix products",
        ("minigrad/ops/fused.py",),
        once="24",
    ),
    Chapter(
        "scaling",
        "What it costs, and what size buys",
        "Scaling",
        MACHINES,
        "fits of the laws that say how loss falls with parameters, data and compute, to runs of your own",
        ("minigrad/bert/info.py",),
        once="25",
    ),
    Chapter(
        "machines",
        "One batch on several machines",
        "Several machines",
        MACHINES,
        "shares of a batch whose gradients add up to the whole batch's, a ring that adds them up, a plan for 64 GPUs",
        ("minigrad/distributed.py",),
        second=True,
        once="25b",
    ),
    Chapter(
        "errata",
        "The sources' errata",
        "The sources' errata",
        SOURCES,
        "a table of every mistake in the documents that this course implements, run: what it breaks, what is right",
        once="26",
    ),
)


def _numbered(chapters: tuple[Chapter, ...]) -> dict[str, str]:
    """The number of each chapter by its name."""
    numbers, first = {}, -1
    for chapter in chapters:
        first += not chapter.second
        numbers[chapter.name] = f"{first}b" if chapter.second else str(first)
    return numbers


NUMBERS = _numbered(CHAPTERS)  # by name, in the order of the course
PLACES = {chapter.name: place for place, chapter in enumerate(CHAPTERS)}

_NAMES = r"`\w+`(?:(?:, | and | to )`\w+`)*"
_REFERENCE = re.compile(rf"\b([Cc]hapters?) ({_NAMES})")


def numbered(text: str) -> str:
    """A text whose chapters go by their names, "chapter `one_head`", with their numbers, "chapter 7".

    Raises KeyError for a chapter that there is not.
    """

    def numbers(found: re.Match[str]) -> str:
        return f"{found[1]} {re.sub('`([^`]+)`', lambda name: NUMBERS[name[1]], found[2])}"

    return _REFERENCE.sub(numbers, text)
