"""Vectors of texts and the command `compare`, held against transformers' hidden states."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tiny_task

from minigrad.bert.__main__ import main
from minigrad.bert.checkpoint import from_pretrained
from minigrad.bert.examples import read_examples
from minigrad.bert.model import BertModel
from minigrad.bert.sentence_vectors import embed, mean_pool, read_pooling, unit
from minigrad.training.reading import CheckpointError

CLS, MEAN = "pooling_mode_cls_token", "pooling_mode_mean_tokens"  # as sentence-transformers has them
MODULES = [
    {"type": f"a.{kind}", "path": path}
    for kind, path in (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_N"), ("Dense", "3_D"))
]
TEXTS = [row["text"] for row in tiny_task.rows("classify", 7)] + ["mary .", "john has four books ."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny_task.pretrained(tmp_path_factory.mktemp("model"))


def vectors(folder: Path, texts: list[str] = TEXTS, **options) -> np.ndarray:
    loaded = from_pretrained(folder, BertModel)
    found, cut = embed(loaded.model, loaded.tokenizer, texts, **{"max_length": 40, **options})
    assert cut == sum(len(loaded.tokenizer.encode(text)) > options.get("max_length", 40) for text in texts)
    return found


# --- Vectors ---------------------------------------------------------------------------------------------


@pytest.mark.no_arrays
def test_the_mean_leaves_padding_out():
    rng = np.random.default_rng(0)
    X, mask = rng.standard_normal((3, 5, 4)).astype(np.float32), np.ones((3, 5), int)
    mask[0, 2:] = mask[2, 1:] = 0
    expected = [X[0, :2].mean(0), X[1].mean(0), X[2, 0]]
    np.testing.assert_allclose(mean_pool(X, mask), expected, rtol=1e-6)
    assert mean_pool(X, mask).dtype == np.float32


@pytest.mark.no_arrays
def test_products_of_units_are_cosines():
    rows = np.array([[3.0, 4.0], [-6.0, -8.0], [4.0, -3.0], [0.0, 0.0]])
    np.testing.assert_allclose(
        unit(rows) @ unit(rows).T, [[1, -1, 0, 0], [-1, 1, 0, 0], [0, 0, 1, 0], [0] * 4], atol=1e-12
    )


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_text_has_the_same_vector_among_any_others(folder, pooling):
    together = vectors(folder, pooling=pooling)
    assert together.shape == (9, 24)
    for batch_size in (1, 2, 100):
        found = vectors(folder, batch_size=batch_size, pooling=pooling)
        np.testing.assert_allclose(found, together, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        vectors(folder, TEXTS[::-1], pooling=pooling)[::-1], together, rtol=1e-4, atol=1e-6
    )
    assert np.abs(together[0] - together[1]).max() > 0.01


def test_a_long_text_is_cut_at_its_end(folder):
    long = "mary has a book . " * 5
    assert (vectors(folder, [long], max_length=6) == vectors(folder, ["mary has a book"])).all()


def test_weights_that_are_too_large(folder):
    loaded = from_pretrained(folder, BertModel)
    loaded.model.encoder.layer[0].output.LayerNorm.weight.data[:] = np.inf
    with pytest.raises(ValueError, match="the model's vectors are not finite"):
        embed(loaded.model, loaded.tokenizer, TEXTS, 40)


@pytest.mark.oracle
def test_vectors_are_those_of_transformers(folder):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    theirs = transformers.AutoModel.from_pretrained(folder).eval()
    batch = transformers.AutoTokenizer.from_pretrained(folder)(
        TEXTS, return_tensors="pt", padding=True, truncation=True, max_length=12
    )
    with torch.no_grad():
        X = theirs(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1)
    mean = ((X * mask).sum(1) / mask.sum(1)).numpy()
    np.testing.assert_allclose(vectors(folder, max_length=12), mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        vectors(folder, max_length=12, pooling="cls"), X[:, 0].numpy(), rtol=1e-4, atol=1e-5
    )
    cosines = torch.nn.functional.cosine_similarity(torch.tensor(mean[:1]), torch.tensor(mean)).numpy()
    found = unit(vectors(folder, max_length=12))
    np.testing.assert_allclose(found @ found[0], cosines, atol=1e-5)


# --- Folders of sentence-transformers --------------------------------------------------------------------


@pytest.mark.no_arrays
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, ("mean", None)),
        ({"1_Pooling/config.json": {CLS: False, MEAN: True}}, ("mean", None)),
        ({"1_Pooling/config.json": {CLS: True, MEAN: False}}, ("cls", None)),
        ({"modules.json": MODULES[:3], "1_Pooling/config.json": {"pooling_mode": "cls"}}, ("cls", None)),
        ({"modules.json": [{"type": "x.Pooling", "path": "own"}], "own/config.json": {CLS: True}}, ("cls", None)),
        ({"sentence_bert_config.json": {"max_seq_length": 256, "do_lower_case": False}}, ("mean", 256)),
        ({"sentence_bert_config.json": {"max_seq_length": None}}, ("mean", None)),
        ({"1_Pooling/config.json": {CLS: True, MEAN: True}}, f"expected mean or [CLS], got {CLS}, {MEAN}"),
        ({"1_Pooling/config.json": {"pooling_mode_max_tokens": True}}, "[CLS], got pooling_mode_max_"),
        ({"1_Pooling/config.json": {"pooling_mode": "lasttoken"}}, "expected mean or [CLS], got 'lasttoken'"),
        ({"modules.json": MODULES}, "expected Transformer, Pooling and Normalize, got {'type': 'a.Dense'"),
        ({"modules.json": {}}, "modules.json is damaged: expected a list, got dict"),
        ({"modules.json": [7]}, "expected Transformer, Pooling and Normalize, got 7"),
        ({"config_sentence_transformers.json": {"default_prompt_name": "query"}}, "puts words before each text"),
        ({"config_sentence_transformers.json": {"default_prompt_name": None}}, ("mean", None)),
    ],
)  # fmt: skip
def test_how_a_folder_makes_a_vector(tmp_path, files, expected):
    for name, values in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(values))
    if isinstance(expected, tuple):
        assert read_pooling(tmp_path) == expected
        return
    with pytest.raises(CheckpointError) as caught:
        read_pooling(tmp_path)
    assert expected in str(caught.value)


# --- compare ---------------------------------------------------------------------------------------------


def said(capsys, *words: object) -> tuple[list[str], str]:
    capsys.readouterr()
    assert main(["compare", *map(str, words)]) == 0
    out, err = capsys.readouterr()
    return out.splitlines(), err


def test_typed_texts(folder, capsys):
    out, err = said(capsys, "--model", folder, *TEXTS)
    cosines = unit(vectors(folder)[1:]) @ unit(vectors(folder)[:1])[0]
    order = np.argsort(-cosines)
    assert out == [TEXTS[0], *(f"{cosines[i]:6.2f}  {TEXTS[1:][i]}" for i in order)]
    assert err == "note: in the checkpoint, not used: " + err.partition("not used: ")[2]


def test_rows_that_are_like_a_text(folder, tmp_path, capsys):
    data = tiny_task.write(tmp_path / "texts.jsonl", [{"review": text, "label": None} for text in TEXTS])
    out, _ = said(
        capsys, "--model", folder, "--data", data, "--text", "review", "--top", 2, TEXTS[4], TEXTS[7]
    )
    assert [line for line in out if not line.startswith(" ")] == [TEXTS[4], TEXTS[7]]
    assert out[1] == f"  1.00  row 5: {TEXTS[4]}"
    assert out[4] == f"  1.00  row 8: {TEXTS[7]}"
    assert len(out) == 6


def test_pairs_of_a_file(folder, tmp_path, capsys):
    data = tiny_task.write(tmp_path / "pairs.jsonl", tiny_task.rows("similarity", 9))
    out, err = said(capsys, "--model", folder, "--data", data)
    rows, found = read_examples(data).rows, [json.loads(line) for line in out]
    first, second = (unit(vectors(folder, [row[name] for row in rows])) for name in ("text", "text_pair"))
    cosines = (first * second).sum(1)
    assert [one["row"] for one in found] == list(range(1, 10))
    np.testing.assert_allclose([one["similarity"] for one in found], cosines, rtol=1e-4)
    pearson = np.corrcoef(cosines, [row["label"] for row in rows])[0, 1]
    assert f"with the labels: Pearson {pearson:.3f}, Spearman " in err
    whole = tiny_task.write(tmp_path / "whole.csv", [{**row, "label": int(row["label"] * 9)} for row in rows])
    assert "with the labels: Pearson " in said(capsys, "--model", folder, "--data", whole)[1]
    data = tiny_task.write(tmp_path / "classes.jsonl", tiny_task.rows("pairs", 3))
    assert "Pearson" not in said(capsys, "--model", folder, "--data", data)[1]


def test_vectors_in_a_file(folder, tmp_path, capsys):
    data = tiny_task.write(tmp_path / "texts.jsonl", [{"text": text} for text in TEXTS])
    path = tmp_path / "vectors.npy"
    out, err = said(capsys, "--model", folder, "--data", data, "--vectors", path, "--max-length", 12)
    assert out == [f"the vectors of 9 texts, 24 numbers each, are in {path}"]
    assert "7 of 9 texts are longer than 12 tokens: their ends are cut off" in err
    np.testing.assert_allclose(np.load(path), vectors(folder, max_length=12), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["one"], "compare takes two texts or more, or --data FILE"),
        (["a", "b", "--vectors", "x.npy"], "compare takes two texts or more, or --data FILE"),
        (["--data", "texts.jsonl"], "texts.jsonl has single texts: compare takes a TEXT to look for, or --vectors OUT"),
        (["a", "--data", "pairs.jsonl"], "pairs.jsonl has pairs: compare compares them with each other alone"),
        (["--data", "words.jsonl"], "compare reads texts, and words.jsonl has the columns of 'tag'"),
        (["--data", "texts.jsonl", "--vectors", "no/x.npy"], "--vectors with a name.npy in a folder that is there"),
        (["--data", "texts.jsonl", "--vectors", "x.csv"], "--vectors with a name.npy in a folder that is there"),
        (["a", "--data", "texts.jsonl", "--top", "0"], "expected a --top of at least 1"),
        (["a", "b", "--max-length", "0"], "max_length must be at least 3, got 0"),
        (["a", "b", "--max-length", "41"], "max_length is 41, but the model has 40 positions"),
        (["a", " "], "text: expected a text, got ' '"),
        ([" ", "a"], "text: expected a text, got ' '"),
        (["a", "b", "--text", "review"], "compare takes two texts or more, or --data FILE"),
    ],
)  # fmt: skip
def test_mistakes_of_compare(folder, tmp_path, monkeypatch, failing, words, message):
    monkeypatch.chdir(tmp_path)
    for name, task in (("texts", "classify"), ("pairs", "pairs"), ("words", "tag")):
        tiny_task.write(Path(f"{name}.jsonl"), tiny_task.rows(task, 2))
    assert message in failing("compare", "--model", folder, *words)
