"""Players of the beauty contest: they mind `min` and `max` whatever is legal, distances exactly."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from llm_games.baselines.games.beauty_contest import theory
from llm_games.baselines.games.beauty_contest.talkers import Discussant
from llm_games.baselines.games.beauty_contest.theory import Contest
from llm_games.baselines.rules import Kind, Players, shape, whole
from llm_games.baselines.tiny.scripts import Answer, Seen, clip, draw
from llm_games.noise import Noise
from llm_games.questions import Real
from llm_games.rulebook import Array
from llm_games.view import View


def rational(view: View, noise: Noise) -> Array:
    """Name the number of the equilibrium that iterated dominance leaves."""
    return np.full(shape(view), theory.undominated(Contest.of(view.game)))


def best_response(view: View, noise: Noise) -> Array:
    """Reply to the others' last sum (from all numbers, mean or target); unknown, be rational."""
    total, known = _others_total(view)
    reply = theory.reply_to_total(np.rint(total * view.game.unit), Contest.of(view.game))
    return np.where(known, reply, rational(view, noise))


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
        own = view.number("number") if "number" in columns else mean
        return game.players * mean - own, begun & (view.number("any_counted") > 0)
    return np.zeros(begun.shape), np.zeros(begun.shape, bool)


def level_k(level: int, view: View, noise: Noise) -> Array:
    """Level 0 names the midpoint."""
    contest = Contest.of(view.game)
    number, highest = np.zeros(shape(view), np.int64), np.minimum(view.high, contest.high)
    for high in np.unique(highest):  # of each table
        number[highest == high] = theory.level_k(level, replace(contest, high=int(high)))
    return number


def cooperative(view: View, noise: Noise) -> Array:
    """Name the midpoint, so that everybody wins."""
    contest = Contest.of(view.game)
    return (np.maximum(view.low, contest.low) + np.minimum(view.high, contest.high)) // 2


def reciprocal(view: View, noise: Noise) -> Array:
    """Name the midpoint until another number wins, as far as that is told; then be rational."""
    usual = cooperative(view, noise)
    if "winning_low" not in view.game.column_index:
        return usual
    lowest, highest = (whole(view, f"winning_{end}", view.game.unit) for end in ("low", "high"))
    broken = (view.number("any_winner") > 0) & ((lowest != usual) | (highest != usual))
    return np.where(broken, rational(view, noise), usual)


def reply_to(view: View, others: Array) -> Array:
    """Return the best reply to numbers."""
    contest = replace(Contest.of(view.game), low=int(view.low), high=int(view.high))
    numbers = np.insert(others, view.seat, view.low)
    return theory.best_response(numbers, contest)[0][view.seat]


def script(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """Step by step below (or above) the last average; the mathematician goes all the way."""
    if isinstance(seen.question, Real):
        return _decimal_script(seen, persona, rng)
    game, last = seen.game, seen.told["last"]
    low, high, ratio = int(game.min), int(game.max), Fraction(game.ratio)
    end = low if ratio < 1 else high if ratio > 1 else (low + high) // 2
    average = (low + high) / 2 if last is None else float(last["mean"])
    if persona == "mathematician":
        return end, f"The equilibrium is that everybody chooses {end}."
    if persona == "cooperative":
        return clip(average, seen), "We all do best if we stay near the last average."
    steps = 2 if persona == "selfish" else 1
    guess = clip(average * float(ratio) ** steps + rng.integers(0, 2), seen)
    if persona == "selfish":
        return guess, "The others will move on, so I go one step further than they do."
    return guess, "I take the last average and move one step towards the target."


def _decimal_script(seen: Seen, persona: str | None, rng: np.random.Generator) -> Answer:
    """Play where limits differ, and are 10 at least: begin below that, and go down."""
    told, unit = seen.told, 10**seen.question.decimals
    if persona == "mathematician":
        return 0, "The equilibrium is that everybody chooses 0."
    if persona == "selfish":
        return draw(rng, (0, 4), (unit, 4), (2 * unit, 2)), "The others go down, and I am below."
    if told["last"] is None:
        return draw(rng, (5 * unit, 5), (8 * unit, 5)), "All will go down, so I begin low."
    if persona == "cooperative":
        named = told["last"].get("all_choices", {}).values()
        first = int(next((number for number in named if number is not None), 5))
        return first * unit, f"I go along with the first of us, near {first}."
    return draw(rng, (0, 2), (unit, 5), (2 * unit, 3)), "I go down as all do."


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
    script=script,
)
