"""The network that is trained on the spirals of `reverse_mode`, and the way to a parameter as a picture.

Chapter `optimisers` trains the same network on the same points.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bert_course.common.figures import Figure, Picture, figure, tinted
from minigrad import Tensor, manual_seed, nn, no_grad, ops


def network(std: float, norm: bool = False, seed: int = 0, width: int = 64) -> nn.Sequential:
    """2 -> width -> width -> width -> 3 with tanh between, in float64.

    std: of the initial weights. norm: with a LayerNorm in front of each tanh.
    """
    manual_seed(seed)
    steps: list[Any] = []
    for n_in in (2, width, width):
        steps.append(nn.Linear(n_in, width, std=std))
        steps += [nn.LayerNorm(width)] if norm else []
        steps.append(ops.tanh)
    model = nn.Sequential(*steps, nn.Linear(width, 3, std=std))
    model.astype("float64")
    return model


def loss_of(model: nn.Module, points: np.ndarray, arms: np.ndarray) -> Tensor:
    """The mean cross-entropy in nats: -log of the probability that the model gives to the right arm."""
    return ops.cross_entropy(model(Tensor(points)), arms)


def accuracy(model: nn.Module, points: np.ndarray, arms: np.ndarray) -> float:
    """The share of the points to whose arm the model gives the highest score."""
    with no_grad():
        guesses = model(Tensor(points)).numpy().argmax(axis=1)
    return float((guesses == arms).mean())


def arms_guessed(models: Mapping[str, nn.Module], points: np.ndarray, arms: np.ndarray) -> Picture:
    """Under each name the plane in the colours of the arms that a model guesses there, with points of known arms."""
    cells, reach = 60, 1.25
    at = (np.arange(cells) + 0.5) / cells * 2 * reach - reach
    plane = np.stack(np.broadcast_arrays(at, at[:, None]), axis=-1).reshape(-1, 2)  # (cells², 2)
    places = (points / reach + 1) * cells / 2 - 0.5
    looks = ("first", "second", "third")

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        for axes, (name, model) in zip(canvas.subplots(1, len(models)), models.items(), strict=True):
            with no_grad():
                guesses = model(Tensor(plane)).numpy().argmax(axis=1).reshape(cells, cells)
            shades = [tinted(np.array(0.3), colours[look]) for look in looks]
            axes.imshow(np.array(shades)[guesses], interpolation="nearest")
            for arm, look in enumerate(looks):
                axes.scatter(*places[arms == arm].T, s=9, color=colours[look])
            axes.set(title=name, xlim=(0, cells - 1), ylim=(0, cells - 1), xticks=[], yticks=[])
            axes.grid(visible=False)

    said = [
        f"{name}: {accuracy(model, points, arms):.2f} of the points are right"
        for name, model in models.items()
    ]
    return figure(
        plot,
        f"Three spiral arms, on the plane in the colours of the arms guessed. {'. '.join(said)}.",
        (5.6, 3),
    )


# --- The way to a parameter ------------------------------------------------------------------------------


def way_to(model: nn.Module, name: str) -> list[tuple[list[str], int]]:
    """The boxes on the way from a model to one of its parameters.

    name: dotted, as in `state_dict`. Returns for each level the names that are there, parameters with their shapes,
    and which of them the way takes. Raises KeyError for a name that the model does not have.
    """
    shapes = {path: parameter.shape for path, parameter in model.named_parameters()}
    if name not in shapes:
        raise KeyError(f"way_to: the model has no parameter {name!r}")
    levels, prefix = [], ""
    for part in name.split("."):
        inside = dict.fromkeys(
            path[len(prefix) :].split(".")[0] for path in shapes if path.startswith(prefix)
        )
        texts = [f"{one} {shapes[prefix + one]}" if prefix + one in shapes else one for one in inside]
        levels.append((texts, list(inside).index(part)))
        prefix += f"{part}."
    return levels


def draw_way(canvas: Any, colours: dict[str, str], levels: list[tuple[list[str], int]]) -> None:
    """The levels from top to bottom, each under the box that it is in; what the way takes is in colour."""
    axes = canvas.subplots()
    axes.axis("off")
    left = 0.0
    for depth, (texts, taken) in enumerate(levels):
        x, y = left, -float(depth)
        for number, text in enumerate(texts):
            here = number == taken
            axes.text(
                x,
                y,
                text,
                va="center",
                fontsize=10,
                color=colours["weight" if here else "ink"],
                fontweight="bold" if here else "normal",
            )
            if here:
                left = x + 0.25
                if depth + 1 < len(levels):
                    axes.plot(
                        [x + 0.1, x + 0.1, x + 0.2],
                        [y - 0.3, y - 1, y - 1],
                        color=colours["third"],
                        linewidth=1,
                    )
            x += 0.1 * len(text) + 0.3
    axes.set(xlim=(-0.1, 6.3), ylim=(-len(levels) + 0.5, 0.5))
