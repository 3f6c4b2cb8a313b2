"""SuperSuit: all seats learn with one network, as copies of Stable-Baselines3's environment."""

import supersuit
from stable_baselines3 import PPO
from trial import report, table


def plain(game, form):
    """Most of SuperSuit's wrappers take a Box, so that masks are in infos."""
    return table(game, form, masks="info")


def shared(game):
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


if __name__ == "__main__":
    report({"PPO, all seats": shared, "wrappers, AEC": stacked})
