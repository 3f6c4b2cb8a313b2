"""Symmetric Nash equilibria of a meta-game, and correlated ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.baselines.metagame import MetaGame
from llm_games.errors import BadParameter, LLMGamesError, install

SUPPORTS = 5_000  # sets of strategies that are searched for equilibria, the small ones first
NEWTON = 25  # steps of Newton's method
CORNERS = 30_000  # of faces of equilibria that are tried, for sets of a size
STARTS, STARTED = 24, 10_000  # of Newton's method, drawn: of a set, and of those of a size
SECONDS = 5.0  # for an integer programme
BRANCH = 1500  # steps along a branch of logit equilibria
BRANCHES = 10  # of which one is followed after the other
BEND = 0.9  # cosine of the angle by which it may turn in a step
SINGULAR = 1e-10  # of the largest singular value: what is smaller is 0
NEAR = 1e-6  # of shares: what rounding leaves
SAME = 1e-4  # joined equilibria whose shares differ by less are one that Newton came near
EXACT = 1e-10  # of the range of payoffs: who gains less by a change gains nothing


class ExtraMissing(LLMGamesError, ImportError):
    """Equilibria of pygambit need an extra."""


class Equilibrium(NamedTuple):
    """A symmetric equilibrium: the mixture, what it earns, and what a change of one seat gains.

    Equilibria of one `set` are connected: one comes from each to each other along equilibria.
    """

    mixture: Array
    payoff: float
    regret: float
    set: int = 0


def equilibria(game: MetaGame) -> list[Equilibrium]:
    """Return symmetric Nash equilibria, set by set, the most even first, then by payoff.

    Strictly dominated strategies are removed; then, for sets of the others, the small ones first
    and up to `SUPPORTS`, mixtures are sought at which all of the set earn the same. With two
    players that is linear: all isolated equilibria are found, and of whole faces the corners and
    one within. With more, those of two strategies are roots of a polynomial and all found; larger
    sets use Newton's method from several starts and may miss some. If all that finds none, a branch
    of logit equilibria is followed, and for two players an integer programme solved.

    Each was checked: a change gains less than `EXACT` of the range. Equilibria between returned
    ones are left out only if all mixtures between those are equilibria.

    Raises:
        BadParameter: none was found.
    """
    alive = undominated(game)
    small = game.part(alive)
    ways = [_candidates(small), _by_logit(small)]
    ways += [_by_integers(small)] if game.players == 2 else []
    ways += [_by_logit(small, seed) for seed in range(1, BRANCHES)]
    mixtures = next(filter(None, (list(_checked(game, alive, way)) for way in ways)), None)
    if mixtures is None:
        fault = f"no symmetric equilibrium of {len(alive)} strategies was found: leave some out, or"
        raise BadParameter(f"{fault} ask pygambit, llm_games.baselines.equilibria.gambit")
    return _in_sets(game, mixtures)


def _checked(game: MetaGame, alive: Sequence[int], mixtures: Iterator[Array]) -> Iterator[Array]:
    """Yield the mixtures at which no change gains, extended from `alive` to all strategies."""
    for mixture in mixtures:
        whole = np.zeros(len(game.names))
        whole[alive] = mixture
        if _no_change_gains(game, whole):
            yield whole


def _no_change_gains(game: MetaGame, mixture: Array) -> Array:
    return np.asarray(game.regret(mixture) <= EXACT * game.scale)


def _payoff(game: MetaGame, mixture: Array) -> float:
    return float(mixture @ game.against(mixture))


def searched(game: MetaGame) -> tuple[int, int]:
    """Return the largest size of sets that were searched completely, and the strategies' number."""
    alive = len(undominated(game))
    return max((sets.shape[1] for sets in _supports(alive)), default=0), alive


def undominated(game: MetaGame) -> list[int]:
    """Return the strategies that survive repeated removal of strictly dominated ones."""
    alive = list(range(len(game.names)))
    while True:
        part = game.part(alive)
        table = part._beside[0].reshape(len(alive), -1)
        beaten = (table[:, None] > table + EXACT * game.scale).all(axis=-1).any(axis=0)
        if not np.any(beaten):
            return alive
        alive = np.array(alive)[~beaten].tolist()


