"""Play on from the page of a decision: a branch beside its run, of players that cost nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

from llm_games.baselines.named_tools import TOOLS
from llm_games.baselines.players import rule_of
from llm_games.benchmarks.record.recorded_games import TOYS
from llm_games.benchmarks.run import api, conduct
from llm_games.benchmarks.run.branch import Changes
from llm_games.benchmarks.run.resume import planned
from llm_games.benchmarks.show.view.run_shelf import RunFile
from llm_games.errors import BadParameter

MOST_TIMES = 100
FIELDS = ("times", "until", "player", "move")
PLACES = ("prompt_folder", "cache", "base_url", "api_key_file", "api_key_env")
"""Settings that can name a place to read from or write to."""
_turn = Lock()  # one at a time: each takes the next free name


class NotFromHere(BadParameter):
    """A player that a page starts by no click: it may cost money, or runs what a file names."""


def branch(run: RunFile, numbers: tuple[int, int, int], form: Mapping[str, str]) -> Path:
    """Play what the form of a decision's page asks for; return the new run's file.

    Raises NotFromHere, BadParameter for a field, and what `api.branch` does; the run is only read.
    """
    episode, step, seat = numbers
    changes = _changes(form, seat)
    with run.records() as records:
        row = next((row for row in records.episodes() if row.id == episode), None)
        plan = planned(records)
    if row is None:
        raise BadParameter(f"{run.path.name} has no episode {episode}")
    place = f"{row.game.label}/{row.number}/{step}"
    [game] = [game for game in plan.games if game.label == row.game.label]
    way = f"llm-games branch {run.path.name} --at {place}"
    for seat_plan in game.seats:
        settings = seat_plan.settings | seat_plan.client
        _check_harmless(seat_plan.player, settings, game.game, way)
    for player in changes.seats.values():
        _check_harmless(player, {}, game.game, way)
    with _turn:
        names = (run.path.with_name(f"{run.name}-branch-{n}.db") for n in count(1))
        path = next(name for name in names if not name.exists())
        plan, _ = api.branch_plan(run.path, place, path, changes=changes, overrides={}, own={})
        with conduct.seated_players(plan, use_cache=False) as policies:
            conduct.play_run(lambda: conduct.start(plan, path), plan, policies)
    return path


def _changes(form: Mapping[str, str], seat: int) -> Changes:
    if odd := sorted({*form} - {*FIELDS}):
        raise BadParameter(f"a branch takes {', '.join(FIELDS)}, got {', '.join(odd)[:80]}")
    text, until = form.get("times", "10"), form.get("until", "decision")
    if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= MOST_TIMES):
        raise BadParameter(f"times: an integer from 1 to {MOST_TIMES} is needed, got {text[:20]!r}")
    if until not in ("decision", "end"):
        raise BadParameter(f"until: decision or end is needed, got {until[:20]!r}")
    player, move = form.get("player", "").strip(), form.get("move", "").strip()
    moves: dict[int, Any] = {seat: _value(move)} if move else {}
    return Changes(
        seats={seat: player} if player else {},
        moves=moves,
        asked=seat if until == "decision" and not moves else None,
        times=int(text),
    )


def _value(text: str) -> Any:
    """Read a move as JSON, else as the word that it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _check_harmless(player: str, settings: Mapping[str, Any], game: str, way: str) -> None:
    """NotFromHere: it is neither by rule nor a toy, or its settings name files or code."""
    kind, tools = player.partition(":")[0], settings.get("tools", ())
    own = [tool for tool in tools if tool.removesuffix(":always") not in TOOLS]
    places = {name: settings[name] for name in PLACES if isinstance(settings.get(name), str)}
    if own or places or not (kind in TOYS or rule_of(kind, game)):
        what = own[0] if own else next(iter(places.values()), player)
        raise NotFromHere(
            f"{what} may cost money or run code of a file: a page starts players by rule, tiny and "
            f"mock alone. In a terminal, where a budget can be set: {way} --budget-money X"
        )
