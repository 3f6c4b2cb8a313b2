"""The page itself: everything put together by one template that escapes all text."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from string import ascii_uppercase
from typing import Any
from urllib.parse import unquote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from llm_games.baselines.players import handed
from llm_games.baselines.regret import caveats, claimed
from llm_games.baselines.seat_rotation import uneven
from llm_games.benchmarks.judge import graded_answers, talk_measures, type_tables
from llm_games.benchmarks.judge.branch_outcomes import branch_outcomes
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
from llm_games.benchmarks.judge.surface_shares import surface_grid
from llm_games.benchmarks.record.plain_text import harmless
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import MARK, RecordedGame, Run, read
from llm_games.benchmarks.record.spending import unsure
from llm_games.benchmarks.show.page import (
    canvas,
    csv_files,
    figures,
    headline,
    page_tables,
    people_figures,
    runs_compared,
)
from llm_games.benchmarks.show.page.conversations import sample
from llm_games.benchmarks.show.page.csv_files import Files
from llm_games.benchmarks.show.page.drawer import Drawer, undrawn
from llm_games.benchmarks.show.page.links import Links
from llm_games.benchmarks.show.page.parts import Parts, ReportIncomplete
from llm_games.benchmarks.show.page.skill_tables import skill_grid
from llm_games.benchmarks.show.tables import branch_table
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

    The page loads nothing; beside it are ``figures/`` as SVG and PNG and ``tables/`` as CSV.
    `out` is the HTML file, or a folder for ``report.html``; `scoring` an edition of the scores, by
    default the one each run asks for. `comparing`: with the first, episode by episode. Without
    `baselines` it has no reference rows, types and measures of skill, which take most of its time.
    `only`: labels of games. `conversations`: how many of each player's decisions are shown in full.

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
    _check_scoring(scoring)
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
    """Make the folder of a report; raises BadParameter if nothing can be written there."""
    canvas.require()
    folder = out.parent if out.suffix == ".html" else out
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise BadParameter(f"the report cannot be written to {out}: {error.strerror}") from None


def html(
    runs: Sequence[Run], comparing: bool = False, baselines: bool = True, conversations: int = 0
) -> tuple[str, Files, Mapping[str, Exception]]:
    """Return the page about these runs, the files that it links to, and what could not be made."""
    files, page = Files(), Parts()
    context = _content(runs, page, files, comparing, baselines, conversations)
    shown = context | {"css": Markup(css()), "version": __version__}
    text = _environment().get_template("page.html.j2").render(shown)
    return harmless(text), files, page.failed


def body(file: Records, links: str, scoring: str | None = None, baselines: bool = True) -> Markup:
    """The report as a part of a served page, with links below an address such as ``/run/ab12/``."""
    canvas.require()
    _check_scoring(scoring)
    run = read(file, scoring or edition_of(file.config))
    context = _content([run], Parts(), None, False, baselines, links=links)
    return Markup(harmless(_environment().get_template("body.html.j2").render(context)))


def _check_scoring(scoring: str | None) -> None:
    if scoring is not None and scoring not in editions():
        raise unknown("scoring", scoring, editions())


def css() -> str:
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
    """The template's context; without `files` no figure and no table is written to one."""
    several = len(runs) > 1
    parts = []
    for i, run in enumerate(runs):
        drawer = Drawer(page, files, run.stem * several, Links(links, run) if links else None)
        twins = (runs[1:] if i == 0 else runs[:1]) if comparing else []
        parts.append(RunPart(f"r{i}", run, drawer, baselines, twins, conversations))
    boards, notes = _boards(runs, parts, page)
    sections = [(part.run, section["about"]) for part in parts for section in part.sections]
    grids = [(run, grid) for run, section in sections for grid in section.grids if grid.name]
    for name in ("scores", "payoffs", "skill", "spent"):
        grids += [(part.run, grid) for part in parts if (grid := getattr(part, name)).rows]
    named = list(zip(ascii_uppercase, runs, strict=False)) if comparing else []
    differences, sketches = _comparison(dict(named), page)
    drawer = Drawer(page, files, "", Links(links, runs[0]) if links else None)
    make = partial(headline.sketches, runs, [part.references for part in parts])
    first = page.part("The headline", make, lambda why: [])
    context = {
        "title": f"{len(runs)} runs" if several else runs[0].file.title,
        "headline": "Scores" if headline.scored(runs) else "Results",
        "heads": drawer.drawn(first, "headline", "headline"),
        "parts": parts,
        "most": ROWS,
        "skilled": any(g.rows or g.note for part in parts for g in (part.payoffs, part.skill)),
        "named": named,
        "compared": differences,
        "overlays": drawer.drawn(sketches, "comparison", "comparison"),
        "exported": csv_files.tables(runs, grids, files, page) if files else [],
        "boards": boards,
        "scored": notes,
        "mark": f"{float(MARK):.0%}",
        "failed": page.failed,
    }
    return context | {"contents": list(_contents(context))}


