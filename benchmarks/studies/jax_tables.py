"""Tables of games in JAX: the rules as they stand, traced, on an accelerator; and one PPO.

``python -m llm_games.benchmarks.studies.jax_tables [CSV]`` compares tables with NumPy's byte by
byte, measures both and trains. It needs jax, which no extra of ours installs.

Rules, facts, rule players and noise are NumPy's: while JAX traces, our modules see `TracedNumPy`,
which works on `Traced` stand-ins for arrays. `any_true` is answered yes, `all_true` no: the general
way is traced. So a loop until nothing is true never ends (the corner of Bertrand's demand,
budget_auction's noise); tables indexed by what is traced that are no attribute of the game
(battle_royale, evacuation) do not trace either.

XLA divides by a constant, on the CPU by any number that is the same for all entries, by multiplying
with its reciprocal, and fuses products and sums: both round otherwise than NumPy. `hidden` keeps
floats from it; ``XLA_FLAGS=--xla_disable_hlo_passes=algsimp`` or a barrier would be enough on an
accelerator, not on the CPU. Its ``exp`` and ``log`` are not NumPy's: logit demand differs.
"""

from __future__ import annotations

import operator
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy
import numpy as np

import llm_games as lg
from llm_games.arrays import Array, any_true
from llm_games.baselines.rules import legal
from llm_games.benchmarks.studies.dated import RESULTS, made_with, today, write
from llm_games.noise import Noise
from llm_games.questions import MISSING
from llm_games.rulebook import Rulebook, State
from llm_games.view import Sight

jax.config.update("jax_enable_x64", True)
FILE = RESULTS / "jax_tables.csv"
RUNS, LENGTH, RING = 3, 100, 16
"""Runs of a measurement, steps of a rollout, and sets of actions that are drawn for them."""


# -- the trace -------------------------------------------------------------------------------------


class Traced:
    """A stand-in for an array of NumPy: `payload` is JAX's. Entries can be set, as in NumPy."""

    __array_ufunc__ = None  # so that ``array + traced`` is asked of this class
    zero: Any = 0
    """Nought, int64, that XLA does not know to be a constant."""

    def __init__(self, payload: Any) -> None:
        self.payload = payload

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.payload, name)
        return lifted(attribute) if callable(attribute) else attribute

    def __bool__(self) -> bool:
        raise TypeError("it hangs on data which way is taken: it cannot be traced")

    def __neg__(self) -> Traced:
        return Traced(-self.payload)

    def __invert__(self) -> Traced:
        return Traced(~self.payload)

    def __abs__(self) -> Traced:
        return Traced(abs(self.payload))

    def __len__(self) -> int:
        return len(self.payload)

    def __iter__(self) -> Iterator[Traced]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Traced:
        return Traced(jnp.asarray(self.payload)[bare(index)])

    def __setitem__(self, index: Any, entries: Any) -> None:
        entries = jnp.asarray(bare(entries)).astype(self.payload.dtype)
        self.payload = jnp.asarray(self.payload).at[bare(index)].set(entries)

    @property
    def T(self) -> Traced:
        return Traced(jnp.asarray(self.payload).T)

    @property
    def flat(self) -> Traced:
        return Traced(jnp.ravel(self.payload))

    def any(self, axis: Any = None) -> Any:
        """Of all entries: yes, as `any_true` says."""
        return True if axis is None else Traced(jnp.any(self.payload, axis))

    def all(self, axis: Any = None) -> Any:
        return False if axis is None else Traced(jnp.all(self.payload, axis))

    def take(self, index: Any, axis: int | None = None) -> Traced:
        return Traced(jnp.take(self.payload, bare(index), axis, mode="wrap"))

    def put(self, index: Any, entries: Any) -> None:
        flat = jnp.ravel(self.payload).at[jnp.ravel(bare(index))].set(jnp.ravel(bare(entries)))
        self.payload = flat.reshape(self.payload.shape)

    def sort(self, axis: int = -1) -> None:
        self.payload = jnp.sort(self.payload, axis)


def hidden(number: Any, beside: Any = None) -> Any:
    """Return the same floats, of which XLA knows nothing; another one for each entry `beside`."""
    if number.dtype.kind != "f":
        return number
    kind = jnp.int64 if number.dtype == jnp.float64 else jnp.int32
    zero = Traced.zero.astype(kind)
    if beside is not None:
        zero = zero & jax.lax.bitcast_convert_type(beside, kind)
    bits = jax.lax.bitcast_convert_type(number, kind) ^ zero
    return jax.lax.bitcast_convert_type(bits, number.dtype)


