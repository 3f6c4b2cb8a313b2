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
from llm_games.errors import BadParameter, LLMGamesError
from llm_games.registry import rulebook
from llm_games.rulebook import Rulebook

COLUMNS = "study, condition, parameters (JSON), measure, value (a number), n (whole, or empty)"
SAME = ("failed_reply",)  # parameters that are no condition of people's


class PeopleFigure(NamedTuple):
    """What people came to; `n` is None where it is not known, `parameters` are JSON."""

    study: str
    condition: str
    measure: str
    value: float
    n: int | None
    parameters: str


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
        for number, line in enumerate(csv.DictReader(lines), start=2):
            try:
                figure = _figure(line)
                rules = built.get(figure.parameters)
                rules = rules or rulebook(game, **json.loads(figure.parameters))
            except (KeyError, TypeError, ValueError, LLMGamesError) as error:
                raise BadParameter(
                    f"{path}, line {number}: {type(error).__name__}: {error}; a row has {COLUMNS}"
                ) from error
            built[figure.parameters] = rules
            figures.append((rules, figure))
    return tuple(figures)


def _figure(line: dict[str, str]) -> PeopleFigure:
    study, condition, measure = (line[name] for name in ("study", "condition", "measure"))
    n = int(line["n"]) if line["n"] else None
    return PeopleFigure(study, condition, measure, float(line["value"]), n, line["parameters"])


def _conditions(game: Rulebook) -> tuple[dict[str, Any], Any]:
    parameters = {k: v for k, v in game.core.__getstate__().items() if k not in SAME}
    return parameters, None if game.core is game else getattr(game, "talk", None)
