"""How many episodes a comparison of two runs needs, and what the planned ones can find."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.batch_play import TooManyTurns, play_rules
from llm_games.benchmarks.judge.compare import LEVEL
from llm_games.benchmarks.judge.paired import MOST, detectable, fewest, needed_episodes, shown
from llm_games.benchmarks.judge.paper import SCORED, score, scorings
from llm_games.benchmarks.judge.result_table import ResultTable
from llm_games.benchmarks.run.plan import PlannedGame, RunPlan
from llm_games.rulebook import Array

POINTS = {"game": (5, 10, 20), "Overall": (1, 2, 3, 5, 10)}  # differences that are to be shown
PLAYED, FEWEST, MOVES = 2000, 50, 300_000  # random players' episodes, most and least, and moves
SIMULATED = 30  # up to so many pairs of scores that were seen are simulated
WANTED = 0.8
PUBLISHED, RANDOM = "published", "random"


class PairSpread(NamedTuple):
    """`sd` is of one run's score; `of` says whose, `scores` are theirs if we have them."""

    sd: float
    of: str
    scores: Array | None = None


class Needed(NamedTuple):
    """Episodes that show a difference between two runs in four of five comparisons (80 % power).

    `label` is a game's, or ``Overall``, the mean over `games`. `sd` is that of one run's score, the
    root mean square over games, `of` those runs: ``published``, or of ``random`` players; `pairs`
    are the episodes of each side, by points: for one t test, and corrected (Holm) for all games.
    `found` is the smallest difference that the planned `episodes` show, or None.
    """

    label: str
    games: int
    episodes: int
    sd: float
    pairs: dict[int, tuple[int, int]]
    found: float | None
    of: str = PUBLISHED

    def plain(self) -> dict[str, Any]:
        return self._asdict()


def needed(plan: RunPlan) -> list[Needed]:
    """Return what each game needs that a paper scores, and their Overall, last, if there are more.

    The spread of a game at the paper's own parameters is what published runs have; of any other it
    is that of random players. Sides are taken to be independent.
    """
    all_scorings = scorings()
    scored = {name for scoring in all_scorings for name in scoring.games}
    spreads, games = dict[str, PairSpread](), list[tuple[PlannedGame, str]]()
    for game in plan.games:
        key = f"{game.rules().core!r} {game.given} {game.max_steps}"
        if game.game in scored and key not in spreads:
            usual = not (game.given or game.max_steps)
            sds = [scoring.spread(game.rules(), plan.scoring) for scoring in all_scorings if usual]
            sd = next(filter(None, sds), None)
            spreads[key] = PairSpread(sd, PUBLISHED) if sd else _random(game, plan.scoring)
        if key in spreads and spreads[key].sd:
            games.append((game, key))
    first = {(key, len(game.seeds)): game for game, key in reversed(games)}  # of all alike, one
    rows = [
        _row(game.label, [spreads[key]], len(game.seeds), len(games))
        for game, key in games
        if first[key, len(game.seeds)] is game
    ]
    if len(games) > 1:
        least = min(len(game.seeds) for game, _ in games)
        rows.append(_row("Overall", [spreads[key] for _, key in games], least, 1))
    return rows


def _random(game: PlannedGame, edition: str) -> PairSpread:
    """Of random players; 0 where they have no scores, or all the same."""
    rules = game.rules().core
    moves = rules.players * (game.max_steps or rules.length() or MOVES)
    episodes = min(PLAYED, max(FEWEST, MOVES // moves))
    first = int(sha256(game.game.encode()).hexdigest()[:12], 16)
    try:
        seeds = range(first, first + episodes)
        played = play_rules(rules, ["random"] * rules.players, seeds, game.given, game.max_steps)
    except TooManyTurns:
        return PairSpread(0.0, RANDOM)
    scores = [score(rules, played.records_of(table), edition) for table in range(episodes)]
    if any(value is None for value in scores):
        return PairSpread(0.0, RANDOM)
    numbers = np.array(scores, np.float64)
    return PairSpread(float(numbers.std(ddof=1)), RANDOM, numbers)


def _row(label: str, spreads: Sequence[PairSpread], episodes: int, tests: int) -> Needed:
    sds, of = [spread.sd for spread in spreads], " and ".join(sorted({s.of for s in spreads}))
    games, sd = len(sds), float(np.sqrt(np.mean(np.square(sds))))
    scores = spreads[0].scores if games == 1 else None

    def need(points: int, level: float) -> int:
        guess = needed_episodes(points, sds, games=games, level=level, wanted=WANTED)
        if scores is None or guess > SIMULATED:
            return guess
        smallest_shown = partial(shown, scores=scores, level=level)
        return fewest(lambda n: bool(np.mean(smallest_shown(n) <= points) >= WANTED), guess) or MOST

    def find() -> float | None:
        if episodes < 2:
            return None
        if scores is None or episodes > SIMULATED:
            by = detectable(episodes, sds, games=games, level=LEVEL, wanted=WANTED)
        else:
            by = float(np.quantile(shown(episodes, scores, LEVEL), WANTED, method="higher"))
        return by if by <= SCORED[1] - SCORED[0] else None

    steps = POINTS["Overall" if games > 1 else "game"]
    pairs = {points: (need(points, LEVEL), need(points, LEVEL / tests)) for points in steps}
    about: Any = {"label": label, "games": games, "episodes": episodes, "sd": sd}
    return Needed(**about, pairs=pairs, found=find(), of=of)


def needed_grids(rows: Sequence[Needed]) -> Iterator[ResultTable]:
    note = (
        "Episodes that each side needs for four of five comparisons of two runs to show a "
        "difference by so many points (t test, 5 %; in brackets: where all games of the run are "
        "tested, by Holm), and the smallest difference that the planned ones show, if scores can "
        "differ by so much. sd: of one "
        "run's score, pooled over the paper's published models; at other parameters than the "
        "paper's it is that of random players, who are taken to sit in all seats of both sides of "
        "this very game (not where they all score alike). Sides, and games that share chance, "
        "are taken to be independent; of sides under common chance fewer episodes are needed."
    )
    for points in POINTS.values():
        lines = [
            (row.label, row.sd, row.of, *map(_both, row.pairs.values()), row.episodes, row.found)
            for row in rows
            if tuple(row.pairs) == points
        ]
        heads = {"game": "", "sd": ".1f", "of": ""} | {f"by {step}": ">" for step in points}
        if lines:
            last = rows[-1].label == lines[-1][0]
            yield ResultTable(heads | {"planned": "d", "show": ".1f"}, lines, note=note * last)


def _both(pairs: tuple[int, int]) -> str:
    single, corrected = pairs
    return f"{single} ({corrected})" if corrected > single else str(single)
