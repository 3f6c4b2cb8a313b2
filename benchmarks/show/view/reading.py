"""Reading decisions from a run's file, some episodes at a time: only what came since last time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.deviation import deviation, stacked
from llm_games.benchmarks.judge.player_skill import reason
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.rows import TALK, EpisodeRow, Plain
from llm_games.benchmarks.show.view.filter import PHASES
from llm_games.errors import LLMGamesError
from llm_games.rounds import Rounds
from llm_games.rulebook import Array, Rulebook

COLUMNS: dict[str, Any] = {
    "key": np.int64,  # see `key_of`
    "episode": np.int32,
    "step": np.int32,
    "seat": np.int32,
    "round": np.int32,
    "game": np.int16,
    "player": np.int16,
    "outcome": np.int16,
    "phase": np.int8,
    "broke": np.bool_,
    "payoff": np.float64,
    "regret": np.float64,
    "calls": np.int32,
    "tokens_in": np.int32,
    "tokens_out": np.int32,
    "latency": np.float32,
}
SEAT_BITS, STEP_BITS = 17, 23  # 100,000 seats; more steps than any run has
MOVE, TALKED, AFTER = range(len(PHASES))


def key_of(episode: Any, step: Any, seat: Any = 0) -> Any:
    """Return one integer for a decision, in the order of episodes, steps and seats."""
    return (episode << (STEP_BITS + SEAT_BITS)) | (step << SEAT_BITS) | seat


def place_of(key: int) -> tuple[int, int, int]:
    """Return episode, step and seat of a key."""
    step = key >> SEAT_BITS
    return step >> STEP_BITS, step & ((1 << STEP_BITS) - 1), key & ((1 << SEAT_BITS) - 1)


@dataclass
class Where:
    """How far an episode has been read: its next step, and its moves so far.

    `told`: the game's record tells the round; `state`: of the moves played again, where only this
    does.
    """

    step: int = 0
    moves: int = 0
    round: int = 1
    told: bool = False
    state: Any = None


class Names:
    """Places of names in lists, in the order in which they were met."""

    def __init__(self, **known: Sequence[str]) -> None:
        self.lists: dict[str, list[str]] = {k: list(v) for k, v in known.items()}
        self._places = {k: {n: i for i, n in enumerate(v)} for k, v in self.lists.items()}

    def place(self, kind: str, name: str) -> int:
        """Return where a name stands, at the end if it is new."""
        places = self._places.setdefault(kind, {})
        if name not in places:
            places[name] = len(places)
            self.lists.setdefault(kind, []).append(name)
        return places[name]

    def known(self, kind: str, name: str) -> int:
        """Return where a name stands, -1 if nowhere."""
        return self._places.get(kind, {}).get(name, -1)


class Chunk(NamedTuple):
    """Decisions that were read together: columns by name, and the steps that they are of.

    Those are so `many` steps at most from the `first` on of each episode.
    """

    columns: dict[str, Array]
    rows: Mapping[int, EpisodeRow]
    first: dict[int, int]
    many: int


@dataclass
class IndexReading:
    """How far a run has been read, and what is needed to go on.

    `without` says of which games, by label, no regret is known, and why.
    """

    names: Names = field(default_factory=lambda: Names(game=(), player=(), outcome=()))
    where: dict[int, Where] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    without: dict[str, str] = field(default_factory=dict)
    _rules: dict[Any, Rulebook | None] = field(default_factory=dict)
    _by_moves: set[int] = field(default_factory=set)

    # -- decisions -----------------------------------------------------------------------------

    def chunk(
        self, records: Records, episodes: Sequence[EpisodeRow], many: int
    ) -> tuple[Chunk, bool]:
        """Read so `many` steps of some episodes but for their regret; say whether there are more.

        The episodes must have been read before: what is done by then is complete. A step is
        recorded together with all its decisions.
        """
        rows = {row.id: row for row in sorted(episodes, key=lambda row: row.id)}
        first = {episode: self.where.setdefault(episode, Where()).step for episode in rows}
        decided = records.decided_since(first, many)
        for episode, step, *_ in decided:
            self.where[episode].step = step + 1
        asked = records.asked_since(first, many)
        whole = {e: self.where[e].step - first[e] for e in rows}
        ends = {e for e, r in rows.items() if r.status in ("done", "void") and whole[e] < many}
        after = [row for row in asked if row[0] in ends and row[1] >= self.where[row[0]].step]
        found = self._columns(rows, decided, after)
        _count(found, asked)
        self._count_rounds(Chunk(found, rows, first, many), records)
        self.ended |= ends
        return Chunk(found, rows, first, many), any(count == many for count in whole.values())

    def _columns(
        self,
        rows: Mapping[int, EpisodeRow],
        decided: Sequence[tuple[Any, ...]],
        after: Sequence[tuple[Any, ...]],
    ) -> dict[str, Array]:
        """Return the columns of decisions, and of what was asked once a game was over."""
        size, many = len(decided), len(decided) + len(after)
        found: dict[str, Array] = {k: np.zeros(many, kind) for k, kind in COLUMNS.items()}
        columns = [*zip(*decided, strict=True)] or [()] * 7
        rest = [*zip(*after, strict=True)] or [()] * 8
        for i, name in enumerate(("episode", "step", "seat")):
            found[name][:] = np.array(columns[i] + rest[i], np.int64)
        place = self.names.place
        found["outcome"][:] = [place("outcome", o or "unread") for o in columns[3] + rest[7]]
        found["broke"][:size] = columns[4]
        found["payoff"][:size] = columns[5]
        talk = np.array([phase == TALK for phase in columns[6]], np.bool_)
        found["phase"][:size] = np.where(talk, TALKED, MOVE)
        found["phase"][size:] = AFTER
        found["regret"][:] = np.nan
        wide = {name: found[name].astype(np.int64) for name in ("episode", "step", "seat")}
        found["key"][:] = key_of(**wide)
        for row, some in _by_episode(found, rows):
            found["game"][some] = place("game", row.game.label)
            seats = np.array([place("player", name) for name in row.seats])
            found["player"][some] = seats[found["seat"][some]]
        return found

    # -- rounds --------------------------------------------------------------------------------

    def _count_rounds(self, chunk: Chunk, records: Records) -> None:
        """Fill in the rounds: as moves follow each other, or as record and rules have them."""
        found = chunk.columns
        told = {e: at for e, at in chunk.first.items() if not self._by_moves_alone(chunk.rows[e])}
        known = {
            (episode, step): record
            for episode, step, record in (records.happened_since(told, chunk.many) if told else ())
        }
        for row, some in _by_episode(found, chunk.rows):
            where, phases = self.where[row.id], found["phase"][some]
            steps, starts, of = np.unique(
                found["step"][some], return_index=True, return_inverse=True
            )
            if row.id not in told:
                rounds = where.moves + np.cumsum(phases[starts] == MOVE)
                rounds += phases[starts] == TALKED  # it stands before the next round's move
                where.moves += int((phases[starts] == MOVE).sum())
                where.round = max(where.moves, 1)
            else:
                pairs = zip(steps.tolist(), phases[starts].tolist(), strict=True)
                rules = self._rules_of(row)
                rounds = np.array(
                    [self._round(row, rules, known.get((row.id, s)), phase) for s, phase in pairs]
                )
            rounds[phases[starts] == AFTER] = where.round
            found["round"][some] = rounds[of.reshape(-1)]

    def _by_moves_alone(self, row: EpisodeRow) -> bool:
        rules = self._rules_of(row)
        counted = rules is None or isinstance(rules, Rounds)
        return counted or row.game.id in self._by_moves

    def _round(
        self, row: EpisodeRow, rules: Rulebook | None, record: Plain | None, phase: int
    ) -> int:
        """Return the round of a step, the next of its episode."""
        where, talk = self.where[row.id], phase == TALKED
        if record is None or rules is None:
            return where.round
        where.told = where.told or isinstance(record.get("round"), int)
        if talk and (where.told or not where.moves):  # it stands before the next round's moves
            return where.round + 1 if where.moves else 1
        if where.told:
            where.round = int(record.get("round", where.round))
        elif row.game.id in self._by_moves:
            where.round = where.moves + 1
        else:
            where.round = self._played(row, rules, record, talk)
        where.moves += not talk
        return where.round

    def _played(self, row: EpisodeRow, rules: Rulebook, record: Plain, talk: bool) -> int:
        """Return what the rules say when the recorded moves are played again."""
        where = self.where[row.id]
        try:
            if where.state is None:
                where.state = rules.reset(row.seed, given=row.given)
            number = int(where.state.round) + 1
            if not talk:
                where.state, _ = rules.step(where.state, np.asarray(record["actions"]))
            return number
        except Exception as error:  # of a file of an older edition, or a damaged one
            self.without[row.game.label] = f"its rounds are counted by moves: {reason(error)}"
            self._by_moves.add(row.game.id)
            return where.moves + 1

    # -- regret --------------------------------------------------------------------------------

    def judge(self, records: Records, chunks: Sequence[Chunk]) -> Iterator[tuple[int, Array]]:
        """Yield for each chunk its place among them and the regret of its decisions.

        That of all moves by the same rules is worked out at once, for most of it is the same.
        """
        groups: dict[int, tuple[Rulebook, str, list[tuple[int, int]], list[Plain]]] = {}
        for number, chunk in enumerate(chunks):
            for episode, step, record in records.happened_since(chunk.first, chunk.many):
                row = chunk.rows[episode]
                rules = self._rules_of(row)
                if rules is not None and record.get("phase") != TALK:
                    group = groups.setdefault(id(rules), (rules, row.game.label, [], []))
                    group[2].append((number, key_of(episode, step)))
                    group[3].append(record)
        lost = {key: self._regret(*group) for key, group in groups.items()}
        for number, chunk in enumerate(chunks):
            found = chunk.columns
            regret = np.full(len(found["key"]), np.nan)
            steps = found["key"] >> SEAT_BITS
            for key, (_, _, places, _) in groups.items():
                mine = [(at >> SEAT_BITS, i) for i, (of, at) in enumerate(places) if of == number]
                if not mine:
                    continue
                known, columns = np.array(sorted(mine), np.int64).T
                at = np.minimum(np.searchsorted(known, steps), len(known) - 1)
                there = np.flatnonzero((known[at] == steps) & (found["phase"] == MOVE))
                regret[there] = lost[key][found["seat"][there], columns[at[there]]]
            yield number, regret

    def _regret(self, rules: Rulebook, label: str, _: Any, records: Sequence[Plain]) -> Array:
        """Return what seats could have gained in hindsight ``(players, steps)``, NaN if unknown."""
        try:
            return deviation(rules, stacked(records)).regret
        except Exception as error:  # a game too large to be solved, or a file of an older edition
            self.without[label] = reason(error)
            return np.full((rules.players, len(records)), np.nan)

    def _rules_of(self, row: EpisodeRow) -> Rulebook | None:
        """Return the rules of an episode, without talk; None if there are none here."""
        alike = row.game.id, *row.seating
        if alike not in self._rules:
            try:
                params = row.game.id, repr(row.params)
                if params not in self._rules:
                    self._rules[params] = row.rules().core
                self._rules[alike] = self._rules[params]
            except LLMGamesError as error:
                self.without[row.game.label] = reason(error)
                self._rules[alike] = None
        return self._rules[alike]


def _by_episode(
    found: Mapping[str, Array], rows: Mapping[int, EpisodeRow]
) -> Iterator[tuple[EpisodeRow, Array]]:
    """Yield the episodes of some decisions, and where these are."""
    if not len(found["episode"]):
        return
    order = np.argsort(found["episode"], kind="stable")
    episodes = found["episode"][order]
    starts = np.flatnonzero(np.diff(episodes, prepend=-1))
    for low, high in zip(starts, [*starts[1:], len(order)], strict=True):
        yield rows[int(episodes[low])], order[low:high]


def _count(found: dict[str, Array], asked: Sequence[tuple[Any, ...]]) -> None:
    """Fill in calls, tokens and seconds, by decision."""
    if not asked or not len(found["key"]):
        return
    episode, step, seat, *sums, _ = (np.array(column) for column in zip(*asked, strict=True))
    keys = key_of(episode.astype(np.int64), step.astype(np.int64), seat.astype(np.int64))
    order = np.argsort(found["key"])
    at = np.searchsorted(found["key"], keys, sorter=order)
    inside = at < len(order)
    rows = order[at[inside]]
    same = found["key"][rows] == keys[inside]
    for name, values in zip(("calls", "tokens_in", "tokens_out", "latency"), sums, strict=True):
        found[name][rows[same]] = values[inside][same]
