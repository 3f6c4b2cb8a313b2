"""Matrix games: worked cases, tables, slips and sight, equilibria, strategies, and their theory."""

import re
import warnings
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from playing import each_row

import llm_games as lg
from llm_games.baselines.batch_play import play_rules
from llm_games.baselines.games.matrix_game import theory
from llm_games.baselines.memory_one import (
    ALL_C,
    ALL_D,
    EXTORTION,
    TIT_FOR_TAT,
    WIN_STAY_LOSE_SHIFT,
    Memory,
    best_reply,
    generous,
    pair_payoffs,
    subgame_perfect,
)
from llm_games.baselines.mixed_equilibria import mixed_equilibria
from llm_games.baselines.payoff_tables import pure_equilibria
from llm_games.baselines.play_measures import described
from llm_games.baselines.players import make_player
from llm_games.baselines.reasoning_levels import level_mixtures
from llm_games.baselines.regret import deviation, exploitability, rational, welfare
from llm_games.baselines.repeated_dilemma import Dilemma, held_from
from llm_games.questions import MISSING
from llm_games.registry import game_class
from llm_games.view import Sight
from llm_games.words import Prompts

CYCLE = ((0, -1, 1), (1, 0, -1), (-1, 1, 0))
PRESETS = game_class("matrix_game").presets
HALF = Fraction(1, 2)


def rules(**parameters):
    return lg.rules("matrix_game", **parameters)


def levels(game, level):
    return level_mixtures(theory.stage(game), level)


def played(game, moves, **given):
    """Return rewards and states of rounds."""
    state, rewards, states = game.reset(0, given=given), [], []
    for move in moves:
        state, outcome = game.step(state, np.array(move))
        rewards.append(outcome.rewards.tolist())
        states.append(state)
    return rewards, states


def profile(text):
    return [int(c) for c in text]


def pair(one, other, seed=1, **parameters):
    return lg.play("matrix_game", [lg.player(one), lg.player(other)], seed=seed, **parameters)


# -- worked cases ----------------------------------------------------------------------------------


PAID = [
    ({"rounds": 3}, ["00", "01", "11"], {}, [[3, 3], [0, 5], [1, 1]]),
    ({}, [[MISSING, 0]], {}, [[5, 0]]),
    ({"preset": "stag_hunt"}, [[0, MISSING]], {}, [[0, 3]]),
    ({"continuation": "3/4"}, ["00"] * 3, {"last_round": 3}, [[3, 3]] * 3),
    (
        {"noise": "1/8", "rounds": 2},
        ["00", "11"],
        {"slip": [[0, 5], [1, 0]]},
        [[5, 0], [5, 0]],
    ),
    (
        {"preset": "rock_paper_scissors", "noise": "1/10"},
        ["02"],
        {"slip": [[0, 9]], "shift": [[1, 0]]},
        [[0, 0]],
    ),
    ({"preset": "volunteer", "rounds": 2}, ["011", "111"], {}, [[2, 4, 4], [0, 0, 0]]),
]


@each_row(("parameters", "moves", "given", "rewards"), PAID)
def test_worked_cases(parameters, moves, given, rewards):
    moves = [profile(move) if isinstance(move, str) else move for move in moves]
    found, states = played(rules(**parameters), moves, **given)
    assert found == rewards
    assert states[-1].over
    assert not any(state.over for state in states[:-1])


def test_who_sees_wrong_is_paid_for_what_was_played():
    game = rules(noise="1/8", noise_kind="observation", rounds=2)
    slip = np.full((2, 2, 2), 7)
    slip[0, 0] = 7, 0
    rewards, states = played(game, [[0, 0], [1, 0]], slip=slip)
    assert rewards == [[0, 0], [8, 3]]  # in the end, 3 and 3, then 5 and 0
    seen = [[o["label"] for o in game.told(states[0], i)["last"]["others"]] for i in (0, 1)]
    assert seen == [["B"], ["A"]]
    assert "payoff" not in game.column_index
    assert game.told(states[0], 0)["last"]["payoff"] is None


