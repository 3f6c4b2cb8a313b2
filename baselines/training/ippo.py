"""Independent PPO: every seat learns for itself, the others are part of its environment.

One file, torch alone, after CleanRL's ``ppo.py``. Each seat has a network of its own, or all share
one. Learners that act by index sample their actions, as mixed strategies do; those that act by
shares take the mean. They are evaluated among themselves (``self/...``), and each seat's among the
`--opponents`, which take part in no training. Schulman et al. 2017 (arXiv 1707.06347); de Witt et
al. 2020 (arXiv 2011.09533).
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from llm_games.baselines.training.harness import (
    CODECS,
    Codec,
    Evaluation,
    Options,
    Training,
    TrainingTable,
    command,
    flag,
    judge,
    option,
)
from llm_games.baselines.tree import Tree
from llm_games.wrappers.learned import LearnedPolicy, Trained
from llm_games.wrappers.player_mixture import BySeat
from llm_games.wrappers.policy import Policy
from llm_games.wrappers.single_agent import seating
from llm_games.wrappers.team_env import TeamVectorEnv
from llm_games.wrappers.torch_player import ActorCritic, network, save_network

FRESH = 10**6  # seeds of games of one training
DRAWS = 400  # how often a player is asked in each situation of a tree


@dataclass(frozen=True, kw_only=True)
class PPOSettings(Options):
    """Options of independent PPO; `steps` are those of each seat."""

    actions: Codec = option("index", "CODEC", CODECS)
    shared: bool = flag("one network plays all seats")
    exact: bool = flag("log the exact NashConv, of a small game")
    rollout: int = option(20, "N", "steps of all copies before each update", min=1)
    rate: float = option(1e-3, "X", "learning rate at the start, 0 at the end", min=0)
    gamma: float = option(0.99, "X", "discount of later rewards", min=0, max=1)
    trace: float = option(0.95, "X", "lambda of advantages", min=0, max=1)
    entropy: float = option(0.01, "X", "weight of the entropy", min=0)
    epochs: int = option(4, "N", "times through each rollout", min=1)
    batches: int = option(4, "N", "parts of a rollout", min=1)
    clip: float = option(0.2, "X", "how far a chance may move", min=0)


class PPOLearner:
    """A network and its optimizer."""

    def __init__(self, run: Training[PPOSettings]) -> None:
        options = run.options
        self.net: ActorCritic = network(run.table.rules, options.actions)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=options.rate, eps=1e-5)


class RolloutBuffer(NamedTuple):
    """A rollout of some seats, ``(steps, seats, copies, ...)``.

    `lives`, `goes_on`: not out before, after the step; `asked`: it had something to decide.
    """

    numbers: Tensor
    masks: Tensor
    actions: Tensor
    chances: Tensor
    values: Tensor
    rewards: Tensor
    asked: Tensor
    lives: Tensor
    goes_on: Tensor


class Rewards:
    """Scales rewards by the deviation of discounted returns so far."""

    def __init__(self, shape: tuple[int, ...], gamma: float) -> None:
        self.returns, self.gamma = np.zeros(shape), gamma
        self.count, self.squares, self.mean = 1e-4, 0.0, 0.0

    def scaled(self, rewards: np.ndarray, over: np.ndarray) -> np.ndarray:
        """Return rewards ``(seats, copies)`` scaled; `over` where an episode has ended."""
        self.returns = self.returns * self.gamma + rewards
        new, size = self.returns.mean(), self.returns.size
        shift, total = new - self.mean, self.count + size
        self.squares += self.returns.var() * size + shift**2 * self.count * size / total
        self.mean, self.count = self.mean + shift * size / total, total
        self.returns = np.where(over, 0.0, self.returns)
        return rewards / np.sqrt(self.squares / self.count + 1e-8)


class Team:
    """Copies of the game, and the learner of each seat."""

    def __init__(self, run: Training[PPOSettings], learners: list[PPOLearner]) -> None:
        rules, options = run.table.rules, run.options
        self.env = TeamVectorEnv(rules, options.copies, actions=options.actions, normalize=True)
        self.learners, self.told = learners, options
        self.discrete = learners[0].net.discrete
        self.rewards = Rewards((rules.players, options.copies), options.gamma)
        observations, infos = self.env.reset(seed=FRESH * options.seed + run.step)
        self._look(observations, infos)
        self.lives = torch.ones(self.asked.shape)

    def _each(self, by_agent: dict[str, Any]) -> np.ndarray:
        return np.stack([by_agent[agent] for agent in self.env.agents])

    def _look(self, observations: Any, infos: Any) -> None:
        by_seat = (observations[agent] for agent in self.env.agents)
        numbers = np.stack([v["observation"] if isinstance(v, dict) else v for v in by_seat])
        self.numbers = torch.as_tensor(numbers, dtype=torch.float32)
        masks = self._each(self.env.action_masks()) if self.discrete else self.numbers[..., :0] > 0
        self.masks = torch.as_tensor(masks)
        asked = np.stack([infos[agent]["asked"] for agent in self.env.agents])
        self.asked = torch.as_tensor(asked, dtype=torch.float32)

    def _each_learner(self, ask: Any) -> list[Any]:
        """Call `ask` with each learner's network and the slice of its seats; return the answers."""
        if len(self.learners) == 1:
            return [ask(self.learners[0].net, slice(None))]
        return [ask(learner.net, slice(k, k + 1)) for k, learner in enumerate(self.learners)]

    @torch.no_grad()
    def step(self) -> RolloutBuffer:
        numbers, masks, asked, lives = self.numbers, self.masks, self.asked, self.lives

        def decided(net: ActorCritic, seats: slice) -> tuple[Tensor, Tensor, Tensor]:
            likely = net.chances(numbers[seats], masks[seats])
            action = likely.sample()
            return action, likely.log_prob(action), net.worth(numbers[seats])

        decisions = zip(*self._each_learner(decided), strict=True)
        actions, chances, values = (torch.cat(part) for part in decisions)
        env_actions = actions.numpy() if self.discrete else actions.clamp(-1, 1).numpy()
        by_agent = dict(zip(self.env.agents, env_actions, strict=True))
        observations, rewards, ended, cut, infos = self.env.step(by_agent)
        out = self._each(ended) | self._each(cut)
        scaled_rewards = self.rewards.scaled(self._each(rewards), out)
        self._look(observations, infos)
        goes_on = torch.as_tensor(~out, dtype=torch.float32)
        again = torch.as_tensor(out.all(axis=0), dtype=torch.float32)
        self.lives = torch.maximum(goes_on, again)
        reward = torch.as_tensor(scaled_rewards, dtype=torch.float32)
        return RolloutBuffer(
            numbers=numbers,
            masks=masks,
            actions=actions,
            chances=chances,
            values=values,
            rewards=reward,
            asked=asked,
            lives=lives,
            goes_on=goes_on,
        )

    @torch.no_grad()
    def worth(self) -> Tensor:
        return torch.cat(self._each_learner(lambda net, seats: net.worth(self.numbers[seats])))


