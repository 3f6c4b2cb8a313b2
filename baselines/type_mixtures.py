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
MOST_STEPS, MOST_ROUNDS = 60, 200
LEAST_SPREAD = 0.15  # of one step of the numbers; smaller ones are one to the likelihood
LEAST_ERROR = 1e-4
SETTLED = 1e-7  # change of the log-likelihood at which a fit has come to rest
SURE = 0.95  # posterior chance above which a seat's type is named
TOO_RANDOM = 0.25  # chance of any move above which nobody is named
MUCH = 10.0  # by how much a criterion must be better to be believed
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

    def kept(self, decisions: Array) -> ForetoldMoves:
        """Return these decisions alone, of seats that are numbered anew."""
        kept = {name: getattr(self, name)[decisions] for name in ("actions", "low", "high")}
        seats = np.unique(self.seats[decisions], return_inverse=True)[1]
        parts = tuple((moves[decisions], chances[decisions]) for moves, chances in self.parts)
        return replace(self, seats=seats, parts=parts, **kept)

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
    """CatalogueFit shares and errors; types that foretell the same are one."""
    foretold = foretold.distinct()
    width = float(np.median(foretold.options))
    spreads = [share * width for share in SPREADS] if foretold.numbers else [1.0]
    even = np.full(len(foretold.types), 1 / len(foretold.types))
    starts = [_shared(foretold, even, *start) for start in product(ERRORS, spreads)]
    starts.sort(key=lambda fit: -fit[0])
    fits = [_searched(foretold, start) for start in starts[:CLIMBED]]
    log_likelihood, shares, error, spread = max(fits, key=lambda fit: fit[0])
    logs = foretold.by_seat(np.log(foretold.likelihoods(error, spread)))
    return TypeMixture(
        types=foretold.types,
        shares=shares,
        error=error,
        spread=spread if foretold.numbers else None,
        log_likelihood=log_likelihood,
        posterior=_posterior(logs, shares),
        distances=_distances(foretold, error, spread),
    )


_Fit = tuple[float, Array, float, float]


def _searched(foretold: ForetoldMoves, best: _Fit) -> _Fit:
    """Climb on a grid of errors from here; shares are at their best at each point."""
    for _ in range(MOST_STEPS):
        _, shares, error, spread = best
        steps = product(STEPS, STEPS if foretold.numbers else (1.0,))
        tried = [
            _shared(
                foretold,
                shares,
                min(max(error * by, LEAST_ERROR), 0.999),
                max(spread * wider, LEAST_SPREAD),
            )
            for by, wider in steps
            if (by, wider) != (1.0, 1.0)
        ]
        top = max(tried, key=lambda fit: fit[0])
        if top[0] <= best[0] + SETTLED:
            break
        best = top
    return best


def _shared(foretold: ForetoldMoves, shares: Array, error: float, spread: float) -> _Fit:
    """Return the likelihood with the likeliest shares for these errors."""
    logs = foretold.by_seat(np.log(foretold.likelihoods(error, spread)))
    top = logs.max(axis=0)
    weights, reached = np.exp(logs - top), -np.inf
    for _ in range(MOST_ROUNDS):
        mixed = shares @ weights
        likelihood = float((np.log(mixed) + top).sum())
        shares = (shares[:, None] * weights / mixed).mean(axis=1)
        if likelihood - reached <= SETTLED:
            break
        reached = likelihood
    return likelihood, shares, error, spread


def _posterior(logs: Array, shares: Array) -> Array:
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
    rng, names = np.random.default_rng(seed), np.unique(of_seat)
    members = [np.flatnonzero(of_seat == name) for name in names]
    rows = []
    for _ in range(draws):
        drawn = np.concatenate([members[i] for i in rng.integers(len(names), size=len(names))])
        weights, shares = np.exp(logs - logs.max(axis=0))[:, drawn], whole.shares
        for _ in range(MOST_ROUNDS):
            after = (shares[:, None] * weights / (shares @ weights)).mean(axis=1)
            if np.abs(after - shares).max() < 1e-6:
                break
            shares = after
        rows.append(shares)
    return np.array(rows)


# -- a rule that no catalogue has ------------------------------------------------------------------


@dataclass(frozen=True)
class LastRounds:
    """What a seat's decisions may follow without a rule: what it and others did in the last round.

    All are ``(decisions,)``; NaN before there is a last round. `paid` is the own payoff in it.
    """

    own: Array
    others: Array
    paid: Array

    @cached_property
    def known(self) -> Array:
        """Which decisions follow a round."""
        return ~np.isnan(self.own)

    def kept(self, decisions: Array) -> LastRounds:
        return LastRounds(self.own[decisions], self.others[decisions], self.paid[decisions])


@dataclass(frozen=True)
class AdaptiveRule:
    """What all seats do by the last round alone, whatever rule is behind it.

    A number is ``own * their last + others * the mean of the others' last + constant`` with the
    standard deviation `spread`; these three are `coefficients`, `errors` of them are standard ones.
    A choice has a chance for each option after each own last one that paid more than the median, or
    did not: `coefficients` are ``(options * 2, options)``. Any move has the chance `error`.
    """

    coefficients: Array
    errors: Array | None
    spread: float | None
    error: float
    log_likelihood: float

    @property
    def parameters(self) -> int:
        if self.spread is None:
            return self.coefficients.shape[0] * (self.coefficients.shape[1] - 1)
        return len(self.coefficients) + 2


@dataclass(frozen=True)
class CatalogueFit:
    """The catalogue beside an `AdaptiveRule`, on the decisions that follow a round.

    `bic` and `held_out` are the catalogue's less the rule's: Bayes' criterion by decisions, and
    the log-likelihood of every second round, given the others.
    """

    rule: AdaptiveRule
    bic: float
    held_out: float

    @property
    def outside(self) -> bool:
        """Whether the record says that no rule of the catalogue is behind it."""
        return self.bic > MUCH and self.held_out < 0


