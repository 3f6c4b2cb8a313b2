"""Deal or no deal: worked examples, the law, perfect offers, what nobody may know, players."""

import re
from fractions import Fraction as F
from functools import cache

import numpy as np
import pytest
from playing import each_row

import llm_games as lg
from llm_games.baselines.games.deal_or_no_deal import theory
from llm_games.baselines.payoff_tables import undominated
from llm_games.baselines.play_measures import described
from llm_games.baselines.regret import deviation, rational, stacked
from llm_games.errors import BadParameter
from llm_games.games.deal_or_no_deal.divisions import code_of, law, taken_of
from llm_games.questions import MISSING
from llm_games.table import Table
from llm_games.view import View
from llm_games.words import Prompts

SPLIT = ((1, 4, 1), (4, 1, 2), (0, 2, 2))
ACCEPT, FAILS = 125, MISSING


def deal(**more):
    return lg.rules("deal_or_no_deal", **{"scenario": SPLIT} | more)


def code(pieces):
    return pieces if isinstance(pieces, int) else int(code_of([int(n) for n in pieces.split()]))


def play(actions, **more):
    """Play moves in turn, or two claims; return the payoffs and the records."""
    table, paid, records = Table(deal(**more)), np.zeros(2), []
    table.reset(0)
    for move in actions:
        assert not table.state.over
        both = move if isinstance(move, tuple) else (move, move)
        outcome = table.step({seat: code(both[seat]) for seat in table.sight.asked})
        paid += outcome.rewards
        records.append(outcome.record)
    assert table.state.over
    return paid.tolist(), records


@each_row(
    ("more", "moves", "paid"),
    [
        ({"protocol": "claims"}, [("1 0 1", "0 4 0")], [6, 8]),
        ({"protocol": "claims"}, [("1 1 1", "0 4 0")], [0, 0]),
        ({"protocol": "claims"}, [("1 0 0", "0 4 0")], [0, 0]),
        ({"protocol": "claims"}, [("1 4 1", FAILS)], [10, 0]),
        ({"protocol": "claims"}, [(FAILS, "1 4 1")], [0, 10]),
        ({}, ["1 0 1", ACCEPT], [6, 8]),
        ({"discount": "9/10"}, ["1 4 1", "0 4 0", ACCEPT], [F(27, 5), F(36, 5)]),
        ({"discount": "9/10"}, ["1 4 1", "0 4 0", FAILS, ACCEPT], [F(81, 10), 0]),
        ({"moves": 2}, ["1 4 1", "0 4 0"], [0, 0]),
        ({}, [ACCEPT, ACCEPT], [10, 0]),
        ({"first": 1}, ["0 4 0", ACCEPT], [6, 8]),
        ({}, ["1 0 2", ACCEPT], [10, 0]),
    ],
)
def test_worked_examples(more, moves, paid):
    assert play(moves, **more)[0] == [float(amount) for amount in paid]


def test_the_law():
    table = law(3)
    assert len(table) == 5295
    assert len({tuple(counts) for counts in table[:, 0].tolist()}) == 28
    counts, one, two = table.transpose(1, 0, 2)
    assert ((counts >= 1) & (counts <= 4)).all()
    assert set(counts.sum(axis=1).tolist()) == {5, 6, 7}
    for values in (one, two):
        assert ((counts * values).sum(axis=1) == 10).all()
    assert ((one > 0) | (two > 0)).all()
    assert ((one > 0) & (two > 0)).any(axis=1).all()
    scores = [theory.divisions_of(tuple(map(tuple, rows))).scores for rows in table.tolist()]
    joint, least = [s.sum(axis=0) for s in scores], [s.min(axis=0).max() for s in scores]
    assert F(sum(int(j.max()) for j in joint), len(table)) == F(26578, 1765)
    assert np.mean(least) == pytest.approx(6.576, abs=5e-4)
    equal = [(s[0] == s[1])[j == j.max()].any() for s, j in zip(scores, joint, strict=True)]
    assert np.mean(equal) == pytest.approx(0.1915, abs=5e-5)
    for scenario in table[::500].tolist():
        found = theory.divisions_of(tuple(map(tuple, scenario)))
        assert found.scores.shape[1] <= 36
        assert found.scores.sum(axis=0).mean() == 10


