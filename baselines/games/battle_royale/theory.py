"""Equilibrium and best responses of the sequential shooting game (Battle Royale).

A state is the bit mask of the living (bit i = seat i) and whose shot it is; with a cap, also the
shots left. Actions are seats 0 .. N-1 and -1, the miss on purpose, last in a policy: probabilities
([shots left,] sets, seats, N + 1). The sole survivor gets 1, others 0. Ties between targets go to
the highest rate, then to the highest seat; shooting wins over missing.

`solve` finds a stationary subgame-perfect equilibrium without a cap, after Kilgour (1975, 1977) for
three players. Sets are solved by size: the best target does not depend on what is done inside the
set, so only who shoots and who passes is left, tried with 0, 1, 2, ... players who randomise. Of
several equilibria: fewest randomisers, then the largest bit mask of sure shooters (last seat
highest), then of randomisers. None is found with, say, rates 62, 65, 68, 76, 92: such a set gets
the probabilities with the smallest gain from deviating that a search finds, noted as its gap.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from llm_games.baselines.disk_arrays import Arrays, remember
from llm_games.baselines.regret import Claim, Measured, Steps
from llm_games.errors import BadParameter, IllegalAction
from llm_games.games.battle_royale.rules import MISS, BattleRoyale
from llm_games.rulebook import Array

VERSION = 1  # part of the name in the cache: raise it when a result can change
MAX_PLAYERS = 12
MAX_CELLS = 2**27  # most values (1 GiB) that the game with a cap may need
TOLERANCE = 1e-12  # values closer than this are a tie: rounding error is about 1e-15
BLOCK = 64  # sets solved at a time, to bound memory
VECTORS = 2048  # shoot/pass vectors with randomisers tried at a time
KNOWING, MOST_KNOWN = 5, 1000  # players and shots up to which it is looked at who gains by a cap
RANDOMISERS = 4  # most randomisers tried in one set
NEWTON_STARTS, NEWTON_STEPS = 8, 12
SEARCH, ELITE, SEARCH_STEPS = 2048, 64, 60  # random search: size, survivors and rounds

Rates = tuple[int, ...]
Decide = Callable[[Array, Array, Array, Array], Array]


@dataclass(frozen=True)
class Solution:
    """An equilibrium; entries whose shooter is not in the set have no meaning.

    With a cap, value and policy have a leading axis for the shots left, 0 (no policy) to the cap.
    """

    rates: Rates
    value: Array  # expected payoffs at a shooter's turn, [mask, shooter, player]
    policy: Array  # action probabilities, [mask, shooter, action]
    gap: Array | None = None  # [mask]: most that one player can gain in a set by shooting more or
    # less, 0 unless the set has no equilibrium; None with a cap

    def q_values(self, mask: int, shooter: int, left: int | None = None) -> Array:
        """Expected payoff of the shooter by action, (N + 1,); NaN for seats that are no target.

        Everybody follows the equilibrium afterwards; `left` counts the shots left, with this one.
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
        shot_index = () if left is None else (np.array(left),)
        return self._by_action(np.array(mask), np.array(shooter), *shot_index)

    def _by_action(self, mask: Array, shooter: Array, *shots_left: Array) -> Array:
        players, rate = len(self.rates), np.array(self.rates)[shooter, None] / 100
        following, shots_after = _following(players), [shots - 1 for shots in shots_left]
        missed = self.value[(*shots_after, mask, following[mask, shooter], shooter)][..., None]
        rest, me = mask[..., None] & ~(1 << np.arange(players)), shooter[..., None]
        deeper = [shots[..., None] for shots in shots_after]
        q = rate * self.value[(*deeper, rest, following[rest, me], me)] + (1 - rate) * missed
        return np.concatenate([np.where(_legal(players)[mask, shooter], q, np.nan), missed], -1)

    def regret(self, mask: int, shooter: int, action: int, left: int | None = None) -> float:
        """Return the shooter's loss by `action` (a seat, or -1 for the miss) against its best."""
        q = self.q_values(mask, shooter, left)
        if not -1 <= action < len(q) - 1 or np.isnan(q[action]):
            legal = [-1, *np.flatnonzero(~np.isnan(q[:-1])).tolist()]
            raise IllegalAction(f"action={action!r}: must be one of {legal} (-1 misses on purpose)")
        return float(np.nanmax(q) - q[action])


