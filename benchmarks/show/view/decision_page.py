"""The page of a decision: what was sent and answered, how that was read, what would be better."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.deviation import has_deviation
from llm_games.baselines.hindsight import Hindsight, hindsight, rule_move
from llm_games.benchmarks.judge.talk_measures import TalkRound
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.rows import (
    OVERFLOW,
    TALK,
    AttemptRow,
    DecisionRow,
    NoteRow,
    move_of,
)
from llm_games.benchmarks.show.view import replayed as played
from llm_games.benchmarks.show.view.episode_page import crumbs, hearing, words
from llm_games.benchmarks.show.view.replayed import NoSuchPage, ReplayedEpisode
from llm_games.benchmarks.show.view.texts import Piece, piece
from llm_games.questions import MISSING, Question
from llm_games.replies import LENIENCIES, split_thoughts
from llm_games.rulebook import Rulebook
from llm_games.table import Table

OPEN = 4
"""Messages of a conversation that stand open, its first and its last ones; others are folded."""
NAMES = re.compile("all|move|(note|reply|thoughts)-[0-9]{1,9}|(sent|tool)(-[0-9]{1,9}){2}")


class PromptPart(NamedTuple):
    """A text of a decision: its `name` in addresses, whose it is, and how it begins."""

    name: str
    role: str
    piece: Piece
    folded: bool = False


class CompletionView(NamedTuple):
    """A completion: the messages that had not been sent before it, and its answer.

    `repeated` counts the messages that were sent again, which stand above; `leniencies` are by name
    what reading the answer let pass, and why.
    """

    attempt: AttemptRow
    repeated: int
    sent: Sequence[PromptPart]
    thoughts: PromptPart | None
    reply: PromptPart | None
    tools: Sequence[tuple[str, PromptPart]]
    leniencies: Mapping[str, str]
    about: Mapping[str, str]


class BeliefCheck(NamedTuple):
    """A part of a belief beside what was so."""

    what: str
    said: str
    fact: str
    right: bool


class Noted(NamedTuple):
    """What a player wrote down: as text, or as a belief held against facts."""

    kind: str
    part: PromptPart
    facts: Sequence[BeliefCheck]


class Better(NamedTuple):
    """The best reply to the moves of the others, None where theory knows none.

    `best` are its first moves in words, `rational` what the player of that name does here, and
    `means` what regret is in this game, "" where it is the payoff of the step.
    """

    hindsight: Hindsight | None
    best: Sequence[str]
    rational: str
    means: str


class DecisionPage(NamedTuple):
    """What the page of a decision shows; `here` is the address of its run.

    `decision` is None for what a seat was asked when the game was over. `previous` and `following`
    are the addresses of those beside it, None if there is none: of the same seat, or those of the
    list that led here.
    """

    here: str
    replayed: ReplayedEpisode
    step: int
    seat: int
    decision: DecisionRow | None
    title: str
    crumbs: Sequence[tuple[str, str]]
    phase: str
    move: PromptPart
    made: str
    heard: str
    calls: Sequence[CompletionView]
    notes: Sequence[Noted]
    better: Better | None
    others: Sequence[tuple[int, str, str]]
    about: Mapping[str, str]
    previous: str | None
    following: str | None

    @property
    def address(self) -> str:
        """What follows its run's address and the kind of page."""
        return f"{self.replayed.row.id}/{self.step}/{self.seat}"

    @property
    def place(self) -> tuple[str, int, int, int, int]:
        """Label, number and seed of its episode, step and seat: equal for twins of two runs."""
        row = self.replayed.row
        return row.game.label, row.number, row.seed, self.step, self.seat


