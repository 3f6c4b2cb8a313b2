"""Small games as trees, solvers on them, and tables as players."""

import errno
import json
import os
import signal
import zipfile
from contextlib import suppress
from io import BytesIO
from itertools import product
from pathlib import Path

import nashpy
import numpy as np
import pytest
from playing import each_row

import llm_games as lg
from llm_games import game_rooms as rooms
from llm_games.baselines.batch_play import play_rules
from llm_games.baselines.best_response import best_response
from llm_games.baselines.players import make_player
from llm_games.baselines.training import cfr, fictitious_play, regret_matching, tabular_q
from llm_games.baselines.training.cfr import CFR
from llm_games.baselines.training.fictitious_play import FictitiousPlay
from llm_games.baselines.training.harness import Training, curve
from llm_games.baselines.training.regret_matching import (
    RegretMatching,
    SwapRegretMatching,
    normal_form,
)
from llm_games.baselines.tree import TooLarge, Tree, deals_of
from llm_games.benchmarks.studies import solver_gaps as tabular
from llm_games.benchmarks.studies import training_gains as training
from llm_games.benchmarks.studies.dated import read
from llm_games.errors import BadParameter, DiskFull, UnknownName
from llm_games.registry import rulebook
from llm_games.wrappers.tabular_player import load_table, save_table, table_of

BIDS = {"players": 2, "rounds": 1, "valuation_max": 4, "interval": 1, "valuation_draw": "random"}
DUEL = {"players": 2, "max_shots": 4, "announce_cap": True, "cap_outcome": "share"}
SMALL = {
    "bids": ("sealed_bid_auction", BIDS),
    "vickrey": ("sealed_bid_auction", {**BIDS, "players": 3, "price": "second"}),
    "pirates": ("pirate_game", {"players": 3, "gold": 4}),
    "duel": ("battle_royale", DUEL),
    "truel": ("battle_royale", {"players": 3, "max_shots": 4, "announce_cap": True}),
    "gifts": ("public_goods", {"players": 2, "rounds": 2, "tokens": 2}),
    "bar": ("el_farol_bar", {"players": 2, "rounds": 1}),
    "dollar": ("divide_dollar", {"players": 2, "rounds": 1}),
    "guesses": ("beauty_contest", {"players": 2, "rounds": 1}),
}


def game_of(name):
    game, parameters = SMALL[name]
    return rulebook(game, **parameters)


def drawn(tree, seed=0):
    return tree.scaled(np.random.default_rng(seed).random(tree.count) ** 3)


def run(solver, steps):
    for number in range(steps):
        solver.step(number + 1)
    return solver.average()


# -- trees -----------------------------------------------------------------------------------------


@each_row("name", [name for name in SMALL if name not in ("bar", "bids")])
def test_nobody_gains_by_leaving_the_houses_equilibrium(name):
    tree = Tree(game_of(name))
    assert tree.nash_conv(tree.strategy_of(make_player("rational", tree.game))) < 1e-12
    assert tree.nash_conv(tree.uniform()) > 0.01 or name == "gifts"


@pytest.mark.slow
def test_the_houses_mixed_bids_are_an_equilibrium_but_for_what_is_drawn():
    tree = Tree(game_of("bids"))
    found = tree.strategy_of(make_player("rational", tree.game), draws=2000)
    assert tree.nash_conv(found) < 0.02


@each_row("name", ["bids", "vickrey", "pirates", "truel", "gifts"])
def test_a_strategy_is_worth_what_its_player_gets(name):
    """At tables of the rules themselves, with chance as these draw it."""
    tree = Tree(game_of(name))
    strategy = drawn(tree)
    player = table_of(tree.game, tree.rows, strategy)
    paid = play_rules(tree.game, [player] * tree.game.players, range(4000)).payoffs
    far = np.abs(paid.mean(axis=1) - tree.worth(strategy)[0])
    assert (far <= 4.5 * paid.std(axis=1) / np.sqrt(4000) + 1e-9).all()


