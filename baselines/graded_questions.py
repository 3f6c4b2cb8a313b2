"""Questions with exact answers, asked of a player beside its moves.

They are made of any state of any game: what an outcome pays, which reply is best, whether all
moves are an equilibrium, what others will do, who survives. What is supposed in them is drawn
several times, and one of the answers that come out is chosen: of states as they come, most pay
nothing, or all replies to them are alike, and a constant answer would do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any, NamedTuple

import numpy as np

from llm_games import game_rooms as rooms
from llm_games.asides import GRADED, Aside, Chances
from llm_games.baselines.hindsight import CLOSE, ReplyLosses, reply_losses
from llm_games.baselines.regret import deviation, has_deviation
from llm_games.errors import BadParameter, unknown
from llm_games.noise import Noise
from llm_games.questions import MISSING, NO_BID, Bid, Choice, Integer, Question, Real
from llm_games.rulebook import Array, Rulebook
from llm_games.view import View

DRAWN, REPLIES = 12, 5  # times that outcomes, and others' moves, are drawn to choose from
LONGEST = 6  # supposed steps of a game in which seats take turns
MOST_NAMED = 12  # players up to whom chances are asked for
CENT = 100  # parts of a number that is asked for
LARGEST = 10**9  # numbers that are asked for, where nothing limits them
LASTING = ("survive", "soon", "last", "share", "ordered")  # goals that not all players reach
REACHED = ("survive", "soon")  # of these, goals that pay whoever reaches them


class GradedKind(NamedTuple):
    """A kind of question: its `level`, from the rules up to what others do, and who makes it."""

    level: int
    make: Callable[[View, Noise], GradedAside | None]


class SupposedOutcome(NamedTuple):
    """What is asked of an outcome, its ends, and its value in a state; None: what was paid."""

    what: str
    low: float
    high: float
    value: Callable[[Any, int], float] | None


@dataclass(frozen=True)
class GradedAside(Aside):
    """A question with what is `supposed` in it: moves by step and seat, `MISSING` for none."""

    supposed: tuple[tuple[Any, ...], ...] = ()

    def content(self, answer: Any) -> dict[str, Any]:
        """Return what is noted: the answer and what was supposed, never the right answer."""
        rows = [[None if move == MISSING else move for move in row] for row in self.supposed]
        return {"answer": answer, "supposed": rows}


@dataclass(frozen=True)
class GradedQuestion:
    """A kind of question by name, as `LLMPolicy` takes it; UnknownName: it is not in `KINDS`.

    Called with a view and chance it makes the question, None where there is nothing to ask.
    """

    kind: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown("kind of graded question", self.kind, KINDS)

    def __call__(self, view: View, noise: Noise) -> GradedAside | None:
        if self.kind not in kinds_of(view.core.game):
            return None
        try:
            return KINDS[self.kind].make(view.core, noise)
        except BadParameter:  # too large to be solved
            return None


def kinds_of(game: Rulebook) -> list[str]:
    """Return the kinds of questions that a game has, without its room's ``theory.unasked``."""
    unasked = getattr(rooms.part(game.name, "theory"), "unasked", lambda rules: ())
    lacking = {*unasked(game.core)}
    lacking |= set() if has_deviation(game.name) else {"reply", "equilibrium"}
    lacking |= {"equilibrium"} if game.turns else set()
    lacking |= set() if game.goal(0).kind in LASTING else {"survival"}
    return [kind for kind in KINDS if kind not in lacking]


# -- what is supposed -----------------------------------------------------------------------------


def drawn_moves(game: Rulebook, state: Any, noise: Noise) -> dict[int, Any]:
    """Draw a legal move for each seat that is asked, amounts nearer to the least in some draws."""
    share, moves = float(noise.of("share").random()), {}
    for seat in np.flatnonzero(game.asked(state)).tolist():
        question = game.asks(state, seat)
        move = question.sample(noise.of("move", seat))
        if isinstance(question, Integer | Real | Bid) and not game.picks:
            low = max(int(game.amounts(state)[0][seat]), 0)
            move = low + int((move - low) * share) if move > low else move
        if isinstance(question, Bid) and noise.of("declines", seat).random() < 1 / 3:
            move = NO_BID
        moves[seat] = move
    return moves


def moves_of(row: Sequence[Any]) -> dict[int, Any]:
    """Return the moves of a supposed step by seat, also of one that was noted."""
    plain = (tuple(move) if isinstance(move, list) else move for move in row)
    return {seat: move for seat, move in enumerate(plain) if move not in (None, MISSING)}


def _row(game: Rulebook, moves: Mapping[int, Any]) -> tuple[Any, ...]:
    return tuple(moves.get(seat, MISSING) for seat in range(game.players))


def _lines(game: Rulebook, state: Any, moves: Mapping[int, Any], seat: int) -> list[dict[str, Any]]:
    """Return supposed moves as the question tells them to the seat that is asked."""
    names, lines = game.names(), []
    for mover, move in moves.items():
        reply = replace(game.asks(state, mover), remarks=()).reply(move)
        lines.append({"name": names[mover], "reply": reply, "own": mover == seat})
    return lines


