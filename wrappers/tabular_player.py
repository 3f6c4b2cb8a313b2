"""Players that look their moves up in a table: ``tabular:PATH``.

A table is of one small game with its parameters: the probability of each move in each information
set. The file is NumPy's ``.npz`` with ``player.json`` beside the arrays; nothing in it can run.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from llm_games.arrays import Array
from llm_games.codecs import Codec
from llm_games.errors import BadParameter
from llm_games.files import DAMAGED, check_unpacked, write_whole
from llm_games.noise import Noise
from llm_games.normalisation import Scale
from llm_games.questions import Shares
from llm_games.rulebook import Rulebook
from llm_games.view import Sight, View
from llm_games.wrappers.learned import LearnedPolicy, Trained
from llm_games.wrappers.policy import Decided, Decision, Policy

PLAYER = "player.json"
FORMAT = 1
UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)
RECALLED = 1e-3  # how far off, in scaled numbers, another past of the seat is


class InformationSets(NamedTuple):
    """Information sets, and their moves one set after another, the rows.

    A set is a `seat` ``(sets,)``, the row that it took `before`, -1 if none, and what is `seen`
    now, float32 ``(sets, columns)``; its rows are from ``first[set]`` to ``first[set + 1]``.
    `moves` are actions, ``(rows, 1)``, or whole plans, ``(rows, players)``, with votes among them.
    """

    seat: Array
    before: Array
    seen: Array
    first: Array
    moves: Array

    def check(self) -> None:
        sets, rows = len(self.seat), len(self.moves)
        whole = [self.seat, self.before, self.first, self.moves]
        if any(part.dtype.kind != "i" for part in whole) or self.seen.dtype.kind != "f":
            raise ValueError("sets and moves must be integers, what is seen floats")
        if any(part.shape != (sets,) for part in (self.seat, self.before)) or not sets:
            raise ValueError("there must be a seat and a row before for each set")
        if self.moves.ndim != 2 or self.seen.ndim != 2 or len(self.seen) != sets:
            raise ValueError("moves and what is seen must be tables")
        if self.first.shape != (sets + 1,) or (self.first[[0, -1]] != [0, rows]).any():
            raise ValueError("first must lead from row 0 to the last")
        if (np.diff(self.first) < 1).any() or (self.before < -1).any():
            raise ValueError("each set must have a row, and follow one or none")

    def of(self, seat: int, chances: Array) -> tuple[InformationSets, Array]:
        """Return the sets and rows of one seat alone, and its part of the `chances`."""
        mask, counts = self.seat == seat, np.diff(self.first)
        mine = np.repeat(mask, counts)
        new_rows, past = np.cumsum(mine) - 1, self.before[mask]
        past = np.where(past < 0, -1, new_rows[past])
        first = np.append(0, np.cumsum(counts[mask]))
        seat_rows = InformationSets(self.seat[mask], past, self.seen[mask], first, self.moves[mine])
        return seat_rows, chances[mine]


def keys_of(seat: Any, past: Array, obs: Array) -> Array:
    """Return a scalar of bytes for each information set, ``(sets,)``; equal for equal sets."""
    seats = np.broadcast_to(seat, past.shape)
    whole = np.column_stack([seats, past, obs])
    whole = np.ascontiguousarray(whole, np.float64) + 0.0  # no -0
    return whole.view(np.dtype((np.void, whole.shape[1] * whole.itemsize))).ravel()


class TableMemory(NamedTuple):
    """A seat's seed, count of decisions and last row; in a batch int64 ``(players, tables)``."""

    seed: Any
    decided: Any = 0
    last: Any = -1


