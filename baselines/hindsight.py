"""The best reply of one decision: which moves leave nothing to regret, and what they earn.

A move's regret is what its game's theory says of it (`deviation`). All moves that a seat could have
made are played at once, one a table of a batch, others and chance as they were, and theory judges
each: so no game has to say twice what is best in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.deviation import deviation, has_deviation, replies
from llm_games.baselines.players import make_player
from llm_games.baselines.rules import RulePolicy
from llm_games.errors import BadParameter
from llm_games.questions import MISSING, Action
from llm_games.rulebook import Array, Rulebook
from llm_games.view import View

MOST = 1001
"""Moves that are tried at once; of more legal ones as many, evenly spread, then around the best."""
CLOSE = 1e-9


class Hindsight(NamedTuple):
    """A move beside all others that its seat could have made.

    `best` are the moves without regret among those tried, the own one first, others ascending;
    `alike` says that all that were tried are, `whole` that these were all legal ones. `earned` is
    what the own move paid in its step, `possible` what the first of the best would have; theories
    that look further than the step mean more than that by regret.
    """

    regret: float
    best: tuple[Action, ...]
    earned: float
    possible: float
    alike: bool
    whole: bool

    @property
    def immediate(self) -> bool:
        """Whether the regret is what the best move would have paid more in this step."""
        return abs(self.possible - self.earned - self.regret) <= 1e-6 * max(1, abs(self.possible))


def hindsight(game: Rulebook, state: Any, moves: Array, seat: int) -> Hindsight | None:
    """Return the best replies of a seat to a step of one table, ``(players,)`` moves as decided.

    None where nothing is to be said: theory defines no regret here.
    """
    game, state = game.core, state
    if not has_deviation(game.name) or not game.asked(state)[seat]:
        return None
    tried, whole = _candidates(game, state, moves, seat)
    try:
        lost, paid = _judged(game, state, moves, seat, tried)
        if not whole and len(tried) > 1 and np.isfinite(lost[1:]).all():
            finer = _around(game, state, seat, tried, 1 + int(lost[1:].argmin()))
            tried = [tried[0], *finer]
            lost, paid = _judged(game, state, moves, seat, tried)
    except BadParameter:  # too large to be solved
        return None
    if not np.isfinite(lost).all():
        return None
    least = max(float(lost.min()), 0.0) + CLOSE
    best = [place for place in range(len(tried)) if lost[place] <= least]
    first = best[0]
    known = dict.fromkeys(tried[place] for place in best)
    paid_by = float(paid[0]), float(paid[first])
    return Hindsight(float(lost[0]), tuple(known), *paid_by, len(best) == len(tried), whole)


def _judged(
    game: Rulebook, state: Any, moves: Array, seat: int, tried: Sequence[Action]
) -> tuple[Array, Array]:
    """Return the regret of each move of a seat, and what it pays in the step."""
    many = len(tried)
    tables = state.table(np.newaxis).table(np.zeros(many, np.int64))
    plans = game.division is not None and any(isinstance(move, tuple) for move in tried)
    actions = np.repeat(np.asarray(moves)[:, None], many, axis=1)
    for place, move in enumerate(tried):
        if plans:
            actions[:, place] = game.assemble(state, {seat: move})
        else:
            actions[seat, place] = move
    _, outcome = game.step(tables, actions)
    found = deviation(game, {name: np.asarray(value) for name, value in outcome.record.items()})
    return np.asarray(found.regret[seat]), np.asarray(outcome.rewards[seat])


def _candidates(game: Rulebook, state: Any, moves: Array, seat: int) -> tuple[list[Action], bool]:
    """Return the own move and those to compare it with, and whether these are all legal ones."""
    own: Action = int(moves[seat])
    if game.division is not None and game.sharers(state).any():
        own = tuple(int(share) for share in moves)
        return [own, *_of_players(game, state, seat)], False
    low, high = (int(limit[seat]) for limit in game.amounts(state))
    beside = [] if game.decline is None else [game.decline]
    if high < low:
        return [own, *beside], True
    if high - low < MOST:
        return [own, *beside, *range(low, high + 1)], True
    spread = np.unique(np.linspace(low, high, MOST // 2).astype(np.int64)).tolist()
    others = [int(move) + more for move in moves for more in (-1, 0, 1) if move != MISSING]
    near = sorted({move for move in others if low <= move <= high})[: MOST // 2]
    return [own, *beside, *sorted({*spread, *near})], False


def _around(
    game: Rulebook, state: Any, seat: int, tried: Sequence[Action], best: int
) -> list[Action]:
    """Return the legal moves between the neighbours of the best one, at most `MOST`, and it."""
    if isinstance(tried[best], tuple):
        return list(tried[1:])
    low, high = (int(limit[seat]) for limit in game.amounts(state))
    known = sorted({int(move) for move in tried[1:]})  # type: ignore[arg-type]
    place = known.index(int(tried[best]))  # type: ignore[arg-type]
    begin = max(known[max(place - 1, 0)], low)
    end = min(known[min(place + 1, len(known) - 1)], high)
    finer = np.unique(np.linspace(begin, end, MOST).astype(np.int64)).tolist()
    return [*sorted({*finer, tried[best]})]


def _of_players(game: Rulebook, state: Any, seat: int) -> list[Action]:
    """Return what the game's players would do who are tried as replies."""
    found = (rule_move(game, state, seat, name) for name in replies(game))
    return [move for move in dict.fromkeys(found) if move is not None]


def rule_move(game: Rulebook, state: Any, seat: int, name: str = "rational") -> Action | None:
    """Return what a player that follows a rule does in a state; None if it can't be said.

    It comes to the table as it is now: what it would remember, it does not.
    """
    game = game.core
    try:
        policy = make_player(name, game)
        if not isinstance(policy, RulePolicy):
            return None
        decided, _ = policy.act(View.of(game, state, seat), policy.start(game, seat, 0))
    except BadParameter:  # no such player here, or a game too large to be solved
        return None
    return decided.action
