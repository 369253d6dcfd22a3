"""What Ray's workers do, done in this process: tests of what is found need no cluster, whose processes take seconds."""

import pickle
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import pytest

from shortlist.runs import ray_engine
from shortlist.runs.ray_engine import Passes
from shortlist.runs.ray_work import Worker, merge_states
from shortlist.runs.shards import Shard
from shortlist.training import learner

BATCH_SCORES = 256  # so few that little data has many batches, here and in the one process that is compared


def without_a_cluster(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Two workers in turn, sent what Ray would send them, whose states are merged two at a time. The number of shards
    of each pass is noted in what is returned."""
    noted: list[int] = []

    def states(
        self: Passes, shards: Sequence[Shard], workers: int, work: bytes, counter: Any
    ) -> Iterator[dict[str, bytes]]:
        noted.append(len(shards))
        sent = pickle.dumps((self.source, work, dict(self.facts)))
        both = [Worker(*pickle.loads(sent)), Worker(*pickle.loads(sent))]
        groups = [shards[:1], shards[1:3], *([shard] for shard in shards[3:])]  # some taken together
        found = []
        for number, group in enumerate(group for group in groups if group):
            found += both[number % 2]({"shards": [pickle.dumps(group)]})["state"]
        while len(found) > 2:
            pairs = [[pickle.loads(state) for state in found[at : at + 2]] for at in range(0, len(found), 2)]
            found = [pickle.dumps(merge_states(pair)) for pair in pairs]
        return iter([{"state": state} for state in found])

    monkeypatch.setattr(Passes, "_states", states)
    monkeypatch.setattr(Passes, "_workers", lambda self, ray: 2)
    monkeypatch.setattr(ray_engine, "connected", lambda engine: nullcontext())
    monkeypatch.setattr(learner, "BATCH_SCORES", BATCH_SCORES)
    return noted
