"""What `published` shows: a BERT that others trained, where it is on this machine, and sentences to compare with it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from safetensors.numpy import load_file

from bert_course.common.figures import Figure, Picture, Rectangle, figure
from bert_course.common.show import Beside, beside
from bert_course.stored import stored
from minigrad import no_grad
from minigrad.bert.config import BertConfig
from minigrad.bert.model import BertModel
from minigrad.nn import parameter_shapes
from minigrad.training.pretrained import Pretrained

SIZES = BertConfig(30522, 384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
LONGEST = 128  # tokens of a text; the model was trained on texts of that length at most


# --- Its parameters --------------------------------------------------------------------------------------

# Which of a learner's parts (`bert_course.parts.PARTS`) computes with a parameter, by its name.
_PARTS = {
    r"LayerNorm": "add_norm",
    r"embeddings\.": "embed",
    r"attention\.": "multi_head",
    r"pooler\.": "pool",
    r"(intermediate|output)\.dense": "feed_forward",
}


def part_of(name: str) -> str:
    """The part that computes with a parameter. Raises ValueError for a name that no part has."""
    for pattern, part in _PARTS.items():
        if re.search(pattern, name):
            return part
    raise ValueError(f"no part computes with {name!r}")


def parameters_by_part(config: BertConfig = SIZES) -> dict[str, int]:
    """The number of a BertModel's parameters that each part computes with, the largest first."""
    counts: dict[str, int] = {}
    for name, shape in parameter_shapes(lambda: BertModel(config)).items():
        part = part_of(name)
        counts[part] = counts.get(part, 0) + int(np.prod(shape))
    return dict(sorted(counts.items(), key=lambda one: -one[1]))


_ROLES = {"embed": "third", "multi_head": "first", "feed_forward": "second", "pool": "ink"}


def parts_figure(config: BertConfig = SIZES) -> Picture:
    """All parameters as areas: the tables on the left, the layers one above the other, coloured by part."""
    counts = parameters_by_part(config)
    total, layers = sum(counts.values()), config.num_hidden_layers
    wide = counts["embed"] / total
    top = counts["pool"] / total / (1 - wide)  # the pooler's height above the layers
    split = counts["multi_head"] / (counts["multi_head"] + counts["feed_forward"])

    def plot(canvas: Figure, colours: dict[str, str]) -> None:
        axes = canvas.subplots()

        def area(part: str, x: float, y: float, width: float, height: float) -> None:
            colour = colours[_ROLES[part]]
            for face, alpha in ((colour, 0.25), ("none", 1.0)):
                axes.add_patch(
                    Rectangle(
                        (x, y), width, height, facecolor=face, alpha=alpha, edgecolor=colour, linewidth=1
                    )
                )

        def words(text: str, x: float, y: float, role: str = "ink") -> None:
            axes.text(x, y, text, ha="center", va="center", fontsize=10, color=colours[role])

        area("embed", 0, 0, wide, 1)
        high = (1 - top) / layers
        for layer in range(layers):
            area("multi_head", wide, layer * high, (1 - wide) * split, high)
            area("feed_forward", wide + (1 - wide) * split, layer * high, (1 - wide) * (1 - split), high)
            words(f"layer {layer + 1}", 1.06, (layer + 0.5) * high)
        area("pool", wide, 1 - top, 1 - wide, top)
        ends = {
            "embed": (0, wide),
            "multi_head": (wide, wide + (1 - wide) * split),
            "feed_forward": (wide + (1 - wide) * split, 1),
        }
        for part, (left, right) in ends.items():
            words(f"{part}\n{counts[part] / total:.0%}", (left + right) / 2, -0.1, _ROLES[part])
        words(f"pool {counts['pool'] / total:.1%}", (1 + wide) / 2, 1.05, _ROLES["pool"])
        axes.set(xlim=(-0.005, 1.13), ylim=(-0.2, 1.1))
        axes.axis("off")

    shares = ", ".join(f"{part} {number / total:.1%}" for part, number in counts.items())
    return figure(
        plot,
        f"{total / 1e6:.1f} million parameters as areas, by the part that computes with them: {shares}. The tables of "
        f"the embeddings take more than half; {layers} equal layers share nearly all the rest.",
        (5.4, 3.2),
    )


# --- Sentences -------------------------------------------------------------------------------------------

