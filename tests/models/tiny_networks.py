"""Networks of Hugging Face's in folders, with few weights, drawn at random."""

import json
from pathlib import Path

import torch


def text_network(folder: Path, words: list[str], **options: object) -> Path:
    """A BERT that knows these words, between a mark of the beginning and one of the end."""
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    known = {word: place for place, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words])}
    made = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, [("[CLS]", 2), ("[SEP]", 3)])
    made.enable_padding(length=64)  # as some that are published do: it does not count
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    sizes |= {"initializer_range": 0.5}  # so that words differ
    config = transformers.BertConfig(vocab_size=len(known), max_position_embeddings=32, **{**sizes, **options})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.BertModel(config).save_pretrained(folder)
    made.save(str(folder / "tokenizer.json"))
    return folder


def image_network(folder: Path) -> Path:
    """A ViT for images of 16 pixels."""
    import transformers

    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=16, patch_size=8
    )
    transformers.ViTModel(config).save_pretrained(folder)
    said = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6]}
    (folder / "preprocessor_config.json").write_text(json.dumps(said))
    return folder
