"""Helpers of the tests: settings of every game and legal random play."""

from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest

import llm_games
from llm_games.baselines.games.water_allocation import theory as water
from llm_games.codecs import ACTIONS
from llm_games.game_rooms import ROOMS
from llm_games.noise import Noise
from llm_games.questions import MISSING

NAMES = sorted(ROOMS)
SIMULTANEOUS = [name for name in NAMES if not llm_games.rules(name).turns]
MODES = ("text", "numeric", "both")

BIDDERS = {"players": 3, "assets": (9, 6, 8), "mu": 5, "sigma": 2, "decimals": 0, "rounds": 3}

BROKE = {"budgets": (2500, 1300, 900), "discount": 50, "skip_broke": True, "tie_rule": "authors"}
ROOM = {"layout": "small", "players": 6, "max_rounds": 5, "p_deliberate": "1/2"}
LOTS = (("Lamp", 3, 7), ("Chair", 0, 4))

# Games whose defaults are too long to be played again and again.
SMALL: dict[str, dict] = {
    "bertrand_competition": {"rounds": 8, "window": 3, "history": True},
    "emergency_evacuation": {"layout": "small", "players": 4, "max_rounds": 2},
}
# Every game at its defaults, and in the modes whose spaces, masks or reports differ.
SETTINGS: list[tuple[str, dict]] = [
    *((name, SMALL.get(name, {})) for name in NAMES),
    (
        "bertrand_competition",
        {"players": 3, "rounds": 5, "window": 2, "history": True, "first_round": "free"}
        | {"cost": (1, 2, 3), "tick": "1/4", "price_grid": (2, 5, 8), "personas": "explorer"},
    ),
    ("beauty_contest", {"players": 3, "domain": "real", "decimals": 2, "max": 1, "rounds": 4}),
    ("beauty_contest", {"prize_rule": "split", "rule_breaker": "include", "foul_fee": 1}),
    ("beauty_contest", {"preset": "econ_arena_L", "players": 3, "rounds": 3}),
    ("beauty_contest", {"players": 3, "rounds": 4, "max_draw": (2, 5), "reveal": ("all_choices",)}),
    ("beauty_contest", {"players": 4, "rounds": 3, "personas": "mixed"}),
    ("el_farol_bar", {"mode": "explicit", "players": 4, "ratio": "1/2"}),
    ("el_farol_bar", {"implicit_report": "no_count", "players": 5}),
    ("divide_dollar", {"players": 3, "golds": 7, "bid_range": "unbounded"}),
    ("public_goods", {"players": 3, "endowment": "carry", "rounds": 5}),
    ("public_goods", {"players": 4, "initial_tokens": "random", "ratio": "1/2"}),
    ("diners_dilemma", {"players": 7, "rounds": 4}),
    ("sealed_bid_auction", {"price": "second", "players": 4, "valuation_draw": "random"}),
    ("sealed_bid_auction", {"bid_range": "unbounded", "players": 3, "rounds": 3}),
    ("budget_auction", {"preset": "econ_arena_L", "players": 3, "rounds": 3, "reveal": "bids"}),
    ("budget_auction", BIDDERS | {"reveal": "bids_and_private", "entrance_fee": 2}),
    ("budget_auction", BIDDERS | {"price": "first", "rule_breaker": "include"}),
    ("emergency_evacuation", ROOM | {"moves": "simultaneous", "uncooperative": True}),
    ("emergency_evacuation", ROOM | {"walker": "wang", "target_choice": "cell", "stages": "one"}),
    ("english_auction", {"players": 3, "items": "items_5", "item_order": "shuffled", **BROKE}),
    ("english_auction", {"preset": "econ_arena_english_L", "players": 3, "first_bidder": "random"}),
    (
        "english_auction",
        {"players": 1, "items": LOTS, "bidding": "cyclic", "reveal_value": "never"},
    ),
    ("english_auction", {"players": 2, "objective": ("items", "profit"), "terse_rules": True}),
    ("battle_royale", {"players": 3, "base_hit_rate": 50, "interval": 20}),
    ("battle_royale", {"players": 4, "bad_target": "wasted_shot", "max_shots": 5}),
    ("pirate_game", {"players": 4, "gold": 5}),
    ("pirate_game", {"players": 3, "quota": "majority", "payoff": "lexicographic"}),
    ("water_allocation", {"over_budget": "rule_break", "no_bid": "zero", "hp_start": 2}),
    ("water_allocation", {"players": 3, "money_decimals": 2, "persona": "default", "days": 6}),
]
# Every setting once, and every kind of actions once a game; the observation modes take turns.
CASES = [(n, m, MODES[i % 3], "rules" if i % 4 else "index") for i, (n, m) in enumerate(SETTINGS)]
CASES += [
    (n, SMALL.get(n, {}), MODES[(i + j) % 3], a)
    for i, n in enumerate(NAMES)
    for j, a in enumerate(ACTIONS)
]
IDS = [" ".join([name, *map(str, more.values())]) for name, more in SETTINGS]
CASE_IDS = [" ".join([n, mode, actions, *map(str, m.values())]) for n, m, mode, actions in CASES]


