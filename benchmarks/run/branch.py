"""Branches: runs of their own that leave a recorded episode at one of its decisions.

All before is played as recorded, by the rules, and must come out as recorded; a model that is asked
there is answered from the record, and by nobody else.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np

from llm_games.benchmarks.judge.branch_outcomes import step_regret
from llm_games.benchmarks.record import schema
from llm_games.benchmarks.record.checked_table import Episodes, Settings, Text, checked
from llm_games.benchmarks.record.connection import StoreError
from llm_games.benchmarks.record.editions import check_editions
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import EpisodeCache, RecordedEpisode
from llm_games.benchmarks.record.schema import EpisodeRow
from llm_games.benchmarks.record.store import plain_action
from llm_games.benchmarks.run.branch_point import BranchPoint
from llm_games.benchmarks.run.config import SeatSettings, parse
from llm_games.benchmarks.run.fresh_chance import fresh_seeds, settled_chance
from llm_games.benchmarks.run.plan import PlannedGame, PlannedSeat, RunPlan, planned_seat
from llm_games.benchmarks.run.resume import EpisodeRecord, planned, recalled
from llm_games.errors import BadParameter, unknown
from llm_games.questions import MISSING, Action, BadReply
from llm_games.table import Table
from llm_games.view import View
from llm_games.wrappers.clients.base import (
    Client,
    Completion,
    ContextOverflow,
    Layer,
    Request,
)
from llm_games.wrappers.seats import DecisionPlace, plain


class NotRebuilt(StoreError):
    """What is recorded before a branch does not come out again as it is recorded."""


@dataclass(frozen=True)
class Changes:
    """What is other in a branch: for Python, the command line and the form of a page.

    By seat of the episode: players, their settings, moves, and texts, which a model reads at the
    step in place of the last message. `asked`: the one seat that decides at the step again, after
    which the branch ends; None: the episode is played to its end. More than one of `times` have
    seeds of their own, all fresh. Chance is as ``recorded``, or ``fresh`` as far as it was not out.
    """

    seats: Mapping[int, str] = field(default_factory=dict)
    settings: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    moves: Mapping[int, Any] = field(default_factory=dict)
    texts: Mapping[int, str] = field(default_factory=dict)
    asked: int | None = None
    times: int = 1
    chance: str = "recorded"

    @property
    def changed(self) -> list[int]:
        return sorted({*self.seats, *self.settings})


class _Choices(Settings):
    times: Episodes
    chance: Literal["recorded", "fresh"]
    texts: dict[int, Text]


def place_of(text: str) -> tuple[str, int, int]:
    """Read ``LABEL/NUMBER/STEP``; BadParameter: it is not that."""
    label, *numbers = text.rsplit("/", 2)
    digits = all(n.isascii() and n.isdigit() and len(n) < 19 for n in numbers)
    if not label or len(numbers) != 2 or not digits:
        form = "LABEL/NUMBER/STEP: a game's label, its episode and a step, both counted from 0"
        raise BadParameter(f"a decision is named {form}; got {text[:80]!r}")
    return label, int(numbers[0]), int(numbers[1])


def branched(
    path: Path, place: str, changes: Changes, folder: Path, objects: Mapping[str, Any]
) -> RunPlan:
    """Plan a branch of a run that will be recorded in `folder`.

    Raises OtherEdition, NotRebuilt, BadParameter, UnknownName, ConfigError: it cannot be.
    """
    label, number, step = place_of(place)
    plain = {name: getattr(changes, name) for name in _Choices.model_fields}
    checked(_Choices, plain, "branch")
    with Records.open_readonly(path) as records:
        check_editions(records)
        plan = planned(records)
        row = _row(records, label, number)
        [game] = [game for game in plan.games if game.label == label]
        origin = _Origin(records, row, game, step)
        origin.check(changes)
        seats = origin.seats(changes, {**objects})
        seeds, given = [row.seed] * changes.times, row.given or {}
        if changes.chance == "fresh":
            seeds = fresh_seeds(row.seed, step, changes.times)
            given = settled_chance(row.rules(), origin.table, row.given, seeds)
        point = BranchPoint(
            origin=os.path.relpath(path, folder),
            run=run_digest(records),
            label=label,
            number=number,
            step=step,
            rows=rows_digest(records, row, step),
            free=origin.free(changes),
            moves={str(seat): plain_action(a) for seat, a in origin.moves(changes).items()},
            texts=origin.texts(changes),
            changed=changes.changed,
            changes=origin.named(changes),
            hushed=origin.hushed,
            fresh=changes.times > 1,
            numbers=origin.numbers,
            chance=changes.chance,
            once=changes.asked is not None,
            recalled=origin.recalled(),
            limit=origin.limit,
            recorded=origin.outcomes(),
        )
    branch = game.model_copy(
        update={
            "params": row.params,
            "seats": seats,
            "seeds": seeds,
            "max_steps": step + 1 if point.once else point.limit,
            "order": "fixed",
            "series": False,
            "given": given,
            "prolonged": [],
            "isomorphs": [] if row.isomorph is None else [row.isomorph] * len(seeds),
            "branch": point,
        }
    )
    # Also of a part of a run (`part`) all is played.
    return plan.model_copy(update={"games": [branch], "part": None}).with_objects(objects)


def run_digest(records: Records) -> str:
    """Return what names a run: a digest of its description."""
    described = [records.title, records.package, records.created]
    return schema.digest(json.dumps(described)).hex()


def rows_digest(records: Records, row: EpisodeRow, step: int) -> str:
    """Return a digest of an episode's rows up to a step."""
    parts: list[Sequence[Any]] = [records.steps(row.id), records.decisions(row.id)]
    parts += [records.attempts(row.id), records.notes(row.id)]
    rows = [[vars(part) for part in table if part.step <= step] for table in parts]
    return schema.digest(json.dumps([row.seed, row.seating, row.given, rows])).hex()


