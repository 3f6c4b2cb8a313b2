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
    """The statistic that a game is judged by, as the figure names it."""

    name: str
    better: str


def judged(game: RecordedGame, edition: str) -> GapKind | None:
    """A score or its paper's measure, None without either."""
    statistic = judged_by(game, edition)
    if statistic is None:
        return None
    name = f"score, {edition}" if statistic.name == "score" else statistic.title
    return GapKind(name, f"{statistic.better} is better")


def scored(runs: Sequence[Run]) -> bool:
    papers = (owner(game) for run in runs for game in run.games)
    return any(paper.scoring for paper in papers if paper)


def sketches(runs: Sequence[Run], references: Sequence[Beside]) -> list[Sketch]:
    """A figure for each criterion; payoffs of different games have no scale in common."""
    kinds: dict[GapKind, list[str]] = {}
    for run in runs:
        for game in run.games:
            kind = judged(game, run.edition) if game.done else None
            if kind and game.label not in kinds.setdefault(kind, []):
                kinds[kind].append(game.label)
    figures = []
    for kind, labels in kinds.items():
        series = _series(runs, references, kind, labels)
        if any(cell for cells in series.values() for cell in cells):
            draw = partial(_draw, kind=kind, labels=labels, series=series)
            size = canvas.tall(len(labels), len(series))
            figures.append(Sketch(kind.name[0].upper() + kind.name[1:], draw, size))
    return figures


def _series(
    runs: Sequence[Run], references: Sequence[Beside], kind: GapKind, labels: Sequence[str]
) -> dict[str, list[MeanCell | None]]:
    """By run, and by reference if games are few, the mean of each game."""
    means_by_run: dict[str, list[MeanCell | None]] = {}
    offline: dict[str, list[MeanCell | None]] = {}
    for run, beside in zip(runs, references, strict=True):
        games = {game.label: game for game in run.games if judged(game, run.edition) == kind}
        name = run.stem if len(runs) > 1 else OWN
        while name in means_by_run:
            name += "'"
        statistics = {label: judged_by(game, run.edition) for label, game in games.items()}
        lines = {label: series(games[label], stat) for label, stat in statistics.items() if stat}
        means_by_run[name] = [lines[label].mean if label in lines else None for label in labels]
        for index, label in enumerate(labels if len(labels) <= FEW else ()):
            for reference in beside.get(label, ()) if label in games else ():
                cell = reference.series[lines[label].statistic.name].mean
                row = offline.setdefault(f"{reference.player}, offline", [None] * len(labels))
                if row[index] not in (None, cell):  # another table of the same label
                    longer_name = f"{reference.player} of {name}, offline"
                    row = offline.setdefault(longer_name, [None] * len(labels))
                row[index] = cell
    return means_by_run | offline


def _draw(
    axes: Axes,
    kind: GapKind,
    labels: Sequence[str],
    series: Mapping[str, Sequence[MeanCell | None]],
) -> str:
    canvas.dots(axes, labels, series)
    axes.set_xlabel(f"{kind.name} ({kind.better})")
    all_cells = [cell for cells in series.values() for cell in cells]
    offline = any(name.endswith(", offline") for name in series)
    note = " Offline: players by rule in the same seats." * offline
    return f"Mean of each game{canvas.resting(all_cells, ', with its 95 % interval')}.{note}"
