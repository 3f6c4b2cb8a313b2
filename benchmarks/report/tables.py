"""The tables that every report has: scores, comparison, players and their replies, what it took."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from llm_games.baselines.deviation import has_deviation
from llm_games.benchmarks.runs.compare import SEED, Comparison
from llm_games.benchmarks.runs.grid import Grid, Label, Value
from llm_games.benchmarks.runs.paper import editions, scores
from llm_games.benchmarks.runs.reader import Episode, Game, Player, Run, added
from llm_games.benchmarks.runs.stats import MARK, Cell, cell, filled_in, interval, shown


def score_grid(run: Run, scored: Collection[str], total: Sequence[Value]) -> Grid:
    """Return a row for each game of a run.

    Args:
        run: the run.
        scored: the labels of those games that can have a score.
        total: Overall and its interval; empty for none.
    """
    score, other = f"score, {run.edition}", other_edition(run.edition)
    columns = {score: ".1f", "95 % interval": ">", other: ".1f"} if scored else {}
    tail = {"filled in": ".1%", "payoff of a seat": ".2f", "regret": ".2f"}
    foot = [("Overall", "", *total, *[""] * 4)] if scored and total else []
    return Grid(
        {"game": "", "runs done": ">"} | columns | tail,
        [_score_row(game, run.edition, game.label in scored, bool(scored)) for game in run.games],
        foot=foot,
        strong=[score],
    )


def other_edition(edition: str) -> str:
    """Return the edition to show beside this one."""
    default, other = editions()[:2]
    return default if edition == other else other


def _score_row(game: Game, edition: str, scored: bool, columns: bool) -> list[Value]:
    own, beside = (
        scores(game, name) if scored else [] for name in (edition, other_edition(edition))
    )
    marks = [_mean(own), bootstrap([own]), _mean(beside)] if columns else []
    done = [f"{game.states['done']} of {len(game.rows)}"]
    done += [f"{n} {status}" for status in ("void", "running") if (n := game.states[status])]
    regret = game.done if has_deviation(game.name) else []
    return [
        Label(game.label, marked=game.filled > MARK),
        ", ".join(done),
        *marks,
        float(game.filled) if game.played else None,
        _mean([e.rewards.sum(axis=0).mean() for e in game.done]),
        _mean([float(e.regret().sum(axis=1).mean()) for e in regret]),
    ]


def _mean(values: Sequence[float]) -> Cell | None:
    return cell(values) if values else None


def bootstrap(columns: Sequence[Sequence[float]]) -> str:
    """Write the bootstrap interval of the mean over columns."""
    ends = interval(columns, np.random.default_rng(SEED))
    return "–" if ends is None else f"{shown(ends[0])} to {shown(ends[1])}"


# -- time and tokens ------------------------------------------------------------------------------


def usage_grid(run: Run) -> Grid:
    """Return what each game took, and all together if there are several."""
    columns = {"game": ""} | dict.fromkeys(("decisions", "calls", "tokens in", "tokens out"), ",")
    columns |= {"cost": ".4g", "waited for replies": ">", "an episode took (median)": ">"}
    rows = [_usage_row(game.label, game.episodes, run.priced) for game in run.games]
    more = [_usage_row("all", run.episodes, run.priced)] if len(rows) > 1 else []
    return Grid(columns, rows + more)


def _usage_row(label: str, episodes: Sequence[Episode], priced: bool) -> list[Value]:
    took = [e.seconds for e in episodes if e.seconds is not None]
    did = added(e.did for e in episodes)
    return [
        label,
        did.decisions,
        *((did.calls, did.tokens_in, did.tokens_out) if did.calls else (None, None, None)),
        did.cost if priced else None,
        seconds(sum(did.latencies)) if did.calls else None,
        seconds(float(np.median(took))) if took else None,
    ]


# -- two runs -------------------------------------------------------------------------------------


def comparison_grid(found: Sequence[Comparison]) -> Grid:
    """Return a row for the score of each game, if it has one, and a row for the payoff."""
    columns = {"game": "", "of": ""}
    columns |= dict.fromkeys(("pairs", "A", "B", "B − A", "95 % interval", "p"), ">")
    rows = [row for game in found for row in _comparison(game)]
    return Grid(columns, rows, strong=["B − A"])


def _comparison(game: Comparison) -> list[list[Value]]:
    notes = "; ".join([*game.notes, *game.alone])
    seats = f"payoff of {len(game.seats)} seat{'s' if len(game.seats) != 1 else ''}"
    kinds = ((name, d) for name, d in (("score", game.score), (seats, game.payoff)) if d)
    rows: list[list[Value]] = [
        [game.label, name, *d.written(1 if name == "score" else 2, "–")] for name, d in kinds
    ]
    rows = rows or [[game.label, "–", "0", *["–"] * 5]]
    return [[Label(game.label, notes), *rows[0][1:]], *rows[1:]]


# -- replies -------------------------------------------------------------------------------------

BREAKS = {
    "unparsable": "format",
    "out_of_range": "range",
    "refused": "refused",
    "truncated": "truncated",
    "failed": "failed",
}
"""How a completion can be useless, and the column's name."""


def player_grid(run: Run) -> Grid:
    """Return what each player did over all its seats."""
    columns = {"player": "", "kind": "", "decisions": ",", "calls": ","}
    columns |= dict.fromkeys(BREAKS.values(), "d") | {"filled in": ".1%"}
    columns |= {"tokens in / out": ">", "latency, median / 95 %": ">"}
    return Grid(columns, [_player_row(player) for player in run.players.values()])


def _player_row(player: Player) -> list[Value]:
    did, asked = player.did, bool(player.did.calls)
    calls, share = did.moves.total(), filled_in(did.filled, did.decisions)
    middle, late = np.quantile(did.latencies, [0.5, 0.95]) if asked else (0.0, 0.0)
    return [
        Label(player.name, did.model, share > MARK),
        player.kind,
        did.decisions,
        calls or None,
        *(did.moves[outcome] if calls else None for outcome in BREAKS),
        float(share),
        f"{did.tokens_in:,} / {did.tokens_out:,}" if asked else None,
        f"{seconds(middle)} / {seconds(late)}" if asked else None,
    ]


def other_grid(run: Run) -> Grid:
    """Return a row for each player and kind of its calls, moves apart; often there are none."""
    columns = {"player": "", "for": "", "calls": ","} | dict.fromkeys(BREAKS.values(), "d")
    rows = [
        [player.name, kind, outcomes.total(), *(outcomes[outcome] for outcome in BREAKS)]
        for player in run.players.values()
        for kind, outcomes in player.did.others.items()
    ]
    return Grid(columns, rows, title="Other calls")


def seconds(value: float) -> str:
    """Write a duration with two or three figures."""
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.0f} min"
