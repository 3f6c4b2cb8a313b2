"""CleanRL: its files as they are, run with an id, and its loop over our own copies.

Its package ends at version 1.2.0, for `gym`; its files of today are taken from GitHub, or out of
the folder that the variable CLEANRL names, and must be the same to the byte. Its continuous file
leaves out an argument of `TransformObservation` that Gymnasium asks for since 1.0, so that it ends
there with any environment; it is run with the default of before.
"""

import contextlib
import hashlib
import io
import os
import runpy
import sys
import urllib.request
from pathlib import Path

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import nn
from torch.distributions import Categorical
from trial import COPIES, copies, identity, report, single

import llm_games as lg

STEPS, EPOCHS, GAMMA, LAMBDA, CLIP = 32, 2, 0.99, 0.95, 0.2
FILES = {
    "ppo.py": (
        "b5fb801e60651ba15cf784866db6cb7c3490b60c/cleanrl/cleanrl/ppo.py",
        "d8dfbb7ac0b21e747b77d6e6673e566db4d6cdacc83bcebcd19cf87ad0e459ae",
    ),
    "ppo_continuous_action.py": (
        "016ca33aa70f188ef385082524373ccb6dd14e03/cleanrl/ppo_continuous_action.py",
        "417454196e3099d9355374a769753fec8f373ed5c517252729506a28d6749d7f",
    ),
}
"""CleanRL's files: where they stand in its repository, and their SHA-256."""


def fetched(name):
    """Return one of CleanRL's files, as it is in its repository."""
    where, digest = FILES[name]
    path = Path(os.environ.get("CLEANRL", ".")) / name
    if not path.exists():
        urllib.request.urlretrieve(
            f"https://raw.githubusercontent.com/vwxyzjn/cleanrl/{where}", path
        )
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest, f"{path} is another {name}"
    return path


def typed(name, kind=""):
    """Run one of CleanRL's files as its command line does."""

    def attempt(game):
        sizes = ["--num-envs", "4", "--num-steps", str(STEPS), "--num-minibatches", "4"]
        steps = 2 * 4 * STEPS
        sys.argv = [name, "--env-id", identity(game, kind), *sizes, "--total-timesteps", str(steps)]
        with contextlib.redirect_stdout(io.StringIO()):
            variables = runpy.run_path(str(fetched(name)), run_name="__main__")
        assert variables["global_step"] == steps
        assert all(torch.isfinite(p).all() for p in variables["agent"].parameters())

    return attempt


def old_wrappers(attempt):
    """Let `TransformObservation` keep the space where none is said, as before Gymnasium 1.0."""

    def tried(game):
        wrapper = gymnasium.wrappers.TransformObservation
        wrapper.__init__.__defaults__ = (None,)
        try:
            attempt(game)
        finally:
            wrapper.__init__.__defaults__ = None

    return tried


class Agent(nn.Module):
    def __init__(self, columns, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(columns, 32), nn.Tanh())
        self.actor, self.critic = nn.Linear(32, actions), nn.Linear(32, 1)

    def forward(self, seen, mask):
        hidden = self.body(seen)
        logits = self.actor(hidden).masked_fill(~mask, -1e9)
        return Categorical(logits=logits), self.critic(hidden).squeeze(-1)


def train(envs):
    """Learn for one rollout, and return the returns of the episodes that ended in it."""
    torch.manual_seed(1)
    space, count = envs.single_observation_space, int(envs.single_action_space.n)
    agent = Agent(getattr(space, "spaces", {"observation": space})["observation"].shape[0], count)
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)

    def look(seen):
        seen = seen if isinstance(seen, dict) else {"observation": seen}
        numbers = torch.as_tensor(seen["observation"], dtype=torch.float32)
        mask = torch.as_tensor(seen.get("action_mask", np.ones((len(numbers), count)))) > 0
        assert mask.any(dim=1).all()
        return numbers, mask

    seen, mask = look(envs.reset(seed=1)[0])
    rows, returns, earned = [], [], np.zeros(len(seen))
    for _ in range(STEPS):
        with torch.no_grad():
            chance, value = agent(seen, mask)
        action = chance.sample()
        found, reward, ended, cut, _ = envs.step(action.numpy())
        done, earned = ended | cut, earned + reward
        returns += earned[done].tolist()
        earned[done] = 0
        paid = torch.as_tensor(reward, dtype=torch.float32)
        logp = chance.log_prob(action)
        rows.append((seen, mask, action, logp, value, paid, torch.as_tensor(done)))
        seen, mask = look(found)
    seens, masks, actions, logps, values, rewards, dones = map(torch.stack, zip(*rows, strict=True))
    with torch.no_grad():
        after = agent(seen, mask)[1]
    gains, last = torch.zeros_like(values), torch.zeros(len(after))
    for t in reversed(range(STEPS)):
        lives = 1.0 - dones[t].float()
        delta = rewards[t] + GAMMA * after * lives - values[t]
        gains[t] = last = delta + GAMMA * LAMBDA * lives * last
        after = values[t]
    for _ in range(EPOCHS):
        chance, value = agent(seens.flatten(0, 1), masks.flatten(0, 1))
        ratio = (chance.log_prob(actions.flatten()) - logps.flatten()).exp()
        gain = gains.flatten()
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        policy = -torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
        loss = policy + 0.5 * (value - (gains + values).flatten()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert all(torch.isfinite(p).all() for p in agent.parameters())
    return returns


def sync(game):
    makers = [lambda: single(game)] * COPIES
    ended(game, train(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)))


def native(game):
    ended(game, train(copies(game, autoreset_mode=AutoresetMode.SAME_STEP)))


def ended(game, returns):
    rules = lg.rules(game.removesuffix("-v0"))
    assert returns or getattr(rules, "rounds", 0) > STEPS


if __name__ == "__main__":
    for name in FILES:
        fetched(name)  # without them nothing is reported
    continuous = typed("ppo_continuous_action.py", "Continuous")
    report(
        {
            "ppo.py, id": typed("ppo.py"),
            "ppo.py, Discrete id": typed("ppo.py", "Discrete"),
            "ppo_continuous_action.py, Continuous id": continuous,
            "the same, wrappers of Gymnasium 0": old_wrappers(continuous),
            "PPO, GameVectorEnv": native,
            "PPO, SyncVectorEnv": sync,
        }
    )
