"""The page itself: everything put together by one template that escapes all text."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from string import ascii_uppercase
from typing import Any
from urllib.parse import unquote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from llm_games.baselines.deviation import caveats, claimed
from llm_games.baselines.players import handed
from llm_games.baselines.seating import uneven
from llm_games.benchmarks.judge import talk_measures
from llm_games.benchmarks.judge.compare import Comparisons, compare
from llm_games.benchmarks.judge.means import MeanCell
from llm_games.benchmarks.judge.paper import (
    Paper,
    Section,
    Sketch,
    edition_of,
    editions,
    owner,
    papers,
)
from llm_games.benchmarks.judge.references import Reference, references
from llm_games.benchmarks.judge.reliability import reliability
from llm_games.benchmarks.judge.result_table import ResultTable
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import MARK, RecordedGame, Run, read
from llm_games.benchmarks.record.spending import unsure
from llm_games.benchmarks.show.page import (
    canvas,
    csv_files,
    figures,
    headline,
    page_tables,
    runs_compared,
)
from llm_games.benchmarks.show.page.conversations import sample
from llm_games.benchmarks.show.page.csv_files import Files
from llm_games.benchmarks.show.page.drawer import Drawer, undrawn
from llm_games.benchmarks.show.page.links import Links
from llm_games.benchmarks.show.page.parts import Parts, ReportIncomplete
from llm_games.benchmarks.show.page.skill_tables import skill_grid
from llm_games.errors import BadParameter, unknown
from llm_games.files import write_whole
from llm_games.version import __version__

LONG = 16
"""Games of a run beyond which single ones have no figures on its page."""
ROWS = 24
"""Rows of a table beyond which it is folded away; those of references do not count."""


def build(
    db_paths: Sequence[Path],
    out: Path,
    scoring: str | None = None,
    comparing: bool = False,
    baselines: bool = True,
    only: Collection[str] = (),
    conversations: int = 0,
) -> Path:
    """Write a report about these runs, also unfinished ones, and return its path.

    The page loads nothing. Beside it are its figures as SVG and PNG (``figures/``) and its numbers
    as CSV (``tables/``). `out` is the HTML file (ending in ``.html``), or a folder in which to
    write ``report.html``; `scoring` an edition of the scores, see `paper.editions`, or None for
    the one each run asks for. `comparing` compares runs with the first, episode by episode. Without
    `baselines` it has no reference rows and no measures of skill, which take most of its time.
    `only` are labels of games, if not all are wanted; `conversations` is how many of each player's
    decisions are shown as they were asked and answered.

    Raises:
        StoreError: a file is not a run that can be read.
        ReportExtraMissing: matplotlib is not installed.
        BadParameter: no file was given (to compare: one), or `out` cannot be written.
        UnknownName: there is no such edition, or no game of that label.
        ReportIncomplete: the page is written, but some of its parts could not be made.
    """
    canvas.require()
    if not db_paths:
        raise BadParameter("a report needs at least one run, got none; give its .db file")
    if comparing and not 2 <= len(db_paths) <= len(ascii_uppercase):
        allowed = f"2 to {len(ascii_uppercase)} runs"
        raise BadParameter(f"to compare takes {allowed}, got {len(db_paths)}; give their .db files")
    if scoring is not None and scoring not in editions():
        raise unknown("scoring", scoring, editions())
    out = Path(out)
    out = out if out.suffix == ".html" else out / "report.html"
    with ExitStack() as opened:
        records = [opened.enter_context(Records.open_readonly(Path(path))) for path in db_paths]
        runs = [read(file, scoring or edition_of(file.config), only) for file in records]
        text, files, failed = html(runs, comparing, baselines, conversations)
    _write(out, text, files)
    if failed:
        raise ReportIncomplete(out, failed) from next(iter(failed.values()))
    return out


def _write(out: Path, text: str, files: Files) -> None:
    """Write a page and its files, in place of those of an older page there; each file is whole."""
    try:
        old = out.read_text("utf-8", errors="replace") if out.is_file() else ""
        for name, content in {**files.contents, out.name: text}.items():
            # the name of a run's file may hold what is no text
            coded = content.encode(errors="replace") if isinstance(content, str) else content
            write_whole(out.parent / name, coded)
        for name in re.findall(r'(?:href|src)="((?:figures|tables)/[^"/]+)"', old):
            if unquote(name) not in files.contents:
                (out.parent / unquote(name)).unlink(missing_ok=True)
    except OSError as error:
        why = error.strerror or error
        raise BadParameter(f"the report cannot be written to {out}: {why}") from None


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
    runs: Sequence[Run],
    comparing: bool = False,
    baselines: bool = True,
    conversations: int = 0,
) -> tuple[str, Files, Mapping[str, Exception]]:
    """Return the page about these runs, the files that it links to, and what could not be made."""
    files, page = Files(), Parts()
    found = _content(runs, page, files, comparing, baselines, conversations)
    css, _, _ = _LOADER.get_source(_environment(), "page.css")
    shown = found | {"css": Markup(css), "version": __version__}
    return _environment().get_template("page.html.j2").render(shown), files, page.failed


def body(file: Records, links: str, scoring: str | None = None, baselines: bool = True) -> Markup:
    """Return the report about a run as a part of a page that a server shows.

    Its numbers, points and names are links to the decisions behind them, below the address `links`,
    such as ``/run/ab12/``. It asks for nothing but `css`, has no styles of its own and no files.

    Raises:
        ReportExtraMissing: matplotlib is not installed.
        UnknownName: there is no such edition.
    """
    canvas.require()
    if scoring is not None and scoring not in editions():
        raise unknown("scoring", scoring, editions())
    run = read(file, scoring or edition_of(file.config))
    found = _content([run], Parts(), None, False, baselines, links=links)
    return Markup(_environment().get_template("body.html.j2").render(found))


def css() -> str:
    """Return the style sheet of `body`."""
    return _LOADER.get_source(_environment(), "page.css")[0]


_LOADER = PackageLoader("llm_games.benchmarks.show.page", ".")


def _environment() -> Environment:
    return Environment(autoescape=True, undefined=StrictUndefined, loader=_LOADER)


def _content(
    runs: Sequence[Run],
    page: Parts,
    files: Files | None,
    comparing: bool,
    baselines: bool,
    conversations: int = 0,
    links: str = "",
) -> dict[str, Any]:
    """Return what the template shows; without `files` no figure and no table is written to one."""
    several = len(runs) > 1
    parts = []
    for i, run in enumerate(runs):
        twins = (runs[1:] if i == 0 else runs[:1]) if comparing else []
        drawer = Drawer(page, files, run.stem * several, Links(links, run) if links else None)
        part = _part(run, f"r{i}", drawer, page, baselines, twins)
        said = partial(sample, run, conversations)
        parts.append(part | {"conversations": page.made("The conversations", said, lambda why: [])})
    boards: list[dict[str, Any]] = []
    notes: list[str] = []
    for paper in papers():
        if paper.scoring:
            make = partial(paper.scoring.board, [_of(run, paper) for run in runs])
            if board := page.made(f"{paper.title}'s board", make, partial(Section, paper.title)):
                boards.append(_bare(page.section(board), f"board-{len(boards)}"))
        if any(paper in part["papers"] for part in parts):
            judging = (paper.scoring, paper.measure, *paper.measures.values())
            notes += [one.note for one in judging if one]
    sections = ((part["run"], section) for part in parts for section in part["sections"])
    grids = [(run, grid) for run, found in sections for grid in found["about"].grids if grid.name]
    own = ("scores", "payoffs", "skill", "spent")
    grids += [(part["run"], part[name]) for name in own for part in parts if part[name].rows]

    whole: list[Comparisons] = []

    def compared(name: str, other: Run) -> ResultTable:
        whole.append(compare(runs[0].file, other.file, runs[0].edition, name, len(runs) - 1))
        return whole[-1].grid()

    named = list(zip(ascii_uppercase, runs, strict=False)) if comparing else []
    differences = [
        page.table(f"The comparison of {name} with A", partial(compared, name, run))
        for name, run in named[1:]
    ]
    both = partial(runs_compared.sketches, dict(named), whole)
    overlays = page.made("The figures of the comparison", both, lambda why: [])
    drawer = Drawer(page, files, "", Links(links, runs[0]) if links else None)
    first = page.made("The headline", partial(_headline, runs, parts), lambda why: [])
    heads = drawer.drawn(first, "headline", "headline")
    found = {
        "title": f"{len(runs)} runs" if several else runs[0].file.title,
        "headline": "Scores" if headline.scored(runs) else "Results",
        "heads": heads,
        "parts": parts,
        "most": ROWS,
        "skilled": any(
            part[k].rows or part[k].note for part in parts for k in ("payoffs", "skill")
        ),
        "named": named,
        "compared": [grid for grid in differences if grid.columns],
        "overlays": drawer.drawn(overlays, "comparison", "comparison"),
        "exported": csv_files.tables(runs, grids, files, page) if files else [],
        "boards": boards,
        "scored": notes,
        "mark": f"{float(MARK):.0%}",
        "failed": page.failed,
    }
    return found | {"contents": list(_contents(found))}


def _headline(runs: Sequence[Run], parts: Sequence[Mapping[str, Any]]) -> list[Sketch]:
    return headline.sketches(runs, [part["references"] for part in parts])


def _contents(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name of each section of the page, after the id that leads there."""
    several = len(found["parts"]) > 1
    yield "scores", found["headline"]
    if found["compared"]:
        yield "comparison", "Comparison"
    yield from ((board["id"], board["about"].title) for board in found["boards"])
    for part in found["parts"]:
        run = f" ({part['run'].stem})" * several
        yield from ((one["id"], one["about"].title + run) for one in part["sections"])
        if part["long"]:
            yield f"{part['id']}-games", f"Moves at each setting{run}"
        else:
            yield from ((game["id"], game["label"] + run) for game in part["games"])
    if found["skilled"]:
        yield "skill", "Payoffs and measures of skill"
    yield "players", "Players and their replies"
    yield "conversations", "Conversations"
    yield "spent", "Tokens and time"
    if found["exported"]:
        yield "files", "Files"


