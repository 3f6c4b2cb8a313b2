"""``llm-games animate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from llm_games.benchmarks.show.cli.common import Database, by_label, value


def animate(
    db: Database,
    out: Annotated[Path, value("FILE", "a .gif, .png or .webp", "--out", "-o")],
    game: Annotated[str | None, value("GAME", "a game of the run, by its label")] = None,
    episode: Annotated[int, value("N", "which of its episodes", min=0)] = 0,
    speed: Annotated[float, value("N", "pictures a second")] = 4,
) -> None:
    """Draw an episode of a run, round by round, as a moving picture."""
    from llm_games.benchmarks.record.queries import Records
    from llm_games.benchmarks.show.export.animation import animate, frames
    from llm_games.errors import BadParameter

    with Records.open_readonly(db) as records:
        label, recorded = next(iter(by_label(records, () if game is None else [game]).items()))
        episodes = recorded.played
        if episode >= len(episodes):
            raise BadParameter(f"{label} has {len(episodes)} episodes that were played")
        count = animate(frames(episodes[episode]), out, speed)
    print(f"{out}: {count} pictures")
