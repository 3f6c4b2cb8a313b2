"""Stable-Baselines3 and sb3-contrib: their vector environment over ours, players they trained."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize

from llm_games.errors import BadParameter
from llm_games.named import name_of, named
from llm_games.wrappers.learned import LearnedPolicy, Trained

PLAYER = "player.json"
"""What a player was trained for, in the file that Stable-Baselines3 saves its model to."""
FORMAT = 1


def save_player(model: BaseAlgorithm, env: Any, path: str | Path) -> Path:
    """Save a model as a player that ``sb3:PATH`` seats at any table of its game.

    The file is Stable-Baselines3's own (``PPO.load`` reads it too), and says beside the model what
    `env` trained it for: the game and its parameters, columns, actions, scales and `VecNormalize`.

    Args:
        model: what was trained.
        env: where, with its wrappers: a `SingleAgentEnv`, `SB3VecEnv` or vectors of them.
        path: a file; without an ending it gets ``.zip``.

    Returns:
        The file.

    Raises:
        BadParameter: the model sees or does something else than `env` has.
    """
    path = Path(path) if Path(path).suffix else Path(path).with_suffix(".zip")
    game = _of(env, "game")
    trained = Trained(
        game.name,
        game.players,
        game.edition,
        tuple(game.column_index),
        _of(env, "actions"),
        _of(env, "normalize"),
        _spread(env),
    )
    LearnedPolicy(model, trained=trained).start(game, 0, 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    model.save(path)
    about = {
        "format": FORMAT,
        "algorithm": name_of(type(model)),
        "trained": asdict(trained),
        "parameters": game.__getstate__(),
    }
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(PLAYER, json.dumps(about, default=_plain, indent=1))
    return path


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else str(value)


def _of(env: Any, name: str) -> Any:
    """Return an attribute of an environment below its wrappers."""
    try:
        if isinstance(env, VecEnv):
            return env.get_attr(name)[0]
        return env.get_wrapper_attr(name)
    except AttributeError:
        raise BadParameter(f"{env} is no environment of a game: it has no {name}") from None


def _spread(env: Any) -> dict[str, tuple[Any, Any, float]] | None:
    """Return by which means and deviations `VecNormalize` scaled each part of what was seen."""
    found: VecNormalize | None = unwrap_vec_normalize(env) if isinstance(env, VecEnv) else None
    if found is None or not found.norm_obs:
        return None
    parts: Mapping[str, Any] = (
        found.obs_rms if isinstance(found.obs_rms, dict) else {"": found.obs_rms}
    )
    return {
        part: (rms.mean, np.sqrt(rms.var + found.epsilon), found.clip_obs)
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
            about = json.loads(file.read(PLAYER))
    except FileNotFoundError:
        raise BadParameter(f"player {name!r}: there is no file {path.absolute()}") from None
    except KeyError:
        fault = f"has no {PLAYER}: save it by llm_games.wrappers.sb3.save_player(model, env, path)"
        raise BadParameter(f"player {name!r}: the file {fault}") from None
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise BadParameter(f"player {name!r}: {path} cannot be read: {error}") from None
    if about["format"] > FORMAT:
        package = about["trained"]["package"]
        raise BadParameter(
            f"player {name!r} was saved by llm-games {package}: install that, or later"
        )
    try:
        model = named(about["algorithm"], "algorithm").load(path, device="cpu")
    except Exception as error:  # whatever its pickles, shapes and versions come to
        fault = f"its model cannot be loaded: {type(error).__name__}: {error}"
        raise BadParameter(f"player {name!r}: {fault}") from error
    said = about["trained"]
    spread = said["spread"] and {
        part: (np.array(mean), np.array(deviation), most)
        for part, (mean, deviation, most) in said["spread"].items()
    }
    trained = Trained(**{**said, "columns": tuple(said["columns"]), "spread": spread})
    return LearnedPolicy(model, trained=trained, deterministic=deterministic, name=name)
