"""Gain of a best reply on copies of a seat's play, with an interval: how exploitable a mix is.

Frequencies of a few moves differ by chance from their mix, and the best reply overfits. With two
moves, the interval spans the gains on all mixes in the frequency's; with more, replies are chosen
on one half of the play and valued on the other. It contains 0 for a mix of equilibrium with at
least the probability `LEVEL`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from llm_games.baselines import regret as theory
from llm_games.rulebook import Rulebook

LEVEL = 0.95
UNITS, FEWEST_UNITS = 10, 4  # of a sample: at most, and for an interval at least
MIXES, MOVES = 41, 10_000  # frequencies that are tried, and moves by which each is shown
BEFORE = "the move before"  # name of an array beside those of a record


class Exploited(NamedTuple):
    """A best reply's gain per step on copies of some play, with an interval of level `LEVEL`.

    `plug` is the plug-in estimate; `gain`, at least 0, is corrected for choosing on the same moves.
    `low` and `high` are None if the play is too short. `n` counts the independent units: episodes,
    or steps where these are few, as `note` then says.
    """

    gain: float
    plug: float
    low: float | None
    high: float | None
    n: int
    note: str = ""


def exploited(
    game: Rulebook, plays: Sequence[theory.Steps], seats: Sequence[int], order: int = 0
) -> Exploited | None:
    """Return a best reply's gain on copies of each of these seats, mean over the seats.

    `plays` are stacked records of whole episodes. With `order` 1 the reply also knows whether the
    previous move was above the mean: the extra gain is what the order gives away. None where the
    theory defines no gain.
    """
    plays = [_with_previous_moves(play) for play in plays] if order else plays
    plays = [play for play in plays if play["actions"].shape[-1]]
    if not plays:
        return None
    seat_gains = zip(*(_seat_gain(game, plays, seat, order) for seat in seats), strict=True)
    gain, plug, low, high = (float(np.mean(parts)) for parts in seat_gains)
    if np.isnan(plug):
        return None
    n, note = len(plays), ""
    if n < FEWEST_UNITS:
        note = f"steps of {n} episode{'s' * (n > 1)} taken as independent"
        n = sum(play["actions"].shape[-1] for play in plays)
    if np.isnan(low):
        return Exploited(plug, plug, None, None, n, f"no interval of {n}")
    note = f"no spread in {n}" if high - low <= 1e-9 * max(abs(high), 1) else note
    return Exploited(min(max(gain, low), high), plug, low, high, n, note)


class _Gain(NamedTuple):
    """Gain of one seat: corrected, plug-in, and the interval's ends, NaN if there are none."""

    gain: float
    plug: float
    low: float
    high: float


def _seat_gain(game: Rulebook, plays: Sequence[theory.Steps], seat: int, order: int) -> _Gain:
    """Return the gain on a seat's copies, weighted by the frequency of each previous move."""
    if not order:
        return _gain(game, plays, seat, LEVEL)
    moves, total = _join(plays)["actions"][seat], np.zeros(4)
    for above in (True, False):
        masks = [(play[BEFORE][seat] > moves.mean()) == above for play in plays]
        pairs = zip(plays, masks, strict=True)
        part = [{name: v[..., mask] for name, v in play.items()} for play, mask in pairs]
        if size := sum(int(mask.sum()) for mask in masks):
            total += size / len(moves) * np.array(_gain(game, part, seat, LEVEL**0.5))
    return _Gain(*map(float, total))


def _gain(game: Rulebook, plays: Sequence[theory.Steps], seat: int, level: float) -> _Gain:
    plays = [play for play in plays if play["actions"].shape[-1]]
    plug, reply = theory.gain_on_copies(game, _join(plays), seat)
    units = _units(plays)
    if reply is None:
        return _Gain(plug, plug, np.nan, np.nan)
    if isinstance(reply, bool):
        return _gain_of_two_moves(game, plays, seat, level)
    if len(units) < FEWEST_UNITS:
        return _Gain(max(plug, 0.0), max(plug, 0.0), np.nan, np.nan)
    if isinstance(reply, tuple):  # a mean: nothing is chosen, and no other's move matters
        values = [theory.gain_on_copies(game, unit, seat)[0] for unit in units]
        wide = _t_quantile(len(units), level) * float(np.std(values, ddof=1)) / len(units) ** 0.5
        return _Gain(plug, plug, max(plug - wide, 0.0), plug + wide)
    return _cross_fitted_gain(game, units, seat, level)