def test_nobody_hears_of_true_actions_where_they_are_seen_wrong():
    game = rules(noise="1/8", noise_kind="observation", rounds=3, history=2)
    wrong = np.full((3, 2, 2), 0)
    right = np.full((3, 2, 2), 7)
    for mine, other in product((0, 1), repeat=2):
        _, (seen, *_) = played(game, [[mine, other]], slip=wrong)
        _, (alike, *_) = played(game, [[mine, 1 - other]], slip=right)
        assert game.told(seen, 0) == game.told(alike, 0)
        assert np.array_equal(game.observe(seen)[0], game.observe(alike)[0])


# -- tables ----------------------------------------------------------------------------------------


def cells(game):
    units = game.table.units
    return [tuple(units[:, i, j]) for i in (0, 1) for j in (0, 1)]


def test_ordinal_games():
    games = [rules(ordinal=number) for number in range(1, 145)]
    tables = [game.table.units for game in games]
    assert cells(games[66]) == [(3, 3), (1, 4), (4, 1), (2, 2)]
    assert cells(games[16]) == [(2, 4), (3, 2), (4, 1), (1, 3)]
    assert all(sorted(seat.ravel()) == [1, 2, 3, 4] for table in tables for seat in table)

    def forms(table):
        """Return a game with its actions exchanged, which stays the same game."""
        flips = [table[:, ::a, ::b] for a in (1, -1) for b in (1, -1)]
        return min(tuple(flip.ravel()) for flip in flips)

    def turned(table):
        return np.stack([table[1].T, table[0].T])

    assert len({forms(table) for table in tables}) == 144
    assert len({min(forms(t), forms(turned(t))) for t in tables}) == 78
    assert sum(forms(t) == forms(turned(t)) for t in tables) == 12
    pure = [pure_equilibria(table) for table in tables]
    assert [[len(found) for found in pure].count(k) for k in (1, 2, 0)] == [108, 18, 18]
    assert [len(mixed_equilibria(t)) for t in tables].count(3) == 18
    dominant = [
        sum((s[0] > s[1]).all() | (s[0] < s[1]).all() for s in (t[0], t[1].T)) for t in tables
    ]
    assert [dominant.count(k) for k in (2, 1)] == [36, 72]
    leave = [
        number
        for number, (table, found) in enumerate(zip(tables, pure, strict=True), 1)
        if len(found) == 1
        and any(
            (table[:, i, j] > table[(slice(None), *found[0])]).all() for i, j in np.ndindex(2, 2)
        )
    ]
    assert leave == [64, 65, 66, 67, 79, 91, 103]
    assert sum((table.sum(axis=0) == 8).any() for table in tables) == 36
    zero = [n for n, table in enumerate(tables, 1) if len(set(table.sum(axis=0).ravel())) == 1]
    assert zero == [29, 42, 55, 68, 81, 94]
    known = {12: "chicken", 67: "prisoners_dilemma", 78: "stag_hunt"}
    for number, name in known.items():
        order = [np.argsort(np.argsort(seat.ravel())) for seat in rules(preset=name).table.units]
        mine = [np.argsort(np.argsort(seat.ravel())) for seat in tables[number - 1]]
        assert np.array_equal(order, mine) or name == "stag_hunt"


EQUILIBRIA = {
    "prisoners_dilemma": "11",
    "stag_hunt": "00 11 3/4,3/4",
    "chicken": "01 10 1/2,1/2",
    "battle_of_the_sexes": "00 11 2/3,1/3",
    "matching_pennies": "1/2,1/2",
    "rock_paper_scissors": "1/3,1/3",
    "akata_pd": "11",
    "akata_bos": "00 11 10/17,7/17",
    "goeree_holt_320": "1/2,1/8",
    "goeree_holt_44": "1/2,10/11",
    "goeree_holt_80": "1/2,1/2",
    **{name: "11" for name in PRESETS if name.startswith(("dal_bo", "fudenberg"))},
}


@each_row(("name", "wanted"), EQUILIBRIA.items())
def test_presets_have_the_equilibria_that_are_known(name, wanted):
    game = rules(preset=name, noise=0)
    found = mixed_equilibria(game.table.units)
    pure = [x for x in wanted.split() if "," not in x]
    assert ["".join(str(m.index(1)) for m in p) for p in found if 1 in p[0]] == pure
    mixed = [x for x in wanted.split() if "," in x]
    assert [f"{p[0][0]},{p[1][0]}" for p in found if 1 not in p[0]] == mixed


