"""Tables of simulations, printed or put into a document in place of the previous ones."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from llm_games.benchmarks.studies.dated import fill, markdown
from llm_games.errors import BadParameter


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
    """Make the tables with the command line's options, and print or insert them.

    ``--into FILE`` replaces the text between ``<!-- name -->`` and ``<!-- /name -->``.
    """
    parser = argparse.ArgumentParser(prog=f"python -m llm_games.benchmarks.studies.{name}")
    parser.add_argument("--sims", type=int, default=sims, help="simulations of each cell")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--into", type=Path, help="a document to put the tables into")
    args = parser.parse_args()
    tables = make(np.random.default_rng(args.seed), args.sims)
    day = datetime.date.today()
    command = (
        f"`python -m llm_games.benchmarks.studies.{name} --sims {args.sims} --seed {args.seed}`"
    )
    dated = f"{day.day} {day:%B %Y}, NumPy {np.__version__}, {command}."
    text = "\n\n".join([dated, *(table.markdown() for table in tables)])
    if args.into is None:
        print(text)
        return
    try:
        fill(name, text, args.into)
    except BadParameter as error:
        parser.error(str(error))
