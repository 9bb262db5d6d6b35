"""From a model's scores to what it says: classes, answers and tags."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_task

from minigrad import nn
from minigrad.bert.features import EncodedExamples, Features
from minigrad.bert.task_predict import predict_examples
from minigrad.bert.tasks import QuestionAnsweringModelOutput, SequenceClassifierOutput, TokenClassifierOutput
from minigrad.tensor import Tensor

CONTEXT = " ".join(f"w{number:02}" for number in range(40))  # a word each four characters
PLACES = [(4 * i, 4 * i + 3) for i in range(40)]
QUESTION = Features([2] * 45, [0] * 45, {}, [None] * 4 + PLACES + [None], range(4, 44))


class Says(nn.Module):
    """A model that says the same of whatever it reads."""

    def __init__(self, output: object) -> None:
        self.output = output
        self.config = tiny_task.CONFIG.replace(id2label={0: "no", 1: "yes", 2: "who knows"})
        self.modes: list[bool] = []

    def forward(self, **batch: np.ndarray) -> object:
        self.modes.append(self.training)
        return self.output


def encoded(task: str, rows: list[dict], features: list[Features]) -> EncodedExamples:
    """Examples of one window each."""
    return EncodedExamples(task, rows, features, list(range(len(rows))), [])


def tensor(values) -> Tensor:
    return Tensor(np.array(values, np.float32))


def scores(**places: float) -> Tensor:
    """(1, 45): 0 but for `t7=5.0`."""
    values = np.zeros((1, 45))
    for name, score in places.items():
        values[0, int(name[1:])] = score
    return tensor(values)


def answer(start: Tensor, end: Tensor, features: Features = QUESTION) -> dict:
    model = Says(QuestionAnsweringModelOutput(start, end))
    row = {"question": "?", "context": CONTEXT}
    (found,) = predict_examples(model, encoded("qa", [row], [features]))
    return found


def test_two_classes_of_one_name_are_added_up():
    model = Says(SequenceClassifierOutput(tensor([[2.0, 1.8, 1.8]])))
    model.config = tiny_task.CONFIG.replace(id2label={0: "no", 1: "yes", 2: "yes"})
    one = Features([2] * 3, [0] * 3)
    (found,) = predict_examples(model, encoded("classify", [{"text": "a"}], [one]))
    assert (found["label"], found["probability"]) == ("yes", found["probabilities"]["yes"])
    assert sum(found["probabilities"].values()) == pytest.approx(1)


def test_an_answer_is_the_span_with_the_largest_sum():
    found = answer(scores(t6=9), scores(t8=9))
    assert (found["answer"], found["answer_start"]) == ("w02 w03 w04", 8)
    assert found["probability"] == pytest.approx(1, abs=0.02)


def test_an_answer_does_not_end_before_it_starts():
    assert answer(scores(t9=9, t6=8), scores(t5=9, t10=3))["answer"] == "w05 w06"


def test_an_answer_has_30_tokens_at_most():
    assert answer(scores(t4=9), scores(t33=5, t34=9))["answer"].count("w") == 30


def test_an_answer_is_in_the_context():
    assert answer(scores(t1=9, t44=9, t7=2), scores(t2=9, t44=9, t7=2))["answer"] == "w03"


def test_of_several_windows_the_best_span_is_taken_where_it_may_start():
    """Two windows of 30 words that share 20: the middle of these parts them."""
    first = Features([2] * 35, [0] * 35, {}, [None] * 4 + PLACES[:30] + [None], range(4, 24))
    second = Features([2] * 35, [0] * 35, {}, [None] * 4 + PLACES[10:] + [None], range(14, 34))
    start, end = np.zeros((2, 35)), np.zeros((2, 35))
    start[0, 30] = 50  # word 26, which the second window has more around
    start[1, 7] = 50  # word 13, which the first has
    start[1, 24], end[1, 25] = 9, 9  # word 30
    output = QuestionAnsweringModelOutput(tensor(start), tensor(end))
    rows = [{"question": "?", "context": CONTEXT}]
    examples = EncodedExamples("qa", rows, [first, second], [0, 0], [])
    (found,) = predict_examples(Says(output), examples)
    assert (found["answer"], found["answer_start"]) == ("w30 w31", 120)
    assert found["probability"] == pytest.approx(1, abs=0.02)


def test_the_probability_is_among_all_spans():
    """Of 40 tokens, with all scores alike: spans of up to 30."""
    count = sum(40 - length for length in range(30))
    assert answer(scores(), scores())["probability"] == pytest.approx(1 / count)


def test_a_context_without_tokens_has_no_answer():
    found = answer(scores(), scores(), Features([2, 3, 3], [0, 0, 1], {}, [None] * 3))
    assert found == {"answer": "", "answer_start": None, "probability": 1.0}


def test_classes_and_their_probabilities():
    model = Says(SequenceClassifierOutput(tensor([[0, np.log(3), 0], [1000, 0, 0]])))
    rows, features = [{"text": "a"}] * 2, [Features([2, 3], [0, 0])] * 2
    first, second = predict_examples(model, encoded("classify", rows, features))
    assert first["label"] == "yes"
    assert first["probability"] == pytest.approx(3 / 5)
    assert first["probabilities"] == pytest.approx({"no": 1 / 5, "yes": 3 / 5, "who knows": 1 / 5})
    assert (second["label"], second["probability"]) == ("no", 1.0)


def test_tags_are_those_of_the_first_pieces():
    logits = tensor([[[9, 0, 0], [0, 9, 0], [9, 0, 0], [0, 0, 9], [9, 0, 0]]])
    row = {"tokens": ["one", "two", "cut"]}
    features = Features([2, 5, 6, 7, 3], [0] * 5, {}, [1, 3])
    (found,) = predict_examples(Says(TokenClassifierOutput(logits)), encoded("tag", [row], [features]))
    assert found == {"tags": ["yes", "who knows", None]}


def test_dropout_is_off_and_the_mode_is_put_back():
    model = Says(SequenceClassifierOutput(tensor([[0, 0, 1]])))
    model.train()
    rows, features = [{"text": "a"}] * 3, [Features([2, 3], [0, 0])] * 3
    assert len(list(predict_examples(model, encoded("classify", rows, features), 1))) == 3
    assert (model.modes, model.training) == ([False] * 3, True)


def test_scores_that_are_not_finite():
    model = Says(SequenceClassifierOutput(tensor([[0, np.nan, 1]])))
    examples = encoded("classify", [{"text": "a"}], [Features([2, 3], [0, 0])])
    with pytest.raises(ValueError, match="the model's scores are not finite"):
        list(predict_examples(model, examples))
