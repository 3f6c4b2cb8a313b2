"""What the best response is worth at some tables, and how far rule players are from it.

``python -m llm_games.benchmarks.learning.best_responses`` works out what ``best_responses.toml``
names, row by row to ``best_responses.csv``, and writes the table in docs/skill.md.
"""

from __future__ import annotations

import csv
import time
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from llm_games.baselines.best_response import best_response
from llm_games.baselines.deviation import replies
from llm_games.baselines.skill import play_rules
from llm_games.files import write_whole
from llm_games.registry import rulebook
from llm_games.version import __version__

FILE = Path(__file__).with_suffix(".csv")
SETTINGS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
FIRST = 4 * 10**9
"""First seed of the games that rule players are chosen in; those they are valued in follow."""
DOCS = Path(__file__).resolve().parents[2] / "docs" / "skill.md"
MARKS = (
    "<!-- best: written by python -m llm_games.benchmarks.learning.best_responses -->",
    "<!-- end -->",
)


class Worth(NamedTuple):
    """A table's best response, and what the best of the rule players that theory names gets.

    That one is chosen in other games than those that it is valued in.
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


def found(file: Path = FILE) -> list[Worth]:
    """Return what is in the file."""
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        rows = list(csv.reader(lines))[1:]
    kinds = [{bool: "True".__eq__}.get(kind, kind) for kind in get_type_hints(Worth).values()]
    return [Worth(*(kind(v) for kind, v in zip(kinds, row, strict=True))) for row in rows]


def worth(table: Mapping[str, Any]) -> Worth:
    """Work one table out."""
    game, opponents = rulebook(table["game"], **table["params"]), table["opponents"]
    began = time.process_time()
    reply = best_response(game, 0, opponents)
    spent = time.process_time() - began
    others, many = [opponents] * (game.players - 1), SETTINGS["games"]

    def paid(name: str, first: int) -> Any:
        seeds = range(first, first + many)
        return play_rules(game, [name, *others], seeds).payoffs[0]

    rule = max(replies(game), key=lambda name: float(paid(name, FIRST).mean()))
    payoffs = paid(rule, FIRST + many)
    said = " ".join(f"{name}={value}" for name, value in table["params"].items())
    return Worth(
        game.name,
        said,
        opponents,
        *(reply.value, reply.upper, reply.exact, reply.how),
        *(rule, float(payoffs.mean()), float(payoffs.std() / np.sqrt(many))),
        *(round(spent, 1), datetime.now(UTC).strftime("%Y-%m-%d"), __version__),
    )


def write(rows: list[Worth], file: Path = FILE) -> None:
    """Write the file anew."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows([Worth._fields, *rows])
    write_whole(file, text.getvalue().encode())


def shown(rows: list[Worth]) -> str:
    """Return the table of the docs."""
    said = ["| game | all others | best response | best rule player | its share | CPU s |"]
    said.append("|" + "---|" * 6)
    for row in rows:
        value = f"{row.value:.5g}" if row.exact else f"{row.value:.5g} to {row.upper:.5g}"
        others = row.opponents.replace("|", "\\|")
        cells = [f"{row.game}, {row.parameters}", f"`{others}`", value]
        cells += [f"`{row.rule}`, {row.payoff:.5g}", f"{row.payoff / row.value:.1%}"]
        said.append(f"| {' | '.join([*cells, f'{row.cpu_seconds:g}'])} |")
    return "\n".join(said)


def main() -> None:
    """Work out what is missing, and write the table."""
    for table in SETTINGS["tables"]:
        said = " ".join(f"{name}={value}" for name, value in table["params"].items())
        key = table["game"], said, table["opponents"]
        if key not in {row[:3] for row in found()}:
            write([*found(), worth(table)])
    text = DOCS.read_text("utf-8")
    before, rest = text.split(MARKS[0], 1)
    after = rest.split(MARKS[1], 1)[1]
    DOCS.write_text(f"{before}{MARKS[0]}\n\n{shown(found())}\n\n{MARKS[1]}{after}", "utf-8")


if __name__ == "__main__":
    main()
