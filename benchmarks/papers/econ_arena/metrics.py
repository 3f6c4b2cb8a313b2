"""Economics Arena: metrics of recorded sessions, its tables from them, and the published tables.

Source: *Economics Arena for Large Language Models* (EconArena), sections 3 and 4, equations 1 to 4,
Tables 1 and 2. All sums are exact fractions; one division comes at the end. A run is one round of
the game, a session is one episode. Equilibrium: beauty contest, everybody names the lowest number
(the highest for ratios above 1) and shares the prize; second-price auction, everybody bids its
valuation as far as its assets go. What the paper leaves undefined is None here, never a number.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from llm_games.benchmarks.runs.paper import Record, printed
from llm_games.benchmarks.runs.stats import Cell
from llm_games.errors import unknown
from llm_games.questions import MISSING
from llm_games.rulebook import Rulebook

MEASURES = ("scaled", "ratio", "absolute")
"""Deviation in the beauty contest: ``scaled``, the distance from the equilibrium number as a share
of the range; ``ratio``, the paper's equation 3, which is not defined where that number is 0;
``absolute``, the distance."""


class Session(Protocol):
    """One session as it was recorded: the rules, the players' names by seat, a record a run."""

    @property
    def rules(self) -> Rulebook: ...  # noqa: D102

    @property
    def seats(self) -> Sequence[str]: ...  # noqa: D102

    @property
    def records(self) -> Sequence[Record]: ...  # noqa: D102


@dataclass(frozen=True)
class PlayerRun:
    """One player in one run. None is what is not defined, or needs a legal action.

    Attributes:
        payoff: u, the share of the prize or the gain, fee included.
        reference: u in equilibrium.
        ratio: payoff to equilibrium payoff; of an auction, final to equilibrium assets.
        asset_ratio: final assets to assets; auctions only.
        deviation: d of equation 3, see `MEASURES`; of an auction, how far `ratio` is from 1.
        misbid: ``|bid - valuation| / valuation``; auctions only.
        place: the normalised action: within the range, 0 to 1; of an auction, bid to valuation.
        won: whether it won, alone or with others.
        broke: "", "format" or "range".
    """

    payoff: Fraction
    reference: Fraction | None
    ratio: Fraction | None
    asset_ratio: Fraction | None
    deviation: Fraction | None
    misbid: Fraction | None
    place: Fraction | None
    won: bool
    broke: str

    @property
    def advantage(self) -> Fraction | None:
        """The payoff less that in equilibrium."""
        return None if self.reference is None else self.payoff - self.reference


def is_contest(rules: Rulebook) -> bool:
    """Return whether a game is a beauty contest; the arena's others are auctions."""
    return rules.name == "beauty_contest"


def owns(rules: Any) -> bool:
    """Return whether a game is of the arena: a shared prize, or an auction with assets."""
    if is_contest(rules):
        return bool(rules.prize_rule == "split")
    return bool(rules.name == "budget_auction")


def player_runs(session: Session, measure: str = "scaled") -> list[list[PlayerRun]]:
    """Return what every seat did and got, a list by seat for each run.

    Raises:
        UnknownName: there is no such measure, or the game is not one of the arena's.
    """
    if measure not in MEASURES:
        raise unknown("measure", measure, MEASURES)
    game: Any = session.rules
    if game.name not in _RUNS:
        raise unknown("game of the arena", game.name, _RUNS)
    plain = [{key: np.asarray(x).tolist() for key, x in r.items()} for r in session.records]
    return [_RUNS[game.name](game, record, measure) for record in plain]


def _contest(game: Any, record: Record, measure: str) -> list[PlayerRun]:
    low, prize = Fraction(game.min), Fraction(game.prize)
    high = Fraction(record.get("limit", int(game.max * game.unit)), game.unit)
    goal = {-1: low, 0: None, 1: high}[(game.ratio > 1) - (game.ratio < 1)]
    pays: dict[str, Callable[[int], Fraction]] = {
        "split": lambda k: prize / k,
        "exclusive": lambda k: prize * (k == 1),
        "amplified": lambda k: prize * k,
    }
    pay = pays.get(game.prize_rule, lambda k: prize)
    reference = pay(game.players)
    share = pay(max(sum(record["winners"]), 1))
    found = []
    for action, legal, won in zip(
        record["actions"], record["legal"], record["winners"], strict=True
    ):
        number = Fraction(action, game.unit) if legal else None
        payoff = share if won else Fraction(0) if legal else -Fraction(game.foul_fee)
        one = PlayerRun(
            payoff=payoff,
            reference=reference,
            ratio=payoff / reference if reference else None,
            asset_ratio=None,
            deviation=_distance(number, goal, high - low, measure),
            misbid=None,
            place=None if number is None else (number - low) / (high - low),
            won=won,
            broke=_broke(action, legal),
        )
        found.append(one)
    return found


