"""Fine-tuning on stories: tasks whose answers the grammar knows, and the weights that a run begins with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minigrad import backend, random
from minigrad.bert import from_pretrained
from minigrad.bert.config import IGNORED, label_names
from minigrad.bert.features import Features, pad
from minigrad.bert.stored import stored
from minigrad.bert.tasks import (
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from minigrad.course.furniture.figures import Figure, Picture, Rectangle, figure
from minigrad.course.furniture.fit import fine_tune as fine_tune
from minigrad.course.furniture.fit import fine_tuning as fine_tuning
from minigrad.course.furniture.flow import Box, Flow, Step, flow
from minigrad.stories.grammar import Story
from minigrad.stories.lexicon import SETTINGS
from minigrad.stories.stories import labels, questions, story_tokenizer, tell_stories
from minigrad.tensor import no_grad

LENGTH = 32  # positions that pre-training has trained
SEARCH_SEED = 100  # of the stored runs that look for a rate; those that are compared have lower ones
LIGHT = SETTINGS["light"]
TOKENIZER = story_tokenizer(LIGHT)
HALF = 2  # sentences in A, as in pre-training


# --- Tasks -----------------------------------------------------------------------------------------------


def _encoded(a: str, b: str, **targets: Any) -> Features:
    """[CLS] a [SEP] b [SEP] as ids."""
    encoding = TOKENIZER.encode(a, b)
    if len(encoding) > LENGTH:
        raise ValueError(f"{a!r} and {b!r} have {len(encoding)} tokens, but {LENGTH} positions are trained")
    return Features(encoding.input_ids, encoding.token_type_ids, targets)


def _halves(sentences: Sequence[str]) -> tuple[str, str]:
    return " ".join(sentences[:HALF]), " ".join(sentences[HALF:])


def _stories(seed: int) -> Iterator[Story]:
    return tell_stories(LIGHT, 2**20, seed)


def _classified(label: str, count: int, seed: int) -> list[Features]:
    return [
        _encoded(*_halves(story.texts()), labels=labels(story)[label])
        for story, _ in zip(_stories(seed), range(count), strict=False)
    ]


def holder_examples(count: int, seed: int) -> list[Features]:
    """A story; label 1 if a man has the thing at the end, 0 if a woman."""
    return _classified("man_has_it", count, seed)


def moved_examples(count: int, seed: int) -> list[Features]:
    """A story; label 1 if the thing has changed hands. One verb says it: gives and sends, or hides and keeps."""
    return _classified("moved", count, seed)


def pair_examples(count: int, seed: int) -> list[Features]:
    """A: three sentences of a story; B: the fourth, untouched (0) or, in every other one, with the wrong person (1).

    Wrong is the other of the two people, where B says who uses the thing or whose it is.
    """
    found: list[Features] = []
    stories = _stories(seed)
    while len(found) < count:
        story = next(stories)
        *before, last = story.sentences
        rivals = [
            (at, word.rival) for at, word in enumerate(last) if word.slot == "who has it" and word.rival
        ]
        if rivals:
            words = [word.text for word in last]
            wrong = len(found) % 2
            if wrong:
                at, rival = rivals[0]
                words[at] = rival
            found.append(_encoded(" ".join(story.texts()[: len(before)]), " ".join(words), labels=wrong))
    return found


def question_examples(count: int, seed: int) -> list[Features]:
    """A question and a story in which the answer stands: where the people are, how many things, and who has them."""
    found: list[Features] = []
    stories, asked_in_turn = _stories(seed), ("where", "how many", "who")
    while len(found) < count:
        story = next(stories)
        begins = asked_in_turn[len(found) % len(asked_in_turn)]
        asked = next(one for one in questions(story) if one.text.startswith(begins))
        before = len(asked.text.split()) + 2  # [CLS], the question, [SEP]
        if before + sum(map(len, story.sentences)) + 1 <= LENGTH:
            places = {"start_positions": before + asked.start, "end_positions": before + asked.end - 1}
            found.append(_encoded(asked.text, " ".join(story.texts()), **places))
    return found


OTHER_WORD, HAS_IT, HAS_IT_NOT = range(3)


def tag_examples(count: int, seed: int) -> list[Features]:
    """A story; of each word whether it names the one who has the thing at the end, the other person, or neither."""
    found = []
    for story, _ in zip(_stories(seed), range(count), strict=False):
        people = {"first": 0, "second": 1}
        tags = [
            [
                OTHER_WORD
                if word.entity not in people
                else HAS_IT
                if people[word.entity] == story.facts.holder
                else HAS_IT_NOT
                for word in sentence
            ]
            for sentence in story.sentences
        ]
        a, b = ([tag for sentence in half for tag in sentence] for half in (tags[:HALF], tags[HALF:]))
        found.append(_encoded(*_halves(story.texts()), labels=[IGNORED, *a, IGNORED, *b, IGNORED]))
    return found


@dataclass(frozen=True)
class Task:
    """What is to be learned. examples(count, seed): so many, others for each seed."""

    asks: str
    model: Any
    classes: int
    examples: Callable[[int, int], list[Features]]


TASKS = {
    "holder": Task("does a man have it?", BertForSequenceClassification, 2, holder_examples),
    "moved": Task("has it changed hands?", BertForSequenceClassification, 2, moved_examples),
    "pairs": Task("the wrong person in B?", BertForSequenceClassification, 2, pair_examples),
    "questions": Task("where? how many? who?", BertForQuestionAnswering, 2, question_examples),
    "tags": Task("which people have it?", BertForTokenClassification, 3, tag_examples),
}


# --- Weights to begin with -------------------------------------------------------------------------------

NAMED = ("names mixed", "names mixed by gender", "names new")  # what becomes of the vectors of names
STARTS = ("pre-trained", "from scratch", "frozen", "shuffled", "embeddings only", *NAMED)
WORDS = "bert.embeddings.word_embeddings.weight"
MEN, WOMEN = (
    [TOKENIZER.vocab.index(name) for name in names] for names in (LIGHT.lexicon.men, LIGHT.lexicon.women)
)


def weights_of(start: str, trained: dict[str, Any], fresh: dict[str, Any], seed: int) -> dict[str, Any]:
    """The weights of a model by name: those of `trained`, of `fresh`, or some of each.

    shuffled: each trained array in another order. embeddings only: trained embeddings below fresh layers. Of NAMED, the
    same, but each name gets the vector of a name that was drawn, of a man for a man's if by gender, or a fresh one.
    """
    rng = np.random.default_rng(seed)
    if start in ("pre-trained", "frozen"):
        return trained
    if start == "from scratch":
        return fresh
    if start == "embeddings only":
        return {name: (trained if ".embeddings." in name else fresh)[name] for name in trained}
    if start in NAMED:
        others = weights_of("embeddings only", trained, fresh, seed)
        words = backend.to_numpy(trained[WORDS]).copy()
        for names in (MEN, WOMEN) if start == "names mixed by gender" else ([*MEN, *WOMEN],):
            of_others = words[rng.permutation(names)]
            words[names] = backend.to_numpy(fresh[WORDS])[names] if start == "names new" else of_others
        return {**others, WORDS: words}
    if start == "shuffled":
        return {
            name: rng.permutation(backend.to_numpy(array).ravel()).reshape(array.shape)
            for name, array in trained.items()
        }
    raise ValueError(f"a run begins with one of {', '.join(STARTS)}, got {start!r}")


def begin(task: Task, start: str, seed: int) -> Any:
    """A model for the task, with a new head; frozen: only the head will be trained."""
    random.manual_seed(seed)
    model = from_pretrained(stored("stories"), task.model, label_names(task.classes)).model
    fresh = task.model(model.config).state_dict()
    model.load_state_dict(weights_of(start, model.state_dict(), fresh, seed))
    if start == "frozen":
        for parameter in model.bert.parameters():
            parameter.requires_grad = False
    return model


# --- Training and scores ---------------------------------------------------------------------------------


def best_spans(start: np.ndarray, end: np.ndarray, allowed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first and last token of the span with the largest start + end, not backwards; start, end, allowed (B, L)."""
    total = start[:, :, None] + end[:, None, :]  # (B, L, L)
    possible = np.triu(np.ones(total.shape[1:], bool)) & allowed[:, :, None] & allowed[:, None, :]
    best = np.where(possible, total, -np.inf).reshape(len(start), -1).argmax(axis=1)
    return best // start.shape[1], best % start.shape[1]


