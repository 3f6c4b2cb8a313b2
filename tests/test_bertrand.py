"""Bertrand competition: worked examples, exactness, what is told, theory, players, Q-learning."""

import dataclasses
import json
import tracemalloc
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import each_row

import llm_games as lg
from llm_games.baselines.games.bertrand_competition import collusion, q_learners, theory
from llm_games.baselines.regret import deviation, stacked, surplus, welfare, welfare_of
from llm_games.benchmarks.studies import q_learning
from llm_games.benchmarks.studies.q_learning import Learning
from llm_games.errors import BadParameter, UnknownName
from llm_games.questions import MISSING
from llm_games.registry import rulebook
from llm_games.replies import read_reply
from llm_games.view import View
from llm_games.words import NO_NOTES, Prompts

DUOPOLY = [
    # prices, then demands and profits: corner, own, none
    ((6, 6), ((800, 800), (3200, 3200))),
    ((8, 8), ((600, 600), (3600, 3600))),
    ((6.5, 8), ((900, 450), (4050, 2700))),
    ((7.99, 8.01), ((603, 597), (3611.97, 3587.97))),
    ((1.5, 6), ((1700, 350), (-850, 1400))),
    ((0, 0), ((1400, 1400), (-2800, -2800))),
    ((12, 10), ((0, 600), (0, 4800))),
    ((12.01, 10), ((0, 600), (0, 4800)), ((0, 601), (0, 4808)), ((-2, 601), (-20.02, 4808))),
    (
        (13.5, 4),
        ((0, 1500), (0, 3000)),
        ((0, 1950), (0, 3900)),
        ((-900, 1950), (-10350, 3900)),
    ),
    ((14, 2), ((0, 1800), (0, 0)), ((0, 2400), (0, 0)), ((-1200, 2400), (-14400, 0))),
    ((14, 14), ((0, 0), (0, 0))),
    (
        (0, 14),
        ((2100, 0), (-4200, 0)),
        ((2800, 0), (-5600, 0)),
        ((2800, -1400), (-5600, -16800)),
    ),
    ((6.33, 7.41), ((875, 551), (3788.75, 2980.91))),
    ((1.99, 6.33), ((1635, 333), (-16.35, 1441.89))),
]


def bertrand(**more):
    return rulebook("bertrand_competition", **more)


def sold(game, *prices):
    state = dict(zip(range(game.players), prices, strict=True))
    actions = np.array([round(price * game.unit) for price in state.values()])
    _, outcome = game.step(game.reset(0), actions)
    return outcome.record["demands"].tolist(), outcome.rewards.tolist()


# -- rules -----------------------------------------------------------------------------------------


@each_row(("prices", "corner", "more"), [(p, c, m) for p, c, *m in DUOPOLY])
def test_a_duopoly(prices, corner, more):
    wanted = [corner, *(more or [corner, corner])]
    for clip, (demands, profits) in zip(("corner", "own", "none"), wanted, strict=True):
        assert sold(bertrand(demand_clip=clip), *prices) == (list(demands), list(profits))


@each_row(
    ("prices", "demands", "profits"),
    [
        ((13, 4, 4), (0, 1000, 1000), (0, 2000, 2000)),
        ((13, 12, 4), (0, 0, 1500), (0, 0, 3000)),
        ((10, 6, 3), (0, 500, 1400), (0, 2000, 1400)),
        ((5, 5, 5), (675,) * 3, (2025,) * 3),
    ],
)
def test_three_firms(prices, demands, profits):
    assert sold(bertrand(players=3), *prices) == (list(demands), list(profits))


def test_a_batch_of_the_spec():
    game = bertrand()
    _, outcome = game.step(game.reset(0, (3,)), np.array([[600, 650, 1400], [600, 800, 200]]))
    assert outcome.record["demands"].tolist() == [[800, 900, 0], [800, 450, 1800]]
    assert outcome.rewards.tolist() == [[3200, 4050, 0], [3200, 2700, 0]]


