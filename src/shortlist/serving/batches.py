"""Requests that wait together go through the model together.

While the model is busy, requests queue; when it is free it takes all that wait, up to a number of rows. Nothing waits
for company: a request that finds the model free is answered at once.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

Score = Callable[[Tensor], Tensor]


class OverloadedError(Exception):
    """More rows wait than the limit allows."""


class Batches:
    """``score``: prepared inputs -> scores. It runs in one thread of its own, one batch at a time."""

    def __init__(
        self, score: Score, most_rows: int, waiting: int, seen: Callable[[int], None] = lambda rows: None
    ) -> None:
        self._score, self._most, self._limit, self._seen = score, most_rows, waiting, seen
        self._waiting: deque[tuple[Tensor, asyncio.Future[Tensor]]] = deque()
        self._thread = ThreadPoolExecutor(1, "shortlist-model")
        self._busy = False

    @property
    def rows_waiting(self) -> int:
        return sum(len(inputs) for inputs, _ in self._waiting)

    async def scores(self, inputs: Tensor) -> Tensor:
        """The scores of these rows, once it is their turn."""
        if self._waiting and self.rows_waiting + len(inputs) > self._limit:
            raise OverloadedError(f"more than {self._limit} rows wait already: try again in a moment")
        answer: asyncio.Future[Tensor] = asyncio.get_running_loop().create_future()
        self._waiting.append((inputs, answer))
        self._start()
        return await answer

    def _start(self) -> None:
        """Give the model what waits, unless it is busy: inputs of one shape, in the order in which they came."""
        while self._waiting and self._waiting[0][1].done():
            self._waiting.popleft()  # whoever asked has gone
        if self._busy or not self._waiting:
            return
        taken = [self._waiting.popleft()]
        rows = len(taken[0][0])
        while self._waiting and self._fits(taken[0][0], rows):
            taken.append(self._waiting.popleft())
            rows += len(taken[-1][0])
        self._busy = True
        self._seen(rows)
        running = asyncio.get_running_loop().run_in_executor(self._thread, self._scored, [one for one, _ in taken])
        running.add_done_callback(lambda done: self._finish(taken, done))

    def _fits(self, first: Tensor, rows: int) -> bool:
        after = self._waiting[0][0]
        return after.shape[1:] == first.shape[1:] and rows + len(after) <= self._most

    def _scored(self, inputs: list[Tensor]) -> list[Tensor]:
        if len(inputs) == 1:
            return [self._score(inputs[0])]
        return list(self._score(_together(inputs)).split([len(one) for one in inputs]))

    def _finish(self, taken: list[tuple[Tensor, asyncio.Future[Tensor]]], done: asyncio.Future[list[Tensor]]) -> None:
        self._busy = False
        error = done.exception()
        for place, (_, answer) in enumerate(taken):
            if answer.done():  # its time was up
                continue
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(done.result()[place])
        self._start()

    def close(self) -> None:
        self._thread.shutdown(wait=True)


def _together(inputs: list[Tensor]) -> Tensor:
    """All rows in one tensor: a sparse one where some are, as of texts of few words."""
    if not any(one.is_sparse for one in inputs):
        return torch.cat(inputs)
    return torch.cat([one if one.is_sparse else one.to_sparse() for one in inputs]).coalesce()
