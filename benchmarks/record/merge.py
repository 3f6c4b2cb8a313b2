"""One run that was played in parts, each in a file of its own: put together in a new file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from llm_games.benchmarks.record.connection import SAFE, RunLocked, StoreError, Unwritable
from llm_games.benchmarks.record.editions import maker
from llm_games.benchmarks.record.labels import Labelled, Place, read_labels, write_labels
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.schema import EpisodeRow, RunRow
from llm_games.benchmarks.record.store import Store, check_free
from llm_games.benchmarks.record.worker_files import ENDED, Part, both, folder
from llm_games.errors import BadParameter
from llm_games.wrappers.clients.budget import Usage

OWN = "part", "budget", "cache", "prices"  # settings that parts of a run may have apart
RANKS = "pending", "running", "void", "done"


class OtherRun(StoreError):
    """Files are of different runs, or have both played an episode."""


def merge(files: Sequence[Path], path: Path) -> None:
    """Write the run that files are parts of; each of its episodes is where it came furthest.

    A person's labels go with the episodes, whose ids are the same in all parts.

    The new file has its name once it is whole. Raises OtherRun: the files do not belong together;
    RunLocked: one is being played; StoreError: one cannot be read, or the new one not be written.
    """
    if len(files) < 2:
        raise BadParameter(f"parts of a run are two files or more: got {len(files)}")
    check_free(path)
    half = path.with_name(f"{path.name}.half")
    with ExitStack() as stack:
        parts = [stack.enter_context(Records.open_readonly(file, part=True)) for file in files]
        for part in parts:
            _check(parts[0], part)
        owners = _owners(parts)
        labels = _labels(owners)
        _clear(half)
        try:
            with _begun(half, parts[0]) as store:
                _copy(store, owners)
                _add_books(store, parts)
                store.put_in_order()
                store.add(described := _described(parts), again=True)
        except Unwritable as error:  # no file to resume, as it says
            _clear(half)
            raise Unwritable(f"{str(error).partition(SAFE)[0]}; the parts are left alone") from None
    check_free(path)
    if labels:
        write_labels(path, described.created, labels)
    half.rename(path)


def _check(first: Records, part: Records) -> None:
    if holder := part.holder():
        raise RunLocked(f"{part.path} is being played by {holder}; merge it once that has ended")
    if folder(part.path).exists():
        way = f"llm-games resume {part.path}"
        raise StoreError(f"{folder(part.path)} has rows that {part.path} lacks: first {way}")
    if "run" in part.config:
        raise OtherRun(
            f"{part.path} is what a worker, or half a merge, has left of the run of "
            f"{part.config['run']}: a worker's goes into RUN.db.parts of its run, to be resumed"
        )
    if not part.has_every_column:
        raise StoreError(
            f"{part.path} was made by {maker(part.package)}, which recorded less; it can be read "
            "and reported, and not be merged"
        )
    for (what, mine), (_, other) in zip(_identity(first), _identity(part), strict=True):
        if mine != other:
            raise OtherRun(f"{part.path} is of another run than {first.path}: {what} differ")


def _identity(part: Records) -> Iterator[tuple[str, Any]]:
    """What all parts of a run have alike, with its name."""
    yield "titles", part.title
    yield "versions of llm-games", part.package
    yield "games", [(g.id, g.label, g.game, g.params, g.seats) for g in part.games()]
    yield "settings", {name: part.config[name] for name in part.config if name not in OWN}
    rows = part.episodes()
    yield (
        "episodes, their seeds or seatings",
        [(e.id, e.game.id, e.number, e.seed, e.seating, e.given, e.edition) for e in rows],
    )


def _owners(parts: list[Records]) -> list[tuple[Records, EpisodeRow]]:
    """Each episode, where it came furthest; OtherRun: it ended twice."""
    owners = []
    for rows in zip(*(part.episodes() for part in parts), strict=True):
        ended = [part for part, row in zip(parts, rows, strict=True) if row.status in ENDED]
        if len(ended) > 1:
            files = " and in ".join(str(part.path) for part in ended)
            raise OtherRun(
                f"{rows[0].game.label}, episode {rows[0].number}, ended in {files}: parts of a run "
                "play different episodes (--part); leave one file out"
            )
        here = [
            (RANKS.index(row.status), len(part.decided(row.id)), -number)
            for number, (part, row) in enumerate(zip(parts, rows, strict=True))
        ]
        best = -max(here)[-1]
        owners.append((parts[best], rows[best]))
    return owners


def _labels(owners: list[tuple[Records, EpisodeRow]]) -> dict[Place, Labelled]:
    """What a person said of each episode in the part that it is taken from."""
    of = {part.path: read_labels(part) for part, _ in owners}
    episodes = {(part.path, row.id) for part, row in owners}
    return {
        place: labelled
        for path, labels in of.items()
        for place, labelled in labels.items()
        if (path, place[0]) in episodes
    }


def _clear(half: Path) -> None:
    """Drop what a merge left that died; RunLocked: it lives."""
    if half.exists() and half.stat().st_size:
        with Records.open_readonly(half, part=True) as records:
            if holder := records.holder():
                raise RunLocked(f"{half} is being written by {holder}")
    for ending in ("", "-wal", "-shm", "-journal"):
        Path(f"{half}{ending}").unlink(missing_ok=True)


def _begun(half: Path, first: Records) -> Store:
    """A file without episodes, by its configuration no run that could be read or resumed."""
    games = [(game.label, game.game, game.params, game.seats) for game in first.games()]
    none = [list[int]() for _ in games]
    return Store.create(half, first.title, {"run": first.created}, games, none)


def _copy(store: Store, owners: list[tuple[Records, EpisodeRow]]) -> None:
    ids: dict[Path, list[int]] = {}
    for part, row in owners:
        store.add(row)
        if row.status != "pending":
            ids.setdefault(part.path, []).append(row.id)
    for file, episodes in ids.items():
        Part(store, file).take_at_once(episodes)


def _described(parts: list[Records]) -> RunRow:
    first = parts[0]
    config = {name: value for name, value in first.config.items() if name != "part"}
    return RunRow(first.title, first.package, config, min(part.created for part in parts))


def _add_books(store: Store, parts: list[Records]) -> None:
    spent: dict[tuple[str, str], Usage] = {}
    lengths = store.learnt()
    for part in parts:
        for pair, usage in part.spent(ended=True).items():
            spent.setdefault(pair, Usage()).add(usage)
        for model, learnt in part.learnt().items():
            lengths[model] = both(lengths.get(model), learnt)
        for row in (*part.limits(), *part.guests(), *part.waves(), *part.lines()):
            store.add(row, again=True)
    for pair, usage in spent.items():
        store.spend(*pair, usage)
    for model, learnt in lengths.items():
        store.learn(model, learnt)
