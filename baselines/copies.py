"""What a best reply gains on copies of some play, with an interval: how far a mix can be exploited.

Frequencies of few moves are never quite those of the mix that they were drawn from, and the best
reply to them fits what is not there. Of two moves the interval is that of the gains on all mixes in
the interval of the frequency; of more, replies are chosen in one half of the play and valued in the
other. A mix of equilibrium has 0 in its interval as often as `LEVEL` says, or more often.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from llm_games.baselines import deviation as theory
from llm_games.rulebook import Rulebook

LEVEL = 0.95
UNITS, FEWEST_UNITS = 10, 4  # of a sample: at most, and for an interval at least
MIXES, MOVES = 41, 10_000  # frequencies that are tried, and moves by which each is shown
BEFORE = "the move before"  # name of an array beside those of a record


class Exploited(NamedTuple):
    """What a best reply gains a step on copies of some play, with an interval of the level `LEVEL`.

    `gain` has the bias of choosing the reply by the same moves taken off, and is at least 0; `plug`
    has it. Without an interval the play is too short for one. It rests on `n` units, as `note`
    says: episodes, or if they are few, steps taken as independent.
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
    """Return what a best reply gains on copies of each of these seats, mean over the seats.

    `plays` are records of whole episodes, stacked, each seat's moves in the row of that seat. With
    `order` 1 the reply knows whether the move before was above the seat's mean: what it gains more
    is what the order of moves gives away. None where it is not defined.
    """
    plays = [_after(play) for play in plays] if order else plays
    plays = [play for play in plays if play["actions"].shape[-1]]
    if not plays:
        return None
    found = [_of(game, plays, seat, order) for seat in seats]
    gain, plug = (float(np.mean([each[i] for each in found])) for i in (0, 1))
    low, high = (float(np.mean([each[i] for each in found])) for i in (2, 3))
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
    """Of one seat: without the bias of choice, with it, and the ends, NaN if there are none."""

    gain: float
    plug: float
    low: float
    high: float


def _of(game: Rulebook, plays: Sequence[theory.Steps], seat: int, order: int) -> _Gain:
    """Return the gain on copies of a seat, after each kind of move before as often as it was."""
    if not order:
        return _gain(game, plays, seat, LEVEL)
    moves, total = _together(plays)["actions"][seat], np.zeros(4)
    for above in (True, False):
        chosen = [(play[BEFORE][seat] > moves.mean()) == above for play in plays]
        part = [
            {name: values[..., which] for name, values in play.items()}
            for play, which in zip(plays, chosen, strict=True)
        ]
        if size := sum(int(which.sum()) for which in chosen):
            total += size / len(moves) * np.array(_gain(game, part, seat, LEVEL**0.5))
    return _Gain(*map(float, total))


def _gain(game: Rulebook, plays: Sequence[theory.Steps], seat: int, level: float) -> _Gain:
    plays = [play for play in plays if play["actions"].shape[-1]]
    plug, reply = theory.gain_on_copies(game, _together(plays), seat)
    units = _units(plays)
    if reply is None:
        return _Gain(plug, plug, np.nan, np.nan)
    if isinstance(reply, bool):
        return _of_two_moves(game, plays, seat, level)
    if len(units) < FEWEST_UNITS:
        return _Gain(max(plug, 0.0), max(plug, 0.0), np.nan, np.nan)
    if isinstance(reply, tuple):  # a mean: nothing is chosen, and no other's move matters
        values = [theory.gain_on_copies(game, unit, seat)[0] for unit in units]
        wide = _t(len(units), level) * float(np.std(values, ddof=1)) / len(units) ** 0.5
        return _Gain(plug, plug, max(plug - wide, 0.0), plug + wide)
    return _crossed(game, units, seat, level)


