"""SetClassifier: a linear model or an MLP on features, trained with any objective, that answers with sets of labels."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
)
from torch import Tensor, nn

from shortlist.data import Dataset
from shortlist.data.frame_columns import warn_of_order
from shortlist.data.preprocessing import Preprocessor
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.estimators import files
from shortlist.estimators.decisions import best_decision, log_odds
from shortlist.estimators.inputs import check_rows, features_of
from shortlist.estimators.learner import new_learner, own_torch
from shortlist.estimators.rows import (
    chosen_rows,
    held_out,
    joined,
    joined_targets,
    latest,
    read_weights,
    warn_of_copies,
    warn_of_single_rows,
)
from shortlist.estimators.settings import check_settings
from shortlist.estimators.solvers import LR, choices_of, choose_training, settings_of
from shortlist.estimators.targets import read_target, warn_of_unknown
from shortlist.files import PathLike
from shortlist.labels import LabelSets, from_indices
from shortlist.labels.counts import cardinality, knows_absent, usual_k
from shortlist.labels.label_set_inputs import check_vocabulary
from shortlist.labels.sparse_labels import dense_labels
from shortlist.links import AnyLink, link_rows, link_tensor, usual_link
from shortlist.metrics.functional import mean_average_precision
from shortlist.named import Named
from shortlist.objectives import OBJECTIVES, check_target, make_config
from shortlist.objectives.usual import is_one_hot, unknown_as_absent, usual_objective
from shortlist.sets import SetRule, TopK
from shortlist.sets.named import fit_scaled, make_rule
from shortlist.sets.scaling import fit_scaling
from shortlist.training.full_batch import take
from shortlist.training.head_columns import Scales, landmarks_for
from shortlist.training.learner import score, score_batches
from shortlist.training.linear_head import FULL_BATCH, choose_head, fits_full_batch, loss_of
from shortlist.training.loop import train
from shortlist.training.scored import KEPT_BYTES
from shortlist.training.strengths import FOLDS

_FEW = 10  # with fewer held-out rows than this, a larger share of the data is held out
_SMALL = 64  # as many rows are scored at once, without making a data set of them
_STEPS = ("epochs", "batch_size", "lr")  # what only training in batches has
_PROMISING = ("conformal", "online-conformal", "risk-control")
_RULE_OPTIONS = {"conformal": {"alpha": 0.1}, "threshold": {"value": 0.5}}


class SetClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier that answers with sets of labels: small where the answer is clear, larger where not.

    ``fit`` prepares the columns, chooses its settings on held-out rows, trains and calibrates the set rule.
    ``predict_sets`` gives the sets; ``predict``, ``predict_proba`` and ``decision_function`` are what scikit-learn
    expects of a classifier.

    ``X``: numpy, a tensor, scipy sparse, a frame (of pandas, polars or pyarrow) or a list of dicts, (N, D). ``y``: one
    class label per example; or several labels: a label matrix of 1 (present), 0 (absent) and -1 (unknown), a list of
    names or a set of labels per example, or ``LabelSets``.
    Sparse ``X`` and ``y`` of many columns are never made whole.

    Args:
        objective: name of the training objective, one of ``shortlist.objectives.OBJECTIVES``. "auto": cross-entropy
            for one label per example, binary for several (unknown labels do not train). Where no label is known to be
            absent, or few beside those known to be present, unknown ones are taken as absent, with a warning:
            assume-negative or binary. A label matrix with one label in each row stays one, with a warning: its
            ``argmax(1)`` are single labels.
        k: labels per set (on average, for "average-k"); also the objective's k where it has one. None: for single
            labels 5, or half of them where there are fewer than ten; else the mean number of labels in ``y``. More than
            there are labels means all of them (fit then warns).
        rule: "average-k", "top-k", "conformal", "risk-control", "threshold", "pointwise-error" or another name of
            docs/rules.md.
        objective_options, rule_options: further options of the two, as dicts.
        scaling: "temperature", "vector" or "isotonic" calibrates the probabilities of ``predict_proba`` and of the rule
            on every other held-out row, and the rule on the rest (`shortlist.sets.fit_scaling`); ``predict`` and
            ``decision_function`` stay those of the model. None: probabilities are the model's.
        preprocess: "auto" standardises numbers, fills blanks, encodes the categories of a frame and counts the words of
            its texts (`shortlist.data.preprocessing.Preprocessor`); None takes the numbers as they are.
        solver: "lbfgs" fits a linear model to all rows at once, "adamw" trains in batches (a linear model of
            prepared columns by the optimizer "adamw-rows" of docs/config.md). "auto" is "lbfgs" for a linear model with
            a smooth loss that fits in memory, unless epochs, batch_size or lr is given.
        hidden: sizes of the hidden layers; () is a linear model. "auto" is one, too, unless "lbfgs" finds, for dense
            ``X``, that a hidden layer of similarities to (at most 500) training rows, a kernel method, or a mean of
            its scores and the linear model's does better on every one of the three folds.
        dropout: share of hidden units left out at random in training.
        epochs: of "adamw", passes over the data; "auto" chooses between a usual number (20, and up to 100 where 20
            make fewer than 1,000 steps) and a quarter of it.
        batch_size: of "adamw", examples per step; "auto" is a fiftieth of the data, between 8 and 256.
        lr: of "adamw", the learning rate at the start; it falls to zero along a cosine. "auto" chooses among three.
        weight_decay: of "lbfgs", what half the squared weights are multiplied by (scikit-learn's 1 / C); "auto" chooses
            it by three folds, and whether the weights are those of standardised columns or of columns on one common
            scale (as suits a network's features or principal components); for single labels, and for "binary", it also
            stretches the weights by the factor with the smallest held-out loss. Of "adamw", its decay; "auto" is 0.01.
        calibration: share of the data held out from training to calibrate the rule (at least 10 rows, or a quarter of
            tiny data); 0 calibrates on the training rows, which makes the sets of new data too small. "auto": with
            "lbfgs" the scores of the rows that a fold held out, and the final model learns from all rows; a tenth held
            out with "adamw", and for rules that promise something about new rows ("conformal", "risk-control",
            "average-k" with a ``confidence``), which needs rows that nothing else has seen. A rule
            that has nothing to learn ("top-k", "threshold", ...) holds nothing out for single labels.
        random_state: an int makes fit repeatable.

    Attributes:
        classes_: the labels; rule_: the fitted set rule; decision_: the threshold of ``predict`` for several labels;
        link_: what makes probabilities of scores;
        objective_, k_, solver_, weight_decay_ (of a mean of two models: that of similarities), lr_, epochs_, hidden_
        (sizes of the hidden layers): what was used;
        selection_: what was tried on held-out rows to choose it, of "lbfgs" on how many folds; preprocessor_: what
        became of the columns; history_: loss of every epoch; learner_: the PyTorch module.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SetClassifier(k=1.2, random_state=0).fit(X, y)
    >>> model.objective_, model.score(X, y) > 0.9
    ('cross-entropy', True)
    >>> model.predict_sets(X[[0, 70]]).to_lists()  # the first flower is clear, the other one is not
    [[0], [1, 2]]
    """

    k_: float
    _held: list[tuple[Any, Tensor]]  # the latest held-out rows of partial_fit
    _named: tuple[NDArray[Any], tuple[str, ...]] | None = None  # classes_, and their names
    _set_later: frozenset[str] = frozenset()  # parameters that ``set_params`` set, as searches do
    history_: list[dict[str, Any]]
    selection_: list[dict[str, Any]]
    preprocessor_: Preprocessor

    def __init__(
        self,
        objective: str = "auto",
        k: float | None = None,
        rule: str = "average-k",
        *,
        objective_options: dict[str, Any] | None = None,
        rule_options: dict[str, Any] | None = None,
        scaling: str | None = None,
        preprocess: str | None = "auto",
        solver: str = "auto",
        hidden: tuple[int, ...] | str = "auto",
        dropout: float = 0.0,
        epochs: int | str = "auto",
        batch_size: int | str = "auto",
        lr: float | str = "auto",
        weight_decay: float | str = "auto",
        calibration: float | str = "auto",
        random_state: Any = None,
    ) -> None:
        self.objective = objective
        self.k = k
        self.rule = rule
        self.objective_options = objective_options
        self.rule_options = rule_options
        self.scaling = scaling
        self.preprocess = preprocess
        self.solver = solver
        self.hidden = hidden
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.calibration = calibration
        self.random_state = random_state

    def set_params(self, **params: Any) -> Self:
        """As scikit-learn's: its searches call it, and what they try is kept in mind for ``score``."""
        super().set_params(**params)
        self._set_later |= params.keys()
        return self

    # ---- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train from the beginning and calibrate the rule.

        ``sample_weight``: one number of at least 0 per row. A row of weight 2 counts like two rows, where the columns
        are standardised, where the model is fitted and, with "lbfgs", where folds judge; a row of weight 0 is as if it
        were not there. Weights of less than 1 on average, such as those that sum to 1, are divided by their mean,
        unless a ``weight_decay`` is given. What is learnt of held-out rows (the set rule, the threshold of ``predict``,
        the choices of "adamw") and ``k=None`` count each row once.
        """
        weights = None
        if sample_weight is not None:
            weights = read_weights(sample_weight, _num_samples(X))
            warn_of_order(X, sample_weight, "sample_weight")
            if not weights.all() and y is not None:
                rows = weights.nonzero()[:, 0]
                check_consistent_length(X, y)
                X, y, weights = chosen_rows(X, rows), chosen_rows(y, rows), weights[rows]
        inputs, self.classes_, target = self._read(X, y, None, reset=True, weights=weights)
        self._start(inputs, target)
        warn_of_copies(inputs, target)
        if weights is not None and not OBJECTIVES.find(self.objective_).takes_weights:
            raise ShortlistError(
                f"objective {self.objective_!r} takes no sample_weight: use another one, or fit without"
            )
        target = self._known(target)
        train_rows, held_rows = self._hold_out(target)
        own = self._train_full_batch if self.solver_ == "lbfgs" else self._train_in_batches
        weights = None if weights is None else weights[train_rows]
        with own_torch():
            scores = own(take(inputs, train_rows), target[train_rows], weights)
            if len(held_rows) or scores is None:
                rows = held_rows if len(held_rows) else train_rows
                scores, target = self._scores_tensor(take(inputs, rows)), target[rows]
            self._calibrate(scores, target)
        return self

    def _train_full_batch(self, inputs: Any, target: Tensor, weights: Tensor | None) -> Tensor | None:
        """Choose the strength by folds and fit to all these rows; the rows' scores from when they were held out."""
        target = dense_labels(target)  # no larger than the scores, all of which are made here
        self._build(target)
        if weights is not None and self.weight_decay == "auto":
            weights = weights / weights.mean().clamp(max=1)  # that sum to 1, say: no counts, and lost beside any decay
        auto = self.weight_decay == "auto" and hasattr(self, "preprocessor_")
        single, compared = not self.is_multilabel_, 0
        if self.hidden == "auto" and isinstance(inputs, Tensor):
            compared = landmarks_for(len(inputs), inputs.shape[1], len(self.classes_), single)
        common = self.preprocessor_.common_scale() if auto else None
        fitted = choose_head(
            loss_of(self.learner_.objective), inputs, self._for_objective(target), self._names, self.weight_decay,
            scales=Scales(one=None if common is None else torch.from_numpy(common)), landmarks=compared,
            single=single, seed=self._seed, weights=weights,
        ).fit()  # fmt: skip
        if (layer := fitted.similarities) is not None:
            self._model |= {"hidden": [len(layer.landmarks)], "similarities": True, "with_columns": layer.with_columns}
            self._build(target)
            self.learner_.backbone.load_state_dict(layer.state_dict())
        head = {"head.weight": fitted.weights, "head.bias": fitted.biases}
        self.learner_.objective.load_state_dict({**self.learner_.objective.state_dict(), **head})
        self.weight_decay_, self.selection_ = fitted.weight_decay, fitted.tried
        self.history_.append(
            {"evaluations": fitted.evaluations, "weight_decay": fitted.weight_decay, "stretch": fitted.stretch}
        )
        return fitted.held_out_scores

    def _train_in_batches(self, inputs: Any, target: Tensor, weights: Tensor | None) -> None:
        """Choose learning rate and epochs on held-out rows, where they are left open, and train on all these rows."""
        choices = choices_of(self, len(target))
        if len(choices) > 1:
            data = inputs, target, weights
            choices, self.selection_ = choose_training(self._attempt, *data, self._names, choices, self._seed)
        self.lr_, self.epochs_ = choices[0]
        self._build(target)
        self._train(inputs, target, self.lr_, self.epochs_, "cosine", weights)

    def _attempt(
        self, inputs: Any, target: Tensor, weights: Tensor | None, held: Any, lr: float, epochs: int
    ) -> Tensor:
        """Scores of held-out rows by a model trained on the others."""
        self._build(target)
        self._train(inputs, target, lr, epochs, "cosine", weights)
        self.history_ = []
        return self._scores_tensor(held)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """One more pass, over these examples alone, at a constant learning rate.

        The first call needs ``classes``, all labels there will be, unless ``y`` is a label matrix; how columns are
        prepared is learnt from its rows alone (numbers that are all the same there are kept, for those that come). A
        share of every call is held out; the rule is calibrated anew on the latest of these rows (about 5,000). It
        trains in batches ("adamw") whatever the solver; lr="auto" is 0.005.
        """
        first = not self.__sklearn_is_fitted__()
        if first and classes is not None:
            classes = np.unique(np.asarray(classes))
        known = classes if first else self.classes_
        inputs, found, target = self._read(X, y, known, reset=first, more_to_come=True)
        if first:
            if classes is None and target.ndim == 1:
                raise ShortlistError(
                    "classes must be passed on the first call to partial_fit: all labels there will be"
                )
            self.classes_ = found
            self._start(inputs, target)
        elif classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ShortlistError(f"classes must be those of the first call, {self.classes_}, got {classes}")
        if OBJECTIVES.find(self._model["objective"]).training_only:
            raise ShortlistError(
                f"objective {self.objective_!r} remembers every training example and has no place for new ones: "
                f"use fit, or another objective"
            )
        target = self._known(target)
        train_rows, held_rows = self._hold_out(target, in_batches=True)
        rate = LR if self.lr == "auto" else self.lr
        with own_torch():
            if first:
                self._build(target[train_rows])
                if not self.hidden_ and self.objective_ in FULL_BATCH:  # from zero: few steps never undo chance
                    for weight in self.learner_.objective.parameters():
                        nn.init.zeros_(weight)
            self._train(take(inputs, train_rows), target[train_rows], rate, 1, "constant")
            self._held = latest([*self._held, (take(inputs, held_rows), target[held_rows])])
            if self._held:
                parts, targets = zip(*self._held, strict=True)
                self._calibrate(self._scores_tensor(joined(parts)), joined_targets(targets))
            else:
                self._calibrate(self._scores_tensor(inputs), target)
        return self

    def _read(
        self, X: Any, y: Any, classes: Any, reset: bool, weights: Tensor | None = None, more_to_come: bool = False
    ) -> tuple[Any, NDArray[Any], Tensor]:
        if reset:
            check_settings(self)
        if y is None:
            raise ShortlistError("SetClassifier requires y to be passed, but the target y is None")
        check_rows(X, y)
        inputs = features_of(self, X, reset, weights, more_to_come)
        found, target = read_target(y, classes)
        check_consistent_length(inputs, target)
        if reset:
            warn_of_unknown(found, target)
        if len(found) < 2:
            raise ShortlistError(f"SetClassifier needs at least 2 classes, y has one class or none: {found.tolist()}")
        return inputs, found, target

    def _start(self, inputs: Any, target: Tensor) -> None:
        """New weights and an unfitted rule; what settings mean for this data is checked, before anything takes time."""
        self.is_multilabel_ = target.ndim == 2
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.history_, self.selection_ = [], []
        self._held = []
        for fitted in ("learner_", "rule_", "link_", "decision_", "weight_decay_", "lr_", "epochs_"):
            self.__dict__.pop(fitted, None)
        chosen = usual_objective(target) if self.objective == "auto" else (self.objective, False)
        self.objective_, self._unknown_is_absent = chosen
        if self.objective == "auto" and is_one_hot(target):
            warnings.warn(
                "each row of y has exactly one label, and as a label matrix they are trained one by one: if they "
                "exclude each other, give one class per row (of a matrix y.argmax(1), of lists the name alone); "
                "objective='binary' says that this is meant",
                ShortlistWarning,
                stacklevel=3,
            )
        target = self._known(target)
        in_features = inputs.shape[1]
        num_labels = len(self.classes_)
        usual = max(round(cardinality(target), 2), 0.01) if self.is_multilabel_ else usual_k(num_labels)
        self.k_ = min(usual if self.k is None else self.k, num_labels)
        if self.k is not None and self.k_ == num_labels and self.rule in ("average-k", "top-k"):
            warnings.warn(
                f"k={self.k} with {num_labels} labels: every set will hold all of them; give a smaller k, or k=None",
                stacklevel=3,
            )
        if self.dropout and self.hidden in ("auto", (), []):
            warnings.warn(
                f"dropout={self.dropout} is of hidden layers, and there are none: give their sizes, hidden=(256,), or "
                "leave it out",
                ShortlistWarning,
                stacklevel=3,
            )
        kind = OBJECTIVES.find(self.objective_)
        self._model: dict[str, Any] = {
            "objective": self.objective_,
            "options": self._objective_options(kind, num_labels),
            "in_features": int(in_features),
            "num_labels": num_labels,
            "hidden": [] if self.hidden == "auto" else [int(size) for size in self.hidden],
            "dropout": float(self.dropout),
        }
        settings_of(self, len(target), *choices_of(self, len(target))[0], "constant", self._seed)  # checked
        rule = self._make_rule()
        if isinstance(rule, TopK) and self.k is not None and self.k_ % 1 and "k" not in (self.rule_options or {}):
            warnings.warn(
                f'k={self.k} with rule "top-k": every set will hold {rule.k}; give a whole k, or take "average-k"',
                ShortlistWarning,
                stacklevel=3,
            )
        if rule.needs:
            given = ", ".join(f"{name}=..." for name in rule.needs)
            raise ShortlistError(
                f"SetClassifier knows no {' and '.join(rule.needs)} of rows: fit the rule itself on held-out scores, "
                f"{rule!r}.fit(scores, y, {given})"
            )
        self.solver_ = self._choose_solver(inputs)

    def _known(self, target: Tensor) -> Tensor:
        return unknown_as_absent(target) if self._unknown_is_absent else target

    def _choose_solver(self, inputs: Any) -> str:
        if self.solver == "adamw":
            return "adamw"
        possible = not self.hidden_ and self.objective_ in FULL_BATCH
        if self.solver == "lbfgs":
            if not possible:
                raise ShortlistError(
                    f'solver "lbfgs" is for linear models (hidden=()) with an objective among {", ".join(FULL_BATCH)}: '
                    f"hidden is {self.hidden!r}, the objective {self.objective_!r}"
                )
            unused = [f"{name}={value!r}" for name in _STEPS if (value := getattr(self, name)) != "auto"]
            if unused:
                said = f'solver "lbfgs" fits to all rows at once and has no use for {", ".join(unused)}'
                warnings.warn(f'{said}: leave that out, or take "adamw"', ShortlistWarning, stacklevel=4)
            return "lbfgs"
        left_open = all(getattr(self, name) == "auto" for name in _STEPS)
        return "lbfgs" if possible and left_open and fits_full_batch(inputs, len(self.classes_)) else "adamw"

    def _build(self, train_target: Tensor) -> None:
        self.learner_ = new_learner(self._model, self._for_objective(train_target), self._seed)

    def _objective_options(self, kind: Any, num_labels: int) -> dict[str, Any]:
        options = dict(self.objective_options or {})
        fields = {field.name: field.type for field in dataclasses.fields(kind.Config)}
        if "k" in fields and "k" not in options:
            # all labels together are always right: an objective can learn from at most all but one
            options["k"] = max(1, min(round(self.k_) if fields["k"] is int else self.k_, num_labels - 1))
        return dataclasses.asdict(make_config(kind, options))

    def _make_rule(self) -> SetRule:
        options: dict[str, Any] = {**_RULE_OPTIONS.get(self.rule, {}), **(self.rule_options or {})}
        if self.rule in ("average-k", "top-k"):
            options.setdefault("k", self.k_ if self.rule == "average-k" else max(1, round(self.k_)))
        return make_rule("rule", Named.of(self.rule, **options), self._link, single=not self.is_multilabel_)

    def _for_objective(self, target: Tensor) -> Tensor:
        """Class indices as a label matrix, where the objective only takes these."""
        kind = OBJECTIVES.find(self._model["objective"])
        if target.ndim == 1 and "indices" not in kind.accepts:
            target = from_indices(target, len(self.classes_))
        check_target(kind, target)
        return target

    def _hold_out(self, target: Tensor, in_batches: bool = False) -> tuple[Tensor, Tensor]:
        """Which rows to train on, and which to calibrate on: a random share that leaves every label to train on."""
        count = len(target)
        everything = torch.arange(count)
        promises = self.rule in _PROMISING or "confidence" in (self.rule_options or {})
        by_folds = self.solver_ == "lbfgs" and not in_batches and not promises
        by_folds &= self.weight_decay == "auto" and count >= 2 * FOLDS
        share = (0.0 if by_folds else 0.1) if self.calibration == "auto" else float(self.calibration)
        held_count = max(round(share * count), min(_FEW, count // 4))
        nothing_to_learn = self._make_rule().is_fitted and (not self.is_multilabel_ or self.rule == "threshold")
        nothing_to_learn &= self.scaling is None
        if not in_batches and not nothing_to_learn:
            warn_of_single_rows(target, len(self.classes_))
        if share == 0 or held_count == 0 or nothing_to_learn:
            return everything, everything[:0]
        return held_out(target, held_count, self._names, self._seed)

    def _train(
        self, inputs: Any, target: Tensor, lr: Any, epochs: Any, schedule: str, weights: Tensor | None = None
    ) -> None:
        data = Dataset(inputs, self._for_objective(target), self._names)
        learner = self.learner_
        settings = settings_of(self, len(target), lr, epochs, schedule, self._seed + len(self.history_))
        learner.objective.row_weights = None if weights is None else weights / weights.mean()
        self.history_ += train(learner.backbone, learner.objective, data, None, settings).records
        learner.objective.row_weights = None
        self.weight_decay_ = settings.optimizer.weight_decay or 0.0
        learner.cpu().eval()

    def _calibrate(self, scores: Tensor, target: Tensor) -> None:
        rule = self._make_rule()
        # of single labels: sigmoid probabilities, given that exactly one label is present, are the softmax too
        self.link_: AnyLink = usual_link(single=not (self.is_multilabel_ and self._link == "sigmoid"))
        if self.scaling is not None:
            self.link_ = fit_scaling(self.scaling, scores[::2], target[::2], self.link_)  # type: ignore[arg-type]
        if self.scaling is not None and hasattr(rule, "link"):
            rule = fit_scaled(rule, self.scaling, scores.numpy(), target)
        elif not rule.is_fitted:
            rule.fit(scores.numpy(), target if rule.needs_target else None)
        if self.is_multilabel_:
            told = target if knows_absent(target) else unknown_as_absent(target)  # else: all labels, always
            self.decision_ = best_decision(link_tensor(scores, self._link), dense_labels(told))
        self.rule_ = rule

    @property
    def hidden_(self) -> tuple[int, ...]:
        """The sizes of the hidden layers that were used."""
        return tuple(self._model["hidden"])

    @property
    def _link(self) -> str:
        return OBJECTIVES.find(self._model["objective"]).link

    # ---- predicting

    def predict_sets(self, X: Any) -> LabelSets:
        """The set of labels of every example; ``.names`` has them by name. Very many scores are computed batch by
        batch, and never held together. A "conformal" set may be empty: no label is likely enough at this alpha (with a
        smaller one there are fewer such sets, and with ``rule_options={"score": "aps"}`` none)."""
        check_is_fitted(self)
        inputs = features_of(self, X, reset=False)
        large = 4 * inputs.shape[0] * len(self.classes_) > KEPT_BYTES
        scores = score_batches(self.learner_, self._as_data(inputs)) if large else self._scores_tensor(inputs)
        return self.rule_.predict(scores).named(self._names)

    def predict(self, X: Any) -> NDArray[Any]:
        """The most likely class of every example.

        With several labels, a matrix of 1 and 0: the labels above the threshold (``decision_``) that had the best
        micro-F1 on held-out rows; whether every row gets at least one label was decided there too. The sets of a
        "threshold" rule are given as they are. Sets of another size: ``predict_sets``.
        """
        check_is_fitted(self)
        if self.is_multilabel_ and self.rule == "threshold":
            return self.predict_sets(X).to_dense().astype(np.int64)
        if self.is_multilabel_:
            linked = link_tensor(torch.from_numpy(self._scores(X)), self._link)
            return self.decision_.of(linked).numpy().astype(np.int64)
        return self.classes_[self._scores(X).argmax(1)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities (N, L). For single labels each row sums to 1; with several, each label has its own (where the
        objective's scores are made for softmax, a row sums to 1 all the same)."""
        return link_rows(self._scores(X).astype(np.float64), self.link_)

    def decision_function(self, X: Any) -> NDArray[Any]:
        """With several labels, their scores (N, L). For single labels the log-odds of every class, (N, L), or of the
        second of two, (N,): unlike raw scores, these compare between rows as probabilities do."""
        scores = self._scores(X)
        if self.is_multilabel_:
            return scores
        odds = log_odds(torch.from_numpy(scores).double()).numpy()
        return odds[:, 1] if odds.shape[1] == 2 else odds

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of ``predict``; with several labels, how well each example's labels are ranked: the mean over
        examples of average precision, unknown labels left out. Neither sees the sets: to search for ``k`` or a
        ``rule``, give ``scoring=set_scorer()``."""
        check_is_fitted(self)
        unseen = self._set_later & {"k", "rule", "rule_options"} - self._model["options"].keys()
        if unseen:
            tried = " and ".join(sorted(unseen))
            warnings.warn(
                f"score does not see the sets, which {tried} changed: a search over {tried} needs "
                "scoring=shortlist.estimators.set_scorer()",
                ShortlistWarning,
                stacklevel=2,
            )
        if not self.is_multilabel_:
            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        if sample_weight is not None:
            raise ShortlistError("score with several labels per example takes no sample_weight")
        target = read_target(y, self.classes_)[1]
        return float(mean_average_precision(torch.from_numpy(self._scores(X)), target, average="sample"))

    def _scores(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return self._scores_tensor(features_of(self, X, reset=False)).numpy()

    def _scores_tensor(self, inputs: Any) -> Tensor:
        if isinstance(inputs, Tensor) and len(inputs) <= _SMALL and not self.learner_.training:
            with torch.no_grad():
                return self.learner_.scores(inputs)
        return score(self.learner_, self._as_data(inputs))

    def _as_data(self, inputs: Any) -> Dataset:
        return Dataset(inputs, torch.full((inputs.shape[0],), -1), self._names)

    @property
    def _names(self) -> tuple[str, ...]:
        if self._named is None or self._named[0] is not self.classes_:
            names = tuple(map(str, self.classes_.tolist()))
            self._named = self.classes_, check_vocabulary(names, len(names)) or ()
        return self._named[1]

    # ---- to a file and back

    def save(self, path: PathLike) -> None:
        """Write one safetensors file with the weights, and everything else as JSON in its header.

        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
        >>> model = SetClassifier(epochs=1).fit(np.eye(8), list("abababab"))
        >>> model.save(path)
        >>> SetClassifier.load(path).predict_sets(np.eye(8)) == model.predict_sets(np.eye(8))
        True
        """
        check_is_fitted(self)
        files.write(path, self)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """The classifier that ``save`` wrote. Runs no code from the file; a damaged one is refused by its checksum
        (files of earlier versions have none), as is one whose stated sizes are not those of its weights."""
        return files.read(path, cls)

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: the weights travel alone, without what training remembered and without the memory
        that its tensors share."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "learner_" in state:
            state["learner_"] = self.learner_.weights()
        state.pop("_named", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "learner_" in state:
            self.learner_ = new_learner(self._model)
            self.learner_.load_state_dict(state["learner_"])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rule_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.preprocess == "auto"
        known = OBJECTIVES.get(self.objective)
        several = known is not None and "label-matrix" in known.accepts and not known.one_positive
        tags.classifier_tags.multi_label = several or self.objective == "auto"
        return tags
