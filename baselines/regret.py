"""Access to each game's theory: regret, distance, rational play, replies and welfare.

A room's ``theory.py`` has ``deviation``, ``rational`` and ``replies``, and where they are defined
``interim``, ``exploitability``, ``welfare``, ``surplus`` and ``response_gap``, which functions of
these names here call. `Steps` are the records of a whole play, each array with the steps on a last
axis, ``(players, *batch, steps)``, without talk; what does not sum over steps also takes a single
``Outcome.record``. What is not defined for a game raises `UnknownName`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations_with_replacement
from math import comb
from typing import Any, Literal, NamedTuple

import numpy as np

from llm_games import game_rooms as rooms
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
    """Distance of one step from equilibrium. Tables that were over before it have no meaning.

    `regret` is what each seat could have gained by another action, in payoffs and in hindsight,
    against the others' actions of this step: 0 if it did not act, NaN where its action had no
    effect (`Rulebook.unplayed`). `distance` is the L1 distance to the nearest equilibrium (set) as
    a share of the range of all actions, 0 to 1; NaN where none is defined, or unlimited actions are
    farther off. Equilibria of auctions assume that bidders know the distribution of valuations.
    """

    regret: PerPlayer
    distance: PerTable

    @property
    def nash_conv(self) -> PerTable:
        return self.regret.sum(axis=0)


class Claim(NamedTuple):
    """How ``rational`` plays a game: a proven equilibrium, or something weaker."""

    kind: Literal["equilibrium", "best known", "heuristic"]
    sentence: str  # what it does, and in which sense it is rational


class Welfare(NamedTuple):
    """The sum of all payoffs, between the least and the most that legal play can bring.

    A room's ``WELFARE`` says what is summed if not all payoffs: in auctions the seller counts. Each
    is of a whole play, ``(*batch)``. `lowest` and `highest` are those of the known equilibria, NaN
    where none is known. Where `best` is a mean, chance may allow more.
    """

    total: PerTable
    worst: PerTable
    best: PerTable
    lowest: PerTable
    highest: PerTable

    @property
    def efficiency(self) -> PerTable:
        """Return the total's share of the way from worst (below: 0) to best; NaN if equal."""
        span = np.asarray(self.best - self.worst, np.float64)
        above = np.maximum(self.total - self.worst, 0)
        return np.divide(above, span, out=np.full(span.shape, np.nan), where=span > 0)

    @property
    def anarchy(self) -> PerTable:
        """Return the price of anarchy: best / lowest equilibrium; NaN where one is below 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.lowest >= 0, self.best / self.lowest, np.nan)


def has(game: str, measure: str) -> bool:
    return callable(getattr(rooms.part(game, "theory"), measure, None))


def _theory_function(game: Rulebook, measure: str) -> Callable[..., Any]:
    if not has(game.name, measure):
        defined = [name for name in rooms.ROOMS if has(name, measure)]
        raise unknown(f"{measure} for", game.name, defined)
    return getattr(rooms.part(game.name, "theory"), measure)


def has_deviation(game: str) -> bool:
    return has(game, "deviation")


def deviation(game: Rulebook, record: Steps) -> Deviation:
    """Return the deviation of one step by its ``Outcome.record``, or raise `UnknownName`."""
    regret, distance = _theory_function(game, "deviation")(game.core, record)
    regret = np.where(game.core.unplayed(record), np.nan, regret)
    far = np.asarray(distance, np.float64)
    return Deviation(regret, np.where(far > 1, np.nan, far))


def regret(game: Rulebook, record: Steps) -> PerPlayer:
    """Return the regret of one step, see `Deviation`, or raise `UnknownName`."""
    return deviation(game, record).regret


def rational(game: Rulebook) -> Claim:
    """Return the claim about the player ``rational`` in a game, or raise `UnknownName`."""
    return Claim(*_theory_function(game, "rational")(game.core))


def claimed(game: Rulebook) -> str:
    """Return the claim in words, such as "an equilibrium: gives nothing"; "" for none."""
    if not has(game.name, "rational"):
        return ""
    try:
        kind, sentence = rational(game)
    except BadParameter:  # too large to be solved
        return ""
    return f"{ARTICLES[kind]} {kind}: {sentence}"


def caveats(game: Rulebook) -> list[str]:
    """Return sentences on what scores depend on that players do not read.

    Payoffs they are not told of, untrue statements to them, draws the same in every episode.
    """
    rules, sentences = game.core, []
    if rules.silent:
        fact = "Payoffs, and what is claimed of them, depend on what players are not told"
        sentences.append(f"{fact}: {', '.join(rules.silent)}.")
    if rules.fictions:
        sentences.append(f"Players are told, as in the paper, {'; and '.join(rules.fictions)}.")
    return sentences + [conditional(game)] * bool(conditional(game))


def conditional(game: Rulebook, fixed_chance: Any = None) -> str:
    """Say that scores hold for a single draw or for fixed chance; "" where chance varies."""
    same = game.core.repeated or "chance, as it was given" * bool(fixed_chance)
    return f"All episodes have the same {same}: intervals hold for these alone." if same else ""


def replies(game: Rulebook) -> tuple[str, ...]:
    """Return the rule players among which a best reply is sought, by name."""
    return tuple(_theory_function(game, "replies")(game.core))


def interim(game: Rulebook, record: Steps) -> PerPlayer:
    """Return the mean loss of each action over what its seat could not know.

    That is others' private information and chance, others playing the equilibrium: no luck is in
    it. In the game's payoffs, at least 0, ``(players, *batch)``; NaN where it is not defined.
    """
    return np.asarray(_theory_function(game, "interim")(game.core, record), np.float64)


def exploitability(game: Rulebook, steps: Steps) -> PerPlayer:
    """Return a best reply's gain per step on copies of each seat's play, ``(players,)``.

    The copies draw independently, with the seat's frequencies over all steps: 0 where these are a
    symmetric equilibrium. With few steps it is biased upwards, see `copies.exploited`.
    """
    return np.array([max(gain_on_copies(game, steps, i)[0], 0.0) for i in range(game.players)])


def gain_on_copies(game: Rulebook, steps: Steps, seat: int, reply: Any = None) -> tuple[float, Any]:
    """Return a reply's gain per step on copies of a seat's play, and the reply: else the best.

    One that was chosen on other steps is valued without bias. NaN where the play determines none.
    """
    gain, reply = _theory_function(game, "exploitability")(game.core, steps, seat, reply)
    return gain, reply


def welfare(game: Rulebook, steps: Steps) -> Welfare:
    """Return the welfare of a whole play; `UnknownName` where the sum of payoffs is constant."""
    parts = _theory_function(game, "welfare")(game.core, steps)
    return Welfare(*np.broadcast_arrays(*(np.asarray(part, np.float64) for part in parts)))


def welfare_of(game: str) -> str:
    return str(getattr(rooms.part(game, "theory"), "WELFARE", "payoffs"))


def surplus(game: Rulebook, steps: Steps) -> tuple[PerTable, PerTable]:
    """Return the consumers' surplus of a play and the total one, ``(*batch)`` each."""
    consumers, total = _theory_function(game, "surplus")(game.core, steps)
    return np.asarray(consumers, np.float64), np.asarray(total, np.float64)


