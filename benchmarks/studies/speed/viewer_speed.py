"""The viewer on long runs.

``python -m llm_games.benchmarks.studies.speed.viewer_speed [DECISIONS] [FOLDER]``

A run of all games of rounds with ten seats and ten rounds is written as runs write them, each
decision with a reply of 500 characters; into FOLDER, where it is kept and used again. Printed is,
of a process of its own without and with what the viewer keeps: the time until the first page of the
list, until all is read and until all text is indexed, and the slowest of some filters, each with
its facets. `BARS` are what a hundred thousand decisions must keep.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from llm_games.benchmarks.record import schema
from llm_games.benchmarks.record.store import Store
from llm_games.benchmarks.show.view.filter import Filter
from llm_games.benchmarks.show.view.run_shelf import RunFile
from llm_games.errors import LLMGamesError
from llm_games.game_rooms import ROOMS
from llm_games.registry import rulebook
from llm_games.rounds import Rounds
from llm_games.rulebook import Rulebook

SEATS = ROUNDS = 10
LETTERS = 500
OUTCOMES = {"valid": 0.9, "out_of_range": 0.06, "unparsable": 0.04}
BARS = {"open": 1.0, "filter": 0.3}
FILTERS: dict[str, Sequence[tuple[str, str]]] = {
    "all": (),
    "regret down": [("sort", "-regret")],
    "one seat of one game": [("game", "{game}"), ("seat", "3")],
    "regret at least 1": [("regret_min", "1"), ("sort", "-regret")],
    "a round, by payoff": [("round", "4"), ("sort", "payoff")],
    "refused, by tokens": [("outcome", "out_of_range"), ("sort", "-tokens")],
    "far page": [("page", "{page}")],
    "a word": [("text", "word42")],
    "a word and a game": [("text", "word7"), ("game", "{game}"), ("sort", "-regret")],
    "a phrase": [("text", '"word7 word8"')],
    "a part of a word, in the file": [("text", "€")],
}


def games() -> list[Rulebook]:
    """Return the games of rounds that ten can play for ten rounds."""
    games_of_rounds: list[Rulebook] = []
    for name in ROOMS:
        try:
            rules = rulebook(name, players=SEATS, rounds=ROUNDS)
        except LLMGamesError:
            continue
        games_of_rounds += [rules] if isinstance(rules, Rounds) else []
    return games_of_rounds


def write(path: Path, decisions: int) -> None:
    played = games()
    each = decisions // len(played) // SEATS // ROUNDS
    names = [f"player {seat % 4}" for seat in range(SEATS)]
    listed = [(rules.name, rules.name, {"players": SEATS, "rounds": ROUNDS}, names)
              for rules in played]  # fmt: skip
    config = {"games": [], "seed": 1}
    seeds = [range(each)] * len(played)
    vocabulary = np.array([f"word{i}" for i in range(5000)])
    rng = np.random.default_rng(1)
    with Store.create(path, "Speed of the viewer", config, listed, seeds) as store:
        prompt, first = store.prompt([{"role": "user", "content": "Play."}]), 1
        for rules in played:
            for low in range(0, each, 100):
                count = min(100, each - low)
                _play(
                    store, rules, first + low, count, prompt=prompt, rng=rng, vocabulary=vocabulary
                )
                store.flush()
            first += each


def _play(
    store: Store, rules: Rulebook, first: int, count: int, prompt: int, rng: Any, vocabulary: Any
) -> None:
    state = rules.reset(first, (count,))
    for step in range(ROUNDS):
        low, high = rules.legal(state)
        actions = rng.integers(low, np.minimum(high, 10**6) + 1)
        state, outcome = rules.step(state, actions)
        words = rng.choice(vocabulary, (count, SEATS, LETTERS // 8))
        outcomes = rng.choice([*OUTCOMES], (count, SEATS), p=[*OUTCOMES.values()])
        for table in range(count):
            record = {
                name: np.asarray(value)[..., table].tolist()
                for name, value in outcome.record.items()
                if np.shape(value)[-1:] == (count,)
            }
            payoffs = outcome.rewards[:, table].tolist()
            seats = list(range(SEATS))
            store.add(schema.StepRow(step, seats, record, payoffs, []), first + table)
            for seat in seats:
                read = str(outcomes[table, seat])
                text = " ".join(words[table, seat].tolist())
                decision = actions[seat, table].item(), read, read != "valid", payoffs[seat]
                about = ("stop", "", read, "", 100, 50, 0.5, 1, "speed")
                store.add(schema.DecisionRow(step, seat, *decision), first + table)
                store.add(schema.AttemptRow(step, seat, 0, prompt, text, *about), first + table)
    for table in range(count):
        store.begin(first + table)
        store.end(first + table)


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Return the work's time by the clock, and of this thread's CPU, in seconds."""
    began, cpu = time.perf_counter(), time.thread_time()
    work()
    return time.perf_counter() - began, time.thread_time() - cpu


def measure(path: Path, folder: Path) -> None:
    """Open a run as the viewer does, read all of it, ask for pages, and print the times."""
    began, cpu = time.perf_counter(), time.process_time()

    def since() -> str:
        return f"{time.perf_counter() - began:.2f} s, {time.process_time() - cpu:.2f} s of CPU"

    run = RunFile(path, folder)
    page = run.select(Filter())
    print(f"  open: {since()}; then {page.total:,} decisions are listed")
    while not run.decisions.complete:
        run.follow()
        time.sleep(0.02)
    print(f"  all {len(run.decisions):,} with their regret: {since()}")
    ask(run, "while the text is being indexed")
    search = run.decisions.search
    while search is not None and not (search.ready or search.broken):
        run.follow()
        time.sleep(0.05)
    print(f"  text indexed: {since()}")
    ask(run, "with the index")
    run.stop()
    kept_bytes = sum(file.stat().st_size for file in folder.iterdir())
    print(
        f"  kept: {kept_bytes / 2**20:.0f} MiB, the run has {path.stat().st_size / 2**20:.0f} MiB"
    )


def ask(run: RunFile, when: str) -> None:
    """Print the time of each filter's page, at the first and the second request."""
    page = run.select(Filter())
    placeholders = {"game": page.rows[0].game, "page": str(page.pages // 2 + 1)}
    print(f"  {when}, in ms by the clock, of CPU (and again):")
    for name, pairs in FILTERS.items():
        wanted = Filter.of([(key, value.format(**placeholders)) for key, value in pairs])
        asked = partial(run.decisions.select, wanted)
        times = [1000 * value for _ in range(2) for value in timed(asked)]
        first, again = ("{:.0f}, {:.0f}".format(*times[index : index + 2]) for index in (0, 2))
        print(f"    {name}: {first} ({again}); {asked().count:,} fit", flush=True)


def main(decisions: int, folder: Path) -> None:
    path = folder / f"viewer-{decisions}.db"
    if not path.exists():
        print(f"written in {timed(lambda: write(path, decisions))[0]:.0f} s")
    print(f"bars at 100,000: {BARS}")
    with tempfile.TemporaryDirectory() as cache:
        for when in ("the first time", "with what is kept"):
            print(f"{decisions:,} decisions, {when}", flush=True)
            command = [sys.executable, "-m", __spec__.name, "measure", str(path), cache]
            subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        decisions = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
        if len(sys.argv) > 2:
            main(decisions, Path(sys.argv[2]))
        else:
            with tempfile.TemporaryDirectory() as temporary:
                main(decisions, Path(temporary))
