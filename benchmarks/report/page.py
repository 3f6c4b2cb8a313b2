"""The page itself: everything put together by one template that escapes all text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from llm_games import __version__
from llm_games.benchmarks.report import figures, tables
from llm_games.benchmarks.report.data import Run, Table, load
from llm_games.benchmarks.scores import GAMES, MARK
from llm_games.errors import BadParameter


def build(db_paths: Sequence[Path], out: Path) -> Path:
    """Write a report about these runs, also unfinished ones, and return its path.

    Args:
        db_paths: files of runs, at least one.
        out: the HTML file (ending in ``.html``), or a folder in which to write ``report.html``.

    Raises:
        StoreError: a file is not a run that can be read.
        ReportExtraMissing: matplotlib is not installed.
        BadParameter: no file was given, or `out` cannot be written.
    """
    if not db_paths:
        raise BadParameter("a report needs at least one run, got none; give its .db file")
    out = Path(out)
    out = out if out.suffix == ".html" else out / "report.html"
    text = html([load(Path(path)) for path in db_paths])
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadParameter(f"the report cannot be written to {out}: {error.strerror}") from None
    return out


def html(runs: Sequence[Run]) -> str:
    """Return the page about these runs."""
    loader = PackageLoader("llm_games.benchmarks.report", ".")
    env = Environment(autoescape=True, undefined=StrictUndefined, loader=loader)
    css, _, _ = loader.get_source(env, "page.css")
    board = tables.leaderboard(runs)
    return env.get_template("page.html.j2").render(
        title=runs[0].title if len(runs) == 1 else f"{len(runs)} runs",
        css=Markup(css),
        parts=[_part(run, f"r{i}") for i, run in enumerate(runs)],
        board=board if any(row.own for row in board) else [],
        games=[game.replace("_", " ") for game in GAMES],
        breaks=list(tables.BREAKS.values()),
        mark=f"{float(MARK):.0%}",
        version=__version__,
    )


def _part(run: Run, prefix: str) -> dict[str, Any]:
    return {
        "run": run,
        "facts": _facts(run),
        "warnings": _warnings(run),
        "scores": tables.score_rows(run),
        "total": tables.total(run),
        "tables": [_table(table, f"{prefix}-{i}") for i, table in enumerate(run.tables)],
        "players": tables.player_rows(run),
        "replies": figures.replies(run, prefix),
    }


def _table(table: Table, prefix: str) -> dict[str, Any]:
    played, names = len(table.played), list(dict.fromkeys(table.seats))
    given = ", ".join(f"{name} = {value}" for name, value in table.params.items())
    seats = " and ".join(f"{table.seats.count(name)} × {name}" for name in names)
    about = f"{table.rules.title} ({table.rules.source}): {seats}; "
    about += f"{played} {'run' if played == 1 else 'runs'} shown; {given or 'default settings'}."
    return {"label": table.label, "about": about, "plots": figures.plots(table, prefix)}


def _facts(run: Run) -> list[tuple[str, str]]:
    players = run.players.values()
    calls = sum(len(player.latencies) for player in players)
    done = sum(episode.status == "done" for episode in run.episodes)
    facts = [
        ("file", run.path.name),
        ("made", run.created[:19].replace("T", " ") + " UTC"),
        ("llm-games", run.package),
        ("players", ", ".join(run.players)),
        ("seed", str(run.config.get("seed", "–"))),
        ("episodes", f"{done} of {len(run.episodes)} done"),
        ("played for", "–" if run.seconds is None else tables.seconds(run.seconds)),
    ]
    if calls:
        tokens_in = sum(player.tokens_in for player in players)
        tokens_out = sum(player.tokens_out for player in players)
        facts += [("calls", f"{calls:,}"), ("tokens in / out", f"{tokens_in:,} / {tokens_out:,}")]
    return facts


def _warnings(run: Run) -> list[str]:
    found = []
    left = sum(episode.status in ("pending", "running") for episode in run.episodes)
    if left:
        found.append(f"This run is not finished: {left} of {len(run.episodes)} episodes are left.")
    void = [e for e in run.episodes if e.status == "void"]
    if void:
        reasons = sorted({episode.reason or "no reason given" for episode in void})
        which = "1 void episode has" if len(void) == 1 else f"{len(void)} void episodes have"
        found.append(f"{which} no score: {'; '.join(reasons)}.")
    return found
