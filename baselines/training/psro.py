"""PSRO: a population that grows by replies to the equilibrium of its own meta-game.

Each round all players of the population play each other, a solver weighs them (Nash, α-rank, or
all alike), and a reply to that mixture joins: a learner trained against it by PPO, or the best of
the players that follow a rule. What a reply gains over the mixture is how far from equilibrium the
population is known to be. The game is symmetric, as seats are drawn. `--opponents` are whom the
mixture is judged among, and never trained with. Lanctot and others, A unified game-theoretic
approach to multiagent reinforcement learning, 2017, NeurIPS (arXiv:1711.00832).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

from llm_games.arrays import Array
from llm_games.baselines import deviation, metagame
from llm_games.baselines.crossplay import ALL, Cross, crossplay
from llm_games.baselines.learner import learners
from llm_games.baselines.players import make_player, players_for, rule_of
from llm_games.baselines.skill import play_batch
from llm_games.baselines.training import ppo
from llm_games.baselines.training.common import LONGEST, Judged, Training, command, option
from llm_games.baselines.training.stable import TRAINED, WIDEST, settings
from llm_games.rulebook import Rulebook
from llm_games.wrappers.mixture import Mixture
from llm_games.wrappers.policy import Policy
from llm_games.wrappers.sb3 import SB3VecEnv, save_player

MATCHES, TRIALS = 10**9, 15 * 10**8
"""First seeds of the games of the population, and of those in which replies are tried."""
LEAST = 1e-3
"""Weight from which a player is in the mixture."""


@dataclass(frozen=True, kw_only=True)
class PSROOptions(ppo.PPOOptions):
    """What PSRO is told; `steps` are decisions of all rounds together."""

    start: Annotated[list[str], option("PLAYER", "who is in the population first")] = field(
        default_factory=lambda: ["random"]
    )
    rounds: Annotated[int, option("N", "replies that join, at most", min=1)] = 6
    oracle: Annotated[Literal["ppo", "rules"], option("HOW", "who replies: ppo or rules")] = "ppo"
    solver: Annotated[
        Literal["nash", "alpha_rank", "uniform"], option("HOW", "nash, alpha_rank or uniform")
    ] = "nash"


class Population:
    """Players by name, what they come to with each other, and how a solver weighs them."""

    def __init__(self, options: PSROOptions, rules: Rulebook, names: Sequence[str]) -> None:
        self.options, self.names, self.rules = options, list(names), rules
        self.players = {name: make_player(name, self.rules) for name in self.names}
        seeds = range(MATCHES, MATCHES + options.episodes)
        steps = None if self.rules.turns else LONGEST
        if len(self.names) > 1:
            self.cross: Cross | None = crossplay(self.rules, self.names, seeds, ALL, steps)
        else:
            self.cross = None
        self.weights = self._weights(options.solver)

    def _weights(self, solver: str) -> Array:
        many = len(self.names)
        if self.cross is None or solver == "uniform":
            return np.full(many, 1 / many)
        game = self.cross.meta()
        if solver == "alpha_rank":
            return metagame.alpha_rank(game)
        return metagame.equilibria(game)[0].mixture

    @property
    def mixture(self) -> Mixture:
        """The players as they are weighed."""
        some = self._some
        return Mixture([self.players[name] for name, _ in some], [w for _, w in some], "population")

    @property
    def name(self) -> str:
        """The mixture as a player's name."""
        some = self._some
        if len(some) == 1:
            return some[0][0]
        return "mix:" + "|".join(f"{weight:.4g}*{name}" for name, weight in some)

    @property
    def _some(self) -> list[tuple[str, float]]:
        pairs = zip(self.names, self.weights.tolist(), strict=True)
        return [(name, weight) for name, weight in pairs if weight >= LEAST]

    def earned(self, replies: Sequence[str | Policy]) -> Array:
        """Return what replies earn among the mixture, and at the end itself, ``(replies + 1,)``.

        All meet the same chance, in all seats in turn.
        """
        mixture, many, seats = self.mixture, self.options.episodes, self.rules.players
        count = (len(replies) + 1) * many
        at = np.arange(count)
        sits = np.full((seats, count), len(replies))
        sits[at % many % seats, at] = at // many
        who, seeds = [*replies, mixture], (TRIALS + at % many).tolist()
        steps = None if self.rules.turns else LONGEST
        paid = np.zeros(sits.shape)
        for _, outcome in play_batch(self.rules, who, sits, seeds, max_steps=steps):
            paid += outcome.rewards
        return np.asarray(paid[at % many % seats, at].reshape(-1, many).mean(axis=1))


def by_rule(population: Population) -> tuple[str, float]:
    """Return the best reply of those players that follow a rule, and what it gains."""
    rules = population.rules
    known = deviation.replies(rules) if deviation.has(rules.name, "replies") else ()
    ruled = (name for name in players_for(rules.name) if rule_of(name, rules.name))
    names = [*dict.fromkeys((*known, *(name for name in ruled if "<" not in name)))]
    *earned, own = population.earned(names)
    best = int(np.argmax(earned))
    return names[best], float(earned[best] - own)


class Stop(BaseCallback):
    """Tells where a reply's training stands, and stops it at Ctrl-C."""

    def __init__(self, run: Training, before: int) -> None:
        super().__init__()
        self.run, self.before = run, before

    def _on_step(self) -> bool:
        self.run.at(min(self.before + self.num_timesteps, self.run.options.steps))
        return not self.run.stopping


def by_learning(run: Training, population: Population, number: int) -> tuple[str, float]:
    """Train a reply by PPO, save it, and return its name and what it gains."""
    options, rules = population.options, population.rules
    games = learners(
        rules, options.copies, opponents=population.mixture, seat="rotate",
        actions=options.actions, normalize=True,
    )  # fmt: skip
    env = VecNormalize(SB3VecEnv(games), norm_obs=False, clip_reward=WIDEST, gamma=options.gamma)
    model = ppo.maker(options)(env, {**settings(options, env), "seed": options.seed + number})
    env.seed(TRAINED * (options.seed + 1) + number * 10**4)
    model.learn(options.steps // options.rounds, callback=Stop(run, run.step))
    if run.stopping:
        return "", 0.0
    run.check(**{name: value.numpy() for name, value in model.policy.state_dict().items()})
    name = f"sb3:{save_player(model, env, run.folder / f'reply-{number}.zip')}"
    reply, own = population.earned([name])
    return name, float(reply - own)


def train(options: PSROOptions) -> Judged:
    """Grow a population, and return what its mixture comes to among the opponents."""
    torch.set_num_threads(1)
    with Training("psro", options) as run:
        names, first = options.start, 0
        if run.state is not None:
            names, first = json.loads(run.state)
        number = first
        population = Population(options, run.table.rules, names)
        run.saving = lambda: json.dumps([population.names, number]).encode()
        for number in range(first, options.rounds):
            run.at(options.steps * number // options.rounds)
            run.keep()
            rules = options.oracle == "rules"
            name, gain = by_rule(population) if rules else by_learning(run, population, number)
            if run.stopping:
                raise KeyboardInterrupt
            run.judge(population.mixture, psro__gain=gain, psro__players=len(population.names))
            run.say(f"round {number + 1}: {name} gains {gain:.4g} over {population.name}")
            if gain > 0 and name not in population.names:
                population = Population(options, population.rules, [*population.names, name])
            elif rules:
                break  # none of them gains
        number = options.rounds
        run.at(options.steps)
        run.keep()
        return run.end(population.mixture, population.name)


if __name__ == "__main__":
    command(train, PSROOptions)
