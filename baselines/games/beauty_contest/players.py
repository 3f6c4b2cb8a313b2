"""Players of the beauty contest: they respect `min` and `max` whatever is legal."""

from dataclasses import replace

import numpy as np

from llm_games.baselines.games.beauty_contest import theory
from llm_games.baselines.games.beauty_contest.contest_talkers import Discussant
from llm_games.baselines.games.beauty_contest.theory import ContestRules
from llm_games.baselines.rules import Kind, Players, shape, whole
from llm_games.noise import Noise
from llm_games.rulebook import Array
from llm_games.view import View


def rational(view: View, noise: Noise) -> Array:
    return np.full(shape(view), theory.undominated(ContestRules.of(view.game)))


def best_response(view: View, noise: Noise) -> Array:
    """Reply to the others' last sum (from all numbers, mean or target); if unknown, be rational."""
    total, is_known = _others_total(view)
    reply = theory.reply_to_total(np.rint(total * view.game.unit), ContestRules.of(view.game))
    return np.where(is_known, reply, rational(view, noise))


def _others_total(view: View) -> tuple[Array, Array]:
    """Return the others' last sum, and where it is known, ``(*batch)``."""
    game = view.game
    columns, begun = game.column_index, view.number("round") > 1
    if "number_0" in columns:
        numbers = (view.number(f"number_{i}") * (i != view.seat) for i in range(game.players))
        return sum(numbers), begun
    if "mean" in columns or ("target" in columns and game.ratio > 0):
        by_target = "mean" not in columns
        mean = view.number("target") / float(game.ratio) if by_target else view.number("mean")
        own_number = view.number("number") if "number" in columns else mean
        return game.players * mean - own_number, begun & (view.number("any_counted") > 0)
    return np.zeros(begun.shape), np.zeros(begun.shape, bool)


def level_k(level: int, view: View, noise: Noise) -> Array:
    contest = ContestRules.of(view.game)
    number, highest = np.zeros(shape(view), np.int64), np.minimum(view.high, contest.high)
    for high in np.unique(highest):  # of each table
        number[highest == high] = theory.level_k(level, replace(contest, high=int(high)))
    return number


def cooperative(view: View, noise: Noise) -> Array:
    """Name the midpoint, so that everybody wins."""
    contest = ContestRules.of(view.game)
    return (np.maximum(view.low, contest.low) + np.minimum(view.high, contest.high)) // 2


def reciprocal(view: View, noise: Noise) -> Array:
    """Name the midpoint until another number wins, as far as that is shown; then be rational."""
    usual = cooperative(view, noise)
    if "winning_low" not in view.game.column_index:
        return usual
    lowest, highest = (whole(view, f"winning_{end}", view.game.unit) for end in ("low", "high"))
    broken = (view.number("any_winner") > 0) & ((lowest != usual) | (highest != usual))
    return np.where(broken, rational(view, noise), usual)


def reply_to(view: View, others: Array) -> Array:
    contest = replace(ContestRules.of(view.game), low=int(view.low), high=int(view.high))
    numbers = np.insert(others, view.seat, view.low)
    return theory.best_response(numbers, contest)[0][view.seat]


PLAYERS = Players(
    {
        "rational": rational,
        "best_response": best_response,
        "level_k": level_k,
        "cooperative": cooperative,
        "reciprocal": reciprocal,
        "agreeable": Kind(
            "proposes one number for all, agrees to what is named most, and keeps to it",
            made=lambda value: Discussant("agreeable"),
        ),
        "disagreeable": Kind(
            "agrees to nothing, and replies best to all others choosing what is named most",
            made=lambda value: Discussant("disagreeable"),
        ),
        "mixed": Kind(
            "is what the game tells it to be, else agreeable, disagreeable or neither, as drawn",
            made=lambda value: Discussant("mixed"),
        ),
    },
    assumed="if the others name the same sum again (while that is not known, if all are rational)",
    reply_to=reply_to,
    broadcasts=True,
)
