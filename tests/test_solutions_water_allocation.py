"""Water allocation: the endurance table, critical prices, best responses, planner, survival."""

import dataclasses
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import each_row, efficiency, price_ratio

import llm_games
from llm_games.baselines.games.water_allocation import theory as solution
from llm_games.baselines.games.water_allocation.players import situation
from llm_games.baselines.games.water_allocation.theory import (
    LEVELS,
    NEVER,
    RULES,
    WaterSituation,
    best_plan,
    best_response,
    critical_price,
    endurance,
    even,
    plan,
    play,
    response,
)
from llm_games.baselines.players import make_player
from llm_games.baselines.regret import deviation
from llm_games.errors import BadParameter
from llm_games.games.water_allocation.rules import WaterAllocation
from llm_games.questions import NO_BID
from llm_games.view import View


def survival(game, rules, games=4000, seed=0):
    return play(game, rules, games, seed).survived.mean(axis=1)


LOW, MEDIUM, HIGH = (llm_games.rules("water_allocation", preset=f"setting_{i}") for i in (1, 2, 3))
SUPPLIES = {"low": LOW, "medium": MEDIUM, "high": HIGH}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("LLM_GAMES_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


# -- D(h, k) ---------------------------------------------------------------------------------------


@each_row(
    ("dry", "days"),
    [
        (0, [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]),
        (1, [0, 0, 1, 1, 1, 2, 2, 2, 2, 3]),
        (2, [0, 0, 0, 1, 1, 1, 1, 2, 2, 2]),
        (3, [0, 0, 0, 0, 1, 1, 1, 1, 1, 2]),
    ],
)
def test_endurance(dry, days):
    assert endurance(np.arange(1, 11), np.array(dry)).tolist() == days


@given(st.integers(1, 60), st.integers(0, 5))
def test_endurance_by_going_dry(hp, dry):
    days = -1
    while hp > 0:
        dry, days = dry + 1, days + 1
        hp -= dry
    first = hp + sum(range(dry - days, dry + 1))
    assert endurance(np.array(first), np.array(dry - days - 1)) == days


def test_a_player_needs_water_on_seven_days():
    """The fewest wins to survive 20 days from 8 health, by search over all patterns."""
    fewest = {(8, 0): 0}
    for _ in range(20):
        after = {}
        for (hp, dry), wins in fewest.items():
            moves = ((min(10, hp + 2), 0, wins + 1), (hp - dry - 1, dry + 1, wins))
            for up, streak, count in moves:
                if up > 0:
                    after[up, streak] = min(count, after.get((up, streak), 99))
        fewest = after
    assert min(fewest.values()) == 7


# -- rules of thumb --------------------------------------------------------------------------------


@each_row(
    ("name", "hp", "dry", "days_left", "bid"),
    [
        ("even", 8, 0, 20, 25), ("even", 1, 0, 20, 100), ("even", 8, 0, 3, 0),
        ("even", 8, 0, 4, 25), ("even", 6, 2, 20, 50), ("all_in", 8, 0, 4, 100),
        ("all_in", 8, 0, 3, 0), ("urgent", 1, 0, 5, 100), ("urgent", 2, 0, 5, 50),
        ("urgent", 4, 0, 5, 0), ("urgent", 2, 0, 1, 0), ("salary", 8, 0, 5, 70),
        ("zero", 1, 0, 5, 0), ("half", 1, 0, 5, 50),
    ],
)  # fmt: skip
def test_rules_of_thumb(name, hp, dry, days_left, bid):
    now = WaterSituation(*map(np.array, (100, 70, hp, dry, days_left, 15)))
    assert RULES[name](now, np.random.default_rng(0)) == bid


# Mean survivors when all five follow one rule; the source's, of 40 000 games.
SURVIVORS = {
    "zero": (1.16, 1.99, 2.16),
    "salary": (1.01, 1.33, 1.97),
    "random": (1.70, 2.59, 3.61),
    "half": (1.92, 3.03, 3.89),
    "all_in": (1.96, 3.20, 4.62),
    "even": (1.96, 3.30, 4.57),
    "urgent": (2.27, 3.27, 4.84),
}


@each_row("name", SURVIVORS)
def test_survivors_by_rule(name):
    for game, expected in zip((LOW, MEDIUM, HIGH), SURVIVORS[name], strict=True):
        assert survival(game, [RULES[name]] * 5, 6000, 1).sum() == pytest.approx(expected, abs=0.05)


@each_row(
    ("supply", "expected"),
    [("low", [0.17, 0.15, 0.54, 0.74, 0.37]), ("medium", [0.34, 0.45, 0.69, 0.95, 0.87]),
     ("high", [0.64, 0.93, 1, 1, 1])],
)  # fmt: skip
def test_survival_of_even_players_by_seat(supply, expected):
    assert survival(SUPPLIES[supply], [even] * 5, 6000, 2) == pytest.approx(expected, abs=0.03)


# -- prices ----------------------------------------------------------------------------------------


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 4),
    st.sampled_from(["skip", "stop"]),
    st.sampled_from(["lower_requirement", "index"]),
)
def test_the_critical_price_is_the_lowest_bid_that_wins(seed, seat, allocation, tie_rule):
    rng = np.random.default_rng(seed)
    needs = rng.integers(1, 15, 5)
    game = WaterAllocation(
        residents=[(f"R{i}", int(need), 0) for i, need in enumerate(needs)],
        balance_start=40,
        allocation=allocation,
        tie_rule=tie_rule,
    )
    supply = int(rng.integers(0, 45))
    others = rng.integers(NO_BID, 21, 5)
    bids = np.repeat(others[:, None], 42, axis=1)
    bids[seat] = np.arange(NO_BID, 41)
    state = game.reset(seed, (42,))
    state = dataclasses.replace(state, supplies=np.full_like(state.supplies, supply))
    won = game.step(state, bids)[1].record["won"][seat]
    lowest = bids[seat][won].min() if won.any() else NEVER
    assert critical_price(game, others, np.array(supply), seat) == lowest
    batch = critical_price(game, bids, np.full(42, supply), seat)
    assert (batch == lowest).all()


