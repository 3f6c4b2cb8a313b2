"""A run's replies as data to train models with: good ones, and pairs of a better and a worse one.

Both are JSON lines in the chat form of TRL's SFTTrainer (``prompt``, ``completion``) and DPOTrainer
(``prompt``, ``chosen``, ``rejected``), with columns that say where a reply is from. A move lost its
regret: `llm_games.baselines.regret.interim` where that is defined, else that in hindsight.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines import regret as theory
from llm_games.benchmarks.ghosts.answer_classes import AnswerLimits, Answers
from llm_games.benchmarks.ghosts.fit import check_rules
from llm_games.benchmarks.record.connection import Unwritable
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame, games
from llm_games.benchmarks.record.schema import Plain
from llm_games.benchmarks.show.export.moves import moves_by_step
from llm_games.errors import BadParameter, unknown
from llm_games.questions import Action
from llm_games.rulebook import Array, Rulebook
from llm_games.table import Table
from llm_games.view import Sight
from llm_games.wrappers.clients.base import Request
from llm_games.wrappers.clients.chat import Chat
from llm_games.wrappers.clients.scripted import ScriptedClient
from llm_games.wrappers.llm_policy import LLMPolicy
from llm_games.wrappers.seats import Seats, plain

MOVE = "move"
MOST = 20
"""Times that a situation came up in which its moves are valued: the first ones."""
PART = 2**20  # bytes that are copied at once
TIE = 1e-9
"""Regrets that differ by no more are equal."""


class SpokenReply(NamedTuple):
    """A reply as it came, or words for a move; `move` is None if it is no legal move."""

    episode: RecordedEpisode
    step: int
    seat: int
    prompt: Chat
    text: str
    kind: str = MOVE
    outcome: str = "valid"
    move: Any = None

    @property
    def about(self) -> Plain:
        row, player = self.episode.row, self.episode.seats[self.seat]
        origin = {"game": row.game.game, "label": row.game.label, "episode": row.number}
        return origin | {"seed": row.seed, "step": self.step, "seat": self.seat, "player": player}

    @property
    def explains(self) -> bool:
        seats = self.episode.planned.get("seats", ())
        position = self.episode.row.seating[self.seat]
        return bool(seats) and bool(seats[position]["settings"].get("reasoning"))


# -- the files -------------------------------------------------------------------------------------


def write(rows: Iterable[Plain], path: Path) -> int:
    """Write rows as JSON lines, in place of an older file; return how many there were.

    A row of the fewest nulls stands first: readers take the kinds of the columns from the first
    megabytes. Raises Unwritable; what was there before stays then.
    """
    partial = path.with_name(f".{path.name}.part")
    count, least, begin, end = 0, np.inf, 0, 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path.parent) as lines, partial.open("wb") as file:
            for row in rows:
                line = json.dumps(row).encode() + b"\n"
                if (nulls := sum(value is None for value in row.values())) < least:
                    least, begin, end = nulls, lines.tell(), lines.tell() + len(line)
                lines.write(line)
                count += 1
            for low, high in ((begin, end), (0, begin), (end, lines.tell())):
                lines.seek(low)
                for size in [PART] * ((high - low) // PART) + [(high - low) % PART]:
                    file.write(lines.read(size))
        os.replace(partial, path)
    except OSError as error:
        raise Unwritable(f"{path} cannot be written: {error}") from None
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
    return count


def sft(
    records: Records,
    players: Collection[str] = (),
    *,
    kinds: Collection[str] = (MOVE,),
    most_regret: float | None = None,
    hindsight: bool = False,
) -> Iterator[Plain]:
    """Yield the legal replies of a run, a row for each with ``prompt`` and ``completion``.

    Beside them: where it is from, its ``kind``, its ``regret`` (None where it has none) and the
    ``payoff`` of its seat in the whole episode.

    Args:
        records: the run.
        players: whose replies, by their names. By default of those who asked a model; if nobody
            did, of all. Moves of others are put into words, as a model with default settings had.
        kinds: what was asked for: ``move``, or what models think beside it, such as ``plan``.
        most_regret: only moves that lost no more.
        hindsight: judge by regret in hindsight.

    Raises:
        UnknownName: the run has no such player.
        BadParameter, OtherEdition: moves have to be played again, and cannot be.
    """
    names = _names(records, players)
    for game in games(records):
        for episode in game.played:
            columns = {row.step: column for column, row in enumerate(episode.steps)}
            lost, payoffs = np.zeros((0, 0)), episode.earned.tolist()
            if episode.steps:  # else it was stopped in its first
                lost = move_regrets(episode.rules, episode.stacked(), hindsight)
            for reply in _replies(episode, names):
                if reply.kind not in kinds or reply.outcome != "valid" or not reply.text:
                    continue
                regret = None
                if reply.kind == MOVE and reply.step in columns:
                    regret = _number(lost[reply.seat, columns[reply.step]])
                if most_regret is not None and (regret is None or regret > most_regret):
                    continue
                chat = {"prompt": [*reply.prompt], "completion": _message(reply.text)}
                judged = {"kind": reply.kind, "regret": regret, "payoff": payoffs[reply.seat]}
                yield chat | reply.about | judged


def preferences(
    records: Records,
    players: Collection[str] = (),
    *,
    hindsight: bool = False,
    left_out: Counter[str] | None = None,
) -> Iterator[Plain]:
    """Yield pairs of replies to the same prompt: ``chosen`` lost less than ``rejected``.

    Of several moves in answer to a prompt the best is chosen over each other one, as they came
    (``source``: ``record``); what each lost is the mean over the first `MOST` times that the prompt
    came up. Of one move, or equally good ones, a legal move that had lost less is chosen, and both
    are written in the game's own form (``rules``). A reply that is no legal move is rejected beside
    the best one; it has no ``rejected_regret``.

    Arguments and errors are those of `sft`; `left_out` counts situations without a pair, by reason.
    """
    names = _names(records, players)
    counted = Counter[str]() if left_out is None else left_out
    check_rules(records, [row for row in records.episodes() if row.status in ("done", "running")])
    for game in games(records):
        for situation in _situations(game, names):
            yield from situation.pairs(hindsight, counted)


def _names(records: Records, players: Collection[str]) -> Collection[str]:
    """Empty: those who asked a model."""
    there = list(dict.fromkeys(name for game in records.games() for name in game.seats))
    for name in players:
        if name not in there:
            raise unknown("player of this run", name, there)
    return players or ([] if records.usage()["calls"] else there)


def _message(text: str) -> list[Plain]:
    return [{"role": "assistant", "content": text}]


def _number(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)


# -- what was said, and what a model had been asked ------------------------------------------------


def _replies(episode: RecordedEpisode, names: Collection[str]) -> list[SpokenReply]:
    """By step and seat; no names: of those who asked a model."""
    attempts, chats = episode.attempts(), episode.file.chats(episode.row.id)
    wanted = {seat for seat, name in enumerate(episode.seats) if not names or name in names}
    asking = {attempt.seat for attempt in attempts}
    decided = {(d.step, d.seat): d.action for d in episode.decisions() if not d.broke}
    replies = []
    for attempt in (attempt for attempt in attempts if attempt.seat in wanted):
        prompt, listed = attempt.prompt, isinstance(attempt.prompt, list)
        legal = attempt.kind == MOVE and attempt.outcome == "valid"
        move = decided.get((attempt.step, attempt.seat)) if legal else None
        reply = SpokenReply(
            episode=episode,
            step=attempt.step,
            seat=attempt.seat,
            prompt=Chat.of(episode.file.messages(prompt)) if listed else chats[prompt],
            text=attempt.text,
            kind=attempt.kind,
            outcome=attempt.outcome or "",
            move=_hashable(move),
        )
        replies.append(reply)
    if names and wanted - asking:
        replies += _in_words(episode, sorted(wanted - asking))
    return sorted(replies, key=lambda reply: (reply.step, reply.seat))


def _in_words(episode: RecordedEpisode, seats: Sequence[int]) -> Iterator[SpokenReply]:
    """Replies of seats without a model, from prompts that a model would have had."""
    table, moves_asked = Table(episode.rules), dict[int, Action]()
    table.reset(episode.row.seed, episode.given)

    def answer(request: Request) -> str:
        move = moves_asked.get(request.who.seat) if request.kind == MOVE else None
        return "" if move is None or request.question is None else request.question.reply(move)

    players = Seats(table, dict.fromkeys(seats, LLMPolicy(ScriptedClient(answer), max_attempts=1)))
    players.start()
    for step, moves in _again(episode, table):
        moves_asked.clear()
        moves_asked |= {seat: move for seat, move in moves.items() if _legal(table, moves, seat)}
        for seat, decision in players.ask_now().items():
            for call in decision.attempts:
                if call.kind == MOVE and call.outcome == "valid":
                    move = _hashable(moves_asked[seat])
                    yield SpokenReply(episode, step, seat, call.messages, call.text, move=move)


def _legal(table: Table, moves: Mapping[int, Action], seat: int) -> bool:
    broke = table.game.breaks(table.state, table.game.assemble(table.state, moves))
    return not broke[seat]


def _again(episode: RecordedEpisode, table: Table) -> Iterator[tuple[int, dict[int, Action]]]:
    """Yield each step's number and the moves at it, before the table makes them."""
    decided = moves_by_step(episode.decisions())
    for row in episode.steps:
        moves = decided.get(row.step, {})
        yield row.step, moves
        if plain(table.step(moves)) != row.record:
            raise BadParameter(
                f"{episode.file.path}: {episode.row.game.label}, episode {episode.row.number}, "
                f"step {row.step} plays otherwise than it was recorded; see llm-games replay"
            )


