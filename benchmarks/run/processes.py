"""Workers as processes of this machine, each at the other end of a pipe."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.run.conduct import Conductor
from llm_games.benchmarks.run.plan import RunPlan
from llm_games.benchmarks.run.workers import BEAT, Coordinator, Crew, Deliver, Job, Worker
from llm_games.errors import LLMGamesError


def by_processes(workers: int | None, plan: RunPlan, use_cache: bool) -> Conductor | None:
    """How so many processes play a plan, None: this one; ConfigError if they cannot."""
    if workers is None:
        return None
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise ConfigError(f"workers are processes, at least 1: got {workers!r}")
    crew = Crew(workers, ProcessWorker, use_cache)
    mine = crew.check(plan)
    return lambda run: Coordinator(run, crew, mine).play()


class ProcessWorker:
    """A worker in a process of its own, as its coordinator has it."""

    def __init__(self, job: Job, deliver: Deliver) -> None:
        spawn = multiprocessing.get_context("spawn")  # never forked: there are threads, and SQLite
        self._pipe, end = spawn.Pipe()
        self._process = spawn.Process(target=_work, args=(end, job), daemon=True)
        self._process.start()
        end.close()
        listening = (asyncio.get_running_loop(), deliver)
        threading.Thread(target=self._listen, args=listening, daemon=True).start()

    def send(self, message: tuple[Any, ...]) -> None:
        with suppress(OSError):  # it is gone, which `_listen` says
            self._pipe.send(message)

    def kill(self) -> None:
        self._process.kill()

    def _listen(self, loop: asyncio.AbstractEventLoop, deliver: Deliver) -> None:
        message: tuple[Any, ...] = ()
        with suppress(RuntimeError):  # nobody waits for it any more
            while message != ("gone",):
                try:
                    message = self._pipe.recv()
                except (EOFError, OSError):
                    self._process.join()
                    message = ("gone",)
                loop.call_soon_threadsafe(deliver, message)


def _work(pipe: Connection, job: Job) -> None:
    """Work in a process that its coordinator stops, and no signal that both get."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    turn, over = threading.Lock(), threading.Event()

    def send(message: tuple[Any, ...]) -> None:
        with turn, suppress(OSError):  # the coordinator is gone, which `listen` sees
            pipe.send(_portable(message))

    def beat() -> None:
        while not over.wait(BEAT):
            send(("beat",))

    async def main() -> None:
        worker, loop = Worker(job, send), asyncio.get_running_loop()

        def listen() -> None:
            message: tuple[Any, ...] = ()
            with suppress(RuntimeError):  # it has just ended
                while message != ("stop", "lost"):
                    try:
                        message = pipe.recv()
                    except (EOFError, OSError):
                        message = ("stop", "lost")
                    loop.call_soon_threadsafe(worker.receive, message)

        threading.Thread(target=listen, daemon=True).start()
        await worker.work()

    threading.Thread(target=beat, daemon=True).start()
    asyncio.run(main())
    over.set()


def _portable(message: tuple[Any, ...]) -> tuple[Any, ...]:
    """An error that cannot be sent is sent as what it says."""
    if message[0] == "error":
        try:
            pickle.loads(pickle.dumps(message[1]))
        except Exception:
            error = message[1]
            return "error", LLMGamesError(f"{type(error).__name__}: {error}")
    return message
