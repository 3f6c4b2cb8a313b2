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
    """Return symmetric Nash equilibria, set by set, the most even first, then what pays most.

    Strategies that another one beats everywhere are left out first; then mixtures at which all of a
    set of strategies earn the same are sought for each set of the others, the small ones first, up
    to `SUPPORTS`. With two players that is linear: all isolated equilibria of these sets are found,
    and of whole faces of equilibria, as where players do alike, the corners and one within. With
    more, those of two strategies are roots of a polynomial, and all found; of larger sets they are
    sought by Newton's method from several places, and some may be missed. Where all that brings
    none, a branch of logit equilibria is followed to its end, and of two players an integer
    programme is solved.

    All that are returned were checked: a change gains less than `EXACT` of the range. Left out is
    only what lies between others that are returned, and all between them are equilibria.

    Raises:
        BadParameter: none was found.
    """
    alive = undominated(game)
    small = game.part(alive)
    ways = [_sought(small), _by_logit(small)]
    ways += [_by_integers(small)] if game.players == 2 else []
    ways += [_by_logit(small, seed) for seed in range(1, BRANCHES)]
    found = list[Array]()
    for way in ways:
        found = found or list(_checked(game, alive, way))
    if not found:
        raise BadParameter(
            f"no symmetric equilibrium of {len(alive)} strategies was found: leave some out, or "
            "ask pygambit, llm_games.baselines.equilibria.gambit"
        )
    return _in_sets(game, found)


def _checked(game: MetaGame, alive: Sequence[int], mixtures: Iterator[Array]) -> Iterator[Array]:
    """Yield those of mixtures of some strategies at which no change gains."""
    for mixture in mixtures:
        whole = np.zeros(len(game.names))
        whole[alive] = mixture
        if _no_change_gains(game, whole):
            yield whole


def _no_change_gains(game: MetaGame, mixture: Array) -> Array:
    """Return which mixtures are equilibria, bool ``(*batch,)``."""
    found: Array = np.asarray(game.regret(mixture) <= EXACT * game.scale)
    return found


def _paid(game: MetaGame, mixture: Array) -> float:
    return float(mixture @ game.against(mixture))


def searched(game: MetaGame) -> tuple[int, int]:
    """Return up to how many strategies sets were searched for equilibria, and of how many."""
    alive = len(undominated(game))
    return max((sets.shape[1] for sets in _supports(alive)), default=0), alive


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


def _sought(game: MetaGame) -> Iterator[Array]:
    """Yield mixtures at which all of a set earn the same, for each set that is searched."""
    for supports in _supports(len(game.names)):
        if supports.shape[1] == 1:
            yield from np.eye(len(game.names))
        elif game.players == 2:
            yield from _linear(game, supports)
            yield from _corners(game, supports)
        else:
            yield from _even_on(game, supports)
            if supports.shape[1] == 2:
                for one, other in supports.tolist():
                    yield from _roots(game, one, other)


def _in_sets(game: MetaGame, found: Sequence[Array]) -> list[Equilibrium]:
    """Return equilibria set by set, without those that lie between others of their set.

    The most even one comes first and is always there.
    """
    corners, between = list[Array](), list[Array]()
    for one in sorted(found, key=np.count_nonzero):
        close = [other for other in corners if np.abs(one - other).max() < SAME]
        if not _joined(game, one, close).any():
            (between if _within(game, one, corners) else corners).append(one)
    for one in corners.copy():  # they may have come before what they lie between
        if _within(game, one, others := [other for other in corners if other is not one]):
            between.append(one)
            corners = others
    sets = np.arange(len(corners))
    for place, one in enumerate(corners):
        for other in np.flatnonzero(_joined(game, one, corners)):
            sets[sets == sets[other]] = sets[place]
    members: dict[int, list[Array]] = {}
    for of, one in zip(sets.tolist(), corners, strict=True):
        members.setdefault(of, []).append(one)

    def rank(one: Array) -> tuple[float, float]:
        return -round(entropy(one), 9), -_paid(game, one)

    for own in members.values():
        near = [one for one in between if _joined(game, one, own).any()]
        own.sort(key=rank)
        even = min(near, key=rank, default=own[0])
        if rank(even) < rank(own[0]):
            own.insert(0, even)
    return [
        Equilibrium(one, _paid(game, one), max(0.0, float(game.regret(one))), number)
        for number, own in enumerate(sorted(members.values(), key=lambda own: rank(own[0])))
        for one in own
    ]


def _joined(game: MetaGame, one: Array, others: Sequence[Array]) -> Array:
    """Return to which of others all mixtures between are equilibria, bool ``(others,)``.

    What is gained there is a polynomial, which is known from so many places.
    """
    share = np.linspace(0, 1, 2 * game.players + 3)[:, None]
    ends = np.reshape(others, (-1, 1, len(one)))
    fine = _no_change_gains(game, share * one + (1 - share) * ends)
    return np.asarray(fine.all(axis=1))


