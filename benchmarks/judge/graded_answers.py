"""Scores of the answers to graded questions, beside what is known without an answer.

Right answers come from the record, played again, and from theory. All scores are better the higher
they are, each episode counts alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from llm_games.asides import GRADED
from llm_games.baselines import graded_questions as graded
from llm_games.baselines.graded_questions import KINDS
from llm_games.baselines.hindsight import ReplyLosses
from llm_games.benchmarks.judge.means import Ends, MeanCell, mean_of
from llm_games.benchmarks.judge.paper import Section
from llm_games.benchmarks.judge.result_table import ResultTable
from llm_games.benchmarks.record.editions import UNNAMED
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame
from llm_games.benchmarks.record.schema import NoteRow
from llm_games.noise import Noise
from llm_games.questions import MISSING, NO_BID, Bid
from llm_games.rulebook import Array

FLOOR = 0.01  # the least chance that a logarithm is taken of
RIGHT = 0.005 + 1e-9  # by which an amount to two decimals may miss
TITLE = "Graded questions"
NOTE = """\
Scores are better the higher they are, at most 1, or 0 where they are below it. Payoff, \
equilibrium: the share of right answers; reply: 1 less the regret of the answer over that of the \
worst one, and the share of those as good as the best; belief: less the squared error over the \
squared range, or the Brier and logarithmic scores of chances (none below .01); consistency: as \
reply, of the move made, if others did what was believed. “Constant” is what the one answer would \
have got that is best for all these questions, “last” who expects what happened before, “uniform” \
who has no idea. Level 1 asks for the rules, 2 for the own best move, 3 for everybody's, 4 for \
what others do. What could not be read has no score."""


class Mark(NamedTuple):
    """A score of one answer; `others` has those of other answers to the same question.

    `truth` is what a mean is to be taken of for the best constant answer, None: `others` has it.
    """

    measure: str
    score: float
    last: float = np.nan
    uniform: float = np.nan
    others: Mapping[Any, float] = {}
    truth: Any = None


class GradedRow(NamedTuple):
    """A measure of a player's answers in a game: `n` of them, and those that were not read.

    Where none was read it has no score, and its measure is the kind of question.
    """

    game: str
    player: str
    level: int
    measure: str
    n: int
    unread: int
    score: MeanCell | None = None
    constant: float | None = None
    last: float | None = None
    uniform: float | None = None

    def plain(self) -> dict[str, Any]:
        return self._asdict() | {"score": self.score and self.score.plain()}


def graded_rows(game: RecordedGame) -> list[GradedRow]:
    """Return the scores of a game's players, worked out once; [] where nothing was asked."""
    if __name__ not in game.cache:
        seats = game.planned.get("seats", ())
        asked = any(seat.get("settings", {}).get("ask") for seat in seats)
        game.cache[__name__] = list(_rows(game)) if asked else []
    rows: list[GradedRow] = game.cache[__name__]
    return rows


def _rows(game: RecordedGame) -> Iterator[GradedRow]:
    marks: dict[tuple[str, str], list[tuple[int, Mark]]] = {}
    unread: dict[tuple[str, str], int] = {}
    for episode in game.done:
        if (episode.row.edition or UNNAMED)["rules"] != episode.rules.edition:
            continue
        for call in episode.file.calls(episode.row.id):
            if not episode.decided_here(call.step, call.seat):
                continue
            if call.kind.endswith(GRADED) and call.outcome != "valid":
                key = episode.seats[call.seat], call.kind.removesuffix(GRADED)
                unread[key] = unread.get(key, 0) + 1
        for player, mark in _marks(episode):
            marks.setdefault((player, mark.measure), []).append((episode.row.number, mark))
    for player in game.players:
        for measure, ends in MEASURES.items():
            if of := marks.get((player, measure)):
                kind = measure.partition(",")[0]
                missed = unread.get((player, kind), 0)
                yield _row(game.label, player, measure, ends, missed, of)
        scored = {measure.partition(",")[0] for who, measure in marks if who == player}
        for kind in KINDS:
            if missed := (kind not in scored and unread.get((player, kind), 0)):
                yield GradedRow(game.label, player, KINDS[kind].level, kind, 0, missed)


