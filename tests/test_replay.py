"""Replay: an untouched run is equal bit for bit, and a changed value is found and named."""

import asyncio
import json
import shutil
import signal
import sqlite3
from contextlib import closing

import pytest
from test_run import CONFIG, Meddler, content, make_plan, scripted, whole

from llm_games.benchmarks.record.recorded_player import from_run
from llm_games.benchmarks.record.store import Records
from llm_games.benchmarks.run.conduct import play_run, start
from llm_games.benchmarks.run.config import parse
from llm_games.benchmarks.run.plan import players, resolve
from llm_games.benchmarks.run.replay import replay
from llm_games.errors import BadParameter, LLMGamesError


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "a.db"
    whole(path, Meddler(), games=CONFIG["games"][:1])
    return path


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    path = tmp_path_factory.mktemp("everything") / "a.db"
    whole(path, Meddler())
    return path


@pytest.fixture
def copy(recorded, tmp_path):
    return shutil.copy(recorded, tmp_path / "copy.db")


def differences(path):
    with Records.open_readonly(path) as records:
        return replay(records).differences


def change(path, statement, *values):
    with closing(sqlite3.connect(path)) as database:
        count = database.execute(statement, values).rowcount
        database.commit()
    assert count == 1, statement


def test_an_untouched_run_is_equal(everything):
    with Records.open_readonly(everything) as records:
        done = replay(records)
        calls, steps = (
            records.usage()["calls"],
            sum(len(records.steps(e.id)) for e in records.episodes()),
        )
    assert done.differences == ()
    assert (done.episodes, done.steps, done.completions) == (9, steps, calls)


GOODS = "public_goods, episode 1, step 1"
EPISODE = "(SELECT e.id FROM episodes e JOIN games g ON g.id = e.game WHERE label = 'public_goods' "
EPISODE += "AND number = 1)"
ROW = f"WHERE episode = {EPISODE} AND step = 1"
SEAT = f"{ROW} AND seat = 0"
CALL = f"{SEAT} AND number = 0"
LEGAL = f"{CALL} AND outcome = 'valid'"


