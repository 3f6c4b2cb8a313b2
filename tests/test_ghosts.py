"""Ghosts: recorded players sit down again, exactly, by a small model, in batches, from files."""

import json
import pickle
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playing import QUICK, each_row

import llm_games as lg
from llm_games.baselines.best_response import best_response
from llm_games.baselines.learner import learner, learners
from llm_games.baselines.training.harness import evaluate
from llm_games.benchmarks.ghosts import mixture
from llm_games.benchmarks.ghosts.answer_classes import VOTES, AnswerLimits, Answers
from llm_games.benchmarks.ghosts.fit import find, played
from llm_games.benchmarks.ghosts.ghost_model import Ghost, NotAGhost
from llm_games.benchmarks.ghosts.ghost_policy import GhostAddress
from llm_games.benchmarks.ghosts.history import GhostMemory
from llm_games.benchmarks.ghosts.mixture import (
    MIXTURE,
    FitData,
    Forest,
    GhostModel,
    LastOwn,
    Marginal,
    Nearest,
    judged,
    measured,
    weights_of,
)
from llm_games.benchmarks.ghosts.refit import refit
from llm_games.benchmarks.record.editions import OtherEdition
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.show import cli
from llm_games.errors import BadParameter, UnknownName
from llm_games.game_rooms import ROOMS
from llm_games.registry import rulebook
from llm_games.table import Table
from llm_games.table_batch import Tables
from llm_games.view import Sight
from llm_games.wrappers.batch import BatchSeats
from llm_games.wrappers.policy import Decision, RandomPolicy
from llm_games.wrappers.seats import Seats, moves_of

EPISODES = 8


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(mixture, "TREES", 8)


def rules(name, **more):
    return rulebook(name, **{**QUICK[name], **more})


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    path, games = tmp_path_factory.mktemp("ghosts") / "all.db", []
    for name in sorted(ROOMS):
        game = rules(name)
        last = "random" if game.turns else "best_response"
        seats = ["random"] * (game.players - 1) + [last]
        games.append({"game": name, "params": QUICK[name], "seats": seats})
    raw = {"title": "all", "seed": 5, "order": "fixed", "episodes": EPISODES, "games": games}
    return lg.run(raw, path).path


def seated(path, game):
    return [lg.player(f"ghost:{path}#{seat}", game) for seat in range(game.players)]


every = pytest.mark.parametrize("name", sorted(ROOMS))


# -- in a seat -------------------------------------------------------------------------------------


@every
def test_ghosts_in_all_seats_play_a_recorded_episode_again(record, name):
    game = rules(name)
    with Records.open_readonly(record) as records:
        rows = [row for row in records.episodes() if row.game.label == name]
        for row in rows:
            again = lg.play(game, seated(record, game), seed=row.seed)
            assert again.records == [step.record for step in records.steps(row.id)]
    assert len(rows) == EPISODES


@every
def test_other_episodes_are_legal_and_a_batch_equals_a_loop(record, name):
    game, many = rules(name), 5
    players = seated(record, game)
    alone = [lg.play(game, players, seed=100 + i) for i in range(many)]
    assert not any(step.outcome.broke.any() for one in alone for step in one.steps)
    tables = Tables(game, many)
    tables.reset([100 + i for i in range(many)])
    sits = np.broadcast_to(np.arange(game.players)[:, None], (game.players, many)).copy()
    seats = BatchSeats(tables, players, sits)
    seats.start(np.ones(many, bool))
    for step in range(max(one.length for one in alone)):
        outcome = tables.step(seats.ask_now(game.asked(tables.state)))
        for i, one in enumerate(alone):
            if step < one.length:
                there = one.steps[step].outcome.record["actions"]
                assert (outcome.record["actions"][..., i] == there).all()
    assert tables.state.over.all()


def test_what_was_never_recorded_is_answered_by_the_model_and_what_was_as_recorded(record):
    game = rules("beauty_contest")
    own = played(find(record, game, 0))
    first = own.rows.last < 0
    recorded = set(own.action[first].tolist())
    ghost = lg.player(f"ghost:{record}#0", game)
    begun = [lg.play(game, [ghost] * 4, seed=s).steps[0] for s in range(40)]
    drawn = {d.action for step in begun for d in step.decisions.values()}
    assert drawn <= recorded
    assert len(drawn) > len(recorded) / 2
    # A first round that nobody saw: other situations follow, and answers beyond the recorded ones.
    later = [lg.play(game, [ghost] * 4, seed=s).steps[3] for s in range(60)]
    assert len({d.action for step in later for d in step.decisions.values()}) > 20


