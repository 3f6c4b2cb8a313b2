"""A run's pages as files that open from disk: the viewer's own templates, each text once."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
from markupsafe import Markup

from llm_games.benchmarks.record.connection import Unwritable
from llm_games.benchmarks.record.labels import EPISODE
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.run_settings import secrets_of
from llm_games.benchmarks.show.page.report_page import css
from llm_games.benchmarks.show.view import (
    decision_page,
    episode_page,
    list_page,
    render,
    replayed,
    run_page,
)
from llm_games.benchmarks.show.view.decision_index import ListedDecision
from llm_games.benchmarks.show.view.filter import PHASES, ROWS
from llm_games.benchmarks.show.view.reading import SEAT_BITS, STEP_BITS
from llm_games.benchmarks.show.view.run_shelf import RunFile
from llm_games.benchmarks.show.view.texts import visible
from llm_games.errors import BadParameter
from llm_games.files import full
from llm_games.pictures import DARK, WHITE

STATIC = Path(__file__).parent / "static"
FILES = "view.css", "reading.css", "keys.js", "reading.js", "exported.js", "icon.svg"
KEPT = "episode", "step", "seat", "round", "game", "player", "outcome", "phase", "broke", "calls"
"""Columns of the list that are integers."""
MEASURED = "payoff", "regret", "latency"
_ADDRESS = re.compile(r' ((?:xlink:)?href|src|action)="(/[^"]*)"')
_BEGINNINGS = re.compile(r"\n\s*")
Tell = Callable[[int, int], None]


def export_pages(path: Path, folder: Path, tell: Tell = lambda done, of: None) -> int:
    """Write a run's pages into a new or empty folder; return how many bytes they have.

    `tell` gets how many of how many episodes are done. What could not be written to the end is
    removed. Raises StoreError, Unwritable, DiskFull, and ReportExtraMissing.
    """
    run = RunFile(path, None)
    run.decisions.read()
    _check_empty(folder)
    size, was_there = 0, folder.exists()
    try:
        with run.records() as records:
            keys = secrets_of(records)
            for name, text in ExportedPages(run, records, tell).files():
                for key in keys:
                    text = key.redact(text)
                place = folder / name
                place.parent.mkdir(parents=True, exist_ok=True)
                size += place.write_bytes(text.encode(errors="replace"))
    except BaseException as error:
        for part in [*folder.glob("*")] if was_there else [folder]:
            shutil.rmtree(part) if part.is_dir() else part.unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, Unwritable):
            why = f"{folder} cannot be written: {error.strerror or error}"
            raise (
                full(error, folder) if full(error, folder) is not error else Unwritable(why)
            ) from None
        raise
    finally:
        run.stop()
    return size


def _check_empty(folder: Path) -> None:
    try:
        if folder.exists() and (not folder.is_dir() or next(folder.iterdir(), None)):
            what = "not empty" if folder.is_dir() else "no folder"
            raise BadParameter(f"{folder} is {what}: an export needs a new or an empty folder")
    except OSError as error:
        raise Unwritable(f"{folder} cannot be read: {error.strerror}") from None


class ExportedPages:
    """The files of an export, made one after another; templates ask it for what is of files alone.

    `data` names the scripts with data of the page that is being made, without their endings.
    """

    policy = render.POLICY

    def __init__(self, run: RunFile, records: Records, tell: Tell) -> None:
        self.run, self.records, self.tell = run, records, tell
        self.data: Sequence[str] = ()
        self._labels = [row.label for row in records.games()]
        self._episodes = [row for row in records.episodes() if row.status != "pending"]
        self._listed: dict[str, list[Any]] = {}
        self._texts: dict[str, int] = {}  # of an episode, by number
        self._shapes: dict[str, int] = {}  # of its pictures, each once
        self._shared: dict[str, int] = {}  # of several
        self._several = self._in_several()

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield names and contents, one page at a time."""
        for name in FILES:
            yield f"static/{name}", (STATIC / name).read_text("utf-8")
        yield "static/report.css", css()
        yield "static/dark.css", _dark_css()
        run = self.run
        yield self._page("index", "run", run_page.run(run))
        yield self._page("types", "types", run_page.types(run))
        yield self._page("settings", "settings", run_page.settings(run))
        yield self._page("report", "report", run_page.report(run, whole=True))
        for number, label in enumerate(self._labels):
            yield self._page(f"game-{number}", "game", run_page.game(run, label))
        yield from self._list()
        for number, row in enumerate(self._episodes):
            yield from self._episode(row.id)
            self.tell(number + 1, len(self._episodes))
        yield "data/shared.js", f"take(0, {_json({'texts': [*self._shared]})});\n"

    def _page(
        self, name: str, template: str, context: render.Context, *data: str
    ) -> tuple[str, str]:
        self.data = data
        html = render.render(template, **context | {"live": "", "exported": self})
        return f"{name}.html", self._linked(html).replace(f'"{name}.html#', '"#')

    def _linked(self, html: str) -> str:
        """Put names of files in place of addresses; text cannot hold a bare quotation mark."""
        return _ADDRESS.sub(lambda match: f' {match[1]}="{self._file(match[2])}"', html)

    def _file(self, address: str) -> str:
        parts = urlsplit(address.replace("&amp;", "&"))
        query = f"?{parts.query.replace('&', '&amp;')}" if parts.query else ""
        match parts.path.strip("/").split("/"):
            case ["static", *rest]:
                return "static/" + "/".join(rest)
            case ["run", _, "game"]:
                label = parse_qs(parts.query, keep_blank_values=True)["label"][0]
                return f"game-{self._labels.index(label)}.html"
            case ["run", _, ("decisions" | "types" | "settings" | "report") as page]:
                return f"{page}.html{query}"
            case ["run", _, "episode", episode]:
                return f"episode-{episode}.html"
            case ["run", _, "decision", episode, step, seat]:
                return f"episode-{episode}.html#{step}-{seat}"
            case _:
                return "index.html"

    # -- what templates ask for ----------------------------------------------------------------

    @property
    def scores(self) -> render.Context:
        context = run_page.scores(self.run)
        return {name: context[name] for name in ("grids", "links", "why")}

    def numbered(self, page: decision_page.DecisionPage, part: decision_page.PromptPart) -> int:
        """The number of a text in the data: from 0 in that of the episode, else in that of all."""
        text = part.piece.text
        if part.piece.left:
            numbers = page.replayed.row.id, page.step, page.seat
            text = visible(decision_page.text(self.records, *numbers, part.name))
        if hash(text) in self._several:
            return -1 - self._shared.setdefault(text, len(self._shared))
        return self._texts.setdefault(text, len(self._texts))

    def drawn(self, page: episode_page.EpisodePage, number: int) -> str:
        """Width and height of a picture, and which shapes of its episode it is made of."""
        drawing = page.replayed.picture(number)
        tags = [self._shapes.setdefault(tag, len(self._shapes)) for tag in drawing.tags()]
        breaks = np.flatnonzero(np.diff(tags) != 1) + 1
        runs = [f"{run[0]}-{run[-1]}" for run in np.split(np.array(tags, int), breaks) if len(run)]
        return " ".join(map(str, (drawing.width, drawing.height, *runs)))

    def templates(self, page: episode_page.EpisodePage) -> Markup:
        """The shapes of pictures and the decisions of an episode, shown when they are asked for."""
        return Markup("".join(self._templates(page)))

    def _templates(self, page: episode_page.EpisodePage) -> Iterator[str]:
        yield f'<template id="shapes"><svg>{"".join(self._shapes)}</svg></template>\n'
        replayed, row, here = page.replayed, page.replayed.row, f"/run/{self.run.id}"
        for step, seat in sorted({*replayed.decisions, *replayed.attempts}):
            shown = decision_page.page_in(self.records, replayed, step, seat, here)
            context = {"page": shown, "labelled": self.run.labels().get((row.id, step, seat))}
            template = render.environment().get_template("decision.html.j2")
            block = template.blocks["main"](template.new_context(context | {"exported": self}))
            body = _BEGINNINGS.sub("\n", "".join(block))
            title = Markup.escape(visible(shown.title))
            yield f'<template id="{step}-{seat}" data-title="{title}">{body}</template>\n'
            parts = [c.thoughts for c in shown.calls] + [c.reply for c in shown.calls]
            self._listed[f"{step}-{seat}"] = [
                _move(shown),
                [self.numbered(shown, part) for part in parts if part],
            ]

    # -- pages with data -----------------------------------------------------------------------

    def _episode(self, number: int) -> Iterator[tuple[str, str]]:
        self._texts, self._listed, self._shapes = {}, {}, {}
        read = replayed.read(self.records, number)
        page = episode_page.page(read, f"/run/{self.run.id}", picture=0, cells=2**62)
        labelled = self.run.labels().get((number, EPISODE, EPISODE))
        context = {"title": page.title, "crumbs": page.crumbs, "page": page, "labelled": labelled}
        names = "data/shared", f"data/episode-{number}"
        yield self._page(f"episode-{number}", "episode", context, *names)
        data = {"texts": [*self._texts], "decisions": self._listed}
        yield f"data/episode-{number}.js", f"take({number}, {_json(data)});\n"

    def _list(self) -> Iterator[tuple[str, str]]:
        decisions = self.run.decisions
        context = list_page.decisions(self.run, ())
        page = context["page"]._replace(rows=list(self._samples()))
        chips = [list_page.Chip("", "")]
        context |= {"page": page, "chips": chips, "choices": list(list_page.choices(page))}
        yield self._page("decisions", "decisions", context, "data/decisions")
        columns, reading = decisions.columns(), decisions.reading
        order = np.argsort(columns["key"])
        data: dict[str, Any] = {name: columns[name][order].astype(int).tolist() for name in KEPT}
        data["tokens"] = (columns["tokens_in"] + columns["tokens_out"])[order].tolist()
        for name in MEASURED:
            values = columns[name][order].tolist()
            data[name] = [float(f"{v:.6g}") if np.isfinite(v) else None for v in values]
        names = {kind: [*map(visible, reading.listed(kind))] for kind in reading.codes}
        raw = {kind: reading.listed(kind) for kind in reading.codes}
        data["labels"] = self._labels_by_decision(columns["key"][order])
        about = {
            "columns": data,
            "names": names,
            "values": raw | {"phase": [*PHASES], "broke": ["no", "yes"]},
            "words": list_page.WORDS,
            "numbers": decisions.numbers,
            "rows": ROWS,
        }
        yield "data/decisions.js", f"list({_json(about)});\n"

    def _labels_by_decision(self, keys: Any) -> list[list[str]]:
        """Labels of each decision, and of its episode."""
        masks = self.run.decisions.label_masks(
            {"key": keys, "episode": keys >> SEAT_BITS + STEP_BITS}
        )
        rows: list[list[str]] = [[] for _ in keys]
        for label, mask in masks.items():
            for index in np.flatnonzero(mask):
                rows[index].append(label)
        return rows

    def _samples(self) -> Iterator[ListedDecision]:
        """A row of each kind, which the page's script fills with decisions."""
        columns = self.run.decisions.columns()
        kinds = np.stack([columns[name].astype(int) for name in ("outcome", "broke", "phase")])
        _, first = np.unique(kinds, axis=1, return_index=True)
        for key in columns["key"][first]:
            if decision := self.run.decisions.find(key):
                yield decision._replace(text=" ", calls=2)

    def _in_several(self) -> set[int]:
        """Digests of texts that stand in more than one episode."""
        counts = Counter[int]()
        for row in self._episodes:
            digests = set[int]()
            for chat in self.records.chats(row.id).values():
                digests |= {hash(visible(message["content"])) for message in chat[-1:]}
            for attempt in self.records.attempts(row.id):
                digests |= {hash(visible(text)) for text in decision_page.apart(attempt)}
            counts.update(digests)
        return {digest for digest, count in counts.items() if count > 1}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _move(shown: decision_page.DecisionPage) -> str:
    return visible(list_page.move(shown.decision.action))[:300] if shown.decision else "–"


def _dark_css() -> str:
    """Colours of pictures for a dark ground."""
    ground = f".drawn svg {{ background: {DARK[WHITE]}; }}"
    rules = [
        f'.drawn [{name}="{color}"] {{ {name}: {dark}; }}'
        for color, dark in DARK.items()
        for name in ("fill", "stroke")
    ]
    return "@media (prefers-color-scheme: dark) {\n" + "\n".join([ground, *rules]) + "\n}\n"