def compared(foretold: ForetoldMoves, last_rounds: LastRounds, rounds: Array) -> CatalogueFit:
    """Compare the types with an adaptive rule; `rounds` are of each decision, from 0.

    BadParameter: no decision follows a round, or rounds of one parity alone.
    """
    follow = last_rounds.known
    odd = follow & (rounds % 2 == 1)
    even = follow & ~odd
    if not odd.any() or not even.any():
        raise BadParameter("rounds are too few: a rule by the last round needs three")
    mixture = type_mixture(foretold.kept(follow))
    rule = adaptive_rule(foretold.kept(follow), last_rounds.kept(follow))
    each = np.log(follow.sum())
    bic = -2 * mixture.log_likelihood + mixture.parameters * each
    bic -= -2 * rule.log_likelihood + rule.parameters * each
    types = _held_out(foretold, even, odd)
    by_rule = adaptive_rule(foretold.kept(even), last_rounds.kept(even))
    beside = _rule_chances(by_rule, foretold.kept(odd), last_rounds.kept(odd))
    return CatalogueFit(rule, float(bic), types - float(np.log(beside).sum()))


def _held_out(foretold: ForetoldMoves, fitted: Array, scored: Array) -> float:
    """Return the log-likelihood of some decisions by types that were fitted to others."""
    # Types that are alike in the fitted rounds may differ in the others: each keeps its share.
    parts = [foretold.kept(fitted), foretold.kept(scored)]
    mixture = type_mixture(parts[0])
    names = [name for group in mixture.types for name in group.split(" = ")]
    sizes = [group.count(" = ") + 1 for group in mixture.types]
    order = [foretold.types.index(name) for name in names]
    shares = np.repeat(mixture.shares / sizes, sizes)
    seats = [np.unique(foretold.seats[chosen]) for chosen in (fitted, scored)]
    logs = []
    for part in parts:
        chances = part.likelihoods(mixture.error, mixture.spread or 1.0)[order]
        logs.append(part.by_seat(np.log(chances)))
    weights = np.tile(shares[:, None], (1, foretold.count))
    weights[:, seats[0]] = _posterior(logs[0], shares).T
    later = logs[1]
    top = later.max(axis=0)
    return float((np.log((weights[:, seats[1]] * np.exp(later - top)).sum(axis=0)) + top).sum())


def adaptive_rule(foretold: ForetoldMoves, last_rounds: LastRounds) -> AdaptiveRule:
    """CatalogueFit the adaptive rule to decisions that all follow a round."""
    return (_line if foretold.numbers else _habits)(foretold, last_rounds)


def _line(foretold: ForetoldMoves, last_rounds: LastRounds) -> AdaptiveRule:
    x = np.stack([last_rounds.own, last_rounds.others, np.ones(len(last_rounds.own))], axis=1)
    y, weights, error = foretold.actions.astype(np.float64), np.ones(len(x)), 0.05
    spread = max(float(y.std()), LEAST_SPREAD)
    coefficients = np.zeros(3)
    reached = -np.inf
    for _ in range(MOST_ROUNDS):
        root = np.sqrt(weights)
        coefficients = np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0]
        missed = y - x @ coefficients
        spread = max(float(np.sqrt((weights * missed**2).sum() / weights.sum())), LEAST_SPREAD)
        rule = AdaptiveRule(coefficients, None, spread, error, 0.0)
        chances = _rule_chances(rule, foretold, last_rounds)
        likelihood = float(np.log(chances).sum())
        weights = 1 - error / foretold.options / chances
        error = min(max(float((1 - weights).mean()), LEAST_ERROR), 0.999)
        if likelihood - reached <= SETTLED:
            break
        reached = likelihood
    spent = np.linalg.pinv((x * weights[:, None]).T @ x).diagonal()
    return AdaptiveRule(coefficients, spread * np.sqrt(spent), spread, error, likelihood)


def _habits(foretold: ForetoldMoves, last_rounds: LastRounds) -> AdaptiveRule:
    states, options = _states(foretold, last_rounds), int(foretold.options.max())
    counts = np.full((2 * options, options), 0.5)  # half a move each, so that nothing is impossible
    np.add.at(counts, (states, foretold.actions - foretold.low), 1.0)
    chances = counts / counts.sum(axis=1, keepdims=True)
    rule = AdaptiveRule(chances, None, None, 0.0, 0.0)
    likelihood = float(np.log(_rule_chances(rule, foretold, last_rounds)).sum())
    return replace(rule, log_likelihood=likelihood)


def _states(foretold: ForetoldMoves, last_rounds: LastRounds) -> Array:
    well = last_rounds.paid > np.median(last_rounds.paid)
    return (2 * (last_rounds.own - foretold.low) + well).astype(np.int64)


def _rule_chances(rule: AdaptiveRule, foretold: ForetoldMoves, last_rounds: LastRounds) -> Array:
    if rule.spread is None:
        states = _states(foretold, last_rounds)
        return np.asarray(rule.coefficients[states, foretold.actions - foretold.low])
    own, others, constant = rule.coefficients
    aimed = own * last_rounds.own + others * last_rounds.others + constant
    above = np.where(foretold.actions >= foretold.high, np.inf, foretold.actions + 0.5)
    below = np.where(foretold.actions <= foretold.low, -np.inf, foretold.actions - 0.5)
    near = ndtr((above - aimed) / rule.spread) - ndtr((below - aimed) / rule.spread)
    return np.asarray((1 - rule.error) * near + rule.error / foretold.options)
