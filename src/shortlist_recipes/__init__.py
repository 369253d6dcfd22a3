"""Recipes: the papers' experiments, one command each: ``shortlist recipe NAME [--scale smoke|cpu|paper]``.

How to write one
----------------
A recipe is one file in this folder that ends in ``RECIPE = Recipe(...)``, and one line in `RECIPES` below. The file's
name is the recipe's with ``_`` for ``-``. Another package adds its own: it lists a module with `RECIPES` and `load`
under the entry point group ``shortlist.recipes``, as this one does in pyproject.toml. A `Recipe` says:

``cells(scale, data)``
    The grid, in the order in which it is run. ``data`` is the data folder (``--data``, else ``$SHORTLIST_SHARED/data``,
    else ``../shared/data``). A cell has ``keys``, what tells it from the others in tables (by convention the last key
    is ``seed``), and is one of

    - `TrainCell(keys, config, measure)`: train as a `RunConfig` says; ``measure(trained)`` gives the numbers from the
      best validation epoch: ``trained.scores("test")``, ``.parts``, ``.learner``, ``.history``;
    - `FunctionCell(keys, function, options)`: any other work; ``function(**options)`` gives the numbers. It may call
      `train_model(config)` and `parts_of(config)` itself. With ``resumable=True`` it also gets ``folder=``: a directory
      to resume in at paper scale (pass it on to `train_model`), None otherwise.

    Numbers are a flat dict of floats, and lists of floats for small curves. ``measure`` and ``function`` are named
    functions of the module; change their name when they compute something else, so that old results do not count.
``tables``
    `Table`s: which numbers, grouped by which keys, beside which published figures; the rest of the keys (the seeds) is
    averaged. Published figures are written in the recipe, with the number of the paper's table, in the table's units.
``findings(results)``
    Sentences computed from the results: does what the paper claims hold here? They must be able to say no.
``figures(results)``
    `Drawing`s, made with `shortlist_recipes.figures`.
``needs``, ``claim``, ``differences``
    Which files under the data folder, what the paper says, and how the protocol at each scale differs from the paper.

Sources are read once per process and parts are kept for the cells that follow with the same data and seed, so order the
grid by data first. At smoke scale use the embedded data (reader ``ambiguous-numbers``): seconds, and no files needed.
`noisy_cifar100` is a good one to copy from. Test a recipe with ``tests/recipes/smoke.py``.
After a run at cpu scale, ``python docs/tools/recipes.py DIR`` puts its page, figures and table.json into the docs.

>>> load("noisy-cifar100").name
'noisy-cifar100'
>>> load("noisy-cifar10")
Traceback (most recent call last):
shortlist.ShortlistError: there is no recipe 'noisy-cifar10'; did you mean 'noisy-cifar100'?; there are ...
"""

from importlib import import_module
from typing import TYPE_CHECKING

from shortlist.errors import ShortlistError, nearest

if TYPE_CHECKING:
    from shortlist_recipes.recipe import Recipe

# name -> what it is about, in the order of the documentation
RECIPES = {
    "noisy-cifar100": "Top-k losses under label noise within coarse classes (smooth top-k table 1, LML figure 4).",
    "small-data": "Cross-entropy and smooth top-k on 5 to 100 % of the data, and several crops (its table 2).",
    "temperature": "The smooth top-k loss from tau 0 to 100, with and without a margin (smooth top-k tables 6-8).",
    "top-k-timing": "Time and stability of the top-k losses beside the published algorithms (smooth top-k tables 3-5).",
    "average-k": "Losses for sets of K labels on average, balanced and long-tailed (average-K tables 1-2).",
    "two-way": "Multi-label losses by mean average precision; temperature against margin (two-way tables B and C).",
    "partial-labels": "Learning when up to 90 % of the labels are missing: IMCL and others (IMCL tables 1-2).",
    "linear-evaluation": "Features trained with each loss, judged by linear classifiers on other classes (section B).",
    "scene-graphs": "Predicting k relations per image: LML and truncated entropy (LML tables 1-2, figures 5-6).",
}


def load(name: str) -> "Recipe":
    """The recipe of this name; its file is imported now and not before."""
    if name not in RECIPES:
        raise ShortlistError(f"there is no recipe {name!r}{nearest(name, RECIPES)}; there are {', '.join(RECIPES)}")
    found: Recipe = import_module(f"shortlist_recipes.{name.replace('-', '_')}").RECIPE
    return found
