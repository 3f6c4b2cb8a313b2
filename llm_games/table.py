"""One table of a game: its state, its chance and who is asked; no player."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from llm_games.errors import IllegalAction, NotReady
from llm_games.facts import check_integer
from llm_games.questions import Action
from llm_games.rulebook import Outcome, Rulebook
from llm_games.view import Sight, Who

NEXT_SEEDS = 2**31
"""Spawn key of the seeds of the episodes that follow one whose seed was given."""


class Table:
    """A table at which one episode after another is played. An episode's chance is its seed's.

    Args:
        game: the rules.
        who: which episode it is, for those who are asked; by default the game and the seed.

    Attributes:
        seed: of this episode; whoever plays it through whatever door, same seed, same game.
        state: where the game stands.
        sight: the state as all seats see it.
        steps: how many were played.
    """

    def __init__(self, game: Rulebook, who: Who | None = None) -> None:
        self.game, self.who = game, who
        self.seed, self.steps = 0, 0
        self.state: Any = None
        self.sight: Sight | None = None
        self._seeds: np.random.Generator | None = None

    def reset(self, seed: int | None = None, given: Mapping[str, Any] | None = None) -> None:
        """Start the episode of a seed; without one, the next that follows the last seed given.

        Args:
            seed: at least 0.
            given: by name, what chance would else decide.

        Raises:
            BadParameter, UnknownName: the seed is negative, or see `Rulebook.reset`.
        """
        if seed is not None:
            check_integer("seed", seed, 0)
        if seed is not None or self._seeds is None:
            first = np.random.SeedSequence(None if seed is None else int(seed))
            assert isinstance(first.entropy, int)
            seed = int(seed if seed is not None else first.entropy % 2**63)
            follow = np.random.SeedSequence(seed, spawn_key=(NEXT_SEEDS,))
            self._seeds = np.random.default_rng(follow)
        else:
            seed = int(self._seeds.integers(2**63))
        self.seed, self.steps = seed, 0
        self._enter(self.game.reset(seed, given=given))

    def _enter(self, state: Any) -> None:
        self.state = state
        who = self.who or Who(self.game.name, self.seed)
        self.sight = Sight(self.game, state, who._replace(step=self.steps))

    def ready(self) -> Sight:
        """Return what the seats see; raise NotReady if there is nothing yet."""
        if self.sight is None:
            raise NotReady(f"{self.game.name} was never reset: call reset() first")
        return self.sight

    @property
    def asked(self) -> list[int]:
        """The seats that have to move now, in order."""
        return self.ready().asked

    def check(self, moves: Mapping[int, Action]) -> None:
        """Refuse moves against the rules, instead of treating them as these say.

        Raises:
            IllegalAction: one is.
        """
        broke = self.game.breaks(self.state, self.game.assemble(self.state, moves))
        for seat in moves:
            if broke[seat]:
                question = self.game.question(self.state, seat)
                raise IllegalAction(
                    f"{self.game.names()[seat]}: {moves[seat]!r} is against the rules now; "
                    f"legal is {'nothing' if question is None else question.wanted()}"
                )

    def step(self, moves: Mapping[int, Action]) -> Outcome:
        """Play the asked seats' moves.

        Args:
            moves: by seat, in the rules' own units; a seat that is left out gave no answer.
        """
        actions = self.game.assemble(self.state, moves)
        state, outcome = self.game.step(self.state, actions)
        self.steps += 1
        self._enter(state)
        return outcome

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
