"""What seats do by the last round alone, whatever rule is behind it, beside types."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from llm_games.arrays import Array
from llm_games.baselines.type_mixtures import (
    LEAST_ERROR,
    LEAST_SPREAD,
    MOST_ROUNDS,
    SETTLED,
    TOO_RANDOM,
    ForetoldMoves,
    posteriors,
    type_mixture,
)
from llm_games.errors import BadParameter

MUCH = 10.0  # by how much a criterion must be better to be believed
CLOSE = 1e-9  # eigenvalues that are smaller are rounding


@dataclass(frozen=True)
class LastRounds:
    """What a seat's decisions may follow without a rule: what it and others did in the last round.

    All are ``(decisions,)``, the seat's own but for `others_mean`, the mean of the others' actions;
    NaN before there is a last round.
    """

    actions: Array
    others_mean: Array
    payoffs: Array

    @cached_property
    def defined(self) -> Array:
        """Which decisions follow a round."""
        return ~np.isnan(self.actions)

    @property
    def regressors(self) -> Array:
        """What a number is a sum of: own last, others' last, 1, ``(decisions, 3)``."""
        constant = np.ones(len(self.actions))
        return np.stack([self.actions, self.others_mean, constant], axis=1)

    def select(self, decisions: Array) -> LastRounds:
        columns = self.actions, self.others_mean, self.payoffs
        return LastRounds(*(column[decisions] for column in columns))


@dataclass(frozen=True)
class AdaptiveRule:
    """What all seats do by the last round alone, whatever rule is behind it.

    A number is ``own * their last + others * the mean of the others' last + constant`` with the
    standard deviation `spread`; these three are `coefficients`.
    A choice has a chance for each option after each own last one that paid more than the median, or
    did not: `coefficients` are ``(options * 2, options)``. Any move has the chance `error`.
    """

    coefficients: Array
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
    later = last_rounds.defined
    odd = later & (rounds % 2 == 1)
    even = later & ~odd
    if not odd.any() or not even.any():
        raise BadParameter("rounds are too few: a rule by the last round needs three")
    mixture = type_mixture(foretold.select(later))
    rule = adaptive_rule(foretold.select(later), last_rounds.select(later))
    price = np.log(later.sum())  # of a parameter
    # A catalogue is not blamed for its types that nobody is of.
    parameters = mixture.parameters - int((mixture.shares * len(mixture.posterior) < 0.5).sum())
    bic = -2 * mixture.log_likelihood + parameters * price
    bic -= -2 * rule.log_likelihood + rule.parameters * price
    types = _held_out(foretold, even, odd)
    by_rule = adaptive_rule(foretold.select(even), last_rounds.select(even))
    beside = _rule_chances(by_rule, foretold.select(odd), last_rounds.select(odd))
    return CatalogueFit(rule, float(bic), types - float(np.log(beside).sum()))


def _held_out(foretold: ForetoldMoves, fitted: Array, scored: Array) -> float:
    """Return the log-likelihood of some decisions by types that were fitted to others."""
    # Types that are alike in the fitted rounds may differ in the others: each keeps its share.
    parts = [foretold.select(fitted), foretold.select(scored)]
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
    weights[:, seats[0]] = posteriors(logs[0], shares).T
    later = logs[1]
    top = later.max(axis=0)
    return float((np.log((weights[:, seats[1]] * np.exp(later - top)).sum(axis=0)) + top).sum())


def adaptive_rule(foretold: ForetoldMoves, last_rounds: LastRounds) -> AdaptiveRule:
    """Fit the adaptive rule to decisions that all follow a round."""
    return (_line if foretold.numbers else _habits)(foretold, last_rounds)


def _line(foretold: ForetoldMoves, last_rounds: LastRounds) -> AdaptiveRule:
    x, y = last_rounds.regressors, foretold.actions.astype(np.float64)
    weights, error = np.ones(len(x)), 0.05
    spread = max(float(y.std()), LEAST_SPREAD)
    reached = -np.inf
    for _ in range(MOST_ROUNDS):
        root = np.sqrt(weights)
        coefficients = np.linalg.lstsq(x * root[:, None], y * root, rcond=None)[0]
        missed = y - x @ coefficients
        spread = max(float(np.sqrt((weights * missed**2).sum() / weights.sum())), LEAST_SPREAD)
        rule = AdaptiveRule(coefficients, spread, error, 0.0)
        chances = _rule_chances(rule, foretold, last_rounds)
        likelihood = float(np.log(chances).sum())
        weights = 1 - error / foretold.options / chances
        error = min(max(float((1 - weights).mean()), LEAST_ERROR), 0.999)
        if likelihood - reached <= SETTLED:
            break
        reached = likelihood
    return replace(rule, log_likelihood=likelihood)


