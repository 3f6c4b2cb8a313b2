"""GRPO of a language model that answers in words in one seat (TRL's trainer).

The model is the embedded one, or a folder in Hugging Face layout; with --device cuda --vllm its
replies come from vLLM. Shao and others, DeepSeekMath, 2024, arXiv:2402.03300.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from llm_games.baselines.regret import regret
from llm_games.baselines.tiny.chat_template import GROWING
from llm_games.baselines.tiny.runtime import WEIGHTS
from llm_games.baselines.training.harness import (
    Evaluation,
    Options,
    Training,
    command,
    flag,
    option,
)
from llm_games.errors import BadParameter, LLMGamesError, install
from llm_games.facts import check_number
from llm_games.files import full
from llm_games.key_values import assigned
from llm_games.wrappers.clients.base import ClientError
from llm_games.wrappers.clients.stack import booked, spent, tally
from llm_games.wrappers.clients.transformers import TransformersClient, load, model_path
from llm_games.wrappers.grpo_rollout import WHOLE, GameRollout, games, score
from llm_games.wrappers.llm_policy import LLMPolicy

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
try:
    import torch
    from transformers import PrinterCallback, TrainerCallback
    from transformers.utils.logging import disable_progress_bar
    from trl import GRPOConfig, GRPOTrainer
except ModuleNotFoundError:
    raise BadParameter(f"this training needs packages: {install('trl')}") from None

APART = 10**6  # how far the first seeds of the games of two trainings are apart
DISTINCT = 10_000  # games after which a training begins again with the first
NO_ROOM = re.compile(r"os error (27|28|122)\b|No space left|File too large|file write failed")
"""What safetensors and torch say of a full disk."""


@dataclass(frozen=True, kw_only=True)
class GRPOOptions(Options):
    """Options of GRPO; `steps` are the samples that are learned from."""

    model: str = option("tiny", "MODEL", "tiny, a folder, or a name in the local cache")
    player: list[str] = option(
        [], "NAME=VALUE", "a setting of the learner: prompts=v2, reasoning=true"
    )
    credit: Literal["decision", "conversation"] = option("decision", "CREDIT", "what one sample is")
    reward: Literal["payoff", "regret"] = option(
        "payoff", "REWARD", "the payoff, or minus the regret"
    )
    discount: float = option(1.0, "X", "of later rewards", min=0, max=1)
    penalty: float = option(0.0, "X", "what a reply that is no move costs", min=0)
    steps: int = option(640, "N", "samples that are learned from", min=1)
    copies: int = option(32, "N", "samples of one update", min=2)
    group: int = option(8, "N", "samples that are compared with each other")
    rows: int = option(32, "N", "samples that the model takes at once", min=1)
    scale: Literal["group", "batch", "none"] = option(
        "batch", "OF", "by whose deviation scores are divided"
    )
    rate: float = option(5e-4, "X", "learning rate", min=0)
    beta: float = option(0.0, "X", "weight of the distance from the first model", min=0)
    entropy: float = option(0.0, "X", "weight of the entropy of replies", min=0)
    tokens: int = option(64, "N", "of a reply, at most", min=1)
    episodes: int = option(100, "N", "games that judge it, at both ends", min=1)
    device: Literal["cpu", "cuda"] = option("cpu", "DEVICE", "cpu or cuda")
    vllm: bool = flag("replies come from vLLM, on the same device")

    def check(self) -> None:
        """Raise BadParameter if batches are not whole groups, or a device or package is missing."""
        for name in ("rate", "beta", "entropy"):
            check_number(f"--{name}", getattr(self, name), 0)
        if self.device == "cuda" and not torch.cuda.is_available():
            raise BadParameter("--device cuda: no GPU is found here; use --device cpu")
        if self.vllm and self.device == "cpu":
            raise BadParameter("--vllm needs a GPU: --device cuda")
        if self.vllm and find_spec("vllm") is None:
            raise BadParameter("--vllm needs a package: pip install vllm")
        if self.group < 2:
            fault = "has nothing to be compared with: --group 2 or more"
            raise BadParameter(f"a group of {self.group} {fault}")
        rows = min(self.rows, self.copies)
        if self.copies % self.group or self.copies % rows:
            rule = f"must be whole groups of {self.group}, and whole parts of {rows} rows"
            raise BadParameter(f"--copies {self.copies} {rule}")


class GRPOCallback(TrainerCallback):
    """Reports the state of TRL's trainer to a `Training` after each update."""

    def __init__(self, run: Training, trainer: Any, options: GRPOOptions) -> None:
        self.run, self.trainer, self.options = run, trainer, options

    def on_train_begin(self, args: Any, state: Any, control: Any, **extra: Any) -> None:
        """Set how the state is saved, now that all that it holds exists."""
        self.run.saving = lambda: state_of(self.run, self.trainer)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **extra: Any) -> None:
        """Check and log an update, and save the model if it is time."""
        if "loss" not in logs:  # a summary of all
            return
        run = self.run
        run.advance(state.global_step * self.options.copies)
        run.check(loss=logs["loss"], gradient=logs["grad_norm"])
        for name, weights in extra["model"].named_parameters():
            if not torch.isfinite(weights).all():
                run.broke(name)
        taken = {"entropy", "reward", "reward_std", "frac_reward_zero_std", "loss", "grad_norm"}
        values = {f"train/{name}": logs[name] for name in taken & logs.keys()}
        games = (name for name in logs if name.startswith("game/"))
        values |= {name.replace("game", "train"): logs[name] for name in games}
        if run.clients:
            values |= {f"opponents/{name}": value for name, value in tally(run.clients).items()}
        run.log(**values)
        if run.due() or run.stopping:
            keep(run)
        if run.stopping:
            control.should_training_stop = True


