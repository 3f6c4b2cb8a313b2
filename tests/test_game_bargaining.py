"""Bargaining: worked examples, perfect play against brute force, what is told, people's answers."""

from fractions import Fraction as F
from itertools import product

import numpy as np
import pytest
from playing import each_row

import llm_games as lg
from llm_games.baselines.games.bargaining import theory
from llm_games.baselines.play_measures import described
from llm_games.baselines.regret import deviation, stacked, welfare
from llm_games.questions import MISSING
from llm_games.table import Table
from llm_games.view import View
from llm_games.words import Prompts

WORDS = {"accept": 1, "reject": 0, "leave": 2, "fails": MISSING}


def bargain(**more):
    return lg.rules("bargaining", **more)


def play(game, moves, seed=0, given=None):
    """Play the moves of whoever is asked, pairs where both are; return the payoffs."""
    table, paid = Table(game), np.zeros(2)
    table.reset(seed, given)
    for move in moves:
        both = move if isinstance(move, tuple) else [move] * 2
        assert not table.state.over
        asked = table.sight.asked
        paid += table.step({seat: WORDS.get(both[seat], both[seat]) for seat in asked}).rewards
    assert table.state.over
    return paid.tolist()


TWO = {"periods": 2, "discount": ("9/10", "4/5")}
OUT = {"periods": 3, "discount": "9/10", "outside": (10, 36)}


@each_row(
    ("more", "moves", "paid"),
    [
        ({}, [40, "accept"], [60, 40]),
        ({}, [10, "reject"], [0, 0]),
        ({"preset": "shrinking"}, [20, "reject", 10, "accept"], [F(5, 2), F(45, 2)]),
        (TWO, [20, "reject", 33, "accept"], [F(297, 10), F(268, 5)]),
        (OUT, [30, "reject", 20, "leave"], [9, F(162, 5)]),
        ({"pie": 10, "breakdown": (3, 4)}, [2, "reject"], [3, 4]),
        ({"preset": "moblab"}, [(45, 45)], [55, 45]),
        ({"preset": "moblab"}, [(44, 45)], [0, 0]),
        ({"pie": 5}, ["fails", "accept"], [3, 2]),
        ({"preset": "dictator"}, [25], [75, 25]),
        ({"first": 1}, [40, "accept"], [40, 60]),
        ({"preset": "moblab", "first": 1}, [(45, 44)], [0, 0]),
        ({}, [40, "fails"], [0, 0]),
        ({"preset": "moblab"}, [("fails", 50)], [50, 50]),
        ({"preset": "moblab"}, [(99, "fails")], [0, 0]),
        ({"preset": "moblab"}, [(100, "fails")], [0, 100]),
        ({}, [101, "accept"], [50, 50]),
        ({}, [40, "leave"], [0, 0]),
    ],
)
def test_worked_examples(more, moves, paid):
    assert play(bargain(**more), moves) == [float(amount) for amount in paid]


NINE = {"periods": 9, "discount": "9/10"}


@each_row(
    ("more", "accept", "reject"),
    [
        ({}, 0, 1),
        ({"preset": "forsythe"}, 0, 1),
        ({"preset": "shrinking"}, 25, 25),
        ({"periods": 3, "discount": "1/2"}, 25, 26),
        ({**NINE, "outside": (0, 36)}, 43, 43),
        ({**NINE, "outside": (0, 58)}, 58, 59),
        ({"breakdown": (30, 40)}, 40, 41),
        ({"periods": 10, "discount": ("9/10", "4/5")}, 43, 43),
        *(
            ({"periods": number + 1, "discount": "9/10"}, *offers)
            for number, offers in enumerate(
                zip(
                    (0, 90, 9, 82, 17, 75, 23, 70, 27, 66, 31, 63),
                    (1, 90, 10, 82, 17, 75, 23, 70, 28, 65, 32, 62),
                    strict=True,
                )
            )
        ),
    ],
)
def test_perfect_first_offers(more, accept, reject):
    game = bargain(**more)
    offers = [theory.solution(game, 0, ties)[0].offer for ties in theory.TIES]
    assert offers == [accept, reject]
    assert (np.array(offers) >= [theory.solution(game, 0, t)[0].least for t in theory.TIES]).all()


def test_patience_leaves_the_last_proposer_all():
    accepting, strict = (theory.solution(bargain(periods=2), 0, ties)[0] for ties in theory.TIES)
    assert (accepting.offer, accepting.payoffs) == (100, (0, 100))
    assert strict.offer < strict.least
    assert strict.payoffs == (1, 99)