def test_options_of_the_authors_code():
    assert sold(bertrand(profit_rounding="truncate"), 6.33, 7.41)[1] == [3788, 2980]
    assert sold(bertrand(profit_rounding="truncate"), 1.99, 6.33)[1] == [-16, 1441]
    floor = bertrand(price_floor="cost")
    _, outcome = floor.step(floor.reset(0), np.array([150, 600]))
    assert outcome.record["prices"].tolist() == [200, 600]
    assert outcome.record["demands"].tolist() == [1600, 400]
    assert outcome.rewards.tolist() == [0, 1600]
    assert not outcome.broke.any()
    free = bertrand(price_cap="none", demand_clip="none")
    _, outcome = free.step(free.reset(0), np.array([1500, 600]))
    assert not outcome.broke.any()
    assert outcome.record["demands"].tolist() == [-1000, 1700]


def test_the_same_goods_are_bought_where_they_are_cheapest():
    game = bertrand(players=3, d="1/150")
    assert sold(game, 5, 6, 5)[0] == [675, 0, 675]
    assert sold(game, 14, 13, 14)[0] == [0, 150, 0]


def test_a_forced_first_round_is_over_at_the_start():
    game = bertrand(initial_price=(5, 7), rounds=3)
    state = game.reset(0)
    assert (int(state.round), state.prices.tolist()) == (1, [500, 700])
    assert state.demands.tolist() == [1100, 500]
    assert game.length() == 2
    assert game.asked(state).all()
    with pytest.raises(BadParameter, match="rounds must be at least 2"):
        bertrand(rounds=1)
    episode = lg.play(game, [lg.player("best_response")] * 2)
    assert [int(step.outcome.record["round"]) for step in episode.steps] == [2, 3]


def test_a_missing_or_illegal_price_is_the_one_before():
    game = bertrand(first_round="free", initial_price=3)
    state, outcome = game.step(game.reset(0), np.array([MISSING, 650]))
    assert outcome.record["prices"].tolist() == [300, 650]
    assert outcome.broke.tolist() == [True, False]
    state, outcome = game.step(state, np.array([1401, -1]))
    assert outcome.record["prices"].tolist() == [300, 650]
    assert outcome.broke.all()


def by_fractions(game, prices):
    """Return demands and profits in fractions, firm after firm, as the rules say it."""
    n, a, beta, d = game.players, game.a, game.beta, game.d
    active = [i for i in range(n) if prices[i] <= a or game.demand_clip != "corner"]
    while True:
        m, total = len(active), sum(prices[i] for i in active)
        wanted = dict.fromkeys(range(n), F(0))
        for i in active:
            slope = beta + (m - 2) * d
            others = d * (total - prices[i])
            wanted[i] = a * (beta - d) - slope * prices[i] + others
            wanted[i] /= (beta - d) * (beta + (m - 1) * d)
        if game.demand_clip != "corner" or min(wanted.values()) >= 0:
            break
        dearest = max(prices[i] for i in active)
        active = [i for i in active if prices[i] < dearest]
    if game.demand_clip == "own":
        wanted = {i: max(q, F(0)) for i, q in wanted.items()}
    return [(q, (prices[i] - game.costs[i]) * q) for i, q in wanted.items()]


RATIOS = st.fractions(0, 20, max_denominator=50)


@settings(max_examples=60)
@given(data=st.data())
def test_demand_is_exact(data):
    n = data.draw(st.integers(2, 6))
    a = data.draw(st.fractions(1, 20, max_denominator=20))
    beta = data.draw(st.fractions(F(1, 500), 1, max_denominator=500))
    game = bertrand(
        players=n,
        a=a,
        beta=beta,
        d=beta * data.draw(st.sampled_from([F(0), F(1, 3), F(1, 2), F(9, 10)])),
        cost=tuple(a * data.draw(st.sampled_from([F(0), F(1, 7), F(1, 2)])) for _ in range(n)),
        tick=F(1, data.draw(st.sampled_from([1, 3, 10, 100]))),
        demand_clip=data.draw(st.sampled_from(["corner", "own", "none"])),
    )
    ticks = data.draw(st.lists(st.integers(0, game.bounds()[1]), min_size=n, max_size=n))
    demands, profits = game.market(np.array(ticks))
    wanted = by_fractions(game, [F(tick, game.unit) for tick in ticks])
    assert demands.tolist() == [float(q) for q, _ in wanted]
    assert profits.tolist() == [float(gain) for _, gain in wanted]
    if game.demand_clip == "corner":
        assert (demands >= 0).all()


