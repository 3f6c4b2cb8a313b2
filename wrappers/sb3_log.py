"""The cost of opponents that are language models, in Stable-Baselines3's training log."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from stable_baselines3.common.callbacks import BaseCallback

from llm_games.errors import BadParameter
from llm_games.files import write_whole
from llm_games.wrappers.clients.budget import Ledger
from llm_games.wrappers.clients.stack import booked, books_of, spent, tally
from llm_games.wrappers.player_mixture import PlayerMixture
from llm_games.wrappers.policy import Policy

_booked: WeakKeyDictionary[Ledger, set[Path]] = WeakKeyDictionary()
"""Books that hold what was spent by trainings that are saved in these folders."""


def _players(source: Any) -> Iterable[Policy]:
    """Return the opponents of an environment, in whatever wrappers it is, or policies."""
    while not hasattr(source, "opponents") and hasattr(source, "env"):
        source = source.env
    if hasattr(source, "envs"):  # copies one by one
        return [player for env in source.envs for player in _players(env)]
    source = getattr(source, "opponents", source)
    opponents = source.values() if isinstance(source, Mapping) else source
    opponents = [*opponents] if isinstance(opponents, Iterable) else [opponents]
    if not all(isinstance(player, Policy) for player in opponents):
        raise BadParameter(f"opponents must be an environment with some, or policies: got {source}")
    mixed = (p.players if isinstance(p, PlayerMixture) else [p] for p in opponents)
    return [player for players in mixed for player in players]


class OpponentLog(BaseCallback):
    """Logs hits, calls, tokens and money of the opponents, and saves a training that stops early.

    ``with OpponentLog(env, folder) as log: model.learn(steps, callback=log)``. If the block is left
    by an error, such as `BudgetExceeded`, the model, its replay buffer, the statistics of a
    VecNormalize and what was spent are saved in `folder`, and the error says so. Training goes on
    from there: ``PPO.load(log.model_file, env)``, then `learn` in such a block with what is
    left of the steps and ``reset_num_timesteps=False``; what was spent before then counts again.

    Args:
        opponents: an environment with `opponents`, or policies.
        folder: where it is saved; None: nowhere.
    """

    def __init__(self, opponents: Any, folder: str | Path | None = None) -> None:
        super().__init__()
        self.clients = [p.client for p in _players(opponents) if hasattr(p, "client")]
        self.folder = None if folder is None else Path(folder)

    @property
    def model_file(self) -> Path:
        assert self.folder is not None, "nothing is saved without a folder"
        return self.folder / "model.zip"

    def __enter__(self) -> OpponentLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is not None and self.folder is not None and hasattr(self, "model"):
            self.save()
            error.add_note(f"(saved after {self.num_timesteps} steps in {self.folder})")

    def save(self) -> None:
        folder, model, content = self.model_file.parent, self.model, BytesIO()
        model.save(content)
        write_whole(self.model_file, content.getvalue())
        if (buffer := getattr(model, "replay_buffer", None)) is not None:  # only some have one
            write_whole(folder / "replay_buffer.pkl", pickle.dumps(buffer))
        if (normalizer := model.get_vec_normalize_env()) is not None:
            write_whole(folder / "normalizer.pkl", pickle.dumps(normalizer))
        for ledger in books_of(self.clients):
            _booked.setdefault(ledger, set()).add(folder.absolute())
        write_whole(folder / "spent.json", json.dumps(spent(self.clients)).encode())

    def _on_training_start(self) -> None:
        """Book what was spent before the training was broken off."""
        file = self.folder and self.folder / "spent.json"
        if not file or not file.is_file() or not self.num_timesteps:
            return
        here = self.model_file.parent.absolute()
        ledgers_booked = [ledger for ledger, folders in _booked.items() if here in folders]
        booked(self.clients, json.loads(file.read_text("utf-8")), ledgers_booked)
        for ledger in books_of(self.clients):
            _booked.setdefault(ledger, set()).add(here)

    def _on_rollout_end(self) -> None:
        for name, value in tally(self.clients).items():
            self.logger.record(f"opponents/{name}", value)

    def _on_step(self) -> bool:
        return True
