"""Equilibrium and best responses of the sequential shooting game (Battle Royale).

A state is the set of living players, a bit mask (bit i = seat i), and whose shot it is; with a cap,
also the shots left. Actions are the seats 0 .. N-1 and -1, the miss on purpose. Payoff 1 for the
sole survivor, otherwise 0. A policy has action probabilities, ([shots left,] sets, seats, N + 1),
the last one for the miss.

`solve` finds a stationary subgame-perfect equilibrium of the game without a cap, after Kilgour
(1975, 1977) for three players. A hit leads to a smaller set, so sets are solved by size: the best
target of a shooter does not depend on what is done inside the set, and what is left is who shoots
and who passes. Shoot/pass vectors are tried with 0, 1, 2, ... players who randomise.
Equilibria are not unique; the rule is: fewest randomisers, then the largest bit mask of sure
shooters (the last seat being the highest bit), then the largest bit mask of randomisers.
Nor need one exist: none is found with rates 62, 65, 68, 76, 92, for example. Such a set gets
the probabilities with the smallest gain from deviating that a search finds, noted as its gap.

`solve_capped` is plain backward induction for a game that stops after a number of shots.

Ties between targets go to the highest rate, then to the highest seat; shooting wins over missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from llm_games.baselines.cache import Arrays, remember
from llm_games.baselines.deviation import Measured
from llm_games.errors import BadParameter, IllegalAction
from llm_games.games.battle_royale.rules import MISS
from llm_games.rulebook import Array

VERSION = 1  # part of the name in the cache: raise it when a result can change
MAX_PLAYERS = 12
MAX_CELLS = 2**27  # most values (1 GiB) that the game with a cap may need
TOLERANCE = 1e-12  # values closer than this are a tie: rounding error is about 1e-15
BLOCK = 64  # sets solved at a time, to bound memory
VECTORS = 2048  # shoot/pass vectors with randomisers tried at a time
RANDOMISERS = 4  # most randomisers tried in one set
NEWTON_STARTS, NEWTON_STEPS = 8, 12
SEARCH, ELITE, SEARCH_STEPS = 2048, 64, 60  # random search: size, survivors and rounds

Rates = tuple[int, ...]
Decide = Callable[[Array, Array, Array], Array]


@dataclass(frozen=True)
class Solution:
    """An equilibrium. Entries whose shooter is not in the set mean nothing.

    value[mask, shooter, player]: expected payoff of each player when it is the shooter's turn.
    policy[mask, shooter, action]: action probabilities, the last of N + 1 for the miss.
    gap[mask]: most that one player can gain inside the set by shooting more or less; 0 unless the
    set has no equilibrium. None with a cap on the shots: then value and policy have a leading axis
    for the number of shots left, from 0 (where policy is never played) to the cap.
    """

    rates: Rates
    value: Array
    policy: Array
    gap: Array | None = None

    def q_values(self, mask: int, shooter: int, left: int | None = None) -> Array:
        """Expected payoff of the shooter by action, (N + 1,), the last one for the miss.

        NaN for seats that are no legal target. Everybody follows the equilibrium afterwards. With
        a cap, `left` is the number of shots left, this one included.
        """
        players = len(self.rates)
        inside = 0 <= mask < 1 << players and 0 <= shooter < players
        if not inside or not _legal(players)[mask, shooter].any():
            raise BadParameter(
                f"mask={mask!r}, shooter={shooter!r}: the set (bit i = seat i of {players}) must "
                "contain the shooter and somebody else"
            )
        if left is not None and not 1 <= left < len(self.value):
            raise BadParameter(f"left={left!r}: must lie in 1..{len(self.value) - 1} (shots left)")
        before = () if left is None else (np.array(left),)
        return self._by_action(np.array(mask), np.array(shooter), *before)

    def _by_action(self, mask: Array, shooter: Array, *left: Array) -> Array:
        """The same in states of any shape (*batch,): (*batch, N + 1)."""
        players, rate = len(self.rates), np.array(self.rates)[shooter, None] / 100
        following, before = _following(players), [shots - 1 for shots in left]
        missed = self.value[(*before, mask, following[mask, shooter], shooter)][..., None]
        rest, me = mask[..., None] & ~(1 << np.arange(players)), shooter[..., None]
        deeper = [shots[..., None] for shots in before]
        q = rate * self.value[(*deeper, rest, following[rest, me], me)] + (1 - rate) * missed
        return np.concatenate([np.where(_legal(players)[mask, shooter], q, np.nan), missed], -1)

    def regret(self, mask: int, shooter: int, action: int, left: int | None = None) -> float:
        """What the shooter loses by `action` (a seat, or -1 for the miss) against its best."""
        q = self.q_values(mask, shooter, left)
        if not -1 <= action < len(q) - 1 or np.isnan(q[action]):
            legal = [-1, *np.flatnonzero(~np.isnan(q[:-1])).tolist()]
            raise IllegalAction(f"action={action!r}: must be one of {legal} (-1 misses on purpose)")
        return float(np.nanmax(q) - q[action])


def solve(rates: Sequence[int]) -> Solution:
    """Stationary subgame-perfect equilibrium for hit rates in percent, in shooting order.

    Kept in memory and on disk (`llm_games.baselines.cache`). For the default rates
    35, 40, .., 80 the equilibrium is not unique; the rule of this module gives win probabilities
    .153 .129 .201 .117 .129 .080 .081 .065 .032 .012. Look at `gap` for other rates.

    Raises:
        BadParameter: rates out of range or too many players.
    """
    return _solve(_checked(rates))


def solve_capped(rates: Sequence[int], max_shots: int, share: bool = False) -> Solution:
    """Subgame-perfect equilibrium of the game that stops after `max_shots` shots.

    When the cap is reached with several alive each gets 0, or 1/(number alive) with `share`.
    """
    checked = _checked(rates)
    everybody = np.ones(len(checked), bool)
    start = _with_miss(np.zeros((1 << len(checked), len(checked), len(checked))))
    return Solution(checked, *_capped(checked, start, everybody, max_shots, share))


def shoot_strongest(rates: Sequence[int]) -> Array:
    """The rule "shoot the living other with the highest rate" as a policy."""
    checked = _checked(rates)
    equal = np.where(_legal(len(checked)), 0.0, -np.inf)
    return _with_miss(_best_target(equal, strength(checked)))


def best_response(
    rates: Sequence[int],
    policy: Array,
    player: int,
    max_shots: int | None = None,
    share: bool = False,
) -> tuple[float, Array]:
    """Best reply of one player to the others' part of `policy`.

    Returns its expected payoff from the start, and `policy` with its own part replaced, best in
    every state, reached or not. Against fixed others it faces a Markov decision process, where a
    deterministic reply that looks at the state only is optimal.
    """
    wins, reply = _play_out(rates, policy, player, max_shots, share)
    return float(wins[player]), reply


# --- a game and its records --------------------------------------------------------------------


def cap(game: Any) -> int | None:
    """Return the most shots that the players know of: `max_shots` where it is announced."""
    most: int | None = game.max_shots
    return most if game.announce_cap else None


def solution(game: Any) -> Solution:
    """Return equilibrium play of the game as its players know it.

    With an announced cap, backward induction from it; else the stationary equilibrium.
    """
    most = cap(game)
    if most is None:
        return solve(game.rates)
    return _solve_capped(game.rates, most, game.cap_outcome == "share")


_solve_capped = lru_cache(maxsize=4)(solve_capped)


def level_k(level: int, game: Any) -> Array:
    """Return the policy of all seats at a level; level 1 shoots the strongest."""
    return _level_k(level, game.rates, cap(game), game.cap_outcome == "share")


@lru_cache(maxsize=8)
def _level_k(level: int, rates: Rates, most: int | None, share: bool) -> Array:
    if level == 1:
        policy = shoot_strongest(rates)
        return policy if most is None else np.broadcast_to(policy, (most + 1, *policy.shape))
    before = _level_k(level - 1, rates, most, share)
    policy = before.copy()
    for seat in range(len(rates)):
        reply = best_response(rates, before, seat, most, share)[1]
        policy[..., seat, :] = reply[..., seat, :]
    return policy


def mask_of(alive: Array) -> Array:
    """Return the bit mask of each set of seats, given who is in it ``(*batch, seats)``."""
    return (alive << np.arange(alive.shape[-1])).sum(axis=-1)


def deviation(game: Any, record: Mapping[str, Array]) -> Measured:
    """Return regret and distance of a shot.

    Regret is the chance to win that it forgoes if all play on in equilibrium, of the game as its
    players know it; distance the probability that equilibrium play does something else.
    """
    found, most, alive = solution(game), cap(game), record["alive"]
    shooter, target = np.asarray(record["shooter"]), np.asarray(record["target"])
    state = mask_of(np.moveaxis(alive, 0, -1)), shooter
    left = () if most is None else (np.clip(most - np.asarray(record["shots"]) + 1, 1, most),)
    values, chances = found._by_action(*state, *left), found.policy[(*left, *state)]
    at, seats = target.clip(0, len(alive) - 1)[None], np.arange(len(alive))
    hits = (target == at[0]) & np.take_along_axis(alive, at, 0)[0] & (target != shooter)
    choice = np.where(hits, target, MISS)[..., None]
    value, chance = (np.take_along_axis(x, choice, -1)[..., 0] for x in (values, chances))
    own = target == shooter  # a hit on oneself wins nothing
    value = np.where(own, value * (1 - np.array(game.rates)[shooter] / 100), value)
    playing = _legal(len(alive))[state].any(-1)  # not a table that was over before
    lost = np.where(playing, np.nanmax(values, -1) - value, 0.0)
    mine = seats.reshape(-1, *(1 for _ in shooter.shape)) == shooter
    return np.where(mine, lost, 0.0), np.where(playing, 1 - np.where(own, 0, chance), 0.0)


# --- the equilibrium without a cap -------------------------------------------------------------


@lru_cache(maxsize=8)
def _solve(rates: Rates) -> Solution:
    name = f"battle_royale-v{VERSION}-" + "-".join(map(str, rates))
    arrays = remember(name, lambda: _equilibrium(rates))
    for array in arrays.values():
        array.flags.writeable = False  # shared between callers
    return Solution(rates, **arrays)


def _equilibrium(rates: Rates) -> Arrays:
    rate, rank = np.array(rates) / 100, strength(rates)
    gap = np.zeros(1 << len(rates))

    def decide(masks: Array, members: Array, after: Array) -> Array:
        aim = _best_target(_own(after), rank[members])
        kill = np.einsum("skj,skjp->skp", aim, after)
        shoot, gap[masks] = _shoot_or_pass(rate[members], kill)
        return shoot[..., None] * aim

    value, policy = _by_size(rates, decide)
    return {"value": value, "policy": policy, "gap": gap}


def _shoot_or_pass(rate: Array, kill: Array) -> tuple[Array, Array]:
    """Equilibrium shooting probabilities (sets, n) of sets of n, and their gaps (sets,).

    rate: (sets, n); kill[s, k]: value vector (n,) after the player at position k has hit.
    """
    vectors = _pure(rate.shape[1])
    stable = _stable(vectors, rate[:, None], kill[:, None])
    choice, gap = vectors[stable.argmax(1)], np.zeros(len(rate))
    for s in np.flatnonzero(~stable.any(1)):
        randomised = _randomised(rate[s], kill[s])
        if randomised is None:
            choice[s], gap[s] = _least_gap(rate[s], kill[s])
        else:
            choice[s] = randomised
    return choice, gap


def _pure(size: int) -> Array:
    """All 0/1 vectors, (2^n, n), the largest bit mask first."""
    return np.array(list(product((1.0, 0.0), repeat=size)))[:, ::-1]


def _randomised(rate: Array, kill: Array) -> Array | None:
    """The same (n,) for one set without a pure equilibrium: as few randomisers as possible."""
    size = len(rate)
    vectors = np.array(list(product((1.0, 0.5, 0.0), repeat=size)))[:, ::-1]
    bits = 1 << np.arange(size)
    vectors = vectors[np.lexsort((-((vectors == 0.5) @ bits), -((vectors == 1) @ bits)))]
    starts = np.random.default_rng(0).random((NEWTON_STARTS, 1, size))
    for mixers in range(1, min(size, RANDOMISERS) + 1):
        few = vectors[(vectors == 0.5).sum(1) == mixers]
        for part in np.array_split(few, -(-len(few) // VECTORS)):
            mixed = part == 0.5
            at = np.nonzero(mixed)[1].reshape(-1, mixers)
            found = _newton(np.where(mixed, starts, part), at, rate, kill)
            inner = np.all(~mixed | ((found > 0) & (found < 1)), axis=-1)
            good = inner & _stable(found, rate, kill)  # (starts, vectors)
            if good.any():
                first = good.any(0).argmax()
                return found[good[:, first].argmax(), first]
    return None


def _least_gap(rate: Array, kill: Array) -> tuple[Array, float]:
    """Shooting probabilities (n,) of one set with a small gap, and the gap: a random search."""
    rng, size = np.random.default_rng(0), len(rate)
    pool = np.concatenate([_pure(size), rng.random((SEARCH, size))])
    for spread in np.geomspace(0.3, 1e-4, SEARCH_STEPS):
        best = pool[np.argsort(_gap(pool, rate, kill), kind="stable")[:ELITE]]
        steps = spread * rng.standard_normal((SEARCH // ELITE, *best.shape))
        pool = np.concatenate([best, np.clip(best + steps, 0, 1).reshape(-1, size)])
    gap = _gap(pool, rate, kill)
    return pool[gap.argmin()], float(gap.min())


def _gap(x: Array, rate: Array, kill: Array) -> Array:
    """Most that one player gains by always shooting or always passing instead, x (vectors, n)."""
    hit = x * rate
    value, gap = _play(hit, hit[..., None] * kill), np.zeros(len(x))
    for k in range(x.shape[1]):
        for other in (0, rate[k]):
            hit[:, k] = other
            gain = _play(hit, hit[..., None] * kill)[..., k] - value[..., k]
            gap = np.maximum(gap, gain.max(-1))
        hit[:, k] = x[:, k] * rate[k]
    return gap


def _newton(x: Array, mixers: Array, rate: Array, kill: Array) -> Array:
    """Make the randomisers at positions (vectors, r) of x (starts, vectors, n) indifferent.

    Margins are affine in each probability: differences over its range are exact derivatives.
    """
    at = np.broadcast_to(mixers, (*x.shape[:2], mixers.shape[1]))
    # with two, each margin depends on the other's probability only: one step solves, one polishes
    for _ in range(NEWTON_STEPS if at.shape[-1] > 2 else 2):
        slopes = np.empty((*at.shape, at.shape[-1]))
        for column in range(at.shape[-1]):
            low, high = x.copy(), x.copy()
            np.put_along_axis(low, at[..., [column]], 0, axis=-1)
            np.put_along_axis(high, at[..., [column]], 1, axis=-1)
            change = _margin(high, rate, kill) - _margin(low, rate, kill)
            slopes[..., column] = np.take_along_axis(change, at, axis=-1)
        margin = np.take_along_axis(_margin(x, rate, kill), at, axis=-1)
        step = (np.linalg.pinv(slopes) @ margin[..., None])[..., 0]
        np.put_along_axis(x, at, np.clip(np.take_along_axis(x, at, axis=-1) - step, 0, 1), axis=-1)
    return x


def _stable(x: Array, rate: Array, kill: Array) -> Array:
    """Whether nobody gains by shooting more or less, given x (..., n)."""
    hit = x * rate
    gain = rate * (_diagonal(kill) - _missed(_play(hit, hit[..., None] * kill)))
    return np.all(((gain >= -TOLERANCE) | (x == 0)) & ((gain <= TOLERANCE) | (x == 1)), axis=-1)


def _margin(x: Array, rate: Array, kill: Array) -> Array:
    """Advantage of hitting over missing, times the chance of a kill in one round of the set.

    This factor clears the denominator: margin k is affine in every probability, x_k not included.
    """
    hit = x * rate
    ends = 1 - np.prod(1 - hit, axis=-1, keepdims=True)
    return ends * (_diagonal(kill) - _missed(_play(hit, hit[..., None] * kill)))


# --- inside a set of living players ------------------------------------------------------------


def _play(hit: Array, reward: Array) -> Array:
    """Values by whose turn it is in a set where shots go round until somebody is hit, else 0.

    hit (..., n): chance that the shooter at each position hits; reward (..., n, players): this
    chance times the values after the kill.
    """
    size = hit.shape[-1]
    miss = 1 - hit[..., None]
    first, still = np.zeros(reward.shape[:-2] + reward.shape[-1:]), np.ones((*miss.shape[:-2], 1))
    for k in range(size):
        first = first + still * reward[..., k, :]
        still = still * miss[..., k, :]
    later = np.divide(first, 1 - still, out=np.zeros(first.shape), where=still < 1)
    value = np.empty(reward.shape)
    for k in reversed(range(size)):
        later = reward[..., k, :] + miss[..., k, :] * later
        value[..., k, :] = later
    return value


def _diagonal(table: Array) -> Array:
    return np.diagonal(table, axis1=-2, axis2=-1)


def _missed(value: Array) -> Array:
    """Each shooter's own value once it has missed and the next position is to shoot."""
    return _diagonal(np.roll(value, -1, axis=-2))