def test_logit_demand():
    game = bertrand(preset="logit", players=3)
    prices = np.array([14_000, 17_000, 20_000])
    demands, profits = game.market(prices)
    raw = np.exp((2 - prices / 10_000) / 0.25)
    assert np.allclose(demands, raw / (raw.sum() + 1), atol=1e-12)
    assert np.allclose(profits, (prices / 10_000 - 1) * demands, atol=1e-12)


def test_a_hundred_firms():
    game = bertrand(players=100)
    demands, _ = sold(game, *[5] * 100)
    each = F(14 - 5, 1) / (game.beta + 99 * game.d)
    assert demands == [float(each)] * 100


# -- what firms know -------------------------------------------------------------------------------


def rounds_of(game, *prices):
    state = game.reset(0)
    for one in prices:
        state, _ = game.step(state, np.array([round(price * game.unit) for price in one]))
    return state


def test_block_means_of_the_spec():
    game = bertrand(first_round="free")
    state = rounds_of(game, *[(6, 6 if t % 2 else 8) for t in range(1, 21)])
    told = [View.of(game, state, seat).told for seat in range(2)]
    means = [
        (b["price"], b["demand"], b["profit"], *b["rivals"]) for t in told for b in t["blocks"]
    ]
    assert means == [(6, 900, 3600, 7), (7, 600, 2800, 6)]
    assert [(row["round"], row["rivals"]) for row in told[0]["past"]][-2:] == [(19, [6]), (20, [8])]
    later, _ = game.step(state, np.array([600, 600]))
    told = View.of(game, later, 0).told
    assert told["blocks"] == []
    assert [row["round"] for row in told["past"]] == list(range(2, 22))


def test_windows_hold_the_latest_rounds_and_blocks():
    game = bertrand(window=3, rounds=40, initial_price=1)
    state = rounds_of(game, *[(t, t) for t in range(2, 13)])
    told = View.of(game, state, 1).told
    assert [row["price"] for row in told["past"]] == [10, 11, 12]
    blocks = [(b["first"], b["last"], b["price"]) for b in told["blocks"]]
    assert blocks == [(4, 6, 5), (7, 9, 8), (10, 12, 11)]
    assert game.asides(state, 0, "move")[0].kind == "strategy"
    assert not game.asides(state, 0, "talk")
    state, _ = game.step(state, np.array([100, 100]))
    assert not game.asides(state, 0, "move")
    assert not bertrand(window=3, reflect=False).asides(state, 0, "move")


def test_personas_and_their_switch():
    game = bertrand(personas=("none", "explorer"), switch_round=4, rounds=9)
    state, told = game.reset(0), []
    for _ in range(4):
        told.append([View.of(game, state, seat).told["persona"] for seat in range(2)])
        state, _ = game.step(state, np.array([600, 600]))
    assert told[:3] == [[None, "explorer"], [None, "explorer"], ["uncooperative"] * 2]
    one = bertrand(switch_round=2, switch_persona=("uncooperative", "none"))
    assert [one.persona(1, seat) for seat in range(2)] == ["uncooperative", None]


@each_row("version", ["v1", "v2", "v3", "v4", "v5"])
def test_what_is_never_told(version):
    game, prompts = (
        bertrand(cost=(2, 3), rounds=777, window=2),
        Prompts("bertrand_competition", version),
    )
    state = rounds_of(game, (6.33, 7.41), (6.17, 8.03), (7, 5.55))
    view = View.of(game, state, 0)
    notes = NO_NOTES.plus("strategy", 'Keep at 7.\n"New rules"', 20)
    text = prompts.text(view) + prompts.request(view, notes=notes)
    (aside,) = game.asides(state, 0, "move")
    text += prompts.aside(view, aside, notes=notes)
    rival = state.demands[1]
    for secret in ("777", "1/150", "1/300", "150", f"{rival:.2f}", f"{state.profits[1]:.2f}"):
        assert secret not in text
    assert text.count('"Keep at 7.\\n\\"New rules\\""') == 2
    assert "7.00" in text
    assert f"{state.profits[0]:.2f}" in text
    assert prompts.rules(game, 0) != prompts.rules(game, 1)
    lines = prompts.report(view).splitlines()
    assert len(lines) == 2 + 2 + 2  # two rounds and two blocks, each under a line of its own


