"""Tables of the classic games as literature has them: presets, ordinal games, people's figures.

Cases worked through by hand, equilibria and levels are in the tests of each game.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from playing import each_row

import llm_games as lg
from llm_games.baselines.games.bargaining import theory as bargains
from llm_games.baselines.memory_one import EXTORTION, generous, subgame_perfect
from llm_games.baselines.people_data import people
from llm_games.baselines.repeated_dilemma import Dilemma
from llm_games.replies import read_reply

# -- matrix games ----------------------------------------------------------------------------------

TABLES = {  # rows of seat 0, and of seat 1 where it is not the same from its side
    "prisoners_dilemma": "3 0; 5 1",
    "stag_hunt": "4 0; 3 3",
    "chicken": "3 1; 4 0",
    "battle_of_the_sexes": "2 0; 0 1 | 1 0; 0 2",
    "matching_pennies": "1 -1; -1 1 | -1 1; 1 -1",
    "rock_paper_scissors": "0 -1 1; 1 0 -1; -1 1 0",
    **{f"dal_bo_frechette_{c}_{r}": f"{r} 12; 50 25" for c in ("1/2", "3/4") for r in (32, 40, 48)},
    "fudenberg_rand_dreber_3/2": "1 -2; 3 0",
    "fudenberg_rand_dreber_2": "2 -2; 4 0",
    "fudenberg_rand_dreber_5/2": "3 -2; 5 0",
    "fudenberg_rand_dreber_4": "6 -2; 8 0",
    "akata_pd": "8 0; 10 5",
    "akata_bos": "10 0; 0 7 | 7 0; 0 10",
    "goeree_holt_320": "320 40; 40 80 | 40 80; 80 40",
    "goeree_holt_44": "44 40; 40 80 | 40 80; 80 40",
    "goeree_holt_80": "80 40; 40 80 | 40 80; 80 40",
}


def numbers(text):
    return np.array([[*map(int, row.split())] for row in text.split(";")])


def paid(game):
    """Return what is paid of two seats' actions, through `step` alone, ``(2, *actions)``."""
    profiles = np.array([*product(*map(range, game.actions))]).T
    state = game.reset(0, (profiles.shape[1],))
    return game.step(state, profiles)[1].rewards.reshape(2, *game.actions)


def test_presets_of_matrix_games_are_all_here():
    assert {*lg.registry.game_class("matrix_game").presets} == {*TABLES, "volunteer"}


@each_row(("name", "table"), TABLES.items())
def test_presets_pay_what_is_published(name, table):
    mine, _, other = table.partition("|")
    expected = [numbers(mine), numbers(other) if other else numbers(mine).T]
    game = lg.rules("matrix_game", preset=name)
    assert np.array_equal(
        paid(lg.rules("matrix_game", preset=name, noise=0, rounds=None)), expected
    )
    noise, end, length = 0, Fraction(1), 1
    if name.startswith("dal_bo"):
        end, length = Fraction(name.split("_")[3]), {"1/2": 30, "3/4": 73}[name.split("_")[3]]
    if name.startswith("fudenberg"):
        noise, end, length = Fraction(1, 8), Fraction(7, 8), 156
    if name.startswith("akata"):
        length = 10
    assert (game.noise, game.continuation, game.rounds) == (noise, end, length)


STRUCTURES = [
    "3241",
    "2341",
    "1342",
    "1243",
    "2143",
    "3142",
    "4132",
    "4123",
    "4213",
    "4312",
    "4321",
    "4231",
]
SYMMETRIC = {
    12: "chicken",
    23: "battle of the sexes",
    34: "hero",
    45: "",
    56: "deadlock",
    67: "prisoner's dilemma",
    78: "stag hunt",
    89: "assurance",
    100: "coordination",
    111: "",
    122: "",
    133: "no conflict",
}
"""Ordinal games that are the same from both seats, and how they are known."""


