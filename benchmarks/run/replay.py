"""Play a recorded run again without any model, and compare everything bit for bit.

Every seat does what is recorded of it. Where a language model sat, its prompts are written anew
from the states that are reached, with the recorded settings and the wording of today, and its
completions are read again. Not compared, since nothing determines it: tokens, latencies, models'
names and times; and a completion may differ where it is still read alike.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llm_games.baselines.players import llm_player
from llm_games.benchmarks.record.database import StoreError
from llm_games.benchmarks.record.editions import check_editions
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.rows import (
    OVERFLOW,
    TABLES,
    TALK,
    EpisodeRow,
    GameRow,
    StepRow,
    digest,
    move_of,
)
from llm_games.benchmarks.run.conduct import EpisodeRecord, planned, recalled, rows_of, void_reason
from llm_games.benchmarks.run.plan import PlannedGame, PlannedSeat, RunPlan
from llm_games.errors import LLMGamesError
from llm_games.questions import Shares, Speech
from llm_games.registry import game_class
from llm_games.rulebook import Rulebook, seated
from llm_games.view import View
from llm_games.wrappers.clients.base import ClientError, Completion, Request
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.play import play_table
from llm_games.wrappers.policy import Decision, Policy
from llm_games.wrappers.seats import DecisionPlace, Step

AROUND = 30  # characters that are shown on each side of where two texts part


@dataclass(frozen=True)
class Mismatch:
    """One thing that is recorded otherwise than it is played.

    `where` is a game, episode, step and seat, `what` a column and a place in it; `expected` is what
    playing again gives, `found` what the file says.
    """

    where: str
    what: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: expected {self.expected}, found {self.found}"


@dataclass
class Replay:
    """What a replay has looked at: numbers of episodes, steps and completions; differences."""

    episodes: int = 0
    steps: int = 0
    completions: int = 0
    differences: tuple[Mismatch, ...] = ()

    def summary(self) -> str:
        """Return one line on what was compared."""
        many = len(self.differences)
        return (
            f"{self.episodes} episodes, {self.steps} steps and {self.completions} completions "
            f"played again: {f'{many} differences' if many else 'all equal, bit for bit'}"
        )


def replay(records: Records, own: Mapping[str, Any] | None = None) -> Replay:
    """Play all that is recorded again and compare.

    In each episode, the first step that differs is the last that is compared: what follows may
    build upon it. `own` has by label the tools that the run was handed as objects without a name.

    Raises:
        OtherEdition: what it hangs on has changed.
        StoreError: the file or its configuration cannot be read at all.
    """
    check_editions(records)
    plan, done = planned(records).model_copy(update={"own": dict(own or {})}), Replay()
    named = ((row, digest(f"{row.role}\0{row.content}")) for row in records.pool())
    found = [
        Mismatch(f"message {row.id}", "hash", right.hex(), row.hash.hex())
        for row, right in named
        if row.hash != right
    ]
    episodes = records.episodes()
    found += _games(records.games(), episodes, plan)
    table = _ReplayTable(records, plan)
    with asyncio.Runner() as runner:
        for row in episodes:
            if row.game.label not in table.games:
                continue
            try:
                episode = _Rerun(table, row)
                runner.run(episode.play())
            except StoreError as error:  # a value of the file that cannot be read
                found.append(Mismatch(_name(row), "unreadable", "a record", str(error)))
                continue
            found += episode.found
            done.episodes += 1
            done.steps += episode.reached
            done.completions += episode.read
    done.differences = tuple(found)
    return done


def _games(
    games: Sequence[GameRow], episodes: Sequence[EpisodeRow], plan: RunPlan
) -> Iterator[Mismatch]:
    """Check the table of games, and the episodes' seeds, against the configuration."""
    rows, owned = {row.label: row for row in games}, dict[int, list[EpisodeRow]]()
    for episode in episodes:
        owned.setdefault(episode.game.id, []).append(episode)
    for game in plan.games:
        row = rows.pop(game.label, None)
        if row is None:
            yield Mismatch(f"game {game.label}", "row", "one", "none")
            continue
        own, many = owned.get(row.id, []), len(game.seeds)
        for what, expected, found in (
            ("game", game.game, row.game),
            ("params", game.params, row.params),
            ("seats", [seat.name for seat in game.seats], row.seats),
            ("numbers", [*range(many)], [e.number for e in own]),
            ("seeds", game.seeds, [e.seed for e in own]),
            ("given chance", [game.given or None] * many, [e.given for e in own]),
            ("seatings", game.seatings(), [e.seating for e in own]),
        ):
            if _json(expected) != _json(found):
                yield Mismatch(f"game {game.label}", what, *_texts(expected, found))
    for label in rows:
        yield Mismatch(f"game {label}", "row", "none", "one")


class _ReplayStop(Exception):
    """A step differs: what follows may build upon it."""


