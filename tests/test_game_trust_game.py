"""The trust game: worked examples, changing roles, an end by chance, players, measures."""

from fractions import Fraction as F

import numpy as np
import pytest
from playing import each_row

import llm_games as lg
from llm_games.baselines.games.trust_game import theory
from llm_games.baselines.play_measures import described
from llm_games.baselines.regret import deviation, rational, stacked, welfare
from llm_games.errors import BadParameter
from llm_games.questions import MISSING
from llm_games.table import Table
from llm_games.view import View
from llm_games.words import Prompts

VERSIONS = ("v1", "v2", "v3", "v4", "v5")


def play(moves, given=None, **more):
    """Play moves in turn; return the payoffs and the records."""
    table, paid, records = Table(lg.rules("trust_game", **more)), np.zeros(2), []
    table.reset(0, given)
    for move in moves:
        assert not table.state.over
        [seat] = table.sight.asked
        outcome = table.step({seat: MISSING if move is None else move})
        paid += outcome.rewards
        records.append(outcome.record)
    assert table.state.over
    return paid.tolist(), records


@each_row(
    ("more", "moves", "paid"),
    [
        ({}, [5, 7], [12, 18]),
        ({}, [10, 0], [0, 40]),
        ({}, [5, 16], [5, 25]),
        ({}, [None, 0], [10, 10]),
        ({}, [11, 0], [10, 10]),
        ({}, [10, None], [0, 40]),
        ({"endowment": (10, 0)}, [10, 15], [15, 15]),
        ({"preset": "moblab"}, [100, 150], [150, 150]),
        ({"roles": "alternate", "rounds": 2}, [10, 15, 4, 6], [31, 37]),
    ],
)
def test_worked_examples(more, moves, paid):
    found, records = play(moves, **more)
    assert found == paid
    game = lg.rules("trust_game", **more)
    first, second = game.endowment
    rounds = [record for record in records if record["returning"]]
    for record in rounds:  # money adds up
        assert record["payoffs"].sum() == first + second + (game.multiplier - 1) * record["sent"]


def test_an_end_by_chance_is_told_without_its_cap():
    paid, _ = play([10, 15] * 3, {"last_round": 3}, continuation="3/4")
    assert paid == [45, 75]
    game = lg.rules("trust_game", continuation="3/4")
    assert game.rounds == 73
    state = game.reset(0, given={"last_round": 3})
    other = game.reset(0, given={"last_round": 70})
    for version in VERSIONS:
        prompts = Prompts("trust_game", version)
        texts = [prompts.text(View.of(game, s, 0)) for s in (state, other)]
        assert "75%" in texts[0]
        assert "73" not in texts[0]
        assert texts[0] == texts[1]
    assert (game.observe(state) == game.observe(other)).all()


def test_the_trustee_is_asked_though_nothing_came():
    game = lg.rules("trust_game")
    state, outcome = game.step(game.reset(0), np.array([0, MISSING]))
    assert game.asked(state).tolist() == [False, True]
    assert game.question(state, 1).high == 0
    assert not outcome.rewards.any()


@each_row(
    ("endowment", "multiplier", "continuation", "returns"),
    [
        ((10, 10), 3, F(1, 3), range(10, 11)),
        ((10, 10), 3, F(1, 2), range(10, 16)),
        ((10, 10), 3, F(33, 100), range(10, 10)),
        ((10, 0), 2, F(1, 2), range(10, 11)),
        ((7, 0), 1, F(99, 100), range(7, 7)),
    ],
)
def test_what_can_be_held_without_an_end(endowment, multiplier, continuation, returns):
    game = lg.rules("trust_game", endowment=endowment, multiplier=multiplier)
    found = theory.held_returns(game, continuation)
    assert list(found) == list(returns)
    assert bool(found) == (continuation >= F(1, multiplier))
    sent, n = endowment[0], 4000  # by summing up: neither gains by leaving for (0, 0)
    weights = float(continuation) ** np.arange(n)
    for back in range(multiplier * sent + 1):
        stays = ((multiplier * sent - back) * weights).sum()
        holds = stays >= multiplier * sent - 1e-9 and back >= sent
        assert holds == (back in returns)


