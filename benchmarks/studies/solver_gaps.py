"""Convergence of solvers of small games to equilibrium, and of Q-learning to the best response.

``python -m llm_games.benchmarks.studies.solver_gaps`` plays the games of ``solver_gaps.toml``, row
by row, and resumes where it was stopped. Gaps are NashConv in percent of uniform play's; of regret
matching the mean of the seeds (least to most), and what is left to gain in its joint play.
``rational`` is asked 1,000 times in each information set.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.players import make_player
from llm_games.baselines.training.cfr import CFR
from llm_games.baselines.training.fictitious_play import FictitiousPlay
from llm_games.baselines.training.regret_matching import (
    RegretMatching,
    SwapRegretMatching,
    normal_form,
)
from llm_games.baselines.training.solving import Solver
from llm_games.baselines.tree import Tree
from llm_games.benchmarks.show.page import canvas
from llm_games.benchmarks.show.page.plot_style import CYCLE, DASHES, Look
from llm_games.benchmarks.studies.dated import RESULTS, markdown, read, settings, today, write
from llm_games.benchmarks.studies.training_gains import TrainingResult, record, text, train
from llm_games.errors import BadParameter
from llm_games.registry import rulebook
from llm_games.version import __version__

FILE = RESULTS / "solver_gaps.csv"
SETTINGS = settings(__file__)
SOLVERS: dict[str, type[Solver]] = {"cfr": CFR, "fictitious_play": FictitiousPlay}
DRAWN: dict[str, type[Solver]] = {
    "regret_matching": RegretMatching,
    "regret_matching --swap": SwapRegretMatching,
}
RATIONAL = "rational"
DRAWS = 1000
"""How often a rational player that draws is asked in each information set."""
LEARNED = RESULTS / "q_learning_gaps.csv"
FOLDER = Path("trainings", "tabular")


class SolverPoint(NamedTuple):
    """A solver after so many iterations: how far from equilibrium, and what the seats then get.

    `nash_conv` is exact, of the average strategies; `uniform` that of uniform play. Of regret
    matching, `joint` is the gain left in how often joint moves were played; else NaN.
    """

    game: str
    method: str
    seed: int
    iteration: int
    nash_conv: float
    joint: float
    uniform: float
    payoffs: str
    cpu_seconds: float
    day: str
    package: str


def solved(name: str, tree: Tree, method: str, seed: int, iterations: int) -> Iterator[SolverPoint]:
    solver = (SOLVERS | DRAWN)[method](tree, seed)
    began = time.process_time()
    for number in range(1, iterations + 1):
        solver.step(number)
        if not number & (number - 1):
            kind = "tree/correlated" if "swap" in method else "tree/coarse"
            about = {"method": method, "seed": seed, "iteration": number}
            about["joint"] = solver.measures().get(kind, np.nan)
            yield point(name, tree, solver.average(), time.process_time() - began, **about)


def point(name: str, tree: Tree, strategy: Any, spent: float, **about: Any) -> SolverPoint:
    worth = " ".join(f"{value:.4g}" for value in tree.worth(strategy)[0])
    return SolverPoint(
        game=name,
        **about,
        nash_conv=tree.nash_conv(strategy),
        uniform=tree.nash_conv(tree.uniform()),
        payoffs=worth,
        cpu_seconds=round(spent, 2),
        day=today(),
        package=__version__,
    )


def play(game: Mapping[str, Any], held: set[tuple[str, str, int]]) -> Iterator[list[SolverPoint]]:
    name, rules = game["name"], rulebook(game["game"], **game["params"])
    tree = Tree(rules)
    if (name, RATIONAL, 1) not in held:
        strategy = tree.strategy_of(make_player(RATIONAL, rules), DRAWS)
        about = {"method": RATIONAL, "seed": 1, "iteration": 0, "joint": np.nan}
        yield [point(name, tree, strategy, 0.0, **about)]
    runs = [(method, 1, SETTINGS["iterations"]) for method in SOLVERS]
    try:
        normal_form(tree)
        runs += [(m, seed, SETTINGS["plays"]) for m in DRAWN for seed in SETTINGS["seeds"]]
    except BadParameter:  # several moves, or private information
        pass
    for method, seed, iterations in runs:
        if (name, method, seed) not in held:
            yield [*solved(name, tree, method, seed, iterations)]


def table(points: list[SolverPoint]) -> str:
    """Return the table of distances from equilibrium, in percent of uniform play's."""
    lines = list[list[str]]()
    for game in dict.fromkeys(p.game for p in points):
        for method in dict.fromkeys(p.method for p in points if p.game == game):
            by_iteration: dict[int, list[SolverPoint]] = {}
            for p in points:
                if (p.game, p.method) == (game, method):
                    by_iteration.setdefault(p.iteration, []).append(p)
            ends = by_iteration[max(by_iteration)]
            cells = [shown(by_iteration.get(n, [])) for n in (16, 128, 1024, 8192)]
            label = f"`{method}`" + (f": {shown(ends)}" if method == RATIONAL else "")
            joint = "" if np.isnan(ends[0].joint) else shown(ends, "joint")
            payoffs = ends[0].payoffs if len(ends) == 1 else ""
            lines.append([game, label, *cells, joint, payoffs])
    heads = ["game", "method", "after 16", "128", "1,024", "8,192"]
    return markdown([*heads, "joint play", "payoffs at the end"], lines)


