"""How often the intervals hold the true value, by simulation.

``python -m llm_games.benchmarks.studies.coverage [--sims N] [--seed S] [--into FILE]``
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from llm_games.baselines.batch_play import best_reply_gap
from llm_games.benchmarks.judge import intervals
from llm_games.benchmarks.judge.pairwise_ratings import plackett_luce
from llm_games.benchmarks.judge.variance import pass_k, variance_parts
from llm_games.benchmarks.studies import shapes
from llm_games.benchmarks.studies.markdown import MarkdownTable, share, write
from llm_games.benchmarks.studies.shapes import Shape
from llm_games.rulebook import Array

LEVEL = 0.95
SIZES = (2, 3, 5, 10, 20, 50)
Method = Callable[[Array], intervals.Ends]  # of values (n, sims)


class Covered(NamedTuple):
    """The share of intervals that contained the true value, and their mean width."""

    share: float
    width: float

    def written(self, digits: int = 0) -> str:
        return share(*self, digits)


def covered(ends: intervals.Ends, truth: Array | float) -> Covered:
    """Coverage of a batch of intervals; an end at the true value counts."""
    low, high = ends
    slack = 1e-9 * np.maximum(1, np.abs(truth))
    held = (low - slack <= truth) & (truth <= high + slack)
    return Covered(float(held.mean()), float((high - low).mean()))


def rule(x: Array, low: float = 0.0, high: float = 100.0) -> intervals.Ends:
    return intervals.score_ends(x, low, high, LEVEL)[:2]


def gaffke(x: Array) -> intervals.Ends:
    return intervals.gaffke_ends(x, 0.0, 100.0, LEVEL)


def student(x: Array) -> intervals.Ends:
    return intervals.student_t(x, LEVEL)


def of_shape(shape: Shape, method: Method, n: int, rng: np.random.Generator, sims: int) -> Covered:
    return covered(method(shape.draw(rng, n, sims)), shape.mean)


def one_by_one(samples: Array) -> intervals.Ends:
    ends = np.array([(intervals.money(sample) or ())[:2] for sample in samples.T])
    return ends[:, 0], ends[:, 1]


def by_size(
    heading: str, first: str, sizes: Sequence[int], rows: Sequence[Sequence[str]]
) -> MarkdownTable:
    return MarkdownTable(heading, [first, *map("n = {}".format, sizes)], rows)


# -- tables ----------------------------------------------------------------------------------------


def scores(rng: np.random.Generator, sims: int) -> Iterator[MarkdownTable]:
    all_shapes = (*shapes.smooth(), *shapes.tied(), *shapes.rare())
    for name, method, samples in (
        ("`score`: logit-t, or Gaffke where more than half are equal", rule, sims),
        ("Student's t on the same shapes, for comparison", student, sims),
        ("`gaffke` alone", gaffke, sims // 4),
    ):
        rows = [
            [shape.name, *(of_shape(shape, method, n, rng, samples).written() for n in SIZES)]
            for shape in all_shapes
        ]
        yield by_size(f"{name}; scores 0 to 100", "shape", SIZES, rows)


def published(rng: np.random.Generator, sims: int) -> Iterator[MarkdownTable]:
    names = ["one game: mean", "one game: least of all", "one game, Student's t: mean"]
    names += ["Overall: mean over models", "Overall: least of all", "Overall, eight of the above"]
    wild = (*shapes.tied()[:4], *shapes.rare(), shapes.smooth()[2])
    columns = []
    for n in SIZES[:-1]:
        cells, plain, wholes = [], [], []
        for row in shapes.published():
            drawn = [shape.draw(rng, n, sims) for shape in row]
            for x, shape in zip(drawn, row, strict=True):
                if np.ptp(x):
                    cells.append(covered(rule(x), shape.mean))
                    plain.append(covered(student(x), shape.mean))
            wholes.append(whole(drawn, row))
        mixed = whole([shape.draw(rng, n, sims) for shape in wild], wild)
        games = _mean(cells), min(cells), _mean(plain)
        columns.append([*games, _mean(wholes), min(wholes), mixed])
    rows = [[name, *(c[i].written(1) for c in columns)] for i, name in enumerate(names)]
    heading = "Beta laws with mean and deviation of each cell of the published leaderboard"
    yield by_size(heading, "", SIZES[:-1], rows)


def whole(columns: Sequence[Array], row: Sequence[Shape]) -> Covered:
    mean, error, df = intervals.welch(columns)
    ends = np.clip(intervals.t_ends(mean, error, df, LEVEL), 0, 100)
    return covered((ends[0], ends[1]), float(np.mean([shape.mean for shape in row])))


def _mean(coverages: Sequence[Covered]) -> Covered:
    return Covered(*np.mean(coverages, axis=0).tolist())


def money(rng: np.random.Generator, sims: int) -> Iterator[MarkdownTable]:
    """Yield the table of means without bounds; the bootstrap's with a twentieth of the samples."""
    rows = []
    for shape in shapes.payoffs():
        row = [shape.name]
        for n in SIZES:
            samples = sims if n < intervals.ENOUGH else max(sims // 10, 10)
            x = shape.draw(rng, n, samples)
            ends = student(x) if n < intervals.ENOUGH else one_by_one(x)
            row.append(covered(ends, shape.mean).written(1))
        rows.append(row)
    yield by_size("`money`; widths in units of the law", "shape", SIZES, rows)


def shares(rng: np.random.Generator, sims: int) -> Iterator[MarkdownTable]:
    """Yield the tables of shares: of independent episodes, exact, and of seats, simulated."""
    ps = np.arange(1, 50) / 50
    rows = []
    for name, prior in (("Jeffreys", 0.5), ("Clopper-Pearson", 0.0)):
        coverages = [exact_shares(ps, n, prior) for n in SIZES]
        rows.append([f"{name}: mean", *(_mean(each).written(2) for each in coverages)])
        rows.append([f"{name}: least", *(share(min(each).share) for each in coverages)])
    yield by_size("`share` of independent episodes, exact, over p = .02 to .98", "", SIZES, rows)
    rows = []
    for icc, p in product((0.0, 0.3), (0.5, 0.85)):
        samples = (survivals(rng, p, icc, n, sims) for n in SIZES[2:])
        cells = [covered(rule(x, 0.0, 1.0), p).written(2) for x in samples]
        rows.append([f"p = {p}, ICC = {icc}", *cells])
    yield by_size("`seats`: shares of 5 seats by episode", "", SIZES[2:], rows)


def exact_shares(ps: Array, n: int, prior: float) -> list[Covered]:
    """Coverage at each p, by summing over all counts."""
    from scipy.special import bdtr

    counts = np.arange(n + 1)
    low, high = intervals.share_ends(counts, n, prior, LEVEL)
    upto = np.stack([np.zeros(len(ps)), *(bdtr(k, n, ps) for k in counts)])
    weights = np.diff(upto, axis=0)  # (counts, ps)
    held = (low[:, None] <= ps) & (ps <= high[:, None])
    width = (weights * (high - low)[:, None]).sum(axis=0)
    return [Covered(*pair) for pair in zip((weights * held).sum(axis=0), width, strict=True)]


def survivals(rng: np.random.Generator, p: float, icc: float, n: int, sims: int) -> Array:
    """Return shares of 5 seats that agree within an episode by the intra-class correlation."""
    size = 1 / icc - 1 if icc else np.inf
    chance = rng.beta(p * size, (1 - p) * size, (n, sims)) if icc else p
    return rng.binomial(5, chance, (n, sims)) / 5


def correlations(rng: np.random.Generator, sims: int) -> Iterator[MarkdownTable]:
    rows = []
    for rho in (0.0, 0.5, 0.8):
        truth = 6 / np.pi * np.arcsin(rho / 2)
        each_r = ((n, spearman(rng, np.full(sims, rho), n)) for n in SIZES[3:])
        coverages = [covered(intervals.correlation_ends(r, n, LEVEL), truth) for n, r in each_r]
        rows.append([f"`correlation`, rho = {rho}", "", *(each.written(2) for each in coverages)])
    samples = (
        spearman(rng, rng.uniform(0.2, 0.8, n * sims), 20).reshape(n, sims) for n in SIZES[2:]
    )
    coverages = [covered(rule(r, -1.0, 1.0), r.mean()) for r in samples]
    rows.append(["`score` of the correlations of n episodes", *(c.written(2) for c in coverages)])
    yield by_size("Spearman's correlation", "", SIZES[2:], rows)


def spearman(rng: np.random.Generator, rho: Array, n: int) -> Array:
    """Return sample correlations of n normal pairs, one for each entry of `rho`."""
    x = rng.standard_normal((n, len(rho)))
    y = rho * x + np.sqrt(1 - rho**2) * rng.standard_normal((n, len(rho)))
    ranks = [each.argsort(axis=0).argsort(axis=0) - (n - 1) / 2 for each in (x, y)]
    return np.asarray((ranks[0] * ranks[1]).sum(axis=0) / (n * (n * n - 1) / 12))


def ratings(rng: np.random.Generator, sims: int) -> Iterator[MarkdownTable]:
    sizes, rows = (5, 10, 20, 50), []
    for gap, seat in product((0.0, 0.5), (0.0, 1.0)):
        few = [5] if seat else []  # too few to tell seats from players
        cells = (
            "–" if games in few else rated(rng, gap, seat, games, max(sims // 20, 5)).written(1)
            for games in sizes
        )
        rows.append([f"skills {gap} apart{f', seat 0 worth {seat}' if seat else ''}", *cells])
    heading = "Plackett-Luce, differences of pairs, players in shuffled seats; width in logits"
    yield MarkdownTable(heading, ["", *map("{} games".format, sizes)], rows)


def rated(rng: np.random.Generator, gap: float, seat: float, games: int, sims: int) -> Covered:
    """Try the intervals of all differences of 6 players; with a `seat`, its effect is fitted."""
    names, skills = [*"abcdef"], gap * np.arange(6)
    rows: list[tuple[float, float, float]] = []
    for _ in range(sims):
        fit = plackett_luce(races(rng, names, skills, seat, games), seats=bool(seat))
        for a, b in combinations(range(6), 2):
            _, interval = fit.difference(names[b], names[a])
            assert interval is not None
            rows.append((interval.low, interval.high, skills[b] - skills[a]))
    low, high, truth = np.array(rows).T
    return covered((low, high), truth)


def races(
    rng: np.random.Generator, names: Sequence[str], skills: Array, seat: float, games: int
) -> list[tuple[list[str], list[float]]]:
    """Draw games of a Plackett-Luce model; whoever sits in seat 0 has `seat` more."""
    games_drawn = []
    for _ in range(games):
        order = rng.permutation(len(names))
        result = skills[order] + seat * (np.arange(len(names)) == 0) + rng.gumbel(size=len(names))
        games_drawn.append(([names[i] for i in order], result.tolist()))
    return games_drawn


def gaps(rng: np.random.Generator, sims: int) -> Iterator[MarkdownTable]:
    sizes, shades = SIZES[1:5], {"the best reply": 0.75, "shade .9": 0.9, "truthful": 1.0}
    rows = gap_rows(rng, sims // 4, shades, sizes)
    columns = ["plays", "true gap", *map("n = {}".format, sizes), "called above 0"]
    heading = "Best-reply gap of 21 shades; an episode is 10 first-price auctions"
    yield MarkdownTable(heading, columns, rows)


def gap_rows(
    rng: np.random.Generator, sims: int, shades: dict[str, float], sizes: Sequence[int]
) -> list[list[str]]:
    """Return rows of players by their shade: true gap, coverage, share of gaps above 0."""
    rows = []
    for name, shade in shades.items():
        # Against uniform values of others who shade alike, 3/4 is the best reply of 4 bidders.
        truth = float(bids(rng, shade, 20_000).mean(axis=0).max()) if shade != 0.75 else 0.0
        held, shares_above_0 = [], []
        for n in sizes:
            gains = bids(rng, shade, n * sims).reshape(sims, n, -1)
            gap_ends = np.array([best_reply_gap(each)[2:4] for each in gains], float)
            held.append(covered((gap_ends[:, 0], gap_ends[:, 1]), truth).written(2))
            shares_above_0.append(share(float((gap_ends[:, 0] > 0).mean())))
        rows.append([name, f"{truth:.2f}", *held, " ".join(shares_above_0)])
    return rows


def bids(rng: np.random.Generator, shade: float, episodes: int) -> Array:
    """Return gains of 21 shades over a bidder's own, ``(episodes, 21)``; values up to 10."""
    value = rng.uniform(0, 10, (episodes, 10, 1))
    others = 0.75 * rng.uniform(0, 10, (episodes, 10, 3)).max(axis=2, keepdims=True)
    shades = np.append(np.linspace(0.5, 1, 21), shade)
    earned = (value * (1 - shades) * (shades * value > others)).sum(axis=1)
    return earned[:, :-1] - earned[:, -1:]


def reliabilities(rng: np.random.Generator, sims: int) -> Iterator[MarkdownTable]:
    chances = {"all at .5": np.full(8, 0.5), "all at .9": np.full(8, 0.9)}
    chances["from .3 to 1"] = np.linspace(0.3, 1, 8)
    rows = []
    for (name, p), k in product(chances.items(), (2, 5)):
        coverages = [passed(rng, p, n, k, sims // 4) if n >= 2 * k else None for n in SIZES[2:]]
        rows.append([name, str(k), *(each.written(2) if each else "–" for each in coverages)])
    columns = ["shares", "k", *map("n = {}".format, SIZES[2:])]
    yield MarkdownTable("`pass_k`, 8 tasks", columns, rows)
    true = (4.0, 9.0, 16.0, 36.0)
    parts = np.array([split(rng, true) for _ in range(max(sims // 4, 10))])
    rows = [
        ["true variance", *(f"{v:g}" for v in true)],
        ["mean estimate", *(f"{v:.1f}" for v in parts.mean(axis=0))],
        ["deviation of estimates", *(f"{v:.1f}" for v in parts.std(axis=0))],
        ["share below 0", *(share(v) for v in (parts < 0).mean(axis=0))],
    ]
    names = ["5 x 5 x 5 runs", "wording", "seat", "chance", "rest and sampling"]
    yield MarkdownTable("`variance_parts`", names, rows)


def passed(rng: np.random.Generator, p: Array, n: int, k: int, sims: int) -> Covered:
    """Try the interval of pass^k on tasks of such chances."""
    counts = (rng.binomial(n, p).tolist() for _ in range(sims))
    low, high = np.array([pass_k(c, [n] * len(p), k).interval[:2] for c in counts]).T
    return covered((low, high), float((p**k).mean()))


def split(rng: np.random.Generator, true: Sequence[float]) -> list[float]:
    """Return the estimated parts of one crossed design of 5 levels each."""
    sd = np.sqrt(true)
    values = sd[3] * rng.standard_normal((5, 5, 5))
    for axis in range(3):
        shape = [5 if axis == other else 1 for other in range(3)]
        values = values + sd[axis] * rng.standard_normal(shape)
    return [part.variance for part in variance_parts(values, ("wording", "seat", "chance"))]


def tables(rng: np.random.Generator, sims: int) -> Iterator[MarkdownTable]:
    for make in (scores, published, money, shares, correlations, ratings, gaps, reliabilities):
        yield from make(rng, sims)


if __name__ == "__main__":
    write("coverage", tables, 4000)
