"""The one door to a trained model: what a user has goes in, scores and sets of labels come out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch._C import _set_grad_enabled

from shortlist.data import Dataset, Encoder, Images, TextEncoder
from shortlist.errors import ShortlistError, errors_name
from shortlist.files import PathLike, read_json, write_json
from shortlist.labels import LabelSets
from shortlist.labels.label_set_inputs import Names, check_stored, check_vocabulary
from shortlist.links import AnyLink, Link, ScaledLink, check_link, link_entries, link_rows
from shortlist.runs.inputs import Inputs
from shortlist.runs.yaml_text import parse_named
from shortlist.sets import SetRule
from shortlist.sets.named import file_name, make_rule, needed
from shortlist.training.encoders import features_by, load_encoder
from shortlist.training.learner import Learner, score, score_batches
from shortlist.training.scored import Scored

_BATCH = 1024
_TEXTS = 64  # of which every token has a vector in every layer


class Predictor(nn.Module):
    """A trained model with its set rules. `shortlist.load_run` makes one of a run, `shortlist.calibrate` of any model.

    ``X`` below is what a user has: an array, a tensor, a data frame of pandas, polars or pyarrow (columns are found by
    name, and prepared as in training), the path of a table, of a folder of images or of one image, a Pillow image, a
    list of paths or images, of a run on texts a list of them, or a `shortlist.data.Dataset`. As a module it takes
    prepared inputs, a batch of float32 or of tokens, and gives their scores.

    Attributes:
        label_names: what the scores are of, in their order.
        rules: the fitted set rules by name.
        link: what makes probabilities of scores: "softmax", "sigmoid" or "none".
        columns: the columns that a table or frame must have, in the order in which an array has them; None where the
            features have no names.

    >>> import shortlist as sl
    >>> scores, labels = torch.randn(200, 4, generator=torch.Generator().manual_seed(0)), torch.arange(200) % 4
    >>> predictor = sl.calibrate(scores, labels, rule="average-k:k=2", label_names=["ant", "bee", "cat", "dog"])
    >>> new = torch.tensor([[4.0, 0.0, 0.0, -1.0], [1.0, 0.9, 1.1, -3.0]])
    >>> predictor.predict(new), predictor.predict_sets(new).names
    (['ant', 'cat'], [['ant'], ['ant', 'bee', 'cat']])
    """

    def __init__(
        self,
        model: nn.Module | None,
        label_names: Sequence[str],
        *,
        link: Link,
        single: bool,
        rules: Mapping[str, SetRule] | None = None,
        inputs: Inputs | None = None,
        crops: int = 1,
        first_rule: str | None = None,
        allow_import: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.model = model
        self.encoder: nn.Module | None = None  # read when images are first given
        self.label_names = check_vocabulary(label_names, len(label_names)) or Names()
        self.link: Link = check_link(link)
        self.single = single
        self.rules = dict(rules or {})
        self.inputs = inputs
        self.crops = crops
        self.first_rule = first_rule
        self._allow_import = tuple(allow_import)
        self._weight_at: tuple[nn.Module | None, dict[str, nn.Parameter | None], str] | None = None
        self.training = False  # a model of somebody else's stays in its mode
        if isinstance(model, Learner):
            model.eval()

    @property
    def columns(self) -> list[str] | None:
        columns = None if self.inputs is None else self.inputs.columns
        return None if columns is None else list(columns)

    @property
    def only_ranks(self) -> bool:
        """Whether scores order the labels of a row and no link makes probabilities of them."""
        return self.link == "none" or (isinstance(self.model, Learner) and self.model.objective.only_ranks)

    # ---- scores

    def forward(self, inputs: Tensor) -> Tensor:
        """Scores (B, L) of prepared inputs: features, or images scaled as the backbone wants them."""
        if self.encoder is not None and (inputs.ndim == 4 or not inputs.is_floating_point()):  # pixels, or tokens
            inputs = self.encoder(inputs)
        model = self._modules.get("model")  # as self.model, of which torch takes a microsecond to tell
        if model is None:
            return inputs
        return model.scores(inputs) if isinstance(model, Learner) else _as_scores(model(inputs))

    def scores(self, X: Any, *, broken: dict[str, str] | None = None) -> Tensor:
        """The score of every label for every example, float32 (N, L) on the CPU.

        ``broken``: where images that cannot be decoded are noted, path -> reason, and scored as if they were black;
        without it the first one is an error.
        """
        inputs = self.inputs
        if isinstance(X, Tensor) and (inputs is None or (self._is_prepared(X, inputs) and self.crops == 1)):
            return self.scores_of(X)
        if inputs is None:
            if isinstance(X, Dataset):
                return torch.cat([self.scores_of(X.batch(rows)[0]) for rows in torch.arange(len(X)).split(_BATCH)])
            return self.scores_of(tensor_of(X, "inputs"))
        data = self.prepared(X, broken)
        if not isinstance(self.model, Learner):
            return torch.cat([self.scores_of(data.batch(rows)[0]) for rows in torch.arange(len(data)).split(_BATCH)])
        return score(self.model, data, crops=self.crops)

    def scored(self, data: Dataset) -> Scored:
        """The scores of a data set as ``Scored``: held whole only where they are small. Of images that turn out to be
        broken there are none, where the data set notes them."""
        assert isinstance(self.model, Learner), "asked of the model of a run"
        model, prepared = self.model, cache(partial(self.prepared, data))  # when scores are first asked for
        images = data.inputs if isinstance(data.inputs, Images) and data.inputs.broken is not None else None
        return Scored(
            lambda: score_batches(model, prepared(), crops=self.crops), len(data), len(self.label_names), images
        )

    def prepared(self, X: Any, broken: dict[str, str] | None = None) -> Dataset:
        """``X`` as the model of a run takes it: a table's columns, or words, made numbers, and images or texts made
        features where it takes features of them."""
        inputs = self.inputs
        if inputs is None:
            raise ShortlistError("only the model of a run knows what is done to its inputs")
        data = inputs.dataset(X, broken).preprocessed(inputs.preprocessor)
        if data.kind in ("images", "texts") and inputs.encoder is not None:
            self._check_shape(data, _encoded_shape(inputs.encoder))
            data = replace(data, inputs=features_by(self._load_encoder(), data))
        self._check_shape(data, inputs.in_shape)
        return data

    def probabilities(self, X: Any) -> Tensor:
        """The scores after the link: with softmax a row sums to 1, with sigmoid each label has its own."""
        if self.only_ranks:
            raise ShortlistError("this model was trained to rank: its scores are no probabilities; use scores")
        return torch.from_numpy(link_rows(self.scores(X).numpy(), self.link))

    def model_inputs(self, X: Any) -> Tensor:
        """``X`` as the module itself takes it, all rows at once: features of columns, or scaled images or tokens, of
        which the encoder has made no features yet."""
        if self.inputs is None:
            return tensor_of(X, "inputs")
        data = self.inputs.dataset(X).preprocessed(self.inputs.preprocessor)
        if data.kind in ("images", "texts"):
            data = data.normalised_for(self.first_network())
            wanted = self.inputs.in_shape if self.inputs.encoder is None else _encoded_shape(self.inputs.encoder)
        else:
            wanted = self.inputs.in_shape
        self._check_shape(data, wanted)
        return data.batch(torch.arange(len(data)))[0]

    def _is_prepared(self, X: Tensor, inputs: Inputs) -> bool:
        if inputs.preprocessor is not None or not X.is_floating_point():
            return False
        if isinstance(inputs.encoder, Encoder) and X.ndim == 4:
            self._load_encoder()
            return tuple(X.shape[2:]) == inputs.encoder.size
        return tuple(X.shape[1:]) == inputs.in_shape

    def scores_of(self, X: Tensor) -> Tensor:
        """Scores of what ``model_inputs`` gave, float32 on the CPU; ``scores`` does both."""
        weight = self._first_weight()
        device, kind = (X.device, torch.float32) if weight is None else (weight.device, weight.dtype)
        if X.dtype != kind and (X.is_floating_point() or self.model is None):
            X = X.to(kind)
        model, had_gradients = self._modules.get("model"), torch.is_grad_enabled()
        modes: list[tuple[nn.Module, bool]] = []
        if self.training or (model is not None and model.training):
            modes = [(part, part.training) for part in self.modules()]
            self.eval()
        if had_gradients:
            _set_grad_enabled(False)  # quicker than no_grad, as is a call without hooks that goes to forward
        hooked = self._forward_hooks or self._forward_pre_hooks or self._compiled_call_impl is not None
        answer = self if hooked else self.forward
        try:
            size = _BATCH if X.is_floating_point() else _TEXTS
            if len(X) > size:
                return torch.cat([answer(batch.to(device)).float().cpu() for batch in X.split(size)])
            scores: Tensor = answer(X if X.device == device else X.to(device))
            return scores if scores.dtype is torch.float32 and scores.is_cpu else scores.float().cpu()
        finally:
            if had_gradients:
                _set_grad_enabled(True)
            for part, training in modes:
                part.training = training

    def _first_weight(self) -> nn.Parameter | None:
        """Where to look for the device and the type of the model. Its place is remembered, because to look through all
        modules takes as long as a small model itself."""
        model, place = self._modules.get("model"), self._weight_at
        if place is None or place[0] is not model or place[2] not in place[1]:
            own = ((part, name) for part in self.modules() for name, _ in part.named_parameters(recurse=False))
            place = self._weight_at = next(((model, part._parameters, name) for part, name in own), None)
        return None if place is None else place[1][place[2]]

    def first_network(self) -> nn.Module | None:
        """What looks at images or reads texts, where the run takes them: the encoder that makes their features, or the
        backbone."""
        if self.inputs is not None and self.inputs.encoder is not None:
            return self._load_encoder()
        return self.model.backbone if isinstance(self.model, Learner) else self.model

    def _load_encoder(self) -> nn.Module:
        if self.encoder is None:
            made_by = None if self.inputs is None else self.inputs.encoder
            assert made_by is not None, "asked for only where the inputs have an encoder"
            encoder = load_encoder(made_by, allow_import=self._allow_import)
            self.encoder = encoder.to(next((weight.device for weight in self.parameters()), torch.device("cpu")))
        return self.encoder

    def _check_shape(self, data: Dataset, wanted: Sequence[int]) -> None:
        if tuple(data.in_shape) != tuple(wanted):
            raise ShortlistError(
                f"{data.name}: inputs have the shape {tuple(data.in_shape)}, the run wants {tuple(wanted)}"
            )

    # ---- answers

    def predict(self, X: Any) -> list[str] | list[list[str]]:
        """The name of the best label of each example; of a model for several labels, the names in its set."""
        if not self.single:
            return self.predict_sets(X).names
        scores = self._scores_of_labels(X)
        _check_numbers(scores)
        return [self.label_names[label] for label in scores.argmax(1).tolist()]

    def predict_sets(
        self, X: Any, rule: str | SetRule | None = None, *, groups: Any = None, weights: Any = None
    ) -> LabelSets:
        """The set of labels of each example, by the fitted rule of this name, or one that needs no fitting, such as
        ``"top-k:k=3"``. If not given: the only one that is fitted, the first that the run's config names, or the
        average-k one. ``groups`` and ``weights``: one of each example, for the rules that need them."""
        chosen = rule if isinstance(rule, SetRule) else self.rule(rule)[1]
        scores = self._scores_of_labels(X)
        if groups is None and weights is None and (row := chosen.one_row(scores)) is not None:
            return LabelSets.from_one(row, scores.shape[1], self.label_names)
        try:
            facts = needed(chosen, {"groups": groups, "weights": weights}) if chosen.needs else {}
            return self.named(chosen.predict(scores, **facts))
        except ShortlistError:
            _check_numbers(scores)
            raise

    def _scores_of_labels(self, X: Any) -> Tensor:
        scores = self.scores(X)
        if scores.ndim != 2 or scores.shape[1] != len(self.label_names):
            raise ShortlistError(
                f"scores have the shape {tuple(scores.shape)}, one for each of {len(self.label_names)} labels is wanted"
            )
        return scores

    def rule(self, wanted: str | None = None) -> tuple[str, SetRule]:
        """The rule that ``predict_sets`` uses for this name, and what it is called."""
        fitted = self.rules
        if wanted is None:
            average = [name for name in fitted if name.startswith("average-k")]
            choices = list(fitted) if len(fitted) == 1 else [self.first_rule] if self.first_rule in fitted else average
            if len(choices) != 1 or choices[0] is None:
                if not fitted:
                    raise ShortlistError(
                        "no rule is fitted yet: fit some with shortlist calibrate, or name one that needs no fitting "
                        "with --rule, such as --rule top-k:k=1"
                    )
                raise ShortlistError(f"which rule? Name it with --rule: one of {', '.join(fitted)}")
            return choices[0], fitted[choices[0]]
        if not isinstance(wanted, str):
            raise ShortlistError(f"a rule is given by its name, or as a rule object, got {wanted!r}")
        if wanted in fitted:
            return wanted, fitted[wanted]
        if ":" not in wanted:
            there = f"there are {', '.join(fitted)}" if fitted else "none is fitted yet: use shortlist calibrate"
            raise ShortlistError(f"there is no fitted rule {wanted!r}; {there}")
        named = parse_named(wanted)
        made = make_rule("--rule", named, self.link, self.single, self._allow_import)
        name = file_name(named, self._allow_import)
        if not made.is_fitted:
            there = f"; fitted are {', '.join(fitted)}" if fitted else ""
            fit = f"fit it with shortlist calibrate RUN --rule {wanted}"
            raise ShortlistError(f"the rule {wanted!r} is not fitted: {fit}{there}")
        return name, made

    @property
    def usual_rule(self) -> str | None:
        """The name of the fitted rule that ``predict_sets`` uses; None where it has to be named."""
        try:
            return self.rule()[0]
        except ShortlistError:
            return None

    def link_beside(self, rule: SetRule) -> AnyLink:
        """What makes the probabilities beside the labels of this rule's sets: calibrated ones, where the rule's are."""
        own = getattr(rule, "link", None)
        return own if isinstance(own, ScaledLink) else self.link

    def named(self, sets: LabelSets) -> LabelSets:
        """The same sets with the labels' names."""
        return sets.named(self.label_names)

    def beside(self, scores: NDArray[Any], rule: SetRule, sets: LabelSets) -> tuple[str, NDArray[Any]]:
        """What stands beside each label of the rule's sets of these scores: its probability, or its score where that
        is none."""
        rows = np.repeat(np.arange(len(sets)), sets.sizes)
        if self.only_ranks:
            return "scores", scores[rows, sets.indices]
        return "probabilities", link_entries(scores, self.link_beside(rule), rows, sets.indices)

    # ---- to a file and back

    def save(self, path: PathLike) -> None:
        """Write what makes sets of scores, as one JSON file: the names of the labels, the link and the fitted rules.
        The model is not in it: keep its weights as you always do, and give it to ``load``.

        >>> import tempfile, pathlib, shortlist as sl
        >>> scores, labels = 4 * torch.eye(3).repeat(20, 1), torch.arange(60) % 3
        >>> predictor = sl.calibrate(scores, labels, rule="average-k:k=2")
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "sets.json"
        >>> predictor.save(path)
        >>> Predictor.load(path).predict_sets(scores) == predictor.predict_sets(scores)
        True
        """
        rules = {name: json.loads(rule.to_json()) for name, rule in self.rules.items()}
        facts = {"label_names": list(self.label_names), "link": self.link, "single": self.single}
        write_json(path, {**facts, "first_rule": self.first_rule, "rules": rules})

    @classmethod
    def load(cls, path: PathLike, model: Any = None, *, allow_import: Sequence[str] = ()) -> Self:
        """What ``save`` wrote, with the ``model`` that it was of: a module or a function of inputs, or the Predictor of
        a run; None where it is asked for sets of scores. Runs no code from the file."""
        made = model if isinstance(model, Predictor) else None
        facts = read_json(path)
        with errors_name(path):
            try:
                return cls(
                    as_module(model) if made is None else made.model,
                    facts["label_names"],
                    link=facts["link"],
                    single=bool(facts["single"]),
                    rules={
                        name: SetRule.from_json(json.dumps(rule), allow_import=allow_import)
                        for name, rule in facts["rules"].items()
                    },
                    inputs=None if made is None else made.inputs,
                    crops=1 if made is None else made.crops,
                    first_rule=facts["first_rule"],
                    allow_import=allow_import if made is None else made._allow_import,
                )
            except (LookupError, TypeError, AttributeError) as error:
                raise ShortlistError(f"this is not a file that Predictor.save wrote: {error}") from error

    def extra_repr(self) -> str:
        rules = ", ".join(self.rules) or "no rules"
        return f"{len(self.label_names)} labels, {rules}, link={self.link!r}"


