from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playing import each_row

from llm_games.benchmarks.judge import intervals, means
from llm_games.benchmarks.papers.gamma_bench import published, scores
from llm_games.benchmarks.papers.gamma_bench.scores import Shot
from llm_games.benchmarks.record import recorded_games
from llm_games.errors import BadParameter, UnknownName
from llm_games.games.battle_royale.rules import BattleRoyale
from llm_games.games.beauty_contest.rules import BeautyContest
from llm_games.games.diners_dilemma.rules import DinersDilemma
from llm_games.games.divide_dollar.rules import DivideDollar
from llm_games.games.el_farol_bar.rules import ElFarolBar
from llm_games.games.pirate_game.rules import PirateGame
from llm_games.games.public_goods.rules import PublicGoods
from llm_games.games.sealed_bid_auction.rules import SealedBidAuction
from llm_games.questions import MISSING


def ten(*numbers):
    return [[n] * 10 for n in numbers]


CASE_2 = [0, 10, 20, 30, 40, 50, 60, 70, 80, 90]
CASE_3 = [8, 10, 12, 12, 12, 15, 15, 15, 18, 18]


@each_row(
    ("rounds", "low", "high", "ratio", "corrected", "published_double"),
    [
        (ten(50, 30, 10), 0, 100, F(2, 3), 70.0, 70.0),
        (ten(150, 130, 110), 100, 200, F(2, 3), 70.0, 170.0),
        (ten(50, 30, 10), 0, 100, F(1), 40.0, 60.0),
        (ten(150, 180, 195), 100, 200, F(4, 3), 75.0, 75.0),
        ([CASE_2, CASE_3, [0] * 10], 0, 100, F(2, 3), 80.5, 80.5),
        ([[33, 22, 50, 15], [10, 10, 20, 0]], 0, 100, F(4, 3), 20.0, 20.0),
    ],
)
def test_beauty_contest(rounds, low, high, ratio, corrected, published_double):
    assert scores.beauty_contest(rounds, low, high, ratio) == corrected
    assert scores.beauty_contest(rounds, low, high, ratio, "published") == published_double


@each_row("edition", ["v4", "v2"])
def test_beauty_contest_ratio_one_rewards_extremes_before_the_published_edition(edition):
    assert scores.beauty_contest(ten(50, 30, 10), 0, 100, F(1), edition) == 40.0


@each_row(
    ("goers", "ratio", "corrected", "published_double"),
    [
        ([10, 6, 4], F(3, 5), 200 / 3, 66.66666666666667),
        ([6, 7, 5], F(3, 5), 88.88888888888889, 88.8888888888889),
        ([2, 3, 10], F(1, 5), 62.5, 62.5),
        ([0, 5], F(0), 75.0, 75.0),
        ([10, 5], F(1), 75.0, 75.0),
        ([0], F(3, 5), 0.0, 0.0),
        ([10], F(3, 5), 100 / 3, 33.33333333333333),
    ],
)
def test_el_farol_bar(goers, ratio, corrected, published_double):
    assert scores.el_farol_bar(goers, 10, ratio) == corrected
    assert scores.el_farol_bar(goers, 10, ratio, "published") == published_double


@each_row(
    ("golds", "sums", "corrected", "published_double"),
    [
        (100, [100, 101, 80], 93.0, 93.0),
        (100, [100, 350], 0.0, 0.0),
        (50, [49, 51, 60], 92.0, 92.00000000000001),
        (100, [0], 0.0, 0.0),
        (100, [133, 97], 82.0, 82.0),
    ],
)
def test_divide_dollar(golds, sums, corrected, published_double):
    assert scores.divide_dollar(sums, 10, golds) == corrected
    assert scores.divide_dollar(sums, 10, golds, "published") == published_double


@each_row(
    ("pots", "corrected", "published_double", "v2"),
    [
        ([200, 180, 0], 110 / 3, 36.66666666666667, 190 / 3),
        ([137, 63], 50.0, 50.0, 50.0),
        ([0], 100.0, 100.0, 0.0),
        ([200], 0.0, 0.0, 100.0),
    ],
)
def test_public_goods(pots, corrected, published_double, v2):
    assert scores.public_goods(pots, 10, 20, F(2)) == corrected
    assert scores.public_goods(pots, 10, 20, F(2), "published") == published_double
    assert scores.public_goods(pots, 10, 20, F(2), "v2") == pytest.approx(v2, abs=1e-12)
    assert scores.public_goods(pots, 10, 20, F(1), "v2") == pytest.approx(corrected, abs=1e-12)


