"""The figures and numbers of a report as files, to be used elsewhere."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, get_args

import numpy as np

from llm_games.benchmarks.judge import results
from llm_games.benchmarks.judge.paper import action, editions
from llm_games.benchmarks.judge.result_table import PUBLISHED, ResultTable, as_csv
from llm_games.benchmarks.judge.results import score_by, series
from llm_games.benchmarks.record.recorded_games import Run
from llm_games.benchmarks.show.page.figures import seats_mean
from llm_games.benchmarks.show.page.parts import Parts
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


Row = dict[str, Any]
OUTCOMES = get_args(ReplyOutcome)
TOKENS = "tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning", "tokens_written"


def tables(
    runs: Sequence[Run], grids: Iterable[tuple[Run, ResultTable]], files: Files, page: Parts
) -> list[str]:
    """Add numbers and papers' tables as CSV, published rows once; tables of a name share a file."""

    def listed(of: Callable[[Run], Iterator[Row]]) -> bytes:
        return as_csv({"run": run.stem} | row for run in runs for row in of(run))

    kinds = (("scores", _scores), ("rounds", _rounds), ("players", _players), ("calls", _calls))
    rows: dict[str, list[Row]] = {}
    for run, grid in grids:
        grid_rows = rows.setdefault(grid.name, [])
        for row in grid.dicts():
            line: Row = {"run": "" if row.get("source") == PUBLISHED else run.stem} | row
            if line["run"] or line not in grid_rows:
                grid_rows.append(line)
    written = {
        name: page.part(f"tables/{name}.csv", partial(listed, of), lambda why: b"")
        for name, of in kinds
    }
    for name, lines in rows.items():
        written[name] = as_csv(lines, dict.fromkeys(key for row in lines for key in row))
    texts = ((name, text) for name, text in written.items() if text)
    return [files.add("tables", name, ("csv", text))[0] for name, text in texts]


def _scores(run: Run) -> Iterator[Row]:
    """A row for each episode: its score by each edition, payoffs, replies and time."""
    shown = [stat for stat in results.STATISTICS if "csv" in stat.shown]
    names = [*editions(), *(statistic.title.replace(" ", "_") for statistic in shown)]
    for game in run.games:
        lines = (series(game, statistic) for statistic in (*map(score_by, editions()), *shown))
        columns = zip(*(line.numbers for line in lines), strict=True)
        for e in game.episodes:
            numbers = next(columns) if e.row.status == "done" else [math.nan] * len(names)
            cells = (None if math.isnan(number) else number for number in numbers)
            row = {"label": game.label, "game": game.name, "episode": e.row.number}
            row |= {"status": e.row.status, **dict(zip(names, cells, strict=True))}
            did = game.tallies[e.row.id]
            row |= {"decisions": did.decisions, "filled_in": did.filled, "calls": did.calls}
            row |= {"tokens_in": did.tokens_in, "tokens_out": did.tokens_out}
            yield row | {"seconds": e.seconds}


def _rounds(run: Run) -> Iterator[Row]:
    for game in run.games:
        for e in game.played if action(game.name) else ():
            for name in game.players:
                row = {"label": game.label, "episode": e.row.number, "round": 0}
                row |= {"player": name, "what": action(game.name)}
                for number, mean in enumerate(seats_mean(e, e.of(name)), start=1):
                    yield row | {"round": number, "value": None if math.isnan(mean) else mean}


def _calls(run: Run) -> Iterator[Row]:
    for player in run.players.values():
        for kind, outcomes in {"move": player.did.moves, **player.did.others}.items():
            if calls := outcomes.total():
                row = {"player": player.name, "for": kind, "calls": calls}
                yield row | {outcome: outcomes[outcome] for outcome in OUTCOMES}


def _players(run: Run) -> Iterator[Row]:
    for player in run.players.values():
        did, spent = player.did, run.spent.players.get(player.name)
        row: Row = {"player": player.name, "kind": player.kind, "model": did.model}
        row |= {"decisions": did.decisions, "filled_in": did.filled, "calls": did.moves.total()}
        row |= {outcome: did.moves[outcome] for outcome in OUTCOMES}
        row |= {name: getattr(spent or did, name, 0) for name in TOKENS}
        row["cost"] = spent.money if spent and run.priced else None
        row["latency_median"] = np.median(did.latencies) if did.calls else None
        yield row | {"latency_total": sum(did.latencies)}
