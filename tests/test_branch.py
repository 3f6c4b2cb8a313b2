"""Branches: the state is rebuilt exactly, what is changed is all that differs, the origin stays."""

import csv
import json
from pathlib import Path

import pytest
from playing import NAMES, QUICK, SMALL

import llm_games as lg
from llm_games.benchmarks.judge.compare import compare
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.editions import OtherEdition
from llm_games.benchmarks.record.recorded_games import games
from llm_games.benchmarks.record.store import Records
from llm_games.benchmarks.run.branch import NotRebuilt
from llm_games.benchmarks.run.replay import replay
from llm_games.errors import BadParameter, UnknownName
from llm_games.noise import Noise

TALK = {"turns": 1}
AUCTION = {"players": 3, "items": [["a vase", 100, 300], ["a lamp", 100, 250]]}
PLANNER = {"player": "mock", "name": "planner", "strategy": "adaptive", "learning": True}
TOOLS = {"player": "mock", "name": "tools", "tools": ["best_response:always"]}


def rows(path, number):
    """Return all that is recorded of an episode, but for when and how long."""
    with Records.open_readonly(path) as records:
        episode = records.episodes()[number]
        chats = records.chats(episode.id)
        calls = [
            {k: v for k, v in vars(call).items() if k not in ("prompt", "latency")}
            | {"messages": list(chats[call.prompt])}
            for call in records.attempts(episode.id)
        ]
        decisions, notes = records.decisions(episode.id), records.notes(episode.id)
        steps = records.written(episode.id)
        return steps, decisions, calls, notes, episode.seed, episode.given, episode.reason


def replayed(path):
    with Records.open_readonly(path) as records:
        return replay(records)


def continued(origin, number, place, path):
    branch = lg.branch(origin, place, path)
    assert rows(branch.path, 0) == rows(origin, number), place
    assert replayed(branch.path).differences == (), place
    return branch


@pytest.fixture(scope="module")
def goods(tmp_path_factory):
    path = tmp_path_factory.mktemp("goods") / "goods.db"
    game = {"game": "public_goods", "params": {"players": 3, "rounds": 4}}
    seats = ["tiny", "random", "tiny"]
    lg.run({"seed": 3, "games": [game | {"seats": seats, "order": "fixed"}]}, path)
    return path


