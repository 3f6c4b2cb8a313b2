"""The meta-game: players as strategies of one game, whose payoffs were found by playing.

Before seats are drawn, a game is the same for all who sit down: its meta-game is symmetric, however
much its seats differ. Line-ups are therefore counts of players, and mixtures are those of one
population. Here is mathematics only; `llm_games.baselines.crossplay` plays.

Sources: Wellman (AAAI 2006), empirical games; Omidshafiei et al. (Scientific Reports 9, 2019),
α-rank; Taylor and Jonker (Mathematical Biosciences 40, 1978), the replicator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, combinations_with_replacement
from math import comb
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.errors import BadParameter, LLMGamesError

MOST = 20_000  # line-ups of a meta-game
SUPPORTS = 5_000  # sets of strategies that are searched for equilibria, the small ones first
NEWTON = 25  # steps of Newton's method
EXACT = 1e-8  # of the range of payoffs: who gains less by a change gains nothing
POPULATION = 50
ALPHA = 10.0  # how strongly the better is preferred, in units of one over the range of payoffs
LEAST = 1e-290  # of a rate of change, so that none is lost to rounding


class ExtraMissing(LLMGamesError, ImportError):
    """Equilibria of pygambit need an extra: ``pip install llm-games[metagame]``."""


def lineups(strategies: int, players: int) -> Array:
    """Return all line-ups as counts, int64 ``(lineups, strategies)``; each row sums to `players`.

    Raises:
        BadParameter: there are more than `MOST`.
    """
    many = comb(strategies + players - 1, players)
    if many > MOST:
        raise BadParameter(
            f"{strategies} strategies in {players} seats make {many:,} line-ups, more than {MOST:,}"
        )
    rows = combinations_with_replacement(range(strategies), players)
    return np.array([np.bincount(row, minlength=strategies) for row in rows], np.int64)


@dataclass(frozen=True, eq=False)
class MetaGame:
    """A symmetric game of `players` seats and as many strategies as `names`.

    `payoffs` are what a strategy earns in each of `lineups(len(names), players)`, float64
    ``(lineups, strategies)``; NaN where it has no seat.

    Raises:
        BadParameter: fewer than two players, a shape that does not fit, or a payoff is missing.
    """

    names: tuple[str, ...]
    players: int
    payoffs: Array

    def __post_init__(self) -> None:
        if self.players < 2:
            raise BadParameter(f"a meta-game has at least two players, got {self.players}")
        wanted = self.counts.shape
        if np.shape(self.payoffs) != wanted or len(set(self.names)) != len(self.names):
            raise BadParameter(
                f"payoffs of {len(self.names)} strategies, each once, in {self.players} seats have "
                f"the shape {wanted}, got {np.shape(self.payoffs)} of {', '.join(self.names)}"
            )
        if not np.isfinite(self.payoffs[self.counts > 0]).all():
            row = np.argwhere((self.counts > 0) & ~np.isfinite(self.payoffs))[0][0]
            there = zip(self.counts[row], self.names, strict=True)
            who = ", ".join(f"{n} × {name}" for n, name in there if n)
            raise BadParameter(f"what {who} earn together is not known: play this line-up")

    @classmethod
    def of_matrix(cls, names: Sequence[str], matrix: Any) -> MetaGame:
        """Return the game of two in which the row's strategy earns `matrix` against the column's.

        Raises:
            BadParameter: as of the class.
        """
        matrix, many = np.asarray(matrix, np.float64), len(names)
        if matrix.shape != (many, many):
            raise BadParameter(f"{many} strategies have a square of payoffs, got {matrix.shape}")
        payoffs = np.full((many * (many + 1) // 2, many), np.nan)
        for row, counts in enumerate(lineups(many, 2)):
            one, other = np.repeat(np.arange(many), counts)
            payoffs[row, one], payoffs[row, other] = matrix[one, other], matrix[other, one]
        return cls(tuple(names), 2, payoffs)

    @cached_property
    def counts(self) -> Array:
        """The line-ups, int64 ``(lineups, strategies)``."""
        return lineups(len(self.names), self.players)

    @cached_property
    def row(self) -> dict[tuple[int, ...], int]:
        """The place of each line-up."""
        return {tuple(counts): row for row, counts in enumerate(self.counts.tolist())}

    @cached_property
    def scale(self) -> float:
        """The range of the payoffs; 1 if they are all the same."""
        return float(np.nanmax(self.payoffs) - np.nanmin(self.payoffs)) or 1.0

    def earned(self, *seats: int) -> float:
        """Return what the first strategy earns where these sit."""
        counts = np.bincount(seats, minlength=len(self.names))
        return float(self.payoffs[self.row[tuple(counts.tolist())], seats[0]])

    def matrix(self) -> Array:
        """Return what each earns as the only one among those of a kind, ``(own, others)``."""
        every, rest = range(len(self.names)), self.players - 1
        return np.array([[self.earned(own, *[other] * rest) for other in every] for own in every])

    def tensor(self) -> Array:
        """Return the first seat's payoff by the strategies of all seats; for other libraries.

        Raises:
            BadParameter: it has more than a million entries.
        """
        many = len(self.names)
        if many**self.players > 1_000_000:
            raise BadParameter(f"a tensor of {many} to the {self.players} entries is too large")
        cells = np.ndindex(*[many] * self.players)
        flat = np.array([self.earned(*cell) for cell in cells])
        return flat.reshape([many] * self.players)

    def part(self, some: Sequence[int]) -> MetaGame:
        """Return the game in which only some of the strategies are there."""
        rows = ~np.delete(self.counts, some, axis=1).any(axis=1)
        left = self.counts[rows][:, some]
        names, order = tuple(self.names[one] for one in some), lineups(len(some), self.players)
        place = {tuple(counts): row for row, counts in enumerate(left.tolist())}
        rows_of = [place[tuple(counts)] for counts in order.tolist()]
        return MetaGame(names, self.players, self.payoffs[rows][rows_of][:, some])

    # -- against mixtures: float64 ``(*batch, strategies)`` that sum to 1 -------------------------

    @cached_property
    def _beside(self) -> tuple[Array, Array, Array]:
        """What a strategy earns beside another and ``players - 2`` more, by these; see `pairs`."""
        many, rest = len(self.names), lineups(len(self.names), self.players - 2)
        one = np.eye(many, dtype=np.int64)
        table = np.empty((many, many, len(rest)))
        for own, other in np.ndindex(many, many):
            rows = [self.row[tuple(c)] for c in (rest + one[own] + one[other]).tolist()]
            table[own, other] = self.payoffs[rows, own]
        ways = [multinomial(counts) for counts in rest.tolist()]
        return table, rest, np.array(ways, np.float64)

    def pairs(self, mixture: Array) -> Array:
        """Return what each earns beside one other and the rest drawn, ``(*batch, own, other)``.

        It is also the slope of `against` in the mixture, divided by ``players - 1``.
        """
        table, rest, ways = self._beside
        chance = ways * np.prod(np.asarray(mixture)[..., None, :] ** rest, axis=-1)
        found: Array = chance @ table.reshape(-1, table.shape[2]).T
        return found.reshape(*chance.shape[:-1], *table.shape[:2])

    def against(self, mixture: Array) -> Array:
        """Return what each strategy earns when all others are drawn from a mixture."""
        return np.einsum("...ij,...j->...i", self.pairs(mixture), np.asarray(mixture))

    def chances(self, mixture: Array) -> Array:
        """Return how likely a seat of each strategy finds itself in each line-up, as `payoffs`.

        All others are drawn from a mixture, ``(strategies,)``; 0 where the strategy has no seat.
        """
        found = np.zeros(self.counts.shape)
        for own, one in enumerate(np.eye(len(self.names), dtype=np.int64)):
            rows = np.flatnonzero(self.counts[:, own])
            others = self.counts[rows] - one
            ways = np.array([multinomial(counts) for counts in others.tolist()], np.float64)
            found[rows, own] = ways * np.prod(np.asarray(mixture) ** others, axis=1)
        return found

    def regret(self, mixture: Array) -> Array:
        """Return what the best single strategy gains over the mixture, ``(*batch,)``."""
        earned = self.against(mixture)
        return earned.max(axis=-1) - (earned * mixture).sum(axis=-1)


def multinomial(counts: Sequence[int]) -> int:
    """Return in how many orders things can stand of which some are alike."""
    found, total = 1, 0
    for many in counts:
        total += many
        found *= comb(total, many)
    return found


# -- equilibria ------------------------------------------------------------------------------------


class Equilibrium(NamedTuple):
    """A symmetric equilibrium: the mixture, what it earns, and what a change of one seat gains."""

    mixture: Array
    payoff: float
    regret: float


def equilibria(game: MetaGame) -> list[Equilibrium]:
    """Return symmetric Nash equilibria, the most even first, of pure ones the one that pays most.

    Of those that lie on a line of equilibria, as where two strategies do alike, it is one.

    Strategies that another one beats everywhere are left out first; then for each set of the others
    (small ones first, up to `SUPPORTS`) the mixture is sought at which all of it earn the same, by
    Newton's method. With two players that is linear, and all isolated equilibria of these sets are
    found; with more it begins at several places, and some may be missed. All that are returned were
    checked: a change gains less than `EXACT` of the range.

    Raises:
        BadParameter: none was found.
    """
    alive = undominated(game)
    small, found = game.part(alive), list[Array]()
    for supports in _supports(len(alive)):
        for mixture in _even_on(small, supports):
            whole = np.zeros(len(game.names))
            whole[alive] = mixture
            if _is_equilibrium(game, whole):
                found.append(whole)
    if not found:
        raise BadParameter(
            f"no symmetric equilibrium of {len(alive)} strategies was found: leave some out, or "
            "ask pygambit, llm_games.baselines.metagame.gambit"
        )
    kept = list[Array]()
    for one in sorted(found, key=lambda mixture: (-entropy(mixture), -_paid(game, mixture))):
        if not any(_is_equilibrium(game, (one + other) / 2) for other in kept):
            kept.append(one)
    return [Equilibrium(one, _paid(game, one), max(0.0, float(game.regret(one)))) for one in kept]


def _is_equilibrium(game: MetaGame, mixture: Array) -> bool:
    return bool(game.regret(mixture) <= EXACT * game.scale)


def _paid(game: MetaGame, mixture: Array) -> float:
    return float(mixture @ game.against(mixture))


def undominated(game: MetaGame) -> list[int]:
    """Return the strategies that survive: none of them is beaten everywhere by another one."""
    alive = list(range(len(game.names)))
    while True:
        part = game.part(alive)
        table = part._beside[0].reshape(len(alive), -1)
        least = EXACT * game.scale
        beaten = np.atleast_1d((table[:, None] > table + least).all(axis=-1).any(axis=0))
        if not beaten.any():
            return alive
        alive = [one for one, gone in zip(alive, beaten, strict=True) if not gone]


def _supports(many: int) -> Iterator[Array]:
    """Yield sets of strategies by their size, int64 ``(sets, size)``, `SUPPORTS` at most."""
    left = SUPPORTS
    for size in range(1, many + 1):
        if comb(many, size) > left:
            return
        left -= comb(many, size)
        yield np.array(list(combinations(range(many), size)), np.int64)


def _even_on(game: MetaGame, supports: Array) -> Array:
    """Return mixtures of sets at which all of a set earn the same, ``(found, strategies)``."""
    sets, size = supports.shape
    linear = game.players == 2
    begins = np.full((1, size), 1 / size)
    if not linear and size > 1:  # also from near each corner
        begins = np.vstack([begins, 0.9 * np.eye(size) + 0.1 / size])
    supports = np.repeat(supports, len(begins), axis=0)
    rows, mixture = np.arange(len(supports))[:, None], np.zeros((len(supports), len(game.names)))
    mixture[rows, supports] = np.tile(begins, (sets, 1))
    for _ in range(1 if linear else NEWTON):
        step = _newton(game, supports, mixture)
        mixture[rows, supports] -= step if linear else np.clip(step, -0.5, 0.5)
        if np.abs(step).max() < 1e-14:
            break
    legal = (mixture > -1e-9).all(axis=1) & (np.abs(mixture.sum(axis=1) - 1) < 1e-9)
    clean = np.unique(np.clip(mixture[legal], 0, None).round(12), axis=0)
    return clean / clean.sum(axis=1, keepdims=True)


def _newton(game: MetaGame, supports: Array, mixture: Array) -> Array:
    """Return the steps to where all of a set earn the same, ``(sets, size)``."""
    rows, size = np.arange(len(supports))[:, None], supports.shape[1]
    pairs = game.pairs(mixture) / game.scale
    earned = (pairs @ mixture[..., None])[rows, supports, 0]
    system = np.zeros((len(supports), size + 1, size + 1))
    system[:, :size, :size] = pairs[rows[..., None], supports[:, :, None], supports[:, None, :]]
    system[:, :size, :size] *= game.players - 1
    system[:, :size, size], system[:, size, :size] = -1, 1
    wrong = np.append(earned, mixture.sum(axis=1, keepdims=True) - 1, axis=1)
    wrong[:, :size] -= earned.mean(axis=1, keepdims=True)
    across = system.swapaxes(1, 2)
    square = across @ system
    ridge = 1e-12 * square.max(axis=(1, 2))[:, None, None]  # of two that are alike, half each
    square += ridge * np.eye(size + 1)
    found: Array = np.linalg.solve(square, across @ wrong[..., None])[:, :size, 0]
    return found


def entropy(mixture: Array) -> float:
    """Return how even a mixture is, in nats."""
    some = mixture[mixture > 0]
    return float(-(some * np.log(some)).sum())


def gambit(game: MetaGame) -> list[Equilibrium]:
    """Return symmetric equilibria as pygambit finds them.

    Of two players all extreme ones that are symmetric; of more the one at the end of the principal
    branch of logit equilibria, which is symmetric as the game is.

    Raises:
        ExtraMissing: pygambit is not installed.
        BadParameter: it is too large, see `MetaGame.tensor`.
    """
    try:
        import pygambit
    except ImportError as error:
        raise ExtraMissing(str(ExtraMissing.__doc__)) from error
    tensor, found = game.tensor(), []
    seats = [np.moveaxis(tensor, 0, seat) for seat in range(game.players)]
    theirs = pygambit.Game.from_arrays(*seats)
    if game.players == 2:
        solved = pygambit.nash.enummixed_solve(theirs, rational=False).equilibria
    else:
        solved = pygambit.nash.logit_solve(theirs).equilibria
    for profile in solved:
        each = np.array([[float(p) for _, p in mixed] for _, mixed in profile.mixed_strategies()])
        if np.abs(each - each[0]).max() < 1e-6:
            mixture = each.mean(axis=0)
            found.append(Equilibrium(mixture, _paid(game, mixture), float(game.regret(mixture))))
    return sorted(found, key=lambda one: (-entropy(one.mixture), -one.payoff))


class Correlated(NamedTuple):
    """A correlated equilibrium: how likely each line-up is, ``(lineups,)``, and a seat's payoff."""

    chance: Array
    payoff: float