class _ReplayTable:
    """Where one episode after another is played again; it has what they share.

    It is the client of the players, which gives the completions of the record.
    """

    name = "recorded"

    def __init__(self, records: Records, plan: RunPlan) -> None:
        self.records, self.plan = records, plan
        self.games = {game.label: game for game in plan.games}
        self.episodes = {(row.game.id, row.number): row for row in records.episodes()}
        self.players: dict[str, LLMPolicy] = {}
        self.rules: dict[str, Rulebook] = {}
        self.now: _Rerun | None = None

    def player(self, seat: PlannedSeat) -> Policy:
        """Return who writes the prompts of a seat anew: one player for all its episodes."""
        if seat.key not in self.players:
            self.players[seat.key] = llm_player(self, self.plan.settings_of(seat))
        return self.players[seat.key]

    def rules_of(self, game: PlannedGame, row: EpisodeRow) -> Rulebook:
        """Return the rules of an episode: one object for all that are alike."""
        alike = f"{game.label}\0{seated(game_class(game.game), game.params, row.seating)}"
        if alike not in self.rules:
            self.rules[alike] = game.rules(row.seating)
        return self.rules[alike]

    async def complete(self, request: Request) -> Completion:
        """Return a recorded completion of the episode that is being played."""
        assert self.now is not None
        return self.now.complete(request)

    async def close(self) -> None:
        """Nothing to let go of."""


class _Rerun(EpisodeRecord):
    """One recorded episode that is played again, and the differences found in it."""

    def __init__(self, table: _ReplayTable, row: EpisodeRow) -> None:
        records = table.records
        super().__init__(records, row)
        self.table, self.records, self.game = table, records, table.games[row.game.label]
        self.written = records.written(row.id)
        self.seats_at: dict[int, set[int]] = {}  # who has a decision or completion, by step
        for at in (*self.decisions, *self.calls):
            self.seats_at.setdefault(at.step, set()).add(at.seat)
        self.chats = records.chats(row.id)
        self.notes: dict[DecisionPlace, list[Any]] = {}
        for note in records.notes(row.id):
            if note.kind == OVERFLOW:
                continue
            self.notes.setdefault(DecisionPlace(note.step, note.seat), []).append(
                [note.kind, note.content]
            )
        self.recalled = recalled(records, row, table.episodes) if self.game.series else None
        seats = self.game.seats
        self.own = {i for i, place in enumerate(row.seating) if seats[place].own}
        self.found: list[Mismatch] = []
        self.reached = self.read = 0

    async def play(self) -> None:
        """Play the episode to the end of its record, and note the differences."""
        self.table.now = self
        asking = {at.seat for at in self.calls}
        policies: list[Policy] = []
        for i, place in enumerate(self.row.seating):
            seat = self.game.seats[place]
            asks = seat.asks or (i in asking and i not in self.own)
            policies.append(self.table.player(seat) if asks else _Seated(self, i))
        try:
            await self._play(policies)
        except _ReplayStop:
            pass
        except LLMGamesError as error:
            self.note("replay", "to go on", f"an error: {error}", DecisionPlace(self.reached, -1))

    async def _play(self, policies: Sequence[Policy]) -> None:
        many = len(self.steps)
        if not many:
            if self.row.status not in ("pending", "running"):
                self.note("status", "pending or running, without any step", self.row.status)
            return
        self._compare("numbers of the steps", [*range(many)], [step.step for step in self.steps])
        episode = await play_table(
            self.table.rules_of(self.game, self.row),
            policies,
            self.row.seed,
            on_step=self.check,
            max_steps=many,
            given=self.row.given,
            recalled=self.recalled,
        )
        self._compare("number of steps", episode.length, many)
        # A run may have been stopped between the last step and the note of the end.
        ended = self.row.status != "running" and (episode.over or many == self.game.max_steps)
        reason = void_reason(episode, self.game) if ended else None
        status = ("void" if reason else "done") if ended else "running"
        self._compare("status", status, self.row.status)
        if ended:
            self._compare("reason", reason, self.row.reason)
        looked_back = episode.afterwards if ended else {}
        for seat, decision in looked_back.items():
            self._completions(DecisionPlace(many, seat), decision)
        for at in self.decisions:
            if at.step >= many:
                self.note("decision", "none", "one", at)
        expected = {DecisionPlace(many, seat) for seat in looked_back}
        for at in self.calls:
            late = at.step >= many + (not ended) and at.seat not in self.own
            if late and at not in expected:
                self.note("completion", "none", "one", at)

    async def check(self, step: Step) -> None:
        """Compare one step as it is played with its record; `_Stop` if they differ."""
        self._asked.clear()
        row, decisions = rows_of(step)
        written, at = TABLES[StepRow].written(row.thin()), DecisionPlace(step.number, -1)
        if written != self.written[step.number]:
            found = self.steps[step.number]
            for what in ("asked", "rewards", "finished"):
                self._compare(what, getattr(row, what), getattr(found, what), at)
            for key in {**row.record, **found.record}:
                self._compare(f"record {key}", row.record.get(key), found.record.get(key), at)
            if not self.found:  # equal values can be written in several ways
                for what, text in written.items():
                    self._compare(f"{what} (as text)", text, self.written[step.number][what], at)
        for made in decisions:
            place = DecisionPlace(made.step, made.seat)
            if place not in self.decisions:
                self.note("decision", "one", "none", place)
                continue
            for what in ("action", "outcome", "broke", "reward"):
                known = getattr(self.decisions[place], what)
                self._compare(what, getattr(made, what), known, place)
            self._completions(place, step.decisions[made.seat])
        for seat in sorted(self.seats_at.get(step.number, set()) - step.decisions.keys()):
            self.note("decision", "none", "one", DecisionPlace(step.number, seat))
        if self.found:
            raise _ReplayStop
        self.reached += 1

    def _completions(self, at: DecisionPlace, decision: Decision) -> None:
        """Compare how completions were read, and what was noted down; not of own policies."""
        if at.seat in self.own:
            return
        notes = [[note.kind, note.content] for note in decision.notes]
        self._compare("notes", notes, self.notes.get(at, []), at)
        rows = self.calls.get(at, [])
        self._compare("number of completions", len(decision.attempts), len(rows), at)
        for number, (attempt, call) in enumerate(zip(decision.attempts, rows, strict=False)):
            for what in ("outcome", "why", "detail", "kind"):
                name = f"completion {number}, {what}"
                self._compare(name, getattr(attempt, what), getattr(call, what), at)

    def complete(self, request: Request) -> Completion:
        """Return a recorded completion, once its prompt and seed have been compared."""
        at, number = self.count(request)
        calls, name = self.calls.get(at, []), f"completion {number}"
        if number >= len(calls):
            if at.step == len(self.steps) and self.row.status == "running":
                raise ClientError("not recorded")  # stopped while players looked back
            self.note(name, "one", "none", at)
            raise _ReplayStop
        call = calls[number]
        self._compare(f"{name}, number", number, call.number, at)
        self._compare(f"{name}, seed", request.seed, call.seed, at)
        recorded = self.chats.get(call.prompt) if isinstance(call.prompt, int) else None
        if request.messages != recorded:
            chat, found = list(request.messages), list(recorded or ())
            self._compare(f"{name}, number of messages", len(chat), len(found), at)
            for i, (mine, other) in enumerate(zip(chat, found, strict=False)):
                for what in ("role", "content"):
                    self._compare(f"{name}, message {i} ({what})", mine[what], other[what], at)
        self.read += 1
        return call.completion()

    def _compare(
        self, what: str, expected: Any, found: Any, at: DecisionPlace | None = None
    ) -> None:
        if repr(expected) != repr(found) and _json(expected) != _json(found):
            self.note(what, *_texts(expected, found), at)

    def note(self, what: str, expected: str, found: str, at: DecisionPlace | None = None) -> None:
        """Add a difference; a seat of -1 stands for all seats."""
        where = _name(self.row)
        if at is not None:
            where += f", step {at.step}" + (f", seat {at.seat}" if at.seat >= 0 else "")
        self.found.append(Mismatch(where, what, expected, found))


