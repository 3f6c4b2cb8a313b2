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
from playing import SMALL

import llm_games
from llm_games.benchmarks.cli.human_play import moves, opponents, parameters, payoffs, play_with
from llm_games.benchmarks.runs.config import ConfigError
from llm_games.questions import NO_BID, Bid, Choice, SealedBid, Shares, Target
from llm_games.replies import Reply
from llm_games.view import View
from llm_games.wrappers.human import HumanClient, HumanPolicy, PersonLeft, read_answer, show
from llm_games.wrappers.policy import RandomPolicy

ROOT = str(Path(__file__).parents[1])


class Terminal:
    """`llm-games` in a terminal of its own."""

    def __init__(self, *arguments):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "llm_games.benchmarks.cli", *arguments],
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
            env=os.environ | {"PYTHONPATH": ROOT, "TERM": "dumb", "COLUMNS": "100"},
        )  # fmt: skip
        os.close(slave)
        self.said = ""

    def wait(self, text, seconds=60):
        """Wait until the terminal shows a text; return what it showed up to there."""
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
        """Wait for the process; return its exit code."""
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
def test_a_whole_game_in_a_terminal():
    game = ("--param", "players=3", "--params", "rounds=2", "--param", "tokens=20")
    table = Terminal("play", "public_goods", *game, "--against", "fixed:4", "--seed", "1")
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
    assert "Traceback" not in table.said


@pytest.mark.slow
@pytest.mark.parametrize("key", ["\x04", "\x03"], ids=["Ctrl-D", "Ctrl-C"])
def test_leaving(key):
    table = Terminal("play", "divide_dollar", "--param", "players=3", "--seat", "2")
    table.wait("\n> ")
    table.type(key)
    assert table.end() == 0
    assert "you have left the table" in table.said
    assert "Traceback" not in table.said


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


@pytest.mark.parametrize(("game", "line", "value"), ANSWERS)
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


@pytest.mark.parametrize(("question", "line", "action"), BARE)
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


@pytest.mark.parametrize("game", sorted(llm_games.rooms.ROOMS))
def test_every_game_can_be_played_and_compared(game):
    """A person who tries everything plausible until something is accepted."""
    rules = llm_games.rules(game, **SMALL.get(game, {}))
    said = []

    async def read():
        return next(answers)

    def tries():
        while True:
            yield from (
                "null",
                "0",
                "1",
                "5",
                "accept",
                "go",
                "cheap",
                "costly",
                "11",
                "left",
                "stay",
            )
            yield json.dumps({"1": 100} | dict.fromkeys(map(str, range(2, 11)), 0))

    answers = tries()
    policy = HumanPolicy(HumanClient(read, said.append))
    others = [RandomPolicy() for _ in range(rules.players - 1)]
    episode = play_with(rules, 0, policy, others, 3, said.append)
    assert episode.over
    paid = payoffs(episode, 0, others)
    assert paid[0][:2] == (rules.names()[0], "you")
    assert [p for *_, p in paid] == episode.payoffs.tolist()
    asked = [step.number for step in episode.steps if 0 in step.decisions]
    made = moves(episode, 0)
    assert [move.step for move in made] == asked
    assert all(move.made for move in made)
    view = View.of(rules, episode.state, 0)
    assert view.question is None


def test_the_end_of_the_input():
    policy, said = person(["x"])
    rules = llm_games.rules("public_goods", players=3)
    with pytest.raises(PersonLeft):
        play_with(rules, 0, policy, [RandomPolicy()] * 2, 0, said.append)
    assert any("is not a whole number" in text for text in said)


def test_mistakes():
    rules = llm_games.rules("public_goods", players=3)
    with pytest.raises(ConfigError, match="NAME=VALUE"):
        parameters("public_goods", ["players"])
    assert parameters("public_goods", ["players=3", "ratio=3/2"]) == {"players": 3, "ratio": "3/2"}
    with pytest.raises(ConfigError, match="2 other seats, but --against names 3"):
        opponents(rules, ["random"] * 3, {})
    with pytest.raises(ConfigError, match="--seat must be from 0 to 2, got 3"):
        play_with(rules, 3, person([])[0], [RandomPolicy()] * 2, 0)
    assert [policy.name for policy in opponents(rules, (), {})] == ["rational", "rational"]
