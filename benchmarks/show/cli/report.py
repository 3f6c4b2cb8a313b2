"""``llm-games report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit, Option

from llm_games.benchmarks.show.cli import common
from llm_games.benchmarks.show.cli.common import Scoring, value


def report(
    db: Annotated[list[Path], Argument(metavar="FILE", help="the .db files of runs")],
    out: Annotated[Path, value("DIR", "folder, or HTML file", "--out", "-o")] = Path("report.html"),
    comparing: Annotated[
        bool, Option("--compare", help="compare runs with the first, episode by episode")
    ] = False,
    scoring: Scoring = None,
    baselines: common.Baselines = True,
    only: Annotated[
        list[str] | None, value("LABEL", "a game of the runs, again for more; else all", "--only")
    ] = None,
    conversations: Annotated[
        int, value("N", "decisions of each player shown in full", "--conversations", min=0)
    ] = 0,
    open_it: common.OpenIt = False,
) -> None:
    """Write one HTML page with scores, plots and replies of one run or several.

    Beside it: its figures as SVG and PNG, and its numbers as CSV.
    """
    options: dict[str, Any] = {"scoring": scoring, "comparing": comparing, "baselines": baselines}
    options |= {"only": only or (), "conversations": conversations}
    raise Exit(common.write_report(db, out, open_it, **options)[1])
