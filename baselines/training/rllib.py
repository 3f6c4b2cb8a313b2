"""PPO of RLlib on a cluster of Ray: all nodes play copies of the table, one network learns.

By default this makes a cluster of two nodes, one CPU each, on this machine; `--address` joins an
existing one. A node that does not play is an error. Needs ``pip install 'llm-games[rllib]'``, best
in an environment of its own: RLlib pins Gymnasium.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
import torch
from gymnasium.vector import VectorEnv
from ray.cluster_utils import Cluster
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.tune.registry import register_env

from llm_games.baselines.learner import learners
from llm_games.baselines.training.harness import (
    CODECS,
    Codec,
    Evaluation,
    Options,
    Training,
    command,
    option,
)
from llm_games.errors import BadParameter
from llm_games.wrappers.learned import LearnedPolicy, Trained
from llm_games.wrappers.torch_player import ILLEGAL, ActorCritic, network, save_network

ROOM = 100 * 2**20  # bytes of memory for what nodes share


@dataclass(frozen=True, kw_only=True)
class RLlibSettings(Options):
    """Options of RLlib's PPO."""

    actions: Codec = option("index", "CODEC", CODECS)
    nodes: int = option(2, "N", "nodes of the cluster that is made here", min=1)
    address: str = option("", "HOST:PORT", "a cluster that is there")
    rollout: int = option(20, "N", "decisions of each copy between updates", min=1)
    rate: float = option(1e-3, "X", "learning rate", min=0)
    gamma: float = option(0.99, "X", "discount of later rewards", min=0, max=1)
    entropy: float = option(0.0, "X", "weight of the entropy", min=0)
    epochs: int = option(4, "N", "times through each rollout", min=1)
    batches: int = option(4, "N", "parts of a rollout", min=1)


class Module(TorchRLModule, ValueFunctionAPI):
    """The project's actor and critic, as RLlib's module."""

    def setup(self) -> None:
        self.net = ActorCritic(self.observation_space, self.action_space)

    def _forward(self, batch: Any, **_: Any) -> dict[str, Any]:
        observation = batch[Columns.OBS]
        numbers = observation["observation"] if isinstance(observation, dict) else observation
        logits = self.net.actor(numbers)
        if isinstance(observation, dict):
            logits = logits.masked_fill(observation["action_mask"] == 0, ILLEGAL)
        if not self.net.discrete:
            logits = torch.cat([logits, self.net.log_deviation.expand_as(logits)], dim=-1)
        return {Columns.ACTION_DIST_INPUTS: logits}

    def compute_values(self, batch: Any, embeddings: Any = None) -> torch.Tensor:
        observation = batch[Columns.OBS]
        return self.net.worth(
            observation["observation"] if isinstance(observation, dict) else observation
        )


@contextmanager
def cluster(options: RLlibSettings) -> Iterator[list[str]]:
    """Join or make a cluster, and yield its nodes' names."""
    local_cluster = None
    if not options.address:
        about = {"num_cpus": 1, "object_store_memory": ROOM}
        local_cluster = Cluster(
            initialize_head=True, head_node_args={**about, "include_dashboard": False}
        )
        for _ in range(options.nodes - 1):
            local_cluster.add_node(**about)
    try:
        address = local_cluster.address if local_cluster else options.address
        ray.init(address=address, log_to_driver=False, logging_level="error")
        yield [node["NodeID"] for node in ray.nodes() if node["Alive"]]
    finally:
        ray.shutdown()
        if local_cluster:
            local_cluster.shutdown()


def make_algorithm(run: Training[RLlibSettings], nodes: int) -> Algorithm:
    """Return RLlib's PPO with copies of the table on as many nodes."""
    options, table = run.options, run.table

    def make(settings: Any) -> VectorEnv[Any, Any, Any]:
        return learners(
            table.rules, settings.get("num_envs", 1), opponents=table.opponents, seat=table.seat,
            actions=options.actions, normalize=True,
        )  # fmt: skip

    register_env("game", make)
    each = max(1, options.copies // nodes)
    batch = each * nodes * options.rollout
    config = PPOConfig().environment("game").debugging(seed=options.seed)
    config = config.env_runners(
        num_env_runners=nodes,
        num_envs_per_env_runner=each,
        gym_env_vectorize_mode="vector_entry_point",
        rollout_fragment_length=options.rollout,
    )
    config = config.training(
        train_batch_size=batch,
        minibatch_size=max(2, batch // options.batches),
        num_epochs=options.epochs,
        lr=options.rate,
        gamma=options.gamma,
        lambda_=0.95,
        entropy_coeff=options.entropy,
        use_kl_loss=False,
        clip_param=0.2,
        vf_clip_param=float("inf"),
        grad_clip=0.5,
    )
    return config.rl_module(rl_module_spec=RLModuleSpec(module_class=Module)).build_algo()


def playing_nodes(algorithm: Algorithm) -> list[str]:
    group: Any = algorithm.env_runner_group
    nodes: list[str] = group.foreach_env_runner(
        lambda _: ray.get_runtime_context().get_node_id(), local_env_runner=False
    )
    return nodes


class RLlibLearner:
    """RLlib's algorithm, and the player of its network."""

    def __init__(self, run: Training[RLlibSettings], nodes: list[str]) -> None:
        self.run, self.algorithm = run, make_algorithm(run, len(nodes))
        if idle := {*nodes} - {*playing_nodes(self.algorithm)}:
            raise BadParameter(f"nothing plays on {len(idle)} of {len(nodes)} nodes: {idle}")
        run.say(f"tables are played on {len(nodes)} nodes: {', '.join(n[:8] for n in nodes)}")
        self.net = network(run.table.rules, run.options.actions)
        self.trained = Trained.of(run.table.rules, run.options.actions, True)
        self.player = LearnedPolicy(self.net, trained=self.trained, name="rllib")
        if run.state is not None:
            step, learned = run.read()
            self.algorithm.learner_group.set_state(learned)
            self.algorithm.env_runner_group.sync_weights(
                from_worker_or_learner_group=self.algorithm.learner_group
            )
            run.go_on(step)

    def state(self) -> bytes:
        """Return the step, and the network with its optimizer."""
        return pickle.dumps((self.run.step, self.algorithm.learner_group.get_state()))

    def learn(self) -> None:
        report = self.algorithm.train()
        lifetime = report["env_runners"]["num_env_steps_sampled"]
        self.run.advance(self.run.step + int(lifetime))

    def save(self) -> Path:
        weights = self.algorithm.learner_group.get_weights()["default_policy"]
        self.run.check(**weights)
        net_weights = {
            key.removeprefix("net."): torch.as_tensor(value) for key, value in weights.items()
        }
        self.net.load_state_dict(net_weights)
        self.run.keep()
        rules = self.run.table.rules
        return save_network(self.net, rules, self.trained, self.run.folder / "player")


def train(options: RLlibSettings) -> Evaluation:
    """Train on all nodes of a cluster, and return the learner's evaluation."""
    torch.set_num_threads(1)
    with Training("rllib", options) as run, cluster(options) as nodes:
        learner = RLlibLearner(run, nodes)
        run.saving = learner.state
        while True:
            stops = run.stopping or run.step >= options.steps
            due = run.due()
            if due or stops:
                file = learner.save()
            if due:
                run.judge(learner.player)
            if stops:
                return run.end(learner.player, f"torch:{file}")
            learner.learn()


if __name__ == "__main__":
    command(train, RLlibSettings)
