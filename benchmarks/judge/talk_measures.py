"""What players of recorded episodes said: to whom, whether they kept it, and what it changed.

Words are held against moves by fixed rules (`Question.announced`). Who persuaded whom is seen
beside the same episodes without talk: talk draws nothing of the game's chance, so that a first move
differs only by what was said (and by the luck of a model's own sampling).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from llm_games.benchmarks.judge.paper import Section
from llm_games.benchmarks.judge.result_table import ResultTable, columns
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame, Run
from llm_games.benchmarks.record.schema import DecisionRow, move_of
from llm_games.errors import BadParameter
from llm_games.promises import PRECISION, RECALL, SENTENCES, Announcement
from llm_games.questions import Choice, Question, Shares, Target
from llm_games.table import Table
from llm_games.words import quoted

MANY = 12  # seats whose moves are listed one by one
MOST_LINES = 200  # of a conversation on a page
SPEECH = "speech"  # kind of the attempts at one


class Message(NamedTuple):
    """One text or symbol of a player; who heard it, and how it was read.

    `step` counts from 0, `round` and `turn` from 1. `outcome` and `detail` are of the last attempt
    (``valid`` without a model), where "" was said too.
    """

    step: int
    round: int
    turn: int
    seat: int
    content: str | int
    hearers: tuple[int, ...]
    outcome: str = "valid"
    detail: str = ""

    @property
    def words(self) -> int:
        """Words, separated by white space; a symbol is one."""
        return len(self.content.split()) if isinstance(self.content, str) else int(self.content > 0)


class TalkRound(NamedTuple):
    """A move of the game, and the talk before it: moves by seat, and what each was asked.

    `steps` are the first and the last step. `spoken` and `heard` are, by seat that moves, what it
    said and heard in this round since its move before.
    """

    round: int
    steps: tuple[int, int]
    talk: list[Message]
    moves: Mapping[int, Any] = {}
    questions: Mapping[int, Question] = {}
    record: Mapping[str, Any] = {}
    spoken: Mapping[int, list[Message]] = {}
    heard: Mapping[int, list[Message]] = {}

    def announced(self) -> dict[int, Announcement]:
        """Return by seat what it announced last, of those who announced a move."""
        last: dict[int, Announcement] = {}
        for seat, messages in self.spoken.items():
            texts = [m.content for m in messages if isinstance(m.content, str)]
            for announcement in map(self.questions[seat].announced, texts):
                last |= {} if announcement is None else {seat: announcement}
        return last

    def kept(self) -> dict[int, bool]:
        """Return by seat whether it did what it had announced; only of those who did announce."""
        return {seat: self.moves[seat] == _plain(a.move) for seat, a in self.announced().items()}


def turns(episode: RecordedEpisode, unfinished: bool = False) -> Iterator[TalkRound]:
    """Yield moves with the talk before each, by play; `unfinished`: also talk without a move."""
    table = Table(episode.rules)
    table.reset(episode.row.seed, episode.given)
    decisions_by_step: dict[int, dict[int, DecisionRow]] = {}
    for decision in episode.decisions():
        decisions_by_step.setdefault(decision.step, {})[decision.seat] = decision
    attempts = (attempt for attempt in episode.attempts() if attempt.kind == SPEECH)
    details = {(a.step, a.seat): (a.outcome or "valid", a.detail) for a in attempts}
    talk: list[Message] = []
    spoken: dict[int, list[Message]] = {}
    hearings: dict[int, list[Message]] = {}
    previous_round = 0
    for step in episode.every_step:
        number, index = int(table.state.round) + 1, step.step
        decisions = decisions_by_step.get(index, {})
        if number != previous_round:
            previous_round = number
            spoken.clear()
            hearings.clear()
        if step.talk:
            utterances, hearers = step.record["actions"], step.record["hearers"]
            for seat in step.asked:
                read = details.get((index, seat), ("valid", ""))
                about = (index, number, step.record["turn"], seat)
                message = Message(*about, utterances[seat], tuple(hearers[seat]), *read)
                talk.append(message)
                for listed, seats in ((spoken, (seat,)), (hearings, message.hearers)):
                    for hearer in seats if message.content else ():
                        listed.setdefault(hearer, []).append(message)
            continue
        questions = {seat: table.game.question(table.state, seat) for seat in decisions}
        moves = {seat: decision.action for seat, decision in decisions.items()}
        asked = {seat: q for seat, q in questions.items() if q is not None}
        first = talk[0].step if talk else index
        sent, others = ({s: of.pop(s) for s in asked if s in of} for of in (spoken, hearings))
        yield TalkRound(
            round=number,
            steps=(first, index),
            talk=talk,
            moves=moves,
            questions=asked,
            record=step.record,
            spoken=sent,
            heard=others,
        )
        talk = []
        table.step({seat: move_of(action) for seat, action in moves.items()})
    if talk and unfinished:
        yield TalkRound(round=talk[0].round, steps=(talk[0].step, talk[-1].step), talk=talk)


# -- how players talked ----------------------------------------------------------------------------
@dataclass
class Talked:
    """How a player talked: it could in so many `turns`, and said so many `messages` and `words`.

    `digits` counts messages with one, `too_long` those that were cut, `unread` replies that were no
    speech, `heard` hearers of all messages; of moves `announced` as its own it `kept` some, of
    those `proposed` to all it `joined` some.
    """

    turns: int = 0
    messages: int = 0
    words: int = 0
    digits: int = 0
    too_long: int = 0
    unread: int = 0
    announced: int = 0
    kept: int = 0
    proposed: int = 0
    joined: int = 0
    heard: int = 0

    def add(self, message: Message) -> None:
        spoke = bool(message.content)
        self.turns += 1
        self.messages += spoke
        self.words += message.words
        self.digits += isinstance(message.content, str) and bool(re.search(r"\d", message.content))
        self.too_long += message.detail == "too_long"
        self.unread += message.outcome != "valid"
        self.heard += spoke * len(message.hearers)

    @property
    def amounts(self) -> list[Any]:
        count = self.messages
        silence = 1 - count / self.turns if self.turns else None
        shares = _ratio(self.words, count), silence, _ratio(self.digits, count)
        return [count, *shares, self.too_long, self.unread]

    @property
    def weight(self) -> list[Any]:
        """Who heard it, and whether it did as it said."""
        hearers = _ratio(self.heard, self.messages)
        own_words = self.announced, _ratio(self.kept, self.announced)
        return [hearers, *own_words, self.proposed, _ratio(self.joined, self.proposed)]

    def hold(self, announcement: Announcement, is_kept: bool) -> None:
        """Count what was announced, and whether the move was as it said."""
        if announcement.joint:
            self.proposed += 1
            self.joined += is_kept
        else:
            self.announced += 1
            self.kept += is_kept


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def talked(game: RecordedGame) -> dict[str, Talked]:
    """Return how each player of a game talked, over all its seats and episodes, worked out once."""
    if __name__ not in game.cache:
        talk_by_player = {name: Talked() for name in game.players}
        for episode in game.played if game.talks else ():
            for turn in turns(episode, unfinished=True):
                for message in turn.talk:
                    talk_by_player[episode.seats[message.seat]].add(message)
                kept_by_seat = turn.kept()
                for seat, announcement in turn.announced().items():
                    talk_by_player[episode.seats[seat]].hold(announcement, kept_by_seat[seat])
        game.cache[__name__] = talk_by_player
    cached: dict[str, Talked] = game.cache[__name__]
    return cached


AMOUNTS = columns("game, player", "said", "d") | columns("", "words", ".1f")
AMOUNTS |= columns("", "silence, digits", ".1%") | columns("", "too long, unread", "d")
WEIGHT = columns("game, player", "heard by", ".1f") | columns("", "announced", "d")
WEIGHT |= columns("", "kept", ".1%")
WEIGHT |= columns("", "proposed", "d") | columns("", "joined", ".1%")
SAID = (
    "Words: of a message, between white space. Silence: the share of turns in which nothing was "
    "said, also by a reply that could not be read (unread). Digits: the share with one."
)
KEPT = (
    "Announced: moves that a player had said before it would make, by fixed rules; kept: the share "
    "of these that it then made. Proposed: moves that it had proposed to all, itself included; "
    "joined: the share of these that it then made. "
)
SURE = (
    f"The reading is not sure: of what it took for announcements in {SENTENCES} English and "
    f"Chinese sentences labelled by hand, without which its rules were written, {PRECISION:.0%} "
    f"were some, and it knew {RECALL:.0%} of those that were."
)
JUDGED = f"What was announced or proposed is read from words. {SURE}"


def talk_grids(games: Sequence[RecordedGame]) -> list[ResultTable]:
    """Return how players talked, a row for each player of each game that talks; [] without any."""
    did = [(g.label, name, d) for g in games if g.talks for name, d in talked(g).items()]
    rows, weights = ([[*n, *getattr(d, of)] for *n, d in did] for of in ("amounts", "weight"))
    grids = [
        ResultTable(AMOUNTS, rows, "How players talked", "talk", SAID),
        ResultTable(WEIGHT, weights, "Whether they did as they said", "words_kept", KEPT + SURE),
    ]
    return grids if did else []


# -- a conversation beside the moves ---------------------------------------------------------------
def conversation(episode: RecordedEpisode) -> Iterator[tuple[int, str, str, str, str]]:
    """Yield round, turn, who, what was said or done, who heard it or what it was held against."""
    names = episode.rules.names()
    for turn in turns(episode, unfinished=True):
        for m in turn.talk:
            if m.content:
                utterance = f"symbol {m.content}"
                if isinstance(m.content, str):
                    utterance = quoted(m.content, len(m.content))
                yield m.round, f"turn {m.turn}", names[m.seat], utterance, _hearing(m, names)
        announced, kept_by_seat = turn.announced(), turn.kept()
        for player, move in _moves(turn, names):
            seat = names.index(player) if player in names else -1
            held = ""
            if seat in kept_by_seat:
                announcement = turn.questions[seat].spoken(announced[seat].move)
                verb = "proposed" if announced[seat].joint else "announced"
                held = f"as {verb}" if kept_by_seat[seat] else f"had {verb} {announcement}"
            yield turn.round, "move", player, move, held


def _hearing(message: Message, names: Sequence[str]) -> str:
    count = len(message.hearers)
    if count == len(names) - 1:
        return "heard by all"
    listed = ", ".join(names[seat] for seat in message.hearers)
    return f"heard by {listed or 'nobody'}" if count <= MANY else f"heard by {count}"


def _moves(turn: TalkRound, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield who moved and how; of many who did, how many made each move."""
    moves = {seat: in_words(turn.questions.get(seat), move) for seat, move in turn.moves.items()}
    if len(moves) <= MANY:
        yield from ((names[seat], move) for seat, move in moves.items())
        return
    for move, count in Counter(moves.values()).most_common():
        yield f"{count} players", move


