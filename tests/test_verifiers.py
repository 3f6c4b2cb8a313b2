"""Any game as an environment of verifiers, which is installed apart: see tests/libraries."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("verifiers", reason="verifiers has an environment of its own")
sys.path.append(str(Path(__file__).parent / "libraries"))

import with_verifiers
from with_verifiers import checked, played

import llm_games as lg
from llm_games.errors import BadParameter, UnknownName
from llm_games.wrappers.clients.scripted import ScriptedClient

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def address():
    with with_verifiers.server() as found:
        yield found


def test_a_decision_is_rewarded_by_what_is_paid_from_it_on(address):
    """Its game is the one that is played with the same moves and the same seed."""
    params = {"players": 3, "rounds": 4}
    [episode] = played("public_goods", address, 1, params=params, opponents=["random", "fixed:3"])
    traces = checked(episode)
    said = [node.message.content for trace in traces for node in trace.nodes if node.sampled]
    others = [lg.player(name) for name in ("random", "fixed:3")]
    again = lg.play("public_goods", [ScriptedClient(said), *others], seed=7, **params)
    paid = np.array([step.outcome.rewards[0] for step in again.steps])
    found = [trace.rewards["payoff"].score for trace in traces]
    assert found == pytest.approx(paid[::-1].cumsum()[::-1])
    assert [trace.metrics["legal"] for trace in traces] == [1.0] * 4


def test_a_conversation_is_one_trace_of_what_was_really_said(address):
    params = {"players": 3, "rounds": 3}
    [episode] = played(
        "public_goods", address, 1, params=params, conversation=True, reward="regret", legal=0.5
    )
    [trace] = checked(episode)
    roles = [node.message.role for node in trace.nodes]
    assert roles == ["system", *["user", "assistant"] * 3]
    assert [node.sampled for node in trace.nodes] == [role == "assistant" for role in roles]
    given = [
        eval(node.message.content)["tokens_contributed"] for node in trace.nodes if node.sampled
    ]
    assert trace.rewards["regret"].score == pytest.approx(-sum(given) / 3)
    assert trace.reward == pytest.approx(-sum(given) / 3 + 0.5 * 3)


def test_seats_take_turns_by_the_seed(address):
    """Its payoff is that of the seat, in a game in which the others give nothing."""
    for first, seat in ((3, 0), (4, 1)):
        taskset = {"id": "games", "games": 1, "first": first}
        more = {"params": {"players": 3, "rounds": 1}, "seat": "rotate", "taskset": taskset}
        [episode] = played("public_goods", address, 1, opponents="fixed:0", **more)
        [trace] = checked(episode)
        said = [node.message.content for node in trace.nodes if node.sampled]
        table = [lg.player("fixed:0")] * 2
        table.insert(seat, ScriptedClient(said))
        again = lg.play("public_goods", table, seed=first, players=3, rounds=1)
        assert trace.rewards["payoff"].score == pytest.approx(again.payoffs[seat])


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"opponents": ["random"]}, BadParameter, "2 other seats need as many opponents, got 1"),
        ({"opponents": "nobody"}, UnknownName, "nobody"),
        ({"seat": 3}, BadParameter, "seat must be"),
        ({"settings": {"persona": "x"}}, UnknownName, "persona"),
        ({"settings": {"promts": "v2"}}, UnknownName, "did you mean 'prompts'"),
        ({"conversation": True, "settings": {"memory": 2}}, BadParameter, "memory = 'full'"),
        ({"params": {"players": 0}}, BadParameter, "players"),
    ],
)
def test_mistakes_are_found_before_anything_is_asked(wrong, error, said):
    with pytest.raises(error, match=said):
        played("public_goods", "http://127.0.0.1:9/v1", **{"params": {"players": 3}, **wrong})


def test_a_server_that_fails_is_the_episodes_error():
    params = {"players": 3, "rounds": 1}
    [episode] = played("public_goods", "http://127.0.0.1:9/v1", 1, params=params)
    assert not episode.ok
    assert episode.errors
