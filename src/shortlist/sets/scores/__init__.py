"""Nonconformity scores: how ill a label suits its row, one score per file. ``Conformal`` turns them into sets."""

from shortlist.checks import check_choice
from shortlist.sets.scores.aps import Aps
from shortlist.sets.scores.base import RankScore, Score, ValueScore
from shortlist.sets.scores.lac import Lac
from shortlist.sets.scores.margin import Margin
from shortlist.sets.scores.raps import Raps
from shortlist.sets.scores.saps import Saps
from shortlist.sets.scores.top_k import TopKScore

__all__ = ["SCORES", "RankScore", "Score", "ValueScore", "make_score"]

SCORES: dict[str, type[Score]] = {
    "lac": Lac,
    "aps": Aps,
    "raps": Raps,
    "saps": Saps,
    "top-k": TopKScore,
    "margin": Margin,
}


def make_score(name: str, penalty: float | None = None, free_rank: int = 5) -> Score:
    """The score of this name, with the options that it has."""
    check_choice(name, "score", SCORES)
    if name == "raps":
        return Raps(free_rank=free_rank) if penalty is None else Raps(penalty, free_rank)
    if name == "saps":
        return Saps() if penalty is None else Saps(penalty)
    return SCORES[name]()