def _row(records: Records, label: str, number: int) -> EpisodeRow:
    labels = [game.label for game in records.games()]
    if label not in labels:
        raise unknown(f"game in {records.path} called", label, labels)
    rows = [row for row in records.episodes() if row.game.label == label]
    if number >= len(rows):
        raise BadParameter(f"{label} has no episode {number}: it has 0 to {len(rows) - 1}")
    return rows[number]


class _Origin:
    """An episode as a branch of it needs it, its state at the step built again."""

    def __init__(self, records: Records, row: EpisodeRow, game: PlannedGame, step: int) -> None:
        self.records, self.row, self.game, self.step = records, row, game, step
        self.record = EpisodeRecord(records, row)
        self.place = f"{game.label}, episode {row.number}, step {step}"
        if step >= (count := len(self.record.steps)):
            has = f"it has 0 to {count - 1}" if count else "it has none"
            raise BadParameter(f"{self.place}: no such step is recorded whole; {has}")
        self.players = [game.seats[position] for position in row.seating]
        point = game.branch
        self.limit = game.max_steps if point is None else point.limit
        self.numbers = [] if point is None else [*point.numbers, *[row.number] * point.fresh]
        speakers = {place.seat for place, d in self.record.decisions.items() if d.phase}
        silent = set(point.hushed if point else ())
        self.hushed = [
            seat
            for seat, player in enumerate(self.players)
            if seat not in speakers and (seat in silent or not player.asks)
        ]
        self.table = self._rebuilt()

    def _rebuilt(self) -> Table:
        """The table at the step; NotRebuilt: a step before does not come out as recorded."""
        table = Table(self.row.rules())
        table.reset(self.row.seed, self.row.given)
        table.hush(self.hushed)
        for step in self.record.steps[: self.step]:
            moves = {
                seat: schema.move_of(self.record.decisions[DecisionPlace(step.step, seat)].action)
                for seat in step.asked
            }
            outcome = table.step(moves)
            came = [plain(outcome), outcome.rewards.tolist()]
            if json.dumps(came) != json.dumps([step.record, step.rewards]):
                raise NotRebuilt(
                    f"{self.records.path}: step {step.step} of {self.game.label}, episode "
                    f"{self.row.number}, does not come out as it is recorded; llm-games replay "
                    "says what differs"
                )
        return table

    def check(self, changes: Changes) -> None:
        """BadParameter: a seat that is none, or was not asked."""
        asked = self.record.steps[self.step].asked
        players = len(self.players)
        again = [] if changes.asked is None else [changes.asked]
        for seat in (*changes.changed, *changes.moves, *changes.texts, *again):
            if not 0 <= seat < players:
                raise BadParameter(f"{self.place}: there is no seat {seat}, but 0 to {players - 1}")
        for seat in (*changes.moves, *changes.texts, *again):
            if seat not in asked:
                were = ", ".join(map(str, asked))
                raise BadParameter(f"{self.place}: seat {seat} was not asked; asked were: {were}")
        if again and {*changes.changed, *changes.moves, *changes.texts} - {*again}:
            raise BadParameter(f"seat {changes.asked} alone is asked again: change only that one")
        if both := {*changes.moves} & {*again, *changes.texts}:
            raise BadParameter(f"seat {both.pop()} is asked again, or makes a move: not both")

    def free(self, changes: Changes) -> list[int]:
        asked = self.record.steps[self.step].asked
        if changes.asked is not None:
            return [changes.asked]
        if not (changes.changed or changes.moves or changes.texts):
            point = self.game.branch
            again = point.free if point and point.step == self.step else asked
            return [seat for seat in asked if seat in again]
        others = {*changes.changed, *changes.texts} - {*changes.moves}
        return [seat for seat in asked if seat in others]

    def moves(self, changes: Changes) -> dict[int, Action]:
        """BadParameter: a move that is not legal there."""
        moves: dict[int, Action] = {}
        for seat, value in changes.moves.items():
            view: View = self.table.ready().view(seat)
            question = view.question
            assert question is not None
            exact = Decimal(str(value)) if isinstance(value, float) else value
            try:
                moves[seat] = question.read(exact)
            except BadReply as error:
                wanted = f"{error}; legal is {question.wanted()}"
                raise BadParameter(f"{self.place}, seat {seat}: {wanted}") from None
        return moves

    def seats(self, changes: Changes, objects: dict[str, Any]) -> list[PlannedSeat]:
        defaults = parse({"games": [{"game": self.game.game}]}, "branch")
        seats = list(self.players)
        for seat in changes.changed:
            old, location = seats[seat], f"branch: seat {seat}"
            raw: dict[str, Any] = {"player": old.player, "name": old.name}
            raw |= old.client | old.settings
            if seat in changes.seats:
                raw = {"player": changes.seats[seat]}
            raw |= changes.settings.get(seat, {})
            settings = checked(SeatSettings, raw, location)
            seats[seat] = planned_seat(defaults, settings, {}, objects)
        for seat in changes.texts:
            if not seats[seat].asks:
                player = seats[seat].name
                raise BadParameter(
                    f"{self.place}, seat {seat}: {player} asks no model, and reads none"
                )
        return seats

    def named(self, changes: Changes) -> dict[str, dict[str, Any]]:
        """What is other, by seat, as it was asked for."""
        named: dict[str, dict[str, Any]] = {}
        for seat, player in changes.seats.items():
            named.setdefault(str(seat), {})["player"] = player
        for seat, settings in changes.settings.items():
            named.setdefault(str(seat), {}).update(settings)
        for seat, move in changes.moves.items():
            named.setdefault(str(seat), {})["move"] = move
        for seat, text in changes.texts.items():
            named.setdefault(str(seat), {})["text"] = text
        return named

    def texts(self, changes: Changes) -> dict[str, str]:
        point = self.game.branch
        read = point.texts.items() if point else ()
        before = {at: text for at, text in read if int(at.partition("/")[0]) <= self.step}
        return before | {f"{self.step}/{seat}": text for seat, text in changes.texts.items()}

    def recalled(self) -> dict[str, list[list[Any]]]:
        rows = {(row.game.id, row.number): row for row in self.records.episodes()}
        notes = recalled(self.game, self.records, self.row, rows) or {}
        return {str(seat): [[n.kind, n.content] for n in of] for seat, of in notes.items()}

    def outcomes(self) -> dict[str, dict[str, Any]]:
        """What was decided at the step, by seat: move, regret, payoff from there on."""
        episode = RecordedEpisode(EpisodeCache(self.records), self.row)
        regrets, column = step_regret(episode, self.step), self.record.steps[self.step]
        payoffs = np.sum([step.rewards for step in self.record.steps[self.step :]], axis=0)
        return {
            str(seat): {
                "move": self.record.decisions[DecisionPlace(self.step, seat)].readable,
                "regret": regrets.get(seat),
                "payoff": float(payoffs[seat]),
            }
            for seat in column.asked
        }


