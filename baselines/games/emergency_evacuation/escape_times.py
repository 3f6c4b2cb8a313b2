"""Times in which rule players leave a room, beside lower bounds of the rounds.

    python -m llm_games.baselines.games.emergency_evacuation.escape_times [--episodes N]

All people are of one kind and walk greedily; nobody is hurt. A time is the round of the last
escape; `stuck` counts episodes in which somebody is inside after `ROUNDS` rounds.
"""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.batch_play import play_rules
from llm_games.baselines.games.emergency_evacuation.queues import fewest_by_flow, fewest_rounds
from llm_games.registry import rulebook
from llm_games.rulebook import Array

KINDS = ("nearest", "random_side", "distance_queue", "fifo", "cooperative", "wang:calm", "wang")
ROOMS: dict[str, dict[str, Any]] = {
    "100 people": {"players": 100},
    "264 in aisles": {"players": 264, "start": "aisles", "seats": True},
    "400 people": {"players": 400},
}
ALIKE: dict[str, Any] = {"walker": "greedy", "injury": "off"}
ROUNDS = 200


class EvacuationTime(NamedTuple):
    """Mean time of a kind of player that chooses once, or again with a chance of 1/5."""

    room: str
    player: str
    once: float
    again: float
    stuck: int


def times(kind: str, episodes: int, **parameters: Any) -> Array:
    """Return the round of the last escape in each episode, 0 where somebody is left."""
    game = rulebook("emergency_evacuation", max_rounds=ROUNDS, **ALIKE, **parameters)
    played = play_rules(game, [kind] * game.players, range(episodes))
    out = np.sum([record["escaped"] for record in played.records], axis=0)
    return np.where((out > 0).all(axis=0), out.max(axis=0), 0)


def rows(episodes: int) -> Iterator[EvacuationTime]:
    for name, about in ROOMS.items():
        game: Any = rulebook("emergency_evacuation", **ALIKE, **about)
        starts = game.reset(0, (episodes,)).cell.T
        for bound, fewest in (("matching", fewest_rounds), ("flow over time", fewest_by_flow)):
            sample = starts[:: max(len(starts) // 5, 1)] if game.players > 100 else starts
            least = float(np.mean([fewest(game.room, cells) for cells in sample]))
            yield EvacuationTime(name, f"bound: {bound}", least, least, 0)
        for kind in KINDS:
            times_by_chance = [times(kind, episodes, p_deliberate=p, **about) for p in (0, "1/5")]
            once, again = (float(t[t > 0].mean()) if t.any() else np.nan for t in times_by_chance)
            yield EvacuationTime(
                name, kind, once, again, int(sum((t == 0).sum() for t in times_by_chance))
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=20)
    print("| room | who | chooses once | again at 1/5 | stuck |\n|---|---|---|---|---|")
    for row in rows(parser.parse_args().episodes):
        print(
            f"| {row.room} | {row.player} | {row.once:.1f} | {row.again:.1f} | {row.stuck} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
