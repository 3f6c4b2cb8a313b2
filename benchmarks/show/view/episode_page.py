"""The page of an episode: rounds down, seats across, its talk, and the game's own picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import urlencode

from llm_games.benchmarks.judge.talk_measures import JUDGED, Message, TalkRound
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.schema import DecisionRow, move_of
from llm_games.benchmarks.show.view import replayed as played
from llm_games.benchmarks.show.view.replayed import ReplayedEpisode
from llm_games.benchmarks.show.view.texts import visible
from llm_games.pictures import Drawing
from llm_games.promises import Announcement
from llm_games.questions import BEYOND, Question

ACROSS = 16
"""Seats up to which a table has a column for each; of more, who acted is listed."""
CELLS = 1000
"""Moves on a page, about; what comes later is on the next."""
LONGEST = 400
"""Characters of a message in the conversation; all of it is on the page of its decision."""


class DecisionCell(NamedTuple):
    """A move in words, its regret (None: not defined), and how often it was asked `again`.

    `word` says what it had announced, and whether it did that; "" where it announced nothing.
    """

    decision: DecisionRow
    move: str
    regret: float | None
    again: int
    thinking: bool
    word: str = ""


class MessageLine(NamedTuple):
    """A message, its words (cut), and its hearers."""

    message: Message
    words: str
    hearers: str


class MoveLine(NamedTuple):
    """Talk and moves by seat, of a step or of several that ask others the same in turn.

    `sold`: what was sold in it, in words.
    """

    talk: Sequence[MessageLine]
    cells: dict[int, DecisionCell]
    sold: list[str]


class RoundLines(NamedTuple):
    """A round and its rows; `picture` is the number of the picture after it, None without."""

    number: int
    rows: Sequence[MoveLine]
    picture: int | None


class Seat(NamedTuple):
    """A seat's name, player and sums; regret None where it is unknown."""

    seat: int
    name: str
    player: str
    payoff: float
    regret: float | None


class EpisodePage(NamedTuple):
    """The page of an episode; `here` is the address of its run.

    `previous_first` and `next_first` are first rounds of the pages beside this one, `earlier` and
    `later` ids of episodes; `pictures` are captions, `afterwards` steps and seats asked at the end.
    """

    here: str
    replayed: ReplayedEpisode
    title: str
    crumbs: Sequence[tuple[str, str]]
    seats: Sequence[Seat]
    across: bool
    rounds: Sequence[RoundLines]
    all_rounds: int
    pictures: Sequence[str]
    picture: int
    previous_first: int | None
    next_first: int | None
    earlier: int | None
    later: int | None
    afterwards: Sequence[tuple[int, int]]

    @property
    def how_sure(self) -> str:
        """How surely words are read, "" where none announced a move."""
        cells = (cell for lines in self.rounds for row in lines.rows for cell in row.cells.values())
        return JUDGED if any(cell.word for cell in cells) else ""


def page(
    replayed: ReplayedEpisode,
    here: str = "",
    first: int = 1,
    picture: int | None = None,
    cells: int = CELLS,
) -> EpisodePage:
    """About so many moves of an episode from a round on; `picture`: after which, by default 0."""
    row = replayed.row
    numbers = [number for number, _ in groupby(turn.round for turn in replayed.turns)]
    first = min(first, numbers[-1] if numbers else 1)
    turns = _filling((turn for turn in replayed.turns if turn.round >= first), cells)
    previous = _filling((turn for turn in reversed(replayed.turns) if turn.round < first), cells)
    if replayed.regret is None:
        replayed.judge([turn.steps[1] for turn in turns])
    rounds = [
        RoundLines(number, _rows(replayed, [*round_turns]), _picture(replayed, number, numbers))
        for number, round_turns in groupby(turns, key=lambda turn: turn.round)
    ]
    siblings = [None, *replayed.siblings, None]
    index = siblings.index(row.id)
    pictures = [title for _, title in replayed.scenes]
    last_picture = len(pictures) - 1
    last = len(replayed.episode.every_step)
    return EpisodePage(
        here=here,
        replayed=replayed,
        title=f"Episode {row.number}",
        crumbs=crumbs(replayed, here),
        seats=_seats(replayed),
        across=len(replayed.names) <= ACROSS,
        rounds=rounds,
        all_rounds=len(numbers),
        pictures=pictures,
        picture=min(max(picture or 0, 0), last_picture),
        previous_first=previous[-1].round if previous else None,
        next_first=turns[-1].round + 1 if turns and turns[-1] is not replayed.turns[-1] else None,
        earlier=siblings[index - 1],
        later=siblings[index + 1],
        afterwards=sorted(
            key for key in replayed.attempts if key[0] >= last and key not in replayed.decisions
        ),
    )


