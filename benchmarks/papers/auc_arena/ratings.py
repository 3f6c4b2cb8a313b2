"""Ratings of players from free-for-all games: TrueSkill, and other systems by openskill.

TrueSkill: Herbrich, Minka & Graepel 2006, without teams and without partial play. Everybody's skill
is normal; so is the performance in a game, around it. Whoever scored more performed better by more
than a margin, and those who scored alike performed within it. What a game says of the skills is
found by expectation propagation along the ranking.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

from llm_games.errors import BadParameter, LLMGamesError, unknown

MU, SIGMA = 25.0, 25 / 3
"""Skill of a new player."""
BETA = 25 / 6
"""Standard deviation of a performance around its skill."""
TAU = 25 / 300
"""What a skill's standard deviation gains before each game."""
DRAW = 0.10
"""Probability that two equally good players draw."""
MARGIN = NormalDist().inv_cdf((DRAW + 1) / 2) * math.sqrt(2) * BETA
PRECISION = 1e-7
"""Messages are passed on until none of their parameters changes by more."""
SWEEPS = 1000
"""At most so often along the ranking and back."""
SMALLEST = 1e-290
"""Chances below are approximated, as doubles end there."""
OPENSKILL = {
    "plackett_luce": "PlackettLuce",
    "bradley_terry": "BradleyTerryFull",
    "thurstone_mosteller": "ThurstoneMostellerFull",
}
"""Systems that need openskill, and its names of them."""
SYSTEMS = ("trueskill", *OPENSKILL)


class OpenSkillNotInstalled(LLMGamesError, ImportError):
    """A rating system that needs the package openskill."""


class Rating(NamedTuple):
    """What is known of a skill: it is normal with this mean and standard deviation."""

    mu: float = MU
    sigma: float = SIGMA


def ratings(games: Sequence[Mapping[str, float]], system: str = "trueskill") -> dict[str, Rating]:
    """Return everybody's rating after some games, best first.

    Args:
        games: the score of each player, game after game; equal scores are a draw.
        system: one of `SYSTEMS`.

    Raises:
        UnknownName: there is no such system.
        OpenSkillNotInstalled: it needs that package.
    """
    if system not in SYSTEMS:
        raise unknown("rating system", system, SYSTEMS)
    play = trueskill if system == "trueskill" else partial(_openskill, OPENSKILL[system])
    known: dict[str, Rating] = {}
    for game in games:
        names = sorted(game)  # so that seats do not matter where several draw
        before = [known.get(name, Rating()) for name in names]
        known |= zip(names, play(before, [game[name] for name in names]), strict=True)
    return dict(sorted(known.items(), key=lambda item: -item[1].mu))


def trueskill(before: Sequence[Rating], scores: Sequence[float]) -> list[Rating]:
    """Return the ratings after one game, in the same order.

    Args:
        before: of all who played, at least one.
        scores: of each of them; equal scores are a draw. Of three or more who draw, each is
            compared with the next one in this order.

    Raises:
        BadParameter: not as many scores as ratings.
    """
    if len(before) != len(scores):
        raise BadParameter(f"each player needs a score, got {len(before)} and {len(scores)}")
    ranking = sorted(range(len(scores)), key=lambda i: -scores[i])
    skills = [_Normal.of(before[i].mu, before[i].sigma ** 2 + TAU**2) for i in ranking]
    draws = [scores[i] == scores[j] for i, j in pairwise(ranking)]
    heard = _propagate([skill.plus(0, BETA**2) for skill in skills], draws)
    after = [s.times(news.plus(0, BETA**2)) for s, news in zip(skills, heard, strict=True)]
    return [after[ranking.index(i)].rating() for i in range(len(scores))]


