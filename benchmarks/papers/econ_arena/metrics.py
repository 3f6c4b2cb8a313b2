"""Economics Arena: metrics of recorded sessions, its tables from them, and the published tables.

Source: *Economics Arena for Large Language Models*, sections 3 and 4, equations 1 to 4, Tables 1
and 2. Sums are exact fractions. A run is one round, a session one episode. Equilibrium: in the
beauty contest everybody names the lowest number (the highest for ratios above 1); in the
second-price auction everybody bids its valuation as far as its assets go. None: undefined.
"""

from __future__ import annotations

import math
import statistics
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from llm_games.benchmarks.judge.means import FREE, POSITIVE, SHARE, Ends, MeanCell, estimated, paid
from llm_games.benchmarks.judge.paper import SCORED, Record, printed
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame
from llm_games.errors import unknown
from llm_games.questions import MISSING
from llm_games.rulebook import Array

MEASURES = ("scaled", "ratio", "absolute")
"""Deviation in the beauty contest: ``scaled``, the distance from the equilibrium number as a share
of the range; ``ratio``, the paper's equation 3, which is not defined where that number is 0;
``absolute``, the distance."""


class PlayerRun(NamedTuple):
    """One player in one run. None is undefined, or needs a legal action.

    `payoff`: the share of the prize or the gain, fee included; `advantage`: its excess over
    equilibrium; `ratio`: to that in equilibrium, of an auction final assets to those; `deviation`:
    d of equation 3, of an auction the distance of `ratio` from 1; `position`: the action within its
    range, 0 to 1, of an auction bid to valuation; `won`: alone or with others; `broke`: "",
    "format" or "range". Auctions only: final assets to assets, and |bid - value| / value.
    """

    payoff: Fraction
    advantage: Fraction | None
    ratio: Fraction | None
    deviation: Fraction | None
    position: Fraction | None
    won: bool
    broke: str
    asset_ratio: Fraction | None = None
    misbid: Fraction | None = None


def is_contest(rules: Any) -> bool:
    """Return whether a game is a beauty contest; the arena's others are auctions."""
    return bool(rules.name == "beauty_contest")


def owns(rules: Any) -> bool:
    """Return whether a game is of the arena: a shared prize, or an auction with assets."""
    return rules.prize_rule == "split" if is_contest(rules) else rules.name == "budget_auction"


def player_runs(session: RecordedEpisode, measure: str = "scaled") -> list[list[PlayerRun]]:
    """Every seat's action and result, a list by seat for each run; UnknownName: no such measure."""
    if measure not in MEASURES:
        raise unknown("measure", measure, MEASURES)
    game, kinds = session.rules, {"beauty_contest": _contest, "budget_auction": _auction}
    if game.name not in kinds:
        raise unknown("game of the arena", game.name, kinds)
    plain = [{key: np.asarray(x).tolist() for key, x in r.items()} for r in session.records]
    return [list(kinds[game.name](game, record, measure)) for record in plain]


def _contest(game: Any, record: Record, measure: str) -> Iterator[PlayerRun]:
    low = Fraction(game.min)
    high = Fraction(record.get("limit", int(game.max * game.unit)), game.unit)
    goal = {-1: low, 0: None, 1: high}[(game.ratio > 1) - (game.ratio < 1)]

    def deviation(number: Fraction | None) -> Fraction | None:
        if number is None or goal is None or (measure == "ratio" and not goal):
            return None
        width = {"scaled": high - low, "ratio": goal, "absolute": Fraction(1)}[measure]
        return abs((number - goal) / width)

    reference, share = _pays(game, game.players), _pays(game, max(sum(record["winners"]), 1))
    columns = (record[key] for key in ("legal", "winners"))
    for action, legal, won in zip(_answers(record), *columns, strict=True):
        number = Fraction(action, game.unit) if legal else None
        payoff = share if won else Fraction(0) if legal else -Fraction(game.foul_fee)
        yield PlayerRun(
            payoff,
            advantage=payoff - reference,
            ratio=payoff / reference if reference else None,
            deviation=deviation(number),
            position=None if number is None else (number - low) / (high - low),
            won=won,
            broke=_broke(action, legal),
        )


def _pays(game: Any, winners: int) -> Fraction:
    """Return a contest's prize for each of `winners` winners."""
    prize = Fraction(game.prize)
    alone = prize * (winners == 1)
    pays = {"split": prize / winners, "exclusive": alone, "amplified": prize * winners}
    return pays.get(game.prize_rule, prize)


