"""Follow a run that is going on, from another terminal: a live table, or lines where there is none.

The run's file is opened anew for every look and only read, so that the run does not notice.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from llm_games.benchmarks.runs.grid import Grid, columns
from llm_games.benchmarks.runs.records import EpisodeRow, Records

INTERVAL = 1.0
"""Seconds between two looks."""
COUNTED = ("done", "void", "running", "pending")
LONGEST = 40
"""Characters of the last actions that are shown."""


class GameStand(NamedTuple):
    """Where one game stands.

    Attributes:
        label: of the game.
        episodes: how many have each status.
        decisions, broke: made so far, and those against the rules.
        calls, tokens: of language models, in and out together.
        last: where the last step was and what was done there; "" before the first.
    """

    label: str
    episodes: dict[str, int]
    decisions: int
    broke: int
    calls: int
    tokens: int
    last: str

    def cells(self) -> list[str]:
        """Return the row of the table."""
        states = ", ".join(f"{many} {status}" for status, many in self.episodes.items() if many)
        return [self.label, states, *map(str, self[2:])]


class Stand(NamedTuple):
    """Where a run stands; `holder`: who plays it now, None if nobody does."""

    title: str
    games: list[GameStand]
    holder: str | None

    @property
    def complete(self) -> bool:
        """Whether nothing is left to play."""
        return not any(game.episodes["running"] + game.episodes["pending"] for game in self.games)

    def table(self) -> Grid:
        """Return the table of the games."""
        heads = columns("game, episodes, decisions, rule breaks, calls, tokens, last actions")
        return Grid(heads, [game.cells() for game in self.games])

    def lines(self) -> list[str]:
        """Return one line for each game."""
        lines = []
        for game in self.games:
            label, states, decisions, broke, calls, tokens, last = game.cells()
            lines.append(
                f"{label}: {states}; {decisions} decisions, {broke} rule breaks, {calls} calls, "
                f"{tokens} tokens{f'; {last}' if last else ''}"
            )
        return lines


def look(path: Path) -> Stand:
    """Return where a run stands now.

    Raises:
        StoreError: the file is not a run that can be read.
    """
    with Records.open_readonly(path) as records:
        rows = records.episodes()
        games = [
            _game(records, game.id, game.label, [row for row in rows if row.game.id == game.id])
            for game in records.games()
        ]
        return Stand(records.title, games, records.holder())


def _game(records: Records, game: int, label: str, rows: list[EpisodeRow]) -> GameStand:
    statuses: list[str] = [row.status for row in rows]
    last = records.last_step(game)
    said = ""
    if last is not None:
        number, step, actions = last
        shown = ", ".join("-" if action is None else str(action) for action in actions)
        cut = shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
        said = f"{number}/{step}: {cut}"
    episodes = {status: statuses.count(status) for status in COUNTED}
    return GameStand(label, episodes, *records.counts(game), said)


def stands(path: Path, interval: float = INTERVAL) -> Iterator[Stand]:
    """Give where a run stands, again and again until it is complete or nobody plays it."""
    while True:
        stand = look(path)
        yield stand
        if stand.complete or stand.holder is None:
            return
        time.sleep(interval)


def watch(path: Path, console: Console, interval: float = INTERVAL) -> Stand:
    """Show where a run stands until it ends; return where that was.

    Raises:
        StoreError: the file is not a run that can be read.
        KeyboardInterrupt: Ctrl-C. The run itself goes on.
    """
    show = _live if console.is_terminal else _plain
    return show(path, console, interval)


def _live(path: Path, console: Console, interval: float) -> Stand:
    with Live(console=console, auto_refresh=False) as live:
        for stand in stands(path, interval):
            who = f"played by {stand.holder}" if stand.holder else "nobody plays it now"
            live.update(Group(Text(f"{stand.title} ({path}), {who}"), stand.table()), refresh=True)
    return stand


def _plain(path: Path, console: Console, interval: float) -> Stand:
    before: list[str] = []
    for stand in stands(path, interval):
        for line in (lines := stand.lines()):
            if line not in before:
                console.print(line, markup=False, highlight=False, soft_wrap=True)
        before = lines
    return stand
