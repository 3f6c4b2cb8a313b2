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


class TypeColumn(NamedTuple):
    """A column of a table with a row a player: its heading, form, and value."""

    heading: str
    form: str
    value: Callable[[PlayerTypes], Value]


def _follows(name: str) -> Callable[[PlayerTypes], Value]:
    return lambda player: player.line.follows.get(name) if player.line else None


WHO = (
    TypeColumn("game", "", lambda player: player.game),
    TypeColumn("player", "", lambda player: player.player),
)
FITS = (
    *WHO,
    TypeColumn("the record says", "", lambda player: player.verdict),
    TypeColumn("decisions", "", lambda player: player.decisions),
    TypeColumn("episodes", "", lambda player: player.episodes),
    TypeColumn("any move", ".2f", lambda player: player.mixture.error if player.mixture else None),
    TypeColumn("miss", ".1f", lambda player: player.mixture.spread if player.mixture else None),
    TypeColumn("BIC", "+.0f", lambda player: player.fit.bic if player.fit else None),
    TypeColumn("held out", "+.0f", lambda player: player.fit.held_out if player.fit else None),
    TypeColumn("λ", ".3f", lambda player: None if isinstance(player.rate, str) else player.rate),
)
LINES = (
    *WHO,
    TypeColumn(LINE[0], ".2f", _follows(LINE[0])),
    TypeColumn(LINE[1], ".2f", _follows(LINE[1])),
    TypeColumn(LINE[2], ".1f", _follows(LINE[2])),
    TypeColumn("miss", ".1f", lambda player: player.line.miss if player.line else None),
    TypeColumn("nearest type", "", lambda player: player.line.nearest if player.line else None),
    TypeColumn("apart", ".1f", lambda player: player.line.apart if player.line else None),
)


def type_grids(types: Sequence[PlayerTypes], most_seats: int | None = None) -> list[ResultTable]:
    """Return tables of types and of what players do by the last round; [] without players.

    Seats have a table where they are at most so many, by default whatever they are.
    """
    if not types:
        return []
    numbers = [player for player in types if player.line]
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
    grids = type_grids(
        [player for game in done for player in player_types(game, limit=MOST_ON_PAGES)]
    )
    note = (
        "Which rule stands behind a seat's moves: each is taken to be of one type that errs. What "
        "the record cannot tell is “not identified”. Of each player the first episodes, about "
        f"{MOST_ON_PAGES:,} decisions; llm-games types takes more."
    )
    return [Section(TITLE, note, grids)] if grids else []


def _table(
    types: Sequence[PlayerTypes], shown: Sequence[TypeColumn], title: str, name: str, note: str
) -> ResultTable:
    rows = [[column.value(player) for column in shown] for player in types]
    return ResultTable({c.heading: c.form for c in shown}, rows, title, name, note)


def _shares(types: Sequence[PlayerTypes]) -> ResultTable:
    rows = [
        [
            player.game,
            player.player,
            name,
            share,
            sum(seat.types == (name,) for seat in player.named),
        ]
        for player in types
        for name, share in player.shares.items()
        if share.mean >= LEAST
    ]
    heads = columns("game, player, type") | {"share": ".2f", "seats named": ">"}
    return ResultTable(heads, rows, "Types behind the moves", "types", SHARED)


def _alike(types: Sequence[PlayerTypes]) -> ResultTable:
    rows = [
        [player.game, player.player, f"{a} and {b}"]
        for player in types
        if player.mixture
        for a, b in player.mixture.alike()
        if min(player.shares[a].mean, player.shares[b].mean) >= LEAST
    ]
    heads = columns("game, player, not told apart")
    title = "Types that the record cannot tell apart"
    return ResultTable(heads, rows, title, "types_alike", TOGETHER)


def _seats(types: Sequence[PlayerTypes]) -> ResultTable:
    rows: list[list[Any]] = [
        [player.game, player.player, seat.episode, seat.seat, ", ".join(_posterior(seat.posterior))]
        for player in types
        if player.nameable
        for seat in player.seats
    ]
    heads = columns("game, player") | columns("episode, seat", "") | columns("chances of types")
    return ResultTable(heads, rows, "Each seat's types", "types_of_seats")


def _posterior(chances: Mapping[str, float]) -> Iterator[str]:
    return (f"{name} {chance:.2f}" for name, chance in chances.items())