def solve(rates: Sequence[int]) -> Solution:
    """Stationary subgame-perfect equilibrium for hit rates in percent, in shooting order; cached.

    It is not unique for the default rates 35, 40, .., 80: this module's rule gives win
    probabilities .153 .129 .201 .117 .129 .080 .081 .065 .032 .012. Raises BadParameter for bad
    rates.
    """
    return _solve(_checked(rates))


def solve_capped(rates: Sequence[int], max_shots: int, share: bool = False) -> Solution:
    """Equilibrium of the game of `max_shots` shots; at its end the living get 0, or `share` 1."""
    checked = _checked(rates)
    everybody = np.ones(len(checked), bool)
    start = _with_miss(np.zeros((1 << len(checked), len(checked), len(checked))))
    return Solution(checked, *_capped(checked, start, everybody, max_shots, share))


def shoot_strongest(rates: Sequence[int]) -> Array:
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
    """Best reply to the others' part of `policy`: the payoff from the start, and the whole policy.

    The reply is best in every state, reached or not, and deterministic.
    """
    wins, reply = _play_out(rates, policy, player, max_shots, share)
    return float(wins[player]), reply


# --- a game and its records --------------------------------------------------------------------


def cap(game: BattleRoyale) -> int | None:
    return game.max_shots if game.announce_cap else None


@lru_cache(maxsize=4)
def solution(game: BattleRoyale) -> Solution:
    """Return the equilibrium of the game as players know it: with an announced cap, or without."""
    shot_cap = cap(game)
    if shot_cap is None:
        return solve(game.rates)
    return solve_capped(game.rates, shot_cap, game.cap_outcome == "share")


@lru_cache(maxsize=8)
def level_k(level: int, game: BattleRoyale) -> Array:
    """Return the policy of all seats at a level; level 1 shoots the strongest."""
    rates, shot_cap = game.rates, cap(game)
    if level == 1:
        policy, axes = shoot_strongest(rates), () if shot_cap is None else (shot_cap + 1,)
        return np.broadcast_to(policy, (*axes, *policy.shape))
    lower_policy, share = level_k(level - 1, game), game.cap_outcome == "share"
    policy = lower_policy.copy()
    for seat in range(len(rates)):
        _, reply = best_response(rates, lower_policy, seat, shot_cap, share)
        policy[..., seat, :] = reply[..., seat, :]
    return policy


def mask_of(alive: Array) -> Array:
    """Return the bit mask of sets of seats, from their members, bool ``(*batch, seats)``."""
    return (alive << np.arange(alive.shape[-1])).sum(axis=-1)


def deviation(game: BattleRoyale, record: Steps) -> Measured:
    """Return regret and distance of a shot.

    Regret is the chance to win that it loses if all play on in equilibrium, in the game as its
    players know it; distance is the probability that equilibrium play does something else.
    """
    equilibrium, shot_cap, alive = solution(game), cap(game), record["alive"]
    shooter, target, shots = (np.asarray(record[key]) for key in ("shooter", "target", "shots"))
    state = mask_of(np.moveaxis(alive, 0, -1)), shooter
    shots_left = () if shot_cap is None else (np.clip(shot_cap - shots + 1, 1, shot_cap),)
    values = equilibrium._by_action(*state, *shots_left)
    chances = equilibrium.policy[(*shots_left, *state)]
    target_seat, seats = target.clip(0, len(alive) - 1)[None], np.arange(len(alive))
    lives = np.take_along_axis(alive, target_seat, 0)[0]
    hits = (target == target_seat[0]) & lives & (target != shooter)
    choice = np.where(hits, target, MISS)[..., None]
    value, chance = (np.take_along_axis(x, choice, -1)[..., 0] for x in (values, chances))
    aims_at_self = target == shooter  # a hit on oneself wins nothing
    value = np.where(aims_at_self, value * (1 - np.array(game.rates)[shooter] / 100), value)
    playing = _legal(len(alive))[state].any(-1)  # not a table that was over before
    lost = np.where(playing, np.nanmax(values, -1) - value, 0.0)
    mine = seats.reshape(-1, *(1 for _ in shooter.shape)) == shooter
    return np.where(mine, lost, 0.0), np.where(playing, 1 - np.where(aims_at_self, 0, chance), 0.0)


def interim(game: BattleRoyale, record: Steps) -> Array:
    return deviation(game, record)[0]


