"""A learner of torch alone: a small actor and critic, and the file by which it is seated."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch
from gymnasium import spaces
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.distributions import Categorical, Distribution, Independent, Normal

from llm_games.arrays import Array
from llm_games.codecs import codec
from llm_games.env import Windows
from llm_games.errors import BadParameter
from llm_games.files import DAMAGED, write_whole
from llm_games.rulebook import Rulebook
from llm_games.wrappers.learned import FORMAT, LearnedPolicy, Trained
from llm_games.wrappers.player_mixture import BySeat
from llm_games.wrappers.policy import Policy

PLAYER = "player"  # what a player was trained for, among the metadata of the file
ILLEGAL = -1e9  # the logit of what a mask forbids


class ActorCritic(nn.Module):
    """An action distribution and a state value, by two separate networks of `hidden` layers.

    It sees the numbers of a view (`observed`, with a mask or not), and acts by index
    (`spaces.Discrete`, with masks) or by shares from -1 to 1 (`spaces.Box`, normal, cut at the
    ends); any other `space` is a BadParameter.
    """

    def __init__(
        self, obs: spaces.Space[Any], space: spaces.Space[Any], hidden: tuple[int, ...] = (64, 64)
    ) -> None:
        super().__init__()
        self.discrete = isinstance(space, spaces.Discrete)
        if not self.discrete and (not isinstance(space, spaces.Box) or space.dtype != np.float32):
            raise BadParameter(f'actions of {space} are not learned here: take "index" or "unit"')
        numbers: Any = obs["observation"] if isinstance(obs, spaces.Dict) else obs
        self.observation_space, self.action_space, self.hidden = numbers, space, tuple(hidden)
        columns, acts = numbers.shape[0], cast(Any, space)
        width = int(acts.n) if self.discrete else acts.shape[0]
        self.actor = _layers(columns, self.hidden, width, 0.01)
        self.critic = _layers(columns, self.hidden, 1, 1.0)
        if not self.discrete:
            self.log_deviation = nn.Parameter(torch.full((width,), -0.5))

    def chances(self, numbers: Tensor, masks: Tensor | None = None) -> Distribution:
        """Return the distribution of actions, for rows of numbers and masks."""
        outputs = self.actor(numbers)
        if not self.discrete:
            return Independent(Normal(outputs, self.log_deviation.exp().expand_as(outputs)), 1)
        outputs = outputs if masks is None else outputs.masked_fill(~masks, ILLEGAL)
        return Categorical(logits=outputs, validate_args=False)

    def worth(self, numbers: Tensor) -> Tensor:
        """Return the state values of rows of numbers."""
        return self.critic(numbers).squeeze(-1)

    @property
    def policy(self) -> ActorCritic:
        """Return itself, which has weights and a distribution."""
        return self

    squash_output = False

    def predict(
        self, observed: Any, *, deterministic: bool = True, action_masks: Array | None = None
    ) -> tuple[Array, None]:
        """Return the likeliest actions of rows of observations, or drawn ones; and no state."""
        with torch.no_grad():
            likely = self.chances(self.obs_to_tensor(observed)[0], _masks(action_masks))
            drawn = likely.mode if deterministic else likely.sample()
        actions: Array = drawn.numpy()
        return (actions if self.discrete else np.clip(actions, -1, 1)), None

    def obs_to_tensor(self, observed: Any) -> tuple[Tensor, bool]:
        """Return the numbers of observations, and whether they are many: they are."""
        return torch.as_tensor(np.asarray(observed, np.float32)), True

    def get_distribution(self, numbers: Tensor, masks: Array | None = None) -> SimpleNamespace:
        """Return `chances` in the form of Stable-Baselines3."""
        likely = self.chances(numbers, _masks(masks))
        return SimpleNamespace(distribution=likely)


def _layers(columns: int, hidden: tuple[int, ...], width: int, last_gain: float) -> nn.Sequential:
    """Return a network with orthogonal weights, of its last layer as large as `last`."""
    layers: list[nn.Module] = []
    for inside in hidden:
        layers += [_linear(columns, inside, 2**0.5), nn.Tanh()]
        columns = inside
    return nn.Sequential(*layers, _linear(columns, width, last_gain))


def _linear(inside: int, outside: int, gain: float) -> nn.Linear:
    layer = nn.Linear(inside, outside)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
    return layer


def _masks(masks: Array | None) -> Tensor | None:
    return None if masks is None else torch.as_tensor(np.asarray(masks, bool))


def network(
    game: Rulebook,
    actions: str = "index",
    normalize: bool = True,
    hidden: tuple[int, ...] = (64, 64),
) -> ActorCritic:
    """Return an untrained actor and critic for a game's learners; errors as of `ActorCritic`."""
    windows = Windows(game, "numeric", actions, normalize=normalize)
    return ActorCritic(windows.spaces[game.names()[0]], codec(game, 0, actions).space, hidden)