def _row(
    label: str, player: str, measure: str, ends: Ends, unread: int, of: list[tuple[int, Mark]]
) -> GradedRow:
    episodes, marks = np.array([number for number, _ in of]), [mark for _, mark in of]
    counts = {number: (episodes == number).sum() for number in set(episodes.tolist())}
    weights = np.array([1 / counts[number] for number in episodes.tolist()])
    scores = np.array([mark.score for mark in marks])
    means = [float(scores[episodes == number].mean()) for number in sorted(counts)]
    score = mean_of(means, ends)
    assert score is not None
    return GradedRow(
        game=label,
        player=player,
        level=KINDS[measure.partition(",")[0]].level,
        measure=measure,
        n=len(marks),
        unread=unread,
        score=score,
        constant=best_constant(measure, marks, weights),
        last=_mean([mark.last for mark in marks], weights),
        uniform=_mean([mark.uniform for mark in marks], weights),
    )


def _mean(values: Sequence[float], weights: Array) -> float | None:
    numbers = np.array(values)
    defined = ~np.isnan(numbers)
    if not defined.any():
        return None
    return float(np.average(numbers[defined], weights=weights[defined]))


def best_constant(measure: str, marks: Sequence[Mark], weights: Array) -> float | None:
    """Return the mean score of the best answer that is always the same; None where there is none.

    Of chances it is the mean of what happened, of those whom it happens to where these change.
    """
    truths = [mark.truth for mark in marks]
    if truths[0] is not None:
        if len({len(truth) for truth in truths}) > 1:
            mean = np.average([truth.mean() for truth in truths], weights=weights)
            constants = [np.full(len(truth), mean) for truth in truths]
        else:
            constants = [np.average(truths, axis=0, weights=weights)] * len(truths)
        pairs = zip(constants, truths, strict=True)
        return _mean([PROPER[measure](constant, truth) for constant, truth in pairs], weights)
    totals: dict[Any, float] = {}
    for mark, weight in zip(marks, weights.tolist(), strict=True):
        for answer, score in mark.others.items():
            totals[answer] = totals.get(answer, 0.0) + weight * score
    return max(totals.values()) / float(weights.sum()) if totals else None


# -- scores of single answers ---------------------------------------------------------------------


def _brier(chances: Array, truth: Array) -> float:
    return -float(((chances - truth) ** 2).sum())


def _log(chances: Array, truth: Array) -> float:
    return float((truth * np.log(np.maximum(chances, FLOOR))).sum())


def _brier_each(chances: Array, truth: Array) -> float:
    return -float(((chances - truth) ** 2).mean())


def _log_each(chances: Array, truth: Array) -> float:
    true, false = np.maximum(chances, FLOOR), np.maximum(1 - chances, FLOOR)
    return float((truth * np.log(true) + (1 - truth) * np.log(false)).mean())


PROPER = {
    "belief": lambda guess, truth: -float(((guess - truth) ** 2).sum()),
    "belief, Brier": _brier,
    "belief, log": _log,
    "survival, Brier": _brier_each,
    "survival, log": _log_each,
}
SHARE, LOG = (0.0, 1.0), (float(np.log(FLOOR)), 0.0)
MEASURES: Mapping[str, Ends] = {
    "payoff": SHARE,
    "reply": SHARE,
    "reply, right": SHARE,
    "equilibrium": SHARE,
    "belief": (-1.0, 0.0),
    "belief, Brier": (-2.0, 0.0),
    "belief, log": LOG,
    "belief, consistency": SHARE,
    "survival, Brier": (-1.0, 0.0),
    "survival, log": LOG,
}
"""What is scored, as ``kind, score``, and the ends of each."""


def _marks(episode: RecordedEpisode) -> Iterator[tuple[str, Mark]]:
    """Yield the marks of all answers of an episode, each with the player."""
    replayed: _Replayed | None = None
    for note in episode.notes():
        kind = note.kind.removesuffix(GRADED)
        here = episode.decided_here(note.step, note.seat)
        if here and note.kind.endswith(GRADED) and kind in _MARKS:
            replayed = replayed or _Replayed(episode)
            if note.step in replayed.index:
                for mark in _MARKS[kind](replayed, note):
                    yield episode.seats[note.seat], mark


