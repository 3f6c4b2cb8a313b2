"""How much payoffs move choices: the rate of a logit response to what others were seen to do.

A seat chooses an action with a chance that grows as ``exp(rate * payoff)``, the payoff being its
mean against the others' recorded moves, as in an equilibrium of such players (McKelvey and Palfrey,
Games and Economic Behavior 10, 1995; estimated in two steps, Bajari and Hortacsu, Journal of
Political Economy 113, 2005). Its interval holds all rates that the slope of the likelihood does not
exclude, the error of these means included, so that it may have no end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from llm_games.arrays import Array
from llm_games.baselines.played_episodes import PlayedEpisodes
from llm_games.errors import BadParameter
from llm_games.rulebook import Rulebook

CELLS = 50_000  # tables of a seat, one for each of its actions and profiles of the others, at most
STEEPEST = 500.0  # rate times the range of payoffs, beyond which a rate is infinite
HALVED, CLOSE = 30, 1e-9
MOST_OPTIONS, MOST_CLUSTERS = 201, 40  # of more clusters, neighbours are put together


class StageChoices(NamedTuple):
    """Choices in a game whose rounds are alike, and what each action would have earned.

    `counts` of choices and `payoffs`, added up over the `rounds` of a cluster, are ``(clusters,
    seats, actions)``; seats that are not studied have none.
    """

    counts: Array
    payoffs: Array
    rounds: Array


class QuantalRate(NamedTuple):
    """A rate, the ends of its interval, and of how many clusters."""

    rate: float
    low: float
    high: float
    clusters: int


def stage_choices(episodes: PlayedEpisodes, by_episode: bool = True) -> StageChoices:
    """Return the choices of the studied seats; clusters are episodes, or rounds.

    Raises:
        BadParameter: not all choose at once among the same, or a round pays by more than its moves.
    """
    game, parts = episodes.game.core, list[_Profiles]()
    for number, step in enumerate(episodes.steps):
        low, high = game.amounts(step.state)
        if (low != low.flat[0]).any() or (high != high.flat[0]).any():
            raise BadParameter("seats or rounds differ in what can be chosen")
        inside = step.answered & (step.actions >= low) & (step.actions <= high)
        whole = np.flatnonzero(inside.all(axis=0))
        clusters = whole if by_episode else number * len(episodes.seeds) + whole
        actions, payoffs, chosen = (
            part[:, whole] for part in (step.actions, step.payoffs, step.chosen)
        )
        parts.append(_Profiles(actions, payoffs, chosen, clusters))
    joined = _Profiles(*(np.concatenate(part, axis=-1) for part in zip(*parts, strict=True)))
    if not len(joined.clusters):
        raise BadParameter("no round in which all chose at once")
    first = episodes.steps[0].state.table(np.zeros(1, np.int64))
    if not np.allclose(_payoffs(game, first, joined.actions), joined.payoffs):
        raise BadParameter("a round pays by more than its moves")
    return _counted(game, first, joined)


class _Profiles(NamedTuple):
    """Rounds in which all answered, ``(players, rounds)``; see `PlayedStep`."""

    actions: Array
    payoffs: Array
    chosen: Array
    clusters: Array


def _counted(game: Rulebook, state: Any, recorded: _Profiles) -> StageChoices:
    low, high = (int(limit[0, 0]) for limit in game.amounts(state))
    options = high - low + 1
    if options > MOST_OPTIONS:
        raise BadParameter(f"{options} choices are more than {MOST_OPTIONS}")
    numbers = np.unique(recorded.clusters, return_inverse=True)[1]
    numbers = numbers * min(MOST_CLUSTERS, int(numbers.max()) + 1) // (int(numbers.max()) + 1)
    count = len(numbers)
    shape = int(numbers.max()) + 1, game.players, options
    counts, payoffs = np.zeros(shape), np.zeros(shape)
    used = np.unique(np.linspace(0, count - 1, max(CELLS // options, 1)).astype(np.int64))
    for seat in np.flatnonzero(recorded.chosen.any(axis=1)).tolist():
        rounds_chosen = np.flatnonzero(recorded.chosen[seat])
        options_chosen = recorded.actions[seat, rounds_chosen] - low
        np.add.at(counts[:, seat], (numbers[rounds_chosen], options_chosen), 1.0)
        tried = np.repeat(recorded.actions[:, used], options, axis=1)
        tried[seat] = np.tile(np.arange(low, low + options), len(used))
        of_options = _payoffs(game, state, tried)[seat].reshape(len(used), options)
        np.add.at(payoffs[:, seat], numbers[used], of_options)
    rounds = np.bincount(numbers[used], minlength=shape[0]).astype(np.float64)
    return StageChoices(counts, payoffs, rounds)


def _payoffs(game: Rulebook, state: Any, profiles: Array) -> Array:
    """Return payoffs of profiles ``(players, tables)`` that are played in one state."""
    tables = state.table(np.zeros(profiles.shape[1], np.int64))
    return np.asarray(game.step(tables, profiles)[1].rewards, np.float64)


def quantal_rate(choices: StageChoices, level: float = 0.95) -> QuantalRate:
    """Return the likeliest rate, between those at which the slope of the likelihood may be 0.

    Raises:
        BadParameter: the record does not tell: 0 or infinite rates are not excluded.
    """
    clusters, (top, loss, gain) = len(choices.rounds), _bounds(choices)
    if clusters < 2:
        raise BadParameter("one round alone has no interval")
    if loss <= CLOSE:
        raise BadParameter("no rate is too high: payoffs are alike, or the best is always chosen")
    if gain <= CLOSE:
        raise BadParameter("the likeliest rate is 0: payoffs do not move choices")
    far = float(stdtrit(clusters - 1, (1 + level) / 2))

    def excluded(rate: float) -> bool:
        slope, error = _slope(choices, rate)
        return abs(slope) > far * error

    if not excluded(0.0):
        raise BadParameter("a rate of 0 is not excluded: payoffs may not move choices")
    if not excluded(top):
        raise BadParameter("no rate is too high to be excluded")
    totals = StageChoices(*(part.sum(axis=0, keepdims=True) for part in choices))
    rate = _between(lambda tried: float(_slopes(*totals, tried)[0]) <= 0, 0.0, top)
    low = _between(lambda tried: not excluded(tried), 0.0, rate)
    return QuantalRate(rate, low, _between(excluded, rate, top), clusters)


def _between(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return where something begins to hold that does not at `low` and does at `high`."""
    for _ in range(HALVED):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return (low + high) / 2