def _auction(game: Any, record: Record, measure: str) -> Iterator[PlayerRun]:
    best = equilibrium_assets(record) if game.price == "second" else [None] * game.players
    columns = (record[key] for key in ("legal", "valuations", "assets", "final"))
    seats = enumerate(zip(_answers(record), *columns, strict=True))
    for seat, (bid, legal, value, assets, final) in seats:
        stable = best[seat]
        ratio = None if stable is None else Fraction(final, stable)
        yield PlayerRun(
            payoff=Fraction(final - assets, game.unit),
            advantage=None if stable is None else Fraction(final - stable, game.unit),
            ratio=ratio,
            deviation=abs(ratio - 1) if legal and ratio is not None else None,
            position=Fraction(bid, value) if legal and value else None,
            won=record["winner"] == seat,
            broke=_broke(bid, legal),
            asset_ratio=Fraction(final, assets),
            misbid=Fraction(abs(bid - value), value) if legal and value else None,
        )


def _answers(record: Record) -> list[int]:
    """Return all named numbers, including those that counted for nothing."""
    answers: list[int] = record.get("answers", record["actions"])
    return answers


def equilibrium_assets(record: Record) -> list[int]:
    """Each seat's final assets, in the record's units, had all bid truthfully."""
    bids = [min(v, a) for v, a in zip(record["valuations"], record["assets"], strict=True)]
    winner = bids.index(max(bids))
    gain = record["valuations"][winner] - sorted(bids)[-2]
    return [assets + gain * (seat == winner) for seat, assets in enumerate(record["assets"])]


def _broke(action: int, legal: bool) -> str:
    return "" if legal else "format" if action == MISSING else "range"


class SessionStanding(NamedTuple):
    """One player's results over some sessions; a name on several seats counts once for each.

    Payoff, its excess over equilibrium, and ratios (equations 1 and 4) are means over the runs of a
    session, then over sessions; `deviation` (equation 2) and `misbid` over all runs in which they
    are defined. `left_out`: runs without a deviation. Sessions are the units of all intervals;
    `shown` has those of the sessions' own means.
    """

    player: str
    runs: int
    payoff: MeanCell
    advantage: MeanCell | None
    ratio: MeanCell | None
    asset_ratio: MeanCell | None
    deviation: float | None
    left_out: int
    misbid: float | None
    won: int
    bad_format: int
    bad_range: int
    shown: Mapping[str, MeanCell | None]


class _Mean:
    """The exact mean of added fractions, None left out: sums are by denominator."""

    def __init__(self, values: Iterable[Fraction | None] = ()) -> None:
        self.sums, self.count = Counter[int](), 0
        self.add(values)

    def add(self, values: Iterable[Fraction | None]) -> None:
        for value in values:
            if value is not None:
                self.sums[value.denominator] += value.numerator
                self.count += 1

    def exact(self) -> Fraction | None:
        total = sum(Fraction(above, below) for below, above in self.sums.items())
        return Fraction(total, self.count) if self.count else None

    def as_float(self) -> float | None:
        exact = self.exact()
        return None if exact is None else float(exact)


class SessionResults:
    """Results and paths of players, accumulated session by session."""

    def __init__(self, sessions: Iterable[RecordedEpisode] = (), measure: str = "scaled") -> None:
        self.measure = measure
        self.ends: Mapping[str, Ends] = {}  # between which results lie, by field
        self.sums: dict[str, _Sums] = {}
        self.places: dict[str | None, list[_Mean]] = {None: []}
        self.tracks: dict[str, list[array[float]]] = {}
        for session in sessions:
            self.add(session)

    def add(self, session: RecordedEpisode) -> SessionResults:
        self.ends = bounds(session.rules, self.measure)
        runs, seats = player_runs(session, self.measure), dict[str | None, list[int]]()
        for seat, name in enumerate(session.seats):
            seats.setdefault(name, []).append(seat)
        for player, taken in seats.items():
            taken_runs = [run[seat] for run in runs for seat in taken]
            if taken_runs:
                self.sums.setdefault(str(player), _Sums()).add(taken_runs)
                track = (_Mean(run[seat].position for seat in taken).as_float() for run in runs)
                floats = array("d", (math.nan if mean is None else mean for mean in track))
                self.tracks.setdefault(str(player), []).append(floats)
        everybody: dict[str | None, list[int]] = {None: [*range(len(session.seats))]}
        for player, taken in (seats | everybody).items():
            places = self.places.setdefault(player, [])
            places += [_Mean() for _ in runs[len(places) :]]
            for mean, run in zip(places, runs, strict=False):
                mean.add(run[seat].position for seat in taken)
        return self

    def standings(self) -> list[SessionStanding]:
        """Return the results of every player, in the order in which they first appeared."""
        return [sums.standing(name, self.ends) for name, sums in self.sums.items()]

    def path(self, player: str | None = None) -> list[float | None]:
        """Mean normalised action of each run over sessions, of one player or all, or None."""
        return [mean.as_float() for mean in self.places.get(player, [])]

    def track(self, player: str) -> Array:
        """A player's mean normalised actions ``(sessions, runs)``; NaN: none was legal."""
        rows = self.tracks.get(player, [])
        table = np.full((len(rows), max(map(len, rows), default=0)), np.nan)
        for to, row in zip(table, rows, strict=True):
            to[: len(row)] = row
        return table


