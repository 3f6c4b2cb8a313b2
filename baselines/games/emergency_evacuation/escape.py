"""Escape curves by round, times, and the balance of exits, from one table's stacked records.

Shall We Talk (arXiv 2402.12327), section 5.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from llm_games.baselines.games.emergency_evacuation import theory
from llm_games.baselines.regret import Steps
from llm_games.games.emergency_evacuation.rules import TARGET
from llm_games.rulebook import Array, PerPlayer

BODIES, MINDS = ("strong", "weak"), ("positive", "negative")
Curves = dict[str, Array]


@dataclass(frozen=True)
class Evacuation:
    """One episode: when people got out (round, 0: never), by which exit (−1), or were lost.

    `overtaken` counts rounds; `choices` are targets' sides, ``(players, steps)``, −1 of a seat not
    asked. Curves are cumulative, by round from 1 on.
    """

    game: Any
    escaped: PerPlayer
    exit: PerPlayer
    lost: PerPlayer
    group: PerPlayer
    overtaken: PerPlayer
    choices: Array

    @property
    def evacuation_time(self) -> int | None:
        """The round of the last escape; None if some people did not get out."""
        return int(self.escaped.max()) if self.escaped.all() else None

    @property
    def mean_escape_round(self) -> float:
        """The mean round of escape of those who got out; NaN if nobody did."""
        out = self.escaped[self.escaped > 0]
        return float(out.mean()) if len(out) else np.nan

    @property
    def escape_rate(self) -> float:
        return float((self.escaped > 0).mean())

    @property
    def casualty_rate(self) -> float:
        return float((self.lost > 0).mean())

    @property
    def overtaken_rounds(self) -> int:
        return int(self.overtaken.sum())

    @property
    def sides(self) -> dict[str, int]:
        room = self.game.room
        by = room.side[self.exit[self.escaped > 0]]
        return dict(zip(room.sides, np.bincount(by, minlength=len(room.sides)).tolist()))  # noqa: B905

    @property
    def exit_balance(self) -> float:
        """Balance of sides among escapes, from 0 (a single one) to 1; NaN for no escape."""
        return balance(np.array([*self.sides.values()]))

    @property
    def changes(self) -> float:
        """Share of decisions after each seat's first that changed the side; NaN for none."""
        changes = np.concatenate([np.diff(chosen[chosen >= 0]) != 0 for chosen in self.choices])
        return float(changes.mean()) if len(changes) else np.nan

    # -- curves ------------------------------------------------------------------------------------

    def curve(self, rounds: PerPlayer, mask: Array | None = None) -> Array:
        """Return the cumulative number of people by round, int64 ``(max_rounds,)``."""
        of = rounds if mask is None else rounds[mask]
        counts = np.bincount(of[of > 0], minlength=self.game.max_rounds + 1)
        return np.asarray(counts.cumsum()[1:])

    @cached_property
    def escapes(self) -> Curves:
        """Curves of escapes: ``all``, by body, mind and group, by side, and by exit."""
        room = self.game.room
        side = np.where(self.exit >= 0, room.side[np.maximum(self.exit, 0)], -1)
        sides = {name: side == k for k, name in enumerate(room.sides)}
        exits = {f"exit {k}": self.exit == k for k in range(len(room.exits))}
        return self._curves(self.escaped, self.classes | sides | exits)

    @cached_property
    def casualties(self) -> Curves:
        return self._curves(self.lost, self.classes)

    @cached_property
    def classes(self) -> dict[str, Array]:
        """Masks of people by body, mind and group, as in the paper's curves."""
        body, mind = (self.group - 1) // 2, (self.group - 1) % 2
        masks = {name: body == k for k, name in enumerate(BODIES)}
        masks |= {name: mind == k for k, name in enumerate(MINDS)}
        return masks | {f"{BODIES[g // 2]} & {MINDS[g % 2]}": self.group == g + 1 for g in range(4)}

    def _curves(self, rounds: PerPlayer, of: dict[str, Array]) -> Curves:
        return {"all": self.curve(rounds)} | {k: self.curve(rounds, mask) for k, mask in of.items()}


def balance(counts: Array) -> float:
    """Return the entropy of the shares of these counts, as a part of its maximum."""
    total = counts.sum()
    if not total or len(counts) < 2:
        return np.nan
    shares = counts[counts > 0] / total
    return float(max(-(shares * np.log(shares)).sum() / np.log(len(counts)), 0.0))


def evacuation(game: Any, steps: Steps) -> Evacuation:
    asked = (steps["phase"] == TARGET) & (steps["actions"] >= 0)
    sides = np.where(asked, game.room.side[np.maximum(steps["aim"], 0)], -1)
    return Evacuation(
        game,
        **{name: steps[name].max(axis=-1) for name in ("escaped", "exit", "lost", "group")},
        overtaken=steps["overtaken"].sum(axis=-1),
        choices=sides,
    )


def bounds(game: Any, steps: Steps) -> dict[str, int]:
    """Return lower bounds of rounds: ``matching`` of a person alone, ``flow`` of one in a cell."""
    from llm_games.baselines.games.emergency_evacuation.queues import fewest_by_flow, fewest_rounds

    start = steps["cell"][:, 0]
    cells = start[start > 0]
    return {"matching": fewest_rounds(game.room, cells), "flow": fewest_by_flow(game.room, cells)}


def regrets(game: Any, steps: Steps) -> Array:
    """Return each person's mean regret over its choices of an exit."""
    regret_by_step = theory.deviation(game, steps)[0]
    asked = (steps["phase"] == TARGET) & (steps["actions"] >= 0)
    return regret_by_step.sum(axis=-1) / np.maximum(asked.sum(axis=-1), 1)
