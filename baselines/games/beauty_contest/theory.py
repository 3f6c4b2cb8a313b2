"""Guess a fraction of the average: winners, best replies and pure equilibria, in exact integers.

A domain of decimals is the same game in units of its last digit. For ``ratio < players`` a seat can
always win: with the others' sum ``s`` the number ``ratio * s / (players - ratio)`` is its own
target, and the legal number nearest to it wins. So in every pure equilibrium of rules that pay
shared wins everybody wins: with ``split`` (3 or more players, ``2 * ratio < players``) all-equal
profiles only; with rules that pay every winner in full, all of these and those of two numbers with
the target exactly between. Of ``split`` with a ratio below 1, all at ``k`` above the lowest number
holds unless ``k - 1`` wins alone: where ``2 * k * players * (1 - ratio) > players - 2 * ratio``.
Moulin 1986; Nagel 1995; Ho, Camerer & Weigelt 1998.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, gcd
from typing import Any, Self

import numpy as np

from llm_games.baselines.regret import Claim, Measured, Parts, Steps, constants, draws, flat
from llm_games.questions import MISSING
from llm_games.rulebook import Array, PerPlayer, PerTable

PRIZES: dict[str, Callable[[Array], Array]] = {  # what each of k winners gets
    "each_winner": np.ones_like,
    "independent": np.ones_like,
    "split": lambda k: 1 / k,
    "exclusive": lambda k: (k == 1).astype(float),
    "amplified": lambda k: k,
}
SHARED = ("each_winner", "independent", "amplified")  # a shared win is worth a win alone or more


@dataclass(frozen=True)
class ContestRules:
    """A contest: range, exact ratio, prize rule, and how two equally close numbers are treated."""

    players: int
    ratio: Fraction
    low: int = 0
    high: int = 100
    prize_rule: str = "each_winner"
    first_number: bool = False  # the first seat at the smallest distance sets who wins

    @classmethod
    def of(cls, game: Any) -> Self:
        first = game.tie_rule == "first_number"
        bounds = (int(game.min * game.unit), int(game.max * game.unit))
        low, high = bounds if game.bounds_check == "none" else game.bounds()
        return cls(game.players, game.ratio, low, high, game.prize_rule, first)

    def pay(self, wins: PerPlayer) -> PerPlayer:
        return wins * PRIZES[self.prize_rule](np.maximum(wins.sum(axis=0), 1).astype(float))


def winners(
    numbers: PerPlayer,
    contest: ContestRules,
    valid: Array | bool = True,
    counted: Array | None = None,
) -> PerPlayer:
    """Return which `valid` seats win; the mean is of `counted` seats, by default the valid."""
    valid = np.broadcast_to(valid, np.shape(numbers))
    counted = valid if counted is None else counted
    numbers = np.where(counted, numbers, 0)
    scaled = contest.ratio.denominator * counted.sum(axis=0) * numbers
    far = np.abs(scaled - contest.ratio.numerator * numbers.sum(axis=0))
    far = np.where(valid, far, np.iinfo(np.int64).max)
    if not contest.first_number:
        return valid & (far == far.min(axis=0))
    return valid & (numbers == np.take_along_axis(numbers, far.argmin(axis=0)[None], axis=0))


def _candidates(others: Array, counted: Array, contest: ContestRules) -> Array:
    """Return replies of which one is best, ``(candidates, *batch)``."""
    # A seat stops or starts to beat a rival only at the rival's number or at its mirror image in
    # the target, which moves with the reply; the numbers next to these cover every case.
    p, q = contest.ratio.numerator, contest.ratio.denominator
    scale = q * (counted.sum(axis=0) + 1)
    slope = 2 * p - scale
    total = np.where(counted, others, 0).sum(axis=0)
    mirror = (scale * others - 2 * p * total) // np.where(slope == 0, 1, slope)
    points = np.concatenate([others, np.where(slope == 0, others, mirror)])
    ends = [np.full((1, *total.shape), end) for end in (contest.low, contest.high)]
    tried = np.concatenate([points - 1, points, points + 1, *ends])
    return np.clip(tried, contest.low, contest.high)


def best_response(
    numbers: PerPlayer,
    contest: ContestRules,
    valid: Array | bool = True,
    counted: Array | None = None,
) -> tuple[PerPlayer, PerPlayer]:
    """Return each seat's best reply and its payoff in prizes, exact for all rules and ratios."""
    numbers = np.asarray(numbers)
    valid = np.broadcast_to(valid, numbers.shape)
    counted = valid if counted is None else counted
    replies, values = np.empty(numbers.shape, np.int64), np.empty(numbers.shape)
    for seat in range(len(numbers)):
        tried = _candidates(np.delete(numbers, seat, 0), np.delete(counted, seat, 0), contest)
        profile, allowed, taken = (
            np.repeat(array[:, None], len(tried), axis=1) for array in (numbers, valid, counted)
        )
        profile[seat], allowed[seat], taken[seat] = tried, True, True
        prizes = contest.pay(winners(profile, contest, allowed, taken))[seat]
        best = prizes.argmax(axis=0)[None]
        replies[seat] = np.take_along_axis(tried, best, axis=0)[0]
        values[seat] = np.take_along_axis(prizes, best, axis=0)[0]
    return replies, values