def _sets_by_size(players: int) -> Iterator[tuple[Array, Array]]:
    """Blocks of masks (sets,) of one size n >= 2 with their members (sets, n) in seat order."""
    alive = _alive(players)
    for size in range(2, players + 1):
        masks = np.flatnonzero(alive.sum(1) == size)
        for start in range(0, len(masks), BLOCK):
            block = masks[start : start + BLOCK]
            yield block, np.nonzero(alive[block])[1].reshape(-1, size)


def _after_kill(value: Array, masks: Array, members: Array) -> Array:
    """Values after each kill, (sets, shooter, target, player), all by position in the set.

    Where target and shooter are the same the numbers mean nothing.
    """
    size = members.shape[1]
    shooter, target = np.indices((size, size))
    step = np.where(target == (shooter + 1) % size, 2, 1)  # skip the one just hit
    successor = members[:, (shooter + step) % size]
    rest = masks[:, None] ^ (1 << members)
    return value[rest[:, None, :, None], successor[..., None], members[:, None, None, :]]


def _own(after: Array) -> Array:
    """The shooter's own values of `_after_kill`, (sets, shooter, target), -inf for itself."""
    own = np.einsum("skjk->skj", after).copy()
    own[:, range(own.shape[1]), range(own.shape[1])] = -np.inf
    return own


