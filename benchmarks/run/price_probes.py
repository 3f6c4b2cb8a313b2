"""Branches of recorded price competitions in which one firm is made to ask for another price."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from llm_games import game_rooms
from llm_games.baselines.players import make_player
from llm_games.benchmarks.record.queries import Records
from llm_games.benchmarks.record.recorded_games import RecordedEpisode, RecordedGame, games
from llm_games.benchmarks.run.branch import Changes, branched
from llm_games.benchmarks.run.plan import PlannedGame, RunPlan
from llm_games.errors import BadParameter, LLMGamesError

ROOM = "collusion"  # the part of a game's room that knows its prices


@dataclass(frozen=True)
class PriceProbes:
    """Which prices are forced: in each episode, by each of `seats` (None: all), in a round.

    `at` counts rounds from 0; None: the middle one. Prices are forced down and up by `by`; None:
    half of the way from equilibrium to cartel; ``best``: down to the best reply alone. Each is
    played `times`, beside the same without force. `beside`: rule players that sit in all seats from
    that round on, for comparison; None: those that the game's room names.
    """

    seats: Sequence[int] | None = None
    at: int | None = None
    by: str | None = None
    times: int = 1
    beside: Sequence[str] | None = None

    def planned(
        self, path: Path, folder: Path, labels: Sequence[str], own: Mapping[str, Any]
    ) -> RunPlan:
        """Plan the branches of a run, to be recorded in `folder`; `labels`: of these games.

        BadParameter: nobody competes in prices there, or nothing can be forced so; and as `branch`.
        """
        plan, planned = None, list[PlannedGame]()
        with Records.open_readonly(path) as records:
            chosen = {game.label: game for game in games(records)}
            for label in dict.fromkeys(labels or chosen):
                if label not in chosen or room_of(chosen[label]) is None:
                    if label in labels:
                        raise BadParameter(f"{path} has no price competition called {label!r}")
                    continue
                for name, place, changes in self._branches(chosen[label]):
                    plan = branched(path, place, changes, folder, own)
                    planned += [game.model_copy(update={"label": name}) for game in plan.games]
        if plan is None:
            raise BadParameter(
                f"{path} has no finished episode of a price competition whose price can be forced "
                "so: give a round (--at) and a size (--by) that leave a price"
            )
        return plan.model_copy(update={"games": planned})

    def _branches(self, game: RecordedGame) -> Iterator[tuple[str, str, Changes]]:
        """Yield label, place and changes of all branches of a game."""
        for episode in game.done:
            at = self._round(episode)
            place = f"{game.label}/{episode.row.number}/{episode.steps[at].step}"
            every = {seat: seat for seat in range(len(episode.seats))}
            for seat in dict.fromkeys(every if self.seats is None else self.seats):
                if seat not in every:
                    raise BadParameter(f"{game.label} has seats 0 to {len(every) - 1}, not {seat}")
                prices = self.forced(game, episode, at, seat)
                for beside in ("", *self._beside(game)) if len(prices) > 1 else ():
                    seats = dict.fromkeys(every, beside) if beside else {}
                    for price in prices:
                        name = f"{place} seat {seat} at {float(price)} {beside}".strip()
                        changes = Changes(seats=seats, moves={seat: float(price)}, times=self.times)
                        yield name, place, changes

    def _round(self, episode: RecordedEpisode) -> int:
        rounds = len(episode.steps)
        at = rounds // 2 if self.at is None else self.at
        if not 0 <= at < rounds - 1:
            label = episode.row.game.label
            raise BadParameter(
                f"at must be a round of {label} after which one follows, from 0 to {rounds - 2}, "
                f"got {at}"
            )
        return at

    def forced(
        self, game: RecordedGame, episode: RecordedEpisode, at: int, seat: int
    ) -> list[Fraction]:
        """Return prices of a seat in a round, the recorded first, then those that are forced.

        None where another price counted than the seat's answer.
        """
        room, rules = room_of(game), episode.rules
        assert room is not None
        record = episode.records[at]
        prices = np.asarray(record["prices"])
        if record["answers"][seat] != prices[seat]:  # a failed reply, which nobody can force
            return []
        sizes: list[Fraction | None] = [None]
        if self.by != "best":
            size = room.probe_size(rules) if self.by is None else _size(self.by, rules)
            sizes = [-size, size]
        forced = (room.forced_price(rules, prices, seat, size) for size in sizes)
        recorded = Fraction(int(prices[seat]), rules.unit)
        return [recorded, *(price for price in forced if price is not None)]

    def _beside(self, game: RecordedGame) -> Sequence[str]:
        """Rule players that can sit there; BadParameter, UnknownName: one asked for cannot."""
        if self.beside is not None:
            for name in self.beside:
                make_player(name, game.rules)
            return list(dict.fromkeys(self.beside))
        room = room_of(game)
        return (
            [name for name in room.rules_beside(game.rules) if _plays(name, game)] if room else []
        )


def room_of(game: RecordedGame) -> ModuleType | None:
    """Return what knows the prices of a game; None: it is no price competition."""
    return game_rooms.part(game.name, ROOM)


def _plays(name: str, game: RecordedGame) -> bool:
    try:
        make_player(name, game.rules)
    except LLMGamesError:
        return False
    return True


def _size(text: str, rules: Any) -> Fraction:
    try:
        size = Fraction(text)
    except (ValueError, ZeroDivisionError):
        size = Fraction(0)
    if size <= 0 or (size * rules.unit).denominator != 1:
        raise BadParameter(
            f"by must be a number of ticks of {rules.tick} above 0, or 'best', got {text!r}"
        )
    return size