# The two of a pair tell of the same thing, with hardly a word in common.
PAIRS = (
    ("A man is eating food.", "Someone has a meal."),
    ("The child is asleep.", "A little girl sleeps."),
    ("He repaired his bicycle.", "The bike has been fixed."),
    ("It rained all day.", "The weather was wet from morning to night."),
    ("She lost her keys.", "The woman cannot find what opens her door."),
    ("The train was late.", "We waited at the station longer than planned."),
    ("I am hungry.", "My stomach is empty."),
    ("He speaks three languages.", "The man talks in English, French and Polish."),
    ("The shop is closed on Sundays.", "You cannot buy anything there at the weekend."),
    ("They got married last week.", "The couple had their wedding a few days ago."),
    ("The cat climbed a tree.", "A kitten sits high up among the branches."),
    ("My computer is broken.", "The laptop does not start any more."),
    ("She plays the violin.", "The musician holds a bow and strings."),
    ("The river froze.", "Ice covers the stream."),
    ("He was sentenced to two years.", "The judge sent the thief to prison."),
    ("The soup is too salty.", "This dish needs less seasoning."),
    ("Our team won the match.", "We beat the other side by two goals."),
    ("The doctor examined the patient.", "A physician looked at someone who was ill."),
    ("Prices rose again.", "Everything costs more than before."),
    ("The plane landed safely.", "The flight came down without an accident."),
    ("I forgot her birthday.", "It slipped my mind that she turned thirty."),
    ("The forest is burning.", "Fire spreads through the trees."),
    ("He painted the wall blue.", "The room has a new colour."),
    ("The lecture was boring.", "Students yawned while the professor talked."),
    ("She drives to work.", "The commuter takes her car every morning."),
    ("The phone rang.", "Somebody was calling."),
    ("Bees make honey.", "Insects turn nectar into something sweet."),
    ("The museum shows old paintings.", "In the gallery hang pictures from long ago."),
    ("He gave up smoking.", "The man has not touched a cigarette since."),
    ("The house is for sale.", "The owners want to sell their home."),
    ("Snow blocked the road.", "Nobody could pass because of the winter storm."),
    ("She wrote a novel.", "The author finished her book."),
    ("The election is next month.", "Citizens will soon go and vote."),
    ("He broke his leg.", "After the fall he needed a plaster cast."),
    ("The coffee is cold.", "My drink has been standing there for too long."),
    ("They planted potatoes.", "The farmers put vegetables into the soil."),
    ("The baby is crying.", "An infant screams."),
    ("The bridge collapsed.", "What led over the water fell down."),
    ("I paid with my card.", "No cash was needed for the bill."),
    ("The dog barked at the postman.", "An animal made noise when the letters came."),
    ("The students passed the exam.", "All candidates succeeded in the test."),
    ("He is afraid of spiders.", "Anything with eight legs frightens him."),
    ("The company hired fifty people.", "New jobs were created at the firm."),
    ("The moon is full tonight.", "A bright disc shines in the dark sky."),
    ("She cut her hair short.", "The lady has been to the hairdresser."),
    ("The king died.", "The monarch is no longer alive."),
    ("He swam across the lake.", "The athlete crossed the water without a boat."),
    ("The bread is fresh.", "The loaf has just come out of the oven."),
    ("The film made us laugh.", "We enjoyed a funny movie."),
    ("The stock market fell today.", "Shares lost much of their value."),
)


# Pairs that share most of their words; those of the last kind keep their meaning.
CHANGED = {
    "with and without not": (
        ("The film was good.", "The film was not good."),
        ("She likes the new teacher.", "She does not like the new teacher."),
        ("The train was late.", "The train was not late."),
        ("He can swim.", "He cannot swim."),
        ("The door is locked.", "The door is not locked."),
        ("We have met before.", "We have not met before."),
        ("The test was passed.", "The test was not passed."),
        ("This water is safe to drink.", "This water is not safe to drink."),
    ),
    "roles exchanged": (
        ("The dog bites the man.", "The man bites the dog."),
        ("Mary gave John the book.", "John gave Mary the book."),
        ("The teacher praised the student.", "The student praised the teacher."),
        ("Spain beat Italy.", "Italy beat Spain."),
        ("The car hit the bus.", "The bus hit the car."),
        ("Anna is taller than Kate.", "Kate is taller than Anna."),
        ("The cat chased the mouse.", "The mouse chased the cat."),
        ("He moved from Paris to Rome.", "He moved from Rome to Paris."),
    ),
    "another number": (
        ("She has two books.", "She has nine books."),
        ("The ticket costs five euros.", "The ticket costs fifty euros."),
        ("They won three games.", "They won eight games."),
        ("He waited for ten minutes.", "He waited for forty minutes."),
        ("The house has two floors.", "The house has six floors."),
        ("The class has twelve students.", "The class has thirty students."),
        ("The war ended in 1945.", "The war ended in 1918."),
        ("I slept four hours.", "I slept nine hours."),
    ),
    "same meaning": (
        ("The film was good.", "The film was excellent."),
        ("She likes the new teacher.", "She is fond of the new teacher."),
        ("The train was late.", "The train was delayed."),
        ("The teacher praised the student.", "The teacher commended the student."),
        ("She has two books.", "She owns two books."),
        ("The door is locked.", "The door is bolted."),
        ("The house has two floors.", "The building has two floors."),
        ("I slept four hours.", "I was asleep for four hours."),
    ),
}


def vectors(loaded: Pretrained, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The hidden states of texts, padded, (n, L, d_model), and their attention mask (n, L)."""
    assert loaded.tokenizer is not None
    encoded = [loaded.tokenizer.encode(text).input_ids[:LONGEST] for text in texts]
    length = max(map(len, encoded))
    ids = np.array([one + [0] * (length - len(one)) for one in encoded])
    mask = np.array([[1] * len(one) + [0] * (length - len(one)) for one in encoded])
    with no_grad():
        return loaded.model(ids, mask).last_hidden_state.numpy(), mask


def shared_words(texts: Sequence[str]) -> np.ndarray:
    """For each two texts the share of their words that both have, (n, n)."""
    words = [set(re.findall(r"[a-z]+", text.lower())) for text in texts]
    return np.array([[len(one & other) / len(one | other) for other in words] for one in words])


class Said(NamedTuple):
    """A sentence that a chapter ends with."""

    chapter: str
    text: str


def said() -> list[Said]:
    """What a reader can say at the end of each chapter, as plain text, in the order of the course."""
    found: dict[str, list[str]] = json.loads(stored("said.json").read_text("utf-8"))
    return [Said(chapter, text) for chapter, texts in found.items() for text in texts]


def reference() -> dict[str, np.ndarray]:
    """What transformers computed of three texts (`book/records/benchmarks/published_reference.py`).

    input_ids, attention_mask (3, L), last_hidden_state (3, L, d_model).
    """
    return load_file(stored("published.safetensors"))


def both_sources() -> Beside:
    """The encoder on arrays, in NumPy and in PyTorch, line beside line."""
    files = {"NumPy": "bert_in_numpy.txt", "PyTorch": "bert_in_pytorch.txt"}
    return beside({name: stored(file).read_text("utf-8") for name, file in files.items()})