def advantages(rows: RolloutBuffer, next_values: Tensor, gamma: float, trace: float) -> Tensor:
    """Return generalised advantage estimates; `next_values` are those after the last step."""
    gains, last = torch.zeros_like(rows.values), torch.zeros_like(next_values)
    for t in reversed(range(len(gains))):
        error = rows.rewards[t] + gamma * next_values * rows.goes_on[t] - rows.values[t]
        gains[t] = last = error + gamma * trace * rows.goes_on[t] * last
        next_values = rows.values[t]
    return gains


def update(learner: PPOLearner, rows: RolloutBuffer, gains: Tensor, options: PPOSettings) -> float:
    """Update a learner by its seats' rollout; return the mean loss."""
    flat = RolloutBuffer(*(part.flatten(0, 2) for part in rows))
    gain, target = gains.flatten(), (gains + rows.values).flatten()
    alive = torch.nonzero(flat.lives).flatten()  # out: nothing to learn
    losses = []
    for _ in range(options.epochs):
        for part in alive[torch.randperm(len(alive))].chunk(options.batches):
            batch = RolloutBuffer(*(v[part] for v in flat))
            loss = _loss(learner.net, batch, gain[part], target[part], options)
            learner.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(learner.net.parameters(), 0.5)
            learner.optimizer.step()
            losses.append(float(loss.detach()))
    return float(np.mean(losses))


