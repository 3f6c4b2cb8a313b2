"""What people did in laboratories and classrooms under the conditions of a game.

A room's ``people.csv`` has a row a figure: study, condition in its words, the same as parameters of
the game (JSON), which of its `play_measures` it is, value, and of how many choices, people or
results (empty: not known). They stand beside play and are never counted with it.
"""

from __future__ import annotations

import csv
import json
from functools import lru_cache
from typing import Any, NamedTuple

from llm_games import game_rooms as rooms
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook

SAME = ("failed_reply",)  # parameters that are no condition of people's


class PeopleFigure(NamedTuple):
    """What people came to; `n` is None where it is not known."""

    study: str
    condition: str
    measure: str
    value: float
    n: int | None


def people(game: Rulebook) -> list[PeopleFigure]:
    """Return people's figures under the conditions of these rules, talk among them, in order."""
    wanted = _conditions(game)
    return [figure for rules, figure in figures_of(game.name) if _conditions(rules) == wanted]


@lru_cache(maxsize=64)
def figures_of(game: str) -> tuple[tuple[Rulebook, PeopleFigure], ...]:
    """Return all figures of a game, each with the rules under which it was found."""
    path = rooms.file(game, "people.csv")
    if path is None:
        return ()
    built: dict[str, Rulebook] = {}
    figures = []
    with path.open(newline="", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            given = line["parameters"]
            if given not in built:
                built[given] = rulebook(game, **json.loads(given))
            n = int(line["n"]) if line["n"] else None
            study, condition, measure = (line[k] for k in ("study", "condition", "measure"))
            figure = PeopleFigure(study, condition, measure, float(line["value"]), n)
            figures.append((built[given], figure))
    return tuple(figures)


def _conditions(game: Rulebook) -> tuple[dict[str, Any], Any]:
    parameters = {k: v for k, v in game.core.__getstate__().items() if k not in SAME}
    return parameters, None if game.core is game else getattr(game, "talk", None)