def accuracy(model: Any, examples: Sequence[Features]) -> float:
    """The share of right labels; of answers: start and end; of tags: on the words for people."""
    hits: list[bool] = []
    model.eval()
    for first in range(0, len(examples), 100):
        batch = pad(examples[first : first + 100], model.config.pad_token_id)
        targets = {name: batch.pop(name) for name in examples[0].targets}
        with no_grad():
            output = model(**batch)
        if "labels" in targets:
            wanted = targets["labels"]
            right = output.logits.numpy().argmax(axis=-1) == wanted
            hits += right[wanted > OTHER_WORD if wanted.ndim > 1 else wanted != IGNORED].tolist()
        else:
            scores = output.start_logits.numpy(), output.end_logits.numpy()
            starts, ends = best_spans(*scores, batch["token_type_ids"] == 1)
            hits += ((starts == targets["start_positions"]) & (ends == targets["end_positions"])).tolist()
    return float(np.mean(hits))


# --- The record ------------------------------------------------------------------------------------------


def scores_of(
    record: dict[str, Any], task: str, start: str, size: int, what: str = "accuracy"
) -> list[float]:
    """A figure of the runs that are compared: one for each seed, without those that looked for the rate."""
    return [
        run[what]
        for run in record["runs"]
        if (run["task"], run["start"], run["labels"]) == (task, start, size) and run["seed"] < SEARCH_SEED
    ]


