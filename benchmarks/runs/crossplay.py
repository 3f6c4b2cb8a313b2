"""Cross-play from a file: every player with each, models too.

Line-ups of players that ask nobody are played in batches each time; those with a player that waits
for somebody are an ordinary run in a file of its own, so that no answer is lost and all of it can
be resumed, reported and viewed. Both have the same seeds and seats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, create_model, field_validator

from llm_games.baselines.crossplay import Cross, chosen, lineup, payoffs
from llm_games.baselines.seating import rotated, uneven
from llm_games.benchmarks.runs.config import (
    Config,
    ConfigError,
    Count,
    Episodes,
    GameSettings,
    SeatSettings,
    Settings,
    checked,
    load,
    parse,
)
from llm_games.benchmarks.runs.own import written
from llm_games.benchmarks.runs.plan import (
    Overrides,
    PlannedGame,
    PlannedSeat,
    RunPlan,
    params_of,
    resolve,
    short,
)
from llm_games.benchmarks.runs.reader import games
from llm_games.benchmarks.runs.records import Records
from llm_games.benchmarks.runs.run import planned, play_run, prolong, seated_players, start
from llm_games.benchmarks.runs.store import Store
from llm_games.errors import LLMGamesError
from llm_games.registry import game_class, rulebook
from llm_games.rulebook import Array, Rulebook
from llm_games.wrappers.policy import Policy

SHARED = [
    *("title", "seed", "player", "models", "cache", "budget", "prices"),
    *("max_attempts", "max_tables", "failed_reply"),
]
"""Keys that mean what they mean in a run."""
_shared = {
    name: (Config.model_fields[name].annotation, Config.model_fields[name]) for name in SHARED
}


class CrossSettings(create_model("Shared", __base__=Settings, **_shared)):  # type: ignore[misc]
    """The whole file."""

    game: str
    players: list[SeatSettings] = Field(min_length=2)
    lineups: Literal["all", "one"] | None = None  # see `chosen`
    episodes: Episodes = 20  # of each line-up
    params: dict[str, Any] = Field(default_factory=dict)
    talk: dict[str, Any] = Field(default_factory=dict)
    given: dict[str, Any] = Field(default_factory=dict)
    max_steps: Count | None = None

    _tables = field_validator("players", mode="before")(GameSettings._tables.__func__)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class CrossPlan:
    """What will be played: settings, players' names, objects by label, and line-ups as counts."""

    about: CrossSettings
    names: tuple[str, ...]
    source: str
    own: Mapping[str, Any]
    which: str
    counts: Array

    @cached_property
    def alone(self) -> RunPlan:
        """A run in which each player sits in all seats; it has all players, and the seeds."""
        return self.run([counts for counts in self.counts if counts.max() == counts.sum()])

    @cached_property
    def rules(self) -> Rulebook:
        """The game."""
        return self.alone.games[0].rules()

    def file(self) -> Path:
        """Return where what models answer is kept, unless another file is named."""
        path = Path(self.source)
        return Path(f"{path.stem if path.suffix else 'crossplay'}.db")

    def run(self, lineups: Sequence[Array]) -> RunPlan:
        """Return the run of some line-ups."""
        about = self.about.model_dump(exclude_unset=True)
        common = {key: about[key] for key in SHARED if key in about}
        game = {key: about[key] for key in ("params", "talk", "given", "max_steps") if key in about}
        game |= {"game": self.about.game, "chance": "cross-play", "order": "rotate"}
        players = [
            one.model_dump(exclude_none=True) | {"name": name}
            for one, name in zip(self.about.players, self.names, strict=True)
        ]
        tables = [
            game
            | {"label": lineup(self.names, counts), "episodes": self.about.episodes}
            | {"seats": [players[who] for who in np.repeat(np.arange(len(players)), counts)]}
            for counts in lineups
        ]
        raw = {"title": "Cross-play", **common, "games": tables}
        return resolve(parse(raw, self.source), self.source, Overrides(own=self.own))

    def uneven(self) -> str:
        """Say if seats are worth something and not all players have had each equally often."""
        widest = self.counts[(self.counts > 0).sum(axis=1).argmax()]
        players = np.repeat(np.arange(len(widest)), widest).tolist()
        rows = rotated(players)
        taken = [rows[number % len(rows)] for number in range(self.about.episodes)]
        return uneven(self.rules, players, taken)

    def each(self) -> list[PlannedSeat]:
        """Return the players as planned, in the order of `names`."""
        found = {game.seats[0].name: game.seats[0] for game in self.alone.games}
        return [found[name] for name in self.names]


def plan_of(source: str | Path | Mapping[str, Any], **changed: Any) -> CrossPlan:
    """Read and check a cross-play: a file, TOML, or what it holds; `changed` keys win over it.

    Raises:
        ConfigError: it cannot be played as it is described.
    """
    name = str(source)
    raw = dict(source if isinstance(source, Mapping) else load(name))
    name = "configuration" if isinstance(source, Mapping) or "\n" in name else name
    raw |= {key: value for key, value in changed.items() if value is not None}
    raw["seats"] = raw.pop("players", None)  # as which objects among them are written down
    raw, own = written(raw)
    raw["players"] = raw.pop("seats")
    if raw["players"] is None:
        raise ConfigError(f'{name}: the key players is missing, as in players = ["rational", ...]')
    about = checked(CrossSettings, raw, name)
    called = tuple(one.name or short(one.player) for one in about.players)
    if double := next((one for one in called if called.count(one) > 1), None):
        raise ConfigError(f"{name}: two players are called {double!r}; give one another name")
    try:
        own_seats = _without_own_seats(about)
        which, counts = chosen(len(called), own_seats.players, about.lineups)
    except LLMGamesError as error:
        raise ConfigError(f"{name}: {error}") from None
    return CrossPlan(about, called, name, own, which, counts)


