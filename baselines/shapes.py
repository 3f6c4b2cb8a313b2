"""Arrays by what they have an entry for. Batch axes come last; of one table there are none."""

from __future__ import annotations

from llm_games.rulebook import Array

PerSeat = Array
"""``(players, *batch)``"""
PerTable = Array
"""``(*batch)``"""
Measured = tuple[PerSeat, PerTable]
"""Regret and distance of one step, see `llm_games.baselines.deviation`."""
