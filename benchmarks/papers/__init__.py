"""The papers whose games these are, a room each: experiments, metrics, published rows, page."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llm_games.benchmarks.report.paper import Paper


@cache
def papers() -> tuple[Paper, ...]:
    """Return the parts of a page that belong to one paper each, in the order in which they stand.

    A room has its part in ``page.PAPER``; a table belongs to the first that owns it.
    """
    rooms = [f"{__name__}.{module.name}" for module in iter_modules(__path__) if module.ispkg]
    return tuple(import_module(f"{r}.page").PAPER for r in rooms if find_spec(f"{r}.page"))