@dataclass
class _Replayed:
    """An episode with its states before each step, those of talk left out, and its last one."""

    episode: RecordedEpisode

    @cached_property
    def states(self) -> list[Any]:
        row, rules = self.episode.row, self.episode.rules
        states = [rules.begin(rules.chance(Noise(row.seed), row.given))]
        for step in self.episode.steps:
            states.append(rules.step(states[-1], np.array(step.record["actions"]))[0])
        return states

    @cached_property
    def index(self) -> dict[int, int]:
        return {step.step: index for index, step in enumerate(self.episode.steps)}

    def state(self, note: NoteRow) -> Any:
        return self.states[self.index[note.step]]


def _payoff(played: _Replayed, note: NoteRow) -> Iterator[Mark]:
    rules, steps = played.episode.rules, note.content["supposed"]
    truth = graded.value_after(rules, played.state(note), steps, note.seat)
    right = abs(note.content["answer"] / graded.CENT - truth) <= RIGHT
    yield Mark("payoff", float(right), others={round(truth, 2): 1.0})


def _equilibrium(played: _Replayed, note: NoteRow) -> Iterator[Mark]:
    row = note.content["supposed"][0]
    truth = int(bool(graded.is_equilibrium(played.episode.rules, played.state(note), row)))
    right = float(note.content["answer"] == truth)
    yield Mark("equilibrium", right, uniform=1 / 2, others={truth: 1.0})


def _reply(played: _Replayed, note: NoteRow) -> Iterator[Mark]:
    supposed, answer = note.content["supposed"], note.content["answer"]
    row = supposed[0] if supposed else None
    answer = tuple(answer) if isinstance(answer, list) else answer
    losses = graded.losses_to(played.episode.rules, played.state(note), row, note.seat, answer)
    if losses is not None:
        yield from _reply_marks(losses, "reply", "reply, right")


def _reply_marks(losses: ReplyLosses, scored: str, right: str = "") -> Iterator[Mark]:
    """Yield the mark of the first move tried, and whether it is a best one; none if all are."""
    lost = losses.lost - losses.lost.min()
    if lost.max() <= graded.CLOSE:
        return
    for measure, scores in ((scored, 1 - lost / lost.max()), (right, lost <= graded.CLOSE)):
        others = dict(zip(losses.tried, scores.astype(float).tolist(), strict=True))
        uniform = sum(others.values()) / len(others)
        if measure:
            yield Mark(measure, float(scores[0]), uniform=uniform, others=others)


def _belief(played: _Replayed, note: NoteRow) -> Iterator[Mark]:
    rules, answer, index = played.episode.rules, note.content["answer"], played.index[note.step]
    if rules.turns:
        rewards = played.episode.rewards
        truth, last = _leaders(rewards.sum(axis=0)), _leaders(rewards[:index].sum(axis=0))
        yield from _chances("belief", list(answer.values()), truth, last)
        return
    others = graded.others_of(rules, played.state(note), note.seat)
    actual, previous = (_moved(played, index - back, others) for back in (0, 1))
    if not actual:
        return
    if isinstance(answer, dict):
        marks, believed = _believed_chances(played, note, others, actual, previous)
    else:
        marks, believed = _believed_mean(played, note, others, actual, previous)
    yield from marks
    row = [MISSING] * rules.players
    for seat, expected in zip(others, believed, strict=True):
        row[seat] = expected
    move = played.episode.records[index]["answers"][note.seat]
    if played.episode.chosen[index, note.seat] and "reply" in graded.kinds_of(rules):
        losses = graded.losses_to(rules, played.state(note), row, note.seat, move)
        if losses is not None:
            yield from _reply_marks(losses, "belief, consistency")


Believed = tuple[Iterator[Mark], list[int]]
"""Marks, and what all others do by a belief."""


def _believed_chances(
    played: _Replayed, note: NoteRow, others: Sequence[int], actual: list[int], previous: list[int]
) -> Believed:
    answer = note.content["answer"]
    words = graded.move_words(played.episode.rules.asks(played.state(note), others[0])) or {}
    moves = np.array([words[option] for option in answer])
    shares = [
        (moves[:, None] == np.array(of)).mean(axis=1) for of in (actual, previous or [*moves])
    ]
    counts = _parts(list(answer.values()), len(others))
    marks = _chances("belief", list(answer.values()), *shares)
    return marks, np.repeat(moves, counts).tolist()


