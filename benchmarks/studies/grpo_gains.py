"""What GRPO makes of the embedded language model: rows, a table and a picture.

``python -m llm_games.benchmarks.studies.grpo_gains`` trains what ``grpo_gains.toml`` names, one
training after another, goes on where it was stopped, and writes docs/grpo.svg and the table in
docs/models_as_learners.md.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.training.common import curve
from llm_games.baselines.training.grpo import GRPOOptions, train
from llm_games.benchmarks.report import canvas
from llm_games.benchmarks.studies.dated import (
    DOCS,
    RESULTS,
    fill,
    interval,
    made_with,
    markdown,
    read,
    today,
    write,
)
from llm_games.files import write_whole

FILE = RESULTS / "grpo_gains.csv"
SETTINGS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PAGE = DOCS / "models_as_learners.md"
PACKAGES = "trl", "transformers", "torch"
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
    day, versions = today(), made_with(*PACKAGES)
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
    said = list[list[str]]()
    for training in dict.fromkeys(p.training for p in sorted(found, key=order)):
        own = [p for p in found if p.training == training]
        game, credit, scale = training
        before, after = ends(own)
        seconds = {p.seed: p.cpu_seconds for p in own}
        cells = [game, f"a {credit}", f"the {scale}", str(len(after)), f"{before.mean():.2f}"]
        cells += [f"{interval(after):.2f}", f"{interval(after - before):.2f}", f"{own[0].best:.2f}"]
        cells += [", ".join(f"{value:.2f}" for value in after)]
        cells += [f"{np.mean([*seconds.values()]):.0f}"]
        said.append(cells)
    return markdown(heads, said)


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
        before = read(Point, FILE)
        if any((*p.training, p.seed) == key(options) for p in before):
            continue
        write([*before, *play(options, best)], FILE)
    show()


def show() -> None:
    """Write the table between its marks, and the picture."""
    found = read(Point, FILE)
    fill("grpo", table(found), PAGE)
    shown = canvas.picture("grpo", "GRPO", lambda axes: drawing(axes, found), (8, 4.6))
    write_whole(PAGE.with_name("grpo.svg"), shown.svg.encode())


if __name__ == "__main__":
    main()
