"""CleanRL's way: PPO as one loop over a Gymnasium vector environment, without a library.

CleanRL is no package, and its own pins are years old; the loop below keeps its shape (ppo.py).
"""

import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import nn
from torch.distributions import Categorical
from trial import COPIES, copies, report, single

import llm_games as lg

STEPS, EPOCHS, GAMMA, LAMBDA, CLIP = 32, 2, 0.99, 0.95, 0.2


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
    """Check that episodes ended, if any can in so few steps."""
    rules = lg.rules(game.removesuffix("-v0"))
    assert returns or getattr(rules, "rounds", 0) > STEPS


if __name__ == "__main__":
    report({"PPO, GameVectorEnv": native, "PPO, SyncVectorEnv": sync})
