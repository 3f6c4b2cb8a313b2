"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from llm_games.benchmarks.judge.beside_people import NOTE, brief_table, shown_beside
from llm_games.benchmarks.judge.branch_outcomes import SeatOutcome
from llm_games.benchmarks.judge.graded_answers import brief_grids
from llm_games.benchmarks.judge.means import MeanCell, brief
from llm_games.benchmarks.judge.paper import apart, lacking
from llm_games.benchmarks.judge.references import overalls
from llm_games.benchmarks.judge.result_table import ResultTable, columns
from llm_games.benchmarks.judge.results import GameResult, Series
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.run_settings import run_settings
from llm_games.benchmarks.record.spending import unsure
from llm_games.wrappers.clients.budget import Budget, Usage
from llm_games.wrappers.clients.cache import Cached

if TYPE_CHECKING:
    from llm_games.benchmarks.run.estimate import Estimate

LONGEST = 400  # characters of a setting that are shown


def estimate_table(rows: Sequence[Estimate]) -> ResultTable:
    from llm_games.benchmarks.run.estimate import added

    heads = columns("game", "episodes, decisions, calls, in a row", ",")
    heads |= columns("", "tokens in, tokens out", ">")
    if priced := any(row.priced for row in rows):
        heads["money"] = ">"

    def line(label: str, games: Sequence[Estimate]) -> list[Any]:
        low, high = added(game.low for game in games), added(game.high for game in games)
        counts = sum(game.episodes for game in games), sum(game.decisions for game in games)
        chain = max((game.chain for game in games), default=0)
        tokens = _range(low.tokens_in, high.tokens_in), _range(low.tokens_out, high.tokens_out)
        costs = any(game.priced for game in games)
        money = [_range(low.money, high.money) if costs else None] * priced
        return [label, *counts, low.calls, chain, *tokens, *money]

    lines, foot = [line(row.label, [row]) for row in rows], [line("all, about", rows)]
    note = "in a row: the longest chain of calls that wait for one another, of one episode"
    return ResultTable(heads, lines, foot=foot, note=note)


def _range(low: Any, high: Any) -> str:
    return "-".join(dict.fromkeys(map(about, (low, high))))


def about(value: Any) -> str:
    """Write an estimate with three figures: ``1.23M``, ``45.6k``, ``0.00789``."""
    for size, unit in ((10**6, "M"), (10**3, "k")):
        if value >= size and not isinstance(value, Decimal):
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}" if not isinstance(value, Decimal) or value < 1 else f"{value:,.2f}"


def budget_lines(budget: Budget, rows: Sequence[Estimate]) -> Iterator[str]:
    answers = {"yes": "enough", "no": "too little", "perhaps": "perhaps enough"}
    from llm_games.benchmarks.run.estimate import fits  # plays, as no report does

    for name, check in fits(budget, rows):
        needs, answer = _range(check["low"], check["high"]), answers[check["fits"]]
        yield f"budget, {name} = {check['limit']:,}: {answer} for {needs}"


def run_tables(
    games: Sequence[GameResult], overall: MeanCell | None, paper_tables: Sequence[ResultTable] = ()
) -> Iterator[ResultTable]:
    """Yield scores or measures, then payoffs, or a paper's tables that have a title.

    Last are answers to graded questions, and what people did, where they have figures under a
    game's rules.
    """
    alike: dict[str, list[GameResult]] = {}  # one table for each thing that games are judged by
    for game in games:
        alike.setdefault(game.measure.name if game.measure else "", []).append(game)
    for judged_alike in alike.values():
        yield _results(judged_alike, overall if len(alike) == 1 else None)
    if paper_tables:
        yield from (grid for grid in paper_tables if grid.title)
    elif any(game.payoff_of for game in games):
        yield _payoffs(games)
    yield from brief_grids([row for game in games for row in game.graded])
    beside = {game.label: rows for game in games if (rows := shown_beside(game.measures))}
    for number, (label, rows) in enumerate(beside.items(), start=1):
        yield brief_table(label, rows, NOTE if number == len(beside) else "")