def response_gap(game: Rulebook, plays: Sequence[Steps]) -> Array:
    """Return the gain of a best response to the whole play of others, ``(players, plays)``.

    It is chosen in some of the plays and valued in the others, so that its mean is below 0 only by
    chance; NaN for one play. Where actions have no effect after their step it is not defined.
    """
    return np.asarray(_theory_function(game, "response_gap")(game.core, plays), np.float64)


def stacked(records: Sequence[Mapping[str, Any]]) -> Steps:
    """Stack the records of a whole play, steps on a last axis; not entries of varying shape."""
    arrays = {}
    for name in records[0]:
        try:
            whole = np.asarray([record[name] for record in records])
        except ValueError:  # of different shapes
            continue
        arrays[name] = np.ascontiguousarray(np.moveaxis(whole, 0, -1))
    return arrays


def constants(low: int, high: int, unit: int = 1, limit: int = 101) -> list[str]:
    """Return names of constant players, from low to high in equal steps, at most `limit`."""
    if high - low < limit:
        moves = list(range(low, high + 1))
    else:
        moves = sorted({low + (high - low) * i // (limit - 1) for i in range(limit)})
    if unit == 1:
        return [f"fixed:{move}" for move in moves]
    decimals = len(str(unit)) - 1
    return [f"fixed:{move // unit}.{move % unit:0{decimals}}" for move in moves]


def draws(moves: Array, others: int, times: int = 1) -> tuple[Array, Array]:
    """Return profiles of others who draw from `moves`, ``(others, profiles)``, and their chances.

    All of them, or if there are too many up to `SAMPLED` of a fixed seed, fewer by `times`.
    """
    kinds, counts = np.unique(moves, return_counts=True)
    share, cells = counts / counts.sum(), MOST_CELLS // (others * len(kinds))
    if comb(others + len(kinds) - 1, others) > min(MOST_PROFILES, cells):
        count = max(min(SAMPLED, MOST_CELLS // (others * times)), 1)
        drawn = np.random.default_rng(0).choice(kinds, (others, count), p=share)
        return drawn, np.full(count, 1 / count)
    picks = np.array(list(combinations_with_replacement(range(len(kinds)), others)), np.int64)
    taken = (picks[:, :, None] == np.arange(len(kinds))).sum(axis=1)  # how often each kind is
    logs = np.append(0, np.cumsum(np.log(np.arange(1, others + 1))))  # of factorials
    chances = np.exp(logs[others] - logs[taken].sum(axis=1) + taken @ np.log(share))
    return kinds[picks.T], chances


def gain_on_pairs(
    paid: Callable[[Array, Array], Array], moves: Array, tried: Array, reply: int | None = None
) -> tuple[float, int]:
    """Return a reply's (by default the first best one's) gain if the other draws from these moves.

    It is chosen among `tried`; `paid` are payoffs of own moves against the other's, of two players.
    """
    kinds, counts = np.unique(moves, return_counts=True)
    share = counts / counts.sum()
    if reply is None:
        reply = int(tried[(paid(tried[:, None], kinds) @ share).argmax()])
    own = share @ paid(kinds[:, None], kinds) @ share
    return float(paid(np.array(reply), kinds) @ share - own), reply


def flat(values: Array) -> Array:
    """Return one row for each seat, ``(players, all steps of all tables)``."""
    return np.reshape(values, (len(values), -1))
