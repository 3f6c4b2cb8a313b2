"""Players of the evacuation: rules that choose an exit, and the steps that lead there.

Steps of players (but `wang`) are to the best free cell, as the built-in walker ``greedy``'s.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from llm_games.baselines.games.emergency_evacuation import theory
from llm_games.baselines.rules import Kind, Players, Rule, cannot_play, shape
from llm_games.errors import BadParameter
from llm_games.games.emergency_evacuation.geometry import STAY, Distances
from llm_games.games.emergency_evacuation.rules import MOVE
from llm_games.games.emergency_evacuation.walkers import costs, greedy, ranked
from llm_games.noise import Noise
from llm_games.rulebook import Array, Rulebook
from llm_games.view import View


class Walking:
    """A rule that chooses exits by another, and steps to the best free cell.

    As Wang's people do, by chance to the second; or `around`, on winding ways, to the best exit.
    """

    def __init__(self, choose: Rule, *, wang: bool = False, around: bool = False) -> None:
        self.choose, self.wang, self.around = choose, wang, around

    def __call__(self, *arguments: Any) -> Array:
        *_, view, noise = arguments
        moving = view.sight.state.phase == MOVE
        if not moving.any():
            return self.choose(*arguments)
        step = self._step(view, noise.of("step"))
        return step if moving.all() else np.where(moving, step, self.choose(*arguments))

    def _step(self, view: View, noise: Noise) -> Array:
        game, state, exits = view.game, view.sight.state, view.sight.state.target
        if self.around and game.measure.detours:
            exits = theory.best_exits(game, state)
        position, wang = np.asarray(state.cell[view.rows]), self.wang
        likes = ranked(game.measure, game.rule_stay) if wang else greedy(game.measure)
        table = np.ogrid[tuple(slice(n) for n in state.round.shape)]
        cells = np.moveaxis(likes[exits[view.rows], position], -1, 0)
        free = ~game.occupied(state)[(cells, *table)] | (cells == position)
        free |= game.moves == "simultaneous" and not wang
        best = free.argmax(axis=0)
        if wang:
            second = (free & (free.cumsum(axis=0) == 2)).argmax(axis=0)
            best = np.where(noise.random() < float(game.p_best), best, second)
        chosen = np.take_along_axis(cells, best[None], axis=0)[0]
        way = (game.room.neighbours[:, position] == chosen).argmax(axis=0)
        return np.where(chosen == position, STAY, way)

    def marching(self, game: Any, noise: Noise) -> Any:
        if game.moves == "simultaneous" or (self.around and game.measure.detours):
            return None
        second = self.wang and noise.of("step").random() >= float(game.p_best)
        return listed_likes(game.measure, self.wang, game.rule_stay), second


@lru_cache(maxsize=16)
def listed_likes(measure: Distances, wang: bool, stay: bool) -> Any:
    return (ranked(measure, stay) if wang else greedy(measure)).tolist()


def seat_choice(choices: Callable[..., Array]) -> Rule:
    return lambda view, noise: choices(view.game, view.sight.state)[view.rows]


def nearest(view: View, noise: Noise) -> Array:
    near = view.game.measure.nearest
    return theory.chosen(view.game, near[view.sight.state.cell[view.rows]])


def keep(view: View, noise: Noise) -> Array:
    """Keep the choice; at first the nearest exit."""
    previous = theory.chosen(view.game, view.sight.state.target[view.rows])
    return np.where(previous < 0, nearest(view, noise), previous)


def random_side(view: View, noise: Noise) -> Array:
    return noise.integers(len(view.game.exits), shape=()) + np.zeros(shape(view), np.int64)


def any_legal(view: View, noise: Noise) -> Array:
    legal: Any = view.mask
    index = noise.integers(np.maximum(legal.sum(axis=-1), 1))
    return (legal.cumsum(axis=-1) <= index[..., None]).sum(axis=-1) % legal.shape[-1]


def wang(panic: bool, view: View, noise: Noise) -> Array:
    """Choose the exit of the least cost J, see `walkers.costs`."""
    game, state = view.game, view.sight.state
    cell, group = (np.asarray(values[view.rows]) for values in (state.cell, state.group))
    single = cell.ndim == state.round.ndim  # one seat, or another at each table
    people = (cell[None], group[None]) if single else (cell, group)
    blocked = game.rule_count == "occupied"
    exit_costs = costs(game.measure, game.occupied(state), *people, panic, game.view_angle, blocked)
    best = exit_costs.argmin(axis=0)
    return theory.chosen(game, best[0] if single else best)


def mood(value: str) -> bool:
    if value not in ("", "panic", "calm"):
        raise BadParameter(f"wang needs panic or calm, as in wang:calm, got {value!r}")
    return value != "calm"


def follow(*arguments: Any) -> Array:
    """Choose as Wang's people do, in panic unless a mood comes before view and noise."""
    *moods, view, noise = arguments
    return wang(moods[0] if moods else True, view, noise)


def meaning(game: Rulebook, value: str) -> int:
    exits = game.exits  # type: ignore[attr-defined]
    if value not in exits:
        raise cannot_play(game, value, f"one of {', '.join(exits)}")
    return exits.index(value)


def fixed(choice: int, view: View, noise: Noise) -> Array:
    return np.full(shape(view), choice)


queueing = Walking(seat_choice(theory.equilibrium), around=True)
PLAYERS = Players(
    {
        "rational": queueing,
        "best_response": Walking(seat_choice(theory.equilibrium), around=True),
        "fifo": Kind("chooses its part of an equilibrium of queues at exits", queueing),
        "cooperative": Walking(seat_choice(theory.planned)),
        "nearest": Kind("chooses the side of the nearest exit", Walking(nearest)),
        "random_side": Kind("chooses any exit", Walking(random_side)),
        "keep": Kind("chooses the nearest exit and never changes", Walking(keep)),
        "distance_queue": Kind(
            "chooses the exit of the least distance, or queue if that takes longer",
            Walking(seat_choice(theory.shortest)),
        ),
        "wang": Kind(
            "follows the rule model of Wang et al., in panic",
            Walking(follow, wang=True),
            "<mood>",
            read=mood,
            valued="or calm, as wang:calm",
        ),
        "random": any_legal,
        "fixed": Walking(fixed),
    },
    meaning=meaning,
    assumed="if all queue at the exits by distance",
    broadcasts=True,
)