def test_levels_of_the_grid():
    assert len(LEVELS) == 131
    assert LEVELS[[0, 40, 41, 70, 95, 130]].tolist() == [0, 40, 42, 100, 200, 480]
    assert solution.unit(WaterAllocation(money_decimals=2)) == 100


# -- best responses --------------------------------------------------------------------------------


def mean_share(game, field, rows, games=1000):
    rules = [[*field[:seat], rows[seat], *field[seat + 1 :]] for seat in range(5)]
    return np.mean([survival(game, r, games, seed=77)[seat] for seat, r in enumerate(rules)])


# Bounds for a row among columns. Known figures for one pass over the prices are, low: 0.86, 0.68,
# 0.93, 0.74, 0.86, 0.08; medium: 0.95, 0.90, 0.84, 0.22; high: 1, 1. Two passes reply better.
ROWS = {
    "low": {"L1 even": (0.86, 0.92), "L1 random": (0.68, 0.78), "L1 urgent": (0.91, 0.97),
            "L2 L1": (0.72, 0.82), "L2 even": (0.80, 0.90), "even L1": (0.04, 0.14)},
    "medium": {"L1 even": (0.93, 0.97), "L1 random": (0.88, 0.94), "even L1": (0.18, 0.31)},
    "high": {"L1 even": (0.99, 1), "L1 urgent": (0.99, 1), "L1 random": (0.92, 1)},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("supply", ROWS)
def test_best_responses_against_fields(supply):
    game = SUPPLIES[supply]
    names = {name for pair in ROWS[supply] for name in pair.split()}
    fields = {
        name: [response(game, seat, int(name[1:])) for seat in range(5)]
        if name.startswith("L")
        else [RULES[name]] * 5
        for name in names
    }
    for pair, (low, high) in ROWS[supply].items():
        row, column = pair.split()
        assert low <= mean_share(game, fields[column], fields[row]) <= high, pair


@pytest.mark.slow
def test_with_much_water_nobody_can_gain_much():
    """Nearly all survive at level 1, so that no reply is much better than it."""
    levels = [response(HIGH, seat, 1) for seat in range(5)]
    assert survival(HIGH, levels, 4000).sum() > 4.85


def test_a_response_takes_less_than_five_seconds():
    began = time.process_time()
    field = play(LOW, [even] * 5, solution.GAMES)
    best_response(LOW, field, 2)
    assert time.process_time() - began < 5


def test_an_optimal_plan_alone_in_town():
    """Alone, all water is free; what counts is only whether it suffices."""
    game = WaterAllocation(players=1, supply_low=8, supply_high=8, days=6)
    found = response(game, 0, 1)
    assert found.value == pytest.approx(1, abs=0.01)
    assert survival(game, [found], 50).tolist() == [1]
    dry = WaterAllocation(players=1, supply_low=7, supply_high=7, days=6)
    assert response(dry, 0, 1).value == 0


def test_backward_induction_by_hand():
    """Two days, one point of health: win both days or die; the money is 10 and 10."""
    game = WaterAllocation(
        players=1, residents=[("A", 1, 10)], days=2, supply_low=1, supply_high=1,
        hp_start=1, hp_max=1, hp_gain=0,
    )  # fmt: skip
    chances = np.minimum(LEVELS / 20, 1).astype(np.float32)
    best = 0.0
    for first in range(11):
        second = 20 - first
        best = max(best, min(first / 20, 1) * min(second / 20, 1))
    value = np.zeros(481)
    for money in range(481):
        value[money] = max(chances[: np.searchsorted(LEVELS, money, "right")])
    two_days = max(chances[b] * value[10 - b + 10] for b in range(11))
    assert two_days == pytest.approx(best)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solution, "MONEY", 0)
        patch.setattr(solution, "win_chances", lambda *_: np.tile(chances, (2, 1, 1)))
        patch.setattr(solution, "unit", lambda game: 1)
        found = best_response(game, None, 0)
    assert found.value == pytest.approx(best)
    now = WaterSituation(*map(np.array, (10, 10, 1, 0, 2, 1)))
    assert found(now) == 10


