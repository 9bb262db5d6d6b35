"""The course's table of contents: every chapter, in the order in which it is read.

It is the one list of their names, titles and parts. A chapter's name is that of its file, book/NAME.ipynb, and of its
exercises; its number is its place. What shows a number takes it from here: pages and the README when `make map` writes
them, checks when they speak.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Chapter(NamedTuple):
    """One chapter.

    name: of its file; title: its heading; short: the same where room is scarce, on the map and in the ways through;
    build: what the reader will have built, to follow "You will build".
    """

    name: str
    title: str
    short: str
    part: str
    build: str

    @property
    def number(self) -> str:
        """Its place in the course, from "0"; "A" for the appendix."""
        return NUMBERS[self.name]

    @property
    def page(self) -> str:
        """The page's name in the site, such as `book/one_head`."""
        return f"book/{self.name}"

    @property
    def heading(self) -> str:
        """The title as the page's heading has it."""
        return f"{self.number}. {self.title}"


START = "Start"
ENGINE = "I. The engine"
TEXT = "II. Text in"
ENCODER = "III. The encoder"
PRETRAINING = "IV. Pre-training"
USING = "V. Using it"
ATTENTION = "VI. Where attention came from"
MACHINES = "VII. Machines"
AFTER = "VIII. After BERT"
APPENDIX = "Appendix"

# Nothing after these builds on them: a reader may leave them out, or come in by them.
OPTIONAL = {
    ATTENTION: "encoder",  # to be read after this chapter
    MACHINES: "pretraining",
}

