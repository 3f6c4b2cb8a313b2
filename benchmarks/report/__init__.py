"""One self-contained HTML page about one run or several, and the same as a part of another."""

from llm_games.benchmarks.report.page import body, build, check_out, css, of_sections
from llm_games.benchmarks.report.parts import ReportIncomplete

__all__ = ["ReportIncomplete", "body", "build", "check_out", "css", "of_sections"]
