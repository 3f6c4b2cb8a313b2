"""``llm-games import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option


def import_all(
    files: Annotated[list[Path], Argument(metavar="FILES", help="recordings, or folders of them")],
    db: Annotated[Path, Option("--db", metavar="FILE", help="the new file")],
) -> None:
    """Make a run of games that another program has recorded: γ-Bench's JSON files, or plain ones.

    Moves are as recorded; words beside them are kept as notes (γ-Bench's are left out). All
    commands for runs take the new file; a player of it takes a seat as a ghost: llm-games ghost fit
    FILE.
    """
    from llm_games.benchmarks.papers.gamma_bench import recordings as gamma_bench
    from llm_games.benchmarks.run import plain_recordings
    from llm_games.benchmarks.run.imports import read_json, write_run
    from llm_games.wrappers.imported import BadRecording

    paths = [
        path
        for file in files
        for path in (sorted(file.rglob("*.json")) if file.is_dir() else [file])
    ]
    if not paths:
        raise BadRecording(f"{', '.join(map(str, files))}: there is no .json file")
    contents = [read_json(path) for path in paths]
    foreign = [gamma_bench.is_one(data) for data in contents]
    recordings = [
        (gamma_bench if is_one else plain_recordings).read(path, data)
        for is_one, path, data in zip(foreign, paths, contents, strict=True)
    ]
    extent = "actions as recorded, words not" if any(foreign) else "actions as recorded"
    title = f"Imported{' from γ-Bench' * all(foreign)}: {extent}"
    count = write_run(recordings, db, title)
    print(f"{db}: {count} episodes; next: llm-games report {db}")
