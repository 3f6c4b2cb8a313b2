"""A person at the terminal: what is accepted, what is said, and how one leaves.

The table is a real process behind a pseudo-terminal.
"""

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from playing import SMALL, each_row

import llm_games
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.run.replay import replay
from llm_games.benchmarks.show.cli.human_play import entries, parameters, planned, played, record
from llm_games.questions import NO_BID, Bid, Choice, SealedBid, Shares, Target
from llm_games.replies import Reply
from llm_games.wrappers.human import HumanClient, HumanPolicy, PersonLeft, read_answer, show

ROOT = str(Path(__file__).parents[1])


class Terminal:
    def __init__(self, *arguments):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "llm_games.benchmarks.show.cli", *arguments],
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
            env=os.environ | {"PYTHONPATH": ROOT, "TERM": "dumb", "COLUMNS": "100"},
        )  # fmt: skip
        os.close(slave)
        self.said = ""

    def wait(self, text, seconds=60):
        end, start = time.monotonic() + seconds, len(self.said)
        while text not in self.said[start:]:
            assert time.monotonic() < end, self.said
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.said += os.read(self.master, 65536).decode().replace("\r\n", "\n")
                except OSError:  # the process has gone
                    assert text in self.said[start:], self.said
        return self.said[start:]

    def type(self, text):
        os.write(self.master, text.encode())

    def end(self):
        end = time.monotonic() + 60
        while select.select([self.master], [], [], max(0.0, end - time.monotonic()))[0]:
            try:
                if not (more := os.read(self.master, 65536)):
                    break
            except OSError:
                break
            self.said += more.decode().replace("\r\n", "\n")
        code = self.process.wait(20)
        os.close(self.master)
        return code


@pytest.mark.slow
def test_a_whole_game_in_a_terminal(tmp_path):
    game = ("--param", "players=3", "--params", "rounds=2", "--param", "tokens=20")
    table = Terminal("play", "public_goods", *game, "--against", "fixed:4", "--seed", "1",
                     "--db", str(tmp_path / "a.db"))  # fmt: skip
    assert "Round 1 of 2" in table.wait("\n> ")
    for wrong, why in (("twelve", "is not a whole number"), ("21", "21 is not")):
        table.type(f"{wrong}\n")
        said = table.wait("\n> ")
        assert why in said
        assert "Try again" in said
    table.type("12\n")
    assert "contributions were 12, 4, 4" in table.wait("\n> ")
    table.type('{"tokens_contributed": 0}\n')
    assert table.end() == 0, table.said
    assert "contributions were 0, 4, 4" in table.said
    assert re.search(r"player_0 +you +\d+\.\d\d", table.said)
    assert re.search(r"player_1 +fixed:4 +\d+\.\d\d", table.said)
    assert re.search(r"1 +12 +0 +4\.00", table.said)  # 12 tokens, of which a third comes back twice
    assert re.search(r"2 +0 +0 +0\.00", table.said)
    assert "best reply in your place, rational: 2.00 more a round" in table.said
    assert "Traceback" not in table.said
    with Records.open_readonly(tmp_path / "a.db") as records:
        [episode], replies = records.episodes(), records.attempts(1)
        assert replay(records).differences == ()
    assert (episode.seed, episode.status) == (1, "done")
    assert [json.loads(reply.text) for reply in replies] == [
        {"tokens_contributed": 12},
        {"tokens_contributed": 0},
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("key", "code"), [("\x04", 0), ("\x03", 130)], ids=["Ctrl-D", "Ctrl-C"])
@pytest.mark.parametrize("rounds", [0, 2])
def test_leaving_keeps_what_was_played(key, code, rounds, tmp_path):
    db, game = tmp_path / "you.db", ("divide_dollar", "--param", "players=3", "--seat", "2")
    table = Terminal("play", *game, "--db", str(db))
    for _ in range(rounds):
        table.wait("\n> ")
        table.type("20\n")
    table.wait("\n> ")
    table.type(key)
    assert table.end() == code
    assert "you have left the table" in table.said
    assert "Traceback" not in table.said
    assert ("could have gained" in table.said) == (rounds > 0)
    with Records.open_readonly(db) as records:
        [episode] = records.episodes()
        bids = [made.action for made in records.decisions(episode.id) if made.seat == 2]
    assert (episode.seats[2], bids) == ("you", [20] * rounds)


ANSWERS = [
    ("public_goods", "12", 12),
    ("public_goods", " 7 ", 7),
    ("public_goods", '{"tokens_contributed": 3}', 3),
    ("public_goods", '```json\n{"tokens_contributed": 3}\n```', 3),
    ("public_goods", "seven", None),
    ("public_goods", "7.5", None),
    ("public_goods", "", None),
    ("public_goods", "null", None),
    ("public_goods", '{"tokens_contributed": 99}', None),
    ("public_goods", "[" * 5000, None),
    ("el_farol_bar", "go", "go"),
    ("el_farol_bar", "Stay", "stay"),
    ("el_farol_bar", '"go"', "go"),
    ("el_farol_bar", "maybe", None),
    ("battle_royale", "null", None),
    ("battle_royale", "player_3", "player_3"),
    ("battle_royale", "3", "player_3"),
    ("pirate_game", '{"1": 98, "2": 0, "3": 2}', {"1": 98, "2": 0, "3": 2}),
    ("pirate_game", '{"1": 98, "2": 0, "3": 1}', None),
    ("pirate_game", "[98,0,2]", {"1": 98, "2": 0, "3": 2}),
    ("pirate_game", " 98, 0 2 ", {"1": 98, "2": 0, "3": 2}),
    ("pirate_game", "98, 0, 3", None),
    ("pirate_game", "98, 2", None),
    ("pirate_game", "98, none, 2", None),
    ("public_goods", "withdraw", None),
    ("english_auction", "withdraw", None),
]