def page(
    records: Records,
    episode: int,
    step: int,
    seat: int,
    here: str = "",
    beside: tuple[str | None, str | None] | None = None,
) -> DecisionPage:
    """Return the page of a decision, or of what a seat was asked when the game was over.

    `here` is the address of its run; `beside` are those of the decisions before and after it in
    the list that led here.

    Raises:
        NoSuchPage: there is no such episode or decision.
    """
    found = played.read(records, episode)
    at = _check(found, step, seat)
    decision, attempts = found.decisions.get(at), found.attempts.get(at, [])
    turn = next((turn for turn in found.turns if turn.steps[1] == step), None)
    question = turn.questions.get(seat) if turn else None
    row = found.row
    back = (f"Episode {row.number}", f"{here}/episode/{row.id}")
    previous, following = beside or _beside(found, at, here)
    return DecisionPage(
        here=here,
        replayed=found,
        step=step,
        seat=seat,
        decision=decision,
        title=f"{found.names[seat]}, round {found.round_of(step)}",
        crumbs=[*crumbs(found, here), back],
        phase=_phase(found, decision),
        move=PromptPart("move", "", piece(_move(decision, question))),
        made=_made(found, decision, question),
        heard=_heard(found, decision),
        calls=list(_calls(records, attempts)),
        notes=[_noted(place, note) for place, note in enumerate(found.notes.get(at, []))],
        better=_better(found, turn, decision, question) if turn and decision else None,
        others=_others(turn, found, seat),
        about=_sums(attempts),
        previous=previous,
        following=following,
    )


def _beside(found: ReplayedEpisode, at: played.At, here: str) -> tuple[str | None, str | None]:
    """Return the addresses of the decisions of the same seat before and after one."""
    mine = sorted(place for place in {*found.decisions, *found.attempts} if place[1] == at[1])
    place = mine.index(at)
    ends = [None, *mine, None]
    before, after = (
        one and f"{here}/decision/{found.row.id}/{one[0]}/{one[1]}"
        for one in (ends[place], ends[place + 2])
    )
    return before, after


def text(records: Records, episode: int, step: int, seat: int, name: str) -> str:
    """Return one whole text of a decision by its name, as it was received or sent.

    Names are ``move``, ``reply-0``, ``thoughts-0``, ``tool-0-0``, ``sent-0-3`` (a message of the
    prompt of completion 0), ``note-0``, and ``all`` for everything as JSON.

    Raises:
        NoSuchPage: there is none.
    """
    found = played.read(records, episode)
    at = _check(found, step, seat)
    attempts = found.attempts.get(at, [])
    kind, *numbers = name.split("-")
    try:
        if not NAMES.fullmatch(name):
            raise ValueError
        places = [int(number) for number in numbers]
        if kind == "all":
            return _everything(records, found, at)
        if kind == "move":
            turn = next((turn for turn in found.turns if turn.steps[1] == step), None)
            return _move(found.decisions.get(at), turn.questions.get(seat) if turn else None)
        if kind == "note":
            return _written(found.notes[at][places[0]].content)
        attempt = attempts[places[0]]
        if kind == "sent":
            return records.messages(attempt.prompt)[places[1]]["content"]
        if kind == "tool":
            return _called((attempt.tool_calls or [])[places[1]])[1]
        return {"reply": attempt.text, "thoughts": _apart(attempt)[0]}[kind]
    except (ValueError, IndexError, KeyError):
        raise NoSuchPage(f"decision {episode}/{step}/{seat} has no text {name!r}") from None


def _check(found: ReplayedEpisode, step: int, seat: int) -> played.At:
    at = step, seat
    if at not in found.decisions and at not in found.attempts:
        raise NoSuchPage(
            f"episode {found.row.id} has no decision of seat {seat} in step {step}: "
            "its page lists them all"
        )
    return at


def _phase(found: ReplayedEpisode, decision: DecisionRow | None) -> str:
    if decision is None:
        last = len(found.episode.every_step)
        return "after the game" if found.row.status in ("done", "void") and last else "not decided"
    return decision.phase or "move"


def _move(decision: DecisionRow | None, question: Question | None) -> str:
    if decision is None:
        return ""
    if decision.phase == TALK:
        said = decision.action
        return (said or "(silence)") if isinstance(said, str) else f"symbol {said}"
    return words(question, decision.action)


def _made(found: ReplayedEpisode, decision: DecisionRow | None, question: Question | None) -> str:
    """Say what the rules put in the place of a move; "" if they left it."""
    if decision is None or not decision.broke:
        return ""
    done = next((s for s in found.episode.steps if s.step == decision.step), None)
    if done is None or len(done.record.get("actions", [])) <= decision.seat:
        return ""
    played = int(found.episode.rules.effective(done.record)[decision.seat])
    if played in (decision.action, MISSING):
        return ""
    return words(question, played)


