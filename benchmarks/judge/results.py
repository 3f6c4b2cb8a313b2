"""What the games of a run came to, as numbers; `STATISTICS` declares those of all games.

Each is declared once: terminal, page, CSV files, ``--json``, viewer, `references` show it.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from llm_games.baselines.regret import conditional, has_deviation
from llm_games.benchmarks.judge import intervals, paper
from llm_games.benchmarks.judge.beside_people import MeasureRow, measure_rows
from llm_games.benchmarks.judge.graded_answers import GradedRow, graded_rows
from llm_games.benchmarks.judge.means import FREE, POSITIVE, Ends, MeanCell, averaged, brief
from llm_games.benchmarks.judge.paper import Measure
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import MARK, RecordedGame, Tally, games
from llm_games.errors import unknown
from llm_games.rulebook import Rulebook

if TYPE_CHECKING:
    from llm_games.benchmarks.judge.references import Reference

PAYOFFS = "payoffs"  # the name of each episode's payoffs by seat among what is worked out of a game
OUTPUTS = ("terminal", "page", "csv", "json")
"""Where a statistic is shown; the viewer shows what a terminal does."""


class Statistic(NamedTuple):
    """A number of a finished episode, and how its means are shown.

    `of` takes an episode and places of the configuration, whose seats are meant; None or NaN where
    it is not defined. `ends` are those of a mean over so many seats. Means have an `interval` from
    `least` episodes on. With `by_player` each player has one, too.
    """

    name: str
    of: Callable[[Any, Sequence[int]], float | None]
    form: str = ".2f"
    heading: str = ""  # of its columns, by default the name
    ends: Callable[[Rulebook, int], Ends] = lambda rules, seats: FREE
    interval: Callable[..., intervals.Interval | None] = intervals.money
    least: int = 2
    by_player: bool = False
    shown: Collection[str] = OUTPUTS
    better: str = ""

    @property
    def title(self) -> str:
        return self.heading or self.name

    @property
    def key(self) -> str:
        """Its name in ``--json``."""
        return self.name.replace(" ", "_")


def _regret(episode: Any, seats: Sequence[int]) -> float | None:
    """Sum over the rounds, mean over all seats."""
    return episode.seat_regret() if has_deviation(episode.rules.name) else None


PAYOFF = Statistic(
    "payoff",
    lambda episode, seats: episode.mean_payoff(seats),
    heading="payoff of a seat",
    ends=lambda rules, seats: rules.core.payable_mean(seats),
    by_player=True,
)
REGRET = Statistic("regret", _regret, ends=lambda rules, seats: POSITIVE, shown=("page",))
STATISTICS: Sequence[Statistic] = (PAYOFF, REGRET)


@cache
def score_by(edition: str) -> Statistic:
    """The score by an edition of the formulas, 0 to 100; UnknownName: there is none."""
    if edition not in paper.editions():
        raise unknown("edition", edition, paper.editions())
    return Statistic(
        "score",
        lambda episode, seats: paper.score_of(episode, edition),
        form=".1f",
        ends=lambda rules, seats: paper.SCORED,
        interval=intervals.score,
        better="higher",
    )


@cache
def measured_by(measure: Measure | None) -> Statistic:
    """What a paper judges a game by that has no score; None: nothing is."""
    if measure is None:
        return Statistic("measured", lambda episode, seats: None)
    return Statistic(
        "measured",
        lambda episode, seats: measure.of(episode),
        form=measure.form,
        heading=measure.name,
        ends=lambda rules, seats: measure.ends(rules),
        interval=intervals.score,
        least=measure.least,
        better=measure.better,
    )


def statistics_of(game: RecordedGame, editions: Sequence[str]) -> list[Statistic]:
    """All statistics of a game: its scores by these editions, its paper's measure, all others."""
    return [*map(score_by, editions), measured_by(paper.measure_of(game)), *STATISTICS]


def judged_by(game: RecordedGame, edition: str) -> Statistic | None:
    """What a game is judged by: a score, or its paper's measure; None: nothing."""
    owner, measure = paper.owner(game), paper.measure_of(game)
    if owner and owner.scoring:
        return score_by(edition)
    return measured_by(measure) if measure else None


