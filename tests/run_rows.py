"""The rows of a run's file as they are written, but for what no run determines."""

import sqlite3
from pathlib import Path
from typing import Any

from llm_games.benchmarks.record.schema import TABLES

BY_CHANCE = {
    "run": {"created"},
    "episodes": {"started", "ended"},
    "attempts": {"latency"},
    "spent": {"seconds"},
}
"""Columns of times. Locks and limits are of processes and servers."""
PROCESSES = {"lock", "limits"}


def written(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Rows by table, in the order of their keys."""
    database = sqlite3.connect(path)
    rows = {}
    for table in TABLES.values():
        if table.name not in PROCESSES:
            info = database.execute(f"PRAGMA table_info({table.name})")
            names = [column[1] for column in info]
            shown = ", ".join(n for n in names if n not in BY_CHANCE.get(table.name, ()))
            query = f"SELECT {shown} FROM {table.name} ORDER BY {table.key}"
            rows[table.name] = database.execute(query).fetchall()
    database.close()
    return rows