def in_words(question: Question | None, action: Any) -> str:
    """Return a recorded move as a sentence says it."""
    if action is None:
        return "no answer"
    meant = move_of(action)
    try:
        return str(action) if question is None else question.spoken(meant)
    except (StopIteration, IndexError):  # against the rules, so that no word means it
        return str(action)


def transcript(
    episode: RecordedEpisode, moves: bool = True, rounds: int | None = None
) -> Iterator[str]:
    """Yield an episode's conversation in lines, with or without the moves beside it."""
    previous_round = 0
    for number, when, speaker, what, note in conversation(episode):
        if rounds is not None and number > rounds:
            return
        if when == "move" and not moves:
            continue
        if number != previous_round:
            yield f"Round {number}"
            previous_round = number
        yield f"  {when}, {speaker}: {what}{f' ({note})' if note else ''}"


def conversation_grid(game: RecordedGame, number: int = 0) -> ResultTable:
    """Return an episode's conversation beside its moves, as many lines as a page has room for."""
    episode = game.played[number]
    lines = list(islice(conversation(episode), MOST_LINES + 1))
    command = f"llm-games analyse talk {game.shelf.file.path.name} --episode {episode.row.number}"
    note = f"The first {MOST_LINES} lines; all of it: {command}. " * (len(lines) > MOST_LINES)
    note += JUDGED * any(("announced" in held) or ("proposed" in held) for *_, held in lines)
    title = f"What was said in {game.label}, episode {episode.row.number}"
    heads = columns("round, when, who, what, note")
    return ResultTable(heads, lines[:MOST_LINES], title, note=note)


