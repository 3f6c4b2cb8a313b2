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
    """The share of instances, each of so many `episodes`, in the variance; `sd`: of their means.

    `p` is the F test's that there is none. `why`: what cannot be told, and then there are none.
    """

    instances: int
    episodes: int
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


def surface_power(instances: int, episodes: int, share: float, level: float = LEVEL) -> float:
    """Return the power of the F test against a true share of the surface."""
    from scipy.special import fdtrc, fdtri

    free = instances - 1, instances * (episodes - 1)
    critical = fdtri(*free, 1 - level)
    return float(fdtrc(*free, critical / (1 + episodes * share / (1 - share))))


def share_sd(instances: int, episodes: int, share: float) -> float:
    """Return the standard deviation of the estimate of a true share, for many instances."""
    n, k = instances, episodes
    top = 2 * ((1 - share) * (1 + (k - 1) * share)) ** 2
    return math.sqrt(top / (k * (k - 1) * (n - 1)))


# -- of recorded games -----------------------------------------------------------------------------
def surface_grid(games: Sequence[RecordedGame], edition: str) -> ResultTable | None:
    """Return the shares of games that were told in several ways; None if none was."""
    rows: list[list[Value]] = []
    for game in games:
        for statistic, player, share in _shares(game, edition):
            cell = None
            if share.share is not None:
                cell = MeanCell(share.share, None, share.instances, share.interval)
            design = share.instances, share.episodes
            numbers = cell, share.p, share.sd
            rows.append([game.label, statistic, player, *design, *numbers, share.why or None])
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
    instances: dict[int, list[int]] = {}  # episodes of each
    for index, row in enumerate(game.done.rows):
        if row.isomorph is not None:
            instances.setdefault(row.isomorph, []).append(index)
    if not instances:
        return
    score = judged_by(game, edition)
    pairs = [(score, None)] if score else []
    for statistic, player in [*pairs, *((PAYOFF, name) for name in dict.fromkeys(game.seats))]:
        numbers = series(game, statistic, player).numbers
        values = [[numbers[index] for index in indices] for indices in instances.values()]
        yield statistic.name, player or "all", _share(values)


def _share(values: list[list[Any]]) -> SurfaceShare:
    """Of as many episodes of each isomorph as all have; those without a value are left out."""
    rows = [[value for value in row if value is not None] for row in values]
    episodes = min(map(len, rows))
    if len(rows) < 2 or episodes < 2:
        few = f"{len(rows)} isomorphs with {episodes} episodes of each, it needs 2 of 2 or more"
        return SurfaceShare(len(rows), episodes, why=f"not identified: {few}")
    return surface_share(np.array([row[:episodes] for row in rows]))


# -- of planned ones -------------------------------------------------------------------------------
def power_grid(planned: Mapping[str, tuple[int, int]]) -> ResultTable:
    """Return what episodes can find by number of isomorphs; `planned`: both by label."""
    rows: list[list[Value]] = []
    for label, (total, count) in planned.items():
        options = [n for n in (5, 10, 20, 50, total // 2) if n >= 2 and total // n >= 2]
        for instances in sorted({*options, count}):
            design = instances, total // instances
            if min(design) < 2:
                rows.append([label, *design, *[None] * (len(SHARES) + 2)])
                continue
            power = [surface_power(*design, share) for share in SHARES]
            chosen = "planned" if instances == count else ""
            rows.append([label, *design, *power, share_sd(*design, 0.2), chosen])
    heads: dict[str, str] = columns("game", "isomorphs, episodes of each", "d")
    heads |= {f"finds {share:.0%}": ".0%" for share in SHARES} | {"sd": ".2f", "chosen": ""}
    return ResultTable(heads, rows, "Power by number of isomorphs", "surface_power", POWER_NOTE)
