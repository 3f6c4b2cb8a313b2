"""``llm-games cache list`` and ``prune``: files of kept replies."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from llm_games.benchmarks.show.cli.common import AsJson, Commands, console, value
from llm_games.errors import BadParameter

ReplyFile = Annotated[Path, typer.Argument(metavar="FILE", help="a file of replies")]

app = typer.Typer(cls=Commands, no_args_is_help=True)


@app.command("list")
def list_replies(file: ReplyFile, as_json: AsJson = False) -> None:
    """List the models whose replies a file keeps."""
    with closing(_replies(file)) as cache:
        rows = cache.contents()
    if as_json:
        print(json.dumps([row._asdict() for row in rows]))
        return
    from llm_games.benchmarks.show.tables import replies_table

    console().print(replies_table(rows))


@app.command()
def prune(
    file: ReplyFile,
    older_than: Annotated[float, value("DAYS", "only replies that are older; 0: all")] = 0.0,
) -> None:
    """Drop replies from a file, by default all."""
    if not 0 <= older_than < float("inf"):
        raise BadParameter(f"--older-than must be a number of days from 0, not {older_than}")
    with closing(_replies(file)) as cache:
        print(f"{cache.prune(older_than=older_than * 86_400)} replies dropped from {file}")


def _replies(file: Path) -> Any:
    from llm_games.wrappers.clients.cache import CacheError, ReplyCache

    if not file.exists():
        raise CacheError(f"there is no file {file}; one is made by: llm-games run … --cache {file}")
    return ReplyCache(file)