@every
def test_how_likely_each_answer_is(record, name):
    game = rules(name)
    if game.division is not None:
        pytest.skip("plans are not foretold")
    ghost, many = seated(record, game)[-1].ghost(game), 4000
    state = game.reset(99)
    seat = int(game.asked(state).argmax())
    cells = (np.full(many, seat),)
    sight = Sight(game, state)
    numbers, limits = sight.numbers[cells], AnswerLimits.of(sight, cells)
    for begun in (0, 7):  # as in no record: some other past
        memory = GhostMemory.new(np.arange(many))._replace(key=np.full(many, begun, np.uint64))
        actions, chances, after = ghost.likely(numbers, limits, memory)
        drawn, then = ghost.decide(numbers, limits, memory)
        assert (then.last == ghost.answers.classes(drawn, limits)).all()
        assert np.allclose(chances.sum(axis=1), 1)
        assert (after.key == memory.after_observation(numbers).key).all()
        for action in np.unique(drawn).tolist():
            likely = chances[0][actions[0] == action].sum()
            wide = 5 * np.sqrt(likely * (1 - likely) / many) + 1e-9
            assert abs((drawn == action).mean() - likely) <= wide, action


TREES = {  # where a tree is small: moves together, one after another, in shares of what is left
    "el_farol_bar": ({"players": 3, "rounds": 3}, "best_response"),
    "battle_royale": ({"players": 3, "max_shots": 4}, "random"),
    "public_goods": ({"players": 2, "rounds": 3, "tokens": 3, "endowment": "carry"}, "random"),
}


@pytest.mark.parametrize("name", TREES)
def test_the_best_response_to_ghosts_is_exact_in_a_tree(tmp_path, name):
    params, player = TREES[name]
    seats = ["random", *[player] * (params["players"] - 1)]
    raw = {"title": name, "games": [{"game": name, "params": params, "seats": seats}]}
    path = lg.run(raw | {"seed": 1, "order": "fixed", "episodes": 30}, tmp_path / "own.db").path
    game, seeds = rulebook(name, **params), range(5000, 9000)
    ghosts = [f"ghost:{path}#{seat}" for seat in range(1, game.players)]
    reply = best_response(game, 0, ghosts)
    assert reply.exact
    assert "tree" in reply.how
    assert (reply.error, reply.upper) == (0, reply.value)
    assert set(reply.policy.rows.seat) == {0}
    for who in (reply.policy, "random", "rational"):
        paid = evaluate(game, [who, *ghosts], seeds)[0]
        wide = 4 * paid.std() / np.sqrt(len(paid)) + 1e-9
        assert paid.mean() <= reply.value + wide
        assert who != reply.policy or paid.mean() >= reply.value - wide


def test_chosen_actions_alone_are_bounds(record):
    game = rules("el_farol_bar")
    assert not best_response(game, 0, seated(record, game)[1:], actions=[0], games=20).exact


def test_where_ghosts_have_no_tree_there_are_bounds(record):
    for name, more in (("divide_dollar", {}), ("pirate_game", {})):
        game = rules(name, **more)
        players = seated(record, game)
        reply = best_response(game, 0, players[1:], games=20)
        assert not reply.exact
        assert "bounds" in reply.how


def test_a_ghost_among_others_and_as_opponent_of_a_learner(record):
    env = learner("public_goods", opponents=f"ghost:{record}#0", **QUICK["public_goods"])
    observed = [env.reset(seed=7)[0]]
    over = False
    while not over:
        seen, _, over, *_ = env.step(env.action_space.sample())
        observed.append(seen)
    assert len(observed) == 6
    game = rules("public_goods")
    mixed = [lg.player(n, game) for n in ("rational", f"ghost:{record}#2", f"ghost:{record}#0")]
    assert lg.play(game, mixed, seed=1).length == 5


