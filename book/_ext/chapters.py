"""The course's chapters, written or planned: the one list of their numbers, files, titles and parts.

A chapter is written when `book/NUMBER_STEM.ipynb` is there; until then the site shows a page made from this list.
`_toc.yml` has the same chapters in the same order.
"""

from __future__ import annotations

from typing import NamedTuple

ERRATA = 71  # the sources' mistakes are numbered 1 to 71; chapter "errata" runs them


class Chapter(NamedTuple):
    """One chapter.

    number: as in its file's name, without zeros in front ("20b" for a second page); name: the stem without the
    number; build: what the reader will have built, to follow "You will build"; library: where the library has it now,
    as paths in the repository.
    """

    number: str
    name: str
    title: str
    part: str
    build: str
    library: tuple[str, ...] = ()

    @property
    def stem(self) -> str:
        """The file's name without its ending, such as `07_one_head`."""
        digits = self.number.rstrip("abcdefgh")
        return f"{digits:0>2}{self.number[len(digits) :]}_{self.name}"

    @property
    def page(self) -> str:
        """The page's name in the site, such as `book/07_one_head`."""
        return f"book/{self.stem}"

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
        "0",
        "start",
        "What BERT is, and what you will build",
        START,
        "a first picture of BERT: what the finished model does with a hidden word, and why both sides of it count",
        ("minigrad/bert/predict.py",),
    ),
    Chapter(
        "1",
        "arrays",
        "Arrays",
        ENGINE,
        "heads out of one array without copying it, and the adjoint of broadcasting",
        ("minigrad/backend/numpy.py",),
    ),
    Chapter(
        "2",
        "reverse_mode",
        "Reverse mode",
        ENGINE,
        "an engine that records every operation and walks back through the record for all gradients at once",
        ("minigrad/graph.py", "minigrad/tensor.py"),
    ),
    Chapter(
        "3",
        "modules",
        "Modules",
        ENGINE,
        "layers that own their parameters, their initial values, and a training loop that learns with them",
        ("minigrad/nn/module.py", "minigrad/nn/layers.py"),
    ),
    Chapter(
        "4",
        "optimisers",
        "Optimisers",
        ENGINE,
        "SGD, momentum, Adam and AdamW, the warm-up and decay of their rate, and clipping",
        ("minigrad/optim.py",),
    ),
    Chapter(
        "5",
        "wordpiece",
        "WordPiece",
        TEXT,
        "a tokenizer that learns its vocabulary from text and splits every word into pieces of it",
        ("minigrad/text/wordpiece.py", "minigrad/text/tokenizer.py"),
    ),
    Chapter(
        "6",
        "embeddings",
        "Embeddings",
        TEXT,
        "the sum of three tables, for token, segment and position, that turns ids into vectors",
        ("minigrad/bert/embeddings.py",),
    ),
    Chapter(
        "6b",
        "positions",
        "Positions",
        TEXT,
        "the table that tells the encoder the order of the tokens, by waves or by learning, and what takes its place",
        ("minigrad/bert/embeddings.py",),
    ),
    Chapter(
        "7",
        "one_head",
        "One attention head",
        ENCODER,
        "scaled dot-product attention: queries, keys and values, forward and backward",
        ("minigrad/ops/composed.py",),
    ),
    Chapter(
        "8",
        "many_heads",
        "Twelve heads",
        ENCODER,
        "heads side by side in one batch of products, and the projection that joins them",
        ("minigrad/bert/attention.py",),
    ),
    Chapter(
        "9",
        "masking",
        "Masking",
        ENCODER,
        "masks that keep padding and the future out of the softmax, and tests that see a leak",
        ("minigrad/bert/attention.py",),
    ),
    Chapter(
        "10",
        "feed_forward",
        "Feed-forward",
        ENCODER,
        "the two layers with GELU between them that work on each token alone, and hold most of the parameters",
        ("minigrad/bert/encoder.py",),
    ),
    Chapter(
        "11",
        "add_norm",
        "Add & Norm",
        ENCODER,
        "residual connections and LayerNorm, and a measurement of what each keeps from going wrong",
        ("minigrad/bert/encoder.py", "minigrad/ops/composed.py"),
    ),
    Chapter(
        "12",
        "encoder",
        "Encoder and pooler",
        ENCODER,
        "the whole encoder, whose outputs and gradients equal those of the published BERT",
        ("minigrad/bert/encoder.py", "minigrad/bert/model.py"),
    ),
    Chapter(
        "13",
        "mlm",
        "Masked language modelling",
        PRETRAINING,
        "the choice of the hidden tokens, the head that guesses them, and the loss on them alone",
        ("minigrad/bert/heads.py", "minigrad/bert/data.py"),
    ),
    Chapter(
        "14",
        "nsp",
        "Next-sentence prediction",
        PRETRAINING,
        "pairs of texts, half of them real neighbours, and the classifier that tells them apart",
        ("minigrad/bert/heads.py", "minigrad/bert/data.py"),
    ),
    Chapter(
        "15",
        "pretraining",
        "Pre-training a reduced BERT",
        PRETRAINING,
        "a model trained on a text whose best possible loss is known, and what each part of BERT is worth",
        ("minigrad/training/loop.py", "minigrad/stories/grammar.py", "minigrad/stories/floors.py"),
    ),
    Chapter(
        "16",
        "finetuning",
        "Fine-tuning",
        USING,
        "one small head for each task on top of the pre-trained model: sentences, tokens, answers in a text",
        ("minigrad/bert/heads.py", "minigrad/bert/checkpoint.py"),
    ),
    Chapter(
        "17",
        "looking_inside",
        "What it looks at",
        USING,
        "maps of what the heads attend to, each with a control that could have refuted it",
        ("minigrad/bert/predict.py",),
    ),
    Chapter(
        "18",
        "seq2seq",
        "Recurrent sequence-to-sequence",
        BESIDE,
        "a recurrent encoder and decoder, and the bottleneck between them",
    ),
    Chapter(
        "19",
        "attention_decoder",
        "Attention in the decoder",
        BESIDE,
        "a decoder that looks back at every word of the source, as attention was first used",
    ),
    Chapter(
        "20",
        "transformer",
        "The full Transformer",
        BESIDE,
        "the encoder and decoder of 2017, with masks in three places and shifted targets",
        ("minigrad/seq2seq/transformer.py", "minigrad/seq2seq/masks.py"),
    ),
    Chapter(
        "20b",
        "decoding",
        "Decoding and BLEU",
        BESIDE,
        "a beam search and an exact one, which say whose mistake a wrong text is, and BLEU with what it misses",
        ("minigrad/seq2seq/decoding.py", "minigrad/seq2seq/bleu.py"),
    ),
    Chapter(
        "21",
        "features",
        "Features",
        BESIDE,
        "vectors from a frozen BERT as features of another model, beside fine-tuning it",
        ("minigrad/bert/predict.py",),
    ),
    Chapter(
        "22",
        "numbers",
        "Numbers",
        MACHINES,
        "experiments that show where floating-point numbers run out, and sums and softmaxes that survive it",
        ("minigrad/ops/composed.py",),
    ),
    Chapter(
        "23",
        "step_cost",
        "What a step costs",
        MACHINES,
        "a count of the FLOPs, bytes and memory of one training step, held against a measurement",
        ("minigrad/bert/info.py", "minigrad/profiler.py"),
    ),
    Chapter(
        "24",
        "fast",
        "Making it fast",
        MACHINES,
        "fused operations and work in place, until most of a step is its matrix products",
        ("minigrad/ops/fused.py",),
    ),
    Chapter(
        "25",
        "scaling",
        "Scaling",
        MACHINES,
        "fits of the laws that say how loss falls with parameters, data and compute, to runs of your own",
        ("minigrad/bert/info.py",),
    ),
    Chapter(
        "25b",
        "machines",
        "One batch on several machines",
        MACHINES,
        "shares of a batch whose gradients add up to the whole batch's, a ring that adds them up, a plan for 64 GPUs",
        ("minigrad/distributed.py",),
    ),
    Chapter(
        "26",
        "errata",
        "The sources' errata",
        SOURCES,
        "a table of every mistake in the documents that this course implements, run: what it breaks, what is right",
    ),
)
