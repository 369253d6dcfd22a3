"""From a config to a trained, calibrated run, in the order things happen:

- ``config``: what a run is, from YAML and ``key=value`` overrides
- ``setup``: the config's data, backbone and objective
- ``run``: the run directory; everything in it is written whole or not at all
- ``make_run``: trained and calibrated in one call
- ``given``, ``predict``, ``scores``: the scores of a run or of any other model
- ``evaluate``, ``comparison``, ``report_data``: results, of one run or of several side by side
"""
