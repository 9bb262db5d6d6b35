"""Fine-tuning on stories: tasks whose answers the grammar knows, and the weights that a run begins with."""

from __future__ import annotations

from typing import Any

import numpy as np

from bert_course.common.figures import Figure, Picture, Rectangle, figure
from bert_course.common.fit import fine_tune as fine_tune
from bert_course.common.fit import fine_tuning as fine_tuning
from bert_course.common.flow import Box, Flow, Step, flow
from bert_course.common.story_tasks import LIGHT, TASKS, TOKENIZER, Task
from bert_course.common.story_tasks import accuracy as accuracy
from bert_course.stored import stored
from minigrad import backend, random
from minigrad.bert import from_pretrained
from minigrad.bert.config import label_names

SEARCH_SEED = 100  # of the stored runs that look for a rate; those that are compared have lower ones


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