def operand(other: Any, array: Any) -> Any:
    """Return an operand beside an array: Python's integers are of its type, as in NumPy."""
    alike = type(other) is int and array.dtype.kind in "iu"
    return np.asarray(other, array.dtype) if alike else bare(other)


def product(a: Any, b: Any) -> Any:
    return hidden(jnp.multiply(a, b))


def quotient(a: Any, b: Any) -> Any:
    if np.ndim(b) == 0:  # XLA would multiply by one reciprocal
        a = jnp.asarray(a, jnp.float64)
        b = hidden(jnp.asarray(b, jnp.float64), a)
    return jnp.true_divide(a, b)


def binary(of: Callable[[Any, Any], Any], swapped: bool = False) -> Callable[..., Traced]:
    def operate(self: Traced, other: Any) -> Traced:
        pair = self.payload, operand(other, self.payload)
        return Traced(of(*pair[::-1] if swapped else pair))

    return operate


SPECIAL: dict[str, Callable[..., Any]] = dict.fromkeys(("mul", "multiply"), product)
SPECIAL |= dict.fromkeys(("truediv", "true_divide"), quotient)
ARITHMETIC = "add", "sub", "mul", "truediv", "floordiv", "mod", "pow"
BITWISE = "and_", "or_", "xor", "lshift", "rshift"
COMPARISONS = "lt", "le", "gt", "ge", "eq", "ne"
for _name in ARITHMETIC + BITWISE:
    _of = SPECIAL.get(_name) or getattr(operator, _name)
    setattr(Traced, f"__{_name.strip('_')}__", binary(_of))
    setattr(Traced, f"__r{_name.strip('_')}__", binary(_of, swapped=True))
for _name in COMPARISONS:
    setattr(Traced, f"__{_name}__", binary(getattr(operator, _name)))


def bare(thing: Any) -> Any:
    """Take JAX's arrays out of stand-ins, also in lists and tuples."""
    if isinstance(thing, Traced):
        return thing.payload
    return type(thing)(map(bare, thing)) if type(thing) in (list, tuple) else thing


def has_traced(thing: Any) -> bool:
    if type(thing) in (list, tuple):
        return any(map(has_traced, thing))
    return isinstance(thing, Traced)


def lifted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of JAX as one of stand-ins."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        keywords = {k: bare(v) for k, v in keywords.items() if k not in ("kind", "order")}
        answer = function(*map(bare, arguments), **keywords)
        return Traced(answer) if isinstance(answer, (jax.Array, np.ndarray)) else answer

    return call


class TracedFunction:
    """A function of NumPy, or the same of JAX where there are stand-ins among its arguments."""

    def __init__(self, name: str) -> None:
        self.name, self.of_numpy = name, getattr(numpy, name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of_numpy, name)

    def outer(self, *arguments: Any) -> Any:
        of_jax = getattr(jnp, self.name).outer
        return (lifted(of_jax) if has_traced([*arguments]) else self.of_numpy.outer)(*arguments)

    def __call__(self, *arguments: Any, out: Any = None, **keywords: Any) -> Any:
        if not has_traced([*arguments, *keywords.values()]):
            keywords |= {} if out is None else {"out": out}
            return self.of_numpy(*arguments, **keywords)
        of_jax = SPECIAL.get(self.name) or getattr(jnp, self.name)
        return lifted(of_jax)(*arguments, **keywords)


class TracedNumPy:
    """NumPy's module, as it is seen while JAX traces."""

    ndarray = (np.ndarray, Traced)  # for `isinstance`

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(numpy, name)
        is_function = callable(attribute) and not isinstance(attribute, type)
        return TracedFunction(name) if is_function else attribute

    @staticmethod
    def asarray(thing: Any, dtype: Any = None) -> Any:
        if not isinstance(thing, Traced):
            return numpy.asarray(thing, dtype)
        return thing if dtype is None else thing.astype(dtype)

    @staticmethod
    def empty(shape: Any, dtype: Any = float) -> Traced:
        return Traced(numpy.zeros(shape, dtype))

    zeros = empty

    @staticmethod
    def empty_like(like: Any) -> Traced:
        return Traced(numpy.zeros(like.shape, like.dtype))

    @staticmethod
    def count_nonzero(array: Any) -> Any:
        """Of stand-ins: neither none nor all, which is what `any_true` and `all_true` ask."""
        return 0.5 if isinstance(array, Traced) else numpy.count_nonzero(array)


