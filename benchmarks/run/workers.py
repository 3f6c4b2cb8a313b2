"""A run of several processes: a coordinator hands episodes out, workers play and record them.

Each worker has a file of its own, see `record.worker_files`. The coordinator alone writes the
run's file, greets the models and has the budget, of which workers hold leases. A transport starts
workers and carries messages, tuples, both ways; that is all that differs between machines.
"""

from __future__ import annotations

import asyncio
import pickle
import traceback
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from math import ceil
from pathlib import Path
from typing import Any, Protocol

from llm_games.benchmarks.record import worker_files
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.connection import SAFE, RunExists, Unwritable
from llm_games.benchmarks.record.schema import EpisodeRow
from llm_games.benchmarks.record.store import Store
from llm_games.benchmarks.record.worker_files import ENDED, Excerpt, Part, adopt, excerpt
from llm_games.benchmarks.run.branch import Past
from llm_games.benchmarks.run.conduct import RunConduct, RunStopped, closed
from llm_games.benchmarks.run.leases import LeasedLedger, Leases, Limited
from llm_games.benchmarks.run.plan import RunPlan, players
from llm_games.errors import LLMGamesError
from llm_games.wrappers.clients.flights import Flights, drained
from llm_games.wrappers.clients.tokens import Lengths
from llm_games.wrappers.together import ending

BEAT = 1.0  # seconds between a worker's signs of life
LEASE = 10.0  # seconds after the last one for which a worker is taken to live
FIRST = 120.0  # seconds that its start may take beside
LOOK = 3.0  # seconds after which what is being played shows in the run's file
DEATHS = 5  # of workers without an episode between, or 2 of each, after which a run stops


@dataclass(frozen=True)
class Job:
    """What a worker is started with: its file, and the run of `created` that it belongs to.

    `lengths`: what is known of each model's replies, such as by its greeting. `pasts`: of
    branches, whose origin is beside the run's file, and perhaps on another machine.
    """

    plan: RunPlan
    use_cache: bool
    tables: int
    path: Path
    title: str
    created: str
    games: list[tuple[Any, ...]]
    lengths: dict[str, Lengths]
    pasts: Mapping[str, Past]

    def create(self, path: Path) -> Store:
        """Begin a worker's file, without episodes."""
        none = [list[int]() for _ in self.games]
        return Store.create(path, self.title, {"run": self.created}, self.games, none)


class Started(Protocol):
    """A worker, as its coordinator has it."""

    def send(self, message: tuple[Any, ...]) -> None:
        """Send a message; nothing happens if the worker is gone."""
        ...

    def kill(self) -> None: ...


Deliver = Callable[[tuple[Any, ...]], None]
"""Takes a worker's messages, in the coordinator's event loop; the last is ``("gone",)``."""
Transport = Callable[[Job, Deliver], Started]


@dataclass(frozen=True)
class Crew:
    """How many workers play, and how they are started."""

    count: int
    transport: Transport
    use_cache: bool = True

    def check(self, plan: RunPlan) -> RunPlan:
        """Return the plan as each worker has it; ConfigError if it cannot be played by so many."""
        if plan.links is not None:
            raise ConfigError("people and programs that join by links play in one process")
        if plan.objects:
            names = ", ".join(plan.objects)
            raise ConfigError(
                f"workers find objects by name alone: put {names} into a module, as module:Name"
            )
        return plan.divided(self.count)


# -- the worker's side -----------------------------------------------------------------------------
class Worker:
    """Plays what it is handed; `send` takes its messages, `receive` those of the coordinator.

    `copied`: rows are sent as they are written, since its coordinator cannot read its file.
    """

    def __init__(
        self, job: Job, send: Callable[[tuple[Any, ...]], None], copied: bool = False
    ) -> None:
        self.job, self.send, self.copied = job, send, copied
        self.calls = Flights()
        self.ledger: LeasedLedger | None = None
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._numbers = count(1)

    def receive(self, message: tuple[Any, ...]) -> None:
        kind, *rest = message
        if kind == "stop":
            self.calls.stop()
        elif kind == "recall" and self.ledger is not None:
            self.ledger.recall(*rest)
        elif kind in ("turn", "grant", "refuse", "copied"):
            answer = self._answers.pop(rest[0])
            if not answer.done():
                answer.set_result(rest[-1])

    def ask(self, kind: str, *about: Any) -> asyncio.Future[Any]:
        number = next(self._numbers)
        self._answers[number] = answer = asyncio.get_running_loop().create_future()
        self.send((kind, number, *about))
        return answer

    async def work(self) -> None:
        """Play until nothing is left, and say of an error what it is."""
        try:
            await self._play()
        except asyncio.CancelledError:
            pass  # it was stopped
        except Unwritable as error:  # no file to resume, as it says
            fault = str(error).partition(SAFE)[0].replace(str(self.job.path), "a worker's file")
            self.send(("error", Unwritable(fault)))
        except Exception as error:
            if not isinstance(error, LLMGamesError):  # such as of somebody's own player
                error.add_note(traceback.format_exc())
            self.send(("error", error))

    async def _play(self) -> None:
        job = self.job
        shared = job.plan.shared(job.use_cache)
        of_run = shared.ledger
        shared.ledger = self.ledger = LeasedLedger(
            of_run.budget, of_run.prices, self._lease, self._give
        )
        self.ledger.lengths.update(job.lengths)
        policies = players(job.plan, shared)
        try:
            with job.create(job.path) as store:
                if self.copied:
                    store.copy_to(lambda rows: self.ask("rows", rows))
                run = RunConduct(store, job.plan, policies, lambda _: None, self.calls, job.pasts)
                await drained(self._whole(run), self.calls)
        finally:
            await closed(policies)
            if shared.replies is not None:
                shared.replies.close()

    async def _lease(self, limit: Limited, needed: Any) -> Any:
        return await self.ask("lease", limit, needed)

    def _give(self, *about: Any) -> None:
        self.send(("give", *about))

    async def _whole(self, run: RunConduct) -> None:
        await run.whole(self._tables(run))

    async def _tables(self, run: RunConduct) -> None:
        async with asyncio.TaskGroup() as tables:
            for _ in range(self.job.tables):
                tables.create_task(ending(self._table(run)))

    async def _table(self, run: RunConduct) -> None:
        while (turn := await self.ask("next")) is not None:
            for part in turn:
                adopt(run.store, part)
                run.rows[part.row.game.id, part.row.number] = part.row
            await run.store.durable()
            rows = [part.row for part in turn if part.row.status not in ENDED]
            await run.tables(rows)
            for part in turn:
                del run.rows[part.row.game.id, part.row.number]
            self.send(("done", [row.id for row in rows]))


