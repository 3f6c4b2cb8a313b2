"""How many episodes a comparison of two runs needs, and what the planned ones can find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from llm_games.benchmarks.runs.compare import LEVEL
from llm_games.benchmarks.runs.grid import Grid
from llm_games.benchmarks.runs.paper import scorings
from llm_games.benchmarks.runs.plan import RunPlan
from llm_games.benchmarks.stats.comparing import detectable, look_level, needed_episodes

POINTS = {"game": (5, 10, 20), "Overall": (1, 2, 3, 5, 10)}  # differences that are to be shown


class Needed(NamedTuple):
    """Episodes that show a difference between two runs in four of five comparisons (80 % power).

    `label` is a game's, or ``Overall``, the mean over `games`. `sd` is that of one run's score, the
    root mean square over games; `pairs` are the episodes that each side needs, by points: for one t
    test, and where the games of the run are corrected for one another (Holm). `found` is the
    smallest difference that the planned `episodes` show; None for one episode. Tests are at 5 %, or
    at the `level` of each planned look.
    """

    label: str
    games: int
    episodes: int
    sd: float
    pairs: dict[int, tuple[int, int]]
    found: float | None
    level: float = LEVEL

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        return self._asdict()


def needed(plan: RunPlan) -> list[Needed]:
    """Return what each game needs that a paper scores, and their Overall, last, if there are more.

    Spreads are what the papers' published runs have; sides are taken to be independent.
    """
    spreads = {name: sd for found in scorings() for name, sd in found.spreads().items()}
    games = [(g.game, g.label, len(g.seeds)) for g in plan.games if spreads.get(g.game)]
    first = {(game, many): label for game, label, many in reversed(games)}  # of all alike, one
    level = look_level(plan.looks, LEVEL) if plan.looks else LEVEL
    rows = [
        _row(label, [spreads[game]], many, level, len(games))
        for game, label, many in games
        if first[game, many] == label
    ]
    if len(games) > 1:
        sds = [spreads[game] for game, _, _ in games]
        rows.append(_row("Overall", sds, min(many for *_, many in games), level, 1))
    return rows


def _row(label: str, sds: Sequence[float], episodes: int, level: float, tests: int) -> Needed:
    games, sd = len(sds), float(np.sqrt(np.mean(np.square(sds))))

    def need(points: int, at: float) -> int:
        return needed_episodes(points, sds, games=games, level=at)

    shown = POINTS["Overall" if games > 1 else "game"]
    pairs = {points: (need(points, level), need(points, level / tests)) for points in shown}
    found = detectable(episodes, sds, games=games, level=level) if episodes > 1 else None
    return Needed(label, games, episodes, sd, pairs, found, level)


def needed_grids(rows: Sequence[Needed]) -> Iterator[Grid]:
    """Yield a table of the games, and one of the Overall."""
    at = f"{100 * rows[0].level:.3g} %" if rows else ""
    at += ", that of each planned look" * (at != "5 %")
    note = (
        "Episodes that each side needs for four of five comparisons of two runs to show a "
        f"difference by so many points (t test, {at}; in brackets: where all games of the run are "
        "tested, by Holm), and the smallest difference that the planned ones show. sd: of one "
        "run's score, pooled over the paper's published models; sides, and "
        "games that share chance, are taken to be independent; of sides under common chance fewer "
        "episodes are needed."
    )
    for points in POINTS.values():
        lines = [
            (row.label, row.sd, *map(_both, row.pairs.values()), row.episodes, row.found)
            for row in rows
            if tuple(row.pairs) == points
        ]
        heads = {"game": "", "sd": ".1f"} | {f"by {many}": ">" for many in points}
        if lines:
            last = rows[-1].label == lines[-1][0]
            yield Grid(heads | {"planned": "d", "show": ".1f"}, lines, note=note * last)


def _both(pairs: tuple[int, int]) -> str:
    one, corrected = pairs
    return f"{one} ({corrected})" if corrected > one else str(one)
