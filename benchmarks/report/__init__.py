"""One self-contained HTML page about one run or several: scores, plots, replies."""

from llm_games.benchmarks.report.page import build, check_out

__all__ = ["build", "check_out"]