def _believed_mean(
    played: _Replayed, note: NoteRow, others: Sequence[int], actual: list[int], previous: list[int]
) -> Believed:
    rules, guess = played.episode.rules, note.content["answer"] / graded.CENT
    low, high = graded.belief_ends(rules, played.state(note), others)
    truth, middle = float(np.mean(actual)) / rules.unit, (low + high) / 2
    last = float(np.mean(previous)) / rules.unit if previous else middle
    score, of_last, idle = (-(((x - truth) / (high - low)) ** 2) for x in (guess, last, middle))
    mark = Mark("belief", score, of_last, idle, truth=np.array([truth / (high - low)]))
    return iter((mark,)), [round(guess * rules.unit)] * len(others)


def _survival(played: _Replayed, note: NoteRow) -> Iterator[Mark]:
    rules, chances = played.episode.rules, note.content["answer"]
    names, payoffs = rules.names(), played.episode.rewards.sum(axis=0)
    lives = graded.survivors(rules, played.states[-1], payoffs)
    truth = np.array([float(lives[names.index(name)]) for name in chances])
    yield from _chances("survival", list(chances.values()), truth, np.ones(len(truth)), 1 / 2)


def _chances(
    kind: str, chances: list[float], truth: Array, last: Array, uniform: float | None = None
) -> Iterator[Mark]:
    idle = np.full(len(truth), uniform or 1 / len(truth))
    for measure in (f"{kind}, Brier", f"{kind}, log"):
        score = PROPER[measure]
        scores = (score(np.array(guess), truth) for guess in (chances, last, idle))
        yield Mark(measure, next(scores), next(scores), next(scores), truth=truth)


def _leaders(payoffs: Array) -> Array:
    first = (payoffs == payoffs.max()).astype(float)
    return first / first.sum()


def _moved(played: _Replayed, index: int, seats: Sequence[int]) -> list[int]:
    """Return the moves of seats in a step as they counted, without those who made no bid."""
    if index < 0:
        return []
    moves = played.episode.actions[index]
    bids = isinstance(played.episode.rules.asks(played.states[index], seats[0]), Bid)
    none = (MISSING, NO_BID) if bids else (MISSING,)
    return [int(moves[seat]) for seat in seats if moves[seat] not in none]


def _parts(chances: Sequence[float], count: int) -> Array:
    """Divide so many players by chances, the largest remainders first."""
    shares = np.array(chances) * count
    parts = np.floor(shares).astype(int)
    for index in np.argsort(parts - shares, kind="stable")[: count - parts.sum()]:
        parts[index] += 1
    return parts


_MARKS = {
    "payoff": _payoff,
    "reply": _reply,
    "equilibrium": _equilibrium,
    "belief": _belief,
    "survival": _survival,
}


COLUMNS = {"n": ",", "score": ".2f", "constant": ".2f", "last": ".2f", "uniform": ".2f"}


def graded_grid(rows: Sequence[GradedRow]) -> ResultTable:
    """Return the table of graded answers of a whole run."""
    heads = {"game": "", "player": "", "level": "d", "question": "", **COLUMNS, "not read": ","}
    cells = [[*row[:5], *row[6:], row.unread] for row in rows]
    return ResultTable(heads, cells, TITLE, "graded", NOTE)


def brief_grids(rows: Sequence[GradedRow]) -> Iterator[ResultTable]:
    """Yield the same for a terminal, a table for each game, which heads the first column."""
    games = list(dict.fromkeys(row.game for row in rows))
    for game in games:
        heads = {game: "", "player": "", **COLUMNS}
        mine = [row for row in rows if row.game == game]
        cells = [[f"{row.level} {row.measure}", row.player, row.n, *row[6:]] for row in mine]
        yield ResultTable(heads, cells, note=NOTE if game == games[-1] else "")


def sections(games: Sequence[RecordedGame]) -> list[Section]:
    """Return the section of a report; [] where nothing was asked."""
    rows = [row for game in games for row in graded_rows(game)]
    return [Section(TITLE, grids=[graded_grid(rows)])] if rows else []