@each_row("name", ["public_goods", "english_auction"])
def test_copies_with_ghosts_are_single_environments(record, name):
    opponents = [f"ghost:{record}#{seat}" for seat in range(1, rules(name).players)]
    many = learners(name, 3, opponents=opponents, **QUICK[name])
    alone = [learner(name, opponents=opponents, **QUICK[name]) for _ in range(3)]
    seen, _ = many.reset(seed=4)
    single = [env.reset(seed=4 + i)[0] for i, env in enumerate(alone)]
    over = np.zeros(3, bool)
    while not over.any():
        assert (numbers_of(seen) == np.stack([numbers_of(one) for one in single])).all()
        seen, rewards, over, *_ = many.step(np.ones(3, int))
        stepped = [env.step(1) for env in alone]
        single = [one[0] for one in stepped]
        assert rewards.tolist() == [one[1] for one in stepped]
        assert over.tolist() == [one[2] for one in stepped]


def numbers_of(observation):
    return observation["observation"] if isinstance(observation, dict) else observation


def test_ghosts_survive_pickling_in_the_middle_of_an_episode(record):
    game = rules("english_auction")
    policy = lg.player(f"ghost:{record}#0", game)
    table = Table(game)
    table.reset(3)
    seats = Seats(table, dict.fromkeys(range(3), policy))
    seats.start()
    table.step(moves_of(seats.ask_now()))
    copy = pickle.loads(pickle.dumps(seats))
    for one in (seats, copy):
        while not one.table.state.over:
            one.table.step(moves_of(one.ask_now()))
    assert (seats.table.steps, int(seats.table.state.round)) == (
        copy.table.steps,
        int(copy.table.state.round),
    )


class Sloppy(RandomPolicy):
    name = "sloppy"

    def act(self, view, memory):
        decision, memory = super().act(view, memory)
        return (Decision(999) if memory[1] % 3 == 0 else decision), memory


def test_answers_against_the_rules_are_no_answers(tmp_path):
    game = {"game": "public_goods", "params": QUICK["public_goods"], "seats": [Sloppy]}
    path = lg.run({"title": "sloppy", "episodes": 4, "games": [game]}, tmp_path / "a.db").path
    ghost = GhostAddress(path).ghost(judge=True)
    assert len(ghost.play.action) == 4 * 3 * 4  # four of five rounds
    assert ghost.play.left_out == 4 * 3
    assert ghost.play.action.max() <= 20
    assert "12 decisions without a legal answer are left out" in [*ghost.doubts()]
    again = lg.play(rules("public_goods"), [lg.player(f"ghost:{path}")] * 3, seed=1)
    assert not any(step.outcome.broke.any() for step in again.steps)


def test_plans_that_were_never_recorded_are_drawn_from_all(tmp_path):
    """With six pirates a plan for four comes only after two were refused."""
    params = {"players": 6, "gold": 20}
    seats = ["random", "random", *["fixed:accept"] * 4]
    game = {"game": "pirate_game", "params": params, "seats": seats}
    raw = {"title": "plans", "order": "fixed", "episodes": 24, "games": [game]}
    path = lg.run(raw, tmp_path / "a.db").path
    rulebook_ = rulebook("pirate_game", **params)
    ghost = lg.player(f"ghost:{path}#2", rulebook_)
    refused = [*[lg.player("random")] * 2, ghost, *[lg.player("fixed:reject")] * 3]
    plans = [
        step.decisions[2].action
        for seed in range(12)
        for step in lg.play(rulebook_, refused, seed=seed).steps
        if 2 in step.decisions and isinstance(step.decisions[2].action, tuple)
    ]
    assert len(plans) > 5
    assert all(sum(plan) == 20 and plan[:2] == (0, 0) for plan in plans)


# -- the small model -------------------------------------------------------------------------------


def made_up(episodes=16, length=40, classes=3, seed=1):
    """Answers that follow a number seen: mostly the class of its third, else any."""
    rng = np.random.default_rng(seed)
    seen = rng.random((episodes * length, 2)).astype(np.float32)
    right = np.minimum((seen[:, 0] * classes).astype(int), classes - 1)
    answer = np.where(rng.random(len(seen)) < 0.9, right, rng.integers(classes, size=len(seen)))
    episode = np.repeat(np.arange(episodes), length)
    last = np.where(np.arange(len(seen)) % length == 0, -1, np.roll(answer, 1))
    return FitData(seen, last, answer, episode, np.ones(len(seen)))


