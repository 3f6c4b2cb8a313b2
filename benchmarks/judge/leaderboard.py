"""Many runs in one board: who came to what at the same tables, beside players that follow a rule.

A table is a game with its parameters, and whoever sits there besides the player that is judged. A
player is what was configured, one row however many runs it is in; values of the same chance are
averaged, so that a run that is given twice counts once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.players import rule_of
from llm_games.baselines.regret import conditional
from llm_games.benchmarks.judge import paper
from llm_games.benchmarks.judge.means import MeanCell
from llm_games.benchmarks.judge.paper import Measure
from llm_games.benchmarks.judge.references import Reference, overalls, references
from llm_games.benchmarks.judge.result_table import Label, ResultTable
from llm_games.benchmarks.judge.results import PAYOFF, Series, Statistic, measured_by, score_by
from llm_games.benchmarks.judge.scenario_scores import BACKGROUND
from llm_games.benchmarks.record.recorded_games import MARK, RecordedGame, Run, filled_in
from llm_games.errors import BadParameter

REFERENCES = "rational", "random"
PAID, SCORE, MEASURED = "payoff", "score", "measured"  # statistics by their names


@dataclass
class Entry:
    """What one player came to at one table: values by episodes' seeds, several of the same chance.

    `benchmarks`: papers by whose settings they were played; `filled` of `decisions` by rules.
    """

    values: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    runs: dict[str, None] = field(default_factory=dict)
    benchmarks: set[str] = field(default_factory=set)
    decisions: int = 0
    filled: int = 0

    def add(self, seed: int, **values: float | None) -> None:
        for name, value in values.items():
            if value is not None:
                self.values.setdefault(name, {}).setdefault(seed, []).append(value)

    def of(self, name: str) -> list[float]:
        return [float(np.mean(same)) for same in self.values.get(name, {}).values()]

    @property
    def marked(self) -> bool:
        return filled_in(self.filled, self.decisions) > MARK


class LeaderboardLine(NamedTuple):
    """A line of a table: `judged` is the score, or what the paper's measure gives; `n` chances."""

    player: str
    judged: MeanCell | None
    payoff: MeanCell | None
    n: int
    reference: bool = False
    about: str = ""
    marked: bool = False
    runs: Sequence[str] = ()


@dataclass(eq=False)
class SeatedTable:
    """One table: `game` is the first run's, `others` all who sit besides players ranked `alone`."""

    game: RecordedGame
    edition: str
    label: str
    others: Counter[str]
    alone: bool
    entries: dict[str, Entry] = field(default_factory=dict)

    @cached_property
    def measure(self) -> Measure | None:
        return paper.measure_of(self.game)

    @property
    def judged_by(self) -> str:
        """The name of what players are ranked by here."""
        numbers: list[tuple[Sequence[float], Sequence[float]]]
        numbers = [(entry.of(SCORE), entry.of(MEASURED)) for entry in self.entries.values()]
        numbers = numbers or [(row.scores, row.measured) for row in self.references]
        if any(scores for scores, _ in numbers):
            return SCORE
        measured = self.measure and any(values for _, values in numbers)
        return self.measure.name if self.measure and measured else PAID

    @cached_property
    def references(self) -> list[Reference]:
        rule_players = references(self.game, self.edition)
        return [reference for reference in rule_players if reference.player in REFERENCES]

    @property
    def judged(self) -> Statistic:
        if self.judged_by == SCORE or self.measure is None:
            return score_by(self.edition)
        return measured_by(self.measure)

    def mean(self, entry: Entry, statistic: Statistic, seats: int) -> MeanCell | None:
        """Return a player's mean, each chance counted once."""
        ends = statistic.ends(self.game.rules, seats)
        return Series(statistic, entry.of(statistic.name), ends).mean

    def rows(self, names: Mapping[str, str]) -> list[LeaderboardLine]:
        """Return who sat here and the references, the best first."""
        rules = self.game.rules.core
        seats = max(rules.players - self.others.total(), 1) if self.alone else 1
        lines = [
            LeaderboardLine(
                names[key],
                self.mean(entry, self.judged, seats),
                self.mean(entry, PAYOFF, seats),
                len(entry.values.get(PAID, {})),
                marked=entry.marked,
                runs=[*entry.runs],
            )
            for key, entry in self.entries.items()
        ]
        for reference in self.references:
            lines.append(
                LeaderboardLine(
                    player=reference.player,
                    judged=reference.series[self.judged.name].mean,
                    payoff=reference.own_series[PAID].mean,
                    n=reference.n,
                    reference=True,
                    about=reference.about,
                )
            )
        by_measure = self.measure if self.judged_by not in (SCORE, PAID) else None
        sign = 1 if by_measure and by_measure.better == "lower" else -1

        def rank(row: LeaderboardLine) -> tuple[bool, float]:
            cell = row.payoff if self.judged_by == PAID else row.judged
            return cell is None, 0.0 if cell is None else sign * cell.mean

        return sorted(lines, key=rank)


