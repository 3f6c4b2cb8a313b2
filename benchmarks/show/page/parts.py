"""The parts of a page, each made by itself: one that cannot be made leaves all others standing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from llm_games.benchmarks.judge.paper import Section
from llm_games.benchmarks.judge.result_table import ResultTable
from llm_games.errors import LLMGamesError

T = TypeVar("T")


class ReportIncomplete(LLMGamesError):
    """Parts of a report could not be made; the page is written, at `path`, and says which."""

    def __init__(self, path: Path, failed: Mapping[str, Exception]) -> None:
        super().__init__("\n".join(failed))
        self.path = path


class Parts:
    """Makes the parts of a page; `failed` says which could not be made."""

    def __init__(self) -> None:
        self.failed: dict[str, Exception] = {}
        self.drawn = 0  # characters of its figures

    def part(self, what: str, make: Callable[[], T], instead: Callable[[str], T]) -> T:
        """Return a part, or what says in its place why there is none."""
        try:
            return make()
        except Exception as error:
            why = f"{what} could not be made: {type(error).__name__}: {error}"
            self.failed[why] = error
            return instead(why)

    def table(self, what: str, make: Callable[[], ResultTable], title: str = "") -> ResultTable:
        """A table all of whose cells can be written, or an empty one that says why."""

        def checked() -> ResultTable:
            grid = make()
            for row in (*grid.rows, *grid.foot):
                grid.cells(row)
            return grid

        return self.part(what, checked, lambda why: ResultTable({}, [], title, note=why))

    def section(self, section: Section) -> Section:
        def checked(grid: ResultTable) -> ResultTable:
            return self.table(f"The table “{grid.title or grid.name}”", lambda: grid, grid.title)

        pairs = [(sketch, grid and checked(grid)) for sketch, grid in section.pairs]
        return section._replace(grids=list(map(checked, section.grids)), pairs=pairs)