def _distance(
    number: Fraction | None, goal: Fraction | None, width: Fraction, measure: str
) -> Fraction | None:
    if number is None or goal is None:
        return None
    if measure == "ratio":
        return abs(number / goal - 1) if goal else None
    return abs(number - goal) / (width if measure == "scaled" else 1)


def _auction(game: Any, record: Record, measure: str) -> list[PlayerRun]:
    best = equilibrium_assets(record) if game.price == "second" else [None] * game.players
    columns = (record[key] for key in ("actions", "legal", "valuations", "assets", "final"))
    found = []
    for seat, (bid, legal, value, assets, final) in enumerate(zip(*columns, strict=True)):
        stable = best[seat]
        ratio = None if stable is None else Fraction(final, stable)
        one = PlayerRun(
            payoff=Fraction(final - assets, game.unit),
            reference=None if stable is None else Fraction(stable - assets, game.unit),
            ratio=ratio,
            asset_ratio=Fraction(final, assets),
            deviation=abs(ratio - 1) if legal and ratio is not None else None,
            misbid=Fraction(abs(bid - value), value) if legal and value else None,
            place=Fraction(bid, value) if legal and value else None,
            won=record["winner"] == seat,
            broke=_broke(bid, legal),
        )
        found.append(one)
    return found


_RUNS: dict[str, Callable[[Any, Record, str], list[PlayerRun]]] = {
    "beauty_contest": _contest,
    "budget_auction": _auction,
}


def equilibrium_assets(record: Record) -> list[int]:
    """Return each seat's final assets if all had bid truthfully in a second-price run.

    Everybody bids its valuation, at most its assets; the lowest of tied seats wins. Amounts are in
    the units of the record.
    """
    bids = [min(v, a) for v, a in zip(record["valuations"], record["assets"], strict=True)]
    winner = bids.index(max(bids))
    gain = record["valuations"][winner] - sorted(bids)[-2]
    return [assets + gain * (seat == winner) for seat, assets in enumerate(record["assets"])]


def _broke(action: int, legal: bool) -> str:
    return "" if legal else "format" if action == MISSING else "range"


