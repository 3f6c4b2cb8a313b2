"""What characters do in beauty contest, for the embedded model to learn."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, clip, draw
from llm_games.questions import Real


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Step by step below (or above) the last average; the mathematician goes all the way."""
    if isinstance(view.question, Real):
        return _decimal_script(view, persona, rng)
    game, last = view.game, view.observation["last"]
    low, high, ratio = int(game.min), int(game.max), Fraction(game.ratio)
    end = low if ratio < 1 else high if ratio > 1 else (low + high) // 2
    average = (low + high) / 2 if last is None else float(last["mean"])
    if persona == "mathematician":
        return end, f"The equilibrium is that everybody chooses {end}."
    if persona == "cooperative":
        return clip(average, view), "We all do best if we stay near the last average."
    steps = 2 if persona == "selfish" else 1
    guess = clip(average * float(ratio) ** steps + rng.integers(0, 2), view)
    if persona == "selfish":
        return guess, "The others will move on, so I go one step further than they do."
    return guess, "I take the last average and move one step towards the target."


def _decimal_script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Play where limits differ, and are 10 at least: begin below that, and go down."""
    observation, unit = view.observation, 10**view.question.decimals
    if persona == "mathematician":
        return 0, "The equilibrium is that everybody chooses 0."
    if persona == "selfish":
        return draw(rng, (0, 4), (unit, 4), (2 * unit, 2)), "The others go down, and I am below."
    if observation["last"] is None:
        return draw(rng, (5 * unit, 5), (8 * unit, 5)), "All will go down, so I begin low."
    if persona == "cooperative":
        named = observation["last"].get("all_choices", {}).values()
        first = int(next((number for number in named if number is not None), 5))
        return first * unit, f"I go along with the first of us, near {first}."
    return draw(rng, (0, 2), (unit, 5), (2 * unit, 3)), "I go down as all do."
