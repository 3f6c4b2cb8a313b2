"""Ratings of players from the orders in which they finished games, all games at once.

Sources: Bradley and Terry (Biometrika 39, 1952); Luce (1959); Plackett (Applied Statistics 24,
1975); ties as in Efron (JASA 72, 1977). Unlike OpenSkill's and TrueSkill's, a batch fit does not
depend on the order of games, and its standard errors are those of an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from llm_games.benchmarks.judge.intervals import Interval, check_level
from llm_games.errors import BadParameter, unknown
from llm_games.rulebook import Array

RIDGE = 0.1  # a normal prior of variance 10 on each coefficient: a clean sweep stays finite
STEPS = 200  # of Newton, of at most `STRIDE` in any coefficient
STRIDE = 2.0
SETTLED = 10  # fewest games from which the intervals were found to cover

PAIRS = "Bradley-Terry"
NEVER_MET = (
    "some players never met, not even through others, so that they cannot be compared: "
    "rate each group alone, or add games between them"
)

Ranked = tuple[Sequence[str], Sequence[float]]
"""One game: who sat in each seat, and each seat's result; higher is better, equal is a tie."""


@dataclass(frozen=True)
class Ratings:
    """Skills of players in logits, of mean 0: odds of two are ``exp`` of their difference.

    `covariance` ``(players, players)`` is of the skills. `seats` are their coefficients in order,
    or None. `tied` is the share of all pairs of seats that finished equal.
    """

    names: tuple[str, ...]
    skills: Array
    covariance: Array
    seats: Array | None
    games: int
    tied: float = 0.0
    method: str = "Plackett-Luce"

    def difference(
        self, name: str, reference: str, level: float = 0.95
    ) -> tuple[float, Interval | None]:
        """Skill of `name` less that of `reference`, Wald's interval; UnknownName, BadParameter."""
        from scipy.special import ndtri, stdtrit

        check_level(level)
        contrast = np.zeros(len(self.names))
        for player, sign in ((name, 1), (reference, -1)):
            if player not in self.names:
                raise unknown("player", player, self.names)
            contrast[self.names.index(player)] += sign
        mean = float(contrast @ self.skills)
        if self.games == 1:
            return mean, None
        error = math.sqrt(max(0.0, float(contrast @ self.covariance @ contrast)))
        upper, few = (1 + level) / 2, self.games < SETTLED
        if self.method == PAIRS:
            half, note = float(stdtrit(self.games - 1, upper)) * error, "episodes"
        else:
            half, note = float(ndtri(upper)) * error, "games"
        note = f"fewer than {SETTLED} {note}" if few else ""
        return mean, Interval(mean - half, mean + half, self.method, self.games, note)


def plackett_luce(games: Sequence[Ranked], seats: bool = False) -> Ratings:
    """Rate the players of independent games by the Plackett-Luce model with a ridge of `RIDGE`.

    Tied seats share their places: each is first among them equally often (Efron). A player may have
    several seats of one game. `seats` adds one coefficient for each. Raises BadParameter: no games,
    a game of one seat or with results that do not fit, players that cannot be compared because they
    never met, or seats that cannot be told from players.
    """
    if not games:
        raise BadParameter("ratings need one game or more, got none")
    names = tuple(dict.fromkeys(name for players, _ in games for name in players))
    size = max(len(players) for players, _ in games)
    design, remaining, won = _stages(games, names, size if seats else 0, size)
    _check_design(design, remaining, len(names), size, seats)
    skill = np.zeros(design.shape[2])
    for _ in range(STEPS):
        slope, curve = _derivatives(skill, design, remaining, won)
        step = np.linalg.solve(curve, slope)
        skill += step * min(1.0, STRIDE / max(np.abs(step).max(), 1e-300))
        if np.abs(step).max() < 1e-10:
            break
    covariance = np.linalg.inv(_derivatives(skill, design, remaining, won)[1])
    n, tied = len(names), [_tied(results) for _, results in games]
    return Ratings(
        names=names,
        skills=skill[:n],
        covariance=covariance[:n, :n],
        seats=skill[n:] if seats else None,
        games=len(games),
        tied=sum(equal for equal, _ in tied) / sum(pairs for _, pairs in tied),
    )