@each_row("name", ["bids", "pirates", "truel", "gifts"])
def test_a_strategy_is_worth_what_a_walk_through_the_rules_finds(name):
    """Node by node, with nothing of the tree but the names of its rows."""
    game, tree = game_of(name), Tree(game_of(name))
    strategy, rows, known = drawn(tree, 5), tree.rows, {}
    pasts = {-1: ()}
    for one in range(len(rows.seat)):
        past = pasts[int(rows.before[one])]
        own = range(*rows.first[one : one + 2])
        key = int(rows.seat[one]), past, tuple(rows.seen[one].tolist())
        known[key] = [(tuple(rows.moves[row].tolist()), strategy[row]) for row in own]
        pasts |= {row: (*past, key[2], tuple(rows.moves[row].tolist())) for row in own}

    def after_chance(state):
        nature = getattr(rooms.part(game.name, "theory"), "nature", None)
        parts = nature(game, state) if nature else [(1.0, state)]
        return [(float(np.ravel(likely)[0]), other) for likely, other in parts]

    def walk(state, past):
        value = np.zeros(game.players)
        for luck, dealt in after_chance(state):
            if not luck:
                continue
            asked, seen = game.asked(dealt)[:, 0], game.observe(dealt)[:, 0]
            seats = np.flatnonzero(asked).tolist()
            keys = [(seat, past[seat], tuple(seen[seat].tolist())) for seat in seats]
            for joint in product(*(known[key] for key in keys)):
                likely = luck * np.prod([chance for _, chance in joint])
                actions, later = np.zeros((game.players, 1), int), list(past)
                for (seat, before, own), (move, _) in zip(keys, joint, strict=True):
                    columns = slice(None) if len(move) > 1 else seat
                    actions[columns, 0] += move if len(move) > 1 else move[0]
                    later[seat] = (*before, own, move)
                after, outcome = game.step(dealt, actions)
                rest = 0 if after.over.all() else walk(after, later)
                value += likely * (outcome.rewards[:, 0] + rest)
        return value

    deals, chances = ({}, [1.0]) if name == "truel" else deals_of(game, 10**6)
    found = sum(
        chance * walk(
            game.begin({key: own[..., place : place + 1] for key, own in deals.items()}, (1,)),
            [()] * game.players,
        )
        for place, chance in enumerate(chances)
    )  # fmt: skip
    assert tree.worth(strategy)[0] == pytest.approx(found, abs=1e-9)


@each_row(("name", "seat"), [("gifts", 1), ("duel", 1), ("duel", 0)])
def test_a_best_response_is_the_best_of_all_pure_strategies(name, seat):
    game, parameters = SMALL[name]
    smaller = {"tokens": 1} if name == "gifts" else {}
    tree = Tree(rulebook(game, **{**parameters, **smaller}))
    strategy, rows = drawn(tree), tree.rows
    own = np.flatnonzero(rows.seat == seat)
    values = []
    for picks in product(*(range(rows.first[one], rows.first[one + 1]) for one in own)):
        pure = np.where(rows.seat[tree.owner] == seat, 0.0, strategy)
        pure[list(picks)] = 1
        values.append(tree.worth(pure)[0][seat])
    assert len(values) == {"gifts": 32, "duel": 2 ** len(own)}[name] >= 16
    replies, worth = tree.best_response(strategy)
    assert worth[seat] == pytest.approx(max(values), abs=1e-12)
    mixed = np.where(rows.seat[tree.owner] == seat, replies, strategy)
    assert tree.worth(mixed)[0][seat] == pytest.approx(worth[seat], abs=1e-12)


@each_row(
    ("game", "parameters", "player"),
    [
        ("sealed_bid_auction", BIDS, "shade:0.5"),
        ("beauty_contest", {"players": 2, "rounds": 2, "max": 8}, "best_response"),
        ("el_farol_bar", {"players": 3, "rounds": 3}, "level_k:2"),
    ],
)
def test_best_responses_are_worth_what_value_iteration_says(game, parameters, player):
    tree = Tree(rulebook(game, **parameters))
    _, worth = tree.best_response(tree.strategy_of(make_player(player, tree.game)))
    found = best_response(tree.game, 0, player)
    assert found.exact
    assert worth[0] == pytest.approx(found.value)