def _without_own_seats(about: CrossSettings) -> Rulebook:
    """Return the game; a `ConfigError` says that some of its seats are somebody's own."""
    given = about.model_dump(include={"game", "params", "talk"})
    params = params_of(GameSettings(**given))
    for name in game_class(about.game).personal:
        value = params.get(name)
        if isinstance(value, list | tuple) and any(one != value[0] for one in value):
            raise ConfigError(
                f"{name} = {value!r} goes with a player, but in cross-play each player takes each "
                "seat: give one value for all"
            )
    return rulebook(about.game, **params)


# -- playing ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CrossPlayed:
    """A cross-play that was played: its plan, what it came to, and the file of models' answers."""

    plan: CrossPlan
    cross: Cross
    db: Path | None


def crossplay(
    source: str | Path | Mapping[str, Any],
    db: str | Path | None = None,
    *,
    use_cache: bool = True,
    **changed: Any,
) -> CrossPlayed:
    """Play a cross-play and return what it came to.

    `source` is a TOML file, TOML itself, or its content; `changed` are keys that win over it. Where
    a player asks a model, its line-ups are recorded in the file `db` (by default named after the
    source, in this folder), and only what is not there yet is played.

    Raises:
        ConfigError: it cannot be played as it is described, or `db` has another cross-play.
        RunStopped: models cannot be reached, or the budget is spent; the same call goes on.
    """
    plan = plan_of(source, **changed)
    path = Path(db) if db is not None else plan.file()
    ready = prepared(plan, path)
    if ready.run is not None:
        with seated_players(ready.run, use_cache) as made:
            play_run(ready.open, ready.run, made, resumed=ready.resumed)
    return ready.played()


@dataclass(frozen=True)
class Ready:
    """A cross-play about to be played.

    `players` are in the order of the plan's names. In the line-ups `asked`, rows of the plan's,
    somebody waits for an answer: they are the `run` (None: there is none), which may be `resumed`.
    """

    plan: CrossPlan
    path: Path
    players: Sequence[Policy]
    asked: Sequence[int]
    run: RunPlan | None
    resumed: bool

    def open(self) -> Store:
        """Open the run's file, new or to go on."""
        assert self.run is not None
        return Store.open(self.path) if self.resumed else start(self.run, self.path)

    def played(self, watch: Callable[[int], None] = lambda done: None) -> CrossPlayed:
        """Play all line-ups that ask nobody, read the others, and return all together.

        `watch` is told how many episodes are done, each time.
        """
        plan, many = self.plan, self.plan.about.episodes
        rules, seeds = plan.rules, plan.alone.games[0].seeds
        earned = np.full((len(plan.counts), rules.players, many), np.nan)
        free = np.setdiff1d(np.arange(len(earned)), self.asked)
        if len(free):
            there = np.flatnonzero(plan.counts[free].any(axis=0))
            players = [self.players[who] for who in there.tolist()]
            most, given = plan.about.max_steps, plan.about.given or None
            counts = plan.counts[np.ix_(free, there)]
            earned[free] = payoffs(rules, players, counts, seeds, most, given, True, watch)
        if self.run is not None:
            self._read(earned)
        payable = plan.rules.core.payable
        cross = Cross(plan.names, plan.which, plan.counts, earned, payable)
        return CrossPlayed(plan, cross, self._file)

    @property
    def _file(self) -> Path | None:
        return None if self.run is None else self.path

    def _read(self, earned: Array) -> None:
        rows = {lineup(self.plan.names, self.plan.counts[row]): row for row in self.asked}
        with Records.open_readonly(self.path) as records:
            for game in games(records):
                for episode in game.done:
                    if (number := episode.row.number) < earned.shape[2]:
                        earned[rows[game.label], :, number] = episode.payoffs


def prepared(plan: CrossPlan, path: Path) -> Ready:
    """Make all players, and look into the file of those who ask; raises as `crossplay`."""
    with seated_players(plan.alone, use_cache=False) as made:
        players = [made[seat.key] for seat in plan.each()]
    waits = [seat.asks or player.waits for seat, player in zip(plan.each(), players, strict=True)]
    asked: list[int] = np.flatnonzero(plan.counts @ np.array(waits, np.int64)).tolist()
    if not asked:
        return Ready(plan, path, players, asked, None, False)
    run = plan.run([plan.counts[row] for row in asked])
    if resumed := path.exists():
        run = _resumed(run, path, plan.about.episodes)
    return Ready(plan, path, players, asked, run, resumed)


def _resumed(run: RunPlan, path: Path, episodes: int) -> RunPlan:
    """Check that a file holds this run, prolong it if it has fewer episodes, and return the run.

    A file with more episodes is finished first; those beyond `episodes` are left out.
    """
    with Records.open_readonly(path) as records:
        kept = planned(records)
    fewer = max((len(game.seeds) for game in kept.games), default=0) < episodes
    longer = kept.longer(episodes) if fewer else kept
    if [_first(game, episodes) for game in longer.games] != run.games:
        raise ConfigError(
            f"{path} has another run: other players, settings, seeds or line-ups. Name another "
            "file with --db; a cache in the TOML file keeps replies at temperature 0 for both"
        )
    if fewer:
        prolong(path, episodes)
    return run.model_copy(update={"games": longer.games})


def _first(game: PlannedGame, episodes: int) -> PlannedGame:
    return game.model_copy(update={"seeds": game.seeds[:episodes], "prolonged": []})
