"""What chapter `pretraining` draws: one step with its numbers, what a model knows on the way, and the stored runs."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert_course.common.figures import Figure, Picture, figure
from bert_course.common.flow import Box, Flow, Step, flow
from bert_course.common.palette import colour
from bert_course.common.softmax import softmax
from bert_course.common.widgets import Frame, Player, player, svg
from bert_course.contents import numbered
from minigrad import backend, optim
from minigrad.bert.config import IGNORED
from minigrad.bert.model import BertForPreTraining
from minigrad.bert.training import parameter_groups
from minigrad.stories.floors import Scorer
from minigrad.stories.stories import Pair, Stories
from minigrad.training.epochs import Batch

# what a model must know for a word of each slot, in the order of a table
SLOTS = {
    "glue": "a, the, has and full stops",
    "preposition": "in, with, to, of",
    "number of the verb": "is or are, from the subject",
    "it or them": "one thing or several",
    "who has it": "who has the thing after the event",
    "kind": "words that fit the thing",
    "noun again": "the thing that was named before",
    "person again": "one of the two people",
    "event": "gives or sends, keeps or hides",
    "count": "one, or several",
    "noun": "the thing, at its first mention",
    "name": "the people, at their first mention",
    "place": "where the two are",
}

THOUSAND = 1000  # small numbers are drawn in thousandths
SEEN, GRAIN = 0.01, 0.02  # of probabilities: what is drawn, and how finely

# --- Losses and their floors -------------------------------------------------------------------------------


def loss_bars(losses: Mapping[str, Mapping[str, float | None]]) -> Picture:
    """By text and by who guesses, a loss as a bar; None, a loss that nobody knows, is a question mark."""

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        row, labels = 0, {}
        for text, by_name in losses.items():
            axes.text(0, row, text, va="center", fontsize=12, fontweight="bold")
            for name, loss in by_name.items():
                row -= 1
                labels[row] = name
                tone = "second" if name == "the best possible" else "first"
                if loss is not None:
                    axes.barh([row], [loss], 0.66, color=colours[tone])
                axes.text((loss or 0) + 0.1, row, _number(loss), va="center", color=colours["ink"])
            row -= 1
        axes.set_yticks(list(labels), list(labels.values()))
        axes.set(xlim=(0, 9.2), ylim=(row + 0.4, 0.6), xlabel="loss in nats")
        axes.grid(False, axis="y")

    alt = "; ".join(
        f"{text}: " + ", ".join(f"{name} {_number(loss)}" for name, loss in by_name.items())
        for text, by_name in losses.items()
    )
    return figure(plot, f"Losses in nats. {alt}", (5.4, 3.8))


def _number(loss: float | None) -> str:
    return "?" if loss is None else f"{loss:.2f}"


def floor_bars(floors: Mapping[str, float]) -> Picture:
    """The floor of each slot as a bar, the lowest on top, with what a word of the slot depends on."""
    slots = sorted(floors, key=floors.__getitem__)

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()
        rows = [-row for row in range(len(slots))]
        axes.barh(rows, [floors[slot] for slot in slots], 0.66, color=colours["second"])
        for row, slot in zip(rows, slots, strict=True):
            what = f"{floors[slot]:.2f}  {SLOTS[slot]}"
            axes.text(floors[slot] + 0.05, row, what, va="center", fontsize=10)
        axes.set_yticks(rows, slots)
        axes.set(xlim=(0, 4.2), ylim=(rows[-1] - 0.6, 0.6), xlabel="lowest possible loss in nats")
        axes.set_xticks([0, 1, 2])
        axes.grid(False, axis="y")

    alt = ", ".join(f"{slot} {floors[slot]:.2f}" for slot in slots)
    return figure(plot, f"The lowest possible loss of a hidden word, in nats, by slot: {alt}", (5.4, 3.9))


# --- One step of training ----------------------------------------------------------------------------------


def step_flow(model: BertForPreTraining, batch: Batch, stories: Stories, rate: float = 1e-3) -> Flow:
    """One optimiser step on one pair, from the probabilities to a row of the token table.

    The model is trained by this step. batch: of one pair, masked. rate: of AdamW, whose weight decay is 0.01.
    """
    tokenizer = stories.tokenizer
    labels = batch["labels"][0]
    chosen = labels[labels != IGNORED]
    words = [str(tokenizer.id_to_token(int(i))) for i in chosen]
    optimizer = optim.AdamW(parameter_groups(model, 0.01), lr=rate, eps=1e-6)
    output = model(**batch)
    logits = backend.to_numpy(output.prediction_logits.data).astype(float)  # (n, V), of the chosen tokens
    p = softmax(logits)
    of_words = np.concatenate([p[:, chosen], 1 - p[:, chosen].sum(axis=1, keepdims=True)], axis=1)
    of_pair = softmax(backend.to_numpy(output.seq_relationship_logits.data).astype(float))  # (1, 2)
    label = int(batch["next_sentence_label"][0])
    table = model.bert.embeddings.word_embeddings.weight
    before = table.numpy()[chosen[:1], :4].copy()
    assert output.loss is not None
    output.loss.backward()
    assert table.grad is not None
    gradient = backend.to_numpy(table.grad)[chosen[:1], :4].copy()
    norm = float(backend.to_numpy(optim.clip_grad_norm(model.parameters(), 1.0)))
    optimizer.step()
    boxes = [
        Box("P", of_words, "weight", "hidden", "words"),
        Box("losses", -np.log(p[np.arange(len(chosen)), chosen])[:, None], "gradient", label="−log p"),
        Box("mlm", -np.log(p[np.arange(len(chosen)), chosen]).mean(), "gradient", label="MLM"),
        Box("pair", of_pair, "weight", columns="labels"),
        Box("nsp", -np.log(of_pair[0, label]), "gradient", label="NSP"),
        Box("loss", "mlm + nsp", "gradient", label="L"),
        Box("G", THOUSAND * gradient, "gradient", "row", "features", digits=0),
        Box("norm", norm, "gradient"),
        Box("clipped", f"G / {max(norm, 1.0)!r}", "gradient", "row", "features", digits=1),
        Box("before", THOUSAND * before, "token", "row", "features", "w", digits=1),
        Box("after", THOUSAND * table.numpy()[chosen[:1], :4], "token", "row", "features", "w'", digits=1),
    ]
    steps = [
        Step(
            "Words",
            [["P", "→", "losses"], ["the mean of the column =", "mlm"]],
            "One row for each chosen token: the probability of each true word, and of all other words together. The "
            "loss is the mean of −log p of the true words.",
        ),
        Step(
            "The pair",
            [["pair", "the loss →", "nsp"]],
            numbered("Two probabilities for the whole pair, from [CLS] (chapter `nsp`)."),
        ),
        Step("One loss", [["words", "mlm", "and pair", "nsp", "make", "loss"]], "Both losses are added."),
        Step(
            "Back",
            [["from", "loss", "backward →", "G"], ["÷ the norm", "norm", "→", "clipped"]],
            "Every parameter on which the loss depends gets a gradient. Here are four numbers of the row of "
            f"“{words[0]}”, in thousandths. The joint norm of all gradients is above 1, so all of them are divided "
            "by it.",
        ),
        Step(
            "The step",
            [["before"], ["AdamW →", "after"]],
            f"In its first step, AdamW moves each weight by about the learning rate, {rate:g} (1 in these "
            "thousandths), against the sign of its gradient, however long the gradient is. (This step has no warm-up, "
            "which would begin with a rate of 0.)",
        ),
    ]
    names = {
        "hidden": [f"{word}?" for word in words],
        "words": [*words, "others"],
        "labels": ["is next", "is not"],
        "row": [words[0]],
        "features": ["0", "1", "2", "3"],
    }
    return flow(boxes, steps, "One step of pre-training on one pair", names)


# --- What a model knows, word by word ----------------------------------------------------------------------


def knowledge_player(known: Mapping[int, np.ndarray], pair: Pair, scorer: Scorer) -> Player:
    """A frame for each step in `known`: the probability of each word of a pair, beside the best possible.

    known: by step, from `pretraining_knowledge.words_known`. Words of the slots `glue` and `preposition` are left out.
    """
    guesses = scorer.hidden_words(pair.text_a, pair.text_b)
    shown = [i for i, word in enumerate(pair.words) if word.slot not in ("glue", "preposition")]
    best = np.array([guess[word.text] for word, guess in zip(pair.words, guesses, strict=True)])
    frames = []
    for step, p in known.items():
        near = int((np.abs(p[shown] - best[shown]) < 0.1).sum())
        text = f"{near} of {len(shown)} words are within 0.1 of the best possible."
        frames.append(Frame(f"step {step:,}", _words_picture(pair, shown, p, best), text))
    alt = "For each hidden word of a pair, a bar: the probability that the model gives it; a line: the best possible"
    return player(frames, "step of training", alt, first=len(frames) - 1)


def _words_picture(pair: Pair, shown: Sequence[int], p: np.ndarray, best: np.ndarray) -> str:
    width, line, left = 480, 24, 96
    parts = []
    first_of_b = sum(map(len, pair.text_a))
    y = 4
    for i in shown:
        if i >= first_of_b > 0:
            parts.append(
                f'<line x1="0" x2="{width}" y1="{y + 3}" y2="{y + 3}" stroke="currentColor" stroke-opacity="0.4"/>'
            )
            y, first_of_b = y + 8, 0
        room = width - left - 4
        parts.append(
            f'<text x="{left - 8}" y="{y + 16}" text-anchor="end" fill="currentColor" font-size="15">'
            f"{html.escape(pair.words[i].text)}</text>"
            f'<rect x="{left}" y="{y + 4}" width="{room}" height="15" fill="currentColor" fill-opacity="0.08"/>'
            f'<rect x="{left}" y="{y + 4}" width="{room * p[i]:.1f}" height="15" fill="{colour("first")}"/>'
            f'<rect x="{left + room * best[i] - 1.5:.1f}" y="{y + 1}" width="3" height="21" fill="{colour("second")}"/>'
        )
        y += line
    parts.append(
        f'<text x="{left}" y="{y + 18}" fill="currentColor" font-size="14">0</text>'
        f'<text x="{width - 4}" y="{y + 18}" text-anchor="end" fill="currentColor" font-size="14">1</text>'
        f'<text x="{(left + width) / 2:.0f}" y="{y + 18}" text-anchor="middle" font-size="14">'
        f'<tspan fill="{colour("first")}">the model</tspan><tspan fill="currentColor"> and </tspan>'
        f'<tspan fill="{colour("second")}">the best possible</tspan></text>'
    )
    return svg(width, y + 26, parts)


# --- The stored runs ---------------------------------------------------------------------------------------


def runs_of(
    record: Mapping[str, Any], variant: str, steps: int, rate: float | None = None
) -> list[dict[str, Any]]:
    """The runs of a variant with so many steps: at a learning rate, or at the best of those of seed 0.

    Raises ValueError if the record has none.
    """
    runs = [run for run in record["runs"] if (run["variant"], run["steps"]) == (variant, steps)]
    if not runs:
        raise ValueError(f"the record has no run of {variant!r} with {steps} steps")
    if rate is None:
        rate = min(
            (run for run in runs if run["seed"] == 0), key=lambda run: run["curve"][-1][1]["all"]["nats"]
        )["rate"]
    return sorted((run for run in runs if run["rate"] == rate), key=lambda run: run["seed"])


def by_rate(record: Mapping[str, Any], variant: str, steps: int) -> dict[float, float]:
    """The last loss of the variant's run of so many steps with seed 0, by learning rate, the lowest rate first."""
    rates = sorted(
        run["rate"]
        for run in record["runs"]
        if (run["variant"], run["steps"], run["seed"]) == (variant, steps, 0)
    )
    return {rate: runs_of(record, variant, steps, rate)[0]["curve"][-1][1]["all"]["nats"] for rate in rates}


