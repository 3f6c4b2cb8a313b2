"""Follow a run from another terminal: a live table, or lines; each look opens the file anew."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from llm_games.benchmarks.judge.result_table import ResultTable, columns
from llm_games.benchmarks.record.progress import RunProgress, run_progress
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.spending import unsure

INTERVAL = 1.0  # seconds between two looks
COUNTED = ("done", "void", "running", "pending")


def look(path: Path) -> RunProgress:
    with Records.open_readonly(path) as records:
        return run_progress(records, moves=True)


def cells(progress: RunProgress) -> Iterator[list[Any]]:
    """Calls and tokens are as booked, see `Spending`."""
    for game in progress.games:
        statuses = [f"{n} {status}" for status in COUNTED if (n := game.statuses[status])]
        usage = progress.spent.games[game.game.label]
        counts = game.decisions, game.rule_breaks, usage.calls, usage.tokens
        yield [game.game.label, ", ".join(statuses), *counts, game.last_actions]


def table(progress: RunProgress) -> ResultTable:
    heads = columns("game, episodes", "decisions, rule breaks, calls, tokens", ",")
    note = unsure(progress.spent.total)
    return ResultTable(heads | {"last actions": ""}, [*cells(progress)], note=note)


def lines(progress: RunProgress) -> list[str]:
    games = [
        f"{label}: {statuses}; {decisions} decisions, {rule_breaks} rule breaks, {calls} calls, "
        f"{tokens} tokens{last_actions and f'; {last_actions}'}"
        for label, statuses, decisions, rule_breaks, calls, tokens, last_actions in cells(progress)
    ]
    return [*games, *filter(None, [unsure(progress.spent.total)])]


def looks(path: Path) -> Iterator[RunProgress]:
    """Again and again, until the run is complete or nobody plays it."""
    yield (progress := look(path))
    while not progress.complete and progress.holder is not None:
        time.sleep(INTERVAL)
        yield (progress := look(path))


def watch(path: Path, console: Console) -> RunProgress:
    """Show where a run stands until it ends or Ctrl-C; StoreError: it cannot be read."""
    if console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            for progress in looks(path):
                state = f"played by {progress.holder}" if progress.holder else "nobody plays it now"
                head = Text(f"{progress.title} ({path}), {state}")
                live.update(Group(head, table(progress)), refresh=True)
        return progress
    previous: list[str] = []
    for progress in looks(path):
        for line in lines(progress):
            if line not in previous:
                console.print(line, markup=False, highlight=False, soft_wrap=True)
        previous = lines(progress)
    return progress
