"""The page of a run's decisions: a list, what narrows it, and what it can be sorted by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

from llm_games.benchmarks.record.database import StoreError
from llm_games.benchmarks.show.view.decision_index import Facet, Page
from llm_games.benchmarks.show.view.filter import BadFilter, Filter
from llm_games.benchmarks.show.view.reading import key_of
from llm_games.benchmarks.show.view.run_page import live
from llm_games.benchmarks.show.view.run_shelf import RunFile
from llm_games.questions import BEYOND
from llm_games.words import quoted

WORDS = {
    "game": "game",
    "player": "player",
    "seat": "seat",
    "outcome": "outcome",
    "phase": "asked for",
    "broke": "filled in by the rules",
    "episode": "episode",
    "round": "round",
    "regret_min": "regret at least",
    "regret_max": "regret at most",
    "calls_min": "calls at least",
    "text": "text",
}
"""What each field of a filter is called on the page."""
SORTED = {
    "place": "as played",
    "-regret": "largest regret",
    "regret": "smallest regret",
    "-payoff": "largest payoff",
    "payoff": "smallest payoff",
    "-tokens": "most tokens",
    "-latency": "slowest",
}
HEADS = {"regret": "regret", "payoff": "payoff", "tokens": "tokens", "latency": "time"}
"""Columns that a list can be sorted by."""
CHOICES = 40
"""Values of a field that can be ticked; of more, one is typed in."""
MARKS = "compare"
"""The name of the marks of rows that are to be compared."""
TYPED = "seat", "round"
"""Fields whose values are numbers, which can be typed in."""


class FilterField(NamedTuple):
    """A field with its values to tick; `typed`: another number can be typed in."""

    name: str
    word: str
    facets: list[Facet]
    typed: bool


class Head(NamedTuple):
    """A column that can be sorted by: where to, and how it is now (as `aria-sort` says it)."""

    word: str
    query: str
    now: str


class Chip(NamedTuple):
    """A part of the filter in words, and the query without it."""

    words: str
    query: str


def decisions(run: RunFile, pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return what the list of decisions shows for the names and values of a query.

    A query that cannot be read shows all decisions, and says what is wrong; of a file that has
    gone it shows what was read before. `MARKS` narrow nothing: without scripts they are sent along.

    Raises:
        StoreError: the file cannot be read, and never was.
    """
    now, problem, gone = live(run), "", ""
    try:
        with run.records() as records:
            title = records.title
    except StoreError as error:
        if not len(run.decisions):
            raise
        title, gone = run.name, str(error)
    try:
        wanted = Filter.of(pair for pair in pairs if pair[0] != MARKS)
    except BadFilter as error:
        wanted, problem = Filter(), str(error)
    page = run.select(wanted)
    if page.count and wanted.page > page.pages:
        page = run.select(wanted := replace(wanted, page=page.pages))
    address = f"/run/{run.id}/decisions"
    return {
        "title": "Decisions",
        "crumbs": [(title, f"/run/{run.id}")],
        "live": now,
        "run": run.id,
        "address": address,
        "base": f"/run/{run.id}",
        "wanted": wanted,
        "query": wanted.query(),
        "problem": problem,
        "gone": gone,
        "page": page,
        "choices": list(choices(page)),
        "chips": list(chips(wanted)),
        "heads": {name: head(wanted, name) for name in HEADS},
        "sorts": SORTED if wanted.sort in SORTED else SORTED | {wanted.sort: wanted.sort},
        "previous": wanted.query(page=wanted.page - 1) if wanted.page > 1 else None,
        "following": wanted.query(page=wanted.page + 1) if wanted.page < page.pages else None,
        "move": move,
    }


def beside(
    run: RunFile, place: tuple[int, int, int], pairs: Iterable[tuple[str, str]]
) -> tuple[str | None, str | None] | None:
    """Return the addresses of the decisions before and after one in the list of a query.

    None where there is no list; without a query there is none.
    """
    try:
        wanted = Filter.of(pairs)
    except BadFilter:
        return None
    query = wanted.query()
    if not query:
        return None
    before, after = run.decisions.neighbours(wanted, key_of(*place))
    base = f"/run/{run.id}/"
    return (
        before and f"{base}{before.place}?{query}",
        after and f"{base}{after.place}?{query}",
    )


def choices(page: Page) -> Iterator[FilterField]:
    """Yield the fields that have something to choose between."""
    for name, facets in page.facets.items():
        chosen = [facet for facet in facets if facet.chosen]
        if len(facets) < 2 and not chosen:
            continue
        many = len(facets) > CHOICES
        typed = many and name in TYPED
        yield FilterField(name, WORDS[name], chosen if typed else facets, typed)


def chips(wanted: Filter) -> Iterator[Chip]:
    """Yield what narrows a list, part by part."""
    for field in fields(wanted):
        value, word = getattr(wanted, field.name), WORDS.get(field.name)
        if word is None or value == field.default:
            continue
        if isinstance(value, tuple):
            for one in value:
                yield Chip(f"{word}: {one}", wanted.toggled(field.name, one))
        else:
            yield Chip(f"{word} {value}", wanted.query(**{field.name: field.default}))


def head(wanted: Filter, name: str) -> Head:
    """Return how a column can be sorted: from the largest down first, then from the smallest up."""
    down = wanted.sort == f"-{name}"
    up = wanted.sort == name
    now = "descending" if down else "ascending" if up else "none"
    return Head(HEADS[name], wanted.query(sort=name if down else f"-{name}"), now)


def move(action: Any) -> str:
    """Write a move for a list: words are quoted, a plan is in brackets."""
    if action is None or (isinstance(action, int) and abs(action) >= BEYOND):
        return "–"
    if isinstance(action, str):
        return quoted(action) if action else "silence"
    if isinstance(action, list):
        return f"({', '.join(map(str, action))})"
    if isinstance(action, Mapping):
        return ", ".join(f"{name} {value}" for name, value in action.items())
    return str(action)
