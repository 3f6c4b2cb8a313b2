"""The command line: ``llm-games``. A file here holds a group of its commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from llm_games.benchmarks.record.garbage import few_searches
from llm_games.benchmarks.record.plain_text import harmless_streams, speak_plainly
from llm_games.benchmarks.show.cli import (
    analyse,
    animate,
    branch,
    cache,
    compare,
    export,
    forget,
    games,
    ghost,
    import_,
    leaderboard,
    merge,
    openenv,
    replay,
    report,
    run,
    serve,
    types,
    view,
    watch,
)
from llm_games.benchmarks.show.cli.common import Commands, say
from llm_games.errors import BadParameter, LLMGamesError
from llm_games.version import __version__

HELP = """Economic and strategic games for language models, learners and equilibria.

Exit codes:

0  done

1  stopped early, since the model or the disk failed or the budget is spent; go on with:
llm-games resume FILE (of a replay: something differs; of a report: a part of it is missing)

2  something is wrong with what was asked; the message says what and the way out

130  interrupted with Ctrl-C; go on with: llm-games resume FILE
"""
COMMANDS: dict[str, tuple[Callable[..., Any], ...]] = {
    "Every day": (
        *(run.run, run.resume, report.report, view.view),
        *(compare.compare, games.play, games.list_all, games.show),
    ),
    "More of runs": (
        *(watch.watch, replay.replay, branch.branch, types.types),
        *(leaderboard.leaderboard, export.export, animate.animate),
        *(merge.merge, import_.import_all, forget.forget),
    ),
    "Servers": (serve.serve, serve.seat, games.serve_tiny),
}
"""Commands by the heading that they stand under in the help."""
GROUPS = {
    "analyse": (analyse.app, "Look into talk, let models and people judge, measure reliability."),
    "ghost": (ghost.app, "Make opponents of the players of a run's record."),
    "openenv": (openenv.app, "Let agents of others sit down at a game, by OpenEnv."),
    "cache": (cache.app, "Look into a file of kept replies, or shrink it."),
}
FORMER = ("talk", "judge", "rate", "reliability")
"""Commands of ``llm-games analyse`` that stood alone up to version 0.8."""


def command_name(function: Callable[..., Any]) -> str:
    return function.__name__.removesuffix("_all").replace("_", "-")


class RootCommands(Commands):
    """The commands by headings; those that moved still work, and say where they are."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name == "crossplay":
            raise BadParameter("crossplay FILE is llm-games run FILE now")
        if cmd_name not in FORMER:
            return super().get_command(ctx, cmd_name)
        say(f"llm-games {cmd_name} is llm-games analyse {cmd_name} now")
        group: Any = super().get_command(ctx, "analyse")
        return group.get_command(ctx, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections = {
            heading: [command_name(function) for function in functions]
            for heading, functions in COMMANDS.items()
        }
        for heading, names in (sections | {"Groups": list(GROUPS)}).items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            width = formatter.width - 6 - max(len(name) for name in self.list_commands(ctx))
            lines = [(name, command.get_short_help_str(width)) for name, command in commands]
            with formatter.section(heading):
                formatter.write_dl(lines)


app = typer.Typer(
    cls=RootCommands,
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # with panels, help takes twice as long
)
for _function in chain.from_iterable(COMMANDS.values()):
    _short_help = str(_function.__doc__).partition("\n")[0]
    app.command(command_name(_function), short_help=_short_help)(_function)
for _name, (_app, _help) in GROUPS.items():
    app.add_typer(_app, name=_name, help=_help)


def main() -> None:
    """Run the command line; what a user can cause ends with one message and exit code 2."""
    speak_plainly(sys.stdin, sys.stdout, sys.stderr)
    with harmless_streams(), few_searches():
        _command_line()


def _command_line() -> None:
    try:
        app()
    except LLMGamesError as error:
        say(f"error: {error}")
        raise SystemExit(2) from None
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError):
        if fault := _damaged(sys.argv[1:]):
            say(f"error: {fault}")
            raise SystemExit(2) from None
        raise
    except KeyboardInterrupt:  # before a command has begun; a command says what is kept
        raise SystemExit(130) from None


def _damaged(arguments: list[str]) -> LLMGamesError | None:
    from llm_games.benchmarks.record.damage import damage

    files = [Path(word) for word in arguments if word.endswith(".db") and Path(word).is_file()]
    return next((fault for path in files if (fault := damage(path))), None)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"llm-games {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    pass