def test_parts_by_hand():
    rows = FitData(
        np.zeros((4, 1), np.float32), np.array([-1, 0, 0, 1]), np.array([0, 0, 1, 1]),
        np.array([0, 0, 1, 1]), np.array([1.0, 1, 1, 3]),
    )  # fmt: skip
    shares = Marginal(rows, 3).chances(rows.features, rows.last)[0]
    assert shares == pytest.approx([(2 + 1 / 3) / 7, (4 + 1 / 3) / 7, (1 / 3) / 7])
    after = LastOwn(rows, 3)
    first, zero, one, two = after.chances(np.zeros((4, 1)), np.array([-1, 0, 1, 2]))
    assert first == pytest.approx((np.array([1, 0, 0]) + 2 * shares) / 3)
    assert zero == pytest.approx((np.array([1, 1, 0]) + 2 * shares) / 4)
    assert one == pytest.approx((np.array([0, 3, 0]) + 2 * shares) / 5)
    assert two == pytest.approx(shares)
    near = Nearest(made_up(), 3)
    assert near.chances(np.array([[0.1, 0.5]], np.float32), None)[0].argmax() == 0


def test_a_number_that_never_changes_says_nothing_of_what_is_near():
    seen = np.random.default_rng(0).integers(0, 2, (353, 3)).astype(np.float32)
    answer = seen[:, 0].astype(np.int64)
    number = np.full((353, 1), 1.1, np.float32)
    assert number.std() > 0  # by rounding
    ones, both = np.ones(353, np.int64), (seen, np.concatenate([seen, number], axis=1))
    rows = [Nearest(FitData(x, -ones, answer, ones, ones), 2).chances(x, -ones) for x in both]
    np.testing.assert_array_equal(*rows)
    np.testing.assert_array_equal(rows[0].argmax(axis=1), answer)


def test_the_mixture_finds_what_answers_follow_and_nothing_is_impossible():
    rows = made_up()
    said = measured(rows, 4)  # one class is never seen
    assert said[MIXTURE].loss < said[LastOwn.name].loss - 0.4
    assert said[MIXTURE].right > 0.85
    assert said[MIXTURE].off < 0.2
    fitted = GhostModel.fitted(rows, 4)
    chances = fitted.chances(rows.features, rows.last)
    assert chances.min() > 0
    assert chances.sum(axis=1) == pytest.approx(1)
    assert sum(fitted.weights) == pytest.approx(1)


def test_what_says_nothing_gets_no_weight():
    rows = made_up()
    noise = np.random.default_rng(2).random(rows.features.shape).astype(np.float32)
    weights = weights_of(rows._replace(features=noise), 3)
    assert sum(weights.values()) == pytest.approx(1)
    assert weights[Marginal.name] + weights[LastOwn.name] > 0.5


def test_what_an_episode_shares_is_no_help_in_another():
    """A number that names the episode would foretell all, were rows of one split up."""
    rng = np.random.default_rng(3)
    episode = np.repeat(np.arange(24), 20)
    answer = rng.integers(4, size=24)[episode]
    seen = episode[:, None].astype(np.float32)
    rows = FitData(seen, np.full(len(episode), -1), answer, episode, np.ones(len(episode)))
    said = measured(rows, 4)
    assert said[MIXTURE].loss > 1.2  # of log(4) = 1.39
    assert said[MIXTURE].right < 0.5


def test_judged_by_hand():
    chances = np.array([[0.8, 0.2], [0.8, 0.2], [0.4, 0.6], [0.4, 0.6]])
    said = judged(chances, np.array([0, 1, 1, 1]))
    assert said.loss == pytest.approx(-np.log([0.8, 0.2, 0.6, 0.6]).mean())
    assert said.right == 0.75
    assert said.off == pytest.approx(abs(1.6 - 1) / 4 + abs(1.2 - 2) / 4)


