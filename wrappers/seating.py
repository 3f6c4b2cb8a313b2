"""Where a learner sits, episode after episode, and who sits in the other seats."""

from __future__ import annotations

from typing import Any

import numpy as np

from llm_games.errors import BadParameter
from llm_games.facts import check_integer
from llm_games.noise import Noise
from llm_games.rulebook import Array, PerPlayer, PerTable, Rulebook
from llm_games.wrappers.policy import Policy, RandomPolicy
from llm_games.wrappers.seats import policy_of

SEATS = ("rotate", "random")


class Seating:
    """A learner's seat and its opponents.

    Args:
        game: the rules.
        seat: the learner's seat; ``"rotate"``: the next one in every episode, from the seed on;
            ``"random"``: drawn from each episode's seed.
        opponents: one policy for all other seats, or one for each of them in seat order, wherever
            the learner sits; also as clients or plain functions, see `player_of`. None plays at
            random.

    Raises:
        BadParameter: no such seat, not one policy for each other seat, or something else than a
            policy.
    """

    def __init__(self, game: Rulebook, seat: int | str, opponents: Any) -> None:
        if isinstance(seat, str) and seat not in SEATS:
            raise BadParameter(f'seat must be a number, "rotate" or "random", got {seat!r}')
        if not isinstance(seat, str):
            check_integer("seat", seat, 0, game.players - 1)
        self.game, self.seat = game, seat
        each = _each(opponents, game.players - 1)
        self.policies: list[Policy] = list({id(policy): policy for policy in each}.values())
        """all opponents, each once"""
        known = {id(policy): k for k, policy in enumerate(self.policies)}
        self._places = np.array([-1, *(known[id(policy)] for policy in each)])

    def learner(self, seed: Any, first: Any, number: Any) -> Any:
        """Return where the learner sits in the episode of a `seed`, also of several, ``(k,)``.

        It is the one of this `number`, from 0, since the `first` seed was given.
        """
        if self.seat == "random":
            return Noise(seed).of("learner").integers(self.game.players)
        if self.seat == "rotate":
            many = np.uint64(self.game.players)
            found = (np.asarray(first, np.uint64) % many + np.asarray(number, np.uint64)) % many
            return found.astype(np.int64)
        return np.full(np.shape(seed), self.seat)

    def sits(self, learner: PerTable) -> PerPlayer:
        """Return which of `policies` sits in each seat, -1 for the learner, ``(players, k)``."""
        seats = np.arange(self.game.players)[:, None]
        place = np.where(seats == learner, 0, seats + (seats < learner))
        found: Array = self._places[place]
        return found

    def by_seat(self, learner: int) -> dict[int, Policy]:
        """Return the opponents of one table by seat."""
        sits = self.sits(np.array([learner]))[:, 0].tolist()
        return {seat: self.policies[k] for seat, k in enumerate(sits) if k >= 0}


def _each(opponents: Any, count: int) -> list[Policy]:
    """Return a policy for each other seat."""
    opponents = RandomPolicy() if opponents is None else opponents
    if isinstance(opponents, str):
        raise BadParameter(f"opponents must be policies: make_player({opponents!r})")
    if not isinstance(opponents, list | tuple):
        return [policy_of(opponents)] * count
    if len(opponents) != count:
        raise BadParameter(
            f"opponents must be one policy or {count} (all seats but the learner's), "
            f"got {len(opponents)}"
        )
    return [policy_of(one) for one in opponents]