def rational(game: BattleRoyale) -> Claim:
    cap_text, gap = "to the announced cap", 0.0
    if cap(game) is None:
        cap_text, gap = "without a cap", float(solution(game).gap.max())  # type: ignore[union-attr]
    if game.max_shots and cap(game) is None:
        what = "an equilibrium of the game as told, without a cap"
        end = f"the paid one stops after {game.max_shots} shots"
        if gap <= TOLERANCE and ends_alike(game):
            return Claim("equilibrium", f"plays {what}; {end}, by which nobody can gain")
        return Claim("heuristic", f"plays as in {what}; {end}")
    if gap > TOLERANCE:
        return Claim("best known", f"plays {cap_text} so that in no set of living players does "
                     f"anybody gain more than {gap:.2g}; an equilibrium was not found")  # fmt: skip
    sentence = f"plays a subgame-perfect equilibrium {cap_text}; there may be others"
    return Claim("equilibrium", sentence)


@lru_cache(maxsize=64)
def ends_alike(game: BattleRoyale) -> bool:
    """Return whether nobody gains by knowing the unannounced cap; False for large games."""
    shots, share = game.max_shots or 0, game.cap_outcome == "share"
    if game.players > KNOWING or not 0 < shots <= MOST_KNOWN:
        return False
    rates, policy = game.rates, solve(game.rates).policy
    worth = _play_out(rates, policy, None, shots, share)[0]
    seats = range(game.players)
    best = [best_response(rates, policy, seat, shots, share)[0] for seat in seats]
    return bool((np.array(best) <= worth + TOLERANCE).all())


def replies(game: BattleRoyale) -> list[str]:
    rules = ["cooperative", *(f"fixed:{word}" for word in ("strongest", "weakest", "nobody"))]
    if game.players > MAX_PLAYERS:
        return rules
    return ["rational", "best_response", *rules, *(f"fixed:{name}" for name in game.names())]


# --- the equilibrium without a cap -------------------------------------------------------------


@lru_cache(maxsize=8)
def _solve(rates: Rates) -> Solution:
    name = f"battle_royale-v{VERSION}-" + "-".join(map(str, rates))
    arrays = remember(name, lambda: _equilibrium(rates))
    for array in arrays.values():
        array.flags.writeable = False  # shared between callers
    return Solution(rates, **arrays)


def _equilibrium(rates: Rates) -> Arrays:
    rate, gap = np.array(rates) / 100, np.zeros(1 << len(rates))

    def decide(masks: Array, members: Array, kill_values: Array, aim: Array) -> Array:
        kill = np.einsum("skj,skjp->skp", aim, kill_values)
        shoot, gap[masks] = _shoot_or_pass(rate[members], kill)
        return shoot[..., None] * aim

    value, policy = _by_size(rates, decide)
    return {"value": value, "policy": policy, "gap": gap}


def _shoot_or_pass(rate: Array, kill: Array) -> tuple[Array, Array]:
    """Equilibrium shooting probabilities (sets, n), and their gaps (sets,); rate: (sets, n).

    kill[s, k]: value vector (n,) after the player at position k has hit.
    """
    vectors = _vectors(rate.shape[1], 1.0, 0.0)
    stable = _stable(vectors, rate[:, None], kill[:, None])
    choice, gap = vectors[stable.argmax(1)], np.zeros(len(rate))
    for s in np.flatnonzero(~stable.any(1)):
        choice[s], gap[s] = _randomised(rate[s], kill[s])
    return choice, gap


def _vectors(size: int, *levels: float) -> Array:
    return np.array(list(product(levels, repeat=size)))[:, ::-1]