# -- what an outcome pays -------------------------------------------------------------------------


def _payoff(view: View, noise: Noise) -> GradedAside | None:
    game, state, seat = view.game, view.sight.state, view.seat
    what, low, high, _ = outcome_of(game)
    question = Real("outcome", floor(low) * CENT, ceil(high) * CENT, 2, units=())
    asides: dict[Any, GradedAside] = {}
    for number in range(DRAWN):
        steps, lines = _supposed_steps(game, state, seat, noise.of("supposed", number))
        if _settled(game, state, steps, seat, noise):
            values = {"supposed": lines, "what": what}
            aside = GradedAside(f"payoff{GRADED}", question, values, supposed=tuple(steps))
            asides[round(value_after(game, state, steps, seat), 2)] = aside
    unchanged = round(value_after(game, state, (), seat), 2)
    changed = {answer: aside for answer, aside in asides.items() if answer != unchanged}
    if len(changed) != 2 and noise.of("changed").random() < 3 / 4:
        asides = changed  # of two and no change each is as likely
    return _varied(asides, noise) if changed else None


def _varied(asides: Mapping[Any, GradedAside], noise: Noise) -> GradedAside | None:
    """Return one of questions by answer, all equally likely, so that no answer is the usual one."""
    answers = list(asides)
    return asides[answers[int(noise.of("answer").integers(len(answers)))]] if answers else None


def outcome_of(game: Rulebook) -> SupposedOutcome:
    """Return what outcomes are asked for: the room's ``theory.outcome``, else payoffs."""
    outcome = getattr(rooms.part(game.name, "theory"), "outcome", None)
    if outcome is not None:
        return SupposedOutcome(*outcome(game))
    low, high = np.clip(game.payable, -LARGEST, LARGEST).tolist()
    return SupposedOutcome("How much are you paid in all for it", low, high, None)


def value_after(game: Rulebook, state: Any, steps: Sequence[Sequence[Any]], seat: int) -> float:
    """Return a seat's outcome if these steps follow on a state."""
    total, outcome_value = 0.0, outcome_of(game).value
    for row in steps:
        state, outcome = game.step(state, game.assemble(state, moves_of(row)))
        total += float(outcome.rewards[seat])
    return total if outcome_value is None else float(outcome_value(state, seat))


def _supposed_steps(
    game: Rulebook, state: Any, seat: int, noise: Noise
) -> tuple[list[tuple[Any, ...]], list[dict[str, Any]]]:
    steps, lines = [], []
    count = int(noise.of("steps").integers(1, LONGEST + 1)) if game.turns else 1
    for number in range(count):
        if state.over:
            break
        moves = drawn_moves(game, state, noise.of("step", number))
        lines += _lines(game, state, moves, seat)
        steps.append(_row(game, moves))
        state, _ = game.step(state, game.assemble(state, moves))
    return steps, lines


def _settled(game: Rulebook, state: Any, steps: Sequence[Any], seat: int, noise: Noise) -> bool:
    """Test whether no chance that nobody has seen yet changes what is paid."""
    unseen = [draw.name for draw in game.draws() if draw.out == 0 and hasattr(state, draw.name)]
    value = value_after(game, state, steps, seat)
    for number in range(4 if unseen else 0):
        chance = game.chance(noise.of("other", number))
        other = state.replace(**{name: chance[name] for name in unseen})
        if value_after(game, other, steps, seat) != value:
            return False
    return True


# -- replies and equilibria -----------------------------------------------------------------------


def _reply(view: View, noise: Noise) -> GradedAside | None:
    game, state, seat = view.game, view.sight.state, view.seat
    question = replace(game.asks(state, seat), remarks=())
    together = int(game.asked(state).sum()) > 1 and game.division is None
    asides, counts = dict[Any, GradedAside](), dict[Any, int]()  # by the best reply, of how many
    for number in range(REPLIES if together else 1):
        moves = drawn_moves(game, state, noise.of("supposed", number))
        others = {k: move for k, move in moves.items() if k != seat and together}
        losses = losses_to(game, state, _row(game, others), seat, moves[seat])
        if losses is not None and losses.lost.max() - losses.lost.min() > CLOSE:
            values = {"supposed": _lines(game, state, others, seat)}
            supposed = (_row(game, others),) if others else ()
            best = losses.tried[int(losses.lost.argmin())]
            asides[best] = GradedAside(f"reply{GRADED}", question, values, supposed=supposed)
            counts[best] = int((losses.lost <= losses.lost.min() + CLOSE).sum())
    fewest = min(counts.values(), default=0)
    return _varied({k: aside for k, aside in asides.items() if counts[k] <= 2 * fewest}, noise)