def nothing_by_induction(game, rounds):
    """Return the perfect payoffs of the rest of a small game, by trying everything."""
    if rounds == 0:
        return 0, 0
    later = nothing_by_induction(game, rounds - 1)
    first, second = game.endowment
    ends = []
    for sent in range(first + 1):
        backs = [
            (first - sent + back + later[0], second + game.multiplier * sent - back + later[1])
            for back in range(game.multiplier * sent + 1)
        ]
        ends.append(max(backs, key=lambda pay: pay[1]))
    return max(ends, key=lambda pay: pay[0])


def test_the_rational_play_the_only_perfect_outcome():
    game = lg.rules("trust_game", endowment=(3, 2), multiplier=2, rounds=3)
    episode = lg.play(game, [lg.player("rational")] * 2)
    assert tuple(episode.payoffs) == nothing_by_induction(game, 3) == (9, 6)
    records = [step.outcome.record for step in episode.steps]
    assert not sum(deviation(game, record).regret.sum() for record in records)
    found = welfare(game, stacked(records))
    assert (found.total, found.worst, found.best, found.highest) == (15, 15, 24, 15)
    assert rational(game).kind == "equilibrium"
    open_ended = lg.rules("trust_game", continuation="1/2")
    assert "among many" in rational(open_ended).sentence
    assert "among many" not in rational(lg.rules("trust_game", continuation="1/4")).sentence


@each_row(
    ("players", "more", "moves"),
    [
        ("trusting rational", {}, [10, 0]),
        ("rational trusting", {}, [0, 0]),
        ("trusting trusting", {}, [10, 15]),
        ("fixed:5,1/2 reciprocal", {}, [5, 10]),
        ("fixed:4,0 repay", {"multiplier": 2}, [4, 4]),
        ("repay fixed:0,1/3", {}, [10, 10]),
        ("grim_investor fixed:0,1/4", {"rounds": 3}, [10, 7, 0, 0, 0, 0]),
        ("grim_investor repay", {"rounds": 2}, [10, 10, 10, 10]),
        ("tit_for_tat_investor fixed:0,1/2", {"rounds": 3}, [5, 7, 7, 10, 10, 15]),
        ("tit_for_tat_investor rational", {"rounds": 2}, [5, 0, 0, 0]),
        ("grim_investor rational", {"rounds": 4, "roles": "alternate"}, [10, 0, 0, 0, 0, 0, 0, 0]),
        ("best_response trusting", {"rounds": 2}, [0, 0, 0, 0]),
    ],
)
def test_players(players, more, moves):
    game = lg.rules("trust_game", **more)
    episode = lg.play(game, [lg.player(name, game) for name in players.split()])
    actions = [max(step.outcome.record["actions"].tolist()) for step in episode.steps]
    assert actions == moves


@each_row("value", ["5", "11,0", "5,2", "a,b", "5,", "-1,0"])
def test_fixed_amounts_that_cannot_be_played(value):
    with pytest.raises(BadParameter, match="an amount to send and a share to return"):
        lg.player(f"fixed:{value}", "trust_game")


def test_measures_of_some_plays():
    game = lg.rules("trust_game")
    plays = [stacked(play(moves)[1]) for moves in ([5, 7], [10, 0], [0, 0])]
    found = described(game, plays)
    assert found["sent share"] == 0.5
    assert found["returned share"] == pytest.approx((7 / 15 + 0) / 2)
    assert found["returned at least what was sent"] == 0.5
    assert found["efficiency"] == pytest.approx((30 + 40 + 20) / 120)
    assert found["trustee's regret"] == pytest.approx(7 / 3)
    assert found["investor's regret"] == pytest.approx(5 * (1 - 0.7))
    generous = described(game, [stacked(play([4, 8])[1])])
    assert generous["investor's regret"] == pytest.approx(6 * (2 - 1))
    assert np.isnan(described(game, [])["sent share"])