# -- from runs to figures ------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """One player over some sessions; a name that sits on several seats counts once for each.

    Attributes:
        player: its name.
        runs: played, over all sessions and seats.
        payoff: u, mean over the runs of a session, then over sessions.
        advantage: u minus u in equilibrium, likewise.
        ratio: r of equations 1 and 4, likewise; 1 is as in equilibrium.
        asset_ratio: final assets to assets, likewise; auctions only.
        deviation: d of equation 2, over all runs in which it is defined.
        left_out: runs in which it is not.
        misbid: mean of ``|bid - valuation| / valuation``; auctions only.
        won: runs won, alone or with others.
        bad_format, bad_range: runs with a rule break, by kind.
    """

    player: str
    runs: int
    payoff: Cell
    advantage: Cell | None
    ratio: Cell | None
    asset_ratio: Cell | None
    deviation: float | None
    left_out: int
    misbid: float | None
    won: int
    bad_format: int
    bad_range: int

    @property
    def winning_rate(self) -> float:
        """Return the share of the runs that it won."""
        return self.won / self.runs

    @property
    def rule_breaks(self) -> float:
        """Return the percentage of the runs with a rule break."""
        return 100 * (self.bad_format + self.bad_range) / self.runs


def standings(sessions: Sequence[Session], measure: str = "scaled") -> list[Standing]:
    """Return the results of every player, in the order in which they first appear.

    Raises:
        UnknownName: see `player_runs`.
    """
    played: dict[str, list[list[PlayerRun]]] = {}
    for session in sessions:
        runs = player_runs(session, measure)
        for name in dict.fromkeys(session.seats):
            seats = [seat for seat, player in enumerate(session.seats) if player == name]
            own = [run[seat] for run in runs for seat in seats]
            if own:
                played.setdefault(name, []).append(own)
    return [_standing(name, found) for name, found in played.items()]


def _standing(name: str, sessions: list[list[PlayerRun]]) -> Standing:
    runs = [run for session in sessions for run in session]
    deviations = [run.deviation for run in runs]
    broke = Counter(run.broke for run in runs)

    def over(name: str) -> Any:
        means = [_mean([getattr(run, name) for run in session]) for session in sessions]
        known = [mean for mean in means if mean is not None]
        return _cell(known) if known else None

    return Standing(
        player=name,
        runs=len(runs),
        payoff=over("payoff"),
        advantage=over("advantage"),
        ratio=over("ratio"),
        asset_ratio=over("asset_ratio"),
        deviation=_float(_mean(deviations)),
        left_out=deviations.count(None),
        misbid=_float(_mean([run.misbid for run in runs])),
        won=sum(run.won for run in runs),
        bad_format=broke["format"],
        bad_range=broke["range"],
    )


def path(sessions: Sequence[Session], player: str | None = None) -> list[float | None]:
    """Return the mean normalised action of each run over sessions, of one player or of all.

    None where nobody acted legally.
    """
    places: list[list[Fraction | None]] = []
    for session in sessions:
        for k, run in enumerate(player_runs(session)):
            if k == len(places):
                places.append([])
            pairs = zip(session.seats, run, strict=True)
            places[k] += [turn.place for name, turn in pairs if player in (None, name)]
    return [_float(_mean(values)) for values in places]


def goal(game: Rulebook) -> int:
    """Return where a path ends up in equilibrium: 0 or 1."""
    above: bool = game.name != "beauty_contest" or game.ratio > 1  # type: ignore[attr-defined]
    return int(above)


def convergence_run(
    places: Sequence[float | None], goal: float, tolerance: float = 0.05
) -> int | None:
    """Return the first run, from 1, from which on a path stays within `tolerance` of `goal`."""
    first = None
    for run, place in enumerate(places, 1):
        # As the numbers are written: 0.95 is 0.05 from 1, though not in doubles.
        far = None if place is None else abs(_as_written(place) - _as_written(goal))
        near = far is not None and far <= _as_written(tolerance)
        first = (first or run) if near else None
    return first


def _as_written(number: float) -> Fraction:
    return Fraction(repr(float(number)))


def convergence_rate(places: Sequence[float | None], goal: float) -> float | None:
    """Return the share of the distance to `goal` that a path loses per run, on geometric average.

    None for a path of one run, one that begins at the goal, or one without its first or last place.
    """
    if len(places) < 2 or places[0] is None or places[-1] is None or places[0] == goal:
        return None
    left = abs(places[-1] - goal) / abs(places[0] - goal)
    return float(1 - left ** (1 / (len(places) - 1)))


def _mean(values: Sequence[Fraction | None]) -> Fraction | None:
    known = [value for value in values if value is not None]
    return Fraction(sum(known), len(known)) if known else None


def _cell(values: Sequence[Fraction]) -> Cell:
    std = float(statistics.stdev(values)) if len(values) > 1 else None
    return Cell(float(Fraction(sum(values), len(values))), std, len(values))


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)


# -- the paper's tables --------------------------------------------------------------------------


class BreakRow(NamedTuple):
    """A row of Table 2: how many of one player's runs had a rule break, in all and by kind."""

    game: str
    history: bool
    player: str
    runs: int
    broken_runs: int
    bad_format: int
    bad_range: int

    @property
    def percent(self) -> float:
        """Return the rule breaks in percent of the runs."""
        return 100 * self.broken_runs / self.runs


def break_table(sessions: Sequence[Session]) -> list[BreakRow]:
    """Return the rows of Table 2: by game, with and without history shown, and player.

    Raises:
        UnknownName: see `player_runs`.
    """
    rows = []
    for game, played in _by_game(sessions).items():
        for history in (False, True):
            alike = [session for session in played if shows_history(session.rules) == history]
            for found in standings(alike):
                kinds = found.bad_format, found.bad_range
                row = BreakRow(game, history, found.player, found.runs, sum(kinds), *kinds)
                rows.append(row)
    return rows


def shows_history(game: Any) -> bool:
    """Return whether players are shown past runs before they act."""
    return game.rounds > 1 and game.shown not in ((), "none")


def title(game: Any) -> str:
    """Return a game's name in the tables, such as ``second_price_auction``."""
    return game.name if game.name == "beauty_contest" else f"{game.price}_price_auction"


def _by_game(sessions: Sequence[Session]) -> dict[str, list[Session]]:
    found: dict[str, list[Session]] = {}
    for session in sessions:
        found.setdefault(title(session.rules), []).append(session)
    return found


class PublishedPayoff(NamedTuple):
    """A cell of the published Table 1.

    In the beauty contest it is u. The unit of the auction is not stated and fits no definition:
    do not compare with it.
    """

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