# (statement, where it is found, what is named)
FLIPS = [
    (f"UPDATE decisions SET action = action + 1 {ROW} AND seat = 1", f"{GOODS}", "record actions"),
    (f"UPDATE decisions SET action = 10 - action {SEAT}", f"{GOODS}, seat 0", "action"),
    (f"UPDATE decisions SET action = '[1]' {ROW} AND seat = 1", f"{GOODS}, seat 1", "action"),
    (f"UPDATE decisions SET action = '99999999999999999999' {ROW} AND seat = 1",
     f"{GOODS}, seat 1", "action"),
    (f"UPDATE decisions SET outcome = 'truncated' {SEAT}", f"{GOODS}, seat 0", "outcome"),
    (f"UPDATE decisions SET broke = 1 - broke {SEAT}", f"{GOODS}, seat 0", "broke"),
    (f"UPDATE decisions SET reward = reward + 1e-12 {SEAT}", f"{GOODS}, seat 0", "reward"),
    (f"UPDATE decisions SET step = 7 {SEAT}", f"{GOODS}, seat 0", "decision"),
    (f"DELETE FROM decisions {SEAT}", f"{GOODS}, seat 0", "decision"),
    (f"UPDATE steps SET asked = '[0, 1]' {ROW}", GOODS, "asked"),
    (f"UPDATE steps SET record = replace(record, '\"pot\": ', '\"pot\": 1') {ROW}",
     GOODS, "record pot"),
    (f"UPDATE steps SET record = replace(record, 'pot', 'pod') {ROW}", GOODS, "record pot"),
    (f"UPDATE steps SET rewards = replace(rewards, '[', '[1') {ROW}", GOODS, "rewards"),
    (f"UPDATE steps SET finished = '[2]' {ROW}", GOODS, "finished"),
    (f"UPDATE steps SET rewards = '[1, ' {ROW}", "public_goods, episode 1", "unreadable"),
    (f"UPDATE steps SET step = 8 {ROW}", "public_goods, episode 1", "numbers of the steps"),
    (f"UPDATE attempts SET text = 'no', finish = 'stop', error = '' {LEGAL}",
     f"{GOODS}, seat 0", "completion 1"),
    (f"UPDATE attempts SET finish = 'refusal', error = '' {LEGAL}", f"{GOODS}, seat 0",
     "completion 1"),
    (f"UPDATE attempts SET outcome = 'truncated' {CALL}", f"{GOODS}, seat 0",
     "completion 0, outcome"),
    (f"UPDATE attempts SET why = why || '!' {CALL}", f"{GOODS}, seat 0", "completion 0, why"),
    (f"UPDATE attempts SET seed = seed + 1 {CALL}", f"{GOODS}, seat 0", "completion 0, seed"),
    (f"UPDATE attempts SET prompt = '1' {CALL}", f"{GOODS}, seat 0",
     "completion 0, number of messages"),
    (f"UPDATE prompts SET message = 10 * message WHERE id = (SELECT prompt FROM attempts {CALL})",
     f"{GOODS}, seat 0", "completion 0, message 3 (content)"),
    (f"DELETE FROM attempts {CALL}", f"{GOODS}, seat 0", "completion 0"),
    (f"UPDATE attempts SET step = 9 {CALL}", f"{GOODS}, seat 0", "completion 0"),
    (f"UPDATE episodes SET seed = seed + 1 WHERE id = {EPISODE}", "game public_goods", "seeds"),
    (f"UPDATE episodes SET number = 9 WHERE id = {EPISODE}", "game public_goods", "numbers"),
    (f"UPDATE episodes SET status = 'void' WHERE id = {EPISODE}", "public_goods, episode 1",
     "status"),
    (f"UPDATE episodes SET reason = 'why not' WHERE id = {EPISODE}", "public_goods, episode 1",
     "reason"),
    ("UPDATE games SET params = '{}' WHERE label = 'public_goods'", "game public_goods", "params"),
    ("UPDATE games SET seats = json_set(seats, '$[0]', 'who') WHERE label = 'public_goods'",
     "game public_goods", "seats"),
    ("UPDATE games SET label = 'gold' WHERE label = 'public_goods'", "game gold", "row"),
    ("UPDATE messages SET hash = X'00' WHERE id = 5", "message 5", "hash"),
    ("UPDATE messages SET content = replace(content, 'r', 'R') WHERE id = 1", "message 1", "hash"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "where", "what"), FLIPS, ids=[s[:70] for s, *_ in FLIPS])
def test_a_changed_value_is_found_and_named(copy, statement, where, what):
    change(copy, statement)
    found = differences(copy)
    assert (where, what) in [(d.where, d.what) for d in found], "\n".join(map(str, found))
    assert all(d.expected != d.found for d in found)


def test_a_changed_message_is_named_where_it_was_read(copy):
    with closing(sqlite3.connect(copy)) as database:
        prompt = f"SELECT prompt FROM attempts {CALL}"
        row = f"SELECT message FROM prompts WHERE id = ({prompt})"
        [number] = database.execute(row).fetchone()
    change(
        copy, "UPDATE messages SET content = replace(content, 'pot', 'pit') WHERE id = ?", number
    )
    found = next(d for d in differences(copy) if d.where == f"{GOODS}, seat 0")
    assert found.what.startswith("completion 0, message ")
    assert "pot" in found.expected
    assert "pit" in found.found


def test_every_byte_of_the_records_of_a_step_counts(copy):
    """Flip single bits all over what was recorded of one step; whatever is still JSON is found."""
    with closing(sqlite3.connect(copy)) as database:
        [before] = database.execute(f"SELECT record FROM steps {ROW}").fetchone()
    for at in range(0, len(before), 9):
        changed = before[:at] + chr(ord(before[at]) ^ 1) + before[at + 1 :]
        change(copy, f"UPDATE steps SET record = ? {ROW}", changed)
        assert any(d.where.startswith("public_goods, episode 1") for d in differences(copy)), at


def test_an_unfinished_run_is_equal_as_far_as_it_went(tmp_path):
    client = Meddler()

    async def stop(request, ask=client.complete):
        if client.calls > 20:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(60)
        return await ask(request)

    client.complete = stop
    with pytest.raises(KeyboardInterrupt):
        whole(tmp_path / "a.db", client)
    with Records.open_readonly(tmp_path / "a.db") as records:
        assert "running" in {episode.status for episode in records.episodes()}
        done = replay(records)
    assert done.differences == ()
    assert 0 < done.completions <= 20