def test_seats_recall_what_they_saw_and_did():
    tree = Tree(game_of("gifts"))
    first, second = (np.flatnonzero(tree.depth == depth) for depth in (0, 1))
    assert (len(first), len(second)) == (2, 2 * 9)  # of each seat: one, and one after each pair
    assert {int(row) for row in tree.rows.before[second]} == {*range(tree.count)[:6]}


def test_where_no_room_says_what_chance_may_bring_deals_are_drawn():
    game = rulebook(
        "public_goods", players=2, rounds=1, tokens=4, initial_tokens="random", rand_min=1
    )
    assert Tree(game_of("bids")).deals == 0
    tree = Tree(game, deals=64)
    assert tree.deals == 64
    assert tree.levels[0].chance == pytest.approx(np.full(64, 1 / 64))


def test_a_game_that_is_too_large_is_refused():
    said = "has 104,060,401 joint moves up to step 1, and a tree holds 1,000,000: choose fewer"
    with pytest.raises(TooLarge, match=said):
        Tree(rulebook("beauty_contest", players=4, rounds=1))
    with pytest.raises(TooLarge, match="plans to divide 100 among 10, and a tree"):
        Tree(rulebook("pirate_game", players=10))


def test_a_player_whose_moves_are_none_of_the_trees_is_refused():
    tree = Tree(rulebook("bertrand_competition", players=2, rounds=2, price_grid=[6, 7, 8]))
    with pytest.raises(BadParameter, match="none of the 3 moves"):
        tree.strategy_of(make_player("fixed:5", tree.game))


# -- solvers ---------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:\\s*An even number")
@each_row("name", ["bar", "dollar"])
def test_nashpys_equilibria_are_those_of_the_tree(name):
    parameters = {"players": 2, "rounds": 1} | ({"golds": 4} if name == "dollar" else {})
    tree = Tree(rulebook(SMALL[name][0], **parameters))
    payoffs = normal_form(tree)
    found = [*nashpy.Game(*payoffs).support_enumeration(non_degenerate=False)]
    found = [np.concatenate(pair) for pair in found if np.isfinite(np.concatenate(pair)).all()]
    assert len(found) >= 3
    for strategy in found:
        assert tree.nash_conv(strategy) < 1e-9
    for kind in (CFR, FictitiousPlay):
        near = run(kind(tree, 1), 500)
        assert tree.nash_conv(near) < 0.02
        if name == "bar":  # the other has lines of equilibria
            assert min(np.abs(near - strategy).max() for strategy in found) < 0.05


@pytest.mark.filterwarnings("ignore:\\s*An even number")
def test_with_private_information_nashpys_equilibria_are_those_of_the_tree():
    """Of the game in which a bidder says before it knows its valuation what it bids at each."""
    tree = Tree(rulebook("sealed_bid_auction", **{**BIDS, "valuation_max": 2}))
    rows = tree.rows
    plans = [
        [
            *product(
                *(range(*rows.first[one : one + 2]) for one in np.flatnonzero(rows.seat == seat))
            )
        ]
        for seat in (0, 1)
    ]
    pure = np.zeros((2, 6, tree.count))
    for seat, own in enumerate(plans):
        for place, plan in enumerate(own):
            pure[seat, place, list(plan)] = 1
    payoffs = np.array([[tree.worth(one + other)[0] for other in pure[1]] for one in pure[0]])
    game = nashpy.Game(payoffs[..., 0], payoffs[..., 1])
    found = [pair for pair in game.support_enumeration() if np.isfinite(np.concatenate(pair)).all()]
    assert found
    for own, other in found:
        assert tree.nash_conv(own @ pure[0] + other @ pure[1]) < 1e-9
    profile = np.ones(6) / 6  # which is none
    gains = [(payoffs[..., 0] @ profile).max(), (profile @ payoffs[..., 1]).max()]
    mean = profile @ payoffs.transpose(2, 0, 1) @ profile
    mixed = profile @ pure[0] + profile @ pure[1]
    assert tree.nash_conv(mixed) == pytest.approx(sum(gains) - mean.sum())


