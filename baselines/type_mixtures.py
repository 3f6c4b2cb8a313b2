"""Which rule stands behind a seat's moves: mixtures of rules with errors, by maximum likelihood.

A type foretells a distribution of moves in each state. Of a choice it makes any with the chance
``error``; a number is besides missed by a normal error of standard deviation ``spread``, rounded to
what can be chosen. Both are alike for all types and seats. Shares of types come by expectation and
maximisation over seats, each of one type (Dal Bo and Frechette, American Economic Review 101, 2011;
El-Gamal and Grether, Journal of the American Statistical Association 90, 1995).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from scipy.special import ndtr

from llm_games.arrays import Array
from llm_games.errors import BadParameter

ERRORS = (0.001, 0.01, 0.05, 0.2)  # chances of any move that the search begins with
SPREADS = (0.005, 0.05, 0.2)  # errors of numbers that it begins with, as shares of their range
STEPS = (0.8, 1.0, 1.25)  # by which both change in one step of the search
CLIMBED = 3  # of the points to begin with, the likeliest
MOST_STEPS, MOST_ROUNDS = 300, 200
LEAST_SPREAD = 0.15  # of one step of the numbers; smaller ones are one to the likelihood
LEAST_ERROR = 1e-4
CLIMBS = 1e-3  # nats by which a step has to be better
TINY = 1e-300  # chance, so that none is 0
SETTLED = 1e-7  # change of the log-likelihood at which a fit has come to rest
SURE = 0.95  # posterior chance above which a seat's type is named
TOO_RANDOM = 0.25  # chance of any move above which nobody is named
APART = float(np.log(19))  # nats between two types on a seat's record, to tell them apart at 95 %


@dataclass(frozen=True)
class ForetoldMoves:
    """What types foretell of recorded decisions.

    `actions` are the moves, whole numbers ``(decisions,)``, from `low` to `high` in each decision,
    `seats` whose they are, from 0. `parts` are each type's moves and their chances, both
    ``(decisions, kinds)``. `numbers`: near moves are alike, so that errors are small ones.
    """

    types: tuple[str, ...]
    actions: Array
    low: Array
    high: Array
    seats: Array
    parts: tuple[tuple[Array, Array], ...]
    numbers: bool

    def __post_init__(self) -> None:
        counts = {len(self.actions), *(len(moves) for moves, _ in self.parts)}
        if len(self.parts) != len(self.types) or len(counts) > 1 or not all(counts):
            raise BadParameter(
                f"{len(self.types)} types need as many parts, each of all decisions, got "
                f"{len(self.parts)} of {sorted(counts)}"
            )

    @cached_property
    def count(self) -> int:
        """How many seats there are."""
        return int(self.seats.max()) + 1

    @cached_property
    def options(self) -> Array:
        return self.high - self.low + 1.0

    def select(self, decisions: Array) -> ForetoldMoves:
        """Return these decisions alone, of seats that are numbered anew."""
        columns = {name: getattr(self, name)[decisions] for name in ("actions", "low", "high")}
        seats = np.unique(self.seats[decisions], return_inverse=True)[1]
        parts = tuple((moves[decisions], chances[decisions]) for moves, chances in self.parts)
        return replace(self, seats=seats, parts=parts, **columns)

    def distinct(self) -> ForetoldMoves:
        """Return types that foretell the same here as one, named ``a = b``."""
        groups: dict[bytes, list[int]] = {}
        for index, (moves, chances) in enumerate(self.parts):
            width = int((chances > 0).sum(axis=1).max())  # what follows is padding
            of_type = (moves * (chances > 0))[:, :width], chances[:, :width].round(9)
            groups.setdefault(b"".join(part.tobytes() for part in of_type), []).append(index)
        first = [indices[0] for indices in groups.values()]
        names = (" = ".join(self.types[index] for index in indices) for indices in groups.values())
        return replace(self, types=tuple(names), parts=tuple(self.parts[i] for i in first))

    def likelihoods(self, error: float, spread: float) -> Array:
        """Return the chance of each decision by type, ``(types, decisions)``."""
        aimed = [self._aimed(moves, chances, spread) for moves, chances in self.parts]
        return (1 - error) * np.array(aimed) + error / self.options

    def _aimed(self, moves: Array, chances: Array, spread: float) -> Array:
        """Return the chance of each decision by a type without other errors, ``(decisions,)``."""
        actions = self.actions[:, None]
        if self.numbers:
            above = np.where(actions >= self.high[:, None], np.inf, actions + 0.5)
            below = np.where(actions <= self.low[:, None], -np.inf, actions - 0.5)
            near = ndtr((above - moves) / spread) - ndtr((below - moves) / spread)
        else:
            near = (moves == actions).astype(np.float64)
        return np.asarray((chances * near).sum(axis=-1))

    def by_seat(self, of_decisions: Array) -> Array:
        """Add up values over each seat's decisions, ``(*, decisions)`` to ``(*, seats)``."""
        rows = np.atleast_2d(of_decisions)
        added = [np.bincount(self.seats, row, minlength=self.count) for row in rows]
        return np.array(added).reshape(*of_decisions.shape[:-1], self.count)


