"""The plots that all games share: moves, payoffs, regret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from llm_games.baselines.play_measures import play_measures
from llm_games.baselines.regret import has_deviation
from llm_games.benchmarks.judge.intervals import T
from llm_games.benchmarks.judge.means import POSITIVE, SHARE, Ends
from llm_games.benchmarks.judge.paper import HALF, THIRD, Draw, Sketch, action, papers
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame, Run
from llm_games.benchmarks.show.page import canvas
from llm_games.benchmarks.show.page.canvas import line, paths
from llm_games.benchmarks.show.page.plot_style import assign_looks
from llm_games.questions import MISSING, Choice
from llm_games.rulebook import Rulebook

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def moves(game: RecordedGame, all_of_them: bool = True) -> list[Sketch]:
    """Figures of a game that has been played, or only those of its moves."""
    special: list[tuple[str, Draw]] = [plot for paper in papers() for plot in paper.drawn(game)]
    # Moves in turn are of several kinds, which the measures of play tell apart.
    described = game.rules.turns and play_measures(game.rules)
    draws = special or [("Moves", _moves)] * (not described)
    if len(game.players) > 1 and action(game.name):
        draws.insert(1, ("By player", _by_player))
    if all_of_them:
        draws.append(("Payoffs", _payoffs))
        draws += [("Regret", _regret)] if has_deviation(game.name) else []
    size = HALF if len(draws) > 3 else THIRD
    return [Sketch(title, partial(draw, game=game), size) for title, draw in draws]


def latency(run: Run) -> list[Sketch]:
    asked = [player for player in run.players.values() if player.did.calls]

    def draw(axes: Axes) -> str:
        for player, look in assign_looks(asked):
            waited = np.sort(player.did.latencies)
            share = np.arange(1, len(waited) + 1) / len(waited)
            thinned = np.unique(np.linspace(0, len(waited) - 1, 200).astype(int))
            step = {"color": look.colour, "linestyle": look.dash, "label": player.name[:40]}
            axes.step(waited[thinned], share[thinned], **step)
        axes.set_xlabel("seconds")
        axes.set_ylabel("share of calls")
        axes.set_ylim(0, 1.03)
        return "Share of the calls that were answered within so many seconds."

    return [Sketch("Latency", draw, THIRD)] if asked else []


def moved(rules: Rulebook) -> Ends:
    """Ends of a move as players write it; a lower end below 0 is 0."""
    low, high = rules.core.bounds()
    return max(low, 0) / rules.core.unit, high / rules.core.unit


def thin(game: RecordedGame, ends: Ends) -> str:
    count = len(game.played)
    longest = max((game.shelf.lengths.get(row.id, 0) for row in game.played.rows), default=1)
    lines = canvas.single(count, max(1, longest))
    notes = ", ".join(filter(None, (lines, canvas.banded(count, ends))))
    return f"; thin lines: {notes}" if count > 1 else ""


def first_round(game: RecordedGame) -> int:
    """Round of the first record: a forced one may stand before it."""
    return 1 + int(game.rules.begun)


def _moves(axes: Axes, game: RecordedGame) -> str:
    state = game.rules.reset(0)
    questions = (game.rules.question(state, seat) for seat in range(game.rules.players))
    question = next(filter(None, questions), None)
    if isinstance(question, Choice):
        return _choices(axes, game, question.words)
    unit = 10 ** getattr(question, "decimals", 0)
    low, high = (end / unit for end in game.rules.core.bounds())
    ends = max(low, 0.0), high
    for name, look in assign_looks(game.players):
        values = [_mean_moves(e, name, unit) for e in game.played]
        paths(axes, values, name[:40], ends, look, first_round(game))
    axes.set_ylabel(question.key.replace("_", " ") if question else "move")
    canvas.room(axes)
    return f"Moves over the rounds, mean over the seats of one player{thin(game, ends)}."


def _mean_moves(episode: RecordedEpisode, name: str, unit: int) -> list[float]:
    """By step, over the player's seats; NaN where none of them moved."""
    moves = ([record["actions"][seat] for seat in episode.of(name)] for record in episode.records)
    choices = ([move for move in moved if np.ndim(move) == 0 and move >= 0] for moved in moves)
    return [float(np.mean(numbers)) / unit if numbers else np.nan for numbers in choices]


