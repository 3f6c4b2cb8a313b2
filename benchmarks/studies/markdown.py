"""Tables of simulations as a dated Markdown file."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from llm_games.benchmarks.studies.dated import RESULTS, made_with, markdown, today
from llm_games.files import write_whole


class MarkdownTable(NamedTuple):
    """A heading, the names of columns, and rows of words."""

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        return f"**{self.heading}**\n\n{markdown(self.columns, self.rows)}"


def share(value: float, width: float | None = None, digits: int = 0) -> str:
    """Write a share without its zero, as in ``.95``, and a mean width behind it in brackets."""
    short = f"{value:.2f}".removeprefix("0")
    return short if width is None else f"{short} ({width:.{digits}f})"


def write(
    name: str, make: Callable[[np.random.Generator, int], Iterable[MarkdownTable]], sims: int
) -> None:
    """Make the tables with the command line's options, and write ``results/NAME.md``."""
    parser = argparse.ArgumentParser(prog=f"python -m llm_games.benchmarks.studies.{name}")
    parser.add_argument("--sims", type=int, default=sims, help="simulations of each cell")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--into", type=Path, default=RESULTS / f"{name}.md", help="another file")
    args = parser.parse_args()
    tables = make(np.random.default_rng(args.seed), args.sims)
    dated = (
        f"{today()}, {made_with('numpy')}, `{parser.prog} --sims {args.sims} --seed {args.seed}`."
    )
    text = "\n\n".join([dated, *(table.markdown() for table in tables)])
    write_whole(args.into, f"{text}\n".encode())
