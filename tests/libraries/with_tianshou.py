"""Tianshou: DQN with masks and PPO on one seat's view, and DQN of every seat on the AEC form."""

import gymnasium
from tianshou.algorithm import DQN, PPO
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.multiagent.marl import MultiAgentOffPolicyAlgorithm
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv, PettingZooEnv
from tianshou.trainer import OffPolicyTrainerParams, OnPolicyTrainerParams
from tianshou.utils.net.common import Net
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic
from trial import report, single, table


class Masks(gymnasium.ObservationWrapper):
    """Rename what a masked view shows to what Tianshou looks for: obs and mask."""

    def observation(self, seen):
        return {"obs": seen["observation"], "mask": seen["action_mask"].astype(bool)}


def seat(game):
    env = single(game)
    return Masks(env) if hasattr(env.observation_space, "spaces") else env


def columns(env):
    space = env.observation_space
    return getattr(space, "spaces", {"observation": space})["observation"].shape


def q_learner(shape, actions):
    net = Net(state_shape=shape, action_shape=actions.n, hidden_sizes=[32])
    policy = DiscreteQLearningPolicy(model=net, action_space=actions, eps_training=0.1)
    return DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), target_update_freq=10)


def off_policy(algorithm, envs):
    collector = Collector(algorithm, envs, VectorReplayBuffer(1000, len(envs)))
    collector.reset()
    collector.collect(n_step=32)
    params = OffPolicyTrainerParams(
        training_collector=collector,
        max_epochs=1,
        epoch_num_steps=32,
        collection_step_num_env_steps=32,
        batch_size=32,
        update_step_num_gradient_steps_per_sample=0.1,
    )
    algorithm.run_training(params)


def dqn(game):
    env = seat(game)
    off_policy(q_learner(columns(env), env.action_space), DummyVectorEnv([lambda: seat(game)] * 4))


def flat(game):
    env = single(game)
    masked = hasattr(env.observation_space, "spaces")
    return gymnasium.wrappers.FlattenObservation(env) if masked else env


def ppo(game):
    env = flat(game)
    net = Net(state_shape=columns(env), hidden_sizes=[32])
    actor = DiscreteActor(preprocess_net=net, action_shape=env.action_space.n, softmax_output=False)
    algorithm = PPO(
        policy=DiscreteActorPolicy(actor=actor, action_space=env.action_space),
        critic=DiscreteCritic(preprocess_net=net),
        optim=AdamOptimizerFactory(lr=1e-3),
    )
    envs = DummyVectorEnv([lambda: flat(game)] * 4)
    collector = Collector(algorithm, envs, VectorReplayBuffer(1000, 4))
    params = OnPolicyTrainerParams(
        training_collector=collector,
        max_epochs=1,
        epoch_num_steps=32,
        collection_step_num_env_steps=32,
        batch_size=32,
    )
    algorithm.run_training(params)


def all_seats(game):
    env = PettingZooEnv(table(game, "aec"))
    shape, actions = columns(env), env.action_space
    team = [q_learner(shape, actions) for _ in env.agents]
    algorithm = MultiAgentOffPolicyAlgorithm(algorithms=team, env=env)
    envs = DummyVectorEnv([lambda: PettingZooEnv(table(game, "aec"))] * 2)
    off_policy(algorithm, envs)


if __name__ == "__main__":
    report({"DQN, copies": dqn, "PPO without masks, copies": ppo, "DQN, AEC": all_seats})
