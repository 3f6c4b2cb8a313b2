"""Workers as actors of a Ray cluster: what they record comes to the coordinator's machine.

Nothing that a worker does counts before its rows are there, so one that is cut off, or was taken
for dead, asks no model any more.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import platform
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from llm_games.benchmarks.record.checked_table import ConfigError
from llm_games.benchmarks.record.connection import StoreError
from llm_games.benchmarks.record.store import Store
from llm_games.benchmarks.run.workers import (
    BEAT,
    LEASE,
    Deliver,
    Job,
    Worker,
    portable,
)
from llm_games.errors import LLMGamesError
from llm_games.version import __version__

REACHED = 3.0  # seconds within which a cluster answers
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""What opens a connection of HTTP/2, by which Ray speaks; the answer's kind (byte 3) is 4, too."""
AT_ONCE = 1000  # messages that an actor takes at the same time


def check_cluster(address: str) -> None:
    """Raise ConfigError, within some seconds, unless a cluster's head answers at HOST:PORT."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(
            f"a cluster is named by its head, HOST:PORT, such as 10.0.0.1:6379: got {address!r}"
        )
    fault = ""
    try:
        with socket.create_connection((host, int(port)), REACHED) as head:
            head.settimeout(REACHED)
            if os.environ.get("RAY_USE_TLS", "0") in ("", "0"):
                head.sendall(PREFACE)
                if head.recv(4)[3:] != b"\x04":
                    fault = "what answers is none"
    except OSError as error:
        fault = error.strerror or "no answer"
    if fault:
        way = "start one with: ray start --head --port 6379"
        raise ConfigError(f"there is no head of a Ray cluster at {address} ({fault}); {way}")
    if find_spec("ray") is None:
        raise ConfigError("workers on a cluster need Ray: pip install 'llm-games[ray]'")


@contextmanager
def joined(address: str) -> Iterator[None]:
    """Be a part of a cluster, whose way with signals is not ours."""
    import ray

    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (RuntimeError, ConnectionError) as error:  # such as of another version
        raise ConfigError(f"the Ray cluster at {address} cannot be joined: {error}") from None
    with suppress(ValueError):  # in a thread Ray leaves signals alone
        signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        ray.shutdown()


class RayWorker:
    """A worker on a machine of the cluster, as its coordinator has it; its file is a copy."""

    def __init__(self, job: Job, deliver: Deliver) -> None:
        import ray

        self._ray, self._job, self._deliver = ray, job, deliver
        options = {"max_restarts": 0, "max_task_retries": 0, "max_concurrency": AT_ONCE}
        actor = ray.remote(**options, scheduling_strategy="SPREAD")(Actor)
        self._actor = actor.remote(versions(), pickle.dumps(job))
        self._listening = asyncio.create_task(self._listen())

    def send(self, message: tuple[Any, ...]) -> None:
        self._actor.receive.remote(message)

    def kill(self) -> None:
        self._ray.kill(self._actor)
        self._listening.cancel()

    async def _listen(self) -> None:
        """Deliver its messages until it is gone, however it went."""
        try:
            with self._job.create(self._job.path) as copy:
                while await self._hear(copy):
                    self._deliver(("beat",))
        except (StoreError, self._ray.exceptions.RayError) as error:
            if (cause := self._cause(error)) is not None:
                self._deliver(("error", cause))
        finally:
            self._deliver(("gone",))

    def _cause(self, error: Exception) -> Exception | None:
        """What a run ends by; None: another worker takes its place."""
        if not isinstance(error, self._ray.exceptions.RayActorError):
            cause = getattr(error, "cause", None)
            return cause if isinstance(cause, LLMGamesError) else error
        if "creation task" not in str(error):
            return None
        reason = str(error).strip().splitlines()[-1]  # such as that a package lacks
        return ConfigError(f"a worker cannot start on its machine: {reason}")

    async def _hear(self, copy: Store) -> bool:
        """Take messages; whether more may come."""
        for kind, *about in await self._actor.messages.remote():
            if kind == "gone":
                return False
            if kind == "rows":
                copy.replay(about[1])
                await copy.durable()
                self.send(("copied", about[0], None))
            else:
                self._deliver((kind, *about))
        return True


def versions() -> str:
    """What a worker and its coordinator must have alike."""
    python = ".".join(platform.python_version_tuple()[:2])
    return f"llm-games {__version__} with Python {python}"


class Actor:
    """A worker in a process of the cluster; it ends when nobody asks for its messages."""

    def __init__(self, wanted: str, job: bytes) -> None:
        self._wanted, self._job = wanted, job
        self._worker: Worker | None = None
        self._said: list[tuple[Any, ...]] = []
        self._news = asyncio.Event()
        self._asked = time.monotonic()

    async def receive(self, message: tuple[Any, ...]) -> None:
        if self._worker is not None:
            self._worker.receive(message)

    async def messages(self) -> list[tuple[Any, ...]]:
        """Wait a while for what the worker says; ConfigError: it is of another version."""
        if self._worker is None:
            self._begin()
        self._asked = time.monotonic()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), BEAT)
        said, self._said = self._said, []
        self._news.clear()
        return said

    def _begin(self) -> None:
        if (here := versions()) != self._wanted:
            host = socket.gethostname()
            raise ConfigError(
                f"{host} has {here}, and this run {self._wanted}: install the same there"
            )
        folder = tempfile.TemporaryDirectory(prefix="llm-games-")
        job = replace(pickle.loads(self._job), path=Path(folder.name, "worker.db"))
        self._worker = Worker(job, self._say, copied=True)
        self._tasks = [asyncio.create_task(self._work(folder)), asyncio.create_task(self._watch())]

    async def _work(self, folder: tempfile.TemporaryDirectory[str]) -> None:
        assert self._worker is not None
        with folder:
            await self._worker.work()
        self._say(("gone",))

    async def _watch(self) -> None:
        while time.monotonic() - self._asked < LEASE:
            await asyncio.sleep(BEAT)
        os._exit(1)

    def _say(self, message: tuple[Any, ...]) -> None:
        if isinstance(message[-1], ConfigError):  # such as of a key that this machine lacks
            message = "error", ConfigError(f"on {socket.gethostname()}: {message[-1]}")
        self._said.append(portable(message))
        self._news.set()
