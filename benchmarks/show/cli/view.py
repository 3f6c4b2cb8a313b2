"""``llm-games view``."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from llm_games.benchmarks.show.cli.common import say, value
from llm_games.errors import BadParameter


def view(
    paths: Annotated[
        list[Path] | None,
        Argument(metavar="FILE|FOLDER", help="runs, or folders of them; by default this one"),
    ] = None,
    port: Annotated[
        int | None, value("N", "port to listen on; 0 takes any free one", min=0, max=65535)
    ] = None,
    budget: Annotated[
        float | None,
        value("X", "money for models that branches from its pages ask; without it none is", min=0),
    ] = None,
    open_it: Annotated[bool, Option("--open/--no-open", help="open the page in a browser")] = True,
    export: Annotated[
        Path | None, value("FOLDER", "write the pages of a run as files that open without a server")
    ] = None,
) -> None:
    """Show runs in a browser: every decision, what was said and what would have been better.

    The first line that is printed is the address, with a token that lets in. Runs are only read,
    also while they grow; the page is served to this machine alone. Ctrl-C ends it. A branch from a
    page asks a model that costs only with a budget, after its estimated price was agreed to.
    """
    if export is not None:
        _export(paths or [], export)
        return
    from llm_games.benchmarks.show.view.render import counted
    from llm_games.benchmarks.show.view.serve import serve

    def ready(address: str, shelf: Any) -> None:
        print(address, flush=True)
        runs = shelf.runs()
        problems = [why for run in runs if (why := run.why())]
        for why in problems:
            say(f"not shown: {why}")
        for file in shelf.others():
            say(f"not shown: {file} is no run")
        folders = ", ".join(map(str, shelf.paths))
        count = len(runs) - len(problems)
        shown = counted(count, "run") if count else "no run yet"
        say(f"{shown} in {folders} (Ctrl-C ends the viewer; the runs go on)")
        if open_it and sys.stdout.isatty():
            import webbrowser

            webbrowser.open(address)

    serve(paths or [Path()], port, ready, budget)
    if threading.active_count() > 1:  # a page is still being made, which nobody waits for
        os._exit(0)  # nothing is written but what is kept for the next time, whole or not at all


def _export(paths: list[Path], folder: Path) -> None:
    from llm_games.benchmarks.show.view.exported_pages import export_pages

    if len(paths) != 1 or paths[0].is_dir():
        raise BadParameter("--export takes one run: give its .db file")

    def tell(done: int, of: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done} of {of} episodes", end="\n" if done == of else "", file=sys.stderr)

    size = export_pages(paths[0], folder, tell)
    say(f"{folder / 'index.html'}: {size / 1e6:,.1f} MB in {folder}, to be opened from disk")
