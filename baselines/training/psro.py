"""PSRO: a population that grows by replies to the equilibrium of its own meta-game.

In each round all players of the population play each other, a solver weighs them (Nash, α-rank, or
uniform), and a reply to that mixture joins: a learner trained against it by PPO, the best rule
player, or in a small game the exact best response. The reply's gain over the mixture is a lower
bound of its distance from equilibrium. The game is symmetric, as seats are drawn. `--opponents`
only evaluate the mixture; nothing trains with them. Lanctot and others, A unified game-theoretic
approach to multiagent reinforcement learning, 2017, NeurIPS (arXiv:1711.00832); with exact replies,
McMahan, Gordon and Blum's double oracle, ICML 2003.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, Literal

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

from llm_games.arrays import Array
from llm_games.baselines import regret as theories
from llm_games.baselines.alpha_rank import alpha_rank
from llm_games.baselines.batch_play import play_batch
from llm_games.baselines.crossplay import ALL, crossplay, places
from llm_games.baselines.equilibria import equilibria
from llm_games.baselines.learner import learners
from llm_games.baselines.metagame import MetaGame, lineups
from llm_games.baselines.players import make_player, players_for, rule_of
from llm_games.baselines.rules import RulePolicy
from llm_games.baselines.training import ppo
from llm_games.baselines.training.harness import LONGEST, Evaluation, Training, command, option
from llm_games.baselines.training.stable import TRAINED, WIDEST
from llm_games.baselines.tree import Tree
from llm_games.errors import BadParameter
from llm_games.rulebook import Rulebook
from llm_games.wrappers.player_mixture import PlayerMixture
from llm_games.wrappers.policy import Policy
from llm_games.wrappers.sb3 import SB3VecEnv, save_player
from llm_games.wrappers.tabular_player import TabularPolicy, save_table, table_of

MATCHES, TRIALS = 10**9, 15 * 10**8  # first seeds of the population's games, and of tries
DRAWN = 1024  # how often a player that draws is asked in each information set of a whole game
EXACT = 1e-9  # of the range of payoffs: what gains less is found for rounding
LEAST = 1e-3  # weight from which a player is in the mixture


@dataclass(frozen=True, kw_only=True)
class PSROOptions(ppo.PPOOptions):
    """Options of PSRO; `steps` are decisions of all rounds together."""

    start: list[str] = option(["random"], "PLAYER", "who is in the population first")
    rounds: int = option(6, "N", "replies that join, at most", min=1)
    oracle: Literal["ppo", "rules", "exact"] = option(
        "ppo", "HOW", "who replies: ppo, rules or exact"
    )
    workers: int = option(1, "N", "processes that play the population's games", min=1)
    solver: Literal["nash", "alpha_rank", "uniform"] = option(
        "nash", "HOW", "nash, alpha_rank or uniform"
    )


class Population:
    """Players by name, their meta-game (exact of a `whole` game, else means), and their weights."""

    def __init__(
        self, options: PSROOptions, rules: Rulebook, names: Sequence[str], whole: Whole | None
    ) -> None:
        self.options, self.names, self.rules, self.whole = options, list(names), rules, whole
        self.players = {name: make_player(name, self.rules) for name in self.names}
        self.steps = None if rules.turns else LONGEST
        self.game = self._meta_game() if len(self.names) > 1 else None
        if self.game is None or options.solver == "uniform":
            self.weights: Array = np.full(len(self.names), 1 / len(self.names))
        elif options.solver == "alpha_rank":
            self.weights = alpha_rank(self.game)
        else:
            self.weights = equilibria(self.game)[0].mixture

    def _meta_game(self) -> MetaGame:
        if self.whole is not None:
            return self.whole.meta_game(self.players)
        seeds = range(MATCHES, MATCHES + self.options.episodes)
        workers = self.options.workers
        return crossplay(self.rules, self.names, seeds, ALL, self.steps, workers).meta()

    @property
    def mixture(self) -> PlayerMixture:
        names, weights = zip(*self._weighted_names, strict=True)
        return PlayerMixture([self.players[name] for name in names], [*weights], "population")

    @property
    def name(self) -> str:
        weighted = self._weighted_names
        if len(weighted) == 1:
            return weighted[0][0]
        return "mix:" + "|".join(f"{weight:.4g}*{name}" for name, weight in weighted)

    @property
    def _weighted_names(self) -> list[tuple[str, float]]:
        pairs = zip(self.names, self.weights.tolist(), strict=True)
        return [(name, weight) for name, weight in pairs if weight >= LEAST]

    def earned(self, replies: Sequence[str | Policy]) -> Array:
        """Return payoffs among the mixture, then its own, ``(replies + 1,)``, of equal chance."""
        mixture, episodes, seats = self.mixture, self.options.episodes, self.rules.players
        count = (len(replies) + 1) * episodes
        table = np.arange(count)
        sits = np.full((seats, count), len(replies))
        sits[table % episodes % seats, table] = table // episodes
        players, seeds = [*replies, mixture], (TRIALS + table % episodes).tolist()
        games = play_batch(self.rules, players, sits, seeds, max_steps=self.steps)
        rewards: Any = sum(outcome.rewards for _, outcome in games)
        by_reply = rewards[table % episodes % seats, table].reshape(-1, episodes)
        return np.asarray(by_reply.mean(axis=1))


class Whole:
    """A small game as a tree, where players are strategies (if they draw, by `DRAWN` draws a set).

    Raises:
        BadParameter: the tree is too large, or chance is not enumerated.
    """

    def __init__(self, rules: Rulebook) -> None:
        self.tree = Tree(rules)
        if self.tree.deals:
            fault = "an exact reply needs to know what chance may bring, which no room says of"
            way = "with these parameters: give --oracle ppo"
            raise BadParameter(f"{fault} {rules.name} {way}")
        self._strategies: dict[str, Array] = {}

    def strategy(self, player: Policy) -> Array:
        """Return a player's strategy; BadParameter if it follows neither a rule nor a table."""
        if isinstance(player, TabularPolicy):
            return player.chances
        if not isinstance(player, RulePolicy):
            raise BadParameter(
                f"an exact reply is to players that follow a rule, which {player.name} does not: "
                "give --oracle ppo, or others as --start"
            )
        if player.name not in self._strategies:
            self._strategies[player.name] = self.tree.strategy_of(player, DRAWN)
        return self._strategies[player.name]

    def meta_game(self, players: Mapping[str, Policy]) -> MetaGame:
        """Return the meta-game of these players, averaged over seats."""
        each = [self.strategy(player) for player in players.values()]
        seat_of = self.tree.rows.seat[self.tree.owner]
        counts = lineups(len(each), self.tree.game.players)
        payoffs = np.full(counts.shape, np.nan)
        for row, lineup in enumerate(counts):
            sits = np.array(sorted(set(permutations(places(lineup).tolist()))))
            earned = [
                self.tree.worth(np.choose(seat_players[seat_of], each))[0] for seat_players in sits
            ]
            for player_index in np.flatnonzero(lineup):
                payoffs[row, player_index] = np.mean(np.array(earned)[sits == player_index])
        return MetaGame(tuple(players), self.tree.game.players, payoffs)

    def reply(self, players: Sequence[Policy], weights: Sequence[float]) -> tuple[Array, float]:
        """Return the best reply to a mixture, and its gain, both averaged over seats."""
        tree, played = self.tree, np.zeros(self.tree.count)
        for player, weight in zip(players, weights, strict=True):
            strategy = self.strategy(player)
            played += weight * strategy * tree.own_reach(strategy)[tree.owner]
        mixed = tree.scaled(played)
        reply, earned = tree.best_response(mixed)
        return reply, float((earned - tree.worth(mixed)[0]).mean())


