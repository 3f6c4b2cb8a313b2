"""Types behind moves: known ones are found again, unknown ones are said to be unknown."""

import json
import time
from contextlib import suppress

import numpy as np
import pytest
from markupsafe import escape
from playing import each_row
from scipy.special import stdtrit

import llm_games as lg
from llm_games.baselines.adaptive_rules import (
    LastRounds,
    adaptive_rule,
    compared,
    errors_by_episode,
)
from llm_games.baselines.foretold_moves import foretell, recorded_moves, usual_types
from llm_games.baselines.played_episodes import PlayedEpisodes
from llm_games.baselines.players import make_player
from llm_games.baselines.quantal_responses import quantal_rate, stage_choices
from llm_games.baselines.type_mixtures import ForetoldMoves, type_mixture
from llm_games.benchmarks.judge.player_types import player_types
from llm_games.benchmarks.judge.type_tables import type_grids
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games
from llm_games.benchmarks.show.view import run_page
from llm_games.benchmarks.show.view.render import render
from llm_games.benchmarks.show.view.run_shelf import RunShelf
from llm_games.errors import BadParameter
from llm_games.registry import rulebook
from llm_games.table_batch import Tables
from llm_games.wrappers.batch import BatchSeats
from llm_games.wrappers.clients.scripted import ScriptedClient

TEN = {"players": 10, "rounds": 20}
CELLS = [  # game, parameters, errors of numbers, chance of any move
    ("beauty_contest", TEN, 4, 0.05),
    ("beauty_contest", TEN, 10, 0.05),
    ("public_goods", TEN, 1, 0.05),
    ("public_goods", TEN, 4, 0.05),
    ("public_goods", TEN, 8, 0.05),
    ("divide_dollar", TEN, 1, 0.05),
    ("divide_dollar", TEN, 4, 0.05),
    ("bertrand_competition", {"rounds": 20}, 5, 0.05),
    ("bertrand_competition", {"rounds": 20}, 50, 0.05),
    ("bertrand_competition", {"rounds": 20}, 200, 0.05),
    ("sealed_bid_auction", TEN, 4, 0.05),
    ("sealed_bid_auction", TEN, 20, 0.05),
    ("el_farol_bar", TEN, 0, 0.02),
    ("el_farol_bar", TEN, 0, 0.1),
    ("el_farol_bar", TEN, 0, 0.2),
    ("matrix_game", {"rounds": 20}, 0, 0.02),
    ("matrix_game", {"rounds": 20}, 0, 0.05),
    ("matrix_game", {"rounds": 20}, 0, 0.1),
    ("matrix_game", {"rounds": 20}, 0, 0.2),
]


def erring(rng, moves, low, high, miss, anything):
    """Return moves that miss by a normal error, and now and then are any."""
    if miss:
        moves = np.clip(np.rint(moves + rng.normal(0, miss, moves.shape)), low, high)
    drawn = rng.integers(low, high, moves.shape, endpoint=True)
    return np.where(rng.random(moves.shape) < anything, drawn, moves).astype(np.int64)


def simulated(game, types, episodes, miss, anything, seed=1):
    """Play types that err, drawn for each seat; return the record, and who sat where."""
    rng = np.random.default_rng(seed)
    sits = rng.integers(len(types), size=(game.players, episodes))
    tables = Tables(game, episodes)
    seeds = [*range(seed, seed + episodes)]
    tables.reset(seeds)
    seats = BatchSeats(tables, [make_player(name, game) for name in types], sits)
    seats.start(np.ones(episodes, bool))
    moves = []
    while not tables.state.over.all():
        going = ~tables.state.over
        intended = np.array(seats.ask_now(tables.ready().turn))
        moves.append(erring(rng, intended, *game.amounts(tables.state), miss, anything))
        tables.step(moves[-1])
        seats.hear(going)
    moves = np.array(moves)
    each = [moves[:, :, episode] for episode in range(episodes)]
    record = recorded_moves(PlayedEpisodes(game, seeds, each, [range(game.players)] * episodes))
    players = [types[kind] for kind in sits.T.ravel()]
    return record, [players[sitter] for sitter in np.unique(record.sitters)]