def test_exactly_one_volunteers():
    game = rules(preset="volunteer")
    assert theory.equilibria(game) == ((0, 1, 1),)
    regrets = {
        p: deviation(game, {"actions": np.array(p)}).regret for p in product((0, 1), repeat=3)
    }
    stable = [profile for profile, regret in regrets.items() if not regret.any()]
    assert stable == [(0, 1, 1), (1, 0, 1), (1, 1, 0)]
    episode = lg.play(game, [lg.player("rational")] * 3, seed=1)
    assert episode.payoffs.tolist() == [2, 4, 4]


@each_row("number", range(1, 145))
def test_all_equilibria_of_ordinal_games_are_those_of_nashpy(number):
    nashpy = pytest.importorskip("nashpy")
    table = rules(ordinal=number).table.units
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = sorted(
            [*map(float, np.round([*x, *y], 9))]
            for x, y in nashpy.Game(*table).support_enumeration()
        )
    assert sorted([float(p) for m in q for p in m] for q in mixed_equilibria(table)) == theirs


@each_row("name", [*EQUILIBRIA, *(str(number) for number in range(1, 145))])
def test_all_equilibria_are_those_of_gambit(name):
    gambit = pytest.importorskip("pygambit")
    game = rules(ordinal=int(name)) if name.isdigit() else rules(preset=name, noise=0)
    table = game.table.units
    solved = gambit.nash.enummixed_solve(gambit.Game.from_arrays(*table))
    theirs = {
        tuple(tuple(Fraction(str(p)) for _, p in mixed) for _, mixed in p.mixed_strategies())
        for p in solved.equilibria
    }
    assert set(mixed_equilibria(table)) == theirs


PRESET_OF = {
    "matrix_pd": "prisoners_dilemma",
    "matrix_sh": "stag_hunt",
    "matrix_cd": "chicken",
    "matrix_bos": "battle_of_the_sexes",
}


def test_open_spiels_tables_are_other_numbers_of_the_same_rules():
    pyspiel = pytest.importorskip("pyspiel")
    tables = {
        "matrix_pd": ((5, 0), (10, 1)),
        "matrix_sh": ((2, 0), (1, 1)),
        "matrix_cd": ((0, 4), (1, 3)),
        "matrix_bos": (((3, 2), (0, 0)), ((0, 0), (2, 3))),
    }
    for name, table in tables.items():
        theirs, ours = pyspiel.load_matrix_game(name), rules(payoffs=table)
        assert cells(ours) != cells(rules(preset=PRESET_OF[name]))
        for i, j in product(range(2), repeat=2):
            cell = [theirs.row_utility(i, j), theirs.col_utility(i, j)]
            assert played(ours, [[i, j]])[0][0] == cell


@each_row("seed", range(200))
def test_rational_play_leaves_nobody_a_gain(seed):
    """Of drawn tables of up to three players, with slips and without."""
    draws = np.random.default_rng(seed)
    actions = draws.integers(2, 4, draws.integers(2, 4))
    table = draws.integers(-3, 4, (*actions, len(actions)))
    noise = ["0", "1/8", "1/3"][seed % 3]
    game = rules(players=len(actions), payoffs=table.tolist(), noise=noise)
    if rational(game).kind == "heuristic":
        assert len(actions) > 2
        return
    profile, mixtures = theory.selected(game), None
    if profile is None:
        mixtures = theory.mixed(game)
    else:
        mixtures = [
            [Fraction(k == a) for k in range(n)] for a, n in zip(profile, actions, strict=True)
        ]
    for seat in range(len(actions)):
        earned = theory.stage(game).earned(seat, mixtures)
        own = sum(p * e for p, e in zip(mixtures[seat], earned, strict=True))
        assert own == max(earned)


def test_slips_change_the_stage():
    game = rules(preset="fudenberg_rand_dreber_4")
    units, unit = theory.stage(game).numbers, theory.stage(game).unit
    q = Fraction(1, 8)
    both = (1 - q) ** 2 * 6 + q * (1 - q) * (8 - 2) + 0
    assert Fraction(units[0][0, 0], unit) == both
    assert theory.equilibria(game) == ((1, 1),)