@each_row(
    ("reply", "outcome", "ticks"),
    [
        ('{"price": 6.005}', "valid", 601),
        ('{"price": 6.0049, "reason": "a test"}', "valid", 600),
        ('{"price": "7.5"}', "valid", 750),
        ('{"price": 14}', "valid", 1400),
        ('{"price": 0}', "valid", 0),
        ('{"price": 14.001}', "out_of_range", 1401),
        ('{"price": 14.01}', "out_of_range", 1401),
        ('{"price": -0.001}', "out_of_range", -1),
        ('{"price": 1e400}', "out_of_range", 2**62),
        *(
            (f'{{"price": {said}}}', "unparsable", None)
            for said in (
                *('"six"', '"six dollars"', '"6.5 dollars"', '"$6.5"', '"6,5"', '"6 or 7"', '""'),
                *("null", "true", "[6]", "NaN", '{"price": 6}'),
            )
        ),
        ('{"cost": 6}', "unparsable", None),
        ("no price at all", "unparsable", None),
    ],
)
def test_replies(reply, outcome, ticks):
    game = bertrand()
    state = game.reset(0)
    read = read_reply(reply, game.question(state, 0))
    assert (read.outcome, read.action) == (outcome, MISSING if ticks is None else ticks)
    after, result = game.step(state, np.array([read.action, 700]))
    assert result.broke.tolist() == [outcome != "valid", False]
    assert after.prices.tolist() == [ticks if outcome == "valid" else 200, 700]


def test_prices_are_named_in_talk_as_people_write_them():
    question = bertrand().question(bertrand().reset(0), 0)
    assert question.named("I will charge $6.50 from now on.") == 650
    assert question.named("I set 7.") == 700
    assert question.named("I set 70.") is None


@each_row("tick", ["1/100", "1/3", "1/8", "1"])
def test_prices_are_written_and_read_back(tick):
    game = bertrand(tick=tick, a="27/2")
    question = game.question(game.reset(0), 0)
    for ticks in range(game.bounds()[1] + 1):
        assert question.answer(json.loads(question.reply(ticks), parse_float=str)) == ticks


def test_a_grid_of_prices():
    env = lg.make("bertrand_competition-v0", price_grid=(5.8, 7, 8.2), obs_mode="numeric")
    env.reset(seed=1)
    assert env.action_space("player_0").n == 3
    env.step({"player_0": 0, "player_1": 2})
    assert env.table.state.prices.tolist() == [580, 820]


def test_numbers_of_the_whole_history():
    game = bertrand(window=2, history=True)
    state = rounds_of(game, (6, 8), (5, 7), (9, 9))
    numbers = dict(
        zip((c.name for c in game.columns()), game.observe(state)[0].tolist(), strict=True)
    )
    assert [numbers[name] for name in ("price", "price_1", "price_ago_2", "price_ago_2_1")] == [
        *(9, 9),
        *(5, 7),
    ]
    assert numbers["demand_ago_2"] == 1400 - 1000 + 700
    assert numbers["price_block_1_1"] == 8
    assert numbers["price_block_2"] == 4


@each_row("clip", ["corner", "own", "none"])
@each_row("more", [{}, {"players": 4}, {"price_cap": "none"}, {"preset": "logit"}])
def test_numbers_stay_in_their_ranges(clip, more):
    game = bertrand(demand_clip=clip, **more)
    limit = game.limit if "price_cap" in more else game.bounds()[1]
    low, high = np.array([(c.low, c.high) for c in game.columns()], np.float32).T
    for first, others in ((0, limit), (limit, 0), (limit, limit), (0, 0)):
        prices = np.array([first] + [others] * (game.players - 1))
        seen = game.observe(game.step(game.reset(0), prices)[0])
        assert ((seen >= low) & (seen <= high)).all()


# -- theory and players ----------------------------------------------------------------------------


@each_row(
    ("params", "nash", "cartel"),
    [
        ({}, [6, 6], [8, 8]),
        ({"players": 3}, [5] * 3, [8] * 3),
        ({"players": 4}, [F(22, 5)] * 4, [8] * 4),
        ({"players": 6}, [F(26, 7)] * 6, [8] * 6),
        ({"cost": (2, 3)}, [F(92, 15), F(98, 15)], [8, F(17, 2)]),
        ({"d": "1/150"}, [2, 2], [8, 8]),
    ],
)
def test_reference_prices(params, nash, cartel):
    game = bertrand(**params)
    assert list(theory.equilibrium(game)) == nash
    assert list(theory.cartel(game)) == cartel


