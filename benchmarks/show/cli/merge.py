"""``llm-games merge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option


def merge(
    files: Annotated[list[Path], Argument(metavar="FILES", help="the .db files of its parts")],
    db: Annotated[Path, Option("--db", metavar="FILE", help="the new file")],
) -> None:
    """Put a run together that was played in parts, such as on several machines.

    Parts are played by: llm-games run FILE --part 1/2 --db 1.db
    """
    from llm_games.benchmarks.record.merge import merge
    from llm_games.benchmarks.record.progress import run_progress
    from llm_games.benchmarks.record.queries import Records

    merge(files, db)
    with Records.open_readonly(db) as records:
        progress = run_progress(records)
    message = f"{db}: {progress.ended} of {progress.episodes} episodes"
    print(message if progress.complete else f"{message}; the others: llm-games resume {db}")
