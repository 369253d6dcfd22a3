"""From a request to what the model takes, and from scores to an answer."""

import base64
import binascii
import io
import json
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shortlist.data.column_use import listed
from shortlist.data.images import why_not_decoded
from shortlist.data.preprocessing import Preprocessor
from shortlist.errors import ShortlistError, nearest
from shortlist.labels import LabelSets
from shortlist.labels.label_set_files import best_first
from shortlist.optional import require
from shortlist.runs.export import rule_facts
from shortlist.runs.predictor import Predictor
from shortlist.serving.limits import Limits
from shortlist.serving.messages import Answer, Label, LabelSet, Model, Request, Rule
from shortlist.sets import SetRule

_QUICK = 16
_SETTINGS = ("k", "alpha")  # what a request may change of a rule


class Answers:
    """A predictor that reads requests and writes answers."""

    def __init__(self, predictor: Predictor, run: str, limits: Limits) -> None:
        if predictor.inputs is None:
            raise ShortlistError("a predictor without inputs cannot be served: give a run")
        if predictor.crops > 1:
            raise ShortlistError(f"the run answers by {predictor.crops} crops of every image: serve it with crops: 1")
        self.predictor, self.run, self.limits, self.inputs = predictor, run, limits, predictor.inputs
        self.rule_of = lru_cache(64)(self._rule_of)
        preprocessor = self.inputs.preprocessor
        self.choices = preprocessor.choice_columns if isinstance(preprocessor, Preprocessor) else ()
        has_columns = self.inputs.preprocessor is not None and self.inputs.columns is not None
        self.takes_table = has_columns and not self.inputs.takes_texts
        if self.inputs.takes_images or self.inputs.takes_texts:
            predictor.first_network()  # now, rather than while someone waits

    # ---- in

    def is_quick(self, request: Request) -> bool:
        """Whether it takes less time to prepare than to hand over to a thread: a few lists of features."""
        return self.takes == "features" and request.rows is not None and len(request.rows) <= _QUICK

    def prepared(self, request: Request) -> tuple[Tensor, list[str]]:
        """What the model takes, and remarks about what it does not."""
        given = [kind for kind in ("rows", "images", "texts") if getattr(request, kind) is not None]
        if len(given) != 1:
            found = f"it has {' and '.join(given)}" if given else "it has none of them"
            raise ShortlistError(f"a request holds one of rows, images and texts; {found}")
        count = len(getattr(request, given[0]))
        if not 1 <= count <= self.limits.rows:
            raise ShortlistError(f"a request holds 1 to {self.limits.rows} {given[0]}, this one {count}")
        if request.texts is not None:
            return self._of_texts(request.texts)
        if request.images is not None:
            return self._of_images(request.images), []
        assert request.rows is not None
        return self._of_rows(request.rows)

    @property
    def takes(self) -> str:
        if self.takes_table:
            return "rows"
        if self.inputs.takes_texts:
            return "texts"
        return "images" if self.inputs.takes_images else "features"

    def _of_texts(self, texts: list[str]) -> tuple[Tensor, list[str]]:
        if not self.inputs.takes_texts:
            raise ShortlistError(f"the run does not take texts: it takes {self.takes}")
        blank = [str(place) for place, text in enumerate(texts) if not text.strip()]
        remarks = [f"blank texts, which say nothing: {listed(blank)}"] if blank else []
        return self.predictor.model_inputs(texts), remarks

    def _of_rows(self, rows: list[Any]) -> tuple[Tensor, list[str]]:
        if self.inputs.pixels is not None or self.inputs.takes_texts:
            raise ShortlistError(f"the run takes {self.takes}, not rows")
        if all(isinstance(row, list) for row in rows):
            return self._of_lists(rows)
        if not all(isinstance(row, dict) for row in rows):
            raise ShortlistError("rows are all objects (column -> value) or all lists, not both")
        columns = self.inputs.columns
        if columns is None:
            takes = "takes images, or their features" if self.inputs.takes_images else "knows no columns"
            raise ShortlistError(f"the run {takes}: each row is a list of {self.inputs.in_shape[0]} numbers")
        known = set(columns)
        unknown = sorted({name for row in rows for name in row} - known)
        needed = set(columns) - set(getattr(self.inputs.preprocessor, "columns_left_out", {}))
        for place, row in enumerate(rows):
            missing = [name for name in columns if name in needed and name not in row]
            if missing:
                raise ShortlistError(
                    f"row {place} has no column {listed([repr(name) for name in missing])} (null means unknown); the "
                    f"columns are {listed([repr(name) for name in columns])}"
                )
            lists = [name for name in columns if isinstance(row.get(name), list) and name not in self.choices]
            if lists:
                raise ShortlistError(
                    f"row {place}: the column {lists[0]!r} is a list: allowed are a text, a number, true, false or null"
                )
        table = {name: [row.get(name) for row in rows] for name in columns}
        frame = require("pandas").DataFrame(table, columns=list(columns), dtype=object)
        remarks = [f"columns that the run does not know are ignored: {listed(unknown)}"] if unknown else []
        return self.predictor.model_inputs(frame), remarks + self._unseen(frame)

    def _unseen(self, frame: Any) -> list[str]:
        preprocessor = self.inputs.preprocessor
        found = preprocessor.unseen(frame) if isinstance(preprocessor, Preprocessor) else {}
        return [
            f"{column!r} was never {listed([repr(name) for name in names])} in training, which therefore says nothing"
            for column, names in found.items()
        ]

    def _of_lists(self, rows: list[list[float | None]]) -> tuple[Tensor, list[str]]:
        width = len(self.inputs.columns) if self.takes_table and self.inputs.columns else self.inputs.in_shape[0]
        for place, row in enumerate(rows):
            if len(row) != width:
                raise ShortlistError(f"row {place} is a list of {len(row)}, the run wants {width} numbers")
        values = np.array(rows, dtype=np.float64)  # None is NaN
        if not self.takes_table:
            return self.predictor.model_inputs(torch.from_numpy(values).float()), []
        frame = require("pandas").DataFrame(values, columns=list(self.inputs.columns or ()))
        return self.predictor.model_inputs(values), self._unseen(frame)

    def _of_images(self, images: list[str]) -> Tensor:
        if not self.inputs.takes_images:
            raise ShortlistError(f"the run does not take images: it takes {self.takes}")
        return self.predictor.model_inputs([self._image(text, place) for place, text in enumerate(images)])

    def _image(self, text: str, place: int) -> Any:
        pil = require("PIL.Image")
        if text.startswith("data:"):
            text = text.partition(",")[2]
        try:
            image = pil.open(io.BytesIO(base64.b64decode(text, validate=True)))
            if image.width * image.height > self.limits.pixels:
                raise ShortlistError(
                    f"it has {image.width} x {image.height} pixels, more than the {self.limits.pixels} allowed"
                )
            return image.convert(image.mode)  # decodes it: a damaged file fails here
        except (OSError, SyntaxError, ValueError, binascii.Error, pil.DecompressionBombError) as error:
            raise ShortlistError(f"image {place} cannot be decoded: {why_not_decoded(error)}") from error

    # ---- out

    def answer(self, request: Request, scores: Tensor, remarks: list[str]) -> Answer:
        name, rule = self.rule_of(request.rule, request.k, request.alpha)
        found = scores.numpy()
        if not np.isfinite(found).all():
            row = int((~np.isfinite(found).all(1)).argmax())
            raise ShortlistError(f"the scores of row {row} are not finite: are its values blank or very large?")
        sets = rule.predict(found)
        return Answer(sets=self._label_sets(found, rule, sets), rule=Rule(**_facts(name, rule)), remarks=remarks)

    def _label_sets(self, scores: Any, rule: SetRule, sets: LabelSets) -> list[LabelSet]:
        beside, names = self.predictor.beside(scores, rule, sets), self.predictor.label_names
        kind, order = {"scores": "score", "probabilities": "probability"}[beside[0]], best_first(sets, beside)
        told = zip(sets.indices[order].tolist(), beside[1][order].tolist(), strict=True)
        labels = [Label(name=names[label], **{kind: number}) for label, number in told]
        return [LabelSet(labels=labels[a:b]) for a, b in pairwise(sets.offsets.tolist())]

    def _rule_of(self, name: str | None, k: float | None, alpha: float | None) -> tuple[str, SetRule]:
        """The rule of this name, with another k or alpha where asked for."""
        if name is not None and name not in self.predictor.rules:
            there = ", ".join(self.predictor.rules) or "none: calibrate the run"
            raise ShortlistError(f"there is no rule {name!r}: there are {there}{nearest(name, self.predictor.rules)}")
        called, rule = self.predictor.rule(name)
        for setting, value in zip(_SETTINGS, (k, alpha), strict=True):
            if value is None:
                continue
            if not isinstance(getattr(rule, setting, None), int | float):
                raise ShortlistError(f"the rule {called} has no {setting}")
            rule, called = _changed(rule, setting, value), f"{called} with {setting}={value:g}"
        return called, rule

    # ---- about itself

    def model(self) -> Model:
        rules = {}
        for name, rule in self.predictor.rules.items():
            setting = next((one for one in _SETTINGS if isinstance(getattr(rule, one, None), int | float)), None)
            change = None if setting is None else {"name": setting, "value": getattr(rule, setting)}
            rules[name] = {**_facts(name, rule), "setting": change}
        columns = self.inputs.columns if self.takes == "rows" else None
        return Model(
            run=self.run,
            takes=self.takes,
            labels=list(self.predictor.label_names),
            columns=None if columns is None else list(columns),
            features=self.inputs.in_shape[0] if self.takes == "features" else None,
            rules=rules,
            usual_rule=self.predictor.usual_rule,
            limits={"rows": self.limits.rows, "body": self.limits.body, "pixels": self.limits.pixels},
        )


def _facts(name: str, rule: SetRule) -> dict[str, Any]:
    facts = rule_facts(name, rule)
    return {"name": facts.pop("rule"), "settings": facts.pop("rule_settings"), **facts}


def _changed(rule: SetRule, setting: str, value: float) -> SetRule:
    """The same rule with another setting, from what it kept of its calibration rows."""
    content = json.loads(rule.to_json())
    whole = isinstance(content["settings"][setting], int) and float(value).is_integer()
    content["settings"][setting] = int(value) if whole else value
    type(rule)(**content["settings"])  # says what is wrong with the value, where something is
    made = SetRule.from_json(json.dumps(content))
    if made.num_labels is not None and setting == "k" and value > made.num_labels:
        raise ShortlistError(f"k must be at most {made.num_labels}, the number of labels, got {value:g}")
    made.finish()
    return made
