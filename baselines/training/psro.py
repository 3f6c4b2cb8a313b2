"""PSRO: a population that grows by replies to the equilibrium of its own meta-game.

Each round all players of the population play each other, a solver weighs them (Nash, α-rank, or
all alike), and a reply to that mixture joins: a learner trained against it by PPO, the best of the
players that follow a rule, or in a small game the exact best response. What a reply gains over the
mixture is how far from equilibrium the population is known to be. The game is symmetric, as seats
are drawn. `--opponents` are whom the mixture is judged among, and never trained with. Lanctot and
others, A unified game-theoretic approach to multiagent reinforcement learning, 2017, NeurIPS
(arXiv:1711.00832); with exact replies, McMahan, Gordon and Blum's double oracle, ICML 2003.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import Annotated, Literal

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

from llm_games.arrays import Array
from llm_games.baselines import deviation
from llm_games.baselines.crossplay import ALL, crossplay, places
from llm_games.baselines.equilibria import equilibria
from llm_games.baselines.evolution import alpha_rank
from llm_games.baselines.learner import learners
from llm_games.baselines.metagame import MetaGame, lineups
from llm_games.baselines.players import make_player, players_for, rule_of
from llm_games.baselines.rules import RulePolicy
from llm_games.baselines.skill import play_batch
from llm_games.baselines.training import ppo
from llm_games.baselines.training.common import LONGEST, Judged, Training, command, option
from llm_games.baselines.training.stable import TRAINED, WIDEST, settings
from llm_games.baselines.tree import Tree
from llm_games.errors import BadParameter
from llm_games.rulebook import Rulebook
from llm_games.wrappers.mixture import Mixture
from llm_games.wrappers.policy import Policy
from llm_games.wrappers.sb3 import SB3VecEnv, save_player
from llm_games.wrappers.tabular import TabularPolicy, save_table, table_of

MATCHES, TRIALS = 10**9, 15 * 10**8
"""First seeds of the games of the population, and of those in which replies are tried."""
DRAWN = 1024
"""How often a player that draws is asked in each information set of a whole game."""
EXACT = 1e-9  # of the range of payoffs: what gains less is found for rounding
LEAST = 1e-3
"""Weight from which a player is in the mixture."""


@dataclass(frozen=True, kw_only=True)
class PSROOptions(ppo.PPOOptions):
    """What PSRO is told; `steps` are decisions of all rounds together."""

    start: Annotated[list[str], option("PLAYER", "who is in the population first")] = field(
        default_factory=lambda: ["random"]
    )
    rounds: Annotated[int, option("N", "replies that join, at most", min=1)] = 6
    oracle: Annotated[
        Literal["ppo", "rules", "exact"], option("HOW", "who replies: ppo, rules or exact")
    ] = "ppo"
    solver: Annotated[
        Literal["nash", "alpha_rank", "uniform"], option("HOW", "nash, alpha_rank or uniform")
    ] = "nash"


class Population:
    """Players by name, what they come to with each other, and how a solver weighs them.

    With a `whole` game what they come to is exact, else found by playing.
    """

    def __init__(
        self,
        options: PSROOptions,
        rules: Rulebook,
        names: Sequence[str],
        whole: Whole | None = None,
    ) -> None:
        self.options, self.names, self.rules, self.whole = options, list(names), rules, whole
        self.players = {name: make_player(name, self.rules) for name in self.names}
        self.game = self._met() if len(self.names) > 1 else None
        self.weights = self._weights(options.solver)

    def _met(self) -> MetaGame:
        if self.whole is not None:
            return self.whole.met(self.players)
        seeds = range(MATCHES, MATCHES + self.options.episodes)
        steps = None if self.rules.turns else LONGEST
        return crossplay(self.rules, self.names, seeds, ALL, steps).meta()

    def _weights(self, solver: str) -> Array:
        many = len(self.names)
        if self.game is None or solver == "uniform":
            return np.full(many, 1 / many)
        if solver == "alpha_rank":
            return alpha_rank(self.game)
        return equilibria(self.game)[0].mixture

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


class Whole:
    """A small game as a tree, in which players are strategies.

    A player that draws is met as it moves in `DRAWN` draws of each information set.

    Raises:
        BadParameter: the tree is too large, or chance is not known.
    """

    def __init__(self, rules: Rulebook) -> None:
        self.tree = Tree(rules)
        if self.tree.deals:
            raise BadParameter(
                f"an exact reply needs to know what chance may bring, which no room says of "
                f"{rules.name} with these parameters: give --oracle ppo"
            )
        self._found: dict[str, Array] = {}

    def strategy(self, player: Policy) -> Array:
        """Return a player as a strategy; BadParameter: it follows neither rule nor table."""
        if isinstance(player, TabularPolicy):
            return player.chances
        if not isinstance(player, RulePolicy):
            raise BadParameter(
                f"an exact reply is to players that follow a rule, which {player.name} does not: "
                "give --oracle ppo, or others as --start"
            )
        if player.name not in self._found:
            self._found[player.name] = self.tree.strategy_of(player, DRAWN)
        return self._found[player.name]

    def met(self, players: Mapping[str, Policy]) -> MetaGame:
        """Return what players come to with each other, seats in turn."""
        each = [self.strategy(player) for player in players.values()]
        seat_of = self.tree.rows.seat[self.tree.owner]
        counts = lineups(len(each), self.tree.game.players)
        paid = np.full(counts.shape, np.nan)
        for row, many in enumerate(counts):
            sits = np.array(sorted(set(permutations(places(many).tolist()))))
            earned = [self.tree.worth(np.choose(one[seat_of], each))[0] for one in sits]
            for who in np.flatnonzero(many):
                paid[row, who] = np.mean(np.array(earned)[sits == who])
        return MetaGame(tuple(players), self.tree.game.players, paid)

    def reply(self, players: Sequence[Policy], weights: Sequence[float]) -> tuple[Array, float]:
        """Return the best reply to a mixture, and what it gains, both on average over seats."""
        tree, played = self.tree, np.zeros(self.tree.count)
        for player, weight in zip(players, weights, strict=True):
            own = self.strategy(player)
            played += weight * own * tree.own_reach(own)[tree.owner]
        mixed = tree.scaled(played)
        reply, earned = tree.best_response(mixed)
        return reply, float((earned - tree.worth(mixed)[0]).mean())


def by_tree(run: Training, population: Population, number: int) -> tuple[str, float]:
    """Find the exact best response, save it, and return its name and what it gains."""
    whole, rules = population.whole, population.rules
    assert whole is not None
    reply, gain = whole.reply([*population.players.values()], population.weights.tolist())
    player = table_of(rules, whole.tree.rows, reply)
    name = f"tabular:{save_table(player, run.folder / f'reply-{number}.npz')}"
    return name, gain if gain > EXACT * (population.game.scale if population.game else 1) else 0.0


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


def reply(run: Training, population: Population, number: int) -> tuple[str, float]:
    """Return who replies to a population, and what that gains; Ctrl-C in its training: "", 0."""
    oracle = population.options.oracle
    if oracle == "rules":
        return by_rule(population)
    return (by_tree if oracle == "exact" else by_learning)(run, population, number)


def train(options: PSROOptions) -> Judged:
    """Grow a population, and return what its mixture comes to among the opponents."""
    torch.set_num_threads(1)
    with Training("psro", options) as run:
        kept = options.start, 0  # the population, and the rounds that are done
        if run.state is not None:
            kept = json.loads(run.state)
        run.saving = lambda: json.dumps(kept).encode()
        rules = run.table.rules
        whole = Whole(rules) if options.oracle == "exact" else None
        population = Population(options, rules, kept[0], whole)
        while kept[1] < options.rounds:
            names, number = kept
            run.at(options.steps * number // options.rounds)
            run.keep()
            name, gain = reply(run, population, number)
            if not name:
                raise KeyboardInterrupt
            run.judge(population.mixture, psro__gain=gain, psro__players=len(names))
            run.say(f"round {number + 1}: {name} gains {gain:.4g} over {population.name}")
            joins = gain > 0 and name not in names
            if not joins and options.oracle != "ppo":
                break  # none of them gains
            kept = [*names, name] if joins else names, number + 1
            run.at(options.steps * (number + 1) // options.rounds)
            run.keep()  # before they play each other: a reply that is trained is never lost
            if run.stopping and kept[1] < options.rounds:
                raise KeyboardInterrupt
            if joins:
                population = Population(options, rules, kept[0], whole)
        kept = kept[0], options.rounds
        run.at(options.steps)
        run.keep()
        return run.end(population.mixture, population.name)


if __name__ == "__main__":
    command(train, PSROOptions)
