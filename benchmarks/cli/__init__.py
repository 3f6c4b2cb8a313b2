"""The command line: ``llm-games``. A file here holds a group of its commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from llm_games.benchmarks.cli import board, cache, crossplay, games, ghost, look, run, view
from llm_games.benchmarks.cli.common import Commands, say
from llm_games.benchmarks.runs.plain import harmless_streams, speak_plainly
from llm_games.errors import LLMGamesError
from llm_games.version import __version__

HELP = """Economic and strategic games for language models, learners and equilibria.

Exit codes:

0  done

1  stopped early, since the model or the disk failed or the budget is spent; go on with:
llm-games resume FILE (of a replay: something differs; of a report: a part of it is missing)

2  something is wrong with what was asked; the message says what and the way out

130  interrupted with Ctrl-C; go on with: llm-games resume FILE
"""

app = typer.Typer(
    cls=Commands,
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # with panels, help takes twice as long
)

_runs = (
    run.run,
    run.resume,
    look.report,
    look.compare,
    board.leaderboard,
    crossplay.crossplay,
    look.reliability,
    look.replay,
    look.animate,
    look.talk,
    look.judge,
    look.watch,
    view.view,
    look.export,
)
for _command in (*_runs, look.rate, games.play, games.list_all, games.show, games.serve_tiny):
    _short, _name = str(_command.__doc__).partition("\n")[0], _command.__name__
    app.command(_name.removesuffix("_all").replace("_", "-"), short_help=_short)(_command)
app.add_typer(cache.app, name="cache", help="Look into a file of kept replies, or shrink it.")
app.add_typer(ghost.app, name="ghost", help="Make opponents of the players of a run's record.")


def main() -> None:
    """Run the command line; what a user can cause ends with one message and exit code 2."""
    speak_plainly(sys.stdin, sys.stdout, sys.stderr)
    with harmless_streams():
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
    """Return what is wrong with a file of a run that was named, if that is why a command failed."""
    from llm_games.benchmarks.runs.damage import damage

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