def _within(game: MetaGame, one: Array, others: Sequence[Array]) -> bool:
    """Return whether a mixture is a mean of others, and all between it and these are equilibria."""
    from scipy.optimize import nnls

    some = np.reshape(others, (-1, len(one)))[_joined(game, one, others)]
    if len(some) < 2:
        return False
    corners = np.vstack([some.T, np.ones(len(some))])
    return bool(nnls(corners, np.append(one, 1))[1] < NEAR)


def _linear(game: MetaGame, supports: Array) -> Array:
    """Return mixtures of sets at which all of a set earn the same, of two players.

    Where there are several, the one that is nearest to the even one.
    """
    sets, size = supports.shape
    paid = (game.matrix() - np.nanmin(game.payoffs)) / game.scale
    system = np.zeros((sets, size + 1, size + 1))
    system[:, :size, :size] = paid[supports[:, :, None], supports[:, None, :]]
    system[:, :size, size], system[:, size, :size] = -1, 1
    even = np.append(np.full(size, 1 / size), 0.0)
    wrong = np.eye(size + 1)[size] - system @ even
    solved = even + (np.linalg.pinv(system, rcond=SINGULAR) @ wrong[..., None])[..., 0]
    off = np.abs((system @ solved[..., None])[..., 0] - np.eye(size + 1)[size]).max(axis=1)
    mixture = np.zeros((sets, len(game.names)))
    mixture[np.arange(sets)[:, None], supports] = solved[:, :size]
    return _cleaned(mixture[off < EXACT])


def _corners(game: MetaGame, supports: Array) -> Array:
    """Return the corners of faces of equilibria of two players, ``(found, strategies)``.

    On a set whose strategies earn the same at more than one mixture, other strategies earn as much
    at a corner: so many more as make it the only one.
    """
    many, size = len(game.names), supports.shape[1]
    paid = (game.matrix() - np.nanmin(game.payoffs)) / game.scale
    found, left = [], CORNERS
    for own in supports.tolist():
        rest = [one for one in range(many) if one not in own]
        bordered = np.vstack([np.c_[paid[np.ix_(own, own)], -np.ones(size)], [1] * size + [0]])
        free = size + 1 - np.linalg.matrix_rank(bordered, rtol=SINGULAR)
        if not 0 < free <= len(rest):
            continue
        left -= comb(len(rest), free)
        if left < 0:
            break
        for more in combinations(rest, free):
            rows = np.c_[paid[np.ix_(more, own)], -np.ones(free)]
            system = np.vstack([bordered, rows])
            wanted = np.append(np.eye(size + 1)[size], np.zeros(free))
            solved, _, rank, _ = np.linalg.lstsq(system, wanted, rcond=SINGULAR)
            if rank == size + 1 and np.abs(system @ solved - wanted).max() < EXACT:
                found.append(np.zeros(many))
                found[-1][own] = solved[:size]
    return _cleaned(np.array(found).reshape(-1, many))


def _cleaned(mixtures: Array) -> Array:
    """Return those that are mixtures but for rounding, each once."""
    legal = (mixtures > -1e-9).all(axis=1) & (np.abs(mixtures.sum(axis=1) - 1) < 1e-9)
    clean = np.unique(np.clip(mixtures[legal], 0, None).round(12), axis=0)
    return clean / clean.sum(axis=1, keepdims=True)


def _roots(game: MetaGame, one: int, other: int) -> Array:
    """Return the mixtures of two strategies at which both earn the same, ``(found, strategies)``.

    What one earns more is a polynomial of its share. It has its roots where the companion matrix of
    its Bernstein form says, in odds, which keeps small shares apart.
    """
    rest = game.players - 1
    ahead = [
        game.earned(one, *[one] * k + [other] * (rest - k))
        - game.earned(other, *[one] * k + [other] * (rest - k))
        for k in range(rest + 1)
    ]
    odds = np.roots([gain * comb(rest, k) for k, gain in enumerate(ahead)][::-1])
    odds = odds[(np.abs(odds.imag) < 1e-6 * (1 + np.abs(odds))) & (odds.real > 0)].real
    found = np.zeros((len(odds), len(game.names)))
    found[:, one], found[:, other] = odds / (1 + odds), 1 / (1 + odds)
    return found


def _even_on(game: MetaGame, supports: Array) -> Array:
    """Return mixtures of sets at which all of a set earn the same, ``(found, strategies)``.

    By Newton's method: from the middle, from near each corner, and from some places between.
    """
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
    return _cleaned(mixture)


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


