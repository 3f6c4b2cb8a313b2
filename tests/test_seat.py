"""Whole runs of γ-Bench on servers of today: every move is the model's own final answer."""

import json
import random

import pytest
from fault_server import completion, error
from test_clients_openai import OPTIONAL, Server

from llm_games.baselines.players import PLAYERS, Kind
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.run.conduct import play_run, start
from llm_games.benchmarks.run.config import load
from llm_games.benchmarks.run.plan import plan_of, players
from llm_games.wrappers.clients.chat import Chat
from llm_games.wrappers.clients.openai import OpenAIClient
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy


def an_answer(schema, chance):
    if schema is None:
        return "Hello.", "Hi."
    ((key, of),) = schema["properties"].items()
    of = of.get("anyOf", [of])[0]  # else null: nobody, no bid
    if names := list(of.get("properties", {})):
        best = chance.choice(names)
        both = [{name: 100 * (name == one) for name in names} for one in (best, names[0])]
    elif "enum" in of:
        both = [chance.choice(of["enum"]) for _ in range(2)]
    else:
        both = [chance.randint(of["minimum"], of.get("maximum", 50)) for _ in range(2)]
    return tuple(json.dumps({key: value}) for value in both)


def of_chat(chat, schema):
    """Return what the model finally answers in a chat, and its draft before that."""
    return an_answer(schema, random.Random(chat.digest))


def thinks_aloud(final, draft):
    return completion(
        f"Let me think. My first idea is this:\n\n{draft}\n\nThe others may see through it, so I "
        f"look for something better.\n\n**Final answer:** {final}"
    )


def thinks_apart(final, draft):
    return completion(final, reasoning_content=f"First idea:\n\n{draft}\n\nNo: {final} is better.")


def thinks_in_tags(final, draft):
    return completion(f"<think>\nFirst idea:\n\n{draft}\n\nNo.\n</think>\n\n{final}")


def says_it(final, draft):
    return completion(final)


@pytest.fixture
def server():
    server = Server()
    yield server
    server.stop()


def played(path, seat, address=None):
    """Play all games shortly; return what was done in each decision, and all completions."""
    raw = load("gamma-bench") | {"episodes": 1, "seats": [seat]}
    short = {"players": 4, "rounds": 2}
    games = [game["game"] for game in raw["games"]]
    params = dict.fromkeys(games, short)
    params |= {"battle_royale": {"players": 4}, "pirate_game": {"players": 4}}
    raw["games"] = [{"game": name, "params": params[name]} for name in games]
    drawn = {"top_p": 0.9, "max_tokens": 900, "reasoning_effort": "low", "stop": ["###"]}
    raw["player"] = raw["player"] | drawn | {"extra_body": {"top_k": 5}}
    if address:
        raw["models"] = {"m": {"base_url": address, "service_tier": "flex"}}
    plan = plan_of(raw)
    play_run(lambda: start(plan, path), plan, players(plan))
    with Records.open_readonly(path) as records:
        episodes = [e.id for e in records.episodes()]
        moves = [
            [(row.step, row.seat, row.action, row.outcome) for row in records.decisions(one)]
            for one in episodes
        ]
        rows = [row for one in episodes for row in records.attempts(one)]
    return moves, rows


@pytest.mark.slow
@pytest.mark.parametrize("said", [thinks_aloud, thinks_apart, thinks_in_tags, says_it])
def test_every_move_of_a_run_is_the_models_final_answer(
    server, tmp_path, monkeypatch, registry, said
):
    def final(request):
        return of_chat(request.messages, request.schema())[0]

    PLAYERS["plain"] = Kind(
        "answers at once", model=lambda value, _, more: LLMPolicy(ScriptedClient(final), **more)
    )
    expected, _ = played(tmp_path / "plain.db", "plain")
    schemas, complete = {}, OpenAIClient.complete

    async def noted(self, request):
        schemas[request.messages.digest] = request.schema()
        return await complete(self, request)

    monkeypatch.setattr(OpenAIClient, "complete", noted)
    refuses = said is says_it

    def answer(body):
        for name in OPTIONAL if refuses else ():
            if name in body:
                return 400, error(f"Unsupported parameter: '{name}'", param=name)
        chat = Chat.of(body["messages"])
        return 200, said(*of_chat(chat, schemas[chat.digest]))

    server.script = [answer]
    moves, rows = played(tmp_path / "served.db", "openai:m", server.url)
    assert moves == expected
    assert {outcome for game in moves for *_, outcome in game} == {"valid"}
    assert len(rows) > 50
    if said is not says_it:
        assert all("irst idea" in row.thoughts + row.text for row in rows)
    if said is thinks_apart:
        assert not any("irst idea" in row.text for row in rows)
    left = sorted({*OPTIONAL} - {"max_completion_tokens"}) if refuses else None
    assert [row.left_out for row in rows] == [left] * len(rows)
    if refuses:  # each is met once, by the greeting or by the first calls together
        assert len(server.seen) < len(rows) + 200
