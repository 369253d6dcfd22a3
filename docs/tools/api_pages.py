"""The API reference: a page for each public room, listing its public names for mkdocstrings to describe."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec

# room -> what is said above its names
ROOMS = {
    "functional": "Losses and layers as functions: scores first, target second, options by keyword.",
    "nn": "The same as modules, with the heads and the two losses that remember training examples.",
    "labels": "The label matrix, converters into it, and the sets of labels that rules return.",
    "sets": "Rules that turn scores into sets of labels.",
    "metrics": "torchmetrics classes; each has a function in `shortlist.metrics.functional`.",
    "metrics.functional": "Metrics as functions: scores or `LabelSets` first, target second.",
    "objectives": "From features to scores and a training loss, by name. The [table of objectives](../objectives.md) "
    "lists every name with its options.",
    "imcl": "Similarity memory for partial labels.",
    "scenes": "Scene graphs.",
    "estimators": "The scikit-learn estimator.",
    "loops": "For the training loops of Lightning and of Hugging Face.",
    "runs": "What the commands do, from Python: each function returns what its command prints as JSON.",
    "runs.predictor": "A trained model in a program: what `sl.load_run` and `sl.calibrate` return.",
    "runs.any_model": "Sets of any model's scores: `sl.calibrate`.",
    "runs.config": "What a run is: the typed config behind `shortlist train`.",
    "training.optimizers": "The optimizers, and which weights they decay.",
    "training.schedules": "How the learning rate changes.",
    "training.settings": "What the training loop reads from the config, with the learning rate of each optimizer.",
    "runs.setup": "From a config to data, backbone and objective.",
    "training.features_cache": "The features of a backbone, kept on disk.",
    "training.learner": "A backbone and its objective as one module.",
    "training.loop": "The training loop.",
    "data": "Readers of real formats, corruptions, splits.",
    "models": "Backbones: inputs to feature vectors.",
    "reports": "The HTML report.",
    "kernels": "Which kernels are in use.",
}


@cache
def api_pages() -> dict[str, str]:
    """path -> text, for every room that there is."""
    return {f"api/{room}.md": _page(room, above) for room, above in ROOMS.items() if _names(room)}


@cache
def _names(room: str) -> list[str]:
    """The public names of a room: its ``__all__``, or what is defined in it."""
    if find_spec(f"shortlist.{room}") is None:
        return []
    module = import_module(f"shortlist.{room}")
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if name != "functional"]
    own = [name for name, thing in vars(module).items() if getattr(thing, "__module__", None) == module.__name__]
    return [name for name in own if not name.startswith("_") and (getattr(module, name).__doc__ or "").strip()]


def _page(room: str, above: str) -> str:
    blocks = [f"::: {_place(room, name)}\n{_inherited(room, name)}" for name in sorted(_names(room), key=str.lower)]
    return f"# shortlist.{room}\n\n{above}\n\n" + "\n".join(blocks)


def _inherited(room: str, name: str) -> str:
    """What a class has from a base class that no page describes, such as the files of LabelSets."""
    thing = getattr(import_module(f"shortlist.{room}"), name)
    bases = [base for base in getattr(thing, "__mro__", ())[1:] if base.__module__.startswith("shortlist.labels")]
    members = [member for base in bases for member in vars(base) if not member.startswith("_")]
    return f"    options:\n      inherited_members: [{', '.join(members)}]\n" if members else ""


def _place(room: str, name: str) -> str:
    """Where mkdocstrings finds it: a vertical room brings it, or a function may have the name of the file it is in."""
    home = str(getattr(getattr(import_module(f"shortlist.{room}"), name), "__module__", ""))
    if room != "scenes" and home.startswith("shortlist.scenes."):
        return f"{home}.{name}"
    place = f"shortlist.{room}.{name}"
    package = find_spec(f"shortlist.{room}")
    is_file = package is not None and package.submodule_search_locations is not None and find_spec(place) is not None
    return f"{place}.{name}" if is_file else place
