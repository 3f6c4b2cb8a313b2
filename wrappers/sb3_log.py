"""What opponents that are language models cost, in the training log of Stable-Baselines3."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from stable_baselines3.common.callbacks import BaseCallback

from llm_games.errors import BadParameter
from llm_games.wrappers.clients.budget import Ledger, Usage
from llm_games.wrappers.clients.stack import books_of, tally
from llm_games.wrappers.policy import Policy

_booked: WeakKeyDictionary[Ledger, set[Path]] = WeakKeyDictionary()
"""Books that hold what was spent by trainings that are saved in these folders."""


def _players(given: Any) -> Iterable[Policy]:
    """Return the opponents of an environment, in whatever wrappers it is, or policies."""
    while not hasattr(given, "opponents") and hasattr(given, "env"):
        given = given.env
    if hasattr(given, "envs"):  # copies one by one
        return [player for env in given.envs for player in _players(env)]
    given = getattr(given, "opponents", given)
    found = given.values() if isinstance(given, Mapping) else given
    found = [*found] if isinstance(found, Iterable) else [found]
    if not all(isinstance(player, Policy) for player in found):
        raise BadParameter(f"opponents must be an environment with some, or policies: got {given}")
    return found


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
        """Where the model is saved."""
        assert self.folder is not None, "nothing is saved without a folder"
        return self.folder / "model.zip"

    def __enter__(self) -> OpponentLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Save a training that was broken off."""
        if error is not None and self.folder is not None and hasattr(self, "model"):
            self.save()
            error.add_note(f"(saved after {self.num_timesteps} steps in {self.folder})")

    def save(self) -> None:
        """Save what training goes on from."""
        self.model_file.parent.mkdir(parents=True, exist_ok=True)
        folder = self.model_file.parent
        model: Any = self.model  # only some have a replay buffer
        model.save(self.model_file)
        if getattr(model, "replay_buffer", None) is not None:
            model.save_replay_buffer(folder / "replay_buffer.pkl")
        if (normalizer := model.get_vec_normalize_env()) is not None:
            normalizer.save(str(folder / "normalizer.pkl"))
        spent = []
        for ledger in books_of(self.clients):
            spent.append([(*pair, usage.plain()) for pair, usage in ledger.pairs.items()])
            _booked.setdefault(ledger, set()).add(folder.absolute())
        (folder / "spent.json").write_text(json.dumps(spent), "utf-8")

    def _on_training_start(self) -> None:
        """Book what was spent before the training was broken off."""
        file = self.folder and self.folder / "spent.json"
        if not file or not file.is_file() or not self.num_timesteps:
            return
        books, before = books_of(self.clients), json.loads(file.read_text("utf-8"))
        if len(books) != len(before):
            fault = f"has the books of {len(before)} budgets, and the opponents have {len(books)}"
            raise BadParameter(f"{file} {fault}: go on with those of before, or another folder")
        for ledger, spent in zip(books, before, strict=True):
            of = _booked.setdefault(ledger, set())
            new = self.model_file.parent.absolute() not in of
            of.add(self.model_file.parent.absolute())
            for model, seat, usage in spent if new else []:
                ledger.book(model, seat, Usage(**usage | {"money": Decimal(usage["money"])}))

    def _on_rollout_end(self) -> None:
        for name, value in tally(self.clients).items():
            self.logger.record(f"opponents/{name}", value)

    def _on_step(self) -> bool:
        return True