@each_row(
    ("name", "iterations", "gap"),
    [("bids", 150, 1e-3), ("vickrey", 100, 5e-3), ("pirates", 100, 5e-3), ("truel", 60, 1e-3)],
)
def test_cfr_comes_to_an_equilibrium(name, iterations, gap):
    tree = Tree(game_of(name))
    solver = CFR(tree, 1)
    early = tree.nash_conv(run(solver, 2))
    found = run(solver, iterations)
    assert tree.nash_conv(found) < gap < early
    assert solver.measures()["tree/last_nash_conv"] >= 0


def test_in_a_game_of_constant_sum_all_come_to_the_same_value():
    tree = Tree(game_of("duel"))
    theirs = tree.worth(tree.strategy_of(make_player("rational", tree.game)))[0]
    assert theirs.sum() == pytest.approx(1)
    for kind in (CFR, FictitiousPlay):
        strategy = run(kind(tree, 1), 120)
        assert tree.nash_conv(strategy) < 0.02
        assert tree.worth(strategy)[0] == pytest.approx(theirs, abs=0.02)


def test_fictitious_play_has_the_averages_of_a_loop_over_a_matrix():
    tree = Tree(rulebook("el_farol_bar", players=2, rounds=1))
    payoffs, counts = normal_form(tree), np.full((2, 2), 0.5)
    for _ in range(50):
        means = counts / counts.sum(axis=1, keepdims=True)
        replies = [(payoffs[0] @ means[1]).argmax(), (means[0] @ payoffs[1]).argmax()]
        counts[[0, 1], replies] += 1
    assert run(FictitiousPlay(tree, 1), 50) == pytest.approx(counts.reshape(-1) / 51)


@each_row(("kind", "measure"), [(RegretMatching, "coarse"), (SwapRegretMatching, "correlated")])
def test_plays_by_regret_come_to_correlated_equilibrium(kind, measure):
    tree = Tree(rulebook("el_farol_bar", players=3, rounds=1))
    payoffs, solver = normal_form(tree), kind(tree, 1)
    run(solver, 1500)
    shares, gain = solver.counts / solver.counts.sum(), 0.0
    for seat, own in enumerate(payoffs):
        others = [np.take(own, [move], axis=seat) - own for move in range(2)]
        losses = [np.where(np.indices(own.shape)[seat] == move, 1, 0) for move in range(2)]
        if kind is RegretMatching:
            gain += max((shares * better).sum() for better in others)
        else:
            gain += sum(max((shares * b * lost).sum() for b in others) for lost in losses)
    assert solver.measures()[f"tree/{measure}"] == pytest.approx(gain)
    assert 0 <= gain < 0.5
    assert solver.average().reshape(3, 2).sum(axis=1) == pytest.approx(np.ones(3))


def test_regret_matching_needs_one_simultaneous_move():
    for name in ("gifts", "bids"):
        with pytest.raises(BadParameter, match="take cfr or fictitious_play"):
            normal_form(Tree(game_of(name)))


# -- scripts ---------------------------------------------------------------------------------------

GIFTS = {"game": "public_goods", "param": ["players=2", "rounds=1", "tokens=3"], "episodes": 4}
SCRIPTS = {
    "cfr": (cfr.train, cfr.CFROptions, GIFTS),
    "fictitious_play": (fictitious_play.train, fictitious_play.FictitiousOptions, GIFTS),
    "regret_matching": (regret_matching.train, regret_matching.RegretOptions, GIFTS),
    "tabular_q": (tabular_q.train, tabular_q.QOptions, {**GIFTS, "copies": 8, "begin": 20.0}),
}


