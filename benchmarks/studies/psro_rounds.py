"""Distances of PSRO's populations from equilibrium as they grow.

``python -m llm_games.benchmarks.studies.psro_rounds FOLDER`` runs the trainings of
``psro_rounds.toml``, a folder a seed, and resumes where it was stopped. A row is a round: the
gain of its trained reply over the population's mixture, and the mixture's evaluation among
``rational``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from llm_games.baselines.training.harness import curve
from llm_games.baselines.training.psro import PSROOptions, train
from llm_games.benchmarks.studies.dated import RESULTS, settings, today, write

FILE = RESULTS / "psro_rounds.csv"
VALUES = "psro__gain", "psro__players", "payoff", "regret", "exploitability"


class PSRORound(NamedTuple):
    """The gain of a round's reply, and the mixture's evaluation after it."""

    seed: int
    round: int
    steps: int
    gain: float
    players: float
    payoff: float
    regret: float
    exploitability: float
    day: str


def rounds(folder: Path, seed: int, day: str) -> Iterator[PSRORound]:
    points = curve(folder)
    for number, step in enumerate(points[VALUES[0]][0]):
        values = (points[name][1][number] for name in VALUES)
        yield PSRORound._make([seed, number + 1, int(step), *values, day])


def main(folder: Path) -> None:
    about = settings(__file__)
    all_rounds = list[PSRORound]()
    for seed in about["seeds"]:
        seed_folder = folder / str(seed)
        if not (seed_folder / "done").exists():
            resume = (seed_folder / "state").exists()
            train(PSROOptions(**about["options"], seed=seed, folder=seed_folder, resume=resume))
            (seed_folder / "done").write_text(today())
        all_rounds += rounds(seed_folder, seed, (seed_folder / "done").read_text("utf-8"))
        write(all_rounds, FILE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
