"""Ratings of a player's whole game by people, on the form of Alympics.

Source: arXiv 2311.03220, section 4.5 and appendix A.5, paraphrased: six criteria, 1 to 5; the last
one only for players with a persona. A form is a CSV file next to a text file for each case.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from llm_games.benchmarks.judge.means import cell
from llm_games.benchmarks.judge.paper import Record, data
from llm_games.benchmarks.judge.result_table import OWN, PUBLISHED, ResultTable, columns
from llm_games.benchmarks.papers.alympics.metrics import Days
from llm_games.benchmarks.record.recorded_games import RecordedGame
from llm_games.errors import BadParameter, LLMGamesError
from llm_games.games.water_allocation.rules import WaterAllocation


class BadForm(LLMGamesError, ValueError):
    """A form that cannot be read; names the file, the line, the value and what is allowed."""


class Criterion(NamedTuple):
    """A criterion, and the meanings of the scores 1, 3 and 5; 2 and 4 lie between."""

    key: str
    name: str
    low: str
    middle: str
    high: str


CRITERIA = (
    Criterion("IU", "information utilisation",
              "ignores what is known at the moment, decides late",
              "uses the main facts, leaves some out",
              "uses everything that is known, always in time"),
    Criterion("LR", "logical reasoning",
              "close to random",
              "mostly infers from the facts",
              "reasons without a flaw and chooses best"),
    Criterion("SE", "strategic effectiveness",
              "simple and without effect",
              "works in some situations",
              "weighs many factors and gains an edge"),
    Criterion("AD", "adaptability",
              "never changes, or reacts late",
              "adjusts to some extent",
              "anticipates, and adapts freely"),
    Criterion("LP", "long-term planning",
              "lives from day to day",
              "plans, but not always far enough",
              "plans the whole game"),
    Criterion("IA", "identity alignment",
              "no trace of the persona",
              "fits the persona in general",
              "choices and reasons show the persona fully"),
)  # fmt: skip
"""The criteria in the order of the form."""


class Case(NamedTuple):
    """One player's game to be judged: a name, its story, and whether it had a persona."""

    name: str
    story: str
    persona: bool

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """The criteria of the case; the last one needs a persona."""
        return CRITERIA if self.persona else CRITERIA[:-1]


def case_of(
    name: str, rules: WaterAllocation, days: Days, replies: Sequence[str], seat: int
) -> Case:
    """Return one seat's game as a case: its story by day, with its replies."""
    me = rules.cast[seat]
    lines = [
        f"{me.name} needs {me.requirement} units of water a day and earns ${me.salary}.",
        f"Health starts at {rules.hp_start} of {rules.hp_max}; the game has {rules.days} days.",
    ]
    if rules.personas is not None:
        lines.insert(0, f"{me.name}: {' '.join(rules.personas[seat])}")
    for number, (day, reply) in enumerate(zip(days, replies, strict=True), start=1):
        if day["alive"][seat]:
            lines += ["", f"Day {number}: {day['supply']} units of water. {_bids(rules, day)}"]
            lines += [f"Reply: {reply.strip()}"] if reply.strip() else []
            money, dry = rules.money_in_words(day["balance"][seat]), day["dry"][seat]
            end = "and dies." if day["died"][seat] else f"{dry} dry days in a row."
            lines.append(f"After it {me.name} has ${money}, health {day['hp'][seat]}, {end}")
    return Case(name, "\n".join(lines), rules.personas is not None)


def _bids(rules: WaterAllocation, day: Record) -> str:
    columns = (rules.cast, day["actions"], day["won"], day["alive"])
    bids = []
    for resident, bid, won, alive in zip(*columns, strict=True):
        if alive:
            amount = "none" if bid < 0 else f"${rules.money_in_words(bid)}"
            bids.append(f"{resident.name} {amount}{' (served)' if won else ''}")
    return f"Bids: {', '.join(bids)}."


def cases(game: RecordedGame) -> list[Case]:
    """Return every seat of every finished episode as a case."""
    seat_cases = []
    for episode in game.done:
        replies = [[""] * len(episode.records) for _ in episode.seats]
        for attempt in episode.attempts():
            if attempt.kind == "move":
                replies[attempt.seat][attempt.step] = attempt.text
        for seat, texts in enumerate(replies):
            name = re.sub(r"[^\w.-]+", "-", f"{game.label}_{episode.row.number}_{seat}")
            seat_cases.append(case_of(name, episode.rules, episode.records, texts, seat))
    return seat_cases