def _best_target(own: Array, strength: Array) -> Array:
    """Indicator of the strongest target with the highest own value; zeros without targets.

    own (..., n, n) is -inf for what is no target, strength (..., n).
    """
    tied = (own >= own.max(-1, keepdims=True) - TOLERANCE) & np.isfinite(own)
    best = np.where(tied, strength[..., None, :], -1).argmax(-1)
    return tied & (np.arange(own.shape[-1]) == best[..., None])


def _by_size(rates: Rates, decide: Decide) -> tuple[Array, Array]:
    """Values (2^N, N, N) and policy (2^N, N, N + 1) of stationary play, smaller sets first.

    `decide(masks, members, after)` gives the probability (sets, n, n) of each shot by position.
    """
    players = len(rates)
    rate, value = np.array(rates) / 100, _ended(players)
    shots = np.zeros((1 << players, players, players))
    for masks, members in _sets_by_size(players):
        after = _after_kill(value, masks, members)
        shot = decide(masks, members, after)
        at = masks[:, None, None], members[:, :, None], members[:, None, :]
        shots[at], value[at] = shot, _value(shot, rate[members], after)
    return value, _with_miss(shots)


def _value(shot: Array, rate: Array, after: Array) -> Array:
    """Values (sets, n, n) inside sets, by whose turn it is, given the probability of each shot."""
    hit = shot * rate[..., None]
    return _play(hit.sum(-1), np.einsum("skj,skjp->skp", hit, after))


