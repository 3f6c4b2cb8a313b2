"""A learner's gain in each game: ``python -m llm_games.benchmarks.studies.gains_by_game``.

One seat learns, all others play ``rational`` (sb3-contrib's MaskablePPO, default parameters, the
seats in turn). During training it replaces ``rational`` in games that it was not trained on: its
payoff less that of ``rational`` in the same seat of the same game is kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.batch_play import play_batch
from llm_games.baselines.learner import learners
from llm_games.benchmarks.studies.dated import RESULTS, interval, read, today, write
from llm_games.game_rooms import ROOMS
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook
from llm_games.wrappers.learned import LearnedPolicy
from llm_games.wrappers.policy import Policy

FILE = RESULTS / "gains_by_game.csv"
OTHERS = "rational"
SEEDS, UPDATES, EACH = 1, 16, 4  # trainings, updates of each, and after how many it is tested
COPIES, STEPS = 64, 20  # tables that are played together, and learner's steps before an update
SETTINGS: dict[str, Any] = {"batch_size": 320, "n_epochs": 4, "learning_rate": 1e-3}
EPISODES, FEW, MANY = 40, 5, 50  # games of a test, and of more players than so many
LONGEST = 100  # rounds of each where there are more


class GainPoint(NamedTuple):
    """The gain after so many of the learner's steps: mean of a test and its 95 % interval."""

    game: str
    edition: int
    day: str
    seed: int
    steps: int
    gain: float
    low: float
    high: float


def episodes(rules: Rulebook) -> int:
    return EPISODES if rules.players <= MANY else FEW


def gains(rules: Rulebook, players: Sequence[str | Policy], count: int) -> Array:
    """Return each player's payoff less that of ``rational`` in the same seat, ``(players, games)``.

    All others play ``rational``; the seat rotates over games, the chance is the same for all.
    """
    distinct = [OTHERS, *players]
    game = np.arange(len(distinct) * count) % count
    sits = np.zeros((rules.players, len(game)), np.int64)
    seat = game % rules.players
    tables = np.arange(len(game))
    sits[seat, tables] = tables // count
    payoffs = np.zeros(len(game))
    steps = None if rules.turns else LONGEST
    for _, outcome in play_batch(rules, distinct, sits, game.tolist(), max_steps=steps):
        payoffs += outcome.rewards[seat, tables]
    of_each = payoffs.reshape(len(distinct), count)
    return np.asarray(of_each[1:] - of_each[0])


def learned(name: str, seed: int, updates: int = UPDATES) -> Iterator[GainPoint]:
    """Train a learner in a game; yield its gain before, at every `EACH` updates, and after it."""
    from gymnasium.spaces import Dict
    from sb3_contrib import MaskablePPO

    from llm_games.wrappers.sb3 import SB3VecEnv

    rules, day = rulebook(name), today()
    env = SB3VecEnv(learners(name, COPIES, opponents=OTHERS, seat="rotate", normalize=True))
    network = "MultiInputPolicy" if isinstance(env.observation_space, Dict) else "MlpPolicy"
    env.seed(10**6 * (seed + 1))
    model = MaskablePPO(network, env, n_steps=STEPS, seed=seed, **SETTINGS)
    policy = LearnedPolicy(model, normalize=True)
    for update in range(0, updates + 1, EACH):
        if update:
            model.learn(EACH * STEPS * COPIES, reset_num_timesteps=update == EACH)
        gained = gains(rules, [policy], episodes(rules))[0]
        shown = (round(value, 4) for value in interval(gained))
        yield GainPoint(name, rules.edition, day, seed, update * STEPS * COPIES, *shown)


def points() -> list[GainPoint]:
    return read(GainPoint, FILE)


def main() -> None:
    ours = [name for name, room in ROOMS.items() if room.rules.startswith("llm_games.games.")]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", nargs="+", default=sorted(ours), choices=ours)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    args = parser.parse_args()
    for name in args.games:
        other_points = [point for point in points() if point.game != name]
        new_points = [point for seed in range(args.seeds) for point in learned(name, seed)]
        print(name, *(point.gain for point in new_points), flush=True)
        write(sorted([*other_points, *new_points]), FILE)


if __name__ == "__main__":
    main()