def _payoffs(games: Sequence[GameResult]) -> ResultTable:
    shown = {
        name: line.statistic
        for game in games
        for name, line in game.series.items()
        if line.statistic.by_player and "terminal" in line.statistic.shown
    }
    rows: list[list[Any]] = []
    aside: list[int] = []
    for game in (game for game in games if game.payoff_of):
        for player in game.payoff_of:
            lines = (game.series_by_player[name][player] for name in shown)
            rows.append([game.label, player, *(line.mean for line in lines)])
        for reference in game.references:
            aside.append(len(rows))
            lines = (reference.own_series[name] for name in shown)
            rows.append(["", f"  {reference.name}", *(line.mean for line in lines)])
    heads = columns("game, player") | {stat.title: stat.form for stat in shown.values()}
    meant = apart(game.meant for game in games if game.scores or game.measured)
    return ResultTable(heads, rows, note="\n".join(meant), beside=aside)


def _results(games: Sequence[GameResult], overall: MeanCell | None) -> ResultTable:
    measures = {game.measure.name: game.measure for game in games if game.measure}
    statistics = [line.statistic for game in games for line in game.series.values()]
    shown = {
        statistic.title: statistic
        for statistic in statistics
        if "terminal" in statistic.shown and not statistic.by_player
    }
    if not measures:
        del shown["measured"]
    elif not any(game.scores for game in games):
        del shown["score"]
    heads = {"game": ""} | {title: statistic.form for title, statistic in shown.items()}
    heads |= dict.fromkeys(("episodes", "bad replies", "filled in"), ">")
    rows: list[list[Any]] = []
    aside = []
    for game in games:
        states = ", ".join(f"{count} {status}" for status, count in game.episodes.items())
        filled = f"{game.filled_in} of {game.decisions}{' !' * game.marked}"
        bad_replies = str(_in_time(game.bad_replies))
        rows.append([game.label, *_means(game.series, shown), states, bad_replies, filled])
        for reference in game.references:
            aside.append(len(rows))
            cells = _means(reference.series, shown)
            rows.append([f"  {reference.name}", *cells, f"{reference.n} offline", "", ""])
    offline = overalls((game.game, game.references) for game in games)
    means = {"overall": overall} | {f"  {name}": mean for name, mean in offline.items()}
    empty = [""] * (len(heads) - 2)
    foot = [[name, brief(mean), *empty] for name, mean in means.items() if overall]
    counted = [(game.label, game.bad_replies, game.bad_thoughts) for game in games]
    late = {label: moves.get("late", 0) + rest.get("late", 0) for label, moves, rest in counted}
    thoughts = {label: _in_time(rest) for label, _, rest in counted}
    for head, counts in {"late": late, "bad thoughts": thoughts}.items():
        if any(counts.values()):
            heads[head] = "d"
            for row in rows:
                row.append(counts.get(row[0]))
            foot = [[*line, ""] for line in foot]
    notes = [measure.note for measure in measures.values()]
    notes += [f"{game.label}: {game.conditional}" for game in games if game.conditional]
    for game in games:
        missing = (reference for reference in game.references if reference.why)
        notes += [f"{game.label}: no {r.player} reference: {r.why}" for r in missing]
    if any(game.marked for game in games):
        notes.append("! more than 5 % of the decisions were filled in")
    done = [(game.game, game.scores) for game in games if game.episodes.get("done")]
    if without := lacking(done):
        notes.append(f"No overall: these formulas have no score for {', '.join(without)}.")
    if games and not any(game.episodes.get("done") for game in games):
        notes.append("No episode has ended yet.")
    elif not measures and not any(game.scores for game in games):
        notes.append("No paper's score or measure is defined for what was played.")
    return ResultTable(heads, rows, foot=foot, note="\n".join(notes), beside=aside)