@dataclass(frozen=True)
class Board:
    """The tables of some runs, players' names by key, and which players have no row, and why."""

    tables: list[SeatedTable]
    names: dict[str, str]
    left_out: list[str]

    def overall(self) -> list[tuple[str, list[tuple[str, MeanCell, int, bool]]]]:
        """Name, Overall, fewest chances, reference of who played a whole benchmark, by rank."""
        overalls_by_title = []
        of = {id(t): set().union(*(e.benchmarks for e in t.entries.values())) for t in self.tables}
        for title in dict.fromkeys(title for titles in of.values() for title in sorted(titles)):
            tables = [table for table in self.tables if title in of[id(table)]]
            rows = []
            for key, name in self.names.items():
                entries = [(t.game.name, t.entries.get(key)) for t in tables]
                scores = [(game, entry.of(SCORE)) for game, entry in entries if entry]
                if mean := paper.overall(scores):
                    rows.append((name, mean, min(len(values) for _, values in scores), False))
            beside = overalls((t.game.name, t.references) for t in tables) if rows else {}
            for name, mean in beside.items():
                numbers = (row.n for t in tables for row in t.references if row.player == name)
                rows.append((name, mean, min(numbers), True))
            if rows:
                overalls_by_title.append((title, sorted(rows, key=lambda row: -row[1].mean)))
        return overalls_by_title

    def grids(self) -> list[ResultTable]:
        """Return the board as tables: each benchmark's Overall, then one for each table."""
        grids = []
        for title, rows in self.overall():
            heads = {"player": "", "Overall": ".1f", "n": ">"}
            lines = [(name, mean, f"{n}{' offline' * offline}") for name, mean, n, offline in rows]
            aside = [number for number, row in enumerate(rows) if row[3]]
            grids.append(ResultTable(heads, lines, f"Overall, {title}", "overall", beside=aside))
        grids += [self._grid(table) for table in self.tables]
        notes = "\n".join(self._notes())
        last = grids.pop() if grids else ResultTable({}, [])
        return [*grids, replace(last, note=notes)]

    def _grid(self, table: SeatedTable) -> ResultTable:
        """Return who came to what at one table, the best first."""
        rows, by = table.rows(self.names), table.judged
        heads = {table.label: ""} | ({} if table.judged_by == PAID else {by.title: by.form})
        heads |= {PAYOFF.name: PAYOFF.form, "n": ">", "runs": ""}
        lines = [
            [
                Label(row.player, row.about) if row.reference else row.player + " !" * row.marked,
                *([] if table.judged_by == PAID else [row.judged]),
                row.payoff,
                f"{row.n} offline" if row.reference else str(row.n),
                ", ".join(row.runs),
            ]
            for row in rows
        ]
        aside = [number for number, row in enumerate(rows) if row.reference]
        return ResultTable(heads, lines, table.label, "leaderboard", beside=aside)

    def _notes(self) -> Iterator[str]:
        if not self.tables:
            yield "No episode of these runs is done yet."
            yield from self.left_out
            return
        yield (
            "n: independent chances, over which means and intervals are. Payoffs are of a seat "
            "that the player took. Reference rows are players that follow a rule, played offline "
            "in the same seats. To tell two players apart, compare them pair by pair: llm-games "
            "compare A.db B.db"
        )
        measures = {t.measure.name: t.measure for t in self.tables if t.measure}
        shown = {table.judged_by: None for table in self.tables}
        yield from (measures[name].note for name in shown if name in measures)
        judged = (table for table in self.tables if table.judged_by != PAID)
        yield from paper.apart(paper.meant(table.game, table.edition) for table in judged)
        for table in self.tables:
            for reference in table.references:
                if reference.why:
                    yield f"{table.label}: no {reference.player} reference: {reference.why}"
            if why := conditional(table.game.rules, table.game.planned.get("given")):
                yield f"{table.label}: {why}"
        if any(entry.marked for table in self.tables for entry in table.entries.values()):
            yield "! more than 5 % of the decisions were filled in"
        yield from self.left_out

    def plain(self) -> dict[str, Any]:
        return {
            "overall": [
                {"benchmark": title, "player": name, "n": n, "reference": reference} | mean.plain()
                for title, rows in self.overall()
                for name, mean, n, reference in rows
            ],
            "games": [
                {
                    **{"label": table.label, "game": table.game.name},
                    **{"params": table.game.params, "beside": dict(table.others)},
                    "judged_by": table.judged_by,
                    "rows": [
                        row._asdict()
                        | {"judged": row.judged and row.judged.plain()}
                        | {"payoff": row.payoff and row.payoff.plain()}
                        for row in table.rows(self.names)
                    ],
                }
                for table in self.tables
            ],
            "left_out": self.left_out,
        }


