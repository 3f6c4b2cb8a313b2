"""Self-play, learners of all seats and learners of auctions, beside players by rule.

``python -m llm_games.benchmarks.studies.league_gains [NAME ...]`` runs the trainings of
``league_gains.toml``, each with several seeds, and resumes where it was stopped. NashConv is exact.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.batch_play import play_batch
from llm_games.baselines.players import make_player
from llm_games.baselines.training import ippo, ppo, self_play
from llm_games.baselines.training.harness import LAST, Options, curve, judge
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


def planned() -> tuple[list[dict[str, Any]], list[int]]:
    contents, named = settings(__file__), dict[str, dict[str, Any]]()
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


# -- trainings -------------------------------------------------------------------------------------


def trained(experiment: Mapping[str, Any], seed: int) -> list[LeagueResult]:
    """Train once and return the rows: curves, and the final evaluation."""
    method, began = experiment["method"], time.process_time()
    kind, train = METHODS[method]
    with TemporaryDirectory() as folder:
        options = kind(**experiment["options"], seed=seed, folder=Path(folder, "training"))
        train(options)
        log = curve(Path(folder, "training"))
        library, file = {"ippo": ("torch", "safetensors")}.get(method, ("sb3", "zip"))
        address = f"{library}:{options.folder}/player.{file}"
        last = measured(experiment, options, make_player(address, options.table().rules))
    values = [
        (int(step), name, value)
        for name in experiment["curves"]
        for step, value in zip(*log[name], strict=True)
    ]
    values += [(options.steps, name, value) for name, value in last.items()]
    return results(experiment, method, seed, values, began)


def results(
    experiment: Mapping[str, Any],
    learner: str,
    seed: int,
    values: Iterable[tuple[int, str, float]],
    began: float,
) -> list[LeagueResult]:
    """Return rows of values by steps and measure, begun at this CPU time."""
    spent = round(time.process_time() - began, 1)
    versions = made_with("torch", "stable-baselines3", "numpy")
    return [
        LeagueResult(
            experiment=experiment["name"],
            learner=learner,
            seed=seed,
            steps=steps,
            measure=measure,
            value=round(value, 4),
            cpu_seconds=spent,
            day=today(),
            versions=versions,
        )
        for steps, measure, value in values
    ]


def measured(experiment: Mapping[str, Any], options: Options, player: Policy) -> dict[str, float]:
    """Return a player's payoff; of self-play also its payoff and mean move in all seats."""
    table = options.table()
    payoff = {"payoff at last": judge(table, player, 5 * options.episodes, LAST).payoff}
    if experiment["method"] != "self_play":
        return payoff
    sits = np.zeros((table.rules.players, GAMES), np.int64)
    played = play_batch(table.rules, [player], sits, list(range(LAST, LAST + GAMES)))
    outcomes = [outcome for _, outcome in played]
    return payoff | {
        "payoff among itself": sum(float(outcome.rewards.mean()) for outcome in outcomes),
        "mean move": float(np.mean([outcome.record["actions"].mean() for outcome in outcomes])),
    }


def by_rule(experiment: Mapping[str, Any]) -> Iterable[LeagueResult]:
    """Yield the payoffs of players by rule in the learner's place, in the same games."""
    options = METHODS[experiment["method"]][0](**experiment["options"])
    for name in experiment.get("best", ()):
        began = time.process_time()
        values = measured(experiment, options, make_player(name, options.table().rules))
        rows = [(0, measure, value) for measure, value in values.items()]
        yield from results(experiment, f"{RULE}: {name}", 0, rows, began)


# -- tables ----------------------------------------------------------------------------------------


def compared(results: Sequence[LeagueResult]) -> str:
    """Return the table of learners beside the best player by rule."""
    lines = list[list[str]]()
    for experiment in EXPERIMENTS:
        for measure in ("payoff at last", "payoff among itself", "mean move"):
            key = experiment["name"], measure
            rows = [row for row in results if (row.experiment, row.measure) == key]
            learned = [row.value for row in rows if row.seed]
            if not learned or not (rule := [row for row in rows if not row.seed]):
                continue
            best = max(rule, key=lambda row: row.value)
            share = f"{interval([value / best.value for value in learned]):.1%}"
            cells = [key[0], f"`{experiment['method']}`", measure, f"{interval(learned):.1f}"]
            player = best.learner.removeprefix(f"{RULE}: ")
            lines.append([*cells, f"`{player}` {best.value:.1f}", share])
    heads = "table", "learner", "measure", "learner", "best player by rule", "share of it"
    return markdown(heads, lines)


def curves(results: Sequence[LeagueResult]) -> str:
    """Return the table of NashConv's course, mean (least to most), from start to end."""
    lines = list[list[str]]()
    for experiment in EXPERIMENTS:
        key = experiment["name"], "tree/nash_conv"
        rows = [row for row in results if (row.experiment, row.measure) == key]
        if not (steps := sorted({row.steps for row in rows})):
            continue
        marks = [steps[len(steps) * part // 4 - (part == 4)] for part in range(5)]
        each = [[row.value for row in rows if row.steps == mark] for mark in marks]
        cells = [f"{np.mean(v):.2g} ({min(v):.2g} to {max(v):.2g})" for v in each]
        lines.append([experiment["name"], *cells])
    heads = "table", "at first", "a quarter", "half", "three quarters", "at the end"
    return markdown(heads, lines)


def page() -> str:
    rows = read(LeagueResult, FILE)
    spent = sum({row[:3]: row.cpu_seconds for row in rows}.values())
    days, versions = sorted({row.day for row in rows}), sorted({row.versions for row in rows})
    summary = f"{', '.join(days)}; {'; '.join(versions)}; {spent / 60:.0f} minutes of CPU in all; "
    summary += f"{max(row.steps for row in rows):,} steps at most."
    exact = "NashConv, exact, mean (least to most):"
    return "\n\n".join([compared(rows), exact, curves(rows), summary])


def main() -> None:
    wanted = sys.argv[1:]
    for experiment in EXPERIMENTS:
        if wanted and experiment["name"] not in wanted:
            continue
        for seed in [0, *SEEDS] if "best" in experiment else SEEDS:
            rows = read(LeagueResult, FILE)
            if (experiment["name"], seed) not in {(row.experiment, row.seed) for row in rows}:
                new = trained(experiment, seed) if seed else by_rule(experiment)
                write(sorted([*rows, *new]), FILE)


if __name__ == "__main__":
    main()
