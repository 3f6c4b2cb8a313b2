"""Run files on a shelf, each with an id that stays; folders are looked through at every look."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import NamedTuple
from zlib import crc32

from llm_games.benchmarks.record.connection import APPLICATION, NotARun, StoreError
from llm_games.benchmarks.record.labels import (
    Labelled,
    Place,
    labels_file,
    read_labels,
    write_label,
)
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.show.view.decision_index import Decisions, Gone, Page
from llm_games.benchmarks.show.view.filter import Filter
from llm_games.benchmarks.show.view.search import Search
from llm_games.benchmarks.show.view.texts import visible
from llm_games.files import cache_folder

ENDING = ".db"
ID = 8  # characters of an id
FIRST = 0.4  # seconds for which the first question waits for what there is to read
SLICE = 0.5  # seconds of reading or indexing between two looks at what else there is to do
INTERVAL = 0.5  # seconds between two looks at whether a file has grown
PATIENCE = 60.0  # seconds after the last question for which a file is followed


class NoSuchRun(NotARun):
    """The shelf has no run of this id."""


class Stamp(NamedTuple):
    """File identity, and size and time of it and its WAL: another one if the file has changed."""

    which: tuple[int, int]
    state: tuple[int, ...]

    @classmethod
    def of(cls, path: Path) -> Stamp | None:
        try:
            status = path.stat()
        except OSError:
            return None
        state = [status.st_size, status.st_mtime_ns]
        with suppress(OSError):  # nobody writes to it
            wal = Path(f"{path}-wal").stat()
            state += [wal.st_size, wal.st_mtime_ns]
        return cls((status.st_dev, status.st_ino), tuple(state))


class RunFile:
    """A run's file, read by a thread while somebody asks; `number` grows with all that is new.

    `id` is of the path, so that links outlive the viewer; `problem`: what is wrong now, or "".
    """

    def __init__(self, path: Path, folder: Path | None) -> None:
        self.path = path.absolute()
        self.id = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:ID]
        self.name = path.stem
        index, cache = (folder and folder / f"{self.id}.{ending}" for ending in ("fts", "npz"))
        self.decisions = Decisions(self.path, Search(self.path, index), cache)
        self.decisions.labels = self.labels
        self._labels: tuple[Stamp | None, dict[Place, Labelled]] = None, {}
        self.problem, self.number = "", int(1000 * time.time())
        self._stamp: Stamp | None = None
        self._asked, self._lock = 0.0, Lock()
        self._thread: Thread | None = None

    def records(self) -> Records:
        """Open the file, to be closed soon. Raises StoreError."""
        if gone := self._gone(Stamp.of(self.path)):
            raise gone
        return self.decisions.open()

    def labels(self) -> dict[Place, Labelled]:
        """What a person said of decisions and episodes; {} where that cannot be read."""
        stamp = Stamp.of(labels_file(self.path))
        if stamp != self._labels[0]:
            try:
                with self.records() as records:
                    read = read_labels(records)
                self._labels = stamp, {place: _visible(of) for place, of in read.items()}
            except StoreError as error:
                self._labels, self.problem = (stamp, {}), str(error)
        return self._labels[1]

    def label(self, place: Place, labels: str, note: str) -> None:
        """Put labels and a note on a decision or an episode; raises BadParameter, StoreError."""
        with self.records() as records:
            write_label(records, place, Labelled.of(labels, note))
        self.number += 1

    def changed(self) -> float:
        """When the file was written to last, in seconds of the clock; 0.0 if it has gone."""
        stamp = Stamp.of(self.path)
        return max(stamp.state[1::2]) / 1e9 if stamp else 0.0

    def why(self) -> str:
        try:
            self.records().close()
            return ""
        except StoreError as error:
            return str(error)

    def replaced(self) -> bool:
        """Whether another run is at this path now."""
        previous, stamp = self._stamp, Stamp.of(self.path)
        if previous is None or stamp is None or stamp == previous:
            return False
        try:
            with Records.open_readonly(self.path) as records:
                return stamp.which != previous.which or records.created != self.decisions.created
        except StoreError:  # half written, or no run: what was read is still shown
            return False

    def select(self, wanted: Filter) -> Page:
        """Return a page of decisions, as far as they have been read; see `Decisions.select`."""
        self.follow()
        return self.decisions.select(wanted)

    def follow(self) -> None:
        """Read on while somebody asks; the first time it waits for what can be read at once."""
        self._asked = time.monotonic()
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            if not len(self.decisions):
                self._look(FIRST, judge=False)
            self._thread = Thread(target=self._following, name=f"view {self.name}", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._asked = -PATIENCE
        if self._thread is not None:
            self._thread.join()

    def _following(self) -> None:
        while (began := time.monotonic()) < self._asked + PATIENCE:
            if not self._look(SLICE):  # a run that grows is not to lose much of its CPU to this
                time.sleep(max(INTERVAL, 2 * (time.monotonic() - began)))

    def _look(self, seconds: float, judge: bool = True) -> bool:
        """Read or index for about so long; True: there is more to do."""
        stamp = Stamp.of(self.path)
        try:
            if gone := self._gone(stamp):
                raise gone
            if stamp != self._stamp or not self.decisions.complete:
                had = self._stamp, len(self.decisions), self.decisions.judged
                self.decisions.read(seconds, judge)
                self._stamp, self.problem = stamp, ""
                self.number += had != (stamp, len(self.decisions), self.decisions.judged)
                if not self.decisions.complete:
                    return True
            if self.decisions.worth_keeping:
                self.decisions.keep()
            search, done = self.decisions.search, True
            if search is not None:
                ready, done = search.ready, search.fill(self.decisions.upto(), seconds)
                self.number += search.ready != ready  # lists of finds are whole
            self.problem = ""
            return not done
        except StoreError as error:
            why = str(self._gone(Stamp.of(self.path)) or error)
            self.number += why != self.problem
            self.problem = why
            return False

    def _gone(self, stamp: Stamp | None) -> Gone | None:
        """The error if the file that was read before is no longer there."""
        if self._stamp is None or (stamp is not None and stamp.which == self._stamp.which):
            return None
        return Gone(self.path) if stamp else Gone(self.path, "was deleted")


class RunShelf:
    """The runs of some files and folders, folders with all that is in them."""

    def __init__(self, paths: Sequence[Path], folder: Path | None = None) -> None:
        self.paths = list(paths)
        self.folder = folder or cache_folder() / "view"
        self._runs: dict[Path, RunFile] = {}
        self._lock = Lock()

    def check(self) -> None:
        """Raise NotARun if no path is a run or a folder, which may be empty yet."""
        wrong = []
        for path in self.paths:
            try:
                if not path.is_dir():
                    Records.open_readonly(path).close()
                return
            except StoreError as error:
                wrong.append(error)
        raise wrong[0] if len(wrong) == 1 else NotARun("; ".join(map(str, wrong)))

    def number(self) -> int:
        """Changes when a run has changed, come or gone."""
        return crc32(repr([(run.id, Stamp.of(run.path)) for run in self.runs()]).encode())

    def runs(self) -> list[RunFile]:
        """The newest first; also those that have gone meanwhile."""
        for file in (file.absolute() for path in self.paths for file in _files(path)):
            if file not in self._runs:
                self._runs[file] = RunFile(file, self.folder)
        return sorted(map(self._current, [*self._runs.values()]), key=_age, reverse=True)

    def others(self) -> list[Path]:
        """Files in its folders that are named as runs and are none, but for labels of some."""
        files = [file for path in self.paths for file in _files(path, marked=False)]
        return [file for file in files if not file.name.endswith(f".labels{ENDING}")]

    def run(self, name: str) -> RunFile:
        """By id; raises `NoSuchRun`."""
        for listed in (self._runs.values, self.runs):  # the folders are looked through at need
            for run in listed():
                if run.id == name:
                    return self._current(run)
        raise NoSuchRun(f"there is no run {name!r} here: it has another path, or was deleted")

    def add(self, path: Path) -> RunFile:
        """Put a run that was just made on the shelf."""
        if path.absolute() not in [run.path for run in self.runs()]:
            self.paths.append(path)
        return next(run for run in self.runs() if run.path == path.absolute())

    def _current(self, run: RunFile) -> RunFile:
        with self._lock:
            run = self._runs[run.path]
            if run.replaced():
                run.stop()
                run = self._runs[run.path] = RunFile(run.path, self.folder)
        return run

    def close(self) -> None:
        for run in self._runs.values():
            run.stop()


def _visible(labelled: Labelled) -> Labelled:
    """What is in a file that anybody may have made, without what steers a display."""
    return Labelled(tuple(map(visible, labelled.labels)), visible(labelled.note))


def _files(path: Path, marked: bool = True) -> list[Path]:
    """A file, or the runs in a folder and in the folders right below it, or what is none there."""
    if not path.is_dir():
        return [path] if marked else []
    files = [*path.glob(f"*{ENDING}"), *path.glob(f"[!.]*/*{ENDING}")]
    return sorted(file for file in files if _marked(file) == marked)


def _marked(path: Path) -> bool:
    """Whether a file is marked as a run of ours, of whatever schema."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(72)[68:] == APPLICATION.to_bytes(4, "big")
    return False


def _age(run: RunFile) -> float:
    try:
        return run.path.stat().st_mtime
    except OSError:
        return 0.0