Overflows = Mapping[DecisionPlace, Sequence[tuple[Any, str]]]
"""By place, prompts that a server refused as too long, and what it said of them."""


class Past:
    """What stands before a branch; branches of one episode share its `record`."""

    def __init__(self, record: EpisodeRecord, overflows: Overflows, point: BranchPoint) -> None:
        self.point, self.overflows = point, overflows
        self.decisions, self.calls = record.decisions, record.calls
        self._asked: Counter[tuple[int, DecisionPlace, str]] = Counter()

    def action(self, place: DecisionPlace) -> Action:
        """Return the move at a place that the point `holds`."""
        if place.step == self.point.step and str(place.seat) in self.point.moves:
            return schema.move_of(self.point.moves[str(place.seat)])
        if place not in self.decisions:
            origin = self.point.origin
            raise NotRebuilt(
                f"{origin}: nothing is recorded of seat {place.seat}, step {place.step}"
            )
        return schema.move_of(self.decisions[place].action)

    def completion(self, request: Request) -> Completion | None:
        """Return what a model is answered before the branch; None: it is to be asked."""
        place = DecisionPlace(request.who.step, request.who.seat)
        if not self.point.holds(*place):
            return None
        moved = place.step == self.point.step and str(place.seat) in self.point.moves
        if place.seat in self.point.changed or moved:
            return self._retold(request, place, moved)
        for messages, said in self.overflows.get(place, ()):
            if messages == list(request.messages):
                raise ContextOverflow(said)
        calls = self.calls.get(place, [])
        if request.who.call >= len(calls):
            raise NotRebuilt(
                f"{self.point.origin}: seat {place.seat} asks more often in step {place.step} than "
                "is recorded"
            )
        return calls[request.who.call].completion()

    def _retold(self, request: Request, place: DecisionPlace, moved: bool) -> Completion:
        """The recorded answer to one who asks in another way, else the move in its plain form."""
        alike = (request.who.episode, place, request.kind)
        self._asked[alike] += 1
        calls = [call for call in self.calls.get(place, ()) if call.kind == request.kind]
        plays = request.kind in ("move", "speech")
        readable = bool(calls) and calls[-1].outcome == "valid" and self._asked[alike] == 1
        if readable and not (moved and plays):
            return calls[-1].completion()
        action = self.action(place) if plays else MISSING
        question = None if request.view is None else request.view.question
        played = moved or self.decisions[place].outcome == "valid"
        if question is None or action == MISSING or not played:
            return Completion("")
        return Completion(question.reply(action))


