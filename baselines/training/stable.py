"""Base of the scripts on Stable-Baselines3: options of models, and their training by `learn`."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, cast

import numpy as np
import torch
from gymnasium.spaces import Dict
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from llm_games.baselines.learner import learners
from llm_games.baselines.training.harness import (
    CODECS,
    Codec,
    Evaluation,
    Options,
    Training,
    flag,
    option,
)
from llm_games.errors import LLMGamesError
from llm_games.wrappers.clients.stack import booked, spent, tally
from llm_games.wrappers.learned import LearnedPolicy, Trained
from llm_games.wrappers.sb3 import SB3VecEnv, save_player, spread_of

TRAINED = 10**6  # first seed of a training of seed 0; those of two seeds are as far apart
WIDEST = 100.0  # deviations at which a scaled reward is cut
LEGACY: Any = np.random  # NumPy's one generator for all, which Stable-Baselines3 draws from
Grown = Callable[[Training[Any], BaseAlgorithm, VecEnv], Mapping[str, float]]
"""Is called whenever a model is judged, and returns what else is to be logged."""


@dataclass(frozen=True, kw_only=True)
class StableOptions(Options):
    """Options of models of Stable-Baselines3, and the model that they make."""

    actions: Codec = option("index", "CODEC", CODECS)
    rate: float = option(1e-3, "X", "learning rate at first; it falls to 0", min=0)
    gamma: float = option(0.99, "X", "discount of later rewards", min=0, max=1)
    width: int = option(64, "N", "units of both hidden layers", min=1)
    spread: bool = flag("scale what is seen by its deviation as it is found, too")

    def algorithm(self, env: VecEnv) -> type[BaseAlgorithm]:
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        """Return the algorithm's own settings; BadParameter if options do not go together."""
        raise NotImplementedError

    def network(self, env: VecEnv) -> tuple[str, dict[str, Any]]:
        """Return the policy's name, by the kind of observations, and its sizes."""
        policy = "MultiInputPolicy" if isinstance(env.observation_space, Dict) else "MlpPolicy"
        return policy, {"net_arch": [self.width, self.width]}

    def schedule(self) -> LinearSchedule:
        return LinearSchedule(self.rate, 0.0, 1.0)

    def model(self, env: VecEnv) -> BaseAlgorithm:
        (policy, sizes), kind = self.network(env), cast(Any, self.algorithm(env))
        return kind(
            policy,
            env,
            self.schedule(),
            policy_kwargs=sizes,
            seed=self.seed,
            gamma=self.gamma,
            device="cpu",
            **self.settings(),
        )


Run = Training[StableOptions]


class SB3Callback(BaseCallback):
    """Reports the model's state to a `Training` between rollouts, where the state is whole."""

    def __init__(self, run: Run, env: VecEnv, grown: Grown | None = None) -> None:
        super().__init__()
        self.run, self.env, self.stopped, self.grown = run, env, False, grown

    def _on_rollout_start(self) -> None:
        self.boundary()

    def boundary(self) -> None:
        """Evaluate and save the model if it is time, and set whether to stop."""
        run, model = self.run, self.model
        run.advance(model.num_timesteps)
        check(run, model)
        if hasattr(run.options, "entropy"):  # explore first, be sure at last
            remaining_share = max(0.0, 1 - run.step / run.options.steps)
            cast(Any, model).ent_coef = run.options.entropy * remaining_share
        if due := run.due():
            logged = model.logger.name_to_value
            values = {name: float(v) for name, v in logged.items() if name.startswith("train/")}
            if run.clients:
                values |= {f"opponents/{name}": v for name, v in tally(run.clients).items()}
            if self.grown:
                values |= self.grown(run, model, self.env)
            run.judge(player(model, self.env, run.method), **values)
        if due or run.stopping:
            run.keep()
            save_player(model, self.env, run.folder / "player.zip")
        self.stopped = run.stopping

    def _on_step(self) -> bool:
        return not self.stopped


def player(model: Any, env: VecEnv, name: str, *, sure: bool = True) -> LearnedPolicy:
    """Return a player of the model in its current state; if `sure`, with the likeliest actions."""
    game, actions = (env.get_attr(of)[0] for of in ("game", "actions"))
    trained = Trained.of(game, actions, True, spread_of(env))
    return LearnedPolicy(model, trained=trained, deterministic=sure, name=name)


def check(run: Run, model: BaseAlgorithm) -> None:
    """Raise TrainingBroke if the model's weights or logged values are not finite."""
    there = hasattr(model, "_logger")  # not in one that had ended before
    logged = model.logger.name_to_value.items() if there else ()
    run.check(**{name: v for name, v in logged if isinstance(v, float) and "variance" not in name})
    run.check(**{name: value.numpy() for name, value in model.policy.state_dict().items()})