@each_row(("game", "line", "value"), ANSWERS)
def test_answers(game, line, value):
    rules = llm_games.rules(game, **({"players": 3} if game == "pirate_game" else {}))
    state = rules.reset(0)
    seat = int(np.flatnonzero(rules.asked(state))[0])
    question = rules.question(state, seat)
    reply = read_answer(line, question)
    if value is None and game not in ("battle_royale", "english_auction"):
        assert reply.outcome != "valid"
        assert reply.why
    else:
        assert reply.outcome == "valid", reply
        assert question.value_of(reply.action) == value


VOTE = Choice("decision", {"accept": 1, "reject": 0})
BARE = [
    *((VOTE, word, 1) for word in ("yes", "Y", "Accept", '"accept"')),
    *((VOTE, word, 0) for word in ("No.", "n", "reject")),
    *((Bid("bid", 10, 50), word, NO_BID) for word in ("withdraw", "pass", "None", "null")),
    (Bid("bid", 10, 50), "12", 12),
    (SealedBid("bid", 0, 90, 0), "none", NO_BID),
    (Target("target", {"player_2": 1}, {"player_1": 0}, {}, 2), "nobody", -1),
]


@each_row(("question", "line", "action"), BARE)
def test_words_that_a_person_would_use(question, line, action):
    assert read_answer(line, question) == Reply("valid", action)


def test_a_row_of_numbers_that_does_not_fit_is_told_why():
    shares = Shares("proposal", (1, 2, 3), 100, 3)
    assert read_answer("98, 0, 3", shares).why == "the shares add up to 101, not to 100"
    assert "is not whole shares for the ranks 1 to 3" in read_answer("[98, 2]", shares).why


def test_lines_are_broken_between_words(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    show('\nHow many tokens do you put into the pot?\n{"tokens_contributed": 12}')
    assert capsys.readouterr().out.splitlines() == [
        *("", "How many tokens do", "you put into the", "pot?", '{"tokens_contributed":', "12}")
    ]


def person(lines):
    rest, said = iter(lines), []

    async def read():
        for line in rest:
            return line
        raise EOFError

    return HumanPolicy(HumanClient(read, said.append)), said


@pytest.mark.parametrize("game", sorted(llm_games.game_rooms.ROOMS))
def test_every_game_can_be_played_and_compared(game, tmp_path):
    """A person who tries everything plausible until something is accepted."""
    rules = llm_games.rules(game, **SMALL[game])
    said = []

    async def read():
        return next(answers)

    def tries():
        while True:
            yield from ("null", "0", "1", "5", "11")
            yield from ("accept", "go", "cheap", "costly", "left", "stay", "A")
            yield json.dumps({"1": 100} | dict.fromkeys(map(str, range(2, 11)), 0))
            yield '{"take": {}}'

    answers = tries()
    policy = HumanPolicy(HumanClient(read, said.append))
    raw, db = {"params": SMALL[game]}, tmp_path / "a.db"
    record(planned(rules, raw, 0, policy, ["random"], server={}, seed=3), db)
    found = played(db, 0)
    assert [name for name, *_ in found.payoffs] == rules.names()
    assert [player for _, player, _ in found.payoffs] == ["you"] + ["random"] * (rules.players - 1)
    with Records.open_readonly(db) as records:
        [episode] = records.episodes()
        assert (episode.seed, episode.status) == (3, "done")
        paid = np.sum([step.rewards for step in records.steps(episode.id)], axis=0)
        asked = [d.step for d in records.decisions(episode.id) if d.seat == 0]
    assert [payoff for *_, payoff in found.payoffs] == pytest.approx(paid.tolist())
    assert [move.step for move in found.moves] == asked
    assert all(move.action for move in found.moves)


def test_the_end_of_the_input(tmp_path):
    policy, said = person(["x"])
    rules, db = llm_games.rules("public_goods", players=3), tmp_path / "a.db"
    with pytest.raises(PersonLeft):
        record(
            planned(rules, {"params": {"players": 3}}, 0, policy, ["random"], server={}, seed=0), db
        )
    assert any("is not a whole number" in text for text in said)
    assert played(db, 0).moves == []


def test_mistakes():
    rules = llm_games.rules("public_goods", players=3)
    with pytest.raises(ConfigError, match="NAME=VALUE"):
        entries(["players"])
    raw = entries(["players=3", "ratio=3/2"])
    assert parameters("public_goods", raw) == {"players": 3, "ratio": "3/2"}

    def plan(seat, against):
        return planned(rules, raw, seat, person([])[0], against, server={}, seed=0)

    with pytest.raises(ConfigError, match="2 other seats, but --against names 3"):
        plan(0, ["random"] * 3)
    with pytest.raises(ConfigError, match="--seat must be from 0 to 2, got 3"):
        plan(3, ["random"])
    assert [seat.name for seat in plan(1, ()).games[0].seats] == ["rational", "you", "rational"]
