"""The page of a decision: what was sent and answered, how that was read, what would be better."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from llm_games.baselines.hindsight import Hindsight, hindsight, rule_move
from llm_games.baselines.regret import has_deviation
from llm_games.benchmarks.judge.talk_measures import TalkRound
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.schema import (
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

OTHERS = 20
"""Seats whose moves in the same step are shown."""
OPEN = 4
"""Messages of a conversation that stand open, its first and its last ones; others are folded."""
NAMES = re.compile("all|move|(note|reply|thoughts)-[0-9]{1,9}|(sent|tool)(-[0-9]{1,9}){2}")


class PromptPart(NamedTuple):
    """A text of a decision: its `name` in addresses, its role, and how it begins."""

    name: str
    role: str
    piece: Piece
    folded: bool = False


class CompletionView(NamedTuple):
    """A completion: messages not `sent` before, `repeated` ones, and what reading it let pass."""

    attempt: AttemptRow
    repeated: int
    sent: Sequence[PromptPart]
    thoughts: PromptPart | None
    reply: PromptPart | None
    tools: Sequence[tuple[str, PromptPart]]
    leniencies: Mapping[str, str]
    about: Mapping[str, str]


class BeliefCheck(NamedTuple):
    """A part of a belief beside the fact."""

    what: str
    belief: str
    fact: str
    right: bool


class Noted(NamedTuple):
    """A note: text, or a belief held against facts."""

    kind: str
    part: PromptPart
    facts: Sequence[BeliefCheck]


class Better(NamedTuple):
    """The best reply to others' moves, None if unknown; `means`: what regret is, or none."""

    hindsight: Hindsight | None
    best: Sequence[str]
    rational: str
    means: str


class DecisionPage(NamedTuple):
    """The page of a decision, None for a question after the end; `here` is its run's address."""

    here: str
    replayed: ReplayedEpisode
    step: int
    seat: int
    decision: DecisionRow | None
    title: str
    crumbs: Sequence[tuple[str, str]]
    phase: str
    move: PromptPart
    replacement: str
    hearers: str
    calls: Sequence[CompletionView]
    notes: Sequence[Noted]
    better: Better | None
    others: Sequence[tuple[int, str, str]]
    about: Mapping[str, str]
    previous: str | None
    following: str | None

    @property
    def address(self) -> str:
        return f"{self.replayed.row.id}/{self.step}/{self.seat}"

    @property
    def twin_key(self) -> tuple[str, int, int, int, int]:
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
    """The page of a decision; `beside`: addresses in the list that led here. Raises NoSuchPage."""
    return page_in(records, played.read(records, episode), step, seat, here, beside)


def page_in(
    records: Records,
    replayed: ReplayedEpisode,
    step: int,
    seat: int,
    here: str = "",
    beside: tuple[str | None, str | None] | None = None,
) -> DecisionPage:
    """The same, of an episode that was read."""
    key = _check(replayed, step, seat)
    decision, attempts = replayed.decisions.get(key), replayed.attempts.get(key, [])
    turn = replayed.turn_of(step)
    questions = turn.questions if turn else {}
    question = questions.get(seat)
    episode_steps, row, hearers = replayed.episode.every_step, replayed.row, ""
    is_over = row.status in ("done", "void") and episode_steps
    phase = "after the game" if is_over else "not decided"
    if decision is not None and (phase := decision.phase or "move") == TALK:
        record = next(done.record for done in episode_steps if done.step == step)
        hearers = hearing(replayed, record["hearers"][seat])
    moves = [(s, m) for s, m in turn.moves.items() if s != seat] if turn else []
    back = (f"Episode {row.number}", f"{here}/episode/{row.id}")
    previous, following = beside or _beside(replayed, key, here)
    return DecisionPage(
        here=here,
        replayed=replayed,
        step=step,
        seat=seat,
        decision=decision,
        title=f"{replayed.names[seat]}, round {replayed.round_of(step)}",
        crumbs=[*crumbs(replayed, here), back],
        phase=phase,
        move=PromptPart("move", "", piece(_move(decision, question))),
        replacement=_replacement(replayed, decision, question),
        hearers=hearers,
        calls=list(_calls(records, attempts)),
        notes=[_noted(number, note) for number, note in enumerate(replayed.notes.get(key, []))],
        better=_better(replayed, turn, decision, question) if turn and decision else None,
        others=[(s, replayed.names[s], words(questions.get(s), m)) for s, m in moves[:OTHERS]],
        about=_sums(attempts),
        previous=previous,
        following=following,
    )