def _hashable(move: Any) -> Any:
    return tuple(move) if isinstance(move, list) else move


# -- what was lost ---------------------------------------------------------------------------------


def move_regrets(rules: Rulebook, steps: theory.Steps, hindsight: bool = False) -> Array:
    """Loss of each seat by step, float64 ``(players, steps)``; NaN: not defined."""
    regrets = np.full((rules.players, *np.shape(steps["actions"])[1:]), np.nan)
    with suppress(BadParameter):  # of a game too large to be solved
        if theory.has(rules.name, "interim") and not hindsight:
            regrets = theory.interim(rules, steps)
        if np.isnan(regrets).any() and theory.has_deviation(rules.name):
            regrets = np.where(np.isnan(regrets), theory.regret(rules, steps), regrets)
    return regrets


@dataclass(frozen=True)
class _DecisionAddress:
    """A seat at a move: the rules, the state before it, and the moves of all seats."""

    rules: Rulebook
    state: Any
    moves: dict[int, Action]
    seat: int

    def lost(self, options: Sequence[Any], hindsight: bool) -> Array:
        """Loss by move, all else as it was; NaN if it was not legal."""
        rules, count = self.rules, len(options)
        rows = (rules.assemble(self.state, {**self.moves, self.seat: option}) for option in options)
        actions = np.stack([*rows], axis=-1)
        arrays = self.state.arrays().items()
        each = {name: np.repeat(np.asarray(v)[..., None], count, -1) for name, v in arrays}
        state = self.state.replace(**each)
        _, outcome = rules.step(state, actions)
        regrets = move_regrets(rules, outcome.record, hindsight)[self.seat]
        return np.where(outcome.broke[self.seat], np.nan, regrets)

    def legal(self) -> list[Any]:
        """All if they are few, else shares of what is legal; of plans none."""
        if self.rules.division is not None:
            return []
        sight, cells = Sight(self.rules, self.state), (np.array([self.seat]),)
        answers, limits = Answers(self.rules), AnswerLimits.of(sight, cells)
        classes = np.flatnonzero(answers.legal(limits)[0])
        wide = limits.repeated(len(classes))
        return list(dict.fromkeys(answers.actions(classes, wide).tolist()))

    def reply_for(self, move: Any) -> str:
        question = self.rules.question(self.state, self.seat)
        assert question is not None
        return question.reply(move)