def _of_two_moves(game: Rulebook, plays: Sequence[theory.Steps], seat: int, level: float) -> _Gain:
    """Return the gain, and the ends of those on all mixes in the interval of the frequency."""
    sums = np.array([play["actions"][seat].sum() for play in plays], np.float64)
    sizes = np.array([play["actions"].shape[-1] for play in plays], np.float64)
    often, n = float(sums.sum() / sizes.sum()), len(plays)
    if n < FEWEST_UNITS:
        wide, ends = 1.96, _wilson(often, float(sizes.sum()), level)
    else:  # a ratio of sums, episodes being what is independent
        error = np.sqrt(n / (n - 1) * np.square(sums - often * sizes).sum()) / sizes.sum()
        wide = _t(n, level)
        ends = max(often - wide * error, 0.0), min(often + wide * error, 1.0)

    def gain(q: float) -> float:
        """Return it with a sign: below 0 where the other of the two moves is the better one."""
        moves = np.arange(MOVES) < round(q * MOVES)
        found, reply = theory.gain_on_copies(game, {"actions": np.tile(moves, (seat + 1, 1))}, seat)
        return found if reply else -found

    gains = [gain(q) for q in (often, *np.linspace(*ends, MIXES))]
    low, high = min(gains), max(gains)
    error = (high - low) / 2 / wide
    plug = abs(gains[0])
    free = float(np.sqrt(max(plug**2 - error**2, 0.0)))  # the mean of squares has one more of it
    return _Gain(free, plug, max(low, -high, 0.0), max(high, -low))


def _crossed(game: Rulebook, units: Sequence[theory.Steps], seat: int, level: float) -> _Gain:
    """Return the gain of replies to every second unit, valued on the others, and the other way.

    Each unit is valued by the jackknife's pseudo-values. Which reply is chosen binds the halves to
    each other, so that their errors are added up, not their squares.
    """
    halves, means, errors = (list(units[::2]), list(units[1::2])), [], []
    for half, other in (halves, halves[::-1]):
        reply, m = theory.gain_on_copies(game, _together(other), seat)[1], len(half)
        whole = theory.gain_on_copies(game, _together(half), seat, reply)[0]
        rest = [half[:i] + half[i + 1 :] for i in range(m)]
        less = [theory.gain_on_copies(game, _together(each), seat, reply)[0] for each in rest]
        values = m * whole - (m - 1) * np.array(less)
        means.append(values.mean())
        errors.append(values.std(ddof=1) / m**0.5)
    plug = max(theory.gain_on_copies(game, _together(units), seat)[0], 0.0)
    mean, error, df = float(np.mean(means)), float(np.mean(errors)), len(units) // 2
    # Near 0 the interval can miss at its lower end alone, which then has the whole error to itself.
    two, single = _t(df, level) * error, _t(df, 2 * level - 1) * error
    low = mean - single if mean - single <= two else max(two, mean - two)
    return _Gain(max(mean, 0.0), plug, max(low, 0.0), max(mean, plug) + two)


def _t(n: int, level: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(n - 1, (1 + level) / 2))


def _wilson(share: float, n: float, level: float) -> tuple[float, float]:
    from scipy.special import ndtri

    z = float(ndtri((1 + level) / 2))
    middle = (share + z**2 / 2 / n) / (1 + z**2 / n)
    wide = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / 4 / n**2)
    return max(middle - wide, 0.0), min(middle + wide, 1.0)


def _after(play: theory.Steps) -> theory.Steps:
    """Return the steps that have one before them, with the moves of that."""
    later = {name: values[..., 1:] for name, values in play.items()}
    return later | {BEFORE: play["actions"][..., :-1]}


def _units(plays: Sequence[theory.Steps]) -> list[theory.Steps]:
    """Return episodes, in groups if there are many, and of few episodes the parts of each."""
    if len(plays) >= FEWEST_UNITS:
        groups = np.array_split(np.arange(len(plays)), min(len(plays), UNITS))
        return [_together([plays[i] for i in group]) for group in groups]
    found: list[theory.Steps] = []
    for play in plays:
        length = play["actions"].shape[-1]
        for part in np.array_split(np.arange(length), min(length, UNITS // len(plays))):
            found.append({name: values[..., part] for name, values in play.items()})
    return found


def _together(units: Sequence[theory.Steps]) -> theory.Steps:
    return {name: np.concatenate([unit[name] for unit in units], axis=-1) for name in units[0]}
