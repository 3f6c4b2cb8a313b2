"""Values of best responses at some tables, and the shares of them that rule players reach.

``python -m llm_games.benchmarks.studies.best_responses`` computes the tables of
``best_responses.toml``, row by row. The best rule player is the best of those that the game's
theory names; it is chosen in other games than it is valued in.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.batch_play import play_rules
from llm_games.baselines.best_response import best_response
from llm_games.baselines.regret import replies
from llm_games.benchmarks.studies.dated import RESULTS, markdown, read, settings, today, write
from llm_games.registry import rulebook
from llm_games.version import __version__

FILE = RESULTS / "best_responses.csv"
SETTINGS = settings(__file__)
FIRST = 4 * 10**9
"""First seed of the games that rule players are chosen in; those they are valued in follow."""


class Worth(NamedTuple):
    """A table's best response, and the payoff of the best rule player of its theory.

    That player is chosen in other games than those that it is valued in.
    """

    game: str
    parameters: str
    opponents: str
    value: float
    upper: float
    exact: bool
    how: str
    rule: str
    payoff: float
    error: float
    cpu_seconds: float
    day: str
    package: str


def worth(about: Mapping[str, Any]) -> Worth:
    game, opponents = rulebook(about["game"], **about["params"]), about["opponents"]
    began = time.process_time()
    reply = best_response(game, 0, opponents)
    spent = time.process_time() - began
    others, games = [opponents] * (game.players - 1), SETTINGS["games"]

    def payoffs_of(name: str, first: int) -> Any:
        seeds = range(first, first + games)
        return play_rules(game, [name, *others], seeds).payoffs[0]

    rule = max(replies(game), key=lambda name: float(payoffs_of(name, FIRST).mean()))
    payoffs = payoffs_of(rule, FIRST + games)
    parameters = " ".join(f"{name}={value}" for name, value in about["params"].items())
    return Worth(
        game.name,
        parameters,
        opponents,
        *(reply.value, reply.upper, reply.exact, reply.how),
        *(rule, float(payoffs.mean()), float(payoffs.std() / np.sqrt(games))),
        *(round(spent, 1), today(), __version__),
    )


def page() -> str:
    lines = []
    for row in read(Worth, FILE):
        value = f"{row.value:.5g}" if row.exact else f"{row.value:.5g} to {row.upper:.5g}"
        others = row.opponents.replace("|", "\\|")
        cells = [f"{row.game}, {row.parameters}", f"`{others}`", value]
        cells += [f"`{row.rule}`, {row.payoff:.5g}", f"{row.payoff / row.value:.1%}"]
        lines.append([*cells, f"{row.cpu_seconds:g}"])
    heads = "game", "all others", "best response", "best rule player", "its share", "CPU s"
    return markdown(heads, lines)


def main() -> None:
    for about in SETTINGS["tables"]:
        parameters = " ".join(f"{name}={value}" for name, value in about["params"].items())
        key = about["game"], parameters, about["opponents"]
        rows = read(Worth, FILE)
        if key not in {row[:3] for row in rows}:
            write([*rows, worth(about)], FILE)


if __name__ == "__main__":
    main()
