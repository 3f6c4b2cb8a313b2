"""How much of what is won against a ghost is won against its model.

``python -m llm_games.benchmarks.studies.carried`` does what follows for each game and seed, and
goes on where it was stopped. The embedded model is recorded beside a random seat; a learner (PPO)
trains against the ghost of it, and both play on: the learner against the model itself. Then the
ghost gets more games of the model, with the learner at the table (`refit`), or as a control as many
with the random seat, and another learner trains against either.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.training.harness import Codec, evaluate, toml
from llm_games.benchmarks.ghosts.ghost_model import Ghost
from llm_games.benchmarks.ghosts.ghost_policy import GhostAddress
from llm_games.benchmarks.ghosts.refit import refit
from llm_games.benchmarks.run.api import run
from llm_games.benchmarks.studies.dated import (
    RESULTS,
    interval,
    markdown,
    read,
    settings,
    today,
    write,
)
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook
from llm_games.version import __version__

FILE = RESULTS / "carried.csv"
MODEL, BESIDE = "tiny", "random"


class CarrySetting(NamedTuple):
    """A game's parameters, the learner's actions, and the fixed baseline."""

    params: dict[str, Any]
    actions: Codec
    fixed: str


GAMES = {name: CarrySetting(**setting) for name, setting in settings(__file__).items()}
SEEDS = 5
RECORDED, MORE = 12, 12
"""Games of the first record, and games that are added to it."""
STEPS = 10_240
"""Decisions of a training."""
EPISODES, PROMISED = 20, 200
"""Games that judge a player against the model, and against a ghost."""
FIRST = 4 * 10**9
"""First seed of these games."""


class CarryResult(NamedTuple):
    """Mean payoff of a player over games against a ghost or the model.

    `ghost`, which was learned against or is meant: ``first``, ``refitted`` with the learner at the
    table, or ``control``, with as many more games beside the random seat.
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


def recorded(
    rules: Rulebook, params: Mapping[str, Any], player: str, db: Path, episodes: int, seed: int = 1
) -> Ghost:
    """The ghost of a player in all seats but the first, a random one."""
    seats = [BESIDE, *[player] * (rules.players - 1)]
    game = {"game": rules.name, "params": params, "seats": seats}
    raw = {"title": "recorded", "seed": seed, "order": "fixed", "games": [game]}
    played = run(raw, db, use_cache=False, episodes=episodes)
    return GhostAddress(played.path, "", 1).ghost()


def carried(name: str, seed: int, folder: Path, steps: int = STEPS) -> Iterator[CarryResult]:
    """Yield the rows of a game and seed; files go to the folder, which is empty at first."""
    from llm_games.baselines.training.ppo import PPOOptions, train

    params, actions, fixed = GAMES[name]
    rules, began = rulebook(name, **params), time.process_time()
    first = recorded(rules, params, MODEL, folder / "first.db", RECORDED, seed)
    day = today()

    def row(player: str, ghost: str, against: str, plays: str, others: str) -> CarryResult:
        count = PROMISED if against == "ghost" else EPISODES
        seeds = [FIRST + 1000 * seed + i for i in range(count)]
        payoffs = evaluate(rules, [plays, *[others] * (rules.players - 1)], seeds)[0]
        return CarryResult(
            game=name,
            seed=seed,
            player=player,
            ghost=ghost,
            against=against,
            payoff=round(float(payoffs.mean()), 4),
            games=len(seeds),
            decisions=steps,
            day=day,
            version=__version__,
            cpu_seconds=round(time.process_time() - began, 1),
        )

    def learned(ghost: Ghost, which: str) -> Iterator[CarryResult]:
        path = ghost.save(folder / f"{which}.ghost")
        options = PPOOptions(
            game=name, param=[f"{key}={toml(value)}" for key, value in params.items()],
            opponents=[f"ghost:{path}"], seat="0", actions=actions, steps=steps, seed=seed,
            folder=folder / which, episodes=20,
        )  # fmt: skip
        train(options)
        player = f"sb3:{folder / which / 'player.zip'}"
        for role, plays in (("learner", player), (fixed, fixed)):
            yield row(role, which, "ghost", plays, f"ghost:{path}")
        yield row("learner", which, "model", player, MODEL)

    for player in (fixed, BESIDE):
        yield row(player, "", "model", player, MODEL)
    yield from learned(first, "first")
    learner = f"sb3:{folder / 'first' / 'player.zip'}"
    for which, beside in (("refitted", learner), ("control", BESIDE)):
        ghost = refit(first, beside, folder / f"{which}.db", [0], episodes=MORE, seed=seed)
        yield from learned(ghost, which)


# -- the table -------------------------------------------------------------------------------------


def shown(rows: Sequence[CarryResult]) -> str:
    """Return the table of means over seeds with their 95 % intervals."""
    heads = "game", "player", "against its ghost", "against the model", "gain promised", "gain kept"
    lines = list[list[str]]()
    for name in dict.fromkeys(row.game for row in rows):
        game_rows, fixed = [row for row in rows if row.game == name], GAMES[name].fixed
        for player in (BESIDE, fixed):
            cells = ["", f"{interval(_payoffs(game_rows, player, '', 'model')):.2f}", "", ""]
            lines.append([name, f"`{player}`", *cells])
        for ghost in ("first", "refitted", "control"):
            among_ghosts, among_model = (
                _payoffs(game_rows, "learner", ghost, against) for against in ("ghost", "model")
            )
            promised = among_ghosts - _payoffs(game_rows, fixed, ghost, "ghost")
            gain = among_model - _payoffs(game_rows, fixed, "", "model")
            cells = [f"{interval(v):.2f}" for v in (among_ghosts, among_model, promised, gain)]
            lines.append([name, f"learner, {ghost} ghost", *cells])
    return markdown(heads, lines)


def _payoffs(rows: Sequence[CarryResult], *key: str) -> Array:
    """Payoffs by seed, of a player, a ghost, and whom it played against."""
    payoffs = {r.seed: r.payoff for r in rows if (r.player, r.ghost, r.against) == key}
    return np.array([payoffs[seed] for seed in sorted(payoffs)])


def page() -> str:
    return shown(read(CarryResult, FILE))


def main() -> None:
    """Play and train what is not in the file yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", nargs="+", default=[*GAMES], choices=GAMES)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    args = parser.parse_args()
    for name in args.games:
        for seed in range(1, args.seeds + 1):
            rows = read(CarryResult, FILE)
            if (name, seed) not in {(row.game, row.seed) for row in rows}:
                with TemporaryDirectory() as folder:
                    write([*rows, *carried(name, seed, Path(folder))], FILE)


if __name__ == "__main__":
    main()
