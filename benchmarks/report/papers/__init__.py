"""The parts of a report that belong to one paper each."""

from llm_games.benchmarks.report.paper import Paper
from llm_games.benchmarks.report.papers import alympics, auc_arena, econ_arena

PAPERS: tuple[Paper, ...] = (alympics.PAPER, econ_arena.PAPER, auc_arena.PAPER)
"""In the order of a page; a table belongs to the first that owns it."""

__all__ = ["PAPERS"]