CHAPTERS: tuple[Chapter, ...] = (
    Chapter(
        "start",
        "What BERT is, and what you will build",
        "What BERT is",
        START,
        "a first picture of BERT: what the finished model does with a hidden word, and why both sides of it count",
    ),
    Chapter(
        "arrays",
        "Arrays",
        "Arrays",
        ENGINE,
        "heads out of one array without copying it, and the adjoint of broadcasting",
    ),
    Chapter(
        "reverse_mode",
        "Reverse mode",
        "Reverse mode",
        ENGINE,
        "an engine that records every operation and walks back through the record for all gradients at once",
    ),
    Chapter(
        "modules",
        "Modules and initialisation",
        "Modules",
        ENGINE,
        "layers that own their parameters, their initial values, and a training loop that learns with them",
    ),
    Chapter(
        "optimisers",
        "Optimisers",
        "Optimisers",
        ENGINE,
        "SGD, momentum, Adam and AdamW, the warm-up and decay of their rate, and clipping",
    ),
    Chapter(
        "wordpiece",
        "WordPiece",
        "WordPiece",
        TEXT,
        "a tokenizer that learns its vocabulary from text and splits every word into pieces of it",
    ),
    Chapter(
        "embeddings",
        "Embeddings",
        "Embeddings",
        TEXT,
        "the sum of three tables, for token, segment and position, and an account of how the order gets in",
    ),
    Chapter(
        "one_head",
        "One attention head",
        "One head",
        ENCODER,
        "scaled dot-product attention: queries, keys and values, forward and backward",
    ),
    Chapter(
        "many_heads",
        "Twelve heads",
        "Twelve heads",
        ENCODER,
        "heads side by side in one batch of products, and the projection that joins them",
    ),
    Chapter(
        "masking",
        "Masking",
        "Masking",
        ENCODER,
        "masks that keep padding and the future out of the softmax, and tests that see a leak",
    ),
    Chapter(
        "feed_forward",
        "Feed-forward",
        "Feed-forward",
        ENCODER,
        "the two layers with GELU between them that work on each token alone, and hold most of the parameters",
    ),
    Chapter(
        "add_norm",
        "Add & Norm",
        "Add & Norm",
        ENCODER,
        "residual connections and LayerNorm, and a measurement of what each keeps from going wrong",
    ),
    Chapter(
        "encoder",
        "Encoder and pooler",
        "Encoder",
        ENCODER,
        "the whole encoder, equal to Hugging Face's implementation, number for number",
    ),
    Chapter(
        "mlm",
        "Masked language modelling",
        "Masked words",
        PRETRAINING,
        "the choice of the hidden tokens, the head that guesses them, and the loss on them alone",
    ),
    Chapter(
        "nsp",
        "Next-sentence prediction",
        "Sentence pairs",
        PRETRAINING,
        "pairs of texts, half of them real neighbours, and the classifier that tells them apart",
    ),
    Chapter(
        "pretraining",
        "Pre-training a reduced BERT",
        "Pre-training",
        PRETRAINING,
        "a model trained on a text whose best possible loss is known, and what each part of BERT is worth",
    ),
    Chapter(
        "finetuning",
        "Fine-tuning",
        "Fine-tuning",
        USING,
        "one small head for each task on top of the pre-trained model: sentences, tokens, answers in a text",
    ),
    Chapter(
        "features",
        "Features or fine-tuning?",
        "Features",
        USING,
        "vectors from a frozen BERT as features of another model, beside fine-tuning it",
    ),
    Chapter(
        "looking_inside",
        "Looking inside",
        "Looking inside",
        USING,
        "maps of what the heads attend to, each with a control that could have refuted it",
    ),
    Chapter(
        "published",
        "Your BERT, and one that the world uses",
        "A published BERT",
        USING,
        "a BERT that others trained, computed by the parts that you wrote, and a search by meaning with it",
    ),
    Chapter(
        "seq2seq",
        "Recurrent sequence-to-sequence",
        "Recurrent networks",
        ATTENTION,
        "a recurrent encoder and decoder, and the bottleneck between them",
    ),
    Chapter(
        "attention_decoder",
        "Attention in the decoder",
        "Attention in the decoder",
        ATTENTION,
        "a decoder that looks back at every word of the source, as attention was first used",
    ),
    Chapter(
        "transformer",
        "The full Transformer",
        "The full Transformer",
        ATTENTION,
        "the encoder and decoder of 2017, with masks in three places and shifted targets",
    ),
    Chapter(
        "decoding",
        "Decoding and BLEU",
        "Decoding and BLEU",
        ATTENTION,
        "a beam search and an exact one, which say whose mistake a wrong text is, and BLEU with what it misses",
    ),
    Chapter(
        "numbers",
        "Numbers and machines",
        "Numbers",
        MACHINES,
        "experiments that show where floating-point numbers run out, and sums and softmaxes that survive it",
    ),
    Chapter(
        "step_cost",
        "What a step costs",
        "What a step costs",
        MACHINES,
        "a count of the FLOPs, bytes and memory of one training step, held against a measurement",
    ),
    Chapter(
        "fast",
        "Making it fast",
        "Making it fast",
        MACHINES,
        "fused operations and work in place, until most of a step is its matrix products",
    ),
    Chapter(
        "scaling",
        "Scaling: what size buys",
        "Scaling",
        MACHINES,
        "fits of the laws that say how loss falls with parameters, data and compute, to runs of your own",
    ),
    Chapter(
        "machines",
        "One batch on several machines",
        "Several machines",
        MACHINES,
        "shares of a batch whose gradients add up to the whole batch's, a ring that adds them up, a plan for 64 GPUs",
    ),
    Chapter(
        "positions",
        "Relative and rotary positions",
        "Positions",
        AFTER,
        "positions that enter a score by their distance: a learned bias, and rotations of queries and keys",
    ),
    Chapter(
        "modern",
        "What came after BERT",
        "After BERT",
        AFTER,
        "an account of what later encoders kept of BERT and what they changed, each change tried on the reduced model",
    ),
    Chapter(
        "errata",
        "The sources' errata",
        "Errata",
        APPENDIX,
        "a table of mistakes and gaps in the documents that this course implements: what each breaks, what is right",
    ),
)


class Route(NamedTuple):
    """A way through a part of the course, for a reader with so much time.

    name: by which the browser keeps the choice; title: how long; why: what one knows then; chapters: by their names.
    solved: whether there is time for the exercises, too.
    """

    name: str
    title: str
    why: str
    chapters: tuple[str, ...]
    solved: bool = True


ROUTES = (
    Route(
        "hour",
        "An hour",
        "what BERT does, and what attention is (“Backward, by hand” can wait)",
        ("start", "one_head"),
        solved=False,
    ),
    Route(
        "evenings",
        "Two evenings",
        "gradients and attention, from code of your own",
        ("start", "arrays", "reverse_mode", "one_head"),
    ),
    Route(
        "week",
        "A week",
        "BERT itself, from eight functions of your own",
        (
            "start",
            "arrays",
            "reverse_mode",
            "modules",
            "optimisers",
            "wordpiece",
            "embeddings",
            "one_head",
            "many_heads",
            "masking",
            "feed_forward",
            "add_norm",
            "encoder",
            "mlm",
            "nsp",
            "pretraining",
        ),
    ),
    Route(
        "all",
        "All of it",
        "everything, to the gradients and the machine",
        tuple(one.name for one in CHAPTERS),
    ),
)

# Its place is its number, but the appendix has a letter.
NUMBERS = {
    chapter.name: "A" if chapter.part == APPENDIX else str(place) for place, chapter in enumerate(CHAPTERS)
}
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