def _gain_of_two_moves(
    game: Rulebook, plays: Sequence[theory.Steps], seat: int, level: float
) -> _Gain:
    """Return the gain, and the extreme gains over all mixes in the frequency's interval."""
    sums = np.array([play["actions"][seat].sum() for play in plays], np.float64)
    sizes = np.array([play["actions"].shape[-1] for play in plays], np.float64)
    frequency, n = float(sums.sum() / sizes.sum()), len(plays)
    if n < FEWEST_UNITS:
        wide, ends = 1.96, _wilson(frequency, float(sizes.sum()), level)
    else:  # a ratio of sums, episodes being what is independent
        error = np.sqrt(n / (n - 1) * np.square(sums - frequency * sizes).sum()) / sizes.sum()
        wide = _t_quantile(n, level)
        ends = max(frequency - wide * error, 0.0), min(frequency + wide * error, 1.0)

    def gain(q: float) -> float:
        """Return the signed gain: below 0 where the other of the two moves is better."""
        moves = np.arange(MOVES) < round(q * MOVES)
        play = {"actions": np.tile(moves, (seat + 1, 1))}
        amount, reply = theory.gain_on_copies(game, play, seat)
        return amount if reply else -amount

    gains = [gain(q) for q in (frequency, *np.linspace(*ends, MIXES))]
    low, high = min(gains), max(gains)
    error = (high - low) / 2 / wide
    plug = abs(gains[0])
    free = float(np.sqrt(max(plug**2 - error**2, 0.0)))  # the mean of squares has one more of it
    return _Gain(free, plug, max(low, -high, 0.0), max(high, -low))


def _cross_fitted_gain(
    game: Rulebook, units: Sequence[theory.Steps], seat: int, level: float
) -> _Gain:
    """Return the cross-fitted gain: replies to every second unit valued on the others, both ways.

    Units are valued by jackknife pseudo-values. Replies correlate the halves: standard errors add.
    """
    halves, means, errors = (list(units[::2]), list(units[1::2])), [], []
    for half, other in (halves, halves[::-1]):
        reply, m = theory.gain_on_copies(game, _join(other), seat)[1], len(half)
        whole = theory.gain_on_copies(game, _join(half), seat, reply)[0]
        rest = [half[:i] + half[i + 1 :] for i in range(m)]
        less = [theory.gain_on_copies(game, _join(each), seat, reply)[0] for each in rest]
        values = m * whole - (m - 1) * np.array(less)
        means.append(values.mean())
        errors.append(values.std(ddof=1) / m**0.5)
    plug = max(theory.gain_on_copies(game, _join(units), seat)[0], 0.0)
    mean, error, df = float(np.mean(means)), float(np.mean(errors)), len(units) // 2
    # Near 0 the interval can miss at its lower end alone, which then has the whole error to itself.
    two, single = _t_quantile(df, level) * error, _t_quantile(df, 2 * level - 1) * error
    low = mean - single if mean - single <= two else max(two, mean - two)
    return _Gain(max(mean, 0.0), plug, max(low, 0.0), max(mean, plug) + two)


def _t_quantile(n: int, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, (1 + level) / 2))


def _wilson(share: float, n: float, level: float) -> tuple[float, float]:
    from scipy.special import ndtri

    z = float(ndtri((1 + level) / 2))
    middle = (share + z**2 / 2 / n) / (1 + z**2 / n)
    wide = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / 4 / n**2)
    return max(middle - wide, 0.0), min(middle + wide, 1.0)


def _with_previous_moves(play: theory.Steps) -> theory.Steps:
    """Return all steps but the first, with the previous moves as `BEFORE`."""
    later = {name: values[..., 1:] for name, values in play.items()}
    return later | {BEFORE: play["actions"][..., :-1]}


def _units(plays: Sequence[theory.Steps]) -> list[theory.Steps]:
    """Return independent units: episodes, grouped if many, cut into parts if few."""
    if len(plays) >= FEWEST_UNITS:
        groups = np.array_split(np.arange(len(plays)), min(len(plays), UNITS))
        return [_join([plays[i] for i in group]) for group in groups]
    parts: list[theory.Steps] = []
    for play in plays:
        length = play["actions"].shape[-1]
        for part in np.array_split(np.arange(length), min(length, UNITS // len(plays))):
            parts.append({name: values[..., part] for name, values in play.items()})
    return parts


def _join(units: Sequence[theory.Steps]) -> theory.Steps:
    return {name: np.concatenate([unit[name] for unit in units], axis=-1) for name in units[0]}
