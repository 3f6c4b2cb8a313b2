"""A run as JSON lines, one for each move, to be played through other rules and compared.

A line has ``game``, ``label``, ``episode``, ``seed``, ``round`` (from 1) and ``step`` (from 0);
``actions`` by seat, as decided (what nobody decided is not there); ``said`` before this move, each
with ``turn``, ``seat``, ``text`` and ``hearers``; ``heard`` by seat, what it was shown when it
decided: round, turn and speaker of each message in the order of the list; and ``record``, all that
the game notes down of the step, such as positions, targets and injuries.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from llm_games.benchmarks.judge.talk_measures import turns
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, games
from llm_games.benchmarks.record.schema import TALK, DecisionRow, StepRow, move_of
from llm_games.benchmarks.show.export.table_files import replacing
from llm_games.table import Table
from llm_games.talk import Talking

Heard = dict[int, list[list[int]]]


def export_trace(records: Records, folder: Path) -> dict[Path, int]:
    """Replace ``trace.jsonl``; lines by path. Raises Unwritable."""
    path, count = folder / "trace.jsonl", 0
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        for line in lines(records):
            file.write(json.dumps(line) + "\n")
            count += 1
    return {path: count}


def lines(records: Records) -> Iterator[dict[str, Any]]:
    for game in games(records):
        for episode in game.played:
            row = episode.row
            about = {"game": game.name, "label": game.label, "episode": row.number}
            for turn, shown in zip(turns(episode), _shown_messages(episode), strict=True):
                messages = [
                    {"turn": m.turn, "seat": m.seat, "text": m.content, "hearers": list(m.hearers)}
                    for m in turn.talk
                ]
                position = {"seed": row.seed, "round": turn.round, "step": turn.steps[1]}
                done = {"actions": turn.moves, "said": messages, "heard": shown}
                yield about | position | done | {"record": dict(turn.record)}


class ReplayedStep(NamedTuple):
    """A recorded step that is played again: states before and after, and its moves by seat."""

    previous_state: Any
    row: StepRow
    moves: dict[int, Any]
    next_state: Any
    record: Mapping[str, Any]


def moves_by_step(decisions: Iterable[DecisionRow]) -> dict[int, dict[int, Any]]:
    """Moves of an episode by step and seat."""
    moves: dict[int, dict[int, Any]] = {}
    for decision in decisions:
        moves.setdefault(decision.step, {})[decision.seat] = move_of(decision.action)
    return moves


def played_again(episode: RecordedEpisode) -> Iterator[ReplayedStep]:
    """Play the recorded moves of an episode again, with its talk, by `EpisodeRow.rules`."""
    decisions, table = episode.decisions(), Table(episode.row.rules())
    decided = moves_by_step(decisions)
    spoke = {decision.seat for decision in decisions if decision.phase == TALK}
    table.reset(episode.row.seed, episode.row.given)
    table.hush([seat for seat in range(table.game.players) if seat not in spoke])
    for row in episode.every_step:
        previous_state, moves = table.state, decided.get(row.step, {})
        record = table.step(moves).record
        yield ReplayedStep(previous_state, row, moves, table.state, record)


def _shown_messages(episode: RecordedEpisode) -> Iterator[Heard]:
    """For each move, the messages that its deciders were shown."""
    rules = episode.row.rules()
    if not isinstance(rules, Talking):
        yield from ({} for _ in episode.every_step)
        return
    for step in played_again(episode):
        if not step.row.talk:
            yield {
                seat: [[m.round, m.turn, m.seat] for m in rules.heard(step.previous_state, seat)]
                for seat in step.moves
            }
