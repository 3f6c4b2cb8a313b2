"""``llm-games animate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from llm_games.benchmarks.show.cli.common import Database, value


def animate(
    db: Database,
    out: Annotated[Path, value("FILE", "a .gif, .png or .webp", "--out", "-o")],
    game: Annotated[str | None, value("GAME", "a game of the run, by its label")] = None,
    episode: Annotated[int, value("N", "which of its episodes", min=0)] = 0,
    speed: Annotated[float, value("N", "pictures a second")] = 4,
) -> None:
    """Draw an episode of a run, round by round, as a moving picture."""
    from llm_games.benchmarks.record.queries import Records
    from llm_games.benchmarks.record.recorded_games import games
    from llm_games.benchmarks.show.export.animation import animate, frames
    from llm_games.errors import BadParameter, unknown

    with Records.open_readonly(db) as records:
        games_by_label = {recorded.label: recorded for recorded in games(records)}
        label = game if game is not None else next(iter(games_by_label))
        if label not in games_by_label:
            raise unknown("game of this run", label, games_by_label)
        episodes = games_by_label[label].played
        if episode >= len(episodes):
            raise BadParameter(f"{label} has {len(episodes)} episodes that were played")
        count = animate(frames(episodes[episode]), out, speed)
    print(f"{out}: {count} pictures")
