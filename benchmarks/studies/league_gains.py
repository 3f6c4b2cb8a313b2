"""Self-play, learners of all seats and learners of auctions, beside players by rule.

``python -m llm_games.benchmarks.studies.league_gains [NAME ...]`` runs the trainings of
``league_gains.toml``, each with several seeds, and resumes where it was stopped. NashConv is exact.
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

from llm_games.baselines.batch_play import play_batch
from llm_games.baselines.players import make_player
from llm_games.baselines.training import ippo, ppo, self_play
from llm_games.baselines.training.harness import LAST, Options, TrainingTable, curve, judge
from llm_games.benchmarks.studies.dated import (
    RESULTS,
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
    "ippo": (ippo.PPOSettings, ippo.train),
    "ppo": (ppo.PPOOptions, ppo.train),
    "self_play": (self_play.SelfPlaySettings, self_play.train),
}
GAMES = 1000
"""Games of a player in all seats; in those of `LAST` it is measured, as those by rule are."""
RULE = "by rule"
PACKAGES = "torch", "stable-baselines3", "numpy"


def planned() -> tuple[list[dict[str, Any]], list[int]]:
    contents = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    named = dict[str, dict[str, Any]]()
    for experiment in contents["experiments"]:
        other = named.get(experiment.get("like", ""), {})
        options = {**other.get("options", {}), **experiment["options"]}
        named[experiment["name"]] = {**other, **experiment, "options": options}
    return list(named.values()), contents["seeds"]


EXPERIMENTS, SEEDS = planned()


class LeagueResult(NamedTuple):
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


def record(new: Sequence[LeagueResult], file: Path = FILE) -> None:
    """Rows of the same training are replaced; all or none."""
    again = {row[:3] for row in new}
    write(sorted([*(row for row in read(LeagueResult, file) if row[:3] not in again), *new]), file)


# -- trainings -------------------------------------------------------------------------------------


def trained(experiment: Mapping[str, Any], seed: int) -> list[LeagueResult]:
    """Train once and return the rows: curves, and the final evaluation."""
    kind, train = METHODS[experiment["method"]]
    began = time.process_time()
    with TemporaryDirectory() as folder:
        options = kind(**experiment["options"], seed=seed, folder=Path(folder, "training"))
        train(options)
        log, table = curve(Path(folder, "training")), options.table()
        names = {"ippo": "torch:player.safetensors"}
        name_pattern = names.get(experiment["method"], "sb3:player.zip").replace(
            ":", f":{options.folder}/"
        )
        player = make_player(name_pattern, table.rules)
        payoff = judge(table, player, 5 * options.episodes, LAST).payoff
        last = measured(experiment, table, player)
    spent, day = round(time.process_time() - began, 1), today()
    labels = experiment["name"], experiment["method"], seed
    end = spent, day, made_with(*PACKAGES)
    curves = [
        LeagueResult(*labels, int(step), name, round(value, 4), *end)
        for name in experiment["curves"]
        for step, value in zip(*log[name], strict=True)
    ]
    values = {"payoff at last": payoff, **last}
    return curves + [
        LeagueResult(*labels, options.steps, name, round(value, 4), *end)
        for name, value in values.items()
    ]


def measured(
    experiment: Mapping[str, Any], table: TrainingTable, player: Policy
) -> dict[str, float]:
    """Return a player's payoff and mean move in all seats, for experiments of self-play."""
    if experiment["method"] != "self_play":
        return {}
    rules, seeds = table.rules, list(range(LAST, LAST + GAMES))
    sits = np.zeros((rules.players, GAMES), np.int64)
    played = [outcome for _, outcome in play_batch(rules, [player], sits, seeds)]
    payoff = sum(float(outcome.rewards.mean()) for outcome in played)
    moves = [float(outcome.record["actions"].mean()) for outcome in played]
    return {"payoff among itself": payoff, "mean move": float(np.mean(moves))}