@pytest.mark.parametrize("method", SCRIPTS)
def test_a_script_that_was_stopped_goes_on_and_its_table_is_seated(
    method, tmp_path, capsys, monkeypatch
):
    train, options, given = SCRIPTS[method]
    given = {**given, "steps": 240 if method in ("regret_matching", "tabular_q") else 20}
    whole = train(options(**given, folder=tmp_path / "whole"))
    player = f"tabular:{tmp_path / 'whole' / 'player.npz'}"
    assert player in capsys.readouterr().out

    own = Training.judge

    def judge(run, *args, **more):
        if run.step > given["steps"] / 2:
            signal.raise_signal(signal.SIGINT)
        return own(run, *args, **more)

    with monkeypatch.context() as patched:
        patched.setattr(Training, "judge", judge)
        with pytest.raises(KeyboardInterrupt) as stopped:
            train(options(**given, folder=tmp_path / "parts"))
    assert f"go on: python -m llm_games.baselines.training.{method}" in stopped.value.__notes__[0]
    with pytest.raises(BadParameter, match="has a training already"):
        train(options(**given, folder=tmp_path / "parts"))
    again = train(options(**given, folder=tmp_path / "parts", resume=True))
    assert again.payoffs.tolist() == whole.payoffs.tolist()
    with (
        np.load(tmp_path / "whole" / "player.npz") as one,
        np.load(tmp_path / "parts" / "player.npz") as other,
    ):
        for name in {*one.files} - {"player.json"}:
            assert one[name].tolist() == other[name].tolist()
    if method != "tabular_q":
        assert curve(tmp_path / "parts")["tree/nash_conv"][1, -1] < 3  # of 6 at most
    parameters = {"players": 2, "rounds": 1, "tokens": 3}
    seats = [lg.player(player), lg.player("rational")]
    assert np.isfinite(lg.play("public_goods", seats, seed=1, **parameters).payoffs).all()


@pytest.mark.slow
def test_q_learning_finds_the_best_proposal(tmp_path):
    options = tabular_q.QOptions(
        game="pirate_game", param=["players=3", "gold=5"], seat="0", gamma=1.0, rate=0.1,
        steps=12_000, episodes=2, folder=tmp_path,
    )  # fmt: skip
    assert tabular_q.train(options).payoff == 4  # as the rational proposer's


def test_one_table_can_learn_in_all_seats(tmp_path):
    options = tabular_q.QOptions(
        game="bertrand_competition", param=["players=2", "rounds=4", "price_grid=[5,6,7,8]"],
        column=["seat", "price_0", "price_1"], every=True, copies=8, steps=400, episodes=1,
        folder=tmp_path,
    )  # fmt: skip
    tabular_q.train(options)
    model = load_table(tmp_path / "player.npz").model
    assert model.states.shape[1] == 3
    assert {0.0, 1.0} == {*model.states[:, 0].tolist()}


def test_a_column_that_is_not_seen_is_refused(tmp_path):
    with pytest.raises(UnknownName, match="there is no column of public_goods 'rouns'"):
        tabular_q.train(tabular_q.QOptions(**GIFTS, column=["rouns"], folder=tmp_path))


# -- players ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def truel(tmp_path_factory):
    tree = Tree(game_of("truel"))
    player = table_of(tree.game, tree.rows, drawn(tree))
    return tree, player, save_table(player, tmp_path_factory.mktemp("tables") / "truel")


@each_row("name", ["truel", "pirates", "bids"])
def test_alone_and_in_a_batch_a_table_plays_the_same(name):
    tree = Tree(game_of(name))
    player = table_of(tree.game, tree.rows, drawn(tree))
    together = play_rules(tree.game, [player] * tree.game.players, range(20)).payoffs
    alone = [lg.play(tree.game, [player] * tree.game.players, seed=s).payoffs for s in range(20)]
    assert together.T.tolist() == np.array(alone).tolist()


def test_a_table_that_was_saved_plays_as_before(truel):
    tree, player, path = truel
    again = make_player(f"tabular:{path}", tree.game)
    paid = [play_rules(tree.game, [one] * 3, range(50)).payoffs for one in (player, again)]
    assert paid[0].tolist() == paid[1].tolist()
    sure = make_player(f"tabular:{path}", tree.game, deterministic=True)
    assert set(sure.chances.tolist()) == {0.0, 1.0}


@each_row(
    ("game", "parameters", "said"),
    [
        ("public_goods", {}, "trained for battle_royale with 3 players, not for public_goods"),
        ("battle_royale", {"players": 4}, "with 3 players, not for battle_royale with 4"),
        ("battle_royale", {**SMALL["truel"][1], "max_shots": 5}, "=4, not with max_shots=5"),
        ("battle_royale", {**SMALL["truel"][1], "hit_rates": (9, 9, 9)}, "hit_rates"),
    ],
)  # fmt: skip
def test_a_table_is_refused_elsewhere(truel, game, parameters, said):
    with pytest.raises(BadParameter, match=said):
        make_player(f"tabular:{truel[2]}", rulebook(game, **parameters))


