"""Paired comparison of two runs."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_games.benchmarks.runs.compare import EXACT, compare, difference, sign_flip
from llm_games.benchmarks.runs.config import parse
from llm_games.benchmarks.runs.database import NotARun
from llm_games.benchmarks.runs.plan import Overrides, players, resolve
from llm_games.benchmarks.runs.run import play_run, start
from llm_games.benchmarks.runs.stats import DRAWS
from llm_games.errors import BadParameter, UnknownName

numbers = st.floats(-1e3, 1e3, allow_nan=False).map(lambda x: round(x, 3))


def played(path, games, **settings):
    """Play these games, `(name, params)`, and return the path."""
    raw = {"games": [{"game": name, "params": params} for name, params in games]} | settings
    plan = resolve(parse(raw, "test"), "test", Overrides())
    play_run(lambda: start(plan, path), plan, players(plan))
    return path


PUBLIC_GOODS = ("public_goods", {"players": 3, "rounds": 2, "ratio": "3/2"})
BATTLE = ("battle_royale", {"players": 3})


@pytest.mark.parametrize(
    ("change", "p"),
    [
        ([1], 1),  # both signs are as extreme
        ([1, 1], 2 / 4),
        ([1, 1, 1, 1, 1], 2 / 32),
        ([1, -1], 1),
        ([3, 1, -1], 6 / 8),  # sums of 5, 3, 3, 1 and their negatives: 3 or more
        ([0, 0, 0], 1),
        ([0.1, 0.2, 0.3], 2 / 8),
    ],
)
def test_sign_flip_over_all_signs(change, p):
    assert sign_flip(change) == p


def test_sign_flip_by_draws_is_near_the_exact_one_and_repeatable():
    rng = np.random.default_rng(5)
    change = rng.normal(0.4, 1, EXACT)
    more = np.append(change, [0.0] * 4)  # zeros change nothing, but make it too long for all signs
    assert sign_flip(more) == sign_flip(more)
    assert sign_flip(more) == pytest.approx(sign_flip(change), abs=0.02)
    assert sign_flip(np.ones(40)) == 1 / DRAWS


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=EXACT))
def test_difference_is_antisymmetric(pairs):
    a, b = zip(*pairs, strict=True)
    there, back = difference(a, b), difference(b, a)
    assert there.mean == pytest.approx(-back.mean, abs=1e-9)
    assert there.p == back.p
    assert 2 / 2 ** len(pairs) <= there.p <= 1
    if len(pairs) == 1:
        assert there.low is None
    else:
        assert there.low == pytest.approx(-back.high, abs=1e-9)
        assert there.low - 1e-9 <= there.mean <= there.high + 1e-9


def test_difference_of_unequal_sides():
    with pytest.raises(BadParameter, match="got 1 and 2"):
        difference([1], [1, 2])
    with pytest.raises(BadParameter, match="got 0 and 0"):
        difference([], [])


def test_two_runs(tmp_path):
    games = [PUBLIC_GOODS, BATTLE]
    a = played(tmp_path / "a.db", games, episodes=4, seats=["cooperative"])
    b = played(tmp_path / "b.db", games, episodes=4, seats=["rational"])
    goods, battle = compare(a, b)
    assert (goods.label, goods.alone, goods.notes) == ("public_goods", [], [])
    # All give 20 of 20 and get 30, twice; or all give nothing and keep 20.
    assert goods.score[:4] == (4, 0, 100, 100)
    assert goods.payoff[:6] == (4, 60, 40, -20, -20, -20)
    assert goods.score.p == goods.payoff.p == 2 / 16
    assert battle.payoff.a <= 1 / 3
    assert all(game.score.mean == 0 for game in compare(a, a))


def test_payoff_is_that_of_the_seats_that_differ(tmp_path):
    a = played(tmp_path / "a.db", [PUBLIC_GOODS], seats=["fixed:20", "fixed:20", "fixed:20"])
    b = played(tmp_path / "b.db", [PUBLIC_GOODS], seats=["fixed:20", "fixed:0", "fixed:20"])
    [found] = compare(a, b)
    assert found.seats == [1]
    assert found.payoff[:5] == (1, 60, 80, 20, None)
    assert found.payoff.p == 1


def test_what_does_not_pair_is_said(tmp_path):
    a = played(tmp_path / "a.db", [PUBLIC_GOODS, BATTLE], episodes=3, seats=["random"])
    b = played(tmp_path / "b.db", [PUBLIC_GOODS], episodes=2, seats=["random"])
    c = played(tmp_path / "c.db", [PUBLIC_GOODS], episodes=2, seats=["random"], seed=9)
    d = played(tmp_path / "d.db", [("public_goods", {"players": 4})], seats=["random"])
    goods, battle = compare(a, b)
    assert (goods.score.pairs, goods.alone) == (2, ["episode 2 only in A"])
    assert (battle.score, battle.payoff) == (None, None)
    assert battle.alone == ["episodes 0, 1, 2 only in A"]
    [other_seed] = compare(b, c)
    assert other_seed.payoff is None
    assert other_seed.alone == [f"episodes 0, 1 with another seed in {side}" for side in "AB"]
    [other_rules] = compare(b, d)
    assert other_rules.notes == [
        "played with different parameters",
        "played by different numbers of players",
    ]


def test_editions_and_errors(tmp_path):
    auction = ("sealed_bid_auction", {"rounds": 3})
    a = played(tmp_path / "a.db", [auction], seats=["random"], scoring="v4")
    b = played(tmp_path / "b.db", [auction], seats=["rational"])
    assert compare(a, b) == compare(a, b, "v4") != compare(a, b, "corrected")
    with pytest.raises(UnknownName):
        compare(a, b, "v5")
    with pytest.raises(NotARun):
        compare(a, tmp_path / "nothing.db")


def test_on_the_command_line(llm_games, tmp_path):
    for player in ("random", "rational"):
        played(tmp_path / f"{player}.db", [PUBLIC_GOODS], episodes=2, seats=[player])
    code, out, _ = llm_games("compare", "random.db", "rational.db")
    assert code == 0
    assert "public_goods" in out
    assert "score" in out
    code, out, _ = llm_games("compare", "random.db", "rational.db", "--json")
    [found] = json.loads(out)
    assert (found["score"]["pairs"], found["score"]["b"]) == (2, 100)
    assert llm_games("compare", "random.db", "nothing.db")[0] == 2
    code, _, _ = llm_games("report", "--compare", "random.db", "rational.db", "-o", "out")
    assert code == 0
    assert "Comparison" in (tmp_path / "out/report.html").read_text("utf-8")
    assert llm_games("report", "--compare", "random.db", "-o", "out")[0] == 2
    assert llm_games("report", "random.db", "--scoring", "v9", "-o", "out")[0] == 2
