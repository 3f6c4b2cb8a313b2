"""Every decision of one run in columns, read while the file grows, filtered and sorted in memory.

NumPy filters, sorts and counts a million in tens of milliseconds. The file is opened anew for every
look, so that the run can leave one plain file behind when it ends.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from llm_games.benchmarks.record.connection import StoreError
from llm_games.benchmarks.record.labels import EPISODE, Labelled, Place
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.schema import EpisodeRow
from llm_games.benchmarks.show.view.filter import PHASES, ROWS, Filter
from llm_games.benchmarks.show.view.reading import (
    COLUMNS,
    Chunk,
    EpisodeProgress,
    IndexReading,
    key_of,
)
from llm_games.benchmarks.show.view.search import Search
from llm_games.rulebook import Array
from llm_games.version import __version__

FACETS = "game", "player", "seat", "outcome", "phase", "broke", "round"
LABEL = "label"
FIXED = {"phase": {phase: i for i, phase in enumerate(PHASES)}, "broke": {"no": 0, "yes": 1}}
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
        why = f"{path} {what} while it was open"
        super().__init__(f"{why}; what had been read of it is still listed")


class Facet(NamedTuple):
    """A value that a filter can have, and how many decisions fit it and all other fields."""

    value: Any
    count: int  # type: ignore[assignment]
    chosen: bool


class ListedDecision(NamedTuple):
    """A decision in a list; `number` is its episode's in the game, `text` how a reply begins."""

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
    """A page of a list: its rows, how many fit in all, and the `total` that has been read so far.

    `complete`: all that the file had at the last look, with regret, which the first `judged` have.
    `facets` are by field of the filter; `without` says why games, by label, have no regret.
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
        self.labels: Callable[[], Mapping[Place, Labelled]] = dict  # by decision, or episode
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
        """Read for about so long, regret last; the number of new decisions. Raises StoreError."""
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
            sizes = np.cumsum([len(chunk.columns["key"]) for _, chunk in self._due])
            due = self._due[: np.searchsorted(sizes, TOGETHER) + 1]
            starts, chunks = zip(*due, strict=True)
            for start, regret in zip(starts, self.reading.judge(records, chunks), strict=True):
                with self._lock:
                    self._arrays["regret"][start:][: len(regret)] = regret
            del self._due[: len(chunks)]
            yield

    def upto(self) -> dict[int, int]:
        """By episode the steps that have been read, with the one after its end."""
        progress, ended = [*self.reading.progress.items()], self.reading.ended
        return {episode: read.step + (episode in ended) for episode, read in progress}

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
            "names": {kind: reading.listed(kind) for kind in reading.codes},
            "ended": ended,
            "steps": [reading.progress[episode].step for episode in ended],
            "without": reading.without,
        }
        try:
            self.cache_file.parent.mkdir(parents=True, exist_ok=True)
            partial = self.cache_file.with_suffix(".part.npz")
            arrays: dict[str, Any] = {name: column[is_ended] for name, column in columns.items()}
            np.savez(partial, about=json.dumps(about), **arrays)
            partial.replace(self.cache_file)
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
            with self.cache_file.open("rb") as content, np.load(content) as file:
                columns = {name: file[name] for name in COLUMNS}
                about_it = json.loads(str(file["about"]))
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):  # half written, or damaged
            return
        rows = {row.id: row.status for row in records.episodes()}
        whole = all(rows.get(episode) in ("done", "void") for episode in about_it["ended"])
        if about_it["identity"] != self._identity or not whole:
            return
        ends = zip(about_it["ended"], about_it["steps"], strict=True)
        self.reading = IndexReading(
            codes={kind: {n: i for i, n in enumerate(v)} for kind, v in about_it["names"].items()},
            progress={episode: EpisodeProgress(step) for episode, step in ends},
            ended=set(about_it["ended"]),
            without=about_it["without"],
        )
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
        first, places = (wanted.page - 1) * ROWS, np.flatnonzero(whole)
        indices = _sorted(wanted.sort, columns, places, first + ROWS)
        facets = {name: self._facet(name, wanted, columns, fits, whole) for name in FACETS}
        others = _all((fit for name, fit in fits.items() if name != LABEL), columns)
        facets[LABEL] = [
            Facet(label, int((mask & others).sum()), label in wanted.label)
            for label, mask in self.label_masks(columns, wanted.label).items()
        ]
        return Page(
            filter=wanted,
            rows=self._filled([self._row(columns, i) for i in indices[first:]]),
            count=len(places),
            total=len(columns["key"]),
            judged=judged,
            complete=complete,
            facets=facets,
            without=dict(self.reading.without),
            note="; ".join(filter(None, (note, self.broken))),
        )

    def neighbours(
        self, wanted: Filter, key: int
    ) -> tuple[ListedDecision | None, ListedDecision | None]:
        """The decisions before and after one in a list; None at an end, or if it is not there."""
        columns = self.columns()
        fits, _ = self._fits(wanted, columns)
        places = np.flatnonzero(_all(fits.values(), columns))
        order = _sorted(wanted.sort, columns, places, len(places))
        positions = np.flatnonzero(columns["key"][order] == key)
        if not len(positions):
            return None, None
        previous, following = (
            self._row(columns, order[index]) if 0 <= index < len(order) else None
            for index in (positions[0] - 1, positions[0] + 1)
        )
        return previous, following

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
        return self._row(columns, indices[0]) if len(indices) else None

    def _fits(self, wanted: Filter, columns: dict[str, Array]) -> tuple[dict[str, Array], str]:
        """Bool masks by field of the filter that is not empty, and a note on the search."""
        masks: dict[str, Array] = {}
        for name in (*FACETS, "episode"):
            if values := getattr(wanted, name):
                codes = self._codes(name)
                wanted_codes = [codes.get(v, -1) for v in values] if codes else values
                masks[name] = np.isin(columns[name], wanted_codes)
        if wanted.label:
            by_label = self.label_masks(columns, wanted.label)
            masks[LABEL] = np.any([by_label[label] for label in wanted.label], axis=0)
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

    def label_masks(self, columns: dict[str, Array], asked: Sequence[str] = ()) -> dict[str, Array]:
        """By label, also of those asked for, which decisions have it, or their episodes do."""
        places: dict[str, list[Place]] = {label: [] for label in asked}
        for place, labelled in self.labels().items():
            for label in labelled.labels:
                places.setdefault(label, []).append(place)
        masks = {}
        for label, labelled_places in sorted(places.items()):
            keys = [key_of(*place) for place in labelled_places if place[1] != EPISODE]
            episodes = [place[0] for place in labelled_places if place[1] == EPISODE]
            in_episode = np.isin(columns["episode"], episodes)
            masks[label] = in_episode | np.isin(columns["key"], np.array(keys, np.int64))
        return masks

    def _facet(
        self, name: str, wanted: Filter, columns: dict[str, Array], fits: Any, whole: Array
    ) -> list[Facet]:
        if name in fits:
            whole = _all((fit for of, fit in fits.items() if of != name), columns)
        values = columns[name][whole]
        counts = np.bincount(values) if len(values) else np.zeros(0, np.int64)
        listed, chosen = [*self._codes(name)] or range(len(counts)), getattr(wanted, name)
        by_value = {v: int(n) for v, n in zip(listed, counts, strict=False) if n}
        by_value |= {value: 0 for value in chosen if value not in by_value}
        facets = [Facet(value, count, value in chosen) for value, count in by_value.items()]
        if len(facets) > TOO_MANY:
            facets = sorted(facets, key=lambda facet: (not facet.chosen, -facet.count))[:TOO_MANY]
        if name in ("player", "outcome"):
            facets.sort(key=lambda facet: -facet.count)
        return facets

    def _codes(self, name: str) -> Mapping[str, int]:
        """Codes of a column's words; {} of numbers."""
        return FIXED.get(name) or self.reading.codes.get(name, {})

    def _row(self, columns: dict[str, Array], index: int) -> ListedDecision:
        value = {name: column[index].item() for name, column in columns.items()}
        for name in ("game", "player", "outcome"):
            value[name] = self.reading.listed(name)[value[name]]
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
    return np.logical_and.reduce([np.ones(len(columns["key"]), np.bool_), *fits])


def _among(column: Array, keys: Array) -> Array:
    """Mask of a column's values that are among sorted keys."""
    if not len(keys):
        return np.zeros(len(column), np.bool_)
    return np.asarray(keys[np.searchsorted(keys[:-1], column)] == column)


def _sorted(sort: str, columns: dict[str, Array], places: Array, count: int) -> Array:
    """The first `count` of indices in the order of a column, ties as played, NaN at the end."""
    name = sort.removeprefix("-")
    keys = columns["key"][places]
    if name == "place":
        values = keys
    elif name == "tokens":
        values = columns["tokens_in"][places] + columns["tokens_out"][places].astype(np.float64)
    else:
        values = columns[name][places].astype(np.float64)
    values = -values if sort.startswith("-") else values
    if count < len(places):  # only the front is sorted
        front = _front(values, keys, count)
        places, values, keys = places[front], values[front], keys[front]
    return places[np.lexsort((keys, values))]


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
