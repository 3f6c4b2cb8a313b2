"""Cross-play of about ten players in each game of ``crosses/``.

``python -m llm_games.benchmarks.studies.cross_tables [NAME ...]`` plays ``crosses/NAME.toml`` (all
of them by default) and writes ``crosses/NAME.json``. What models answer is kept beside them, so
that it goes on where it was stopped.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llm_games as lg
from llm_games.benchmarks.papers.cross_play.page import cross_of
from llm_games.benchmarks.papers.cross_play.solved import Crossed
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import games
from llm_games.benchmarks.run.config import load
from llm_games.benchmarks.studies.dated import markdown, today
from llm_games.files import write_whole

FOLDER = Path(__file__).with_name("crosses")
LEAST = 0.005  # share from which a player is named in a mixture


def play(name: str) -> None:
    began, file = time.process_time(), FOLDER / f"{name}.db"
    resumed, raw = file.exists(), load(str(FOLDER / f"{name}.toml"))
    lg.resume(file) if resumed else lg.run(raw, file)
    with Records.open_readonly(file) as records:
        crossed = plain(Crossed(cross_of(games(records))))
        seed = records.config["seed"]
    result = {
        "title": raw["title"],
        "game": raw["game"],
        "params": raw["params"],
        "seed": seed,
        "day": today(),
        "versions": {package: version(package) for package in ("llm-games", "numpy", "scipy")},
        **crossed,
        "cpu_seconds": None if resumed else round(time.process_time() - began, 1),
    }
    write_whole(
        FOLDER / f"{name}.json", (json.dumps(result, indent=1, default=float) + "\n").encode()
    )


def plain(crossed: Crossed) -> dict[str, Any]:
    cross, grids = crossed.cross, {grid.name: grid for grid in crossed.solved()}
    ranked, ends = grids.get("ranked"), crossed.correlated if "correlated" in grids else ()
    return {
        "players": list(cross.names),
        "seats": cross.seats,
        "lineups": cross.which,
        "episodes": cross.episodes,
        "void": cross.void,
        "standings": list(crossed.standings().dicts()),
        "matrix": crossed.meta.matrix().tolist(),
        "payoffs": list(crossed.lineup_grid().dicts()),
        "equilibria": [
            {"set": each.set + 1, "mixture": dict(zip(cross.names, each.mixture, strict=True))}
            | {"payoff": each.payoff, "regret": each.regret}
            for each in crossed.equilibria
        ],
        "long_run": ranked and list(ranked.dicts()),
        "correlated": dict(zip(("most", "least"), (c.payoff for c in ends), strict=False)) or None,
    }


def results() -> dict[str, dict[str, Any]]:
    return {
        file.stem: json.loads(file.read_text("utf-8")) for file in sorted(FOLDER.glob("*.json"))
    }


def tables(cross: Mapping[str, Any]) -> str:
    params = ", ".join(f"`{name} = {value}`" for name, value in cross["params"].items())
    spent = cross["cpu_seconds"]
    took = "" if spent is None else f", {spent:.0f} CPU seconds"
    versions = ", ".join(f"{package} {number}" for package, number in cross["versions"].items())
    about = f"`{cross['game']}` with {params}; {cross['episodes']} episodes of each line-up, seed "
    about += f"{cross['seed']}; {cross['day']}, {versions}{took}."
    earned = "What the row's player earns where all others are the column's:"
    parts = [f"## {cross['title']}", about, _standings(cross["standings"]), earned, _matrix(cross)]
    return "\n\n".join([*parts, _equilibria(cross)])


def _standings(rows: Sequence[Mapping[str, Any]]) -> str:
    rating = next(name for name in rows[0] if name.startswith("rating above "))
    reference = rating.removeprefix("rating above ")
    heads = ["player", "payoff", rating, "in equilibrium", "loses to it", "α-rank"]
    lines = []
    for row in rows:
        above = "0" if row["player"] == reference else _ends(row, rating, 2)
        share = "–" if row["in equilibrium"] is None else f"{row['in equilibrium']:.0%}"
        cells = [f"`{row['player']}`", _ends(row, "payoff"), above, share]
        lines.append([*cells, _ends(row, "loses to it"), _ends(row, "α-rank", 2)])
    return markdown(heads, lines, " :::::")


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


def _matrix(result: Mapping[str, Any]) -> str:
    names = [f"`{name}`" for name in result["players"]]
    payoffs = [[_number(p, 0 if abs(p) >= 10 else 2) for p in row] for row in result["matrix"]]
    lines = [[name, *row] for name, row in zip(names, payoffs, strict=True)]
    return markdown(["", *names], lines, " " + ":" * len(names))


def _equilibria(result: Mapping[str, Any]) -> str:
    lines = []
    for equilibrium in result["equilibria"]:
        shares = sorted(equilibrium["mixture"].items(), key=lambda pair: -pair[1])
        words = ", ".join(f"{share:.1%} `{name}`" for name, share in shares if share >= LEAST)
        lines.append([str(equilibrium["set"]), words, _number(equilibrium["payoff"], 2)])
    table = markdown(["set", "symmetric equilibrium", "payoff"], lines, ": :")
    if (ends := result["correlated"]) is None:
        return table
    low, high = (_number(ends[which], 2) for which in ("least", "most"))
    return f"{table}\n\nCorrelated equilibria pay {low} to {high}."


def page() -> str:
    return "\n\n".join(tables(result) for result in results().values())


def main(names: Sequence[str]) -> None:
    for name in names or [file.stem for file in sorted(FOLDER.glob("*.toml"))]:
        play(name)


if __name__ == "__main__":
    main(sys.argv[1:])