def named(game, params, miss, anything, seats, seed=1):
    """Return how many seats are named, and how many of them rightly."""
    rules = rulebook(game, **params)
    types = usual_types(rules)
    record, truth = simulated(rules, types, -(-seats // rules.players), miss, anything, seed)
    mixture = type_mixture(foretell(record, types))
    if not mixture.nameable:
        return 0, 0
    groups = [mixture.groups(seat) for seat in range(len(truth))]
    alone = [(group[0], name) for group, name in zip(groups, truth, strict=True) if not group[1:]]
    return len(alone), sum(name in kinds.split(" = ") for kinds, name in alone)


def test_seats_that_are_named_are_named_rightly():
    cells = CELLS[1::3]
    numbers = [named(*cell, seats=seats) for cell in cells for seats in (20, 40)]
    count, right = np.sum(numbers, axis=0)
    assert count > 150
    assert right >= 0.97 * count
    assert all(sure for sure, _ in numbers)


@pytest.mark.nightly
def test_seats_that_are_named_are_named_rightly_in_each_cell(night, record_property):
    """Each cell has 300 seats that are named."""
    whole = np.zeros(2, int)
    for name, params, miss, anything in CELLS:
        sums, seats = np.zeros(2, int), 0
        while sums[0] < night(50, 300):
            sums += named(name, params, miss, anything, seats=200, seed=1 + 100 * (seats // 200))
            seats += 200
            assert seats <= 8000, name
        count, right = sums.tolist()
        record_property(
            f"{name} miss {miss} any {anything}", f"{right} right of {count} named of {seats}"
        )
        assert right >= 0.93 * count, (name, miss, anything)
        whole += sums
    record_property("all", f"{whole[1] / whole[0]:.4f} of {whole[0]}")
    assert whole[1] >= 0.97 * whole[0]


SIX = ["all_d", "all_c", "grim", "tit_for_tat", "win_stay_lose_shift", "two_round_trigger"]


def test_strategies_of_repeated_games_are_found_again():
    """Shares and errors of six automata (Dal Bo and Frechette 2011) come out as they went in."""
    rules = rulebook("matrix_game", rounds=20)
    record, truth = simulated(rules, SIX, 150, 0, 0.1)
    mixture = type_mixture(foretell(record, SIX))
    assert mixture.error == pytest.approx(0.1, abs=0.02)
    assert set(SIX) <= set(usual_types(rules))
    assert set(mixture.types) == set(SIX)
    for name, share in zip(mixture.types, mixture.shares, strict=True):
        assert share == pytest.approx(truth.count(name) / len(truth), abs=0.06), name


def test_a_hundred_seats_take_seconds():
    rules = rulebook("sealed_bid_auction", **TEN)  # of the games the one that takes longest
    record, _ = simulated(rules, usual_types(rules), 10, 20, 0.05)
    began = time.process_time()
    moves = foretell(record, usual_types(rules))
    type_mixture(moves)
    compared(moves, record.last_rounds, record.rounds)
    assert time.process_time() - began < 3


OUTSIDE = {
    "nine tenths of the mean": lambda own, others, mean, hit, rng: 0.9 * mean,
    "half own, half target": lambda own, others, mean, hit, rng: 0.5 * own + mean / 3,
    "random walk": lambda own, others, mean, hit, rng: own + rng.normal(0, 6, own.shape),
    "four fifths of the others": lambda own, others, mean, hit, rng: 0.8 * others,
    "one less": lambda own, others, mean, hit, rng: own - 1,
    "two up or down": lambda own, others, mean, hit, rng: own + np.where(hit, 2, -2),
}


def outsiders(rule, seed, episodes=4):
    rng = np.random.default_rng(seed)
    own, rounds = rng.integers(0, 101, (10, episodes)), []
    for step in range(20):
        if step:
            mean = own.mean(axis=0)
            others = (own.sum(axis=0) - own) / 9
            near = np.abs(own - mean * 2 / 3) < 10
            meant = np.broadcast_to(rule(own, others, mean, near, rng), own.shape)
            own = erring(rng, np.clip(meant, 0, 100), 0, 100, 2, 0.05)
        rounds.append(own)
    moves = np.array(rounds)
    rules = rulebook("beauty_contest", **TEN)
    each = [moves[:, :, episode] for episode in range(episodes)]
    played = PlayedEpisodes(rules, [*range(episodes)], each, [range(10)] * episodes)
    return recorded_moves(played), rules


def is_outside(record, rules):
    moves = foretell(record, usual_types(rules))
    return compared(moves, record.last_rounds, record.rounds).outside


@pytest.mark.parametrize("rule", OUTSIDE)
def test_a_rule_of_no_catalogue_is_said_to_be_none(rule):
    for seed in range(2):
        assert is_outside(*outsiders(OUTSIDE[rule], seed)), seed


@pytest.mark.nightly
def test_rules_of_no_catalogue_are_flagged_and_those_of_one_are_not(night, record_property):
    samples, flagged, alarms = night(2, 40), [], []
    for name, rule in OUTSIDE.items():
        flags = [is_outside(*outsiders(rule, 100 + seed)) for seed in range(samples)]
        record_property(name, f"{sum(flags)} of {samples} flagged")
        assert np.mean(flags) >= 0.95, name
        flagged += flags
    for name, params, miss, anything in CELLS:
        rules = rulebook(name, **params)
        types, episodes = usual_types(rules), -(-40 // rules.players)
        flags = [
            is_outside(simulated(rules, types, episodes, miss, anything, 100 * seed)[0], rules)
            for seed in range(night(1, 10))
        ]
        record_property(f"{name} miss {miss} any {anything}", f"{sum(flags)} false alarms")
        alarms += flags
    record_property("false alarms", f"{sum(alarms)} of {len(alarms)}")
    assert np.mean(alarms) <= 0.05


def test_a_catalogue_that_fits_is_not_blamed():
    rules = rulebook("beauty_contest", **TEN)
    for seed in range(6):
        record, _ = simulated(rules, usual_types(rules), 4, 4, 0.05, seed)
        assert not is_outside(record, rules), seed


@pytest.mark.parametrize(
    ("name", "params", "alone", "miss"),
    [
        ("matrix_game", {"rounds": 20}, "all_c", 0),  # many types that nobody is of
        ("el_farol_bar", TEN, "level_k:0", 0),
        ("bertrand_competition", {"rounds": 20}, "cost", 5),
    ],
)
def test_a_catalogue_is_not_blamed_for_types_that_nobody_is_of(name, params, alone, miss):
    rules = rulebook(name, **params)
    for seed in (5, 6):
        record, _ = simulated(rules, [alone], -(-40 // rules.players), miss, 0.05, seed)
        assert not is_outside(record, rules), seed


def test_errors_and_shares_come_out_as_they_went_in():
    rules = rulebook("beauty_contest", **TEN)
    types = ["level_k:1", "level_k:2", "best_response"]
    record, truth = simulated(rules, types, 30, 4, 0.1)
    mixture = type_mixture(foretell(record, types))
    assert mixture.error == pytest.approx(0.1, abs=0.02)
    assert mixture.spread == pytest.approx(4, abs=0.5)
    for name, share in zip(mixture.types, mixture.shares, strict=True):
        assert share == pytest.approx(truth.count(name) / len(truth), abs=0.03)


def by_the_line(coefficients, episodes, seed, miss=4, anything=0.05):
    """Return decisions of five seats that follow a line in 20 rounds, and their episodes."""
    rng = np.random.default_rng(seed)
    own, rounds = rng.integers(0, 101, (episodes, 5)), []
    for _ in range(20):
        others = (own.sum(axis=1, keepdims=True) - own) / 4
        meant = coefficients[0] * own + coefficients[1] * others + coefficients[2]
        rounds.append((own, others, own := erring(rng, meant, 0, 100, miss, anything)))
    parts = zip(*rounds, strict=True)
    last, others, actions = (np.concatenate([round.ravel() for round in part]) for part in parts)
    count, seats = len(actions), np.tile(np.arange(5 * episodes), 20)
    none = np.zeros((count, 1), int), np.ones((count, 1))
    low, high = np.zeros(count, int), np.full(count, 100)
    moves = ForetoldMoves(("nothing",), actions, low, high, seats, (none,), numbers=True)
    return moves, LastRounds(last.astype(float), others, np.zeros(count)), seats // 5


@pytest.mark.parametrize(
    ("samples", "least"), [(20, 0.75), pytest.param(400, 0.92, marks=pytest.mark.nightly)]
)
@pytest.mark.parametrize("episodes", [5, 20])
def test_what_numbers_follow_has_intervals_that_hold_it(episodes, samples, least, record_property):
    line, inside = np.array([0.3, 0.4, 15.0]), []
    for seed in range(samples):
        *of, by = by_the_line(line, episodes, seed)
        rule = adaptive_rule(*of)
        errors = errors_by_episode(rule, *of, by)
        inside.append(np.abs(rule.coefficients - line) <= stdtrit(episodes - 1, 0.975) * errors)
    shares = np.mean(inside, axis=0)
    record_property("hold the coefficients", shares.round(3).tolist())
    assert (shares >= least).all()


def test_a_line_that_the_record_does_not_tell_is_said_to_be_none():
    *of, by = by_the_line((0, 0, 40), 6, 1, miss=0, anything=0)
    later = np.arange(len(by)) >= 60  # where all numbers are 40
    of = [part.select(later) for part in of]
    with pytest.raises(BadParameter, match="do not vary enough"):
        errors_by_episode(adaptive_rule(*of), *of, by[later])
    *of, by = by_the_line((0.3, 0.4, 15), 1, 1)
    assert np.isnan(errors_by_episode(adaptive_rule(*of), *of, by)).all()


def logit_choices(rules, chances, seed, episodes=1):
    """Return choices of ten seats in 20 rounds that are drawn by chances."""
    rng = np.random.default_rng(seed)
    moves = rng.choice(len(chances), p=chances, size=(episodes, 20, 10))
    played = PlayedEpisodes(rules, [*range(episodes)], [*moves], [range(10)] * episodes)
    return stage_choices(played, by_episode=False)


MANY = pytest.mark.parametrize("samples", [20, pytest.param(200, marks=pytest.mark.nightly)])


@MANY
def test_the_rate_of_a_logit_response_comes_out_in_public_goods(samples, record_property):
    rules, many = rulebook("public_goods", **TEN), samples >= 200
    paid = -0.8 * np.arange(21)  # a token costs its owner so much
    for rate in (0.1, 0.5, 2.0):
        chances = np.exp(rate * paid) / np.exp(rate * paid).sum()
        fits = [quantal_rate(logit_choices(rules, chances, seed)) for seed in range(samples)]
        mean = np.mean([fit.rate for fit in fits])
        hold = np.mean([fit.low <= rate <= fit.high for fit in fits])
        record_property(f"of {rate}", f"mean {mean:.4f}, held {hold:.3f}")
        assert mean == pytest.approx(rate, rel=0.03 if many else 0.1)
        assert (0.92 if many else 0.75) <= hold <= (0.98 if many else 1)


@MANY
def test_the_bar_does_not_tell_a_rate(samples, record_property):
    rules = rulebook("el_farol_bar", **TEN)
    for going in (0.559, 0.581, 0.607):  # logit equilibria of rates .2, .5 and without end
        rates = 0
        for seed in range(samples):
            with suppress(BadParameter):
                rates += bool(quantal_rate(logit_choices(rules, [1 - going, going], seed)))
        record_property(f"told at {going}", f"{rates} of {samples}")
        assert rates <= samples / 10


@pytest.mark.parametrize(
    ("name", "chances", "message"),
    [
        ("public_goods", [1.0, 0, 0], "no rate is too high"),
        ("public_goods", [*[0] * 20, 1.0], "the likeliest rate is 0"),
        ("sealed_bid_auction", [0.5, 0.5], "seats or rounds differ in what can be chosen"),
    ],
)
def test_a_rate_at_a_bound_or_where_rounds_differ_is_not_told(name, chances, message):
    with pytest.raises(BadParameter, match=message):
        quantal_rate(logit_choices(rulebook(name, **TEN), chances, 1))


@each_row(
    "params",
    [
        {"preset": "rock_paper_scissors"},
        {"preset": "volunteer"},
        {"preset": "stag_hunt"},
        {"reveal": "payoff"},
        {"noise": "1/8", "noise_kind": "observation"},
    ],
)
def test_types_are_those_that_a_table_has_place_for(params):
    """Strategies of two actions are none of the types of other tables."""
    rules = rulebook("matrix_game", rounds=4, **params)
    types = usual_types(rules)
    record, _ = simulated(rules, types, 4, 0.0, 0.1)
    assert [*foretell(record, types).types] == types
    assert "maximin" in types
    assert ("tit_for_tat" in types) == (rules.actions == (2, 2) and rules.tells_each)


def test_types_that_foretell_the_same_are_one():
    moves = np.array([[1], [0], [1]]), np.ones((3, 1))
    padded = np.array([[1, 0], [0, 5], [1, 0]]), np.array([[1.0, 0], [1, 0], [1, 0]])
    coin = np.array([[0, 1]] * 3), np.array([[0.5, 0.5]] * 3)
    mixture = type_mixture(
        ForetoldMoves(
            types=("a", "b", "c"),
            actions=np.array([1, 0, 1]),
            low=np.zeros(3, int),
            high=np.ones(3, int),
            seats=np.zeros(3, int),
            parts=(moves, padded, coin),
            numbers=False,
        )
    )
    assert mixture.types == ("a = b", "c")
    assert mixture.alike() == [("a = b", "c")]  # three choices are too few to know a coin by


@pytest.fixture(scope="module")
def contest(tmp_path_factory):
    path = tmp_path_factory.mktemp("types") / "contest.db"
    seats = ["level_k:2", "best_response", "level_k:2", "best_response"]
    game = {"game": "beauty_contest", "params": {"players": 4, "rounds": 8}, "seats": seats}
    talk = game | {"label": "talked", "params": game["params"] | {"talk": {"turns": 1}}}
    plans = {"game": "pirate_game", "seats": ["rational"], "params": {"players": 4}}
    lg.run({"episodes": 5, "games": [game, talk, plans]}, path)
    return path


def test_the_command_names_seats_and_says_where_it_cannot(llm_games, contest):
    code, out, _ = llm_games("types", contest, "--json")
    assert code == 0
    players = {(of["game"], of["player"]): of for of in json.loads(out)}
    for label in ("beauty_contest", "talked"):
        for name in ("level_k:2", "best_response"):
            player = players[label, name]
            assert player["verdict"] == "10 of 10 seats named"
            assert player["shares"][name]["mean"] == pytest.approx(1)
            assert all(seat["types"] == [name] for seat in player["seats"])
    assert players["pirate_game", "rational"]["verdict"].startswith("not identified: ")
    best = players["talked", "best_response"]
    assert best["line"]["nearest"] == "best_response"
    assert best["seats"][0]["posterior"] == {"best_response": pytest.approx(1)}
    assert best["line"]["why"].startswith("not identified: ")  # they have come to rest
    _, out, _ = llm_games("types", contest, "--game", "talked", "--type", "level_k:1")
    assert "talked" in out
    assert "held out" in out


def test_the_viewer_has_the_tables_of_the_terminal(tmp_path):
    path = tmp_path / "small.db"
    game = {"game": "public_goods", "params": {"players": 3, "rounds": 4}}
    lg.run({"episodes": 5, "games": [game], "seats": ["reciprocal", "random", "rational"]}, path)
    with Records.open_readonly(path) as records:
        grids = type_grids([of for game in games(records) for of in player_types(game)])
    assert "jackknife over episodes" in grids[0].basis
    shelf = RunShelf([path], tmp_path)
    context = run_page.types(shelf.runs()[0])
    shelf.close()
    assert [grid.rows for grid in grids] == [grid.rows for grid in context["grids"]]
    shown = render("types", **context)
    for grid in grids:
        assert f"<caption>{escape(grid.title)}</caption>" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--type", "nobody"), "nobody"),
        (("--type", "agreeable"), "remembers more than a state shows"),
        (("--type", "undercut:1"), "undercut"),
        (("--game", "chess"), "chess"),
    ],
)
def test_what_is_no_type_of_the_game_is_said(llm_games, contest, arguments, message):
    code, _, err = llm_games("types", contest, "--game", "beauty_contest", *arguments)
    assert code == 2
    assert message in err


def types_of(path):
    with Records.open_readonly(path) as records:
        [game] = games(records)
        return {of.player: of for of in player_types(game)}


def test_one_move_names_nobody(tmp_path):
    game = {"game": "bargaining", "params": {"pie": 10, "periods": 1}, "seats": ["random"]}
    lg.run({"episodes": 1, "games": [game]}, tmp_path / "short.db")
    assert types_of(tmp_path / "short.db")["random"].seats
    assert not types_of(tmp_path / "short.db")["random"].named


def test_what_the_rules_filled_in_or_others_did_before_a_branch_is_no_move_of_a_player(tmp_path):
    path, model = tmp_path / "bar.db", ScriptedClient(["?", "stay", "?", "stay"], "model")
    game = {"game": "el_farol_bar", "params": {"players": 3, "rounds": 4}}
    game["seats"] = [{"client": model, "max_attempts": 1}, "random", "random"]
    lg.run({"episodes": 1, "games": [game]}, path)
    assert types_of(path)["model"].decisions == 2
    lg.branch(path, "el_farol_bar/0/2", tmp_path / "b.db", seats={0: "rational"}, times=3)
    of = types_of(tmp_path / "b.db")
    assert (of["rational"].decisions, of["random"].decisions) == (6, 6)


def test_decisions_without_a_choice_tell_nothing():
    rules = rulebook("beauty_contest", players=3, rounds=1)
    with pytest.raises(BadParameter, match="no move of its own"):
        recorded_moves(PlayedEpisodes(rules, [1], [[[101, 102, 103]]], [[0, 1, 2]]))