def _beside(replayed: ReplayedEpisode, key: played.At, here: str) -> tuple[str | None, str | None]:
    """Addresses of the same seat's decisions before and after one."""
    step, seat = key
    steps = sorted(s for s, other in {*replayed.decisions, *replayed.attempts} if other == seat)
    pages = [None, *(f"{here}/decision/{replayed.row.id}/{s}/{seat}" for s in steps), None]
    return pages[steps.index(step)], pages[steps.index(step) + 2]


def text(records: Records, episode: int, step: int, seat: int, name: str) -> str:
    """One whole text of a decision, by its `NAMES`, ``all`` as JSON; raises NoSuchPage."""
    replayed = played.read(records, episode)
    key = _check(replayed, step, seat)
    attempts = replayed.attempts.get(key, [])
    kind, *numbers = name.split("-")
    try:
        if not NAMES.fullmatch(name):
            raise ValueError
        indices = [int(number) for number in numbers]
        if kind == "all":
            decision = replayed.decisions.get(key)
            asked = [vars(a) | {"prompt": records.messages(a.prompt)} for a in attempts]
            notes = [vars(note) for note in replayed.notes.get(key, [])]
            about = {"decision": decision and vars(decision), "attempts": asked, "notes": notes}
            return _written(about)
        if kind == "move":
            turn = replayed.turn_of(step)
            return _move(replayed.decisions.get(key), turn.questions.get(seat) if turn else None)
        if kind == "note":
            return _written(replayed.notes[key][indices[0]].content)
        attempt = attempts[indices[0]]
        if kind == "sent":
            return records.messages(attempt.prompt)[indices[1]]["content"]
        if kind == "tool":
            return _called((attempt.tool_calls or [])[indices[1]])[1]
        return {"reply": attempt.text, "thoughts": apart(attempt)[0]}[kind]
    except (ValueError, IndexError, KeyError):
        raise NoSuchPage(f"decision {episode}/{step}/{seat} has no text {name!r}") from None


def _check(replayed: ReplayedEpisode, step: int, seat: int) -> played.At:
    key = step, seat
    if key not in replayed.decisions and key not in replayed.attempts:
        raise NoSuchPage(
            f"episode {replayed.row.id} has no decision of seat {seat} in step {step}: "
            "its page lists them all"
        )
    return key


def _move(decision: DecisionRow | None, question: Question | None) -> str:
    if decision is None:
        return ""
    if decision.phase == TALK:
        message = decision.action
        return (message or "(silence)") if isinstance(message, str) else f"symbol {message}"
    return words(question, decision.action)


def _replacement(
    replayed: ReplayedEpisode, decision: DecisionRow | None, question: Question | None
) -> str:
    if decision is None or not decision.broke:
        return ""
    done = next((s for s in replayed.episode.steps if s.step == decision.step), None)
    if done is None or len(done.record.get("actions", [])) <= decision.seat:
        return ""
    played = int(replayed.episode.rules.effective(done.record)[decision.seat])
    return "" if played in (decision.action, MISSING) else words(question, played)


# -- what was sent and answered --------------------------------------------------------------------


def _calls(records: Records, attempts: Sequence[AttemptRow]) -> Iterator[CompletionView]:
    previous_chat: list[dict[str, str]] = []
    for number, attempt in enumerate(attempts):
        chat = records.messages(attempt.prompt)
        same = next(
            (n for n, (a, b) in enumerate(zip(previous_chat, chat, strict=False)) if a != b),
            min(len(previous_chat), len(chat)),
        )
        sent = [
            _part("sent", message["role"], message["content"], number, n)._replace(
                folded=same == 0 and 0 < n < len(chat) - OPEN
            )
            for n, message in enumerate(chat)
            if n >= same
        ]
        thoughts, reply = apart(attempt)
        previous_chat = chat
        tools = [_called(call) for call in attempt.tool_calls or []]
        yield CompletionView(
            attempt=attempt,
            repeated=same,
            sent=sent,
            thoughts=_part("thoughts", "thoughts", thoughts, number) if thoughts else None,
            reply=_part("reply", "assistant", reply, number) if reply else None,
            tools=[(t[0], _part("tool", "tool", t[1], number, n)) for n, t in enumerate(tools)],
            leniencies={n: LENIENCIES.get(n, "") for n in attempt.leniencies.split(", ") if n},
            about=_about(attempt),
        )


def _part(kind: str, role: str, text: str, *numbers: int) -> PromptPart:
    return PromptPart("-".join(map(str, (kind, *numbers))), role, piece(text))


def apart(attempt: AttemptRow) -> tuple[str, str]:
    """Return the thoughts of a completion, and the rest of it."""
    inside, rest = split_thoughts(attempt.text, attempt.finish)  # type: ignore[arg-type]
    return (inside, rest) if inside else (attempt.thoughts, attempt.text)


