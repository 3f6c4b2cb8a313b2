"""What GRPO makes of the embedded language model: ``grpo.csv`` and its table.

``python -m llm_games.benchmarks.learning.grpo`` trains what ``grpo.toml`` names, one training after
another, goes on where it was stopped, and writes the table in docs/models_as_learners.md.
"""

from __future__ import annotations

import csv
import time
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from llm_games.baselines.training.common import curve
from llm_games.baselines.training.grpo import GRPOOptions, train
from llm_games.benchmarks.stats.intervals import t_ends
from llm_games.files import write_whole

FILE = Path(__file__).with_suffix(".csv")
SETTINGS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
DOCS = Path(__file__).resolve().parents[2] / "docs" / "models_as_learners.md"
MARKS = (
    "<!-- grpo: written by python -m llm_games.benchmarks.learning.grpo -->",
    "<!-- end -->",
)
JUDGED = "payoff"
"""Of games that it was not trained on."""
TRAINED = "train/payoff"
"""Of the games of one update."""


class Point(NamedTuple):
    """What a training logged after so many samples; `cpu_seconds` and what follows are of all."""

    experiment: str
    seed: int
    samples: int
    measure: str
    value: float
    best: float
    cpu_seconds: float
    day: str
    versions: str


def points(file: Path = FILE) -> list[Point]:
    """Return what is in the file."""
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        found = list(csv.reader(lines))[1:]
    types = get_type_hints(Point).values()
    return [Point(*(kind(v) for kind, v in zip(types, row, strict=True))) for row in found]


def play(experiment: Mapping[str, Any], seed: int) -> list[Point]:
    """Train once, and return what was logged."""
    own = {name: v for name, v in experiment.items() if name not in ("name", "seeds", "best")}
    began = time.process_time()
    with TemporaryDirectory() as folder:
        options = GRPOOptions(**SETTINGS["common"] | own, seed=seed, folder=Path(folder))
        last = train(options)
        logged = curve(folder)
    spent = round(time.process_time() - began, 1)
    day = datetime.now(UTC).strftime("%Y-%m-%d")
    names = ("llm-games", "trl", "transformers", "torch")
    versions = " ".join(f"{name} {version(name)}" for name in names)
    found = [
        (int(samples), name, float(value))
        for name in (JUDGED, TRAINED, "train/legal", "train/entropy")
        for samples, value in logged[name].T
    ]
    found.append((options.steps, JUDGED, last.payoff))
    named = experiment["name"], seed
    best = float(experiment["best"])
    return [Point(*named, k, name, v, best, spent, day, versions) for k, name, v in found]


def table(found: Sequence[Point]) -> str:
    """Return the table of the docs: mean payoffs, with 95 % intervals over seeds."""
    kinds = dict.fromkeys(p.experiment for p in found)
    marks = sorted({p.samples for p in found if p.measure == TRAINED})
    shown = [marks[0], *marks[len(marks) // 4 :: max(1, len(marks) // 4)]]
    shown = list(dict.fromkeys([*shown, marks[-1]]))
    heads = ["", "seeds", "before", *(f"samples up to {k}" for k in shown), "after", "best"]
    said = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for kind in kinds:
        own = [p for p in found if p.experiment == kind]
        seeds = len({p.seed for p in own})
        last = max(p.samples for p in own)
        cells = [kind, str(seeds), _mean(own, JUDGED, 0), *(_mean(own, TRAINED, k) for k in shown)]
        cells += [_mean(own, JUDGED, last), f"{own[0].best:.2f}"]
        said.append(f"| {' | '.join(cells)} |")
    return "\n".join(said)


def _mean(own: Sequence[Point], measure: str, samples: int) -> str:
    """Return a mean over seeds, with its interval."""
    values = np.array([p.value for p in own if (p.measure, p.samples) == (measure, samples)])
    if len(values) < 2 or not np.ptp(values):
        return f"{values.mean():.2f}" if len(values) else ""
    error = np.asarray(values.std(ddof=1) / np.sqrt(len(values)))
    _, high = t_ends(values.mean(), error, len(values) - 1, 0.95)
    return f"{values.mean():.2f} ± {float(high) - values.mean():.2f}"


def main() -> None:
    """Train what is missing, and write the table."""
    wanted = [(e, seed) for e in SETTINGS["experiments"] for seed in e["seeds"]]
    for experiment, seed in sorted(wanted, key=lambda pair: pair[1]):
        before = points()
        if any((p.experiment, p.seed) == (experiment["name"], seed) for p in before):
            continue
        text = StringIO()
        rows = [Point._fields, *before, *play(experiment, seed)]
        csv.writer(text, lineterminator="\n").writerows(rows)
        write_whole(FILE, text.getvalue().encode())
    head, rest = DOCS.read_text("utf-8").split(MARKS[0], 1)
    tail = rest.split(MARKS[1], 1)[1]
    DOCS.write_text(f"{head}{MARKS[0]}\n{table(points())}\n{MARKS[1]}{tail}", "utf-8")


if __name__ == "__main__":
    main()