def sizes_of(record: dict[str, Any], task: str, start: str) -> list[int]:
    """The numbers of labels with such runs."""
    sizes = {run["labels"] for run in record["runs"] if (run["task"], run["start"]) == (task, start)}
    return sorted(size for size in sizes if scores_of(record, task, start, size))


# --- Figures ---------------------------------------------------------------------------------------------

_LOOKS = {"pre-trained": ("first", "-"), "from scratch": ("second", "--"), "frozen": ("third", ":")}


def heads_figure() -> Picture:
    """Encoder and pooler, which are kept, and the new head of each task, with shapes."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()

        def box(x: float, y: float, wide: float, high: float, role: str, words: str) -> None:
            for face, alpha in ((colours[role], 0.22), ("none", 1.0)):
                axes.add_patch(
                    Rectangle((x, y), wide, high, facecolor=face, alpha=alpha, edgecolor=colours[role])
                )
            axes.text(x + wide / 2, y + high / 2, words, ha="center", va="center", fontsize=9.5)

        def arrow(x: float, low: float, high: float, to: float | None = None) -> None:
            end = (x if to is None else to, high)
            axes.annotate("", end, (x, low), arrowprops={"arrowstyle": "->", "color": colours["ink"]})

        tokens = ["[CLS]", "frank", "hides", "them", "[SEP]"]
        for place, token in enumerate(tokens):
            x = 0.2 * place
            axes.text(x + 0.09, 0.02, token, ha="center", va="center", fontsize=10)
            arrow(x + 0.09, 0.06, 0.14)
            box(x, 0.42, 0.18, 0.09, "token", "$d_{model}$")
            arrow(x + 0.09, 0.35, 0.42)
        box(0, 0.14, 0.98, 0.21, "first", "embeddings and $N$ layers: kept")
        arrow(0.09, 0.51, 0.57)
        box(0, 0.57, 0.24, 0.12, "first", "pooler: kept")
        arrow(0.09, 0.69, 0.76)
        box(0, 0.76, 0.3, 0.2, "second", "class: new\n$(K, d_{model})$")
        box(0.34, 0.76, 0.3, 0.2, "second", "tag of a token: new\n$(K, d_{model})$")
        box(0.68, 0.76, 0.3, 0.2, "second", "start and end: new\n$(2, d_{model})$")
        arrow(0.49, 0.51, 0.76)
        arrow(0.69, 0.51, 0.76, to=0.75)
        axes.text(0.6, 0.63, "each token's\nrow", ha="center", va="center", fontsize=9.5)
        axes.set(xlim=(-0.01, 1.0), ylim=(-0.02, 0.98))
        axes.axis("off")

    return figure(
        plot,
        "One encoder and three heads. Embeddings, layers and pooler are kept from pre-training. New are the class, "
        "read from the pooler's vector of [CLS], the tag, read from each token's row, and start and end scores, read "
        "from each token's row.",
        (5.4, 3.6),
    )


def classifier_flow() -> Flow:
    """A vector of four numbers, two classes: logits, probabilities, and how far these are from right."""
    boxes = [
        Box("C", [[0.9, -0.5, 0.2, -0.8]], "token", columns="features"),
        Box("W", [[1.0, 0.5, 0.0, -1.0], [-0.5, 1.0, 0.5, 0.5]], "first", rows="classes"),
        Box("b", [[0.0, 0.5]], "first", columns="classes"),
        Box("Y", "C @ W.T + b", "second", columns="classes"),
        Box("P", "softmax(Y)", "second", columns="classes"),
        Box("T", [[0.0, 1.0]], "right", columns="classes"),
        Box("D", "P - T", "gradient", columns="classes"),
        Box("G", "D.T @ C", "gradient", rows="classes", label="dW"),
        Box("H", "D @ W", "gradient", columns="features", label="dC"),
    ]
    steps = [
        Step(
            "Logits",
            [["C", "· transpose of", "W"], ["+", "b", "=", "Y"]],
            "Each class has a row of W. Its logit is the dot product of that row with C, plus the bias.",
        ),
        Step("Probabilities", [["Y", "softmax →", "P"]], "The softmax runs over the classes."),
        Step(
            "How far from right",
            [["P", "−", "T", "=", "D"]],
            "The label says: class man. D is the gradient of the cross-entropy with respect to the logits.",
        ),
        Step(
            "To the head and to the encoder",
            [["D", "gives", "G"], ["and", "H"]],
            "D times C changes the head. D times W goes on to the pooler and all layers below it.",
        ),
    ]
    names = {"features": ["1", "2", "3", "4"], "classes": ["woman", "man"]}
    return flow(boxes, steps, "A vector goes through a classifier of two classes and back", names, edit="C")


def learning_curves(record: dict[str, Any]) -> Picture:
    """Accuracy against the number of labels, for each task that has runs with four numbers of labels."""
    tasks = [name for name in TASKS if len(sizes_of(record, name, "pre-trained")) > 2]

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        grid = canvas.subplots(2, 2, sharex=True)
        for axes, name in zip(grid.ravel(), tasks, strict=True):
            for start, (role, line) in _LOOKS.items():
                sizes = sizes_of(record, name, start)
                found = [scores_of(record, name, start, size) for size in sizes]
                axes.plot(sizes, [np.mean(one) for one in found], line, color=colours[role], marker="o", ms=3)
                low, high = [min(one) for one in found], [max(one) for one in found]
                axes.fill_between(sizes, low, high, color=colours[role], alpha=0.2, linewidth=0)
            axes.set_xscale("log", base=4)
            axes.set_xticks([16, 64, 256, 1024], ["16", "64", "256", "1,024"])
            axes.set(title=TASKS[name].asks, ylim=(0.15, 1.03))
        for axes in grid[1]:
            axes.set_xlabel("labelled examples")
        for axes in grid[:, 0]:
            axes.set_ylabel("accuracy")
        for start, place in zip(_LOOKS, (0.36, 0.27, 0.18), strict=True):
            grid[0, 1].text(20, place, start, color=colours[_LOOKS[start][0]], fontsize=9)

    return figure(
        plot,
        "Accuracy on held-out stories against the number of labels, for four tasks. For one person and for tags, "
        "the pre-trained start is far ahead with 16 labels. For questions it is a little ahead with 64. For pairs only "
        "this start leaves one half, with 256. In all four, the frozen encoder ends below the pre-trained start.",
        (5.4, 5.2),
    )
