"""The best response: beside brute force on tiny games, equilibria, and what is played."""

import itertools
import subprocess
import sys
from math import comb

import numpy as np
import pytest
from playing import ALL_DEALS, each_row

import llm_games
from llm_games.baselines import move_chances
from llm_games.baselines.batch_play import play_rules
from llm_games.baselines.beliefs import Iteration
from llm_games.baselines.best_response import BestResponse, best_response
from llm_games.baselines.games.el_farol_bar.theory import Bar, mixed_equilibrium
from llm_games.baselines.move_chances import Others, Strata
from llm_games.baselines.players import make_player
from llm_games.baselines.rules import RulePolicy
from llm_games.baselines.training.value_iteration import IterationOptions, train
from llm_games.baselines.tree import TooLarge
from llm_games.benchmarks.studies import best_responses
from llm_games.benchmarks.studies.dated import read
from llm_games.errors import BadParameter
from llm_games.game_rooms import part
from llm_games.noise import Noise
from llm_games.view import Sight
from llm_games.wrappers.player_mixture import PlayerMixture
from llm_games.wrappers.tabular_player import save_table


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LLM_GAMES_CACHE", str(tmp_path / "cache"))


def rules_of(player):
    if isinstance(player, PlayerMixture):
        return list(zip(player.players, player.weights / player.weights.sum(), strict=True))
    return [(player, 1.0)]


def brute(game, seat, opponents, deals=None):
    """Return the value of the best response by going through all that can be seen and done.

    It is another way than that of the package: one table at a time, one call for each history, and
    nothing that is met twice is put together.
    """
    others = [other for other in range(game.players) if other != seat]
    players = [make_player(name, game) for name in opponents]
    deals = deals or [(1.0, None)]
    worlds = []
    for kinds in itertools.product(*map(rules_of, players)):
        for likely, given in deals:
            weight = likely * np.prod([w for _, w in kinds])
            memories = [p.start(game, s, 0) for (p, _), s in zip(kinds, others, strict=True)]
            worlds.append((weight, game.reset(0, given=given), [p for p, _ in kinds], memories))

    def seen(state):
        asked = bool(game.asked(state)[seat])  # what is seen between own moves is met at the next
        numbers = Sight(game, state).view(seat).numbers.tobytes() if asked else b""
        return bool(state.over), asked, numbers

    def moves(state):
        if not game.asked(state)[seat]:
            return [0]
        if game.picks:
            return np.flatnonzero(game.mask(state)[seat]).tolist()
        low, high = (int(limit[seat]) for limit in game.legal(state))
        return range(low, high + 1)

    def split(possible):
        found = {}
        for world in possible:
            found.setdefault(seen(world[1]), []).append(world)
        return sum(value(group) for group in found.values())

    def value(possible):
        if possible[0][1].over:
            return 0.0
        best = -np.inf
        for move in moves(possible[0][1]):
            paid, after = 0.0, []
            for weight, state, who, memories in possible:
                actions, later = np.zeros(game.players, np.int64), []
                actions[seat] = move
                for player, memory, other in zip(who, memories, others, strict=True):
                    later.append(memory)
                    if game.asked(state)[other]:
                        decision, later[-1] = player.act(Sight(game, state).view(other), memory)
                        actions[other] = decision.action
                state, outcome = game.step(state, actions)
                paid += weight * outcome.rewards[seat]
                after.append((weight, state, who, later))
            best = max(best, paid + split(after))
        return best

    return split(worlds)


DOLLAR = {"players": 2, "rounds": 3, "golds": 4}
TINY = {
    "states": ("divide_dollar", DOLLAR, ["best_response"]),
    "types and states": ("divide_dollar", DOLLAR, ["mix:best_response|fixed:1|3*fixed:3"]),
    "types": (
        "beauty_contest",
        {"players": 3, "rounds": 2, "max": 6},
        ["mix:level_k:0|level_k:1|level_k:2", "mix:2*level_k:0|level_k:3"],
    ),
    "what is not told": (
        "el_farol_bar",
        {"players": 4, "rounds": 3},
        ["mix:level_k:1|level_k:2"] * 2 + ["cooperative"],
    ),
    "memory": (
        "public_goods",
        {"players": 3, "rounds": 3, "tokens": 3},
        ["reciprocal", "mix:reciprocal|fixed:0|fixed:3"],
    ),
}