def regret(
    numbers: PerPlayer,
    contest: ContestRules,
    valid: Array | bool = True,
    counted: Array | None = None,
) -> PerPlayer:
    _, best = best_response(numbers, contest, valid, counted)
    return best - contest.pay(winners(numbers, contest, valid, counted))


def is_nash(numbers: PerPlayer, contest: ContestRules) -> PerTable:
    return (regret(numbers, contest) == 0).all(axis=0)


def equal_equilibria(contest: ContestRules) -> tuple[range, ...]:
    """Return the k for which "all play k" is an equilibrium, as disjoint ascending ranges."""
    # Under ``split`` and ``exclusive`` a seat leaves k exactly if another number wins alone: a step
    # s towards ``ratio * k`` does if ``2 |k (1 - ratio)| > (1 - 2 ratio / players) |s|``, or, with
    # `first_number`, ties.
    low, high, n, ratio = contest.low, contest.high, contest.players, contest.ratio
    cost = 1 - 2 * ratio / n
    tie = Fraction(1, n * ratio.denominator) if contest.first_number else 0  # seat 0 wins it alone
    if contest.prize_rule in SHARED or ratio == 1:
        return (range(low, high + 1),) if contest.prize_rule in SHARED or cost >= tie else ()
    least = cost * (1 if cost >= 0 else high - low) - tie
    pull = 2 * (1 - ratio)  # of k, times this: > 0 where the target lies below k
    reach = floor(least / abs(pull)) if least >= 0 else -1
    bottom = range(low, low + (-low * pull <= least))
    middle = range(max(low + 1, -reach), min(high - 1, reach) + 1)
    top = range(high, high + (high * pull <= least))
    return tuple(filter(None, (bottom, middle, top)))


