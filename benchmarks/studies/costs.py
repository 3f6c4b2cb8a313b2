"""Calls and tokens of the papers' experiments, as ``llm-games run NAME --dry-run`` prints them.

``python -m llm_games.benchmarks.studies.costs`` writes the table; with names of experiments behind
it, it prints only their rows. Prompts are counted with a token for every 4 and for every 3 bytes;
replies as short ones (20 tokens for a move, 60 for a speech, 200 for an explanation) and as those
of a reasoning model (3,000, or the file's ``max_tokens``). Hours (0.0: less than three minutes) are
for a server that takes two seconds for a reply and sixteen calls at a time, or longer where calls
wait for one another.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

from llm_games.benchmarks.judge.paper import PAPERS
from llm_games.benchmarks.run.config import experiments
from llm_games.benchmarks.run.estimate import added, estimate
from llm_games.benchmarks.run.plan import plan_of, players
from llm_games.benchmarks.studies.dated import RESULTS, today, write
from llm_games.version import __version__

FILE = RESULTS / "costs.csv"
SECONDS, AT_ONCE = 2, 16  # of a call, and calls that a server takes at a time


class RunCost(NamedTuple):
    """What an experiment asks of models."""

    run: str
    games: int
    episodes: int
    calls: int
    tokens_in: str
    tokens_out: str
    hours: str
    day: str
    version: str


def row(name: str) -> RunCost:
    plan = plan_of(name)
    estimates = estimate(plan, players(plan))
    low, high = added(e.low for e in estimates), added(e.high for e in estimates)
    chain = max((game_estimate.chain for game_estimate in estimates), default=0)
    hours = max(chain, low.calls / AT_ONCE) * SECONDS / 3600
    return RunCost(
        run=name.removesuffix("/vanilla"),
        games=len(estimates),
        episodes=sum(game_estimate.episodes for game_estimate in estimates),
        calls=low.calls,
        tokens_in=span(low.tokens_in, high.tokens_in),
        tokens_out=span(low.tokens_out, high.tokens_out),
        hours="–" if not hours else f"{hours:.1f}" if hours < 10 else f"{hours:.0f}",
        day=today(),
        version=__version__,
    )


def span(low: int, high: int) -> str:
    return f"{short(low)} to {short(high)}" if high else "–"


def short(tokens: int) -> str:
    if tokens < 999_500:
        return f"{tokens / 1e3:.0f} k"
    return f"{tokens / 1e6:.1f} M" if tokens < 9.95e6 else f"{tokens / 1e6:,.0f} M"


def named() -> list[str]:
    """Return the names of all experiments of papers; scenarios are none."""
    return [
        f"{group}/{name}"
        for group, names in experiments().items()
        if (PAPERS / group.replace("-", "_")).is_dir()
        for name in names
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m llm_games.benchmarks.studies.costs")
    parser.add_argument("names", nargs="*", help="print these experiments alone")
    names = parser.parse_args().names
    if names:
        for name in names:
            print(*row(name), sep=", ", flush=True)
    else:
        write(map(row, named()), FILE)


if __name__ == "__main__":
    main()
