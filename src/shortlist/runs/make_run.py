"""From a config to a trained and calibrated run, in one call: for whoever makes several."""

from collections.abc import Mapping

from shortlist.data import Dataset
from shortlist.errors import ShortlistError
from shortlist.files import PathLike
from shortlist.runs.config import RunConfig
from shortlist.runs.run import Run
from shortlist.runs.setup import build_learner, facts_of, read_parts, resolve
from shortlist.sets.named import fit_rules, usual_rules
from shortlist.training.learner import score
from shortlist.training.loop import Progress, train


def make_run(
    config: RunConfig, path: PathLike, *, parts: Mapping[str, Dataset] | None = None, progress: Progress | None = None
) -> Run:
    """Train as the config says and fit its rules (the usual ones where it names none) on the calibration data, or on
    the validation data where there is no other. ``parts`` are the config's data where they are already read.

    >>> import tempfile
    >>> from shortlist.runs.config import parse_config
    >>> data = "data: {train: {reader: ambiguous-numbers, size: 200}, test: {reader: ambiguous-numbers, size: 50}}"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = make_run(parse_config(data, ["epochs=1"]), f"{folder}/first")
    ...     len(run.records()), list(run.rules())
    (1, ['average-k-5', 'conformal-0.1', 'top-k-5'])
    """
    config = resolve(config)
    parts = read_parts(config) if parts is None else parts
    held_out = parts.get("calibration", parts.get("validation"))
    if held_out is None:
        raise ShortlistError("rules are fitted on held-out data: set data.calibration or data.validation")
    facts = facts_of(parts["train"])
    learner = build_learner(config, facts, train_set=parts["train"])
    run = Run.create(path, config, facts)
    train(
        learner.backbone,
        learner.objective,
        parts["train"],
        parts.get("validation"),
        config,
        run=run,
        progress=progress,
    )
    if held_out.kind == "scenes":
        return run  # answered with the k best relations: no rule to fit
    link = learner.objective.link
    k = config.objective.options.get("k")
    rules = list(config.rules) or usual_rules(held_out.target, held_out.num_labels, k, link)
    run.save_rules(fit_rules(rules, score(learner, held_out), held_out.target, link))
    return run
