"""What self-play, learners of all seats and learners of auctions come to, beside players by rule.

``python -m llm_games.benchmarks.learning.league [NAME ...]`` trains what ``league.toml`` names,
each with several seeds, goes on where it was stopped, and writes the tables in docs/training.md.
"""

from __future__ import annotations

import csv
import sys
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

from llm_games.baselines.players import make_player
from llm_games.baselines.skill import play_batch
from llm_games.baselines.training import ippo, ppo, self_play
from llm_games.baselines.training.common import LAST, Options, Table, curve, judge
from llm_games.benchmarks.stats.intervals import t_ends
from llm_games.files import write_whole
from llm_games.version import __version__
from llm_games.wrappers.policy import Policy

FILE = Path(__file__).with_suffix(".csv")
SETTINGS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
METHODS: dict[str, tuple[type[Options], Any]] = {
    "ippo": (ippo.Settings, ippo.train),
    "ppo": (ppo.PPOOptions, ppo.train),
    "self_play": (self_play.Settings, self_play.train),
}
GAMES = 1000
"""Games of a player in all seats; in those of `LAST` it is measured, as those by rule are."""
RULE = "by rule"
DOCS = Path(__file__).resolve().parents[2] / "docs" / "training.md"
MARKS = (
    "<!-- league: written by python -m llm_games.benchmarks.learning.league -->",
    "<!-- end of league -->",
)


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


def rows(file: Path = FILE) -> list[Row]:
    """Return what is in the file."""
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        found = list(csv.reader(lines))[1:]
    types = get_type_hints(Row).values()
    return [Row(*(kind(v) for kind, v in zip(types, row, strict=True))) for row in found]


def record(new: Sequence[Row], file: Path = FILE) -> None:
    """Write rows to the file, in place of those of the same training; all or none."""
    again = {row[:3] for row in new}
    found = sorted([*(row for row in rows(file) if row[:3] not in again), *new])
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows([Row._fields, *found])
    write_whole(file, text.getvalue().encode())


def versions() -> str:
    """Return what it was made with."""
    packages = (f"{name} {version(name)}" for name in ("torch", "stable-baselines3", "numpy"))
    return " ".join([f"llm-games {__version__}", *packages])


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
    spent, day = round(time.process_time() - began, 1), datetime.now(UTC).date().isoformat()
    told = experiment["name"], experiment["method"], seed
    end = spent, day, versions()
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
    end = datetime.now(UTC).date().isoformat(), versions()
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


def interval(values: Sequence[float], form: str = ".1%") -> str:
    """Return a mean with its 95 % interval over seeds."""
    found = np.array(values)
    if len(found) < 2:
        return format(found.mean(), form)
    error = found.std(ddof=1) / np.sqrt(len(found))
    low, high = t_ends(found.mean(), np.asarray(error), len(found) - 1, 0.95)
    return f"{found.mean():{form}} [{float(low):{form}}, {float(high):{form}}]"


def of(found: Sequence[Row], experiment: str, measure: str) -> tuple[list[float], dict[str, float]]:
    """Return a measure at the end of each training, and that of players by rule, by name."""
    own = [row for row in found if (row.experiment, row.measure) == (experiment, measure)]
    learned = [row.value for row in own if row.seed]
    return learned, {
        row.learner.removeprefix(f"{RULE}: "): row.value for row in own if not row.seed
    }


def compared(found: Sequence[Row]) -> list[str]:
    """Return the table of learners beside the best player by rule."""
    said = ["| table | learner | measure | learner | best player by rule | share of it |"]
    said.append("|" + "---|" * 6)
    for one in SETTINGS["experiments"]:
        for measure in ("payoff at last", "payoff among itself", "mean move"):
            learned, rule = of(found, one["name"], measure)
            if not learned or not rule:
                continue
            best = max(rule, key=lambda who: rule[who])
            share = interval([value / rule[best] for value in learned])
            cells = [one["name"], f"`{one['method']}`", measure, interval(learned, ".1f")]
            said.append(f"| {' | '.join([*cells, f'`{best}` {rule[best]:.1f}', share])} |")
    return said


def curves(found: Sequence[Row], measure: str = "tree/nash_conv") -> list[str]:
    """Return the table of how a measure goes, mean (least to most), from the start to the end."""
    said = [
        "| table | at first | a quarter | half | three quarters | at the end |",
        "|" + "---|" * 6,
    ]
    for one in SETTINGS["experiments"]:
        own = [row for row in found if (row.experiment, row.measure) == (one["name"], measure)]
        if not own:
            continue
        steps = sorted({row.steps for row in own})
        marks = [steps[len(steps) * part // 4 - (part == 4)] for part in range(5)]
        each = [[row.value for row in own if row.steps == mark] for mark in marks]
        cells = [f"{np.mean(v):.2g} ({min(v):.2g} to {max(v):.2g})" for v in each]
        said.append(f"| {' | '.join([one['name'], *cells])} |")
    return said


def tables(found: Sequence[Row]) -> str:
    """Return what stands in the docs."""
    spent = sum({row[:3]: row.cpu_seconds for row in found}.values())
    days, made = sorted({row.day for row in found}), sorted({row.versions for row in found})
    steps = max(row.steps for row in found)
    told = f"{', '.join(days)}; {'; '.join(made)}; {spent / 60:.0f} minutes of CPU in all; "
    told += f"{steps:,} steps at most."
    return "\n".join([*compared(found), "", "NashConv, exact, mean (least to most):", "", *curves(found), "", told])


def main() -> None:
    """Train what is not in the file yet, print, and write the tables."""
    wanted = sys.argv[1:]
    for one in SETTINGS["experiments"]:
        if wanted and one["name"] not in wanted:
            continue
        held = {(row.experiment, row.seed) for row in rows()}
        if "best" in one and (one["name"], 0) not in held:
            record(by_rule(one))
        for seed in SETTINGS["seeds"]:
            if (one["name"], seed) not in held:
                record(trained(one, seed))
    found = tables(rows())
    print(found)
    text = DOCS.read_text("utf-8")
    before, rest = text.split(MARKS[0])
    DOCS.write_text(f"{before}{MARKS[0]}\n{found}\n{MARKS[1]}{rest.split(MARKS[1])[1]}", "utf-8")


if __name__ == "__main__":
    main()
