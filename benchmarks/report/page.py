"""The page itself: everything put together by one template that escapes all text."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from llm_games.baselines.deviation import claimed
from llm_games.benchmarks.report import canvas, export, figures, tables
from llm_games.benchmarks.report.export import Files
from llm_games.benchmarks.report.parts import Parts, ReportIncomplete
from llm_games.benchmarks.report.skill import skill_grid
from llm_games.benchmarks.runs.compare import compare
from llm_games.benchmarks.runs.grid import Grid
from llm_games.benchmarks.runs.paper import (
    HALF,
    Paper,
    Section,
    Sketch,
    edition_of,
    editions,
    owner,
    papers,
)
from llm_games.benchmarks.runs.reader import Game, Run, read
from llm_games.benchmarks.runs.records import Records
from llm_games.benchmarks.runs.references import Reference, references
from llm_games.benchmarks.runs.reliability import reliability
from llm_games.benchmarks.runs.seating import uneven
from llm_games.benchmarks.runs.stats import MARK, Cell
from llm_games.errors import BadParameter, unknown
from llm_games.version import __version__


def build(
    db_paths: Sequence[Path],
    out: Path,
    scoring: str | None = None,
    comparing: bool = False,
    baselines: bool = True,
) -> Path:
    """Write a report about these runs, also unfinished ones, and return its path.

    The page loads nothing. Beside it are its figures as SVG and PNG (``figures/``) and its numbers
    as CSV (``tables/``). `out` is the HTML file (ending in ``.html``), or a folder in which to
    write ``report.html``; `scoring` an edition of the scores, see `paper.editions`, or None for
    the one each run asks for. `comparing` compares two runs, episode by episode. Without
    `baselines` it has no reference rows and no measures of skill, which take most of its time.

    Raises:
        StoreError: a file is not a run that can be read.
        ReportExtraMissing: matplotlib is not installed.
        BadParameter: no file was given (to compare: not two), or `out` cannot be written.
        UnknownName: there is no such edition.
        ReportIncomplete: the page is written, but some of its parts could not be made.
    """
    canvas.require()
    if not db_paths:
        raise BadParameter("a report needs at least one run, got none; give its .db file")
    if comparing and len(db_paths) != 2:
        raise BadParameter(f"to compare takes two runs, got {len(db_paths)}; give two .db files")
    if scoring is not None and scoring not in editions():
        raise unknown("scoring", scoring, editions())
    out = Path(out)
    out = out if out.suffix == ".html" else out / "report.html"
    with ExitStack() as opened:
        records = [opened.enter_context(Records.open_readonly(Path(path))) for path in db_paths]
        runs = [read(file, scoring or edition_of(file.config)) for file in records]
        pair = (records[0], records[1]) if comparing else None
        text, files, failed = html(runs, pair, baselines)
    try:
        old = out.read_text("utf-8", errors="replace") if out.is_file() else ""
        for name in re.findall(r'(?:href|src)="((?:figures|tables)/[^"/]+)"', old):
            (out.parent / unquote(name)).unlink(missing_ok=True)
        for name, content in {out.name: text, **files.contents}.items():
            file = out.parent / name
            file.parent.mkdir(parents=True, exist_ok=True)
            # the name of a run's file may hold what is no text
            coded = content.encode(errors="replace") if isinstance(content, str) else content
            file.write_bytes(coded)
    except OSError as error:
        raise BadParameter(f"the report cannot be written to {out}: {error.strerror}") from None
    if failed:
        raise ReportIncomplete(out, failed) from next(iter(failed.values()))
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
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise BadParameter(f"the report cannot be written to {out}: {error.strerror}") from None


def html(
    runs: Sequence[Run], pair: tuple[Records, Records] | None = None, baselines: bool = True
) -> tuple[str, Files, Mapping[str, Exception]]:
    """Return the page about these runs, the files that it links to, and what could not be made.

    The runs of a `pair` of files are compared.
    """
    files, page, several = Files(), Parts(), len(runs) > 1
    loader = PackageLoader("llm_games.benchmarks.report", ".")
    env = Environment(autoescape=True, undefined=StrictUndefined, loader=loader)
    css, _, _ = loader.get_source(env, "page.css")
    parts = [
        _part(run, f"r{i}", files, run.stem * several, page, baselines)
        for i, run in enumerate(runs)
    ]
    boards, notes = [], []
    for paper in papers():
        if paper.scoring:
            make = partial(paper.scoring.board, [_of(run, paper) for run in runs])
            board = page.made(f"{paper.title}'s board", make, partial(Section, paper.title))
            boards += [page.section(board)] if board else []
        if any(paper in part["papers"] for part in parts):
            notes += [said.note for said in (paper.scoring, paper.measure) if said]
    sections = ((part["run"], section) for part in parts for section in part["sections"])
    grids = [(run, grid) for run, found in sections for grid in found["about"].grids if grid.name]
    own = ("scores", "payoffs", "skill", "spent")
    grids += [(part["run"], part[name]) for name in own for part in parts if part[name].rows]

    def compared() -> Grid:
        return compare(*pair, runs[0].edition).grid() if pair else Grid({}, [])

    text = env.get_template("page.html.j2").render(
        title=f"{len(runs)} runs" if several else runs[0].file.title,
        css=Markup(css),
        parts=parts,
        compared=page.table("The comparison", compared),
        exported=export.tables(runs, grids, files, page),
        boards=boards,
        scored=notes,
        mark=f"{float(MARK):.0%}",
        failed=page.failed,
        version=__version__,
    )
    return text, files, page.failed


def _part(
    run: Run, prefix: str, files: Files, folder: str, page: Parts, baselines: bool
) -> dict[str, Any]:
    """Return what the page shows of a run: what belongs to papers, and what every run has."""
    owners = {game.label: owner(game) for game in run.games}
    mine = [paper for paper in papers() if paper in owners.values()]
    scored = [label for label, paper in owners.items() if paper and paper.scoring]
    read: dict[str, Any] = {}  # what papers make their parts from, by title

    def drawn(sketches: Iterable[Sketch], name: str, prefix: str) -> list[dict[str, Any]]:
        """Draw figures whose files are called after `name`; `prefix` keeps ids unique."""
        found = []
        for i, sketch in enumerate(sketches):
            file = f"{folder} {name}{f' {sketch.title.lower()}' if i else ''}".strip()
            make = partial(_picture, sketch, f"{prefix}-{i}", file, files)
            plot = page.made(f"The figure “{file}”", make, _undrawn)
            found.append({"title": sketch.title, "half": sketch.size[0] == HALF[0]} | plot)
        return found

    def sections_of(paper: Paper) -> list[Section]:
        read[paper.title] = paper.read(_of(run, paper))
        return paper.sections(read[paper.title])

    sections = []
    for i, paper in enumerate(mine):
        make = partial(sections_of, paper)
        made = page.made(paper.title, make, partial(_unmade, paper))
        for k, about in enumerate(map(page.section, made)):
            at = f"{prefix}-paper-{i}-{k}"
            pairs = [
                (drawn([sketch], f"{about.title} {sketch.title}".lower(), f"{at}-{n}"), grid)
                for n, (sketch, grid) in enumerate(about.pairs)
            ]
            plots = drawn(about.sketches, about.title, at)
            sections.append({"about": about, "plots": plots, "pairs": pairs})

    def reliable() -> list[Section]:
        try:
            grids = reliability(run.games, run.edition)
        except BadParameter as error:  # what the file calls success is not said of all its games
            return [Section("Reliability", f"{error}.")]
        return [Section("Reliability", grids=grids)] if grids else []

    made = page.made("Reliability", reliable, lambda why: [Section("Reliability", why)])
    sections += [{"about": page.section(about), "plots": [], "pairs": []} for about in made]

    def moves(game: Game) -> Sequence[Sketch]:
        if not game.played:
            return []
        paper = owners[game.label]
        special = paper.moves(read[paper.title], game) if paper and paper.title in read else []
        return special or figures.moves(game, len(run.by_game()[game.name]) == 1)

    def plots_of(game: Game, prefix: str) -> list[dict[str, Any]]:
        return page.made(
            f"The figures of “{game.label}”",
            lambda: drawn(moves(game), game.label, prefix),
            lambda why: [{"title": "Moves", "half": False} | _undrawn(why)],
        )

    def beside() -> dict[str, list[Reference]]:
        return {g.label: references(g, run.edition) for g in run.games if baselines}

    known = page.made("The reference rows", beside, lambda why: {})

    def scores() -> Grid:
        return tables.score_grid(run, scored, _total(run, mine), known)

    def skill() -> Grid:
        return skill_grid(replace(run, games=run.games if baselines else []))

    games = [
        {"label": game.label, "about": _about(game), "plots": plots_of(game, f"{prefix}-{i}")}
        for i, game in enumerate(run.games)
    ]
    return {
        "run": run,
        "papers": mine,
        "sections": sections,
        "long": len(run.games) > 16,  # then its details are folded away
        "scored": bool(scored),
        "scores": page.table("The table of scores", scores),
        "payoffs": page.table("The table of payoffs", lambda: tables.payoff_grid(run)),
        "skill": page.table("The table of measures of skill", skill),
        "usage": page.table("The table of tokens and time", lambda: tables.usage_grid(run)),
        "spent": page.table("The table of seats", lambda: tables.spent_grid(run)),
        "facts": _facts(run),
        "warnings": _warnings(run),
        "games": games,
        "players": page.table("The table of players", lambda: tables.player_grid(run)),
        "calls": page.table("The table of other calls", lambda: tables.other_grid(run)),
        "special": page.table("The table of special replies", lambda: tables.special_grid(run)),
        "replies": drawn(figures.latency(run), "latency", f"{prefix}-latency"),
    }


def _unmade(paper: Paper, why: str) -> list[Section]:
    """Return what stands in place of a paper's sections."""
    return [Section(paper.title, why)]


