"""Reading decisions from a run's file, some episodes at a time: only what came since last time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.regret import deviation, stacked
from llm_games.benchmarks.judge.player_skill import reason
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.schema import TALK, EpisodeRow, Plain
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
    """One integer for a decision, in the order of episodes, steps and seats."""
    return (episode << (STEP_BITS + SEAT_BITS)) | (step << SEAT_BITS) | seat


@dataclass
class EpisodeProgress:
    """The next step to read and the moves so far; `state` of moves played again, for the round."""

    step: int = 0
    moves: int = 0
    round: int = 1
    tells_round: bool = False
    state: Any = None


class Chunk(NamedTuple):
    """Columns of decisions by name: of each episode at most `limit` steps from the `first` on."""

    columns: dict[str, Array]
    rows: Mapping[int, EpisodeRow]
    first: dict[int, int]
    limit: int


@dataclass
class IndexReading:
    """Progress of reading; `codes` by kind and name; `without` says why games have no regret."""

    codes: dict[str, dict[str, int]] = field(
        default_factory=lambda: {"game": {}, "player": {}, "outcome": {}}
    )
    progress: dict[int, EpisodeProgress] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)
    without: dict[str, str] = field(default_factory=dict)
    _rules: dict[Any, Rulebook | None] = field(default_factory=dict)
    _by_moves: set[int] = field(default_factory=set)

    def listed(self, kind: str) -> list[str]:
        """Names by code; at once, since another thread may read on."""
        return list(self.codes[kind])

    def _code(self, kind: str, name: str) -> int:
        return self.codes[kind].setdefault(name, len(self.codes[kind]))

    # -- decisions -----------------------------------------------------------------------------

    def chunk(
        self, records: Records, episodes: Sequence[EpisodeRow], limit: int
    ) -> tuple[Chunk, bool]:
        """Read so many whole steps of episodes, without regret; say whether there are more."""
        rows = {row.id: row for row in sorted(episodes, key=lambda row: row.id)}
        first = {e: self.progress.setdefault(e, EpisodeProgress()).step for e in rows}
        decided = records.decided_since(first, limit)
        for episode, step, *_ in decided:
            self.progress[episode].step = step + 1
        asked = records.asked_since(first, limit)
        whole = {e: self.progress[e].step - first[e] for e in rows}
        ends = {e for e, r in rows.items() if r.status in ("done", "void") and whole[e] < limit}
        asked_after = [a for a in asked if a[0] in ends and a[1] >= self.progress[a[0]].step]
        columns = self._columns(rows, decided, asked_after)
        _count(columns, asked)
        self._count_rounds(Chunk(columns, rows, first, limit), records)
        self.ended |= ends
        return Chunk(columns, rows, first, limit), any(count == limit for count in whole.values())

    def _columns(
        self,
        rows: Mapping[int, EpisodeRow],
        decided: Sequence[tuple[Any, ...]],
        asked_after: Sequence[tuple[Any, ...]],
    ) -> dict[str, Array]:
        size, count = len(decided), len(decided) + len(asked_after)
        arrays: dict[str, Array] = {k: np.zeros(count, kind) for k, kind in COLUMNS.items()}
        columns = [*zip(*decided, strict=True)] or [()] * 7
        rest = [*zip(*asked_after, strict=True)] or [()] * 8
        for i, name in enumerate(("episode", "step", "seat")):
            arrays[name][:] = np.array(columns[i] + rest[i], np.int64)
        code_of = self._code
        arrays["outcome"][:] = [code_of("outcome", o or "unread") for o in columns[3] + rest[7]]
        arrays["broke"][:size] = columns[4]
        arrays["payoff"][:size] = columns[5]
        arrays["phase"][:size] = [TALKED if phase == TALK else MOVE for phase in columns[6]]
        arrays["phase"][size:] = AFTER
        arrays["regret"][:] = np.nan
        wide = {name: arrays[name].astype(np.int64) for name in ("episode", "step", "seat")}
        arrays["key"][:] = key_of(**wide)
        for row, indices in _by_episode(arrays, rows):
            arrays["game"][indices] = code_of("game", row.game.label)
            seats = np.array([code_of("player", name) for name in row.seats])
            arrays["player"][indices] = seats[arrays["seat"][indices]]
        return arrays

    # -- rounds --------------------------------------------------------------------------------

    def _count_rounds(self, chunk: Chunk, records: Records) -> None:
        """Fill in the rounds: as moves follow each other, or as record and rules have them."""
        columns = chunk.columns
        by_rules = {e: s for e, s in chunk.first.items() if not self._by_moves_alone(chunk.rows[e])}
        happened = records.happened_since(by_rules, chunk.limit) if by_rules else ()
        recorded = {(episode, step): record for episode, step, record in happened}
        for row, indices in _by_episode(columns, chunk.rows):
            progress, phases = self.progress[row.id], columns["phase"][indices]
            steps, starts, step_numbers = np.unique(
                columns["step"][indices], return_index=True, return_inverse=True
            )
            if row.id not in by_rules:
                rounds = progress.moves + np.cumsum(phases[starts] == MOVE)
                rounds += phases[starts] == TALKED  # it stands before the next round's move
                progress.moves += int((phases[starts] == MOVE).sum())
                progress.round = max(progress.moves, 1)
            else:
                pairs = zip(steps.tolist(), phases[starts].tolist(), strict=True)
                rules = self._rules_of(row)
                steps_taken = ((recorded.get((row.id, step)), phase) for step, phase in pairs)
                rounds = np.array([self._round(row, rules, *taken) for taken in steps_taken])
            rounds[phases[starts] == AFTER] = progress.round
            columns["round"][indices] = rounds[step_numbers.reshape(-1)]

    def _by_moves_alone(self, row: EpisodeRow) -> bool:
        rules = self._rules_of(row)
        return rules is None or isinstance(rules, Rounds) or row.game.id in self._by_moves

    def _round(
        self, row: EpisodeRow, rules: Rulebook | None, record: Plain | None, phase: int
    ) -> int:
        """The round of a step, the next of its episode."""
        progress, talk = self.progress[row.id], phase == TALKED
        if record is None or rules is None:
            return progress.round
        progress.tells_round = progress.tells_round or isinstance(record.get("round"), int)
        if talk and (progress.tells_round or not progress.moves):  # before the next round's moves
            return progress.round + 1 if progress.moves else 1
        if progress.tells_round:
            progress.round = int(record.get("round", progress.round))
        elif row.game.id in self._by_moves:
            progress.round = progress.moves + 1
        else:
            progress.round = self._played(row, rules, record, talk)
        progress.moves += not talk
        return progress.round

    def _played(self, row: EpisodeRow, rules: Rulebook, record: Plain, talk: bool) -> int:
        """The round by today's rules, with the recorded moves played again."""
        progress = self.progress[row.id]
        try:
            if progress.state is None:
                given = row.rules().core_chance(row.given)
                progress.state = rules.reset(row.seed, given=given)
            number = int(progress.state.round) + 1
            if not talk:
                progress.state, _ = rules.step(progress.state, np.asarray(record["actions"]))
            return number
        except Exception as error:  # of a file of an older edition, or a damaged one
            self.without[row.game.label] = f"its rounds are counted by moves: {reason(error)}"
            self._by_moves.add(row.game.id)
            return progress.moves + 1

    # -- regret --------------------------------------------------------------------------------

    def judge(self, records: Records, chunks: Sequence[Chunk]) -> list[Array]:
        """The regret of each chunk; moves by the same rules are judged at once."""
        groups: dict[int, tuple[Rulebook, str, dict[int, Plain]]] = {}
        for chunk in chunks:
            for episode, step, record in records.happened_since(chunk.first, chunk.limit):
                row = chunk.rows[episode]
                rules = self._rules_of(row)
                if rules is not None and record.get("phase") != TALK:
                    group = groups.setdefault(id(rules), (rules, row.game.label, {}))
                    group[2][key_of(episode, step)] = record
        names = "key", "seat", "phase"
        keys, seats, phases = (np.concatenate([c.columns[name] for c in chunks]) for name in names)
        regret, steps = np.full(len(keys), np.nan), keys >> SEAT_BITS << SEAT_BITS
        for rules, label, recorded in groups.values():
            moves = np.array(sorted(recorded))
            lost = self._regret(rules, label, [recorded[move] for move in moves.tolist()])
            nearest = np.minimum(np.searchsorted(moves, steps), len(moves) - 1)
            rows = np.flatnonzero((moves[nearest] == steps) & (phases == MOVE))
            regret[rows] = lost[seats[rows], nearest[rows]]
        if point := records.branch_point:  # what stood before counts in no mean
            regret[np.concatenate([c.columns["step"] for c in chunks]) < point["step"]] = np.nan
        return np.split(regret, np.cumsum([len(chunk.columns["key"]) for chunk in chunks])[:-1])

    def _regret(self, rules: Rulebook, label: str, records: Sequence[Plain]) -> Array:
        """Regret in hindsight ``(players, steps)``, NaN if unknown."""
        try:
            return deviation(rules, stacked(records)).regret
        except Exception as error:  # a game too large to be solved, or a file of an older edition
            self.without[label] = reason(error)
            return np.full((rules.players, len(records)), np.nan)

    def _rules_of(self, row: EpisodeRow) -> Rulebook | None:
        """Without talk; None if there are none here."""
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
    columns: Mapping[str, Array], rows: Mapping[int, EpisodeRow]
) -> Iterator[tuple[EpisodeRow, Array]]:
    if not len(columns["episode"]):
        return
    order = np.argsort(columns["episode"], kind="stable")
    episodes = columns["episode"][order]
    starts = np.flatnonzero(np.diff(episodes, prepend=-1))
    for low, high in zip(starts, [*starts[1:], len(order)], strict=True):
        yield rows[int(episodes[low])], order[low:high]


def _count(columns: dict[str, Array], asked: Sequence[tuple[Any, ...]]) -> None:
    if not asked or not len(columns["key"]):
        return
    episode, step, seat, *sums, _ = (np.array(column) for column in zip(*asked, strict=True))
    keys = key_of(episode.astype(np.int64), step.astype(np.int64), seat.astype(np.int64))
    order = np.argsort(columns["key"])
    positions = np.searchsorted(columns["key"], keys, sorter=order)
    inside = positions < len(order)
    rows = order[positions[inside]]
    same = columns["key"][rows] == keys[inside]
    for name, values in zip(("calls", "tokens_in", "tokens_out", "latency"), sums, strict=True):
        columns[name][rows[same]] = values[inside][same]