def train(options: GRPOOptions) -> Evaluation:
    options.check()
    if options.device == "cpu":
        torch.set_num_threads(1)
    with Training("grpo", options) as run, warnings.catch_warnings():
        # Transformers renames what TRL calls by its old name.
        warnings.filterwarnings("ignore", ".*gradient_checkpointing", FutureWarning)
        disable_progress_bar()  # there is one already
        saved = None if run.state is None else _read_state(run)
        trainer = make(run, options)
        if saved is None:
            run.judge(learner(trainer, options))
        else:
            booked(run.clients, saved["spent"])
            run.go_on(saved["step"])
        try:
            trainer.train(resume_from_checkpoint=saved and str(run.folder / saved["checkpoint"]))
        except LLMGamesError:
            raise
        except Exception as error:
            if saved is not None and run.saving is None:
                run.sound = -1
                raise _unreadable(run) from error
            if "probability tensor" in str(error):
                run.broke("what the model finds likely")
            raise
        keep(run)
        model = run.folder / "model"
        _save_whole(run.folder, lambda: trainer.save_model(str(model)))
        trainer.processing_class.save_pretrained(model)
        return run.end(learner(trainer, options), f"transformers:{model}", games=options.episodes)


def make(run: Training, options: GRPOOptions) -> Any:
    table = run.table
    rollout = GameRollout(
        table.rules,
        seat=table.seat,
        opponents=table.opponents,
        credit=options.credit,
        regret=regret if options.reward == "regret" else None,
        discount=options.discount,
        penalty=options.penalty,
        player=assigned("--player", options.player, "prompts=v2"),
    )
    model, tokenizer = model_and_tokenizer(options)
    rows = min(options.rows, options.copies)
    on_cpu = options.device == "cpu"
    config = GRPOConfig(
        str(run.folder),
        max_steps=-(-options.steps // options.copies),
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=options.copies // rows,
        num_generations=options.group,
        max_completion_length=options.tokens,
        learning_rate=options.rate,
        lr_scheduler_type="constant",
        beta=options.beta,
        scale_rewards=options.scale,
        entropy_coef=options.entropy,
        shuffle_dataset=False,
        seed=options.seed,
        use_cpu=on_cpu,
        bf16=not on_cpu,
        gradient_checkpointing=not on_cpu,
        use_vllm=options.vllm,
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    trainer = GRPOTrainer(
        model,
        score,
        args=config,
        train_dataset=games(DISTINCT, APART * (options.seed + 1)),
        processing_class=tokenizer,
        rollout_func=rollout,
    )
    trainer.add_callback(GRPOCallback(run, trainer, options))
    trainer.remove_callback(PrinterCallback)
    return trainer


def model_and_tokenizer(options: GRPOOptions) -> tuple[Any, Any]:
    """Return the model and its tokenizer; BadParameter if there is no such model."""
    path = WEIGHTS if options.model == "tiny" else options.model
    dtype = "float32" if options.device == "cpu" else "bfloat16"
    try:
        model, tokenizer = load(model_path(path), options.device, dtype)
    except ClientError as error:
        what = "tiny, a folder in Hugging Face layout, or a name in the local cache"
        raise BadParameter(f"--model is {what}: {error}") from error
    if options.model == "tiny" and options.credit == "conversation":
        tokenizer.chat_template = GROWING
    return model, tokenizer


def learner(trainer: Any, options: GRPOOptions) -> LLMPolicy:
    trainer.model.eval()
    if trainer.model.is_activation_checkpointing:
        trainer.model.gradient_checkpointing_disable()  # else replies are noise
    client = TransformersClient.of(
        trainer.model, trainer.processing_class, max_batch=options.copies, max_tokens=options.tokens
    )
    whole = WHOLE if options.credit == "conversation" else {}
    settings = assigned("--player", options.player, "prompts=v2")
    return LLMPolicy(client, **{"max_attempts": 1, **settings, **whole})


def keep(run: Training) -> None:
    """Save the state, then remove earlier checkpoints."""
    run.keep()
    named = json.loads(run.file.read_bytes())["checkpoint"]
    for old in run.folder.glob("checkpoint-*"):
        if old.name != named:
            shutil.rmtree(old)


def state_of(run: Training, trainer: Any) -> bytes:
    """Write a checkpoint of the trainer, and return the state that names it."""
    update = trainer.state.global_step
    step, folder = update * run.options.copies, run.folder / f"checkpoint-{update}"
    if run.sound != step or not folder.exists():  # a whole one is never written over
        _save_whole(folder, lambda: trainer._save_checkpoint(trainer.model, None))
    contents = {"checkpoint": folder.name, "step": step, "spent": spent(run.clients)}
    return json.dumps(contents).encode()


def _read_state(run: Training) -> dict[str, Any]:
    """Return the contents of a state; BadParameter if its checkpoint is missing."""
    try:
        contents: dict[str, Any] = json.loads(run.state or b"")
        if {"checkpoint", "step", "spent"} <= contents.keys():
            (run.folder / contents["checkpoint"]).resolve(strict=True)
            return contents
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise _unreadable(run) from error
    raise _unreadable(run)


def _unreadable(run: Training) -> BadParameter:
    return BadParameter(
        f"what was kept in {run.folder} is not whole, and the training cannot go on from it: begin "
        "again in another --folder"
    )


def _save_whole(folder: Path, save: Any) -> None:
    """Save into a folder; on a full disk an incomplete one is removed and `DiskFull` raised."""
    try:
        save()
    except Exception as error:
        if isinstance(error, OSError):
            fault = full(error, folder.parent)
        elif NO_ROOM.search(str(error)):
            fault = full(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), folder.parent)
        else:
            raise
        shutil.rmtree(folder, ignore_errors=True)
        raise fault from error


if __name__ == "__main__":
    command(train, GRPOOptions)
