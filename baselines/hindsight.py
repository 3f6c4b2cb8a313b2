"""The best reply of one decision: the moves without regret, and their payoffs.

All moves that a seat could have made are played at once, one at each table of a batch, others and
chance unchanged, and theory (`deviation`) values each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.players import make_player
from llm_games.baselines.regret import deviation, has_deviation, replies
from llm_games.baselines.rules import RulePolicy
from llm_games.errors import BadParameter
from llm_games.questions import MISSING, Action
from llm_games.rulebook import Array, Rulebook
from llm_games.view import View

MOST = 1001  # moves tried at once; of more as many, evenly spread, then around the best
CLOSE = 1e-9


class Hindsight(NamedTuple):
    """A move beside all others that its seat could have made.

    `best` are the tried moves without regret, the own first, others ascending; `alike`: these are
    all that were tried, `whole`: all legal ones were. `earned` is the payoff of the move in its
    step, `possible` that of the first of `best`; regret may look further than the step.
    """

    regret: float
    best: tuple[Action, ...]
    earned: float
    possible: float
    alike: bool
    whole: bool

    @property
    def immediate(self) -> bool:
        """Whether the regret equals the payoff that the best move adds in this step."""
        return abs(self.possible - self.earned - self.regret) <= 1e-6 * max(1, abs(self.possible))


def hindsight(game: Rulebook, state: Any, moves: Array, seat: int) -> Hindsight | None:
    """Return the best replies of a seat in a step, ``(players,)`` moves; None without theory."""
    if not game.core.asked(state)[seat]:
        return None
    losses = reply_losses(game, state, moves, seat)
    if losses is None:
        return None
    tried, lost, payoffs, whole = losses
    least = max(float(lost.min()), 0.0) + CLOSE
    best = [index for index in range(len(tried)) if lost[index] <= least]
    return Hindsight(
        regret=float(lost[0]),
        best=tuple(dict.fromkeys(tried[index] for index in best)),
        earned=float(payoffs[0]),
        possible=float(payoffs[best[0]]),
        alike=len(best) == len(tried),
        whole=whole,
    )


class ReplyLosses(NamedTuple):
    """Moves that were tried, the own first, and what they lose and pay; `whole`: all legal ones."""

    tried: list[Action]
    lost: Array
    payoffs: Array
    whole: bool


def reply_losses(game: Rulebook, state: Any, moves: Array, seat: int) -> ReplyLosses | None:
    """Return what replies of a seat to ``(players,)`` moves lose; None without theory."""
    game = game.core
    if not has_deviation(game.name):
        return None
    tried, whole = _candidates(game, state, moves, seat)
    try:
        lost, payoffs = _regrets_and_payoffs(game, state, moves, seat, tried)
        if not whole and len(tried) > 1 and np.isfinite(lost[1:]).all():
            finer = _around(game, state, seat, tried, 1 + int(lost[1:].argmin()))
            tried = [tried[0], *finer]
            lost, payoffs = _regrets_and_payoffs(game, state, moves, seat, tried)
    except BadParameter:  # too large to be solved
        return None
    return ReplyLosses(tried, lost, payoffs, whole) if np.isfinite(lost).all() else None


def _regrets_and_payoffs(
    game: Rulebook, state: Any, moves: Array, seat: int, tried: Sequence[Action]
) -> tuple[Array, Array]:
    count = len(tried)
    tables = state.table(np.newaxis).table(np.zeros(count, np.int64))
    plans = game.division is not None and any(isinstance(move, tuple) for move in tried)
    actions = np.repeat(np.asarray(moves)[:, None], count, axis=1)
    for index, move in enumerate(tried):
        if plans:
            actions[:, index] = game.assemble(state, {seat: move})
        else:
            actions[seat, index] = move
    _, outcome = game.step(tables, actions)
    record = {name: np.asarray(value) for name, value in outcome.record.items()}
    return np.asarray(deviation(game, record).regret[seat]), np.asarray(outcome.rewards[seat])


def _candidates(game: Rulebook, state: Any, moves: Array, seat: int) -> tuple[list[Action], bool]:
    """Return the seat's move and those to compare it with, and whether these are all legal ones."""
    seat_move: Action = int(moves[seat])
    if game.division is not None and game.sharers(state).any():
        seat_move = tuple(int(share) for share in moves)
        return [seat_move, *_reply_moves(game, state, seat)], False
    low, high = (int(limit[seat]) for limit in game.amounts(state))
    beside = [] if game.decline is None else [game.decline]
    if high < low:
        return [seat_move, *beside], True
    if high - low < MOST:
        return [seat_move, *beside, *range(low, high + 1)], True
    spread = np.unique(np.linspace(low, high, MOST // 2).astype(np.int64)).tolist()
    others = [int(move) + offset for move in moves for offset in (-1, 0, 1) if move != MISSING]
    near = sorted({move for move in others if low <= move <= high})[: MOST // 2]
    return [seat_move, *beside, *sorted({*spread, *near})], False


def _around(
    game: Rulebook, state: Any, seat: int, tried: Sequence[Action], best: int
) -> list[Action]:
    """Return the legal moves between the best one's neighbours, at most `MOST`, and itself."""
    if isinstance(tried[best], tuple):
        return list(tried[1:])
    low, high = (int(limit[seat]) for limit in game.amounts(state))
    ordered = sorted({int(move) for move in tried[1:]})  # type: ignore[arg-type]
    index = ordered.index(int(tried[best]))  # type: ignore[arg-type]
    begin = max(ordered[max(index - 1, 0)], low)
    end = min(ordered[min(index + 1, len(ordered) - 1)], high)
    finer = np.unique(np.linspace(begin, end, MOST).astype(np.int64)).tolist()
    return [*sorted({*finer, tried[best]})]


def _reply_moves(game: Rulebook, state: Any, seat: int) -> list[Action]:
    moves = (rule_move(game, state, seat, name) for name in replies(game))
    return [move for move in dict.fromkeys(moves) if move is not None]


def rule_move(game: Rulebook, state: Any, seat: int, name: str = "rational") -> Action | None:
    """Return the move of a rule player without memory in a state; None if there is none."""
    game = game.core
    try:
        policy = make_player(name, game)
        if not isinstance(policy, RulePolicy):
            return None
        decided, _ = policy.act(View.of(game, state, seat), policy.start(game, seat, 0))
    except BadParameter:  # no such player here, or a game too large to be solved
        return None
    return decided.action