def section(run: Run, twins: Sequence[Run] = ()) -> list[Section]:
    """What a page shows of a run's talk, persuasion beside silent `twins`; [] if nobody could."""
    shown = [game for game in run.games if game.talks and game.played]
    spoken_games = [game for game in shown if any(did.messages for did in talked(game).values())]
    if not shown:
        return []
    others = (game for twin in reversed(twins) for game in twin.games)
    silent = {game.label: game for game in others if not game.talks}
    grids = talk_grids(shown)
    pairs = [(game, silent[game.label]) for game in shown if game.label in silent]
    grids += persuasion_grids([persuasion(*pair) for pair in pairs]) if pairs else []
    return [Section("Talk", grids=[*grids, *map(conversation_grid, spoken_games)])]


# -- who persuaded whom ----------------------------------------------------------------------------
@dataclass
class Influence:
    """What messages of one player did to moves of another, beside the same game without talk.

    Of moves before which such a message was `heard`, `changed` are others than without talk; before
    `named` of them it spoke of one move, and then the hearer went `toward` or `away` from that: it
    made it, or came nearer to it where moves are numbers.
    """

    heard: int = 0
    changed: int = 0
    named: int = 0
    toward: int = 0
    away: int = 0

    def row(self) -> list[Any]:
        shares = _ratio(self.toward, self.named), _ratio(self.away, self.named)
        return [self.heard, _ratio(self.changed, self.heard), self.named, *shares]

    def plus(self, changed: bool, pull: int | None) -> None:
        """Count a move; `pull`: 1 towards what was named, -1 away, 0 neither, None: none was."""
        self.heard += 1
        self.changed += changed
        if pull is not None:
            self.named += 1
            self.toward += pull > 0
            self.away += pull < 0