def test_scenarios_are_drawn_by_the_law():
    game = lg.rules("deal_or_no_deal")
    rows = game.reset(0, (3000,)).scenario
    assert 0 <= rows.min() < 100
    assert 5195 < rows.max() < 5295
    for kinds in (("pen", "cup"), ("a", "b", "c", "d")):
        assert len(lg.rules("deal_or_no_deal", items=kinds).table) == {2: 40, 4: 184180}[len(kinds)]
    several = lg.rules("deal_or_no_deal", scenario=[SPLIT, [[2, 2, 1], [1, 2, 4], [5, 0, 0]]])
    assert set(several.reset(0, (50,)).scenario.tolist()) == {0, 1}


def test_the_published_example():
    found = theory.divisions_of(SPLIT)
    frontier = set(map(tuple, found.scores.T[undominated(found.scores)].tolist()))
    assert frontier == {(4, 10), (6, 8), (7, 6), (8, 4), (9, 2), (10, 0)}
    assert found.scores.sum(axis=0).max() == 14
    assert found.taken[:, found.nash].tolist() == [1, 0, 1]


@each_row(
    ("discount", "moves", "payoffs"),
    [
        *((1, moves, (10, 0)) for moves in (2, 4, 10)),
        *((1, moves, (4, 10)) for moves in (3, 5, 9)),
        ("9/10", 2, (10, 0)),
        *(("9/10", moves, (9, 2)) for moves in (4, 10)),
        *(("9/10", moves, (4, 10)) for moves in (3, 5)),
    ],
)
def test_perfect_offers_where_values_are_known(discount, moves, payoffs):
    game = deal(open_values=True, moves=moves, discount=discount)
    assert rational(game).kind == "equilibrium"
    assert theory.plan(game, theory.rows_of(game, 0))[0].payoffs == payoffs
    episode = lg.play(game, [lg.player("rational", game)] * 2)
    assert tuple(episode.payoffs) == payoffs
    assert not sum(deviation(game, step.outcome.record).regret.sum() for step in episode.steps)


def test_perfect_offers_are_brute_force():
    rng = np.random.default_rng(3)
    for scenario in law(2)[rng.integers(0, len(law(2)), 6)].tolist():
        rows = tuple(map(tuple, scenario))
        scores = theory.divisions_of(rows).scores

        @cache
        def best(number, standing, moves, discount, scores=scores):
            """Return the payoffs of both, given the standing division by its place."""
            if number > moves:
                return F(0), F(0)
            maker, options = (number - 1) % 2, []
            if standing is not None:
                factor = discount ** max(0, number - 2)
                options.append(tuple(int(s) * factor for s in scores[:, standing]))
            for place in range(scores.shape[1]):
                options.append(best(number + 1, place, moves, discount))
            first = max(option[maker] for option in options)
            if standing is not None and options[0][maker] == first:
                return options[0]
            return max(options, key=lambda option: (option[maker], option[1 - maker]))

        for moves in (1, 2, 3, 4):
            for discount in (F(1), F(1, 2)):
                game = deal(items=("a", "b"), scenario=rows, moves=moves, discount=discount)
                assert theory.plan(game, rows)[0].payoffs == best(1, None, moves, discount)


def test_private_values_are_not_told():
    """Two tables that differ in the other's values alone look the same until the end."""
    table = law(3)
    alike = (table[:, 0] == table[0, 0]).all(axis=1) & (table[:, 1] == table[0, 1]).all(axis=1)
    rows = np.flatnonzero(alike)[:4]
    assert len(rows) > 1
    for more in ({}, {"protocol": "claims"}, {"talk": {"turns": 1}}):
        game, texts, numbers = lg.rules("deal_or_no_deal", **more), set(), set()
        for row in rows.tolist():
            state = game.reset(0, given={"scenario": row})
            view = View.of(game, state, 0)
            texts.add("".join(Prompts("deal_or_no_deal", f"v{n}").text(view) for n in range(1, 6)))
            numbers.add(game.observe(state)[0].tobytes())
        assert len(texts) == len(numbers) == 1
    game = lg.rules("deal_or_no_deal", open_values=True)
    states = [game.reset(0, given={"scenario": row}) for row in rows.tolist()]
    known = [game.observe(state)[0].tobytes() for state in states]
    assert len(set(known)) == len(rows)


