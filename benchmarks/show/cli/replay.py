"""``llm-games replay``."""

from __future__ import annotations

import dataclasses
import json

from typer import Exit

from llm_games.benchmarks.show.cli.common import AsJson, Database, say

SHOWN = 20
"""Differences that a replay prints; the rest is counted."""


def replay(db: Database, as_json: AsJson = False) -> None:
    """Play a recorded run again without its models and compare everything bit for bit.

    Exit code 1: something differs, and is named.
    """
    from llm_games.benchmarks.record.editions import maker
    from llm_games.benchmarks.record.store import Records
    from llm_games.benchmarks.run.replay import replay
    from llm_games.version import __version__

    with Records.open_readonly(db) as records:
        comparison, maker_version = replay(records), records.package
    if maker_version.partition("+")[0] != __version__:
        say(
            f"{db} was made by {maker(maker_version)}, this is {__version__}: wordings and rules "
            "may have changed"
        )
    if as_json:
        print(
            json.dumps({"db": str(db), "package": maker_version} | dataclasses.asdict(comparison))
        )
    else:
        print(comparison.summary())
        for difference in comparison.differences[:SHOWN]:
            print(difference)
        if len(comparison.differences) > SHOWN:
            print(f"and {len(comparison.differences) - SHOWN} more; all of them with --json")
    raise Exit(1 if comparison.differences else 0)