def shown(points: list[SolverPoint], what: str = "nash_conv") -> str:
    """Return a mean in percent of uniform play's, and the least and the most of several seeds."""
    if not points:
        return ""
    values = [100 * getattr(p, what) / p.uniform for p in points]
    mean, low, high = (short(end(values)) for end in (np.mean, np.min, np.max))
    return f"{mean} ({low} to {high})" if len(values) > 1 else mean


def short(value: float) -> str:
    """Return a number with at least two digits."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def drawing(axes: Any, points: list[SolverPoint]) -> str:
    """Draw each game's distance from equilibrium by iteration, in percent of uniform play's."""
    for number, method in enumerate([*SOLVERS, *DRAWN]):
        look = Look(CYCLE[number], dash=DASHES[number])
        for index, game in enumerate(dict.fromkeys(p.game for p in points if p.method == method)):
            gaps: dict[int, list[float]] = {}
            for p in points:
                if (p.game, p.method) == (game, method):
                    gaps.setdefault(p.iteration, []).append(p.nash_conv / p.uniform)
            means = np.array([100 * np.mean(gaps[k]) for k in sorted(gaps)])
            means = np.where(means > 0, means, np.nan)  # an equilibrium has no place on the scale
            drawn = {"color": look.colour, "linestyle": look.dash, "linewidth": 1}
            axes.plot(sorted(gaps), means, **drawn, label="_nolegend_" if index else method)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.6g}")
        axis.set_minor_formatter(lambda value, _: "")
    axes.set_xlabel("iterations, or plays")
    axes.set_ylabel("NashConv, percent of uniform play's")
    return "A line is a game; of regret matching it is the mean of the seeds."


# -- all of it -------------------------------------------------------------------------------------


def page() -> str:
    learners = text(read(TrainingResult, LEARNED))
    return f"{table(read(SolverPoint, FILE))}\n\nQ-learning beside the best response:\n\n{learners}"


def svg() -> str:
    points = read(SolverPoint, FILE)
    return canvas.picture("solvers", "Solvers", lambda axes: drawing(axes, points), (8, 4.6)).svg


def main() -> None:
    for game in SETTINGS["games"]:
        held = {(p.game, p.method, p.seed) for p in read(SolverPoint, FILE)}
        for new in play(game, held):
            write([*read(SolverPoint, FILE), *new], FILE)
    for seed in SETTINGS["seeds"]:
        for about in SETTINGS["learners"]:
            done = {(row.experiment, row.seed) for row in read(TrainingResult, LEARNED)}
            if (about["name"], seed) not in done:
                record([train(about, seed, FOLDER)], LEARNED)


if __name__ == "__main__":
    main()