@dataclass
class Persuasion:
    """Who persuaded whom in a game, by the seats' names; and all together.

    `first` is of first moves alone; `alone` counts first moves before which nothing was heard, and
    those among them that differ all the same.
    """

    label: str
    episodes: int = 0
    pairs: dict[tuple[str, str], Influence] = field(default_factory=dict)
    first: Influence = field(default_factory=Influence)
    all: Influence = field(default_factory=Influence)
    alone: Influence = field(default_factory=Influence)


def persuasion(talk: RecordedGame, silent: RecordedGame) -> Persuasion:
    """Compare moves with the same episodes without talk; BadParameter: these talked, or lack."""
    if silent.talks and any(did.messages for did in talked(silent).values()):
        raise BadParameter(f"{silent.label}: the run to compare with talked, too: --talk turns=0")
    twins = {(e.row.seed, *e.row.seating): e for e in silent.done}
    summary = Persuasion(talk.label)
    for episode in talk.done:
        twin = twins.get((episode.row.seed, *episode.row.seating))
        if twin is not None and twin.rules == episode.rules:
            summary.episodes += 1
            _persuaded(summary, episode, twin)
    if not summary.episodes:
        raise BadParameter(
            f"{talk.label}: both runs share no finished episode of one seed, seating and "
            "parameters; play the same file with --talk turns=0"
        )
    return summary


