"""What describes play of matrix games: shares of actions; of dilemmas, cooperation and strategies.

C is action 0, D action 1. A choice is what was meant, what it answers what was played: they differ
where moves slip.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.games.matrix_game.theory import distance, played_in
from llm_games.baselines.play_measures import SHARE, PlayMeasure, own_moves
from llm_games.baselines.regret import Steps
from llm_games.baselines.repeated_dilemma import Dilemma
from llm_games.baselines.strategy_mixtures import StrategyMixture, strategy_mixture
from llm_games.errors import BadParameter

SITUATIONS = ("CC", "CD", "DC", "DD")
"""The last round's actions, own first."""
STRATEGIES = ("all_d", "all_c", "grim", "tit_for_tat", "win_stay_lose_shift", "two_round_trigger")


def measures(game: Any) -> Mapping[str, PlayMeasure]:
    named = dict(_dilemma(game) if _is_dilemma(game) else _actions(game))
    if game.actions == (2, 2):
        alike = lambda steps, seats: played_in(steps)[0] == played_in(steps)[1]  # noqa: E731
        named["coordination"] = PlayMeasure(alike)
        if game.length() != 1:
            named["alternation"] = PlayMeasure(lambda steps, seats: _alternates(game, steps))
    payoff = lambda steps, seats: game.table.paid(played_in(steps))[seats]  # noqa: E731
    named["mean payoff"] = PlayMeasure(payoff, game.stake)
    stable = lambda steps, seats: distance(game, played_in(steps)) == 0  # noqa: E731
    return named | {"in a pure equilibrium": PlayMeasure(stable)}


def _actions(game: Any) -> Mapping[str, PlayMeasure]:
    """Return how often each action is chosen; where seats are not alike, in each by itself."""

    def share(action: int, among: Sequence[int]) -> PlayMeasure:
        return PlayMeasure(
            lambda s, seats: own_moves(s, [seat for seat in seats if seat in among]) == action
        )

    everybody = range(game.players)
    if not game.seats_differ:
        return {f"action {k}": share(k, everybody) for k in range(max(game.actions))}
    return {
        f"action {k} of seat {seat}": share(k, [seat])
        for seat in everybody
        for k in range(game.actions[seat])
    }


def _is_dilemma(game: Any) -> bool:
    if game.actions != (2, 2) or game.by_count is not None:
        return False  # a large table is not worth its fractions
    try:
        Dilemma.of(game.table.exact)
    except BadParameter:
        return False
    return True


def _dilemma(game: Any) -> Mapping[str, PlayMeasure]:
    def chosen(first: int | None, last: int | None) -> PlayMeasure:
        return PlayMeasure(lambda s, seats: own_moves(s, seats)[:, first:last] == 0)

    both = lambda steps, seats: (played_in(steps) == 0).all(axis=0)  # noqa: E731
    named = {"cooperation": chosen(None, None), "mutual cooperation": PlayMeasure(both)}
    if game.length() == 1:
        return named
    named["cooperation in round 1"] = chosen(0, 1)
    if not game.open:
        named["cooperation in the last round"] = chosen(-1, None)
    situations = enumerate(SITUATIONS)
    answers = {f"C after {name}": PlayMeasure(partial(_answers, k)) for k, name in situations}
    shares = {
        f"share of {name}": PlayMeasure(agreements, SHARE, partial(_share, k))
        for k, name in enumerate(STRATEGIES)
    }
    precision = lambda counts: _fitted(counts.tobytes()).precision  # noqa: E731
    shares["follows its strategy"] = PlayMeasure(agreements, SHARE, precision)
    return named | answers | shares


def _answers(situation: int, steps: Steps, seats: Sequence[int]) -> Array:
    """Return whether C was chosen each time that the last round was this."""
    played, chosen = played_in(steps), steps["actions"]
    answers = [
        chosen[seat, 1:][(2 * played[seat] + played[1 - seat])[:-1] == situation] == 0
        for seat in seats
    ]
    return np.concatenate(answers) if answers else np.zeros(0)


def _alternates(game: Any, steps: Steps) -> Array:
    """Return in which rounds both went over from one pure equilibrium to another."""
    played = played_in(steps)
    stable = distance(game, played) == 0
    return (played[:, 1:] != played[:, :-1]).all(axis=0) & stable[1:] & stable[:-1]


def agreements(steps: Steps, seats: Sequence[int]) -> Array:
    """Return each seat's choices, and how many each of `STRATEGIES` would have made.

    The triggers are released by either's D, as automata are; ``(seats, 1 + strategies)``.
    """
    played, rows = played_in(steps), []
    for seat in seats:
        mine, other, meant = played[seat], played[1 - seat], steps["actions"][seat]
        broken, rounds = (mine == 1) | (other == 1), len(meant)
        says = np.zeros((len(STRATEGIES), rounds), np.int64)
        says[0] = 1
        says[2, 1:] = np.maximum.accumulate(broken)[:-1]
        says[3, 1:] = other[:-1]
        says[4, 1:] = mine[:-1] != other[:-1]
        due = 0  # rounds of punishment
        for number in range(1, rounds):
            due = due - 1 if due else 2 * int(broken[number - 1])
            says[5, number] = due > 0
        rows.append([rounds, *(says == meant).sum(axis=1)])
    return np.array(rows, np.float64).reshape(-1, 1 + len(STRATEGIES))


def _share(strategy: int, counts: Array) -> float:
    return float(_fitted(counts.tobytes()).shares[strategy])


@lru_cache(maxsize=32)
def _fitted(counts: bytes) -> StrategyMixture:
    rows = np.frombuffer(counts).reshape(-1, 1 + len(STRATEGIES))
    return strategy_mixture(rows[:, 1:], rows[:, 0])
