"""Players of matrix games: strategies of two actions, and rules for any table.

Action 0 is C and action 1 is D; strategies read actions as they see them, and remember all rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache, partial, reduce
from typing import Any

import numpy as np

from llm_games.arrays import looked_up
from llm_games.baselines.games.matrix_game import theory
from llm_games.baselines.logit_equilibria import logit_equilibrium
from llm_games.baselines.memory_one import EXTORTION, Memory, chance_from, generous
from llm_games.baselines.reasoning_levels import level_mixtures
from llm_games.baselines.repeated_dilemma import Dilemma
from llm_games.baselines.rules import Kind, Players, Rule, cannot_play, count_from, pick, ratio_from
from llm_games.errors import BadParameter
from llm_games.games.matrix_game.rules import MatrixGame
from llm_games.noise import Noise
from llm_games.questions import BadReply
from llm_games.rulebook import Array
from llm_games.view import View


def part_of(profile: Callable[..., Sequence[Any]]) -> Rule:
    """Return the rule that plays a seat's part of a game's profile: an action, or by chances."""

    def rule(*values: Any) -> Array:
        *value, view, noise = values
        part = profile(view.game, *value)[view.seat]
        if np.ndim(part) == 0:
            return np.full(view.batch, part)
        return pick(np.broadcast_to(np.array(part, np.float64), (*view.batch, len(part))), noise)

    return rule


def by_memory(rule: Memory, view: View, noise: Noise) -> Array:
    mine, other = (view.number(f"seen_{seat}") for seat in (view.seat, 1 - view.seat))
    chances = np.array(rule, np.float64)
    chance = looked_up(chances, np.where(view.number("round") > 1, 1 + 2 * mine + other, 0))
    return chance == 0 if {*rule} <= {0, 1} else noise.random() >= chance


def look_back(rounds: int, worst: Callable[..., Any], view: View, noise: Noise) -> Array:
    """Play what of the other's last actions is the `worst`, by a function of two of them."""
    names = ("seen", "before", "earlier")[:rounds]
    return reduce(worst, [view.number(f"{name}_{1 - view.seat}") for name in names])


def alternator(view: View, noise: Noise) -> Array:
    return (view.number("round") - 1) % 2


def grim(view: View, noise: Noise) -> Array:
    return view.number(f"count_{1 - view.seat}_1") > 0


def two_round_trigger(view: View, noise: Noise) -> Array:
    """Play D twice once the other did, whatever it does meanwhile (Dal Bó & Fréchette 2011)."""
    mine, other = (view.number(f"seen_{seat}") for seat in (view.seat, 1 - view.seat))
    return np.where(mine == 1, view.number(f"before_{view.seat}") == 0, other)


def forgiving(*values: Any) -> Array:
    """Take a view and noise, perhaps after the chance to forgive, else the most that holds."""
    *chances, view, noise = values
    if not chances or chances[0] is None:
        chances = [Dilemma.of(view.game.table.exact).generosity]
    return by_memory(generous(chances[0]), view, noise)


def extort(factor: int, view: View, noise: Noise) -> Array:
    return by_memory(EXTORTION[factor], view, noise)


OF_TWO: dict[str, tuple[Any, str]] = {
    "all_c": (part_of(lambda game: (0, 0)), "always the first"),
    "all_d": (part_of(lambda game: (1, 1)), "always the second"),
    "alternator": (alternator, "the first, the second, and so on"),
    "tit_for_tat": ("11010", "what the other did last, at first the first"),
    "suspicious_tit_for_tat": ("01010", "the same, at first the second"),
    "tit_for_two_tats": (partial(look_back, 2, np.minimum), "the second after two of the other's"),
    "two_tits_for_tat": (partial(look_back, 2, np.maximum), "the second after one in two"),
    "hard_tit_for_tat": (partial(look_back, 3, np.maximum), "the second after one in three"),
    "grim": (grim, "the second once the other ever played it"),
    "two_round_trigger": (two_round_trigger, "the second twice once the other played it"),
    "win_stay_lose_shift": ("11001", "the first if both did the same last"),
    "bully": ("00101", "the opposite of what the other did last"),
}
"""Rules, or their chances of action 0 at first and after CC, CD, DC, DD; and what they do."""
BLIND = "all_c", "all_d", "alternator"
OF_CHANCES = "generous", "memory_one", "zd_extort"
"""More of two actions, which remember a round."""
SEEING = "best_response", "fictitious_play"
OF_TABLES = "fictitious_play", "logit"


# -- any table -------------------------------------------------------------------------------------


rational = part_of(
    lambda game: theory.selected(game) or theory.mixed(game) or game.table.safe.tolist()
)


def _others(view: View) -> list[int]:
    """Return the seats to whose actions a player replies."""
    return [seat for seat in range(view.game.players) if seat != view.seat]


def best_response(view: View, noise: Noise) -> Array:
    """Reply to the others' last actions as seen, the first of equals; at first be rational."""
    game, others = view.game, _others(view)
    if not game.tells_each:
        cell = np.maximum(view.number("first") - (view.number("action") == 0), 0)
    elif game.by_count is not None:
        cell = sum(view.number(f"seen_{seat}") == 0 for seat in others)
    else:
        cell = reduce(lambda cell, k: cell * game.actions[k] + view.number(f"seen_{k}"), others, 0)
    reply = looked_up(theory.stage(game, view.seat).rows(view.seat).argmax(axis=0), cell)
    return np.where(view.number("round") > 1, reply, rational(view, noise))


