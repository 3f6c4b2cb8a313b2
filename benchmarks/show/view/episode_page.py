"""The page of an episode: rounds down, seats across, its talk, and the game's own picture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import urlencode

from llm_games.benchmarks.judge.talk_measures import Message, TalkRound
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.rows import DecisionRow, move_of
from llm_games.benchmarks.show.view import replayed as played
from llm_games.benchmarks.show.view.replayed import ReplayedEpisode
from llm_games.benchmarks.show.view.texts import visible
from llm_games.pictures import Drawing
from llm_games.questions import BEYOND, Question

ACROSS = 16
"""Seats up to which a table has a column for each; of more, who acted is listed."""
CELLS = 1000
"""Moves on a page, about; what comes later is on the next."""
LONGEST = 400
"""Characters of a message in the conversation; all of it is on the page of its decision."""


class DecisionCell(NamedTuple):
    """A decision in the table: `move` in words, `regret` None where it is not defined.

    `again` counts how often it was asked again.
    """

    decision: DecisionRow
    move: str
    regret: float | None
    again: int
    thinking: bool


class MessageLine(NamedTuple):
    """A message, its words (cut), and who heard it."""

    message: Message
    words: str
    heard: str


class MoveLine(NamedTuple):
    """A row of the table: the talk before it, and who moved how, by seat.

    It is a step of the game, or some in which others are asked the same, one after another.
    """

    said: Sequence[MessageLine]
    cells: dict[int, DecisionCell]


class RoundLines(NamedTuple):
    """A round and its rows; `picture` is the number of the picture after it, None without."""

    number: int
    rows: Sequence[MoveLine]
    picture: int | None


class Seat(NamedTuple):
    """A seat's name, who sat there, and its sums, of regret None where it is unknown."""

    seat: int
    name: str
    player: str
    payoff: float
    regret: float | None


