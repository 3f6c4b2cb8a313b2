"""A progress bar for a terminal; elsewhere nothing is shown but what is logged."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from llm_games.benchmarks.run.conduct import Counters, Watcher
from llm_games.wrappers.clients.retry import WORTH_TELLING

SURE = 0.02  # of a run has to be over, to tell how many decisions there will be
TELLING = 5.0  # seconds after which a run says how long it will about take


class _ProgressBar(Progress):
    """A bar, and below it what calls wait for, also between steps."""

    stand = Counters()

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        if self.stand.flights.ended and len(self.stand.flights):
            yield Text(str(self.stand.flights), "yellow")
        for wait in [*self.stand.waits.values()]:
            if wait.seconds > WORTH_TELLING:
                yield Text(str(wait), "yellow")


@contextmanager
def progress(console: Console, quiet: bool = False) -> Iterator[Watcher]:
    """The bar, as what a run calls after every step."""
    bar = _ProgressBar(
        TimeElapsedColumn(),
        BarColumn(bar_width=12),
        TextColumn(
            "{task.description}",
            table_column=Column(no_wrap=False),  # in two lines rather than cut
        ),
        console=console,
        disable=quiet or not console.is_terminal,
        transient=True,
    )
    with bar:
        task = bar.add_task("0 of 0 episodes, starting", total=0)
        began, first = time.monotonic(), -1.0

        def watch(counters: Counters) -> None:
            nonlocal first
            bar.stand, done_episodes = counters, counters.played + counters.under_way
            first = done_episodes if first < 0 else first
            if not bar.disable:
                calls = f"{counters.in_flight:,} call{'s' * (counters.in_flight != 1)}"
                done = f"{counters.played:,} of {counters.episodes:,} episodes, "
                planned = _planned(counters) if first == 0 else ""
                done += f"{counters.decisions:,}{planned} decisions, {calls} in flight"
                done += f", {counters.broke:,} rule breaks" * bool(counters.broke)
                left = counters.episodes - done_episodes, done_episodes - first
                done += _rest(*left, time.monotonic() - began)
                bar.update(task, total=counters.episodes, completed=done_episodes)
                bar.update(task, description=done)

        yield watch


def _planned(counters: Counters) -> str:
    """Say of how many decisions, to judge by the part of the run that is over."""
    part = (counters.played + counters.under_way) / max(counters.episodes, 1)
    return f" of about {counters.decisions / part:,.0f}" if part > SURE else ""


def _rest(left: float, done: float, seconds: float) -> str:
    """Say how long what is left will about take, once enough is done to tell."""
    if done <= 0 or seconds < TELLING:
        return ""
    rest = seconds * left / done
    return f", about {rest / 60:,.0f} min left" if rest >= 90 else f", about {rest:.0f} s left"
