"""The player ``ghost:FILE#SEAT``: a recorded player in a seat, alone or in a batch of tables."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.move_chances import NoRule
from llm_games.baselines.rules import Kind
from llm_games.baselines.tree import Tree
from llm_games.benchmarks.ghosts.answer_classes import AnswerLimits
from llm_games.benchmarks.ghosts.fit import find
from llm_games.benchmarks.ghosts.ghost_model import Ghost, fit, is_fitted
from llm_games.benchmarks.ghosts.history import GhostMemory
from llm_games.errors import BadParameter
from llm_games.noise import Noise
from llm_games.questions import Shares
from llm_games.rulebook import Array, Rulebook
from llm_games.view import Sight, View
from llm_games.wrappers.policy import Decided, Decision, Policy


class GhostAddress(NamedTuple):
    """What ``FILE#SEAT`` or ``FILE#LABEL#SEAT`` names; the seat may lack where all are alike."""

    path: Path
    label: str = ""
    seat: int | None = None

    @classmethod
    def read(cls, value: str) -> GhostAddress:
        """NotAGhost: there is no such file."""
        path, _, rest = value.partition("#")
        label, _, seat = rest.rpartition("#")
        if not (seat.isascii() and seat.isdigit()):
            label, seat = rest, ""
        address = cls(Path(path), label, int(seat) if seat else None)
        is_fitted(address.path)
        return address

    @property
    def file(self) -> Path:
        """Where its ghost is saved if no file is named: one for each player of a run."""
        named = (self.label, "" if self.seat is None else str(self.seat))
        suffix = "" if is_fitted(self.path) else "".join(f"-{part}" for part in named if part)
        return self.path.with_name(f"{self.path.stem}{suffix}.ghost".replace("/", "-"))

    def ghost(self, game: Rulebook | None = None, judge: bool = False) -> Ghost:
        """Loaded, or fitted here and now; raises as `fit`."""
        if not is_fitted(self.path):
            return fit(find(self.path, game, self.seat, self.label), judge)
        ghost = Ghost.load(self.path)
        if self.seat is not None and self.seat not in ghost.seats:
            raise BadParameter(f"{self.path} is of a player at seat {ghost.seats}, not {self.seat}")
        return ghost


@lru_cache
def _fitted(name: GhostAddress, changed: int, size: int, game: Rulebook) -> Ghost:
    return name.ghost(game)


class GhostPolicy(Policy):
    """A player of a record, in games of the recorded rules; see `Ghost`."""

    def __init__(self, name: GhostAddress) -> None:
        self.named, self.ghosts = name, dict[Rulebook, Ghost]()
        label, seat = name.label and f"#{name.label}", "" if name.seat is None else f"#{name.seat}"
        self.name = f"ghost:{name.path}{label}{seat}"

    def ghost(self, game: Rulebook) -> Ghost:
        """Errors as of `GhostAddress.ghost`."""
        if game not in self.ghosts:
            stat = self.named.path.stat()
            self.ghosts[game] = _fitted(self.named, stat.st_mtime_ns, stat.st_size, game)
        return self.ghosts[game]

    def start(self, game: Rulebook, seat: int, seed: int) -> GhostMemory:
        self.ghost(game).check(game, seat)
        return GhostMemory.new(np.array([seed]))

    def act(self, view: View, memory: GhostMemory) -> tuple[Decision, GhostMemory]:
        ghost, cells = self.ghost(view.game), (np.array([view.seat]),)
        numbers, legal = view.sight.numbers[cells], None
        if isinstance(view.question, Shares):
            legal = ghost.answers.plans_for(view.question.ranks)[None]
            if not legal.any():  # no plan for so few was recorded: any is as likely
                noise = Noise(int(memory.seed[0])).of(int(memory.decided[0]))
                return Decision(view.question.sample(noise)), memory.after_observation(numbers)
        limits = AnswerLimits.of(view.sight, cells)
        actions, memory = ghost.decide(numbers, limits, memory, legal)
        action = int(actions[0])
        return Decision(ghost.answers.plan(action) if legal is not None else action), memory

    def start_batch(
        self, game: Rulebook, mask: Array, seeds: Array, memory: GhostMemory | None = None
    ) -> Any:
        """Memory ``(players, tables)``; of plans, by cells."""
        if game.division is not None:
            return super().start_batch(game, mask, seeds, memory)
        for seat in np.flatnonzero(mask.any(axis=1)).tolist():
            self.ghost(game).check(game, seat)
        new = GhostMemory.new(np.asarray(seeds))
        if memory is None:
            return new
        pairs = zip(memory, new, strict=True)
        return GhostMemory(*(np.where(mask, fresh, old) for old, fresh in pairs))

    async def decide_batch(self, sight: Sight, mask: Array, memory: Any) -> tuple[Decided, Any]:
        if sight.game.division is not None:
            return await super().decide_batch(sight, mask, memory)
        cells, actions = np.nonzero(mask), np.zeros(mask.shape, np.int64)
        numbers = sight.numbers[cells]
        actions[cells], next_memory = self.ghost(sight.game).decide(
            numbers, AnswerLimits.of(sight, cells), memory.take(cells)
        )
        return Decided(actions), memory.put(cells, next_memory)

    def strategy(self, tree: Tree, seat: int) -> Array:
        """Return how likely it makes each move of its seat in a tree, float64 ``(rows,)``, else 0.

        Raises NoRule: it makes plans, or answers that are no moves; BadParameter as `start`.
        """
        rows, ghost, strategy = tree.rows, self.ghost(tree.game), np.zeros(tree.count)
        ghost.check(tree.game, seat)
        if tree.game.division is not None:
            raise NoRule(f"{self.name} makes plans")
        # of each move; the last is before all
        memories = GhostMemory.new(np.zeros(tree.count + 1, np.int64))
        for sets, states in tree.sets:
            index = np.flatnonzero(rows.seat[sets] == seat)
            if not len(index):  # others move
                continue
            mine, cells = sets[index], (np.full(len(index), seat), index)
            limits, previous = AnswerLimits.of(Sight(tree.game, states), cells), rows.before[mine]
            memory = memories.take((previous,))
            actions, chances, memory = ghost.likely(rows.seen[mine], limits, memory)
            moves = np.flatnonzero(np.isin(tree.owner, mine))
            which, answers = np.searchsorted(mine, tree.owner[moves]), rows.moves[moves]
            strategy[moves] = (chances[which] * (actions[which] == answers)).sum(axis=1)
            if not np.isclose(strategy[moves].sum(), len(mine)):
                raise NoRule(f"{self.name} may answer what is no move of the tree")
            here = AnswerLimits(limits.low[which], limits.high[which], None)
            classes = ghost.answers.classes(answers[:, 0], here)
            memory = memory.take((which,)).answered(classes, answers[:, 0], ghost.answers)
            memories = memories.put((moves,), memory)
        return strategy


GHOST = Kind(
    "answers as a player of a recorded run, or as one fitted to it",
    value="<file>#<seat>",
    read=GhostAddress.read,
    made=GhostPolicy,
)
