"""All seats learn in many copies at once: PettingZoo's parallel form in batches, or rows."""

import numpy as np
import pytest
from gymnasium import spaces
from playing import CASE_IDS, SETTINGS, each_row

import llm_games as lg
from llm_games.errors import BadParameter, IllegalAction, NotReady, UnknownName
from llm_games.wrappers.team_env import TeamVectorEnv

IDS = CASE_IDS[: len(SETTINGS)]


def drawn(env, rng):
    actions = {}
    for agent in env.agents:
        space = env.single_action_space(agent)
        if isinstance(space, spaces.Discrete):
            masks = env.action_masks()[agent]
            actions[agent] = (rng.random(masks.shape) * masks).argmax(axis=1)
        else:
            actions[agent] = rng.uniform(-1, 1, (env.num_envs, *space.shape)).astype(np.float32)
    return actions


def equal(one, other):
    if isinstance(one, dict):
        return set(one) == set(other) and all(equal(one[key], other[key]) for key in one)
    return np.array_equal(one, other)


def at(observation, copy):
    if isinstance(observation, dict):
        return {part: rows[copy] for part, rows in observation.items()}
    return observation[copy]


SPOKEN = {"players": 3, "talk": {"turns": 1, "alphabet": 2, "speakers": "deciders"}}
WITH_TALK = [("battle_royale", SPOKEN), ("pirate_game", SPOKEN)]


@pytest.mark.crossing
@pytest.mark.parametrize("actions", ["index", "unit"])
@pytest.mark.parametrize(
    ("name", "more"), [*SETTINGS, *WITH_TALK], ids=[*IDS, "talk in turns", "talk of plans"]
)
def test_a_batch_is_a_loop_of_parallel_environments(name, more, actions):
    """Step by step, each copy is what PettingZoo's form of the same seeds is, over episodes."""
    copies, limit = 3, 4
    settings = {"actions": actions, "max_cycles": limit, **more}
    team = TeamVectorEnv(name, copies, **settings)
    loop = [lg.make(name, form="parallel", obs_mode="numeric", **settings) for _ in range(copies)]
    seen, _ = team.reset(seed=11)
    alone = [env.reset(seed=11 + copy)[0] for copy, env in enumerate(loop)]
    rng = np.random.default_rng(1)
    ended = 0
    for _ in range(14):
        given = drawn(team, rng)
        for agent in team.agents:
            assert team.observation_space(agent).contains(seen[agent])
        seen, rewards, terminations, truncations, infos = team.step(given)
        for copy, env in enumerate(loop):
            own = {agent: given[agent][copy] for agent in env.agents}
            last, paid, over, cut, said = env.step(own)
            done = not env.agents
            ended += done
            alone[copy] = env.reset()[0] if done else last
            for agent in paid:
                assert rewards[agent][copy] == paid[agent]
                assert terminations[agent][copy] == over[agent]
                assert truncations[agent][copy] == cut[agent]
                assert infos[agent]["broke"][copy] == said[agent]["broke"]
                final = infos[agent].get("_final_obs", np.zeros(copies, bool))[copy]
                assert final == done
                shown = infos[agent]["final_obs"] if done else seen[agent]
                assert equal(at(shown, copy), last[agent])
            for agent in alone[copy]:
                assert equal(at(seen[agent], copy), alone[copy][agent])
    assert ended >= copies or team.game.division


@each_row("game", ["public_goods", "battle_royale", "pirate_game"])
def test_rows_are_the_team_seat_after_seat(game):
    team, other = (TeamVectorEnv(game, 2, players=3, max_cycles=4) for _ in range(2))
    rows, rng = other.rows(), np.random.default_rng(1)
    by_agent, _ = team.reset(seed=3)
    seen, _ = rows.reset(seed=3)
    ended = 0
    for _ in range(12):
        np.testing.assert_array_equal(
            rows.action_masks(), np.concatenate([*team.action_masks().values()])
        )
        given = drawn(team, rng)
        by_agent, paid, over, cut, infos = team.step(given)
        seen, rewards, terminated, truncated, said = rows.step(np.concatenate([*given.values()]))
        done = np.all([over[a] | cut[a] for a in team.agents], axis=0)
        ended += done.sum()
        for seat, agent in enumerate(team.agents):
            mine = slice(2 * seat, 2 * seat + 2)
            assert equal(
                {k: v[mine] for k, v in seen.items()} if isinstance(seen, dict) else seen[mine],
                by_agent[agent],
            )
            np.testing.assert_array_equal(rewards[mine], paid[agent])
            np.testing.assert_array_equal(terminated[mine], over[agent] & done)
            np.testing.assert_array_equal(truncated[mine], cut[agent] & done)
            np.testing.assert_array_equal(said["payoff"][mine], infos[agent]["payoff"])
            for copy in np.flatnonzero(done):
                assert equal(
                    said["final_obs"][2 * seat + copy], at(infos[agent]["final_obs"], copy)
                )
    assert ended


def test_what_a_team_does_not_take():
    team = TeamVectorEnv("pirate_game", 2, players=3, actions="unit")
    with pytest.raises(NotReady, match="never reset"):
        team.step({})
    team.reset(seed=1)
    sure = {agent: np.zeros((2, 1), np.float32) for agent in team.agents}
    with pytest.raises(IllegalAction, match="one for each of"):
        team.step({"player_0": sure["player_0"]})
    with pytest.raises(IllegalAction, match="one for each of"):
        team.step(sure | {"player_9": sure["player_0"]})
    before = team.reset(seed=1)[0]
    nan = np.array([[0.0], [np.nan]], np.float32)
    asked = next(agent for agent in team.agents if team.reset(seed=1)[1][agent]["asked"][1])
    with pytest.raises(IllegalAction, match=rf"{asked} at table 1: \[nan\]"):
        team.step(sure | {asked: nan})
    for agent, seen in before.items():
        assert equal(team._by_agent(team._observations())[agent], seen), "nothing was begun"
    with pytest.raises(IllegalAction, match="of shape"):
        team.step(sure | {asked: np.zeros(2)})
    with pytest.raises(BadParameter, match="no masks"):
        team.action_masks()
    with pytest.raises(UnknownName, match="did you mean 'player_0'"):
        team.single_action_space("player_00")
    for settings in ({"num_envs": 0}, {"actions": "text"}, {"max_cycles": 0}, {"normalize": 3}):
        with pytest.raises(BadParameter):
            TeamVectorEnv("public_goods", **settings)
    with pytest.raises(IllegalAction, match="6 rows take as many actions"):
        team.rows().step(np.zeros((2, 1)))


def test_copies_take_a_seed_each():
    env = TeamVectorEnv("sealed_bid_auction", 3)
    (seen, _), (same, _) = env.reset(5), env.reset([5, 6, 7])
    assert all(np.array_equal(seen[agent], same[agent]) for agent in env.agents)
    with pytest.raises(BadParameter, match="3 copies take as many seeds, got 2"):
        env.reset([5, 6])
    with pytest.raises(BadParameter, match="seed"):
        env.reset([5, 6, -7])
