"""What each game's theory says: regret and distance, what "rational" is, replies, welfare.

A room's ``theory.py`` has ``deviation``, ``rational`` and ``replies``, and as far as they are
defined in the game ``interim``, ``exploitability``, ``welfare``, ``surplus`` and ``response_gap``;
the functions
of these names here are the doors to them. `Steps` are the records of a whole play, each array with
the steps on a last axis, ``(players, *batch, steps)``, without those of talk; what is not summed
over steps takes a single ``Outcome.record`` as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations_with_replacement
from math import comb
from typing import Any, Literal, NamedTuple

import numpy as np

from llm_games import rooms
from llm_games.errors import BadParameter, unknown
from llm_games.rulebook import Array, PerPlayer, PerTable, Rulebook

Steps = Mapping[str, Array]
Measured = tuple[PerPlayer, PerTable]  # regret and distance of one step
ARTICLES = {"equilibrium": "an", "best known": "the", "heuristic": "a"}
"""What the player ``rational`` can be, each with its article."""
Parts = tuple[Any, Any, Any, Any, Any]  # of a `Welfare`, also as plain numbers
REQUIRED = ("deviation", "rational", "replies")
OPTIONAL = ("interim", "exploitability", "welfare", "surplus", "response_gap")
MOST_PROFILES, SAMPLED = 20_000, 4000  # of others: so many are enumerated, else these are drawn
MOST_CELLS = 4_000_000


class Deviation(NamedTuple):
    """How far one step was from equilibrium. Tables that were over before it mean nothing.

    `regret` is what each seat could have gained by another action, 0 if it did not act: in the
    game's own payoffs, and in hindsight, against what the others did in this step; NaN where its
    action counted for nothing (`Rulebook.unplayed`). `distance` is
    that of the actions to the nearest equilibrium (set), L1, as a share of the range of all actions
    together, 0 to 1; NaN where none is defined, or actions without limits are farther off. For
    auctions, to the equilibrium bids of these valuations, which assume that their law is known to
    the bidders.
    """

    regret: PerPlayer
    distance: PerTable

    @property
    def nash_conv(self) -> PerTable:
        """Return the sum of the seats' regrets."""
        return self.regret.sum(axis=0)


class Claim(NamedTuple):
    """What the player ``rational`` is in a game: a proven equilibrium, or less than that."""

    kind: Literal["equilibrium", "best known", "heuristic"]
    sentence: str  # what it does, and in which sense it is rational


class Welfare(NamedTuple):
    """The sum of what everybody got, between the least and the most that legal play can bring.

    What is summed stands in a room's ``WELFARE`` where that is not all payoffs: in auctions the
    seller counts, so that prices cancel out. Each is of a whole play, ``(*batch)``.
    `lowest` and `highest` are those of the equilibria that are known, NaN where none is. Chance may
    allow more than `best` where it is a mean.
    """

    total: PerTable
    worst: PerTable
    best: PerTable
    lowest: PerTable
    highest: PerTable

    @property
    def efficiency(self) -> PerTable:
        """Return the total as a share of the way from worst to best; NaN where these are equal.

        0 where rules were broken and less than the worst is left.
        """
        span = np.asarray(self.best - self.worst, np.float64)
        above = np.maximum(self.total - self.worst, 0)
        return np.divide(above, span, out=np.full(span.shape, np.nan), where=span > 0)

    @property
    def anarchy(self) -> PerTable:
        """Return the price of anarchy: best / lowest equilibrium; NaN where one is below 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.lowest >= 0, self.best / self.lowest, np.nan)


def has(game: str, measure: str) -> bool:
    """Return whether a game's theory defines a measure, one of `REQUIRED` and `OPTIONAL`."""
    return callable(getattr(rooms.part(game, "theory"), measure, None))