# -- how rational play chooses, and other rules for any table --------------------------------------


@each_row(
    ("name", "moves"),
    [
        ("prisoners_dilemma", "11"),
        ("stag_hunt", "00"),
        ("chicken", "01"),
        ("battle_of_the_sexes", "00"),
        ("akata_bos", "00"),
    ],
)
def test_rational_chooses_one_of_several(name, moves):
    assert theory.selected(rules(preset=name)) == tuple(profile(moves))


def test_rational_takes_less_risk_where_not_all_prefer_one():
    game = rules(payoffs=(((5, 1), (0, 0)), ((0, 0), (4, 4))))
    assert theory.selected(game) == (1, 1)  # 16 against 5
    stag = rules(preset="stag_hunt")  # both prefer 4, though fear says the other
    assert theory.selected(stag) == (0, 0)


def test_rules_for_any_table():
    bos = rules(preset="akata_bos")
    episode = lg.play(bos, [lg.player("turn_taking")] * 2, seed=1)
    assert episode.payoffs.tolist() == [85, 85]
    episode = lg.play(bos, [lg.player("fictitious_play"), lg.player("fixed:B")], seed=1)
    moves = [step.outcome.record["actions"][0] for step in episode.steps]
    assert moves == [0, *[1] * 9]
    assert [m[0] for m in levels(rules(preset="stag_hunt"), 1)] == [0, 0]
    even = rules(payoffs=CYCLE)
    assert levels(even, 0)[0] == (Fraction(1, 3),) * 3
    assert levels(even, 999) == levels(even, 3)  # it goes round in circles
    lonely = lg.play(even, [lg.player("logit:1/2"), lg.player("uniform")], seed=3)
    assert lonely.payoffs.sum() == 0
    games = [
        lg.play(even, [lg.player("rational"), lg.player("best_response")], seed=s)
        for s in range(30)
    ]
    assert {int(g.steps[0].outcome.record["actions"][0]) for g in games} == {0, 1, 2}


def test_many_players_by_count():
    game = rules(players=1000, by_count=((2,) * 1000, (0, *(4,) * 999)), rounds=2)
    episode = lg.play(game, [lg.player("best_response")] * 1000, seed=1)
    first, second = (step.outcome.record["actions"] for step in episode.steps)
    assert first.tolist() == [0] + [1] * 999  # as rational
    assert second[1:].tolist() == [1] * 999
    assert deviation(game, episode.steps[0].outcome.record).distance == 0
    found = welfare(game, {"actions": np.array(first)[:, None]})
    assert (found.total, found.lowest, found.highest) == (2 + 999 * 4,) * 3


# -- strategies ------------------------------------------------------------------------------------

STRATEGIES = {
    "all_c": "Cooperator",
    "all_d": "Defector",
    "alternator": "Alternator",
    "tit_for_tat": "TitForTat",
    "suspicious_tit_for_tat": "SuspiciousTitForTat",
    "tit_for_two_tats": "TitFor2Tats",
    "two_tits_for_tat": "TwoTitsForTat",
    "grim": "Grudger",
    "win_stay_lose_shift": "WinStayLoseShift",
    "bully": "Bully",
    "hard_tit_for_tat": "HardTitForTat",
}
TOTALS = """
30 0 15 30 27 30 30 30 30 0 30
50 10 30 14 10 18 14 14 30 46 14
40 5 20 28 25 40 12 12 26 17 12
30 9 23 30 25 30 30 30 30 19 30
32 10 25 25 10 32 13 13 23 24 13
30 8 15 30 27 30 30 30 30 18 30
30 9 27 30 13 30 30 30 30 28 30
30 9 27 30 13 30 30 30 30 41 30
30 5 21 30 18 30 30 30 30 12 30
50 1 22 24 19 28 18 6 32 20 15
30 9 27 30 13 30 30 30 30 30 30
"""