class _Seated(Policy):
    """Does what is recorded of a seat without a model."""

    name = "recorded"

    def __init__(self, episode: _Rerun, seat: int) -> None:
        self.episode = episode
        made = (one for at, one in episode.decisions.items() if at.seat == seat)
        self.speaks = any(one.phase == TALK for one in made)

    def start(self, game: Any, seat: int, seed: int) -> None:
        """Nothing to remember."""

    def act(self, view: View, memory: Any) -> tuple[Decision, Any]:
        """Return the recorded action; `_Stop` if there is none, or the game cannot take it."""
        at = DecisionPlace(view.who.step, view.who.seat)
        if at not in self.episode.decisions:
            self.episode.note("decision", "one", "none", at)
            raise _ReplayStop
        action = self.episode.decisions[at].action
        if action is not None and not _fits(action, view):
            self.episode.note("action", "one of this game", _json(action), at)
            raise _ReplayStop
        return Decision(move_of(action)), memory


def _fits(action: Any, view: View) -> bool:
    """Return whether a recorded action is of the kind that is asked for."""
    if isinstance(view.question, Speech):
        return isinstance(action, str)
    plan, values = isinstance(action, list), action if isinstance(action, list) else [action]
    whole = all(type(value) is int and abs(value) < 2**63 for value in values)
    many = view.game.players if isinstance(view.question, Shares) else 1
    return whole and plan == isinstance(view.question, Shares) and len(values) == many


def _name(row: EpisodeRow) -> str:
    return f"{row.game.label}, episode {row.number}"


def _json(value: Any) -> str:
    """Write a value so that equal texts mean equal bits: floats by their shortest digits."""
    return json.dumps(value, ensure_ascii=False)


def _texts(expected: Any, found: Any) -> tuple[str, str]:
    """Write two values that differ, cut to where they part."""
    a, b = _json(expected), _json(found)
    pairs = enumerate(zip(a, b, strict=False))
    at = next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))
    start, stop = max(0, at - AROUND), at + AROUND
    a, b = ("…" * (start > 0) + text[start:stop] + "…" * (stop < len(text)) for text in (a, b))
    return a, b
