"""Every decision of one run in columns, read while the file grows, filtered and sorted in memory.

NumPy beats every index here: a million decisions are filtered, sorted and counted in some tens of
milliseconds. The file is opened anew for every look and never kept open, so that the run does not
notice, and can leave one plain file behind when it ends.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from llm_games.benchmarks.record.database import StoreError
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.rows import EpisodeRow
from llm_games.benchmarks.show.view.filter import BROKE, PHASES, ROWS, Filter
from llm_games.benchmarks.show.view.reading import (
    COLUMNS,
    Chunk,
    EpisodeProgress,
    IndexReading,
    Names,
)
from llm_games.benchmarks.show.view.search import Search
from llm_games.rulebook import Array
from llm_games.version import __version__

FACETS = "game", "player", "seat", "outcome", "phase", "broke", "round"
TOO_MANY = 500
"""Values of a facet of which only the most frequent are listed."""
SHOWN = 300
"""Characters of a reply that stand in a list."""
ABREAST, DEEP = 16, 256
"""Episodes that are read at a time, more or fewer by how fast that is, and steps of each."""
TOGETHER = 20_000
"""Decisions whose regret is worked out at once."""
WORTH = 5000
"""Decisions that are worth keeping."""
FORM = 1  # of what is kept; another one is not read
SLICE = 0.1  # seconds of CPU time that one reading of the file should take


class Gone(StoreError):
    """A run's file was deleted, or another run is in its place."""

    def __init__(self, path: Path, what: str = "was replaced by another file") -> None:
        consequence = "what had been read of it is still listed"
        super().__init__(f"{path} {what} while it was open; {consequence}")


class Facet(NamedTuple):
    """A value that a filter can have, and how many decisions fit it and all other fields."""

    value: Any
    count: int  # type: ignore[assignment]
    chosen: bool


class ListedDecision(NamedTuple):
    """A decision in a list; `number` is the episode's within its game, `game` a label.

    `regret` is None where it is not defined; `calls` are completions, 0 without a model; `text` is
    how the last of them begins.
    """

    episode: int
    step: int
    seat: int
    game: str
    number: int
    round: int
    player: str
    phase: str
    outcome: str
    broke: bool
    payoff: float
    regret: float | None
    calls: int
    tokens_in: int
    tokens_out: int
    latency: float
    action: Any = None
    text: str = ""

    @property
    def address(self) -> str:
        return f"decision/{self.episode}/{self.step}/{self.seat}"