@contextmanager
def tracing(game: Rulebook, zero: Any) -> Iterator[None]:
    """Let our modules see `TracedNumPy`, and the game's constants be indexed by what is traced."""
    constants = {k: v for k, v in vars(game).items() if isinstance(v, np.ndarray)}
    ours = [
        module
        for name, module in sys.modules.items()
        if (name.startswith("llm_games") or name == __name__) and vars(module).get("np") is numpy
    ]
    Traced.zero = zero
    vars(game).update({name: Traced(constant) for name, constant in constants.items()})
    for module in ours:
        vars(module)["np"] = TracedNumPy()
    try:
        yield
    finally:
        vars(game).update(constants)
        for module in ours:
            vars(module)["np"] = numpy


REGISTERED = set[type[State]]()


def as_tree(kind: type[State]) -> None:
    """Let JAX look into states of this kind."""
    if kind in REGISTERED:
        return
    REGISTERED.add(kind)

    def build(names: Any, fields: Any) -> State:
        state: State = object.__new__(kind)
        state.__dict__.update(zip(names, fields, strict=True))
        return state

    jax.tree_util.register_pytree_node(kind, lambda s: ([*vars(s).values()], (*vars(s),)), build)


# -- tables, in NumPy and in JAX by the same lines -------------------------------------------------


class TracedEpisodes(NamedTuple):
    """Tables in the middle of episodes; their seeds, uint64 ``(copies,)``; and `Traced.zero`."""

    state: Any
    seeds: Array
    zero: Any = np.zeros((), np.int64)


class TracedStep(NamedTuple):
    """A step's observations, rewards and broken rules, seats first, and which tables were over."""

    observation: Any
    reward: Any
    over: Any
    broke: Any


class TracedTables:
    """Copies of a game that start again as they end; a rule plays all seats but the first, if any.

    `actions`, of the first seat or without a rule of all, are drawn once, legal and illegal ones,
    ``(RING, seats, copies)``.
    """

    def __init__(self, game: str, others: str, copies: int, **parameters: Any) -> None:
        self.game: Any = lg.rules(game, **parameters)
        player: Any = lg.player(others, self.game) if others else None
        self.rule = player.rule_in(self.game) if others else None
        self.copies = copies
        self.learner = np.zeros(1, np.int64) if others else None
        self.others = np.arange(1, self.game.players)[:, None]
        (low, high), rng = self.game.bounds(), np.random.default_rng(0)
        shape = RING, 1 if others else self.game.players, copies
        actions = rng.integers(low - 2, high + 3, shape)
        self.actions = np.where(rng.random(actions.shape) < 0.05, MISSING, actions)
        self.first = self.begin(np.arange(copies, dtype=np.uint64))
        as_tree(type(self.first.state))
        self.step(self.first, self.actions[0])  # what a game works out once is not to be traced
        if self.game.same_limits:  # it takes a short way that hangs on data
            vars(self.game)["same_limits"] = False

    def begin(self, seeds: Array) -> TracedEpisodes:
        return TracedEpisodes(self.game.begin(self.game.chance(Noise(seeds)), seeds.shape), seeds)

    def restarted(self, state: Any, seeds: Array) -> Any:
        """Return the tables with new episodes where the old ones are over."""
        if isinstance(state.over, Traced):
            return state.merged(self.begin(seeds).state, state.over)
        tables = np.flatnonzero(state.over)
        fresh = self.begin(seeds[tables]).state
        return fresh if len(tables) == self.copies else state.placed(tables, fresh)

    def step(self, episodes: TracedEpisodes, actions: Array) -> tuple[TracedEpisodes, TracedStep]:
        """Play a step of NumPy's arrays, or of stand-ins."""
        game, (state, seeds, zero) = self.game, episodes
        if self.rule is not None:
            view = Sight(game, state).view(self.others)
            actions = np.concatenate([actions, legal(view, self.rule(view, None))])
        state, outcome = game.step(state, actions)
        over, rows = state.over, slice(0, 1 if self.rule else None)
        if any_true(over):
            seeds = seeds + np.uint64(self.copies) * over
            state = self.restarted(state, seeds)
        observation = game.observe(state, self.learner)
        step = TracedStep(observation, outcome.rewards[rows], over, outcome.broke[rows])
        return TracedEpisodes(state, seeds, zero), step

    def in_numpy(self, length: int) -> list[tuple[TracedEpisodes, TracedStep]]:
        played, episodes = [], self.first
        for t in range(length):
            episodes, step = self.step(episodes, self.actions[t % RING])
            played.append((episodes, step))
        return played

    def in_jax(self, episodes: TracedEpisodes, actions: Any) -> tuple[TracedEpisodes, TracedStep]:
        """Play a step of JAX's arrays. Their `zero` must be an argument of what is compiled."""
        with tracing(self.game, episodes.zero):
            played = self.step(*jax.tree.map(Traced, (episodes, actions)))
        return jax.tree.map(lambda leaf: jnp.asarray(bare(leaf)), played)

    def rollout(self, length: int, whole: bool = False) -> Callable[..., Any]:
        """Return what plays so many steps in one call; with `whole`, it tells each one's tables."""

        @jax.jit
        def play(episodes: TracedEpisodes, actions: Any) -> Any:
            def step(episodes: TracedEpisodes, t: Any) -> Any:
                played = self.in_jax(episodes, actions[t % RING])
                return played[0], played if whole else played[1]

            return jax.lax.scan(step, episodes, jnp.arange(length))

        return play


