"""Play a run: all episodes at the same time, everything recorded before a call builds upon it.

To go on with a run, its unfinished episodes are played again from the start, with the recorded
completions in place of calls: it equals one that was never interrupted.
"""

from __future__ import annotations

import asyncio
import copy
import math
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from llm_games.benchmarks.record import schema
from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.connection import StoreError
from llm_games.benchmarks.record.editions import maker
from llm_games.benchmarks.record.garbage import few_searches
from llm_games.benchmarks.record.lock import BEAT
from llm_games.benchmarks.record.schema import AttemptRow, EpisodeRow
from llm_games.benchmarks.record.store import Store, plain_action, timestamp
from llm_games.benchmarks.record.worker_files import ENDED, take_over_all
from llm_games.benchmarks.run.batches import Batch, batches
from llm_games.benchmarks.run.branch import Past, PastClient, branch_pasts
from llm_games.benchmarks.run.branch_point import BranchSeat, Retelling
from llm_games.benchmarks.run.plan import PlannedGame, RunPlan, check, players
from llm_games.benchmarks.run.resume import EpisodeRecord, recalled
from llm_games.benchmarks.run.stored_waves import StoredWaves, line_number
from llm_games.errors import LLMGamesError
from llm_games.rulebook import Rulebook
from llm_games.view import Who
from llm_games.wrappers.clients.base import (
    Client,
    ClientError,
    Completion,
    ContextOverflow,
    Layer,
    Request,
)
from llm_games.wrappers.clients.budget import BudgetExceeded, Ledger, Usage, seat_of
from llm_games.wrappers.clients.flights import Flights, drained
from llm_games.wrappers.clients.limit import Limit
from llm_games.wrappers.clients.retry import Retry, Waits
from llm_games.wrappers.clients.stack import layers, ledger_of
from llm_games.wrappers.clients.tokens import Lengths
from llm_games.wrappers.clients.waves import waves_of
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.play import play_table
from llm_games.wrappers.policy import Decision, Policy
from llm_games.wrappers.seats import DecisionPlace, Episode, Step, plain
from llm_games.wrappers.together import ending, first, waited

PROMPT = 0.5  # seconds within which a run that goes on sees that it shall stop


class RunStopped(LLMGamesError):
    """No completion for good, or budget spent; all is in the file at `path` (None: no run)."""

    def __init__(self, message: str, path: Path | None = None, flags: str = "") -> None:
        super().__init__(f"{message}\n{go_on(path, flags)}" if path else message)
        self.path = path


def go_on(path: Path, flags: str = "") -> str:
    text = f"all that happened is in {path}; go on with: llm-games resume {path} {flags}"
    return text.rstrip()


TOGETHER = 0.1
"""Seconds within which signals are one: GNU timeout and others send theirs to a group as well."""


class Terminated(KeyboardInterrupt):
    """The process was told to end (SIGTERM)."""


class ReplayFailed(StoreError):
    """Playing a recorded episode again gives something else than was recorded."""


@dataclass
class Counters:
    """Numbers of a run in progress, for a display."""

    episodes: int = 0
    played: int = 0
    decisions: int = 0
    broke: int = 0
    in_flight: int = 0
    under_way: float = field(default=0.0, compare=False)
    """how much of the episodes that are being played is over, in episodes, as far as it is known"""
    waits: Waits = field(default_factory=Waits)  # what calls wait for
    flights: Flights = field(default_factory=Flights, compare=False)
    """calls that a run which ends waits for"""


Watcher = Callable[[Counters], None]


Conductor = Callable[["RunConduct"], Coroutine[Any, Any, None]]


def start(plan: RunPlan, path: str | Path) -> Store:
    return Store.create(
        path,
        title=plan.title,
        config=plan.model_dump() | ({"part": plan.part} if plan.part else {}),
        games=[(g.label, g.game, g.params, [seat.name for seat in g.seats]) for g in plan.games],
        seeds=[game.seeds for game in plan.games],
        seatings=[game.seatings() for game in plan.games],
        fixed_chances=[game.chances() for game in plan.games],
        isomorphs=[game.disguises() for game in plan.games],
        sources=[
            game.sources or [game.branch.source if game.branch else None] * len(game.seeds)
            for game in plan.games
        ],
    )


