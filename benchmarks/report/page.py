"""The page itself: everything put together by one template that escapes all text."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from llm_games import __version__
from llm_games.benchmarks.papers import papers
from llm_games.benchmarks.papers.gamma_bench.scores import EDITIONS, GAMES, MARK
from llm_games.benchmarks.report import canvas, export, figures, settings, tables
from llm_games.benchmarks.report.data import Run, Table, load
from llm_games.benchmarks.report.export import Files
from llm_games.benchmarks.report.figures import Plot, Sketch
from llm_games.benchmarks.report.paper import Paper
from llm_games.benchmarks.runs.compare import compare
from llm_games.errors import BadParameter, unknown

LONG = 16
"""With more tables than this a run's details are folded away."""


def build(
    db_paths: Sequence[Path], out: Path, scoring: str | None = None, comparing: bool = False
) -> Path:
    """Write a report about these runs, also unfinished ones, and return its path.

    The page loads nothing. Beside it are its figures as SVG and PNG (``figures/``) and its numbers
    as CSV (``tables/``).

    Args:
        db_paths: files of runs, at least one.
        out: the HTML file (ending in ``.html``), or a folder in which to write ``report.html``.
        scoring: edition of the scores, see `scores.EDITIONS`; None: the one each run asks for.
        comparing: compare the two runs, episode by episode.

    Raises:
        StoreError: a file is not a run that can be read.
        ReportExtraMissing: matplotlib is not installed.
        BadParameter: no file was given (to compare: not two), or `out` cannot be written.
        UnknownName: there is no such edition.
    """
    if not db_paths:
        raise BadParameter("a report needs at least one run, got none; give its .db file")
    if comparing and len(db_paths) != 2:
        raise BadParameter(f"to compare takes two runs, got {len(db_paths)}; give two .db files")
    if scoring is not None and scoring not in EDITIONS:
        raise unknown("scoring", scoring, EDITIONS)
    out = Path(out)
    out = out if out.suffix == ".html" else out / "report.html"
    runs = [load(Path(path)) for path in db_paths]
    for run in runs:
        run.config["scoring"] = scoring or run.edition
    compared = compare(db_paths[0], db_paths[1], runs[0].edition) if comparing else []
    text, files = html(runs, tables.comparison_rows(compared))
    try:
        if out.is_file():
            _clear(out)
        for name, content in {out.name: text, **files.contents}.items():
            file = out.parent / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise BadParameter(f"the report cannot be written to {out}: {error.strerror}") from None
    return out


def check_out(out: Path) -> None:
    """Check that a report can be written to a file or folder, and make the folder.

    Raises:
        BadParameter: it cannot.
        ReportExtraMissing: matplotlib is not installed.
    """
    canvas.require()
    folder = out.parent if out.suffix == ".html" else out
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BadParameter(f"the report cannot be written to {out}: {error.strerror}") from None


def _clear(page: Path) -> None:
    """Remove the figures and tables of the report that was here before, as far as it links them."""
    text = page.read_text("utf-8", errors="replace")
    for name in re.findall(r'(?:href|src)="((?:figures|tables)/[^"/]+)"', text):
        (page.parent / unquote(name)).unlink(missing_ok=True)


def html(runs: Sequence[Run], compared: Sequence[tables.ComparisonRow] = ()) -> tuple[str, Files]:
    """Return the page about these runs and the files that it links to."""
    files = Files()
    loader = PackageLoader("llm_games.benchmarks.report", ".")
    env = Environment(autoescape=True, undefined=StrictUndefined, loader=loader)
    css, _, _ = loader.get_source(env, "page.css")
    folders = [run.path.stem if len(runs) > 1 else "" for run in runs]
    parts = [
        _part(run, f"r{i}", files, folder)
        for i, (run, folder) in enumerate(zip(runs, folders, strict=True))
    ]
    board = tables.leaderboard([part["rest"] for part in parts])
    grids = [(part["run"], grid) for part in parts for p in part["papers"] for grid in p["grids"]]
    text = env.get_template("page.html.j2").render(
        title=runs[0].title if len(runs) == 1 else f"{len(runs)} runs",
        css=Markup(css),
        parts=parts,
        compared=compared,
        exported=export.tables(runs, files) + export.grids(grids, files),
        board=board if any(row.own for row in board) else [],
        games=[game.replace("_", " ") for game in GAMES],
        breaks=list(tables.BREAKS.values()),
        mark=f"{float(MARK):.0%}",
        version=__version__,
        rounds=settings.ROUNDS,
    )
    return text, files


