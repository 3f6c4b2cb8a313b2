"""Drawing the figures of a page: where their files go, and which of them the page itself has."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from llm_games.benchmarks.judge.paper import HALF, Sketch
from llm_games.benchmarks.show.page import canvas
from llm_games.benchmarks.show.page.csv_files import Files
from llm_games.benchmarks.show.page.links import Links, link
from llm_games.benchmarks.show.page.parts import Parts

ROOM = 1_300_000
"""Characters of figures on a page; what comes after them is in its file only."""


class Drawer:
    """Draws the figures of a run; `folder` is what their files begin with, if there are `files`."""

    def __init__(self, page: Parts, files: Files | None, folder: str, links: Links | None) -> None:
        self.page, self.files, self.folder, self.links = page, files, folder, links

    def drawn(
        self, sketches: Iterable[Sketch], name: str, prefix: str, game: str = ""
    ) -> list[dict[str, Any]]:
        """Plots, with files called after `name`; ids begin with `prefix`, all are of `game`."""
        plots = []
        for i, sketch in enumerate(sketches):
            file = f"{self.folder} {name}{f' {sketch.title.lower()}' if i else ''}".strip()
            make = partial(self._picture, sketch, f"{prefix}-{i}", file, game)
            plot = self.page.part(f"The figure “{file}”", make, undrawn)
            plots.append({"title": sketch.title, "half": sketch.size[0] == HALF[0]} | plot)
        return plots

    def _picture(self, sketch: Sketch, ids: str, name: str, game: str) -> dict[str, Any]:
        links, files = self.links, self.files
        linked = partial(link, links=links, game=game) if links else lambda axes: None
        title = f"{sketch.title}: {game}" if game else sketch.title
        picture = canvas.picture(
            ids, title, sketch.draw, sketch.size, files=files is not None, linked=linked
        )
        if picture.empty:
            return undrawn(picture.sentence) | {"empty": True}
        paths = []
        if files is not None:
            paths = files.add("figures", name, ("svg", picture.svg), ("png", picture.png))
        addresses = [(Path(path).suffix[1:].upper(), quote(path)) for path in paths]
        shown = {"inline": picture.inline, "sentence": picture.sentence}
        self.page.drawn += len(picture.inline)
        if self.page.drawn > ROOM and files is not None:
            shown = {"inline": "", "sentence": f"In its file, for want of room. {picture.sentence}"}
        return {**shown, "files": addresses, "empty": False}


def undrawn(why: str) -> dict[str, Any]:
    return {"inline": "", "sentence": why, "files": [], "empty": False}