def _heard(found: ReplayedEpisode, decision: DecisionRow | None) -> str:
    if decision is None or decision.phase != TALK:
        return ""
    row = next(step for step in found.episode.every_step if step.step == decision.step)
    return hearing(found, row.record["hearers"][decision.seat])


def _others(
    turn: TalkRound | None, found: ReplayedEpisode, seat: int
) -> list[tuple[int, str, str]]:
    """Return what others did in the step: seat, name and move, of as many as have room."""
    if turn is None:
        return []
    moves = [(s, m) for s, m in turn.moves.items() if s != seat][:20]
    return [(s, found.names[s], words(turn.questions.get(s), move)) for s, move in moves]


# -- what was sent and answered --------------------------------------------------------------------


def _calls(records: Records, attempts: Sequence[AttemptRow]) -> Iterator[CompletionView]:
    before: list[dict[str, str]] = []
    for place, attempt in enumerate(attempts):
        chat = records.messages(attempt.prompt)
        same = next(
            (n for n, (a, b) in enumerate(zip(before, chat, strict=False)) if a != b),
            min(len(before), len(chat)),
        )
        sent = [
            PromptPart(
                f"sent-{place}-{n}",
                message["role"],
                piece(message["content"]),
                folded=same == 0 and 0 < n < len(chat) - OPEN,
            )
            for n, message in enumerate(chat)
            if n >= same
        ]
        thoughts, reply = _apart(attempt)
        before = chat
        tools = [_called(call) for call in attempt.tool_calls or []]
        yield CompletionView(
            attempt=attempt,
            repeated=same,
            sent=sent,
            thoughts=PromptPart(f"thoughts-{place}", "thoughts", piece(thoughts))
            if thoughts
            else None,
            reply=PromptPart(f"reply-{place}", "assistant", piece(reply)) if reply else None,
            tools=[
                (name, PromptPart(f"tool-{place}-{n}", "tool", piece(arguments)))
                for n, (name, arguments) in enumerate(tools)
            ],
            leniencies={n: LENIENCIES.get(n, "") for n in attempt.leniencies.split(", ") if n},
            about=_about(attempt),
        )


def _apart(attempt: AttemptRow) -> tuple[str, str]:
    """Return the thoughts of a completion, and its text without those that stood in it."""
    inside, rest = split_thoughts(attempt.text, attempt.finish)  # type: ignore[arg-type]
    return (inside, rest) if inside else (attempt.thoughts, attempt.text)