def _of(game: Rulebook, measure: str) -> Callable[..., Any]:
    if not has(game.name, measure):
        defined = [name for name in rooms.ROOMS if has(name, measure)]
        raise unknown(f"{measure} for", game.name, defined)
    found: Callable[..., Any] = getattr(rooms.part(game.name, "theory"), measure)
    return found


def has_deviation(game: str) -> bool:
    """Return whether an equilibrium, or what comes closest to one, is known for a game."""
    return has(game, "deviation")


def deviation(game: Rulebook, record: Steps) -> Deviation:
    """Return the deviation of one step by its ``Outcome.record``, or raise `UnknownName`."""
    regret, distance = _of(game, "deviation")(game.core, record)
    regret = np.where(game.core.unplayed(record), np.nan, regret)
    far = np.asarray(distance, np.float64)
    return Deviation(regret, np.where(far > 1, np.nan, far))


def regret(game: Rulebook, record: Steps) -> PerPlayer:
    """Return the regret of one step, see `Deviation`, or raise `UnknownName`."""
    return deviation(game, record).regret


def rational(game: Rulebook) -> Claim:
    """Return what the player ``rational`` is in a game, or raise `UnknownName`."""
    return Claim(*_of(game, "rational")(game.core))


def claimed(game: Rulebook) -> str:
    """Return that in words, such as "an equilibrium: gives nothing"; "" where nothing is said."""
    if not has(game.name, "rational"):
        return ""
    try:
        kind, sentence = rational(game)
    except BadParameter:  # too large to be solved
        return ""
    return f"{ARTICLES[kind]} {kind}: {sentence}"


def caveats(game: Rulebook) -> list[str]:
    """Return what claims and scores of a game hang on that its players do not read, in sentences.

    That is what they are not told though it pays, what they are told though it need not be so, and
    what stands for chance but is the same in every episode.
    """
    rules, said = game.core, []
    if rules.silent:
        names = ", ".join(rules.silent)
        said.append(
            f"Payoffs, and what is claimed of them, depend on what players are not told: {names}."
        )
    if rules.fictions:
        said.append(f"Players are told, as in the paper, {'; and '.join(rules.fictions)}.")
    return said + [conditional(game)] * bool(conditional(game))


def conditional(game: Rulebook, given: Any = None) -> str:
    """Say that scores are of one draw, or of chance that was given; "" where there are others."""
    same = game.core.repeated or "chance, as it was given" * bool(given)
    return f"All episodes have the same {same}: intervals hold for these alone." if same else ""


def replies(game: Rulebook) -> tuple[str, ...]:
    """Return the names of rule players among which a best reply is looked for."""
    return tuple(_of(game, "replies")(game.core))


def interim(game: Rulebook, record: Steps) -> PerPlayer:
    """Return what each action lost on average over what its seat could not know.

    That is others' private information and chance, others playing the equilibrium: unlike regret in
    hindsight it holds no luck. In the game's payoffs, at least 0, ``(players, *batch)``; NaN where
    it is not defined. Raises `UnknownName` for a game without private information or chance.
    """
    return np.asarray(_of(game, "interim")(game.core, record), np.float64)


def exploitability(game: Rulebook, steps: Steps) -> PerPlayer:
    """Return what a best reply gains a step on copies of each seat's own play, ``(players,)``.

    The copies take their moves independently, as often as the seat in all these steps did: 0 where
    these frequencies are a symmetric equilibrium. Few steps flatter the reply, so that it is biased
    upwards; `llm_games.baselines.copies.exploited` has an interval. Raises `UnknownName` where it
    is not defined.
    """
    return np.array([max(gain_on_copies(game, steps, i)[0], 0.0) for i in range(game.players)])


def gain_on_copies(game: Rulebook, steps: Steps, seat: int, reply: Any = None) -> tuple[float, Any]:
    """Return what a reply gains a step on copies of a seat's own play, and the reply.

    By default a best one; a reply that was best to other steps is valued without bias. NaN where
    the play says nothing. Raises `UnknownName` where it is not defined.
    """
    found: tuple[float, Any] = _of(game, "exploitability")(game.core, steps, seat, reply)
    return found


