"""A game as an environment of TRL's `GRPOTrainer`: the model answers by calling a tool.

``GRPOTrainer(..., environment_factory=lambda: GameTools("public_goods", players=3),
train_dataset=seeds(100))``: a row of the data is the seed of a game, which its group plays with the
same chance. Each rollout has a table of its own. Beside it, `GameRollout` asks a model in plain
words, and plays the games of a step together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from llm_games.errors import BadParameter, NotReady
from llm_games.facts import check_integer
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook
from llm_games.wrappers.outside_table import OutsideTable, outside_player
from llm_games.wrappers.single_agent import seating
from llm_games.wrappers.together import run_sync

OVER = "Error: the game is over, and takes no more answers."


class GameTools:
    """One rollout's games. Public methods but `reset` and `get_reward` are the model's tools.

    What a rollout leaves unfinished is played on with the game's declared moves before it is
    scored, so that leaving early does not pay. A trainer needs ``max_tool_calling_iterations``
    above the number of decisions.

    Args:
        game: a rulebook, or a game's name with its `parameters`.
        seat, opponents: as of `SingleAgentEnv`; ``"rotate"`` is the seed modulo the seats.
        max_steps: the most steps of a game; 1000 where it has no limit of its own.
        player: settings of `LLMPolicy`, such as ``{"prompts": "v2"}``: how the model is asked.

    Raises:
        BadParameter, UnknownName: an argument is not one of these.
    """

    def __init__(
        self,
        game: str | Rulebook,
        *,
        seat: int | str = "rotate",
        opponents: Any = None,
        max_steps: int | None = None,
        player: Mapping[str, Any] | None = None,
        **parameters: Any,
    ) -> None:
        if max_steps is not None:
            check_integer("max_steps", max_steps, 1)
        self._game, self._limit = rulebook(game, **parameters), max_steps
        self._seating = seating(self._game, seat, opponents)
        self._player = outside_player(**(player or {}))
        self._table: OutsideTable | None = None
        self._seat = 0

    def reset(self, seed: int | None = None, **columns: Any) -> str:
        """Begin the game of a row's seed, and return what the model reads first."""
        if "table" in columns:
            raise BadParameter(
                "table: TRL calls the tools of one rollout after those of another, so that several "
                "at one table would wait for each other; let GameRollout play groups together"
            )
        if seed is None:
            raise BadParameter('the data needs a column "seed", as that of seeds(100)')
        check_integer("seed", seed, 0, 2**63 - 1)
        seat = self._seating.seats(seed, -1)
        self._seat, policies = int(seat), self._seating.policies
        sits = self._seating.sits(seat)
        inside = {seat: policies[index] for seat, index in enumerate(sits) if index >= 0}
        self._table = OutsideTable(
            self._game, inside, self._player, seed=int(seed), max_steps=self._limit
        )
        return self._next()

    def answer(self, reply: str) -> str:
        """Answer what the game asked last, and read what happened and what it asks next.

        Args:
            reply: The JSON object that the game asked for, as text.

        Returns:
            What happened since, and the next question.
        """
        table = self._started()
        if table.is_over(self._seat):
            return OVER
        # A model may write the object itself as the argument.
        table.seats[self._seat].answer(reply if isinstance(reply, str) else json.dumps(reply))
        return self._next()

    def get_reward(self) -> float:
        """Return the payoff of the whole game, whose unanswered rest is played as declared."""
        table = self._started()
        table.left.add(self._seat)
        run_sync(table.play_on())
        return float(table.payoffs[self._seat])

    def _next(self) -> str:
        table = self._started()
        run_sync(table.play_on())
        return table.news(self._seat)

    def _started(self) -> OutsideTable:
        if self._table is None:
            raise NotReady(f"{self._game.name} was never reset: call reset(seed=...) first")
        return self._table


def seeds(count: int, first: int = 1) -> Any:
    """Return the data set of the games of so many seeds, from `first` on, for `GameTools`."""
    from datasets import Dataset

    check_integer("count", count, 1)
    empty = [{"role": "user", "content": ""}]
    return Dataset.from_list([{"prompt": empty, "seed": first + k} for k in range(count)])