def fresh(source: str) -> Path:
    """A new file in this folder, named after what is run and the time."""
    stem = Path(source if Path(source).exists() else source.replace("/", "-")).stem
    return Path(f"{stem}-{datetime.now():%Y%m%d-%H%M%S}.db")


@contextmanager
def seated_players(plan: RunPlan, use_cache: bool = True) -> Iterator[dict[str, Policy]]:
    """See `plan.players`; the cache of replies is closed afterwards."""
    shared = plan.shared(use_cache)
    try:
        yield players(plan, shared)
    finally:
        if shared.replies is not None:
            shared.replies.close()


def play_run(
    open_store: Callable[[], Store],
    plan: RunPlan,
    policies: Mapping[str, Policy],
    watch: Watcher = lambda _: None,
    resumed: bool = False,
    *,
    by: Conductor | None = None,
) -> None:
    """Play all episodes that are not finished, and wait for the end; by others if there is a `by`.

    The file is opened once all models have answered, but first if it is resumed, so that what was
    spent is known. `policies` are by `PlannedSeat.key`; `watch` is called after every step. Calls
    in flight at an early end are waited for and recorded. Raises ConfigError: a model does not
    answer; RunStopped: a call brought no completion for good, or the budget is spent; StoreError:
    the file cannot be written, or the record does not fit; KeyboardInterrupt. All is in the file.
    """
    if by is not None and plan.batched:
        raise ConfigError(
            f"{plan.batched} is asked in batches, which go out from one process: leave out "
            "workers, or batch"
        )
    path: Path | None = None
    calls, links = Flights(), "" if plan.links is None else "--browser"

    async def main() -> None:
        nonlocal path
        try:
            if not resumed:
                await drained(check(policies), calls)
            joined = []
            if plan.links is not None:
                joined = await drained(plan.links.gather(plan.guests.lobby), calls)
            with open_store() as store:
                path = store.path
                for guest in joined:
                    store.add(schema.GuestRow(*guest), again=True)
                if resumed:
                    take_over_all(store)
                run = RunConduct(store, plan, policies, watch, calls)
                if resumed:
                    await drained(check(policies), calls)
                await drained(run.play() if by is None else by(run), calls)
        except BudgetExceeded as error:
            flag = f"--budget-{error.limit.replace('_', '-')}"
            more = f"{links} {flag} MORE".strip()
            raise RunStopped(f"{error} (with {flag})", path, more) from None
        except ContextOverflow as error:
            note = "a resumed run keeps its players' settings: others are for a new one"
            raise RunStopped(f"{error} ({note})", path, links) from None
        except ClientError as error:
            raise RunStopped(str(error), path, links) from None
        finally:
            await closed(policies)

    with few_searches():
        _anywhere(main(), calls)


async def closed(policies: Mapping[str, Policy]) -> None:
    """Close the connections of players that ask models."""
    for policy in policies.values():
        if isinstance(policy, LLMPolicy):
            await policy.client.close()


def _anywhere(work: Coroutine[Any, Any, None], calls: Flights) -> None:
    """Run a coroutine to its end, in a thread where an event loop is running (notebooks)."""
    if asyncio._get_running_loop() is None:
        return _to_its_end(work, calls)
    began: Future[asyncio.AbstractEventLoop] = Future()

    async def stoppable() -> None:
        began.set_result(asyncio.get_running_loop())
        await work

    def stop() -> None:
        with suppress(RuntimeError):  # it has just ended
            began.result().call_soon_threadsafe(calls.stop)

    with ThreadPoolExecutor(1) as pool:
        waited(pool.submit(asyncio.run, stoppable()), stop)


