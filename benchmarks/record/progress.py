"""Where a run stands, read in one short look at its file."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.schema import EpisodeRow, GameRow
from llm_games.benchmarks.record.spending import Spending
from llm_games.words import quoted

LONGEST = 40  # characters of the last actions that are shown


class GameProgress(NamedTuple):
    """One game of a run, its episodes, and how many of these have each status.

    `rule_breaks` (decisions) and `last_actions` are read for `run_progress` with `moves`.
    """

    game: GameRow
    episodes: list[EpisodeRow]
    statuses: Counter[str]
    decisions: int = 0
    rule_breaks: int = 0
    last_actions: str = ""

    @property
    def ended(self) -> int:
        return self.statuses["done"] + self.statuses["void"]


class RunProgress(NamedTuple):
    """All games of a run; `holder` says who plays it now, None if nobody does."""

    title: str
    package: str
    created: str
    config: dict[str, Any]
    games: list[GameProgress]
    holder: str | None
    spent: Spending

    @property
    def episodes(self) -> int:
        return sum(len(game.episodes) for game in self.games)

    @property
    def ended(self) -> int:
        return sum(game.ended for game in self.games)

    @property
    def complete(self) -> bool:
        return self.ended == self.episodes

    @property
    def state(self) -> str:
        """One word: ``live``, ``complete``, or ``stopped`` where nobody plays what is left."""
        if self.holder is not None:
            return "live"
        return "complete" if self.complete else "stopped"

    @property
    def key(self) -> tuple[Any, ...]:
        """What scores and reports depend on, in little."""
        return self.created, self.ended, self.state

    @property
    def players(self) -> list[str]:
        return list(dict.fromkeys(name for game in self.games for name in game.game.seats))

    @property
    def priced(self) -> bool:
        return bool(self.config.get("prices"))

    def named(self, label: str) -> GameProgress | None:
        return next((game for game in self.games if game.game.label == label), None)


def run_progress(records: Records, moves: bool = False) -> RunProgress:
    """Read where a run stands; with `moves` also what was done, which takes longer."""
    episodes: dict[int, list[EpisodeRow]] = {}
    for episode in records.episodes():
        episodes.setdefault(episode.game.id, []).append(episode)
    return RunProgress(
        title=records.title,
        package=records.package,
        created=records.created,
        config=records.config,
        games=[_game(records, game, episodes.get(game.id, []), moves) for game in records.games()],
        holder=records.holder(),
        spent=Spending(records),
    )


def _game(records: Records, game: GameRow, episodes: list[EpisodeRow], moves: bool) -> GameProgress:
    progress = GameProgress(game, episodes, Counter[str](episode.status for episode in episodes))
    if not moves:
        return progress
    decisions, breaks = records.counts(game.id)
    text = ""
    if last_step := records.last_step(game.id):
        episode, step, actions = last_step
        listed = ", ".join(map(_action_text, actions))
        listed = listed if len(listed) <= LONGEST else f"{listed[: LONGEST - 1]}…"
        text = f"episode {episode}, step {step}: {listed}"
    return progress._replace(decisions=decisions, rule_breaks=breaks, last_actions=text)


def _action_text(action: Any) -> str:
    """Words are quoted."""
    return quoted(action) if isinstance(action, str) else "-" if action is None else str(action)
