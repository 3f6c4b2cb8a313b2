"""What a paper's room ``papers/<name>/page.py`` hands over as `PAPER`, and finding it."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, NamedTuple, TypeVar, get_type_hints

from llm_games.benchmarks.judge.means import FREE, Ends, MeanCell
from llm_games.benchmarks.judge.result_table import ResultTable
from llm_games.benchmarks.judge.scenario_scores import is_scenario
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame, Run, games
from llm_games.errors import BadParameter, unknown
from llm_games.rulebook import Rulebook

PAPERS = Path(__file__).parents[1] / "papers"
ROOMS = "llm_games.benchmarks.papers"  # more folders on its path are more rooms
SCORED = (0.0, 100.0)  # the least and the highest score
Record = Mapping[str, Any]
T = TypeVar("T")
Draw = Callable[..., str]  # takes axes (and ``game``), draws, returns what explains it
Rate = Callable[[Sequence[RecordedGame], Path, Sequence[str], int, int], ResultTable]

THIRD, HALF = (4.7, 3.0), (7.0, 3.4)  # inches of plots, three or two side by side on a wide page


class Sketch(NamedTuple):
    """A figure to be drawn; `draw` gets the axes and returns the sentence that explains it."""

    title: str
    draw: Draw
    size: tuple[float, float] = HALF


class Section(NamedTuple):
    """A part of a page: its heading, notes before and after, tables, figures, and both in pairs."""

    title: str
    note: str = ""
    grids: Sequence[ResultTable] = ()
    sketches: Sequence[Sketch] = ()
    pairs: Sequence[tuple[Sketch, ResultTable | None]] = ()
    end: str = ""


class Scoring(NamedTuple):
    """How a paper scores an episode, 0 to 100, with a `note` that explains it.

    `games` make up the benchmark, in the order of its tables; of the `editions` of the formulas the
    first is the default, the second stands beside it. `score` takes the rules, the records of the
    steps and the edition. `overall` gives the mean over the benchmark from the scores by game,
    `counted` the scores of those games of a run that are played by its settings, `board` the part
    of a page that sets runs beside the published results. `spread` gives the standard deviation of
    one run's score in published runs by these rules; `meant` says what scores measure.
    """

    games: tuple[str, ...]
    editions: tuple[str, ...]
    score: Callable[[Rulebook, Sequence[Record], str], float | None]
    overall: Callable[[Mapping[str, Sequence[float]]], MeanCell | None]
    counted: Callable[[Run, str], Mapping[str, Sequence[float]]]
    board: Callable[[Sequence[Run]], Section | None]
    note: str
    spread: Callable[[Rulebook, str], float | None] = lambda rules, edition: None
    meant: Callable[[str], Mapping[str, str]] = lambda edition: {}


class Measure(NamedTuple):
    """What a paper judges a game by that has no score: of a finished episode, None if undefined.

    `better` is ``higher`` or ``lower``; `form` writes a mean. `ends` gives the least and the
    highest value by a game's rules, infinite without; fewer than `least` episodes have no interval.
    `overall` is the mean over a run's games, from the values of each.
    """

    name: str
    meaning: str
    better: str
    of: Callable[[RecordedEpisode], float | None]
    form: str = ".1f"
    ends: Callable[[Any], Ends] = lambda rules: FREE
    least: int = 2
    overall: Callable[[Sequence[Sequence[float]]], MeanCell | None] = lambda columns: None

    @property
    def note(self) -> str:
        few = f" Fewer than {self.least} runs have no interval." * (self.least > 2)
        name = self.name[0].upper() + self.name[1:]
        return f"{name}: {self.meaning}; {self.better} is better.{few}"


class Paper(NamedTuple):
    """What a paper's room hands over.

    A game of a run belongs to the first paper that `owns` it. Of a run that has only its own games,
    `read` gives what its `sections` of a page and the `moves`, the figures of one played game, are
    made from. `drawn` are the plots of a game's moves, whoever owns it; `actions` say what the mean
    of some seats' actions is, by game; `rate` writes or reads people's rating forms. `measure`
    stands where there is no `scoring`, `measures` by game; `tables` stand in a terminal in place of
    payoffs. Where the games of a run are one `whole`, they stand in place of all others.
    """

    title: str
    owns: Callable[[RecordedGame], bool]
    sections: Callable[[Any], list[Section]]
    moves: Callable[[Any, RecordedGame], list[Sketch]] = lambda run, game: []
    read: Callable[[Run], Any] = lambda run: run
    scoring: Scoring | None = None
    drawn: Callable[[RecordedGame], Sequence[tuple[str, Draw]]] = lambda game: ()
    actions: Mapping[str, str] = {}
    rate: Rate | None = None
    measure: Measure | None = None
    measures: Mapping[str, Measure] = {}
    first: bool = False  # whether it is asked before others what it owns
    tables: Callable[[Sequence[RecordedGame]], Sequence[ResultTable]] = lambda games: ()
    whole: bool = False

    def judged_by(self) -> list[str]:
        return [measure.name for measure in (self.measure, *self.measures.values()) if measure]


@cache
def papers() -> tuple[Paper, ...]:
    """Return all papers, in the order in which they are asked what they own."""
    folders = import_module(ROOMS).__path__
    pages = [f"{ROOMS}.{room.name}.page" for room in iter_modules(folders) if room.ispkg]
    modules_papers = (import_module(page).PAPER for page in pages if find_spec(page))
    return tuple(sorted(modules_papers, key=lambda paper: not paper.first))


def owner(game: RecordedGame) -> Paper | None:
    """Return the paper that a game of a run belongs to; a branch, a part of a game, to none."""
    if game.planned.get("branch"):
        return None
    return next((paper for paper in papers() if paper.owns(game)), None)


def only_owner(games: Sequence[RecordedGame]) -> Paper | None:
    owners = {paper.title: paper for paper in map(owner, games) if paper}
    alone = len(owners) == 1 and all(map(owner, games))
    return next(iter(owners.values())) if alone else None


def measure_of(game: RecordedGame) -> Measure | None:
    """Return what a game of a run is judged by if it has no score; None: nothing."""
    paper = owner(game)
    return paper.measures.get(game.name, paper.measure) if paper else None


def scorings() -> list[Scoring]:
    return [paper.scoring for paper in papers() if paper.scoring]


def editions() -> tuple[str, ...]:
    """Return the editions of scores, the default first."""
    return tuple(dict.fromkeys(name for scoring in scorings() for name in scoring.editions))


def edition_of(config: Mapping[str, Any]) -> str:
    return str(config.get("scoring") or editions()[0])


def score(rules: Rulebook, records: Sequence[Record], edition: str) -> float | None:
    """Return the score of a finished episode by a known edition; None where no paper has one."""
    if edition not in editions():
        raise unknown("edition", edition, editions())
    edition_scorings = (scoring for scoring in scorings() if edition in scoring.editions)
    scores = (scoring.score(rules, records, edition) for scoring in edition_scorings)
    return next((score for score in scores if score is not None), None)


def score_of(episode: RecordedEpisode, edition: str) -> float | None:
    """Return the score of a finished episode; None of a branch, or a scenario."""
    scored = any(episode.rules.name in scoring.games for scoring in scorings())
    part = is_scenario(episode.planned) or episode.planned.get("branch")
    if part or not scored:  # records of a long game are read for nothing
        return None
    return score(episode.rules, episode.records, edition)


def known(values: Sequence[float]) -> list[float]:
    """Return the numbers that there are."""
    return [value for value in values if not math.isnan(value)]


def meant(game: RecordedGame, edition: str) -> str:
    """Say what the game's score or measure says of play, and what its payoffs say; "" without."""
    paper = owner(game)
    measure = measure_of(game)
    name, what = (measure.name, measure.meaning) if measure else ("score", "")
    if paper and paper.scoring:
        what = paper.scoring.meant(edition).get(game.name, "")
    goal = game.rules.core.goal(0)
    earned = f"the {goal.unit} that a seat earns" if goal.kind in COUNTED else "what a seat is paid"
    return f"{game.label}: {name} measures {what}, payoffs {earned}" if what else ""


