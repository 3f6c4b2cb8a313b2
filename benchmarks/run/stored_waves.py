"""Batches in a run's file: each is there before it is sent, and each line until it is booked."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from llm_games.benchmarks.record import schema
from llm_games.benchmarks.record.store import Store
from llm_games.wrappers.clients.waves import Line, Wave


def line_number(line: str) -> int:
    """Return the number of a line, which is always the same, among the calls of `FlightRow`."""
    return -int.from_bytes(sha256(line.encode()).digest()[:7], "big") - 1


class StoredWaves:
    """The batches of one model at one server."""

    def __init__(self, store: Store, model: str, server: str) -> None:
        self.title, self._store, self._of = store.title, store, (model, server)
        self._rows = [row for row in store.waves() if (row.model, row.server) == self._of]

    def waves(self) -> list[Wave]:
        """Return those with lines whose answers are not booked."""
        waves: dict[str, Wave] = {}
        for row in self._rows:
            began = datetime.fromisoformat(row.began).timestamp()
            waves[row.name] = Wave(row.name, {}, began, row.batch, on_record=True)
        for line in self._store.lines():
            if line.wave in waves:
                waves[line.wave].lines[line.name] = Line(line.name, line.digest)
        return [wave for wave in waves.values() if wave.lines]

    def refused(self) -> set[str]:
        """Return the options that clients had learned to leave out."""
        return {option for row in self._rows for option in row.refused}

    async def enter(self, wave: Wave) -> None:
        """Enter a wave and its lines, and wait until that is safe."""
        self._enter(wave)
        for line in wave.lines.values():
            row = schema.LineRow(line_number(line.name), line.name, wave.name, line.digest)
            self._store.add(row, again=True)
        await self._store.durable()

    async def note_batch(self, wave: Wave) -> None:
        """Enter a wave's id at the provider, and wait until that is safe."""
        self._enter(wave)
        await self._store.durable()

    def _enter(self, wave: Wave) -> None:
        refused = sorted({option for line in wave.lines.values() for option in line.refused})
        refused += [option for row in self._rows if row.name == wave.name for option in row.refused]
        began = datetime.fromtimestamp(wave.began, UTC).isoformat(timespec="milliseconds")
        about: Any = (wave.batch, len(wave.lines), began, refused)
        self._store.add(schema.WaveRow(wave.name, *self._of, *about), again=True)
