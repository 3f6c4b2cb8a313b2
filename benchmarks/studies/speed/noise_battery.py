"""Put `Noise` through TestU01 and dieharder, and print the table of ``results/noise_battery.csv``.

    apt-get install libtestu01-0-dev dieharder   (Debian; TestU01 is in its non-free section)
    python -m llm_games.benchmarks.studies.speed.noise_battery [--battery Crush] [STREAM ...]

A stream is written to the battery's standard input by a process of its own, as long as it reads.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

from llm_games.noise import FULL, GOLD, Noise

CHUNK = 2**14
SUSPECT, FAILED = 1e-3, 1e-10
"""p-values nearer to 0 or 1 than these are counted (the first is TestU01's own bound)."""


def places() -> Iterator[np.ndarray]:
    """One seed, one name: its places in a row."""
    noise = Noise(1, "battery")
    while True:
        yield noise.bits(CHUNK)
        noise._base = noise._base + GOLD * CHUNK & FULL  # where the next place would be


def seeds() -> Iterator[np.ndarray]:
    """Seeds s, s + 1, ..., one number each: what the copies of a batch draw."""
    for start in itertools.count(0, CHUNK):
        yield Noise(np.arange(start, start + CHUNK)).of("battery").bits()


def steps() -> Iterator[np.ndarray]:
    """One seed, steps 0, 1, ..., one number each."""
    noise = Noise(1, "battery")
    for start in itertools.count(0, CHUNK):
        yield noise.of(np.arange(start, start + CHUNK)).bits()


def tables() -> Iterator[np.ndarray]:
    """64 copies, three names, 5 places a step, step after step; after 100 steps the next seeds."""
    for start in itertools.count(0, 64):
        noise = Noise(np.arange(start, start + 64))
        for step in range(100):
            for name in ("valuations", "order", "seat"):
                yield noise.of(name, step).bits(5)


def counter() -> Iterator[np.ndarray]:
    """A control that must fail: seeds times an odd constant, not scrambled."""
    for start in itertools.count(0, CHUNK):
        yield np.arange(start, start + CHUNK, dtype=np.uint64) * GOLD


STREAMS: dict[str, Callable[[], Iterator[np.ndarray]]] = {
    stream.__name__: stream for stream in (places, seeds, steps, tables, counter)
}


def testu01(battery: str) -> dict[str, float]:
    """Run a battery of TestU01 on standard input, in this process; it reads high bits first."""
    library = ctypes.CDLL("libtestu01.so")
    ctypes.c_int.in_dll(library, "swrite_Basic").value = 0
    library.ufile_CreateReadBin.restype = ctypes.c_void_p
    source = ctypes.c_void_p(library.ufile_CreateReadBin(b"/dev/stdin", ctypes.c_long(2**16)))
    getattr(library, f"bbattery_{battery}")(source)
    count = ctypes.c_int.in_dll(library, "bbattery_NTests").value
    names = (ctypes.c_char_p * count).in_dll(library, "bbattery_TestNames")
    values = (ctypes.c_double * count).in_dll(library, "bbattery_pVal")
    pairs = zip(names, values, strict=True)
    return {f"{k} {(name or b'').decode()}": p for k, (name, p) in enumerate(pairs) if p >= 0}


def dieharder() -> dict[str, float]:
    """Run dieharder's tests on standard input, but those that it calls suspect or not to use."""
    values: dict[str, float] = {}
    for number in (*range(5), *range(8, 14), 15, 16, 17, 100, 101, 102, *range(202, 210)):
        command = ["dieharder", "-g", "200", "-d", str(number)]
        output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        lines = re.finditer(r"^ *(\w+)\| *(\d+)\|[ \d]+\|[ \d]+\|([\d.]+)\|", output, re.MULTILINE)
        values |= {f"{line[1]} {line[2]} {k}": float(line[3]) for k, line in enumerate(lines)}
    return values


def row(stream: str, battery: str) -> str:
    """Run one battery on one stream and return its line of the table."""
    start, me = time.monotonic(), [sys.executable, "-m", __spec__.name]
    write = [*me, "--write", stream, "<" if battery == "dieharder" else ">"]
    with subprocess.Popen(write, stdout=subprocess.PIPE) as source:
        read = [*me, "--read", battery]
        output = subprocess.run(read, stdin=source.stdout, capture_output=True, check=True).stdout
        source.kill()
    values: dict[str, float] = json.loads(output.splitlines()[-1])
    far = {name: min(p, 1 - p) for name, p in values.items()}
    suspect = [f"{name}: {values[name]:.2g}" for name in far if far[name] < SUSPECT]
    failed = sum(p < FAILED for p in far.values())
    ends = f"{min(values.values()):.2g} | {1 - max(values.values()):.2g}"
    print(f"{time.monotonic() - start:.0f} s;", "; ".join(suspect), file=sys.stderr)
    return f"| {stream} | {battery} | {len(values)} | {failed} | {len(suspect)} | {ends} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("streams", nargs="*", default=list(STREAMS), metavar="STREAM")
    kinds = ["SmallCrush", "Crush", "BigCrush", "dieharder"]
    parser.add_argument("--battery", choices=kinds, default="SmallCrush")
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--read", choices=kinds, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.write:
        stream, order = asked.write
        try:
            for numbers in STREAMS[stream]():
                sys.stdout.buffer.write(numbers.astype(f"{order}u8").tobytes())
        except BrokenPipeError:
            sys.stderr.close()
    elif asked.read:
        print(json.dumps(dieharder() if asked.read == "dieharder" else testu01(asked.read)))
    else:
        for stream in asked.streams:
            print(row(stream, asked.battery), flush=True)


if __name__ == "__main__":
    main()