# --- given policies ----------------------------------------------------------------------------


def _play_out(
    rates: Sequence[int], policy: Array, player: int | None, max_shots: int | None, share: bool
) -> tuple[Array, Array]:
    """Expected payoffs (N,) and the policy played when `player`, if any, replies best."""
    checked = _checked(rates)
    policy = _checked_policy(policy, len(checked), max_shots)
    if player is not None and not 0 <= player < len(checked):
        raise BadParameter(f"player={player!r}: must lie in 0..{len(checked) - 1}")
    if max_shots is None:
        value, played = _by_size(checked, _following_policy(checked, policy, player))
        return value[-1, 0], played
    replying = np.arange(len(checked)) == player
    value, played = _capped(checked, policy, replying, max_shots, share)
    return value[-1, -1, 0], played


def _following_policy(rates: Rates, policy: Array, player: int | None) -> Decide:
    """All follow the policy, but for a player that shoots at its best target or passes."""
    rate, rank = np.array(rates) / 100, strength(rates)

    def decide(masks: Array, members: Array, after: Array) -> Array:
        given = policy[masks[:, None, None], members[:, :, None], members[:, None, :]]
        if player is None:
            return given
        mine = members == player
        aim = _best_target(_own(after), rank[members])
        passing = np.where(mine[..., None], 0.0, given)
        shooting = np.where(mine[..., None], aim, given)
        gain = _value(shooting, rate[members], after) - _value(passing, rate[members], after)
        better = (gain * (mine[:, :, None] & mine[:, None, :])).sum((1, 2)) >= -TOLERANCE
        return np.where(better[:, None, None], shooting, passing)

    return decide