def by_tree(run: Training, population: Population, number: int) -> tuple[str, float]:
    """Save the exact best response; return its name and gain."""
    whole, rules = population.whole, population.rules
    assert whole is not None
    reply, gain = whole.reply([*population.players.values()], population.weights.tolist())
    player = table_of(rules, whole.tree.rows, reply)
    name = f"tabular:{save_table(player, run.folder / f'reply-{number}.npz')}"
    return name, gain if gain > EXACT * (population.game.scale if population.game else 1) else 0.0


def by_rule(population: Population) -> tuple[str, float]:
    """Return the name of the best rule player as a reply, and its gain."""
    rules = population.rules
    references = theories.replies(rules) if theories.has(rules.name, "replies") else ()
    ruled = (name for name in players_for(rules.name) if rule_of(name, rules.name))
    names = [*dict.fromkeys((*references, *(name for name in ruled if "<" not in name)))]
    *earned, mixture_payoff = population.earned(names)
    best = int(np.argmax(earned))
    return names[best], float(earned[best] - mixture_payoff)


class EarlyStop(BaseCallback):
    """Reports the steps of a reply's training, and stops it at Ctrl-C."""

    def __init__(self, run: Training, first_step: int) -> None:
        super().__init__()
        self.run, self.first_step = run, first_step

    def _on_step(self) -> bool:
        self.run.advance(min(self.first_step + self.num_timesteps, self.run.options.steps))
        return not self.run.stopping