def picture(records: Records, episode: int, number: int) -> Drawing:
    """The picture at the start, 0, or after so many rounds; raises NoSuchPage."""
    replayed = played.read(records, episode)
    count = len(replayed.scenes)
    if not 0 <= number < count:
        raise played.NoSuchPage(f"episode {episode} has {count} pictures, none is {number}")
    return replayed.picture(number)


def crumbs(replayed: ReplayedEpisode, here: str) -> list[tuple[str, str]]:
    label = replayed.row.game.label
    return [
        (replayed.episode.file.title, here),
        (label, f"{here}/game?{urlencode({'label': label})}"),
    ]


def _filling(turns: Iterable[TalkRound], cells: int) -> list[TalkRound]:
    """The first turns, as many as have room on a page, whole rounds, at least one."""
    page_turns: list[TalkRound] = []
    filled = 0
    for turn in turns:
        if page_turns and turn.round != page_turns[-1].round and filled >= cells:
            break
        page_turns.append(turn)
        filled += len(turn.moves) + len(turn.talk)
    return page_turns


def _picture(replayed: ReplayedEpisode, number: int, numbers: Sequence[int]) -> int | None:
    count = len(replayed.scenes)
    return min(numbers.index(number) + 1, count - 1) if count > 1 else None


def _rows(replayed: ReplayedEpisode, turns: Sequence[TalkRound]) -> list[MoveLine]:
    rows: list[MoveLine] = []
    previous_keys: set[str] = set()
    for turn in turns:
        row, keys = _row(replayed, turn), {question.key for question in turn.questions.values()}
        is_same = keys == previous_keys and not row.talk
        if rows and is_same and not row.cells.keys() & rows[-1].cells:
            rows[-1].cells.update(row.cells)
            rows[-1].sold.extend(row.sold)
        else:
            rows.append(row)
        previous_keys = keys
    return rows


def _row(replayed: ReplayedEpisode, turn: TalkRound) -> MoveLine:
    cells, step = {}, turn.steps[1]
    announced, kept_by = turn.announced(), turn.kept()
    for seat, move in turn.moves.items():
        attempts = replayed.attempts.get((step, seat), [])
        cells[seat] = DecisionCell(
            decision=replayed.decisions[step, seat],
            move=words(turn.questions.get(seat), move),
            regret=replayed.regret_of(step, seat),
            again=max(sum(a.kind == "move" and a.outcome != "tool" for a in attempts) - 1, 0),
            thinking=any(attempt.thoughts for attempt in attempts),
            word=_word(turn.questions.get(seat), announced[seat], kept_by[seat])
            if seat in announced
            else "",
        )
    lines = []
    for message in turn.talk:
        text = message.content if isinstance(message.content, str) else f"symbol {message.content}"
        text = visible(text[:LONGEST]) + " …" * (len(text) > LONGEST)
        lines.append(MessageLine(message, text, hearing(replayed, message.hearers)))
    return MoveLine(lines, cells, replayed.sold(step))


def _word(question: Question | None, announced: Announcement, is_kept: bool) -> str:
    """What a seat had announced, as rules read it from its words."""
    verb = "proposed" if announced.joint else "announced"
    return f"{verb} {words(question, announced.move)}: {'kept' if is_kept else 'not kept'}"


def hearing(replayed: ReplayedEpisode, hearers: Sequence[int]) -> str:
    if len(hearers) == len(replayed.names) - 1:
        return "all"
    listed = ", ".join(replayed.names[seat] for seat in hearers) or "nobody"
    return listed if len(hearers) <= ACROSS else f"{len(hearers)} players"


def words(question: Question | None, action: Any) -> str:
    """A recorded move as a sentence says it; the bare value without a question."""
    if action is None:
        return "no answer"
    if isinstance(action, int) and abs(action) >= BEYOND:
        return "a number too large for any game"
    with suppress(StopIteration, IndexError):  # against the rules: no word means it
        if question is not None:
            return visible(question.spoken(move_of(action)))
    return visible(str(action))


def _seats(replayed: ReplayedEpisode) -> list[Seat]:
    payoffs, names = replayed.episode.earned.tolist(), replayed.names
    regrets = [None] * len(names) if replayed.regret is None else replayed.regret.tolist()
    columns = names, replayed.row.seats, payoffs, regrets
    return [Seat(seat, *values) for seat, values in enumerate(zip(*columns, strict=True))]