def test_trees_without_scikit_learn_say_what_they_said_with_it(monkeypatch):
    rows = made_up()
    grown, kept = [], mixture.forester()
    monkeypatch.setattr(
        mixture, "forester", lambda: lambda *a, **k: grown.append(kept(*a, **k)) or grown[-1]
    )
    forest = Forest.grown(rows, 4)
    theirs = grown[0].predict_proba(rows.features)
    assert forest.chances(rows.features, rows.last)[:, :3] == pytest.approx(theirs, abs=1e-6)
    monkeypatch.setattr(mixture, "forester", lambda: None)
    assert Forest.grown(rows, 4) is None
    said = measured(rows, 4)
    assert said.keys() == {Marginal.name, LastOwn.name, Nearest.name, MIXTURE}
    again = Forest(4, forest.arrays)
    assert (again.chances(rows.features, None) == forest.chances(rows.features, None)).all()


@each_row(
    ("name", "more", "limits", "actions", "classes"),
    [
        ("beauty_contest", {}, (0, 100), [0, 37, 100], [0, 37, 100]),
        ("sealed_bid_auction", {}, (0, 150), [0, 75, 150], [0, 50, 100]),
        ("english_auction", {}, (500, 4500), [-1, 500, 4500, 2500], [0, 1, 101, 51]),
        ("english_auction", {}, (500, 400), [-1], [0]),
        ("battle_royale", {"players": 4}, (-1, 3), [-1, 0, 3], [0, 1, 4]),
    ],
)
def test_classes_of_answers(name, more, limits, actions, classes):
    answers, many = Answers(rulebook(name, **more)), len(actions)
    low, high = (np.full(many, limit) for limit in limits)
    mask = np.ones((many, 5), bool) if name == "battle_royale" else None
    given = AnswerLimits(low, high, mask)
    assert answers.classes(np.array(actions), given).tolist() == classes
    assert answers.actions(np.array(classes), given).tolist() == actions
    assert answers.legal(given)[np.arange(many), classes].all()


# -- its file --------------------------------------------------------------------------------------


def test_a_file_has_all_of_a_ghost(record, tmp_path, monkeypatch):
    ghost = GhostAddress.read(f"{record}#divide_dollar#0").ghost(judge=True)
    path = ghost.save(tmp_path / "a.ghost")
    monkeypatch.setattr(mixture, "forester", lambda: lambda *_, **__: pytest.fail("grown"))
    again = Ghost.load(path)
    assert again.plain() == ghost.plain()
    seen, last = ghost.play.rows.features, ghost.play.rows.last
    assert (again.mixture.chances(seen, last) == ghost.mixture.chances(seen, last)).all()
    game = rules("divide_dollar")
    of_record, of_file = (lg.player(f"ghost:{p}#0", game) for p in (record, path))
    for seed in range(5):
        one, other = (lg.play(game, [p] * 3, seed=seed) for p in (of_record, of_file))
        assert one.records == other.records