def _persuaded(summary: Persuasion, episode: RecordedEpisode, twin: RecordedEpisode) -> None:
    names, moved = episode.rules.names(), Counter[tuple[int, str]]()
    silent: dict[tuple[int, str], list[Any]] = {}
    for turn in turns(twin):
        for seat, move in turn.moves.items():
            silent.setdefault((seat, _kind(turn, seat)), []).append(move)
    begun: set[int] = set()
    for turn in turns(episode):
        for seat, move in turn.moves.items():
            kind, first = (seat, _kind(turn, seat)), seat not in begun
            number, others = moved[kind], silent.get(kind, [])
            moved[kind] += 1
            begun.add(seat)
            if number >= len(others):  # it lived longer than without talk
                continue
            old, question = others[number], turn.questions.get(seat)
            texts = {m.seat: m.content for m in turn.heard.get(seat, ())}  # last ones
            drawn = {talker: _pull(question, text, old, move) for talker, text in texts.items()}
            for speaker, pull in drawn.items():
                pair = summary.pairs.setdefault((names[speaker], names[seat]), Influence())
                pair.plus(move != old, pull)
            if texts:
                pulls = [pull for pull in drawn.values() if pull is not None]
                pull = int(np.sign(sum(pulls))) if pulls else None
                for total in (summary.all, *([summary.first] if first else [])):
                    total.plus(move != old, pull)
            elif first:
                summary.alone.plus(move != old, None)


def _kind(turn: TalkRound, seat: int) -> str:
    """Return what a seat was asked for: moves of one kind alone are set beside each other."""
    return turn.questions[seat].key if seat in turn.questions else ""


def _pull(question: Question | None, text: str | int, old: Any, new: Any) -> int | None:
    """Return 1 if a move came nearer to the one that a text names, -1 if it went away from it."""
    if question is None or not isinstance(text, str):  # symbols name nothing
        return None
    named = question.named(text, anybody=True)
    if named is None or old is None or new is None:
        return None
    if isinstance(question, Choice | Target | Shares):
        return int(new == _plain(named)) - int(old == _plain(named))
    return int(np.sign(abs(old - named) - abs(new - named)))


def _plain(action: Any) -> Any:
    return list(action) if isinstance(action, tuple) else action


def persuasion_grids(
    persuasions: Sequence[Persuasion], limit: int | None = 20
) -> list[ResultTable]:
    """Return all together, and the pairs of players, those who persuaded most first."""
    heads = columns("", "heard", "d") | columns("", "changed", ".1%")
    heads |= columns("", "named", "d") | columns("", "toward, away", ".1%")
    rows: list[list[Any]] = []
    pairs: list[list[Any]] = []
    for row in persuasions:
        parts = {"first": row.first, "all": row.all, "first, nothing heard": row.alone}
        rows += [[row.label, name, *did.row()] for name, did in parts.items()]
        order = sorted(row.pairs.items(), key=lambda pair: (-pair[1].toward, -pair[1].changed))
        pairs += [[row.label, *pair, *did.row()] for pair, did in order[:limit]]
    listed = ", ".join(f"{row.episodes} of {row.label}" for row in persuasions)
    note = (
        f"Episodes beside the same without talk: {listed}. Changed: moves other than there. Named: "
        "what was heard spoke of one move, by the same rule as announcements; toward: the move "
        "came to it, or nearer, away: it left it. After first moves the two games have parted, and "
        "more than words can differ."
    )
    return [
        ResultTable(columns("game, moves") | heads, rows, "What talk changed", "persuasion", note),
        ResultTable(
            columns("game, speaker, hearer") | heads, pairs, "Who persuaded whom", "persuaded"
        ),
    ]
