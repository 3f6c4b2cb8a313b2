"""The page of a run's decisions: a list, what narrows it, and what it can be sorted by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

from llm_games.benchmarks.record.connection import StoreError
from llm_games.benchmarks.show.view.decision_index import LABEL, Facet, Page
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
    "label": "label",
    "episode": "episode",
    "round": "round",
    "regret_min": "regret at least",
    "regret_max": "regret at most",
    "calls_min": "calls at least",
    "text": "text",
}
"""Names of a filter's fields on the page."""
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


class Chip(NamedTuple):
    """A part of the filter in words, and the query without it."""

    words: str
    query: str


def decisions(run: RunFile, pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The list of decisions that fit a query; all, and what is wrong, if it cannot be read.

    Of a file that has gone it shows what was read before, if anything; else StoreError.
    """
    live_address, problem, gone = live(run), "", ""
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
        page = run.select(replace(wanted, page=page.pages))
    base = f"/run/{run.id}"
    return {
        "title": "Decisions",
        "crumbs": [(title, base)],
        "live": live_address,
        "base": base,
        "page": page,
        "problem": problem,
        "gone": gone,
        "choices": list(choices(page)),
        "chips": list(chips(page.filter)),
        "heads": HEADS,
        "sorts": SORTED | {wanted.sort: SORTED.get(wanted.sort, wanted.sort)},
        "move": move,
        "labelled": run.labels(),
    }


def beside(
    run: RunFile, numbers: tuple[int, int, int], pairs: Iterable[tuple[str, str]]
) -> tuple[str | None, str | None] | None:
    """Addresses of the neighbours in the list of a query; None without a query."""
    try:
        wanted = Filter.of(pairs)
    except BadFilter:
        return None
    if not (query := wanted.query()):
        return None
    previous, following = (
        decision and f"/run/{run.id}/{decision.address}?{query}"
        for decision in run.decisions.neighbours(wanted, key_of(*numbers))
    )
    return previous, following


def choices(page: Page) -> Iterator[FilterField]:
    for name, facets in page.facets.items():
        chosen = [facet for facet in facets if facet.chosen]
        if len(facets) < 2 and not chosen and name != LABEL:
            continue
        is_typed = len(facets) > CHOICES and name in TYPED
        yield FilterField(name, WORDS[name], chosen if is_typed else facets, is_typed)


def chips(wanted: Filter) -> Iterator[Chip]:
    for field in fields(wanted):
        value, word = getattr(wanted, field.name), WORDS.get(field.name)
        if word is None or value == field.default:
            continue
        if isinstance(value, tuple):
            for part in value:
                yield Chip(f"{word}: {part}", wanted.toggled(field.name, part))
        else:
            yield Chip(f"{word} {value}", wanted.query(**{field.name: field.default}))


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
