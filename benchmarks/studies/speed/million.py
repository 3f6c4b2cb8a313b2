"""A run of a million decisions by workers, killed twice; and whether all costs grow as the run.

    python -m llm_games.benchmarks.studies.speed.million [DECISIONS] [--folder DIR]
    python -m llm_games.benchmarks.studies.speed.million --sizes 10000 100000 [--folder DIR]

One seat in four is `mock`, whose prompts, replies and records are those of a model that answers at
once, so that our own CPU is the limit; the others follow rules. One worker of two is killed after a
third of the decisions, the coordinator after two thirds; three workers go on. The run is replayed,
reported, compared with itself and viewed. `--sizes` plays by one process instead, and in two parts,
which are merged and must be equal, as is the run by workers where the folder has one. Rows are
printed as CSV: CPU seconds, those of killed processes as last seen, wall seconds, and the peak of
resident memory of each process.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

from llm_games.benchmarks.record.store import Store

PLAYERS, ROUNDS = 4, 25
PLAN = """
title = "A million decisions"
seats = ["mock", "random", "cooperative", "fixed:5"]
episodes = {episodes}
[[games]]
game = "public_goods"
params = {{ players = 4, rounds = 25 }}
"""
COMMAND = "from llm_games.benchmarks.show.cli import main; main()"
TICK, LOOK = os.sysconf("SC_CLK_TCK"), 0.5


class Cost(NamedTuple):
    """What a command took; of several processes the sum of CPU seconds, and each one's peak."""

    decisions: int
    what: str
    cpu: float
    wall: float
    peaks: str  # MB


class Process:
    """A command that is at work, with the processes that it starts."""

    def __init__(self, folder: Path, *words: str) -> None:
        command = [sys.executable, "-c", COMMAND, *words]
        with (folder / "said.txt").open("a") as said:
            self.popen = subprocess.Popen(command, stdout=said, stderr=said, cwd=folder)
        self.began, self.seen = time.monotonic(), dict[int, tuple[float, int]]()

    def look(self) -> list[int]:
        """Note what each process has taken so far; return those that live, itself first."""
        task = Path(f"/proc/{self.popen.pid}/task/{self.popen.pid}/children")
        children = task.read_text().split() if task.exists() else []
        alive = [self.popen.pid, *map(int, children)]
        for pid in alive:
            try:
                stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
            except OSError:
                continue
            if peak:
                self.seen[pid] = (int(stat[11]) + int(stat[12])) / TICK, int(peak[1]) // 1024
        return alive

    def wait(self) -> int:
        while True:
            pid, status, usage = os.wait4(self.popen.pid, os.WNOHANG)
            if pid:
                self.popen.returncode = os.waitstatus_to_exitcode(status)
                own, children = self.seen.get(pid, (0.0, 0)), 0.0
                if self.popen.returncode >= 0:  # children that were waited for are in it, too
                    children = sum(cpu for p, (cpu, _) in self.seen.items() if p != pid)
                whole = usage.ru_utime + usage.ru_stime
                cpu = max(own[0], whole - children) if children <= whole else whole
                self.seen[pid] = cpu, usage.ru_maxrss // 1024
                return self.popen.returncode
            self.look()
            time.sleep(LOOK)

    def cost(self, decisions: int, what: str) -> Cost:
        cpu = sum(cpu for cpu, _ in self.seen.values())
        peaks = " ".join(str(peak) for _, peak in self.seen.values())
        return Cost(decisions, what, round(cpu, 1), round(time.monotonic() - self.began, 1), peaks)


def tell(cost: Cost) -> None:
    print(",".join(map(str, cost)), flush=True)


def taken(folder: Path, decisions: int, what: str, *words: str) -> None:
    """Do a command to its end, and say what it took."""
    process = Process(folder, *words)
    if process.wait():
        raise SystemExit(f"{what} failed: {(folder / 'said.txt').read_text()[-2000:]}")
    tell(process.cost(decisions, what))


def played(db: Path) -> int:
    """Decisions of the episodes that have ended by now."""
    if not db.exists():
        return 0
    with sqlite3.connect(f"file:{db}?mode=ro", uri=True, timeout=30) as file:
        if not file.execute("SELECT 1 FROM sqlite_schema WHERE name = 'episodes'").fetchall():
            return 0  # it is being made
        ended = file.execute("SELECT count(*) FROM episodes WHERE status = 'done'").fetchone()[0]
        return int(ended) * PLAYERS * ROUNDS


