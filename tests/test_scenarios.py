"""Scenarios: tables of held-out partners, as data, in runs, and as a learner's opponents."""

import json
import tomllib
from itertools import combinations

import gymnasium
import numpy as np
import pytest
from playing import each_row

import llm_games as lg
from llm_games import game_rooms as rooms
from llm_games.baselines.learner import learner, learners
from llm_games.baselines.scenarios import FOCAL, Scenario, games, read, scenario, scenarios
from llm_games.benchmarks.judge import scenario_scores
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.run import scenario_runs
from llm_games.benchmarks.run.config import load
from llm_games.benchmarks.run.plan import plan_of
from llm_games.benchmarks.show.page import build
from llm_games.errors import BadParameter, UnknownName
from llm_games.game_rooms import ROOMS

TWO = """
game = "public_goods"
episodes = 4
[params]
players = 5
rounds = 3
[[backgrounds]]
name = "kind"
players = ["cooperative", "fixed:10"]
[[backgrounds]]
name = "seen"
players = ["fixed:0"]
focal = ["one"]
train = true
"""


@pytest.fixture(autouse=True)
def few_games(monkeypatch, tmp_path_factory):
    """Keep nothing in the user's cache, and play few games for a scale."""
    monkeypatch.setenv("LLM_GAMES_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setattr(scenario_scores, "CHOOSING", 4)
    monkeypatch.setattr(scenario_scores, "VALUING", 8)
    scenario_scores._scale.cache_clear()
    yield
    scenario_scores._scale.cache_clear()


def table(one):
    seats = [("own", "default")] * one.focal
    seats += [(scenario_scores.BACKGROUND + player, player) for player in one.background]
    return scenario_scores._ScenarioTable(
        seats, one.game, dict(one.params), max_steps=one.max_steps
    )


# -- the games' files ------------------------------------------------------------------------------


def test_every_game_has_some():
    assert set(games()) == set(ROOMS) >= {"public_goods"}


@each_row("game", ROOMS)
def test_files_hold_what_scenarios_need(game):
    """Backgrounds for training and others, all sizes of the focal group, and no table twice."""
    found = scenarios(game)
    held_out = [one for one in found.values() if not one.train]
    backgrounds = {train: {one.name.rpartition("-")[0] for one in found.values()
                           if one.train is train} for train in (True, False)}  # fmt: skip
    assert len(backgrounds[True]) == 2
    assert len(backgrounds[False]) >= 3
    assert (
        {one.name.rpartition("-")[2] for one in held_out} == set(FOCAL)
        or game == "battle_royale"
        or held_out[0].rules().players == 2
    )
    assert all(one.focal + len(one.background) == one.rules().players for one in held_out)
    assert all(one.about for one in held_out)
    tables = [(one.background, one.focal) for one in found.values()]
    assert len(set(tables)) == len(tables)


@pytest.mark.parametrize("game", ROOMS)
def test_nobody_wins_in_all_of_a_game(game):
    """What a file says pays does, on common chance, and what pays in one background costs in
    another one: exploitation is rewarded here and punished there."""
    few = {"english_auction": 60, "water_allocation": 60, "emergency_evacuation": 60}.get(game, 120)
    said = set()
    for one in scenarios(game).values():
        if one.pays and one.focal == 1:
            more, less = (table(one).payoffs(player, 0, few) for player in one.pays)
            gain = more - less
            error = gain.std(ddof=1) / np.sqrt(len(gain))
            assert gain.mean() > 2 * error, one.name
            said.add(one.pays)
    assert any((less, more) in said for more, less in said)


@pytest.mark.slow
@pytest.mark.parametrize("game", ["diners_dilemma", "el_farol_bar", "pirate_game"])
def test_every_scenario_has_a_scale(game, monkeypatch):
    monkeypatch.setattr(scenario_scores, "CHOOSING", 40)
    monkeypatch.setattr(scenario_scores, "VALUING", 200)
    scenarios = tomllib.loads(rooms.file(game, "scenarios.toml").read_text())
    for one in scenario_runs.config_of(scenarios, game)["games"]:
        found = scenario_scores.scale(planned(one))
        assert not found.why, one["label"]
        assert found.score(found.best) == 1
        assert found.score(found.random) == 0


def planned(entry, player="own"):
    seats = [{"player": player, "name": player} if s == "default" else s for s in entry["seats"]]
    steps = entry.get("max_steps")
    return {**entry, "seats": seats, "given": {}, "order": "rotate", "max_steps": steps}


def test_reciprocal_players_cooperate_until_somebody_does_not():
    """Among themselves they are as good as cooperative ones, and a free rider earns less."""
    riders = {"public_goods": "fixed:0", "diners_dilemma": "fixed:costly"}
    riders |= {"beauty_contest": "fixed:22", "sealed_bid_auction": "shade:0.3"}
    for game, rider in riders.items():
        kind, none = paid(game, *["cooperative"] * 4), paid(game, *["reciprocal"] * 4)
        assert none == kind
        assert sum(paid(game, rider, *["reciprocal"] * 3)) < sum(kind)


def paid(game, *seats, rounds=10):
    seated = [lg.player(name) for name in seats]
    return lg.play(game, seated, seed=3, players=len(seats), rounds=rounds).payoffs.tolist()


# -- what a file may say ---------------------------------------------------------------------------


def test_a_file_is_read():
    found = read(tomllib.loads(TWO), "two.toml")
    assert list(found) == ["kind-one", "kind-half", "kind-most", "seen-one"]
    half = found["kind-half"]
    assert (half.focal, half.background) == (2, ("cooperative", "fixed:10", "cooperative"))
    assert found["kind-one"].background == ("cooperative", "fixed:10") * 2
    assert [one.train for one in found.values()] == [False] * 3 + [True]
    assert half.episodes == 4
    assert half.rules().rounds == 3


BAD = [
    ('game = "public_goods"', 'game = "public_good"', "public_good"),
    ('game = "public_goods"', "", "scenarios need game"),
    ("players = 5", "players = 1", "two.toml: players"),
    ('players = ["fixed:0"]', "players = []", "no players"),
    ('players = ["fixed:0"]', "players = [3]", "names of players"),
    ('focal = ["one"]', 'focal = ["two"]', "some of one, half and most"),
    ('name = "seen"', 'name = "kind"', "kind-one already"),
    ("train = true", "trains = true", "trains"),
    ("train = true", "train = 1", "it should be bool"),
    ("train = true", 'pays = ["a"]', "the names of two players"),
    ("episodes = 4", "episodes = 4.5", "it should be int"),
]


@each_row(("old", "new", "said"), BAD)
def test_what_a_file_cannot_say(old, new, said):
    assert old in TWO
    with pytest.raises((BadParameter, UnknownName), match=said):
        read(tomllib.loads(TWO.replace(old, new)), "two.toml")


def test_a_file_without_a_held_out_scenario_is_no_run():
    head, kind, _ = TWO.split("[[backgrounds]]")
    for text in (head, TWO.replace(f"[[backgrounds]]{kind}", "")):
        with pytest.raises(BadParameter, match=r"two\.toml has no scenario that is held out"):
            scenario_runs.config_of(tomllib.loads(text), "two.toml")


def test_unknown_scenarios():
    with pytest.raises(UnknownName, match="reciprocal-one"):
        scenario("public_goods", "reciprocal")
    with pytest.raises(BadParameter, match="not of diners_dilemma"):
        scenario("diners_dilemma", scenario("public_goods", "givers-one"))
    with pytest.raises(ConfigError, match="no experiment 'chess'"):
        load("scenarios/chess")


# -- runs ------------------------------------------------------------------------------------------


def test_a_run_plays_what_is_held_out():
    plan = plan_of("scenarios/public_goods")
    held_out = [one for one in scenarios("public_goods").values() if not one.train]
    assert [game.label for game in plan.games] == [f"public_goods/{one.name}" for one in held_out]
    for game, one in zip(plan.games, held_out, strict=True):
        names = [seat.name for seat in game.seats]
        assert scenario_scores.focal(names) == list(range(one.focal))
        assert [seat.player for seat in game.seats[one.focal :]] == list(one.background)
        assert game.order == "rotate"
    every = plan_of("scenarios")
    assert {game.game for game in every.games} == set(ROOMS)
    assert [g.seeds for g in every.games if g.game == "public_goods"] == [
        game.seeds for game in plan.games
    ]


def test_scores_are_on_the_scale(tmp_path):
    """Random scores about 0, the best player 1; those in the background count for nothing."""
    best = lg.run(TWO, db=tmp_path / "best.db", seats=["rational"], games=["public_goods/kind-one"])
    (game,) = best.games.values()
    assert game.judged.mean == pytest.approx(1)
    assert game.measure.name == "focal score"
    assert game.scores == []  # the table has no score by a paper
    kind = planned(scenario_runs.config_of(tomllib.loads(TWO), "")["games"][0])
    ends = scenario_scores.scale(kind)
    assert (ends.best_player, ends.best) == ("rational", game.payoff_of["rational"])
    assert scenario_scores._scale.cache_info().misses == 1  # whoever takes the focal seats
    half = lg.run(TWO, db=tmp_path / "half.db", seats=["fixed:10"], games=["public_goods/kind-one"])
    (game,) = half.games.values()
    others = ["cooperative", "fixed:10"] * 2
    got = paid("public_goods", "fixed:10", *others, rounds=3)[0]
    assert game.payoff_of["fixed:10"] == got  # the same from every seat
    assert game.judged.mean == pytest.approx((got - ends.random) / (ends.best - ends.random))


def test_a_focal_player_that_is_also_in_the_background(tmp_path):
    run = lg.run(TWO, db=tmp_path / "run.db", seats=["cooperative"])
    for game in run.games.values():
        assert {"cooperative", "background: cooperative"} <= set(game.payoff_of)
        rows = {row.player: row for row in run.references[game.label]}
        assert rows["cooperative"].measured == pytest.approx([game.judged.mean] * 2)
        assert rows["cooperative"].own == pytest.approx([game.payoff_of["cooperative"]] * 2)


def test_means_over_scenarios_and_what_is_shown(llm_games, tmp_path):
    db = tmp_path / "run.db"
    (tmp_path / "two.toml").write_text(TWO)
    assert llm_games("run", "two.toml", "--seat", "random", "--db", db, "--quiet")[0] == 0
    told = json.loads(llm_games("resume", db, "--json")[1])
    means = [game["measure"]["mean"] for game in told["games"]]
    assert told["overall"]["mean"] == pytest.approx(np.mean(means))
    interval = told["overall"]["interval"]
    assert interval["low"] < told["overall"]["mean"] < interval["high"]
    shown = llm_games("resume", db)[1]
    assert "focal score" in shown
    assert "mean, public_goods" in shown
    page = build([db], tmp_path / "report").read_text()
    assert "Scenarios: held-out partners" in page
    assert "among cooperative, fixed:10" in page
    lines = (tmp_path / "report" / "tables" / "scenarios.csv").read_text().splitlines()
    assert [line.split(",")[1] for line in lines[1:4]] == [
        f"public_goods/kind-{share}" for share in FOCAL
    ]


def test_where_nothing_can_be_gained_there_is_no_score(tmp_path):
    """What two of four players give comes back to them, whoever the others are."""
    flat = TWO.replace("players = 5", "players = 4")
    flat = flat.replace("[[backgrounds]]", '[[backgrounds]]\nfocal = ["half"]', 1)
    run = lg.run(flat, db=tmp_path / "run.db", seats=["fixed:10"])
    (game,) = run.games.values()
    assert game.judged is None
    page = build([run.path], tmp_path / "report").read_text()
    assert "does no better than random" in page


MINE = """
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.policy import Decision, Policy

class Ten(Policy):
    name = "ten"
    def start(self, game, seat, seed):
        return None
    def act(self, view, memory):
        return Decision(10), memory

TEN = Ten()

MODEL = LLMPolicy(ScriptedClient(lambda request: '{"tokens_contributed": 10}'))
"""


def test_backgrounds_of_ones_own(tmp_path, monkeypatch):
    """A policy of one's own has the scale of a rule player that does the same; a model has none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "background_of_mine.py").write_text(MINE)
    played = {}
    for player in ("fixed:10", "background_of_mine:TEN", "background_of_mine:MODEL"):
        text = TWO.replace("fixed:10", player).replace('"cooperative", ', "")
        run = lg.run(text, seats=["random"], db=tmp_path / f"{len(played)}.db")
        played[player] = run.games["public_goods/kind-one"]
    rule, own, model = played.values()
    assert own.measured == rule.measured
    assert model.judged is None
    assert model.payoff_of["random"] == own.payoff_of["random"]
    page = build([tmp_path / "2.db"], tmp_path / "report").read_text()
    assert "asks no model" in page or "ask no model" in page


def test_ghosts_in_the_background(tmp_path, monkeypatch):
    """What was recorded is a background like any other, with a scale."""
    monkeypatch.chdir(tmp_path)
    game = {"game": "public_goods", "params": {"players": 5, "rounds": 3}, "seats": ["random"]}
    lg.run({"episodes": 3, "games": [game]}, db="recorded.db")
    text = TWO.replace('"cooperative", "fixed:10"', '"ghost:recorded.db#0", "ghost:recorded.db#1"')
    run = lg.run(text, seats=["rational"], games=["public_goods/kind-one"], db="met.db")
    (met,) = run.games.values()
    assert {"background: ghost:recorded.db#0", "rational"} <= set(met.payoff_of)
    assert met.judged.mean > 0.5  # keeping all is best whoever the others are


# -- learners --------------------------------------------------------------------------------------


@each_row("game", ROOMS)
def test_a_scenario_as_opponents(game):
    """Its players sit in all other seats, in one copy and in many."""
    one = next(found for found in scenarios(game).values() if found.train and found.focal == 1)
    env = learner(game, scenario=one.name)
    assert env.unwrapped.game == one.rules()
    assert [policy.name for policy in env.opponents.values()] == list(one.background)
    observation, _ = env.reset(seed=4)
    many = learners(game, 3, scenario=one.name)
    seen, _ = many.reset(seed=4)
    assert many.game == one.rules()
    first = observation["observation"] if isinstance(observation, dict) else observation
    all_ = seen["observation"] if isinstance(seen, dict) else seen
    assert np.array_equal(all_[0], first)


def test_other_focal_seats_and_what_is_refused():
    found = scenario("public_goods", "reciprocal-half")
    assert found.opponents("rational") == ["rational", "reciprocal", "reciprocal", "reciprocal"]
    half = {"scenario": "reciprocal-half", "opponents": "rational", "seat": "rotate"}
    with pytest.warns(UserWarning, match="reciprocal-half is held out.* train them in givers-one"):
        gymnasium.make("llm_games/PublicGoods-v0", **half).reset(seed=1)
    for wrong in ({}, {"opponents": ["rational"] * 2}):
        with pytest.raises(BadParameter, match="1 focal seats beside the learner's"):
            learner("public_goods", scenario="givers-half", **wrong)
    with pytest.raises(BadParameter, match="0 focal seats beside"):
        learner("public_goods", scenario="givers-one", opponents="rational")
    with pytest.raises(BadParameter, match="brings all parameters; got players"):
        learner("public_goods", scenario="givers-one", players=3)
    with pytest.raises(BadParameter, match="a game of its own"):
        learner(lg.rules("public_goods"), scenario="givers-one")
    own = Scenario("public_goods", "mine", "", 1, ("fixed:3",), {"players": 2})
    assert [p.name for p in learner("public_goods", scenario=own).opponents.values()] == ["fixed:3"]


def test_sizes_of_focal_groups():
    sizes = {share: {one.focal for one in scenarios("public_goods").values()
                     if one.name.endswith(share)} for share in FOCAL}  # fmt: skip
    assert all(len(found) == 1 for found in sizes.values())
    assert all(a != b for a, b in combinations(sizes.values(), 2))
