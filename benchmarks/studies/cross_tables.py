"""Cross-play of about ten players in each game of ``crosses/``: results and their tables.

``python -m llm_games.benchmarks.studies.cross_tables [NAME ...]`` plays ``crosses/NAME.toml`` (all
of them by default), writes ``crosses/NAME.json``, and the tables of all of these in
docs/crossplay.md. What models answer is kept beside them, so that it goes on where it was stopped.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from llm_games.benchmarks.runs.crossed import Crossed
from llm_games.benchmarks.runs.crossplay import crossplay
from llm_games.benchmarks.studies.dated import DOCS, fill, today
from llm_games.files import write_whole

FOLDER = Path(__file__).with_name("crosses")
PAGE = DOCS / "crossplay.md"
LEAST = 0.005  # share from which a player is named in a mixture


def play(name: str) -> None:
    """Play one cross-play and write what it came to."""
    began, file = time.process_time(), FOLDER / f"{name}.db"
    asked_before = file.exists()
    played = crossplay(FOLDER / f"{name}.toml", file)
    about = played.plan.about
    found = {
        "title": about.title,
        "game": about.game,
        "params": about.params,
        "seed": played.plan.alone.seed,
        "day": today(),
        "versions": {one: version(one) for one in ("llm-games", "numpy", "scipy")},
        **Crossed(played.cross).plain(),
        "cpu_seconds": None if asked_before else round(time.process_time() - began, 1),
    }
    write_whole(
        FOLDER / f"{name}.json", (json.dumps(found, indent=1, default=float) + "\n").encode()
    )


def results() -> dict[str, dict[str, Any]]:
    """Return what all cross-plays came to, by name."""
    return {
        file.stem: json.loads(file.read_text("utf-8")) for file in sorted(FOLDER.glob("*.json"))
    }


def tables(found: Mapping[str, Any]) -> str:
    """Return a cross-play as Markdown: standings, who earns what among whom, the meta-game."""
    given = ", ".join(f"`{name} = {value}`" for name, value in found["params"].items())
    spent = found["cpu_seconds"]
    took = "" if spent is None else f", {spent:.0f} CPU seconds"
    versions = ", ".join(f"{one} {number}" for one, number in found["versions"].items())
    lines = [
        f"### {found['title']}",
        "",
        f"`{found['game']}` with {given}; {found['episodes']} episodes of each line-up, seed "
        f"{found['seed']}; {found['day']}, {versions}{took}.",
        "",
        *_standings(found["standings"]),
        "",
        "What the row's player earns where all others are the column's:",
        "",
        *_matrix(found),
        "",
        *_equilibria(found),
    ]
    return "\n".join(lines)


def _standings(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    rating = next(name for name in rows[0] if name.startswith("rating above "))
    reference = rating.removeprefix("rating above ")
    heads = ["player", "payoff", rating, "in equilibrium", "loses to it", "α-rank"]
    lines = [_line(heads), _line(["---", *["---:"] * (len(heads) - 1)])]
    for row in rows:
        share = row["in equilibrium"]
        lines.append(
            _line(
                [
                    f"`{row['player']}`",
                    _ends(row, "payoff"),
                    "0" if row["player"] == reference else _ends(row, rating, 2),
                    "–" if share is None else f"{share:.0%}",
                    _ends(row, "loses to it"),
                    _ends(row, "α-rank", 2),
                ]
            )
        )
    return lines


def _ends(row: Mapping[str, Any], name: str, digits: int | None = None) -> str:
    """Write a mean and its interval, to as many digits as payoffs of this size need."""
    if row[name] is None:
        return "–"
    low, high = (row.get(f"{name} {end}") for end in ("low", "high"))
    digits = (2 if abs(row[name]) < 100 else 0) if digits is None else digits
    mean = _number(row[name], digits)
    if low is None or high is None:
        return mean
    return f"{mean} ({_number(low, digits)} to {_number(high, digits)})"


def _number(value: float, digits: int) -> str:
    return f"{round(value, digits) + 0.0:,.{digits}f}"


def _matrix(found: Mapping[str, Any]) -> list[str]:
    names = [f"`{name}`" for name in found["players"]]
    lines = [_line(["", *names]), _line(["---", *["---:"] * len(names)])]
    for name, row in zip(names, found["matrix"], strict=True):
        lines.append(_line([name, *(_number(paid, 0 if abs(paid) >= 10 else 2) for paid in row)]))
    return lines


def _equilibria(found: Mapping[str, Any]) -> list[str]:
    lines = [_line(["set", "symmetric equilibrium", "payoff"]), _line(["---:", "---", "---:"])]
    for one in found["equilibria"]:
        shares = sorted(one["mixture"].items(), key=lambda pair: -pair[1])
        words = ", ".join(f"{share:.1%} `{name}`" for name, share in shares if share >= LEAST)
        lines.append(_line([str(one["set"]), words, _number(one["payoff"], 2)]))
    if (ends := found["correlated"]) is None:
        return lines
    low, high = (_number(ends[which], 2) for which in ("least", "most"))
    return [*lines, "", f"Correlated equilibria pay {low} to {high}."]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def written() -> str:
    """Return the tables of all results."""
    return "\n\n".join(tables(one) for one in results().values())


def main(names: Sequence[str]) -> None:
    """Play what is named, and write the tables."""
    for name in names or [file.stem for file in sorted(FOLDER.glob("*.toml"))]:
        play(name)
        fill("crosses", written(), PAGE)


if __name__ == "__main__":
    main(sys.argv[1:])
