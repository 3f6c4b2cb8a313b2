"""How much of what is won against a ghost is won against its model: ``carried.csv``.

``python -m llm_games.benchmarks.ghosts.carried`` does what follows for each game and seed, and goes
on where it was stopped. The embedded model is recorded beside a random seat; a learner (PPO) trains
against the ghost of it, and both play on: the learner against the model itself. Then the ghost gets
more games of the model, with the learner at the table (`refit`), or as a control as many with the
random seat, and another learner trains against either.
"""

from __future__ import annotations

import argparse
import csv
import re
import time
import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.training.common import Codec, evaluate
from llm_games.benchmarks.ghosts.ghost import Ghost
from llm_games.benchmarks.ghosts.policy import Named
from llm_games.benchmarks.ghosts.refit import refit
from llm_games.benchmarks.runs.api import run
from llm_games.benchmarks.stats.intervals import t_ends
from llm_games.files import write_whole
from llm_games.registry import rulebook
from llm_games.version import __version__

FILE = Path(__file__).with_suffix(".csv")
MODEL, BESIDE = "tiny", "random"


class Setting(NamedTuple):
    """A game's parameters, the learner's actions, and the fixed baseline."""

    params: dict[str, Any]
    actions: Codec
    fixed: str


GAMES = {
    name: Setting(**setting)
    for name, setting in tomllib.loads(FILE.with_suffix(".toml").read_text("utf-8")).items()
}
SEEDS = 5
RECORDED, MORE = 12, 12
"""Games of the first record, and games that are added to it."""
STEPS = 10_240
"""Decisions of a training."""
EPISODES, PROMISED = 20, 200
"""Games that judge a player against the model, and against a ghost."""
DOCS = Path(__file__).resolve().parents[2] / "docs" / "models_as_learners.md"
PLACE = re.compile(r"(<!-- carried: [^\n]* -->\n).*?(<!-- end -->)", re.DOTALL)
FIRST = 4 * 10**9
"""First seed of these games."""


class Row(NamedTuple):
    """What a player came to, in the mean over games, against a ghost or the model.

    `ghost`: which one was learned against, or is meant: ``first``, ``refitted`` with the learner at
    the table, or ``control``, with as many more games beside the random seat.
    """

    game: str
    seed: int
    player: str
    ghost: str
    against: str
    payoff: float
    games: int
    decisions: int
    day: str
    version: str
    cpu_seconds: float


def rows(file: Path = FILE) -> list[Row]:
    """Return what is in the file."""
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        found = list(csv.DictReader(lines))
    kinds = get_type_hints(Row)
    return [Row(**{name: kinds[name](value) for name, value in row.items()}) for row in found]


def record(new: Sequence[Row], file: Path = FILE) -> None:
    """Add rows to the file."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    writer.writerows([*rows(file), *new])
    write_whole(file, text.getvalue().encode())


def carried(name: str, seed: int, folder: Path, steps: int = STEPS) -> Iterator[Row]:
    """Yield the rows of a game and seed; files go to the folder, which is empty at first."""
    from llm_games.baselines.training.ppo import PPOOptions, train

    params, actions, fixed = GAMES[name]
    rules, began = rulebook(name, **params), time.process_time()
    seats = [BESIDE, *[MODEL] * (rules.players - 1)]
    game = {"game": name, "params": params, "seats": seats}
    raw = {"title": "recorded", "seed": seed, "order": "fixed", "games": [game]}
    played = run(raw, folder / "first.db", use_cache=False, episodes=RECORDED)
    first = Named(played.path, "", 1).ghost()
    day = datetime.now(UTC).date().isoformat()

    def row(player: str, ghost: str, against: str, plays: str, others: str) -> Row:
        many = PROMISED if against == "ghost" else EPISODES
        seeds = [FIRST + 1000 * seed + i for i in range(many)]
        paid = evaluate(rules, [plays, *[others] * (rules.players - 1)], seeds)[0]
        took = time.process_time() - began
        about = (len(seeds), steps, day, __version__, round(took, 1))
        return Row(name, seed, player, ghost, against, round(float(paid.mean()), 4), *about)

    def learned(ghost: Ghost, which: str) -> Iterator[Row]:
        path = ghost.save(folder / f"{which}.ghost")
        options = PPOOptions(
            game=name, param=[f"{key}={_toml(value)}" for key, value in params.items()],
            opponents=[f"ghost:{path}"], seat="0", actions=actions, steps=steps, seed=seed,
            folder=folder / which, episodes=20,
        )  # fmt: skip
        train(options)
        player = f"sb3:{folder / which / 'player.zip'}"
        for who, plays in (("learner", player), (fixed, fixed)):
            yield row(who, which, "ghost", plays, f"ghost:{path}")
        yield row("learner", which, "model", player, MODEL)

    for who in (fixed, BESIDE):
        yield row(who, "", "model", who, MODEL)
    yield from learned(first, "first")
    for which, beside in (
        ("refitted", f"sb3:{folder / 'first' / 'player.zip'}"),
        ("control", BESIDE),
    ):
        more = refit(first, beside, folder / f"{which}.db", [0], episodes=MORE, seed=seed)
        yield from learned(more, which)


def _toml(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


# -- the table -------------------------------------------------------------------------------------


def table(found: Sequence[Row]) -> str:
    """Return the table of the docs: means over seeds with their 95 % intervals."""
    heads = (
        "game",
        "player",
        "against its ghost",
        "against the model",
        "gain promised",
        "gain kept",
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in dict.fromkeys(row.game for row in found):
        own, fixed = [row for row in found if row.game == name], GAMES[name].fixed
        for who, ghost in ((BESIDE, ""), (fixed, "")):
            cells = ["", _mean(_paid(own, who, ghost, "model")), "", ""]
            lines.append(f"| {name} | `{who}` | {' | '.join(cells)} |")
        for which in ("first", "refitted", "control"):
            pairs = [
                (_paid(own, "learner", which, place), _paid(own, fixed, ghost, place))
                for place, ghost in (("ghost", which), ("model", ""))
            ]
            cells = [_mean(mine) for mine, _ in pairs] + [_mean(a - b) for a, b in pairs]
            lines.append(f"| {name} | learner, {which} ghost | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _paid(found: Sequence[Row], player: str, ghost: str, against: str) -> Array:
    """Return by seed what a player was paid."""
    which = (player, ghost, against)
    of = {row.seed: row.payoff for row in found if (row.player, row.ghost, row.against) == which}
    return np.array([of[seed] for seed in sorted(of)])


def _mean(values: Array) -> str:
    mean, error = values.mean(), np.asarray(values.std(ddof=1) / len(values) ** 0.5)
    low, high = t_ends(mean, error, len(values) - 1, 0.95)
    return f"{mean:.2f} [{low:.2f} to {high:.2f}]"


def shown(text: str, found: Sequence[Row]) -> str:
    """Return the text of the docs with the table of these rows."""
    return PLACE.sub(lambda place: f"{place[1]}{table(found)}{place[2]}", text)


def main() -> None:
    """Play and train what is not in the file yet, and write the table of the docs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", nargs="+", default=[*GAMES], choices=GAMES)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    args = parser.parse_args()
    for name in args.games:
        for seed in range(1, args.seeds + 1):
            if any((row.game, row.seed) == (name, seed) for row in rows()):
                continue
            with TemporaryDirectory() as folder:
                record([*carried(name, seed, Path(folder))])
    DOCS.write_text(shown(DOCS.read_text("utf-8"), rows()), "utf-8")


if __name__ == "__main__":
    main()