def test_totals_of_strategies():
    totals = [[*map(int, line.split())] for line in TOTALS.split("\n") if line]
    found = [[pair(a, b, rounds=10).payoffs[0] for b in STRATEGIES] for a in STRATEGIES]
    assert found == totals


@each_row("rounds", [10, 37])
def test_axelrods_strategies_make_the_same_moves(rounds):
    axelrod = pytest.importorskip("axelrod")
    names = dict(zip((axelrod.Action.C, axelrod.Action.D), (0, 1), strict=True))
    for one, other in product(STRATEGIES, repeat=2):
        players = [getattr(axelrod, STRATEGIES[name])() for name in (one, other)]
        theirs = axelrod.Match(players, turns=rounds).play()
        ours = [s.outcome.record["actions"].tolist() for s in pair(one, other, rounds=rounds).steps]
        assert ours == [[names[action] for action in moves] for moves in theirs], (one, other)


def many(one, other, tables, **parameters):
    """Return the actions of many tables, ``(2, tables, rounds)``, and the totals."""
    found = play_rules(rules(**parameters), [one, other], range(tables))
    return np.moveaxis([record["actions"] for record in found.records], 0, -1), found.payoffs


def test_a_trigger_of_two_rounds_punishes_twice_whatever_comes_meanwhile():
    (own, other), _ = many("two_round_trigger", "alternator", 1, rounds=10)
    assert other.tolist() == [[0, 1] * 5]
    assert own.tolist() == [[0, 0, 1, 1, 0, 0, 1, 1, 0, 0]]
    (own, _), _ = many("two_round_trigger", "all_d", 1, rounds=7)
    assert own.tolist() == [[0, 1, 1, 0, 1, 1, 0]]


def test_rules_of_memory_one_by_name():
    name = "memory_one:1,0.9,0.2,0.7,0.4"
    (own, other), _ = many(name, name, 200, rounds=30)
    state = 2 * own[:, :-1] + other[:, :-1]
    rates = [(own[:, 1:][state == k] == 0).mean() for k in range(4)]
    assert np.allclose(rates, [0.9, 0.2, 0.7, 0.4], atol=0.04)
    (own, other), _ = many("generous", "alternator", 200, rounds=20)
    assert abs((own[:, 1:][other[:, :-1] == 1] == 0).mean() - 1 / 3) < 0.04
    (own, other), _ = many("generous:1", "alternator", 5, rounds=20)
    assert (own == 0).all()
    (own, other), _ = many("zd_extort:2", "random", 300, rounds=20)
    state = 2 * own[:, :-1] + other[:, :-1]
    rates = [(own[:, 1:][state == k] == 0).mean() for k in range(4)]
    assert np.allclose(rates, [8 / 9, 1 / 2, 1 / 3, 0], atol=0.05)


@each_row(
    ("name", "parameters", "words"),
    [
        ("tit_for_tat", {"payoffs": CYCLE}, "two players of two actions"),
        ("grim", {"reveal": "payoff"}, "two players of two actions"),
        ("best_response", {"reveal": "nothing"}, "reveal must be actions"),
        ("zd_extort:2", {"preset": "stag_hunt"}, "payoffs 3 0; 5 1 alone"),
        ("generous", {"preset": "stag_hunt"}, "prisoner's dilemma"),
        ("zd_extort:5", {}, "takes 2 or 3"),
        ("memory_one:1,0", {}, "five chances"),
        ("generous:2", {}, "chances from 0 to 1"),
        ("logit:-1", {}, "rate of at least 0"),
        ("logit:50", {"preset": "goeree_holt_320"}, "does not settle"),
        ("logit:1", {"by_count": ((1, 2), (0, 3))}, "tables of up to 6 players"),
        ("fictitious_play", {"by_count": ((1, 2), (0, 3))}, "tables of up to 6 players"),
        ("fixed:C", {}, "a label of an action, or its number"),
    ],
)
def test_players_say_what_they_need(name, parameters, words):
    """As soon as they are seated, before a move."""
    with pytest.raises(lg.BadParameter, match=words):
        make_player(name, rules(**parameters))
    with pytest.raises(lg.BadParameter, match=words):
        lg.play("matrix_game", [lg.player(name), lg.player("random")], seed=1, **parameters)


