"""``llm-games ghost``: recorded players as opponents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from llm_games.benchmarks.show.cli import common
from llm_games.benchmarks.show.cli.common import AsJson, Commands, console, say, value

if TYPE_CHECKING:
    from llm_games.benchmarks.ghosts.ghost_model import Ghost

Name = Annotated[
    str,
    typer.Argument(
        metavar="FILE[#LABEL][#SEAT]", help="a run's .db, and whose: RUN.db#0; or a .ghost"
    ),
]
Out = Annotated[Path | None, value("FILE", "the ghost's file", "--out", "-o")]

app = typer.Typer(cls=Commands, no_args_is_help=True)


@app.command()
def fit(name: Name, out: Out = None, as_json: AsJson = False) -> None:
    """Fit a ghost to a player of a run, write it into a file, and say how well it foretells."""
    from llm_games.benchmarks.ghosts.ghost_model import check_out
    from llm_games.benchmarks.ghosts.ghost_policy import GhostAddress

    named = GhostAddress.read(name)
    out = out or named.file
    check_out(out)
    _written(named.ghost(judge=True), out, as_json)


@app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Say what a ghost is made of, and how well it foretells games that it is not fitted to."""
    from llm_games.benchmarks.ghosts.ghost_policy import GhostAddress

    _tell(GhostAddress.read(name).ghost(judge=True), as_json)


@app.command()
def refit(
    name: Name,
    learner: Annotated[str, value("SPEC", "who learned against it, as sb3:PATH", "--seat")],
    seats: Annotated[
        list[int] | None, value("N", "the learner's seat; can be repeated", "--at", min=0)
    ] = None,
    episodes: Annotated[int, value("N", "games to add")] = 12,
    seed: Annotated[int, value("N", "of these games", min=0)] = 1,
    db: Annotated[Path | None, value("FILE", "file to record them in; else a new one")] = None,
    base_url: common.BaseUrl = None,
    budget_calls: Annotated[
        int | None, value("N", "stop before there are more calls of the model")
    ] = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Add games of the ghost's own model with a learner at the table, and fit it again."""
    from llm_games.benchmarks.ghosts.ghost_model import check_out
    from llm_games.benchmarks.ghosts.ghost_policy import GhostAddress
    from llm_games.benchmarks.ghosts.refit import refit
    from llm_games.benchmarks.run.conduct import RunStopped, fresh

    named = GhostAddress.read(name)
    path, out = db or fresh(f"{named.path.stem}-refit"), out or named.file
    check_out(out)
    hint = f"all that happened is in {path}; the same command with --db {path} goes on"
    try:
        ghost = refit(
            named.ghost(), learner, path, seats or (), episodes=episodes, seed=seed,
            base_url=base_url, budget_calls=budget_calls,
        )  # fmt: skip
    except RunStopped as error:
        if error.path is None:
            raise
        say(f"stopped: {str(error).partition(chr(10))[0]}\n{hint}")
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        say(f"interrupted; {hint}" if path.is_file() else "interrupted")
        raise typer.Exit(130) from None
    _written(ghost, out, as_json)


def _written(ghost: Ghost, out: Path, as_json: bool) -> None:
    ghost.save(out)
    say(f"ghost: {out}, seat it as ghost:{out}")
    _tell(ghost, as_json)


def _tell(ghost: Ghost, as_json: bool) -> None:
    from llm_games.benchmarks.judge.result_table import ResultTable

    if as_json:
        print(json.dumps(ghost.plain()))
        return
    terminal, decisions = console(), ghost.play
    seats = ", ".join(map(str, ghost.seats))
    amount = f"{len(decisions.action)} decisions in {decisions.episodes} episodes"
    terminal.print(f"{ghost.name} in {ghost.game.name}, seat {seats}: {amount}", **common.PLAIN)
    heads = {"foretold by": "", "weight": ".2f", "log-loss": ".3f", "right": ".0%", "off": ".3f"}
    if ghost.at_table:
        heads["log-loss at the learner's table"] = ".3f"
    weights, rows = ghost.weights, []
    for name, evaluation in ghost.judged.items():
        row = [name, weights.get(name), evaluation.loss, evaluation.right, evaluation.off]
        beside = ghost.at_table.get(name)
        rows.append(row + [beside and beside.loss] * bool(ghost.at_table))
    note = (
        "Held-out episodes: nats a decision, the share of decisions whose likeliest answer came, "
        "and how far the chance given to that answer was off."
    )
    terminal.print(ResultTable(heads, rows, note=note))
    for doubt in ghost.doubts():
        terminal.print(f"note: {doubt}", **common.PLAIN)
