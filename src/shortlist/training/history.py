"""What happened in training, epoch by epoch: which epoch was best, and whether it is time to stop."""

import math
from dataclasses import dataclass, field
from typing import Any

Record = dict[str, Any]


@dataclass
class History:
    """What happened: one record per epoch (counted from 1), and which epoch was best by which metric."""

    metric: str | None = None  # None without validation data: then the last epoch is the one to use
    records: list[Record] = field(default_factory=list)
    best_epoch: int | None = None

    @property
    def best(self) -> Record | None:
        """The record of the epoch whose weights are used."""
        return self.records[-1 if self.best_epoch is None else self.best_epoch - 1] if self.records else None

    def values(self) -> list[float]:
        """The watched metric of every epoch."""
        return [] if self.metric is None else [record[self.metric] for record in self.records]

    def add(self, record: Record) -> bool:
        """Add an epoch's record; whether it is the best so far."""
        self.records.append(record)
        if self.metric is None:
            return True
        if self.best_epoch is not None:
            best = self.records[self.best_epoch - 1][self.metric]
            if not (record[self.metric] > best or math.isnan(best)):  # NaN (nothing observed) is never better
                return False
        self.best_epoch = record["epoch"]
        return True

    def is_over(self, epochs: int, patience: int | None) -> bool:
        """Whether training has come to its end: all epochs done, or none better for ``patience`` epochs."""
        done = len(self.records)
        waited = done - self.best_epoch if self.best_epoch is not None else 0
        return done >= epochs or (patience is not None and waited >= patience)