def compare(tables: TracedTables, length: int) -> dict[str, int]:
    """Count arrays of so many steps, those that differ in a byte, and games played to the end."""
    played = tables.in_numpy(length)
    stacked = jax.tree.leaves(tables.rollout(length, whole=True)(tables.first, tables.actions)[1])
    arrays = different = 0
    for t, step in enumerate(played):
        for ours, leaf in zip(map(np.asarray, jax.tree.leaves(step)), stacked, strict=True):
            theirs = np.asarray(leaf[t])
            alike = ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes()
            arrays, different = arrays + 1, different + (not alike)
    games = int(sum(step.over.sum() for _, step in played))
    return {"games compared": games, "arrays compared": arrays, "arrays that differ": different}


# -- speed -----------------------------------------------------------------------------------------


def rate(work: Callable[[], int]) -> float:
    """Return steps of tables a second of wall time, the median of `RUNS`."""
    work()
    rates = []
    for _ in range(RUNS):
        start = time.perf_counter()
        rates.append(work() / (time.perf_counter() - start))
    return median(rates)


def rates(game: str, others: str, copies: int) -> dict[str, float]:
    """Steps of tables a second.

    In NumPy of a learner's environment (a step may be several of the rules) and of the same lines
    as in JAX; in JAX stepped from Python, which is handed all, and as a rollout that stays there.
    """
    tables, length = TracedTables(game, others, copies), max(3, min(LENGTH, 400_000 // copies))
    env = lg.learners(game, copies, opponents=others)
    env.reset(seed=0)
    samples = [env.action_space.sample() for _ in range(RING)]
    step, rollout = jax.jit(tables.in_jax), tables.rollout(LENGTH)
    actions, episodes = jax.device_put(tables.actions), tables.first

    def in_env() -> int:
        for t in range(length):
            env.step(samples[t % RING])
        return length * copies

    def in_numpy() -> int:
        return len(tables.in_numpy(length)) * copies

    def stepped() -> int:
        nonlocal episodes
        for t in range(RING):
            episodes, brought = step(episodes, tables.actions[t])
            jax.tree.map(np.asarray, brought)
        return RING * copies

    def scanned() -> int:
        jax.block_until_ready(rollout(tables.first, actions))
        return LENGTH * copies

    works = {"NumPy learners": in_env, "NumPy": in_numpy}
    works |= {"JAX by step": stepped, "JAX scan": scanned}
    return {f"steps/s: {way}": rate(work) for way, work in works.items()}


# -- PPO -------------------------------------------------------------------------------------------

WIDTH, ROLLOUT, EPOCHS, BATCHES, UPDATES = 64, 20, 4, 4, 78
RATE, DISCOUNT, TRACE, CLIP, STEEPEST = 1e-3, 0.99, 0.95, 0.2, 0.5
"""As of our scripts with Stable-Baselines3, of which 78 updates of 64 copies are 100,000 steps."""


class Sample(NamedTuple):
    """Decisions, ``(copies,)``: what was observed, done and expected, and what it brought."""

    observation: Any
    action: Any
    likelihood: Any
    value: Any
    reward: Any
    over: Any


def fresh_weights(key: Any, columns: int, actions: int) -> Any:
    """Return weights of a policy and of a critic, float32."""
    body, draw = [(columns, WIDTH), (WIDTH, WIDTH)], jax.nn.initializers.orthogonal()
    sizes = [*body, (WIDTH, actions), *body, (WIDTH, 1)]
    gains = 1, 1, 0.01, 1, 1, 1
    keys = jax.random.split(key, len(sizes))
    return [
        (draw(own_key, size, jnp.float32) * gain, jnp.zeros(size[1], jnp.float32))
        for own_key, size, gain in zip(keys, sizes, gains, strict=True)
    ]


def network(weights: Any, observation: Any) -> tuple[Any, Any]:
    """Return log-likelihoods of actions, and the value of one observation."""

    def dense(layers: Any) -> Any:
        signal = observation
        for matrix, bias in layers[:-1]:
            signal = jnp.tanh(signal @ matrix + bias)
        return signal @ layers[-1][0] + layers[-1][1]

    return jax.nn.log_softmax(dense(weights[:3])), dense(weights[3:])[0]


decide = jax.vmap(network, (None, 0))


def loss(weights: Any, part: Sample, advantage: Any, target: Any) -> Any:
    logs, value = decide(weights, part.observation)
    ratio = jnp.exp(jnp.take_along_axis(logs, part.action[:, None], 1)[:, 0] - part.likelihood)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantage)
    return 0.5 * ((value - target) ** 2).mean() - gain.mean()


def fit(carry: Any, part: Any, *, updates: int) -> tuple[Any, None]:
    """Take a step of Adam, at a rate that falls to 0."""
    weights, slope, square, count = carry
    gradient = jax.grad(loss)(weights, *part)
    norm = jnp.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(gradient)))
    gradient = jax.tree.map(lambda g: g * jnp.minimum(1, STEEPEST / norm), gradient)
    slope = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, slope, gradient)
    square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, square, gradient)
    rate_left = RATE * (1 - count / (updates * EPOCHS * BATCHES))
    count = count + 1

    def moved(weight: Any, m: Any, v: Any) -> Any:
        deviation = jnp.sqrt(v / (1 - 0.999**count)) + 1e-5
        return weight - rate_left * (m / (1 - 0.9**count)) / deviation

    return (jax.tree.map(moved, weights, slope, square), slope, square, count), None