def welfare(game: Rulebook, steps: Steps) -> Welfare:
    """Return the welfare of a whole play; `UnknownName` where the sum of payoffs is constant."""
    parts = _of(game, "welfare")(game.core, steps)
    return Welfare(*np.broadcast_arrays(*(np.asarray(part, np.float64) for part in parts)))


def welfare_of(game: str) -> str:
    """Return what welfare sums up in a game."""
    return str(getattr(rooms.part(game, "theory"), "WELFARE", "payoffs"))


def surplus(game: Rulebook, steps: Steps) -> tuple[PerTable, PerTable]:
    """Return what consumers have of a play, and they and the players together, ``(*batch)`` each.

    Raises `UnknownName` for a game without consumers.
    """
    consumers, total = _of(game, "surplus")(game.core, steps)
    return np.asarray(consumers, np.float64), np.asarray(total, np.float64)


def response_gap(game: Rulebook, plays: Sequence[Steps]) -> Array:
    """Return what a best response to the whole play of others gains, ``(players, plays)``.

    It is found in some of the plays and valued in the others, with all else as recorded, so that
    the mean is below 0 by chance alone; NaN for a single play. Raises `UnknownName` where it is not
    defined: where actions do not outlive their step, `deviation` says as much.
    """
    return np.asarray(_of(game, "response_gap")(game.core, plays), np.float64)


def stacked(records: Sequence[Mapping[str, Any]]) -> Steps:
    """Put the records of a whole play together, steps on a last axis.

    What has another shape in each step, such as a list of what came in between, is left out.
    """
    found = {}
    for name in records[0]:
        try:
            whole = np.asarray([record[name] for record in records])
        except ValueError:  # of different shapes
            continue
        found[name] = np.ascontiguousarray(np.moveaxis(whole, 0, -1))
    return found


# -- for the rooms ---------------------------------------------------------------------------------


def constants(low: int, high: int, unit: int = 1, most: int = 101) -> list[str]:
    """Return players who always do the same, from low to high in at most so many equal steps."""
    if high - low < most:
        moves = list(range(low, high + 1))
    else:
        moves = sorted({low + (high - low) * i // (most - 1) for i in range(most)})
    if unit == 1:
        return [f"fixed:{move}" for move in moves]
    decimals = len(str(unit)) - 1
    return [f"fixed:{move // unit}.{move % unit:0{decimals}}" for move in moves]


def draws(moves: Array, others: int, times: int = 1) -> tuple[Array, Array]:
    """Return profiles of others who move independently as often as in `moves`, and their chances.

    ``(others, profiles)`` and ``(profiles,)``; all of them, or up to some thousands drawn from a
    fixed seed where there are too many: fewer if each is gone through more `times`.
    """
    kinds, counts = np.unique(moves, return_counts=True)
    share, cells = counts / counts.sum(), MOST_CELLS // (others * len(kinds))
    if comb(others + len(kinds) - 1, others) > min(MOST_PROFILES, cells):
        many = max(min(SAMPLED, MOST_CELLS // (others * times)), 1)
        drawn = np.random.default_rng(0).choice(kinds, (others, many), p=share)
        return drawn, np.full(many, 1 / many)
    picks = np.array(list(combinations_with_replacement(range(len(kinds)), others)), np.int64)
    taken = (picks[:, :, None] == np.arange(len(kinds))).sum(axis=1)  # how often each kind is
    logs = np.append(0, np.cumsum(np.log(np.arange(1, others + 1))))  # of factorials
    chances = np.exp(logs[others] - logs[taken].sum(axis=1) + taken @ np.log(share))
    return kinds[picks.T], chances


def flat(values: Array) -> Array:
    """Return one row for each seat, ``(players, all steps of all tables)``."""
    return np.reshape(values, (len(values), -1))