def _encoded_shape(encoder: Encoder | TextEncoder) -> tuple[int, ...]:
    """Of what an encoder makes features of."""
    return () if isinstance(encoder, TextEncoder) else (3, *encoder.size)


def _check_numbers(scores: Tensor) -> None:
    wrong = scores.isnan().any(1).nonzero()
    if len(wrong):
        raise ShortlistError(f"the scores of row {int(wrong[0])} hold NaN: are its inputs blank or infinite?")


def _as_scores(answer: Any) -> Tensor:
    if isinstance(answer, Tensor | np.ndarray | list):
        return torch.as_tensor(answer)
    raise ShortlistError(
        f"the model gave {type(answer).__name__}, wanted are scores (rows, labels), a tensor: give a function that "
        f"takes them from it, such as lambda inputs: model(inputs)[0]"
    )


class _Function(nn.Module):
    """A function of inputs as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function, self.training = function, False

    def forward(self, inputs: Tensor) -> Any:
        return self.function(inputs)


def as_module(model: Any) -> nn.Module | None:
    """A module or a function of inputs; None of what is neither."""
    return model if isinstance(model, nn.Module) else _Function(model) if callable(model) else None


def tensor_of(X: Any, what: str) -> Tensor:
    if isinstance(X, Tensor):
        return X
    check_stored(X, what)
    values = np.asarray(X)
    if values.dtype.kind not in "biuf":
        raise ShortlistError(f"{what} must be numbers, got an array of {values.dtype}")
    return torch.as_tensor(np.require(values, values.dtype.newbyteorder("="), ["W"]))