def test_without_an_end_the_first_gets_rubinsteins_share():
    assert theory.rubinstein(F(9, 10), F(9, 10)) == F(10, 19)
    assert theory.rubinstein(F(9, 10), F(4, 5)) == F(5, 7)
    assert 100 * (1 - theory.rubinstein(F(9, 10), F(9, 10))) == F(900, 19)
    far = bargain(periods=14, pie=81, discount="9/10")
    assert abs(theory.solution(far)[0].payoffs[0] / 81 - F(10, 19)) < F(2, 10)


def best_outcomes(game, period, ties, opener):
    """Return all perfect payoffs from a period on, by trying every offer and answer."""
    if period == game.periods:
        return tuple(map(F, game.breakdown))
    worth = [factor**period for factor in game.discount]
    proposer = (opener + period) % 2
    other = 1 - proposer
    ways = [best_outcomes(game, period + 1, ties, opener)]
    if game.outside is not None:
        ways.append(tuple(w * o for w, o in zip(worth, game.outside, strict=True)))
    refused = max(ways, key=lambda way: way[other])
    options = []
    for x in range(game.pie + 1):
        gain = worth[other] * x - refused[other]
        accepted = gain > 0 or (gain == 0 and ties == "accept")
        share = {proposer: worth[proposer] * (game.pie - x), other: worth[other] * x}
        options.append((accepted, (share[0], share[1]) if accepted else refused))
    return max(options, key=lambda option: (option[1][proposer], option[0]))[1]


@each_row(
    ("pie", "periods", "discount"),
    list(product((1, 3, 7), (1, 2, 3, 4), (1, "1/2", ("9/10", "1/3")))),
)
def test_induction_is_brute_force(pie, periods, discount):
    rng = np.random.default_rng(pie * 100 + periods)
    for outside in (None, tuple(rng.integers(0, pie + 1, 2).tolist())):
        breakdown = tuple(rng.integers(0, pie + 1, 2).tolist())
        game = bargain(
            pie=pie, periods=periods, discount=discount, outside=outside, breakdown=breakdown
        )
        for ties, opener in product(theory.TIES, (0, 1)):
            assert theory.solution(game, opener, ties)[0].payoffs == best_outcomes(
                game, 0, ties, opener
            )


@each_row(
    "more",
    [
        {},
        {"preset": "moblab", "breakdown": (3, 9)},
        {"veto": False},
        {"preset": "rubinstein", "first": "drawn"},
        {**OUT, "pie": 36},
        {"periods": 2, "breakdown": (40, 70)},
    ],
)
def test_the_rational_lose_nothing(more):
    game = bargain(**more)
    for seed in range(4):
        episode = lg.play(game, [lg.player("rational", game)] * 2, seed=seed)
        records = [step.outcome.record for step in episode.steps]
        assert not sum(deviation(game, record).regret.sum() for record in records)
        assert not sum(deviation(game, record).distance for record in records)
        opener = int(records[0]["proposer"])
        expected = [float(amount) for amount in theory.solution(game, opener)[0].payoffs]
        assert episode.payoffs.tolist() == expected
        found = welfare(game, stacked(records))
        assert found.worst <= found.lowest <= found.total <= found.highest <= found.best


@each_row(
    ("more", "moves", "regrets", "far"),
    [
        ({}, [30, "reject"], [(30, 0), (0, 30)], [0.3, 1]),
        ({}, [30, "accept"], [(30, 0), (0, 0)], [0.3, 0]),
        ({"preset": "moblab"}, [(60, 45)], [(15, 0)], [(0.6 + 0.45) / 2]),
        ({"preset": "moblab"}, [(40, 45)], [(55, 40)], [(0.4 + 0.45) / 2]),
        ({"preset": "shrinking"}, [20, "reject", 0, "accept"],
         [(0.75 * 100, 0), (0, 0), (0, 0), (0, 0)], [0.05, 0, 0, 0]),
    ],
)  # fmt: skip
def test_regrets(more, moves, regrets, far):
    table = Table(bargain(**more))
    table.reset(0)
    for move, regret, distance in zip(moves, regrets, far, strict=True):
        both = move if isinstance(move, tuple) else [move] * 2
        record = table.step({s: WORDS.get(both[s], both[s]) for s in table.sight.asked}).record
        found = deviation(table.game, record)
        assert found.regret.tolist() == list(regret)
        assert found.distance == pytest.approx(distance)