def leaderboard(runs: Iterable[Run], edition: str) -> Board:
    """Return the board of some runs by an edition of the scores; they are open while it is used.

    Rows are of language models, learners and users' players; of rule players where nobody else sat.
    """
    tables: list[SeatedTable] = []
    seats_of: dict[str, Mapping[str, Any]] = {}
    shown: dict[str, str] = {}
    gone: dict[str, None] = {}
    for run in runs:
        for game in run.games:
            judged = _judged(game)
            keys = [_key(seat) for seat in _planned(game)]
            ranked = [i for i in judged if not run.players[game.seats[i]].toy]
            for name in dict.fromkeys(game.seats[i] for i in judged if i not in ranked):
                chance = run.players[name].kind == "mock"
                what = "chance" if chance else "the embedded model"
                gone[f"{name} in {run.stem} has no row: it is {what}, a stand-in."] = None
            if not game.done:
                continue
            table = _table(tables, game, {keys[i] for i in judged}, keys, edition)
            for i in ranked:
                seats_of.setdefault(keys[i], _planned(game)[i])
                shown.setdefault(keys[i], game.seats[i])
            _fill(table, run, game, keys, ranked)
    names = _names(seats_of, shown)
    return Board(_told_apart(tables), names, [*gone])


def _planned(game: RecordedGame) -> list[Mapping[str, Any]]:
    """Return the seats of a game as configured; of a file that does not say, by their names."""
    return list(game.planned.get("seats") or ({"player": name} for name in game.seats))


def _key(seat: Mapping[str, Any]) -> str:
    """Return what makes a player the same in two runs: all that is configured but its name."""
    server = (seat.get("client") or {}).get("base_url")
    about = {"player": seat["player"], "settings": seat.get("settings") or {}, "server": server}
    return json.dumps(about, sort_keys=True, default=str)


def _judged(game: RecordedGame) -> list[int]:
    """Return the places of those who could have a row: of all where only rule players sat."""
    indices = [i for i, name in enumerate(game.seats) if not name.startswith(BACKGROUND)]
    kinds = {i: str(_planned(game)[i]["player"]).partition(":")[0] for i in indices}
    return [i for i in indices if rule_of(kinds[i], game.name) is None] or indices


