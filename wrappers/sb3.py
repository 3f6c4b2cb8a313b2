"""Stable-Baselines3 and sb3-contrib: their vector environment over ours, players they trained."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from io import BytesIO
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize

from llm_games.errors import BadParameter
from llm_games.files import DAMAGED, check_unpacked, write_whole
from llm_games.import_names import name_of, named
from llm_games.rulebook import Rulebook
from llm_games.wrappers.learned import FORMAT, LearnedPolicy, Trained

_EVERY = np.ones((), np.bool_)
HANDED = {"final_obs", "final_info"}  # infos that are handed over by other names


class SB3VecEnv(VecEnv):
    """Copies of a game as Stable-Baselines3 and sb3-contrib take them: a `GameVectorEnv` as it is.

    Also the rows of a `TeamVectorEnv`, for one model in all seats. Its copies start again within
    the step, whatever `env` was made with; ``infos`` have what its own have, of a copy that ended
    the last of that episode, with ``terminal_observation`` and ``TimeLimit.truncated``. Masks for
    MaskablePPO come by ``env_method("action_masks")``.

    Raises:
        BadParameter: `env` is no vector environment of a game, or shows texts.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        base: Any = getattr(env, "unwrapped", None)
        ours = isinstance(getattr(base, "game", None), Rulebook)
        if not ours or not isinstance(env, VectorEnv):
            way = "make a GameVectorEnv, or TeamVectorEnv(...).rows()"
            raise BadParameter(f"SB3VecEnv takes copies of a game, not {env!r}: {way}")
        observed = base.single_observation_space
        if "text" in getattr(observed, "spaces", {}):
            raise BadParameter('Stable-Baselines3 takes no texts: make it with obs_mode="numeric"')
        self.env, self._base = env, base
        base.autoreset_mode = AutoresetMode.SAME_STEP
        base.metadata = {**base.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> Any:
        """Start all copies, of the seeds that were set before, or the next ones."""
        options = self._options[0] or None
        observation, infos = self.env.reset(seed=self._seeds[0], options=options)
        self.reset_infos = self._rows(infos)
        self._reset_seeds()
        self._reset_options()
        return observation

    def step_async(self, actions: Any) -> None:
        """Keep the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, Any, Any, list[dict[str, Any]]]:
        """Play the actions; raises as `GameVectorEnv.step` does."""
        observation, rewards, terminated, truncated, infos = self.env.step(self._actions)
        rows, done = self._rows(infos), terminated | truncated
        last = self._rows(infos["final_info"]) if "final_info" in infos else rows
        for copy in np.flatnonzero(done).tolist():
            ended = {"terminal_observation": infos["final_obs"][copy]}
            ended["TimeLimit.truncated"] = bool(truncated[copy] and not terminated[copy])
            self.reset_infos[copy], rows[copy] = rows[copy], last[copy] | ended
        return observation, rewards.astype(np.float32), done, rows

    def _rows(self, infos: Mapping[str, Any]) -> list[dict[str, Any]]:
        full, rest, count = {}, [], self.num_envs
        for name in infos.keys() - HANDED:
            of = infos.get(f"_{name}", _EVERY)
            if name.startswith("_"):
                continue
            if isinstance(infos[name], np.ndarray) and np.count_nonzero(of) == of.size:
                full[name] = infos[name].tolist()
            else:
                rest.append((name, np.flatnonzero(np.broadcast_to(of, count)).tolist()))
        columns = zip(*full.values(), strict=True)
        rows = [*map(dict, map(zip, repeat([*full]), columns))] or [{} for _ in range(count)]
        for name, copies in rest:
            for copy in copies:
                rows[copy][name] = _row({name: infos[name]}, copy)[name]
        return rows

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute, the same one of all copies."""
        return [getattr(self._base, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of all copies."""
        if indices is not None:
            raise BadParameter(f"{attr_name}: the copies are one environment; set it for all")
        setattr(self._base, attr_name, value)

    def env_method(
        self, method_name: str, *args: Any, indices: Any = None, **settings: Any
    ) -> list[Any]:
        """Call a method, and return each copy's part of an array that it gives, or else that."""
        answer = getattr(self._base, method_name)(*args, **settings)
        by_copy = isinstance(answer, np.ndarray) and answer.shape[:1] == (self.num_envs,)
        return [answer[copy] if by_copy else answer for copy in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Return that no copy is wrapped by itself; use `VecMonitor` and the like."""
        return [False for _ in self._get_indices(indices)]


def _row(infos: Mapping[str, Any], copy: int) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, value in infos.items():
        mask = infos.get(f"_{name}")
        if name.startswith("_") or not (mask is None or mask[copy]):
            continue
        entry = _row(value, copy) if isinstance(value, dict) else value[copy]
        row[name] = entry.item() if isinstance(entry, np.generic) else entry
    return row


PLAYER = "player.json"  #: what a player was trained for, in the file of Stable-Baselines3


def save_player(model: BaseAlgorithm, env: Any, path: str | Path) -> Path:
    """Save a model as a player that ``sb3:PATH`` seats at any table of its game.

    The file is Stable-Baselines3's own (``PPO.load`` reads it too), and says beside the model what
    `env` trained it for: the game and its parameters, columns, actions, scales and `VecNormalize`.

    Args:
        model: what was trained.
        env: where, with its wrappers: a `SingleAgentEnv`, `SB3VecEnv` or vectors of them.
        path: a file, which is returned; without an ending it gets ``.zip``.

    Raises:
        BadParameter: the model sees or does something else than `env` has.
        DiskFull: there is no room; a player that was saved there before stays.
    """
    path = Path(path) if Path(path).suffix else Path(path).with_suffix(".zip")
    if not isinstance(model, BaseAlgorithm):
        raise BadParameter(f"model must be one of Stable-Baselines3's, such as PPO, got {model!r}")
    game = _of(env, "game")
    trained = Trained.of(game, _of(env, "actions"), _of(env, "normalize"), spread_of(env))
    game = game if trained.speaks else game.core
    LearnedPolicy(model, trained=trained).start(game, 0, 0)
    content = BytesIO()
    model.save(content)
    with zipfile.ZipFile(content, "a") as file:
        file.writestr(PLAYER, trained.about(game, algorithm=name_of(type(model))))
    return write_whole(path, content.getvalue())


def _of(env: Any, name: str) -> Any:
    """Return an attribute of an environment below its wrappers."""
    try:
        if isinstance(env, VecEnv):
            return env.get_attr(name)[0]
        return env.get_wrapper_attr(name)
    except AttributeError:
        raise BadParameter(f"{env} is no environment of a game: it has no {name}") from None


def spread_of(env: Any) -> dict[str, tuple[Any, Any, float]] | None:
    """Return the means and deviations by which `VecNormalize` scaled each part of observations."""
    normalizer: VecNormalize | None = unwrap_vec_normalize(env) if isinstance(env, VecEnv) else None
    if normalizer is None or not normalizer.norm_obs:
        return None
    parts: Mapping[str, Any] = (
        normalizer.obs_rms if isinstance(normalizer.obs_rms, dict) else {"": normalizer.obs_rms}
    )
    return {
        part: (rms.mean, np.sqrt(rms.var + normalizer.epsilon), normalizer.clip_obs)
        for part, rms in parts.items()
    }


def load_player(path: str | Path, *, deterministic: bool = True) -> LearnedPolicy:
    """Return the player that `save_player` saved. A file can run code: load none of strangers.

    Raises:
        BadParameter: there is no such file, or it is no such player, or of a later version.
    """
    path, name = Path(path), f"sb3:{path}"
    try:
        with zipfile.ZipFile(path) as file:
            check_unpacked(file)
            about = json.loads(file.read(PLAYER))
    except FileNotFoundError:
        raise BadParameter(f"player {name!r}: there is no file {path.absolute()}") from None
    except KeyError:
        fault = f"has no {PLAYER}: save it by llm_games.wrappers.sb3.save_player(model, env, path)"
        raise BadParameter(f"player {name!r}: the file {fault}") from None
    except (ValueError, *DAMAGED) as error:
        raise BadParameter(f"player {name!r}: {path} cannot be read: {error}") from None
    try:
        algorithm, trained_fields = about["algorithm"], about["trained"]
        package, later = trained_fields["package"], about["format"] > FORMAT
        trained = None if later else Trained.read(trained_fields)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        fault = f"its {PLAYER} cannot be read: {type(error).__name__}: {error}"
        raise BadParameter(f"player {name!r}: {fault}; save it again") from None
    if later:
        raise BadParameter(
            f"player {name!r} was saved by llm-games {package}: install that, or later"
        )
    try:
        model = named(algorithm, "algorithm").load(path, device="cpu")
    except Exception as error:  # whatever its pickles, shapes and versions come to
        fault = f"its model cannot be loaded: {type(error).__name__}: {error}"
        raise BadParameter(f"player {name!r}: {fault}") from error
    return LearnedPolicy(model, trained=trained, deterministic=deterministic, name=name)