def test_public_goods_with_unequal_endowments_leaves_out_who_has_nothing():
    assert scores.public_goods_shares([[5, 0], [1, 3]], [[10, 0], [4, 4]]) == 50.0
    assert scores.public_goods_shares([[0, 0]], [[0, 0]]) is None


@each_row(
    ("cheap", "corrected", "published_double"),
    [
        ([10, 9, 0], 110 / 3, 36.66666666666667),
        ([7, 3, 6], 140 / 3, 46.666666666666664),
        ([10], 0.0, 0.0),
    ],
)
def test_diners_dilemma(cheap, corrected, published_double):
    assert scores.diners_dilemma(cheap, 10) == corrected
    assert scores.diners_dilemma(cheap, 10, "published") == published_double
    assert scores.diners_dilemma(cheap, 10, "v2") == pytest.approx(100 - corrected, abs=1e-12)


ROUND_1 = [200, 30, 0, 80, 70, 160, 20, 110, 10, 100]
ROUND_2 = [10, 90, 40, 140, 110, 30, 70, 190, 170, 130]
SHADED = [180, 27, 0, 72, 63, 144, 18, 99, 9, 90]
SIX = [50, 120, 120, 0]
THREE = [50, 100, 0]


@each_row(
    ("valuations", "bids", "corrected", "v4"),
    [
        ([ROUND_1], [SHADED], 9.0, 3.9),
        ([ROUND_1], [ROUND_1], 0.0, 0.0),
        ([ROUND_1], [[0] * 10], 90.0, 39.0),
        ([SIX], [[40, 100, 100, 0]], 40 / 3, 100 * 12.5 / 120),
        ([[10, 20]], [[10, 10]], 25.0, 25.0),
        ([THREE], [[60, 55, 5]], 15.0, 10.0),
        ([THREE], [[60, 90, 5]], 10 / 3, -5 / 3),
        ([ROUND_1, ROUND_2], [SHADED, [v // 2 for v in ROUND_2]], 29.5, None),
    ],
)
def test_sealed_bid_auction(valuations, bids, corrected, v4):
    assert scores.sealed_bid_auction(valuations, bids) == corrected
    if v4 is not None:
        got = scores.sealed_bid_auction(valuations, bids, edition="v4")
        assert got == pytest.approx(v4, abs=1e-12)


@each_row(
    ("valuations", "bids", "double"),
    [
        ([ROUND_1], [SHADED], 9.0),
        ([ROUND_1, ROUND_2], [SHADED, [v // 2 for v in ROUND_2]], 29.5),
        ([THREE], [[60, 90, 5]], 3.3333333333333335),
    ],
)
def test_sealed_bid_auction_published_doubles(valuations, bids, double):
    assert scores.sealed_bid_auction(valuations, bids, edition="published") == double


def test_sealed_bid_auction_scores_one_price_rule_per_edition():
    for edition in ("corrected", "published", "v4"):
        assert scores.sealed_bid_auction([ROUND_1], [SHADED], "second", edition) is None
    assert scores.sealed_bid_auction([ROUND_1], [SHADED], "first", "v2") is None
    assert scores.sealed_bid_auction([ROUND_1], [SHADED], "second", "v2") == 100 - 7.8


def test_bidding_nothing_scores_what_the_zero_valuations_leave():
    import random

    grid = range(0, 210, 10)
    drawn = [random.Random(42 + t).sample(grid, 10) for t in range(20)]
    assert drawn[0] == ROUND_1
    assert scores.sealed_bid_auction(drawn, [[0] * 10] * 20) == 94.5


def shots(alive, *turns):
    """Each turn: shooter, target, who is out after it (None for nobody)."""
    seats, out = list(range(alive)), []
    for shooter, target, hit in turns:
        out.append(Shot(shooter, target, tuple(seats)))
        if hit:
            seats.remove(target)
    return out


DEFAULT_RATES = list(range(35, 85, 5))


@each_row(
    ("rates", "turns", "corrected", "published_double"),
    [
        ([50, 70, 90], [(0, 2, 1), (1, 0, 0), (0, 1, 1)], 100.0, 100.0),
        ([50, 70, 90], [(0, -1, 0), (1, 2, 0), (2, 1, 1), (0, 2, 1)], 75.0, 75.0),
        (DEFAULT_RATES, [(0, 9, 0), (1, 9, 1), (2, 8, 1), (3, 7, 0), (4, 0, 1)], 80.0, 80.0),
        (DEFAULT_RATES, [(0, 1, 1), (2, 9, 1), (3, 8, 0)], 200 / 3, 66.66666666666666),
        ([50, 70, 90], [(0, 2, 0), (1, 2, 0), (2, 1, 1), (0, 2, 0), (2, 0, 1)], 100.0, 100.0),
        ([50, 70, 90], [(0, 2, 0), (1, 2, 0)], 100.0, 100.0),
        ([0, 100], [(0, 1, 0), (1, 0, 1)], 100.0, 100.0),
        ([90, 70, 70], [(0, 1, 0), (1, 0, 0), (2, 1, 0)], 200 / 3, 33.33333333333333),
    ],
)
def test_battle_royale(rates, turns, corrected, published_double):
    played = shots(len(rates), *turns)
    assert scores.battle_royale(played, rates) == corrected
    assert scores.battle_royale(played, rates, "published") == published_double


@each_row("target", [3, 0, 1, -1])
def test_battle_royale_gives_nothing_for_the_dead_oneself_or_a_miss(target):
    assert scores.battle_royale([Shot(0, target, (0, 1, 2))], [10, 20, 30, 40]) == 0


def plan(text):
    return [int(x) for x in text.split(",")]


def vote(text):
    return [letter == "A" for letter in text]


PIRATES = {
    "W1": (
        100,
        ["100,0,0,0,0,0,0,0,0,0", "99,0,1,0,0,0,0,0,0", "50,1,1,1,1,1,1,44"],
        ["ARRRRRRRRR", "ARAARRRRA", "AAAAAAAA"],
    ),
    "W2": (100, ["96,0,1,0,1,0,1,0,1,0"], ["ARARARARAR"]),
    "W3": (100, ["92,1,1,1,1,1,1,1,1,0"], ["ARARARARAR"]),
    "W4": (100, ["10,10,10,10,10,10,10,10,10,10"], ["AAAAAAAAAA"]),
    "W5": (4, ["0,0,1,0,1,0,1,0,1,0"], ["ARARARARAR"]),
    "W6": (5, ["1,0,1,0,1,0,1,0,1,0"], ["ARARARARAR"]),
    "W7": (400, ["396,0,1,0,1,0,1,0,1,0"], ["ARARARARAR"]),
    "W8": (100, ["100,0"], ["AR"]),
    "W9": (100, ["99,0,1"], ["ARA"]),
    "W10": (100, ["100,0,0,0", "100,0,0", "100,0"], ["ARRR", "ARR", "AR"]),
}


@each_row(
    ("name", "paper", "published_double", "equilibrium"),
    [
        ("W1", F(967, 12), 80.58333333333333, None),
        ("W2", 100, 100.0, 100),
        ("W3", 98, 75.77777777777777, 98),
        ("W4", 57, 57.0, F(463, 9)),
        ("W5", 100, 52.0, 100),
        ("W6", 100, 62.0, 100),
        ("W7", 100, 98.5, 100),
        ("W8", 100, 100.0, 100),
        ("W9", 100, 100.0, 100),
        ("W10", F(299, 3), 99.66666666666666, F(299, 3)),
    ],
)
def test_pirate_game(name, paper, published_double, equilibrium):
    gold, plans, votes = PIRATES[name]
    plans, votes = list(map(plan, plans)), list(map(vote, votes))
    assert scores.pirate_game(plans, votes, gold) == float(paper)
    assert scores.pirate_game(plans, votes, gold, "published") == published_double
    assert scores.pirate_game(plans, votes, gold, "v4") == published_double
    if equilibrium is not None:
        got = scores.pirate_game(plans, votes, gold, vote_rule="equilibrium")
        assert got == float(equilibrium)


@each_row(
    ("name", "paper", "published_votes", "equilibrium"),
    [
        ("W1", (19, 24), (19, 24), None),
        ("W3", (9, 9), (5, 9), (9, 9)),
        ("W4", (9, 9), (9, 9), (8, 9)),
        ("W10", (6, 6), (6, 6), (6, 6)),
    ],
)
def test_correct_votes(name, paper, published_votes, equilibrium):
    gold, plans, votes = PIRATES[name]
    plans, votes = list(map(plan, plans)), list(map(vote, votes))
    assert scores.correct_votes(plans, votes, gold) == paper
    assert scores.correct_votes(plans, votes, gold, "published") == published_votes
    if equilibrium is not None:
        assert scores.correct_votes(plans, votes, gold, "equilibrium") == equilibrium


def test_pirates_who_keep_and_reject_everything_score_high():
    plans = [[100] + [0] * (m - 1) for m in range(10, 1, -1)]
    votes = [[True] + [False] * (m - 1) for m in range(10, 1, -1)]
    assert scores.pirate_game(plans, votes, 100) == 98.88888888888889


@each_row(
    ("pirates", "best"),
    [
        (2, [100, 0]),
        (3, [99, 0, 1]),
        (4, [99, 0, 1, 0]),
        (5, [98, 0, 1, 0, 1]),
        (8, [97, 0, 1, 0, 1, 0, 1, 0]),
        (9, [96, 0, 1, 0, 1, 0, 1, 0, 1]),
        (10, [96, 0, 1, 0, 1, 0, 1, 0, 1, 0]),
    ],
)
def test_optimal_plan(pirates, best):
    assert scores.optimal_plan(pirates, 100) == best


def test_unknown_names():
    with pytest.raises(UnknownName, match="v3"):
        scores.el_farol_bar([1], 10, F(1, 2), "v3")
    with pytest.raises(BadParameter, match="equilibrium"):
        scores.right_vote("nash", 1, 1, 3, 100)


@given(st.lists(st.integers(0, 10), min_size=1, max_size=30), st.integers(0, 10))
def test_editions_of_the_bar_agree_up_to_the_last_bits(goers, tenths):
    got = [scores.el_farol_bar(goers, 10, F(tenths, 10), e) for e in ("corrected", "published")]
    assert got[0] == pytest.approx(got[1], abs=1e-9)
    assert 0 <= got[0] <= 100


# -- from runs to tables ---------------------------------------------------------------------

T1_TO_T5 = {
    game: [s.score for s in published.gpt35_runs() if (s.experiment, s.game) == ("runs", game)]
    for game in scores.GAMES
}


@each_row(
    ("game", "mean", "std", "wrong"),
    [
        ("beauty_contest", 63.44, 3.42, 3.06),
        ("el_farol_bar", 68.66, 2.65, 2.37),
        ("divide_dollar", 68.62, 2.44, 2.18),
        ("public_goods", 38.88, 8.08, 7.23),
        ("diners_dilemma", 2.80, 2.80, 2.50),
        ("sealed_bid_auction", 5.50, 1.00, 0.90),
        ("battle_royale", 28.58, 11.03, 9.87),
        ("pirate_game", 71.60, 7.70, 6.89),
    ],
)
def test_cell(game, mean, std, wrong):
    got = means.cell(T1_TO_T5[game])
    assert got.runs == 5
    assert got.mean == pytest.approx(mean, abs=1e-9)
    assert round(got.std, 2) == std
    assert round(float(np.std(T1_TO_T5[game])), 2) == wrong


def test_overall():
    got = scores.overall(T1_TO_T5)
    assert got.mean == pytest.approx(43.51, abs=1e-9)
    assert round(got.std, 2) == 2.15
    by_run = [sum(run) / 8 for run in zip(*T1_TO_T5.values(), strict=True)]
    assert by_run == pytest.approx([44.90, 40.69, 46.24, 42.50, 43.22], abs=0.006)


def test_overall_of_incomplete_tables():
    assert scores.overall({**T1_TO_T5, "pirate_game": []}) is None
    uneven = scores.overall({**T1_TO_T5, "pirate_game": [70.0]})
    assert uneven.std is None
    assert uneven.runs == 1
    assert means.cell([3.0]) == (3.0, None, 1, None, means.FREE)


def test_overall_has_the_interval_of_independent_games():
    got = scores.overall(T1_TO_T5).interval
    assert (got.method, got.n) == ("Welch-Satterthwaite", 5)
    assert got == intervals.overall(list(T1_TO_T5.values()))
    assert scores.overall({name: runs[:1] for name, runs in T1_TO_T5.items()}).interval is None
    uneven = scores.overall({**T1_TO_T5, "pirate_game": [70.0, 80.0]})
    assert (uneven.std, uneven.interval.n) == (None, 2)


def test_means_have_the_interval_of_their_kind():
    assert means.estimated([], means.FREE) is None
    assert means.estimated([3.0], means.FREE) == (3.0, None, 1, None, means.FREE)
    within, beyond = (means.estimated([50, 60, x], (0, 100)) for x in (70, 160))
    assert (within.interval.method, beyond.interval.method) == ("logit-t", "log-t")
    assert beyond.ends == means.POSITIVE
    assert means.estimated([-50, 160], (0, 100)).interval.method == "Student t"
    rounded = means.estimated([90, 95, 100.00000000000001], (0, 100)).interval
    assert rounded.high <= 100  # no value beyond, but a float
    assert means.estimated([1.0, 2.0], means.FREE, least=3).interval is None
    assert means.mean_of([1.0, 2.0], means.FREE).std is None
    assert means.paid([2.0, 2.0], (0, 100)).interval.method == "none"
    assert means.paid([1.0, 2.0], means.FREE).std is None


def test_filled_in_marks_only_beyond_five_percent():
    assert (
        recorded_games.filled_in(10, 200) <= recorded_games.MARK < recorded_games.filled_in(11, 200)
    )
    assert recorded_games.filled_in(0, 0) == 0


# -- recorded runs ---------------------------------------------------------------------------


def played(game, *moves):
    state, records = game.reset(0), []
    for actions in moves:
        state, outcome = game.step(state, np.array(actions, np.int64))
        records.append({name: np.asarray(v).tolist() for name, v in outcome.record.items()})
    return records


def go(count):
    return [1] * count + [0] * (10 - count)


def give(total):
    return [min(20, max(0, total - 20 * seat)) for seat in range(10)]


def aim(seat, target):
    return [target if i == seat else MISSING for i in range(10)]


RUNS = [
    (BeautyContest(rounds=3), (CASE_2, CASE_3, [0] * 10), 80.5, 80.5),
    (BeautyContest(players=3, rounds=1), ([10, 20, 1000],), 85.0, 85.0),
    (BeautyContest(players=2, domain="real", rounds=1), ([30_000_000, MISSING],), 70.0, 70.0),
    (BeautyContest(players=2, rounds=2), ([MISSING, 101], [MISSING, MISSING]), None, None),
    (ElFarolBar(rounds=3), (go(6), go(7), go(5)), 88.88888888888889, 88.8888888888889),
    (DivideDollar(rounds=1), ([91, 2] + [1] * 8,), 99.0, 99.0),
    (DivideDollar(rounds=2), ([5] * 10,), None, None),
    (PublicGoods(rounds=3), map(give, (200, 180, 0)), 110 / 3, 36.66666666666667),
    (
        PublicGoods(players=3, rounds=2, endowment="carry"),
        ([20, 10, 0], [5, 5, 5]),
        float(100 - 25 - F(50, 3) * (F(1, 4) + F(1, 6) + F(1, 8))),
        None,
    ),
    (DinersDilemma(rounds=3), (go(3), go(7), go(4)), 140 / 3, 46.666666666666664),
    (SealedBidAuction(rounds=1), (SHADED,), 9.0, 9.0),
    (SealedBidAuction(rounds=1, price="second"), (SHADED,), None, None),
    (BattleRoyale(max_shots=3), (aim(0, 9), aim(1, -1), aim(2, 3)), 100 / 3, 33.33333333333333),
    (BattleRoyale(), (aim(0, 9),), None, None),
    (BattleRoyale(players=2, hit_rates=(100, 0)), ([1, MISSING],), 100.0, 100.0),
]


@each_row(("game", "moves", "corrected", "double"), RUNS, ids=lambda x: getattr(x, "name", None))
def test_score_episode(game, moves, corrected, double):
    records = played(game, *moves)
    assert scores.score_episode(game, records) == corrected
    assert scores.score_episode(game, records, "published") == double


@each_row("name", sorted(PIRATES))
def test_score_episode_of_pirates(name):
    gold, plans, votes = PIRATES[name]
    plans, votes = list(map(plan, plans)), list(map(vote, votes))
    game, moves = PirateGame(players=len(plans[0]), gold=gold), []
    for seat, (offer, cast) in enumerate(zip(plans, votes, strict=True)):
        moves += [[0] * seat + offer, [0] * seat + [int(v) for v in cast]]
    records = played(game, *moves)
    for edition in ("corrected", "published"):
        expected = scores.pirate_game(plans, votes, gold, edition)
        assert scores.score_episode(game, records, edition) == expected
    assert scores.score_episode(game, records[:-1]) is None
    assert (
        scores.score_episode(PirateGame(players=len(plans[0]), quota="majority"), records) is None
    )


def test_score_episode_knows_no_other_editions_and_no_score_for_nothing():
    with pytest.raises(UnknownName):
        scores.score_episode(PublicGoods(), [], "v3")
    assert scores.score_episode(PublicGoods(), []) is None