def _choices(axes: Axes, game: RecordedGame, words: Mapping[str, int]) -> str:
    meant = {index: word for word, index in reversed(list(words.items()))}
    for (index, word), look in assign_looks(meant.items()):
        shares = [[np.mean(np.equal(r["actions"], index)) for r in e.records] for e in game.played]
        paths(axes, shares, word, SHARE, look, first_round(game))
    axes.set_ylabel("share of the players")
    axes.set_ylim(-0.03, 1.03)
    return f"Share of the players who chose each word in each round{thin(game, SHARE)}."


def _payoffs(axes: Axes, game: RecordedGame) -> str:
    episodes = game.done or game.played
    totals = np.array([e.earned for e in episodes])
    numbers = np.array([game.players.index(name) for name in game.seats])  # of the players
    sitting = numbers[np.array([row.seating for row in episodes.rows])]
    ends = game.rules.core.payable
    canvas.possible(axes, "y", ends)
    dots = canvas.shown_runs(len(totals), 4 * totals.shape[1])  # a dot takes more room than a point
    shift = np.linspace(-0.15, 0.15, len(dots)) if len(dots) > 1 else np.zeros(1)
    for player, (name, (colour, mark, _)) in enumerate(assign_looks(game.players)):
        rows, seats = np.nonzero(sitting[dots] == player)
        faint: dict[str, Any] = {"color": colour, "alpha": 0.4, "ms": 4, "mew": 0}
        axes.plot(seats + shift[rows], totals[dots[rows], seats], mark or "o", **faint)
        taken = np.flatnonzero((sitting == player).any(axis=0))
        player_totals = np.where(sitting == player, totals, np.nan)[:, taken]
        bar: dict[str, Any] = {"color": colour, "ms": 16, "mew": 2.4}
        bar |= {"label": name[:40]} if len(game.players) > 1 else {}
        axes.plot(taken, canvas.means(player_totals), "_", **bar)
        axes.vlines(taken, *canvas.band(player_totals, ends), color=colour, linewidth=1)
    axes.set_xlabel("seat")
    axes.set_ylabel("payoff of a run")
    canvas.whole(axes.xaxis)
    canvas.room(axes)
    which = f"{len(dots)} of the {len(totals):,} runs" if len(dots) < len(totals) else "each run"
    sentence = f"Total payoff of each seat: a dot for {which}, a bar at their mean"
    method = T[np.isfinite(ends).sum()]
    sentence += f", upright its 95 % interval ({method} over runs)" * (len(totals) >= canvas.BANDED)
    if len(game.players) == 1:
        return f"{sentence}; {totals.mean():.4g} on average."
    by_name = [totals[sitting == player].mean() for player in range(len(game.players))]
    pairs = zip(game.players, by_name, strict=True)
    return f"{sentence}; on average {', '.join(f'{name} {mean:.4g}' for name, mean in pairs)}."


def _regret(axes: Axes, game: RecordedGame) -> str:
    lost = [e.regret() for e in game.played]
    sums = [np.where(np.isnan(r).all(axis=0), np.nan, np.nansum(r, axis=0)).tolist() for r in lost]
    paths(axes, sums, "sum over players", POSITIVE, first=first_round(game))
    line(axes, 0, "no regret")
    axes.set_ylabel("regret")
    highest = np.nanmax([0.0, *map(max, sums)]) or 1  # NaN: not defined
    axes.set_ylim(-0.04 * highest, 1.08 * highest)
    axes.set_xlabel("move" if game.rules.turns else "round")
    return (
        "What the players could have gained, all together, each by changing its own action alone "
        f"(NashConv, in hindsight){thin(game, POSITIVE)}."
    )


def _by_player(axes: Axes, game: RecordedGame) -> str:
    what, ends = action(game.name), moved(game.rules)
    for name, look in assign_looks(game.players):
        values = [seats_mean(e, e.of(name)) for e in game.played]
        paths(axes, values, name[:40], ends, look, first_round(game))
    axes.set_ylabel(what)
    return f"The same by player: {what} in each round{thin(game, ends)}."


def seats_mean(episode: RecordedEpisode, seats: Sequence[int]) -> list[float]:
    """Mean `paper.action` of these seats by round, NaN where none of them acted."""
    unit = getattr(episode.rules, "unit", 1)
    rounds = episode.actions[:, seats].tolist() if len(episode.actions) else ()
    choices = ([move for move in moves if move != MISSING] for moves in rounds)
    return [sum(moved) / len(moved) / unit if moved else np.nan for moved in choices]