def _supports(strategies: int) -> Iterator[Array]:
    """Yield sets of strategies by their size, int64 ``(sets, size)``, `SUPPORTS` at most."""
    remaining = SUPPORTS
    for size in range(1, strategies + 1):
        if comb(strategies, size) > remaining:
            return
        remaining -= comb(strategies, size)
        yield np.array(list(combinations(range(strategies), size)), np.int64)


def _candidates(game: MetaGame) -> Iterator[Array]:
    """Yield the mixtures at which all of a set earn the same, for each set that is searched."""
    for supports in _supports(len(game.names)):
        if supports.shape[1] == 1:
            yield from np.eye(len(game.names))
        elif game.players == 2:
            yield from _linear(game, supports)
            yield from _corners(game, supports)
        else:
            yield from _even_on(game, supports)
            if supports.shape[1] == 2:
                for first, second in supports.tolist():
                    yield from _roots(game, first, second)


def _in_sets(game: MetaGame, mixtures: Sequence[Array]) -> list[Equilibrium]:
    """Return equilibria set by set, the most even one first, without those between others."""
    corners, between = list[Array](), list[Array]()
    for mixture in sorted(mixtures, key=np.count_nonzero):
        close = [other for other in corners if np.abs(mixture - other).max() < SAME]
        if not _joined(game, mixture, close).any():
            (between if _within(game, mixture, corners) else corners).append(mixture)
    for mixture in corners.copy():  # they may have come before what they lie between
        if _within(game, mixture, others := [other for other in corners if other is not mixture]):
            between.append(mixture)
            corners = others
    sets = np.arange(len(corners))
    for index, mixture in enumerate(corners):
        for other in np.flatnonzero(_joined(game, mixture, corners)):
            sets[sets == sets[other]] = sets[index]
    members: dict[int, list[Array]] = {}
    for of, mixture in zip(sets.tolist(), corners, strict=True):
        members.setdefault(of, []).append(mixture)

    def rank(mixture: Array) -> tuple[float, float]:
        return -round(entropy(mixture), 9), -_payoff(game, mixture)

    for set_members in members.values():
        near = [mixture for mixture in between if _joined(game, mixture, set_members).any()]
        set_members.sort(key=rank)
        even = min(near, key=rank, default=set_members[0])
        if rank(even) < rank(set_members[0]):
            set_members.insert(0, even)
    ordered = sorted(members.values(), key=lambda set_members: rank(set_members[0]))
    return [
        Equilibrium(mixture, _payoff(game, mixture), max(0.0, float(game.regret(mixture))), number)
        for number, set_members in enumerate(ordered)
        for mixture in set_members
    ]


def _joined(game: MetaGame, mixture: Array, others: Sequence[Array]) -> Array:
    """Return to which of others all mixtures between are equilibria, bool ``(others,)``."""
    # The regret along the way is a polynomial, which this number of points determines.
    share = np.linspace(0, 1, 2 * game.players + 3)[:, None]
    ends = np.reshape(others, (-1, 1, len(mixture)))
    fine = _no_change_gains(game, share * mixture + (1 - share) * ends)
    return np.asarray(fine.all(axis=1))


def _within(game: MetaGame, mixture: Array, others: Sequence[Array]) -> bool:
    """Return whether a mixture is a mean of others to which it is joined by equilibria."""
    from scipy.optimize import nnls

    joined = np.reshape(others, (-1, len(mixture)))[_joined(game, mixture, others)]
    if len(joined) < 2:
        return False
    corners = np.vstack([joined.T, np.ones(len(joined))])
    return bool(nnls(corners, np.append(mixture, 1))[1] < NEAR)


def _linear(game: MetaGame, supports: Array) -> Array:
    """Return where all of a set earn the same, of two players: of several the most even mixture."""
    sets, size = supports.shape
    payoffs = (game.matrix() - np.nanmin(game.payoffs)) / game.scale
    system = np.zeros((sets, size + 1, size + 1))
    system[:, :size, :size] = payoffs[supports[:, :, None], supports[:, None, :]]
    system[:, :size, size], system[:, size, :size] = -1, 1
    even = np.append(np.full(size, 1 / size), 0.0)
    wrong = np.eye(size + 1)[size] - system @ even
    solved = even + (np.linalg.pinv(system, rcond=SINGULAR) @ wrong[..., None])[..., 0]
    error = np.abs((system @ solved[..., None])[..., 0] - np.eye(size + 1)[size]).max(axis=1)
    mixture = np.zeros((sets, len(game.names)))
    mixture[np.arange(sets)[:, None], supports] = solved[:, :size]
    return _valid_mixtures(mixture[error < EXACT])