def test_strategies_see_what_is_seen():
    """A wrong sight makes grim defect though the other never did."""
    game = rules(noise="1/8", noise_kind="observation", rounds=3)
    slip = np.full((3, 2, 2), 7)
    slip[0, 0, 1] = 0
    episode = lg.play(game, [lg.player("grim"), lg.player("all_c")], seed=1, given={"slip": slip})
    assert [step.outcome.record["actions"][0] for step in episode.steps] == [0, 1, 1]


def test_replies_are_to_what_was_played_and_only_the_own_choice_slips():
    """Against a chosen 0, which slips, 1 is best, against a played 0 it is not."""
    table = (((1, 0), (0, 0)), ((0, 0), (4, 0)))
    game = rules(payoffs=table, noise="1/4", rounds=2)
    slip, shift = np.full((2, 2), 3), np.zeros((2, 2), int)
    assert theory.stage(game).rows(0).argmax(axis=0).tolist() == [1, 1]
    for name in ("best_response", "fictitious_play"):
        players = [lg.player(name), lg.player("fixed:A")]
        episode = lg.play(game, players, seed=1, given={"slip": slip, "shift": shift})
        assert episode.steps[1].outcome.record["actions"][0] == 0


def test_indexes_are_actions_where_seats_have_other_numbers_of_them():
    table = [[[10 * row + column, -row] for column in range(2)] for row in range(3)]
    env = lg.make("matrix_game-v0", form="parallel", payoffs=table, obs_mode="numeric")
    for row, column in np.ndindex(3, 2):
        observations, _ = env.reset(seed=1)
        assert observations["player_1"]["action_mask"].tolist() == [1, 1, 0]
        _, rewards, *_ = env.step({"player_0": row, "player_1": column})
        assert rewards == {"player_0": 10 * row + column, "player_1": -row}


def test_who_is_told_nothing_remembers_nothing():
    game = rules(reveal="nothing", noise="1/8", rounds=3)
    assert [column.name for column in game.columns()] == ["round"]
    assert not game.recalled()
    for name, moves in (("all_c", [0, 0, 0]), ("all_d", [1, 1, 1]), ("alternator", [0, 1, 0])):
        episode = lg.play(game, [lg.player(name), lg.player("random")], seed=1)
        assert [step.outcome.record["actions"][0] for step in episode.steps] == moves


# -- the dilemma repeated --------------------------------------------------------------------------

TREATMENTS = [
    ("1/2", 32, "18/25", "31/38", "1"),
    ("1/2", 40, "2/5", "23/38", "13/18"),
    ("1/2", 48, "2/25", "15/38", "13/34"),
    ("3/4", 32, "18/25", "31/38", "13/16"),
    ("3/4", 40, "2/5", "23/38", "13/48"),
    ("3/4", 48, "2/25", "15/38", "13/80"),
]


@each_row(("chance", "good", "grim", "risk", "basin"), TREATMENTS)
def test_what_keeps_cooperation_up(chance, good, grim, risk, basin):
    game = rules(preset=f"dal_bo_frechette_{chance}_{good}")
    dilemma = Dilemma.of(game.table.exact)
    assert dilemma.grim_holds_from == Fraction(grim)
    assert dilemma.risk_dominant_from == Fraction(risk)
    assert dilemma.defection_basin(game.continuation) == Fraction(basin)
    assert held_from(game.table.exact, (0, 0), (1, 1)) == Fraction(grim)
    half = dilemma.defection_basin(dilemma.risk_dominant_from)
    assert half == HALF


def test_thresholds_are_where_deviations_stop_paying():
    dilemma = Dilemma.of(rules().table.exact)
    assert dilemma.generosity == Fraction(1, 3)
    assert (dilemma.grim_holds_from, dilemma.win_stay_holds_from) == (HALF, 1)
    assert dilemma.tit_for_tat_holds_from == Fraction(2, 3)
    game, near = rules(), Fraction(1, 1000)
    for delta, holds in ((Fraction(2, 3), True), (Fraction(2, 3) - near, False)):
        own = pair_payoffs(game.table.exact, TIT_FOR_TAT, TIT_FOR_TAT, delta)[0]
        assert (best_reply(game.table.exact, TIT_FOR_TAT, delta)[1] <= own) == holds
    assert held_from(rules(preset="stag_hunt").table.exact, (1, 0), (0, 0)) is None
    with pytest.raises(lg.BadParameter, match="stage must be a pure equilibrium"):
        held_from(game.table.exact, (1, 1), (0, 0))
    with pytest.raises(lg.BadParameter, match="prisoner's dilemma"):
        Dilemma.of(rules(preset="chicken").table.exact)


