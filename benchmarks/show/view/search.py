"""Full-text search of what models said and thought: an index in the user's cache folder.

What is not in it, and what words do not tell (signs, scripts without spaces), is looked for in the
run's file, which takes a second for a million replies.
"""

from __future__ import annotations

import json
import math
import re
import sqlite3
import time
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from zlib import crc32

import numpy as np

from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.show.view.reading import key_of
from llm_games.rulebook import Array

FORM = 1  # of the index; one of another form, or of another run, is made anew
ABREAST, DEEP = 64, 256  # episodes and steps that are indexed at a time
SETTINGS = "journal_mode = WAL", "synchronous = NORMAL"
KEPT = 8  # answers that are kept
FEW, MOMENT = 16, 0.15  # episodes that are scanned first, and seconds for what is not indexed
BEGUN = "the text is still being indexed: {} of {} episodes have been searched"
_TERMS = re.compile(r'"([^"]+)"?|([^\s"]+)')


class Search:
    """The replies of a run and an index, which one thread may `fill`; `broken`: why without."""

    def __init__(self, run: Path, index: Path | None) -> None:
        self.run, self.index = run, index
        self.ready, self.broken = False, ""
        self._next_steps: dict[int, int] | None = None  # the next step to index, by episode
        self._answers: dict[str, Array] = {}

    def find(self, text: str, upto: Mapping[int, int]) -> tuple[Array, str]:
        """Sorted keys of decisions that hold all terms, up to these steps; raises StoreError."""
        indexed = dict(self._next_steps or {})  # before it is asked: another thread may fill it
        due = {e: indexed.get(e, 0) for e, step in upto.items() if indexed.get(e, 0) < step}
        if not due and text in (answers := self._answers):
            return answers[text], ""
        wanted, note, keys = terms(text), self.broken, np.zeros(0, np.int64)
        if wanted and not note and not any(map(_needs_scan, wanted)):
            try:
                keys = self._indexed(wanted) if indexed else keys
            except sqlite3.DatabaseError as error:
                self.ready, self._next_steps = False, None
                self.broken = f"the index of the text is damaged: {error}"
                return self.find(text, upto)
            scanned, remaining = self._scanned(wanted, due, MOMENT)
            note = BEGUN.format(len(upto) - remaining, len(upto)) if remaining else ""
            keys = _together([keys, scanned]) if len(scanned) else keys
        elif wanted:
            keys, _ = self._scanned(wanted, dict.fromkeys(upto, 0))
        if not note and not due:
            self._answers = dict([*self._answers.items()][1 - KEPT :]) | {text: keys}
        return keys, note

    def _scanned(
        self, wanted: list[str], first: Mapping[int, int], seconds: float = math.inf
    ) -> tuple[Array, int]:
        """Search episodes from these steps on, for about so long; keys and episodes left."""
        keys = [np.zeros(0, np.int64)]
        began, start, few, order = time.monotonic(), 0, FEW, sorted(first)
        if order:
            with Records.open_readonly(self.run) as records:
                while start < len(order) and (took := time.monotonic() - began) < seconds:
                    batch = {episode: first[episode] for episode in order[start : start + few]}
                    keys.append(key_of(*np.array(records.places_saying(wanted, batch), np.int64)))
                    start, few = start + few, few * (1 + (took < seconds / 8))
        return _together(keys), max(len(order) - start, 0)  # of several completions

    def fill(self, upto: Mapping[int, int], seconds: float) -> bool:
        """Index episodes up to these steps, for about so long; True: all are indexed."""
        if self.index is None or self.broken or (self.ready and not self._due(upto)):
            return True
        until = time.monotonic() + seconds
        try:
            with Records.open_readonly(self.run) as records, self._opened(records) as index:
                if self._next_steps is None:
                    self._next_steps = dict(index.execute("SELECT episode, step FROM indexed"))
                self._fill_until(records, index, upto, until)
                self.ready |= not self._due(upto)
        except sqlite3.DatabaseError as error:
            self._failed(error)
        except OSError as error:
            self.broken = _without(error.strerror or str(error))
        return self.broken != "" or not self._due(upto)

    def _due(self, upto: Mapping[int, int]) -> list[int]:
        had = self._next_steps or {}
        return sorted(episode for episode, step in upto.items() if had.get(episode, 0) < step)

    def _fill_until(
        self, records: Records, index: sqlite3.Connection, upto: Mapping[int, int], until: float
    ) -> None:
        assert self._next_steps is not None
        while time.monotonic() < until and (due := self._due(upto)):
            first = {episode: self._next_steps.get(episode, 0) for episode in due[:ABREAST]}
            texts_by_key: dict[int, list[str]] = {}
            for *address, text, thoughts in records.replies_since(first, DEEP):
                if address[1] < upto[address[0]]:
                    texts_by_key.setdefault(key_of(*address), []).append(f"{text}\n{thoughts}")
            next_steps = {e: min(step + DEEP, upto[e]) for e, step in first.items()}
            index.execute("BEGIN IMMEDIATE")
            texts = sorted((key, "\n".join(parts)) for key, parts in texts_by_key.items())
            index.executemany("INSERT INTO texts(rowid, said) VALUES (?, ?)", texts)
            index.executemany("INSERT OR REPLACE INTO indexed VALUES (?, ?)", next_steps.items())
            index.execute("COMMIT")
            self._next_steps.update(next_steps)
            self._answers = {}

    @contextmanager
    def _opened(self, records: Records) -> Iterator[sqlite3.Connection]:
        """Open the index; one of another form or another run, or half made, is made anew."""
        form = crc32(repr((FORM, records.title, records.created)).encode()) >> 1 | 1
        assert self.index is not None
        self.index.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.index, timeout=5, isolation_level=None)) as index:
            for setting in SETTINGS:
                index.execute(f"PRAGMA {setting}")
            if index.execute("PRAGMA user_version").fetchone()[0] != form:
                index.executescript(_NEW.format(form))
                self._next_steps = None
            yield index

    def _failed(self, error: sqlite3.DatabaseError) -> None:
        """Say what is wrong; nothing is left of the index. A damaged one is made anew."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        if code == sqlite3.SQLITE_BUSY:  # another viewer fills it
            return
        self.ready, self._next_steps = False, None
        if code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            self.broken = _without(str(error))
        assert self.index is not None
        with suppress(OSError):
            for tail in ("", "-wal", "-shm"):
                Path(f"{self.index}{tail}").unlink(missing_ok=True)

    def _indexed(self, wanted: list[str]) -> Array:
        query = " ".join('"{}"*'.format(term.replace('"', '""')) for term in wanted)
        with closing(sqlite3.connect(self.index or "", timeout=5, isolation_level=None)) as index:
            keys = "SELECT json_group_array(rowid) FROM texts WHERE texts MATCH ?"
            [rows] = index.execute(keys, (query,)).fetchone()  # in one row, as of the file
            return np.sort(np.array(json.loads(rows), np.int64))


_NEW = """
BEGIN IMMEDIATE;
DROP TABLE IF EXISTS texts;
DROP TABLE IF EXISTS indexed;
CREATE VIRTUAL TABLE texts USING fts5(said, content='', tokenize='unicode61 remove_diacritics 0');
CREATE TABLE indexed (episode INTEGER PRIMARY KEY, step INTEGER NOT NULL);
PRAGMA user_version = {};
COMMIT;
"""


def terms(text: str) -> list[str]:
    texts = (phrase or word for phrase, word in _TERMS.findall(text))
    return [term.strip() for term in texts if term.strip()]


def _together(keys: list[Array]) -> Array:
    """Sorted, each once; np.unique takes half a second for a million."""
    ordered = np.sort(np.concatenate(keys))
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def _needs_scan(term: str) -> bool:
    """No words for an index, or a script without spaces."""
    kinds = {unicodedata.category(c) for c in term}
    return "Lo" in kinds or not any(kind[0] in "LN" for kind in kinds)


def _without(why: str) -> str:
    return f"no index of the text can be kept ({why}): the file itself is searched"
