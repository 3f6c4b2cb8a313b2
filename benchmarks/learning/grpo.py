"""What GRPO makes of the embedded language model: ``grpo.csv``, a table and a picture of it.

``python -m llm_games.benchmarks.learning.grpo`` trains what ``grpo.toml`` names, one training after
another, goes on where it was stopped, and writes docs/grpo.svg and the table in
docs/models_as_learners.md.
"""

from __future__ import annotations

import csv
import time
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.training.common import curve
from llm_games.baselines.training.grpo import GRPOOptions, train
from llm_games.benchmarks.report import canvas
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
        """Return what was trained, but for the seed."""
        return self[:3]


def points(file: Path = FILE) -> list[Point]:
    """Return what is in the file."""
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        found = list(csv.reader(lines))[1:]
    types = get_type_hints(Point).values()
    return [Point(*(kind(v) for kind, v in zip(types, row, strict=True))) for row in found]


def wanted() -> list[tuple[GRPOOptions, float]]:
    """Return all trainings, those of one seed together, and what is best at their tables."""
    found = []
    for seed in SETTINGS["seeds"]:
        for table in SETTINGS["tables"]:
            shared = {key: table[key] for key in ("game", "param", "opponents")}
            for own in table["trainings"]:
                options = GRPOOptions(**SETTINGS["common"], **shared, **own, seed=seed)
                found.append((options, float(table["best"])))
    return found


def key(options: GRPOOptions) -> tuple[str, str, str, int]:
    """Return what tells a training from the others."""
    return options.game, options.credit, options.scale, options.seed


def play(options: GRPOOptions, best: float) -> list[Point]:
    """Train once, and return what was logged."""
    began = time.process_time()
    with TemporaryDirectory() as folder:
        last = train(replace(options, folder=Path(folder)))
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
    return [Point(*key(options), k, name, v, best, spent, day, versions) for k, name, v in found]


# -- what the docs show ----------------------------------------------------------------------------


def table(found: Sequence[Point]) -> str:
    """Return the table of the docs: mean payoffs, with 95 % intervals over seeds."""
    heads = ["game", "a sample is", "scores divided by their deviation in", "seeds", "before"]
    heads += ["after", "gained", "best", "each seed after", "CPU s each"]
    said = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for training in dict.fromkeys(p.training for p in sorted(found, key=order)):
        own = [p for p in found if p.training == training]
        game, credit, scale = training
        before, after = ends(own)
        seconds = {p.seed: p.cpu_seconds for p in own}
        cells = [game, f"a {credit}", f"the {scale}", str(len(after)), f"{before.mean():.2f}"]
        cells += [mean(after), mean(after - before), f"{own[0].best:.2f}"]
        cells += [", ".join(f"{value:.2f}" for value in after)]
        cells += [f"{np.mean([*seconds.values()]):.0f}"]
        said.append(f"| {' | '.join(cells)} |")
    return "\n".join(said)


def order(point: Point) -> int:
    """Return a training's place in the settings."""
    known = [key(options)[:3] for options, _ in wanted()]
    return known.index(point.training)


def ends(own: Sequence[Point]) -> tuple[Array, Array]:
    """Return what the learner was paid in games of their own before and after, by seed."""
    last = max(p.samples for p in own)
    by_seed = sorted((p.seed, p.samples, p.value) for p in own if p.measure == JUDGED)
    before, after = ([v for _, k, v in by_seed if k == at] for at in (0, last))
    return np.array(before), np.array(after)


def mean(values: Array) -> str:
    """Return a mean over seeds, with its interval."""
    if len(values) < 2 or not np.ptp(values):
        return f"{values.mean():.2f}"
    error = np.asarray(values.std(ddof=1) / np.sqrt(len(values)))
    _, high = t_ends(values.mean(), error, len(values) - 1, 0.95)
    return f"{values.mean():.2f} ± {float(high) - values.mean():.2f}"


def drawing(axes: Any, found: Sequence[Point]) -> str:
    """Draw what each update's games paid as a share of the best, each seed and the mean."""
    own = [p for p in found if p.measure == TRAINED]
    names = dict.fromkeys(p.training for p in sorted(own, key=order))
    for number, training in enumerate(names):
        some = [p for p in own if p.training == training]
        at = sorted({p.samples for p in some})
        seeds = sorted({p.seed for p in some})
        value = {(p.seed, p.samples): p.value / p.best for p in some}
        shares = np.array([[value[seed, k] for k in at] for seed in seeds])
        look = canvas.Look(canvas.CYCLE[number], canvas.MARKS[number])
        game, credit, scale = training
        axes.plot(at, shares.T, color=look.colour, alpha=0.3, linewidth=0.7)
        name = f"{game}, {credit}s, {scale}"
        axes.plot(at, shares.mean(axis=0), color=look.colour, marker=look.mark, ms=5, label=name)
    axes.set_xlabel("samples learned from")
    axes.set_ylabel("payoff, share of the best response")
    axes.set_ylim(0, 1.05)
    return "What each update's games paid: thin lines are single seeds, thick ones their means."


def main() -> None:
    """Train what is missing, and write the table and the picture."""
    for options, best in wanted():
        before = points()
        if any((*p.training, p.seed) == key(options) for p in before):
            continue
        text = StringIO()
        rows = [Point._fields, *before, *play(options, best)]
        csv.writer(text, lineterminator="\n").writerows(rows)
        write_whole(FILE, text.getvalue().encode())
    show()


def show() -> None:
    """Write the table between its marks, and the picture."""
    found = points()
    head, rest = DOCS.read_text("utf-8").split(MARKS[0], 1)
    tail = rest.split(MARKS[1], 1)[1]
    DOCS.write_text(f"{head}{MARKS[0]}\n{table(found)}\n{MARKS[1]}{tail}", "utf-8")
    shown = canvas.picture("grpo", "GRPO", lambda axes: drawing(axes, found), (8, 4.6))
    write_whole(DOCS.with_name("grpo.svg"), shown.svg.encode())


if __name__ == "__main__":
    main()
