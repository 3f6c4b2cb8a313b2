"""Ratings of players from free-for-all games: TrueSkill, and other systems by openskill.

TrueSkill: Herbrich, Minka & Graepel 2006, without teams and without partial play: expectation
propagation along the ranking; players with equal scores performed within a margin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from llm_games.errors import BadParameter, LLMGamesError, install, unknown
from llm_games.rulebook import Array

MU, SIGMA = 25.0, 25 / 3  # skill of a new player
BETA = 25 / 6  # standard deviation of a performance around its skill
TAU = 25 / 300  # what a skill's standard deviation gains before each game
DRAW = 0.10  # probability that two equally good players draw
MARGIN = NormalDist().inv_cdf((DRAW + 1) / 2) * math.sqrt(2) * BETA
PRECISION, SWEEPS = 1e-7, 1000
"""Messages go along the ranking and back, at most so often, until none changes by more."""
SMALLEST = 1e-290  # chances below are approximated, as doubles end there
OPENSKILL = {
    "plackett_luce": "PlackettLuce",
    "bradley_terry": "BradleyTerryFull",
    "thurstone_mosteller": "ThurstoneMostellerFull",
}
"""Systems that need openskill, and its names of them."""
SYSTEMS = ("trueskill", *OPENSKILL)


class OpenSkillNotInstalled(LLMGamesError, ImportError):
    """The rating system needs the package openskill."""


class SkillPosterior(NamedTuple):
    """The posterior of a skill: normal with this mean and standard deviation."""

    mu: float = MU
    sigma: float = SIGMA


def ratings(
    games: Sequence[Mapping[str, float]], system: str = "trueskill"
) -> dict[str, SkillPosterior]:
    """Ratings by one of `SYSTEMS`, best first, game by game; UnknownName, OpenSkillNotInstalled."""
    if system not in SYSTEMS:
        raise unknown("rating system", system, SYSTEMS)
    play = trueskill if system == "trueskill" else partial(_openskill, OPENSKILL[system])
    skills: dict[str, SkillPosterior] = {}
    for game in games:
        names = sorted(game)  # so that seats do not matter where several draw
        previous = [skills.get(name, SkillPosterior()) for name in names]
        skills |= zip(names, play(previous, [game[name] for name in names]), strict=True)
    return dict(sorted(skills.items(), key=lambda item: -item[1].mu))


def trueskill(previous: Sequence[SkillPosterior], scores: Sequence[float]) -> list[SkillPosterior]:
    """Ratings after a game; of draws, each is compared with the next; BadParameter: lengths."""
    if len(previous) != len(scores):
        raise BadParameter(f"each player needs a score, got {len(previous)} and {len(scores)}")
    ranking = sorted(range(len(scores)), key=lambda i: -scores[i])
    skills = [_normal(previous[i].mu, previous[i].sigma ** 2 + TAU**2) for i in ranking]
    draws = [scores[i] == scores[j] for i, j in pairwise(ranking)]
    messages = _propagate([_plus(skill, 0, BETA**2) for skill in skills], draws)
    pairs = zip(skills, messages, strict=True)
    moments = [_moments(s + _plus(news, 0, BETA**2)) for s, news in pairs]
    updated = [SkillPosterior(mean, math.sqrt(variance)) for mean, variance in moments]
    return [updated[ranking.index(i)] for i in range(len(scores))]


def _normal(mean: float, variance: float) -> Array:
    """Return a normal density up to a factor, as its precision and precision times mean."""
    return np.array([1 / variance, mean / variance])


def _moments(density: Array) -> tuple[float, float]:
    precision, weighted = density.tolist()
    return weighted / precision, 1 / precision


def _plus(density: Array, mean: float, variance: float) -> Array:
    """Return the density of this quantity plus an independent one."""
    return np.add(density, [0, density[0] * mean]) / (1 + density[0] * variance)


def _propagate(performances: Sequence[Array], draws: Sequence[bool]) -> list[Array]:
    """Messages of neighbours' comparisons to performances, best first; `draws`: with the next."""
    there = range(len(draws))
    # What each comparison says of the better and of the worse of its two; a last one says nothing,
    # so that those at both ends of the ranking hear it from their missing neighbours.
    better, worse = ([np.zeros(2)] * (len(draws) + 1) for _ in range(2))
    for _ in range(SWEEPS):
        change = 0.0
        for k in [*there, *reversed(there)]:
            above = _moments(performances[k] + worse[k - 1])
            below = _moments(performances[k + 1] + better[k + 1])
            gap = _normal(above[0] - below[0], above[1] + below[1])
            says = _truncated(gap, draws[k]) - gap
            new = _plus(says, *below), _plus(says * [1, -1], *above)
            old = better[k], worse[k]
            change = max(change, float(np.abs(np.subtract(old, new)).max()))
            better[k], worse[k] = new
        if change < PRECISION:
            break
    return [worse[k - 1] + better[k] for k in range(len(performances))]


def _truncated(gap: Array, draw: bool) -> Array:
    """Return the normal density with the moments of a gap truncated to the result."""
    mean, variance = _moments(gap)
    c = math.sqrt(variance)
    v, w = (_drawn if draw else _won)(mean / c, MARGIN / c)
    return _normal(mean + c * v, variance * (1 - w))


def _won(t: float, e: float) -> tuple[float, float]:
    """Return a win's shift of the mean and shrinkage of the variance, in units of the gap's."""
    x = e - t
    chance = _cdf(-x)
    v = _pdf(x) / chance if chance > SMALLEST else x + 1 / x - 2 / x**3
    return v, v * (v - x)


def _drawn(t: float, e: float) -> tuple[float, float]:
    """Return the shift and shrinkage for a draw."""
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


def _openskill(
    model: str, previous: Sequence[SkillPosterior], scores: Sequence[float]
) -> list[SkillPosterior]:
    """Return the ratings after one game by one of openskill's models."""
    try:
        from openskill import models
    except ImportError as error:
        raise OpenSkillNotInstalled(
            f"this rating system needs openskill: {install('ratings')}"
        ) from error
    system = getattr(models, model)(mu=MU, sigma=SIGMA, beta=BETA, tau=TAU)
    teams = [[system.rating(*rating)] for rating in previous]
    return [SkillPosterior(r.mu, r.sigma) for [r] in system.rate(teams, scores=list(scores))]
