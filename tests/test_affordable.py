"""Language models as opponents that a learner can afford: samples, budgets, what is known."""

import asyncio
import json
import random
from dataclasses import replace

import pytest
from fault_server import completion

import llm_games as lg
from llm_games.errors import BadParameter, UnknownName
from llm_games.questions import Integer
from llm_games.view import NOBODY, Sight, Who
from llm_games.wrappers.clients.base import Completion, Request, Sampling
from llm_games.wrappers.clients.budget import BudgetExceeded
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.clients.stack import Shared, dress, ledger_of

GOODS = {"players": 3, "rounds": 4}


def contributed(body):
    """Contribute what the sampling seed says."""
    return completion(
        json.dumps({"tokens_contributed": random.Random(body["seed"]).randint(0, 20)})
    )


def asking(number=0, step=0, seat=0, seed=1, temperature=1.0, call=0, view=None):
    who = Who("dice", seed, step, seat, call, seed)
    text = ({"role": "system", "content": "Dice."}, {"role": "user", "content": f"Now {number}?"})
    sampling = Sampling(temperature=temperature)
    return Request(text, Integer("bid", 0, 9), sampling=sampling, seed=seat, who=who, view=view)


def numbered(**layers):
    """Return a dressed client whose n-th call is answered with n, and what it was asked."""
    seen = []

    async def script(request):
        await asyncio.sleep(0)
        seen.append(request)
        return Completion(f'{{"bid": {len(seen)}}}', tokens_in=9, tokens_out=1)

    return dress(ScriptedClient(script, "m"), **layers), seen


def complete(client, *requests):
    async def go():
        return await asyncio.gather(*map(client.complete, requests))

    return [found.text for found in asyncio.run(go())]


# -- samples -----------------------------------------------------------------------------------


def test_a_situation_has_so_many_replies_and_no_more(tmp_path):
    client, seen = numbered(samples=4, cache=tmp_path / "replies.db")
    found = [
        complete(client, asking(step=step, seed=seed))[0] for seed in (1, 2) for step in range(30)
    ]
    assert len(seen) == len({*found}) == 4
    assert (client.hits, client.misses, ledger_of(client).total.calls) == (56, 4, 4)
    assert min(found.count(reply) for reply in {*found}) > 5
    complete(client, asking(1))
    assert len(seen) == 5  # another situation


def test_what_is_drawn_hangs_on_episode_step_and_rank_alone(tmp_path):
    requests = [
        asking(step=step, seat=seat, seed=seed)
        for seed in (1, 2)
        for step in range(9)
        for seat in (0, 1)
    ]
    client, _ = numbered(samples=8, cache=tmp_path / "replies.db")
    first = complete(client, *requests)
    again, seen = numbered(samples=8, cache=tmp_path / "replies.db")
    others = [replace(one, who=one.who._replace(seat=one.who.seat + 5), seed=7) for one in requests]
    assert complete(again, *requests) == first == complete(again, *others)
    assert not seen
    same = [a == b for a, b in zip(first[::2], first[1::2], strict=True)]
    assert sum(same) < 9  # two seats that ask the same at once draw one each


def test_the_seed_that_is_sent_is_the_situations(tmp_path):
    """Whoever asks first, a draw of a situation is asked for with the same sampling seed."""
    sent = []
    for order in (1, -1):
        client, seen = numbered(samples=3, cache=tmp_path / f"replies{order}.db")
        complete(client, *[asking(step=step) for step in range(12)][::order])
        sent.append({request.seed for request in seen})
    assert sent[0] == sent[1]
    assert len(sent[0]) == 3
    assert all(0 <= seed < 2**31 for seed in sent[0])


def test_a_reask_is_drawn_like_the_decision_it_is_part_of(tmp_path):
    client, _ = numbered(samples=64, cache=tmp_path / "replies.db")
    complete(client, asking(seat=0), asking(seat=1))
    for call in (1, 2):
        complete(client, asking(number=call, seat=1, call=call))
        assert client.asked_by(Who("dice", 1, 0, 1)).rank == 1
    assert client.asked_by(Who("dice", 1, 1, 1)) is None


def test_a_share_is_asked_for_anew_and_takes_the_place(tmp_path):
    client, seen = numbered(samples=2, fresh=0.25, cache=tmp_path / "replies.db")
    found = [complete(client, asking(step=step))[0] for step in range(200)]
    assert 30 < len(seen) < 75
    assert len({request.seed for request in seen}) == len(seen)
    for step, text in enumerate(found[1:], 1):
        calls = int(json.loads(text)["bid"])
        assert calls <= len(seen)
        assert found.index(text) <= step
    kept = [json.loads(text)["bid"] for text in found[-10:]]
    assert min(kept) > len(seen) - 25  # what was kept at the start is gone
    assert client.hits + client.misses == 200


def test_at_temperature_0_one_reply_is_all_there_is(tmp_path):
    client, seen = numbered(samples=4, fresh=0.5, cache=tmp_path / "replies.db")
    complete(client, *(asking(step=step, temperature=0.0) for step in range(9)))
    assert len(seen) == 1


def test_outside_of_games_the_seed_is_the_draw(tmp_path):
    client, seen = numbered(samples=4, cache=tmp_path / "replies.db")
    requests = [replace(asking(), who=NOBODY, seed=seed) for seed in (0, 1, 4, 5)]
    complete(client, *requests)
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ({"samples": 0}, "samples must be an integer of at least 1, got 0"),
        ({"samples": 2, "fresh": 1.5}, "fresh must be a share from 0 to 1, got 1.5"),
        ({"fresh": 0.1}, "set samples"),
        ({"nearest": True}, "set samples"),
        ({"samples": 2, "cache": False}, "samples are kept in a cache"),
        ({"budget": {"calls": -1}}, "budget of calls must be an integer of at least 0, got -1"),
        ({"budget": {"call": 1}}, "did you mean 'calls'"),
        ({"budget": 7}, "by name"),
        ({"budget": {"calls": 1}, "shared": Shared()}, "leave one out"),
    ],
)
def test_settings_that_cannot_be(layers, said, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises((BadParameter, UnknownName), match=said):
        numbered(**layers)


# -- a budget that ends --------------------------------------------------------------------------


def seen_by(state_seed, seat=0):
    game = lg.rulebook("public_goods", **GOODS)
    state = game.reset(state_seed)
    return Sight(game, state).view(seat)


def test_what_is_known_is_served_when_the_budget_has_ended(tmp_path):
    layers = {"samples": 4, "cache": tmp_path / "replies.db"}
    complete(numbered(**layers)[0], *(asking(step=step) for step in range(3)))
    client, seen = numbered(**layers, budget={"calls": 0}, fresh=0.9)
    found = complete(client, *(asking(step=step) for step in range(40)))
    assert not seen
    assert {*found} <= {'{"bid": 1}', '{"bid": 2}', '{"bid": 3}'}
    with pytest.raises(BudgetExceeded, match=r"calls = 0, has 0 spent.*nearest"):
        complete(client, asking(1))
    assert (client.hits, client.misses, client.near) == (40, 0, 0)
