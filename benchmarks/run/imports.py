"""Recordings of others' programs as runs of ours: moves as recorded, chance as it was.

The games are played anew by the rules, each seat doing what is recorded of it. Words are left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from llm_games.benchmarks.record.schema import NoteRow
from llm_games.benchmarks.record.store import Store
from llm_games.benchmarks.run.conduct import rows_of, start, void_reason
from llm_games.benchmarks.run.plan import PlannedGame, PlannedSeat, RunPlan
from llm_games.errors import LLMGamesError
from llm_games.registry import rulebook
from llm_games.wrappers.imported import BadRecording, ImportedPolicy
from llm_games.wrappers.play import play_table
from llm_games.wrappers.seats import Episode, Step
from llm_games.wrappers.together import run_sync

CENT = 0.005  # by how much payoffs of a file may be off: they are often rounded


@dataclass(frozen=True)
class Recording:
    """One game of others: who sat where, what each did in order, and what chance decided.

    `given` is chance as of `Rulebook.reset`; `shared` names chance that other recordings may have
    met as well, None if nobody else met it. `words` were written beside the moves; `payoffs` are
    those of the file. `check` says what of the file contradicts the record of the game played
    again, "" if nothing does.
    """

    path: Path
    game: str
    params: Mapping[str, Any]
    players: Sequence[str]
    moves: Sequence[Sequence[Any]]
    given: Mapping[str, Any] = field(default_factory=dict)
    shared: Any = None
    words: Sequence[Sequence[str]] | None = None
    payoffs: Sequence[float] | None = None
    check: Callable[[Sequence[Mapping[str, Any]]], str] = lambda records: ""

    @property
    def kind(self) -> str:
        """Equal for recordings that are episodes of one game."""
        return json.dumps([self.game, self.params, self.players], sort_keys=True)


def read_json(path: Path) -> dict[str, Any]:
    """Read a file that holds a JSON object; BadRecording: it holds none."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadRecording(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        way = "it may be half a file: take it from its source again, or leave it out"
        raise BadRecording(f"{path} is no JSON ({error}); {way}") from None
    if not isinstance(data, dict):
        raise BadRecording(f"{path} holds no JSON object, as recordings do; leave it out")
    return data


def write_run(recordings: Sequence[Recording], path: Path, title: str) -> int:
    """Write recordings as a new run; return the number of its episodes.

    All are played before anything is written. Raises BadRecording, RunExists.
    """
    seeds: Counter[str] = Counter()
    by_kind: dict[str, list[tuple[Recording, int, Episode, list[Step]]]] = {}
    for recording in recordings:
        chance = json.dumps([recording.game, recording.shared], sort_keys=True)
        identity = recording.path.read_bytes() if recording.shared is None else chance.encode()
        digest = sha256(identity).hexdigest()
        number = seeds[digest]
        seeds[digest] += 1
        seed = int(sha256(f"{digest}/{number}".encode()).hexdigest()[:15], 16)
        by_kind.setdefault(recording.kind, []).append((recording, seed, *_played(recording, seed)))
    labels: Counter[str] = Counter()
    games = []
    for group in by_kind.values():
        game = group[0][0].game
        labels[game] += 1
        label = game if labels[game] == 1 else f"{game} {labels[game]}"
        games.append(_planned(label, [row[0] for row in group], [row[1] for row in group]))
    plan = RunPlan(title=title, seed=0, max_tables=1, scoring="published", games=games)
    with closing(start(plan, path)) as store:
        rows = {(row.game.label, row.number): row.id for row in store.episodes()}
        for planned, group in zip(games, by_kind.values(), strict=True):
            for number, (_, _, episode, steps) in enumerate(group):
                _write(store, rows[planned.label, number], steps, void_reason(episode, planned))
    return len(recordings)


def _played(recording: Recording, seed: int) -> tuple[Episode, list[Step]]:
    words = recording.words or [()] * len(recording.players)
    seats = zip(recording.players, recording.moves, words, strict=True)
    policies = [ImportedPolicy(*seat) for seat in seats]
    steps: list[Step] = []

    async def keep(step: Step) -> None:
        steps.append(step)

    try:
        rules = rulebook(recording.game, **recording.params)
        fixed_chance = recording.given or None
        episode = run_sync(play_table(rules, policies, seed, on_step=keep, given=fixed_chance))
    except LLMGamesError as error:
        raise BadRecording(f"{recording.path}: {error}; leave the file out") from None
    moves_by_seat = Counter(seat for step in steps for seat in step.decisions)
    for seat, moves in enumerate(recording.moves):
        if moves_by_seat[seat] != len(moves):
            raise BadRecording(
                f"{recording.path}: player_{seat} has {len(moves)} moves, but the game is over "
                f"after {moves_by_seat[seat]}: its rounds do not belong together; leave it out"
            )
    if recording.payoffs is not None:
        for seat, payoff in enumerate(recording.payoffs):
            if abs(payoff - episode.payoffs[seat]) > CENT:
                raise BadRecording(
                    f"{recording.path}: player_{seat} is paid {episode.payoffs[seat]:g} by the "
                    f"rules, {payoff:g} by the file: give the params that it was played by"
                )
    if why := recording.check([step.outcome.record for step in steps]):
        raise BadRecording(f"{recording.path}: {why}; leave the file out")
    return episode, steps


def _planned(label: str, recordings: Sequence[Recording], seeds: Sequence[int]) -> PlannedGame:
    first = recordings[0]
    seats = [
        PlannedSeat(player=f"imported:{name}", name=name, client={}, settings={})
        for name in first.players
    ]
    return PlannedGame(
        label=label,
        game=first.game,
        params=dict(first.params),
        seats=seats,
        seeds=list(seeds),
        max_steps=None,
        given_each=[dict(recording.given) for recording in recordings],
        sources=[recording.path.name for recording in recordings],
        ignored="",
    )


def _write(store: Store, episode: int, steps: Sequence[Step], reason: str | None) -> None:
    with store.whole():
        store.begin(episode)
        for step in steps:
            row, decisions = rows_of(step)
            notes = [
                NoteRow(step.number, seat, number, note.kind, note.content)
                for seat, decision in step.decisions.items()
                for number, note in enumerate(decision.notes)
            ]
            for part in (row.thin(), *decisions, *notes):
                store.add(part, episode)
        store.end(episode, reason)