def learned_at(run: Mapping[str, Any], slot: str, floor: float, share: float = 0.9) -> float:
    """The first stored step from which on a run has closed so much of its gap to the floor; infinite if it never has.

    share: of the gap at step 0. From the last point on which the gap was wider, it is the next.
    """
    gaps = [(step, scores[slot]["nats"] - floor) for step, scores in run["curve"]]
    limit = (1 - share) * gaps[0][1]
    late = [i for i, (_, gap) in enumerate(gaps) if gap > limit]
    return float("inf") if late[-1] == len(gaps) - 1 else float(gaps[late[-1] + 1][0])


def gap_figure(
    runs: Sequence[Mapping[str, Any]], floor: float, words_alone: float, own: Mapping[int, float]
) -> Picture:
    """How far the one-mask loss of stored runs is above the floor, over the steps, and that of the reader's own run.

    words_alone: the loss of knowing how frequent each word is. own: losses by step.
    """

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        for run in runs:
            steps, losses = zip(
                *[(step, scores["all"]["nats"]) for step, scores in run["curve"]], strict=True
            )
            axes.plot(
                steps, [loss - floor for loss in losses], color=colours["first"], linewidth=1, alpha=0.7
            )
        axes.plot(
            list(own), [loss - floor for loss in own.values()], "o", color=colours["second"], markersize=5
        )
        axes.axhline(words_alone - floor, color=colours["ink"], linewidth=1, linestyle="--")
        last = max(step for run in runs for step, _ in run["curve"])
        axes.text(
            last, (words_alone - floor) * 0.93, "unigram entropy", color=colours["ink"], ha="right", va="top"
        )
        axes.text(0.5 * last, 0.12, "five stored runs", color=colours["first"])
        axes.text(0.12 * last, 0.75, "the run on this page", color=colours["second"])
        axes.set_yscale("log")
        axes.set_yticks(
            [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5], ["0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5"]
        )
        axes.minorticks_off()
        axes.set_xlabel("steps")
        axes.set_ylabel("nats above the floor")

    alt = (
        "The loss of a hidden word comes within 1 nat of the floor in the first 500 steps, and goes on falling to the "
        "last step, to a few hundredths of a nat; the run on the page lies among the stored runs"
    )
    return figure(plot, alt)


