"""How far PSRO's populations are from equilibrium as they grow: ``results/psro_rounds.csv``.

``python -m llm_games.benchmarks.studies.psro_rounds FOLDER`` trains what ``psro_rounds.toml`` says,
a folder a seed, and goes on where it was stopped. A row is a round: what the reply that was trained
in it gains over the population's mixture, and what that mixture comes to among ``rational``.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from llm_games.baselines.training.common import curve
from llm_games.baselines.training.psro import PSROOptions, train
from llm_games.benchmarks.studies.dated import RESULTS, today, write

FILE = RESULTS / "psro_rounds.csv"
VALUES = "psro__gain", "psro__players", "payoff", "regret", "exploitability"


class Round(NamedTuple):
    """What the reply of a round gains, and what the mixture of all comes to after it."""

    seed: int
    round: int
    steps: int
    gain: float
    players: float
    payoff: float
    regret: float
    exploitability: float
    day: str


def rounds(folder: Path, seed: int, day: str) -> Iterator[Round]:
    """Yield the rounds of a training that is done."""
    points = curve(folder)
    for number, step in enumerate(points[VALUES[0]][0]):
        values = (points[name][1][number] for name in VALUES)
        yield Round._make([seed, number + 1, int(step), *values, day])


def main(folder: Path) -> None:
    """Train each seed, and write the rounds of all."""
    about = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    found = list[Round]()
    for seed in about["seeds"]:
        own = folder / str(seed)
        if not (own / "done").exists():
            resume = (own / "state").exists()
            train(PSROOptions(**about["options"], seed=seed, folder=own, resume=resume))
            (own / "done").write_text(today())
        found += rounds(own, seed, (own / "done").read_text("utf-8"))
        write(found, FILE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
