"""The tables that every report has: scores, comparison, players and their replies, what it took."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter

import numpy as np

from llm_games.baselines.regret import conditional
from llm_games.benchmarks.judge import results
from llm_games.benchmarks.judge.means import MeanCell
from llm_games.benchmarks.judge.paper import apart, editions, meant, measure_of
from llm_games.benchmarks.judge.references import Reference, overalls
from llm_games.benchmarks.judge.result_table import Label, ResultTable, Value, columns
from llm_games.benchmarks.judge.results import Series, measured_by, score_by, series
from llm_games.benchmarks.record.labels import EPISODE, read_labels
from llm_games.benchmarks.record.recorded_games import MARK, RecordedGame, Run, filled_in
from llm_games.benchmarks.record.recorded_games import seconds as lasting
from llm_games.replies import LENIENCIES
from llm_games.wrappers.clients.budget import Usage

BREAKS = {"unparsable": "format", "out_of_range": "range"}
BREAKS |= {outcome: outcome for outcome in ("refused", "truncated", "failed")}
"""How a completion can be useless, and the column's name."""
LATE = "late"
"""How one of a guest can be, with a column where there was one."""
SPENT = "calls, failed, tokens in, cached, written, tokens out, thoughts"
counts_of = attrgetter(
    *("calls", "failures", "tokens_in", "tokens_cached", "tokens_written"),
    *("tokens_out", "tokens_reasoning"),
)
"""Of a usage, by the columns `SPENT`."""
INSTEAD = """\
Reference rows are players that follow a rule, played offline in the seats of the language models, \
or in all seats where only such players sat."""


def score_grid(
    run: Run,
    scored: Collection[str],
    total: MeanCell | None,
    references: Mapping[str, Sequence[Reference]],
) -> ResultTable:
    """A row for each game and its `references`; `scored` are labels of games that have scores."""
    default, second = editions()[:2]
    kinds = run.edition, default if run.edition == second else second
    shown = [statistic for statistic in results.STATISTICS if "page" in statistic.shown]
    score, other = f"score, {kinds[0]}", kinds[1]
    heads = {"game": "", "runs done": ">"}
    heads |= {score: ".1f", other: ".1f"} if scored else {}
    measures = {g.label: measured_by(measure) for g in run.games if (measure := measure_of(g))}
    others = {measured.title: measured.form for measured in measures.values()}
    heads |= others | {"filled in": ".1%"} | {stat.title: stat.form for stat in shown}

    def judged(game: RecordedGame, lines: Mapping[str, Series]) -> list[Value]:
        measured = measures.get(game.label)
        here = measured.title if measured else ""
        return [lines["measured"].mean if title == here else "" for title in others]

    rows: list[list[Value]] = []
    aside = []
    for game in run.games:
        done = [f"{game.states['done']} of {len(game.rows)}"]
        done += [f"{n} {status}" for status in ("void", "running") if (n := game.states[status])]
        row: list[Value] = [Label(game.label, marked=game.filled > MARK), ", ".join(done)]
        if game.label in scored:
            row += [series(game, score_by(kinds[0])).cell, series(game, score_by(kinds[1])).mean]
        elif scored:
            row += [None, None]
        row += judged(game, {"measured": series(game, measured_by(measure_of(game)))})
        row.append(float(game.filled) if game.played else None)
        rows.append([*row, *(series(game, statistic).mean for statistic in shown)])
        for reference in references.get(game.label, ()):
            aside.append(len(rows))
            lines, name = reference.series, f"{game.label}, {reference.player}"
            row = [Label(name, reference.about), f"{reference.n} offline"]
            row += [lines["score"].cell, ""] if scored else []
            row += [*judged(game, lines), "", *(lines[stat.name].mean for stat in shown)]
            rows.append(row)
    foot = []
    if scored and total:
        offline = overalls((game.name, references.get(game.label, ())) for game in run.games)
        means = {"Overall": total} | {f"Overall, {name}": mean for name, mean in offline.items()}
        foot = [(name, "", mean, *[""] * (len(heads) - 3)) for name, mean in means.items()]
    games = {game.label: conditional(game.rules, game.planned.get("given")) for game in run.games}
    notes = [INSTEAD] * any(references.values())
    notes += [f"{label}: {why}" for label, why in games.items() if why]
    notes += apart(meant(game, run.edition) for game in run.games if game.done)
    note = "\n".join(notes)
    strong = [score, *others]
    return ResultTable(heads, rows, name="means", note=note, foot=foot, beside=aside, strong=strong)


def payoff_grid(run: Run) -> ResultTable:
    """Mean payoff by game and player; a player's seats in one run are averaged first."""
    shown = [stat for stat in results.STATISTICS if stat.by_player and "page" in stat.shown]
    rows: list[list[Value]] = [
        [game.label, player, *(series(game, statistic, player).mean for statistic in shown)]
        for game in run.games
        if len(game.players) > 1
        for player in game.players
    ]
    heads = columns("game, player") | {statistic.name: statistic.form for statistic in shown}
    return ResultTable(heads, rows, "Payoffs by player", "payoffs")