def branch_pasts(plan: RunPlan, path: Path) -> dict[str, Past]:
    """Return what stands before each branch of a run at `path`, by label.

    NotRebuilt: an origin is not there, or is not what it was.
    """
    points: dict[str, dict[str, BranchPoint]] = {}
    for game in plan.games:
        if game.branch:
            points.setdefault(game.branch.origin, {})[game.label] = game.branch
    pasts: dict[str, Past] = {}
    for name, of_origin in points.items():
        origin = path.parent / name
        if not origin.is_file():
            raise NotRebuilt(f"{path} is a branch of {origin}, which is not there")
        with Records.open_readonly(origin) as records:
            if {point.run for point in of_origin.values()} != {run_digest(records)}:
                raise NotRebuilt(f"{origin} is not the run that {path} is a branch of")
            pasts |= _pasts(records, of_origin)
    return pasts


def _pasts(records: Records, points: Mapping[str, BranchPoint]) -> Iterator[tuple[str, Past]]:
    """Yield labels and what stands before them; an episode is read once for all its branches."""
    episodes: dict[int, tuple[EpisodeRecord, Overflows]] = {}
    for label, point in points.items():
        row = _row(records, point.label, point.number)
        if rows_digest(records, row, point.step) != point.rows:
            raise NotRebuilt(f"{records.path} is not what it was when it was branched")
        if row.id not in episodes:
            record = EpisodeRecord(records, row)
            overflows = {
                place: [(records.messages(about["prompt"]), about["said"]) for about in rows]
                for place, rows in record.overflows.items()
            }
            episodes[row.id] = record, overflows
        yield label, Past(*episodes[row.id], point)


class PastClient(Layer):
    """A client that is asked from the branch on; before, the record answers."""

    def __init__(self, client: Client, past: Past) -> None:
        super().__init__(client)
        self.past = past

    async def complete(self, request: Request) -> Completion:
        completion = self.past.completion(request)
        return await self.client.complete(request) if completion is None else completion
