"""Sealed-bid auctions: hindsight by exhaustive search, equilibrium bids by independent means."""

from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playing import each_row

from llm_games.baselines.games.budget_auction.budget_first_price import equilibrium
from llm_games.baselines.games.sealed_bid_auction import sealed_first_price
from llm_games.baselines.games.sealed_bid_auction.sealed_first_price import (
    symmetric_bids,
    win_probability,
)
from llm_games.baselines.games.sealed_bid_auction.theory import (
    best_response,
    deals,
    distance,
    equilibrium_bids,
    payoffs,
    regret,
    uniform_bid,
)
from llm_games.baselines.regret import rational
from llm_games.registry import rulebook


def efficiency(values, bids):
    top = bids == np.max(bids, axis=0)
    won, best = ((values * top).sum(axis=0) / top.sum(axis=0), np.max(values, axis=0))
    return np.where(best > 0, won / np.where(best > 0, best, 1), 1.0)


def by_hand(values, bids, price):
    top = max(bids)
    winners = [i for i, b in enumerate(bids) if b == top]
    paid = top if price == "first" else sorted(bids)[-2]
    return [
        (v - paid) / len(winners) if i in winners else 0.0 for i, v in enumerate(values)
    ]  # fmt: skip


@given(
    st.integers(2, 5).flatmap(
        lambda n: st.tuples(
            st.lists(st.integers(0, 9), min_size=n, max_size=n),
            st.lists(st.integers(0, 12), min_size=n, max_size=n),
        )
    ),
    st.sampled_from(["first", "second"]),
)
def test_regret_is_the_best_of_all_bids(case, price):
    values, bids = case
    assert payoffs(np.array(values), np.array(bids), price).tolist() == by_hand(*case, price)
    found = regret(np.array(values), np.array(bids), price)
    reply = best_response(np.array(values), np.array(bids), price)
    for seat in range(len(values)):
        paid = [by_hand(values, [*bids[:seat], b, *bids[seat + 1 :]], price)[seat]
                for b in range(14)]  # fmt: skip
        assert found[seat] == pytest.approx(max(paid) - by_hand(values, bids, price)[seat])
        assert paid[reply[seat]] == max(paid)


def test_batch_equals_loop():
    rng = np.random.default_rng(1)
    values, bids = rng.integers(0, 20, (2, 4, 50))
    for price in ("first", "second"):
        whole = regret(values, bids, price)
        loop = [regret(values[:, i], bids[:, i], price) for i in range(50)]
        assert np.array_equal(whole, np.stack(loop, axis=-1))


def test_second_price_equilibria_under_complete_information():
    values = np.array([3, 2, 1])
    profiles = np.array(list(product(range(5), repeat=3))).T
    nash = regret(values[:, None], profiles, "second").sum(axis=0) == 0
    assert nash.sum() == 55
    assert regret(values, values, "second").sum() == 0
    assert (efficiency(values[:, None], profiles[:, nash]) < 1).any()


def test_worked_rounds():
    values = np.array([200, 30, 0, 80, 70, 160, 20, 110, 10, 100])
    assert uniform_bid(values, 10).tolist() == [180, 27, 0, 72, 63, 144, 18, 99, 9, 90]
    assert regret(values, uniform_bid(values, 10), "first").tolist() == [35] + [0] * 9
    assert efficiency(np.array([10, 20]), np.array([10, 10])) == 0.75
    assert distance(np.array([1, 5]), np.array([3, 4])) == 3


@each_row(("value", "bid"), [(40, 38.48), (50, 47.38), (60, 54.74)])
def test_independent_values(value, bid):
    """Bids of a smooth law as an independent integral gives them."""
    game = rulebook(
        "budget_auction", players=5, price="first", mu=50, sigma=10, assets=100, decimals=4,
        value_rounding="none",
    )  # fmt: skip
    found = equilibrium(game).draw(np.int64(0), np.array(value * 10**4), 0.5)
    assert found / 10**4 == pytest.approx(bid, abs=0.01)


