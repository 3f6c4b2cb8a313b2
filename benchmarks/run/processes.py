"""Workers as processes of this machine, each at the other end of a pipe."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import threading
from contextlib import AbstractContextManager, nullcontext, suppress
from multiprocessing.connection import Connection
from typing import Any

from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.garbage import few_searches
from llm_games.benchmarks.run.conduct import Conductor, RunConduct
from llm_games.benchmarks.run.plan import RunPlan
from llm_games.benchmarks.run.workers import (
    BEAT,
    Coordinator,
    Crew,
    Deliver,
    Job,
    Transport,
    Worker,
    portable,
)


def by_workers(
    workers: int | None, plan: RunPlan, use_cache: bool, address: str | None = None
) -> Conductor | None:
    """How so many workers play a plan, None: this process; ConfigError if they cannot.

    They are processes of this machine, or of the cluster of Ray that `address` names.
    """
    if workers is None:
        if address is not None:
            raise ConfigError("say how many workers play on the cluster, such as --workers 8")
        return None
    check_workers(workers)
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # it is being imported
        raise ConfigError('a script has workers below a line: if __name__ == "__main__":')
    transport: Transport = ProcessWorker
    around: AbstractContextManager[None] = nullcontext()
    if address is not None:
        from llm_games.benchmarks.run.ray_workers import RayWorker, check_cluster, joined

        check_cluster(address)
        transport, around = RayWorker, joined(address)
    crew = Crew(workers, transport, use_cache)
    mine = crew.check(plan)

    async def conduct(run: RunConduct) -> None:
        with around:
            await Coordinator(run, crew, mine).play()

    return conduct


def check_workers(workers: int | None) -> None:
    if workers is None:
        return
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise ConfigError(f"workers are processes, at least 1: got {workers!r}")


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
            pipe.send(portable(message))

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
    with few_searches():
        asyncio.run(main())
    over.set()
