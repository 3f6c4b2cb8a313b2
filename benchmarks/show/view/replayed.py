"""An episode as its pages show it: read once, its moves played again, nothing left open."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from threading import Lock
from typing import Any, cast

import numpy as np

from llm_games import game_rooms as rooms
from llm_games.baselines.regret import deviation, has_deviation, stacked
from llm_games.benchmarks.judge.talk_measures import Message, TalkRound, turns
from llm_games.benchmarks.record.connection import NotARun
from llm_games.benchmarks.record.editions import UNNAMED, maker
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import EpisodeCache, RecordedEpisode
from llm_games.benchmarks.record.schema import (
    AttemptRow,
    DecisionRow,
    EpisodeRow,
    NoteRow,
    move_of,
)
from llm_games.benchmarks.show.export.animation import shown
from llm_games.charts import seat_chart
from llm_games.errors import BadParameter, LLMGamesError
from llm_games.pictures import MOST_DRAWN, Drawing
from llm_games.rulebook import Array
from llm_games.table import Table

EPISODES_KEPT, MOST_KEPT = 6, 1_000_000
"""Episodes that are kept once they were read, and how many steps times seats one has at most."""
MOST_JUDGED = 100_000
"""Steps times seats up to which all moves of an episode are judged for its sums."""
_cached: dict[Any, ReplayedEpisode] = {}
_lock = Lock()
At = tuple[int, int]
"""A decision of an episode: step and seat."""


class NoSuchPage(NotARun):
    """The run has no such episode or decision."""


class _InMemory(RecordedEpisode):
    """An episode whose decisions are held without its file."""

    decision_rows: Sequence[DecisionRow] = ()

    def decisions(self) -> list[DecisionRow]:
        return list(self.decision_rows)


@dataclass
class ReplayedEpisode:
    """One episode by today's rules; `why` it cannot be played again, and has no regret."""

    episode: RecordedEpisode
    decisions: dict[At, DecisionRow]
    attempts: dict[At, list[AttemptRow]]
    notes: dict[At, list[NoteRow]]
    siblings: list[int]
    turns: list[TalkRound] = field(default_factory=list)
    why: str = ""

    @property
    def row(self) -> EpisodeRow:
        return self.episode.row

    @cached_property
    def names(self) -> list[str]:
        return list(self.episode.rules.names())

    @property
    def judged(self) -> bool:
        """Whether theory defines the regret of moves here."""
        steps = self.episode.steps
        return not self.why and bool(steps) and has_deviation(self.row.game.game)

    @cached_property
    def regret(self) -> Array | None:
        """Sum of each seat's regret ``(players,)``; None if unknown, or too long."""
        size = len(self.episode.steps) * len(self.names)
        if not self.judged or size > MOST_JUDGED:
            return None
        regrets = self.episode.regret()
        for column, step in enumerate(self.episode.steps):
            self._lost[step.step] = regrets[:, column]
        return None if np.isnan(regrets).all() else np.nansum(regrets, axis=1)

    def regret_of(self, step: int, seat: int) -> float | None:
        """None where it is not defined or was no move of the game."""
        if step not in self._lost:
            self.judge([step])
        lost = float(self._lost[step][seat])
        return lost if isfinite(lost) else None

    def judge(self, steps: Collection[int]) -> None:
        wanted = {*steps} - self._lost.keys()
        mine = [row for row in self.episode.steps if row.step in wanted]
        if self.judged and mine:
            with suppress(BadParameter):  # too large to be solved
                records = stacked([row.record for row in mine])
                regrets = deviation(self.episode.rules, records).regret
                self._lost.update({row.step: regrets[:, column] for column, row in enumerate(mine)})
        for step in wanted:  # of talk, or where none is defined
            self._lost.setdefault(step, np.full(len(self.names), np.nan))

    @cached_property
    def _lost(self) -> dict[int, Array]:
        return {}

    @cached_property
    def scenes(self) -> list[tuple[Any, str]]:
        """States with captions, at the start and after each round; [] where too many sit."""
        full, steps = self.row.rules(), self.episode.every_step
        if self.why or not steps or full.players > MOST_DRAWN:
            return []
        states = (full.inside(state) for state, _ in shown(self.episode))
        return [(state, full.core.picture(state)[0]) for state in states]

    def picture(self, number: int) -> Drawing:
        """Drawn by the game's room, else as the chart of all games."""
        rules, (state, title) = self.row.rules().core, self.scenes[number]
        if room := rooms.drawing(rules.name):
            return cast(Drawing, room.draw(rules, state, title))
        return seat_chart(*rules.picture(state))

    @cached_property
    def states(self) -> dict[int, tuple[Any, Any]]:
        """By step the state before a move and the one after it; {} if it cannot be played again."""
        table, states = Table(self.episode.rules), dict[int, tuple[Any, Any]]()
        table.reset(self.row.seed, self.episode.given)
        for turn in [] if self.why else self.turns:
            previous_state = table.state
            table.step({seat: move_of(action) for seat, action in turn.moves.items()})
            states[turn.steps[1]] = previous_state, table.state
        return states

    def sold(self, step: int) -> list[str]:
        """What was sold in a step, in words."""
        return self.episode.rules.sold(*self.states[step]) if step in self.states else []

    def turn_of(self, step: int) -> TalkRound | None:
        """The turn whose move was made in a step."""
        return next((turn for turn in self.turns if turn.steps[1] == step), None)

    def round_of(self, step: int) -> int:
        """Round of a step, from 1; of those after the end the last."""
        later = (turn.round for turn in self.turns if step <= turn.steps[1])
        return next(later, self.turns[-1].round if self.turns else 1)