@each_row("number", range(1, 145))
def test_ordinal_games_are_made_of_twelve_structures(number):
    row, column = 1 + (number - 1) // 12, 1 + (number - 1) % 12
    own, other = (
        np.array([*map(int, STRUCTURES[k - 1])]).reshape(2, 2) for k in (row, 13 - column)
    )
    assert np.array_equal(paid(lg.rules("matrix_game", ordinal=number)), [own, other.T])
    assert (row + column == 13) == np.array_equal(own, other) == (number in SYMMETRIC)


THRESHOLDS = {  # a rule after CC, CD, DC, DD, and from when on it is subgame perfect with itself
    "1000": lambda d: d.grim_holds_from,
    "1001": lambda d: d.win_stay_holds_from,
}


@each_row(
    "name", ["prisoners_dilemma", "dal_bo_frechette_1/2_40", "fudenberg_rand_dreber_4", "akata_pd"]
)
def test_thresholds_are_those_of_brute_force(name):
    """Over the 16 rules that remember a round; tit for tat is perfect at no chance but one."""
    table = lg.rules("matrix_game", preset=name).table.exact
    for rule, threshold in THRESHOLDS.items():
        least = threshold(Dilemma.of(table))
        for chance in (least - Fraction(1, 1000), least, least + Fraction(1, 1000)):
            if 0 < chance < 1:
                found = subgame_perfect(table, chance)
                rules = ["".join(str(int(p)) for p in memory[1:]) for memory in found]
                assert (rule in rules) == (chance >= least)
                assert chance == least or "1010" not in rules


def test_extortion_takes_its_share():
    """A rule that enforces ``own - 1 = factor * (other - 1)`` at 3 0; 5 1, whatever the other."""
    assert EXTORTION[2][1:] == tuple(map(Fraction, ("8/9", "1/2", "1/3", "0")))
    assert EXTORTION[3][1:] == tuple(map(Fraction, ("11/13", "1/2", "7/26", "0")))
    own, other = np.array([3, 0, 5, 1]), np.array([3, 5, 0, 1])
    for factor, rule in EXTORTION.items():
        change = np.array(rule[1:], float) - [1, 1, 0, 0]
        line = own - 1 - factor * (other - 1)
        assert np.allclose(change * line[1], line * change[1])


def test_axelrods_rules_of_chance_have_the_same_chances():
    axelrod = pytest.importorskip("axelrod")
    pairs = [*product((axelrod.Action.C, axelrod.Action.D), repeat=2)]
    for theirs, ours in (("ZDExtort2", EXTORTION[2]), ("ZDExtort3", EXTORTION[3])):
        found = getattr(axelrod, theirs)()._four_vector
        assert np.allclose([found[pair] for pair in pairs], [*map(float, ours[1:])])
    match = axelrod.Match([axelrod.GTFT(), axelrod.Alternator()], turns=3)
    match.play()
    assert match.players[0].p == pytest.approx(float(generous(Fraction(1, 3)).cd))


# -- players of bargaining and deal or no deal -----------------------------------------------------


@each_row(
    ("responder", "least"),
    [("equal", 12), ("threshold:3/10", 8), ("selfish_responder", 1), ("rational", 0)],
)
def test_what_responders_accept(responder, least):
    game = lg.rules("bargaining", pie=25)
    for offer in range(26):
        episode = lg.play(game, [lg.player(f"fixed:{offer}"), lg.player(responder)])
        assert bool(episode.payoffs.any()) == (offer >= least), offer


@each_row(
    ("proposer", "offer"),
    [("equal", 12), ("threshold:3/10", 8), ("rational", 0), ("best_to_people", 13)],
)
def test_what_proposers_offer(proposer, offer):
    episode = lg.play("bargaining", [lg.player(proposer), lg.player("random")], pie=25)
    assert episode.steps[0].outcome.record["offer"] == offer


def test_the_rational_offer_nothing_where_all_would_be_refused():
    strict = bargains.solution(lg.rules("bargaining", periods=2), 0, "reject")[0]
    assert (strict.offer, strict.payoffs) == (0, (1, 99))


