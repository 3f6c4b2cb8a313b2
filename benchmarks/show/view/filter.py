"""Filters of a run's decisions, as they stand in the query of an address."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Literal, get_args
from urllib.parse import urlencode

from llm_games.errors import BadParameter, unknown

Sort = Literal["place", "regret", "payoff", "tokens", "latency"]
Phase = Literal["move", "talk", "after"]
SORTS: tuple[str, ...] = get_args(Sort)
PHASES: tuple[str, ...] = get_args(Phase)
BROKE = "yes", "no"
ROWS = 50
"""Decisions on a page."""
MOST = 2**31 - 1
"""The largest number of a seat, a round, a page and the like."""


class BadFilter(BadParameter):
    """A filter that cannot be read; what is wrong with each of its values."""


@dataclass(frozen=True)
class Filter:
    """Which decisions of a run are wanted: those that fit a value of every field that has any.

    `game` is a label, `player` a name, `episode` an id in the file; seats count from 0, rounds from
    1. `phase` ``after``: asked once the game is over. `broke`: whether the rules filled it in.
    `label`: what a person marked it, or its episode, with.
    `text`: words, or phrases in quotes, that all stand in replies or thoughts. `sort`: one of
    `SORTS`, with ``-`` before it from the largest down. `page` counts from 1.
    """

    game: tuple[str, ...] = ()
    player: tuple[str, ...] = ()
    seat: tuple[int, ...] = ()
    outcome: tuple[str, ...] = ()
    phase: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    broke: tuple[str, ...] = ()
    episode: tuple[int, ...] = ()
    round: tuple[int, ...] = ()
    regret_min: float | None = None
    regret_max: float | None = None
    calls_min: int | None = None
    text: str = ""
    sort: str = "place"
    page: int = 1

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Filter:
        """Read the names and values of a query; BadFilter names all that cannot be read."""
        texts_by_name: dict[str, list[str]] = {}
        for name, text in pairs:
            if text.strip():
                texts_by_name.setdefault(name, []).append(text.strip())
        values: dict[str, Any] = {}
        wrong = []
        for name, texts in texts_by_name.items():
            try:
                values[name] = _read(name, texts)
            except (LookupError, ValueError) as error:
                wrong.append(f"{name}: {error}" if isinstance(error, ValueError) else str(error))
        if wrong:
            raise BadFilter("; ".join(wrong))
        return cls(**values)

    def query(self, **changes: Any) -> str:
        """The query with these changes; one of anything but the page leads to the first page."""
        other = replace(self, **({"page": 1} | changes))
        pairs = []
        for field in fields(other):
            value = getattr(other, field.name)
            if value != field.default:
                pairs += [(field.name, text) for text in _listed(value)]
        return urlencode(pairs)

    def direction(self, column: str) -> str:
        """Return how a list is sorted by a column, in the words of ``aria-sort``."""
        return {f"-{column}": "descending", column: "ascending"}.get(self.sort, "none")

    def toggled(self, name: str, value: Any) -> str:
        current: tuple[Any, ...] = getattr(self, name)
        changed = tuple(v for v in current if v != value) if value in current else (*current, value)
        return self.query(**{name: changed})


def _listed(value: Any) -> list[str]:
    parts = value if isinstance(value, tuple) else [value]
    return [
        str(part).removesuffix(".0") if isinstance(part, float) else str(part) for part in parts
    ]


def _read(name: str, texts: list[str]) -> Any:
    if name in _LISTS:
        return tuple(dict.fromkeys(map(_LISTS[name], texts)))
    if name not in _SINGLE:
        raise unknown("filter", name, [field.name for field in fields(Filter)])
    if len(texts) > 1:
        raise ValueError(f"one value is allowed, got {len(texts)}")
    return _SINGLE[name](texts[0])


def _integer(text: str, low: int) -> int:
    if not text.isascii() or not text.isdigit() or not low <= int(text[:20]) <= MOST:
        raise ValueError(f"an integer from {low} to {MOST} is needed, got {text[:40]!r}")
    return int(text)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"a number is needed, such as 2.5, got {text[:40]!r}")
    return value


def _choice(text: str, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise ValueError(f"one of {', '.join(choices)} is needed, got {text[:40]!r}")
    return text


def _sort(text: str) -> str:
    _choice(text.removeprefix("-"), SORTS)
    return text


_FROM_0, _FROM_1 = partial(_integer, low=0), partial(_integer, low=1)
_LISTS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("game", "player", "outcome", "label"), str),
    **{"seat": _FROM_0, "episode": _FROM_1, "round": _FROM_1},
    **{"phase": partial(_choice, choices=PHASES), "broke": partial(_choice, choices=BROKE)},
}
_SINGLE: dict[str, Callable[[str], Any]] = {
    **{"regret_min": _number, "regret_max": _number, "calls_min": _FROM_0},
    **{"text": str, "sort": _sort, "page": _FROM_1},
}