class EpisodePage(NamedTuple):
    """What the page of an episode shows; `here` is the address of its run.

    `before` and `after` are the first rounds of the pages beside this one, None if there is none;
    `earlier` and `later` the ids of the episodes beside it. `pictures` are captions, one for each
    picture, [] for a game that draws none, and `picture` is the one that is shown. `afterwards` are
    steps and seats of those who looked back when it was over.
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
    before: int | None
    after: int | None
    earlier: int | None
    later: int | None
    afterwards: Sequence[tuple[int, int]]


def page(
    records: Records, episode: int, here: str = "", first: int = 1, picture: int | None = None
) -> EpisodePage:
    """Return the page of an episode, by its id, from a round on; `here` is its run's address.

    The `picture` after so many rounds is shown, by default the last.

    Raises:
        NoSuchPage: there is no such episode.
    """
    return shown(played.read(records, episode), here, first, picture)


def picture(records: Records, episode: int, number: int) -> Drawing:
    """Return the game's own picture of an episode at its start, 0, or after so many rounds.

    Raises:
        NoSuchPage: there is no such episode or picture.
    """
    found = played.read(records, episode)
    many = len(found.scenes)
    if not 0 <= number < many:
        raise played.NoSuchPage(f"episode {episode} has {many} pictures, none is {number}")
    return found.picture(number)


def shown(
    found: ReplayedEpisode, here: str = "", first: int = 1, picture: int | None = None
) -> EpisodePage:
    """Return the page of an episode that was read, see `page`."""
    row = found.row
    numbers = [number for number, _ in groupby(turn.round for turn in found.turns)]
    first = min(first, numbers[-1] if numbers else 1)
    some = _of_page(found.turns, first)
    if found.regret is None:
        found.judge([turn.steps[1] for turn in some])
    rounds = [
        RoundLines(number, _rows(found, [*own]), _picture(found, number, numbers))
        for number, own in groupby(some, key=lambda turn: turn.round)
    ]
    beside = found.siblings
    place = beside.index(row.id)
    pictures = [title for _, title in found.scenes]
    at = len(pictures) - 1 if picture is None else min(max(picture, 0), len(pictures) - 1)
    last = len(found.episode.every_step)
    return EpisodePage(
        here=here,
        replayed=found,
        title=f"Episode {row.number}",
        crumbs=crumbs(found, here),
        seats=_seats(found),
        across=len(found.names) <= ACROSS,
        rounds=rounds,
        all_rounds=len(numbers),
        pictures=pictures,
        picture=at,
        before=_page_before(found.turns, first),
        after=some[-1].round + 1 if some and some[-1] is not found.turns[-1] else None,
        earlier=beside[place - 1] if place else None,
        later=beside[place + 1] if place + 1 < len(beside) else None,
        afterwards=sorted(
            place for place in found.attempts if place[0] >= last and place not in found.decisions
        ),
    )


def crumbs(found: ReplayedEpisode, here: str) -> list[tuple[str, str]]:
    """Return the way to an episode: its run, and its game there."""
    label = found.row.game.label
    return [(found.episode.file.title, here), (label, f"{here}/game?{urlencode({'label': label})}")]


def _of_page(turns: Sequence[TalkRound], first: int) -> list[TalkRound]:
    """Return the turns from a round on that have room on a page, whole rounds, at least one."""
    some: list[TalkRound] = []
    cells = 0
    for turn in turns:
        if turn.round < first:
            continue
        if some and turn.round != some[-1].round and cells >= CELLS:
            break
        some.append(turn)
        cells += len(turn.moves) + len(turn.talk)
    return some


def _page_before(turns: Sequence[TalkRound], first: int) -> int | None:
    """Return the first round of the page before one that begins with a round."""
    cells, begin = 0, None
    for turn in reversed([turn for turn in turns if turn.round < first]):
        if begin is not None and turn.round != begin and cells >= CELLS:
            break
        begin = turn.round
        cells += len(turn.moves) + len(turn.talk)
    return begin


def _picture(found: ReplayedEpisode, number: int, numbers: Sequence[int]) -> int | None:
    """Return which picture shows the end of a round."""
    many = len(found.scenes)
    return min(numbers.index(number) + 1, many - 1) if many > 1 else None


def _rows(found: ReplayedEpisode, own: Sequence[TalkRound]) -> list[MoveLine]:
    """Return the rows of a round."""
    rows: list[MoveLine] = []
    before: set[str] = set()
    for turn in own:
        row, asked = _row(found, turn), {question.key for question in turn.questions.values()}
        if rows and not row.said and asked == before and not row.cells.keys() & rows[-1].cells:
            rows[-1].cells.update(row.cells)
        else:
            rows.append(row)
        before = asked
    return rows


def _row(found: ReplayedEpisode, turn: TalkRound) -> MoveLine:
    cells = {}
    for seat, move in turn.moves.items():
        decision = found.decisions[turn.steps[1], seat]
        cells[seat] = _cell(found, decision, words(turn.questions.get(seat), move))
    return MoveLine([_said(found, message) for message in turn.talk], cells)


def _cell(found: ReplayedEpisode, decision: DecisionRow, move: str) -> DecisionCell:
    attempts = found.attempts.get((decision.step, decision.seat), [])
    return DecisionCell(
        decision=decision,
        move=move,
        regret=found.regret_of(decision.step, decision.seat),
        again=sum(a.kind == "move" and a.outcome != "tool" for a in attempts[:-1]),
        thinking=any(attempt.thoughts for attempt in attempts),
    )


def _said(found: ReplayedEpisode, message: Message) -> MessageLine:
    text = message.content if isinstance(message.content, str) else f"symbol {message.content}"
    words = visible(text[:LONGEST]) + (" …" if len(text) > LONGEST else "")
    return MessageLine(message, words, hearing(found, message.hearers))


def hearing(found: ReplayedEpisode, hearers: Sequence[int]) -> str:
    """Say who heard a message."""
    if len(hearers) == len(found.names) - 1:
        return "all"
    listed = ", ".join(found.names[seat] for seat in hearers) or "nobody"
    return listed if len(hearers) <= ACROSS else f"{len(hearers)} players"


def words(question: Question | None, action: Any) -> str:
    """Write a recorded move as a sentence says it; as it is where nothing is known of it."""
    if action is None:
        return "no answer"
    if isinstance(action, int) and abs(action) >= BEYOND:
        return "a number too large for any game"
    if question is not None:
        try:
            return visible(question.spoken(move_of(action)))
        except (StopIteration, IndexError):  # against the rules: no word means it
            pass
    return visible(str(action))


def _seats(found: ReplayedEpisode) -> list[Seat]:
    payoffs = found.episode.rewards.sum(axis=0)
    regrets = found.regret
    return [
        Seat(
            seat=seat,
            name=name,
            player=player,
            payoff=float(payoffs[seat]),
            regret=None if regrets is None else float(regrets[seat]),
        )
        for seat, (name, player) in enumerate(zip(found.names, found.row.seats, strict=True))
    ]
