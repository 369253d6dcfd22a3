"""Recipes: the papers' experiments, one command each: ``shortlist recipe NAME [--scale smoke|cpu|pixels|paper]``.

How to write one
----------------
A recipe is one file in this folder that ends in ``RECIPE = Recipe(...)``, and one line in pyproject.toml, under the
entry points ``shortlist.recipes``, where another package adds its own. The first line of the file's docstring is what
``shortlist recipe --list`` says about it. A `Recipe` says:

``cells(scale, data)``
    The grid, in the order in which it is shown, and run where ``rank`` says nothing else. ``data`` is the data folder
    (``--data``, else ``$SHORTLIST_SHARED/data``, else ``../shared/data``). A cell has ``keys``, what tells it from the
    others in tables (by convention the last key is ``seed``), and is one of

    - `TrainCell(keys, config, measure)`: train as a `RunConfig` says; ``measure(trained)`` gives the numbers from the
      best validation epoch: ``trained.scores("test")``, ``.parts``, ``.learner``, ``.history``;
    - `FunctionCell(keys, function, options)`: any other work; ``function(**options)`` gives the numbers. It may call
      `train_model(config)` and `parts_of(config)` itself. With ``resumable=True`` it also gets ``folder=``: a directory
      to resume in at pixels and paper scale (pass it on to `train_model`), None otherwise.

    Numbers are a flat dict of floats, and lists of floats for small curves. ``measure`` and ``function`` are named
    functions of the module; change their name when they compute something else, so that old results do not count.
``tables``
    `Table`s: which numbers, grouped by which keys, beside which published figures; the rest of the keys (the seeds) is
    averaged. Published figures are written in the recipe, with the number of the paper's table, in the table's units.
``findings(results)``
    Sentences computed from the results: does what the paper claims hold here? They must be able to say no.
``figures(results)``
    `Drawing`s, made with `shortlist_recipes.figures`.
``protocols``
    `Protocol`s, in a file of their own in ``protocols``: what was published field by field, with its source, and what
    ours does at each scale. A test compares the configs of paper scale with them.
``needs``, ``claim``, ``differences``
    Which files under the data folder, what the paper says, and what else is to be known of a scale.

A page can be made of some of the cells, too (``--cells``): findings, overview and figures must do without the others.

Sources are read once per process and parts are kept for the cells that follow with the same data and seed, so order the
grid by data first. At smoke scale use the embedded data (reader ``ambiguous-numbers``): seconds, and no files needed.
`noisy_cifar100` is a good one to copy from. Test a recipe with ``tests/recipes/smoke.py``.
After a run at cpu scale, ``python docs/tools/recipes.py DIR`` puts its page, figures and table.json into the docs.
"""