PERFECT = [
    ("prisoners_dilemma", "1/2", "1000 0000"),
    ("prisoners_dilemma", "9/10", "1000 0000"),
    ("dal_bo_frechette_3/4_40", "3/4", "1001 1000 0000"),
    ("dal_bo_frechette_1/2_48", "1/2", "1001 1000 0000"),
    ("dal_bo_frechette_3/4_32", "3/4", "1000 0000"),
    ("fudenberg_rand_dreber_4", "7/8", "1001 1000 0000"),
    ("fudenberg_rand_dreber_3/2", "7/8", "1000 0000"),
]


@each_row(("name", "chance", "wanted"), PERFECT)
def test_memory_one_rules_that_are_subgame_perfect(name, chance, wanted):
    found = subgame_perfect(rules(preset=name).table.exact, Fraction(chance))
    assert ["".join(str(int(p)) for p in rule[1:]) for rule in found] == wanted.split()


PAIRS = [
    (TIT_FOR_TAT, ALL_D, "9/10 7/5"),
    (WIN_STAY_LOSE_SHIFT, ALL_D, "9/19 59/19"),
    (EXTORTION[2], ALL_C, "17/5 12/5"),
    (EXTORTION[2], TIT_FOR_TAT, "739/319 669/319"),
    (EXTORTION[2], WIN_STAY_LOSE_SHIFT, "716/263 591/263"),
    (generous(Fraction(1, 3)), ALL_D, "3/5 13/5"),
    (Memory.of(("1/2",) * 5), TIT_FOR_TAT, "97/40 87/40"),
]


@each_row(("one", "other", "wanted"), PAIRS)
def test_payoffs_of_memory_one_pairs(one, other, wanted):
    game, delta = rules(), Fraction(9, 10)
    found = pair_payoffs(game.table.exact, one, other, delta)
    assert found == tuple(map(Fraction, wanted.split()))
    assert pair_payoffs(game.table.exact, other, one, delta) == found[::-1]


def test_payoffs_of_memory_one_pairs_are_those_of_play():
    """Totals of an open end estimate 1 / (1 - c) rounds."""
    rule = ["1", "8/9", "1/2", "1/3", "0"]
    names = [f"memory_one:{','.join(rule)}", "win_stay_lose_shift"]
    _, totals = many(*names, 3000, continuation="9/10")
    means, error = totals.mean(axis=1) / 10, totals.std(axis=1) / 10 / 3000**0.5
    exact = pair_payoffs(rules().table.exact, EXTORTION[2], WIN_STAY_LOSE_SHIFT, Fraction(9, 10))
    assert (np.abs(means - [*map(float, exact)]) < 4 * error).all()


REPLIES = [
    (TIT_FOR_TAT, "9/10", "11", "3"),
    (TIT_FOR_TAT, "1/2", "01", "10/3"),
    (TIT_FOR_TAT, "1/4", "00", "4"),
    (WIN_STAY_LOSE_SHIFT, "9/10", "00", "59/19"),
    (EXTORTION[2], "9/10", "11", "12/5"),
    (generous(Fraction(1, 3)), "9/10", "01", "59/19"),
]


@each_row(("other", "chance", "first", "paid"), REPLIES)
def test_best_replies_to_memory_one_rules(other, chance, first, paid):
    """Their first two moves, C as 1, against a rule that cooperates first."""
    rule, value = best_reply(rules().table.exact, other, Fraction(chance))
    second = rule.cc if rule.first else rule.dc
    assert f"{int(rule.first)}{int(second)}" == first
    assert value == Fraction(paid)


# -- how play is described -------------------------------------------------------------------------


