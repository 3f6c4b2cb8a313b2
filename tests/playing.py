"""Helpers of the tests: settings of every game and legal random play."""

from __future__ import annotations

import functools
import inspect
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

import llm_games
from llm_games.baselines.games.water_allocation import theory as water
from llm_games.codecs import ACTIONS
from llm_games.game_rooms import ROOMS
from llm_games.noise import Noise
from llm_games.questions import MISSING

NAMES = sorted(ROOMS)
SIMULTANEOUS = [name for name in NAMES if not llm_games.rules(name).turns]
MODES = ("text", "numeric", "both")
ALL_DEALS = 7.244  # what seat 0's best reply to conceder:1 gets, over all scenarios of deals


def cases(game):
    """Return ``cases.py`` of a game's room, which may say some of this, or None.

    Settings that are played beside the defaults: SMALL (in place of defaults that are too long),
    SETTINGS (of other spaces, masks or reports), QUICK (for many episodes), COARSE (with few
    histories), TRUTHS (where a parameter matters), PAID (what changes payoffs), ONES (one of a
    thing). A move: FIXED. Values by parameter: TOLD (each changes the rules as told; TOLD_FROM from
    other settings), DRAWN for claims, KEPT of them at night, TOO_LARGE never drawn as declared.
    BAD_PARAMETERS: refused, with the words. REPLIES: parameters, what the first question (its key
    is REPLY_KEY) is answered, and the action, or the kind of broken rule, also with the action.
    ALIKE: parameters, and the moves of two first rounds that look the same to the first player.
    """
    module = f"{ROOMS[game].rules.partition(':')[0].removesuffix('.rules')}.cases"
    return import_module(module) if find_spec(module) else None


def by_game(name, default):
    """Return what each game's cases say under a name, or the default."""
    return {game: getattr(cases(game), name, default) for game in NAMES}


def rows(name):
    """Return (game, settings) of all games from lists of their cases."""
    return [
        (game, *(row if isinstance(row, tuple) else [row]))
        for game, table in by_game(name, ()).items()
        for row in table
    ]


SMALL, QUICK = by_game("SMALL", {}), by_game("QUICK", {})


def of_three(name):
    """Return the parameter of a table of three; none for games of two."""
    try:
        llm_games.rules(name, players=3)
    except llm_games.BadParameter:
        return {}
    return {"players": 3}


# Every game at its defaults, and in the modes whose spaces, masks or reports differ.
SETTINGS: list[tuple[str, dict]] = [*SMALL.items(), *rows("SETTINGS")]
# Every setting once, and every kind of actions once a game; the observation modes take turns.
CASES = [(n, m, MODES[i % 3], "rules" if i % 4 else "index") for i, (n, m) in enumerate(SETTINGS)]
CASES += [
    (n, SMALL[n], MODES[(i + j) % 3], a) for i, n in enumerate(NAMES) for j, a in enumerate(ACTIONS)
]
IDS = [" ".join([name, *map(str, more.values())]) for name, more in SETTINGS]
CASE_IDS = [" ".join([n, mode, actions, *map(str, m.values())]) for n, m, mode, actions in CASES]


def every(test):
    """Run a test on every setting of every game; by day on one a game, see `conftest`."""
    return pytest.mark.crossing(pytest.mark.parametrize(("name", "more"), SETTINGS, ids=IDS)(test))


def each_row(names, table, ids=None, by=None):
    """Parametrize as pytest does, but as one item, or one for each value of `by`, called with rows.

    All rows run; the failure names those that failed; where all skip, so does the item. For rows of
    little time and without fixtures that a row could leave changed for the next.
    """
    single = isinstance(names, str)
    labels = list(ids) if ids and not callable(ids) else []
    groups = {}
    for number, row in enumerate(table):
        label = labels[number] if labels else f"{number}: {row!r}"[:200]
        if isinstance(row, type(pytest.param())):
            assert not row.marks, "a mark belongs to a whole item"
            label, row = row.id or label, row.values[0] if single else row.values
        arguments = {names: row} if single else dict(zip(names, row, strict=True))
        groups.setdefault(by(row) if by else None, []).append((label, arguments))

    def decorate(test):
        @functools.wraps(test)
        def whole(group=None, **fixtures):
            failures, skips = [], []
            for label, arguments in groups[group]:
                try:
                    test(**arguments, **fixtures)
                except pytest.skip.Exception as skip:
                    skips.append(skip)
                except (Exception, pytest.fail.Exception) as failure:
                    failures.append((label, failure))
            if failures:
                lines = [f"{label}: {type(e).__name__}: {e}" for label, e in failures]
                count = f"{len(failures)} of {len(groups[group])} rows failed"
                raise AssertionError("\n".join([count, *lines])) from failures[0][1]
            if len(skips) == len(groups[group]):
                raise skips[0]

        parameters = inspect.signature(test).parameters.values()
        remaining = [parameter for parameter in parameters if parameter.name not in arguments]
        if by:
            remaining.append(inspect.Parameter("group", inspect.Parameter.KEYWORD_ONLY))
        whole.__signature__ = inspect.Signature(remaining)
        del whole.__wrapped__
        return pytest.mark.parametrize("group", groups)(whole) if by else whole

    return decorate


def sampled(question, rng):
    return question.sample(Noise(int(rng.integers(2**63))))


def legal_actions(game, state, rng):
    """Return random legal actions of one table, ``(players,)``."""
    moves = {}
    for seat in np.flatnonzero(game.asked(state)):
        moves[int(seat)] = sampled(game.question(state, int(seat)), rng)
    return game.assemble(state, moves)


def batch_actions(game, state, rng):
    """Return random legal actions of a batch ``(tables,)``, ``(players, tables)``."""
    tables = [state.table(b) for b in range(len(state.round))]
    idle = np.full(game.players, MISSING, np.int64)
    return np.stack([idle if t.over else legal_actions(game, t, rng) for t in tables], axis=1)


def equal(a, b):
    one, two = a.arrays(), b.arrays()
    return one.keys() == two.keys() and all(
        np.array_equal(one[k], two[k], equal_nan=one[k].dtype.kind == "f") for k in one
    )


def price_ratio(game, played):
    """Return what was paid for water, of what would have been enough; None if nothing would."""
    paid, enough = (0, 0)
    for bids, supply in zip(played.bids, played.supplies, strict=True):
        for seat in range(game.players):
            price = water.critical_price(game, bids, supply, seat)
            won = (bids[seat] > water.NO_BID) & (bids[seat] >= price)
            paid += int(bids[seat][won].sum())
            enough += int(price[won].sum())
    return paid / enough if enough else None


def efficiency(game, played):
    """Return the mean number of survivors as a share of the planner's, see `water.best_plan`."""
    return float(played.survived.sum(axis=0).mean()) / water.best_plan(water.relevant(game))[1]
