"""What can be known of the past rounds of a matrix game."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from llm_games.facts import Fact

if TYPE_CHECKING:
    from llm_games.games.matrix_game.rules import MatrixGame


def all_facts(game: MatrixGame) -> dict[str, Fact]:
    """Return all that a seat can know of past rounds, by name."""
    by_observer = lambda seen: np.swapaxes(seen, 0, 1) if game.sees_wrong else seen[0]
    high, (worst, best) = game.bounds()[1], game.span
    own = lambda s: s.actions
    if game.tells_each:
        own = lambda s: np.einsum("ii...->i...", s.seen) if game.sees_wrong else s.seen[0]
    facts = {"action": Fact("action", own, 0, high, "own action of the last round, from 0")}
    if not game.sees_wrong:
        paid = lambda s: game.paid(s.actions) * (s.round > 0)
        span = min(worst, 0.0), max(best, 0.0)
        facts["payoff"] = Fact("payoff", paid, *span, "own payoff of the last round")
    if game.slips:
        slipped = lambda s: s.slipped
        facts["slipped"] = Fact("slipped", slipped, 0, 1, "1 if it was not what one meant")
    if game.reveal != "actions":
        return facts
    first = lambda s: (s.actions == 0).sum(axis=0) * (s.round > 0)
    facts["first"] = Fact("first", first, 0, game.players, "players of action 0 in it")
    if game.tells_each:
        del facts["first"]
        for ago, name in enumerate(("seen", "before", "earlier")):
            told = lambda s, name=name: by_observer(getattr(s, name))
            meaning = f"action of seat {{}} as seen, {ago + 1} rounds ago"
            facts[name] = Fact(name, told, 0, high, meaning, True)
        for seat in range(game.players):
            made = lambda s, seat=seat: by_observer(s.counts[:, seat])
            meaning = f"times that seat {seat} was seen to play action {{}}"
            name = f"count_{seat}"
            facts[name] = Fact(name, made, 0, game.rounds, meaning, high + 1)
    return facts
