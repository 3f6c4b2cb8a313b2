"""A trained model as a player, in any seats of any tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from llm_games.codecs import Codec, codec
from llm_games.errors import BadParameter, IllegalAction
from llm_games.noise import Noise
from llm_games.normalisation import Scale
from llm_games.rulebook import Array, Rulebook
from llm_games.version import __version__
from llm_games.view import Sight, View
from llm_games.wrappers.policy import Decided, Decision, Policy

FORMAT = 1  # of players' files


@dataclass(frozen=True)
class Trained:
    """The purpose of a trained player: game, number of players, observations and actions.

    `edition` is that of the game's rules, `columns` are the names of `Rulebook.columns`, `spread`
    has for each part of the observations ("" if they have none) the mean and deviation by which
    they were normalised, and the limit of the result. One that `speaks` learned to say symbols.
    """

    game: str
    players: int
    edition: int
    columns: tuple[str, ...]
    actions: str = "index"
    normalize: bool = False
    spread: Mapping[str, tuple[Array, Array, float]] | None = None
    package: str = __version__
    speaks: bool = False

    @classmethod
    def of(
        cls, game: Rulebook, actions: str = "index", normalize: bool = False, spread: Any = None
    ) -> Trained:
        """Return the purpose of a learner at tables of this game."""
        speaks = codec(game, 0, actions).speaks
        game = game if speaks else game.core
        names = tuple(game.column_index)
        return cls(
            game=game.name,
            players=game.players,
            edition=game.edition,
            columns=names,
            actions=actions,
            normalize=normalize,
            spread=spread,
            speaks=speaks,
        )

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Trained:
        """Read a dict of `asdict`; AttributeError, LookupError, TypeError, ValueError if not."""
        parts = fields["spread"] and {
            part: (np.array(mean, float), np.array(deviation, float), limit)
            for part, (mean, deviation, limit) in fields["spread"].items()
        }
        return cls(**{**fields, "columns": tuple(fields["columns"]), "spread": parts})

    def about(self, game: Rulebook, **extra: Any) -> str:
        """Return it, the game's parameters and what is extra as the JSON of a player's file."""
        parameters, extra = game.core.__getstate__(), {"format": FORMAT, **extra}
        whole = {**extra, "trained": asdict(self), "parameters": parameters}
        return json.dumps(whole, default=_plain, indent=1)

    def check(self, name: str, game: Rulebook) -> None:
        """Raise BadParameter if the player was not trained for tables of this game."""
        if (self.game, self.players) != (game.name, game.players):
            ours, theirs = f"{game.name} with {game.players}", f"{self.game} with {self.players}"
            fault, out = f"{theirs} players, not for {ours}", "seat it in its own game"
        elif self.edition != game.edition:
            fault = f"edition {self.edition} of {game.name}'s rules, which are now {game.edition}"
            out = f"train it again, or play it with llm-games {self.package}"
        elif self.columns != (names := tuple(game.column_index)):
            new, gone = sorted({*names} - {*self.columns}), sorted({*self.columns} - {*names})
            extra = f"here are {new} more, and {gone} are missing"
            fault = f"other observations of {game.name}: {extra}"
            out = "give the game the parameters that it was trained with"
        else:
            return
        raise BadParameter(f"{name} was trained for {fault}; {out}")


class NetworkMemory(NamedTuple):
    """A learned player's memory: its seed, how often it decided, and its network's state."""

    codec: Codec
    scale: Scale | None
    seed: int
    decided: int = 0
    state: Any = None


class NetworkMemories(NamedTuple):
    """The same of many seats and tables, int64 ``(players, tables)``.

    `state` are arrays ``(layers, players, tables, ...)``, once a recurrent network has given some.
    """

    scale: Scale | None
    seeds: Array
    decided: Array
    state: tuple[Array, ...] | None = None

    def of(self, cells: tuple[Any, ...]) -> tuple[Array, ...] | None:
        """Return the network's state in these cells, ``(layers, cells, ...)`` each."""
        return self.state and tuple(value[(slice(None), *cells)] for value in self.state)

    def updated(self, cells: tuple[Any, ...], state: tuple[Array, ...] | None) -> NetworkMemories:
        """Return the memory after these cells decided and have this state."""
        decided, states = self.decided.copy(), self.state
        decided[cells] += 1
        if state is not None:
            shape = self.seeds.shape
            states = states or tuple(np.zeros((len(v), *shape, *v.shape[2:])) for v in state)
            states = tuple(value.copy() for value in states)
            for value, new_value in zip(states, state, strict=True):
                value[(slice(None), *cells)] = new_value
        return self._replace(decided=decided, state=states)


