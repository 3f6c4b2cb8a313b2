"""Dated results of studies: rows in a CSV file each, and tables of them."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from pydantic import TypeAdapter

from llm_games.arrays import Array
from llm_games.benchmarks.judge.intervals import student_t
from llm_games.files import write_whole
from llm_games.version import __version__

RESULTS = Path(__file__).resolve().parent / "results"
R = TypeVar("R", bound=tuple[Any, ...])


def settings(study: str) -> dict[str, Any]:
    """Contents of the TOML file beside a study's ``__file__``."""
    return tomllib.loads(Path(study).with_suffix(".toml").read_text("utf-8"))


def read(kind: type[R], file: Path) -> list[R]:
    """Rows of a kind of `NamedTuple`; none where there is no file."""
    if not file.exists():
        return []
    rows = TypeAdapter(kind)
    with file.open(newline="", encoding="utf-8") as lines:
        return [rows.validate_python(row) for row in csv.DictReader(lines)]


def write(rows: Iterable[tuple[Any, ...]], file: Path) -> None:
    """Write the file anew with these rows of one kind: all, or nothing of it changes."""
    whole: list[Any] = [*rows]
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows([whole[0]._fields, *whole])
    write_whole(file, text.getvalue().encode())


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def made_with(*packages: str) -> str:
    return " ".join([f"llm-games {__version__}", *(f"{name} {version(name)}" for name in packages)])


class SeedInterval(NamedTuple):
    """A mean and the ends of its interval, NaN of a single value; formatted as a number is."""

    mean: float
    low: float
    high: float

    def __format__(self, form: str) -> str:
        mean, low, high = (format(value, form) for value in self)
        return mean if np.isnan(self.low) else f"{mean} [{low} to {high}]"


def interval(values: Sequence[float] | Array) -> SeedInterval:
    """Mean over seeds, and Student's interval of it (95 %)."""
    sample = np.array(values, float)
    low, high = student_t(sample, 0.95) if len(sample) > 1 else (np.nan, np.nan)
    return SeedInterval(float(sample.mean()), float(low), float(high))


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: str = "") -> str:
    """A table; in `numbers` a column has a colon if it is aligned to the right."""
    lines = [heads, [f"---{mark}".strip() for mark in numbers.ljust(len(heads))], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