def advantages(samples: Sample, value: Any) -> Any:
    """Return generalised advantages, ``(rollout, copies)``, with the `value` after the last."""

    def back(carry: Any, sample: Sample) -> Any:
        advantage, next_value = carry
        goes_on = DISCOUNT * (1 - sample.over.astype(jnp.float32))
        error = sample.reward + goes_on * next_value - sample.value
        advantage = error + goes_on * TRACE * advantage
        return (advantage, sample.value), advantage

    return jax.lax.scan(back, (jnp.zeros_like(value), value), samples, reverse=True)[1]


def train(tables: TracedTables, updates: int, first: TracedEpisodes, key: Any) -> Any:
    """Train the first seat from these tables on; return its mean payoff of a step, by update."""
    columns, (low_action, high_action) = tables.game.columns(), tables.game.bounds()
    low, high = (
        np.array([getattr(c, end) for c in columns], np.float32) for end in ("low", "high")
    )
    scale = np.float32(1 / max(map(abs, tables.game.stake)))

    def scaled(observation: Any) -> Any:
        return (observation[0] - low) / np.maximum(high - low, 1)

    def play(carry: Any, key: Any) -> Any:
        weights, episodes, observation = carry
        logs, value = decide(weights, observation)
        action = jax.random.categorical(key, logs)
        likelihood = jnp.take_along_axis(logs, action[:, None], 1)[:, 0]
        episodes, step = tables.in_jax(episodes, (action + low_action)[None].astype(jnp.int64))
        reward = step.reward[0].astype(jnp.float32) * scale
        sample = Sample(observation, action, likelihood, value, reward, step.over)
        return (weights, episodes, scaled(step.observation)), sample

    def update(carry: Any, key: Any) -> Any:
        fitted, episodes, observation = carry
        key, *epoch_keys = jax.random.split(key, EPOCHS + 1)
        (_, episodes, observation), samples = jax.lax.scan(
            play, (fitted[0], episodes, observation), jax.random.split(key, ROLLOUT)
        )
        advantage = advantages(samples, decide(fitted[0], observation)[1])
        learned_from = samples, advantage, advantage + samples.value
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), learned_from)
        for epoch_key in epoch_keys:
            order = jax.random.permutation(epoch_key, ROLLOUT * tables.copies).reshape(BATCHES, -1)
            parts = jax.tree.map(lambda leaf, order=order: leaf[order], flat)
            fitted, _ = jax.lax.scan(partial(fit, updates=updates), fitted, parts)
        return (fitted, episodes, observation), samples.reward.mean() / scale

    key, weights_key = jax.random.split(key)
    weights = fresh_weights(weights_key, len(columns), high_action - low_action + 1)
    zeros = jax.tree.map(jnp.zeros_like, weights)
    observation = jnp.asarray(scaled(tables.game.observe(tables.first.state, tables.learner)))
    carry = (weights, zeros, zeros, jnp.float32(0)), first, observation
    return jax.lax.scan(update, carry, jax.random.split(key, updates))[1]


