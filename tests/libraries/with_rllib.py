"""RLlib: PPO on one seat's view, and of all seats on PettingZoo's forms, new API stack.

`PPOConfig().environment(id)` is given an id and nothing else, with its default modules.
"""

import gymnasium
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.env_to_module import FlattenObservations
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv, PettingZooEnv
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
from ray.tune.registry import register_env
from trial import COPIES, copies, identity, masked, report, single, table


class Masks(gymnasium.ObservationWrapper):
    """Rename what a masked view shows to what RLlib's masking module looks for."""

    def __init__(self, env):
        super().__init__(env)
        seen = env.observation_space
        mask = gymnasium.spaces.Box(0.0, 1.0, seen["action_mask"].shape)
        spaces = {"action_mask": mask, "observations": seen["observation"]}
        self.observation_space = gymnasium.spaces.Dict(spaces)

    def observation(self, seen):
        mask = seen["action_mask"].astype("float32")
        return {"action_mask": mask, "observations": seen["observation"]}


def train(make, spec=None, team=None, connector=None, count=1):
    if not isinstance(make, str):
        register_env("game", make)
        make = "game"
    config = PPOConfig().environment(make).env_runners(num_env_runners=0)
    if count > 1:
        config = config.env_runners(
            num_envs_per_env_runner=count, gym_env_vectorize_mode="vector_entry_point"
        )
    if connector:
        config = config.env_runners(env_to_module_connector=connector)
    steps = 256 if team else 64  # of all seats together, and there may be fifty
    config = config.training(train_batch_size=steps, minibatch_size=32, num_epochs=1)
    if spec:
        config = config.rl_module(rl_module_spec=spec)
    else:
        config = config.rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[32]))
    if team:
        config = config.multi_agent(policies={"all"}, policy_mapping_fn=lambda *_, **__: "all")
    algorithm = config.build_algo()
    found = algorithm.train()
    algorithm.stop()
    assert found["env_runners"]["num_env_steps_sampled"] > 0


def flatten(*_, **__):
    return FlattenObservations(multi_agent=True)


def flatten_one(*_, **__):
    return FlattenObservations()


def typed(kind="", count=1):
    return lambda game: train(identity(game, kind), count=count)


def one(game):
    env = single(game)
    if not hasattr(env.observation_space, "spaces"):
        return train(lambda _: single(game))
    spec = RLModuleSpec(
        module_class=ActionMaskingTorchRLModule, model_config={"head_fcnet_hiddens": [32]}
    )
    return train(lambda _: Masks(single(game)), spec)


def native(game):
    seen = single(game).observation_space
    train(
        lambda settings: copies(game, settings.get("num_envs", 1)),
        connector=flatten_one if masked(seen) else None,
        count=COPIES,
    )


def apart(wrap, form):
    """Masks are in infos, which default modules pass over."""
    return lambda game: train(lambda _: wrap(table(game, form, masks="info")), team=True)


def many(wrap, form):
    def attempt(game):
        env = table(game, form)
        train(
            lambda _: wrap(table(game, form)),
            team=True,
            connector=flatten if masked(env.observation_space(env.possible_agents[0])) else None,
        )

    return attempt


if __name__ == "__main__":
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error")
    forms = {
        "PPO, environment(id)": typed(),
        "PPO, environment(Discrete id)": typed("Discrete"),
        "PPO, environment(Continuous id)": typed("Continuous"),
        "PPO, environment(Discrete id), its copies": typed("Discrete", COPIES),
        "PPO, all seats, masks in infos": apart(ParallelPettingZooEnv, "parallel"),
        "PPO, AEC, masks in infos": apart(PettingZooEnv, "aec"),
        "PPO, one copy": one,
        "PPO without masks, GameVectorEnv": native,
        "PPO without masks, all seats": many(ParallelPettingZooEnv, "parallel"),
        "PPO without masks, AEC": many(PettingZooEnv, "aec"),
    }
    report(forms)
    ray.shutdown()
