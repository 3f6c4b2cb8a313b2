"""El Farol bar, divide the dollar, public goods and diner's dilemma against exhaustive search."""

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playing import each_row

from llm_games.baselines.games.diners_dilemma import theory as diners_dilemma
from llm_games.baselines.games.diners_dilemma.theory import Menu
from llm_games.baselines.games.divide_dollar import theory as divide_dollar
from llm_games.baselines.games.el_farol_bar import theory as el_farol_bar
from llm_games.baselines.games.el_farol_bar.theory import Bar
from llm_games.baselines.games.public_goods import theory as public_goods


def diners_efficiency(orders, menu):
    """Return welfare between the worst (0) and the best (1) possible."""
    cheap, costly = (menu.cheap_utility - menu.cheap_price, menu.costly_utility - menu.costly_price)
    right = (np.asarray(orders) == diners_dilemma.optimum(menu)).mean(axis=0)
    return right if cheap != costly else np.ones_like(right)


def goods_efficiency(contributions, endowments, ratio):
    """Return welfare between the worst (0) and the best (1) possible."""
    share = np.asarray(contributions).sum(axis=0) / np.asarray(endowments).sum(axis=0)
    if ratio == 1:
        return np.ones_like(share)
    return share if ratio > 1 else 1 - share


def best_bid(others, golds):
    """Return the bid with the highest mean receipt against a sample of sums of the others' bids."""
    left = np.sort(np.maximum(golds - np.asarray(others), 0))
    times = np.arange(len(left), 0, -1)
    return int(left[np.argmax(left * times)])


def dollar_efficiency(bids, golds):
    """Return the share of the gold that was paid out."""
    return divide_dollar.receipts(bids, golds).sum(axis=0) / golds


def bar_nash_conv(q, bar):
    """Return NashConv of the profile in which everybody goes with probability `q`."""
    go = bar.crowded + (bar.good - bar.crowded) * el_farol_bar.good_if_i_go(q, bar)
    return bar.players * (max(go, bar.home) - (q * go + (1 - q) * bar.home))


def bar_welfare(goers, bar):
    going = np.where(np.asarray(goers) <= bar.capacity, bar.good, bar.crowded)
    return goers * going + (bar.players - goers) * bar.home


def bar_efficiency(going, bar):
    """Return bar_welfare between the worst (0) and the best (1) possible."""
    possible = bar_welfare(np.arange(bar.players + 1), bar)
    low, high = (possible.min(), possible.max())
    mine = bar_welfare(np.sum(going, axis=0), bar)
    return (mine - low) / (high - low) if high > low else np.ones_like(mine, float)


def every(actions, players):
    return np.array(list(product(actions, repeat=players))).T


def nearest(profiles, nash):
    return np.abs(profiles[:, :, None] - nash[:, None]).sum(axis=0).min(axis=1)


def deviations(profiles, seat, action):
    changed = profiles.copy()
    changed[seat] = action
    return changed


def searched_regret(profiles, actions, utility):
    best = [
        np.max([utility(deviations(profiles, seat, a))[seat] for a in actions], axis=0)
        for seat in range(len(profiles))
    ]
    return np.array(best) - utility(profiles)


# -- El Farol ------------------------------------------------------------------------------------


def utilities(going, bar):
    bar_is = np.where(going.sum(axis=0) <= bar.capacity, bar.good, bar.crowded)
    return np.where(going, bar_is, bar.home).astype(float)


def attendance_law(others):
    """The law of the number of goers among players who go with these probabilities."""
    law = np.ones(1)
    for q in others:
        law = np.append(law * (1 - q), 0.0) + np.append(0.0, law * q)
    return law


HALF = ((0, 5, 10), (0, 2, 10), (0, 8, 10), (0, 0, 10), (0, 10, 10), (3, 3, 3))