def _randomised(rate: Array, kill: Array) -> tuple[Array, float]:
    """Return the equilibrium (n,) of one set without a pure one, with the fewest randomisers."""
    size = len(rate)
    vectors, bits = _vectors(size, 1.0, 0.5, 0.0), 1 << np.arange(size)
    vectors = vectors[np.lexsort((-((vectors == 0.5) @ bits), -((vectors == 1) @ bits)))]
    starts = np.random.default_rng(0).random((NEWTON_STARTS, 1, size))
    for mixers in range(1, min(size, RANDOMISERS) + 1):
        few = vectors[(vectors == 0.5).sum(1) == mixers]
        for part in np.array_split(few, -(-len(few) // VECTORS)):
            mixed = part == 0.5
            positions = np.nonzero(mixed)[1].reshape(-1, mixers)
            probabilities = _newton(np.where(mixed, starts, part), positions, rate, kill)
            inner = np.all(~mixed | ((probabilities > 0) & (probabilities < 1)), axis=-1)
            good = inner & _stable(probabilities, rate, kill)  # (starts, vectors)
            if good.any():
                first = good.any(0).argmax()
                return probabilities[good[:, first].argmax(), first], 0.0
    return _least_gap(rate, kill)


def _least_gap(rate: Array, kill: Array) -> tuple[Array, float]:
    """Return the profile (n,) of a small gap by random search, for a set without equilibrium."""
    rng, size = np.random.default_rng(0), len(rate)
    pool = np.concatenate([_vectors(size, 1.0, 0.0), rng.random((SEARCH, size))])
    for spread in np.geomspace(0.3, 1e-4, SEARCH_STEPS):
        best = pool[np.argsort(_gap(pool, rate, kill), kind="stable")[:ELITE]]
        steps = spread * rng.standard_normal((SEARCH // ELITE, *best.shape))
        pool = np.concatenate([best, np.clip(best + steps, 0, 1).reshape(-1, size)])
    gap = _gap(pool, rate, kill)
    return pool[gap.argmin()], float(gap.min())


def _gap(x: Array, rate: Array, kill: Array) -> Array:
    hit, gap = x * rate, np.zeros(len(x))
    value = _play(hit, hit[..., None] * kill)
    for k, other in product(range(len(rate)), (0.0, 1.0)):
        hit = np.where(np.arange(len(rate)) == k, other, x) * rate
        gain = _play(hit, hit[..., None] * kill)[..., k] - value[..., k]
        gap = np.maximum(gap, gain.max(-1))
    return gap


def _newton(x: Array, mixers: Array, rate: Array, kill: Array) -> Array:
    """Make the randomisers at positions (vectors, r) of x (starts, vectors, n) indifferent."""
    # Margins are affine in each probability: differences over its range are exact derivatives.
    positions = np.broadcast_to(mixers, (*x.shape[:2], mixers.shape[1]))
    # with two, each margin depends on the other's probability only: one step solves, one polishes
    for _ in range(NEWTON_STEPS if positions.shape[-1] > 2 else 2):
        slopes = np.empty((*positions.shape, positions.shape[-1]))
        for column in range(positions.shape[-1]):
            mixer = np.arange(x.shape[-1]) == positions[..., [column]]
            high, low = (_margin(np.where(mixer, end, x), rate, kill) for end in (1.0, 0.0))
            slopes[..., column] = np.take_along_axis(high - low, positions, axis=-1)
        margin = np.take_along_axis(_margin(x, rate, kill), positions, axis=-1)
        step = (np.linalg.pinv(slopes) @ margin[..., None])[..., 0]
        moved = np.clip(np.take_along_axis(x, positions, axis=-1) - step, 0, 1)
        np.put_along_axis(x, positions, moved, axis=-1)
    return x


def _stable(x: Array, rate: Array, kill: Array) -> Array:
    gain = rate * _advantage(x * rate, kill)
    return np.all(((gain >= -TOLERANCE) | (x == 0)) & ((gain <= TOLERANCE) | (x == 1)), axis=-1)


def _margin(x: Array, rate: Array, kill: Array) -> Array:
    """Advantage of hitting over missing, times the chance of a kill in one round of the set."""
    # This factor clears the denominator: margin k is affine in every probability, x_k not included.
    hit = x * rate
    return (1 - np.prod(1 - hit, axis=-1, keepdims=True)) * _advantage(hit, kill)


def _advantage(hit: Array, kill: Array) -> Array:
    """Return each shooter's gain by a hit over leaving the next one to shoot."""
    missed = np.roll(_play(hit, hit[..., None] * kill), -1, axis=-2)
    return np.einsum("...kk->...k", kill) - np.einsum("...kk->...k", missed)


def _play(hit: Array, reward: Array) -> Array:
    """Return values by whose turn it is in a set, where shots go round until a hit; without one 0.

    hit (..., n): the chance of a hit at each position; reward (..., n, players): this times the
    values after the kill.
    """
    size, miss = hit.shape[-1], 1 - hit[..., None]
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


def _by_size(rates: Rates, decide: Decide) -> tuple[Array, Array]:
    """Return values (2^N, N, N) and policy (2^N, N, N + 1) of stationary play, smaller sets first.

    `decide(masks, members, kill_values, aim)` returns each shot's probability in sets of one size
    n. By position: shots and best targets (sets, n, n), values after each kill (sets, shooter,
    target, player), undefined for the shooter itself.
    """
    players = len(rates)
    rate, alive, value = np.array(rates) / 100, _alive(players), _ended(players)
    shots = np.zeros(value.shape)
    for size in range(2, players + 1):
        large = np.flatnonzero(alive.sum(1) == size)
        for masks in np.split(large, range(BLOCK, len(large), BLOCK)):
            members = np.nonzero(alive[masks])[1].reshape(-1, size)
            rest = (masks[:, None] ^ (1 << members))[:, None]
            turn = _following(players)[rest, members[..., None]]
            kill_values = value[rest[..., None], turn[..., None], members[:, None, None]]
            own_values = np.einsum("skjk->skj", kill_values).copy()
            own_values[:, range(size), range(size)] = -np.inf
            aim = _best_target(own_values, strength(rates)[members])
            shot = decide(masks, members, kill_values, aim)
            cells = masks[:, None, None], members[:, :, None], members[:, None, :]
            shots[cells], value[cells] = shot, _value(shot, rate[members], kill_values)
    return value, _with_miss(shots)


def _best_target(own_values: Array, strength: Array) -> Array:
    """Return a mask of the strongest target of the highest own value (-inf: no target)."""
    tied = (own_values >= own_values.max(-1, keepdims=True) - TOLERANCE) & np.isfinite(own_values)
    best = np.where(tied, strength[..., None, :], -1).argmax(-1)
    return tied & (np.arange(own_values.shape[-1]) == best[..., None])


def _value(shot: Array, rate: Array, kill_values: Array) -> Array:
    """Values (sets, n, n) inside sets, by whose turn it is, given the probability of each shot."""
    hit = shot * rate[..., None]
    return _play(hit.sum(-1), np.einsum("skj,skjp->skp", hit, kill_values))


# --- chance ------------------------------------------------------------------------------------


def nature(game: Any, state: Any) -> list[tuple[Array, Any]]:
    """Return the outcomes of the next shot's chance, hit or miss, each with its probability."""
    rate = np.array(game.rates)[state.shooter] / 100
    rolls = np.zeros_like(state.rolls)
    return [(rate, state.replace(rolls=rolls)), (1 - rate, state.replace(rolls=rolls + 99))]


# --- given policies ----------------------------------------------------------------------------


def _play_out(
    rates: Sequence[int], policy: Array, player: int | None, max_shots: int | None, share: bool
) -> tuple[Array, Array]:
    """Expected payoffs (N,) and the policy played when `player`, if any, replies best."""
    checked = _checked(rates)
    policy = _checked_policy(policy, len(checked), max_shots)
    if player is not None and not 0 <= player < len(checked):
        raise BadParameter(f"player={player!r}: must lie in 0..{len(checked) - 1}")
    if max_shots is not None:
        replying = np.arange(len(checked)) == player
        value, played = _capped(checked, policy, replying, max_shots, share)
        return value[-1, -1, 0], played
    rate = np.array(checked) / 100

    def decide(masks: Array, members: Array, kill_values: Array, aim: Array) -> Array:
        fixed_shots = policy[masks[:, None, None], members[:, :, None], members[:, None, :]]
        mine = members == player  # who shoots at the best target or passes
        passing = np.where(mine[..., None], 0.0, fixed_shots)
        shooting = np.where(mine[..., None], aim, fixed_shots)
        values = (_value(shots, rate[members], kill_values) for shots in (shooting, passing))
        gain = np.subtract(*values)
        better = (gain * (mine[:, :, None] & mine[:, None, :])).sum((1, 2)) >= -TOLERANCE
        return np.where(better[:, None, None], shooting, passing)

    value, played = _by_size(checked, decide)
    return value[-1, 0], played


def _capped(
    rates: Rates, policy: Array, replying: Array, max_shots: int, share: bool
) -> tuple[Array, Array]:
    """Return values and policy by shots left (0 .. max_shots); `replying` marks best repliers."""
    players = len(rates)
    limit = MAX_CELLS // (players * (players + 1) << players) - 1
    if not 1 <= max_shots <= limit:
        raise BadParameter(
            f"max_shots={max_shots!r}: must lie in 1..{limit} for {players} players "
            "(the table grows with it); without a cap use solve"
        )
    sets = (max_shots + 1, 1 << players, players)
    value, played = np.empty((*sets, players)), np.empty((*sets, players + 1))
    value[0], played[:] = _ended(players, share), policy
    rate, legal, following = np.array(rates) / 100, _legal(players), _following(players)
    masks, shooters = np.arange(1 << players)[:, None], np.arange(players)
    rest = [masks & ~(1 << target) for target in range(players)]
    for shots_left, later in enumerate(value[:-1], start=1):
        missed = later[masks, following]
        killed = [later[others, following[others[:, 0]]] for others in rest]  # one per target
        own_values = np.stack([values[:, shooters, shooters] for values in killed], axis=-1)
        own_values = np.where(legal, own_values, -np.inf)
        gain = rate * (own_values.max(-1, initial=-1) - missed[:, shooters, shooters])
        shots = _best_target(own_values, strength(rates)) & (gain >= -TOLERANCE)[..., None]
        played[shots_left] = np.where(replying[:, None], _with_miss(shots), played[shots_left])
        hit = played[shots_left, ..., :-1] * rate[:, None]
        turn_values = (1 - hit.sum(-1, keepdims=True)) * missed
        for target, values in enumerate(killed):
            turn_values += hit[..., target, None] * values
        value[shots_left] = np.where(legal.any(-1, keepdims=True), turn_values, later)
    return value, played


# --- tables and checks -------------------------------------------------------------------------


def _checked(rates: Sequence[int]) -> Rates:
    if not 2 <= len(rates) <= MAX_PLAYERS:
        raise BadParameter(
            f"{len(rates)} players: the exact solution takes 2..{MAX_PLAYERS} (its tables double "
            "with each player); simulate larger games instead"
        )
    checked = tuple(int(rate) for rate in rates)
    if checked != tuple(rates) or not 0 <= min(checked) <= max(checked) <= 100:
        raise BadParameter(f"hit rates {list(rates)!r}: must be integers 0..100 (percent)")
    return checked


def _checked_policy(policy: Array, players: int, max_shots: int | None) -> Array:
    policy, shape = np.asarray(policy, float), (1 << players, players, players + 1)
    allowed = [shape] if max_shots is None else [shape, (max_shots + 1, *shape)]
    if policy.shape not in allowed:
        shapes = " or ".join(map(str, allowed))
        raise BadParameter(f"policy has shape {policy.shape}; must be {shapes}")
    legal = _legal(players)
    rows = np.where(legal, policy[..., :-1], 0).sum(-1) + policy[..., -1]
    off = np.abs(rows - 1)[..., legal.any(-1)].max()
    if not off < 1e-9 or policy.min() < 0:
        raise BadParameter(
            f"policy: probabilities of living targets and the miss are off 1 in sum by {off:.3g}, "
            f"smallest entry {policy.min():.3g}; they must add up to 1 and be at least 0"
        )
    return policy


def strength(rates: Sequence[int]) -> Array:
    return np.array(rates) * len(rates) + np.arange(len(rates))


def _with_miss(shots: Array) -> Array:
    return np.concatenate([shots, 1 - shots.sum(-1, keepdims=True)], axis=-1)


def _ended(players: int, share: bool = False) -> Array:
    """Return values (2^N, N, N) after the last shot: of sole survivors, or shared by all."""
    alive = _alive(players)
    count = alive.sum(1, keepdims=True)
    payoffs = alive * (share | (count == 1)) / np.maximum(count, 1)
    return np.repeat(payoffs[:, None], players, axis=1)


def _alive(players: int) -> Array:
    return np.arange(1 << players)[:, None] >> np.arange(players) & 1 == 1


@lru_cache(maxsize=MAX_PLAYERS)
def _legal(players: int) -> Array:
    alive = _alive(players)
    return alive[:, :, None] & alive[:, None, :] & ~np.eye(players, dtype=bool)


@lru_cache(maxsize=MAX_PLAYERS)
def _following(players: int) -> Array:
    """Return the first member of the set after a seat in cyclic order, [mask, seat]."""
    seats = np.arange(players)
    order = (seats[:, None] + seats + 1) % players
    return order[seats, _alive(players)[:, order].argmax(-1)]
