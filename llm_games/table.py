"""One table of a game: its state, its chance and the seats that are asked; no player."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from llm_games.errors import IllegalAction, NotReady
from llm_games.facts import check_integer
from llm_games.questions import Action
from llm_games.rulebook import Array, Outcome, Rulebook
from llm_games.view import Sight, Who

NEXT_SEEDS = 2**31  # spawn key of the seeds of the episodes that follow one whose seed was given


def following(seed: int) -> np.random.Generator:
    """Return the generator of the seeds of episodes that follow one whose seed was given."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(NEXT_SEEDS,)))


class Table:
    """A table at which one episode after another is played; `steps` counts those of this episode.

    An episode's chance is its seed's, whatever plays it. `who` names it in requests to players
    (else game and seed). `sight` is the state as all seats see it.
    """

    def __init__(self, game: Rulebook, who: Who | None = None) -> None:
        self.game, self.who = game, who
        self.seed, self.steps = 0, 0
        self.state: Any = None
        self._dealt: Any = None
        self.sight: Sight | None = None
        self._seeds: np.random.Generator | int | None = None  # a seed: they follow it

    def reset(self, seed: int | None = None, given: Mapping[str, Any] | None = None) -> None:
        """Start the episode of a seed of at least 0, or the next; see `Rulebook.reset`."""
        if seed is None and self._seeds is not None:
            if isinstance(self._seeds, int):
                self._seeds = following(self._seeds)
            self.seed = int(self._seeds.integers(2**63))
        else:
            seed = secrets.randbelow(2**63) if seed is None else seed
            check_integer("seed", seed, 0)
            self.seed = self._seeds = int(seed)
        self._dealt = self.game.reset(self.seed, given=given)
        self.reopen()

    def reopen(self) -> None:
        """Enter the first state of this episode, in which talk waits for all seats' words."""
        self.steps = 0
        self._who = self.who or Who(self.game.name, self.seed)
        self._enter(self._dealt)

    def _enter(self, state: Any) -> None:
        self.state = state
        run, episode, _, seat, call, _ = self._who
        self.sight = Sight(self.game, state, Who(run, episode, self.steps, seat, call, self.seed))

    def hush(self, seats: Sequence[int]) -> None:
        """Tell this episode's talk, before it has begun, not to wait for these seats' words."""
        if self.game.core is not self.game and len(seats):
            mute = np.isin(np.arange(self.game.players), seats)
            self._enter(self.game.hush(self.state, mute))

    def ready(self) -> Sight:
        """Return the sight of all seats; NotReady before the first reset."""
        if self.sight is None:
            raise NotReady(f"{self.game.name} was never reset: call reset() first")
        return self.sight

    @property
    def asked(self) -> list[int]:
        """The seats that have to move now, in order."""
        return self.ready().asked

    def check(self, moves: Mapping[int, Action]) -> None:
        """Raise IllegalAction for moves against the rules, in place of the game's treatment."""
        broke = self.game.breaks(self.state, self.game.assemble(self.state, moves))
        for seat, move in moves.items():
            if broke[seat]:
                question = self.game.question(self.state, seat)
                legal = "nothing" if question is None else question.wanted()
                complaint = f"{self.game.names()[seat]}: {move!r} is against the rules now"
                raise IllegalAction(f"{complaint}; legal is {legal}")

    def step(self, moves: Mapping[int, Action]) -> Outcome:
        """Play the asked seats' moves, in the rules' own units; a seat left out gave no answer."""
        state, outcome = self.game.step(self.state, self.game.assemble(self.state, moves))
        self.steps += 1
        self._enter(state)
        return outcome

    def image(self) -> Array:
        """Draw the whole table as a spectator sees it, in pixels, see `Rulebook.image`."""
        self.ready()
        return self.game.image(self.state)

    def picture(self) -> str:
        """Draw the whole table as a spectator sees it."""
        self.ready()
        caption, headers, rows = self.game.picture(self.state)
        widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in (headers, ["-" * width for width in widths], *rows)
        ]
        return "\n".join([caption, *(line.rstrip() for line in lines)])
