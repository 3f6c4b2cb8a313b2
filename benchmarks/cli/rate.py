"""Ratings by people, of runs whose paper has a form for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def rate(
    db: Annotated[Path, typer.Argument(metavar="FILE", help="the .db file of a run")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="folder of the forms and stories")
    ],
    judge: Annotated[
        list[str], typer.Option(metavar="NAME", help="who rates; repeat it for several")
    ],
    cases: Annotated[
        int, typer.Option(min=0, metavar="N", help="players' games to draw; by default all")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="of that draw")] = 1,
) -> None:
    """Write rating forms for people, or read those that are there, beside the published ratings."""
    from rich.console import Console

    from llm_games.benchmarks.runs.paper import rated
    from llm_games.benchmarks.runs.records import Records

    with Records.open_readonly(db) as records:
        Console().print(rated(records, out, judge, cases, seed))