def _undrawn(why: str) -> dict[str, Any]:
    """Return what stands in place of a figure."""
    return {"inline": "", "sentence": why, "files": []}


def _picture(sketch: Sketch, ids: str, name: str, files: Files) -> dict[str, Any]:
    """Draw a figure, add its files, and return what the page shows of it."""
    inline, svg, png, sentence = canvas.picture(ids, sketch.draw, sketch.size)
    paths = files.add("figures", name, ("svg", svg), ("png", png))
    links = [(Path(path).suffix[1:].upper(), quote(path)) for path in paths]
    return {"inline": inline, "sentence": sentence, "files": links}


def _of(run: Run, paper: Paper) -> Run:
    """Return a run with those of its games that belong to a paper."""
    return replace(run, games=[game for game in run.games if owner(game) is paper])


def _total(run: Run, mine: Sequence[Paper]) -> Cell | None:
    """Return Overall; nothing unless all games of a benchmark have a score."""
    for paper in mine:
        if paper.scoring:
            found = paper.scoring.counted(_of(run, paper), run.edition)
            if mean := paper.scoring.overall(found):
                return mean
    return None


def _about(game: Game) -> str:
    given = ", ".join(f"{name} = {value}" for name, value in game.params.items())
    seats = " and ".join(f"{game.seats.count(name)} × {name}" for name in game.players)
    shown = f"{len(game.played)} {'run' if len(game.played) == 1 else 'runs'} shown"
    about = f"{game.rules.title} ({game.rules.source}): {seats}; {shown}"
    claim, sat = claimed(game.rules), [row.seating for row in game.played.rows]
    about += f"; {given or 'default settings'}." + f" Rational here is {claim}." * bool(claim)
    why = uneven(game.rules, game.seats, sat)
    return about + f" Seats are not worth the same: {why}." * bool(why)