@each_row("seat", [0, 1])
@each_row("name", TINY)
def test_it_is_what_brute_force_finds(name, seat):
    game_name, parameters, opponents = TINY[name]
    game = llm_games.rules(game_name, **parameters)
    reply = best_response(game, seat, opponents)
    assert reply.exact
    assert reply.value == pytest.approx(brute(game, seat, opponents))
    assert (reply.error, reply.upper) == (0, reply.value)


ONE, OTHER = ((1, 4, 1), (4, 1, 2), (0, 2, 2)), ((1, 4, 1), (4, 1, 2), (4, 1, 2))
TURNS = {
    "offers": ("bargaining", {"pie": 4, "periods": 3, "discount": ("1/2", "3/4")}, "rational"),
    "kinds of offers": ("bargaining", {"pie": 5, "periods": 2}, "mix:rational|equal|threshold:1"),
    "numbers at once": ("bargaining", {"pie": 4, "method": "strategy"}, "mix:equal|threshold:1/4"),
    "values not told": ("deal_or_no_deal", {"scenario": (ONE, OTHER), "moves": 4}, "conceder:3"),
    "two moves a round": ("trust_game", {"endowment": (2, 1), "rounds": 2}, "tit_for_tat_investor"),
}


@each_row("seat", [0, 1])
@each_row("name", TURNS)
def test_in_turns_it_is_what_brute_force_finds(name, seat):
    game_name, parameters, opponent = TURNS[name]
    game = llm_games.rules(game_name, **parameters)
    theory = part(game.name, "theory")
    scenarios = theory.deals(game, 10)[0] if hasattr(theory, "deals") else {"": np.zeros(1)}
    deals = [
        (1 / values.size, {name: values[i] for name, values in scenarios.items() if name})
        for values in scenarios.values()
        for i in range(values.size)
    ]
    reply = best_response(game, seat, opponent)
    assert reply.exact
    assert reply.value == pytest.approx(brute(game, seat, [opponent], deals))
    paid = play_rules(game, [reply.policy, opponent][:: 1 - 2 * seat], range(2000)).payoffs[seat]
    assert abs(paid.mean() - reply.value) <= 4 * paid.std() / np.sqrt(2000) + 1e-9


ENDS = {
    "all at once": ("matrix_game", {"continuation": "1/50"}, "win_stay_lose_shift", 0),
    "kinds": ("matrix_game", {"continuation": "1/99"}, "mix:tit_for_tat|all_d|2*all_c", 1),
    "investor": ("trust_game", {"endowment": (2, 1), "continuation": "1/99"}, "reciprocal", 0),
    "trustee": ("trust_game", {"endowment": (1, 0), "continuation": "1/99"}, "grim_investor", 1),
    "offers": ("deal_or_no_deal", {"scenario": ONE, "continuation": "1/99"}, "conceder:3", 0),
}


@each_row("name", ENDS)
def test_where_chance_ends_a_game_it_is_what_brute_force_finds(name):
    """Brute force goes through the last rounds one by one; the package only discounts."""
    game_name, parameters, opponent, seat = ENDS[name]
    game = llm_games.rules(game_name, **parameters)
    (end,) = (draw for draw in game.draws() if draw.name.startswith("last"))
    on, last = float(game.continuation), int(end.high)
    deals = [
        (on ** (t - 1) * (1 - on if t < last else 1), {end.name: np.array(t)})
        for t in range(1, last + 1)
    ]
    reply = best_response(game, seat, opponent)
    assert reply.exact
    assert reply.value == pytest.approx(brute(game, seat, [opponent], deals), rel=1e-8)


@each_row(
    ("opponent", "chance", "value"),
    [
        ("tit_for_tat", "9/10", 30),
        ("tit_for_tat", "1/2", 20 / 3),
        ("tit_for_tat", "1/4", 16 / 3),
        ("win_stay_lose_shift", "1/2", 22 / 3),
        ("generous:1/3", "1/5", 67 / 12),
    ],
)
def test_best_replies_in_an_endless_dilemma(opponent, chance, value):
    game = llm_games.rules("matrix_game", continuation=chance)
    assert best_response(game, 0, opponent).value == pytest.approx(value, rel=2e-4)


