"""Trained learners beside the best response.

``python -m llm_games.benchmarks.studies.training_gains [NAME ...]`` runs the trainings of
``training_gains.toml``, each with five seeds, and resumes where it was stopped. Payoffs are means
of 20,000 fresh games, the same for all seeds, so that a share can lie above 100 %.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from llm_games.baselines.players import make_player
from llm_games.baselines.training.harness import LAST, judge
from llm_games.benchmarks.studies.carried import recorded
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
from llm_games.key_values import assigned
from llm_games.registry import rulebook
from llm_games.wrappers.policy import Policy

FILE = RESULTS / "training_gains.csv"
PACKAGES = "stable-baselines3", "sb3-contrib", "torch", "numpy"
GAMES, PART = 20_000, 2000
"""Fresh games that a learner is judged by, and how many are played at once."""
RECORDED = 60
"""Games that a ghost is made of."""


class TrainingResult(NamedTuple):
    """One training and its mean `payoff` over fresh games.

    `value` is that of the exact best response, NaN where only bounds are known: `lower`, what the
    best policy found gets, and `upper`. `share` is ``payoff / value``.
    """

    experiment: str
    learner: str
    game: str
    parameters: str  # as typed: "players=4 rounds=5"
    opponents: str
    seed: int
    steps: int
    payoff: float
    value: float
    lower: float
    upper: float
    share: float
    day: str
    versions: str
    cpu_seconds: float


def record(new: Iterable[TrainingResult], file: Path = FILE) -> None:
    rows_by_key = {
        (row.experiment, row.learner, row.seed): row for row in [*read(TrainingResult, file), *new]
    }
    write((rows_by_key[key] for key in sorted(rows_by_key)), file)


# -- the figures -----------------------------------------------------------------------------------


def train(about: Mapping[str, Any], seed: int, folder: Path) -> TrainingResult:
    """Run an experiment's training with one seed, and return its row.

    A training that was stopped in its folder is resumed.
    """
    module = import_module(f"llm_games.baselines.training.{about['learner']}")
    kind = get_type_hints(module.train)["options"]
    seed_folder = folder / about["name"] / about["learner"] / str(seed)
    opponents = [f"ghost:{ghost(about, folder)}"] if "recorded" in about else about["opponents"]
    seats = {"game": about["game"], "param": about["param"], "opponents": opponents}
    resume = (seed_folder / "state").exists()
    options = kind(**seats, **about["settings"], seed=seed, folder=seed_folder, resume=resume)
    began = time.process_time()
    module.train(options)
    spent = time.process_time() - began
    trained = make_player(f"sb3:{seed_folder / 'player.zip'}", options.table().rules)
    mean_payoff = payoff(options, trained)
    replies = reference(about, options)
    value, lower, upper = (float(np.mean(ends)) for ends in zip(*replies, strict=True))
    return TrainingResult(
        experiment=about["name"],
        learner=about["learner"],
        game=about["game"],
        parameters=" ".join(about["param"]),
        opponents=others(about),
        seed=seed,
        steps=options.steps,
        payoff=round(mean_payoff, 5),
        value=round(value, 5),
        lower=round(lower, 5),
        upper=round(upper, 5),
        share=round(mean_payoff / value, 5),
        day=today(),
        versions=made_with(*PACKAGES),
        cpu_seconds=round(spent, 1),
    )


def ghost(about: Mapping[str, Any], folder: Path) -> Path:
    """Return a ghost of the player to be `recorded`, from games beside a random seat."""
    params = assigned("--param", about["param"], "rounds=5")
    rules = rulebook(about["game"], **params)
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as temporary:
        db = Path(temporary, "games.db")
        ghost_model = recorded(rules, params, about["recorded"], db, RECORDED)
        return ghost_model.save(folder / f"{about['name']}.ghost")


def reference(about: Mapping[str, Any], options: Any) -> list[tuple[float, float, float]]:
    """Return the best response's value in each seat: exact or NaN, and its bounds.

    An experiment may name a player as the reference, whose payoff is then taken as exact.
    """
    if "reference" not in about:
        asked = replace(options, param=about.get("reference_param", options.param)).table()
        return [(r.value if r.exact else np.nan, r.value, r.upper) for r in asked.best()]
    best = payoff(options, make_player(about["reference"], options.table().rules))
    return [(best, best, np.nan)]


def others(about: Mapping[str, Any]) -> str:
    is_recorded = "recorded" in about
    return f"ghost of {about['recorded']}" if is_recorded else " ".join(about["opponents"])


def payoff(options: Any, learner: Policy) -> float:
    """Return a learner's mean payoff over fresh games, played in parts."""
    tables = options.table()
    firsts = range(LAST, LAST + GAMES, PART)
    return float(np.mean([judge(tables, learner, PART, n, theory=False).payoff for n in firsts]))


def text(rows: Iterable[TrainingResult]) -> str:
    """Return the table: a line for each experiment and learner."""
    lines = list[list[str]]()
    kinds: dict[tuple[str, str], list[TrainingResult]] = {}
    for row in rows:
        kinds.setdefault((row.experiment, row.learner), []).append(row)
    for each in kinds.values():
        row = each[0]
        payoffs, share = interval([r.payoff for r in each]), interval([r.share for r in each])
        seeds = ", ".join(f"{row.share:.1%}" for row in each)
        others = f"`{row.opponents}`".replace("|", "\\|")
        cells = [f"{row.game} ({row.parameters})", others, f"{row.learner}, {row.steps:,}"]
        cells += [f"{row.value:,.5g}", f"{payoffs:,.5g}", f"{share:.1%}", seeds]
        lines.append(cells)
    heads = "game", "opponents", "learner, steps", "best response", "payoff", "share of it", "seeds"
    return markdown(heads, lines)


def page() -> str:
    return text(read(TrainingResult, FILE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="experiments; else all")
    parser.add_argument("--folder", type=Path, default=Path("trainings"))
    args = parser.parse_args()
    planned = settings(__file__)
    done = {(row.experiment, row.learner, row.seed) for row in read(TrainingResult, FILE)}
    for seed in planned["seeds"]:
        for about in planned["experiments"]:
            if args.names and about["name"] not in args.names:
                continue
            if (about["name"], about["learner"], seed) not in done:
                row = train(about, seed, args.folder)
                record([row])
                print(row.experiment, row.learner, seed, f"{row.share:.2%}", flush=True)


if __name__ == "__main__":
    main()