def test_an_end_by_chance_is_told_without_its_cap():
    game = deal(continuation="1/2")
    assert game.moves == 30
    states = [game.reset(0, given={"last_move": last}) for last in (1, 30)]
    for version in ("v1", "v2", "v3", "v4", "v5"):
        texts = [Prompts("deal_or_no_deal", version).text(View.of(game, s, 0)) for s in states]
        assert texts[0] == texts[1]
        assert "50%" in texts[0]
        assert "30" not in texts[0]
    over, outcome = game.step(states[0], np.array([code("1 0 1"), MISSING]))
    assert over.over
    assert not outcome.rewards.any()
    going, _ = game.step(states[1], np.array([code("1 0 1"), MISSING]))
    assert not going.over


def test_codes_are_mixed_radix():
    assert taken_of(code("1 4 1"), 3).tolist() == [1, 4, 1]
    assert code("1 4 1") == 46
    game = deal()
    mask = game.mask(game.reset(0))
    assert mask.sum() == 2 * 5 * 2
    assert not mask[1].any()
    offered, _ = game.step(game.reset(0), np.array([46, MISSING]))
    assert game.mask(offered)[1, ACCEPT]


@each_row(
    ("players", "moves"),
    [
        ("greedy accepts_all", ["1 4 1", ACCEPT]),
        ("full_information full_information", ["1 0 1", ACCEPT]),
        ("fixed:1-0-0 greedy", ["1 0 0", ACCEPT]),
        ("fixed:0-0-1 fixed:4-4-4", ["0 0 1", "1 4 1", "0 0 1", "1 4 1"]),
        ("conceder:1 fixed:1-4-1", ["1 4 1", "1 4 1", "1 3 1", "1 4 1"]),
        ("conceder:3 fixed:1-4-1", ["1 4 1", "1 4 1", "1 1 1", "1 4 1"]),
    ],
)
def test_players(players, moves):
    game = deal(moves=4)
    episode = lg.play(game, [lg.player(name, game) for name in players.split()])
    actions = [max(step.outcome.record["actions"].tolist()) for step in episode.steps]
    assert actions == [code(move) for move in moves]


def test_a_conceder_accepts_what_it_would_ask_for():
    game = deal(moves=6)
    for step, moves in (("1", 6), ("5", 4)):
        players = [lg.player("fixed:0-1-0", game), lg.player(f"conceder:{step}", game)]
        episode = lg.play(game, players)
        assert len(episode.steps) == moves
        assert episode.payoffs.tolist() == [1, 8]


def product_of_means(counts, values, fits, taken):
    own = sum(v * t for v, t in zip(values, taken, strict=True))
    left = [n - t for n, t in zip(counts, taken, strict=True)]
    return own * sum(sum(v * n for v, n in zip(row[2], left, strict=True)) for row in fits)


def test_the_fair_weigh_all_values_that_fit():
    game = lg.rules("deal_or_no_deal")
    for row in (0, 1000, 5000):
        counts, values, _ = theory.rows_of(game, row)
        fits = [r for r in law(3).tolist() if tuple(r[0]) == counts and tuple(r[1]) == values]
        best = max(
            theory.divisions_of((counts, values, values)).codes.tolist(),
            key=lambda c: (product_of_means(counts, values, fits, taken_of(c, 3).tolist()), -c),
        )
        assert theory.fair_code(counts, values) == best


@each_row(("value"), ["1-1", "1-5-1", "a-b-c", "accept"])
def test_fixed_divisions_that_cannot_be_played(value):
    with pytest.raises(BadParameter, match="how many of each kind it takes"):
        lg.player(f"fixed:{value}", "deal_or_no_deal")