def _bounds(choices: StageChoices) -> tuple[float, float, float]:
    """Return the steepest rate, a choice's loss beside the best and gain beside a random one.

    Loss and gain are means of all choices, as shares of the range of payoffs.
    """
    means = choices.payoffs.sum(axis=0) / choices.rounds.sum()
    counts = choices.counts.sum(axis=0)
    widest, total = float(np.ptp(means, axis=-1).max()), counts.sum()
    if widest <= 0:
        return 0.0, 0.0, 0.0
    loss = (counts * (means.max(axis=-1, keepdims=True) - means)).sum() / total / widest
    gain = (counts * (means - means.mean(axis=-1, keepdims=True))).sum() / total / widest
    return STEEPEST / widest, float(loss), float(gain)


def _slope(choices: StageChoices, rate: float) -> tuple[float, float]:
    """Return the slope of the log-likelihood a round, and its jackknife error over clusters."""
    counts, payoffs, rounds = choices
    totals = [part.sum(axis=0, keepdims=True) for part in choices]
    whole = float(_slopes(totals[0], totals[1], totals[2], rate)[0])
    rest = _slopes(totals[0] - counts, totals[1] - payoffs, totals[2] - rounds, rate)
    count = len(rounds)
    return whole, float(np.sqrt((count - 1) / count * ((rest - rest.mean()) ** 2).sum()))


def _slopes(counts: Array, payoffs: Array, rounds: Array, rate: float) -> Array:
    means = payoffs / np.maximum(rounds, 1)[:, None, None]
    scaled = rate * means
    chances = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    chances /= chances.sum(axis=-1, keepdims=True)
    aimed = (chances * means).sum(axis=-1, keepdims=True)
    return np.asarray((counts * (means - aimed)).sum(axis=(-2, -1)) / np.maximum(rounds, 1))