def test_responses_are_kept_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("LLM_GAMES_CACHE", str(tmp_path))
    game = WaterAllocation(players=2, days=4)
    response.cache_clear()
    first = response(game, 0, 2)
    assert len(list(tmp_path.iterdir())) == 3  # both seats at level 1, and this one
    response.cache_clear()
    worded = dataclasses.replace(game, persona="default", shown_dry_counter="next_loss")
    again = response(worded, 0, 2)
    assert len(list(tmp_path.iterdir())) == 3
    assert np.array_equal(first.choice, again.choice)
    response.cache_clear()


# -- the planner -----------------------------------------------------------------------------------


@each_row(("supply", "keep", "survivors"), [("low", 3, 3.0), ("medium", 4, 3.98), ("high", 5, 5.0)])
def test_the_planner(supply, keep, survivors):
    game = SUPPLIES[supply]
    assert best_plan(game)[0] == keep
    assert plan(game, keep, 6000).sum() == pytest.approx(survivors, abs=0.04)


@pytest.mark.slow
def test_regret_and_prices():
    field = play(LOW, [even] * 5, 1000)
    found = [solution.regret(LOW, field, seat).mean() for seat in (1, 3)]
    assert min(found) > 0.15  # even bidders could do much better
    assert efficiency(LOW, field) == pytest.approx(1.96 / 3, abs=0.03)
    assert price_ratio(LOW, field) > 1.2


@pytest.mark.slow
def test_a_best_responder_has_no_regret():
    """The chance that its response expects, .78, is far below what it lives through, .87."""
    best = response(LOW, 4, 1)
    field = play(LOW, [*[even] * 4, best], 1000, 5)
    gains = solution.regret(LOW, field, 4)
    assert abs(gains.mean()) < 0.01 + 2 * gains.std() / np.sqrt(len(gains))
    assert best.value < field.survived[4].mean()