def test_the_other_number_is_not_told():
    game = bargain(preset="moblab", breakdown=(2, 3))
    texts, numbers = set(), set()
    for least in (46, 60, 100):  # all refuse an offer of 45
        state, _ = game.step(game.reset(0), np.array([45, least]))
        texts.add(Prompts("bargaining").report(View.of(game, state, 0)))
        numbers.add(game.observe(state)[0].tobytes())
    assert len(texts) == len(numbers) == 1
    for offer in (0, 10, 44):  # all are refused from 45 on
        state, _ = game.step(game.reset(0), np.array([offer, 45]))
        texts.add(Prompts("bargaining").report(View.of(game, state, 1)))
        numbers.add(game.observe(state)[1].tobytes())
    assert len(texts) == len(numbers) == 2


def test_both_shares_of_an_offer_are_said():
    game = bargain(periods=2, discount="3/4")
    state, _ = game.step(game.reset(0), np.array([30, MISSING]))
    for version in ("v1", "v2", "v3", "v4", "v5"):
        prompts = Prompts("bargaining", version)
        for seat, (own, other) in enumerate([(70, 30), (30, 70)]):
            said = prompts.request(View.of(game, state, seat))
            if seat == 0:
                later, _ = game.step(state, np.array([MISSING, 0]))
                said = prompts.report(View.of(game, later, seat))
            assert f"{own}" in said
            assert said.index(f"{own}") < said.index(
                f"other {'gets' if seat == 0 else 'keeps'} {other}"
            )


def test_who_talks_before_the_others_offer_knows_whose_it_is():
    game = bargain(talk={"turns": 1, "mode": "together"}, first="drawn", periods=2)
    for version in ("v1", "v2", "v3", "v4", "v5"):
        prompts, texts = Prompts("bargaining", version), set()
        for opener in (0, 1):
            table = Table(game)
            table.reset(0, {"opener": opener})
            first, second, *_ = prompts.request(View.of(game, table.state, 0)).splitlines()
            texts.add(second)
            assert "1 of " in first
            assert "other" in second
        assert len(texts) == 2


def test_people_and_who_is_best_against_them():
    rates = theory.acceptance(100)
    assert [round(1000 * rates[x]) for x in theory.PEOPLE] == list(theory.PEOPLE.values())
    assert (theory.best_to_people(100), 50 * rates[50]) == (50, pytest.approx(45.65))
    game = bargain(preset="moblab")
    seeds = range(2000)
    episodes = [lg.play(game, [lg.player("fixed:40"), lg.player("people")], seed=s) for s in seeds]
    records = [episode.steps[0].outcome.record for episode in episodes]
    assert np.mean([record["answer"] for record in records]) == pytest.approx(rates[40], abs=0.03)
    offered = {int(r["offer"]) for r in (
        lg.play("bargaining", [lg.player("people")] * 2, seed=s).steps[0].outcome.record
        for s in range(3))}  # fmt: skip
    assert offered == {44}


def test_measures_of_some_plays():
    game, plays = bargain(**TWO), []
    for moves in ([20, "reject", 33, "accept"], [50, "accept"], [0, "reject", 10, "reject"]):
        table, records = Table(game), []
        table.reset(0)
        for move in moves:
            records.append(table.step({table.sight.asked[0]: WORDS.get(move, move)}).record)
        plays.append(stacked(records))
    found = described(game, plays)
    assert found["mean offer"] == pytest.approx(np.mean([0.2, 0.33, 0.5, 0, 0.1]))
    assert found["median offer"] == 0.2
    assert found["rejected"] == pytest.approx(0.6)
    assert found["implied smallest accepted"] == pytest.approx(0.33)
    assert found["periods until agreement"] == 1.5
    assert found["efficiency"] == pytest.approx((29.7 + 53.6 + 100) / 300)
    names = [f"rejected of {share}" for share in ("0 to 9 %", "20 to 29 %", "30 to 39 %", "100 %")]
    assert [found[name] for name in names[:3]] == [1, 1, 0]
    assert np.isnan(found[names[3]])
    assert np.isnan(described(game, [])["efficiency"])
    second = described(game, plays, [1])  # offers of the second seat, answers to the first's
    assert second["mean offer"] == pytest.approx(np.mean([0.33, 0.1]))
    assert second["rejected"] == pytest.approx(2 / 3)


def test_agreements_share_the_pie():
    game = bargain(periods=3, first="drawn")
    for seed in range(20):
        episode = lg.play(game, [lg.player("random")] * 2, seed=seed)
        assert episode.payoffs.sum() == 100 * (episode.state.answer == 1)


def test_seats_can_be_exchanged():
    one, two = bargain(**OUT), bargain(**OUT | {"outside": (36, 10), "first": 1})
    for moves in (
        [30, "reject", 20, "leave"],
        [40, "accept"],
        [1, "reject", 2, "reject", 3, "accept"],
    ):
        assert play(one, moves) == play(two, moves)[::-1]