def usage_grid(run: Run) -> ResultTable:
    heads = columns("game", "decisions, calls, tokens in, tokens out", ",")
    heads |= {"cost": ".4f", "waited for replies": ">", "an episode took (median)": ">"}
    parts = [(game.label, game.rows, game.did) for game in run.games]
    greetings = run.spent.seats.get("")
    if len(parts) > 1 or greetings:
        parts.append(("all", run.rows, run.did))
    rows: list[list[Value]] = []
    for label, episodes, did in parts:
        took = [lasted for row in episodes if (lasted := lasting([row])) is not None]
        spent = run.spent.total if label == "all" else run.spent.games.get(label)
        asked: list[Value] = _spent(run, spent) if spent and spent.calls else [None] * 4
        if did.calls and asked[0] is None:  # replies of a record, which cost nothing
            asked = [did.calls, did.tokens_in, did.tokens_out, None]
        waited = seconds(sum(did.latencies)) if did.calls else None
        median = seconds(float(np.median(took))) if took else None
        rows.append([label, did.decisions, *asked, waited, median])
    if greetings:
        rows.insert(-1, ["greetings", None, *_spent(run, greetings), None, None])
    return ResultTable(heads, rows, note=run.spent.note)


def _spent(run: Run, usage: Usage) -> list[Value]:
    cost = float(usage.money) if run.priced else None
    return [usage.calls, usage.tokens_in, usage.tokens_out, cost]


def spent_grid(run: Run) -> ResultTable:
    """By seat and model, with calls that brought no reply."""
    heads = columns("seat, model", SPENT, ",") | {"money": ".4f"}
    rows: list[list[Value]] = []
    if unknown := run.spent.total.unknown:
        heads |= dict.fromkeys(("of unknown outcome", "tokens in ≤", "tokens out ≤"), ",")
    for (model, seat), u in run.spent.pairs.items():
        cost = float(u.money) if run.priced else None
        row = [seat or "greeting", model, *counts_of(u), cost]
        rows.append(row + [u.unknown, u.unknown_in, u.unknown_out] * bool(unknown))
    return ResultTable(heads, rows, name="spent", note=run.spent.note)


def _breaks(run: Run) -> dict[str, str]:
    """Return the columns of useless completions by outcome."""
    dids = [player.did for player in run.players.values()]
    counts = [counts for did in dids for counts in (did.moves, *did.others.values())]
    return BREAKS | ({LATE: LATE} if any(count[LATE] for count in counts) else {})


def player_grid(run: Run) -> ResultTable:
    useless = _breaks(run)
    heads = columns("player, kind", "decisions, calls", ",") | dict.fromkeys(useless.values(), "d")
    heads |= {"filled in": ".1%", "tokens in / out": ">", "latency, median / 95 %": ">"}
    rows: list[list[Value]] = []
    for player in run.players.values():
        did, tokens, latency = player.did, None, None
        calls, share = did.moves.total(), filled_in(did.filled, did.decisions)
        if did.calls:
            middle, late = np.quantile(did.latencies, [0.5, 0.95])
            latency = f"{seconds(middle)} / {seconds(late)}"
            usage = run.spent.players.get(player.name, did)
            tokens = f"{usage.tokens_in:,} / {usage.tokens_out:,}"
        name = Label(player.name, did.model, share > MARK)
        breaks = [did.moves[outcome] if calls else None for outcome in useless]
        row = [name, player.kind, did.decisions, calls or None, *breaks, float(share)]
        rows.append([*row, tokens, latency])
    return ResultTable(heads, rows)


def other_grid(run: Run) -> ResultTable:
    """Calls that asked for no move, by player and kind."""
    useless = _breaks(run)
    heads = columns("player, for", "calls", ",") | dict.fromkeys(useless.values(), "d")
    rows = [
        [player.name, kind, outcomes.total(), *(outcomes[outcome] for outcome in useless)]
        for player in run.players.values()
        for kind, outcomes in player.did.others.items()
    ]
    return ResultTable(heads, rows, title="Other calls")


def labels_grid(run: Run) -> ResultTable:
    """What a person marked decisions and episodes with: how many, by label and player."""
    seats = {row.id: row.seats for game in run.games for row in game.rows}
    counts: dict[tuple[str, str], list[int]] = {}
    for (episode, step, seat), labelled in read_labels(run.file).items():
        if episode in seats:
            whole = step == EPISODE
            player = "" if whole else seats[episode][seat]
            for label in labelled.labels:
                counts.setdefault((label, player), [0, 0])[whole] += 1
    rows: list[list[Value]] = [[*key, *count] for key, count in sorted(counts.items())]
    return ResultTable(columns("label, player", "decisions, episodes", ","), rows, title="Labels")


def special_grid(run: Run) -> ResultTable:
    rows: list[list[Value]] = []
    without = "the server refuses it: asked without it"
    for name, did in ((player.name, player.did) for player in run.players.values()):
        rows += ([name, what, LENIENCIES.get(what), n] for what, n in did.lenient.most_common())
        rows += ([name, f"no {option}", without, n] for option, n in did.left_out.most_common())
    heads = columns("player, what, meaning", "replies", ",")
    return ResultTable(heads, rows, title="What was special about replies")


def seconds(value: float) -> str:
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.0f} min"