def write_plan(folder: Path, decisions: int) -> Path:
    path = folder / f"{decisions}.toml"
    path.write_text(PLAN.format(episodes=decisions // (PLAYERS * ROUNDS)))
    return path


def by_workers(folder: Path, decisions: int, db: Path) -> None:
    """Play by two workers; kill one, later the coordinator, and go on with three."""
    plan = write_plan(folder, decisions)
    process = Process(folder, "run", str(plan), "--db", str(db), "--workers", "2")
    killed = False
    while True:
        alive, done = process.look(), played(db)
        if not killed and done > decisions / 3:
            workers = [pid for pid in alive[1:] if b"spawn_main" in command_of(pid)]
            os.kill(workers[-1], signal.SIGKILL)
            print(f"# worker killed after {done} decisions", flush=True)
            killed = True
        if done > 2 * decisions / 3:
            process.popen.send_signal(signal.SIGKILL)
            print(f"# coordinator killed after {done} decisions", flush=True)
            break
        time.sleep(2 * LOOK)
    process.wait()
    tell(process.cost(decisions, "2 workers until both kills"))
    taken(folder, decisions, "resume by 3 workers", "resume", str(db), "--workers", "3")


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def read_again(folder: Path, decisions: int, db: Path) -> None:
    """Replay, report and compare a run."""
    taken(folder, decisions, "replay", "replay", str(db))
    taken(folder, decisions, "report", "report", str(db), "-o", str(folder / f"{db.stem}-report"))
    taken(folder, decisions, "compare", "compare", str(db), str(db), "--json")


def view(folder: Path, decisions: int, db: Path) -> None:
    """Serve a run's pages, and read those of the run, its decisions and one of its episodes."""
    (folder / "said.txt").write_text("")
    process = Process(folder, "view", str(db), "--no-open")
    try:
        address = None
        while address is None:
            time.sleep(LOOK)
            address = re.search(r"http://\S+", (folder / "said.txt").read_text())
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        first, base = address[0], "/".join(address[0].split("/")[:3])
        ways = [first.removeprefix(base)]
        while ways:
            began, way = time.monotonic(), ways.pop(0)
            with opener.open(base + way) as page:
                text = page.read().decode()
            print(f"# view {way.partition('?')[0]}: {time.monotonic() - began:.2f} s", flush=True)
            if base + way == first:
                run = re.findall(r"/run/\w+", text)[0]
                ways = [run, f"{run}/decisions", f"{run}/episode/{decisions // 200}"]
        process.look()
        tell(process.cost(decisions, "view"))
    finally:
        process.popen.send_signal(signal.SIGINT)
        process.popen.wait()


def differing(one: Path, other: Path) -> list[str]:
    """Return the tables in which two runs in order differ, but for times and what was booked.

    Calls that were under way at a kill are made and booked again; each part has its own greeting.
    """
    times = {"created", "started", "ended", "latency", "seconds"}
    differ = []
    with sqlite3.connect(one) as file:
        file.execute("ATTACH ? AS other", (str(other),))
        tables = [name for (name,) in file.execute("SELECT name FROM main.sqlite_schema")]
        for table in sorted({*tables} - {"lock", "limits", "run", "spent", "lengths"}):
            if table.startswith("sqlite_"):
                continue
            about = [row[1] for row in file.execute(f"PRAGMA main.table_info({table})")]
            columns = ", ".join(name for name in about if name not in times)
            for a, b in (("main", "other"), ("other", "main")):
                rows = f"SELECT {columns} FROM {a}.{table} EXCEPT SELECT {columns} FROM {b}.{table}"
                if file.execute(f"SELECT count(*) FROM ({rows})").fetchone()[0]:
                    differ.append(table)
                    break
    return differ


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("decisions", nargs="?", type=int, default=1_000_000)
    parser.add_argument("--sizes", nargs="+", type=int, help="by one process, to compare")
    parser.add_argument("--folder", type=Path, default=Path("million"))
    given = parser.parse_args()
    folder = given.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    print(",".join(Cost._fields), flush=True)
    for decisions in given.sizes or ():
        one, plan = folder / f"one-{decisions}.db", str(write_plan(folder, decisions))
        taken(folder, decisions, "play", "run", plan, "--db", str(one))
        read_again(folder, decisions, one)
        parts, merged = [one.with_suffix(f".{n}") for n in (1, 2)], one.with_suffix(".merged")
        for number, part in enumerate(parts, 1):
            words = ["run", plan, "--db", str(part), "--part", f"{number}/2"]
            taken(folder, decisions, f"part {number}", *words)
        taken(folder, decisions, "merge", "merge", *map(str, parts), "--db", str(merged))
        with Store.open(one) as store:
            store.put_in_order()
        for other in (merged, folder / f"many-{decisions}.db"):
            if other.exists():
                print(f"# tables in which {other.name} differs: {differing(one, other)}")
    if given.sizes:
        return
    db = folder / f"many-{given.decisions}.db"
    by_workers(folder, given.decisions, db)
    read_again(folder, given.decisions, db)
    view(folder, given.decisions, db)


if __name__ == "__main__":
    main()