def _part(
    run: Run,
    prefix: str,
    drawer: Drawer,
    page: Parts,
    baselines: bool,
    twins: Sequence[Run] = (),
) -> dict[str, Any]:
    """Return what the page shows of a run: what belongs to papers, and what every run has.

    `twins` are the runs that it is compared with.
    """
    owners = {game.label: owner(game) for game in run.games}
    mine = [paper for paper in papers() if paper in owners.values()]
    scored = [label for label, paper in owners.items() if paper and paper.scoring]
    read: dict[str, Any] = {}  # what papers make their parts from, by title

    drawn, long = drawer.drawn, len(run.games) > LONG

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
            sections.append({"id": at, "about": about, "plots": plots, "pairs": pairs})

    def reliable() -> list[Section]:
        try:
            grids = reliability(run.games, run.edition)
        except BadParameter as error:  # what the file calls success is not said of all its games
            return [Section("Reliability", f"{error}.")]
        return [Section("Reliability", grids=grids)] if grids else []

    made = page.made(
        "Talk", lambda: talk_measures.section(run, twins), lambda why: [Section("Talk", why)]
    )
    made += page.made("Reliability", reliable, lambda why: [Section("Reliability", why)])
    sections += [_bare(page.section(one), f"{prefix}-own-{k}") for k, one in enumerate(made)]

    def moves(game: RecordedGame) -> Sequence[Sketch]:
        if not game.played or long:
            return []
        paper = owners[game.label]
        special = paper.moves(read[paper.title], game) if paper and paper.title in read else []
        return special or figures.moves(game, len(run.by_game()[game.name]) == 1)

    def plots_of(game: RecordedGame, prefix: str) -> list[dict[str, Any]]:
        return page.made(
            f"The figures of “{game.label}”",
            lambda: drawn(moves(game), game.label, prefix, game.label),
            lambda why: [{"title": "Moves", "half": False} | undrawn(why)],
        )

    wholes = {label for label, paper in owners.items() if paper and paper.whole}
    alone = [game for game in run.games if game.label not in wholes]

    def beside() -> dict[str, list[Reference]]:
        return {g.label: references(g, run.edition) for g in alone if baselines}

    known = page.made("The reference rows", beside, lambda why: {})

    def scores() -> ResultTable:
        return page_tables.score_grid(run, scored, _total(run, mine), known)

    def skill() -> ResultTable:
        return skill_grid(replace(run, games=alone if baselines else []))

    games = [
        {"id": at, "label": game.label, "about": _about(game), "plots": plots_of(game, at)}
        for i, game in enumerate(run.games)
        for at in [f"{prefix}-{i}"]
    ]
    return {
        "id": prefix,
        "run": run,
        "references": known,
        "papers": mine,
        "sections": sections,
        "links": drawer.links,
        "long": long,
        "scores": page.table("The table of scores", scores),
        "payoffs": page.table("The table of payoffs", lambda: page_tables.payoff_grid(run)),
        "skill": page.table("The table of measures of skill", skill),
        "usage": page.table("The table of tokens and time", lambda: page_tables.usage_grid(run)),
        "spent": page.table("The table of seats", lambda: page_tables.spent_grid(run)),
        "facts": _facts(run),
        "warnings": _warnings(run),
        "games": games,
        "players": page.table("The table of players", lambda: page_tables.player_grid(run)),
        "calls": page.table("The table of other calls", lambda: page_tables.other_grid(run)),
        "special": page.table(
            "The table of special replies", lambda: page_tables.special_grid(run)
        ),
        "replies": drawn(figures.latency(run), "latency", f"{prefix}-latency"),
    }