def order_figure(steps: Mapping[str, Sequence[float]], last: float) -> Picture:
    """When each slot was learned: a dot for each run, those that came first at the top. last: the last stored step."""

    slots = sorted(steps, key=lambda slot: float(np.median(steps[slot])))

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        for y, slot in enumerate(slots[::-1]):
            found = [min(step, 1.25 * last) for step in steps[slot]]
            axes.plot([min(found), max(found)], [y, y], color=colours["grid"], linewidth=3, zorder=1)
            axes.scatter(found, [y] * len(found), color=colours["first"], s=26, zorder=2, alpha=0.8)
        axes.set_yticks(range(len(slots)), slots[::-1])
        axes.set_xscale("log")
        axes.set_xticks(
            [250, 500, 1000, 2000, 5000, 10000], ["250", "500", "1,000", "2,000", "5,000", "10,000"]
        )
        axes.minorticks_off()
        axes.set_xlabel("step from which 90 % of the gap is closed")

    names = ", ".join(slots)
    return figure(
        plot, f"The order in which slots are learned, one dot for each of five runs: {names}", (5.4, 3.6)
    )


MISTAKES = ("no scale", "K = V", "K = Q", "second residual")  # of the variants; the others change a choice


def ablation_figure(
    ends: Mapping[str, Sequence[float]], others: Mapping[str, Sequence[float]], floor: float, line: float
) -> Picture:
    """The last losses of the runs of BERT, of mistakes and of other choices, each group with its best at the top.

    ends: at a variant's best rate, as full dots. others: at the other rates, as hollow ones. With the floor and a line.
    """
    ranked = sorted(ends, key=lambda name: float(np.median(ends[name])))
    mistakes = sorted(MISTAKES, key=ranked.index)  # a mistake that has another name now is an error
    choices = [name for name in ranked if name not in MISTAKES and name != "BERT"]
    rows = ["BERT", "mistakes:", *mistakes, "other choices:", *choices][::-1]

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        for y, name in enumerate(rows):
            if name not in ends:  # the name of a group
                continue
            right = float(np.median(ends[name])) <= line
            colour = colours["first" if right else "third"]
            far = others[name]
            axes.scatter(far, [y] * len(far), facecolors="none", edgecolors=colour, s=22, linewidths=1)
            axes.scatter(ends[name], [y] * len(ends[name]), color=colour, s=26, alpha=0.8)
        axes.axvline(floor, color=colours["second"], linewidth=1.5)
        axes.axvline(line, color=colours["ink"], linewidth=1, linestyle="--")
        axes.text(floor, len(rows) - 0.4, "floor", color=colours["second"], ha="center", va="bottom")
        axes.text(line, len(rows) - 0.4, f"{line:.2f}", color=colours["ink"], ha="center", va="bottom")
        axes.set_yticks(range(len(rows)), rows)
        axes.set_ylim(-0.6, len(rows) + 0.2)
        axes.set_xlabel("loss of one hidden word after 3,000 steps (nats)")

    return figure(
        plot,
        "The losses of BERT and of its variants after 3,000 steps at their best rates, each group from low to high: "
        f"mistakes: {', '.join(mistakes)}; other choices: {', '.join(choices)}",
        (5.4, 4.8),
    )


