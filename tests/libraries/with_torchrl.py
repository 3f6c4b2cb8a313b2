"""TorchRL: its checks of specs, and PPO on one seat's view, on copies, and on all seats.

`GymEnv` is given an id and nothing else.
"""

import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import PettingZooWrapper
from torchrl.envs.libs.gym import GymEnv, GymWrapper
from torchrl.envs.utils import check_env_specs
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE
from trial import COPIES, copies, identity, report, single, table


class Masked(nn.Module):
    """Logits and the mask that goes with them; all are legal where there is none."""

    def __init__(self, columns, count):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(columns, 32), nn.Tanh(), nn.Linear(32, count))
        self.count = count

    def forward(self, seen, mask=None):
        logits = self.net(seen.float())
        return logits, torch.ones_like(logits, dtype=bool) if mask is None else mask.bool()


def ppo(env, frames):
    masked = "action_mask" in set(env.observation_spec.keys())
    columns, count = env.observation_spec["observation"].shape[-1], env.action_spec.space.n
    keys = ["observation", "action_mask"] if masked else ["observation"]
    actor = ProbabilisticActor(
        TensorDictModule(Masked(columns, count), keys, ["logits", "mask"]),
        in_keys=["logits", "mask"],
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )
    critic = ValueOperator(nn.Sequential(nn.Linear(columns, 32), nn.Tanh(), nn.Linear(32, 1)))
    loss, gain = ClipPPOLoss(actor, critic), GAE(gamma=0.99, lmbda=0.95, value_network=critic)
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
    for batch in Collector(env, actor, frames_per_batch=frames, total_frames=frames):
        gain(batch)
        found = loss(batch.reshape(-1))
        total = found["loss_objective"] + found["loss_critic"] + found["loss_entropy"]
        total.backward()
        optimizer.step()
        assert torch.isfinite(total)


def typed(game):
    env = GymEnv(identity(game), categorical_action_encoding=True)
    check_env_specs(env)
    ppo(env, 64)


def continuous(game):
    env = GymEnv(identity(game, "Continuous"))
    check_env_specs(env)
    env.rollout(50, break_when_any_done=False)


def one(game):
    env = GymWrapper(single(game), categorical_action_encoding=True)
    check_env_specs(env)
    ppo(env, 64)


def native(game):
    envs = copies(game, autoreset_mode=AutoresetMode.DISABLED)
    ppo(GymWrapper(envs, categorical_action_encoding=True), 16 * COPIES)


def sync(game):
    makers = [lambda: single(game)] * COPIES
    envs = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.DISABLED)
    ppo(GymWrapper(envs, categorical_action_encoding=True), 16 * COPIES)


def parallel(game):
    env = PettingZooWrapper(table(game, "parallel"), use_mask=True)
    check_env_specs(env)
    env.rollout(50, break_when_any_done=False)


def aec(game):
    env = PettingZooWrapper(table(game, "aec"), use_mask=True)
    check_env_specs(env)
    env.rollout(50, break_when_any_done=False)


if __name__ == "__main__":
    report(
        {
            "PPO, GymEnv(id)": typed,
            "specs and rollout, GymEnv(Continuous id)": continuous,
            "PPO, one copy": one,
            "PPO, GameVectorEnv": native,
            "PPO, SyncVectorEnv": sync,
            "specs and rollout, all seats": parallel,
            "specs and rollout, AEC": aec,
        }
    )