def _in_time(counts: Mapping[str, int]) -> int:
    return sum(counts.values()) - counts.get("late", 0)


def _means(series: Mapping[str, Series], titles: Collection[str]) -> list[MeanCell | None]:
    """By title; None where there is no such statistic."""
    by_title = {line.statistic.title: line for line in series.values()}
    return [by_title[title].mean if title in by_title else None for title in titles]


def spent_lines(models: Mapping[str, Usage], estimated: Collection[str] = ()) -> Iterator[str]:
    """A line for each model, the greatest first; nobody counted tokens of the `estimated`."""
    key = attrgetter("money", "tokens")
    for name, usage in sorted(models.items(), key=lambda pair: key(pair[1]), reverse=True):
        failed = f" ({usage.failures:,} failed)" * bool(usage.failures)
        money = f", money {usage.money:.4f}" * bool(usage.money)
        parts = {"cached": usage.tokens_cached, "written": usage.tokens_written}
        details = ", ".join(f"{count:,} {name}" for name, count in parts.items() if count)
        cached = f" ({details})" * bool(details)
        thoughts = f" ({usage.tokens_reasoning:,} of thoughts)" * bool(usage.tokens_reasoning)
        tokens = f"{usage.tokens_in:,} tokens in{cached}, {usage.tokens_out:,} out{thoughts}"
        if name in estimated:
            tokens = f"about {tokens} (estimates: nobody counted them)"
        beside = f"; {unsure(usage)}" if usage.unknown else ""
        yield f"{name}: {usage.calls:,} calls{failed}, {tokens}{money}{beside}"


def replies_table(rows: Sequence[Cached]) -> ResultTable:
    lines = [
        (
            *(row.model, row.source, row.replies, row.characters),
            *(f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d}" for time in (row.oldest, row.newest)),
        )
        for row in rows
    ]
    heads = columns("model, server or folder", "replies, characters", ",")
    return ResultTable(heads | {"oldest": ">", "newest": ">"}, lines)


class Move(NamedTuple):
    """A person's move, `rational` play there, "" if undefined, and the `regret` in hindsight."""

    step: int
    action: str
    rational: str
    regret: float | None


def branch_table(outcomes: Sequence[SeatOutcome]) -> ResultTable:
    """Moves at the step of a branch: of each seat the recorded one, then those of the branch."""
    rows: list[list[Any]] = []
    for seat in outcomes:
        before = seat.recorded
        name = f"{seat.seat} ({seat.player})"
        rows.append(
            [name, "recorded", _begun(before["words"]), None, before["regret"], before["payoff"]]
        )
        for share in seat.moves:
            rows.append([name, "branch", _begun(share.words), share.count, share.regret, None])
        times = sum(share.count for share in seat.moves)
        rows.append([name, "branch", "all", times, None, seat.payoff])
    heads = columns("seat, in, move", "times", ">")
    heads |= {"regret": ".2f", "payoff from there on": ".2f"}
    return ResultTable(heads, rows)


def settings_table(runs: Sequence[Records], heads: Sequence[str], differ: bool) -> ResultTable:
    """Return a table of the settings of runs, or of those alone in which they differ."""
    settings = [setting for setting in run_settings(*runs) if setting.differs or not differ]
    rows = [[s.whose, s.name, *(_begun(value) for value in s.values)] for s in settings]
    return ResultTable(columns(", ".join(["of", "setting", *heads])), rows)


def _begun(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


def moves_table(moves: Sequence[Move]) -> ResultTable:
    regrets = [move.regret for move in moves if move.regret is not None]
    return ResultTable(
        columns("step", "you, rational", ">") | {"could have gained": ".2f"},
        [(str(m.step + 1), m.action, m.rational or None, m.regret) for m in moves],
        foot=[("all", "", "", sum(regrets))] if regrets else [],
        note="in hindsight, by another action against what the others did in that step",
    )