def test_reference_profits():
    both = theory.equilibrium, theory.cartel

    def earned(of, **more):
        return theory.profits_at(bertrand(**more), of(bertrand(**more))).tolist()

    assert [earned(of) for of in both] == [[3200] * 2, [3600] * 2]
    assert [earned(of, players=4) for of in both] == [[1382.4] * 4, [2160] * 4]
    for players, values in ((2, (1.47293, 1.92498, 0.22293, 0.33749)),
                            (3, (1.37016, 2.0, 0.12016, 0.25))):  # fmt: skip
        game = bertrand(preset="logit", players=players)
        found = [of(game)[0] for of in both] + [theory.profits_at(game, of(game))[0] for of in both]
        assert np.allclose(found, values, atol=5e-6)
        shares = 1 - game.logit(np.array(theory.equilibrium(game)))[0]
        assert np.allclose(np.array(theory.equilibrium(game)) - 1, 0.25 / shares, atol=1e-9)


def test_best_replies_in_a_duopoly():
    game = bertrand()
    rivals = np.array([0, 2, 5, 6, 7, 8, 10.57, 10.58, 10.9, 11, 12, 14])
    prices = np.stack([np.zeros(len(rivals), int), np.rint(rivals * 100).astype(int)])
    found = theory.best_reply(game, prices, 0) / 100
    assert found.tolist() == [4.5, 5, 5.75, 6, 6.25, 6.5, 7.14, 7.16, 7.8, 8, 8, 8]
    assert theory.regret(game, np.array([700, 700])).tolist() == [112.5, 112.5]


@settings(max_examples=40)
@given(data=st.data())
def test_no_price_beats_a_best_reply(data):
    n = data.draw(st.integers(2, 4))
    params = data.draw(
        st.sampled_from(
            [{}, {"demand_clip": "own"}, {"d": "1/150"}, {"d": 0}, {"cost": (1, 2, 5, 9)[:n]},
             {"demand": "logit", "a": 3, "cost": 1}, {"profit_rounding": "truncate"}]
        )
    )  # fmt: skip
    game = bertrand(players=n, tick="1/20", **params)
    high = game.bounds()[1]
    prices = np.array(data.draw(st.lists(st.integers(0, high), min_size=n, max_size=n)))
    every = np.repeat(prices[:, None], high + 1, axis=1)
    every[0] = np.arange(high + 1)
    prices[0] = theory.best_reply(game, prices, 0)
    exact = bertrand(players=n, tick="1/20", **(params | {"profit_rounding": "exact"}))
    assert exact.market(prices)[1][0] >= exact.market(every)[1][0].max() - 1e-9


def test_where_a_firm_is_priced_out_the_equilibrium_is_a_corner():
    game = bertrand(cost=(2, 13))
    prices, holds = theory.nash_ticks(game)
    assert holds
    assert prices[0] == 800
    assert not theory.regret(game, prices).any()
    assert theory.cartel(game)[0] == 8


@each_row("preset", ["shall_we_talk_bc_authors", "shall_we_talk_bc_talk_authors"])
@each_row(
    ("prices", "profits"),
    [((10, 4), (-1600, 3200)), ((15, 4), (-15600, 4200)), ((1, 6), (0, 1600))],
)
def test_the_authors_program_in_a_word(preset, prices, profits):
    game = lg.rules("bertrand_competition", preset=preset).core
    _, outcome = game.step(game.reset(0), np.array(prices) * game.unit)
    assert outcome.rewards.tolist() == list(profits)
    assert not outcome.broke.any()


def test_deviation_and_welfare():
    game = bertrand(rounds=3)
    episode = lg.play(game, [lg.player("fixed:7")] * 2)
    found = deviation(game, episode.steps[0].outcome.record)
    assert found.regret.tolist() == [112.5, 112.5]
    assert found.distance == pytest.approx(1 / 14)
    steps = {
        name: np.stack([step.outcome.record[name] for step in episode.steps], axis=-1)
        for name in ("prices", "profits")
    }
    all_ = welfare(game, steps)
    assert (all_.total, all_.worst, all_.best, all_.lowest) == (14000, -11200, 14400, 12800)