def test_the_command(llm_games, copy):
    code, out, err = llm_games("replay", copy)
    assert (code, err) == (0, "")
    assert out.endswith("all equal, bit for bit\n")
    change(copy, f"UPDATE decisions SET reward = reward + 1 {SEAT}")
    change(copy, "UPDATE run SET package = '0.0.1'")
    code, out, err = llm_games("replay", copy)
    assert code == 1
    assert f"{GOODS}, seat 0: reward: expected " in out
    assert "made by llm-games 0.0.1" in err
    code, out, _ = llm_games("replay", copy, "--json")
    assert (code, json.loads(out)["differences"][0]["what"]) == (1, "reward")
    code, out, err = llm_games("replay", "nowhere.db")
    assert (code, out, err.startswith("error: there is no file")) == (2, "", True)


def test_a_damaged_file_ends_with_a_message(llm_games, copy):
    change(copy, "UPDATE run SET config = '{'")
    code, out, err = llm_games("replay", copy)
    assert (code, out, "is not JSON" in err) == (2, "", True)


def served(path, spec, **changes):
    plan = make_plan(**changes)
    games = [
        game.model_copy(
            update={
                "seats": [
                    seat.model_copy(update={"player": spec}) if seat.player == "scripted" else seat
                    for seat in game.seats
                ]
            }
        )
        for game in plan.games
    ]
    plan = plan.model_copy(update={"games": games})
    play_run(lambda: start(plan, path), plan, players(plan))
    return content(path)


def test_a_recorded_run_is_played_again_by_the_player_recorded(everything, tmp_path, registry):
    scripted(None)
    assert served(tmp_path / "b.db", f"recorded:{everything}") == content(everything)
    assert differences(tmp_path / "b.db") == ()


def test_recorded_as_a_seat_on_the_command_line(llm_games, everything, tmp_path, monkeypatch):
    copy = shutil.copy(everything, tmp_path / "copy.db")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.toml").write_text(
        'seed = 5\nepisodes = 3\n[[games]]\ngame = "pirate_game"\nparams = {players = 3}\n'
    )
    code, out, err = llm_games("run", "a.toml", "--seat", "recorded:copy.db", "--db", "b.db", "-q")
    assert (code, out, err) == (0, "", "")
    mine, theirs = content("b.db"), content(copy)
    assert all(mine[key] == theirs[key] for key in mine)
    assert len(mine) == 3
    code, _, err = llm_games("run", "a.toml", "--seat", "recorded:none.db", "--db", "c.db")
    assert (code, "there is no file none.db" in err) == (2, True)
    code, _, err = llm_games("run", "a.toml", "--seat", "recorded:copy.db#golf", "--db", "c.db")
    assert (code, "no game in copy.db called 'golf'" in err) == (2, True)
    code, _, err = llm_games("run", "a.toml", "--seat", "recorded", "--db", "c.db")
    assert (code, "needs a value" in err) == (2, True)


def test_different_answers_to_one_prompt_must_be_told_apart(everything, tmp_path):
    copy = shutil.copy(everything, tmp_path / "copy.db")
    assert from_run(copy).name == f"recorded:{copy}"
    with closing(sqlite3.connect(copy)) as database:
        one, two = [
            row[0]
            for row in database.execute(
                "SELECT e.id FROM episodes e JOIN games g ON g.id = e.game WHERE g.label IN "
                "('public_goods', 'auction') AND number = 0 ORDER BY g.label DESC"
            )
        ]
        database.execute(
            "UPDATE attempts SET (prompt, seed, text) = (SELECT prompt, seed, 'other' "
            "FROM attempts WHERE (episode, step, seat, number) = (?, 0, 0, 0)) "
            "WHERE (episode, step, seat, number) = (?, 0, 0, 0)",
            (one, two),
        )
        database.commit()
    with pytest.raises(BadParameter, match="different answers to one prompt, in public_goods and"):
        from_run(copy)
    assert from_run(copy, "auction").name


def test_settings_of_a_client_are_refused(recorded):
    raw = {
        "seats": [{"player": f"recorded:{recorded}", "timeout": 3.0}],
        "games": [{"game": "public_goods"}],
    }
    with pytest.raises(LLMGamesError, match="takes no timeout"):
        players(resolve(parse(raw, "test"), "test"))