def correlated(game: MetaGame, best: bool = True) -> Correlated:
    """Return the correlated equilibrium in which seats earn most, or least.

    Somebody draws a line-up, deals its players to the seats at random, and tells each seat only its
    own; nobody gains by another one. Every correlated equilibrium pays as much, on average over
    seats, as one of these.

    Raises:
        BadParameter: the linear programme was not solved.
    """
    from scipy.optimize import linprog

    counts, paid = game.counts, np.nan_to_num(game.payoffs) / game.scale
    one, rows = np.eye(len(game.names), dtype=np.int64), []
    for own, other in np.ndindex(len(game.names), len(game.names)):
        if own != other:
            has, gain = np.flatnonzero(counts[:, own]), np.zeros(len(counts))
            to = [game.row[tuple(c)] for c in (counts[has] - one[own] + one[other]).tolist()]
            gain[has] = counts[has, own] * (paid[to, other] - paid[has, own])
            rows.append(gain)
    mean = (counts * paid).sum(axis=1) / game.players
    limits = {"A_ub": np.array(rows), "b_ub": np.zeros(len(rows))} if rows else {}
    solved = linprog(-mean if best else mean, A_eq=np.ones((1, len(counts))), b_eq=[1.0], **limits)
    if not solved.success:
        raise BadParameter(f"no correlated equilibrium was found: {solved.message}")
    return Correlated(solved.x, float(mean @ solved.x) * game.scale)