def choose(cases: Sequence[Case], count: int, rng: np.random.Generator) -> list[Case]:
    """Draw `count` cases, half of them with a persona; BadParameter: odd, or too few of a kind."""
    kinds = [[case for case in cases if case.persona == persona] for persona in (False, True)]
    if count % 2 or count < 2 or any(len(kind) < count // 2 for kind in kinds):
        have = " and ".join(map(str, map(len, kinds)))
        raise BadParameter(
            f"count must be even and at most twice the cases of each kind (there are {have} "
            f"without and with persona), got {count!r}"
        )
    drawn = [kind[i] for kind in kinds for i in rng.permutation(len(kind))[: count // 2]]
    return [drawn[i] for i in rng.permutation(count)]


COLUMNS = ("judge", "case", "criterion", "meaning", "1", "3", "5", "score")


class Rating(NamedTuple):
    """One score, 1 to 5."""

    judge: str
    case: str
    criterion: str
    score: int


def write_form(folder: str | Path, judge: str, cases: Sequence[Case]) -> Path:
    """Write stories and one judge's empty form, its path returned; BadParameter: a bad name."""
    names = (judge, *(case.name for case in cases))
    if bad := [name for name in names if not re.fullmatch(r"[\w.-]+", name)]:
        raise BadParameter(f"names of judges and cases are letters, digits, . _ -, got {bad[0]!r}")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        (folder / f"{case.name}.txt").write_text(case.story + "\n", encoding="utf-8")
    path = folder / f"form_{judge}.csv"
    with path.open("w", encoding="utf-8", newline="") as lines:
        table = csv.writer(lines)
        table.writerow(COLUMNS)
        for case in cases:
            table.writerows([judge, case.name, *criterion, ""] for criterion in case.criteria)
    return path


def read_form(path: str | Path, cases: Sequence[Case]) -> list[Rating]:
    """Read a form that a judge has filled in.

    Raises BadForm: a column is missing; a case or criterion is unknown, not asked for, twice there
    or not there; or a score is not a whole number from 1 to 5.
    """
    with Path(path).open(encoding="utf-8-sig", newline="") as lines:
        table = csv.DictReader(lines)
        missing = {"judge", "case", "criterion", "score"} - set(table.fieldnames or ())
        if missing:
            raise BadForm(f"{path}: the columns {', '.join(sorted(missing))} are missing")
        ratings = []
        for row in table:
            score, line = (row["score"] or "").strip(), f"{path}, line {table.line_num}"
            if not re.fullmatch("[1-5]", score):
                raise BadForm(f"{line}: score must be a whole number from 1 to 5, got {score!r}")
            judge, case, criterion = (row[key] or "" for key in ("judge", "case", "criterion"))
            ratings.append(Rating(judge, case, criterion, int(score)))
    pairs = [(rating.case, rating.criterion) for rating in ratings]
    wanted = [(case.name, criterion.key) for case in cases for criterion in case.criteria]
    for pair in pairs:
        if pair not in wanted:
            raise BadForm(f"{path}: {' '.join(pair)} is not asked for")
        if pairs.count(pair) > 1:
            raise BadForm(f"{path}: {' '.join(pair)} is there twice")
    for pair in wanted:
        if pair not in pairs:
            raise BadForm(f"{path}: {' '.join(pair)} is missing")
    return ratings


class RatingSpread(NamedTuple):
    """Quartiles, mean and sample standard deviation (None for one score) of a criterion."""

    q1: float
    median: float
    q3: float
    mean: float
    sd: float | None


def spreads(ratings: Sequence[Rating]) -> dict[str, RatingSpread]:
    """Return the spread of each criterion's scores over all judges and cases."""
    by_criterion = {}
    for criterion in CRITERIA:
        scores = [rating.score for rating in ratings if rating.criterion == criterion.key]
        if scores:
            q1, median, q3 = np.quantile(scores, [0.25, 0.5, 0.75]).tolist()
            mean, sd = cell(scores)[:2]
            by_criterion[criterion.key] = RatingSpread(q1, median, q3, mean, sd)
    return by_criterion


def published() -> dict[str, dict[str, RatingSpread]]:
    """Return the paper's spreads: of ``model`` players, and of ``human`` self-ratings."""
    by_players: dict[str, dict[str, RatingSpread]] = {}
    for row in data(__package__, "ratings"):
        numbers = (float(row[key]) for key in RatingSpread._fields)
        by_players.setdefault(row["players"], {})[row["criterion"]] = RatingSpread(*numbers)
    return by_players


def rate(
    games: Sequence[RecordedGame],
    folder: Path,
    judges: Sequence[str],
    count: int = 0,
    seed: int = 1,
) -> ResultTable:
    """Write judges' forms, or read those there are, and return scores beside the paper's.

    `count` cases (0: all) are drawn with `seed`. Raises as `read_form`, `write_form`, `choose`.
    """
    chosen = [case for game in games for case in cases(game)]
    chosen = choose(chosen, count, np.random.default_rng(seed)) if count else chosen
    ratings, empty = [], []
    for judge in judges:
        path = folder / f"form_{judge}.csv"
        if path.exists():
            ratings += read_form(path, chosen)
        else:
            empty.append(str(write_form(folder, judge, chosen)))
    sides = {OWN: spreads(ratings)}
    sides |= {f"{PUBLISHED}, {kind} players": rows for kind, rows in published().items()}
    rows = [
        (criterion.name, source, *by_criterion[criterion.key])
        for criterion in CRITERIA
        for source, by_criterion in sides.items()
        if criterion.key in by_criterion
    ]
    head = columns("criterion, source", ", ".join(RatingSpread._fields))
    return ResultTable(head, rows, note=f"to be filled in: {', '.join(empty)}" if empty else "")