# -- numbers of episodes ---------------------------------------------------------------------------
class Series(NamedTuple):
    """A statistic of some episodes in their order, NaN where it is not defined."""

    statistic: Statistic
    numbers: Sequence[float] = ()
    ends: Ends = FREE

    @property
    def known(self) -> list[float]:
        """The numbers without NaN."""
        return paper.known(self.numbers)

    @property
    def cell(self) -> MeanCell | None:
        """Mean, standard deviation and interval; None without a number."""
        interval, least = self.statistic.interval, self.statistic.least
        return averaged(interval, self.known, self.ends, least)

    @property
    def mean(self) -> MeanCell | None:
        """The same without the standard deviation."""
        return brief(self.cell)

    @property
    def plain_ends(self) -> list[float | None]:
        """The ends as plain values, None for what is infinite."""
        return [end if math.isfinite(end) else None for end in self.ends]


def work_out(game: RecordedGame, statistics: Sequence[Statistic]) -> Mapping[Statistic, Any]:
    """Numbers by statistic and player (None: all seats), worked out once, in one pass."""
    cached: dict[Statistic, Any] = game.cache.setdefault(__name__, {})
    missing = [statistic for statistic in dict.fromkeys(statistics) if statistic not in cached]
    if not missing:
        return cached
    places: dict[str | None, list[int]] = {None: [*range(len(game.seats))]}
    places |= {name: [i for i, n in enumerate(game.seats) if n == name] for name in game.players}
    columns: dict[Statistic, dict[str | None, array[float]]] = {
        statistic: {player: array("d") for player in (places if statistic.by_player else (None,))}
        for statistic in missing
    }
    payoffs = game.cache[PAYOFFS] = []
    for episode in game.done:
        payoffs.append(episode.payoffs)
        for statistic, by_player in columns.items():
            for player, numbers in by_player.items():
                number = statistic.of(episode, places[player])
                numbers.append(math.nan if number is None else number)
    cached.update(columns)
    return cached


def series(game: RecordedGame, statistic: Statistic, player: str | None = None) -> Series:
    """Of all seats, or of one player's; with the first all others of the game are worked out."""
    if statistic not in game.cache.get(__name__, ()):
        work_out(game, [statistic, *statistics_of(game, paper.editions())])
    numbers = game.cache[__name__][statistic][player]
    seats = len(game.seats) if player is None else game.seats.count(player)
    return Series(statistic, numbers, statistic.ends(game.rules, seats))


def scores(game: RecordedGame, edition: str) -> list[float]:
    """The scores of the episodes that have one, in their order."""
    return series(game, score_by(edition)).known


