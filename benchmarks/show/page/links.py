"""Addresses of the decisions behind a number or a point: what the viewer's list is filtered by.

A page that the viewer serves has them; a page in a file has none, since no server is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import numpy as np

from llm_games.benchmarks.judge.result_table import OWN, PUBLISHED, Label, ResultTable, Value
from llm_games.benchmarks.record.recorded_games import Run
from llm_games.benchmarks.show.page.page_tables import BREAKS, LATE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLACES = {"round": "round", "day": "round", "run of a session": "round", "seat": "seat"}
"""Columns and axes that say where a decision was made, and what the viewer calls it."""
KINDS = {head: {"outcome": outcome} for outcome, head in (BREAKS | {LATE: LATE}).items()}
KINDS |= {"filled in": {"broke": "yes"}, "regret": {"sort": "-regret"}}
"""Columns that count some decisions only, or are of some more than of others."""
MOST = 300
"""Points of a figure that are links, at most."""


def decisions(selection: Mapping[str, Any]) -> str:
    """Address below the run's own."""
    query = urlencode(selection, doseq=True, quote_via=quote)
    return f"decisions?{query}" if query else "decisions"


@dataclass(frozen=True)
class Links:
    """Finds which decisions of a run are behind what is shown; addresses begin with `prefix`."""

    prefix: str
    run: Run

    @cached_property
    def names(self) -> Mapping[str, Mapping[str, Any]]:
        """Selections by word: games by setting, by name or by label, a player."""
        meanings: dict[str, Mapping[str, Any]] = {}
        for key in ("setting", "name"):
            alike: dict[str, list[str]] = {}
            for game in self.run.games:
                alike.setdefault(getattr(game, key).replace("_", " "), []).append(game.label)
            meanings |= {word: {"game": labels} for word, labels in alike.items()}
        meanings |= {name: {"player": name} for name in self.run.players}
        return meanings | {game.label: {"game": game.label} for game in self.run.games}

    def meant(self, words: Any) -> Mapping[str, Any]:
        """Selection that words stand for, also when a figure has cut them; {} if unknown."""
        text = str(words).strip()
        if text in self.names:
            return self.names[text]
        cut = text.removesuffix("…")
        if len(cut) < 12:
            return {}
        matches = [meaning for name, meaning in self.names.items() if name.startswith(cut)]
        return matches[0] if len(matches) == 1 else {}

    def all_of(self, words: Iterable[Any]) -> dict[str, Any]:
        return {key: value for word in words for key, value in self.meant(word).items()}

    def row(self, grid: ResultTable, row: Sequence[Value]) -> list[str]:
        """Address behind each cell, "" for those without any."""
        cells = list(zip(grid.columns.items(), row, strict=True))
        words = [v.text if isinstance(v, Label) else v for (_, form), v in cells if form == ""]
        outside = any(row is grid.rows[number] for number in grid.beside)
        if outside or PUBLISHED in words:
            return [""] * len(row)
        selection: dict[str, Any] = self.all_of(filter(None, words))
        selection |= {PLACES[n]: v for (n, _), v in cells if n in PLACES and isinstance(v, int)}
        addresses = []
        for (name, _), value in cells:
            narrowing = KINDS.get(name) or self.meant(name)
            empty = value is None or value == ""
            addresses.append("" if empty else self.prefix + decisions({**selection, **narrowing}))
        return addresses


def link(axes: Axes, links: Links, game: str = "") -> None:
    """Make the points, bars and names of a figure links; `game`: the label that all of it is of."""
    game_filter = {"game": game} if game else {}

    def address(name: Any, x: float, y: float) -> str | None:
        selection = {**game_filter, **links.meant(name), **_axes_selection(axes, links, x, y)}
        return links.prefix + decisions(selection) if selection else None

    for text in _texts(axes):
        if meaning := links.meant(text.get_text()):
            text.set_url(links.prefix + decisions({**game_filter, **meaning}))
    points: list[tuple[float, float, str]] = []
    for drawn in axes.get_lines():
        faint = drawn.get_linewidth() < 1 or (drawn.get_alpha() or 1) < 0.3
        if faint or drawn.get_transform() is not axes.transData:
            continue
        name = str(drawn.get_label())
        if not (game or name.startswith("_") or name == OWN or links.meant(name)):
            continue  # of other runs, or of references
        data: list[list[float]] = np.asarray(drawn.get_xydata(), np.float64).tolist()
        for x, y in data:
            if x == x and y == y and (behind := address(name, x, y)):
                points.append((x, y, behind))
    for bars in axes.containers:
        for bar in bars:
            x, y = bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height() / 2
            bar.set_url(address(bars.get_label(), x, y))
    if points := points[:MOST]:
        positions, heights, addresses = zip(*points, strict=True)
        axes.autoscale(False)
        over = axes.scatter(positions, heights, s=120, alpha=0, linewidths=0, zorder=9)
        over.set_urls(addresses)


def _axes_selection(axes: Axes, links: Links, x: float, y: float) -> dict[str, Any]:
    selection: dict[str, Any] = {}
    for axis, value in ((axes.xaxis, x), (axes.yaxis, y)):
        kind = PLACES.get(axis.get_label_text())
        if kind and value == round(value):
            selection[kind] = round(value)
        ticks = dict(zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=False))
        near = min(ticks, key=lambda tick: abs(tick - value), default=None)
        if near is not None and abs(near - value) < 0.5:
            selection |= links.meant(ticks[near].get_text())
    return selection


def _texts(axes: Axes) -> list[Any]:
    legend = axes.get_legend()
    named = [*axes.get_xticklabels(), *axes.get_yticklabels(), *axes.texts]
    return [*named, *(legend.get_texts() if legend else ())]