def read(records: Records, number: int) -> ReplayedEpisode:
    """Read an episode and play it again by today's rules; ended ones are cached. NoSuchPage."""
    if not (rows := records.episodes([number])):
        count = len(records.episodes())
        raise NoSuchPage(f"{records.path.name} has no episode {number}: it has 1 to {count}")
    [row] = rows
    siblings = records.episode_ids(row.game.id)
    key = (records.path.absolute(), records.created, number, row.ended, len(siblings))
    with _lock:
        if row.ended and (cached := _cached.pop(key, None)):
            _cached[key] = cached
            return cached
    replayed = _read(_InMemory(EpisodeCache(records), row), siblings)
    if row.ended and len(replayed.episode.every_step) * len(replayed.names) <= MOST_KEPT:
        with _lock:
            _cached[key] = replayed
            for old in list(_cached)[:-EPISODES_KEPT]:
                del _cached[old]
    return replayed


def _read(episode: _InMemory, siblings: list[int]) -> ReplayedEpisode:
    episode.decision_rows = episode.file.decisions(episode.row.id)
    decisions = {(row.step, row.seat): row for row in episode.decisions()}
    attempts: dict[At, list[AttemptRow]] = {}
    notes: dict[At, list[NoteRow]] = {}
    for attempt in episode.attempts():
        attempts.setdefault((attempt.step, attempt.seat), []).append(attempt)
    for note in episode.notes():
        notes.setdefault((note.step, note.seat), []).append(note)
    replayed = ReplayedEpisode(episode, decisions, attempts, notes, siblings)
    replayed.why = _changed(episode)
    try:
        replayed.turns = [] if replayed.why else list(turns(episode))
    except LLMGamesError as error:
        replayed.why = f"the recorded moves are not moves of today's rules: {error}"
    if replayed.why:
        replayed.turns = list(_as_recorded(replayed))
    return replayed


def _changed(episode: RecordedEpisode) -> str:
    """Why an episode cannot be played again by today's rules; "" if it can."""
    old, new = (episode.row.edition or UNNAMED)["rules"], episode.rules.edition
    if old == new:
        return ""
    return (
        f"it was played by edition {old} of the rules of {episode.row.game.game}, which are now "
        f"edition {new}: moves are shown as they were recorded, without regret and pictures; the "
        f"one that plays it again is {maker(episode.file.package)}"
    )


def _as_recorded(replayed: ReplayedEpisode) -> Iterator[TalkRound]:
    """Moves with the talk before each, without playing them; steps count as rounds."""
    talk: list[Message] = []
    number = 1
    for step in replayed.episode.every_step:
        if step.talk:
            turn, contents, hearers = (step.record[key] for key in ("turn", "actions", "hearers"))
            talk += [
                Message(step.step, number, turn, seat, contents[seat], (*hearers[seat],))
                for seat in step.asked
            ]
            continue
        decided = {seat: replayed.decisions.get((step.step, seat)) for seat in step.asked}
        yield TalkRound(
            round=number,
            steps=(talk[0].step if talk else step.step, step.step),
            talk=talk,
            moves={seat: row.action for seat, row in decided.items() if row},
            questions={},
            record=step.record,
            spoken={},
            heard={},
        )
        talk, number = [], number + 1
