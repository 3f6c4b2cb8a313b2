"""What `resume` reads of a run: its plan, rows of unfinished episodes, and notes of a series."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from llm_games.benchmarks.record import schema
from llm_games.benchmarks.record.connection import NotARun
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.schema import AttemptRow, EpisodeRow, Plain
from llm_games.benchmarks.record.store import Store
from llm_games.benchmarks.run.plan import PlannedGame, RunPlan
from llm_games.wrappers.clients.base import ContextOverflow, Request
from llm_games.wrappers.policy import Note
from llm_games.wrappers.seats import DecisionPlace


def planned(run: Records) -> RunPlan:
    """The plan that a run was started with, without what older ones had beside it."""
    try:
        fields = RunPlan.model_fields.keys() & run.config.keys()
        return RunPlan.model_validate({key: run.config[key] for key in fields})
    except ValidationError as error:
        raise NotARun(f"{run.path}: its configuration cannot be read: {error}") from None


def prolong(path: str | Path, episodes: int) -> None:
    """Add episodes, so many of each game in all, to be resumed; raises ConfigError, StoreError."""
    with Records.open_readonly(path) as records:
        plan = planned(records).longer(episodes)
    with Store.open(path) as store:
        games = plan.games
        episodes_by_label = {
            g.label: [*zip(g.seeds, g.seatings(), g.disguises(), strict=True)] for g in games
        }
        store.prolong(plan.model_dump(), episodes_by_label)


class EpisodeRecord:
    """Recorded rows of one episode, by step and seat."""

    def __init__(self, records: Records, row: EpisodeRow) -> None:
        self.row, fresh = row, row.status == "pending"
        self.steps = [] if fresh else records.steps(row.id)
        decisions = [] if fresh else records.decisions(row.id)
        self.decisions = {DecisionPlace(row.step, row.seat): row for row in decisions}
        self.calls: dict[DecisionPlace, list[AttemptRow]] = {}
        for call in [] if fresh else records.attempts(row.id):
            self.calls.setdefault(DecisionPlace(call.step, call.seat), []).append(call)
        self._asked: Counter[DecisionPlace] = Counter()
        self.overflows: dict[DecisionPlace, list[Plain]] = {}
        for note in [] if fresh else records.notes(row.id):
            if note.kind == schema.OVERFLOW:
                overflows = self.overflows.setdefault(DecisionPlace(note.step, note.seat), [])
                overflows.append(note.content)
        self._overflowed: Counter[DecisionPlace] = Counter()  # overflows so far

    def count(self, request: Request) -> tuple[DecisionPlace, int]:
        """Where a completion is asked for, and how many were; ContextOverflow: as recorded."""
        slot = DecisionPlace(request.who.step, request.who.seat)
        overflows, number = self.overflows.get(slot, ()), self._overflowed[slot]
        if number < len(overflows) and overflows[number]["call"] == self._asked[slot]:
            self._overflowed[slot] += 1
            raise ContextOverflow(overflows[number]["said"])
        self._asked[slot] += 1
        return slot, self._asked[slot] - 1


def recalled(
    game: PlannedGame,
    run: Records,
    row: EpisodeRow,
    episodes: Mapping[tuple[int, int], EpisodeRow],
) -> dict[int, list[Note]] | None:
    """By seat, what its player noted in the episode before, wherever it sat; of all `episodes`.

    None: the game is no part of a series.
    """
    if game.branch is not None:
        return game.branch.notes()
    if not game.series:
        return None
    notes: dict[int, list[Note]] = {}
    if (previous := episodes.get((row.game.id, row.number - 1))) is not None:
        for note in run.notes(previous.id):
            seat = row.seating.index(previous.seating[note.seat])
            notes.setdefault(seat, []).append(Note(note.kind, note.content))
    return notes