def test_prices_by_hand():
    """Bob alone is served: he pays 30 where 21 is enough, Alex being first at 20."""
    game = WaterAllocation(players=3, days=1, supplies=[10])
    rules = [lambda now, rng, bid=bid: np.full(now.balance.shape, bid) for bid in (20, 30, 20)]
    field = play(game, rules, 2)
    assert field.survived.all()
    prices = [critical_price(game, field.bids[0], field.supplies[0], s)[0] for s in range(3)]
    assert prices == [30, 21, 31]
    assert price_ratio(game, field) == pytest.approx(30 / 21)
    alone = play(WaterAllocation(players=1, days=1), rules[:1], 2)
    assert price_ratio(WaterAllocation(players=1, days=1), alone) is None


def test_needless_deaths():
    """Alex and Bob die with the money to outbid Cindy; if she bids all hers, they have not."""
    game = WaterAllocation(players=3, hp_start=1, supplies=[10] + [0] * 19, balance_start=50)
    state = game.reset(0)
    _, outcome = game.step(state, np.array([20, 60, 70]))
    assert outcome.record["won"].tolist() == [False, False, True]
    assert outcome.record["died"].tolist() == [True, True, False]
    found = deviation(game, outcome.record)
    assert found.regret.tolist() == [1, 1, 0]
    assert np.isnan(found.distance)
    _, outcome = game.step(state, np.array([20, 60, 150]))
    assert deviation(game, outcome.record).regret.tolist() == [0, 0, 0]  # 150 is beyond them


# -- players ---------------------------------------------------------------------------------------


def test_players_see_what_the_rules_of_thumb_need():
    game = WaterAllocation(money_decimals=2)
    rng = np.random.default_rng(1)
    state = game.reset(1, (50,))
    for _ in range(10):
        for seat in range(5):
            seen, known = (
                situation(View.of(game, state, seat)),
                WaterSituation.of(game, state, seat),
            )
            alive = state.living[seat]
            for field in dataclasses.fields(known):
                one, two = getattr(seen, field.name), getattr(known, field.name)
                assert (one == two)[alive].all(), field.name
        bids = rng.integers(-1, game.purse(state), endpoint=True)
        state, _ = game.step(state, bids)


def players_survive(game, kind, tables, seed=3):
    player = make_player(kind, game)
    state = game.reset(seed, (tables,))
    memories = [player.start(game, seat, seat) for seat in range(5)]
    while not state.over.all():
        bids = np.zeros((5, tables), np.int64)
        for seat in range(5):
            decision, memories[seat] = player.act(View.of(game, state, seat), memories[seat])
            bids[seat] = decision.action
        state, _ = game.step(state, bids)
    return state.living.mean(axis=1)


def test_even_players_survive_as_often_as_the_rule():
    assert players_survive(LOW, "even", 3000).sum() == pytest.approx(1.96, abs=0.07)


@each_row(("supply", "survivors"), [("low", 3), ("medium", 3.97), ("high", 5)])
def test_cooperative_players_do_as_well_as_the_planner(supply, survivors):
    found = players_survive(SUPPLIES[supply], "cooperative", 1000)
    assert found.sum() == pytest.approx(survivors, abs=0.05)


@each_row("name", ["dp", "dp:0", "dp:10", "dp:x"])
def test_levels_that_there_are(name):
    with pytest.raises(BadParameter, match=r"needs a (level|value)"):
        make_player(name)


def test_a_response_values_money_that_there_is_from_the_start():
    rich = dataclasses.replace(LOW, balance_start=2000)
    alone = response(rich, 4, 1)
    assert 0 <= alone.value <= 1
    assert survival(rich, [even] * 4 + [alone], 2000, 1)[4] > 0.5  # even alone: 0.35