@each_row(("price", "consumers", "total"), [(2, 14400, 14400), (6, 6400, 12800), (8, 3600, 10800)])
def test_surplus(price, consumers, total):
    """Prices at cost, of the one-shot equilibrium and of the cartel; two rounds are paid."""
    game = bertrand(rounds=3)
    episode = lg.play(game, [lg.player(f"fixed:{price}")] * 2)
    steps = stacked([step.outcome.record for step in episode.steps])
    found = surplus(game, steps)
    assert [part / 2 for part in found] == pytest.approx([consumers, total])
    assert welfare_of(game.name) == "joint profit"
    with pytest.raises(UnknownName, match="surplus for"):
        surplus(lg.rules("public_goods"), {})


@each_row(
    ("parameters", "prices"),
    [
        ({}, (6, 7.5)),
        ({}, (13.5, 4)),  # one is priced out
        ({"players": 3, "d": "1/200"}, (6, 7, 11)),
        ({"players": 3, "d": "1/150"}, (5, 5, 8)),  # identical goods
        ({"preset": "logit"}, (1.5, 1.9)),
        ({"preset": "logit", "players": 3, "outside": -1}, (1.2, 1.5, 2.5)),
    ],
)
def test_consumer_surplus_is_the_area_under_demand(parameters, prices):
    """What consumers lose while all prices rise together until nobody buys."""
    game = dataclasses.replace(lg.rules("bertrand_competition", **parameters), tick="1/1000")
    top = 14 if game.demand == "linear" else 12
    rise = np.linspace(0, top - min(prices), 20001)
    path = np.array(prices)[:, None] + rise
    if game.demand == "linear":
        ticks = np.rint(np.minimum(path, top) * 1000).astype(np.int64)
        demands = game.market(ticks)[0] * (path <= top)
    else:
        demands = game.logit(path)[0]
    area = np.trapezoid(demands.sum(axis=0), rise)
    at = np.array(np.rint(np.array(prices) * 1000), np.int64)
    found = theory.consumer_surplus(game, at, game.market(at)[0])
    assert found == pytest.approx(area, rel=2e-3)


def played(*names, **params):
    episode = lg.play(bertrand(**params), [lg.player(name) for name in names], seed=3)
    return [(step.outcome.record["prices"] / episode.game.unit).tolist() for step in episode.steps]


def test_best_replies_go_to_the_equilibrium():
    path = played("best_response", "best_response", rounds=8)
    assert [own for own, _ in path] == [5, 5.75, 5.94, 5.99, 6, 6, 6]
    path = played("best_response", "best_response", rounds=8, first_round="free")
    assert [own for own, _ in path] == [2, 5, 5.75, 5.94, 5.99, 6, 6, 6]


def test_scripted_firms():
    assert played("rational", "cooperative", rounds=3) == [[6, 8]] * 2
    assert played("cost", "fixed:6.5", rounds=3) == [[2, 6.5]] * 2
    assert played("match", "fixed:7", rounds=4) == [[2, 7], [7, 7], [7, 7]]
    assert played("undercut:0.1", "fixed:7", rounds=4) == [[2, 7], [6.9, 7], [6.9, 7]]
    assert played("undercut:9", "fixed:7", rounds=3) == [[2, 7], [2, 7]]
    assert played("grim", "grim", rounds=4) == [[8, 8]] * 3
    assert played("grim", "fixed:7.9", rounds=4) == [[8, 7.9], [6, 7.9], [6, 7.9]]
    assert played("reciprocal", "match", rounds=4) == [[8, 2], [6, 8], [8, 6]]
    assert played("grim", "grim", rounds=3, first_round="free") == [[8, 8]] * 3
    lowest = min(min(prices) for prices in played("random", "random", rounds=60))
    assert 2 <= lowest < 4
    with pytest.raises(BadParameter, match="no whole number of ticks"):
        played("undercut:0.001", "cost")


# -- measures --------------------------------------------------------------------------------------