def written(path, about=None, arrays=None):
    with zipfile.ZipFile(path) as file:
        said = json.loads(file.read("player.json"))
    with np.load(path) as file:
        own = {name: file[name] for name in file.files if name != "player.json"}
    content = BytesIO()
    np.savez(content, **{**own, **(arrays or {})})
    with zipfile.ZipFile(content, "a") as file:
        file.writestr("player.json", json.dumps(about(said) if about else said))
    other = path.with_name("other.npz")
    other.write_bytes(content.getvalue())
    return other


def test_a_table_of_values_is_refused_elsewhere(tmp_path):
    given = {**GIFTS, "copies": 8, "steps": 40, "folder": tmp_path}
    tabular_q.train(tabular_q.QOptions(**given))
    path, same = tmp_path / "player.npz", {"players": 2, "rounds": 1, "tokens": 3}
    make_player(f"tabular:{path}", rulebook("public_goods", **same))
    for other, said in [
        ({"tokens": 4}, "with tokens=3, not with tokens=4"),
        ({"rounds": 2}, "with rounds=1, not with rounds=2"),
        ({"players": 3}, "with 2 players, not for public_goods with 3"),
    ]:
        with pytest.raises(BadParameter, match=said):
            make_player(f"tabular:{path}", rulebook("public_goods", **same | other))
    table = load_table(path).model
    for name, broken, said in [
        ("values", table.values[:, 1:], "has values of 3 actions, and public_goods has 4"),
        ("values", table.values * np.nan, "finite"),
        ("states", table.states[:, 1:], "cannot be read"),
        ("columns", table.columns + 9, "cannot be read"),
        ("columns", table.columns + 0.5, "cannot be read"),
    ]:
        other = written(path, arrays={name: broken})
        with pytest.raises(BadParameter, match=said):
            make_player(f"tabular:{other}", rulebook("public_goods", **same))