def _table(
    tables: list[SeatedTable],
    game: RecordedGame,
    judged: set[str],
    keys: Sequence[str],
    edition: str,
) -> SeatedTable:
    """Return the table that a game was played at, a new one if there is none yet."""
    alone = len(judged) == 1
    named = (str(seat["player"]) for seat in _planned(game))
    others = Counter(n for n, key in zip(named, keys, strict=True) if not (alone and key in judged))
    for table in tables:
        same = table.game.name == game.name and table.game.full == game.full
        planned, other = table.game.planned, game.planned
        about = all(planned.get(key) == other.get(key) for key in ("given", "max_steps"))
        if same and about and (table.others, table.alone) == (others, alone):
            return table
    tables.append(SeatedTable(game, edition, game.label, others, alone))
    return tables[-1]


def _fill(
    table: SeatedTable, run: Run, game: RecordedGame, keys: Sequence[str], judged: Sequence[int]
) -> None:
    alone = len({keys[position] for position in judged}) == 1
    owner, benchmarks = paper.owner(game), set[str]()
    if alone and owner and owner.scoring:  # papers by whose settings it was played
        counted = owner.scoring.counted(replace(run, games=[game]), run.edition)
        benchmarks = {owner.title} if game.name in counted else set()
    statistics = [score_by(run.edition), measured_by(table.measure)] if alone else []
    statistics.append(PAYOFF)
    for key in dict.fromkeys(keys[position] for position in judged):
        positions = [position for position in judged if keys[position] == key]
        entry = table.entries.setdefault(key, Entry())
        entry.runs[run.stem] = None
        entry.benchmarks |= benchmarks
        for episode in game.done:
            numbers = {statistic.name: statistic.of(episode, positions) for statistic in statistics}
            entry.add(episode.row.seed, **numbers)
            for seat, decisions, filled in episode.file.decided(episode.row.id):
                if episode.row.seating[seat] in positions:
                    entry.decisions += decisions
                    entry.filled += filled


def _told_apart(tables: list[SeatedTable]) -> list[SeatedTable]:
    """Give tables of one label others: who else sits there, the parameters, or else a number."""
    for about in (_beside, _params, lambda table: f"({tables.index(table) + 1})"):
        counts = Counter(table.label for table in tables)
        for table in tables:
            if counts[table.label] > 1:
                table.label = f"{table.label} {about(table)}".strip()
    return tables


def _beside(table: SeatedTable) -> str:
    others = " and ".join(f"{count} × {name}" for name, count in table.others.items())
    return f"{'beside' if table.alone else 'of'} {others}" if others else ""


def _params(table: SeatedTable) -> str:
    return ", ".join(f"{name} = {value}" for name, value in table.game.params.items())


def _names(seats: Mapping[str, Mapping[str, Any]], shown: Mapping[str, str]) -> dict[str, str]:
    """Return a name for each player; of those of one name, with the settings that differ."""
    counts = Counter(shown.values())
    names = {}
    for key, name in shown.items():
        alike = [seats[other] for other in shown if shown[other] == name]
        settings = [seat.get("settings") or {} for seat in alike]
        mine = seats[key].get("settings") or {}
        other = {k: v for k, v in mine.items() if any(seat.get(k) != v for seat in settings)}
        differing = ", ".join(f"{k}={v}" for k, v in other.items())
        names[key] = f"{name} ({differing})" if counts[name] > 1 and differing else name
    taken: Counter[str] = Counter()
    for key, name in names.items():
        taken[name] += 1
        names[key] = name if taken[name] == 1 else f"{name} ({taken[name]})"
    return names


def files(paths: Iterable[Path]) -> list[Path]:
    """Files of runs, once each: those given, and folders' ``.db``; BadParameter: there is none."""
    run_files: dict[Path, None] = {}
    for path in paths:
        inside = sorted(path.glob("*.db")) if path.is_dir() else [path]
        if not inside:
            raise BadParameter(f"{path} has no .db files; give the files of runs, or their folder")
        run_files |= dict.fromkeys(inside)
    return [*run_files]
