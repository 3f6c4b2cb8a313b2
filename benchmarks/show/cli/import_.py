"""``llm-games import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option


def import_all(
    files: Annotated[list[Path], Argument(metavar="FILES", help="recordings, or folders of them")],
    db: Annotated[Path, Option("--db", metavar="FILE", help="the new file")],
) -> None:
    """Make a run of games that another program has recorded: γ-Bench's and Alympics' JSON files.

    Moves are as recorded, words are left out. All commands for runs take the new file; a player of
    it takes a seat as a ghost: llm-games ghost fit FILE.
    """
    from llm_games.benchmarks.papers.alympics import drought_recordings
    from llm_games.benchmarks.papers.gamma_bench import gamma_recordings
    from llm_games.benchmarks.run.imports import read_json, write_run
    from llm_games.wrappers.imported import BadRecording

    paths = [
        path
        for file in files
        for path in (sorted(file.rglob("*.json")) if file.is_dir() else [file])
    ]
    if not paths:
        raise BadRecording(f"{', '.join(map(str, files))}: there is no .json file")
    forms = (
        drought_recordings if isinstance(read_json(p), list) else gamma_recordings for p in paths
    )
    recordings = [form.read(path) for form, path in zip(forms, paths, strict=True)]
    count = write_run(recordings, db, "Imported: actions as recorded, words not")
    print(f"{db}: {count} episodes; next: llm-games report {db}")
