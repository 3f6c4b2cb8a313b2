"""``llm-games import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option


def import_all(
    files: Annotated[list[Path], Argument(metavar="FILES", help="recordings, or folders of them")],
    db: Annotated[Path, Option("--db", metavar="FILE", help="the new file")],
) -> None:
    """Make a run of games that another program has recorded: γ-Bench's JSON files.

    Moves are as recorded, words are left out. All commands for runs take the new file; a player of
    it takes a seat as a ghost: llm-games ghost fit FILE.
    """
    from llm_games.benchmarks.papers.gamma_bench.recordings import read
    from llm_games.benchmarks.run.imports import write_run
    from llm_games.wrappers.imported import BadRecording

    paths = [
        path
        for file in files
        for path in (sorted(file.rglob("*.json")) if file.is_dir() else [file])
    ]
    if not paths:
        raise BadRecording(f"{', '.join(map(str, files))}: there is no .json file")
    title = "Imported from γ-Bench: actions as recorded, words not"
    count = write_run([read(path) for path in paths], db, title)
    print(f"{db}: {count} episodes; next: llm-games report {db}")