def test_regrets_of_claims_and_offers():
    _, [record] = play([("1 0 1", "0 4 0")], protocol="claims")
    assert deviation(deal(protocol="claims"), record).regret.tolist() == [0, 0]
    _, [record] = play([("1 1 1", "0 4 0")], protocol="claims")
    assert deviation(deal(protocol="claims"), record).regret.tolist() == [6, 6]
    game = deal(moves=2, open_values=True)
    _, records = play(["1 0 1", "0 4 0"], moves=2, open_values=True)
    found = [deviation(game, record) for record in records]
    assert found[0].regret.tolist() == [4, 0]
    assert found[1].regret.tolist() == [0, 8]
    assert [each.distance for each in found] == [1, 1]


def test_measures_of_some_plays():
    game = deal()
    plays = [stacked(play(["1 0 1", ACCEPT])[1]), stacked(play(["1 4 1", ACCEPT])[1])]
    plays.append(stacked(play([*["1 4 1", "0 4 0"] * 5])[1]))
    found = described(game, plays)
    assert found["agreement"] == pytest.approx(2 / 3)
    assert found["score"] == pytest.approx((6 + 8 + 10) / 6)
    assert found["score of deals"] == 6
    assert found["joint score"] == 12
    assert found["share of the best joint score"] == pytest.approx((1 + 10 / 14) / 2)
    assert found["Pareto-efficient deals"] == 1
    assert found["equal points"] == 0
    assert found["moves"] == pytest.approx(14 / 3)
    assert np.isnan(described(game, [])["agreement"])
    assert "inconsistent claims" not in found


def test_claims_that_do_not_add_up_are_counted():
    game = deal(protocol="claims")
    plays = [stacked([game.step(game.reset(0), np.array(c))[1].record]) for c in ([26, 20], [0, 0])]
    assert described(game, plays)["inconsistent claims"] == 1 / 2


def test_the_dialogue_preset_talks_before_the_claims():
    game = lg.rules("deal_or_no_deal", preset="dialogue")
    assert (game.talk.turns, game.talk.order, game.core.protocol) == (5, "fixed", "claims")


@each_row("version", ["v1", "v2", "v3", "v4", "v5"])
def test_who_talks_before_the_others_offer_knows_what_it_is_about(version):
    """Also before the first offer, when it was asked for nothing yet; never the other's values."""
    game = deal(talk={"turns": 1, "mode": "together"})
    view = View.of(game, game.reset(0), 1)
    first, *_ = Prompts("deal_or_no_deal", version).request(view).splitlines()
    assert re.findall("book|hat|ball", first) == [*game.core.items]
    assert re.findall(r"\d", first) == [*"104212"]  # counts, each with the own value


@each_row("discount", ["1", "9/10"])
def test_payoffs_are_those_of_open_spiel(discount):
    """A second opinion, where it is installed: an offer there is what its maker takes, too."""
    pyspiel = pytest.importorskip("pyspiel")
    theirs = pyspiel.load_game(f"bargaining(max_turns=6,discount={float(F(discount))})")
    allowed = {tuple(map(tuple, rows)) for rows in law(3).tolist()}
    rng, compared = np.random.default_rng(8), 0
    for number in range(60):
        state = theirs.new_initial_state()
        state.apply_action(int(rng.integers(len(state.legal_actions()))))
        lines = re.findall(r"\w+: (\d+), \w+: (\d+), \w+: (\d+)", str(state))
        scenario = tuple(tuple(map(int, line)) for line in lines[:3])
        if scenario not in allowed:  # there are 5 pieces of a kind in some
            continue
        table = Table(deal(scenario=scenario, discount=discount, moves=6))
        table.reset(number)
        while not state.is_terminal():
            chosen = int(rng.choice(state.legal_actions()))
            pieces = re.findall(r"\d+", state.action_to_string(chosen))
            [seat] = table.sight.asked
            assert seat == state.current_player()
            rewards = table.step({seat: code(" ".join(pieces)) if pieces else ACCEPT}).rewards
            state.apply_action(chosen)
            assert bool(table.state.over) == state.is_terminal()
        assert rewards.tolist() == pytest.approx(state.returns())
        compared += 1
    assert compared > 30