class LearnedPolicy(Policy):
    """Plays what a model trained in `SingleAgentEnv` or `GameVectorEnv` (numeric mode) predicts.

    Args:
        model: a Stable-Baselines3 model, or anything with such a `predict`, of many observations at
            once: recurrent ones get their state back, those that take ``action_masks`` get them.
        deterministic: take the likeliest action; else one is drawn by the seat's own chance, where
            the model's policy has a distribution (PPO and the like), or by `predict` itself.
        actions, normalize: what it was trained with, see `llm_games.make`.
        speaks: it was trained to say symbols where there is talk; else it plays the game inside.
        trained: what else it was trained for and is checked against, as `save_player` notes it; its
            `actions`, `normalize` and `speaks` come first.
        name: the player's name in logs.

    Raises:
        BadParameter: weights are not finite, or at `start`: it was trained for something else.
    """

    def __init__(
        self,
        model: Any,
        *,
        deterministic: bool = True,
        actions: str = "index",
        normalize: bool = False,
        speaks: bool = False,
        trained: Trained | None = None,
        name: str = "ppo",
    ) -> None:
        self.model, self.deterministic, self.name = model, deterministic, name
        self.trained = trained
        self.actions = actions if trained is None else trained.actions
        self.normalize = normalize if trained is None else trained.normalize
        self.speaks = speaks if trained is None else trained.speaks
        self.spread = {} if trained is None else trained.spread or {}
        self.masks = "action_masks" in signature(model.predict).parameters
        space = getattr(model, "observation_space", None)
        self._parts = getattr(space, "spaces", None)  # of what it sees; None: the numbers alone
        network: Any = getattr(model, "policy", None)
        weights = network.state_dict() if hasattr(network, "state_dict") else {}
        if broken := [key for key, value in weights.items() if not value.isfinite().all()]:
            fault = f"has weights that are no numbers: {broken[0]}; train it anew"
            raise BadParameter(f"{name} {fault}")

    def start(self, game: Rulebook, seat: int, seed: int) -> NetworkMemory:
        """Return the memory at the start; a BadParameter: it was trained for something else."""
        return NetworkMemory(self._codec(game, seat), self._scale(game), seed)

    def _scale(self, game: Rulebook) -> Scale | None:
        return Scale(game.columns()) if self.normalize else None

    def _codec(self, game: Rulebook, seat: int, batch: tuple[int, ...] = ()) -> Codec:
        if self.trained is not None:
            self.trained.check(self.name, game)
        own, columns = codec(game, seat, self.actions, batch=batch), (len(game.column_index),)
        inputs: Any = getattr(self.model, "observation_space", None)
        acts: Any = getattr(self.model, "action_space", None)
        inputs = (self._parts or {}).get("observation", inputs)
        if (inputs and inputs.shape != columns) or (acts and acts != own.space):
            raise BadParameter(
                f"{self.name} was trained for actions {acts} and observations {inputs.shape}, but "
                f"{game.name} has {own.space} and {columns} with actions={self.actions!r}: seat it "
                f"in its own game with as many players, and give LearnedPolicy its actions"
            )
        return own

    def act(self, view: View, memory: NetworkMemory) -> tuple[Decision, NetworkMemory]:
        """Predict from the numbers of the view, until the move is whole."""
        seat_codec, scale, seed, decided, state = memory
        seat_codec.begin()
        move, part_index = None, 0
        while move is None:
            noise = Noise(np.array([seed])).of(decided, part_index)
            mask = seat_codec.mask(view)[None] if self._masked(seat_codec) else None
            first = np.array([decided + part_index == 0])
            numbers = _scaled(scale, seat_codec.shown(view.numbers.copy())[None])
            (action,), state = self._predict(numbers, mask, state, first, noise)
            move, part_index = seat_codec.take(view, action), part_index + 1
        return Decision(move), NetworkMemory(seat_codec, scale, seed, decided + 1, state)

    def start_batch(
        self, game: Rulebook, mask: Array, seeds: Array, memory: NetworkMemories | None = None
    ) -> NetworkMemories:
        """Return the memory of a batch in which these cells begin; raises as `start` does."""
        if memory is None:
            self._codec(game, 0)
            memory = NetworkMemories(self._scale(game), seeds, np.zeros_like(seeds))
        seeds, decided = np.where(mask, seeds, memory.seeds), np.where(mask, 0, memory.decided)
        return memory._replace(seeds=seeds, decided=decided)

    async def decide_batch(
        self, sight: Sight, mask: Array, memory: NetworkMemories
    ) -> tuple[Decided, NetworkMemories]:
        """Predict for all cells at once, until all moves are whole."""
        cells = seats, tables = np.nonzero(mask)
        seeds, decided, state = memory.seeds[cells], memory.decided[cells], memory.of(cells)
        seat_codec = codec(sight.game, 0, self.actions, batch=seats.shape)
        view = sight.table(tables).view(seats)
        actions, unfinished, part = np.zeros(mask.shape, np.int64), np.ones(len(seats), np.bool_), 0
        while unfinished.any():
            rows = np.flatnonzero(unfinished)
            masks = seat_codec.masks(view)[rows] if self._masked(seat_codec) else None
            noise, first = Noise(seeds[rows]).of(decided[rows], part), decided[rows] + part == 0
            row_state = state and tuple(value[:, rows] for value in state)
            numbers = _scaled(memory.scale, seat_codec.shown(view.numbers.copy())[rows])
            predicted, later = self._predict(numbers, masks, row_state, first, noise)
            row_actions = np.zeros((len(seats), *predicted.shape[1:]), predicted.dtype)
            row_actions[rows] = predicted
            try:
                moves, whole = seat_codec.take_batch(view, row_actions, unfinished)
            except IllegalAction as error:
                bad_rows = [row for row in rows if not seat_codec.space.contains(row_actions[row])]
                if not bad_rows:
                    raise error
                seat, table = seats[bad_rows[0]], tables[bad_rows[0]]
                raise seat_codec.refuse(row_actions[bad_rows[0]].tolist(), seat, table) from None
            if moves.ndim > 1:  # columns of their tables
                np.add.at(actions.T, tables, moves.T)
            else:
                actions[cells] += moves
            if later is not None:
                state = state or tuple(np.zeros((len(v), len(seats), *v.shape[2:])) for v in later)
                for value, new in zip(state, later, strict=True):
                    value[:, rows] = new
            unfinished, part = unfinished & ~whole, part + 1
        return Decided(actions), memory.updated(cells, state)

    def _masked(self, seat_codec: Codec) -> bool:
        return hasattr(seat_codec.space, "n") and (self.masks or seat_codec.masked)

    def _observation(self, numbers: Array, masks: Array | None) -> Any:
        """Return the model's input as in training: rows of numbers, or parts with these."""
        if self._parts is None:
            return self._spread("", numbers)
        rows = {"observation": numbers, "action_mask": masks}
        return {part: self._spread(part, rows[part]) for part in self._parts}

    def _spread(self, part: str, rows: Array | None) -> Array:
        assert rows is not None, "a model that sees masks was trained with a masked codec"
        rows = rows.astype(np.float32)
        if part not in self.spread:
            return rows
        mean, deviation, limit = self.spread[part]
        return np.clip((rows - mean) / deviation, -limit, limit).astype(np.float32)

    def _predict(
        self, numbers: Array, masks: Array | None, state: Any, first: Array, noise: Noise
    ) -> tuple[Array, Any]:
        """Return actions of rows, and a recurrent network's state; `first` ones begin episodes."""
        inputs = self._observation(numbers, masks)
        extra: dict[str, Any] = {} if state is None else {"state": state, "episode_start": first}
        if self.masks and masks is not None:
            extra["action_masks"] = masks
        policy = getattr(self.model, "policy", None)
        draws = not self.deterministic and hasattr(policy, "get_distribution")
        sure = self.deterministic or draws
        actions, later = self.model.predict(inputs, deterministic=sure, **extra)
        if draws:
            actions = self._drawn(inputs, masks, later, extra, noise)
        if np.shape(actions)[:1] != (len(numbers),):
            fault = f"predicts actions of shape {np.shape(actions)} for {len(numbers)} observations"
            raise BadParameter(f"{self.name} {fault}; it must be one for each")
        return np.asarray(actions), later

    def _drawn(
        self, inputs: Any, masks: Array | None, later: Any, extra: Mapping[str, Any], noise: Noise
    ) -> Array:
        """Draw from the policy's distribution, by the seats' own chance."""
        import torch

        policy: Any = self.model.policy
        arguments = [policy.obs_to_tensor(inputs)[0]]
        if later is not None:
            states = extra.get("state", [np.zeros_like(part) for part in later])
            starts = extra.get("episode_start", np.ones(noise.batch))
            arguments += [
                tuple(torch.tensor(part).float() for part in states),
                torch.tensor(starts).float(),
            ]
        elif self.masks:
            arguments.append(masks)
        with torch.no_grad():
            chances = policy.get_distribution(*arguments)
            likely = (chances[0] if isinstance(chances, tuple) else chances).distribution
        if hasattr(likely, "probs"):
            return noise.choice(likely.probs.numpy())
        drawn = noise.normal(likely.mean.numpy().T, likely.stddev.numpy().T).T
        space = policy.action_space
        return np.clip(np.tanh(drawn) if policy.squash_output else drawn, space.low, space.high)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else str(value)


def _scaled(scale: Scale | None, numbers: Array) -> Array:
    return numbers if scale is None else scale(numbers)
