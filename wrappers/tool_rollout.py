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
from llm_games.wrappers.guest_table import GuestSession, GuestTable
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
        self._player = dict(player or {})
        GuestTable(self._game, [], self._player)  # what cannot be asked so is refused now
        self._table: GuestTable | None = None
        self._session: GuestSession | None = None

    def __del__(self) -> None:
        self._stop()

    def _stop(self) -> None:
        if (table := getattr(self, "_table", None)) is not None:
            table.stop()

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
        self._stop()
        drawn = self._seating.seats(seed, -1)
        seat, policies = int(drawn), self._seating.policies
        inside = [policies[index] for index in self._seating.sits(drawn) if index >= 0]
        more: Any = {"seed": int(seed), "max_steps": self._limit}
        self._table = GuestTable(self._game, inside, self._player, **more)
        run_sync(self._table.sit_down(seat))
        self._session = GuestSession(self._table.seats[seat])
        return self._next(self._session)

    def answer(self, reply: str) -> str:
        """Answer what the game asked last, and read what happened and what it asks next.

        Args:
            reply: The JSON object that the game asked for, as text.

        Returns:
            What happened since, and the next question.
        """
        session = self._started()
        if session.is_over:
            return OVER
        # A model may write the object itself as the argument.
        session.answer(reply if isinstance(reply, str) else json.dumps(reply))
        return self._next(session)

    def get_reward(self) -> float:
        """Return the payoff of the whole game, whose unanswered rest is played as declared."""
        session = self._started()
        session.seat.leave()
        self._next(session)
        return session.seat.standing.payoff

    def _next(self, session: GuestSession) -> str:
        run_sync(session.seat.wait(None))
        return str(session.read()["text"])

    def _started(self) -> GuestSession:
        if self._session is None:
            raise NotReady(f"{self._game.name} was never reset: call reset(seed=...) first")
        return self._session


def seeds(count: int, first: int = 1) -> Any:
    """Return the data set of the games of so many seeds, from `first` on, for `GameTools`."""
    from datasets import Dataset

    check_integer("count", count, 1)
    empty = [{"role": "user", "content": ""}]
    return Dataset.from_list([{"prompt": empty, "seed": first + k} for k in range(count)])