def _facts(run: Run) -> list[tuple[str, str]]:
    file = run.file
    done = sum(row.status == "done" for row in run.rows)
    facts = [
        ("file", file.path.name),
        ("made", file.created[:19].replace("T", " ") + " UTC"),
        ("llm-games", file.package),
        ("players", ", ".join(run.players)),
        ("seed", str(file.config.get("seed", "–"))),
        ("episodes", f"{done} of {len(run.rows)} done"),
        ("played for", "–" if run.seconds is None else tables.seconds(run.seconds)),
    ]
    if (spent := run.spent.total).calls:
        tokens = f"{spent.tokens_in:,} / {spent.tokens_out:,}"
        facts += [("calls", f"{spent.calls:,}"), ("tokens in / out", tokens)]
        facts += [("cost", f"{spent.money:.4f}")] if run.priced else []
    return facts


def _warnings(run: Run) -> list[str]:
    found = []
    if left := sum(row.status in ("pending", "running") for row in run.rows):
        found.append(f"This run is not finished: {left} of {len(run.rows)} episodes are left.")
    if void := [row for row in run.rows if row.status == "void"]:
        reasons = sorted({row.reason or "no reason given" for row in void})
        which = "1 void episode has" if len(void) == 1 else f"{len(void)} void episodes have"
        found.append(f"{which} no score: {'; '.join(reasons)}.")
    if series := [game.label for game in run.games if game.planned.get("series")]:
        found.append(
            f"Episodes of {', '.join(series)} follow from each other; intervals take them as "
            "independent, and are too narrow there."
        )
    return found
