"""Where calibrate, predict and evaluate get scores from: a run and some data, or files of any other model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from shortlist.data import Dataset
from shortlist.data.dataset import default_names
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.labels import LabelSets
from shortlist.labels.counts import LabelCounts
from shortlist.links import check_link, usual_link
from shortlist.metrics.functional import label_propensities
from shortlist.named import Named
from shortlist.runs.find_data import find_data
from shortlist.runs.predictor import Predictor
from shortlist.runs.results import results_of
from shortlist.runs.run import Run, open_run
from shortlist.runs.scores import read_labels, read_scores, read_truth
from shortlist.runs.shards import CutTable
from shortlist.sets import SetRule
from shortlist.sets.rule_files import given_rules
from shortlist.tasks import Task
from shortlist.training.scored import Scored

Cut = Callable[[Run, Any, Sequence[str], bool], CutTable | None]


@dataclass(frozen=True)
class Given:
    """Scores and what is known about them; target, truth and ids are of all rows, those that turn out to be broken
    images included: `shortlist.training.scored.pick` finds those of a batch."""

    scored: Scored
    target: Any  # Tensor | SparseLabels | None; of a table that is read elsewhere LabelCounts
    link: str
    name: str  # of the data
    predictor: Predictor
    objective: str | None = None
    k: float | None = None  # the objective's
    truth: LabelSets | NDArray[Any] | None = None  # all right labels, or votes
    ids: tuple[str, ...] | None = None
    dataset: Dataset | None = None  # that they are of
    rules: list[Named] = field(default_factory=list)  # that the config asks for
    fitted: dict[str, SetRule] = field(default_factory=dict)
    run: Run | None = None  # that they are of
    table: CutTable | None = None  # where workers read the data: ``dataset`` is only a sample of it, and so are others

    def readable(self) -> Dataset | None:
        """After a pass over the scores: the data set without the images that turned out to be broken."""
        return None if self.dataset is None else self.dataset.without_broken()

    @property
    def skipped(self) -> Mapping[str, str]:
        """After a pass over the scores: the images that cannot be decoded, id -> reason."""
        data = self.readable()
        return {} if data is None else data.skipped

    @property
    def propensities(self) -> Any:
        """Of the labels, from the run's training data."""
        if self.run is None:
            return None
        return label_propensities(self.run.facts["class_counts"], self.run.facts["num_examples"])

    @property
    def task(self) -> Task | None:
        return None if self.run is None else self.run.task

    def results(self, target: Any, rules: Mapping[str, SetRule], passes: Any, **more: Any) -> dict[str, Any]:
        """What `results_of` tells of sets by these rules, by the passes of an engine where there is one."""
        over = None if passes is None else passes.judge
        known = {"truth": self.truth, "k": self.k, "propensities": self.propensities}
        known["label_names"] = self.predictor.label_names
        return results_of(self.scored, target, self.link, rules, over=over, **known, **more)


@dataclass(frozen=True)
class ScoreFiles:
    """The files of any other model, and its link; without ``scores``, a run is asked."""

    scores: PathLike | None
    labels: PathLike | None = None
    truth: PathLike | None = None
    link: str | None = None

    def check(self, run: Run | PathLike | None) -> None:
        if (run is None) == (self.scores is None):
            raise ShortlistError("give either a run directory, or --scores FILE of another model")
        own = {
            "labels": "the data of a run has its own labels",
            "truth": "the data of a run has its own truth (truth_key of a reader)",
            "link": "the objective of a run has its own link",
        }
        for option, why in own.items():
            if run is not None and getattr(self, option) is not None:
                raise ShortlistError(f"--{option} goes with --scores: {why}")
        if self.link is not None:
            check_link(self.link, "--link")


def scores_for_calibration(
    run: Run | PathLike | None, data: Dataset | str | None, files: ScoreFiles, allow: Sequence[str], cut: Cut
) -> Given:
    """Held-out scores: of the run's calibration data, else of its validation data, where no other is named. ``cut``
    finds the tables that are not read here."""
    files.check(run)
    if files.scores is not None:
        return _from_files(files, {})
    assert run is not None, "or there would be scores"
    opened = open_run(run, allow)
    if opened.task is not None:
        raise ShortlistError(opened.task.calibration)
    if data is None:
        has = opened.config.data
        data = "calibration" if has.calibration is not None else "validation"
        if getattr(has, data) is None:
            raise ShortlistError("the run has neither calibration nor validation data: name a --part, or use --scores")
    table = cut(opened, data, (), True)
    return _from_run(opened, *find_data(opened, data)) if table is None else _from_table(opened, table)


def scores_for_prediction(
    run: Run | PathLike | None,
    data: Dataset | PathLike | None,
    overrides: Sequence[str],
    files: ScoreFiles,
    rules: PathLike | None,
    allow: Sequence[str],
    cut: Cut,
    labelled: bool = True,
) -> Given:
    """The scores to make sets of, with the fitted rules. ``cut`` finds the tables that are not read here."""
    files.check(run)
    if files.scores is not None:
        if labelled and files.labels is None:
            raise ShortlistError("--scores are evaluated against --labels: give both")
        return _from_files(files, given_rules(rules, allow) if rules is not None else {})
    if rules is not None:
        raise ShortlistError("--rules goes with --scores: a run has its own rules")
    if data is None:
        raise ShortlistError("give the DATA: a part of the run such as test, or the path of a file or folder")
    assert run is not None, "or there would be scores"
    opened = open_run(run, allow)
    table = cut(opened, data, overrides, labelled)
    if table is not None:
        return _from_table(opened, table)
    return _from_run(opened, *find_data(opened, data, overrides, labelled, broken={}))


def _from_table(run: Run, table: CutTable) -> Given:
    """A table that is read elsewhere: its first rows show what it is like."""
    found = _from_run(run, table.sample(run), table.how.name)
    scored = Scored(_elsewhere, table.rows, found.scored.num_labels)
    return replace(found, scored=scored, target=LabelCounts(found.target.ndim), ids=None, table=table)


def _elsewhere() -> Any:
    raise AssertionError("these scores are not computed here")


def _from_run(run: Run, dataset: Dataset, name: str) -> Given:
    predictor = run.predictor()
    return Given(
        scored=predictor.scored(run.preprocessed(dataset)),
        target=dataset.target,
        link=predictor.link,
        predictor=predictor,
        name=name,
        objective=run.config.objective.name,
        k=run.config.objective.options.get("k"),
        truth=dataset.truth,
        ids=dataset.ids,
        dataset=dataset,
        rules=list(run.config.rules),
        fitted=predictor.rules,
        run=run,
    )


def _from_files(files: ScoreFiles, fitted: dict[str, SetRule]) -> Given:
    assert files.scores is not None, "or a run was asked"
    values = read_scores(files.scores)
    target = read_labels(files.labels, values) if files.labels is not None else None
    single = target is None or target.ndim == 1
    link = check_link(usual_link(single) if files.link is None else files.link)
    predictor = Predictor(None, default_names(values.shape[1]), link=link, single=single, rules=fitted)
    known = None if files.truth is None else read_truth(files.truth, values)
    return Given(Scored.of(values), target, link, Path(files.scores).stem, predictor, fitted=fitted, truth=known)