def portable(message: tuple[Any, ...]) -> tuple[Any, ...]:
    """A message as it can be sent: an error that cannot is what it says."""
    if message[0] == "error":
        try:
            pickle.loads(pickle.dumps(message[1]))
        except Exception:
            error = message[1]
            return "error", LLMGamesError(f"{type(error).__name__}: {error}")
    return message


# -- the coordinator's side ------------------------------------------------------------------------
@dataclass
class _Hand:
    """A worker as the coordinator knows it, and what it has in hand."""

    name: str
    file: Path
    last_sign: float
    worker: Any = None
    part: Part | None = None
    turns: list[list[EpisodeRow]] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)  # episodes to be taken over


class Coordinator:
    """Hands out what a run still owes, and takes over what workers record."""

    def __init__(self, run: RunConduct, crew: Crew, plan: RunPlan) -> None:
        self.run, self.crew, self.plan, self.store = run, crew, plan, run.store
        self.hands: dict[str, _Hand] = {}
        self.leases = Leases(run.books.ledger, crew.count, self._tell)
        self.events: asyncio.Queue[tuple[str, tuple[Any, ...]]] = asyncio.Queue()
        self.idle: deque[tuple[str, int]] = deque()  # questions for turns
        self.turns: deque[list[EpisodeRow]] = deque()
        self.deaths = 0
        self.next_look = 0.0
        self.awake = 0.0  # when it last looked for messages

    async def play(self) -> None:
        await self.run.whole(self._play(self.run.owed()))

    async def _play(self, owed: list[EpisodeRow]) -> None:
        """Play batches here, since their rows take longer than their moves; hand out the others."""
        folder, played = worker_files.folder(self.store.path), await self.run.batched(owed)
        self.turns.extend(self._turns([row for row in owed if row.id not in played]))
        try:
            folder.mkdir()
        except FileExistsError:
            raise RunExists(f"{folder} is there already, of another run: move it away") from None
        except OSError as error:
            raise Unwritable(f"{folder} cannot be made ({error.strerror})") from None
        await self._conduct()
        worker_files.take_over_all(self.store)

    def _turns(self, owed: list[EpisodeRow]) -> Iterator[list[EpisodeRow]]:
        """Yield episodes to be played in order, with the one before where players recall it."""
        for turn in self.run.turns(owed):
            first = self.run.rows.get((turn[0].game.id, turn[0].number - 1))
            series = self.run.games[turn[0].game.label].series
            yield [first, *turn] if series and first is not None else turn

    async def _conduct(self) -> None:
        stopped, self.awake = True, asyncio.get_running_loop().time()
        try:
            for _ in range(min(self.crew.count, len(self.turns))):
                self._start()
            while self.turns or any(hand.turns for hand in self.hands.values()):
                hand, kind, about = await self._event()
                if hand is not None:
                    self._heed(hand, kind, about)
                if self.events.empty():
                    for hand in [*self.hands.values()]:
                        await self._take(hand)
                await self._look()
            stopped = False
        finally:
            await self._dismiss(stopped)

    def _start(self) -> None:
        name = f"{len(self.hands)}-{uuid.uuid4().hex[:12]}"
        file = worker_files.folder(self.store.path) / f"{name}.db"
        games = [(row.label, row.game, row.params, row.seats) for row in self.store.games()]
        tables = ceil(self.run.plan.tables / self.crew.count)
        learnt = self.run.books.ledger.lengths.items()
        lengths = {model: replace(of, seen=0) for model, of in learnt}
        about = self.store.title, self.store.created, games, lengths, self.run.pasts
        job = Job(self.plan, self.crew.use_cache, tables, file, *about)
        hand = self.hands[name] = _Hand(name, file, asyncio.get_running_loop().time() + FIRST)
        hand.worker = self.crew.transport(job, lambda m: self.events.put_nowait((name, m)))

    def _tell(self, name: str, *message: Any) -> None:
        if name in self.hands:
            self.hands[name].worker.send(message)

    async def _event(self) -> tuple[_Hand | None, str, list[Any]]:
        """Wait a while for a message of a worker; one that is silent for too long is ended.

        The time for which the coordinator itself was halted or busy does not count.
        """
        clock = asyncio.get_running_loop().time
        try:
            name, (kind, *about) = await asyncio.wait_for(self.events.get(), BEAT / 4)
        except TimeoutError:
            name, kind, about = "", "", []
        absent, self.awake = max(0.0, clock() - self.awake - BEAT), clock()
        if (hand := self.hands.get(name)) is not None:
            hand.last_sign = clock()
        for other in self.hands.values():
            other.last_sign += absent
            if clock() - other.last_sign > LEASE:
                other.worker.kill()
        return hand, kind, about

    def _heed(self, hand: _Hand, kind: str, about: list[Any]) -> None:
        """Do what a worker's message asks for."""
        if kind == "next":
            hand.part = hand.part or Part(self.store, hand.file)
            self.idle.append((hand.name, *about))
        elif kind == "done":
            hand.ended += about[0]
        elif kind == "lease":
            self.leases.ask(hand.name, *about)
        elif kind == "give":
            self.leases.give(hand.name, *about)
        elif kind == "error":
            raise about[0]
        elif kind == "gone":
            self._lost(hand)
        self._hand_out()

    def _hand_out(self) -> None:
        while self.turns and self.idle:
            name, number = self.idle.popleft()
            if name in self.hands:
                turn = self.turns.popleft()
                self.hands[name].turns.append(turn)
                self._tell(name, "turn", number, [self._excerpt(row) for row in turn])

    def _excerpt(self, row: EpisodeRow) -> Excerpt:
        if row.status == "pending":
            return Excerpt(row, {}, {})
        return excerpt(self.store, row, *(("notes",) if row.status in ENDED else ()))

    async def _take(self, hand: _Hand) -> None:
        """Take over what has ended at a worker: all at once, since each commit takes its time."""
        if not (ids := hand.ended) or hand.part is None:
            return
        hand.ended = []
        decisions, broke = await hand.part.take(ids)
        counters, self.deaths = self.run.counters, 0
        counters.played += len(ids)
        counters.decisions += decisions
        counters.broke += broke
        hand.turns = [turn for turn in hand.turns if turn[-1].id not in ids]
        self.run.watch(counters)

    async def _look(self) -> None:
        """Now and then, take over what was played of episodes that go on, for who reads the run."""
        if asyncio.get_running_loop().time() < self.next_look:
            return
        for hand in [*self.hands.values()]:
            ids = [row.id for turn in hand.turns for row in turn if row.status not in ENDED]
            if hand.part is not None and ids:
                await hand.part.take(ids)
        self.next_look = asyncio.get_running_loop().time() + LOOK

    def _lost(self, hand: _Hand) -> None:
        """Let others go on where a worker that died has been."""
        self._leave(hand)
        rows = {row.id: row for row in self.store.episodes()}
        for turn in hand.turns:
            again = [rows[row.id] for row in turn]
            if any(row.status not in ENDED for row in again):
                self.turns.appendleft(again)
        self.deaths += 1
        if self.deaths >= max(DEATHS, 2 * self.crew.count):
            raise RunStopped(f"{self.deaths} workers died one after another", self.store.path)
        if self.turns:
            self._start()

    def _leave(self, hand: _Hand) -> None:
        """Take over what is left of a worker that is gone."""
        del self.hands[hand.name]
        if hand.file.exists():
            ledger = self.run.books.ledger
            for pair, usage in worker_files.take_over(self.store, hand.file, hand.part).items():
                ledger.book(*pair, usage)
            ledger.lengths.update(self.store.learnt())
        self.leases.gone(hand.name)

    async def _dismiss(self, stopped: bool) -> None:
        """Wait until all workers have ended: once they have nothing to do, or calls are over."""
        try:
            await self._farewell(stopped)
        finally:
            for hand in self.hands.values():
                hand.worker.kill()

    async def _farewell(self, stopped: bool) -> None:
        calls, stops = self.run.counters.flights, -1
        for name, number in self.idle:
            self._tell(name, "turn", number, None)
        self.idle.clear()
        while self.hands:
            if stopped and calls.stops != stops:
                for name in self.hands:
                    self._tell(name, "stop")
                stops = calls.stops
            hand, kind, about = await self._event()
            if hand is not None and kind == "gone":
                self._leave(hand)
            elif hand is not None and kind == "next":
                self._tell(hand.name, "turn", *about, None)