def calibration_figure(p: np.ndarray, exact: np.ndarray, copies: Sequence[tuple[float, float]]) -> Picture:
    """The probabilities of a model over the exact ones, both (N,): larger dots are of more guesses.

    copies: guesses that are told apart, as (probability, exact). What is below 0.01 in both is left out.
    """

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.add_subplot()
        seen = (p > SEEN) | (exact > SEEN)
        places, counts = np.unique(
            np.round([exact[seen] / GRAIN, p[seen] / GRAIN]) * GRAIN, axis=1, return_counts=True
        )
        for least, size in ((1, 6), (10, 20), (100, 60)):
            x, y = places[:, (least <= counts) & (counts < 10 * least)]
            axes.scatter(x, y, s=size, color=colours["first"], alpha=0.5)
        axes.scatter([x for _, x in copies], [y for y, _ in copies], s=20, color=colours["second"], zorder=3)
        axes.text(0.07, 0.93, "copies", color=colours["second"], fontsize=12, va="center")
        axes.plot([0, 1], [0, 1], "--", color=colours["ink"], linewidth=1)
        axes.set(xlabel="exact probability", ylabel="the model's", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        axes.set_aspect("equal")

    mine, best = np.mean(copies, axis=0)
    return figure(
        plot,
        f"The model's probabilities over the exact ones lie along the diagonal. {len(copies)} copies lie above it: on "
        f"average {mine:.2f}, where {best:.2f} is exact.",
        (4.4, 4.2),
    )