def fictitious_play(view: View, noise: Noise) -> Array:
    """Reply to how often the others were seen to do what, the first of equals; at first be safe."""
    others, table = _others(view), theory.stage(view.game, view.seat)
    weights = np.ones((1, *view.batch))
    for seat in others:
        counts = np.moveaxis(view.row(f"count_{seat}"), -1, 0)[: table.actions[seat]]
        weights = (weights[:, None] * counts).reshape(-1, *view.batch)
    reply = np.tensordot(table.rows(view.seat).astype(np.float64), weights, 1).argmax(axis=0)
    return np.where(view.number("round") > 1, reply, view.game.table.safe[view.seat])


@lru_cache(64)
def logit_mixtures(game: MatrixGame, rate: Fraction) -> tuple[Array, ...]:
    """Return what each seat draws from in the logit equilibrium of a round, or BadParameter."""
    table = theory.stage(game)
    mixtures, residual = logit_equilibrium(table.numbers / table.unit, float(rate))
    if mixtures is None:
        raise BadParameter(
            f"logit:{float(rate):g} does not settle in this game (residual {residual:.2g}): choose "
            "less"
        )
    return mixtures


def turn_taking(view: View, noise: Noise) -> Array:
    """Play the Pareto-undominated of the pure equilibria, one after another by round."""
    profiles = theory.in_turn(view.game) or [view.game.table.safe]
    actions = np.array([profile[view.seat] for profile in profiles])
    return looked_up(actions, (view.number("round") - 1) % len(actions))


def meaning(game: Any, value: str) -> int:
    """Return the action of a label that is settled, or of a number from 0."""
    if value.isascii() and value.isdigit() and int(value) < max(game.actions):
        return int(value)
    with suppress(BadReply):
        if game.labels != "drawn":
            return int(game.asks(game.reset(0), 0).read(value))
    raise cannot_play(game, value, "a label of an action, or its number from 0")


def check(game: Any, kind: str, value: Any) -> None:
    """Raise BadParameter where a player has no place under these parameters."""
    can_see = game.tells_each or kind in BLIND
    if kind in {*OF_TWO, *OF_CHANCES} and not (game.actions == (2, 2) and can_see):
        raise BadParameter(
            f"{kind} is for two players of two actions who are told all actions, got "
            f"players={game.players}, actions {game.actions} and reveal={game.reveal!r}"
        )
    if kind in SEEING and game.reveal != "actions":
        raise BadParameter(
            f"{kind} replies to what it sees: reveal must be actions, got {game.reveal!r}"
        )
    if kind in OF_TABLES and game.by_count is not None:
        raise BadParameter(f"{kind} is for tables of up to 6 players, not for by_count")
    if kind == "logit":
        logit_mixtures(game, value)
    if kind == "generous" and value is None:
        Dilemma.of(game.table.exact)
    if kind == "zd_extort" and game.table.units.tolist() != [[[3, 0], [5, 1]], [[3, 5], [0, 1]]]:
        raise BadParameter("zd_extort is worked out for the payoffs 3 0; 5 1 alone")


PLAYERS = Players(
    {
        "rational": rational,
        "best_response": best_response,
        "level_k": part_of(lambda game, level: level_mixtures(theory.stage(game), level)),
        "cooperative": part_of(theory.best_for_all),
        "uniform": Kind(
            "draws any action, all equally likely",
            lambda view, noise: noise.integers(0, view.game.actions[view.seat]),
        ),
        "maximin": Kind(
            "plays the action whose worst payoff is best",
            part_of(lambda game: game.table.safe),
        ),
        "fictitious_play": Kind("replies to how often the others did what", fictitious_play),
        "turn_taking": Kind("plays the best pure equilibria one after another", turn_taking),
        "logit": Kind(
            "draws from a logit equilibrium",
            part_of(logit_mixtures),
            value="<rate>",
            read=ratio_from("logit", 0, 10**6, "logit needs a rate of at least 0, as in logit:1/2"),
        ),
        **{
            name: Kind(
                f"of two actions: {summary}",
                partial(by_memory, Memory.of(rule)) if isinstance(rule, str) else rule,
            )
            for name, (rule, summary) in OF_TWO.items()
        },
        "generous": Kind(
            "of two actions: what the other did last, but forgives with a chance",
            forgiving,
            value="<chance>",
            read=lambda value: chance_from("generous")(value) if value else None,
            valued="how often it forgives",
        ),
        "memory_one": Kind(
            "of two actions: the first with chances at first and after CC, CD, DC, DD",
            by_memory,
            value="<five chances>",
            read=Memory.read,
        ),
        "zd_extort": Kind(
            "of two actions: takes a multiple of the other's gain",
            extort,
            value="<factor>",
            read=count_from(2, 3, "zd_extort takes 2 or 3, as in zd_extort:2"),
        ),
    },
    meaning=meaning,
    assumed="if the others play the same again (while that is not known, if all are rational)",
    mixed=True,
    check=check,
)
