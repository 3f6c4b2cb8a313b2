"""False alarms and power of the tests, by simulation.

``python -m llm_games.benchmarks.studies.alarms [--sims N] [--seed S] [--into FILE]``
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import numpy as np

from llm_games.benchmarks.judge import intervals, paired
from llm_games.benchmarks.judge.pairwise_ratings import plackett_luce
from llm_games.benchmarks.studies import shapes
from llm_games.benchmarks.studies.coverage import races
from llm_games.benchmarks.studies.markdown import MarkdownTable, share, write
from llm_games.benchmarks.studies.shapes import Shape
from llm_games.rulebook import Array

ALPHA = 0.05
SIZES = (3, 5, 10, 20)
GAMES = 8
Law = Callable[[int], Array]  # draws so many differences, (n, sims)


def t_test(columns: Sequence[Array]) -> Array:
    """p-values for a batch; 1 without spread."""
    mean, error, df = intervals.welch(columns)
    flat = error <= intervals.EQUAL * np.max([np.abs(c).max(axis=0) for c in columns], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(flat, 1.0, paired.two_sided(mean, error, df))


def alarms(p: Array, level: float = ALPHA) -> str:
    return share(float((p <= level).mean()))


def normal_pairs(rng: np.random.Generator, n: int, sims: int, gap: float, rho: float) -> Array:
    """Return differences of runs of deviation 1 that common chance correlates."""
    return gap + np.sqrt(2 * (1 - rho)) * rng.standard_normal((n, sims))


# -- one game --------------------------------------------------------------------------------------


def one_game(rng: np.random.Generator, sims: int) -> Iterator[MarkdownTable]:
    near, rare = shapes.smooth()[2], shapes.rare()[2]
    ties, *_, win, _ = shapes.tied()

    def normal(gap: float, rho: float) -> Law:
        return lambda n: normal_pairs(rng, n, sims, gap, rho)

    def alike(shape: Shape) -> Law:
        return lambda n: shape.draw(rng, n, sims) - shape.draw(rng, n, sims)

    laws = {"normal": normal(0, 0), "normal, rho = .5": normal(0, 0.5)}
    laws |= {f"{shape.name}, both sides": alike(shape) for shape in (near, ties, win, rare)}
    laws[f"{near.name}, against always 90"] = lambda n: near.draw(rng, n, sims) - near.mean
    yield _both("False alarms in one game at 5 %: paired t · sign flip", laws)
    powers = {
        f"{gap:g} sd of a run, rho = {rho}": normal(gap, rho)
        for rho in (0.0, 0.5)
        for gap in (1, 2, 4)
    }
    yield _both("Power in one game, normal: paired t · sign flip", powers)


def _both(heading: str, laws: dict[str, Law]) -> MarkdownTable:
    rows = []
    for name, law in laws.items():
        changes = [law(n) for n in SIZES]
        rows.append(
            [name, *(f"{alarms(t_test([c]))} · {alarms(paired.flipped(c))}" for c in changes)]
        )
    return MarkdownTable(heading, ["differences", *map("n = {}".format, SIZES)], rows)


# -- many games ------------------------------------------------------------------------------------


def many_games(rng: np.random.Generator, sims: int) -> Iterator[MarkdownTable]:
    cells = np.array([[cell.quantile(_EDGES).std() for cell in row] for row in shapes.published()])
    spreads = np.median(cells, axis=0)[:GAMES]
    signs = np.array([1, -1, 1, -1, 1, -1, 1, -1])
    gaps = {
        "no game differs": np.zeros(GAMES),
        "games differ by 5 to 12, the Overall does not": signs * np.repeat([5, 8, 10, 12], 2),
        "each game by 5": np.full(GAMES, 5.0),
        "one game by 25": 25.0 * (np.arange(GAMES) == 1),
        "half the games by 3 sd": 3 * spreads * (np.arange(GAMES) % 2),
    }
    rows = []
    for name, gap in gaps.items():
        for n in (5, 20):
            change = [
                g + s * np.sqrt(2) * rng.standard_normal((n, sims))
                for g, s in zip(gap, spreads, strict=True)
            ]
            rows.append([name, str(n), *_families(change, gap)])
    columns = ["truth", "n", "Overall, Welch-Satterthwaite", "stratified sign flip"]
    columns += ["Holm: any game", "Holm: a game that does not differ"]
    yield MarkdownTable("Alarms over 8 games at 5 %", columns, rows)


_EDGES = (np.arange(2000) + 0.5) / 2000


def _families(change: Sequence[Array], gap: Array) -> list[str]:
    first_draws = slice(0, 400)  # a draw of signs for each: enough of them
    flips = paired.flipped(paired.strata([c[:, first_draws] for c in change]))
    single = np.array([t_test([c]) for c in change])
    held = np.array([paired.holm(column.tolist()) for column in single.T], float).T
    null = gap == 0
    wrong = share(float((held[null] <= ALPHA).any(axis=0).mean())) if null.any() else "–"
    return [alarms(t_test(change)), alarms(flips), alarms(held.min(axis=0)), wrong]


# -- looking again ---------------------------------------------------------------------------------


def looking(rng: np.random.Generator, sims: int) -> Iterator[MarkdownTable]:
    near, win = shapes.smooth()[2], shapes.tied()[4]
    laws: dict[str, Callable[[], Array]] = {
        "normal": lambda: normal_pairs(rng, 40, sims, 0, 0),
        near.name: lambda: near.draw(rng, 40, sims) - near.draw(rng, 40, sims),
        win.name: lambda: win.draw(rng, 40, sims) - win.draw(rng, 40, sims),
        "skewed differences": lambda: near.draw(rng, 40, sims) - near.mean,
        "normal, 1 sd of the differences": lambda: 1 + rng.standard_normal((40, sims)),
        "normal, 2 sd": lambda: 2 + rng.standard_normal((40, sims)),
    }
    rows = [[name, share(float(looking_again(law()).mean()))] for name, law in laws.items()]
    columns = ["differences", "t after each from 5 to 40"]
    yield MarkdownTable("Alarms of those who look again, in all", columns, rows)


def looking_again(change: Array) -> Array:
    """Return who finds a difference by a t test after some episode from 5 on, bool (sims,)."""
    lengths = range(paired.SIZED, len(change) + 1)
    return np.min([t_test([change[:n]]) for n in lengths], axis=0) <= ALPHA


# -- ratings ---------------------------------------------------------------------------------------


def ratings(rng: np.random.Generator, sims: int) -> Iterator[MarkdownTable]:
    sizes, rows = (5, 10, 20, 50), []
    for gap in (0.0, 0.5, 1.0):
        row = [f"{gap} apart" if gap else "equal"]
        for games in sizes:
            row.append(share(share_apart(rng, gap, games, max(sims // 20, 5))))
        rows.append(row)
    heading = "Neighbours told apart by Plackett-Luce at 5 %, skills in logits"
    yield MarkdownTable(heading, ["skills", *map("{} games".format, sizes)], rows)


def share_apart(rng: np.random.Generator, gap: float, games: int, sims: int) -> float:
    names, skills, apart = [*"abcdef"], gap * np.arange(6), []
    for _ in range(sims):
        fit = plackett_luce(races(rng, names, skills, 0.0, games))
        for a, b in combinations(range(6), 2):
            if b - a == 1 or not gap:
                _, interval = fit.difference(names[b], names[a])
                assert interval is not None
                apart.append(not interval.low <= 0 <= interval.high)
    return float(np.mean(apart))


# -- planning --------------------------------------------------------------------------------------


def planning(rng: np.random.Generator, sims: int) -> Iterator[MarkdownTable]:
    need = paired.needed_episodes
    rows = []
    for sd in (3, 5, 10, 13):
        cells = [f"{need(d, sd)} ({need(d, sd, level=ALPHA / GAMES)})" for d in (5, 10, 20)]
        common = [str(need(d, sd, rho=0.5)) for d in (5, 10, 20)]
        rows.append([str(sd), *cells, *common])
    columns = ["sd of a run", "5 points", "10", "20", "rho = .5: 5 points", "10", "20"]
    yield MarkdownTable("Pairs for 80 % power at 5 % (at 5 % over 8 games)", columns, rows)
    rows = [
        [str(sd), *(str(need(d, sd, games=GAMES)) for d in (1, 2, 3, 5, 10))] for sd in (3, 5, 10)
    ]
    columns = ["sd of a run", "1 point", "2", "3", "5", "10"]
    yield MarkdownTable("Pairs in each of 8 games for a difference of the Overall", columns, rows)
    sizes = (0.25, 0.5, 0.75, 1, 1.5, 2, 3)
    rows = [
        [f"at {name}", *(str(need(d, 1, rho=0.5, level=level)) for d in sizes)]
        for name, level in (("5 %", ALPHA), ("5 % over 8 games", ALPHA / GAMES))
    ]
    columns = ["", *(f"{d:g} sd" for d in sizes)]
    yield MarkdownTable("Pairs by sd of the differences, 80 % power", columns, rows)


def tables(rng: np.random.Generator, sims: int) -> Iterator[MarkdownTable]:
    for make in (one_game, many_games, looking, ratings, planning):
        yield from make(rng, sims)


if __name__ == "__main__":
    write("alarms", tables, 4000)