# -- what evolves ----------------------------------------------------------------------------------


def alpha_rank(game: MetaGame, alpha: float = ALPHA, population: int = POPULATION) -> Array:
    """Return how often each strategy holds a population in the long run, ``(strategies,)``.

    Somebody of another strategy comes rarely, and takes over or dies out by imitation of whoever
    earns more (`alpha`: how strongly, in units of one over the range of payoffs). Tables are drawn
    from the population without replacement, own one excepted: α-rank of one population, with more
    than two players as Moran's process has it.

    Raises:
        BadParameter: `alpha` is not above 0, or `population` smaller than a table.
    """
    if not alpha > 0 or population < max(2, game.players):
        raise BadParameter(
            f"alpha must be above 0 and a population at least {max(2, game.players)}, got {alpha} "
            f"and {population}"
        )
    many = len(game.names)
    if many == 1:
        return np.ones(1)
    rates = np.zeros((many, many))
    for resident, other in np.ndindex(many, many):
        if resident != other:
            ahead = _ahead(game, other, resident, population) * alpha / game.scale
            rates[resident, other] = np.exp(-_log_sum(np.concatenate([[0], -np.cumsum(ahead)])))
    return stationary(rates / (many - 1))


def _ahead(game: MetaGame, one: int, other: int, population: int) -> Array:
    """Return how much more `one` earns than `other` while 1, 2, ... of the population are it."""
    rest = range(game.players)  # of the others at a table, how many are `one`
    mixed = [[one] * k + [other] * (game.players - 1 - k) for k in rest]
    own = np.array([game.earned(one, *others) for others in mixed])
    theirs = np.array([game.earned(other, *others) for others in mixed])
    drawn = _drawn(population - 1, game.players - 1)
    found: Array = drawn[: population - 1] @ own - drawn[1:population] @ theirs
    return found


