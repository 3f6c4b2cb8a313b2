"""``llm-games watch``."""

from __future__ import annotations

from llm_games.benchmarks.show.cli.common import Database, console, say


def watch(db: Database) -> None:
    """Follow a run that is going on, from another terminal; Ctrl-C leaves the run alone."""
    from llm_games.benchmarks.run.live import watch

    try:
        progress = watch(db, console())
    except KeyboardInterrupt:
        say(f"\nno longer watching; the run goes on, look again with: llm-games watch {db}")
        return
    if not progress.complete:
        say(f"{db} is not complete and nobody plays it; go on with: llm-games resume {db}")
