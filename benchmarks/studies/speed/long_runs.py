"""Long runs: ``python -m llm_games.benchmarks.studies.speed.long_runs [DECISIONS]``.

The cost of one more decision must not grow with the decisions before, nor memory with the number
of episodes that are read. Each figure is of a process of its own: CPU time, the peak of resident
memory (Linux), and the ratio of both to those of a tenth of the decisions. A scripted model plays
public goods of four with full memory; pages and comparisons are of rule players.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llm_games.baselines.players import PLAYERS, Kind, llm_player
from llm_games.benchmarks.judge.compare import compare
from llm_games.benchmarks.judge.results import run_results
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.run.conduct import play_run, start
from llm_games.benchmarks.run.config import parse
from llm_games.benchmarks.run.plan import players, resolve
from llm_games.benchmarks.run.replay import replay
from llm_games.benchmarks.show.export.table_files import export
from llm_games.wrappers.clients.scripted import ScriptedClient

PLAYERS_AT = 4
ROUNDS = 20


def play(path: Path, decisions: int, seat: str, rounds: int = ROUNDS) -> None:
    params = {"players": PLAYERS_AT, "rounds": rounds}
    raw = {"games": [{"game": "public_goods", "params": params}], "seats": [seat]}
    raw |= {"episodes": decisions // PLAYERS_AT // rounds}
    plan = resolve(parse(raw, "long"), "long")
    play_run(lambda: start(plan, path), plan, players(plan))


def dialogue(folder: Path, decisions: int) -> None:
    play(folder / "dialogue.db", decisions, "at_length:m", decisions // PLAYERS_AT)


def model(folder: Path, decisions: int) -> None:
    play(folder / "model.db", decisions, "at_length:m")


def rules(folder: Path, decisions: int) -> None:
    play(folder / "random.db", decisions, "random")
    play(folder / "rational.db", decisions, "rational")


def replayed(folder: Path, name: str) -> None:
    """Replay a run and check that nothing differs."""
    with Records.open_readonly(folder / name) as records:
        done = replay(records)
    if done.differences:
        raise AssertionError(done.differences[0])


def read(folder: Path) -> None:
    with Records.open_readonly(folder / "random.db") as records:
        run_results(records)
        export(records, folder / "tables")


def page(folder: Path) -> None:
    from llm_games.benchmarks.show.page import build

    build([folder / "random.db"], folder / "page")


WAYS: dict[str, Callable[[Path, int], object]] = {
    "play one long dialogue": dialogue,
    "replay it": lambda folder, _: replayed(folder, "dialogue.db"),
    "play a model": model,
    "replay it, episodes": lambda folder, _: replayed(folder, "model.db"),
    "play rule players, twice": rules,
    "summary and export": lambda folder, _: read(folder),
    "report": lambda folder, _: page(folder),
    "compare": lambda folder, _: compare(folder / "random.db", folder / "rational.db"),
}


def measure(way: str, folder: Path, decisions: int) -> tuple[float, float]:
    """Return CPU seconds and peak MiB of one way in a process of its own."""
    arguments = [sys.executable, "-m", __spec__.name, way, str(folder), str(decisions)]
    seconds, peak = json.loads(subprocess.run(arguments, check=True, stdout=subprocess.PIPE).stdout)
    return seconds, peak


def here(way: str, folder: Path, decisions: int) -> None:
    def answers(_: str, client: Any, settings: Any) -> Any:
        text = '{"tokens_contributed": %d}'
        return llm_player(ScriptedClient(lambda request: text % (request.seed % 21)), settings)

    PLAYERS["at_length"] = Kind("answers from its seed", value="<model>", model=answers)
    began = time.process_time()
    WAYS[way](folder, decisions)
    used = time.process_time() - began
    print(json.dumps([used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def main(decisions: int) -> None:
    few = decisions // 10
    with tempfile.TemporaryDirectory() as short, tempfile.TemporaryDirectory() as long:
        for way in WAYS:
            (low_s, low), (high_s, high) = (
                measure(way, Path(folder), size)
                for folder, size in ((short, few), (long, decisions))
            )
            print(
                f"{way}: {1000 * high_s / decisions:.3f} ms a decision, {high_s / low_s / 10:.2f} "
                f"times that of {few:,}; {high:.0f} MiB, {high - low:+.0f}"
            )


if __name__ == "__main__":
    if len(sys.argv) > 2:
        here(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
