"""What became of a crowd: curves by round, times, how evenly exits were used.

Read from the records of one table (`llm_games.baselines.deviation.stacked`). Shall We Talk
(arXiv 2402.12327), section 5: its curves, and the share of exits.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from llm_games.baselines.deviation import Steps
from llm_games.baselines.games.emergency_evacuation import theory
from llm_games.games.emergency_evacuation.rules import TARGET
from llm_games.rulebook import Array, PerPlayer

BODIES, MINDS = ("strong", "weak"), ("positive", "negative")
Curves = dict[str, Array]


@dataclass(frozen=True)
class Evacuation:
    """One episode: when people got out (round, 0: never), by which exit (−1), or were lost.

    `group` is 1 to 4, `overtaken` how many rounds each lay overtaken; `choices` are targets' sides,
    ``(players, steps)``, −1 where a seat was not asked. Curves are cumulative, by round from 1 on.
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
        """The round of the last escape; None if somebody did not get out."""
        return int(self.escaped.max()) if self.escaped.all() else None

    def time_of(self, share: float) -> int | None:
        """Return the round in which this share of all was out; None if it never was."""
        out = np.sort(self.escaped[self.escaped > 0])
        needed = int(np.ceil(share * len(self.escaped) - 1e-9))
        return int(out[needed - 1]) if 0 < needed <= len(out) else None

    @property
    def mean_escape_round(self) -> float:
        """The mean round of escape of those who got out; NaN if nobody did."""
        out = self.escaped[self.escaped > 0]
        return float(out.mean()) if len(out) else np.nan

    @property
    def escape_rate(self) -> float:
        """The share of people who got out."""
        return float((self.escaped > 0).mean())

    @property
    def casualty_rate(self) -> float:
        """The share of people who were lost."""
        return float((self.lost > 0).mean())

    @property
    def overtaken_rounds(self) -> int:
        """Rounds that people lay overtaken, all added up."""
        return int(self.overtaken.sum())

    @property
    def sides(self) -> dict[str, int]:
        """How many got out by each side."""
        room = self.game.room
        by = room.side[self.exit[self.escaped > 0]]
        return dict(zip(room.sides, np.bincount(by, minlength=len(room.sides)).tolist()))  # noqa: B905

    @property
    def exit_balance(self) -> float:
        """How evenly sides were used, from 0 (one alone) to 1; NaN if nobody got out."""
        return balance(np.array([*self.sides.values()]))

    @property
    def changes(self) -> float:
        """The share of decisions, after each one's first, that changed the side; NaN without."""
        changed = again = 0
        for chosen in self.choices:
            own = chosen[chosen >= 0]
            changed, again = changed + int((np.diff(own) != 0).sum()), again + max(len(own) - 1, 0)
        return changed / again if again else np.nan

    # -- curves ------------------------------------------------------------------------------------

    def curve(self, rounds: PerPlayer, who: Array | None = None) -> Array:
        """Return how many of some people had it happen by each round, int64 ``(max_rounds,)``."""
        of = rounds if who is None else rounds[who]
        counts = np.bincount(of[of > 0], minlength=self.game.max_rounds + 1)
        found: Array = counts.cumsum()[1:]
        return found

    @cached_property
    def escapes(self) -> Curves:
        """Curves of escapes: ``all``, by body, mind and group, by side, and by exit."""
        room, out = self.game.room, np.maximum(self.exit, 0)
        gone = self.exit >= 0
        sides = {name: gone & (room.side[out] == k) for k, name in enumerate(room.sides)}
        exits = {f"exit {k}": self.exit == k for k in range(len(room.exits))}
        return self._curves(self.escaped, self.classes | sides | exits)

    @cached_property
    def casualties(self) -> Curves:
        """Curves of casualties: ``all``, by body, mind and group."""
        return self._curves(self.lost, self.classes)

    @cached_property
    def classes(self) -> dict[str, Array]:
        """Who is of which body, mind and group, as the paper's curves part them, bool each."""
        body, mind = (self.group - 1) // 2, (self.group - 1) % 2
        found = {name: body == k for k, name in enumerate(BODIES)}
        found |= {name: mind == k for k, name in enumerate(MINDS)}
        return found | {f"{BODIES[g // 2]} & {MINDS[g % 2]}": self.group == g + 1 for g in range(4)}

    def _curves(self, rounds: PerPlayer, of: dict[str, Array]) -> Curves:
        return {"all": self.curve(rounds)} | {k: self.curve(rounds, who) for k, who in of.items()}


def balance(counts: Array) -> float:
    """Return the entropy of shares of these counts, as a part of the most there can be."""
    total = counts.sum()
    if not total or len(counts) < 2:
        return np.nan
    shares = counts[counts > 0] / total
    return float(max(-(shares * np.log(shares)).sum() / np.log(len(counts)), 0.0))


def evacuation(game: Any, steps: Steps) -> Evacuation:
    """Return what became of the crowd of one table, from its stacked records."""
    asked = (steps["phase"] == TARGET) & (steps["actions"] >= 0)
    room = game.room
    sides = np.where(asked, room.side[np.maximum(steps["aim"], 0)], -1)
    return Evacuation(
        game,
        **{name: steps[name].max(axis=-1) for name in ("escaped", "exit", "lost", "group")},
        overtaken=steps["overtaken"].sum(axis=-1),
        choices=sides,
    )


def bounds(game: Any, steps: Steps) -> dict[str, int]:
    """Return the fewest rounds in which all could be out from where they began.

    ``matching``: if nobody stood in another's way; ``flow``: one in each cell at a time.
    """
    from llm_games.baselines.games.emergency_evacuation.queues import fewest_by_flow, fewest_rounds

    start = steps["cell"][:, 0]
    cells = start[start > 0]
    return {"matching": fewest_rounds(game.room, cells), "flow": fewest_by_flow(game.room, cells)}


def regrets(game: Any, steps: Steps) -> Array:
    """Return what each would have gained at its choices by another exit, mean of its choices."""
    found = theory.deviation(game, steps)[0]
    asked = (steps["phase"] == TARGET) & (steps["actions"] >= 0)
    return found.sum(axis=-1) / np.maximum(asked.sum(axis=-1), 1)