class TabularPolicy(Policy):
    """Draws moves as a table has them, by the seat's own chance.

    Where others did what the table does not know, the nearest set of the seat stands for the one
    that it is in. `chances` ``(rows,)`` are the rows' within their sets, `parameters` the game's
    by `parameters_of`; with `deterministic` always the likeliest move.
    """

    def __init__(
        self,
        rows: InformationSets,
        chances: Array,
        trained: Trained,
        parameters: Mapping[str, Any],
        *,
        deterministic: bool = False,
        name: str = "tabular",
    ) -> None:
        self.rows, self.chances, self.name = rows, np.asarray(chances, np.float64), name
        self.trained, self.parameters = trained, dict(parameters)
        self.deterministic = deterministic
        rows.check()
        if self.chances.shape != rows.moves.shape[:1]:
            raise ValueError("there must be a chance for each row")
        if not np.isin(rows.seat, range(trained.players)).all():
            raise ValueError("seats must be those of the game")
        fine = np.isfinite(self.chances) & (self.chances >= 0)
        sums = np.add.reduceat(np.where(fine, self.chances, 0), rows.first[:-1])
        if not fine.all() or not np.allclose(sums, 1):
            raise BadParameter(f"{name}: the chances of a set's moves must add up to 1; train anew")
        if deterministic:
            self.chances = likeliest(self.chances, rows.first)
        self._upto = np.cumsum(self.chances)

    @cached_property
    def _sets_by_key(self) -> dict[bytes, int]:
        keys = keys_of(self.rows.seat, self.rows.before, self.rows.seen)
        return {key.tobytes(): index for index, key in enumerate(keys)}

    def check(self, game: Rulebook) -> None:
        check_game(self.name, self.trained, self.parameters, game)
        if self.rows.seen.shape[1] != len(game.column_index):
            raise BadParameter(f"{self.name} is of other observations of {game.name}; save it anew")
        low, high = game.bounds()
        moves, declined = self.rows.moves, 0 if game.decline is None else game.decline
        if (((moves < low) | (moves > high)) & (moves != declined)).any():
            raise BadParameter(f"{self.name} has moves that {game.name} has not; save it anew")

    def start(self, game: Rulebook, seat: int, seed: int) -> TableMemory:
        self.check(game)
        return TableMemory(seed)

    def act(self, view: View, memory: TableMemory) -> tuple[Decision, TableMemory]:
        seed, decided, last = (np.array([part]) for part in memory)
        numbers = np.asarray(view.numbers)[None]
        row = int(self._drawn(view.game, np.array([view.seat]), numbers, last, seed, decided)[0])
        next_memory = TableMemory(memory.seed, memory.decided + 1, row)
        move = self.rows.moves[row]
        if isinstance(view.question, Shares):
            return Decision(tuple(move.tolist())), next_memory
        seat_move = int(move[view.seat if len(move) > 1 else 0])
        return Decision(int(_legal(view.sight, view.seat, seat_move))), next_memory

    def start_batch(
        self, game: Rulebook, mask: Array, seeds: Array, memory: TableMemory | None = None
    ) -> TableMemory:
        if memory is None:
            self.check(game)
            memory = TableMemory(seeds, np.zeros_like(seeds), np.full_like(seeds, -1))
        decided, last = np.where(mask, 0, memory.decided), np.where(mask, -1, memory.last)
        return TableMemory(np.where(mask, seeds, memory.seed), decided, last)

    async def decide_batch(
        self, sight: Sight, mask: Array, memory: TableMemory
    ) -> tuple[Decided, TableMemory]:
        cells = seats, tables = np.nonzero(mask)
        seeds, decided, last = (part[cells] for part in memory)
        rows = self._drawn(sight.game, seats, sight.numbers[cells], last, seeds, decided)
        moves, actions = self.rows.moves[rows], np.zeros(mask.shape, np.int64)
        if moves.shape[1] > 1:  # plans fill their columns, votes stand among zeros
            np.add.at(actions.T, tables, moves)
        else:
            actions[cells] = moves[:, 0]
            actions[cells] = _legal(sight, cells, actions[cells])
        next_memory = TableMemory(memory.seed, memory.decided + mask, memory.last.copy())
        next_memory.last[cells] = rows
        return Decided(actions), next_memory

    def _drawn(
        self, game: Rulebook, seats: Array, obs: Array, last: Array, seeds: Array, decided: Array
    ) -> Array:
        keys = keys_of(seats, last, obs)
        sets = np.array([self._sets_by_key.get(key.tobytes(), -1) for key in keys], np.int64)
        for index in np.flatnonzero(sets < 0).tolist():
            sets[index] = self._nearest(game, int(seats[index]), int(last[index]), obs[index])
            self._sets_by_key[keys[index].tobytes()] = int(sets[index])
        first, stop = self.rows.first[sets], self.rows.first[sets + 1]
        luck = Noise(seeds.astype(np.uint64)).of(decided).random()
        begun = np.where(first > 0, self._upto[first - 1], 0.0)
        rows = np.searchsorted(self._upto, begun + luck * (self._upto[stop - 1] - begun), "right")
        return np.clip(rows, first, stop - 1)

    def _nearest(self, game: Rulebook, seat: int, last: int, obs: Array) -> int:
        """Return a seat's set with the nearest numbers, if any with its own past, else raise."""
        sets = np.flatnonzero(self.rows.seat == seat)
        if not len(sets):
            raise BadParameter(f"{self.name} has no moves for {game.names()[seat]}; solve it anew")
        scale = Scale(game.columns())
        far = np.abs(scale(self.rows.seen[sets]) - scale(obs[None].astype(np.float32))).sum(axis=1)
        far = np.nan_to_num(far) + RECALLED * (self.rows.before[sets] != last)
        return int(sets[far.argmin()])