class Page(NamedTuple):
    """A page of a list: its rows, how many fit in all, and how many have been read so far.

    `complete`: all has been read that the file had at the last look, with its regret: `judged` of
    them have it. `facets` are by field of the filter; `without` says in which games, by label, no
    regret is known, and why. `note` is what else is to be said, such as how text was searched for.
    """

    filter: Filter
    rows: list[ListedDecision]
    count: int  # type: ignore[assignment]
    total: int
    judged: int
    complete: bool
    facets: dict[str, list[Facet]]
    without: dict[str, str]
    note: str = ""

    @property
    def pages(self) -> int:
        return max(1, -(-self.count // ROWS))


class Decisions:
    """The decisions of one run read so far; one thread calls `read`, others ask."""

    def __init__(
        self, path: Path, search: Search | None = None, cache_file: Path | None = None
    ) -> None:
        self.path, self.search, self.cache_file = path, search, cache_file
        self.reading, self.complete = IndexReading(), False
        self.numbers: dict[int, int] = {}  # of episodes, within their games
        self.broken = ""  # why nothing can be kept
        self._arrays = {name: np.zeros(0, kind) for name, kind in COLUMNS.items()}
        self._count, self._lock = 0, Lock()
        self._due: list[tuple[int, Chunk]] = []  # whose regret is not known yet, with their places
        self.created = ""  # when the run was created, "" if nothing was read yet
        self._pace, self._identity, self._stored = 1.0, "", 0

    def __len__(self) -> int:
        return self._count

    @property
    def judged(self) -> int:
        """Number of decisions whose regret is known, if it is defined: the first ones."""
        first = self._due[:1]  # of a list that another thread may empty
        return first[0][0] if first else self._count

    # -- reading -------------------------------------------------------------------------------

    def open(self) -> Records:
        """Open the file, to be closed soon; raises `Gone` if it holds another run than before."""
        records = Records.open_readonly(self.path)
        if self.created and records.created != self.created:
            records.close()
            raise Gone(self.path)
        return records

    def read(self, seconds: float = math.inf, judge: bool = True) -> int:
        """Read for about so long; the number of new decisions. Raises StoreError.

        Regret comes last, if at all: it takes longer, and what is read is listed without it.
        """
        previous_count, until = self._count, time.monotonic() + seconds
        with self.open() as records:
            if not self.created:
                self._take(records)
                self.created = records.created
            episodes = records.episodes()
            self.numbers = {row.id: row.number for row in episodes}
            ended = self.reading.ended
            due = [row for row in episodes if row.id not in ended and row.status != "pending"]
            steps = chain(self._chunks(records, due), self._judge(records) if judge else ())
            for _ in steps:
                if time.monotonic() > until:
                    break
            else:
                self.complete = not self._due
        return self._count - previous_count

    def _chunks(self, records: Records, due: list[EpisodeRow]) -> Iterator[None]:
        start = 0
        while start < len(due):
            began = time.thread_time()
            batch = due[start : start + max(1, int(ABREAST * self._pace))]
            chunk, is_unfinished = self.reading.chunk(records, batch, DEEP)
            if len(chunk.columns["key"]):
                self._due.append((self._count, chunk))
                self._add(chunk.columns)
                self.complete = False
            took = max(time.thread_time() - began, 1e-4)
            self._pace = min(max(self._pace * min(max(SLICE / took, 0.5), 2), 1 / ABREAST), 64)
            start += 0 if is_unfinished else len(batch)
            yield

    def _judge(self, records: Records) -> Iterator[None]:
        while self._due:
            starts, chunks, count = [], [], 0
            for start, chunk in self._due:
                starts.append(start)
                chunks.append(chunk)
                count += len(chunk.columns["key"])
                if count >= TOGETHER:
                    break
            for number, regret in self.reading.judge(records, chunks):
                with self._lock:
                    self._arrays["regret"][starts[number] :][: len(regret)] = regret
            del self._due[: len(chunks)]
            yield

    def upto(self) -> dict[int, int]:
        """By episode the steps that have been read, with the one after its end."""
        reading = self.reading
        return {
            e: progress.step + (e in reading.ended) for e, progress in [*reading.progress.items()]
        }

    # -- what is kept from one time to the next -------------------------------------------------

    def keep(self) -> None:
        """Write the episodes that have ended to the cache file; `broken` says why that failed."""
        columns, reading = self.columns(), self.reading
        if self.cache_file is None or self._due:
            return
        ended = sorted(reading.ended)
        is_ended = np.isin(columns["episode"], ended)
        about = {
            "identity": self._identity,
            "names": reading.names.lists,
            "ended": ended,
            "steps": [reading.progress[episode].step for episode in ended],
            "without": reading.without,
        }
        try:
            self.cache_file.parent.mkdir(parents=True, exist_ok=True)
            near = self.cache_file.with_suffix(".part.npz")
            arrays: dict[str, Any] = {name: column[is_ended] for name, column in columns.items()}
            np.savez(near, about=json.dumps(about), **arrays)
            near.replace(self.cache_file)
        except OSError as error:
            self.broken = f"nothing can be kept in {self.cache_file.parent} ({error.strerror}): "
            self.broken += "the run is read anew the next time"
        self._stored = len(columns["key"])

    @property
    def worth_keeping(self) -> bool:
        return not self.broken and self._count > WORTH + 1.2 * self._stored

    def _take(self, records: Records) -> None:
        """Read the file of this very run's decisions, if that is whole."""
        about = (records.title, records.created, records.package, __version__, FORM)
        self._identity = sha256(repr((*about, records.config)).encode()).hexdigest()
        if self.cache_file is None or not self.cache_file.exists():
            return
        try:
            with (
                self.cache_file.open("rb") as content,
                np.load(content, allow_pickle=False) as file,
            ):
                columns = {name: file[name] for name in COLUMNS}
                about_it = json.loads(str(file["about"]))
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):  # half written, or damaged
            return
        rows = {row.id: row.status for row in records.episodes()}
        whole = all(rows.get(episode) in ("done", "void") for episode in about_it["ended"])
        if about_it["identity"] != self._identity or not whole:
            return
        self.reading = IndexReading(Names(**about_it["names"]), without=about_it["without"])
        self.reading.ended = set(about_it["ended"])
        ends = zip(about_it["ended"], about_it["steps"], strict=True)
        self.reading.progress = {episode: EpisodeProgress(step) for episode, step in ends}
        self._add(columns)
        self._stored = self._count

    def _add(self, columns: dict[str, Array]) -> None:
        """Readers meanwhile see the columns as they were."""
        count = self._count + len(columns["key"])
        with self._lock:
            for name, values in columns.items():
                had = self._arrays[name]
                if count > len(had):
                    grown = np.zeros(max(count, 2 * len(had)), had.dtype)
                    grown[: self._count] = had[: self._count]
                    self._arrays[name] = had = grown
                had[self._count : count] = values
            self._count = count

    def columns(self) -> dict[str, Array]:
        """By name, of the decisions read so far; not to be written to."""
        with self._lock:
            return {name: values[: self._count] for name, values in self._arrays.items()}

    # -- asking --------------------------------------------------------------------------------

    def select(self, wanted: Filter) -> Page:
        """Return a page of the decisions that fit, and how many do by each value of each field."""
        complete, judged, columns = self.complete, self.judged, self.columns()
        fits, note = self._fits(wanted, columns)
        whole = _all(fits.values(), columns)
        indices = np.flatnonzero(whole)
        first = (wanted.page - 1) * ROWS
        chosen = _sorted(wanted.sort, columns, indices, first, first + ROWS)
        rows = [self._row(columns, int(index)) for index in chosen]
        facets = {name: self._facet(name, wanted, columns, fits, whole) for name in FACETS}
        without = dict(self.reading.without)
        total = len(columns["key"])
        note = "; ".join(filter(None, (note, self.broken)))
        about = (len(indices), total, judged, complete, facets, without, note)
        return Page(wanted, self._filled(rows), *about)

    def neighbours(
        self, wanted: Filter, key: int
    ) -> tuple[ListedDecision | None, ListedDecision | None]:
        """The decisions before and after one in a list; None at an end, or if it is not there."""
        columns = self.columns()
        fits, _ = self._fits(wanted, columns)
        indices = np.flatnonzero(_all(fits.values(), columns))
        order = _sorted(wanted.sort, columns, indices, 0, len(indices))
        positions = np.flatnonzero(columns["key"][order] == key)
        if not len(positions):
            return None, None
        position = int(positions[0])
        previous = self._row(columns, int(order[position - 1])) if position else None
        last = position + 1 == len(order)
        return previous, None if last else self._row(columns, int(order[position + 1]))

    def by_episode(self, size: int) -> tuple[Array, Array]:
        """Count decisions and average their regret, ``(size,)`` by episode; NaN for none."""
        columns = self.columns()
        inside = columns["episode"] < size
        episode, regret = columns["episode"][inside], columns["regret"][inside]
        defined = np.isfinite(regret)
        sums = np.bincount(episode[defined], regret[defined], minlength=size)
        with np.errstate(invalid="ignore"):
            means = sums / np.bincount(episode[defined], minlength=size)
        return np.bincount(episode, minlength=size), means

    def find(self, key: int) -> ListedDecision | None:
        """By `key_of` it; None if it has not been read."""
        columns = self.columns()
        indices = np.flatnonzero(columns["key"] == key)
        return self._row(columns, int(indices[0])) if len(indices) else None

    def _fits(self, wanted: Filter, columns: dict[str, Array]) -> tuple[dict[str, Array], str]:
        """Bool masks by field of the filter that is not empty, and a note on the search."""
        masks: dict[str, Array] = {}
        names = self.reading.names
        for name in ("game", "player", "outcome"):
            if texts := getattr(wanted, name):
                masks[name] = _any_of(columns[name], [names.find(name, text) for text in texts])
        for name in ("seat", "episode", "round"):
            if values := getattr(wanted, name):
                masks[name] = _any_of(columns[name], values)
        if wanted.phase:
            masks["phase"] = _any_of(columns["phase"], [PHASES.index(p) for p in wanted.phase])
        if wanted.broke:
            masks["broke"] = _any_of(columns["broke"], [b == "yes" for b in wanted.broke])
        if wanted.regret_min is not None:
            masks["regret_min"] = columns["regret"] >= wanted.regret_min
        if wanted.regret_max is not None:
            masks["regret_max"] = columns["regret"] <= wanted.regret_max
        if wanted.calls_min is not None:
            masks["calls_min"] = columns["calls"] >= wanted.calls_min
        note = ""
        if wanted.text and self.search is not None:
            keys, note = self.search.find(wanted.text, self.upto())
            masks["text"] = _among(columns["key"], keys)
        return masks, note

    def _facet(
        self, name: str, wanted: Filter, columns: dict[str, Array], fits: Any, whole: Array
    ) -> list[Facet]:
        if name in fits:
            whole = _all((fit for of, fit in fits.items() if of != name), columns)
        values = columns[name][whole]
        counts = np.bincount(values) if len(values) else np.zeros(0, np.int64)
        listed = self._values(name, len(counts))
        chosen = getattr(wanted, name)
        facets = [
            Facet(value, int(count), value in chosen)
            for value, count in zip(listed, counts, strict=False)
            if count
        ]
        listed_values = {facet.value for facet in facets}
        facets += [Facet(value, 0, True) for value in chosen if value not in listed_values]
        if len(facets) > TOO_MANY:
            facets = sorted(facets, key=lambda facet: (not facet.chosen, -facet.count))[:TOO_MANY]
        if name in ("player", "outcome"):
            facets.sort(key=lambda facet: -facet.count)
        return facets

    def _values(self, name: str, count: int) -> list[Any]:
        names = self.reading.names.lists.get(name)
        fixed: dict[str, list[Any]] = {"phase": [*PHASES], "broke": [*reversed(BROKE)]}
        return names if names is not None else fixed.get(name, list(range(count)))

    def _row(self, columns: dict[str, Array], index: int) -> ListedDecision:
        value = {name: column[index].item() for name, column in columns.items()}
        names = self.reading.names.lists
        for name in ("game", "player", "outcome"):
            value[name] = names[name][value[name]]
        value["phase"] = PHASES[value["phase"]]
        value["regret"] = None if math.isnan(value["regret"]) else value["regret"]
        value["number"] = self.numbers.get(value["episode"], -1)
        del value["key"]
        return ListedDecision(**value)

    def _filled(self, rows: list[ListedDecision]) -> list[ListedDecision]:
        try:
            with self.open() as records:
                glimpses = records.glimpses([row[:3] for row in rows], SHOWN)
        except StoreError:  # it is gone: what has been read is shown
            return rows
        return [row._replace(**glimpses.get(row[:3], {})) for row in rows]


def _all(fits: Iterable[Array], columns: dict[str, Array]) -> Array:
    mask = np.ones(len(columns["key"]), np.bool_)
    for fit in fits:
        mask &= fit
    return mask


def _among(column: Array, keys: Array) -> Array:
    """Mask of a column's values that are among sorted keys."""
    if not len(keys):
        return np.zeros(len(column), np.bool_)
    mask: Array = keys[np.searchsorted(keys[:-1], column)] == column
    return mask


def _any_of(column: Array, values: Any) -> Array:
    if len(values) == 1:
        return np.asarray(column == values[0])
    return np.isin(column, values)


def _sorted(sort: str, columns: dict[str, Array], places: Array, first: int, last: int) -> Array:
    """Part of the indices in the order of a column, ties as played, NaN at the end."""
    name, down = sort.removeprefix("-"), sort.startswith("-")
    keys = columns["key"][places]
    if name == "place":
        values = keys
    elif name == "tokens":
        values = columns["tokens_in"][places] + columns["tokens_out"][places].astype(np.float64)
    else:
        values = columns[name][places].astype(np.float64)
    values = -values if down else values
    if last < len(places):  # only the front is wanted
        front = _front(values, keys, last)
        places, values, keys = places[front], values[front], keys[front]
    order = np.lexsort((keys, values))
    return places[order[first:last]]


def _front(values: Array, keys: Array, count: int) -> Array:
    """Indices of the smallest values, in no order; ties go to small keys."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.inf, values)
    edge = np.partition(values, count - 1)[count - 1]
    below, ties = np.flatnonzero(values < edge), np.flatnonzero(values == edge)
    rest = count - len(below)
    if rest < len(ties):
        ties = ties[np.argpartition(keys[ties], rest - 1)[:rest]]
    return np.concatenate([below, ties])