def _boards(
    runs: Sequence[Run], parts: Sequence[RunPart], page: Parts
) -> tuple[list[dict[str, Any]], list[str]]:
    """Boards of papers over all runs, and notes on how their games are judged."""
    boards: list[dict[str, Any]] = []
    notes: list[str] = []
    for paper in papers():
        if paper.scoring:
            make = partial(paper.scoring.board, [_of(run, paper) for run in runs])
            if board := page.part(f"{paper.title}'s board", make, partial(Section, paper.title)):
                boards.append(_bare(page.section(board), f"board-{len(boards)}"))
        if any(paper in part.papers for part in parts):
            judging = (paper.scoring, paper.measure, *paper.measures.values())
            notes += [criterion.note for criterion in judging if criterion]
    return boards, notes


def _comparison(runs: Mapping[str, Run], page: Parts) -> tuple[list[ResultTable], list[Sketch]]:
    """Tables of what each run has more than A, and the figures of that."""
    comparisons: list[Comparisons] = []

    def differences(name: str) -> ResultTable:
        files, edition = (runs["A"].file, runs[name].file), runs["A"].edition
        comparisons.append(compare(*files, edition, name, len(runs) - 1))
        return comparisons[-1].grid()

    grids = [
        page.table(f"The comparison of {name} with A", partial(differences, name))
        for name in [*runs][1:]
    ]
    make = partial(runs_compared.sketches, runs, comparisons)
    sketches = page.part("The figures of the comparison", make, lambda why: [])
    return [grid for grid in grids if grid.columns], sketches