def save_network(
    model: ActorCritic | Sequence[ActorCritic],
    game: Rulebook,
    trained: Trained,
    path: str | Path,
    deterministic: bool = True,
) -> Path:
    """Save a network as a player that ``torch:PATH`` seats at any table of its game.

    The file is one of safetensors, and holds what it was trained for beside the weights.

    Args:
        model: what was trained; of several each plays the seat of its place.
        game: the rules, of which the file has the parameters.
        trained: what for, see `Trained.of`.
        path: a file, which is returned; without an ending it gets ``.safetensors``.
        deterministic: take the likeliest action; else it draws, as a mixed strategy does.

    Raises:
        BadParameter: weights are not finite, or it sees or does something else than `trained` says.
        DiskFull: there is no room for the file; one that was there stays.
    """
    path = Path(path) if Path(path).suffix else Path(path).with_suffix(".safetensors")
    models = [model] if isinstance(model, ActorCritic) else [*model]
    for seat_model in models:
        LearnedPolicy(seat_model, trained=trained, name=str(path)).start(game, 0, 0)
    about = trained.about(game, hidden=models[0].hidden, deterministic=deterministic)
    weights = {
        f"{seat}.{name}": value.detach().clone().contiguous()
        for seat, seat_model in enumerate(models)
        for name, value in seat_model.state_dict().items()
    }
    return write_whole(path, save(weights, {PLAYER: about}))


def load_network(path: str | Path, *, deterministic: bool | None = None) -> Policy:
    """Return the player that `save_network` saved, deterministic as it was or as is said.

    Raises:
        BadParameter: there is no such file, or it is no such player, or of a later version.
    """
    path, name = Path(path), f"torch:{path}"
    try:
        with safe_open(path, "pt") as file:
            about = json.loads((file.metadata() or {})[PLAYER])
            weights = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise BadParameter(f"player {name!r}: there is no file {path.absolute()}") from None
    except KeyError:
        fault = "says not what it was trained for: save it by save_network(model, game, ...)"
        raise BadParameter(f"player {name!r}: the file {fault}") from None
    except (ValueError, SafetensorError, *DAMAGED) as error:
        raise BadParameter(f"player {name!r}: {path} cannot be read: {error}") from None
    try:
        trained_fields, later = about["trained"], about["format"] > FORMAT
        package = trained_fields["package"]
        models = [] if later else _built(about, weights)
        sure = about["deterministic"] if deterministic is None else deterministic
        trained = Trained.read(trained_fields)
    except (AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
        fault = f"what it holds is no player: {type(error).__name__}: {error}"
        raise BadParameter(f"player {name!r}: {fault}; save it again") from None
    if later:
        raise BadParameter(
            f"player {name!r} was saved by llm-games {package}: install that, or later"
        )
    players = [LearnedPolicy(m, trained=trained, deterministic=sure, name=name) for m in models]
    return players[0] if len(players) == 1 else BySeat(players, name)


def _built(about: Mapping[str, Any], weights: Mapping[str, Tensor]) -> list[ActorCritic]:
    """Return the networks of a file, whose spaces are as wide as first and last layers."""
    parts: dict[int, dict[str, Tensor]] = {}
    for key, value in weights.items():
        seat, _, name = key.partition(".")
        parts.setdefault(int(seat), {})[name] = value
    return [_network(tuple(about["hidden"]), parts[seat]) for seat in range(len(parts))]


def _network(hidden: tuple[int, ...], weights: Mapping[str, Tensor]) -> ActorCritic:
    first, last = weights["actor.0.weight"], weights[f"actor.{2 * len(hidden)}.weight"]
    observed = spaces.Box(-np.inf, np.inf, (first.shape[1],), np.float64)
    width, shares = last.shape[0], "log_deviation" in weights
    acts: Any = spaces.Box(-1.0, 1.0, (width,), np.float32) if shares else spaces.Discrete(width)
    model = ActorCritic(observed, acts, hidden)
    model.load_state_dict(dict(weights))
    return model
