"""The report: one page that shows what the sets of one or several models are worth, and figures beside it."""

from shortlist.reports.data import ReportData, RunResult, from_scores
from shortlist.reports.write import write

__all__ = ["ReportData", "RunResult", "from_scores", "write"]
