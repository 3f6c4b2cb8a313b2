"""How far PSRO's populations are from equilibrium as they grow: ``psro.csv``.

``python -m llm_games.benchmarks.learning.psro FOLDER`` trains what ``psro.toml`` says, a folder a
seed, and goes on where it was stopped. A row is a round: what the reply that was trained in it
gains over the population's mixture, and what that mixture comes to among ``rational``.
"""

from __future__ import annotations

import csv
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

from llm_games.baselines.training.common import curve
from llm_games.baselines.training.psro import PSROOptions, train
from llm_games.files import write_whole

FILE = Path(__file__).with_suffix(".csv")
VALUES = "psro__gain", "psro__players", "payoff", "regret", "exploitability"


def rows(folder: Path, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the rounds of a training that is done."""
    points = curve(folder)
    for number, step in enumerate(points["psro__gain"][0]):
        values = {name.removeprefix("psro__"): points[name][1][number] for name in VALUES}
        yield {"seed": seed, "round": number + 1, "steps": int(step), **values}


def main(folder: Path) -> None:
    """Train each seed, and write the rounds of all."""
    about = tomllib.loads(FILE.with_suffix(".toml").read_text("utf-8"))
    found = []
    for seed in about["seeds"]:
        own = folder / str(seed)
        if not (own / "done").exists():
            train(
                PSROOptions(
                    **about["options"], seed=seed, folder=own, resume=(own / "state").exists()
                )
            )
            (own / "done").write_text(f"{datetime.now(UTC):%Y-%m-%d}")
        day = (own / "done").read_text("utf-8")
        found += [{**row, "day": day} for row in rows(own, seed)]
        text = StringIO()
        writer = csv.DictWriter(text, list(found[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(found)
        write_whole(FILE, text.getvalue().encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
