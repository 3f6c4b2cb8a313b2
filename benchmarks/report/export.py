"""The figures and numbers of a report as files, to be used elsewhere."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from llm_games.benchmarks.report.data import Run
from llm_games.benchmarks.report.figures import ACTIONS, seats_mean
from llm_games.benchmarks.scores import EDITIONS, score_episode


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
    made = (("scores", _scores), ("rounds", _rounds), ("players", _players))
    return [
        files.add("tables", name, ("csv", _csv(row for run in runs for row in rows(run))))[0]
        for name, rows in made
    ]


def _csv(rows: Iterable[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(out, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
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
                    edition: score_episode(table.rules, e.records, edition) if done else None
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
                seats = [seat for seat, sitting in enumerate(table.seats) if sitting == name]
                for number, mean in enumerate(seats_mean(table, e, seats), start=1):
                    yield {
                        "run": run.path.stem,
                        "label": table.label,
                        "episode": e.number,
                        "round": number,
                        "player": name,
                        "what": ACTIONS[table.rules.name],
                        "value": None if np.isnan(mean) else mean,
                    }


def _players(run: Run) -> Iterator[dict[str, Any]]:
    """Yield a row for each player: its decisions and replies."""
    for player in run.players.values():
        outcomes = ("valid", "unparsable", "out_of_range", "refused", "truncated", "failed")
        asked = bool(player.latencies)
        yield {
            "run": run.path.stem,
            "player": player.name,
            "kind": player.kind,
            "model": player.model,
            "decisions": player.decisions,
            "filled_in": player.filled,
            "calls": len(player.latencies),
            **{outcome: player.outcomes[outcome] for outcome in outcomes},
            "tokens_in": player.tokens_in,
            "tokens_out": player.tokens_out,
            "cost": player.cost if run.priced else None,
            "latency_median": np.median(player.latencies) if asked else None,
            "latency_total": sum(player.latencies),
        }