def _to_its_end(work: Coroutine[Any, Any, None], calls: Flights) -> None:
    """Run a coroutine; Ctrl-C or SIGTERM stops it, a second interrupts code that blocks."""
    stopped: list[KeyboardInterrupt] = []
    last = -TOGETHER
    with asyncio.Runner() as runner:
        loop = runner.get_loop()

        unseen: list[float] = []  # when it was asked to stop and has not yet

        def heed() -> None:
            unseen.clear()
            calls.stop()

        def stop(number: int, _: object) -> None:
            nonlocal last
            if time.monotonic() - last < TOGETHER:
                return
            last = time.monotonic()
            stopped.append(Terminated() if number == signal.SIGTERM else KeyboardInterrupt())
            unseen.append(last)
            with suppress(RuntimeError):  # it has just ended
                loop.call_soon_threadsafe(heed)
            if last - unseen[0] > PROMPT:
                calls.ended, calls.stops = True, 1
                raise asyncio.CancelledError  # in whatever keeps the loop from going on

        with _handled(stop):
            try:
                runner.run(work)
            except asyncio.CancelledError:
                if not stopped:
                    raise
                raise stopped[0] from None


@contextmanager
def _handled(handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Handle signals that would end the process at once, where that is how they are handled."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    here = threading.current_thread() is threading.main_thread()
    handlers = {n: how for n, how in usual.items() if here and signal.getsignal(n) is how}
    for number in handlers:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, how in handlers.items():
            signal.signal(number, how)


class _Books:
    """The clients' ledger and limits in the run's file: a call is there from sending to booking."""

    def __init__(self, store: Store, players: Mapping[str, Policy]) -> None:
        clients = [p.client for p in players.values() if isinstance(p, LLMPolicy)]
        self.store, self.start = store, timestamp()
        self.ledger = next(filter(None, map(ledger_of, clients)), Ledger())
        stack = [layer for client in clients for layer in layers(client)]
        self.waits = next((layer.waits for layer in stack if isinstance(layer, Retry)), Waits())
        for waves in filter(None, map(waves_of, clients)):
            waves.go_on(StoredWaves(store, waves.model, waves.server))
        self.limits = {id(layer.gates): layer for layer in stack if isinstance(layer, Limit)}
        self._numbers, self._written_lengths = count(1), dict[str, Lengths]()
        for (model, seat), usage in store.spent(ended=True).items():
            self.ledger.book(model, seat, usage)
        store.strike_all()
        for model, lengths in store.learnt().items():
            sent = self.ledger.lengths[model].sent and lengths.sent
            self.ledger.lengths[model] = replace(lengths, sent=sent)
        prices = self.ledger.prices.items()
        store.note_prices({model: price.plain() for model, price in prices})
        self.write()
        self.ledger.journal = self

    async def begin(self, model: str, seat: str, bound: Usage, line: str = "") -> int:
        """The call's number, once the call is on the disk with the most that it may cost."""
        number = line_number(line) if line else next(self._numbers)
        may = bound.calls, bound.tokens_in, bound.tokens_out, str(bound.money)
        self.store.add(schema.FlightRow(model, seat, number, *may), again=bool(line))
        try:
            await self.store.durable()
        except BaseException:  # it is not sent, or was before
            if not line:
                self.store.strike(model, seat, number)
            raise
        return number

    def over(self, number: int, model: str, seat: str) -> None:
        """Strike a call that has ended, and enter its usage."""
        self.store.strike(model, seat, number)
        self.enter(model, seat)
        lengths, written = self.ledger.lengths[model], self._written_lengths.get(model)
        if written != replace(lengths, seen=written.seen if written else 0):
            self.learn(model)

    def enter(self, model: str, seat: str) -> None:
        if usage := self.ledger.pairs.get((model, seat)):
            self.store.spend(model, seat, usage)

    def learn(self, model: str) -> None:
        self._written_lengths[model] = lengths = replace(self.ledger.lengths[model])
        self.store.learn(model, lengths)

    def write(self) -> None:
        for pair in self.ledger.pairs:
            self.enter(*pair)
        for model in self.ledger.lengths:
            self.learn(model)
        for number, layer in enumerate(self.limits.values()):
            server = str(getattr(list(layers(layer))[-1], "base_url", ""))
            for history in layer.gates.history():
                row = schema.LimitRow(self.start, number, layer.name, server, list(history))
                self.store.add(row, again=True)


class RunConduct:
    """A run while it is played."""

    def __init__(
        self,
        store: Store,
        plan: RunPlan,
        players: Mapping[str, Policy],
        watch: Watcher,
        calls: Flights,
        pasts: Mapping[str, Past] | None = None,
    ) -> None:
        self.store, self.plan, self.watch = store, plan, watch
        self.records: dict[int, _Record] = {}  # of the episodes that are being played
        self.pasts = branch_pasts(plan, store.path) if pasts is None else pasts
        self.players = {
            key: _recording(policy, self.records, self.pasts) for key, policy in players.items()
        }
        self.books = _Books(store, players)
        self.counters = Counters(waits=self.books.waits, flights=calls)
        self.books.ledger.seat_of = self.seat
        if plan.links is not None:
            self.links = plan.guest_seats()
            plan.links.seat_of = self.link
        self.games = {game.label: game for game in plan.games}
        self.rules: dict[str, Rulebook] = {}  # one object for all that are alike
        self.rows: dict[tuple[int, int], EpisodeRow] = {}

    def seat(self, caller: Who) -> str:
        """The seat as configured, under whose name a call is booked."""
        if caller.episode not in self.records:
            return seat_of(caller)
        row = self.records[caller.episode].row
        return seat_of(caller._replace(run=row.game.label, seat=row.seating[caller.seat]))

    def link(self, caller: Who) -> str:
        """The name of the link by which a seat is played, "" of no guest's."""
        row = self.records[caller.episode].row
        return self.links[row.game.label][row.seating[caller.seat]]

    def owed(self) -> list[EpisodeRow]:
        """Read which episodes are not finished; `rows` are all, by game and number."""
        episodes = self.store.episodes()
        self.rows = {(row.game.id, row.number): row for row in episodes}
        owed, played = self.plan.owed(episodes), sum(row.status in ENDED for row in episodes)
        self.counters.episodes, self.counters.played = len(owed) + played, played
        self.watch(self.counters)
        return owed

    def turns(self, owed: list[EpisodeRow]) -> list[list[EpisodeRow]]:
        """Sort episodes into what is played one after another: those of a series together."""
        turns: dict[tuple[int, int], list[EpisodeRow]] = {}
        for row in sorted(owed, key=lambda e: (e.number, e.game.id)):
            series = self.games[row.game.label].series
            turns.setdefault((-1 if series else row.number, row.game.id), []).append(row)
        return list(turns.values())

    async def play(self) -> None:
        """Play what is not finished; the first error stops all tables."""
        await self.whole(self._play(self.owed()))

    async def whole(self, work: Coroutine[Any, Any, None]) -> None:
        """Do all of a run's work, with its books and its lock kept until the end."""
        alive = asyncio.create_task(self._stay_alive())
        try:
            await work
        except BaseException as error:
            raise first(error) from None
        finally:
            alive.cancel()
            self.books.write()
            self.books.ledger.journal = None

    async def _play(self, owed: list[EpisodeRow]) -> None:
        gate = asyncio.Semaphore(self.plan.tables)
        played = await self.batched(owed)
        async with asyncio.TaskGroup() as tables:
            for turn in self.turns([row for row in owed if row.id not in played]):
                await gate.acquire()
                table = tables.create_task(ending(self.tables(turn)))
                table.add_done_callback(lambda _: gate.release())
                await asyncio.sleep(0)  # its first calls need not wait for other tables

    async def _stay_alive(self) -> None:
        """Keep the run's lock while a step takes long."""
        while True:
            await asyncio.sleep(BEAT)
            self.books.write()
            await self.store.durable()

    async def batched(self, owed: list[EpisodeRow]) -> set[int]:
        """Play those that can be played in batches; return their ids."""
        played = set[int]()
        for batch in batches(owed, self.games, self.players):
            await self._play_batch(batch)
            await self.store.durable()
            played |= {row.id for row in batch.episodes}
            self.counters.played += len(batch.episodes)
            self.watch(self.counters)
        return played

    async def _play_batch(self, batch: Batch) -> None:
        """Play all of it, or none if it is stopped meanwhile."""
        ids, steps, decisions = [row.id for row in batch.episodes], list[Any](), list[Any]()
        begun = timestamp()
        for columns in batch.play():
            steps += columns.steps(ids)
            decisions += columns.decisions(ids)
            self.counters.broke += int(columns.outcome.broke[columns.asked].sum())
            self.counters.decisions += int(columns.asked.sum())
            self.watch(self.counters)
            await asyncio.sleep(0)
        with self.store.whole():
            for episode in ids:
                self.store.begin(episode, begun)
            self.store.add_written(schema.StepRow, sorted(steps))
            self.store.add_written(schema.DecisionRow, sorted(decisions))
            for row, over in zip(batch.episodes, batch.over.tolist(), strict=True):
                self.store.end(row.id, None if over else not_ended(self.games[row.game.label]))

    def _player(self, game: PlannedGame, row: EpisodeRow, seat: int) -> Policy:
        player = self.players[game.seats[row.seating[seat]].key]
        if game.branch is None:
            return player
        return BranchSeat(player, game.branch, seat, row.number, self.pasts[game.label].action)

    async def tables(self, turn: list[EpisodeRow]) -> None:
        """Play episodes one after another."""
        for row in turn:
            game = self.games[row.game.label]
            alike = f"{row.game.label}\0{row.params}\0{row.isomorph}"
            if alike not in self.rules:
                self.rules[alike] = row.rules()
            record = self.records[row.id] = _Record(self, row)
            lengths = filter(None, (self.rules[alike].length(), game.max_steps))
            record.step_share = 1 / min(lengths, default=math.inf)
            self.store.begin(row.id)
            episode = await play_table(
                self.rules[alike],
                [self._player(game, row, seat) for seat in range(len(row.seating))],
                row.seed,
                on_step=record.add,
                max_steps=game.max_steps,
                given=row.given,
                recalled=recalled(game, self.store, row, self.rows),
                who=Who(game.game, row.id),
            )
            del self.records[row.id]
            record.enter(episode.length, episode.afterwards)
            self.store.end(row.id, void_reason(episode, game))
            await self.store.durable()
            self.counters.played += 1
            self.counters.under_way -= record.step_share * episode.length
            self.watch(self.counters)


class _Record(EpisodeRecord):
    """One episode's record: what it holds is played again, what is new is added."""

    def __init__(self, run: RunConduct, row: EpisodeRow) -> None:
        super().__init__(run.store, row)
        self.run, self.store = run, run.store
        self.step_share = 0.0  # of a step in its episode, as far as that has a length
        self._noted = Counter({slot: len(overflows) for slot, overflows in self.overflows.items()})

    async def call(self, client: Client, request: Request) -> Completion:
        """A completion of the record, or a new one, which is recorded."""
        slot, number = self.count(request)
        prompt = self.store.prompt(request.messages)
        attempts = self.calls.get(slot, ())
        if number < len(attempts):
            row = attempts[number]
            if (row.prompt, row.seed) != (prompt, request.seed):
                raise self._differs(slot, "its prompt or seed")
            return row.completion()
        try:
            row = await self._live(client, request, slot, number, prompt)
        except ContextOverflow as error:
            self._asked[slot] -= 1
            self._overflowed[slot] += 1
            about = {"call": number, "said": str(error), "prompt": prompt, "seed": request.seed}
            self.overflows.setdefault(slot, []).append(about)
            raise
        self._enter_overflows(slot)
        self.store.add(row, self.row.id)
        self.store.hasten()  # the next call is not sent before it is on the disk
        return row.completion()

    def _enter_overflows(self, slot: DecisionPlace) -> None:
        """Write those that are new; a shorter prompt was answered."""
        overflows = self.overflows.get(slot, [])
        for number in range(self._noted[slot], len(overflows)):
            note = schema.NoteRow(*slot, number, schema.OVERFLOW, overflows[number])
            self.store.add(note, self.row.id)
        self._noted[slot] = len(overflows)

    async def _live(
        self, client: Client, request: Request, slot: DecisionPlace, number: int, prompt: int
    ) -> AttemptRow:
        if ledger_of(client) is None:  # no books, into which the call is entered
            await self.store.durable()
        self.run.counters.in_flight += 1
        try:
            completion = await client.complete(request)
        finally:
            self.run.counters.in_flight -= 1
        received = {name: _storable(value) for name, value in vars(completion).items()}
        about: dict[str, Any] = {"seed": request.seed, "kind": request.kind, "prompt": prompt}
        return AttemptRow(*slot, number, error="", outcome=None, why="", **received | about)

    async def add(self, step: Step) -> None:
        """Write a step; of one that is recorded already, check that it is the same."""
        self._asked.clear()
        self.run.counters.under_way += self.step_share
        if (links := self.run.plan.links) is not None:
            links.moved(Who(episode=self.row.id), step)
        if step.number < len(self.steps):
            for seat, decision in step.decisions.items():
                slot = DecisionPlace(step.number, seat)
                recorded = self.decisions.get(slot)
                if recorded is None or recorded.action != plain_action(decision.action):
                    raise self._differs(slot, "what was decided")
            return
        self.enter(step.number, step.decisions)
        step_row, decisions = rows_of(step)
        for row in (step_row.thin(), *decisions):
            self.store.add(row, self.row.id)
        if any(decision.attempts for decision in step.decisions.values()):
            self.store.hasten()
        else:
            await self.store.durable()
        self.run.counters.decisions += len(step.decisions)
        self.run.counters.broke += int(step.outcome.broke.sum())
        self.run.watch(self.run.counters)

    def enter(self, step: int, decisions: Mapping[int, Decision]) -> None:
        for seat, decision in decisions.items():
            for number, attempt in enumerate(decision.attempts):
                self.store.judge(self.row.id, DecisionPlace(step, seat), number, attempt)
            for number, note in enumerate(decision.notes, self._noted[DecisionPlace(step, seat)]):
                row = schema.NoteRow(step, seat, number, note.kind, note.content)
                self.store.add(row, self.row.id)

    def _differs(self, slot: DecisionPlace, what: str) -> ReplayFailed:
        return ReplayFailed(
            f"{self.store.path} cannot be resumed: in {self.row.game.label}, episode "
            f"{self.row.number}, step {slot.step}, seat {slot.seat}, {what} differs from the "
            f"record. It was made by {maker(self.store.package)}; resume with that and the "
            "same prompts"
        )


class _RecordingClient(Layer):
    def __init__(
        self, client: Client, records: Mapping[int, _Record], pasts: Mapping[str, Past]
    ) -> None:
        super().__init__(client)
        self.records = records
        self.branches = {
            label: (Retelling(past.point), PastClient(client, past))
            for label, past in pasts.items()
        }

    async def complete(self, request: Request) -> Completion:
        record, client = self.records[request.who.episode], self.client
        if record.row.game.label in self.branches:
            retelling, client = self.branches[record.row.game.label]
            request = retelling.told(request)
        return await record.call(client, request)


def _recording(policy: Policy, records: Mapping[int, _Record], pasts: Mapping[str, Past]) -> Policy:
    if isinstance(policy, LLMPolicy):
        policy = copy.copy(policy)
        policy.client = _RecordingClient(policy.client, records, pasts)
    return policy


def rows_of(step: Step) -> tuple[schema.StepRow, list[schema.DecisionRow]]:
    """A step and its decisions, as they are recorded."""
    outcome, number, decisions = step.outcome, step.number, []
    rewards, broke = outcome.rewards.tolist(), outcome.broke.tolist()
    finished = np.flatnonzero(outcome.finished).tolist()
    row = schema.StepRow(number, list(step.decisions), plain(outcome), rewards, finished)
    phase = schema.TALK if row.talk else ""
    for seat, decision in step.decisions.items():
        done = plain_action(decision.action), decision.outcome, broke[seat], rewards[seat]
        decisions.append(schema.DecisionRow(number, seat, *done, phase))
    return row, decisions


def not_ended(game: PlannedGame) -> str:
    return f"no end after {game.max_steps} steps (max_steps)"


def void_reason(episode: Episode, game: PlannedGame) -> str | None:
    """None: the episode has a score."""
    if not episode.over:
        return None if game.branch and game.branch.once else not_ended(game)
    if not episode.void:
        return None
    step = episode.last
    assert step is not None
    seats = ", ".join(str(seat) for seat in np.flatnonzero(step.outcome.broke))
    return f"step {step.number}: no legal answer from seat {seats} (failed_reply = void_run)"


def _storable(value: Any) -> Any:
    """Replace halves of characters, which JSON can hold and a database cannot."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value
