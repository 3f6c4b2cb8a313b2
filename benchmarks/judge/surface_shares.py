"""How much of what a player gets hangs on the words in which a game is told: of isomorphic runs.

Instances of a game in other words are the groups of a random-effects model, their episodes what is
measured in each: ``value = mean + instance + rest``. The share of the instances in the variance is
the intraclass correlation, by mean squares (Shrout and Fleiss, Psychological Bulletin 86, 1979),
its interval that of Searle (Linear Models, 1971), exact where both parts are normal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from llm_games.benchmarks.judge.intervals import Interval, check_level
from llm_games.benchmarks.judge.means import MeanCell
from llm_games.benchmarks.judge.result_table import ResultTable, Value, columns
from llm_games.benchmarks.judge.results import PAYOFF, judged_by, series
from llm_games.benchmarks.record.recorded_games import RecordedGame
from llm_games.errors import BadParameter
from llm_games.rulebook import Array

SHARES = (0.05, 0.1, 0.2, 0.5)  # of which the power is told
LEVEL = 0.05  # of the F test
SHARE_NOTE = (
    "Share of an episode's variance that is between isomorphs, the same game in other words and "
    "units: intraclass correlation by mean squares (estimate and ends are below 0 where isomorphs "
    "differ less than chance lets them), Searle's 95 % interval, and the F test that there is "
    "none. sd: of the means of isomorphs, without what chance adds."
)
POWER_NOTE = (
    "Chance of the F test (5 %) to find that so much of the variance is between isomorphs, if the "
    "planned episodes are divided among so many; sd: of the estimate where a fifth is."
)


class SurfaceShare(NamedTuple):
    """The share of `instances` with `each` episodes in the variance; `sd` is of their means.

    `p` is the F test's that there is none. `why`: what cannot be told, and then there are none.
    """

    instances: int
    each: int
    share: float | None = None
    interval: Interval | None = None
    p: float | None = None
    sd: float | None = None
    why: str = ""


def surface_share(values: Array, level: float = 0.95) -> SurfaceShare:
    """Return the share of the rows in the variance of ``(instances, episodes of each)``.

    BadParameter: no two instances of two episodes, or a value that is missing.
    """
    from scipy.special import fdtrc, fdtri

    check_level(level)
    x = np.asarray(values, np.float64)
    if x.ndim != 2 or min(x.shape) < 2 or not np.isfinite(x).all():
        raise BadParameter(
            "a share of the surface needs 2 isomorphs or more, each with the same 2 episodes or "
            f"more, all with a value; got {x.shape}"
        )
    n, k = x.shape
    between, within = k * x.mean(axis=1).var(ddof=1), x.var(axis=1, ddof=1).mean()
    if within <= 1e-12 * max(1.0, float(np.abs(x).max())) ** 2:
        spread = "all episodes of an isomorph are the same"
        return SurfaceShare(n, k, why=f"not identified: {spread}")
    ratio, free = between / within, (n - 1, n * (k - 1))
    tails = (1 + level) / 2, (1 - level) / 2
    low, high = (ratio / fdtri(*free, tail) for tail in tails)
    low, high = (float((f - 1) / (f + k - 1)) for f in (low, high))
    interval = Interval(low, high, "Searle", n)
    share = float((ratio - 1) / (ratio + k - 1))
    sd = math.sqrt(max(0.0, (between - within) / k))
    return SurfaceShare(n, k, share, interval, float(fdtrc(*free, ratio)), sd)


def surface_power(instances: int, each: int, share: float, level: float = LEVEL) -> float:
    """Return the power of the F test against a true share of the surface."""
    from scipy.special import fdtrc, fdtri

    free = instances - 1, instances * (each - 1)
    critical = fdtri(*free, 1 - level)
    return float(fdtrc(*free, critical / (1 + each * share / (1 - share))))


def share_sd(instances: int, each: int, share: float) -> float:
    """Return the standard deviation of the estimate of a true share, for many instances."""
    n, k = instances, each
    top = 2 * ((1 - share) * (1 + (k - 1) * share)) ** 2
    return math.sqrt(top / (k * (k - 1) * (n - 1)))


# -- of recorded games -----------------------------------------------------------------------------
def surface_grid(games: Sequence[RecordedGame], edition: str) -> ResultTable | None:
    """Return the shares of games that were told in several ways; None if none was."""
    rows: list[list[Value]] = []
    for game in games:
        for of, player, share in _shares(game, edition):
            cell = None
            if share.share is not None:
                cell = MeanCell(share.share, None, share.instances, share.interval)
            about: list[Value] = [game.label, of, player, share.instances, share.each, cell]
            rows.append([*about, share.p, share.sd, share.why or None])
    if not rows:
        return None
    heads = columns("game, of, player", "isomorphs, episodes of each", "d")
    heads |= {"share": ".2f", "p": ".3f", "sd": ".2f"}
    if any(row[-1] for row in rows):
        heads |= {"why not": ""}
    else:
        rows = [row[:-1] for row in rows]
    return ResultTable(heads, rows, "Surface", "surface", SHARE_NOTE)


def _shares(game: RecordedGame, edition: str) -> Iterator[tuple[str, str, SurfaceShare]]:
    """Yield of a game's score and its players' payoffs which share is the surface's."""
    of_instances: dict[int, list[int]] = {}
    for place, row in enumerate(game.done.rows):
        if row.isomorph is not None:
            of_instances.setdefault(row.isomorph, []).append(place)
    if not of_instances:
        return
    judged = judged_by(game, edition)
    wanted = [(judged, None)] if judged else []
    for statistic, player in [*wanted, *((PAYOFF, name) for name in dict.fromkeys(game.seats))]:
        numbers = series(game, statistic, player).numbers
        known = [[numbers[i] for i in places] for places in of_instances.values()]
        name = player or "all"
        yield statistic.name, name, _share(known)


def _share(known: list[list[Any]]) -> SurfaceShare:
    """Of as many episodes of each isomorph as all have; those without a value are left out."""
    rows = [[value for value in row if value is not None] for row in known]
    each = min(map(len, rows))
    if len(rows) < 2 or each < 2:
        few = f"{len(rows)} isomorphs with {each} episodes of each"
        return SurfaceShare(len(rows), each, why=f"not identified: {few}, it needs 2 of 2 or more")
    return surface_share(np.array([row[:each] for row in rows]))


# -- of planned ones -------------------------------------------------------------------------------
def power_grid(planned: Mapping[str, tuple[int, int]]) -> ResultTable:
    """Return what episodes can find by number of isomorphs; `planned`: both by label."""
    rows: list[list[Value]] = []
    for label, (episodes, count) in planned.items():
        options = [n for n in (5, 10, 20, 50, episodes // 2) if n >= 2 and episodes // n >= 2]
        for instances in sorted({*options, count}):
            if (each := episodes // instances) < 2 or instances < 2:
                rows.append([label, instances, each, *[None] * (len(SHARES) + 2)])
                continue
            power = [surface_power(instances, each, share) for share in SHARES]
            chosen = "planned" if instances == count else ""
            sd = share_sd(instances, each, 0.2)
            rows.append([label, instances, each, *power, sd, chosen])
    heads: dict[str, str] = columns("game", "isomorphs, episodes of each", "d")
    heads |= {f"finds {share:.0%}": ".0%" for share in SHARES} | {"sd": ".2f", "chosen": ""}
    return ResultTable(heads, rows, "Power by number of isomorphs", "surface_power", POWER_NOTE)