def losses_to(
    game: Rulebook, state: Any, row: Sequence[Any] | None, seat: int, answer: Any
) -> ReplyLosses | None:
    """Return what replies of a seat lose, its answer first, if others move as a row supposes.

    Where it supposes nothing, they make the declared moves: theory looks at the state alone.
    """
    others = moves_of(row or ())
    if row is None or not others:
        fallback = game.fallback(state)
        others = {k: fallback[k] for k in np.flatnonzero(game.asked(state)).tolist()}
    return reply_losses(game, state, game.assemble(state, {**others, seat: answer}), seat)


def _equilibrium(view: View, noise: Noise) -> GradedAside | None:
    game, state = view.game, view.sight.state
    question, asides = Choice("equilibrium", {"yes": 1, "no": 0}), dict[Any, GradedAside]()
    moves = drawn_moves(game, state, noise.of("supposed"))
    for profile in (moves, _replies_in_turn(game, state, moves)):
        row, values = _row(game, profile), {"supposed": _lines(game, state, profile, view.seat)}
        aside = GradedAside(f"equilibrium{GRADED}", question, values, supposed=(row,))
        if (answer := is_equilibrium(game, state, row)) is not None:
            asides[answer] = aside
    return _varied(asides, noise)


def _replies_in_turn(game: Rulebook, state: Any, moves: Mapping[int, Any]) -> dict[int, Any]:
    """Let each seat reply best to the others, twice: often this ends in an equilibrium."""
    moves = dict(moves)
    for seat in [*moves] * 2:
        losses = reply_losses(game, state, game.assemble(state, moves), seat)
        if losses is not None:
            moves[seat] = losses.tried[int(losses.lost.argmin())]
    return moves


def is_equilibrium(game: Rulebook, state: Any, row: Sequence[Any]) -> bool | None:
    """Return whether nobody gains by another move; None where theory does not say it."""
    _, outcome = game.step(state, game.assemble(state, moves_of(row)))
    record = {name: np.asarray(value) for name, value in outcome.record.items()}
    regret = deviation(game, record).regret[game.asked(state)]
    return bool((regret <= CLOSE).all()) if np.isfinite(regret).all() else None


# -- beliefs --------------------------------------------------------------------------------------


def others_of(game: Rulebook, state: Any, seat: int) -> list[int]:
    """Return the others who move in the same step; none where seats take turns."""
    asked = [] if game.turns else np.flatnonzero(game.asked(state)).tolist()
    return [other for other in asked if other != seat]


def move_words(question: Question) -> dict[str, int] | None:
    """Return the moves of a choice by word; None for an amount."""
    return dict(question.words) if isinstance(question, Choice) else None


def belief_ends(game: Rulebook, state: Any, others: Sequence[int]) -> tuple[float, float]:
    """Return the least and the most that others can choose now, as it is told."""
    low, high = (limit[list(others)] for limit in game.amounts(state))
    return float(low.min()) / game.unit, float(high.max()) / game.unit


def _belief(view: View, noise: Noise) -> GradedAside | None:
    game, state, kind = view.game, view.sight.state, f"belief{GRADED}"
    others = others_of(game, state, view.seat)
    values = {"others": len(others), "options": False, "bids": False}
    if game.turns:
        names = tuple(game.names())
        few = len(names) <= MOST_NAMED
        return GradedAside(kind, Chances("chances", names), values) if few else None
    words = [move_words(game.asks(state, other)) for other in others]
    if not others or any(other != words[0] for other in words):
        return None
    if words[0] is not None:
        return GradedAside(kind, Chances("chances", tuple(words[0])), values | {"options": True})
    low, high = belief_ends(game, state, others)
    if not low < high <= low + LARGEST:
        return None
    values |= {"bids": isinstance(game.asks(state, others[0]), Bid)}
    question = Real("mean", floor(low * CENT), ceil(high * CENT), 2, units=())
    return GradedAside(kind, question, values)


def _survival(view: View, noise: Noise) -> GradedAside | None:
    living = living_in(view.game, view.sight.state)
    names = tuple(name for name, lives in zip(view.game.names(), living, strict=True) if lives)
    if not 1 < len(names) <= MOST_NAMED:
        return None
    return GradedAside(f"survival{GRADED}", Chances("chances", names, together=False))


def living_in(game: Rulebook, state: Any) -> Array:
    """Return who is still in the game, bool ``(players,)``."""
    return game.asked(state) if game.goal(0).kind == "survive" else game.alive(state)


def survivors(game: Rulebook, state: Any, payoffs: Array) -> Array:
    """Return who has survived a game that is over, bool ``(players,)``."""
    if game.goal(0).kind in REACHED:
        return payoffs > 0
    return game.alive(state.replace(over=np.zeros_like(state.over)))


KINDS: Mapping[str, GradedKind] = {
    "payoff": GradedKind(1, _payoff),
    "reply": GradedKind(2, _reply),
    "equilibrium": GradedKind(3, _equilibrium),
    "belief": GradedKind(4, _belief),
    "survival": GradedKind(4, _survival),
}