class _Normal(NamedTuple):
    """A normal density, up to a factor, as precision and precision times mean; flat if both 0."""

    precision: float = 0.0
    weighted: float = 0.0

    @staticmethod
    def of(mean: float, variance: float) -> _Normal:
        return _Normal(1 / variance, mean / variance)

    @property
    def mean(self) -> float:
        return self.weighted / self.precision

    @property
    def variance(self) -> float:
        return 1 / self.precision

    def times(self, other: _Normal) -> _Normal:
        return _Normal(self.precision + other.precision, self.weighted + other.weighted)

    def over(self, other: _Normal) -> _Normal:
        return _Normal(self.precision - other.precision, self.weighted - other.weighted)

    def negated(self) -> _Normal:
        return _Normal(self.precision, -self.weighted)

    def plus(self, mean: float, variance: float) -> _Normal:
        """Return the density of this quantity plus an independent one."""
        shrink = 1 + self.precision * variance
        weighted = self.weighted + self.precision * mean
        return _Normal(self.precision / shrink, weighted / shrink)

    def rating(self) -> Rating:
        return Rating(self.mean, math.sqrt(self.variance))


FLAT = _Normal()


def _propagate(performances: Sequence[_Normal], draws: Sequence[bool]) -> list[_Normal]:
    """Return what the comparisons of neighbours in the ranking say of each performance.

    Args:
        performances: before the game, best rank first.
        draws: whether each of them drew with the next one.
    """
    there = range(len(draws))
    # What each comparison says of the better and of the worse of its two; a last one says nothing,
    # so that those at both ends of the ranking hear it from their missing neighbours.
    better, worse = ([FLAT] * (len(draws) + 1) for _ in range(2))
    for _ in range(SWEEPS):
        change = 0.0
        for k in [*there, *reversed(there)]:
            above = performances[k].times(worse[k - 1])
            below = performances[k + 1].times(better[k + 1])
            gap = _Normal.of(above.mean - below.mean, above.variance + below.variance)
            says = _truncated(gap, draws[k]).over(gap)
            new = (
                says.plus(below.mean, below.variance),
                says.negated().plus(above.mean, above.variance),
            )
            for old, message in zip((better[k], worse[k]), new, strict=True):
                change = max(change, *(abs(x - y) for x, y in zip(old, message, strict=True)))
            better[k], worse[k] = new
        if change < PRECISION:
            break
    return [worse[k - 1].times(better[k]) for k in range(len(performances))]


def _truncated(gap: _Normal, draw: bool) -> _Normal:
    """Return the normal density with the moments of `gap` where it fits to what happened."""
    c = math.sqrt(gap.variance)
    v, w = (_drawn if draw else _won)(gap.mean / c, MARGIN / c)
    return _Normal.of(gap.mean + c * v, gap.variance * (1 - w))


def _won(t: float, e: float) -> tuple[float, float]:
    """Return how a win moves the mean and shrinks the variance, in units of the gap's."""
    x = e - t
    chance = _cdf(-x)
    v = _pdf(x) / chance if chance > SMALLEST else x + 1 / x - 2 / x**3
    return v, v * (v - x)


def _drawn(t: float, e: float) -> tuple[float, float]:
    """Return the same for a draw."""
    if t < 0:  # by symmetry, so that both chances are small where their difference is
        v, w = _drawn(-t, e)
        return -v, w
    low, high = -e - t, e - t
    chance = _cdf(high) - _cdf(low)
    if chance < SMALLEST:  # only the near edge of the margin matters
        v, w = _won(-t, -e)
        return -v, w
    v = (_pdf(low) - _pdf(high)) / chance
    return v, v * v + (high * _pdf(high) - low * _pdf(low)) / chance


def _pdf(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _cdf(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _openskill(model: str, before: Sequence[Rating], scores: Sequence[float]) -> list[Rating]:
    """Return the ratings after one game by one of openskill's models."""
    try:
        from openskill import models
    except ImportError as error:
        raise OpenSkillNotInstalled(
            "this rating system needs openskill: pip install 'llm-games[ratings]'"
        ) from error
    system = getattr(models, model)(mu=MU, sigma=SIGMA, beta=BETA, tau=TAU)
    teams = [[system.rating(*rating)] for rating in before]
    return [Rating(r.mu, r.sigma) for [r] in system.rate(teams, scores=list(scores))]