def _bare(about: Section, at: str) -> dict[str, Any]:
    """Return a section without figures."""
    return {"id": at, "about": about, "plots": [], "pairs": []}


def _unmade(paper: Paper, why: str) -> list[Section]:
    """Return what stands in place of a paper's sections."""
    return [Section(paper.title, why)]


def _of(run: Run, paper: Paper) -> Run:
    """Return a run with those of its games that belong to a paper."""
    return replace(run, games=[game for game in run.games if owner(game) is paper])


def _total(run: Run, mine: Sequence[Paper]) -> MeanCell | None:
    """Return Overall; nothing unless all games of a benchmark have a score."""
    for paper in mine:
        if paper.scoring:
            found = paper.scoring.counted(_of(run, paper), run.edition)
            if mean := paper.scoring.overall(found):
                return mean
    return None


def _about(game: RecordedGame) -> str:
    given = ", ".join(f"{name} = {value}" for name, value in game.params.items())
    seats = " and ".join(f"{game.seats.count(name)} × {name}" for name in game.players)
    shown = f"{len(game.played)} {'run' if len(game.played) == 1 else 'runs'} shown"
    about = f"{game.rules.title} ({game.rules.source}): {seats}; {shown}"
    claim, sat = claimed(game.rules), [row.seating for row in game.played.rows]
    about += f"; {given or 'default settings'}." + f" Rational here is {claim}." * bool(claim)
    if "best_response" in {name.partition(":")[0] for name in game.seats}:
        about += f" The best response is that {handed(game.name).assumed}."
    about = " ".join([about, *caveats(game.rules)])
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
        ("played for", "–" if run.seconds is None else page_tables.seconds(run.seconds)),
    ]
    if (spent := run.spent.total).calls:
        tokens = f"{spent.tokens_in:,} / {spent.tokens_out:,}"
        facts += [("calls", f"{spent.calls:,}"), ("tokens in / out", tokens)]
        facts += [("cost", f"{spent.money:.4f}")] if run.priced else []
        facts += [("not in these", unsure(spent))] if spent.unknown else []
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
