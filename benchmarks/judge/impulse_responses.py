"""What follows a forced price: the rivals' answer, whether it paid, and the profits without it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from llm_games import game_rooms
from llm_games.benchmarks.judge.means import FREE, SHARE, Ends, MeanCell, estimated
from llm_games.benchmarks.judge.result_table import ResultTable, columns
from llm_games.benchmarks.record.recorded_games import RecordedGame
from llm_games.rulebook import Array

SHOWN = 4  # rounds after a forced price whose answers are shown


class _State(NamedTuple):
    """Where prices were forced: by whom of whom, and which others sat there, "" for the same."""

    players: tuple[str, ...]
    label: str
    number: int
    step: int
    seat: int


@dataclass(frozen=True)
class _PricePath:
    """Means over the episodes of a branch, from its round on: prices and profits ``(rounds,)``."""

    prices: Array
    rival_prices: Array
    profits: Array
    gain: float

    @property
    def rounds(self) -> int:
        return len(self.prices)


_Pair = tuple[_PricePath, _PricePath]  # without force and with it
_Group = tuple[str, str, tuple[str, ...], str]  # game, player, rivals, probe


@dataclass(frozen=True)
class ImpulseResponse:
    """What `rivals` answered to prices forced on a `player`, by `probe`: ``cut`` or ``raise``.

    Numbers are means over the recorded episodes, each a mean over the player's seats. `answers` are
    the rivals' mean prices of the rounds after it, less those without force; `paid` is the share of
    episodes in which it paid, `worth` what it was worth, discounted, over the rounds that were
    left; `gain` the profits without force, from equilibrium, 0, to cartel, 1.
    """

    game: str
    player: str
    rivals: tuple[str, ...]
    probe: str
    size: MeanCell
    answers: Sequence[MeanCell]
    paid: MeanCell
    worth: MeanCell
    gain: MeanCell | None
    rounds: int

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        cells = {name: getattr(self, name) for name in ("size", "paid", "worth", "gain")}
        plain = {name: cell and cell.plain() for name, cell in cells.items()}
        return vars(self) | plain | {"answers": [cell.plain() for cell in self.answers]}


def impulse_responses(games: Sequence[RecordedGame]) -> list[ImpulseResponse]:
    """Return the answers to all prices that were forced in a run of such branches."""
    states: dict[_State, dict[int, _PricePath]] = {}  # by price in ticks
    recorded, rooms = dict[_State, int](), {}
    for game in games:
        point, room = game.planned.get("branch"), game_rooms.part(game.name, "collusion")
        done = list(game.done)
        if not point or room is None or len(point["moves"]) != 1 or not done:
            continue
        [(seat, price)] = point["moves"].items()
        decision = point["label"], point["number"], point["step"], int(seat)
        state = _State(tuple(game.seats), *decision)
        states.setdefault(state, {})[price] = _price_path(game, room, int(seat))
        recorded[state] = point["recorded"][seat]["move"]
        rooms[point["label"]] = room
    grouped: dict[_Group, dict[int, list[_Pair]]] = {}
    for state, branches in states.items():
        free = branches.get(recorded[state])
        rivals = tuple(name for i, name in enumerate(state.players) if i != state.seat)
        for price, forced in branches.items():
            if free is not None and price != recorded[state]:
                probe = "cut" if price < recorded[state] else "raise"
                group = state.label, state.players[state.seat], rivals, probe
                of_episode = grouped.setdefault(group, {}).setdefault(state.number, [])
                of_episode.append((free, forced))
    return [
        _response(group, [*pairs.values()], rooms[group[0]]) for group, pairs in grouped.items()
    ]


def _price_path(game: RecordedGame, room: Any, seat: int) -> _PricePath:
    rules, paths = game.rules, []
    for episode in game.done:
        records = episode.records[episode.before :]
        prices = np.array([record["prices"] for record in records]) / rules.unit
        profits = np.array([record["profits"] for record in records], np.float64)
        rivals = np.delete(prices, seat, axis=1).mean(axis=1)
        gain = float(room.profit_gain(rules, profits.mean()))
        paths.append((prices[:, seat], rivals, profits[:, seat], gain))
    prices, rivals, profits, gain = (np.mean(part, axis=0) for part in zip(*paths, strict=True))
    return _PricePath(prices, rivals, profits, float(gain))


def _response(group: _Group, episodes: Sequence[Sequence[_Pair]], room: Any) -> ImpulseResponse:
    rounds = min(path.rounds for pairs in episodes for pair in pairs for path in pair)
    weight = room.DISCOUNT ** np.arange(rounds)

    def over_episodes(
        value: Callable[[_PricePath, _PricePath], Any], ends: Ends = FREE
    ) -> MeanCell:
        cell = estimated([float(np.mean([value(*p) for p in pairs])) for pairs in episodes], ends)
        assert cell is not None
        return cell

    def answer(lag: int) -> MeanCell:
        return over_episodes(lambda free, forced: forced.rival_prices[lag] - free.rival_prices[lag])

    def worth(free: _PricePath, forced: _PricePath) -> float:
        return float(weight @ (forced.profits - free.profits)[:rounds])

    gain = over_episodes(lambda free, _: free.gain)
    return ImpulseResponse(
        *group,
        size=over_episodes(lambda free, forced: forced.prices[0] - free.prices[0]),
        answers=[answer(lag) for lag in range(1, rounds)],
        paid=over_episodes(lambda free, forced: worth(free, forced) > 0, SHARE),
        worth=over_episodes(worth),
        gain=None if np.isnan(gain.mean) else gain,
        rounds=rounds,
    )


def response_table(responses: Sequence[ImpulseResponse]) -> ResultTable:
    shown = min(SHOWN, max((len(of.answers) for of in responses), default=0))
    several = len({response.game for response in responses}) > 1
    heads = columns("game, " * several + "forced, rivals, price", "by", ".2f")
    heads |= {f"+{lag + 1}": ".2f" for lag in range(shown)}
    heads |= {"paid %": ".0f", "worth": ".1f", "profit gain": ".2f", "episodes": ">"}
    rows = [[response.game] * several + [*_row(response, shown)] for response in responses]
    note = (
        "+1, +2 ...: rivals' mean price so many rounds later, less what it is without force; paid "
        "%: of the episodes; worth: what it brings over the rounds that are left, discounted; "
        "profit gain: without force, 0 the equilibrium's and 1 the cartel's"
    )
    return ResultTable(heads, rows, note=note)


def _row(response: ImpulseResponse, shown: int) -> Iterator[Any]:
    rivals = ", ".join(dict.fromkeys(response.rivals))
    yield from (response.player, rivals, response.probe, response.size.mean)
    answers = [cell.mean for cell in response.answers[:shown]]
    yield from (*answers, *[None] * (shown - len(answers)))
    yield from (100 * response.paid.mean, response.worth, response.gain, response.paid.runs)
