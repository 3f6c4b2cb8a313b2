"""Alympics' recordings of the water auction: a JSON list of residents, each with its messages.

Bids, supply and winners stand in the result that every living resident is sent after each day.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from llm_games.benchmarks.run.imports import Recording, read_json
from llm_games.games.water_allocation.rules import RESIDENTS
from llm_games.wrappers.imported import BadRecording

PLAYER = "alympics"  # the files do not name their model
LOWS = (10, 15, 20)  # least supplies of the paper's settings, each with ten more at most
_DAY = re.compile(
    r"participating in Round (?P<day>\d+)\. In this round, (?P<bids>.*?)\.\s*\n"
    r"Total water resource supply is (?P<supply>\d+)\..*?game is tied, (?P<winners>.*?)\s*won this",
    re.DOTALL,
)
_RANGE = re.compile(r"supply will vary between (\d+) and (\d+) units")


def read(path: Path) -> Recording:
    """Read a recording; BadRecording: a part of it is missing, or of a form that is unknown."""
    data = read_json(path)
    wrong = f"{path}: {{}}; take the file from its source, or leave it out"
    names = [resident.name for resident in RESIDENTS]
    entries = [entry for entry in data if isinstance(entry, Mapping) and len(entry) == 1]
    texts = {name: _texts(messages) for entry in entries for name, messages in entry.items()}
    if list(texts) != names or len(entries) != len(data):
        listed = ", ".join(map(str, texts)) or "none"
        raise BadRecording(wrong.format(f"its residents are {listed}, not {', '.join(names)}"))
    days = ([day for day in map(_DAY.search, of) if day] for of in texts.values())
    results = max(days, key=len)
    if not results or [int(day["day"]) for day in results] != [*range(1, len(results) + 1)]:
        raise BadRecording(wrong.format("nobody was told the results of all days from 1 on"))
    supplies = [int(day["supply"]) for day in results]
    moves: list[list[Any]] = [[] for _ in names]
    for day in results:
        for part in day["bids"].split(", "):
            name, _, bid = part.partition(" bid ")
            if name not in names:
                raise BadRecording(wrong.format(f"day {day['day']} has the bid {part!r:.60}"))
            moves[names.index(name)].append(_bid(bid))
    span = _RANGE.search(next(iter(texts[names[0]]), ""))
    low = int(span[1]) if span else max((n for n in LOWS if n <= min(supplies)), default=0)
    if not span and not low:
        raise BadRecording(wrong.format("it does not tell the range of supplies"))
    persona = any("Your Profession" in text for text in texts[names[0]][:1])
    number = 1 + LOWS.index(low) + 3 * persona if low in LOWS else 0
    if not number:
        raise BadRecording(wrong.format(f"supplies from {low} on are of no setting of the paper"))

    def check(records: Sequence[Mapping[str, Any]]) -> str:
        for day, record in zip(results, records, strict=True):
            winners = {name for name in day["winners"].split(", ") if name}
            came = {name for name, won in zip(names, record["won"], strict=True) if won}
            if winners != came:
                listed = [", ".join(sorted(group)) or "nobody" for group in (winners, came)]
                return f"day {day['day']} was won by {listed[0]}, by its bids by {listed[1]}"
        return ""

    params = {"preset": f"setting_{number}_authors"}
    return Recording(
        path=path,
        game="water_allocation",
        params=params,
        players=[PLAYER] * len(names),
        moves=moves,
        given={"supplies": supplies},
        shared=supplies,
        check=check,
    )


def _texts(messages: Any) -> list[str]:
    rows = messages if isinstance(messages, list) else []
    return [str(row.get("content", "")) for row in rows if isinstance(row, Mapping)]


def _bid(text: str) -> Any:
    """A bid as a number, None for none; as it stands, to be refused, if it is neither."""
    plain = text.strip().removeprefix("$")
    if plain in ("None", "null", ""):
        return None
    try:
        return Decimal(plain)
    except InvalidOperation:
        return plain