def _called(call: Mapping[str, Any]) -> tuple[str, str]:
    function = call.get("function", call)
    function = function if isinstance(function, Mapping) else {}
    arguments = function.get("arguments", function.get("input", ""))
    text = arguments if isinstance(arguments, str) else _written(arguments)
    return str(function.get("name", "tool")), text


def _about(attempt: AttemptRow) -> dict[str, str]:
    parts = {"cached": attempt.tokens_cached, "written": attempt.tokens_written}
    details = ", ".join(f"{count:,} {name}" for name, count in parts.items() if count)
    thought = attempt.tokens_reasoning
    of_thoughts = f" ({thought:,} of thoughts)" if thought else ""
    facts = {
        "model": attempt.model,
        "tokens in": f"{attempt.tokens_in:,}" + (f" ({details})" if details else ""),
        "tokens out": f"{attempt.tokens_out:,}{of_thoughts}",
        "latency": f"{attempt.latency:.3g} s",
        "seed": str(attempt.seed),
        "ended by": attempt.finish,
        "error": attempt.error,
        "refusal": attempt.refusal,
        "not sent, since the server refused it": ", ".join(attempt.left_out or ()),
    }
    return {name: value for name, value in facts.items() if value}


def _sums(attempts: Sequence[AttemptRow]) -> dict[str, str]:
    if not attempts:
        return {}
    return {
        "completions": str(len(attempts)),
        "tokens in": f"{sum(attempt.tokens_in for attempt in attempts):,}",
        "tokens out": f"{sum(attempt.tokens_out for attempt in attempts):,}",
        "latency": f"{sum(attempt.latency for attempt in attempts):.3g} s",
    }


# -- what was written down -------------------------------------------------------------------------


def _noted(number: int, note: NoteRow) -> Noted:
    kind = "a prompt that the server refused as too long" if note.kind == OVERFLOW else note.kind
    content, shown = note.content, _written(note.content)
    match [*content.values()]:
        case [str(text)]:
            shown = text
        case [list(lines)] if all(isinstance(line, str) for line in lines):
            shown = "\n".join(f"• {line}" for line in lines)
    return Noted(kind, PromptPart(f"note-{number}", kind, piece(shown)), list(_against(content)))


def _against(content: Mapping[str, Any]) -> Iterator[BeliefCheck]:
    """A belief beside the truth, part by part, where a note has both."""
    truth, beliefs = content.get("truth"), content.get("belief")
    if not isinstance(truth, Mapping) or not isinstance(beliefs, Mapping):
        return
    fact_parts, belief_parts = dict(_flat(truth)), dict(_flat(beliefs))
    for name in dict.fromkeys([*fact_parts, *belief_parts]):
        fact, belief = fact_parts.get(name), belief_parts.get(name)
        if name not in fact_parts and not isinstance(belief, int | float):
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
    replayed: ReplayedEpisode, turn: TalkRound, decision: DecisionRow, question: Question | None
) -> Better | None:
    if replayed.why or decision.phase == TALK or question is None:
        return None
    game: Rulebook = replayed.episode.rules
    if not has_deviation(game.name):
        return None
    state, _ = replayed.states[decision.step]
    moves = {seat: move_of(action) for seat, action in turn.moves.items()}
    judged = hindsight(game, state, game.assemble(state, moves), decision.seat)
    rational = rule_move(game, state, decision.seat)
    rational_text = "" if rational is None else words(question, _plain_move(rational))
    if judged is None:
        return Better(None, (), rational_text, "") if rational_text else None
    means = "" if judged.immediate else _means(game)
    return Better(judged, _in_words(judged, question), rational_text, means)


def _in_words(judged: Hindsight, question: Question) -> list[str]:
    """The best moves; numbers in a row are one range."""
    best = list(judged.best)
    if not all(isinstance(move, int) for move in best) or not hasattr(question, "low"):
        return [words(question, _plain_move(move)) for move in best[:10]]
    moves = np.sort(np.array(best, np.int64))
    breaks = np.flatnonzero((np.diff(moves) > 1) | (moves[:-1] < 0)) + 1
    runs = np.split(moves, breaks)[:10]
    ends = ([words(question, int(move)) for move in (run[0], run[-1])] for run in runs)
    return [" to ".join(dict.fromkeys(pair)) for pair in ends]


def _plain_move(move: Any) -> Any:
    return list(move) if isinstance(move, tuple) else None if move == MISSING else move


def _means(game: Rulebook) -> str:
    """The theory's own words for regret in this game."""
    from inspect import getdoc

    from llm_games import game_rooms as rooms

    theory: Any = rooms.part(game.name, "theory")
    summary = (getdoc(theory.deviation) or "").partition("\n\n")
    return " ".join((summary[2] or summary[0]).split())
