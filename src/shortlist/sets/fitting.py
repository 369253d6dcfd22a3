"""Rules fitted on scores in many places: each place learns from its rows, and what was learned is merged."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from shortlist.options import errors_at
from shortlist.sets._blocks import BLOCK, Block, split_rows
from shortlist.sets._rule import Look, SetRule


@runtime_checkable
class Elsewhere(Protocol):
    """Scores that are not here: it fits rules where they are."""

    def fit(self, fitting: "Fitting") -> None: ...


class Fitting:
    """Rules that learn together from some rows. Copies of it see other rows, and are merged in the order of the rows;
    then ``finish`` it, and take every one of its ``looks`` over all rows.

    >>> import torch
    >>> from shortlist.sets import AverageK
    >>> scores = torch.randn(20, 5)
    >>> parts = [Fitting([AverageK(2)]), Fitting([AverageK(2)])]
    >>> for fitting, rows in zip(parts, scores.split(10), strict=True):
    ...     fitting.see(rows, None)
    >>> parts[0].merge(parts[1])
    >>> parts[0].finish()
    >>> for look in parts[0].looks():
    ...     look.see(scores, None)
    >>> parts[0].rules[0].threshold == AverageK(2).fit(scores).threshold
    True
    """

    def __init__(self, rules: Sequence[SetRule], needs: Sequence[str] = (), places: Sequence[str] = ()) -> None:
        self.rules, self.needs = list(rules), tuple(needs)
        self.places = list(places) or [type(rule).__name__ for rule in rules]
        for rule in self.rules:
            rule._forget()

    def see(self, scores: Any, target: Any, rows: dict[str, Any] | None = None, first_row: int = 0) -> None:
        """Learn from some rows, of which the first is the ``first_row``-th of all."""
        size = min((rule.block_size for rule in self.rules), default=BLOCK)
        learns = any(rule.needs_target for rule in self.rules)
        host = not all(rule._is_ours for rule in self.rules)
        for block in _blocks(scores, target if learns else None, rows, self.needs, first_row, size, host):
            for rule, place in zip(self.rules, self.places, strict=True):
                with errors_at(place):
                    rule._take_in(block)

    def merge(self, other: "Fitting") -> None:
        for mine, theirs in zip(self.rules, other.rules, strict=True):
            if theirs.num_labels is not None:
                mine.num_labels = theirs.num_labels
                mine._note_type(theirs)
                mine.absorb(theirs)

    def finish(self) -> None:
        for rule, place in zip(self.rules, self.places, strict=True):
            with errors_at(place):
                rule._conclude()
                rule._check_fitted()
                rule.refine(iter(()))  # nothing to pass over here; it warns of what concerns it

    def looks(self) -> Iterator["Looking"]:
        """The further passes that the rules gain from; each is to have seen every row before the next is asked for."""
        for rule, place in zip(self.rules, self.places, strict=True):
            with errors_at(place):
                for look in rule.looks():
                    yield Looking(look, self.needs, rule.block_size, not rule._is_ours)


class Looking:
    """One further look over all rows."""

    def __init__(self, look: Look, needs: Sequence[str], size: int, host: bool = False) -> None:
        self.look, self.needs, self.size, self.host = look, tuple(needs), size, host

    def see(self, scores: Any, target: Any, rows: dict[str, Any] | None = None, first_row: int = 0) -> None:
        for block in _blocks(scores, None, rows, self.needs, first_row, self.size, self.host):
            self.look.see(block)

    def merge(self, other: "Looking") -> None:
        self.look.merge(other.look)


def _blocks(
    scores: Any, target: Any, rows: dict[str, Any] | None, needs: Sequence[str], first_row: int, size: int, host: bool
) -> Iterator[Block]:
    own = {name: (rows or {}).get(name) for name in needs}
    return split_rows(scores, target, first_row, size, **own, host=host)