@pytest.mark.nightly
def test_over_all_scenarios_it_is_what_trainings_are_held_against(night):
    game = llm_games.rules("deal_or_no_deal", moves=night(2, 10))
    reply = best_response(game, 0, "conceder:1")
    assert reply.exact
    assert reply.value == pytest.approx(night(1.952, ALL_DEALS), abs=1e-3)


def test_a_seat_alone_has_a_best_response():
    alone = {"players": 1, "days": 2, "residents": [("A", 5, 2)], "supplies": (10, 10)}
    reply = best_response(llm_games.rules("water_allocation", **alone, hp_start=3), 0, [])
    assert (reply.exact, reply.value) == (True, 1.0)


def test_chance_is_part_of_it():
    drawn = {"valuation_draw": "random", "valuation_max": 6, "interval": 3}
    game = llm_games.rules("sealed_bid_auction", players=2, rounds=2, **drawn)
    chance, likely = part(game.name, "theory").deals(game, 10**6)
    deals = [
        (w, {name: values[..., i] for name, values in chance.items()})
        for i, w in enumerate(likely.tolist())
    ]
    assert len(deals) == (3 * 2 * 2) ** 2
    opponents = ["mix:shade:0.5|truthful"]
    assert best_response(game, 0, opponents).value == pytest.approx(
        brute(game, 0, opponents, deals)
    )


def test_deals_are_what_chance_brings():
    game = llm_games.rules(
        "sealed_bid_auction", players=3, rounds=1, valuation_draw="random", valuation_max=40
    )
    deals, likely = part(game.name, "theory").deals(game, 10**6)
    drawn = game.chance(Noise(np.arange(20_000, dtype=np.uint64)))
    assert likely.sum() == pytest.approx(1)
    for own, weights in ((drawn, None), (deals, likely)):
        rows = own["valuations"][0] // 10
        key = rows[0] * 25 + rows[1] * 5 + rows[2]
        often = np.bincount(key, weights, 125) / (1 if weights is not None else len(key))
        assert np.flatnonzero(often).size == 5 * 4 * 3
        assert np.abs(often[often > 0] - 1 / 60).max() < 0.005
    for tied in (2, 3):  # each of those who tie wins as often
        lots = np.bincount((deals["lots"][0] * tied).astype(int), likely)
        assert np.allclose(lots, 1 / tied)
    assert part(game.name, "theory").deals(game, 10) is None


BIGGER = [
    ("beauty_contest", {"players": 4, "rounds": 3}, "mix:level_k:0|level_k:1|level_k:2"),
    ("el_farol_bar", {"players": 5, "rounds": 5}, "mix:level_k:0|level_k:1|level_k:2"),
    ("el_farol_bar", {"players": 4, "rounds": 4, "mode": "explicit"}, "best_response"),
    ("divide_dollar", {"players": 2, "rounds": 4, "golds": 20}, "mix:best_response|fixed:5"),
    (
        "bertrand_competition",
        {"rounds": 5, "window": 1, "tick": "1"},
        "mix:best_response|match|undercut:1",
    ),
]


@each_row(("name", "parameters", "opponent"), BIGGER)
def test_its_player_gets_what_it_promises(name, parameters, opponent, tmp_path):
    game = llm_games.rules(name, **parameters)
    others = [opponent] * (game.players - 1)
    reply = best_response(game, 0, opponent)
    paid = play_rules(game, [reply.policy, *others], range(3000)).payoffs[0]
    assert abs(paid.mean() - reply.value) <= 4 * paid.std() / np.sqrt(3000) + 1e-9
    for rival in ("rational", "best_response", "cooperative"):  # nobody does better
        theirs = play_rules(game, [rival, *others], range(3000)).payoffs[0]
        assert theirs.mean() <= reply.value + 4 * theirs.std() / np.sqrt(3000) + 1e-9
    seated = make_player(f"tabular:{save_table(reply.policy, tmp_path / 'reply')}", game)
    again = play_rules(game, [seated, *others], range(200)).payoffs[0]
    assert np.array_equal(again, paid[:200])


@each_row(
    ("name", "parameters"),
    [
        ("divide_dollar", {"players": 4, "rounds": 3}),
        ("public_goods", {"players": 3, "rounds": 3}),
        ("diners_dilemma", {"players": 4, "rounds": 3}),
        ("beauty_contest", {"players": 4, "rounds": 3}),
        ("bertrand_competition", {"rounds": 4, "window": 1, "tick": "1/4"}),
    ],
)
def test_against_an_equilibrium_it_gains_nothing(name, parameters):
    game = llm_games.rules(name, **parameters)
    reply = best_response(game, 0, "rational")
    own = play_rules(game, ["rational"] * game.players, range(2)).payoffs[0]
    assert reply.exact
    assert reply.value == pytest.approx(own.mean())