def _capped(
    rates: Rates, policy: Array, replying: Array, max_shots: int, share: bool
) -> tuple[Array, Array]:
    """Values and policy by shots left (0 .. max_shots); replying (N,) marks who replies best."""
    players = len(rates)
    shape = _shape(players)
    most = MAX_CELLS // int(np.prod(shape)) - 1
    if not 1 <= max_shots <= most:
        raise BadParameter(
            f"max_shots={max_shots!r}: must lie in 1..{most} for {players} players "
            "(the table grows with it); without a cap use solve"
        )
    value = np.empty((max_shots + 1, *shape[:2], players))
    value[0] = _ended(players)
    if share:
        alive = _alive(players)
        value[0] = (alive / np.maximum(alive.sum(1, keepdims=True), 1))[:, None]
    played = np.empty((max_shots + 1, *shape))
    played[:] = policy
    for left in range(1, max_shots + 1):
        value[left], played[left] = _one_shot(rates, value[left - 1], played[left], replying)
    return value, played


def _one_shot(rates: Rates, later: Array, policy: Array, replying: Array) -> tuple[Array, Array]:
    """Values (2^N, N, N) with one more shot than `later`, and the policy (2^N, N, N + 1) of it."""
    players = len(rates)
    rate, legal, following = np.array(rates) / 100, _legal(players), _following(players)
    masks, shooters = np.arange(1 << players)[:, None], np.arange(players)
    missed = later[masks, following]
    rest = [masks & ~(1 << target) for target in range(players)]
    killed = [later[left, following[left[:, 0]]] for left in rest]  # one per target
    own = np.stack([values[:, shooters, shooters] for values in killed], axis=-1)
    own = np.where(legal, own, -np.inf)
    aim = _best_target(own, strength(rates))
    gain = rate * (own.max(-1, initial=-1) - missed[:, shooters, shooters])
    best = _with_miss(aim & (gain >= -TOLERANCE)[..., None])
    policy = np.where(replying[:, None], best, policy)
    hit = policy[..., :-1] * rate[:, None]
    value = (1 - hit.sum(-1, keepdims=True)) * missed
    for target, values in enumerate(killed):
        value += hit[..., target, None] * values
    return np.where(legal.any(-1, keepdims=True), value, later), policy


