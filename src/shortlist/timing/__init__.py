"""How long things take: the one clock of `shortlist bench`, of the recipes and of the repository's benchmarks."""

from shortlist.timing.machine import describe_machine
from shortlist.timing.turns import fastest, fastest_stages, typical

__all__ = ["describe_machine", "fastest", "fastest_stages", "typical"]
