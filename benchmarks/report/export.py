"""The figures and numbers of a report as files, to be used elsewhere."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

import numpy as np

from llm_games.benchmarks.papers.gamma_bench.scores import EDITIONS, score_episode
from llm_games.benchmarks.report.data import Run
from llm_games.benchmarks.report.figures import ACTIONS, seats_mean
from llm_games.benchmarks.report.paper import PUBLISHED, Grid
from llm_games.replies import ReplyOutcome


class Files:
    """Names and contents of the files that a page links to; no name is given twice."""

    def __init__(self) -> None:
        self.contents: dict[str, str | bytes] = {}

    def add(self, folder: str, name: str, *contents: tuple[str, str | bytes]) -> list[str]:
        """Keep the same thing in several formats, ``(ending, content)``; return the paths."""
        plain = re.sub(r"[^\w.=+-]+", "-", name).strip("-.") or "figure"
        stem, number = f"{folder}/{plain[:120]}", 1
        while f"{stem}.{contents[0][0]}" in self.contents:
            number += 1
            stem = f"{folder}/{plain[:120]}-{number}"
        paths = [f"{stem}.{ending}" for ending, _ in contents]
        self.contents.update(zip(paths, (content for _, content in contents), strict=True))
        return paths


def tables(runs: Sequence[Run], files: Files) -> list[str]:
    """Add all numbers of these runs as CSV files and return their paths."""
    kinds = (("scores", _scores), ("rounds", _rounds), ("players", _players), ("calls", _calls))
    made = ((name, [row for run in runs for row in rows(run)]) for name, rows in kinds)
    return [files.add("tables", name, ("csv", _csv(rows)))[0] for name, rows in made if rows]


def grids(found: Iterable[tuple[Run, Grid]], files: Files) -> list[str]:
    """Add the result tables of papers as CSV files and return their paths.

    Those of one name share a file. Published rows belong to no run and are there once.
    """
    rows: dict[str, list[dict[str, Any]]] = {}
    for run, grid in found:
        own = rows.setdefault(grid.name, [])
        for row in grid.rows:
            plain = dict(zip(grid.head, row, strict=True))
            stem = "" if plain.get("source") == PUBLISHED else run.path.stem
            line = {"run": stem} | plain
            if stem or line not in own:
                own.append(line)
    return [
        files.add("tables", name, ("csv", _csv(lines)))[0] for name, lines in rows.items() if lines
    ]


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    """Write rows; the columns are all that any of them has."""
    out = io.StringIO()
    columns = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(out, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _scores(run: Run) -> Iterator[dict[str, Any]]:
    """Yield a row for each episode: its score by each edition, payoffs, replies and time."""
    for table in run.tables:
        for e in table.episodes:
            done = e.status == "done"
            row = {"run": run.path.stem, "label": table.label, "game": table.rules.name}
            yield row | {
                "episode": e.number,
                "status": e.status,
                **{
                    edition: score_episode(e.rules, e.records, edition) if done else None
                    for edition in EDITIONS
                },
                "payoff_of_a_seat": e.rewards.sum(axis=0).mean() if done else None,
                "decisions": e.decisions,
                "filled_in": e.filled,
                "calls": e.calls,
                "tokens_in": e.tokens_in,
                "tokens_out": e.tokens_out,
                "cost": e.cost if run.priced else None,
                "seconds": e.seconds,
            }


def _rounds(run: Run) -> Iterator[dict[str, Any]]:
    """Yield a row for each round and player of the games in which a mean action means something."""
    for table in run.tables:
        if table.rules.name not in ACTIONS:
            continue
        for e in table.played:
            for name in dict.fromkeys(table.seats):
                for number, mean in enumerate(seats_mean(e, e.of(name)), start=1):
                    yield {
                        "run": run.path.stem,
                        "label": table.label,
                        "episode": e.number,
                        "round": number,
                        "player": name,
                        "what": ACTIONS[table.rules.name],
                        "value": None if np.isnan(mean) else mean,
                    }


OUTCOMES = get_args(ReplyOutcome)


def _calls(run: Run) -> Iterator[dict[str, Any]]:
    """Yield a row for each player and kind of its calls: how the replies were read."""
    for player in run.players.values():
        for kind, outcomes in {"move": player.outcomes, **player.others}.items():
            if calls := outcomes.total():
                row = {"run": run.path.stem, "player": player.name, "for": kind, "calls": calls}
                yield row | {outcome: outcomes[outcome] for outcome in OUTCOMES}


def _players(run: Run) -> Iterator[dict[str, Any]]:
    """Yield a row for each player: its decisions, and the replies that were to be moves."""
    for player in run.players.values():
        asked = bool(player.latencies)
        yield {
            "run": run.path.stem,
            "player": player.name,
            "kind": player.kind,
            "model": player.model,
            "decisions": player.decisions,
            "filled_in": player.filled,
            "calls": player.outcomes.total(),
            **{outcome: player.outcomes[outcome] for outcome in OUTCOMES},
            "tokens_in": player.tokens_in,
            "tokens_out": player.tokens_out,
            "cost": player.cost if run.priced else None,
            "latency_median": np.median(player.latencies) if asked else None,
            "latency_total": sum(player.latencies),
        }