# --- tables and checks -------------------------------------------------------------------------


def _checked(rates: Sequence[int]) -> Rates:
    if not 2 <= len(rates) <= MAX_PLAYERS:
        raise BadParameter(
            f"{len(rates)} players: the exact solution takes 2..{MAX_PLAYERS} (its tables double "
            "with each player); simulate larger games instead"
        )
    checked = tuple(int(rate) for rate in rates)
    if any(
        rate != given or not 0 <= rate <= 100 for rate, given in zip(checked, rates, strict=True)
    ):
        raise BadParameter(f"hit rates {list(rates)!r}: must be integers 0..100 (percent)")
    return checked


def _checked_policy(policy: Array, players: int, max_shots: int | None) -> Array:
    policy, shape = np.asarray(policy, float), _shape(players)
    allowed = [shape] if max_shots is None else [shape, (max_shots + 1, *shape)]
    if policy.shape not in allowed:
        raise BadParameter(
            f"policy has shape {policy.shape}; must be {' or '.join(map(str, allowed))}"
        )
    legal = _legal(players)
    rows = np.where(legal, policy[..., :-1], 0).sum(-1) + policy[..., -1]
    off = np.abs(rows - 1)[..., legal.any(-1)].max()
    if not off < 1e-9 or policy.min() < 0:
        raise BadParameter(
            f"policy: probabilities of living targets and the miss are off 1 in sum by {off:.3g}, "
            f"smallest entry {policy.min():.3g}; they must add up to 1 and be at least 0"
        )
    return policy