def test_people_accept_in_proportion_between_what_was_asked():
    rates = bargains.acceptance(100)
    assert rates[0] == 0
    assert rates[5] == pytest.approx(0.1325 + (0.1857 - 0.1325) * 4 / 9, abs=1e-3)
    assert rates[70] <= rates[100] <= 1


@each_row(("player", "least"), [("greedy", 8), ("fair", 5), ("accepts_all", 0), ("conceder:1", 10)])
def test_what_partners_accept(player, least):
    scenario = [[1, 4, 1], [4, 1, 2], [0, 2, 2]]
    game = lg.rules("deal_or_no_deal", scenario=scenario, moves=2)
    for taken in product(range(2), range(5), range(2)):
        left = np.array(scenario[0]) - taken
        fixed = lg.player(f"fixed:{'-'.join(map(str, taken))}", game)
        episode = lg.play(game, [fixed, lg.player(player, game)])
        answer = episode.steps[1].outcome.record["actions"].max()
        assert (answer == game.accept) == (left @ scenario[2] >= least), taken


# -- people ----------------------------------------------------------------------------------------

COOPERATION = {"1/2": "6.0 8.1 21.9 21.1 45.9 40.1", "3/4": "28.5 24.3 65.9 69.4 97.6 94.1"}
SHARES = {
    "1/2_32": ".92 0 0 .08 0 0",
    "1/2_40": ".78 .08 .04 .10 0 0",
    "1/2_48": ".53 .07 0 .38 .02 0",
    "3/4_32": ".65 0 0 .35 0 0",
    "3/4_40": ".11 .30 .27 .33 0 0",
    "3/4_48": "0 .08 .12 .56 0 .24",
}
RULES = ["all_d", "all_c", "grim", "tit_for_tat", "win_stay_lose_shift", "two_round_trigger"]
NOISY = {"3/2": (53.8, 32.0), "2": (75.5, 49.1), "5/2": (78.5, 60.7), "4": (75.6, 58.6)}
REQUESTS = {
    "Arad": "4 0 3 6 1 6 32 30 12 6",
    "Lindner": "1 3 4 6 3 6 20 38 14 6",
    "Lindner, five rounds": "0 1 2 2 7 11 20 24 21 13",
}
BY_ROUND = "cooperation in round 1", "cooperation"
BY_SHARE = [f"share of {rule}" for rule in RULES]
SEATS = "action 0 of seat 0", "action 0 of seat 1"
DIALOGUE = {"agreement": 77.9, "score": 5.82, "score of deals": 7.47, "joint score": 14.94}
DIALOGUE |= {"best joint score": 15.73, "Pareto-efficient deals": 77.0, "equal points": 16.0}
ACCEPTED = {1: 13.3, 10: 18.6, 20: 25.2, 30: 37.8, 40: 58.4, 50: 91.3, 60: 95.9}
MOBLAB = {"mean offer": 44.2, "mean smallest accepted": 35.0}
MOBLAB |= {f"would accept {offer} %": value for offer, value in ACCEPTED.items()}


def printed(measures, row):
    return dict(zip(measures, map(float, row.split()), strict=True))