def _corners(game: MetaGame, supports: Array) -> Array:
    """Return the corners of faces of equilibria of two players, ``(corners, strategies)``.

    There further strategies earn as much as those of the set: as many as make it unique.
    """
    strategies, size = len(game.names), supports.shape[1]
    payoffs = (game.matrix() - np.nanmin(game.payoffs)) / game.scale
    corners, remaining = [], CORNERS
    for support in supports.tolist():
        rest = [strategy for strategy in range(strategies) if strategy not in support]
        bordered = np.vstack(
            [np.c_[payoffs[np.ix_(support, support)], -np.ones(size)], [1] * size + [0]]
        )
        free = size + 1 - np.linalg.matrix_rank(bordered, rtol=SINGULAR)
        if not 0 < free <= len(rest):
            continue
        remaining -= comb(len(rest), free)
        if remaining < 0:
            break
        for extra in combinations(rest, free):
            rows = np.c_[payoffs[np.ix_(extra, support)], -np.ones(free)]
            system = np.vstack([bordered, rows])
            wanted = np.append(np.eye(size + 1)[size], np.zeros(free))
            solved, _, rank, _ = np.linalg.lstsq(system, wanted, rcond=SINGULAR)
            if rank == size + 1 and np.abs(system @ solved - wanted).max() < EXACT:
                corners.append(np.zeros(strategies))
                corners[-1][support] = solved[:size]
    return _valid_mixtures(np.array(corners).reshape(-1, strategies))


def _valid_mixtures(mixtures: Array) -> Array:
    """Return the rows that are mixtures up to rounding, without duplicates."""
    legal = (mixtures > -1e-9).all(axis=1) & (np.abs(mixtures.sum(axis=1) - 1) < 1e-9)
    clean = np.unique(np.clip(mixtures[legal], 0, None).round(12), axis=0)
    return clean / clean.sum(axis=1, keepdims=True)


def _roots(game: MetaGame, first: int, second: int) -> Array:
    """Return mixtures of two strategies at which both earn the same, ``(mixtures, strategies)``."""
    # Their difference is a polynomial of the share. Its roots, in odds to keep small shares apart,
    # are the eigenvalues of the companion matrix of its Bernstein form.
    rest = game.players - 1
    ahead = [
        game.earned(first, *[first] * k + [second] * (rest - k))
        - game.earned(second, *[first] * k + [second] * (rest - k))
        for k in range(rest + 1)
    ]
    odds = np.roots([gain * comb(rest, k) for k, gain in enumerate(ahead)][::-1])
    odds = odds[(np.abs(odds.imag) < 1e-6 * (1 + np.abs(odds))) & (odds.real > 0)].real
    mixtures = np.zeros((len(odds), len(game.names)))
    mixtures[:, first], mixtures[:, second] = odds / (1 + odds), 1 / (1 + odds)
    return mixtures