def training(copies: int, seeds: int, updates: int = UPDATES) -> dict[str, float]:
    """Train so many seeds at once to give to public goods; return seconds and mean payoffs."""
    tables = TracedTables("public_goods", "rational", copies)
    start, keys = time.perf_counter(), jax.random.split(jax.random.key(1), seeds)
    first = jax.tree.map(jnp.asarray, tables.first)
    all_seeds = jax.jit(jax.vmap(partial(train, tables, updates), (None, 0)))
    compiled = all_seeds.lower(first, keys).compile()
    compiling, start = time.perf_counter() - start, time.perf_counter()
    payoffs = np.asarray(compiled(first, keys))
    return {
        "seconds to compile": compiling,
        "seconds to train": time.perf_counter() - start,
        "first payoff of a round": payoffs[:, 0].mean(),
        "last payoff of a round": payoffs[:, -1].mean(),
    }


# -- results ---------------------------------------------------------------------------------------

CARRY = {"endowment": "carry", "ratio": "8/5", "initial_tokens": "random"}
COMPARED: list[tuple[str, str, int, int, dict[str, Any]]] = [
    ("public_goods", "rational", 2048, 100, {}),
    ("public_goods", "", 2048, 100, {}),
    ("public_goods", "", 2048, 100, CARRY),
    ("public_goods", "", 512, 40, {"players": 7, "ratio": "17/10"}),
    ("water_allocation", "even", 2048, 100, {}),
    ("water_allocation", "", 2048, 100, {}),
    ("english_auction", "rule:4", 512, 300, {}),
    ("english_auction", "", 512, 100, {}),
    *((game, "", 256, 60, {}) for game in ("beauty_contest", "diners_dilemma", "divide_dollar")),
    *((game, "", 256, 60, {}) for game in ("el_farol_bar", "pirate_game", "sealed_bid_auction")),
]
"""Games, their rule players, copies, steps and parameters."""
COPIES = 512, 4096, 65_536
MEASURED = {"public_goods": "rational", "water_allocation": "even", "english_auction": "rule:4"}
TRAINED = (64, 1), (64, 64), (4096, 1)
"""Copies, and seeds at once."""


class JaxFigure(NamedTuple):
    """A figure of a game among rule players (of all seats' random moves if there are none)."""

    game: str
    others: str
    parameters: str
    copies: int
    measure: str
    figure: float
    day: str
    device: str
    versions: str


def figures() -> Iterator[JaxFigure]:
    """Yield all figures as they are measured."""
    device, versions = jax.devices()[0].device_kind, made_with("jax", "numpy")
    figure_of = partial(JaxFigure, day=today(), device=device, versions=versions)

    def of(game: str, others: str, words: str, copies: int, all_of: Any) -> Iterator[JaxFigure]:
        for measure, figure in all_of.items():
            yield figure_of(game, others, words, copies, measure, float(figure))

    for game, others, copies, length, parameters in COMPARED:
        tables = TracedTables(game, others, copies, **parameters)
        words = " ".join(f"{name}={setting}" for name, setting in parameters.items())
        yield from of(game, others, words, copies, compare(tables, length))
    for copies in COPIES:
        for game, others in MEASURED.items():
            yield from of(game, others, "", copies, rates(game, others, copies))
    for copies, seeds in TRAINED:
        words = f"PPO seeds={seeds}"
        yield from of("public_goods", "rational", words, copies, training(copies, seeds))


def main() -> None:
    rows = []
    for row in figures():
        print(*row[:6], sep=", ", flush=True)
        rows.append(row)
    write(rows, Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)


if __name__ == "__main__":
    main()