@each_row("prices", HALF)
@each_row("capacity", [0, 1, 3, 5])
def test_bar(prices, capacity):
    bar = Bar(5, capacity, *prices)
    profiles = every((0, 1), 5)
    regret = searched_regret(profiles, (0, 1), lambda x: utilities(x, bar))
    assert np.array_equal(el_farol_bar.regret(profiles, bar), regret)
    nash = profiles[:, (regret == 0).all(axis=0)]
    assert np.array_equal(el_farol_bar.distance(profiles, bar), nearest(profiles, nash))
    replies = el_farol_bar.best_response(profiles, bar)
    for seat in range(5):
        after = profiles.copy()
        after[seat] = replies[seat]
        assert (el_farol_bar.regret(after, bar)[seat] == 0).all()
    welfare = utilities(profiles, bar).sum(axis=0)
    share = bar_efficiency(profiles, bar)
    if welfare.max() > welfare.min():
        spread = welfare.max() - welfare.min()
        assert share == pytest.approx((welfare - welfare.min()) / spread)


def test_bar_equilibria_of_the_default_game():
    profiles = every((0, 1), 10)
    nash = el_farol_bar.regret(profiles, Bar()).sum(axis=0) == 0
    assert nash.sum() == comb(10, 6) == 210
    assert bar_welfare(6, Bar()) == 80
    assert el_farol_bar.regret(np.zeros(10, int), Bar()).sum(axis=0) == 50
    assert el_farol_bar.regret(np.ones(10, int), Bar()).sum(axis=0) == 50


@each_row(
    ("capacity", "home", "q"),
    [
        (0, 5, 0), (2, 5, 0.179620), (4, 5, 0.393085), (5, 5, 0.5), (6, 5, 0.606915),
        (8, 5, 0.820380), (10, 5, 1), (6, 2, 0.7325), (6, 8, 0.4709),
    ],
)  # fmt: skip
def test_bar_mixed_equilibrium(capacity, home, q):
    bar = Bar(10, capacity, 0, home, 10)
    found = el_farol_bar.mixed_equilibrium(bar)
    assert found == pytest.approx(q, abs=5e-5 if home != 5 else 5e-7)
    assert bar_nash_conv(found, bar) == pytest.approx(0, abs=1e-9)


def test_bar_mixed_equilibrium_by_exact_fractions_and_large_numbers():
    law = attendance_law(np.full(9, 0.3))
    assert law == pytest.approx([comb(9, k) * 0.3**k * 0.7 ** (9 - k) for k in range(10)])
    assert law[:6].sum() == pytest.approx(el_farol_bar.good_if_i_go(0.3, Bar()))
    assert bar_nash_conv(0.6, Bar()) == pytest.approx(0.6956, abs=1e-4)
    assert el_farol_bar.mixed_equilibrium(Bar(5000, 3000)) == pytest.approx(0.6, abs=2e-3)


def test_an_independent_solver_finds_the_same_bar_equilibria():
    gambit = pytest.importorskip("pygambit")
    bar = Bar(3, 1)
    profiles = np.stack(np.meshgrid(*[np.arange(2)] * 3, indexing="ij"))
    paid = utilities(profiles, bar).astype(int)
    game = gambit.Game.from_arrays(*paid)
    pure = gambit.nash.enumpure_solve(game).equilibria
    assert len(pure) == comb(3, 1)
    q = el_farol_bar.mixed_equilibrium(bar)
    mixed = game.mixed_strategy_profile([[1 - q, q]] * 3)
    assert mixed.max_regret() == pytest.approx(0, abs=1e-9)


# -- divide the dollar ---------------------------------------------------------------------------


@each_row(("players", "golds"), [(2, 7), (3, 7), (4, 5), (5, 3), (3, 1)])
def test_dollar(players, golds):
    profiles = every(range(golds + 1), players)
    utility = lambda x: divide_dollar.receipts(x, golds)  # noqa: E731
    regret = searched_regret(profiles, range(golds + 1), utility)
    assert np.array_equal(divide_dollar.regret(profiles, golds), regret)
    total, top = profiles.sum(axis=0), profiles.max(axis=0)
    nash = (regret == 0).all(axis=0)
    assert np.array_equal(nash, (total == golds) | (total - top >= golds))
    far = nearest(profiles, profiles[:, nash])
    assert np.array_equal(divide_dollar.distance(profiles, golds), far)