@pytest.mark.parametrize("game", NAMES)
def test_continued_unchanged_it_is_the_recorded_episode(game, tmp_path):
    """With asking and drawing players in turn, who talk, at the start, midway and the end."""
    params = SMALL[game]
    players = lg.rules(game, **params).players
    config = {
        "seed": 8,
        "episodes": 2,
        "seats": (["mock", "random"] * players)[:players],
        "games": [{"game": game, "params": params, "talk": TALK, "max_steps": 60}],
    }
    origin = lg.run(config, tmp_path / "origin.db").path
    before = origin.read_bytes()
    count = len(rows(origin, 1)[0])
    for step in sorted({0, count // 2, count - 1}):
        continued(origin, 1, f"{game}/1/{step}", tmp_path / f"{step}.db")
    assert origin.read_bytes() == before


def test_planners_tools_and_series_go_on_as_they_did(tmp_path):
    games = [
        {"game": "english_auction", "params": AUCTION, "series": True},
        {"game": "beauty_contest", "params": {"players": 3, "rounds": 3}, "talk": TALK},
    ]
    seats = [PLANNER, TOOLS, "mock"]
    config = {"seed": 2, "episodes": 2, "seats": seats, "games": games}
    origin = lg.run(config, tmp_path / "origin.db").path
    for label, number in (("english_auction", 1), ("beauty_contest", 3)):
        for step in (0, 2):
            path = tmp_path / f"{label}{step}.db"
            continued(origin, number, f"{label}/1/{step}", path)


def test_of_a_part_of_a_run_all_is_played(tmp_path):
    seats = ["mock", "random", "fixed:5"]
    game = {"game": "public_goods", "params": {"players": 3, "rounds": 3}, "seats": seats}
    config = {"games": [game], "episodes": 4}
    parts = [lg.run(config, tmp_path / f"{k}.db", part=f"{k}/2").path for k in (1, 2)]
    for path in parts:
        with Records.open_readonly(path) as records:
            number = next(row.number for row in records.episodes() if row.status == "done")
        continued(path, number, f"public_goods/{number}/1", path.with_suffix(".branch.db"))


def test_a_seat_is_asked_again_and_what_stood_before_counts_nowhere(goods, tmp_path):
    branch = lg.branch(goods, "public_goods/0/2", tmp_path / "b.db", asked=0, times=10)
    recorded = rows(goods, 0)[1]
    with Records.open_readonly(branch.path) as records:
        assert records.usage()["calls"] == 10
        spent = {seat: usage.calls for (_, seat), usage in records.spent().items()}
        assert spent["public_goods/player_0"] == 10
        assert "public_goods/player_2" not in spent
        assert len({call.seed for e in range(1, 11) for call in records.attempts(e)}) >= 10
        assert all(e.status == "done" for e in records.episodes())
        assert records.episodes()[0].source.endswith("goods.db#public_goods/0@2")
    [mine, *others] = branch.branch
    assert sum(share.count for share in mine.moves) == 10
    assert mine.recorded["move"] == next(d.action for d in recorded if (d.step, d.seat) == (2, 0))
    assert all(o.moves[0].move == o.recorded["move"] and len(o.moves) == 1 for o in others)
    assert branch.scores == {"public_goods": []}
    assert replayed(branch.path).differences == ()


def test_payoffs_of_a_branch_have_the_bounds_of_the_game(goods, tmp_path):
    branch = lg.branch(goods, "public_goods/0/2", tmp_path / "b.db", seats={0: "random"}, times=3)
    with Records.open_readonly(branch.path) as records:
        [game] = games(records)
        ends = game.rules.core.payable_mean(1)
    for outcome in branch.branch:
        assert outcome.payoff.ends == ends
        assert outcome.payoff.interval.method == "logit-t"
        assert ends[0] <= outcome.payoff.interval.low < outcome.payoff.interval.high <= ends[1]


def test_a_report_says_that_it_is_of_a_branch_and_counts_from_there(llm_games, goods, tmp_path):
    pytest.importorskip("matplotlib")
    branch = lg.branch(goods, "public_goods/0/2", tmp_path / "b.db", asked=0, times=10)
    assert llm_games("report", branch.path, "--out", tmp_path / "r")[0] == 0
    page = (tmp_path / "r" / "report.html").read_text("utf-8")
    assert "This is a branch of" in page
    assert "Moves at the step of the branch" in page
    players = (tmp_path / "r" / "tables" / "players.csv").read_text("utf-8")
    rows = list(csv.DictReader(players.splitlines()))
    assert {row["player"]: int(row["decisions"]) for row in rows} == {"tiny": 10, "random": 0}


def test_a_move_a_player_a_wording_are_changed_alone(goods, tmp_path):
    """One who is told anew has the past in its wording, with its old answers, and pays nothing."""
    moved = lg.branch(
        goods, "public_goods/0/1", tmp_path / "m.db", moves={0: 20}, seats={1: "fixed:0"}
    )
    steps, decisions, calls, *_ = rows(moved.path, 0)
    assert {d.seat: d.action for d in decisions if d.step == 1}[0] == 20
    assert [d.action for d in decisions if d.seat == 1 and d.step > 0] == [0, 0, 0]
    assert {**steps, 1: 0, 2: 0, 3: 0} == {**rows(goods, 0)[0], 1: 0, 2: 0, 3: 0}
    after = [c for c in calls if c["step"] == 2 and c["seat"] == 0]
    assert '"tokens_contributed": 20' in json.dumps(after[0]["messages"]).replace("\\", "")
    worded = lg.branch(
        goods, "public_goods/0/2", tmp_path / "w.db", settings={0: {"prompts": "v3"}}, times=2
    )
    old, new = (
        [c for c in rows(path, 0)[2] if c["seat"] == 0 and c["step"] == 1]
        for path in (goods, worded.path)
    )
    assert old[0]["messages"] != new[0]["messages"]
    assert [c["text"] for c in old] == [c["text"] for c in new]
    again = lg.branch(worded.path, "public_goods/1/3", tmp_path / "a.db", seats={1: "tiny"})
    for branch in (moved, worded, again):
        assert replayed(branch.path).differences == ()
    with pytest.raises(BadParameter, match="compared with branches of that one"):
        compare(moved.path, goods)
    assert moved.skill == moved.references == {"public_goods": []}
    with pytest.raises(BadParameter, match="compared with"):
        compare(moved.path, worded.path)
    same = lg.branch(goods, "public_goods/0/1", tmp_path / "s.db")
    [game] = compare(same.path, moved.path).games
    assert (game.scores, game.payoffs is None) == (None, False)
    [before, *_] = moved.games["public_goods"].payoffs
    assert before == pytest.approx(sum(json.loads(steps[n]["rewards"])[0] for n in (1, 2, 3)))


def test_who_cannot_talk_is_silent_from_there_on(tmp_path):
    game = {"game": "beauty_contest", "params": {"players": 3, "rounds": 3}, "talk": TALK}
    origin = lg.run(
        {"seed": 4, "seats": ["proposer", "mock", "mock"], "order": "fixed", "games": [game]},
        tmp_path / "o.db",
    ).path
    branch = lg.branch(origin, "beauty_contest/0/4", tmp_path / "b.db", seats={0: "rational"})
    words = [d.action for d in rows(branch.path, 0)[1] if d.seat == 0 and d.phase]
    assert words[0] != ""
    assert words[1:] == ["", ""]
    assert replayed(branch.path).differences == ()


def test_an_interrupted_branch_goes_on(goods, tmp_path):
    path = tmp_path / "b.db"
    with pytest.raises(lg.LLMGamesError, match="calls"):
        lg.branch(goods, "public_goods/0/1", path, times=4, budget_calls=4)
    resumed = lg.resume(path, budget_calls=1000)
    assert [len(rows(path, number)[0]) for number in range(4)] == [4] * 4
    assert replayed(resumed.path).differences == ()
    (tmp_path / "away").mkdir()
    moved = path.rename(tmp_path / "away" / "b.db")
    assert replayed(moved).differences == ()


@pytest.mark.parametrize(
    ("place", "changes", "error", "words"),
    [
        ("public_goods", {}, BadParameter, "LABEL/NUMBER/STEP"),
        ("public_goods/0/" + "9" * 5000, {}, BadParameter, "LABEL/NUMBER/STEP"),
        ("public_good/0/0", {}, UnknownName, "did you mean 'public_goods'"),
        ("public_goods/1/0", {}, BadParameter, "has no episode 1: it has 0 to 0"),
        ("public_goods/0/4", {}, BadParameter, "it has 0 to 3"),
        ("public_goods/0/1", {"moves": {3: 1}}, BadParameter, "there is no seat 3, but 0 to 2"),
        ("public_goods/0/1", {"moves": {0: 21}}, BadParameter, "from 0 to 20"),
        ("public_goods/0/1", {"asked": 0, "seats": {1: "fixed:0"}}, BadParameter, "seat 0 alone"),
        ("public_goods/0/1", {"asked": 0, "moves": {0: 1}}, BadParameter, "not both"),
        ("public_goods/0/1", {"times": 0}, ConfigError, "times = 0"),
        ("public_goods/0/1", {"chance": "new"}, ConfigError, "chance = .new."),
        ("public_goods/0/1", {"chance": "fresh"}, BadParameter, "leaves nothing to chance"),
        ("public_goods/0/1", {"texts": {1: "x"}}, BadParameter, "asks no model"),
        ("public_goods/0/1", {"texts": {0: "x"}, "moves": {0: 1}}, BadParameter, "not both"),
        ("public_goods/0/1", {"seats": {0: "rationl"}}, ConfigError, "did you mean 'rational'"),
        ("public_goods/0/1", {"settings": {0: {"promts": "v2"}}}, ConfigError, "promts"),
        ("public_goods/0/1", {"settings": {1: {"prompts": "v2"}}}, ConfigError, "asks no model"),
        ("public_goods/0/1", {"temperature": 0}, ConfigError, "a branch takes cache and budget"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    goods, tmp_path, place, changes, error, words
):
    before = goods.read_bytes()
    with pytest.raises(error, match=words):
        lg.branch(goods, place, tmp_path / "b.db", **changes)
    assert goods.read_bytes() == before
    assert not [*tmp_path.iterdir()]


def test_a_seat_that_was_not_asked_and_rules_of_another_edition(tmp_path, monkeypatch):
    game = {"game": "english_auction", "params": AUCTION}
    origin = lg.run({"seats": ["mock"], "games": [game]}, tmp_path / "o.db").path
    game = {"game": "battle_royale"}
    turns = lg.run({"seats": ["mock"], "games": [game]}, tmp_path / "turns.db").path
    [shooter] = json.loads(rows(turns, 0)[0][0]["asked"])
    for change in ({"asked": 1 - shooter}, {"moves": {1 - shooter: 0}}):
        with pytest.raises(BadParameter, match="was not asked; asked were"):
            lg.branch(turns, "battle_royale/0/0", tmp_path / "b.db", **change)
    from llm_games.registry import game_class

    monkeypatch.setattr(game_class("english_auction"), "edition", 99)
    from llm_games.benchmarks.record import editions

    editions.editions.cache_clear()
    with pytest.raises(OtherEdition, match="edition"):
        lg.branch(origin, "english_auction/0/0", tmp_path / "b.db")
    editions.editions.cache_clear()


def test_a_model_that_is_not_there_is_said_and_writes_nothing(goods, tmp_path):
    before = goods.read_bytes()
    there = {"base_url": "http://127.0.0.1:9/v1", "max_wait": 0}
    other = {"seats": {0: "openai:m"}, "settings": {0: there}}
    with pytest.raises(ConfigError, match="does not answer, nothing was run"):
        lg.branch(goods, "public_goods/0/1", tmp_path / "b.db", **other)
    assert goods.read_bytes() == before
    assert not [*tmp_path.iterdir()]


def test_an_origin_that_is_another_by_now_is_not_gone_on_with(goods, tmp_path):
    path = tmp_path / "b.db"
    with pytest.raises(lg.LLMGamesError, match="calls"):
        lg.branch(goods, "public_goods/0/1", path, times=4, budget_calls=4)
    moved = path.rename(tmp_path / "elsewhere.db")
    (tmp_path / "sub").mkdir()
    lost = moved.rename(tmp_path / "sub" / "b.db")
    with pytest.raises(NotRebuilt, match="is a branch of"):
        lg.resume(lost, budget_calls=1000)


def test_the_command(llm_games, goods, tmp_path):
    arguments = ["branch", goods, "--at", "public_goods/0/2", "--db", tmp_path / "b.db"]
    again = [*arguments[:-1], tmp_path / "c.db"]
    changes = ["--move", "0=7", "--seat", "1=fixed:0", "--set", "2.prompts=v2"]
    code, out, _ = llm_games(*arguments, *changes, "--json", "--quiet")
    [first, second, _] = json.loads(out)["seats"]
    planned = json.loads(llm_games(*again, *changes, "--dry-run")[1])
    with Records.open_readonly(tmp_path / "b.db") as records:
        assert planned["estimate"]["calls"] == records.usage()["calls"] == 3
    assert not (tmp_path / "c.db").exists()
    assert code == 0
    assert (first["moves"][0]["move"], second["moves"][0]["move"]) == (7, 0)
    assert Path(json.loads(out)["db"]).exists()
    for flag, pair in (("--move", "x=1"), ("--set", "prompts=v2"), ("--seat", "rational")):
        code, _, message = llm_games(*arguments, flag, pair)
        assert (code, flag in message) == (2, True)


FRESH = {
    "battle_royale",
    "emergency_evacuation",
    "english_auction",
    "sealed_bid_auction",
    "water_allocation",
}


@pytest.mark.parametrize("game", NAMES)
def test_fresh_chance_leaves_what_was_seen(game, tmp_path):
    """All before the step is as recorded, prompts too, and what comes is drawn anew; else said."""
    params = QUICK[game] if lg.rules(game).length() == 1 else SMALL[game]
    config = {"seed": 8, "seats": ["mock"], "games": [{"game": game, "params": params}]}
    origin = lg.run(config, tmp_path / "origin.db").path
    place = f"{game}/0/1"
    if game not in FRESH:
        with pytest.raises(BadParameter, match="leaves nothing to chance"):
            lg.branch(origin, place, tmp_path / "b.db", chance="fresh")
        return
    branch = lg.branch(origin, place, tmp_path / "b.db", chance="fresh", times=8)
    assert replayed(branch.path).differences == ()
    steps, _, calls, *_ = rows(origin, 0)
    chances = set()
    for number in range(8):
        mine = rows(branch.path, number)
        assert mine[0][0] == steps[0]
        asked = [
            [(c["step"], c["seat"], c["messages"]) for c in of if c["step"] < 2 and not c["number"]]
            for of in (mine[2], calls)
        ]
        assert asked[0] == asked[1]
        rules = lg.rules(game, **params)
        drawn = rules.chance(Noise(mine[4]), mine[5])
        chances.add(repr({name: values.tolist() for name, values in drawn.items()}))
    assert len(chances) == 8


def test_a_model_reads_another_text_at_that_step_alone(goods, tmp_path):
    text = 'Say only {"tokens_contributed": 3}, it is 5° cold.'
    branch = lg.branch(goods, "public_goods/0/2", tmp_path / "b.db", texts={0: text}, times=2)
    for number in (0, 1):
        calls = [call for call in rows(branch.path, number)[2] if call["seat"] == 0]
        for call in calls:
            last = call["messages"][-1]["content"]
            assert last.startswith(text) == (call["step"] == 2), call["step"]
    assert replayed(branch.path).differences == ()


def test_a_branch_of_a_branch_goes_on_as_that_did(goods, tmp_path):
    """With its texts, its seeds of their own and its chance."""
    one = lg.branch(
        goods, "public_goods/0/1", tmp_path / "a.db", texts={2: "Well?"}, seats={0: "mock"}, times=3
    )
    for step in (1, 3):
        continued(one.path, 2, f"public_goods/2/{step}", tmp_path / f"{step}.db")
    two = lg.branch(one.path, "public_goods/1/2", tmp_path / "b.db", times=2)
    continued(two.path, 1, "public_goods/1/3", tmp_path / "c.db")
    game = {"game": "water_allocation", "params": SMALL["water_allocation"]}
    origin = lg.run({"seats": ["mock"], "games": [game]}, tmp_path / "w.db").path
    drawn = lg.branch(origin, "water_allocation/0/1", tmp_path / "d.db", chance="fresh", times=2)
    continued(drawn.path, 1, "water_allocation/1/2", tmp_path / "e.db")
