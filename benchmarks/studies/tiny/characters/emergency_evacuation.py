"""What characters do, say and feel in the room, for the embedded model to learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from llm_games.benchmarks.studies.tiny.scripts import Answer, ScriptView, draw


def script(view: ScriptView, persona: str | None, rng: np.random.Generator) -> Answer:
    """Choose the near exits, at times those with few people; walk straight to the target."""
    if view.observation["moving"]:
        letter, reason = _step(view.observation)
        return view.question.words[letter], reason
    names, sides = view.question.words, view.observation["seen"]
    near = min(sides, key=lambda side: float(side["distance"]))
    free = min(sides, key=lambda side: float(side["people"]))
    few = {None: 0.1, "cooperative": 0.6}.get(persona, 0.0)
    side, reason = (
        (free, "Few people are there.") if rng.random() < few else (near, "These exits are near.")
    )
    if side["name"] in names:
        return names[side["name"]], reason
    return int(rng.choice(list(names.values()))), "This exit is as good as another."


def _step(observation: dict[str, Any]) -> tuple[str, str]:
    """Return the letter of the next cell, and why it is taken."""
    options, way = observation["options"], (observation["target"] or {}).get("way")
    wanted = [o for o in options if o["way"] == way and not o["taken"]]
    if wanted:
        return wanted[0]["letter"], "I go straight to my target."
    parts = [o for o in options if way and o["way"] in way.split("-") and not o["taken"]]
    if parts:
        return parts[0]["letter"], "I go around those before me."
    return next(o["letter"] for o in options if not o["taken"]), "I take a free cell."


def feeling(view: ScriptView, persona: str | None, rng: np.random.Generator) -> tuple[Any, str]:
    """Feel as one is told to be."""
    if view.observation.get("positive", True):
        text = draw(rng, ("I feel calm and sure of myself.", 1), ("I am calm.", 1))
        panic = rng.random() < 0.1
    else:
        text = draw(rng, ("I am afraid.", 1), ("I am nervous and want to get out.", 1))
        panic = rng.random() < 0.7
    return {"feeling": text, "panic": bool(panic)}, "I say how I feel."


def assessment(view: ScriptView, persona: str | None, rng: np.random.Generator) -> tuple[Any, str]:
    """Say of each side whether it is near and whether people are there."""
    sides = view.observation["seen"]
    near = min(float(side["distance"]) for side in sides)
    texts = {
        side["name"]: ("near" if float(side["distance"]) == near else "further away")
        + (", with people" if float(side["people"]) >= 1 else ", with few people")
        for side in sides
    }
    return texts, "I look at the distances."


def speech(view: ScriptView, persona: str | None, rng: np.random.Generator) -> tuple[str, str]:
    """Say where to go, without numbers."""
    if not view.observation["seen"]:  # there is nothing to choose
        return rng.choice(("I go on to my exit.", "Do not push.")).item(), "I say something short."
    side = min(view.observation["seen"], key=lambda side: float(side["distance"]))["name"]
    lines = {
        "selfish": ("Let me pass.", f"Keep away from the {side} exits."),
        "cooperative": (f"The {side} exits are near, let us go there together.", "Do not push."),
    }
    plain = (f"I go to the {side} exits.", f"The {side} exits are near.")
    return rng.choice(lines.get(persona or "", plain)).item(), "I say where I go."


ASIDES = {"feeling": feeling, "assessment": assessment, "speech": speech}