def _habits(foretold: ForetoldMoves, last_rounds: LastRounds) -> AdaptiveRule:
    states, options = _states(foretold, last_rounds), int(foretold.options.max())
    counts = np.full((2 * options, options), 0.5)  # half a move each, so that nothing is impossible
    np.add.at(counts, (states, foretold.actions - foretold.low), 1.0)
    chances = counts / counts.sum(axis=1, keepdims=True)
    rule = AdaptiveRule(chances, None, 0.0, 0.0)
    likelihood = float(np.log(_rule_chances(rule, foretold, last_rounds)).sum())
    return replace(rule, log_likelihood=likelihood)


def _states(foretold: ForetoldMoves, last_rounds: LastRounds) -> Array:
    well = last_rounds.payoffs > np.median(last_rounds.payoffs)
    return (2 * (last_rounds.actions - foretold.low) + well).astype(np.int64)


def _rule_chances(rule: AdaptiveRule, foretold: ForetoldMoves, last_rounds: LastRounds) -> Array:
    if rule.spread is None:
        states = _states(foretold, last_rounds)
        return np.asarray(rule.coefficients[states, foretold.actions - foretold.low])
    aimed = last_rounds.regressors @ rule.coefficients
    above = np.where(foretold.actions >= foretold.high, np.inf, foretold.actions + 0.5)
    below = np.where(foretold.actions <= foretold.low, -np.inf, foretold.actions - 0.5)
    near = ndtr((above - aimed) / rule.spread) - ndtr((below - aimed) / rule.spread)
    return np.asarray((1 - rule.error) * near + rule.error / foretold.options)


def errors_by_episode(
    rule: AdaptiveRule, foretold: ForetoldMoves, last_rounds: LastRounds, episodes: Array
) -> Array:
    """Return standard errors of the coefficients of numbers, by leaving out one episode at a time.

    All decisions follow a round; `episodes` are theirs, NaN of a single one (CR3 of Bell and
    McCaffrey, Survey Methodology 28, 2002).

    Raises:
        BadParameter: what is followed does not vary, so that the three cannot be told apart, or
            most moves are any.
    """
    if rule.error > TOO_RANDOM:
        raise BadParameter(f"{rule.error:.0%} of the moves are any")
    x, y = last_rounds.regressors, foretold.actions.astype(np.float64)
    weights = 1 - rule.error / foretold.options / _rule_chances(rule, foretold, last_rounds)
    numbers = np.unique(episodes, return_inverse=True)[1]
    count = int(numbers.max()) + 1
    squares, products = np.zeros((count, 3, 3)), np.zeros((count, 3))
    np.add.at(squares, numbers, weights[:, None, None] * x[:, :, None] * x[:, None])
    np.add.at(products, numbers, (weights * y)[:, None] * x)
    whole = _solved(squares.sum(axis=0), products.sum(axis=0))
    if count == 1:
        return np.full(3, np.nan)
    rest = _solved(squares.sum(axis=0) - squares, products.sum(axis=0) - products)
    return np.asarray(np.sqrt(((rest - whole) ** 2).sum(axis=0)))


def _solved(squares: Array, products: Array) -> Array:
    scale = np.sqrt(np.maximum(np.einsum("...ii->...i", squares), CLOSE))
    plain = squares / (scale[..., :, None] * scale[..., None, :])
    if (np.linalg.matrix_rank(plain, CLOSE, True) < 3).any():
        raise BadParameter("own and others' numbers do not vary enough to be told apart")
    return np.asarray(np.linalg.solve(squares, products[..., None])[..., 0])


def nearest_type(
    rule: AdaptiveRule, foretold: ForetoldMoves, last_rounds: LastRounds
) -> tuple[str, float]:
    """Return the type whose numbers are nearest to a rule's, and how far: root mean square."""
    aimed = last_rounds.regressors @ rule.coefficients
    foretold = foretold.distinct()
    means = ((moves * chances).sum(axis=1) for moves, chances in foretold.parts)
    far = [float(np.sqrt(((mean - aimed) ** 2).mean())) for mean in means]
    nearest = int(np.argmin(far))
    return foretold.types[nearest], far[nearest]
