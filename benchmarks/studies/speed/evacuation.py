"""Time of a round of the evacuation: ``python -m llm_games.benchmarks.studies.speed.evacuation``.

A round has all of it: who chooses, their choice of the nearest side, the built-in walker's steps,
leaving, injuries, and what everybody sees, as numbers. Printed are medians of CPU milliseconds a
round and room, of one room and of 64 played together.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from llm_games.registry import rulebook

PEOPLE, ROOMS, ROUNDS, RUNS = (100, 400, 1000), (1, 64), 20, 5
WIDE = "\n".join(  # a hall for 1,000 people, with the exits of the usual one
    ["#" * 41, *["#" + "." * 39 + "#"] * 39, "#" * 19 + "024" + "#" * 19]
)
ROWS = WIDE.split("\n")
for row, sign in zip((19, 20, 21), "135", strict=True):
    ROWS[row] = sign + ROWS[row][1:]
ROWS[21] = ROWS[21][:-1] + "6"
WIDE = "\n".join(ROWS)


def milliseconds(people: int, rooms: int, walker: str = "greedy") -> float:
    """Return the CPU time of a round, a room, from the first on; the median of some runs."""
    layout = "hall" if people <= 961 else WIDE
    game: Any = rulebook("emergency_evacuation", players=people, walker=walker, layout=layout)
    batch = () if rooms == 1 else (rooms,)
    times = []
    for run in range(RUNS + 1):  # the first fills what is tabulated
        state, rounds = game.reset(run, batch), 0
        begun = time.process_time()
        for _ in range(ROUNDS):
            if state.over.any():
                break
            game.observe(state)
            state, _ = game.step(state, game.room.side[game.measure.nearest[state.cell]])
            rounds += 1
        times.append((time.process_time() - begun) * 1000 / rounds / rooms)
    return statistics.median(times[1:])


def main() -> None:
    print("people  rooms  ms a round and room")
    for people in PEOPLE:
        for rooms in ROOMS:
            print(f"{people:6}  {rooms:5}  {milliseconds(people, rooms):.2f}")


if __name__ == "__main__":
    main()