# -- pairs -----------------------------------------------------------------------------------------


@dataclass
class _ReplySituation:
    """A prompt: the first reply of each move, the replies that are none, and where it came up."""

    moves: dict[Any, SpokenReply] = field(default_factory=dict)
    bad: dict[str, SpokenReply] = field(default_factory=dict)
    places: list[_DecisionAddress] = field(default_factory=list)

    def add(self, reply: SpokenReply, address: _DecisionAddress) -> None:
        if reply.move is not None:
            self.moves.setdefault(reply.move, reply)
        elif reply.text:
            self.bad.setdefault(reply.text, reply)
        if len(self.places) < MOST:
            self.places.append(address)

    def ranked(self, moves: Sequence[Any], hindsight: bool) -> dict[Any, float]:
        """Mean loss of moves where they were legal and it is defined, the least first."""
        if not moves:
            return {}
        each = np.array([address.lost(moves, hindsight) for address in self.places])
        is_defined = ~np.isnan(each)
        total, counts = np.where(is_defined, each, 0).sum(axis=0), is_defined.sum(axis=0)
        means = (total / np.maximum(counts, 1)).tolist()
        defined = [index for index in range(len(moves)) if counts[index]]
        return {moves[index]: means[index] for index in sorted(defined, key=means.__getitem__)}

    def pairs(self, hindsight: bool, left_out: Counter[str]) -> Iterator[Plain]:
        lost = self.ranked([*self.moves], hindsight)
        best = next(iter(lost or self.moves), None)
        worse = [move for move in lost if lost[move] > lost[best] + TIE]
        if best is None or not (worse or self.bad):
            yield from self._by_rules(lost, hindsight, left_out)
            return
        chosen = self.moves[best].text, lost.get(best)
        texts = {move: self.moves[move].text for move in worse}
        yield from self._rejected("record", chosen, texts, lost)

    def _by_rules(
        self, lost: Mapping[Any, float], hindsight: bool, left_out: Counter[str]
    ) -> Iterator[Plain]:
        """Yield pairs with the best legal move, written as the game asks for it."""
        address = self.places[0]
        ranked = self.ranked([*dict.fromkeys([*lost, *address.legal()])], hindsight)
        why = "" if ranked else "no regret is defined"
        if any(reply.explains for reply in (*self.moves.values(), *self.bad.values())):
            why = "an explanation was asked for"
        if not why:
            best, regret = next(iter(ranked.items()))
            chosen = address.reply_for(best), regret
            worse = [move for move in lost if lost[move] > regret + TIE]
            texts = {move: address.reply_for(move) for move in worse}
            yield from self._rejected("rules", chosen, texts, lost)
            why = "" if worse or self.bad else "no legal move had lost less"
        if why:
            left_out[why] += 1

    def _rejected(
        self,
        source: str,
        chosen: tuple[str, float | None],
        worse: Mapping[Any, str],
        lost: Mapping[Any, float],
    ) -> Iterator[Plain]:
        """Yield pairs of a text with its regret and the `worse` moves' texts, or a bad reply."""
        rejected = [(self.moves[move], text, lost[move]) for move, text in worse.items()]
        for reply, text, regret in (*rejected, *((r, r.text, None) for r in self.bad.values())):
            texts = {"chosen": _message(chosen[0]), "rejected": _message(text)}
            regrets = {"chosen_regret": chosen[1], "rejected_regret": regret}
            yield {"prompt": [*reply.prompt], **texts, **regrets, "source": source, **reply.about}


def _situations(game: RecordedGame, names: Collection[str]) -> Iterable[_ReplySituation]:
    situations: dict[Chat, _ReplySituation] = {}
    for episode in game.played:
        replies_by_step: dict[int, list[SpokenReply]] = {}
        for reply in _replies(episode, names):
            if reply.kind == MOVE and reply.outcome != "tool":
                replies_by_step.setdefault(reply.step, []).append(reply)
        table = Table(episode.rules)
        table.reset(episode.row.seed, episode.given)
        for step, moves in _again(episode, table):
            for reply in replies_by_step.get(step, ()):
                address = _DecisionAddress(episode.rules, table.state, moves, reply.seat)
                situations.setdefault(reply.prompt, _ReplySituation()).add(reply, address)
    return situations.values()
