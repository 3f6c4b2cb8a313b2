"""What self-play, learners of all seats and learners of auctions come to, beside players by rule.

``python -m llm_games.benchmarks.studies.league_gains [NAME ...]`` trains what ``league_gains.toml``
names, each with several seeds, goes on where it was stopped, and writes the tables in
docs/training.md.
"""

from __future__ import annotations

import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.players import make_player
from llm_games.baselines.skill import play_batch
from llm_games.baselines.training import ippo, ppo, self_play
from llm_games.baselines.training.common import LAST, Options, Table, curve, judge
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
from llm_games.wrappers.policy import Policy

FILE = RESULTS / "league_gains.csv"
METHODS: dict[str, tuple[type[Options], Any]] = {
    "ippo": (ippo.Settings, ippo.train),
    "ppo": (ppo.PPOOptions, ppo.train),
    "self_play": (self_play.Settings, self_play.train),
}
GAMES = 1000
"""Games of a player in all seats; in those of `LAST` it is measured, as those by rule are."""
RULE = "by rule"
PAGE = DOCS / "training.md"
PACKAGES = "torch", "stable-baselines3", "numpy"


def planned() -> tuple[list[dict[str, Any]], list[int]]:
    """Return the experiments, each with all its options, and the seeds."""
    told = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    named = dict[str, dict[str, Any]]()
    for one in told["experiments"]:
        other = named.get(one.get("like", ""), {})
        options = {**other.get("options", {}), **one["options"]}
        named[one["name"]] = {**other, **one, "options": options}
    return list(named.values()), told["seeds"]


EXPERIMENTS, SEEDS = planned()


class Row(NamedTuple):
    """One value: of a training after so many steps, or of a player by rule (seed and steps 0)."""

    experiment: str
    learner: str
    seed: int
    steps: int
    measure: str
    value: float
    cpu_seconds: float
    day: str
    versions: str


def record(new: Sequence[Row], file: Path = FILE) -> None:
    """Write rows to the file, in place of those of the same training; all or none."""
    again = {row[:3] for row in new}
    write(sorted([*(row for row in read(Row, file) if row[:3] not in again), *new]), file)


# -- trainings -------------------------------------------------------------------------------------


def trained(experiment: Mapping[str, Any], seed: int) -> list[Row]:
    """Train once and return the rows: curves, and at last what it comes to."""
    kind, train = METHODS[experiment["method"]]
    began = time.process_time()
    with TemporaryDirectory() as folder:
        options = kind(**experiment["options"], seed=seed, folder=Path(folder, "training"))
        train(options)
        log, table = curve(Path(folder, "training")), options.table()
        names = {"ippo": "torch:player.safetensors"}
        kept = names.get(experiment["method"], "sb3:player.zip").replace(":", f":{options.folder}/")
        player = make_player(kept, table.rules)
        payoff = judge(table, player, 5 * options.episodes, LAST).payoff
        last = measured(experiment, table, player)
    spent, day = round(time.process_time() - began, 1), today()
    told = experiment["name"], experiment["method"], seed
    end = spent, day, made_with(*PACKAGES)
    curves = [
        Row(*told, int(step), name, round(value, 4), *end)
        for name in experiment["curves"]
        for step, value in zip(*log[name], strict=True)
    ]
    values = {"payoff at last": payoff, **last}
    return curves + [
        Row(*told, options.steps, name, round(value, 4), *end) for name, value in values.items()
    ]


def measured(experiment: Mapping[str, Any], table: Table, player: Policy) -> dict[str, float]:
    """Return what a player does where it sits in all seats, for experiments of self-play."""
    if experiment["method"] != "self_play":
        return {}
    rules, seeds = table.rules, list(range(LAST, LAST + GAMES))
    sits = np.zeros((rules.players, GAMES), np.int64)
    played = [outcome for _, outcome in play_batch(rules, [player], sits, seeds)]
    paid = sum(float(outcome.rewards.mean()) for outcome in played)
    moves = [float(outcome.record["actions"].mean()) for outcome in played]
    return {"payoff among itself": paid, "mean move": float(np.mean(moves))}


