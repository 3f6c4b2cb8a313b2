"""GRPO of the embedded language model.

``python -m llm_games.benchmarks.studies.grpo_gains`` runs the trainings of ``grpo_gains.toml``
one after another, and resumes where it was stopped. Payoffs are of games that were not trained on,
before and after.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.training.grpo import GRPOOptions, train
from llm_games.baselines.training.harness import curve
from llm_games.benchmarks.show.page import canvas
from llm_games.benchmarks.show.page.plot_style import CYCLE, MARKS, Look
from llm_games.benchmarks.studies.dated import (
    RESULTS,
    interval,
    made_with,
    markdown,
    read,
    settings,
    today,
    write,
)

FILE = RESULTS / "grpo_gains.csv"
SETTINGS = settings(__file__)
JUDGED = "payoff"
"""Of games that it was not trained on."""
TRAINED = "train/payoff"
"""Of the games of one update."""


class TrainingPoint(NamedTuple):
    """What a training logged after so many samples; `cpu_seconds` and what follows are of all."""

    game: str
    credit: str
    scale: str
    seed: int
    samples: int
    measure: str
    value: float
    best: float
    cpu_seconds: float
    day: str
    versions: str

    @property
    def training(self) -> tuple[str, str, str]:
        return self[:3]


def wanted() -> list[tuple[GRPOOptions, float]]:
    trainings = []
    for seed, table in product(SETTINGS["seeds"], SETTINGS["tables"]):
        shared = {key: table[key] for key in ("game", "param", "opponents")}
        for variant in table["trainings"]:
            options = GRPOOptions(**SETTINGS["common"], **shared, **variant, seed=seed)
            trainings.append((options, float(table["best"])))
    return trainings


def key(options: GRPOOptions) -> tuple[str, str, str, int]:
    return options.game, options.credit, options.scale, options.seed


def play(options: GRPOOptions, best: float) -> list[TrainingPoint]:
    began = time.process_time()
    with TemporaryDirectory() as folder:
        last = train(replace(options, folder=Path(folder)))
        logged = curve(folder)
    spent = round(time.process_time() - began, 1)
    about: Any = {"best": best, "cpu_seconds": spent, "day": today()}
    about["versions"] = made_with("trl", "transformers", "torch")
    logged_values = [
        (int(samples), name, float(value))
        for name in (JUDGED, TRAINED, "train/legal", "train/entropy")
        for samples, value in logged[name].T
    ]
    logged_values.append((options.steps, JUDGED, last.payoff))
    return [
        TrainingPoint(*key(options), samples=k, measure=name, value=v, **about)
        for k, name, v in logged_values
    ]


# -- the page -------------------------------------------------------------------------------------


def table(points: Sequence[TrainingPoint]) -> str:
    """Return the table of mean payoffs, with 95 % intervals over seeds."""
    heads = ["game", "a sample is", "scores divided by their deviation in", "seeds", "before"]
    heads += ["after", "gained", "best", "each seed after", "CPU s each"]
    lines = list[list[str]]()
    for training in dict.fromkeys(p.training for p in sorted(points, key=order)):
        training_points = [p for p in points if p.training == training]
        game, credit, scale = training
        first, last = ends(training_points)
        seconds = {p.seed: p.cpu_seconds for p in training_points}
        cells = [game, f"a {credit}", f"the {scale}", str(len(last)), f"{first.mean():.2f}"]
        cells += [f"{interval(last):.2f}", f"{interval(last - first):.2f}"]
        cells += [f"{training_points[0].best:.2f}", ", ".join(f"{value:.2f}" for value in last)]
        lines.append([*cells, f"{np.mean([*seconds.values()]):.0f}"])
    return markdown(heads, lines)


def order(point: TrainingPoint) -> int:
    trainings = [key(options)[:3] for options, _ in wanted()]
    return trainings.index(point.training)


def ends(training_points: Sequence[TrainingPoint]) -> tuple[Array, Array]:
    """Return the learner's payoffs in games of their own before and after training, by seed."""
    last = max(p.samples for p in training_points)
    by_seed = sorted((p.seed, p.samples, p.value) for p in training_points if p.measure == JUDGED)
    start, end = (np.array([v for _, k, v in by_seed if k == k0]) for k0 in (0, last))
    return start, end


def drawing(axes: Any, points: Sequence[TrainingPoint]) -> str:
    update_points = [p for p in points if p.measure == TRAINED]
    names = dict.fromkeys(p.training for p in sorted(update_points, key=order))
    for number, training in enumerate(names):
        training_points = [p for p in update_points if p.training == training]
        samples = sorted({p.samples for p in training_points})
        seeds = sorted({p.seed for p in training_points})
        value = {(p.seed, p.samples): p.value / p.best for p in training_points}
        shares = np.array([[value[seed, k] for k in samples] for seed in seeds])
        look = Look(CYCLE[number], MARKS[number])
        game, credit, scale = training
        axes.plot(samples, shares.T, color=look.colour, alpha=0.3, linewidth=0.7)
        drawn = {"color": look.colour, "marker": look.mark, "ms": 5}
        axes.plot(samples, shares.mean(axis=0), **drawn, label=f"{game}, {credit}s, {scale}")
    axes.set_xlabel("samples learned from")
    axes.set_ylabel("payoff, share of the best response")
    axes.set_ylim(0, 1.05)
    return "What each update's games paid: thin lines are single seeds, thick ones their means."


def page() -> str:
    return table(read(TrainingPoint, FILE))


def svg() -> str:
    points = read(TrainingPoint, FILE)
    return canvas.picture("grpo", "GRPO", lambda axes: drawing(axes, points), (8, 4.6)).svg


def main() -> None:
    for options, best in wanted():
        points = read(TrainingPoint, FILE)
        if not any((*p.training, p.seed) == key(options) for p in points):
            write([*points, *play(options, best)], FILE)


if __name__ == "__main__":
    main()