def test_dollar_symmetric_equilibria():
    equal = np.tile(np.arange(101), (10, 1))
    nash = np.flatnonzero(divide_dollar.regret(equal, 100).sum(axis=0) == 0)
    assert nash.tolist() == [10, *range(12, 101)]
    bids = divide_dollar.fair_bids(3, 100)
    assert bids.tolist() == [34, 33, 33]
    assert divide_dollar.regret(bids, 100).sum(axis=0) == 0
    assert dollar_efficiency(bids, 100) == 1


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8))
def test_dollar_best_bid_against_a_sample(others):
    golds = 30
    mean = lambda b: sum(b for s in others if s + b <= golds)  # noqa: E731
    assert mean(best_bid(np.array(others), golds)) == max(map(mean, range(golds + 1)))


# -- public goods --------------------------------------------------------------------------------


@each_row("ratio", [0, Fraction(1, 2), 1, 2, 3, 4])
def test_public_goods(ratio):
    ratio, tokens = Fraction(ratio), 3
    profiles = every(range(tokens + 1), 3)
    have = np.full_like(profiles, tokens)
    utility = lambda x: tokens - x + float(ratio) / 3 * x.sum(axis=0)  # noqa: E731
    regret = public_goods.regret(profiles, have, ratio)
    assert regret == pytest.approx(searched_regret(profiles, range(tokens + 1), utility))
    nash = profiles[:, (regret == 0).all(axis=0)]
    assert np.array_equal(public_goods.distance(profiles, have, ratio), nearest(profiles, nash))
    welfare = utility(profiles).sum(axis=0)
    best = public_goods.optimum(have, ratio)
    assert utility(best).sum(axis=0) == pytest.approx(welfare.max())
    spread = welfare.max() - welfare.min()
    share = (welfare - welfare.min()) / spread if ratio != 1 else 1
    assert goods_efficiency(profiles, have, ratio) == pytest.approx(share)


# -- diner's dilemma -----------------------------------------------------------------------------

MENUS = {
    (10, 15, 20, 20): 4, (11, 5, 20, 7): 1.1, (4, 19, 9, 20): 0.5,
    (1, 8, 19, 12): 2.2, (4, 5, 17, 7): 0.7, (2, 11, 8, 13): 1.4,
}  # fmt: skip


@each_row(("dishes", "gain"), MENUS.items())
def test_diners_gain(dishes, gain):
    menu = Menu(10, *dishes)
    assert menu.scaled_gain() / 10 == pytest.approx(gain)
    assert diners_dilemma.best_response(menu) == 1
    assert diners_dilemma.optimum(menu) == 0


@each_row("menu", [Menu(2), Menu(3), Menu(4, 4, 19, 9, 20), Menu(4, 5, 5, 6, 6)])
def test_diners(menu):
    profiles = every((0, 1), menu.players)

    def utility(orders):
        bill = np.where(orders, menu.costly_price, menu.cheap_price).sum(axis=0)
        taste = np.where(orders, menu.costly_utility, menu.cheap_utility)
        return taste - bill / menu.players

    regret = diners_dilemma.regret(profiles, menu)
    assert regret == pytest.approx(searched_regret(profiles, (0, 1), utility))
    nash = profiles[:, (regret == 0).all(axis=0)]
    assert np.array_equal(diners_dilemma.distance(profiles, menu), nearest(profiles, nash))
    welfare = utility(profiles).sum(axis=0)
    if welfare.max() - welfare.min() > 1e-9:
        share = (welfare - welfare.min()) / (welfare.max() - welfare.min())
        assert diners_efficiency(profiles, menu) == pytest.approx(share)
