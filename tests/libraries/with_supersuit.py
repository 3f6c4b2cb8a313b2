"""SuperSuit: all seats learn with one network, as copies of Stable-Baselines3's environment."""

import supersuit
from trial import report, table

import llm_games as lg
from llm_games.errors import IllegalAction


def plain(game, form, **parameters):
    """Most of SuperSuit's wrappers take a Box, so that masks are in infos."""
    return table(game, form, masks="info", **parameters)


def shared(game):
    from stable_baselines3 import PPO

    env = supersuit.black_death_v3(plain(game, "parallel"))
    copies = supersuit.pettingzoo_env_to_vec_env_v1(env)
    copies = supersuit.concat_vec_envs_v1(copies, 2, base_class="stable_baselines3")
    PPO("MlpPolicy", copies, n_steps=16, batch_size=64, n_epochs=1).learn(64)


def stacked(game):
    env = supersuit.frame_stack_v1(supersuit.agent_indicator_v0(plain(game, "aec")), 2)
    env.reset(seed=1)
    for agent in env.agent_iter(60):
        _, _, terminated, truncated, _ = env.last()
        env.step(None if terminated or truncated else env.action_space(agent).sample())


WRAPPERS = {
    "clip reward": lambda env: supersuit.clip_reward_v0(env, -1e9, 1e9),
    "delay": lambda env: supersuit.delay_observations_v0(env, 1),
    "dtype": lambda env: supersuit.dtype_v0(env, "float64"),
    "flatten": supersuit.flatten_v0,
    "normalize": supersuit.normalize_obs_v0,
    "stack": lambda env: supersuit.frame_stack_v1(env, 2),
    "indicator": supersuit.agent_indicator_v0,
    "pad": supersuit.pad_observations_v0,
    "lambda": lambda env: supersuit.observation_lambda_v0(env, lambda seen, space: 0 * seen),
}


def payoffs(env, players):
    """Play one of PettingZoo's two documented loops with our players in all seats."""
    sums = dict.fromkeys(env.possible_agents, 0.0)
    seats = {a: lg.sit(player, env, a) for a, player in zip(sums, players, strict=True)}
    if hasattr(env, "agent_iter"):
        env.reset(seed=3)
        for agent in env.agent_iter():
            seen, reward, terminated, truncated, _ = env.last()
            sums[agent] += reward
            env.step(None if terminated or truncated else seats[agent](seen))
    else:
        seen, _ = env.reset(seed=3)
        while env.agents:
            seen, rewards, *_ = env.step({a: seats[a](seen[a]) for a in env.agents})
            for agent, reward in rewards.items():
                sums[agent] += reward
    return [*sums.values()]


def seated(game):
    """Our players play the same under wrappers; one that changes actions is refused."""
    settings = {"max_rounds": 3, "players": 4} if "evacuation" in game else {}
    settings |= {"rounds": 5} if "bertrand" in game else {}
    rules = plain(game, "parallel", **settings).unwrapped.game
    players = [lg.player(("random", "rational")[i % 2], rules) for i in range(rules.players)]
    for form in ("parallel", "aec"):
        for name, wrap in WRAPPERS.items():
            env = wrap(plain(game, form, **settings))
            assert payoffs(env, players) == lg.play(rules, players, 3).payoffs.tolist(), (
                form,
                name,
            )
        shifted = supersuit.action_lambda_v1(
            plain(game, form, **settings),
            lambda action, space: space.start + (action - space.start + 1) % space.n,
            lambda space: space,
        )
        try:
            payoffs(shifted, players)
        except IllegalAction:
            continue
        raise AssertionError(f"{form}: changed actions were played")


if __name__ == "__main__":
    report({"PPO, all seats": shared, "wrappers, AEC": stacked, "our players": seated})