def by_rule(experiment: Mapping[str, Any]) -> list[Row]:
    """Return what players by rule get in the learner's place, in the same games."""
    kind, _ = METHODS[experiment["method"]]
    told: Options = kind(**experiment["options"])
    table, found = told.table(), []
    end = today(), made_with(*PACKAGES)
    for name in experiment.get("best", ()):
        player, began = make_player(name, table.rules), time.process_time()
        payoff = judge(table, player, 5 * told.episodes, LAST).payoff
        values = {"payoff at last": payoff, **measured(experiment, table, player)}
        spent = round(time.process_time() - began, 1)
        found += [
            Row(experiment["name"], f"{RULE}: {name}", 0, 0, measure, round(value, 4), spent, *end)
            for measure, value in values.items()
        ]
    return found


# -- tables ----------------------------------------------------------------------------------------


def of(found: Sequence[Row], experiment: str, measure: str) -> tuple[list[float], dict[str, float]]:
    """Return a measure at the end of each training, and that of players by rule, by name."""
    own = [row for row in found if (row.experiment, row.measure) == (experiment, measure)]
    learned = [row.value for row in own if row.seed]
    return learned, {
        row.learner.removeprefix(f"{RULE}: "): row.value for row in own if not row.seed
    }


def compared(found: Sequence[Row]) -> str:
    """Return the table of learners beside the best player by rule."""
    said = list[list[str]]()
    for one in EXPERIMENTS:
        for measure in ("payoff at last", "payoff among itself", "mean move"):
            learned, rule = of(found, one["name"], measure)
            if not learned or not rule:
                continue
            best = max(rule, key=lambda who: rule[who])
            share = f"{interval([value / rule[best] for value in learned]):.1%}"
            cells = [one["name"], f"`{one['method']}`", measure, f"{interval(learned):.1f}"]
            said.append([*cells, f"`{best}` {rule[best]:.1f}", share])
    return markdown(
        ("table", "learner", "measure", "learner", "best player by rule", "share of it"), said
    )


def curves(found: Sequence[Row], measure: str = "tree/nash_conv") -> str:
    """Return the table of how a measure goes, mean (least to most), from the start to the end."""
    said = list[list[str]]()
    for one in EXPERIMENTS:
        own = [row for row in found if (row.experiment, row.measure) == (one["name"], measure)]
        if not own:
            continue
        steps = sorted({row.steps for row in own})
        marks = [steps[len(steps) * part // 4 - (part == 4)] for part in range(5)]
        each = [[row.value for row in own if row.steps == mark] for mark in marks]
        cells = [f"{np.mean(v):.2g} ({min(v):.2g} to {max(v):.2g})" for v in each]
        said.append([one["name"], *cells])
    heads = "table", "at first", "a quarter", "half", "three quarters", "at the end"
    return markdown(heads, said)


def tables(found: Sequence[Row]) -> str:
    """Return what stands in the docs."""
    spent = sum({row[:3]: row.cpu_seconds for row in found}.values())
    days, made = sorted({row.day for row in found}), sorted({row.versions for row in found})
    steps = max(row.steps for row in found)
    told = f"{', '.join(days)}; {'; '.join(made)}; {spent / 60:.0f} minutes of CPU in all; "
    told += f"{steps:,} steps at most."
    exact = "NashConv, exact, mean (least to most):"
    return "\n\n".join([compared(found), exact, curves(found), told])


def main() -> None:
    """Train what is not in the file yet, print, and write the tables."""
    wanted = sys.argv[1:]
    for one in EXPERIMENTS:
        if wanted and one["name"] not in wanted:
            continue
        held = {(row.experiment, row.seed) for row in read(Row, FILE)}
        if "best" in one and (one["name"], 0) not in held:
            record(by_rule(one))
        for seed in SEEDS:
            if (one["name"], seed) not in held:
                record(trained(one, seed))
    found = tables(read(Row, FILE))
    print(found)
    fill("league", found, PAGE)


if __name__ == "__main__":
    main()