class _Sums:
    """Sums for the results of one player."""

    def __init__(self) -> None:
        self.runs = self.won = self.left_out = 0
        self.broke = Counter[str]()
        self.deviation, self.misbid = _Mean(), _Mean()
        self.means: dict[str, list[Fraction]] = {name: [] for name in OVER_SESSIONS}
        kinds = ("deviation", "misbid", "won", "broke")
        self.each: dict[str, array[float]] = {name: array("d") for name in kinds}

    def add(self, session: Sequence[PlayerRun]) -> None:
        self.runs += len(session)
        self.won += sum(run.won for run in session)
        self.broke.update(run.broke for run in session)
        self.left_out += sum(run.deviation is None for run in session)
        self.deviation.add(run.deviation for run in session)
        self.misbid.add(run.misbid for run in session)
        for name, means in self.means.items():
            mean = _Mean(getattr(run, name) for run in session).exact()
            means += [] if mean is None else [mean]
        for name, each in self.each.items():
            values = (getattr(run, name) for run in session)
            kinds = (value if name in ("deviation", "misbid") else bool(value) for value in values)
            share = _Mean(None if kind is None else Fraction(kind) for kind in kinds).as_float()
            each.extend([] if share is None else [share])

    def shown(self, name: str, mean: float | None, ends: Ends) -> MeanCell | None:
        """Return a mean over all runs with the interval of the mean of the sessions' own means."""
        cell = estimated(self.each[name], ends)
        return None if mean is None or cell is None else cell._replace(mean=mean, std=None)

    def standing(self, player: str, ends: Mapping[str, Ends]) -> SessionStanding:
        """Return the player's results; intervals lie between `ends`."""
        deviation, misbid = self.deviation.as_float(), self.misbid.as_float()
        return SessionStanding(
            player,
            self.runs,
            **{name: _over(means, ends[name]) for name, means in self.means.items()},
            deviation=deviation,
            left_out=self.left_out,
            misbid=misbid,
            won=self.won,
            bad_format=self.broke["format"],
            bad_range=self.broke["range"],
            shown={
                "deviation": self.shown("deviation", deviation, ends["deviation"]),
                "misbid": self.shown("misbid", misbid, POSITIVE),
                "won": self.shown("won", self.won / self.runs, SHARE),
            },
        )


OVER_SESSIONS = ("payoff", "advantage", "ratio", "asset_ratio")
"""Fields of `PlayerRun` whose means of sessions are averaged."""


def _over(means: Sequence[Fraction], ends: Ends) -> Any:
    std = float(statistics.stdev(means)) if len(means) > 1 else None
    mean, cell = _Mean(means).as_float(), paid([float(value) for value in means], ends)
    return None if mean is None or cell is None else cell._replace(mean=mean, std=std)


def ends(game: Any) -> Ends:
    """Return the least and the highest deviation of a game, and normalised action."""
    return SHARE if is_contest(game) else POSITIVE


def bounds(game: Any, measure: str) -> dict[str, Ends]:
    """Return the least and the highest results of a player in a session, by field of `Standing`."""
    low, high = game.stake
    by_field = {"deviation": ends(game) if measure == "scaled" else POSITIVE, "payoff": (low, high)}
    if is_contest(game):
        equal = float(_pays(game, game.players))
        by_field["ratio"] = (low / equal, high / equal) if equal else FREE
        return by_field | {"advantage": (low - equal, high - equal), "asset_ratio": FREE}
    solvent = -low <= min(game.of_each("assets"))  # nobody can lose more than there is
    ratio = POSITIVE if solvent else FREE
    return by_field | {"advantage": (low - game.worth, high), "ratio": ratio, "asset_ratio": ratio}