@dataclass(frozen=True)
class TypeMixture:
    """Shares of types, errors, and each seat's chances of being of each type.

    `posterior` is ``(seats, types)``; `distances` are nats by which a seat's decisions tell a type
    from another, in the harder direction, mean over seats, ``(types, types)``.
    """

    types: tuple[str, ...]
    shares: Array
    error: float
    spread: float | None
    log_likelihood: float
    posterior: Array
    distances: Array

    @property
    def parameters(self) -> int:
        return len(self.types) - 1 + 1 + (self.spread is not None)

    @property
    def bic(self) -> float:
        """Bayes' information criterion; observations are seats, as each is of one type."""
        return -2 * self.log_likelihood + self.parameters * float(np.log(len(self.posterior)))

    @property
    def nameable(self) -> bool:
        """Whether errors are rare enough for a seat to be named."""
        return self.error <= TOO_RANDOM

    def groups(self, seat: int) -> tuple[str, ...]:
        """Return a seat's likeliest types, as few as are together surer than `SURE`."""
        order = np.argsort(-self.posterior[seat], kind="stable")
        enough = int(np.searchsorted(np.cumsum(self.posterior[seat][order]), SURE)) + 1
        return tuple(self.types[index] for index in order[:enough])

    def alike(self) -> list[tuple[str, str]]:
        """Return the pairs of types with a share that the record cannot tell apart."""
        count = len(self.types)
        pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
        return [
            (self.types[a], self.types[b])
            for a, b in pairs
            if min(self.distances[a, b], self.distances[b, a]) < APART
        ]


def type_mixture(foretold: ForetoldMoves) -> TypeMixture:
    """Fit shares and errors; types that foretell the same are one."""
    foretold = foretold.distinct()
    width = float(np.median(foretold.options))
    spreads = [share * width for share in SPREADS] if foretold.numbers else [1.0]
    even = np.full(len(foretold.types), 1 / len(foretold.types))
    starts = [_shared(foretold, even, *start) for start in product(ERRORS, spreads)]
    starts.sort(key=lambda fit: -fit[0])
    fits = [_searched(foretold, start) for start in starts[:CLIMBED]]
    log_likelihood, shares, error, spread = max(fits, key=lambda fit: fit[0])
    # Fits of few seats and moves are too sure: each type counts as one seat more, and one move more
    # is any, as Laplace's rule has it.
    count = len(foretold.actions)
    doubtful = foretold.likelihoods((error * count + 1) / (count + 1), spread)
    logs = foretold.by_seat(np.log(doubtful))
    likely = (shares * foretold.count + 1) / (foretold.count + len(shares))
    return TypeMixture(
        types=foretold.types,
        shares=shares,
        error=error,
        spread=spread if foretold.numbers else None,
        log_likelihood=log_likelihood,
        posterior=posteriors(logs, likely),
        distances=_distances(foretold, error, spread),
    )


_Fit = tuple[float, Array, float, float]


def _searched(foretold: ForetoldMoves, best: _Fit) -> _Fit:
    """Climb on a grid of errors from here; shares are at their best at each point.

    A step that went up is tried again first; at the top none of all does.
    """
    steps = [*product(STEPS, STEPS if foretold.numbers else (1.0,))]
    steps.remove((1.0, 1.0))
    failed = 0
    for _ in range(MOST_STEPS):
        _, shares, error, spread = best
        (by, wider), *others = steps
        error = min(max(error * by, LEAST_ERROR), 0.999)
        fit = _shared(foretold, shares, error, max(spread * wider, LEAST_SPREAD))
        if fit[0] > best[0] + CLIMBS:
            best, failed = fit, 0
            continue
        steps, failed = [*others, (by, wider)], failed + 1
        if failed == len(steps):
            break
    return best


