"""Cheap talk: a rulebook around a rulebook, in which players may speak before they move.

Words change no payoff. `Talk` has the parameters, `Talking` plays a game with them; a game knows no
more of talk than what `Rulebook` asks it: `talks`, `speakers` and `positions`. Wu et al., "Shall We
Talk", arXiv 2402.12327.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from llm_games.errors import BadParameter, unknown_keyword
from llm_games.rulebook import Rulebook
from llm_games.talk.parameters import Talk
from llm_games.talk.rules import Talking
from llm_games.talk.turns import TalkState, Utterance

__all__ = ["PARAMETERS", "Talk", "TalkState", "Talking", "Utterance", "split", "talking"]

PARAMETERS = "talk_"  # what stands before a parameter of the talk among those of a game


def split(parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split parameters into a game's and its talk's: ``talk``, then single ``talk_turns``."""
    flat = {k: v for k, v in parameters.items() if k.startswith(PARAMETERS)}
    rest = {k: v for k, v in parameters.items() if k not in flat and k != "talk"}
    talk = parameters.get("talk") or {}
    if isinstance(talk, Talk):
        talk = {f.name: getattr(talk, f.name) for f in dataclasses.fields(Talk)}
    if not isinstance(talk, Mapping):
        raise BadParameter(f'talk must be such as {{"turns": 2}}, got {talk!r}')
    return rest, dict(talk) | {name[len(PARAMETERS) :]: value for name, value in flat.items()}


def talking(game: Rulebook, parameters: Mapping[str, Any]) -> Rulebook:
    """Let the players of a game talk, if there are turns in any round; else return the game.

    Raises UnknownName for no such parameter, BadParameter for one out of range or that does not
    fit.
    """
    names = [f.name for f in dataclasses.fields(Talk)]
    for name in parameters:
        if name not in names:
            raise unknown_keyword("parameter of talk", name, names)
    talk = Talk(**parameters)
    return Talking(game, talk) if np.any(talk.turns) else game