def apart(meanings: Iterable[str]) -> list[str]:
    """Return one line of what several games are judged by and paid for (`meant`), if any are."""
    kinds: dict[str, str] = {}
    for each in filter(None, meanings):
        kinds.setdefault(each.partition(": ")[2], each)
    listed = "; ".join(kinds.values())
    return [f"What judges play and what is paid need not agree: {listed}."] if kinds else []


COUNTED = "total", "final", "count"  # kinds of goals whose unit is what is paid


def overall(scores: Sequence[tuple[str, Sequence[float]]]) -> MeanCell | None:
    """Return the mean over a benchmark of scores by game, if each of its games is there once."""
    names = sorted(name for name, _ in scores)
    fits = (scoring for scoring in scorings() if sorted(scoring.games) == names)
    return next((scoring.overall(dict(scores)) for scoring in fits), None)


def lacking(scores: Sequence[tuple[str, Sequence[float]]]) -> list[str]:
    """Return which games of a whole benchmark have no score, so that it has no Overall."""
    names = sorted(name for name, _ in scores)
    whole = any(sorted(scoring.games) == names for scoring in scorings())
    return [name for name, game_scores in scores if whole and not game_scores]


def action(game: str) -> str:
    """Return what the mean of some seats' actions in a game is; "" where it means nothing."""
    return next((paper.actions[game] for paper in papers() if game in paper.actions), "")


def rated(file: Records, folder: Path, judges: Sequence[str], count: int, seed: int) -> ResultTable:
    """Write or read the `judges`' rating forms of the paper that a run belongs to.

    `count` games (0: all) are drawn with `seed`; BadParameter: no paper has a form.
    """
    for paper in papers():
        rated_games = [game for game in games(file) if owner(game) is paper]
        if paper.rate and rated_games:
            return paper.rate(rated_games, folder, judges, count, seed)
    titles = ", ".join(paper.title for paper in papers() if paper.rate)
    raise BadParameter(f"{file.path} has no game that people rate; there is a form of: {titles}")


def data(room: str, name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file of a paper's room, by column."""
    with (files(room) / f"{name}.csv").open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def printed(room: str, name: str, row: type[T], **columns: str) -> tuple[T, ...]:
    """Return such rows as named tuples; `columns`: those that are not called as their fields."""
    read: dict[type, Callable[[str], Any]] = {bool: "yes".__eq__}
    kinds = [(columns.get(key, key), read.get(k, k)) for key, k in get_type_hints(row).items()]
    return tuple(row(*(kind(line[key]) for key, kind in kinds)) for line in data(room, name))
