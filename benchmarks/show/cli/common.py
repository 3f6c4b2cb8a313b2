"""What commands share: options, and how they speak."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option
from typer import BadParameter as BadOption
from typer.core import TyperGroup

if TYPE_CHECKING:
    from llm_games.benchmarks.record.queries import Records
    from llm_games.benchmarks.record.recorded_games import RecordedGame


class Commands(TyperGroup):
    """Help without pydantic's import; errors name the wrong value."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command; say of a value that does not fit which one that is."""
        try:
            return super().invoke(ctx)
        except BadOption as error:
            errors = getattr(error.__cause__, "errors", None)
            if errors is not None:  # pydantic's, whose words leave it out
                first = errors()[0]
                needed = first["msg"].replace("Input", "it").partition(", unable")[0]
                error.message = f"{needed}, got {first['input']!r}"
            raise

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option; without a value, Typer would import pydantic to check it."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option


def value(metavar: str, meaning: str, *names: str, **limits: Any) -> Any:
    return Option(*names, metavar=metavar, help=meaning, **limits)


PLAIN: dict[str, Any] = {"markup": False, "highlight": False}
"""For text that is to be printed as it is."""
Database = Annotated[Path, Argument(metavar="FILE", help="the .db file of a run")]
Labels = Annotated[list[str] | None, value("GAME", "only this game of the run; can be repeated")]
AsJson = Annotated[bool, Option("--json", help="print JSON and nothing else on stdout")]
Scoring = Annotated[
    str | None, value("EDITION", "formulas of the scores: corrected, published, v4 or v2")
]
OpenIt = Annotated[bool, Option("--open", help="open the report in a browser")]
Baselines = Annotated[
    bool,
    Option(
        "--baselines/--no-baselines",
        help="reference rows of rule players, and in a report measures of skill",
    ),
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="no progress bar, no table")]
BaseUrl = Annotated[
    str | None,
    value(
        "URL",
        "the server of openai:MODEL and PROVIDER/MODEL players; one on this machine gets no key "
        "unless api_key_env or api_key_file names one",
    ),
]


def console(stderr: bool = False) -> Any:
    from rich.console import Console
    from rich.segment import Segment

    from llm_games.benchmarks.record.plain_text import harmless

    class Terminal(Console):
        def _render_buffer(self, buffer: Iterable[Segment]) -> str:
            segments = (s if s.control else s._replace(text=harmless(s.text)) for s in buffer)
            return super()._render_buffer(segments)

    return Terminal(stderr=stderr)


def say(text: str) -> None:
    print(text, file=sys.stderr)


EXAMPLES = {
    "--seat": "0=rational",
    "--move": "0=6.50",
    "--text": "0=...",
    "--set": "temperature=default",
    "--param": "rounds=5",
    "--talk": "turns=2",
}


def values_of(
    flag: str, assigned: Sequence[str] | None, named: Collection[str] = ()
) -> dict[str, Any]:
    """Read ``NAME=VALUE``; ConfigError: it is not that, or given twice, as the `named` are."""
    from llm_games import errors
    from llm_games.benchmarks.record.checked_table import ConfigError
    from llm_games.key_values import assigned as read

    try:
        return read(flag, assigned, EXAMPLES[flag], named)
    except errors.BadParameter as error:
        raise ConfigError(str(error)) from None


def by_label(records: Records, labels: Collection[str] = ()) -> dict[str, RecordedGame]:
    """Games of a run, all or those of these labels; raises UnknownName."""
    from llm_games.benchmarks.record.recorded_games import games
    from llm_games.errors import unknown

    recorded = {game.label: game for game in games(records)}
    for label in labels:
        if label not in recorded:
            raise unknown("game of this run", label, recorded)
    return {label: recorded[label] for label in labels or recorded}


def write_report(
    dbs: list[Path], out: Path, open_it: bool, quiet: bool = False, **how: Any
) -> tuple[Path, int]:
    """Write a report of runs; return its path and the exit code, 1 if a part of it is missing."""
    from llm_games.benchmarks.show.page import ReportIncomplete, build

    missing = None
    try:
        page = build(dbs, out, **how)
    except ReportIncomplete as error:
        page, missing = error.path, error
    if not quiet or missing:
        say(f"report: {page}")
    if missing:
        say(f"error: the report is incomplete:\n{missing}")
    if open_it:
        import webbrowser

        webbrowser.open(page.absolute().as_uri())
    return page, int(missing is not None)
