"""Where a run stands, read in one short look at its file."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from llm_games.benchmarks.runs.records import Records
from llm_games.benchmarks.runs.rows import EpisodeRow, GameRow
from llm_games.benchmarks.runs.spending import Spending


class GameStand(NamedTuple):
    """One game of a run: its row, its episodes, and how many of these have each status."""

    row: GameRow
    episodes: list[EpisodeRow]
    states: Counter[str]

    @property
    def ended(self) -> int:
        """Episodes that are done or void."""
        return self.states["done"] + self.states["void"]


class Stand(NamedTuple):
    """Where a run stands; `holder` says who plays it now, None if nobody does."""

    title: str
    package: str
    created: str
    config: dict[str, Any]
    games: list[GameStand]
    holder: str | None
    spent: Spending

    @property
    def episodes(self) -> int:
        """All episodes."""
        return sum(len(game.episodes) for game in self.games)

    @property
    def ended(self) -> int:
        """Episodes that are done or void."""
        return sum(game.ended for game in self.games)

    @property
    def state(self) -> str:
        """One word: ``live``, ``complete``, or ``stopped`` where nobody plays what is left."""
        if self.holder is not None:
            return "live"
        return "complete" if self.ended == self.episodes else "stopped"

    @property
    def key(self) -> tuple[Any, ...]:
        """What scores and reports depend on, in little."""
        return self.created, self.ended, self.state

    @property
    def players(self) -> list[str]:
        """The players' names, each once."""
        return list(dict.fromkeys(name for game in self.games for name in game.row.seats))

    @property
    def priced(self) -> bool:
        """Whether costs mean anything."""
        return bool(self.config.get("prices"))

    def named(self, label: str) -> GameStand | None:
        """Return the game of a label."""
        return next((game for game in self.games if game.row.label == label), None)


def stand(records: Records) -> Stand:
    """Read where a run stands."""
    rows: dict[int, list[EpisodeRow]] = {}
    for row in records.episodes():
        rows.setdefault(row.game.id, []).append(row)
    games = []
    for game in records.games():
        mine = rows.get(game.id, [])
        games.append(GameStand(game, mine, Counter[str](row.status for row in mine)))
    about = records.title, records.package, records.created, records.config
    return Stand(*about, games, records.holder(), Spending(records))