def damaged(array, how):
    array = array.copy()
    if how in ("much", "negative"):
        array.reshape(-1)[array.size // 2] = 10**6 if how == "much" else -5
    cut = {"short": array[:-1], "none": array[:0], "wide": array[None], "words": array.astype(str)}
    return cut.get(how, array)


@each_row("how", ["short", "none", "wide", "words", "much", "negative"])
@each_row("name", ["seat", "before", "first", "moves", "seen", "chances"])
def test_arrays_that_are_none_are_refused(truel, name, how):
    """Or the table still plays, as where a number that is seen is another."""
    tree, player, path = truel
    own = {**player.rows._asdict(), "chances": player.chances}[name]
    other = written(path, arrays={name: damaged(own, how)})
    plays = {("seen", "much"), ("seen", "negative"), ("before", "much"), ("chances", "words")}
    if (name, how) in plays:
        players = [make_player(f"tabular:{other}", tree.game)] * 3
        assert np.isfinite(play_rules(tree.game, players, range(5)).payoffs).all()
        return
    with pytest.raises(BadParameter):
        make_player(f"tabular:{other}", tree.game)


def test_a_file_of_which_a_part_is_lost_says_so(truel, tmp_path):
    """Whatever its unzipping says to it."""
    tree, _, path = truel
    whole, rng = path.read_bytes(), np.random.default_rng(1)
    for place in range(0, len(whole), 23):
        broken = bytearray(whole)
        broken[place] ^= int(rng.integers(1, 256))
        (tmp_path / "broken.npz").write_bytes(bytes(broken) if place % 2 else whole[:place])
        with suppress(BadParameter):  # some bytes do not matter
            make_player(f"tabular:{tmp_path / 'broken.npz'}", tree.game)


@pytest.mark.parametrize("how", ["cut", "other"])
def test_a_state_that_is_not_whole_or_of_another_tree_is_refused(how, tmp_path):
    given = {**GIFTS, "folder": tmp_path}
    cfr.train(cfr.CFROptions(**given, steps=3))
    state = tmp_path / "state"
    if how == "cut":
        state.write_bytes(state.read_bytes()[:90])
    else:
        np.savez(content := BytesIO(), step=3, regrets=np.zeros(3), played=np.zeros(3))
        state.write_bytes(content.getvalue())
    with pytest.raises(BadParameter, match="not whole" if how == "cut" else "of another tree"):
        cfr.train(cfr.CFROptions(**given, steps=6, resume=True))


@pytest.mark.parametrize("method", SCRIPTS)
def test_a_full_disk_keeps_the_training(method, tmp_path, monkeypatch):
    train, options, given = SCRIPTS[method]
    given = {**given, "steps": 160, "folder": tmp_path / "a"}
    keep, synced = Training.keep, os.fsync
    held = []

    def fill(file):
        if held:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        synced(file)

    def kept(run):
        keep(run)
        held.extend([run.step] if run.step > 40 else [])  # from here on there is no room

    with monkeypatch.context() as patched:
        patched.setattr(Training, "keep", kept)
        patched.setattr(os, "fsync", fill)
        with pytest.raises(DiskFull, match=r"no room is left in .*a \(") as fault:
            train(options(**given))
    assert json.loads((tmp_path / "a" / "options.json").read_bytes())["game"] == "public_goods"
    assert not [*(tmp_path / "a").glob(".*.part")]
    assert f"(saved at step {held[0]}; go on: python -m" in fault.value.__notes__[0]
    whole = train(options(**{**given, "folder": tmp_path / "b"}))
    assert train(options(**given, resume=True)).payoffs.tolist() == whole.payoffs.tolist()


def test_a_file_that_is_no_table_says_so(truel, tmp_path):
    tree, _, path = truel
    with pytest.raises(BadParameter, match="there is no file"):
        load_table(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("no zip")
    with pytest.raises(BadParameter, match="no table that save_table wrote"):
        load_table(tmp_path / "text.npz")
    with pytest.raises(BadParameter, match="install that, or later"):
        load_table(written(path, lambda said: {**said, "format": 2}))
    older = written(path, lambda said: {**said, "trained": {**said["trained"], "edition": 1}})
    with pytest.raises(BadParameter, match="edition 1 of battle_royale's rules"):
        make_player(f"tabular:{older}", tree.game)
    objects = np.array([Path("x"), None], object)  # would have to be unpickled
    with pytest.raises(BadParameter, match="no table that save_table wrote"):
        load_table(written(path, arrays={"chances": objects}))


def test_chances_that_are_none_are_refused(truel):
    _, player, path = truel
    for broken in (np.nan, -1.0, 0.5):
        chances = player.chances.copy()
        chances[:3] = broken
        with pytest.raises(BadParameter, match="add up to 1"):
            load_table(written(path, arrays={"chances": chances}))


def test_where_a_table_was_never_the_nearest_set_stands_for_it():
    """One of some deals meets others; one solved on a grid meets prices beside it."""
    game = rulebook("bertrand_competition", players=2, rounds=2, price_grid=[5, 6, 7, 8])
    tree = Tree(game)
    player = table_of(game, tree.rows, run(FictitiousPlay(tree, 1), 20))
    paid = play_rules(game, [player, "fixed:6.4"], range(3)).payoffs
    assert np.isfinite(paid).all()
    assert (paid[0] > 0).all()


# -- figures ---------------------------------------------------------------------------------------


def test_the_results_are_of_all_games():
    held = {
        (point.game, point.method, point.seed) for point in read(tabular.SolverPoint, tabular.FILE)
    }
    seeds = tabular.SETTINGS["seeds"]
    for game in tabular.SETTINGS["games"]:
        assert {(game["name"], method, 1) for method in ("rational", *tabular.SOLVERS)} <= held
    assert {seed for _, method, seed in held if method in tabular.DRAWN} == {*seeds}
    learned = {(row.experiment, row.seed) for row in read(training.TrainingResult, tabular.LEARNED)}
    assert learned == {(one["name"], s) for one in tabular.SETTINGS["learners"] for s in seeds}
