"""Play a recorded run again without any model, and compare everything bit for bit.

Every seat does what is recorded of it; prompts are written anew from the states that are reached,
with the wording of today, and completions read again. Not compared, since nothing determines them:
tokens, latencies, models' names, times, and completions that are read alike.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from llm_games.baselines.players import llm_player, make_player
from llm_games.benchmarks.record import schema
from llm_games.benchmarks.record.connection import StoreError
from llm_games.benchmarks.record.editions import check_editions
from llm_games.benchmarks.record.queries import PARTS, Records
from llm_games.benchmarks.record.worker_files import ENDED
from llm_games.benchmarks.run.batches import Batch, batches
from llm_games.benchmarks.run.branch_point import BranchSeat, Retelling
from llm_games.benchmarks.run.conduct import not_ended, rows_of, void_reason
from llm_games.benchmarks.run.plan import PlannedGame, PlannedSeat, RunPlan
from llm_games.benchmarks.run.resume import EpisodeRecord, planned, recalled
from llm_games.errors import LLMGamesError
from llm_games.questions import Action, Shares, Speech
from llm_games.registry import game_class
from llm_games.rulebook import Rulebook, seated
from llm_games.view import View
from llm_games.wrappers.clients.base import ClientError, Completion, Request
from llm_games.wrappers.guests import GuestPolicy
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.play import play_table
from llm_games.wrappers.policy import Decision, Note, Policy
from llm_games.wrappers.seats import DecisionPlace, Step

AROUND = 30  # characters that are shown on each side of where two texts part


@dataclass(frozen=True)
class Mismatch:
    """A difference between the record and the game played again.

    `where` is a game, episode, step and seat, `what` a column and a position in it; `expected` is
    what playing again gives, `found` what the file has.
    """

    where: str  # a key of the command's JSON, as `found` is
    what: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: expected {self.expected}, found {self.found}"


@dataclass
class Replay:
    """Numbers of what was compared, and the differences."""

    episodes: int = 0
    steps: int = 0
    completions: int = 0
    differences: tuple[Mismatch, ...] = ()

    def summary(self) -> str:
        count = len(self.differences)
        return (
            f"{self.episodes} episodes, {self.steps} steps and {self.completions} completions "
            f"played again: {f'{count} differences' if count else 'all equal, bit for bit'}"
        )


def replay(records: Records, objects: Mapping[str, Any] | None = None) -> Replay:
    """Play all that is recorded again and compare, by episode up to the first step that differs.

    `objects`: by label, the tools that the run was handed and that have no name. Raises
    OtherEdition: what it hangs on has changed; StoreError: the file cannot be read.
    """
    check_editions(records)
    plan = planned(records).model_copy(update={"objects": dict(objects or {})})
    comparison = Replay()
    named = ((row, schema.digest(f"{row.role}\0{row.content}")) for row in records.pool())
    mismatches = [
        Mismatch(f"message {row.id}", "hash", right.hex(), row.hash.hex())
        for row, right in named
        if row.hash != right
    ]
    episodes = records.episodes()
    mismatches += _games(records.games(), episodes, plan)
    table = _ReplayTable(records, plan)
    alike = dict(_alike(table, episodes))
    with asyncio.Runner() as runner:
        for row in episodes:
            if row.game.label not in table.games:
                continue
            if row.id in alike:
                comparison.episodes += 1
                comparison.steps += alike[row.id]
                continue
            try:
                episode = _Rerun(table, row)
                runner.run(episode.play())
            except StoreError as error:  # a value of the file that cannot be read
                mismatches.append(Mismatch(_name(row), "unreadable", "a record", str(error)))
                continue
            mismatches += episode.mismatches
            comparison.episodes += 1
            comparison.steps += episode.reached
            comparison.completions += episode.read
    comparison.differences = tuple(mismatches)
    return comparison


def _games(
    games: Sequence[schema.GameRow], episodes: Sequence[schema.EpisodeRow], plan: RunPlan
) -> Iterator[Mismatch]:
    by_label, owned = {row.label: row for row in games}, dict[int, list[schema.EpisodeRow]]()
    for episode in episodes:
        owned.setdefault(episode.game.id, []).append(episode)
    for game in plan.games:
        row = by_label.pop(game.label, None)
        if row is None:
            yield Mismatch(f"game {game.label}", "row", "one", "none")
            continue
        game_episodes, count = owned.get(row.id, []), len(game.seeds)
        for what, expected, recorded in (
            ("game", game.game, row.game),
            ("params", game.params, row.params),
            ("seats", [seat.name for seat in game.seats], row.seats),
            ("numbers", [*range(count)], [e.number for e in game_episodes]),
            ("seeds", game.seeds, [e.seed for e in game_episodes]),
            ("given chance", game.chances(), [e.given for e in game_episodes]),
            ("seatings", game.seatings(), [e.seating for e in game_episodes]),
        ):
            if _json(expected) != _json(recorded):
                yield Mismatch(f"game {game.label}", what, *_texts(expected, recorded))
    for label in by_label:
        yield Mismatch(f"game {label}", "row", "none", "one")


def _alike(table: _ReplayTable, episodes: Sequence[schema.EpisodeRow]) -> Iterator[tuple[int, int]]:
    """Yield episodes of rule players that come out as recorded, played in batches, and their steps.

    The others are played one by one, to see where they part.
    """
    games, records = table.games, table.records
    ended = {row.id: row for row in episodes if row.status in ENDED and row.game.label in games}
    pending, asked = (replace(row, status="pending") for row in ended.values()), records.asked()
    for batch in batches(pending, games, _rule_players(games.values())):
        rows = _rows(batch)
        for number, over in zip(rows["steps"], batch.over.tolist(), strict=True):
            row, late = ended[number], not_ended(games[ended[number].game.label])
            end = ("done", None) if over else ("void", late)
            if number in asked or (row.status, row.reason) != end:
                continue
            with suppress(StoreError):  # another way than ours to say that it is damaged
                if all(
                    repr(records.cells(PARTS[name], number)) == repr(of[number])
                    for name, of in rows.items()
                ):
                    yield number, len(rows["steps"][number])


def _rule_players(games: Iterable[PlannedGame]) -> dict[str, Any]:
    """Players by key; None for those of whom the record alone knows what they do."""
    policies: dict[str, Any] = {}
    for game in games:
        for seat in game.seats:
            policies[seat.key] = None
            if not (seat.asks or seat.is_guest or seat.is_users_policy):
                with suppress(LLMGamesError):  # such as of a file that is not here
                    policies[seat.key] = make_player(seat.player, game.rules())
    return policies


def _rows(batch: Batch) -> dict[str, dict[int, list[tuple[Any, ...]]]]:
    """Steps and decisions of a batch as they are written, by episode in its order."""
    ids, steps, decisions = [row.id for row in batch.episodes], list[Any](), list[Any]()
    for columns in batch.play():
        steps += columns.steps(ids)
        decisions += columns.decisions(ids)
    rows = {name: {number: list[Any]() for number in ids} for name in ("steps", "decisions")}
    for name, cells in (("steps", steps), ("decisions", decisions)):
        for number, *rest in sorted(cells):
            rows[name][number].append(tuple(rest))
    return rows


class _ReplayStop(Exception):
    """A step differs: what follows may build upon it."""


class _ReplayTable:
    """The client and all that episodes, played again one after another, share."""

    name = "recorded"

    def __init__(self, records: Records, plan: RunPlan) -> None:
        self.records, self.plan = records, plan
        self.games = {game.label: game for game in plan.games}
        self.episodes = {(row.game.id, row.number): row for row in records.episodes()}
        self.players: dict[str, LLMPolicy] = {}
        self.rules: dict[str, Rulebook] = {}
        self.episode: _Rerun | None = None

    def player(self, seat: PlannedSeat) -> Policy:
        if seat.key not in self.players:
            settings = self.plan.settings_of(seat)
            make = GuestPolicy(self, **settings) if seat.is_guest else llm_player(self, settings)
            self.players[seat.key] = make
        return self.players[seat.key]

    def rules_of(self, game: PlannedGame, row: schema.EpisodeRow) -> Rulebook:
        """One object for all episodes of the same rules."""
        params = seated(game_class(game.game), game.params, row.seating)
        alike = f"{game.label}\0{params}\0{row.isomorph}"
        if alike not in self.rules:
            self.rules[alike] = game.rules(row.seating, row.isomorph)
        return self.rules[alike]

    async def complete(self, request: Request) -> Completion:
        assert self.episode is not None
        return self.episode.complete(self.episode.retelling.told(request))

    async def close(self) -> None: ...


class _Rerun(EpisodeRecord):
    """One recorded episode that is played again, and the differences found in it."""

    def __init__(self, table: _ReplayTable, row: schema.EpisodeRow) -> None:
        records = table.records
        super().__init__(records, row)
        self.table, self.records, self.game = table, records, table.games[row.game.label]
        self.written = records.written(row.id)
        self.seats_at: dict[int, set[int]] = {}  # who has a decision or completion, by step
        for slot in (*self.decisions, *self.calls):
            self.seats_at.setdefault(slot.step, set()).add(slot.seat)
        self.chats = records.chats(row.id)
        self.notes: dict[DecisionPlace, list[Any]] = {}
        for note in records.notes(row.id):
            if note.kind != schema.OVERFLOW:
                notes = self.notes.setdefault(DecisionPlace(note.step, note.seat), [])
                notes.append([note.kind, note.content])
        self.recalled = recalled(self.game, records, row, table.episodes)
        self.retelling = Retelling(self.game.branch)
        seats = self.game.seats
        self.user_seats = {i for i, k in enumerate(row.seating) if seats[k].is_users_policy}
        self.mismatches: list[Mismatch] = []
        self.reached = self.read = 0

    async def play(self) -> None:
        self.table.episode = self
        asking = {slot.seat for slot in self.calls}
        policies: list[Policy] = []
        for i, seat in enumerate(self.game.seats[position] for position in self.row.seating):
            asks = seat.asks or (i in asking and i not in self.user_seats)
            policies.append(self._asking(seat, i) if asks else _Seated(self, i))
        try:
            await self._play(policies)
        except _ReplayStop:
            pass
        except LLMGamesError as error:
            self.note("replay", "to go on", f"an error: {error}", DecisionPlace(self.reached, -1))

    def _asking(self, planned: PlannedSeat, seat: int) -> Policy:
        """The player of a seat that asks; in a branch it does what is recorded up to its point."""
        player, point = self.table.player(planned), self.game.branch
        if point is None:
            return player
        return BranchSeat(player, point, seat, self.row.number, _Seated(self, seat).action)

    async def _play(self, policies: Sequence[Policy]) -> None:
        count = len(self.steps)
        if not count:
            if self.row.status not in ("pending", "running"):
                self.note("status", "pending or running, without any step", self.row.status)
            return
        self._compare("numbers of the steps", [*range(count)], [step.step for step in self.steps])
        episode = await play_table(
            self.table.rules_of(self.game, self.row),
            policies,
            self.row.seed,
            on_step=self.check,
            max_steps=count,
            given=self.row.given,
            recalled=self.recalled,
        )
        self._compare("number of steps", episode.length, count)
        # A run may have been stopped between the last step and the note of the end.
        ended = self.row.status != "running" and (episode.over or count == self.game.max_steps)
        reason = void_reason(episode, self.game) if ended else None
        status = ("void" if reason else "done") if ended else "running"
        self._compare("status", status, self.row.status)
        if ended:
            self._compare("reason", reason, self.row.reason)
        looked_back = episode.afterwards if ended else {}
        for seat, decision in looked_back.items():
            self._completions(DecisionPlace(count, seat), decision)
        for slot in self.decisions:
            if slot.step >= count:
                self.note("decision", "none", "one", slot)
        expected = {DecisionPlace(count, seat) for seat in looked_back}
        for slot in self.calls:
            late = slot.step >= count + (not ended) and slot.seat not in self.user_seats
            if late and slot not in expected:
                self.note("completion", "none", "one", slot)

    async def check(self, step: Step) -> None:
        """`_ReplayStop`: the step differs from its record."""
        self._asked.clear()
        row, decisions = rows_of(step)
        written = schema.TABLES[schema.StepRow].written(row.thin())
        step_slot = DecisionPlace(step.number, -1)
        if written != self.written[step.number]:
            recorded = self.steps[step.number]
            for what in ("asked", "rewards", "finished"):
                self._compare(what, getattr(row, what), getattr(recorded, what), step_slot)
            for key in {**row.record, **recorded.record}:
                pair = row.record.get(key), recorded.record.get(key)
                self._compare(f"record {key}", *pair, step_slot)
            if not self.mismatches:  # equal values can be written in several ways
                for what, text in written.items():
                    recorded_text = self.written[step.number][what]
                    self._compare(f"{what} (as text)", text, recorded_text, step_slot)
        for decision in decisions:
            slot = DecisionPlace(decision.step, decision.seat)
            if slot not in self.decisions:
                self.note("decision", "one", "none", slot)
                continue
            for what in ("action", "outcome", "broke", "reward"):
                column = getattr(self.decisions[slot], what)
                self._compare(what, getattr(decision, what), column, slot)
            self._completions(slot, step.decisions[decision.seat])
        for seat in sorted(self.seats_at.get(step.number, set()) - step.decisions.keys()):
            self.note("decision", "none", "one", DecisionPlace(step.number, seat))
        if self.mismatches:
            raise _ReplayStop
        self.reached += 1

    def _completions(self, slot: DecisionPlace, decision: Decision) -> None:
        """Readings of completions, and notes; not of users' policies."""
        if slot.seat in self.user_seats:
            return
        notes = [[note.kind, note.content] for note in decision.notes]
        self._compare("notes", notes, self.notes.get(slot, []), slot)
        calls = self.calls.get(slot, [])
        self._compare("number of completions", len(decision.attempts), len(calls), slot)
        for number, (attempt, call) in enumerate(zip(decision.attempts, calls, strict=False)):
            for what in ("outcome", "why", "detail", "kind"):
                name = f"completion {number}, {what}"
                self._compare(name, getattr(attempt, what), getattr(call, what), slot)

    def complete(self, request: Request) -> Completion:
        """A recorded completion, once its prompt and seed have been compared."""
        slot, number = self.count(request)
        calls, name = self.calls.get(slot, []), f"completion {number}"
        if number >= len(calls):
            if slot.step == len(self.steps) and self.row.status == "running":
                raise ClientError("not recorded")  # stopped while players looked back
            self.note(name, "one", "none", slot)
            raise _ReplayStop
        call = calls[number]
        self._compare(f"{name}, number", number, call.number, slot)
        self._compare(f"{name}, seed", request.seed, call.seed, slot)
        recorded = self.chats.get(call.prompt) if isinstance(call.prompt, int) else None
        if request.messages != recorded:
            chat, recorded_chat = list(request.messages), list(recorded or ())
            self._compare(f"{name}, number of messages", len(chat), len(recorded_chat), slot)
            for i, (mine, other) in enumerate(zip(chat, recorded_chat, strict=False)):
                for what in ("role", "content"):
                    self._compare(f"{name}, message {i} ({what})", mine[what], other[what], slot)
        self.read += 1
        return call.completion()

    def _compare(
        self, what: str, expected: Any, recorded: Any, slot: DecisionPlace | None = None
    ) -> None:
        if repr(expected) != repr(recorded) and _json(expected) != _json(recorded):
            self.note(what, *_texts(expected, recorded), slot)

    def note(
        self, what: str, expected: str, recorded: str, slot: DecisionPlace | None = None
    ) -> None:
        """Add a difference; a seat of -1 stands for all seats."""
        position = _name(self.row)
        if slot is not None:
            position += f", step {slot.step}" + (f", seat {slot.seat}" if slot.seat >= 0 else "")
        self.mismatches.append(Mismatch(position, what, expected, recorded))