def learn(
    method: str, options: StableOptions, opponents: Any = None, grown: Grown | None = None
) -> Evaluation:
    """Train a model and return its evaluation; raises as `Training` and `StableOptions.settings`.

    `opponents`, as `GameVectorEnv` takes them, play in the training; else those of the table.
    """
    options.settings()  # what does not go together leaves no folder
    torch.set_num_threads(1)
    with Training(method, options) as run:
        saved = None if run.state is None else run.read()
        env = environment(run, saved, opponents)
        if saved is None:
            model = options.model(env)
            env.seed(TRAINED * (options.seed + 1))
        else:
            model = restore_model(run, env, saved)
        run.saving = lambda: state(run, model, env)
        loop, remaining = SB3Callback(run, env, grown), options.steps - model.num_timesteps
        loop.init_callback(model)
        try:
            if remaining > 0:
                silent, anew = cast(int, None), saved is None  # its own log: values are in ours
                model.learn(remaining, loop, silent, reset_num_timesteps=anew)
        except (ValueError, LLMGamesError) as error:
            check(run, model)  # whatever was raised where weights were no numbers
            if "invalid values" in str(error):  # of a distribution of actions
                run.broke("what the policy finds likely")
            raise
        if not loop.stopped:
            loop.boundary()
        return run.end(player(model, env, method), f"sb3:{run.folder / 'player.zip'}")


def environment(run: Run, saved: dict[str, Any] | None, opponents: Any = None) -> VecEnv:
    """Return the copies of the table, with the games of a saved state if it has some.

    Rewards are divided by their running deviation, with `--spread` observations as well.
    """
    options, table = run.options, run.table
    games = learners(
        table.rules, options.copies, opponents=opponents or table.opponents, seat=table.seat,
        actions=options.actions, normalize=True,
    )  # fmt: skip
    if saved is not None:
        scaled: VecNormalize = saved["scaled"]
        scaled.set_venv(SB3VecEnv(saved["games"] or games))
        return scaled
    env = SB3VecEnv(games)
    keys = ["observation"] if options.spread and isinstance(env.observation_space, Dict) else None
    return VecNormalize(
        env, norm_obs=options.spread, norm_obs_keys=keys, clip_reward=WIDEST, gamma=options.gamma
    )


# -- a state from which the training goes on as if it had never stopped ----------------------------


def state(run: Run, model: BaseAlgorithm, env: VecEnv) -> bytes:
    """Return the pickled state; without games whose players ask models: these begin anew."""
    content, scaled = BytesIO(), env
    model.save(content)
    assert isinstance(scaled, VecNormalize)
    games = cast(SB3VecEnv, scaled.venv).env
    waits = any(policy.waits for policy in env.get_attr("opponents")[0])
    contents = {
        "model": content.getvalue(),
        "games": None if waits else games,
        "scaled": scaled,
        "returns": scaled.returns,
        "memories": getattr(model, "_last_lstm_states", None),
        "buffer": getattr(model, "replay_buffer", None),
        "spent": spent(run.clients),
        "chance": chance(model),
    }
    return pickle.dumps(contents)


def chance(model: BaseAlgorithm) -> tuple[Any, ...]:
    """Return the states of all random generators that a training draws from."""
    moves = model.action_space.np_random.bit_generator.state
    return random.getstate(), LEGACY.get_state(), torch.get_rng_state(), moves


def restore_model(run: Run, env: VecEnv, saved: dict[str, Any]) -> BaseAlgorithm:
    """Return the model of a state; restores chance and the clients' costs too."""
    anew, content = saved["games"] is None, BytesIO(saved["model"])
    rate = {"learning_rate": run.options.schedule()}  # may be another one now
    model = run.options.algorithm(env).load(
        content, env=env, device="cpu", force_reset=anew, custom_objects=rate
    )
    if anew:
        env.seed(TRAINED * (run.options.seed + 1) + model.num_timesteps)
    else:
        cast(VecNormalize, env).returns = saved["returns"]
        if saved["memories"] is not None:
            cast(Any, model)._last_lstm_states = saved["memories"]
    if saved["buffer"] is not None:
        cast(Any, model).replay_buffer = saved["buffer"]
    booked(run.clients, saved["spent"])
    python_state, numbers, draws, moves = saved["chance"]
    random.setstate(python_state)
    LEGACY.set_state(numbers)
    torch.set_rng_state(draws)
    model.action_space.np_random.bit_generator.state = moves
    run.go_on(model.num_timesteps)
    return model