@pytest.mark.parametrize(
    ("more", "near"),
    [
        ({"sigma": 1, "decimals": 2}, 0.02),  # a unit is 3 % of a gain, and gains a fifth of that
        ({"sigma": 1, "decimals": 0}, 0.002),
        ({"sigma": 5, "decimals": 0}, 0.002),
        ({"sigma": 30, "decimals": 0}, 0.002),
        ({"sigma": 100, "players": 5}, 0.001),
        ({"sigma": 2, "decimals": 1, "value_rounding": "none", "players": 2}, 0.01),
    ],
)
def test_nobody_gains_by_other_bids_whatever_the_unit_of_money(more, near):
    """By the law of the bids that are drawn: the highest valuations had gained half of it."""
    game = rulebook("budget_auction", **{"players": 3, "price": "first", "rounds": 1} | more)
    found, unit, chances = equilibrium(game), game.unit, (np.arange(400) + 0.5) / 400
    likely, values = np.diff(found.below), found.values
    drawn = [found.draw(seat, values[:, None], chances) for seat in range(game.players)]
    least, most = min(bids.min() for bids in drawn), int(values[-1])
    law = np.zeros((game.players, most - least + 1))
    for own, bids in zip(law, drawn, strict=True):
        np.add.at(own, bids - least, np.broadcast_to(likely[:, None] / 400, bids.shape))
    upto = law.cumsum(axis=1)
    for seat in range(game.players):
        wins = np.ones(law.shape[1])
        for other in range(game.players):  # of tied seats the lowest wins
            if other != seat:
                wins = wins * (upto[other] - law[other] * (other < seat))
        gains = (values[:, None] - np.arange(least, most + 1)) * wins
        own = np.take_along_axis(gains, drawn[seat] - least, axis=1).mean(axis=1)
        assert (gains.max(axis=1) - own) @ likely <= near * (own @ likely)
    claim = rational(game)
    assert claim.kind == "best known"
    assert f"more than {max(found.gain * 1.05, 1e-6) / unit:.2g} a round" in claim.sentence


def test_given_valuations_are_all_that_chance_brings():
    game = {"players": 2, "rounds": 1, "valuations": [[4, 7]], "valuation_draw": "random"}
    found, likely = deals(rulebook("sealed_bid_auction", **game), 100)
    assert {tuple(row) for row in found["valuations"][0].T.tolist()} == {(4, 7)}
    assert likely.sum() == 1


def test_win_probability_by_listing_all_rivals():
    rng = np.random.default_rng(3)
    types, bids, players = 5, 4, 3
    law = rng.dirichlet(np.ones(bids), types)
    chance = win_probability(law.cumsum(axis=1), players)
    for own, bid in product(range(types), range(bids)):
        total = 0.0
        for rivals in combinations([k for k in range(types) if k != own], players - 1):
            for theirs in product(range(bid + 1), repeat=players - 1):
                odds = np.prod([law[k, b] for k, b in zip(rivals, theirs, strict=True)])
                total += odds / (1 + theirs.count(bid))
        assert chance[own, bid] == pytest.approx(total / comb(types - 1, players - 1))


@each_row(("high", "most", "profit"), [(100, 0.06, 1.09), (200, 0.2, 2.6), (400, 0.3, 5.2)])
def test_shipped_bids_are_nearly_an_equilibrium(high, most, profit):
    bids = symmetric_bids(10, 0, high, 10)
    assert bids.nash_conv() < most
    assert bids.profit() == pytest.approx(profit, rel=0.1)
    assert (bids.bids <= bids.values[:, None]).all()
    drawn = bids.draw(np.full(64, high), np.arange(64) / 64)
    assert drawn.tolist() == bids.bids[-1].tolist()
    assert bids.mean_bid(np.array([high])) == pytest.approx(drawn.mean())


def test_default_bids_shade_more_than_with_independent_values():
    bids = symmetric_bids(10, 0, 200, 10)
    values = np.arange(150, 201, 10)
    assert (bids.mean_bid(values) / values > 0.83).all()
    assert (bids.mean_bid(values) / values < 0.89).all()
    assert bids.interim_regret(np.array([200]), np.array([180])) > 5
    assert bids.interim_regret(np.array([200]), np.array([169])) < 0.3


def test_other_sizes_are_solved_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("LLM_GAMES_CACHE", str(tmp_path))
    symmetric_bids.cache_clear()
    found = symmetric_bids(3, 0, 40, 10)
    assert list(tmp_path.iterdir())
    symmetric_bids.cache_clear()
    assert np.array_equal(symmetric_bids(3, 0, 40, 10).bids, found.bids)
    assert found.nash_conv() < 1
    symmetric_bids.cache_clear()


def test_large_grids_get_the_bids_of_independent_values():
    large = rulebook("sealed_bid_auction", valuation_max=10**9, interval=1)
    assert sealed_first_price.equilibrium(large) is None
    values = np.array([0, 5000, 10**9])
    assert equilibrium_bids(large, values).tolist() == [0, 4500, 900_000_000]


def test_solver_approaches_an_equilibrium():
    conv = [sealed_first_price.solve(4, 0, 60, 10, n).nash_conv() for n in (5, 400)]
    assert conv[1] < conv[0] / 3
