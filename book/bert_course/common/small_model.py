"""The small BERT that is stored with the course, and the words that several pages let it guess."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bert_course.common.softmax import log_softmax
from bert_course.stored import stored
from minigrad import no_grad, random
from minigrad.bert import from_pretrained
from minigrad.bert.model import BertForPreTraining
from minigrad.text.tokenizer import WordPieceTokenizer

# What the page asks the model first, and the word that stood in the gap.
EXAMPLES = {
    "Raise an [MASK] if the file does not exist.": "exception",
    "The file is opened [MASK] reading.": "for",
    "The default value [MASK] None.": "is",
    "Return a new [MASK] of the given shape and type, filled with zeros.": "array",
}
# A sentence of NumPy's documentation, which the last of the examples resembles.
SIMILAR = "Return a new array of given shape and type, filled with ones."
# Written for the page's experiment: each word is one piece, and no more than five in a row stand in the training text
# (`longest_run` in minigrad/bert/trained/learning.json).
SENTENCES = (
    "If the file does not exist, an error is raised.",
    "Convert the string to lower case and return the result.",
    "Raise an exception if the name is not found.",
    "Close the file when all lines have been read.",
    "An empty list is returned if no match is found.",
    "Return the length of the first line of the text.",
    "Use this function to convert a string to a number.",
    "The lock must be set before the thread ends.",
    "If the key is missing, the default value is used.",
    "Each item of the sequence is passed to the function.",
    "Wait until the process ends, and return its exit code.",
    "The array is copied only if its type must change.",
)


def small_model() -> tuple[Any, WordPieceTokenizer]:
    """The trained BertForPreTraining, ready to predict, and its tokenizer."""
    loaded = from_pretrained(stored("start"))
    assert loaded.tokenizer is not None
    return loaded.model.eval(), loaded.tokenizer


def as_drawn(seed: int = 0) -> Any:
    """A BertForPreTraining of the same size before its first step; seed 0 is that of the stored run."""
    config = small_model()[0].config
    random.manual_seed(seed)
    return BertForPreTraining(config).eval()


@dataclass(frozen=True)
class HiddenTokens:
    """One sentence of L tokens, n times: in each row another of its n = L - 2 own tokens is hidden.

    ids (L,), with [CLS] and [SEP]. places (n,): of the hidden tokens. inputs (n, L): the ids with [MASK].
    """

    ids: np.ndarray
    places: np.ndarray
    inputs: np.ndarray

    def losses(self, logits: np.ndarray) -> np.ndarray:
        """-log p, in nats, of each hidden token (n,). logits: (n, L, V), or more columns where the input was padded."""
        rows = np.arange(len(self.places))
        return -log_softmax(logits[rows, self.places].astype(float))[rows, self.ids[self.places]]


def hide_each(tokenizer: WordPieceTokenizer, sentences: Sequence[str] = SENTENCES) -> list[HiddenTokens]:
    """For each sentence all ways to hide one token; by default of `start`'s twelve, which were not trained on."""
    found = []
    for sentence in sentences:
        ids = np.array(tokenizer.encode(sentence).input_ids)  # (L,)
        places = np.arange(1, len(ids) - 1)  # all but [CLS] and [SEP]
        inputs = np.tile(ids, (len(places), 1))  # (n, L)
        inputs[np.arange(len(places)), places] = tokenizer.mask_token_id
        found.append(HiddenTokens(ids, places, inputs))
    return found


def word_losses(model: Any, tokenizer: WordPieceTokenizer) -> np.ndarray:
    """-log p, in nats, of each own token of those sentences when it alone is hidden, (words,)."""
    with no_grad():
        return np.concatenate(
            [hidden.losses(model(hidden.inputs).prediction_logits.numpy()) for hidden in hide_each(tokenizer)]
        )
