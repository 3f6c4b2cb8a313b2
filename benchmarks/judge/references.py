"""Reference rows: what players that follow a rule come to at the table of a recorded game.

They sit where its language models sat (and people, and policies of one's own); rule players that
were there stay; beside one of them who always does the same the best response is one, too. Where
none but rule players sat, a reference takes all seats. All are played `EPISODES` times (`FEW` where
turns can be very many), by chance of their own, in the game's own seatings, and kept on disk.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines import regret as theory
from llm_games.baselines.batch_play import LONGEST, BatchEpisodes, TooManyTurns, play_rules
from llm_games.baselines.disk_arrays import Arrays, remember
from llm_games.baselines.players import rule_of
from llm_games.benchmarks.judge import paper
from llm_games.benchmarks.judge.means import MeanCell
from llm_games.benchmarks.judge.player_skill import reason
from llm_games.benchmarks.judge.results import Series, Statistic, statistics_of
from llm_games.benchmarks.judge.scenario_scores import focal, is_scenario
from llm_games.benchmarks.record.recorded_games import RecordedGame
from llm_games.errors import BadParameter
from llm_games.registry import game_class, rulebook
from llm_games.rulebook import Array, Rulebook, seated
from llm_games.version import __version__

PLAYERS = "rational", "cooperative", "random"
BESIDE = "best_response"  # another one where a seat always does the same, whatever is rational
EPISODES = 50
FEW = 5
OWN = "own "  # before the name of what the seats that a reference took came to
AT_ONCE = 1000  # moves of tables whose regret is worked out together


class Reference(NamedTuple):
    """What one rule player came to, by statistic's name; empty where it is not defined.

    `claim` says what ``rational`` is in the game; `why` says why there is nothing. `series` are of
    the whole table, `own_series` of the seats that the reference took.
    """

    player: str
    claim: str
    series: Mapping[str, Series]
    own_series: Mapping[str, Series]
    why: str = ""

    @property
    def scores(self) -> list[float]:
        return self.series["score"].known

    @property
    def measured(self) -> list[float]:
        return self.series["measured"].known

    @property
    def payoffs(self) -> list[float]:
        """Payoffs of a seat of the table."""
        return self.series["payoff"].known

    @property
    def own(self) -> list[float]:
        """Payoffs of a seat that the reference took."""
        return self.own_series["payoff"].known

    @property
    def regret(self) -> list[float]:
        """What a seat could have gained, see `RecordedEpisode.seat_regret`."""
        return self.series["regret"].known

    @property
    def n(self) -> int:
        return len(self.payoffs)

    @property
    def about(self) -> str:
        """Say what it is, or why there is nothing."""
        return f"no reference: {self.why}" if self.why else f"reference {self.claim}".strip()

    @property
    def name(self) -> str:
        """Say who it is, and what ``rational`` is in the game."""
        return f"{self.player} ({self.claim})" if self.claim else self.player

    def plain(self) -> dict[str, Any]:
        """Plain values: means with their intervals, and n."""
        cells: dict[str, MeanCell | None] = {}
        for name, line in self.series.items():
            key = line.statistic.key
            cells[key] = line.cell
            if name in self.own_series:
                cells[f"{key}_of_own_seats"] = self.own_series[name].cell
        means = {name: cell and cell.plain() for name, cell in cells.items()}
        return {"player": self.player, "claim": self.claim, "n": self.n, "why": self.why} | means


def references(game: RecordedGame, edition: str) -> list[Reference]:
    """Return the references of a recorded game that are defined in it, worked out once.

    None of a branch: who plays the whole game is none to what began midway.
    """
    if game.planned.get("branch"):
        return []
    name = f"{__name__} {edition}"
    if name not in game.cache:
        fixed = any(name.partition(":")[0] == "fixed" for name in _planned(game))
        players = (*PLAYERS[:1], *[BESIDE] * fixed, *PLAYERS[1:])
        defined = [player for player in players if rule_of(player, game.name)]
        game.cache[name] = [_reference(game, player, edition) for player in defined]
    cached: list[Reference] = game.cache[name]
    return cached


def overalls(games: Iterable[tuple[str, Sequence[Reference]]]) -> dict[str, MeanCell]:
    """Return each reference's mean over a whole benchmark, from games' names and references."""
    scores: dict[str, list[tuple[str, Sequence[float]]]] = {}
    for game, rows in games:
        for row in rows:
            scores.setdefault(row.player, []).append((game, row.scores))
    means = {name: paper.overall(rows) for name, rows in scores.items() if all(v for _, v in rows)}
    return {name: mean for name, mean in means.items() if mean}


def _reference(game: RecordedGame, player: str, edition: str) -> Reference:
    statistics = statistics_of(game, [edition])
    claim, why, seats, numbers = "", "", game.rules.players, dict[str, Any]()
    try:
        if player == "rational" and theory.has(game.name, "rational"):
            claim = theory.rational(game.rules).kind
        table = _ReferenceTable.of(game, player)
        seats = len(table.positions)
        if type(game.rules).__module__.startswith("llm_games.games."):
            name = table.name(edition, [statistic.title for statistic in statistics])
            numbers = remember(name, lambda: table.played(game, edition, statistics))
        else:  # rules of one's own may change without a version
            numbers = table.played(game, edition, statistics)
        why = str(numbers.pop("why", ""))
    except Exception as error:  # costs only this row
        why, numbers = reason(error), {}

    def series(statistic: Statistic, prefix: str, seats: int) -> Series:
        column = np.asarray(numbers.get(prefix + statistic.name, ())).tolist()
        return Series(statistic, paper.known(column), statistic.ends(game.rules, seats))

    return Reference(
        player=player,
        claim="" if why else claim,
        series={s.name: series(s, "", game.rules.players) for s in statistics},
        own_series={s.name: series(s, OWN, seats) for s in statistics if s.by_player},
        why=why,
    )


def _planned(game: RecordedGame) -> Sequence[str]:
    return [str(seat["player"]) for seat in game.planned.get("seats", ())] or game.seats


class _ReferenceTable(NamedTuple):
    """What is played: who sits at each place as configured, and in which seatings."""

    game: str
    params: Mapping[str, Any]
    names: list[str]
    positions: list[int]  # places that the reference takes
    seatings: list[list[int]]
    fixed_chance: Mapping[str, Any] | None
    max_steps: int | None

    @classmethod
    def of(cls, game: RecordedGame, player: str) -> _ReferenceTable:
        planned = _planned(game)
        follow = [rule_of(name.partition(":")[0], game.name) is not None for name in planned]
        positions = [i for i, rule in enumerate(follow) if not rule] or [*range(len(planned))]
        if is_scenario(game.planned):
            positions = focal([seat["name"] for seat in game.planned["seats"]])
        names = [player if i in positions else name for i, name in enumerate(planned)]
        usual = [list(range(len(names)))]
        seatings = [list(s) for s in dict.fromkeys(tuple(row.seating) for row in game.rows)]
        return cls(
            game=game.name,
            params=game.params,
            names=names,
            positions=positions,
            seatings=seatings[:EPISODES] or usual,
            fixed_chance=game.given,
            max_steps=game.planned.get("max_steps"),
        )

    def name(self, edition: str, statistics: Sequence[str]) -> str:
        """Return the name under which it is kept: all that the results depend on."""
        rules = game_class(self.game).edition
        parts = [__version__, rules, edition, statistics, EPISODES, FEW, self]
        about = json.dumps(parts, default=str, sort_keys=True)
        return f"reference_{self.game}_{sha256(about.encode()).hexdigest()[:24]}"

    def played(self, game: RecordedGame, edition: str, statistics: Sequence[Statistic]) -> Arrays:
        """Play it; NaN for what is not defined. If it takes too many turns, only `why`."""
        numbers_by_name: dict[str, list[float]] = {}
        first = int(sha256(self.game.encode()).hexdigest()[:12], 16)  # independent of other games
        long = game.rules.turns and game.rules.core.length() > LONGEST
        episodes = FEW if long else EPISODES
        seatings = self.seatings[:episodes]
        for number, seating in enumerate(seatings):
            rules = rulebook(self.game, **seated(game_class(self.game), self.params, seating)).core
            seeds = range(first + number, first + episodes, len(seatings))
            players = [self.names[position] for position in seating]
            try:
                played = play_rules(rules, players, seeds, self.fixed_chance, self.max_steps)
            except TooManyTurns as error:
                return {"why": np.array(str(error))}
            regret = _regret(rules, played)
            for table, payoffs in enumerate(played.payoffs[np.argsort(seating)].T):
                episode = _ReferenceEpisode(
                    rules=rules,
                    seats=players,
                    played=played,
                    table=table,
                    seating=seating,
                    payoffs=payoffs,
                    planned=game.planned,
                    regrets=regret,
                )
                for key, value in self.numbers(episode, statistics):
                    numbers_by_name.setdefault(key, []).append(np.nan if value is None else value)
        return {name: np.array(values, np.float64) for name, values in numbers_by_name.items()}

    def numbers(
        self, episode: _ReferenceEpisode, statistics: Sequence[Statistic]
    ) -> Iterator[tuple[str, float | None]]:
        """Yield the statistics of an episode: of all seats, and of those that are taken."""
        for statistic in statistics:
            yield statistic.name, statistic.of(episode, [*range(len(self.names))])
            if statistic.by_player:
                yield OWN + statistic.name, statistic.of(episode, self.positions)


@dataclass(frozen=True)
class _ReferenceEpisode:
    """An episode as papers' measures read one; nobody in it was asked for a reply."""

    rules: Rulebook
    seats: Sequence[str]
    played: BatchEpisodes
    table: int
    seating: Sequence[int]
    payoffs: Array
    planned: Mapping[str, Any]
    regrets: Array  # of all tables

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """What happened, step by step, as a file has it; of a long game not to be asked idly."""
        return self.played.records_of(self.table)

    def attempts(self) -> list[Any]:
        return []

    def decisions(self) -> list[Any]:
        return []

    def mean_payoff(self, places: Collection[int]) -> float:
        seats = [seat for seat, position in enumerate(self.seating) if position in places]
        return float(self.played.payoffs[seats].mean(axis=0)[self.table])

    def seat_regret(self) -> float:
        return float(self.regrets[self.table])


def _regret(rules: Rulebook, played: BatchEpisodes) -> Array:
    """Return what a seat lost in hindsight in each episode, mean over seats; NaN if unknown."""
    if not theory.has(rules.name, "deviation"):
        return np.full(len(played.lengths), np.nan)
    lost, records = np.zeros(len(played.lengths)), played.records
    count = max(1, AT_ONCE // len(lost))
    for first in range(0, len(records), count):
        steps = theory.stacked(records[first : first + count])
        try:
            regret = theory.deviation(rules, steps).regret.mean(axis=0)
        except BadParameter:  # too large to be solved
            return np.full(len(lost), np.nan)
        number = first + np.arange(regret.shape[-1])
        lost += np.where(number < played.lengths[:, None], regret, 0.0).sum(axis=-1)
    return lost