class _Seated(Policy):
    """A seat without a model: its recorded moves and notes."""

    name = "recorded"

    def __init__(self, episode: _Rerun, seat: int) -> None:
        self.episode = episode
        decisions = (decision for slot, decision in episode.decisions.items() if slot.seat == seat)
        self.speaks = any(decision.phase == schema.TALK for decision in decisions)

    def start(self, game: Any, seat: int, seed: int) -> None: ...

    def act(self, view: View, memory: Any) -> tuple[Decision, Any]:
        """`_ReplayStop`: no action is recorded, or the game cannot take it."""
        slot = DecisionPlace(view.who.step, view.who.seat)
        move, action = self.action(slot), self.episode.decisions[slot].action
        if action is not None and not _fits(action, view):
            self.episode.note("action", "one of this game", _json(action), slot)
            raise _ReplayStop
        notes = (Note(*note) for note in self.episode.notes.get(slot, ()))
        return Decision(move, notes=tuple(notes)), memory

    def action(self, slot: DecisionPlace) -> Action:
        """`_ReplayStop`: none is recorded."""
        if slot not in self.episode.decisions:
            self.episode.note("decision", "one", "none", slot)
            raise _ReplayStop
        return schema.move_of(self.episode.decisions[slot].action)


def _fits(action: Any, view: View) -> bool:
    """The action is of the kind that is asked for."""
    if isinstance(view.question, Speech):
        return isinstance(action, str)
    plan, moves = isinstance(action, list), action if isinstance(action, list) else [action]
    whole = all(type(move) is int and abs(move) < 2**63 for move in moves)
    count = view.game.players if isinstance(view.question, Shares) else 1
    return whole and plan == isinstance(view.question, Shares) and len(moves) == count


def _name(row: schema.EpisodeRow) -> str:
    return f"{row.game.label}, episode {row.number}"


def _json(value: Any) -> str:
    """Equal texts mean equal bits: floats by their shortest digits."""
    return json.dumps(value, ensure_ascii=False)


def _texts(expected: Any, recorded: Any) -> tuple[str, str]:
    """Both cut to where they differ."""
    a, b = _json(expected), _json(recorded)
    pairs = enumerate(zip(a, b, strict=False))
    parting = next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))
    start, stop = max(0, parting - AROUND), parting + AROUND
    a, b = ("…" * (start > 0) + text[start:stop] + "…" * (stop < len(text)) for text in (a, b))
    return a, b