def _legal(sight: Sight, cells: Any, moves: Any) -> Any:
    """Return amounts within what is legal; of picks, those that are not are left to the rules."""
    if sight.game.picks:
        return moves
    low, high = (limit[cells] for limit in sight.legal)
    return np.clip(moves, low, high)


def likeliest(chances: Array, first: Array) -> Array:
    """Return the strategy that takes each set's likeliest row, of equal ones the first."""
    owner = np.repeat(np.arange(len(first) - 1), np.diff(first))
    best = chances >= np.maximum.reduceat(chances, first[:-1])[owner]
    upto = np.cumsum(best)
    return (best & (upto - (upto - best)[first[:-1]][owner] == 1)).astype(np.float64)


# -- files -----------------------------------------------------------------------------------------


def parameters_of(game: Rulebook) -> dict[str, Any]:
    """Return a game's parameters as plain values."""
    return dict(json.loads(json.dumps(game.core.__getstate__(), default=str)))


def check_game(name: str, trained: Trained, parameters: Mapping[str, Any], game: Rulebook) -> None:
    """Raise BadParameter if a game, or one of its parameters, is not what a table is of."""
    trained.check(name, game)
    for key, ours in parameters_of(game).items():
        if parameters.get(key) != ours:
            raise BadParameter(
                f"{name} is of {game.name} with {key}={parameters.get(key)}, not with {key}={ours};"
                " give the game the same parameters, or solve this one"
            )


def table_of(
    game: Rulebook, rows: InformationSets, chances: Array, name: str = "tabular"
) -> TabularPolicy:
    trained = Trained.of(game.core, "rules")
    return TabularPolicy(rows, chances, trained, parameters_of(game), name=name)


def save_table(player: TabularPolicy, path: str | Path) -> Path:
    """Save a table (``.npz``) as a player that ``tabular:PATH`` seats, or raise `DiskFull`."""
    arrays = {**player.rows._asdict(), "chances": player.chances}
    return save_arrays(path, "sets", player.trained, player.parameters, arrays)


def save_arrays(
    path: str | Path,
    kind: str,
    trained: Trained,
    parameters: Mapping[str, Any],
    arrays: Mapping[str, Array],
) -> Path:
    """Write arrays, and what they are of, to a file that is whole or not there."""
    path, content, named = Path(path), BytesIO(), dict[str, Any](arrays)
    path = path if path.suffix else path.with_suffix(".npz")
    np.savez_compressed(content, **named)
    about = {"format": FORMAT, "kind": kind, "trained": asdict(trained), "parameters": parameters}
    with zipfile.ZipFile(content, "a") as file:
        file.writestr(PLAYER, json.dumps(about, indent=1))
    return write_whole(path, content.getvalue())


def load_table(path: str | Path, *, deterministic: bool = False) -> Policy:
    """Return the player of a saved file; BadParameter if there is none, or of a later version."""
    path, name = Path(path), f"tabular:{path}"
    try:
        content = path.read_bytes()
        with zipfile.ZipFile(BytesIO(content)) as file:
            check_unpacked(file)
            about = json.loads(file.read(PLAYER))
            names = [part.removesuffix(".npy") for part in file.namelist() if part.endswith(".npy")]
        with np.load(BytesIO(content), allow_pickle=False) as file:
            arrays = {part: file[part] for part in names}
        later, trained_fields = about["format"] > FORMAT, about["trained"]
        package, kind, parameters = trained_fields["package"], about["kind"], about["parameters"]
        trained = Trained.read(trained_fields)
    except FileNotFoundError:
        raise BadParameter(f"player {name!r}: there is no file {path.absolute()}") from None
    except (*UNREADABLE, *DAMAGED) as error:
        fault = f"{path} is no table that save_table wrote: {type(error).__name__}: {error}"
        raise BadParameter(f"player {name!r}: {fault}") from None
    if later:
        fault = f"was saved by llm-games {package}: install that, or later"
        raise BadParameter(f"player {name!r} {fault}")
    try:
        if kind == "values":
            return ValuePolicy(QTable(**arrays), trained, parameters, name=name)
        how: Any = {"deterministic": deterministic, "name": name}
        chances = arrays.pop("chances")
        return TabularPolicy(InformationSets(**arrays), chances, trained, parameters, **how)
    except UNREADABLE as error:
        fault = f"its arrays cannot be read: {type(error).__name__}: {error}"
        raise BadParameter(f"player {name!r}: {fault}; save it again") from None


