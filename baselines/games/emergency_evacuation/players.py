"""Players of the evacuation: rules by which an exit is chosen, and how they walk there.

Where players choose their steps themselves, all but `wang` step to the best free cell as the
built-in walker ``greedy`` does.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from llm_games.baselines.games.emergency_evacuation import theory
from llm_games.baselines.rules import Kind, Players, Rule, cannot_play, shape
from llm_games.errors import BadParameter
from llm_games.games.emergency_evacuation.geometry import STAY
from llm_games.games.emergency_evacuation.rules import MOVE
from llm_games.games.emergency_evacuation.walkers import costs, greedy, ranked
from llm_games.noise import Noise
from llm_games.rulebook import Array, Rulebook
from llm_games.view import View


def walk(view: View, noise: Noise, wang: bool = False) -> Array:
    """Return the direction of a step: to the best cell that is free, or by Wang's rule."""
    game, state = view.game, view.sight.state
    return stepped(game, state, view.rows, state.target[view.rows], noise, wang)


def around(view: View, noise: Noise) -> Array:
    """Return the direction of a step to the best free cell; where ways wind, to any exit.

    The exit is then the best one from where all stand: nobody is bound to walk to the target.
    """
    game, state = view.game, view.sight.state
    exits = theory.now(game, state) if game.measure.detours else state.target
    return stepped(game, state, view.rows, exits[view.rows], noise)


def stepped(
    game: Any, state: Any, rows: Any, target: Array, noise: Noise, wang: bool = False
) -> Array:
    """Return the direction of the steps of some seats towards exits."""
    room, own = game.room, np.asarray(state.cell[rows])
    liked = (ranked(game.measure, game.rule_stay) if wang else greedy(game.measure))[target, own]
    batch = state.round.shape
    table = np.ogrid[tuple(slice(n) for n in batch)]
    cells = np.moveaxis(liked, -1, 0)
    free = ~game.occupied(state)[(cells, *table)] | (cells == own)
    if game.moves == "simultaneous" and not wang:
        free[:] = True
    best = free.argmax(axis=0)
    if wang:
        second = (free & (free.cumsum(axis=0) == 2)).argmax(axis=0)
        best = np.where(noise.random() < float(game.p_best), best, second)
    chosen = np.take_along_axis(cells, best[None], axis=0)[0]
    way = (room.neighbours[:, own] == chosen).argmax(axis=0)
    return np.where(chosen == own, STAY, way)


def going(rule: Rule, walk: Rule = walk) -> Rule:
    """Return the rule that chooses an exit by another, and walks there."""

    def act(view: View, noise: Noise) -> Array:
        moving = view.sight.state.phase == MOVE
        if not moving.any():
            return rule(view, noise)
        step = walk(view, noise.of("step"))
        if not moving.all():
            step = np.where(moving, step, rule(view, noise))
        return step

    return act


def own(choices: Callable[..., Array]) -> Rule:
    """Return the rule that takes the own one of everybody's choices in a state."""
    return lambda view, noise: choices(view.game, view.sight.state)[view.rows]


def nearest(view: View, noise: Noise) -> Array:
    """Choose the nearest exit."""
    near = view.game.measure.nearest
    return theory.chosen(view.game, near[view.sight.state.cell[view.rows]])


def keep(view: View, noise: Noise) -> Array:
    """Choose as before; at first the nearest exit."""
    before = theory.chosen(view.game, view.sight.state.target[view.rows])
    return np.where(before < 0, nearest(view, noise), before)


def random_side(view: View, noise: Noise) -> Array:
    """Choose any exit."""
    return noise.integers(len(view.game.exits), shape=()) + np.zeros(shape(view), np.int64)


def any_legal(view: View, noise: Noise) -> Array:
    """Draw an exit, or a step among those that can be taken."""
    legal: Any = view.mask
    place = noise.integers(np.maximum(legal.sum(axis=-1), 1))
    return (legal.cumsum(axis=-1) <= place[..., None]).sum(axis=-1) % legal.shape[-1]


def wang(panic: bool, view: View, noise: Noise) -> Array:
    """Choose the exit of the least cost J, see `walkers.costs`."""
    game, state = view.game, view.sight.state
    cell, group = (np.asarray(values[view.rows]) for values in (state.cell, state.group))
    batch = state.round.shape
    few = cell.ndim == len(batch)  # one seat, or another at each table
    who = (cell[None], group[None]) if few else (cell, group)
    blocked = game.rule_count == "occupied"
    found = costs(game.measure, game.occupied(state), *who, panic, game.view_angle, blocked)
    best = found.argmin(axis=0)
    return theory.chosen(game, best[0] if few else best)


def mood(value: str) -> bool:
    """Read whether Wang's people panic."""
    if value not in ("", "panic", "calm"):
        raise BadParameter(f"wang needs panic or calm, as in wang:calm, got {value!r}")
    return value != "calm"


def follow(*seen: Any) -> Array:
    """Follow Wang's rule model, in panic or as a mood before view and noise says."""
    *moods, view, noise = seen
    return going(partial(wang, moods[0] if moods else True), partial(walk, wang=True))(view, noise)


def meaning(game: Rulebook, value: str) -> int:
    """Return the exit that a word means."""
    exits = game.exits  # type: ignore[attr-defined]
    if value not in exits:
        raise cannot_play(game, value, f"one of {', '.join(exits)}")
    return exits.index(value)


def fixed(choice: int, view: View, noise: Noise) -> Array:
    """Choose always the same exit."""
    return going(lambda view, noise: np.full(shape(view), choice))(view, noise)


PLAYERS = Players(
    {
        "rational": going(own(theory.equilibrium), around),
        "best_response": going(own(theory.equilibrium), around),
        "fifo": Kind(
            "chooses its part of an equilibrium of queues at exits",
            going(own(theory.equilibrium), around),
        ),
        "cooperative": going(own(theory.planned)),
        "nearest": Kind("chooses the side of the nearest exit", going(nearest)),
        "random_side": Kind("chooses any exit", going(random_side)),
        "keep": Kind("chooses the nearest exit and never changes", going(keep)),
        "distance_queue": Kind(
            "chooses the exit of the least distance, or queue if that takes longer",
            going(own(theory.shortest)),
        ),
        "wang": Kind(
            "follows the rule model of Wang et al., in panic",
            follow,
            "<mood>",
            read=mood,
            valued="or calm, as wang:calm",
        ),
        "random": any_legal,
        "fixed": fixed,
    },
    meaning=meaning,
    assumed="if all queue at the exits by distance",
    broadcasts=True,
)
