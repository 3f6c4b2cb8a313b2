"""One self-contained HTML page about one run or several: scores, plots, replies."""

from llm_games.benchmarks.report.page import build

__all__ = ["build"]
