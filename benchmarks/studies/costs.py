"""Calls and tokens of the papers' experiments.

    python -m llm_games.benchmarks.studies.costs DOCS

It writes a table into ``DOCS/papers/NAME.md`` of each paper, between ``<!-- costs -->`` and ``<!--
/costs -->``; with names of experiments behind it, it prints only their rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from llm_games.benchmarks.judge.paper import PAPERS
from llm_games.benchmarks.run.config import experiments
from llm_games.benchmarks.run.estimate import added, estimate
from llm_games.benchmarks.run.plan import plan_of, players
from llm_games.benchmarks.studies.dated import fill, markdown

SECONDS, AT_ONCE = 2, 16  # of a call, and calls that a server takes at a time
COLUMNS = "run", "games", "episodes", "calls", "tokens in", "tokens out", "hours"


def row(name: str) -> tuple[str, ...]:
    plan = plan_of(name)
    policies = players(plan)
    estimates = estimate(plan, policies)
    low, high = (
        added(game_estimate.low for game_estimate in estimates),
        added(game_estimate.high for game_estimate in estimates),
    )
    chain = max((game_estimate.chain for game_estimate in estimates), default=0)
    hours = max(chain, low.calls / AT_ONCE) * SECONDS / 3600
    return (
        f"`{name.removesuffix('/vanilla')}`",
        *(
            f"{n:,}"
            for n in (
                len(estimates),
                sum(game_estimate.episodes for game_estimate in estimates),
                low.calls,
            )
        ),
        span(low.tokens_in, high.tokens_in),
        span(low.tokens_out, high.tokens_out),
        "–" if not hours else f"{hours:.1f}" if hours < 10 else f"{hours:.0f}",
    )


def span(low: int, high: int) -> str:
    return f"{short(low)} to {short(high)}" if high else "–"


def short(tokens: int) -> str:
    if tokens < 999_500:
        return f"{tokens / 1e3:.0f} k"
    return f"{tokens / 1e6:.1f} M" if tokens < 9.95e6 else f"{tokens / 1e6:,.0f} M"


def put(page: Path, names: Iterable[str]) -> None:
    fill("costs", markdown(COLUMNS, map(row, names)), page)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m llm_games.benchmarks.studies.costs")
    parser.add_argument("docs", type=Path, help="the folder of the documents")
    parser.add_argument("names", nargs="*", help="print these experiments alone")
    arguments = parser.parse_args()
    if arguments.names:
        for name in arguments.names:
            print("|", " | ".join(row(name)), "|", flush=True)
        return
    for group, names in experiments().items():
        room = group.replace("-", "_")
        if (PAPERS / room).is_dir():  # not scenarios
            put(arguments.docs / "papers" / f"{room}.md", [f"{group}/{name}" for name in names])


if __name__ == "__main__":
    main()