def every(test):
    """Run a test on every setting of every game; by day on one a game, see `conftest`."""
    return pytest.mark.crossing(pytest.mark.parametrize(("name", "more"), SETTINGS, ids=IDS)(test))


def each_row(names, table, ids=None, by=None):
    """Parametrize as pytest does, but as one item, or one for each value of `by`, called with rows.

    All rows run; the failure names those that failed. For rows of little time and without fixtures
    that a row could leave changed for the next.
    """
    single = isinstance(names, str)
    labels = list(ids) if ids and not callable(ids) else []
    groups = {}
    for number, row in enumerate(table):
        label = labels[number] if labels else f"{number}: {row!r}"[:200]
        if isinstance(row, type(pytest.param())):
            assert not row.marks, "a mark belongs to a whole item"
            label, row = row.id or label, row.values[0] if single else row.values
        arguments = {names: row} if single else dict(zip(names, row, strict=True))
        groups.setdefault(by(row) if by else None, []).append((label, arguments))

    def decorate(test):
        @functools.wraps(test)
        def whole(group=None, **fixtures):
            failures = []
            for label, arguments in groups[group]:
                try:
                    test(**arguments, **fixtures)
                except pytest.skip.Exception:
                    continue
                except (Exception, pytest.fail.Exception) as failure:
                    failures.append((label, failure))
            if failures:
                lines = [f"{label}: {type(e).__name__}: {e}" for label, e in failures]
                count = f"{len(failures)} of {len(groups[group])} rows failed"
                raise AssertionError("\n".join([count, *lines])) from failures[0][1]

        parameters = inspect.signature(test).parameters.values()
        remaining = [parameter for parameter in parameters if parameter.name not in arguments]
        if by:
            remaining.append(inspect.Parameter("group", inspect.Parameter.KEYWORD_ONLY))
        whole.__signature__ = inspect.Signature(remaining)
        del whole.__wrapped__
        return pytest.mark.parametrize("group", groups)(whole) if by else whole

    return decorate


def sampled(question, rng):
    """Draw a legal action of a question."""
    return question.sample(Noise(int(rng.integers(2**63))))


def legal_actions(game, state, rng):
    """Return random legal actions of one table, ``(players,)``."""
    moves = {}
    for seat in np.flatnonzero(game.asked(state)):
        moves[int(seat)] = sampled(game.question(state, int(seat)), rng)
    return game.assemble(state, moves)


def batch_actions(game, state, rng):
    """Return random legal actions of a batch ``(tables,)``, ``(players, tables)``."""
    tables = [state.table(b) for b in range(len(state.round))]
    idle = np.full(game.players, MISSING, np.int64)
    return np.stack([idle if t.over else legal_actions(game, t, rng) for t in tables], axis=1)


def equal(a, b):
    """Tell whether two states are the same, bit for bit."""
    one, two = a.arrays(), b.arrays()
    return one.keys() == two.keys() and all(
        np.array_equal(one[k], two[k], equal_nan=one[k].dtype.kind == "f") for k in one
    )


def price_ratio(game, played):
    """Return what was paid for all water as a share of what would have been enough.

    None if nothing would have been.
    """
    paid, enough = (0, 0)
    for bids, supply in zip(played.bids, played.supplies, strict=True):
        for seat in range(game.players):
            price = water.critical_price(game, bids, supply, seat)
            won = (bids[seat] > water.NO_BID) & (bids[seat] >= price)
            paid += int(bids[seat][won].sum())
            enough += int(price[won].sum())
    return paid / enough if enough else None


def efficiency(game, played):
    """Return the mean number of survivors as a share of the planner's, see `water.best_plan`."""
    return float(played.survived.sum(axis=0).mean()) / water.best_plan(water.relevant(game))[1]