def _to_equal(ordered: Array, allowed: range) -> Array:
    n = len(ordered)
    middles = np.stack([ordered[(n - 1) // 2], ordered[n // 2]])
    near = np.clip(middles, allowed.start, allowed.stop - 1)  # the distance is convex in k
    return np.abs(ordered[:, None] - near).sum(axis=0).min(axis=0)


def _to_two_numbers(ordered: Array, upper: int, contest: ContestRules) -> Array:
    """Return the L1 distance to profiles of two numbers with the target exactly between them."""
    # `upper` seats play b, the others a: ``(a, b) = t (x, y)`` for an integer t; the distance is
    # convex in t, so its least value lies next to a kink.
    n, p, q = contest.players, contest.ratio.numerator, contest.ratio.denominator
    x, y = 2 * p * upper - n * q, n * q - 2 * p * (n - upper)
    far = np.full(ordered.shape[1:], np.iinfo(np.int64).max)
    if x == y == 0:  # ratio 1 and two halves: any two numbers
        legal = range(contest.low, contest.high + 1)
        return np.sum([_to_equal(half, legal) for half in np.split(ordered, 2)], axis=0)
    x, y = x // gcd(x, y), y // gcd(x, y)
    low, high = -np.inf, np.inf  # of t
    for c in (x, y):
        if c:
            a, b = sorted((Fraction(contest.low, c), Fraction(contest.high, c)))
            low, high = max(low, ceil(a)), min(high, floor(b))
        elif not contest.low <= 0 <= contest.high:
            return far
    if low > high:
        return far
    each = np.where(np.arange(n) < n - upper, x, y).reshape(-1, *(1,) * (ordered.ndim - 1))
    kinks = ordered // np.where(each == 0, 1, each)
    t = np.clip(np.concatenate([kinks, kinks + 1]), int(low), int(high))
    return np.abs(ordered[:, None] - t * each[:, None]).sum(axis=0).min(axis=0)


def distance(numbers: PerPlayer, contest: ContestRules) -> PerTable:
    """Return the L1 distance to the nearest pure equilibrium; -1 if none is known.

    All are known for 3 or more players, ``2 * ratio < players`` and all closest winning, except
    under ``exclusive``; else only those with equal numbers, and the profile itself.
    """
    ordered = np.sort(numbers, axis=0)
    far = [_to_equal(ordered, allowed) for allowed in equal_equilibria(contest)]
    if contest.prize_rule in SHARED and not contest.first_number:
        far += [_to_two_numbers(ordered, upper, contest) for upper in range(1, contest.players)]
    nearest = np.min(far, axis=0) if far else np.full(ordered.shape[1:], -1, np.int64)
    complete = 2 * contest.ratio < contest.players > 2 and not contest.first_number
    complete = complete and contest.prize_rule != "exclusive"
    return nearest if complete else np.where(is_nash(numbers, contest), 0, nearest)


def undominated(contest: ContestRules) -> int:
    """Return the number that iterated dominance leaves, the midpoint for ratio 1.

    Nearest to 0 for ``ratio < 1``, the highest for ``ratio > 1`` (below 0 the lowest; 0 is left
    too).
    """
    low, high = contest.low, contest.high
    if contest.ratio == 1:
        return (low + high) // 2
    if contest.ratio > 1:
        return high if high > 0 else low
    return min(max(low, 0), high)


def level_k(level: int, contest: ContestRules) -> int:
    """Return ``midpoint * ratio ** level`` rounded to the nearest legal number (half up)."""
    number = Fraction(contest.low + contest.high, 2) * contest.ratio**level
    return min(max(floor(number + Fraction(1, 2)), contest.low), contest.high)


def reply_to_total(total: Array, contest: ContestRules) -> Array:
    """Return the number on target against others of this `total`, half rounded down.

    It wins for ``ratio < players``; beyond, the highest number does.
    """
    total = np.asarray(total)
    if contest.ratio >= contest.players:
        return np.full(total.shape, contest.high, np.int64)
    p, q = contest.ratio.numerator, contest.ratio.denominator
    whole = 2 * (q * contest.players - p)
    number = -((whole // 2 - 2 * p * total) // whole)  # ceil(x - 1/2)
    return np.clip(number, contest.low, contest.high).astype(np.int64)


def freed(game: Any, contest: ContestRules) -> ContestRules:
    """Return the contest over all accepted numbers, which may be more than are asked for."""
    low, high = game.bounds() if game.bounds_check == "none" else (contest.low, contest.high)
    return replace(contest, low=low, high=high)


def deviation(game: Any, record: Steps) -> Measured:
    """Return regret with fees, and distance, of a round; rule breakers count as in the round."""
    contest, actions, legal = ContestRules.of(game), record["actions"], record["legal"]
    limit = record.get("limit", np.full(actions.shape[1:], contest.high))  # of each table
    numbers = np.where(actions == MISSING, 0, actions.clip(-game.limit, game.limit))
    counted = actions != MISSING if game.rule_breaker == "include" else legal
    lost, far = np.zeros(actions.shape), np.zeros(np.shape(limit))
    for high in np.unique(limit):
        mask, table = limit == high, replace(contest, high=int(high))
        free = freed(game, table)
        lost[:, mask] = regret(numbers[:, mask], free, legal[:, mask], counted[:, mask])
        far[mask] = distance(np.where(legal, actions, table.low)[:, mask], free)
    lost = lost * float(game.prize)
    if game.rule_breaker == "void_round":  # nobody wins where another seat broke a rule
        lost = lost * ((~legal).sum(axis=0) == ~legal)
    share = far / (contest.players * (limit - contest.low))
    defined = (far >= 0) & legal.all(axis=0)
    return lost + ~legal * float(game.foul_fee), np.where(defined, share, np.nan)


def gain_on_copies(
    numbers: Array, contest: ContestRules, limit: int = 201, reply: int | None = None
) -> tuple[float, int]:
    """Return a reply's gain in prizes if all others draw from these numbers, and the reply."""
    # By default the best one; in ranges wider than `limit` only the numbers themselves and best
    # replies to some profiles are tried.
    times = min(contest.high - contest.low, limit)
    others, chances = draws(numbers, contest.players - 1, times * (1 if reply is None else 4))
    kinds, counts = np.unique(numbers, return_counts=True)
    tried = np.arange(contest.low, contest.high + 1) if contest.high - contest.low < limit else None
    if reply is not None:
        tried = np.unique(np.append(kinds, reply))
    elif tried is None:
        subset = others[:, :: -(-others.shape[1] // limit)]
        seat = best_response(np.concatenate([subset[:1], subset]), contest)[0][0]
        tried = np.unique(np.concatenate([kinds, seat]))
    prizes = np.empty(len(tried))
    for i, number in enumerate(tried):
        profile = np.concatenate([np.full((1, others.shape[1]), number), others])
        prizes[i] = contest.pay(winners(profile, contest))[0] @ chances
    own_mean = prizes[np.searchsorted(tried, kinds)] @ counts / len(numbers)
    reply = int(tried[prizes.argmax()]) if reply is None else reply
    return float(prizes[np.searchsorted(tried, reply)] - own_mean), reply


def exploitability(game: Any, steps: Steps, seat: int, reply: Any = None) -> tuple[float, Any]:
    """Return a reply's gain on copies of a seat's legal numbers (NaN: none), and the reply."""
    numbers = flat(steps["actions"])[seat][flat(steps["legal"])[seat]]
    if game.max_draw is not None or not len(numbers):
        return np.nan, reply
    gain, reply = gain_on_copies(numbers, ContestRules.of(game), reply=reply)
    return gain * float(game.prize), reply


def _limits(game: Any, contest: ContestRules) -> tuple[int, ...]:
    first = contest.high if game.max_draw is None else game.max_draw[0] * game.unit
    return first, contest.high


def _rests(number: int, contest: ContestRules) -> bool:
    return any(number in equilibria for equilibria in equal_equilibria(contest))


def rational(game: Any) -> Claim:
    contest = ContestRules.of(game)
    number = undominated(contest)
    named = f"names {float(Fraction(number, game.unit)):g}"
    tables = [replace(contest, high=int(high)) for high in _limits(game, contest)]
    if not all(_rests(min(number, table.high), freed(game, table)) for table in tables):
        return Claim("heuristic", f"{named}, though all naming it is no equilibrium of these rules")
    if contest.ratio == 1:
        return Claim("equilibrium", f"{named}, the middle; any other number of all is one too")
    if contest.ratio > 1 and contest.low <= 0 <= contest.high:  # 0 is not dominated
        return Claim("equilibrium", f"{named}, an end of the range; there may be others, as at 0")
    return Claim("equilibrium", f"{named}, as iterated dominance leaves it; there may be others")


def replies(game: Any) -> list[str]:
    contest = ContestRules.of(game)
    steps = [f"level_k:{level}" for level in range(4)]
    return ["rational", "best_response", *steps, *constants(contest.low, contest.high, game.unit)]


def welfare(game: Any, steps: Steps) -> Parts:
    """Return the prizes; in the equilibria of rules that pay shared wins everybody wins."""
    won, rounds, n = steps["winners"], steps["winners"].shape[-1], game.players
    prize, rule = float(game.prize), game.prize_rule
    total = prize * ContestRules.of(game).pay(won).sum(axis=(0, -1))
    alone, all_ = {"split": (1, 1), "exclusive": (0, 1), "amplified": (1, n * n)}.get(rule, (1, n))
    worst, best = (rounds * prize * end for end in (alone, all_))
    all_win = rule in ("split", *SHARED) and game.ratio < n and game.tie_rule == "all_closest"
    played = best if all_win else np.nan
    return total, worst, best, played, played
