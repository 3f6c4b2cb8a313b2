"""Types behind moves: known ones are found again, unknown ones are said to be unknown."""

import json

import numpy as np
import pytest

import llm_games as lg
from llm_games.baselines.foretold_moves import foretold, recorded_moves, usual_types
from llm_games.baselines.players import make_player
from llm_games.baselines.type_mixtures import ForetoldMoves, compared, type_mixture
from llm_games.errors import BadParameter
from llm_games.registry import rulebook
from llm_games.table_batch import Tables
from llm_games.wrappers.batch import BatchSeats

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
    record = recorded_moves(game, seeds, each, [range(game.players)] * episodes)
    players = [types[kind] for kind in sits.T.ravel()]
    return record, [players[sitter] for sitter in np.unique(record.sitters)]


def named(game, params, miss, anything, seats, seed=1):
    """Return how many seats are named, and how many of them rightly."""
    rules = rulebook(game, **params)
    types = usual_types(rules)
    record, truth = simulated(rules, types, -(-seats // rules.players), miss, anything, seed)
    mixture = type_mixture(foretold(record, types))
    if not mixture.nameable:
        return 0, 0
    groups = [mixture.groups(seat) for seat in range(len(truth))]
    alone = [(group[0], name) for group, name in zip(groups, truth, strict=True) if not group[1:]]
    return len(alone), sum(name in kinds.split(" = ") for kinds, name in alone)


def test_seats_that_are_named_are_named_rightly():
    cells = [named(*cell, seats=60) for cell in CELLS]
    count, right = np.sum(cells, axis=0)
    assert count > 300
    assert right >= 0.97 * count
    for cell, (sure, _) in zip(CELLS, cells, strict=True):
        assert sure, cell


@pytest.mark.nightly
@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_seats_that_are_named_are_named_rightly_in_each_cell(cell):
    count = right = 0
    for seed in range(40):
        here = named(*cell, seats=200, seed=1 + 100 * seed)
        count, right = count + here[0], right + here[1]
        if count >= 300:
            break
    assert count >= 300
    assert right >= 0.93 * count


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
    return recorded_moves(rules, [*range(episodes)], each, [range(10)] * episodes), rules


@pytest.mark.parametrize("rule", OUTSIDE)
def test_a_rule_of_no_catalogue_is_said_to_be_none(rule):
    for seed in range(2):
        record, rules = outsiders(OUTSIDE[rule], seed)
        fit = compared(foretold(record, usual_types(rules)), record.last_rounds, record.rounds)
        assert fit.outside, (seed, fit.bic, fit.held_out)


def test_a_catalogue_that_fits_is_not_blamed():
    rules = rulebook("beauty_contest", **TEN)
    types = usual_types(rules)
    for seed in range(6):
        record, _ = simulated(rules, types, 4, 4, 0.05, seed)
        fit = compared(foretold(record, types), record.last_rounds, record.rounds)
        assert not fit.outside, (seed, fit.bic, fit.held_out)


def test_errors_and_shares_come_out_as_they_went_in():
    rules = rulebook("beauty_contest", **TEN)
    types = ["level_k:1", "level_k:2", "best_response"]
    record, truth = simulated(rules, types, 30, 4, 0.1)
    mixture = type_mixture(foretold(record, types))
    assert mixture.error == pytest.approx(0.1, abs=0.02)
    assert mixture.spread == pytest.approx(4, abs=0.5)
    for name, share in zip(mixture.types, mixture.shares, strict=True):
        assert share == pytest.approx(truth.count(name) / len(truth), abs=0.03)


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
            told = players[label, name]
            assert told["verdict"] == "10 of 10 seats named"
            assert told["shares"][name]["mean"] == pytest.approx(1)
            assert all(seat["types"] == [name] for seat in told["seats"])
    assert players["pirate_game", "rational"]["verdict"].startswith("not identified: ")
    _, out, _ = llm_games("types", contest, "--game", "talked", "--type", "level_k:1")
    assert "talked" in out
    assert "held out" in out


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


def test_decisions_without_a_choice_tell_nothing():
    rules = rulebook("beauty_contest", players=3, rounds=1)
    with pytest.raises(BadParameter, match="no decision has a choice"):
        recorded_moves(rules, [1], [[[101, 102, 103]]], [[0, 1, 2]])
