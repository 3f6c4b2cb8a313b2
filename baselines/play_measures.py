"""What describes the play of a game beyond payoffs and regret, by name: shares of moves, levels ...

A room's ``measures.py`` has ``measures``, which gives them of a rulebook; each is declared there
once, and reports, tables, figures and the viewer show it. `people` beside them have theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from llm_games import game_rooms as rooms
from llm_games.arrays import Array
from llm_games.baselines.regret import Steps
from llm_games.rulebook import Rulebook

FREE, SHARE = (-np.inf, np.inf), (0.0, 1.0)


class PlayMeasure(NamedTuple):
    """A number that describes play, of some seats.

    `observed` takes the steps of one table, ``(..., steps)``, and seats, and returns the numbers
    that are averaged over all tables: one of each choice, round or table, as people's are; none
    where there is nothing to see. `of` takes them all together where the measure is no mean. A
    measure between 0 and 1 is shown as a share.
    """

    observed: Callable[[Steps, Sequence[int]], Array]
    ends: tuple[float, float] = SHARE
    of: Callable[[Array], float] | None = None

    @property
    def is_share(self) -> bool:
        return self.ends == SHARE

    def value(self, parts: Sequence[Array]) -> float:
        """Return the measure of what was observed at some tables; NaN of nothing."""
        numbers = np.concatenate(parts) if parts else np.zeros(0)
        if not len(numbers):
            return np.nan
        return self.of(numbers) if self.of else float(numbers.mean())


def play_measures(game: Rulebook) -> Mapping[str, PlayMeasure]:
    """Return the measures of a game by name; none where its room has none."""
    part = rooms.part(game.name, "measures")
    measures: Mapping[str, PlayMeasure] = part.measures(game.core) if part else {}
    return measures


def described(
    game: Rulebook, plays: Sequence[Steps], seats: Sequence[int] | None = None
) -> dict[str, float]:
    """Return all measures of some plays, each `regret.stacked` of one table; NaN if undefined."""
    taken = range(game.players) if seats is None else seats
    return {
        name: measure.value([observe(measure, steps, taken) for steps in plays])
        for name, measure in play_measures(game).items()
    }


def observe(measure: PlayMeasure, steps: Steps, seats: Sequence[int]) -> Array:
    """Return what a measure sees at one table, a number (or row) of each observation."""
    numbers = np.asarray(measure.observed(steps, list(seats)), np.float64)
    return numbers if measure.of else numbers.ravel()


def own_moves(steps: Steps, seats: Sequence[int]) -> Array:
    """Return the moves of these seats, ``(seats, steps)``."""
    return np.asarray(steps["actions"][list(seats)])


def mean_of(ends: tuple[float, float], first: int = 0) -> PlayMeasure:
    """Return the mean move between these ends, from round `first` on, counted from 0."""
    return PlayMeasure(lambda steps, seats: own_moves(steps, seats)[:, first:], ends)


def mean_payoff(
    game: Any, payoffs: Callable[[Steps, Sequence[int]], Array]
) -> dict[str, PlayMeasure]:
    """Return the mean payoff of a round, where chance ends a game; totals hang on its length."""
    return {"mean payoff": PlayMeasure(payoffs, game.stake)} if game.open else {}


def median(numbers: Array) -> float:
    return float(np.median(numbers))
