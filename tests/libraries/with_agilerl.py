"""AgileRL: PPO on copies of one seat's view, IPPO of all seats."""

import gymnasium
import supersuit
from agilerl.algorithms import IPPO, PPO
from agilerl.training.train_multi_agent_on_policy import train_multi_agent_on_policy
from agilerl.training.train_on_policy import train_on_policy
from gymnasium.vector import SyncVectorEnv
from trial import COPIES, report, single, table

NET = {"encoder_config": {"hidden_size": [32]}, "head_config": {"hidden_size": [32]}}


class Masks(gymnasium.Wrapper):
    """Move the mask from observations to infos, where AgileRL looks for it."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = env.observation_space["observation"]

    def reset(self, **settings):
        return self.moved(*self.env.reset(**settings))

    def step(self, action):
        seen, reward, ended, cut, info = self.env.step(action)
        seen, info = self.moved(seen, info)
        return seen, reward, ended, cut, info

    def moved(self, seen, info):
        return seen["observation"], {**info, "action_mask": seen["action_mask"]}


def seat(game):
    env = single(game)
    return Masks(env) if hasattr(env.observation_space, "spaces") else env


def ppo(game):
    envs = SyncVectorEnv([lambda: seat(game)] * COPIES)
    spaces = envs.single_observation_space, envs.single_action_space
    team = PPO.population(
        1, *spaces, net_config=NET, learn_step=16, batch_size=64, update_epochs=1, num_envs=COPIES
    )
    train_on_policy(
        envs, game, "PPO", team, max_steps=100, evo_steps=50, eval_steps=20, verbose=False
    )


def ippo(game):
    env = table(game, "parallel")
    if hasattr(env.observation_space(env.possible_agents[0]), "spaces"):
        # IPPO of 2.58 fails at any mask in infos: `None in` a list of arrays
        env = supersuit.observation_lambda_v0(
            env, lambda seen, _: seen["observation"], lambda space: space["observation"]
        )
    env = supersuit.black_death_v3(env)  # it gives actions of seats that are out
    agents = env.possible_agents
    team = IPPO.population(
        1,
        [env.observation_space(agent) for agent in agents],
        [env.action_space(agent) for agent in agents],
        agent_ids=agents,
        net_config=NET,
        learn_step=32,
        batch_size=32,
        update_epochs=1,
    )
    train_multi_agent_on_policy(
        env, game, "IPPO", team, max_steps=64, evo_steps=32, eval_steps=20, verbose=False
    )


if __name__ == "__main__":
    report({"PPO, SyncVectorEnv": ppo, "IPPO without masks, all seats": ippo})