def _loss(
    net: ActorCritic, rows: RolloutBuffer, gain: Tensor, target: Tensor, options: PPOSettings
) -> Tensor:
    likely, asked = net.chances(rows.numbers, rows.masks), rows.asked
    asked_count = asked.sum().clamp(min=1)
    centre = (gain * asked).sum() / asked_count
    spread = (((gain - centre) ** 2 * asked).sum() / asked_count).sqrt() + 1e-8
    gain = (gain - centre) / spread
    ratio = (likely.log_prob(rows.actions) - rows.chances).exp()
    held = ratio.clamp(1 - options.clip, 1 + options.clip)
    acted = -(torch.min(ratio * gain, held * gain) * asked).sum() / asked_count
    spread_out = (likely.entropy() * asked).sum() / asked_count
    valued = (net.worth(rows.numbers) - target).pow(2).mean()
    return acted - options.entropy * spread_out + 0.5 * valued


def learned(run: Training[PPOSettings], team: Team) -> float:
    options: PPOSettings = team.told
    steps = (team.step() for _ in range(options.rollout))
    rows = RolloutBuffer(*map(torch.stack, zip(*steps, strict=True)))
    gains = advantages(rows, team.worth(), options.gamma, options.trace)
    losses = []
    for k, learner in enumerate(team.learners):
        seats = slice(None) if options.shared else slice(k, k + 1)
        rate = options.rate * max(0.0, 1 - run.step / options.steps)
        learner.optimizer.param_groups[0]["lr"] = rate
        mine = RolloutBuffer(*(part[:, seats] for part in rows))
        losses.append(update(learner, mine, gains[:, seats], options))
        run.check(**{name: value.numpy() for name, value in learner.net.state_dict().items()})
    run.advance(run.step + options.rollout * options.copies)
    return float(np.mean(losses))


def first_team(run: Training[PPOSettings]) -> Team:
    """Return the team of a new training, or that of the saved state."""
    if run.state is not None:
        team, step, chance = run.read()
        torch.set_rng_state(chance)
        run.go_on(step)
        return team
    options = run.options
    torch.manual_seed(options.seed)
    networks = 1 if options.shared else run.table.rules.players
    return Team(run, [PPOLearner(run) for _ in range(networks)])


def player(run: Training[PPOSettings], team: Team) -> Policy:
    """Return the networks as one player, each in its seat."""
    trained = Trained.of(run.table.rules, team.told.actions, True)
    sure = not team.discrete
    policies = [
        LearnedPolicy(learner.net, trained=trained, deterministic=sure, name="ippo")
        for learner in team.learners
    ]
    return policies[0] if len(policies) == 1 else BySeat(policies)


def self_measures(run: Training[PPOSettings], policy: Policy, tree: Tree | None) -> dict[str, Any]:
    """Return measures of the players among themselves, and with a tree the exact NashConv."""
    rules = run.table.rules
    evaluation = judge(
        TrainingTable(rules, seating(rules, run.table.seat, policy)), policy, run.options.episodes
    )
    values = {f"self/{name}": value for name, value in evaluation.values().items()}
    if tree is None:
        return values
    return {"tree/nash_conv": tree.nash_conv(tree.strategy_of(policy, DRAWS))} | values


def train(options: PPOSettings) -> Evaluation:
    torch.set_num_threads(1)
    with Training("ippo", options) as run:
        rules, team = run.table.rules, first_team(run)
        policy, trained = player(run, team), Trained.of(run.table.rules, options.actions, True)
        tree, loss = Tree(rules, options.seed) if options.exact else None, 0.0
        run.saving = lambda: pickle.dumps((team, run.step, torch.get_rng_state()))
        while True:
            stops = run.stopping or run.step >= options.steps
            due = run.due()
            if due or stops:
                values = self_measures(run, policy, tree)
                if due:
                    run.judge(policy, **{"train/loss": loss, **values})
                nets = [learner.net for learner in team.learners]
                file = run.folder / "player.safetensors"
                save_network(nets, rules, trained, file, not team.discrete)
                run.keep()
            if stops:
                return run.end(policy, f"torch:{file}", **values)
            loss = learned(run, team)


if __name__ == "__main__":
    command(train, PPOSettings)