def _shape(players: int) -> tuple[int, int, int]:
    """Shape of a stationary policy."""
    return 1 << players, players, players + 1


def strength(rates: Sequence[int]) -> Array:
    """Rank by rate, then by seat, (N,)."""
    return np.array(rates) * len(rates) + np.arange(len(rates))


def _with_miss(shots: Array) -> Array:
    """Policy (..., N + 1) from the probabilities of each shot (..., N)."""
    return np.concatenate([shots, 1 - shots.sum(-1, keepdims=True)], axis=-1)


def _ended(players: int) -> Array:
    """Values (2^N, N, N) of the sole survivors, 0 everywhere else."""
    value = np.zeros((1 << players, players, players))
    value[1 << np.arange(players), :, np.arange(players)] = 1
    return value


def _alive(players: int) -> Array:
    """Who is in each set, (2^N, N)."""
    return np.arange(1 << players)[:, None] >> np.arange(players) & 1 == 1


@lru_cache(maxsize=MAX_PLAYERS)
def _legal(players: int) -> Array:
    """Who may shoot at whom, [mask, shooter, target]."""
    alive = _alive(players)
    return alive[:, :, None] & alive[:, None, :] & ~np.eye(players, dtype=bool)


@lru_cache(maxsize=MAX_PLAYERS)
def _following(players: int) -> Array:
    """The first member of the set after a seat in cyclic order, [mask, seat]."""
    alive, seats = _alive(players), np.arange(players)
    after = np.broadcast_to(seats, alive.shape)
    for step in reversed(range(1, players + 1)):
        seat = (seats + step) % players
        after = np.where(alive[:, seat], seat, after)
    return after
