"""How many episodes a comparison of two runs needs, and what the planned ones can find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.skill import TooManyTurns, play_rules
from llm_games.benchmarks.runs.compare import LEVEL
from llm_games.benchmarks.runs.grid import Grid
from llm_games.benchmarks.runs.paper import score, scorings
from llm_games.benchmarks.runs.plan import PlannedGame, RunPlan
from llm_games.benchmarks.stats.comparing import detectable, look_level, needed_episodes
from llm_games.registry import rulebook

POINTS = {"game": (5, 10, 20), "Overall": (1, 2, 3, 5, 10)}  # differences that are to be shown
PLAYED, FEWEST, MOVES = (
    500,
    50,
    40_000,
)  # episodes of random players, at most and least; their moves
PUBLISHED, RANDOM = "published", "random"


class Needed(NamedTuple):
    """Episodes that show a difference between two runs in four of five comparisons (80 % power).

    `label` is a game's, or ``Overall``, the mean over `games`. `sd` is that of one run's score, the
    root mean square over games, `of` those runs: ``published``, or of ``random`` players; `pairs`
    are the episodes that each side needs, by points: for one t test, and where the games of the run
    are corrected for one another (Holm). `found` is the smallest difference that the planned
    `episodes` show; None for one episode. Tests are at 5 %, or at the `level` of each planned look.
    """

    label: str
    games: int
    episodes: int
    sd: float
    pairs: dict[int, tuple[int, int]]
    found: float | None
    level: float = LEVEL
    of: str = PUBLISHED

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        return self._asdict()


def needed(plan: RunPlan) -> list[Needed]:
    """Return what each game needs that a paper scores, and their Overall, last, if there are more.

    The spread of a game at the paper's own parameters is what published runs have; of any other it
    is that of random players in all seats of this very game. Sides are taken to be independent.
    """
    published = {name: sd for found in scorings() for name, sd in found.spreads().items()}
    spreads, games = dict[str, tuple[float, str]](), list[tuple[PlannedGame, str]]()
    for game in plan.games:
        if published.get(game.game):
            key = f"{game.rules().core!r} {game.given} {game.max_steps}"
            if key not in spreads:
                usual = game.rules().core == rulebook(game.game).core and not game.given
                known = (published[game.game], PUBLISHED)
                spreads[key] = known if usual else (_spread(game, plan.scoring), RANDOM)
            if spreads[key][0]:
                games.append((game, key))
    first = {(key, len(game.seeds)): game for game, key in reversed(games)}  # of all alike, one
    level = look_level(plan.looks, LEVEL) if plan.looks else LEVEL
    rows = [
        _row(game.label, [spreads[key]], len(game.seeds), level, len(games))
        for game, key in games
        if first[key, len(game.seeds)] is game
    ]
    if len(games) > 1:
        least = min(len(game.seeds) for game, _ in games)
        rows.append(_row("Overall", [spreads[key] for _, key in games], least, level, 1))
    return rows


def _spread(game: PlannedGame, edition: str) -> float:
    """Return the standard deviation of a score of random players; 0 where they have none."""
    rules = game.rules().core
    moves = rules.players * (game.max_steps or rules.length() or MOVES)
    many = min(PLAYED, max(FEWEST, MOVES // moves))
    first = int(sha256(game.game.encode()).hexdigest()[:12], 16)
    try:
        seeds = range(first, first + many)
        played = play_rules(rules, ["random"] * rules.players, seeds, game.given, game.max_steps)
    except TooManyTurns:
        return 0.0
    scores = [score(rules, played.records_of(table), edition) for table in range(many)]
    defined = [value for value in scores if value is not None]
    return float(np.std(defined, ddof=1)) if len(defined) == many else 0.0


def _row(
    label: str, spreads: Sequence[tuple[float, str]], episodes: int, level: float, tests: int
) -> Needed:
    sds, of = [sd for sd, _ in spreads], " and ".join(sorted({of for _, of in spreads}))
    games, sd = len(sds), float(np.sqrt(np.mean(np.square(sds))))

    def need(points: int, at: float) -> int:
        return needed_episodes(points, sds, games=games, level=at)

    shown = POINTS["Overall" if games > 1 else "game"]
    pairs = {points: (need(points, level), need(points, level / tests)) for points in shown}
    found = detectable(episodes, sds, games=games, level=level) if episodes > 1 else None
    return Needed(label, games, episodes, sd, pairs, found, level, of)


def needed_grids(rows: Sequence[Needed]) -> Iterator[Grid]:
    """Yield a table of the games, and one of the Overall."""
    at = f"{100 * rows[0].level:.3g} %" if rows else ""
    at += ", that of each planned look" * (at != "5 %")
    note = (
        "Episodes that each side needs for four of five comparisons of two runs to show a "
        f"difference by so many points (t test, {at}; in brackets: where all games of the run are "
        "tested, by Holm), and the smallest difference that the planned ones show. sd: of one "
        "run's score, pooled over the paper's published models, or at other parameters than the "
        "paper's of random players in all seats of this very game; sides, and "
        "games that share chance, are taken to be independent; of sides under common chance fewer "
        "episodes are needed."
    )
    for points in POINTS.values():
        lines = [
            (row.label, row.sd, row.of, *map(_both, row.pairs.values()), row.episodes, row.found)
            for row in rows
            if tuple(row.pairs) == points
        ]
        heads = {"game": "", "sd": ".1f", "of": ""} | {f"by {many}": ">" for many in points}
        if lines:
            last = rows[-1].label == lines[-1][0]
            yield Grid(heads | {"planned": "d", "show": ".1f"}, lines, note=note * last)


def _both(pairs: tuple[int, int]) -> str:
    one, corrected = pairs
    return f"{one} ({corrected})" if corrected > one else str(one)
