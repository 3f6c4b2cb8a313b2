"""``llm-games forget``."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from llm_games.benchmarks.show.cli.common import Database


def forget(
    db: Database,
    pseudonym: Annotated[str, Argument(metavar="PSEUDONYM", help="as the person gave it")],
) -> None:
    """Replace a person's pseudonym in a run by the word forgotten.

    What the person did stays, and says no longer who did it. Exports never name people.
    """
    from llm_games.benchmarks.record.schema import FORGOTTEN
    from llm_games.benchmarks.record.store import Store
    from llm_games.errors import BadParameter

    with Store.open(db) as store:
        names = {row.pseudonym for row in store.guests()} - {"", FORGOTTEN}
        if pseudonym not in names:
            others = f"those are {', '.join(sorted(names))}" if names else "it has none"
            raise BadParameter(f"{db} has no pseudonym {pseudonym!r}; {others}")
        store.forget(pseudonym)
    print(f"{db}: {pseudonym} is forgotten")
