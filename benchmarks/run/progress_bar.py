"""A progress bar for a terminal; elsewhere nothing is shown but what is logged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from llm_games.benchmarks.run.conduct import Counters, Watcher
from llm_games.wrappers.clients.retry import WORTH_TELLING


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
            "{task.completed:,.0f} of {task.total:,.0f} episodes, {task.description}",
            table_column=Column(no_wrap=False),  # in two lines rather than cut
        ),
        console=console,
        disable=quiet or not console.is_terminal,
        transient=True,
    )
    with bar:
        task = bar.add_task("starting", total=0)

        def watch(counters: Counters) -> None:
            bar.stand = counters
            if not bar.disable:
                calls = "call" if counters.in_flight == 1 else "calls"
                done = f"{counters.decisions:,} decisions, {counters.in_flight:,} {calls} in flight"
                done += f", {counters.broke:,} rule breaks" * bool(counters.broke)
                bar.update(task, total=counters.episodes, completed=counters.played)
                bar.update(task, description=done)

        yield watch