def _contents(context: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    several = len(context["parts"]) > 1
    yield "scores", context["headline"]
    if context["compared"]:
        yield "comparison", "Comparison"
    yield from ((board["id"], board["about"].title) for board in context["boards"])
    for part in context["parts"]:
        run = f" ({part.run.stem})" * several
        yield from ((section["id"], section["about"].title + run) for section in part.sections)
        if part.long:
            yield f"{part.id}-games", f"Moves at each setting{run}"
        else:
            yield from ((game["id"], game["label"] + run) for game in part.games)
    if context["skilled"]:
        yield "skill", "Payoffs and measures of skill"
    yield "players", "Players and their replies"
    yield "conversations", "Conversations"
    yield "spent", "Tokens and time"
    if context["exported"]:
        yield "files", "Files"


class RunPart:
    """A run on a page; `twins` are the runs that it is compared with."""

    def __init__(
        self,
        name: str,
        run: Run,
        drawer: Drawer,
        baselines: bool,
        twins: Sequence[Run],
        conversations: int,
    ) -> None:
        page = drawer.page
        self.id, self.run, self.drawer, self.links = name, run, drawer, drawer.links
        self.long = len(run.games) > LONG
        self.facts, self.warnings = _facts(run), _warnings(run)
        self.owners = {game.label: owner(game) for game in run.games}
        self.papers = [paper for paper in papers() if paper in self.owners.values()]
        self.readings: dict[str, Any] = {}  # what papers make their parts from, by title
        wholes = {label for label, paper in self.owners.items() if paper and paper.whole}
        alone = [game for game in run.games if baselines and game.label not in wholes]
        self.sections = [*self._paper_sections(), *self._other_sections(twins, alone)]
        self.references: dict[str, list[Reference]] = page.part(
            "The reference rows",
            lambda: {game.label: references(game, run.edition) for game in alone},
            lambda why: {},
        )
        self.games = [self._game(f"{name}-{i}", game) for i, game in enumerate(run.games)]
        self.scores = page.table("The table of scores", self._scores)
        table, grids = page.table, page_tables
        outcomes = chain.from_iterable(map(branch_outcomes, run.games))
        self.branched = table("The table of the branch", lambda: branch_table([*outcomes]))
        self.payoffs = table("The table of payoffs", partial(grids.payoff_grid, run))
        skill = partial(skill_grid, replace(run, games=alone))
        self.skill = table("The table of measures of skill", skill)
        self.usage = table("The table of tokens and time", partial(grids.usage_grid, run))
        self.spent = table("The table of seats", partial(grids.spent_grid, run))
        self.players = table("The table of players", partial(grids.player_grid, run))
        self.calls = table("The table of other calls", partial(grids.other_grid, run))
        self.labels = table("The table of labels", partial(grids.labels_grid, run))
        self.special = table("The table of special replies", partial(grids.special_grid, run))
        self.replies = drawer.drawn(figures.latency(run), "latency", f"{name}-latency")
        make_sample = partial(sample, run, conversations)
        self.conversations = page.part("The conversations", make_sample, lambda why: [])

    def _paper_sections(self) -> Iterator[dict[str, Any]]:
        page, drawn = self.drawer.page, self.drawer.drawn
        for i, paper in enumerate(self.papers):
            make = partial(self._read, paper)
            sections = page.part(paper.title, make, partial(_unmade, paper.title))
            for k, about in enumerate(map(page.section, sections)):
                anchor, pairs = f"{self.id}-paper-{i}-{k}", []
                for n, (sketch, grid) in enumerate(about.pairs):
                    name = f"{about.title} {sketch.title}".lower()
                    pairs.append((drawn([sketch], name, f"{anchor}-{n}"), grid))
                plots = drawn(about.sketches, about.title, anchor)
                yield {"id": anchor, "about": about, "plots": plots, "pairs": pairs}

    def _read(self, paper: Paper) -> list[Section]:
        self.readings[paper.title] = paper.read(_of(self.run, paper))
        return paper.sections(self.readings[paper.title])

    def _other_sections(
        self, twins: Sequence[Run], measured: Sequence[RecordedGame]
    ) -> Iterator[dict[str, Any]]:
        page = self.drawer.page
        make = {type_tables.TITLE: partial(type_tables.section, measured)}
        make["Talk"] = partial(talk_measures.section, self.run, twins)
        make["Reliability"] = partial(_reliability, self.run)
        make[graded_answers.TITLE] = partial(graded_answers.sections, self.run.games)
        make["Surface"] = partial(_surface, self.run)
        make[people_figures.TITLE] = partial(people_figures.sections, self.run, self.long)
        sections = (page.part(title, make[title], partial(_unmade, title)) for title in make)
        for k, section in enumerate(chain.from_iterable(sections)):
            about, anchor = page.section(section), f"{self.id}-own-{k}"
            plots = self.drawer.drawn(about.sketches, about.title, anchor)
            yield _bare(about, anchor) | {"plots": plots}

    def _game(self, anchor: str, game: RecordedGame) -> dict[str, Any]:
        plots = self.drawer.page.part(
            f"The figures of “{game.label}”",
            lambda: self.drawer.drawn(self._moves(game), game.label, anchor, game.label),
            lambda why: [{"title": "Moves", "half": False} | undrawn(why)],
        )
        return {"id": anchor, "label": game.label, "about": _about(game), "plots": plots}

    def _moves(self, game: RecordedGame) -> Sequence[Sketch]:
        if not game.played or self.long:
            return []
        paper = self.owners[game.label]
        reading = self.readings.get(paper.title) if paper else None
        special = paper.moves(reading, game) if paper and reading is not None else []
        return special or figures.moves(game, len(self.run.by_game()[game.name]) == 1)

    def _scores(self) -> ResultTable:
        scored = [label for label, paper in self.owners.items() if paper and paper.scoring]
        total = _total(self.run, self.papers)
        return page_tables.score_grid(self.run, scored, total, self.references)


def _reliability(run: Run) -> list[Section]:
    try:
        grids = reliability(run.games, run.edition)
    except BadParameter as error:  # what the file calls success is not said of all its games
        return [Section("Reliability", f"{error}.")]
    return [Section("Reliability", grids=grids)] if grids else []


def _surface(run: Run) -> list[Section]:
    grid = surface_grid(run.games, run.edition)
    return [Section("Surface", grids=[grid])] if grid else []


def _bare(about: Section, anchor: str) -> dict[str, Any]:
    return {"id": anchor, "about": about, "plots": [], "pairs": []}


def _unmade(title: str, why: str) -> list[Section]:
    return [Section(title, why)]


def _of(run: Run, paper: Paper) -> Run:
    return replace(run, games=[game for game in run.games if owner(game) is paper])


def _total(run: Run, mine: Sequence[Paper]) -> MeanCell | None:
    """Overall; None unless all games of a benchmark have a score."""
    scorings = ((paper, paper.scoring) for paper in mine if paper.scoring)
    means = (s.overall(s.counted(_of(run, paper), run.edition)) for paper, s in scorings)
    return next(filter(None, means), None)


def _about(game: RecordedGame) -> str:
    parameters = ", ".join(f"{name} = {value}" for name, value in game.params.items())
    seats = " and ".join(f"{game.seats.count(name)} × {name}" for name in game.players)
    shown = f"{len(game.played)} run{'s' * (len(game.played) != 1)} shown"
    about = f"{game.rules.title} ({game.rules.source}): {seats}; {shown}"
    claim, sat = claimed(game.rules), [row.seating for row in game.played.rows]
    about += f"; {parameters or 'default settings'}." + f" Rational here is {claim}." * bool(claim)
    if "best_response" in {name.partition(":")[0] for name in game.seats}:
        about += f" The best response is that {handed(game.name).assumed}."
    about = " ".join([about, *caveats(game.rules)])
    why = uneven(game.rules, game.seats, sat)
    return about + f" Seats are not worth the same: {why}." * bool(why)


def _points(run: Run) -> list[Mapping[str, Any]]:
    return [game.planned["branch"] for game in run.games if game.planned.get("branch")]


def _facts(run: Run) -> list[tuple[str, str]]:
    file = run.file
    done = sum(row.status == "done" for row in run.rows)
    facts = [
        ("file", file.path.name),
        ("made", file.created[:19].replace("T", " ") + " UTC"),
        ("llm-games", file.package),
        ("players", ", ".join(run.players)),
        *(("branch of", point["origin"]) for point in _points(run)),
        *([("guests", ", ".join(map(str, guests)))] if (guests := file.guests()) else []),
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
    warnings = [
        f"This is a branch of {point['origin']} at {point['label']}, episode {point['number']}, "
        f"step {point['step']}: what stood before counts in no mean."
        for point in _points(run)
    ]
    if unfinished := sum(row.status in ("pending", "running") for row in run.rows):
        unplayed = f"{unfinished} of {len(run.rows)} episodes are left"
        warnings.append(f"This run is not finished: {unplayed}.")
    if void := [row for row in run.rows if row.status == "void"]:
        reasons = sorted({row.reason or "no reason given" for row in void})
        which = "1 void episode has" if len(void) == 1 else f"{len(void)} void episodes have"
        warnings.append(f"{which} no score: {'; '.join(reasons)}.")
    if series := [game.label for game in run.games if game.planned.get("series")]:
        warnings.append(
            f"Episodes of {', '.join(series)} follow from each other; intervals take them as "
            "independent, and are too narrow there."
        )
    return warnings
