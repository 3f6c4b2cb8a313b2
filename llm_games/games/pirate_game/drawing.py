"""A picture of a vote: the pirates by rank, the plan's shares, and who accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from llm_games.charts import SOFT, Columns
from llm_games.games.pirate_game.rules import VOTE
from llm_games.pictures import BLUE, GREEN, ORANGE, Drawing

if TYPE_CHECKING:
    from llm_games.games.pirate_game.rules import PirateGame, PirateGameState


def draw(game: PirateGame, state: PirateGameState, title: str) -> Drawing:
    """Draw the shares of the plan that is, or was last, voted on."""
    voting, held = int(state.phase) == VOTE, bool(state.round)
    plan = state.plan if voting else state.last_plan
    first = int(state.proposer) if voting or not held else game.proposed_last(state)
    here = (np.arange(game.players) >= first) & (voting or held)
    votes = state.votes.astype(bool)
    passed = "passed" if state.passed else "failed"
    words = "a plan to vote on" if voting else f"the last plan {passed}" if held else "no plan yet"
    ranks = [f"rank {seat + 1}" for seat in range(game.players)]
    columns = Columns(title, ranks, game.gold, 0, words)
    shares = np.where(here, plan, np.nan)
    cast = [BLUE if voting else GREEN if vote else ORANGE for vote in votes]
    columns.bars(shares, cast)
    columns.above([str(int(share)) if np.isfinite(share) else "" for share in shares], shares)
    said = ["proposes" if seat == first else "" if voting else "accepts" if vote else "rejects"
            for seat, vote in enumerate(votes)]  # fmt: skip
    gone = np.arange(game.players) < int(state.proposer)
    columns.below(["out" if gone[s] and not (here[s] and not voting) else
                   said[s] if here[s] else "" for s in range(game.players)], 1, SOFT)  # fmt: skip
    return columns.drawing