def _even_on(game: MetaGame, supports: Array) -> Array:
    """Return mixtures of sets at which all of a set earn the same, ``(mixtures, strategies)``."""
    # By Newton's method from the middle, from near each corner, and from drawn starts.
    sets, size = supports.shape
    places = max(2, min(STARTS, STARTED // sets))
    drawn = np.random.default_rng(size).dirichlet(np.ones(size), places)
    begins = np.vstack([np.full((1, size), 1 / size), 0.9 * np.eye(size) + 0.1 / size, drawn])
    supports = np.repeat(supports, len(begins), axis=0)
    rows, mixture = np.arange(len(supports))[:, None], np.zeros((len(supports), len(game.names)))
    mixture[rows, supports] = np.tile(begins, (sets, 1))
    going = np.arange(len(supports))
    for number in range(NEWTON):
        step = _newton(game, supports[going], mixture[going])
        mixture[going[:, None], supports[going]] -= np.clip(step, -0.5, 0.5)
        moved = np.abs(step).max(axis=1) > 1e-14
        if number == 0:  # where all of a set always earn the same, the middle stands for it
            flat = (np.abs(step) < NEAR).all(axis=1).reshape(sets, -1).all(axis=1)
            gone = np.repeat(flat, len(begins)) & (np.arange(len(supports)) % len(begins) > 0)
            mixture[gone], moved = np.nan, moved & ~gone
        going = going[moved]
        if not len(going):
            break
    return _valid_mixtures(mixture)


def _newton(game: MetaGame, supports: Array, mixture: Array) -> Array:
    """Return Newton's steps towards equal payoffs of all strategies of a set, ``(sets, size)``."""
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
    return np.linalg.solve(square, across @ wrong[..., None])[:, :size, 0]


def _by_integers(game: MetaGame) -> Iterator[Array]:
    """Yield an equilibrium of two players, solved as a mixed integer programme."""
    # Strategies that are played must earn the most (Sandholm, Gilpin and Conitzer, AAAI 2005).
    from scipy.optimize import Bounds, LinearConstraint, milp

    count = len(game.names)
    payoffs, identity = (game.matrix() - np.nanmin(game.payoffs)) / game.scale, np.eye(count)
    none, top_column = np.zeros((count, count)), -np.ones((count, 1))  # of shares, played, the most
    limits = [
        # A share is of one played; none earns more than the most, and who is played no less.
        LinearConstraint(np.c_[identity, -identity, 0 * top_column], -np.inf, 0),
        LinearConstraint(np.c_[payoffs, none, top_column], -np.inf, 0),
        LinearConstraint(np.c_[payoffs, -identity, top_column], -1, np.inf),
        LinearConstraint(np.append(np.ones(count), np.zeros(count + 1)), 1, 1),
    ]
    kinds = np.append(np.zeros(count), np.append(np.ones(count), 0))
    how = {"bounds": Bounds(0, 1), "options": {"time_limit": SECONDS}}
    solution = milp(np.zeros(2 * count + 1), constraints=limits, integrality=kinds, **how)
    if solution.x is None:
        return
    share = np.where(solution.x[:count] > NEAR, solution.x[:count], 0.0)
    support = np.flatnonzero(share)
    system = np.vstack(
        [np.c_[payoffs[np.ix_(support, support)], top_column[support]], [1] * len(support) + [0]]
    )
    begun = np.append(share[support], solution.x[-1])
    wanted = np.append(np.zeros(len(support)), 1.0)
    exact = begun + np.linalg.pinv(system, rcond=SINGULAR) @ (wanted - system @ begun)
    share[support] = exact[:-1]
    yield from _valid_mixtures(share[None])


def _by_logit(game: MetaGame, seed: int = 0) -> Iterator[Array]:
    """Yield the end of the branch of logit equilibria from equal (seed 0) or drawn shares.

    At one, ``log(share / begun) - rate * payoff`` is the same for all strategies. The curve is
    followed by its length, as the rate can fall on the way (McKelvey and Palfrey, Games and
    Economic Behavior 10, 1995; Turocy, same journal 51, 2005).
    """
    count = len(game.names)
    begun = np.full(count, -np.log(count))
    if seed:
        begun = np.log(np.random.default_rng(seed).dirichlet(np.full(count, 5.0)))
    point = np.append(begun, 0.0)
    way, width, looked = _direction(game, begun, point, np.eye(count + 1)[count]), 0.5, 50.0
    for _ in range(BRANCH):
        ahead = _nearest_point(game, begun, point + width * way)
        if ahead is None or (turned := _direction(game, begun, ahead, way)) @ way < BEND:
            width /= 2  # or it might go on at another part of the branch
            if width < 1e-9:
                return
            continue
        point, way, width = ahead, turned, 1.5 * width
        if point[count] > 2 * looked:
            looked = point[count]
            mixtures = _nearby_equal(game, np.exp(point[:count]))
            yield from mixtures
            if len(mixtures) and _no_change_gains(game, mixtures[0]):
                return


def _nearby_equal(game: MetaGame, share: Array) -> Array:
    """Return the mixture near `share` at which all but rare strategies earn the same, or none."""
    support = np.flatnonzero(share > 1e-3 * share.max())
    mixture = np.zeros((1, len(share)))
    mixture[0, support] = share[support] / share[support].sum()
    for _ in range(NEWTON):
        mixture[:, support] -= np.clip(_newton(game, support[None], mixture), -0.5, 0.5)
    return _valid_mixtures(mixture)


def _slopes(game: MetaGame, begun: Array, point: Array) -> tuple[Array, Array]:
    """Return the residual of logit equilibrium and its slopes; `point` ends with the rate."""
    count = len(point) - 1
    share, rate = np.exp(point[:count]), point[count]
    pairs = game.pairs(share) / game.scale
    earned = pairs @ share
    off = point[:count] - begun - rate * earned
    slope = np.zeros((count, count + 1))
    slope[:, :count] = np.eye(count) - rate * (game.players - 1) * pairs * share
    slope[:, count] = -earned
    value = np.append(off[1:] - off[0], share.sum() - 1)
    return value, np.vstack([slope[1:] - slope[0], np.append(share, 0.0)])


def _direction(game: MetaGame, begun: Array, point: Array, previous: Array) -> Array:
    """Return the branch's tangent that keeps the previous direction."""
    way = np.linalg.svd(_slopes(game, begun, point)[1])[2][-1]
    return way if way @ previous > 0 else -way


def _nearest_point(game: MetaGame, begun: Array, point: Array) -> Array | None:
    """Return the point of the branch nearest to `point`; None if it is too far."""
    begin = point
    for _ in range(8):
        value, slope = _slopes(game, begun, point)
        if not np.isfinite(value).all() or np.abs(point[:-1] - begin[:-1]).max() > 0.5:
            return None
        if np.abs(value).max() < 1e-9:
            return point
        point = point - np.linalg.pinv(slope) @ value
    return None


def entropy(mixture: Array) -> float:
    shares = mixture[mixture > 0]
    return float(-(shares * np.log(shares)).sum())


def gambit(game: MetaGame) -> list[Equilibrium]:
    """Return symmetric equilibria by pygambit.

    For two players all extreme ones; for more the end of the principal branch of logit equilibria.

    Raises:
        ExtraMissing: pygambit is not installed.
        BadParameter: the game is too large, see `MetaGame.tensor`.
    """
    try:
        import pygambit
    except ImportError as error:
        way = f"pygambit is not installed; install it with: {install('metagame')}"
        raise ExtraMissing(way) from error
    tensor, solutions = game.tensor(), []
    seats = [np.moveaxis(tensor, 0, seat) for seat in range(game.players)]
    theirs = pygambit.Game.from_arrays(*seats)
    if game.players == 2:
        solved = pygambit.nash.enummixed_solve(theirs, rational=False)
    else:
        solved = pygambit.nash.logit_solve(theirs)
    for profile in solved.equilibria:
        each = np.array([[float(p) for _, p in mixed] for _, mixed in profile.mixed_strategies()])
        if np.abs(each - each[0]).max() < 1e-6:
            mixture = each.mean(axis=0)
            regret = float(game.regret(mixture))
            solutions.append(Equilibrium(mixture, _payoff(game, mixture), regret))
    return sorted(solutions, key=lambda solution: (-entropy(solution.mixture), -solution.payoff))


class Correlated(NamedTuple):
    """A correlated equilibrium: the chance of each line-up, ``(lineups,)``, and a seat's payoff."""

    chance: Array
    payoff: float


def correlated(game: MetaGame, best: bool = True) -> Correlated:
    """Return the correlated equilibrium in which seats earn most, or least.

    A mediator draws a line-up, deals its players to the seats at random, and tells each seat only
    its own; no seat gains by another one. Raises BadParameter if the linear programme fails.
    """
    from scipy.optimize import linprog

    counts, payoffs = game.counts, np.nan_to_num(game.payoffs) / game.scale
    identity, rows = np.eye(len(game.names), dtype=np.int64), []
    for strategy, other in np.ndindex(len(game.names), len(game.names)):
        if strategy != other:
            has, gain = np.flatnonzero(counts[:, strategy]), np.zeros(len(counts))
            moved = counts[has] - identity[strategy] + identity[other]
            to = [game.row[tuple(lineup)] for lineup in moved.tolist()]
            gain[has] = counts[has, strategy] * (payoffs[to, other] - payoffs[has, strategy])
            rows.append(gain)
    mean = (counts * payoffs).sum(axis=1) / game.players
    limits = {"A_ub": np.array(rows), "b_ub": np.zeros(len(rows))} if rows else {}
    solved = linprog(-mean if best else mean, A_eq=np.ones((1, len(counts))), b_eq=[1.0], **limits)
    if not solved.success:
        raise BadParameter(f"no correlated equilibrium was found: {solved.message}")
    return Correlated(solved.x, float(mean @ solved.x) * game.scale)