@pytest.mark.parametrize("spoil", [b"PK and nothing", b"", b"bits"])
def test_damaged_files(record, tmp_path, spoil):
    path = tmp_path / "a.ghost"
    GhostAddress.read(f"{record}#divide_dollar#0").ghost().save(path)
    whole = path.read_bytes()
    if spoil == b"bits":  # amid what is compressed
        spoil = whole[:200] + bytes(byte ^ 0x55 for byte in whole[200:220]) + whole[220:]
    path.write_bytes(spoil or whole[: len(whole) // 2])
    with pytest.raises(NotAGhost, match=r"no ghost that can be read.*llm-games ghost fit"):
        lg.player(f"ghost:{path}", rules("divide_dollar"))


def test_a_file_of_other_rules_or_columns_is_refused(record, tmp_path, monkeypatch):
    path = GhostAddress.read(f"{record}#divide_dollar#0").ghost().save(tmp_path / "a.ghost")
    kind = type(rules("divide_dollar"))
    monkeypatch.setattr(kind, "edition", kind.edition + 1)
    with pytest.raises(NotAGhost, match=r"other rules of divide_dollar \(edition"):
        Ghost.load(path)
    with pytest.raises(OtherEdition, match="the rules of divide_dollar have changed"):
        played(find(record, rules("divide_dollar"), 0))


# -- what cannot be --------------------------------------------------------------------------------


@each_row(
    ("name", "game", "error", "said"),
    [
        ("none.db#0", rules("public_goods"), NotAGhost, "there is no file none.db"),
        ("{}#0", rules("public_goods", rounds=6), BadParameter, "rounds is 5 there, 6 here"),
        ("{}#0", rules("public_goods", players=4), BadParameter, "players is 3 there, 4 here"),
        ("{}#7", rules("public_goods"), UnknownName, "no seat 7.*0 random, 1 random, 2 best_r"),
        ("{}", rules("public_goods"), BadParameter, "say whose ghost.*2 best_response"),
        ("{}#public_gods#0", rules("public_goods"), UnknownName, "did you mean 'public_goods'"),
        ("{}#public_goods#0", rules("divide_dollar"), BadParameter, "it is a record of public_goo"),
        ("{}#1", rules("beauty_contest"), None, ""),
        ("{}#beauty_contest#1", rules("beauty_contest"), None, ""),
    ],
)
def test_what_a_name_cannot_mean(record, name, game, error, said):
    name = f"ghost:{name.format(record)}"
    if error is None:
        assert lg.player(name, game).name == name
        return
    with pytest.raises(error, match=said):
        lg.player(name, game)


def test_a_ghost_sits_where_it_was_recorded_if_seats_differ(record):
    game = rules("water_allocation")
    assert game.seats_differ
    policy = lg.player(f"ghost:{record}#0", game)
    with pytest.raises(BadParameter, match=r"recorded at seat 0, 1 of water_allocation, not at 2"):
        policy.start(game, 2, 0)
    with pytest.raises(BadParameter, match="not at 2"):
        policy.start_batch(game, np.ones((3, 4), bool), np.zeros((3, 4), np.int64))
    with pytest.raises(BadParameter, match="a ghost of water_allocation, not of public_goods"):
        Ghost.check(policy.ghost(game), rules("public_goods"), 0)


def test_a_ghost_sits_at_a_table_with_talk(record, tmp_path):
    """It says nothing there, and sees the game inside."""
    name, talk = f"ghost:{record}#beauty_contest#0", {"talk": {"turns": 1}}
    assert lg.player(name, rules("beauty_contest", **talk)).name == name
    game = {"game": "beauty_contest", "params": QUICK["beauty_contest"] | talk}
    game["seats"] = [name, *["random"] * (rules("beauty_contest").players - 1)]
    assert lg.run({"title": "t", "episodes": 1, "games": [game]}, tmp_path / "a.db").games


def test_too_little_of_a_player(tmp_path):
    game = {"game": "public_goods", "params": {"players": 3, "rounds": 9}, "seats": ["random"]}
    raw = {"title": "a", "episodes": 1, "games": [game]}
    path = lg.run(raw, tmp_path / "a.db").path
    said = "27 decisions in 1 episodes, of at least 20 in 2; more of them: llm-games resume"
    with pytest.raises(BadParameter, match=said):
        lg.player(f"ghost:{path}", rulebook("public_goods", **game["params"]))
    lg.resume(path, episodes=2)
    ghost = GhostAddress(path).ghost(judge=True)
    assert "54 decisions are few: 200 or more foretell better" in [*ghost.doubts()]


def test_a_record_that_was_changed_is_no_record(tmp_path):
    game = {"game": "public_goods", "params": QUICK["public_goods"], "seats": ["random"]}
    path = lg.run({"title": "a", "episodes": 4, "games": [game]}, tmp_path / "a.db").path
    with sqlite3.connect(path) as database:
        database.execute("UPDATE decisions SET action = 20 - action WHERE step = 2")
    database.close()
    with pytest.raises(BadParameter, match="episode 0, step 2 plays otherwise than it was"):
        lg.player(f"ghost:{path}", rules("public_goods"))


# -- experiments and commands ----------------------------------------------------------------------


@pytest.fixture
def command(monkeypatch, capsys):
    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["llm-games", *arguments])
        try:
            cli.main()
        except SystemExit as end:
            return end.code, *capsys.readouterr()
        return 0, *capsys.readouterr()

    return call


@pytest.fixture
def fitted(record, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("one.ghost")
    return GhostAddress.read(f"{record}#beauty_contest#0").ghost(judge=True).save(path)


def test_ghosts_in_an_experiment(record, fitted, command):
    toml = (
        'title = "g"\nepisodes = 2\n[[games]]\ngame = "beauty_contest"\n'
        f"params = {json.dumps(QUICK['beauty_contest']).replace(':', ' =')}\n"
        f'seats = ["ghost:one.ghost", "ghost:{record}#3", "ghost:one.ghost#1", "random"]\n'
    )
    Path("g.toml").write_text(toml)
    code, _, err = command("run", "g.toml", "--db", "g.db", "-q")
    assert (code, err) == (0, "")
    assert command("replay", "g.db")[0] == 0
    assert command("resume", "g.db", "--episodes", "3", "-q")[0] == 0
    with Records.open_readonly("g.db") as records:
        assert [len(records.steps(row.id)) for row in records.episodes()] == [4, 4, 4]
    code, _, err = command("run", "g.toml", "--db", "h.db", "--seat", "ghost:g.toml#0", "-q")
    assert (code, "it is not a SQLite database" in err) == (2, True)


def test_games_at_a_learners_table_are_added(fitted, tmp_path):
    ghost = Ghost.load(fitted)
    more = refit(ghost, "level_k:1", Path("b.db"), episodes=4, seed=9)
    assert [source.weight for source in more.sources] == [1, 3]
    assert [source.decisions for source in more.sources] == [96, 48]
    assert len(more.play.action) == 144
    assert more.play.rows.weight.tolist() == [1] * 96 + [3] * 48
    assert more.play.episodes == EPISODES + 4
    with Records.open_readonly("b.db") as records:
        assert {tuple(row.seats) for row in records.episodes()} == {
            ("random", "random", "random", "learner")
        }
    assert more.at_table[MIXTURE].loss > 0
    assert more.plain()["at_learners_table"].keys() >= {Marginal.name, MIXTURE}
    third = refit(Ghost.load(more.save(Path("c.ghost"))), "level_k:1", Path("c.db"), [0, 3])
    assert len(third.sources) == 3
    with Records.open_readonly("c.db") as records:
        assert records.episodes()[0].seats == ["learner", "random", "random", "learner"]
    again = refit(ghost, "level_k:1", Path("b.db"))  # which is complete: nothing is played
    assert again.plain() == more.plain()
    with pytest.raises(BadParameter, match=r"c\.db has 'learner' at seat 0.*give another --db"):
        refit(ghost, "level_k:1", Path("c.db"), [1])
    with pytest.raises(BadParameter, match=r"c\.db has 'level_k:1' at seat 0, 3, not 'zero' at 0"):
        refit(ghost, "zero", Path("c.db"), [0])
    with pytest.raises(BadParameter, match=r"has the games of b\.db already"):
        refit(more, "level_k:1", Path("b.db"))
    seeds = [source.run for source in third.sources]
    for number, run in enumerate(seeds):
        with Records.open_readonly(run) as records:
            found = find(Path(run), ghost.game, 0).label
            seeds[number] = {row.seed for row in records.episodes() if row.game.label == found}
    assert len(set.union(*seeds)) == sum(map(len, seeds)) == third.play.episodes
    with pytest.raises(BadParameter, match="has all 4 seats"):
        refit(ghost, "level_k:1", Path("d.db"), [0, 1, 2, 3])
    with pytest.raises(BadParameter, match="learner's seat must be"):
        refit(ghost, "level_k:1", Path("d.db"), [4])
    assert not Path("d.db").exists()


def test_a_refit_that_is_stopped_goes_on_where_it_was(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    params = {"players": 3, "rounds": 4}
    game = {"game": "public_goods", "params": params, "seats": ["random", "tiny", "tiny"]}
    raw = {"title": "a", "order": "fixed", "episodes": 3, "games": [game]}
    lg.run(raw, "a.db")
    again = ["ghost", "refit", "a.db#1", "--seat", "fixed:0", "--episodes", "2", "--db", "b.db"]
    code, _, err = command(*again, "--budget-calls", "5")
    assert (code, "--db b.db goes on" in err) == (1, True)
    assert not Path("a-1.ghost").exists()
    with Records.open_readonly("b.db") as records:
        asked = records.usage()["calls"]
    code, _, err = command(*again, "--budget-calls", "100")
    assert (code, err) == (0, "ghost: a-1.ghost, seat it as ghost:a-1.ghost\n")
    with Records.open_readonly("b.db") as records:
        assert 0 < asked <= 5 < 16 <= records.usage()["calls"]
    assert [source.decisions for source in Ghost.load(Path("a-1.ghost")).sources] == [24, 16]


def test_plans_at_a_learners_table_go_by_what_they_are(tmp_path):
    """The same plans in another order are foretold the same; others, that were unseen, as well."""
    game = {"game": "pirate_game", "params": {"players": 4}, "seats": ["random"]}
    raw = {"episodes": 6, "games": [game]}
    runs = [lg.run(raw | {"seed": seed}, tmp_path / f"{seed}.db").path for seed in (1, 2)]
    ghost, other = (GhostAddress.read(f"{path}#0").ghost() for path in runs)
    own, last = ghost.play, 2 * VOTES + len(ghost.play.plans) - 1
    assert {*other.play.plans} - {*own.plans}
    assert np.isfinite(ghost.foretold(other.play)[MIXTURE].loss)
    moved = [np.where(c < VOTES, c, last - c) for c in (own.rows.last, own.rows.answer)]
    rows = own.rows._replace(last=moved[0], answer=moved[1])
    turned = replace(own, rows=rows, action=moved[1], plans=own.plans[::-1])
    assert ghost.foretold(turned) == ghost.foretold(own)


def test_a_refit_that_is_interrupted_says_what_is_kept(fitted, command, monkeypatch):
    def interrupted(raw, db, **settings):
        Path(db).touch()
        raise KeyboardInterrupt

    before = fitted.read_bytes()
    monkeypatch.setattr("llm_games.benchmarks.ghosts.refit.run", interrupted)
    code, _, err = command("ghost", "refit", str(fitted), "--seat", "zero", "--db", "b.db")
    assert (code, "in b.db; the same command with --db b.db goes on" in err) == (130, True)
    assert fitted.read_bytes() == before


def test_who_is_led_astray_is_told_so(fitted):
    ghost = Ghost.load(fitted)
    worse = judged(np.array([[0.01, 0.99]]), np.array([0]))
    better = judged(np.array([[0.5, 0.5]]), np.array([0]))
    ghost.at_table = {MIXTURE: worse, Marginal.name: better}
    assert any("at the learner's table it foretold less" in doubt for doubt in ghost.doubts())


def test_ghosts_of_one_run_have_files_of_their_own(record, fitted):
    named = {
        name: GhostAddress.read(f"{record}{name}").file for name in ("", "#1", "#a/b", "#a/b#1")
    }
    assert [path.name.removeprefix(record.stem) for path in named.values()] == [
        ".ghost", "-1.ghost", "-a-b.ghost", "-a-b-1.ghost"
    ]  # fmt: skip
    assert {path.parent for path in named.values()} == {record.parent}
    assert GhostAddress.read(str(fitted)).file == fitted


def test_the_commands(record, fitted, command):
    code, out, err = command("ghost", "fit", f"{record}#el_farol_bar#0", "-o", "e.ghost")
    assert (code, err) == (0, "ghost: e.ghost, seat it as ghost:e.ghost\n")
    assert "random in el_farol_bar, seat 0, 1, 2: 120 decisions in 8 episodes" in out
    for word in (*(part.name for part in (Marginal, LastOwn, Nearest, Forest)), MIXTURE):
        assert word in out
    code, out, _ = command("ghost", "show", "e.ghost", "--json")
    told = json.loads(out)
    assert (code, told["game"], told["decisions"]) == (0, "el_farol_bar", 120)
    assert told["held_out"][MIXTURE]["loss"] > 0
    code, out, err = command(
        "ghost", "refit", "e.ghost", "--seat", "rational", "--episodes", "2", "--db", "f.db",
        "--json",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["sources"][1]["weight"] == 3
    assert Ghost.load(Path("e.ghost")).at_table
    code, _, err = command("ghost", "fit", f"{record}#0")
    assert (code, "has several such games" in err) == (2, True)
    Path("notes.txt").write_text("mine")
    for out, said in (("notes.txt", "is there and no ghost"), ("no/a.ghost", "no folder no")):
        code, _, err = command("ghost", "fit", f"{record}#el_farol_bar#0", "-o", out)
        assert (code, said in err) == (2, True)
    assert Path("notes.txt").read_text() == "mine"
    code, _, err = command("ghost", "show", "nothing")
    assert (code, "error: there is no file nothing" in err) == (2, True)
