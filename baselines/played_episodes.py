"""Recorded episodes, played again so that their states and payoffs are known as well as moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from llm_games.noise import Noise
from llm_games.questions import MISSING
from llm_games.rulebook import Array, Rulebook


class PlayedStep(NamedTuple):
    """A step of all episodes; arrays are ``(players, episodes)``.

    `answered`: who made a move; `chosen`: which studied seats chose theirs themselves.
    """

    state: Any
    actions: Array
    answered: Array
    chosen: Array
    payoffs: Array


@dataclass(frozen=True)
class PlayedEpisodes:
    """Recorded episodes of one game, and in each the `seats` that are studied.

    `moves` are of each episode the recorded ``actions``, ``(steps, players)``; `chance` is what was
    given to it. `chosen` are of each episode the moves that players chose, bool ``(steps,
    players)``; () for all.
    """

    game: Rulebook
    seeds: Sequence[int]
    moves: Sequence[Any]
    seats: Sequence[Sequence[int]]
    chance: Mapping[str, Any] | None = None
    chosen: Sequence[Array] = ()

    @cached_property
    def studied(self) -> Array:
        """Which seats are studied, bool ``(players, episodes)``."""
        studied = np.zeros((self.game.players, len(self.seats)), np.bool_)
        for episode, seats in enumerate(self.seats):
            studied[list(seats), episode] = True
        return studied

    @cached_property
    def steps(self) -> Sequence[PlayedStep]:
        """All steps, played once by the rules without talk."""
        return list(self._replay(self.game.core))

    def _replay(self, game: Rulebook) -> Iterator[PlayedStep]:
        lengths = np.array([len(moves) for moves in self.moves])
        noise = Noise(np.array(self.seeds, np.uint64))
        state = game.begin(game.chance(noise, self.chance), lengths.shape)
        for step in range(int(lengths.max())):
            actions = np.full(self.studied.shape, MISSING, np.int64)
            chosen = self.studied.copy()
            for episode in np.flatnonzero(lengths > step).tolist():
                actions[:, episode] = self.moves[episode][step]
                if self.chosen:
                    chosen[:, episode] &= self.chosen[episode][step]
            answered = game.asked(state) & (actions != MISSING) & (step < lengths) & ~state.over
            next_state, outcome = game.step(state, actions)
            yield PlayedStep(state, actions, answered, chosen & answered, outcome.rewards)
            state = next_state