def test_against_a_mixed_equilibrium_nothing_is_gained_but_the_size_of_a_stratum():
    game = llm_games.rules("el_farol_bar", players=6, rounds=4)
    value = best_response(game, 0, "rational").value
    assert value == pytest.approx(game.home * game.rounds, rel=0.01)


def test_finding_out_is_worth_what_it_costs():
    """One first move tells them apart, and costs 40 with one of them; from then on all is known."""
    game = llm_games.rules("divide_dollar", players=2, rounds=4)
    kinds = ("fixed:20", "fixed:60")
    known = [best_response(game, 0, kind).value for kind in kinds]
    assert known == [4 * 80, 4 * 40]
    found_out = best_response(game, 0, f"mix:{'|'.join(kinds)}")
    assert found_out.value == pytest.approx((4 * 80 + 3 * 40) / 2)
    assert set(found_out.policy.rows.moves[1:3, 0].tolist()) == {40, 80}


def test_what_opponents_draw_is_met_as_often_as_it_is_likely():
    game = llm_games.rules("el_farol_bar", players=6, rounds=2)
    others = Others(game, 0, [make_player("rational", game)] * 5)
    actions, joint = others.moves(game.reset(0, (1,)), np.zeros(1, np.int64))
    often = mixed_equilibrium(Bar.of(game))
    goers = actions[:, 0].sum(axis=0)
    assert joint.sum() == pytest.approx(1)
    for count in range(6):
        exact = comb(5, count) * often**count * (1 - often) ** (5 - count)
        assert joint[0, goers == count].sum() == pytest.approx(exact, abs=0.005)


def test_strata_are_even_and_draws_independent():
    noise = Strata(move_chances.STRATA)
    first, second = noise.of("a").random(), noise.of("b").random((2,))
    for drawn in (first, *second):
        assert np.allclose(
            np.sort(drawn), (np.arange(move_chances.STRATA) + 0.5) / move_chances.STRATA
        )
    assert np.abs(np.corrcoef([first, *second])[np.triu_indices(3, 1)]).max() < 0.15
    assert np.array_equal(first, noise.of("a").random())


def test_states_are_kept_apart_only_where_they_matter():
    def forgets(name, opponents, **parameters):
        game = llm_games.rules(name, **parameters)
        others = Others(game, 0, [make_player(one, game) for one in opponents])
        found = Iteration(game, 0, others, np.arange(game.bounds()[1] + 1)).solved()
        return bool(found["forgets"])

    assert forgets("el_farol_bar", ["level_k:1"] * 3, players=4, rounds=3)
    assert not forgets("el_farol_bar", ["best_response"] * 3, players=4, rounds=3)
    assert not forgets("public_goods", ["reciprocal"], players=2, rounds=3)


def test_it_is_kept_on_disk(monkeypatch):
    game = llm_games.rules("public_goods", players=2, rounds=3)
    first = best_response(game, 0, "reciprocal")
    monkeypatch.setattr(Iteration, "solved", lambda self: pytest.fail("it was kept"))
    again = best_response(game, 0, "reciprocal")
    assert again.value == first.value
    assert all(map(np.array_equal, again.policy.rows, first.policy.rows))


def test_of_some_actions_it_is_the_best():
    game = llm_games.rules("public_goods", players=3, rounds=2)
    values = [best_response(game, 0, "reciprocal", actions=own).value for own in ([20], [0, 20])]
    assert values[0] < values[1] <= best_response(game, 0, "reciprocal").value
    with pytest.raises(BadParameter, match="actions must be some from 0 to 20"):
        best_response(game, 0, "reciprocal", actions=[21])


# -- bounds ----------------------------------------------------------------------------------------


def test_where_chance_is_too_large_there_are_bounds(tmp_path):
    game = llm_games.rules("sealed_bid_auction", players=2, rounds=1, valuation_draw="random")
    exact = best_response(game, 0, "shade:0.5")
    assert exact.exact
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(move_chances, "MOST", 1000)
        patch.setenv("LLM_GAMES_CACHE", str(tmp_path / "other"))
        reply = best_response(game, 0, "shade:0.5", games=500)
    assert not reply.exact
    assert isinstance(reply.policy, RulePolicy)
    assert reply.value - 3 * reply.error < exact.value < reply.upper
    assert reply.upper < np.inf