@each_row(
    ("prices", "index", "gain"),
    [
        ((6, 6), 0, 0),
        ((7, 7), 0.5, 0.75),
        ((8, 8), 1, 1),
        ((6.5, 8), 0.625, 0.4375),
        ((7.2, 6.8), 0.5, 0.72),
        ((9, 9), 1.5, 0.75),
    ],
)
def test_indices(prices, index, gain):
    game = bertrand()
    _, profits = sold(game, *prices)
    assert collusion.price_index(game, np.mean(prices)) == pytest.approx(index, abs=1e-12)
    assert collusion.profit_gain(game, np.mean(profits)) == pytest.approx(gain, abs=1e-12)


def test_measures_of_a_game():
    game = bertrand(rounds=150)
    episode = lg.play(game, [lg.player("fixed:7"), lg.player("fixed:7.5")])
    prices, profits = collusion.path(game, [step.outcome.record for step in episode.steps])
    assert prices[:2].tolist() == [[2, 2], [7, 7.5]]
    assert profits[0].tolist() == [0, 0]
    found = collusion.measures(game, prices, profits, (2, 150))
    assert found["price"] == 7.25
    assert found["price_gap"] == 0.5
    assert found["price_index"] == 0.625
    assert found["converged"] == 1
    assert found["far_from_equilibrium"] == 1.25


def test_goods_that_do_not_compete_and_rounds_never_played_have_no_measure():
    game = bertrand(d=0)
    assert np.isnan([collusion.price_index(game, 7), collusion.profit_gain(game, 3500)]).all()
    steady = np.full((150, 2), 7.0)
    for rounds in ((401, 600), (0, 5), (9, 8)):
        with pytest.raises(BadParameter, match="a first and a last one of 1 to 150"):
            collusion.measures(bertrand(), steady, steady, rounds)


def test_convergence():
    steady = np.full((230, 2), 7.0)
    assert collusion.convergence(steady) == 1
    assert collusion.convergence(steady[:100]) is None
    rising = np.linspace(2, 12, 230)[:, None] * np.ones(2)
    assert collusion.convergence(rising) is None
    late = np.concatenate([rising[:60], np.full((101, 2), 9.0)])
    assert collusion.convergence(late) == 60
    near = np.concatenate([np.full((5, 2), 3.0), np.tile([[6.75], [7.25]], (60, 2))])
    assert collusion.convergence(near) == 5


# -- many rounds, and learning ---------------------------------------------------------------------


def test_memory_does_not_grow_with_the_rounds():
    game = bertrand(rounds=100_000)
    state, rng = game.reset(0), np.random.default_rng(0)
    prices = rng.integers(0, 1401, (2000, 2))
    most = []
    tracemalloc.start()
    for part in (1000, 2000):  # in the first, the rules are traced
        for actions in prices[:part]:
            state, _ = game.step(state, actions)
        most.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert most[1] < most[0] + 100_000
    assert sum(array.nbytes for array in state.arrays().values()) < 8000


QUICK = Learning(decay=3e-3, patience=1500, max_periods=40_000, prices=5)


@pytest.fixture(scope="module")
def learned():
    return bertrand(), q_learning.learn(bertrand(), 40, 1, QUICK)


def test_the_grid_of_the_spec():
    usual = q_learners.grid_of(bertrand())
    assert usual.tolist() == [
        *(580, 597, 614, 631, 649, 666, 683, 700),
        *(717, 734, 751, 769, 786, 803, 820),
    ]
    with pytest.raises(BadParameter, match="choose a finer tick"):
        q_learners.grid_of(bertrand(tick=1))
    with pytest.raises(BadParameter, match="markets must be at most"):
        q_learning.learn(bertrand(players=4), 1000)


def test_learners_settle_above_competition(learned):
    game, found = learned
    one = q_learning.settled(game, found)
    assert one["rested"] > 0.9
    assert (found.periods[found.rested] < QUICK.max_periods).all()
    assert one["price_index"]["mean"] - one["price_index"]["half"] > 0.1
    assert 0.1 < one["profit_gain"]["mean"] < 1


