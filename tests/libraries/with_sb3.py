"""Stable-Baselines3: PPO, DQN and SAC on one seat's view."""

from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.env_checker import check_env
from trial import report, single


def policy(env):
    return "MultiInputPolicy" if hasattr(env.observation_space, "spaces") else "MlpPolicy"


def ppo(game):
    env = single(game)
    check_env(env.unwrapped)
    PPO(policy(env), env, n_steps=64, batch_size=64, n_epochs=1, seed=1).learn(64)


def dqn(game):
    env = single(game)
    DQN(policy(env), env, learning_starts=32, batch_size=32, seed=1).learn(64)


def sac(game):
    env = single(game, actions="unit")
    SAC(policy(env), env, learning_starts=32, batch_size=32, seed=1).learn(48)


if __name__ == "__main__":
    report({"PPO, one copy": ppo, "DQN, one copy": dqn, "SAC, one copy, unit": sac})
