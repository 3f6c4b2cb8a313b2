"""How far the play of one step is from equilibrium: regret, NashConv and distance.

Each game's ``theory.deviation`` says what that means in it. Regret is in the game's own payoffs,
and in hindsight: against what the others did in this step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from llm_games import rooms
from llm_games.errors import unknown
from llm_games.rulebook import Array, PerPlayer, PerTable, Rulebook

Measured = tuple[PerPlayer, PerTable]  # regret and distance of one step


class Deviation(NamedTuple):
    """How far one step was from equilibrium. Tables that were over before it mean nothing.

    `regret` is what each seat could have gained by another action, 0 if it did not act. `distance`
    is that of the actions to the nearest equilibrium (set), L1, as a share of the range of all
    actions together, 0 to 1 for legal play; NaN where none is defined. For auctions, to the
    equilibrium bids of these valuations.
    """

    regret: PerPlayer
    distance: PerTable

    @property
    def nash_conv(self) -> PerTable:
        """Return the sum of the seats' regrets."""
        return self.regret.sum(axis=0)


def has_deviation(game: str) -> bool:
    """Return whether an equilibrium, or what comes closest to one, is known for a game."""
    return hasattr(rooms.part(game, "theory"), "deviation")


def deviation(game: Rulebook, record: Mapping[str, Array]) -> Deviation:
    """Return the deviation of one step by its ``Outcome.record``, or raise `UnknownName`."""
    measure = getattr(rooms.part(game.name, "theory"), "deviation", None)
    if measure is None:
        raise unknown("deviation for", game.name, filter(has_deviation, rooms.ROOMS))
    regret, distance = measure(game, record)
    return Deviation(np.asarray(regret, np.float64), np.asarray(distance, np.float64))
