"""Measures of theory against brute force: welfare, exploitability, interim regret, responses."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from playing import each_row, of_three

from llm_games.baselines.games.battle_royale import theory as battle
from llm_games.baselines.games.beauty_contest import theory as guess
from llm_games.baselines.games.budget_auction.budget_first_price import equilibrium
from llm_games.baselines.games.divide_dollar import theory as dollar
from llm_games.baselines.games.el_farol_bar import theory as bar
from llm_games.baselines.games.sealed_bid_auction import theory as sealed
from llm_games.baselines.games.sealed_bid_auction.sealed_first_price import SymmetricBids, shading
from llm_games.baselines.games.water_allocation import theory as water
from llm_games.baselines.players import make_player
from llm_games.baselines.regret import (
    Welfare,
    constants,
    deviation,
    draws,
    exploitability,
    has,
    interim,
    rational,
    replies,
    response_gap,
    welfare,
)
from llm_games.errors import UnknownName
from llm_games.game_rooms import ROOMS
from llm_games.games.water_allocation.rules import WaterAllocation
from llm_games.noise import Noise
from llm_games.questions import NO_BID
from llm_games.registry import rulebook
from llm_games.wrappers.play import play


def stacked(records):
    return {k: np.stack([np.asarray(r[k]) for r in records], axis=-1) for k in records[0]}


def steps_of(game, names, seed=1):
    episode = play(game, [make_player(name, game) for name in names], seed)
    return stacked([step.outcome.record for step in episode.steps]), episode


# -- welfare ---------------------------------------------------------------------------------------

ONE_ROUND = [
    *(("el_farol_bar", {"players": 4, "ratio": r}) for r in ("0", "1/4", "3/4", "1")),
    ("el_farol_bar", {"players": 4, "ratio": "1/2", "home": 10}),
    ("el_farol_bar", {"players": 4, "ratio": "1/2", "home": 0}),
    ("divide_dollar", {"players": 3, "golds": 5}),
    *(("public_goods", {"players": 3, "tokens": 3, "ratio": r}) for r in ("1/2", 1, 2, 3, 4)),
    ("diners_dilemma", {"players": 4}),
    ("diners_dilemma", {"players": 4, "costly_utility": 30}),
    *(("beauty_contest", {"players": 3, "max": 5, "prize": 6, "prize_rule": rule})
      for rule in ("each_winner", "split", "amplified")),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:no dilemma")
@each_row(("name", "parameters"), ONE_ROUND)
def test_welfare_is_between_the_ends_of_all_profiles_and_of_all_pure_equilibria(name, parameters):
    game = rulebook(name, rounds=1, **parameters)
    low, high = game.bounds()
    every = np.array(list(product(range(low, high + 1), repeat=game.players))).T
    state = game.reset(0, every.shape[1:])
    _, outcome = game.step(state, every)
    found = welfare(game, stacked([outcome.record]))
    total = outcome.rewards.sum(axis=0)
    assert found.total == pytest.approx(total)
    ends = found.worst[0], found.best[0]
    exclusive = name == "beauty_contest" and parameters["prize_rule"] != "split"
    assert ends[1] == pytest.approx(total.max())
    assert ends[0] <= total.min() + 1e-9
    assert ends[0] == pytest.approx(total.min()) or exclusive  # a lone winner may be out of reach
    nash = deviation(game, outcome.record).nash_conv < 1e-9
    assert found.lowest[0] <= total[nash].min() + 1e-9
    assert found.highest[0] == pytest.approx(total[nash].max())
    if name != "el_farol_bar":  # whose mixed equilibria are worse
        assert found.lowest[0] == pytest.approx(total[nash].min())


def test_welfare_of_known_plays():
    game = rulebook("el_farol_bar", rounds=2)
    found = welfare(game, stacked([{"actions": np.repeat([1, 0], (k, 10 - k))} for k in (6, 9)]))
    assert tuple(map(float, found)) == (80 + 5, 0, 160, 100, 160)
    assert (found.efficiency, found.anarchy) == (pytest.approx(85 / 160), 1.6)
    diners = rulebook("diners_dilemma")
    record = {"actions": np.array([1] * 10)}
    assert welfare(diners, stacked([record])).anarchy == np.inf
    goods = rulebook("public_goods", players=2, rounds=2, tokens=4, ratio="3/2", endowment="carry")
    found = welfare(goods, steps_of(goods, ["cooperative"] * 2)[0])
    assert (found.total, found.worst, found.best) == (18, 8, 18)
    assert (found.efficiency, found.lowest) == (1, 8)
    same = Welfare(*(np.array(x, float) for x in (1, 1, 1, -1, 1)))
    assert np.isnan([same.efficiency, same.anarchy]).all()


def test_welfare_of_auctions_counts_the_seller():
    game = rulebook("sealed_bid_auction", players=3, rounds=4)
    for names, share in ((["truthful"] * 3, 1), (["zero", "truthful", "truthful"], None)):
        steps, _ = steps_of(game, names)
        found = welfare(game, steps)
        values = steps["valuations"]
        assert found.total == sum(values[w, t] for t, w in enumerate(steps["winner"]))
        assert (found.worst, found.best) == (values.min(0).sum(), values.max(0).sum())
        assert share is None or found.efficiency == share
    game = rulebook("english_auction", preset="econ_arena_english_L")
    assert welfare(game, steps_of(game, ["truthful"] * 5)[0]).efficiency == 1
    nobody = welfare(game, steps_of(game, ["fixed:-1"] * 5)[0])
    assert nobody.total == 0 < nobody.best
    game = rulebook("budget_auction", preset="econ_arena_L", min_valid_bids=2)
    steps, _ = steps_of(game, ["rational"] * 5)
    assert welfare(game, steps).total == steps["valuations"].max() / game.unit
    assert welfare(game, steps).lowest == steps["valuations"].min() / game.unit


@each_row(
    ("name", "money", "values"),
    [
        ("sealed_bid_auction", {"bid_range": "own_value"}, (3, 0, 4)),
        ("sealed_bid_auction", {"bid_range": "unbounded"}, (3, 0, 4)),
        ("budget_auction", {"assets": (3, 3, 3)}, (2, 5, 5)),
        ("budget_auction", {"assets": (1, 3, 2)}, (4, 2, 0)),
        ("budget_auction", {"assets": (2, 2, 4)}, (5, 1, 3)),
    ],
)
def test_equilibria_of_the_second_price_are_those_that_money_and_rules_allow(name, money, values):
    units = {"decimals": 0} if "assets" in money else {"valuation_max": 5, "interval": 1}
    more = {"players": 3, "rounds": 1, "valuations": [values], "price": "second"}
    game = rulebook(name, **more, **units, **money)
    highest = money.get("assets") or (values if money["bid_range"] == "own_value" else (5,) * 3)
    every = np.array(list(product(*(range(most + 1) for most in highest)))).T
    _, outcome = game.step(game.reset(0, every.shape[1:]), every)
    found = welfare(game, stacked([outcome.record]))
    nash = deviation(game, outcome.record).nash_conv == 0
    assert (found.lowest[0], found.highest[0]) == (found.total[nash].min(), found.total[nash].max())


def test_where_there_are_no_ends_or_no_law_nothing_is_said():
    game = rulebook("public_goods", players=3, contribution_range="unbounded")
    steps, _ = steps_of(game, ["fixed:-50", "random", "fixed:1000"])
    assert np.isnan(deviation(game, steps).regret).all()
    assert np.isnan(welfare(game, steps).efficiency)
    for parameters in ({"valuations": [(300, 5000)]}, {"assets": (700, 1000)}):
        game = rulebook("budget_auction", players=2, **parameters)
        assert np.isnan(interim(game, steps_of(game, ["rational"] * 2)[0])).all()


def test_survivors_are_a_share_of_the_planners():
    game = WaterAllocation(players=2, days=3, supply_low=0, supply_high=0, hp_start=3, hp_max=3)
    steps, _ = steps_of(game, ["even", "even"])
    found = welfare(game, steps)
    assert (found.total, found.best) == (0, 0)
    game = WaterAllocation(players=2, days=3, supply_low=17, supply_high=17)
    assert welfare(game, steps_of(game, ["even", "even"])[0]).efficiency == 1


@each_row("measure", ["welfare", "interim", "exploitability", "response_gap"])
def test_a_measure_that_a_game_does_not_have_is_refused(measure):
    call = {"welfare": welfare, "interim": interim, "exploitability": exploitability,
            "response_gap": response_gap}[measure]  # fmt: skip
    without = [name for name in ROOMS if not has(name, measure)]
    assert without
    with pytest.raises(UnknownName, match=f"there is no {measure} for '{without[0]}'"):
        call(rulebook(without[0]), {})


@each_row("name", [name for name in ROOMS if has(name, "welfare")])
def test_measures_of_a_batch_equal_a_loop(name):
    game = rulebook(name, **({"days": 3} if name == "water_allocation" else of_three(name)))
    rng, state, records = np.random.default_rng(4), game.reset(4, (5,)), []
    for _ in range(3):
        state, outcome = game.step(state, rng.integers(*game.legal(state), endpoint=True))
        records.append(outcome.record)
    steps = stacked(records)
    whole = welfare(game, steps)
    for i in range(5):
        table = {key: value[..., i, :] for key, value in steps.items()}
        assert [*map(float, welfare(game, table))] == pytest.approx(
            [float(part[i]) for part in whole], nan_ok=True
        )
    if has(name, "exploitability"):  # all tables are one sample of the seat's play
        pooled = {key: value.reshape(len(value), -1) for key, value in steps.items()
                  if value.ndim == 3}  # fmt: skip
        assert exploitability(game, steps) == pytest.approx(exploitability(game, pooled))


def test_equilibrium_play_has_no_distance():
    for name in ("sealed_bid_auction", "budget_auction", "public_goods", "diners_dilemma",
                 "divide_dollar", "beauty_contest"):  # fmt: skip
        for price in ("first", "second") if name.endswith("auction") else (None,):
            game = rulebook(name, **({"price": price} if price else {}))
            steps, _ = steps_of(game, ["rational"] * game.players)
            assert deviation(game, steps).distance.max() == pytest.approx(0, abs=1e-4), name


# -- what is said of players -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters", "kind", "says"),
    [
        ("public_goods", {}, "equilibrium", "gives nothing, the dominant"),
        ("public_goods", {"ratio": 20}, "equilibrium", "gives everything"),
        ("diners_dilemma", {}, "equilibrium", "orders costly"),
        ("el_farol_bar", {}, "equilibrium", "probability 0.6069"),
        ("divide_dollar", {"golds": 101}, "equilibrium", "first seats bid the remainder"),
        ("beauty_contest", {}, "equilibrium", "names 0, as iterated dominance"),
        ("beauty_contest", {"prize_rule": "split", "ratio": "4/3"}, "equilibrium", "names 100"),
        ("beauty_contest", {"players": 2, "ratio": 1, "prize_rule": "split"}, "equilibrium", "50"),
        ("beauty_contest", {"players": 2, "ratio": 1, "prize_rule": "split",
                            "tie_rule": "first_number"}, "heuristic", "no equilibrium"),
        ("sealed_bid_auction", {}, "best known", "law of valuations, which bidders are not told"),
        ("sealed_bid_auction", {"tell_prior": True}, "best known", "which bidders are told"),
        ("sealed_bid_auction", {"price": "second"}, "equilibrium", "weakly dominant"),
        ("sealed_bid_auction", {"players": 2, "rounds": 1, "valuations": [[1, 2]]}, "heuristic",
         "independent uniform"),
        ("sealed_bid_auction", {"valuation_max": 10**6, "interval": 1}, "heuristic", "uniform"),
        ("budget_auction", {}, "best known", "gain more than 0.011 a round"),
        ("budget_auction", {"value_rounding": "none"}, "best known", "bidders are not told"),
        ("budget_auction", {"sigma": 0, "reveal": "bids"}, "equilibrium", "all have the same"),
        ("budget_auction", {"reveal": "bids"}, "heuristic", "the others' can be beaten later"),
        ("budget_auction", {"reveal": "bids", "reveal_last": 0}, "best known", "not told"),
        ("budget_auction", {"reveal": "bids", "rounds": 1}, "best known", "not told"),
        ("budget_auction", {"reveal": "bids", "price": "second"}, "equilibrium", "dominant"),
        ("budget_auction", {"sigma": 0.01, "players": 3}, "heuristic", "unit of money is too"),
        ("budget_auction", {"assets": [900] * 9 + [1000]}, "heuristic", "assets differ"),
        ("budget_auction", {"price": "second"}, "equilibrium", "weakly dominant"),
        ("english_auction", {}, "heuristic", "budgets leave the equilibrium price open"),
        ("english_auction", {"preset": "econ_arena_english_L"}, "best known", "but for what jumps"),
        ("english_auction", {"preset": "econ_arena_english_L", "objective": "items"}, "heuristic",
         "budgets"),
        ("english_auction", {"preset": "econ_arena_english_L", "increment_min": 5}, "heuristic",
         "jumps over increments gain much"),
        ("english_auction", {"preset": "econ_arena_english_L", "items": (("A", 40, 0),),
                             "discount": 50}, "heuristic", "waiting for a lower start price"),
        ("public_goods", {"contribution_range": "unbounded"}, "heuristic", "less is always better"),
        ("battle_royale", {"players": 3, "max_shots": None}, "equilibrium", "without a cap"),
        ("battle_royale", {"players": 3}, "equilibrium", "announced cap"),
        ("battle_royale", {"preset": "gamma_bench"}, "heuristic",
         "of the game as told, without a cap; the paid one stops after 20 shots"),
        pytest.param("battle_royale",
                     {"players": 5, "hit_rates": (62, 65, 68, 76, 92), "max_shots": None},
                     "best known", "anybody gain more than", marks=pytest.mark.slow),
        ("pirate_game", {}, "equilibrium", "subgame-perfectly"),
        ("pirate_game", {"preset": "gamma_bench_authors"}, "heuristic", "shares below 0"),
        ("beauty_contest",
         {"players": 2, "ratio": "1/2", "min": 5, "max": 7, "bounds_check": "none",
          "prize_rule": "split"}, "heuristic", "no equilibrium of these rules"),
        ("water_allocation", {}, "heuristic", "no equilibrium is known"),
        ("water_allocation", {"preset": "setting_3"}, "best known", "hardly anybody"),
    ],
)  # fmt: skip
def test_rational_is_called_what_it_is(name, parameters, kind, says):
    found = rational(rulebook(name, **parameters))
    assert found.kind == kind
    assert says in found.sentence


def test_candidate_replies():
    assert constants(0, 3) == ["fixed:0", "fixed:1", "fixed:2", "fixed:3"]
    assert constants(-100, 250, 100, 3) == ["fixed:-1.00", "fixed:0.75", "fixed:2.50"]
    assert replies(rulebook("el_farol_bar"))[:2] == ("rational", "best_response")
    assert "rational" not in replies(rulebook("battle_royale", players=13, interval=5))
    for name in ROOMS:
        for preset in (None, *rulebook(name).presets):
            game = rulebook(name, preset=preset)
            for reply in replies(game):
                make_player(reply, game)
            assert len(set(replies(game))) == len(replies(game)) < 120


# -- exploitability --------------------------------------------------------------------------------


def test_draws_are_all_profiles_with_their_chances():
    moves = np.array([4, 7, 7, 9])
    others, chances = draws(moves, 3)
    assert others.shape == (3, 10)
    found = {tuple(np.sort(o)): c for o, c in zip(others.T, chances, strict=True)}
    expected = dict.fromkeys(found, 0.0)
    for profile in product(moves, repeat=3):
        expected[tuple(np.sort(profile))] += 1 / 64
    assert found == pytest.approx(expected)
    many, equal = draws(np.arange(50), 9)
    assert many.shape == (9, 4000)
    assert np.all(equal == 1 / 4000)


def gain_by_brute_force(game, moves):
    low, high = game.bounds()
    others = np.array(list(product(moves, repeat=game.players - 1))).T
    values = {}
    for action in {*range(low, high + 1), *moves}:
        actions = np.concatenate([np.full((1, others.shape[1]), action), others])
        state = game.reset(0, others.shape[1:])
        values[action] = game.step(state, actions)[1].rewards[0].mean()
    return max(values.values()) - np.mean([values[move] for move in moves])


@each_row(
    ("name", "parameters", "moves"),
    [
        ("el_farol_bar", {"players": 4, "ratio": "1/2"}, [1, 1, 0]),
        ("el_farol_bar", {"players": 4, "ratio": "1/2"}, [0, 0]),
        ("divide_dollar", {"players": 3, "golds": 10}, [3, 4, 2, 9]),
        ("divide_dollar", {"players": 2, "golds": 10}, [10, 0]),
        ("beauty_contest", {"players": 4, "max": 9, "prize_rule": "split"}, [0, 3, 3, 5]),
        ("beauty_contest", {"players": 3, "max": 9, "prize_rule": "exclusive"}, [2, 8, 8]),
        ("beauty_contest", {"players": 3, "max": 9, "prize_rule": "amplified", "prize": 5},
         [1, 2, 9]),
        ("public_goods", {"players": 3, "tokens": 4, "ratio": "5/2"}, [0, 4, 3]),
        ("public_goods", {"players": 3, "tokens": 4, "ratio": 5}, [0, 4, 3]),
        ("diners_dilemma", {"players": 4}, [0, 1, 1]),
    ],
)  # fmt: skip
def test_exploitability_is_that_of_playing_every_profile(name, parameters, moves):
    game = rulebook(name, rounds=len(moves), **parameters)
    state, records = game.reset(0), []
    for move in moves:
        state, outcome = game.step(state, np.full(game.players, move))
        records.append(outcome.record)
    expected = gain_by_brute_force(rulebook(name, rounds=1, **parameters), moves)
    assert exploitability(game, stacked(records)) == pytest.approx(expected, abs=1e-9)


def test_known_mixed_equilibria_cannot_be_exploited():
    game = bar.Bar()
    assert bar.gain_on_copies(bar.mixed_equilibrium(game), game)[0] == pytest.approx(0, abs=1e-9)
    assert 10 * bar.gain_on_copies(0.6, game)[0] == pytest.approx(0.6956, abs=5e-5)
    split = guess.ContestRules(10, Fraction(2, 3), prize_rule="split")
    mixed = np.repeat([0, 1], (129_408, 870_592))
    assert guess.gain_on_copies(mixed, split)[0] == pytest.approx(0, abs=2e-6)
    assert guess.gain_on_copies(np.repeat([0, 1], (1, 1)), split)[0] > 0.05
    assert guess.gain_on_copies(np.array([0]), split)[0] == 0
    assert guess.gain_on_copies(np.array([2]), split)[0] == pytest.approx(0.9)  # 1 wins alone
    assert dollar.gain_on_copies(np.array([4, 4, 6]), 2, 10)[0] == pytest.approx(0)
    assert dollar.gain_on_copies(np.array([10]), 10, 100)[0] == 0
    assert dollar.gain_on_copies(np.array([9]), 10, 100)[0] == 10
    assert dollar.gain_on_copies(np.array([50]), 10, 100)[0] == 0  # nobody alone can repair it


@pytest.mark.filterwarnings("ignore:\\s*An even number")
def test_symmetric_equilibria_of_two_by_nashpy_cannot_be_exploited():
    nashpy = pytest.importorskip("nashpy")
    bids = np.arange(5)
    paid = dollar.receipts(np.stack(np.meshgrid(bids, bids, indexing="ij")), 4)
    mixed = 0
    for own, other in nashpy.Game(*paid).support_enumeration():
        if np.allclose(own, other):
            moves = np.repeat(bids, np.rint(own * 12).astype(int))
            assert dollar.gain_on_copies(moves, 2, 4)[0] == pytest.approx(0, abs=1e-9)
            mixed += own.max() < 1
    assert mixed


def test_wide_ranges_are_searched_at_best_replies():
    wide = guess.ContestRules(3, Fraction(2, 3), high=10**6, prize_rule="split")
    assert guess.gain_on_copies(np.array([999_999, 500_000]), wide)[0] > 0.5
    game = rulebook("beauty_contest", preset="econ_arena_L", rounds=1, reveal_last=0)
    assert np.isnan(exploitability(game, steps_of(game, ["random"] * 9)[0])).all()


def test_shading_by_nine_tenths_costs_eight_in_all():
    game = rulebook("sealed_bid_auction")
    assert shading(game, np.array([0.9])).nash_conv() == pytest.approx(8.0, abs=0.05)
    steps, _ = steps_of(game, ["shade:0.9", "truthful", *["rational"] * 8])
    nine, all_, *rest = exploitability(game, steps)
    assert nine < all_
    assert nine == pytest.approx(0.8, abs=0.3)  # of bids rounded down
    assert max(rest) < 0.9
    given = rulebook("sealed_bid_auction", players=2, rounds=1, valuations=[[3, 5]])
    assert np.isnan(exploitability(given, steps_of(given, ["rational"] * 2)[0])).all()


# -- interim regret --------------------------------------------------------------------------------


@each_row("price", ["first", "second"])
def test_interim_payoffs_by_all_orders_of_values(price):
    rows = np.array([[0, 0], [0, 1], [1, 1], [1, 3], [2, 3]])
    found = SymmetricBids(3, np.arange(0, 5), rows, price)
    for value, bid in product(range(5), range(5)):
        paid = []
        for others in permutations([v for v in range(5) if v != value], 2):
            for theirs in product(*rows[list(others)]):
                bids = np.array([bid, *theirs])
                paid.append(sealed.payoffs(np.array([value, *others]), bids, price)[0])
        assert found._payoff[value, bid] == pytest.approx(np.mean(paid), abs=1e-12)
    assert found.interim_regret(np.array([3, 3]), np.array([-2, 9])).tolist() == pytest.approx(
        [found._payoff[3].max(), found._payoff[3].max() - (3 - 9 if price == "first" else
         found._payoff[3, 4])]
    )  # fmt: skip


@each_row("price", ["first", "second"])
def test_interim_regret_of_sealed_bids(price):
    game = rulebook("sealed_bid_auction", price=price, bid_range="unbounded")
    steps, _ = steps_of(game, ["truthful", "rational", "shade:0.5", "zero", *["random"] * 6])
    lost = interim(game, steps)
    assert lost.shape == steps["actions"].shape
    assert lost.min() >= -1e-12
    truthful, best, half, zero, *_ = lost.mean(axis=1)
    if price == "second":
        assert max(truthful, best) < 1e-12 < half < zero
    else:
        assert best < 0.05 < truthful  # it is an approximate equilibrium
        assert best < half < zero
        values = steps["valuations"]  # bidding all of it earns as little as bidding nothing
        all_, none = (interim(game, steps | {"actions": part * values}) for part in (1, 0))
        assert all_ == pytest.approx(none, abs=1e-9)


def paying(price, value, rivals):
    return lambda bid: np.mean((value - (bid if price == "first" else rivals)) * (bid > rivals))


@each_row("price", ["first", "second"])
def test_interim_regret_where_values_are_taken_for_independent(price):
    game = rulebook("sealed_bid_auction", players=3, price=price, valuation_max=10**6, interval=1)
    value, rng = 700_000, np.random.default_rng(5)
    rivals = rng.uniform(0, 10**6, (2, 400_000)).max(axis=0)
    if price == "first":
        rivals = rivals * 2 / 3
    paid = paying(price, value, rivals)
    best = value * 2 // 3 if price == "first" else value
    for bid in (0, 300_000, best, 600_000, value, 900_000):
        lost = sealed.interim(game, {"valuations": np.array([value]), "actions": np.array([bid])})
        assert lost[0] == pytest.approx(paid(best) - paid(bid), abs=1500)
        assert (lost[0] < 1e-6) == (bid == best)


@each_row("price", ["first", "second"])
def test_interim_regret_with_budgets(price):
    game = rulebook("budget_auction", preset="econ_arena_L", price=price, value_rounding="none")
    drawn = game.chance(Noise.copies(3, (100_000,)))["valuations"][1:]
    found, cents, best = equilibrium(game), np.rint(drawn * 100).astype(int), 60.0
    if price == "first":
        drawn = found.draw(0, cents, 0.5) / 100
        best = float(found.draw(0, np.array(6000), 0.5)) / 100
    paid = paying(price, 60, drawn.max(axis=0))
    record = {"valuations": np.full(5, 6000), "assets": np.full(5, 10_000),
              "actions": np.round(np.array([0, 40, best, 60, 75]) * 100).astype(int),
              "legal": np.ones(5, bool)}  # fmt: skip
    lost = interim(game, record)
    expected = [paid(best) - paid(bid) for bid in (0, 40, best, 60, 75)]
    assert lost == pytest.approx(expected, abs=0.05)
    assert lost[2] == pytest.approx(0, abs=1e-4)
    assert paid(best) == pytest.approx(lost[0], abs=0.05)


def test_interim_regret_of_broken_rules_and_of_equal_values():
    game = rulebook("budget_auction", preset="econ_arena_L", entrance_fee=3, players=2)
    record = {"valuations": np.array([5000] * 2), "assets": np.array([10_000] * 2),
              "actions": np.array([5000, 12_000]), "legal": np.array([True, False])}  # fmt: skip
    lost = interim(game, record)
    assert lost[0] == 0
    assert lost[1] > 3  # and what a bid would have gained
    for price, expected in (("first", [0, 10, 0]), ("second", [0, 0, 0])):
        game = rulebook("budget_auction", players=3, sigma=0, price=price)
        values = np.full(3, 50_000)
        record = {"valuations": values, "assets": 2 * values, "legal": np.ones(3, bool),
                  "actions": np.array([50_000, 51_000, 100])}  # fmt: skip
        assert interim(game, record).tolist() == expected


def test_interim_regret_while_prices_rise():
    """One bidder against two whose values the price has not ruled out."""
    game = rulebook("english_auction", preset="econ_arena_english_L", players=3)
    rng = np.random.default_rng(3)
    rivals = rng.normal(50, 10, (2, 400_000)).max(axis=0)
    for value, floor, bid in ((55, 46, 46), (55, 46, -1), (55, 46, 53), (55, 46, 60), (40, 46, 46),
                              (40, 46, -1), (70, 0, 90), (70, 0, 0)):  # fmt: skip
        top = rivals[rivals >= floor - 1] if floor else rivals

        def stays(up, top=top, value=value):
            return np.mean(np.where(up > top, value - up, np.maximum(value - top, 0)))

        best = max(0, stays(floor)) if floor <= value else 0
        record = {"floor": np.array(floor), "start": np.array(0), "increment": np.array(1),
                  "value": np.array([value] * 3), "actions": np.array([bid] * 3),
                  "asked": np.array([True, True, False])}  # fmt: skip
        lost = interim(game, record)
        assert lost[0] == lost[1] == pytest.approx(best - (stays(bid) if bid >= 0 else 0), abs=0.06)
        assert lost[2] == 0
    steps, _ = steps_of(game, ["truthful", "rule:999", "fixed:-1"])
    bold, shy = interim(game, steps)[1:].sum(axis=1)
    assert interim(game, steps)[0].sum() == pytest.approx(0, abs=0.02)
    assert min(bold, shy) > 0.3
    common = rulebook("english_auction")
    assert np.isnan(interim(common, steps_of(common, ["mc"] * 4)[0])).all()


def test_a_shot_is_judged_by_its_chance_not_by_its_hit():
    game = rulebook("battle_royale", players=4, preset="gamma_bench")
    steps, _ = steps_of(game, ["fixed:strongest"] * 4)
    assert np.array_equal(interim(game, steps), deviation(game, steps).regret)
    assert interim(game, steps_of(game, ["rational"] * 4)[0]).max() == pytest.approx(0, abs=1e-9)
    shown = battle.solution(game)
    lost = shown.regret(0b1111, 0, -1)
    missed = {"shooter": np.array(0), "target": np.array(-1), "shots": np.array(1),
              "alive": np.ones(4, bool)}  # fmt: skip
    assert interim(game, missed).tolist() == [pytest.approx(lost), 0, 0, 0]


@each_row("name", [name for name in ROOMS if has(name, "interim")])
def test_interim_regret_of_a_batch_equals_a_loop(name):
    preset = "econ_arena_english_L" if name == "english_auction" else None
    game = rulebook(name, preset=preset, players=4)
    rng, state = np.random.default_rng(4), game.reset(4, (6,))
    for _ in range(3):
        low, high = game.legal(state)
        over = state.over
        state, outcome = game.step(state, rng.integers(low, high, endpoint=True))
        whole = interim(game, outcome.record)
        assert whole.shape == (4, 6)
        assert whole.min() >= -1e-12
        for i in np.flatnonzero(~over):
            record = {key: np.asarray(value)[..., i] for key, value in outcome.record.items()}
            assert interim(game, record) == pytest.approx(whole[:, i], abs=1e-12)


# -- responses to whole plays ----------------------------------------------------------------------


@pytest.fixture
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LLM_GAMES_CACHE", str(tmp_path))


SMALL = WaterAllocation(players=3, days=6, supply_low=8, supply_high=16, hp_start=3, hp_max=5)


def test_others_stay_as_they_were_when_a_response_is_played():
    rules = [water.even, water.urgent, water.RULES["half"]]
    field = water.play(SMALL, rules, 200)
    for seat, rule in enumerate(rules):
        assert np.array_equal(water.against(SMALL, field, seat, rule), field.survived[seat])
    nothing = water.against(SMALL, field, 0, lambda now, noise: np.full_like(now.balance, NO_BID))
    assert nothing.mean() < field.survived[0].mean()


@pytest.mark.usefixtures("_own_cache")
def test_nobody_gains_on_a_best_response_but_on_others():
    even = water.play(SMALL, [water.even] * 3, 400)
    best = water.best_response(SMALL, water.play(SMALL, [water.even] * 3, 2000, 7), 0)
    field = water.play(SMALL, [best, water.RULES["zero"], water.even], 400, 3)
    again = water.best_response(SMALL, field, 0)
    field = water.play(SMALL, [again, water.RULES["zero"], water.even], 400, 4)
    gains = np.stack([water.regret(SMALL, field, seat) for seat in range(3)])
    error = gains.std(axis=1) / np.sqrt(gains.shape[1])
    assert (gains.mean(axis=1) >= -2 * error - 0.01).all()
    assert gains[0].mean() <= 0.03
    assert gains[1].mean() > 0.2
    assert np.array_equal(water.regret(SMALL, field, 1), gains[1])
    assert water.regret(SMALL, even, 2).mean() >= -0.03


@pytest.mark.usefixtures("_own_cache")
def test_the_response_to_recorded_plays():
    plays = [steps_of(SMALL, ["zero", "even", "even"], seed)[0] for seed in range(8)]
    gains = response_gap(SMALL, plays)
    assert gains.shape == (3, 8)
    assert set(np.unique(gains)) <= {-1, 0, 1}
    assert gains[0].mean() > 0
    assert np.isnan(response_gap(SMALL, plays[:1])).all()
