"""What is wrong with the contents of a run's file, looked for where reading it has failed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from llm_games.benchmarks.record.editions import UNNAMED
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.schema import EpisodeRow, Plain, StepRow
from llm_games.errors import LLMGamesError
from llm_games.rulebook import Rulebook


def damage(path: Path) -> LLMGamesError | None:
    """Return what a file holds that no run writes; None if nothing was found, or it is no run."""
    try:
        with Records.open_readonly(path) as records:
            if not _times(records.created):
                return records.damaged(f"{records.created[:60]!r} is no time")
            for row in records.episodes():
                if fault := _fault(records, row):
                    return records.damaged(f"{row.game.label}, episode {row.number}: {fault}")
    except LLMGamesError as error:
        return error
    except OSError:
        return None
    return None


def _fault(records: Records, row: EpisodeRow) -> str:
    if not _times(row.started, row.ended):
        return f"{str(row.started)[:60]!r} or {str(row.ended)[:60]!r} is no time"
    rules, steps = row.rules(), records.steps(row.id)
    if rules.players != len(row.seating):
        return f"{len(row.seating)} players sit at {rules.players} seats"
    like = _record(rules) if (row.edition or UNNAMED)["rules"] == rules.edition else None
    for step in steps:
        if fault := _step(step, rules.players, like):
            return f"step {step.step}: {fault}"
    records.notes(row.id)
    for attempt in records.attempts(row.id):
        records.messages(attempt.prompt)
        if not 0 <= attempt.seat < rules.players:
            return f"an attempt of seat {attempt.seat}"
    for decision in records.decisions(row.id):
        position = f"step {decision.step}, seat {decision.seat}"
        if not 0 <= decision.seat < rules.players or not 0 <= decision.step < len(steps):
            return f"a decision at {position}, where there is none"
        moves = decision.action if isinstance(decision.action, list) else [decision.action]
        kinds = str if decision.phase else int
        if not all(move is None or isinstance(move, kinds) for move in moves):
            return f"{position}: no move is {str(decision.action)[:60]!r}"
    return ""


def _times(*texts: str | None) -> bool:
    try:
        return all(text is None or datetime.fromisoformat(text) for text in texts)
    except (ValueError, OverflowError):
        return False


def _step(step: StepRow, players: int, like: Mapping[str, Any] | None) -> str:
    if len(step.rewards) != players:
        return f"{len(step.rewards)} payoffs of {players} seats"
    if not {*step.asked, *step.finished} <= {*range(players)}:
        return "seats that there are none of"
    if like is None or step.talk:
        return ""
    if missing := like.keys() - step.record.keys():
        return f"the record lacks {', '.join(sorted(missing))}"
    for name, value in like.items():
        try:
            same = np.ndim(step.record[name]) == np.ndim(value)
        except ValueError:
            same = False
        if not same or np.asarray(step.record[name]).dtype.kind not in "biuf":
            return f"{name} in the record is {str(step.record[name])[:60]!r}"
    return ""


def _record(rules: Rulebook) -> Plain:
    """Return the record of a first step, for its names and shapes."""
    core = rules.core
    state = core.reset(0)
    return {**core.step(state, core.legal(state)[0])[1].record}
