"""The first figure of a page: what its games are judged by, all runs in one, beside references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from llm_games.benchmarks.judge.means import MeanCell
from llm_games.benchmarks.judge.paper import Sketch, owner
from llm_games.benchmarks.judge.references import Reference
from llm_games.benchmarks.judge.result_table import OWN
from llm_games.benchmarks.judge.results import judged_by, series
from llm_games.benchmarks.record.recorded_games import RecordedGame, Run
from llm_games.benchmarks.show.page import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEW = 12
"""Games up to which references are drawn beside them; the table has them of all."""
Beside = Mapping[str, Sequence[Reference]]


class GapKind(NamedTuple):
    """What games are judged by, as the figure says it."""

    name: str
    better: str


def judged(game: RecordedGame, edition: str) -> GapKind | None:
    """Return what a game of a run is judged by: a score or its paper's measure, or else None."""
    statistic = judged_by(game, edition)
    if statistic is None:
        return None
    name = f"score, {edition}" if statistic.name == "score" else statistic.title
    return GapKind(name, f"{statistic.better} is better")


def scored(runs: Sequence[Run]) -> bool:
    """Return whether a game of these runs can have a score."""
    papers = (owner(game) for run in runs for game in run.games)
    return any(paper.scoring for paper in papers if paper)


def sketches(runs: Sequence[Run], references: Sequence[Beside]) -> list[Sketch]:
    """Return a figure for each thing that games of these runs are judged by.

    `references` are those of each run, by label. What nobody judges is drawn by nobody: payoffs of
    different games have no scale in common.
    """
    kinds: dict[GapKind, list[str]] = {}
    for run in runs:
        for game in run.games:
            kind = judged(game, run.edition) if game.done else None
            if kind and game.label not in kinds.setdefault(kind, []):
                kinds[kind].append(game.label)
    found = []
    for kind, labels in kinds.items():
        series = _series(runs, references, kind, labels)
        if any(cell for cells in series.values() for cell in cells):
            draw = partial(_draw, kind=kind, labels=labels, series=series)
            size = canvas.tall(len(labels), len(series))
            found.append(Sketch(kind.name[0].upper() + kind.name[1:], draw, size))
    return found


def _series(
    runs: Sequence[Run], references: Sequence[Beside], kind: GapKind, labels: Sequence[str]
) -> dict[str, list[MeanCell | None]]:
    """Return by run, and by reference if games are few, the mean of each game."""
    found: dict[str, list[MeanCell | None]] = {}
    offline: dict[str, list[MeanCell | None]] = {}
    for run, beside in zip(runs, references, strict=True):
        games = {game.label: game for game in run.games if judged(game, run.edition) == kind}
        name = run.stem if len(runs) > 1 else OWN
        while name in found:
            name += "'"
        statistics = {label: judged_by(game, run.edition) for label, game in games.items()}
        lines = {label: series(games[label], stat) for label, stat in statistics.items() if stat}
        found[name] = [lines[label].mean if label in lines else None for label in labels]
        for at, label in enumerate(labels if len(labels) <= FEW else ()):
            for one in beside.get(label, ()) if label in games else ():
                cell = one.series[lines[label].statistic.name].mean
                row = offline.setdefault(f"{one.player}, offline", [None] * len(labels))
                if row[at] not in (None, cell):  # another table of the same label
                    own = f"{one.player} of {name}, offline"
                    row = offline.setdefault(own, [None] * len(labels))
                row[at] = cell
    return found | offline


def _draw(
    axes: Axes,
    kind: GapKind,
    labels: Sequence[str],
    series: Mapping[str, Sequence[MeanCell | None]],
) -> str:
    canvas.dots(axes, labels, series)
    axes.set_xlabel(f"{kind.name} ({kind.better})")
    own = [cell for cells in series.values() for cell in cells]
    offline = any(name.endswith(", offline") for name in series)
    note = " Offline: players by rule in the same seats." * offline
    return f"Mean of each game{canvas.resting(own, ', with its 95 % interval')}.{note}"