def results(game: RecordedGame) -> SessionResults:
    """Return the results of a game's finished sessions; cached in the game."""
    if __name__ not in game.cache:
        game.cache[__name__] = SessionResults(game.done)
    session_results: SessionResults = game.cache[__name__]
    return session_results


def deviation(session: RecordedEpisode) -> float | None:
    """Return the mean deviation d of all players over all runs of a session, None without any."""
    return _Mean(turn.deviation for run in player_runs(session) for turn in run).as_float()


def standings(
    sessions: Iterable[RecordedEpisode], measure: str = "scaled"
) -> list[SessionStanding]:
    return SessionResults(sessions, measure).standings()


def path(sessions: Iterable[RecordedEpisode], player: str | None = None) -> list[float | None]:
    """Return the mean action of each run of some sessions, see `Results.path`."""
    return SessionResults(sessions).path(player)


def goal(game: Any) -> int:
    """Return the end of a path in equilibrium: 0 or 1."""
    return int(not is_contest(game) or game.ratio > 1)


def convergence_run(places: Sequence[float | None], goal: int) -> int | None:
    """Return the first run, from 1, after which a path stays within 0.05 of `goal`."""
    first = None
    for run, position in enumerate(places, 1):
        # As the numbers are written: 0.95 is 0.05 from 1, though not in doubles.
        near = position is not None and abs(Fraction(str(position)) - goal) <= Fraction("0.05")
        first = (first or run) if near else None
    return first


def convergence_rate(places: Sequence[float | None], goal: float) -> float | None:
    """Share of the distance to `goal` lost per run (geometric), None where it is undefined."""
    if len(places) < 2 or places[0] is None or places[-1] is None or places[0] == goal:
        return None
    remaining = abs(places[-1] - goal) / abs(places[0] - goal)
    return float(1 - remaining ** (1 / (len(places) - 1)))


class BreakRow(NamedTuple):
    """A row of Table 2: the runs of one player with a rule break, in all and by kind."""

    game: str
    history: bool
    player: str
    runs: int
    broken_runs: int
    bad_format: int
    bad_range: int
    shown: MeanCell | None = None

    @property
    def percent(self) -> float:
        """Return the rule breaks in percent of the runs; `shown` has the interval as well."""
        return 100 * self.broken_runs / self.runs


def break_table(sessions: Iterable[RecordedEpisode]) -> list[BreakRow]:
    """Return the rows of Table 2: by game, with and without history shown, and player."""
    kinds: dict[tuple[str, bool], SessionResults] = {}
    for session in sessions:
        kind = title(session.rules), shows_history(session.rules)
        kinds.setdefault(kind, SessionResults()).add(session)
    rows = []
    for game, history in product(dict.fromkeys(game for game, _ in kinds), (False, True)):
        session_results = kinds.get((game, history))
        for player, sums in session_results.sums.items() if session_results else ():
            causes: Any = {f"bad_{kind}": sums.broke[kind] for kind in ("format", "range")}
            broken = sum(causes.values())
            percent = 100 * broken / sums.runs
            cell = estimated([100 * share for share in sums.each["broke"]], SCORED)
            shown = cell and cell._replace(mean=percent, std=None)
            about: Any = {"game": game, "history": history, "player": player, "runs": sums.runs}
            rows.append(BreakRow(**about, broken_runs=broken, **causes, shown=shown))
    return rows


def shows_history(game: Any) -> bool:
    """Return whether players see past runs before they act."""
    return game.rounds > 1 and game.shown not in ((), "none")


def title(game: Any) -> str:
    """Return a game's name in the tables, such as ``second_price_auction``."""
    return game.name if is_contest(game) else f"{game.price}_price_auction"


class PublishedPayoff(NamedTuple):
    """A cell of the published Table 1; its auction's unit is not stated and fits no definition."""

    game: str
    sessions: int
    model: str
    payoff: float


class PublishedBreaks(NamedTuple):
    """A cell of the published Table 2; `percent` is as printed, the runs are counted from it."""

    game: str
    history: bool
    model: str
    runs: int
    broken_runs: int
    percent: float


@cache
def published_payoffs() -> tuple[PublishedPayoff, ...]:
    """Return the published Table 1: mean payoffs of five models, 20, 60 and 100 sessions."""
    return printed(__package__, "table1", PublishedPayoff, payoff="printed")


@cache
def published_rule_breaks() -> tuple[PublishedBreaks, ...]:
    """Return the published Table 2: rule breaks of nine models, without and with history."""
    return printed(__package__, "table2", PublishedBreaks, percent="printed_percent")