@cache
def _drawn(all_of_them: int, taken: int) -> Array:
    """Return how likely each number of ones is among those taken, by how many there are in all."""
    total = comb(all_of_them, taken)
    ways = [
        [comb(ones, k) * comb(all_of_them - ones, taken - k) / total for k in range(taken + 1)]
        for ones in range(all_of_them + 1)
    ]
    return np.array(ways)


def _log_sum(values: Array) -> float:
    high = values.max()
    return float(high + np.log(np.exp(values - high).sum()))


def stationary(rates: Array) -> Array:
    """Return how often each state is visited, from the rates between them, ``(states, states)``.

    By elimination without subtractions (Grassmann, Taksar and Heyman, Operations Research 33,
    1985), which stays exact where rates differ by hundreds of orders of magnitude.
    """
    left = np.maximum(np.array(rates, np.float64), LEAST)
    many = len(left)
    for last in range(many - 1, 0, -1):
        left[:last, last] /= left[last, :last].sum()
        left[:last, :last] += np.outer(left[:last, last], left[last, :last])
    found = np.ones(many)
    for state in range(1, many):
        found[state] = found[:state] @ left[:state, state]
        found /= found.max()  # as they may grow beyond what a float holds
    return found / found.sum()


def replicator(
    game: MetaGame, start: Any = None, time: float = 200.0, steps: int = 1000
) -> tuple[Array, Array]:
    """Return times and the shares of a population that imitates success.

    Shares, ``(steps + 1, strategies)``, grow by what they earn above the mean. `time` is in units
    of one over the range of payoffs; all begin equally often, or from `start`. Runge-Kutta of
    order 4.

    Raises:
        BadParameter: `start` is no mixture.
    """
    many = len(game.names)
    share = np.full(many, 1 / many) if start is None else np.asarray(start, np.float64)
    if share.shape != (many,) or share.min() < 0 or abs(share.sum() - 1) > 1e-9:
        raise BadParameter(f"a start has {many} shares that sum to 1, got {start!r}")

    def growth(at: Array) -> Array:
        earned = game.against(at) / game.scale
        found: Array = at * (earned - at @ earned)
        return found

    width, path = time / steps, [share]
    for _ in range(steps):
        a = growth(share)
        b = growth(share + width / 2 * a)
        c = growth(share + width / 2 * b)
        share = np.clip(share + width / 6 * (a + 2 * b + 2 * c + growth(share + width * c)), 0, 1)
        share = share / share.sum()
        path.append(share)
    return np.linspace(0, time, steps + 1), np.array(path)