def test_nothing_bounds_what_opponents_who_mind_would_do():
    game = llm_games.rules("battle_royale", players=3)
    reply = best_response(game, 0, "rational", games=200)
    assert (reply.exact, reply.upper) == (False, np.inf)
    assert reply.error > 0
    assert "by chance" in reply.how


def test_players_that_follow_no_rule_are_met_by_bounds():
    game = llm_games.rules("public_goods", players=3, rounds=2)
    learned = best_response(game, 0, "rational").policy
    policy = PlayerMixture([learned])
    reply = best_response(game, 1, [policy, "rational"], games=50)
    assert not reply.exact
    assert "follows no rule" in reply.how


def test_a_share_of_the_best_response():
    exact = BestResponse(None, 8.0, 0.0, 8.0, True, "")
    bounds = BestResponse(None, 8.0, 0.1, 10.0, False, "")
    assert exact.share(6) == (0.75, 0.75)
    assert bounds.share(6) == (0.6, 0.75)
    assert np.isnan(BestResponse(None, -1.0, 0.0, -1.0, True, "").share(-2)).all()


# -- bad input, and the script ---------------------------------------------------------------------


@each_row(
    ("seat", "opponents", "said"),
    [
        (3, "rational", "seat must be from 0 to 2, got 3"),
        (0, ["rational"], "2 other seats need as many players, got 1"),
        (0, "tiny", "asks a model|ask no model"),
        (0, "shade:0.5", "not defined for public_goods"),
    ],
)
def test_bad_input(seat, opponents, said):
    with pytest.raises(BadParameter, match=said):
        best_response(llm_games.rules("public_goods", players=3, rounds=2), seat, opponents)


def test_too_many_moves_are_too_large(monkeypatch):
    monkeypatch.setattr(move_chances, "MOST", 1000)
    game = llm_games.rules("public_goods", players=2, rounds=3)
    others = Others(game, 0, [make_player("reciprocal", game)])
    with pytest.raises(TooLarge):
        Iteration(game, 0, others, np.arange(21)).solved()


def test_the_script_finds_a_player(tmp_path, capsys):
    said = {"game": "el_farol_bar", "opponents": ["mix:level_k:1|level_k:2"], "folder": tmp_path}
    options = IterationOptions(param=["players=4", "rounds=3"], **said)
    reply = train(options)
    printed = capsys.readouterr().out
    assert reply.exact
    assert f"value           {reply.value:.6g}" in printed
    game = llm_games.rules("el_farol_bar", players=4, rounds=3)
    player = make_player(f"tabular:{tmp_path / 'player.npz'}", game)
    paid = play_rules(game, [player, *said["opponents"] * 3], range(2000)).payoffs[0]
    assert abs(paid.mean() - reply.value) < 4 * paid.std() / np.sqrt(2000)
    with pytest.raises(BadParameter, match="--seat must be a number"):
        train(IterationOptions(**{**said, "folder": tmp_path / "other"}, seat="rotate"))


def test_the_results_are_what_was_worked_out():
    """Cheap tables are worked out again."""
    rows = read(best_responses.Worth, best_responses.FILE)
    for table in best_responses.SETTINGS["tables"]:
        (row,) = [r for r in rows if (r.game, r.opponents) == (table["game"], table["opponents"])]
        assert row.payoff <= row.value + 4 * row.error
        if row.cpu_seconds < 0.6:
            game = llm_games.rules(table["game"], **table["params"])
            assert best_response(game, 0, table["opponents"]).value == pytest.approx(row.value)


@pytest.mark.slow
def test_the_script_is_a_command(tmp_path):
    command = [sys.executable, "-m", "llm_games.baselines.training.value_iteration"]
    options = ["--opponents", "reciprocal", "--param", "players=2", "--param", "rounds=3"]
    done = subprocess.run(
        [*command, "public_goods", *options, "--folder", str(tmp_path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "value iteration over" in done.stdout
    wrong = subprocess.run(
        [*command, "public_goods", "--seat", "12"], capture_output=True, text=True
    )
    assert wrong.returncode == 2
    assert "seat" in wrong.stderr
