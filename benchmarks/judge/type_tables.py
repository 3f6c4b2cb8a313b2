"""The tables of `player_types`, in a terminal, on pages and as files; JSON has all that is in them.

A column is declared once, by what it shows of a player.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from llm_games.baselines.type_mixtures import SURE, TOO_RANDOM
from llm_games.benchmarks.judge.paper import Section
from llm_games.benchmarks.judge.player_types import (
    FEWEST,
    LEAST,
    LINE,
    MOST_ON_PAGES,
    PlayerTypes,
    player_types,
)
from llm_games.benchmarks.judge.result_table import ResultTable, Value, columns
from llm_games.benchmarks.record.recorded_games import RecordedGame

TITLE = "Types"
FEW_ROWS = 20  # seats of all players up to which a terminal shows each
SHARED = (
    f"seats named: with a chance above {SURE:g}; types joined by = foretell the same here. "
    f"Nobody is named where more than {TOO_RANDOM:g} of the moves are any."
)
FITTED = (
    "BIC, held out: the catalogue's criterion and log-likelihood of every second round less those "
    "of a rule by the last round; any move: the share of moves that no type foretells; miss: "
    "standard deviation of numbers; λ: by how much payoffs move choices, as exp(λ · payoff), the "
    "payoff against the others' recorded moves; a dash where the record does not tell."
)
FOLLOWED = (
    "a number is own last · the seat's number of the round before + others' last · the mean of the "
    f"others' + constant, and misses by a standard deviation; intervals from {FEWEST} episodes on, "
    "a dash where the record does not tell. The nearest type is a caption: by the root "
    "mean square between its numbers and these."
)
TOGETHER = "a seat's record has less than 19 to 1 for either, so that both are told together."


class Shown(NamedTuple):
    """A column of a table with a row a player: its heading, form, and value."""

    heading: str
    form: str
    of: Callable[[PlayerTypes], Value]


def _follows(name: str) -> Callable[[PlayerTypes], Value]:
    return lambda of: of.line.follows.get(name) if of.line else None


WHO = Shown("game", "", lambda of: of.game), Shown("player", "", lambda of: of.player)
FITS = (
    *WHO,
    Shown("the record says", "", lambda of: of.verdict),
    Shown("decisions", "", lambda of: of.decisions),
    Shown("episodes", "", lambda of: of.episodes),
    Shown("any move", ".2f", lambda of: of.mixture.error if of.mixture else None),
    Shown("miss", ".1f", lambda of: of.mixture.spread if of.mixture else None),
    Shown("BIC", "+.0f", lambda of: of.fit.bic if of.fit else None),
    Shown("held out", "+.0f", lambda of: of.fit.held_out if of.fit else None),
    Shown("λ", ".3f", lambda of: None if isinstance(of.rate, str) else of.rate),
)
LINES = (
    *WHO,
    Shown(LINE[0], ".2f", _follows(LINE[0])),
    Shown(LINE[1], ".2f", _follows(LINE[1])),
    Shown(LINE[2], ".1f", _follows(LINE[2])),
    Shown("miss", ".1f", lambda of: of.line.miss if of.line else None),
    Shown("nearest type", "", lambda of: of.line.nearest if of.line else None),
    Shown("apart", ".1f", lambda of: of.line.apart if of.line else None),
)


def type_grids(types: Sequence[PlayerTypes], most_seats: int | None = None) -> list[ResultTable]:
    """Return tables of types and of what players do by the last round; [] without players.

    Seats have a table where they are at most so many, by default whatever they are.
    """
    if not types:
        return []
    numbers = [of for of in types if of.line]
    grids = [
        _table(numbers, LINES, "What numbers follow", "type_lines", FOLLOWED),
        _shares(types),
        _table(types, FITS, "How far types go", "type_fits", FITTED),
        _alike(types),
        _seats(types),
    ]
    if most_seats is not None and len(grids[-1].rows) > most_seats:
        grids.pop()
    return [grid for grid in grids if grid.rows]


def section(games: Sequence[RecordedGame]) -> list[Section]:
    """What a page shows of the players of a run's games; [] if nobody made a move."""
    done = [game for game in games if game.done]
    grids = type_grids([of for game in done for of in player_types(game, limit=MOST_ON_PAGES)])
    note = (
        "Which rule stands behind a seat's moves: each is taken to be of one type that errs. What "
        "the record cannot tell is “not identified”. Of each player the first episodes, about "
        f"{MOST_ON_PAGES:,} decisions; llm-games types takes more."
    )
    return [Section(TITLE, note, grids)] if grids else []


def _table(
    types: Sequence[PlayerTypes], shown: Sequence[Shown], title: str, name: str, note: str
) -> ResultTable:
    rows = [[column.of(of) for column in shown] for of in types]
    return ResultTable({c.heading: c.form for c in shown}, rows, title, name, note)


def _shares(types: Sequence[PlayerTypes]) -> ResultTable:
    rows = [
        [of.game, of.player, name, share, sum(seat.types == (name,) for seat in of.named)]
        for of in types
        for name, share in of.shares.items()
        if share.mean >= LEAST
    ]
    heads = columns("game, player, type") | {"share": ".2f", "seats named": ">"}
    return ResultTable(heads, rows, "Types behind the moves", "types", SHARED)


def _alike(types: Sequence[PlayerTypes]) -> ResultTable:
    rows = [
        [of.game, of.player, f"{a} and {b}"]
        for of in types
        if of.mixture
        for a, b in of.mixture.alike()
        if min(of.shares[a].mean, of.shares[b].mean) >= LEAST
    ]
    heads = columns("game, player, not told apart")
    title = "Types that the record cannot tell apart"
    return ResultTable(heads, rows, title, "types_alike", TOGETHER)


def _seats(types: Sequence[PlayerTypes]) -> ResultTable:
    rows: list[list[Any]] = [
        [of.game, of.player, seat.episode, seat.seat, ", ".join(_posterior(seat.posterior))]
        for of in types
        if of.nameable
        for seat in of.seats
    ]
    heads = columns("game, player") | columns("episode, seat", "") | columns("chances of types")
    return ResultTable(heads, rows, "Each seat's types", "types_of_seats")


def _posterior(chances: Mapping[str, float]) -> Iterator[str]:
    return (f"{name} {chance:.2f}" for name, chance in chances.items())