def by_rule(experiment: Mapping[str, Any]) -> list[LeagueResult]:
    """Return the payoffs of players by rule in the learner's place, in the same games."""
    kind, _ = METHODS[experiment["method"]]
    options: Options = kind(**experiment["options"])
    table, rows = options.table(), []
    end = {"day": today(), "versions": made_with(*PACKAGES)}
    for name in experiment.get("best", ()):
        player, began = make_player(name, table.rules), time.process_time()
        payoff = judge(table, player, 5 * options.episodes, LAST).payoff
        values = {"payoff at last": payoff, **measured(experiment, table, player)}
        spent = round(time.process_time() - began, 1)
        rows += [
            LeagueResult(
                experiment=experiment["name"],
                learner=f"{RULE}: {name}",
                seed=0,
                steps=0,
                measure=measure,
                value=round(value, 4),
                cpu_seconds=spent,
                **end,
            )
            for measure, value in values.items()
        ]
    return rows


# -- tables ----------------------------------------------------------------------------------------


def final_values(
    results: Sequence[LeagueResult], experiment: str, measure: str
) -> tuple[list[float], dict[str, float]]:
    """Return a measure at the end of each training, and that of players by rule, by name."""
    measure_rows = [
        row for row in results if (row.experiment, row.measure) == (experiment, measure)
    ]
    learned = [row.value for row in measure_rows if row.seed]
    return learned, {
        row.learner.removeprefix(f"{RULE}: "): row.value for row in measure_rows if not row.seed
    }


def compared(results: Sequence[LeagueResult]) -> str:
    """Return the table of learners beside the best player by rule."""
    lines = list[list[str]]()
    for experiment in EXPERIMENTS:
        for measure in ("payoff at last", "payoff among itself", "mean move"):
            learned, rule = final_values(results, experiment["name"], measure)
            if not learned or not rule:
                continue
            best = max(rule, key=lambda player: rule[player])
            share = f"{interval([value / rule[best] for value in learned]):.1%}"
            cells = [
                experiment["name"],
                f"`{experiment['method']}`",
                measure,
                f"{interval(learned):.1f}",
            ]
            lines.append([*cells, f"`{best}` {rule[best]:.1f}", share])
    return markdown(
        ("table", "learner", "measure", "learner", "best player by rule", "share of it"), lines
    )


def curves(results: Sequence[LeagueResult], measure: str = "tree/nash_conv") -> str:
    """Return the table of a measure's course, mean (least to most), from start to end."""
    lines = list[list[str]]()
    for experiment in EXPERIMENTS:
        measure_rows = [
            row for row in results if (row.experiment, row.measure) == (experiment["name"], measure)
        ]
        if not measure_rows:
            continue
        steps = sorted({row.steps for row in measure_rows})
        marks = [steps[len(steps) * part // 4 - (part == 4)] for part in range(5)]
        each = [[row.value for row in measure_rows if row.steps == mark] for mark in marks]
        cells = [f"{np.mean(v):.2g} ({min(v):.2g} to {max(v):.2g})" for v in each]
        lines.append([experiment["name"], *cells])
    heads = "table", "at first", "a quarter", "half", "three quarters", "at the end"
    return markdown(heads, lines)


def tables(results: Sequence[LeagueResult]) -> str:
    spent = sum({row[:3]: row.cpu_seconds for row in results}.values())
    days, versions = sorted({row.day for row in results}), sorted({row.versions for row in results})
    steps = max(row.steps for row in results)
    summary = f"{', '.join(days)}; {'; '.join(versions)}; {spent / 60:.0f} minutes of CPU in all; "
    summary += f"{steps:,} steps at most."
    exact = "NashConv, exact, mean (least to most):"
    return "\n\n".join([compared(results), exact, curves(results), summary])


def page() -> str:
    return tables(read(LeagueResult, FILE))


def main() -> None:
    wanted = sys.argv[1:]
    for experiment in EXPERIMENTS:
        if wanted and experiment["name"] not in wanted:
            continue
        held = {(row.experiment, row.seed) for row in read(LeagueResult, FILE)}
        if "best" in experiment and (experiment["name"], 0) not in held:
            record(by_rule(experiment))
        for seed in SEEDS:
            if (experiment["name"], seed) not in held:
                record(trained(experiment, seed))


if __name__ == "__main__":
    main()
