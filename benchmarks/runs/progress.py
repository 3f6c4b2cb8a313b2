"""A progress bar for a terminal; elsewhere nothing is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from llm_games.benchmarks.runs.run import Counters, Watcher


@contextmanager
def progress(console: Console, quiet: bool = False) -> Iterator[Watcher]:
    """Give what a run calls after every step."""
    bar = Progress(
        TextColumn("{task.completed:.0f} of {task.total:.0f} episodes"),
        BarColumn(bar_width=12),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        disable=quiet or not console.is_terminal,
        transient=True,
    )
    with bar:
        task = bar.add_task("starting", total=0)

        def watch(now: Counters) -> None:
            if not bar.disable:
                stand = f"{now.decisions} decisions, {now.in_flight} calls in flight, "
                stand += f"{now.broke} rule breaks"
                bar.update(task, total=now.episodes, completed=now.played, description=stand)

        yield watch
