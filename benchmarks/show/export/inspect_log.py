"""A run as logs of inspect_ai, whose viewer and data frames then open it: one for each game.

An episode is a sample: its scores, and as its messages the last conversation of the first seat that
asked a model; its events are all calls, in spans for steps and seats, and what each step paid. When
a call began is put together from how long each took, seats of a step at the same time.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from llm_games.baselines.regret import has_deviation
from llm_games.benchmarks.judge.means import POSITIVE, mean_of, paid
from llm_games.benchmarks.judge.paper import SCORED, Measure, edition_of, measure_of, score_of
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame, games
from llm_games.benchmarks.record.schema import AttemptRow
from llm_games.benchmarks.show.export.table_files import MissingPackage, replacing
from llm_games.errors import install

STOPS = {"stop": "stop", "length": "max_tokens", "refusal": "content_filter"}
SCORER = "llm-games"
SCORE = "score"


def export_eval(records: Records, folder: Path) -> dict[Path, int]:
    """Write a log for each game; samples by path. Raises MissingPackage, Unwritable."""
    try:
        from inspect_ai.log import write_eval_log
    except ImportError:
        raise MissingPackage(f"logs of inspect_ai need inspect_ai: {install('inspect')}") from None
    counts: dict[Path, int] = {}
    for game in games(records):
        path, log = _path(folder, game.label, counts), _log(records, game)
        with replacing(path) as partial:
            write_eval_log(log, str(partial), format="eval")
        counts[path] = len(log.samples)
    return counts


def _path(folder: Path, label: str, taken: Mapping[Path, int]) -> Path:
    """Labels may have what names of files have not."""
    stem = re.sub(r"[^\w.=+-]+", "-", label).strip("-.")[:120] or "game"
    names = (f"{stem}{f'-{number}' if number else ''}.eval" for number in range(len(taken) + 1))
    return next(folder / name for name in names if folder / name not in taken)


def _log(records: Records, game: RecordedGame) -> Any:
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSpec, EvalStats
    from inspect_ai.model import ModelConfig

    samples = [_sample(game, e) for e in game.episodes if e.row.status != "pending"]
    seats = [str(seat["player"]) for seat in game.planned.get("seats", ())] or game.seats
    times = [time for s in samples for time in (s.started_at, s.completed_at) if time]
    spec = EvalSpec(
        created=records.created,
        task=game.label,
        task_args=game.params,
        run_id=f"{records.title} {records.created}",
        dataset=EvalDataset(name=game.name, samples=len(samples)),
        model=", ".join(dict.fromkeys(seats)),
        model_roles={f"seat{i}": ModelConfig(model=name) for i, name in enumerate(seats)},
        config=EvalConfig(epochs=1),
        packages={"llm-games": records.package},
        metadata={"run": records.title, "seed": records.config.get("seed"), "players": seats},
    )
    ends = {"started_at": min(times), "completed_at": max(times)} if times else {}
    done = len(samples) == len(game.rows) and all(s.status != "running" for s in game.rows)
    return EvalLog(
        status="success" if done else "started",
        eval=spec,
        results=_results(game, samples),
        stats=EvalStats(model_usage=_added(s.model_usage for s in samples), **ends),
        samples=samples,
    )


def _added(usages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for usage in usages:
        for model, used in usage.items():
            total[model] = total[model] + used if model in total else used
    return total


def _results(game: RecordedGame, samples: Sequence[Any]) -> Any:
    from inspect_ai.log import EvalMetric, EvalResults, EvalScore

    measure, scores = measure_of(game), []
    for name in dict.fromkeys(name for sample in samples for name in sample.scores):
        values = [sample.scores[name].value for sample in samples if name in sample.scores]
        mean = _mean(name, values, measure, game)
        metrics, interval = {"mean": EvalMetric(name="mean", value=mean.mean)}, mean.interval
        if interval and interval.method != "none":
            about = {"method": interval.method, "n": interval.n}
            for key, value in (("low", interval.low), ("high", interval.high)):
                metrics[key] = EvalMetric(name=key, value=value, metadata=about)
        n = len(values)
        scores.append(EvalScore(name=name, scorer=SCORER, scored_samples=n, metrics=metrics))
    done = sum(row.status == "done" for row in game.rows)
    return EvalResults(total_samples=len(game.rows), completed_samples=done, scores=scores)


def _mean(name: str, values: Sequence[float], measure: Measure | None, game: RecordedGame) -> Any:
    if measure and name == measure.name:
        return mean_of(values, measure.ends(game.rules), measure.least)
    ends_by_name = {"payoff": game.rules.core.payable_mean(game.rules.players), "regret": POSITIVE}
    ends = ends_by_name.get(name)
    return paid(values, ends) if ends else mean_of(values, SCORED)


# -- an episode ------------------------------------------------------------------------------------


@dataclass
class _Timeline:
    """The events of an episode, at times put together as the module says, and usage by model."""

    start: datetime
    passed: float = 0.0
    events: list[Any] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)

    def stamps(self, seconds: float = 0.0) -> dict[str, Any]:
        """Time so many seconds after the step began."""
        passed = self.passed + seconds
        return {"timestamp": self.start + timedelta(seconds=passed), "working_start": passed}


def _sample(game: RecordedGame, episode: RecordedEpisode) -> Any:
    from inspect_ai.log import EvalError, EvalSample
    from inspect_ai.model import ModelOutput

    row, attempts, chats = episode.row, episode.attempts(), _Chats(episode)
    timeline = _Timeline(_time(row.started or episode.file.created))
    _add_events(episode, attempts, chats, timeline)
    first_seat = min((attempt.seat for attempt in attempts), default=None)
    seat_attempts = [attempt for attempt in attempts if attempt.seat == first_seat]
    first, last = (seat_attempts[0], seat_attempts[-1]) if seat_attempts else (None, None)
    output = _output(last) if last else ModelOutput()
    about = {"game": game.name, "label": game.label, "episode": row.number, "seed": row.seed}
    about |= {"status": row.status, "seats": row.seats, "params": row.params}
    about |= {"payoffs": episode.earned.tolist()}
    error = EvalError(message=row.reason or "void", traceback="", traceback_ansi="")
    return EvalSample(
        id=row.number,
        epoch=1,
        input=chats.messages(first.prompt) if first else game.rules.title,
        target="",
        messages=[*chats.messages(last.prompt), output.message] if last else [],
        output=output,
        scores=_scores(game, episode),
        metadata=_clean(about),
        events=timeline.events,
        model_usage=timeline.usage,
        started_at=row.started,
        completed_at=row.ended,
        total_time=episode.seconds,
        error=error if row.status == "void" else None,
    )


def _scores(game: RecordedGame, episode: RecordedEpisode) -> dict[str, Any]:
    from inspect_ai.scorer import Score

    if episode.row.status != "done":
        return {}
    measure = measure_of(game)
    numbers: dict[str, float | None] = {SCORE: score_of(episode, edition_of(episode.file.config))}
    numbers |= {measure.name: measure.of(episode)} if measure else {}
    numbers["payoff"] = float(episode.earned.mean())
    if has_deviation(game.name):
        numbers["regret"] = episode.seat_regret()
    finite = ((n, v) for n, v in numbers.items() if v is not None and math.isfinite(v))
    return {name: Score(value=value) for name, value in finite}


def _add_events(
    episode: RecordedEpisode, attempts: Sequence[AttemptRow], chats: _Chats, timeline: _Timeline
) -> None:
    """Add the events of an episode, step by step: the calls of each seat, and what was paid."""
    from inspect_ai.event import InfoEvent, SpanBeginEvent, SpanEndEvent

    asked = {step: list(calls) for step, calls in groupby(attempts, key=attrgetter("step"))}
    add, stamps = timeline.events.append, timeline.stamps
    rows, moves = {row.step: row for row in episode.every_step}, 0
    for step in sorted({*rows, *asked}):
        row = rows.get(step)
        moves += row is not None and not row.talk
        name = "after the end" if row is None else "talk" if row.talk else f"move {moves}"
        span, longest = f"step {step}", 0.0
        add(SpanBeginEvent(id=span, name=name, span_id=span, **stamps()))
        for seat, calls in groupby(asked.get(step, ()), key=attrgetter("seat")):
            longest = max(longest, _seat(span, seat, list(calls), episode, chats, timeline))
        timeline.passed += longest
        if row is not None:
            outcome = _clean({"payoffs": row.rewards, "record": row.record})
            add(InfoEvent(source=SCORER, data=outcome, span_id=span, **stamps()))
        add(SpanEndEvent(id=span, span_id=span, **stamps()))


def _seat(
    span: str,
    seat: int,
    calls: Sequence[AttemptRow],
    episode: RecordedEpisode,
    chats: _Chats,
    timeline: _Timeline,
) -> float:
    """Add the calls of a seat in a step; seconds that they took."""
    from inspect_ai.event import ModelEvent, SpanBeginEvent, SpanEndEvent
    from inspect_ai.model import GenerateConfig

    seat_span, passed = f"{span} seat {seat}", 0.0
    name, add = f"seat {seat}: {episode.seats[seat]}", timeline.events.append
    begin = {"span_id": seat_span, **timeline.stamps()}
    add(SpanBeginEvent(id=seat_span, parent_id=span, type="agent", name=name, **begin))
    for call in calls:
        output, start = _output(call), timeline.stamps(passed)
        passed += call.latency
        read = {"kind": call.kind, "outcome": call.outcome, "why": call.why, "detail": call.detail}
        add(
            ModelEvent(
                model=output.model,
                role=f"seat{seat}",
                input=chats.messages(call.prompt),
                tools=[],
                tool_choice="none",
                config=GenerateConfig(seed=call.seed),
                output=output,
                error=call.error or None,
                completed=timeline.stamps(passed)["timestamp"],
                working_time=call.latency,
                metadata=_clean(read),
                span_id=seat_span,
                **start,
            )
        )
        timeline.usage = _added([timeline.usage, {output.model: output.usage}])
    add(SpanEndEvent(id=seat_span, span_id=seat_span, **timeline.stamps(passed)))
    return passed


def _output(call: AttemptRow) -> Any:
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ContentReasoning,
        ContentText,
        ModelOutput,
        ModelUsage,
    )
    from inspect_ai.tool import ToolCall

    begin = f"{call.step}-{call.seat}-{call.number}"
    tool_calls = [
        ToolCall(id=f"{begin}-{i}", function=name, arguments=arguments)
        for i, (name, arguments) in enumerate(map(_called, _clean(call.tool_calls or [])))
    ]
    texts = [ContentText(text=_clean(call.text))]
    thoughts = [ContentReasoning(reasoning=_clean(call.thoughts))] if call.thoughts else []
    message = ChatMessageAssistant(content=[*thoughts, *texts], tool_calls=tool_calls or None)
    usage = ModelUsage(
        input_tokens=call.tokens_in - call.tokens_cached - call.tokens_written,
        output_tokens=call.tokens_out,
        total_tokens=call.tokens_in + call.tokens_out,
        input_tokens_cache_read=call.tokens_cached or None,
        input_tokens_cache_write=call.tokens_written or None,
        reasoning_tokens=call.tokens_reasoning or None,
    )
    stop = "tool_calls" if tool_calls else STOPS.get(call.finish, "unknown")
    choice = ChatCompletionChoice(message=message, stop_reason=stop)
    model = call.model or "unknown"
    refused = _clean(call.refusal) or None
    return ModelOutput(model=model, choices=[choice], usage=usage, time=call.latency, error=refused)


def _called(call: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Arguments may be text that is no JSON."""
    arguments = call.get("arguments")
    try:
        read = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        read = arguments
    return str(call.get("name")), read if isinstance(read, dict) else {"arguments": read}


class _Chats:
    """The prompts of an episode as inspect_ai's messages, each message made once."""

    def __init__(self, episode: RecordedEpisode) -> None:
        self.file, self.chats = episode.file, episode.file.chats(episode.row.id)
        self.cache: dict[tuple[str, str], Any] = {}

    def messages(self, prompt: Any) -> list[Any]:
        contents = self.file.messages(prompt) if isinstance(prompt, list) else self.chats[prompt]
        return [self._message(message["role"], message["content"]) for message in contents]

    def _message(self, role: str, content: str) -> Any:
        from inspect_ai import model

        kinds = {"system": model.ChatMessageSystem, "assistant": model.ChatMessageAssistant}
        kinds |= {"tool": model.ChatMessageTool}
        if (role, content) not in self.cache:
            kind = kinds.get(role, model.ChatMessageUser)
            self.cache[role, content] = kind(content=_clean(content))
        return self.cache[role, content]


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _clean(value: Any) -> Any:
    """Plain values without halves of UTF-16 pairs, which no file takes."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, Mapping):
        return {str(_clean(key)): _clean(inner) for key, inner in value.items()}
    return [_clean(inner) for inner in value] if isinstance(value, list | tuple) else value
