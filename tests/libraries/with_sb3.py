"""Stable-Baselines3: PPO, DQN and SAC on one seat's view and on copies, PPO of all seats."""

from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize
from trial import COPIES, copies, identity, masked, report, single

from llm_games.wrappers.sb3 import SB3VecEnv
from llm_games.wrappers.team_env import TeamVectorEnv


def policy(env):
    return "MultiInputPolicy" if masked(env.observation_space) else "MlpPolicy"


def ppo(game):
    env = single(game)
    check_env(env.unwrapped)
    PPO(policy(env), env, n_steps=64, batch_size=64, n_epochs=1, seed=1).learn(64)


def typed(game):
    discrete = identity(game, "Discrete")
    PPO("MlpPolicy", discrete, n_steps=64, batch_size=64, n_epochs=1, seed=1).learn(64)
    DQN("MlpPolicy", discrete, learning_starts=32, batch_size=32, seed=1).learn(64)
    several = make_vec_env(discrete, 4, seed=1)
    PPO("MlpPolicy", several, n_steps=16, batch_size=64, n_epochs=1, seed=1).learn(64)


def typed_sac(game):
    continuous = identity(game, "Continuous")
    SAC("MlpPolicy", continuous, learning_starts=32, batch_size=32, seed=1).learn(48)


def dqn(game):
    env = single(game)
    DQN(policy(env), env, learning_starts=32, batch_size=32, seed=1).learn(64)


def sac(game):
    env = single(game, actions="unit")
    SAC(policy(env), env, learning_starts=32, batch_size=32, seed=1).learn(48)


def many(game):
    env = VecNormalize(VecMonitor(SB3VecEnv(copies(game))))
    PPO(policy(env), env, n_steps=16, batch_size=64, n_epochs=1, seed=1).learn(16 * COPIES)


def many_sac(game):
    env = SB3VecEnv(copies(game, actions="unit"))
    SAC(policy(env), env, learning_starts=32, batch_size=32, seed=1).learn(8 * COPIES)


def team(game):
    env = SB3VecEnv(TeamVectorEnv(game, 4, normalize=True).rows())
    PPO(policy(env), env, n_steps=8, batch_size=40, n_epochs=1, seed=1).learn(8 * env.num_envs)


if __name__ == "__main__":
    report(
        {
            "PPO and DQN, Discrete id": typed,
            "SAC, Continuous id": typed_sac,
            "PPO, one copy": ppo,
            "DQN, one copy": dqn,
            "SAC, one copy, unit": sac,
            "PPO, SB3VecEnv with VecMonitor and VecNormalize": many,
            "SAC, SB3VecEnv, unit": many_sac,
            "PPO, all seats, TeamVectorEnv": team,
        }
    )
