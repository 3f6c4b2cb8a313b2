"""Players by rule that talk, learners that invent a code, and talk of the embedded model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from playing import QUICK, each_row

from llm_games.baselines.batch_play import play_rules
from llm_games.baselines.players import llm_player, make_player, players_for
from llm_games.baselines.talkers import PROPOSAL, symbols
from llm_games.benchmarks.studies.tiny import samples as data
from llm_games.benchmarks.studies.tiny import talks
from llm_games.errors import BadParameter
from llm_games.game_rooms import ROOMS
from llm_games.questions import Speech
from llm_games.registry import rulebook
from llm_games.view import View
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.play import play
from llm_games.wrappers.policy import Decision

NOTHING = Decision(0)


def small(name, **more):
    return rulebook(name, **QUICK[name] | more)


def table(game):
    names = ["announcer:random", "liar:random", "proposer"][: game.players]
    return [*names, *["random"] * (game.players - len(names))]


@each_row("name", sorted(ROOMS))
def test_talkers_play_as_they_would_without_talk(name):
    game = small(name, talk={"turns": 2})
    quiet = ["random", "random", "cooperative"][: game.players]
    quiet += ["random"] * (game.players - len(quiet))
    spoken = play(game, [make_player(who, game) for who in table(game)], seed=5, max_steps=400)
    silent = play(game.core, [make_player(who) for who in quiet], seed=5, max_steps=400)
    moves = [record["actions"] for record in spoken.records]
    expected = [record["actions"] for record in silent.records[: len(moves)]]
    assert moves == expected
    assert len(spoken.steps) > len(moves)


@each_row("name", ["public_goods", "el_farol_bar", "battle_royale"])
def test_announced_moves_are_named_and_kept(name):
    game = small(name, talk={"turns": 1})
    names = ["announcer:random", "liar:rational"]
    names += ["proposer"] * (game.players - 2)
    episode = play(game, [make_player(who, game) for who in names], seed=2)
    state, heard = game.reset(2), dict[int, str]()
    kept, promised = [], []
    for step in episode.steps:
        if step.outcome.record.get("phase") == "talk":
            heard |= {seat: decision.action for seat, decision in step.decisions.items()}
        else:
            for seat, decision in step.decisions.items():
                question = game.core.question(state.game, seat)
                move = question.named(heard[seat])
                (promised if seat == 1 else kept).append((move, decision.action))
        state, _ = game.step(state, game.assemble(state, moves_of(step)))
    assert kept
    assert all(named == played for named, played in kept)
    assert promised
    assert all(named not in (None, played) for named, played in promised)


def moves_of(step):
    return {seat: decision.action for seat, decision in step.decisions.items()}


def test_a_proposer_proposes_and_a_liar_promises_what_is_best_for_all():
    game = small("public_goods", players=3, talk={"turns": 1})
    names = ["proposer", "liar:rational", "proposer:rational"]
    episode = play(game, [make_player(who, game) for who in names], seed=0)
    said = {s: d.action for step in episode.steps[:3] for s, d in step.decisions.items()}
    assert said[0] == said[2] == f"{PROPOSAL} I will choose 20."
    assert said[1] == "I will choose 20."
    assert episode.records[0]["actions"] == [20, 0, 0]


@each_row("talk", [{"turns": 2}, {"turns": 2, "alphabet": 3}])
@each_row("name", ["public_goods", "el_farol_bar", "pirate_game"])
def test_a_batch_says_and_plays_what_single_tables_do(name, talk):
    game = small(name, talk=talk)
    names = table(game)
    seeds = [3, 4, 5]
    batch = play_rules(game, names, seeds)
    for place, seed in enumerate(seeds):
        episode = play(game, [make_player(who, game) for who in names], seed=seed)
        assert episode.payoffs.tolist() == batch.payoffs[:, place].tolist()
        for step, record in zip(episode.steps, batch.records, strict=False):
            for seat, action in moves_of(step).items():
                if not isinstance(action, tuple):
                    assert record["actions"][seat, place] == action


def test_symbols_share_the_actions_in_order():
    bar, fund = rulebook("el_farol_bar"), rulebook("public_goods")
    assert symbols(bar, np.array([0, 1]), 5).tolist() == [1, 2]
    found = symbols(fund, np.arange(21), 4).tolist()
    assert found == sorted(found)
    assert {*found} == {1, 2, 3, 4}
    assert symbols(fund, np.arange(21), 1).tolist() == [1] * 21


def test_who_can_talk_by_rule():
    known = players_for("public_goods")
    assert {"announcer:<player>", "liar:<player>", "proposer", "proposer:<player>"} <= {*known}
    with pytest.raises(BadParameter, match="only players that follow a rule"):
        make_player("announcer:tiny")
    with pytest.raises(BadParameter, match="needs a value"):
        make_player("liar")
    with pytest.raises(BadParameter, match="not defined for pirate_game"):
        make_player("announcer:level_k:1", "pirate_game")


def test_tools_know_the_game_inside_a_talk():
    game = small("public_goods", players=2, talk={"turns": 1, "order": "fixed"})
    asked = json.dumps({"tool": "best_response", "arguments": {}})
    said = json.dumps({"speech": "I will choose 0."})
    replies = [said, asked, json.dumps({"tokens_contributed": 0})] * game.core.rounds
    talker = llm_player(ScriptedClient(replies), {"tools": ["best_response"]})
    episode = play(game, [talker, make_player("rational")], seed=0)
    attempts = [a for step in episode.steps for a in step.decisions.get(0, NOTHING).attempts]
    assert [a.outcome for a in attempts] == ["valid", "tool", "valid"] * game.core.rounds
    assert all("tokens_contributed 0" in str([*a.messages]) for a in attempts[2::3])


# -- the embedded model ---------------------------------------------------------------------------


@each_row("name", sorted(data.VARIANTS))
def test_scripts_talk_and_move_legally(name):
    rng = np.random.default_rng(1)
    game = small(name, talk={"turns": 1})
    spoken = 0
    for seed in range(2):
        state, steps = game.reset(seed), 0
        while not state.over and steps < 60:
            moves, steps = {}, steps + 1
            for seat in np.flatnonzero(game.asked(state)).tolist():
                view, persona = View.of(game, state, seat), data.persona_of(rng)
                speech = isinstance(view.question, Speech)
                own = talks.speech if speech else talks.moved
                moves[seat], reason = own(view, persona, rng)
                spoken += speech and bool(moves[seat])
                assert '"' not in reason
            state, outcome = game.step(state, game.assemble(state, moves))
            assert not outcome.broke.any()
    assert spoken


def test_samples_of_talks_are_what_is_asked_and_answered():
    rng = np.random.default_rng(3)
    game = small("public_goods", players=4, rounds=3, talk={"turns": 1})
    drawn = list(talks.table(game, rng, share=1.0))
    assert len(drawn) == talks.ASKED * 2 * 3
    replies = [json.loads(sample.answer) for sample in drawn]
    assert {key for reply in replies for key in reply} >= {"speech", "tokens_contributed"}
    assert all(sample.prompt.endswith("<|assistant|>") for sample in drawn)
    assert any("What players said" in sample.prompt for sample in drawn)


def test_characters_keep_their_words_more_or_less():
    rng, game = np.random.default_rng(0), small("public_goods", players=2, talk={"turns": 1})
    kept = dict.fromkeys((None, "cooperative", "selfish"), 0)
    for persona in kept:
        for seed in range(40):
            state = game.reset(seed)
            while state.turn:
                seat = int(np.flatnonzero(game.asked(state))[0])
                text = "I will choose 13." if seat == 0 else ""
                state, _ = game.step(state, game.assemble(state, {seat: text}))
            kept[persona] += talks.moved(View.of(game, state, 0), persona, rng)[0] == 13
    assert kept["cooperative"] > kept[None] > kept["selfish"]


# -- a code ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_pair_learns_more_with_symbols_than_silence_can_bring():
    pytest.importorskip("sb3_contrib")
    from llm_games.benchmarks.studies.invented_code import Meeting, code, learned

    *_, (last, policy) = learned(True, seed=0, updates=11)
    assert last.met > 2 / Meeting.places  # without a word nobody does better than 1 in 4
    assert len({*code(policy)}) > 1


@pytest.mark.slow
def test_a_model_that_says_symbols_is_saved_as_one(tmp_path):
    sb3 = pytest.importorskip("stable_baselines3")
    from llm_games.wrappers.sb3 import SB3VecEnv, load_player, save_player
    from llm_games.wrappers.team_env import TeamVectorEnv

    talk = {"turns": 1, "alphabet": 2}
    env = SB3VecEnv(TeamVectorEnv("public_goods", 2, players=2, rounds=2, talk=talk).rows())
    model = sb3.PPO("MultiInputPolicy", env, n_steps=4, batch_size=8, seed=1)
    speaker = load_player(save_player(model, env, tmp_path / "speaker"))
    assert speaker.speaks
    game = rulebook("public_goods", players=2, rounds=2, talk=talk)
    episode = play(game, [speaker, make_player("announcer:rational")], seed=1)
    said = [step.decisions for step in episode.steps if step.outcome.record.get("phase") == "talk"]
    assert all(0 <= own.action <= 2 for decisions in said for own in decisions.values())
    assert {seat for decisions in said for seat in decisions} == {0, 1}
    with pytest.raises(BadParameter, match="trained for"):
        play(game.core, [speaker, make_player("rational")], seed=1)

    words = {"turns": 1}
    env = SB3VecEnv(TeamVectorEnv("public_goods", 2, players=2, rounds=2, talk=words).rows())
    mute = load_player(
        save_player(sb3.PPO("MlpPolicy", env, n_steps=4, batch_size=16), env, tmp_path / "mute")
    )
    assert not mute.speaks
    for talked in (game, game.core):
        play(talked, [mute, make_player("rational")], seed=1)
