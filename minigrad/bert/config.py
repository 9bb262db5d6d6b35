"""BertConfig: the one home of BERT's sizes and defaults."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from minigrad.messages import quoted
from minigrad.training.fields import check, fault, setting
from minigrad.training.reading import ConfigError

Config = TypeVar("Config", bound=Any)

# What hidden_act may be, and the operation that it is: BERT's own, its other name in transformers, and one from before.
ACTIVATIONS = {"gelu": "gelu", "gelu_python": "gelu", "relu": "relu"}

IGNORED = -100  # the label of a position that does not count, as in PyTorch

# What no BERT comes near. Without bounds a typing error, or a config.json made to do harm, fills the memory.
LARGEST_SIZE = 2**31 - 1
MOST_LAYERS = 1_000
MOST_LABELS = 1_000_000
LARGEST_NUMBER = 1e6  # of the fields that are no sizes


def size(default: object = dataclasses.MISSING, at_least: int = 1) -> Any:
    """The field of a config that counts something, or names one of so many."""
    return setting(default, at_least=at_least, at_most=LARGEST_SIZE)


def layers(default: int, at_least: int = 0) -> Any:
    """The field that counts layers."""
    return setting(default, at_least=at_least, at_most=MOST_LAYERS)


def number(default: float) -> Any:
    """The field of a number of at least 0."""
    return setting(default, at_most=LARGEST_NUMBER)


def share(default: float) -> Any:
    """The field of a share below 1."""
    return setting(default, below=1)


def label_names(count: int) -> dict[int, str]:
    """The names of classes that have none, as Hugging Face gives them: LABEL_0, LABEL_1 …"""
    return {number: f"LABEL_{number}" for number in range(count)}


@dataclass(frozen=True)
class BertConfig:
    """The sizes of a BERT, with Hugging Face's field names; the defaults are BERT-Base uncased.

    vocab_size: rows of the token table, V.
    hidden_size: the length of a token's vector, H; a multiple of num_attention_heads.
    num_hidden_layers: N. num_attention_heads: A, so that a head has d_k = H / A.
    intermediate_size: the width of the feed-forward layer, 4 H in the paper.
    hidden_dropout_prob, attention_probs_dropout_prob: dropout on sub-layer outputs, on attention weights.
    max_position_embeddings: rows of the position table, the longest sequence.
    type_vocab_size: rows of the segment table. initializer_range: the standard deviation of initial weights.
    layer_norm_eps: ε of every LayerNorm. pad_token_id: the id of [PAD].
    hidden_act: the activation of the feed-forward layer and of the masked language model's head.
    id2label: the names of the classes of a classifier, by their numbers 0, 1, 2, …; no part of pre-training. One alone
    is that of a number.

    Raises ConfigError for sizes that do not fit, or are beyond all reason: above 2³¹ - 1, or 1,000 layers.
    Source: Devlin et al. 2019, section 3 and appendix A.2; defaults of the released `modeling.py`.
    """

    vocab_size: int = size(30522)
    hidden_size: int = size(768)
    num_hidden_layers: int = layers(12)
    num_attention_heads: int = size(12)
    intermediate_size: int = size(3072)
    hidden_dropout_prob: float = share(0.1)
    attention_probs_dropout_prob: float = share(0.1)
    max_position_embeddings: int = size(512)
    type_vocab_size: int = size(2)
    initializer_range: float = number(0.02)
    layer_norm_eps: float = number(1e-12)
    pad_token_id: int = size(0, at_least=0)
    hidden_act: str = setting("gelu", one_of=tuple(ACTIVATIONS))
    id2label: dict[int, str] = field(default_factory=lambda: label_names(2), hash=False)

    def __post_init__(self) -> None:
        check(self, ConfigError)
        if self.hidden_size % self.num_attention_heads:
            raise ConfigError(
                f"hidden_size must be a multiple of num_attention_heads, "
                f"got {self.hidden_size} and {self.num_attention_heads}"
            )
        if self.pad_token_id >= self.vocab_size:
            raise ConfigError(
                f"pad_token_id must be below vocab_size, got {self.pad_token_id} and {self.vocab_size}"
            )
        object.__setattr__(self, "id2label", _checked_labels(self.id2label))

    @property
    def head_size(self) -> int:
        """d_k = hidden_size / num_attention_heads."""
        return self.hidden_size // self.num_attention_heads

    @property
    def num_labels(self) -> int:
        """How many classes `id2label` names."""
        return len(self.id2label)

    def to_dict(self) -> dict[str, Any]:
        """Hugging Face's `config.json`: the fields, and what is an option there and fixed here.

        The names of the classes are there if they are not the default two. One alone stands for a number, and
        `problem_type` says so.
        """
        values = {
            "model_type": "bert",
            "architectures": ["BertForPreTraining"],
            "hidden_act": self.hidden_act,
            "tie_word_embeddings": True,
            **{line.name: getattr(self, line.name) for line in _numbers()},
        }
        if self.num_labels == 1:
            values["problem_type"] = "regression"
        if self.id2label != label_names(2):
            values["id2label"] = {str(number): name for number, name in self.id2label.items()}
            values["label2id"] = {name: number for number, name in self.id2label.items()}
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> BertConfig:
        """The configuration in a Hugging Face `config.json`; fields that it does not know are left out.

        Classes that `num_labels` counts, and `id2label` does not name, are LABEL_0, LABEL_1, … as in Hugging
        Face. Raises ConfigError for another kind of model, or one whose options change the computation.
        """
        fixed = {
            "model_type": ("bert",),
            "hidden_act": tuple(ACTIVATIONS),
            "position_embedding_type": ("absolute", None),
            "is_decoder": (False,),
            "add_cross_attention": (False,),
            "tie_word_embeddings": (True,),
        }
        for name, allowed in fixed.items():
            if values.get(name, allowed[0]) not in allowed:
                possible = ", ".join(repr(value) for value in allowed if value is not None)
                raise ConfigError(f"{name} is {quoted(values[name])}: this BERT has {possible} only")
        known = {line.name for line in dataclasses.fields(cls)}
        given = {name: value for name, value in values.items() if name in known}
        if given.get("id2label", ...) is None:
            del given["id2label"]
        count, names = values.get("num_labels"), given.get("id2label")
        if count is not None and not (isinstance(names, dict) and len(names) == count):
            if expected := fault(count, int, {"at_least": 1, "at_most": MOST_LABELS}):
                raise ConfigError(f"num_labels must be {expected}, got {quoted(count)}")
            given["id2label"] = label_names(count)
        return cls(**given)

    def replace(self, **changes: object) -> BertConfig:
        """A copy with some fields changed. Raises ConfigError for a field that does not exist."""
        return replaced(self, changes)


def replaced(config: Config, changes: Mapping[str, object]) -> Config:
    """A copy of any config with some fields changed. Raises ConfigError for a field that does not exist."""
    known = [line.name for line in dataclasses.fields(config)]
    for name in changes:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise ConfigError(
                f"there is no field {quoted(name)}" + (f": did you mean {near[0]!r}?" if near else "")
            )
    return dataclasses.replace(config, **changes)


def _numbers() -> Iterator[dataclasses.Field[Any]]:
    """The fields that are numbers: all but the activation and the names of the classes."""
    return (line for line in dataclasses.fields(BertConfig) if line.name not in ("hidden_act", "id2label"))


def _checked_labels(labels: object) -> dict[int, str]:
    """Names by number; JSON has the numbers as texts. Raises ConfigError for what maps not 0, 1, 2, … to names."""
    expected = 'id2label must map 0, 1, 2, … to names, such as {"0": "no", "1": "yes"}'
    if not isinstance(labels, dict) or not labels:
        raise ConfigError(f"{expected}, got {quoted(labels)}")
    numbered = {str(number): name for number, name in labels.items()}
    names = [numbered.get(str(number)) for number in range(len(labels))]
    if not all(isinstance(name, str) and name for name in names):
        raise ConfigError(f"{expected}, got {quoted(labels)}")
    return dict(enumerate(map(str, names)))


PRESETS = {
    # For minutes on a CPU, where a run ends long before it overfits: dropout would only slow it down. The initial
    # weights grow as 1/√H: BERT-Base's 0.02 at H = 768 is 0.05 at H = 128.
    "reduced": BertConfig(
        vocab_size=4096,
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=512,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.05,
    ),
    "base": BertConfig(),
    "large": BertConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
    ),
}
