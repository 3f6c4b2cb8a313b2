"""One self-contained HTML page about one run or several: scores, plots, replies."""

from llm_games.benchmarks.report.page import build, check_out
from llm_games.benchmarks.report.parts import ReportIncomplete

__all__ = ["ReportIncomplete", "build", "check_out"]