def by_learning(run: Training, population: Population, number: int) -> tuple[str, float]:
    """Train a reply by PPO and save it; return its name and gain."""
    options, rules = population.options, population.rules
    games = learners(
        rules, options.copies, opponents=population.mixture, seat="rotate",
        actions=options.actions, normalize=True,
    )  # fmt: skip
    env = VecNormalize(SB3VecEnv(games), norm_obs=False, clip_reward=WIDEST, gamma=options.gamma)
    model = replace(options, seed=options.seed + number).model(env)
    env.seed(TRAINED * (options.seed + 1) + number * 10**4)
    model.learn(options.steps // options.rounds, callback=EarlyStop(run, run.step))
    if run.stopping:
        return "", 0.0
    run.check(**{name: value.numpy() for name, value in model.policy.state_dict().items()})
    name = f"sb3:{save_player(model, env, run.folder / f'reply-{number}.zip')}"
    reply, mixture_payoff = population.earned([name])
    return name, float(reply - mixture_payoff)


def reply(run: Training, population: Population, number: int) -> tuple[str, float]:
    """Return the name of a reply to a population, and its gain; after Ctrl-C "" and 0."""
    oracle = population.options.oracle
    if oracle == "rules":
        return by_rule(population)
    return (by_tree if oracle == "exact" else by_learning)(run, population, number)


def train(options: PSROOptions) -> Evaluation:
    """Grow a population, and return its mixture's evaluation among the opponents."""
    torch.set_num_threads(1)
    with Training("psro", options) as run:
        progress = options.start, 0  # the population, and the rounds that are done
        if run.state is not None:
            progress = json.loads(run.state)
        run.saving = lambda: json.dumps(progress).encode()
        rules = run.table.rules
        whole = Whole(rules) if options.oracle == "exact" else None
        population = Population(options, rules, progress[0], whole)
        while progress[1] < options.rounds:
            names, number = progress
            run.advance(options.steps * number // options.rounds)
            run.keep()
            name, gain = reply(run, population, number)
            if not name:
                raise KeyboardInterrupt
            run.judge(population.mixture, psro__gain=gain, psro__players=len(names))
            run.say(f"round {number + 1}: {name} gains {gain:.4g} over {population.name}")
            joins = gain > 0 and name not in names
            if not joins and options.oracle != "ppo":
                break  # none of them gains
            progress = [*names, name] if joins else names, number + 1
            run.advance(options.steps * (number + 1) // options.rounds)
            run.keep()  # before they play each other: a reply that is trained is never lost
            if run.stopping and progress[1] < options.rounds:
                raise KeyboardInterrupt
            if joins:
                population = Population(options, rules, progress[0], whole)
        progress = progress[0], options.rounds
        run.advance(options.steps)
        run.keep()
        return run.end(population.mixture, population.name)


if __name__ == "__main__":
    command(train, PSROOptions)
