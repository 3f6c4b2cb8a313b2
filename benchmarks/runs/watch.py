"""Follow a run that is going on, from another terminal: a live table, or lines where there is none.

The run's file is opened anew for every look and only read, so that the run does not notice.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from llm_games.benchmarks.runs.grid import Grid, columns
from llm_games.benchmarks.runs.records import Records
from llm_games.benchmarks.runs.rows import EpisodeRow, GameRow
from llm_games.benchmarks.runs.spending import Spending, unsure
from llm_games.words import quoted
from llm_games.wrappers.clients.budget import Usage

INTERVAL = 1.0  # seconds between two looks
COUNTED = ("done", "void", "running", "pending")
LONGEST = 40  # characters of the last actions that are shown


class GameStand(NamedTuple):
    """Where one game stands: episodes by status, and what was decided and asked for so far.

    `broke` counts decisions against the rules; `calls` and `tokens` (in and out) are as booked, see
    `Spending`; `last` says where the last step was and what was done there.
    """

    label: str
    episodes: dict[str, int]
    decisions: int
    broke: int
    calls: int
    tokens: int
    last: str

    def cells(self) -> list[Any]:
        """Return the row of the table."""
        states = ", ".join(f"{many} {status}" for status, many in self.episodes.items() if many)
        return [self.label, states, *self[2:]]


class Stand(NamedTuple):
    """Where a run stands; `holder`: who plays it now, None if nobody does.

    `unknown` says what calls may have cost whose outcome is not known; "" if there are none.
    """

    title: str
    games: list[GameStand]
    holder: str | None
    unknown: str = ""

    @property
    def complete(self) -> bool:
        """Whether nothing is left to play."""
        return not any(game.episodes["running"] + game.episodes["pending"] for game in self.games)

    def table(self) -> Grid:
        """Return the table of the games."""
        heads = columns("game, episodes", "decisions, rule breaks, calls, tokens", ",")
        rows = [game.cells() for game in self.games]
        return Grid(heads | {"last actions": ""}, rows, note=self.unknown)

    def lines(self) -> list[str]:
        """Return one line for each game, and one of what is not known."""
        rows = [game.cells() for game in self.games]
        lines = [
            f"{label}: {states}; {decisions} decisions, {broke} rule breaks, {calls} calls, "
            f"{tokens} tokens{last and f'; {last}'}"
            for label, states, decisions, broke, calls, tokens, last in rows
        ]
        return [*lines, self.unknown] if self.unknown else lines


def look(path: Path) -> Stand:
    """Return where a run stands now."""
    with Records.open_readonly(path) as records:
        rows, spent = records.episodes(), Spending(records)
        games = [
            _game(
                records,
                game,
                [row for row in rows if row.game.id == game.id],
                spent.games[game.label],
            )
            for game in records.games()
        ]
        return Stand(records.title, games, records.holder(), unsure(spent.total))


def _game(records: Records, game: GameRow, rows: list[EpisodeRow], spent: Usage) -> GameStand:
    statuses: list[str] = [row.status for row in rows]
    said = ""
    if last := records.last_step(game.id):
        number, step, actions = last
        shown = ", ".join(map(_shown, actions))
        cut = shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
        said = f"{number}/{step}: {cut}"
    episodes = {status: statuses.count(status) for status in COUNTED}
    made = records.counts(game.id)
    return GameStand(game.label, episodes, *made, spent.calls, spent.tokens, said)


def _shown(action: Any) -> str:
    """Write an action; words are quoted."""
    return quoted(action) if isinstance(action, str) else "-" if action is None else str(action)


def stands(path: Path) -> Iterator[Stand]:
    """Give where a run stands, again and again until it is complete or nobody plays it."""
    yield (stand := look(path))
    while not stand.complete and stand.holder is not None:
        time.sleep(INTERVAL)
        yield (stand := look(path))


def watch(path: Path, console: Console) -> Stand:
    """Show where a run stands until it ends; return where that was.

    Raises:
        StoreError: the file is not a run that can be read.
        KeyboardInterrupt: Ctrl-C. The run itself goes on.
    """
    if console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            for stand in stands(path):
                who = f"played by {stand.holder}" if stand.holder else "nobody plays it now"
                head = Text(f"{stand.title} ({path}), {who}")
                live.update(Group(head, stand.table()), refresh=True)
        return stand
    before: list[str] = []
    for stand in stands(path):
        for line in (lines := stand.lines()):
            if line not in before:
                console.print(line, markup=False, highlight=False, soft_wrap=True)
        before = lines
    return stand