def _called(call: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name of the tool that a call is of, and what it was given."""
    function = call.get("function", call)
    function = function if isinstance(function, Mapping) else {}
    given = function.get("arguments", function.get("input", ""))
    return str(function.get("name", "tool")), given if isinstance(given, str) else _written(given)


def _about(attempt: AttemptRow) -> dict[str, str]:
    """Return what else is known of a completion, by name."""
    parts, thought = {"cached": attempt.tokens_cached}, attempt.tokens_reasoning
    parts["written"] = attempt.tokens_written
    known = ", ".join(f"{count:,} {name}" for name, count in parts.items() if count)
    of_thoughts = f" ({thought:,} of thoughts)" if thought else ""
    found = {
        "model": attempt.model,
        "tokens in": f"{attempt.tokens_in:,}" + (f" ({known})" if known else ""),
        "tokens out": f"{attempt.tokens_out:,}{of_thoughts}",
        "latency": f"{attempt.latency:.3g} s",
        "seed": str(attempt.seed),
        "ended by": attempt.finish,
        "error": attempt.error,
        "refusal": attempt.refusal,
        "not sent, since the server refused it": ", ".join(attempt.left_out or ()),
    }
    return {name: value for name, value in found.items() if value}


def _sums(attempts: Sequence[AttemptRow]) -> dict[str, str]:
    if not attempts:
        return {}
    into, out = sum(a.tokens_in for a in attempts), sum(a.tokens_out for a in attempts)
    seconds = sum(a.latency for a in attempts)
    return {
        "completions": str(len(attempts)),
        "tokens in": f"{into:,}",
        "tokens out": f"{out:,}",
        "latency": f"{seconds:.3g} s",
    }


# -- what was written down -------------------------------------------------------------------------


def _noted(place: int, note: NoteRow) -> Noted:
    kind = "a prompt that the server refused as too long" if note.kind == OVERFLOW else note.kind
    content = note.content
    if len(content) == 1:
        [only] = content.values()
        if isinstance(only, list) and all(isinstance(line, str) for line in only):
            shown = "\n".join(f"• {line}" for line in only)
        else:
            shown = only if isinstance(only, str) else _written(content)
    else:
        shown = _written(content)
    return Noted(kind, PromptPart(f"note-{place}", kind, piece(shown)), list(_against(content)))


def _against(content: Mapping[str, Any]) -> Iterator[BeliefCheck]:
    """Yield the parts of a belief beside the truth, where a note has both."""
    truth, said = content.get("truth"), content.get("belief")
    if not isinstance(truth, Mapping) or not isinstance(said, Mapping):
        return
    facts, told = dict(_flat(truth)), dict(_flat(said))
    for name in dict.fromkeys([*facts, *told]):
        fact, belief = facts.get(name), told.get(name)
        if name not in facts and not isinstance(belief, int | float):
            continue  # a remark, which no fact is known for
        yield BeliefCheck(name, _plain(belief), _plain(fact), fact == belief)


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        yield name, value
        return
    for key, inner in value.items():
        yield from _flat(inner, f"{name}, {key}" if name else str(key).replace("_", " "))


def _plain(value: Any) -> str:
    return "–" if value is None else value if isinstance(value, str) else json.dumps(value)


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


# -- what would have been better -------------------------------------------------------------------


def _better(
    found: ReplayedEpisode, turn: TalkRound, decision: DecisionRow, question: Question | None
) -> Better | None:
    if found.why or decision.phase == TALK or question is None:
        return None
    game: Rulebook = found.episode.rules
    if not has_deviation(game.name):
        return None
    state = _state_before(found, decision.step)
    moves = {seat: move_of(action) for seat, action in turn.moves.items()}
    judged = hindsight(game, state, game.assemble(state, moves), decision.seat)
    rational = rule_move(game, state, decision.seat)
    said = "" if rational is None else words(question, _plain_move(rational))
    if judged is None:
        return Better(None, (), said, "") if said else None
    means = "" if judged.immediate else _means(game)
    return Better(judged, _in_words(judged, question), said, means)


def _state_before(found: ReplayedEpisode, step: int) -> Any:
    """Return the state before a step of the game, its talk left out."""
    table = Table(found.episode.rules)
    table.reset(found.row.seed, found.row.given)
    for turn in found.turns:
        if turn.steps[1] >= step:
            return table.state
        table.step({seat: move_of(action) for seat, action in turn.moves.items()})
    return table.state


def _in_words(judged: Hindsight, question: Question) -> list[str]:
    """Write the best moves, numbers in a row as one."""
    best = list(judged.best)
    if not all(isinstance(move, int) for move in best) or not hasattr(question, "low"):
        return [words(question, _plain_move(move)) for move in best[:10]]
    moves = sorted(int(move) for move in best)  # type: ignore[arg-type]
    breaks = [i for i in range(1, len(moves)) if moves[i] - moves[i - 1] > 1 or moves[i - 1] < 0]
    runs = np.split(np.array(moves), breaks)
    found = []
    for run in runs[:10]:
        first, last = (words(question, int(move)) for move in (run[0], run[-1]))
        found.append(first if first == last else f"{first} to {last}")
    return found


def _plain_move(move: Any) -> Any:
    return list(move) if isinstance(move, tuple) else None if move == MISSING else move


def _means(game: Rulebook) -> str:
    """Return what regret is in a game, in the words of its theory."""
    from inspect import getdoc

    from llm_games import game_rooms as rooms

    theory: Any = rooms.part(game.name, "theory")
    said = (getdoc(theory.deviation) or "").partition("\n\n")
    return " ".join((said[2] or said[0]).split())


def _everything(records: Records, found: ReplayedEpisode, at: played.At) -> str:
    """Return all of a decision as JSON, as the file has it."""
    decision = found.decisions.get(at)
    attempts = [
        vars(attempt) | {"prompt": records.messages(attempt.prompt)}
        for attempt in found.attempts.get(at, [])
    ]
    notes = [vars(note) for note in found.notes.get(at, [])]
    whole = {"decision": decision and vars(decision), "attempts": attempts, "notes": notes}
    return json.dumps(whole, ensure_ascii=False, indent=1)
