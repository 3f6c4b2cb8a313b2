"""A pair that invents a code: ``python -m llm_games.benchmarks.studies.invented_code``.

Two players go to one of four places and are paid if they meet at the right one, which one of them
knows. With symbols they can always do it, without in a quarter of the rounds. One model in both
seats (sb3-contrib's MaskablePPO) learns it with and without talk from several seeds; the shares of
rounds in which the two meet, in games that it was not trained on, are kept. The symbol
of each place differs between seeds, and is printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.benchmarks.studies.dated import RESULTS, markdown, read, today, write
from llm_games.facts import Draw, Fact, param
from llm_games.questions import Integer
from llm_games.registry import rulebook
from llm_games.rounds import Paid, Rounds, Seen
from llm_games.rulebook import Chance, PerPlayer, Rulebook, State
from llm_games.table_batch import Tables
from llm_games.wrappers.batch import BatchSeats
from llm_games.wrappers.learned import LearnedPolicy

FILE = RESULTS / "invented_code.csv"
SEEDS, STEPS = 5, 24  # trainings, and updates of each
COPIES, ROUNDS = 32, 8  # tables that are played together, and rounds of an episode
TESTED = 200  # episodes after each update, of the same chance for all


@dataclass(frozen=True)
class MeetingState(State):
    """Where to meet in each round, and who knows it, ``(rounds, *batch)``."""

    where: Array
    knower: Array


@dataclass(frozen=True)
class Meeting(Rounds):
    """Both are paid if both go to the right place, which one of them is shown."""

    name: ClassVar[str] = "meeting"
    title: ClassVar[str] = "Meeting"
    source: ClassVar[str] = "Lewis, Convention, 1969"
    places: int = param(4, "places to go to", low=2, high=100)

    def bounds(self) -> tuple[int, int]:
        return 0, self.places - 1

    def draws(self) -> Sequence[Draw]:
        last = self.rounds
        return (
            Draw("where", lambda n: n.integers(self.places, shape=last), 0, self.places - 1),
            Draw("knower", lambda n: n.integers(self.players, shape=last), 0, self.players - 1),
        )

    def begin(self, chance: Chance, batch: tuple[int, ...] = ()) -> Any:
        return self.first(MeetingState, batch, **chance)

    def _current_secret(self, state: MeetingState) -> tuple[Array, Array]:
        index = np.minimum(state.round, self.rounds - 1)[None]
        right_place, knower = (
            np.take_along_axis(of, index, 0)[0] for of in (state.where, state.knower)
        )
        return right_place, knower

    def pay(self, state: MeetingState, actions: PerPlayer, broke: PerPlayer) -> Paid:
        is_meeting = (actions == self._current_secret(state)[0]).all(axis=0)
        return np.broadcast_to(is_meeting, actions.shape).astype(float), {}, {"met": is_meeting}

    def known(self) -> Sequence[Fact]:
        def shown(state: MeetingState) -> Array:
            right_place, knower = self._current_secret(state)
            places = np.arange(self.places).reshape(-1, *(1,) * (right_place.ndim + 1))
            return (places == right_place) & (self.seats(state) == knower)

        return (Fact("shown", shown, 0, 1, "the right place is {}", self.places, now=True),)

    def asks(self, state: MeetingState, seat: int) -> Integer:
        return Integer("place", *self.bounds())

    def spectacle(self, state: MeetingState) -> Seen:
        return "", {}


class MeetingPoint(NamedTuple):
    """One point of a curve: the share of rounds in which they met."""

    talk: int
    seed: int
    rounds: int
    met: float
    day: str


def learned(
    talk: bool, seed: int, updates: int = STEPS
) -> Iterator[tuple[MeetingPoint, LearnedPolicy]]:
    """Train one model for both seats; yield its point and player before and after each update."""
    from sb3_contrib import MaskablePPO

    from llm_games.wrappers.sb3 import SB3VecEnv
    from llm_games.wrappers.team_env import TeamVectorEnv

    game = meeting(talk)
    env = SB3VecEnv(TeamVectorEnv(game, COPIES).rows())
    steps = ROUNDS * (3 if talk else 1)  # of an episode: two speeches and a move, or a move
    masked = "MultiInputPolicy" if talk else "MlpPolicy"
    model = MaskablePPO(
        masked, env, n_steps=steps, batch_size=256, gamma=0.9, learning_rate=2e-3, seed=seed
    )
    model.set_random_seed(seed)
    for update in range(updates + 1):
        if update:
            model.learn(steps * 2 * COPIES, reset_num_timesteps=update == 1)
        policy = LearnedPolicy(model, speaks=talk)
        rounds, met = update * COPIES * ROUNDS, round(share_met(game, policy), 4)
        yield MeetingPoint(int(talk), seed, rounds, met, today()), policy


def meeting(talk: bool) -> Rulebook:
    """Return the game, with as many symbols as places or without a word."""
    symbols = {"turns": 1, "alphabet": Meeting.places}
    return rulebook(Meeting, players=2, rounds=ROUNDS, talk=symbols if talk else {})


def share_met(game: Rulebook, policy: LearnedPolicy) -> float:
    tables = Tables(game, TESTED)
    seats = BatchSeats(tables, [policy], np.zeros((2, TESTED), np.int64))
    tables.reset([10**6 + table for table in range(TESTED)])
    seats.start(np.ones(TESTED, np.bool_))
    payoffs = 0.0
    while not tables.state.over.all():
        payoffs += tables.step(seats.ask_now(tables.ready().turn)).rewards[0].sum()
    return payoffs / (TESTED * ROUNDS)


def code(policy: LearnedPolicy) -> list[int]:
    """Symbol of each place, 0 for none."""
    game, places = meeting(True), Meeting.places
    tables = Tables(game, places)
    seats = BatchSeats(tables, [policy], np.zeros((2, places), np.int64))
    shown = {"where": np.tile(np.arange(places), (ROUNDS, 1)), "knower": 0, "talk_order": 0}
    tables.reset([0] * places, given=shown)
    seats.start(np.ones(places, np.bool_))
    while tables.state.turn.any():
        tables.step(seats.ask_now(tables.ready().turn))
    symbols: list[int] = tables.state.symbols[0].tolist()
    return symbols


def page() -> str:
    lines = []
    for rounds in (1024, 3072, 6144):
        points = [point for point in read(MeetingPoint, FILE) if point.rounds == rounds]
        met = (", ".join(f"{p.met:.2f}" for p in points if p.talk == talk) for talk in (1, 0))
        lines.append([f"{rounds:,}", *met])
    return markdown(("rounds of training", "with symbols", "in silence"), lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--updates", type=int, default=STEPS)
    parser.add_argument("--out", type=Path, default=FILE)
    args = parser.parse_args()
    points: list[MeetingPoint] = []
    for talk in (False, True):
        for seed in range(args.seeds):
            curve = [*learned(talk, seed, args.updates)]
            points += (point for point, _ in curve)
            meaning = f", places are said as {code(curve[-1][1])}" if talk else ""
            print(f"talk {talk}, seed {seed}: {points[-1].met:.3f}{meaning}", flush=True)
    write(points, args.out)


if __name__ == "__main__":
    main()
