"""One self-contained HTML page about one run or several, and the same as a part of another.

A paper's page draws with what is here; the page of a run is imported when it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from llm_games.benchmarks.show.page.parts import ReportIncomplete

if TYPE_CHECKING:
    from llm_games.benchmarks.show.page.report_page import body, build, check_out, css

__all__ = ["ReportIncomplete", "body", "build", "check_out", "css"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.report_page"), name)