def _part(run: Run, prefix: str, files: Files, folder: str) -> dict[str, Any]:
    """Return what the page shows of a run: what belongs to a paper apart, and the rest of it."""

    def shown(plots: Sequence[Plot]) -> list[dict[str, Any]]:
        return [_figure(plot, files, folder) for plot in plots]

    papers, rest = by_paper(run)
    experiments = settings.experiments(rest, prefix)
    return {
        "run": run,
        "rest": rest,
        "papers": [
            {
                "paper": paper,
                "grids": paper.grids(own),
                "plots": shown(
                    figures.drawn(paper.figures(own), paper.title, f"{prefix}-paper-{i}")
                ),
            }
            for i, (paper, own) in enumerate(papers)
        ],
        "other": tables.other(run.edition),
        "long": len(run.tables) > LONG,
        "matrix": settings.matrix(rest),
        "experiments": [(e, shown([e.plot])[0]) for e in experiments],
        "against": settings.against_fixed(rest),
        "usage": tables.usage_rows(run),
        "facts": _facts(run),
        "warnings": _warnings(run),
        "scores": tables.score_rows(run, rest),
        "scored": any(table.rules.name in GAMES for table in rest.tables),
        "total": tables.total(rest),
        "tables": [
            _about(table) | {"plots": shown(figures.drawn(sketches, table.label, f"{prefix}-{i}"))}
            for i, (table, sketches) in enumerate(_moves(run, papers))
        ],
        "players": tables.player_rows(run),
        "calls": tables.other_rows(run),
        "replies": shown(figures.replies(run, prefix)),
    }


def by_paper(run: Run) -> tuple[list[tuple[Paper, Any]], Run]:
    """Return papers with what they need of those tables that belong to them, and other tables."""
    owners = [_owner(table) for table in run.tables]

    def of(paper: Paper | None) -> Run:
        pairs = zip(run.tables, owners, strict=True)
        return replace(run, tables=[table for table, owner in pairs if owner is paper])

    return [(paper, paper.read(of(paper))) for paper in papers() if paper in owners], of(None)


def _owner(table: Table) -> Paper | None:
    return next((paper for paper in papers() if paper.owns(table)), None)


def _moves(
    run: Run, papers: Sequence[tuple[Paper, Any]]
) -> Iterator[tuple[Table, Sequence[Sketch]]]:
    """Yield each table of a run with the figures of its moves."""
    games, read = run.by_game(), {paper.title: own for paper, own in papers}
    for table in run.tables:
        sketches: list[Sketch] = []
        if table.played:
            owner = _owner(table)
            sketches = owner.moves(read[owner.title], table) if owner else []
            sketches = sketches or figures.moves(table, len(games[table.rules.name]) == 1)
        yield table, sketches


def _figure(plot: Plot, files: Files, folder: str) -> dict[str, Any]:
    """Keep a plot's files; return what the page shows of it."""
    picture = plot.picture
    paths = files.add(
        "figures", f"{folder} {plot.name}".strip(), ("svg", picture.svg), ("png", picture.png)
    )
    return {
        "title": plot.title,
        "half": plot.size[0] == canvas.HALF[0],
        "inline": picture.inline,
        "sentence": picture.sentence,
        "files": [(Path(path).suffix[1:].upper(), quote(path)) for path in paths],
    }


def _about(table: Table) -> dict[str, Any]:
    played, names = len(table.played), list(dict.fromkeys(table.seats))
    given = ", ".join(f"{name} = {value}" for name, value in table.params.items())
    seats = " and ".join(f"{table.seats.count(name)} × {name}" for name in names)
    about = f"{table.rules.title} ({table.rules.source}): {seats}; "
    about += f"{played} {'run' if played == 1 else 'runs'} shown; {given or 'default settings'}."
    return {"label": table.label, "about": about}


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
