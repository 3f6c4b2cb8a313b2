"""What the papers' experiments ask of models.

``python -m llm_games.benchmarks.studies.costs DOCS`` does what follows.

It puts a table into ``DOCS/papers/NAME.md`` of each paper, between ``<!-- costs -->`` and
``<!-- /costs -->``; with names of experiments behind it, it prints their rows alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from llm_games.benchmarks.runs.config import PAPERS, experiments
from llm_games.benchmarks.runs.estimate import added, estimate
from llm_games.benchmarks.runs.plan import plan_of, players
from llm_games.benchmarks.studies.dated import fill, markdown

SECONDS, AT_ONCE = 2, 16  # of a call, and calls that a server takes at a time
COLUMNS = "run", "games", "episodes", "calls", "tokens in", "tokens out", "hours"


def row(name: str) -> tuple[str, ...]:
    """Return what an experiment asks, all its games and episodes together."""
    plan = plan_of(name)
    made = players(plan)
    found = estimate(plan, made)
    low, high = added(one.low for one in found), added(one.high for one in found)
    chain = max((one.chain for one in found), default=0)
    hours = max(chain, low.calls / AT_ONCE) * SECONDS / 3600
    return (
        f"`{name.removesuffix('/vanilla')}`",
        *(f"{n:,}" for n in (len(found), sum(one.episodes for one in found), low.calls)),
        span(low.tokens_in, high.tokens_in),
        span(low.tokens_out, high.tokens_out),
        "–" if not hours else f"{hours:.1f}" if hours < 10 else f"{hours:.0f}",
    )


def span(low: int, high: int) -> str:
    """Write a range of tokens."""
    return f"{short(low)} to {short(high)}" if high else "–"


def short(tokens: int) -> str:
    """Write a number of tokens by thousands or millions."""
    if tokens < 999_500:
        return f"{tokens / 1e3:.0f} k"
    return f"{tokens / 1e6:.1f} M" if tokens < 9.95e6 else f"{tokens / 1e6:,.0f} M"


def put(page: Path, names: Iterable[str]) -> None:
    """Put a table of these experiments into a page."""
    fill("costs", markdown(COLUMNS, map(row, names)), page)


def main() -> None:
    """Write the tables, or print the rows that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m llm_games.benchmarks.studies.costs")
    parser.add_argument("docs", type=Path, help="the folder of the documents")
    parser.add_argument("names", nargs="*", help="print these experiments alone")
    said = parser.parse_args()
    if said.names:
        for name in said.names:
            print("|", " | ".join(row(name)), "|", flush=True)
        return
    for group, names in experiments().items():
        room = group.replace("-", "_")
        if (PAPERS / room).is_dir():  # not scenarios
            put(said.docs / "papers" / f"{room}.md", [f"{group}/{name}" for name in names])


if __name__ == "__main__":
    main()