# -- tables of values ------------------------------------------------------------------------------


class QTable:
    """Action values by observation, as Q-learning has them; a model for `LearnedPolicy`.

    `columns` are indexes of the numbers that make a state, ``(columns,)``, `states` the known ones,
    float32 ``(states, columns)``, `values` of each action there, float64 ``(states, actions)``.
    """

    def __init__(self, columns: Array, states: Array, values: Array) -> None:
        self.columns, self.states, self.values = columns, states, values
        whole = columns.dtype.kind == "i" and columns.ndim == 1 and (columns >= 0).all()
        if not whole or states.shape != (len(values), len(columns)) or values.ndim != 2:
            raise ValueError("states must have a number for each column, and a row of values each")
        if not np.isfinite(values).all():
            raise ValueError("values must be finite numbers")
        keys = keys_of(0, np.zeros(len(states)), states)
        self.index_by_key = {key.tobytes(): index for index, key in enumerate(keys)}

    def indexes_of(self, obs: Array) -> Array:
        """Return the states of these observations, ``(rows,)``; -1 for unknown ones."""
        chosen = np.asarray(obs, np.float32)[:, self.columns]
        keys = keys_of(0, np.zeros(len(chosen)), chosen)
        return np.array([self.index_by_key.get(key.tobytes(), -1) for key in keys], np.int64)

    def add(self, obs: Array, value: float) -> Array:
        """Return the states of these observations; new ones begin with this value."""
        places = self.indexes_of(obs)
        new = np.asarray(obs, np.float32)[places < 0][:, self.columns]
        if len(new):
            new = np.unique(new, axis=0)
            for index, key in enumerate(keys_of(0, np.zeros(len(new)), new), len(self.states)):
                self.index_by_key[key.tobytes()] = index
            begun = np.full((len(new), self.values.shape[1]), value)
            self.states = np.concatenate([self.states, new])
            self.values = np.concatenate([self.values, begun])
            places = self.indexes_of(obs)
        return places

    def predict(
        self, obs: Any, deterministic: bool = True, action_masks: Array | None = None
    ) -> tuple[Array, None]:
        """Return the best action of each observation; the nearest state stands for a new one."""
        numbers = obs["observation"] if isinstance(obs, dict) else obs
        places = self.indexes_of(numbers)
        for row in np.flatnonzero(places < 0).tolist():
            chosen = np.asarray(numbers, np.float32)[row, self.columns]
            places[row] = np.abs(self.states - chosen).sum(axis=1).argmin()
        values = self.values[places]
        if action_masks is not None:
            values = np.where(action_masks, values, -np.inf)
        return values.argmax(axis=1), None

    def save(self, path: str | Path, game: Rulebook) -> Path:
        """Save it as a player that ``tabular:PATH`` seats; its actions are indexes."""
        trained = Trained.of(game.core)
        arrays = {"columns": self.columns, "states": self.states, "values": self.values}
        return save_arrays(path, "values", trained, parameters_of(game), arrays)


class ValuePolicy(LearnedPolicy):
    """Takes the best action by a table of values, at tables of its game and parameters."""

    model: QTable

    def __init__(
        self, model: QTable, trained: Trained, parameters: Mapping[str, Any], name: str
    ) -> None:
        super().__init__(model, trained=trained, name=name)
        self.parameters = dict(parameters)
        if not len(model.states) or model.columns.max(initial=0) >= len(trained.columns):
            raise ValueError("there must be a state, of columns that the game has")

    def _codec(self, game: Rulebook, seat: int, batch: tuple[int, ...] = ()) -> Codec:
        assert self.trained is not None
        check_game(self.name, self.trained, self.parameters, game)
        seat_codec = super()._codec(game, seat, batch)
        count, actions = self.model.values.shape[1], getattr(seat_codec.space, "n", 0)
        if count != actions:
            fault = f"values of {count} actions, and {game.name} has {actions}; train it anew"
            raise BadParameter(f"{self.name} has {fault}")
        return seat_codec