# -- results of games ------------------------------------------------------------------------------
@dataclass(frozen=True)
class GameResult:
    """One game of a run: its `label` there, and its name in the registry.

    `episodes` counts them by status. `series` are by statistic's name (``score``, ``measured``:
    what its paper's `measure` gives, ``payoff`` …), those of each player by player, too. `payoffs`
    are of each seat as configured, summed over an episode, mean over the finished ones.
    `bad_replies` counts completions that were not legal moves, by outcome, `bad_thoughts` the same
    of what players think of beside their moves, `filled_in` decisions by the declared treatment.
    `conditional` says where scores are of one draw, `meant` what is judged and what is paid.
    `measures` describe play, beside people's figures; `graded` scores answers to graded questions.
    """

    label: str
    game: str
    players: list[str]
    episodes: dict[str, int]
    series: dict[str, Series]
    series_by_player: dict[str, dict[str, Series]]
    payoffs: list[float]
    decisions: int
    bad_replies: dict[str, int]
    bad_thoughts: dict[str, int]
    filled_in: int
    measure: Measure | None
    conditional: str
    meant: str
    references: list[Reference]
    measures: list[MeasureRow]
    graded: list[GradedRow]

    @property
    def scores(self) -> list[float]:
        """Of the finished episodes, 0 to 100; empty where none is defined."""
        return self.series["score"].known

    @property
    def measured(self) -> list[float]:
        return self.series["measured"].known

    @property
    def cell(self) -> MeanCell | None:
        """The mean score."""
        return self.series["score"].cell

    @property
    def judged(self) -> MeanCell | None:
        """The mean of what the paper's measure gives."""
        return self.series["measured"].cell

    @property
    def payoff(self) -> MeanCell | None:
        """The mean payoff of a seat."""
        return self.series["payoff"].cell

    @property
    def paid(self) -> dict[str, MeanCell]:
        """The same by player, of the player's seats."""
        return self.cells_by_player("payoff")

    @property
    def payoff_of(self) -> dict[str, float]:
        return {name: payoff.mean for name, payoff in self.paid.items()}

    def cells_by_player(self, statistic: str) -> dict[str, MeanCell]:
        lines = self.series_by_player[statistic]
        return {name: cell for name, line in lines.items() if (cell := line.cell)}

    @property
    def marked(self) -> bool:
        """Whether too large a share of the decisions was filled in."""
        return self.filled_in > MARK * self.decisions

    def plain(self) -> dict[str, Any]:
        """Plain values; each player's payoffs are called ``paid``, as they have always been."""
        measure = self.measure and {
            **{"name": self.measure.name, "better": self.measure.better},
            **(self.judged.plain() if self.judged else dict.fromkeys(("mean", "std", "interval"))),
        }

        def named(*names: str) -> dict[str, Any]:
            return {name: getattr(self, name) for name in names}

        payoff, payoffs_by_player = self.series["payoff"], self.series_by_player["payoff"]
        keys = {name: line.statistic.key for name, line in self.series.items()}
        cells = {keys[name]: line.cell for name, line in self.series.items() if name != "measured"}
        by_player = {
            "paid" if name == "payoff" else f"{keys[name]}_by_player": {
                player: cell.plain() for player, cell in self.cells_by_player(name).items()
            }
            for name in self.series_by_player
        }
        return {
            **named("label", "game", "players", "episodes", "scores", "payoffs"),
            "payoff_of_a_seat": payoff.known,
            "payoffs_of": {player: line.known for player, line in payoffs_by_player.items()},
            **named("decisions", "bad_replies", "bad_thoughts", "filled_in"),
            "measure": measure,
            "measured": self.measured,
            "ends": self.series["measured"].plain_ends,
            "payable": payoff.plain_ends,
            "payable_by": {player: line.plain_ends for player, line in payoffs_by_player.items()},
            **named("conditional", "meant"),
            "references": [reference.plain() for reference in self.references],
            "measures": [row.plain() for row in self.measures],
            "graded": [row.plain() for row in self.graded],
            **{name: cell and cell.plain() for name, cell in cells.items()},
            **by_player,
            **named("marked", "payoff_of"),
        }


def run_results(records: Records, baselines: bool = False) -> list[GameResult]:
    """By game, scored by the run's own edition; with `baselines`, references too."""
    edition = paper.edition_of(records.config)
    return [game_result(game, edition, baselines) for game in games(records)]


def game_result(game: RecordedGame, edition: str, baselines: bool = False) -> GameResult:
    """Read what all episodes of a game came to."""
    from llm_games.benchmarks.judge.references import references  # which are of statistics, too

    shown = statistics_of(game, [edition])
    shown = [statistic for statistic in shown if {"terminal", "json"} & {*statistic.shown}]
    work_out(game, shown)  # first, so that only episodes whose steps have room are kept
    tally = Tally()
    for episode in game.episodes:
        tally.add(episode.tallies()[0])
    payoffs = np.array(game.cache[PAYOFFS], np.float64)  # (episodes, seats)
    return GameResult(
        label=game.label,
        game=game.name,
        players=game.players,
        episodes=dict(game.states),
        series={statistic.name: series(game, statistic) for statistic in shown},
        series_by_player={
            statistic.name: {player: series(game, statistic, player) for player in game.players}
            for statistic in shown
            if statistic.by_player
        },
        payoffs=payoffs.mean(axis=0).tolist() if len(payoffs) else [],
        decisions=tally.decisions,
        bad_replies=_bad(tally.moves),
        bad_thoughts=_bad(sum(tally.others.values(), Counter())),
        filled_in=tally.filled,
        measure=paper.measure_of(game),
        meant=paper.meant(game, edition),
        conditional=conditional(game.rules, game.planned.get("given")),
        references=references(game, edition) if baselines else [],
        measures=measure_rows(game),
        graded=graded_rows(game),
    )


def _bad(outcomes: Counter[str]) -> dict[str, int]:
    return {name: n for name, n in outcomes.items() if name not in ("unread", "valid", "tool")}


def total(results: Sequence[GameResult]) -> MeanCell | None:
    """The mean over a paper's benchmark, or over one measure's games, if each is there once."""
    measures = {id(game.measure): game.measure for game in results}
    measure = next(iter(measures.values()), None)
    if measure and len(measures) == 1 and len(results) > 1:
        return measure.overall([game.measured for game in results])
    return paper.overall([(game.game, game.scores) for game in results])