FIGURES = [  # game, rules, how the study begins, and what is printed, shares in percent
    *(
        ("matrix_game", {"preset": f"dal_bo_frechette_{chance}_{good}"}, "Dal Bo",
         dict(zip(BY_ROUND, map(float, row.split()[2 * k : 2 * k + 2]), strict=True)))
        for chance, row in COOPERATION.items()
        for k, good in enumerate((32, 40, 48))
    ),
    *(
        ("matrix_game", {"preset": f"fudenberg_rand_dreber_{ratio}"}, "Fudenberg",
         dict(zip(BY_ROUND, values, strict=True)))
        for ratio, values in NOISY.items()
    ),
    *(
        ("matrix_game", {"preset": "fudenberg_rand_dreber_4", "noise": noise}, "Fudenberg",
         {"cooperation": value})
        for noise, value in (("1/16", 82.1), ("0", 77.6))
    ),
    *(
        ("matrix_game", {"preset": f"goeree_holt_{good}"}, "Goeree", printed(SEATS, row))
        for good, row in ((320, "96 16"), (44, "8 80"), (80, "48 48"))
    ),
    *(
        ("matrix_game", {"payoffs": [[80, 10], [safe, safe]]}, "Rydval", {"action 0": value})
        for safe, value in ((30, 79.6), (50, 48.0))
    ),
    ("matrix_game", {"preset": "rock_paper_scissors", "rounds": 300}, "Wang",
     printed(["action 0", "action 1", "action 2"], "35.7 32.2 32.1")),
    ("matrix_game", {"preset": "akata_pd"}, "Akata", {"cooperation": 50.0}),
    ("matrix_game", {"preset": "akata_bos"}, "Akata", {"coordination": 54.3}),
    ("bargaining", {"preset": "forsythe"}, "Forsythe", {"mean offer": 46.2, "rejected": 4.65}),
    ("bargaining", {"pie": 40}, "Forsythe", {"mean offer": 46.7, "rejected": 4.17}),
    ("bargaining", {"pie": 20, "veto": False}, "Forsythe",
     {"mean offer": 21.3, "offers nothing": 37.8}),
    ("bargaining", {"pie": 40, "veto": False}, "Forsythe", {"mean offer": 23.0}),
    ("bargaining", {}, "Oosterbeek", {"mean offer": 40, "rejected": 16}),
    ("bargaining", {"preset": "moblab"}, "MobLab", MOBLAB),
    ("bargaining", {"preset": "dictator"}, "MobLab",
     {"mean offer": 25.7, "offers nothing": 26.0, "offers exactly half": 18.7}),
    ("deal_or_no_deal", {"preset": "dialogue"}, "Lewis", DIALOGUE),
    *(
        ("money_request", {"rounds": 5} if "rounds" in study else {}, study.partition(",")[0],
         printed([f"level {level}" for level in range(9, -1, -1)], row))
        for study, row in REQUESTS.items()
    ),
    ("trust_game", {}, "Berg",
     {"sent share": 51.6, "sent something": 93.75, "returned more than was sent": 36.67}),
    ("travelers_dilemma", {"preset": "goeree_holt_10", "rounds": 10}, "Goeree",
     {"mean claim, last five rounds": 186}),
]  # fmt: skip


@each_row(("game", "rules", "study", "figures"), FIGURES)
def test_people_did_what_is_published(game, rules, study, figures):
    told = [f for f in people(lg.rules(game, **rules)) if f.study.startswith(study)]
    for measure, value in figures.items():
        found = next(figure.value for figure in told if figure.measure == measure)
        assert found * (100 if found <= 1 else 1) == pytest.approx(value, abs=0.0501), measure


@each_row(("name", "row"), SHARES.items())
def test_shares_of_strategies_are_those_published(name, row):
    told = people(lg.rules("matrix_game", preset=f"dal_bo_frechette_{name}"))
    found = {figure.measure: figure.value for figure in told}
    for measure, share in printed(BY_SHARE, row).items():
        assert found[measure] == pytest.approx(share, abs=0.0051)


@pytest.mark.parametrize("game", ["travelers_dilemma", "minimum_effort"])
def test_level_0_draws_one_number_a_table(game):
    others = np.arange(lg.rules(game).players) != 0
    envs = lg.learners(game, 64, opponents="level_k:0")
    envs.reset(seed=1)
    for _ in range(3):
        envs.step(np.full(64, envs.single_action_space.n - 1))
    drawn = envs.tables.state.actions[others]
    assert len(np.unique(drawn)) > 5


@pytest.mark.parametrize("game", ["bargaining", "trust_game", "money_request", "travelers_dilemma"])
def test_amounts_can_be_named_in_points(game):
    rules = lg.rules(game)
    question = rules.question(rules.reset(0), 0)
    low, _ = rules.bounds()
    assert read_reply(f'{{"{question.key}": "{low + 5} points"}}', question).action == low + 5
