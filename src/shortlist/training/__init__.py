"""From a config to a trained, calibrated run, in the order things happen:

- ``config``: what a run is, from YAML and ``key=value`` overrides; ``settings`` is the part the loop reads
- ``setup``: the config's data, backbone and objective
- ``loop``: the one training loop, on Lightning Fabric; ``learner``, ``optimizers`` and ``monitors`` are its parts
- ``run``: the run directory; everything in it is written whole or not at all
- ``predict``, ``rules``, ``evaluate``: scores, fitted set rules and results, of a run or of any other model's scores
"""