def test_how_play_is_described():
    game = rules(preset="akata_bos", rounds=4)
    steps = {"actions": np.array([[0, 1, 0, 1], [0, 1, 0, 0]])}
    of_bos = described(game, [steps])
    assert (of_bos["coordination"], of_bos["alternation"]) == (3 / 4, 2 / 3)
    assert (of_bos["in a pure equilibrium"], of_bos["mean payoff"]) == (3 / 4, 51 / 8)
    assert (of_bos["action 0 of seat 0"], of_bos["action 1 of seat 1"]) == (1 / 2, 1 / 4)
    of_dilemma = described(rules(rounds=4), [steps])
    assert (of_dilemma["cooperation"], of_dilemma["cooperation in round 1"]) == (5 / 8, 1)
    assert of_dilemma["cooperation in the last round"] == 1 / 2
    assert of_dilemma["mutual cooperation"] == 1 / 2
    assert of_dilemma["C after CC"] == 1 / 4
    assert np.isnan(of_dilemma["C after CD"])
    assert "cooperation in round 1" not in described(rules(), [])
    found = welfare(game, steps)
    assert (found.total, found.best, found.lowest) == (51, 68, 68)
    step = {"actions": np.array([[0, 1], [1, 0]])}
    assert deviation(game, step).distance.tolist() == [0.5, 0.5]
    assert deviation(game, step).regret.tolist() == [[7, 10], [7, 10]]
    assert exploitability(rules(), {"actions": np.array([[0, 0], [1, 1]])}).tolist() == [2, 0]
    assert np.isnan(deviation(rules(payoffs=CYCLE), {"actions": np.array([[0], [1]])}).distance)


def test_words_are_neutral_and_tell_no_cap():
    game = rules(preset="fudenberg_rand_dreber_4", history=2)
    state, _ = game.step(game.reset(1), np.array([0, 1]))
    for version in ("v1", "v2", "v3", "v4", "v5"):
        words = Prompts("matrix_game", version)
        view = Sight(game, state).view(0)
        text = f"{words.rules(game, 0)}\n{words.report(view)}\n{words.request(view)}"
        assert "156" not in text
        for word in ("cooperat", "defect", "trust", "rational", "prisoner", "level", "dilemma"):
            assert word not in text.lower()


@each_row("version", ["v1", "v2", "v3", "v4", "v5"])
def test_slips_are_shown_only_where_actions_are(version):
    shown = re.compile("is seen|Everybody sees|is shown|visible|public")
    for reveal in ("actions", "payoff", "nothing"):
        text = Prompts("matrix_game", version).rules(rules(noise="1/8", reveal=reveal), 0)
        assert bool(shown.search(text)) == (reveal == "actions")


def test_labels_and_orders_are_drawn_by_seat_and_game():
    game = rules(payoffs=CYCLE, labels="drawn", order="drawn")
    menus = [
        game.told(game.reset(seed), seat)["scenes"][seat]["menu"]
        for seed in range(20)
        for seat in (0, 1)
    ]
    assert len({frozenset(menu) for menu in menus}) == 20
    assert any(set(a) == set(b) and a != b for a, b in zip(menus[::2], menus[1::2], strict=True))
    state = game.reset(5)
    question = game.asks(state, 1)
    assert [question.read(word.upper()) for word in question.words] == [*question.words.values()]
    assert sorted(question.words.values()) == [0, 1, 2]


@each_row("name", [n for n in PRESETS if not rules(preset=n).seats_differ and n != "volunteer"])
def test_exchanged_seats_exchange_payoffs(name):
    game = rules(preset=name, noise=0)
    for move in product(range(game.actions[0]), repeat=2):
        assert played(game, [move])[0][0] == played(game, [move[::-1]])[0][0][::-1]


def test_seats_differ_where_payoffs_do():
    assert rules(preset="battle_of_the_sexes").seats_differ
    assert not rules(preset="volunteer").seats_differ
    three = np.zeros((2, 2, 2, 3), int)
    three[0, 1, 1] = three[1, 0, 1] = three[1, 1, 0] = 1
    assert not rules(players=3, payoffs=three.tolist()).seats_differ
    three[0, 1, 1] = 2
    assert rules(players=3, payoffs=three.tolist()).seats_differ