def _shared(foretold: ForetoldMoves, shares: Array, error: float, spread: float) -> _Fit:
    """Return the likelihood with the likeliest shares for these errors."""
    logs = foretold.by_seat(np.log(foretold.likelihoods(error, spread)))
    [shares], [likelihood] = _likeliest(logs, shares, np.ones((1, foretold.count)))
    return float(likelihood), shares, error, spread


def _likeliest(logs: Array, shares: Array, counts: Array) -> tuple[Array, Array]:
    """Return the likeliest shares, ``(samples, types)``, and their log-likelihoods.

    `logs` are ``(types, seats)``, `shares` where the search begins; a sample has each seat as often
    as `counts` says, ``(samples, seats)``.
    """
    top = logs.max(axis=0)
    weights, sizes = np.exp(logs - top), counts.sum(axis=1, keepdims=True)
    shares, reached = np.tile(shares, (len(counts), 1)), np.full(len(counts), -np.inf)
    for _ in range(MOST_ROUNDS):
        mixed = np.maximum(shares @ weights, TINY)
        likelihood = (counts * (np.log(mixed) + top)).sum(axis=1)
        shares = shares * ((counts / mixed) @ weights.T) / sizes
        if (likelihood - reached <= SETTLED).all():
            break
        reached = likelihood
    return shares, likelihood


def posteriors(logs: Array, shares: Array) -> Array:
    """Return seats' chances of each type, ``(seats, types)``; `logs` are ``(types, seats)``."""
    weights = shares[:, None] * np.exp(logs - logs.max(axis=0))
    return np.asarray((weights / weights.sum(axis=0)).T)


def _distances(foretold: ForetoldMoves, error: float, spread: float) -> Array:
    """Nats by which a seat's decisions tell type a from b if it is a, mean over seats."""
    count = len(foretold.types)
    distances = np.zeros((count, count))
    for a, b in product(range(count), range(count)):
        if a == b:
            continue
        if foretold.numbers:
            means = [(moves * chances).sum(axis=-1) for moves, chances in foretold.parts]
            apart = (means[a] - means[b]) ** 2 / (2 * spread**2)
            # Where far apart, only the chance of any move makes b's do.
            apart = np.minimum(apart, -np.log(error / foretold.options))
        else:
            apart = _divergence(foretold, a, b, error)
        distances[a, b] = float(foretold.by_seat(apart).mean())
    return distances


def _divergence(foretold: ForetoldMoves, a: int, b: int, error: float) -> Array:
    """Kullback-Leibler divergence of choices by decision, ``(decisions,)``."""
    widest = int(foretold.options.max())
    total = np.zeros(len(foretold.actions))
    for option in range(widest):
        move = (foretold.low + option)[:, None]
        chances = [
            (1 - error) * (chances * (moves == move)).sum(axis=-1) + error / foretold.options
            for moves, chances in (foretold.parts[a], foretold.parts[b])
        ]
        legal = option < foretold.options
        total += np.where(legal, chances[0] * np.log(chances[0] / chances[1]), 0.0)
    return total


def shares_between(
    foretold: ForetoldMoves, whole: TypeMixture, episodes: Array, draws: int, seed: int
) -> Array:
    """Return shares of bootstrap samples over episodes, ``(draws, types)``; `whole` is their fit.

    `episodes` are of each decision's, ``(decisions,)``. Errors are those of the whole record.
    """
    foretold = foretold.distinct()
    logs = foretold.by_seat(np.log(foretold.likelihoods(whole.error, whole.spread or 1.0)))
    of_seat = np.zeros(foretold.count, np.int64)
    of_seat[foretold.seats] = episodes
    names, numbers = np.unique(of_seat, return_inverse=True)
    drawn = np.random.default_rng(seed).integers(len(names), size=(draws, len(names)))
    counts = np.array([np.bincount(row, minlength=len(names)) for row in drawn])
    return _likeliest(logs, whole.shares, counts[:, numbers])[0]
