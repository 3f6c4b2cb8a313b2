"""A player that draws one of several players for each episode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.rulebook import Array, Rulebook
from llm_games.view import Sight, View
from llm_games.wrappers.policy import Cell, Decided, Decision, Note, Policy, act, added, decide_in
from llm_games.wrappers.together import together


class MixtureMemory(NamedTuple):
    """The index of the drawn player, and that player's memory."""

    which: int
    memory: Any


class Drawns(NamedTuple):
    """The same of a batch: int64 ``(players, tables)``, and the memories of each of the players."""

    which: Array
    memories: list[Any]


class PlayerMixture(Policy):
    """Is one of `players` for a whole episode, drawn by the seat's own chance.

    It does exactly what the drawn one would do there alone, and speaks if all of them do. Seats
    draw independently.

    Args:
        players: at least one.
        weights: how likely each is, in proportion; by default all are as likely.
        name: by default ``mix:`` and the names, separated by ``|``.

    Raises:
        BadParameter: there is no player, or not one weight above 0 for each.
    """

    def __init__(
        self, players: Sequence[Policy], weights: Sequence[float] | None = None, name: str = ""
    ) -> None:
        self.players = list(players)
        self.weights = np.ones(len(players)) if weights is None else np.array(weights, np.float64)
        good = len(self.weights) == len(self.players) and (self.weights > 0).all()
        if not self.players or not good or not np.isfinite(self.weights).all():
            rule = "a mixture needs at least one player, and a finite weight above 0 for each"
            numbers = f"{len(self.players)} players and the weights {self.weights.tolist()}"
            raise BadParameter(f"{rule}, got {numbers}")
        self.name = name or f"mix:{'|'.join(player.name for player in self.players)}"
        self.speaks = all(player.speaks for player in self.players)

    @property
    def waits(self) -> bool:
        return any(player.waits for player in self.players)

    def does(self, name: str) -> bool:
        return any(player.does(name) for player in self.players)

    def drawn(self, seeds: Any) -> Array:
        """Return the indexes of the players of seats with these seeds, int64 of their shape."""
        return Noise(np.asarray(seeds).astype(np.uint64)).of("mix").choice(self.weights)

    def start(self, game: Rulebook, seat: int, seed: int) -> MixtureMemory:
        """Draw a player; raises what any of them says it cannot play."""
        begun = [player.start(game, seat, seed) for player in self.players]
        which = int(self.drawn(seed))
        return MixtureMemory(which, begun[which])

    def act(self, view: View, memory: MixtureMemory) -> tuple[Decision, MixtureMemory]:
        decision, next_memory = act(self.players[memory.which], view, memory.memory)
        return decision, MixtureMemory(memory.which, next_memory)

    async def decide(self, view: View, memory: MixtureMemory) -> tuple[Decision, MixtureMemory]:
        decision, next_memory = await decide_in(self.players[memory.which], view, memory.memory)
        return decision, MixtureMemory(memory.which, next_memory)

    def hear(self, view: View, memory: MixtureMemory) -> MixtureMemory:
        return MixtureMemory(memory.which, self.players[memory.which].hear(view, memory.memory))

    async def finish(self, view: View, memory: MixtureMemory) -> Decision | None:
        return await self.players[memory.which].finish(view, memory.memory)

    def recall(self, memory: MixtureMemory, notes: Sequence[Note]) -> MixtureMemory:
        """Let the one that was drawn recall, whoever noted it down."""
        return MixtureMemory(memory.which, self.players[memory.which].recall(memory.memory, notes))

    def start_batch(
        self, game: Rulebook, mask: Array, seeds: Array, memory: Drawns | None = None
    ) -> Drawns:
        """Draw a player for each cell that begins."""
        which, memories = memory or (np.zeros(mask.shape, np.int64), [None] * len(self.players))
        which = np.where(mask, self.drawn(seeds), which)
        begun = [
            player.start_batch(game, mask & (which == k), seeds, player_memory)
            for k, (player, player_memory) in enumerate(zip(self.players, memories, strict=True))
        ]
        return Drawns(which, begun)

    def _cells(self, mask: Array, which: Array) -> list[tuple[int, Array]]:
        """Return the players that were drawn in some of these cells, and in which."""
        candidates = ((k, mask & (which == k)) for k in range(len(self.players)))
        return [(k, cells) for k, cells in candidates if cells.any()]

    async def decide_batch(self, sight: Sight, mask: Array, memory: Drawns) -> tuple[Decided, Any]:
        """Decide as those who were drawn, each in all its cells at once."""
        which, memories = memory.which, [*memory.memories]
        cells = self._cells(mask, which)
        work = (self.players[k].decide_batch(sight, chosen, memories[k]) for k, chosen in cells)
        answers = await together(work) if self.waits else [await coroutine for coroutine in work]
        replies: dict[Cell, Decision] = {}
        for (k, _), (decided, next_memory) in zip(cells, answers, strict=True):
            memories[k] = next_memory
            replies |= decided.replies
        moves = (decided.actions for decided, _ in answers)
        actions = reduce(added, moves, np.zeros(mask.shape, np.int64))
        return Decided(actions, replies), Drawns(which, memories)

    def hear_batch(self, sight: Sight, mask: Array, memory: Drawns) -> Drawns:
        memories = [*memory.memories]
        for k, cells in self._cells(mask, memory.which):
            if self.players[k].does("hear"):
                memories[k] = self.players[k].hear_batch(sight, cells, memories[k])
        return Drawns(memory.which, memories)

    async def finish_batch(
        self, sight: Sight, mask: Array, memory: Drawns
    ) -> Mapping[Cell, Decision]:
        work = (
            self.players[k].finish_batch(sight, cells, memory.memories[k])
            for k, cells in self._cells(mask, memory.which)
            if self.players[k].does("finish")
        )
        return {cell: reply for group in await together(work) for cell, reply in group.items()}

    def recall_batch(self, memory: Drawns, notes: Mapping[Cell, Sequence[Note]]) -> Drawns:
        """Let those who were drawn recall, whoever noted it down."""
        memories = [*memory.memories]
        for k, player in enumerate(self.players):
            recalled = {cell: noted for cell, noted in notes.items() if memory.which[cell] == k}
            if recalled and player.does("recall"):
                memories[k] = player.recall_batch(memories[k], recalled)
        return Drawns(memory.which, memories)


class BySeat(PlayerMixture):
    """Is another player in each seat: `players` are one for each, else BadParameter at `start`."""

    def __init__(self, players: Sequence[Policy], name: str = "") -> None:
        super().__init__(players, name=name or f"seats:{'|'.join(p.name for p in players)}")

    def drawn(self, seeds: Any) -> Array:
        """Return the seat, for each of seeds ``(players, ...)``."""
        shape = np.shape(seeds)
        self._check(shape[0])
        return np.broadcast_to(np.arange(shape[0]).reshape(-1, *(1,) * (len(shape) - 1)), shape)

    def start(self, game: Rulebook, seat: int, seed: int) -> MixtureMemory:
        self._check(game.players)
        return MixtureMemory(seat, self.players[seat].start(game, seat, seed))

    def _check(self, seats: int) -> None:
        if seats != len(self.players):
            description = f"{self.name} has {len(self.players)} players, one for each seat"
            raise BadParameter(f"{description}, and here are {seats}: seat it in its own game")