def _by_integers(game: MetaGame) -> Iterator[Array]:
    """Yield an equilibrium of two players, as a mixed integer programme finds it.

    Who is played must earn the most (Sandholm, Gilpin and Conitzer, AAAI 2005).
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    many = len(game.names)
    paid, one = (game.matrix() - np.nanmin(game.payoffs)) / game.scale, np.eye(many)
    none, most = np.zeros((many, many)), -np.ones((many, 1))  # of shares, played, the most
    limits = [
        LinearConstraint(np.c_[one, -one, 0 * most], -np.inf, 0),  # a share is of one played
        LinearConstraint(np.c_[paid, none, most], -np.inf, 0),  # none earns more than the most
        LinearConstraint(np.c_[paid, -one, most], -1, np.inf),  # and who is played no less
        LinearConstraint(np.append(np.ones(many), np.zeros(many + 1)), 1, 1),
    ]
    kinds = np.append(np.zeros(many), np.append(np.ones(many), 0))
    found = milp(
        np.zeros(2 * many + 1),
        constraints=limits,
        integrality=kinds,
        bounds=Bounds(0, 1),
        options={"time_limit": SECONDS},
    )
    if found.x is None:
        return
    share = np.where(found.x[:many] > NEAR, found.x[:many], 0.0)
    support = np.flatnonzero(share)
    system = np.vstack(
        [np.c_[paid[np.ix_(support, support)], most[support]], [1] * len(support) + [0]]
    )
    begun = np.append(share[support], found.x[-1])
    wanted = np.append(np.zeros(len(support)), 1.0)
    exact = begun + np.linalg.pinv(system, rcond=SINGULAR) @ (wanted - system @ begun)
    share[support] = exact[:-1]
    yield from _cleaned(share[None])


def _by_logit(game: MetaGame, seed: int = 0) -> Iterator[Array]:
    """Yield where the branch of symmetric logit equilibria ends that begins with all alike.

    With a seed other than 0 it begins with drawn shares. At a logit equilibrium
    ``log(share / begun) - rate * payoff`` is the same for all. Its curve is followed
    by its length, as the rate can fall on the way; it ends at an equilibrium, whose strategies are
    those that are left (McKelvey and Palfrey, Games and Economic Behavior 10, 1995; Turocy, same
    journal 51, 2005).
    """
    many = len(game.names)
    begun = np.full(many, -np.log(many))
    if seed:
        begun = np.log(np.random.default_rng(seed).dirichlet(np.full(many, 5.0)))
    at = np.append(begun, 0.0)
    way, width, looked = _along(game, begun, at, np.eye(many + 1)[many]), 0.5, 50.0
    for _ in range(BRANCH):
        ahead = _onto(game, begun, at + width * way)
        if ahead is None or (turned := _along(game, begun, ahead, way)) @ way < BEND:
            width /= 2  # or it might go on at another part of the branch
            if width < 1e-9:
                return
            continue
        at, way, width = ahead, turned, 1.5 * width
        if at[many] > 2 * looked:
            looked = at[many]
            found = _polished(game, np.exp(at[:many]))
            yield from found
            if len(found) and _no_change_gains(game, found[0]):
                return


def _polished(game: MetaGame, share: Array) -> Array:
    """Return the mixture near one at which all that are not rare earn the same, or none."""
    support = np.flatnonzero(share > 1e-3 * share.max())
    mixture = np.zeros((1, len(share)))
    mixture[0, support] = share[support] / share[support].sum()
    for _ in range(NEWTON):
        mixture[:, support] -= np.clip(_newton(game, support[None], mixture), -0.5, 0.5)
    return _cleaned(mixture)


def _slopes(game: MetaGame, begun: Array, at: Array) -> tuple[Array, Array]:
    """Return what is 0 at a logit equilibrium, and its slopes; the last of `at` is the rate."""
    many = len(at) - 1
    share, rate = np.exp(at[:many]), at[many]
    pairs = game.pairs(share) / game.scale
    earned = pairs @ share
    off = at[:many] - begun - rate * earned
    slope = np.zeros((many, many + 1))
    slope[:, :many] = np.eye(many) - rate * (game.players - 1) * pairs * share
    slope[:, many] = -earned
    value = np.append(off[1:] - off[0], share.sum() - 1)
    return value, np.vstack([slope[1:] - slope[0], np.append(share, 0.0)])


def _along(game: MetaGame, begun: Array, at: Array, before: Array) -> Array:
    """Return the direction of the branch, the one that goes on."""
    way = np.linalg.svd(_slopes(game, begun, at)[1])[2][-1]
    return way if way @ before > 0 else -way


def _onto(game: MetaGame, begun: Array, at: Array) -> Array | None:
    """Return the point of the branch nearest to one; None if it is too far."""
    begin = at
    for _ in range(8):
        value, slope = _slopes(game, begun, at)
        if not np.isfinite(value).all() or np.abs(at[:-1] - begin[:-1]).max() > 0.5:
            return None
        if np.abs(value).max() < 1e-9:
            return at
        at = at - np.linalg.pinv(slope) @ value
    return None


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
        way = f"pygambit is not installed; install it with: {install('metagame')}"
        raise ExtraMissing(way) from error
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
