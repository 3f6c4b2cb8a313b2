"""Games that end by chance: the cap is never told, and where the end is fixed nothing changes."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from playing import each_row

import llm_games as lg
from llm_games.baselines.play_measures import described
from llm_games.baselines.regret import stacked
from llm_games.game_rooms import ROOMS
from llm_games.noise import Noise
from llm_games.questions import Integer
from llm_games.random_end import least_cap
from llm_games.registry import game_class
from llm_games.rounds import OpenRounds
from llm_games.rulebook import Goal
from llm_games.table import Table


@dataclass(frozen=True)
class Counting(OpenRounds):
    """Everybody names a number and is paid it."""

    name: ClassVar[str] = "counting"
    title: ClassVar[str] = "Counting"
    source: ClassVar[str] = "this test"
    usual_rounds: ClassVar[int] = 4

    def bounds(self):
        return 0, 9

    @property
    def largest(self):
        return 10**13 * self.rounds

    def pay(self, state, actions, broke):
        return actions * 1.0, {"actions": actions}, {}

    def known(self):
        return (self.now,)

    def asks(self, state, seat):
        return Integer("number", 0, 9)

    def spectacle(self, state):
        return "", {}


def length(**given):
    game = Counting(players=2, continuation="3/4")
    table = Table(game)
    table.reset(0, given)
    while not table.state.over:
        table.step({0: 1, 1: 2})
    return int(table.state.round)


@each_row(
    ("continuation", "cap"),
    [("1/2", 30), ("3/4", 73), ("7/8", 156), ("9/10", 197), ("1/10", 9), ("1/10000000000", 1)],
)
def test_the_cap_is_hardly_ever_reached(continuation, cap):
    chance = Fraction(continuation)
    assert least_cap(chance) == cap == Counting(players=2, continuation=continuation).rounds
    assert chance**cap <= Fraction(1, 10**9)
    assert cap == 1 or chance ** (cap - 1) > 1 / 10**9


def test_a_fixed_end():
    game = Counting(players=2)
    assert (game.rounds, game.draws(), game.terms()["rounds"]) == (4, (), 4)
    assert "round 0 of 4" in game.picture(game.reset(0))[0]
    assert Counting(players=2, rounds=7).rounds == 7


def test_the_end_that_was_drawn():
    assert [length(last_round=last) for last in (1, 3, 73)] == [1, 3, 73]


def test_rounds_follow_with_the_probability_that_is_told():
    game = Counting(players=2, continuation="3/4")
    last = game.chance(Noise(np.arange(20_000)))["last_round"]
    assert abs(last.mean() - 4) < 0.1
    assert abs((last > 1).mean() - 0.75) < 0.01
    alone = game.chance(Noise(7))["last_round"]
    whole = Counting(players=2, continuation="3/4", rounds=500).chance(Noise(7))["last_round"]
    sides = Noise(7).of("last_round").integers(0, 4, 72)
    assert alone == whole == last[7] == np.argmax(sides >= 3) + 1


def test_neither_cap_nor_end_is_told():
    game = Counting(players=2, continuation="9/10")
    state = game.reset(3)
    assert game.terms()["rounds"] is None
    assert game.terms()["continuation"] == Fraction(9, 10)
    assert game.told(state, 0) == {"round": 1, "last": None}
    assert "197" not in game.picture(state)[0]
    other = game.reset(3, given={"last_round": 5})
    assert (game.observe(state) == game.observe(other)).all()
    assert game.goal(0) == Goal()


OPEN = [name for name in ROOMS if issubclass(game_class(name), OpenRounds)]


@each_row("name", OPEN)
def test_reports_give_the_mean_of_a_round(name):
    """Of all rounds of all games together, as totals hang on how many there are."""
    game, plays, totals = lg.rules(name, continuation="3/4"), [], np.zeros(2)
    for seed in range(4):
        episode = lg.play(game, [lg.player("random")] * game.players, seed=seed)
        plays.append(stacked([step.outcome.record for step in episode.steps]))
        totals += episode.payoffs[0], episode.state.round
    found = described(game, plays, [0])["mean payoff"]
    assert found == pytest.approx(totals[0] / totals[1])


@each_row(
    ("parameters", "words"),
    [
        ({"continuation": "3/4", "rounds": 72}, "rounds must be at least 73"),
        ({"continuation": 0}, "above 0"),
        ({"continuation": "5/4"}, "continuation must be a ratio"),
        ({"continuation": "999999/1000000"}, "nearly always ends within"),
        ({"rounds": 999_999}, "rounds=999999: with these"),
        ({"rounds": 0}, "rounds must be an integer of at least 1"),
    ],
)
def test_bad_ends(parameters, words):
    with pytest.raises(lg.BadParameter, match=words):
        Counting(players=2, **parameters)