def test_what_rests_does_not_change(learned):
    game, found = learned
    path = found.at_rest()
    for market in np.flatnonzero(found.rested)[:5]:
        once = path[:, :, market]
        states = q_learners.state_of(once.T, 5)
        again = found.best[market][:, states[:-1]].T
        assert np.array_equal(again, once[1:])
    answer = q_learning.cut(game, found)
    assert answer["cutter"][1] < answer["cutter"][0]
    assert answer["rivals"][1] == pytest.approx(answer["rivals"][0], abs=0.2)


def test_a_learner_plays_at_a_table(learned, tmp_path, monkeypatch):
    game, found = learned
    monkeypatch.setattr(q_learners, "learned_in", lambda game: (found.grid, found.best))
    episode = lg.play(bertrand(rounds=40), [lg.player("q_learning:3")] * 2)
    state = q_learners.state_of(np.zeros((2, 1), int), 5)
    path = found.grid[found.best[3, :, state[0]]]
    assert episode.steps[0].outcome.record["prices"].tolist() == path.tolist()  # from cost on
    kept = found.play(np.repeat(state, 40), 39)[:, :, 3]
    played = np.stack([step.outcome.record["prices"] for step in episode.steps])
    assert np.array_equal(played, found.grid[kept])
    with pytest.raises(BadParameter, match="q_learning needs a market from 0 to 19"):
        lg.player("q_learning:20", game)


def test_firms_learned_in_some_markets_only():
    with pytest.raises(BadParameter, match="not in one of 3 with these"):
        lg.player("q_learning:0", bertrand(players=3))


def test_the_grid_of_rates_and_decays():
    quick = {"patience": 1500, "max_periods": 40_000, "prices": 5}
    rows = q_learning.learning_grid([0.1, 0.2], [3e-3], 20, 1, **quick)
    assert [(row.demand, row.alpha, row.beta) for row in rows] == [
        *[("linear", alpha, 3e-3) for alpha in (0.1, 0.2)],
        *[("logit", alpha, 3e-3) for alpha in (0.1, 0.2)],
    ]
    how = Learning(rate=0.2, decay=3e-3, **quick)
    means = q_learning.settled(bertrand(), q_learning.learn(bertrand(), 20, 1, how))
    assert rows[1].profit_gain == means["profit_gain"]["mean"]


def test_what_was_learned_comes_with_the_package():
    content = json.loads(q_learners.RESULT.read_text("utf-8"))
    for one, preset in zip(content["results"], (None, "logit"), strict=True):
        game = bertrand(preset=preset)
        assert one["market"] == q_learners.market_of(game)
        assert one["rested"] > 0.9
        assert 0.6 < one["profit_gain"]["mean"] < 1
        grid, best = q_learners.learned_in(bertrand(preset=preset, rounds=7))
        assert best.shape == (q_learners.SHIPPED, 2, 225)
        assert np.array_equal(grid, q_learners.grid_of(game))
        pair = [lg.player("q_learning:1")] * 2
        episode = lg.play(bertrand(preset=preset, rounds=300), pair)
        profits = [step.outcome.record["profits"].mean() for step in episode.steps[-100:]]
        assert collusion.profit_gain(game, np.mean(profits)) > 0.3


def test_one_market_learns_as_the_formula_says():
    """A plain loop over one market with the same chance comes to the same values."""
    game, how = bertrand(), Learning(prices=3, decay=1e-2, patience=10**6, max_periods=256)
    grid = q_learners.grid_of(game, how.prices)
    profits = q_learning.profits_of(game, grid)
    fast = q_learning._QTables(profits, 1, 3, how, np.random.default_rng(5))
    slow = q_learning._QTables(profits, 1, 3, how, np.random.default_rng(5))
    values, state = slow.values.reshape(2, 9, 3).copy(), int(slow.state[0])
    tries, picked = slow._chance(256)
    for tried, pick in zip(tries[..., 0], picked[..., 0], strict=True):
        action = np.where(tried, pick, values[:, state].argmax(axis=1))
        after = int(action[0] * 3 + action[1])
        for firm in range(2):
            gain = profits[firm, after] + 0.95 * values[firm, after].max()
            old = values[firm, state, action[firm]]
            values[firm, state, action[firm]] = 0.85 * old + 0.15 * gain
        state = after
    fast.run(256)
    assert np.allclose(fast.values.reshape(2, 9, 3), values, rtol=1e-12)
    assert fast.state[0] == state
    assert np.array_equal(fast.best, fast.values.argmax(axis=1))