def bradley_terry(names: Sequence[str], ahead: Array) -> Ratings:
    """Rate players by how often one is ahead of another, with a ridge of `RIDGE`.

    `ahead` is float64 ``(episodes, players, players)``: the number of games of an episode in which
    the first was ahead of the second, ties half. Games of an episode may share their chance:
    standard errors are from the differences between episodes (Liang and Zeger, Biometrika 73,
    1986), no variance smaller than that of as many independent pairs. Raises BadParameter: no
    episode, or players that never met.
    """
    ahead = np.asarray(ahead, np.float64)
    pair_games, count, episodes = ahead + ahead.swapaxes(1, 2), len(names), len(ahead)
    total = pair_games.sum(axis=0)
    links = np.diag(total.sum(axis=1)) - total
    if not episodes or np.linalg.matrix_rank(links) < count - 1:
        raise BadParameter(NEVER_MET)
    skill = np.zeros(count)
    for _ in range(STEPS):
        odds = 1 / (1 + np.exp(skill - skill[:, None]))
        slope = (ahead - pair_games * odds).sum(axis=(0, 2)) - RIDGE * skill
        weight = total * odds * (1 - odds)
        curve = np.diag(weight.sum(axis=1) + RIDGE) - weight
        step = np.linalg.solve(curve, slope)
        skill += step * min(1.0, STRIDE / max(np.abs(step).max(), 1e-300))
        if np.abs(step).max() < 1e-10:
            break
    model = np.linalg.inv(curve)
    off = (ahead - pair_games * odds).sum(axis=2)
    off -= off.mean(axis=0)
    between = off.T @ off * episodes / max(1, episodes - 1)
    covariance = _larger(model, model @ between @ model)
    return Ratings(tuple(names), skill, covariance, None, episodes, method=PAIRS)


def _larger(first: Array, second: Array) -> Array:
    """Return a covariance in which each variance is at least that of both."""
    root = np.linalg.cholesky(first)
    back = np.linalg.inv(root)
    sizes, ways = np.linalg.eigh(back @ second @ back.T)
    wide = root @ ways
    covariance: Array = (wide * np.maximum(sizes, 1.0)) @ wide.T
    return covariance


def _stages(
    games: Sequence[Ranked], names: Sequence[str], chairs: int, size: int
) -> tuple[Array, Array, Array]:
    """By place of all games: features ``(stages, size, players + chairs)``, remaining, winners."""
    design, remaining, won = [], [], []
    for players, results in games:
        score = np.asarray(results, np.float64)
        if not 2 <= len(players) == len(score) or not np.isfinite(score).all():
            raise BadParameter(
                "a game to rate has 2 seats or more and a number as each one's result, got "
                f"{list(players)!r} and {list(results)!r}"
            )
        features = np.zeros((size, len(names) + chairs))
        for seat, name in enumerate(players):
            features[seat, names.index(name)] = 1
            if chairs:
                features[seat, len(names) + seat] = 1
        for level in np.unique(score)[::-1]:
            group = score == level
            count = int(group.sum())
            for taken in range(count):
                design.append(features)
                rows = np.zeros((2, size))
                rows[:, : len(score)] = (score < level) + group * (1 - taken / count), group / count
                remaining.append(rows[0])
                won.append(rows[1])
    return np.array(design), np.array(remaining), np.array(won)


def _derivatives(skill: Array, design: Array, remaining: Array, won: Array) -> tuple[Array, Array]:
    """Return gradient and negative Hessian of the penalised log likelihood."""
    height = design @ skill
    odds = remaining * np.exp(height - height.max(axis=1, keepdims=True))
    odds /= odds.sum(axis=1, keepdims=True)
    flat = design.reshape(-1, len(skill))
    mean = np.einsum("sm,smf->sf", odds, design)
    slope = (won - odds).ravel() @ flat - RIDGE * skill
    curve = flat.T @ (flat * odds.reshape(-1, 1)) - mean.T @ mean
    return slope, curve + RIDGE * np.eye(len(skill))


def _check_design(design: Array, remaining: Array, players: int, size: int, seats: bool) -> None:
    """Raise BadParameter if the games cannot tell players, or seats and players, apart."""
    there = remaining > 0
    centre = (design * there[..., None]).sum(axis=1) / there.sum(axis=1, keepdims=True)
    inner = ((design - centre[:, None]) * there[..., None]).reshape(-1, design.shape[2])
    square = inner.T @ inner
    if np.linalg.matrix_rank(square[:players, :players]) < players - 1:
        raise BadParameter(NEVER_MET)
    if seats and np.linalg.matrix_rank(square) < players - 1 + size - 1:
        raise BadParameter(
            "players did not change seats enough to tell seats from players: "
            'play with order = "rotate", or rate with seats=False'
        )


def _tied(results: Sequence[float]) -> tuple[int, int]:
    """Return the number of pairs of seats that finished equal, and of all pairs."""
    _, sizes = np.unique(np.asarray(results, np.float64), return_counts=True)
    pairs = len(results) * (len(results) - 1) // 2
    return int((sizes * (sizes - 1) // 2).sum()), pairs
