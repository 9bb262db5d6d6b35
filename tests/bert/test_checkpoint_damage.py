"""Checkpoints that are damaged or made to do harm: one clear error, before memory is taken."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
import tracemalloc

import numpy as np
import pytest
from checkpoints import keep, make_model, rewrite, set_config, shard, tokenizer
from safetensors.numpy import load_file, save_file
from tiny import SMALL

from minigrad.bert.checkpoint import from_pretrained, save_pretrained
from minigrad.bert.predict import fill_mask, next_sentence
from minigrad.text.wordpiece import SPECIAL_TOKENS
from minigrad.training.reading import CheckpointError, ConfigError

# --- What is wrong is named ------------------------------------------------------------------------------


def cut(name: str, size: int):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size])


def write(name: str, text: str):
    return lambda folder: (folder / name).write_text(text)


def remove(name: str):
    return lambda folder: (folder / name).unlink()


def weights(change):
    return lambda folder: rewrite(folder, change)


def fifo(name: str):
    def change(folder):
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return change


def index(*files: object):
    """Weights in files of these names, none of which shall be opened."""
    text = json.dumps({"weight_map": {f"bert.{number}": file for number, file in enumerate(files)}})
    return write("model.safetensors.index.json", text)


def sharded_pickle(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin.index.json").write_text("{}")


def tokenizer_options(**values):
    return write("tokenizer_config.json", json.dumps(values))


def pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def a_shard_is_missing(folder):
    shard(folder, load_file(folder / "model.safetensors"))
    (folder / "model-00002-of-00002.safetensors").unlink()


def a_shard_lacks_a_weight(folder):
    where = shard(folder, load_file(folder / "model.safetensors"))
    where["bert.more"] = "model-00001-of-00002.safetensors"
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))


def fast_tokenizer(text: str):
    def change(folder):
        (folder / "vocab.txt").unlink()
        (folder / "tokenizer.json").write_text(text)

    return change


INDEX = "model.safetensors.index.json"
HALF_A_PAIR = {piece: number for number, piece in enumerate([*SPECIAL_TOKENS, "\ud800"])}
QUERY = "bert.encoder.layer.1.attention.self.query.weight"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: shutil.rmtree(folder), "is no checkpoint: there is no file config.json"),
        (remove("config.json"), "is no checkpoint: there is no file config.json in it"),
        (cut("config.json", 50), "config.json is damaged: "),
        (set_config(model_type="roberta"), "config.json: model_type is 'roberta'"),
        (set_config(hidden_act="tanh"), "config.json: hidden_act is 'tanh'"),
        (set_config(hidden_size=13), "config.json: hidden_size must be a multiple"),
        (remove("model.safetensors"), "model.safetensors is missing"),
        (cut("model.safetensors", 3000), "model.safetensors is damaged"),
        (pickled, "has a pytorch_model.bin, which can run code; convert it to model.safetensors"),
        (weights(lambda s: {n: a for n, a in s.items() if n != QUERY}), f"1 weights are missing: {QUERY}"),
        (weights(keep("cls")), "37 weights are missing: bert.embeddings.word_embeddings.weight"),
        (weights(lambda s: {**s, QUERY: s[QUERY][:, :5]}), f"model.safetensors: {QUERY} is (12, 5)"),
        (set_config(intermediate_size=24), "bert.encoder.layer.0.intermediate.dense.weight is (20, 12)"),
        (set_config(num_hidden_layers=3), "16 weights are missing: bert.encoder.layer.2."),
        (a_shard_is_missing, "model-00002-of-00002.safetensors is missing"),
        (a_shard_lacks_a_weight, "index.json names weights that no file has: bert.more"),
        (write(INDEX, "{"), "index.json is damaged"),
        (write(INDEX, '{"weight_map": [1]}'), "index.json is damaged: expected"),
        (write(INDEX, "{}"), "index.json is damaged: expected weight_map"),
        *[
            (fifo(name), f"{name} is no file (but a folder, a pipe or a device)")
            for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json", INDEX)
        ],
        *[
            (index(name), f"such as model-00001-of-00002.safetensors, got {shown}")
            for name, shown in [
                ("../outside/secret.safetensors", "'../outside/secret.safetensors'"),
                ("/etc/secret.safetensors", "'/etc/secret.safetensors'"),
                ("..\\secret.safetensors", r"'..\\secret.safetensors'"),
                ("", "''"),
                ("model.bin", "'model.bin'"),
                ("\ud800.safetensors", r"'\ud800.safetensors'"),
                ("a\x00.safetensors", r"'a\x00.safetensors'"),
                (5, "5"),
                ("x" * 300 + ".safetensors", "'xxx"),
            ]
        ],
        (sharded_pickle, "has a pytorch_model.bin.index.json, which can run code; convert it"),
        (tokenizer_options(do_lower_case=None), "do_lower_case must be true or false, got None"),
        (tokenizer_options(strip_accents=0), "tokenizer_config.json: strip_accents must be true, false or"),
        (tokenizer_options(tokenizer_class="GPT2Tokenizer"), "tokenizer_config.json: tokenizer_class is"),
        (tokenizer_options(tokenizer_class=[1]), "tokenizer_class is [1], expected BertTokenizer"),
        (fast_tokenizer('{"model": {"vocab": {"a": 0}, "merges": []}}'), "its model is 'BPE'"),
        (fast_tokenizer('{"model": {"vocab": {"a": 0, "b": "1"}}}'), "tokenizer.json holds no vocabulary of"),
        (fast_tokenizer('{"model": {"vocab": [["a", 0.5]]}}'), "tokenizer.json holds no vocabulary"),
        (fast_tokenizer(json.dumps({"model": {"vocab": HALF_A_PAIR}})), "'utf-8' codec can't encode"),
        (fast_tokenizer("{}"), "tokenizer.json holds no vocabulary of WordPiece: it has no model"),
        (write("vocab.txt", "[PAD]\na\na\n"), "vocab.txt holds no vocabulary"),
        (write("vocab.txt", "\n".join([*SPECIAL_TOKENS, *map(str, range(50))])), "vocab.txt has 55 pieces, the"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_checkpoint_is_named(saved, damage, message):
    damage(saved)
    with pytest.raises(ConfigError if message.startswith("config.json: ") else CheckpointError) as caught:
        from_pretrained(saved)
    assert message in str(caught.value)
    assert str(saved) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": 10**7}, "config.json: num_hidden_layers must be at most 1,000, got 10000000"),
        ({"num_hidden_layers": 10**3}, "15968 weights are missing: bert.encoder.layer.2."),
        ({"vocab_size": 30_000_000}, "word_embeddings.weight is (41, 12), expected (30000000, 12) (and 1"),
        ({"max_position_embeddings": 10**8}, "position_embeddings.weight is (16, 12), expected (100000000"),
        ({"type_vocab_size": 10**8}, "token_type_embeddings.weight is (2, 12), expected (100000000, 12)"),
        ({"intermediate_size": 10**8}, "intermediate.dense.weight is (20, 12), expected (100000000, 12)"),
        ({"hidden_size": 30_000}, "word_embeddings.weight is (41, 12), expected (41, 30000)"),
        ({"vocab_size": 10**400}, "config.json: vocab_size must be at most 2,147,483,647, got 1000"),
        ({"initializer_range": 10**400}, "config.json: initializer_range must be at most 1,000,000, got"),
    ],
)
def test_a_config_beyond_all_reason_takes_no_memory(saved, changes, message):
    set_config(**changes)(saved)
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises((CheckpointError, ConfigError)) as caught:
        from_pretrained(saved)
    seconds = time.process_time() - started
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert message in str(caught.value)
    assert str(saved) in str(caught.value)
    assert peak < 100e6
    assert seconds < 5  # a quarter of it without tracemalloc


def test_heads_that_a_checkpoint_lacks_are_not_made_of_nothing(tmp_path):
    """Without a layer, no weight of the checkpoint has as many numbers as a head."""
    config = SMALL.replace(num_hidden_layers=0, hidden_size=3000, num_attention_heads=1)
    set_config_of = {**config.to_dict(), "architectures": ["BertModel"]}
    (tmp_path / "config.json").write_text(json.dumps(set_config_of))
    shapes = {"word": (41, 3000), "position": (16, 3000), "token_type": (2, 3000)}
    state = {
        f"embeddings.{name}_embeddings.weight": np.zeros(shape, np.float32) for name, shape in shapes.items()
    }
    state |= {f"embeddings.LayerNorm.{name}": np.zeros(3000, np.float32) for name in ("weight", "bias")}
    save_file(state, tmp_path / "model.safetensors")
    with pytest.raises(
        CheckpointError, match="the checkpoint has 183000 numbers and lacks 18018043 of pooler and"
    ):
        from_pretrained(tmp_path)


def test_what_is_not_used_may_be_anything(saved):
    rewrite(saved, lambda state: {**state, "other": np.full(3, np.nan), "ids": np.arange(3)})
    assert from_pretrained(saved).notes == ["in the checkpoint, not used: ids, other"]


def test_a_vocabulary_that_was_cut_short_is_noted(saved):
    pieces = tokenizer().vocab[:30]
    (saved / "vocab.txt").write_text("".join(piece + "\n" for piece in pieces), encoding="utf-8")
    (note,) = from_pretrained(saved).notes
    assert note.startswith("the vocabulary has 30 pieces, the model 41: ")


def test_a_vocabulary_with_a_byte_order_mark(saved):
    path = saved / "vocab.txt"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert from_pretrained(saved).tokenizer.vocab == tokenizer().vocab


@pytest.mark.parametrize(
    "name", [None, "BertTokenizer", "BertTokenizerFast", "PreTrainedTokenizerFast", "TokenizersBackend"]
)
def test_tokenizers_whose_vocabulary_may_be_bert_s(saved, name):
    tokenizer_options(tokenizer_class=name)(saved)
    assert from_pretrained(saved).tokenizer.vocab == tokenizer().vocab


def test_names_from_a_checkpoint_are_shown_in_a_line(saved):
    names = ["\x1b[2J\n", "\u202e", "x" * 10**6]
    rewrite(saved, lambda state: {**state, **{name: np.zeros(1) for name in names}})
    (note,) = from_pretrained(saved).notes
    assert note.isprintable()
    assert len(note) < 300
    assert "\\x1b[2J\\n" in note


@pytest.mark.parametrize(
    "damage",
    [
        index("x" * 10**6),
        index("\x1b.safetensors/"),
        set_config(model_type="\x1b" * 10**6),
        set_config(hidden_size="\n" * 10**6),
        tokenizer_options(do_lower_case="\x1b" * 10**6),
        tokenizer_options(tokenizer_class="\x1b" * 10**6),
        write("vocab.txt", ("\x1b" * 10**6 + "\n") * 2),
        fast_tokenizer(json.dumps({"model": {"vocab": {"\x1b" * 10**6: 7}}})),
        fast_tokenizer(json.dumps({"model": {"type": "\x1b" * 10**6}})),
        write("model.safetensors.index.json", '{"weight_map": {"' + "x" * 10**6 + '": "a.safetensors"}}'),
    ],
    ids=range(10),
)
def test_errors_about_a_checkpoint_are_a_short_line(saved, damage):
    damage(saved)
    with pytest.raises((CheckpointError, ConfigError)) as caught:
        from_pretrained(saved)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < len(str(saved)) + 400


# --- Random damage ---------------------------------------------------------------------------------------


# Of each type, one value that is about right and some that are not.
VALUES = [
    None,
    True,
    0,
    1,
    2,
    -1,
    1.5,
    1e300,
    10**30,
    float("nan"),
    "",
    "a",
    "\x1b" * 500,
    [],
    [[1]],
    {},
    {"a": None},
]


def damaged_json(content: bytes, rng: np.random.Generator) -> bytes:
    """A value of another type in the place of one, or one key less."""
    values = json.loads(content)
    name = str(rng.choice(list(values)))
    choice = int(rng.integers(len(VALUES) + 1))
    if choice < len(VALUES):
        values[name] = VALUES[choice]
    else:
        del values[name]
    return json.dumps(values).encode()


def damaged_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """A flipped bit, a run of zeros, a part that is gone, or one that is there twice."""
    start = int(rng.integers(len(content)))
    if rng.random() < 0.5:
        start = min(start, int(rng.integers(400)))  # where headers are
    length = int(rng.integers(1, 100))
    kind = rng.integers(4)
    if kind == 0:
        return content[:start] + bytes([content[start] ^ (1 << int(rng.integers(8)))]) + content[start + 1 :]
    if kind == 1:
        return content[:start] + bytes(len(content[start : start + length])) + content[start + length :]
    if kind == 2:
        return content[:start]
    return content[: start + length] + content[start:]


@pytest.mark.parametrize("sums", [False, True], ids=["no sums", "sums"])
def test_random_damage_is_refused_or_harmless(tmp_path, sums):
    save_pretrained(make_model(), tmp_path, tokenizer())
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    if not sums:
        del files["SHA256SUMS"]
        (tmp_path / "SHA256SUMS").unlink()
    rng = np.random.default_rng(0)
    refused = []
    for _ in range(100 if sums else 300):
        name = str(rng.choice(list(files)))
        damage = damaged_json if name.endswith(".json") and rng.random() < 0.7 else damaged_bytes
        damaged = damage(files[name], rng)
        (tmp_path / name).write_bytes(damaged)
        try:
            loaded = from_pretrained(tmp_path)
        except (CheckpointError, ConfigError) as error:
            refused.append(str(error))
        else:
            assert not sums or damaged == files[name] or name == "SHA256SUMS"
            with contextlib.suppress(ValueError):  # weights so large that the scores are not finite
                fill_mask(loaded.model, loaded.tokenizer, "a [MASK]")
                next_sentence(loaded.model, loaded.tokenizer, "a", "b")
        (tmp_path / name).write_bytes(files[name])
    assert len(refused) > 50
    assert all(str(tmp_path) in message and message.isprintable() for message in refused)
